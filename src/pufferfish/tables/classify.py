# SPDX-License-Identifier: Apache-2.0
"""Classify: whether a public column holds numbers or levels, and the support that follows.

All cells that are not missing are plain decimals: numbers. None is: levels. Anything between is an
error that names the option which decides; nothing is guessed.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.numbers import IntArray, show
from pufferfish.support import MISSING_LEVEL, Lattice, Levels, Support, make_lattice, nearest_unit
from pufferfish.tables.arrow import Cells, distinct, is_text
from pufferfish.tables.canonical import CODE, COMMA, POINT, ZERO_LED, canonical, is_date, parse
from pufferfish.tables.rules import Coding, Column, numbers_among
from pufferfish.tables.table import Table

#: More levels than this are an identifier or free text, unless they are declared.
MOST_LEVELS = 100_000
#: Texts that often mean "missing"; they are levels unless the user says so, but are mentioned.
_LOOKS_MISSING = frozenset(
    {"?", "-", "--", ".", "..", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null"}
    | {"missing", "unknown", MISSING_LEVEL}
)
#: A value this many times the range of all others away from them is not one of them, perhaps.
_FAR = 10


@dataclass
class Found:
    """The distinct cells of one column of a table, and what is to be told of them.

    Attributes
    ----------
    table : Table
    name : str
        The column.
    raw : pyarrow.Array, shape (k,)
    cells : Cells
    rows : int64 array, shape (k,)
        The rows that hold each cell.
    places : int array, shape (groups,)
        The cell of every group of rows.
    """

    table: Table
    name: str
    raw: pa.Array
    cells: Cells
    rows: IntArray
    places: Any
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls, table: Table, name: str, column: pa.ChunkedArray, counts: IntArray, decimal: str
    ) -> "Found":
        """Return the cells of all groups; ``counts`` are the rows of each."""
        raw, places = distinct(column)
        rows = np.bincount(places, counts, len(raw)).astype(np.int64)
        return cls(table, name, raw, Cells(raw, decimal), rows, places)

    def rows_of(self, text: str) -> int:
        """Return the rows that hold a canonical text."""
        return int(self.rows[[k for k, t in enumerate(self.cells.texts) if t == text]].sum())

    def first_row(self, places: Iterable[int]) -> str:
        """Return where the first of some cells stands: ``data row 3``, without the header."""
        wanted, before = {self.cells.texts[k] for k in places}, 0
        for batch in self.table.batches([self.name]):
            values, at = distinct(batch.column(0))
            hit = np.array([text in wanted for text in Cells(values).texts], dtype=bool)[at]
            if hit.any():
                return f"data row {before + int(hit.argmax()) + 1}"
            before += len(at)
        raise InputError(f"{self.table.name} changed while it was read")

    def note_texts(self, noun: str, used: set[str]) -> None:
        """Note texts that may mean "missing", and those that are forms of one text."""
        forms: dict[str, set[str]] = {}
        for text, form in zip(self.cells.texts, self.cells.raw, strict=True):
            if text in used and form.lower() != text.lower():
                forms.setdefault(text, {text}).add(form)
        for text in sorted(t for t in used if t.lower() in _LOOKS_MISSING):
            self.notes.append(
                f"{text!r} in column {self.name!r} is a {noun} of its own "
                f"({counted(self.rows_of(text), 'row')}); if it means a missing value, say so "
                f"(--missing {text!r})"
            )
        if forms:
            self.notes.append(
                f"{listed(sorted(min(forms.values())))} of {self.name!r} are forms of one {noun}, "
                f"and are counted as one{' (and other groups are)' * (len(forms) > 1)}"
            )


def decide(found: Found, column: Column, decimal: str) -> Coding:
    """Return the coding of a public column; notes and warnings are left in ``found``."""
    return _Decision(found, column, decimal).coding()


class _Decision:
    def __init__(self, found: Found, column: Column, decimal: str) -> None:
        self.found, self.column, self.decimal = found, column, decimal
        self.what = f"column {found.name!r} of {found.table.name}"
        self.texts = found.cells.texts
        self.own = False  # whether the order is that of an ordered categorical
        absent = {"", *column.missing}
        self.present = [k for k, text in enumerate(self.texts) if text not in absent]

    def coding(self) -> Coding:
        column, found, support = self.column, self.found, self.column.support
        names = support.names if isinstance(support, Levels) else column.levels
        if isinstance(column.order, tuple):
            names = column.order
        if not self.present and not (names and column.missing_as_level):
            raise self._empty()
        lost = [k for k in self.present if self.texts[k] == MISSING_LEVEL]
        if column.missing_as_level and lost:
            raise InputError(
                f"{self.what} holds the text {MISSING_LEVEL!r} (first in {found.first_row(lost)}), "
                "which is the name of the level of missing values; if it means one say so "
                f"(--missing {MISSING_LEVEL!r})"
            )
        if names is None:
            names = self._own_order()
        numeric = names is None and self._is_numeric()
        made: Support = self._numbers() if numeric else self._levels(names)
        return Coding(
            found.name,
            made,
            column.missing,
            column.step is not None,
            "," if self.decimal == "," else ".",
            column.missing_as_level,
        )

    # -- numbers -------------------------------------------------------------------------------

    def _is_numeric(self) -> bool:
        """Decide by all cells; see the head of this module."""
        column, cells, found = self.column, self.found.cells, self.found
        gone = numbers_among(column.missing, self.decimal)
        numbers = {k: cells.numbers[k] for k in self.present if cells.numbers[k] not in gone}
        words = [k for k, number in numbers.items() if number is None]
        faults = {k: number for k, number in numbers.items() if isinstance(number, str)}
        other = POINT if self.decimal == "," else COMMA
        marked = [k for k in words if other.fullmatch(cells.raw[k])]
        if marked and not cells.typed:
            mark, option = ("point", "no --decimal") if other is POINT else ("comma", "--decimal ,")
            raise InputError(
                f"{self.what} holds numbers with a {mark} (first in {found.first_row(marked)}); if "
                f"it is the decimal mark say so ({option}), write numbers without marks of "
                "thousands, or give levels (--levels)"
            )
        led = [k for k in words if ZERO_LED.fullmatch(self.texts[k])]
        if led and len(led) == len(words):
            found.notes.append(
                f"{found.name!r} holds levels, not numbers: a needless zero leads "
                f"{counted(len(led), 'text')} (first in {found.first_row(led)})"
            )
            return False
        if words and len(words) + len(faults) == len(numbers):
            return False
        if words:
            shown, option = self._described(words)
            raise InputError(
                f"{self.what} mixes numbers with other text: {shown}; say which texts mean a "
                f"missing value ({option}), or give levels (--levels) to read all of it as levels"
            )
        if faults:
            place = min(faults, key=lambda k: (self._hidden(k), k))
            raise InputError(
                f"{self.what} holds a number that {faults[place]} in {found.first_row([place])}; "
                f"correct it, or say that it means a missing value ({self._described([place])[1]})"
            )
        if isinstance(column.order, str) or column.missing_as_level:
            raise InputError(
                f"{self.what} holds numbers, which have their own order and no level of missing "
                "values; name the levels (--levels or --order), or leave out the option"
            )
        if not numbers:
            raise self._empty()
        self.present = list(numbers)
        return True

    def _empty(self) -> InputError:
        return InputError(f"no row has a value in {self.what}")

    def _hidden(self, k: int) -> bool:
        """Whether a text may not be shown: it is neither a mark nor a level, but one row's cell."""
        text = self.texts[k]
        mark = text.lower().lstrip("+-") in {*_LOOKS_MISSING, "inf", "infinity"}
        return not mark and (len(text) > 20 or self.found.rows[k] < 2)

    def _described(self, places: Sequence[int]) -> tuple[str, str]:
        """Return the most telling of some cells in words, and the option that sets it aside."""
        rows = self.found.rows.tolist()
        k = min(places, key=lambda k: (self._hidden(k), -rows[k], self.texts[k]))
        text = "" if self._hidden(k) else repr(self.texts[k])
        more = f" and {counted(len(places) - 1, 'other text')}" if len(places) > 1 else ""
        where = f"({counted(rows[k], 'row')}, first in {self.found.first_row([k])})"
        return f"{text or 'a text'} {where}{more}", f"--missing {text}".strip()

    def _numbers(self) -> Support:
        """Return the lattice of the numbers, or the declared one."""
        found, cells = self.found, self.found.cells
        ratios: Any = [cells.numbers[k] for k in self.present]
        if is_text(found.raw.type) and not found.table.textual:
            found.notes.append(
                f"{found.name!r} is a column of text whose cells are all numbers, and is read as "
                "numbers; for codes give levels (--levels)"
            )
        codes = [k for k in self.present if not cells.typed and CODE.fullmatch(self.texts[k])]
        forms = {self.texts[k]: cells.numbers[k] for k in self.present} if codes else {}
        times = Counter(forms.values())
        same = [k for k in codes if times[cells.numbers[k]] > 1]
        if same:
            found.warnings.append(
                f"{counted(len(same), 'text')} of {found.name!r} (first in "
                f"{found.first_row(same)}) and another one are read as one number, as 12e2 and "
                "1200 would be; if they are codes give levels (--levels)"
            )
        large = any(abs(top) >= 2**53 * bottom for top, bottom in ratios)
        if large and str(found.raw.type) == "double" and found.raw.null_count:
            found.warnings.append(
                f"{found.name!r} holds floats beyond 2**53 and blanks: integers may have lost "
                "digits before; use an integer type that knows blanks (Int64)"
            )
        self._warn_of_far_values(np.array([top / bottom for top, bottom in ratios]))
        if self.column.support is not None:
            return self.column.support
        lattice, rounded = lattice_of_numbers(ratios, self.column.step)
        if self.column.step is not None:
            found.notes.append(
                f"{counted(rounded, 'distinct value')} of {found.name!r} rounded to multiples of "
                f"the step {show(self.column.step)}"
            )
        return lattice

    def _warn_of_far_values(self, values: Any) -> None:
        """Warn of a single value far from all others, such as a -999 that means "missing"."""
        order = np.argsort(values)
        for k, rest in ((order[0], order[1:]), (order[-1], order[:-1])):
            if len(rest) < 2 or self.column.support is not None:
                return
            low, high = values[rest[0]], values[rest[-1]]
            if 0 < _FAR * (high - low) < max(low - values[k], values[k] - high):
                text = self.texts[self.present[int(k)]]
                self.found.warnings.append(
                    f"the value {text} of {self.found.name!r} "
                    f"({counted(self.found.rows_of(text), 'row')}) is far from all others; if it "
                    f"means a missing value say so (--missing {text})"
                )

    # -- levels --------------------------------------------------------------------------------

    def _own_order(self) -> tuple[str, ...] | None:
        """Return the order of an ordered categorical, unless the user states one or it is numeric.

        Where its levels are numbers in their own order, they stay numbers.
        """
        column, found = self.column, self.found
        if column.order or column.step or column.support is not None:
            return None
        gone = {"", *column.missing} - ({MISSING_LEVEL} if column.missing_as_level else set())
        texts = map(canonical, found.table.own_order(found.name) or ())
        own = tuple(text for text in texts if text not in gone)
        numbers = [Fraction(*n) for n in map(parse, own) if isinstance(n, tuple)]
        if not own or (len(numbers) == len(own) and all(a < b for a, b in pairwise(numbers))):
            return None
        if column.missing_as_level and MISSING_LEVEL not in own:
            raise InputError(
                f"the order of {found.name!r} is that of its ordered categorical, {listed(own)}, "
                "and does not say where the level of missing values belongs; state an order that "
                f"names {MISSING_LEVEL!r} too (--order)"
            )
        found.notes.append(f"the order of {found.name!r} is that of its ordered categorical")
        self.own = True
        return own

    def _levels(self, names: Sequence[str] | None) -> Levels:
        """Return the levels: those declared, or those that occur."""
        column, found = self.column, self.found
        present = [self.texts[k] for k in self.present]
        if column.step is not None or isinstance(column.support, Lattice):
            raise InputError(f"a step or support is for numbers, but {self.what} holds levels")
        if names is not None:
            self._check_declared(names)
        if present and all(map(is_date, present)):
            found.notes.append(
                f"{found.name!r} holds dates, which are levels; for distances in time make them "
                "numbers, of days for example"
            )
        if column.missing_as_level:
            found.notes.append(
                f"rows without a value in {found.name!r} have the level {MISSING_LEVEL!r}, "
                "released like any other; where blanks can be told from values they may reveal "
                "the secret"
            )
        found.note_texts("level", set(present))
        if isinstance(column.support, Levels):
            return column.support
        if self.own or isinstance(column.order, tuple):
            if column.levels is None and all(isinstance(parse(text), tuple) for text in present):
                found.notes.append(
                    f"{found.name!r} holds numbers, but with an order they are levels, released "
                    "as their codes 0, 1, 2, ...; leave out the order to release numbers"
                )
            return Levels(tuple(names or ()), ordered=True)
        # Without a stated order the level of missing values is the last one.
        last = (MISSING_LEVEL,) if column.missing_as_level else ()
        every = sorted({*present, *(names or ())}.difference(last))
        if names is None and len(every) > MOST_LEVELS:
            raise InputError(
                f"{self.what} holds {len(every):,} different texts, more than {MOST_LEVELS:,} "
                "levels; is it an identifier or free text?"
            )
        if column.order == "appearance":
            every = self._by_appearance(every)
            found.warnings.append(
                f"levels of {found.name!r} are numbered by their first appearance: another order "
                "of the rows gives other codes and another scale"
            )
        return Levels((*every, *last), ordered=column.order is not None)

    def _by_appearance(self, names: Sequence[str]) -> list[str]:
        seen: dict[str, None] = {}
        for batch in self.found.table.batches([self.found.name]):
            # Distinct cells come in the order of their first appearance.
            seen.update(dict.fromkeys(Cells(distinct(batch.column(0))[0]).texts))
        order = {name: k for k, name in enumerate(seen)}
        return sorted(names, key=lambda name: order.get(name, len(order)))

    def _check_declared(self, names: Sequence[str]) -> None:
        known = set(map(canonical, names))
        lost = [k for k in self.present if self.texts[k] not in known]
        if not lost:
            return
        # A slip of the pen is in what was given: its near match is a level of the column.
        shown = [self.texts[k] for k in lost[:1000] if not self._hidden(k)]
        near = [(name, did_you_mean(name, shown)) for name in set(names).difference(self.texts)]
        slip = next((f": it names {name!r}{match}" for name, match in sorted(near) if match), "")
        what = "order" if isinstance(self.column.order, tuple) else "list of levels"
        raise InputError(
            f"the {what} {listed(names)} does not fit {self.what}{slip}; the column holds "
            f"{self._described(lost)[0]}; name every level, or say which texts mean a missing "
            "value (--missing)"
        )


def lattice_of_numbers(
    ratios: Sequence[tuple[int, int]], step: Fraction | None
) -> tuple[Lattice, int]:
    """Return the lattice of numbers ``top / bottom``, and how many were rounded to the step."""
    rounded = 0
    if step is None:
        common = math.lcm(*{bottom for _, bottom in ratios})
        tops = [top * (common // bottom) for top, bottom in ratios]
        shared = math.gcd(common, *tops)
        step, units = Fraction(shared, common), [top // shared for top in tops]
    else:
        pairs = [(top * step.denominator, bottom * step.numerator) for top, bottom in ratios]
        units = [nearest_unit(top, bottom) for top, bottom in pairs]
        rounded = sum(u * bottom != top for u, (top, bottom) in zip(units, pairs, strict=True))
    least, most = min(units), max(units)
    # The ends alone decide whether the range is too long, and what the error says.
    make_lattice([step * least, step * most], step)
    index = np.unique(np.array([unit - least for unit in units], dtype=np.int64))
    return Lattice(step, least, index), rounded
