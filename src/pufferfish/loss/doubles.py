# SPDX-License-Identifier: Apache-2.0
"""RateLoss: the loss for searching, as a function of the rate of further noise; unproved.

One column of points with noise alone is passed in plain numbers, in cache-sized pieces. All others
go in logarithms: joint problems axis by axis, regions by their extreme distributions, which do not
depend on the rate. The proof shares the whole numbers of kernel and problem with this search, and
no arithmetic, with one exception: losses too small for doubles are searched in balls.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np

from pufferfish.loss.balls import enclose, log_ratio
from pufferfish.loss.bounds import loses_nothing
from pufferfish.loss.passes import FLOOR, LARGEST_U, ExtremePass, PlainPass, noise_pass, quotients
from pufferfish.loss.problem import Problem, Releases, Where, largest, problems_of
from pufferfish.loss.rounding import BALL_CELLS, error_bound
from pufferfish.loss.support_function import extremes, still_extremes
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: Error of a loss of about 1 in doubles: exponents within a block are at most 64, and a rounded
#: exponent of 64 makes exp wrong by 64 * 2**-53 = 7e-15; so may both of the likelihoods be.
_ERROR = 2e-14
#: Masses below this are left to balls, of so many bits.
_LEAST_MASS = 1e-200
_BITS = 128
#: How far apart, relative to u, logarithms are for a slope.
_NEAR = Fraction(1, 1 << 24)
#: Rates are cut here: doubles hold no more.
_LARGE = Fraction(2) ** 1000
#: Losses beyond this are worked out in logarithms.
_LARGE_LOSS = 300.0
#: Atoms from which a witness is looked at within 60 theta only: the rest weighs below 1e-26.
_LONG = 5000
_WINDOW = 60.0

#: Where a loss is attained: the position of the problem in its RateLoss, and where in that.
Attained = tuple[int, Where]


def _minus(tops: FloatArray, bottoms: FloatArray) -> FloatArray:
    """Return differences of logarithms; 0/0 is skipped."""
    gaps = tops - bottoms
    return np.where(np.isnan(gaps), -np.inf, gaps)


class _Part:
    """One problem; each of its noisy axes has the rate base + factor * u."""

    def __init__(self, problem: Problem, rates: Sequence[tuple[Fraction, Fraction]]) -> None:
        self.problem, self.rates, self.plain = problem, rates, None
        self.small, points = False, problem.points
        if not points:
            regions = [own for own in problem.sets if isinstance(own, Region)]
            self.ends = [self._ends(own) for own in regions]
            return
        self.masses = np.stack([own.masses / own.total for own in points]).astype(np.float64)
        # Masses might vanish in doubles.
        has = np.stack([own.masses != 0 for own in points])
        self.small = not self.masses.min(initial=1.0, where=has) > _LEAST_MASS
        if problem.pure_noise and len(problem.axes) == 1:
            self.plain = PlainPass(problem.axes[0].places, self.masses)

    def _ends(self, region: Region) -> Sequence[ExtremePass | FloatArray]:
        """Return the largest and the smallest likelihoods, as passes or, without noise, as logs."""
        [axis] = self.problem.axes
        if axis.noisy:
            return [ExtremePass(own, axis.places) for own in extremes(region, axis.places)]
        sides = still_extremes(region, list(axis.kinds.values()))
        return [np.log(quotients(own, region.unit * axis.unit)) for own in sides]

    def at_rate(self, u: float | Fraction) -> Problem:
        """Return the problem at an exact u."""
        exact = iter([base + factor * Fraction(u) for base, factor in self.rates])
        axes = self.problem.axes
        changed = tuple(replace(a, rate=next(exact)) if a.noisy else a for a in axes)
        return replace(self.problem, axes=changed)

    def in_steps(self, u: float | Fraction) -> list[float]:
        """Return the rates as doubles."""
        return [float(min(base + factor * Fraction(u), _LARGE)) for base, factor in self.rates]

    def worst(self, u: float, bits: int) -> tuple[float, Where]:
        """Return the loss and its witness, by balls if these have bits."""
        if bits:
            ball, where = enclose(self.at_rate(u), bits)
            return (float(ball.log().mid()) if ball.is_finite() else math.inf), where
        rates, found, comparisons = self.in_steps(u), [], self.problem.comparisons
        if self.plain is not None:
            for start, piece in self.plain.pieces(rates[0]):
                for sides in comparisons:
                    ratio, where = largest(piece, piece, sides, np.divide)
                    found.append((math.log(ratio), where._replace(cell=start + where.cell)))
            worst = max(found, key=itemgetter(0))
            if worst[0] <= _LARGE_LOSS:
                return worst
        each = range(len(self.problem.secrets))
        tops = np.stack([self._logs(k, 0, rates) for k in each])
        bottoms = tops
        if not self.problem.points:
            bottoms = np.stack([self._logs(k, 1, rates) for k in each])
        return max(largest(tops, bottoms, sides, _minus) for sides in comparisons)

    def _logs(self, secret: int, side: int, rates: Sequence[float]) -> FloatArray:
        """Return ln of the largest (side 0) or smallest likelihoods of a secret, flat."""
        if not self.problem.points:
            end = self.ends[secret][side]
            return end.logs(rates[0]) if isinstance(end, ExtremePass) else end
        logs = np.log(self.masses[secret])
        for (at, axis), rate in zip(self.problem.noises, rates, strict=True):
            lines = np.ascontiguousarray(np.moveaxis(logs, at, -1))
            logs = np.moveaxis(noise_pass(axis.places, lines, rate), -1, at)
        return np.asarray(logs.reshape(-1))

    def at(self, where: Where, u: float, window: float = _WINDOW) -> tuple[float, float] | None:
        """Return the log-ratio at a witness and its slope in u, in one look at the masses.

        None for regions, and where a likelihood is too small for plain numbers.
        """
        if not self.problem.points:
            return None
        place: list[Any] = list(np.unravel_index(where.cell, self.problem.shape))
        rates, far = self.in_steps(u), []
        for (at, axis), rate in zip(self.problem.noises, rates, strict=True):
            y, cut = axis.places[place[at]], slice(None)
            if len(axis.places) >= _LONG:
                ends = [y - window / rate, y + window / rate]
                cut = slice(*np.searchsorted(axis.places, ends).tolist())
            far.append(np.abs(axis.places[cut] - float(y)))
            place[at] = cut
        rows = [self.masses[(secret, *place)] for secret in where[1:]]
        steps = np.meshgrid(*far, indexing="ij", sparse=True)
        exponent = sum((own * -rate for own, rate in zip(steps, rates, strict=True)), np.zeros(()))
        weights = np.exp(exponent)
        sums = [float(np.vdot(row, weights)) for row in rows]
        if min(sums) < FLOOR:
            return self.at(where, u, math.inf) if window < math.inf else None
        slope = 0.0
        for own, (_, factor) in zip(steps, self.rates, strict=True):
            moved = weights * own
            first, second = (float(np.vdot(row, moved)) for row in rows)
            slope += (second / sums[1] - first / sums[0]) * float(factor)
        return math.log(sums[0]) - math.log(sums[1]), slope

    def log_ratio(self, where: Where, u: Fraction, bits: int) -> Any:
        """Return the log-ratio at a witness by balls, or by passes of logarithms."""
        if bits:
            return log_ratio(self.at_rate(u), bits, where).mid()
        rates = self.in_steps(u)
        tops, bottoms = self._logs(where.first, 0, rates), self._logs(where.second, 1, rates)
        return tops[where.cell] - bottoms[where.cell]

    def smaller(self, atoms: int) -> "list[_Part]":
        """Return the same on about so many cells of neighbours, and on eight runs of neighbours."""
        [axis], points = self.problem.axes, self.problem.points
        width = max(1, int(axis.places[-1]) // atoms)
        starts = np.flatnonzero(np.diff(axis.places // width, prepend=-1))
        firsts = np.linspace(0, len(axis.places) - atoms, 8).astype(np.int64)
        runs = np.unique(firsts[:, None] + np.arange(atoms))
        gathered = [np.add.reduceat(own.masses, starts) for own in points]
        some = [own.masses[runs] for own in points]
        parts, cells = [], axis.places[starts] // width * width
        for places, masses in ((cells, gathered), (axis.places[runs], some)):
            axes = (replace(axis, atoms=axis.atoms[: len(places)], places=places),)
            sets = tuple(Point(m, own.total) for m, own in zip(masses, points, strict=True))
            parts.append(_Part(replace(self.problem, axes=axes, sets=sets), self.rates))
        return parts


class RateLoss:
    """The loss as a function of u = step / theta of one further noise on some columns.

    ``columns`` get further noise: on column c of the rate ``u * columns[c]`` per step (for one
    column the factor is 1); without columns the loss is that of ``previous`` releases, at any u.
    ``bits``: 0 for doubles, else the precision of balls, which masses too small for doubles need.
    ``unknown``: the largest number of rows of one person of which only worst cases are known;
    these are left out.
    """

    def __init__(
        self, scenario: Scenario, columns: Mapping[int, Fraction], previous: Releases | None = None,
    ) -> None:  # fmt: skip
        steps = {c: lattice_of(scenario.product.axes[c]).step for c in columns}
        applied: dict[int, list[Mechanism]] = {c: list(m) for c, m in (previous or {}).items()}
        for c, step in steps.items():
            # Noise of theta = 1 stands for the further one.
            applied.setdefault(c, []).append(DiscreteLaplace(1.0, step))
        problems, self.unknown = problems_of(scenario, applied)
        self._take(
            (problem, [
                (axis.rate - steps.get(axis.column, 0), Fraction(columns.get(axis.column, 0)))
                for _, axis in problem.noises
            ])
            for problem in problems
        )  # fmt: skip

    @classmethod
    def of_problems(cls, problems: Iterable[Problem]) -> "RateLoss":
        """Return the loss of problems; u is a factor of the rates of all their noise."""
        made = cls.__new__(cls)
        made.unknown = 0
        made._take((own, [(Fraction(0), axis.rate) for _, axis in own.noises]) for own in problems)
        return made

    def _take(self, given: Iterable[tuple[Problem, Sequence[tuple[Fraction, Fraction]]]]) -> None:
        self._parts: list[_Part] = []
        for problem, rates in given:
            if not loses_nothing(problem):
                with np.errstate(all="ignore"):
                    self._parts.append(_Part(problem, rates))
        self.bits = _BITS if any(part.small for part in self._parts) else 0

    def in_balls(self, bits: int) -> "RateLoss":
        """Return the same by balls, for losses that doubles cannot tell from 0; on small grids."""
        other = copy(self)
        other.bits = max(bits, self.bits)
        return other

    def worst(self, u: float) -> tuple[float, Attained | None]:
        """Return the loss at u, and its witness if it was met."""
        if not u <= LARGEST_U:
            return math.inf, None
        found: list[tuple[float, Attained | None]] = []
        for number, part in enumerate(self._parts):
            with np.errstate(all="ignore"):
                value, where = part.worst(u, self.bits)
            found.append((value, (number, where)))
        return max(found, key=itemgetter(0), default=(0.0, None))

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the log-ratio at a witness, and its slope in u."""
        part, where = self._parts[witness[0]], witness[1]
        with np.errstate(all="ignore"):
            found = None if self.bits else part.at(where, u)
            if found is not None:
                return found
            near = Fraction(u) * (1 + _NEAR)
            here, there = (part.log_ratio(where, v, self.bits) for v in (Fraction(u), near))
        return float(here), float(there - here) / (u * float(_NEAR))

    @property
    def size(self) -> int:
        """Cells of the largest grid."""
        return max((part.problem.cells for part in self._parts), default=0)

    @property
    def error(self) -> float:
        """How far a loss of about 1 may be off, and what its proof adds to it, at any u."""
        if self.bits:
            return 0.0
        error = _ERROR
        for problem in (part.problem for part in self._parts):
            error = max(error, 2 * _ERROR * len(problem.axes))
            if problem.work > BALL_CELLS and problem.points:
                error = max(error, _ERROR + 2.5 * error_bound(problem, any_rate=True))
        return error

    def smaller(self, atoms: int = 1024) -> "list[RateLoss]":
        """Return nearly the same loss on fewer atoms, for a start; none unless all is noise alone.

        Cells of equal width answer where theta is many atoms wide, runs where it is few.
        """
        if self.bits or any(part.plain is None for part in self._parts):
            return []
        found = []
        for parts in zip(*(part.smaller(atoms) for part in self._parts), strict=True):
            other = copy(self)
            other._parts = list(parts)
            found.append(other)
        return found
