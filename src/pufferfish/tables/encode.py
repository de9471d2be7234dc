# SPDX-License-Identifier: Apache-2.0
"""Encode: the support of a column, and the atom of every raw cell on it.

All cells of a column that are not missing are plain decimals: numbers. None is: levels. Anything
between is an error that names the option which decides; nothing is guessed. Counting, releasing
and verifying all place cells with the one encoder.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.numbers import IntArray, show, text_of
from pufferfish.support import MISSING_LEVEL, Lattice, Levels, make_lattice, nearest_unit
from pufferfish.tables.canonical import canonical, is_date, parse
from pufferfish.tables.rules import Coding, Column, DecimalMark, numbers_among
from pufferfish.tables.table import Table, check_type, distinct, is_text, raw_texts, texts_of

#: States of a cell: an atom; missing; a number or level that the support lacks; no number at all.
OK, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3

#: Distinct cells whose codes are remembered; beyond it the memory starts afresh.
_REMEMBERED = 2**20
#: More levels than this are an identifier or free text, unless they are declared.
MOST_LEVELS = 100_000
#: Texts that often mean "missing"; they are levels unless the user says so, but are mentioned.
_LOOKS_MISSING = frozenset(
    {"?", "-", "--", ".", "..", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null"}
    | {"missing", "unknown", MISSING_LEVEL}
)
#: A value this many times the range of all others away from them is not one of them, perhaps.
_FAR = 10
#: Numbers but for a needless leading zero, and so perhaps codes.
_ZERO_LED = re.compile(r"[+-]?0[0-9]+(?:\.[0-9]*)?", re.ASCII)
#: Numbers but for their decimal mark, or for marks of thousands; and the option that reads them.
_OTHER_MARK = {
    ".": (
        re.compile(r"[+-]?[0-9.]*,[0-9][0-9,]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", re.ASCII),
        "comma",
        "--decimal ,",
    ),
    ",": (
        re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?", re.ASCII),
        "point",
        "no --decimal",
    ),
}


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
        self.coding, support = coding, coding.support
        self._what = f"column {coding.column!r}" + (f" of {table.name}" if table else "")
        self._absent = frozenset(("", *coding.missing))
        names = () if isinstance(support, Lattice) else support.names
        self._index = support.index.tolist() if isinstance(support, Lattice) else []
        self._levels = {canonical(name): k for k, name in enumerate(names)}
        if len(self._levels) < len(names):
            raise InputError(f"two levels of {self._what} are one text, as cells are read")
        self._missing = (-1, MISSING)
        if coding.missing_as_level:
            # The name of this level is no cell's own: only cells that mean "missing" are of it.
            self._missing = (self._levels.pop(MISSING_LEVEL), OK)
        # The codes of texts met so far, by the decimal mark that they were read with.
        self._known: dict[str, dict[str, tuple[int, int]]] = {".": {}, ",": {}}

    def encode(self, cells: pa.Array | pa.ChunkedArray) -> Encoded:
        """Return the atom and the state of every raw cell."""
        check_type(cells.type, self._what)
        values, places = distinct(cells)
        raw, mark = raw_texts(values), mark_of(values, self.coding.decimal)
        known = self._known[mark]
        if len(known) > _REMEMBERED:
            known.clear()
        for text in raw:
            if text not in known:
                known[text] = self._code(text, mark)
        codes = np.array([known[text] for text in raw], dtype=np.int64).reshape(-1, 2)
        return Encoded(codes[places, 0], codes[places, 1].astype(np.uint8))

    def _code(self, raw: str, mark: str) -> tuple[int, int]:
        """Return the atom and the state of one raw text."""
        text, support = canonical(raw), self.coding.support
        if text in self._absent:
            return self._missing
        if not isinstance(support, Lattice):
            return (self._levels[text], OK) if text in self._levels else (-1, OUTSIDE)
        number = parse(raw, mark)
        if number in self.coding.missing_numbers:
            return self._missing
        if not isinstance(number, tuple):
            return -1, UNREADABLE
        # In steps from the first atom, as an exact fraction.
        top, bottom = number[0] * support.step.denominator, number[1] * support.step.numerator
        if self.coding.rounds:
            top, bottom = nearest_unit(top, bottom), 1
        top -= support.origin * bottom
        unit, rest = divmod(top, bottom)
        at = bisect_left(self._index, unit)
        near = range(max(at - 1, 0), min(at + 2, len(self._index)))
        if at in near and self._index[at] == unit and not rest:
            return at, OK
        return min(near, key=lambda k: (abs(self._index[k] * bottom - top), k)), OUTSIDE

    def why(self, cell: Any) -> str:
        """Return in words why a raw cell (a Python value) has no atom, without its text."""
        text = text_of(cell)
        if self.coding.missing_as_level and canonical(text) == MISSING_LEVEL:
            return f"holds the text {MISSING_LEVEL!r}, the name of the level of missing values"
        levels = not isinstance(self.coding.support, Lattice)
        outside = "is none of the levels" if levels else "is outside the support"
        mark = self.coding.decimal if isinstance(cell, str) else "."
        state = self._code(text, mark)[1]
        return {MISSING: "is missing", UNREADABLE: "is no finite number"}.get(state, outside)


def mark_of(cells: pa.Array, decimal: str) -> str:
    """Return the decimal mark of raw cells: those that come as numbers are printed with a point."""
    return decimal if is_text(cells.type) else "."


# ---- the support of a column ---------------------------------------------------------------------


@dataclass(eq=False)
class Found:
    """The distinct cells of one column of a table, and what is to be told of them.

    Attributes
    ----------
    cells : pyarrow.Array, shape (k,)
    raw, texts : list of str, length k
        The trimmed and the canonical text of each.
    rows : int64 array, shape (k,)
        The rows that hold each.
    places : int array, shape (groups,)
        The cell of every group of rows.
    atoms : int64 array, shape (groups,)
        The atom of every group (-1: none), and whether it is a blank; of a public column.
    """

    table: Table
    name: str
    cells: pa.Array
    raw: list[str]
    texts: list[str]
    rows: IntArray
    places: Any
    atoms: IntArray = field(init=False)
    blank: npt.NDArray[np.bool_] = field(init=False)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, table: Table, name: str, column: pa.ChunkedArray, counts: IntArray) -> "Found":
        """Return the cells of all groups; ``counts`` are the rows of each."""
        cells, places = distinct(column)
        rows = np.bincount(places, counts, len(cells)).astype(np.int64)
        raw = raw_texts(cells)
        return cls(table, name, cells, raw, list(map(canonical, raw)), rows, places)

    @property
    def what(self) -> str:
        """What messages call the column."""
        return f"column {self.name!r} of {self.table.name}"

    def rows_of(self, text: str) -> int:
        """Return the rows that hold a canonical text."""
        return int(self.rows[[k for k, t in enumerate(self.texts) if t == text]].sum())

    def first_row(self, places: Iterable[int]) -> str:
        """Return where the first of some cells stands: ``data row 3``, without the header."""
        wanted, before = {self.texts[k] for k in places}, 0
        for batch in self.table.batches([self.name]):
            values, at = distinct(batch.column(0))
            hit = np.array([text in wanted for text in texts_of(values)], dtype=bool)[at]
            if hit.any():
                return f"data row {before + int(hit.argmax()) + 1}"
            before += len(at)
        raise InputError(f"{self.table.name} changed while it was read")

    def note_marks(self, noun: str, used: Iterable[str]) -> None:
        """Note texts that are levels or secrets, but often mean "missing"."""
        for text in sorted(t for t in used if t.lower() in _LOOKS_MISSING):
            self.notes.append(
                f"{text!r} in column {self.name!r} is a {noun} of its own "
                f"({counted(self.rows_of(text), 'row')}); if it means a missing value, say so "
                f"(--missing {text!r})"
            )


def decide(found: Found, column: Column, decimal: DecimalMark) -> Coding:
    """Return the coding of a public column; notes and warnings are left in ``found``."""
    made, as_level, texts = column.support, column.missing_as_level, found.texts
    gone = {"", *column.missing}
    present = [k for k, text in enumerate(texts) if text not in gone]
    named = [k for k in present if as_level and texts[k] == MISSING_LEVEL]
    if named:
        raise InputError(
            f"{found.what} holds the text {MISSING_LEVEL!r} (first in {found.first_row(named)}), "
            "the name of the level of missing values; if it means one say so "
            f"(--missing {MISSING_LEVEL!r})"
        )
    names = column.order if isinstance(column.order, tuple) else column.levels
    ordered = column.order is not None
    if isinstance(made, Levels):
        names, ordered = made.names, made.ordered
    if names is None and not (ordered or column.step or made):
        names = _own_order(found, gone.difference([MISSING_LEVEL] * as_level))
        ordered = names is not None
    numbers = None if names is not None else _numbers(found, present, column.missing, decimal)
    if not (present if numbers is None else numbers) and not (names and as_level):
        raise InputError(f"no row has a value in {found.what}")
    if numbers is None:
        if column.step is not None or isinstance(made, Lattice):
            raise InputError(f"a step or support is for numbers, but {found.what} holds levels")
        own = _levels(found, column, present, names, ordered)
        made = own if made is None else made
    elif ordered or as_level:
        raise InputError(
            f"{found.what} holds numbers, which have their own order and no level of missing "
            "values; name the levels (--levels or --order), or leave out the option"
        )
    elif made is None:
        _warn_of_far_values(found, numbers)
        made = lattice_of_numbers(list(numbers.values()), column.step)
    if column.step is not None:
        found.notes.append(f"{found.name!r} is rounded to multiples of {show(column.step)}")
    return Coding(found.name, made, column.missing, column.step is not None, decimal, as_level)


def _own_order(found: Found, gone: set[str]) -> tuple[str, ...] | None:
    """Return the order of an ordered categorical, unless it is that of numbers."""
    stated = found.table.own_order(found.name) or ()
    own = tuple(text for text in map(canonical, stated) if text not in gone)
    numbers = [Fraction(*number) for number in map(parse, own) if isinstance(number, tuple)]
    if not own or (len(numbers) == len(own) and all(a < b for a, b in pairwise(numbers))):
        return None
    found.notes.append(f"the order of {found.name!r} is that of its ordered categorical")
    return own


def _numbers(
    found: Found, present: Sequence[int], missing: Sequence[str], decimal: str
) -> dict[int, tuple[int, int]] | None:
    """Return the numbers of the cells that are there, or None where all are levels."""
    mark, gone = mark_of(found.cells, decimal), numbers_among(missing, decimal)
    parsed = {k: number for k in present if (number := parse(found.raw[k], mark)) not in gone}
    words = [k for k, number in parsed.items() if number is None]
    faults = [k for k, number in parsed.items() if isinstance(number, str)]
    other, kind, option = _OTHER_MARK[mark]
    marked = [k for k in words if other.fullmatch(found.raw[k])]
    if marked:
        raise InputError(
            f"{found.what} holds numbers with a {kind} (first in {found.first_row(marked)}); if it "
            f"is the decimal mark say so ({option}), write numbers without marks of thousands, or "
            "give levels (--levels)"
        )
    if words and all(_ZERO_LED.fullmatch(found.texts[k]) for k in words):
        found.notes.append(
            f"{found.name!r} holds levels, not numbers: a needless zero leads "
            f"{counted(len(words), 'text')}"
        )
        return None
    if words and len(words) + len(faults) == len(parsed):
        return None
    if words or faults:
        # A text that looks like a mark may be shown; any other is one row's own.
        shown = [k for k in words or faults if found.texts[k].lower() in _LOOKS_MISSING]
        text = f"--missing {found.texts[shown[0]]!r}" if shown else "--missing"
        where = found.first_row(shown[:1] or words or faults)
        raise InputError(
            f"{found.what} mixes numbers with other text (first in {where}); say which texts mean "
            f"a missing value ({text}), or give levels (--levels) to read all of it as levels"
            if words
            else f"{found.what} holds a number that {parsed[(shown or faults)[0]]} in {where}; "
            f"correct it, or say that it means a missing value ({text})"
        )
    numbers = {k: number for k, number in parsed.items() if isinstance(number, tuple)}
    if is_text(found.cells.type) and not found.table.textual:
        found.notes.append(
            f"{found.name!r} is a column of text whose cells are all numbers, and is read as "
            "numbers; for codes give levels (--levels)"
        )
    if len(set(numbers.values())) < len({found.texts[k] for k in numbers}):
        found.warnings.append(
            f"different texts of {found.name!r} are read as one number, as 12e2 and 1200 would "
            "be; if they are codes give levels (--levels)"
        )
    large = any(abs(top) >= 2**53 * bottom for top, bottom in numbers.values())
    if large and str(found.cells.type) == "double" and found.cells.null_count:
        found.warnings.append(
            f"{found.name!r} holds floats beyond 2**53 and blanks: integers may have lost "
            "digits before; use an integer type that knows blanks (Int64)"
        )
    return numbers


def _warn_of_far_values(found: Found, numbers: dict[int, tuple[int, int]]) -> None:
    """Warn of a single value far from all others, such as a -999 that means "missing"."""
    value = {top / bottom: found.texts[k] for k, (top, bottom) in numbers.items()}
    order = sorted(value)
    for far, *rest in (order, order[::-1]):
        span = abs(rest[-1] - rest[0]) if rest else 0.0
        if 0 < _FAR * span < abs(rest[0] - far):
            text = value[far]
            found.warnings.append(
                f"the value {text} of {found.name!r} ({counted(found.rows_of(text), 'row')}) is "
                f"far from all others; if it means a missing value say so (--missing {text})"
            )


def _levels(
    found: Found, column: Column, present: Sequence[int], names: Sequence[str] | None, ordered: bool
) -> Levels:
    """Return the levels: those declared, or those that occur."""
    used = {found.texts[k] for k in present}
    if names is not None:
        _check_declared(found, used, names)
    elif len(used) > MOST_LEVELS:
        raise InputError(
            f"{found.what} holds {len(used):,} different texts, more than {MOST_LEVELS:,} "
            "levels; is it an identifier or free text?"
        )
    if used and all(map(is_date, used)):
        found.notes.append(
            f"{found.name!r} holds dates, which are levels; for distances in time make them "
            "numbers, of days for example"
        )
    if column.missing_as_level:
        found.notes.append(
            f"rows without a value in {found.name!r} have the level {MISSING_LEVEL!r}, released "
            "like any other; where blanks can be told from values they may reveal the secret"
        )
    found.note_marks("level", used)
    if names is not None and ordered and not isinstance(column.order, str):
        return Levels(tuple(names), ordered=True)
    # Without a stated order the level of missing values is the last one.
    last = (MISSING_LEVEL,) if column.missing_as_level else ()
    every = sorted(used.union(names or ()).difference(last))
    if column.order == "appearance":
        seen: dict[str, None] = {}
        for batch in found.table.batches([found.name]):
            # Distinct cells come in the order of their first appearance.
            seen.update(dict.fromkeys(texts_of(distinct(batch.column(0))[0])))
        every = [*(name for name in seen if name in every), *(n for n in every if n not in seen)]
        found.warnings.append(
            f"levels of {found.name!r} are numbered by their first appearance: another order of "
            "the rows gives other codes and another scale"
        )
    return Levels((*every, *last), ordered=ordered)


def _check_declared(found: Found, used: set[str], names: Sequence[str]) -> None:
    """Refuse texts that are no declared level; where one is nearly a level, say so."""
    lost = used.difference(map(canonical, names))
    if lost:
        # A slip of the pen is in what was given: its near match is a level of the column.
        unused = sorted(set(names).difference(used))
        near = [(n, did_you_mean(n, lost)) for n in (unused if len(lost) < 1000 else ())]
        slip = next((f"; {name!r} is none{match}" for name, match in near if match), "")
        where = found.first_row(k for k, text in enumerate(found.texts) if text in lost)
        raise InputError(
            f"the levels {listed(names)} do not fit {found.what}{slip}; the first text that is "
            f"none of them is in {where}; name every level, or say which texts mean a missing "
            "value (--missing)"
        )


def lattice_of_numbers(numbers: Sequence[tuple[int, int]], step: Fraction | None) -> Lattice:
    """Return the lattice of numbers ``top / bottom``, rounded to a step where one is given."""
    if step is None:
        common = math.lcm(*{bottom for _, bottom in numbers})
        tops = [top * (common // bottom) for top, bottom in numbers]
        shared = math.gcd(common, *tops)
        step, units = Fraction(shared, common), [top // shared for top in tops]
    else:
        up, down = step.denominator, step.numerator
        units = [nearest_unit(top * up, bottom * down) for top, bottom in numbers]
    least = min(units)
    # The ends alone decide whether the range is too long, and what the error says.
    make_lattice([step * least, step * max(units)], step)
    return Lattice(step, least, np.unique(np.array([u - least for u in units], dtype=np.int64)))
