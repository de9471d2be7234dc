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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_task import Task, exponent
from pufferfish.calibration.solver import LinearProgram
from pufferfish.errors import InputError
from pufferfish.numbers import FloatArray, IntArray, float_up
from pufferfish.priors.ambiguity import AmbiguitySet, Point, Region
from pufferfish.support import lattice_of

#: Larger programs take more than some minutes, or more memory than there is.
MOST_COEFFICIENTS = 4_000_000
#: What values without a weight count, so that among the cheapest channels one treats them well.
_LEAST_WEIGHT = 2.0**-30
#: Rows whose coefficients are all below 2 to this are magnified, and so count.
_SMALL = -16
_MOST_MAGNIFIED = 12
#: Unit roundoff, and roundings of a single term (its cost, coefficient, product, and spare).
_UNIT, _EACH = 2.0**-53, 10

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, eq=False)
class ChannelProgram:
    """The linear program of a task; ``privacy`` rows first, then for each x that its row sums to 1.

    Further variables, those after the n_x * n_y of the channel, lie between 0 and 1 in some
    solution. ``cost`` is what the channel really costs, but for so many roundings; the solver's
    favours neglected values.
    """

    lp: LinearProgram
    shape: tuple[int, int]
    privacy: int
    cost: FloatArray
    roundings: int
    kept_more: float


class _Builder:
    """Blocks of rows so far, and the number of variables."""

    def __init__(self, task: Task) -> None:
        self.size = math.prod(task.shape)
        self.count = 0
        #: A small epsilon needs privacy to a smaller tolerance, and the solver's is absolute.
        self._magnified = Fraction(2) ** min(_MOST_MAGNIFIED, max(0, -exponent(task.bound - 1)))
        self._columns: list[IntArray] = []
        self._values: list[FloatArray] = []
        self._ends: list[tuple[FloatArray, FloatArray]] = []

    def variables(self, count: int) -> IntArray:
        """Return the numbers of new variables."""
        self.size += count
        return np.arange(self.size - count, self.size)

    def add(
        self,
        columns: IntArray,
        coefficients: Sequence[Fraction],
        lower: Sequence[Fraction] | None,
        upper: Sequence[Fraction] | None,
        magnified: Fraction = _ONE,
    ) -> None:
        """Add rows with the same coefficients, shape (rows, terms), and bounds for each or none."""
        rows = len(columns)
        top = max(map(exponent, map(abs, coefficients)), default=0)
        equal = lower is not None and lower is upper
        shift = Fraction(2) ** (-top if top < _SMALL or (top > 0 and equal) else 0) * magnified
        values = np.array([float(a * shift) for a in coefficients])
        self._columns.append(columns)
        self._values.append(np.tile(values, (rows, 1)))
        ends = [
            np.full(rows, none) if bound is None else np.array([float(b * shift) for b in bound])
            for none, bound in ((-np.inf, lower), (np.inf, upper))
        ]
        self._ends.append((ends[0], ends[1]))
        self.count += rows

    def at_most_zero(self, columns: Sequence[IntArray], coefficients: Sequence[Fraction]) -> None:
        """Add for each y: coefficients . (columns[0][y], columns[1][y], ...) <= 0."""
        if coefficients:
            zeros = [_ZERO] * len(columns[0])
            self.add(np.stack(columns, axis=1), coefficients, None, zeros, self._magnified)

    def program(self, cost: FloatArray, least: FloatArray) -> LinearProgram:
        """Return the program of all rows."""
        lengths = [block.shape[1] for block in self._columns for _ in range(len(block))]
        return LinearProgram(
            np.concatenate([cost, np.zeros(self.size - len(cost))]),
            np.concatenate([least, np.zeros(self.size - len(least))]),
            np.cumsum([0, *lengths]),
            np.concatenate([block.ravel() for block in self._columns]),
            np.concatenate([block.ravel() for block in self._values]),
            np.concatenate([lower for lower, _ in self._ends]),
            np.concatenate([upper for _, upper in self._ends]),
        )


def check_size(
    sets: Sequence[Sequence[AmbiguitySet]], pairs: int, values: int, outputs: int
) -> None:
    """Refuse a program that is too large, before anything of it is built."""
    each = values
    for own in sets:
        if any(isinstance(belief, Region) for belief in own):
            each += 8 * values * len(own) + 4 * pairs
        elif len(own) > 2 and 2 * pairs == len(own) * (len(own) - 1):
            points = (belief.masses for belief in own if isinstance(belief, Point))
            each += 2 * sum(int(np.count_nonzero(masses)) for masses in points)
        else:
            each += 2 * values * pairs
    if each * outputs > MOST_COEFFICIENTS:
        raise InputError(
            f"a channel from {values} values to {outputs} outputs needs a linear program of "
            f"{each * outputs:,} coefficients, more than {MOST_COEFFICIENTS:,}; merge levels, give "
            "a coarser step (--step), ask for fewer outputs, or use the mechanism exact where "
            "there is an order"
        )


def build(task: Task) -> ChannelProgram:
    """Return the linear program of a task."""
    builder, grid, privacy = _rows(task)
    least, chosen = np.zeros(grid.size), task.terms.copy()
    if task.conditions.min_keep is not None:
        least[_kept(task, grid)] = float(min(_ONE, task.conditions.min_keep + task.kept_more))
    idle = [x for x, w in enumerate(task.weights) if not w and x not in task.averaged]
    chosen[idle] += _LEAST_WEIGHT * task.prices[idle]
    lp = builder.program(chosen.ravel(), least)
    cost = np.concatenate([task.terms.ravel(), np.zeros(len(lp.cost) - grid.size)])
    roundings = _EACH + len(task.averaged)
    return ChannelProgram(lp, task.shape, privacy, cost, roundings, float_up(task.kept_more))


def most_kept(task: Task) -> LinearProgram:
    """Return the program whose last variable, at most 1, is the largest feasible min_keep."""
    builder, grid, _ = _rows(task)
    kept = _kept(task, grid)
    (last,) = builder.variables(1)
    builder.at_most_zero([np.full(len(kept), last), kept], [_ONE, -_ONE])
    cost = np.zeros(builder.size)
    cost[last] = -1.0
    return builder.program(cost, np.zeros(builder.size))


def _rows(task: Task) -> tuple[_Builder, IntArray, int]:
    """Return all rows, the variables M(y|x), and how many of the rows are about privacy."""
    builder = _Builder(task)
    grid = np.arange(builder.size).reshape(task.shape)
    _add_privacy(builder, task, grid)
    privacy = builder.count
    ones = [_ONE] * len(grid)
    builder.add(grid, [_ONE] * grid.shape[1], ones, ones)
    _add_conditions(builder, task, grid)
    return builder, grid, privacy


def _kept(task: Task, grid: IntArray) -> IntArray:
    """Return the variables M(x|x), but for averaged rows."""
    at = [(x, y) for x, y in enumerate(task.same) if y is not None and x not in task.averaged]
    return np.array([grid[x, y] for x, y in at], dtype=np.int64)


def _add_privacy(builder: _Builder, task: Task, columns: IntArray) -> None:
    bound, n_y = task.bound, task.shape[1]
    for own in task.sets:
        if any(isinstance(s, Region) for s in own):
            ends = [_region_ends(builder, _as_region(s), columns) for s in own]
            for i, j in task.both:
                builder.at_most_zero([ends[i][0], ends[j][1]], [_ONE, -bound])
            continue
        masses = [_masses(s) for s in own]
        if task.is_all_pairs and len(own) > 2:
            least = builder.variables(n_y)
            for mass in masses:
                terms = [*(columns[x] for x in mass), least]
                builder.at_most_zero(terms, [*(-p for p in mass.values()), _ONE])
                builder.at_most_zero(terms, [*mass.values(), -bound])
            continue
        for i, j in task.both:
            difference = dict(masses[i])
            for x, p in masses[j].items():
                difference[x] = difference.get(x, _ZERO) - bound * p
            at = sorted(x for x, d in difference.items() if d)
            builder.at_most_zero([columns[x] for x in at], [difference[x] for x in at])


def _region_ends(builder: _Builder, region: Region, columns: IntArray) -> tuple[IntArray, IntArray]:
    """Add variables at least (at most) <P, k_y> for every P of a region; return their numbers."""
    n_y, found = columns.shape[1], []
    for side in (_ONE, -_ONE):
        end = builder.variables(n_y)
        terms = [(end, -side)]
        least = ((x, mass) for x, mass in enumerate(region.least) if mass)
        terms += [(columns[x], side * Fraction(mass, region.unit)) for x, mass in least]
        open_cells = [(x, room) for x, room in enumerate(region.room) if room]
        if region.spread and open_cells:
            multiplier = builder.variables(n_y)
            terms.append((multiplier, side * Fraction(region.spread, region.unit)))
            for x, room in open_cells:
                excess = builder.variables(n_y)
                terms.append((excess, Fraction(room, region.unit)))
                # side (k_x - multiplier) <= t_x
                builder.at_most_zero([columns[x], multiplier, excess], [side, -side, -_ONE])
        if region.free:
            best = builder.variables(n_y)
            terms.append((best, side * Fraction(region.free, region.unit)))
            for column in columns:
                builder.at_most_zero([column, best], [side, -side])
        builder.at_most_zero([column for column, _ in terms], [a for _, a in terms])
        found.append(end)
    return found[0], found[1]


def _add_conditions(builder: _Builder, task: Task, grid: IntArray) -> None:
    if task.conditions.invariant:
        targets = [_ZERO] * task.shape[1]
        for x, y in enumerate(task.same):
            if y is not None:
                targets[y] = task.weights[x]
        counting = [x for x, w in enumerate(task.weights) if w]
        hit = [y for y, target in enumerate(targets) if target]
        ends = [targets[y] for y in hit]
        builder.add(grid[np.ix_(counting, hit)].T, [task.weights[x] for x in counting], ends, ends)
        never = [y for y, target in enumerate(targets) if not target]
        if never:  # an output of frequency 0 is published for no value
            builder.add(grid[:, never].T, [_ONE] * len(grid), None, [_ZERO] * len(never))
    if task.conditions.unbiased:
        xs, ys = lattice_of(task.inputs).values, lattice_of(task.outputs).values
        # Values are taken from the middle of the outputs, where numbers are smallest.
        middle = (ys[0] + ys[-1]) / 2
        means = [value - middle for value in xs]
        builder.add(grid, [value - middle for value in ys], means, means)


def least_cost(program: ChannelProgram, duals: FloatArray, private: bool = True) -> float:
    """Return a lower bound of the cost of every feasible channel, whatever the multipliers are.

    Weak duality (theory, section 4): for multipliers of the right sign it is the least value of the
    Lagrangian over rows that sum to 1. With ``private=False`` those of privacy count as 0, so that
    the bound holds for every epsilon. A sum of k terms with e roundings each is computed to within
    about (k + e) u of the sum of their sizes; twice that is subtracted.
    """
    lp, (n_x, n_y) = program.lp, program.shape
    size, inner = len(lp.cost), slice(program.privacy, program.privacy + n_x)
    y = np.where(np.isfinite(duals), duals, 0.0)
    y[inner] = 0.0
    if not private:
        y[: program.privacy] = 0.0
    y[(y > 0) & np.isinf(lp.lower)] = 0.0
    y[(y < 0) & np.isinf(lp.upper)] = 0.0
    ends = np.where(y > 0, lp.lower, np.where(y < 0, lp.upper, 0.0)) * y
    terms = np.repeat(y, np.diff(lp.start)) * lp.value
    reduced = program.cost - np.bincount(lp.index, terms, size)
    error = np.abs(program.cost) + np.bincount(lp.index, np.abs(terms), size)
    # Each column with its own number of terms, however many: robust ones are tall.
    slack = (2 * _UNIT) * (np.bincount(lp.index, minlength=size) + program.roundings) * error
    safe = (reduced - slack)[: n_x * n_y].reshape(n_x, n_y)
    # The margin of what is kept is ours: it does not count here.
    held = np.maximum(lp.least[: n_x * n_y].reshape(n_x, n_y) - program.kept_more, 0.0)
    # What is held of a row, and the rest of it, are each right to as many roundings as its terms.
    left = (1.0 - held.sum(axis=1)) * safe.min(axis=1)
    further = np.minimum((reduced - slack)[n_x * n_y :], 0.0)
    parts = np.concatenate([(held * safe)[held != 0], left, ends, further])
    sizes = math.fsum(np.abs(parts).tolist()) + math.fsum(np.abs(safe.min(axis=1)).tolist())
    most = np.count_nonzero(held, axis=1).max()
    return math.fsum(parts.tolist()) - 2 * _UNIT * float(most + program.roundings) * sizes


def _masses(point: AmbiguitySet) -> dict[int, Fraction]:
    """Return the positive probabilities of a point, by value."""
    assert isinstance(point, Point)
    masses = enumerate(point.masses.reshape(-1).tolist())
    return {x: Fraction(int(mass), point.total) for x, mass in masses if mass}


def _as_region(belief: AmbiguitySet) -> Region:
    """Return a point as a region without room."""
    if isinstance(belief, Region):
        return belief
    masses = tuple(int(mass) for mass in belief.masses.reshape(-1))
    return Region(masses, (0,) * len(masses), 0, 0, belief.total)
