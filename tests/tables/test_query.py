# SPDX-License-Identifier: Apache-2.0
"""Queries: their answers are counted and released like files, and nothing is written by them."""

import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import adbc_driver_sqlite.dbapi as adbc
import duckdb
import pyarrow as pa
import pytest

import pufferfish as pf
from pufferfish.errors import InputError, OutsidePromiseWarning
from pufferfish.tables import query
from pufferfish.tables.source import open_table
from table_cases import as_dict, count, write

ROWS = [("a", 1), ("a", 2), ("b", 2), ("A", 2), (None, 7), ("b", None)]
COUNTS = {"A": {"2": 1}, "a": {"1": 1, "2": 1}, "b": {"2": 1}}


def database(tmp_path: Path, kind: str) -> Path:
    """Return a database with the table t, whose texts ignore the case of letters."""
    path = tmp_path / f"rows.{kind}"
    connection: Any = duckdb.connect(str(path)) if kind == "duckdb" else sqlite3.connect(path)
    connection.execute("CREATE TABLE t (s VARCHAR COLLATE NOCASE, x INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", ROWS)
    connection.commit()
    connection.close()
    return path


@pytest.fixture(params=["duckdb", "sqlite"])
def db(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return database(tmp_path, request.param)


def test_an_answer_is_a_table(db: Path, tmp_path: Path) -> None:
    table = open_table(db, sql="SELECT * FROM t; ")
    assert table.columns == ("s", "x")
    assert as_dict(count(table)) == COUNTS
    plan = pf.calibrate(pf.Prior.from_counts({"a": [1, 9], "b": [8, 2]}, support=[1, 2]), 1)
    plan = plan.with_columns(secret="s", public="x")
    table = open_table(db, sql="SELECT s, x FROM t WHERE x < 7")
    with pytest.warns(OutsidePromiseWarning):
        report = plan.release(table, output=tmp_path / "out.csv")
    assert (report.rows_read, report.rows_released) == (4, 4)
    db = db.rename(db.with_suffix(".csv"))
    with pytest.raises(InputError, match="it is the input itself"):
        plan.release(open_table(db, sql="SELECT * FROM t"), output=db, force=True)


@pytest.mark.skipif(
    int(duckdb.__version__.partition(".")[0]) < 2, reason="older versions forget what was declared"
)
def test_mutant_that_ignores_case_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = query.ScanTable
    monkeypatch.setattr(
        query, "ScanTable",
        lambda *given: made(*given[:3], [field.partition(" ")[0] for field in given[3]]),
    )  # fmt: skip
    with pytest.raises((AssertionError, InputError)):
        test_an_answer_is_a_table(database(tmp_path, "duckdb"), tmp_path)


def test_files_that_a_query_names(tmp_path: Path) -> None:
    path = write(tmp_path, "s,x,z\na,1,0\nb,2,1\nb,3,1\n")
    sql = f"SELECT s, x + 1 AS x FROM '{path}' WHERE x < 3 -- the first two"
    assert as_dict(count(open_table(sql=sql))) == {"a": {"2": 1}, "b": {"3": 1}}
    sums = open_table(sql=f"SELECT s, sum(x) AS x FROM '{path}' GROUP BY s")
    assert as_dict(count(sums)) == {"a": {"1": 1}, "b": {"5": 1}}


def test_names_that_differ_in_capitals_are_several(tmp_path: Path) -> None:
    """A query of DuckDB finds the first of them by either name: here it was the secret."""
    path = write(tmp_path, "s,x,k\na,1,p\nb,2,q\nb,3,p\n")
    table = open_table(sql=f"SELECT s, x, k AS S FROM '{path}'")
    assert as_dict(count(table, "s", "S")) == {"a": {"p": 1}, "b": {"p": 1, "q": 1}}
    [cells] = table.batches(["S", "x", "s"])
    assert cells.to_pydict() == {"S": list("pqp"), "x": [1, 2, 3], "s": list("abb")}


def test_a_query_is_asked_as_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, "s,x\na,{file}\nb,2\n")
    table = open_table(sql=f"SELECT * FROM '{path}' WHERE x <> '{{file}}'")
    assert as_dict(count(table)) == {"b": {"2": 1}}


def test_no_output_replaces_what_a_query_may_read(tmp_path: Path) -> None:
    path = write(tmp_path, "s,x\na,1\nb,2\n")
    made = pf.calibrate(pf.Prior.from_counts({"a": [1, 9], "b": [8, 2]}, support=[1, 2]), 1)
    plan_of = made.with_columns(secret="s", public="x")
    table = open_table(sql=f"SELECT * FROM '{path}'")
    with pytest.raises(InputError, match="a query may read it"):
        plan_of.release(table, output=path, force=True)
    assert plan_of.release(table, output=tmp_path / "new.csv").rows_released == 2


def test_cursors_of_duckdb_lose_no_time() -> None:
    """Its own cursor rounds times to microseconds."""
    sql = "SELECT 's' s, unnest(['2020-01-01', '2020-01-01 00:00:00.000000001'])::TIMESTAMP_NS x"
    connection = duckdb.connect()  # which older versions close with its last name
    found = count(open_table(connection, sql=sql))
    assert len(as_dict(found)["s"]) == 2


class Wrapped:
    """A DB-API connection of a database nobody knows: a cursor, and nothing else."""

    def __init__(self, connection: Any) -> None:
        self.cursor = connection.cursor


def test_connections(tmp_path: Path) -> None:
    connection = sqlite3.connect(database(tmp_path, "sqlite"))
    table = open_table(Wrapped(connection), sql="SELECT * FROM t")
    assert as_dict(count(table)) == COUNTS
    duck = duckdb.connect()
    table = open_table(duck, sql="VALUES ('a', 1.50), ('b', 2)")
    assert as_dict(count(table, "col0", "col1")) == {"a": {"1.5": 1}, "b": {"2": 1}}
    with adbc.connect(f"file:{tmp_path}/rows.sqlite?mode=ro") as opened:
        assert as_dict(count(open_table(opened, sql="SELECT * FROM t"))) == COUNTS
    assert "an open DB-API or ADBC connection" in refused_query(7, "SELECT 1")


def test_numbers_of_a_cursor_keep_their_digits() -> None:
    class Cursor:
        description = [("s",), ("x",)]  # noqa: RUF012  # as DB-API has it
        rows = [[("a", Decimal("0.10")), ("b", "07")], [("b", 0.3)], []]  # noqa: RUF012

        def execute(self, sql: str) -> None:
            self.left = list(self.rows)

        def fetchmany(self, rows: int) -> Any:
            return self.left.pop(0)

        def close(self) -> None:
            pass

    found = count(open_table(type("C", (), {"cursor": lambda self: Cursor()})(), sql="SELECT"))
    assert as_dict(found) == {"a": {"0.1": 1}, "b": {"0.3": 1, "07": 1}}


def refused_query(source: Any, sql: Any) -> str:
    with pytest.raises(InputError) as caught:
        as_dict(count(open_table(source, sql=sql)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "sql",
    ["", "  ", "nonsense", "SELECT", "SELECT nothing FROM t", "SELECT * FROM nowhere",
     "DELETE FROM t", "DROP TABLE t", "INSERT INTO t VALUES ('x', 1)", "SELECT 1; DROP TABLE t",
     "SELECT 1) q; DROP TABLE t; SELECT (1", "CREATE TABLE u AS SELECT 1", "UPDATE t SET x = 0",
     "ATTACH '{tmp}/new.db' AS n", "COPY t TO '{tmp}/new.csv'", "EXPORT DATABASE '{tmp}/new'",
     "PRAGMA journal_mode = DELETE", "VACUUM INTO '{tmp}/new.db'", "SET memory_limit = '1GB'",
     "WITH u AS (DELETE FROM t RETURNING *) SELECT * FROM u", "SELECT s, s FROM t",
     "SELECT load_extension('x')", "SELECT writefile('{tmp}/new', 'x')", "INSTALL httpfs",
     "SELECT * FROM 'https://example.org/t.csv'"],
)  # fmt: skip
def test_what_is_no_select_is_refused_and_nothing_is_written(
    db: Path, tmp_path: Path, sql: str
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused_query(db, sql.replace("{tmp}", str(tmp_path)))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_errors_quote_no_cells(db: Path, tmp_path: Path) -> None:
    secret = write(tmp_path, "s,x\njones,smith\n", "cells.csv")
    for sql in (
        "SELECT s, json_extract(s || '{jones', '$') AS x FROM t",
        "SELECT s, abs(s || 'jones') AS x FROM t WHERE x / 0 = printf(s)",
        f"SELECT s, x::INT AS x FROM '{secret}'", f"SELECT y FROM '{secret}'",
    ):  # fmt: skip
        message = refused_query(db, sql)
        assert "jones'" not in message.replace(sql, "")
        assert "smith" not in message
    for broken in (write(tmp_path, "junk", "a.db"), tmp_path / "none.db"):
        assert refused_query(broken, "SELECT 1")


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    path = write(tmp_path, "s,x\na,1\nb,2\n")
    with pytest.raises(InputError, match="a delimiter is for text files"):
        open_table(sql="SELECT 1", delimiter=",")
    with pytest.raises(InputError, match="a memory limit for"):
        open_table(sqlite3.connect(":memory:"), sql="SELECT 1", memory_limit="2GB")
    with pytest.raises(InputError, match="when they are opened"):
        open_table(open_table(path), delimiter=";")
    for limit in ("lots", "2", "499MB", "-2GB", "999999999T", "٣GB"):
        with pytest.raises(InputError, match="at least 500MB"):
            open_table(path, memory_limit=limit)
    for limit in ("500MB", "1.5 GB", "2GiB", "1t"):
        assert as_dict(count(open_table(path, memory_limit=limit))) == {
            "a": {"1": 1},
            "b": {"2": 1},
        }
    assert "leave it out" in refused_limit(pa.table({"s": ["a"], "x": [1]}))


def refused_limit(frame: Any) -> str:
    with pytest.raises(InputError) as caught:
        open_table(frame, memory_limit="2GB")
    return str(caught.value)
