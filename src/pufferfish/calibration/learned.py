# SPDX-License-Identifier: Apache-2.0
"""What the solver's duals tell of the least cost: of this epsilon, of larger ones, and of any.

Nothing depends on the duals being right: they are multipliers, and any multipliers give a lower
bound (:mod:`pufferfish.calibration.channel_bound`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pufferfish.calibration.channel_bound import least_cost, least_cost_exactly
from pufferfish.calibration.dyadic import as_double, shifted
from pufferfish.calibration.forbidden import scaled_costs, terms_of
from pufferfish.calibration.highs import Solution, Solver

if TYPE_CHECKING:
    from pufferfish.calibration.channel_task import Task

#: Programs with more coefficients are not looked at in rationals.
_MOST_EXACTLY = 50_000


def learn(task: Task, bound: Fraction, solver: Solver, solution: Solution) -> None:
    """Raise the lower bounds of a task's cost to what the solver's duals tell.

    Parameters
    ----------
    task : Task
    bound : Fraction
        E of the program that was solved, or 1 for that of epsilon 0.
    solver : Solver
    solution : Solution
    """
    program, matrix, duals = solver.program, solver.matrix, solution.duals
    if task.forbidden:
        # Nothing is forbidden here, but all costs are the true ones.
        true = scaled_costs(task.priced.costs, task.unit).ravel()[task.forbidden]
        weights = np.array([float(w) for w in task.priced.weights])
        cost, duals = program.cost.copy(), duals.copy()
        cost[task.forbidden] = true * weights[np.array(task.forbidden) // task.outputs.size]
        duals[-1] = 0.0
        program = replace(program, cost=cost)
    fixed = task.scaled(task.priced.fixed) * (1 - 1e-15)
    least = least_cost(program, matrix, duals) + fixed
    if bound == 1:
        # What was 0 is at most (E - 1) Q_j(y), and that at most E - 1.
        sizes = np.array([as_double(w) for w in program.weights])
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = np.abs(np.ldexp(duals, -matrix.exponent))[: program.sums] * sizes
            least -= float(task.bound - 1) * float(sizes.sum()) * (1 + 1e-9)
        least = least if math.isfinite(least) else 0.0
    if bound == task.bound:
        task.multipliers = [
            shifted(Fraction(y) * task.unit, -e) if math.isfinite(y) else Fraction(0)
            for y, e in zip(duals.tolist(), matrix.exponent.tolist(), strict=True)
        ]
    if bound in (task.bound, 1):
        task.at_least = max(task.at_least, least)
    if task.conditions.any:
        others = np.where(np.arange(len(duals)) < program.sums, 0.0, duals)
        least = least_cost(program, matrix, others) + fixed
        task.at_least_anywhere = max(task.at_least_anywhere, least)


def take_over(task: Task, other: Task) -> None:
    """Take over what another way to solve the same task tells of the least cost."""
    factor = as_double(other.unit / task.unit) * (1 - 1e-15)
    if math.isfinite(factor):
        task.at_least = max(task.at_least, other.at_least * factor)
        task.at_least_anywhere = max(task.at_least_anywhere, other.at_least_anywhere * factor)
    task.seconds += other.seconds


def learn_of_larger(task: Task, bound: Fraction) -> None:
    """Raise ``at_least``, known for any E so far, to what the duals tell for one above the task's.

    The multipliers of inequalities that contain E are scaled so that their products with it stay
    what they were; that is done in rationals, for the least costs are below what doubles resolve.
    Large programs go without.

    Parameters
    ----------
    task : Task
    bound : Fraction
        E, not below e^epsilon.
    """
    program = replace(task, bound=bound).program(bound)
    if not task.multipliers or sum(len(r.columns) for r in program.rows) > _MOST_EXACTLY:
        return
    share = task.bound / bound
    scaled = [
        y * share if r < program.sums and program.rows[r].upper == 0 else y
        for r, y in enumerate(task.multipliers)
    ]
    costs = terms_of(task.priced.weights, task.priced.costs).ravel().tolist()
    costs += [Fraction(0)] * (len(program.cost) - len(costs))
    least = least_cost_exactly(program, costs, scaled) + task.priced.fixed
    task.at_least = max(task.at_least, task.scaled(least) * (1 - 1e-15))
