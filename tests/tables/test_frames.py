# SPDX-License-Identifier: Apache-2.0
"""Dataframes to counts: the same table gives the same counts, whatever library holds it."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pufferfish.errors import InputError
from pufferfish.support import Levels
from pufferfish.tables.frames import raw_cells
from pufferfish.tables.source import open_table
from pufferfish.tables.table import raw_texts
from table_cases import as_dict, aside, count, refused, support, values

MAKERS: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "polars": lambda data: pl.DataFrame(data, strict=False),
    "polars lazy": lambda data: pl.LazyFrame(data, strict=False),
    "pyarrow": pa.table,
}
Maker = Callable[[Any], Any]


@pytest.fixture(params=list(MAKERS))
def frame(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


def test_floats_are_the_decimals_they_print(frame: Maker) -> None:
    found = count(frame({"s": ["a", "a", "b"], "x": [0.1, 0.3, 1e-7]}))
    assert values(found) == [Fraction("1e-7"), Fraction("0.1"), Fraction("0.3")]


def test_mutant_that_takes_the_binary_value_of_a_float_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def binary(cells: pa.Array) -> list[str]:
        return [str(Decimal(c) if isinstance(c, float) else c) for c in cells.to_pylist()]

    monkeypatch.setattr("pufferfish.tables.encode.raw_texts", binary)
    with pytest.raises((AssertionError, InputError, ValueError)):
        test_floats_are_the_decimals_they_print(pa.table)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(np.array([0.1, 0.3], dtype=np.float16)),
        pa.array([0.1, 0.3], pa.float32()),
        pa.array([Decimal("0.1"), Decimal("0.3")]),
        pa.array([Decimal("0.100"), Decimal("0.300")], pa.decimal256(60, 3)),
        pa.array(["0.1", "0.30"]).dictionary_encode(),
        pa.array(["0.1", "0.30"], pa.string_view()),
    ],
)
def test_narrow_floats_decimals_and_dictionaries(cells: pa.Array) -> None:
    assert values(count(pa.table({"s": ["a", "b"], "x": cells}))) == [
        Fraction("0.1"),
        Fraction("0.3"),
    ]


@pytest.mark.parametrize(
    "numbers",
    [
        np.array([2**64 - 2, 2**64 - 1], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 1], dtype=np.int64),
        pd.array([2**53, 2**53 + 1], dtype="Int64"),
        pd.Series([2**53, 2**53 + 1], dtype=object),
        pd.Series([2**70, 2**70 + 1], dtype=object),
        pd.Series([2**53, 2**53 + 1], dtype="int64[pyarrow]"),
        pd.Series([Decimal(2**53), Decimal(2**53 + 1)], dtype=object),
        pd.Series([str(2**53), str(2**53 + 1)]),
    ],
)
def test_integers_of_any_size_in_pandas(numbers: Any) -> None:
    found = count(pd.DataFrame({"s": ["a", "b"], "x": numbers}))
    assert values(found) == [int(n) for n in numbers]
    assert found.counts.tolist() == [[1, 0], [0, 1]]


def test_integers_of_128_bits_in_polars() -> None:
    column = pl.Series("x", [2**100, 2**100 + 1], dtype=pl.Int128)
    found = count(pl.DataFrame([pl.Series("s", ["a", "b"]), column]))
    assert values(found) == [2**100, 2**100 + 1]


def test_nan_is_missing_in_pandas_only() -> None:
    data = {"s": ["a", "a", "b"], "x": [1.0, float("nan"), 2.0]}
    for dtype in ("float64", "float32", "Float64", "float64[pyarrow]", object):
        found = count(pd.DataFrame(data).astype({"x": dtype}))
        assert as_dict(found) == {"a": {"1": 1}, "b": {"2": 1}}
        assert aside(found) == [("no public value", "x", 1)]
    for table in (pl.DataFrame(data), pl.LazyFrame(data), pa.table(data)):
        assert "not finite in data row 2" in refused(table)
        assert as_dict(count(table, missing=["nan"])) == {"a": {"1": 1}, "b": {"2": 1}}


def test_categories_and_times() -> None:
    categories = pd.DataFrame(
        {"s": pd.Categorical(["a", "b", None]), "x": pd.Categorical([3, 1, 1])}
    )
    found = count(categories)
    assert as_dict(found) == {"a": {"3": 1}, "b": {"1": 1}}
    assert aside(found) == [("no secret", "s", 1)]
    days = [dt.date(2020, 1, 2), dt.date(2020, 1, 1)]
    for make in MAKERS.values():
        dates = count(make({"s": ["a", "b"], "x": days}))
        assert support(dates).names == ("2020-01-01", "2020-01-02")
    enum = pl.DataFrame({"s": ["a", "b"], "x": ["u", "v"]}, schema_overrides={"x": pl.Categorical})
    assert support(count(enum)).names == ("u", "v")


def test_an_ordered_categorical_has_the_order_that_is_stated() -> None:
    cells = pd.Categorical(["mid", "low", "high"], ["low", "mid", "high", "top"], ordered=True)
    table = pd.DataFrame({"s": list("aab"), "x": cells})
    assert support(count(table)) == Levels(("high", "low", "mid"))
    stated = count(table, order=["low", "mid", "high", "top"])
    assert support(stated) == Levels(("low", "mid", "high", "top"), ordered=True)
    cut = pd.DataFrame({"s": list("aab"), "x": pd.cut([1, 2, 3], [0, 1, 2, 3])})
    assert support(count(cut)) == Levels(("(0, 1]", "(1, 2]", "(2, 3]"))


def test_mixed_python_objects() -> None:
    mixed = pd.DataFrame({"s": ["a", "b", "b"], "x": pd.Series([1, "1.0", True], dtype=object)})
    assert "mixes" in refused(mixed)
    fine = pd.DataFrame({"s": ["a", "b", "b"], "x": pd.Series([1, "2", None], dtype=object)})
    assert as_dict(count(fine)) == {"a": {"1": 1}, "b": {"2": 1}}
    words = pd.DataFrame({"s": ["a", "b"], "x": pd.Series(["NaT", "<NA>"], dtype=object)})
    assert support(count(words)) == Levels(("<NA>", "NaT"))
    lists = pd.DataFrame({"s": ["a", "b"], "x": pd.Series([[1], [2]], dtype=object)})
    assert "list" in refused(lists)


def test_names_of_columns() -> None:
    twice = pd.DataFrame([[1, 2, 3]], columns=["s", "x", " x"])
    assert "'x' twice" in refused(twice)
    arrow = pa.Table.from_arrays([pa.array([1])] * 3, names=["s", "x", "x"])
    assert "'x' twice" in refused(arrow)
    record = pa.RecordBatch.from_pydict({"s": ["a", "b"], "x": [1, 2]})
    assert as_dict(count(record)) == {"a": {"1": 1}, "b": {"2": 1}}
    numbers = pd.DataFrame([["a", 1], ["b", 2]])
    assert as_dict(count(numbers, secret="0", public="1")) == {"a": {"1": 1}, "b": {"2": 1}}
    clash = pl.LazyFrame({"count": ["a", "b"], "x": [1, 2]})
    assert as_dict(count(clash, secret="count")) == {"a": {"1": 1}, "b": {"2": 1}}
    methods = pd.DataFrame({"s": ["a", "b"], "x": [1, 2], "groups": 1, "batches": 1})
    assert count(methods).report.rows_used == 2


@pytest.mark.parametrize("thing", [3, {"s": [1]}, [1, 2], pd.Series([1]), np.zeros((2, 2)), None])
def test_what_is_no_table(thing: Any) -> None:
    assert f"an object of type {type(thing).__name__} was given" in refused(thing)


def test_empty_frames() -> None:
    table = pa.table({"s": pa.array([], pa.string()), "x": pa.array([], pa.int64())})
    for thing in (table, pl.from_arrow(table), table.to_pandas()):
        assert "no rows" in refused(thing)


def test_batches_and_chunks() -> None:
    parts = [pa.table({"s": ["a"] * 3, "x": [k, k + 1, k]}) for k in range(5)]
    table = open_table(pa.concat_tables(parts))
    batches = list(table.batches(["x"], 2))
    assert [x for batch in batches for x in batch.column(0).to_pylist()] == [
        x for k in range(5) for x in (k, k + 1, k)
    ]
    assert as_dict(count(pa.concat_tables(parts)))["a"]["2"] == 3
    dictionaries = pa.concat_tables(
        [
            pa.table({"s": ["a", "b"], "x": pa.array(cells).dictionary_encode()})
            for cells in (["u", "v"], ["v", "u"])
        ]
    )
    assert as_dict(count(dictionaries)) == {"a": {"u": 1, "v": 1}, "b": {"u": 1, "v": 1}}


def test_raw_cells_of_arrays() -> None:
    assert raw_cells(np.array([1, 2], dtype=">i4")).to_pylist() == [1, 2]
    assert raw_cells([2**70, "x", None]).to_pylist() == [str(2**70), "x", None]
    assert raw_cells(np.array([2**70, None], dtype=object)).to_pylist() == [str(2**70), None]
    assert raw_cells(pd.Series([1.5, None])).to_pylist() == [1.5, None]
    assert raw_cells(pl.Series([1, None])).to_pylist() == [1, None]
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])
    assert raw_cells(masked).to_pylist() == ["1", None, "3"]
    assert raw_cells(range(2)).to_pylist() == ["0", "1"]
    assert raw_cells(iter([1.5, "x"])).to_pylist() == ["1.5", "x"]
    assert str(raw_cells(np.array([np.nan])).to_pylist()) == "[nan]"
    spans = np.array([1, 2], dtype="timedelta64[D]")
    for wrong in (np.zeros((2, 2)), 3, {"a": 1}, np.array([b"1"]), pa.array([[1]]), list(spans),
                  ["\udcff"], spans.astype("timedelta64[s]"), np.array(["\udcff"]),
                  np.array([], "datetime64"), spans.astype("datetime64[h]")):  # fmt: skip
        with pytest.raises(InputError):
            raw_cells(wrong)
    with pytest.raises(InputError, match="cannot be read as text"):
        raw_texts(pa.array([0], pa.timestamp("s", tz="No/Where")))
