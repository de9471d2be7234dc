# SPDX-License-Identifier: Apache-2.0
"""``l1``: the diameter of each pair's own atoms over epsilon."""

from fractions import Fraction

from pufferfish.calibration.root import noise_up
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario


def l1(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of scale (x_n - x_1) / epsilon, the largest over adversaries and pairs.

    The paper's scale for l1-sensitivity; theory, section 3.
    """
    step = scenario.lattice.step
    widest = max(int(view.index[-1] - view.index[0]) for view in scenario.views())
    return noise_up(widest * step / epsilon, step, epsilon)
