# SPDX-License-Identifier: Apache-2.0
"""``relaxed``: every line of the coupling is satisfied on average; the larger of its two sides."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from pufferfish.calibration.coupling import Coupling, comonotone
from pufferfish.calibration.root import noise_up
from pufferfish.errors import PufferfishError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import IntArray, float_down, float_up
from pufferfish.priors.scenario import Scenario

#: More Newton steps than this are no convergence.
_MAX_STEPS = 200
#: Relative step back to the private side; the rounding errors of a side are some 1e-14.
_MARGIN = 1e-13


def relaxed(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the least scale that satisfies every column and every row of the coupling.

    arXiv 2601.06385: the bracketed root that its Algorithm 1 is for, not its lines, which can
    return a scale that is not private; theory, section 3.
    """
    return noise_up(scale_of_sides(scenario, epsilon, max), scenario.lattice.step, epsilon)


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
