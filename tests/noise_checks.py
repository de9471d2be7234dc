# SPDX-License-Identifier: Apache-2.0
"""Statistical checks of discrete Laplace noise, used on right and on wrong noise alike.

Every check returns a p-value. House style: 100,000 draws, right noise above 1e-20 (a false alarm
once in 1e20 runs), noise of a scale 30 % off below it.
"""

import itertools
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

DRAWS = 100_000
LEAST_P = 1e-20
OFF = (0.7, 1.3)


def edges(units: float, cells: int = 40) -> NDArray[np.int64]:
    """Upper ends of cells of roughly equal mass, but for the last one; units is scale / step."""
    quantiles = stats.laplace.ppf(np.arange(1, cells) / cells, scale=units)
    return np.unique(np.round(quantiles).astype(np.int64))


def cdf(k: NDArray[np.int64], units: float) -> NDArray[np.float64]:
    """P(Z <= k)."""
    tail = 1 / (1 + np.exp(-1 / units))
    below = np.exp(np.minimum(k, 0) / units) * (1 - tail)
    return np.where(
        k < 0, below * np.exp(1 / units), 1 - tail * np.exp(-(np.maximum(k, 0) + 1) / units)
    )


def fit(noise: NDArray[np.int64], scale: float, step: Fraction) -> float:
    """p-value of a chi-square test that the noise, in lattice units, has this scale."""
    units = float(Fraction(scale) / step)
    ends = edges(units)
    expected = np.diff(cdf(ends, units), prepend=0.0, append=1.0) * noise.size
    observed = np.bincount(np.searchsorted(ends, noise), minlength=ends.size + 1)
    if np.any(observed[expected < 1e-9]):
        return 0.0
    # Thin cells are merged into their neighbour, as the chi-square approximation asks.
    groups = np.minimum(np.cumsum(expected) // 20, sum(expected) // 20 - 1).astype(int)
    groups = np.unique(groups, return_inverse=True)[1]
    observed, expected = np.bincount(groups, observed), np.bincount(groups, expected)
    statistic = np.sum((observed - expected) ** 2 / expected)
    return float(stats.chi2.sf(statistic, observed.size - 1))


def residues(noise: NDArray[np.int64], modulus: int = 64) -> float:
    """p-value of a chi-square test that Z is uniform modulo a number far below scale / step."""
    return float(stats.chisquare(np.bincount(noise % modulus, minlength=modulus)).pvalue)


def same_law(one: NDArray[np.int64], two: NDArray[np.int64], units: float) -> float:
    """p-value of a two-sample chi-square test."""
    ends = edges(units)
    counts = np.array(
        [np.bincount(np.searchsorted(ends, x), minlength=ends.size + 1) for x in (one, two)]
    )
    counts = counts[:, counts.sum(axis=0) > 0]
    return float(stats.chi2_contingency(counts).pvalue)


def all_different(samples: list[bytes]) -> bool:
    """No two of several samples of noise are the same."""
    return all(one != two for one, two in itertools.combinations(samples, 2))
