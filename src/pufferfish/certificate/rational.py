# SPDX-License-Identifier: Apache-2.0
"""The rational argument: no mass travels further than epsilon * theta, so the loss is at most it.

Ball arithmetic never decides equality, and for A = {0}, B = {1} at theta = 1 / epsilon the loss
*is* epsilon. There exact integers decide (theory, section 8). Let D be the largest number of steps
with D * step / theta <= epsilon, in exact rationals (theta is the exact value of its double). If

    F_i(x) <= F_j(x + D)  and  F_j(x) <= F_i(x + D)  for every x,

then the quantile functions of the two secrets are nowhere further apart than D steps: with
x = F_i^-1(q) the first line gives q <= F_i(x) <= F_j(x + D), that is F_j^-1(q) <= F_i^-1(q) + D,
and the second line the other half. So the coupling by equal quantiles moves no mass further than
D steps, hence e^-|y-x|/theta <= e^epsilon e^-|y-x'|/theta for every coupled x, x' and every y;
summed over the coupling, the loss is at most epsilon. (The lines are also necessary for that: they
hold exactly if the wasserstein scale is at most theta.)
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.certificate.record import Case
from pufferfish.scenario import Scenario

#: Products of cumulated counts below this are exact in 64 bits.
_FITS = 2**63


def proved_by_distance(
    scenario: Scenario, scale: float, epsilon: Fraction, cases: Iterable[Case]
) -> frozenset[Case]:
    """Return the cases whose loss exact rationals prove to be at most epsilon.

    Parameters
    ----------
    scenario : Scenario
        Exact priors on a lattice.
    scale : float
        theta > 0, taken as the exact rational of the double.
    epsilon : Fraction
        The exact bound.
    cases : iterable of (int, (str, str))
        Adversary and pair; each costs time linear in the support.

    Returns
    -------
    frozenset of (int, (str, str))
        Those of the cases for which no mass travels further than ``epsilon * scale``.
    """
    cases = tuple(cases)
    if not cases:
        return frozenset()
    index = scenario.lattice.index
    reach = _steps_within(epsilon * Fraction(scale) / scenario.lattice.step, int(index[-1]))
    # Position of the last atom that is at most ``reach`` steps above each atom.
    last = np.searchsorted(index, index + reach, side="right") - 1
    return frozenset(case for case in cases if _within(scenario, case, last))


def _steps_within(distance: Fraction, longest: int) -> int:
    """Return the largest whole number of steps in a distance, cut at the whole range."""
    return min(math.floor(distance), longest)


def _within(scenario: Scenario, case: Case, last: npt.NDArray[np.intp]) -> bool:
    prior = scenario.priors[case[0]]
    i, j = prior.row(case[1][0]), prior.row(case[1][1])
    first = _cumulated(prior.counts[i], prior.totals[i], prior.totals[j])
    second = _cumulated(prior.counts[j], prior.totals[j], prior.totals[i])
    return bool((first <= second[last]).all()) and bool((second <= first[last]).all())


def _cumulated(counts: npt.NDArray[Any], own: int, other: int) -> npt.NDArray[Any]:
    """Return the cumulated masses as whole numbers, over a denominator that the pair shares."""
    factor = other // math.gcd(own, other)
    if counts.dtype == object or own * factor >= _FITS:
        summed: npt.NDArray[Any] = np.cumsum(counts.astype(object)) * factor
        return summed
    return np.cumsum(counts, dtype=np.int64) * np.int64(factor)
