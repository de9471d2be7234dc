# SPDX-License-Identifier: Apache-2.0
"""Coder: raw cells of the public column to atoms of a support, by the same cleaning as counting."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.rationals import NotFinite
from pufferfish.support import Lattice, Support, nearest_unit
from pufferfish.tables.arrow import integers, strings, to_list
from pufferfish.tables.cells import BOOLEANS, Cells, cells_of, distinct
from pufferfish.tables.numerals import Ratio, missing_numbers, number, plain_number
from pufferfish.tables.rules import Rules
from pufferfish.tables.source import Table

#: States of a cell: an atom; missing; a number or level that the support lacks; no number at all.
OK, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3

#: Distinct cells of one kind whose codes are remembered; beyond it the memory starts afresh.
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

    Raises
    ------
    InputError
        If missing is a level of the rules, but not of the support.
    """

    def __init__(self, support: Support, rules: Rules | None = None, table: Table | None = None):
        self.support = support
        self._absent = frozenset((rules or Rules(None, "")).absent)
        self._absent_numbers = missing_numbers(rules.missing) if rules else {}
        self._round = rules is not None and rules.step is not None
        self._decimal = rules.decimal if rules else None
        self._ambiguous = table is not None and table.comma_may_be_decimal and self._decimal is None
        # The codes of cells met so far, by the kind of the cells. It lives as long as the coder,
        # that is for one release, so that a value that comes again in a later batch is not read
        # again; it holds at most _REMEMBERED cells (and those of one batch) of each kind.
        self._known: dict[str, dict[Any, _Code]] = {}
        if isinstance(support, Lattice):
            # Truth values are 0 and 1; on any other support they would be text among numbers.
            self._truths = {support.value(0), support.value(support.size - 1)} <= {0, 1}
        else:
            self._levels = {name: k for k, name in enumerate(support.names)}
        self._absent_code: _Code = (-1, MISSING)
        # The name of this level is no cell's own: only cells that mean "missing" are of it.
        self._missing_level = rules.missing_level if rules else None
        if self._missing_level is not None:
            if isinstance(support, Lattice) or self._missing_level not in self._levels:
                raise InputError(
                    f"missing values are to be the level {self._missing_level!r}, but the support "
                    "has none of that name"
                )
            self._absent_code = self._levels[self._missing_level], OK

    def code(self, cells: pa.Array | pa.ChunkedArray) -> Coded:
        """Return the atom and the state of every cell of an Arrow array of raw cells.

        Raises
        ------
        InputError
            If the cells are lists, structs or bytes.
        """
        values, places = distinct(cells)
        raw = to_list(values)
        # An integer, a float and a truth value can be equal keys, but differ as cells.
        kind = str(values.type)
        known = self._known.setdefault(kind, {})
        fresh = [k for k, cell in enumerate(raw) if cell not in known]
        if fresh:
            if len(known) > _REMEMBERED:
                known.clear()
                fresh = list(range(len(raw)))
            picked = values if len(fresh) == len(raw) else values.take(integers(fresh))
            cleaned = cells_of(picked, "the public column")
            known.update(zip((raw[k] for k in fresh), self._code(cleaned), strict=True))
        codes = [known[cell] for cell in raw]
        atoms = np.array([atom for atom, _ in codes], dtype=np.int64)
        states = np.array([state for _, state in codes], dtype=np.uint8)
        return Coded(atoms[places], states[places])

    def why(self, cell: Any) -> str:
        """Return in words why a raw cell (as a Python value) has no atom, without its text."""
        raw = strings([cell]) if isinstance(cell, str) else pa.array([cell])
        cleaned = cells_of(raw, "the public column")
        _, state = self._code(cleaned)[0]
        if state == MISSING:
            return "is missing"
        if state == UNREADABLE:
            return "is no finite number"
        if not isinstance(self.support, Lattice):
            if cleaned.texts[0] == self._missing_level:
                return (
                    f"holds the text {self._missing_level!r}, the name of the level of missing "
                    "values, but is not said to mean one"
                )
            return "is none of the levels"
        return "is outside the support"

    def _code(self, cells: Cells) -> list[_Code]:
        """Return the atom and the state of every distinct cell."""
        if not isinstance(self.support, Lattice):
            levels = self._levels
            return [
                self._absent_code
                if text in self._absent
                else (levels[text], OK)
                if text in levels and text != self._missing_level
                else (-1, OUTSIDE)
                for text in cells.texts
            ]
        codes: list[_Code] = [(-1, UNREADABLE)] * len(cells.texts)
        read: list[int] = []
        ratios: list[Ratio] = []
        for k, text in enumerate(cells.texts):
            if text in self._absent or (
                self._absent_numbers and plain_number(text) in self._absent_numbers
            ):
                codes[k] = (-1, MISSING)
                continue
            ratio = self._number(text, cells.typed)
            if ratio is not None:
                read.append(k)
                ratios.append(ratio)
        for k, code in zip(read, self._place(self.support, ratios), strict=True):
            codes[k] = code
        return codes

    def _number(self, text: str, typed: bool) -> Ratio | None:
        """Return the number that a text prints, or None where it is unreadable."""
        try:
            ratio = number(text, None if typed else self._decimal)
        except NotFinite:
            return None
        if ratio is None and self._truths and text.lower() in BOOLEANS:
            return BOOLEANS[text.lower()], 1
        return None if self._ambiguous and not typed and "," in text else ratio

    def _place(self, lattice: Lattice, ratios: list[Ratio]) -> list[_Code]:
        """Return the atoms of numbers, or the nearest ones."""
        index, last = lattice.index, int(lattice.index[-1])
        units: list[int] = []  # whole steps from the origin, rounded down
        parts: list[Ratio] = []  # and what is left of a step
        for top, bottom in ratios:
            over, under = top * lattice.step.denominator, bottom * lattice.step.numerator
            unit, rest = divmod(over, under)
            if self._round:
                unit, rest = nearest_unit(over, under), 0
            # Far outside it is enough to know on which side, and 64 bits hold that.
            units.append(min(max(unit - lattice.origin, -1), last + 1))
            parts.append((rest, under))
        place = np.array(units, dtype=np.int64)
        after = np.searchsorted(index, place)
        hit = index[np.minimum(after, len(index) - 1)] == place
        codes: list[_Code] = []
        for k, (there, (rest, under)) in enumerate(zip(hit.tolist(), parts, strict=True)):
            right = int(after[k])
            if there and not rest:
                codes.append((right, OK))
                continue
            right += there  # a little above an atom: the next one is to its right
            if right == 0 or right == len(index):
                codes.append((min(right, len(index) - 1), OUTSIDE))
                continue
            # Twice the way from the middle of the two neighbours, in steps.
            middle = int(index[right - 1]) + int(index[right]) - 2 * units[k]
            codes.append((right - (2 * rest <= middle * under), OUTSIDE))
        return codes
