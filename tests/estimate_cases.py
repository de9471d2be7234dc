# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of estimates: specs, columns that are released again and again, the truth."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pufferfish.estimate.estimate import LEVEL, Estimate, Figure
from pufferfish.estimate.released import estimate_released
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Lattice, Levels, Support, lattice_of, make_lattice
from release_cases import spec_of

NAMES = ("low", "mid", "high")
ORDERED, UNORDERED = Levels(NAMES, ordered=True), Levels(NAMES)
INVERTIBLE = [[8, 1, 1], [1, 8, 1], [1, 1, 8]]
MERGING = [[8, 1, 1], [8, 1, 1], [1, 1, 8]]


def matrices(outputs: int = 5, values: int = 5) -> st.SearchStrategy[Any]:
    """Channels as matrices of at most so many values; none of the outputs never occurs."""
    row = st.lists(st.integers(0, 4), min_size=outputs, max_size=outputs).filter(any)

    def stochastic(rows: list[list[int]]) -> Any:
        matrix = np.array(rows, dtype=float)
        return (matrix / matrix.sum(axis=1, keepdims=True))[:, matrix.any(axis=0)]

    return st.lists(row, min_size=2, max_size=values).map(stochastic)


def numbers(*values: object) -> Lattice:
    return make_lattice([Fraction(str(value)) for value in values])


def laplace(support: Support, scale: float, **options: Any) -> ReleaseSpec:
    return spec_of(support, DiscreteLaplace(scale, lattice_of(support).step), **options)


def draws(spec: ReleaseSpec, counts: Any, times: int, seed: int = 7) -> list[Any]:
    """Released arrays of a column that holds each atom so often; of sets where there are any."""
    post, entropy = Postprocess(spec), seeded_entropy(seed)
    atoms = np.repeat(np.arange(spec.support.size), counts)
    drawn = (post.draw(atoms, entropy) for _ in range(times))
    if post.sets is None:
        return [post.numpy(shown) for shown, _ in drawn]
    return [np.array(post.sets.names, dtype=object)[outputs] for _, outputs in drawn]


def figures(found: Estimate, bins: bool = True) -> list[Figure]:
    """Mean, variance, frequencies, distribution function, and bins."""
    assert found.mean is not None
    assert found.variance is not None
    shares = [*found.frequencies.values(), *list(found.cdf.values())[:-1]]
    return [found.mean, found.variance, *shares, *(found.bins.values() if bins else ())]


def truths(support: Support, counts: Any) -> Any:
    """The same of a column; its bins are the first two values, and the others."""
    p = np.asarray(counts) / np.sum(counts)
    values = np.array([float(v) for v in lattice_of(support).values])
    mean = p @ values
    return np.r_[mean, p @ (values - mean) ** 2, p, np.cumsum(p)[:-1], p[0] + p[1], p[2:].sum()]


def right(
    spec: ReleaseSpec, counts: Any, times: int, bins: Any = None,
    beside: Callable[[], Any] | None = None,
) -> bool:  # fmt: skip
    """Whether estimates are unbiased, as sure as they say, and covered as often as they say."""
    lines = []
    for column in draws(spec, counts, times):
        found = estimate_released(column, spec, beside and beside(), bins=bins)
        assert (found.noisy_better is not None) == (beside is not None)
        lines.append([(f.estimate, f.standard_error, *f.interval)
                      for f in figures(found, bins is not None)])  # fmt: skip
    estimates, errors, low, high = np.array(lines).transpose(2, 0, 1)
    truth, own = truths(spec.support, counts)[: estimates.shape[1]], estimates.std(axis=0)
    unbiased = np.abs(estimates.mean(axis=0) - truth) < 4.5 * own / math.sqrt(times)
    honest = np.abs(errors.mean(axis=0) / own - 1) < 0.03 + 3 / math.sqrt(times)
    covered = ((low <= truth) & (truth <= high)).mean(axis=0)
    close = np.abs(covered - LEVEL) <= 4 * math.sqrt(0.05 * 0.95 / times) + 0.01
    return bool(unbiased.all() and honest.all() and close.all())


def formula(matrix: Any, weights: Any, sets: Any, p: Any, rows: int) -> Any:
    """The variances, by their definition: A (G diag(p M) G^T - diag(p)) A^T / n."""
    q = np.array(weights) @ matrix
    g = np.linalg.solve((matrix / q) @ matrix.T, matrix / q)
    cov = (g * (p @ matrix)) @ g.T - np.diag(p)
    return np.diag(sets.T @ cov @ sets) / rows
