# SPDX-License-Identifier: Apache-2.0
"""``pufferfish release``: the released table, written by a plan."""

from typing import Any

import click

from pufferfish.cli import describe, describe_ledger, signals
from pufferfish.cli.messages import Messages
from pufferfish.cli.options import CLAMP, DELIMITER
from pufferfish.cli.output import print_lines
from pufferfish.errors import InputError
from pufferfish.files import checked_target
from pufferfish.ledger.ledger import Ledger
from pufferfish.plans.plan import Plan
from pufferfish.plans.record import write_record
from pufferfish.release.pipeline import prepare, release_file
from pufferfish.tables.source import open_table

#: Options of the release that the plan does not say.
_CHOSEN = ("out_of_support", "bounds", "round", "allow_unchanged", "min_scale")


@click.command()
@click.argument("table")
@click.option("--plan", "plan_file", metavar="FILE", required=True, help="Plan of calibrate.")
@click.option(
    "-o", "--output", metavar="OUT", required=True,
    help="File to write: .csv, .tsv (.gz) or .parquet.",
)  # fmt: skip
@click.option(
    "--ledger", "books", metavar="BOOKS",
    help="Charge the release to its dataset in this ledger, before anything is drawn; refused "
    "where the joint loss of all releases would exceed the budget.",
)  # fmt: skip
@click.option(
    "--record", metavar="FILE",
    help="Also write what those who receive OUT may see of the plan, which is private.",
)  # fmt: skip
@click.option(
    "--publish-scale", is_flag=True,
    help="With --record: also tell the scale. One that was computed from a table depends on every "
    "row of it.",
)  # fmt: skip
@click.option("--publish-channel", is_flag=True, help="With --record: also tell the channel.")
@click.option(
    "--keep", multiple=True, metavar="COL",
    help="Column to write beside the released one, as it is; may be repeated. The guarantee does "
    "not cover a release with kept columns.",
)  # fmt: skip
@CLAMP
@click.option(
    "--bounds", nargs=2, metavar="LO HI",
    help="Move what is released into these bounds, after the noise; for ordered levels two of "
    "their names or codes.",
)  # fmt: skip
@click.option(
    "--round", is_flag=True,
    help="Round what is released to integers; with --bounds ordered levels get their names back.",
)  # fmt: skip
@click.option(
    "--allow-unchanged", is_flag=True,
    help="Publish the column unchanged where the scale is 0 or the channel changes nothing.",
)  # fmt: skip
@click.option("--min-scale", metavar="T", help="Add at least the noise of this scale.")
@DELIMITER
@click.option("--force", is_flag=True, help="Replace outputs that exist.")
@click.option(
    "--seed", type=int, metavar="N",
    help="Repeatable noise, for tests only: it protects nobody, and OUT must contain 'test'.",
)  # fmt: skip
@click.pass_obj
def release(messages: Messages, /, table: str, **options: Any) -> None:
    """Send the public column of TABLE through the mechanism of a plan, and write OUT.

    Only the released column is written, unless --keep names more; rows without a public value are
    left out and counted. Nothing appears under the name OUT before it is complete.

    \b
    Examples:
      pufferfish release student.csv --plan plan.json -o released.csv
      pufferfish release student.csv --plan plan.json -o released.csv \\
          --round --bounds no yes --record record.json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    plan_file, output, books = options["plan_file"], options["output"], options["books"]
    plan = Plan.load(plan_file)
    chosen = {name: options[name] for name in _CHOSEN}
    spec = plan.spec(**chosen)
    inputs = [path for path in (plan_file, books) if path is not None]
    _check_record(options, plan, [table, output, *inputs])
    source = open_table(table, delimiter=options["delimiter"])
    common: dict[str, Any] = {"force": options["force"], "inputs": inputs}
    if books is None:
        report = release_file(
            source, output, spec, options["keep"],
            seed=options["seed"], progress=signals.check, **common,
        )  # fmt: skip
        charged = ""
    else:
        ledger = Ledger.open(books, waiting=signals.check)
        prepared = prepare(source, output, spec, progress=signals.check, **common)
        signals.check()
        with ledger.charge(
            source, plan, keep=options["keep"], seed=options["seed"], **chosen
        ) as done:
            report = prepared.write(signals.check)
        charged = describe_ledger.price_words(done.price)
    if options["record"] is not None:
        try:
            write_record(
                options["record"], plan, report, spec, force=options["force"],
                publish_scale=options["publish_scale"], publish_channel=options["publish_channel"],
            )  # fmt: skip
        except BaseException as error:
            error.add_note(f"{output} was written before")
            raise
        messages.note(f"the public record is saved as {options['record']}")
    print_lines(describe.release_lines(plan, plan_file, report, charged))


def _check_record(options: dict[str, Any], plan: Plan, others: list[str]) -> None:
    """Check that a record can be written, before anything is released."""
    if options["publish_scale" if plan.scale is None else "publish_channel"]:
        own = "--publish-channel" if plan.scale is None else "--publish-scale"
        raise InputError(f"the plan is for {plan.mechanism}: give {own}")
    if options["record"] is not None:
        checked_target(options["record"], None, options["force"], others)
    elif options["publish_scale"] or options["publish_channel"]:
        raise InputError("--publish-scale and --publish-channel are for --record FILE")
