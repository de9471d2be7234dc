# SPDX-License-Identifier: Apache-2.0
"""Columns that are private for all priors of regions: those that linear programs find worth it.

max P.m <= E min P.m over the regions of every pair is a convex cone, too, with 1 inside, but nobody
knows all of its extreme rays. Any columns of it make private channels.
"""

from dataclasses import replace

import numpy as np

from pufferfish.calibration.channel_program import Builder, add_privacy
from pufferfish.calibration.channel_task import Cone
from pufferfish.calibration.design import Design, Solution, solve
from pufferfish.calibration.solver import solve as solve_program
from pufferfish.errors import InputError
from pufferfish.numbers import FloatArray

#: Beyond so many levels the programs take too long.
_MOST_LEVELS = 40
#: Rounds of further columns, starts and steps in each, and what gain is one.
_ROUNDS, _STARTS, _STEPS, _GAIN = 20, 20, 3, 1e-6
#: Entries of a column below this are the solver's 0.
_RESIDUE = 1e-9
#: Columns that agree to so many digits are one.
_DIGITS = 6


def best_of_region(cone: Cone, points: Design) -> tuple[Design, Solution]:
    """Return columns that linear programs find to be worth it, and their best weights.

    The first ones, 1 + (E - 1) e_k and 1 - (1 - 1/E) e_k, are private whatever the priors are. A
    further column m is worth its weight where m^T B m / mu.m is above nu.m: a convex function,
    which rises with each linear program over its slope. Their bound is that of these columns only.
    """
    mu, n, e = points.mu, points.size, float(cone.bound)
    if n > _MOST_LEVELS:
        raise InputError(
            f"with regions the best channel for estimates has at most {_MOST_LEVELS} levels, not "
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
