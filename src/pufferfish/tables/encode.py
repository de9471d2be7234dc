# SPDX-License-Identifier: Apache-2.0
"""Encode: the one canonical text of a cell, and its atom on a support."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.numbers import IntArray
from pufferfish.tables.rules import Coding
from pufferfish.tables.table import Table

#: States of a cell: an atom; missing; a number or level that the support lacks; no number at all.
OK, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3


def canonical(text: str) -> str:
    """Return the one text for a text and those that mean the same in a copy of its table."""
    raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Encoded:
    """What the cells of one batch stand for.

    Attributes
    ----------
    atoms : int64 array, shape (rows,)
        The atom of every cell. For a number outside the support the nearest atom (the lesser of
        two), for clamping; -1 where there is none.
    state : uint8 array, shape (rows,)
        OK, MISSING, OUTSIDE or UNREADABLE.
    """

    atoms: IntArray
    state: npt.NDArray[np.uint8]


class Encoder:
    """Encodes the raw cells of one column, in batches."""

    def __init__(self, coding: Coding, table: Table | None = None) -> None:
        self.coding = coding

    def encode(self, cells: pa.Array | pa.ChunkedArray) -> Encoded:
        """Return the atom and the state of every raw cell."""
        raise NotImplementedError

    def why(self, cell: Any) -> str:
        """Return in words why a raw cell (a Python value) has no atom, without its text."""
        raise NotImplementedError
