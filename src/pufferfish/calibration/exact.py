# SPDX-License-Identifier: Apache-2.0
"""``exact``: theta*, the least scale of Laplace noise that keeps the loss within epsilon."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from pufferfish.calibration.coupling import scale_of_sides
from pufferfish.calibration.root import find_root, noise_up
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.loss.problem import Releases, Unknown, problems_of
from pufferfish.loss.proof import prove
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: What rounding may do to a loss in doubles.
_FLOAT_ERROR = 2e-14
#: A factor that is found in doubles is never taken to be better than this.
_LEAST_MARGIN = 1e-13
#: Where doubles know it no better than this, the search ends in balls, up to so many cells.
_COARSE, _FEW_CELLS = 1e-10, 20_000


def exact(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the least scale with loss(theta) <= epsilon; 0 where the column meets it.

    The loss is the largest over all priors of a region, and over all rows of one person where
    these are known. Theory, sections 2, 5 and 6.
    """
    step = scenario.lattice.step
    if prove(scenario, {0: (DiscreteLaplace(0.0, step),)}, epsilon).holds:
        return DiscreteLaplace(0.0, step)
    scale = step * least_factor(scenario, {0: Fraction(1)}, {}, epsilon, epsilon)
    if not scenario.has_region and scenario.unit is None and _may_tie(scenario, scale, epsilon):
        # A margin may not lift theta* above the scale of a side, which it can be equal to.
        scale = min(scale, Fraction(scale_of_sides(scenario, epsilon, min)))
    return noise_up(scale, step, epsilon)


def _may_tie(scenario: Scenario, scale: Fraction, epsilon: Fraction) -> bool:
    """Whether theta* may be the scale of a side, or that is so soon known that it is no matter.

    It is where the scale hides a whole number of steps, or one secret has a single value.
    """
    if scenario.cells <= _FEW_CELLS:
        return True
    hidden = scale * epsilon / scenario.lattice.step
    return abs(hidden - round(hidden)) <= hidden / 10**8 or any(
        np.count_nonzero(prior.counts[prior.row(secret)]) == 1
        for prior in scenario.priors
        for secret in scenario.protected
    )


def least_factor(
    scenario: Scenario,
    rates: Mapping[int, Fraction],
    previous: Releases,
    epsilon: Fraction,
    left: Fraction,
) -> Fraction:
    """Return the least t with which further noise keeps the loss within epsilon, from above.

    The noise on column c has the rate ``rates[c] / t`` per step. ``left`` is what ``previous``
    leaves of what everything may cost: whatever the distributions are, noise whose worst cases,
    for all rows of one person, are at most that will do.
    """
    axes = scenario.product.axes
    one = {c: (*previous.get(c, ()), DiscreteLaplace(1.0, lattice_of(axes[c]).step)) for c in rates}
    widest = sum(
        (int(lattice_of(axes[c]).index[-1]) * rate for c, rate in rates.items()), Fraction(0)
    )
    rows = max((s.rows for strata in scenario.strata for s in strata), default=1)
    safe = rows * widest / left
    if epsilon <= 0:
        return safe
    try:
        problems = problems_of(scenario, {**previous, **one})
        if any(isinstance(p, Unknown) and p.rows == rows for p in problems):
            return safe
        found = _search(scenario, rates, previous, epsilon, float(1 / safe))
    except GridTooLarge:
        return safe
    unknown = max((p.rows for p in problems if isinstance(p, Unknown)), default=0)
    return min(safe, max(found, unknown * widest / left))


def _search(
    scenario: Scenario,
    rates: Mapping[int, Fraction],
    previous: Releases,
    epsilon: Fraction,
    low: float,
) -> Fraction:
    """Return the root as 1 / u with its margin: in doubles, or in balls where they are too coarse.

    ``low`` is a u that is private.
    """
    goal, start = float(epsilon), low
    error = _FLOAT_ERROR / goal
    factor, margin = Fraction(1) / Fraction(low), Fraction(0)
    if error < 1e-3:
        found = find_root(
            RateLoss(scenario, rates, previous), goal, low, start, error, max(error, _LEAST_MARGIN)
        )
        start = found.u
        margin = Fraction(min(max(error / found.slope, _LEAST_MARGIN), 1e-3))
        factor = (1 + margin) / Fraction(found.u)
    if (margin <= _COARSE and error < 1e-3) or scenario.cells > _FEW_CELLS:
        return factor
    bits = 128 + epsilon.denominator.bit_length()
    found = find_root(RateLoss(scenario, rates, previous, bits=bits), goal, low, start, 1e-14)
    return (1 + Fraction(1, 10**15)) / Fraction(found.u)
