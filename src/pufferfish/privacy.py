# SPDX-License-Identifier: Apache-2.0
"""privacy_loss: the exact loss at a scale, in balls where they are quick, in doubles elsewhere."""

from pufferfish.errors import InputError
from pufferfish.loss import LARGEST_U, FloatLoss, fits_doubles
from pufferfish.precise import PRECISE_CELLS, PreciseLoss
from pufferfish.rationals import float_up, parse_number
from pufferfish.regions import has_region
from pufferfish.robust import robust_loss
from pufferfish.scenario import Scenario


def privacy_loss(scenario: Scenario, scale: object) -> float:
    """Return the exact privacy loss of Laplace noise of a given scale.

    It is the same for continuous Laplace noise and for discrete Laplace noise on any lattice that
    contains the atoms. Where a prior carries a region it is the largest over all of its priors.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels.
    scale : number
        theta, not negative; 0 publishes the column unchanged.

    Returns
    -------
    float
        The largest log-ratio over outputs, pairs and adversaries; ``inf`` where it is infinite.
        Not rounded up: a proven bound is what :func:`pufferfish.certify` gives.

    Raises
    ------
    InputError
        If the scale is negative or no number, the levels have no order, or the prior was counted
        by the rows of one person.

    Notes
    -----
    Theory, sections 2 and 5.
    """
    theta = parse_number(scale, "the scale")
    if theta < 0:
        raise InputError(f"the scale must not be negative, but {scale} was given")
    if any(prior.units is not None for prior in scenario.priors):
        raise InputError(
            "this is the loss of single rows, but the prior was counted by the rows of one person "
            "(unit=...); count it without unit, or see the loss of a plan"
        )
    if has_region(scenario):
        return robust_loss(scenario, theta)
    if scenario.cells <= PRECISE_CELLS or not fits_doubles(scenario):
        return PreciseLoss(scenario, bits=128).loss(theta)
    loss = FloatLoss.of(scenario)
    if theta == 0:
        return loss.unchanged()[0]
    u = float_up(scenario.lattice.step / theta)
    return loss.worst(min(u, LARGEST_U))[0]
