# SPDX-License-Identifier: Apache-2.0
"""Adversaries: what the joint counts of a table say of each row, also where values are missing.

A row that lacks a value in some columns is left out of their releases, and what the other releases
tell about it is not what the rows that lack nothing say. Which values a row lacks shows in the
outputs, and no mechanism covers that (theory, section 7). Given that, the loss of everything that
is released of a row is bounded for two kinds of adversaries:

*Who looks at it* knows that the row has values in the columns M and in no other. He has the counts
of exactly these rows, one adversary for each M that occurs.

*Who looks at some columns only*, M again, has the counts of all rows with a value in each of them.
These rows are the same, and the releases no fewer, for the intersection of all occurring sets that
contain M: one adversary for each intersection of sets that occur.

For columns outside M nothing is known and nothing is told. Giving them the same value for all
secrets says just that: the outputs of a constant tell nothing. So all adversaries are priors on one
product of axes, and the joint loss is the largest of theirs.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from pufferfish.arrays import IntArray
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.out import Pair
from pufferfish.support import Support

#: Cells of all arrays together, and adversaries, up to which counts are spread out.
MOST_CELLS = 1 << 24
MOST_ADVERSARIES = 32


def masses_of(
    joint: JointTable,
    pairs: Sequence[Pair],
    most: int = MOST_CELLS,
    supports: Sequence[Support] | None = None,
    places: Sequence[IntArray | None] | None = None,
) -> list[IntArray] | None:
    """Return the joint counts of every adversary on the whole product, or None if too large.

    Parameters
    ----------
    joint : JointTable
        The columns that count, k of them.
    pairs : sequence of (str, str)
        Secrets that occur in the table.
    most : int
        Cells that all arrays together may have.
    supports, places : sequence, length k, optional
        Another support for an axis, and the place there of each of its atoms.

    Returns
    -------
    list of int64 arrays, shape (m, n_1, ..., n_k), or None
        The rows are :func:`secrets_in` (pairs); empty if no pair can be compared.
    """
    named = secrets_in(pairs)
    sizes = [axis.support for axis in joint.axes] if supports is None else supports
    shape = tuple(support.size for support in sizes)
    size = len(named) * math.prod(shape)
    if size > most:
        return None
    number = np.full(len(joint.secrets) + 1, -1, dtype=np.int64)
    for k, name in enumerate(named):
        number[joint.secrets.index(name)] = k
    who = number[joint.cells[:, 0]]
    atoms, rows, counts = joint.cells[who >= 0, 1:], who[who >= 0], joint.counts[who >= 0]
    if places is not None:
        atoms = np.column_stack(
            [
                a if p is None else np.where(a < 0, -1, p[a])
                for a, p in zip(atoms.T, places, strict=True)
            ]
        )
    weights = 1 << np.arange(len(shape), dtype=np.int64)
    present = (atoms >= 0).astype(np.int64) @ weights
    arrays: dict[bytes, IntArray] = {}
    sets = _row_sets(present)
    if sets is None:
        return None
    for chosen, columns in sets:
        within = np.where((weights & columns) > 0, atoms[chosen], 0)
        flat: IntArray = np.ravel_multi_index(tuple(within.T), shape)
        array = np.zeros((len(named), math.prod(shape)), dtype=np.int64)
        np.add.at(array, (rows[chosen], flat), counts[chosen])
        for complete in _complete(array, [(named.index(a), named.index(b)) for a, b in pairs]):
            key = hashlib.blake2b(complete.tobytes()).digest()
            arrays.setdefault(key, complete.reshape(len(named), *shape))
        if len(arrays) > MOST_ADVERSARIES or len(arrays) * size > most:
            return None
    return list(arrays.values())


def secrets_in(pairs: Sequence[Pair]) -> list[str]:
    """Return the secrets of some pairs, each once."""
    return list(dict.fromkeys(secret for pair in pairs for secret in pair))


def is_compared(joint: JointTable, pair: Pair) -> bool:
    """Whether some adversary has rows of both secrets, with a value in a common column."""
    present = [joint.cells[joint.cells[:, 0] == joint.secrets.index(s), 1:] >= 0 for s in pair]
    kinds = [np.unique(rows, axis=0) for rows in present]
    return any(bool((one & other).any()) for one in kinds[0] for other in kinds[1])


def _row_sets(present: IntArray) -> list[tuple[IntArray, int]] | None:
    """Return the rows of each adversary, and the columns (as bits) that he hears of.

    None if they are too many: some of them would not do.
    """
    occurring = sorted({int(bits) for bits in np.unique(present)} - {0}, reverse=True)
    closed = set(occurring)
    for bits in occurring:
        closed |= {bits & other for other in closed}
        if len(closed) > 4 * MOST_ADVERSARIES:
            return None
    sets = [(np.flatnonzero(present == bits), bits) for bits in occurring]
    for bits in sorted(closed - {0}, reverse=True):
        sets.append((np.flatnonzero((present & bits) == bits), bits))
    return sets


def _complete(array: IntArray, pairs: Sequence[tuple[int, int]]) -> list[IntArray]:
    """Return the array, or several in its place where some secrets have none of these rows.

    A pair with such a secret is not compared: that the row lacks those values gives it away by
    itself. For each other pair there is then an array in which all secrets but one have the counts
    of the other one, so that nothing but this pair is compared.
    """
    there = array.sum(axis=1) > 0
    if there.all():
        return [array]
    found = []
    for one, other in pairs:
        if there[one] and there[other]:
            copy = np.repeat(array[one : one + 1], len(array), axis=0)
            copy[other] = array[other]
            found.append(copy)
    return found
