# SPDX-License-Identifier: Apache-2.0
"""``pufferfish ledger``: open datasets, look at them, price a release, compute everything again."""

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from pufferfish.cli import describe, describe_ledger, signals
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import DELIMITER, delimiter_of, format_option
from pufferfish.cli.output import print_csv, print_json, print_lines, print_table
from pufferfish.errors import CheckFailed, counted
from pufferfish.ledger.ledger import Books, Ledger
from pufferfish.ledger.pricing import Price
from pufferfish.ledger.store import Dataset, ReleaseRecord, parse_budget
from pufferfish.numbers import show
from pufferfish.plans.plan import Plan
from pufferfish.tables.source import open_table

_FORMAT = format_option("table", "json", "csv")


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
    source = open_table(table, delimiter=delimiter_of(options))
    source.column(options["secret"])
    made = not os.path.lexists(Path(books).expanduser())
    if made:
        Ledger.create(books, waiting=signals.check)
    found = _opened(books, messages).dataset(
        options["dataset"], source, secret=options["secret"], budget=options["budget"],
        other_people=options["other_people"],
    )  # fmt: skip
    lines = [f"{books}: made, readable by you alone"] if made else []
    print_lines([*lines, describe_ledger.dataset_words(found)])


@ledger.command("price")
@click.argument("books")
@click.argument("table")
@click.option("--plan", "plan_file", metavar="FILE", required=True, help="Plan of calibrate.")
@click.option(
    "--out-of-support", type=click.Choice(("refuse", "clamp")), default="refuse",
    show_default=True, help="As it will be given to release.",
)  # fmt: skip
@click.option("--bounds", nargs=2, metavar="LO HI", help="As it will be given to release.")
@click.option("--min-scale", metavar="T", help="As it will be given to release.")
@click.option("--allow-unchanged", is_flag=True, help="As it will be given to release.")
@DELIMITER
@_FORMAT
@click.pass_obj
def price(messages: Messages, /, books: str, table: str, **options: Any) -> None:
    """Print what the joint loss would be with a release of TABLE; nothing is charged."""
    opened, plan = _opened(books, messages), Plan.load(options["plan_file"])
    found = opened.price(
        open_table(table, delimiter=delimiter_of(options)), plan,
        out_of_support=options["out_of_support"],
        bounds=options["bounds"] or None,
        min_scale=options["min_scale"],
        allow_unchanged=options["allow_unchanged"],
    )  # fmt: skip
    if options["form"] == "json":
        print_json(_price_to_dict(found))
    elif options["form"] == "csv":
        row = _price_to_dict(found)
        print_csv(tuple(row), [row])
    else:
        print_lines([f"{table}: {describe_ledger.dataset_words(found.dataset)}",
                     *describe_ledger.price_lines(found)])  # fmt: skip


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
    rows = [_release_to_dict(record) for record in found.releases]
    if form == "csv":
        print_csv(tuple(_release_to_dict(None)), rows)
    elif form == "json":
        print_json(
            {
                "notice": found.notice,
                "private": not found.exposed,
                "datasets": [_dataset_to_dict(d, found) for d in found.datasets],
                "releases": rows,
            }
        )
    else:
        _print_books(books, found)


@ledger.command("verify")
@click.argument("books")
@click.argument("table", required=False)
@DELIMITER
@click.pass_obj
def verify(messages: Messages, /, books: str, table: str | None, delimiter: str | None) -> None:
    """Check what BOOKS charged: its budgets and worst cases, and with TABLE the joint losses.

    Exit status 1 says that something is not as it should be.
    """
    source = None
    if table is not None:
        source = open_table(table, delimiter=delimiter_of({"delimiter": delimiter}))
    found = _opened(books, messages).verify(source, signals.check)
    if found.differences:
        raise CheckFailed(
            f"{books} is not as it should be: {counted(len(found.differences), 'fault')}: "
            f"{describe.joined(map(describe_ledger.difference_words, found.differences))}"
        )
    how = "budgets and worst cases" if table is None else (
        f"{found.recounted} joint losses computed again from {table}"
    )  # fmt: skip
    print_lines([f"{books}: {counted(found.releases, 'release')} checked ({how}); all as it "
                 "should be"])  # fmt: skip


def _opened(books: str, messages: Messages) -> Ledger:
    """Return a ledger; warn of one that others can read."""
    found = Ledger.open(books, waiting=signals.check)
    if found.store.exposed:
        messages.warning(
            f"others can read or write the ledger {books}; make it private with: chmod 600 {books}"
        )
    return found


def _exact(value: Fraction | None) -> str:
    return "inf" if value is None else show(value)


def _last(dataset: Dataset, books: Books) -> list[ReleaseRecord]:
    return [record for record in books.releases if record.dataset == dataset.name]


def _print_books(path: str, books: Books) -> None:
    """Print datasets, then all releases."""
    lines = [f"{path}: {counted(len(books.datasets), 'dataset')}, "
             f"{counted(len(books.releases), 'release')}"]  # fmt: skip
    for dataset in books.datasets:
        own = _last(dataset, books)
        spent = own[-1].bound if own else Fraction(0)
        loss = describe_ledger.spent_words(spent, dataset.budget)
        lines.append(f"{describe_ledger.dataset_words(dataset)}; {counted(len(own), 'release')}, "
                     f"joint loss at most {loss}")  # fmt: skip
    print_lines(lines)
    if books.releases:
        budgets = {dataset.name: dataset.budget for dataset in books.datasets}
        headers = ["id", "time", "dataset", "column", "joint loss", "bound", "state"]
        rows = [
            [r.id, r.time[:16], r.dataset, r.column,
             describe_ledger.spent_words(r.bound, budgets[r.dataset]), r.kind, r.state]
            for r in books.releases
        ]  # fmt: skip
        print_lines([""])
        print_table(headers, rows, left=[0, 1, 2, 3, 5, 6])
    print_lines(["", books.notice])


def _dataset_to_dict(dataset: Dataset, books: Books) -> dict[str, Any]:
    own = _last(dataset, books)
    spent = own[-1].bound if own else Fraction(0)
    return {
        "dataset": dataset.name,
        "secret": dataset.secret,
        "budget": float(dataset.budget),
        "budget_exact": show(dataset.budget),
        "table": dataset.digest,
        "rows": dataset.rows,
        "other_people": dataset.other_people,
        "opened": dataset.opened,
        "releases": len(own),
        "joint_loss": "inf" if spent is None else float(spent),
        "joint_loss_exact": _exact(spent),
    }


def _release_to_dict(record: ReleaseRecord | None) -> dict[str, Any]:
    names = ("sequence", "id", "time", "dataset", "column", "kind", "state")
    row: dict[str, Any] = {name: getattr(record, name, None) for name in names}
    bound = None if record is None else record.bound
    return row | {
        "joint_loss": "inf" if bound is None else float(bound),
        "joint_loss_exact": _exact(bound),
        "own_prior": None if record is None else record.own,
    }


def _price_to_dict(price: Price) -> dict[str, Any]:
    return {
        "dataset": price.dataset.name,
        "secret": price.dataset.secret,
        "column": price.column,
        "releases": price.releases,
        "joint_loss_before": "inf" if price.before is None else float(price.before),
        "joint_loss": price.loss,
        "joint_loss_exact": _exact(price.bound.upper),
        "bound": price.bound.kind,
        "budget": float(price.dataset.budget),
        "budget_exact": show(price.dataset.budget),
        "left": float(price.left),
        "fits": price.fits,
        "own_prior": price.own,
        "incomplete_rows": price.incomplete,
        "rows_per_person": price.rows,
    }
