# SPDX-License-Identifier: Apache-2.0
"""The comonotone coupling of a pair, with exact ties, and the scales that its two sides need.

The sorted coupling has the joint distribution function min(F_i(x), F_j(x')) and at most
n_i + n_j - 1 cells. Cumulative sums that are equal must be seen to be equal: a rounding error would
leave a sliver of mass that travels across the whole range (theory, section 3).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pufferfish.errors import PufferfishError
from pufferfish.numbers import INT64_SAFE, CountArray, IntArray, float_down, float_up
from pufferfish.priors.scenario import PairView, Scenario

#: Quotients of products of totals below this are found in doubles and mended in 64 bits.
_PRODUCT_SAFE = 2**112
#: More Newton steps than this are no convergence.
_MAX_STEPS = 200
#: Relative step back to the private side; the rounding errors of a side are some 1e-14.
_MARGIN = 1e-13


@dataclass(frozen=True, eq=False)
class Coupling:
    """The c cells of the comonotone coupling of P_i (x) and P_j (x'), in increasing order.

    ``first`` and ``second`` are the positions of x and x' among the pair's atoms, ``distance`` is
    |x - x'| in steps. The mass of all cells up to one is ``(whole + rest / N_i) / N_j`` exactly,
    where N_i and N_j are the totals of the two secrets. All arrays are integers of shape (c,).
    """

    view: PairView
    first: IntArray
    second: IntArray
    distance: IntArray
    whole: CountArray
    rest: CountArray

    @cached_property
    def largest_distance(self) -> int:
        """The Wasserstein-infinity distance of the pair, in steps."""
        return int(self.distance.max())

    @property
    def total(self) -> int:
        """What all masses sum to, N_i N_j."""
        return self.view.total_first * self.view.total_second

    @cached_property
    def mass(self) -> CountArray:
        """The mass of each cell over ``total``: exact integers, or doubles where these are long."""
        total = self.view.total_first
        whole, rest = np.diff(self.whole, prepend=0), np.diff(self.rest, prepend=0)
        if whole.dtype == object or self.total < INT64_SAFE:
            return whole * total + rest
        # A small mass is a small integer: there, the rest may cancel the whole.
        small = np.minimum(whole, 1) * total + rest
        return np.where(whole <= 1, small, whole * float(total) + rest)


def comonotone(view: PairView) -> Coupling:
    """Return the comonotone coupling of a pair, exactly and in linear time.

    Notes
    -----
    The paper's pi*, its last term read as F(x-1, x'-1); theory, section 3. With
    ``C_i N_j = whole N_i + rest`` two cumulative sums compare as ``C_j`` and ``whole`` do, and they
    tie where these are equal and ``rest`` is 0: no product of counts is ever sorted.
    """
    at_first, at_second = np.flatnonzero(view.counts_first), np.flatnonzero(view.counts_second)
    ends_second = _cumulative(view.counts_second[at_second], view.total_second)
    ends_first = _cumulative(view.counts_first[at_first], view.total_first)
    whole, rest = _quotients(ends_first, view.total_second, view.total_first)
    # A stable sort of two increasing runs is a merge. On equal keys the second's ends come first.
    keys = np.concatenate([ends_second, whole])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    rests = np.concatenate([np.zeros(len(ends_second), dtype=rest.dtype), rest])[order]
    cut = np.ones(len(keys), dtype=bool)
    cut[:-1] = (keys[1:] != keys[:-1]) | (rests[1:] != rests[:-1])
    closed_first = np.cumsum(order >= len(ends_second))
    closed_second = np.arange(1, len(keys) + 1) - closed_first
    # A cell belongs to the atoms that were open before its cut.
    last = np.flatnonzero(cut)
    before = np.concatenate([[-1], last[:-1]])
    first = at_first[np.where(before < 0, 0, closed_first[before])]
    second = at_second[np.where(before < 0, 0, closed_second[before])]
    distance = np.abs(view.index[first] - view.index[second])
    return Coupling(view, first, second, distance, keys[last], rests[last])


def _cumulative(counts: CountArray, total: int) -> CountArray:
    """Return cumulative sums, as 64-bit integers where the total is one."""
    if counts.dtype == object or total >= INT64_SAFE:
        return np.cumsum(counts.astype(object))
    return np.cumsum(counts)


def _quotients(ends: CountArray, factor: int, divisor: int) -> tuple[CountArray, CountArray]:
    """Return quotient and remainder of ``ends * factor`` by a divisor, exactly; ends <= divisor."""
    if (
        ends.dtype == object
        or factor * divisor >= _PRODUCT_SAFE
        or max(factor, divisor) >= INT64_SAFE
    ):
        products = ends.astype(object) * factor
        return products // divisor, products % divisor
    # The product may wrap in 64 bits. What is left of it after the estimate does not, for the
    # estimate is off by less than factor * 2**-50 + 1, and so what is left is below 2**62 + 2**62.
    quotient = (ends * (factor / divisor)).astype(np.int64)
    left = ends * np.int64(factor) - quotient * np.int64(divisor)
    missing = left // divisor
    return quotient + missing, left - missing * divisor


def scale_of_sides(
    scenario: Scenario, epsilon: Fraction, choose: Callable[[list[float]], float]
) -> float:
    """Return the largest scale, over adversaries and pairs, of the chosen one of the two sides.

    ``choose`` is ``max`` (the paper's condition) or ``min`` (one side is enough). Infinity where
    the scale is beyond every double.
    """
    below, scale = float_down(epsilon), 0.0
    for view in scenario.views():
        coupling = comonotone(view)
        # Both sides are satisfied at the Wasserstein scale; rounding may not put them above it.
        strict = float_up(coupling.largest_distance * view.step / epsilon)
        if strict <= scale:
            continue
        # A side that allows the scale that other pairs need already need not be solved.
        start = float(view.step / Fraction(scale)) * (1 + 3 * _MARGIN) if scale else math.inf
        needed = []
        for second in (True, False):
            rate = Side(coupling, second, below).largest_rate(start)
            needed.append(0.0 if math.isinf(rate) else float_up(view.step / Fraction(rate)))
            if choose is min and needed[0] <= scale:
                break
        scale = max(scale, min(strict, choose(needed)))
    return scale


class Side:
    """One side of a coupling: its columns x' (``second``) or its rows x.

    A line is satisfied at the rate u = step / theta when h(u) = ln E[exp(d u) | line] - epsilon is
    at most 0. h is convex and increasing, h(0) = -epsilon, and the side needs the smallest root of
    its lines, which is the root of the largest h. Newton's method decreases to it from the right,
    and a line with h < 0 on the way has a larger root and is dropped for good. The sums run over
    exp(d u + ln w - epsilon) <= 1, which never overflows; expm1 keeps the digits of small ones.
    epsilon is rounded down. Theory, section 3.
    """

    def __init__(self, coupling: Coupling, second: bool, epsilon: float) -> None:
        self.epsilon = epsilon
        # e^-eps (E[e^{du}] - 1) is compared with 1 - e^-eps: both keep their digits.
        self.room = -math.expm1(-epsilon)
        moved = np.flatnonzero(coupling.distance)
        self.distance = coupling.distance[moved].astype(np.float64)
        self.line = (coupling.second if second else coupling.first)[moved]
        view = coupling.view
        lines = (view.counts_second if second else view.counts_first)[self.line]
        other = view.total_first if second else view.total_second
        mass = coupling.mass[moved]
        # No share is taken to be less than a double can hold: more mass needs more noise.
        if mass.dtype == object:
            share = (mass / (lines.astype(object) * other)).astype(np.float64)
        else:
            share = mass / (lines * float(other))
        self.share = np.maximum(share, 1e-300)

    def largest_rate(self, start: float = math.inf) -> float:
        """Return the largest u at which every line is satisfied, from below; inf where all are.

        Or a ``start`` that is not above it. An iterate from the unsafe side is never an answer.
        """
        if not len(self.line):
            return math.inf
        u, d, line = min(start, self._start()), self.distance, self.line
        exponents = np.log(self.share) - self.epsilon
        for _ in range(_MAX_STEPS):
            starts = _starts(line)
            with np.errstate(over="ignore", invalid="ignore"):
                du = d * u
                terms = np.exp(du + exponents)
                sums = np.add.reduceat(terms * -np.expm1(-du), starts)
            worst = int(np.argmax(sums))  # the first NaN, if there is one
            excess = float(sums[worst]) - self.room
            if excess <= 0:
                return u * (1 - _MARGIN)
            cells = slice(starts[worst], starts[worst + 1] if worst + 1 < len(starts) else len(d))
            # h = log1p(excess), with the slope of E[d e^{du}] over 1 + excess.
            slope = float(terms[cells] @ d[cells]) / (1 + excess)
            lower = u - math.log1p(excess) / slope
            if not 0 < lower < math.inf:
                raise PufferfishError("a side's condition could not be evaluated")
            settled, u = lower > u * (1 - 1e-15), min(u, lower)
            if settled:
                return u * (1 - _MARGIN)
            alive = sums >= self.room * (1 - 1e-9)
            if not alive.all():
                keep = np.repeat(alive, np.diff(starts, append=len(d)))
                d, exponents, line = d[keep], exponents[keep], line[keep]
        raise PufferfishError(f"a side's root was not found in {_MAX_STEPS} steps")

    def _start(self) -> float:
        """Return a u at or above the root: E[d] u <= eps, and w (e^{du} - 1) <= e^eps - 1."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            mean = np.add.reduceat(self.share * self.distance, _starts(self.line))
            room = self.epsilon + math.log(self.room)
            alone = np.logaddexp(0.0, room - np.log(self.share)) / self.distance
            return min(float((self.epsilon / mean).min()), float(alone.min()))


def _starts(line: IntArray) -> IntArray:
    """Return where each run of equal lines begins."""
    return np.flatnonzero(np.diff(line, prepend=-1))
