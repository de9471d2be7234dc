# SPDX-License-Identifier: Apache-2.0
"""``l1``: the scale diameter / epsilon, over each pair's own atoms."""

from fractions import Fraction

import numpy as np

from pufferfish.calibration.rounding import scale_up
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.scenario import Scenario


def l1(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return Laplace noise of scale (x_n - x_1) / epsilon, the largest over adversaries and pairs.

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
    Source: the paper's theta for l1-sensitivity; theory, section 3.
    """
    index, step = scenario.lattice.index, scenario.lattice.step
    widest = 0
    for prior in scenario.priors:
        ends = {}
        for secret in scenario.protected:
            atoms = np.flatnonzero(prior.counts[prior.row(secret)])
            ends[secret] = int(index[atoms[0]]), int(index[atoms[-1]])
        for pair in scenario.pairs:
            low = min(ends[secret][0] for secret in pair)
            widest = max(widest, *(ends[secret][1] - low for secret in pair))
    return DiscreteLaplace(scale_up(widest * step / epsilon, epsilon), step)
