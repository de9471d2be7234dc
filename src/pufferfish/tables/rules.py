# SPDX-License-Identifier: Apache-2.0
"""Rules: what a user declares of the columns of a table, and the coding of one public column."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
        support = self.support
        if self.decimal not in (".", ","):
            raise InputError(f"the decimal mark must be '.' or ',', but {self.decimal!r} was given")
        if self.rounds and not isinstance(support, Lattice):
            raise InputError("numbers are rounded to a step, but the support holds levels")
        if self.missing_as_level and MISSING_LEVEL not in getattr(support, "names", ()):
            raise InputError(
                f"missing values are to be the level {MISSING_LEVEL!r}, which the support lacks"
            )
        clash = next((text for text in self.missing if self._holds(text)), None)
        if clash is not None:
            raise InputError(
                f"{clash!r} cannot mean a missing value in column {self.column!r}: it is a value "
                "of the support"
            )

    def _holds(self, text: str) -> bool:
        support = self.support
        if not isinstance(support, Lattice):
            own = {MISSING_LEVEL} if self.missing_as_level else set()
            return text in {canonical(name) for name in support.names} - own
        for top, bottom in numbers_among([text], self.decimal):
            steps = Fraction(top, bottom) / support.step - support.origin
            if steps.denominator == 1 and 0 <= steps <= int(support.index[-1]):
                return bool(support.index[np.searchsorted(support.index, int(steps))] == int(steps))
        return False

    @cached_property
    def missing_numbers(self) -> frozenset[tuple[int, int]]:
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
    own = None if secret is None else _name(secret, "secret")
    person = None if unit is None else _name(unit, "unit")
    given = [public] if isinstance(public, str) else list(public)
    names = [_name(name, "public") for name in given]
    if not names:
        raise InputError("at least one public column is needed, but none was named")
    roles = [*((name, "public") for name in names), (own, "secret"), (person, "unit")]
    for k, (name, role) in enumerate(roles):
        other = next((r for n, r in roles[:k] if n == name and n is not None), None)
        if other is not None:
            raise InputError(f"the {other} and the {role} column must differ, but are {name!r}")
    if isinstance(missing, str) or not isinstance(missing, Mapping):
        absent = dict.fromkeys([*names, own], _texts(missing, "missing"))
    else:
        chosen = _per_column(missing, [*names, *([] if own is None else [own])], "missing")
        absent = {name: _texts(texts, "missing") for name, texts in chosen.items()}
    if isinstance(missing_as_level, Mapping):
        as_level = _per_column(missing_as_level, names, "missing_as_level")
    else:
        as_level = dict.fromkeys(names, missing_as_level)
    options = {
        what: _per_column(value, names, what)
        for what, value in (
            ("order", order),
            ("levels", levels),
            ("step", step),
            ("support", support),
        )
    }
    columns = [
        _column(
            name,
            absent.get(name, ()),
            bool(as_level.get(name)),
            {what: chosen[name] for what, chosen in options.items() if name in chosen},
        )
        for name in names
    ]
    excluded = _texts(exclude_secrets, "exclude_secrets")
    mark: DecimalMark = "," if decimal == "," else "."
    return Rules(own, tuple(columns), excluded, mark, person, absent.get(own, ()))


def _per_column(given: Any, columns: Sequence[str], what: str) -> dict[str, Any]:
    """Return an option by column; for a single column the option alone will do."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(columns) > 1:
            raise InputError(f"{what} of several columns must be a mapping {{column: {what}}}")
        return {columns[0]: given}
    named = {_name(column, what): value for column, value in given.items()}
    if len(named) < len(given):
        raise InputError(f"{what} is given twice for one column")
    for column in named:
        if column not in columns:
            raise InputError(
                f"{what} names the column {column!r}{did_you_mean(column, columns)}, but the "
                f"columns are {listed(columns)}"
            )
    return {column: value for column, value in named.items() if value is not None}


def _column(
    name: str, missing: tuple[str, ...], as_level: bool, options: Mapping[str, Any]
) -> Column:
    """Return the checked declaration of one column."""
    order = read_order(options.get("order"))
    if isinstance(order, tuple):
        order = _texts(order, "order", distinct=True)
    levels = None
    if "levels" in options:
        levels = _texts(options["levels"], "levels", distinct=True)
        if not levels:
            raise InputError("levels needs at least one level, but none was given")
    if as_level and isinstance(order, tuple) and MISSING_LEVEL not in order:
        raise InputError(
            f"the order {listed(order)} does not say where the level of missing values belongs; "
            f"name {MISSING_LEVEL!r} in it, for example as the last one (--order)"
        )
    if as_level and levels is not None and MISSING_LEVEL not in levels:
        levels = (*levels, MISSING_LEVEL)
    own = {MISSING_LEVEL} if as_level else set()
    for what, stated in (("order", order), ("levels", levels)):
        for text in stated if isinstance(stated, tuple) else ():
            if text in {"", *missing} - own:
                raise InputError(f"{what} names {text!r}, which means a missing value")
    if isinstance(order, tuple) and levels is not None:
        for lacks, has, one, other in (
            (order, levels, "order", "levels"),
            (levels, order, "levels", "order"),
        ):
            lost = [text for text in has if text not in lacks]
            if lost:
                near = did_you_mean(lost[0], [text for text in lacks if text not in has])
                raise InputError(f"{one} misses {listed(lost)}, which {other} names{near}")
    step = parse_number(options["step"], "the step") if "step" in options else None
    if step is not None and step <= 0:
        raise InputError(f"the step must be above 0, but {show(step)} was given")
    support = _lattice(options["support"], step) if "support" in options else None
    what = "a step" if step is not None else "a support"
    if (step is not None or support is not None) and (order is not None or levels is not None):
        raise InputError(f"{what} is for numbers, but an order or levels make the column levels")
    if (step is not None or support is not None) and as_level:
        raise InputError(f"missing as a level of its own is for levels, but {what} is for numbers")
    return Column(name, order, levels, missing, step, support, as_level)


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be the name of a column, but {value!r} was given")
    return unicodedata.normalize("NFC", _utf8(value, what).strip())


def _lattice(given: Any, step: Fraction | None) -> Lattice:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"the support must be a list of numbers, but {given!r} was given")
    numbers = {parse_number(value, "a value of the support") for value in given}
    if not numbers:
        raise InputError("the support needs at least one number, but none was given")
    return make_lattice(sorted(numbers), step)


def _utf8(text: str, what: str) -> str:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise InputError(f"{what} must be UTF-8 text, but {text!a} was given")
    return text


def _texts(given: Any, what: str, distinct: bool = False) -> tuple[str, ...]:
    """Return canonical texts; those that are one text are so once, or refused."""
    given = () if given is None else given
    if not isinstance(given, Iterable):
        raise InputError(f"{what} must be a list of texts, but {given!r} was given")
    items = [given] if isinstance(given, str) else list(given)
    texts = [canonical(_utf8(text_of(item), what)) for item in items]
    twice = sorted(text for text, times in Counter(texts).items() if times > 1)
    if twice and distinct:
        raise InputError(f"{what} names {listed(twice)} more than once")
    return tuple(dict.fromkeys(text for text in texts if text or distinct))


def numbers_among(texts: Iterable[str], decimal: str) -> frozenset[tuple[int, int]]:
    """Return the numbers that canonical texts print, also with the decimal mark in use."""
    forms = (f for t in texts for f in (t, t.replace(",", ".", 1) if decimal == "," else t))
    return frozenset(value for value in map(parse, forms) if isinstance(value, tuple))
