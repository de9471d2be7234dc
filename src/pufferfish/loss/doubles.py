# SPDX-License-Identifier: Apache-2.0
"""RateLoss: the loss for searching, as a function of the rate of further noise; unproved."""

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pufferfish.loss.balls import enclose, log_ratio
from pufferfish.loss.evaluators import Attained, Found, Line, Logs, in_doubles
from pufferfish.loss.exact import loses_nothing
from pufferfish.loss.kernel import Mechanism, Problem
from pufferfish.loss.problem import LARGEST_GRID, Releases, problems_of
from pufferfish.loss.recursion import LARGEST_U
from pufferfish.loss.rounding import BALL_CELLS, error_bound
from pufferfish.loss.worst_case import worst_case
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray
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


class _Part(NamedTuple):
    """One problem, with the rates of its noisy axes as base + factor * u."""

    problem: Problem
    evaluator: Line | Logs
    bases: tuple[Fraction, ...]
    factors: tuple[Fraction, ...]

    def rates(self, u: float) -> FloatArray:
        pairs = zip(self.bases, self.factors, strict=True)
        return np.array([float(min(base, _LARGE)) + float(factor) * u for base, factor in pairs])

    def at_rate(self, u: float | Fraction) -> Problem:
        """Return the problem at an exact u, for ball arithmetic."""
        exact = iter([b + f * Fraction(u) for b, f in zip(self.bases, self.factors, strict=True)])
        axes = self.problem.axes
        changed = tuple(replace(a, rate=next(exact)) if a.noisy else a for a in axes)
        return replace(self.problem, axes=changed)


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
        lattices = {c: lattice_of(scenario.product.axes[c]) for c in columns}
        applied: dict[int, list[Mechanism]] = {c: list(m) for c, m in (previous or {}).items()}
        for c, lattice in lattices.items():
            # Noise of theta = 1 stands for the further one.
            applied.setdefault(c, []).append(DiscreteLaplace(1.0, lattice.step))
        problems, rows = problems_of(scenario, applied, limit)
        self.bits = bits
        self._parts: list[_Part] = []
        for problem in problems:
            if not loses_nothing(problem):
                noisy = [axis for _, axis in problem.noises]
                factors = tuple(Fraction(columns.get(axis.column, 0)) for axis in noisy)
                bases = tuple(
                    axis.rate - (lattices[axis.column].step if axis.column in columns else 0)
                    for axis in noisy
                )
                evaluator = _evaluator(len(self._parts), problem)
                self._parts.append(_Part(problem, evaluator, bases, factors))
                if _is_small(problem):
                    self.bits = max(self.bits, _BITS)
        # Worst cases of so many rows are linear in u.
        self._linear = (0.0, 0.0)
        if rows:
            out = [
                (m, scenario.product.axes[c]) for c, own in (previous or {}).items() for m in own
            ]
            worst = [worst_case(mechanism, support) for mechanism, support in out]
            base = sum(math.inf if term is None else float(term) for term in worst)
            slope = sum(int(own.index[-1]) * float(columns[c]) for c, own in lattices.items())
            self._linear = rows * base, rows * slope

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        """Return the loss at u, and the worst witnesses that were met, worst first."""
        found: Found = []
        if self._linear != (0.0, 0.0):
            value = self._linear[0] + self._linear[1] * u
            found.append((value, Attained(-1, 0, 0, 0, 0)))
        if not u <= LARGEST_U:
            return math.inf, []
        for number, part in enumerate(self._parts):
            if not self.bits:
                with np.errstate(all="ignore"):
                    found += part.evaluator.worst(part.rates(u))
                continue
            ratio, (cell, pair, rho) = enclose(part.at_rate(u), self.bits)
            value = math.inf if ratio is None else float(ratio.log().mid())
            found.append((value, Attained(number, rho, *pair, cell)))
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
            value, slopes = part.evaluator.at(witness, part.rates(u))
        return value, float(slopes @ np.array([float(factor) for factor in part.factors]))

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
        return self._smaller(lambda line: line.gathered(atoms))

    def local(self, stretches: int = 8, atoms: int = 1024) -> "RateLoss | None":
        """Return the loss on some runs of neighbouring atoms: where theta is few atoms wide."""
        return self._smaller(lambda line: line.stretches(stretches, atoms))

    def _smaller(self, smaller: Callable[[Line], Line]) -> "RateLoss | None":
        lines = [part.evaluator for part in self._parts]
        if len(lines) != 1 or self.bits or not isinstance(lines[0], Line):
            return None
        other = copy(self)
        other._parts = [self._parts[0]._replace(evaluator=smaller(lines[0]))]
        return other


def _evaluator(number: int, problem: Problem) -> Line | Logs:
    if problem.regions or len(problem.axes) > 1 or not problem.pure_noise:
        with np.errstate(all="ignore"):
            return Logs(number, problem)
    sets = range(len(problem.adversaries))
    masses = [np.stack([in_doubles(own) for own in problem.points(rho)]) for rho in sets]
    return Line(number, problem.axes[0].places, masses, problem.pairs, problem.all_pairs)


def _is_small(problem: Problem) -> bool:
    """Whether there are masses that might vanish in doubles."""
    points = [own for rho in range(len(problem.adversaries)) for own in problem.points(rho)]
    return any(
        own.masses.dtype == object
        and not in_doubles(own)[own.masses != 0].min(initial=1.0) > _LEAST_MASS
        for own in points
    )
