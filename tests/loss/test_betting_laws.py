# SPDX-License-Identifier: Apache-2.0
"""What the bet promises: expected wealth by brute force, and walks on simulated tables."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pufferfish.loss.walk import Claim, Wealth, _Test, scales, walk
from pufferfish.priors.ambiguity import Counted
from pufferfish.support import Lattice

Floats = npt.NDArray[np.float64]


# Wealth has mean at most 1, over all tables and all noise -----------------------------------------


def expected_wealth(law: Floats, h: Floats, n: int, rows: int, epsilon: Fraction) -> float:
    """E of alpha times the wealth over what is needed, at the true mean: every table and noise.

    For n rows of a secret. It is the mean wealth of all bets; at most 1, it bounds the errors.
    """
    alpha = Fraction(1, 20)
    far = math.ceil(30 / float(epsilon))  # what is left out is below 1e-6
    a, noise = math.exp(-float(epsilon) / 2), np.arange(-far, far + 1)
    chance = (1 - a) / (1 + a) * a ** np.abs(noise)
    tables: dict[tuple[int, ...], float] = {}
    for first, second in itertools.product(range(n + 1), repeat=2):
        third = n - first - second
        if third < 0:
            continue
        table = first, second, third
        ways = math.factorial(n) / math.prod(map(math.factorial, table))
        p = ways * math.prod(law**table)
        for z in itertools.product(range(len(noise)), repeat=3):
            key = tuple(int(c + noise[k]) for c, k in zip(table, z, strict=True))
            tables[key] = tables.get(key, 0.0) + p * math.prod(chance[list(z)])
    beliefs = [Counted(own, rows, alpha, epsilon) for own in tables]
    with np.errstate(all="ignore"):
        wealth = Wealth(beliefs, h[None])
        logs, _ = wealth.at(np.arange(1), np.full((1, len(beliefs)), float(law @ h)))
    return float(np.array(list(tables.values())) @ np.exp(logs[0] - wealth.needed)) / float(alpha)


LAWS = [
    (np.array([0.2, 0.3, 0.5]), np.array([0.0, 0.4, 1.0]), 3, 9),
    (np.array([0.9, 0.1, 0.0]), np.array([1.0, 0.3, 0.0]), 4, 5),
    (np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.1]), 2, 40),
    # The mean of those bets that are not left out would be 1.1.
    (np.array([0.01, 0.99, 0.0]), np.array([0.0, 1.0, 1.0]), 3, 9),
]


@pytest.mark.parametrize("case", LAWS)
@pytest.mark.parametrize("epsilon", [Fraction(3), Fraction(6)])
def test_expected_wealth_is_at_most_one(case: Any, epsilon: Fraction) -> None:
    assert 0 < expected_wealth(*case, epsilon) <= 1 + 1e-9


# Walks on simulated tables ------------------------------------------------------------------------


def losses_at(laws: Floats, scale: float) -> float:
    n = laws.shape[1]
    kernel = np.exp(-np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / scale)
    logs = np.log(laws @ kernel)
    return float(np.abs(logs[0] - logs[1]).max())


def share_of_bad_plans(tables: int, alpha: Fraction, noisy: bool, mutant: bool = False) -> float:
    """The share of walks that reach the first scale of the grid whose true loss exceeds epsilon.

    ``mutant``: bounds that hardly exceed what was counted.
    """
    rng = np.random.default_rng(11)
    bad = done = 0
    while done < tables:
        n, rows = int(rng.integers(3, 31)), int(np.exp(rng.uniform(np.log(50), np.log(50_000))))
        laws = rng.dirichlet(np.full(n, rng.choice([0.3, 1, 5])), size=2)
        laws[1] = 0.5 * laws[0] + 0.5 * laws[1]
        epsilon = Fraction(str(rng.choice(["0.1", "0.5", "1"])))
        lattice = Lattice(Fraction(1), 0, np.arange(n))
        grid = list(scales(lattice, epsilon))
        first = next((s for s in grid if losses_at(laws, s) > epsilon), None)
        if first is None:
            continue
        noise = Fraction(str(rng.choice(["0.3", "1", "4"]))) if noisy else None
        for _ in range(10):
            own = rng.binomial(rows, 0.5)
            each = zip((own, rows - own), laws, strict=True)
            counts = np.array([rng.multinomial(k, p) for k, p in each])
            if noise is not None:
                p = 1 - math.exp(-float(noise) / 2)
                counts += rng.geometric(p, counts.shape) - rng.geometric(p, counts.shape)
            beliefs = tuple(Counted(tuple(c.tolist()), rows, alpha / 2, noise) for c in counts)
            if mutant:  # 1 / alpha is as large as all bets together: no more than their mean wins
                beliefs = tuple(replace(own, alpha=Fraction(len(own.bets))) for own in beliefs)
            claim = Claim(beliefs, ((0, 1),), lattice, epsilon)
            # Passing there is necessary; only then the whole walk is made.
            passes = _Test(claim).holds(first)
            bad += passes and (mutant or walk([claim]) <= first)
            done += 1
    return bad / done


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 5)])
def test_few_plans_lose_more_than_epsilon(alpha: Fraction, noisy: bool) -> None:
    assert share_of_bad_plans(300, alpha, noisy) <= alpha


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 5)])
def test_few_of_very_many_plans_lose_more_than_epsilon(alpha: Fraction, noisy: bool) -> None:
    assert share_of_bad_plans(1250, alpha, noisy) <= alpha  # 5,000 in all four cases


def test_plans_by_the_counts_alone_are_caught() -> None:
    assert share_of_bad_plans(100, Fraction(1, 5), False, mutant=True) > Fraction(1, 5)
