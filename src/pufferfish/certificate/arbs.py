# SPDX-License-Identifier: Apache-2.0
"""Arb numbers: e^-t without underflow, doubles from balls.

A ball holds the true value for certain, at every precision.
"""

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

from pufferfish.precision import precision

#: Exponents t below 2**59 are left to FLINT; its own exp gives up somewhere beyond 2**64.
_LARGE = 59


def ball(value: Fraction) -> arb:
    """Return the ball around an exact number."""
    return arb(fmpq(value.numerator, value.denominator))


def exp_minus(t: Fraction) -> arb:
    """Return the ball around e^-t for t >= 0 of any size, at the full relative precision.

    Arb's exponents have no bound, but its exp only goes so far; beyond that
    e^-t = 2^-k e^(k ln 2 - t), with k an integer near t / ln 2.
    """
    size = max(0, t.numerator.bit_length() - t.denominator.bit_length() + 1)
    with precision(ctx.prec + size + 8):
        exact = ball(t)
        if size <= _LARGE:
            return (-exact).exp()
        # Any k near t / ln 2 does, since the rest is again a ball.
        k = (exact / arb.const_log2()).mid().floor().unique_fmpz()
        if k is None:  # pragma: no cover - the floor of an exact number is one integer
            return arb.nan()
        return arb((1, -k)) * (k * arb.const_log2() - exact).exp()


def float_above(value: arb) -> float:
    """Return a double that is not below any point of the ball, at most two steps above its end."""
    if not value.is_finite():
        return math.inf
    end = value.upper()
    nearest = float(end)
    while nearest < math.inf and not arb(nearest) >= end:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def float_below(value: arb) -> float:
    """Return a double that is not above any point of the ball; minus infinity where unbounded."""
    return -float_above(-value)


def log_bounds(ratio: arb) -> tuple[float, float]:
    """Return doubles below and above ln of a ball: the upper one ``inf`` where it is unbounded."""
    loss = ratio.log()
    return max(0.0, float_below(loss)), max(0.0, float_above(loss))
