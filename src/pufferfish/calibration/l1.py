# SPDX-License-Identifier: Apache-2.0
"""``l1``: the scale diameter / epsilon, over each pair's own atoms."""

from fractions import Fraction

import numpy as np

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
    return DiscreteLaplace(float_up(widest * step / epsilon), step)
