# SPDX-License-Identifier: Apache-2.0
"""Weights of the outputs: the unbiased ones with the least variance, solved in ball arithmetic.

M w = a has many solutions where there are more outputs than the rank of M. The one with the least
sum of d_y w_y^2 is w = D^-1 M' (M D^-1 M')^-1 a, over the rows of M that are a basis; with d the
distribution of the outputs it has the least variance. d must not depend on the released column,
or the estimate would be biased: it is taken as if all inputs were equally frequent.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from pufferfish.certificate.arbs import ball
from pufferfish.precision import precision

#: A weight's ball must be this much smaller than the largest weight.
_ACCURACY = 2.0**-60
_FIRST_BITS, _MOST_BITS = 192, 1 << 20


def least_variance(
    rows: Sequence[Sequence[int]],
    basis: Sequence[int],
    functionals: Sequence[Sequence[Fraction | int]],
) -> NDArray[np.float64]:
    """Return weights w with M w = a for several a, each correct to about double precision.

    Parameters
    ----------
    rows : integers, shape (n_x, n_y)
        Each row over its own sum is a distribution; no column is all 0.
    basis : positions of rows, shape (r,)
        Rows of M that are a basis of its row space.
    functionals : rationals, shape (k, n_x)
        The right-hand sides a, each of them in the column space of M.

    Returns
    -------
    float64 array, shape (k, n_y)

    Raises
    ------
    ArithmeticError
        If the rows are no basis.

    Notes
    -----
    Source: theory, section 4. The precision is doubled until the balls are small, however near to
    singular the channel is.
    """
    bits = _FIRST_BITS
    while bits <= _MOST_BITS:
        with precision(bits):
            solved = _solved(rows, basis, functionals)
        if solved is not None:
            return solved
        bits *= 2
    raise ArithmeticError("the weights of a channel could not be computed")


def _solved(
    rows: Sequence[Sequence[int]],
    basis: Sequence[int],
    functionals: Sequence[Sequence[Fraction | int]],
) -> NDArray[np.float64] | None:
    totals = [sum(row) for row in rows]
    matrix = [
        [ball(Fraction(entry, total)) for entry in row]
        for row, total in zip(rows, totals, strict=True)
    ]
    base = arb_mat([matrix[x] for x in basis])
    sides = arb_mat([[ball(Fraction(a[x])) for a in functionals] for x in basis])
    try:
        if len(basis) == len(rows[0]):
            weights = base.solve(sides)
        else:
            mass = [sum(column, arb()) for column in zip(*matrix, strict=True)]
            scaled = arb_mat([[matrix[x][y] / mass[y] for x in basis] for y in range(len(mass))])
            weights = scaled * (base * scaled).solve(sides)
    except ZeroDivisionError:
        return None
    table = weights.transpose().table()
    result = np.array([[float(w.mid()) for w in line] for line in table])
    radius = np.array([[float(w.rad()) for w in line] for line in table])
    largest = np.abs(result).max(axis=1, keepdims=True)
    result[np.abs(result) <= radius] = 0.0  # a 0 that is known to 60 bits
    return result if bool((radius <= _ACCURACY * largest).all()) else None
