# SPDX-License-Identifier: Apache-2.0
"""People: the rows of one person, counted as sequences of atoms."""

from dataclasses import dataclass

from pufferfish.numbers import IntArray


@dataclass(frozen=True, eq=False)
class Stratum:
    """The people who have one number of usable rows.

    Attributes
    ----------
    rows : int
        How many rows each of them has.
    sequences : int64 array, shape (q, rows)
        The distinct sequences of atoms of the product, in the order of rows.
    counts : int64 array, shape (m, q)
        How many people of each secret have each sequence.
    """

    rows: int
    sequences: IntArray
    counts: IntArray
