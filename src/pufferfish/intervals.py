# SPDX-License-Identifier: Apache-2.0
"""Exact binomial intervals (Clopper-Pearson), their ends proved and rounded outwards.

The lower end is the p at which so many rows or more have a chance of alpha / 2. That chance is its
first term times a sum, a hypergeometric function, which is the continued fraction of Gauss:

    F(-b, 1; c + 1; -w) = 1 / (1 + e_1 / (1 + e_2 / (1 + ...))).

Each of its tails is again a ratio of two such functions with positive terms, and so bounded on both
sides: some dozen steps enclose the sum, whether there are a hundred rows or 10^12.
"""

import math
from fractions import Fraction
from functools import cache

from flint import arb

from pufferfish.precision import precision

#: The ends of intervals are whole multiples of 2**-GRID, rounded outwards.
GRID = 160
UNIT = 1 << GRID
#: Precision at which the ends are found and proved.
_BITS = 192
#: An end is within 2**-_NEAR of the true one, as seen from the nearer of 0 and 1.
_NEAR = 64
_MAX_STEPS = 100


def interval(count: int, total: int, alpha: Fraction) -> tuple[int, int]:
    """Return the equal-tailed Clopper-Pearson interval of a count, rounded outwards.

    Parameters
    ----------
    count, total : int
        How many of how many rows.
    alpha : Fraction
        The chance that the interval may miss, half of it on each side.

    Returns
    -------
    lower, upper : int
        In units of 2**-GRID; 0 for a count of 0, and 2**GRID (that is 1) for all rows.

    Notes
    -----
    Theory, section 5. The lower end is the p at which ``count`` rows or more have probability
    alpha / 2, the upper end the p at which ``count`` or fewer have; by symmetry the latter is
    1 minus the lower end of the other rows.
    """
    return lower_end(count, total, alpha / 2), UNIT - lower_end(total - count, total, alpha / 2)


@cache
def lower_end(count: int, total: int, tail: Fraction) -> int:
    """Return a grid point p with P(Binomial(total, p) >= count) <= tail, proved, near the largest.

    Parameters
    ----------
    count, total : int
    tail : Fraction
        Above 0, at most 1/2.

    Notes
    -----
    The slope of ln P(X >= count) in ln p is count P(X = count) / P(X >= count), which falls as p
    rises. So the function is concave, its tangent at any p lies above it, and Newton's step leads
    to the root or to its left: the lower end of the ball around where it leads is proved.
    """
    if count == 0:
        return 0
    with precision(_BITS + total.bit_length() + tail.denominator.bit_length()):
        log_tail = (arb(tail.numerator) / tail.denominator).log()
        choose = arb(total + 1).lgamma() - arb(count + 1).lgamma() - arb(total - count + 1).lgamma()
        p = min(max(int(_guess(count, total, tail) * 2**60) << (GRID - 60), 1), UNIT - 1)
        for _ in range(_MAX_STEPS):
            sums = tail_sum(count, total, p)
            log_p, log_q = (arb(p) / UNIT).log(), (arb(UNIT - p) / UNIT).log()
            log_chance = choose + count * log_p + (total - count) * log_q + sums.log()
            missing = log_tail - log_chance
            there = p * (missing * sums / count).exp()
            if abs(missing) < arb((1, -_NEAR // 2 - 2)):
                return max(0, _floor(there.lower()))
            p = min(max(_floor(there.mid()), 1), UNIT - 1)
    return 0  # pragma: no cover - Newton's steps converge; and 0 is always a lower end


def tail_sum(count: int, total: int, p: int) -> arb:
    """Return a ball around P(X >= count) / P(X = count) for X binomial, count > 0 above its mean.

    Parameters
    ----------
    count, total : int
    p : int
        In units of 2**-GRID, with p (total + 1) below count + 1.

    Notes
    -----
    With b = total - count and w the odds, e_{2m+1} = -(count + m)(b - m) w / ((count + 2m)
    (count + 2m + 1)) and e_{2m} = m (total + m) w / ((count + 2m - 1)(count + 2m)). The tail after
    2m of them is F(m - b, m + 1; count + 2m + 1; -w) / F(m - b, m; count + 2m; -w): the ratio of
    their j-th terms rises in j, from 1 towards (count + 2m) / m; and at m = b it is 1. As
    -1 < e_{2m+1} and the tails are positive, no denominator is.
    """
    rest = total - count
    odds = arb(p) / (UNIT - p)
    # Only the time depends on a good first guess of how many it takes.
    steps = min(8 + 2 * math.isqrt(min(count, rest)), 96)
    while True:
        m = min(steps, rest)
        ends = [arb(1)] if m == rest else [arb(1), arb(count + 2 * m) / m]
        for k in range(m - 1, -1, -1):
            at = count + 2 * k
            down = odds * ((count + k) * (rest - k)) / (at * (at + 1))
            up = odds * ((k + 1) * (total + k + 1)) / ((at + 1) * (at + 2))
            inner = [1 + up * end for end in ends]
            ends = [value / (value - down) for value in inner]
        found = ends[0].union(ends[-1])
        near = found.rad() < found.mid() * arb((1, -(_NEAR + 16)))
        if m == rest or near or not found.is_finite():
            return found
        steps += steps // 2


def _guess(count: int, total: int, tail: Fraction) -> float:
    """Return roughly the same end in doubles; only the time depends on how good it is."""
    log_tail = math.log(tail.numerator) - math.log(tail.denominator)
    # Below the root by P(X >= k) <= (total e p / k)^k; Newton from there, without balls.
    log_p = min(math.log(count / total) - 1 + log_tail / count, -1e-18)
    choose = math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)
    for _ in range(60):
        p = math.exp(log_p)
        if not 0 < p < 1:
            break
        sums = _rough_sum(count, total, p / (1 - p))
        chance = choose + count * log_p + (total - count) * math.log1p(-p) + math.log(sums)
        step = (log_tail - chance) * sums / count
        log_p = min(log_p + step, -1e-18)
        if abs(step) < 1e-12:
            break
    return math.exp(log_p)


def _rough_sum(count: int, total: int, odds: float) -> float:
    rest, tail = total - count, 1.0
    for k in range(min(40, rest) - 1, -1, -1):
        at = count + 2 * k
        down = odds * (count + k) * (rest - k) / at / (at + 1)
        up = 1 + odds * (k + 1) * (total + k + 1) / (at + 1) / (at + 2) * tail
        tail = up / max(up - down, 1e-9)
    return tail


def _floor(exact: arb) -> int:
    """Return the whole number at or below an exact number; 0 where there is none."""
    whole = exact.floor().unique_fmpz()
    return 0 if whole is None else int(whole)
