# SPDX-License-Identifier: Apache-2.0
"""What goes to standard output: tables for people, strict JSON and CSV for programs.

Digits are printed on the side that promises less: what is lost goes up, what is kept goes down.
"""

import csv
import decimal
import io
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pufferfish.cli.messages import one_line
from pufferfish.errors import InputError
from pufferfish.numbers import show

#: A line that is not printed on a terminal is not wrapped.
_UNLIMITED = 10_000


def console() -> Any:
    """Return the console for people; without colours and wrapping where no terminal is."""
    from rich.console import Console

    class Honest(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the process with an exit status of its own

    seen = _stdout().isatty()
    return Honest(
        file=sys.stdout,
        width=None if seen else _UNLIMITED,
        no_color=None if seen else True,
        markup=False,
        highlight=False,
        emoji=False,
    )


def print_lines(lines: Iterable[str], style: str = "") -> None:
    """Print lines of text, wrapped between words on a terminal and not at all elsewhere."""
    from rich.text import Text

    out = console()
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        out.print(Text(" " * indent + one_line(line), style=style), soft_wrap=not out.is_terminal)


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Sequence[int] = (),
    marked: Sequence[int] = (),
) -> None:
    """Print a table whose cells are never cut; the columns ``left`` are text, others numbers."""
    from rich import box
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for k, header in enumerate(headers):
        side: Any = "left" if k in left else "right"
        table.add_column(header, justify=side, vertical="bottom", no_wrap=True)
    for k, row in enumerate(rows):
        cells = (Text(one_line(cell)) for cell in row)
        table.add_row(*cells, style="bold red" if k in marked else "")
    out = console()
    unlimited = out.options.update(width=_UNLIMITED)
    out.width = max(out.width, Measurement.get(out, unlimited, table).maximum)
    out.print(table)


def print_json(data: Mapping[str, Any]) -> None:
    """Print strictly valid JSON: ASCII, doubles to their last digit, infinity as "inf"."""
    _stdout().write(json.dumps(jsonable(data), indent=1, allow_nan=False) + "\n")


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows with a header; doubles to their last digit, infinity as inf, nothing for None."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = [jsonable(row[name]) for name in columns]
        writer.writerow([str(c).lower() if isinstance(c, bool) else c for c in cells])
    _stdout().write(buffer.getvalue())


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
    nearest = value.numerator / value.denominator
    return nearest if Fraction(repr(nearest)) == value else show(value)


def rounded_up(value: float, digits: int = 8) -> str:
    """Return a number with so many significant digits, none of them below the number itself."""
    return _printed(value, digits, decimal.ROUND_CEILING)


def rounded_down(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, none of them above the number itself."""
    return _printed(value, digits, decimal.ROUND_FLOOR)


def nearest(value: float, digits: int = 6) -> str:
    """Return a number with so many significant digits, to the nearest."""
    return _printed(value, digits, decimal.ROUND_HALF_EVEN)


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


def share(value: float) -> str:
    """Return a share in per cent with one decimal, cut off: none but a whole one is 100 %."""
    if value == 1:
        return "100 %"
    if value >= 0.999:
        return ">99.9 %"
    return f"{math.floor(1000 * value + 1e-9) / 10:.1f} %"


def _printed(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = decimal.Context(prec=digits, rounding=rounding).create_decimal_from_float(value)
    # Trailing zeros are digits too: 10 is printed as 10.000000.
    unit = decimal.Decimal((0, (1,), rounded.adjusted() - digits + 1))
    padded = rounded.quantize(unit, context=decimal.Context(prec=digits + 5))
    return f"{padded:f}" if -5 <= padded.adjusted() < 16 else f"{padded:e}"


def _stdout() -> Any:
    if sys.stdout is None:
        raise InputError("nothing can be printed: standard output is closed")
    return sys.stdout
