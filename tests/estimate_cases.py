# SPDX-License-Identifier: Apache-2.0
"""Slow, literal expectations of an estimator over every table that a release can show."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from pufferfish.estimate import Estimate

#: What an estimator is given: released rows by output.
Estimator = Callable[[list[int]], Estimate]


def solvable(matrix: Sequence[Sequence[Fraction]], side: Sequence[Fraction | int]) -> bool:
    """Whether M w = a has a solution: plain Gaussian elimination in rationals."""
    table = [[*row, Fraction(a)] for row, a in zip(matrix, side, strict=True)]
    done = 0
    for column in range(len(matrix[0])):
        at = next((k for k in range(done, len(table)) if table[k][column]), None)
        if at is None:
            continue
        table[done], table[at] = table[at], table[done]
        for k in range(len(table)):
            if k != done and table[k][column]:
                factor = table[k][column] / table[done][column]
                table[k] = [x - factor * y for x, y in zip(table[k], table[done], strict=True)]
        done += 1
    return not any(row[-1] for row in table[done:])


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Every partition of some items."""
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        for k in range(len(smaller)):
            yield [*smaller[:k], [first, *smaller[k]], *smaller[k + 1 :]]
        yield [[first], *smaller]


def tables(
    matrix: Sequence[Sequence[float]], xs: Sequence[int]
) -> Iterator[tuple[float, list[int]]]:
    """Every released table of rows that hold the inputs ``xs``, with its probability."""
    size = len(matrix[0])
    for ys in itertools.product(range(size), repeat=len(xs)):
        chance = math.prod(matrix[x][y] for x, y in zip(xs, ys, strict=True))
        if chance:
            yield chance, np.bincount(ys, minlength=size).tolist()


def expectation(
    estimator: Callable[[list[int]], Sequence[float]],
    matrix: Sequence[Sequence[float]],
    xs: Sequence[int],
) -> np.ndarray:
    """The expectation of some numbers over every released table."""
    return sum(p * np.array(estimator(counts)) for p, counts in tables(matrix, xs))


def misses(truths: Sequence[float], estimates: Sequence[Estimate]) -> np.ndarray:
    """How often the intervals miss: for every entry, then the mean, then the variance."""
    figures = [[*e.entries, e.mean, e.variance] for e in estimates]
    return np.array(
        [
            np.mean([not f[k].interval[0] <= truth <= f[k].interval[1] for f in figures])
            for k, truth in enumerate(truths)
        ]
    )
