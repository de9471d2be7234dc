# SPDX-License-Identifier: Apache-2.0
"""``pufferfish ledger``: open accounts, look at them, price a release, compute everything again."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli import signals
from pufferfish.cli.books import CSV_COLUMNS, account_to_dict, detail_to_dict, print_books, row_of
from pufferfish.cli.charging import (
    number,
    open_ledger,
    price_lines,
    price_to_dict,
)
from pufferfish.cli.commands import StrictCommand
from pufferfish.cli.files import check_there, load_plan
from pufferfish.cli.groups import Commands
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import format_option, one_of
from pufferfish.errors import CheckFailed, InputError, listed

if TYPE_CHECKING:
    from pufferfish.plan import Plan

#: What a plan from a given prior is told of the table, in the order of `Plan.with_columns`.
CLEANING = ("secret", "missing", "step", "missing_as_level")


@click.group(
    cls=Commands,
    invoke_without_command=True,
    short_help="Account for all releases about a secret.",
)
@click.pass_context
def ledger(ctx: click.Context) -> None:
    """Account for what all releases about a secret tell together.

    A ledger is a file that only you can read. It holds a budget for each secret; a release is
    charged to it before anything is written, and refused where the joint loss of all releases of
    the table would exceed the budget. It holds counts of the tables: keep it private.

    \b
    Examples:
      pufferfish ledger open books.db --secret higher --budget 1
      pufferfish calibrate student.csv --secret higher --public romantic \\
          --order no,yes --ledger books.db --epsilon 0.1 --save plan.json
      pufferfish ledger price books.db student.csv --plan plan.json
      pufferfish release student.csv --plan plan.json --ledger books.db -o released.csv
      pufferfish ledger show books.db
    """  # noqa: D301  # \b keeps click from wrapping the examples
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@ledger.command("open", cls=StrictCommand, short_help="Open the account of a secret.")
@click.argument("path", metavar="LEDGER")
@click.option("--secret", metavar="COL", help="Column that holds the secret.")
@click.option(
    "--budget", metavar="B",
    help="What the joint loss of all releases of one table may be at most: a decimal or a fraction "
    "such as 1/3. It is never changed.",
)  # fmt: skip
@click.pass_obj
def open_account(messages: Messages, /, path: str, secret: str | None, budget: str | None) -> None:
    """Open the account of a secret in LEDGER, which is made if there is no such file.

    \b
    Examples:
      pufferfish ledger open books.db --secret higher --budget 1
    """  # noqa: D301  # \b keeps click from wrapping the examples
    from pufferfish.atomic import home_expanded
    from pufferfish.cli.output import print_lines, stdout_console
    from pufferfish.ledger.account import parse_budget
    from pufferfish.ledger.ledger import Ledger

    if secret is None or budget is None:
        raise InputError("give --secret COL and --budget B")
    parse_budget(budget)  # before a file is made
    if not secret.strip():
        raise InputError("--secret must be the name of a column")
    made = False
    place = home_expanded(Path(path))
    if not os.path.lexists(place):
        try:
            Ledger.create(path)
            made = True
        except InputError:
            if not place.exists():
                raise
            # Somebody else was quicker, and it is opened like any other.
    books = open_ledger(path, messages)
    account = books.open_account(secret, budget)
    lines = [f"{path}: made, readable by you alone"] if made else []
    lines.append(f"account for {account.secret!r} opened with the budget {number(account.budget)}")
    with books.store.reading() as view:
        lines.append(view.notice())
    print_lines(stdout_console(), lines)


@ledger.command("show", cls=StrictCommand, short_help="Show accounts and releases.")
@click.argument("path", metavar="LEDGER")
@click.option("--secret", metavar="COL", help="Only the account of this secret.")
@format_option
@click.pass_obj
def show(messages: Messages, /, path: str, secret: str | None, form: str) -> None:
    """Show the accounts of LEDGER, their tables, and all releases.

    "released" means that the output was in place; "charged" that the command did not come so far,
    or was ended: it counts all the same.
    """
    from pufferfish.cli.output import print_csv, print_json

    books = open_ledger(path, messages)
    with books.store.reading() as view:
        notice = view.notice()
        accounts = [view.account(secret)] if secret is not None else view.accounts()
        tables = {account.secret: view.tables(account.secret) for account in accounts}
        releases = view.releases(secret)
    if form == "csv":
        budgets = {account.secret: account.budget for account in accounts}
        print_csv(CSV_COLUMNS, [row_of(r, budgets[r.secret]) for r in releases])
        messages.note(notice)
    elif form == "json":
        print_json(
            {
                "notice": notice,
                "private": not books.store.exposed,
                "accounts": [account_to_dict(a, tables[a.secret], releases) for a in accounts],
                "releases": [row_of(r, None) | {"detail": detail_to_dict(r)} for r in releases],
            }
        )
    else:
        print_books(path, notice, accounts, tables, releases)


@ledger.command("price", cls=StrictCommand, short_help="Say what a release would cost.")
@click.argument("path", metavar="LEDGER")
@click.argument("table")
@click.option("--plan", "plan_file", metavar="FILE", help="Plan that calibrate saved.")
@click.option("--secret", metavar="COL", help="Column of the secret, for a plan that names none.")
@click.option("--public", metavar="COL", help="Column to release, for a plan that names none.")
@click.option(
    "--missing", multiple=True, metavar="TEXT",
    help="Text that means a missing value, for such a plan; may be repeated.",
)  # fmt: skip
@click.option("--missing-as-level", is_flag=True, help="Missing is a level of such a plan.")
@click.option("--step", metavar="G", help="Step to which values are rounded, for such a plan.")
@click.option(
    "--prior", "priors", multiple=True, metavar="FILE",
    help="Prior file that the plan was calibrated for, if it was not for TABLE.",
)  # fmt: skip
@click.option(
    "--prior-table", metavar="FILE",
    help="Other table that the plan was calibrated for, if it was not for TABLE.",
)  # fmt: skip
@click.option(
    "--out-of-support", callback=one_of("refuse", "clamp"), metavar="[refuse|clamp]",
    default="refuse", show_default=True,
    help="What happens to a value that is not in the plan's support.",
)  # fmt: skip
@click.option("--min-scale", metavar="T", help="As it will be given to release.")
@format_option
@click.pass_obj
def price(messages: Messages, /, path: str, table: str, **options: Any) -> None:
    """Say what the joint loss would be with a release of TABLE by a plan; nothing is charged.

    \b
    Examples:
      pufferfish ledger price books.db student.csv --plan plan.json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    from pufferfish.cli.judging import calibrated_for
    from pufferfish.cli.output import print_csv, print_json, print_lines, stdout_console

    if options["plan_file"] is None:
        raise InputError("give the plan with --plan FILE")
    check_there(table, "file")
    books = open_ledger(path, messages)
    plan = load_plan(options["plan_file"])
    if plan.rules is None:
        if options["public"] is None:
            raise InputError(
                "the prior did not come from a table: name the column to release with --public COL"
            )
        plan = plan.with_columns(options["public"], *(options[name] for name in CLEANING))
    else:
        given = [name for name in ("public", *CLEANING) if options[name] not in (None, (), False)]
        if given:
            names = listed(f"--{name.replace('_', '-')}" for name in given)
            raise InputError(f"{names} cannot be given: the plan says it already")
    plan = in_force(plan, options["out_of_support"], options["min_scale"])
    found = books.price(
        table,
        plan,
        out_of_support=options["out_of_support"],
        prior=calibrated_for(plan, options["priors"], options["prior_table"]),
    )
    signals.check()
    if options["form"] == "json":
        print_json(price_to_dict(found))
    elif options["form"] == "csv":
        row = price_to_dict(found)
        notes = row.pop("notes")
        print_csv(tuple(row), [row])
        for note in notes:
            messages.note(note)
    else:
        print_lines(stdout_console(), price_lines(table, found))


@ledger.command("verify", cls=StrictCommand, short_help="Compute every joint loss again.")
@click.argument("path", metavar="LEDGER")
@click.pass_obj
def verify(messages: Messages, /, path: str) -> None:
    """Compute every joint loss in LEDGER again, from the counts and plans that it holds.

    Whether the counts are those of the tables is not looked at. Exit status 1 says that something
    is not as it should be.
    """
    from pufferfish.cli.output import print_lines, stdout_console
    from pufferfish.cli.progress import steps
    from pufferfish.errors import counted

    books = open_ledger(path, messages)
    total = len(books.entries())
    with steps("computing joint losses", max(1, total)) as done:

        def progress(checked: int, every: int) -> None:
            signals.check()
            done()

        found = books.verify(progress)
    lines = []
    for d in found.differences:
        release = "" if d.release is None else f", release {d.release}"
        lines.append(f"{d.secret!r}, table {d.digest[:12]}{release}: {d.what}")
    if lines:
        print_lines(stdout_console(), lines)
        raise CheckFailed(
            f"the ledger {path} is not as it should be: {counted(len(lines), 'fault')}"
        )
    losses = "1 joint loss" if found.releases == 1 else f"{found.releases} joint losses"
    print_lines(
        stdout_console(),
        [f"{path}: {losses} computed again; all as recorded"],
    )


def in_force(plan: "Plan", out_of_support: str, min_scale: str | None) -> "Plan":
    """Return a plan whose noise is raised to the least scale that was asked for.

    Raises
    ------
    InputError
        If an option does not suit it.
    """
    from dataclasses import replace

    from pufferfish.release.releaser import Releaser

    spec = plan.release_spec(
        out_of_support=out_of_support, min_scale=min_scale, allow_unchanged=True
    )
    return replace(plan, applied=Releaser(spec).mechanism)
