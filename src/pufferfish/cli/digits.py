# SPDX-License-Identifier: Apache-2.0
"""Printed digits: scales and losses rounded up, everything else to the nearest."""

import decimal
import math
from fractions import Fraction
from typing import TYPE_CHECKING

from pufferfish.rationals import show

if TYPE_CHECKING:
    from pufferfish.plan import Plan


def rounded_up(value: float, digits: int = 10) -> str:
    """Return a number with so many significant digits, none of them below the number itself.

    Parameters
    ----------
    value : float
        Not negative; may be infinite.
    digits : int
        Significant digits.
    """
    return _printed(value, digits, decimal.ROUND_CEILING)


def nearest(value: float, digits: int = 6) -> str:
    """Return a number with so many significant digits, to the nearest."""
    return _printed(value, digits, decimal.ROUND_HALF_EVEN)


def at_most(value: float, limit: Fraction, digits: int = 8) -> str:
    """Return a number rounded up, with as many digits more as keep it within a limit.

    A loss is rounded up like any other; where that would print it above epsilon although it is
    not, more digits are shown, or epsilon itself where a double's digits do not tell them apart.
    """
    for count in range(digits, 18):
        text = rounded_up(value, count)
        if not math.isfinite(value) or Fraction(value) > limit or Fraction(text) <= limit:
            return text
    return show(limit)


def shown_epsilon(plan: "Plan") -> str:
    """Return a plan's epsilon exactly, or as a double where that takes many digits."""
    exact = show(plan.epsilon_exact)
    return exact if len(exact) <= 20 else repr(plan.epsilon)


def per_cent(value: float | None) -> str:
    """Return a reduction in per cent with one decimal; a dash where it has no meaning."""
    return "-" if value is None else f"{value:.1f} %"


def _printed(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = decimal.Context(prec=digits, rounding=rounding).create_decimal_from_float(value)
    # Trailing zeros are digits too: 10 is printed as 10.00000000.
    wide = decimal.Context(prec=digits + 5)
    unit = decimal.Decimal((0, (1,), rounded.adjusted() - digits + 1))
    padded = rounded.quantize(unit, context=wide)
    if -5 <= padded.adjusted() < 16:
        return f"{padded:f}"
    return f"{padded:e}"
