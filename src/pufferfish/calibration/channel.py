# SPDX-License-Identifier: Apache-2.0
"""``channel``: the least expected distortion that any record-by-record channel can have.

A linear program (theory, section 4), then a repair: the solver's floating-point answer becomes a
channel of integers that satisfies every privacy inequality in exact arithmetic. Values of which
privacy says nothing are left out of it, and published like the average.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.calibration.channel_program import build, check_size, least_cost
from pufferfish.calibration.channel_repair import repaired
from pufferfish.calibration.channel_task import (
    Conditions,
    Cone,
    Costs,
    Sets,
    Task,
    check_span,
    output_alphabet,
    read_conditions,
    read_costs,
    read_weights,
    widened,
)
from pufferfish.calibration.root import Proposal
from pufferfish.calibration.solver import Infeasible, solve
from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel, places, same_places
from pufferfish.numbers import CountArray, IntArray, float_up, precision, show
from pufferfish.plans.guarantee import Distortion
from pufferfish.priors.ambiguity import Point
from pufferfish.priors.betting import ball
from pufferfish.priors.scenario import Scenario, positions
from pufferfish.support import Support

#: Below the first, doubles cannot tell e^epsilon from 1. Above the second, the channel for the
#: second is used.
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), Fraction(20)
#: Bits of e^epsilon, and of the balls that it is computed from.
_BITS, _EXP_BITS = 160, 256


def channel(
    scenario: Scenario, epsilon: Fraction, *, cost: object = None, outputs: int | str | None = None,
    invariant: bool = False, unbiased: bool = False, min_keep: object = None,
    weights: Sequence[object] | Mapping[Any, object] | None = None, beside: Sets | None = None,
) -> Proposal:  # fmt: skip
    """Return the channel of least expected cost that is epsilon-Pufferfish private.

    Source: theory, sections 4 and 5. Options are those of :func:`pufferfish.calibrate`; ``beside``:
    what previous releases make of the priors. InputError says what cannot be met, and what could;
    PufferfishError that the solver failed.
    """
    used, notes = usable(epsilon)
    bound = exponential_below(used)
    inputs = scenario.support
    conditions = read_conditions(inputs, invariant, unbiased, min_keep)
    alphabet = output_alphabet(inputs, outputs)
    if unbiased:
        alphabet = widened(alphabet, (bound + 1) / (bound - 1))
    check_size(scenario, alphabet.size, len(beside or scenario.priors))
    costs = read_costs(inputs, alphabet, cost)
    check_span(costs, unbiased)
    whole = read_weights(scenario, weights)
    task = task_of(scenario, bound, alphabet, costs, whole, conditions, beside)
    average = Average(task)
    program = build(average.task_of_others())
    try:
        values, duals = solve(program.lp)
    except Infeasible:
        raise InputError(
            f"no channel that is private at epsilon {show(used)} meets "
            f"{' and '.join(conditions.names)}; fewer or weaker conditions, a larger epsilon, "
            "weights above 0, or no region (confidence or tv_radius) may help"
        ) from None
    table = repaired(program.task, values)
    rows = average.with_rows(table)
    # What bounds the cost for one epsilon says nothing of a larger one.
    least = Fraction(least_cost(program, duals) if used == epsilon else 0) * program.unit
    gap = float_up(max(Fraction(0), program.task.cost(table) - least))
    made, spent = Channel(inputs, alphabet, rows), task.cost(rows)
    mu = tuple(Fraction(weight, sum(whole)) for weight in whole)
    return Proposal(
        made, notes=notes,
        distortion=Distortion.of(made, spent, costs.name, mu, gap, conditions.names), cost=spent,
        weights=mu,
    )  # fmt: skip


def task_of(
    scenario: Scenario, bound: Fraction, alphabet: Support, costs: Costs, weights: Sequence[int],
    conditions: Conditions, beside: Sets | None = None,
) -> Task:  # fmt: skip
    """Return the task of all values of a scenario."""
    inputs, counted = scenario.support, np.array(weights, dtype=object)
    cone = cone_of(scenario, bound, beside)
    return Task(
        sets=cone.sets, pairs=cone.pairs, bound=bound, weights=counted, prices=costs.whole,
        costs=counted[:, None] * costs.whole, unit=costs.unit / sum(weights),
        same=[y for y in same_places(inputs, alphabet) if y is not None], conditions=conditions,
        places=places(inputs, alphabet)[1:] if conditions.unbiased and inputs.size > 1 else None,
    )  # fmt: skip


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


def cone_of(scenario: Scenario, bound: Fraction, beside: Sets | None = None) -> Cone:
    """Return what every column of a private channel must meet, beside previous releases, too."""
    pairs = positions(scenario.pairs, scenario.protected)
    return Cone(beside or scenario.sets, (*pairs, *((j, i) for i, j in pairs)), bound)


def usable(epsilon: Fraction) -> tuple[Fraction, tuple[str, ...]]:
    """Return the epsilon that a channel is computed for, with notes, or refuse too small ones."""
    if epsilon < LEAST_EPSILON:
        raise InputError(f"a channel needs epsilon of at least 1e-6, but {show(epsilon)} was given")
    used = min(epsilon, LARGEST_EPSILON)
    note = f"the channel was computed for epsilon {show(used)}, and is private for larger ones"
    return used, (note,) if used < epsilon else ()


def exponential_below(epsilon: Fraction) -> Fraction:
    """Return a rational E with 1 < E <= e^epsilon, to some 140 bits of E - 1."""
    with precision(_EXP_BITS):
        below = (ball(epsilon).exp() * (1 << _BITS)).lower().floor()
        return Fraction(int(below.unique_fmpz() or 0), 1 << _BITS)
