# SPDX-License-Identifier: Apache-2.0
"""How cheap a channel can be at best: a bound that any multipliers give, right or wrong ones.

For multipliers of the right sign, the cost of every feasible channel is at least what the
Lagrangian's least value is over rows that sum to 1 (weak duality). The solver's duals make it
sharp; where they are poor, or belong to another epsilon, it is only less sharp.
"""

from __future__ import annotations

import numpy as np

from pufferfish.calibration.channel_program import FloatArray, Program
from pufferfish.calibration.matrix import Matrix

#: Of the sum of absolute values: more than what rounding takes.
_ROUNDING = 1e-14


def least_cost(program: Program, matrix: Matrix, duals: FloatArray) -> float:
    """Return a lower bound of the program's optimum, what rounding takes subtracted.

    Parameters
    ----------
    program : Program
    matrix : Matrix
        The program's rows.
    duals : float64 array, shape (rows,)
        Multipliers: those of lower bounds positive, those of upper bounds negative. Others, and
        those of bounds that are not there, are taken as 0.
    """
    n_x, n_y = program.shape
    inner = slice(program.sums, program.sums + n_x)
    y = np.where(np.isfinite(duals), duals, 0.0)
    y[inner] = 0.0
    y[(y > 0) & np.isinf(matrix.lower)] = 0.0
    y[(y < 0) & np.isinf(matrix.upper)] = 0.0
    ends = np.where(y > 0, matrix.lower, np.where(y < 0, matrix.upper, 0.0)) * y
    terms = np.repeat(y, np.diff(matrix.start)) * matrix.value
    size = len(program.cost)
    reduced = program.cost - np.bincount(matrix.index, terms, size)
    error = np.abs(program.cost) + np.bincount(matrix.index, np.abs(terms), size)
    slack = _ROUNDING * error
    safe = (reduced - slack)[: n_x * n_y].reshape(n_x, n_y)
    least = np.zeros(n_x * n_y)
    for column, bound in program.least.items():
        least[column] = float(bound)
    held = least.reshape(n_x, n_y)
    total = float((held * safe).sum() + ((1.0 - held.sum(axis=1)) * safe.min(axis=1)).sum())
    total += float(ends.sum()) - _ROUNDING * float(np.abs(ends).sum())
    total += float(np.minimum((reduced - slack)[n_x * n_y :], 0.0).sum())
    return total - _ROUNDING * abs(total)
