# SPDX-License-Identifier: Apache-2.0
"""Prior: P(X | S = s) of one adversary for every secret s, exact."""

from __future__ import annotations
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
import numpy as np
import numpy.typing as npt
from pufferfish.numbers import INT64_SAFE
from pufferfish.numbers import CountArray as CountArray
from pufferfish.numbers import FloatArray as FloatArray
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.priors.given import rows_of_joint_counts
from pufferfish.priors.given import rows_of_counts, rows_of_mapping
from pufferfish.support import AnySupport, Product

if TYPE_CHECKING:
    from pufferfish.priors.ambiguity import Region
    from pufferfish.tables.report import TableReport
    from pufferfish.unitcounts import Units


_NO_REGION_OF_UNITS = (
    "a region (confidence or tv_radius) is not supported together with a unit: what the rows of "
    "one person reveal is computed for the joint prior as it is"
)


@dataclass(frozen=True, eq=False)
class Prior:
    """P(X = x | S = s) = ``counts[s, x] / totals[s]`` for every secret s and atom x.

    Make one with :meth:`from_mapping`, :meth:`from_counts` or :meth:`from_table`.

    Attributes
    ----------
    support : Lattice, Levels or Product
        Where X can lie; n atoms. For several columns together X is their combination.
    secrets : tuple of str
        The names of the m secrets.
    counts : integer array, shape (m, n)
        Exact numerators; int64, or Python integers where they may not fit.
    totals : tuple of int
        The sum of each row of ``counts``.
    from_rows : bool
        Whether ``counts`` are numbers of rows of a table (and not numerators of probabilities).
    notes : tuple of str
        What was done to the input (renormalised, read as fractions), to be shown to the user.
    report : TableReport or None
        For a prior from a table: rows read, used and set aside, and the cleaning rules (a
        JointReport for several columns).
    region : Confidence, TVBall or None
        How far the true distributions may be from this prior; None: it is exact.
    units : Units or None
        Which rows are one person's, where that was counted (``unit``).
    """

    support: AnySupport
    secrets: tuple[str, ...]
    counts: CountArray
    totals: tuple[int, ...]
    from_rows: bool = False
    notes: tuple[str, ...] = ()
    report: TableReport | None = field(default=None, repr=False)
    region: Region | None = None
    units: Units | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.region is not None and self.units is not None:
            raise InputError(_NO_REGION_OF_UNITS)
        if self.region is not None and isinstance(self.support, Product):
            raise InputError(
                "a region (confidence or tv_radius) is not supported for several columns together: "
                "what they reveal is computed for the joint prior as it is"
            )

    @cached_property
    def probabilities(self) -> FloatArray:
        """P(X | S) as doubles, shape (m, n), each correctly rounded or within one ulp."""
        rows = [
            row.astype(np.float64) / float(total)
            if row.dtype != object
            else np.array([_ratio(int(c), total) for c in row], dtype=np.float64)
            for row, total in zip(self.counts, self.totals, strict=True)
        ]
        return np.ascontiguousarray(np.vstack(rows))

    def probability(self, secret: str, k: int) -> Fraction:
        """Return P(X = atom k | S = secret), exactly."""
        row = self.row(secret)
        return Fraction(int(self.counts[row, k]), self.totals[row])

    def row(self, secret: str) -> int:
        """Return the row of a secret.

        Raises
        ------
        InputError
            If there is no such secret.
        """
        try:
            return self.secrets.index(secret)
        except ValueError:
            raise InputError(
                f"there is no secret {secret!r}{did_you_mean(secret, self.secrets)}; "
                f"the secrets are {listed(self.secrets)}"
            ) from None

    def marginal(self, column: str) -> Prior:
        """Return the prior of one of several columns, summed over all others.

        Raises
        ------
        InputError
            If the prior is on one column only, or has no such column.
        """
        support = self.support
        if not isinstance(support, Product):
            raise InputError("only a prior on several columns together has a marginal")
        at = support.position(column)
        others = tuple(k for k in range(len(support.axes)) if k != at)
        rows = [row.reshape(support.shape).sum(axis=others) for row in self.counts]
        of_column = getattr(self.report, "of_column", None)
        own = Prior.from_numerators(
            support.axes[at],
            self.secrets,
            rows,
            from_rows=self.from_rows,
            notes=self.notes,
            report=None if of_column is None else of_column(at),
        )
        units = None if self.units is None else self.units.of_column(support.shape, at)
        return own if units is None else replace(own, units=units)

    def with_region(self, *, confidence: Any = None, tv_radius: Any = None) -> Prior:
        """Return the same prior, as one that is only known to lie in a region.

        Parameters
        ----------
        confidence : number, optional
            Between 0 and 1: Clopper-Pearson intervals that hold together with this confidence;
            needs counts of rows.
        tv_radius : number, optional
            From 0 to 1: balls of this radius in total variation. With neither, the prior is
            taken as exact again.

        Raises
        ------
        InputError
            If both are given, one is out of range, or confidence is asked for without counts.

        Notes
        -----
        Theory, section 5.
        """
        from pufferfish.priors.ambiguity import Confidence, region_rule

        region = region_rule(confidence, tv_radius)
        if isinstance(region, Confidence) and not self.from_rows:
            raise InputError(
                "confidence needs counts of rows (Prior.from_counts or Prior.from_table), but the "
                "prior was given as probabilities; give tv_radius instead"
            )
        return replace(self, region=region)

    @classmethod
    def from_mapping(
        cls,
        secrets: Mapping[Any, Mapping[Any, Any]],
        *,
        order: Sequence[Any] | str | None = None,
        step: Any = None,
        tv_radius: Any = None,
    ) -> Prior:
        """Read a prior from ``{secret: {value: probability}}``.

        Parameters
        ----------
        secrets : mapping
            For each secret a mapping from value to probability. Values that all parse as numbers
            are numbers, otherwise all are levels. Probabilities are numbers or strings holding a
            decimal or a fraction; floats are read as the decimal they print as.
        order : sequence of levels, "appearance" or "alphabetical", optional
            The order of the levels, least first, or how to find it ("appearance": as the keys
            come); without it levels have no order.
        step : number, optional
            Step of the lattice; by default the largest number that divides 1 and every value.
        tv_radius : number, optional
            How wrong each distribution may be, in total variation: a region (theory, section 5).

        Raises
        ------
        InputError
            If a row does not sum to 1 (within 1e-6), has a negative entry, or is no mapping.
        """
        rows = rows_of_mapping(secrets, order, step)
        prior = cls.from_numerators(rows.support, rows.secrets, rows.numerators, notes=rows.notes)
        return prior if tv_radius is None else prior.with_region(tv_radius=tv_radius)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[Any, Sequence[Any] | npt.NDArray[Any]],
        *,
        support: Sequence[Any] | npt.NDArray[Any] | Mapping[str, Sequence[Any]],
        order: Sequence[Any] | str | Mapping[str, Any] | None = None,
        step: Any = None,
        confidence: Any = None,
        tv_radius: Any = None,
    ) -> Prior:
        """Read a prior from integer counts, one list or array per secret.

        Parameters
        ----------
        counts : mapping from secret to integers, shape (n,)
            How often each value occurs under the secret; not negative.
        support : sequence, shape (n,)
            The values: numbers (in any order) or levels; those that no row has too (structural
            ones), which a region needs.
        order : sequence of levels, "appearance" or "alphabetical", optional
            The order of the levels, least first, or how to find it ("appearance": as the support
            names them).
        step : number, optional
            Step of the lattice; by default the largest number that divides 1 and every value.
        confidence, tv_radius : number, optional
            A region for the prior (:meth:`with_region`).

        Raises
        ------
        InputError
            If lengths differ, a count is negative or no integer, a value is given twice, or a
            secret has no rows.
        """
        if isinstance(support, Mapping):
            joint = rows_of_joint_counts(counts, support, order, step)
            prior = cls.from_numerators(*joint, from_rows=True)
        elif isinstance(order, Mapping):
            raise InputError("an order by column needs a support by column, {column: values}")
        else:
            rows = rows_of_counts(counts, support, order, step)
            prior = cls.from_numerators(rows.support, rows.secrets, rows.numerators, from_rows=True)
        return prior.with_region(confidence=confidence, tv_radius=tv_radius)

    @classmethod
    def from_table(
        cls,
        table: str | Path | Any,
        *,
        secret: str,
        public: str | Sequence[str],
        order: Sequence[Any] | str | Mapping[str, Any] | None = None,
        levels: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        missing: Iterable[str] | Mapping[str, Iterable[str]] = (),
        exclude_secrets: Iterable[str] = (),
        step: Any = None,
        support: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        missing_as_level: bool | Mapping[str, bool] = False,
        unit: str | None = None,
        confidence: Any = None,
        tv_radius: Any = None,
    ) -> Prior:
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
            The order of the levels, least first; by default that of an ordered categorical
            column, if the column is one.
        levels : sequence of levels, optional
            Reads the column as levels (even where they look like numbers) and declares all that
            may occur, those that no row has too (structural ones), which a region needs.
        missing : iterable of str
            Texts that mean "missing", beside the empty cell.
        exclude_secrets : iterable of str
            Levels of the secret that are left out of the prior.
        step : number, optional
            Step of the lattice; values are rounded to it before counting.
        support : iterable of numbers, optional
            Declares all numbers that may occur, those that no row has too (structural ones).
        missing_as_level : bool
            Counts rows without a public value as the level "(missing)", instead of setting them
            aside: the last one, unless ``order`` names it elsewhere. For levels only.
        unit : str, optional
            The column whose equal values mark the rows of one person; without it each row is a
            person of its own. Without a region.
        confidence, tv_radius : number, optional
            A region for the prior (:meth:`with_region`).

        Returns
        -------
        Prior
            With ``report``: rows read, used and set aside, each with its reason.

        Raises
        ------
        InputError
            If the file or a column cannot be read, or a secret has no usable row; if a row has a
            public value but no unit, or a unit has several secrets.

        Notes
        -----
        Which rows have no public value may tell the secret (theory, section 7), whether they are
        left out or show as blanks. As a level of the prior they are under the promise.
        """
        from pufferfish.priors.ambiguity import region_rule

        # The one edge back to the tables, which make priors; only this call needs them.
        from pufferfish.tables import count_joint_table, count_table, make_joint_rules, make_rules

        region = region_rule(confidence, tv_radius)
        if unit is not None and region is not None:
            raise InputError(_NO_REGION_OF_UNITS)
        options: dict[str, Any] = {
            "order": order,
            "levels": levels,
            "missing": missing,
            "exclude_secrets": exclude_secrets,
            "step": step,
            "support": support,
            "missing_as_level": missing_as_level,
        }
        if isinstance(public, str) or not isinstance(public, Iterable):
            by_column = [name for name, option in options.items() if isinstance(option, Mapping)]
            if by_column:
                raise InputError(
                    f"{by_column[0]} by column is for several columns, public=[...], but public is "
                    f"{public!r}"
                )
            rules = make_rules(secret=secret, public=public, unit=unit, **options)
            prior = count_table(table, rules)
        else:
            joint = make_joint_rules(secret=secret, public=public, unit=unit, **options)
            prior = count_joint_table(table, joint)
        return replace(prior, region=region)

    @classmethod
    def from_numerators(
        cls,
        support: AnySupport,
        secrets: tuple[str, ...],
        rows: Sequence[Sequence[int] | npt.NDArray[Any]],
        *,
        from_rows: bool = False,
        notes: tuple[str, ...] = (),
        report: TableReport | None = None,
        region: Region | None = None,
    ) -> Prior:
        """Build the exact arrays from one row of numerators per secret, already in place.

        Parameters
        ----------
        support : Lattice, Levels or Product
            The n atoms.
        secrets : tuple of str
            The m secrets.
        rows : sequence of integers, shape (m, n)
            The numerator of every atom; they become Python integers where 64 bits may not do.
        from_rows, notes, report
            See the attributes.

        Raises
        ------
        InputError
            If the numerators of a secret sum to 0.
        """
        totals = []
        for name, row in zip(secrets, rows, strict=True):
            total = _exact_sum(row)
            if total == 0:
                raise InputError(f"secret {name!r} has no mass: its counts sum to 0")
            totals.append(total)
        small = max(totals) < INT64_SAFE
        array: CountArray = np.array(
            [np.asarray(row, dtype=np.int64 if small else object) for row in rows],
            dtype=np.int64 if small else object,
        )
        array.setflags(write=False)
        return cls(support, secrets, array, tuple(totals), from_rows, notes, report, region)


def _ratio(numerator: int, denominator: int) -> float:
    return numerator / denominator


def _exact_sum(row: Sequence[int] | npt.NDArray[Any]) -> int:
    if isinstance(row, np.ndarray) and row.dtype != object:
        if row.size and int(row.max()) >= INT64_SAFE // max(1, row.size):
            return sum(row.tolist())
        return int(row.sum())
    return sum(int(c) for c in row)
