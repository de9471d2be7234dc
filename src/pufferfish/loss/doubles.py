# SPDX-License-Identifier: Apache-2.0
"""RateLoss: the loss for searching, as a function of the rate of further noise; unproved."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pufferfish.loss.balls import enclose, log_ratio
from pufferfish.loss.evaluators import Attained, Constant, Evaluator, Line, evaluator_of, in_doubles
from pufferfish.loss.exact import infinite, largest_ratio, loses_nothing
from pufferfish.loss.kernel import Mechanism, Problem
from pufferfish.loss.problem import LARGEST_GRID, Releases, problems_of
from pufferfish.loss.recursion import LARGEST_U
from pufferfish.loss.rounding import BALL_CELLS, TooExtreme, error_bound
from pufferfish.loss.worst_case import worst_case
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray
from pufferfish.priors.ambiguity import Point
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: Error of a loss of about 1 in doubles: exponents within a block are at most 64, and a rounded
#: exponent of 64 makes exp wrong by 64 * 2**-53 = 7e-15; so may both of the likelihoods be.
_ERROR = 2e-14
#: Masses below this are left to balls.
_LEAST_MASS = 1e-200
#: Bits for these.
_BITS = 128
#: How far apart, relative to u, slopes in balls are taken.
_NEAR = Fraction(1, 1 << 24)


@dataclass(frozen=True)
class _Part:
    """One problem, with the rates of its axes as base + factor * u."""

    evaluator: Evaluator
    problem: Problem | None
    bases: tuple[Fraction, ...]
    factors: tuple[Fraction, ...]
    in_doubles: tuple[FloatArray, FloatArray]

    @classmethod
    def of(
        cls,
        evaluator: Evaluator,
        problem: Problem | None,
        bases: Sequence[Fraction],
        factors: Sequence[Fraction],
    ) -> "_Part":
        rates = tuple(np.array([_double(v) for v in own]) for own in (bases, factors))
        return cls(evaluator, problem, tuple(bases), tuple(factors), (rates[0], rates[1]))

    def rates(self, u: float) -> FloatArray:
        return self.in_doubles[0] + self.in_doubles[1] * u

    def at_rate(self, u: Fraction) -> Problem | None:
        """Return the problem at an exact u, for ball arithmetic."""
        if self.problem is None:
            return None
        axes = tuple(
            replace(axis, rate=base + factor * u) if axis.noisy else axis
            for axis, base, factor in zip(self.problem.axes, self.bases, self.factors, strict=True)
        )
        return replace(self.problem, axes=axes)


class RateLoss:
    """The loss as a function of u = step / theta of one further noise on some columns.

    Parameters
    ----------
    scenario : Scenario
    columns : mapping of int to Fraction
        The columns that get further noise, by position, with the factor of its rate: the noise on
        column c has the rate ``u * columns[c]`` per step of that column. For one column the factor
        is 1; without columns the loss is that of what is released already, at any u.
    previous : mapping, optional
        What is released already.
    bits : int
        0: doubles. Otherwise ball arithmetic of that precision, for losses that doubles cannot
        tell from 0; small grids only. Masses too small for doubles are evaluated in balls anyway.
    limit : int
        Cells that the grid of single rows may have; GridTooLarge where it has more.
    """

    def __init__(
        self,
        scenario: Scenario,
        columns: Mapping[int, Fraction],
        previous: Releases | None = None,
        bits: int = 0,
        limit: int = LARGEST_GRID,
    ) -> None:
        self.scenario, self.columns, self.bits = scenario, dict(columns), bits
        self._previous, self._limit = previous or {}, limit
        problems, rows = problems_of(scenario, self._with(1.0), limit)
        self._parts: list[_Part] = []
        for problem in problems:
            self._add(problem)
        if rows:
            self._add_worst_cases(rows)

    def _with(self, scale: float) -> dict[int, list[Mechanism]]:
        """Return what is released already, and further noise of some scale."""
        applied: dict[int, list[Mechanism]] = {c: list(m) for c, m in self._previous.items()}
        for c in self.columns:
            step = lattice_of(self.scenario.product.axes[c]).step
            applied.setdefault(c, []).append(DiscreteLaplace(scale, step))
        return applied

    def _add(self, problem: Problem) -> None:
        number, none = len(self._parts), np.zeros(0)
        if loses_nothing(problem):
            return
        if infinite(problem) is not None:
            self._parts.append(_Part.of(Constant(number, math.inf, none), None, (), ()))
            return
        bases, factors = [], []
        for axis, c in zip(problem.axes, problem.columns, strict=True):
            factor = self.columns.get(c, Fraction(0)) if axis.noisy else Fraction(0)
            # The noise that stands for the further one has theta = 1.
            bases.append(axis.rate - (lattice_of(axis.support).step if factor else 0))
            factors.append(factor)
        if any(_is_small(problem, own) for beliefs in problem.adversaries for own in beliefs):
            self.bits = max(self.bits, _BITS)
        self._parts.append(_Part.of(evaluator_of(number, problem), problem, bases, factors))

    def _add_worst_cases(self, rows: int) -> None:
        """Add the worst cases of so many rows: linear in u."""
        axes = self.scenario.product.axes
        known = [
            worst_case(mechanism, axes[c])
            for c, mechanisms in self._previous.items()
            for mechanism in mechanisms
        ]
        base = math.fsum(math.inf if worst is None else float(worst) for worst in known)
        spans = [int(lattice_of(axes[c]).index[-1]) for c in self.columns]
        slopes = np.array([float(rows * span) for span in spans])
        constant = Constant(len(self._parts), rows * base, slopes)
        zeros = [Fraction(0)] * len(spans)
        self._parts.append(_Part.of(constant, None, zeros, list(self.columns.values())))

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        """Return the loss at u, and the worst witnesses that were met, worst first."""
        if not u <= LARGEST_U:
            return self.unchanged(), []
        found: list[tuple[float, Attained]] = []
        for number, part in enumerate(self._parts):
            problem = part.at_rate(Fraction(u)) if self.bits else None
            if problem is None:
                found += part.evaluator.worst(part.rates(u))
                continue
            peak = enclose(problem, self.bits)
            value = math.inf if peak.ratio is None else float(peak.ratio.log().mid())
            found.append((value, Attained(number, peak.adversary, *peak.pair, peak.cell)))
        found.sort(key=lambda pair: -pair[0])
        return (max(0.0, found[0][0]) if found else 0.0), [witness for _, witness in found]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the log-ratio at a witness, and its slope in u."""
        part = self._parts[witness.problem]
        if self.bits and part.problem is not None:
            near = Fraction(u) * _NEAR
            here = self._ball_at(part, witness, Fraction(u))
            there = self._ball_at(part, witness, Fraction(u) + near)
            return here, (there - here) / float(near)
        value, slopes = part.evaluator.at(witness, part.rates(u))
        return value, float(slopes @ part.in_doubles[1])

    def _ball_at(self, part: _Part, witness: Attained, u: Fraction) -> float:
        problem, pair = part.at_rate(u), (witness.first, witness.second)
        if problem is None:
            return math.inf
        return float(log_ratio(problem, self.bits, witness.adversary, pair, witness.cell).mid())

    def unchanged(self) -> float:
        """Return the loss at u = infinity: the columns themselves are published."""
        problems, rows = problems_of(self.scenario, self._with(0.0), self._limit)
        largest = math.inf if rows and self._tells_apart() else 0.0
        for problem in problems:
            if infinite(problem) is not None:
                return math.inf
            if not problem.noisy:
                ratio = largest_ratio(problem).ratio
                largest = max(largest, math.inf if ratio is None else log_of(ratio))
            elif not loses_nothing(problem):
                rates = np.array([_double(axis.rate) for axis in problem.axes])
                found = evaluator_of(0, problem).worst(rates)
                largest = max(largest, *(value for value, _ in found))
        return largest

    def _tells_apart(self) -> bool:
        return any(self.scenario.product.axes[c].size > 1 for c in self.columns)

    @property
    def size(self) -> int:
        """Cells of the largest grid."""
        return max((p.problem.cells for p in self._parts if p.problem is not None), default=0)

    @property
    def error(self) -> float:
        """How far a loss of about 1 may be off, and what its proof adds to it, at any u."""
        if self.bits:
            return 0.0
        error = _ERROR
        for part in self._parts:
            problem = part.problem
            if problem is None:
                continue
            error = max(error, 2 * _ERROR * len(problem.axes))
            if problem.work > BALL_CELLS and isinstance(problem.adversaries[0][0], Point):
                try:
                    error = max(error, _ERROR + 2.5 * error_bound(problem, any_rate=True))
                except TooExtreme:  # then balls prove it
                    continue
        return error

    def coarser(self, atoms: int = 1024) -> "RateLoss | None":
        """Return nearly the same loss on about so many cells of equal width, for a start.

        It answers where theta is many atoms wide. None where there is more than one large column.
        """
        return self._replaced(lambda line: line.gathered(atoms))

    def local(self, stretches: int = 8, atoms: int = 1024) -> "RateLoss | None":
        """Return the loss on some runs of neighbouring atoms: where theta is few atoms wide."""
        return self._replaced(lambda line: line.stretches(stretches, atoms))

    def _replaced(self, smaller: Callable[[Line], Line]) -> "RateLoss | None":
        lines = [part.evaluator for part in self._parts]
        if len(lines) != 1 or self.bits or not isinstance(lines[0], Line):
            return None
        other = copy(self)
        other._parts = [replace(self._parts[0], evaluator=smaller(lines[0]), problem=None)]
        return other


def loss_in_doubles(scenario: Scenario, releases: Releases, limit: int = LARGEST_GRID) -> float:
    """Return the loss of some releases, unproved; may be infinite, may raise GridTooLarge."""
    return RateLoss(scenario, {}, releases, limit=limit).worst(1.0)[0]


def log_of(ratio: Fraction) -> float:
    """Return ln of an exact number of at least 1, nearly to the last digit."""
    if ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _is_small(problem: Problem, own: object) -> bool:
    """Whether a point has masses that might vanish in doubles."""
    if not isinstance(own, Point):
        return False
    least = 1.0
    for axis in problem.axes:
        if axis.columns is not None:
            entry = min(v / max(column) for column in axis.columns for v in column if v)
            least *= entry * min(axis.weights) / max(axis.weights)
    if own.masses.dtype != object and least > _LEAST_MASS * 1e30:
        return False
    smallest = in_doubles(own)[own.masses != 0].min()
    return not float(smallest) * least > _LEAST_MASS


def _double(rate: Fraction) -> float:
    try:
        return rate.numerator / rate.denominator
    except OverflowError:
        return math.inf
