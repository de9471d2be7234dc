# SPDX-License-Identifier: Apache-2.0
"""Rules: how the cells of a table are cleaned and coded; the same in calibrate and in release."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.rationals import parse_number, show
from pufferfish.support import Order, read_order
from pufferfish.texts import text_of

DecimalMark = Literal[".", ","] | None

#: The name of the level that rows without a public value have, where missing is a level.
MISSING_LEVEL = "(missing)"


@dataclass(frozen=True)
class Rules:
    """How cells become secrets and public values.

    Attributes
    ----------
    secret, public : str
        Names of the two columns, trimmed; the secret may be None where rows are only released.
    order : tuple of str, "appearance", "alphabetical" or None
        The order of the levels, least first; None leaves levels unordered.
    levels : tuple of str or None
        With it the public column is read as levels, even where they look like numbers; these are
        all that may occur, and those that never do have count 0.
    missing : tuple of str
        Texts that mean "missing", compared after trimming; the empty cell always does.
    exclude_secrets : tuple of str
        Secrets that are left out of the prior.
    step : Fraction or None
        Step of the lattice that numbers are rounded to before they are counted; None: as they are.
    decimal : ".", "," or None
        The decimal mark of numbers that are text; None: a point, unless the whole column of a
        file with semicolons or tabs between its fields shows that it is a comma.
    support : tuple of Fraction or None
        All numbers that may occur, those that no row has (structural ones) too; None: those that
        do occur.
    missing_level : str or None
        The level of public cells that mean "missing" (always :data:`MISSING_LEVEL`), which makes
        missing a level of its own; None: rows with such a cell are set aside.
    unit : str or None
        The column whose equal values mark the rows of one person; None: every row is a person of
        its own.
    """

    secret: str | None
    public: str
    order: Order = None
    levels: tuple[str, ...] | None = None
    missing: tuple[str, ...] = ()
    exclude_secrets: tuple[str, ...] = ()
    step: Fraction | None = None
    decimal: DecimalMark = None
    support: tuple[Fraction, ...] | None = None
    missing_level: str | None = None
    unit: str | None = None

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Every trimmed text that means "missing": the empty one first, then ``missing``."""
        return ("", *self.missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as JSON values, for the plan file."""
        return {
            "secret": self.secret,
            "public": self.public,
            "order": list(self.order) if isinstance(self.order, tuple) else self.order,
            "levels": None if self.levels is None else list(self.levels),
            "missing": list(self.missing),
            "exclude_secrets": list(self.exclude_secrets),
            "step": None if self.step is None else show(self.step),
            "decimal": self.decimal,
            "support": None if self.support is None else [show(v) for v in self.support],
            "missing_level": self.missing_level,
            "unit": self.unit,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Rules":
        """Read back what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If a key is missing or unknown, or a value is not of the right kind.
        """
        known = [field.name for field in fields(cls)]
        if not isinstance(data, Mapping):
            raise InputError("the cleaning rules must be an object")
        unknown = [str(key) for key in data if key not in known]
        if unknown:
            raise InputError(
                f"the cleaning rules hold the unknown key {unknown[0]!r}"
                f"{did_you_mean(unknown[0], known)}"
            )
        lost = [name for name in known if name not in data]
        if lost:
            raise InputError(f"the cleaning rules lack the key {lost[0]!r}")
        given = dict(data)
        level = given.pop("missing_level")
        if level not in (None, MISSING_LEVEL):
            raise InputError(
                f"the missing level of the cleaning rules must be null or {MISSING_LEVEL!r}, but "
                f"it is {level!r}"
            )
        return make_rules(**given, missing_as_level=level is not None)


def make_rules(
    *,
    secret: str | None = None,
    public: str,
    order: Sequence[Any] | str | None = None,
    levels: Sequence[Any] | None = None,
    missing: Iterable[Any] | None = (),
    exclude_secrets: Iterable[Any] | None = (),
    step: Any = None,
    decimal: str | None = None,
    support: Iterable[Any] | None = None,
    missing_as_level: bool = False,
    unit: str | None = None,
) -> Rules:
    """Return checked rules; see :class:`Rules` for what each one means.

    With ``missing_as_level`` cells that mean "missing" are the level :data:`MISSING_LEVEL`: the
    last one, unless a stated order names it elsewhere. Levels need not name it.

    Raises
    ------
    InputError
        If a name is empty, two of the columns are the same one, an order or the levels name one
        level twice, they contradict each other, or the step is not above 0; if missing is to be a
        level, but numbers are meant or a stated order does not say where that level belongs.
    """
    secret_name = None if secret is None else _name(secret, "secret")
    public_name = _name(public, "public")
    if secret_name == public_name:
        raise InputError(
            f"the secret and the public column must differ, but both are {public_name!r}"
        )
    unit_name = None if unit is None else _name(unit, "unit")
    if unit_name is not None and unit_name in (secret_name, public_name):
        what = "secret" if unit_name == secret_name else "public"
        raise InputError(f"the unit and the {what} column must differ, but both are {unit_name!r}")
    checked_order = read_order(order)
    checked_levels = None if levels is None else _texts(levels, "levels", distinct=True)
    if checked_levels == ():
        raise InputError("levels needs at least one level, but none was given")
    absent = _texts(missing or (), "missing")
    if missing_as_level:
        checked_levels = _with_missing_level(checked_order, checked_levels)
    own = {MISSING_LEVEL} if missing_as_level else set()
    for what, stated in (("order", checked_order), ("levels", checked_levels)):
        named = stated if isinstance(stated, tuple) else ()
        for text in named:
            _check_utf8(text, what)
        clash = [text for text in named if text in ("", *absent) and text not in own]
        if clash:
            raise InputError(f"{what} names {clash[0]!r}, which means a missing value")
    if checked_levels is not None and isinstance(checked_order, tuple):
        _same_levels(checked_order, checked_levels)
    exact = None if step is None else parse_number(step, "the step")
    if exact is not None and exact <= 0:
        raise InputError(f"the step must be above 0, but {show(exact)} was given")
    if exact is not None and (checked_levels is not None or checked_order is not None):
        raise InputError("a step is for numbers, but an order or levels make the column levels")
    numbers = None if support is None else _numbers(support)
    if numbers is not None and (checked_levels is not None or checked_order is not None):
        raise InputError(
            "a support is for numbers, but an order or levels are for levels; declare levels "
            "that no row has with levels"
        )
    if missing_as_level and (exact is not None or numbers is not None):
        raise InputError(
            "missing as a level of its own is for levels, but a "
            f"{'support' if exact is None else 'step'} is for numbers"
        )
    if decimal not in (None, ".", ","):
        raise InputError(f"the decimal mark must be '.' or ',', but {decimal!r} was given")
    return Rules(
        secret_name,
        public_name,
        checked_order,
        checked_levels,
        tuple(t for t in absent if t),
        _texts(exclude_secrets or (), "exclude_secrets"),
        exact,
        decimal,  # type: ignore[arg-type]  # just checked
        numbers,
        MISSING_LEVEL if missing_as_level else None,
        unit_name,
    )


def _with_missing_level(order: Order, levels: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the stated levels with the one of missing values among them.

    Raises
    ------
    InputError
        If a stated order does not name that level: its place decides how far it is from others.
    """
    if isinstance(order, tuple) and MISSING_LEVEL not in order:
        raise InputError(
            f"the order {listed(order)} does not say where the level of missing values belongs; "
            f"name {MISSING_LEVEL!r} in it, for example as the last one (--order)"
        )
    return levels if levels is None or MISSING_LEVEL in levels else (*levels, MISSING_LEVEL)


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be the name of a column, but {value!r} was given")
    _check_utf8(value, what)
    return value.strip()


def _numbers(given: Iterable[Any]) -> tuple[Fraction, ...]:
    if isinstance(given, str):
        raise InputError(f"the support must be a list of numbers, but {given!r} was given")
    numbers = tuple(sorted({parse_number(value, "a value of the support") for value in given}))
    if not numbers:
        raise InputError("the support needs at least one number, but none was given")
    return numbers


def _check_utf8(text: str, what: str) -> None:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise InputError(f"{what} must be UTF-8 text, but {text!a} was given")


def _texts(given: Iterable[Any], what: str, distinct: bool = False) -> tuple[str, ...]:
    if not isinstance(given, Iterable):
        raise InputError(f"{what} must be a list of texts, but {given!r} was given")
    texts = [text_of(item) for item in ([given] if isinstance(given, str) else given)]
    twice = sorted(text for text, times in Counter(texts).items() if times > 1)
    if twice and distinct:
        raise InputError(f"{what} names {listed(twice)} more than once")
    for text in texts:
        _check_utf8(text, what)
    return tuple(dict.fromkeys(texts))


def _same_levels(order: tuple[str, ...], levels: tuple[str, ...]) -> None:
    for first, second, one, other in (
        (levels, order, "order", "levels"),
        (order, levels, "levels", "order"),
    ):
        lost = [name for name in first if name not in second]
        if lost:
            raise InputError(
                f"{one} misses {listed(lost)}, which {other} names"
                f"{did_you_mean(lost[0], [n for n in second if n not in first])}"
            )
