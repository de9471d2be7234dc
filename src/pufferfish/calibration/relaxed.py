# SPDX-License-Identifier: Apache-2.0
"""``relaxed``: every line of the coupling is satisfied on average; the larger of its two sides.

``one-sided``: one side of the coupling is enough, so the smaller of the two.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from pufferfish.calibration.coupling import Coupling, comonotone
from pufferfish.calibration.root import find_root, noise_up
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import float_down, float_up
from pufferfish.priors.scenario import Scenario

#: Relative step back to the private side, and tolerance of the root: the rounding errors of a side
#: are some 1e-14.
_MARGIN, _TOLERANCE = 1e-13, 1e-14


def relaxed(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the least scale that satisfies every column and every row of the coupling.

    arXiv 2601.06385: the bracketed root that its Algorithm 1 is for, not its lines, which can
    return a scale that is not private; theory, section 3.
    """
    return noise_up(scale_of_sides(scenario, epsilon, max), scenario.lattice.step, epsilon)


def one_sided(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the smaller side's scale for each adversary and pair, the largest of these.

    Theory, section 3, with the proof that one side suffices for any coupling.
    """
    return noise_up(scale_of_sides(scenario, epsilon, min), scenario.lattice.step, epsilon)


def scale_of_sides(
    scenario: Scenario, epsilon: Fraction, choose: Callable[[float, float], float]
) -> float:
    """Return the largest scale, over adversaries and pairs, of the chosen one of the two sides.

    ``choose`` is ``max`` (the paper's condition) or ``min`` (one side is enough). Infinity where
    the scale is beyond every double.
    """
    scale = 0.0
    for view in scenario.views():
        coupling = comonotone(view)
        # Both sides are satisfied at the Wasserstein scale; rounding may not put them above it.
        strict = float_up(coupling.largest_distance * view.step / epsilon)
        if strict > scale:
            columns, rows = (Side(coupling, second, epsilon).scale() for second in (True, False))
            scale = max(scale, min(strict, choose(columns, rows)))
    return scale


class Side:
    """One side of a coupling: its columns x' (``second``) or its rows x.

    A line is satisfied at the rate u = step / theta when h(u) = ln E[exp(d u) | line] is at most
    epsilon. h is convex and increasing from h(0) = 0, and the side needs the smallest root of its
    lines, the root of the largest h. The sums run over exp(d u + ln w - epsilon), w the share of a
    cell in its line, which does not overflow near the root; expm1 keeps the digits of small ones.
    epsilon is rounded down. Theory, section 3.
    """

    def __init__(self, coupling: Coupling, second: bool, epsilon: Fraction) -> None:
        self.step, self.epsilon = coupling.view.step, float_down(epsilon)
        moved = np.flatnonzero(coupling.distance)
        self.distance = coupling.distance[moved].astype(np.float64)
        line = (coupling.second if second else coupling.first)[moved]
        self.starts = np.flatnonzero(np.diff(line, prepend=-1))
        self.ends = np.append(self.starts[1:], len(line))
        view = coupling.view
        lines = (view.counts_second if second else view.counts_first)[line]
        other = view.total_first if second else view.total_second
        mass = coupling.mass[moved]
        if mass.dtype == object:
            share = (mass / (lines.astype(object) * other)).astype(np.float64)
        else:
            share = mass / (lines * float(other))
        # No share is taken to be less than a double can hold: more mass needs more noise.
        self.exponents = np.log(np.maximum(share, 1e-300)) - self.epsilon

    def scale(self) -> float:
        """Return the least scale at which every line is satisfied, from above."""
        if not len(self.starts):
            return 0.0
        low = self.epsilon / float(self.distance.max()) * (1 - _MARGIN)
        rate, _ = find_root(self, self.epsilon, low, low, _TOLERANCE, _TOLERANCE)
        return float_up(self.step / Fraction(rate * (1 - _MARGIN)))

    def worst(self, u: float) -> tuple[float, int]:
        """Return the largest h, and the line that has it."""
        with np.errstate(all="ignore"):
            du = self.distance * u
            terms = np.exp(du + self.exponents) * -np.expm1(-du)
            line = int(np.argmax(np.add.reduceat(terms, self.starts)))
        return self.at(line, u)[0], line

    def at(self, line: int, u: float) -> tuple[float, float]:
        """Return h of one line, and its slope E[d exp(d u)] / E[exp(d u)]."""
        cells = slice(self.starts[line], self.ends[line])
        d = self.distance[cells]
        with np.errstate(all="ignore"):
            terms = np.exp(d * u + self.exponents[cells])
            # whole = e^-eps E[e^{du}]. Near 1, its distance from 1 keeps more digits.
            moved = terms @ -np.expm1(-d * u)
            whole = moved + np.exp(-self.epsilon)
            log = np.log1p(moved + np.expm1(-self.epsilon)) if whole > 0.5 else np.log(whole)
            return self.epsilon + float(log), float(terms @ d / whole)
