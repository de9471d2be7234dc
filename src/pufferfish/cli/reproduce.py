# SPDX-License-Identifier: Apache-2.0
"""``pufferfish reproduce``: the paper's table of results, printed value beside ours."""

from collections.abc import Sequence
from itertools import groupby

import click

from pufferfish.cli.options import FORCE, options
from pufferfish.cli.output import print_json, print_lines, print_table
from pufferfish.errors import CheckFailed
from pufferfish.numbers import rounded_up, show
from pufferfish.paper.figure import BINS, Claim, FigureOne, figure_one
from pufferfish.paper.table import Cell, Reproduction
from pufferfish.paper.table import reproduce as reproduce_table

_OPTIONS = f"""
--format table|json  Form of what is printed on standard output.
--diabetes FILE  Pima Indians Diabetes table (columns Glucose and Age): also compute the first
    figure.
--figures DIR  Draw the paper's figures that show results into this folder, as SVG (extra plots);
    the first one needs --diabetes.
{FORCE}"""


@click.command()
@options(_OPTIONS)
def reproduce(format: str, diabetes: str | None, figures: str | None, force: bool) -> None:
    """Compute all 150 cells of the paper's table, and the mechanisms that it does not have.

    Each printed value stands beside the computed scale. The package carries the counts behind the
    table; nothing is downloaded.

    \b
    Examples:
      pufferfish reproduce
      pufferfish reproduce --diabetes diabetes.csv --figures figures
    """  # noqa: D301  # \b keeps click from wrapping the examples
    # The file is read first: it is what can be wrong.
    figure = None if diabetes is None else figure_one(diabetes)
    found, drawn = reproduce_table(), {}
    if figures is not None:
        from pufferfish.paper.drawings import draw  # slow to import, and needs an extra

        drawn = draw(figures, found, figure, force=force)
    if format == "json":
        more = {"figure_one": figure} if figure else {}
        print_json(vars(found) | more | ({"figures": drawn} if drawn else {}))
    else:
        _print(found)
        if figure is not None:
            print_lines(["", *_figure_lines(figure)])
        for path, claims in drawn.items():
            print_lines(["", f"{path}:", *map(_claim_line, claims)])
    claims = (*(figure.claims if figure else ()), *(c for own in drawn.values() for c in own))
    failed = [
        f"a claim of the figure fails: {c.found}" for c in dict.fromkeys(claims) if not c.holds
    ]
    if failed:
        raise CheckFailed("; ".join(failed))


def _print(found: Reproduction) -> None:
    print_lines(["Scales of the paper's table: as it prints them, and computed (rounded up).",
                 "A star: the computed value does not round to the printed one."])  # fmt: skip
    for title, cells in groupby(found.cells, key=lambda cell: cell.title):
        print_lines(["", title])
        rows = [list(row) for _, row in groupby(cells, key=lambda cell: cell.epsilon)]
        headers = ["\neps"]
        for cell in rows[0]:
            if cell.printed is not None:
                headers.append("\npaper")
            headers.append(f"{cell.mechanism}\ncomputed")
        print_table(headers, map(_row, rows))
    print_lines(["", "Noise reduction of relaxed in per cent, over epsilon from 0.1 to 1"])
    reductions = [
        [
            item.title,
            item.against,
            f"{min(item.percent):.1f} to {max(item.percent):.1f}",
            " to ".join(item.reported or "-"),
            {True: "yes", False: "no", None: "-"}[item.agrees],
        ]
        for item in found.reductions
    ]
    print_table(["block", "against", "computed", "paper", "agrees"], reductions, left=[0, 1, 4])
    print_lines(["", found.summary, *found.why])


def _row(row: Sequence[Cell]) -> list[str]:
    cells = [show(row[0].epsilon)]
    for cell in row:
        if cell.printed is not None:
            cells.append(f"*{cell.printed}" if cell.agrees is False else cell.printed)
        cells.append(rounded_up(cell.scale, 8))
    return cells


def _figure_lines(figure: FigureOne) -> list[str]:
    low, high = map(show, figure.range)
    return [
        "The paper's first figure: I = (e^(|x - x'|/scale) - e^eps) pi(x, x')",
        f"{figure.source}: Glucose in {BINS} bins from {low} to {high}, Age at most "
        f"{show(figure.age)} (x) against above (x'), epsilon {show(figure.epsilon)}",
        f"rows used {figure.rows_used}, set aside {figure.rows_set_aside}",
        f"wasserstein scale {rounded_up(figure.strict.scale)}, relaxed scale "
        f"{rounded_up(figure.relaxed.scale)}",
        *map(_claim_line, figure.claims),
    ]


def _claim_line(claim: Claim) -> str:
    return f"{'holds' if claim.holds else 'FAILS'}: {claim.text} ({claim.found})"
