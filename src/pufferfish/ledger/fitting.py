# SPDX-License-Identifier: Apache-2.0
"""Fitting: from a first plan to one whose price, beside all that is out, is within epsilon.

The price never rises with the scale of the noise, so that the least scale can be searched for. A
channel is calibrated for an epsilon of its own, which is halved; if none of these fits, as where
worst cases are charged and one of its entries is 0, channels are tried that hide every value from
every other: all their entries are positive.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.beside import Beside
from pufferfish.calibration import calibrate
from pufferfish.calibration.units import MOST_VALUES
from pufferfish.certificate import Certificate, prove
from pufferfish.errors import InputError, PufferfishError, listed
from pufferfish.joint import DoesNotFit, worst_case
from pufferfish.joint.root import last_inside
from pufferfish.ledger.account import Bound
from pufferfish.ledger.price import LEAST_SHARE
from pufferfish.ledger.subject import Offer
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.rationals import float_up, show
from pufferfish.regions import has_region, regions_of
from pufferfish.scenario import Scenario
from pufferfish.unitcounts import UnitsClaim
from pufferfish.unitloss import claim_of, together, units_loss, units_of

#: A price within that share of epsilon is close enough.
_CLOSE = 1e-12
#: Channels that are calibrated at most.
_CHANNELS = 10
#: Where the search begins if the noise was to be 0: this share of a step.
_START = Fraction(1, 64)


def fitting(
    offer: Offer, scenario: Scenario, plan: Plan, epsilon: Fraction, options: Mapping[str, Any]
) -> Plan:
    """Return a plan whose price is within epsilon, for every adversary that the ledger knows.

    Parameters
    ----------
    offer : Offer
        What is out.
    scenario : Scenario
        What the plan is for.
    plan : Plan
        The first one to try; noise is raised, a channel calibrated again.
    epsilon : Fraction
        What everything together may cost.
    options : mapping
        Those of a channel.

    Returns
    -------
    Plan
        ``beside`` is its price.

    Raises
    ------
    DoesNotFit
        If nothing is found that fits.
    """
    bound = offer.bound(plan)
    if bound.fits(epsilon):
        return _priced(offer, plan, bound)
    if plan.noise is None:
        return _channel(offer, scenario, plan, epsilon, options)
    return _raised(offer, scenario, plan, plan.noise, epsilon)


def _priced(offer: Offer, plan: Plan, bound: Bound) -> Plan:
    count = len(offer.state.releases)
    return replace(plan, beside=Beside(count, float(bound), bound.how) if count else None)


def _raised(
    offer: Offer, scenario: Scenario, plan: Plan, noise: DiscreteLaplace, epsilon: Fraction
) -> Plan:
    """Return the plan with the least scale that fits."""

    def at(scale: float) -> Bound:
        return offer.bound(replace(plan, applied=replace(noise, scale=scale)))

    def excess(inverse: float) -> float:
        bound = at(_over(inverse))
        # A double may be equal to epsilon where the bound itself is not.
        over = float(bound) - float(epsilon)
        return min(over, 0.0) if bound.fits(epsilon) else max(over, math.ulp(0.0))

    low = noise.scale
    span = worst_case(replace(noise, scale=1.0), plan.support).upper or Fraction(0)
    # With more noise a release says nothing any more.
    most = max(float_up(span / (epsilon * LEAST_SHARE)), 2 * low)
    bound = at(most) if most > 0 else offer.bound(plan)
    if most == 0 or not bound.fits(epsilon):
        raise _nothing(offer, plan, bound, epsilon)
    high = low or float(noise.step * _START)
    outside = 1 / high, excess(1 / high)
    inside = outside
    while inside[1] > 0 and high < most:
        outside = inside
        high = min(2 * high, most)
        inside = 1 / high, excess(1 / high)
    high = _over(last_inside(excess, inside, outside, float(epsilon), _CLOSE))
    note = (
        f"the scale {noise.scale:.6g} was raised to {high:.6g}, so that everything together fits "
        f"also for {_others(offer, plan)}"
    )
    applied = replace(noise, scale=high)
    bound = at(high)
    certificate, units = _proved(scenario, applied, epsilon, bound)
    notes = (*plan.notes, note)
    found = replace(plan, applied=applied, certificate=certificate, units=units, notes=notes)
    return _priced(offer, found, bound)


def _over(inverse: float) -> float:
    return float_up(1 / Fraction(inverse))


def _others(offer: Offer, plan: Plan) -> str:
    """Return for whom it has to fit, beside those who know the counts of complete rows."""
    outs = offer.state.outs
    found = [
        (offer.joint.incomplete > 0, "rows that lack some of the values"),
        (bool(offer.people), "all rows of one person together"),
        (any(not out.own for out in outs), "the other priors that plans were calibrated for"),
        (plan.robust or any(out.robust for out in outs), "every prior of a plan's region"),
    ]
    return listed([words for applies, words in found if applies]) or "worst cases"


def _channel(
    offer: Offer, scenario: Scenario, plan: Plan, epsilon: Fraction, options: Mapping[str, Any]
) -> Plan:
    """Return a channel that was calibrated for a smaller epsilon, or hides every value."""
    families = [(scenario, "")]
    if scenario.support.size <= MOST_VALUES:
        families.append((_values(scenario), " that hides every value from every other"))
    given = with_weights(scenario, options)
    last = offer.bound(plan)
    for family, what in families:
        best: tuple[Plan, Bound, Fraction] | None = None
        low, high, own = Fraction(0), epsilon, epsilon
        for _ in range(_CHANNELS):
            made = None
            # Conditions may be too much for so small an epsilon.
            with suppress(InputError):
                made = calibrate(family, own, "channel", **given)
            if made is None:
                low = own
            else:
                last = offer.bound(replace(plan, applied=made.applied))
                if last.fits(epsilon):
                    best, low = (made, last, own), own
                else:
                    high = own
            own = (low + high) / 2
            if low == high:
                break
        if best is not None:
            made, bound, own = best
            note = (
                f"the channel is one of epsilon {float(own):.6g} of its own{what}, so that "
                f"everything together keeps within {show(epsilon)}"
            )
            certificate, units = _proved(scenario, made.applied, epsilon, bound)
            notes = (*made.notes, note)
            found = Plan.of(
                scenario, "channel", made.applied, epsilon, certificate, notes, made.distortion
            )
            return _priced(offer, replace(found, units=units), bound)
    raise _nothing(offer, plan, last, epsilon)


def with_weights(scenario: Scenario, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a channel, weighted by the rows of this table unless told otherwise."""
    given = dict(options)
    if given.get("weights") is None:
        prior = scenario.priors[0]
        rows = [prior.row(secret) for secret in scenario.protected]
        given["weights"] = prior.counts[rows].sum(axis=0).tolist()
    return given


def _values(scenario: Scenario) -> Scenario:
    """Return the scenario in which every value is a secret that shows, and each pair counts."""
    support = scenario.support
    names = tuple(str(k) for k in range(support.size))
    return Scenario(
        Prior.from_numerators(support, names, list(np.eye(support.size, dtype=np.int64)))
    )


def _proved(
    scenario: Scenario, applied: Mechanism, epsilon: Fraction, bound: Bound
) -> tuple[Certificate, UnitsClaim | None]:
    """Return the certificate, and what it says of all rows of a person.

    ``bound`` is that of everything together, which this release never exceeds.
    """
    regions = regions_of(scenario) if has_region(scenario) else None
    certificate = prove(scenario, applied, epsilon, regions)
    if not certificate.holds:
        raise PufferfishError(
            f"what was found could not be certified at epsilon {show(epsilon)}; please report it"
        )
    if not units_of(scenario):
        return certificate, None
    found = units_loss(scenario, applied)
    if bound.value is not None and (found.upper is None or found.upper > bound.value):
        found = replace(found, upper=bound.value, name="loss of everything together")
    return together(certificate, found, epsilon), claim_of(scenario, found)


def _nothing(offer: Offer, plan: Plan, bound: Bound, epsilon: Fraction) -> DoesNotFit:
    value = "infinity" if bound.value is None else f"{float(bound):.6g}"
    return DoesNotFit(
        f"{plan.mechanism} found nothing for {offer.label!r} that fits within epsilon "
        f"{show(epsilon)} beside what is out: all together would cost up to {value} ({bound.how})"
    )
