# SPDX-License-Identifier: Apache-2.0
"""What whole numbers decide: losses that are 0, and how far mass travels.

Whether the loss is 0 depends only on the masses behind the channels: the kernel of Laplace noise is
invertible.
"""

import math
from fractions import Fraction

import numpy as np

from pufferfish.loss.kernel import Problem
from pufferfish.numbers import INT64_SAFE, CountArray
from pufferfish.priors.ambiguity import Point

#: Pairs times atoms up to which distances are found pair by pair.
_TRANSPORT = 1 << 23


def loses_nothing(problem: Problem) -> bool:
    """Whether the loss is exactly 0: the points of all pairs are the same behind the channels."""
    if problem.regions:
        return False
    points = [problem.points(rho) for rho in range(len(problem.adversaries))]
    return all(_alike(own[i], own[j]) for own in points for i, j in problem.linked)


def _alike(one: Point, other: Point) -> bool:
    """Whether two points are the same."""
    first, second = one.masses, other.masses
    if first.dtype != object and second.dtype != object:
        p, q = first / float(one.total), second / float(other.total)
        if bool((np.abs(p - q) > 2.0**-50 * p).any()):
            return False
    first, second = _over_one(one, other)
    return bool(np.all(first == second))


def _over_one(one: Point, other: Point) -> tuple[CountArray, CountArray]:
    """Return the masses of two points as whole numbers over one denominator."""
    common = math.lcm(one.total, other.total)
    if common >= INT64_SAFE:
        one, other = (Point(own.masses.astype(object), own.total) for own in (one, other))
    return one.masses * (common // one.total), other.masses * (common // other.total)


def farthest(problem: Problem) -> Fraction | None:
    """Return a rational bound of the loss where all axes are noise alone, None for others.

    On a single axis it is W/theta_eff, W the Wasserstein-infinity distance. Matched by equal
    quantiles no mass travels further: e^-|y-x|/theta <= e^(W/theta) e^-|y-x'|/theta for all coupled
    x, x' and every y; summed over the coupling, the loss is at most W/theta. It is exact where
    balls never decide equality (theory, section 8). For regions, on several axes, or where there
    are very many pairs it is the sum of diameter/theta_eff.
    """
    if not problem.pure_noise:
        return None
    pairs = [(rho, pair) for rho in range(len(problem.adversaries)) for pair in problem.pairs]
    many = len(pairs) * problem.cells > _TRANSPORT
    if many or problem.regions or len(problem.axes) > 1:
        return sum((int(axis.places[-1]) * axis.rate for axis in problem.axes), Fraction(0))
    [axis] = problem.axes
    longest = 0
    for rho, (i, j) in pairs:
        points = problem.points(rho)
        sums = [np.cumsum(masses) for masses in _over_one(points[i], points[j])]
        # Both quantile functions are constant between neighbouring levels of either.
        for own in sums:
            levels = own[own > 0]
            first, second = (axis.places[np.searchsorted(side, levels)] for side in sums)
            longest = max(longest, int(np.abs(first - second).max()))
    return longest * axis.rate
