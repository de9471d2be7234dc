# SPDX-License-Identifier: Apache-2.0
"""How long the import takes, in whole processes: ``python benchmarks/bench_import.py``."""

import statistics
import subprocess
import sys
import time

LATE = ("duckdb", "scipy", "matplotlib", "pandas", "polars", "pyarrow", "flint")


def seconds(code: str, runs: int = 9) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> None:
    bare = seconds("pass")
    for code in ("import pufferfish", "import numpy", "from pufferfish import Prior, Scenario"):
        print(f"{code:40} {seconds(code) - bare:6.3f} s beyond an empty interpreter")
    probe = (
        "import sys, pufferfish\n"
        f"print('loaded by the import:', [m for m in {LATE!r} if m in sys.modules])"
    )
    subprocess.run([sys.executable, "-c", probe], check=True)
    print("target: below 0.3 s, and none of the heavy libraries")


if __name__ == "__main__":
    main()
