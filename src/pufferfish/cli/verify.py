# SPDX-License-Identifier: Apache-2.0
"""``pufferfish verify``: the loss of a saved plan, recomputed from scratch."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pufferfish.cli import signals
from pufferfish.cli.commands import StrictCommand
from pufferfish.cli.files import load_plan
from pufferfish.errors import InputError

if TYPE_CHECKING:
    from pufferfish.plan import Plan
    from pufferfish.scenario import Scenario

#: What is said in the place of the plan's own assumption.
OTHER_PRIOR = (
    "This judges the plan under another prior than its own: the loss holds if that prior is the "
    "one that is public knowledge. The losses of several releases do not add up."
)


@click.command(cls=StrictCommand, short_help="Recompute the loss of a saved plan.")
@click.argument("plan")
@click.argument("table", required=False)
@click.option(
    "--prior", "priors", multiple=True, metavar="FILE",
    help="Prior file instead of a table; several files are several adversaries.",
)  # fmt: skip
@click.option(
    "--other-prior", is_flag=True,
    help="Judge the plan under a prior that is not the one it was computed from.",
)  # fmt: skip
def verify(plan: str, table: str | None, priors: tuple[str, ...], other_prior: bool) -> None:
    """Recompute the loss of PLAN under the prior of TABLE, or of prior files.

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
    from pufferfish.cli.digits import at_most, shown_epsilon
    from pufferfish.cli.judging import from_files, from_table
    from pufferfish.cli.output import print_lines, stdout_console
    from pufferfish.cli.planwords import proved_by

    if (table is None) == (not priors):
        raise InputError(
            "verify needs the prior: give a TABLE or --prior FILE"
            + (", not both" if priors else "")
        )
    try:
        loaded = load_plan(plan)
    except InputError as error:
        swapped = "looks like a table" in str(error)
        hint = "; PLAN comes first: pufferfish verify PLAN TABLE" if swapped else ""
        raise InputError(f"{error}{hint}") from None
    scenario = from_table(loaded, table) if table is not None else from_files(loaded, priors)
    signals.check()
    certificate = loaded.verify(scenario, other_prior=other_prior)
    same = loaded.is_for(scenario)
    under = "the prior that it was computed from" if same else "another prior than its own"
    loss = at_most(certificate.loss, loaded.epsilon_exact)
    # Which region it is stands in the statement.
    region = " for every prior of the region" if loaded.robust else ""
    alone = [] if loaded.beside is None else [_alone(loaded.beside.releases)]
    print_lines(
        stdout_console(),
        [
            f"{plan}: verified under {under}",
            f"{_mechanism(loaded)}, loss at most {loss}{region}, "
            f"within epsilon {shown_epsilon(loaded)} (proved by {proved_by(certificate.method)})",
            certificate.statement,
            *alone,
            _assumption(loaded, scenario) if same else OTHER_PRIOR,
        ],
    )


def _alone(releases: int) -> str:
    """Return what is said of a plan whose epsilon is that of several releases together."""
    what = "the release that was" if releases == 1 else f"the {releases} releases that were"
    return (
        f"Judged is this release alone. The plan was calibrated to fit beside {what} out already; "
        "the joint loss of all of them was NOT judged."
    )


def _assumption(plan: "Plan", scenario: "Scenario") -> str:
    """Return what the guarantee assumes: the file may hide that a prior was counted from rows."""
    counted = any(prior.from_rows for prior in scenario.priors)
    return replace(plan, from_rows=plan.from_rows or counted).assumption


def _mechanism(plan: "Plan") -> str:
    """Return what was judged, as far as the file says it in a way that can be relied on."""
    from pufferfish.cli.digits import shown_scale
    from pufferfish.support import Lattice

    if plan.channel is None:
        return f"scale {shown_scale(plan.scale or 0.0)}"
    kinds = [
        f"{s.size} {'values' if isinstance(s, Lattice) else 'levels'}"
        for s in (plan.channel.inputs, plan.channel.outputs)
    ]
    return f"channel from {kinds[0]} to {kinds[1]}"
