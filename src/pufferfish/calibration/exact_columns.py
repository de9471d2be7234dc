# SPDX-License-Identifier: Apache-2.0
"""Private columns of whole numbers next to those that a search in doubles found.

Each is moved into the cone where it is outside, by a direction in which all of its tight
constraints become slack; what the rows lack then is an output of its own, which tells next to
nothing. All that counts is checked in whole numbers.
"""

import math
from typing import Any

import numpy as np

from pufferfish.calibration.channel_repair import ends_of, needed_mixture
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import Solution
from pufferfish.calibration.region_columns import extremes_at
from pufferfish.errors import PufferfishError
from pufferfish.numbers import CountArray, FloatArray, IntArray
from pufferfish.priors.ambiguity import AmbiguitySet, Point

#: The output of all values is given 2 to minus this at first, and 2 to minus that at most.
_REST, _MOST_REST = 36, 10
#: Columns are moved inwards by 2 to minus this of themselves at first, doubled so many times.
_INWARDS, _MOST_INWARDS = 50, 40
#: A constraint is tight within this share of its range.
_TIGHT = 1e-6


def exact_columns(cone: Cone, found: Solution, size: int) -> CountArray:
    """Return private columns of whole numbers, whose rows have one sum; the last is of the rest.

    Without a rest, where every level is published as itself, there is none.
    """
    rays, over = found.rays, min(1.0, float(cone.bound - 1))
    bits = 64 + math.ceil(-math.log2(over))
    whole = 1 << bits
    if len(rays) == size and (rays.value.max(axis=1) == 1).all():
        alone: CountArray = np.zeros((size, size), dtype=object)
        alone[rays.index[:, 0], np.arange(size)] = whole
        return alone
    first = _REST + min(0, math.floor(math.log2(over)) + 4)
    for power in range(first, _MOST_REST, -1):
        shares = found.weights[:, None] * rays.value * (1 - 2.0**-power)
        columns = _inside(cone, rays.index, shares, bits, size)
        rest = whole - columns.sum(axis=1)
        if rest.min() >= 0 and not needed_mixture(cone, rest[:, None]).any():
            return np.column_stack([columns, rest])
    raise PufferfishError("no private channel was found next to the best one; please report it")


def _inside(cone: Cone, index: IntArray, shares: FloatArray, bits: int, size: int) -> CountArray:
    """Return whole numbers in proportion to columns, moved into the cone where they are outside."""
    exact = np.array([[int(math.ldexp(v, bits)) for v in row] for row in shares.tolist()], object)
    outside = np.flatnonzero(_violated(cone, index, exact))
    found = {r: _inwards(cone, index[r], shares[r]) for r in outside.tolist()}
    moves = {r: move.tolist() for r, move in found.items() if move is not None}
    lost = [r for r in found if r not in moves]
    moved, outside = exact.copy(), np.array(list(moves), dtype=np.int64)
    for k in range(_MOST_INWARDS):
        for r in outside.tolist():
            step = [math.ceil(math.ldexp(d, bits - _INWARDS + k)) for d in moves[r]]
            moved[r] = exact[r] + step
        wrong = _violated(cone, index[outside], moved[outside]) | (moved[outside].min(axis=1) < 0)
        outside = outside[wrong]
        if not outside.size:
            break
    moved[outside] = exact[outside]
    columns = _spread(index, moved, size)
    # Where there is no way inwards, something of every level is added.
    left = np.array([*outside.tolist(), *lost], dtype=np.int64)
    columns[:, left] += needed_mixture(cone, columns[:, left])
    return columns


def _violated(cone: Cone, index: IntArray, values: CountArray) -> Any:
    """Return which columns are outside the cone, exactly."""
    wrong = np.zeros(len(index), dtype=bool)
    top, bottom = cone.bound.numerator, cone.bound.denominator
    for own in cone.sets:
        ends = [_ends(belief, index, values) for belief in own]
        for i, j in cone.pairs:
            (high, _, of_high), (_, low, of_low) = ends[i], ends[j]
            wrong |= bottom * of_low * high > top * of_high * low
    return wrong


def _ends(
    belief: AmbiguitySet, index: IntArray, values: CountArray
) -> tuple[CountArray, CountArray, int]:
    """Return the largest and the smallest P.m of columns with few non-zeros, and their unit."""
    if isinstance(belief, Point):
        exact = (belief.masses.reshape(-1).astype(object)[index] * values).sum(axis=1)
        return exact, exact, belief.total
    return ends_of(belief, _spread(index, values, len(belief.room)))


def _spread(index: IntArray, values: CountArray, size: int) -> CountArray:
    """Return columns over all levels."""
    columns: CountArray = np.zeros((size, len(index)), dtype=object)
    np.add.at(columns, (index, np.arange(len(index))[:, None]), values)
    return columns


def _inwards(cone: Cone, index: IntArray, shares: FloatArray) -> FloatArray | None:
    """Return a direction in which all tight constraints become slack, or None."""
    e, rows = float(cone.bound), []
    used = np.flatnonzero(shares)
    for own in cone.sets:
        ends = [extremes_at(belief, index[used], shares[used]) for belief in own]
        for i, j in cone.pairs:
            (high, _), (_, low) = ends[i], ends[j]
            form, least = high - e * low, float(low @ shares[used])
            if form @ shares[used] > -_TIGHT * (e - 1) * least:
                rows.append(form / (least or 1.0))
    if not rows:
        return None
    tight = np.array(rows)
    found = np.linalg.lstsq(tight, -np.ones(len(tight)), rcond=None)[0]
    if not (tight @ found < -0.5).all():
        return None
    move = np.zeros(len(shares))
    move[used] = found
    return move
