# SPDX-License-Identifier: Apache-2.0
"""Numbers of 50 digits whose exponentials never underflow, and the root of a rising function."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mpmath import MPContext  # type: ignore[import-untyped]  # mpmath has no types

# A context of our own: no test can change its precision by accident.
M = MPContext()
M.dps = 50

Real = Any  # a number of 50 digits, possibly M.inf

# Width of the final bracket of a root, relative to the root.
WIDTH = M.mpf(10) ** -26
# A loss that should equal epsilon may exceed it by rounding in the last of the 50 digits.
ROUNDING = M.mpf(10) ** -45


def real(number: Any) -> Real:
    """Convert an exact fraction (or anything mpmath reads) to 50 digits."""
    if isinstance(number, Fraction):
        return M.mpf(number.numerator) / number.denominator
    return M.mpf(number)


def rising_root(f: Callable[[Real], Real], low: Real, high: Real) -> Real:
    """The root of a rising function in [low, high], from the side where f <= 0.

    The bracket is kept at every step: steps of the Illinois method, with a halving every sixth
    time, until the bracket is 1e-26 wide, relative to the root.
    """
    at_low, at_high = f(low), f(high)
    if abs(at_low) <= ROUNDING:
        return low
    if at_low > 0 or at_high < 0:
        raise ValueError(f"no root between {low} and {high}: {at_low}, {at_high}")
    turn, moved = 0, ""
    while high - low > WIDTH * high:
        turn += 1
        middle = (low + high) / 2
        if turn % 6:
            secant = low - at_low * (high - low) / (at_high - at_low)
            middle = secant if low < secant < high else middle
        at_middle = f(middle)
        if at_middle == 0:
            return middle
        # An end that stays twice counts half: the next step then overshoots, and both ends move.
        if at_middle < 0:
            low, at_low = middle, at_middle
            at_high = at_high / 2 if moved == "low" else at_high
            moved = "low"
        else:
            high, at_high = middle, at_middle
            at_low = at_low / 2 if moved == "high" else at_low
            moved = "high"
    return low
