# SPDX-License-Identifier: Apache-2.0
"""The ends of a chain: the loss at the outputs minus and plus infinity, for all records at once.

The likelihood ratio of two states tends to that of E[e^{uF} | X_t = s], u and minus u, which are
numbers and no polynomials: linear in the number of records. The loss is never below; it is equal
where the law is MTP2 and the weights do not fall with the states (theory, sections 8.2 and 8.3).
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import permutations, product
from typing import Any

import numpy as np
from flint import arb, fmpq

from pufferfish.loss.balls import exp_minus, log_ends
from pufferfish.loss.certificate import LossBound
from pufferfish.numbers import FloatArray, precision
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.model import Rows

#: Orders of states with equal weights that are tried.
_MOST_ORDERS = 5040
#: Sums of largest entry 1 that change by no more than this have come to rest.
_REST = 2e-16
#: What a ball stands for, or None: the state is impossible.
_Ball = Any


def is_tp2(transition: Rows, weights: Sequence[int]) -> bool:
    """Whether all minors of two rows and columns are at least 0, compared in rationals.

    The states are in the order of their weights; those with equal weights in any order.
    """
    groups = [[s for s, own in enumerate(weights) if own == w] for w in sorted(set(weights))]
    few = math.prod(math.factorial(len(group)) for group in groups) <= _MOST_ORDERS
    orders = product(*(permutations(g) if few else [tuple(g)] for g in groups))
    return any(_is_tp2([s for group in order for s in group], transition) for order in orders)


def _is_tp2(order: Sequence[int], p: Rows) -> bool:
    """Whether all such minors are at least 0 in one order: not only the adjacent ones."""
    each = range(len(order))
    return all(
        p[order[a]][order[c]] * p[order[b]][order[d]]
        >= p[order[a]][order[d]] * p[order[b]][order[c]]
        for a in each for b in each[a + 1 :] for c in each for d in each[c + 1 :]
    )  # fmt: skip


class Ends:
    """The ends of sequences of some lengths as a function of u, in doubles, for the search."""

    def __init__(self, chain: MarkovChain, weights: Sequence[int], lengths: Sequence[int]) -> None:
        self._transition = np.array(chain.transition, dtype=np.float64)
        self._start = np.array(chain.start, dtype=np.float64)
        self._weights, self._lengths = np.array(weights, dtype=np.float64), sorted(lengths)
        self._steps, self._began = self._transition > 0, self._start > 0

    def __call__(self, u: float) -> float:
        """Return the larger of both ends, over lengths, records and pairs of possible states."""
        powers = np.stack([-u * self._weights, u * self._weights])
        tilt = np.exp(powers - powers.max(axis=1, keepdims=True))
        past, future = self._past(tilt), self._future(tilt)
        losses = [self._of_length(length, past, future) for length in self._lengths]
        return max(losses)

    def _past(self, tilt: FloatArray) -> list[FloatArray]:
        """Return ln E[e^{uF of the past}, X_t = s] - ln P(X_t = s) + u w_s, until it rests."""
        sums = np.stack([self._start, self._start, self._start])
        possible, found = self._began, list[FloatArray]()
        tilts = np.vstack([tilt, np.ones(len(self._weights))])
        for _ in range(self._lengths[-1]):
            with np.errstate(all="ignore"):
                logs = np.log(sums)
                found.append(np.where(possible, logs[:2] - logs[2] + np.log(tilt), np.nan))
            following = (sums * tilts) @ self._transition
            following /= following.max(axis=1, keepdims=True)
            reached = possible @ self._steps
            if _rests(following, sums) and np.array_equal(reached, possible):
                break
            sums, possible = following, reached
        return found

    def _future(self, tilt: FloatArray) -> list[FloatArray]:
        """Return ln E[e^{uF of the future} | X_t = s] up to a constant, until it rests."""
        sums, found = np.ones_like(tilt), list[FloatArray]()
        for _ in range(self._lengths[-1]):
            found.append(np.log(sums))
            following = (sums * tilt) @ self._transition.T
            following /= following.max(axis=1, keepdims=True)
            if _rests(following, sums):
                break
            sums = following
        return found

    @staticmethod
    def _of_length(length: int, past: list[FloatArray], future: list[FloatArray]) -> float:
        t = np.arange(length)
        if length > len(past) + len(future):  # between both nothing changes
            t = np.concatenate([t[: len(past)], t[-len(future) :]])
        first = np.stack(past)[np.minimum(t, len(past) - 1)]
        logs = first + np.stack(future)[np.minimum(length - 1 - t, len(future) - 1)]
        return float((np.nanmax(logs, axis=-1) - np.nanmin(logs, axis=-1)).max())


def prove_ends(
    chain: MarkovChain, weights: Sequence[int], lengths: Sequence[int], rate: Fraction, bits: int
) -> LossBound:
    """Enclose the larger of both ends over all lengths, records and pairs, in balls.

    Whether a state is possible at a record is decided by what leads there, not by numbers.
    """
    with precision(bits):
        ratio = arb(1)
        for sign in (False, True):
            ratio = ratio.max(_largest_ratio(chain, weights, sorted(lengths), rate, sign))
        lower, upper = log_ends(ratio)
    return LossBound(upper, lower, method="ends+ball", precision=bits)


def _largest_ratio(
    chain: MarkovChain, weights: Sequence[int], lengths: Sequence[int], rate: Fraction, up: bool
) -> arb:
    """Return the largest ratio of E[e^{uF} | X_t = s] between states, for one sign of u."""
    k, most = range(len(chain.states)), max(weights)
    # e^{uw} over its largest value, for either sign.
    tilt = [exp_minus((most - w if up else w) * rate) for w in weights]
    p = [[_ball(value) for value in row] for row in chain.transition]
    columns = [[(r, p[r][s]) for r in k if chain.transition[r][s]] for s in k]
    rows = [[(r, p[s][r]) for r in k if chain.transition[s][r]] for s in k]
    future = [[arb(1)] * len(k)]
    for _ in range(lengths[-1] - 1):
        tilted = [a * b for a, b in zip(tilt, future[-1], strict=True)]
        future.append([_sum(row, tilted) for row in rows])
    ratio = arb(1)
    sums: list[_Ball] = [_ball(x) if x else None for x in chain.start or ()]
    masses = sums  # None: impossible
    for t in range(lengths[-1]):
        tilted_sums = [None if a is None else a * b for a, b in zip(sums, tilt, strict=True)]
        past = [a / m for a, m in zip(tilted_sums, masses, strict=True) if a is not None]
        possible = [s for s in k if sums[s] is not None]
        for length in lengths:
            if t < length and len(possible) > 1:
                after = future[length - 1 - t]
                values = [own * after[s] for own, s in zip(past, possible, strict=True)]
                ratio = ratio.max(reduce(arb.max, values) / reduce(arb.min, values))
        sums = [_sum(column, tilted_sums) for column in columns]
        masses = [_sum(column, masses) for column in columns]
    return ratio


def _rests(following: FloatArray, before: FloatArray) -> bool:
    return bool(np.abs(following - before).max() <= _REST)


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _sum(factors: Sequence[tuple[int, arb]], values: Sequence[_Ball]) -> _Ball:
    """Return the sum of factor times value, None where no state with a factor is possible."""
    terms = [factor * values[s] for s, factor in factors if values[s] is not None]
    return sum(terms[1:], terms[0]) if terms else None
