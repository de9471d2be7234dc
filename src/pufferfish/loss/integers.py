# SPDX-License-Identifier: Apache-2.0
"""What whole numbers decide: losses that are 0 or infinite, and how far mass travels."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.loss.problem import Problem, largest
from pufferfish.loss.support_function import still_extremes
from pufferfish.loss.witness import Where
from pufferfish.numbers import INT64_SAFE
from pufferfish.priors.ambiguity import Region

#: Pairs times atoms up to which distances are found pair by pair.
_TRANSPORT = 1 << 23


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
