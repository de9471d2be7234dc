# SPDX-License-Identifier: Apache-2.0
"""The scales that the two sides of a coupling need: linear in its cells.

A line (a column x' or a row x) of a coupling is satisfied at u = 1 / theta when

    h(u) = ln E[exp(d u) | line] - eps <= 0,        d = |x - x'|.

h is convex and increasing with h(0) = -eps. The side needs the smallest root over its lines,
which is the root of the largest h, again convex and increasing. Newton's method from the right
decreases to it without overshooting, and every line with h < 0 on the way has a larger root and
can be dropped for good. Two tricks keep it exact at any epsilon: the sums run over
exp(d u + ln w - eps) <= 1, which never overflows, and expm1 keeps the digits of small ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.coupling import Coupling, comonotone
from pufferfish.rationals import float_down, float_up
from pufferfish.scenario import Scenario

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MAX_STEPS = 200
#: Relative step back to the private side; the rounding errors above are some 1e-14.
_MARGIN = 1e-13


def scale_of_sides(
    scenario: Scenario, epsilon: Fraction, choose: Callable[[float, float], float]
) -> float:
    """Return the largest, over adversaries and pairs, of the chosen one of the two sides' scales.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels.
    epsilon : Fraction
        Above 0.
    choose : callable
        ``max`` (the paper) or ``min`` (one side is enough), applied within each pair.
    """
    step = scenario.lattice.step
    scale = 0.0
    for view in scenario.views():
        coupling = comonotone(view)
        # Both sides satisfy the strict condition at the Wasserstein scale; rounding may not
        # put them above it.
        strict = float_up(coupling.largest_distance * step / epsilon)
        needed = [_scale(step, u) for u in sides(coupling, float_down(epsilon))]
        scale = max(scale, min(strict, choose(needed[0], needed[1])))
    return scale


def _scale(step: Fraction, u: float) -> float:
    return 0.0 if math.isinf(u) else float_up(step / Fraction(u))


def sides(coupling: Coupling, epsilon: float) -> tuple[float, float]:
    """Return the largest u = step / theta that each side of a coupling allows.

    Parameters
    ----------
    coupling : Coupling
        The coupling of one pair.
    epsilon : float
        Rounded down, so that the roots are on the private side.

    Returns
    -------
    (float, float)
        For the columns x' (conditioned on the second secret's value) and for the rows x; ``inf``
        where the side needs no noise. Relative error about 1e-13, towards the private side.

    Notes
    -----
    Source: the paper's sufficient condition; theory, section 3.
    """
    return (
        _largest_u(coupling.distance, coupling.mass, coupling.second, epsilon),
        _largest_u(coupling.distance, coupling.mass, coupling.first, epsilon),
    )


def _largest_u(
    distance: IntArray, mass: npt.NDArray[np.int64], line: IntArray, epsilon: float
) -> float:
    moved = distance > 0
    if not moved.any():
        return math.inf
    starts = np.flatnonzero(np.diff(line, prepend=line[0] - 1))
    line_mass = np.add.reduceat(mass, starts)
    cells_of = np.diff(starts, append=len(line))
    # Shares of the line's mass; the ratio of exact integers, rounded once.
    share = np.asarray(mass / np.repeat(line_mass, cells_of), dtype=np.float64)
    number = np.repeat(np.arange(len(starts)), cells_of)
    d = distance[moved].astype(np.float64)
    log_share = _logarithms(share[moved], mass[moved], line_mass, number[moved])
    number = number[moved]
    # e^-eps (E[e^{du}] - 1) is compared with 1 - e^-eps: both keep their digits at any epsilon.
    room = -math.expm1(-epsilon)
    # Two starts at or above the root, near it for small and for large roots: by Jensen's
    # inequality E[d] u <= eps, and one cell alone gives share (e^{du} - 1) <= e^eps - 1.
    with np.errstate(over="ignore", divide="ignore"):
        mean = np.add.reduceat(share[moved] * d, np.flatnonzero(np.diff(number, prepend=-1)))
        u = min(
            float((epsilon / mean).min()),
            float((np.logaddexp(0.0, epsilon + math.log(room) - log_share) / d).min()),
        )
    for _ in range(_MAX_STEPS):
        starts = np.flatnonzero(np.diff(number, prepend=-1))
        with np.errstate(over="ignore"):
            terms = np.exp(d * u + (log_share - epsilon))
        grown = terms * -np.expm1(-d * u)
        sums = np.add.reduceat(grown, starts)
        worst = int(np.argmax(sums))
        excess = float(sums[worst]) - room
        if excess <= 0:
            break
        end = starts[worst + 1] if worst + 1 < len(starts) else len(d)
        cells = slice(starts[worst], end)
        slope = float(terms[cells] @ d[cells])
        # Newton on h = ln(e^-eps E[e^{du}]) = log1p(excess), whose slope is slope / (1 + excess).
        lower = u - math.log1p(excess) * (1 + excess) / slope
        if not 0 < lower < u:
            break
        shrunk = lower > u * (1 - 1e-15)
        u = lower
        if shrunk:
            break
        alive = sums >= room * (1 - 1e-9)
        if not alive.all():
            keep = np.repeat(alive, np.diff(starts, append=len(d)))
            d, log_share, number = d[keep], log_share[keep], number[keep]
    # The iterates come from the unsafe side and carry rounding errors: step back past both.
    return u * (1 - _MARGIN)


def _logarithms(
    share: FloatArray, mass: npt.NDArray[Any], line_mass: npt.NDArray[Any], number: IntArray
) -> FloatArray:
    """Return ln of the shares; those below every normal double from the integers themselves."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(share)
    for k in np.flatnonzero(share < 1e-300).tolist():
        logs[k] = math.log(int(mass[k])) - math.log(int(line_mass[number[k]]))
    return logs
