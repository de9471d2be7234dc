# SPDX-License-Identifier: Apache-2.0
"""Halving: the largest epsilon of its own by which a mechanism fits.

A channel has no parameter that could be raised until everything is within a budget. But any way to
calibrate for an epsilon of its own makes a family, and the largest that fits is found by halving.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from pufferfish.errors import CheckFailed, InputError

T = TypeVar("T")


def largest_own(
    epsilon: Fraction,
    attempt: Callable[[Fraction], T | None],
    tries: int,
    sure: Fraction | None = None,
) -> tuple[T, Fraction] | None:
    """Return what fits with the largest epsilon of its own, and that epsilon; None: nothing fits.

    Parameters
    ----------
    epsilon : Fraction
        Tried first; where it fits nothing else is tried.
    attempt : callable
        Returns what was calibrated for an epsilon of its own, or None where that does not fit.
        Raises InputError or CheckFailed where nothing can be calibrated for it.
    tries : int
        How often that may be called: the answer is found to within ``epsilon * 2**(1 - tries)``, or
        twice that with ``sure``.
    sure : Fraction, optional
        An epsilon of its own that is known to fit, but for rounding: tried second.

    Raises
    ------
    InputError, CheckFailed
        Of the first attempt, where nothing could be calibrated even for ``epsilon`` itself.
    """
    best: tuple[T, Fraction] | None = None
    low, high, own = Fraction(0), epsilon, epsilon
    for count in range(tries):
        try:
            found = attempt(own)
        except (InputError, CheckFailed):
            if count == 0:
                raise
            # What is asked for cannot be met at so small an epsilon: only larger ones are left.
            low = own
        else:
            if found is None:
                high = own
            else:
                best, low = (found, own), own
                if own == epsilon:
                    break
        known = count == 0 and sure is not None and low < sure < high
        own = sure if known and sure is not None else (low + high) / 2
    return best
