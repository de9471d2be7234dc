# SPDX-License-Identifier: Apache-2.0
"""``pufferfish ledger``: open datasets, look at them, price a release, compute everything again."""

import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from pufferfish.cli.options import CLAMP, DELIMITER, opened, options
from pufferfish.cli.output import print_json, print_lines, print_table
from pufferfish.errors import CheckFailed, counted, joined, quoted
from pufferfish.files import home_expanded
from pufferfish.ledger.counts import COUNTS
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.pricing import Price
from pufferfish.ledger.records import Dataset, parse_budget, parse_name
from pufferfish.ledger.store import NOTICE
from pufferfish.ledger.verify import Difference
from pufferfish.numbers import float_down, float_up, show_short
from pufferfish.queries.plan import load_plan
from pufferfish.report.digits import at_most
from pufferfish.tables.identity import identity_of

_CHANCES = "each scale from noisy counts has its own chance to fail, channels from them share one"
_FORMAT = "--format table|json  Form of what is printed on standard output.\n"
_OPEN = f"""
--dataset NAME (required)  Name of the dataset.
--secret COL (required)  Column that holds the secret.
--budget E (required)  The most that the joint loss of all releases may be; it is never changed.
--other-people  The people of TABLE are others than those of the datasets that BOOKS has about the
    secret.
{DELIMITER}"""
_PRICE = f"""
--plan FILE (required)  Plan of calibrate or query.
{CLAMP}
--bounds LO HI  As it will be given to release.
--min-scale T  As it will be given to release.
--allow-unchanged  As it will be given to release.
{DELIMITER}"""


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
      pufferfish release student.csv --plan plan.json --ledger books.db \\
          -o released.csv
      pufferfish ledger show books.db
      pufferfish ledger verify books.db student.csv
    """  # noqa: D301  # \b keeps click from wrapping the examples
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@ledger.command("open")
@click.argument("books")
@click.argument("table")
@options(_OPEN)
def open_dataset(books: str, table: str, dataset: str, **given: Any) -> None:
    """Open a dataset for TABLE in BOOKS, which is made if there is no such file."""
    parse_name(dataset)  # before a file is made, as the budget
    parse_budget(given["budget"])
    source = opened(table, given)
    source.column(given["secret"])
    if not os.path.lexists(home_expanded(Path(books))):
        identity_of(source)  # it can be read to its end
        Ledger.create(books)
        print_lines([f"{books}: made, readable by you alone"])
    print_lines([_dataset_words(Ledger.open(books).dataset(dataset, source, **given))])


@ledger.command("price")
@click.argument("books")
@click.argument("table")
@options(_PRICE + _FORMAT)
def price(books: str, table: str, plan: str, **given: Any) -> None:
    """Print what the joint loss would be with a release of TABLE; nothing is charged."""
    source, form = opened(table, given), given.pop("format")
    found = Ledger.open(books).price(source, load_plan(plan), **given)
    if form == "json":
        left = float_down(found.left)
        facts = {"bound": found.bound.kind, "joint_loss": found.loss, "left": left}
        print_json(vars(found) | facts | {"fits": found.fits})
    else:
        print_lines([f"{table}: {_dataset_words(found.dataset)}", *_price_lines(found)])
    if not found.fits:
        raise CheckFailed("the release does not fit the budget; it would be refused")


@ledger.command("show")
@click.argument("books")
@options(_FORMAT)
def show_books(books: str, format: str) -> None:
    """Show the datasets of BOOKS and all releases.

    "released" means that the output was in place; "charged" that the command did not come so far,
    or was ended: it counts all the same. Noisy counts are charged when they are drawn.
    """
    found = Ledger.open(books).show()
    # Releases are in the order of their charges: the last bound is of them all.
    spent = {dataset.name: Fraction(0) for dataset in found.datasets}
    spent |= {record.dataset: record.bound for record in found.releases}
    if format == "json":
        datasets = [vars(d) | {"joint_loss": float_up(spent[d.name])} for d in found.datasets]
        rows = [vars(r) | {"plan": None, "joint_loss": float_up(r.bound)} for r in found.releases]
        print_json({"notice": NOTICE, "datasets": datasets, "releases": rows})
        return
    for d in found.datasets:
        words = f"{_dataset_words(d)}; joint loss at most {at_most(spent[d.name], d.budget)}"
        print_lines([words])
        cells = [
            [r.id, r.time[:10], r.column, at_most(r.bound, d.budget), r.kind, r.state]
            for r in found.releases
            if r.dataset == d.name
        ]
        headers = ["id", "time", "column", "joint loss", "bound", "state"]
        if cells:
            print_table(headers, cells, [0, 1, 2, 4, 5])
    counts = [_CHANCES] if any(COUNTS in r.kind for r in found.releases) else []
    print_lines([*counts, "", NOTICE])


@ledger.command("verify")
@click.argument("books")
@click.argument("table", required=False)
@options(DELIMITER)
def verify(books: str, table: str | None, **reading: str | None) -> None:
    """Check what BOOKS charged: its budgets and worst cases, and with TABLE the joint losses.

    Exit status 1 says that something is not as it should be.
    """
    source = opened(table, reading)
    found = Ledger.open(books).verify(source)
    if found.differences:
        raise CheckFailed(
            f"{books} is not as it should be: {counted(len(found.differences), 'fault')}: "
            f"{joined(map(_difference_words, found.differences))}"
        )
    how = "budgets and worst cases"
    if table is not None:
        how = f"{counted(found.recounted, 'release')} computed again from {table}"
    checked = counted(found.releases, "release")
    print_lines([f"{books}: {checked} checked ({how}); all as it should be"])


def _dataset_words(dataset: Dataset) -> str:
    others = ", other people than before" if dataset.other_people else ""
    return (
        f"dataset {quoted(dataset.name)}, {counted(dataset.rows, 'row')}, secret "
        f"{quoted(dataset.secret)}, budget {show_short(dataset.budget)}{others}"
    )


def price_words(price: Price) -> str:
    """Return what is spent after a release."""
    upper = math.inf if price.bound.upper is None else price.bound.upper
    return (
        f"joint loss of {quoted(price.dataset.name)} with this release of {quoted(price.column)}: "
        f"at most {at_most(upper, price.dataset.budget)} ({price.kind})"
        f"{f'; {_CHANCES}' if price.plans else ''}"
    )


def _price_lines(price: Price) -> list[str]:
    budget, fits = price.dataset.budget, "DOES NOT FIT"
    if price.fits:
        fits = f"fits, and leaves {math.floor(price.left * 10**6) / 10**6}"
    lines = [
        f"charged already: {counted(price.releases, 'release')}, joint loss at most "
        f"{at_most(price.before, budget)}",
        price_words(price),
        f"budget {show_short(budget)}: {fits}",
    ]
    return [*lines, f"worst cases are charged: {price.why}"] if price.why else lines


def _difference_words(difference: Difference) -> str:
    bounds = [difference.recorded, difference.computed]
    said = " against ".join(show_short(bound) for bound in bounds if bound is not None)
    why = f": {difference.reason}" if difference.reason else ""
    return f"{difference.dataset}, release {difference.release}: {difference.fault} ({said}){why}"
