# SPDX-License-Identifier: Apache-2.0
"""``pufferfish estimate``: the numbers of the original column, from a released one and its plan."""

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli.commands import StrictCommand
from pufferfish.cli.files import check_there, load_plan
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import format_option
from pufferfish.errors import InputError, listed

if TYPE_CHECKING:
    from rich.table import Table

    from pufferfish.estimate import Estimate, Figure
    from pufferfish.estimate.column import Column
    from pufferfish.plan import Plan

#: Frequencies that are printed for people; JSON and CSV hold them all.
MOST_LINES = 40
_FIGURES = ("estimate", "standard_error", "low", "high")
_CSV_COLUMNS = ("figure", "levels", *_FIGURES)
_HEADERS = (("estimate", "right"), ("standard error", "right"), ("95 % interval", "right"))
_TARGET = (
    "estimates for these rows as they were before the release; standard errors and 95 % intervals "
    "are for the noise of the release alone, not for drawing the rows from a population"
)


@click.command(cls=StrictCommand, short_help="Get the original numbers back from a release.")
@click.argument("released")
@click.option("--plan", "plan_file", metavar="FILE", help="Plan that it was released by.")
@click.option(
    "--column", metavar="COL",
    help="The released column, where it has another name than the plan's own.",
)  # fmt: skip
@click.option(
    "--bounds", nargs=2, metavar="LO HI",
    help="The bounds it was released with; for ordered levels two of their names or codes.",
)  # fmt: skip
@click.option("--round", "rounding", is_flag=True, help="It was released with --round.")
@click.option("--min-scale", metavar="T", help="The --min-scale it was released with.")
@format_option
@click.pass_obj
def estimate(messages: Messages, /, released: str, **options: Any) -> None:
    """Estimate the original frequencies, mean and variance from RELEASED, a released table.

    The estimates are unbiased, each with its standard error and 95 % interval. They are of the
    released rows themselves, so that only the noise is uncertain. A channel that merges levels
    leaves only sums of frequencies, or nothing: what is lost is named. --bounds, --round and
    --min-scale must be those of the release. Estimating costs no privacy.

    A plan is private. An analyst without it needs from its owner the scale (and the support, for
    frequencies) or the channel: these too were computed from the prior, and whether to give them
    away is the owner's decision. In Python, pufferfish.estimate.estimate_laplace and
    estimate_channel take them in the place of a plan.

    \b
    Examples:
      pufferfish estimate released.csv --plan plan.json
      pufferfish estimate released.csv --plan plan.json --round --bounds no yes
      pufferfish estimate released.parquet --plan plan.json --format csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    plan_file = options["plan_file"]
    if plan_file is None:
        raise InputError(
            "give the plan that it was released by with --plan FILE; from a channel or a scale "
            "alone, pufferfish.estimate.estimate_channel and estimate_laplace do it in Python"
        )
    check_there(released, "file")
    plan = load_plan(plan_file)
    from pufferfish.estimate.column import read_column
    from pufferfish.estimate.figures import condition_notes
    from pufferfish.estimate.released import estimate_column

    column = read_column(released, plan.rules, options["column"])
    stated = {
        "bounds": options["bounds"],
        "round": options["rounding"],
        "min_scale": options["min_scale"],
    }
    found = estimate_column(column, plan, **stated)
    warned = condition_notes(found.condition_number)
    for text in warned:
        messages.warning(text)
    notes = [note for note in found.notes if note not in warned]
    if options["form"] == "json":
        _print_json(found, column, plan, stated)
    elif options["form"] == "csv":
        for note in notes:
            messages.note(note)
        _print_csv(found)
    else:
        _print_table(found, notes, column, plan, plan_file, stated)


def _print_json(found: "Estimate", column: "Column", plan: "Plan", stated: dict[str, Any]) -> None:
    from pufferfish.cli.output import print_json
    from pufferfish.estimate import LEVEL

    print_json(
        {
            "released": {"source": column.source, "column": column.name, "rows": found.rows},
            "plan": {"mechanism": plan.mechanism, "epsilon": plan.epsilon, "scale": plan.scale},
            "options": stated,
            "confidence": LEVEL,
            **{key: value for key, value in found.to_dict().items() if key != "rows"},
        }
    )


def _print_csv(found: "Estimate") -> None:
    """Print every figure on a line; several levels, whose sum it is, as a JSON list."""
    from pufferfish.cli.output import print_csv

    nothing = dict.fromkeys(_FIGURES)
    lines: list[dict[str, Any]] = [
        {
            "figure": "frequency" if len(entry.labels) == 1 else "sum of frequencies",
            "levels": entry.labels[0]
            if len(entry.labels) == 1
            else json.dumps(entry.labels, ensure_ascii=False),
        }
        | {name: entry.to_dict()[name] for name in _FIGURES}
        for entry in found.entries
    ]
    lines += [{"figure": "frequency", "levels": name} | nothing for name in found.not_estimable]
    lines += [
        {"figure": name, "levels": None} | (nothing if figure is None else figure.to_dict())
        for name, figure in (("mean", found.mean), ("variance", found.variance))
    ]
    print_csv(_CSV_COLUMNS, lines)


def _print_table(
    found: "Estimate",
    notes: Sequence[str],
    column: "Column",
    plan: "Plan",
    plan_file: str,
    stated: dict[str, Any],
) -> None:
    from pufferfish.cli.output import print_lines, print_table, stdout_console
    from pufferfish.errors import counted
    from pufferfish.support import Levels

    console = stdout_console()
    named = "" if column.name is None else f", column {column.name!r}"
    print_lines(
        console,
        [
            f"{column.source}{named}: {counted(found.rows, 'row')}, released by {plan_file}",
            _mechanism_line(plan, stated),
            _TARGET,
        ],
    )
    figures = [
        (name, figure)
        for name, figure in (("mean", found.mean), ("variance", found.variance))
        if figure is not None
    ]
    if found.entries:
        every = found.entries
        telling = [entry for entry in every if entry.telling or len(every) <= MOST_LINES]
        shown = telling[:MOST_LINES]
        if shown:
            console.print()
            print_table(
                console, _table("frequency of", [(_label(entry.labels), entry) for entry in shown])
            )
        if len(shown) < len(found.entries):
            print_lines(console, [_left_out(len(shown), len(telling), len(found.entries))])
    if figures:
        console.print()
        print_table(console, _table("figure", figures))
    console.print()
    if figures and isinstance(plan.support, Levels):
        codes = listed(f"{name} = {k}" for k, name in enumerate(plan.support.names))
        print_lines(console, [f"mean and variance are those of the codes {codes}"])
    if found.condition_number is not None:
        print_lines(console, [f"condition number of the channel: {found.condition_number:.3g}"])
    print_lines(console, [f"note: {note}" for note in notes])


def _mechanism_line(plan: "Plan", stated: dict[str, Any]) -> str:
    """Return how the column was released, in words."""
    from pufferfish.cli.digits import shown_epsilon, shown_scale
    from pufferfish.estimate.released import release_of, releaser_of
    from pufferfish.mechanisms import Channel
    from pufferfish.support import Levels

    applied = releaser_of(release_of(plan, **stated)).mechanism
    if isinstance(applied, Channel):
        what = "levels" if isinstance(applied.outputs, Levels) else "values"
        how = f"a channel from {applied.inputs.size} to {applied.outputs.size} {what}"
    else:
        how = f"discrete Laplace noise of scale {shown_scale(applied.scale)}"
    more = ", rounded" if stated["round"] else ""
    if stated["bounds"]:
        more += f", moved into the bounds {' and '.join(stated['bounds'])}"
    return f"mechanism {plan.mechanism}, epsilon {shown_epsilon(plan)}: {how}{more}"


def _left_out(shown: int, telling: int, every: int) -> str:
    """Return what is not printed for people, and how to get it."""
    which = f"the first {shown} of " if shown < telling else ""
    vague = every - telling
    lost = f", of which {vague:,} have a 95 % interval longer than 1" if vague else ""
    return f"{which}{every:,} frequencies{lost}; --format csv or --format json prints all of them"


def _label(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{listed(labels)} (their sum)"


def _table(header: str, figures: "Sequence[tuple[str, Figure]]") -> "Table":
    from pufferfish.cli.output import make_table
    from pufferfish.cli.output import text as shown

    table = make_table([(header, "text"), *_HEADERS])
    errors = [f.standard_error for _, f in figures if 0 < f.standard_error < math.inf]
    places = [max(0, 1 - math.floor(math.log10(error))) for error in errors] or [6]
    # Two digits of the least error, but no more than four of the greatest.
    decimals = min(max(places), min(places) + 2, 15)
    for label, figure in figures:
        low, high = (_number(end, decimals) for end in figure.interval)
        table.add_row(
            shown(label),
            _number(figure.estimate, decimals),
            _number(figure.standard_error, decimals, small=True),
            f"{low} to {high}",
        )
    return table


def _number(value: float, decimals: int, small: bool = False) -> str:
    """Return a number with so many decimals; ``small``: not as 0 where it is more than that."""
    from pufferfish.cli.digits import nearest

    if not math.isfinite(value) or abs(value) >= 1e15:
        return nearest(value, 8)
    text = f"{value:.{decimals}f}"
    if float(text):
        return text
    return nearest(value, 2) if small and value else text.lstrip("-")
