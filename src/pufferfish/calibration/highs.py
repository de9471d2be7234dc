# SPDX-License-Identifier: Apache-2.0
"""Solving a program with HiGHS: in doubles, then refined to any number of bits.

Refinement (iterative refinement of linear programs) computes in exact integers by how much the
bounds are missed, magnifies what is left until it is of size 1, and solves that as a program of
its own, which starts from the basis at hand. Every round adds as many bits as the solver has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import highspy
import numpy as np

from pufferfish.calibration.channel_program import FloatArray, Program
from pufferfish.calibration.dyadic import double, shifted, whole
from pufferfish.calibration.matrix import Matrix
from pufferfish.errors import PufferfishError

_OPTIONS: dict[str, Any] = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "small_matrix_value": 1e-12,
    "threads": 1,
    "presolve": "choose",
    "simplex_strategy": 1,
    "solver": "choose",
    "ipm_iteration_limit": 500,
}
#: What is changed where the solver loses its way among small numbers; refinement makes up for it.
_TRIES: tuple[dict[str, Any], ...] = (
    {},
    {"presolve": "off"},
    {"primal_feasibility_tolerance": 1e-8, "dual_feasibility_tolerance": 1e-8},
    {"presolve": "off", "simplex_strategy": 4, "dual_feasibility_tolerance": 1e-7},
    {"small_matrix_value": 1e-9, "dual_feasibility_tolerance": 1e-7},
    {"solver": "ipm"},
)
_INFEASIBLE = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)
#: Duals above this, relative to the cost, tell that a bound is tight in every optimum.
_TIGHT = 1e-9
#: A magnified bound beyond this is none.
_FAR = 1e17


class Infeasible(PufferfishError):
    """The program has no solution."""

    exit_status = 2


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Attributes
    ----------
    values : float64 array
        The variables, to the solver's tolerance.
    duals : float64 array
        One per row of the matrix.
    reduced : float64 array
        The reduced cost of every variable.
    """

    values: FloatArray
    duals: FloatArray
    reduced: FloatArray


class Solver:
    """HiGHS with one program and what it learned of it.

    Attributes
    ----------
    seconds : float
        What HiGHS alone took so far.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.matrix = Matrix.of(program)
        self.seconds = 0.0
        self._highs = _new_solver()
        self._basis: Any = None
        self._least = np.zeros(len(program.cost))
        for column, bound in program.least.items():
            self._least[column] = float(bound)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(program.cost), len(program.rows)
        lp.col_upper_ = np.full(len(program.cost), highspy.kHighsInf)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = self.matrix.start
        lp.a_matrix_.index_ = self.matrix.index
        lp.a_matrix_.value_ = self.matrix.value
        self._lp = lp

    def solve(self, magnified: int = 0) -> Solution:
        """Solve the program, its costs times 2**magnified, which a tiny optimum needs.

        Raises
        ------
        PufferfishError
            If HiGHS does not report an optimum; ``Infeasible`` where it says that there is none.
        """
        matrix = self.matrix
        cost = np.ldexp(self.program.cost, magnified)
        found = self._run(cost, self._least, None, matrix.lower, matrix.upper)
        duals, reduced = np.ldexp(found.duals, -magnified), np.ldexp(found.reduced, -magnified)
        return Solution(found.values, duals, reduced)

    def prefer(self, solution: Solution, cost: FloatArray) -> Solution:
        """Return that one among the optimal solutions that is cheapest by a second cost.

        What the duals tell to be tight in every optimum is held fast.
        """
        lower, upper = self.matrix.lower.copy(), self.matrix.upper.copy()
        tight = _TIGHT * min(1.0, max(float(self.program.cost @ solution.values), 1e-6))
        up = (solution.duals > tight) & np.isfinite(lower)
        down = (solution.duals < -tight) & np.isfinite(upper)
        upper[up] = lower[up]
        lower[down] = upper[down]
        highest = np.full(len(cost), highspy.kHighsInf)
        fixed = np.abs(solution.reduced) > tight
        highest[fixed] = self._least[fixed]
        return self._run(cost, self._least, highest, lower, upper)

    def sizes(self, solution: Solution) -> FloatArray:
        """Return for each row of the matrix the sum of the sizes of its terms."""
        matrix = self.matrix
        terms = np.abs(matrix.value * solution.values[matrix.index])
        lengths = np.diff(matrix.start)
        at = np.repeat(np.arange(len(lengths)), lengths)
        return np.asarray(np.bincount(at, terms, len(lengths)), dtype=np.float64)

    def tightened(self, solution: Solution, share: float) -> Solver:
        """Return a solver of a stricter program, which starts from the basis at hand.

        Inequalities before the row ``sums`` ask for more by a share of the size of their terms.
        """
        program, matrix = self.program, self.matrix
        tightened = np.arange(len(program.rows)) < program.sums
        tightened &= matrix.lower != matrix.upper
        more = np.where(tightened, share * self.sizes(solution), 0.0)
        made = copy(self)
        made.matrix = replace(matrix, lower=matrix.lower + more, upper=matrix.upper - more)
        rows = list(program.rows)
        for r in np.flatnonzero(more).tolist():
            row = rows[r]
            exact = shifted(Fraction(float(more[r])), int(matrix.exponent[r]))
            rows[r] = replace(
                row,
                lower=None if row.lower is None else row.lower + exact,
                upper=None if row.upper is None else row.upper - exact,
            )
        made.program = replace(program, rows=rows)
        return made

    def refined(self, solution: Solution, bits: int) -> list[int]:
        """Return the variables with ``bits`` fractional bits, as integers over 2**bits.

        The best that the rounds arrive at: whoever uses it checks it.
        """
        program, matrix = self.program, self.matrix
        one = 1 << bits
        least = [0] * len(program.cost)
        for column, bound in program.least.items():
            least[column] = math.ceil(bound * one)
        z = [
            max(whole(v, bits), floor)
            for v, floor in zip(solution.values.tolist(), least, strict=True)
        ]
        exponent = matrix.exponent.tolist()
        best, smallest, stalls = z, None, 0
        for _ in range(4 + bits // 20):
            below, above = self._gaps(z, bits)
            missed = [
                max(g or 0, -h if h is not None else 0) for g, h in zip(below, above, strict=True)
            ]
            size = max(
                max(m << -e if e <= 0 else m >> e for m, e in zip(missed, exponent, strict=True)),
                max(floor - v for v, floor in zip(z, least, strict=True)),
            )
            if smallest is None or size < smallest:
                stalls = 0 if smallest is None or 4 * size < smallest else stalls + 1
                best, smallest = z, size
            else:
                stalls += 1
            if size <= _LEFT or stalls > 2:
                break
            shift = bits - size.bit_length()
            lower = np.array(
                [_bound(g, shift - bits - e, -1) for g, e in zip(below, exponent, strict=True)]
            )
            upper = np.array(
                [_bound(h, shift - bits - e, 1) for h, e in zip(above, exponent, strict=True)]
            )
            floor_ = np.array(
                [
                    max(double(floor - v, shift - bits), -_FAR)
                    for v, floor in zip(z, least, strict=True)
                ]
            )
            try:
                step = self._run(program.cost, floor_, None, lower, upper)
            except PufferfishError:
                break
            z = [v + whole(s, bits - shift) for v, s in zip(z, step.values.tolist(), strict=True)]
        return [max(v, floor) for v, floor in zip(best, least, strict=True)]

    def _gaps(self, z: list[int], bits: int) -> tuple[list[int | None], list[int | None]]:
        """Return lower and upper bound of each row, minus what the row comes to, over 2**bits."""
        below: list[int | None] = []
        above: list[int | None] = []
        one = 1 << bits
        for row in self.program.rows:
            scale, numerators = self._integers[id(row.coefficients)]
            total = sum(a * v for a, c in zip(numerators, row.columns, strict=True) if (v := z[c]))
            for ends, bound in ((below, row.lower), (above, row.upper)):
                if bound is None:
                    ends.append(None)
                else:
                    target = bound.numerator * one * scale - total * bound.denominator
                    ends.append(target // (scale * bound.denominator))
        return below, above

    @cached_property
    def _integers(self) -> dict[int, tuple[int, list[int]]]:
        """Return for each list of coefficients a denominator, and their numerators."""
        found: dict[int, tuple[int, list[int]]] = {}
        for row in self.program.rows:
            if id(row.coefficients) not in found:
                scale = math.lcm(1, *{a.denominator for a in row.coefficients})
                found[id(row.coefficients)] = (
                    scale,
                    [a.numerator * (scale // a.denominator) for a in row.coefficients],
                )
        return found

    def _run(
        self,
        cost: FloatArray,
        least: FloatArray,
        highest: FloatArray | None,
        lower: FloatArray,
        upper: FloatArray,
    ) -> Solution:
        lp, highs = self._lp, self._highs
        lp.col_cost_, lp.col_lower_ = cost, least
        lp.col_upper_ = np.full(len(cost), highspy.kHighsInf) if highest is None else highest
        lp.row_lower_, lp.row_upper_ = lower, upper
        status: Any = None
        infeasible = 0
        for options in _TRIES:
            status = self._tried(options)
            if status == highspy.HighsModelStatus.kOptimal:
                break
            infeasible += status in _INFEASIBLE
        else:
            # One try alone may err, for presolve drops small numbers; the last one seldom does.
            if infeasible > 1 or status in _INFEASIBLE:
                raise Infeasible("no channel meets all the conditions")
            if infeasible:
                raise PufferfishError("the solver cannot tell whether there is such a channel")
            raise PufferfishError(
                f"the solver found no optimal channel ({highs.modelStatusToString(status)})"
            )
        found = highs.getSolution()
        self._basis = highs.getBasis()
        return Solution(
            np.array(found.col_value), np.array(found.row_dual), np.array(found.col_dual)
        )

    def _tried(self, options: Mapping[str, Any]) -> Any:
        """Run the solver with these options, and return how it ended."""
        highs = self._highs
        for option, value in (_OPTIONS | dict(options)).items():
            highs.setOptionValue(option, value)
        # Far more than is ever needed; among tiny numbers the solver may go round in circles.
        limit = 5 * (1000 + self._lp.num_row_ + self._lp.num_col_)
        highs.setOptionValue("simplex_iteration_limit", limit)
        before = highs.getRunTime()
        highs.clearSolver()
        highs.passModel(self._lp)
        if self._basis is not None:
            highs.setBasis(self._basis)
        highs.run()
        self.seconds += highs.getRunTime() - before
        return highs.getModelStatus()


#: Units in the last place that refinement leaves.
_LEFT = 1 << 8


def _new_solver() -> Any:
    """Return a solver that prints nothing: the public class greets on standard output."""
    make: Any = getattr(highspy._core, "_Highs", highspy.Highs)
    solver = make()
    solver.setOptionValue("output_flag", False)
    return solver


def _bound(gap: int | None, exponent: int, side: int) -> float:
    if gap is None:
        return side * highspy.kHighsInf
    value = double(gap, exponent)
    return side * highspy.kHighsInf if abs(value) > _FAR else value
