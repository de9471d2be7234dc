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

from pufferfish.calibration.channel_task import Task, exponent
from pufferfish.errors import PufferfishError
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
    bits = 64 + max(0, 1 - exponent(task.bound - 1))  # small epsilons take more to be used up
    shares = values[: math.prod(task.shape)].reshape(task.shape)
    least = 2.0**-_RESIDUE * min(1.0, float(task.bound - 1))
    table = np.zeros(task.shape, dtype=object)
    for x, row in enumerate(shares.tolist()):
        table[x] = _rounded(
            [math.floor(math.ldexp(v, bits)) if v >= least else 0 for v in row], bits
        )
    if task.conditions.invariant:
        table, sums = _invariant(task, table, 1 << bits)
    elif task.conditions.unbiased and task.shape[1] > 1:
        table, sums = _unbiased(task, table, 1 << bits)
    else:
        needed = needed_mixture(task, table)
        table = table + np.array(needed, dtype=object)
        sums = [(1 << bits) + sum(needed)] * len(table)
        _check_mixed(sum(needed), 1 << bits)
    made = _channel(task, table, sums)
    _check_conditions(task, made)
    return made


def needed_mixture(task: Task, likelihoods: ObjectArray) -> list[int]:
    """Return for every output the least whole c_y >= 0 that cures all of its violations.

    ``likelihoods[x, y]`` are whole numbers proportional to M(y|x), with one factor for all x.
    """
    num, den = task.bound.numerator, task.bound.denominator
    needed = [0] * task.shape[1]
    for own in task.sets:
        ends = [_ends(belief, likelihoods) for belief in own]
        points = all(isinstance(belief, Point) for belief in own)
        for y in range(len(needed)):
            high, low = [end[0][y] for end in ends], [end[1][y] for end in ends]
            if points and task.is_all_pairs:
                gaps = [(max(high), min(low))]
            else:
                gaps = [(high[i], low[j]) for i, j in task.both]
            worst = max(den * most - num * least for most, least in gaps)
            if worst > 0:
                needed[y] = max(needed[y], math.ceil(worst / (num - den)))
    return needed


def _ends(belief: AmbiguitySet, likelihoods: ObjectArray) -> tuple[list[Fraction], list[Fraction]]:
    """Return the largest and the smallest <P, k_y> for every output, over all P of a set."""
    if isinstance(belief, Point):
        masses = np.array([int(mass) for mass in belief.masses.reshape(-1)], dtype=object)
        at = np.flatnonzero(masses)
        sums = np.zeros(likelihoods.shape[1], dtype=object)
        for x in at.tolist():
            used = np.flatnonzero(likelihoods[x])
            sums[used] += masses[x] * likelihoods[x, used]
        values = [Fraction(int(v), belief.total) for v in sums]
        return values, values
    high: list[Fraction] = []
    low: list[Fraction] = []
    for column in likelihoods.T.tolist():
        # Pour what is to be spread into the cells of the largest (smallest) likelihood first.
        order = sorted(range(len(column)), key=column.__getitem__)
        for ends, cells in ((high, order[::-1]), (low, order)):
            total = sum(mass * k for mass, k in zip(belief.least, column, strict=True) if k)
            total += belief.free * column[cells[0]]
            left = belief.spread
            for x in cells:
                poured = min(left, belief.room[x])
                total += poured * column[x]
                left -= poured
                if not left:
                    break
            ends.append(Fraction(total, belief.unit))
    return high, low


def _invariant(task: Task, table: ObjectArray, whole: int) -> tuple[ObjectArray, list[int]]:
    """Return rows whose mixture by mu is mu, exactly, mixed with mu until they are private."""
    common = math.lcm(*(w.denominator for w in task.weights))
    masses = [int(w * common) for w in task.weights]
    counting = [x for x, mass in enumerate(masses) if mass]
    targets = [0] * task.shape[1]
    for x in counting:
        y = task.same[x]
        if y is None:
            raise PufferfishError("an invariant channel needs every value among its outputs")
        targets[y] = masses[x]
    hit = np.array(targets, dtype=object) != 0
    table[:, ~hit] = 0
    table[counting] = _transport(
        table[counting] * np.array([[masses[x]] for x in counting], dtype=object),
        [masses[x] * whole for x in counting],
        [target * whole for target in targets],
    )
    for x, mass in enumerate(masses):
        if not mass:
            table[x] = _rounded(table[x].tolist(), whole.bit_length() - 1)
    # Likelihoods of all rows in one unit, 1 / (whole * factor).
    factor = math.lcm(*(masses[x] for x in counting))
    units = np.array([[factor // mass if mass else factor] for mass in masses], dtype=object)
    needed = needed_mixture(task, table * units)
    mixed = max(
        (-(-c // (factor * targets[y])) for y, c in enumerate(needed) if targets[y]), default=0
    )
    _check_mixed(mixed * common, whole)
    per_row = np.array([[mass or 1] for mass in masses], dtype=object)
    table = table + mixed * per_row * np.array([targets], dtype=object)
    return table, [(mass or 1) * (whole + mixed * common) for mass in masses]


def _transport(table: ObjectArray, rows: Sequence[int], columns: Sequence[int]) -> ObjectArray:
    """Return a table of whole numbers with these margins next to one that almost has them."""
    scale = Fraction(1)
    for sums, margin in ((table.sum(axis=1), rows), (table.sum(axis=0), columns)):
        for found, target in zip(sums.tolist(), margin, strict=True):
            if found > target:
                scale = min(scale, Fraction(target, found))
    table = table * scale.numerator // scale.denominator
    missing = [r - int(v) for r, v in zip(rows, table.sum(axis=1), strict=True)]
    open_ = [c - int(v) for c, v in zip(columns, table.sum(axis=0), strict=True)]
    # First where there is something anyway, then from corner to corner.
    for positive in (True, False):
        for x, row in enumerate(table):
            for y in range(len(open_)):
                if not missing[x]:
                    break
                if open_[y] and (row[y] or not positive):
                    moved = min(missing[x], open_[y])
                    row[y] += moved
                    missing[x] -= moved
                    open_[y] -= moved
    return table


def _unbiased(task: Task, table: ObjectArray, whole: int) -> tuple[ObjectArray, list[int]]:
    """Return rows with the values as their means, exactly, and private.

    After the mixture with a constant row, each row x gets p_x and q_x, with the same sum s for all
    x, at the two outermost outputs a and b. As these lie so far out that p and q alone are private
    (theory, section 4), a large enough s makes the whole private.
    """
    needed = needed_mixture(task, table)
    table = table + needed
    _, xs, ys = places(task.inputs, task.outputs)
    first, last = int(np.argmin(ys)), int(np.argmax(ys))
    a, b = int(ys[first]), int(ys[last])
    sums = whole + sum(needed)
    missing = [int(x) * sums - int(np.dot(row, ys)) for x, row in zip(xs, table, strict=True)]
    added = 1 + max(abs(m) // min(int(x) - a, b - int(x)) for x, m in zip(xs, missing, strict=True))
    while True:
        _check_mixed(added, whole)
        made = table * (b - a)
        for x, m in enumerate(missing):
            made[x, first] += (b - int(xs[x])) * added - m
            made[x, last] += (int(xs[x]) - a) * added + m
        if not any(needed_mixture(task, made)):
            return made, [(b - a) * (sums + added)] * len(made)
        added *= 2


def _channel(task: Task, table: ObjectArray, sums: list[int]) -> Channel:
    """Return the channel of a table, with the rows of values that no protected secret can take."""
    if task.averaged:
        at = [x for x, mass in enumerate(task.average) if mass]
        factor = math.lcm(*(sums[x] for x in at))
        masses = np.array([task.average[x] * (factor // sums[x]) for x in at], dtype=object)
        average = masses @ table[at]
        total = sum(task.average) * factor
        for x, share in task.averaged.items():
            row = [(share.denominator - share.numerator) * int(v) for v in average]
            kept = task.same[x]
            if kept is not None:
                row[kept] += share.numerator * total
            shared = math.gcd(*row)
            table[x] = [v // shared for v in row]
            sums[x] = share.denominator * total // shared
    return Channel(task.inputs, task.outputs, table, tuple(sums))


def _check_conditions(task: Task, made: Channel) -> None:
    """Refuse a channel that misses a side condition, by however little."""
    asked = task.conditions
    right = True
    if asked.invariant:
        common = math.lcm(*made.denominators)
        scales = [w * (common // d) for w, d in zip(task.weights, made.denominators, strict=True)]
        found = [
            sum(s * int(v) for s, v in zip(scales, column, strict=True) if v)
            for column in made.rows.T.tolist()
        ]
        targets = [Fraction(0)] * len(found)
        for x, y in enumerate(made.same):
            if y is not None:
                targets[y] += task.weights[x] * common
        right = found == targets
    if asked.unbiased:
        _, xs, ys = places(made.inputs, made.outputs)
        rows = zip(xs, made.rows, made.denominators, strict=True)
        right = right and all(int(np.dot(row, ys)) == int(x) * d for x, row, d in rows)
    if asked.min_keep is not None:
        kept = [(x, y) for x, y in enumerate(made.same) if y is not None]
        right = right and all(made.probability(x, y) >= asked.min_keep for x, y in kept)
    if not right:
        raise PufferfishError(
            "the solver's channel is too far from the side conditions to be repaired"
        )


def _rounded(row: list[int], bits: int) -> list[int]:
    """Return whole numbers in about the same proportions with the sum 2**bits."""
    total = sum(row)
    if not total:
        raise PufferfishError("the solver's channel has an empty row")
    row = [(v << bits) // total for v in row]
    row[max(range(len(row)), key=row.__getitem__)] += (1 << bits) - sum(row)
    return row


def _check_mixed(added: int, whole: int) -> None:
    """Refuse a mixture that is not negligible."""
    if added << _MOST_MIXED > whole:
        raise PufferfishError("the solver's channel is too far from private to be repaired")
