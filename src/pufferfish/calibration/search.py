# SPDX-License-Identifier: Apache-2.0
"""The least scale by a few full evaluations, and Newton steps at the worst witness in between.

The loss F(u) at u = step / theta is the largest of finitely many smooth functions f_w, one per
witness w, and never falls with u. From a u with F(u) > eps, with worst witness w, the root of f_w
below u is again a point with F >= f_w = eps: the search walks down to the root of F and changes
witness a few times at most (theory, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pufferfish.errors import PufferfishError
from pufferfish.loss import Attained

_MAX_ROUNDS = 300
_MAX_NEWTON = 60


class Excess(Protocol):
    """What the search needs to know of a loss: (loss - epsilon) / epsilon as a function of u."""

    def worst(self, u: float) -> tuple[float, Sequence[Attained]]:
        """Return the excess at u; the witness that attains it, then perhaps others to try."""

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the excess at one witness, and its slope in u."""

    def reach(self, u: float) -> float:
        """Return what :meth:`at` costs, as a share of the support."""


@dataclass(frozen=True)
class Found:
    """The root of F = eps.

    Attributes
    ----------
    u : float
        The root, to the tolerance.
    slope : float
        d excess / d ln u there: how much loss a relative change of the scale is worth.
    witness : Attained
        Where the loss is attained there.
    """

    u: float
    slope: float
    witness: Attained


def find_root(
    excess: Excess, low: float, start: float, tolerance: float, noise: float = math.inf
) -> Found:
    """Return the u at which the loss reaches epsilon.

    Parameters
    ----------
    excess : Excess
        The loss, relative to epsilon.
    low : float
        A u known to be private (that of the l1 scale).
    start : float
        First guess, at least ``low``.
    tolerance : float
        Relative precision of u wanted: the search stops at an excess of ``tolerance`` times its
        slope, and never asks for less than it.
    noise : float
        How far an excess may be off: no smaller one is asked for, however flat the loss. By
        default the tolerance.

    Raises
    ------
    PufferfishError
        If the search does not come to an end, which means that the loss could not be evaluated.
    """
    u, high = max(start, low), math.inf
    growth = 1.001
    for _ in range(_MAX_ROUNDS):
        value, witnesses = excess.worst(u)
        if math.isnan(value):
            break
        if abs(value) <= min(tolerance, noise) or (
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


def _found(excess: Excess, witness: Attained, u: float, above: float) -> Found:
    """Return the root, moved to the private side by what the excess is above 0."""
    slope = max(excess.at(witness, u)[1] * u, 1e-300)
    return Found(u * (1 - min(above / slope, 0.5)), slope, witness)


def _newton(excess: Excess, witness: Attained, u: float) -> float:
    value, slope = excess.at(witness, u)
    return u - value / slope if slope > 0 else 4 * u


def _lowest_root(excess: Excess, witnesses: Sequence[Attained], low: float, u: float) -> float:
    """Walk down to the lowest root of a few witnesses; as many as cost one look at the support."""
    some = max(1, min(len(witnesses), int(0.3 / excess.reach(u))))
    for k, witness in enumerate(witnesses[:some]):
        if k == 0 or excess.at(witness, u)[0] > 0:
            u = _root_at(excess, witness, low, u)
    return u


def _root_at(excess: Excess, witness: Attained, low: float, high: float) -> float:
    """Return the root of one witness's excess in [low, high], from the right side.

    Newton's method, kept inside a bracket that shrinks; where it leaves the bracket, bisect.
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
            # Quadratic convergence: the next point is the root to the last digit.
            return following
        u = following
    return _between(low, high)


def _between(low: float, high: float) -> float:
    return low**0.5 * high**0.5 if high > 4 * low else low + (high - low) / 2
