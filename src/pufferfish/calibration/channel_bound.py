# SPDX-License-Identifier: Apache-2.0
"""How cheap a channel can be at best: a bound that any multipliers give, right or wrong ones.

For multipliers of the right sign, the cost of every feasible channel is at least what the
Lagrangian's least value is over rows that sum to 1 (weak duality). The solver's duals make it
sharp; where they are poor, or belong to another epsilon, it is only less sharp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_program import FloatArray, Program
from pufferfish.calibration.matrix import Matrix

#: The unit roundoff of doubles.
_UNIT = 2.0**-53
#: Roundings of a single term: its cost (three), coefficient, multiplier and product, and spare.
_EACH = 10


def least_cost_exactly(
    program: Program, costs: Sequence[Fraction], multipliers: Sequence[Fraction]
) -> Fraction:
    """Return the same bound in rationals, for multipliers of any size; slow.

    Parameters
    ----------
    program : Program
    costs : list of Fraction
        What each variable costs, in place of the program's doubles.
    multipliers : list of Fraction, shape (rows,)
        Of the rows themselves; those of a wrong sign are taken as 0.
    """
    n_x, n_y = program.shape
    reduced = list(costs)
    total = Fraction(0)
    for r, (row, y) in enumerate(zip(program.rows, multipliers, strict=True)):
        end = row.lower if y > 0 else row.upper
        if y and end is not None and not program.sums <= r < program.sums + n_x:
            total += y * end
            for column, a in zip(row.columns, row.coefficients, strict=True):
                reduced[column] -= y * a
    for x in range(n_x):
        inner = range(x * n_y, (x + 1) * n_y)
        held = [(program.least[c], reduced[c]) for c in inner if c in program.least]
        least = min(reduced[c] for c in inner)
        total += least + sum((share * (r - least) for share, r in held), Fraction(0))
    return total + sum((min(r, Fraction(0)) for r in reduced[n_x * n_y :]), Fraction(0))


def least_cost(program: Program, matrix: Matrix, duals: FloatArray) -> float:
    """Return a lower bound of the program's optimum, what rounding takes subtracted.

    A sum of k terms, each with e roundings of its own, is wrong by at most (k + e) u / (1 -
    (k + e) u) of the sum of their sizes, u = 2**-53, in whatever order it is taken. Twice
    (k + e) u of the sizes as computed is more than that, and than what is lost in the sizes.

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
    # Each column with its own number of terms, however many: robust ones are tall.
    slack = (2 * _UNIT) * (np.bincount(matrix.index, minlength=size) + _EACH) * error
    safe = (reduced - slack)[: n_x * n_y].reshape(n_x, n_y)
    least = np.zeros(n_x * n_y)
    for column, bound in program.least.items():
        least[column] = float(bound)
    held = least.reshape(n_x, n_y)
    # What is held of a row, and the rest of it, are each right to as many roundings as its terms.
    left = (1.0 - held.sum(axis=1)) * safe.min(axis=1)
    further = np.minimum((reduced - slack)[n_x * n_y :], 0.0)
    kept = (held * safe)[held != 0]
    parts = np.concatenate([kept, left, ends, further])
    sizes = math.fsum(np.abs(parts).tolist()) + math.fsum(np.abs(safe.min(axis=1)).tolist())
    most = np.count_nonzero(held, axis=1).max() if held.size else 0
    # fsum rounds once.
    return math.fsum(parts.tolist()) - 2 * _UNIT * float(most + _EACH) * sizes
