# SPDX-License-Identifier: Apache-2.0
"""Whether a released column can have come from a noise at all: options that nobody mentioned.

A plan does not hold with which bounds, rounding or larger scale it was used. Estimates that take
no account of them would be nonsense, and the released values nearly always give them away.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from pufferfish.errors import InputError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.rationals import show
from pufferfish.support import Lattice

#: A column that a release shows less often than this is taken to come from another release.
_NEVER = math.log(1e-9)


def check_plausible(
    units: Mapping[int, int],
    noise: DiscreteLaplace,
    lattice: Lattice,
    *,
    bounded: bool = False,
    rounded: bool = False,
) -> None:
    """Refuse released values that the noise cannot have made with the options that were stated.

    Parameters
    ----------
    units : mapping of int to int
        Released rows by released value, in steps (whole numbers where they were rounded).
    noise : DiscreteLaplace
        The noise, with the scale that was in force.
    lattice : Lattice
        Where the original values lie.
    bounded, rounded : bool
        Whether bounds were stated, and whether values were rounded to integers.

    Raises
    ------
    InputError
        If the chance of such a column is below 1e-9; names the option that explains it.
    """
    if noise.scale == 0:
        return
    rate = float(noise.step / Fraction(noise.scale))
    step = Fraction(1) if rounded else lattice.step
    least, most = min(units), max(units)
    _check_reach(units, rate, lattice, step, rounded)
    if not bounded:
        # With K values at or below the least one, the chance that all lie on it: memoryless. A
        # cell of rounded values is never wider than two steps.
        own = float(step / lattice.step) * rate * (2 if rounded else 1)
        heap = max(units[least], units[most])
        if (heap - 1) * _log_rest(own) < _NEVER:
            end, word = (least, "least") if units[least] == heap else (most, "greatest")
            raise InputError(
                f"{heap} of the released values are the {word} one, {show(end * step)}, and none "
                f"lies beyond it: noise of scale {noise.scale!r} does not do that; were they "
                "released with bounds? then give them with --bounds LO HI (bounds=...)"
            )
    if not rounded and lattice.step.denominator > 1 and not bounded:
        q = lattice.step.denominator
        if all(unit % q == 0 for unit in units):
            a = math.exp(-rate)
            share = (1 - a) * (1 + a**q) / ((1 + a) * (1 - a**q)) if a < 1 else 1 / q
            if sum(units.values()) * math.log(share) < _NEVER:
                raise InputError(
                    f"all released values are whole numbers, which noise on the step "
                    f"{show(lattice.step)} does not do; were they rounded? then say so with --round"
                )


def _check_reach(
    units: Mapping[int, int], rate: float, lattice: Lattice, step: Fraction, rounded: bool
) -> None:
    """Refuse a value further beyond the original ones than the noise ever reaches."""
    low, high = lattice.origin, lattice.origin + int(lattice.index[-1])
    ends = min(units) * step / lattice.step, max(units) * step / lattice.step
    beyond = max(low - ends[0], ends[1] - high)
    if rounded:
        beyond -= 1 / (2 * lattice.step)
    rows = sum(units.values())
    if beyond > 0 and math.log(rows) - rate * float(beyond) < _NEVER:
        raise InputError(
            f"a released value lies {show(beyond * lattice.step)} beyond all original ones, "
            f"further than noise of this scale reaches; was the column released by this plan, and "
            "with a larger scale? then give it with --min-scale T (min_scale=T)"
        )


def _log_rest(rate: float) -> float:
    """Return ln(1 - exp(-rate)) for a rate above 0."""
    return math.log(-math.expm1(-rate)) if rate > 0 else -math.inf
