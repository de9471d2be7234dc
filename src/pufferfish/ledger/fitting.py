# SPDX-License-Identifier: Apache-2.0
"""Fitting: from a first plan to one whose price, beside all that is out, is within epsilon.

The price never rises with the scale of the noise, so that the least scale can be searched for. A
channel is calibrated for an epsilon of its own, which is halved. Where worst cases are charged none
of these may fit, as one of its entries is 0, or only a dear one: channels are tried as well that
hide every value from every other, and of both kinds the cheaper is taken.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pufferfish.beside import Beside
from pufferfish.calibration import calibrate
from pufferfish.calibration.calibrate import distortion_of
from pufferfish.calibration.families import Fit, cheaper, surely
from pufferfish.calibration.hiding import Hiding
from pufferfish.certificate import Certificate, prove
from pufferfish.distortion import Distortion
from pufferfish.errors import InputError, PufferfishError, listed
from pufferfish.halving import largest_own
from pufferfish.joint import DoesNotFit, worst_case
from pufferfish.joint.root import excess_of, largest_inside
from pufferfish.ledger.account import Bound
from pufferfish.ledger.price import LEAST_SHARE
from pufferfish.ledger.subject import Offer
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.plan import Plan
from pufferfish.rationals import float_up, show
from pufferfish.regions import has_region, regions_of
from pufferfish.scenario import Scenario
from pufferfish.unitcounts import UnitsClaim
from pufferfish.unitloss import claim_of, together, units_loss, units_of

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
        return excess_of(at(_over(inverse)).value, epsilon)

    low = noise.scale
    span = worst_case(replace(noise, scale=1.0), plan.support).upper or Fraction(0)
    # With more noise a release says nothing any more.
    most = max(float_up(span / (epsilon * LEAST_SHARE)), 2 * low)
    bound = at(most) if most > 0 else offer.bound(plan)
    if most == 0 or not bound.fits(epsilon):
        raise _nothing(offer, plan, bound, epsilon)
    start = low or float(noise.step * _START)
    inverse = largest_inside(excess, 1 / start, float(epsilon))
    high = most if inverse is None else _over(inverse)
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


@dataclass(frozen=True, eq=False)
class _Made:
    """A channel, and what everything together costs with it."""

    channel: Channel
    distortion: Distortion
    notes: tuple[str, ...]
    bound: Bound


def _channel(
    offer: Offer, scenario: Scenario, plan: Plan, epsilon: Fraction, options: Mapping[str, Any]
) -> Plan:
    """Return the cheaper of two: a channel for a smaller epsilon, or one that hides every value."""
    given = with_weights(scenario, options)
    hiding = Hiding(scenario, given)
    last = offer.bound(plan)

    def judged(made: Channel, distortion: Distortion, notes: tuple[str, ...]) -> _Made | None:
        nonlocal last
        last = offer.bound(replace(plan, applied=made))
        return _Made(made, distortion, notes, last) if last.fits(epsilon) else None

    def for_secret(own: Fraction) -> _Made | None:
        made = calibrate(scenario, own, "channel", **given)
        if made.channel is None or made.distortion is None:
            raise PufferfishError("no channel was calibrated, or not its cost; please report it")
        known = {note for prior in scenario.priors for note in prior.notes}
        notes = tuple(note for note in made.notes if note not in known)
        return judged(made.channel, made.distortion, notes)

    def hidden(own: Fraction) -> _Made | None:
        solution = hiding.channel(own)
        return judged(solution.channel, distortion_of(solution), solution.notes)

    alone = None
    # Conditions may be too much for a channel of all rows of one person.
    with suppress(InputError, DoesNotFit):
        found = largest_own(epsilon, for_secret, _CHANNELS)
        alone = None if found is None else Fit(found[0], found[0].distortion.cost, found[1])
    before = offer.before.value
    rows = max([table.most_rows for table in offer.people.values()], default=1)
    sure = None if before is None else surely(epsilon, before, rows)
    best = cheaper(
        epsilon,
        alone,
        lambda: largest_own(epsilon, hidden, _CHANNELS, sure),
        lambda made: made.distortion.cost,
    )
    if best is None:
        why = f"; {hiding.why_not(sure)}; {hiding.what_helps()}"
        raise _nothing(offer, plan, last, epsilon, why)
    made = best.made
    notes = best.notes(epsilon, f"all releases, for {_others(offer, plan)} too,", made.channel)
    certificate, units = _proved(scenario, made.channel, epsilon, made.bound)
    result = Plan.of(
        scenario,
        "channel",
        made.channel,
        epsilon,
        certificate,
        (*made.notes, *notes),
        made.distortion,
    )
    return _priced(offer, replace(result, units=units), made.bound)


def with_weights(scenario: Scenario, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a channel, weighted by the rows of this table unless told otherwise."""
    given = dict(options)
    if given.get("weights") is None:
        prior = scenario.priors[0]
        rows = [prior.row(secret) for secret in scenario.protected]
        given["weights"] = prior.counts[rows].sum(axis=0).tolist()
    return given


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


def _nothing(
    offer: Offer, plan: Plan, bound: Bound, epsilon: Fraction, why: str = ""
) -> DoesNotFit:
    value = "infinity" if bound.value is None else f"{float(bound):.6g}"
    return DoesNotFit(
        f"{plan.mechanism} found nothing for {offer.label!r} that fits within epsilon "
        f"{show(epsilon)} beside what is out: all together would cost up to {value} "
        f"({bound.how}){why}"
    )
