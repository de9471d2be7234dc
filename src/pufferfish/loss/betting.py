# SPDX-License-Identifier: Apache-2.0
r"""The betting bound of a mean under counted rows, in doubles with a proved error.

U is the least m at which the mean wealth of all bets, e_b(m) = prod_x ((1 - b h_x) / (1 - b m))^n_x
over the noise's M, reaches 1 / alpha. Bets that are left out count as 0 (theory, section 5).

*Error.* As in ``rounding``: unit u = 2^-53, exp, expm1 and log of NumPy err by at most 4 units in
the last place. h errs by 33 u: k_y by 9 u, each 1 - e^-s by 10 u relative. w = 1 - b h is at least
1 / 16, so ln w errs by (15 * 33 + 16 + 23) u; v = 1 - b m with m as given, and ln v by 39 u. With
sums and their logarithm, ln e_b errs by at most (620 + 3 n) u times the sum of \|n_x\|, plus 100 u.
With noise M = P = 1 / (1 - c t), c = a / (1 - a)^2 and t = (w - v)^2 / (w v). Here w - v errs by
38 u, 1 / (w v) by 600 u relative and c t < 1, so that c \|w - v\| / (w v) is at most
sqrt(c) / (1 - b): 1 - c t errs by (76 sqrt(c) / (1 - b) + 650) u, and the sum of ln M by this and
(n + 10) u, times the sum of P. The wealth returned is a lower bound: that of each bet less its
error. A mean at which it suffices is proved.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pufferfish.loss.rounding import UNIT
from pufferfish.numbers import FloatArray, IntArray
from pufferfish.priors.ambiguity import Counted

#: A mean is found once its wealth exceeds what is needed by no more than this: quickly, or closely.
_ROUGH, _CLOSE = 0.3, 1e-11
_MOST_ROUNDS = 100
#: In a hurry bets below e^-_CUT of the best are not looked at.
_CUT = 3.0
#: Bets with larger errors than this are left out: those below are of the first order.
_LARGEST_ERROR = 1e-3


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
