# SPDX-License-Identifier: Apache-2.0
"""Channels that are best for estimates: reference values, exact privacy, sets, labels, numbers."""

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings

from channel_checks import channel_of, claims, entries, is_private, phi, scenarios
from pufferfish import Plan, calibrate, certify
from pufferfish.calibration import best_for as module
from pufferfish.calibration import channel_repair, design
from pufferfish.calibration.best_for import best_for
from pufferfish.calibration.channel import channel
from pufferfish.calibration.exact import exact
from pufferfish.calibration.root import Proposal
from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms import Channel
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

REFERENCE = json.loads(Path(__file__).with_name("estimates.json").read_text(encoding="utf-8"))
HALF = Fraction(1, 2)


def scenario_of(case: Any, **region: Any) -> Scenario:
    counts = dict(zip(case["secrets"], case["counts"][0], strict=True))
    prior = Prior.from_counts(counts, support=case["levels"])
    return Scenario(prior.with_region(**region) if region else prior)


def least_kept(found: Proposal) -> Fraction:
    both = channel_of(found).then(found.labels)
    return min(both.probability(x, x) for x in range(both.inputs.size))


@pytest.mark.parametrize(
    "case", REFERENCE, ids=lambda case: f"{case['name'][:12]} {case['epsilon']}"
)
def test_reference(case: Any) -> None:
    what = case["objective"]
    if what == "weighted":
        what = np.diag(np.sqrt(case["D"])).tolist()
    found = best_for(
        scenario_of(case), Fraction(case["epsilon"]), what, weights=case.get("weights")
    )
    bound = claims(found).bound
    assert -1e-9 <= float(found.cost) / case["optimum"] - 1 <= 1e-6
    assert 1 - 3e-6 <= bound / case["optimum"] <= 1
    assert certify(scenario_of(case), found.mechanism, case["epsilon"]).holds


def test_census_keeps_its_labels() -> None:
    census = scenario_of(REFERENCE[0])
    plan = calibrate(census, "0.1", "channel")
    assert plan.distortion is not None
    assert plan.distortion.cost_name == "frequencies"
    assert plan.cost is not None
    assert plan.cost - 1 <= 2.617
    free = best_for(census, Fraction(1, 10))
    assert least_kept(free) >= Fraction(63, 100)
    more = best_for(census, Fraction(1, 10), min_keep="0.64")
    assert least_kept(more) >= Fraction(64, 100)
    noise = float(more.cost - 1) / float(free.cost - 1)
    assert 1.01 < noise < 1.02
    assert claims(more).gap < 1e-5 * float(more.cost)
    with pytest.raises(InputError, match=r"at most min_keep=0\.64"):
        best_for(census, Fraction(1, 10), min_keep="0.645")


@pytest.mark.parametrize("epsilon, most", [("0.1", 6.185), ("0.5", 0.3052), ("1", 0.0599)])
def test_census_for_all_priors_of_a_region(epsilon: str, most: float) -> None:
    region = scenario_of(REFERENCE[0], confidence="0.95")
    found = best_for(region, Fraction(epsilon))
    assert found.cost - 1 <= most
    assert certify(region, found.mechanism, epsilon).holds
    point = best_for(scenario_of(REFERENCE[0]), Fraction(epsilon))
    bound = claims(found).bound
    assert bound == pytest.approx(float(point.cost), rel=1e-7)
    assert "region" in found.notes[0]


# --- Any scenario -------------------------------------------------------------------------------

BOX = {"confidence": "0.9", "region": "box"}


def check(scenario: Scenario, epsilon: Fraction) -> None:
    """Private by the engine and by definition; no worse than what else is known."""
    found = best_for(scenario, epsilon)
    made, mu, n = found.mechanism, found.weights, scenario.support.size
    assert isinstance(made, Channel)
    assert is_private(scenario, made, epsilon)
    assert certify(scenario, made, epsilon).holds
    objective = float(found.cost)
    assert objective >= 1
    assert objective == pytest.approx(phi(entries(made), mu), rel=1e-6)
    bound = claims(found).bound
    assert bound is not None
    assert scenario.has_region or objective - bound <= 1e-6 * objective
    response = np.ones((n, n)) + math.expm1(epsilon) * np.eye(n)
    scale = exact(scenario, epsilon).scale
    others = [response / response.sum(axis=1), clamped_laplace(n, float(scale))]
    for min_keep in ("0.1", "0.3", "0.5", "0.7", "0.9"):
        try:
            kept = channel(scenario, epsilon, cost="hamming", min_keep=min_keep).mechanism
        except (InputError, PufferfishError):
            break
        others.append(entries(kept))
    for other in others:
        reached = phi(other, mu)
        assert bound <= reached * (1 + 1e-9)
        assert scenario.has_region or objective <= reached * (1 + 1e-6)


def clamped_laplace(n: int, theta: float) -> Any:
    """Discrete Laplace noise of a scale, clamped to 0 ... n - 1."""
    if not theta:
        return np.eye(n)
    a, places = math.exp(-1 / theta), np.arange(n)
    # P(x + noise <= y), and all beyond the last y.
    below = a ** np.clip(places[:, None] - places, 0, None) / (1 + a)
    beyond = a ** np.clip(places - places[:, None] + 1, 0, None) / (1 + a)
    up_to = np.where(places[:, None] > places, below, 1 - beyond)
    up_to[:, -1] = 1
    return np.diff(up_to, axis=1, prepend=0)


@given(scenarios(values=6, secrets=4, rules=({},)))
@settings(max_examples=40)
def test_random_scenarios(drawn: tuple[Scenario, Fraction]) -> None:
    check(*drawn)


@given(scenarios(values=3, secrets=3, rules=(BOX, {"tv_radius": "0.1"})))
@settings(max_examples=4)
def test_random_regions(drawn: tuple[Scenario, Fraction]) -> None:
    check(*drawn)


@pytest.mark.slow
@given(scenarios(values=7, secrets=4, rules=({},)))
@settings(max_examples=1000)
def test_many_random_scenarios(drawn: tuple[Scenario, Fraction]) -> None:
    check(*drawn)


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 300), marks=pytest.mark.slow)])
def test_relabelling_changes_nothing(seeds: Sequence[int]) -> None:
    for seed in seeds:
        relabelled(random.Random(seed))


def relabelled(rng: random.Random) -> None:
    n, secrets = rng.randint(2, 6), rng.randint(2, 3)
    counts = [[rng.randint(0, 50) + (x == 0) for x in range(n)] for _ in range(secrets)]
    order, names = rng.sample(range(n), n), list("abcdef")[:n]
    moved = [[row[x] for x in order] for row in counts]
    whole = []
    for rows in (counts, moved[::-1]):
        prior = Prior.from_counts({f"s{k}": row for k, row in enumerate(rows)}, support=names)
        whole.append(best_for(Scenario(prior), HALF))
    assert float(whole[0].cost) == pytest.approx(float(whole[1].cost), rel=1e-6)
    assert float(least_kept(whole[0])) == pytest.approx(float(least_kept(whole[1])), abs=1e-3)


# --- What breaks a naive version ----------------------------------------------------------------


def test_a_mean_of_values_around_0() -> None:
    """x = (-1, 0, 1): steps by the values themselves would be 0/0."""
    scenario = Scenario(Prior.from_counts({"a": [5, 3, 2], "b": [2, 3, 5]}, support=[-1, 0, 1]))
    shifted = Scenario(Prior.from_counts({"a": [5, 3, 2], "b": [2, 3, 5]}, support=[9, 10, 11]))
    found, moved = (best_for(each, HALF, "mean") for each in (scenario, shifted))
    assert float(found.cost + 100) == pytest.approx(float(moved.cost), rel=1e-7)
    both = [
        best_for(Scenario(Prior.from_counts({"a": [30, 20, 7], "b": [10, 20, 1]},
                                            support=[at, at + 1, at + 5])), HALF, "both")
        for at in (0, 2000, 10**15)
    ]  # fmt: skip
    assert both[0].mechanism.rows.tolist() == both[1].mechanism.rows.tolist()
    assert both[0].mechanism.rows.tolist() == both[2].mechanism.rows.tolist()
    own = best_for(scenario, HALF, [-1, 0, 1])
    assert float(own.cost) == pytest.approx(float(found.cost), rel=1e-6)
    assert own.labels is not None


@pytest.mark.parametrize("support", [[-1, 0, 1], [0, 40, 10**9], ["0.25", "0.5", 7]])
@pytest.mark.parametrize("epsilon", ["1e-5", "0.5", "8"])
def test_published_numbers_average_to_the_value(support: list[Any], epsilon: str) -> None:
    scenario = Scenario(Prior.from_counts({"a": [5, 3, 2], "b": [2, 3, 5]}, support=support))
    found = best_for(scenario, Fraction(epsilon), "mean")
    made = found.mechanism
    assert isinstance(made, Channel)
    assert found.labels is None
    values, outputs = scenario.lattice.values, made.outputs.values
    for x, value in enumerate(values):
        mean = sum(made.probability(x, y) * g for y, g in enumerate(outputs))
        assert abs(mean - value) <= (values[-1] - values[0]) * Fraction(1, 10**9)
    assert certify(scenario, made, epsilon).holds


@pytest.mark.parametrize("origin, span", [(10**9, 5), (10**12, 5), (-(10**14), 9)])
def test_numbers_of_large_values_fit_64_bits(origin: int, span: int) -> None:
    """Their mean is as near as their decimals are: they are finer where values are small."""
    values = [origin, origin + 1, origin + span]
    rows = {"s": ["a"] * 10 + ["b"] * 10, "x": [values[x] for x in [0] * 5 + [1] * 9 + [2] * 6]}
    prior = Prior.from_table(pa.table(rows), secret="s", public="x", missing=[])
    made = calibrate(prior, HALF, "channel", best_for="mean").channel
    assert made is not None
    step = made.outputs.step
    for x, value in enumerate(values):
        mean = sum(made.probability(x, y) * g for y, g in enumerate(made.outputs.values))
        assert abs(mean - value) <= max(step, Fraction(span, 10**9))
    wide = Scenario(Prior.from_counts({"a": [5, 3], "b": [2, 3]}, support=[0, 10**15]))
    with pytest.raises(InputError, match=r"a coarser step \(--step\)"):
        best_for(wide, Fraction(1, 10**6), "mean")


@pytest.mark.parametrize("statistics", ["frequencies", "mean", "cdf"])
@pytest.mark.parametrize("epsilon", ["1e-6", "1e-3", "1"])
def test_the_objective_is_exact(epsilon: str, statistics: str) -> None:
    """For a small epsilon J is 1 to the precision of doubles; the bound is lower by as much."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n, counts = 4 + seed, {s: rng.integers(1, 60, 4 + seed) for s in "abc"}
        found = best_for(
            Scenario(Prior.from_counts(counts, support=range(n))), Fraction(epsilon), statistics
        )
        m, mu = entries(channel_of(found)), found.weights
        q = [sum(w * row[y] for w, row in zip(mu, m, strict=True)) for y in range(len(m[0]))]
        j = fmpq_mat([[fmpq(*sum(a * b / c for a, b, c in zip(left, right, q, strict=True))
                            .as_integer_ratio()) for right in m] for left in m])  # fmt: skip
        f = {"frequencies": np.eye(n, dtype=int), "cdf": np.triu(np.ones((n, n), dtype=int)),
             "mean": np.arange(n)[:, None]}[statistics]  # fmt: skip
        f = fmpq_mat([[fmpq(v) for v in row] for row in f.tolist()])
        exact = sum((f.transpose() * j.solve(f))[k, k] for k in range(f.ncols()))
        ratio = found.cost / Fraction(int(exact.p), int(exact.q))
        assert 1 <= ratio <= 1 + Fraction(1, 10**11)
        assert claims(found).bound < found.cost


def test_both_are_nearly_best() -> None:
    case = next(case for case in REFERENCE if case["objective"] == "mean")
    scenario, epsilon = scenario_of(case), Fraction(case["epsilon"])
    both = best_for(scenario, epsilon, "both")
    x = [[float(v)] for v in scenario.lattice.values]
    mu = [float(w) for w in both.weights]
    sampling = sum(w * v[0] ** 2 for w, v in zip(mu, x, strict=True))
    assert phi(entries(both.mechanism), mu) - 1 <= 2 * 2.2015
    assert phi(entries(both.mechanism), mu, x) - sampling <= 2 * 145.63


def test_a_ray_without_a_direction_inwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The priors are the permutations of (1/2, 1/4, 1/4), and E = 3/2: (1, 1, 0) is a ray."""
    monkeypatch.setattr(module, "exponential_below", lambda _: Fraction(3, 2))
    rows = {f"s{k}": list(p) for k, p in enumerate(sorted(set(permutations((2, 1, 1)))))}
    scenario = Scenario(Prior.from_counts(rows, support=["x", "y", "z"]))
    found = best_for(scenario, Fraction("0.41"))
    assert is_private(scenario, channel_of(found), Fraction("0.4054651081081644"))


@pytest.mark.parametrize("epsilon", ["1e-6", "1e-4", "20", "21", "1e6"])
def test_any_epsilon(epsilon: str) -> None:
    counts = {"a": [5, 3, 2, 0], "b": [2, 3, 5, 1]}
    scenario = Scenario(Prior.from_counts(counts, support=list("wxyz")))
    found = best_for(scenario, Fraction(epsilon))
    assert certify(scenario, found.mechanism, epsilon).holds
    bound = claims(found).bound
    if float(epsilon) > 20:
        assert bound is None
        assert "epsilon 20" in found.notes[0]
        assert claims(found).gap == math.inf
    else:
        assert float(found.cost) <= bound * (1 + 1e-3)
    with pytest.raises(InputError, match="at least 1e-6"):
        best_for(scenario, Fraction("9e-7"))


def test_values_that_nobody_has_are_published_as_themselves() -> None:
    counts = {"a": [5, 0, 2, 0], "b": [2, 0, 5, 0], "c": [1, 1, 1, 0]}
    scenario = Scenario(Prior.from_counts(counts, support=list("wxyz")), [("a", "b")])
    plan = calibrate(scenario, HALF, "channel")
    assert plan.channel is not None
    names = channel_of(plan).outputs.names
    for x, name in ((1, "{x}"), (3, "{z}")):
        assert plan.channel.probability(x, names.index(name)) > 1 - Fraction(1, 10**9)


def test_a_column_of_a_region_that_no_ray_lies_within() -> None:
    counts = {"a": [1, 21, 3, 11, 19, 16], "b": [4, 0, 0, 1, 0, 9]}
    region = Scenario(Prior.from_counts(counts, support=range(6), confidence="0.95"))
    found = best_for(region, HALF)
    assert is_private(region, channel_of(found), HALF)


def test_three_secrets_with_regions() -> None:
    counts = {"a": [7, 3, 0], "b": [3, 2, 0], "c": [1, 2, 0]}
    for rule in ({"confidence": "0.9"}, {"tv_radius": "0.05"}, {"tv_radius": 1}):
        prior = Prior.from_counts(counts, support=[1, 2, 3]).with_region(**rule)
        for what in ("frequencies", "mean"):
            found = best_for(Scenario(prior), HALF, what)
            assert is_private(Scenario(prior), channel_of(found), HALF)
    one = Prior.from_counts({"a": [7], "b": [3]}, support=[5]).with_region(confidence="0.9")
    assert best_for(Scenario(one), HALF).cost == pytest.approx(1)


def test_alike_priors_and_single_values_need_no_channel() -> None:
    same = Prior.from_mapping({"a": {"x": "1/3", "y": "2/3"}, "b": {"x": "1/3", "y": "2/3"}})
    plan = calibrate(Scenario(same), "0.1", "channel", min_keep=1)
    assert plan.keep_rate == 1
    assert plan.loss == 0
    assert plan.channel is not None
    assert channel_of(plan).outputs.names == ("{x}", "{y}")
    alike = Scenario(Prior.from_counts({"a": [5, 5], "b": [3, 3]}, support=[1, 2]))
    assert float(best_for(alike, HALF, "both").cost) == pytest.approx(3.5, rel=1e-6)


# --- Outputs and options ------------------------------------------------------------------------


def test_outputs_with_one_set_have_names_of_their_own() -> None:
    pupils = scenario_of(REFERENCE[3])
    plan = calibrate(pupils, "0.1", "channel", best_for="frequencies")
    assert plan.channel is not None
    assert channel_of(plan).outputs.names == ("{*}", "{*} 2", "{*} 3")
    counts = {"a": [5, 3, 1], "b": [1, 3, 5]}
    odd = Scenario(Prior.from_counts(counts, support=["{*}", "x", "y"]))
    with pytest.raises(InputError, match=r"the level '\{\*\}' has the name of a set"):
        calibrate(odd, HALF, "channel", best_for="frequencies")


def test_min_keep_of_many_rays_is_met_by_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    census = scenario_of(REFERENCE[0])
    exact = best_for(census, Fraction(1, 10), min_keep="0.64")
    monkeypatch.setattr(design, "MOST_NEWTON", 50)
    some = best_for(census, Fraction(1, 10), min_keep="0.64")
    assert least_kept(some) >= Fraction(64, 100)
    assert exact.cost < some.cost < exact.cost * Fraction("1.1")
    assert claims(some).bound <= exact.cost


def test_min_keep_with_regions_and_of_many_levels() -> None:
    region = scenario_of(REFERENCE[0], confidence="0.95")
    free = best_for(region, HALF)
    wanted = least_kept(free) + Fraction(1, 500)
    more = best_for(region, HALF, min_keep=wanted)
    assert least_kept(more) >= wanted
    assert free.cost < more.cost < free.cost * Fraction("1.1")
    assert is_private(region, channel_of(more), HALF)
    counts = {"a": [3 + x % 7 for x in range(36)], "b": [9 - x % 5 for x in range(36)]}
    levels = Scenario(Prior.from_counts(counts, support=[f"v{x}" for x in range(36)]))
    free = best_for(levels, HALF)
    wanted = least_kept(free) + Fraction(1, 50)
    many = best_for(levels, HALF, min_keep=wanted)
    assert least_kept(many) >= wanted
    assert free.cost < many.cost * Fraction("1.01")


@pytest.mark.parametrize("seeds", [[5, 50, 56], pytest.param(range(300), marks=pytest.mark.slow)])
def test_what_a_refusal_advises_is_accepted(seeds: Sequence[int]) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, secrets = int(rng.integers(2, 7)), int(rng.integers(2, 5))
        counts = {
            f"s{k}": rng.integers(0, 60, n) * (rng.random(n) < 0.85) + (np.arange(n) == 0)
            for k in range(secrets)
        }
        epsilon = Fraction(str(rng.choice(["0.1", "0.5", "1", "0.02", "3"])))
        scenario = Scenario(Prior.from_counts(counts, support=[f"v{x}" for x in range(n)]))
        try:
            best_for(scenario, epsilon, min_keep=1)
        except InputError as error:
            advised = str(error).split("at most min_keep=")[1].split()[0]
            found = best_for(scenario, epsilon, min_keep=advised)
            assert least_kept(found) >= Fraction(advised)
            assert claims(found).bound <= found.cost


def test_defaults_and_options_that_clash() -> None:
    levels = Scenario(Prior.from_counts({"a": [5, 3], "b": [1, 3]}, support=["x", "y"]))
    numbers = Scenario(Prior.from_counts({"a": [5, 3], "b": [1, 3]}, support=[1, 2]))

    def name(plan: Plan) -> str | None:
        return plan.distortion and plan.distortion.cost_name

    assert name(calibrate(levels, HALF)) == "frequencies"
    assert name(calibrate(levels, HALF, best_for="kept")) == "hamming"
    assert name(calibrate(levels, HALF, invariant=True)) == "hamming"
    assert name(calibrate(numbers, HALF, "channel")) == "squared"
    assert name(calibrate(numbers, HALF, cost="absolute")) == "absolute"
    assert name(calibrate(numbers, HALF, unbiased=True)) == "squared"
    assert calibrate(numbers, HALF).mechanism == "exact"
    assert name(calibrate(numbers, HALF, "channel", best_for="both")) == "both"
    assert name(calibrate(numbers, HALF, "channel", best_for={1: [1], 2: [5]})) == "own statistics"
    for options, message in (
        ({"best_for": "mean"}, "'mean'.*needs numbers or levels with an order"),
        ({"best_for": "frequncies"}, "did you mean 'frequencies'"),
        ({"best_for": [[1]]}, "or a matrix of 2 rows"),
        ({"best_for": [[1], [1, 2]]}, "or a matrix of 2 rows"),
        ({"best_for": [0, 0]}, "all 0"),
        ({"best_for": 3}, "or a matrix of 2 rows"),
        ({"best_for": {1, 2}}, "or a matrix of 2 rows"),
        ({"best_for": b"ab"}, "or a matrix of 2 rows"),
        ({"best_for": "frequencies", "cost": "hamming"}, "for best_for='kept' only"),
        ({"best_for": "cdf", "unbiased": True}, "for best_for='kept' only"),
    ):
        with pytest.raises(InputError, match=message):
            calibrate(levels, HALF, "channel", **options)
    with pytest.raises(InputError, match="best_for: for the mechanism channel only"):
        calibrate(numbers, HALF, "exact", best_for="mean")
    with pytest.raises(InputError, match="min_keep is about labels"):
        calibrate(numbers, HALF, "channel", best_for="mean", min_keep=HALF)


@pytest.mark.parametrize("scale", ["1e-200", "1e-9", "1e100"])
def test_own_statistics_of_any_size(scale: str) -> None:
    levels = Scenario(Prior.from_counts({"a": [5, 3, 1], "b": [1, 3, 4]}, support=list("xyz")))
    plain, scaled = (
        best_for(levels, HALF, [[Fraction(scale) ** k * v] for v in (1, 2, 4)]) for k in (0, 1)
    )
    assert scaled.cost == plain.cost * Fraction(scale) ** 2
    assert channel_of(scaled).rows.tolist() == channel_of(plain).rows.tolist()


# --- Mutants ------------------------------------------------------------------------------------


def test_mutant_columns_that_are_not_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    census = scenario_of(REFERENCE[0])
    monkeypatch.setattr(module, "narrower", lambda cone, _: cone)
    monkeypatch.setattr(channel_repair, "needed_mixture", lambda _, columns: 0 * columns[0])
    careless = best_for(census, Fraction(1, 10)).mechanism
    assert not is_private(census, careless, Fraction(1, 10))


def test_mutant_a_wrong_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    census, honest = scenario_of(REFERENCE[0]), module.exponential_below
    monkeypatch.setattr(
        module, "exponential_below", lambda e: honest(e) * (1 + Fraction(1, 10**12))
    )
    wrong = best_for(census, Fraction(1, 10)).mechanism
    assert not certify(census, wrong, "0.1").holds
    with pytest.raises(PufferfishError, match="could not be proved"):
        calibrate(census, "0.1", "channel")
