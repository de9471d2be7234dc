# SPDX-License-Identifier: Apache-2.0
"""``pufferfish report``: one HTML file that explains a plan."""

import click

from pufferfish.cli import process
from pufferfish.cli.options import FORCE, PRIOR, READING, opened, options, scenario_known
from pufferfish.cli.process import Messages
from pufferfish.plans.plan import Plan

_OPTIONS = f"""
-o --output FILE.html (required)  The file to write.
--public  Write a report that may be published: it holds nothing that was computed from rows, but of
    a plan from noisy counts (calibrate --publishable) everything.
{PRIOR}{READING}{FORCE}"""


@click.command()
@click.argument("plan")
@click.argument("table", required=False)
@options(_OPTIONS)
@click.pass_obj
def report(
    messages: Messages, /, plan: str, table: str | None, output: str, public: bool,
    prior: tuple[str, ...], force: bool, **reading: str | None,
) -> None:  # fmt: skip
    """Write a report of PLAN: what is hidden from whom, what is left, and how it was proved.

    The report is one HTML file that opens without a network. It is private, and needs the TABLE or
    prior that the plan was computed from, which is verified again; a public one takes none.

    \b
    Examples:
      pufferfish report plan.json student.csv -o report.html
      pufferfish report plan.json --public -o public.html
    """  # noqa: D301  # \b keeps click from wrapping the examples
    from pufferfish.report.page import check_report, write_report  # slow to import

    source = opened(table, reading)
    check_report(output, force, [plan, *(source.inputs if source else ()), *prior])
    loaded = Plan.load(plan)
    alone = public or loaded.noisy is not None
    scenario = scenario_known(loaded, alone, source, prior)
    process.check()
    write_report(output, loaded, scenario, public=public, source=table or "TABLE", force=force)
    messages.note(f"the report is saved as {output}; it is {'public' if alone else 'private'}")
