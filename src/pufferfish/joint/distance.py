# SPDX-License-Identifier: Apache-2.0
"""The rational bound for one column: how far mass travels, over theta_eff.

Matched by equal quantiles, mass of one secret of a pair travels at most D (the Wasserstein-infinity
distance), so the loss is at most D / theta_eff (theory, sections 3 and 6). That number is exact
where ball arithmetic never decides equality: ten releases at a tenth of the budget fit.
"""

import math
from fractions import Fraction

import numpy as np

from pufferfish.arrays import INT64_SAFE, CountArray
from pufferfish.joint.problem import Problem


def distance_bound(problem: Problem) -> Fraction | None:
    """Return D / theta_eff for a single column with nothing but noise, None for others."""
    if len(problem.merged) != 1:
        return None
    [axis] = problem.merged
    if not axis.noisy or axis.columns is not None:
        return None
    longest = 0
    for masses, totals in zip(problem.masses, problem.totals, strict=True):
        for i, j in problem.pairs:
            one, other = _cumulated(masses[i], masses[j], totals[i], totals[j])
            # Both quantile functions are constant between neighbouring levels of either.
            for levels in (one[one > 0], other[other > 0]):
                first = axis.index[np.searchsorted(one, levels)]
                second = axis.index[np.searchsorted(other, levels)]
                longest = max(longest, int(np.abs(first - second).max()))
    return longest * axis.rate


def _cumulated(
    one: CountArray, other: CountArray, total: int, other_total: int
) -> tuple[CountArray, CountArray]:
    """Return both cumulated masses as whole numbers over one denominator."""
    divisor = math.gcd(total, other_total)
    if total * (other_total // divisor) >= INT64_SAFE:
        one, other = one.astype(object), other.astype(object)
    return np.cumsum(one) * (other_total // divisor), np.cumsum(other) * (total // divisor)
