# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks one after another, and write one page about them: ``make bench``.

Each runs in a process of its own. Name some to run only these: ``python benchmarks/run.py noise``.
"""

import argparse
import importlib
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from timing import Given, Row

#: Each is a function of a module, which yields rows; and what its sizes are.
ALL = {
    "start": ("bench_start", ""),
    "noise": ("bench_sampling", "scale"),
    "counting": ("bench_table", "rows"),
    "releasing": ("bench_table", "rows"),
    "estimating": ("bench_table", "rows"),
    "couplings": ("bench_calibration", "levels"),
    "levels": ("bench_calibration", "levels"),
    "channels": ("bench_channel", "levels"),
    "secrets": ("bench_calibration", "secrets"),
    "releases": ("bench_joint", "releases"),
    "large_supports": ("bench_calibration", ""),
    "memory": ("bench_calibration", ""),
    "draws": ("bench_sampling", "levels"),
    "best_for_estimates": ("bench_channel", ""),
    "queries": ("bench_queries", "records"),
    "explorer_pages": ("bench_explorer", ""),
}


def run(name: str, given: Given) -> tuple[str, list[Row], str]:
    """Run one benchmark, in its own process; return what the page needs of it."""
    (module, axis), rows = ALL[name], []
    work = getattr(importlib.import_module(module), name)
    for row in work(given):
        if given.quick and row.target is not None:
            row = row._replace(note="not judged")
        rows.append(row)
        print(row, flush=True)
    return work.__doc__, rows, axis


def main() -> None:
    usual = Given()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look at the page")
    parser.add_argument("--rows", nargs="+", type=int, help=f"of tables; {usual.rows}")
    parser.add_argument("--output", default=Path(__file__).with_name("report.html"), type=Path)
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in ALL]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
    rows = asked.rows or ([1_000, 10_000] if asked.quick else usual.rows)
    given = Given(asked.quick, tuple(sorted(set(rows))))
    start, load, found = time.time(), os.getloadavg()[0], {}
    try:
        for name in asked.names or ALL:
            print(f"== {name}", flush=True)
            # A new interpreter for each: nothing is loaded, and no memory was used, before.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                found[name] = process.submit(run, name, given).result()
    finally:  # what was measured before one failed is not lost
        from page import page  # only now: it loads NumPy and matplotlib

        asked.output.write_text(page(found, given, start, load), encoding="utf-8")
        print(asked.output)


if __name__ == "__main__":
    sys.exit(main())
