# SPDX-License-Identifier: Apache-2.0
"""The program over rays: its bound holds for any private channel, however it was made."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from channel_checks import channel_of, claims, entries, phi
from pufferfish.calibration import design as module
from pufferfish.calibration.best_for import best_for
from pufferfish.calibration.channel import cone_of, exponential_below
from pufferfish.calibration.columns import rays_of
from pufferfish.calibration.design import Design, solve
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario


def random_scenario(
    rng: np.random.Generator, n: int, secrets: int, adversaries: int = 1, path: bool = False
) -> Scenario:
    names = [f"s{k}" for k in range(secrets)]
    priors = []
    for _ in range(adversaries):
        counts = rng.integers(0, rng.choice([3, 30, 300]), (secrets, n)) + rng.integers(0, 2)
        counts[:, 0] += 1
        rows = dict(zip(names, counts.tolist(), strict=True))
        priors.append(Prior.from_counts(rows, support=range(n)))
    return Scenario(priors, list(pairwise(names)) if path else "all")


def rays_for(scenario: Scenario, epsilon: str) -> Any:
    return rays_of(cone_of(scenario, exponential_below(Fraction(epsilon))))


def made_private(scenario: Scenario, matrix: Any, e: float) -> Any:
    """The matrix, mixed with its mean row until no ratio is above e."""
    mean, share = matrix.mean(axis=0), 0.0
    for prior in scenario.priors:
        p = np.array([prior.probabilities[prior.row(s)] for s in scenario.protected], dtype=float)
        at = dict(zip(scenario.protected, p @ matrix, strict=True))
        for first, second in scenario.pairs:
            # high (1 - s) + mean s <= e (low (1 - s) + mean s) for every output.
            for high, low in ((at[first], at[second]), (at[second], at[first])):
                over = np.maximum(high - e * low, 0)
                share = max(share, (over / (over + (e - 1) * mean + 1e-300)).max())
    return (1 - share) * matrix + share * mean


@pytest.mark.parametrize("statistics", ["frequencies", "mean", "cdf"])
@pytest.mark.parametrize("seed", range(5))
def test_no_random_private_channel_is_better(statistics: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, secrets = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    epsilon = ["0.1", "0.5", "1", "0.1", "0.5"][seed]
    scenario = random_scenario(rng, n, secrets, 1 + (seed == 3), seed == 4)
    found = best_for(scenario, Fraction(epsilon), statistics)
    mu = np.array([float(w) for w in found.weights])
    f = {"frequencies": np.eye(n), "mean": np.arange(n)[:, None] * 1.0,
         "cdf": np.triu(np.ones((n, n)))}[statistics]  # fmt: skip
    best = np.array(entries(channel_of(found)), dtype=float)
    bound = claims(found).bound
    assert phi(best, mu, f) == pytest.approx(float(found.cost), rel=1e-6)
    e = float(np.exp(float(epsilon)))
    for trial in range(700):
        outputs = int(rng.integers(2, 3 * n))
        if trial % 3 == 0:  # anything
            matrix = rng.dirichlet(np.full(outputs, rng.choice([0.1, 1.0])), n)
        elif trial % 3 == 1:  # each value itself, and something else
            matrix = np.hstack([np.eye(n), rng.dirichlet(np.ones(outputs), n) * rng.random()])
            matrix /= matrix.sum(axis=1, keepdims=True)
        else:  # next to the best one, its outputs split and merged
            width = best.shape[1]
            moved = best * np.exp(rng.normal(0, rng.choice([0.001, 0.1]), best.shape))
            matrix = moved / moved.sum(axis=1, keepdims=True)
            matrix = matrix @ rng.dirichlet(np.full(width + 2, 0.05), width)
        assert phi(made_private(scenario, matrix, e), mu, f) >= bound


@pytest.mark.parametrize("seed", range(4))
def test_steps_and_newton_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many rays there are only multiplicative steps; both bounds hold."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    rays = rays_for(random_scenario(rng, n, 2 + seed % 2), "0.5")
    mu = rng.dirichlet(np.ones(n))
    near = []
    for statistics in (np.eye(n), np.arange(n)[:, None] * 1.0, rng.normal(size=(n, n))):
        fine = solve(Design(rays, mu, statistics))
        monkeypatch.setattr(module, "MOST_NEWTON", 0)
        rough = solve(Design(rays, mu, statistics))
        monkeypatch.undo()
        assert fine.bound <= fine.objective <= fine.bound * (1 + 1e-5)
        assert fine.bound <= rough.objective * (1 + 1e-9)
        assert rough.bound <= fine.objective * (1 + 1e-9)
        near.append(rough.objective / rough.bound - 1)
        total = rough.weights @ rough.rays
        assert np.allclose(total, 1, rtol=0, atol=1e-11)
    assert max(near) < 0.02


def test_the_mean_of_many_rays_is_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that fall to nothing would leave a bound that is far too low."""
    monkeypatch.setattr(module, "MOST_NEWTON", 0)
    rng = np.random.default_rng(5)
    counts = {f"s{k}": rng.integers(1, 100000, 12) for k in range(6)}
    whole = sum(counts.values())
    rays = rays_for(Scenario(Prior.from_counts(counts, support=range(12))), "1")
    found = solve(Design(rays, whole / whole.sum(), np.arange(12)[:, None] * 1.0))
    assert found.objective <= found.bound * 1.01


def test_mutant_a_list_of_rays_that_misses_some_claims_too_much() -> None:
    """The bound is one of the rays that are given: without a pair of levels it is wrong."""
    scenario = Scenario(Prior.from_counts({"a": [5, 3, 2, 1], "b": [1, 2, 4, 6]}, support=range(4)))
    rays = rays_for(scenario, "0.3")
    mu = np.full(4, 0.25)
    honest = solve(Design(rays, mu, np.eye(4)))
    best = int(np.argmax(np.isclose(rays, honest.rays[0]).all(axis=1)))
    fewer = np.delete(rays, best, axis=0)
    assert solve(Design(fewer, mu, np.eye(4))).bound > honest.objective * (1 + 1e-6)
