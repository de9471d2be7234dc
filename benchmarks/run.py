# SPDX-License-Identifier: Apache-2.0
"""Run the benchmarks one after another, each in a process of its own: ``make bench``.

Figures are ratios within one run; only those mean anything on a busy machine. Name some to run
only these: ``python benchmarks/run.py calibration start``.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ALL = {
    "start": ["bench_start.py"],
    "calibration": ["bench_calibration.py"],
    "memory": ["bench_calibration.py", "--memory"],
    "sampling": ["bench_sampling.py"],
    "table": ["bench_table.py"],
    "channel": ["bench_channel.py"],
    "estimates": ["bench_estimates.py"],
    "joint": ["bench_joint.py"],
}


def main() -> None:
    chosen = sys.argv[1:] or list(ALL)
    unknown = [name for name in chosen if name not in ALL]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
    for name in chosen:
        script, *arguments = ALL[name]
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


if __name__ == "__main__":
    main()
