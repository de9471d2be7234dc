# SPDX-License-Identifier: Apache-2.0
"""Sequences: the rows of a table as records in their order, in one or many sequences.

Messages name columns, data rows and states, and no sequence or time.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.numbers import INT64_SAFE, IntArray, canonical, parse_cell, show, text_of
from pufferfish.tables.encode import LOOKS_MISSING
from pufferfish.tables.source import open_table
from pufferfish.tables.table import no_person, numbered

#: More states than this are an identifier.
MOST_STATES = 100
_START, _ZONED_START = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SequenceRules:
    """How the rows of a table become sequences of records: columns, and what is done with gaps."""

    state: str
    time: str | None = None  # numbers, dates or times; None: records are in the order of the rows
    sequence: str | None = None  # its equal values mark one sequence; None: all rows are one
    gaps: Literal["refuse", "order"] = "refuse"  # "order": irregular times count by their order
    missing: tuple[str, ...] = ()  # texts that mean "missing", besides the empty cell
    step: Fraction | None = None  # from one time to the next, of dates in microseconds; None: any


@dataclass(frozen=True, eq=False)
class Sequences:
    """The states of all records, sequence after sequence, in the order of time."""

    states: tuple[str, ...]  # those given, or those found, numbers in their own order
    codes: IntArray  # shape (records,): the place of each record's state among ``states``
    starts: IntArray  # shape (count,): where in ``codes`` each sequence begins
    notes: tuple[str, ...] = ()  # what was done to the input
    step: Fraction | None = None  # from each time to the next; None: there is no time or no step

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.codes)

    @property
    def count(self) -> int:
        """The number of sequences."""
        return len(self.starts)

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The distinct numbers of records of the sequences, increasing."""
        return tuple(np.unique(np.diff(self.starts, append=self.records)).tolist())

    @cached_property
    def later(self) -> IntArray:
        """The places in ``codes`` of the records that follow another one."""
        return np.delete(np.arange(self.records), self.starts)

    def transitions(self) -> IntArray:
        """Return how often each state (row) is followed by each state (column), shape (k, k)."""
        k = len(self.states)
        pairs = self.codes[self.later - 1] * k + self.codes[self.later]
        return np.bincount(pairs, minlength=k * k).reshape(k, k)

    def firsts(self) -> IntArray:
        """Return how many sequences begin with each state, shape (k,)."""
        return np.bincount(self.codes[self.starts], minlength=len(self.states))


def read_sequences(table: Any, rules: SequenceRules, states: Any = None) -> Sequences:
    """Return the sequences of a table (a path, a dataframe or an open Table), in any order of rows.

    With ``states`` no others may occur; without, all that occur are states. Sequences are returned
    as they are.
    """
    if isinstance(table, Sequences):
        return table
    if rules.gaps not in ("refuse", "order"):
        raise InputError(f"gaps must be 'refuse' or 'order', but {rules.gaps!r} was given")
    table = open_table(table)
    columns = [table.column(c) for c in (rules.state, rules.time, rules.sequence) if c is not None]
    if len(set(columns)) < len(columns):
        raise InputError(f"the columns of state, time and sequence must differ: {listed(columns)}")
    what = [f"column {name!r} of {table.name}" for name in columns]
    texts, codes = _read(table, columns, rules.missing)
    for name, column in zip(what, codes, strict=True):
        lost = np.flatnonzero(column < 0)
        _refuse(lost, f"{name} is missing", "leave those sequences out, or fill it in")
    names, place = _states(texts[0], states, what[0], codes[0])
    notes = [
        f"{text!r} is a state; if it means a missing value say so (--missing {text!r})"
        for text in sorted(texts[0]) if text.lower() in LOOKS_MISSING
    ]  # fmt: skip
    who = np.zeros_like(codes[0]) if rules.sequence is None else codes[-1]
    if rules.sequence is None:
        notes.append("all rows are taken as one sequence, as no column of sequences was named")
    if rules.time is None and rules.gaps == "refuse":  # in a wrong order dependence is lost
        raise InputError(
            "name the column that orders the records with --time COL (time=...); if the rows of "
            "each sequence are in that order already, say so with --gaps order (gaps='order')"
        )
    times, unit = np.arange(len(who)), 1
    if rules.time is not None:
        distinct, unit = _times(texts[1], what[1], codes[1])
        times = distinct[codes[1]]
    order = np.lexsort((times, who))
    starts = np.flatnonzero(np.diff(who[order], prepend=-1))
    found = Sequences(names, place[codes[0][order]], starts, tuple(notes))
    if rules.time is None or not len(found.later):
        return found
    steps = times[order[found.later]] - times[order[found.later - 1]]
    _check_steps(steps, order[found.later], rules.gaps, what[1])
    step = Fraction(int(steps[0]), unit) if rules.gaps == "refuse" else None
    if rules.step is not None and rules.step != step:
        raise InputError(
            f"{what[1]} has other steps than {show(rules.step)}, which the plan is for (of dates "
            "in microseconds)"
        )
    return replace(found, step=step)


def sequences_of_lists(given: Iterable[Iterable[Any]], states: Sequence[str]) -> Sequences:
    """Return sequences that are lists of states."""
    every = []
    for each in given:
        if isinstance(each, str | Mapping) or not isinstance(each, Iterable):
            raise InputError(f"a sequence must be a list of states, but {each!r} was given")
        every.append([text_of(state) for state in each])
    if not every or not all(every):
        raise InputError(f"a sequence is empty; the states are {listed(states)}")
    names = [name for each in every for name in each]
    check_known(names, states, "a sequence")
    place = {state: k for k, state in enumerate(states)}
    codes = np.array([place[name] for name in names], dtype=np.int64)
    starts = np.cumsum([0, *map(len, every[:-1])])
    return Sequences(tuple(states), codes, starts)


def check_known(names: Iterable[str], states: Sequence[str], what: str) -> None:
    """Refuse names that are no states; the message names the first one."""
    known = set(states)
    for name in names:
        if name not in known:
            raise InputError(
                f"{what} names the unknown state {name!r}{did_you_mean(name, states)}; the states "
                f"are {listed(states)}"
            )


def _refuse(rows: IntArray, fault: str, hint: str) -> None:
    """Refuse some rows of a table, if there are any."""
    if len(rows):
        where = f"in {counted(len(rows), 'row')} (first: data row {rows.min() + 1})"
        raise InputError(f"{fault} {where}; {hint}")


def _read(
    table: Any, columns: Sequence[str], missing: Iterable[str]
) -> tuple[list[list[str]], list[IntArray]]:
    """Return the distinct texts of each column, and which of them each row holds (-1: missing)."""
    gone = no_person(canonical(text_of(text)) for text in missing)
    known: list[dict[str, int]] = [{} for _ in columns]
    parts = [
        [numbered(cells, texts, gone) for cells, texts in zip(batch.columns, known, strict=True)]
        for batch in table.batches(columns)
    ]
    codes = [np.concatenate(own) for own in zip(*parts, strict=True)]
    if not codes or not len(codes[0]):
        raise InputError(f"{table.name} has a header but no rows")
    return [list(texts) for texts in known], codes


def _states(
    known: Sequence[str], given: Any, what: str, codes: IntArray
) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the states, and the place among them of each text."""
    if given is not None:
        names = [text_of(name) for name in given]
    elif len(known) > MOST_STATES:
        raise InputError(f"{what} holds {len(known)} states; at most {MOST_STATES} are read")
    else:
        numbers = {text: parse_cell(text) for text in known}
        order = {text: Fraction(*n) for text, n in numbers.items() if isinstance(n, tuple)}
        names = sorted(known, key=order.__getitem__ if len(order) == len(known) else None)
    index = {canonical(name): k for k, name in enumerate(names)}
    if len(index) < len(names):
        raise InputError(f"two of the states {listed(names)} are one, as cells are read")
    for k, text in enumerate(known):
        if text not in index:
            fault = f"{what} holds none of the states {listed(names)}{did_you_mean(text, names)}"
            _refuse(np.flatnonzero(codes == k), fault, "name all states, or mend the rows")
    return tuple(names), np.array([index[text] for text in known], dtype=np.int64)


def _time(text: str) -> tuple[str, Fraction]:
    """Return the kind of a time ("": it is none) and its number, of dates in microseconds."""
    number = parse_cell(text)
    if isinstance(number, tuple):
        return "number", Fraction(*number)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return "", Fraction(0)
    kind, start = ("date", _START) if moment.tzinfo is None else ("zoned", _ZONED_START)
    return kind, Fraction((moment - start) // timedelta(microseconds=1))


def _times(texts: Sequence[str], what: str, codes: IntArray) -> tuple[IntArray, int]:
    """Return integers with the distances of some times, and how many of them are 1."""
    kinds, values = zip(*map(_time, texts), strict=True)
    wrong = [k for k, kind in enumerate(kinds) if not kind or kind != kinds[0]]
    _refuse(
        np.flatnonzero(np.isin(codes, wrong)),
        f"{what} holds no number, date or time, or another kind than before,",
        "times are numbers, ISO dates (2024-01-31), or ISO dates and times, all with a zone or all "
        "without",
    )
    unit, least = math.lcm(*(value.denominator for value in values)), min(values)
    if (max(values) - least) * unit > INT64_SAFE:
        raise InputError(f"{what} holds times of more than 18 digits, counted from the first one")
    return np.array([int((value - least) * unit) for value in values], dtype=np.int64), unit


def _check_steps(steps: IntArray, rows: IntArray, gaps: str, what: str) -> None:
    """Refuse times that occur twice in a sequence, or that are irregular and must not be.

    ``steps`` lead to the records of some ``rows`` from those before them.
    """
    _refuse(rows[steps == 0], f"{what} holds one time twice in a sequence,", "each needs its own")
    sizes, how_often = np.unique(steps, return_counts=True)
    if gaps == "refuse" and len(sizes) > 1:
        _refuse(
            rows[steps != sizes[how_often.argmax()]],
            f"{what} has irregular times, other steps than the most common one,",
            "gaps='order' (--gaps order) takes records in their order, such as months",
        )
