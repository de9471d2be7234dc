# SPDX-License-Identifier: Apache-2.0
"""The linear program of the optimal channel, and its solution by HiGHS.

Variables are M(y|x), x-major. For every output y, adversary and ordered pair,

    sum_x M(y|x) (P_i(x) - E P_j(x)) <= 0,        E a rational just below e^epsilon.

Where all pairs of three or more secrets are protected, one more variable per output and
adversary (the least likelihood l_y) says the same with 2 m rows instead of m (m - 1):
l_y <= sum_x M(y|x) P_s(x) <= E l_y for every secret s (theory, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from pufferfish.errors import PufferfishError
from pufferfish.scenario import Scenario

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One constraint: ``lower <= coefficients . variables <= upper``, exact.

    Attributes
    ----------
    columns : list of int
        Variables with a coefficient.
    coefficients : list of Fraction
        Their coefficients; rows that differ only in the output share one list.
    lower, upper : Fraction or None
        None where there is none.
    """

    columns: list[int]
    coefficients: list[Fraction]
    lower: Fraction | None
    upper: Fraction | None


@dataclass(frozen=True)
class Program:
    """The program: minimise ``cost . variables`` within ``rows``, variables >= ``least``.

    Attributes
    ----------
    shape : (int, int)
        n_x, n_y: the first n_x * n_y variables are the channel.
    cost : float64 array
        One entry per variable; only the solver uses it.
    rows : list of Row
    least : dict of int to Fraction
        Lower bounds other than 0.
    """

    shape: tuple[int, int]
    cost: FloatArray
    rows: list[Row]
    least: dict[int, Fraction]


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Attributes
    ----------
    values : float64 array
        The variables, to the solver's tolerance.
    objective : float
        Their cost.
    seconds : float
        What the solver alone took.
    solver : highspy.Highs
        Holds the basis, for the refinement.
    """

    values: FloatArray
    objective: float
    seconds: float
    solver: Any


def privacy_rows(scenario: Scenario, outputs: int, bound: Fraction) -> tuple[list[Row], int]:
    """Return the privacy constraints, and how many further variables they use."""
    n = scenario.support.size
    rows: list[Row] = []
    further = 0
    secrets = scenario.protected
    for prior in scenario.priors:
        masses = {
            s: [(x, prior.probability(s, x)) for x in range(n) if prior.counts[prior.row(s), x]]
            for s in secrets
        }
        if scenario.is_all_pairs and len(secrets) > 2:
            above = {s: [*(p for _, p in masses[s]), Fraction(-1)] for s in secrets}
            below = {s: [*(p for _, p in masses[s]), -bound] for s in secrets}
            for y in range(outputs):
                least = n * outputs + further
                further += 1
                for s in secrets:
                    columns = [*(x * outputs + y for x, _ in masses[s]), least]
                    rows.append(Row(columns, above[s], Fraction(0), None))
                    rows.append(Row(columns, below[s], None, Fraction(0)))
            continue
        for first, second in scenario.pairs:
            for i, j in ((first, second), (second, first)):
                difference = dict(masses[i])
                for x, p in masses[j]:
                    difference[x] = difference.get(x, Fraction(0)) - bound * p
                atoms = sorted(x for x, d in difference.items() if d != 0)
                coefficients = [difference[x] for x in atoms]
                rows += [
                    Row([x * outputs + y for x in atoms], coefficients, None, Fraction(0))
                    for y in range(outputs)
                ]
    return rows, further


def _new_solver() -> Any:
    """Return a solver that prints nothing: the public class greets on standard output."""
    make: Any = getattr(highspy._core, "_Highs", highspy.Highs)
    solver = make()
    solver.setOptionValue("output_flag", False)
    return solver


def solve(program: Program) -> Solution:
    """Solve a program with HiGHS.

    Raises
    ------
    PufferfishError
        If HiGHS does not report an optimum; ``Infeasible`` where it says that there is none.
    """
    variables = len(program.cost)
    solver = _new_solver()
    solver.setOptionValue("primal_feasibility_tolerance", 1e-10)
    solver.setOptionValue("dual_feasibility_tolerance", 1e-10)
    solver.setOptionValue("threads", 1)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = variables, len(program.rows)
    lp.col_cost_ = program.cost
    least = np.zeros(variables)
    for column, bound in program.least.items():
        least[column] = float(bound)
    lp.col_lower_ = least
    lp.col_upper_ = np.full(variables, highspy.kHighsInf)
    lp.row_lower_ = np.array(
        [-highspy.kHighsInf if r.lower is None else float(r.lower) for r in program.rows]
    )
    lp.row_upper_ = np.array(
        [highspy.kHighsInf if r.upper is None else float(r.upper) for r in program.rows]
    )
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(r.columns) for r in program.rows)])
    lp.a_matrix_.index_ = np.concatenate([np.array(r.columns, np.int32) for r in program.rows])
    doubles: dict[int, FloatArray] = {}
    for r in program.rows:
        if id(r.coefficients) not in doubles:
            doubles[id(r.coefficients)] = np.array([float(a) for a in r.coefficients])
    lp.a_matrix_.value_ = np.concatenate([doubles[id(r.coefficients)] for r in program.rows])
    solver.passModel(lp)
    solver.run()
    status = solver.getModelStatus()
    if status in (
        highspy.HighsModelStatus.kInfeasible,
        highspy.HighsModelStatus.kUnboundedOrInfeasible,
    ):
        raise Infeasible("no channel meets all the conditions")
    if status != highspy.HighsModelStatus.kOptimal:
        raise PufferfishError(
            f"the solver found no optimal channel ({solver.modelStatusToString(status)})"
        )
    values = np.array(solver.getSolution().col_value)
    objective = float(solver.getInfo().objective_function_value)
    return Solution(values, objective, solver.getRunTime(), solver)


class Infeasible(PufferfishError):
    """The program has no solution."""

    exit_status = 2


def refined(program: Program, solution: Solution, bits: int) -> Sequence[int]:
    """Return the basic solution with ``bits`` fractional bits, as integers over 2**bits.

    Iterative refinement: residuals exact, corrections by the solver's factors of the basis.
    """
    status, basic = solution.solver.getBasicVariables()
    if status != highspy.HighsStatus.kOk:
        raise PufferfishError("the solver gave no basis")
    one = 1 << bits
    columns = [int(v) for v in basic]
    where = {v: k for k, v in enumerate(columns) if v >= 0}
    slack_of = {-1 - v for v in columns if v < 0}
    highs_basis = solution.solver.getBasis()
    at_lower = highspy.HighsBasisStatus.kLower
    target: list[int] = []
    for r, row in enumerate(program.rows):
        if r in slack_of:
            target.append(0)
            continue
        lower = highs_basis.row_status[r] == at_lower and row.lower is not None
        bound = row.lower if lower or row.upper is None else row.upper
        assert bound is not None  # a row without bounds is always basic
        target.append(int(bound * one))
    fixed = {c: b for c, b in program.least.items() if c not in where}
    matrix: list[list[tuple[int, int]]] = []
    scales: list[int] = []
    integers: dict[int, tuple[int, list[int]]] = {}
    for r, row in enumerate(program.rows):
        key = id(row.coefficients)
        if key not in integers:
            scale = math.lcm(*{a.denominator for a in row.coefficients})
            integers[key] = (
                scale,
                [a.numerator * (scale // a.denominator) for a in row.coefficients],
            )
        scale, whole = integers[key]
        scales.append(scale)
        entries = []
        for c, a in zip(row.columns, whole, strict=True):
            if c in where:
                entries.append((where[c], a))
            elif c in fixed:
                target[r] -= int(fixed[c] * Fraction(a, scale) * one)
        matrix.append(entries)
    slack_place = {-1 - v: k for k, v in enumerate(columns) if v < 0}
    z = [0] * len(columns)
    for k, v in enumerate(columns):
        if v >= 0:
            z[k] = int(Fraction(float(solution.values[v])) * one)
    for r, k in slack_place.items():
        z[k] = target[r] - sum(a * z[q] for q, a in matrix[r]) // scales[r]
    for _ in range(8):
        residual = []
        for r, entries in enumerate(matrix):
            total = sum(a * z[q] for q, a in entries)
            if r in slack_place:
                total += z[slack_place[r]] * scales[r]
            residual.append(target[r] - total // scales[r])
        size = max(abs(v) for v in residual)
        if size <= 1 << 8:
            break
        shift = max(size.bit_length() - 60, 0)
        rhs = np.array([float(v >> shift) for v in residual])
        _, step = solution.solver.getBasisSolve(rhs)
        correction = [int(Fraction(float(s)) * (1 << shift)) for s in step]
        z = [a + b for a, b in zip(z, correction, strict=True)]
    result = [0] * len(program.cost)
    for c, b in program.least.items():
        result[c] = int(b * one)
    for v, k in where.items():
        result[v] = z[k]
    return result
