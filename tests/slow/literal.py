# SPDX-License-Identifier: Apache-2.0
"""The paper's definitions (arXiv 2601.06385) written down as they stand: dense NumPy, line by line.

A careful reader's first program. The coupling is the double difference of the joint cumulative
function min(F_i(x), F_j(x')) as an n x n matrix; a column x' is satisfied when
sum_x exp(|x-x'|/theta) pi(x, x') <= e^eps P_j(x'); each column gets a bisection of its own, then
each row, and the larger of the two sides is the relaxed scale. No sparsity, no logarithms of
sums: where it is slow or loses digits, that is the point of comparing with it.

Masses may be integers over one common total (then the coupling has exact ties) or floats (then
sums such as .1 + .2 against .3 leave slivers of 5e-17 that travel as far as they like).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Masses = npt.NDArray[Any]  # shape (n,): integers over a common total, floats, or fractions


def joint_cumulative(first: Masses, second: Masses) -> Masses:
    """F(x, x') = min(F_i(x), F_j(x')), shape (n, n): rows x (first secret), columns x' (second)."""
    joint: Masses = np.minimum.outer(np.cumsum(first), np.cumsum(second))
    return joint


def coupling(first: Masses, second: Masses) -> Masses:
    """pi*(x, x') = F(x, x') - F(x-1, x') - F(x, x'-1) + F(x-1, x'-1), shape (n, n)."""
    joint = joint_cumulative(first, second)
    n = len(joint)
    padded = np.zeros((n + 1, n + 1), dtype=joint.dtype)
    padded[1:, 1:] = joint
    pi: Masses = padded[1:, 1:] - padded[:-1, 1:] - padded[1:, :-1] + padded[:-1, :-1]
    return pi


def distances(points: Floats) -> Floats:
    """|x - x'|, shape (n, n)."""
    return np.abs(points[:, None] - points[None, :])


def line_scale(distance: Floats, mass: Floats, epsilon: float, width: float) -> float:
    """Least theta with sum exp(distance/theta) mass <= e^eps sum(mass), from the private side.

    Plain bisection on theta between 0 and (largest distance)/epsilon until the bracket is
    `width` wide relative to its upper end.
    """
    if not np.any(mass > 0):
        return 0.0
    travelled = np.where(mass > 0, distance, 0.0)  # keeps 0 * exp(huge) from becoming nan
    limit = np.exp(epsilon) * np.sum(mass)
    low, high = 0.0, float(np.max(travelled)) / epsilon
    while high - low > width * high:
        theta = (low + high) / 2
        if np.sum(np.exp(travelled / theta) * mass) <= limit:
            high = theta
        else:
            low = theta
    return high


def sides(
    points: Floats, first: Masses, second: Masses, epsilon: float, width: float = 1e-13
) -> tuple[float, float]:
    """Scales of the rows (given x) and of the columns (given x'): loops over lines, n x n work.

    Parameters
    ----------
    points : array, shape (n,)
        Sorted values.
    first, second : array, shape (n,)
        Masses of the two secrets at the points, over the same total.
    epsilon : float
        Bound on the privacy loss.
    width : float
        Relative width at which a bisection stops.
    """
    distance = distances(points)
    pi = coupling(first, second).astype(np.float64)
    with np.errstate(over="ignore"):  # exp may be infinite: the line is then not satisfied
        rows = [line_scale(distance[k], pi[k], epsilon, width) for k in range(len(points))]
        columns = [line_scale(distance[:, k], pi[:, k], epsilon, width) for k in range(len(points))]
    return max(rows), max(columns)


def wasserstein(points: Floats, first: Masses, second: Masses, epsilon: float) -> float:
    """max |x - x'| over the support of the coupling, divided by epsilon."""
    pi = coupling(first, second)
    return float(np.max(np.where(pi > 0, distances(points), 0.0))) / epsilon


def relaxed(
    points: Floats, first: Masses, second: Masses, epsilon: float, width: float = 1e-13
) -> float:
    """The larger of the two sides."""
    return max(sides(points, first, second, epsilon, width))


def condition(
    points: Floats, first: Masses, second: Masses, epsilon: float, theta: float
) -> Floats:
    """I(x, x'; theta) = (exp(|x-x'|/theta) - e^eps) pi*(x, x'), shape (n, n), per unit of total.

    The paper's first figure: no entry is positive at the wasserstein scale; at the relaxed scale
    some are, while no column sums to more than 0.
    """
    pi = coupling(first, second) / np.sum(first)
    travelled = np.where(pi > 0, distances(points), 0.0)
    excess: Floats = (np.exp(travelled / theta) - np.exp(epsilon)) * pi.astype(np.float64)
    return excess


def loss(points: Floats, first: Masses, second: Masses, theta: float) -> float:
    """max_y |ln L_i(y)/L_j(y)| over the points, L_s = K P_s with K(y, x) = exp(-|y-x|/theta)."""
    kernel = np.exp(-distances(points) / theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(kernel @ first) - np.log(kernel @ second))
    return float(np.nanmax(ratios))
