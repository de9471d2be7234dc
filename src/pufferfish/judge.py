# SPDX-License-Identifier: Apache-2.0
"""judge: what a plan does, proved again from scratch under a scenario, whatever the plan claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pufferfish.certificate import Certificate, prove
from pufferfish.digits import rounded_up
from pufferfish.errors import CheckFailed
from pufferfish.rationals import show
from pufferfish.regions import Region, has_region, regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import Levels, lattice_of

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
    if not other_prior and scenario.digest != plan.digest:
        raise CheckFailed(
            "the prior or the pairs are not those that the plan was computed from; to judge "
            "the plan under them all the same use --other-prior (other_prior=True)"
        )
    _check_support(plan, scenario, other_prior)
    certificate = None
    # What the plan promises, and what whoever verifies asks for beyond it.
    for rules in dict.fromkeys((scenario.regions, _promised(plan, scenario))):
        if any(rules):
            certificate = _proved(plan, scenario.with_regions(rules))
    return _proved(plan, scenario) if certificate is None else certificate


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
    if len(plan.regions) != count or scenario.digest != plan.digest:
        raise CheckFailed(
            f"the plan holds for {len(plan.regions)} adversaries with regions of their own, and "
            "it cannot be told which of them belongs to which of the priors given"
        )
    return plan.regions
