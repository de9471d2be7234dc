# SPDX-License-Identifier: Apache-2.0
"""Results of ``calibrate``: one plan per epsilon and mechanism, and how much noise it saves."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pufferfish.cli.progress import steps

if TYPE_CHECKING:
    from pufferfish.plan import Plan
    from pufferfish.scenario import Scenario

#: The mechanisms that every other one is compared with, chosen or not.
BASELINES = ("wasserstein", "l1")


@dataclass(frozen=True)
class Result:
    """One line of the comparison.

    Attributes
    ----------
    epsilon : str
        As the user wrote it.
    plan : Plan
        The calibrated mechanism.
    reductions : tuple of (float or None), shape (2,)
        By how many per cent its scale is below those of wasserstein and l1; None where these are
        0 themselves.
    """

    epsilon: str
    plan: "Plan"
    reductions: tuple[float | None, ...]


def compare(
    scenario: "Scenario", epsilons: Sequence[str], mechanisms: Sequence[str]
) -> list[Result]:
    """Calibrate every mechanism for every epsilon.

    Parameters
    ----------
    scenario : Scenario
        What is protected.
    epsilons, mechanisms : sequences of str
        What was asked for, each once.

    Raises
    ------
    InputError
        If the scenario has no lattice, or a scale would overflow.
    """
    from pufferfish.calibration import calibrate, method_named

    # Levels without an order end here, before anything is computed.
    _ = scenario.lattice
    results = []
    with steps("calibrating", len(epsilons) * len(mechanisms)) as done:
        # These two scales are a distance over epsilon: epsilon 1 gives the distance.
        distances = [
            Fraction(method_named(name).calibrate(scenario, Fraction(1)).scale)
            for name in BASELINES
        ]
        for epsilon in epsilons:
            for mechanism in mechanisms:
                plan = calibrate(scenario, epsilon, mechanism)
                reductions = tuple(_reduction(plan, distance) for distance in distances)
                results.append(Result(epsilon, plan, reductions))
                done()
    return results


def _reduction(plan: "Plan", distance: Fraction) -> float | None:
    if distance == 0:
        return None
    saved = 1 - Fraction(plan.scale) * plan.epsilon_exact / distance
    # The last bit of a scale that was rounded up is no reduction, and no increase either.
    return float(100 * saved) if abs(saved) > Fraction(1, 10**12) else 0.0
