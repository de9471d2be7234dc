# SPDX-License-Identifier: Apache-2.0
"""Account: the arithmetic of a budget; what is spent and what is allowed are compared exactly.

A budget is a fraction, and so is every bound: a rational bound (the worst case of releases of one
column, for example) as it is, a floating-point one as the very number that the double is. Nothing
is rounded until it is shown, and then upwards: ten times 1/10 fit in 1, and nothing beside them.
(Only a denominator of more than 900 digits is cut short, upwards too, by less than 2**-1100.)
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.errors import InputError
from pufferfish.rationals import Number, float_up, parse_number, show

#: The text of a bound that is no number.
INFINITE = "inf"
#: Longer denominators (sums of many releases have them) are rounded up to this fraction of 1.
_LONGEST_BITS = 3000
_FINEST = 2**1100


@dataclass(frozen=True)
class Bound:
    """An upper bound of the joint loss of a whole set of releases.

    Attributes
    ----------
    value : Fraction or None
        The bound itself, exactly; None for an infinite one.
    how : str
        How it is known: "exact", "worst case", ...
    """

    value: Fraction | None
    how: str

    def __float__(self) -> float:
        """Return the smallest double that is not below the bound."""
        return math.inf if self.value is None else float_up(self.value)

    @property
    def text(self) -> str:
        """The bound as text, without anything rounded: :func:`read_bound` gives it back."""
        return INFINITE if self.value is None else show(self.value)

    def fits(self, budget: Fraction) -> bool:
        """Whether the bound is at most the budget; equality fits."""
        return self.value is not None and self.value <= budget


def bound_of(value: float | Fraction, how: str) -> Bound:
    """Return a computed number as a bound, exactly as it is: a double is not read as a decimal.

    Parameters
    ----------
    value : float, int or Fraction
        At least 0; infinity is a bound too.
    how : str
        How it is known.

    Raises
    ------
    ValueError
        If it is negative or not a number, as no loss is: something went wrong before.
    """
    if not value >= 0:
        raise ValueError(f"a bound of a loss is at least 0, but {value} was found")
    return Bound(None if value == math.inf else _shortened(Fraction(value)), how)


def read_bound(text: str, how: str) -> Bound:
    """Return the bound that :attr:`Bound.text` wrote.

    Raises
    ------
    InputError
        If it is no number, or negative.
    """
    if text == INFINITE:
        return Bound(None, how)
    value = _exact(text, "a bound")
    if value < 0:
        raise InputError(f"a bound must be at least 0, but {text} was given")
    return Bound(value, how)


def parse_budget(value: Number) -> Fraction:
    """Return a budget exactly.

    Parameters
    ----------
    value : int, float, str, Decimal or Fraction
        A decimal or a fraction such as "1/3"; a float is read as the decimal that it prints as.

    Raises
    ------
    InputError
        If it is not a finite number above 0.
    """
    budget = parse_number(value, "a budget")
    if budget <= 0:
        raise InputError(f"a budget must be above 0, but {show(budget)} was given")
    if budget.denominator.bit_length() > _LONGEST_BITS:
        raise InputError("a budget must be a shorter fraction (of less than 900 digits)")
    return budget


def budget_text(budget: Fraction) -> str:
    """Return a budget as text, without anything rounded: :func:`read_budget` gives it back."""
    return show(budget)


def read_budget(text: str) -> Fraction:
    """Return the budget that :func:`budget_text` wrote.

    Raises
    ------
    InputError
        If it is no number above 0.
    """
    budget = _exact(text, "a budget")
    if budget <= 0:
        raise InputError(f"a budget must be above 0, but {text} was given")
    return budget


def total(bounds: Iterable[Bound], how: str = "sum") -> Bound:
    """Return the exact sum of bounds; infinite as soon as one of them is.

    It bounds the joint loss only where the terms may be added: those of the worst case, whatever
    the correlation ("theory, section 6"). Exact losses may not.
    """
    values = [bound.value for bound in bounds]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Bound(None, how)
    return Bound(_shortened(sum(known, Fraction(0))), how)


def least(bounds: Iterable[Bound]) -> Bound:
    """Return the least of several bounds of one and the same set of releases.

    The first one where several are equal: put that first which says most.

    Raises
    ------
    ValueError
        If there is none.
    """
    return min(bounds, key=lambda bound: (bound.value is None, bound.value or 0))


def remaining(budget: Fraction, spent: Bound) -> Fraction:
    """Return what is left of a budget, 0 where nothing is.

    It says how far the joint loss may rise, and not what a further release may cost by itself:
    losses do not add.
    """
    return Fraction(0) if spent.value is None else max(Fraction(0), budget - spent.value)


def _shortened(value: Fraction) -> Fraction:
    """Return a number that can be written down: itself, or one hardly above it."""
    if value.denominator.bit_length() <= _LONGEST_BITS:
        return value
    return Fraction(math.ceil(value * _FINEST), _FINEST)


def _exact(text: str, what: str) -> Fraction:
    """Return the number of a text written here: of any length, for nothing was rounded."""
    numerator, slash, denominator = text.partition("/")
    try:
        if slash:
            return Fraction(int(numerator), int(denominator))
        whole, _, places = numerator.partition(".")
        return Fraction(int(whole + places), 10 ** len(places))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{what} must be a number, but {text[:40]!r} was found") from None
