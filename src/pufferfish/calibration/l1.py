# SPDX-License-Identifier: Apache-2.0
"""``l1``: the scale diameter / epsilon, over each pair's own atoms."""

from fractions import Fraction

from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.rationals import float_up
from pufferfish.scenario import Scenario


def l1(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return Laplace noise of scale (x_n - x_1) / epsilon, the largest over adversaries and pairs.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels.
    epsilon : Fraction
        Above 0.

    Notes
    -----
    Source: the paper's theta for l1-sensitivity; theory, section 3.
    """
    widest = max(int(view.index[-1]) - int(view.index[0]) for view in scenario.views())
    step = scenario.lattice.step
    return DiscreteLaplace(float_up(widest * step / epsilon), step)
