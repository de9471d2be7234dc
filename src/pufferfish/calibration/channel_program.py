# SPDX-License-Identifier: Apache-2.0
"""The linear program of the optimal channel.

Variables are M(y|x), x-major. For every output y, adversary and ordered pair of point priors,

    sum_x M(y|x) (P_i(x) - E P_j(x)) <= 0,        E a rational just below e^epsilon.

Where all pairs of three or more secrets are protected, one more variable per output (the least
likelihood l_y) says the same with fewer rows: l_y <= sum_x M(y|x) P_s(x) <= E l_y (theory,
section 4). Where a prior lies in a region { least <= P <= least + room }, the largest <P, k> enters
by the dual of its own linear program (theory, section 5): it is the least value of

    <least, k> + spread * lam + sum_x room_x t_x + free * best,
    t_x >= k_x - lam,  t_x >= 0,  best >= k_x,

and the smallest likewise. The multipliers lie between the smallest and the largest k.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_task import Cone, Task
from pufferfish.calibration.solver import LinearProgram
from pufferfish.errors import InputError
from pufferfish.numbers import CountArray, FloatArray, IntArray
from pufferfish.priors.ambiguity import AmbiguitySet, Point, Region
from pufferfish.priors.scenario import Scenario

#: Larger programs take more than some minutes, or more memory than there is.
MOST_COEFFICIENTS = 4_000_000
#: Values without a weight get a share of 2 to minus this of all weights, so that of equally cheap
#: channels one that is cheap for them, too, wins.
_LEAST_WEIGHT = 30
#: By so much more is kept than asked for, which the repair may take; more for a small epsilon.
_KEPT_MORE = 2.0**-46
#: The largest cost in the program is below 2 to this: the solver's tolerances are absolute.
_HEADROOM = 9
#: Rows about privacy are multiplied by 1 / (E - 1), as the repair is, but by no more than this.
_MOST_MAGNIFIED = 2.0**12
#: Unit roundoff, and roundings of a single term (its cost, coefficient, product, and spare).
_UNIT, _EACH = 2.0**-53, 10

#: For every output y the same sum: coefficients of the blocks of variables, one for each y.
Terms = Mapping[int, Fraction]


@dataclass(frozen=True, eq=False)
class ChannelProgram:
    """The linear program of a task, whose first rows say that those of the channel sum to 1.

    Those about privacy are no equations. Further variables, after the n_x * n_y of the channel, lie
    between 0 and 1 in some solution. ``cost`` is what the channel really costs, over ``unit``; the
    solver's favours neglected values.
    """

    task: Task
    lp: LinearProgram
    cost: FloatArray
    unit: Fraction


class Builder:
    """Rows so far, and blocks of variables: block x is M(y|x) for all y, further ones follow."""

    def __init__(self, cone: Cone, shape: tuple[int, int]) -> None:
        self.cone = cone
        self.grid: IntArray = np.arange(math.prod(shape)).reshape(shape)
        self.blocks = len(self.grid)
        self._magnified = min(_MOST_MAGNIFIED, max(1.0, 1 / float(cone.bound - 1)))
        self._rows: list[tuple[CountArray, ...]] = []

    def block(self) -> int:
        """Return the number of a new block of variables."""
        self.blocks += 1
        return self.blocks - 1

    def add(
        self, columns: IntArray, coefficients: FloatArray, ends: FloatArray, equal: bool = True
    ) -> None:
        """Add rows of the same coefficients, shape (rows, terms); each equals its end or less."""
        rows, terms = columns.shape
        sizes, kinds = np.full(rows, terms), np.full(rows, equal)
        self._rows.append((sizes, columns.ravel(), np.tile(coefficients, rows), ends, kinds))

    def at_most_zero(self, first: Terms, second: Terms, factor: Fraction | int) -> None:
        """Add for each y: first + factor * second <= 0."""
        sums = {at: first.get(at, 0) + factor * second.get(at, 0) for at in {**first, **second}}
        used = sorted(at for at, a in sums.items() if a)
        n_y = self.grid.shape[1]
        columns = np.add.outer(np.arange(n_y), n_y * np.array(used, dtype=np.int64))
        coefficients = self._magnified * np.array([float(sums[at]) for at in used])
        self.add(columns, coefficients, np.zeros(n_y), equal=False)

    def padded(self, own: FloatArray) -> FloatArray:
        """Return numbers for the variables of the channel, and 0 for all further ones."""
        return np.pad(own.ravel(), (0, self.blocks * self.grid.shape[1] - own.size))

    def program(self, cost: FloatArray, least: FloatArray) -> LinearProgram:
        """Return the program of all rows; further variables cost nothing."""
        sizes, index, values, ends, equal = map(np.concatenate, zip(*self._rows, strict=True))
        cost, least = self.padded(cost), self.padded(least)
        return LinearProgram(cost, least, np.cumsum([0, *sizes]), index, values, ends, equal)


def check_size(scenario: Scenario, outputs: int, adversaries: int) -> None:
    """Refuse a program that is too large, before anything of it is built."""
    values, secrets = scenario.support.size, len(scenario.protected)
    each = 2 * len(scenario.pairs)
    if scenario.has_region:
        each = 8 * secrets
    elif scenario.is_all_pairs and secrets > 2:
        each = 2 * secrets
    coefficients = values * outputs * (1 + each * adversaries)
    if coefficients > MOST_COEFFICIENTS:
        raise InputError(
            f"a channel from {values} values to {outputs} outputs needs a linear program of "
            f"{coefficients:,} coefficients, more than {MOST_COEFFICIENTS:,}; merge levels, give "
            "a coarser step (--step), ask for fewer outputs, or use the mechanism exact where "
            "there is an order"
        )


def build(task: Task) -> ChannelProgram:
    """Return the linear program of a task."""
    n_x, n_y = task.costs.shape
    builder = Builder(task, (n_x, n_y))
    builder.add(builder.grid, np.ones(n_y), np.ones(n_x))
    add_privacy(builder)
    _add_conditions(builder, task)
    neglected = task.prices * sum(task.weights) * (task.weights == 0)[:, None]
    shift = int(max(task.costs.max(), neglected.max() >> _LEAST_WEIGHT)).bit_length() - _HEADROOM
    cost = _in_doubles(task.costs, shift)
    least = np.zeros(builder.grid.shape)
    if task.conditions.min_keep is not None:
        more = _KEPT_MORE / min(2.0**-14, float(task.bound - 1))
        least[np.arange(n_x), task.same] = min(1.0, float(task.conditions.min_keep) + more)
    lp = builder.program(cost + _in_doubles(neglected, shift + _LEAST_WEIGHT), least)
    return ChannelProgram(task, lp, builder.padded(cost), task.unit * Fraction(2) ** shift)


def _in_doubles(exact: CountArray, shift: int) -> FloatArray:
    """Return exact numbers over 2**shift, correctly rounded."""
    return (exact * (1 << max(0, -shift)) / (1 << max(0, shift))).astype(np.float64)


def add_privacy(builder: Builder) -> None:
    """Add that every output is private."""
    cone = builder.cone
    for own in cone.sets:
        ends = [_ends(builder, belief) for belief in own]
        if isinstance(own[0], Point) and len(cone.pairs) == len(own) * (len(own) - 1) > 2:
            least = {builder.block(): Fraction(1)}
            for mass, _ in ends:
                builder.at_most_zero(least, mass, -1)
                builder.at_most_zero(mass, least, -cone.bound)
        else:
            for i, j in cone.pairs:
                builder.at_most_zero(ends[i][0], ends[j][1], -cone.bound)


def _ends(builder: Builder, belief: AmbiguitySet) -> tuple[Terms, Terms]:
    """Return terms at least (at most) <P, k_y> for every P of a set: for a region new variables."""
    if isinstance(belief, Point):
        masses = enumerate(belief.masses.reshape(-1).tolist())
        point = {x: Fraction(int(mass), belief.total) for x, mass in masses if mass}
        return point, point
    high, low = (_region_end(builder, belief, Fraction(side)) for side in (1, -1))
    return {high: Fraction(1)}, {low: Fraction(1)}


def _region_end(builder: Builder, region: Region, side: Fraction) -> int:
    """Add variables at least (side 1) or at most (-1) <P, k_y> for every P; return their block."""
    end, multiplier, unit = builder.block(), builder.block(), region.unit
    terms = {x: side * Fraction(mass, unit) for x, mass in enumerate(region.least)}
    terms[multiplier] = side * Fraction(region.spread, unit)
    for x, room in enumerate(region.room):
        excess = builder.block()
        terms[excess] = Fraction(room, unit)
        # side (k_x - multiplier) <= t_x
        builder.at_most_zero({x: side, multiplier: -side}, {excess: Fraction(1)}, -1)
    if region.free:
        best = builder.block()
        terms[best] = side * Fraction(region.free, unit)
        for x in range(len(region.room)):
            builder.at_most_zero({x: side}, {best: side}, -1)
    builder.at_most_zero(terms, {end: side}, -1)
    return end


def _add_conditions(builder: Builder, task: Task) -> None:
    grid = builder.grid
    if task.conditions.invariant:
        counting = np.flatnonzero(task.weights)
        hit = np.array(task.same)[counting]
        mu = (task.weights[counting] / sum(task.weights)).astype(np.float64)
        builder.add(grid[np.ix_(counting, hit)].T, mu, mu)
        # An output of frequency 0 is published for no value.
        never = np.delete(grid, hit, axis=1).T
        builder.add(never, np.ones(len(grid)), np.zeros(len(never)), equal=False)
    if task.places is not None:
        # From -1 to 1, where the outputs end.
        low, high = task.places[1][[0, -1]]
        xs, ys = (((2 * v - low - high) / (high - low)).astype(float) for v in task.places)
        builder.add(grid, ys, xs)


def least_cost(program: ChannelProgram, duals: FloatArray) -> float:
    """Return a lower bound of the cost of every feasible channel, whatever the multipliers are.

    Weak duality (theory, section 4): for multipliers of the right sign it is the least value of the
    Lagrangian over rows that sum to 1. A sum of k terms with e roundings each is computed to within
    about (k + e) u of the sum of their sizes; twice that is subtracted.
    """
    lp, task, (n_x, n_y) = program.lp, program.task, program.task.costs.shape
    y = np.where(np.isfinite(duals) & (lp.equal | (duals < 0)), duals, 0.0)
    y[:n_x] = 0.0
    terms = np.repeat(y, np.diff(lp.start)) * lp.value
    own = np.abs(program.cost), np.bincount(lp.index, np.abs(terms), len(lp.cost))
    # Each column with its own number of terms, however many: robust ones are tall.
    count = np.bincount(lp.index, minlength=len(lp.cost)) + _EACH
    reduced = (
        program.cost - np.bincount(lp.index, terms, len(lp.cost)) - 2 * _UNIT * count * sum(own)
    )
    rows, further = reduced[: n_x * n_y].reshape(n_x, n_y), reduced[n_x * n_y :]
    least, kept = rows.min(axis=1), rows[np.arange(n_x), task.same]
    more = float(task.conditions.min_keep or 0) * (kept - least)
    parts = np.concatenate([least, more, np.minimum(further, 0.0), y * lp.end])
    return math.fsum(parts) - 2 * _UNIT * _EACH * math.fsum(np.abs(parts))
