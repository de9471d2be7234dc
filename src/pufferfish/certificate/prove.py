# SPDX-License-Identifier: Apache-2.0
"""One question for every mechanism: is its loss within epsilon, also for all priors of regions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.certificate.channel import IntegerRows, certify_channel, check_rows
from pufferfish.certificate.decide import AdditiveNoise, certify_noise, scale_and_step
from pufferfish.certificate.record import Certificate
from pufferfish.certificate.robust import certify_robust, certify_robust_columns
from pufferfish.errors import InputError
from pufferfish.rationals import Number, parse_epsilon
from pufferfish.regions import Concrete, has_region, regions_of
from pufferfish.scenario import Scenario


@dataclass(frozen=True)
class _Noise:
    """A scale and a step, whatever they came as."""

    scale: float
    step: Fraction


def certify(
    scenario: Scenario,
    mechanism: AdditiveNoise | IntegerRows | Number,
    epsilon: Number | None = None,
    method: str = "auto",
) -> Certificate:
    """Recompute the privacy loss of a mechanism, with proof, and compare it with epsilon.

    Where a prior carries a region, the loss is the largest over all priors of the regions.

    Parameters
    ----------
    scenario : Scenario
        The priors and pairs.
    mechanism : DiscreteLaplace, Channel or number
        Its scale and step, or its integers, are all that is looked at. A number is the scale of
        noise on the scenario's own lattice; a float is taken as the exact value of the double, and
        what is no double (such as "1/3") is rounded down to one, which can only raise the loss.
    epsilon : number, optional
        What to compare the loss with; without it the loss is only bounded. Floats are read as the
        decimal they print as.
    method : "auto", "thorough", "ball" or "float-bound"
        For noise under exact priors, as for :func:`pufferfish.certificate.certify_noise`.

    Returns
    -------
    Certificate
        ``holds`` only if loss <= epsilon was proved.

    Raises
    ------
    InputError
        If the mechanism is none or does not fit the scenario, epsilon is not above 0, the method
        is unknown, or the prior was counted by the rows of one person.

    Notes
    -----
    Theory, sections 2, 4, 5 and 8.
    """
    if any(prior.units is not None for prior in scenario.priors):
        raise InputError(
            "the loss of single rows would be certified, but the prior was counted by the rows of "
            "one person (unit=...): Plan.verify judges these together"
        )
    regions = regions_of(scenario) if has_region(scenario) else None
    exact = None if epsilon is None else parse_epsilon(epsilon)
    if isinstance(mechanism, IntegerRows):
        return prove(scenario, mechanism, exact, regions)
    if regions is None:
        return certify_noise(scenario, mechanism, epsilon, method)
    return prove(scenario, _Noise(*scale_and_step(mechanism, scenario.lattice)), exact, regions)


def prove(
    scenario: Scenario,
    mechanism: AdditiveNoise | IntegerRows,
    epsilon: Fraction | None,
    regions: Sequence[Concrete] | None = None,
    method: str = "auto",
) -> Certificate:
    """Recompute the privacy loss of a mechanism, with proof, and compare it with epsilon.

    Parameters
    ----------
    scenario : Scenario
        The priors and pairs.
    mechanism : DiscreteLaplace or Channel
        Its scale and step, or its integers, are all that is looked at.
    epsilon : Fraction or None
        What to compare the loss with; None only bounds it.
    regions : sequence of Box or Ball, optional
        Where the priors may lie, one per adversary: then the loss is the largest over all of them.
    method : str
        For additive noise without regions, as for :func:`certify_noise`.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the mechanism is none, or does not fit the scenario.

    Notes
    -----
    Theory, sections 4, 5 and 8.
    """
    if not isinstance(mechanism, IntegerRows):
        if regions is None:
            return certify_noise(scenario, mechanism, epsilon, method)
        return certify_robust(scenario, mechanism, regions, epsilon)
    if regions is None:
        return certify_channel(scenario, mechanism, epsilon)
    check_rows(mechanism)
    if not mechanism.inputs.same_as(scenario.support):
        raise InputError("the channel is for other values than those of the regions")
    # Common factors of a column do not matter: whole numbers over the least common multiple.
    common = math.lcm(*mechanism.denominators)
    factors = [common // d for d in mechanism.denominators]
    columns = [
        [v * f for v, f in zip(column, factors, strict=True)]
        for column in mechanism.rows.T.tolist()
    ]
    return certify_robust_columns(scenario, columns, regions, epsilon, mechanism.outputs.name)
