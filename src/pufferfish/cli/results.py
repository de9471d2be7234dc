# SPDX-License-Identifier: Apache-2.0
"""Results of ``calibrate``: one plan per epsilon and mechanism, and how much noise it saves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pufferfish.cli.choice import Chosen
from pufferfish.cli.progress import steps
from pufferfish.errors import PufferfishError

if TYPE_CHECKING:
    from pufferfish.plan import Plan
    from pufferfish.scenario import Scenario

_NOTHING = (None, None)


@dataclass(frozen=True)
class Result:
    """One line of the comparison.

    Attributes
    ----------
    epsilon : str
        As the user wrote it.
    plan : Plan
        The calibrated mechanism, with its sensitivity.
    reductions : tuple of (float or None), shape (2,)
        By how many per cent its scale is below those of wasserstein and l1; None where these are
        0 themselves, for a channel, and where the prior has a region or units, which they cannot
        honour.
    """

    epsilon: str
    plan: "Plan"
    reductions: tuple[float | None, ...]


@dataclass(frozen=True)
class Comparison:
    """Everything that was calibrated.

    Attributes
    ----------
    results : list of Result
        At least one.
    notes : list of str
        What could not be had, and why.
    """

    results: list[Result]
    notes: list[str]


def compare(
    scenario: "Scenario", epsilons: Sequence[str], chosen: Chosen, channel: Mapping[str, Any]
) -> Comparison:
    """Calibrate every mechanism for every epsilon.

    Parameters
    ----------
    scenario : Scenario
        What is protected.
    epsilons : sequence of str
        What was asked for, each once.
    chosen : Chosen
        The mechanisms, each of which applies to the scenario.
    channel : mapping
        Arguments for the mechanism channel.

    Raises
    ------
    InputError
        If a scale would overflow, or a channel that was asked for by name can be had for no
        epsilon.
    """
    from pufferfish.calibration import calibrate
    from pufferfish.calibration.registry import NOISE

    found = Comparison([], [])
    failed: dict[str, PufferfishError] = {}
    with steps("calibrating", len(epsilons) * len(chosen.names)) as done:
        distances = _distances(scenario, chosen.names)
        for epsilon in epsilons:
            for mechanism in chosen.names:
                options = {} if mechanism in NOISE else channel
                try:
                    plan = calibrate(scenario, epsilon, mechanism, **options)
                except PufferfishError as error:
                    if mechanism in NOISE:
                        raise
                    who = "'all' leaves out" if mechanism in chosen.by_all else "left out is"
                    found.notes.append(f"{who} {mechanism} at {epsilon}: {error}")
                    failed[mechanism] = error
                else:
                    plan = plan.with_sensitivity(scenario)
                    reductions = _reductions(plan, distances)
                    found.results.append(Result(epsilon, plan, reductions))
                done()
    had = {result.plan.mechanism for result in found.results}
    for mechanism, why in failed.items():
        # What was asked for by name, and is not there at all, was asked for in vain.
        if not had or (mechanism not in had and mechanism not in chosen.by_all):
            raise why
    return found


def _distances(scenario: "Scenario", mechanisms: Sequence[str]) -> tuple[Fraction, ...]:
    """Return the distances that the baselines divide by epsilon, or nothing to compare with."""
    from pufferfish.calibration.l1 import l1
    from pufferfish.calibration.registry import NOISE
    from pufferfish.calibration.wasserstein import wasserstein
    from pufferfish.regions import has_region
    from pufferfish.unitloss import units_of

    if has_region(scenario) or not any(name in NOISE for name in mechanisms):
        return ()
    if units_of(scenario):  # these are for single rows
        return ()
    # Both scales are a distance over epsilon: epsilon 1 gives the distance.
    return tuple(Fraction(f(scenario, Fraction(1)).scale) for f in (wasserstein, l1))


def _reductions(plan: "Plan", distances: tuple[Fraction, ...]) -> tuple[float | None, ...]:
    if plan.scale is None or not distances:
        return _NOTHING
    return tuple(_reduction(plan.scale, plan.epsilon_exact, distance) for distance in distances)


def _reduction(scale: float, epsilon: Fraction, distance: Fraction) -> float | None:
    if distance == 0:
        return None
    saved = 1 - Fraction(scale) * epsilon / distance
    # The last bit of a scale that was rounded up is no reduction, and no increase either.
    return float(100 * saved) if abs(saved) > Fraction(1, 10**12) else 0.0
