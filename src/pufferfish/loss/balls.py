# SPDX-License-Identifier: Apache-2.0
"""The loss in ball arithmetic: exact integer masses, and balls for everything that is rounded.

Along an axis with noise A_k = P_k + r_k A_{k-1} from left to right, B_k = r_{k+1} (P_{k+1} +
B_{k+1}) from right to left and L = A + B, r_k the ball around e^-(gap / theta_eff). All terms are
positive, so nothing cancels, and Arb's exponents have no bound, so nothing underflows at any
distance. The upper end of the largest ratio's ball is a proven upper bound, at every precision. No
comparison is made on midpoints: Python's ``<`` between balls is true only if it holds for all their
points; where balls overlap, results are widened to hold both.
"""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from pufferfish.loss.kernel import Axis
from pufferfish.loss.problem import Problem, Where
from pufferfish.loss.support_function import Extreme, extremes, still_extremes
from pufferfish.numbers import precision
from pufferfish.priors.ambiguity import Region

#: An array of balls; the largest and the smallest of each two.
Balls = Any
_MAX: Any = np.frompyfunc(arb.max, 2, 1)
_MIN: Any = np.frompyfunc(arb.min, 2, 1)

#: Exponents t below 2**59 are left to FLINT; its own exp gives up somewhere beyond 2**64.
_LARGE = 59


def exp_minus(t: Fraction) -> arb:
    """Return the ball around e^-t for t >= 0 of any size, at the full relative precision.

    Arb's exponents have no bound, but its exp only goes so far; beyond that
    e^-t = 2^-k e^(k ln 2 - t), with k an integer near t / ln 2.
    """
    size = max(0, t.numerator.bit_length() - t.denominator.bit_length() + 1)
    with precision(ctx.prec + size + 8):
        exact = arb(fmpq(t.numerator, t.denominator))
        if size <= _LARGE:
            return (-exact).exp()
        # Any k near t / ln 2 does, since the rest is again a ball.
        k = int((exact / arb.const_log2()).mid().floor().unique_fmpz() or 0)
        return arb((1, -k)) * (k * arb.const_log2() - exact).exp()


def log_ends(ratio: arb) -> tuple[Fraction, Fraction | None]:
    """Return exact numbers below and above ln of a ball, at least 0; None where it is unbounded."""
    log = ratio.log()
    if not log.is_finite():
        return Fraction(0), None
    ends = []
    for end in (log.lower(), log.upper()):
        man, exponent = end.mid().man_exp()
        ends.append(max(Fraction(0), Fraction(int(man)) * Fraction(2) ** int(exponent)))
    return ends[0], ends[1]


def enclose(problem: Problem, bits: int) -> tuple[arb, Where]:
    """Enclose the largest ratio of a problem, at least 1, and return where it is by midpoints.

    The loss must not be infinite. Where a ball reaches 0 nothing is known at this precision: the
    ratio is not finite.
    """
    with precision(bits):
        tops, bottoms = extreme_likelihoods(problem)
        largest, middle, where = arb(1), arb(1), Where(0, *problem.pairs[0])
        for firsts, seconds in problem.comparisons:
            highs, lows = _MAX.reduce(tops[firsts]), _MIN.reduce(bottoms[seconds])
            best = None
            for cell, (high, low) in enumerate(zip(highs, lows, strict=True)):
                if high.is_zero():  # no secret has this output
                    continue
                ratio = high / low
                if ratio < largest:
                    continue
                largest = ratio.max(largest)
                if ratio.mid() > middle:
                    middle, best = ratio.mid(), cell
            if best is not None:
                first, second = np.argmax(tops[firsts, best]), np.argmin(bottoms[seconds, best])
                where = Where(best, firsts[first], seconds[second])
        return largest, where


def log_ratio(problem: Problem, bits: int, where: Where) -> arb:
    """Return the logarithm of the ratio of two secrets at one output."""
    with precision(bits):
        tops, bottoms = extreme_likelihoods(problem)
        ratio: arb = tops[where.first, where.cell] / bottoms[where.second, where.cell]
        return ratio.log()


def extreme_likelihoods(problem: Problem) -> tuple[Balls, Balls]:
    """Return the largest and the smallest likelihood of every output, shape (secrets, cells)."""
    points = problem.points
    if points:
        values = np.stack([_balls(own.masses) * (1 / arb(own.total)) for own in points])
        for at, axis in problem.noises:
            lines = np.moveaxis(values, at + 1, 0)
            values = np.moveaxis(_Pass(axis).passed(lines), 0, at + 1)
        values = values.reshape(len(points), -1)
        return values, values
    [axis] = problem.axes
    regions = [own for own in problem.sets if isinstance(own, Region)]
    if axis.noisy:
        noise = _Pass(axis)
        ends = [[noise.extreme(own) for own in extremes(r, axis.places)] for r in regions]
    else:
        columns = list(axis.kinds.values())
        ends = [
            [_balls(side) / arb(r.unit * axis.unit) for side in still_extremes(r, columns)]
            for r in regions
        ]
    tops, bottoms = (np.array(side, dtype=object) for side in zip(*ends, strict=True))
    return tops, bottoms


def _balls(numbers: Any) -> Balls:
    return np.frompyfunc(arb, 1, 1)(np.asarray(numbers, dtype=object))


class _Pass:
    """Laplace noise along one axis, the first one of arrays of balls."""

    def __init__(self, axis: Axis) -> None:
        self.places = axis.places.tolist()
        # Each is worked out once.
        self.decay = cache(lambda steps: exp_minus(steps * axis.rate))
        self.factors = [self.decay(gap) for gap in np.diff(axis.places).tolist()]

    def sides(self, masses: Balls) -> tuple[Balls, Balls]:
        """Return the sums of mass * e^-distance to the left and to the right, each with y."""
        left, right = masses.copy(), masses.copy()
        for k, factor in enumerate(self.factors, 1):
            left[k] += left[k - 1] * factor
        for k, factor in zip(range(len(right) - 2, -1, -1), self.factors[::-1], strict=True):
            right[k] += right[k + 1] * factor
        return left, right

    def passed(self, masses: Balls) -> Balls:
        """Return the likelihoods at all atoms."""
        left, right = self.sides(masses)
        for k, factor in enumerate(self.factors):
            left[k] += right[k + 1] * factor
        return left

    def extreme(self, extreme: Extreme) -> Balls:
        """Return <P, k_y> at all outputs, for the extreme P of each."""
        region, places, row = extreme.region, self.places, []
        room = _balls(region.room)
        left, right = self.sides(room)
        least = self.passed(_balls(region.least))
        cuts = (extreme.first, extreme.last, extreme.shell, extreme.distance, extreme.target)
        each = zip(*(own.tolist() for own in cuts), strict=True)
        for y, (first, last, shell, distance, target) in enumerate(each):
            part = arb(0)
            if first > 0:
                part += left[first - 1] * self.decay(places[y] - places[first - 1])
            if last < len(places):
                part += right[last] * self.decay(places[last] - places[y])
            if extreme.largest:
                part = left[y] + right[y] - room[y] - part if first < last else arb(0)
            value = least[y] + part + shell * self.decay(distance)
            moved = region.free * self.decay(abs(places[y] - places[target]))
            row.append((value + moved) / region.unit)
        return row
