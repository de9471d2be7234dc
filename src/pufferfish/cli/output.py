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
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import show
from pufferfish.report import brief
from pufferfish.report.compare import HEADERS, Result, lines_of

#: Columns of a terminal.
_WIDTH = 80


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


def print_results(results: Sequence[Result], channels: bool) -> None:
    """Print the table: how strong each mechanism is, and how good a release will be."""
    one = len({r.epsilon for r in results}) == 1
    rows = lines_of(results)
    columns = [c for c in zip(HEADERS, *rows, strict=True) if {*c[1:]} != {"-"}][one:]
    headers, *lines = zip(*columns, strict=True)
    print_table(headers, lines, [1 - one])
    for r in results:
        if channels and r.plan.channel is not None:
            print_lines(["", f"channel at epsilon {r.epsilon}: chance of each output by value"])
            _print_channel(r.plan.channel)
            if r.plan.labels is not None:
                print_lines(["", "labels: chance of each value by set"])
                _print_channel(r.plan.labels)


def _print_channel(channel: Channel) -> None:
    """Print a channel: a line for each input, and as many columns of outputs as fit beside it."""
    names = list(map(channel.outputs.name, range(channel.outputs.size)))
    most = max(1, _WIDTH // (max(8, *map(len, names)) + 2) - 1)
    for k in range(0, len(names), most):
        rows = [
            [channel.inputs.name(x), *map(_chance, chances[k : k + most])]
            for x, chances in enumerate(channel.matrix.tolist())
        ]
        print_table(["value", *names[k : k + most]], rows, [0])


def _chance(p: float) -> str:
    """Return a chance; none that is not 0 or 1 is printed as if it were."""
    return "<1e-9" if 0 < p < 1e-9 else brief(min(p, 0.9999) if p < 1 else p, 4)


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
