# SPDX-License-Identifier: Apache-2.0
"""Rows of one person: strata in the order of rows, refused where it is not sure whose they are."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.tables import count as count_module
from pufferfish.tables.count import RowCounts
from table_cases import count, refused, write

COLUMNS = ["id", "s", "x"]


def strata(found: RowCounts) -> list[tuple[int, list[list[int]], list[list[int]]]]:
    return [(s.rows, s.sequences.tolist(), s.counts.tolist()) for s in found.strata]


def test_rows_are_counted_in_the_order_of_the_table() -> None:
    table = pd.DataFrame(
        [("u", "a", 1), ("v", "b", 0), ("u", "a", 0), ("w", "a", 1), ("v", "b", 0), ("t", "b", 1)],
        columns=COLUMNS,
    )
    found = count(table, unit="id")
    assert strata(found) == [(1, [[1]], [[1], [1]]), (2, [[0, 0], [1, 0]], [[0, 1], [1, 0]])]
    assert found.report.people == ((1, 2), (2, 2))
    assert count(table).strata == ()


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["u", "v", "w", "z", " u "]),
        st.sampled_from(["", "1", "2"]),
        st.sampled_from(["p", "q", ""]),
    ),
    min_size=1,
    max_size=20,
)
SECRET = {"u": "a", "v": "b", "w": "a", "z": "b"}


def check_by_hand(rows: list[tuple[str, str, str]]) -> None:
    table = pl.DataFrame(
        [(who, SECRET[who.strip()], x, y) for who, x, y in rows],
        schema=["id", "s", "x", "y"],
        orient="row",
    )
    try:
        found = count(table, public=["x", "y"], unit="id")
    except InputError:
        return  # a column or a secret without a value
    own: dict[str, list[str]] = defaultdict(list)
    for who, x, y in rows:
        if x and y:
            own[who.strip()].append(f"x = {x}, y = {y}")
    expected = Counter((SECRET[who], tuple(cells)) for who, cells in own.items())
    counted: Counter[Any] = Counter()
    for stratum in found.strata:
        for sequence, column in zip(stratum.sequences, stratum.counts.T, strict=True):
            names = tuple(found.product.name(k) for k in sequence.tolist())
            assert len(names) == stratum.rows
            for secret, number in zip(found.secrets, column.tolist(), strict=True):
                counted[secret, names] += number
    assert +counted == expected


@given(ROWS)
def test_sequences_are_those_counted_by_hand(rows: list[tuple[str, str, str]]) -> None:
    check_by_hand(rows)


def test_mutant_that_forgets_the_order_of_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = count_module._strata

    def sorts(person: Any, secret: Any, atoms: Any, *given: Any) -> Any:
        order = np.argsort(atoms, kind="stable")
        return honest(person[order], secret[order], atoms[order], *given)

    rows = [("u", "2", "p"), ("v", "1", "q"), ("u", "1", "q"), ("v", "2", "p")]
    check_by_hand(rows)
    monkeypatch.setattr(count_module, "_strata", sorts)
    with pytest.raises(AssertionError):
        check_by_hand(rows)


def test_rows_without_a_value_and_others_secrets_are_left_out() -> None:
    table = pd.DataFrame(
        [
            ("u", "a", "1"), ("u", "a", ""), ("u", "", ""), ("v", "b", "0"), ("v", "b", "1"),
            ("w", "a", "0"), ("w", "a", "1"), ("x", "", "1"), ("x", "", "0"), ("x", "", "0"),
            ("y", "c", "1"), ("y", "c", "1"), ("y", "c", "1"), ("", "a", ""), ("z", "b", "1"),
        ],
        columns=COLUMNS,
    )  # fmt: skip
    found = count(table, exclude_secrets=["c"], unit="id")
    assert [(s.rows, s.counts.sum(axis=1).tolist()) for s in found.strata] == [
        (1, [1, 1]),
        (2, [1, 1]),
    ]
    words = table.assign(x=table["x"].replace({"0": "no", "1": "yes"})).drop(index=[2, 13])
    level = count(words, exclude_secrets=["c"], missing_as_level=True, unit="id")
    assert level.strata[1].counts.sum(axis=1).tolist() == [2, 1]


@pytest.mark.parametrize(
    "rows, parts",
    [
        ([("u", "a", 1), ("u", "b", 0)], ["1 of the people", "several secrets", "rows 6, 7"]),
        ([("u", "a", 1), ("u", "b", None)], ["several secrets", "rows 6, 7"]),
        ([("u", "a", 1), ("u", None, 0)], ["none in some rows", "rows 6, 7"]),
        ([(None, "a", 1)], ["column 'id' is missing in 1 row of", "(first: row 6)"]),
        ([("", "a", 1), (" ", None, 0)], ["column 'id' is missing in 2 rows of", "(first: row 6)"]),
        ([("?", "a", 1)], ["column 'id' is missing in 1 row of"]),
    ],
)
def test_what_says_nothing_of_people_is_refused(rows: list[Any], parts: list[str]) -> None:
    base = [("p", "a", 0), ("q", "b", 1), ("q", "b", 1), ("r", "a", 1), ("r", "a", 1)]
    table = pd.DataFrame([*base, *rows], columns=COLUMNS)
    message = refused(table, missing=["?"], unit="id")
    for part in parts:
        assert part in message


def test_a_person_is_the_same_however_the_number_is_written(tmp_path: Path) -> None:
    text = "who,s,x\n7,a,0\n7.0,a,1\n8,b,1\n 8.00,b,0\n"
    assert [s.rows for s in count(write(tmp_path, text), unit="who").strata] == [2]
    codes = "who,s,x\n007,a,0\n007,a,1\n7,b,1\n7,b,0\n"
    assert count(write(tmp_path, codes), unit="who").report.people == ((2, 2),)


def test_numbers_that_are_none_mark_nobody() -> None:
    table = pl.DataFrame({"id": [1.0, float("nan"), 2.0], "s": ["a", "a", "b"], "x": [1, 2, 1]})
    assert "'id' is missing in 1 row" in refused(table, unit="id")


def test_rows_that_lie_far_apart_are_one_persons(tmp_path: Path) -> None:
    many = 140_000  # more than a batch
    ids = np.arange(many)
    table = pd.DataFrame({"id": ids, "s": np.where(ids % 2, "a", "b"), "x": ids % 3})
    pd.concat([table, table.iloc[:100]]).to_csv(tmp_path / "t.csv", index=False)
    found = count(tmp_path / "t.csv", unit="id")
    assert found.report.people == ((1, 139_900), (2, 100))


def test_too_many_sequences_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"p{k}", "ab"[k % 2], (k * step) % 11) for k in range(20) for step in (1, 2)]
    monkeypatch.setattr(count_module, "MOST_COUNTS", 20)
    assert "too many to count" in refused(pd.DataFrame(rows, columns=COLUMNS), unit="id")


def test_a_table_that_changed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame([("u", "a", 1), ("v", "b", 2)], columns=COLUMNS)
    honest = count_module._people

    def later(table: Any, rules: Any, codings: Any, totals: dict[str, int]) -> Any:
        return honest(table, rules, codings, totals | {"b": 2})

    monkeypatch.setattr(count_module, "_people", later)
    assert "changed while it was read" in refused(table, unit="id")
