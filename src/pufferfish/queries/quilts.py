# SPDX-License-Identifier: Apache-2.0
"""Published mechanisms for sums over Markov chains, to compare with: MQMExact, MQMApprox, GK16.

Each function returns the scale of the noise that the mechanism takes, in lattice steps, in doubles;
nothing is proved here. `lengths` are the numbers of records of the sequences, and `lipschitz` is by
how much one record can change the query, in L1 and in lattice steps. `docs/quilts.md` names the
sources and the conventions that were chosen.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from pufferfish.numbers import FloatArray, IntArray
from pufferfish.queries.chain import MarkovChain


@dataclass(frozen=True)
class _Influences:
    """What records at a distance tell of a record: largest log-ratios by pair of its states.

    The record at distance a before record t tells before[a - 1] + marginal[t - 1], the largest of
    the states that are possible there; one at distance b after it tells after[b - 1].
    """

    before: FloatArray  # by distance, state of the earlier record, and pair
    after: FloatArray  # by distance and pair
    marginal: FloatArray  # by record and pair; not finite where one of both is impossible
    earlier: FloatArray  # by record and state: 0 where it is possible, else -inf


def mqm_exact(chain: MarkovChain, lengths: Sequence[int], lipschitz: int, epsilon: float) -> float:
    """Return the scale of MQMExact, for a chain with an initial law."""
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
    steps = np.array(chain.transition, dtype=np.float64)
    if not steps.all():
        return math.inf
    laws = steps[:, None, :] * steps.T
    logs = np.log(laws / laws.sum(axis=-1, keepdims=True))
    gamma = float(max(np.ptp(logs, axis=axis).max() for axis in (0, 1))) / 2
    length = max(lengths)
    if 2 * gamma * math.cos(math.pi / (length + 1)) >= 1:
        return math.inf
    # The largest row sum of (I - Gamma)^-1 is that of the middle record. Elimination from either
    # end: x_t = part + factor x_{t+1}, where x_t = 1 + gamma (x_{t-1} + x_{t+1}).
    factor = part = 0.0
    for _ in range((length - 1) // 2):
        rest = 1 - gamma * factor
        factor, part = gamma / rest, (1 + gamma * part) / rest
    row = (1 + gamma * part) / (1 - gamma * factor - gamma)
    if length % 2:
        row = (1 + 2 * gamma * part) / (1 - 2 * gamma * factor)
    return 2 * lipschitz * row / epsilon


def _exact(chain: MarkovChain, size: int) -> _Influences:
    """Return the exact influences in a sequence of a given number of records."""
    with np.errstate(divide="ignore"):
        steps = np.log(np.array(chain.transition, dtype=np.float64))
        start = np.log(np.array(chain.start, dtype=np.float64))
    powers = _iterates(steps, steps, size)
    laws = np.tile(start, (size, 1)) if chain.stationary else _iterates(start, steps, size)
    s, other = np.nonzero(~np.eye(len(steps), dtype=bool))
    with np.errstate(invalid="ignore"):  # two impossible states are nan, which fmax passes over
        return _Influences(
            before=powers[:, :, s] - powers[:, :, other],
            after=np.fmax.reduce(powers[:, s] - powers[:, other], axis=-1),
            marginal=laws[:, other] - laws[:, s],
            earlier=np.where(laws > -np.inf, 0.0, -np.inf),
        )


def _iterates(logs: FloatArray, steps: FloatArray, count: int) -> FloatArray:
    """Return ln of X P^n for n below count, of ln X and ln P: no probability is too small."""
    every = [logs]
    for _ in range(count - 1):
        every.append(np.logaddexp.reduce(every[-1][..., None] + steps, axis=-2))
    return np.array(every)


def _approx(chain: MarkovChain, size: int) -> _Influences:
    """Return bounds of the influences from the stationary law and the eigengap."""
    law = np.array(MarkovChain(chain.states, chain.transition).start, dtype=np.float64)
    flow = law[:, None] * np.array(chain.transition, dtype=np.float64)
    # P and its time reversal have a product whose eigenvalues are squares of these.
    singular = np.linalg.svd(flow / np.sqrt(np.outer(law, law)), compute_uv=False)
    gap = 1 - singular[1]
    if not np.allclose(flow, flow.T, rtol=1e-12, atol=0):  # not reversible
        gap *= (1 + singular[1]) / 2
    ratio = np.exp(-gap * np.arange(1, size + 1)) / law.min()
    with np.errstate(divide="ignore"):
        told = 2 * np.arctanh(np.minimum(ratio, 1))[:, None]
    nothing = np.zeros((size, 1))
    return _Influences(before=2 * told[:, None], after=told, marginal=nothing, earlier=nothing)


def _least_scale(
    build: Callable[[int], _Influences], lengths: Sequence[int], epsilon: float, settled: bool
) -> float:
    """Return the largest scale over sequences and records, for one lattice step.

    ``settled``: influences are those of a stationary chain. Then no record needs more than one with
    all quilts; once the middle one needs none that leaves `size`, longer sequences need as much.
    """
    longest, size = max(lengths), 64
    while settled and size < longest:
        scale = _of_records(build(size), [size // 2], size, epsilon, 0.0)
        if 2 * scale * epsilon + 1 <= size:
            return scale
        size *= 2
    found, scale = build(longest), 0.0
    for length in sorted(lengths, reverse=True):
        scale = _of_records(found, range(1, length + 1), length, epsilon, scale)
    return scale


def _of_records(
    found: _Influences, records: Sequence[int], length: int, epsilon: float, worst: float
) -> float:
    """Return the larger of ``worst`` and what the worst of some records of a sequence needs."""
    few = 2 ** np.arange(length.bit_length())
    a, b = few, few
    for t in sorted(records, key=lambda t: abs(2 * t - length - 1)):
        if not np.isfinite(found.marginal[t - 1]).any():
            continue
        scale, *_ = _best_quilt(found, t, length, epsilon, a, b)
        if scale > worst * (1 + 1e-14):
            useful = np.arange(1, int(scale * epsilon) + 2)  # larger quilts have larger scales
            parts = np.array_split(useful, 1 + len(useful) // 1000)  # each of which fits memory
            scale, *best = min(
                _best_quilt(found, t, length, epsilon, part, useful) for part in parts
            )
            a, b = (np.append(few, side) for side in best)  # it may do for other records
            worst = max(worst, scale)
    return worst


def _best_quilt(
    found: _Influences, t: int, length: int, epsilon: float, a: IntArray, b: IntArray
) -> tuple[float, int, int]:
    """Return the least scale over quilts {t-a, t+b}, each side of which may be left out; a; b."""
    pairs = np.isfinite(found.marginal[t - 1])
    a, b = a[a < t], b[b <= length - t]
    with np.errstate(all="ignore"):
        told = found.before[a - 1] + found.earlier[t - 1 - a][:, :, None]
        past = np.fmax.reduce(told, axis=1)[:, pairs] + found.marginal[t - 1, pairs]
        future = found.after[b - 1][:, pairs]
        # Without a record on one side everything there is near: as if it were one beyond the end.
        nothing = np.zeros((1, past.shape[1]))
        past, a = np.concatenate([past, nothing]), np.append(a, t)
        future, b = np.concatenate([future, nothing]), np.append(b, length - t + 1)
        told = reduce(np.maximum, map(np.add.outer, past.T, future.T))
        scales = np.where(told < epsilon, np.add.outer(a, b - 1) / (epsilon - told), np.inf)
    best = np.unravel_index(np.argmin(scales), scales.shape)
    return float(scales[best]), int(a[best[0]]), int(b[best[1]])
