# SPDX-License-Identifier: Apache-2.0
"""What may be asked of a channel, and the rows that privacy says nothing of."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

import pufferfish.calibration.channel_program
from pufferfish.calibration.channel import ChannelSolution, channel
from pufferfish.calibration.costs import cost_matrix, default_cost, weights_of
from pufferfish.calibration.highs import Solver
from pufferfish.calibration.plain_rows import cheapest_row
from pufferfish.certificate import certify_channel
from pufferfish.errors import InputError
from pufferfish.prior import Prior
from pufferfish.regions import regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import Levels

HALF = Fraction(1, 2)
#: Value 1 occurs under c alone, which is in no pair.
COUNTS = {"a": [40, 0, 20, 5, 9], "b": [10, 0, 30, 20, 3], "c": [1, 50, 1, 1, 1]}
NUMBERS = Scenario(Prior.from_counts(COUNTS, support=[0, 1, 2, 3, 4]), [("a", "b")])
NAMES = ["u", "v", "w", "x", "y"]
LEVELS = Scenario(Prior.from_counts(COUNTS, support=NAMES), [("a", "b")])
ORDERED = Scenario(Prior.from_counts(COUNTS, support=NAMES, order="appearance"), [("a", "b")])
OWN = [[5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [2, 2, 2, 2, 2]]


def row(solution: ChannelSolution, x: int) -> list[Fraction]:
    made = solution.channel
    return [made.probability(x, y) for y in range(made.outputs.size)]


def certified(solution: ChannelSolution, scenario: Scenario, epsilon: Fraction = HALF) -> bool:
    return certify_channel(scenario, solution.channel, epsilon).holds


@pytest.mark.parametrize(
    "scenario, name", [(NUMBERS, "squared"), (ORDERED, "squared"), (LEVELS, "hamming")]
)
def test_the_cost_by_default(scenario: Scenario, name: str) -> None:
    assert default_cost(scenario.support) == name
    solution = channel(scenario, HALF)
    assert solution.cost_name == name
    assert solution.cost == channel(scenario, HALF, cost=name).cost


def test_what_a_solution_says_of_itself() -> None:
    solution = channel(NUMBERS, HALF, cost=" Absolute ", min_keep="0.6", invariant=True)
    assert solution.cost_name == "absolute"
    assert solution.conditions == ("invariant", "min_keep 0.6")
    assert solution.notes == ()
    assert sum(solution.weights) == 1
    assert list(solution.weights) == weights_of(NUMBERS, None)
    assert channel(NUMBERS, HALF, cost=OWN).cost_name == "own"
    assert channel(NUMBERS, HALF, unbiased=True).conditions == ("unbiased",)
    assert solution.lp_bound <= float(solution.cost) * (1 + 1e-15)


def test_weights_by_value() -> None:
    listed = [1, 2, 0, 4, 5]
    for scenario, keys in (
        (NUMBERS, ["0", 1, 2.0, "3", Fraction(4)]),
        (LEVELS, NAMES),
    ):
        given = dict(zip(keys, listed, strict=True))
        assert weights_of(scenario, given) == weights_of(scenario, listed)
        del given[keys[1]]
        with pytest.raises(InputError, match="no weight for"):
            weights_of(scenario, given)
    with pytest.raises(InputError, match="the weight of 'z', which is none of the values"):
        weights_of(LEVELS, dict(zip([*NAMES, "z"], [1] * 6, strict=True)))
    with pytest.raises(InputError, match="of '1' twice"):
        weights_of(NUMBERS, {0: 1, 1: 1, "1.0": 2, 2: 1, 3: 1, 4: 1})
    for wrong, message in (
        ([1, 2], "5 numbers, one for each value, not 2"),
        ([0] * 5, "not be negative nor all 0"),
        ([1, 1, 1, 1, -1], "the least is -1"),
        (3, "weights must be 5 numbers"),
        (["a"] * 5, "a weight must be a number"),
    ):
        with pytest.raises(InputError, match=message):
            channel(NUMBERS, HALF, weights=wrong)  # type: ignore[arg-type]


def test_weights_by_default_are_counts_only_where_all_priors_have_them() -> None:
    """Otherwise the numerators of a given prior would count as rows."""
    counted = Prior.from_counts({"a": [9, 1], "b": [1, 1]}, support=range(2))
    given = Prior.from_mapping({"a": {0: "0.125", 1: "0.875"}, "b": {0: "0.5", 1: "0.5"}})
    assert weights_of(Scenario(counted), None) == [Fraction(10, 12), Fraction(2, 12)]
    for both in ([counted, given], [given, counted]):
        mean = Fraction(9, 10) + HALF + Fraction(1, 8) + HALF
        assert weights_of(Scenario(both), None) == [mean / 4, 1 - mean / 4]


def test_costs_by_value() -> None:
    by_name = {x: dict(zip(NAMES, OWN[k], strict=True)) for k, x in enumerate(NAMES)}
    # Levels that do not occur here may be in the mapping, too.
    by_name["more"] = {}
    assert (cost_matrix(LEVELS.support, LEVELS.support, by_name) == np.array(OWN)).all()
    numbers = {x: {f"{y}.0": OWN[x][y] for y in range(5)} for x in range(5)}
    assert (cost_matrix(NUMBERS.support, NUMBERS.support, numbers) == np.array(OWN)).all()
    misspelt = {"uu" if name == "u" else name: row for name, row in by_name.items()}
    with pytest.raises(InputError, match=r"no row for 'u' \(did you mean 'uu'"):
        cost_matrix(LEVELS.support, LEVELS.support, misspelt)
    with pytest.raises(InputError, match="must be a mapping"):
        cost_matrix(LEVELS.support, LEVELS.support, {**by_name, "u": 3})
    with pytest.raises(InputError, match="rows of numbers, but 3 was given"):
        channel(LEVELS, HALF, cost=3)
    for name in ("squared", "absolute"):
        with pytest.raises(InputError, match=f"cost {name} needs numbers or levels with an ord.*"
                           "; the cost hamming and a cost matrix of your own do not"):  # fmt: skip
            channel(LEVELS, HALF, cost=name)
    with pytest.raises(InputError, match="unbiased needs numbers"):
        channel(LEVELS, HALF, unbiased=True)


def test_values_that_no_protected_secret_can_take_change_nothing_for_the_others() -> None:
    counts = {s: [c for k, c in enumerate(row) if k != 1] for s, row in COUNTS.items()}
    names = [name for name in NAMES if name != "v"]
    without = Scenario(Prior.from_counts(counts, support=names), [("a", "b")])
    assert float(channel(LEVELS, HALF).cost) == pytest.approx(
        float(channel(without, HALF).cost), rel=1e-9
    )


def test_the_cheapest_row() -> None:
    ys = [Fraction(y) for y in range(5)]
    assert cheapest_row([3, 1, 1, 2, 1], kept=2) == {2: 1}
    assert cheapest_row([3, 1, 2, 2, 1], kept=2) == {1: 1}
    # Of mean 2: half 1 and half 3 costs 1.5, a quarter of 0 and three of ... cost more.
    assert cheapest_row([9, 1, 5, 2, 9], 2, None, (ys, ys[2])) == {1: HALF, 3: HALF}
    assert cheapest_row([9, 1, 5, 2, 9], 2, HALF, (ys, ys[2])) == {
        1: Fraction(1, 4),
        2: HALF,
        3: Fraction(1, 4),
    }


def idle_cost(solution: ChannelSolution, idle: list[int]) -> float:
    return sum(1 - float(row(solution, x)[x]) for x in idle)


def least_idle_cost(scenario: Scenario, weights: list[int], most: float) -> float:
    """The least cost of the rows of no weight among all channels that cost at most ``most``."""
    n, sums = scenario.support.size, np.kron(np.eye(5), np.ones(5))
    changed = 1 - np.eye(n)
    mu = np.array(weights) / sum(weights)
    rows = [(mu[:, None] * changed).ravel()]
    prior = scenario.priors[0]
    for i, j in permutations(scenario.protected):
        for y in range(n):
            entry = np.zeros((n, n))
            for x in range(n):
                p, q = float(prior.probability(i, x)), float(prior.probability(j, x))
                entry[x, y] = p - math.exp(HALF) * q
            rows.append(entry.ravel())
    limits = [most * (1 + 1e-9) + 1e-12] + [0.0] * (len(rows) - 1)
    second = (np.array([w == 0 for w in weights])[:, None] * changed).ravel()
    return float(linprog(second, np.array(rows), limits, sums, np.ones(n)).fun)


def test_rows_of_no_weight_are_as_cheap_as_the_others_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(4)
    helped = 0
    for _ in range(12):
        counts = {s: rng.integers(1, 60, 5) for s in "ab"}
        scenario = Scenario(Prior.from_counts(counts, support=range(5)))
        weights = [1, 0, 1, 1, 0]
        solution = channel(scenario, HALF, cost="hamming", weights=weights)
        assert certified(solution, scenario)
        assert solution.repair <= 1e-6
        least = least_idle_cost(scenario, weights, float(solution.cost))
        assert idle_cost(solution, [1, 4]) <= least + 1e-6
        with monkeypatch.context() as patch:
            patch.setattr(Solver, "prefer", lambda self, solution, cost: solution)
            careless = channel(scenario, HALF, cost="hamming", weights=weights)
        assert float(careless.cost) == pytest.approx(float(solution.cost), rel=1e-6, abs=1e-12)
        helped += idle_cost(careless, [1, 4]) > least + 1e-3
    assert helped > 0


def test_structural_values_of_a_region_are_sensible() -> None:
    """The value 8 was never seen; the region lets it occur under one secret alone."""
    counts = {"a": [400, 200, 0, 300], "b": [300, 300, 0, 250]}
    scenario = Scenario(Prior.from_counts(counts, support=[0, 1, 8, 9]))
    regions = regions_of(scenario, confidence="0.95")
    assert weights_of(scenario, None)[2] == 0
    solution = channel(scenario, HALF, regions=regions)
    # It cannot be published, but the nearest value mostly is.
    assert row(solution, 2)[2] < Fraction(1, 100)
    assert row(solution, 2)[3] > Fraction(7, 10)


def test_invariant_and_unbiased_leaves_nothing_to_choose() -> None:
    with pytest.raises(InputError, match="publishes every value unchanged"):
        channel(NUMBERS, HALF, invariant=True, unbiased=True)
    unchanged = channel(NUMBERS, Fraction(5), invariant=True, unbiased=True)
    assert unchanged.cost == 0
    assert unchanged.channel.unchanged


def test_programs_that_are_too_large_are_refused_before_they_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pufferfish.calibration.channel_program, "MOST_COEFFICIENTS", 60)
    for scenario, options, message in (
        (NUMBERS, {}, r"75 coefficients, more than 60; give a coarser step .* mechanism exact"),
        (NUMBERS, {"outputs": 1}, "5 values to 9 outputs .* ask for fewer outputs"),
        (LEVELS, {}, "merge levels$"),
        (ORDERED, {}, "merge levels, or use the mechanism exact"),
    ):
        with pytest.raises(InputError, match=message):
            channel(scenario, HALF, **options)  # type: ignore[arg-type]
    monkeypatch.undo()
    many = 3000
    counts = {"a": [1] * many, "b": [1] * many}
    with pytest.raises(InputError, match="3000 values"):
        channel(Scenario(Prior.from_counts(counts, support=range(many))), HALF)


def test_one_value_and_levels_that_are_all_alike() -> None:
    one = Scenario(Prior.from_mapping({"a": {7: 1}, "b": {7: 1}}))
    for options in ({}, {"unbiased": True}, {"invariant": True}, {"min_keep": 1}):
        solution = channel(one, HALF, **options)  # type: ignore[arg-type]
        assert solution.cost == 0
        assert solution.lp_bound == 0
    same = Prior.from_mapping({"a": {"x": "1/3", "y": "2/3"}, "b": {"x": "1/3", "y": "2/3"}})
    for epsilon in ("1e-300", "1e-9", "1", "1e6"):
        assert channel(Scenario(same), Fraction(epsilon)).cost == 0


def test_unordered_levels_are_published_as_levels() -> None:
    assert channel(LEVELS, HALF).channel.outputs == Levels(tuple(NAMES))
