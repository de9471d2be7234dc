# SPDX-License-Identifier: Apache-2.0
"""What calibrators share: what they propose, and the root finder, in u = 1 / theta.

The loss F(u) is the largest of many smooth functions f_w, one for each witness w, and never falls
with u. From a u with F(u) > epsilon and worst witness w, the root of f_w below u is again a point
with F >= f_w = epsilon: the search walks down to the root of F, and changes its witness a few times
at most. From the other side Newton steps lead back (theory, section 2).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, Protocol, TypeVar

from pufferfish.errors import InputError, PufferfishError
from pufferfish.loss.certificate import LossBound
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import float_up
from pufferfish.plans.guarantee import Distortion

#: A proposal that has to be raised by more than this was not found at all.
_LARGEST_RISE = 0.1
_TRIES = 50
_MAX_ROUNDS = 300
_MAX_NEWTON = 60

T = TypeVar("T")


class Loss(Protocol):
    """What the search needs to know of a loss as a function of u."""

    def worst(self, u: float) -> tuple[float, Any]:
        """Return the loss at u, and a witness where it is attained; None: there is none."""

    def at(self, witness: Any, u: float) -> tuple[float, float]:
        """Return the loss at one witness, and its slope in u."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mechanism; ``bound`` is the loss of it and all previous releases.

    Of a channel also its ``distortion`` of values of the ``weights``, which sum to 1; its ``cost``
    is exact and exceeds the least possible one by at most ``distortion.gap`` (weak duality).
    Where it publishes sets of values, ``labels`` draw a value from each.
    """

    mechanism: Mechanism
    bound: LossBound | None = None
    notes: tuple[str, ...] = ()
    distortion: Distortion | None = None
    cost: Fraction = Fraction(0)
    weights: tuple[Fraction, ...] = ()
    labels: Channel | None = None


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
        # A rise of the scale lowers the loss by about as much, relative to each; a wrong 0 is no
        # rounding error.
        missing = min(loss / float(epsilon) - 1, 0.01)
        scale = max(scale * (1 + 1.5 * missing), scale + (1 << attempt) * math.ulp(scale))
        if not 0 < proposal <= scale <= proposal * (1 + _LARGEST_RISE):
            break
    raise PufferfishError(
        f"no scale near {proposal!r} could be proved to be private; please report it"
    )


def find_root(
    loss: Loss, epsilon: float, low: float, start: float, tolerance: float, error: float = 0.0
) -> tuple[float, float]:
    """Return the u at which the loss reaches epsilon, and the slope d ln F / d ln u there.

    u is right to a relative tolerance, on the private side. ``low`` is a u known to be private,
    ``start`` a first guess. Losses are known to a relative ``error``: no smaller excess over
    epsilon is asked for, however flat the loss.
    """
    u, high = max(start, low), math.inf
    for _ in range(_MAX_ROUNDS):
        value, witness = loss.worst(u)
        excess = value / epsilon - 1
        if math.isnan(excess) or witness is None:
            break
        at = cache(partial(loss.at, witness))
        slope = max(at(u)[1] * u / epsilon, 1e-300)
        if abs(excess) <= max(error, tolerance * min(slope, 1.0)):
            return u * (1 - min(max(excess, 0.0) / slope, 0.5)), slope
        if excess > 0:
            high = u
            u = _walked_down(at, epsilon, low, u)
        else:
            low = u
            u *= 1 - excess / slope
            if high == math.inf:
                u = min(max(u, (1 + tolerance) * low), 4 * max(low, 1.0))
        if not low < u < high:
            u = _between(low, high)
        if not low < u < high:
            return low, slope  # no double lies between what is private and what is not
    raise PufferfishError("the search for the least scale did not converge")


def _walked_down(
    at: Callable[[float], tuple[float, float]], epsilon: float, low: float, high: float
) -> float:
    """Return the root of one witness's loss in [low, high]: Newton's method in a bracket."""
    u = high
    for _ in range(_MAX_NEWTON):
        value, slope = at(u)
        if value > epsilon:
            high = u
        else:
            low = u
        following = u - (value - epsilon) / slope if slope > 0 else low
        if not low < following < high:
            following = _between(low, high)
        if abs(following - u) <= 1e-7 * u:
            return following  # the error of the next point is about the square of this step
        u = following
    return u


def _between(low: float, high: float) -> float:
    return low**0.5 * high**0.5 if high > 4 * low else low + (high - low) / 2
