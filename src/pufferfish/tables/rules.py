# SPDX-License-Identifier: Apache-2.0
"""Rules: what a user declares of the columns of a table, their coding, and what was found."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from pufferfish.errors import InputError, PufferfishError, did_you_mean, listed
from pufferfish.numbers import (
    INT64_SAFE,
    IntArray,
    canonical,
    checked_flag,
    parse_cell,
    parse_number,
    show,
    text_of,
)
from pufferfish.support import (
    MISSING_LEVEL,
    Lattice,
    Levels,
    Order,
    Support,
    make_lattice,
    make_levels,
    read_order,
)


@dataclass(frozen=True)
class Column:
    """What is declared of one public column."""

    name: str  # trimmed and in NFC
    support: Support | None = None  # exactly the values that may occur; None: those that do
    missing: tuple[str, ...] = ()  # canonical texts that mean "missing", besides the empty cell
    step: Fraction | None = None  # numbers are rounded to it before they are counted
    order: Order = None  # "appearance", "alphabetical" or None, for levels that are not declared
    missing_as_level: bool = False  # whether missing cells are a level of their own


@dataclass(frozen=True)
class Rules:
    """How the rows of a table become secrets and public values.

    Attributes
    ----------
    secret : str or None
        The column of the secret.
    columns : tuple of Column
        The public columns, in the order of the axes.
    exclude_secrets : tuple of str
        Secrets that are left out of the counts.
    decimal : "." or ","
        The decimal mark of numbers in text cells.
    unit : str or None
        The column whose equal values mark the rows of one person.
    missing : tuple of str
        Canonical texts that mean "missing" in the secret column, besides the empty cell.
    """

    secret: str | None
    columns: tuple[Column, ...]
    exclude_secrets: tuple[str, ...] = ()
    decimal: str = "."
    unit: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Coding:
    """Everything that counting, releasing and verifying need to code a cell of one column."""

    column: str
    support: Support  # step, order and levels are said here, and nowhere else
    missing: tuple[str, ...] = ()  # canonical texts that mean "missing", besides the empty cell
    rounds: bool = False  # whether numbers are rounded to the step of the support
    decimal: str = "."  # the mark of numbers in text cells, a point or a comma
    missing_as_level: bool = False  # whether missing cells are the level MISSING_LEVEL

    def __post_init__(self) -> None:
        support, names = self.support, getattr(self.support, "names", ())
        own = {MISSING_LEVEL} if checked_flag(self.missing_as_level, "missing_as_level") else set()
        if self.decimal not in (".", ","):
            raise InputError(f"the decimal mark must be '.' or ',', but {self.decimal!r} was given")
        if self.rounds and not isinstance(support, Lattice):
            raise InputError("numbers are rounded to a step, but the support holds levels")
        if not own <= set(names):
            raise InputError(
                f"missing values are to be the level {MISSING_LEVEL!r} of column {self.column!r}, "
                "which its levels (--order, --levels) do not name"
            )
        clash = sorted((set(map(canonical, names)) - own).intersection(self.missing))
        if isinstance(support, Lattice):
            for value in (Fraction(*n) for n in numbers_among(self.missing, self.decimal)):
                steps = value / support.step - support.origin
                if steps.denominator == 1 and steps.numerator in support.index:
                    clash.append(show(value))
        if clash:
            raise InputError(
                f"{clash[0]!r} cannot mean a missing value in column {self.column!r}: it is a "
                "value of the support"
            )

    @property
    def reading(self) -> tuple[frozenset[str], Fraction | None, str, bool]:
        """What decides which cells have which values, beside which values there are."""
        step = self.support.step if self.rounds and isinstance(self.support, Lattice) else None
        return frozenset(self.missing), step, self.decimal, self.missing_as_level

    def declared(self) -> Column:
        """Return the declaration under which counting yields exactly this support."""
        _, step, _, as_level = self.reading
        return Column(self.column, self.support, self.missing, step, None, as_level)


def numbers_among(texts: Iterable[str], decimal: str) -> frozenset[tuple[int, int]]:
    """Return the numbers that canonical texts print, also with the decimal mark in use."""
    parsed = {parse_cell(text, mark) for text in texts for mark in (".", decimal)}
    return frozenset(number for number in parsed if isinstance(number, tuple))


def make_rules(
    *, secret: str | None, public: str | Sequence[str], order: Any = None, levels: Any = None,
    missing: Any = (), exclude_secrets: Iterable[Any] | None = (), step: Any = None,
    support: Any = None, missing_as_level: bool | Mapping[str, bool] = False,
    unit: str | None = None, decimal: str = ".",
) -> Rules:  # fmt: skip
    """Return checked rules; options of several columns are mappings ``{column: option}``.

    ``missing`` (texts) and ``missing_as_level`` may also be given for all columns, the former for
    the secret too.
    """
    several = isinstance(public, Iterable) and not isinstance(public, str)
    names = [column_name(name, "public") for name in (public if several else [public])]
    secret = None if secret is None else column_name(secret, "secret")
    unit = None if unit is None else column_name(unit, "unit")
    known = [*names, *([] if secret is None else [secret])]
    every = [*known, *([] if unit is None else [unit])]
    if not names or len(set(every)) < len(every):
        raise InputError(
            f"the public, secret and unit columns must be named and differ: {listed(every)}"
        )
    if not isinstance(missing, Mapping):
        missing = dict.fromkeys(known, _texts(missing, "missing"))
    if not isinstance(missing_as_level, Mapping):
        missing_as_level = dict.fromkeys(names, missing_as_level)
    gone = by_column(missing, known, "missing")
    options = {"order": order, "levels": levels, "step": step, "support": support,
               "as_level": missing_as_level}  # fmt: skip
    given = {what: by_column(value, names, what) for what, value in options.items()}
    columns = (
        _column(name, gone.get(name), **{what: own.get(name) for what, own in given.items()})
        for name in names
    )
    excluded, absent = _texts(exclude_secrets, "exclude_secrets"), gone.get(secret or "")
    return Rules(secret, tuple(columns), excluded, decimal, unit, _texts(absent, "missing"))


def by_column(given: Any, columns: Sequence[str], what: str) -> dict[str, Any]:
    """Return an option by column; for a single column the option alone will do."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(columns) > 1:
            raise InputError(f"{what} of several columns must be a mapping {{column: {what}}}")
        return {columns[0]: given}
    named = {column_name(column, what): value for column, value in given.items()}
    for column in named:
        if column not in columns:
            raise InputError(
                f"{what} names the column {column!r}{did_you_mean(column, columns)}, but the "
                f"columns are {listed(columns)}"
            )
    return named


def _column(
    name: str, missing: Any, *, order: Any, levels: Any, step: Any, support: Any, as_level: Any
) -> Column:
    missing = _texts(missing, "missing")
    as_level = as_level is not None and checked_flag(as_level, "missing_as_level")
    order, last = read_order(order), (MISSING_LEVEL,) if as_level else ()
    stated = None
    if isinstance(order, tuple):
        stated, order = make_levels(_texts(levels, "levels"), _texts(order, "order")), None
    elif levels is not None:
        used = set(_texts(levels, "levels")).difference(last)
        stated = Levels((*sorted(used), *last), ordered=order is not None)
    if step is not None and (step := parse_number(step, "the step")) <= 0:
        raise InputError(f"the step must be above 0, but {show(step)} was given")
    if support is None:
        return Column(name, stated, missing, step, order, as_level)
    if isinstance(support, str) or not isinstance(support, Iterable):
        raise InputError(f"the support must be a list of numbers, but {support!r} was given")
    if stated is not None:
        raise InputError("a support is for numbers, but order or levels make the column levels")
    # Integers of a moderate size stay what they are: of these there may be many.
    what = "a value of the support"
    values = [
        v if type(v) is int and abs(v) < INT64_SAFE else parse_number(v, what) for v in support
    ]
    return Column(name, make_lattice(values, step), missing, step, order, as_level)


def column_name(value: object, what: str) -> str:
    """Return the name of a column, trimmed and in NFC."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be the name of a column, but {value!a} was given")
    return unicodedata.normalize("NFC", value.strip())


def _texts(given: Any, what: str) -> tuple[str, ...]:
    """Return canonical texts, without the empty one."""
    if not isinstance(given, Iterable | None):
        raise InputError(f"{what} must be a list of texts, but {given!r} was given")
    items = [given] if isinstance(given, str) else () if given is None else given
    return tuple(filter(None, (canonical(text_of(item)) for item in items)))


#: Why rows are set aside: no value in a public column, no secret, or an excluded secret.
Reason = Literal["no public value", "no secret", "secret excluded"]


@dataclass(frozen=True, eq=False)
class Stratum:
    """The people who have one number of usable rows."""

    rows: int
    sequences: IntArray  # shape (q, rows): distinct sequences of atoms, in the order of rows
    counts: IntArray  # shape (m, q): how many people of each secret have each sequence

    def marginal(self, shape: tuple[int, ...], at: int) -> "Stratum":
        """Return the people on one axis, sequences that are the same there counted together."""
        # Flat: NumPy 2.4 is wrong for more than 8,192 lines of one number.
        atoms = np.unravel_index(self.sequences.ravel(), shape)[at]
        distinct, where = np.unique(atoms.reshape(-1, self.rows), axis=0, return_inverse=True)
        counts = np.zeros((len(self.counts), len(distinct)), dtype=np.int64)
        np.add.at(counts.T, where.reshape(-1), self.counts.T)
        return Stratum(self.rows, distinct.astype(np.int64), counts)


@dataclass(frozen=True)
class SetAside:
    """Rows that are not in the counts, under their first reason."""

    reason: Reason
    name: str  # the public column, the secret column, or the excluded secret
    rows: int


@dataclass(frozen=True)
class MissingText:
    """A text that means "missing" ("" is the empty cell), and how many cells are it."""

    text: str
    cells: int


@dataclass(frozen=True)
class TableReport:
    """Where the rows of a table went: ``rows_read = rows_used + rows set aside``, always.

    Attributes
    ----------
    source : str
        The file, or the kind of dataframe.
    rules : Rules
        What was declared.
    rows_read, rows_used : int
    set_aside : tuple of SetAside
    secrets : tuple of (secret, rows)
        Rows used of every secret.
    missing : tuple of MissingText
        Every text that means "missing", the empty cell first.
    rows_missing : tuple of int
        Rows of the whole table that have no atom in each public column.
    people : tuple of (rows, people), or None
        How many people have so many usable rows; None where every row is one person's.
    notes, warnings : tuple of str
        One sentence each; :meth:`pufferfish.Prior.from_table` gives each warning, too.
    """

    source: str
    rules: Rules
    rows_read: int
    rows_used: int
    set_aside: tuple[SetAside, ...]
    secrets: tuple[tuple[str, int], ...]
    missing: tuple[MissingText, ...]
    rows_missing: tuple[int, ...]
    people: tuple[tuple[int, int], ...] | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rows_read != self.rows_used + self.rows_set_aside:
            raise PufferfishError(
                f"rows were lost in {self.source}: {self.rows_read} read, {self.rows_used} used, "
                f"{self.rows_set_aside} set aside; please report this"
            )

    @property
    def rows_set_aside(self) -> int:
        """Rows that are not in the counts."""
        return sum(aside.rows for aside in self.set_aside)
