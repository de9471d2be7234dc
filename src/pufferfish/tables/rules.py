# SPDX-License-Identifier: Apache-2.0
"""Rules: what a user declares of the columns of a table, and the coding of one public column."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.numbers import parse_number, show, text_of
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
                f"missing values are to be the level {MISSING_LEVEL!r}, which the support lacks"
            )
        clash = sorted((set(map(canonical, names)) - own).intersection(self.missing))
        if isinstance(support, Lattice):
            clash = [show(value) for value in self._missing_values(support)]
        if clash:
            raise InputError(
                f"{clash[0]!r} cannot mean a missing value in column {self.column!r}: it is a "
                "value of the support"
            )

    def _missing_values(self, support: Lattice) -> Iterator[Fraction]:
        """Yield the values of a support that are said to mean "missing"."""
        for top, bottom in self.missing_numbers:
            steps = Fraction(top, bottom) / support.step - support.origin
            if steps.denominator == 1 and 0 <= steps <= int(support.index[-1]):
                at = int(np.searchsorted(support.index, int(steps)))
                if support.index[at] == int(steps):
                    yield support.value(at)

    @cached_property
    def missing_numbers(self) -> frozenset[Any]:
        """The numbers among the texts that mean "missing", as :func:`parse` gives them."""
        return numbers_among(self.missing, self.decimal)

    def declared(self) -> Column:
        """Return the declaration under which counting yields exactly this support."""
        step = self.support.step if self.rounds and isinstance(self.support, Lattice) else None
        return Column(
            self.column,
            missing=self.missing,
            step=step,
            support=self.support,
            missing_as_level=self.missing_as_level,
        )


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
    names = [_name(name, "public") for name in ([public] if isinstance(public, str) else public)]
    own = None if secret is None else _name(secret, "secret")
    person = None if unit is None else _name(unit, "unit")
    every = [name for name in (*names, own, person) if name is not None]
    twice = [name for name, times in Counter(every).items() if times > 1]
    if twice or not names:
        raise InputError(
            f"the public, secret and unit columns must differ, but {twice[0]!r} is given twice"
            if twice
            else "at least one public column is needed, but none was named"
        )
    known = [*names, *([] if own is None else [own])]
    if not isinstance(missing, Mapping):
        missing = dict.fromkeys(known, missing)
    absent = {k: _texts(v, "missing") for k, v in _by_column(missing, known, "missing").items()}
    if not isinstance(missing_as_level, Mapping):
        missing_as_level = dict.fromkeys(names, missing_as_level)
    given = {"order": order, "levels": levels, "step": step, "support": support}
    options = {
        what: _by_column(value, names, what)
        for what, value in (given | {"missing_as_level": missing_as_level}).items()
    }
    columns = [
        _column(name, absent.get(name, ()), {k: v[name] for k, v in options.items() if name in v})
        for name in names
    ]
    excluded = _texts(exclude_secrets, "exclude_secrets")
    mark: DecimalMark = "," if decimal == "," else "."
    return Rules(own, tuple(columns), excluded, mark, person, absent.get(own or "", ()))


def _by_column(given: Any, columns: Sequence[str], what: str) -> dict[str, Any]:
    """Return an option by column; for a single column the option alone will do."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(columns) > 1:
            raise InputError(f"{what} of several columns must be a mapping {{column: {what}}}")
        return {columns[0]: given}
    named = {_name(column, what): value for column, value in given.items()}
    lost = [column for column in named if column not in columns]
    if lost or len(named) < len(given):
        raise InputError(
            f"{what} names the column {lost[0]!r}{did_you_mean(lost[0], columns)}, but the columns "
            f"are {listed(columns)}"
            if lost
            else f"{what} is given twice for one column"
        )
    return {column: value for column, value in named.items() if value is not None}


def _column(name: str, missing: tuple[str, ...], options: Mapping[str, Any]) -> Column:
    """Return the checked declaration of one column."""
    as_level = bool(options.get("missing_as_level"))
    order, levels = read_order(options.get("order")), None
    if isinstance(order, tuple):
        order = _texts(order, "order", distinct=True)
    if "levels" in options:
        levels = _texts(options["levels"], "levels", distinct=True)
        if as_level and MISSING_LEVEL not in levels:
            levels = (*levels, MISSING_LEVEL)
    if as_level and isinstance(order, tuple) and MISSING_LEVEL not in order:
        raise InputError(
            f"the order {listed(order)} does not say where the level of missing values belongs; "
            f"name {MISSING_LEVEL!r} in it, for example as the last one (--order)"
        )
    stated = order if isinstance(order, tuple) else levels or ()
    odd = set(stated).symmetric_difference(levels) if isinstance(order, tuple) and levels else None
    if odd:
        raise InputError(f"order and levels differ in {listed(sorted(odd))}; give one of them")
    gone = {"", *missing} - ({MISSING_LEVEL} if as_level else set())
    clash = [text for text in stated if text in gone]
    if clash:
        raise InputError(f"{clash[0]!r} is a level, but means a missing value")
    step = parse_number(options["step"], "the step") if "step" in options else None
    if step is not None and step <= 0:
        raise InputError(f"the step must be above 0, but {show(step)} was given")
    support = _lattice(options["support"], step) if "support" in options else None
    if (step or support) and (order is not None or levels is not None or as_level):
        raise InputError(
            f"a {'step' if step else 'support'} is for numbers, but an order, levels or missing "
            "as a level make the column levels"
        )
    return Column(name, order, levels, missing, step, support, as_level)


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be the name of a column, but {value!a} was given")
    return unicodedata.normalize("NFC", _utf8(value, what).strip())


def _lattice(given: Any, step: Fraction | None) -> Lattice:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"the support must be a list of numbers, but {given!r} was given")
    return make_lattice({parse_number(v, "a value of the support") for v in given}, step)


def _utf8(text: str, what: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InputError(f"{what} must be UTF-8 text, but {text!a} was given")
    return text


def _texts(given: Any, what: str, distinct: bool = False) -> tuple[str, ...]:
    """Return canonical texts; those that are one text are so once, or refused as levels."""
    if not isinstance(given, Iterable | None):
        raise InputError(f"{what} must be a list of texts, but {given!r} was given")
    items = [given] if isinstance(given, str) else list(given or ())
    texts = [canonical(_utf8(text_of(item), what)) for item in items]
    twice = sorted(text for text, times in Counter(texts).items() if times > 1)
    if distinct and (twice or not texts):
        raise InputError(
            f"{what} names {listed(twice)} more than once" if twice else f"{what} names no level"
        )
    return tuple(dict.fromkeys(text for text in texts if text or distinct))


def numbers_among(texts: Iterable[str], decimal: str) -> frozenset[Any]:
    """Return the numbers that canonical texts print, also with the decimal mark in use."""
    forms = (f for t in texts for f in (t, t.replace(",", ".", 1) if decimal == "," else t))
    return frozenset(value for value in map(parse, forms) if isinstance(value, tuple))
