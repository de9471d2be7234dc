# SPDX-License-Identifier: Apache-2.0
"""The loss in ball arithmetic: exact integer masses, and balls for everything that is rounded.

Along an axis with noise A_k = P_k + r_k A_{k-1} from left to right, B_k = r_{k+1} (P_{k+1} +
B_{k+1}) from right to left and L = A + B, r_k the ball around e^-(gap / theta_eff). All terms are
positive, so nothing cancels, and Arb's exponents have no bound, so nothing underflows at any
distance. The upper end of the largest ratio's ball is a proven upper bound, at every precision. No
comparison is made on midpoints: Python's ``<`` between balls is true only if it holds for all their
points; where balls overlap, results are widened to hold both.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, arb_poly, arb_series, ctx, fmpq, fmpz_poly

from pufferfish.loss.kernel import Axis, Problem, Where
from pufferfish.loss.support_function import Extreme, extremes, still_extremes
from pufferfish.numbers import precision
from pufferfish.priors.ambiguity import Point, Region

Row = list[arb]

#: Exponents t below 2**59 are left to FLINT; its own exp gives up somewhere beyond 2**64.
_LARGE = 59
#: Evenly spaced supports go through FLINT's power series, their holes filled with zeros. A place
#: costs about half as much there as an atom in the plain recursion, hence at most this many.
_PLACES_PER_ATOM = 2


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
    with _at(problem, bits):
        lines = [(at, _Line(axis)) for at, axis in problem.noises]
        where, largest, middle = Where(0, problem.pairs[0], 0), arb(1), arb(1)
        for rho, beliefs in enumerate(problem.adversaries):
            ends = [_ends(problem, lines, own) for own in beliefs]
            cells = zip(
                zip(*(top for top, _ in ends), strict=True),
                zip(*(bottom for _, bottom in ends), strict=True),
                strict=True,
            )
            for cell, (tops, bottoms) in enumerate(cells):
                for high, i, j in _opponents(problem, tops):
                    low = bottoms[j]
                    if high.is_zero():
                        continue
                    if low.is_zero():
                        return None, Where(cell, (i, j), rho)
                    ratio = high / low
                    if ratio < largest:
                        continue
                    if not ratio.is_finite():
                        # A ball reaches 0: nothing is known at this precision.
                        return ratio, Where(cell, (i, j), rho)
                    largest = ratio.max(largest)
                    if ratio.mid() > middle:
                        middle, where = ratio.mid(), Where(cell, (i, j), rho)
        return largest, where


def log_ratio(problem: Problem, bits: int, rho: int, pair: tuple[int, int], cell: int) -> arb:
    """Return the logarithm of the ratio of two secrets at one output."""
    with _at(problem, bits):
        lines = [(at, _Line(axis)) for at, axis in problem.noises]
        sets = problem.adversaries[rho]
        (top, _), (_, bottom) = (_ends(problem, lines, sets[k]) for k in pair)
        return (top[cell] / bottom[cell]).log()


def _at(problem: Problem, bits: int) -> AbstractContextManager[None]:
    longest = max(len(axis.atoms) for axis in problem.axes)
    return precision(bits, terms=_PLACES_PER_ATOM * longest)


def _opponents(problem: Problem, tops: Sequence[arb]) -> Iterator[tuple[arb, int, int]]:
    """Yield for every secret j the largest top of those it is paired with, and whose that is."""
    if not problem.all_pairs:
        for i, j in problem.pairs:
            yield tops[i], i, j
            yield tops[j], j, i
        return
    # The largest before and the largest after each secret: linear in the secrets.
    after = [(tops[-1], len(tops) - 1)]
    for k in range(len(tops) - 2, 0, -1):
        after.append(_larger((tops[k], k), after[-1]))
    before = (tops[0], 0)
    yield (*after[-1], 0)
    for j in range(1, len(tops) - 1):
        yield (*_larger(before, after[-1 - j]), j)
        before = _larger(before, (tops[j], j))
    yield (*before, len(tops) - 1)


def _larger(one: tuple[arb, int], other: tuple[arb, int]) -> tuple[arb, int]:
    """Return a ball around the larger of two values, and whose it is by midpoints."""
    if one[0] > other[0]:
        return one
    if one[0] < other[0]:
        return other
    return one[0].max(other[0]), one[1] if one[0].mid() >= other[0].mid() else other[1]


def _ends(
    problem: Problem, lines: Sequence[tuple[int, "_Line"]], belief: Point | Region
) -> tuple[Row, Row]:
    """Return the largest and the smallest likelihood of every output, flat on the grid."""
    if isinstance(belief, Point):
        row = _point(lines, belief)
        return row, row
    axis = problem.axes[0]
    if lines:
        both = extremes(belief, axis.places)
        top, bottom = (lines[0][1].extreme(own) for own in both)
        return top, bottom
    sides = still_extremes(belief, axis.columns)
    unit = arb(belief.unit * axis.unit)
    top, bottom = ([arb(v) / unit if v else arb(0) for v in side] for side in sides)
    return top, bottom


def _point(lines: Sequence[tuple[int, "_Line"]], point: Point) -> Row:
    """Pass the noise over one axis after the other."""
    scale = 1 / arb(point.total)
    whole = point.masses.reshape(-1).tolist()
    values: Row = []
    if not lines:
        return [arb(mass) * scale if mass else arb(0) for mass in whole]
    for at, line in lines:
        order = np.moveaxis(np.arange(len(whole)).reshape(point.masses.shape), at, -1)
        cells: list[list[int]] = order.reshape(-1, line.size).tolist()
        passed = [arb(0)] * len(whole)
        for own in cells:
            if values:
                done = line.passed([values[cell] for cell in own], None)
            else:
                done = line.passed([whole[cell] for cell in own], scale)
            for cell, value in zip(own, done, strict=True):
                passed[cell] = value
        values = passed
    return values


class _Line:
    """Laplace noise along one axis."""

    def __init__(self, axis: Axis) -> None:
        self.rate, self.size = axis.rate, len(axis.places)
        self.places: list[int] = axis.places.tolist()
        self.known: dict[int, arb] = {}
        gaps = [b - a for a, b in pairwise(self.places)]
        common = math.gcd(*gaps) or 1
        self.factors = [self.decay(gap) for gap in gaps]
        self.ratio = self.decay(common)
        self.slots = [place // common for place in self.places]

    def decay(self, steps: int) -> arb:
        """Return e^-(steps * rate); each is worked out once."""
        value = self.known.get(steps)
        if value is None:
            value = self.known[steps] = exp_minus(steps * self.rate)
        return value

    def passed(self, masses: Sequence[Any], scale: arb | None) -> Row:
        """Return the likelihoods at all atoms, for balls, or for whole numbers times a scale."""
        if all(mass == 0 for mass in masses):
            return [arb(0)] * self.size
        n, r = self.slots[-1] + 1, self.ratio
        if n > _PLACES_PER_ATOM * self.size:
            weights = masses if scale is None else [mass * scale for mass in masses]
            left, right = self._sides(weights)
            beyond = [b * factor for b, factor in zip(right[1:], self.factors, strict=True)]
            return [a + b for a, b in zip(left, [*beyond, arb(0)], strict=True)]
        filled = [0] * n
        for slot, mass in zip(self.slots, masses, strict=True):
            filled[slot] = mass
        poly = arb_poly(filled) if scale is None else arb_poly(fmpz_poly(filled)) * scale
        # As power series the passes are divisions by 1 - r x and, from the high end, by x - r:
        # FLINT divides by two terms with the very recursion, at a fraction of Python's cost.
        series = arb_series(poly, prec=n) / arb_series([1, -r], prec=n)
        row = (series + arb_series((poly // arb_poly([-r, 1])) * r, prec=n)).coeffs()
        return [row[slot] for slot in self.slots]

    def _sides(self, weights: Sequence[arb]) -> tuple[Row, Row]:
        """Return the sums of weight * e^-distance to the left and to the right, each with y."""
        left, right = [weights[0]], [weights[-1]]
        for k in range(1, self.size):
            left.append(left[-1] * self.factors[k - 1] + weights[k])
            right.append(right[-1] * self.factors[-k] + weights[-1 - k])
        return left, right[::-1]

    def extreme(self, extreme: Extreme) -> Row:
        """Return <P, k_y> at all outputs, for the extreme P of each."""
        region, places, row = extreme.region, self.places, []
        room = [arb(mass) for mass in region.room]
        left, right = self._sides(room)
        least = self.passed(region.least, arb(1))
        cuts = (extreme.first, extreme.last, extreme.shell, extreme.distance, extreme.target)
        each = zip(*(own.tolist() for own in cuts), strict=True)
        for y, (first, last, shell, distance, target) in enumerate(each):
            part = arb(0)
            if first > 0:
                part += left[first - 1] * self.decay(places[y] - places[first - 1])
            if last < self.size:
                part += right[last] * self.decay(places[last] - places[y])
            if extreme.largest:
                part = left[y] + right[y] - room[y] - part if first < last else arb(0)
            value = least[y] + part + shell * self.decay(distance)
            moved = region.free * self.decay(abs(places[y] - places[target]))
            row.append((value + moved) / region.unit)
        return row
