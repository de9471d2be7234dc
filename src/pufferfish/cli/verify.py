# SPDX-License-Identifier: Apache-2.0
"""``pufferfish verify``: the loss of a saved plan, recomputed from scratch."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pufferfish.cli import signals
from pufferfish.cli.commands import StrictCommand
from pufferfish.cli.files import check_there, load_plan
from pufferfish.errors import CheckFailed, InputError, listed

if TYPE_CHECKING:
    from pufferfish.cli.scenarios import PriorFile
    from pufferfish.plan import Plan
    from pufferfish.prior import Prior
    from pufferfish.scenario import Scenario
    from pufferfish.tables import Rules

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
    status 1 says that the plan does not keep within epsilon, or that the prior is another one than
    the plan's.

    \b
    Examples:
      pufferfish verify plan.json student.csv
      pufferfish verify plan.json --prior prior.json
      pufferfish verify plan.json other.csv --other-prior
    """  # noqa: D301  # \b keeps click from wrapping the examples
    from pufferfish.cli.describe import proved_by
    from pufferfish.cli.digits import at_most, shown_epsilon
    from pufferfish.cli.output import print_lines, stdout_console

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
    scenario = _from_table(loaded, table) if table is not None else _from_files(loaded, priors)
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
            loaded.assumption if same else OTHER_PRIOR,
        ],
    )


def _alone(releases: int) -> str:
    """Return what is said of a plan whose epsilon is that of several releases together."""
    what = "the release that was" if releases == 1 else f"the {releases} releases that were"
    return (
        f"Judged is this release alone. The plan was calibrated to fit beside {what} out already; "
        "the joint loss of all of them was NOT judged."
    )


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


def _from_table(plan: "Plan", table: str) -> "Scenario":
    """Count a table as the plan's own was, and code its values as a release by the plan would."""
    from pufferfish.tables import count_table

    rules = plan.rules
    if rules is None or rules.secret is None:
        raise InputError(
            "the plan came from a prior, not from a table, so it names no columns; verify it with "
            "--prior FILE"
        )
    check_there(table, "file")
    names = _levels(plan)
    if names is None:
        return _scenario(plan, [count_table(table, rules)])
    ordered = _order(plan) is not None
    try:
        prior = count_table(
            table, replace(rules, order=names) if ordered else replace(rules, levels=names)
        )
    except InputError as error:
        if not _can_be_counted(table, rules):
            raise
        what = str(error).partition("; name every level")[0]  # verify has no such options
        raise CheckFailed(f"the table holds values that the plan does not know: {what}") from None
    return _scenario(plan, [prior])


def _can_be_counted(table: str, rules: "Rules") -> bool:
    """Whether a table could be counted if any level was welcome in it."""
    from pufferfish.tables import count_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            count_table(table, replace(rules, order=None, levels=None))
        except InputError:
            return False
    return True


def _from_files(plan: "Plan", paths: tuple[str, ...]) -> "Scenario":
    from pufferfish.cli.scenarios import prior_of, read_prior_file
    from pufferfish.support import Lattice

    files = [read_prior_file(path) for path in paths]
    order = _order(plan)

    if order is None:
        files = [_with_all_levels(file, _levels(plan) or ()) for file in files]

    def scenario(step: object) -> "Scenario":
        return _scenario(plan, [prior_of(file, order, step) for file in files])

    as_it_is = scenario(None)
    support = plan.support
    if isinstance(support, Lattice) and not plan.is_for(as_it_is):
        # A plan from a prior does not say whether its values were rounded to a step: they were
        # if that gives the plan's own scenario, and only then.
        rounded = scenario(support.step)
        if plan.is_for(rounded):
            return rounded
    return as_it_is


def _levels(plan: "Plan") -> tuple[str, ...] | None:
    """Return the plan's levels, by which a release codes values; None for numbers."""
    from pufferfish.support import Levels

    return plan.support.names if isinstance(plan.support, Levels) else None


def _order(plan: "Plan") -> tuple[str, ...] | None:
    """Return the order of the plan's levels, if they have one."""
    from pufferfish.support import Levels

    support = plan.support
    return support.names if isinstance(support, Levels) and support.ordered else None


def _with_all_levels(file: "PriorFile", levels: tuple[str, ...]) -> "PriorFile":
    """Return a prior file in which levels of the plan that it does not name have mass 0."""
    rows = [row for row in file.secrets.values() if isinstance(row, Mapping)]
    named = {name.strip() for row in rows for name in row}
    lost = {name: "0" for name in levels if name not in named}
    if not lost:
        return file
    secrets = {
        secret: {**row, **lost} if isinstance(row, Mapping) else row
        for secret, row in file.secrets.items()
    }
    return replace(file, secrets=secrets)


def _scenario(plan: "Plan", priors: "list[Prior]") -> "Scenario":
    """Return the scenario of other priors with the plan's pairs.

    Raises
    ------
    CheckFailed
        If a prior lacks a secret that the plan protects: then it is another one than the plan's.
    """
    for prior in priors:
        lost = [secret for secret in plan.protected if secret not in prior.secrets]
        if lost:
            raise CheckFailed(
                f"the prior is not the one that the plan was computed from: it lacks the secret "
                f"{listed(lost)}; its secrets are {listed(prior.secrets)}"
            )
    return plan.scenario_of(priors)
