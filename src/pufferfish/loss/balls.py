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
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb, arb_poly, arb_series, ctx, fmpq, fmpz_poly

from pufferfish.loss.exact import behind, transport
from pufferfish.loss.kernel import Axis, Problem
from pufferfish.loss.support_function import Extreme, extremes
from pufferfish.numbers import IntArray, precision
from pufferfish.priors.ambiguity import Point, Region

Row = list[arb]

#: Exponents t below 2**59 are left to FLINT; its own exp gives up somewhere beyond 2**64.
_LARGE = 59
#: Evenly spaced supports go through FLINT's power series, their holes filled with zeros. A place
#: costs about half as much there as an atom in the plain recursion, hence at most this many.
_PLACES_PER_ATOM = 2


@dataclass(frozen=True)
class Ball:
    """The largest ratio of likelihoods in a ball, and where it is by midpoints; None: infinite."""

    ratio: arb | None
    cell: int
    pair: tuple[int, int]
    adversary: int


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


def log_ends(ratio: arb) -> tuple[Fraction, Fraction | None]:
    """Return exact numbers below and above ln of a ball, at least 0; None where it is unbounded."""
    log = ratio.log()
    if not log.is_finite():
        return Fraction(0), None
    return max(Fraction(0), _exact(log.lower())), max(Fraction(0), _exact(log.upper()))


def _exact(value: arb) -> Fraction:
    man, exponent = value.mid().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exponent)


def enclose(problem: Problem, bits: int) -> Ball:
    """Enclose the largest ratio of a problem whose points can all cause the same outputs."""
    with _at(problem, bits):
        found = [_adversary(problem, rho) for rho in range(len(problem.adversaries))]
        best = found[0]
        for peak in found[1:]:
            # Each adversary by itself: only finished ratios are compared.
            best = _larger(best, peak)
        return best


def pairs_within(problem: Problem, bits: int, epsilon: Fraction) -> bool:
    """Whether every pair by itself is within epsilon, by its ball or by the rational argument."""
    with _at(problem, bits):
        limit = 1 / exp_minus(epsilon)
        for rho in range(len(problem.adversaries)):
            ends = _ends(problem, rho)
            for pair in problem.pairs:
                peak = _pair(ends, pair, rho)
                if peak.ratio is not None and peak.ratio <= limit:
                    continue
                distance = transport(problem, rho, pair)
                if distance is None or distance > epsilon:
                    return False
    return True


def log_ratio(problem: Problem, bits: int, rho: int, pair: tuple[int, int], cell: int) -> arb:
    """Return the logarithm of the ratio of two secrets at one output."""
    with _at(problem, bits):
        engine = _Balls(problem)
        (top, _), (_, bottom) = (engine.ends(problem.adversaries[rho][k]) for k in pair)
        return (top[cell] / bottom[cell]).log()


def _at(problem: Problem, bits: int) -> AbstractContextManager[None]:
    longest = max((len(axis.atoms) for axis in problem.axes), default=1)
    return precision(bits, terms=_PLACES_PER_ATOM * longest)


def _ends(problem: Problem, rho: int) -> list[tuple[Row, Row]]:
    engine = _Balls(problem)
    return [engine.ends(own) for own in problem.adversaries[rho]]


def _adversary(problem: Problem, rho: int) -> Ball:
    ends = _ends(problem, rho)
    if not problem.all_pairs or len(ends) == 2:
        found = [_pair(ends, pair, rho) for pair in problem.pairs]
        best = found[0]
        for peak in found[1:]:
            best = _larger(best, peak)
        return best
    if all(isinstance(own, Point) for own in problem.adversaries[rho]):
        return _all_points(ends, rho)
    return _all_regions(ends, rho)


def _larger(one: Ball, other: Ball) -> Ball:
    """Return a ball around the larger of two ratios, and where that is by midpoints."""
    if one.ratio is None or other.ratio is None:
        return one if one.ratio is None else other
    at = one if one.ratio.mid() >= other.ratio.mid() else other
    return Ball(one.ratio.max(other.ratio), at.cell, at.pair, at.adversary)


def _largest(ratios: Iterable[tuple[int, arb]]) -> tuple[arb, int]:
    """Return a ball around the largest ratio, at least 1, and its cell."""
    best, at, middle = arb(1), 0, arb(1)
    for cell, ratio in ratios:
        if ratio < best:
            continue
        if not ratio.is_finite():
            # A ball reaches 0: nothing is known at this precision.
            return arb.pos_inf(), cell
        if ratio.mid() > middle:
            at, middle = cell, ratio.mid()
        best = ratio if ratio > best else best.max(ratio)
    return best, at


def _pair(ends: Sequence[tuple[Row, Row]], pair: tuple[int, int], rho: int) -> Ball:
    """Return the largest ratio of one pair, in both directions."""
    found = []
    for i, j in (pair, pair[::-1]):
        ratios = []
        for cell, (high, low) in enumerate(zip(ends[i][0], ends[j][1], strict=True)):
            if high.is_zero():
                continue
            if low.is_zero():
                return Ball(None, cell, (i, j), rho)
            ratios.append((cell, high / low))
        ratio, cell = _largest(ratios)
        found.append(Ball(ratio, cell, (i, j), rho))
    return _larger(*found)


def _all_points(ends: Sequence[tuple[Row, Row]], rho: int) -> Ball:
    """Return the largest over the smallest secret at every output: linear in the secrets."""
    rows = [row for row, _ in ends]
    top, bottom = list(rows[0]), list(rows[0])
    for row in rows[1:]:
        for cell, value in enumerate(row):
            if not value < top[cell]:
                top[cell] = value if value > top[cell] else top[cell].max(value)
            if not value > bottom[cell]:
                bottom[cell] = value if value < bottom[cell] else bottom[cell].min(value)
    # A cell has all of them or none.
    both = enumerate(zip(top, bottom, strict=True))
    ratio, cell = _largest((k, high / low) for k, (high, low) in both if not high.is_zero())
    order = sorted(range(len(rows)), key=lambda s: rows[s][cell].mid())
    return Ball(ratio, cell, (order[-1], order[0]), rho)


def _all_regions(ends: Sequence[tuple[Row, Row]], rho: int) -> Ball:
    """Do the same for regions, where no secret is compared with itself.

    Its own region may hold two very different distributions.
    """
    best = Ball(arb(1), 0, (0, 1), rho)
    m = len(ends)
    for cell in range(len(ends[0][0])):
        tops = [high[cell] for high, _ in ends]
        # The largest before and the largest after each secret.
        before, after = [tops[0]], [tops[-1]]
        for k in range(1, m):
            before.append(before[-1].max(tops[k]))
            after.append(after[-1].max(tops[m - 1 - k]))
        ratios = []
        for j, (_, low) in enumerate(ends):
            sides = ([before[j - 1]] if j else []) + ([after[m - 2 - j]] if j < m - 1 else [])
            high = sides[0] if len(sides) == 1 else sides[0].max(sides[1])
            if high.is_zero():
                continue
            if low[cell].is_zero():
                return Ball(None, cell, (_by_midpoint(tops, j), j), rho)
            ratios.append((j, high / low[cell]))
        ratio, j = _largest(ratios)
        best = _larger(best, Ball(ratio, cell, (_by_midpoint(tops, j), j), rho))
    return best


def _by_midpoint(tops: Row, j: int) -> int:
    return max((i for i in range(len(tops)) if i != j), key=lambda i: tops[i].mid())


class _Balls:
    """The extreme likelihoods of one set after another at all outputs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.lines = [_Line(axis) if axis.noisy else None for axis in problem.axes]

    def ends(self, belief: Point | Region) -> tuple[Row, Row]:
        """Return the largest and the smallest likelihoods, flat on the grid."""
        if isinstance(belief, Point):
            row = self._point(belief)
            return row, row
        line = self.lines[0]
        if line is None:  # pragma: no cover - exact integers decide without noise
            raise ValueError("no noise")
        top, bottom = extremes(belief, line.places)
        return line.extreme(top), line.extreme(bottom)

    def _point(self, point: Point) -> Row:
        whole = behind(self.problem, point)
        values: Row | None = None
        at = 0
        for axis, line in zip(self.problem.axes, self.lines, strict=True):
            at += len(axis.shape)
            if line is None:
                continue
            cells = np.moveaxis(np.arange(whole.size).reshape(whole.shape), at - 1, -1)
            lines: list[list[int]] = cells.reshape(-1, len(axis.atoms)).tolist()
            flat = whole.reshape(-1).tolist()
            new: Row = [arb(0)] * whole.size
            for own in lines:
                if values is None:
                    done = line.integers([flat[cell] for cell in own], point.total)
                else:
                    done = line.balls([values[cell] for cell in own])
                for cell, value in zip(own, done, strict=True):
                    new[cell] = value
            values = new
        if values is None:
            scale = 1 / arb(point.total)
            return [arb(mass) * scale if mass else arb(0) for mass in whole.reshape(-1).tolist()]
        return values


class _Line:
    """Laplace noise along one axis."""

    def __init__(self, axis: Axis) -> None:
        self.places: IntArray = axis.places
        self.rate = axis.rate
        self.known: dict[int, arb] = {}
        self.size = len(axis.places)
        self.steps: list[int] = axis.places.tolist()
        gaps = [b - a for a, b in pairwise(self.steps)]
        common = math.gcd(*gaps) if gaps else 1
        self.slots = [place // common for place in self.steps]
        self.length = self.slots[-1] + 1
        self.even = self.length <= _PLACES_PER_ATOM * self.size
        self.ratio = self.decay(common)
        self.gaps = gaps

    def decay(self, steps: int) -> arb:
        """Return e^-(steps * rate); each is worked out once."""
        value = self.known.get(steps)
        if value is None:
            value = self.known[steps] = exp_minus(steps * self.rate)
        return value

    def integers(self, masses: list[int], total: int) -> Row:
        """Return the likelihoods at all atoms, for the masses over their total."""
        scale = 1 / arb(total)
        if not any(masses):
            return [arb(0)] * self.size
        if self.even:
            return self._even(arb_poly(fmpz_poly(self._filled(masses, 0))) * scale)
        return self._uneven([mass * scale if mass else None for mass in masses])

    def balls(self, masses: Row) -> Row:
        """Return the same for masses that are balls already."""
        if all(mass.is_zero() for mass in masses):
            return [arb(0)] * self.size
        if self.even:
            return self._even(arb_poly(self._filled(masses, arb(0))))
        return self._uneven([None if mass.is_zero() else mass for mass in masses])

    def _filled(self, masses: list, empty: object) -> list:  # type: ignore[type-arg]
        if self.length == self.size:
            return masses
        filled = [empty] * self.length
        for slot, mass in zip(self.slots, masses, strict=True):
            filled[slot] = mass
        return filled

    def _even(self, weighted: arb_poly) -> Row:
        # As power series the passes are divisions by 1 - r x and, from the high end, by x - r:
        # FLINT divides by two terms with the very recursion, at a fraction of Python's cost.
        n, r = self.length, self.ratio
        left = arb_series(weighted, prec=n) / arb_series([1, -r], prec=n)
        right = (weighted // arb_poly([-r, 1])) * r
        row: Row = (left + arb_series(right, prec=n)).coeffs()
        if len(row) != n:
            # Another thread lowered FLINT's number of terms meanwhile.
            filled = weighted.coeffs() + [arb(0)] * (n - len(weighted.coeffs()))
            return self._uneven([filled[slot] for slot in self.slots])
        return row if n == self.size else [row[slot] for slot in self.slots]

    def _uneven(self, weights: Sequence[arb | None]) -> Row:
        factors = [self.decay(gap) for gap in self.gaps]
        row, carried = [], arb(0)
        for k, mass in enumerate(weights):
            carried = carried * factors[k - 1] if k else carried
            carried = carried if mass is None else carried + mass
            row.append(carried)
        carried = arb(0)
        for k in range(len(row) - 2, -1, -1):
            mass = weights[k + 1]
            carried = (carried if mass is None else carried + mass) * factors[k]
            row[k] = row[k] + carried
        return row

    def extreme(self, extreme: Extreme) -> Row:
        """Return <P, k_y> at all outputs, for the extreme P of each."""
        region = extreme.region
        unit, free = arb(region.unit), arb(region.free)
        room = [arb(mass) for mass in region.room]
        left, right = self._sides(room)
        least = None
        if any(region.least):
            own = [arb(mass) for mass in region.least]
            least = [a + b - c for a, b, c in zip(*self._sides(own), own, strict=True)]
        row: Row = []
        cuts = zip(
            extreme.first.tolist(), extreme.last.tolist(), extreme.shell.tolist(),
            extreme.distance.tolist(), extreme.target.tolist(), strict=True,
        )  # fmt: skip
        for y, (first, last, shell, distance, target) in enumerate(cuts):
            place = self.steps[y]
            beyond = arb(0)
            if first > 0:
                beyond += left[first - 1] * self.decay(place - self.steps[first - 1])
            if last < self.size:
                beyond += right[last] * self.decay(self.steps[last] - place)
            if extreme.largest:
                value = left[y] + right[y] - room[y] - beyond if first < last else arb(0)
            else:
                value = beyond
            if least is not None:
                value += least[y]
            if shell:
                value += shell * self.decay(distance)
            if region.free:
                value += free * self.decay(abs(place - self.steps[target]))
            row.append(value / unit)
        return row

    def _sides(self, weights: Row) -> tuple[Row, Row]:
        """Return the sums of weight * e^-distance to the left and to the right, each with y."""
        factors = [self.decay(gap) for gap in self.gaps]
        left, right = [weights[0]], [weights[-1]]
        for k in range(1, self.size):
            left.append(left[-1] * factors[k - 1] + weights[k])
            right.append(right[-1] * factors[-k] + weights[-1 - k])
        return left, right[::-1]
