# SPDX-License-Identifier: Apache-2.0
"""``pufferfish reproduce``: the paper's table of results, printed value beside ours."""

from collections.abc import Sequence
from itertools import groupby

import click

from pufferfish.cli.options import format_option
from pufferfish.cli.output import print_json, print_lines, print_table
from pufferfish.errors import CheckFailed
from pufferfish.numbers import rounded_up, show
from pufferfish.paper.figure import FigureOne, figure_one
from pufferfish.paper.table import Cell, Reproduction
from pufferfish.paper.table import reproduce as reproduce_table


@click.command()
@format_option("table", "json")
@click.option(
    "--diabetes", metavar="FILE",
    help="Pima Indians Diabetes table (columns Glucose and Age): also compute the first figure.",
)  # fmt: skip
def reproduce(form: str, diabetes: str | None) -> None:
    """Compute all 150 cells of the paper's table, and the mechanisms that it does not have.

    Each printed value stands beside the computed scale. The package carries the counts behind the
    table; nothing is downloaded.

    \b
    Examples:
      pufferfish reproduce
      pufferfish reproduce --diabetes diabetes.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    # The file is read first: it is what can be wrong.
    figure = None if diabetes is None else figure_one(diabetes)
    found = reproduce_table()
    if form == "json":
        data = found.to_dict()
        print_json(data if figure is None else {**data, "figure_one": figure.to_dict()})
    else:
        _print(found, figure)
    claims = () if figure is None else figure.claims
    failed = [f"the {c.name} claim of the figure fails: {c.found}" for c in claims if not c.holds]
    if failed:
        raise CheckFailed("; ".join(failed))


def _print(found: Reproduction, figure: FigureOne | None) -> None:
    """Print the table block by block, the noise reductions and the figure's claims."""
    print_lines(
        [
            "Scales of the paper's table: as the paper prints them, and computed (rounded up).",
            "A star marks a printed value that the computed one does not round to.",
        ]
    )
    for title, cells in groupby(found.cells, key=lambda cell: cell.title):
        print_lines(["", title])
        _print_block([list(row) for _, row in groupby(cells, key=lambda cell: cell.epsilon)])
    print_lines(["", "Noise reduction of relaxed in per cent, over epsilon from 0.1 to 1"])
    rows = []
    for item in found.reductions:
        reported = _range(item.reported_least or "-", item.reported_most or "-")
        computed = _range(f"{item.least:.1f}", f"{item.most:.1f}")
        agrees = {True: "yes", False: "no", None: "-"}[item.agrees]
        rows.append([item.title, item.against, computed, reported, agrees])
    print_table(["block", "against", "computed", "paper", "agrees"], rows, left=[0, 1, 4])
    print_lines(["", found.summary, *found.why])
    if figure is not None:
        print_lines(["", *_figure_lines(figure)])


def _print_block(rows: Sequence[Sequence[Cell]]) -> None:
    headers = ["eps"]
    for cell in rows[0]:
        name = cell.mechanism
        headers += [name] if cell.printed is None else ["paper", f"{name}\ncomputed"]
    lines = []
    for row in rows:
        line = [show(row[0].epsilon)]
        for cell in row:
            if cell.printed is not None:
                line.append("*" * (cell.agrees is False) + cell.printed)
            line.append(rounded_up(cell.scale, 8))
        lines.append(line)
    marked = [k for k, row in enumerate(rows) if any(c.agrees is False for c in row)]
    print_table(headers, lines, marked=marked)


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _figure_lines(figure: FigureOne) -> list[str]:
    low, high = figure.range
    lines = [
        "The paper's first figure: I = (e^(|x - x'|/scale) - e^eps) pi(x, x')",
        f"{figure.source}: Glucose in {figure.bins} bins from {show(low)} to {show(high)}, Age at "
        f"most {show(figure.age)} (x) against above (x'), epsilon {show(figure.epsilon)}",
        f"rows used {figure.rows_used}, set aside {figure.rows_set_aside}",
        f"wasserstein scale {rounded_up(figure.strict.scale)}, relaxed scale "
        f"{rounded_up(figure.relaxed.scale)}; the sides need "
        f"{rounded_up(figure.side_columns)} (given x') and "
        f"{rounded_up(figure.side_rows)} (given x)",
    ]
    holds = {True: "holds", False: "FAILS"}
    return lines + [f"{holds[c.holds]}: {c.text} ({c.found})" for c in figure.claims]
