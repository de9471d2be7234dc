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


@dataclass(frozen=True, eq=False)
class Task:
    """Find the cheapest private channel from n_x values to n_y outputs.

    Attributes
    ----------
    sets
        What each adversary holds possible under each secret, over the n_x values.
    pairs
        The protected pairs of secrets, by position, in both orders.
    bound
        E, rational, with 1 < E <= e^epsilon.
    weights : whole numbers, shape (n_x,)
        Of the values, in proportion to mu.
    prices, costs : whole numbers, shape (n_x, n_y)
        c(x, y), and what M(y|x) adds to the expected cost, in the same ``unit``.
    unit
        The expected cost is this times the sum of costs * M.
    same
        For each value the output that equals it.
    places : two arrays of whole numbers, shapes (n_x,) and (n_y,)
        The values and the outputs in a common step, where the channel is to be unbiased.
    """

    sets: tuple[tuple[AmbiguitySet, ...], ...]
    pairs: Sequence[tuple[int, int]]
    bound: Fraction
    weights: CountArray
    prices: CountArray
    costs: CountArray
    unit: Fraction
    same: Sequence[int]
    conditions: Conditions
    places: tuple[CountArray, CountArray] | None = None

    def cost(self, rows: CountArray) -> Fraction:
        """Return the expected cost of a channel of integers, exactly."""
        each = zip(self.costs, rows, strict=True)
        spent = (Fraction(int(cost @ row), int(sum(row))) for cost, row in each)
        return sum(spent, Fraction(0)) * self.unit


@dataclass(frozen=True, eq=False)
class Average:
    """The values that no protected secret can take, of whose rows privacy says nothing.

    They are published like the average: beside the share ``min_keep``, which stays, with the row
    avg(y), the mean over adversaries and secrets of sum_x P_s(x) M(y|x). Whoever has such a value
    is then protected too (theory, section 4): if all pairs of one adversary are protected, avg(y)
    lies between likelihoods that differ by a factor E at most.

    ``task`` is that of all values, ``mean`` the mean of the priors, ``values`` are published so.
    """

    task: Task
    mean: CountArray
    values: IntArray

    @classmethod
    def of(cls, task: Task) -> "Average":
        """Return the average of a task.

        There are no such values where there is a region, which reaches all of them, nor in an
        unbiased channel; in an invariant one only those without a weight.
        """
        sets = [belief for own in task.sets for belief in own]
        points = [
            belief.masses.reshape(-1).astype(object) * Fraction(1, belief.total * len(sets))
            for belief in sets
            if isinstance(belief, Point)
        ]
        mean: CountArray = np.sum(points, axis=0)
        found = (mean == 0) & (len(points) == len(sets)) & (not task.conditions.unbiased)
        if task.conditions.invariant:
            found &= task.weights == 0
        return cls(task, mean, np.flatnonzero(found))

    @property
    def _kept(self) -> Fraction:
        return self.task.conditions.min_keep or Fraction(0)

    @property
    def _others(self) -> IntArray:
        return np.delete(np.arange(len(self.task.weights)), self.values)

    def task_of_others(self) -> Task:
        """Return the task of the other values, which bear what their average costs."""
        if not self.values.size:
            return self.task
        task, at = self.task, self._others
        borne = (1 - self._kept) * task.costs[self.values].sum(axis=0)
        points = (
            [Point(b.masses.reshape(-1)[at], b.total) for b in own if isinstance(b, Point)]
            for own in task.sets
        )
        return replace(
            task,
            sets=tuple(map(tuple, points)),
            weights=task.weights[at],
            prices=task.prices[at],
            costs=task.costs[at] + np.outer(self.mean[at], borne),
            same=[task.same[x] for x in at],
        )

    def with_rows(self, table: CountArray) -> CountArray:
        """Return the rows of all values, given those of the others, in whole numbers."""
        rows, at = np.zeros(self.task.costs.shape, dtype=object), self._others
        rows[at] = table
        for x in self.values:
            average = self.mean[at] * [Fraction(1, total) for total in table.sum(axis=1)] @ table
            row = (1 - self._kept) * average
            row[self.task.same[x]] += self._kept
            common = math.lcm(*(share.denominator for share in row))
            rows[x] = [int(share * common) for share in row]
        return rows
