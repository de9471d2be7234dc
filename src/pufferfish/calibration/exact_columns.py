# SPDX-License-Identifier: Apache-2.0
"""Private columns of whole numbers next to those that a search in doubles found.

Each is moved into the cone where it is outside; what the rows lack then is an output of its own,
which tells next to nothing. All that counts is checked in whole numbers.
"""

import math

import numpy as np

from pufferfish.calibration.channel_repair import needed_mixture, whole_numbers
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import Solution
from pufferfish.calibration.rays import Rays
from pufferfish.errors import PufferfishError
from pufferfish.numbers import CountArray

#: The output of all values is given 2 to minus this at first, and 2 to minus that at most.
_REST, _MOST_REST = 36, 10
#: Columns are moved inwards by 2 to minus this at first, and by 2 to minus that at most.
_INWARDS, _MOST_INWARDS = 50, 10


def exact_columns(cone: Cone, rays: Rays, found: Solution) -> CountArray:
    """Return private columns of whole numbers, whose rows have one sum; the last is of the rest.

    Without a rest, where every level is published as itself, there is none.
    """
    if (found.rays.value.max(axis=1) == 1).all():
        alone: CountArray = found.rays.dense(cone.size).T.astype(int).astype(object)
        return alone
    bits = 64 + math.ceil(-math.log2(min(1.0, float(cone.bound - 1))))
    columns = _inside(cone, rays, found, bits)
    for power in range(_REST, _MOST_REST, -1):
        less = (1 << power) - 1
        rest = (1 << bits + power) - columns.sum(axis=1) * less
        if rest.min() >= 0 and not needed_mixture(cone, rest[:, None]).any():
            return np.column_stack([columns * less, rest])
    raise PufferfishError("no private channel was found next to the best one; please report it")


def _inside(cone: Cone, rays: Rays, found: Solution, bits: int) -> CountArray:
    """Return whole numbers in proportion to columns, moved into the cone where they are outside.

    Inwards is the mean of the column and all rays that use no other levels. Where that is no way
    in, something of every level is added.
    """
    shares = (found.weights[:, None] * found.rays.dense(cone.size)).T
    columns = whole_numbers(shares, 1 << bits)
    outside = np.flatnonzero(needed_mixture(cone, columns))
    mean = shares[:, outside]
    index, unused = rays.index.T.copy(), rays.value.T == 0
    for column in mean.T:
        within, whole = ((column > 0)[index] | unused).all(axis=0), column.sum()
        column /= whole
        np.add.at(column, index[:, within], rays.value.T[:, within])
        column *= whole / column.sum()
    for power in range(_INWARDS, _MOST_INWARDS, -1):
        if not outside.size:
            break
        moved = (1 - 2.0**-power) * shares[:, outside] + 2.0**-power * mean
        columns[:, outside] = whole_numbers(moved, 1 << bits)
        wrong = needed_mixture(cone, columns[:, outside]) > 0
        outside, mean = outside[wrong], mean[:, wrong]
    return columns + needed_mixture(cone, columns)
