# SPDX-License-Identifier: Apache-2.0
"""``pufferfish sweep``: many calibrations, to one table."""

from typing import Any

import click

from pufferfish.cli.options import FORCE, READING, columns, epsilons, mechanisms, opened, options
from pufferfish.cli.process import Messages, progress
from pufferfish.errors import counted

_OPTIONS = f"""
--secret S,T,... ... (required)  Columns that hold secrets.
--public A,B,... ... (required)  Columns to be published; each secret is combined with each.
--epsilon E1,E2,... ... (required)  Largest losses, such as 0.1,0.5,1.
--mechanism M1,M2,...|all ...  Mechanisms to compute; by default all that apply.
--missing TEXT ...  Text that means a missing value, besides the empty cell; may be repeated.
--decimal MARK  Decimal mark of the numbers: . (by default) or ,
{READING}
--confidence C  Calibrate for the distributions that the rows were drawn from, as calibrate does.
--tv-radius R  Calibrate for every prior within this distance, as calibrate does.
--jobs N  Processes; by default one for each core.
-o --output OUT (required)  The table to write: its name ends in .csv, .tsv (.gz) or .parquet.
{FORCE}"""


@click.command()
@click.argument("table", required=False)
@options(_OPTIONS)
@click.pass_obj
def sweep(messages: Messages, /, table: str | None, **given: Any) -> None:
    """Calibrate for many columns, secrets, epsilons and mechanisms, and write one table.

    Each pair of columns is calibrated for as if nothing else were published; text is levels without
    an order, for a channel. The same command goes on with a sweep that was stopped.

    \b
    Examples:
      pufferfish sweep student.csv --secret sex,higher --public G3,absences,Mjob \\
          --epsilon 0.1,1 -o sweep.parquet
    """  # noqa: D301  # \b keeps click from wrapping the examples
    from pufferfish.report.sweep import sweep as sweep_of  # slow to import

    found = sweep_of(
        opened(table, given, needed=True), secrets=columns(given.pop("secret"), "--secret"),
        publics=columns(given.pop("public"), "--public"), epsilons=epsilons(given.pop("epsilon")),
        mechanisms=mechanisms(given.pop("mechanism") or ["all"]), progress=progress(noun="cells"),
        **given | {"decimal": given["decimal"] or "."},
    )  # fmt: skip
    nulls = (found.column(name).null_count for name in ("reason", "warnings"))
    failed, warned = (counted(found.num_rows - n, "row") for n in nulls)
    messages.note(f"{given['output']} is private; {failed} with a reason, {warned} with warnings")
