# SPDX-License-Identifier: Apache-2.0
"""``pufferfish ledger``: open datasets, look at them, price a release, compute everything again."""

import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from pufferfish.cli import describe, describe_ledger, signals
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import CLAMP, DELIMITER, format_option
from pufferfish.cli.output import print_json, print_lines, print_table
from pufferfish.errors import CheckFailed, counted
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.store import parse_budget
from pufferfish.numbers import float_down, float_up
from pufferfish.plans.plan import Plan
from pufferfish.tables.source import open_table

_FORMAT = format_option("table", "json")
#: Options of release that change what is charged.
_CHARGED = ("out_of_support", "bounds", "min_scale", "allow_unchanged")


@click.group(invoke_without_command=True)
@click.pass_context
def ledger(ctx: click.Context) -> None:
    """Account for what all releases of a dataset tell together about its secret.

    BOOKS is a file that only you can read. A dataset is a table as it is when it is opened, one
    secret and a budget; a release is charged to it before anything is drawn, and refused where the
    joint loss of all its releases would exceed the budget.

    \b
    Examples:
      pufferfish ledger open books.db --dataset students student.csv \\
          --secret higher --budget 1
      pufferfish ledger price books.db student.csv --plan plan.json
      pufferfish release student.csv --plan plan.json --ledger books.db -o released.csv
      pufferfish ledger show books.db
      pufferfish ledger verify books.db student.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@ledger.command("open")
@click.argument("books")
@click.argument("table")
@click.option("--dataset", metavar="NAME", required=True, help="Name of the dataset.")
@click.option("--secret", metavar="COL", required=True, help="Column that holds the secret.")
@click.option(
    "--budget", metavar="E", required=True,
    help="What the joint loss of all releases may be at most; it is never changed.",
)  # fmt: skip
@click.option(
    "--other-people", is_flag=True,
    help="The people of TABLE are others than those of the datasets that BOOKS has about the "
    "secret.",
)  # fmt: skip
@DELIMITER
@click.pass_obj
def open_dataset(messages: Messages, /, books: str, table: str, **options: Any) -> None:
    """Open a dataset for TABLE in BOOKS, which is made if there is no such file."""
    parse_budget(options["budget"])  # before a file is made
    source = open_table(table, delimiter=options["delimiter"])
    source.column(options["secret"])
    made = not os.path.lexists(Path(books).expanduser())
    if made:
        Ledger.create(books, waiting=signals.check)
    found = _opened(books, messages).dataset(
        options["dataset"], source,
        **{name: options[name] for name in ("secret", "budget", "other_people")},
    )  # fmt: skip
    lines = [f"{books}: made, readable by you alone"] if made else []
    print_lines([*lines, describe_ledger.dataset_words(found)])


@ledger.command("price")
@click.argument("books")
@click.argument("table")
@click.option("--plan", "plan_file", metavar="FILE", required=True, help="Plan of calibrate.")
@CLAMP
@click.option("--bounds", nargs=2, metavar="LO HI", help="As it will be given to release.")
@click.option("--min-scale", metavar="T", help="As it will be given to release.")
@click.option("--allow-unchanged", is_flag=True, help="As it will be given to release.")
@DELIMITER
@_FORMAT
@click.pass_obj
def price(messages: Messages, /, books: str, table: str, **options: Any) -> None:
    """Print what the joint loss would be with a release of TABLE; nothing is charged."""
    opened, plan = _opened(books, messages), Plan.load(options["plan_file"])
    source = open_table(table, delimiter=options["delimiter"])
    found = opened.price(source, plan, **{name: options[name] for name in _CHARGED})
    if options["form"] == "table":
        dataset = describe_ledger.dataset_words(found.dataset)
        print_lines([f"{table}: {dataset}", *describe_ledger.price_lines(found)])
        return
    print_json(
        vars(found)
        | {"dataset": vars(found.dataset), "bound": found.bound.kind, "fits": found.fits}
        | {"joint_loss": found.loss, "left": float_down(found.left)}
    )


@ledger.command("show")
@click.argument("books")
@_FORMAT
@click.pass_obj
def show_books(messages: Messages, /, books: str, form: str) -> None:
    """Show the datasets of BOOKS and all releases.

    "released" means that the output was in place; "charged" that the command did not come so far,
    or was ended: it counts all the same.
    """
    found = _opened(books, messages).show()
    spent = [
        (dataset, len(own), own[-1].bound if own else Fraction(0))
        for dataset in found.datasets
        for own in [[r for r in found.releases if r.dataset == dataset.name]]
    ]
    if form == "json":
        rows = [vars(r) | {"plan": None, "joint_loss": _double(r.bound)} for r in found.releases]
        datasets = [
            vars(dataset) | {"releases": releases, "joint_loss": _double(upper)}
            for dataset, releases, upper in spent
        ]
        print_json(
            {"notice": found.notice, "private": not found.exposed, "datasets": datasets,
             "releases": rows}
        )  # fmt: skip
        return
    lines = [
        f"{books}: {counted(len(spent), 'dataset')}, {counted(len(found.releases), 'release')}"
    ]
    for dataset, releases, upper in spent:
        loss = describe_ledger.spent_words(upper, dataset.budget)
        lines.append(f"{describe_ledger.dataset_words(dataset)}; {counted(releases, 'release')}, "
                     f"joint loss at most {loss}")  # fmt: skip
    print_lines(lines)
    if found.releases:
        budgets = {dataset.name: dataset.budget for dataset in found.datasets}
        cells = [
            [r.id, r.time[:16], r.dataset, r.column,
             describe_ledger.spent_words(r.bound, budgets[r.dataset]), r.kind, r.state]
            for r in found.releases
        ]  # fmt: skip
        headers = ["id", "time", "dataset", "column", "joint loss", "bound", "state"]
        print_table(headers, cells, [0, 1, 2, 3, 5, 6])
    print_lines([found.notice])


@ledger.command("verify")
@click.argument("books")
@click.argument("table", required=False)
@DELIMITER
@click.pass_obj
def verify(messages: Messages, /, books: str, table: str | None, delimiter: str | None) -> None:
    """Check what BOOKS charged: its budgets and worst cases, and with TABLE the joint losses.

    Exit status 1 says that something is not as it should be.
    """
    source = None if table is None else open_table(table, delimiter=delimiter)
    found = _opened(books, messages).verify(source, signals.check)
    if found.differences:
        raise CheckFailed(
            f"{books} is not as it should be: {counted(len(found.differences), 'fault')}: "
            f"{describe.joined(map(describe_ledger.difference_words, found.differences))}"
        )
    how = f"{found.recounted} joint losses computed again from {table}"
    how = "budgets and worst cases" if table is None else how
    print_lines(
        [f"{books}: {counted(found.releases, 'release')} checked ({how}); all as it should be"]
    )


def _opened(books: str, messages: Messages) -> Ledger:
    """Return a ledger; warn of one that others can read."""
    found = Ledger.open(books, waiting=signals.check)
    if found.store.exposed:
        messages.warning(
            f"others can read or write the ledger {books}; make it private with: chmod 600 {books}"
        )
    return found


def _double(value: Fraction | None) -> float:
    return math.inf if value is None else float_up(value)
