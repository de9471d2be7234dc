# SPDX-License-Identifier: Apache-2.0
"""judge: what a plan does, proved again from scratch under a scenario, whatever the plan claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pufferfish.certificate import Certificate, prove
from pufferfish.digits import rounded_up
from pufferfish.errors import CheckFailed, counted
from pufferfish.rationals import show
from pufferfish.regions import Region, has_region, regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import Levels, lattice_of
from pufferfish.unitloss import digest_of, together, units_loss, units_of

if TYPE_CHECKING:
    from pufferfish.plan import Plan


def judge(plan: Plan, scenario: Scenario, other_prior: bool) -> Certificate:
    """Return the certificate of a plan's mechanism under a scenario.

    Parameters
    ----------
    plan : Plan
        Its support, mechanism, epsilon and regions are looked at; its claims are not.
    scenario : Scenario
        The priors and pairs.
    other_prior : bool
        Whether the scenario may be another one than that which the plan was computed from.

    Raises
    ------
    CheckFailed
        If the loss exceeds epsilon, or the scenario is another one than the plan's.
    """
    if not other_prior and not is_for(plan, scenario):
        raise CheckFailed(
            "the prior or the pairs are not those that the plan was computed from; to judge "
            "the plan under them all the same use --other-prior (other_prior=True)"
        )
    _check_support(plan, scenario, other_prior)
    by_units = _by_units(plan, scenario, other_prior)
    certificate = None
    # What the plan promises, and what whoever verifies asks for beyond it.
    for rules in dict.fromkeys((scenario.regions, _promised(plan, scenario))):
        if any(rules):
            certificate = _proved(plan, scenario.with_regions(rules))
    if certificate is None:
        certificate = _proved(plan, scenario)
    return _all_rows(plan, scenario, certificate) if by_units else certificate


def is_for(plan: Plan, scenario: Scenario) -> bool:
    """Whether a scenario is the one that a plan was computed from, its regions aside."""
    count = len(scenario.priors)
    rules = plan.regions or (None,) * count
    return len(rules) == count and scenario.with_regions(rules).digest == plan.digest


def _by_units(plan: Plan, scenario: Scenario, other_prior: bool) -> bool:
    """Whether rows of one person are judged together: the plan says so, or the scenario does.

    Raises
    ------
    CheckFailed
        If the plan says so, but the scenario does not know which rows are one person's, or knows
        others than those that the plan was computed from.
    """
    unit = None if plan.rules is None else plan.rules.unit
    units = units_of(scenario)
    if unit is None:
        return bool(units)
    if not units:
        raise CheckFailed(
            f"the plan is for the rows of one person together (by column {unit!r}), but the prior "
            "does not say which rows these are; verify it with a table that has this column"
        )
    if not other_prior and plan.units is not None and plan.units.digest != digest_of(scenario):
        raise CheckFailed(
            "the rows of one person, or their order, are not those that the plan was computed "
            "from; to judge the plan under them all the same use --other-prior (other_prior=True)"
        )
    return True


def _all_rows(plan: Plan, scenario: Scenario, certificate: Certificate) -> Certificate:
    """Return the certificate for all rows of a person, however many the plan lets pass.

    Raises
    ------
    CheckFailed
        If their loss was not proved to be at most epsilon.
    """
    found = units_loss(scenario, plan.applied, () if plan.units is None else plan.units.rows)
    if not found.at_most(plan.epsilon_exact):
        number = "infinite" if found.upper is None else f"up to {rounded_up(found.value, 5)}"
        raise CheckFailed(
            f"the loss of all rows of one person together is {number} for "
            f"{counted(found.rows, 'row')} ({found.name}), above epsilon "
            f"{show(plan.epsilon_exact)}"
        )
    return together(certificate, found, plan.epsilon_exact)


def _proved(plan: Plan, scenario: Scenario) -> Certificate:
    """Return the certificate for the priors' regions.

    Raises
    ------
    CheckFailed
        If the loss was not proved to be at most epsilon.
    """
    regions = regions_of(scenario) if has_region(scenario) else None
    certificate = prove(scenario, plan.applied, plan.epsilon_exact, regions, "thorough")
    if not certificate.holds:
        epsilon = show(plan.epsilon_exact)
        what = "of the channel" if plan.noise is None else f"at scale {plan.scale!r}"
        where = "" if regions is None else " for some prior of the region"
        raise CheckFailed(
            f"the loss {what} is {rounded_up(certificate.loss, 5)}{where}, above epsilon {epsilon}"
            if certificate.decided
            else f"the loss {what} could not be proved to be at most epsilon {epsilon}"
        )
    return certificate


def _check_support(plan: Plan, scenario: Scenario, other_prior: bool) -> None:
    """Check that a release codes values as the loss that is recomputed has it."""
    levels = any(isinstance(support, Levels) for support in (plan.support, scenario.support))
    if plan.noise is None or levels or not other_prior:
        if not plan.support.same_as(scenario.support):
            raise CheckFailed(
                "the support of the plan is not that of the prior: a release would code values "
                "in another way than the one whose loss is recomputed"
            )
        return
    ratio = scenario.lattice.step / lattice_of(plan.support).step
    if ratio.denominator != 1:
        raise CheckFailed(
            f"the values lie on a lattice of step {show(scenario.lattice.step)}, but the "
            f"plan's noise on one of step {show(lattice_of(plan.support).step)}"
        )


def _promised(plan: Plan, scenario: Scenario) -> tuple[Region | None, ...]:
    """Return the regions that the plan is to hold for, in the order of the scenario's.

    Raises
    ------
    CheckFailed
        If it cannot be told which region belongs to which prior.
    """
    count = len(scenario.priors)
    if not plan.regions:
        return (None,) * count
    if len(set(plan.regions)) == 1:
        return plan.regions[:1] * count
    if not is_for(plan, scenario):
        raise CheckFailed(
            f"the plan holds for {len(plan.regions)} adversaries with regions of their own, and "
            "it cannot be told which of them belongs to which of the priors given"
        )
    return plan.regions
