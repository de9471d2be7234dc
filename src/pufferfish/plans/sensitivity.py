# SPDX-License-Identifier: Apache-2.0
"""Sensitivity: what a plan is worth if its prior, taken as exact, was only estimated."""

import math
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.proof import loss_bound, prove
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.priors.ambiguity import Confidence, TVBall
from pufferfish.priors.scenario import Scenario

#: The confidence of ``loss_at_95``.
CONFIDENCE = Confidence(Fraction(19, 20))
#: Work (cells; for a channel, cells times outputs) beyond which it takes more than about a second:
#: the loss, and a radius.
_MOST_FOR_LOSS, _MOST_FOR_RADIUS = 30_000, 2_000
#: A radius is found to this part of itself; below 2**_LEAST it is 0.
_NEAR, _LEAST = 2.0**-20, -40.0
#: Whatever the prior, a loss in doubles this near to the limit may be the limit itself.
_SLACK = Fraction(1, 10**4)


@dataclass(frozen=True)
class Sensitivity:
    """How a plan's loss depends on the prior being right."""

    #: The largest loss over the intervals that hold together with 95 % confidence, rounded up; inf
    #: where they leave a level open that shows a secret; None where nobody counted rows.
    loss_at_95: float | None
    #: The largest total variation by which the prior may be wrong with a loss of at most epsilon,
    #: rounded down, proved; None where the support is too large.
    radius: float | None
    #: The same for a loss of at most twice epsilon.
    radius_at_double: float | None


def sensitivity_of(scenario: Scenario, mechanism: Mechanism, epsilon: Fraction) -> Sensitivity:
    """Return how the loss of a mechanism depends on the prior being right (theory, section 5).

    Only the priors count, not their regions. Of a prior that knows the rows of people, or of
    several columns, nothing is known.
    """
    if scenario.row_numbers or len(scenario.product.axes) > 1:
        return Sensitivity(None, None, None)
    work = len(scenario.priors) * len(scenario.protected) * scenario.product.size
    work *= mechanism.outputs.size if isinstance(mechanism, Channel) else 1
    loss_at_95 = None
    if all(prior.from_rows for prior in scenario.priors) and work <= _MOST_FOR_LOSS:
        sampled = scenario.with_rules([CONFIDENCE] * len(scenario.priors))
        loss_at_95 = loss_bound(sampled, {0: (mechanism,)}).value
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
        return scenario.with_rules([TVBall(Fraction(radius))] * len(scenario.priors))

    def loss(radius: float) -> float:
        return RateLoss(within(radius), {}, {0: (mechanism,)}).worst(1.0)[0]

    def holds(radius: float) -> bool:
        return prove(within(radius), {0: (mechanism,)}, limit).holds

    # A loss that reaches the limit exactly may stay there, whatever the prior.
    if loss(1.0) <= limit * (1 + _SLACK) and holds(1.0):
        return 1.0
    # Where the loss comes to rest at the limit only proofs tell how far it is below.
    for enough in (lambda radius: loss(radius) <= limit, holds):
        low, high = _LEAST, 0.0  # powers of two
        while high - low > _NEAR:
            middle = (low + high) / 2
            low, high = (middle, high) if enough(math.exp2(middle)) else (low, middle)
        radius = math.exp2(low - _NEAR)
        if low == _LEAST or holds(radius):
            return radius * (low > _LEAST)
    return 0.0
