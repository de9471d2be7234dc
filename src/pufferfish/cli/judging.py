# SPDX-License-Identifier: Apache-2.0
"""The prior that a plan is judged under, from a table or from prior files, coded as the plan is."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pufferfish.cli.files import check_there
from pufferfish.errors import CheckFailed, InputError, listed
from pufferfish.rationals import show

if TYPE_CHECKING:
    from pufferfish.cli.messages import Messages
    from pufferfish.cli.scenarios import PriorFile
    from pufferfish.plan import Plan
    from pufferfish.prior import Prior
    from pufferfish.scenario import Scenario
    from pufferfish.tables import Rules


def calibrated_for(plan: "Plan", priors: tuple[str, ...], table: str | None) -> "Scenario | None":
    """Return the scenario that a plan was calibrated for, if the user says which.

    Raises
    ------
    InputError
        If both prior files and another table are given, or they cannot be read.
    """
    if priors and table is not None:
        raise InputError("give either --prior or --prior-table, not both")
    if priors:
        return from_files(plan, priors)
    return None if table is None else from_table(plan, table)


def proved_again(plan: "Plan", table: str, priors: tuple[str, ...], messages: "Messages") -> bool:
    """Whether a plan of a file can be proved under its prior, or the table that was released.

    Where it cannot, that is said; what was released is not judged by it.
    """
    try:
        scenario = from_files(plan, priors) if priors else from_table(plan, table)
        plan.verify(scenario)
    except (InputError, CheckFailed) as error:
        messages.warning(
            f"no certificate is claimed in the record, for the plan was not proved again: {error}"
        )
        return False
    return True


def from_table(plan: "Plan", table: str) -> "Scenario":
    """Count a table as the plan's own was, and code its values as a release by the plan would.

    Raises
    ------
    InputError
        If the table cannot be read, or lacks a column of the plan.
    CheckFailed
        If it can, but what it holds does not fit the plan.
    """
    from pufferfish.tables import count_table

    rules = plan.rules
    if rules is None or rules.secret is None:
        raise InputError(
            "the plan came from a prior, not from a table, so it names no columns; verify it with "
            "--prior FILE"
        )
    check_there(table, "file")
    names = _levels(plan)
    if names is not None:
        ordered = _order(plan) is not None
        rules = replace(rules, order=names) if ordered else replace(rules, levels=names)
    try:
        prior = count_table(table, rules)
    except InputError as error:
        if not _can_be_read(table, rules):
            raise
        raise CheckFailed(f"the table does not fit the plan: {_without_hints(error)}") from None
    return _scenario(plan, [prior])


def _can_be_read(table: str, rules: "Rules") -> bool:
    """Whether a table has rows, and the columns of a plan."""
    from pufferfish.tables import open_table

    try:
        source = open_table(table)
        names = [name for name in (rules.secret, rules.public, rules.unit) if name is not None]
        return len(source.groups([source.column(name) for name in names])) > 0
    except InputError:
        return False


def _without_hints(error: InputError) -> str:
    """Return what is wrong, without the options of calibrate that would help there alone."""
    first, *more = str(error).split("; ")
    return "; ".join([first, *(part for part in more if "--" not in part)])


def from_files(plan: "Plan", paths: tuple[str, ...]) -> "Scenario":
    """Return the scenario of prior files, with the plan's levels, pairs and step.

    Raises
    ------
    InputError
        If a file cannot be read, or the plan is for a region that no prior file tells.
    CheckFailed
        If a prior lacks a secret of the plan.
    """
    from pufferfish.cli.scenarios import prior_of, read_prior_file
    from pufferfish.regions import Confidence
    from pufferfish.support import Lattice

    for region in plan.regions:
        if isinstance(region, Confidence):
            raise InputError(
                f"the plan is for a region of {show(region.level * 100)} % confidence, which needs "
                "numbers of rows, and a prior file has none; verify it with the TABLE"
            )
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
