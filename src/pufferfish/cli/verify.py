# SPDX-License-Identifier: Apache-2.0
"""``pufferfish verify``: the loss of a saved plan, recomputed from scratch."""

import click

from pufferfish.cli import process
from pufferfish.cli.options import PRIOR, READING, opened, options, scenario_known
from pufferfish.cli.output import print_lines
from pufferfish.errors import InputError
from pufferfish.queries.plan import QueryPlan, load_plan
from pufferfish.report import sentences
from pufferfish.report.queries import verified_query_lines

_OTHER = "--other-prior  Judge the plan under a prior that is not the one it was computed from.\n"


@click.command()
@click.argument("plan")
@click.argument("table", required=False)
@options(PRIOR + READING + _OTHER)
def verify(
    plan: str, table: str | None, prior: tuple[str, ...], other_prior: bool, **reading: str | None
) -> None:
    """Recompute the loss of PLAN under the prior of TABLE, or of prior files.

    A plan from noisy counts (calibrate --publishable) needs neither, and a plan of a query is
    verified for the model in it, or for that of TABLE.

    The loss and the certificate in the plan file are ignored; cleaning, coding, pairs and the
    region of the prior are taken from it. Whether the mechanism is the best is not checked. Exit
    status 1 says that the plan does not keep within epsilon, that the prior is another one than the
    plan's, or that the table does not fit the plan.

    \b
    Examples:
      pufferfish verify plan.json student.csv
      pufferfish verify plan.json --prior prior.json
      pufferfish verify plan.json other.csv --other-prior
    """  # noqa: D301  # \b keeps click from wrapping the examples
    loaded, source = load_plan(plan), opened(table, reading)
    if isinstance(loaded, QueryPlan):
        if prior:
            raise InputError("--prior: for plans of columns; a plan of a query holds its model")
        asked = source and loaded.query_of_table(source)
        proof = loaded.verify(asked, other_prior=other_prior)
        print_lines(verified_query_lines(plan, loaded, proof, asked))
        return
    scenario = scenario_known(loaded, loaded.noisy is not None, source, prior)
    process.check()
    certificate = loaded.verify(scenario, other_prior=other_prior)
    same = scenario is not None and loaded.is_for(scenario)
    print_lines(sentences.verified_lines(plan, loaded, certificate, same))
