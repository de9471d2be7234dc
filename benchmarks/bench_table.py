# SPDX-License-Identifier: Apache-2.0
"""Counting a large file, against DuckDB's own GROUP BY: ``python benchmarks/bench_table.py``.

The files (10 columns, 100 secrets times 1,000 public values) are made in a temporary folder.
"""

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import duckdb
from timing import verdict

from pufferfish.tables.count import count_table
from pufferfish.tables.rules import make_rules

MAKE = """
COPY (SELECT (hash(i) % 100)::INT AS ward, (hash(i * 7 + 1) % 1000)::INT AS days,
             'x' || (hash(i + 3) % 50) AS code, (hash(i + 5) % 10000) / 100 AS cost, i AS id,
             (hash(i + 9) % 2) = 0 AS flag, 'some text ' || (hash(i + 11) % 1000) AS note,
             DATE '2020-01-01' + (hash(i + 13) % 1000)::INT AS day,
             (hash(i + 17) % 100000)::INT AS zip, (hash(i + 19) % 7)::INT AS week
      FROM range({rows}) t(i)) TO '{path}'
"""


def compare(path: Path, secret: str, public: str, repeat: int) -> None:
    """Run both ways in turn; the ratio of the medians is what counts."""
    reader = "read_parquet" if path.suffix == ".parquet" else "read_csv"
    query = f"SELECT {secret}, {public}, count(*) FROM {reader}('{path}') GROUP BY 1, 2"
    ways = {
        "DuckDB": lambda: len(duckdb.connect().sql(query).fetchall()),
        "ours": lambda: int(
            (count_table(path, make_rules(secret=secret, public=public)).counts > 0).sum()
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    groups = {run() for run in ways.values()}
    for _ in range(repeat):
        for name, run in ways.items():
            start = time.perf_counter()
            groups.add(run())
            times[name].append(time.perf_counter() - start)
    if len(groups) != 1:
        raise SystemExit(f"the two ways differ: {groups}")
    base, mine = (statistics.median(own) for own in times.values())
    name = f"{path.suffix[1:]}, {secret} x {public}: times DuckDB"
    print(f"{name:45}{verdict(mine / base, 1.3)}  ({base:.2f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("csv", "parquet"):
            path = Path(folder) / f"big.{ending}"
            duckdb.connect().execute(MAKE.format(rows=given.rows, path=path))
            print(f"{given.rows} rows, 10 columns, {path.stat().st_size / 1e6:.0f} MB")
            for secret, public in (("ward", "days"), ("code", "cost")):
                compare(path, secret, public, given.repeat)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of all of it: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
