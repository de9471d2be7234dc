# SPDX-License-Identifier: Apache-2.0
"""Two families of channels, of which the cheaper one is taken.

Channels that hide the secret alone are the cheapest for one row and one release. For all rows of
one person, or beside what is out, they have to be made for a smaller epsilon of their own, and may
then cost more than one that hides every value from every other
(:mod:`pufferfish.calibration.hiding`), or not fit at all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np

from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel
from pufferfish.rationals import show

#: What is subtracted, relatively, of an epsilon that fits exactly, so that rounding does no harm.
_SAFE = 1 - Fraction(1, 2**40)
#: What is left of a budget is nothing where it is a smaller share, for halving is no finer.
_LEAST = Fraction(1, 2**11)

T = TypeVar("T")


def surely(epsilon: Fraction, before: Fraction | None = None, rows: int = 1) -> Fraction | None:
    """Return an own epsilon within which hiding every value fits, whatever the prior.

    Parameters
    ----------
    epsilon : Fraction
        What everything may cost.
    before : Fraction, optional
        What is out costs already.
    rows : int
        The most rows of one person.

    Returns
    -------
    Fraction or None
        Just below ``(epsilon - before) / rows``; None where next to nothing of epsilon is left.
    """
    left = epsilon - (before or 0)
    return left / rows * _SAFE if left > epsilon * _LEAST else None


@dataclass(frozen=True, eq=False)
class Fit(Generic[T]):
    """What was found in one of the two families: it fits.

    Attributes
    ----------
    made : object
        What was calibrated, with all that the caller needs of it.
    cost : Fraction or float
        Its expected cost.
    own : Fraction
        The epsilon that it was calibrated for.
    hides : bool
        Whether it hides every value from every other.
    instead : Fraction, float or None
        What the best of the other family costs; None where that has nothing that fits, or was not
        looked at.
    """

    made: T
    cost: Fraction | float
    own: Fraction
    hides: bool = False
    instead: Fraction | float | None = None

    def notes(self, epsilon: Fraction, together: str, made: Channel) -> tuple[str, ...]:
        """Return what was done, and why, for the user; empty where it is the channel of epsilon.

        Parameters
        ----------
        epsilon : Fraction
            What everything may cost.
        together : str
            What stays within it: the subject of a sentence, in the plural.
        made : Channel
            What was found.
        """
        within = f"so that {together} stay within epsilon {show(epsilon)}"
        if _is_constant(made) and (self.hides or self.own < epsilon):
            return (
                f"{within}, the channel publishes every value in the same way and tells nothing of "
                "it: no channel was found that changes less and lets them do so",
            )
        if not self.hides:
            smaller = (
                f"{within}, the channel is calibrated for a smaller epsilon of its own, "
                f"{float(self.own):.6g}"
            )
            return (smaller,) if self.own < epsilon else ()
        why = (
            "no channel made to hide the secret alone was found with which they do"
            if self.instead is None
            else "the channels made to hide the secret alone with which they do cost more "
            f"({float(self.instead):.4g} instead of {float(self.cost):.4g})"
        )
        return (
            f"{within}, the channel hides every value from every other, and not just the secret, "
            f"within epsilon {float(self.own):.6g} (of the secret it tells at most the loss that "
            f"is stated): {why}",
        )


def _is_constant(made: Channel) -> bool:
    sums = np.array(made.denominators, dtype=object)
    return bool((made.rows * sums[0] == made.rows[0] * sums[:, None]).all())


def cheaper(
    epsilon: Fraction,
    alone: Fit[T] | None,
    hidden: Callable[[], tuple[T, Fraction] | None],
    cost: Callable[[T], Fraction | float],
) -> Fit[T] | None:
    """Return the channel of the lesser cost of both families, or None where neither has any.

    Parameters
    ----------
    epsilon : Fraction
        What everything may cost.
    alone : Fit or None
        What was found among the channels for the secret alone.
    hidden : callable
        Finds a channel that hides every value from every other, and its own epsilon. It is not
        called where ``alone`` takes up epsilon by itself: nothing can be cheaper than that.
    cost : callable
        What such a channel costs.
    """
    if alone is not None and alone.own == epsilon:
        return alone
    other = None
    # The conditions may be too much for channels that hide every value.
    with suppress(InputError):
        other = hidden()
    if other is None:
        return alone
    made, own = other
    price = cost(made)
    if alone is None:
        return Fit(made, price, own, hides=True)
    if price < alone.cost:
        return Fit(made, price, own, True, alone.cost)
    return Fit(alone.made, alone.cost, alone.own, False, price)
