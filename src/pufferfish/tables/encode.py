# SPDX-License-Identifier: Apache-2.0
"""Encode: the atom of every raw cell of a column.

Counting, releasing and verifying all place cells with the one encoder, under the one coding.
"""

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError
from pufferfish.numbers import INT64_SAFE, IntArray
from pufferfish.support import MISSING_LEVEL, Lattice, nearest_unit
from pufferfish.tables.canonical import canonical, parse
from pufferfish.tables.rules import Coding, numbers_among
from pufferfish.tables.table import Table, check_type, distinct, is_text, one_array, raw_texts

#: States of a cell: an atom; missing; a number or level that the support lacks; no number at all.
OK, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3


class Encoder:
    """Encodes the raw cells of one column, in batches."""

    def __init__(self, coding: Coding, table: Table | None = None) -> None:
        self.coding, support = coding, coding.support
        self._what = f"column {coding.column!r}" + (f" of {table.name}" if table else "")
        self._absent = frozenset(("", *coding.missing))
        self._absent_numbers = numbers_among(coding.missing, coding.decimal)
        names = () if isinstance(support, Lattice) else support.names
        self._index = support.index.tolist() if isinstance(support, Lattice) else []
        self._levels = {canonical(name): k for k, name in enumerate(names)}
        if len(self._levels) < len(names):
            raise InputError(f"two levels of {self._what} are one text, as cells are read")
        self._missing = (-1, MISSING)
        if coding.missing_as_level:
            # The name of this level is no cell's own: only cells that mean "missing" are of it.
            self._missing = (self._levels.pop(MISSING_LEVEL), OK)
        self._remembered = lru_cache(2**20)(self._code)  # from one batch to the next
        self._between = lru_cache(8)(lambda a, b: self._codes(map(str, range(a, b + 1)), "."))

    def encode(self, cells: pa.Array | pa.ChunkedArray) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return the atom and the state (OK, MISSING, OUTSIDE, UNREADABLE) of every raw cell.

        A number outside the support has the nearest atom (the lesser of two), for clamping; what
        has no atom has -1.
        """
        check_type(cells.type, self._what)
        support, cells = self.coding.support, one_array(cells)
        integers = pt.is_signed_integer(cells.type) and not cells.null_count and len(cells) > 0
        if integers and isinstance(support, Lattice) and abs(support.origin) < INT64_SAFE:
            # At once where each has an atom, as no number has that means a missing value.
            dense = support.index[-1] < support.size
            values, places = (cells, slice(None)) if dense else distinct(cells)
            units = np.subtract(np.from_dlpack(values), support.origin, dtype=np.int64)
            atoms = units if dense else np.searchsorted(support.index, units)
            # Seen as unsigned, what lies below the first atom lies far above the last.
            fits = support.step == 1 and units.view(np.uint64).max(initial=0) <= support.index[-1]
            if fits and (dense or np.array_equal(support.index[atoms], units)):
                return atoms[places], np.full(len(cells), OK, dtype=np.uint8)
        numbers = np.from_dlpack(cells) if integers else np.zeros(1, dtype=np.int64)
        low, high = int(numbers.min()), int(numbers.max())
        if integers and high - low <= len(cells) >> 5:  # quicker than to find those that occur
            atoms, states = self._between(low, high)
            places = np.subtract(numbers, low, dtype=np.int64)
        else:
            values, places = distinct(cells)
            atoms, states = self._codes(raw_texts(values), mark_of(values, self.coding.decimal))
        found = states.take(places) if states.any() else np.full(len(places), OK, dtype=np.uint8)
        return atoms.take(places), found

    def _codes(self, raw: Iterable[str], mark: str) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return the atoms and the states of raw texts."""
        found = [self._remembered(text, mark) for text in raw]
        atoms, states = np.array(found, dtype=np.int64).reshape(-1, 2).T.copy()
        return atoms, states.astype(np.uint8)

    def _code(self, raw: str, mark: str) -> tuple[int, int]:
        """Return the atom and the state of one raw text."""
        text, support = canonical(raw), self.coding.support
        if text in self._absent:
            return self._missing
        if not isinstance(support, Lattice):
            return (self._levels[text], OK) if text in self._levels else (-1, OUTSIDE)
        number = parse(raw, mark)
        if number in self._absent_numbers:
            return self._missing
        if not isinstance(number, tuple):
            return -1, UNREADABLE
        # In steps from the first atom, as an exact fraction.
        top, bottom = number[0] * support.step.denominator, number[1] * support.step.numerator
        if self.coding.rounds:
            top, bottom = nearest_unit(top, bottom), 1
        top -= support.origin * bottom
        at = bisect_left(self._index, -(-top // bottom))  # the first that is not below the number
        low, high = max(at - 1, 0), min(at, len(self._index) - 1)
        below, above = top - self._index[low] * bottom, self._index[high] * bottom - top
        if above == 0:
            return high, OK
        return (high if above < below else low), OUTSIDE


def mark_of(cells: pa.Array, decimal: str) -> str:
    """Return the decimal mark of raw cells: those that come as numbers are printed with a point."""
    return decimal if is_text(cells.type) else "."
