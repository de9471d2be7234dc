# SPDX-License-Identifier: Apache-2.0
"""Robust ``exact``: the least scale at which the loss stays within epsilon for a whole region."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import flint

from pufferfish.calibration.search import find_root
from pufferfish.loss import Attained
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.precision import precision
from pufferfish.rationals import float_up
from pufferfish.regions import Concrete, regions_of
from pufferfish.robust.loss import RobustLoss
from pufferfish.robust.precise import PreciseExcess
from pufferfish.scenario import Scenario

#: What rounding may do to a log-likelihood in doubles, relative to 1.
_FLOAT_ERROR = 3e-14
#: Cells up to which balls are cheap, and up to which they are worth their time where doubles know
#: the scale no better than to a billionth.
_CHEAP, _MOST = 1_000, 200_000
_COARSE = 1e-9
#: How far the scale lies above the root: in doubles at least, and in balls.
_MARGIN, _PRECISE_MARGIN = 2e-13, 1e-15


def robust_exact(
    scenario: Scenario, epsilon: Fraction, regions: Sequence[Concrete] | None = None
) -> DiscreteLaplace:
    """Return Laplace noise of the least scale whose robust loss is at most epsilon.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels; n atoms.
    epsilon : Fraction
        Above 0.
    regions : sequence of Box or Ball, optional
        One per adversary; by default the priors' own regions.

    Returns
    -------
    DiscreteLaplace
        Scale 0 where the unchanged column meets epsilon for the whole region.

    Notes
    -----
    Theory, section 5. A few evaluations, each linear in n. The scale lies above the least one by a
    relative 2e-15 for small supports, and by what doubles may be wrong for large ones, about
    1e-13 / epsilon; the certificate judges it afterwards.
    """
    step = scenario.lattice.step
    loss = RobustLoss(scenario, regions_of(scenario) if regions is None else regions)
    if _unchanged_is_private(loss, epsilon):
        return DiscreteLaplace(0.0, step)
    budget = float(epsilon)
    # Any two distributions on the support: the diameter over epsilon is private for all of them.
    low = budget / max(1, int(loss.index[-1]))
    error = _FLOAT_ERROR / budget
    u, margin = low, math.inf
    if error < 1e-3:
        found = find_root(_Relative(loss, budget), low, low, max(1e-13, error))
        u, margin = found.u, max(_MARGIN, 2 * error / max(found.slope, 1e-3))
    if scenario.cells <= (_MOST if margin > _COARSE else _CHEAP):
        u = find_root(PreciseExcess(loss, epsilon), low, u, 1e-15, noise=0.0).u
        margin = _PRECISE_MARGIN
    scale = step / Fraction(u) * (1 + Fraction(min(margin, 1e-3)))
    return DiscreteLaplace(float_up(scale), step)


def _unchanged_is_private(loss: RobustLoss, epsilon: Fraction) -> bool:
    """Whether the robust loss without noise is at most epsilon; ln of a rational never equals it.

    Noise is added where many digits do not tell.
    """
    ratio, _ = loss.unchanged()
    if ratio is None:
        return False
    with precision(256 + epsilon.denominator.bit_length()):
        budget = flint.arb(epsilon.numerator) / epsilon.denominator
        return bool((flint.arb(ratio.numerator) / ratio.denominator).log() <= budget)


class _Relative:
    """(robust loss - epsilon) / epsilon, as the search wants it."""

    def __init__(self, loss: RobustLoss, epsilon: float) -> None:
        self.loss, self.epsilon = loss, epsilon

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        value, witness = self.loss.worst(u)
        return (value - self.epsilon) / self.epsilon, [witness]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        value, slope = self.loss.at(witness, u)
        return (value - self.epsilon) / self.epsilon, slope / self.epsilon

    def reach(self, u: float) -> float:
        """Return the cost of one witness: two sums against some dozen passes."""
        return 0.1
