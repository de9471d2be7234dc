# SPDX-License-Identifier: Apache-2.0
"""``pufferfish estimate``: the numbers of the original column, from a released one and its plan."""

import json
import math
from collections.abc import Mapping
from typing import Any

import click

from pufferfish.cli import describe
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import format_option
from pufferfish.cli.output import csv_text, print_csv, print_json, print_lines, print_table
from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import LEVEL, Estimate, Figure
from pufferfish.estimate.released import estimate_released
from pufferfish.files import checked_target, write_whole
from pufferfish.plans.plan import Plan
from pufferfish.plans.record import read_record

#: Frequencies that are printed for people; JSON and CSV hold them all.
_MOST_LINES = 40
_COLUMNS = ("figure", "levels", "estimate", "standard_error", "low", "high")


@click.command()
@click.argument("released")
@click.option("--plan", "plan_file", metavar="FILE", help="Plan that it was released by.")
@click.option(
    "--record", metavar="FILE",
    help="Public record of the release, with its scale or channel, instead of the plan.",
)  # fmt: skip
@click.option("--column", metavar="COL", help="The released column, where it was renamed since.")
@click.option("--bounds", nargs=2, metavar="LO HI", help="The --bounds it was released with.")
@click.option("--round", is_flag=True, help="It was released with --round.")
@click.option("--min-scale", metavar="T", help="The --min-scale it was released with.")
@click.option("-o", "--output", metavar="FILE.csv", help="Write all estimates as CSV.")
@click.option("--force", is_flag=True, help="Replace an output that exists.")
@format_option("table", "json", "csv")
@click.pass_obj
def estimate(messages: Messages, /, released: str, **options: Any) -> None:
    """Estimate the original frequencies, mean and variance from RELEASED, a released table.

    The estimates are unbiased, each with its standard error and 95 % interval. They are of the
    released rows as they were, so that only the noise is uncertain. What cannot be estimated is
    named. --bounds, --round and --min-scale must be those of the release; a record holds them.

    \b
    Examples:
      pufferfish estimate released.csv --plan plan.json
      pufferfish estimate released.csv --plan plan.json --round --bounds no yes
      pufferfish estimate released.csv --record record.json -o estimates.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    plan_file, record, output = options["plan_file"], options["record"], options["output"]
    if (plan_file is None) == (record is None):
        raise InputError("give what it was released by with --plan FILE or --record FILE")
    stated = {name: options[name] for name in ("bounds", "min_scale", "round")}
    if record is None:
        spec = Plan.load(plan_file).spec(allow_unchanged=True, **stated)
    elif any(stated.values()):
        raise InputError("--bounds, --round and --min-scale stand in the record")
    else:
        spec = read_record(record)
    if output is not None:
        checked_target(output, None, options["force"], [released, plan_file or record])
    found = estimate_released(released, spec, column=options["column"])
    lines, notes = _lines(found), _notes(found)
    if output is not None:
        write_whole(output, csv_text(_COLUMNS, lines).encode(), force=options["force"])
        messages.note(f"the estimates are saved as {output}")
    if options["form"] == "csv":
        print_csv(_COLUMNS, lines)
    elif options["form"] == "json":
        print_json({"rows": found.rows, "confidence": LEVEL, "figures": lines, "notes": notes})
    else:
        print_lines([f"{released}: {found.rows} rows, released by {plan_file or record}",
                     describe.mechanism_words(spec.mechanism), ""])  # fmt: skip
        shown = [line for line in lines if line["estimate"] is not None]
        cells = [_cells(line) for line in (*shown[:-2][:_MOST_LINES], *shown[-2:])]
        print_table(["", "estimate", "standard error", "95 % interval"], cells, [0])
        print_lines(["", *(f"note: {note}" for note in notes)])


def _lines(found: Estimate) -> list[dict[str, Any]]:
    """Return every figure as a row; several levels, whose sum it is, as a JSON list."""
    named: list[tuple[str, str | None, Figure | None]] = [
        ("frequency", entry.labels[0], entry)
        if len(entry.labels) == 1
        else ("sum of frequencies", json.dumps(entry.labels, ensure_ascii=False), entry)
        for entry in found.entries
    ]
    named += [("frequency", name, None) for name in found.not_estimable]
    named += [("mean", None, found.mean), ("variance", None, found.variance)]
    lines = []
    for kind, levels, figure in named:
        values: tuple[float | None, ...] = (None,) * 4
        if figure is not None:
            values = (figure.estimate, figure.standard_error, *figure.interval)
        lines.append(dict(zip(_COLUMNS, (kind, levels, *values), strict=True)))
    return lines


def _cells(line: Mapping[str, Any]) -> list[str]:
    """Return a row of the table, to two digits of its standard error."""
    error = line["standard_error"]
    regular = 1e-9 < error < math.inf
    places = max(0, 1 - math.floor(math.log10(error))) if regular else 6
    estimate, _, low, high = (f"{line[name]:.{places}f}" for name in _COLUMNS[2:])
    name = line["figure"] if line["levels"] is None else f"share of {line['levels']}"
    return [name, estimate, f"{error:.2g}", f"{low} to {high}"]


def _notes(found: Estimate) -> list[str]:
    """Return what is to be known of some estimates."""
    notes = ["of these rows as they were; errors are for the noise of the release alone"]
    if found.few_changes:
        notes.append("some intervals are longer than 1.96 standard errors, as few rows change")
    if found.too_many_values:
        notes.append("no shares: there are too many values")
    if found.not_estimable:
        notes.append(f"cannot be estimated: {listed(found.not_estimable)}")
    if len(found.entries) > _MOST_LINES:
        notes.append(f"{len(found.entries)} shares; --format csv prints all")
    return notes
