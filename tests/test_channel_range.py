# SPDX-License-Identifier: Apache-2.0
"""Channels for any epsilon: always certified, and what they cost more is said and bounded."""

import math
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import permutations

import flint
import numpy as np
import pytest

from pufferfish.calibration.channel import LARGEST_EPSILON, channel, exponential_below
from pufferfish.calibration.channel_bound import least_cost
from pufferfish.calibration.channel_program import Program, Row
from pufferfish.calibration.channel_task import Task
from pufferfish.calibration.highs import Infeasible, Solver
from pufferfish.calibration.limit_program import limit_rows
from pufferfish.certificate import certify_channel
from pufferfish.certificate.robust import certify_robust_columns
from pufferfish.errors import InputError, PufferfishError
from pufferfish.prior import Prior
from pufferfish.regions import regions_of
from pufferfish.scenario import Scenario

BIT = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
#: Near priors: at epsilon 1e-8 their difference of 1e-9 may stay, at epsilon 0 it may not.
NEAR = Scenario(
    Prior.from_mapping({"a": {0: "0.5", 1: "0.5"}, "b": {0: "0.500000001", 1: "0.499999999"}})
)
EPSILONS = ("1e-300", "1e-15", "1e-9", "1e-7", "1e-6", "1e-4", "0.1", "1", "8", "15", "20")
HUGE = ("21", "40", "700", "1e6", "1e300")
ONE = Fraction(1)


@pytest.mark.parametrize("epsilon", [*EPSILONS, *HUGE])
def test_a_bit_at_any_epsilon(epsilon: str) -> None:
    solution = channel(BIT, Fraction(epsilon), cost="hamming")
    assert certify_channel(BIT, solution.channel, Fraction(epsilon)).holds
    # Randomised response, in as many digits as it takes.
    used = min(Fraction(epsilon), Fraction(1000))
    with_digits = flint.arb(used.numerator) / used.denominator
    least = 1 / (1 + float(with_digits.exp())) if used <= 700 else 0.0
    assert solution.lp_bound <= least * (1 + 1e-9)
    excess = float(solution.cost) - least
    assert excess >= -1e-15
    if epsilon in HUGE:
        assert excess <= 3e-9
        assert "computed for epsilon 20" in solution.notes[0]
        relative = f"at most {solution.repair:.2g} times that least"
        assert (relative in solution.notes[0]) == (used <= 700)
        if used <= 700:
            assert solution.repair == pytest.approx(excess / least, rel=1e-6)
    else:
        assert excess <= 1e-6 * least
        told = solution.lp_bound * (1 + 1e-6) < float(solution.cost)
        assert (solution.notes != ()) == (Fraction(epsilon) < Fraction(1, 10**6) or told)


@pytest.mark.parametrize("epsilon", ["12.5", "16", "19", "19.5", "20"])
def test_what_the_bound_leaves_open_is_told(epsilon: str) -> None:
    """Where the least cost is near what doubles resolve, so is the proof that it is the least."""
    for scenario in (BIT, NEAR, random_scenario(random.Random(3))):
        solution = channel(scenario, Fraction(epsilon), cost="hamming")
        assert (solution.repair > 1e-6) == (solution.notes != ())
    assert (channel(BIT, Fraction(epsilon), cost="hamming").notes != ()) == (float(epsilon) > 18)


def test_an_excess_over_nothing_is_the_cost_itself() -> None:
    """No relative figure can be had there."""
    solution = channel(BIT, Fraction(10000), cost="absolute", weights=[1, 1])
    assert solution.lp_bound == 0
    assert solution.repair == float(solution.cost) > 0
    assert solution.notes != ()


def test_near_priors_are_not_touched() -> None:
    assert channel(NEAR, Fraction("1e-8")).cost == 0
    assert channel(NEAR, Fraction("1e-8")).notes == ()
    tight = channel(NEAR, Fraction("1e-10"), cost="hamming")
    assert 0 < tight.cost < HALF_ROOM
    assert certify_channel(NEAR, tight.channel, Fraction("1e-10")).holds


HALF_ROOM = Fraction(1, 2) + Fraction(1, 10**9)


@pytest.mark.parametrize("epsilon", ["2", "25", "690", "700"])
def test_values_are_unchanged_where_their_loss_is_small_enough(epsilon: str) -> None:
    """The loss of this column is ln 1e300, about 690.8."""
    prior = Prior.from_mapping(
        {"a": {"x": "1e-300", "y": Fraction(1) - Fraction("1e-300")}, "b": {"x": "1/2", "y": "1/2"}}
    )
    scenario = Scenario(prior)
    solution = channel(scenario, Fraction(epsilon))
    assert certify_channel(scenario, solution.channel, Fraction(epsilon)).holds
    assert (solution.cost == 0) == (epsilon == "700")


def random_scenario(rng: random.Random) -> Scenario:
    """Zeros, tiny masses, near and equal priors, several adversaries, few of the pairs."""
    n, m = rng.choice([1, 2, 3, 4, 6, 9]), rng.choice([2, 2, 3, 5])
    names = [f"s{k}" for k in range(m)]

    def masses() -> list[Fraction]:
        kind = rng.randrange(5)
        one = [
            lambda: Fraction(rng.randint(1, 999)),
            lambda: Fraction(rng.choice([0, 0, 1, 2, 5])),
            lambda: Fraction(rng.choice(["1", "0", "1e-9", "1e-300", "1e-5"])),
            lambda: 1 + Fraction(rng.randint(-9, 9)) / 10 ** rng.choice([3, 7, 12]),
            lambda: Fraction(10) ** rng.randint(-6, 0),
        ][kind]
        row = [one() for _ in range(n)]
        if not any(row):
            row[rng.randrange(n)] = ONE
        return [p / sum(row) for p in row]

    priors = []
    for _ in range(rng.choice([1, 1, 2])):
        rows = [masses() for _ in names]
        if rng.random() < 0.15:
            rows = [rows[0]] * m
        priors.append(
            Prior.from_mapping({s: dict(enumerate(r)) for s, r in zip(names, rows, strict=True)})
        )
    pairs = "all" if rng.random() < 0.5 else [tuple(rng.sample(names, 2))]
    return Scenario(priors, pairs)


def check(seed: int, epsilon: Fraction) -> None:
    rng = random.Random(seed)
    scenario = random_scenario(rng)
    cost = rng.choice(["hamming", "squared", "absolute"])
    solution = channel(scenario, epsilon, cost=cost)
    assert certify_channel(scenario, solution.channel, epsilon).holds
    excess = float(solution.cost) - solution.lp_bound
    assert excess >= -1e-15 * float(solution.cost)
    if epsilon <= 15:
        assert excess <= 1e-6 * float(solution.cost) + 1e-11
    # Costs are at most 64 here.
    if solution.repair > 1e-6 and excess > 64e-15:
        assert solution.notes != ()


@pytest.mark.parametrize("epsilon", [*EPSILONS, *HUGE])
def test_random_scenarios_at_any_epsilon(epsilon: str) -> None:
    for seed in range(6):
        check(seed, Fraction(epsilon))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000))
def test_a_thousand_random_scenarios(seed: int) -> None:
    check(seed, Fraction(random.Random(seed).choice([*EPSILONS, *HUGE])))


@pytest.mark.parametrize("seed", range(40))
def test_conditions_hold_or_are_refused_clearly(seed: int) -> None:
    rng = random.Random(seed)
    scenario = random_scenario(rng)
    epsilon = Fraction(rng.choice(["1e-12", "1e-3", "0.1", "1", "8", "100"]))
    options = {
        "invariant": rng.random() < 0.4,
        "unbiased": rng.random() < 0.3,
        "min_keep": rng.choice([None, None, "0.1", "0.6"]),
    }
    said = "feasible|publishes every value unchanged|larger epsilon|too far from private"
    with suppress_if(said):
        solution = channel(scenario, epsilon, **options)
        assert certify_channel(scenario, solution.channel, epsilon).holds


@contextmanager
def suppress_if(pattern: str) -> Iterator[None]:
    """Let an error pass that says one of these things, and no other."""
    try:
        yield
    except (InputError, PufferfishError) as error:
        if not re.search(pattern, str(error)):
            raise


@pytest.mark.parametrize("seed", range(8))
def test_robust_channels_at_any_epsilon(seed: int) -> None:
    rng = random.Random(seed)
    counts = {s: [rng.choice([0, 1, 30, 200]) for _ in range(3)] + [1] for s in "abc"}
    scenario = Scenario(Prior.from_counts(counts, support=range(4)))
    regions = regions_of(scenario, confidence="0.9")
    for epsilon in (Fraction("1e-10"), Fraction("0.2"), Fraction(50)):
        made = channel(scenario, epsilon, regions=regions).channel
        columns = [[made.probability(x, y) for x in range(4)] for y in range(4)]
        assert certify_robust_columns(scenario, columns, regions, epsilon).holds


def test_the_limit_program_has_the_same_solutions_as_all_its_differences() -> None:
    rng = random.Random(3)
    for _ in range(30):
        scenario = random_scenario(rng)
        n = scenario.support.size
        rows, weights = limit_rows(scenario, 1)
        assert len(rows) == len(weights) < max(n, 2)
        reduced = [[Fraction(0)] * n for _ in rows]
        for k, row in enumerate(rows):
            for x, a in zip(row.columns, row.coefficients, strict=True):
                reduced[k][x] = a
        differences = [
            [prior.probability(i, x) - prior.probability(j, x) for x in range(n)]
            for prior in scenario.priors
            for pair in scenario.pairs
            for i, j in permutations(pair)
        ]
        assert rank(reduced) == len(rows) == rank(differences) == rank(reduced + differences)


def rank(rows: list[list[Fraction]]) -> int:
    if not rows:
        return 0
    matrix = [[flint.fmpq(a.numerator, a.denominator) for a in row] for row in rows]
    return int(flint.fmpq_mat(matrix).rank())


def small_program() -> Program:
    """min x + 3 y, x + y = 1, x <= 2/3 y: x = 2/5, and 11/5."""
    rows = [
        Row([0, 1], [ONE, -Fraction(2, 3)], None, Fraction(0)),
        Row([0, 1], [ONE, ONE], ONE, ONE),
    ]
    return Program((1, 2), np.array([1.0, 3.0]), rows, {}, 1, [ONE])


def test_refinement_adds_the_bits_that_doubles_lack() -> None:
    program = small_program()
    solver = Solver(program)
    solution = solver.solve()
    for bits in (60, 300, 1000):
        x, y = solver.refined(solution, bits)
        assert abs(Fraction(x, 1 << bits) - Fraction(2, 5)) <= Fraction(1 << 10, 1 << bits)
        assert abs(Fraction(y, 1 << bits) - Fraction(3, 5)) <= Fraction(1 << 10, 1 << bits)
    bare = Fraction(float(solution.values[0])) - Fraction(2, 5)
    assert bare != 0  # a double cannot hold it


def test_any_multipliers_bound_the_cost() -> None:
    program = small_program()
    solver = Solver(program)
    solution = solver.solve()
    assert least_cost(program, solver.matrix, solution.duals) == pytest.approx(2.2, rel=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(200):
        assert least_cost(program, solver.matrix, rng.normal(0, 3, 2)) <= 2.2
    assert least_cost(program, solver.matrix, np.array([math.nan, math.inf])) <= 2.2


def test_what_has_no_solution_is_infeasible() -> None:
    program = small_program()
    program.rows.append(Row([0], [ONE], ONE, ONE))
    with pytest.raises(Infeasible):
        Solver(program).solve()


def test_a_failing_solver_leaves_what_is_always_private(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Task, bound: Fraction) -> None:
        raise PufferfishError("out of order")

    monkeypatch.setattr(Task, "solved", fails)
    prior = Prior.from_counts({"a": [5, 3, 9], "b": [1, 7, 2]}, support=range(3))
    scenario = Scenario(prior)
    epsilon = Fraction(1, 2)
    for options in ({}, {"invariant": True}, {"unbiased": True}):
        solution = channel(scenario, epsilon, **options)
        assert certify_channel(scenario, solution.channel, epsilon).holds
        assert "always private" in solution.notes[0]
        assert f"at most {float(solution.cost):.2g}" in solution.notes[0]
    with pytest.raises(PufferfishError, match="out of order"):
        channel(scenario, epsilon, min_keep="0.2")


def test_the_bound_of_a_huge_epsilon_is_its_own() -> None:
    """The duals of epsilon 20 would claim more than is true for epsilon 40."""
    solution = channel(BIT, Fraction(40), cost="hamming")
    assert solution.lp_bound < 1 / (1 + math.exp(40))
    assert exponential_below(LARGEST_EPSILON) < exponential_below(Fraction(40))
