# SPDX-License-Identifier: Apache-2.0
"""The walk: the least scale on a fixed grid that counted rows allow with some confidence.

The scales range / (epsilon ratio^r) are tried one after the other, up to the first that fails. The
test asks U_i(y) <= e^epsilon L_j(y) of every pair and output, each bound with an error alpha / 2 of
its own: the first scale that is not private and its witness are fixed by the distributions, and to
pass them is one comparison. So every scale has to be tried, in this order (theory, section 5).

The bound U of a mean is the least m at which the mean wealth of all bets, e_b(m) = prod_x
((1 - b h_x) / (1 - b m))^n_x over the noise's M, reaches 1 / alpha. Bets that are left out count as
0. In doubles the wealth is a lower bound: that of each bet less its error, of which section 9 of
the theory has the proof. A mean at which it suffices is proved.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb

from pufferfish.errors import PufferfishError
from pufferfish.loss.balls import exp_minus
from pufferfish.loss.certificate import Certificate
from pufferfish.loss.rounding import UNIT
from pufferfish.numbers import FloatArray, IntArray, float_up, precision
from pufferfish.priors.ambiguity import Confidence, Counted, NoisyCounts
from pufferfish.priors.betting import ball, is_bound
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, positions
from pufferfish.support import Lattice

#: Neighbouring scales: no scale is larger than it has to be by more than half a per cent.
RATIO = Fraction(201, 200)
#: The grid ends where noise is this small a part of the step: hardly a value is changed.
LEAST_STEPS = Fraction(1, 32)
#: Larger supports would take minutes: the box takes the place of the walk. So it does where scales
#: are so many steps that rates are too small for doubles to be that precise.
MOST_ATOMS, _LARGEST_SCALE = 300, 1e290
#: Errors of ln(1 + gap) from two means that are proved: 60 u relative; and of epsilon in doubles.
_ERROR = 100 * UNIT
#: Of the balls.
_BITS = 128
#: A mean is found once its wealth exceeds what is needed by no more than this: quickly, or closely.
_ROUGH, _CLOSE = 0.3, 1e-11
_MOST_ROUNDS = 100
#: In a hurry bets below e^-_CUT of the best are not looked at.
_CUT = 3.0
#: Bets with larger errors than this are left out: those below are of the first order.
_LARGEST_ERROR = 1e-3


@dataclass(frozen=True, eq=False)
class Claim:
    """Counted rows of one adversary by secret, the pairs of positions, and the largest loss."""

    beliefs: tuple[Counted, ...]
    pairs: tuple[tuple[int, int], ...]
    lattice: Lattice
    epsilon: Fraction


def claims_of(scenario: Scenario, epsilon: Fraction) -> list[Claim]:
    """Return what a walk has to show, for each adversary; nothing where boxes take its place."""
    if scenario.support.size > MOST_ATOMS:
        return []
    beliefs = [_beliefs(prior, scenario.protected) for prior in scenario.priors]
    step = scenario.lattice.step if scenario.support.ordered and all(beliefs) else Fraction(0)
    if not step or next(scales(scenario.lattice, epsilon)) > _LARGEST_SCALE * step:
        return []
    pairs = positions(scenario.pairs, scenario.protected)
    return [Claim(own, pairs, scenario.lattice, epsilon) for own in beliefs]


def _beliefs(prior: Prior, secrets: Sequence[str]) -> tuple[Counted, ...]:
    """Return the counts of each secret, whose bounds fail with a chance alpha / 2, if they walk."""
    match prior.rule:
        case NoisyCounts() as noisy:
            return tuple(map(noisy.belief, secrets))
        case Confidence(level, box=False):
            at = [prior.row(secret) for secret in secrets]
            # Whose rows they are is given: the bets may depend on their number.
            rows, alpha = sum(prior.totals[row] for row in at), (1 - level) / 2
            return tuple(Counted(tuple(prior.counts[k].tolist()), rows, alpha) for k in at)
    return ()


def walked(claims: Sequence[Claim], scale: float | None = None) -> tuple[float, Certificate]:
    """Return the least scale that is reached, and what is proved of it or of a scale.

    A scale is private where the walk reaches it or a smaller one of the grid.
    """
    epsilon, found = claims[0].epsilon, walk(claims, until=scale or 0.0)
    holds = scale is None or found <= scale
    # Epsilon is what it promises: a bound at a scale that the rows chose would not hold as surely.
    loss = float(epsilon) if holds else math.inf
    return found, Certificate("walk", loss, 0.0, epsilon, holds, decided=True)


def scales(lattice: Lattice, epsilon: Fraction, ratio: Fraction = RATIO) -> Iterator[float]:
    """Yield the grid: range / epsilon, and from there downwards, each rounded up."""
    scale = lattice.step * int(lattice.index[-1]) / epsilon
    yield float_up(scale)
    while scale >= ratio * LEAST_STEPS * lattice.step:
        scale /= ratio
        yield float_up(scale)


def walk(claims: Sequence[Claim], ratio: Fraction = RATIO, until: float = 0.0) -> float:
    """Walk down until a test fails for some adversary, or to the first scale not above ``until``.

    All claims are about one lattice and one epsilon.
    """
    lattice, epsilon = claims[0].lattice, claims[0].epsilon
    tests = [_Test(claim) for claim in claims]
    found = 0.0
    for scale in scales(lattice, epsilon, ratio):
        # The first one needs no test.
        if found and not all(test.holds(scale) for test in tests):
            break
        found = scale
        if scale <= until:
            break
    if not all(test.confirmed(found) for test in tests):
        raise PufferfishError("balls do not prove what doubles proved of a scale; please report it")
    return found


def rescaled(places: IntArray, rate: float, rows: IntArray) -> FloatArray:
    """Return k_y on all atoms for the outputs ``rows``, rescaled to [0, 1], shape (outputs, n).

    Written so that nothing cancels: (k - lo) / (1 - lo) = k (1 - lo / k) / (1 - lo).
    """
    distance = np.abs(places[rows, None] - places).astype(np.float64)
    farthest = distance.max(axis=1, keepdims=True)
    scale = -np.expm1(farthest * -rate)
    return np.asarray(np.exp(distance * -rate) * (-np.expm1((farthest - distance) * -rate) / scale))


class Wealth:
    """Wealth of all bets on functions h, shape (outputs, n), under the counts of some secrets."""

    def __init__(self, beliefs: Sequence[Counted], h: FloatArray) -> None:
        one = beliefs[0]
        needed = len(one.bets) * one.alpha.denominator
        self.needed = math.log(needed) - math.log(one.alpha.numerator)
        counts = np.array([own.counts for own in beliefs], dtype=np.float64)
        bets, self.c, n = [float(b) for b in one.bets], 0.0, h.shape[1]
        if one.noise is not None:
            half = float(one.noise) / 2
            self.c = math.exp(-half) / math.expm1(-half) ** 2
            bets = [b for b in bets if self.c * b * b / (1 - b) < 1 - 1e-6]
        self.bets = np.array(bets)[:, None, None]
        self.totals = counts.sum(axis=1)
        self.w = 1 - self.bets * h
        self.gains = np.log(self.w) @ counts.T
        self.error = UNIT * ((620 + 3 * n) * np.abs(counts).sum(axis=1) + 100)
        self.of_poles = UNIT * 1.01 * (76 * math.sqrt(self.c) / (1 - self.bets) + 660 + n)
        if self.c:
            self.w1, self.w2 = (own.sum(axis=-1)[..., None] for own in (self.w, self.w**2))
            self._leave_out()

    def _leave_out(self) -> None:
        """Leave out bets whose wealth may fall in m: the slope of ln M is largest at m = 1."""
        n, c = self.w.shape[-1], self.c
        for k, b in enumerate(self.bets[:, 0, 0].tolist()):
            # No cell has a larger slope than one with h = 0.
            steepest = n * c * b * (2 - b) / (1 - b - c * b * b)
            if steepest * (1 + 1e-9) > self.totals.min():
                _, slope, poles = self._noise(k, slice(None), np.ones((1, 1)))
                error = self.of_poles[k] * poles**2 * 4 * (c + math.sqrt(c)) / (1 - b) ** 2
                self.gains[k][self.totals < slope + error] = -np.inf

    def _noise(self, bet: int, rows: Any, m: FloatArray) -> tuple[FloatArray, ...]:
        """Return the sums over x of ln M(g), of its slope in g, and of P, for one bet."""
        v = (1 - self.bets[bet, 0, 0] * m)[..., None]
        w = self.w[bet, rows, None, :]
        apart = w - v
        slopes = apart / (w * v)
        poles = 1 / (1 - self.c * (apart * slopes))
        slopes *= w + v
        slopes *= poles
        # Few logarithms, of products: no P is above 10^6.
        logs = np.log(np.multiply.reduceat(poles, np.arange(0, w.shape[-1], 32), axis=-1))
        return logs.sum(axis=-1), self.c * slopes.sum(axis=-1), poles.sum(axis=-1)

    def at(
        self, rows: IntArray, m: FloatArray, cut: float = math.inf
    ) -> tuple[FloatArray, FloatArray]:
        """Return a lower bound of ln sum_b e_b at means m of some outputs, and its slope in m.

        Both are infinite where no bet is left. With noise, bets that seem to be worth less than
        e^-cut of the best are not looked at, and count as 0.
        """
        if not len(self.bets):
            return np.full(m.shape, -np.inf), np.full(m.shape, np.inf)
        v = 1 - self.bets * m
        logs = self.gains[:, rows] - self.totals * np.log(v) - self.error
        growth = self.bets / v * self.totals
        if self.c:
            noise, slope, poles = np.full((3, *v.shape), np.inf)
            slope[:] = 0.0
            moved = self.w2[:, rows] - 2 * v * self.w1[:, rows] + self.w.shape[-1] * v * v
            guess = logs - self.c * moved / (v * v)
            for k, worth in enumerate((guess >= guess.max(axis=0) - cut).any(axis=-1)):
                noise[k, worth], slope[k, worth], poles[k, worth] = self._noise(
                    k, rows[worth], m[worth]
                )
            error = self.of_poles * poles
            logs = np.where(error < _LARGEST_ERROR, logs - noise - error, -np.inf)
            growth = growth - self.bets / v * slope
        top = logs.max(axis=0)
        parts = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        total = parts.sum(axis=0)
        return top + np.log(total), (parts * growth).sum(axis=0) / total

    def upper(self, start: FloatArray, close: bool) -> FloatArray:
        """Return proven upper bounds of the means, from a first guess; shape (outputs, secrets).

        Newton's method in a bracket; a bound is 1 where no smaller one is found.
        """
        slack = _CLOSE if close else _ROUGH
        low, high = np.zeros_like(start), np.ones_like(start)
        m, rows = np.clip(start, 1e-12, 1.0), np.arange(len(start))
        for _ in range(_MOST_ROUNDS):
            if not len(rows):
                break
            with np.errstate(all="ignore"):
                here = m[rows]
                value, slope = self.at(rows, here, math.inf if close else _CUT)
                excess = value - self.needed
                enough = excess >= 0
                lows = np.where(enough, low[rows], here)
                highs = np.where(enough, here, high[rows])
                done = (enough & (excess <= slack)) | (highs - lows <= 2 * UNIT * highs)
                # Even the mean 1 is possible.
                done |= ~enough & (here >= 1)
                # Aimed at the middle of what is allowed.
                step = here - (excess - slack / 2) / slope
                inside = (step > lows) & (step < highs)
                step = np.where(inside, step, (lows + highs) / 2)
                low[rows], high[rows], m[rows] = lows, highs, np.where(done, here, step)
                rows = rows[~done.all(axis=1)]
        return high


class _Test:
    """The test of one scale after the other; each is the next one's first guess."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.places = claim, claim.lattice.index
        self.outputs = np.arange(len(self.places))
        # Of h and of 1 - h, by output and secret.
        self.means = np.full((2, len(self.outputs), len(claim.beliefs)), 0.5)
        self.passed: FloatArray | None = None
        both = [*claim.pairs, *((j, i) for i, j in claim.pairs)]
        self.firsts, self.seconds = map(list, zip(*both, strict=True))
        self.shares = claim.beliefs[0].is_share
        if self.shares:
            ends = [[own.upper_share(y) for own in claim.beliefs] for y in (0, 1)]
            upper = np.array([[float_up(end) for end in row] for row in ends])
            self.means = np.stack([upper, upper[::-1]])

    def holds(self, scale: float) -> bool:
        """Return whether the loss at a scale is proved to be at most epsilon, in a hurry if so."""
        most = float(self.claim.epsilon) * (1 - _ERROR)
        rate = float(self.claim.lattice.step / Fraction(scale))
        open_ = self.outputs
        for close in (False, True):
            losses = self._losses(rate, open_, close)
            open_ = open_[(losses > most).any(axis=1)]
            if not len(open_):
                self.passed = self.means.copy()
                return True
        return False

    def confirmed(self, scale: float) -> bool:
        """Return whether balls prove the last test that was passed, from the bounds of doubles.

        The first scale has none. Of each pair the first one is taken for the likelier one.
        """
        if self.passed is None:
            return True
        claim, rate = self.claim, self.claim.lattice.step / Fraction(scale)
        with precision(_BITS):
            power, most = cache(lambda d: exp_minus(rate * d)), ball(claim.epsilon).exp()
            apart = np.abs(self.places[:, None] - self.places).tolist()
            for y, distance in enumerate(apart):
                far = max(distance)
                low, ends = power(far), {far: arb(0), 0: arb(1)}  # numbers, not balls around them
                h = [ends[d] if d in ends else (power(d) - low) / (1 - low) for d in distance]
                for side, own in enumerate((h, [1 - each for each in h])):
                    means = self.passed[side, y].tolist()
                    for belief, m in zip(claim.beliefs, means, strict=True):
                        share = belief.is_share and m >= belief.upper_share(y ^ side)
                        if not (m >= 1 or share or is_bound(belief, own, m)):
                            return False
                tops, rests = (list(map(arb, own[y].tolist())) for own in self.passed)
                for first, second in zip(self.firsts, self.seconds, strict=True):
                    top, bottom = (low + (1 - low) * m for m in (tops[first], 1 - rests[second]))
                    if not top <= most * bottom:
                        return False
        return True

    def _losses(self, rate: float, outputs: IntArray, close: bool) -> FloatArray:
        """Return bounds of ln <P_i, k_y> / <P_j, k_y> by output and pair."""
        if not self.shares:
            h = rescaled(self.places, rate, outputs)
            for side, own in enumerate((h, 1 - h)):
                start = self.means[side, outputs]
                self.means[side, outputs] = Wealth(self.claim.beliefs, own).upper(start, close)
        upper, other = self.means[:, outputs]
        lower = np.nextafter(1 - other, 0)
        places = self.places[outputs]
        farthest = np.maximum(places, self.places[-1] - places)[:, None] * -rate
        gap = upper[:, self.firsts] - lower[:, self.seconds]
        with np.errstate(all="ignore"):
            below = np.exp(farthest) - np.expm1(farthest) * lower[:, self.seconds]
            losses = np.log1p(-np.expm1(farthest) * gap / below) * (1 + _ERROR)
        return np.where(np.isnan(losses), np.inf, losses)
