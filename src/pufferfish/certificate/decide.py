# SPDX-License-Identifier: Apache-2.0
"""Which method proves what: ball arithmetic, the floating-point bound, then exact rationals."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from pufferfish.certificate.ball import ball_finding
from pufferfish.certificate.floatbound import float_finding
from pufferfish.certificate.rational import proved_by_distance
from pufferfish.certificate.record import Case, Certificate, Finding, Witness
from pufferfish.certificate.statement import off_lattice_statement, statement_of
from pufferfish.certificate.unchanged import unchanged_finding
from pufferfish.errors import InputError, did_you_mean
from pufferfish.rationals import Number, float_down, parse_epsilon, parse_number, show
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice

#: Cells (adversaries x protected secrets x atoms) up to which ``auto`` goes straight to balls: they
#: take about half a microsecond each there, so a tenth of a second at most.
BALL_CELLS = 250_000
#: Cells up to which ``auto`` still turns to balls when the floating-point bound cannot decide; a
#: couple of seconds, and about 100 bytes per cell.
LAST_BALL_CELLS = 4_000_000

_METHODS = ("auto", "thorough", "ball", "float-bound")
#: Bits of the first try. FLINT takes hardly longer for two machine words than for one.
_BITS = 128
#: Each further try doubles the bits.
_TRIES = 3
#: No loss without noise needs so many bits to be told from epsilon.
_MOST_BITS = 1 << 17


class AdditiveNoise(Protocol):
    """What a certificate needs to know of a mechanism: Laplace noise on a lattice."""

    @property
    def scale(self) -> float:
        """theta, in units of the data."""

    @property
    def step(self) -> Fraction:
        """Step of the lattice of the noise, in the same units."""


def certify_noise(
    scenario: Scenario,
    mechanism: AdditiveNoise | Number,
    epsilon: Number | None = None,
    method: str = "auto",
) -> Certificate:
    """Recompute the privacy loss of additive noise, with proof, and compare it with epsilon.

    Source: theory, sections 2 and 8.

    Parameters
    ----------
    scenario : Scenario
        The priors, taken as exact (a region of a prior is not looked at), and pairs.
    mechanism : DiscreteLaplace or number
        The noise; only its scale and step are looked at. A number is the scale of noise on the
        scenario's own lattice; a float is taken as the exact value of the double, and what is no
        double (such as "1/3") is rounded down to one, which can only raise the loss.
    epsilon : number, optional
        What to compare the loss with; without it the loss is only bounded. Floats are read as the
        decimal they print as.
    method : "auto", "thorough", "ball" or "float-bound"
        ``auto`` uses ball arithmetic up to `BALL_CELLS` cells, beyond that the floating-point
        bound, and balls again (up to `LAST_BALL_CELLS`) where that does not decide; ``thorough``
        is the same without that last limit, however long it takes. Where the loss
        may equal epsilon, each method is followed by the argument in exact rationals. Without
        noise (scale 0) the exact masses are compared, whatever the method.

    Returns
    -------
    Certificate
        ``holds`` only if loss <= epsilon was proved.

    Raises
    ------
    InputError
        If the method is unknown, the mechanism is neither noise nor a number, the scale or
        epsilon is no finite number (not below, or above, 0), or the support is levels without an
        order.
    """
    if method not in _METHODS:
        raise InputError(
            f"the method must be one of {', '.join(_METHODS)}, but {method!r} was given"
            f"{did_you_mean(str(method), _METHODS)}"
        )
    lattice = scenario.lattice
    scale, step = scale_and_step(mechanism, lattice)
    exact = None if epsilon is None else parse_epsilon(epsilon)
    if step <= 0 or (lattice.step / step).denominator != 1:
        # Noise on a lattice that misses some of the values tells these apart for certain.
        return Certificate.of_nothing(exact, off_lattice_statement(step, lattice.step))
    if scale == 0:
        return _without_noise(scenario, exact)
    if method == "ball" or (method != "float-bound" and scenario.cells <= BALL_CELLS):
        return _by_ball(scenario, scale, exact)
    bounded = _by_float_bound(scenario, scale, exact)
    if method == "float-bound" or (method == "auto" and scenario.cells > LAST_BALL_CELLS):
        return bounded
    unknown = not bounded.decided if exact is not None else math.isinf(bounded.loss)
    return _by_ball(scenario, scale, exact) if unknown else bounded


def scale_and_step(mechanism: AdditiveNoise | Number, lattice: Lattice) -> tuple[float, Fraction]:
    """Return theta as a double, and the step of the noise's lattice."""
    step = getattr(mechanism, "step", None)
    if isinstance(step, Fraction | int):
        scale = float(mechanism.scale)  # type: ignore[union-attr]  # what has a step has a scale
    else:
        step = lattice.step
        exact = parse_number(mechanism, "the scale")
        scale = mechanism if isinstance(mechanism, float) else float_down(exact)
    if not (math.isfinite(scale) and scale >= 0):
        raise InputError(f"the scale must be a finite number, at least 0, but it is {scale}")
    return scale, Fraction(step)


def loss_ball(scenario: Scenario, scale: float) -> tuple[float, float]:
    """Enclose the loss of Laplace noise between two doubles, by ball arithmetic.

    Parameters
    ----------
    scenario : Scenario
        The priors (exact) and pairs.
    scale : float
        theta, in units of the data; 0 means no noise.

    Returns
    -------
    lower, upper : float
        Neighbouring doubles, or nearly, unless the loss is tiny; (inf, inf) if it is infinite.

    Raises
    ------
    InputError
        If the scale is no finite number, or the support is levels without an order.
    """
    if not (math.isfinite(scale) and scale >= 0):
        raise InputError(f"the scale must be a finite number, at least 0, but it is {scale}")
    finding = Finding(0.0, math.inf)
    for attempt in range(_TRIES):
        bits = _BITS << attempt
        if scale == 0:
            finding = unchanged_finding(scenario, None, bits)
        else:
            finding = ball_finding(scenario, scale, None, bits)
        if finding.upper - finding.lower <= 1e-15 * finding.upper or math.isinf(finding.lower):
            break
    return finding.lower, finding.upper


def _first_bits(epsilon: Fraction | None) -> int:
    """Return the bits of the first try: a small epsilon is told from 0 only by so many more."""
    if epsilon is None:
        return _BITS
    return _BITS + max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())


def _without_noise(scenario: Scenario, epsilon: Fraction | None) -> Certificate:
    bits = _first_bits(epsilon)
    finding = unchanged_finding(scenario, epsilon, bits)
    # ln of a rational is no rational but at 0: with enough digits it differs from epsilon.
    while finding.undecided and not finding.refuted and bits < _MOST_BITS:
        bits *= 2
        finding = unchanged_finding(scenario, epsilon, bits)
    return _certificate(scenario, finding, epsilon, bits=bits)


def _by_ball(scenario: Scenario, scale: float, epsilon: Fraction | None) -> Certificate:
    bits = _first_bits(epsilon)
    exactly: frozenset[Case] = frozenset()
    tried: frozenset[Case] = frozenset()
    finding = ball_finding(scenario, scale, epsilon, bits)
    for attempt in range(1, _TRIES + 1):
        if epsilon is None or finding.refuted:
            break
        exactly |= proved_by_distance(scenario, scale, epsilon, finding.undecided - tried)
        tried |= finding.undecided
        if finding.undecided <= exactly or attempt == _TRIES:
            break
        bits *= 2
        finding = ball_finding(scenario, scale, epsilon, bits)
    return _certificate(scenario, finding, epsilon, exactly, bits=bits)


def _by_float_bound(scenario: Scenario, scale: float, epsilon: Fraction | None) -> Certificate:
    finding, error = float_finding(scenario, scale, epsilon)
    exactly: frozenset[Case] = frozenset()
    if epsilon is not None and finding.undecided and not finding.refuted:
        exactly = proved_by_distance(scenario, scale, epsilon, finding.undecided)
    return _certificate(scenario, finding, epsilon, exactly, error=error)


def _certificate(
    scenario: Scenario,
    finding: Finding,
    epsilon: Fraction | None,
    exactly: frozenset[Case] = frozenset(),
    *,
    bits: int | None = None,
    error: float | None = None,
) -> Certificate:
    holds = epsilon is not None and not finding.refuted and finding.undecided <= exactly
    loss = finding.upper
    if epsilon is not None and holds:
        # The double of epsilon stands for the decimal that it prints as: for epsilon itself.
        loss = min(loss, float(epsilon))
    by_distance = bool(holds and finding.undecided)
    witness = None
    if finding.case is not None and finding.atom is not None:
        rho, pair = finding.case
        witness = Witness(scenario.support.name(finding.atom), pair, rho)
    method = "ball" if error is None else "float-bound"
    bare = Certificate(
        method=f"{method}+rational" if by_distance else method,
        loss=loss,
        loss_at_least=finding.lower,
        epsilon=None if epsilon is None else show(epsilon),
        holds=holds,
        decided=holds or finding.refuted,
        witness=witness,
        precision=bits,
        error_bound=error,
        statement="",
    )
    return replace(bare, statement=statement_of(bare, len(scenario.priors)))
