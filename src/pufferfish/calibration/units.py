# SPDX-License-Identifier: Apache-2.0
"""Rows of one person: noise is raised, or a channel tightened, until all rows together fit.

The loss of k rows with noise of one scale never rises with the scale, as for several columns
(:mod:`pufferfish.joint.solve`), so the largest of the least scales for every number of rows does
for all. A channel has no such parameter: it is calibrated for a smaller epsilon of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pufferfish.calibration.channel import ChannelSolution
from pufferfish.calibration.costs import weights_of
from pufferfish.calibration.families import Fit, cheaper, surely
from pufferfish.calibration.hiding import Hiding
from pufferfish.certificate import Certificate, prove
from pufferfish.errors import InputError, PufferfishError, counted
from pufferfish.halving import largest_own
from pufferfish.joint import Axis, DoesNotFit, GridTooLarge, least_scales, unitrows
from pufferfish.joint.root import excess_of, largest_inside
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.rationals import float_up, show
from pufferfish.scenario import Scenario
from pufferfish.support import Support, lattice_of
from pufferfish.unitloss import Case, UnitsLoss, cases, units_loss, units_of

#: Attempts at the proof; each doubles the units in the last place.
_TRIES = 50
#: Channels of each family that are calibrated at most.
_CHANNELS = 8

#: A channel, and the loss of all rows of a unit by it.
_Judged = tuple[ChannelSolution, UnitsLoss]


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
    # Most rows first: what they need does for most of the others.
    for case in reversed(list(cases(scenario))):
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
        return min(enough, _searched(case, support, epsilon, enough))
    # Where both are equal, only the worst case is decided exactly.
    return min(found.mechanisms[0].scale, enough)


def _searched(case: Case, support: Support, epsilon: Fraction, enough: float) -> float:
    """Return the least scale by which the bound itself fits, where not all can be counted."""
    step = lattice_of(support).step

    def excess(inverse: float) -> float:
        noise = DiscreteLaplace(float_up(1 / Fraction(inverse)), step)
        return excess_of(case.bound([Axis(support, (noise,))], [["1"]]).upper, epsilon)

    found = largest_inside(excess, 1 / enough, float(epsilon)) if enough else None
    return enough if found is None else float_up(1 / Fraction(found))


@dataclass(frozen=True, eq=False)
class FittedChannel:
    """A channel that keeps all rows of a unit within epsilon.

    Attributes
    ----------
    solution : ChannelSolution
    found : UnitsLoss
    notes : tuple of str
        How it came about, for the user; empty where it is that of single rows.
    """

    solution: ChannelSolution
    found: UnitsLoss
    notes: tuple[str, ...]


def channel_for_units(
    scenario: Scenario,
    epsilon: Fraction,
    calibrate: Callable[..., ChannelSolution],
    options: Mapping[str, Any],
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
        Returns the channel for a scenario and an epsilon of its own, with the options.
    options : mapping
        Those of a channel.

    Raises
    ------
    InputError
        If an option is wrong, or no channel meets the side conditions even for single rows.
    DoesNotFit
        If no channel that was tried fits.
    """
    weights = weights_of(scenario, options.get("weights"))
    hiding = Hiding(scenario, {**options, "weights": weights})
    given = {**options, "weights": list(weights), "regions": None}
    seen: list[UnitsLoss] = []

    def judged(solution: ChannelSolution) -> _Judged | None:
        seen.append(units_loss(scenario, solution.channel))
        return (solution, seen[-1]) if seen[-1].at_most(epsilon) else None

    found = largest_own(epsilon, lambda own: judged(calibrate(scenario, own, **given)), _CHANNELS)
    last = seen[-1]
    sure = surely(epsilon, rows=most_rows(scenario))
    best = cheaper(
        epsilon,
        None if found is None else Fit(found[0], found[0][0].cost, found[1]),
        lambda: largest_own(epsilon, lambda own: judged(hiding.channel(own)), _CHANNELS, sure),
        lambda judged: judged[0].cost,
    )
    if best is None:
        raise DoesNotFit(_nothing_fits(scenario, epsilon, hiding, last))
    solution, loss = best.made
    notes = best.notes(epsilon, "all rows of one person together", solution.channel)
    return FittedChannel(solution, loss, notes)


def most_rows(scenario: Scenario, numbers: Iterable[int] = ()) -> int:
    """Return the most rows that one person may have, 1 where nothing is known of persons."""
    return max([*(own.most for own in units_of(scenario)), *numbers], default=1)


def _nothing_fits(scenario: Scenario, epsilon: Fraction, hiding: Hiding, last: UnitsLoss) -> str:
    loss = "infinite" if last.upper is None else f"up to {last.value:.6g}"
    under = f" under these conditions ({', '.join(hiding.asked)})" if hiding.asked else ""
    return (
        f"no channel was found that keeps all rows of one person together within epsilon "
        f"{show(epsilon)}{under}: with the last one for the secret alone, "
        f"the loss of {counted(last.rows, 'row')} is {loss} ({last.name}); "
        f"{hiding.why_not(surely(epsilon, rows=most_rows(scenario)))}; "
        f"{hiding.what_helps('fewer rows of each person in the table')}"
    )
