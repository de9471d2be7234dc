# SPDX-License-Identifier: Apache-2.0
"""The root finder: bracketing on the loss as a function of u = 1 / theta, then a margin.

The loss F(u) is the largest of finitely many smooth functions f_w, one for each witness w, and
never falls with u. From a u with F(u) > eps and worst witness w, the root of f_w below u is again
a point with F >= f_w = eps: the search walks down to the root of F and changes its witness a few
times at most (theory, section 2).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import float_up

#: A proposal that has to be raised by more than this was not found at all.
_LARGEST_RISE = 0.1
_TRIES = 50
_MAX_ROUNDS = 300
_MAX_NEWTON = 60
#: Witnesses of one evaluation that are followed to their roots.
_FOLLOWED = 4
#: So near to its root the worst witness hardly ever changes.
_NEAR = 1e-4

T = TypeVar("T")


class Loss(Protocol):
    """What the search needs to know of a loss as a function of u."""

    def worst(self, u: float) -> tuple[float, Sequence[Any]]:
        """Return the loss at u, and the witnesses where it is largest, worst first."""

    def at(self, witness: Any, u: float) -> tuple[float, float]:
        """Return the loss at one witness, and its slope in u."""


@dataclass(frozen=True)
class Found:
    """The root of F = eps: u, the slope d ln F / d ln u there, and where F is attained."""

    u: float
    slope: float
    witness: Any


def noise_up(scale: Fraction | float, step: Fraction, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise of the smallest double that is not below a scale; refuse one beyond doubles."""
    rounded = scale if isinstance(scale, float) else float_up(scale)
    if math.isinf(rounded):
        raise InputError(
            f"the scale for epsilon {float(epsilon):.6g} overflows: it would exceed 1.8e308; "
            "epsilon must be larger"
        )
    return DiscreteLaplace(rounded, step)


def raised(
    scale: float, epsilon: Fraction, judge: Callable[[float], tuple[T, bool, float]]
) -> tuple[float, T]:
    """Return the first scale, at or above a proposal, that is proved to be private, and the proof.

    ``judge`` returns what was proved of a scale, whether it is private, and the proven loss.
    """
    proposal = scale
    for attempt in range(_TRIES):
        proof, holds, loss = judge(scale)
        if holds:
            return scale, proof
        missing = max(loss / float(epsilon) - 1, 1e-16)
        # A rise of the scale lowers the loss by about as much, relative to each; a wrong 0 is no
        # rounding error.
        rise = min(1.5 * missing, 0.01) if math.isfinite(missing) else 0.0
        ulps = scale + (1 << attempt) * math.ulp(scale)
        scale = min(max(scale * (1 + rise), ulps), 1.7976931348623157e308)
        if proposal <= 0 or scale > proposal * (1 + _LARGEST_RISE):
            break
    raise PufferfishError(
        f"no scale near {proposal!r} could be proved to be private; please report it"
    )


@dataclass(frozen=True)
class _Excess:
    """(F - eps) / eps at u, and at one witness."""

    loss: Loss
    epsilon: float

    def worst(self, u: float) -> tuple[float, Sequence[Any]]:
        value, witnesses = self.loss.worst(u)
        return (value - self.epsilon) / self.epsilon, witnesses

    def at(self, witness: Any, u: float) -> tuple[float, float]:
        value, slope = self.loss.at(witness, u)
        return (value - self.epsilon) / self.epsilon, slope / self.epsilon


def find_root(
    loss: Loss, epsilon: float, low: float, start: float, tolerance: float, error: float = 0.0
) -> Found:
    """Return the u at which the loss reaches epsilon, to a relative tolerance.

    ``low`` is a u known to be private, ``start`` a first guess. Losses are known to a relative
    ``error``: no smaller excess over epsilon is asked for, however flat the loss.
    """
    excess = _Excess(loss, epsilon)
    u, high, growth = max(start, low), math.inf, 1.001
    for _ in range(_MAX_ROUNDS):
        value, witnesses = excess.worst(u)
        if math.isnan(value) or (value <= 0 and not witnesses):
            break
        if abs(value) <= error or (
            abs(value) <= tolerance and abs(value) <= tolerance * excess.at(witnesses[0], u)[1] * u
        ):
            return _found(excess, witnesses[0], u, max(value, 0.0))
        if value > 0:
            high = u
            following = _lowest_root(excess, witnesses, low, u)
        else:
            low = u
            following = _newton(excess, witnesses[0], u)
            if high == math.inf:
                following = min(max(following * (1 + 1e-12), u * growth), max(4.0, growth) * u)
                growth = min(growth**3, 64.0)
            elif following >= high:
                following = _between(low, high)
        if high < math.inf and not low < following < high:
            following = _between(low, high)
        if not low < following < high:
            # No double lies between what is private and what is not.
            return _found(excess, witnesses[0], low, 0.0)
        u = following
    raise PufferfishError("the search for the least scale did not converge")


def _found(excess: _Excess, witness: Any, u: float, above: float) -> Found:
    """Return the root, moved to the private side by what the excess is above 0."""
    slope = max(excess.at(witness, u)[1] * u, 1e-300)
    return Found(u * (1 - min(above / slope, 0.5)), slope, witness)


def _newton(excess: _Excess, witness: Any, u: float) -> float:
    value, slope = excess.at(witness, u)
    return u - value / slope if slope > 0 else 4 * u


def _lowest_root(excess: _Excess, witnesses: Sequence[Any], low: float, u: float) -> float:
    """Walk down to the lowest root of the worst few witnesses; of the worst one near the end."""
    root = u
    for k, witness in enumerate(witnesses[:_FOLLOWED]):
        if k == 0 or excess.at(witness, root)[0] > 0:
            root = _root_at(excess, witness, low, root)
        if u - root <= _NEAR * u:
            break
    return root


def _root_at(excess: _Excess, witness: Any, low: float, high: float) -> float:
    """Return the root of one witness's excess in [low, high], from the right side.

    Newton's method, kept inside a bracket that shrinks; where it leaves the bracket, bisection.
    """
    u = high
    for _ in range(_MAX_NEWTON):
        value, slope = excess.at(witness, u)
        if value > 0:
            high = u
        else:
            low = u
        following = u - value / slope if slope > 0 else low
        if not low < following < high:
            following = _between(low, high)
        if abs(following - u) <= 4e-16 * u or not low < following < high:
            return min(u, following) if value > 0 else u
        if abs(following - u) <= 1e-7 * u:
            return following  # the next point, for convergence is quadratic
        u = following
    return _between(low, high)


def _between(low: float, high: float) -> float:
    return low**0.5 * high**0.5 if high > 4 * low else low + (high - low) / 2
