# SPDX-License-Identifier: Apache-2.0
"""The loss of one problem in doubles as a function of the rates of its noisy axes.

One column with noise alone (:class:`Line`): plain numbers in cache-sized pieces. All others
(:class:`Logs`): in logarithms, joint problems axis by axis, regions by their extreme distributions,
which do not depend on the rate.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pufferfish.loss.kernel import Problem
from pufferfish.loss.recursion import FLOOR, ExtremePass, PlainPass, noise_pass, quotients
from pufferfish.loss.support_function import extremes, still_extremes
from pufferfish.numbers import FloatArray, IntArray
from pufferfish.priors.ambiguity import Point, Region

#: Losses beyond this are worked out in logarithms.
_LARGE_LOSS = 300.0
#: Atoms from which a witness is looked at within 60 theta only: the rest weighs below 1e-26.
_LONG = 5000
_WINDOW = 60.0


class Attained(NamedTuple):
    """Where a loss is attained: secret ``first`` is likelier at that output than ``second``.

    The position of the problem in its RateLoss; adversary, secrets and output (its position on the
    grid, in C order) in that problem.
    """

    problem: int
    adversary: int
    first: int
    second: int
    cell: int


#: A ratio or its logarithm, the two secrets and the cell.
_Largest = tuple[float, int, int, int]
Found = list[tuple[float, Attained]]


def largest(
    tops: FloatArray,
    bottoms: FloatArray,
    pairs: Sequence[tuple[int, int]],
    all_pairs: bool,
    over: Callable[..., Any] = np.subtract,
) -> _Largest:
    """Return the largest ``over(tops[i], bottoms[j])`` over pairs of different secrets, and where.

    Both have shape (m, cells). What is not a number (0/0) is skipped.
    """
    ordered = [both for i, j in pairs for both in ((i, j), (j, i))]
    sides: Iterable[tuple[FloatArray, FloatArray]]
    if not all_pairs:
        sides = ((tops[i], bottoms[j]) for i, j in ordered)
    elif tops is bottoms:
        sides = [(tops.max(axis=0), bottoms.min(axis=0))]
    else:  # the region of one secret may hold two very different distributions
        sides = ((np.delete(tops, j, axis=0).max(axis=0), low) for j, low in enumerate(bottoms))
    value, number, cell = -math.inf, 0, 0
    for k, (high, low) in enumerate(sides):
        gap = over(high, low)
        at = int(np.argmax(gap))
        if math.isnan(gap[at]):
            gap = np.where(np.isnan(gap), -math.inf, gap)
            at = int(np.argmax(gap))
        if gap[at] > value:
            value, number, cell = float(gap[at]), k, at
    if not all_pairs:
        return value, *ordered[number], cell
    j = int(bottoms[:, cell].argmin()) if tops is bottoms else number
    others = np.delete(np.arange(len(tops)), j)
    return value, int(others[tops[others, cell].argmax()]), j, cell


def in_doubles(point: Point) -> FloatArray:
    """Return the probabilities of a point."""
    if point.masses.dtype == object:
        flat = quotients(point.masses.reshape(-1).tolist(), point.total)
        return flat.reshape(point.masses.shape)
    probabilities: FloatArray = point.masses / float(point.total)
    return probabilities


class Line:
    """Points on one column with noise alone."""

    def __init__(
        self,
        number: int,
        index: IntArray,
        masses: list[FloatArray],
        pairs: Sequence[tuple[int, int]],
        all_pairs: bool,
    ) -> None:
        self.number, self.index, self.masses = number, index, masses
        self.pairs, self.all_pairs = pairs, all_pairs
        self.passes = [PlainPass(index, own) for own in masses]
        self.places = index.astype(np.float64)

    def worst(self, rates: FloatArray) -> Found:
        """Return the worst witness of each piece of the support."""
        u, found = float(rates[0]), []
        for rho, own in enumerate(self.passes):
            for at, piece in own.pieces(u):
                ratio, i, j, cell = largest(piece, piece, self.pairs, self.all_pairs, np.divide)
                found.append((math.log(ratio), Attained(self.number, rho, i, j, at + cell)))
        if max(found)[0] > _LARGE_LOSS:
            found = []
            for rho, masses in enumerate(self.masses):
                logs = noise_pass(self.index, np.log(masses), u)
                value, *where = largest(logs, logs, self.pairs, self.all_pairs)
                found.append((value, Attained(self.number, rho, *where)))
        return found

    def at(self, witness: Attained, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-ratio at a witness and its slope, in one look at the support."""
        u, y = float(rates[0]), float(self.places[witness.cell])
        both, cut = [witness.first, witness.second], slice(None)
        if len(self.places) >= _LONG:
            ends = np.searchsorted(self.places, [y - _WINDOW / u, y + _WINDOW / u])
            cut = slice(*ends.tolist())
        distance = np.abs(self.places[cut] - y)
        p = self.masses[witness.adversary][both, cut]
        weights = np.exp(distance * -u)
        totals = p @ weights
        if totals.min() < FLOOR:
            logs = np.log(self.masses[witness.adversary][both])
            return _at(logs, [np.abs(self.places - y)], rates)
        moments = p @ (weights * distance) / totals
        return math.log(totals[0]) - math.log(totals[1]), np.array([moments[1] - moments[0]])

    def gathered(self, atoms: int) -> "Line":
        """Return the same masses gathered in cells of equal width, about so many."""
        width = max(1, int(self.index[-1]) // atoms)
        cells = self.index // width
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        masses = [np.add.reduceat(own, starts, axis=1) for own in self.masses]
        return Line(self.number, cells[starts] * width, masses, self.pairs, self.all_pairs)

    def stretches(self, number: int, atoms: int) -> "Line":
        """Return some evenly spread runs of so many neighbouring atoms."""
        firsts = np.linspace(0, len(self.index) - atoms, number).astype(np.int64)
        chosen = np.unique((firsts[:, None] + np.arange(atoms)).ravel())
        masses = [own[:, chosen] for own in self.masses]
        return Line(self.number, self.index[chosen], masses, self.pairs, self.all_pairs)


#: A point by its logarithms on the grid; a region by its extreme distributions, or, without noise,
#: by the logarithms of its largest and smallest likelihoods.
_Belief = FloatArray | tuple[ExtremePass, ExtremePass] | tuple[FloatArray, FloatArray]


class Logs:
    """All other problems whose loss is finite."""

    def __init__(self, number: int, problem: Problem) -> None:
        self.number, self.problem = number, problem
        self.beliefs = [[self._belief(own) for own in row] for row in problem.adversaries]

    def _belief(self, own: Point | Region) -> _Belief:
        if isinstance(own, Point):
            logs: FloatArray = np.log(in_doubles(own))
            return logs
        axis = self.problem.axes[0]
        if axis.noisy:
            top, bottom = extremes(own, axis.places)
            return ExtremePass(top, axis.places), ExtremePass(bottom, axis.places)
        sides, unit = still_extremes(own, axis.columns), own.unit * axis.unit
        high, low = (np.log(quotients(side, unit)) for side in sides)
        return high, low

    def worst(self, rates: FloatArray) -> Found:
        """Return the worst witness of each adversary."""
        found = []
        for rho, beliefs in enumerate(self.beliefs):
            ends = [self._ends(own, rates) for own in beliefs]
            tops = np.stack([top for top, _ in ends])
            bottoms = np.stack([low for _, low in ends]) if self.problem.regions else tops
            value, *where = largest(tops, bottoms, self.problem.pairs, self.problem.all_pairs)
            found.append((value, Attained(self.number, rho, *where)))
        return found

    def _ends(self, own: _Belief, rates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ln of the largest and the smallest likelihood of every output, flat."""
        if isinstance(own, tuple):
            high, low = (
                side.logs(float(rates[0])) if isinstance(side, ExtremePass) else side
                for side in own
            )
            return high, low
        logs = own
        for (at, axis), u in zip(self.problem.noises, rates, strict=True):
            lines = np.ascontiguousarray(np.moveaxis(logs, at, -1))
            logs = np.moveaxis(noise_pass(axis.places, lines, float(u)), -1, at)
        flat = logs.reshape(-1)
        return flat, flat

    def at(self, witness: Attained, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-ratio at a witness and its slopes, in one look at the masses."""
        place: list[Any] = list(np.unravel_index(witness.cell, self.problem.shape))
        noises, rows = self.problem.noises, []
        distances = []
        for at, axis in noises:
            distances.append(np.abs(axis.places - axis.places[place[at]]).astype(float))
            place[at] = slice(None)
        for side, k in enumerate((witness.first, witness.second)):
            own = self.beliefs[witness.adversary][k]
            chosen = own[side] if isinstance(own, tuple) else own[tuple(place)]
            if isinstance(chosen, ExtremePass):
                extreme = chosen.extreme
                masses = extreme.masses_at(noises[0][1].places, witness.cell)
                chosen = np.log(quotients(masses, extreme.region.unit))
            rows.append(chosen if noises else chosen.reshape(-1)[witness.cell % chosen.size])
        return _at(np.stack(rows), distances, rates)


def _at(
    logs: FloatArray, distances: Sequence[FloatArray], rates: FloatArray
) -> tuple[float, FloatArray]:
    """Return ln of the ratio of two sums of exp(l - sum of distance * rate), and its slopes."""
    spread = np.meshgrid(*distances, indexing="ij", sparse=True)
    terms = logs - sum(far * u for far, u in zip(spread, rates, strict=True))
    tops = terms.reshape(2, -1).max(axis=1)
    weights = [np.exp(own - top) for own, top in zip(terms, tops, strict=True)]
    sums = [float(own.sum()) for own in weights]
    value = float(tops[0] - tops[1]) + math.log(sums[0]) - math.log(sums[1])
    slopes = [
        float((weights[1] * far).sum()) / sums[1] - float((weights[0] * far).sum()) / sums[0]
        for far in spread
    ]
    return value, np.array(slopes)
