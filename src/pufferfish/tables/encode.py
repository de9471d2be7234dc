# SPDX-License-Identifier: Apache-2.0
"""Encode: what values a public column has, and the atom of each of its raw cells.

All cells of a column that are not missing are plain decimals: numbers. None is: levels. Anything
between is an error that names the option which decides; nothing is guessed. Counting, releasing and
verifying all place cells with the one encoder, under the one coding.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError, counted
from pufferfish.numbers import INT64_SAFE, IntArray, canonical, parse_cell, show
from pufferfish.support import MISSING_LEVEL, Lattice, Levels, make_lattice, nearest_unit
from pufferfish.tables.rules import Coding, Column, numbers_among
from pufferfish.tables.table import (
    Table,
    check_type,
    distinct,
    is_text,
    numbered,
    one_array,
    raw_texts,
    texts_of,
)

#: States of a cell: an atom; missing; a number or level that the support lacks; no number at all.
OK, MISSING, OUTSIDE, UNREADABLE = 0, 1, 2, 3
#: More levels than this are an identifier or free text, unless they are declared.
MOST_LEVELS = 100_000
#: Texts that often mean "missing"; they are levels unless the user says so, but are mentioned.
LOOKS_MISSING = frozenset(
    {"?", "-", "--", ".", "..", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null"}
    | {"missing", "unknown", MISSING_LEVEL}
)
#: A value this many times the range of all others away from them is not one of them, perhaps.
_FAR = 10
#: Numbers but for a needless leading zero, and so perhaps codes.
_ZERO_LED = re.compile(r"[+-]?0[0-9]+(?:\.[0-9]*)?", re.ASCII)
#: Numbers but for their decimal mark, or for marks of thousands.
_WITH_COMMA = re.compile(r"[+-]?[0-9.]*,[0-9][0-9,]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_WITH_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?", re.ASCII)
#: Canonical texts that are dates, with or without a time of day.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:|$)")


class Found:
    """The distinct cells of one column of a table, and what is to be told of them.

    ``cells`` are the raw ones, ``raw`` their trimmed and ``texts`` their canonical texts, ``rows``
    how many rows hold each. ``places`` are the cells of all groups of rows, and ``atoms``, of a
    public column, their atoms (-1: none).
    """

    atoms: IntArray

    def __init__(self, table: Table, name: str, column: pa.ChunkedArray, counts: IntArray) -> None:
        self.table, self.name = table, name
        self.what = f"column {name!r} of {table.name}"  # in messages
        self.cells, self.places = distinct(column)
        self.raw = raw_texts(self.cells)
        self.texts = list(map(canonical, self.raw))
        self.rows = np.bincount(self.places, counts, len(self.raw)).astype(np.int64).tolist()
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def rows_of(self, text: str) -> int:
        """Return the rows that hold a canonical text."""
        return sum(n for t, n in zip(self.texts, self.rows, strict=True) if t == text)

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
        for text in sorted(t for t in used if t.lower() in LOOKS_MISSING):
            self.notes.append(
                f"{text!r} in column {self.name!r} is a {noun} of its own "
                f"({counted(self.rows_of(text), 'row')}); if it means a missing value, say so "
                f"(--missing {text!r})"
            )


def decide(found: Found, column: Column, decimal: str) -> Coding:
    """Return the coding of a public column; notes and warnings are left in ``found``."""
    support, as_level, gone = column.support, column.missing_as_level, {"", *column.missing}
    present = [k for k, text in enumerate(found.texts) if text not in gone]
    numbers = None
    if not isinstance(support, Levels):
        numbers = _numbers(found, present, column.missing, decimal)
    if not present and not (support and as_level):
        raise InputError(f"no row has a value in {found.what}")
    if numbers is None:
        if column.step is not None or isinstance(support, Lattice):
            raise InputError(f"a step or support is for numbers, but {found.what} holds levels")
        support = _levels(found, column, support, {found.texts[k] for k in present})
    elif column.order or as_level:
        raise InputError(
            f"{found.what} holds numbers, which have their own order and no level of missing "
            "values; name the levels (--levels or --order), or leave out the option"
        )
    elif support is None:
        _warn_of_far_values(found, numbers)
        # Integers stay what they are: of these there may be many.
        values = [top if bottom == 1 else Fraction(top, bottom) for top, bottom in numbers.values()]
        support = make_lattice(values, column.step)
    if column.step is not None:
        found.notes.append(f"{found.name!r} is rounded to multiples of {show(column.step)}")
    return Coding(found.name, support, column.missing, column.step is not None, decimal, as_level)


def _numbers(
    found: Found, present: Sequence[int], missing: Sequence[str], decimal: str
) -> dict[int, tuple[int, int]] | None:
    """Return the numbers of the cells that are there, or None where all are levels."""
    mark, gone = mark_of(found.cells, decimal), numbers_among(missing, decimal)
    parsed = {k: number for k in present if (number := parse_cell(found.raw[k], mark)) not in gone}
    numbers = {k: number for k, number in parsed.items() if isinstance(number, tuple)}
    words = [k for k, number in parsed.items() if number is None]
    kind, option, other = "comma", "--decimal ,", _WITH_COMMA
    if mark == ",":
        kind, option, other = "point", "no --decimal", _WITH_POINT
    marked = [k for k in words if other.fullmatch(found.raw[k])]
    if marked:
        raise InputError(
            f"{found.what} holds numbers with a {kind} (first in {found.first_row(marked)}); if it "
            f"is the decimal mark say so ({option}), write numbers without marks of thousands, or "
            "give levels (--levels)"
        )
    if words and (not numbers or all(_ZERO_LED.fullmatch(found.texts[k]) for k in words)):
        return None
    if words:
        raise InputError(
            f"{found.what} mixes numbers with other text (first in {found.first_row(words)}); say "
            "which texts mean a missing value (--missing TEXT), or give levels (--levels) to read "
            "all of it as levels"
        )
    wrong = [k for k in parsed if k not in numbers]
    if wrong:
        raise InputError(
            f"{found.what} holds a number that {parsed[wrong[0]]} in {found.first_row(wrong)}; "
            "correct it, or say that it means a missing value (--missing TEXT)"
        )
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
    return numbers


def _warn_of_far_values(found: Found, numbers: dict[int, tuple[int, int]]) -> None:
    """Warn of a single value far from all others, such as a -999 that means "missing"."""
    order = sorted((top / bottom, found.texts[k]) for k, (top, bottom) in numbers.items())
    for values in (order, order[::-1]) if len(order) > 2 else ():
        (far, text), near, end = values[0], values[1][0], values[-1][0]
        if 0 < _FAR * abs(end - near) < abs(near - far):
            found.warnings.append(
                f"the value {text} of {found.name!r} ({counted(found.rows_of(text), 'row')}) is "
                f"far from all others; if it means a missing value say so (--missing {text})"
            )


def _levels(found: Found, column: Column, declared: Levels | None, used: set[str]) -> Levels:
    """Return the levels: those declared, or those that occur."""
    if declared is None and len(used) > MOST_LEVELS:
        raise InputError(
            f"{found.what} holds {len(used):,} different texts, more than {MOST_LEVELS:,} "
            "levels; is it an identifier or free text?"
        )
    if used and all(map(_DATE.match, used)):
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
    if declared is None:
        # Without a stated order the level of missing values is the last one.
        last = (MISSING_LEVEL,) if column.missing_as_level else ()
        declared = Levels((*sorted(used.difference(last)), *last), ordered=column.order is not None)
    if column.order != "appearance":
        return declared
    found.warnings.append(
        f"levels of {found.name!r} are numbered by their first appearance: another order of the "
        "rows gives other codes and another scale"
    )
    seen: dict[str, int] = {}
    for batch in found.table.batches([found.name]):
        numbered(batch.column(0), seen, set())
    known = used.intersection(declared.names)
    first = (name for name in seen if name in known)
    return Levels(tuple(dict.fromkeys([*first, *declared.names])), ordered=True)


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
        number = parse_cell(raw, mark)
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
