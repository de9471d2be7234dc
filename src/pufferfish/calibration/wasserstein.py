# SPDX-License-Identifier: Apache-2.0
"""``wasserstein``: the largest distance of the comonotone coupling over epsilon."""

from fractions import Fraction

from pufferfish.calibration.coupling import comonotone
from pufferfish.calibration.root import noise_up
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario


def wasserstein(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of scale W / epsilon, W the largest distance in the coupling of any pair.

    In one dimension the Wasserstein-infinity mechanism (arXiv 1603.03977) and the Kantorovich
    mechanism (arXiv 2201.07388) both come from the comonotone coupling; theory, section 3.
    """
    step = scenario.lattice.step
    furthest = max(comonotone(view).largest_distance for view in scenario.views())
    return noise_up(furthest * step / epsilon, step, epsilon)
