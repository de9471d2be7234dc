# SPDX-License-Identifier: Apache-2.0
"""How long whole processes take, against importing NumPy."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from timing import Given, Row, seconds

import pufferfish.paper as paper

_COMMAND = "import sys; from pufferfish.cli import main; sys.exit(main())"


def process(runs: int, *words: str) -> float:
    command = [sys.executable, *words]
    return seconds(lambda: subprocess.run(command, check=True, capture_output=True), runs)


def start(given: Given) -> Iterator[Row]:
    """Whole processes, against one that imports NumPy."""
    runs, unit = given.pick(9, 1), "times importing NumPy"
    numpy = process(runs, "-c", "import numpy")
    imported = process(runs, "-c", "import pufferfish")
    yield Row("import pufferfish", "ours", imported, numpy, unit, 1)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "student.csv"
        paper.write_table("student", table)
        options = "--secret higher --public romantic --order no,yes --epsilon 0.1"
        whole = process(runs, "-c", _COMMAND, "calibrate", str(table), *options.split())
    yield Row("calibrate a table of 649 rows", "ours", whole, numpy, unit, 5)
