# SPDX-License-Identifier: Apache-2.0
"""From a proposed scale to a certified one: raised, by as little as it takes, until it is proved.

The calibrator's scale is only a proposal. Its loss is recomputed by the certificate, which shares
no code with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from pufferfish.certificate import Certificate, prove
from pufferfish.errors import PufferfishError
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.rationals import show
from pufferfish.regions import Concrete
from pufferfish.scenario import Scenario

#: Beyond this relative rise of the scale the user is told.
_UNNOTICED = 1e-9
#: Each try doubles the units in the last place; 50 of them reach any scale.
_TRIES = 50
#: A calibrator that is further off than this is broken.
_LARGEST_RISE = 0.1


def certified(
    scenario: Scenario,
    proposal: DiscreteLaplace,
    epsilon: Fraction,
    regions: Sequence[Concrete] | None,
) -> tuple[DiscreteLaplace, Certificate, tuple[str, ...]]:
    """Return noise whose loss is proved to be at most epsilon.

    Parameters
    ----------
    scenario : Scenario
        What is protected.
    proposal : DiscreteLaplace
        What a calibrator found.
    epsilon : Fraction
        Above 0.
    regions : sequence of Box or Ball, or None
        Where the priors may lie, one per adversary.

    Returns
    -------
    noise : DiscreteLaplace
        Of a scale that is not below the proposed one.
    certificate : Certificate
        Its proof.
    notes : tuple of str
        What the user should know of how the scale came about.

    Raises
    ------
    PufferfishError
        If no scale near the proposed one can be certified.
    """
    # Where the floating-point bound stays too coarse for epsilon, balls are worth their time.
    for method, tries in (("auto", 5), ("thorough", _TRIES)):
        found = _raised(scenario, proposal, epsilon, regions, method, tries)
        if found is not None:
            noise, certificate = found
            notes: tuple[str, ...] = ()
            if noise.scale > proposal.scale * (1 + _UNNOTICED):
                notes = (
                    f"the scale was raised by {noise.scale / proposal.scale - 1:.1e} of itself, "
                    "until its loss could be proved",
                )
            return noise, certificate, notes
    raise PufferfishError(
        f"no scale near {proposal.scale!r} could be certified at epsilon {show(epsilon)}; "
        "please report it"
    )


def _raised(
    scenario: Scenario,
    proposal: DiscreteLaplace,
    epsilon: Fraction,
    regions: Sequence[Concrete] | None,
    method: str,
    tries: int,
) -> tuple[DiscreteLaplace, Certificate] | None:
    """Return the first certified scale at or above the proposed one, or None after some tries."""
    scale = proposal.scale
    for attempt in range(tries):
        noise = DiscreteLaplace(scale, proposal.step)
        certificate = prove(scenario, noise, epsilon, regions, method)
        if certificate.holds:
            return noise, certificate
        # A rise of the scale lowers the loss by about as much, relative to each.
        missing = certificate.loss / float(epsilon) - 1
        rise = 1.5 * missing if math.isfinite(missing) and missing > 0 else 0.0
        scale = max(scale * (1 + min(rise, 0.01)), _ulps_up(scale, 1 << attempt))
        if scale == 0 or scale > proposal.scale * (1 + _LARGEST_RISE):
            break
    return None


def _ulps_up(scale: float, ulps: int) -> float:
    if scale == 0:
        return 0.0  # a wrong 0 is no rounding error
    return min(scale + ulps * math.ulp(scale), 1.7976931348623157e308)
