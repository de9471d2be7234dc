# SPDX-License-Identifier: Apache-2.0
"""Rules: what a user declares of the columns of a table, their coding, and what was found."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pufferfish.errors import InputError, PufferfishError, did_you_mean, listed
from pufferfish.numbers import IntArray, parse_number, show, text_of
from pufferfish.support import MISSING_LEVEL, Lattice, Order, Support, make_lattice, read_order
from pufferfish.tables.canonical import canonical, parse

DecimalMark = Literal[".", ","]


@dataclass(frozen=True)
class Column:
    """What is declared of one public column.

    Attributes
    ----------
    name : str
        The name of the column, trimmed and in NFC.
    order : tuple of str, "appearance", "alphabetical" or None
        The order of the levels, least first; None leaves levels unordered.
    levels : tuple of str or None
        All levels that may occur; None: those that do occur.
    missing : tuple of str
        Canonical texts that mean "missing", besides the empty cell.
    step : Fraction or None
        Step that numbers are rounded to before they are counted; None: as they are.
    support : Lattice, Levels or None
        Exactly the values that may occur, structural ones included.
    missing_as_level : bool
        Whether missing cells are a level of their own.
    """

    name: str
    order: Order = None
    levels: tuple[str, ...] | None = None
    missing: tuple[str, ...] = ()
    step: Fraction | None = None
    support: Support | None = None
    missing_as_level: bool = False


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
    decimal: DecimalMark = "."
    unit: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Coding:
    """Everything that counting, releasing and verifying need to code a cell of one column.

    Attributes
    ----------
    column : str
        The name of the public column.
    support : Lattice or Levels
        Step, order and levels are said here, and nowhere else.
    missing : tuple of str
        Canonical texts that mean "missing", besides the empty cell.
    rounds : bool
        Whether numbers are rounded to ``support.step``.
    decimal : "." or ","
        The decimal mark of numbers in text cells.
    missing_as_level : bool
        Whether missing cells are the level ``MISSING_LEVEL`` of the support.
    """

    column: str
    support: Support
    missing: tuple[str, ...] = ()
    rounds: bool = False
    decimal: DecimalMark = "."
    missing_as_level: bool = False

    def __post_init__(self) -> None:
        support, names = self.support, getattr(self.support, "names", ())
        own = {MISSING_LEVEL} if self.missing_as_level else set()
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
            values = (Fraction(*number) for number in self.missing_numbers)
            clash = [show(value) for value in values if holds(support, value)]
        if clash:
            raise InputError(
                f"{clash[0]!r} cannot mean a missing value in column {self.column!r}: it is a "
                "value of the support"
            )

    @cached_property
    def missing_numbers(self) -> frozenset[Any]:
        """The numbers among the texts that mean "missing", with either decimal mark in use."""
        return numbers_among(self.missing, self.decimal)

    def declared(self) -> Column:
        """Return the declaration under which counting yields exactly this support."""
        step = self.support.step if self.rounds and isinstance(self.support, Lattice) else None
        return Column(
            self.column, None, None, self.missing, step, self.support, self.missing_as_level
        )


def numbers_among(texts: Iterable[str], decimal: str) -> frozenset[Any]:
    """Return the numbers that canonical texts print, also with the decimal mark in use."""
    parsed = {parse(text, mark) for text in texts for mark in {".", decimal}}
    return frozenset(number for number in parsed if isinstance(number, tuple))


def holds(lattice: Lattice, value: Fraction) -> bool:
    """Return whether a value is an atom of a lattice."""
    steps = value / lattice.step - lattice.origin
    inside = steps.denominator == 1 and 0 <= steps <= int(lattice.index[-1])
    return inside and bool(np.isin(int(steps), lattice.index))


def make_rules(
    *,
    secret: str | None,
    public: str | Sequence[str],
    order: Any = None,
    levels: Any = None,
    missing: Any = (),
    exclude_secrets: Iterable[Any] | None = (),
    step: Any = None,
    support: Any = None,
    missing_as_level: bool | Mapping[str, bool] = False,
    unit: str | None = None,
    decimal: str = ".",
) -> Rules:
    """Return checked rules; options of several columns are mappings ``{column: option}``.

    ``missing`` (texts) and ``missing_as_level`` may also be given for all columns, the former for
    the secret too.
    """
    if decimal not in (".", ","):
        raise InputError(f"the decimal mark must be '.' or ',', but {decimal!r} was given")
    several = isinstance(public, Iterable) and not isinstance(public, str)
    names = [column_name(name, "public") for name in (public if several else [public])]
    own = None if secret is None else column_name(secret, "secret")
    person = None if unit is None else column_name(unit, "unit")
    every = [name for name in (*names, own, person) if name is not None]
    if not names or len(set(every)) < len(every):
        raise InputError(
            f"the public, secret and unit columns must be named and differ: {listed(every)}"
        )
    known = every if unit is None else every[:-1]
    if not isinstance(missing, Mapping):
        missing = dict.fromkeys(known, missing)
    if not isinstance(missing_as_level, Mapping):
        missing_as_level = dict.fromkeys(names, missing_as_level)
    gone = {k: _texts(v, "missing") for k, v in by_column(missing, known, "missing").items()}
    options = {
        "order": order, "levels": levels, "step": step, "support": support,
        "missing_as_level": missing_as_level,
    }  # fmt: skip
    given = {what: by_column(value, names, what) for what, value in options.items()}
    columns = tuple(
        _column(name, gone.get(name, ()), *(given[what].get(name) for what in options))
        for name in names
    )
    mark: DecimalMark = "," if decimal == "," else "."
    excluded = _texts(exclude_secrets, "exclude_secrets")
    return Rules(own, columns, excluded, mark, person, gone.get(own or "", ()))


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
    if len(named) < len(given):
        raise InputError(f"{what} is given twice for one column")
    return named


def _column(
    name: str,
    missing: tuple[str, ...],
    order: Any,
    levels: Any,
    step: Any,
    support: Any,
    as_level: Any,
) -> Column:
    """Return the checked declaration of one column."""
    order, own = read_order(order), (MISSING_LEVEL,) if as_level else ()
    if isinstance(order, tuple):
        order = _texts(order, "order", distinct=True)
    if levels is not None:
        levels = _texts(levels, "levels", distinct=True)
        levels = tuple(dict.fromkeys((*levels, *own)))
    stated = order if isinstance(order, tuple) else levels or own
    if not {*own, *(levels or stated)} == set(stated):
        raise InputError(
            f"order and levels differ: the order is {listed(stated)}, but the levels are "
            f"{listed(dict.fromkeys((*(levels or stated), *own)))}; name the same in both (--order)"
        )
    clash = [text for text in stated if text in {"", *missing}.difference(own)]
    if clash:
        raise InputError(f"{clash[0]!r} is a level, but means a missing value")
    if step is not None:
        step = parse_number(step, "the step")
    if support is not None:
        if isinstance(support, str) or not isinstance(support, Iterable):
            raise InputError(f"the support must be a list of numbers, but {support!r} was given")
        values = {parse_number(value, "a value of the support") for value in support}
        support = make_lattice(values, step)
    if (step is not None or support) and (order is not None or stated):
        raise InputError(
            "a step or support is for numbers, but an order, levels or missing as a level make "
            "the column levels"
        )
    if step is not None and step <= 0:
        raise InputError(f"the step must be above 0, but {show(step)} was given")
    return Column(name, order, levels, missing, step, support, bool(as_level))


def column_name(value: object, what: str) -> str:
    """Return the name of a column, trimmed and in NFC."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be the name of a column, but {value!a} was given")
    return unicodedata.normalize("NFC", _utf8(value, what).strip())


def _utf8(text: str, what: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InputError(f"{what} must be UTF-8 text, but {text!a} was given")
    return text


def _texts(given: Any, what: str, distinct: bool = False) -> tuple[str, ...]:
    """Return canonical texts, each once; with ``distinct`` they are levels, and none is twice."""
    if not isinstance(given, Iterable | None):
        raise InputError(f"{what} must be a list of texts, but {given!r} was given")
    items = [given] if isinstance(given, str) else list(given or ())
    texts = [canonical(_utf8(text_of(item), what)) for item in items]
    twice = sorted(text for text, times in Counter(texts).items() if times > 1)
    if distinct and (twice or not texts):
        raise InputError(
            f"{what} names {listed(twice) + ' more than once' if twice else 'no level'}"
        )
    return tuple(dict.fromkeys(text for text in texts if text or distinct))


# ---- what was found ------------------------------------------------------------------------------

#: Why rows are set aside: no value in a public column, no secret, or an excluded secret.
Reason = Literal["no public value", "no secret", "secret excluded"]


@dataclass(frozen=True, eq=False)
class Stratum:
    """The people who have one number of usable rows.

    Attributes
    ----------
    rows : int
        How many rows each of them has.
    sequences : int64 array, shape (q, rows)
        The distinct sequences of atoms of the product, in the order of rows.
    counts : int64 array, shape (m, q)
        How many people of each secret have each sequence.
    """

    rows: int
    sequences: IntArray
    counts: IntArray


@dataclass(frozen=True)
class SetAside:
    """Rows that are not in the counts, under their first reason."""

    reason: Reason
    name: str  # the public column, the secret column, or the excluded secret
    rows: int


@dataclass(frozen=True)
class MissingText:
    """A text that means "missing" ("" is the empty cell), and the rows in which it does."""

    text: str
    public_rows: int
    secret_rows: int


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
        Rows of the whole table without a value in each public column.
    missing_rows : int or None
        Rows used that have the level of missing values in a column; None where it is no level.
    people : tuple of (rows, people), or None
        How many people have so many usable rows; None where every row is one person's.
    notes, warnings : tuple of str
        One sentence each; each warning was also given as a PriorWarning.
    """

    source: str
    rules: Rules
    rows_read: int
    rows_used: int
    set_aside: tuple[SetAside, ...]
    secrets: tuple[tuple[str, int], ...]
    missing: tuple[MissingText, ...]
    rows_missing: tuple[int, ...]
    missing_rows: int | None = None
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
