# SPDX-License-Identifier: Apache-2.0
"""``relaxed``: the paper's method, the larger of the two sides of the coupling."""

from fractions import Fraction

from pufferfish.calibration.coupling import scale_of_sides
from pufferfish.calibration.root import noise_up
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario


def relaxed(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the least scale that satisfies every column and every row of the coupling.

    arXiv 2601.06385: the bracketed root that its Algorithm 1 is for, not its lines, which can
    return a scale that is not private; theory, section 3.
    """
    return noise_up(scale_of_sides(scenario, epsilon, max), scenario.lattice.step, epsilon)
