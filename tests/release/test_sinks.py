# SPDX-License-Identifier: Apache-2.0
"""Text files: quoting that reads back, and cells that no spreadsheet takes for a formula."""

import csv
import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.release.sinks import as_text, guarded, lines, unguarded

FORMULAS = [
    "=1+1", "=HYPERLINK(A1)", "+cmd", "-cmd", "@SUM(A1)", "\tx", "\rx", "\nx", "-", "+", "=", "@",
    "-3-2", "+44 20 7946", "-1;2", "-3.2\n", "--3", "\uff1d1+1", "'=1", "''-x",
]  # fmt: skip
NUMBERS = [
    "-3.2", "+5", "1e-3", "-1e-3", "+1E+5", "-.5", "-3.", "-1,200", "-1,200.50", "-3,2", "-5%",
    "-inf", "0", "12", "-3.2 ",
]  # fmt: skip
HARMLESS = ["", "abc", "a=b", "'quoted", "'", " =not first", "a-b", "é"]


def texts(values: list[str | None]) -> pa.LargeStringArray:
    return pa.array(values, pa.large_string())


def safe(guard: Callable[[Any], Any]) -> bool:
    """Whether formulas are guarded, and nothing else is."""
    return (
        guard(texts(FORMULAS)).to_pylist() == ["'" + f for f in FORMULAS]
        and guard(texts(NUMBERS + HARMLESS)).to_pylist() == NUMBERS + HARMLESS
    )


def test_formulas_are_guarded_and_numbers_are_not() -> None:
    assert safe(guarded)
    mixed = texts(["=1", None, "-3.2", "x"])
    assert guarded(mixed).to_pylist() == ["'=1", None, "-3.2", "x"]


def test_mutants_of_the_guard_are_caught() -> None:
    assert not safe(lambda cells: cells)
    assert not safe(
        lambda cells: texts([f"'{c}" if c[:1] in "=+-@\t\r\n" else c for c in cells.to_pylist()])
    )


@given(st.one_of(st.text("'=+-@1a", max_size=5), st.sampled_from(FORMULAS + NUMBERS + HARMLESS)))
def test_the_reader_undoes_the_guard(text: str) -> None:
    assert unguarded(guarded(texts([text]))[0].as_py()) == text


CELLS = st.one_of(
    st.none(),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
    st.text(alphabet='a,"\n\r\t;=-1 ', max_size=6),
)


def test_every_delimiter_is_quoted_so_that_a_header_has_one_only() -> None:
    assert bytes(lines([texts(["a;b", "c"])], ",")) == b'"a;b"\nc\n'


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=20), st.sampled_from(",\t"))
def test_what_is_written_reads_back(rows: list[tuple[Any, Any]], separator: str) -> None:
    columns = [texts([row[k] for row in rows]) for k in range(2)]
    data = bytes(lines(columns, separator)).decode()
    read = list(csv.reader(io.StringIO(data, newline=""), delimiter=separator, strict=True))
    assert read == [[cell or "" for cell in row] for row in rows]


def test_lines_of_slices_and_of_nothing() -> None:
    column = texts(["a", "b", "c"])
    assert bytes(lines([column.slice(1, 1)], ",")) == b"b\n"
    assert bytes(lines([column.slice(0, 0)], ",")) == b""
    assert bytes(lines([texts([None]), texts([None])], ",")) == b",\n"


@pytest.mark.parametrize(
    "column, expected",
    [
        (pa.array([1, None]), ["1", None]),
        (pa.array([-0.5, 1e300]), ["-0.5", "1e+300"]),
        (pa.array([Decimal("-1.50")]), ["-1.50"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array(["=1", "a"]), ["'=1", "a"]),
        (pa.array(["=1", "a"]).dictionary_encode(), ["'=1", "a"]),
        (pa.array([0, None], pa.date32()), ["1970-01-01", None]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_columns_as_text(column: pa.Array, expected: list[Any]) -> None:
    assert as_text(column).to_pylist() == expected
