# SPDX-License-Identifier: Apache-2.0
"""Sensitivity: what a plan is worth if its prior, taken as exact, was only estimated.

Every plan carries two answers, robust or not: its loss over 95 % confidence intervals (so that a
small group is visible to everyone), and how wrong the prior may be, in total variation, before the
loss reaches epsilon, or twice that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.certificate import prove
from pufferfish.errors import InputError
from pufferfish.mechanisms import Channel, Mechanism
from pufferfish.regions import Concrete, regions_of
from pufferfish.robust.balls import ball_loss
from pufferfish.robust.columns import columns_loss
from pufferfish.robust.loss import RobustLoss
from pufferfish.robust.radius import proved_radius
from pufferfish.scenario import Scenario

#: The confidence of ``loss_at_95``.
CONFIDENCE = "0.95"
#: Cells (for a channel, cells times outputs) up to which the loss is proved; beyond, it is in
#: doubles with a margin for rounding.
_PROVED = 1_000
#: Cells beyond which it takes more than about a second: of noise and, times outputs, of a channel.
_MOST_FOR_LOSS = 600_000, 1_000_000
_MOST_FOR_RADIUS = 20_000, 200_000
#: What doubles may be wrong by: relative to the loss, and for each unit of the likelihoods' logs.
_RELATIVE, _ABSOLUTE = 1e-10, 1e-13


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

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON; infinity is the text ``inf``."""
        loss = self.loss_at_95
        return {
            "loss_at_95": "inf" if loss is not None and math.isinf(loss) else loss,
            "radius": self.radius,
            "radius_at_double": self.radius_at_double,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Sensitivity:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If an entry is missing or of the wrong kind, or there is another one.
        """
        names = ("loss_at_95", "radius", "radius_at_double")
        if not isinstance(data, Mapping) or set(data) != set(names):
            raise InputError(f"its 'sensitivity' must have the entries {', '.join(names)}")
        return cls(*(_read(data[name], name) for name in names))


def _read(value: Any, name: str) -> float | None:
    if value is None:
        return None
    most = math.inf if name == "loss_at_95" else 1.0
    if value == "inf" and most == math.inf:
        return math.inf
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise InputError(f"its 'sensitivity' entry {name!r} cannot be {value!r}")


def sensitivity_of(scenario: Scenario, mechanism: Mechanism, epsilon: Fraction) -> Sensitivity:
    """Return how the loss of a mechanism depends on the prior being right.

    Parameters
    ----------
    scenario : Scenario
        Only its priors are looked at, not their regions.
    mechanism : DiscreteLaplace or Channel
        For the values of the scenario.
    epsilon : Fraction
        What the plan promises.

    Raises
    ------
    InputError
        If the mechanism does not fit the scenario.

    Notes
    -----
    Theory, section 5. The radius of ``exact`` at its own epsilon is 0: it uses all of epsilon for
    the prior as given.
    """
    loss_at_95 = None
    is_channel = isinstance(mechanism, Channel)
    work = scenario.cells * (mechanism.outputs.size if isinstance(mechanism, Channel) else 1)
    counted = all(prior.from_rows for prior in scenario.priors)
    if counted and work <= _MOST_FOR_LOSS[is_channel]:
        regions = regions_of(scenario, confidence=CONFIDENCE)
        loss_at_95 = _loss(scenario, mechanism, regions, work)
    if work > _MOST_FOR_RADIUS[is_channel]:
        return Sensitivity(loss_at_95, None, None)
    loss = ball_loss(scenario, mechanism)
    radii = [proved_radius(scenario, mechanism, factor * epsilon, loss) for factor in (1, 2)]
    return Sensitivity(loss_at_95, radii[0], max(radii))


def _loss(
    scenario: Scenario, mechanism: Mechanism, regions: tuple[Concrete, ...], work: int
) -> float:
    if work <= _PROVED:
        return prove(scenario, mechanism, None, regions).loss
    if isinstance(mechanism, Channel):
        loss = columns_loss(scenario, regions, np.ascontiguousarray(mechanism.matrix.T))
        return loss * (1 + _RELATIVE) + _ABSOLUTE
    if mechanism.scale == 0:
        return prove(scenario, mechanism, None, regions).loss
    u = float(scenario.lattice.step / Fraction(mechanism.scale))
    loss = max(0.0, RobustLoss(scenario, regions).worst(u)[0])
    span = float(scenario.lattice.index[-1]) * u
    return loss * (1 + _RELATIVE) + _ABSOLUTE * (1 + 0.01 * span)
