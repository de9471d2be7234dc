# SPDX-License-Identifier: Apache-2.0
"""What is known of a loss without the likelihoods of outputs.

Whole numbers tell losses that are 0 or infinite, and how far noise lets mass travel. The worst
case of one release, its max divergence, holds whatever is known of the value: diameter / theta for
noise, the largest ln M(y|x) / M(y|x') for a channel, infinite where a zero stands against a
positive chance (theory, section 6). Diameters over scales stay fractions: ten times a tenth is one.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pufferfish.loss.balls import log_ends
from pufferfish.loss.certificate import LossBound, added
from pufferfish.loss.kernel import likelihoods
from pufferfish.loss.problem import Problem, Releases, Where, largest
from pufferfish.loss.support_function import still_extremes
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import INT64_SAFE, precision
from pufferfish.priors.ambiguity import Region
from pufferfish.priors.betting import ball
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Support, lattice_of

#: Pairs times atoms up to which distances are found pair by pair.
_TRANSPORT = 1 << 23
#: Of the balls.
_BITS = 128


def loses_nothing(problem: Problem) -> bool:
    """Whether the loss is exactly 0: the points of all pairs are the same behind the channels.

    Nothing else matters, for the kernel of Laplace noise is invertible. Points need not have all of
    the mass: those of one shape may still differ in how much they have.
    """
    lowest = []
    for own in problem.points:
        divisor = math.gcd(int(np.gcd.reduce(own.masses, axis=None)), own.total)
        lowest.append((own.total // divisor, own.masses // divisor))
    return bool(lowest) and all(
        lowest[i][0] == lowest[j][0] and np.array_equal(lowest[i][1], lowest[j][1])
        for i, j in problem.pairs
    )


def causes(problem: Problem) -> Any:
    """Return which points can cause which outputs, shape (secrets, cells)."""
    found = np.stack([own.masses != 0 for own in problem.points])
    for at, _ in problem.noises:
        # Noise reaches every place.
        found = np.asarray(found.any(axis=at + 1, keepdims=True))
    return np.broadcast_to(found, (len(found), *problem.shape)).reshape(len(found), -1)


def infinite(problem: Problem) -> Where | None:
    """Return an output that one secret of a pair can cause and the other cannot; None: none."""
    if problem.pure_noise and all(own.masses.any() for own in problem.points):
        return None
    if problem.points:
        tops = bottoms = causes(problem)
    else:
        regions = [own for own in problem.sets if isinstance(own, Region)]
        columns = list(problem.axes[0].kinds.values())
        ends = np.array([still_extremes(own, columns) for own in regions], dtype=object)
        tops, bottoms = ends[:, 0] > 0, ends[:, 1] > 0
    found = (largest(tops, bottoms, sides, np.greater) for sides in problem.comparisons)
    return next((where for apart, where in found if apart), None)


def farthest(problem: Problem) -> Fraction | None:
    """Return a rational bound of the loss where all axes are noise alone, None for others.

    On a single axis it is W/theta_eff, W the Wasserstein-infinity distance (theory, section 3),
    exact where balls never decide equality (section 9). For regions, on several axes, or where
    there are very many pairs it is the sum of diameter/theta_eff. None also for points that have
    a part of the mass only: what is missing may be more of one than of another.
    """
    if not problem.pure_noise or any(own.masses.sum() != own.total for own in problem.points):
        return None
    points, many = problem.points, len(problem.pairs) * problem.cells > _TRANSPORT
    if many or not points or len(problem.axes) > 1:
        return sum((int(axis.places[-1]) * axis.rate for axis in problem.axes), Fraction(0))
    [axis] = problem.axes
    longest = 0
    for pair in problem.pairs:
        both = [points[k] for k in pair]
        common = math.lcm(*(own.total for own in both))
        kind = np.int64 if common < INT64_SAFE else object
        sums = [np.cumsum(own.masses.astype(kind) * (common // own.total)) for own in both]
        # Both quantile functions are constant between neighbouring levels of either.
        for own in sums:
            levels = own[own > 0]
            first, second = (axis.places[np.searchsorted(side, levels)] for side in sums)
            longest = max(longest, int(np.abs(first - second).max()))
    return longest * axis.rate


def worst_case(mechanism: Mechanism, support: Support) -> Fraction | None:
    """Return the largest ln k(y|x) / k(y|x') of one mechanism; None: infinite.

    x and x' are any values of the support. It is exact for noise, and rounded up for a channel.
    """
    if isinstance(mechanism, DiscreteLaplace):
        lattice = lattice_of(support)
        diameter = int(lattice.index[-1]) * lattice.step
        if diameter and (mechanism.scale == 0 or (lattice.step / mechanism.step).denominator != 1):
            return None
        return diameter / Fraction(mechanism.scale) if diameter else Fraction(0)
    columns, _ = likelihoods(support, mechanism, np.arange(support.size))
    columns = [column for column in columns if any(column)]
    if any(min(column) == 0 for column in columns):
        return None
    ratio = max(Fraction(max(column), min(column)) for column in columns)
    with precision(_BITS):
        return log_ends(ball(ratio))[1]


@dataclass(frozen=True, eq=False)
class Term:
    """One release, with its worst case; ``at``: the column's position, None for an unknown one."""

    column: str
    mechanism: Mechanism
    support: Support
    at: int | None = None

    @cached_property
    def worst(self) -> Fraction | None:
        """What it counts with where nothing else is known of it; None: infinite."""
        return worst_case(self.mechanism, self.support)


def terms_of(scenario: Scenario, releases: Releases) -> list[Term]:
    """Return all releases of the columns of a scenario, each with its worst case."""
    columns, axes = scenario.product.columns, scenario.product.axes
    return [
        Term(columns[at] or "the column", mechanism, axes[at], at)
        for at, own in releases.items()
        for mechanism in own
    ]


def worst_sum(releases: Iterable[Term], rows: int = 1) -> LossBound:
    """Return the sum of all worst cases, for so many rows of one person."""
    named = tuple((release.column, added([release.worst], rows)) for release in releases)
    upper = added(worst for _, worst in named)
    return LossBound(upper, Fraction(0), "worst-case sum", terms=named, rows=rows)
