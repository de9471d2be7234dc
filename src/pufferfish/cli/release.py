# SPDX-License-Identifier: Apache-2.0
"""``pufferfish release``: the released table, written by a plan."""

from typing import Any

import click

from pufferfish.cli import describe, process
from pufferfish.cli.ledger import price_words
from pufferfish.cli.options import CLAMP, DELIMITER, FORCE, option
from pufferfish.cli.output import after, print_lines
from pufferfish.cli.process import Messages
from pufferfish.errors import InputError
from pufferfish.files import checked_target
from pufferfish.ledger.ledger import Ledger
from pufferfish.plans.plan import Plan
from pufferfish.plans.record import write_record
from pufferfish.release.pipeline import prepare, release_file
from pufferfish.tables.source import open_table


@click.command()
@click.argument("table")
@option("--plan FILE", "Plan of calibrate.", "plan_file", required=True)
@option("-o --output OUT", "File to write: .csv, .tsv (.gz) or .parquet.", required=True)
@option(
    "--ledger BOOKS", "Charge the release to its dataset in this ledger, before anything is drawn; "
    "refused where the joint loss of all releases would exceed the budget.", "books",
)  # fmt: skip
@option(
    "--record FILE", "Also write what those who receive OUT may see of the plan, which is private."
)
@option(
    "--publish-scale", "With --record: also tell the scale. One that was computed from a table "
    "depends on every row of it.",
)  # fmt: skip
@option("--publish-channel", "With --record: also tell the channel.")
@option(
    "--keep COL", "Column to write beside the released one, as it is; may be repeated. The "
    "guarantee does not cover a release with kept columns.", multiple=True,
)  # fmt: skip
@CLAMP
@option(
    "--bounds LO HI", "Move what is released into these bounds, after the noise; for ordered "
    "levels two of their names or codes.",
)  # fmt: skip
@option(
    "--round", "Round what is released to integers; with --bounds ordered levels get their names "
    "back.",
)  # fmt: skip
@option(
    "--allow-unchanged", "Publish the column unchanged where the scale is 0 or the channel changes "
    "nothing.",
)  # fmt: skip
@option("--min-scale T", "Add at least the noise of this scale.")
@DELIMITER
@FORCE
@option(
    "--seed N", "Repeatable noise, for tests only: it protects nobody, and OUT must contain "
    "'test'.", type=int,
)  # fmt: skip
@click.pass_obj
def release(
    messages: Messages, /, table: str, plan_file: str, output: str, books: str | None,
    record: str | None, publish_scale: bool, publish_channel: bool, keep: tuple[str, ...],
    delimiter: str | None, force: bool, seed: int | None, **chosen: Any,
) -> None:  # fmt: skip
    """Send the public column of TABLE through the mechanism of a plan, and write OUT.

    Only the released column is written, unless --keep names more; rows without a public value are
    left out and counted. Nothing appears under the name OUT before it is complete.

    \b
    Examples:
      pufferfish release student.csv --plan plan.json -o released.csv
      pufferfish release student.csv --plan plan.json -o released.csv \\
          --round --bounds no yes --record record.json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    plan = Plan.load(plan_file)
    spec = plan.spec(**chosen)
    inputs = [path for path in (plan_file, books) if path is not None]
    if books is not None and (keep or seed is not None):
        raise InputError(
            "--keep and --seed cannot be given with --ledger: the joint loss does not cover kept "
            "columns, and seeded noise protects nobody"
        )
    if publish_scale if plan.scale is None else publish_channel:
        own = "--publish-channel" if plan.scale is None else "--publish-scale"
        raise InputError(f"the plan is for {plan.mechanism}: give {own}")
    if record is not None:
        checked_target(record, None, force, [table, output, *inputs])
    elif publish_scale or publish_channel:
        raise InputError("--publish-scale and --publish-channel are for --record FILE")
    source, charged = open_table(table, delimiter=delimiter), ""
    common: dict[str, Any] = {"force": force, "inputs": inputs}
    if books is None:
        with process.progress() as step:
            report = release_file(source, output, spec, keep, seed=seed, progress=step, **common)
    else:
        ledger = Ledger.open(books)
        with process.progress() as step:
            prepared = prepare(source, output, spec, progress=step, **common)
        process.check()
        with (
            ledger.charge(source, plan, **chosen) as done,
            process.progress() as step,
        ):
            report = prepared.write(step)
        charged = price_words(done.price)
    if record is not None:
        try:
            write_record(
                record, plan, report, spec, force=force, publish_scale=publish_scale,
                publish_channel=publish_channel,
            )  # fmt: skip
        except BaseException as error:
            error.add_note(f"{output} was written before")
            raise
        messages.note(f"the public record is saved as {record}")
    with after(output):
        print_lines(describe.release_lines(plan, plan_file, report, charged))
