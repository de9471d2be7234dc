# SPDX-License-Identifier: Apache-2.0
"""The ends of a chain: the loss at the outputs minus and plus infinity, for all records at once.

The likelihood ratio of two states tends to that of E[e^{uF} | X_t = s], u and minus u, which are
numbers and no polynomials: linear in the number of records. The loss is never below; it is equal
where the law is MTP2 and the weights do not fall with the states (theory, sections 8.2 and 8.3).
The tilt is u times the weights, of several answers its sum (section 8.12).
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from flint import arb

from pufferfish.loss.balls import exp_minus, log_ends
from pufferfish.loss.certificate import LossBound
from pufferfish.numbers import FloatArray, precision
from pufferfish.priors.betting import ball
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.model import Rows, numerators

#: Orders of states with equal weights that are tried.
_MOST_ORDERS = 5040


def is_tp2(transition: Rows, weights: Sequence[int | Fraction]) -> bool:
    """Whether all minors of two rows and columns are at least 0, compared in rationals.

    The states are in the order of their weights; those with equal weights in any order.
    """
    groups = [[s for s, own in enumerate(weights) if own == w] for w in sorted(set(weights))]
    few = math.prod(math.factorial(len(group)) for group in groups) <= _MOST_ORDERS
    orders = product(*(permutations(g) if few else [tuple(g)] for g in groups))
    rows = numerators(transition)
    return any(_is_tp2([s for group in order for s in group], rows) for order in orders)


def _is_tp2(order: Sequence[int], rows: Sequence[Sequence[int]]) -> bool:
    """Whether the ratio of a later row to an earlier one never falls, from 0 to infinity.

    Columns in which both are 0 have no ratio, and their minors are 0: they are passed over, so
    that more than adjacent columns are compared.
    """
    for one, other in combinations(order, 2):
        below, above = 1, 0
        for column in order:
            low, high = rows[one][column], rows[other][column]
            if above * low > high * below:
                return False
            if low or high:
                below, above = low, high
    return True


class Ends:
    """The ends of sequences of some lengths as a function of the tilt, in doubles, for the search.

    Likelihoods are logarithms: those of rare states may be beyond doubles.
    """

    def __init__(self, chain: MarkovChain, lengths: Sequence[int]) -> None:
        with np.errstate(divide="ignore"):
            self._steps = np.log(np.array(chain.transition, dtype=np.float64))
            self._start = np.log(np.array(chain.start, dtype=np.float64))
        self._lengths = sorted(lengths)
        self._masses = _iterates(self._steps.T, self._start, self._lengths[-1])

    def __call__(self, tilt: FloatArray) -> float:
        """Return the larger of both ends, over lengths, records and pairs of possible states."""
        return max(self._end(tilt), self._end(-tilt))

    def _end(self, tilt: FloatArray) -> float:
        most = self._lengths[-1]
        past = _iterates(self._steps.T + tilt, self._start, most) + tilt
        future = _iterates(self._steps + tilt, np.zeros(len(tilt)), most)
        possible = self._masses > -np.inf
        past -= np.where(possible, self._masses, 0.0)
        worst = 0.0
        for length in self._lengths:
            logs, known = past[:length] + future[length - 1 :: -1], possible[:length]
            highs = np.where(known, logs, -np.inf).max(axis=1)
            worst = max(worst, float((highs - np.where(known, logs, np.inf).min(axis=1)).max()))
        return worst


def limit_of_ends(chain: MarkovChain, tilt: FloatArray) -> float:
    """Return what the ends of ever more records tend to, in a stationary chain, in doubles.

    That is ln (l_a r_a pi_b) / (l_b r_b pi_a), l and r the Perron vectors of P D (theory, 8.4).
    """
    steps, found = np.array(chain.transition, dtype=np.float64), list[float]()
    for each in (tilt, -tilt):
        matrix = steps * np.exp(each - each.max())
        logs = -np.log(np.array(chain.start, dtype=np.float64))
        for own in (matrix, matrix.T):
            values, vectors = np.linalg.eig(own)
            with np.errstate(divide="ignore"):
                logs = logs + np.log(np.abs(vectors[:, values.real.argmax()]))
        found.append(float(np.ptp(logs)))
    return max(found)


def _iterates(matrix: FloatArray, vector: FloatArray, count: int) -> FloatArray:
    """Return ln of A^n v, each up to a constant, for n below count; in square root of count steps.

    Of powers below some m, and of each m-th iterate, all others are products.
    """
    k, m = len(vector), math.isqrt(count - 1) + 1
    powers = np.full((m + 1, k, k), -np.inf)
    powers[0] = np.where(np.eye(k, dtype=bool), 0.0, -np.inf)
    for n in range(m):
        powers[n + 1] = _product(matrix[:, None, :], powers[n].T)
    every = [vector]
    for _ in range(1, -(-count // m)):
        every.append(_product(powers[m], every[-1]))
    found = np.logaddexp.reduce(powers[:m] + np.stack(every)[:, None, None, :], axis=-1)
    return np.asarray(found.reshape(-1, k)[:count])


def _product(matrix: FloatArray, other: FloatArray) -> FloatArray:
    """Return the logarithms of a product, up to a constant."""
    logs = np.logaddexp.reduce(matrix + other, axis=-1)
    return np.asarray(logs - logs.max())


def prove_ends(
    chain: MarkovChain, tilt: Sequence[Fraction], lengths: Sequence[int], bits: int
) -> LossBound:
    """Enclose the larger of both ends over all lengths, records and pairs, in balls.

    Whether a state is possible at a record is decided by what leads there, not by numbers.
    """
    with precision(bits):
        down, up = (_largest_ratio(chain, tilt, sorted(lengths), sign) for sign in (False, True))
        lower, upper = log_ends(down.max(up))
    return LossBound(upper, lower, method="ends+ball", precision=bits)


def _largest_ratio(
    chain: MarkovChain, tilts: Sequence[Fraction], lengths: Sequence[int], up: bool
) -> arb:
    """Return the largest ratio of E[e^{uF} | X_t = s] between states, for one sign of u.

    ``tilts``: u times the weights, from 0.
    """
    k, most = range(len(chain.states)), max(tilts)
    # e^{uw} over its largest value, for either sign.
    tilt = [exp_minus(most - own if up else own) for own in tilts]
    p = [[ball(value) for value in row] for row in chain.transition]
    columns = [[(r, p[r][s]) for r in k if chain.transition[r][s]] for s in k]
    rows = [[(r, p[s][r]) for r in k if chain.transition[s][r]] for s in k]
    future = [[arb(1)] * len(k)]
    for _ in range(lengths[-1] - 1):
        tilted = [a * b for a, b in zip(tilt, future[-1], strict=True)]
        future.append([_sum(row, tilted) for row in rows])
    ratio = arb(1)
    sums: list[Any] = [ball(x) if x else None for x in chain.start or ()]
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


def _sum(factors: Sequence[tuple[int, arb]], values: Sequence[Any]) -> Any:
    """Return the sum of factor times value, None where no state with a factor is possible."""
    terms = [factor * values[s] for s, factor in factors if values[s] is not None]
    return sum(terms[1:], terms[0]) if terms else None
