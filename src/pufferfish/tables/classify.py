# SPDX-License-Identifier: Apache-2.0
"""Classify: whether the public column as a whole is numbers, booleans or levels."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.rationals import NotFinite
from pufferfish.tables.cells import BOOLEANS, Cells
from pufferfish.tables.numerals import Numbers, Ratio, number, parse_comma, parse_point
from pufferfish.tables.rules import MISSING_LEVEL, DecimalMark, Rules

#: Texts that often mean "missing"; they are levels unless the user says so, but we mention them.
LOOKS_MISSING = frozenset(
    {"?", "-", "--", ".", "..", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null"}
    | {"missing", "unknown", MISSING_LEVEL}
)
_ENDLESS = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})

_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)

#: A text of the column that is longer than this is never quoted in a message.
_SHORT = 20


@dataclass(frozen=True)
class Reading:
    """The cells of a column that are not missing, read as numbers or as levels.

    Attributes
    ----------
    numbers : Numbers or None
        One number per cell; None for levels.
    rules : Rules
        The rules, with the decimal mark that was found.
    notes : tuple of str
        What was decided about the cells.
    """

    numbers: Numbers | None
    rules: Rules
    notes: tuple[str, ...] = ()


def classify(
    cells: Cells,
    counts: Sequence[int],
    rules: Rules,
    *,
    table: str,
    comma_may_be_decimal: bool,
    row_of: Callable[[int], int],
) -> Reading:
    """Decide what the public column holds, from all its distinct cells that are not missing.

    Parameters
    ----------
    cells : Cells
        The k distinct cells, none of them missing.
    counts : sequence of int, shape (k,)
        The rows in which each occurs.
    rules : Rules
        Levels or a listed order make the column levels.
    table : str
        What messages call the table.
    comma_may_be_decimal : bool
        Whether ``1,200`` could mean 1.2 in this table.
    row_of : callable
        Gives the first data row of a cell, by its place; asked only for a message.

    Raises
    ------
    InputError
        For numbers mixed with other text, numbers that are not finite, a comma that could mean
        two things, or a level that the stated levels or order lack.
    """
    column = f"column {rules.public!r} of {table}"
    if rules.levels is not None or isinstance(rules.order, tuple):
        _stated_levels(cells, counts, rules, column, row_of)
        return Reading(None, rules, _note_on_order(cells, rules))
    notes: list[str] = []
    if not cells.typed and rules.decimal is None:
        mark = _decimal_mark(cells.texts, comma_may_be_decimal, column, row_of)
        if mark == ",":
            notes.append(f"numbers of {rules.public!r} are read with a decimal comma")
        if mark is None and comma_may_be_decimal and _looks_grouped(cells.texts):
            notes.append(
                f"all numbers with a point in {rules.public!r} have three digits after it; they "
                "are read as decimals (1.200 is 1.2), not as thousands"
            )
        rules = replace(rules, decimal=mark)
    ratios: list[Ratio] = []
    words, truths, fractions = [], [], 0
    endless: dict[int, str] = {}
    decimal = None if cells.typed else rules.decimal
    for place, text in enumerate(cells.texts):
        try:
            ratio = number(text, decimal)
        except NotFinite as error:
            endless[place] = error.fault
            continue
        if ratio is not None:
            ratios.append(ratio)
            fractions += "/" in text
        elif text.lower() in BOOLEANS:
            truths.append(place)
            ratios.append((BOOLEANS[text.lower()], 1))
        else:
            words.append(place)
    numerals = len(ratios) - len(truths)
    if words and not numerals:
        return Reading(None, rules, tuple(notes))
    if words or (truths and (numerals or endless)):
        _mixed(cells, counts, words or [*truths, *endless], column, row_of)
    if endless:
        place = _telling(cells, counts, endless)
        text = cells.texts[place]
        raise InputError(
            f"{column} holds a number that {endless[place]} in data row {row_of(place)}; correct "
            f"it, or say that it means a missing value ({_missing_option(text, counts[place])})"
        )
    if fractions:
        notes.append(
            f"{counted(fractions, 'distinct value')} of {rules.public!r} "
            f"{'is read as a fraction' if fractions == 1 else 'are read as fractions'} such as "
            "1/3; for dates or codes give levels (--levels)"
        )
    if isinstance(rules.order, str):
        raise InputError(
            f"{column} holds numbers, which have their order already; leave out the order "
            f"{rules.order!r}, or give levels (--levels) to read the column as levels"
        )
    return Reading(Numbers.of(ratios), rules, tuple(notes))


def _decimal_mark(
    texts: Sequence[str], may_be_decimal: bool, column: str, row_of: Callable[[int], int]
) -> DecimalMark:
    """Return the decimal mark that the cells with a comma show, or None where none has one."""
    commas = [place for place, text in enumerate(texts) if "," in text]
    if not commas:
        return None
    point = all(_reads(parse_point, text) for text in texts)
    comma = all(_reads(parse_comma, text) for text in texts)
    row = row_of(commas[0]) if (comma and (point or not may_be_decimal)) else 0
    if comma and not may_be_decimal and not point:
        raise InputError(
            f"{column} holds numbers with a decimal comma (data row {row}), which is "
            "read only in a text file with ';', tab or '|' between its fields; write them with a "
            "point, or give levels (--levels)"
        )
    if comma and point and may_be_decimal:
        raise InputError(
            f"{column} holds a comma in data row {row} that could set off thousands or decimals; "
            "write the numbers without thousands, or with a decimal point"
        )
    if comma and not point:
        return ","
    return "." if point else None


def _looks_grouped(texts: Sequence[str]) -> bool:
    """Whether every text with a point could be thousands set off by points: ``1.200``."""
    pointed = [text for text in texts if "." in text]
    return bool(pointed) and all(_GROUPED.fullmatch(text) for text in pointed)


def _reads(parse: Callable[[str], Ratio | None], text: str) -> bool:
    try:
        return parse(text) is not None
    except NotFinite:
        return True


def _mixed(
    cells: Cells,
    counts: Sequence[int],
    places: list[int],
    column: str,
    row_of: Callable[[int], int],
) -> NoReturn:
    common = _telling(cells, counts, places)
    text, rows = cells.texts[common], counts[common]
    raise InputError(
        f"{column} mixes numbers with other text: {_described(text, rows, row_of(common))}"
        f"{_others(len(places) - 1, 'text')}; say which texts mean a missing value "
        f"({_missing_option(text, rows)}), or give levels (--levels) to read all of it as levels"
    )


def _may_be_quoted(text: str, rows: int) -> bool:
    """Whether a text can be shown: a mark or a level, and not the cell of a single row."""
    if text.lower() in LOOKS_MISSING or text.lower() in _ENDLESS:
        return True
    return len(text) <= _SHORT and rows >= 2


def _telling(cells: Cells, counts: Sequence[int], places: Iterable[int]) -> int:
    """Return the place of the text that a message is best about: one that may be quoted."""
    return min(
        places,
        key=lambda place: (
            not _may_be_quoted(cells.texts[place], counts[place]),
            -counts[place],
            cells.texts[place],
        ),
    )


def _described(text: str, rows: int, row: int) -> str:
    """Return a text that does not belong, quoted only where it may be, with the place to look."""
    what = repr(text) if _may_be_quoted(text, rows) else "a text"
    return f"{what} ({counted(rows, 'row')}, first in data row {row})"


def _missing_option(text: str, rows: int) -> str:
    return f"--missing {text!r}" if _may_be_quoted(text, rows) else "--missing"


def _others(number: int, noun: str) -> str:
    return f" and {number} other {noun}{'s' * (number != 1)}" if number else ""


def _stated_levels(
    cells: Cells,
    counts: Sequence[int],
    rules: Rules,
    column: str,
    row_of: Callable[[int], int],
) -> None:
    ordered = isinstance(rules.order, tuple)
    stated = rules.order if isinstance(rules.order, tuple) else rules.levels or ()
    known = set(stated)
    lost = [place for place, text in enumerate(cells.texts) if text not in known]
    if not lost:
        return
    seen = set(cells.texts)
    common = _telling(cells, counts, lost)
    text = cells.texts[common]
    near = did_you_mean(text, [name for name in known if name not in seen])
    numeric = all(_reads(parse_point, cells.texts[place]) for place in lost)
    # Numbers may be many and private; levels are named.
    shown = (
        f"the column holds {len(lost)} distinct numbers that it does not name"
        if numeric and len(lost) > 3
        else f"it lacks {_described(text, counts[common], row_of(common))}"
        f"{_others(len(lost) - 1, 'text')}"
    )
    what = "order" if ordered else "list of levels"
    raise InputError(
        f"the {what} {listed(stated)} does not fit {column}: {shown}{near}; name every level in "
        f"{'--order' if ordered else '--levels'}, or say which texts mean a missing value "
        "(--missing)"
    )


def _note_on_order(cells: Cells, rules: Rules) -> tuple[str, ...]:
    """Return a note where an order alone turns a column of numbers into levels."""
    if rules.levels is not None or not cells.texts:
        return ()
    if not all(_reads(parse_point, text) for text in cells.texts):
        return ()
    return (
        f"{rules.public!r} holds numbers, but with an order they are levels: what is released are "
        "their codes 0, 1, 2, ...; leave out the order to release numbers",
    )


def looks_missing(texts: Sequence[str]) -> list[str]:
    """Return the texts that often mean "missing", though here they are values."""
    return [text for text in texts if text.lower() in LOOKS_MISSING]
