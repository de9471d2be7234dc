# SPDX-License-Identifier: Apache-2.0
"""``pufferfish verify``: the loss of a saved plan, recomputed from scratch."""

from typing import TYPE_CHECKING, Any

import click

from pufferfish.cli.commands import StrictCommand
from pufferfish.errors import InputError

if TYPE_CHECKING:
    from pufferfish.plan import Plan
    from pufferfish.prior import Prior
    from pufferfish.scenario import Scenario


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

    The loss and the certificate in the plan file are ignored; cleaning, coding and pairs are taken
    from it. Whether the scale is the least is not checked. Exit status 1 says that the plan does
    not keep within epsilon, or that the prior is another one than the plan's.

    \b
    Examples:
      pufferfish verify plan.json student.csv
      pufferfish verify plan.json --prior prior.json
      pufferfish verify plan.json other.csv --other-prior
    """  # noqa: D301  # \b keeps click from wrapping the examples
    from pufferfish.cli.digits import at_most, shown_epsilon
    from pufferfish.cli.output import print_lines, stdout_console
    from pufferfish.plan import Plan

    if (table is None) == (not priors):
        raise InputError(
            "verify needs the prior: give a TABLE or --prior FILE"
            + (", not both" if priors else "")
        )
    loaded = Plan.load(plan)
    scenario = _from_table(loaded, table) if table is not None else _from_files(loaded, priors)
    certificate = loaded.verify(scenario, other_prior=other_prior)
    same = scenario.digest == loaded.digest
    under = "the prior that it was computed from" if same else "another prior than its own"
    epsilon = loaded.epsilon_exact
    print_lines(
        stdout_console(),
        [
            f"{plan}: verified under {under}",
            f"scale {loaded.scale!r}, loss at most {at_most(certificate.loss, epsilon)}, "
            f"within epsilon {shown_epsilon(loaded)} ({certificate.method})",
            certificate.statement,
            loaded.assumption,
        ],
    )


def _from_table(plan: "Plan", table: str) -> "Scenario":
    from pufferfish.prior import Prior

    rules = plan.rules
    if rules is None or rules.secret is None:
        raise InputError(
            "the plan came from a prior, not from a table, so it names no columns; verify it with "
            "--prior FILE"
        )
    options: dict[str, Any] = {
        "secret": rules.secret,
        "public": rules.public,
        "order": rules.order,
        "levels": rules.levels,
        "missing": rules.missing,
        "exclude_secrets": rules.exclude_secrets,
        "step": rules.step,
    }
    return plan.scenario_of(Prior.from_table(table, **options))


def _from_files(plan: "Plan", paths: tuple[str, ...]) -> "Scenario":
    from pufferfish.cli.scenarios import prior_of, read_prior_file
    from pufferfish.support import Lattice, Levels

    files = [read_prior_file(path) for path in paths]
    support = plan.support
    order = support.names if isinstance(support, Levels) and support.ordered else None

    def scenario(step: object) -> "Scenario":
        priors: list[Prior] = [prior_of(file, order, step) for file in files]
        return plan.scenario_of(priors)

    as_it_is = scenario(None)
    if isinstance(support, Lattice) and as_it_is.digest != plan.digest:
        # A plan from a prior does not say whether its values were rounded to a step: they were
        # if that gives the plan's own scenario, and only then.
        rounded = scenario(support.step)
        if rounded.digest == plan.digest:
            return rounded
    return as_it_is
