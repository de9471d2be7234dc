# SPDX-License-Identifier: Apache-2.0
"""The task of the linear program in whole numbers, and the average row, which it leaves out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_options import Conditions
from pufferfish.numbers import CountArray, IntArray
from pufferfish.priors.ambiguity import AmbiguitySet, Point

#: What each adversary holds possible under each secret. Beside previous releases there is an
#: adversary for each of their outputs, and points do not sum to their total.
Sets = tuple[tuple[AmbiguitySet, ...], ...]


@dataclass(frozen=True, eq=False)
class Cone:
    """What a column M(y|.) must meet for privacy: P_i.m <= E P_j.m, for all P of the sets."""

    sets: Sets  # over the n_x values
    pairs: Sequence[tuple[int, int]]  # the protected ones, by position, in both orders
    bound: Fraction  # E, with 1 < E <= e^epsilon


@dataclass(frozen=True, eq=False)
class Task(Cone):
    """Find the cheapest private channel from n_x values to n_y outputs, in whole numbers."""

    weights: CountArray  # shape (n_x,), in proportion to mu
    prices: CountArray  # shape (n_x, n_y): c(x, y)
    costs: CountArray  # shape (n_x, n_y): what M(y|x) adds to the expected cost, in the same unit
    unit: Fraction  # the expected cost is this times the sum of costs * M
    same: Sequence[int]  # for each value the output that equals it
    conditions: Conditions
    #: Where it is to be unbiased, the values and the outputs in a common step.
    places: tuple[CountArray, CountArray] | None = None

    def cost(self, rows: CountArray) -> Fraction:
        """Return the expected cost of a channel of integers, exactly."""
        spent = map(Fraction, (self.costs * rows).sum(axis=1), rows.sum(axis=1))
        return sum(spent, Fraction(0)) * self.unit


class Average:
    """The values that no protected secret can take, of whose rows privacy says nothing.

    They are published like the average: beside the share ``min_keep``, which stays, with the row
    avg(y), the mean over adversaries and secrets of sum_x P_s(x) M(y|x). Whoever has such a value
    is then protected too (theory, section 4): if all pairs of one adversary are protected, avg(y)
    lies between likelihoods that differ by a factor E at most. There are no such values where there
    is a region, which reaches all of them, nor in an unbiased channel; in an invariant one only
    those without a weight.

    ``task`` is that of all values, ``masses`` is the sum of the priors in whole numbers, ``kept``
    the share that stays; ``values`` are published so, and ``others`` have rows of their own.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.kept = task, task.conditions.min_keep or Fraction(0)
        sets = [belief for own in task.sets for belief in own]
        points = [belief for belief in sets if isinstance(belief, Point)]
        common = math.lcm(*(point.total for point in points))
        each = (p.masses.reshape(-1).astype(object) * (common // p.total) for p in points)
        self.masses: CountArray = sum(each, np.zeros(len(task.weights), dtype=object))
        found = (self.masses == 0) & (len(points) == len(sets)) & (not task.conditions.unbiased)
        if task.conditions.invariant:
            found &= task.weights == 0
        self.values: IntArray = np.flatnonzero(found)
        self.others: IntArray = np.flatnonzero(~found)

    def task_of_others(self) -> Task:
        """Return the task of the other values, which bear what their average costs."""
        if not self.values.size:
            return self.task
        task, at, kept = self.task, self.others, self.kept
        borne = (kept.denominator - kept.numerator) * task.costs[self.values].sum(axis=0)
        whole = sum(self.masses) * kept.denominator
        points = (
            [Point(b.masses.reshape(-1)[at], b.total) for b in own if isinstance(b, Point)]
            for own in task.sets
        )
        return replace(
            task, sets=tuple(map(tuple, points)), weights=task.weights[at] * whole,
            prices=task.prices[at], costs=task.costs[at] * whole + np.outer(self.masses[at], borne),
            unit=task.unit / whole, same=[task.same[x] for x in at],
        )  # fmt: skip

    def with_rows(self, table: CountArray) -> CountArray:
        """Return the rows of all values, given those of the others, in whole numbers."""
        rows, kept = np.zeros(self.task.costs.shape, dtype=object), self.kept
        rows[self.others] = table
        sums = table.sum(axis=1)
        common = math.lcm(*sums)
        average = self.masses[self.others] * (common // sums) @ table
        for x in self.values:
            row = (kept.denominator - kept.numerator) * average
            row[self.task.same[x]] += kept.numerator * sum(self.masses) * common
            rows[x] = row // math.gcd(*row)
        return rows
