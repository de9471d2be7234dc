# SPDX-License-Identifier: Apache-2.0
"""``pufferfish reproduce``: the paper's table, printed value beside ours."""

from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli.commands import StrictCommand
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import format_option
from pufferfish.errors import CheckFailed

if TYPE_CHECKING:
    from rich.console import Console

    from pufferfish.paper import FigureOne, Reproduction, Row

_CSV_COLUMNS = (
    "block", "epsilon", "mechanism", "printed", "rounded", "scale", "loss", "certified", "agrees",
)  # fmt: skip


@click.command(cls=StrictCommand, short_help="Compute the paper's table again.")
@format_option
@click.option(
    "--diabetes", metavar="FILE",
    help="Pima Indians Diabetes table (Glucose and Age): also check the paper's first figure.",
)  # fmt: skip
@click.pass_obj
def reproduce(messages: Messages, /, form: str, diabetes: str | None) -> None:
    """Compute all 150 cells of the paper's table, and the mechanisms that it does not have.

    Each printed value stands beside the computed scale. The counts behind the table are carried by
    the package; nothing is downloaded.

    The line '149 of 150 cells agree' is on standard output in a table, a note on standard error
    with csv, and the key 'summary' with json. With csv and --diabetes three tables follow each
    other on standard output, each with its own header, an empty line between them.

    \b
    Examples:
      pufferfish reproduce
      pufferfish reproduce --format csv
      pufferfish reproduce --diabetes diabetes.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    from pufferfish import paper

    # The file is read first: it is what can be wrong.
    figure = None if diabetes is None else paper.figure_one(diabetes)
    found = paper.reproduce()
    if form == "json":
        _print_json(found, figure)
    elif form == "csv":
        _print_csv(found, figure)
        messages.note(found.summary)
    else:
        _print_tables(found, figure)
    failed = [] if figure is None else [claim for claim in figure.claims if not claim.holds]
    if failed:
        raise CheckFailed(
            "; ".join(f"the {c.name} claim of the figure fails: {c.found}" for c in failed)
        )


def _print_json(found: "Reproduction", figure: "FigureOne | None") -> None:
    from pufferfish.cli.output import print_json

    data = found.to_dict()
    if figure is not None:
        data["figure_one"] = figure.to_dict()
    print_json(data)


def _print_csv(found: "Reproduction", figure: "FigureOne | None") -> None:
    from pufferfish.cli.output import print_csv

    print_csv(_CSV_COLUMNS, (cell.to_dict() for cell in found.cells))
    if figure is not None:
        # Two more tables, each with its own header, after an empty line.
        click.echo()
        print_csv(("x", "x_prime", "mass", "strict", "relaxed"), _figure_cells(figure))
        click.echo()
        print_csv(("x_prime", "strict", "relaxed"), _figure_sums(figure))


def _figure_cells(figure: "FigureOne") -> list[dict[str, Any]]:
    columns = (
        figure.x, figure.x_prime, figure.mass, figure.strict.cells, figure.relaxed.cells,
    )  # fmt: skip
    names = ("x", "x_prime", "mass", "strict", "relaxed")
    lists = (column.tolist() for column in columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


def _figure_sums(figure: "FigureOne") -> list[dict[str, Any]]:
    columns = (figure.columns, figure.strict.sums, figure.relaxed.sums)
    lists = (column.tolist() for column in columns)
    return [
        dict(zip(("x_prime", "strict", "relaxed"), row, strict=True))
        for row in zip(*lists, strict=True)
    ]


def _print_tables(found: "Reproduction", figure: "FigureOne | None") -> None:
    from pufferfish.cli.output import print_lines, stdout_console

    console = stdout_console()
    print_lines(
        console,
        [
            "Scales of the paper's table: as the paper prints them, and computed (rounded up).",
            "A star marks a printed value that the computed one does not round to.",
        ],
    )
    for block in dict.fromkeys(row.block for row in found.rows):
        _print_block(console, [row for row in found.rows if row.block == block])
    _print_reductions(console, found)
    console.print()
    print_lines(console, [found.summary, *found.why])
    if figure is not None:
        _print_figure(console, figure)


def _print_block(console: "Console", rows: "list[Row]") -> None:
    from pufferfish.cli.digits import rounded_up
    from pufferfish.cli.output import make_table, print_lines, print_table
    from pufferfish.rationals import show

    console.print()
    print_lines(console, [rows[0].title], "bold")
    columns = [("\neps", "right")]
    for name, cell in rows[0].cells.items():
        if cell.printed is not None:
            columns.append(("\npaper", "right"))
        columns.append((f"{name}\ncomputed" if cell.printed is not None else f"\n{name}", "right"))
    table = make_table(columns)
    for row in rows:
        cells = [show(row.epsilon)]
        for cell in row.cells.values():
            if cell.printed is not None:
                cells.append(cell.printed if cell.agrees else f"*{cell.printed}")
            cells.append(rounded_up(cell.scale, 8))
        wrong = any(cell.agrees is False for cell in row.cells.values())
        table.add_row(*cells, style="bold red" if wrong else "")
    print_table(console, table)


def _print_reductions(console: "Console", found: "Reproduction") -> None:
    from pufferfish.cli.output import make_table, print_lines, print_table

    console.print()
    print_lines(
        console, ["Noise reduction of relaxed in per cent, over epsilon from 0.1 to 1"], "bold"
    )
    table = make_table(
        [
            ("block", "text"),
            ("against", "left"),
            ("computed", "right"),
            ("paper", "right"),
            ("agrees", "left"),
        ]
    )
    for item in found.reductions:
        reported = "-" if item.reported_least is None else _range(
            item.reported_least, item.reported_most or ""
        )  # fmt: skip
        verdict = {True: "yes", False: "no", None: "-"}[item.agrees]
        computed = _range(f"{item.least:.1f}", f"{item.most:.1f}")
        table.add_row(item.title, item.against, computed, reported, verdict)
    print_table(console, table)


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _print_figure(console: "Console", figure: "FigureOne") -> None:
    from pufferfish.cli.digits import rounded_up
    from pufferfish.cli.output import make_table, print_lines, print_table
    from pufferfish.rationals import show

    strict, relaxed = rounded_up(figure.strict.scale), rounded_up(figure.relaxed.scale)
    console.print()
    print_lines(
        console, ["The paper's first figure: I = (e^(|x - x'|/scale) - e^eps) pi(x, x')"], "bold"
    )
    print_lines(
        console,
        [
            f"{figure.source}: Glucose in {figure.bins} bins from {show(figure.lowest)} to "
            f"{show(figure.highest)}, Age at most {show(figure.age)} (x) against above (x'), "
            f"epsilon {show(figure.epsilon)}",
            f"rows used {figure.rows_used}, set aside {figure.rows_set_aside}",
            f"wasserstein scale {strict}, relaxed scale {relaxed}; the sides need "
            f"{rounded_up(figure.side_columns)} (given x') and {rounded_up(figure.side_rows)} "
            "(given x)",
        ],
    )
    for names, rows, title in (
        (("x", "x'", "pi"), _figure_cells(figure), "I of every cell"),
        (("x'",), _figure_sums(figure), "sums of I over x"),
    ):
        console.print()
        print_lines(console, [title], "bold")
        heads = (*names, "I at wasserstein", "I at relaxed")
        table = make_table([(name, "right") for name in heads])
        for row in rows:
            table.add_row(*(_number(value) for value in row.values()))
        print_table(console, table)
    console.print()
    print_lines(
        console,
        [
            f"{'holds' if claim.holds else 'FAILS'}: {claim.text} ({claim.found})"
            for claim in figure.claims
        ],
    )


def _number(value: int | float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"
