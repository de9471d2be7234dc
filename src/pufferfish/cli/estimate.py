# SPDX-License-Identifier: Apache-2.0
"""``pufferfish estimate``: the numbers of the original column, from a released one and its plan."""

import io
from collections.abc import Mapping
from typing import Any

import click

from pufferfish.cli import sentences
from pufferfish.cli.options import FORCE, options
from pufferfish.cli.output import brief, print_csv, print_json, print_lines, print_table
from pufferfish.cli.process import Messages
from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import LEVEL, Estimate, Figure
from pufferfish.estimate.released import estimate_released
from pufferfish.files import checked_target, write_whole
from pufferfish.plans.plan import Plan
from pufferfish.plans.record import read_record
from pufferfish.release.postprocess import Postprocess

#: Frequencies that are printed for people; JSON and CSV hold them all.
_MOST_LINES = 40
_OPTIONS = f"""
--plan FILE  Plan that it was released by.
--record FILE  Public record of the release, with its scale or channel, instead of the plan.
--column COL  The released column, where it was renamed since.
--bounds LO HI  The --bounds it was released with.
--round  It was released with --round.
--min-scale T  The --min-scale it was released with.
-o --output FILE.csv  Write all estimates as CSV.
{FORCE}
--format table|json|csv  Form of what is printed on standard output.
"""


@click.command()
@click.argument("released")
@options(_OPTIONS)
@click.pass_obj
def estimate(
    messages: Messages, /, released: str, plan: str | None, record: str | None,
    column: str | None, output: str | None, force: bool, format: str, **stated: Any,
) -> None:  # fmt: skip
    """Estimate the original frequencies, mean and variance from RELEASED, a released table.

    The estimates are unbiased, each with its standard error and 95 % interval. They are of the
    released rows as they were, so that only the noise is uncertain. What cannot be estimated is
    named. The options --bounds, --round and --min-scale must be those of the release; a record
    holds them.

    \b
    Examples:
      pufferfish estimate released.csv --plan plan.json
      pufferfish estimate released.csv --plan plan.json --round --bounds no yes
      pufferfish estimate released.csv --record record.json -o estimates.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    by = plan or record
    if by is None or (plan and record):
        raise InputError("give what it was released by with --plan FILE or --record FILE")
    if plan:
        spec = Plan.load(plan).spec(allow_unchanged=True, **stated)
    elif any(stated.values()):
        raise InputError("--bounds, --round and --min-scale stand in the record")
    else:
        spec = read_record(by)
    if output is not None:
        checked_target(output, force, [released, by])
    found = estimate_released(released, spec, column=column)
    lines, notes = _lines(found), _notes(found)
    if output is not None:
        text = io.StringIO()
        print_csv(lines, text)
        write_whole(output, text.getvalue().encode(), force=force)
        messages.note(f"the estimates are saved as {output}")
    if format == "csv":
        print_csv(lines)
    elif format == "json":
        print_json({"rows": found.rows, "confidence": LEVEL, "figures": lines, "notes": notes})
    else:
        print_lines([f"{released}: {found.rows} rows, released by {by}",
                     sentences.mechanism_words(Postprocess(spec).mechanism), ""])  # fmt: skip
        shown = [_cells(line) for line in lines if line["estimate"] is not None]
        if shown:
            headers = ["", "estimate", "standard error", "95 % interval"]
            print_table(headers, shown[: _MOST_LINES + 2], [0])
            print_lines([""])
        print_lines(f"note: {note}" for note in notes)


def _lines(found: Estimate) -> list[dict[str, Any]]:
    """Return every figure as a row."""
    named: list[tuple[str, str | None, Figure | None]] = [
        ("mean", None, found.mean),
        ("variance", None, found.variance),
        *(("frequency", name, figure) for name, figure in found.frequencies.items()),
        *(("frequency", name, None) for name in found.not_estimable),
    ]
    return [
        {
            "figure": kind,
            "levels": levels,
            "estimate": figure and figure.estimate,
            "standard_error": figure and figure.standard_error,
            "low": figure and figure.interval[0],
            "high": figure and figure.interval[1],
        }
        for kind, levels, figure in named
    ]


def _cells(line: Mapping[str, Any]) -> list[str]:
    """Return a row of the table."""
    kind, levels, *numbers = line.values()
    value, error, low, high = (brief(number, 4) for number in numbers)
    interval = "published as it is" if error == "0" else f"{low} to {high}"
    return [kind if levels is None else f"share of {levels}", value, error, interval]


def _notes(found: Estimate) -> list[str]:
    """Return what is to be known of some estimates."""
    notes = ["of these rows as they were; errors are for the noise of the release alone"]
    if found.too_many_values:
        notes.append("no shares: there are too many values")
    if found.not_estimable:
        notes.append(f"cannot be estimated: {listed(found.not_estimable)}")
    if len(found.frequencies) > _MOST_LINES:
        notes.append(f"{len(found.frequencies)} shares; --format csv prints all")
    return notes
