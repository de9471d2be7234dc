# SPDX-License-Identifier: Apache-2.0
"""Printed digits: scales and losses rounded up, everything else to the nearest."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from pufferfish.digits import nearest, rounded_up
from pufferfish.rationals import show

if TYPE_CHECKING:
    from pufferfish.plan import Plan

__all__ = [
    "at_most",
    "nearest",
    "per_cent",
    "rounded_up",
    "share",
    "short",
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


def short(value: float) -> str:
    """Return a number to the nearest in few characters: 0.08621, 22.828, 1.2346e+10."""
    if math.isfinite(value) and abs(value) >= 1e7:
        return f"{value:.4e}"
    return nearest(value, 4 if abs(value) < 0.1 else 5)
