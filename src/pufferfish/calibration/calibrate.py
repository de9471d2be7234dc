# SPDX-License-Identifier: Apache-2.0
"""calibrate: a scenario becomes a plan whose mechanism has been proved, not merely computed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pufferfish.accountant import Gathered, Item, gathered, warned_of_incomplete
from pufferfish.beside import Beside
from pufferfish.calibration.certified import certified
from pufferfish.calibration.channel import ChannelSolution
from pufferfish.calibration.families import Fit, cheaper, surely
from pufferfish.calibration.hiding import Hiding
from pufferfish.calibration.registry import (
    ChannelMethod,
    NoiseMethod,
    default_for,
    method_named,
    why_not,
)
from pufferfish.calibration.units import channel_for_units, most_rows, noise_for_units
from pufferfish.certificate import prove
from pufferfish.distortion import Distortion
from pufferfish.errors import InputError, PufferfishError, listed
from pufferfish.halving import largest_own
from pufferfish.joint import Bound, DoesNotFit, GridTooLarge
from pufferfish.mechanisms import Mechanism
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.rationals import float_up, parse_epsilon, show
from pufferfish.regions import Concrete, has_region, regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import Levels
from pufferfish.unitloss import claim_of, units_of
from pufferfish.unitloss import together as joined

#: Channels that hide every value are calibrated at most so often, beside what is out.
_CHANNELS = 8


def calibrate(
    scenario: Scenario | Prior,
    epsilon: object,
    mechanism: str | None = None,
    *,
    cost: object = None,
    outputs: int | str | None = None,
    invariant: bool = False,
    unbiased: bool = False,
    min_keep: object = None,
    weights: Sequence[object] | Mapping[Any, object] | None = None,
    already: Iterable[Item] | None = None,
    column: str | None = None,
) -> Plan:
    """Return a plan: one mechanism for one epsilon, certified.

    What a calibrator finds is only a proposal. Its loss is recomputed by the certificate, which
    shares no code with it; the scale of noise is raised until the certificate holds. Where a prior
    carries a region (``confidence`` or ``tv_radius``), the plan holds for every prior of it. Where
    the rows of one person are known (``unit``), it holds for all of them together.

    Parameters
    ----------
    scenario : Scenario or Prior
        What is protected; a Prior stands for all pairs of its secrets.
    epsilon : number
        Above 0: int, float, Decimal, Fraction, or a string such as "0.1" or "1/3"; floats are
        read as the decimal they print as.
    mechanism : str, optional
        ``l1``, ``wasserstein``, ``relaxed``, ``one-sided``, ``exact`` or ``channel``. By default
        ``exact``, or ``channel`` for levels without an order.
    cost : str, mapping or matrix, optional
        For ``channel``, like all that follow. What to make least: ``hamming`` (the share of
        changed values; the default for levels without an order), ``squared`` (the default for
        numbers and ordered levels), ``absolute``, or c(x, y) as a mapping ``{x: {y: cost}}`` or
        rows of numbers.
    outputs : int or "fine:K", optional
        Publish also K further values between every two neighbours; for numbers and ordered levels.
    invariant : bool
        The expected frequencies of the values stay what they are (to 1e-9).
    unbiased : bool
        The expected output is the value (to 1e-9); widens the outputs.
    min_keep : number, optional
        Each value stays itself at least that often (to 1e-9); above 1/2 the frequencies can be
        estimated from a release.
    weights : sequence or mapping of numbers, optional
        How often each value occurs; by default the pooled counts of the secrets in the pairs, or
        the mean of their distributions.
    already : iterable of Plan or (str, Plan or mechanism), optional
        What is out already, of this column or of others: epsilon is then what all of it and this
        release together may cost (theory, section 6).
    column : str, optional
        The column to calibrate for, where the scenario is about several together.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If epsilon, the mechanism or an option is not of that kind, does not go with the scenario,
        or asks for what no channel can do.
    CheckFailed
        If nothing fits beside what is out, or no channel keeps the rows of one person together
        within epsilon.
    PufferfishError
        If nothing near the calibrator's answer can be certified: never a plan that was not proved.

    Notes
    -----
    Theory, sections 2 to 5 and 8.
    """
    if isinstance(scenario, Prior):
        scenario = Scenario(scenario)
    if not isinstance(scenario, Scenario):
        raise InputError(
            f"calibrate needs a Scenario or a Prior, but a {type(scenario).__name__} was given"
        )
    exact_epsilon = parse_epsilon(epsilon)
    together, scenario = scenario, scenario.of_column(column)
    method = method_named(default_for(scenario) if mechanism is None else mechanism)
    reason = why_not(method, scenario)
    if reason is not None:
        raise InputError(reason)
    options = {
        "cost": cost,
        "outputs": outputs,
        "invariant": invariant,
        "unbiased": unbiased,
        "min_keep": min_keep,
        "weights": weights,
    }
    for name, value in (("invariant", invariant), ("unbiased", unbiased)):
        if not isinstance(value, bool):
            raise InputError(f"{name} must be True or False, but {value!r} was given")
    if not isinstance(method, ChannelMethod):
        _refuse(options, method.name)
    if already is not None:
        return _beside(together, scenario, exact_epsilon, method, options, already, column)
    regions = regions_of(scenario) if has_region(scenario) else None
    notes = warned_of_incomplete(together)
    if isinstance(method, ChannelMethod):
        plan = _channel(scenario, exact_epsilon, method, regions, options)
    else:
        plan = _noise(scenario, exact_epsilon, method, regions)
    return replace(plan, notes=(*plan.notes, *notes)) if notes else plan


def _noise(
    scenario: Scenario, epsilon: Fraction, method: NoiseMethod, regions: Sequence[Concrete] | None
) -> Plan:
    if regions is None or method.robust is None:
        proposal = method.calibrate(scenario, epsilon)
    else:
        proposal = method.robust(scenario, epsilon, regions)
    noise, certificate, notes = certified(scenario, proposal, epsilon, regions)
    if not units_of(scenario):
        return Plan.of(scenario, method.name, noise, epsilon, certificate, notes)
    raised, certificate, found = noise_for_units(scenario, noise, epsilon)
    if raised.scale > noise.scale:
        notes += (
            "the scale is above what single rows need, for all rows of one person together: the "
            f"{found.how} decides",
        )
    certificate = joined(certificate, found, epsilon)
    plan = Plan.of(scenario, method.name, raised, epsilon, certificate, notes)
    return replace(plan, units=claim_of(scenario, found))


def _channel(
    scenario: Scenario,
    epsilon: Fraction,
    method: ChannelMethod,
    regions: Sequence[Concrete] | None,
    options: Mapping[str, Any],
) -> Plan:
    fitted = None
    if units_of(scenario):
        fitted = channel_for_units(scenario, epsilon, method.calibrate, options)
        solution = fitted.solution
    else:
        solution = method.calibrate(scenario, epsilon, regions=regions, **options)
    made = solution.channel
    certificate = prove(scenario, made, epsilon, regions)
    if not certificate.holds:
        raise PufferfishError(
            f"the channel could not be certified at epsilon {show(epsilon)}; please report it"
        )
    distortion = distortion_of(solution)
    notes = solution.notes
    if fitted is None:
        return Plan.of(scenario, method.name, made, epsilon, certificate, notes, distortion)
    certificate = joined(certificate, fitted.found, epsilon)
    notes += fitted.notes
    plan = Plan.of(scenario, method.name, made, epsilon, certificate, notes, distortion)
    return replace(plan, units=claim_of(scenario, fitted.found))


def _beside(
    together: Scenario,
    scenario: Scenario,
    epsilon: Fraction,
    method: NoiseMethod | ChannelMethod,
    options: Mapping[str, Any],
    already: Iterable[Item],
    column: str | None,
) -> Plan:
    """Return a plan that keeps within epsilon together with what is out."""
    from pufferfish.calibration.further import further
    from pufferfish.calibration.units_beside import loss_by_itself

    if has_region(scenario):
        raise InputError(
            "a region (confidence or tv_radius) and releases that are already out cannot be had "
            "together: the joint loss is that of the priors themselves"
        )
    # They are looked at twice.
    items = list(already) if isinstance(already, Iterator) else already
    if isinstance(method, NoiseMethod):
        made = _Beside(
            *further(
                together,
                epsilon,
                items,
                column,
                lambda own: method.calibrate(scenario, own),
                noise=True,
                least=method.least,
            )
        )
    else:
        made = _channel_beside(together, scenario, epsilon, method, options, items, column)
    applied, bound, out = made.applied, made.bound, made.out
    found = None
    if units_of(scenario):
        found = loss_by_itself(scenario, applied, out.numbers, bound)
    certificate = prove(scenario, applied, epsilon)
    if not certificate.holds:
        raise PufferfishError(
            f"what was found could not be certified at epsilon {show(epsilon)}; please report it"
        )
    if found is not None:
        certificate = joined(certificate, found, epsilon)
    solution = made.solution
    plan = Plan.of(
        scenario,
        method.name,
        applied,
        epsilon,
        certificate,
        (*out.notes, *(() if solution is None else solution.notes), *made.notes),
        None if solution is None else distortion_of(solution),
    )
    plan = replace(plan, beside=Beside(out.releases, bound.value, bound.how))
    return plan if found is None else replace(plan, units=claim_of(scenario, found))


@dataclass(frozen=True, eq=False)
class _Beside:
    """What fits beside what is out: with the bound of everything, and how it came about."""

    applied: Mechanism
    bound: Bound
    out: Gathered
    solution: ChannelSolution | None = None
    notes: tuple[str, ...] = ()


def _channel_beside(
    together: Scenario,
    scenario: Scenario,
    epsilon: Fraction,
    method: ChannelMethod,
    options: Mapping[str, Any],
    already: Iterable[Item],
    column: str | None,
) -> _Beside:
    """Return the channel of the lesser cost of both families that fit beside what is out."""
    from pufferfish.calibration.further import further

    solutions: dict[int, tuple[ChannelSolution, Fraction]] = {}

    def calibrated(own: Fraction) -> Mechanism:
        solution = method.calibrate(scenario, own, **options)
        solutions[id(solution.channel)] = solution, own
        return solution.channel

    alone: Fit[_Beside] | None = None
    failure: PufferfishError | None = None
    try:
        applied, bound, out = further(
            together, epsilon, already, column, calibrated, noise=False, least=False
        )
        solution, own = solutions[id(applied)]
        alone = Fit(_Beside(applied, bound, out, solution), solution.cost, own)
    except (DoesNotFit, GridTooLarge, InputError) as error:
        if not solutions:
            raise  # what is out is no list of releases, or leaves nothing
        failure = error

    def hidden() -> tuple[_Beside, Fraction] | None:
        with warnings.catch_warnings():
            # What there is to be said of the releases was said above.
            warnings.simplefilter("ignore")
            out = gathered(together, already)
        at, before = out.position(column), out.bound()
        rows = most_rows(together, out.numbers) if out.by_units else 1
        sure = None if before.upper is None else surely(epsilon, before.upper, rows)
        if sure is None:
            return None
        hiding = Hiding(scenario, options)

        def judged(own: Fraction) -> _Beside | None:
            solution = hiding.channel(own)
            bound = out.beside([(at, "this one", solution.channel)]).bound()
            if not bound.at_most(epsilon):
                return None
            return _Beside(solution.channel, bound, out, solution)

        return largest_own(epsilon, judged, _CHANNELS, sure)

    best = cheaper(epsilon, alone, hidden, _cost)
    if best is None:
        assert failure is not None  # or there would be a channel for the secret alone
        raise failure
    made = best.made
    if not best.hides or made.solution is None:
        return made
    both = "this release and what is already out"
    return replace(made, notes=best.notes(epsilon, both, made.solution.channel))


def _cost(made: _Beside) -> Fraction:
    return Fraction(0) if made.solution is None else made.solution.cost


def distortion_of(solution: ChannelSolution) -> Distortion:
    """Return what a channel does to values as frequent as the weights it was computed for."""
    made, weights = solution.channel, solution.weights
    ordered = not isinstance(made.inputs, Levels) or made.inputs.ordered
    mse = made.mse(weights) if ordered else math.inf
    return Distortion(
        name=solution.cost_name,
        cost=float_up(solution.cost),
        keep_rate=made.keep_rate(weights),
        mse=mse if math.isfinite(mse) else None,
        repair=solution.repair,
        conditions=solution.conditions,
    )


def _refuse(options: Mapping[str, object], method: str) -> None:
    """Refuse what only a channel understands."""
    given = [name for name, value in options.items() if value is not None and value is not False]
    if given:
        raise InputError(
            f"{listed(given)} {'is' if len(given) == 1 else 'are'} for the mechanism channel, "
            f"but {method} was asked for"
        )
