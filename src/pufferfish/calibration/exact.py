# SPDX-License-Identifier: Apache-2.0
"""``exact``: theta*, the least scale of Laplace noise that keeps the loss within epsilon."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction

import numpy as np

from pufferfish.calibration.quick import LARGEST_EPSILON, QuickLoss
from pufferfish.calibration.roots import scale_of_sides
from pufferfish.calibration.rounding import scale_up
from pufferfish.calibration.search import Excess, Found, find_root
from pufferfish.certificate.decide import BALL_CELLS
from pufferfish.errors import PufferfishError
from pufferfish.loss import Attained, FloatLoss, fits_doubles
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.precise import PRECISE_CELLS, PreciseLoss, bits_for
from pufferfish.scenario import Scenario

#: Cells up to which the last digits are found in ball arithmetic even where that takes minutes,
#: because epsilon is too small for doubles.
_MOST_PRECISE_CELLS = 20_000_000
#: Cells up to which it takes some seconds.
_SOON_PRECISE_CELLS = 4_000_000
#: Error of a loss in doubles. The exponents within a block are at most 64, and a rounded exponent
#: of 64 makes exp wrong by 64 * 2**-53 = 7e-15; so may both of the likelihoods be.
_FLOAT_ERROR = 2e-14
#: What the certificate's floating-point bound adds to a loss: twice 2 lambda of the theorem in
#: certificate/floatscan.py is at most 2.8e-12 up to 10**8 atoms; and a little more.
_BOUND_WIDTH = 4e-12
#: A scale in doubles is never taken to be better than this.
_LEAST_MARGIN = 1e-13
#: Size of the small supports on which a large one's search starts.
_SMALL = 1024
#: Evaluations in ball arithmetic after which a polished root is left to the full search.
_POLISHES = 5


def exact(scenario: Scenario, epsilon: Fraction) -> DiscreteLaplace:
    """Return Laplace noise of the least scale theta* with loss(theta*) <= epsilon.

    The scale is 0 when the unchanged column meets epsilon.

    Parameters
    ----------
    scenario : Scenario
        Numbers, or ordered levels. A cell is one atom for one protected secret of one adversary.
    epsilon : Fraction
        Above 0.

    Raises
    ------
    InputError
        If the scale lies beyond every double, or levels without an order are given.
    PufferfishError
        If the search fails.

    Notes
    -----
    Source: theory, section 2. The scale lies above theta* by a relative 1e-14 up to 20,000 cells,
    and by at most 1e-11 up to 250,000. Beyond that the certificate is a floating-point bound,
    which needs a margin of about 4e-12 / epsilon: at most 1e-8 up to 4,000,000 cells, and 1e-6
    for more. (Where the loss hardly changes with the scale, the margin is larger by as much.)
    For an epsilon too small for that the root is polished in ball arithmetic, up to 20,000,000
    cells. The certificate judges the scale afterwards.
    """
    step, cells = scenario.lattice.step, scenario.cells
    low = float(epsilon) / max(1, int(scenario.lattice.index[-1]))
    loss = FloatLoss.of(scenario)
    balls = cells <= _MOST_PRECISE_CELLS
    if balls and not fits_doubles(scenario):
        return DiscreteLaplace(_with_balls(scenario, epsilon, low, None, None), step)
    found = None
    if cells > PRECISE_CELLS:
        if _unchanged_is_private(loss, float(epsilon)):
            return DiscreteLaplace(0.0, step)
        if not (balls and _is_near(loss, epsilon)):
            found = _start(loss, epsilon, low)
            scale = None if found is None else _in_doubles_alone(scenario, epsilon, found)
            if scale is not None:
                return DiscreteLaplace(scale, step)
    return DiscreteLaplace(_with_balls(scenario, epsilon, low, loss, found), step)


def _unchanged_is_private(loss: FloatLoss, epsilon: float) -> bool:
    """Whether loss(0) <= epsilon beyond doubt; where doubles cannot tell, noise is added."""
    return loss.unchanged()[0] * (1 + 1e-12) + 1e-12 <= epsilon


def _is_near(loss: FloatLoss, epsilon: Fraction) -> bool:
    """Whether loss(0) is so near to epsilon that the loss is all but flat at the root."""
    return abs(loss.unchanged()[0] - float(epsilon)) <= 1e-9 * max(float(epsilon), 1.0)


def _start(
    loss: FloatLoss, epsilon: Fraction, low: float, least: float = _LEAST_MARGIN
) -> Found | None:
    """Return the root as well as doubles know it, or None where they know nothing."""
    error = _FLOAT_ERROR / float(epsilon)
    if error < 1e-3:
        # Where doubles find no root, balls start from the beginning.
        with suppress(PufferfishError):
            return _search(loss, float(epsilon), low, max(least, error))
    return None


def _in_doubles_alone(scenario: Scenario, epsilon: Fraction, found: Found) -> float | None:
    """Return the scale, or None where doubles are too coarse and balls can do better."""
    cells = scenario.cells
    # The error of the evaluation, and of the bound that will have to confirm it.
    width = _FLOAT_ERROR + (_BOUND_WIDTH if cells > BALL_CELLS else 0.0)
    margin = width / float(epsilon) / found.slope
    allowed = 1e-11 if cells <= BALL_CELLS else 1e-8 if cells <= _SOON_PRECISE_CELLS else 1e-6
    if margin > allowed and cells <= _MOST_PRECISE_CELLS:
        return None
    return _above(scenario, epsilon, found, min(max(margin, _LEAST_MARGIN), 1e-6))


def _with_balls(
    scenario: Scenario, epsilon: Fraction, low: float, loss: FloatLoss | None, start: Found | None
) -> float:
    """Return the scale to the last digits; doubles give a start where they can."""
    precise = PreciseLoss(scenario, bits_for(epsilon))
    # Equality cannot occur but at 0: ln of a rational is no rational.
    unchanged = precise.unchanged(epsilon)[0]
    if unchanged <= 0:
        return 0.0
    # What epsilon takes away from the loss without noise has to be seen at every scale.
    precise.bits += max(0, -math.frexp(unchanged)[1])
    if start is None and loss is not None:
        start = _start(loss, epsilon, low, 1e-9)
    found = None if start is None else _polished(precise, epsilon, start)
    if found is None:
        first = low if start is None else start.u
        found = find_root(_Precise(precise, epsilon), low, first, 1e-14, noise=0.0)
    return _above(scenario, epsilon, found, 1e-15)


def _polished(precise: PreciseLoss, epsilon: Fraction, start: Found) -> Found | None:
    """Return the root after some steps with the slope in doubles, or None where it is no help."""
    u = start.u
    for _ in range(_POLISHES):
        value, witness = precise.excess(u, epsilon)
        off = value / start.slope
        if -1e-14 <= off <= 0:
            return Found(u, start.slope, witness)
        if abs(off) > 0.1:
            return None
        u *= 1 - off - 4e-15
    return None


def _above(scenario: Scenario, epsilon: Fraction, found: Found, margin: float) -> float:
    """Return the scale of a root with a margin, unless it can be seen to need less.

    Theta* may equal the scale of one side, or of the largest distance; a margin may not lift it
    above them. That can only be where some column holds nearly all that counts: where one secret
    of the pair has a single value, or where the scale hides a whole number of steps.
    """
    step = scenario.lattice.step
    scale = scale_up(step / Fraction(found.u) * (1 + Fraction(margin)), epsilon)
    if margin <= _LEAST_MARGIN:
        return scale
    prior = scenario.priors[found.witness.adversary]
    pair = [scenario.protected[k] for k in (found.witness.numerator, found.witness.denominator)]
    hidden = Fraction(scale) * epsilon / step
    whole = abs(hidden - round(hidden)) <= 2 * Fraction(margin) * hidden
    if whole or any(np.count_nonzero(prior.counts[prior.row(secret)]) == 1 for secret in pair):
        scale = min(scale, scale_of_sides(Scenario(prior, [pair]), epsilon, min))
    return scale


class _InLogarithms:
    """The loss in doubles for an epsilon so large that likelihoods underflow."""

    def __init__(self, loss: FloatLoss, epsilon: float) -> None:
        self.loss, self.epsilon = loss, epsilon
        self.quick = QuickLoss(loss, epsilon)
        self.at, self.reach = self.quick.at, self.quick.reach

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        value, witness = self.loss.worst(u)
        return (value - self.epsilon) / self.epsilon, [witness]


class _Precise:
    """The loss in ball arithmetic, relative to epsilon."""

    def __init__(self, loss: PreciseLoss, epsilon: Fraction) -> None:
        self.loss, self.epsilon = loss, epsilon

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        value, witness = self.loss.excess(u, self.epsilon)
        return value, [witness]

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
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
