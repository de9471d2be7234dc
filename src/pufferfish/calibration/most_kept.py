# SPDX-License-Identifier: Apache-2.0
"""How often every value can be kept at most, where too much was asked for: for the message.

One more linear program: the largest p for which a channel that is private, meets the other
conditions and keeps every value at least p of the time exists. What it says is rounded down and
then asked for like by a user: only a figure for which a channel was made is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_program import Row
from pufferfish.calibration.channel_task import Task
from pufferfish.calibration.highs import Solver
from pufferfish.errors import PufferfishError

#: Digits of the figure.
_DIGITS = 4
#: What the solver may be wrong by.
_TOLERANCE = 1e-9


def most_kept(task: Task, bound: Fraction) -> Fraction | None:
    """Return a ``min_keep`` that is feasible, the largest of 4 digits; None where none is found.

    Parameters
    ----------
    task : Task
        What was asked for, and too much.
    bound : Fraction
        E of the program, or 1 for that of epsilon 0.
    """
    asked = task.conditions.min_keep
    if asked is None:
        return None
    try:
        largest = _largest(replace(task, conditions=replace(task.conditions, min_keep=None)), bound)
    except PufferfishError:
        return None
    for share in _candidates(largest):
        if 0 < share < asked:
            try:
                replace(task, conditions=replace(task.conditions, min_keep=share)).solved(bound)
            except PufferfishError:
                continue
            return share
    return None


def _largest(task: Task, bound: Fraction) -> float:
    """Return the largest p, to the solver's tolerance."""
    program = task.program(bound)
    last, outputs = len(program.cost), task.costs.shape[1]
    cost = np.zeros(last + 1)
    cost[last] = -1.0
    # The rows of other values are no matter: they keep what is asked for whatever privacy asks.
    asked = [(x, y) for x, y in enumerate(task.same) if y is not None and x not in task.averaged]
    difference = [Fraction(1), Fraction(-1)]
    program.rows.extend(
        Row([x * outputs + y, last], difference, Fraction(0), None) for x, y in asked
    )
    return float(Solver(replace(program, cost=cost)).solve().values[last])


def _candidates(largest: float) -> Iterator[Fraction]:
    """Yield figures of 4 digits that are near it, the largest first."""
    if largest <= _TOLERANCE:
        return
    unit = Fraction(10) ** (math.floor(math.log10(largest)) + 1 - _DIGITS)
    most = math.floor(Fraction(largest * (1 + _TOLERANCE)) / unit)
    yield from ((most - k) * unit for k in range(3))
