# SPDX-License-Identifier: Apache-2.0
"""``exact``: theta*, the least scale of Laplace noise that keeps the loss within epsilon."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np

from pufferfish.calibration.quick import LARGEST_EPSILON, QuickLoss
from pufferfish.calibration.search import Excess, Found, find_root
from pufferfish.errors import PufferfishError
from pufferfish.loss import FloatLoss, Witness, fits_doubles
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.precise import PRECISE_CELLS, PreciseLoss, bits_for
from pufferfish.rationals import float_up
from pufferfish.scenario import Scenario

#: Cells up to which the last digits are found in ball arithmetic even where that takes minutes,
#: because epsilon is too small for doubles.
_MOST_PRECISE_CELLS = 20_000_000
#: Cells up to which balls are also used for the last digits of a loss that hardly changes.
_SOON_PRECISE_CELLS = 4_000_000
#: Rounding errors of a log-likelihood in doubles, for the epsilons at which they matter.
_FLOAT_ERROR = 2e-14
#: What the certificate's floating-point bound adds to a loss, and a little more.
_BOUND_WIDTH = 4e-12
#: Size of the small supports on which a large one's search starts.
_SMALL = 1024


def exact(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return Laplace noise of the least scale theta* with loss(theta*) <= epsilon.

    The scale is 0 when the unchanged column meets epsilon.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels.
    epsilon : Fraction
        Above 0.

    Notes
    -----
    Source: theory, section 2. The scale is within 1e-14 (small supports) or 1e-9 of theta*, on
    the private side; the certificate judges it afterwards.
    """
    step = scenario.lattice.step
    cells = scenario.lattice.size * len(scenario.protected) * len(scenario.priors)
    low = float(epsilon) / max(1, int(scenario.lattice.index[-1]))
    loss = FloatLoss.of(scenario)
    fits = fits_doubles(scenario)
    scale = None
    if cells > PRECISE_CELLS and (fits or cells > _MOST_PRECISE_CELLS):
        scale = _in_doubles_alone(loss, epsilon, low, step, cells)
    if scale is None:
        scale = _with_balls(scenario, loss if fits else None, epsilon, low)
    return DiscreteLaplace(scale, step)


def _in_doubles_alone(
    loss: FloatLoss, epsilon: Fraction, low: float, step: Fraction, cells: int
) -> float | None:
    """Return the scale, or None where doubles are too coarse and balls can do better."""
    error = _FLOAT_ERROR / float(epsilon)
    balls = cells <= _MOST_PRECISE_CELLS
    value = loss.unchanged()[0]
    if balls and (error > 1e-11 or abs(value - float(epsilon)) <= 1e-9 * max(float(epsilon), 1.0)):
        return None
    # Within the rounding error noise is added rather than left out.
    if value * (1 + 1e-12) + 1e-12 <= float(epsilon):
        return 0.0
    found = _search(loss, float(epsilon), low, max(1e-13, error))
    # The error of the evaluation, and of the bound that will have to confirm it.
    margin = (error + _BOUND_WIDTH / float(epsilon)) / found.slope
    if balls and margin > (1e-9 if cells <= _SOON_PRECISE_CELLS else 1e-6):
        return None
    return _scale(step, found.u, min(max(margin, 1e-12), 1e-6))


def _with_balls(scenario: Scenario, loss: FloatLoss | None, epsilon: Fraction, low: float) -> float:
    """Return the scale to the last digits; ``loss`` gives a start where there is one."""
    precise = PreciseLoss(scenario, bits_for(epsilon))
    if _unchanged_is_private(precise, epsilon):
        return 0.0
    # What epsilon takes away from the loss without noise has to be seen at every scale.
    precise.bits += max(0, -math.frexp(precise.unchanged(epsilon)[0])[1])
    start = low
    error = _FLOAT_ERROR / float(epsilon)
    if loss is not None and error < 1e-3:
        # A start is all that is wanted: where doubles cannot tell, none is as good.
        with suppress(PufferfishError):
            start = _search(loss, float(epsilon), low, max(1e-9, error)).u
    found = find_root(_Precise(precise, epsilon), low, start, 1e-14, noise=0.0)
    return _scale(scenario.lattice.step, found.u, 1e-15)


def _unchanged_is_private(precise: PreciseLoss, epsilon: Fraction) -> bool:
    """Whether loss(0) <= epsilon; equality cannot occur but at 0 (ln of a rational)."""
    return precise.unchanged(epsilon)[0] <= 0


def _scale(step: Fraction, u: float, margin: float) -> float:
    return float_up(step / Fraction(u) * (1 + Fraction(margin)))


class _InLogarithms:
    """The loss in doubles for an epsilon so large that likelihoods underflow."""

    def __init__(self, loss: FloatLoss, epsilon: float) -> None:
        self.loss, self.epsilon = loss, epsilon
        self.quick = QuickLoss(loss, epsilon)
        self.at, self.reach = self.quick.at, self.quick.reach

    def worst(self, u: float) -> tuple[float, list[Witness]]:
        value, witness = self.loss.worst(u)
        return (value - self.epsilon) / self.epsilon, [witness]


class _Precise:
    """The loss in ball arithmetic, relative to epsilon."""

    def __init__(self, loss: PreciseLoss, epsilon: Fraction) -> None:
        self.loss, self.epsilon = loss, epsilon

    def worst(self, u: float) -> tuple[float, list[Witness]]:
        value, witness = self.loss.excess(u, self.epsilon)
        return value, [witness]

    def at(self, witness: Witness, u: float) -> tuple[float, float]:
        return self.loss.excess_at(witness, u, self.epsilon)

    def reach(self, u: float) -> float:  # each look costs as much as the whole
        return 1.0


def _in_doubles(loss: FloatLoss, epsilon: float) -> Excess:
    return (QuickLoss if epsilon <= LARGEST_EPSILON else _InLogarithms)(loss, epsilon)


def _search(loss: FloatLoss, epsilon: float, low: float, tolerance: float) -> Found:
    """Search in doubles; large supports first on two small ones for a good start.

    Gathering neighbours answers where theta is many atoms wide, some stretches of the support
    answer where it is few.
    """
    start = low
    if len(loss.index) > 8 * _SMALL:
        gathered, width = _gathered(loss, _SMALL)
        coarse = _root_of(gathered, epsilon)
        if coarse is not None and coarse < 0.3:
            start = max(start, coarse / width)
        else:
            local = _root_of(_stretches(loss, 8, _SMALL), epsilon)
            start = max(start, local or 0.0)
    return find_root(_in_doubles(loss, epsilon), low, start, tolerance)


def _root_of(loss: FloatLoss, epsilon: float) -> float | None:
    """Return the u at which a smaller problem reaches epsilon, or None where it never does."""
    if loss.unchanged()[0] <= epsilon * (1 + 1e-6):
        return None
    low = epsilon / max(1, int(loss.index[-1]) - int(loss.index[0]))
    return find_root(_in_doubles(loss, epsilon), low, low, 1e-3).u


def _gathered(loss: FloatLoss, atoms: int) -> tuple[FloatLoss, int]:
    """Return the same masses gathered in cells of equal width, and the width in steps."""
    width = max(1, int(loss.index[-1]) // atoms)
    cells = loss.index // width
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    masses = [np.add.reduceat(p, starts, axis=1) for p in loss.masses]
    return FloatLoss(cells[starts], masses, loss.pairs, loss.all_pairs), width


def _stretches(loss: FloatLoss, number: int, atoms: int) -> FloatLoss:
    """Return some evenly spread runs of neighbouring atoms as a support of their own."""
    firsts = np.linspace(0, len(loss.index) - atoms, number).astype(np.int64)
    chosen = np.unique((firsts[:, None] + np.arange(atoms)).ravel())
    return FloatLoss(
        loss.index[chosen], [p[:, chosen] for p in loss.masses], loss.pairs, loss.all_pairs
    )
