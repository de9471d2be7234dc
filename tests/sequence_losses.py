# SPDX-License-Identifier: Apache-2.0
"""Losses of sums and counts over chains by their definition: all sequences, one by one."""

import itertools
import random
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError
from pufferfish.queries.chain import MarkovChain

Vectors = npt.NDArray[np.int64]


def brute_loss(chain: MarkovChain, values: Sequence[Sequence[int]], length: int, u: Any) -> float:
    """The loss of noise on each entry of the sum of ``values[X_t]``, from all sequences.

    The noise has one rate, or one for each entry.
    The largest over the product of all that each entry of the sum can be, all t and all pairs.
    """
    assert chain.start is not None
    k = len(chain.states)
    paths = np.array(list(itertools.product(range(k), repeat=length)))
    chances = np.array([float(p) for p in chain.start])[paths[:, 0]]
    steps = np.array(chain.transition, dtype=np.float64)
    for t in range(1, length):
        chances = chances * steps[paths[:, t - 1], paths[:, t]]
    sums = np.array(values)[paths].sum(axis=1)
    points, which = np.unique(sums, axis=0, return_inverse=True)
    axes = [np.unique(column) for column in points.T]
    outputs = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    kernel = np.exp(-(np.abs(outputs[:, None, :] - points[None]) * u).sum(axis=-1))
    worst = 0.0
    for column in paths.T:
        logs = []
        for s in range(k):
            law = np.bincount(which.reshape(-1), chances * (column == s), len(points))
            if law.sum():
                logs.append(np.log(kernel @ (law / law.sum())))
        worst = max(worst, float((np.max(logs, axis=0) - np.min(logs, axis=0)).max()))
    return worst


def spread_of(weights: Sequence[int]) -> list[list[int]]:
    return [[abs(a - b) for b in weights] for a in weights]


def histogram_spread(states: int) -> list[list[int]]:
    return [[2 * (a != b) for b in range(states)] for a in range(states)]


def random_law(draw: random.Random, states: int, zeros: float) -> list[Fraction]:
    parts = [0 if draw.random() < zeros else draw.randint(1, 20) for _ in range(states)]
    return [Fraction(n, sum(parts)) for n in parts] if any(parts) else random_law(draw, states, 0)


def random_chain(
    draw: random.Random, states: int, zeros: float = 0.0, initial: str = "random",
    stay: Fraction = Fraction(0),
) -> MarkovChain:  # fmt: skip
    """A chain that at least stays with some probability; ``initial``: random, or as it is taken."""
    k = range(states)
    while True:
        laws = [random_law(draw, states, zeros) for _ in k]
        rows = [[stay * (s == t) + (1 - stay) * laws[s][t] for t in k] for s in k]
        start = random_law(draw, states, zeros) if initial == "random" else initial
        with suppress(InputError):  # it is not irreducible
            return MarkovChain(k, rows, start)
