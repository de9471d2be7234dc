# SPDX-License-Identifier: Apache-2.0
"""Private columns of whole numbers next to those that a search in doubles found.

The search is in a cone that is a little narrower, so that rounded columns are private as they are.
What the rows lack is an output of its own, which tells next to nothing. All that counts is checked
in whole numbers.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_repair import needed_mixture, whole_numbers
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import Solution
from pufferfish.errors import PufferfishError
from pufferfish.numbers import CountArray

#: E - 1 is less by these shares: of itself, for regions, whose columns a solver finds, and of 1.
_NARROWER, _OF_REGIONS, _OF_ONE = Fraction(1, 2**40), Fraction(1, 2**20), Fraction(1, 2**49)
#: Bits of the weights of columns, and of the columns themselves.
_WEIGHT, _COLUMN = 48, 72
#: The output of all values is given 2 to minus this at first, and 2 to minus that at most.
_REST, _MOST_REST = 36, 10


def narrower(cone: Cone, regions: bool) -> Cone:
    """Return a cone within, so that what doubles find in it is private in the other one."""
    share = _OF_REGIONS if regions else _NARROWER
    bound = cone.bound - (cone.bound - 1) * share - _OF_ONE
    return replace(cone, bound=Fraction(math.floor(bound * 2**72), 2**72))


def exact_columns(cone: Cone, found: Solution) -> CountArray:
    """Return private columns of whole numbers, whose rows have one sum; the last is of the rest.

    Without a rest, where every level is published as itself, there is none. Something of every
    level is added to a column that is still outside.
    """
    if (found.rays.value.max(axis=1) == 1).all():
        alone: CountArray = found.rays.dense(cone.size).T.astype(int).astype(object)
        return alone
    weights = whole_numbers(found.weights, 1 << _WEIGHT)
    columns = whole_numbers(found.rays.dense(cone.size).T, 1 << _COLUMN) * weights
    columns = columns + needed_mixture(cone, columns)
    for power in range(_REST, _MOST_REST, -1):
        less = (1 << power) - 1
        rest = (1 << _WEIGHT + _COLUMN + power) - columns.sum(axis=1) * less
        if rest.min() >= 0 and not needed_mixture(cone, rest[:, None]).any():
            return np.column_stack([columns * less, rest])
    raise PufferfishError("no private channel was found next to the best one; please report it")
