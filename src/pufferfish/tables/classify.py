# SPDX-License-Identifier: Apache-2.0
"""Classify: whether the public column as a whole is numbers, booleans or levels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.rationals import NotFinite
from pufferfish.tables.cells import BOOLEANS, Cells
from pufferfish.tables.numerals import Numbers, Ratio, number, parse_comma, parse_point
from pufferfish.tables.rules import Rules

#: Texts that often mean "missing"; they are levels unless the user says so, but we mention them.
LOOKS_MISSING = frozenset(
    {"?", "-", "--", ".", "..", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null"}
    | {"missing", "unknown"}
)


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
        _stated_levels(cells, counts, rules, column)
        return Reading(None, rules)
    notes: list[str] = []
    if not cells.typed and rules.decimal is None:
        mark = _decimal_mark(cells.texts, comma_may_be_decimal, column, row_of)
        if mark == ",":
            notes.append(f"numbers of {rules.public!r} are read with a decimal comma")
        rules = replace(rules, decimal=mark)  # type: ignore[arg-type]
    ratios: list[Ratio] = []
    words, endless, truths, fractions = [], [], [], 0
    decimal = None if cells.typed else rules.decimal
    for place, text in enumerate(cells.texts):
        try:
            ratio = number(text, decimal)
        except NotFinite:
            endless.append(place)
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
        first = min(row_of(place) for place in endless)
        raise InputError(
            f"{column} holds a number that is not finite in data row {first}; correct it, or say "
            f"that it means a missing value (--missing {cells.texts[endless[0]][:20]!r})"
        )
    if fractions:
        notes.append(
            f"{fractions} distinct values of {rules.public!r} are read as fractions such as 1/3; "
            "if they are dates or codes, give levels (--levels)"
        )
    if isinstance(rules.order, str):
        raise InputError(
            f"{column} holds numbers, which have their order already; leave out the order "
            f"{rules.order!r}, or give levels (--levels) to read the column as levels"
        )
    return Reading(Numbers.of(ratios), rules, tuple(notes))


def _decimal_mark(
    texts: Sequence[str], may_be_decimal: bool, column: str, row_of: Callable[[int], int]
) -> str | None:
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
    few = sorted(places, key=lambda place: (-counts[place], cells.texts[place]))[:3]
    named = ", ".join(
        f"{_short(cells.texts[place])} ({counts[place]} row{'s' * (counts[place] != 1)}, "
        f"first in data row {row_of(place)})"
        for place in few
    )
    more = f" and {len(places) - 3} other texts" if len(places) > 3 else ""
    raise InputError(
        f"{column} mixes numbers with other text: {named}{more}; say which texts mean a missing "
        f"value (--missing {cells.texts[few[0]][:20]!r}), or give levels (--levels) to read all "
        "of it as levels"
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 24 else f"{text[:21]}...")


def _stated_levels(cells: Cells, counts: Sequence[int], rules: Rules, column: str) -> None:
    stated = rules.order if isinstance(rules.order, tuple) else rules.levels
    known = set(stated or ())
    lost = [place for place, text in enumerate(cells.texts) if text not in known]
    if not lost:
        return
    what, option = (
        ("order", "--order") if isinstance(rules.order, tuple) else ("levels", "--levels")
    )
    seen = set(cells.texts)
    lost.sort(key=lambda place: (-counts[place], cells.texts[place]))
    first = lost[0]
    near = did_you_mean(cells.texts[first], [name for name in known if name not in seen])
    numeric = all(_reads(parse_point, cells.texts[place]) for place in lost)
    # Numbers may be many and private; levels are named.
    shown = (
        f"the column holds {len(lost)} distinct numbers that it does not name"
        if numeric and len(lost) > 3
        else f"{_short(cells.texts[first])} ({counts[first]} rows)"
        + (f" and {len(lost) - 1} others" if len(lost) > 1 else "")
        + " is not in it"
    )
    raise InputError(
        f"the {what} {listed(stated or ())} does not fit {column}: {shown}{near}; name every "
        f"level in {option}, or say which texts mean a missing value (--missing)"
    )


def looks_missing(texts: Sequence[str]) -> list[str]:
    """Return the texts that often mean "missing", though here they are values."""
    return [text for text in texts if text.lower() in LOOKS_MISSING]
