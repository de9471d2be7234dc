# SPDX-License-Identifier: Apache-2.0
"""The robustness radius: how wrong the prior may be before a plan's loss reaches a limit.

It is the largest tau for which the loss stays within the limit for all distributions within total
variation tau of the prior's. A tau at which one witness reaches the limit is never too small. So
the search starts from the prior's own worst witness and walks down: to the tau of the witness that
is worst there, until none exceeds the limit. What is returned was proved by the certificate.
"""

from __future__ import annotations

from fractions import Fraction

from pufferfish.certificate import prove
from pufferfish.errors import InputError
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.rationals import parse_epsilon, parse_number
from pufferfish.robust.balls import BallLoss, ball_loss
from pufferfish.robust.loss import ball_around
from pufferfish.scenario import Scenario

#: A loss this near to the limit leaves no room but that of rounding.
_ROUNDING = 1e-9
_ROUNDS = 60
#: The radius is this far below the one that was found in doubles, relative to it; the first for
#: which the certificate holds.
_SAFETY = (1e-12, 1e-9, 1e-6, 1e-3)


def robustness_radius(
    scenario: Scenario, mechanism: Mechanism | float | str | Fraction, limit: object
) -> float:
    """Return the total-variation radius at which the loss of a mechanism reaches a limit.

    Parameters
    ----------
    scenario : Scenario
        Only the priors, not their regions, are looked at.
    mechanism : DiscreteLaplace, Channel or number
        A number is a scale of Laplace noise, theta, not negative.
    limit : number
        The loss that must not be exceeded, for example 1.1 times epsilon.

    Returns
    -------
    float
        From 0 to 1, rounded down: for this radius the loss was proved to be at most the limit.
        0 where the prior itself leaves no more room than rounding does, as the scale of ``exact``
        does at its own epsilon.

    Raises
    ------
    InputError
        If the loss exceeds the limit for the prior itself, or the mechanism does not fit.

    Notes
    -----
    Theory, section 5.
    """
    if not isinstance(mechanism, Mechanism):
        theta = parse_number(mechanism, "the scale")
        if theta < 0:
            raise InputError(f"the scale must not be negative, but {mechanism} was given")
        mechanism = DiscreteLaplace(float(theta), scenario.lattice.step)
    bound = parse_epsilon(limit)
    loss = ball_loss(scenario, mechanism)
    itself = loss.worst(0.0)[0]
    if itself > float(bound) * (1 + _ROUNDING):
        raise InputError(
            f"the loss is {itself:.6g} for the prior itself, above the limit {float(bound):.6g}: "
            "there is no radius"
        )
    return proved_radius(scenario, mechanism, bound, loss)


def proved_radius(
    scenario: Scenario, mechanism: Mechanism, limit: Fraction, loss: BallLoss
) -> float:
    """Return the radius at which the loss reaches a limit, rounded down; 0 where it has already."""

    def holds(radius: float) -> bool:
        return prove(scenario, mechanism, limit, ball_around(scenario, Fraction(radius))).holds

    # A loss that reaches the limit may stay there, whatever the prior: ask for all of them first.
    if loss.worst(1.0)[0] <= float(limit) * (1 + _ROUNDING) and holds(1.0):
        return 1.0
    radius = _largest(loss, float(limit))
    safe = (radius * (1 - share) for share in _SAFETY)
    return next((tau for tau in safe if tau == 0 or holds(tau)), 0.0)


def _largest(loss: BallLoss, limit: float) -> float:
    """Return the largest radius for which the loss in doubles is within the limit."""
    value, witness = loss.worst(0.0)
    if value >= limit * (1 - _ROUNDING):
        return 0.0
    radius = loss.root(witness, limit)
    for _ in range(_ROUNDS):
        if radius == 0:
            return 0.0
        value, witness = loss.worst(radius)
        if value <= limit:
            return radius
        lower = loss.root(witness, limit)
        if lower >= radius * (1 - 1e-13):
            return min(lower, radius)
        radius = lower
    return 0.0  # pragma: no cover - every round leaves one witness behind; and 0 is always right
