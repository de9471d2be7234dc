# SPDX-License-Identifier: Apache-2.0
"""Sequences: the rows of a table as records in their order, in one or many sequences.

Messages name columns, data rows, states and numbers of sequences, and no sequence or time.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.numbers import INT64_SAFE, IntArray, text_of
from pufferfish.tables.canonical import canonical, parse
from pufferfish.tables.decide import LOOKS_MISSING
from pufferfish.tables.source import open_table
from pufferfish.tables.table import no_person, numbered

#: More states than this are an identifier.
MOST_STATES = 1000
#: A canonical text that is a date, with or without a time of day and a zone.
_DATE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?: ([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?(Z|[+-].+)?)?"
)
_DAY = 86_400
_EPOCH, _ZONED_EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SequenceRules:
    """How the rows of a table become sequences of records: columns, and what is done with gaps."""

    state: str
    time: str | None = None  # numbers, dates or times; None: records are in the order of the rows
    sequence: str | None = None  # its equal values mark one sequence; None: all rows are one
    gaps: Literal["refuse", "order"] = "refuse"  # "order": irregular times count by their order
    missing: tuple[str, ...] = ()  # texts that mean "missing", besides the empty cell


@dataclass(frozen=True, eq=False)
class Sequences:
    """The states of all records, sequence after sequence, in the order of time."""

    states: tuple[str, ...]  # those given, or those found, numbers in their own order
    codes: IntArray  # shape (records,): the place of each record's state among ``states``
    starts: IntArray  # shape (count,): where in ``codes`` each sequence begins
    notes: tuple[str, ...] = ()  # what was done to the input

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
        return np.bincount(pairs, minlength=k * k).reshape(k, k).astype(np.int64)

    def firsts(self) -> IntArray:
        """Return how many sequences begin with each state, shape (k,)."""
        return np.bincount(self.codes[self.starts], minlength=len(self.states)).astype(np.int64)


def read_sequences(table: Any, rules: SequenceRules, states: Any = None) -> Sequences:
    """Return the sequences of a table (a path, a dataframe or an open Table), in any order of rows.

    With ``states`` no others may occur; without, all that occur are states.
    """
    if isinstance(table, Sequences):
        return table
    if rules.gaps not in ("refuse", "order"):
        raise InputError(f"gaps must be 'refuse' or 'order', but {rules.gaps!r} was given")
    table, gone = open_table(table), no_person(canonical(text_of(m)) for m in rules.missing)
    columns = [table.column(c) for c in (rules.state, rules.time, rules.sequence) if c is not None]
    if len(set(columns)) < len(columns):
        raise InputError(f"the columns of state, time and sequence must differ: {listed(columns)}")
    what = [f"column {name!r} of {table.name}" for name in columns]
    known: list[dict[str, int]] = [{} for _ in columns]
    parts = [
        [numbered(cells, texts, gone) for cells, texts in zip(batch.columns, known, strict=True)]
        for batch in table.batches(columns)
    ]
    codes = [np.concatenate(own) for own in zip(*parts, strict=True)]
    if not codes or not len(codes[0]):
        raise InputError(f"{table.name} has a header but no rows")
    for name, column in zip(what, codes, strict=True):
        if len(lost := np.flatnonzero(column < 0)):
            raise InputError(
                f"{name} is missing in {counted(len(lost), 'row')} (first: {_first(lost)}); leave "
                "those sequences out, or write a state, a time and a sequence for each record"
            )
    names, place, notes = _states(known[0], states, what[0], codes[0])
    who = np.zeros_like(codes[0]) if rules.sequence is None else codes[-1]
    clock = np.arange(len(who)) if rules.time is None else codes[1]
    times = clock if rules.time is None else _times(list(known[1]), what[1], clock)
    order = np.lexsort((np.unique(times, return_inverse=True)[1][clock], who))
    starts = np.flatnonzero(np.diff(who[order], prepend=-1))
    found = Sequences(names, place[codes[0][order]], starts)
    if rules.time is None:
        notes.append("records are in the order of the rows, as no column of times was named")
    else:
        notes += _check(times[clock[order]], found, order, rules, what[1])
    if len(found.lengths) > 1:
        least, *_, most = found.lengths
        notes.append(f"{found.count} sequences have from {least} to {most} records")
    return replace(found, notes=tuple(notes))


def sequences_of_lists(given: Iterable[Iterable[Any]], states: Sequence[str]) -> Sequences:
    """Return sequences that are lists of states."""
    place, codes, starts = {state: k for k, state in enumerate(states)}, list[int](), list[int]()
    for each in given:
        names = list(map(text_of, each))
        unknown = next((name for name in names if name not in place), None)
        if unknown is not None or not names:
            what = "is empty" if unknown is None else f"has the unknown state {unknown!r}"
            near = "" if unknown is None else did_you_mean(unknown, states)
            raise InputError(f"a sequence {what}{near}; the states are {listed(states)}")
        starts.append(len(codes))
        codes += [place[name] for name in names]
    return Sequences(
        tuple(states), np.array(codes, dtype=np.int64), np.array(starts, dtype=np.int64)
    )


def _first(rows: IntArray) -> str:
    return f"data row {int(rows.min()) + 1}"


def _states(
    known: dict[str, int], given: Any, what: str, codes: IntArray
) -> tuple[tuple[str, ...], IntArray, list[str]]:
    """Return the names of the states, the place among them of each text, and notes."""
    if given is not None:
        several = hasattr(given, "__iter__") and not isinstance(given, str)
        names = [text_of(name) for name in (given if several else [given])]
        index = {canonical(name): k for k, name in enumerate(names)}
        if len(index) < len(names):
            raise InputError(f"two of the states {listed(names)} are one, as cells are read")
        if lost := [text for text in known if text not in index]:
            at = _first(np.flatnonzero(codes == known[lost[0]]))
            near = did_you_mean(lost[0], names)
            raise InputError(f"{what}, {at}: none of the states {listed(names)}{near}")
    else:
        if len(known) > MOST_STATES:
            raise InputError(f"{what} holds {len(known)} states; at most {MOST_STATES} are read")
        numbers = {text: parse(text) for text in known}
        order = {text: Fraction(*n) for text, n in numbers.items() if isinstance(n, tuple)}
        names = sorted(known, key=order.__getitem__ if len(order) == len(known) else None)
        index = {name: k for k, name in enumerate(names)}
    notes = [
        f"{text!r} is a state; if it means a missing value say so (--missing {text!r})"
        for text in sorted(known) if text.lower() in LOOKS_MISSING
    ]  # fmt: skip
    return tuple(names), np.array([index[text] for text in known], dtype=np.int64), notes


def _time(text: str) -> tuple[str, int, int] | None:
    """Return kind, numerator and denominator of a time (of dates, seconds since 1970), or None."""
    if not (found := _DATE.fullmatch(text)):
        number = parse(text)
        return ("number", *number) if isinstance(number, tuple) else None
    day, clock, places, zone = found.groups(default="")
    try:
        moment = datetime.fromisoformat(f"{day} {clock or '00:00:00'}{zone}")
    except ValueError:
        return None
    since, unit = moment - (_ZONED_EPOCH if zone else _EPOCH), 10 ** len(places)
    seconds = since.days * _DAY + since.seconds
    return "date with a zone" if zone else "date", seconds * unit + int(places or 0), unit


def _times(texts: list[str], what: str, codes: IntArray) -> npt.NDArray[Any]:
    """Return exact integers in the order of some times and with their distances, up to a unit."""
    read = [_time(text) for text in texts]
    known = [time for time in read if time]
    first = known[0][0] if known else ""
    wrong = [k for k, time in enumerate(read) if time is None or time[0] != first]
    if wrong:  # texts are numbered as they occur
        at = _first(np.flatnonzero(codes == wrong[0]))
        fault = "another kind of time than before" if read[wrong[0]] else "no number, date or time"
        raise InputError(
            f"{what} holds {fault} ({at}); times are plain numbers, ISO dates (2024-01-31), or ISO "
            "dates and times, all with a zone or all without"
        )
    unit = math.lcm(*(below for _, _, below in known))
    values = [above * (unit // below) for _, above, below in known]
    # Months are steps where all are at one hour of one day of the month, or of its last one.
    if first != "number" and len({value % (_DAY * unit) for value in values}) == 1:
        days = np.array([value // (_DAY * unit) for value in values], dtype="datetime64[D]")
        months = days.astype("datetime64[M]")
        begins, ends = (m.astype("datetime64[D]") for m in (months, months + 1))
        if min(len(np.unique(days - begins)), len(np.unique(ends - days))) == 1:
            values = months.astype(np.int64).tolist()
    least = min(values)
    fits = max(values) - least < INT64_SAFE
    return np.array([v - least for v in values], dtype=np.int64 if fits else object)


def _check(
    times: npt.NDArray[Any], found: Sequences, order: IntArray, rules: SequenceRules, what: str
) -> list[str]:
    """Refuse times that occur twice in a sequence or are irregular; in their order, note it."""

    def where(among: npt.NDArray[np.bool_]) -> str:
        these = np.searchsorted(found.starts, found.later[among], side="right")
        return counted(len(np.unique(these)), "sequence")

    steps = times[found.later] - times[found.later - 1]
    rows, twice = order[found.later], steps == 0
    if twice.any():
        raise InputError(
            f"{what} holds one time twice in {where(twice)} (first: {_first(rows[twice])}); a "
            "record needs a time of its own in its sequence"
        )
    sizes, how_often = np.unique(steps, return_counts=True)
    if len(sizes) < 2:
        return []
    gaps = steps != sizes[how_often.argmax()]
    if rules.gaps == "refuse":
        raise InputError(
            f"{what} has irregular times: steps in {where(gaps)} of {found.count} differ from the "
            f"most common one (first: {_first(rows[gaps])}); gaps='order' (--gaps order) takes "
            "records in their order, whatever the times"
        )
    number = counted(int(np.count_nonzero(gaps)), "gap")
    return [f"{number} in the times of {where(gaps)} passed over: records are in their order"]
