# SPDX-License-Identifier: Apache-2.0
"""The optimal channel: reference costs, exact privacy, and never worse than what is known."""

import math
import subprocess
import sys
from fractions import Fraction
from itertools import combinations, permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import pufferfish.calibration.channel
import pufferfish.calibration.repair
from pufferfish.calibration.channel import channel, exponential_below
from pufferfish.calibration.channel_task import Task
from pufferfish.calibration.conditions import Conditions
from pufferfish.calibration.costs import cost_matrix, expected_cost, weights_of
from pufferfish.calibration.exact import exact
from pufferfish.calibration.outputs import output_alphabet
from pufferfish.certificate import certify_channel
from pufferfish.certificate.robust import certify_robust_columns
from pufferfish.errors import InputError, PufferfishError
from pufferfish.prior import Prior
from pufferfish.regions import regions_of
from pufferfish.robust import columns_loss, extreme_prior
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Levels
from slow import values

# Least costs on the same alphabet, weights the pooled counts; to 9 decimals.
REFERENCE = [
    ("student", "0.1", 0.345353361, 0.345353361),
    ("student", "0.2", 0.191476746, 0.191476746),
    ("student", "0.5", 0.0, 0.0),
    ("bank", "0.1", 0.226083091, 0.175585605),
    ("bank", "0.2", 0.039800318, 0.034424589),
    ("bank", "0.5", 0.0, 0.0),
    ("census", "0.1", 0.432296599, 0.151921635),
    ("census", "0.2", 0.294895371, 0.135357565),
    ("census", "0.5", 0.082272083, 0.074651289),
    ("census", "1.0", 0.011862254, 0.010382039),
]
BIT = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {1: 1}}))
HALF = Fraction(1, 2)


def block(name: str) -> Scenario:
    found = next(b for b in values.BLOCKS if b.name == name)
    counts = {found.pair[0]: list(found.first), found.pair[1]: list(found.second)}
    return Scenario(Prior.from_counts(counts, support=range(len(found.first))))


def slow_loss(scenario: Scenario, rows: np.ndarray, denominators: tuple[int, ...]) -> mpmath.mpf:
    """The loss of a channel of integers, by its definition."""
    largest = mpmath.mpf(0)
    with mpmath.workdps(60):
        for prior in scenario.priors:
            for y in range(rows.shape[1]):
                likelihood = {
                    s: sum(
                        prior.probability(s, x) * Fraction(int(rows[x, y]), denominators[x])
                        for x in range(rows.shape[0])
                    )
                    for s in scenario.protected
                }
                for pair in scenario.pairs:
                    for i, j in permutations(pair):
                        p, q = likelihood[i], likelihood[j]
                        if p == q:
                            continue
                        if q == 0:
                            return mpmath.inf
                        if p > q:
                            ratio = mpmath.mpf(p.numerator) / p.denominator
                            ratio /= mpmath.mpf(q.numerator) / q.denominator
                            largest = max(largest, mpmath.log(ratio))
    return largest


@pytest.mark.parametrize("name, epsilon, squared, hamming", REFERENCE)
def test_reference_costs(name: str, epsilon: str, squared: float, hamming: float) -> None:
    scenario = block(name)
    for cost, expected in (("squared", squared), ("hamming", hamming)):
        solution = channel(scenario, Fraction(epsilon), cost=cost)
        # The references are rounded to nearest at the ninth decimal.
        assert -6e-10 <= float(solution.cost) - expected <= 1e-6 * expected + 6e-10
        assert solution.repair <= 1e-6
        certificate = certify_channel(scenario, solution.channel, Fraction(epsilon))
        assert certificate.holds


def test_census_keeps_most_records() -> None:
    solution = channel(block("census"), Fraction(1, 10), cost="hamming")
    assert 1 - float(solution.cost) == pytest.approx(0.848, abs=5e-4)


def test_a_bit() -> None:
    assert float(channel(BIT, HALF, cost="hamming").cost) == pytest.approx(
        1 / (1 + math.exp(0.5)), rel=1e-12
    )
    costs = [float(channel(BIT, HALF, cost="squared", outputs=k).cost) for k in (1, 3, 9, 39)]
    assert costs == sorted(costs, reverse=True)
    limit = math.exp(0.5) / (1 + math.exp(0.5)) ** 2  # posterior means
    assert limit == pytest.approx(0.2350, abs=5e-5)
    assert all(cost >= limit - 1e-12 for cost in costs)
    assert costs[-1] <= limit * (1 + 1e-3)


def test_a_cost_of_zero_stays_zero() -> None:
    solution = channel(block("student"), HALF)
    assert solution.cost == 0
    assert (np.diag(solution.channel.rows) == np.array(solution.channel.denominators)).all()


def test_the_bound_is_below_and_close() -> None:
    for epsilon in ("1e-12", "1e-6", "0.1", "1", "20"):
        bound = exponential_below(Fraction(epsilon))
        with mpmath.workdps(80):
            e = mpmath.exp(mpmath.mpf(epsilon))
            value = mpmath.mpf(bound.numerator) / bound.denominator
            assert value <= e
            assert (e - value) / (e - 1) < mpmath.mpf(2) ** -100


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[Scenario, Fraction]:
    n, m = draw(st.integers(2, 12)), draw(st.integers(2, 7))
    largest = draw(st.sampled_from((2, 10, 1000)))
    row = st.lists(st.integers(0, largest), min_size=n, max_size=n).filter(any)
    adversaries = draw(st.sampled_from((1, 1, 1, 2)))
    priors = [
        Prior.from_counts({f"s{k}": draw(row) for k in range(m)}, support=range(n))
        for _ in range(adversaries)
    ]
    every = list(combinations([f"s{k}" for k in range(m)], 2))
    pairs = draw(
        st.one_of(st.just(every), st.lists(st.sampled_from(every), min_size=1, unique=True))
    )
    epsilon = draw(st.sampled_from(("0.01", "0.1", "0.5", "1", "3")))
    return Scenario(priors, pairs), Fraction(epsilon)


def lp_bound(scenario: Scenario, epsilon: Fraction, costs: np.ndarray, mu: list) -> float:
    """The optimum of the program, built pair by pair and solved by another front end."""
    n, outputs = costs.shape
    rows = []
    for prior in scenario.priors:
        p = {s: [float(prior.probability(s, x)) for x in range(n)] for s in scenario.protected}
        for pair in scenario.pairs:
            for i, j in permutations(pair):
                for y in range(outputs):
                    row = np.zeros((n, outputs))
                    row[:, y] = np.array(p[i]) - math.exp(epsilon) * np.array(p[j])
                    rows.append(row.ravel())
    objective = (np.array([float(w) for w in mu])[:, None] * costs.astype(float)).ravel()
    sums = np.kron(np.eye(n), np.ones(outputs))
    found = linprog(objective, np.array(rows), np.zeros(len(rows)), sums, np.ones(n))
    assert found.status == 0
    return float(found.fun)


def induced_cost(scenario: Scenario, epsilon: Fraction, costs: np.ndarray, mu: list) -> float:
    """Expected cost of exact discrete Laplace noise, clamped to the range."""
    n = len(mu)
    scale = exact(scenario, epsilon).scale
    if scale == 0:
        return 0.0
    a = math.exp(-1 / scale)
    total = 0.0
    for x, weight in enumerate(mu):
        inner = [(1 - a) / (1 + a) * a ** abs(x - y) for y in range(n)]
        inner[0] = a**x / (1 + a)
        inner[-1] = a ** (n - 1 - x) / (1 + a)
        assert sum(inner) == pytest.approx(1)
        total += float(weight) * sum(float(c) * p for c, p in zip(costs[x], inner, strict=True))
    return total


def randomised_response_cost(epsilon: Fraction, costs: np.ndarray, mu: list) -> float:
    n = len(mu)
    other = 1 / (math.exp(epsilon) + n - 1)
    return sum(
        float(w) * other * sum(float(c) for c in row) for w, row in zip(mu, costs, strict=True)
    )


def check(scenario: Scenario, epsilon: Fraction, cost: str) -> None:
    solution = channel(scenario, epsilon, cost=cost)
    assert certify_channel(scenario, solution.channel, epsilon).holds
    assert (
        slow_loss(scenario, solution.channel.rows, solution.channel.denominators)
        <= mpmath.mpf(epsilon.numerator) / epsilon.denominator
    )
    costs = cost_matrix(scenario.support, scenario.support, cost)
    mu = weights_of(scenario, None)
    found = float(solution.cost)
    least = lp_bound(scenario, epsilon, costs, mu)
    assert found >= least - 1e-7 * max(1.0, least)
    assert found <= least + 1e-6 * max(1.0, least)
    assert found <= induced_cost(scenario, epsilon, costs, mu) + 1e-9
    assert found <= randomised_response_cost(epsilon, costs, mu) + 1e-9


@given(scenarios(), st.sampled_from(("hamming", "squared", "absolute")))
def test_private_optimal_and_never_worse(case: tuple[Scenario, Fraction], cost: str) -> None:
    check(*case, cost)


@pytest.mark.slow
@settings(max_examples=1000)
@given(scenarios(), st.sampled_from(("hamming", "squared")))
def test_private_optimal_and_never_worse_a_thousand_times(
    case: tuple[Scenario, Fraction], cost: str
) -> None:
    check(*case, cost)


@given(scenarios())
def test_invariant_channels_keep_the_frequencies(case: tuple[Scenario, Fraction]) -> None:
    scenario, epsilon = case
    solution = channel(scenario, epsilon, invariant=True)
    assert certify_channel(scenario, solution.channel, epsilon).holds
    mu = weights_of(scenario, None)
    matrix = solution.channel.matrix
    expected = np.array([float(w) for w in mu])
    assert np.abs(expected @ matrix - expected).max() <= 1e-9


def test_unbiased_channels() -> None:
    for epsilon in ("0.2", "0.5", "2"):
        solution = channel(BIT, Fraction(epsilon), cost="squared", unbiased=True)
        outputs = solution.channel.outputs
        assert isinstance(outputs, Lattice)
        means = solution.channel.matrix @ np.array([float(v) for v in outputs.values])
        assert np.abs(means - [0, 1]).max() <= 1e-9
        assert certify_channel(BIT, solution.channel, Fraction(epsilon)).holds


def test_min_keep() -> None:
    solution = channel(block("census"), Fraction(1, 2), min_keep="0.55")
    assert np.diag(solution.channel.matrix).min() >= 0.55 - 1e-9
    # e^0.5 / (1 + e^0.5) = 0.62246.
    with pytest.raises(InputError, match=r"with min_keep 0\.6224 or less, or with a larger"):
        channel(BIT, HALF, min_keep=0.7)
    with pytest.raises(InputError, match="between 0 and 1"):
        channel(BIT, HALF, min_keep=1.5)


def test_levels_need_no_order_for_hamming() -> None:
    prior = Prior.from_mapping({"a": {"x": ".9", "y": ".1"}, "b": {"x": ".1", "y": ".9"}})
    solution = channel(Scenario(prior), HALF)
    assert solution.channel.outputs == Levels(("x", "y"))
    with pytest.raises(InputError, match="order"):
        channel(Scenario(prior), HALF, cost="squared")


def test_own_cost_matrices() -> None:
    prior = Prior.from_mapping({"a": {"x": ".9", "y": ".1"}, "b": {"x": ".1", "y": ".9"}})
    scenario = Scenario(prior)
    mapping = {"x": {"x": 0, "y": 2}, "y": {"x": "0.5", "y": 0}}
    assert float(channel(scenario, HALF, cost=mapping).cost) <= 2 * float(
        channel(scenario, HALF).cost
    )
    for wrong, message in (
        ([[0, 1]], "2 rows of 2"),
        ([[0, -1], [1, 0]], "negative"),
        ({"x": {"x": 0}, "y": {}}, "the row of 'x' in the cost matrix has no entry for 'y'"),
        ({"x": {"x": 0}}, "no row for 'y'"),
        ({"z": {}}, "no row for 'x'"),
        ("hammin", "did you mean 'hamming'"),
    ):
        with pytest.raises(InputError, match=message):
            channel(scenario, HALF, cost=wrong)
    with pytest.raises(InputError, match="weights"):
        channel(scenario, HALF, weights=[1])


def test_finer_outputs() -> None:
    support = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {3: 1}})).support
    for asked in (2, "fine:2", " Fine: 2", np.int64(2)):
        lattice = output_alphabet(support, asked)
        assert isinstance(lattice, Lattice)
        assert lattice.values == (0, 1, 2, 3)
    for wrong in (0, -1, 1.5, True, "fine:0", "fine", "fine:-1", [1]):
        with pytest.raises(InputError, match="finer outputs"):
            output_alphabet(support, wrong)
    for wrong in ("fin:3", "3", "fine=3"):
        with pytest.raises(InputError, match="did you mean 'fine:3'"):
            output_alphabet(support, wrong)
    with pytest.raises(InputError, match="ask for fewer"):
        output_alphabet(support, 10**9)
    far = Prior.from_mapping({"a": {0: 1}, "b": {2**52: 1}}).support
    with pytest.raises(InputError, match=r"more than 2\*\*53 cells"):
        output_alphabet(far, 6)
    with pytest.raises(InputError, match="have none"):
        output_alphabet(Levels(("x", "y")), 1)


def test_a_channel_that_is_not_private_is_repaired_and_the_mutant_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutant: the solver's answer is rounded to integers and believed."""
    scenario = block("census")
    epsilon = Fraction(1, 10)
    honest = channel(scenario, epsilon)
    assert certify_channel(scenario, honest.channel, epsilon).holds
    monkeypatch.setattr(
        pufferfish.calibration.repair, "_needed", lambda scenario, rows, bound: [0] * rows.shape[1]
    )
    believed = channel(scenario, epsilon)
    assert not certify_channel(scenario, believed.channel, epsilon).holds


def test_a_hopeless_answer_is_an_error() -> None:
    identity = {(x, x): Fraction(1) for x in range(2)}
    with pytest.raises(PufferfishError, match="too far"):
        pufferfish.calibration.repair.repaired(BIT, identity, (2, 2), exponential_below(HALF), 64)


def test_expected_cost_is_exact() -> None:
    rows = np.array([[3, 1], [0, 4]], dtype=object)
    costs = np.array([[0, 1], [1, 0]], dtype=object)
    assert expected_cost(rows, [4, 4], costs, [HALF, HALF]) == Fraction(1, 8)
    rows[1] = [0, 8]
    assert expected_cost(rows, [4, 8], costs, [HALF, HALF]) == Fraction(1, 8)


@given(scenarios(), st.sampled_from(("0.9", "0.99")))
def test_robust_channels_hold_for_every_prior_of_the_region(
    case: tuple[Scenario, Fraction], confidence: str
) -> None:
    scenario, epsilon = case
    regions = regions_of(scenario, confidence=confidence)
    solution = channel(scenario, epsilon, regions=regions)
    plain = channel(scenario, epsilon)
    assert float(solution.cost) >= float(plain.cost) * (1 - 1e-9)
    assert solution.repair <= 1e-6
    assert columns_loss(scenario, regions, solution.channel.matrix.T) <= float(epsilon) * (1 + 1e-9)
    columns = [
        [solution.channel.probability(x, y) for x in range(solution.channel.inputs.size)]
        for y in range(solution.channel.outputs.size)
    ]
    assert certify_robust_columns(scenario, columns, regions, epsilon).holds


@given(scenarios(), st.sampled_from(("0", "0.01", "0.3")))
def test_robust_channels_in_total_variation(case: tuple[Scenario, Fraction], radius: str) -> None:
    scenario, epsilon = case
    regions = regions_of(scenario, tv_radius=radius)
    solution = channel(scenario, epsilon, cost="squared", regions=regions)
    columns = [
        [solution.channel.probability(x, y) for x in range(solution.channel.inputs.size)]
        for y in range(solution.channel.outputs.size)
    ]
    assert certify_robust_columns(scenario, columns, regions, epsilon).holds
    if radius == "0":
        plain = channel(scenario, epsilon, cost="squared")
        assert float(solution.cost) == pytest.approx(float(plain.cost), rel=1e-7, abs=1e-12)


def test_the_dual_agrees_with_cutting_planes() -> None:
    """The optimum of an independent method: worst priors added one by one as constraints."""
    rng = np.random.default_rng(5)
    counts = {s: rng.integers(0, 60, 5) for s in "abc"}
    scenario = Scenario(Prior.from_counts(counts, support=range(5)))
    regions = regions_of(scenario, confidence="0.9")
    solution = channel(scenario, HALF, cost="hamming", regions=regions)
    n = 5
    mu = np.array([float(w) for w in weights_of(scenario, None)])
    objective = (mu[:, None] * (1 - np.eye(n))).ravel()
    sums = np.kron(np.eye(n), np.ones(n))
    rows: list[np.ndarray] = []
    for _ in range(200):
        found = linprog(
            objective, np.array(rows) if rows else None, np.zeros(len(rows)) if rows else None,
            sums, np.ones(n),
        )  # fmt: skip
        matrix = np.clip(found.x.reshape(n, n), 0, None)
        before = len(rows)
        for i, j in permutations(range(3), 2):
            for y in range(n):
                high = extreme_prior(regions[0], i, matrix[:, y].tolist(), largest=True)
                low = extreme_prior(regions[0], j, matrix[:, y].tolist(), largest=False)
                cut = np.array([float(p) for p in high]) - math.exp(0.5) * np.array(
                    [float(p) for p in low]
                )
                if cut @ matrix[:, y] > 1e-9:
                    row = np.zeros((n, n))
                    row[:, y] = cut
                    rows.append(row.ravel())
        if len(rows) == before:
            break
    assert float(solution.cost) == pytest.approx(found.fun, rel=1e-6)


def test_the_solver_prints_nothing() -> None:
    """A banner on standard output would break what a program reads there."""
    code = (
        "from fractions import Fraction\n"
        "from pufferfish import Prior, Scenario\n"
        "from pufferfish.calibration.channel import channel\n"
        "channel(Scenario(Prior.from_mapping({'a': {0: 1}, 'b': {1: 1}})), Fraction(1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == ""
    assert done.stderr == ""


def test_side_conditions_that_are_missed_are_an_error() -> None:
    rows = {"s0": [84, 55, 1, 81, 0], "s1": [1, 1, 1, 14, 20]}
    scenario = Scenario(Prior.from_counts(rows, support=range(5)))
    honest = channel(scenario, HALF, invariant=True)
    conditions = Conditions(invariant=True)
    mu = weights_of(scenario, None)
    assert conditions.missed_by(honest.channel, mu) <= Fraction(1, 10**9)
    plain = channel(scenario, HALF)
    assert conditions.missed_by(plain.channel, mu) > Fraction(1, 100)
    assert Conditions(unbiased=True).missed_by(plain.channel, mu) > Fraction(1, 100)
    assert Conditions(min_keep=Fraction(1)).missed_by(plain.channel, mu) > Fraction(1, 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conditions, "add_to", lambda *_: None)
        patch.setattr(Task, "simplest", lambda _: None)
        with pytest.raises(PufferfishError, match="met only to"):
            channel(scenario, HALF, invariant=True)
