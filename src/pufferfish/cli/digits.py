# SPDX-License-Identifier: Apache-2.0
"""Printed digits, on the side that promises less: what is lost goes up, what is kept down."""

import decimal
import math
from fractions import Fraction
from typing import TYPE_CHECKING

from pufferfish.digits import nearest, rounded_up
from pufferfish.rationals import show

if TYPE_CHECKING:
    from pufferfish.plan import Plan

__all__ = [
    "at_most",
    "cut_off",
    "error_up",
    "exact_number",
    "nearest",
    "per_cent",
    "rounded_up",
    "share",
    "shown_epsilon",
    "shown_scale",
]


def at_most(value: float, limit: Fraction, digits: int = 8) -> str:
    """Return a number rounded up, with as many digits more as keep it within a limit.

    A loss is rounded up like any other; where that would print it above epsilon although it is
    not, epsilon itself is shown if it is short, as 1/3 is, and more digits otherwise. The double
    nearest to epsilon stands for epsilon.
    """
    exact = show(limit)
    within = math.isfinite(value) and (Fraction(value) <= limit or value == float(limit))
    for count in range(digits, 18):
        text = rounded_up(value, count)
        if not within or Fraction(text) <= limit:
            return text
        if len(exact) <= digits + 2:
            break
    return exact


def shown_scale(value: float) -> str:
    """Return a scale for people: to its last digit if these are few, else rounded up."""
    text = repr(value)
    return text if len(text) <= 11 and "e" not in text else rounded_up(value)


def shown_epsilon(plan: "Plan") -> str:
    """Return a plan's epsilon exactly, or as a double where that takes many digits."""
    exact = show(plan.epsilon_exact)
    return exact if len(exact) <= 20 else repr(plan.epsilon)


def per_cent(value: float | None) -> str:
    """Return a reduction in per cent with one decimal; a dash where it has no meaning."""
    return "-" if value is None else f"{value:.1f} %"


def share(value: float) -> str:
    """Return the share of values that stay as they are, in per cent with one decimal.

    Cut off, not rounded: values that change once in a while are never all kept.
    """
    if 0.999 <= value < 1:
        return "more than 99.9 %"
    return f"{math.floor(1000 * value + 1e-9) / 10:.1f} %"


def error_up(value: float) -> str:
    """Return a cost, an mse or a std, rounded up: 0.086211, 22.829, 1.2347e+10.

    One rule for all, so that a cost that is an mse prints like it.
    """
    if not 1e7 <= value < math.inf:
        return rounded_up(value, 5)
    up = decimal.Context(prec=5, rounding=decimal.ROUND_CEILING)
    return f"{up.create_decimal_from_float(value):.4e}"


def cut_off(value: float, digits: int = 3) -> str:
    """Return a number that promises something, with so many significant digits, cut off.

    What lies below a decimal of so few digits by less than 1e-9 of it is that decimal: a solver
    stops short of 0.01, and 0.00999 would be another number.
    """
    down = decimal.Context(prec=digits, rounding=decimal.ROUND_FLOOR)
    exact = decimal.Context(prec=800).create_decimal_from_float(value)
    shown = down.create_decimal(exact)
    above = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING).create_decimal(exact)
    if Fraction(above) * (1 - Fraction(1, 10**9)) <= Fraction(value):
        shown = above
    text = f"{shown:f}" if shown == 0 or shown.adjusted() >= -5 else f"{shown.normalize():e}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def exact_number(value: Fraction) -> int | float | str:
    """Return the JSON number that prints the exact value, or its text where none does."""
    if value.denominator == 1:
        return value.numerator
    nearest = value.numerator / value.denominator
    return nearest if Fraction(repr(nearest)) == value else show(value)
