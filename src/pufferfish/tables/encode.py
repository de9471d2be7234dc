# SPDX-License-Identifier: Apache-2.0
"""Encode: the atom of every raw cell on a support; counting, releasing and verifying share it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.numbers import IntArray
from pufferfish.support import MISSING_LEVEL, Lattice, nearest_unit
from pufferfish.tables.arrow import check_type, distinct, integers, strings, to_list
from pufferfish.tables.canonical import Cells
from pufferfish.tables.canonical import canonical as canonical
from pufferfish.tables.rules import Coding
from pufferfish.tables.table import Table

#: States of a cell: an atom; missing; a number or level that the support lacks; no number at all.
OK, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3

#: Distinct cells of one kind whose codes are remembered; beyond it the memory starts afresh.
_REMEMBERED = 2**20


@dataclass(frozen=True, eq=False)
class Encoded:
    """What cells stand for.

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
        where = "" if table is None else f" of {table.name}"
        self._what = f"column {coding.column!r}{where}"
        self._absent = frozenset(("", *coding.missing))
        support = coding.support
        self._levels: dict[str, int] = {}
        if not isinstance(support, Lattice):
            for k, name in enumerate(support.names):
                if self._levels.setdefault(canonical(name), k) != k:
                    raise InputError(f"two levels are one text as cells are read: {name!r}")
        self._as_level = MISSING_LEVEL if coding.missing_as_level else None
        # The codes of cells met so far, by the kind of the cells.
        self._known: dict[str, dict[Any, tuple[int, int]]] = {}

    def encode(self, cells: pa.Array | pa.ChunkedArray) -> Encoded:
        """Return the atom and the state of every raw cell."""
        check_type(cells.type, self._what)
        values, places = distinct(cells)
        raw = to_list(values)
        # An integer, a float and a truth value can be equal keys, but differ as cells.
        known = self._known.setdefault(str(values.type), {})
        fresh = [k for k, cell in enumerate(raw) if cell not in known]
        if len(known) + len(fresh) > _REMEMBERED:
            known.clear()
            fresh = list(range(len(raw)))
        if fresh:
            picked = values if len(fresh) == len(raw) else values.take(integers(fresh))
            codes = self.place(Cells(picked, self.coding.decimal))
            pairs = zip(codes.atoms.tolist(), codes.state.tolist(), strict=True)
            known.update(zip((raw[k] for k in fresh), pairs, strict=True))
        table = np.array([known[cell] for cell in raw], dtype=np.int64).reshape(-1, 2)
        return Encoded(table[places, 0], table[places, 1].astype(np.uint8))

    def place(self, cells: Cells) -> Encoded:
        """Return the atom and the state of every distinct cell."""
        texts, support = cells.texts, self.coding.support
        atoms = np.full(len(texts), -1, dtype=np.int64)
        state = np.full(len(texts), UNREADABLE, dtype=np.uint8)
        if not isinstance(support, Lattice):
            absent = (self._levels[MISSING_LEVEL], OK) if self._as_level else (-1, MISSING)
            for k, text in enumerate(texts):
                at = self._levels.get(text, -1) if text != self._as_level else -1
                code = absent if text in self._absent else (at, OUTSIDE if at < 0 else OK)
                atoms[k], state[k] = code
            return Encoded(atoms, state)
        gone = self.coding.missing_numbers
        found, tops, bottoms = [], [], []
        for k, number in enumerate(cells.numbers):
            if texts[k] in self._absent or number in gone:
                state[k] = MISSING
            elif isinstance(number, tuple):
                found.append(k)
                tops.append(number[0])
                bottoms.append(number[1])
        atoms[found], state[found] = self._on_lattice(support, tops, bottoms)
        return Encoded(atoms, state)

    def _on_lattice(
        self, lattice: Lattice, tops: list[int], bottoms: list[int]
    ) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return the atoms and the states of numbers ``top / bottom``."""
        index, last = lattice.index, int(lattice.index[-1])
        up, down = lattice.step.denominator, lattice.step.numerator
        pairs = [(top * up, bottom * down) for top, bottom in zip(tops, bottoms, strict=True)]
        if self.coding.rounds:
            parts = [(nearest_unit(top, bottom), 0) for top, bottom in pairs]
        else:
            parts = [divmod(top, bottom) for top, bottom in pairs]
        # Far outside it is enough to know on which side, and 64 bits hold that.
        units = [min(max(unit - lattice.origin, -1), last + 1) for unit, _ in parts]
        place = np.array(units, dtype=np.int64)
        right = np.searchsorted(index, place)
        there = index[np.minimum(right, len(index) - 1)] == place
        rest = np.array([left != 0 for _, left in parts], dtype=bool)
        atoms = right.astype(np.int64)
        state = np.where(there & ~rest, OK, OUTSIDE).astype(np.uint8)
        for k in np.flatnonzero(state).tolist():
            # A little above an atom, the next one is to its right.
            after = min(int(right[k]) + bool(there[k]), len(index))
            if 0 < after < len(index):
                # Twice the way from the middle of the two neighbours, in steps.
                middle = int(index[after - 1]) + int(index[after]) - 2 * units[k]
                after -= 2 * parts[k][1] <= middle * pairs[k][1]
            atoms[k] = min(after, len(index) - 1)
        return atoms, state

    def why(self, cell: Any) -> str:
        """Return in words why a raw cell (a Python value) has no atom, without its text."""
        cells = Cells(
            strings([cell]) if isinstance(cell, str) else pa.array([cell]), self.coding.decimal
        )
        state = int(self.place(cells).state[0])
        if state == MISSING:
            return "is missing"
        if state == UNREADABLE:
            return "is no finite number"
        if isinstance(self.coding.support, Lattice):
            return "is outside the support"
        if cells.texts[0] == self._as_level:
            return f"holds the text {self._as_level!r}, the name of the level of missing values"
        return "is none of the levels"
