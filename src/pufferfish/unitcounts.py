# SPDX-License-Identifier: Apache-2.0
"""Units: the rows of one person, counted together in the order in which the table has them.

Several rows of one person are several releases about one secret (theory, section 6). What counts
is the joint prior P_k(x_1, ..., x_k | s) of the people with k rows, for every number k that occurs:
whoever knows which rows are one person's knows k. Units with a single row are such a group too,
for they may be others than the average row.

*Order.* x_1, ..., x_k stand in the order of the rows, as whoever sees the released table sees them.
Counting them as exchangeable would never find a larger loss, and would miss what the order tells.
*Proof.* With Q the likelihood of the outputs in order, the likelihood without it is the mean of
Q(y_p) over the permutations p of the rows, all rows having the same mechanism. A ratio of two sums
of terms is at most the largest ratio of two terms: Q_i(y_p) <= e^loss Q_j(y_p) for every p gives
the same for the means. So the loss in order also holds for those who do not know the order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError
from pufferfish.jsonfile import entry, number


@dataclass(frozen=True, eq=False)
class UnitGroup:
    """The units with k usable rows.

    Attributes
    ----------
    sequences : int64 array, shape (q, k)
        The q distinct sequences of atoms, each in the order of the rows; on several columns
        together an atom is a combination of values, as on their Product.
    counts : int64 array, shape (m, q)
        How many units of each secret have that sequence.
    """

    sequences: IntArray
    counts: IntArray

    @property
    def rows(self) -> int:
        """The number k of rows that each of these units has."""
        return int(self.sequences.shape[1])


@dataclass(frozen=True, eq=False)
class Units:
    """How the rows of a prior belong together.

    Attributes
    ----------
    column : str
        The column whose equal values mark the rows of one person.
    groups : tuple of UnitGroup
        One for every number of rows that occurs, from the smallest.
    most : int
        The largest number of rows of one unit in the table, with or without a value in them.
    """

    column: str
    groups: tuple[UnitGroup, ...]
    most: int = 0

    def group(self, rows: int) -> UnitGroup | None:
        """Return the units with that many rows, if there are any."""
        return next((group for group in self.groups if group.rows == rows), None)

    def numbers(self, secrets: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of rows that units of these secrets have, from the smallest."""
        chosen = list(secrets)
        return tuple(group.rows for group in self.groups if group.counts[chosen].any())

    def of_column(self, shape: Sequence[int], axis: int) -> Units:
        """Return the units of one of several columns, whose combinations the atoms are.

        Parameters
        ----------
        shape : sequence of int
            That of the Product: the atoms of every column.
        axis : int
            Which column.
        """
        groups = []
        for group in self.groups:
            own = np.unravel_index(group.sequences, tuple(shape))[axis]
            groups.append(UnitGroup(*_distinct(own, group.counts)))
        return replace(self, groups=tuple(groups))

    def moved(self, places: IntArray, secrets: Sequence[int]) -> Units:
        """Return the same units on another support, where old atom k is atom ``places[k]``.

        ``secrets`` are the old positions of the secrets in their new order.
        """
        groups = [
            replace(group, sequences=places[group.sequences], counts=group.counts[list(secrets)])
            for group in self.groups
        ]
        return replace(self, groups=tuple(groups))

    def digest(self, secrets: Sequence[int]) -> bytes:
        """SHA-256 of the counts of these secrets, in their order; as private as they are."""
        h = hashlib.sha256(f"units {self.column!r}\n".encode())
        for group in self.groups:
            counts = group.counts[list(secrets)]
            used = np.flatnonzero(counts.any(axis=0))
            if not len(used):
                continue
            # Sequences came sorted, but perhaps on another support.
            sequences = group.sequences[used]
            order = np.lexsort(sequences.T[::-1])
            h.update(f"{group.rows} {len(used)}\n".encode())
            h.update(np.ascontiguousarray(sequences[order], dtype="<i8").tobytes())
            h.update(np.ascontiguousarray(counts[:, used][:, order], dtype="<i8").tobytes())
        return h.digest()


def _distinct(sequences: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct sequences, sorted, with the sums of their counts."""
    found, place = np.unique(sequences, axis=0, return_inverse=True)
    sums = np.zeros((len(counts), len(found)), dtype=np.int64)
    np.add.at(sums.T, place.reshape(-1), counts.T)
    return found, sums


@dataclass(frozen=True)
class UnitsClaim:
    """What a plan says of the rows of one person.

    Attributes
    ----------
    rows : tuple of int
        How many rows a unit may have, from the smallest: a release refuses others.
    loss : float
        An upper bound of the loss of all rows of a unit together, rounded up.
    how : str
        Which bound it is, and for which number of rows.
    digest : str
        SHA-256 of the units that it was computed from; as private as the counts.
    """

    rows: tuple[int, ...]
    loss: float
    how: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {"rows": list(self.rows), "loss": self.loss, "how": self.how, "digest": self.digest}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> UnitsClaim:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If an entry is missing or not of the right kind.
        """
        rows = entry(data, "rows", list)
        if not rows or not all(type(k) is int and k > 0 for k in rows):
            raise InputError("its numbers of 'rows' are not of the right kind")
        return cls(
            tuple(sorted(set(rows))),
            number(data, "loss"),
            entry(data, "how", str),
            entry(data, "digest", str),
        )
