# SPDX-License-Identifier: Apache-2.0
"""The betting bound of a share of counted rows, in ball arithmetic (theory, section 5).

Every ball holds its number, so a mean whose wealth is a ball at or above what is needed is proved.
Comparisons that balls leave open count against the bound: a bet is left out, a mean is not enough.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, fmpq

from pufferfish.numbers import precision
from pufferfish.priors.ambiguity import UNIT, Counted, Region

_BITS = 192
#: Bounds are within 2**-_NEAR of the least; Newton's method needs some ten rounds.
_ROUNDS, _NEAR = 110, 100
#: So many bets are tried before all of them are.
_FEW = 4


def ball(number: Fraction) -> arb:
    """Return a fraction as a ball."""
    return arb(fmpq(number.numerator, number.denominator))


def _upper_mean(belief: Counted, h: Sequence[arb], start: float, times: Sequence[int]) -> arb:
    """Return a proven upper bound of the mean of h in [0, 1], at the precision in force.

    The counts are those of ``times`` cells for each value of h. ``start`` is a first guess.
    """
    wealth = _Wealth(belief, h, times)
    # It rises: Newton's method in a bracket, whose upper end is proved.
    low, high, m, step = arb(0), arb(1), arb(start), arb((1, -_NEAR))
    if not wealth.missing(high) <= 0:
        return high
    for _ in range(_ROUNDS):
        here, there = wealth.missing(m), wealth.missing(m + step)
        low, high = (low, m) if here <= 0 else (m, high)
        move = ((here / (here - there)).mid() * step).mid()
        if high - low < 4 * step or (here <= 0 and abs(move) < 4 * step):
            break
        # One step farther, so that the next one is enough.
        m = (m + move + step).mid()
        if not low < m < high:
            m = ((low + high) / 2).mid()
    return high


def is_bound(belief: Counted, h: Sequence[arb], m: float) -> bool:
    """Return whether m is proved to bound the mean of h from above; h has a value for each cell."""
    b, x = np.array(belief.bets, dtype=np.float64)[:, None], np.array(h, dtype=np.float64)
    w, v, noise = 1 - b * x, 1 - b * m, 0.0
    if belief.noise is not None:
        a = math.exp(-float(belief.noise) / 2)
        with np.errstate(all="ignore"):
            noise = np.log((1 - a * w / v) * (1 - a * v / w)).sum(axis=1)
    worth = np.log(w / v) @ np.array(belief.counts, dtype=np.float64) + noise
    # Bets that are left out count as 0; mostly the best ones are enough.
    best = [belief.bets[k] for k in np.argsort(-np.nan_to_num(worth, nan=-np.inf))]
    tried = (_Wealth(belief, h, (1,) * len(h), bets) for bets in (best[:_FEW], best))
    return any(wealth.missing(arb(m)) <= 0 for wealth in tried)


@lru_cache(maxsize=4096)
def _share(own: Counted, cells: int) -> tuple[int, int]:
    """Return the ends of the share of one cell, whose count is beside that of all others.

    They are rounded outwards, times 2**160; each fails with the chance ``alpha``.
    """
    (count, rest), zero, one = own.counts, arb(0), arb(1)
    near, ends = min(max(count, 1) / max(count + rest, 2), 0.99), []
    with precision(_BITS):
        for h, start in (((one, zero), near), ((zero, one), 1 - near)):
            end: Any = _upper_mean(own, h, start, (1, cells - 1)) * UNIT
            ends.append(int(end.ceil().unique_fmpz()))
    return UNIT - ends[1], ends[0]


def box_of_bounds(belief: Counted) -> Region | None:
    """Return the box of the bounds of all shares, each failing with the chance ``alpha``.

    None where it holds no distribution, as noise may have it.
    """
    total, cells = sum(belief.counts), len(belief.counts)
    ends = [_share(replace(belief, counts=(n, total - n)), cells) for n in belief.counts]
    least, most = map(tuple, zip(*ends, strict=True))
    if any(low > high for low, high in ends) or not sum(least) <= UNIT <= sum(most):
        return None
    room = tuple(high - low for low, high in ends)
    return Region(least, room, UNIT - sum(least), 0, UNIT)


class _Wealth:
    """Wealth of all bets on one function h under the counts of one secret."""

    def __init__(
        self, belief: Counted, h: Sequence[arb], times: Sequence[int],
        bets: Sequence[Fraction] | None = None,
    ) -> None:  # fmt: skip
        self.counts, self.total = belief.counts, sum(belief.counts)
        self.times, self.cells = times, sum(times)
        self.needed = (len(belief.bets) / ball(belief.alpha)).log()
        self.noisy, self.half = belief.noise is not None, ball((belief.noise or Fraction(0)) / 2)
        self.a = (-self.half).exp()
        self.bets = []
        for bet in map(ball, belief.bets if bets is None else bets):
            w = [1 - bet * own for own in h]
            if not self.noisy or self._rises(bet, w):
                gain = sum((n * x.log() for n, x in zip(self.counts, w, strict=True)), arb(0))
                self.bets.append((bet, w, gain))

    def _rises(self, bet: arb, w: Sequence[arb]) -> bool:
        """Return whether the wealth of a bet is surely finite and rises in m."""
        if not -(1 - bet).log() < self.half:
            return False
        slope = arb(0)
        for own, times in zip(w, self.times, strict=True):
            ratio = own / (1 - bet)
            slope += times * (1 / (1 - self.a * ratio) - 1 / (1 - self.a / ratio))
        return bool(self.total >= slope)

    def missing(self, m: arb) -> arb:
        """Return what ln of the mean wealth lacks of ln 1 / alpha at a mean m."""
        wealth = arb(0)
        for bet, w, gain in self.bets:
            v = 1 - bet * m
            log = gain - self.total * v.log()
            if self.noisy:
                for own, times in zip(w, self.times, strict=True):
                    log += times * ((1 - self.a * own / v) * (1 - self.a * v / own)).log()
                log -= 2 * self.cells * (1 - self.a).log()
            wealth += log.exp()
        return self.needed - wealth.log()
