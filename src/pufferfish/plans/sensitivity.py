# SPDX-License-Identifier: Apache-2.0
"""Sensitivity: what a plan is worth if its prior, taken as exact, was only estimated."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.kernel import Mechanism
from pufferfish.loss.proof import loss_bound, prove
from pufferfish.mechanisms.channel import Channel
from pufferfish.priors.ambiguity import Confidence, Rule, TVBall
from pufferfish.priors.scenario import Scenario

#: The confidence of ``loss_at_95``.
CONFIDENCE = Confidence(Fraction(19, 20))
#: Work (cells; for a channel, cells times outputs) up to which the loss is proved.
_PROVED = 1_000
#: Work beyond which it takes more than about a second: the loss, and a radius.
_MOST_FOR_LOSS, _MOST_FOR_RADIUS = 600_000, 20_000
#: What doubles may be wrong by: relative to the loss, and absolutely.
_RELATIVE, _ABSOLUTE = 1e-10, 1e-13
#: A radius is found to this part of itself; below the least it is 0.
_NEAR, _LEAST = 2.0**-20, 2.0**-40
#: The radius is this far below the one that was found in doubles; the first that is proved.
_SAFETY = (0.0, 1e-9, 1e-6, 1e-3, 0.1)


@dataclass(frozen=True)
class Sensitivity:
    """How a plan's loss depends on the prior being right.

    Attributes
    ----------
    loss_at_95 : float or None
        The largest loss over the box of Clopper-Pearson intervals that hold together with 95 %
        confidence, rounded up; ``inf`` where the box leaves a level open that shows a secret.
        None where a prior was not counted from rows, or the support is too large to tell.
    radius : float or None
        The largest total variation by which the prior may be wrong with a loss of at most
        epsilon, rounded down, proved; None where the support is too large.
    radius_at_double : float or None
        The same for a loss of at most twice epsilon.
    """

    loss_at_95: float | None
    radius: float | None
    radius_at_double: float | None


def sensitivity_of(scenario: Scenario, mechanism: Mechanism, epsilon: Fraction) -> Sensitivity:
    """Return how the loss of a mechanism depends on the prior being right (theory, section 5).

    Only the priors count, not their regions. Of a prior that knows the rows of people, or of
    several columns, nothing is known.
    """
    if any(scenario.strata) or len(scenario.product.axes) > 1:
        return Sensitivity(None, None, None)
    work = scenario.cells * (mechanism.outputs.size if isinstance(mechanism, Channel) else 1)
    loss_at_95 = None
    if all(prior.from_rows for prior in scenario.priors) and work <= _MOST_FOR_LOSS:
        loss_at_95 = _loss(_within(scenario, CONFIDENCE), mechanism, work)
    if work > _MOST_FOR_RADIUS:
        return Sensitivity(loss_at_95, None, None)
    radii = [robustness_radius(scenario, mechanism, limit) for limit in (epsilon, 2 * epsilon)]
    return Sensitivity(loss_at_95, radii[0], max(radii))


def robustness_radius(scenario: Scenario, mechanism: Mechanism, limit: Fraction) -> float:
    """Return the largest total variation for which the loss stays within a limit, from below.

    It is found in doubles and then proved by balls. The loss never falls with the radius, for the
    balls are nested.
    """

    def within(radius: float) -> Scenario:
        return _within(scenario, TVBall(Fraction(radius)))

    def seems(radius: float) -> bool:
        return _in_doubles(within(radius), mechanism) <= float(limit)

    def holds(radius: float) -> bool:
        return prove(within(radius), {0: (mechanism,)}, limit).holds

    if seems(1.0) and holds(1.0):
        return 1.0
    found = _largest(seems)
    safe = (found * (1 - share) for share in _SAFETY if found)
    return next((radius for radius in safe if holds(radius)), 0.0)


def _largest(seems: Callable[[float], bool]) -> float:
    """Return the largest radius below 1 that seems to do: its power of two, then its digits."""
    low = 1.0
    while not seems(low):
        low /= 2
        if low < _LEAST:
            return 0.0
    high = min(2 * low, 1.0)
    while high - low > low * _NEAR:
        middle = (low + high) / 2
        low, high = (middle, high) if seems(middle) else (low, middle)
    return low


def _within(scenario: Scenario, rule: Rule) -> Scenario:
    return scenario.with_rules([rule] * len(scenario.priors))


def _in_doubles(scenario: Scenario, mechanism: Mechanism) -> float:
    return RateLoss(scenario, {}, {0: (mechanism,)}).worst(1.0)[0]


def _loss(scenario: Scenario, mechanism: Mechanism, work: int) -> float:
    """Return the loss, proved where that is quick, else in doubles with a margin."""
    if work <= _PROVED:
        return loss_bound(scenario, {0: (mechanism,)}).value
    loss = _in_doubles(scenario, mechanism)
    span = 0.0
    if not isinstance(mechanism, Channel) and mechanism.scale:
        span = float(scenario.lattice.index[-1] * scenario.lattice.step / Fraction(mechanism.scale))
    return (
        max(0.0, loss) * (1 + _RELATIVE) + _ABSOLUTE * (1 + 0.01 * span)
        if loss < math.inf
        else loss
    )
