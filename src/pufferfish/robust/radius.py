# SPDX-License-Identifier: Apache-2.0
"""The robustness radius: how wrong the prior may be before a plan's loss reaches a limit.

It is the largest tau for which the loss stays within the limit for all distributions within total
variation tau of the prior's. The loss grows with tau (the balls do), so bisection finds it, and
what is returned was proved by the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from pufferfish.certificate.robust import certify_robust, certify_robust_columns
from pufferfish.errors import InputError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.rationals import parse_epsilon, parse_number
from pufferfish.robust.columns import columns_loss
from pufferfish.robust.loss import RobustLoss, ball_around, log_of
from pufferfish.scenario import Scenario

_STEPS = 60
#: The radius is a whole multiple of this.
_GRID = Fraction(1, 2**64)
_TRIES = 40


def robustness_radius(scenario: Scenario, scale: object, limit: object) -> Fraction:
    """Return the total-variation radius at which the loss of Laplace noise reaches a limit.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels; only the priors, not their regions, are looked at.
    scale : number
        theta, not negative.
    limit : number
        The loss that must not be exceeded, for example 1.1 times epsilon.

    Returns
    -------
    Fraction
        From 0 to 1, rounded down: for this radius the loss was proved to be at most the limit.
        0 where the prior itself leaves no room.

    Raises
    ------
    InputError
        If the loss exceeds the limit for the prior itself.

    Notes
    -----
    Theory, section 5. The scale of ``exact`` leaves no room at its own epsilon: its radius is a
    matter of rounding there.
    """
    theta = parse_number(scale, "the scale")
    if theta < 0:
        raise InputError(f"the scale must not be negative, but {scale} was given")
    bound = parse_epsilon(limit)
    lattice = scenario.lattice
    noise = DiscreteLaplace(float(theta), lattice.step)

    def loss(radius: Fraction) -> float:
        robust = RobustLoss(scenario, ball_around(scenario, radius))
        if theta == 0:
            ratio, _ = robust.unchanged()
            return float("inf") if ratio is None else log_of(ratio)
        return robust.worst(float(lattice.step / theta))[0]

    def proved(radius: Fraction) -> bool:
        return certify_robust(scenario, noise, ball_around(scenario, radius), bound).holds

    return _largest(loss, proved, bound)


def robustness_radius_of_columns(
    scenario: Scenario,
    columns: Sequence[Sequence[Fraction]],
    limit: object,
) -> Fraction:
    """Return the total-variation radius at which the loss of a channel reaches a limit.

    Parameters
    ----------
    scenario : Scenario
    columns : nested sequence of Fraction, shape (n_y, n_x)
        M(y | x), a row for every output.
    limit : number
        The loss that must not be exceeded.

    Returns
    -------
    Fraction
        As for :func:`robustness_radius`.
    """
    bound = parse_epsilon(limit)
    rough = np.array([[float(value) for value in column] for column in columns])

    def loss(radius: Fraction) -> float:
        return columns_loss(scenario, ball_around(scenario, radius), rough)

    def proved(radius: Fraction) -> bool:
        regions = ball_around(scenario, radius)
        return certify_robust_columns(scenario, columns, regions, bound).holds

    return _largest(loss, proved, bound)


def _largest(
    loss: Callable[[Fraction], float], proved: Callable[[Fraction], bool], limit: Fraction
) -> Fraction:
    goal = float(limit)
    if loss(Fraction(0)) > goal * (1 + 1e-9):
        raise InputError(
            f"the loss is {loss(Fraction(0)):.6g} for the prior itself, above the limit "
            f"{goal:.6g}: there is no radius"
        )
    low, high = 0, int(1 / _GRID)
    if loss(Fraction(1)) <= goal and proved(Fraction(1)):
        return Fraction(1)
    for _ in range(_STEPS):
        middle = (low + high) // 2
        if loss(middle * _GRID) <= goal:
            low = middle
        else:
            high = middle
    step = max(1, low >> 50)
    for _ in range(_TRIES):
        if low <= 0:
            break
        if proved(low * _GRID):
            return low * _GRID
        low, step = low - step, 2 * step
    return Fraction(0)
