# SPDX-License-Identifier: Apache-2.0
"""Columns that are private for all priors of regions, and the best weights of some of them.

max P.m <= E min P.m over the regions of every pair is a convex cone, too, with 1 inside, but nobody
knows all of its extreme rays. Any columns of it make private channels: those of one and two levels,
some of all levels, and what further linear programs add.
"""

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from pufferfish.calibration.channel_program import Builder, add_privacy
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import Design, Solution, solve
from pufferfish.calibration.rays import Rays, too_many
from pufferfish.calibration.solver import solver_of
from pufferfish.numbers import FloatArray

#: Beyond so many levels the programs take too long.
_MOST_LEVELS = 40
#: Rounds of further columns, starts and steps in each, and what gain is one.
_ROUNDS, _STARTS, _STEPS, _GAIN = 20, 80, 6, 1e-6
#: Entries of a column below this are the solver's 0.
_RESIDUE = 1e-9
#: Columns that agree to so many digits are one.
_DIGITS = 6

Program = Callable[..., FloatArray | None]


def columns_of_region(cone: Cone) -> Rays:
    """Return columns that are private for the regions, but for the errors of doubles.

    1 + (E - 1) e_k and 1 - (1 - 1/E) e_k are so whatever the priors are. To them come the ends of
    what is private on one and on two levels.
    """
    n, e = cone.size, float(cone.bound)
    if n > _MOST_LEVELS:
        raise too_many()
    most, eye = _program_of(cone), np.eye(n)
    few = [levels for t in (1, 2) for levels in combinations(range(n), t)]
    ends = [most(eye[k], levels) for levels in few for k in levels]
    return _packed([*(1 + (e - 1) * eye), *(1 - (1 - 1 / e) * eye),
                    *(m for m in ends if m is not None)])  # fmt: skip


def best_of_region(cone: Cone, first: Design) -> tuple[Design, Solution]:
    """Return such columns, with those that linear programs find to be worth it, and their weights.

    A further column m is worth its weight where m^T B m / mu.m is above nu.m: a convex function,
    which rises with each linear program over its slope. Its bound is that of these columns only.
    """
    most, mu, n = _program_of(cone), first.mu, first.size
    found = solve(first)
    random = np.random.default_rng(1)
    for _ in range(_ROUNDS):
        design = Design(found.rays, mu, first.given)
        _, h, b = design.searched_at(found.weights)
        nu = np.linalg.solve(design.gram(found.weights), design.total(found.weights * h))
        root = design.solved(found.weights, design.searched)
        new = []
        slopes = [(root @ random.normal(size=root.shape[1]) - nu * random.exponential())
                  for _ in range(_STARTS)]  # fmt: skip
        for m in [*np.eye(n), *map(most, slopes)]:
            for _ in range(_STEPS):
                worth = m @ b @ m / (mu @ m)
                following = most((2 * b @ m - worth * mu) / (mu @ m) - nu)
                change, m = np.abs(following - m).max(), following
                if change < _RESIDUE:
                    break
            if m @ b @ m / (mu @ m) > (nu @ m) * (1 + _GAIN):
                new.append(m)
        if not new:
            break
        found = solve(Design(_packed([*found.rays.dense(n), *new]), mu, first.given))
    columns = [*first.rays.dense(n), *found.rays.dense(n)]
    design = Design(_packed(columns), mu, first.given)
    return design, solve(design)


def _packed(columns: Sequence[FloatArray]) -> Rays:
    """Return different columns as rays."""
    whole = np.array(columns)
    whole /= whole.sum(axis=1, keepdims=True)
    whole[whole < _RESIDUE] = 0
    _, first = np.unique(whole.round(_DIGITS), axis=0, return_index=True)
    return Rays.of(whole[first])


def _program_of(cone: Cone) -> Program:
    """Return what finds the column m, summing to 1, with the largest slope.m.

    With ``levels`` it is 0 on all others; None, if there is none.
    """
    n = cone.size
    builder = Builder(cone, (n, 1))
    builder.add(builder.grid.T, np.ones(n), np.ones(1))
    add_privacy(builder)
    solved = solver_of(builder.program(np.zeros((n, 1)), np.zeros((n, 1))))

    def most(slope: FloatArray, levels: Sequence[int] | None = None) -> FloatArray | None:
        largest = np.ones(n)
        if levels is not None:
            largest = np.isin(np.arange(n), levels).astype(float)
        found = solved(-slope / (np.abs(slope).max() or 1.0), largest)
        return found if found is None else found[:n].clip(0) / found[:n].clip(0).sum()

    return most
