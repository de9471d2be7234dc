# SPDX-License-Identifier: Apache-2.0
"""Coder: raw cells of the public column to atoms of a support, by the same cleaning as counting."""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.rationals import NotFinite
from pufferfish.support import Lattice, Support
from pufferfish.tables.cells import BOOLEANS, cells_of, distinct
from pufferfish.tables.numerals import number
from pufferfish.tables.rules import Rules
from pufferfish.tables.source import Table

#: States of a cell: an atom; missing; a number or level that the support lacks; no number at all.
OK, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3

#: Distinct cells that are remembered; beyond it the memory starts afresh.
_REMEMBERED = 2**20

_Code = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Coded:
    """What the cells of one batch stand for.

    Attributes
    ----------
    atoms : int64 array, shape (rows,)
        The atom of every cell. For a number outside the support the nearest atom (the lesser of
        two), to be used where clamping was asked for; -1 where there is none.
    state : uint8 array, shape (rows,)
        OK, MISSING, OUTSIDE (clamping helps only where the atom is not -1: levels have no nearest
        one) or UNREADABLE (text among numbers, or not finite).
    """

    atoms: npt.NDArray[np.int64]
    state: npt.NDArray[np.uint8]


class Coder:
    """Codes batches of raw cells.

    Parameters
    ----------
    support : Lattice or Levels
        The support of the plan.
    rules : Rules, optional
        The cleaning of the plan (``prior.report.rules`` when it was learnt from a table); without
        it only the empty cell is missing.
    table : Table, optional
        The table that the cells come from: where a comma may be a decimal mark and the rules do
        not say which mark is in use, a cell with a comma is unreadable.
    """

    def __init__(self, support: Support, rules: Rules | None = None, table: Table | None = None):
        self.support = support
        self._absent = {"", *(rules.missing if rules else ())}
        self._round = rules is not None and rules.step is not None
        self._decimal = rules.decimal if rules else None
        self._ambiguous = table is not None and table.comma_may_be_decimal and self._decimal is None
        self._known: dict[Any, _Code] = {}
        if isinstance(support, Lattice):
            # Truth values are 0 and 1; on any other support they would be text among numbers.
            self._truths = {support.value(0), support.value(support.size - 1)} <= {0, 1}
        else:
            self._levels = {name: k for k, name in enumerate(support.names)}

    def code(self, cells: pa.Array | pa.ChunkedArray) -> Coded:
        """Return the atom and the state of every cell of an Arrow array of raw cells.

        Raises
        ------
        InputError
            If the cells are lists, structs or bytes.
        """
        values, places = distinct(cells)
        raw = values.to_pylist()
        # An integer, a float and a truth value can be equal keys, but differ as cells.
        kind = str(values.type)
        known = self._known
        fresh = [k for k, cell in enumerate(raw) if (kind, cell) not in known]
        if fresh:
            if len(known) > _REMEMBERED:
                known.clear()
                fresh = list(range(len(raw)))
            cleaned = cells_of(values.take(pa.array(fresh, type=pa.int64())), "the public column")
            for k, text in zip(fresh, cleaned.texts, strict=True):
                known[kind, raw[k]] = self._code(text, cleaned.typed)
        codes = [known[kind, cell] for cell in raw]
        atoms = np.array([atom for atom, _ in codes], dtype=np.int64)
        states = np.array([state for _, state in codes], dtype=np.uint8)
        return Coded(atoms[places], states[places])

    def why(self, cell: Any) -> str:
        """Return in words why a raw cell (as a Python value) has no atom, without its text."""
        cleaned = cells_of(pa.array([cell]), "the public column")
        _, state = self._code(cleaned.texts[0], cleaned.typed)
        if state == MISSING:
            return "is missing"
        if state == UNREADABLE:
            return "is no finite number"
        if not isinstance(self.support, Lattice):
            return "is none of the levels"
        return "is outside the support"

    def _code(self, text: str, typed: bool) -> _Code:
        """Return the atom and the state of one trimmed text."""
        if text in self._absent:
            return -1, MISSING
        if not isinstance(self.support, Lattice):
            atom = self._levels.get(text, -1)
            return atom, OK if atom >= 0 else OUTSIDE
        try:
            ratio = number(text, None if typed else self._decimal)
        except NotFinite:
            return -1, UNREADABLE
        if ratio is None and self._truths and text.lower() in BOOLEANS:
            ratio = BOOLEANS[text.lower()], 1
        elif ratio is None or (self._ambiguous and not typed and "," in text):
            return -1, UNREADABLE
        return self._place(self.support, Fraction(*ratio) / self.support.step)

    def _place(self, lattice: Lattice, steps: Fraction) -> _Code:
        """Return the atom of a number in units of the step, or the nearest one."""
        if self._round:
            steps = Fraction(round(steps))
        place = steps - lattice.origin
        index = lattice.index
        after = bisect_left(index, place)
        if after < len(index) and int(index[after]) == place:
            return after, OK
        if after == 0:
            return 0, OUTSIDE
        if after == len(index):
            return after - 1, OUTSIDE
        nearer = int(index[after]) - place < place - int(index[after - 1])
        return after - (not nearer), OUTSIDE
