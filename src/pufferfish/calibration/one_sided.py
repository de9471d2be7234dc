# SPDX-License-Identifier: Apache-2.0
"""``one-sided``: one side of the coupling is enough, so the smaller of the two."""

from fractions import Fraction

from pufferfish.calibration.relaxed import scale_of_sides
from pufferfish.calibration.root import noise_up
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario


def one_sided(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the smaller side's scale for each adversary and pair, the largest of these.

    Theory, section 3, with the proof that one side suffices for any coupling.
    """
    return noise_up(scale_of_sides(scenario, epsilon, min), scenario.lattice.step, epsilon)
