# SPDX-License-Identifier: Apache-2.0
"""``pufferfish release``: the released table, written by a plan."""

import os
from typing import Any

import click

from pufferfish.cli import process
from pufferfish.cli.answers import release_answer
from pufferfish.cli.ledger import price_words
from pufferfish.cli.options import CLAMP, FORCE, READING, opened, options
from pufferfish.cli.output import after, print_lines
from pufferfish.cli.process import Messages
from pufferfish.errors import InputError
from pufferfish.files import checked_target
from pufferfish.ledger.ledger import Ledger
from pufferfish.plans.record import write_record
from pufferfish.queries.plan import QueryPlan, load_plan
from pufferfish.release.pipeline import Prepared
from pufferfish.report import sentences

_OPTIONS = f"""
--plan FILE (required)  Plan of calibrate.
-o --output OUT (required)  File to write: .csv, .tsv (.gz) or .parquet.
--ledger BOOKS  Charge the release to its dataset in this ledger, before anything is drawn; refused
    where the joint loss of all releases would exceed the budget.
--record FILE  Also write what those who receive OUT may see of the plan, which is private.
--publish-channel  With --record: also tell the channel, which 'pufferfish estimate' needs. One that
    was computed from a table tells of its rows.
--publish-scale  The same for the scale of noise.
--keep COL ...  Column to write beside the released one, as it is; may be repeated. The guarantee
    does not cover a release with kept columns.
{CLAMP}
--bounds LO HI  Move what is released into these bounds, after the noise; for ordered levels two of
    their names or codes.
--round  Round what is released to integers; with --bounds ordered levels get their names back.
--allow-unchanged  Publish the column unchanged where the scale is 0 or the channel changes nothing.
--min-scale T  Add at least the noise of this scale.
--labels-only  Leave out the column of sets of values that some channels publish beside the released
    one. Estimates must then come from its labels alone: their errors are larger, or there are none.
{READING}{FORCE}
--seed N  Repeatable noise, for tests only: it protects nobody, and OUT must contain 'test'.
"""


@click.command()
@click.argument("table", required=False)
@options(_OPTIONS)
@click.pass_obj
def release(
    messages: Messages, /, table: str | None, plan: str, output: str, ledger: str | None,
    record: str | None, publish_scale: bool, publish_channel: bool, keep: tuple[str, ...],
    force: bool, seed: int | None, **chosen: Any,
) -> None:  # fmt: skip
    """Send the public column of TABLE through the mechanism of a plan, and write OUT.

    Only the released column is written, unless --keep names more; rows without a public value are
    left out and counted. Nothing appears under the name OUT before it is complete. By a plan of a
    query, what is written is its answer.

    \b
    Examples:
      pufferfish release student.csv --plan plan.json -o released.csv
      pufferfish release student.csv --plan plan.json -o released.csv \\
          --round --bounds no yes --record record.json
    """  # noqa: D301  # \b keeps click from wrapping the examples
    source = opened(table, chosen, needed=True, ledger=ledger)
    loaded = load_plan(plan)
    inputs, publish = [path for path in (plan, ledger) if path], publish_scale or publish_channel
    if record is not None:
        if os.path.realpath(record) == os.path.realpath(output):
            raise InputError(f"--record and --output both name {output}; give two names")
        checked_target(record, force, [*source.inputs, *inputs])
    elif publish:
        raise InputError("--publish-scale and --publish-channel are for --record FILE")
    if isinstance(loaded, QueryPlan):
        others = chosen | {"keep": keep, "publish_channel": publish_channel}
        release_answer(
            messages, loaded, source, plan, output, record, publish_scale, ledger, force, seed,
            others,
        )  # fmt: skip
        return
    spec = loaded.spec(**chosen)
    if publish_scale if loaded.scale is None else publish_channel:
        own = "--publish-channel" if loaded.scale is None else "--publish-scale"
        raise InputError(f"the plan is for {loaded.mechanism}: give {own}")
    if ledger is not None and (keep or seed is not None):
        raise InputError("--ledger accounts neither for --keep nor for --seed; leave them out")
    prepared = Prepared(source, output, spec, keep, force=force, seed=seed, inputs=inputs)
    charged: list[str] = []
    plans = 0
    if ledger is None:
        if loaded.composition is not None:
            messages.warning(
                "the plan was calibrated beside earlier releases, but this one is charged to no "
                "ledger (--ledger); the next release will not know of it"
            )
        report = prepared.write(process.progress())
    else:
        books = Ledger.open(ledger)
        prepared.rehearse(process.progress())
        process.check()
        with books.charge(source, loaded, **chosen) as done:
            report = prepared.write(process.progress())
        charged, plans = [price_words(done.price)], done.price.plans
    with after(output):
        if record is not None:
            write_record(record, loaded, report, spec, force=force, publish=publish, plans=plans)
            messages.note(f"the public record is saved as {record}")
            if publish and loaded.from_rows:
                what = "channel" if publish_channel else "scale"
                messages.warning(f"the record tells the {what}, and so of the prior and its rows")
        if spec.labels_only:
            messages.note(sentences.labels_only_words(loaded, report.rows_released))
        print_lines([*sentences.release_lines(loaded, plan, report), *charged])
