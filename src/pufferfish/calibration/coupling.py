# SPDX-License-Identifier: Apache-2.0
"""The comonotone coupling of a pair: its cells, with cumulative sums that tie exactly.

The sorted (quantile) coupling is the one with the joint CMF min(F_i(x), F_j(x')); it has at most
n_i + n_j - 1 cells. Two cumulative sums that are equal must be seen to be equal: a rounding error
would leave a sliver of mass that travels across the whole range (theory, section 3).
"""

from __future__ import annotations
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any
import numpy as np
from pufferfish.numbers import INT64_SAFE, CountArray, IntArray
from pufferfish.priors.scenario import PairView

@dataclass(frozen=True, eq=False)
class Coupling:
    """The cells of the comonotone coupling of P_i (x) and P_j (x'), in increasing order.

    Attributes
    ----------
    first, second : int64 array, shape (c,)
        Positions among the pair's atoms: x and x' of each cell; both never decrease.
    distance : int64 array, shape (c,)
        |x - x'| in units of the lattice step.
    mass : integer array, shape (c,)
        Mass of each cell, exact, in units of 1 / ``total``; int64 or Python integers.
    total : int
        The common denominator.
    """

    first: IntArray
    second: IntArray
    distance: IntArray
    mass: CountArray
    total: int

    @cached_property
    def largest_distance(self) -> int:
        """The Wasserstein-infinity distance of the pair, in units of the lattice step."""
        return int(self.distance.max())


def comonotone(view: PairView) -> Coupling:
    """Return the comonotone coupling of a pair, exactly and in linear time.

    Parameters
    ----------
    view : PairView
        The pair over its own atoms.

    Notes
    -----
    Source: the paper's pi* (its last term read as F(x-1, x'-1)); theory, section 3.
    """
    total = math.lcm(view.total_first, view.total_second)
    ends_first, at_first = _scaled_ends(view.counts_first, total // view.total_first, total)
    ends_second, at_second = _scaled_ends(view.counts_second, total // view.total_second, total)
    # Cut [0, total] at every cumulative sum of either side; equal sums are one cut.
    if np.array_equal(ends_first, ends_second):
        cuts = ends_first
        first, second = at_first, at_second
    else:
        cuts, first_k, second_k = _merge(ends_first, ends_second)
        first, second = at_first[first_k], at_second[second_k]
    mass = np.diff(cuts, prepend=cuts.dtype.type(0) if cuts.dtype != object else 0)
    distance = np.abs(view.index[first] - view.index[second])
    return Coupling(first, second, distance, mass, total)


def _scaled_ends(counts: CountArray, factor: int, total: int) -> tuple[Any, IntArray]:
    """Return the cumulative sums of the positive counts, times a factor, and their positions."""
    at = np.flatnonzero(counts)
    positive = counts if len(at) == len(counts) else counts[at]
    if total < INT64_SAFE and positive.dtype != object:
        ends = np.cumsum(positive)
        ends *= factor
        return ends, at
    running, sums = 0, []
    for c in positive.tolist():
        running += c
        sums.append(running * factor)
    return np.array(sums, dtype=np.int64 if total < INT64_SAFE else object), at


def _merge(ends_first: Any, ends_second: Any) -> tuple[Any, IntArray, IntArray]:
    """Merge two increasing sequences; for each cut, the position in either whose cell it closes.

    A stable sort of two sorted runs is a merge, and so linear.
    """
    both = np.concatenate([ends_first, ends_second])
    order = np.argsort(both, kind="stable")
    merged = both[order]
    from_first = order < len(ends_first)
    last_of_cut = np.ones(len(merged), dtype=bool)
    np.not_equal(merged[1:], merged[:-1], out=last_of_cut[:-1])
    closed_first = np.cumsum(from_first, dtype=np.int64)
    closed_second = np.arange(1, len(merged) + 1, dtype=np.int64) - closed_first
    # At a cut the cell belongs to the atom whose end is the cut, or else to the next to end.
    closed_first, closed_second = closed_first[last_of_cut], closed_second[last_of_cut]
    first = np.empty_like(closed_first)
    second = np.empty_like(closed_second)
    first[0] = second[0] = 0
    first[1:], second[1:] = closed_first[:-1], closed_second[:-1]
    return merged[last_of_cut], first, second
