# SPDX-License-Identifier: Apache-2.0
"""``l1``: the diameter of each pair's own atoms over epsilon."""

from fractions import Fraction

import numpy as np

from pufferfish.calibration.root import noise_up
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario


def l1(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of scale (x_n - x_1) / epsilon, the largest over adversaries and pairs.

    The paper's scale for l1-sensitivity; theory, section 3.
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
    return noise_up(widest * step / epsilon, step, epsilon)
