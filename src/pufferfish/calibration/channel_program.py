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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_task import Task
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

#: For every output y the same sum: coefficients of the blocks of variables, one for each y.
Terms = Mapping[int, Fraction]


@dataclass(frozen=True, eq=False)
class ChannelProgram:
    """The linear program of a task; ``privacy`` rows first, then for each x that its row sums to 1.

    Further variables, those after the n_x * n_y of the channel, lie between 0 and 1 in some
    solution. ``cost`` is what the channel really costs; the solver's favours neglected values.
    """

    task: Task
    lp: LinearProgram
    privacy: int
    cost: FloatArray


class _Builder:
    """Rows so far, and blocks of variables: block x is M(y|x) for all y, further ones follow."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.grid = np.arange(math.prod(task.shape)).reshape(task.shape)
        self.blocks = list(self.grid)
        self.count = 0
        #: A small epsilon needs privacy to a smaller tolerance, and the solver's is absolute.
        self._magnified = Fraction(2) ** min(_MOST_MAGNIFIED, max(0, -_exponent(task.bound - 1)))
        self._rows: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []

    def block(self) -> int:
        """Return the number of a new block of variables."""
        self.blocks.append(self.blocks[-1] + self.task.shape[1])
        return len(self.blocks) - 1

    def add(
        self,
        columns: IntArray,
        coefficients: Sequence[Fraction],
        ends: Sequence[Fraction],
        equal: bool = False,
        magnified: Fraction = _ONE,
    ) -> None:
        """Add rows of the same coefficients, shape (rows, terms); each equals its end or less."""
        top = max(map(_exponent, map(abs, coefficients)), default=0)
        shift = Fraction(2) ** (-top if top < _SMALL or (top > 0 and equal) else 0) * magnified
        values = np.array([float(a * shift) for a in coefficients])
        upper = np.array([float(b * shift) for b in ends])
        lower = upper if equal else np.full(len(upper), -np.inf)
        self._rows.append((columns, np.tile(values, (len(columns), 1)), lower, upper))
        self.count += len(columns)

    def at_most_zero(
        self, first: Terms, second: Terms | None = None, factor: Fraction = _ONE
    ) -> None:
        """Add for each y: first + factor * second <= 0."""
        terms = dict(first)
        for block, a in (second or {}).items():
            terms[block] = terms.get(block, _ZERO) + factor * a
        used = sorted(block for block, a in terms.items() if a)
        if used:
            columns = np.stack([self.blocks[block] for block in used], axis=1)
            coefficients, zeros = [terms[block] for block in used], [_ZERO] * len(columns)
            self.add(columns, coefficients, zeros, magnified=self._magnified)

    def program(self, cost: FloatArray, least: FloatArray) -> LinearProgram:
        """Return the program of all rows; further variables cost nothing."""
        columns, *rows = zip(*self._rows, strict=True)
        index, lengths = (
            [c.ravel() for c in columns],
            [np.full(len(c), c.shape[1]) for c in columns],
        )
        values, lower, upper = (np.concatenate([part.ravel() for part in parts]) for parts in rows)
        further = np.zeros(len(self.blocks) * self.task.shape[1] - self.grid.size)
        cost, least = (np.concatenate([part.ravel(), further]) for part in (cost, least))
        start = np.cumsum(np.concatenate([[0], *lengths]))
        return LinearProgram(cost, least, start, np.concatenate(index), values, lower, upper)


def _exponent(value: Fraction) -> int:
    """Return about log2 of a positive number."""
    return value.numerator.bit_length() - value.denominator.bit_length()


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
    builder, privacy = _rows(task)
    least, chosen = np.zeros(task.shape), task.terms.copy()
    if task.conditions.min_keep is not None:
        least[_kept(task)] = float(min(_ONE, task.conditions.min_keep + task.kept_more))
    chosen[task.idle] += _LEAST_WEIGHT * task.prices[task.idle]
    lp = builder.program(chosen, least)
    cost = np.concatenate([task.terms.ravel(), np.zeros(len(lp.cost) - chosen.size)])
    return ChannelProgram(task, lp, privacy, cost)


def most_kept(task: Task) -> LinearProgram:
    """Return the program whose last variable, at most 1, is the largest feasible min_keep."""
    builder, _ = _rows(task)
    kept = builder.grid[_kept(task)]
    last = np.full(len(kept), builder.blocks[builder.block()][-1])
    builder.add(np.stack([last, kept], axis=1), [_ONE, -_ONE], [_ZERO] * len(kept))
    program = builder.program(np.zeros(task.shape), np.zeros(task.shape))
    program.cost[-1] = -1.0
    return program


def _kept(task: Task) -> tuple[list[int], list[int]]:
    """Return the places of M(x|x), but for averaged rows."""
    at = [x for x in range(task.shape[0]) if x not in task.averaged]
    return at, [task.same[x] for x in at]


def _rows(task: Task) -> tuple[_Builder, int]:
    """Return all rows, and how many of them are about privacy."""
    builder = _Builder(task)
    _add_privacy(builder)
    privacy = builder.count
    builder.add(builder.grid, [_ONE] * task.shape[1], [_ONE] * task.shape[0], True)
    _add_conditions(builder)
    return builder, privacy


def _add_privacy(builder: _Builder) -> None:
    task = builder.task
    for own in task.sets:
        ends = [_ends(builder, belief) for belief in own]
        if task.by_ends(own) and len(own) > 2:
            least = {builder.block(): _ONE}
            for mass, _ in ends:
                builder.at_most_zero(least, mass, -_ONE)
                builder.at_most_zero(mass, least, -task.bound)
        else:
            for i, j in task.both:
                builder.at_most_zero(ends[i][0], ends[j][1], -task.bound)


def _ends(builder: _Builder, belief: AmbiguitySet) -> tuple[Terms, Terms]:
    """Return terms at least (at most) <P, k_y> for every P of a set: for a region new variables."""
    if isinstance(belief, Point):
        masses = enumerate(belief.masses.reshape(-1).tolist())
        point = {x: Fraction(int(mass), belief.total) for x, mass in masses if mass}
        return point, point
    high, low = (_region_end(builder, belief, side) for side in (_ONE, -_ONE))
    return {high: _ONE}, {low: _ONE}


def _region_end(builder: _Builder, region: Region, side: Fraction) -> int:
    """Add variables at least (side 1) or at most (-1) <P, k_y> for every P; return their block."""
    end, unit = builder.block(), region.unit
    terms = {x: side * Fraction(mass, unit) for x, mass in enumerate(region.least)}
    terms[end] = -side
    if region.spread and any(region.room):
        multiplier = builder.block()
        terms[multiplier] = side * Fraction(region.spread, unit)
        for x, room in enumerate(region.room):
            if room:
                excess = builder.block()
                terms[excess] = Fraction(room, unit)
                # side (k_x - multiplier) <= t_x
                builder.at_most_zero({x: side, multiplier: -side, excess: -_ONE})
    if region.free:
        best = builder.block()
        terms[best] = side * Fraction(region.free, unit)
        for x in range(len(region.room)):
            builder.at_most_zero({x: side, best: -side})
    builder.at_most_zero(terms)
    return end


def _add_conditions(builder: _Builder) -> None:
    task, grid = builder.task, builder.grid
    if task.conditions.invariant:
        counting = [x for x, w in enumerate(task.weights) if w]
        hit = [task.same[x] for x in counting]
        mu = [task.weights[x] for x in counting]
        builder.add(grid[np.ix_(counting, hit)].T, mu, mu, True)
        never = np.delete(grid, hit, axis=1).T  # an output of frequency 0 is published for no value
        if len(never):
            builder.add(never, [_ONE] * len(grid), [_ZERO] * len(never))
    if task.conditions.unbiased:
        xs, ys = lattice_of(task.inputs).values, lattice_of(task.outputs).values
        # Values are taken from the middle of the outputs, where numbers are smallest.
        middle = (ys[0] + ys[-1]) / 2
        builder.add(grid, [value - middle for value in ys], [value - middle for value in xs], True)


def least_cost(program: ChannelProgram, duals: FloatArray, private: bool = True) -> float:
    """Return a lower bound of the cost of every feasible channel, whatever the multipliers are.

    Weak duality (theory, section 4): for multipliers of the right sign it is the least value of the
    Lagrangian over rows that sum to 1. With ``private=False`` those of privacy count as 0, so that
    the bound holds for every epsilon. A sum of k terms with e roundings each is computed to within
    about (k + e) u of the sum of their sizes; twice that is subtracted.
    """
    lp, (n_x, n_y) = program.lp, program.task.shape
    size = len(lp.cost)
    y = np.where(np.isfinite(duals), duals, 0.0)
    y[program.privacy : program.privacy + n_x] = 0.0
    if not private:
        y[: program.privacy] = 0.0
    y[(y > 0) & np.isinf(lp.lower)] = 0.0
    ends = np.where(y > 0, lp.lower, np.where(y < 0, lp.upper, 0.0)) * y
    terms = np.repeat(y, np.diff(lp.start)) * lp.value
    reduced = program.cost - np.bincount(lp.index, terms, size)
    error = np.abs(program.cost) + np.bincount(lp.index, np.abs(terms), size)
    # Each column with its own number of terms, however many: robust ones are tall.
    roundings = _EACH + len(program.task.averaged)
    safe = reduced - 2 * _UNIT * (np.bincount(lp.index, minlength=size) + roundings) * error
    own, further = safe[: n_x * n_y].reshape(n_x, n_y), np.minimum(safe[n_x * n_y :], 0.0)
    # The margin of what is kept is ours: it does not count here.
    least = lp.least[: n_x * n_y].reshape(n_x, n_y)
    held = np.maximum(least - float_up(program.task.kept_more), 0.0)
    left = (1.0 - held.sum(axis=1)) * own.min(axis=1)
    parts = np.concatenate([(held * own)[held != 0], left, ends, further]).tolist()
    # What is held of a row, and the rest of it, are each right to as many roundings as its terms.
    roundings += int(np.count_nonzero(held, axis=1).max())
    sizes = [*map(abs, parts), *np.abs(own.min(axis=1)).tolist()]
    return math.fsum(parts) - 2 * _UNIT * roundings * math.fsum(sizes)
