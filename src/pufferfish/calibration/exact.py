# SPDX-License-Identifier: Apache-2.0
"""``exact``: theta*, the least scale of Laplace noise that keeps the loss within epsilon."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from pufferfish.calibration.relaxed import scale_of_sides
from pufferfish.calibration.root import find_root, noise_up
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.loss.problem import Releases
from pufferfish.loss.proof import prove
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: A factor that is found in doubles is never taken to be better than this.
_LEAST_MARGIN = 1e-13
#: Up to so many cells the search ends in balls where doubles know the factor no better than this.
_COARSE = ((20_000, 1e-11), (200_000, 1e-9), (4_000_000, 1e-6))
#: Atoms of the smaller problems on which the search of a large one starts.
_SMALL = 1024
#: At this u there is hardly any noise.
_NARROW = 100.0


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
        side = scale_of_sides(scenario, epsilon, min)
        if side < scale:
            return DiscreteLaplace(side, step)
    return noise_up(scale, step, epsilon)


def _may_tie(scenario: Scenario, scale: Fraction, epsilon: Fraction) -> bool:
    """Whether theta* may be the scale of a side, or that is so soon known that it is no matter.

    It is where the scale hides a whole number of steps, or one secret has a single value.
    """
    if scenario.cells <= _COARSE[0][0]:
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
    unknown: int = 0,
) -> Fraction:
    """Return the least t with which further noise keeps the loss within epsilon, from above.

    The noise on column c has the rate ``rates[c] / t`` per step. ``left`` is what ``previous``
    leaves of what everything may cost: whatever the distributions are, noise whose worst cases,
    for all rows of one person, are at most that will do. It has to be so for ``unknown`` rows of
    one person, of which the scenario knows nothing.
    """
    axes = scenario.product.axes
    widest = sum(
        (int(lattice_of(axes[c]).index[-1]) * rate for c, rate in rates.items()), Fraction(0)
    )
    rows = max((s.rows for strata in scenario.strata for s in strata), default=1)
    safe = max(rows, unknown) * widest / left
    low = float(1 / safe) if safe else 0.0
    if epsilon <= 0 or low == 0:
        return safe
    try:
        found = _search(scenario, rates, previous, epsilon, low)
    except GridTooLarge:
        return safe
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
    loss = RateLoss(scenario, rates, previous)
    error = loss.error / goal
    if error < 1e-3:
        tolerance = max(error, _LEAST_MARGIN)
        found = find_root(loss, goal, low, _start(loss, goal, low), tolerance, tolerance)
        start = found.u
        margin = min(max(error / found.slope, _LEAST_MARGIN), 1e-3)
        cells = loss.size * len(scenario.protected) * len(scenario.priors)
        if margin <= next((coarse for most, coarse in _COARSE if cells <= most), 1):
            return (1 + Fraction(margin)) / Fraction(start)
    bits = 128 + epsilon.denominator.bit_length()
    found = find_root(RateLoss(scenario, rates, previous, bits), goal, low, start, 1e-14, 2e-16)
    return (1 + Fraction(1, 10**15)) / Fraction(found.u)


def _start(loss: RateLoss, goal: float, low: float) -> float:
    """Return a first u: the root of a smaller problem where the support is large.

    Gathering neighbours answers where theta is many atoms wide, some stretches of the support
    where it is few.
    """
    if loss.size <= 8 * _SMALL:
        return low
    roots = []
    for smaller in (loss.coarser(_SMALL), loss.local(8, _SMALL)):
        if smaller is not None and smaller.worst(_NARROW)[0] > goal * (1 + 1e-6):
            roots.append(find_root(smaller, goal, low, low, 1e-3, 1e-3).u)
            if roots[0] / low * goal < 0.3 * _SMALL:
                break  # theta is several cells wide
    # Where the smaller ones are private without noise, few atoms need some, and narrow noise.
    return roots[-1] if roots else max(low, min(2 * goal + 2, _NARROW))
