# SPDX-License-Identifier: Apache-2.0
"""Calibrating beside a ledger: the next release of a table, given what is out of it already."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from pufferfish.accountant import Item
from pufferfish.calibration import calibrate, default_for
from pufferfish.certificate import Certificate, prove
from pufferfish.errors import InputError, counted
from pufferfish.joint import DoesNotFit
from pufferfish.ledger.account import Bound, budget_text, read_bound
from pufferfish.ledger.adversaries import masses_of, secrets_in
from pufferfish.ledger.fitting import fitting, with_weights
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.out import Out, pairs_of
from pufferfish.ledger.price import about_incomplete, end_of_budget, is_used_up
from pufferfish.ledger.pricing import spread
from pufferfish.ledger.readings import embedded
from pufferfish.ledger.subject import Offer
from pufferfish.ledger.suited import comparable, suited
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.product import make_product
from pufferfish.rationals import parse_epsilon, show
from pufferfish.regions import has_region
from pufferfish.scenario import Scenario
from pufferfish.unitcounts import UnitsClaim
from pufferfish.unitloss import digest_of, units_of


def calibrate_beside(
    ledger: Ledger,
    source: Any,
    scenario: Scenario,
    epsilon: Any = None,
    mechanism: str | None = None,
    *,
    new_table: bool = False,
    **options: Any,
) -> Plan:
    """Return a plan for a table that fits beside all that a ledger says is out of it.

    Parameters
    ----------
    ledger : Ledger
    source : path, dataframe or Table
        The table that is to be released.
    scenario : Scenario
        What one column of this table says, as for :func:`pufferfish.calibrate`.
    epsilon : number, optional
        What everything together may cost, at most the budget of the secret; by default all of it.
    mechanism : str, optional
        As for :func:`pufferfish.calibrate`.
    new_table : bool
        Whether a table that the ledger does not know is about other people.
    **options
        Options of a channel.

    Raises
    ------
    DoesNotFit
        If nothing fits beside what is out.
    InputError
        If the scenario is not of this table, or epsilon is above the budget.
    """
    report = scenario.priors[0].report
    if len(scenario.priors) != 1 or report is None:
        raise InputError("a ledger is about tables: take the prior from the table to be released")
    probe = Plan.of(
        scenario,
        "exact",
        DiscreteLaplace(1.0, Fraction(1)),
        Fraction(1),
        Certificate.of_nothing(None, "nothing is calibrated yet"),
    )
    if report.rules.unit is not None:
        numbers = tuple(group.rows for own in units_of(scenario) for group in own.groups)
        probe = replace(probe, units=UnitsClaim(numbers, 0.0, "", digest_of(scenario)))
    offer = ledger.offer(source, probe, new_table)
    if not offer.own:
        raise InputError("the prior is not that of the table to be released")
    budget = offer.state.account.budget
    wanted = budget if epsilon is None else parse_epsilon(epsilon)
    if wanted > budget:
        raise InputError(
            f"epsilon {show(wanted)} is above the budget {budget_text(budget)} of {offer.secret!r}"
        )
    if not offer.state.releases:
        plan = calibrate(scenario, wanted, mechanism, **options)
        return fitting(offer, scenario, plan, wanted, options)
    try:
        before = offer.before
        if not before.fits(wanted):
            raise _used_up(offer, before, wanted)
        try:
            # The joint counts know nothing of persons, nor of regions: the prices do, and go on
            # from here.
            plan = (
                calibrate(scenario, wanted, mechanism, **options)
                if report.rules.unit is not None or has_region(scenario)
                else _beside(offer, scenario, wanted, mechanism, options)
            )
        except (DoesNotFit, InputError) as error:
            # The conditions of a channel may be too much for a small epsilon of its own.
            if isinstance(error, InputError) and not _is_channel(scenario, mechanism):
                raise
            if is_used_up(before, wanted):
                raise _used_up(offer, before, wanted) from None
            # The search beside the joint counts is over; the one by prices goes further.
            plan = calibrate(scenario, wanted, mechanism, **options)
        try:
            return fitting(offer, scenario, plan, wanted, options)
        except DoesNotFit:
            if is_used_up(before, wanted):
                raise _used_up(offer, before, wanted) from None
            raise
    except DoesNotFit as error:
        raise DoesNotFit(f"{error}{about_incomplete(offer.joint.incomplete)}") from None


def _used_up(offer: Offer, before: Bound, epsilon: Fraction) -> DoesNotFit:
    budget, releases = offer.state.account.budget, offer.state.releases
    out = f"what is already out ({counted(len(releases), 'release')})"
    value = "infinity" if before.value is None else f"{float(before):.6g}"
    charged = read_bound(releases[-1].bound, releases[-1].how)
    if not offer.in_order and float(charged) < float(before):
        return DoesNotFit(
            f"{out} was charged {float(charged):.6g}, but counts {value} beside this table "
            f"({before.how}), which leaves nothing of epsilon {show(epsilon)}: the table has the "
            "rows of a person in another order than when they were released; use it in that order"
        )
    if epsilon == budget:
        return DoesNotFit(end_of_budget(offer.secret, len(releases), budget))
    return DoesNotFit(
        f"{out} has a joint loss of up to {value} ({before.how}), which leaves nothing of epsilon "
        f"{show(epsilon)} (epsilon is what everything that is out may cost, with this release; the "
        f"budget is {budget_text(budget)})"
    )


def _beside(
    offer: Offer, scenario: Scenario, epsilon: Fraction, mechanism: str | None, options: Any
) -> Plan:
    outs = offer.state.outs
    joint, label = offer.joint, offer.label
    pairs = comparable(joint, pairs_of([*outs, _out(offer, scenario)]))
    found = spread(joint, outs, pairs, keep=label)
    if found is None:
        raise DoesNotFit(f"{label!r} has too many values to be counted for every secret")
    together = _scenario(found[0], label, scenario, pairs)
    items = [
        _item(out, plan, found[0], label, scenario, joint)
        for out, plan in zip(outs, offer.state.plans, strict=True)
    ]
    given = dict(options)
    if _is_channel(scenario, mechanism):
        given = with_weights(scenario, options)
    plan = calibrate(together, epsilon, mechanism, already=items, column=label, **given)
    certificate = prove(scenario, plan.applied, epsilon)
    own = Plan.of(
        scenario, plan.mechanism, plan.applied, epsilon, certificate, plan.notes, plan.distortion
    )
    return replace(own, beside=plan.beside)


def _is_channel(scenario: Scenario, mechanism: str | None) -> bool:
    return (default_for(scenario) if mechanism is None else mechanism) == "channel"


def _out(offer: Offer, scenario: Scenario) -> Out:
    """Return a release that tells nothing, of which only the pairs matter."""
    noise = DiscreteLaplace(1.0, Fraction(1))
    return Out(offer.label, noise, scenario.support, scenario.pairs, scenario.digest, True)


def _scenario(
    part: JointTable, label: str, scenario: Scenario, pairs: list[tuple[str, str]]
) -> Scenario:
    """Return the priors of all adversaries, the column itself on the support of its scenario."""
    supports = [scenario.support if a.label == label else a.support for a in part.axes]
    places = [
        embedded(a.support, scenario.support) if a.label == label else None for a in part.axes
    ]
    if any(p is None for p, a in zip(places, part.axes, strict=True) if a.label == label):
        raise InputError("the scenario lacks values that the table has")
    masses = masses_of(part, pairs, supports=supports, places=places)
    if not masses:
        raise DoesNotFit("the columns have too many combinations of values to be counted together")
    product = make_product(part.labels, supports)
    named = tuple(secrets_in(pairs))
    priors = [
        Prior.from_numerators(product, named, list(m.reshape(len(named), -1))) for m in masses
    ]
    return Scenario(priors, pairs)


def _item(
    out: Out, plan: Plan, part: JointTable, label: str, scenario: Scenario, joint: JointTable
) -> Item:
    support = scenario.support if out.label == label else joint.axes[joint.axis(out.label)].support
    mechanism = suited(out.mechanism, support)
    if out.label in part.labels:
        return out.label, mechanism
    return out.label, replace(plan, rules=None, support=support, applied=mechanism)
