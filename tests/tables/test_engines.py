# SPDX-License-Identifier: Apache-2.0
"""Lazy frames: every engine counts by itself, and finds what is in a file of the same table."""

import datetime as dt
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import ibis
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pufferfish.errors import InputError
from pufferfish.priors.prior import Prior
from pufferfish.release.pipeline import release_any, release_file
from pufferfish.tables import frames
from pufferfish.tables.source import open_table
from pufferfish.tables.table import is_text, texts_of
from release_cases import cells, job
from table_cases import count, refused

# Ibis calls functions of DuckDB under their older names.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow:DeprecationWarning")

NOON = dt.datetime(2020, 1, 1, 12, 0, 0, 250000)
COLUMNS: dict[str, Any] = {
    "s": pa.array(["a", "A", " a", "ü", "", None, "a", "A"]),
    "text": pa.array(["1", "é", "e\u0301", "1.0", "true", "O'x \"y\"", None, "1"]),
    "float": pa.array([-0.0, 0.0, 0.1, 1e-7, None, 1e300, 0.1, 3.0]),
    "single": pa.array([0.1, 0.2, None, 1.5, 0.1, 0.2, 3.0, -0.0], pa.float32()),
    "integer": pa.array([2**63 - 1, 2**63 - 2, None, 2**53, 2**53 + 1, 0, -1, 0]),
    "decimal": pa.array([Decimal("1.50"), None, *map(Decimal, ("0.05", "-3", "0", "1", "2", "3"))],
                        pa.decimal128(30, 2)),
    "day": pa.array([dt.date(2020, 1, 1), None, dt.date(1900, 2, 28)] + [dt.date(1, 1, 1)] * 5),
    "instant": pa.array([NOON, None, *[NOON.replace(hour=1)] * 6], pa.timestamp("us")),
    "zoned": pa.array([NOON, None, *[NOON.replace(hour=1)] * 6], pa.timestamp("us", "UTC")),
    "yes": pa.array([True, False, None, True, True, False, None, True]),
    "x0": pa.array([1, 1, 2, 2, 1, 1, 2, 2]),
    "n": pa.array([0, 0, 0, 0, 0, 0, 1, 1]),
    "q\"u.o`t e's": pa.array(["u", "v", None, "u", "u", "v", "w", "w"]),
}  # fmt: skip
TABLE = pa.table(COLUMNS)


def to_dask(table: pa.Table, partitions: int = 3) -> Any:
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return dd.from_pandas(frame, npartitions=partitions)


def to_ibis(table: pa.Table) -> Any:
    connection = ibis.duckdb.connect()
    connection.con.from_arrow(table).create("t")
    return connection.table("t")


MAKERS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table: table,
    "stream": lambda table: table.to_reader(2),
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "ibis": to_ibis,
    "dask": to_dask,
}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session of two threads, in another time zone than that of the tables."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas 3
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.session.timeZone", "Asia/Tokyo")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


def found(table: Any, names: list[str]) -> tuple[list[bool], Counter[Any]]:
    """Which columns are text, and the rows of each combination of canonical cells."""
    *columns, counts = open_table(table).groups(names).columns
    assert counts.type == pa.int64()
    rows: Counter[Any] = Counter()
    for *key, n in zip(*map(texts_of, columns), counts.to_pylist(), strict=True):
        rows[tuple(key)] += n
    return [is_text(column.type) for column in columns], rows


def check_counts(make: Callable[[pa.Table], Any], folder: Path) -> None:
    pq.write_table(TABLE, folder / "t.parquet")
    pairs = [[name, "s"] for name in TABLE.column_names] + [["x0", "n", "x0"]]
    for names in pairs:
        assert found(make(TABLE), names) == found(folder / "t.parquet", names), names
    empty = make(TABLE.slice(0, 0))
    assert "no rows" in refused(empty, public="float")


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_counts_are_those_of_a_file(make: Callable[[pa.Table], Any], tmp_path: Path) -> None:
    check_counts(make, tmp_path)
