# SPDX-License-Identifier: Apache-2.0
"""``exact``: theta*, the least scale of Laplace noise that keeps the loss within epsilon."""

from collections.abc import Mapping
from fractions import Fraction

from pufferfish.calibration.root import find_root, noise_up
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.loss.passes import LARGEST_U
from pufferfish.loss.problem import Releases
from pufferfish.loss.proof import prove
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: A factor that is found in doubles is never taken to be better than this.
_LEAST_MARGIN = 1e-13
#: Up to so many cells the search ends in balls where doubles know the factor no better than this.
_COARSE = ((2_000, 1e-12), (20_000, 1e-11), (200_000, 1e-9), (4_000_000, 1e-6))
#: Atoms of the smaller problems on which the search of a large one starts.
_SMALL = 1024
#: At this u there is hardly any noise.
_NARROW = 100.0


def exact(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the least scale with loss(theta) <= epsilon; 0 where the column meets it.

    The loss is the largest over all priors of a region, and over all rows of one person where
    these are known. Theory, sections 2, 5 and 6. (Plans under a confidence come from a walk.)
    """
    step = scenario.lattice.step

    def private(noise: DiscreteLaplace) -> bool:
        return prove(scenario, {0: (noise,)}, epsilon).holds

    unchanged = DiscreteLaplace(0.0, step)
    if private(unchanged):
        return unchanged
    steps = least_factor(scenario, {0: Fraction(1)}, {}, epsilon, epsilon)
    # Where what is hidden is a whole number of steps, a margin may not lift theta* above its share.
    whole = round(steps * epsilon) / epsilon
    if whole < steps <= whole * (1 + Fraction(1, 10**8)):
        tied = noise_up(step * whole, step, epsilon)
        if private(tied):
            return tied
    return noise_up(step * steps, step, epsilon)


def least_factor(
    scenario: Scenario, rates: Mapping[int, Fraction], previous: Releases, epsilon: Fraction,
    left: Fraction, unknown: int = 0,
) -> Fraction:  # fmt: skip
    """Return the least t with which further noise keeps the loss within epsilon, from above.

    The noise on column c has the rate ``rates[c] / t`` per step. ``left`` is what ``previous``
    leaves of what everything may cost: whatever the distributions are, noise whose worst cases,
    for all rows of one person, are at most that will do. It has to be so for ``unknown`` rows of
    one person, of which the scenario knows nothing.
    """
    axes = scenario.product.axes
    widest = sum(int(lattice_of(axes[c]).index[-1]) * rate for c, rate in rates.items())
    safe = max(1, unknown, *scenario.row_numbers) * widest / left
    low = float(1 / safe) if safe else 0.0
    if epsilon <= 0 or not 0 < low < LARGEST_U:
        return safe
    try:
        loss = RateLoss(scenario, rates, previous)
    except GridTooLarge:
        return safe
    # Of people of whom too little is known only worst cases count; they may decide alone.
    alone = loss.unknown and loss.worst(LARGEST_U)[0] <= epsilon
    found = Fraction(0) if alone else _search(loss, scenario, epsilon, low)
    return min(safe, max(found, max(unknown, loss.unknown) * widest / left))


def _search(loss: RateLoss, scenario: Scenario, epsilon: Fraction, low: float) -> Fraction:
    """Return the root as 1 / u with its margin: in doubles, or in balls where they are too coarse.

    ``low`` is a u that is private.
    """
    goal, u = float(epsilon), low
    error = loss.error / goal
    if error < 1e-3:
        tolerance = max(error, _LEAST_MARGIN)
        u, slope = find_root(loss, goal, low, _start(loss, goal, low), tolerance, tolerance)
        margin = min(max(error / slope, _LEAST_MARGIN), 1e-3)
        cells = loss.size * len(scenario.protected) * len(scenario.priors)
        if margin <= next((coarse for most, coarse in _COARSE if cells <= most), 1):
            return (1 + Fraction(margin)) / Fraction(u)
    bits = 128 + epsilon.denominator.bit_length()
    u, _ = find_root(loss.in_balls(bits), goal, low, u, 1e-14, 2e-16)
    return (1 + Fraction(1, 10**15)) / Fraction(u)


def _start(loss: RateLoss, goal: float, low: float) -> float:
    """Return a first u: the root of a smaller problem where the support is large.

    Gathering neighbours answers where theta is many atoms wide, some stretches of the support
    where it is few.
    """
    if loss.size <= 8 * _SMALL:
        return low
    u = max(low, min(2 * goal + 2, _NARROW))  # where few atoms need noise, it is narrow
    for smaller in loss.smaller(_SMALL):
        if smaller.worst(_NARROW)[0] > goal * (1 + 1e-6):
            u, _ = find_root(smaller, goal, low, low, 1e-3, 1e-3)
            if u / low * goal < 0.3 * _SMALL:
                break  # theta is several cells wide
    return u
