# SPDX-License-Identifier: Apache-2.0
"""``relaxed``: the paper's method, the larger of the two sides of the coupling."""

from fractions import Fraction

from pufferfish.calibration.roots import scale_of_sides
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.scenario import Scenario


def relaxed(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return Laplace noise of the least scale that satisfies every column and every row.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels.
    epsilon : Fraction
        Above 0.

    Raises
    ------
    InputError
        If the scale lies beyond every double, or levels without an order are given.

    Notes
    -----
    Source: Yang, Ding et al., arXiv 2601.06385, the bracketed root that its Algorithm 1 is for
    (not its lines, which can return a scale that is not private); theory, section 3.
    """
    return DiscreteLaplace(scale_of_sides(scenario, epsilon, max), scenario.lattice.step)
