# SPDX-License-Identifier: Apache-2.0
"""A solver's channel becomes one of integers: private exactly, and exact in its side conditions.

A violation v_y = max (Q_i(y) - E Q_j(y)) of output y is cured by adding the same c_y >= v_y /
(E - 1) to every row: both likelihoods rise by c_y, so the difference falls by c_y (E - 1). That is
a mixture with a constant row, and the least one (theory, section 4). An invariant channel is first
made a joint table with the margins mu, exactly, and then mixed with the constant row mu, which is
invariant, too. An unbiased one gets its means back at the two outermost outputs.

Columns that are best for estimates are searched in a narrower cone, so that they stay private when
they are rounded; what their rows lack is an output of its own, which tells next to nothing.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pufferfish.calibration.channel_task import Cone, Task
from pufferfish.errors import PufferfishError
from pufferfish.loss.support_function import column_extremes
from pufferfish.numbers import CountArray, FloatArray
from pufferfish.priors.ambiguity import AmbiguitySet, Point

#: Entries below 2 to minus this (times E - 1 where that is below 1) are the solver's 0.
_RESIDUE = 40
#: A channel that takes a larger mixture than 2 to minus this is too far from private.
_MOST_MIXED = 10
#: Of columns: bits of their weights, and of themselves; what E - 1 is narrower by, of 1.
_WEIGHT, _COLUMN, _NARROWER = 48, 72, Fraction(1, 2**49)
#: The output of what the columns lack is given 2 to minus this at first.
_REST = 36


def repaired(task: Task, values: FloatArray) -> CountArray:
    """Return the private rows of integers next to a solver's, or raise PufferfishError."""
    small = min(1.0, float(task.bound - 1))
    bits = 64 + math.ceil(-math.log2(small))  # small epsilons use some up
    shares = values[: task.costs.size].reshape(task.costs.shape)
    shares = np.where(shares >= 2.0**-_RESIDUE * small, shares, 0.0)
    if task.conditions.invariant:
        table = _invariant(task, shares, 1 << bits)
    else:
        table = _rounded(shares, 1 << bits)
        needed = needed_mixture(task, table)
        _check_mixed(sum(needed), 1 << bits)
        table = table + needed
        if task.places is not None:
            table = _unbiased(task, *task.places, table)
    kept = table[np.arange(len(table)), task.same]
    if any(kept < (task.conditions.min_keep or 0) * table.sum(axis=1)):
        raise PufferfishError("the solver's channel is too far from min_keep to be repaired")
    return table


def narrower(cone: Cone, share: Fraction) -> Cone:
    """Return a cone within, of less E - 1 by a share: what doubles find there is private."""
    bound = cone.bound - (cone.bound - 1) * share - _NARROWER
    return replace(cone, bound=Fraction(math.floor(bound * 2**72), 2**72))


def exact_columns(cone: Cone, weights: FloatArray, rays: FloatArray) -> CountArray:
    """Return private columns of integers, whose rows have one sum; the last is of the rest.

    Without a rest, where every level is published as itself, there is none. Something of every
    level is added to a column that is still outside.
    """
    if (np.count_nonzero(rays, axis=1) == 1).all():
        return np.asarray(rays.T.astype(int).astype(object))
    columns = whole_numbers(rays.T, 1 << _COLUMN) * whole_numbers(weights, 1 << _WEIGHT)
    columns = columns + needed_mixture(cone, columns)
    for power in range(_REST, _MOST_MIXED, -1):
        less = (1 << power) - 1
        rest = (1 << _WEIGHT + _COLUMN + power) - columns.sum(axis=1) * less
        if rest.min() >= 0 and not needed_mixture(cone, rest[:, None]).any():
            return np.column_stack([columns * less, rest])
    raise ArithmeticError("no private channel was found next to the best one")


def needed_mixture(cone: Cone, likelihoods: CountArray) -> CountArray:
    """Return for every output the least whole c_y >= 0 that cures all of its violations.

    ``likelihoods[x, y]`` are whole numbers proportional to M(y|x), with one factor for all x.
    """
    num, den = cone.bound.numerator, cone.bound.denominator
    needed = np.zeros(likelihoods.shape[1], dtype=object)
    likelihoods = np.column_stack([likelihoods, np.ones(len(likelihoods), dtype=int)])
    for own in cone.sets:
        ends = [_ends(belief, likelihoods) for belief in own]
        for i, j in cone.pairs:
            (high, _, of_high), (_, low, of_low) = ends[i], ends[j]
            excess = den * high * of_low - num * low * of_high
            needed = np.maximum(needed, -(excess[:-1] // excess[-1]))
    return needed


def _ends(belief: AmbiguitySet, likelihoods: CountArray) -> tuple[CountArray, CountArray, int]:
    """Return the largest and smallest <P, k_y> of all outputs over the P of a set; their unit."""
    if isinstance(belief, Point):
        exact = belief.masses.reshape(-1).astype(object) @ likelihoods
        return exact, exact, belief.total
    ends = [column_extremes(belief, column) for column in likelihoods.T.tolist()]
    high, low = np.array(ends, dtype=object).T
    return high, low, belief.unit


def _invariant(task: Task, shares: FloatArray, whole: int) -> CountArray:
    """Return rows whose mixture by mu is mu, exactly, mixed with mu until they are private."""
    weights, counting = task.weights, task.weights > 0
    targets = np.zeros(task.costs.shape[1], dtype=object)
    np.add.at(targets, task.same, weights)
    shares = np.where(targets > 0, shares, 0.0)
    rows = np.where(counting, weights, 1)
    table: CountArray = _rounded(shares, whole) * rows[:, None]
    table[counting], factor = _with_margins(
        table[counting], weights[counting] * whole, targets * whole
    )
    table[~counting] *= factor
    whole *= factor
    # Every row x sums to rows[x] * whole: likelihoods of all of them in one unit.
    common = math.lcm(*rows)
    needed = needed_mixture(task, table * (common // rows)[:, None])
    mixed = max(-(-c // (common * t)) for c, t in zip(needed, targets, strict=True) if t)
    _check_mixed(mixed * sum(weights), whole)
    table += mixed * np.outer(rows, targets)
    return table


def _with_margins(
    table: CountArray, rows: CountArray, columns: CountArray
) -> tuple[CountArray, int]:
    """Return a table with a multiple of these margins next to one that almost has them, and which.

    The table is made smaller until no sum is too large; then each cell gets its row's share of what
    its column misses.
    """
    sums = zip([*rows, *columns], [*table.sum(axis=1), *table.sum(axis=0)], strict=True)
    scale = min(Fraction(1), *(Fraction(wanted, found) for wanted, found in sums if found))
    table = table * scale.numerator // scale.denominator
    missing, open_ = rows - table.sum(axis=1), columns - table.sum(axis=0)
    factor = missing.sum() or 1
    _check_mixed(factor, rows.sum())
    return table * factor + np.outer(missing, open_), factor


def _unbiased(task: Task, xs: CountArray, ys: CountArray, table: CountArray) -> CountArray:
    """Return rows with the values as their means, exactly, and private.

    Each row x of the private table gets p_x and q_x, with the same sum s for all x, at the two
    outermost outputs a and b. As these lie so far out that p and q alone are private (theory,
    section 4), a large enough s makes the whole private.
    """
    a, b, sums = ys[0], ys[-1], sum(table[0])
    missing = xs * sums - table @ ys
    added = 1 + max(abs(missing) // np.minimum(xs - a, b - xs))
    while True:
        _check_mixed(added, sums)
        made: CountArray = table * (b - a)
        made[:, 0] += (b - xs) * added - missing
        made[:, -1] += (xs - a) * added + missing
        if not any(needed_mixture(task, made)):
            return made
        added *= 2


def whole_numbers(shares: FloatArray, whole: int) -> CountArray:
    """Return shares of a whole, rounded down."""
    return np.asarray(np.frompyfunc(int, 1, 1)(shares * float(whole)), dtype=object)


def _rounded(shares: FloatArray, whole: int) -> CountArray:
    """Return whole numbers in about the same proportions, every row with the same sum."""
    exact = whole_numbers(shares, whole)
    totals = exact.sum(axis=1, keepdims=True)
    if not totals.all():
        raise PufferfishError("the solver's channel has an empty row")
    rounded: CountArray = exact * whole // totals
    rounded[np.arange(len(rounded)), rounded.argmax(axis=1)] += whole - rounded.sum(axis=1)
    return rounded


def _check_mixed(added: int, whole: int) -> None:
    """Refuse a mixture that is not negligible."""
    if added << _MOST_MIXED > whole:
        raise PufferfishError("the solver's channel is too far from private to be repaired")
