# SPDX-License-Identifier: Apache-2.0
"""The optimal channel: reference costs, exact privacy, and as cheap as can be."""

import dataclasses
import json
import math
import random
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel_checks import (
    BIT,
    HALF,
    costs_of,
    entries,
    is_private,
    least_cost,
    pooled,
    scenarios,
    spent,
)
from pufferfish.calibration import channel as module
from pufferfish.calibration.channel import channel, exponential_below
from pufferfish.errors import InputError, PufferfishError
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

FILE = json.loads((Path(__file__).parent / "reference.json").read_text())
BLOCKS = {entry["name"]: entry["counts"] for entry in FILE["priors"] if "counts" in entry}
# Least costs (squared, hamming) on the same alphabet, weights the pooled counts; to 9 decimals.
REFERENCE = [
    ("student", "0.1", 0.345353361, 0.345353361),
    ("student", "0.2", 0.191476746, 0.191476746),
    ("student", "0.5", 0.0, 0.0),
    ("bank", "0.1", 0.226083091, 0.175585605),
    ("bank", "0.2", 0.039800318, 0.034424589),
    ("census", "0.1", 0.432296599, 0.151921635),
    ("census", "0.2", 0.294895371, 0.135357565),
    ("census", "0.5", 0.082272083, 0.074651289),
    ("census", "1", 0.011862254, 0.010382039),
]


def block(name: str) -> Scenario:
    counts = BLOCKS[name]
    return Scenario(Prior.from_counts(counts, support=range(len(counts["a"]))))


@pytest.mark.parametrize("name, epsilon, squared, hamming", REFERENCE)
def test_reference_costs(name: str, epsilon: str, squared: float, hamming: float) -> None:
    scenario = block(name)
    for cost, expected in (("squared", squared), ("hamming", hamming)):
        solution = channel(scenario, Fraction(epsilon), cost=cost)
        # The references are rounded to nearest at the ninth decimal.
        assert -6e-10 <= float(solution.cost) - expected <= 1e-6 * expected + 6e-10
        assert solution.distortion.gap <= 1e-9 * float(solution.cost)
        assert is_private(scenario, solution.mechanism, Fraction(epsilon))


def test_a_bit() -> None:
    found = channel(BIT, HALF, cost="hamming")
    assert float(found.cost) == pytest.approx(1 / (1 + math.exp(0.5)), rel=1e-12)
    costs = [float(channel(BIT, HALF, cost="squared", outputs=k).cost) for k in (1, 3, 9, 39)]
    assert costs == sorted(costs, reverse=True)
    limit = math.exp(0.5) / (1 + math.exp(0.5)) ** 2  # posterior means
    assert all(cost >= limit - 1e-12 for cost in costs)
    assert costs[-1] <= limit * (1 + 1e-3)


def check(scenario: Scenario, epsilon: Fraction, cost: str) -> None:
    solution = channel(scenario, epsilon, cost=cost)
    assert is_private(scenario, solution.mechanism, epsilon)
    costs = costs_of(scenario, cost)
    mu = pooled(scenario)
    assert solution.cost == spent(solution.mechanism, mu, costs)
    found, least = float(solution.cost), least_cost(scenario, epsilon, costs, mu)
    assert abs(found - least) <= 1e-6 * max(1.0, least)
    # The bound holds of what another solver finds, too.
    assert found - solution.distortion.gap <= least + 1e-7 * max(1.0, least)
    assert solution.distortion.gap <= 1e-7 * max(1.0, found)


COSTS = st.sampled_from(("hamming", "squared", "absolute"))


@given(scenarios(), COSTS)
def test_private_and_as_cheap_as_can_be(case: tuple[Scenario, Fraction], cost: str) -> None:
    check(*case, cost)


@pytest.mark.slow
@settings(max_examples=500)
@given(scenarios(), COSTS)
def test_many_are_private_and_cheap(case: tuple[Scenario, Fraction], cost: str) -> None:
    check(*case, cost)


def test_the_bound_is_below_and_close() -> None:
    for epsilon in ("1e-6", "0.1", "1", "20", "1/3"):
        bound = exponential_below(Fraction(epsilon))
        with mpmath.workdps(80):
            given_ = Fraction(epsilon)
            e = mpmath.exp(mpmath.mpf(given_.numerator) / given_.denominator)
            value = mpmath.mpf(bound.numerator) / bound.denominator
            assert 1 < value <= e
            assert (e - value) / (e - 1) < mpmath.mpf(2) ** -128


# --- Any epsilon, any prior ---------------------------------------------------------------------


def odd_scenario(rng: random.Random) -> Scenario:
    """Zeros, tiny masses, near and equal priors, several adversaries, few of the pairs."""
    n, m = rng.choice([1, 2, 3, 4, 6, 9]), rng.choice([2, 2, 3, 5])
    names = [f"s{k}" for k in range(m)]

    def masses() -> list[Fraction]:
        one = [
            lambda: Fraction(rng.randint(1, 999)),
            lambda: Fraction(rng.choice([0, 0, 1, 2, 5])),
            lambda: Fraction(rng.choice(["1", "0", "1e-9", "1e-300", "1e-5"])),
            lambda: 1 + Fraction(rng.randint(-9, 9)) / 10 ** rng.choice([3, 7, 12]),
            lambda: Fraction(10) ** rng.randint(-6, 0),
        ][rng.randrange(5)]
        row = [one() for _ in range(n)]
        if not any(row):
            row[rng.randrange(n)] = Fraction(1)
        return [p / sum(row) for p in row]

    priors = []
    for _ in range(rng.choice([1, 1, 2])):
        rows = [masses() for _ in names]
        if rng.random() < 0.15:
            rows = [rows[0]] * m
        priors.append(
            Prior.from_mapping({s: dict(enumerate(r)) for s, r in zip(names, rows, strict=True)})
        )
    return Scenario(priors, "all" if rng.random() < 0.5 else [tuple(rng.sample(names, 2))])


def check_odd(seed: int, epsilon: Fraction) -> None:
    rng = random.Random(seed)
    scenario = odd_scenario(rng)
    solution = channel(scenario, epsilon, cost=rng.choice(["hamming", "squared", "absolute"]))
    assert is_private(scenario, solution.mechanism, epsilon)
    assert solution.distortion.gap <= 1e-6 * float(solution.cost) + 64e-9
    assert (solution.notes != ()) == (epsilon > 20)


@pytest.mark.parametrize("epsilon", ["1e-6", "1e-4", "0.1", "1", "8", "20", "21", "700", "1e300"])
def test_odd_scenarios_at_any_epsilon(epsilon: str) -> None:
    for seed in range(6):
        check_odd(seed, Fraction(epsilon))


@pytest.mark.slow
def test_many_odd_scenarios() -> None:
    for seed in range(300):
        epsilon = random.Random(seed).choice(["1e-6", "1e-3", "0.5", "5", "15", "40"])
        check_odd(seed, Fraction(epsilon))


def test_huge_epsilons_use_the_channel_of_20() -> None:
    solution = channel(BIT, Fraction(40), cost="hamming")
    assert solution.cost <= Fraction(3, 10**9)
    # The duals of epsilon 20 would claim more than is true for epsilon 40.
    assert float(solution.cost) - solution.distortion.gap <= 1 / (1 + math.exp(40))
    assert "computed for epsilon 20" in solution.notes[0]


@pytest.mark.parametrize("epsilon", ["9.9e-7", "1e-300"])
def test_tiny_epsilons_are_refused(epsilon: str) -> None:
    with pytest.raises(InputError, match=r"needs epsilon of at least 1e-6, but"):
        channel(BIT, Fraction(epsilon))


def test_one_value_and_priors_that_are_all_alike() -> None:
    one = Scenario(Prior.from_mapping({"a": {7: 1}, "b": {7: 1}}))
    every: list[dict[str, Any]] = [{}, {"unbiased": True}, {"invariant": True}, {"min_keep": 1}]
    for options in every:
        solution = channel(one, HALF, **options)
        assert solution.cost == 0
        assert solution.distortion.gap == 0
    same = Prior.from_mapping({"a": {"x": "1/3", "y": "2/3"}, "b": {"x": "1/3", "y": "2/3"}})
    for epsilon in ("1e-6", "1", "20"):
        assert channel(Scenario(same), Fraction(epsilon)).cost == 0


# --- Any prior ----------------------------------------------------------------------------------


def test_a_channel_for_point_masses_is_randomised_response() -> None:
    """It hides every value from every other; over the t most frequent values for the best t."""
    rng = np.random.default_rng(7)
    for epsilon, size in product(("0.3", "2"), (2, 5, 12)):
        points = Scenario(Prior.from_mapping({f"s{x}": {x: 1} for x in range(size)}))
        weights = rng.integers(1, 60, size)
        bound, e = exponential_below(Fraction(epsilon)), math.exp(float(epsilon))
        solution = channel(points, Fraction(epsilon), cost="hamming", weights=weights.tolist())
        for column in zip(*entries(solution.mechanism), strict=True):
            assert max(column) <= bound * min(column)
        mu = np.sort(weights / weights.sum())[::-1]
        kept = max(e / (e + t - 1) * mu[:t].sum() for t in range(1, size + 1))
        assert float(solution.cost) == pytest.approx(1 - kept, rel=1e-9)
        assert solution.distortion.gap <= 1e-9


# --- Mutants, and what a solver may do ----------------------------------------------------------


def test_mutant_a_row_of_the_program_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The repair does not believe the program: it refuses, or makes a private channel."""
    scenario = block("census")
    monkeypatch.setattr("pufferfish.calibration.channel_program.add_privacy", lambda *_: None)
    with pytest.raises(PufferfishError, match="too far from private"):
        channel(scenario, Fraction(1, 10))


def test_mutant_one_sign_of_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Program and repair that protect i from j only make a channel that the definition rejects."""
    counts = {"a": [20, 5, 1], "b": [5, 20, 5], "c": [1, 5, 20]}
    scenario = Scenario(Prior.from_counts(counts, support=range(3)), [("a", "b"), ("b", "c")])
    assert is_private(scenario, channel(scenario, HALF).mechanism, HALF)
    honest = module.task_of

    def one_sided(*args: Any) -> Any:
        task = honest(*args)
        return dataclasses.replace(task, pairs=task.pairs[: len(scenario.pairs)])

    monkeypatch.setattr(module, "task_of", one_sided)
    assert not is_private(scenario, channel(scenario, HALF).mechanism, HALF)


def test_mutant_a_wrong_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """E above e^epsilon, by one part in 10**12."""
    scenario, honest = block("bank"), exponential_below
    monkeypatch.setattr(
        module, "exponential_below", lambda e: honest(e) * (1 + Fraction(1, 10**12))
    )
    wrong = channel(scenario, Fraction(1, 10))
    assert not is_private(scenario, wrong.mechanism, Fraction(1, 10))


def test_an_answer_that_is_no_optimum_has_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: the solver leaves some cost on the table; the stated gap covers it."""
    scenario = block("census")
    honest = channel(scenario, Fraction(1, 10))
    solve = module.solve

    def careless(program: Any) -> Any:
        values, duals = solve(program)
        n = scenario.support.size
        share = values[: n * n].reshape(n, n)
        share[:] = 0.99 * share + 0.01 * share.mean(axis=0)
        return values, duals

    monkeypatch.setattr(module, "solve", careless)
    dear = channel(scenario, Fraction(1, 10))
    assert dear.cost > honest.cost * (1 + Fraction(1, 1000))
    assert Fraction(dear.distortion.gap) >= dear.cost - honest.cost
    assert dear.distortion.gap <= 1.01 * float(dear.cost - honest.cost)


def test_the_solver_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """A banner on standard output would break what a program reads there."""
    channel(BIT, Fraction(1))
    assert capfd.readouterr() == ("", "")
