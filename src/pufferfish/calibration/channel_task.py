# SPDX-License-Identifier: Apache-2.0
"""One task for a channel: everything that is asked of it, and the ways to answer.

A way is a linear program. That of epsilon itself is one. That of epsilon 0, where no output depends
on the secret, is another: for tiny epsilon the solver's doubles tell the two apart no more, and its
channels are private for every epsilon. Whatever a way finds becomes integers whose privacy is
exact, and is compared with a lower bound of the cost that holds whatever the solver did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from pufferfish.calibration.channel_bound import least_cost
from pufferfish.calibration.channel_program import FloatArray, Program, Row, privacy_rows
from pufferfish.calibration.conditions import Conditions
from pufferfish.calibration.costs import ObjectArray, cheapest_row, expected_cost
from pufferfish.calibration.dyadic import as_double, log2
from pufferfish.calibration.highs import Solution, Solver
from pufferfish.calibration.limit_program import limit_rows
from pufferfish.calibration.region_program import region_rows
from pufferfish.calibration.repair import is_private, possible, repaired, rounded
from pufferfish.errors import PufferfishError
from pufferfish.mechanisms.channel import Channel, same_places
from pufferfish.regions import Concrete
from pufferfish.scenario import Scenario
from pufferfish.support import Support, lattice_of

#: To this the side conditions hold.
CONDITION_TOLERANCE = Fraction(1, 10**9)
#: A channel that costs more than this beyond its bound, relative to it, is refined.
_FINE = 1e-9
#: What a channel may cost beyond the bound, relative to its cost and in units of the largest cost,
#: before more is tried and the user is told.
_UNNOTICED, _NEGLIGIBLE = 1e-6, 1e-10
#: Optima below this, in units of the largest cost, are solved once more with magnified costs.
_COARSE, _MOST_MAGNIFIED = 1e-3, 30
#: The largest term of the cost is about 2 to this in the solver's program.
_HEADROOM = 8
#: Bits of the refined answer beyond the channel's own.
_GUARD = 40

Entries = Mapping[tuple[int, int], Fraction]


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
    at_least : float
        The best lower bound of the cost so far, in units of ``unit``.
    at_least_anywhere : float
        The same for any epsilon, however large.
    seconds : float
        What the solver took so far.
    """

    scenario: Scenario
    regions: Sequence[Concrete] | None
    outputs: Support
    costs: ObjectArray
    mu: Sequence[Fraction]
    conditions: Conditions
    bound: Fraction
    at_least: float = field(default=0.0, init=False)
    at_least_anywhere: float = field(default=0.0, init=False)
    seconds: float = field(default=0.0, init=False)

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
        largest = max(w * max(row) for w, row in zip(self.mu, self.costs.tolist(), strict=True))
        return Fraction(2) ** (math.ceil(log2(largest)) - _HEADROOM) if largest else Fraction(1)

    def scaled(self, cost: Fraction) -> float:
        """Return a cost in units of ``unit``."""
        return float(cost / self.unit)

    @cached_property
    def cheapest(self) -> list[dict[int, Fraction]]:
        """The cheapest row of each value, were privacy no matter."""
        same = same_places(self.inputs, self.outputs)
        conditions = self.conditions
        means: list[tuple[Sequence[Fraction], Fraction] | None] = [None] * len(same)
        if conditions.unbiased:
            ys = lattice_of(self.outputs).values
            means = [(ys, value) for value in lattice_of(self.inputs).values]
        rows = [
            cheapest_row(row, kept, conditions.min_keep, mean)
            for row, kept, mean in zip(self.costs.tolist(), same, means, strict=True)
        ]
        if conditions.only_unchanged:
            for x, (w, kept) in enumerate(zip(self.mu, same, strict=True)):
                if w and kept is not None:
                    rows[x] = {kept: Fraction(1)}
        return rows

    @cached_property
    def unconstrained(self) -> Fraction:
        """What the cheapest rows cost: no channel that meets the conditions costs less."""
        return sum(
            (
                w * sum((self.costs[x, y] * p for y, p in row.items()), Fraction(0))
                for x, (w, row) in enumerate(zip(self.mu, self.cheapest, strict=True))
                if w
            ),
            Fraction(0),
        )

    @cached_property
    def free(self) -> list[int]:
        """The values that no protected secret can take: privacy says nothing of their rows."""
        masses = possible(self.scenario, self.regions)
        # With the condition on the frequencies a value that counts is not on its own.
        bound = [bool(w) and self.conditions.invariant for w in self.mu]
        return [x for x, m in enumerate(masses.tolist()) if not m and not bound[x]]

    def plainest(self, bound: Fraction) -> Answer | None:
        """Return the cheapest rows where they are private for an E: nothing can be better."""
        rows = rounded(self._entries_of(self.cheapest), self.costs.shape, 1 << self.bits)
        if not is_private(self.scenario, rows, bound, self.regions):
            return None
        try:
            return self._checked(rows)
        except PufferfishError:
            return None  # the frequencies change

    def simplest(self) -> Answer | None:
        """Return a channel that is private by its form alone, or None where none is known.

        Rows that are all the same; for an unbiased channel the two outermost outputs, which are
        far enough apart for that (theory, section 4).
        """
        conditions = self.conditions
        if conditions.min_keep is not None or (conditions.unbiased and conditions.invariant):
            return None
        if conditions.unbiased:
            ys, last = lattice_of(self.outputs).values, self.outputs.size - 1
            shares = [(v - ys[0]) / (ys[-1] - ys[0]) for v in lattice_of(self.inputs).values]
            rows = [{0: 1 - p, last: p} for p in shares]
        elif conditions.invariant:
            places = same_places(self.inputs, self.outputs)
            rows = [{y: w for y, w in zip(places, self.mu, strict=True) if y is not None and w}]
        else:
            spent = [
                sum((w * c for w, c in zip(self.mu, column, strict=True)), Fraction(0))
                for column in self.costs.T.tolist()
            ]
            rows = [{min(range(len(spent)), key=spent.__getitem__): Fraction(1)}]
        return self._made(self._entries_of(rows * (self.inputs.size // len(rows))))

    def solved(self, bound: Fraction) -> Answer:
        """Solve the program of an E that is at most the task's own, and return its channel.

        Raises
        ------
        PufferfishError
            If the solver fails, or its answer cannot be made private: ``Infeasible`` where it
            says that there is none.
        """
        program = self._program(bound)
        solver = Solver(program)
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
        self._learn(bound, solver, solution)
        return self._best_of(solver, self._sensible(solver, solution))

    def _best_of(self, solver: Solver, solution: Solution) -> Answer:
        """Return the solver's answer as integers, refined where that may help."""
        n_x, n_y = self.costs.shape
        plain = solution.values[: n_x * n_y].reshape(n_x, n_y)
        entries = {
            (int(x), int(y)): Fraction(float(plain[x, y]))
            for x, y in zip(*np.nonzero(plain > 0), strict=True)
        }
        answer: Answer | None = None
        failure: PufferfishError | None = None
        try:
            answer = self._made(entries)
        except PufferfishError as error:
            failure = error
        if answer is None or self.excess(answer) > _FINE * self.scaled(answer.cost):
            bits = self.bits + _GUARD
            fine = solver.refined(solution, bits)
            one = 1 << bits
            entries = {
                divmod(c, n_y): Fraction(v, one) for c, v in enumerate(fine[: n_x * n_y]) if v > 0
            }
            try:
                finer = self._made(entries)
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

    def _sensible(self, solver: Solver, solution: Solution) -> Solution:
        """Among optimal channels prefer one whose rows of no weight are cheap as well."""
        free = set(self.free)
        idle = [x for x, w in enumerate(self.mu) if not w and x not in free]
        if not idle:
            return solution
        second = np.zeros(len(solver.program.cost))
        inner = second[: self.costs.size].reshape(self.costs.shape)
        for x in idle:
            inner[x] = self._doubles[x]
        try:
            chosen = solver.prefer(solution, second)
        except PufferfishError:
            return solution
        first = solver.program.cost
        spent = float(first @ solution.values)
        return chosen if float(first @ chosen.values) <= spent * (1 + _FINE) else solution

    def _learn(self, bound: Fraction, solver: Solver, solution: Solution) -> None:
        """Raise the lower bound of the cost to what the solver's duals tell."""
        program, matrix, duals = solver.program, solver.matrix, solution.duals
        least = least_cost(program, matrix, duals)
        if bound == 1:
            # What was 0 is at most (E - 1) Q_j(y), and that at most E - 1.
            weights = np.array([as_double(w) for w in program.weights])
            with np.errstate(over="ignore", invalid="ignore"):
                sizes = np.abs(np.ldexp(duals, -matrix.exponent))[: program.sums] * weights
                least -= float(self.bound - 1) * float(sizes.sum()) * (1 + 1e-9)
            least = least if math.isfinite(least) else 0.0
        if bound in (self.bound, 1):
            self.at_least = max(self.at_least, least)
        if self.conditions.any:
            others = np.where(np.arange(len(duals)) < program.sums, 0.0, duals)
            least = least_cost(program, matrix, others)
            self.at_least_anywhere = max(self.at_least_anywhere, least)

    def _made(self, entries: Entries) -> Answer:
        shape = self.costs.shape
        rows = repaired(self.scenario, entries, shape, self.bound, self.bits, self.regions)
        if self.free:
            cheap = {(x, y): p for x in self.free for y, p in self.cheapest[x].items()}
            rows[self.free] = rounded(cheap, shape, 1 << self.bits, self.free)[self.free]
        return self._checked(rows)

    def _checked(self, rows: ObjectArray) -> Answer:
        made = Channel(self.inputs, self.outputs, rows, (1 << self.bits,) * self.inputs.size)
        missed = self.conditions.missed_by(made, self.mu)
        if missed > CONDITION_TOLERANCE:
            raise PufferfishError(
                f"the side conditions could be met only to {float(missed):.0e}, not to "
                f"{float(CONDITION_TOLERANCE):.0e}; a larger epsilon or fewer conditions help"
            )
        return Answer(made, expected_cost(rows, self.bits, self.costs, self.mu))

    @staticmethod
    def _entries_of(rows: Sequence[Mapping[int, Fraction]]) -> Entries:
        return {(x, y): p for x, row in enumerate(rows) for y, p in row.items()}

    def _program(self, bound: Fraction) -> Program:
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
        mu = np.array([[float(w)] for w in self.mu])
        cost = np.concatenate([(mu * self._doubles).ravel(), np.zeros(further)])
        program = Program((n, outputs), cost, rows, {}, sums, weights or [one] * sums)
        self.conditions.add_to(program, self.inputs, self.outputs, self.mu)
        return program

    @cached_property
    def _doubles(self) -> FloatArray:
        """The costs as doubles, in ``unit``."""
        if Fraction(1, 2**900) < self.unit < 2**900:
            return np.asarray(self.costs.astype(np.float64) / float(self.unit))
        return np.asarray((self.costs / self.unit).astype(np.float64))
