# SPDX-License-Identifier: Apache-2.0
"""The extreme rays of the private columns: what every private channel is made of.

A channel is private if and only if each column m_y = M(y|.) lies in the cone of all m >= 0 with
P_i.m <= E P_j.m for every protected pair, in both orders, and every adversary. It is then a sum of
extreme rays of that cone, so that a complete list of them describes every private channel.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from pufferfish.calibration.channel_task import Cone
from pufferfish.errors import InputError
from pufferfish.numbers import CountArray, FloatArray, IntArray
from pufferfish.priors.ambiguity import Point

#: More rays, and more systems of equations that may hold one, are refused.
MOST_RAYS, _MOST_SYSTEMS = 20_000, 2_000_000
#: Candidates of double description that are compared with all rays: about a minute.
_MOST_CANDIDATES = 2_000_000
#: Doubles decide nothing within so many times the condition of the system.
_DOUBT = 1e-13


@dataclass(frozen=True, eq=False)
class Rays:
    """Rays with few non-zeros: ``value[r, j]`` at the level ``index[r, j]``, which sum to 1.

    Shorter ones repeat their last level with the value 0.
    """

    index: IntArray
    value: FloatArray

    def __len__(self) -> int:
        return len(self.index)

    def take(self, at: IntArray) -> "Rays":
        """Return some of the rays."""
        return Rays(self.index[at], self.value[at])

    def joined(self, others: "Rays") -> "Rays":
        """Return these rays and others."""
        size = max(self.index.shape[1], others.index.shape[1])
        wide = [(0, 0), (0, size)]
        both = [
            (np.pad(own.index, wide, mode="edge")[:, :size], np.pad(own.value, wide)[:, :size])
            for own in (self, others)
        ]
        index, value = (np.concatenate(parts) for parts in zip(*both, strict=True))
        return Rays(index, value)

    def dense(self, size: int) -> FloatArray:
        """Return the rays as rows over all levels."""
        rows = np.zeros((len(self), size))
        np.add.at(rows, (np.arange(len(self))[:, None], self.index), self.value)
        return rows


def rays_of(cone: Cone) -> Rays:
    """Return all extreme rays of a cone of points, or refuse to where there are too many."""
    masses = [np.array([p.masses.reshape(-1) for p in own], dtype=object) for own in _points(cone)]
    totals = [[p.total for p in own] for own in _points(cone)]
    secrets = len(masses[0])
    if len(masses) == 1 and secrets == 2:
        return _of_one_pair(masses[0], totals[0], cone.bound)
    if len(masses) == 1 and len(cone.pairs) == secrets * (secrets - 1):
        n = masses[0].shape[1]
        sizes = range(2, min(secrets, n) + 1)
        systems = sum(math.comb(n, t) * math.comb(secrets, t) * (2**t - 2) for t in sizes)
        if systems <= _MOST_SYSTEMS:
            return _of_all_pairs(masses[0], totals[0], cone.bound)
    return _by_double_description(cone, masses, totals)


def too_many() -> InputError:
    """Return the refusal of a cone of too many rays."""
    return InputError(
        f"the best channel for estimates is found among at most {MOST_RAYS:,} extreme rays, and "
        "these values, secrets and pairs have more, or too many to list; name fewer pairs, merge "
        "secrets or levels, or ask for best_for='kept' (--best-for kept)"
    )


def _points(cone: Cone) -> list[list[Point]]:
    return [[p for p in own if isinstance(p, Point)] for own in cone.sets]


def _made(found: Sequence[tuple[tuple[int, ...], tuple[Any, ...]]], size: int) -> Rays:
    """Return rays of levels and exact values, up to a factor each."""
    if len(found) > MOST_RAYS:
        raise too_many()
    index, value = np.zeros((len(found), size), dtype=np.int64), np.zeros((len(found), size))
    for r, (levels, values) in enumerate(found):
        whole = sum(values)
        index[r] = [*levels, *levels[-1:] * (size - len(levels))]
        value[r, : len(levels)] = [float(Fraction(v) / whole) for v in values]
    return Rays(index, value)


def _of_one_pair(masses: CountArray, totals: Sequence[int], bound: Fraction) -> Rays:
    """Return the rays of one pair: the levels that are private alone, and pairs of levels.

    One constraint is tight on two levels, one where it is violated and one where it is slack; the
    other constraint then holds.
    """
    p, q = masses[0] * totals[1], masses[1] * totals[0]
    top, bottom = bound.numerator, bound.denominator
    forms = [bottom * p - top * q, bottom * q - top * p]
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((k,), (1,)) for k in range(len(p)) if max(form[k] for form in forms) <= 0
    ]
    for form in forms:
        over, under = np.flatnonzero(form > 0), np.flatnonzero(form < 0)
        if len(found) + len(over) * len(under) > MOST_RAYS:
            raise too_many()
        found += [((k, x), (-form[x], form[k])) for k in over.tolist() for x in under.tolist()]
    return _made(found, 2)


# --- All pairs of several secrets ---------------------------------------------------------------


def _of_all_pairs(masses: CountArray, totals: Sequence[int], bound: Fraction) -> Rays:
    """Return the rays of all pairs of one adversary.

    t levels, and t secrets whose likelihoods are 1 or E there, while those of all others lie
    between. Where doubles cannot decide, rationals do; then several systems may have one solution.
    """
    common = math.lcm(*totals)
    whole = masses * np.array([[common // total] for total in totals], dtype=object)
    top, bottom = bound.numerator, bound.denominator
    alone = [k for k, p in enumerate(whole.T) if bottom * max(p) <= top * min(p)]
    index, value = [np.array(alone, dtype=np.int64)[:, None]], [np.ones((len(alone), 1))]
    doubtful: dict[tuple[Any, ...], None] = {}
    secrets, n = whole.shape
    p, e = (whole / common).astype(np.float64), float(bound)
    for size in range(2, min(secrets, n) + 1):
        levels = np.array(list(combinations(range(n), size)), dtype=np.int64)
        for chosen in combinations(range(secrets), size):
            for at, found, exact in _solved(p, e, levels, chosen):
                index.append(levels[at])
                value.append(found)
                for k, mask in exact:
                    ray = _exactly(whole, bound, levels[k], chosen, mask)
                    if ray is not None:
                        doubtful[ray] = None
            if sum(map(len, index)) + len(doubtful) > MOST_RAYS:
                raise too_many()
    most = max(len(own[0]) for own in index if len(own)) if any(map(len, index)) else 1
    size = max([most, *(len(levels) for levels, _ in doubtful)])
    padded = [np.pad(own, ((0, 0), (0, size - own.shape[1])), mode="edge")
              for own in index if len(own)]  # fmt: skip
    values = [np.pad(own, ((0, 0), (0, size - own.shape[1]))) for own in value if len(own)]
    rest = _made(list(doubtful), size)
    return Rays(np.concatenate([*padded, rest.index]), np.concatenate([*values, rest.value]))


def _solved(
    p: FloatArray, e: float, levels: IntArray, chosen: tuple[int, ...]
) -> Iterator[tuple[IntArray, FloatArray, list[tuple[int, int]]]]:
    """Yield, for each choice of likelihoods 1 and E, the rays; and what doubles do not decide."""
    size, others = len(chosen), [s for s in range(len(p)) if s not in chosen]
    systems = p[list(chosen)][:, levels].transpose(1, 0, 2)
    scale = np.maximum(np.abs(systems).max(axis=(1, 2), keepdims=True), 1e-300)
    systems = systems / scale
    singular = np.abs(np.linalg.det(systems)) < 1e-9
    inverse = np.linalg.inv(np.where(singular[:, None, None], np.eye(size), systems))
    doubt = _DOUBT * size * np.abs(inverse).max(axis=(1, 2)) * e
    for mask in range(1, 2**size - 1):
        given = np.where([mask >> k & 1 for k in range(size)], e, 1.0)
        m = inverse @ given
        v = np.einsum("skt,kt->ks", p[others][:, levels], m / scale[:, :, 0])
        wide = doubt * size * np.abs(m).max(axis=1)
        # How far inside everything is; m itself is as uncertain as the likelihoods.
        least = np.minimum(m.min(axis=1), np.min((v - 1).clip(max=e - v), axis=1, initial=np.inf))
        maybe = (least > -wide) | singular
        unsure = maybe & ((least < wide) | singular)
        sure = np.flatnonzero(maybe & ~unsure)
        yield (
            sure,
            m[sure] / m[sure].sum(axis=1, keepdims=True),
            [(int(k), mask) for k in np.flatnonzero(unsure)],
        )


def _exactly(
    whole: CountArray, bound: Fraction, levels: IntArray, chosen: tuple[int, ...], mask: int
) -> tuple[tuple[int, ...], tuple[Fraction, ...]] | None:
    """Return the ray of one system in rationals, or None where there is none."""
    from flint import fmpq, fmpq_mat  # slow to import

    size, e = len(chosen), fmpq(bound.numerator, bound.denominator)
    system = fmpq_mat(size, size, [int(whole[s, x]) for s in chosen for x in levels])
    given = fmpq_mat(size, 1, [e if mask >> k & 1 else fmpq(1) for k in range(size)])
    try:
        m = system.solve(given).entries()
    except ZeroDivisionError:
        return None
    if min(m) <= 0:
        return None
    likelihoods = [sum(int(row[x]) * v for x, v in zip(levels, m, strict=True)) for row in whole]
    if max(likelihoods) > e * min(likelihoods):
        return None
    total = sum(m)
    values = (Fraction(int((v / total).p), int((v / total).q)) for v in m)
    return tuple(levels.tolist()), tuple(values)


# --- Chosen pairs, several adversaries ----------------------------------------------------------


def _by_double_description(
    cone: Cone, masses: Sequence[CountArray], totals: Sequence[Sequence[int]]
) -> Rays:
    """Return the rays of any pairs and adversaries, by double description in whole numbers.

    Each constraint cuts off the rays that violate it and adds those where it meets the edges
    between them and the others. Two rays span an edge if no third one is tight wherever both are.
    A ray has at most 1 + R (S - c) non-zeros, for R adversaries and S secrets in c components.
    """
    n, most = masses[0].shape[1], 1 + len(masses) * (len(masses[0]) - _components(cone))
    rays = [tuple(int(k == x) for k in range(n)) for x in range(n)]
    tight = _bits([[k for k in range(n) if k != x] for x in range(n)], n + _constraints(cone))
    candidates = 0
    for number, form in enumerate(_forms(cone, masses, totals)):
        values = [sum(a * b for a, b in zip(form, ray, strict=True) if b) for ray in rays]
        signs = np.array([(v > 0) - (v < 0) for v in values])
        over, under = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
        new: list[tuple[int, ...]] = []
        marks = []
        for i in over.tolist():
            both = tight[under] & tight[i]
            few = np.flatnonzero(n - _ones(both, n) <= most)
            candidates += len(few)
            if candidates > _MOST_CANDIDATES or len(rays) + len(new) > 2 * MOST_RAYS:
                raise too_many()
            for j, common in zip(under[few].tolist(), both[few], strict=True):
                if ((tight & common) == common).all(axis=1).sum() > 2:
                    continue
                ray = [values[i] * b - values[j] * a for a, b in zip(rays[i], rays[j], strict=True)]
                divisor = math.gcd(*ray)
                new.append(tuple(v // divisor for v in ray))
                marks.append(common)
        kept = np.flatnonzero(signs <= 0)
        rays = [rays[k] for k in kept.tolist()] + new
        on = np.append(signs[kept] == 0, np.ones(len(new), dtype=bool))
        tight = np.concatenate(
            [tight[kept], np.array(marks, tight.dtype).reshape(-1, tight.shape[1])]
        )
        word, bit = divmod(n + number, 64)
        tight[on, word] |= np.uint64(1 << bit)
    found = [(tuple(x for x, v in enumerate(ray) if v), tuple(v for v in ray if v)) for ray in rays]
    return _made(found, max(len(levels) for levels, _ in found))


def _forms(
    cone: Cone, masses: Sequence[CountArray], totals: Sequence[Sequence[int]]
) -> Iterator[list[int]]:
    """Yield P_i - E P_j of every adversary and pair, up to a factor, in whole numbers."""
    top, bottom = cone.bound.numerator, cone.bound.denominator
    for own, total in zip(masses, totals, strict=True):
        for i, j in cone.pairs:
            form = bottom * total[j] * own[i] - top * total[i] * own[j]
            divisor = math.gcd(*form) or 1
            yield [int(v) // divisor for v in form]


def _constraints(cone: Cone) -> int:
    return len(cone.sets) * len(cone.pairs)


def _components(cone: Cone) -> int:
    """Return into how many parts the pairs connect the secrets."""
    parts = list(range(len(cone.sets[0])))
    for i, j in cone.pairs:
        parts = [parts[i] if part == parts[j] else part for part in parts]
    return len(set(parts))


def _bits(positions: Sequence[Sequence[int]], size: int) -> Any:
    """Return sets of positions below ``size`` as rows of 64-bit words."""
    words = np.zeros((len(positions), -(-size // 64)), dtype=np.uint64)
    for row, own in zip(words, positions, strict=True):
        for k in own:
            row[k // 64] |= np.uint64(1 << k % 64)
    return words


def _ones(words: Any, size: int) -> IntArray:
    """Return how many of the first ``size`` positions each set holds."""
    bytes_ = np.ascontiguousarray(words).view(np.uint8)
    bits = np.unpackbits(bytes_, axis=1, bitorder="little")
    return np.asarray(bits[:, :size].sum(axis=1, dtype=np.int64))
