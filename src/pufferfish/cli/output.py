# SPDX-License-Identifier: Apache-2.0
"""What goes to standard output: tables for people, strict JSON and CSV for programs."""

import contextlib
import csv
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from pufferfish.cli.process import one_line, shown
from pufferfish.errors import InputError
from pufferfish.numbers import show


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text, on a terminal wrapped between words.

    A line that is indented is a command to be copied, and stays whole.
    """
    stream = _stdout()
    for line in lines:
        click.echo(f"  {one_line(line)}" if line.startswith("  ") else shown(line, stream))


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = ()
) -> None:
    """Print a table whose cells are never cut; the columns ``left`` are text, others numbers."""
    _stdout()
    tops = list(zip_longest(*(header.split("\n") for header in headers), fillvalue=""))
    lines = [tuple(map(one_line, row)) for row in (*tops, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for k, line in enumerate(lines):
        if k == len(tops):
            click.echo("─" * (sum(widths) + 2 * len(widths) - 2))
        cells = [f"{cell:{'<' if at in left else '>'}{widths[at]}}" for at, cell in enumerate(line)]
        click.echo("  ".join(cells).rstrip())


def print_json(data: Mapping[str, Any]) -> None:
    """Print strictly valid JSON: ASCII, doubles to their last digit, infinity as "inf"."""
    _stdout().write(json.dumps(jsonable(data), indent=1, allow_nan=False) + "\n")


def print_csv(rows: Sequence[Mapping[str, Any]], file: Any = None) -> None:
    """Print rows with a header: doubles to their last digit, infinity as inf, None as nothing.

    Text that a spreadsheet would take for a formula is guarded as in a release.
    """
    from pufferfish.release.sinks import guarded, texts  # slow to import

    writer = csv.writer(file or _stdout(), lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        cells = [str(c).lower() if isinstance(c, bool) else c for c in map(jsonable, row.values())]
        safe = (guarded(texts([c]))[0] if isinstance(c, str) else c for c in cells)
        writer.writerow(safe)


def jsonable(value: Any) -> Any:
    """Return what JSON can hold: infinity as text, fractions as numbers that print as they are."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return value.numerator
        double = value.numerator / value.denominator
        return double if Fraction(repr(double)) == value else show(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value


def _stdout() -> Any:
    if sys.stdout is None:
        raise InputError("nothing can be printed: standard output is closed")
    return sys.stdout


@contextlib.contextmanager
def after(written: str | Path | None) -> Iterator[None]:
    """Do what follows a written file; should that fail, the error says that the file is there."""
    try:
        yield
        _stdout().flush()
    except BaseException as error:
        if written is not None:
            error.add_note(f"{written} was written before")
        raise
