# SPDX-License-Identifier: Apache-2.0
"""Prior: P(X | S = s) of one adversary for every secret s, exact; and prior files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from pufferfish.errors import (
    InputError,
    PriorWarning,
    counted,
    did_you_mean,
    html_table,
    listed,
    warn_user,
)
from pufferfish.files import read_strict
from pufferfish.numbers import INT64_SAFE, CountArray, FloatArray, Number
from pufferfish.priors.ambiguity import Confidence, NoisyCounts, Rule, region_rule
from pufferfish.priors.given import read_counts, read_mapping
from pufferfish.support import Product, Support
from pufferfish.tables.rules import Coding, Rules, Stratum, TableReport, make_rules


class _PriorFile(msgspec.Struct, forbid_unknown_fields=True):
    secrets: dict[str, Any]
    pairs: list[tuple[str, str]] | None = None


@dataclass(frozen=True, eq=False)
class Prior:
    """P(X = x | S = s) = ``counts[s, x] / totals[s]`` for every secret s and atom x.

    Make one with :meth:`from_mapping`, :meth:`from_counts` or :meth:`from_table`.

    Attributes
    ----------
    product : Product
        Where X can lie: n atoms, the combinations of the supports of k columns; mostly k = 1.
    secrets : tuple of str
        The names of the m secrets.
    counts : integer array, shape (m, n)
        Exact numerators, flat in C order; int64, or Python integers where they may not fit.
    totals : tuple of int
        The sum of each row of ``counts``.
    from_rows : bool
        Whether ``counts`` are numbers of rows of a table (and not numerators of probabilities).
    notes : tuple of str
        What was done to the input (renormalised, rounded), to be shown to the user.
    rule : Confidence, TVBall, NoisyCounts or None
        How far the true distributions may be from this prior; None: it is exact.
    rules : Rules or None
        For a prior from a table: how it was read.
    codings : tuple of Coding, length k
        How cells were coded when they were counted; empty for a given prior.
    strata : tuple of Stratum
        People by their number of rows, where that was counted (``unit``).
    report : TableReport or None
        For a prior from a table: rows read, used and set aside.
    """

    product: Product
    secrets: tuple[str, ...]
    counts: CountArray
    totals: tuple[int, ...]
    from_rows: bool = False
    notes: tuple[str, ...] = ()
    rule: Rule | None = None
    rules: Rules | None = field(default=None, repr=False)
    codings: tuple[Coding, ...] = field(default=(), repr=False)
    strata: tuple[Stratum, ...] = field(default=(), repr=False)
    report: TableReport | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.rule is not None and (self.strata or len(self.product.axes) > 1):
            raise InputError(
                "a region (confidence or tv_radius) is not supported together with a unit or for "
                "several columns together: what they reveal is computed for the prior as it is"
            )
        if isinstance(self.rule, Confidence) and not self.from_rows:
            raise InputError(
                "confidence needs counts of rows (Prior.from_counts or Prior.from_table), but the "
                "prior was given as probabilities; give tv_radius instead"
            )

    def __repr__(self) -> str:
        source = counted(sum(self.totals), "row") if self.from_rows else "given probabilities"
        known = "" if self.rule is None else f", known up to {self.rule}"
        return (
            f"<Prior of {counted(len(self.secrets), 'secret')}: {listed(self.secrets)}\n"
            f"  on {self.product!r}\n  from {source}{known}>"
        )

    def _repr_html_(self) -> str:
        names = ["value", *self.secrets]
        shares = zip(*self.probabilities.tolist(), strict=True)
        rows = ([self.product.name(k), *row] for k, row in enumerate(shares))
        return html_table("P(X|S): share of each value, by secret", names, rows)

    @property
    def support(self) -> Support:
        """The support of the only column; an InputError where there are several."""
        return self.product.only

    @property
    def unit(self) -> str | None:
        """The column whose equal values mark the rows of one person."""
        return None if self.rules is None else self.rules.unit

    @cached_property
    def probabilities(self) -> FloatArray:
        """P(X | S) as doubles, shape (m, n), each correctly rounded or within one ulp."""
        rows = [row / total for row, total in zip(self.counts, self.totals, strict=True)]
        return np.array(rows, dtype=np.float64)

    def probability(self, secret: str, k: int) -> Fraction:
        """Return P(X = atom k | S = secret), exactly; ``k`` is a position in ``product``."""
        row = self.row(secret)
        return Fraction(int(self.counts[row, k]), self.totals[row])

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {secret: row for row, secret in enumerate(self.secrets)}

    def row(self, secret: str) -> int:
        """Return the row of a secret, or raise an InputError that names a near match."""
        if secret not in self._rows:
            raise InputError(
                f"there is no secret {secret!r}{did_you_mean(secret, self.secrets)}; "
                f"the secrets are {listed(self.secrets)}"
            )
        return self._rows[secret]

    def marginal(self, column: str | None) -> "Prior":
        """Return the prior of one column, summed over all others; None: of the only one."""
        at = self.product.position(column)
        shape = self.product.shape
        if len(shape) == 1:
            return self
        others = tuple(k + 1 for k in range(len(shape)) if k != at)
        return replace(
            self,
            product=Product((self.product.columns[at],), (self.product.axes[at],)),
            counts=sealed(self.counts.reshape(-1, *shape).sum(axis=others)),
            rules=self.rules and replace(self.rules, columns=self.rules.columns[at : at + 1]),
            codings=self.codings[at : at + 1],
            strata=tuple(stratum.marginal(shape, at) for stratum in self.strata),
        )

    def with_region(
        self,
        *,
        confidence: Number | None = None,
        tv_radius: Number | None = None,
        region: Literal["box"] | None = None,
    ) -> "Prior":
        """Return the same prior, as one that is only known to lie in a region (theory, section 5).

        Parameters
        ----------
        confidence : number, optional
            Between 0 and 1: how sure it is that a plan holds for the distributions that the rows
            were drawn from; needs counts of rows.
        tv_radius : number, optional
            From 0 to 1: balls of this radius in total variation. With neither, the prior is
            taken as exact again.
        region : "box", optional
            With a confidence: plans hold for every prior within Clopper-Pearson intervals that hold
            together. Channels always do; for noise it costs more than the confidence alone.
        """
        if isinstance(self.rule, NoisyCounts):
            raise InputError("noisy counts have their confidence already (noisy_counts)")
        return replace(self, rule=region_rule(confidence, tv_radius, region))

    @classmethod
    def from_mapping(
        cls, secrets: Mapping[Any, Mapping[Any, Number]], *,
        order: Sequence[Any] | str | None = None, step: Number | None = None,
        tv_radius: Number | None = None,
    ) -> "Prior":  # fmt: skip
        """Read a prior from ``{secret: {value: probability}}``.

        Parameters
        ----------
        secrets : mapping
            For each secret a mapping from value to probability. Values that all parse as numbers
            are numbers, otherwise all are levels. Probabilities are numbers or strings holding a
            decimal or a fraction; floats are read as the decimal they print as.
        order : sequence of levels, "appearance" or "alphabetical", optional
            The order of the levels, least first, or how to find it ("appearance": as the values
            are written here); without it levels have no order.
        step : number, optional
            Step of the lattice; by default the largest number that divides 1 and every value.
        tv_radius : number, optional
            A region for the prior (:meth:`with_region`).

        Returns
        -------
        Prior
            Its ``notes`` say of rows whose sum is not exactly 1 that they were renormalised.
        """
        product, rows, notes = read_mapping(secrets, order, step)
        rule = region_rule(tv_radius=tv_radius)
        return cls.from_numerators(product, rows, notes=notes, rule=rule)

    @classmethod
    def from_counts(
        cls, counts: Mapping[Any, Sequence[Any] | npt.NDArray[Any]], *,
        support: Sequence[Any] | npt.NDArray[Any] | Mapping[str, Sequence[Any]],
        order: Sequence[Any] | str | Mapping[str, Any] | None = None,
        step: Number | Mapping[str, Number] | None = None, confidence: Number | None = None,
        tv_radius: Number | None = None,
    ) -> "Prior":  # fmt: skip
        """Read a prior from integer counts, one list or array per secret.

        Parameters
        ----------
        counts : mapping from secret to integers, shape (n,)
            How often each value occurs under the secret; not negative. For several columns nested
            lists or an array with an axis for each.
        support : sequence, shape (n,), or mapping from column to its values
            The values: numbers (in any order) or levels; those that no row has too (structural
            ones), which a region needs. For several columns a mapping, and so are ``order`` and
            ``step``.
        order, step : optional
            As in :meth:`from_mapping`.
        confidence, tv_radius : number, optional
            A region for the prior (:meth:`with_region`).
        """
        product, rows, _ = read_counts(counts, support, order, step)
        rule = region_rule(confidence, tv_radius)
        return cls.from_numerators(product, rows, from_rows=True, rule=rule)

    @classmethod
    def from_table(
        cls, table: str | Path | Any, *, secret: str, public: str | Sequence[str],
        order: Sequence[Any] | str | Mapping[str, Any] | None = None,
        levels: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        missing: Iterable[str] | Mapping[str, Iterable[str]] = (),
        exclude_secrets: Iterable[str] = (), step: Number | Mapping[str, Number] | None = None,
        support: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        missing_as_level: bool | Mapping[str, bool] = False, unit: str | None = None,
        decimal: str = ".", confidence: Number | None = None,
        tv_radius: Number | None = None,
    ) -> "Prior":  # fmt: skip
        """Learn a prior from a file or a dataframe: the counts of ``public`` for each ``secret``.

        Parameters
        ----------
        table : path or dataframe
            A CSV, TSV, Parquet or JSON file, or any dataframe that narwhals knows.
        secret : str
            The column that holds the secret.
        public : str, or sequence of str
            The column that is to be published; a list for several columns together. Then rows
            without a value in one of them are set aside, and ``order``, ``levels``, ``step`` and
            ``support`` are mappings ``{column: ...}``; so may be ``missing``, which is common to
            all columns otherwise, and ``missing_as_level``.
        order : sequence of levels, "appearance" or "alphabetical", optional
            The order of the levels, least first; without it levels have none, those of an ordered
            categorical column neither.
        levels : sequence of levels, optional
            Reads the column as levels (even where they look like numbers) and declares all that
            may occur, those that no row has too (structural ones), which a region needs.
        missing : iterable of str
            Texts that mean "missing", beside the empty cell.
        exclude_secrets : iterable of str
            Levels of the secret that are left out of the prior.
        step : number, optional
            Step of the lattice; values are rounded to it before they are counted.
        support : iterable of numbers, optional
            Declares all numbers that may occur, those that no row has too (structural ones).
        missing_as_level : bool
            Counts rows without a public value as the level "(missing)", instead of setting them
            aside: the last one, unless ``order`` names it elsewhere. For levels only.
        unit : str, optional
            The column whose equal values mark the rows of one person; without it each row is a
            person of its own. Without a region.
        decimal : "." or ","
            The decimal mark of the cells.
        confidence, tv_radius : number, optional
            A region for the prior (:meth:`with_region`).

        Returns
        -------
        Prior
            With ``report``: rows read, used and set aside, each with its reason.

        Notes
        -----
        Which rows have no public value may tell the secret (theory, section 7), whether they are
        left out or show as blanks. As a level of the prior they are under the promise.
        """
        rule = region_rule(confidence, tv_radius)
        rules = make_rules(
            secret=secret, public=public, order=order, levels=levels, missing=missing,
            exclude_secrets=exclude_secrets, step=step, support=support,
            missing_as_level=missing_as_level, unit=unit, decimal=decimal,
        )  # fmt: skip
        from pufferfish.tables.count import count_table  # slow to import, and only this needs it

        counts = count_table(table, rules)
        for warning in counts.report.warnings:
            warn_user(warning, PriorWarning)
        notes = counts.report.notes
        if rule is not None and any(column.support is None for column in rules.columns):
            notes += (
                "the region is over the values that occur in the table; declare all that may occur "
                "(--levels, or support=[...] for numbers)",
            )
        return replace(cls.from_counted(counts), rule=rule, notes=notes)

    @classmethod
    def from_counted(cls, counts: Any) -> "Prior":
        """Return the prior of the RowCounts of a table."""
        rows, report = dict(zip(counts.secrets, counts.counts, strict=True)), counts.report
        return cls.from_numerators(
            counts.product, rows, from_rows=True, notes=report.notes, rules=report.rules,
            codings=counts.codings, strata=counts.strata, report=report,
        )  # fmt: skip

    @classmethod
    def from_numerators(
        cls, product: Product, rows: Mapping[str, Any], **attributes: Any
    ) -> "Prior":
        """Return the prior of integers in the place of the atoms, a row for each secret."""
        exact = (row.tolist() if isinstance(row, np.ndarray) else row for row in rows.values())
        totals = tuple(map(sum, exact))  # of Python integers, of any size
        if 0 in totals:
            raise InputError(
                f"secret {tuple(rows)[totals.index(0)]!r} has no mass: its counts sum to 0"
            )
        kind = np.int64 if max(totals) < INT64_SAFE else object
        counts = sealed(np.array(list(rows.values()), dtype=kind))
        return cls(product, tuple(rows), counts, totals, **attributes)


def read_prior_file(
    path: str | Path, *, order: Sequence[Any] | str | None = None, step: Number | None = None
) -> tuple[Prior, list[tuple[str, str]] | None]:
    """Return the prior of ``{"secrets": {"a": {"0": ".52", ...}, ...}, "pairs": [["a", "b"]]}``.

    Numbers are read as the decimals that they print. The pairs are None where it names none.
    """
    data = read_strict(Path(path), "the prior file", exact=True)
    try:
        file = msgspec.convert(data, _PriorFile)
        prior = Prior.from_mapping(file.secrets, order=order, step=step)
    except msgspec.ValidationError as error:
        shape = '{"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {...}}, "pairs": [["a", "b"]]}'
        raise InputError(f"the prior file {path} is not like {shape}: {error}") from None
    except InputError as error:
        raise InputError(f"the prior file {path}: {error}") from None
    return prior, file.pairs and [(first.strip(), second.strip()) for first, second in file.pairs]


def sealed(counts: CountArray) -> CountArray:
    """Return an array that cannot be written to any more."""
    counts.setflags(write=False)
    return counts
