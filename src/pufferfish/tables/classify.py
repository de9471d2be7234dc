# SPDX-License-Identifier: Apache-2.0
"""Classify: whether a public column holds numbers or levels, and the support that follows.

All cells that are not missing are plain decimals: numbers. None is: levels. Anything between is an
error that names the option which decides; nothing is guessed.
"""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.numbers import IntArray
from pufferfish.support import MISSING_LEVEL, Lattice, Levels, Support, make_lattice, nearest_unit
from pufferfish.tables.arrow import distinct, is_text
from pufferfish.tables.canonical import (
    CODE,
    COMMA,
    POINT,
    ZERO_LED,
    Cells,
    canonical,
    is_date,
    parse,
)
from pufferfish.tables.rules import Coding, Column, DecimalMark, numbers_among
from pufferfish.tables.table import Table

#: More levels than this are an identifier or free text, unless they are declared.
MOST_LEVELS = 100_000
#: Texts that often mean "missing"; they are levels unless the user says so, but are mentioned.
LOOKS_MISSING = frozenset(
    {"?", "-", "--", ".", "..", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null"}
    | {"missing", "unknown", MISSING_LEVEL}
)
_MARKS = LOOKS_MISSING | {"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"}
#: A value this many times the range of all others away from them is not one of them, perhaps.
_FAR = 10


@dataclass
class Found:
    """The distinct cells of one column, and what has been decided about them.

    Attributes
    ----------
    raw : pyarrow.Array, shape (k,)
    cells : Cells
    rows : int64 array, shape (k,)
        The rows that hold each cell.
    places : int array, shape (groups,)
        The cell of every group of rows.
    notes, warnings : list of str
    order : see ColumnReport
    rounded : int
        Distinct values that were moved by rounding them to the step.
    """

    raw: pa.Array
    cells: Cells
    rows: IntArray
    places: Any
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    order: Literal["stated", "appearance", "alphabetical", "own"] | None = None
    rounded: int = 0

    @classmethod
    def of(cls, column: pa.ChunkedArray, counts: IntArray, decimal: str) -> "Found":
        """Return the cells of all groups; ``counts`` are the rows of each."""
        raw, places = distinct(column)
        rows = np.bincount(places, counts, len(raw)).astype(np.int64)
        return cls(raw, Cells(raw, decimal), rows, places)

    def rows_of(self, text: str) -> int:
        """Return the rows that hold a canonical text."""
        return int(self.rows[[k for k, t in enumerate(self.cells.texts) if t == text]].sum())


def decide(found: Found, column: Column, table: Table, decimal: DecimalMark) -> Coding:
    """Return the coding of a public column; notes and warnings are left in ``found``."""
    return _Decision(found, column, table, decimal).coding()


def row_of(table: Table, column: str, texts: Iterable[str]) -> int:
    """Return the first data row (from 1, without the header) that holds one of some texts."""
    wanted, before = set(texts), 0
    for batch in table.batches([column]):
        values, places = distinct(batch.column(0))
        hit = np.array([text in wanted for text in Cells(values).texts], dtype=bool)[places]
        if hit.any():
            return before + int(hit.argmax()) + 1
        before += len(places)
    raise InputError(f"{table.name} changed while it was read")


class _Decision:
    def __init__(self, found: Found, column: Column, table: Table, decimal: DecimalMark) -> None:
        self.found, self.column, self.table, self.decimal = found, column, table, decimal
        self.name = column.name
        self.what = f"column {column.name!r} of {table.name}"
        self.texts, self.rows = found.cells.texts, found.rows.tolist()
        absent = {"", *column.missing}
        self.present = [k for k, text in enumerate(self.texts) if text not in absent]

    def coding(self) -> Coding:
        column, found = self.column, self.found
        stated = column.support if isinstance(column.support, Levels) else None
        named = column.levels if isinstance(column.order, str) else column.order or column.levels
        if not self.present and not (named and column.missing_as_level) and stated is None:
            raise InputError(f"no row of {self.table.name} has a value in column {self.name!r}")
        if column.missing_as_level and MISSING_LEVEL in {self.texts[k] for k in self.present}:
            raise InputError(
                f"{self.what} holds the text {MISSING_LEVEL!r} (first in data row "
                f"{self._row([MISSING_LEVEL])}), which is the name of the level of missing values; "
                f"if it means one say so (--missing {MISSING_LEVEL!r})"
            )
        rounds = column.step is not None
        if stated is not None or named is not None:
            support: Support = self._stated_levels(stated, named)
        else:
            own = self._own_order()
            if own is not None:
                support = self._stated_levels(None, own)
                found.order = "own"
                found.notes.append(f"the order of {self.name!r} is that of its ordered categorical")
            else:
                support = self._numbers() if self._is_numeric() else self._levels()
        if isinstance(support, Levels):
            self._note_on_levels(support)
        return Coding(
            self.name, support, column.missing, rounds, self.decimal, column.missing_as_level
        )

    def _row(self, texts: Iterable[str]) -> int:
        return row_of(self.table, self.name, texts)

    # -- numbers or levels ---------------------------------------------------------------------

    def _is_numeric(self) -> bool:
        """Decide by all cells; see the head of this module."""
        column, cells = self.column, self.found.cells
        gone = numbers_among(column.missing, self.decimal)
        numbers = {k: cells.numbers[k] for k in self.present if cells.numbers[k] not in gone}
        words = [k for k, number in numbers.items() if number is None]
        faults = [k for k, number in numbers.items() if isinstance(number, str)]
        plain = len(numbers) - len(words) - len(faults)
        if words and not cells.typed:
            self._check_marks(words)
        led = [k for k in words if ZERO_LED.fullmatch(self.texts[k])]
        if words and len(led) == len(words) and not faults:
            self.found.notes.append(
                f"{self.name!r} holds levels, not numbers: a needless zero leads "
                f"{counted(len(led), 'text')} (first in data row "
                f"{self._row(self.texts[k] for k in led)})"
            )
            return False
        if words and not plain:
            return False
        if words:
            self._refuse_mixture(words)
        if faults:
            fault = {k: str(numbers[k]) for k in faults}
            place = self._telling(faults)
            raise InputError(
                f"{self.what} holds a number that {fault[place]} in data row "
                f"{self._row([self.texts[place]])}; correct it, or say that it means a missing "
                f"value ({self._option(place)})"
            )
        if isinstance(column.order, str):
            raise InputError(
                f"{self.what} holds numbers, which have their order already; leave out the order "
                f"{column.order!r}, or give levels (--levels)"
            )
        if column.missing_as_level:
            raise InputError(
                f"{self.what} holds numbers, so missing cannot be a level among them "
                "(--missing-as-level); name the levels (--levels or --order), or leave it out"
            )
        self.present = list(numbers)
        return True

    def _check_marks(self, words: Sequence[int]) -> None:
        """Refuse cells that are numbers but for their decimal mark."""
        comma = self.decimal == ","
        other = POINT if comma else COMMA
        these = [k for k in words if other.fullmatch(self.found.cells.raw[k])]
        if these:
            mark, option = ("point", "leave out --decimal") if comma else ("comma", "--decimal ,")
            raise InputError(
                f"{self.what} holds numbers with a {mark} in {counted(len(these), 'text')} (first "
                f"in data row {self._row(self.texts[k] for k in these)}); if it is the decimal "
                f"mark say so ({option}), write numbers without marks of thousands, or give "
                "levels (--levels)"
            )

    def _refuse_mixture(self, words: list[int]) -> NoReturn:
        place = self._telling(words)
        more = f" and {counted(len(words) - 1, 'other text')}" if len(words) > 1 else ""
        raise InputError(
            f"{self.what} mixes numbers with other text: {self._described(place)}{more}; say "
            f"which texts mean a missing value ({self._option(place)}), or give levels (--levels) "
            "to read all of it as levels"
        )

    def _may_be_quoted(self, k: int) -> bool:
        """Whether a text can be shown: a mark or a level, and not the cell of a single row."""
        text = self.texts[k]
        return text.lower() in _MARKS or (len(text) <= 20 and self.rows[k] >= 2)

    def _telling(self, places: Iterable[int]) -> int:
        """Return the cell that a message is best about: one that may be quoted, and is frequent."""
        return min(places, key=lambda k: (not self._may_be_quoted(k), -self.rows[k], self.texts[k]))

    def _described(self, k: int) -> str:
        what = repr(self.texts[k]) if self._may_be_quoted(k) else "a text"
        row = self._row([self.texts[k]])
        return f"{what} ({counted(self.rows[k], 'row')}, first in data row {row})"

    def _option(self, k: int) -> str:
        return f"--missing {self.texts[k]!r}" if self._may_be_quoted(k) else "--missing"

    # -- numbers -------------------------------------------------------------------------------

    def _numbers(self) -> Support:
        """Return the lattice of the numbers, or the declared one."""
        found, column = self.found, self.column
        parsed = [found.cells.numbers[k] for k in self.present]
        ratios = [number for number in parsed if isinstance(number, tuple)]
        if is_text(found.raw.type) and not self.table.textual:
            found.notes.append(
                f"{self.name!r} is a column of text whose cells are all numbers, and is read as "
                "numbers; for codes give levels (--levels)"
            )
        self._warn_of_codes()
        self._warn_of_lost_digits()
        self._warn_of_far_values(ratios)
        if column.support is not None:
            return column.support
        lattice, found.rounded = lattice_of_numbers(ratios, column.step)
        return lattice

    def _warn_of_codes(self) -> None:
        """Warn where an exponent without a point, perhaps a code, made one number of two texts."""
        cells = self.found.cells
        codes = [k for k in self.present if CODE.fullmatch(self.texts[k])]
        if cells.typed or not codes:
            return
        forms: dict[Any, set[str]] = {cells.numbers[k]: set() for k in codes}
        for k in self.present:
            if cells.numbers[k] in forms:
                forms[cells.numbers[k]].add(self.texts[k])
        same = sorted(text for texts in forms.values() if len(texts) > 1 for text in texts)
        if same:
            self.found.warnings.append(
                f"{counted(len(same), 'text')} of {self.name!r} (first in data row "
                f"{self._row(same)}) are other forms of one number, as 12e2 and 1200 are, and are "
                "read as that number; if they are codes give levels (--levels)"
            )

    def _warn_of_lost_digits(self) -> None:
        """Warn where integers were squeezed into floats before they reached us."""
        numbers = [self.found.cells.numbers[k] for k in self.present]
        large = any(isinstance(n, tuple) and abs(n[0]) >= 2**53 * n[1] for n in numbers)
        if large and pt.is_float64(self.found.raw.type) and self.found.raw.null_count:
            self.found.warnings.append(
                f"{self.name!r} holds floats beyond 2**53 and blanks: integers of that size may "
                "have lost digits before; use an integer type that knows blanks (Int64)"
            )

    def _warn_of_far_values(self, ratios: Sequence[tuple[int, int]]) -> None:
        """Warn of a single value far from all others, such as a -999 that means "missing"."""
        if len(ratios) < 3 or self.column.support is not None:
            return
        values = np.array([top / bottom for top, bottom in ratios])
        order = np.argsort(values)
        for k, rest in ((order[0], order[1:]), (order[-1], order[:-1])):
            width = values[rest[-1]] - values[rest[0]]
            gap = min(abs(values[k] - values[rest[0]]), abs(values[k] - values[rest[-1]]))
            if width > 0 and gap > _FAR * width:
                text = self.texts[self.present[int(k)]]
                self.found.warnings.append(
                    f"the value {text} of {self.name!r} "
                    f"({counted(self.found.rows_of(text), 'row')}) is far from all others; if it "
                    f"means a missing value say so (--missing {text})"
                )

    # -- levels --------------------------------------------------------------------------------

    def _own_order(self) -> tuple[str, ...] | None:
        """Return the order of an ordered categorical, unless the user states one or it is numeric.

        Where its levels are numbers in their own order, they stay numbers.
        """
        column = self.column
        if column.order is not None or column.levels is not None or column.support is not None:
            return None
        level = {MISSING_LEVEL} if column.missing_as_level else set()
        gone = {"", *column.missing} - level
        own = tuple(
            text for text in map(canonical, self.table.own_order(self.name) or ())
            if text not in gone
        )  # fmt: skip
        numbers = [parse(text) for text in own]
        values = [Fraction(*number) for number in numbers if isinstance(number, tuple)]
        increase = all(a < b for a, b in pairwise(values))
        if not own or column.step is not None or (len(values) == len(own) and increase):
            return None
        if column.missing_as_level and MISSING_LEVEL not in own:
            raise InputError(
                f"the order of {self.name!r} is that of its ordered categorical, {listed(own)}, "
                "and does not say where the level of missing values belongs; state an order that "
                f"names {MISSING_LEVEL!r} too (--order)"
            )
        return own

    def _stated_levels(self, stated: Levels | None, named: Sequence[str] | None) -> Levels:
        """Return the levels that were declared, after a look at those that occur."""
        column = self.column
        names = tuple(map(canonical, stated.names)) if stated is not None else tuple(named or ())
        known = set(names)
        lost = [k for k in self.present if self.texts[k] not in known]
        if lost:
            self._refuse_lost(lost, names)
        if stated is not None:
            self.found.order = "stated" if stated.ordered else None
            return stated
        if (
            not isinstance(column.order, tuple)
            and column.order is None
            and column.levels is not None
        ):
            last = (MISSING_LEVEL,) if column.missing_as_level else ()
            return Levels((*sorted(known.difference(last)), *last))
        if isinstance(column.order, str):
            return self._levels(names)
        self.found.order = "stated"
        numeric = all(isinstance(parse(self.texts[k]), tuple) for k in self.present)
        if self.present and numeric and column.levels is None:
            self.found.notes.append(
                f"{self.name!r} holds numbers, but with an order they are levels, released as "
                "their codes 0, 1, 2, ...; leave out the order to release numbers"
            )
        return Levels(names, ordered=True)

    def _refuse_lost(self, lost: list[int], names: Sequence[str]) -> NoReturn:
        place = self._telling(lost)
        seen = {self.texts[k] for k in self.present}
        numeric = all(isinstance(parse(self.texts[k]), tuple) for k in lost)
        # Numbers may be many and private; levels are named.
        if numeric and len(lost) > 3:
            shown = f"the column holds {len(lost)} distinct numbers that it does not name"
        else:
            near = did_you_mean(self.texts[place], [name for name in names if name not in seen])
            more = f" and {counted(len(lost) - 1, 'other text')}" if len(lost) > 1 else ""
            shown = f"the column also holds {self._described(place)}{more}{near}"
        what = "order" if isinstance(self.column.order, tuple) else "list of levels"
        raise InputError(
            f"the {what} {listed(names)} does not fit {self.what}: {shown}; name every level "
            "(--levels or --order), or say which texts mean a missing value (--missing)"
        )

    def _levels(self, declared: Sequence[str] = ()) -> Levels:
        """Return the levels that occur and those declared, in a named order or in none."""
        column = self.column
        names = sorted({self.texts[k] for k in self.present} | set(declared))
        if len(names) > MOST_LEVELS:
            raise InputError(
                f"{self.what} holds {len(names):,} different texts, more than {MOST_LEVELS:,} "
                "levels; is it an identifier or free text?"
            )
        if column.step is not None or column.support is not None:
            raise InputError(f"a step or support is for numbers, but {self.what} holds levels")
        # Without a stated order the level of missing values is the last one.
        last = (MISSING_LEVEL,) if column.missing_as_level else ()
        names = [name for name in names if name not in last]
        if column.order == "appearance":
            names = self._by_appearance(names)
            self.found.warnings.append(
                f"levels of {self.name!r} are numbered by their first appearance: another order of "
                "the rows gives other codes and another scale"
            )
        self.found.order = column.order if isinstance(column.order, str) else None
        return Levels((*names, *last), ordered=column.order is not None)

    def _by_appearance(self, names: Sequence[str]) -> list[str]:
        seen: dict[str, None] = {}
        for batch in self.table.batches([self.name]):
            values, places = distinct(batch.column(0))
            texts = Cells(values).texts
            first = np.sort(np.unique(places, return_index=True)[1])
            seen.update(dict.fromkeys(texts[places[k]] for k in first.tolist()))
        known = set(names)
        return [*(n for n in seen if n in known), *(n for n in names if n not in seen)]

    def _note_on_levels(self, levels: Levels) -> None:
        found, names = self.found, [self.texts[k] for k in self.present]
        if names and all(map(is_date, names)):
            found.notes.append(
                f"{self.name!r} holds dates, which are levels; for distances in time make them "
                "numbers, of days for example"
            )
        if self.column.missing_as_level:
            found.notes.append(
                f"rows without a value in {self.name!r} have the level {MISSING_LEVEL!r}, which is "
                "protected and released like any other; where blanks can be told from values they "
                "may reveal the secret"
            )
        found.notes.extend(notes_on_texts(found, self.name, "level", set(names)))


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
        up, down = step.denominator, step.numerator
        units = [nearest_unit(top * up, bottom * down) for top, bottom in ratios]
        rounded = sum(
            unit * bottom * down != top * up
            for unit, (top, bottom) in zip(units, ratios, strict=True)
        )
    least, most = min(units), max(units)
    # The ends alone decide whether the range is too long, and what the error says.
    make_lattice([step * least, step * most], step)
    index = np.unique(np.array([unit - least for unit in units], dtype=np.int64))
    return Lattice(step, least, index), rounded


def notes_on_texts(found: Found, name: str, noun: str, used: set[str]) -> list[str]:
    """Return notes on texts that may mean "missing", and on those that are one or look alike."""
    notes = []
    for text in sorted(text for text in used if text.lower() in LOOKS_MISSING):
        notes.append(
            f"{text!r} in column {name!r} is a {noun} of its own "
            f"({counted(found.rows_of(text), 'row')}); if it means a missing value, say so "
            f"(--missing {text!r})"
        )
    if len(used) > 10_000:
        return notes
    forms: dict[str, set[str]] = {}
    looks: dict[str, set[str]] = {}
    for text, form in zip(found.cells.texts, found.cells.raw, strict=True):
        if text in used and text not in ("true", "false"):
            forms.setdefault(text, set()).add(form)
            looks.setdefault(_look(text).casefold(), set()).add(text)
    alike = [group for group in forms.values() if len(group) > 1]
    if alike:
        notes.append(f"{_shown(alike)} of {name!r} are forms of one {noun}, and are counted as one")
    alike = [group for group in looks.values() if len(group) > 1]
    if alike:
        notes.append(
            f"{_shown(alike)} of {name!r} differ only in case, spaces, accents or characters that "
            f"do not show, but are several {noun}s; make them one in the table if they are one"
        )
    return notes


def _look(name: str) -> str:
    """Return what people see of a name."""
    shown = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", " ".join(shown.split()))


def _shown(groups: Sequence[set[str]]) -> str:
    """Return the first group of names, as escapes where they look the same."""
    names = sorted(groups[0])
    form = repr if len({_look(name) for name in names}) == len(names) else ascii
    more = f" (and {len(groups) - 1} other groups)" if len(groups) > 1 else ""
    return f"{', '.join(map(form, names[:4]))}{more}"
