# SPDX-License-Identifier: Apache-2.0
"""The extreme priors of a region for Laplace noise: near the output one thing, far from it another.

The likelihood e^-|y-x|/theta falls with the distance, whatever theta is. So the prior that makes
the output y likeliest is poured from y outwards, and the one that makes it least likely from the
farthest value inwards. Either is one set of weights within some distance of y and another beyond,
with one shell of atoms, at one distance, in between. Where the shell lies is found once, by
bisection; after that the extreme likelihoods of all outputs are differences of running sums, at a
cost linear in the support.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.loss import _pass, log_likelihoods
from pufferfish.regions import Box, Concrete
from pufferfish.robust.columns import doubles

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shells:
    """The part of some weights that is nearest to each output, up to a given mass.

    Masses are exact: numerators over one denominator, Python integers.

    Attributes
    ----------
    weights : list of int, shape (n,)
    first, last : int64 arrays, shape (n,)
        For every output, the slice of the atoms that are wholly within.
    beyond_first, beyond_last : int64 arrays, shape (n,)
        The slice of those that are within or on the shell.
    distance : int64 array, shape (n,)
        Of the shell from the output, in lattice steps.
    on, off : arrays of int, shape (n,)
        The mass of the shell that counts as near, and that which counts as far.
    """

    weights: list[int]
    first: IntArray
    last: IntArray
    beyond_first: IntArray
    beyond_last: IntArray
    distance: IntArray
    on: Any
    off: Any


def shells_of(index: IntArray, numerators: Any, denominator: int, mass: int) -> Shells:
    """Find the shells.

    Parameters
    ----------
    index : int64 array, shape (n,)
        The atoms in lattice steps, increasing.
    numerators : sequence of int, shape (n,)
        The weights, over the denominator.
    denominator : int
    mass : int
        How much of them is near, over the denominator.
    """
    whole = [int(c) for c in numerators]
    sums = np.array([0, *accumulate(whole)], dtype=object)
    goal = min(mass, sums[-1])
    low, high = _search(index, doubles(sums, denominator), goal / denominator)
    first, last, beyond_first, beyond_last, within, shell = _around(index, sums, low, high)
    wrong = np.flatnonzero((within > goal) | ((goal - within > shell) & (high < index[-1])))
    if len(wrong):
        # Rounding misplaced a shell by less than 1e-15 of mass. Far from all other mass that
        # would still be a large part of a likelihood: search again in whole numbers.
        low[wrong], high[wrong] = _search(index, sums, goal, wrong)
        first, last, beyond_first, beyond_last, within, shell = _around(index, sums, low, high)
    on = np.minimum(goal - within, shell)
    return Shells(
        whole,
        first,
        last,
        beyond_first,
        beyond_last,
        np.minimum(high, index[-1]),
        on,
        shell - on,
    )


def _search(
    index: IntArray, sums: Any, goal: Any, outputs: IntArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return the largest distance within which there is not more than the goal, and the next.

    The former is -1 where the output's own atom has more.
    """
    places = index if outputs is None else index[outputs]
    low = np.full(len(places), -1, dtype=np.int64)
    high = np.full(len(places), int(index[-1]) + 1, dtype=np.int64)
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        first, last = _within(index, places, middle)
        few = np.asarray(sums[last] - sums[first] <= goal, dtype=bool)
        few &= middle <= index[-1]
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return low, high


def _around(index: IntArray, sums: Any, low: IntArray, high: IntArray) -> tuple[Any, ...]:
    """Return the slices within either distance, and the exact mass of the inner and the shell."""
    first, last = _within(index, index, low)
    beyond_first, beyond_last = _within(index, index, np.minimum(high, index[-1]))
    within = sums[last] - sums[first]
    shell = sums[beyond_last] - sums[beyond_first] - within
    return first, last, beyond_first, beyond_last, within, shell


def _within(index: IntArray, places: IntArray, distance: IntArray) -> tuple[IntArray, IntArray]:
    """Return the slice of atoms within a distance of each place; empty for a negative one."""
    if index[-1] == len(index) - 1:  # without a gap places are positions
        ends = np.maximum(places - distance, 0), np.minimum(places + distance, index[-1]) + 1
        return np.minimum(*ends), ends[1]
    first = np.searchsorted(index, places - distance, side="left")
    last = np.searchsorted(index, places + distance, side="right")
    return np.minimum(first, last), last


@dataclass(frozen=True, eq=False)
class Extreme:
    """<P, k_y> for the extreme P of one secret, at every output y.

    It is the sum of ``base`` over all atoms, of the near or the far part of the shells' weights,
    and of a ``jump`` of mass that was moved to the atom ``target[y]``; all over ``unit``.
    """

    index: IntArray
    base: list[int] | None
    shells: Shells
    near: bool
    jump: int
    target: IntArray
    unit: int

    @property
    def rest(self) -> Any:
        """What the shell of every output adds, shape (n,)."""
        return self.shells.on if self.near else self.shells.off

    @cached_property
    def _weights(self) -> FloatArray:
        return doubles(self.shells.weights, self.unit)

    @cached_property
    def _rest(self) -> FloatArray:
        return doubles(self.rest, self.unit)

    @cached_property
    def _base(self) -> FloatArray | None:
        return None if self.base is None else doubles(self.base, self.unit)

    def logs(self, u: float) -> FloatArray:
        """Return ln <P, k_y> at every atom y, shape (n,)."""
        index, shells = self.index, self.shells
        with np.errstate(divide="ignore", over="ignore"):
            weights = self._weights[None, :]
            left = _pass(index, weights, u)[0]
            right = _pass((index[-1] - index)[::-1], weights[:, ::-1], u)[0][::-1]
            part = self._near(left, right, u) if self.near else self._far(left, right, u)
            part = np.logaddexp(part, np.log(self._rest) - shells.distance * u)
            if self._base is not None:
                part = np.logaddexp(part, log_likelihoods(index, self._base[None, :], u)[0])
            if self.jump:
                moved = math.log(self.jump) - math.log(self.unit)
                part = np.logaddexp(part, moved - abs(index - index[self.target]) * u)
        return np.asarray(part, dtype=np.float64)

    def _far(self, left: FloatArray, right: FloatArray, u: float) -> FloatArray:
        return np.logaddexp(
            self._before(left, self.shells.beyond_first, u),
            self._after(right, self.shells.beyond_last, u),
        )

    def _near(self, left: FloatArray, right: FloatArray, u: float) -> FloatArray:
        index, shells = self.index, self.shells
        inner = _log_less(left, self._before(left, shells.first, u))
        beyond = np.full(len(index), -np.inf)
        beyond[:-1] = right[1:] - np.diff(index) * u  # strictly to the right of y
        outer = _log_less(beyond, self._after(right, shells.last, u))
        part = np.logaddexp(inner, outer)
        return np.where(shells.first < shells.last, part, -np.inf)

    def _before(self, left: FloatArray, first: IntArray, u: float) -> FloatArray:
        """Return ln of what lies before atom ``first``, as seen from each y."""
        at = np.maximum(first - 1, 0)
        seen = left[at] - (self.index - self.index[at]) * u
        return np.where(first > 0, seen, -np.inf)

    def _after(self, right: FloatArray, last: IntArray, u: float) -> FloatArray:
        n = len(self.index)
        at = np.minimum(last, n - 1)
        seen = right[at] - (self.index[at] - self.index) * u
        return np.where(last < n, seen, -np.inf)

    def prior_at(self, y: int) -> FloatArray:
        """Return the extreme P for the output at atom y, in doubles, shape (n,)."""
        masses, shell = self.masses_at(y)
        p = doubles(masses, self.unit)
        # All of a shell is equally far: share what counts among its atoms.
        rest = int(self.rest[y])
        if rest:
            weights = doubles([self.shells.weights[x] for x in shell], self.unit)
            p[shell] += weights * (rest / self.unit / weights.sum())
        return p

    def masses_at(self, y: int) -> tuple[list[int], list[int]]:
        """Return the extreme masses for the output at atom y but for the shell, and its atoms."""
        shells = self.shells
        first, last = int(shells.first[y]), int(shells.last[y])
        start, stop = int(shells.beyond_first[y]), int(shells.beyond_last[y])
        shell = [x for x in range(start, stop) if not first <= x < last]
        whole = range(first, last) if self.near else (*range(start), *range(stop, len(self.index)))
        masses = [0] * len(self.index) if self.base is None else list(self.base)
        for x in whole:
            masses[x] += shells.weights[x]
        masses[int(self.target[y])] += self.jump
        return masses, shell


def extremes(region: Concrete, row: int, index: IntArray) -> tuple[Extreme, Extreme]:
    """Return the largest and the smallest likelihoods of one secret's region.

    Parameters
    ----------
    region : Box or Ball
    row : int
        The secret's row in it.
    index : int64 array, shape (n,)
        The atoms in lattice steps, increasing from 0.
    """
    n = len(index)
    itself = np.arange(n, dtype=np.int64)
    if isinstance(region, Box):
        d = region.denominator
        lower: list[int] = region.lower[row].tolist()
        room = region.upper[row] - region.lower[row]
        rest = d - sum(lower)
        poured = shells_of(index, room, d, rest)
        spared = shells_of(index, room, d, sum(room) - rest)
        return (
            Extreme(index, lower, poured, True, 0, itself, d),
            Extreme(index, lower, spared, False, 0, itself, d),
        )
    total = region.totals[row] * region.radius.denominator
    masses = region.centre[row] * region.radius.denominator
    moved = region.radius.numerator * region.totals[row]
    stays = shells_of(index, masses, total, total - moved)
    taken = shells_of(index, masses, total, moved)
    farthest = np.where(index * 2 >= index[-1], 0, n - 1).astype(np.int64)
    return (
        Extreme(index, None, stays, True, moved, itself, total),
        Extreme(index, None, taken, False, moved, farthest, total),
    )


def _log_less(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return ln(exp(a) - exp(b)) for b <= a; -inf where rounding made b the larger."""
    with np.errstate(invalid="ignore", divide="ignore"):
        less = a + np.log1p(-np.exp(np.minimum(b - a, 0.0)))
    return np.where(a == -np.inf, -np.inf, less)
