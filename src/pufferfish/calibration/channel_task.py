# SPDX-License-Identifier: Apache-2.0
"""One task for a channel: everything that is asked of it, and the ways to answer.

A way is a linear program. That of epsilon itself is one. That of epsilon 0, where no output depends
on the secret, is another: for tiny epsilon the solver's doubles tell the two apart no more, and its
channels are private for every epsilon. Whatever a way finds becomes integers whose privacy is
exact, and is compared with a lower bound of the cost that holds whatever the solver did.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from pufferfish.calibration.channel_program import FloatArray, Program, Row, privacy_rows
from pufferfish.calibration.clean_rows import cleaned, of_doubles, of_integers
from pufferfish.calibration.conditions import Conditions
from pufferfish.calibration.costs import ObjectArray, expected_cost
from pufferfish.calibration.dyadic import as_double, log2
from pufferfish.calibration.forbidden import forbidden, prohibition, scaled_costs
from pufferfish.calibration.highs import Solution, Solver
from pufferfish.calibration.learned import learn
from pufferfish.calibration.limit_program import limit_rows
from pufferfish.calibration.plain_rows import Entries, cheapest_rows, entries_of, simple_rows
from pufferfish.calibration.region_program import region_rows
from pufferfish.calibration.repair import is_private, repaired, rounded
from pufferfish.calibration.unseen import Average, Priced, possible, priced
from pufferfish.errors import PufferfishError
from pufferfish.mechanisms.channel import Channel, same_places
from pufferfish.regions import Concrete
from pufferfish.scenario import Scenario
from pufferfish.support import Support

#: To this the side conditions hold.
CONDITION_TOLERANCE = Fraction(1, 10**9)
#: A channel that costs more than this beyond its bound, relative to it, is refined.
_FINE = 1e-9
#: What a channel may cost beyond the bound, relative to its cost and in units of the largest cost,
#: before more is tried.
_UNNOTICED, _NEGLIGIBLE = 1e-6, 1e-10
#: An excess of less than this, in ``unit``, is none: below 1e-15 of the largest term of the cost.
NOTHING = 1e-13
#: Optima below this, in units of the largest cost, are solved once more with magnified costs.
_COARSE, _MOST_MAGNIFIED = 1e-3, 30
#: The largest term of the cost is about 2 to this in the solver's program.
_HEADROOM = 8
#: Bits of the refined answer beyond the channel's own.
_GUARD = 40


@dataclass(frozen=True)
class Answer:
    """A channel that is private and meets the conditions, and what it costs.

    Attributes
    ----------
    channel : Channel
    cost : Fraction
        Exact.
    """

    channel: Channel
    cost: Fraction


@dataclass
class Task:
    """What is asked of a channel.

    Attributes
    ----------
    scenario : Scenario
    regions : sequence of Box or Ball, or None
    outputs : Lattice or Levels
        n_y of them; the inputs are the scenario's support, n_x values.
    costs : array of numbers, shape (n_x, n_y)
        c(x, y), exact.
    mu : list of Fraction
        How much each value counts.
    conditions : Conditions
    bound : Fraction
        E with 1 < E <= e^epsilon.
    ceiling : Fraction, optional
        Entries that cost more are left out (:mod:`pufferfish.calibration.forbidden`).
    at_least : float
        The best lower bound of the cost so far, in units of ``unit``.
    at_least_anywhere : float
        The same for any epsilon, however large.
    seconds : float
        What the solver took so far.
    multipliers : list of Fraction
        The duals of the program of ``bound``, one per row.
    """

    scenario: Scenario
    regions: Sequence[Concrete] | None
    outputs: Support
    costs: ObjectArray
    mu: Sequence[Fraction]
    conditions: Conditions
    bound: Fraction
    ceiling: Fraction | None = None
    at_least: float = field(default=0.0, init=False)
    at_least_anywhere: float = field(default=0.0, init=False)
    seconds: float = field(default=0.0, init=False)
    multipliers: list[Fraction] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.at_least = max(0.0, self.scaled(self.unconstrained) * (1 - 1e-15))
        self.at_least_anywhere = self.at_least

    @property
    def inputs(self) -> Support:
        """The values."""
        return self.scenario.support

    @cached_property
    def bits(self) -> int:
        """Resolution of the channel's integers: fine enough to use up even a tiny epsilon."""
        return 64 + max(0, math.ceil(-log2(self.bound - 1)))

    @cached_property
    def unit(self) -> Fraction:
        """A power of 2 below the largest term of the cost: the solver's tolerances are absolute."""
        costs = self.priced.costs
        if self.forbidden:
            costs = costs.copy()
            costs.flat[self.forbidden] = 0
        terms = zip(self.priced.weights, costs.tolist(), strict=True)
        largest = max(max(w * max(row) for w, row in terms), self.priced.fixed)
        return Fraction(2) ** (math.ceil(log2(largest)) - _HEADROOM) if largest else Fraction(1)

    def scaled(self, cost: Fraction) -> float:
        """Return a cost in units of ``unit``."""
        return as_double(cost / self.unit)

    @cached_property
    def forbidden(self) -> list[int]:
        """The variables that cost more than the ceiling."""
        kept = self.same if self.conditions.min_keep else ()
        return forbidden(self.priced.weights, self.priced.costs, self.ceiling, kept)

    @cached_property
    def same(self) -> tuple[int | None, ...]:
        """The output that equals each value."""
        return same_places(self.inputs, self.outputs)

    @cached_property
    def cheapest(self) -> list[dict[int, Fraction]]:
        """The cheapest row of each value, were privacy no matter."""
        return cheapest_rows(self.conditions, self.inputs, self.outputs, self.priced.costs, self.mu)

    @cached_property
    def unconstrained(self) -> Fraction:
        """What the cheapest rows cost: no channel that meets the conditions costs less."""
        costs = self.priced.costs
        return sum(
            (
                w * sum((costs[x, y] * p for y, p in row.items()), Fraction(0))
                for x, (w, row) in enumerate(zip(self.priced.weights, self.cheapest, strict=True))
                if w
            ),
            self.priced.fixed,
        )

    @cached_property
    def free(self) -> list[int]:
        """The values that no protected secret can take: privacy says nothing of their rows."""
        masses = possible(self.scenario, self.regions)
        # With the condition on the frequencies a value that counts is not on its own.
        bound = [bool(w) and self.conditions.invariant for w in self.mu]
        return [x for x, m in enumerate(masses.tolist()) if not m and not bound[x]]

    @cached_property
    def averaged(self) -> dict[int, tuple[int | None, Fraction]]:
        """Those of them whose row is avg: the output that is the value, and the share it keeps."""
        if self.conditions.unbiased:
            return {}
        return {x: (self.same[x], self.conditions.min_keep or Fraction(0)) for x in self.free}

    @cached_property
    def average(self) -> Average:
        """The mean prior."""
        return Average.of(self.scenario)

    @cached_property
    def priced(self) -> Priced:
        """The cost in terms of the rows that are chosen."""
        return priced(self.mu, self.costs, self.average, self.averaged)

    def plainest(self, bound: Fraction) -> Answer | None:
        """Return the cheapest rows where they are private for an E: nothing can be better."""
        rows = rounded(entries_of(self.cheapest), self.costs.shape, 1 << self.bits)
        if not is_private(self.scenario, rows, bound, self.regions):
            return None
        try:
            return self.checked(rows)
        except PufferfishError:
            return None  # the frequencies change

    def simplest(self) -> Answer | None:
        """Return a channel that is private by its form alone, or None where none is known."""
        rows = simple_rows(self.conditions, self.inputs, self.outputs, self.costs, self.mu)
        return None if rows is None else self._made(entries_of(rows))

    def solved(self, bound: Fraction) -> Answer:
        """Solve the program of an E that is at most the task's own, and return its channel.

        Raises
        ------
        PufferfishError
            If the solver fails, or its answer cannot be made private: ``Infeasible`` where it
            says that there is none.
        """
        solver = Solver(self.program(bound))
        try:
            answer = self._solved(bound, solver, 0)
            if self.is_poor(answer) and 0 < self.scaled(answer.cost) < _COARSE:
                magnified = min(-math.floor(math.log2(self.scaled(answer.cost))), _MOST_MAGNIFIED)
                with suppress(PufferfishError):
                    again = self._solved(bound, solver, magnified)
                    answer = min(answer, again, key=lambda found: found.cost)
            return answer
        finally:
            self.seconds += solver.seconds

    def _solved(self, bound: Fraction, solver: Solver, magnified: int) -> Answer:
        solution = solver.solve(magnified)
        learn(self, bound, solver, solution)
        chosen = self.sensible(solver, solution)
        answer = self._best_of(solver, chosen)
        # What tightening costs is told by the duals of the cost itself.
        return cleaned(self, solver, replace(chosen, duals=solution.duals), magnified, answer)

    def _best_of(self, solver: Solver, solution: Solution) -> Answer:
        """Return the solver's answer as integers, refined where that may help."""
        answer: Answer | None = None
        failure: PufferfishError | None = None
        try:
            answer = self._made(of_doubles(solution.values, self.costs.shape))
        except PufferfishError as error:
            failure = error
        if answer is None or self.excess(answer) > _FINE * self.scaled(answer.cost):
            bits = self.bits + _GUARD
            fine = solver.refined(solution, bits)
            try:
                finer = self._made(of_integers(fine, self.costs.shape, bits))
                if answer is None or finer.cost < answer.cost:
                    answer = finer
            except PufferfishError as error:
                failure = error
        if answer is None:
            assert failure is not None  # nothing else leaves no answer
            raise failure
        return answer

    def excess(self, answer: Answer) -> float:
        """Return by how much, at most, an answer costs more than the optimum, in ``unit``."""
        return max(0.0, self.scaled(answer.cost) - self.at_least)

    def is_poor(self, answer: Answer) -> bool:
        """Whether an answer may cost noticeably more than the optimum."""
        return self.excess(answer) > _UNNOTICED * self.scaled(answer.cost) + _NEGLIGIBLE

    def is_told(self, answer: Answer) -> bool:
        """Whether the user is told that an answer may cost more than the optimum."""
        excess = self.excess(answer)
        return excess > NOTHING and excess > _UNNOTICED * self.at_least

    def sensible(self, solver: Solver, solution: Solution) -> Solution:
        """Among optimal channels prefer one whose rows of no weight are cheap as well."""
        free = set(self.free)
        idle = [x for x, w in enumerate(self.priced.weights) if not w and x not in free]
        if not idle:
            return solution
        second = np.zeros(len(solver.program.cost))
        second[: self.costs.size].reshape(self.costs.shape)[idle] = self._doubles[idle]
        try:
            chosen = solver.prefer(solution, second)
        except PufferfishError:
            return solution
        before, after = (float(solver.program.cost @ s.values) for s in (solution, chosen))
        return chosen if after <= before * (1 + _FINE) else solution

    def _made(self, entries: Entries) -> Answer:
        how = self.costs.shape, self.bound, self.bits, self.regions
        return self.checked(repaired(self.scenario, entries, *how))

    def checked(self, rows: ObjectArray) -> Answer:
        """Return a private channel with its cost.

        Parameters
        ----------
        rows : array of integers, shape (n_x, n_y)
            Each sums to 2**bits; those of values on their own are still put in here.

        Raises
        ------
        PufferfishError
            If the side conditions are missed.
        """
        whole = 1 << self.bits
        sums = [whole] * self.inputs.size
        for x, (kept, share) in self.averaged.items():
            rows[x], sums[x] = self.average.row(rows, whole, kept, share)
        if self.free and not self.averaged:
            cheap = {(x, y): p for x in self.free for y, p in self.cheapest[x].items()}
            rows[self.free] = rounded(cheap, rows.shape, whole, self.free)[self.free]
        made = Channel(self.inputs, self.outputs, rows, tuple(sums))
        missed = self.conditions.missed_by(made, self.mu)
        if missed > CONDITION_TOLERANCE:
            raise PufferfishError(
                f"the side conditions could be met only to {float(missed):.2g}, not to "
                f"{float(CONDITION_TOLERANCE):.0e}"
            )
        return Answer(made, expected_cost(rows, sums, self.costs, self.mu))

    def program(self, bound: Fraction) -> Program:
        """Return the linear program of an E, or of epsilon 0 where that is 1."""
        n, outputs = self.costs.shape
        further, weights = 0, None
        if self.regions is not None:
            rows, further = region_rows(self.scenario, self.regions, outputs, bound)
        elif bound == 1:
            rows, weights = limit_rows(self.scenario, outputs)
        else:
            rows, further = privacy_rows(self.scenario, outputs, bound)
        one = Fraction(1)
        ones = [one] * outputs
        sums = len(rows)
        rows += [Row(list(range(x * outputs, (x + 1) * outputs)), ones, one, one) for x in range(n)]
        mu = np.array([[float(w)] for w in self.priced.weights])
        cost = np.concatenate([(mu * self._doubles).ravel(), np.zeros(further)])
        program = Program((n, outputs), cost, rows, {}, sums, weights or [one] * sums)
        self.conditions.add_to(program, self.inputs, self.outputs, self.mu)
        if self.forbidden:
            program.rows.append(prohibition(self.forbidden))
            cost[self.forbidden] = 2.0**_HEADROOM
        return program

    @cached_property
    def _doubles(self) -> FloatArray:
        """The costs as doubles, in ``unit``."""
        return scaled_costs(self.priced.costs, self.unit)
