# SPDX-License-Identifier: Apache-2.0
"""``wasserstein``: the largest distance that the comonotone coupling moves mass, over epsilon."""

from fractions import Fraction

from pufferfish.calibration.rounding import scale_up
from pufferfish.coupling import comonotone
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.scenario import Scenario


def wasserstein(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return Laplace noise of scale W / epsilon, W the largest distance in any pair's coupling.

    In one dimension the Wasserstein-infinity mechanism and the Kantorovich mechanism are the
    same: both come from the comonotone coupling.

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
    Source: Song, Wang, Chaudhuri 2017 (arXiv 1603.03977); Ding 2022 (arXiv 2201.07388); theory,
    section 3.
    """
    furthest = max(comonotone(view).largest_distance for view in scenario.views())
    step = scenario.lattice.step
    return DiscreteLaplace(scale_up(furthest * step / epsilon, epsilon), step)
