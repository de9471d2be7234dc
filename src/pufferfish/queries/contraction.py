# SPDX-License-Identifier: Apache-2.0
"""An upper bound of the loss that holds for every number of records; theory, sections 8.5 and 8.7.

R(a, b), the reach, bounds what one record itself tells of a against b: of noise with rate u that is
u times by how much the answer differs, and several answers add theirs. D(a, b) bounds what all
later records tell: any D >= 0 that one more record does not raise, Psi(D + R) <= D. Transports
prove it: where the rows of shares S sum to 1,
P_a . v <= max_t [sum_s P_a(s) S(s, t) e^(D + R)(s, t) / P_b(t)] P_b . v for every admissible v.
Doubles propose D and S, balls check them: a wrong program only costs noise. Of two states D is the
root of a quadratic. Earlier records are the later ones of a reversed stationary chain; else
Birkhoff's contraction bounds what they tell.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
from flint import arb

from pufferfish.calibration.solver import LinearProgram, solve
from pufferfish.errors import PufferfishError
from pufferfish.loss.balls import log_ends
from pufferfish.numbers import FloatArray, precision
from pufferfish.priors.betting import ball
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.model import Rows, cross_ratio

#: By pair of states; of doubles for the search, exact for proofs.
Reach = Sequence[Sequence[Any]]
#: With more states the programs take too long, with smaller probabilities they are ill-conditioned:
#: Birkhoff's contraction stands for them.
_MOST_STATES = 10
#: Exponents above this are refused; so small are rare probabilities; rounds of Newton's method.
_LARGEST, _TINY, _ROUNDS = 30.0, 1e-100, 40
#: Newton's method doubles the digits in each round: a last move so small leaves nothing to move.
_LAST_MOVE = 1e-7
#: How far above the fixed point of doubles a proof is tried, relative to the largest exponent.
_SLACKS = [10.0**-k for k in range(13, 5, -1)]
_FRACTIONS: Any = np.frompyfunc(Fraction, 2, 1)


def contraction_loss(chain: MarkovChain, reach: Reach) -> float:
    """Return an upper bound of the loss for every number of records, unproved; inf: none."""
    return float(_bound(chain, reach, fixed_point, birkhoff_loss))


def prove_contraction(chain: MarkovChain, reach: Reach, bits: int = 128) -> Fraction | None:
    """Return a proven upper bound of the loss for every number of records; None: none is proved."""
    found = _bound(chain, reach, partial(_prove, bits=bits), partial(prove_birkhoff, bits=bits))
    return None if found == math.inf else Fraction(found)


def _bound(
    chain: MarkovChain, reach: Reach, find: Callable[..., Any], birkhoff: Callable[..., Any]
) -> Any:
    """Return the largest sum of what earlier records tell, later ones, and a record itself."""
    rows, k, most = chain.transition, range(len(reach)), max(map(max, reach))
    if len(k) == 2:
        find = two_states
        if rows[0][1] + rows[1][0] >= 1:
            return most  # theory, section 8.7: what surrounds a record takes back what it adds
    if not most:
        return 0
    hard = len(k) > _MOST_STATES or any(0 < p < _TINY for row in rows for p in row)
    if chain.stationary and not hard:
        later = find(rows, reach)
        earlier = later if chain.backwards == rows else find(chain.backwards, reach)
    else:
        both = birkhoff(cross_ratio(rows), most)
        if both is None or both == math.inf:
            return math.inf  # nothing bounds what earlier records tell
        if hard:
            return both
        later = find(rows, reach)
        earlier = [[[(both - most) / 2 for _ in k] for _ in k]]
    if later is None or earlier is None:
        return math.inf
    return max(earlier[0][a][b] + reach[a][b] + later[0][a][b] for a, b in permutations(k, 2))


def two_states(rows: Rows, reach: Reach, bits: int = 128) -> tuple[Any, None] | None:
    """Return the least exponents of two states, rounded up, p and q the chances to leave them.

    One more record leads from x = e^D to ((1 - p) g + p) / (q g + 1 - q), g = x e^R, as p + q < 1.
    Above the root that is below x.
    """
    found = [[Fraction(0), Fraction(0)], [Fraction(0), Fraction(0)]]
    with precision(bits):
        for a, b in ((0, 1), (1, 0)):
            p, q, growth = ball(rows[a][b]), ball(rows[b][a]), ball(Fraction(reach[a][b])).exp()
            half = ((1 - p) * growth - (1 - q)) / 2
            upper = log_ends((half + (half * half + p * q * growth).sqrt()) / (q * growth))[1]
            if upper is None:
                return None
            found[a][b] = max(upper, Fraction(0))
    return found, None


def birkhoff_loss(k_squared: Fraction | None, reach: float) -> float:
    """Return an upper bound of the loss of all chains of a cross ratio, unproved; inf: none.

    Earlier and later records tell D each, D = 2 ln((1 + kE) / (k + E)), E = e^((D + reach) / 2):
    the only root above 0 of a quadratic in e^(D/2). With the reach it is 4 asinh(k sinh(reach/4)).
    """
    if k_squared is None or k_squared > 10**200 or not reach <= 1000:
        return math.inf
    return 4 * math.asinh(math.sqrt(k_squared) * math.sinh(reach / 4))


def prove_birkhoff(k_squared: Fraction | None, reach: Fraction, bits: int = 128) -> Fraction | None:
    """Return the same with proof, at least the reach; None: no bound is proved."""
    if k_squared is None:
        return None
    with precision(bits):
        x = ball(k_squared).sqrt() * (ball(reach) / 4).sinh()
        upper = log_ends((x + (x * x + 1).sqrt()) ** 4)[1]
    return None if upper is None else max(upper, reach)


def fixed_point(rows: Rows, given: Reach) -> tuple[FloatArray, FloatArray] | None:
    """Return the least D that one more record does not raise, and a direction for slack, or None.

    By Newton's method from 0 where it leads upwards, else by one more record.
    """
    chances, reach = (np.array(each, dtype=np.float64) for each in (rows, given))
    values, identity = np.zeros_like(reach), np.eye(reach.size)
    for _ in range(_ROUNDS):
        if not (values + reach).max() <= _LARGEST:
            break
        after, slopes, _ = _one_more(chances, values + reach)
        try:
            sides = np.stack([(after - values).reshape(-1), np.ones(reach.size)], axis=1)
            move, slack = np.linalg.solve(identity - slopes, sides).T.reshape(2, *reach.shape)
        except np.linalg.LinAlgError:
            break
        further = np.maximum(values + move, 0.0)
        leads = slack.min() > 0.5 and (further + reach).max() <= _LARGEST
        if leads and np.abs(move).max() <= _LAST_MOVE * (further + reach).max():
            np.fill_diagonal(slack, 0.0)
            return further, slack
        values = further if leads else after
    return None


def _prove(rows: Rows, given: Reach, bits: int) -> tuple[Any, Any] | None:
    """Return exponents that one more record is proved not to raise, and shares; None: none."""
    found = fixed_point(rows, given)
    if found is None:
        return None
    chances, reach = (np.array(each, dtype=np.float64) for each in (rows, given))
    for slack in _SLACKS:
        values = found[0] + slack * (found[0] + reach).max() * found[1]
        bounds = np.array([[Fraction(value) for value in row] for row in values.tolist()])
        whole = np.rint(_one_more(chances, values + reach)[2] * 2.0**60).astype(int).astype(object)
        exact = _FRACTIONS(whole, np.maximum(whole.sum(axis=-1, keepdims=True), 1))
        if holds(rows, given, bounds, exact, bits):
            return bounds, exact
    return None


def holds(rows: Rows, reach: Reach, values: Any, shares: Any, bits: int) -> bool:
    """Return whether transports prove that one more record does not raise the exponents.

    ``shares[a, b, s, t]`` is the fraction of state s that goes to t for the states a and b.
    """
    k = range(len(rows))
    if (values < 0).any() or (shares < 0).any():
        return False
    with precision(bits):
        growth = [[ball(values[s, t] + reach[s][t]).exp() for t in k] for s in k]
        for a, b in permutations(k, 2):
            start, end, most = rows[a], rows[b], ball(values[a, b]).exp()
            if any(start[s] and sum(shares[a, b, s]) != 1 for s in k):
                return False
            for t in k:
                flow = [start[s] * shares[a, b, s, t] for s in k]
                terms = (ball(each) * growth[s][t] for s, each in enumerate(flow) if each)
                if not sum(terms, arb(0)) <= ball(end[t]) * most:
                    return False
    return True


def _one_more(chances: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the exponents after one more record, their slopes in those before, and the shares."""
    k, growth = len(chances), np.exp(reach)
    after, slopes, shares = np.zeros((k, k)), np.zeros((k, k, k, k)), np.zeros((k, k, k, k))
    for a, b in permutations(range(k), 2):
        part = np.ix_(*(np.flatnonzero(chances[row] > _TINY) for row in (a, b)))
        even = chances[b, part[1]]
        cost = chances[a, part[0]] * growth[part] / even
        shares[a, b][part], weights = _transport(cost, even)
        terms = shares[a, b][part] * cost
        after[a, b] = math.log(terms.sum(axis=0).max())
        slopes[a, b][part] = terms * weights / (terms @ weights).sum()
        np.fill_diagonal(slopes[a, b], 0.0)
    return after, slopes.reshape(k * k, k * k), shares


def _transport(cost: FloatArray, even: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return shares of the least largest column sum of cost * share, and what columns decide it."""
    most = 2 * float((cost * even).sum(axis=0).max())
    scale = np.minimum(most / cost, 1.0)  # of the variables, each then from 0 to 1
    (m, n), last = cost.shape, cost.size  # the last variable is the largest sum, over most
    index, value = np.arange(last).reshape(m, n), cost * scale / most
    entries = [*index, *(np.append(column, last) for column in index.T)]
    values = [*scale, *(np.append(column, -1.0) for column in value.T)]
    starts, sums = np.cumsum([0, *map(len, entries)]), np.repeat([True, False], [m, n])
    program = LinearProgram(
        np.append(np.zeros(last), 1.0), np.zeros(last + 1), starts, np.concatenate(entries),
        np.concatenate(values), end=sums.astype(np.float64), equal=sums,
    )  # fmt: skip
    with suppress(PufferfishError):
        found, multipliers = solve(program)
        shares = np.maximum(found[:last].reshape(m, n) * scale, 0.0)
        if np.abs(shares.sum(axis=1) - 1).max() < 1e-6:
            return shares, np.abs(multipliers[m:]) + _TINY
    return np.repeat(even, m, axis=0), even[0]
