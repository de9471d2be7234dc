# SPDX-License-Identifier: Apache-2.0
"""Prove the loss: which arithmetic decides what."""

from fractions import Fraction

from pufferfish.loss.certificate import Certificate, LossBound
from pufferfish.loss.kernel import Mechanism
from pufferfish.loss.problem import LARGEST_GRID, Releases
from pufferfish.numbers import Number
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario


def prove(scenario: Scenario, releases: Releases, epsilon: Fraction | None) -> Certificate:
    """Recompute the loss of some releases, with proof, and compare it with epsilon.

    Never raises GridTooLarge: where a grid does not fit, worst cases take its place.
    """
    raise NotImplementedError


def loss_bound(scenario: Scenario, releases: Releases, limit: int = LARGEST_GRID) -> LossBound:
    """Return the proven joint loss of some releases; may raise GridTooLarge."""
    raise NotImplementedError


def certify(
    scenario: Scenario | Prior, mechanism: Mechanism | Number, epsilon: Number | None = None
) -> Certificate:
    """Recompute the privacy loss of one mechanism, with proof."""
    raise NotImplementedError


def privacy_loss(scenario: Scenario | Prior, *, scale: Number) -> float:
    """Return the exact loss of Laplace noise of some scale, as a double rounded up."""
    raise NotImplementedError
