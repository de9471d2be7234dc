# SPDX-License-Identifier: Apache-2.0
"""A solver's channel becomes one of integers: private exactly, and exact in its side conditions.

Row x holds whole numbers T(x, y) over m_x K, where m_x is 1, or for an invariant channel the weight
of x. A violation v_y = max (Q_i(y) - E Q_j(y)) of output y is cured by adding the same c_y >= v_y /
(E - 1) to every row: both likelihoods rise by c_y, so the difference falls by c_y (E - 1). That is
a mixture with a constant row, and the least one (theory, section 4). An invariant channel is first
made a transport table with the margins m, exactly, and then mixed with the constant row mu, which
is invariant, too. An unbiased one gets its means back at the two outermost outputs.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pufferfish.calibration.channel_task import Task
from pufferfish.errors import PufferfishError
from pufferfish.loss.support_function import column_extremes
from pufferfish.mechanisms.channel import Channel, places
from pufferfish.numbers import FloatArray
from pufferfish.priors.ambiguity import AmbiguitySet, Point

ObjectArray = npt.NDArray[np.object_]

#: Entries below 2 to minus this (times E - 1 where that is below 1) are the solver's 0.
_RESIDUE = 40
#: A channel that takes a larger mixture than 2 to minus this is too far from private.
_MOST_MIXED = 10


def repaired(task: Task, values: FloatArray) -> Channel:
    """Return the private channel of integers next to a solver's, or raise PufferfishError."""
    bits = 64 + max(0, math.ceil(-math.log2(task.bound - 1)))  # to be used up by small epsilons
    shares = values[: math.prod(task.shape)].reshape(task.shape)
    shares = np.where(shares >= 2.0**-_RESIDUE * min(1.0, float(task.bound - 1)), shares, 0.0)
    table = np.zeros(task.shape, dtype=object)
    for x, row in enumerate(shares.tolist()):
        table[x] = _rounded([math.floor(math.ldexp(v, bits)) for v in row], 1 << bits)
    if task.conditions.invariant:
        table = _invariant(task, table, 1 << bits)
    else:
        needed = needed_mixture(task, table)
        _check_mixed(sum(needed), 1 << bits)
        table = table + np.array(needed, dtype=object)
        if task.conditions.unbiased and task.shape[1] > 1:
            table = _unbiased(task, table)
    _average(task, table)
    made = Channel(task.inputs, task.outputs, table)
    least = min(made.probability(x, y) for x, y in enumerate(task.same))
    if least < (task.conditions.min_keep or 0):
        raise PufferfishError("the solver's channel is too far from min_keep to be repaired")
    return made


def needed_mixture(task: Task, likelihoods: ObjectArray) -> list[int]:
    """Return for every output the least whole c_y >= 0 that cures all of its violations.

    ``likelihoods[x, y]`` are whole numbers proportional to M(y|x), with one factor for all x.
    """
    num, den = task.bound.numerator, task.bound.denominator
    needed = [0] * task.shape[1]
    for own in task.sets:
        both = [_ends(belief, likelihoods) for belief in own]
        high, low = (np.array(side, dtype=object) for side in zip(*both, strict=True))
        if task.by_ends(own):
            gaps = [den * high.max(axis=0) - num * low.min(axis=0)]
        else:
            gaps = [den * high[i] - num * low[j] for i, j in task.both]
        worst = np.max(gaps, axis=0) / (num - den)
        needed = [max(c, math.ceil(v)) for c, v in zip(needed, worst, strict=True)]
    return needed


def _ends(belief: AmbiguitySet, likelihoods: ObjectArray) -> tuple[list[Fraction], list[Fraction]]:
    """Return the largest and the smallest <P, k_y> for every output, over all P of a set."""
    if isinstance(belief, Point):
        masses = belief.masses.reshape(-1).astype(object)
        at = np.flatnonzero(masses)
        values = [Fraction(int(v), belief.total) for v in masses[at] @ likelihoods[at]]
        return values, values
    ends = [column_extremes(belief, column) for column in likelihoods.T.tolist()]
    high, low = zip(*ends, strict=True)
    return [Fraction(v, belief.unit) for v in high], [Fraction(v, belief.unit) for v in low]


def _invariant(task: Task, table: ObjectArray, whole: int) -> ObjectArray:
    """Return rows whose mixture by mu is mu, exactly, mixed with mu until they are private."""
    common = math.lcm(*(w.denominator for w in task.weights))
    masses = np.array([int(w * common) for w in task.weights], dtype=object)
    counting = np.flatnonzero(masses)
    targets = np.zeros(task.shape[1], dtype=object)
    targets[task.same] = masses
    rows = np.where(masses > 0, masses, 1)
    table[:, targets == 0] = 0
    table[counting] = _transport(
        table[counting] * masses[counting, None], masses[counting] * whole, targets * whole
    )
    for x in np.flatnonzero(masses == 0):
        table[x] = _rounded(table[x].tolist(), whole)
    factor = math.lcm(*rows)
    # Likelihoods of all rows in one unit, 1 / (whole * factor).
    needed = needed_mixture(task, table * (factor // rows)[:, None])
    mixed = max(-(-c // (factor * t)) for c, t in zip(needed, targets, strict=True) if t)
    _check_mixed(mixed * common, whole)
    table += mixed * rows[:, None] * targets
    return table


def _transport(table: ObjectArray, rows: ObjectArray, columns: ObjectArray) -> ObjectArray:
    """Return a table of whole numbers with these margins next to one that almost has them."""
    sums = np.concatenate([table.sum(axis=1), table.sum(axis=0)])
    margins = zip(np.concatenate([rows, columns]), sums, strict=True)
    scale = min([Fraction(1), *(Fraction(t, found) for t, found in margins if found > t)])
    table = table * scale.numerator // scale.denominator
    missing, open_ = rows - table.sum(axis=1), columns - table.sum(axis=0)
    # First where there is something anyway, then from corner to corner.
    for x, y in [*np.argwhere(table != 0), *np.ndindex(table.shape)]:
        moved = min(missing[x], open_[y])
        table[x, y] += moved
        missing[x] -= moved
        open_[y] -= moved
    return table


def _unbiased(task: Task, table: ObjectArray) -> ObjectArray:
    """Return rows with the values as their means, exactly, and private.

    Each row x of the private table gets p_x and q_x, with the same sum s for all x, at the two
    outermost outputs a and b. As these lie so far out that p and q alone are private (theory,
    section 4), a large enough s makes the whole private.
    """
    _, xs, ys = places(task.inputs, task.outputs)
    first, last = int(np.argmin(ys)), int(np.argmax(ys))
    a, b, sums = ys[first], ys[last], sum(table[0])
    missing = xs * sums - table @ ys
    added = 1 + max(abs(missing) // np.minimum(xs - a, b - xs))
    while True:
        _check_mixed(added, sums)
        made: ObjectArray = table * (b - a)
        made[:, first] += (b - xs) * added - missing
        made[:, last] += (xs - a) * added + missing
        if not any(needed_mixture(task, made)):
            return made
        added *= 2


def _average(task: Task, table: ObjectArray) -> None:
    """Set the rows of values that no protected secret can take."""
    if task.averaged:
        masses, sums = np.array(task.average, dtype=object), table.sum(axis=1)
        at = np.flatnonzero(masses)
        factor = math.lcm(*sums[at])
        average = (masses[at] * (factor // sums[at])) @ table[at]
        for x, share in task.averaged.items():
            row = (share.denominator - share.numerator) * average
            row[task.same[x]] += share.numerator * masses.sum() * factor
            table[x] = row // math.gcd(*row)


def _rounded(row: Sequence[int], whole: int) -> list[int]:
    """Return whole numbers in about the same proportions with a given sum."""
    total = sum(row)
    if not total:
        raise PufferfishError("the solver's channel has an empty row")
    rounded = [v * whole // total for v in row]
    rounded[rounded.index(max(rounded))] += whole - sum(rounded)
    return rounded


def _check_mixed(added: int, whole: int) -> None:
    """Refuse a mixture that is not negligible."""
    if added << _MOST_MIXED > whole:
        raise PufferfishError("the solver's channel is too far from private to be repaired")
