# SPDX-License-Identifier: Apache-2.0
"""Counting a large file, and estimates from one, against DuckDB's own GROUP BY; noisy counts.

Run as ``python benchmarks/bench_table.py``. The files (10 columns, 100 secrets times 1,000 public
values; a released column and its sets) are made in a temporary folder.
"""

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
from timing import accumulate, seconds, verdict

import pufferfish as pf
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


def counting(path: Path, secret: str, public: str, repeat: int) -> None:
    """Count two columns."""
    rules = make_rules(secret=secret, public=public)
    compare(
        f"{path.suffix[1:]}, {secret} x {public}",
        grouped(path, f"{secret}, {public}"),
        lambda: int(count_table(path, rules).counts.sum()),
        repeat,
    )


def estimating(path: Path, rows: int, repeat: int) -> None:
    """Estimate from the sets of a released column of nine levels."""
    rng, levels = np.random.default_rng(1), list("abcdefghi")
    table = pl.DataFrame({"s": ["p", "q"] * 5_000, "x": rng.choice(levels, 10_000)})
    prior = pf.Prior.from_table(table, secret="s", public="x")
    plan = pf.calibrate(prior, "0.01", "channel", best_for="frequencies")
    many = pl.DataFrame({"s": ["p"] * rows, "x": rng.choice(levels, rows)})
    plan.release(many, output=path, force=True)
    name = f"{path.suffix[1:]}, estimates from sets"
    compare(name, grouped(path, '"x (set)"'), lambda: plan.estimate(path).rows, repeat, 2.0)


def counting_with_noise(atoms: int = 500_000, rows: int = 100_000) -> None:
    """Count two secrets with noise on a declared support, against one pass over all cells."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"s": rng.choice(["A", "B"], rows), "x": rng.integers(0, atoms, rows)})

    def noisy() -> pf.Scenario:
        return pf.noisy_counts(
            table, "0.3", secret="s", public="x", pairs=[("A", "B")], support=range(atoms)
        )

    taken = seconds(noisy, 3)
    ratio = verdict(taken / accumulate(2 * atoms), 40.0)
    print(f"{'noisy counts: times one logaddexp':45}{ratio}  ({taken:.2f} s)", flush=True)


def grouped(path: Path, columns: str) -> Callable[[], int]:
    reader = "read_parquet" if path.suffix == ".parquet" else "read_csv"
    query = f"SELECT {columns}, count(*) FROM {reader}('{path}') GROUP BY ALL"
    return lambda: sum(row[-1] for row in duckdb.connect().sql(query).fetchall())


def compare(
    name: str, theirs: Callable[[], int], ours: Callable[[], int], repeat: int, target: float = 1.3
) -> None:
    """Run both ways in turn; the ratio of the medians is what counts."""
    ways = {"DuckDB": theirs, "ours": ours}
    times: dict[str, list[float]] = {name: [] for name in ways}
    groups = {run() for run in ways.values()}
    for _ in range(repeat):
        for way, run in ways.items():
            start = time.perf_counter()
            groups.add(run())
            times[way].append(time.perf_counter() - start)
    if len(groups) != 1:
        raise SystemExit(f"the two ways differ: {groups}")
    base, mine = (statistics.median(own) for own in times.values())
    print(f"{name + ': times DuckDB':45}{verdict(mine / base, target)}  ({base:.2f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    counting_with_noise()
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("csv", "parquet"):
            path = Path(folder) / f"big.{ending}"
            duckdb.connect().execute(MAKE.format(rows=given.rows, path=path))
            print(f"{given.rows} rows, 10 columns, {path.stat().st_size / 1e6:.0f} MB")
            for secret, public in (("ward", "days"), ("code", "cost")):
                counting(path, secret, public, given.repeat)
            estimating(path, given.rows, given.repeat)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of all of it: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
