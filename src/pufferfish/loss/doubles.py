# SPDX-License-Identifier: Apache-2.0
"""RateLoss: the loss for searching, as a function of the rate of further noise; unproved.

One column of points with noise alone is passed in plain numbers, in cache-sized pieces. All others
go in logarithms: joint problems axis by axis, regions by their extreme distributions, which do not
depend on the rate. The proof shares the whole numbers of kernel and problem with this search, and
no arithmetic, with one exception: losses too small for doubles are searched in balls.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from pufferfish.loss.balls import enclose, log_ratio
from pufferfish.loss.integers import loses_nothing
from pufferfish.loss.kernel import Mechanism, Problem
from pufferfish.loss.passes import FLOOR, LARGEST_U, ExtremePass, PlainPass, noise_pass, quotients
from pufferfish.loss.problem import Releases, problems_of
from pufferfish.loss.rounding import BALL_CELLS, error_bound
from pufferfish.loss.support_function import extremes, still_extremes
from pufferfish.loss.worst_case import added, worst_case
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray, IntArray
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: Error of a loss of about 1 in doubles: exponents within a block are at most 64, and a rounded
#: exponent of 64 makes exp wrong by 64 * 2**-53 = 7e-15; so may both of the likelihoods be.
_ERROR = 2e-14
#: Masses below this are left to balls, of so many bits.
_LEAST_MASS = 1e-200
_BITS = 128
#: How far apart, relative to u, slopes in balls are taken.
_NEAR = Fraction(1, 1 << 24)
#: Rates are cut here: doubles hold no more.
_LARGE = Fraction(2) ** 1000
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


def largest(
    tops: FloatArray,
    bottoms: FloatArray,
    rivals: Sequence[Sequence[int]],
    over: Callable[..., Any] = np.subtract,
) -> tuple[float, int, int, int]:
    """Return the largest ``over(tops[i], bottoms[j])`` of all j and rivals i of j; i, j and cell.

    Both have shape (m, cells). What is not a number (0/0) is skipped.
    """
    # The region of one secret may hold two very different distributions; a point is just itself.
    alike = tops is bottoms and all(len(own) == len(tops) - 1 for own in rivals)
    value, j, cell = -math.inf, 0, 0
    for k, own in enumerate(rivals[:1] if alike else rivals):
        high = tops.max(axis=0) if alike else tops[own].max(axis=0)
        gap = over(high, bottoms.min(axis=0) if alike else bottoms[k])
        at = int(np.argmax(gap))
        if math.isnan(gap[at]):
            gap = np.where(np.isnan(gap), -math.inf, gap)
            at = int(np.argmax(gap))
        if gap[at] > value:
            value, j, cell = float(gap[at]), k, at
    if alike:
        j = int(bottoms[:, cell].argmin())
    return value, max(rivals[j], key=lambda i: float(tops[i, cell])), j, cell


def in_doubles(point: Point) -> FloatArray:
    """Return the probabilities of a point."""
    if point.masses.dtype == object:
        flat = quotients(point.masses.reshape(-1).tolist(), point.total)
        return flat.reshape(point.masses.shape)
    probabilities: FloatArray = point.masses / float(point.total)
    return probabilities


#: A point by its masses on the grid; the largest and smallest likelihoods of a region by its
#: extreme distributions or, without noise, as they are.
_Belief = FloatArray | tuple[ExtremePass | FloatArray, ExtremePass | FloatArray]


class _Part:
    """One problem, with the rates of its noisy axes as base + factor * u."""

    def __init__(
        self, number: int, problem: Problem, bases: Sequence[Fraction], factors: Sequence[Fraction]
    ) -> None:
        self.number, self.problem, self.bases, self.factors = number, problem, bases, factors
        self.rivals, self.small = problem.rivals, False
        self.beliefs = [[self._belief(own) for own in row] for row in problem.adversaries]
        self.passes: list[PlainPass] = []
        if problem.pure_noise and len(problem.axes) == 1 and not problem.regions:
            places: Any = problem.axes[0].places
            stacks: list[Any] = self.beliefs  # points alone, as arrays
            self.passes = [PlainPass(places, np.stack(own)) for own in stacks]

    def _belief(self, own: Point | Region) -> _Belief:
        if isinstance(own, Point):
            masses = in_doubles(own)
            # Masses might vanish in doubles.
            self.small |= not masses[own.masses != 0].min(initial=1.0) > _LEAST_MASS
            return masses
        axis = self.problem.axes[0]
        if axis.noisy:
            top, bottom = extremes(own, axis.places)
            return ExtremePass(top, axis.places), ExtremePass(bottom, axis.places)
        high, low = still_extremes(own, axis.columns)
        unit = own.unit * axis.unit
        return quotients(high, unit), quotients(low, unit)

    def rates(self, u: float) -> list[float]:
        pairs = zip(self.bases, self.factors, strict=True)
        return [float(min(base, _LARGE)) + float(factor) * u for base, factor in pairs]

    def at_rate(self, u: float | Fraction) -> Problem:
        """Return the problem at an exact u, for ball arithmetic."""
        exact = iter([b + f * Fraction(u) for b, f in zip(self.bases, self.factors, strict=True)])
        axes = self.problem.axes
        changed = tuple(replace(a, rate=next(exact)) if a.noisy else a for a in axes)
        return replace(self.problem, axes=changed)

    def on(self, atoms: IntArray, starts: IntArray, places: IntArray) -> "_Part":
        """Return the same on some atoms of its only axis, gathered from each start to the next."""
        axis = self.problem.axes[0]
        sets = tuple(
            tuple(
                Point(np.add.reduceat(own.masses[atoms], starts), own.total)
                for own in self.problem.points(rho)
            )
            for rho in range(len(self.problem.adversaries))
        )
        axes = (replace(axis, atoms=axis.atoms[atoms][starts], places=places),)
        smaller = replace(self.problem, axes=axes, adversaries=sets)
        return _Part(self.number, smaller, self.bases, self.factors)

    def worst(self, u: float) -> list[tuple[float, Attained]]:
        """Return the worst witness of each adversary, or of each piece of the support."""
        rates, found = self.rates(u), []
        for rho, own in enumerate(self.passes):
            for start, piece in own.pieces(rates[0]):
                ratio, i, j, cell = largest(piece, piece, self.rivals, np.divide)
                found.append((math.log(ratio), Attained(self.number, rho, i, j, start + cell)))
        if found and max(found)[0] <= _LARGE_LOSS:
            return found
        found = []
        for rho, beliefs in enumerate(self.beliefs):
            ends = [self._ends(own, rates) for own in beliefs]
            tops = np.stack([top for top, _ in ends])
            bottoms = np.stack([low for _, low in ends]) if self.problem.regions else tops
            value, *where = largest(tops, bottoms, self.rivals)
            found.append((value, Attained(self.number, rho, *where)))
        return found

    def _ends(self, own: _Belief, rates: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Return ln of the largest and the smallest likelihood of every output, flat."""
        if isinstance(own, tuple):
            high, low = (
                side.logs(rates[0]) if isinstance(side, ExtremePass) else np.log(side)
                for side in own
            )
            return high, low
        logs = np.log(own)
        for (at, axis), u in zip(self.problem.noises, rates, strict=True):
            lines = np.ascontiguousarray(np.moveaxis(logs, at, -1))
            logs = np.moveaxis(noise_pass(axis.places, lines, u), -1, at)
        flat = logs.reshape(-1)
        return flat, flat

    def at(self, witness: Attained, u: float, window: float = _WINDOW) -> tuple[float, float]:
        """Return the log-ratio at a witness and its slope in u, in one look at the masses."""
        place: list[Any] = list(np.unravel_index(witness.cell, self.problem.shape))
        noises, rates, far = self.problem.noises, self.rates(u), []
        for (at, axis), rate in zip(noises, rates, strict=True):
            y, cut = axis.places[place[at]], slice(None)
            if len(axis.places) >= _LONG:
                ends = [y - window / rate, y + window / rate]
                cut = slice(*np.searchsorted(axis.places, ends).tolist())
            far.append(np.abs(axis.places[cut] - float(y)))
            place[at] = cut
        rows = []
        for side, k in enumerate((witness.first, witness.second)):
            own = self.beliefs[witness.adversary][k]
            chosen = own[side] if isinstance(own, tuple) else own
            if isinstance(chosen, ExtremePass):
                masses = chosen.extreme.masses_at(noises[0][1].places, witness.cell)
                chosen = quotients(masses, chosen.extreme.region.unit)
            rows.append(chosen[tuple(place)].reshape([len(own) for own in far]))
        steps = np.meshgrid(*far, indexing="ij", sparse=True)
        exponents = [own * -rate for own, rate in zip(steps, rates, strict=True)]
        exponent = reduce(np.add, exponents) if exponents else np.zeros(())
        weights, tops = np.exp(exponent), [0.0, 0.0]
        sums = [float(np.vdot(own, weights)) for own in rows]
        if min(sums) < FLOOR:
            if window < math.inf:
                return self.at(witness, u, math.inf)
            logs = [np.log(own) + exponent for own in rows]
            tops = [float(own.max()) for own in logs]
            rows = [np.exp(own - top) for own, top in zip(logs, tops, strict=True)]
            weights = np.ones_like(weights)
            sums = [float(own.sum()) for own in rows]
        slope = 0.0
        for own, factor in zip(steps, self.factors, strict=True):
            moved = weights * own
            first, second = (float(np.vdot(r, moved)) / s for r, s in zip(rows, sums, strict=True))
            slope += (second - first) * float(factor)
        return tops[0] - tops[1] + math.log(sums[0]) - math.log(sums[1]), slope


class RateLoss:
    """The loss as a function of u = step / theta of one further noise on some columns.

    ``columns`` get further noise: on column c of the rate ``u * columns[c]`` per step (for one
    column the factor is 1); without columns the loss is that of ``previous`` releases, at any u.
    ``bits``: 0 for doubles, else the precision of balls, for losses that doubles cannot tell from
    0; small grids only. Masses too small for doubles are evaluated in balls anyway.
    """

    def __init__(
        self,
        scenario: Scenario,
        columns: Mapping[int, Fraction],
        previous: Releases | None = None,
        bits: int = 0,
    ) -> None:
        lattices = {c: lattice_of(scenario.product.axes[c]) for c in columns}
        applied: dict[int, list[Mechanism]] = {c: list(m) for c, m in (previous or {}).items()}
        # Worst cases of so many rows are linear in u.
        out = [worst_case(m, scenario.product.axes[c]) for c, own in applied.items() for m in own]
        for c, lattice in lattices.items():
            # Noise of theta = 1 stands for the further one.
            applied.setdefault(c, []).append(DiscreteLaplace(1.0, lattice.step))
        problems, rows = problems_of(scenario, applied)
        base = added(out, rows)
        slope = sum(int(own.index[-1]) * float(columns[c]) for c, own in lattices.items())
        self._linear = (math.inf if base is None else float(base)), rows * slope
        self.bits = bits
        self._parts: list[_Part] = []
        for problem in problems:
            if loses_nothing(problem):
                continue
            noisy = [axis for _, axis in problem.noises]
            factors = [Fraction(columns.get(axis.column, 0)) for axis in noisy]
            bases = [
                axis.rate - (lattices[axis.column].step if axis.column in columns else 0)
                for axis in noisy
            ]
            with np.errstate(all="ignore"):
                self._parts.append(_Part(len(self._parts), problem, bases, factors))
        if any(part.small for part in self._parts):
            self.bits = max(self.bits, _BITS)

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        """Return the loss at u, and the worst witnesses that were met, worst first."""
        if not u <= LARGEST_U:
            return math.inf, []
        found = []
        if self._linear != (0.0, 0.0):
            found.append((self._linear[0] + self._linear[1] * u, Attained(-1, 0, 0, 0, 0)))
        for part in self._parts:
            if not self.bits:
                with np.errstate(all="ignore"):
                    found += part.worst(u)
                continue
            ratio, (cell, pair, rho) = enclose(part.at_rate(u), self.bits)
            value = math.inf if ratio is None else float(ratio.log().mid())
            found.append((value, Attained(part.number, rho, *pair, cell)))
        found.sort(key=lambda pair: -pair[0])
        return (found[0][0] if found else 0.0), [witness for _, witness in found]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the log-ratio at a witness, and its slope in u."""
        if witness.problem < 0:
            return self._linear[0] + self._linear[1] * u, self._linear[1]
        part = self._parts[witness.problem]
        if self.bits:
            here, there = (
                log_ratio(part.at_rate(v), self.bits, witness.adversary, witness[2:4], witness.cell)
                for v in (Fraction(u), Fraction(u) * (1 + _NEAR))
            )
            return float(here.mid()), float((there - here).mid()) / (u * float(_NEAR))
        with np.errstate(all="ignore"):
            return part.at(witness, u)

    @property
    def size(self) -> int:
        """Cells of the largest grid."""
        return max((part.problem.cells for part in self._parts), default=0)

    @property
    def error(self) -> float:
        """How far a loss of about 1 may be off, and what its proof adds to it, at any u."""
        error = 0.0 if self.bits else _ERROR
        for problem in (part.problem for part in self._parts if not self.bits):
            error = max(error, 2 * _ERROR * len(problem.axes))
            if problem.work > BALL_CELLS and not problem.regions:
                error = max(error, _ERROR + 2.5 * error_bound(problem, any_rate=True))
        return error

    def coarser(self, atoms: int = 1024) -> "RateLoss | None":
        """Return nearly the same loss on about so many cells of equal width, for a start.

        It answers where theta is many atoms wide. None unless one column has noise alone.
        """

        def gathered(places: IntArray) -> tuple[IntArray, IntArray, IntArray]:
            width = max(1, int(places[-1]) // atoms)
            starts = np.flatnonzero(np.diff(places // width, prepend=-1))
            return np.arange(len(places)), starts, places[starts] // width * width

        return self._smaller(gathered)

    def local(self, stretches: int = 8, atoms: int = 1024) -> "RateLoss | None":
        """Return the loss on some runs of neighbouring atoms: where theta is few atoms wide."""

        def runs(places: IntArray) -> tuple[IntArray, IntArray, IntArray]:
            firsts = np.linspace(0, len(places) - atoms, stretches).astype(np.int64)
            chosen = np.unique((firsts[:, None] + np.arange(atoms)).ravel())
            return chosen, np.arange(len(chosen)), places[chosen]

        return self._smaller(runs)

    def _smaller(
        self, chosen: Callable[[IntArray], tuple[IntArray, IntArray, IntArray]]
    ) -> "RateLoss | None":
        if self.bits or len(self._parts) != 1 or not self._parts[0].passes:
            return None
        other, [part] = copy(self), self._parts
        other._parts = [part.on(*chosen(part.problem.axes[0].places))]
        return other
