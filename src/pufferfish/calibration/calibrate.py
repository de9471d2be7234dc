# SPDX-License-Identifier: Apache-2.0
"""calibrate: a scenario becomes a plan whose mechanism has been proved, not merely computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pufferfish.calibration.certified import certified
from pufferfish.calibration.channel import ChannelSolution
from pufferfish.calibration.registry import (
    ChannelMethod,
    NoiseMethod,
    default_for,
    method_named,
    why_not,
)
from pufferfish.certificate import prove
from pufferfish.distortion import Distortion
from pufferfish.errors import InputError, PufferfishError, listed
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.rationals import float_up, parse_epsilon, show
from pufferfish.regions import Concrete, has_region, regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import Levels


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
) -> Plan:
    """Return a plan: one mechanism for one epsilon, certified.

    What a calibrator finds is only a proposal. Its loss is recomputed by the certificate, which
    shares no code with it; the scale of noise is raised until the certificate holds. Where a prior
    carries a region (``confidence`` or ``tv_radius``), the plan holds for every prior of it.

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

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If epsilon, the mechanism or an option is not of that kind, does not go with the scenario,
        or asks for what no channel can do.
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
    regions = regions_of(scenario) if has_region(scenario) else None
    if isinstance(method, ChannelMethod):
        return _channel(scenario, exact_epsilon, method, regions, options)
    _refuse(options, method.name)
    return _noise(scenario, exact_epsilon, method, regions)


def _noise(
    scenario: Scenario, epsilon: Fraction, method: NoiseMethod, regions: Sequence[Concrete] | None
) -> Plan:
    if regions is None or method.robust is None:
        proposal = method.calibrate(scenario, epsilon)
    else:
        proposal = method.robust(scenario, epsilon, regions)
    noise, certificate, notes = certified(scenario, proposal, epsilon, regions)
    return Plan.of(scenario, method.name, noise, epsilon, certificate, notes)


def _channel(
    scenario: Scenario,
    epsilon: Fraction,
    method: ChannelMethod,
    regions: Sequence[Concrete] | None,
    options: Mapping[str, Any],
) -> Plan:
    solution = method.calibrate(scenario, epsilon, regions=regions, **options)
    made = solution.channel
    certificate = prove(scenario, made, epsilon, regions)
    if not certificate.holds:
        raise PufferfishError(
            f"the channel could not be certified at epsilon {show(epsilon)}; please report it"
        )
    distortion = distortion_of(solution)
    return Plan.of(scenario, method.name, made, epsilon, certificate, solution.notes, distortion)


def distortion_of(solution: ChannelSolution) -> Distortion:
    """Return what a channel does to values as frequent as the weights it was computed for."""
    made, weights = solution.channel, solution.weights
    ordered = not isinstance(made.inputs, Levels) or made.inputs.ordered
    return Distortion(
        name=solution.cost_name,
        cost=float_up(solution.cost),
        keep_rate=made.keep_rate(weights),
        mse=made.mse(weights) if ordered else None,
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
