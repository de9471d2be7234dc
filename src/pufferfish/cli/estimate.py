# SPDX-License-Identifier: Apache-2.0
"""``pufferfish estimate``: the numbers of the original column, from a released one and its plan."""

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

import click

from pufferfish.cli import describe
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import format_option
from pufferfish.cli.output import jsonable, print_csv, print_json, print_lines, print_table
from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import Estimate, Figure
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
@click.option("--round", "rounding", is_flag=True, help="It was released with --round.")
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
    if record is not None:
        if options["bounds"] or options["rounding"] or options["min_scale"]:
            raise InputError("--bounds, --round and --min-scale stand in the record")
        spec = read_record(record)
    else:
        plan = Plan.load(plan_file)
        spec = plan.spec(
            bounds=options["bounds"] or None,
            round=options["rounding"],
            min_scale=options["min_scale"],
            allow_unchanged=True,
        )
    if output is not None:
        checked_target(output, None, options["force"], [released, plan_file or record])
    found = estimate_released(released, spec, column=options["column"])
    lines = _figures(found)
    if output is not None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(jsonable(line) for line in lines)
        write_whole(output, text.getvalue().encode(), force=options["force"])
        messages.note(f"the estimates are saved as {output}")
    if options["form"] == "csv":
        print_csv(_COLUMNS, lines)
    elif options["form"] == "json":
        print_json(_to_dict(found, released))
    else:
        where = f"{released}: {found.rows} rows, released by {plan_file or record}"
        _print(found, [where, describe.mechanism_words(spec.mechanism)])


def _figures(found: Estimate) -> list[dict[str, Any]]:
    """Return every figure as a row; several levels, whose sum it is, as a JSON list."""
    lines: list[dict[str, Any]] = []
    for entry in found.entries:
        one = len(entry.labels) == 1
        name = "frequency" if one else "sum of frequencies"
        levels = entry.labels[0] if one else json.dumps(entry.labels, ensure_ascii=False)
        lines.append({"figure": name, "levels": levels, **_figure(entry)})
    lines += [
        {"figure": "frequency", "levels": name, **_figure(None)} for name in found.not_estimable
    ]
    both = (("mean", found.mean), ("variance", found.variance))
    return lines + [{"figure": name, "levels": None, **_figure(figure)} for name, figure in both]


def _figure(figure: Figure | None) -> dict[str, float | None]:
    if figure is None:
        return dict.fromkeys(_COLUMNS[2:])
    low, high = figure.interval
    return {
        "estimate": figure.estimate,
        "standard_error": figure.standard_error,
        "low": low,
        "high": high,
    }


def _to_dict(found: Estimate, released: str) -> dict[str, Any]:
    return {
        "released": released,
        "rows": found.rows,
        "confidence": 0.95,
        "frequencies": [{"labels": entry.labels, **_figure(entry)} for entry in found.entries],
        "not_estimable": found.not_estimable,
        "mean": None if found.mean is None else _figure(found.mean),
        "variance": None if found.variance is None else _figure(found.variance),
        "notes": _notes(found),
    }


def _print(found: Estimate, header: Sequence[str]) -> None:
    """Print estimates for people."""
    print_lines([*header, "estimates for these rows as they were before the release", ""])
    shown: list[tuple[str, Figure]] = [
        (" or ".join(entry.labels[:4]), entry) for entry in found.entries[:_MOST_LINES]
    ]
    both = (("mean", found.mean), ("variance", found.variance))
    shown += [(name, figure) for name, figure in both if figure is not None]
    errors = [f.standard_error for _, f in shown if 0 < f.standard_error < math.inf]
    places = max([max(0, 1 - math.floor(math.log10(error))) for error in errors] or [6])
    rows = [
        [
            name,
            *(_number(v, places) for v in (f.estimate, f.standard_error)),
            f"{_number(f.interval[0], places)} to {_number(f.interval[1], places)}",
        ]
        for name, f in shown
    ]
    print_table(["share of", "estimate", "standard error", "95 % interval"], rows, left=[0])
    lines = [""]
    if len(found.entries) > _MOST_LINES:
        lines.append(f"{_MOST_LINES} of {len(found.entries)} shares; --format csv prints all")
    if found.not_estimable:
        lines.append(f"cannot be estimated: {listed(found.not_estimable)}")
    print_lines([*lines, *(f"note: {note}" for note in _notes(found))])


def _notes(found: Estimate) -> list[str]:
    """Return what is to be known of some estimates."""
    notes = ["standard errors are for the noise of the release, not for drawing the rows"]
    if found.few_changes:
        notes.append("some intervals are longer than 1.96 standard errors, as few rows change")
    if found.too_many_values:
        notes.append("no frequencies: there are too many values")
    return notes


def _number(value: float, places: int) -> str:
    if not math.isfinite(value) or abs(value) >= 1e15 or places > 12:
        return f"{value:.6g}"
    text = f"{value:.{places}f}"
    return text if float(text) else text.lstrip("-")
