# SPDX-License-Identifier: Apache-2.0
"""Noisy counts for tests: scenarios made of them in one place, and the law that noise is drawn by.

The law is the sampler's own: the thresholds that its random bits are compared with.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import pufferfish as pf
from pufferfish.mechanisms.laplace import DiscreteLaplace, _digits_of
from pufferfish.priors.ambiguity import NoisyCounts
from pufferfish.priors.scenario import scenario_of_noise
from pufferfish.support import Product, make_lattice

#: A test of simulated tables fails with at most this chance where the claim is true.
SMALL = 1e-6


def most_bad(tables: int, alpha: Fraction) -> int:
    """How many of so many tables may be bad, each with the chance alpha, but for SMALL."""
    return int(stats.binom.isf(SMALL, tables, float(alpha)))


def noise_of(epsilon: Fraction, shape: Any, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Discrete Laplace noise of a = e^(-epsilon / 2), by NumPy: the difference of geometrics."""
    p = -np.expm1(-float(epsilon) / 2)
    drawn: npt.NDArray[np.int64] = rng.geometric(p, shape) - rng.geometric(p, shape)
    return drawn


def noisy_scenario(
    counts: Any, rows: int, epsilon: Fraction, level: Fraction, others: Sequence[int] | None = None
) -> pf.Scenario:
    """The scenario of noisy counts by secret (a, b, ...) and value (0, 1, ...), of all pairs."""
    counts = np.asarray(counts)
    names = tuple("abcdefgh"[: len(counts)])
    support = make_lattice(map(Fraction, range(counts.shape[1])))
    rule = NoisyCounts(
        secrets=names, counts=tuple(map(tuple, counts.tolist())),
        others=tuple(others or (0,) * support.size), rows=rows, epsilon1=epsilon, level=level,
    )  # fmt: skip
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    return scenario_of_noise(rule, Product((None,), (support,)), pairs)


def log_masses(law: DiscreteLaplace, reach: int) -> npt.NDArray[np.float64]:
    """ln P(Z = z) for z from -reach to reach, by the sampler's thresholds, to 256 bits."""
    digits, bits = _digits_of(law.scale, law.step), 256
    assert not digits.lower, "a scale of several digits"
    (top,) = digits.top.laws
    sums = [0, *top.floors(bits)[0], 1 << bits]
    mass = [Fraction(high - low, 1 << bits) for low, high in pairwise(sums)]
    of = dict(zip(range(~digits.cut, digits.cut + 1), mass, strict=True))

    @cache
    def of_size(size: int) -> Fraction:
        """P(G = size), G being z or -1 - z: what is at the cut or beyond is drawn again."""
        cut = digits.cut
        if size < cut:
            return of[size] + of[~size]
        return (of[cut] + of[~cut]) * of_size(size - cut)

    def of_value(z: int) -> Fraction:
        sign, size = (0, z) if z >= 0 else (~0, ~z)
        if size < digits.cut:
            return of[z]
        return of[digits.cut ^ sign] * of_size(size - digits.cut)

    return np.array([float(np.log(float(of_value(z)))) for z in range(-reach, reach + 1)])
