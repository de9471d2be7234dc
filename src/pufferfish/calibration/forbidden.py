# SPDX-License-Identifier: Apache-2.0
"""Outputs that cost so much that no good channel publishes them: they are left out of the program.

A user writes 1e13 or 1e300 where something must never happen. Beside it all other costs are below
what the solver's doubles resolve. So entries that cost far more than a whole good channel does are
forbidden instead, and the costs of the others are scaled as if these were not there. Nothing rests
on that: the lower bound of the cost is taken without the prohibition and for the true costs
(weak duality), so that it tells how good the answer is. Where that is not good, the program with
all its entries is solved as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_program import FloatArray, Row
from pufferfish.calibration.costs import ObjectArray
from pufferfish.calibration.dyadic import as_double

#: Terms of the cost above 2 to this times a whole channel's cost are forbidden.
_FAR = 30
#: Scaled costs beyond this count as this: that is a lower bound as well.
MOST = 1e300


def terms_of(weights: Sequence[Fraction], costs: ObjectArray) -> ObjectArray:
    """Return what each entry of the channel costs, weight included."""
    return np.array([[w * c for c in row] for w, row in zip(weights, costs.tolist(), strict=True)])


def forbidden(
    weights: Sequence[Fraction],
    costs: ObjectArray,
    ceiling: Fraction | None,
    kept: Sequence[int | None],
) -> list[int]:
    """Return the variables whose term of the cost is above a ceiling.

    Parameters
    ----------
    weights : list of Fraction
        How much each row's cost counts.
    costs : array of numbers, shape (n_x, n_y)
    ceiling : Fraction or None
        None: nothing is forbidden.
    kept : sequence of int or None
        For each value the output that a side condition asks for.
    """
    if ceiling is None:
        return []
    outputs = costs.shape[1]
    asked = dict(enumerate(kept))
    return [
        x * outputs + y
        for x, (w, row) in enumerate(zip(weights, costs.tolist(), strict=True))
        if w
        for y, c in enumerate(row)
        if w * c > ceiling and y != asked.get(x)
    ]


def ceiling_of(
    weights: Sequence[Fraction], costs: ObjectArray, spent: Fraction | None = None
) -> Fraction | None:
    """Return a ceiling that forbids something, or None where nothing is that far apart.

    Parameters
    ----------
    weights : list of Fraction
    costs : array of numbers, shape (n_x, n_y)
    spent : Fraction, optional
        What a channel costs; by default that of the cheapest output alone.
    """
    most = max(w * max(row) for w, row in zip(weights, costs.tolist(), strict=True))
    if spent is None:
        with np.errstate(over="ignore"):
            alone = np.array([float(w) for w in weights]) @ np.minimum(_doubles(costs), MOST)
        spent = Fraction(float(min(alone.min(), MOST)))
    ceiling = spent * (1 << _FAR)
    return ceiling if 0 < ceiling < most else None


def prohibition(columns: list[int]) -> Row:
    """Return the constraint that none of these variables is above 0."""
    return Row(columns, [Fraction(1)] * len(columns), None, Fraction(0))


def scaled_costs(costs: ObjectArray, unit: Fraction) -> FloatArray:
    """Return costs as doubles, in a unit."""
    if Fraction(1, 2**900) < unit < 2**900:
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum(_doubles(costs) / float(unit), MOST))
    return np.asarray(np.minimum(_doubles(costs / unit), MOST))


def _doubles(costs: ObjectArray) -> FloatArray:
    try:
        return np.asarray(costs.astype(np.float64))
    except OverflowError:
        return np.array([[as_double(Fraction(c)) for c in row] for row in costs.tolist()])
