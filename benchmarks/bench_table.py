# SPDX-License-Identifier: Apache-2.0
"""Counting, releasing and estimating from large files, made in a temporary folder."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
from timing import Given, Row, in_turn, peers

import pufferfish as pf
from pufferfish.tables.count import count_table
from pufferfish.tables.rules import make_rules

#: Ten columns, among them 100 secrets times 1,000 public values.
MAKE = """
COPY (SELECT (hash(i) % 100)::INT AS ward, (hash(i * 7 + 1) % 1000)::INT AS days,
             'x' || (hash(i + 3) % 50) AS code, (hash(i + 5) % 10000) / 100 AS cost, i AS id,
             (hash(i + 9) % 2) = 0 AS flag, 'some text ' || (hash(i + 11) % 1000) AS note,
             DATE '2020-01-01' + (hash(i + 13) % 1000)::INT AS day,
             (hash(i + 17) % 100000)::INT AS zip, 'abcdefghi'[(hash(i + 19) % 9)::INT + 1] AS grade
      FROM range({rows}) t(i)) TO '{path}'
"""
Ways = dict[str, Callable[[], int]]


def on_files(
    given: Given, work: Callable[[Path], Iterator[tuple[str, Ways]]], target: float
) -> Iterator[Row]:
    """Do some work in several ways in turn, on files of all sizes; the largest has a target."""
    for ending in ("csv", "parquet"):
        for rows in given.rows:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"big.{ending}"
                duckdb.connect().execute(MAKE.format(rows=rows, path=path))
                for name, ways in work(path):
                    times = in_turn(ways, 5 if rows <= 10**6 else 3)
                    for way, took in times.items():
                        wanted = target if way == "ours" and rows == given.rows[-1] else None
                        base = times["DuckDB"]
                        yield Row(
                            f"{name}, {ending}", way, took, base, "times DuckDB", wanted, rows
                        )


def read(path: Path) -> str:
    return f"read_{path.suffix[1:]}('{path}')"


def grouped(path: Path, columns: str) -> Callable[[], int]:
    query = f"SELECT {columns}, count(*) FROM {read(path)} GROUP BY ALL"
    return lambda: sum(row[-1] for row in duckdb.connect().sql(query).fetchall())


def ways_to_count(path: Path, two: list[str], there: dict[str, Any]) -> Ways:
    csv, rules = path.suffix == ".csv", make_rules(secret=two[0], public=two[1])
    ways = {"ours": lambda: int(count_table(path, rules).counts.sum())}
    ways["DuckDB"] = grouped(path, ", ".join(two))
    if pl := there.get("Polars"):
        scan = pl.scan_csv if csv else pl.scan_parquet
        ways["Polars"] = lambda: int(scan(path).group_by(two).len().collect()["len"].sum())
    if pd := there.get("pandas"):
        option = {"usecols" if csv else "columns": two}
        load = pd.read_csv if csv else pd.read_parquet
        ways["pandas"] = lambda: int(load(path, **option).groupby(two).size().sum())
    return ways


def counting(given: Given) -> Iterator[Row]:
    """Counting two of ten columns, beside DuckDB, Polars and pandas.

    Ours includes what the other ways leave out: which values a column has, and what is missing.
    """
    there, absent = peers("count", Polars="polars", pandas="pandas")
    yield from absent

    def work(path: Path) -> Iterator[tuple[str, Ways]]:
        for two in (["ward", "days"], ["code", "cost"]):
            yield f"count {' by '.join(two)}", ways_to_count(path, two, there)

    yield from on_files(given, work, 1.3)


def releasing(given: Given) -> Iterator[Row]:
    """Releasing one of ten columns, beside DuckDB's COPY of the same column.

    DuckDB copies the values; ours adds exact noise to each.
    """

    def work(path: Path) -> Iterator[tuple[str, Ways]]:
        plan = pf.calibrate(pf.Prior.from_table(path, secret="ward", public="days"), "0.5", "l1")
        out = path.with_stem("out")
        copy = f"COPY (SELECT days FROM {read(path)}) TO '{out}'"
        yield (
            "release days",
            {
                "ours": lambda: plan.release(path, output=out, force=True).rows_released,
                "DuckDB": lambda: duckdb.connect().execute(copy).fetchone()[0],
            },
        )

    return on_files(given, work, 2.5)


def estimating(given: Given) -> Iterator[Row]:
    """Estimates from released sets of nine levels, beside DuckDB's GROUP BY of them."""
    counts = {"a": range(1, 10), "b": range(9, 0, -1)}
    prior = pf.Prior.from_counts(counts, support=list("abcdefghi"))
    plan = pf.calibrate(prior, "0.01", "channel", best_for="frequencies").with_columns("grade")

    def work(path: Path) -> Iterator[tuple[str, Ways]]:
        plan.release(path, output=(out := path.with_stem("out")))
        ours: Ways = {"ours": lambda: plan.estimate(out).rows}
        yield "estimate grades", ours | {"DuckDB": grouped(out, '"grade (set)"')}

    return on_files(given, work, 2)
