# SPDX-License-Identifier: Apache-2.0
"""The root of an increasing function from below, by secants and halvings."""

import math
from collections.abc import Callable
from fractions import Fraction

from pufferfish.rationals import float_up

#: Relative width at which the search ends.
_WIDTH = 4e-15
_STEPS = 200
#: A bound that took long to compute is close enough within that share of what it is to be.
CLOSE = 1e-12
#: How far places are looked at, by doublings.
_DOUBLINGS = 60


def last_inside(
    excess: Callable[[float], float],
    inside: tuple[float, float],
    outside: tuple[float, float],
    goal: float,
    close: float = 1e-15,
) -> float:
    """Return the last place at which an increasing function is known to be at most 0.

    Parameters
    ----------
    excess : callable
        The function; may be infinite.
    inside, outside : tuple of (float, float)
        A place where it is at most 0, and a larger one where it is above, with its values there;
        both places above 0.
    goal : float
        What the function is in proportion to.
    close : float
        The search ends as soon as the function is within ``close * goal`` of 0.
    """
    (a, fa), (b, fb) = inside, outside
    wa, wb, moved = fa, fb, 0
    for step in range(_STEPS):
        if b - a <= _WIDTH * b or -close * goal <= fa:
            break
        if step % 4 == 3 or not math.isfinite(wb):
            x = math.sqrt(a) * math.sqrt(b)
        else:
            x = a + (b - a) * (wa / (wa - wb))
        # A little away from the ends, so that the bracket closes from both sides.
        x = min(max(x, a + 0.25 * _WIDTH * a), b - 0.25 * _WIDTH * b)
        fx = excess(x)
        # An end that stays twice counts half (the Illinois rule).
        if fx <= 0:
            a, wa = x, fx
            fa, wb, moved = fx, wb / 2 if moved < 0 else fb, -1
        else:
            b, wb = x, fx
            fb, wa, moved = fx, wa / 2 if moved > 0 else fa, 1
    return a


def excess_of(upper: Fraction | None, epsilon: Fraction) -> float:
    """Return how far a bound is above epsilon; its sign is exact, as a double's would not be.

    Parameters
    ----------
    upper : Fraction or None
        The bound; None: infinite.
    epsilon : Fraction
        What it is compared with.
    """
    over = (math.inf if upper is None else float_up(upper)) - float(epsilon)
    return min(over, 0.0) if upper is not None and upper <= epsilon else max(over, math.ulp(0.0))


def largest_inside(
    excess: Callable[[float], float],
    start: float,
    goal: float,
    close: float = CLOSE,
) -> float | None:
    """Return the largest place that is found at which an increasing function is at most 0.

    Parameters
    ----------
    excess : callable
        The function; may be infinite.
    start : float
        Where to begin, above 0.
    goal, close : float
        As for :func:`last_inside`.

    Returns
    -------
    float or None
        None if there is no such place down to ``start * 2**-60``.
    """
    here = start, excess(start)
    if here[1] > 0:
        for _ in range(_DOUBLINGS):
            outside, place = here, here[0] / 2
            here = place, excess(place)
            if here[1] <= 0:
                return last_inside(excess, here, outside, goal, close)
        return None
    for _ in range(_DOUBLINGS):
        inside, place = here, here[0] * 4
        here = place, excess(place)
        if here[1] > 0:
            return last_inside(excess, inside, here, goal, close)
    return here[0]
