# SPDX-License-Identifier: Apache-2.0
"""Values that no protected secret can take: nobody is without protection, seen before or not."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from pufferfish.calibration.channel import ChannelSolution, channel, exponential_below
from pufferfish.calibration.channel_task import Task
from pufferfish.calibration.costs import cost_matrix, weights_of
from pufferfish.calibration.unseen import possible
from pufferfish.certificate import certify_channel
from pufferfish.prior import Prior
from pufferfish.regions import regions_of
from pufferfish.scenario import Scenario

HALF = Fraction(1, 2)
#: Value 1 occurs under c alone, which is in no pair.
COUNTS = {"a": [40, 0, 20, 5, 9], "b": [10, 0, 30, 20, 3], "c": [1, 50, 1, 1, 1]}
NAMES = ["u", "v", "w", "x", "y"]
PAIRS = [("a", "b")]
NUMBERS = Scenario(Prior.from_counts(COUNTS, support=[0, 1, 2, 3, 4]), PAIRS)
LEVELS = Scenario(Prior.from_counts(COUNTS, support=NAMES), PAIRS)
ORDERED = Scenario(Prior.from_counts(COUNTS, support=NAMES, order="appearance"), PAIRS)
OWN = [[5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [5, 5, 1, 5, 5], [5, 5, 5, 5, 1], [2, 2, 2, 2, 2]]


def row(solution: ChannelSolution, x: int) -> list[Fraction]:
    made = solution.channel
    return [made.probability(x, y) for y in range(made.outputs.size)]


def average(solution: ChannelSolution, scenario: Scenario) -> list[Fraction]:
    """The mean of what is published for the protected secrets, by its definition."""
    made = solution.channel
    everyone = [
        [
            sum(prior.probability(s, x) * made.probability(x, y) for x in range(made.inputs.size))
            for y in range(made.outputs.size)
        ]
        for prior in scenario.priors
        for s in scenario.protected
    ]
    return [Fraction(sum(column)) / len(everyone) for column in zip(*everyone, strict=True)]


@pytest.mark.parametrize("scenario", [NUMBERS, LEVELS, ORDERED], ids=["numbers", "levels", "order"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"invariant": True},
        {"weights": [1, 1, 1, 1, 1]},
        {"cost": OWN},
        {"min_keep": "0.25"},
        {"min_keep": "0.25", "weights": [1, 9, 1, 1, 1], "cost": OWN},
        {"min_keep": "0.25", "invariant": True},
    ],
)
def test_their_row_is_the_average_row(scenario: Scenario, options: dict[str, object]) -> None:
    solution = channel(scenario, HALF, **options)  # type: ignore[arg-type]
    share = Fraction(str(options.get("min_keep", 0)))
    expected = [(1 - share) * p for p in average(solution, scenario)]
    expected[1] += share
    assert row(solution, 1) == expected
    assert certify_channel(scenario, solution.channel, HALF).holds
    assert solution.repair <= 1e-6
    assert solution.notes == ()


def test_they_are_not_published_where_privacy_costs_nothing_either() -> None:
    solution = channel(NUMBERS, Fraction(5))
    assert solution.cost == 0
    assert row(solution, 0)[0] == 1
    assert row(solution, 1) == average(solution, NUMBERS)
    assert not solution.channel.unchanged


def test_where_every_row_must_have_its_mean_they_keep_it() -> None:
    solution = channel(NUMBERS, HALF, unbiased=True)
    made = solution.channel
    assert made.probability(1, made.same[1] or 0) == 1


def test_invariant_channels_treat_those_that_count_like_the_others() -> None:
    weights = [1, 1, 1, 1, 1]
    solution = channel(LEVELS, HALF, weights=weights, invariant=True)
    frequencies = [sum(row(solution, x)[y] for x in range(5)) / 5 for y in range(5)]
    assert max(abs(f - Fraction(1, 5)) for f in frequencies) <= Fraction(1, 10**9)


def test_the_average_is_that_of_all_adversaries() -> None:
    second = Prior.from_counts({"a": [1, 0, 2, 5, 9], "b": [7, 0, 7, 2, 3], "c": [0, 1, 0, 0, 0]},
                               support=NAMES)  # fmt: skip
    both = Scenario([LEVELS.priors[0], second], PAIRS)
    solution = channel(both, HALF)
    assert row(solution, 1) == average(solution, both)
    assert certify_channel(both, solution.channel, HALF).holds


def test_a_region_leaves_no_such_value() -> None:
    for rule in ({"confidence": "0.9"}, {"tv_radius": "0.1"}):
        assert possible(LEVELS, regions_of(LEVELS, **rule)).all()
    for none in (None, regions_of(LEVELS)):
        assert possible(LEVELS, none).tolist() == [True, False, True, True, True]


@st.composite
def surprises(draw: st.DrawFn) -> tuple[Scenario, Scenario, Fraction]:
    """A prior with one or two impossible values, and one in which persons have them."""
    n, m, unseen = draw(st.integers(2, 5)), draw(st.integers(2, 4)), draw(st.integers(1, 2))
    counts = st.lists(st.integers(0, 30), min_size=n, max_size=n).filter(any)
    rows = [draw(counts) for _ in range(m)]
    scenario = Scenario(
        Prior.from_counts(
            {f"s{k}": [*r, *[0] * unseen] for k, r in enumerate(rows)}, support=range(n + unseen)
        )
    )
    shares = st.sampled_from((Fraction(0), Fraction(1, 100), HALF, Fraction(1)))
    truth = {}
    for k, r in enumerate(rows):
        t, u = draw(shares), draw(st.sampled_from((Fraction(0), Fraction(1, 3), Fraction(1))))
        masses = [(1 - t) * Fraction(c, sum(r)) for c in r]
        masses += [t] if unseen == 1 else [t * u, t * (1 - u)]
        truth[f"s{k}"] = dict(enumerate(masses))
    epsilon = Fraction(draw(st.sampled_from(("0.01", "0.5", "2"))))
    return scenario, Scenario(Prior.from_mapping(truth)), epsilon


def keeps_within(solution: ChannelSolution, scenario: Scenario, epsilon: Fraction) -> bool:
    """Whether the loss is at most epsilon for other distributions of the same secrets, exactly."""
    made, bound, prior = solution.channel, exponential_below(epsilon), scenario.priors[0]
    for y in range(made.outputs.size):
        found = [
            sum(prior.probability(s, x) * made.probability(x, y) for x in range(made.inputs.size))
            for s in scenario.protected
        ]
        if max(found) > bound * min(found):
            return False
    return True


@given(surprises(), st.sampled_from(("hamming", "squared")))
def test_theorem_who_has_such_a_value_is_protected_like_all(
    case: tuple[Scenario, Scenario, Fraction], cost: str
) -> None:
    scenario, truth, epsilon = case
    solution = channel(scenario, epsilon, cost=cost)
    assert keeps_within(solution, scenario, epsilon)
    assert keeps_within(solution, truth, epsilon)


def one_surprise() -> tuple[Scenario, Scenario]:
    seen = Scenario(Prior.from_counts({"a": [5, 3, 0], "b": [4, 4, 0]}, support=range(3)))
    truth = Prior.from_mapping({"a": {0: "0.5", 1: "0.3", 2: "0.2"}, "b": {0: "0.5", 1: "0.5"}})
    return seen, Scenario(truth)


def test_mutant_such_values_are_published_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, truth = one_surprise()
    assert keeps_within(channel(seen, HALF), truth, HALF)
    monkeypatch.setattr(Task, "averaged", {})
    careless = channel(seen, HALF)
    assert row(careless, 2) == [0, 0, 1]
    assert not keeps_within(careless, truth, HALF)


def test_what_min_keep_leaves_of_the_theorem() -> None:
    """The share that is kept is published by nobody else."""
    seen, truth = one_surprise()
    assert not keeps_within(channel(seen, HALF, min_keep="0.1"), truth, HALF)


def least_with_the_rule(scenario: Scenario, weights: list[int], costs: np.ndarray) -> float:
    """The least cost of all channels whose row 1 is avg, by an equation in the program."""
    n = scenario.support.size
    prior = scenario.priors[0]
    p = {s: [float(prior.probability(s, x)) for x in range(n)] for s in scenario.protected}
    rows, equations = [], [np.kron(np.eye(n)[x], np.ones(n)) for x in range(n)]
    for y in range(n):
        for i, j in permutations(scenario.protected, 2):
            entry = np.zeros((n, n))
            entry[:, y] = np.array(p[i]) - np.exp(0.5) * np.array(p[j])
            rows.append(entry.ravel())
        entry = np.zeros((n, n))
        entry[:, y] = sum(np.array(q) for q in p.values()) / len(p)
        entry[1, y] -= 1
        equations.append(entry.ravel())
    mu = np.array(weights) / sum(weights)
    objective = (mu[:, None] * costs.astype(float)).ravel()
    found = linprog(objective, np.array(rows), np.zeros(len(rows)), np.array(equations), [1.0] * n + [0.0] * n)  # fmt: skip # noqa: E501
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("cost", ["hamming", "squared", OWN], ids=["hamming", "squared", "own"])
@pytest.mark.parametrize("weights", [[1, 1, 1, 1, 1], [0, 5, 0, 1, 0], [0, 1, 0, 0, 0]])
def test_weights_of_such_values_count(cost: object, weights: list[int]) -> None:
    """The cheapest channel of those that follow the rule, and a bound that knows the rule."""
    solution = channel(NUMBERS, HALF, cost=cost, weights=weights)
    costs = cost_matrix(NUMBERS.support, NUMBERS.support, cost)
    assert float(solution.cost) == pytest.approx(
        least_with_the_rule(NUMBERS, weights, costs), rel=1e-7
    )
    assert solution.lp_bound <= float(solution.cost) * (1 + 1e-15)
    assert solution.repair <= 1e-6
    spent = sum(
        w * sum(c * m for c, m in zip(costs[x], row(solution, x), strict=True))
        for x, w in enumerate(solution.weights)
    )
    assert solution.cost == spent


def test_the_pooled_weights_of_such_values_are_0() -> None:
    assert weights_of(NUMBERS, None)[1] == 0
