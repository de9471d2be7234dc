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
from pufferfish.tables.arrow import Cells, check_type, distinct, integers, strings, to_list
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
        names = () if isinstance(coding.support, Lattice) else coding.support.names
        self._levels = {canonical(name): k for k, name in enumerate(names)}
        if len(self._levels) < len(names):
            raise InputError(f"two levels of {self._what} are one text, as cells are read")
        self._missing_atom = (-1, MISSING)
        if coding.missing_as_level:
            # The name of this level is no cell's own: only cells that mean "missing" are of it.
            self._missing_atom = (self._levels.pop(MISSING_LEVEL), OK)
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
        return _encoded([known[cell] for cell in raw], places)

    def place(self, cells: Cells) -> Encoded:
        """Return the atom and the state of every distinct cell."""
        support, absent, levels = self.coding.support, self._absent, self._levels
        if not isinstance(support, Lattice):
            codes = [
                self._missing_atom
                if text in absent
                else (levels[text], OK)
                if text in levels
                else (-1, OUTSIDE)
                for text in cells.texts
            ]
        else:
            codes = [(-1, UNREADABLE)] * len(cells.texts)
            numbers = []
            for k, (text, number) in enumerate(zip(cells.texts, cells.numbers, strict=True)):
                if text in absent or number in self.coding.missing_numbers:
                    codes[k] = self._missing_atom
                elif isinstance(number, tuple):
                    numbers.append((k, *number))
            for (k, _, _), code in zip(numbers, self._on_lattice(support, numbers), strict=True):
                codes[k] = code
        return _encoded(codes, slice(None))

    def _on_lattice(
        self, lattice: Lattice, numbers: list[tuple[int, int, int]]
    ) -> list[tuple[int, int]]:
        """Return the atoms and the states of numbers ``(place, top, bottom)``."""
        index, last = lattice.index, int(lattice.index[-1])
        up, down = lattice.step.denominator, lattice.step.numerator
        parts = []
        for _, top, bottom in numbers:
            unit, rest = divmod(top * up, bottom * down)
            if self.coding.rounds:
                unit, rest = nearest_unit(top * up, bottom * down), 0
            # Far outside it is enough to know on which side, and 64 bits hold that.
            parts.append((min(max(unit - lattice.origin, -1), last + 1), rest, bottom * down))
        units = np.array([unit for unit, _, _ in parts], dtype=np.int64)
        right = np.searchsorted(index, units)
        there = index[np.minimum(right, len(index) - 1)] == units
        codes = []
        for at, hit, (unit, rest, bottom) in zip(
            right.tolist(), there.tolist(), parts, strict=True
        ):
            if hit and not rest:
                codes.append((at, OK))
                continue
            at += hit  # a little above an atom, the next one is to its right
            if 0 < at < len(index):
                # Twice the way from the middle of the two neighbours, in steps.
                middle = int(index[at - 1]) + int(index[at]) - 2 * unit
                at -= 2 * rest <= middle * bottom
            codes.append((min(at, len(index) - 1), OUTSIDE))
        return codes

    def why(self, cell: Any) -> str:
        """Return in words why a raw cell (a Python value) has no atom, without its text."""
        array = strings([cell]) if isinstance(cell, str) else pa.array([cell])
        cells = Cells(array, self.coding.decimal)
        if self.coding.missing_as_level and cells.texts == [MISSING_LEVEL]:
            return f"holds the text {MISSING_LEVEL!r}, the name of the level of missing values"
        levels = not isinstance(self.coding.support, Lattice)
        outside = "is none of the levels" if levels else "is outside the support"
        return {MISSING: "is missing", UNREADABLE: "is no finite number"}.get(
            int(self.place(cells).state[0]), outside
        )


def _encoded(codes: list[tuple[int, int]], places: Any) -> Encoded:
    atoms = np.array([atom for atom, _ in codes], dtype=np.int64)
    state = np.array([state for _, state in codes], dtype=np.uint8)
    return Encoded(atoms[places], state[places])
