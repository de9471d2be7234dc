# SPDX-License-Identifier: Apache-2.0
"""Rows of one person: noise is raised, or a channel tightened, until all rows together fit.

The loss of k rows with noise of one scale never rises with the scale, as for several columns
(:mod:`pufferfish.joint.solve`), so the largest of the least scales for every number of rows does
for all. A channel has no such parameter: it is calibrated for a smaller epsilon of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel import ChannelSolution
from pufferfish.certificate import Certificate, prove
from pufferfish.errors import InputError, PufferfishError, counted
from pufferfish.joint import Axis, DoesNotFit, GridTooLarge, least_scales, unitrows
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.prior import Prior
from pufferfish.rationals import float_up, show
from pufferfish.scenario import Scenario
from pufferfish.support import Support, lattice_of
from pufferfish.unitloss import Case, UnitsLoss, cases, units_loss

#: Attempts at the proof; each doubles the units in the last place.
_TRIES = 50
#: Channels of each family that are calibrated at most.
_CHANNELS = 8
#: Values up to which channels are tried that hide every one from every other.
MOST_VALUES = 30


def noise_for_units(
    scenario: Scenario, noise: DiscreteLaplace, epsilon: Fraction
) -> tuple[DiscreteLaplace, Certificate, UnitsLoss]:
    """Return noise that keeps all rows of a unit within epsilon, for every number of rows.

    Parameters
    ----------
    scenario : Scenario
        Its priors have units.
    noise : DiscreteLaplace
        What keeps single rows within epsilon; its scale is raised where that is needed.
    epsilon : Fraction
        Above 0.

    Returns
    -------
    noise : DiscreteLaplace
    certificate : Certificate
        Of single rows.
    found : UnitsLoss
        Of all rows of a unit; at most epsilon.

    Raises
    ------
    InputError
        If the scale would be beyond every double.
    """
    scale = noise.scale
    for case in cases(scenario):
        tried = Axis(scenario.support, (replace(noise, scale=scale),))
        if not case.bound([tried], [["1"]]).at_most(epsilon):
            scale = max(scale, _least(case, scenario.support, epsilon))
    for attempt in range(_TRIES):
        if not math.isfinite(scale):
            raise InputError(
                f"at epsilon {show(epsilon)} the scale that the rows of one person need would be "
                "beyond the range of a double; use a larger epsilon"
            )
        raised = replace(noise, scale=scale)
        found = units_loss(scenario, raised)
        if found.at_most(epsilon):
            certificate = prove(scenario, raised, epsilon)
            if certificate.holds:
                return raised, certificate, found
        scale = float_up(Fraction(scale) * (1 + Fraction(2) ** (attempt - 52)))
    raise PufferfishError(
        f"no scale near {scale:.6g} could be certified for the rows of one person at epsilon "
        f"{show(epsilon)}; please report it"
    )


def _least(case: Case, support: Support, epsilon: Fraction) -> float:
    """Return the least scale that keeps one case within epsilon, as far as it can be found."""
    one = DiscreteLaplace(1.0, lattice_of(support).step)
    # Without anything counted together: the sum of the worst cases.
    worst = case.bound([Axis(support, (one,))], [["1"]], limit=0)
    enough = float_up((worst.upper or Fraction(0)) / epsilon)
    try:
        places = case.places([Axis(support)], {0})
        further = [(at, Fraction(1)) for at in range(len(places.axes))]
        found = least_scales(
            [places.masses], places.axes, case.pairs, further, epsilon, limit=unitrows.MOST_CELLS
        )
    except GridTooLarge:
        return enough
    # Where both are equal, only the worst case is decided exactly.
    return min(found.mechanisms[0].scale, enough)


@dataclass(frozen=True, eq=False)
class FittedChannel:
    """A channel that keeps all rows of a unit within epsilon.

    Attributes
    ----------
    solution : ChannelSolution
    found : UnitsLoss
    note : str
        How it came about, for the user; empty where it is that of single rows.
    """

    solution: ChannelSolution
    found: UnitsLoss
    note: str


def channel_for_units(
    scenario: Scenario,
    epsilon: Fraction,
    calibrate: Callable[[Scenario, Fraction, Sequence[Fraction]], ChannelSolution],
    weights: Sequence[Fraction],
) -> FittedChannel:
    """Return a channel that keeps all rows of a unit within epsilon.

    Two families are tried, each for the largest epsilon of its own: channels for the scenario, and
    channels that hide every value from every other, which k rows of any joint prior leave within k
    times that epsilon. Of both the one of the lesser cost is taken.

    Parameters
    ----------
    scenario : Scenario
        Its priors have units.
    epsilon : Fraction
        What all rows together may cost.
    calibrate : callable
        Returns the channel for a scenario, an epsilon of its own, and weights.
    weights : sequence of Fraction, shape (n,)
        How often each value occurs.

    Raises
    ------
    DoesNotFit
        If no channel that was tried fits.
    """
    single = _fitted(scenario, epsilon, lambda own: calibrate(scenario, own, weights))
    fitting = [(single.best, "")] if single.best is not None else []
    hidden = None
    if scenario.support.size <= MOST_VALUES and (single.best is None or single.own < epsilon):
        values = _values(scenario)
        # The conditions may be too much for channels that hide every value.
        with suppress(InputError):
            hidden = _fitted(scenario, epsilon, lambda own: calibrate(values, own, weights))
        if hidden is not None and hidden.best is not None:
            fitting.append((hidden.best, " and hides every value from every other"))
    if fitting:
        (solution, own, found), more = min(fitting, key=lambda item: item[0][0].cost)
        note = (
            f"the channel is one of epsilon {float(own):.6g} for single rows{more}, so that all "
            f"rows of one person together keep within {show(epsilon)} ({found.how} decides)"
        )
        return FittedChannel(solution, found, note if more or own < epsilon else "")
    last = (hidden or single).last
    loss = "infinite" if last.upper is None else f"up to {last.value:.6g}"
    raise DoesNotFit(
        f"no channel was found that keeps the rows of one person together within epsilon "
        f"{show(epsilon)} under these conditions: that of {counted(last.rows, 'row')} has a loss "
        f"that is {loss} ({last.name}), though each row alone is within; use noise (the mechanism "
        "exact; levels need an order), fewer levels or conditions, or leave fewer rows of each "
        "person in the table"
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """What the halving found: the best channel with its own epsilon, and the last loss seen."""

    best: tuple[ChannelSolution, Fraction, UnitsLoss] | None
    last: UnitsLoss

    @property
    def own(self) -> Fraction:
        return Fraction(0) if self.best is None else self.best[1]


def _fitted(
    scenario: Scenario, epsilon: Fraction, calibrate: Callable[[Fraction], ChannelSolution]
) -> _Search:
    best, last = None, None
    low, high, own = Fraction(0), epsilon, epsilon
    for _ in range(_CHANNELS):
        try:
            solution = calibrate(own)
        except InputError:
            if last is None:
                raise
            # The conditions cannot be met at so small an epsilon.
            low = own
        else:
            last = units_loss(scenario, solution.channel)
            if last.at_most(epsilon):
                best, low = (solution, own, last), own
                if own == epsilon:
                    break
            else:
                high = own
        own = (low + high) / 2
    if last is None:
        raise PufferfishError("no channel was tried; please report it")
    return _Search(best, last)


def _values(scenario: Scenario) -> Scenario:
    """Return the scenario in which every value is a secret of its own."""
    support = scenario.support
    names = tuple(f"value {k}" for k in range(support.size))
    same = np.eye(support.size, dtype=np.int64)
    return Scenario(Prior.from_numerators(support, names, list(same)))
