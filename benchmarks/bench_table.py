# SPDX-License-Identifier: Apache-2.0
"""A prior from a large CSV, against DuckDB's own GROUP BY of the same two columns.

    python benchmarks/bench_table.py [--rows 10000000] [--repeat 5]

The file (10 columns, 100 secrets times 1,000 public values) is made in a temporary folder. Both
ways are warmed up once and then run in turn; the ratio of the medians is what counts.
"""

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path

import duckdb

from pufferfish.tables import count_table, make_rules

MAKE = """
COPY (SELECT (hash(i) % 100)::INT AS ward, (hash(i * 7 + 1) % 1000)::INT AS days,
             'x' || (hash(i + 3) % 50) AS code, (hash(i + 5) % 10000) / 100 AS cost, i AS id,
             (hash(i + 9) % 2) = 0 AS flag, 'some text ' || (hash(i + 11) % 1000) AS note,
             DATE '2020-01-01' + (hash(i + 13) % 1000)::INT AS day,
             (hash(i + 17) % 100000)::INT AS zip, (hash(i + 19) % 7)::INT AS week
      FROM range({rows}) t(i)) TO '{path}' (HEADER)
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.csv"
        duckdb.connect().execute(MAKE.format(rows=given.rows, path=path))
        size = path.stat().st_size / 1e6
        print(f"{given.rows} rows, 10 columns, {size:.0f} MB")
        for secret, public in (("ward", "days"), ("code", "cost")):
            compare(path, secret, public, given.repeat)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of all of it: {peak:.0f} MiB")


def compare(path: Path, secret: str, public: str, repeat: int) -> None:
    def baseline() -> int:
        query = f"SELECT {secret}, {public}, count(*) FROM read_csv('{path}') GROUP BY 1, 2"
        return len(duckdb.connect().sql(query).fetchall())

    def ours() -> int:
        prior = count_table(path, make_rules(secret=secret, public=public))
        return int((prior.counts > 0).sum())

    times: dict[str, list[float]] = {"baseline": [], "ours": []}
    groups = {baseline(), ours()}
    for _ in range(repeat):
        for name, run in (("baseline", baseline), ("ours", ours)):
            start = time.perf_counter()
            groups.add(run())
            times[name].append(time.perf_counter() - start)
    base, mine = (statistics.median(times[name]) for name in ("baseline", "ours"))
    print(
        f"{secret} x {public}: {groups.pop()} groups, DuckDB {base:.2f} s, prior {mine:.2f} s, "
        f"ratio {mine / base:.2f} (target 1.3)"
    )


if __name__ == "__main__":
    main()
