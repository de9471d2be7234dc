# SPDX-License-Identifier: Apache-2.0
"""The betting bound in ball arithmetic: one output and one pair, where doubles cannot decide.

Every ball holds its number, so a mean whose wealth is a ball at or above what is needed is proved.
Comparisons that balls leave open count against the bound: a bet is left out, a mean is not enough.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, fmpq

from pufferfish.loss.balls import exp_minus
from pufferfish.numbers import IntArray, precision
from pufferfish.priors.ambiguity import Counted

_BITS = 192
#: Newton's method from a double needs three rounds; bounds are within 2**-_NEAR of the least.
_ROUNDS, _NEAR = 8, 100


def log_ratio_bound(
    first: Counted, second: Counted, places: IntArray, rate: Fraction, y: int,
    starts: tuple[float, float],
) -> arb:  # fmt: skip
    """Return a proven bound of ln <P_i, k_y> / <P_j, k_y>, as a ball, at the output y.

    ``starts``: what doubles have found for the mean of h under P_i, and of 1 - h under P_j.
    """
    with precision(_BITS):
        distance = np.abs(places - places[y])
        low = exp_minus(rate * int(distance.max()))
        # 0 and 1 are numbers, not balls around them.
        ends = {int(distance.max()): arb(0), 0: arb(1)}
        h = [
            ends[d] if d in ends else (exp_minus(rate * d) - low) / (1 - low)
            for d in distance.tolist()
        ]
        upper = _mean(first, h, y, starts[0])
        lower = 1 - _mean(second, [1 - own for own in h], 1 - y, starts[1])
        gap: arb = (1 - low) * (upper - lower) / (low + (1 - low) * lower)
        return gap.log1p()


def _mean(belief: Counted, h: Sequence[arb], atom: int, start: float) -> arb:
    """Return a proven upper bound of the mean of h; of two values it is a share."""
    if belief.is_share:
        return _ball(belief.upper_share(atom))
    wealth = _Wealth(belief, h)
    m, step = arb(start), arb((1, -_NEAR))
    for _ in range(_ROUNDS):
        here, there = wealth.missing(m), wealth.missing(m + step)
        if not (here.is_finite() and there.is_finite()):
            break
        move = here.mid() * step / (here - there).mid()
        m = (m + move.mid() + step).mid()
        if not 0 < m < 1:
            break
        if move.mid() < 2 * step and move.mid() > -2 * step and wealth.missing(m) <= 0:
            return m
    return arb(1)


def _ball(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))


class _Wealth:
    """Wealth of all bets on one function h under the counts of one secret."""

    def __init__(self, belief: Counted, h: Sequence[arb]) -> None:
        self.counts, self.total = belief.counts, sum(belief.counts)
        self.needed = (len(belief.bets) / _ball(belief.alpha)).log()
        self.noisy, self.half = belief.noise is not None, _ball((belief.noise or Fraction(0)) / 2)
        self.a = (-self.half).exp()
        self.bets = []
        for bet in map(_ball, belief.bets):
            w = [1 - bet * own for own in h]
            if not self.noisy or self._rises(bet, w):
                gain = sum((n * x.log() for n, x in zip(self.counts, w, strict=True)), arb(0))
                self.bets.append((bet, w, gain))

    def _rises(self, bet: arb, w: Sequence[arb]) -> bool:
        """Return whether the wealth of a bet is surely finite and rises in m."""
        if not -(1 - bet).log() < self.half:
            return False
        ratios = [own / (1 - bet) for own in w]
        slope = sum((1 / (1 - self.a * r) - 1 / (1 - self.a / r) for r in ratios), arb(0))
        return bool(self.total >= slope)

    def missing(self, m: arb) -> arb:
        """Return what ln of the mean wealth lacks of ln 1 / alpha at a mean m."""
        wealth = arb(0)
        for bet, w, gain in self.bets:
            v = 1 - bet * m
            log = gain - self.total * v.log()
            if self.noisy:
                for own in w:
                    log += ((1 - self.a * own / v) * (1 - self.a * v / own)).log()
                log -= 2 * len(w) * (1 - self.a).log()
            wealth += log.exp()
        return self.needed - wealth.log()
