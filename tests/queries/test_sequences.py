# SPDX-License-Identifier: Apache-2.0
"""Sequences of records from tables: order, gaps, states, and what is refused."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pufferfish.errors import InputError
from pufferfish.queries.sequences import SequenceRules, read_sequences
from table_cases import write

HERE = "private-id"  # of a sequence; no message may show it
ROWS = [("a", 2, HERE), ("b", 1, HERE), ("b", 3, HERE), ("a", 7, "y"), ("a", 6, "y")]
RULES = SequenceRules("s", "t", "who")
BY_ROW = SequenceRules("s", gaps="order")


def frame(rows: Any = ROWS) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["s", "t", "who"])


def order(times: Any, **rules: Any) -> list[int]:
    """The rows of these times in the order of their records."""
    table = pd.DataFrame({"s": range(len(times)), "t": times})
    return read_sequences(table, SequenceRules("s", "t", **rules)).codes.tolist()


def refused(table: Any, rules: SequenceRules = RULES, states: Any = None) -> str:
    with pytest.raises(InputError) as caught:
        read_sequences(table, rules, states)
    text = str(caught.value)
    assert "\n" not in text
    assert HERE not in text
    assert "2024-0" not in text.replace("2024-01-31", "")
    return text


def test_records_are_ordered_within_sequences(tmp_path: Path) -> None:
    csv = 'who,"s",t\nx, a ,2\nx,b,1.0\n"x","b",3\n"y, ""z""",a,7\n"y, ""z""",a,6\n'
    for table in (frame(), pl.from_pandas(frame()), write(tmp_path, csv)):
        found = read_sequences(table, RULES)
        assert found.states == ("a", "b")
        assert found.codes.tolist() == [1, 0, 1, 0, 0]
        assert found.starts.tolist() == [0, 3]
        assert (found.records, found.count, found.lengths) == (5, 2, (2, 3))
        assert found.transitions().tolist() == [[1, 1], [1, 0]]
        assert found.firsts().tolist() == [1, 1]
        assert found.notes == ()


def test_without_time_the_order_of_rows_counts() -> None:
    found = read_sequences(
        frame(ROWS[::2] + ROWS[1::2]), SequenceRules("s", sequence="who", gaps="order")
    )
    assert found.codes.tolist() == [0, 1, 1, 0, 0]
    single = read_sequences(frame(ROWS[:1]), BY_ROW)
    assert (single.lengths, single.transitions().tolist()) == ((1,), [[0]])


@pytest.mark.parametrize(
    "cells, states",
    [
        ([10, 9.0, 9, "10.00"], ("9", "10")),
        (pd.array([10, 9, 10], dtype="Int64"), ("9", "10")),
        ([1.5, 1.50, -2], ("-2", "1.5")),
        ([True, False], ("false", "true")),
        (["10", "9", "x"], ("10", "9", "x")),
        (pd.Categorical(["b", "a"]), ("a", "b")),
    ],
)
def test_states_are_canonical_texts_in_their_order(cells: Any, states: Any) -> None:
    for own in (pd.DataFrame({"s": cells}), pd.DataFrame({"s": cells})[::-1]):
        found = read_sequences(own, BY_ROW)
        assert found.states == states
        assert np.bincount(found.codes).min() > 0


def test_declared_states_keep_their_names_and_order() -> None:
    found = read_sequences(pd.DataFrame({"s": [1.0, 2.5]}), BY_ROW, ["3", "2.50", 1])
    assert found.states == ("3", "2.50", "1")
    assert found.codes.tolist() == [2, 1]
    text = refused(frame([("walk", 1, 1), ("wlak", 2, 1)]), states=["walk", "run"])
    assert "data row 2" in text
    assert "did you mean 'walk'?" in text
    assert "are one" in refused(frame(), states=["1", 1.0])
    assert "at most 100" in refused(pd.DataFrame({"s": range(1001)}), BY_ROW)


def test_missing_cells_are_refused_with_their_row() -> None:
    rules = SequenceRules("s", "t", "who", missing=("?",))
    for lost in (None, float("nan"), pd.NA, "", "?"):
        for at, name in enumerate(("s", "t", "who")):
            rows = [list(row) for row in ROWS]
            rows[3][at] = lost
            text = refused(frame(rows).astype(object), rules)
            assert text.startswith(f"column {name!r} of the pandas dataframe is missing in 1 row")
            assert "data row 4" in text
    assert "data row 2" in refused(pl.DataFrame({"s": [1.0, float("nan")]}), BY_ROW)
    assert "'NA' is a state" in read_sequences(frame([("NA", 1, 1)]), RULES).notes[0]


STAMPS = [np.datetime64("2024-02-28T00:00:00.000001") + k for k in (2, 0, 3, 1, 4)]
DAYS = [dt.date(2024, 2, 27 + k) if k < 3 else dt.date(2024, 3, k - 2) for k in (2, 0, 3, 1, 4)]
MONTHS = [dt.date(2024, month, 15) for month in (3, 1, 4, 2, 5)]


@pytest.mark.parametrize(
    "times",
    [
        [3, 1, 4, 2, 5], ["0.3", "0.1", "4e-1", ".2", "0.50"], DAYS, STAMPS,
        [10**30 + k for k in (2, 0, 3, 1, 4)], [f"{day} 12:30" for day in DAYS],
        ["2024-02-29", "2024-02-27", "2024-03-01T00:00", "2024-02-28", "2024-03-02 00:00:00.0"],
        ["2024-02-29", *(f"2024-02-{x}:00" for x in ("28 22", "29T01", "28T23", "29 02"))],
        ["2024-02-29T00:00Z", *(f"2024-02-28T{x}" for x in
            ("22:00Z", "23:00-02:00", "21:00-0200", "23:30-02:30"))],
    ],
)  # fmt: skip
def test_regular_times_of_all_kinds(times: list[Any]) -> None:
    assert order(times) == order(list(map(str, times))) == [1, 3, 0, 2, 4]


def test_irregular_times_are_refused_or_passed_over() -> None:
    rows = [("a", f"2024-01-0{d}", w) for w, d in ((1, 1), (1, 2), (1, 3), (2, 4), (2, 6), (3, 9))]
    text = refused(frame(rows))
    assert "irregular" in text
    assert "in 1 row (first: data row 5)" in text
    ordered = read_sequences(frame(rows), SequenceRules("s", "t", "who", gaps="order"))
    assert ordered.lengths == (1, 2, 3)
    with pytest.raises(InputError, match="such as months"):
        order(MONTHS)
    assert order(MONTHS, gaps="order") == [1, 3, 0, 2, 4]
    assert "first: data row 2" in refused(frame([("a", 1, 1), ("b", 1.0, 1)]))
    assert refused(frame([("a", 1, 1)] * 2), SequenceRules("s", "t", "who", gaps="order"))


@pytest.mark.parametrize("last", ["soon", "2024-02-30", "2024-01-02T00:00Z", "5", "inf", "08:30"])
def test_what_is_no_time_or_another_kind_is_refused(last: str) -> None:
    rows = [("a", "2024-01-01", 1), ("a", "2024-01-02", 1), ("b", last, 1)]
    assert "first: data row 3)" in refused(frame(rows))


def test_names_and_empty_tables(tmp_path: Path) -> None:
    assert "did you mean 'who'?" in refused(frame(), SequenceRules("s", "t", "whom"))
    assert "must differ" in refused(frame(), SequenceRules("s", "s"))
    assert "name the column" in refused(frame(), SequenceRules("s"))
    assert "gaps must be" in refused(frame(), SequenceRules("s", gaps="no"))
    for empty in (frame([]), write(tmp_path, "s,t,who\n")):
        assert "no rows" in refused(empty)
    assert "18 digits" in refused(frame([("a", 1, 1), ("a", 10**19, 1)]))
