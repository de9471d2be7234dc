# SPDX-License-Identifier: Apache-2.0
"""The extreme priors of a region for any likelihoods k_y(x) of one output: sort, then pour.

Over a box the largest <P, k> starts at the lower ends and pours the rest into the cells of the
largest k first; over a ball in total variation it takes mass from the cells of the smallest k,
emptying each before the next, and puts it on the largest (theory, section 5). Both are the
greedy answers of a fractional knapsack. O(n log n) for each output and secret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.loss import Attained
from pufferfish.regions import Box, Concrete
from pufferfish.scenario import Scenario


def extreme_prior(
    region: Concrete, row: int, likelihoods: Sequence[Any], largest: bool
) -> list[Fraction]:
    """Return the P of a secret's region at which <P, k> is largest, or smallest, exactly.

    Parameters
    ----------
    region : Box or Ball
        Over m secrets and n cells.
    row : int
        The secret's row in the region.
    likelihoods : sequence of numbers, shape (n,)
        k(x): the chance of one output for every cell, or anything in proportion to it; they are
        only compared, so any ordered numbers will do.
    largest : bool
        The maximum, or the minimum.

    Returns
    -------
    list of Fraction, shape (n,)
        Sums to exactly 1.
    """
    # The best cell first.
    order = sorted(range(len(likelihoods)), key=lambda x: likelihoods[x], reverse=largest)
    if isinstance(region, Box):
        d = region.denominator
        return [Fraction(c, d) for c in _poured(region.lower[row], region.upper[row], d, order)]
    masses = [Fraction(int(c), region.totals[row]) for c in region.centre[row]]
    return _moved(masses, region.radius, order)


def _poured(
    lower: Sequence[int], upper: Sequence[int], total: int, order: Sequence[int]
) -> list[int]:
    cells = [int(c) for c in lower]
    rest = total - sum(cells)
    for x in order:
        poured = min(rest, int(upper[x]) - cells[x])
        cells[x] += poured
        rest -= poured
    return cells


def _moved(masses: list[Fraction], radius: Fraction, order: Sequence[int]) -> list[Fraction]:
    cells = list(masses)
    left = radius
    for x in reversed(order):
        taken = min(left, cells[x])
        cells[x] -= taken
        left -= taken
    cells[order[0]] += radius - left
    return cells


def extreme_values(
    region: Concrete, likelihoods: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the largest and the smallest <P, k_y> for all secrets and outputs, in doubles.

    Parameters
    ----------
    region : Box or Ball
        Over m secrets and n_x cells.
    likelihoods : float64 array, shape (n_y, n_x)
        k_y(x) for every output y.

    Returns
    -------
    top, bottom : float64 arrays, shape (m, n_y)
    """
    order = np.argsort(-likelihoods, axis=1, kind="stable")
    sorted_k = np.take_along_axis(likelihoods, order, axis=1)
    sides = []
    for ranked, k in ((order, sorted_k), (order[:, ::-1], sorted_k[:, ::-1])):
        sides.append(np.vstack([_side(region, s, ranked, k) for s in range(_rows(region))]))
    return sides[0], sides[1]


def _side(region: Concrete, row: int, order: npt.NDArray[Any], k: npt.NDArray[Any]) -> Any:
    """Return the optimum of every output, its cells being ranked from the best to the worst."""
    if isinstance(region, Box):
        lower = doubles(region.lower[row], region.denominator)[order]
        room = doubles(region.upper[row] - region.lower[row], region.denominator)[order]
        rest = (region.denominator - sum(region.lower[row])) / region.denominator
        before = np.cumsum(room, axis=1) - room
        return ((lower + np.clip(rest - before, 0.0, room)) * k).sum(axis=1)
    masses = doubles(region.centre[row], region.totals[row])[order]
    before = np.cumsum(masses, axis=1) - masses
    stays = np.clip(float(1 - region.radius) - before, 0.0, masses)
    return (stays * k).sum(axis=1) + float(region.radius) * k[:, 0]


def columns_loss(
    scenario: Scenario, regions: Sequence[Concrete], likelihoods: npt.NDArray[np.float64]
) -> float:
    """Return the robust loss of a channel in doubles; ``inf`` where it is infinite.

    Parameters
    ----------
    scenario : Scenario
        Pairs and protected secrets.
    regions : sequence of Box or Ball
        One per adversary (:func:`pufferfish.regions.regions_of`).
    likelihoods : float64 array, shape (n_y, n_x)
        M(y | x), a row for every output.

    Returns
    -------
    float
        Not rounded up: a proven bound is what the certificate gives.

    Notes
    -----
    Theory, section 5. Outputs that no prior of a pair can cause are skipped.
    """
    pairs = ordered_pairs(scenario)
    found = []
    for rho, region in enumerate(regions):
        top, bottom = extreme_values(region, likelihoods)
        found.append(worst_output(top, bottom, pairs, rho)[0])
    return max(found)


def worst_output(
    top: npt.NDArray[np.float64],
    bottom: npt.NDArray[np.float64],
    pairs: Sequence[tuple[int, int]],
    rho: int,
) -> tuple[float, Attained]:
    """Return the largest ln top[i] / bottom[j] over ordered pairs and outputs, and where it is.

    Parameters
    ----------
    top, bottom : float64 arrays, shape (m, n_y)
        From :func:`extreme_values`, for the adversary in position ``rho``.
    pairs : sequence of (int, int)
        Rows of the two, each pair in both orders.
    rho : int

    Returns
    -------
    float
        At least 0; 0/0 is skipped, and x/0 is ``inf``.
    Attained
        Its ``atom`` is the position of the output.
    """
    worst, at = 1.0, Attained(rho, *pairs[0], 0)
    for i, j in pairs:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = top[i] / bottom[j]
        y = int(np.argmax(np.where(np.isnan(ratio), 0.0, ratio)))
        if ratio[y] > worst:
            worst, at = float(ratio[y]), Attained(rho, i, j, y)
    return math.log(worst), at


def ordered_pairs(scenario: Scenario) -> list[tuple[int, int]]:
    """Return the pairs as rows of the protected secrets, each in both orders."""
    place = {secret: k for k, secret in enumerate(scenario.protected)}
    return [(place[a], place[b]) for pair in scenario.pairs for a, b in permutations(pair)]


def doubles(numerators: Any, denominator: int) -> npt.NDArray[np.float64]:
    """Return integers over a denominator as doubles, each within two units in the last place."""
    try:
        whole = np.asarray(numerators, dtype=object).astype(np.float64)
        return np.asarray(whole / float(denominator), dtype=np.float64)
    except OverflowError:
        return np.array([int(c) / denominator for c in numerators], dtype=np.float64)


def _rows(region: Concrete) -> int:
    return len(region.lower if isinstance(region, Box) else region.centre)
