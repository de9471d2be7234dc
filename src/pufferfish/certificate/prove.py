# SPDX-License-Identifier: Apache-2.0
"""One question for every mechanism: is its loss within epsilon, also for all priors of regions."""

import math
from collections.abc import Sequence
from fractions import Fraction

from pufferfish.certificate.channel import IntegerRows, certify_channel, check_rows
from pufferfish.certificate.decide import AdditiveNoise, certify
from pufferfish.certificate.record import Certificate
from pufferfish.certificate.robust import certify_robust, certify_robust_columns
from pufferfish.errors import InputError
from pufferfish.regions import Concrete
from pufferfish.scenario import Scenario


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
        For additive noise without regions, as for :func:`certify`.

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
            return certify(scenario, mechanism, epsilon, method)
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
