# SPDX-License-Identifier: Apache-2.0
"""Columns that are private for all priors of regions, and the best weights of some of them.

max P.m <= E min P.m over the regions of every pair is a convex cone, too, with 1 inside, but nobody
knows all of its extreme rays. Any columns of it make private channels: those of one and two levels,
which are found exactly, some of all levels, and what linear programs add.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np

from pufferfish.calibration.channel_repair import ends_of
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import Design, Solution, solve
from pufferfish.calibration.rays import Rays, too_many
from pufferfish.calibration.solver import LinearProgram, solver_of
from pufferfish.numbers import CountArray, FloatArray, IntArray
from pufferfish.priors.ambiguity import AmbiguitySet, Point

#: Beyond so many levels columns of all of them take too long.
_MOST_LEVELS = 40
#: Rounds of further columns, starts and steps in each, what gain is one, how many may have none.
_ROUNDS, _STARTS, _STEPS, _GAIN, _PATIENCE = 20, 40, 6, 1e-6, 4
#: Entries of a column below this are the solver's 0.
_RESIDUE = 1e-9


def columns_of_region(cone: Cone) -> Rays:
    """Return columns that are private for the regions: exact, but for doubles.

    On one side of u = v the losses of u e_k + v e_l are ratios of linear functions, so that e_k,
    e_l and e_k + e_l tell where they are private: between the two ends of an interval.
    """
    n = _levels(cone)
    if n > _MOST_LEVELS:
        raise too_many()
    eye = np.eye(n, dtype=object).astype(int).astype(object)
    pairs = list(combinations(range(n), 2))
    both = np.array([eye[k] + eye[x] for k, x in pairs], dtype=object).reshape(-1, n)
    g = _excess(cone, np.vstack([np.ones((1, n), dtype=int).astype(object), eye, 1 - eye, both]))
    one, single, others, double = np.split(g, [1, n + 1, 2 * n + 1], axis=1)
    alone = [max(column) <= 0 for column in single.T.tolist()]
    found = [np.ones(n)]
    for k in range(n):
        if alone[k]:
            found.append(eye[k].astype(float))
            continue
        shares = [-a / b for a, b in zip(one[:, 0], single[:, k], strict=True) if b > 0]
        found.append(1 + float(min(shares)) * eye[k].astype(float))
        shares = [a / (a - b) for a, b in zip(one[:, 0], others[:, k], strict=True) if b > 0]
        found.append(1 - float(min([Fraction(1), *shares])) * eye[k].astype(float))
    for (k, x), at in zip(pairs, double.T, strict=True):
        near = _interval(single[:, k], at)  # v / u
        far = _interval(single[:, x], at)  # u / v
        ends = []
        if near and not alone[k]:
            ends.append((1.0, float(near[0])))
        elif far and not alone[k]:
            ends.append((float(far[1]), 1.0))
        if far and not alone[x]:
            ends.append((float(far[0]), 1.0))
        elif near and not alone[x]:
            ends.append((1.0, float(near[1])))
        found += [u * eye[k].astype(float) + v * eye[x].astype(float) for u, v in ends]
    return _packed(np.array(found))


def best_of_region(cone: Cone, rays: Rays, mu: FloatArray, statistics: FloatArray) -> Solution:
    """Return good weights of such columns, and with those that linear programs find to be worth it.

    A further column m is worth its weight where m^T B m / mu.m is above nu.m: a convex function,
    which rises with each linear program over its slope. Its bound is that of these columns only.
    """
    most = _program_of(cone)
    found = solve(Design(rays, mu, statistics))
    random, patience = np.random.default_rng(1), _PATIENCE
    for _ in range(_ROUNDS):
        design = Design(found.rays, mu, statistics)
        w = found.weights
        _, h = design.searched_at(w)
        nu = np.linalg.solve(design.gram(w), design.total(w * h))
        solved = design.solved(w, design.searched)
        b = solved @ solved.T
        directions = random.normal(size=(_STARTS, len(mu))) @ solved[:, : len(mu)].T
        further = [most(d - nu * random.exponential()) for d in directions]
        starts = [*np.eye(len(mu)), *random.dirichlet(np.full(len(mu), 0.5), _STARTS), *further]
        new = []
        for m in starts:
            for _ in range(_STEPS):
                mass, along = float(mu @ m), b @ m
                worth = float(m @ along) / mass
                following = most(2 * along / mass - worth / mass * mu - nu)
                change, m = float(np.abs(following - m).max()), following
                if change < _RESIDUE:
                    break
            if float(m @ b @ m) / float(mu @ m) > float(nu @ m) * (1 + _GAIN):
                new.append(m)
        if not new:
            patience -= 1
            if not patience:
                break
            continue
        every = np.vstack([found.rays.dense(len(mu)), new])
        found = solve(Design(_packed(every), mu, statistics))
    return found


def extremes_at(
    belief: AmbiguitySet, index: IntArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return, at these levels, a P of the largest and one of the smallest P.m, m 0 elsewhere."""
    if isinstance(belief, Point):
        own = (belief.masses.reshape(-1)[index] / belief.total).astype(float)
        return own, own
    m = np.zeros(len(belief.room))
    m[index] = values
    least, room, spread, free = _shares(belief, len(m))
    found = []
    for ranked in (np.argsort(-m, kind="stable"), np.argsort(m, kind="stable")):
        before = np.cumsum(room[ranked]) - room[ranked]
        p = least.copy()
        p[ranked] += np.clip(spread - before, 0, room[ranked])
        p[ranked[0]] += free
        found.append(p[index])
    return found[0], found[1]


def _levels(cone: Cone) -> int:
    first = cone.sets[0][0]
    return first.masses.size if isinstance(first, Point) else len(first.room)


def _excess(cone: Cone, columns: CountArray) -> CountArray:
    """Return max P_i.m - E min P_j.m of each pair and column, as fractions."""
    found = []
    for own in cone.sets:
        ends = [ends_of(belief, columns.T) for belief in own]
        for i, j in cone.pairs:
            (high, _, of_high), (_, low, of_low) = ends[i], ends[j]
            found.append(
                [
                    Fraction(int(a), of_high) - cone.bound * Fraction(int(b), of_low)
                    for a, b in zip(high, low, strict=True)
                ]
            )
    return np.array(found, dtype=object)


def _interval(first: CountArray, last: CountArray) -> tuple[Fraction, Fraction] | None:
    """Return the s from 0 to 1 where (1 - s) first + s last <= 0 in every entry, or None."""
    low, high = Fraction(0), Fraction(1)
    for a, b in zip(first, last, strict=True):
        if a > 0 and b > 0:
            return None
        if a > 0:
            low = max(low, a / (a - b))
        elif b > 0:
            high = min(high, a / (a - b))
    return (low, high) if low <= high else None


def _packed(columns: FloatArray) -> Rays:
    """Return columns as rays: different ones, that sum to 1."""
    columns = np.where(columns < _RESIDUE * columns.max(axis=1, keepdims=True), 0.0, columns)
    columns = np.unique(columns / columns.sum(axis=1, keepdims=True), axis=0)
    size = int((columns > 0).sum(axis=1).max())
    index = np.argsort(columns <= 0, axis=1, kind="stable")[:, :size]
    return Rays(index, np.take_along_axis(columns, index, axis=1))


def _program_of(cone: Cone) -> Callable[[FloatArray], FloatArray]:
    """Return what finds the column m, summing to 1, with the largest slope.m.

    Beside m, each belief has multipliers of its largest and of its smallest P.m: of the spread, of
    the free mass, and of the room at each level.
    """
    n, e, secrets = _levels(cone), float(cone.bound), len(cone.sets[0])
    count = n + len(cone.sets) * secrets * 2 * (n + 2)
    rows, at = [np.append(np.ones(n), np.zeros(count - n))], n
    for own in cone.sets:
        ends: list[list[FloatArray]] = [[], []]
        for belief in own:
            least, room, spread, free = _shares(belief, n)
            for sign, kept in ((1.0, ends[0]), (-1.0, ends[1])):
                value = np.zeros(count)
                value[:n], value[at], value[at + 1] = least, spread, free
                value[at + 2 : at + n + 2] = sign * room
                kept.append(value)
                for x in range(n):
                    poured, loose = np.zeros((2, count))
                    poured[[x, at, at + 2 + x]] = sign, -sign, -1.0
                    loose[[x, at + 1]] = sign, -sign
                    rows += [poured, loose]
                at += n + 2
        rows += [ends[0][i] - e * ends[1][j] for i, j in cone.pairs]
    matrix = np.array(rows)
    filled = matrix != 0
    solved = solver_of(
        LinearProgram(
            cost=np.zeros(count),
            least=np.zeros(count),
            start=np.append(0, filled.sum(axis=1).cumsum()),
            index=np.nonzero(filled)[1],
            value=matrix[filled],
            end=np.append(1.0, np.zeros(len(rows) - 1)),
            equal=np.arange(len(rows)) == 0,
        )
    )

    def most(slope: FloatArray) -> FloatArray:
        scaled = -slope / (float(np.abs(slope).max()) or 1.0)
        m = solved(np.append(scaled, np.zeros(count - n)))[:n].clip(0)
        return np.asarray(m / m.sum())

    return most


def _shares(belief: AmbiguitySet, n: int) -> tuple[FloatArray, FloatArray, float, float]:
    """Return least, room, spread and free of what is held possible, over its unit."""
    if isinstance(belief, Point):
        return (belief.masses.reshape(-1) / belief.total).astype(float), np.zeros(n), 0.0, 0.0
    least, room = (np.array([v / belief.unit for v in own]) for own in (belief.least, belief.room))
    return least, room, belief.spread / belief.unit, belief.free / belief.unit
