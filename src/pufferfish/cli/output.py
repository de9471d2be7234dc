# SPDX-License-Identifier: Apache-2.0
"""What goes to standard output: tables for people, strict JSON and CSV for programs."""

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pufferfish.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: As wide as a line may get where nobody's terminal sets a limit: nothing is cut or wrapped.
_UNLIMITED = 10_000


def stdout_console() -> "Console":
    """Return the console for people; without colours, and as wide as needed, where none looks."""
    from rich.console import Console

    class Honest(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the process with an exit status of its own

    if sys.stdout is None:
        raise _closed()
    seen = sys.stdout.isatty()
    return Honest(
        file=sys.stdout,
        width=None if seen else _UNLIMITED,
        no_color=None if seen else True,
        markup=False,
        highlight=False,
        emoji=False,
    )


def make_table(columns: Iterable[tuple[str, str]]) -> "Table":
    """Return an empty table.

    Parameters
    ----------
    columns : iterable of (header, "left", "right" or "text")
        Its columns. Cells are never broken, as a scale must be read to its last digit, save those
        of "text", which are words and stand on the left.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for header, side in columns:
        table.add_column(
            header, justify="right" if side == "right" else "left", overflow="fold",
            vertical="bottom", no_wrap=side != "text",
        )  # fmt: skip
    return table


def fits(console: "Console", table: "Table") -> bool:
    """Whether a table fits the terminal with its columns as close together as they may be."""
    if _width(console, table) <= console.width:
        return True
    table.padding = (0, 0, 0, 0)
    # Only words may stand on several lines.
    spare = 0
    for column in table.columns:
        if not column.no_wrap:
            words = [str(cell) for cell in (column.header, *column.cells)]
            spare += max(map(len, words)) - max(len(w) for cell in words for w in cell.split(" "))
    return _width(console, table) - spare <= console.width


def print_table(console: "Console", table: "Table") -> None:
    """Print a table; where it does not fit at all, the terminal breaks its lines."""
    seen = console.width
    if not fits(console, table):
        # Left to itself rich would cut the cells.
        console.width = _width(console, table)
    console.print(table)
    console.width = seen


def _width(console: "Console", table: "Table") -> int:
    from rich.measure import Measurement

    unlimited = console.options.update(width=_UNLIMITED)
    return Measurement.get(console, unlimited, table).maximum


def text(line: str, style: str = "") -> Any:
    """Return a line of text for the console, in a style where there are any."""
    from rich.text import Text

    from pufferfish.cli.messages import command_line_words, one_line

    indent = len(line) - len(line.lstrip(" "))
    return Text(" " * indent + one_line(command_line_words(line)), style=style)


def print_lines(console: "Console", lines: Iterable[str], style: str = "") -> None:
    """Print lines of text, wrapped between words where a person looks and not at all elsewhere."""
    for line in lines:
        console.print(text(line, style), soft_wrap=not console.is_terminal)


def print_json(data: Mapping[str, Any]) -> None:
    """Print strictly valid JSON: ASCII, doubles to their last digit, infinity as "inf"."""
    _write(json.dumps(jsonable(data), indent=1, allow_nan=False) + "\n")


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows with a header; doubles to their last digit, infinity as inf, nothing for None."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = (jsonable(row[name]) for name in columns)
        writer.writerow([str(c).lower() if isinstance(c, bool) else c for c in cells])
    _write(buffer.getvalue())


def jsonable(value: Any) -> Any:
    """Return a value with infinities as text, tuples as lists and keys as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value


def _write(content: str) -> None:
    if sys.stdout is None:
        raise _closed()
    sys.stdout.write(content)


def _closed() -> InputError:
    return InputError("nothing can be printed: standard output is closed")
