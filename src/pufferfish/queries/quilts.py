# SPDX-License-Identifier: Apache-2.0
"""Published mechanisms for sums over Markov chains, to compare with: MQMExact, MQMApprox, GK16.

Each function returns the scale of the noise that the mechanism takes, in lattice steps, in doubles;
nothing is proved here. `lengths` are the numbers of records of the sequences, and `lipschitz` is by
how much one record can change the query, in L1 and in lattice steps. `docs/quilts.md` names the
sources and the conventions that were chosen.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from pufferfish.queries.chain import MarkovChain

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Influences:
    """What records at a distance tell of a record: largest log-ratios by pair of its states.

    For record t and pair p the record t-a tells `before[kind[t-a], a, p] + marginal[t, p]`, the
    record t+b tells `after[b, p]`; t, a and b are counted from 1, array indices from 0.
    """

    after: Floats
    before: Floats
    kind: Ints  # Which states are possible at each record: records of one kind share a table.
    marginal: Floats
    possible: NDArray[np.bool_]  # Whether both states of each pair are possible at each record.


def mqm_exact(chain: MarkovChain, lengths: Sequence[int], lipschitz: int, epsilon: float) -> float:
    """Return the scale of MQMExact; where any start is possible, influences are the largest."""
    return lipschitz * _least_scale(partial(_exact, chain), lengths, epsilon, chain.stationary)


def mqm_approx(chain: MarkovChain, lengths: Sequence[int], lipschitz: int, epsilon: float) -> float:
    """Return the scale of MQMApprox, which holds for any start of an irreducible chain.

    Where a chain is reducible or periodic, only the trivial quilt is left: the scale of `group`.
    """
    if not chain.irreducible:
        return lipschitz * max(lengths) / epsilon
    return lipschitz * _least_scale(partial(_approx, chain), lengths, epsilon, settled=True)


def gk16(chain: MarkovChain, lengths: Sequence[int], lipschitz: int, epsilon: float) -> float:
    """Return the scale of GK16: inf unless there are two states and the start is stationary.

    For others no published influence matrix is known to us. It is inf, too, at a norm of 1 or more.
    """
    if len(chain.states) > 2 or not chain.stationary:
        return math.inf
    # P(X_t = x | both neighbours) is proportional to P(r, x) P(x, q).
    weights = [[[chain.transition[r][x] * chain.transition[x][q] for x in (0, 1)] for q in (0, 1)]
               for r in (0, 1)]  # fmt: skip
    if not all(w for row in weights for both in row for w in both):
        return math.inf
    laws = np.array([[[float(w / sum(both)) for w in both] for both in row] for row in weights])
    changes = [np.ptp(np.log(laws), axis=axis).max() for axis in (0, 1)]
    gamma, length = float(max(changes)) / 2, max(lengths)
    if 2 * gamma * math.cos(math.pi / (length + 1)) >= 1:
        return math.inf
    # The largest row sum of (I - Gamma)^-1 is that of the middle record. Elimination from either
    # end: x_t = part + factor x_{t+1}, where x_t = 1 + gamma (x_{t-1} + x_{t+1}).
    factor = part = 0.0
    for _ in range((length - 1) // 2):
        factor, part = (top / (1 - gamma * factor) for top in (gamma, 1 + gamma * part))
    ends = 1 + length % 2
    row = (1 + ends * gamma * part) / (1 - ends * gamma * factor - (2 - ends) * gamma)
    return 2 * lipschitz * row / epsilon


def _exact(chain: MarkovChain, size: int) -> _Influences:
    """Return the exact influences in a sequence of a given number of records."""
    steps = np.array([[float(p) for p in row] for row in chain.transition])
    leads = np.array([[p > 0 for p in row] for row in chain.transition])
    k, start = len(steps), chain.start
    powers, reached = np.array([np.eye(k)] * size), np.array([np.eye(k, dtype=bool)] * size)
    for t in range(1, size):
        powers[t], reached[t] = powers[t - 1] @ steps, reached[t - 1] @ leads
    masks = np.array([start is None or start[s] > 0 for s in range(k)]) @ reached
    laws = np.array([float(p) for p in start or [1] * k]) @ powers
    if chain.stationary:
        laws[1:] = laws[0]
    s, other = np.nonzero(~np.eye(k, dtype=bool))
    kinds, kind = np.unique(masks, axis=0, return_inverse=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # 0/0 is nan, which fmax passes over
        logs = np.log(powers)
        after = reduce(np.fmax, (logs[:, s, q] - logs[:, other, q] for q in range(k)))
        before = [reduce(np.fmax, (logs[:, r, s] - logs[:, r, other] for r in np.flatnonzero(mask)))
                  for mask in kinds]  # fmt: skip
        if start is None:  # a mixture that hardly ever starts in r: both ratios at once
            marginal = reduce(np.fmax, (logs[:, r, other] - logs[:, r, s] for r in range(k)))
        else:
            marginal = np.log(laws[:, other]) - np.log(laws[:, s])
    # Quilts so far away that a probability is below the doubles are not used.
    tables, lost = np.array(before), ((powers == 0) & reached).any(axis=(1, 2))
    after[lost] = tables[:, lost] = math.inf
    marginal[lost if start is None else ((laws == 0) & masks).any(axis=1)] = math.inf
    both = masks[:, s] & masks[:, other]
    return _Influences(after[1:], tables[:, 1:], kind.reshape(-1), marginal, both)


def _approx(chain: MarkovChain, size: int) -> _Influences:
    """Return bounds of the influences from the stationary law and the eigengap."""
    pi = MarkovChain(chain.states, chain.transition).start or ()
    k = range(len(pi))
    flow = [[pi[r] * chain.transition[r][s] for s in k] for r in k]
    law = np.array([float(p) for p in pi])
    # P and its time reversal have a product whose eigenvalues are squares of these.
    scaled = np.array(flow, dtype=float) / np.sqrt(np.outer(law, law))
    singular = np.linalg.svd(scaled, compute_uv=False)
    gap = 1 - singular[1]
    if any(flow[r][s] != flow[s][r] for r in k for s in k):  # not reversible
        gap *= (1 + singular[1]) / 2
    ratio = np.exp(-gap * np.arange(1, size)) / law.min()
    with np.errstate(divide="ignore"):
        told = 2 * np.arctanh(np.minimum(ratio, 1))[:, None]
    none, kind = np.zeros((size, 1)), np.zeros(size, dtype=np.int64)
    return _Influences(told, 2 * told[None], kind, none, none == 0)


def _least_scale(
    build: Callable[[int], _Influences], lengths: Sequence[int], epsilon: float, settled: bool
) -> float:
    """Return the largest scale over sequences and records, for one lattice step.

    ``settled``: influences are those of a stationary chain. Then no record needs more than one with
    all quilts; once the middle one needs none that leaves `size`, longer sequences need as much.
    """
    size = longest = max(lengths)
    if settled:
        size = min(longest, 64)
        while size < longest:
            scale = _of_records(build(size), [(size + 1) // 2], size, epsilon, 0.0)
            if 2 * scale * epsilon + 1 <= size:
                return scale
            size = min(2 * size, longest)
    found, scale = build(size), 0.0
    for length in sorted(lengths, reverse=True):
        scale = _of_records(found, range(1, length + 1), length, epsilon, scale)
    return scale


def _of_records(
    found: _Influences, records: Sequence[int], length: int, epsilon: float, worst: float
) -> float:
    """Return the larger of ``worst`` and what the worst of some records of a sequence needs."""
    known = [(2**i, 2**i) for i in range(length.bit_length())]  # then the best of other records
    for t in sorted(records, key=lambda t: abs(2 * t - length - 1)):
        if not found.possible[t - 1].any():
            continue
        scale, *_ = _best_quilt(found, t, length, epsilon, np.array(known).T)
        if scale > worst * (1 + 1e-14):
            useful = np.arange(1, int(scale * epsilon) + 2)  # Larger quilts have larger scales.
            scale, a, b = min(
                _best_quilt(found, t, length, epsilon, (part, useful[: 1 - part[0] or None]))
                for part in np.array_split(useful, 1 + len(useful) // 1000)
            )
            known, worst = [(a, b), *known[:4]], max(worst, scale)
    return worst


def _best_quilt(
    found: _Influences, t: int, length: int, epsilon: float, sides: Iterable[Ints]
) -> tuple[float, int, int]:
    """Return the least scale over quilts {t-a, t+b}, each side of which may be left out; a; b."""
    pairs = found.possible[t - 1]
    a, b = (side[side <= most] for side, most in zip(sides, (t - 1, length - t), strict=True))
    past = found.before[found.kind[t - 1 - a], a - 1][:, pairs] + found.marginal[t - 1, pairs]
    future = found.after[b - 1][:, pairs]
    # Without a record on one side everything there is near: as if it were one beyond the end.
    nothing = np.zeros((1, past.shape[1]))
    past, a = np.concatenate([past, nothing]), np.append(a, t)
    future, b = np.concatenate([future, nothing]), np.append(b, length - t + 1)
    near, far = past.max(axis=1) < epsilon, future.max(axis=1) < epsilon
    past, a, future, b = past[near], a[near], future[far], b[far]
    told = reduce(np.maximum, map(np.add.outer, past.T, future.T))
    scales = np.full(told.shape, math.inf)
    np.divide(np.add.outer(a, b - 1), epsilon - told, out=scales, where=told < epsilon)
    best = np.unravel_index(np.argmin(scales), scales.shape)
    return float(scales[best]), int(a[best[0]]), int(b[best[1]])
