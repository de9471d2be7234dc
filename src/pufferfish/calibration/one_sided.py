# SPDX-License-Identifier: Apache-2.0
"""``one-sided``: one side of the coupling is enough, so the smaller of the two."""

from fractions import Fraction

from pufferfish.calibration.roots import scale_of_sides
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.scenario import Scenario


def one_sided(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return Laplace noise of the smaller side's scale, per adversary and pair, then the largest.

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
    Source: theory, section 3 (the proof that one side suffices, for any coupling).
    """
    return DiscreteLaplace(scale_of_sides(scenario, epsilon, min), scenario.lattice.step)
