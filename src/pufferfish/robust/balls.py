# SPDX-License-Identifier: Apache-2.0
"""The loss over total-variation balls of one radius tau around the priors, as a function of tau.

For one output and two secrets the largest likelihood of the one is concave in tau and the smallest
of the other convex, both piecewise linear: so is the first minus e^limit times the second concave,
and the tau at which it reaches 0 is read off a sorted list.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.loss import Attained
from pufferfish.mechanisms import Channel, Mechanism
from pufferfish.robust.columns import extreme_values, ordered_pairs, worst_output
from pufferfish.robust.loss import RobustLoss, ball_around, log_of
from pufferfish.scenario import Scenario

FloatArray = npt.NDArray[np.float64]


class BallLoss(Protocol):
    """What the search for the radius needs to know of a mechanism."""

    def worst(self, radius: float) -> tuple[float, Attained]:
        """Return the loss over the balls of a radius, ``inf`` included, and where it is."""

    def root(self, witness: Attained, limit: float) -> float:
        """Return the radius at which the loss of one witness reaches a limit; at most 1."""


def ball_loss(scenario: Scenario, mechanism: Mechanism) -> BallLoss:
    """Return the loss of a mechanism over balls, in doubles.

    Parameters
    ----------
    scenario : Scenario
        Only its priors are looked at, not their regions.
    mechanism : DiscreteLaplace or Channel

    Raises
    ------
    InputError
        If noise is to be added to levels without an order, or a channel has other inputs.
    """
    if isinstance(mechanism, Channel):
        if not mechanism.inputs.same_as(scenario.support):
            raise InputError("the channel is for other values than those of the prior")
        return _Columns(scenario, np.ascontiguousarray(mechanism.matrix.T))
    if mechanism.scale == 0:
        return _Unchanged(scenario)
    return _Laplace(scenario, float(scenario.lattice.step / Fraction(mechanism.scale)))


class _Rows:
    """The protected secrets' probabilities under every adversary."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.pairs = ordered_pairs(scenario)
        self.masses = [
            prior.probabilities[[prior.row(secret) for secret in scenario.protected]]
            for prior in scenario.priors
        ]

    def of(self, witness: Attained) -> tuple[FloatArray, FloatArray]:
        masses = self.masses[witness.adversary]
        return masses[witness.numerator], masses[witness.denominator]


class _Laplace(_Rows):
    def __init__(self, scenario: Scenario, u: float) -> None:
        super().__init__(scenario)
        self.u = u

    def worst(self, radius: float) -> tuple[float, Attained]:
        regions = ball_around(self.scenario, Fraction(radius))
        return RobustLoss(self.scenario, regions).worst(self.u)

    def root(self, witness: Attained, limit: float) -> float:
        index = self.scenario.lattice.index
        likelihoods = np.exp(-np.abs(index - index[witness.atom]) * self.u)
        return root_of(*self.of(witness), likelihoods, limit)


class _Columns(_Rows):
    def __init__(self, scenario: Scenario, likelihoods: FloatArray) -> None:
        super().__init__(scenario)
        self.likelihoods = likelihoods

    def worst(self, radius: float) -> tuple[float, Attained]:
        best = (-math.inf, Attained(0, *self.pairs[0], 0))
        for rho, region in enumerate(ball_around(self.scenario, Fraction(radius))):
            top, bottom = extreme_values(region, self.likelihoods)
            best = max(best, worst_output(top, bottom, self.pairs, rho), key=lambda found: found[0])
        return best

    def root(self, witness: Attained, limit: float) -> float:
        return root_of(*self.of(witness), self.likelihoods[witness.atom], limit)


class _Unchanged(_Rows):
    """Without noise the output tells the value: its likelihood is 1 there and 0 elsewhere."""

    def worst(self, radius: float) -> tuple[float, Attained]:
        ratio, witness = RobustLoss(
            self.scenario, ball_around(self.scenario, Fraction(radius))
        ).unchanged()
        return math.inf if ratio is None else log_of(ratio), witness

    def root(self, witness: Attained, limit: float) -> float:
        likelihoods = np.zeros(self.scenario.support.size)
        likelihoods[witness.atom] = 1.0
        return root_of(*self.of(witness), likelihoods, limit)


def root_of(first: FloatArray, second: FloatArray, likelihoods: FloatArray, limit: float) -> float:
    """Return the radius at which one output tells two secrets apart by as much as a limit.

    Parameters
    ----------
    first, second : float64 arrays, shape (n,)
        P(X | S) of the secret that the output speaks for, and of the other.
    likelihoods : float64 array, shape (n,)
        k(x), or anything in proportion to it.
    limit : float
        The largest loss.

    Returns
    -------
    float
        From 0 to 1; to rounding, and 0 where the limit is exceeded already.
    """
    upwards = np.argsort(likelihoods, kind="stable")
    k = likelihoods[upwards]
    moved_up, left_up = _remainders(first[upwards], k)
    moved_down, left_down = _remainders(second[upwards[::-1]], k[::-1])
    radii = np.union1d(moved_up, moved_down)
    top = np.interp(radii, moved_up, left_up) + radii * k[-1]
    bottom = np.interp(radii, moved_down, left_down) + radii * k[0]
    excess = top * math.exp(-min(limit, 745.0)) - bottom
    above = np.flatnonzero(excess > 0)
    if not len(above):
        return 1.0
    at = int(above[0])
    if at == 0:
        return 0.0
    low, high = float(radii[at - 1]), float(radii[at])
    below, beyond = float(excess[at - 1]), float(excess[at])
    return min(1.0, low + (high - low) * (below / (below - beyond)))


def _remainders(masses: FloatArray, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how much mass has been taken, cell by cell, and <P, k> of what is left."""
    taken = np.concatenate([[0.0], np.cumsum(masses)])
    left = np.concatenate([np.cumsum((masses * k)[::-1])[::-1], [0.0]])
    return np.minimum(taken, 1.0), left
