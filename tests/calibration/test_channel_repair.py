# SPDX-License-Identifier: Apache-2.0
"""From doubles to integers: private exactly, side conditions exactly, and mutants of both."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channel_checks import (
    BIT,
    HALF,
    PAIR,
    costs_of,
    entries,
    is_private,
    least_cost,
    pooled,
    scenarios,
)
from pufferfish.calibration import channel as module
from pufferfish.calibration import channel_program, channel_repair
from pufferfish.calibration.channel import Average, channel, exponential_below
from pufferfish.calibration.channel_program import build
from pufferfish.calibration.channel_program import least_cost as bound_of
from pufferfish.calibration.channel_repair import needed_mixture, repaired
from pufferfish.calibration.channel_task import Conditions, Cone, Task, read_costs
from pufferfish.calibration.solver import solve
from pufferfish.errors import PufferfishError
from pufferfish.mechanisms.channel import Channel
from pufferfish.priors.ambiguity import Point
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

COUNTS = {"s0": [84, 55, 1, 81, 3], "s1": [1, 1, 1, 14, 20], "s2": [4, 30, 9, 9, 9]}
SOME = Scenario(Prior.from_counts(COUNTS, support=range(5)))


def task_of(scenario: Scenario, epsilon: Fraction = HALF, **asked: Any) -> Task:
    support, bound = scenario.support, exponential_below(epsilon)
    costs, weights = read_costs(support, support, "hamming"), [1] * support.size
    return module.task_of(scenario, bound, support, costs, weights, Conditions(**asked))


# --- Privacy ------------------------------------------------------------------------------------


@given(scenarios(), st.integers(0, 2**32), st.sampled_from((1e-16, 1e-12, 1e-7)))
def test_what_is_almost_private_becomes_private(
    case: tuple[Scenario, Fraction], seed: int, size: float
) -> None:
    """From any channel near a private one, whatever the solver left."""
    scenario, epsilon = case
    task, rng = task_of(scenario, epsilon), np.random.default_rng(seed)
    n_x, n_y = task.costs.shape
    shares = np.tile(rng.dirichlet(np.ones(n_y)), (n_x, 1))
    shares = np.clip(shares + rng.normal(0, size, (n_x, n_y)), 0, None)
    made = Channel(scenario.support, scenario.support, repaired(task, shares.ravel()))
    assert is_private(scenario, made, epsilon)
    # The noise itself, and the least mixture: as far as the violations are, over E - 1.
    allowed = 20 * size + 100 * size / (float(task.bound) - 1)
    assert np.abs(made.matrix - shares[0]).max() <= allowed + 1e-11


def test_the_mixture_beside_previous_outputs_is_the_least_one() -> None:
    """After an output of likelihoods (4, 1) the masses are no distributions, and 1 cures less."""
    after = tuple(Point(np.array(own) * [4, 1], 8 * 4) for own in ([3, 5], [2, 6]))
    cone = Cone((after,), ((0, 1), (1, 0)), Fraction(5, 4))
    table = np.array([[1000, 900, 5], [10, 900, 700]], dtype=object)
    needed = needed_mixture(cone, table)
    assert needed.any()
    assert not needed_mixture(cone, table + needed).any()
    for y in np.flatnonzero(needed):
        less = needed - (np.arange(3) == y)
        assert needed_mixture(cone, table + less)[y] == 1


def test_the_mixture_is_the_least_one() -> None:
    """One unit less of any output, and an inequality fails."""
    rng = random.Random(1)
    for _ in range(20):
        table = np.array([[rng.randrange(10**6) for _ in range(5)] for _ in range(5)], dtype=object)
        needed = needed_mixture(task_of(SOME), table)
        assert not any(needed_mixture(task_of(SOME), table + needed))
        for y in np.flatnonzero(needed).tolist():
            less = needed - (np.arange(5) == y).astype(int)
            assert needed_mixture(task_of(SOME), table + less)[y] == 1


@pytest.mark.parametrize("options", [{}, {"invariant": True}])
def test_mutant_the_mixture_is_too_small(
    options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of what is needed, or nothing, and the definition rejects the channel."""
    assert is_private(SOME, channel(SOME, HALF, **options).mechanism, HALF)  # type: ignore[arg-type]  # mixed kinds
    honest = channel_repair.needed_mixture
    for part in (2, 10**9):
        monkeypatch.setattr(
            channel_repair, "needed_mixture", lambda *given, part=part: honest(*given) // part
        )
        wrong = channel(SOME, HALF, **options)  # type: ignore[arg-type]  # mixed kinds
        assert not is_private(SOME, wrong.mechanism, HALF)


def test_hopeless_answers_are_errors() -> None:
    with pytest.raises(PufferfishError, match="too far from private"):
        repaired(task_of(BIT), np.eye(2).ravel())
    with pytest.raises(PufferfishError, match="empty row"):
        repaired(task_of(BIT), np.array([1.0, 0.0, 0.0, 0.0]))
    with pytest.raises(PufferfishError, match="min_keep"):
        repaired(task_of(BIT, min_keep=Fraction(6, 10)), np.full(4, 0.5))


# --- Side conditions ----------------------------------------------------------------------------


@given(scenarios())
def test_invariant_channels_keep_the_frequencies_exactly(case: tuple[Scenario, Fraction]) -> None:
    scenario, epsilon = case
    solution = channel(scenario, epsilon, invariant=True, cost="squared")
    assert is_private(scenario, solution.mechanism, epsilon)
    matrix, mu = entries(solution.mechanism), pooled(scenario)
    for y, target in enumerate(mu):
        assert sum(w * row[y] for w, row in zip(mu, matrix, strict=True)) == target
    n = len(mu)
    weights = np.array([float(w) for w in mu])
    equal = [((weights[:, None] * (np.arange(n) == y)).ravel(), weights[y]) for y in range(n)]
    least = least_cost(scenario, epsilon, costs_of(scenario, "squared"), mu, equal)
    assert float(solution.cost) == pytest.approx(least, rel=1e-6, abs=1e-6)


@given(scenarios(values=5, secrets=3))
def test_unbiased_channels_have_the_values_as_means_exactly(
    case: tuple[Scenario, Fraction],
) -> None:
    scenario, epsilon = case
    solution = channel(scenario, epsilon, unbiased=True, cost="absolute")
    assert is_private(scenario, solution.mechanism, epsilon)
    ys = lattice_of(solution.mechanism.outputs).values
    for x, row in enumerate(entries(solution.mechanism)):
        assert sum(y * p for y, p in zip(ys, row, strict=True)) == x
    xs = range(scenario.support.size)
    costs = [[abs(x - y) for y in ys] for x in xs]
    places = np.array([float(y / ys[-1]) for y in ys])
    means = [(np.kron(np.eye(len(xs))[x], places), float(x / ys[-1])) for x in xs]
    least = least_cost(scenario, epsilon, costs, pooled(scenario), means)
    assert float(solution.cost) == pytest.approx(least, rel=1e-5, abs=1e-6)


@given(scenarios(), st.sampled_from(("0.01", "0.1", "0.2")))
def test_values_are_kept_as_often_as_asked_exactly(
    case: tuple[Scenario, Fraction], asked: str
) -> None:
    scenario, epsilon = case
    if Fraction(asked) * scenario.support.size > 1:  # randomised response keeps 1/n and more
        return
    solution = channel(scenario, epsilon, min_keep=asked, cost="squared")
    assert is_private(scenario, solution.mechanism, epsilon)
    matrix = entries(solution.mechanism)
    assert min(matrix[x][x] for x in range(len(matrix))) >= Fraction(asked)


def test_mutant_a_side_condition_is_left_out_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the program forgets, the repair refuses."""
    monkeypatch.setattr(channel_program, "_add_conditions", lambda *_: None)
    for options in ({"invariant": True}, {"unbiased": True}):
        with pytest.raises(PufferfishError, match="too far from"):
            channel(SOME, HALF, **options)  # type: ignore[arg-type]  # mixed kinds


# --- Values that no protected secret can take ---------------------------------------------------


def average(made: Any, scenario: Scenario) -> list[Fraction]:
    """The mean of what is published for the protected secrets, by its definition."""
    matrix = entries(made)
    columns = list(zip(*matrix, strict=True))
    everyone = [
        [sum(prior.probability(s, x) * p for x, p in enumerate(column)) for column in columns]
        for prior in scenario.priors
        for s in scenario.protected
    ]
    return [Fraction(sum(column)) / len(everyone) for column in zip(*everyone, strict=True)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"invariant": True},
        {"cost": "hamming", "weights": [0, 5, 0, 1, 0]},
        {"min_keep": "0.25", "weights": [1, 9, 1, 1, 1]},
        {"min_keep": "0.25", "invariant": True},
    ],
)
def test_their_row_is_the_average_row(options: dict[str, Any]) -> None:
    solution = channel(PAIR, HALF, **options)
    share = Fraction(str(options.get("min_keep", 0)))
    expected = [(1 - share) * p for p in average(solution.mechanism, PAIR)]
    expected[1] += share
    assert entries(solution.mechanism)[1] == expected
    assert is_private(PAIR, solution.mechanism, HALF)
    assert solution.distortion.gap <= 1e-8 * float(solution.cost)


@pytest.mark.parametrize("cost", ["hamming", "squared"])
@pytest.mark.parametrize("weights", [[1, 1, 1, 1, 1], [0, 5, 0, 1, 0], [0, 1, 0, 0, 0]])
def test_weights_of_such_values_count(cost: str, weights: list[int]) -> None:
    """The cheapest channel of those whose row 1 is the average, by equations in the program."""
    solution = channel(PAIR, HALF, cost=cost, weights=weights)
    prior = PAIR.priors[0]
    masses = [sum(prior.probability(s, x) for s in "ab") / 2 for x in range(5)]
    own = np.array([float(m) for m in masses]) - (np.arange(5) == 1)
    equal = [((own[:, None] * (np.arange(5) == y)).ravel(), 0.0) for y in range(5)]
    mu = [Fraction(weight, sum(weights)) for weight in weights]
    least = least_cost(PAIR, HALF, costs_of(PAIR, cost), mu, equal)
    assert float(solution.cost) == pytest.approx(least, rel=1e-7)


def test_two_adversaries_and_unbiased_channels() -> None:
    second = Prior.from_counts(
        {"a": [1, 0, 2, 5, 9], "b": [7, 0, 7, 2, 3], "c": [0, 1, 0, 0, 0]}, support=range(5)
    )
    both = Scenario([PAIR.priors[0], second], [("a", "b")])
    made = channel(both, HALF).mechanism
    assert entries(made)[1] == average(made, both)
    # Where every row must have its mean they keep theirs.
    assert channel(PAIR, HALF, unbiased=True).mechanism.probability(1, 2) > Fraction(999, 1000)
    region = PAIR.priors[0].with_region(confidence="0.9")
    assert not Average(task_of(Scenario(region, [("a", "b")]))).values.size
    assert Average(task_of(PAIR)).values.tolist() == [1]


@st.composite
def surprises(draw: st.DrawFn) -> tuple[Scenario, Scenario, Fraction]:
    """A prior with one or two impossible values, and one in which persons have them."""
    n, m, unseen = draw(st.integers(2, 5)), draw(st.integers(2, 4)), draw(st.integers(1, 2))
    counts = st.lists(st.integers(0, 30), min_size=n, max_size=n).filter(any)
    rows = [draw(counts) for _ in range(m)]
    seen = {f"s{k}": [*r, *[0] * unseen] for k, r in enumerate(rows)}
    scenario = Scenario(Prior.from_counts(seen, support=range(n + unseen)))
    shares = st.sampled_from((Fraction(0), Fraction(1, 100), HALF, Fraction(1)))
    truth = {}
    for k, r in enumerate(rows):
        t, u = draw(shares), draw(st.sampled_from((Fraction(0), Fraction(1, 3), Fraction(1))))
        masses = [(1 - t) * Fraction(c, sum(r)) for c in r]
        masses += [t] if unseen == 1 else [t * u, t * (1 - u)]
        truth[f"s{k}"] = dict(enumerate(masses))
    epsilon = Fraction(draw(st.sampled_from(("0.01", "0.5", "2"))))
    return scenario, Scenario(Prior.from_mapping(truth)), epsilon


@given(surprises(), st.sampled_from(("hamming", "squared")))
def test_theorem_who_has_such_a_value_is_protected_like_all(
    case: tuple[Scenario, Scenario, Fraction], cost: str
) -> None:
    scenario, truth, epsilon = case
    made = channel(scenario, epsilon, cost=cost).mechanism
    assert is_private(scenario, made, epsilon)
    assert is_private(truth, made, epsilon)


def test_mutant_such_values_are_published_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Scenario(Prior.from_counts({"a": [5, 3, 0], "b": [4, 4, 0]}, support=range(3)))
    rows = {"a": {0: "0.5", 1: "0.3", 2: "0.2"}, "b": {0: "0.5", 1: "0.5"}}
    truth = Scenario(Prior.from_mapping(rows))
    assert is_private(truth, channel(seen, HALF).mechanism, HALF)
    # With min_keep the share that is kept is published by nobody else.
    assert not is_private(truth, channel(seen, HALF, min_keep="0.1").mechanism, HALF)

    class Careless(Average):
        def __init__(self, task: Task) -> None:
            super().__init__(task)
            self.values, self.others = np.array([], dtype=int), np.arange(3)

    monkeypatch.setattr("pufferfish.calibration.channel.Average", Careless)
    careless = channel(seen, HALF, weights=[1, 1, 1]).mechanism
    assert careless.probability(2, 2) > HALF
    assert not is_private(truth, careless, HALF)


# --- The bound of any multipliers ---------------------------------------------------------------


@pytest.mark.parametrize("asked", [{}, {"min_keep": Fraction(3, 10)}, {"invariant": True}])
def test_any_multipliers_bound_the_cost(asked: dict[str, Any]) -> None:
    task = task_of(SOME, **asked)
    program = build(task)
    values, duals = solve(program.lp)
    least = float(program.cost @ values)
    best = bound_of(program, duals)
    assert least * (1 - 1e-8) <= best <= least * (1 + 1e-8)
    rng = np.random.default_rng(1)
    for size in (1e-9, 1e-3, 1.0, 1e6):
        for _ in range(20):
            others = duals + rng.normal(0, size, len(duals))
            assert bound_of(program, others) <= least * (1 + 1e-8)
    assert bound_of(program, np.full(len(duals), np.nan)) <= least
