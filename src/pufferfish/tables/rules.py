# SPDX-License-Identifier: Apache-2.0
"""Rules: how the cells of a table are cleaned and coded; the same in calibrate and in release."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.rationals import parse_number, show

Order = tuple[str, ...] | Literal["appearance", "alphabetical"] | None
Decimal = Literal[".", ","] | None

#: The two orders that are named instead of listed.
NAMED_ORDERS = ("appearance", "alphabetical")


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
    """

    secret: str | None
    public: str
    order: Order = None
    levels: tuple[str, ...] | None = None
    missing: tuple[str, ...] = ()
    exclude_secrets: tuple[str, ...] = ()
    step: Fraction | None = None
    decimal: Decimal = None
    support: tuple[Fraction, ...] | None = None

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
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Rules":
        """Read back what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If a key is missing or unknown, or a value is not of the right kind.
        """
        if not isinstance(data, Mapping):
            raise InputError("the cleaning rules must be an object")
        known = (
            "secret", "public", "order", "levels", "missing", "exclude_secrets", "step",
            "decimal", "support",
        )  # fmt: skip
        if "public" not in data:
            raise InputError("the cleaning rules lack the key 'public'")
        for key in data:
            if key not in known:
                raise InputError(
                    f"the cleaning rules hold the unknown key {key!r}"
                    f"{did_you_mean(str(key), known)}"
                )
        return make_rules(**{str(key): value for key, value in data.items()})


def make_rules(
    *,
    secret: str | None = None,
    public: str,
    order: Sequence[str] | str | None = None,
    levels: Sequence[str] | None = None,
    missing: Iterable[str] | None = (),
    exclude_secrets: Iterable[str] | None = (),
    step: Any = None,
    decimal: str | None = None,
    support: Iterable[Any] | None = None,
) -> Rules:
    """Return checked rules; see :class:`Rules` for what each one means.

    Raises
    ------
    InputError
        If a name is empty, the two columns are the same one, an order or the levels name one
        level twice, they contradict each other, or the step is not above 0.
    """
    secret_name = None if secret is None else _name(secret, "secret")
    public_name = _name(public, "public")
    if secret_name == public_name:
        raise InputError(
            f"the secret and the public column must differ, but both are {public_name!r}"
        )
    checked_order = _order(order)
    checked_levels = None if levels is None else _texts(levels, "levels", distinct=True)
    if checked_levels == ():
        raise InputError("levels needs at least one level, but none was given")
    absent = _texts(missing or (), "missing")
    for what, stated in (("order", checked_order), ("levels", checked_levels)):
        named = stated if isinstance(stated, tuple) else ()
        clash = [text for text in named if text in ("", *absent)]
        if clash:
            raise InputError(f"{what} names {clash[0]!r}, which means a missing value")
    if checked_levels is not None and isinstance(checked_order, tuple):
        _same_levels(checked_order, checked_levels)
    exact = None if step is None else parse_number(step, "the step")
    if exact is not None and exact <= 0:
        raise InputError(f"the step must be above 0, but {show(exact)} was given")
    if exact is not None and (checked_levels is not None or checked_order is not None):
        raise InputError("a step is for numbers, but an order or levels are for categories")
    numbers = None if support is None else _numbers(support)
    if numbers is not None and (checked_levels is not None or checked_order is not None):
        raise InputError(
            "a support is for numbers, but an order or levels are for categories; declare levels "
            "that no row has with levels"
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
    )


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} must be the name of a column, but {value!r} was given")
    return value.strip()


def _numbers(given: Iterable[Any]) -> tuple[Fraction, ...]:
    if isinstance(given, str):
        raise InputError(f"the support must be a list of numbers, but {given!r} was given")
    numbers = tuple(sorted({parse_number(value, "a value of the support") for value in given}))
    if not numbers:
        raise InputError("the support needs at least one number, but none was given")
    return numbers


def _texts(given: Iterable[Any], what: str, distinct: bool = False) -> tuple[str, ...]:
    items = [given] if isinstance(given, str) else list(given)
    texts = [text_of_scalar(item).strip() for item in items]
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice and distinct:
        raise InputError(f"{what} names {listed(twice)} more than once")
    return tuple(dict.fromkeys(texts))


def text_of_scalar(value: object) -> str:
    """Return the text of a level as a cell of that value has it: 1.0 is '1', True is 'true'."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    text = str(value)
    return text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdigit() else text


def _order(order: Sequence[str] | str | None) -> Order:
    if order is None:
        return None
    if isinstance(order, str):
        if order.strip().lower() == "appearance":
            return "appearance"
        if order.strip().lower() == "alphabetical":
            return "alphabetical"
        items: list[Any] = [part.strip() for part in order.split(",")]
        if len(items) == 1:
            raise InputError(
                "order must be a list of levels, 'appearance' or 'alphabetical', but "
                f"{order!r} was given{did_you_mean(order, NAMED_ORDERS)}"
            )
    else:
        items = list(order)
        if not items:
            raise InputError("order needs at least one level, but none was given")
    return _texts(items, "order", distinct=True)


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
