# SPDX-License-Identifier: Apache-2.0
"""The loss of one problem in doubles as a function of the rates of its axes.

One column with noise alone (:class:`Line`): plain numbers in cache-sized pieces. Joint problems
(:class:`Grid`): axis by axis, from logarithms to logarithms. Regions (:class:`Sets`): their extreme
distributions, which do not depend on the rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pufferfish.loss.kernel import Axis, Problem
from pufferfish.loss.recursion import FLOOR, ExtremePass, PlainPass, noise_pass, quotients
from pufferfish.loss.support_function import extremes, value_extremes
from pufferfish.numbers import FloatArray, IntArray
from pufferfish.priors.ambiguity import Point, Region

#: Losses beyond this are worked out in logarithms.
_LARGE_LOSS = 300.0
#: Atoms from which a witness is looked at within 60 theta only: the rest weighs below 1e-26.
_LONG = 5000
_WINDOW = 60.0


@dataclass(frozen=True)
class Attained:
    """Where a loss is attained: secret ``first`` is likelier at that output than ``second``.

    Attributes
    ----------
    problem : int
        Position among the problems of a RateLoss.
    adversary, first, second : int
        Positions in that problem.
    cell : int
        Position of the output on its grid, in C order.
    """

    problem: int
    adversary: int
    first: int
    second: int
    cell: int


Found = list[tuple[float, Attained]]


class Evaluator(Protocol):
    """The loss of one problem as a function of the rates of its axes."""

    def worst(self, rates: FloatArray) -> Found:
        """Return witnesses with their losses, the worst among them."""

    def at(self, witness: Attained, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-ratio at a witness, and its slope in each rate."""


def evaluator_of(number: int, problem: Problem) -> Evaluator:
    """Return the evaluator of a problem whose loss is finite, at that position."""
    sets = [own for beliefs in problem.adversaries for own in beliefs]
    if any(isinstance(own, Region) for own in sets):
        return Sets(number, problem)
    if problem.pure_noise and len(problem.axes) == 1:
        masses = [
            np.stack([in_doubles(own) for own in beliefs if isinstance(own, Point)])
            for beliefs in problem.adversaries
        ]
        return Line(number, problem.axes[0].places, masses, problem.pairs, problem.all_pairs)
    return Grid(number, problem)


def in_doubles(point: Point) -> FloatArray:
    """Return the probabilities of a point."""
    if point.masses.dtype == object:
        flat = quotients(point.masses.reshape(-1).tolist(), point.total)
        return flat.reshape(point.masses.shape)
    probabilities: FloatArray = point.masses / float(point.total)
    return probabilities


@dataclass(frozen=True)
class Constant:
    """A loss that is linear in the rates: worst cases, or infinity."""

    number: int
    base: float
    slopes: FloatArray

    def worst(self, rates: FloatArray) -> Found:
        """Return its value."""
        return [(self.base + float(self.slopes @ rates), Attained(self.number, 0, 0, 0, 0))]

    def at(self, witness: Attained, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return its value and slopes."""
        return self.base + float(self.slopes @ rates), self.slopes


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
        """Return the worst witnesses of each piece of the support."""
        u, found = float(rates[0]), []
        with np.errstate(all="ignore"):
            for rho, own in enumerate(self.passes):
                for first, piece in own.pieces(u):
                    found += [
                        (math.log(ratio), Attained(self.number, rho, i, j, first + k))
                        for ratio, i, j, k in self._ratios(piece)
                    ]
            if max(value for value, _ in found) > _LARGE_LOSS:
                found = []
                for rho, masses in enumerate(self.masses):
                    logs = noise_pass(self.index, np.log(masses), u)
                    found += _reduced(logs, logs, self.pairs, self.all_pairs, self.number, rho)
        return found

    def _ratios(self, piece: FloatArray) -> list[tuple[float, int, int, int]]:
        """Return the largest ratios of a piece: ratio, both secrets, atom."""
        if self.all_pairs and len(piece) > 2:
            high, low = piece.max(axis=0), piece.min(axis=0)
            ratio = high / low
            k = int(np.argmax(ratio))
            column = piece[:, k]
            return [(float(ratio[k]), int(np.argmax(column)), int(np.argmin(column)), k)]
        found = []
        for i, j in self.pairs:
            ratio = piece[i] / piece[j]
            high, low = int(np.argmax(ratio)), int(np.argmin(ratio))
            found += [(float(ratio[high]), i, j, high), (1 / float(ratio[low]), j, i, low)]
        return found if len(self.pairs) == 1 else [max(found)]

    def at(self, witness: Attained, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-ratio and its slope, in one look at the support."""
        u, y = float(rates[0]), float(self.places[witness.cell])
        lo, hi = 0, len(self.places)
        if hi >= _LONG:
            lo = int(np.searchsorted(self.places, y - _WINDOW / u))
            hi = int(np.searchsorted(self.places, y + _WINDOW / u, side="right"))
        distance = np.abs(self.places[lo:hi] - y)
        p = self.masses[witness.adversary][[witness.first, witness.second], lo:hi]
        weights = np.exp(distance * -u)
        totals = p @ weights
        if totals.min() < FLOOR:
            distance = np.abs(self.places - y)
            logs = np.log(self.masses[witness.adversary][[witness.first, witness.second]] + 0.0)
            value, slope = _at(logs, [distance], rates)
            return value, slope
        moments = p @ (weights * distance)
        slope = moments[1] / totals[1] - moments[0] / totals[0]
        return math.log(totals[0]) - math.log(totals[1]), np.array([slope])

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


class Grid:
    """Points on several axes, or with channels."""

    def __init__(self, number: int, problem: Problem) -> None:
        self.number, self.problem = number, problem
        with np.errstate(all="ignore"):
            self.starts = [
                [_start(own, problem.axes) for own in beliefs if isinstance(own, Point)]
                for beliefs in problem.adversaries
            ]

    def worst(self, rates: FloatArray) -> Found:
        """Return the worst witness of each adversary."""
        found: Found = []
        with np.errstate(all="ignore"):
            for rho, starts in enumerate(self.starts):
                logs = np.stack([self._logs(start, rates) for start in starts])
                pairs, everyone = self.problem.pairs, self.problem.all_pairs
                found += _reduced(logs, logs, pairs, everyone, self.number, rho)
        return found

    def _logs(self, array: FloatArray, rates: FloatArray) -> FloatArray:
        """Return ln L on the whole grid, flat; the axis in turn is the last one."""
        for axis, u in zip(self.problem.axes, rates, strict=True):
            for d in range(len(axis.shape)):
                array = np.ascontiguousarray(np.moveaxis(array, 0, -1))
                if axis.noisy and d == len(axis.shape) - 1:
                    array = noise_pass(axis.places, array, float(u))
        return array.reshape(-1)

    def at(self, witness: Attained, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-ratio and its slopes, in one look at the masses."""
        place = np.unravel_index(witness.cell, self.problem.shape)
        chosen: list[Any] = list(place)
        distances: list[FloatArray | None] = []
        at = 0
        for axis in self.problem.axes:
            at += len(axis.shape)
            if axis.noisy:
                chosen[at - 1] = slice(None)
                distances.append(np.abs(axis.places - axis.places[place[at - 1]]).astype(float))
            else:
                distances.append(None)
        starts = self.starts[witness.adversary]
        logs = np.stack([starts[k][tuple(chosen)] for k in (witness.first, witness.second)])
        return _at(logs, distances, rates)


class Sets:
    """Regions (and points beside them) on one column: noise, or none at all."""

    def __init__(self, number: int, problem: Problem) -> None:
        self.number, self.problem = number, problem
        axis = problem.axes[0]
        self.axis, self.noisy = axis, axis.noisy
        self.passes: list[list[tuple[ExtremePass, ExtremePass] | FloatArray]] = []
        self.ends: list[tuple[FloatArray, FloatArray]] = []
        with np.errstate(all="ignore"):
            for beliefs in problem.adversaries:
                if axis.noisy:
                    self.passes.append([self._pass(own) for own in beliefs])
                else:
                    both = [_still_ends(axis, own) for own in beliefs]
                    tops, bottoms = (np.log(np.stack(side)) for side in zip(*both, strict=True))
                    self.ends.append((tops, bottoms))
        self.known: dict[Attained, FloatArray] = {}

    def _pass(self, own: Point | Region) -> tuple[ExtremePass, ExtremePass] | FloatArray:
        if isinstance(own, Point):
            return np.log(in_doubles(own))
        top, bottom = extremes(own, self.axis.places)
        return ExtremePass(top, self.axis.places), ExtremePass(bottom, self.axis.places)

    def worst(self, rates: FloatArray) -> Found:
        """Return the worst witness of each adversary."""
        found: Found = []
        with np.errstate(all="ignore"):
            for rho in range(len(self.problem.adversaries)):
                tops, bottoms = self._ends(rho, float(rates[0]))
                pairs, everyone = self.problem.pairs, self.problem.all_pairs
                found += _reduced(tops, bottoms, pairs, everyone, self.number, rho)
        return found

    def _ends(self, rho: int, u: float) -> tuple[FloatArray, FloatArray]:
        if not self.noisy:
            return self.ends[rho]
        tops, bottoms = [], []
        for own in self.passes[rho]:
            if isinstance(own, tuple):
                tops.append(own[0].logs(u))
                bottoms.append(own[1].logs(u))
            else:
                tops.append(noise_pass(self.axis.places, own, u))
                bottoms.append(tops[-1])
        return np.stack(tops), np.stack(bottoms)

    def at(self, witness: Attained, rates: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-ratio and its slope: the extreme distributions stay what they are."""
        i, j, y = witness.first, witness.second, witness.cell
        if not self.noisy:
            tops, bottoms = self.ends[witness.adversary]
            return float(tops[i, y] - bottoms[j, y]), np.zeros(1)
        if witness not in self.known:
            own = self.passes[witness.adversary]
            rows = []
            for side, belief in enumerate((own[i], own[j])):
                if isinstance(belief, tuple):
                    extreme = belief[side].extreme
                    masses = extreme.masses_at(self.axis.places, y)
                    with np.errstate(divide="ignore"):
                        rows.append(np.log(quotients(masses, extreme.region.unit)))
                else:
                    rows.append(belief)
            self.known[witness] = np.stack(rows)
        distance = np.abs(self.axis.places - self.axis.places[y]).astype(float)
        return _at(self.known[witness], [distance], rates)


def _at(
    logs: FloatArray, distances: Sequence[FloatArray | None], rates: FloatArray
) -> tuple[float, FloatArray]:
    """Return ln of the ratio of two sums of exp(l - sum of distance * rate), and its slopes."""
    noisy = [(k, d) for k, d in enumerate(distances) if d is not None]
    spread = []
    exponent = np.zeros(())
    for at, (k, distance) in enumerate(noisy):
        shape = [1] * len(noisy)
        shape[at] = len(distance)
        spread.append(distance.reshape(shape))
        exponent = exponent + spread[-1] * rates[k]
    terms = logs - exponent
    tops = [float(own.max()) for own in terms]
    weights = [np.exp(own - top) for own, top in zip(terms, tops, strict=True)]
    sums = [float(own.sum()) for own in weights]
    slopes = np.zeros(len(distances))
    for (k, _), far in zip(noisy, spread, strict=True):
        first, second = (float((w * far).sum()) / s for w, s in zip(weights, sums, strict=True))
        slopes[k] = second - first
    value = tops[0] - tops[1] + math.log(sums[0]) - math.log(sums[1])
    return value, slopes


def _reduced(
    tops: FloatArray,
    bottoms: FloatArray,
    pairs: Sequence[tuple[int, int]],
    everyone: bool,
    number: int,
    rho: int,
) -> Found:
    """Return the largest tops[i] - bottoms[j] over pairs of different secrets; 0/0 is skipped."""
    ordered: list[tuple[Any, Any]] = [both for i, j in pairs for both in ((i, j), (j, i))]
    if everyone and len(tops) > 2:
        # The best two of each are enough: a secret is not compared with itself, for its own
        # region may hold two very different distributions.
        high = np.argpartition(-tops, 1, axis=0)[:2]
        low = np.argpartition(bottoms, 1, axis=0)[:2]
        ordered = [(i, j) for i in high for j in low]
    cells = np.arange(tops.shape[1])
    best = (0.0, Attained(number, rho, *pairs[0], 0))
    for i, j in ordered:
        gap = tops[i, cells] - bottoms[j, cells]
        gap = np.where(np.isnan(gap) | (np.asarray(i) == j), -1.0, gap)
        cell = int(np.argmax(gap))
        if gap[cell] > best[0]:
            first, second = (int(np.broadcast_to(k, cells.shape)[cell]) for k in (i, j))
            best = (float(gap[cell]), Attained(number, rho, first, second, cell))
    return [best]


def _still_ends(axis: Axis, own: Point | Region) -> tuple[FloatArray, FloatArray]:
    """Return the largest and smallest likelihood of every output of one column without noise."""
    if isinstance(own, Region) and axis.columns is None:
        top, bottom = value_extremes(own)
        return quotients(top, own.unit), quotients(bottom, own.unit)
    kernel = np.eye(len(axis.atoms)) if axis.columns is None else _likelihoods(axis)
    if isinstance(own, Point):
        both = kernel @ in_doubles(own)
        return both, both
    order = np.argsort(-kernel, axis=1, kind="stable")
    sides = []
    for ranked in (order, order[:, ::-1]):
        k = np.take_along_axis(kernel, ranked, axis=1)
        least = quotients(own.least, own.unit)[ranked]
        room = quotients(own.room, own.unit)[ranked]
        before = np.cumsum(room, axis=1) - room
        masses = least + np.clip(own.spread / own.unit - before, 0.0, room)
        sides.append((masses * k).sum(axis=1) + own.free / own.unit * k[:, 0])
    return sides[0], sides[1]


def _likelihoods(axis: Axis) -> FloatArray:
    """Return the likelihoods of all outputs of a channel, each over its largest."""
    weights = np.array([w / max(axis.weights) for w in axis.weights])
    return np.array([[v / max(c) for v in c] for c in axis.columns or ()]) * weights


def _start(point: Point, axes: Sequence[Axis]) -> FloatArray:
    """Return the logarithms of one secret's masses behind all channels, before the noise."""
    array, at = in_doubles(point), 0
    for axis in axes:
        if axis.columns is not None:
            moved, kernel = np.moveaxis(array, at, -1), _likelihoods(axis)
            if axis.noisy:
                array = np.moveaxis(moved[..., None, :] * kernel, (-2, -1), (at, at + 1))
            else:
                lines = moved.reshape(-1, moved.shape[-1]) @ np.ascontiguousarray(kernel.T)
                array = np.moveaxis(lines.reshape(*moved.shape[:-1], len(kernel)), -1, at)
        at += len(axis.shape)
    logs: FloatArray = np.log(array)
    return logs
