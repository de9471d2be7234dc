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

import numpy as np

from pufferfish.arrays import CountArray, FloatArray, IntArray
from pufferfish.calibration.rounding import scale_up
from pufferfish.coupling import Coupling, comonotone
from pufferfish.errors import PufferfishError
from pufferfish.rationals import float_down
from pufferfish.scenario import Scenario

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

    Raises
    ------
    InputError
        If the scale lies beyond every double.
    PufferfishError
        If a side's root could not be found.
    """
    step = scenario.lattice.step
    below = float_down(epsilon)
    scale = 0.0
    for view in scenario.views():
        coupling = comonotone(view)
        # Both sides satisfy the strict condition at the Wasserstein scale; rounding may not
        # put them above it.
        strict = scale_up(coupling.largest_distance * step / epsilon, epsilon)
        if strict <= scale:
            continue
        both = _Side(coupling, coupling.second, below), _Side(coupling, coupling.first, below)
        if scale > 0:
            # One look at the scale that other pairs need already is cheaper than two roots.
            u = float(step / Fraction(scale)) * (1 + _MARGIN)
            lacking = [0.0 if side.allows(u) else 1.0 for side in both]
            if choose(lacking[0], lacking[1]) == 0:
                continue
        needed = [_scale(step, side.largest_u(), epsilon) for side in both]
        scale = max(scale, min(strict, choose(needed[0], needed[1])))
    return scale


def _scale(step: Fraction, u: float, epsilon: Fraction) -> float:
    return 0.0 if math.isinf(u) else scale_up(step / Fraction(u), epsilon)


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

    Raises
    ------
    PufferfishError
        If a root could not be found.

    Notes
    -----
    Source: the paper's sufficient condition; theory, section 3.
    """
    return (
        _Side(coupling, coupling.second, epsilon).largest_u(),
        _Side(coupling, coupling.first, epsilon).largest_u(),
    )


class _Side:
    """The lines of one side of a coupling.

    Parameters
    ----------
    coupling : Coupling
        The coupling of one pair.
    line : int64 array, shape (c,)
        The line of each cell: ``coupling.second`` for columns, ``coupling.first`` for rows.
    epsilon : float
        Rounded down.
    """

    def __init__(self, coupling: Coupling, line: IntArray, epsilon: float) -> None:
        self.epsilon = epsilon
        # e^-eps (E[e^{du}] - 1) is compared with 1 - e^-eps: both keep their digits at any epsilon.
        self.room = -math.expm1(-epsilon)
        moved = np.flatnonzero(coupling.distance)
        self.needs_nothing = not len(moved)
        if self.needs_nothing:
            return
        first = np.ones(len(line), dtype=bool)
        np.not_equal(line[1:], line[:-1], out=first[1:])
        line_mass = np.add.reduceat(coupling.mass, np.flatnonzero(first))
        number = np.cumsum(first) - 1
        self.number = number[moved]
        mass = coupling.mass[moved]
        # Shares of the line's mass; the ratio of exact integers, rounded once.
        self.share = np.asarray(mass / line_mass[self.number], dtype=np.float64)
        self.d = coupling.distance[moved].astype(np.float64)
        self.log_share = _logarithms(self.share, mass, line_mass, self.number)

    def allows(self, u: float) -> bool:
        """Whether every line is satisfied at u."""
        if self.needs_nothing:
            return True
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.exp(self.d * u + (self.log_share - self.epsilon)) * -np.expm1(-self.d * u)
        return bool((np.add.reduceat(terms, _starts(self.number)) <= self.room).all())

    def largest_u(self) -> float:
        """Return the largest u at which every line is satisfied; ``inf`` where all are."""
        if self.needs_nothing:
            return math.inf
        u = self._start()
        d, number, exponents = self.d, self.number, self.log_share - self.epsilon
        for _ in range(_MAX_STEPS):
            starts = _starts(number)
            with np.errstate(over="ignore", invalid="ignore"):
                terms = np.exp(d * u + exponents)
                sums = np.add.reduceat(terms * -np.expm1(-d * u), starts)
            worst = int(np.argmax(sums))  # the first NaN, if there is one
            excess = float(sums[worst]) - self.room
            if excess <= 0:
                break
            end = starts[worst + 1] if worst + 1 < len(starts) else len(d)
            cells = slice(starts[worst], end)
            slope = float(terms[cells] @ d[cells])
            # Newton on h = ln(e^-eps E[e^{du}]) = log1p(excess), with the slope
            # slope / (1 + excess).
            lower = u - math.log1p(excess) * (1 + excess) / slope
            if not 0 < lower < math.inf:
                raise PufferfishError("a side's condition could not be evaluated")
            settled = lower > u * (1 - 1e-15)
            u = min(u, lower)
            if settled:
                break
            alive = sums >= self.room * (1 - 1e-9)
            if not alive.all():
                keep = np.repeat(alive, np.diff(starts, append=len(d)))
                d, exponents, number = d[keep], exponents[keep], number[keep]
        else:
            # An iterate from the unsafe side is no answer.
            raise PufferfishError(f"a side's root was not found in {_MAX_STEPS} steps")
        # The iterates come from the unsafe side and carry rounding errors: step back past both.
        return u * (1 - _MARGIN)

    def _start(self) -> float:
        """Return a u at or above the root, near it for small and for large roots.

        By Jensen's inequality E[d] u <= eps, and one cell alone gives
        share (e^{du} - 1) <= e^eps - 1.
        """
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            mean = np.add.reduceat(self.share * self.d, _starts(self.number))
            alone = np.logaddexp(0.0, self.epsilon + math.log(self.room) - self.log_share) / self.d
            return min(float((self.epsilon / mean).min()), float(alone.min()))


def _starts(number: IntArray) -> IntArray:
    """Return where each run of equal numbers begins."""
    first = np.ones(len(number), dtype=bool)
    np.not_equal(number[1:], number[:-1], out=first[1:])
    return np.flatnonzero(first)


def _logarithms(
    share: FloatArray, mass: CountArray, line_mass: CountArray, number: IntArray
) -> FloatArray:
    """Return ln of the shares; those below every normal double from the integers themselves."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(share)
    for k in np.flatnonzero(share < 1e-300).tolist():
        logs[k] = math.log(int(mass[k])) - math.log(int(line_mass[number[k]]))
    return logs
