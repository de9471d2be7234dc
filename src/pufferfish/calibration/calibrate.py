# SPDX-License-Identifier: Apache-2.0
"""calibrate: a scenario becomes a plan whose scale has been proved, not merely computed."""

from __future__ import annotations

import math
from fractions import Fraction

from pufferfish.calibration.registry import DEFAULT, method_named
from pufferfish.certificate import Certificate, certify
from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.rationals import parse_epsilon, show
from pufferfish.regions import has_region
from pufferfish.scenario import Scenario

#: Beyond this relative rise of the scale the user is told.
_UNNOTICED = 1e-9
#: Each try doubles the units in the last place; 50 of them reach any scale.
_TRIES = 50
#: A calibrator that is further off than this is broken.
_LARGEST_RISE = 0.1


def calibrate(scenario: Scenario | Prior, epsilon: object, mechanism: str = DEFAULT) -> Plan:
    """Return a plan: the noise of one mechanism for one epsilon, certified.

    The calibrator's scale is only a proposal. Its loss is recomputed by the certificate, which
    shares no code with it, and the scale is raised until the certificate holds.

    Parameters
    ----------
    scenario : Scenario or Prior
        What is protected; a Prior stands for all pairs of its secrets.
    epsilon : number
        Above 0: int, float, Decimal, Fraction, or a string such as "0.1" or "1/3"; floats are
        read as the decimal they print as.
    mechanism : str
        ``l1``, ``wasserstein``, ``relaxed``, ``one-sided`` or ``exact``.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If epsilon or the mechanism is not of that kind, or levels without an order are given.
    PufferfishError
        If no scale near the calibrator's can be certified: never a plan that was not proved.

    Notes
    -----
    Theory, sections 2, 3 and 8.
    """
    if isinstance(scenario, Prior):
        scenario = Scenario(scenario)
    if not isinstance(scenario, Scenario):
        raise InputError(
            f"calibrate needs a Scenario or a Prior, but a {type(scenario).__name__} was given"
        )
    if has_region(scenario):
        raise InputError(
            "the prior carries a region (confidence or tv_radius), which plans do not honour yet; "
            "pufferfish.robust and pufferfish.calibration.channel do, or leave the region out"
        )
    exact_epsilon = parse_epsilon(epsilon)
    method = method_named(mechanism)
    noise = method.calibrate(scenario, exact_epsilon)
    noise, certificate, notes = _certified(scenario, noise, exact_epsilon)
    return Plan.of(scenario, method.name, noise, exact_epsilon, certificate, notes)


def _certified(
    scenario: Scenario, proposal: DiscreteLaplace, epsilon: Fraction
) -> tuple[DiscreteLaplace, Certificate, tuple[str, ...]]:
    """Raise the scale, by as little as it takes, until the certificate holds."""
    # Where the floating-point bound stays too coarse for epsilon, balls are worth their time.
    for method, tries in (("auto", 5), ("thorough", _TRIES)):
        found = _raised(scenario, proposal, epsilon, method, tries)
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
    scenario: Scenario, proposal: DiscreteLaplace, epsilon: Fraction, method: str, tries: int
) -> tuple[DiscreteLaplace, Certificate] | None:
    """Return the first certified scale at or above the proposed one, or None after some tries."""
    scale = proposal.scale
    for attempt in range(tries):
        noise = DiscreteLaplace(scale, proposal.step)
        certificate = certify(scenario, noise, epsilon, method)
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
