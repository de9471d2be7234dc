# SPDX-License-Identifier: Apache-2.0
"""The columns that private channels are made of: extreme rays, or for regions some that are good.

A channel is private if and only if each column m_y = M(y|.) lies in the cone of all m >= 0 with
P_i.m <= E P_j.m for every protected pair, in both orders, and every adversary. It is then a sum of
extreme rays of that cone, so that a complete list of them describes every private channel.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pufferfish.calibration.channel_program import Builder, add_privacy
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import Design, Solution, solve
from pufferfish.calibration.solver import solve as solve_program
from pufferfish.errors import InputError
from pufferfish.numbers import FloatArray
from pufferfish.priors.ambiguity import Point

#: More rays are refused, and more levels, constraints, and comparisons on the way to them.
MOST_RAYS, MOST_LEVELS, _MOST_FORMS, _MOST_WORK = 20_000, 2000, 100_000, 2 * 10**8
#: What is below 0 by so much in doubles is below 0.
_CLEAR = 1e-9
#: Beyond so many levels the programs take too long.
_MOST_ROBUST = 40
#: Rounds of further columns, starts and steps in each, and what gain is one.
_ROUNDS, _STARTS, _STEPS, _GAIN = 20, 20, 3, 1e-6
#: Entries of a column below this are the solver's 0.
_RESIDUE = 1e-9
#: Columns that agree to so many digits are one.
_DIGITS = 6


def too_many() -> InputError:
    """Return the refusal of too many rays."""
    return InputError(
        f"the best channel for estimates is found among at most {MOST_RAYS:,} extreme rays, and "
        "these values, secrets and pairs need more; merge levels or take a coarser step (--step), "
        "name fewer pairs, merge secrets, or ask for best_for='kept' (--best-for kept)"
    )


def rays_of(cone: Cone) -> FloatArray:
    """Return all extreme rays of a cone of points, a row each that sums to 1; refuse too many.

    By double description in whole numbers: each constraint cuts off the rays that violate it, and
    adds those where it meets the edges between them and the others. Two rays span an edge if no
    third one is tight wherever both are; then at least n - 2 constraints are.
    """
    if len(cone.sets) * len(cone.pairs) > _MOST_FORMS:
        raise too_many()
    # P_i - E P_j of every adversary and pair, up to a factor.
    top, bottom, forms = cone.bound.numerator, cone.bound.denominator, []
    for own in cone.sets:
        points = [(e.masses.ravel().astype(object), e.total) for e in own if isinstance(e, Point)]
        for (p, of_p), (q, of_q) in ((points[i], points[j]) for i, j in cone.pairs):
            form = bottom * of_q * p - top * of_p * q
            forms.append(form // (math.gcd(*form) or 1))
    n, work = len(forms[0]), 0
    rays: Any = np.eye(n, dtype=int).astype(object)
    # Where m_x = 0, and then where each constraint is tight that cut something off.
    tight, doubles = ~np.eye(n, dtype=bool), np.eye(n)
    for form in forms:
        if (doubles @ (form / max(abs(form))).astype(float)).max() < -_CLEAR:
            continue
        values = rays @ form
        above, kept = np.flatnonzero(values > 0), np.flatnonzero(values <= 0)
        if not len(above):
            continue
        found, marks, count = [rays[kept]], [tight[kept]], len(kept)
        # For each ray a column of bits in whole numbers.
        bits = np.packbits(np.pad(tight, ((0, 0), (0, -tight.shape[1] % 64))), axis=1)
        bits = np.ascontiguousarray(bits.view(np.uint64).T)
        for i in above:
            # Whatever is tight wherever both ends of an edge are is near, too.
            common = bits & bits[:, i, None]
            near = np.flatnonzero(np.bitwise_count(common).sum(axis=0) >= n - 2)
            common, down = common[:, near, None], values[near] < 0
            ends = common[:, None, down, 0]
            work += bits.size + common.size * down.sum()
            if work * math.isqrt(len(cone.sets)) > _MOST_WORK:  # of many, numbers are long, too
                raise too_many()
            edge = ((common & ends) == ends).all(axis=0).sum(axis=0) == 2
            near = near[down][edge]
            found.append(values[i] * rays[near] - values[near, None] * rays[i])
            marks.append(tight[near] & tight[i])
            count += len(near)
            if count > MOST_RAYS:
                raise too_many()
        rays, tight = np.concatenate(found), np.concatenate(marks)
        rays[len(kept) :] //= np.gcd.reduce(rays[len(kept) :], axis=1)[:, None]
        on = np.append(values[kept] == 0, np.ones(count - len(kept), dtype=bool))
        tight = np.column_stack([tight, on])
        doubles = (rays / rays.sum(axis=1)[:, None]).astype(float)
    return doubles


def best_of_region(cone: Cone, points: Design) -> tuple[Design, Solution]:
    """Return columns that linear programs find to be worth it, and their best weights.

    max P.m <= E min P.m over the regions of every pair is a convex cone, too, with 1 inside, but
    nobody knows all of its extreme rays. Any columns of it make private channels. The first ones,
    1 + (E - 1) e_k and 1 - (1 - 1/E) e_k, are private whatever the priors are. A further column m
    is worth its weight where m^T B m / mu.m is above nu.m: a convex function, which rises with each
    linear program over its slope. Their bound is that of these columns only.
    """
    mu, n, e = points.mu, points.size, float(cone.bound)
    if n > _MOST_ROBUST:
        raise InputError(
            f"with regions the best channel for estimates has at most {_MOST_ROBUST} levels, not "
            f"{n}; merge some (--step), leave the region out, or take best_for='kept'"
        )
    builder = Builder(cone, (n, 1))
    builder.add(builder.grid.T, np.ones(n), np.ones(1))
    add_privacy(builder)
    program = builder.program(np.zeros((n, 1)), np.zeros((n, 1)))

    def most(slope: FloatArray) -> FloatArray:
        """Return the column m, summing to 1, with the largest slope.m."""
        cost = builder.padded(-slope / (np.abs(slope).max() or 1.0))
        m = solve_program(replace(program, cost=cost))[0][:n]
        m[m < _RESIDUE * m.max()] = 0
        return np.asarray(m / m.sum())

    random = np.random.default_rng(1)
    first = np.vstack([1 + (e - 1) * np.eye(n), 1 - (1 - 1 / e) * np.eye(n)])
    first /= first.sum(axis=1)[:, None]
    design = Design(first, mu, points.given)
    found = solve(design)
    for _ in range(_ROUNDS):
        own = Design(found.rays, mu, points.given)
        _, h, b = own.at(found.weights, own.searched)
        nu = np.linalg.solve(own.gram(found.weights), own.total(found.weights * h))
        root = own.solved(found.weights, own.searched)
        starts = random.normal(size=(_STARTS, root.shape[1])) @ root.T
        new = []
        for m in [*np.eye(n), *map(most, starts - random.exponential(size=(_STARTS, 1)) * nu)]:
            for _ in range(_STEPS):
                m = most((2 * b @ m - m @ b @ m / (mu @ m) * mu) / (mu @ m) - nu)
            if m @ b @ m / (mu @ m) > (nu @ m) * (1 + _GAIN):
                new.append(m)
        if not new:
            break
        columns = np.vstack([first, found.rays, *new])
        _, different = np.unique(columns.round(_DIGITS), axis=0, return_index=True)
        design = Design(columns[different], mu, points.given)
        found = solve(design)
    return design, found
