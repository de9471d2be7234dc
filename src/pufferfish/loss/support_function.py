# SPDX-License-Identifier: Apache-2.0
"""The support function of a region in whole numbers: its extreme distributions for each output.

The largest <P, k> over a region pours what is free into the cells of the largest k first, the
smallest into those of the smallest k (theory, section 5). For Laplace noise the cells rank by their
distance from the output y, whatever theta is: near y one thing, far from it another, with at most
two atoms, at one distance, in between. So the extreme distributions of all n outputs are n cuts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from pufferfish.numbers import IntArray
from pufferfish.priors.ambiguity import Region


def still_extremes(region: Region, columns: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return the largest and the smallest <P, k_y> of all outputs without noise.

    ``columns``: k_y for each output, none for the value itself; the answer is over the region's
    unit, times that of the columns.
    """
    if columns:
        sides = zip(*(column_extremes(region, column) for column in columns), strict=True)
        tops, bottoms = map(list, sides)
        return tops, bottoms
    whole, alone = sum(region.room), len(region.room) == 1
    tops, bottoms = [], []
    for least, room in zip(region.least, region.room, strict=True):
        tops.append(least + min(region.spread, room) + region.free)
        # What does not fit elsewhere has to be here.
        forced = max(0, region.spread - (whole - room)) + (region.free if alone else 0)
        bottoms.append(least + forced)
    return tops, bottoms


def column_extremes(region: Region, column: Sequence[int]) -> tuple[int, int]:
    """Return the largest and the smallest <P, k> of one output."""
    upwards = sorted(range(len(column)), key=column.__getitem__)
    least = sum(mass * k for mass, k in zip(region.least, column, strict=True))
    found = []
    for ranked in (upwards[::-1], upwards):
        total, left = least + region.free * column[ranked[0]], region.spread
        for x in ranked:
            poured = min(left, region.room[x])
            total += poured * column[x]
            left -= poured
        found.append(total)
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Extreme:
    """The extreme P of one region for the Laplace likelihood of every output y.

    P is ``least``, plus the room within a slice around y (of the largest <P, k>) or outside of it
    (of the smallest), plus ``shell`` of the room at the next distance, plus ``free`` at one atom.

    The slice holds the atoms from ``first`` to before ``last``; ``shell`` (whole numbers) is what
    the one or two atoms at ``distance`` steps hold, ``target`` the atom of the free mass.
    """

    region: Region
    largest: bool
    first: IntArray
    last: IntArray
    shell: Any
    distance: IntArray
    target: IntArray


def extremes(region: Region, places: IntArray) -> tuple[Extreme, Extreme]:
    """Return the largest and the smallest <P, k_y> at all outputs of Laplace noise.

    ``places``: the n atoms in steps, increasing from 0.
    """
    sums = np.array([0, *accumulate(region.room)], dtype=object)
    itself = np.arange(len(places), dtype=np.int64)
    farthest = np.where(places * 2 >= places[-1], 0, len(places) - 1).astype(np.int64)
    near, far = (_reach(places, sums, mass) for mass in (region.spread, sums[-1] - region.spread))
    first, last = _within(places, near)
    shell = region.spread - (sums[last] - sums[first])
    top = Extreme(region, True, first, last, shell, near + 1, itself)
    # Farthest first: the nearest rooms stay empty, and part of the next.
    first, last = _within(places, far + 1)
    shell = region.spread - (sums[-1] - (sums[last] - sums[first]))
    bottom = Extreme(region, False, first, last, shell, far + 1, farthest)
    return top, bottom


def _reach(places: IntArray, sums: Any, mass: int) -> IntArray:
    """Return, for each atom, the largest distance within which there is not more than some mass.

    It is -1 where the atom itself has more, and at most the whole range.
    """
    low = np.full(len(places), -1, dtype=np.int64)
    high = np.full(len(places), int(places[-1]) + 1, dtype=np.int64)
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        first, last = _within(places, middle)
        few = np.asarray(sums[last] - sums[first] <= mass, dtype=bool)
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return low


def _within(places: IntArray, distance: IntArray) -> tuple[IntArray, IntArray]:
    """Return the slice of atoms within a distance of each atom; empty for a negative one."""
    first = np.searchsorted(places, places - distance, side="left")
    last = np.searchsorted(places, places + distance, side="right")
    return np.minimum(first, last), last
