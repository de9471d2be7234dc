# SPDX-License-Identifier: Apache-2.0
"""The loss in ball arithmetic: exact integer masses, and balls for everything that is rounded.

Along an axis with noise A_k = P_k + r_k A_{k-1} from left to right, B_k = r_{k+1} (P_{k+1} +
B_{k+1}) from right to left and L = A + B, r_k the ball around e^-(gap / theta_eff). All terms are
positive, so nothing cancels, and Arb's exponents have no bound, so nothing underflows at any
distance. The upper end of the largest ratio's ball is a proven upper bound, at every precision. No
comparison is made on midpoints: Python's ``<`` between balls is true only if it holds for all their
points; where balls overlap, results are widened to hold both.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate, product
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from pufferfish.loss.kernel import Axis, Problem, Where
from pufferfish.loss.support_function import Extreme, extremes, still_extremes
from pufferfish.numbers import precision
from pufferfish.priors.ambiguity import Point, Region

#: An array of balls, and the largest of each two.
Balls = Any
_MAX: Any = np.frompyfunc(arb.max, 2, 1)

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


def enclose(problem: Problem, bits: int) -> tuple[arb | None, Where]:
    """Enclose the largest ratio of a problem, at least 1 (None: infinite), and where it is.

    The latter is by midpoints. Each adversary by itself: only finished ratios are compared. A
    secret is not compared with itself, for its own region may hold two very different
    distributions.
    """
    with precision(bits):
        passes = _passes(problem)
        where, largest, middle = Where(0, problem.pairs[0], 0), arb(1), arb(1)
        for rho, beliefs in enumerate(problem.adversaries):
            tops, lows = zip(*(_ends(problem, passes, own) for own in beliefs), strict=True)
            highs = _highest(problem, tops)
            for cell, j in product(range(problem.cells), range(len(lows))):
                high, low = highs[j][cell], lows[j][cell]
                if high.is_zero():
                    continue
                ratio = None if low.is_zero() else high / low
                if ratio is not None and ratio < largest:
                    continue
                i = max(problem.rivals[j], key=lambda k: tops[k][cell].mid())
                if ratio is None or not ratio.is_finite():
                    # Where a ball reaches 0, nothing is known at this precision.
                    return ratio, Where(cell, (i, j), rho)
                largest = ratio.max(largest)
                if ratio.mid() > middle:
                    middle, where = ratio.mid(), Where(cell, (i, j), rho)
        return largest, where


def log_ratio(problem: Problem, bits: int, rho: int, pair: tuple[int, int], cell: int) -> arb:
    """Return the logarithm of the ratio of two secrets at one output."""
    with precision(bits):
        passes, sets = _passes(problem), problem.adversaries[rho]
        (top, _), (_, bottom) = (_ends(problem, passes, sets[k]) for k in pair)
        ratio: arb = top[cell] / bottom[cell]
        return ratio.log()


def _highest(problem: Problem, tops: Sequence[Balls]) -> list[Balls]:
    """Return for every secret balls around the largest tops of its rivals."""
    if problem.all_pairs:
        # The largest before and the largest after each secret: linear in the secrets.
        before: list[Balls] = list(accumulate(tops, _MAX))
        after: list[Balls] = list(accumulate(tops[::-1], _MAX))[::-1]
        return [after[1], *map(_MAX, before[:-2], after[2:]), before[-2]]
    return [reduce(_MAX, [tops[i] for i in own]) for own in problem.rivals]


def _passes(problem: Problem) -> list[tuple[int, "_Pass"]]:
    return [(at, _Pass(axis)) for at, axis in problem.noises]


def _ends(
    problem: Problem, passes: Sequence[tuple[int, "_Pass"]], belief: Point | Region
) -> tuple[Balls, Balls]:
    """Return the largest and the smallest likelihood of every output, flat on the grid."""
    if isinstance(belief, Point):
        values = _balls(belief.masses) * (1 / arb(belief.total))
        for at, noise in passes:
            values = np.moveaxis(noise.passed(np.moveaxis(values, at, 0)), 0, at)
        return (values.reshape(-1),) * 2
    axis = problem.axes[0]
    if passes:
        top, bottom = (passes[0][1].extreme(own) for own in extremes(belief, axis.places))
        return top, bottom
    unit = 1 / arb(belief.unit * axis.unit)
    top, bottom = (_balls(side) * unit for side in still_extremes(belief, axis.columns))
    return top, bottom


def _balls(numbers: Any) -> Balls:
    return np.frompyfunc(arb, 1, 1)(np.asarray(numbers, dtype=object))


class _Pass:
    """Laplace noise along one axis, the first one of arrays of balls."""

    def __init__(self, axis: Axis) -> None:
        self.rate, self.places = axis.rate, axis.places.tolist()
        self.known: dict[int, arb] = {}
        self.factors = [self.decay(gap) for gap in np.diff(axis.places).tolist()]

    def decay(self, steps: int) -> arb:
        """Return e^-(steps * rate); each is worked out once."""
        value = self.known.get(steps)
        if value is None:
            value = self.known[steps] = exp_minus(steps * self.rate)
        return value

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
