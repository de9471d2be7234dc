# SPDX-License-Identifier: Apache-2.0
"""How long whole processes take, against importing NumPy: ``python benchmarks/bench_start.py``."""

import subprocess
import sys
import tempfile
from pathlib import Path

from timing import seconds, verdict

import pufferfish.paper as paper

_COMMAND = "import sys; from pufferfish.cli import main; sys.exit(main())"


def process(*words: str) -> float:
    command = [sys.executable, *words]
    return seconds(
        lambda: subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ),
        9,
    )


def main() -> None:
    numpy = process("-c", "import numpy")
    print(f"python -c 'import numpy': {numpy:.3f} s")
    imported = process("-c", "import pufferfish")
    print(f"{'import pufferfish: times NumPy':45}{verdict(imported / numpy, 1)}")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "student.csv"
        paper.write_table("student", table)
        options = "--secret higher --public romantic --order no,yes --epsilon 0.1"
        whole = process("-c", _COMMAND, "calibrate", str(table), *options.split())
    print(f"{'calibrate on 649 rows: times NumPy':45}{verdict(whole / numpy, 5)}")


if __name__ == "__main__":
    main()
