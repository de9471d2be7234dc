# SPDX-License-Identifier: Apache-2.0
"""What goes to standard output: tables for people, strict JSON and CSV for programs.

Digits are printed on the side that promises less: what is lost goes up, what is kept goes down.
"""

import csv
import decimal
import io
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import click

from pufferfish.cli.messages import one_line
from pufferfish.errors import InputError
from pufferfish.numbers import rounded_up, show


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text, wrapped between words on a terminal and not at all elsewhere."""
    seen = _stdout().isatty()
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip(" ")))
        text = indent + one_line(line)
        if seen and text:
            width = shutil.get_terminal_size().columns
            text = textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False)
        click.echo(text)


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Sequence[int] = (),
    marked: Sequence[int] = (),
) -> None:
    """Print a table whose cells are never cut; the columns ``left`` are text, others numbers."""
    _stdout()
    tops = [header.split("\n") for header in headers]
    height = max(map(len, tops))
    lines = [
        *zip(*([""] * (height - len(top)) + top for top in tops), strict=True),
        *([one_line(cell) for cell in row] for row in rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for k, line in enumerate(lines):
        if k == height:
            click.echo("─" * (sum(widths) + 2 * len(widths) - 2))
        cells = [f"{cell:{'<' if at in left else '>'}{widths[at]}}" for at, cell in enumerate(line)]
        text = "  ".join(cells).rstrip()
        click.echo(click.style(text, fg="red", bold=True) if k - height in marked else text)


def print_json(data: Mapping[str, Any]) -> None:
    """Print strictly valid JSON: ASCII, doubles to their last digit, infinity as "inf"."""
    _stdout().write(json.dumps(jsonable(data), indent=1, allow_nan=False) + "\n")


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows with a header."""
    _stdout().write(csv_text(columns, rows))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows with a header; doubles to their last digit, infinity as inf, None as nothing."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = [jsonable(row[name]) for name in columns]
        writer.writerow([str(c).lower() if isinstance(c, bool) else c for c in cells])
    return buffer.getvalue()


def jsonable(value: Any) -> Any:
    """Return a value with infinities as text, exact numbers as doubles, tuples as lists."""
    if isinstance(value, Fraction):
        return exact_number(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value


def exact_number(value: Fraction) -> int | float | str:
    """Return the JSON number that prints the exact value, or its text where none does."""
    if value.denominator == 1:
        return value.numerator
    double = value.numerator / value.denominator
    return double if Fraction(repr(double)) == value else show(value)


def rounded_down(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, none of them above the number itself."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_FLOOR)
    return f"{context.create_decimal_from_float(value):g}"


def at_most(value: float, limit: Fraction | None, digits: int = 8) -> str:
    """Return a number rounded up, with as many digits more as keep it within a limit.

    The double nearest to the limit stands for the limit, which is shown itself if it is short.
    """
    if limit is None:
        return rounded_up(value, digits)
    exact = show(limit)
    within = math.isfinite(value) and (Fraction(value) <= limit or value == float(limit))
    for count in range(digits, 18):
        text = rounded_up(value, count)
        if not within or Fraction(text) <= limit:
            return text
        if len(exact) <= digits + 2:
            break
    return exact


def brief(value: float, digits: int = 3) -> str:
    """Return a number to the nearest with so many digits."""
    return f"{float(f'{value:.{digits}g}'):g}"


def share(value: float) -> str:
    """Return a share in per cent with one decimal, cut off: none but a whole one is 100 %."""
    if value == 1:
        return "100 %"
    if value >= 0.999:
        return ">99.9 %"
    return f"{math.floor(1000 * value + 1e-9) / 10:.1f} %"


def _stdout() -> Any:
    if sys.stdout is None:
        raise InputError("nothing can be printed: standard output is closed")
    return sys.stdout
