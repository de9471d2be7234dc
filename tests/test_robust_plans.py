# SPDX-License-Identifier: Apache-2.0
"""Robust plans: certified at once, for corner cases too, and what they promise kept by priors."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.calibration import certified
from pufferfish.calibration.exact import exact
from pufferfish.calibration.robust_exact import robust_exact
from pufferfish.certificate import Certificate, certify, certify_channel, prove
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.paper.sources import block
from pufferfish.regions import Box, Concrete, regions_of
from pufferfish.robust import extreme_prior, extreme_values

EPSILONS = ["1e-15", "1e-9", "0.001", "0.1", "0.5", "1", "5", "50", "700"]
RULES = [
    {"confidence": "0.5"},
    {"confidence": "0.95"},
    {"confidence": "0.999999"},
    {"tv_radius": "0"},
    {"tv_radius": "1e-12"},
    {"tv_radius": "1/7"},
    {"tv_radius": "1"},
    {},
]


def random_scenario(rng: np.random.Generator) -> pf.Scenario:
    """2 to 7 secrets, 1 to 12 values, one or two adversaries; some levels were never seen."""
    m, n = int(rng.integers(2, 8)), int(rng.integers(1, 13))
    support = np.cumsum(rng.choice([1, 1, 2, 7, 50], size=n))
    names = [f"s{s}" for s in range(m)]
    priors = []
    for _ in range(int(rng.integers(1, 3))):
        rows, counts = int(rng.choice([5, 50, 5000, 10**12])), {}
        for name in names:
            p = rng.dirichlet(np.full(n, rng.choice([0.1, 1, 10])))
            counts[name] = [int(v) for v in np.floor(p * rows)]
            counts[name][int(rng.integers(n))] += 1
        prior = pf.Prior.from_counts(counts, support=support)
        priors.append(prior.with_region(**RULES[int(rng.integers(len(RULES)))]))
    every = [(a, b) for a in names for b in names if a < b]
    one = [every[int(rng.integers(len(every)))]]
    return pf.Scenario(priors, "all" if rng.random() < 0.5 else one)


def scenarios(number: int) -> Iterator[tuple[pf.Scenario, str]]:
    rng = np.random.default_rng(31)
    for _ in range(number):
        yield random_scenario(rng), str(rng.choice(EPSILONS))


def few_tries(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    tries = []

    def counted(*arguments: object) -> Certificate:
        certificate = prove(*arguments)
        tries.append(certificate)
        return certificate

    monkeypatch.setattr(certified, "prove", counted)
    for scenario, epsilon in scenarios(number):
        tries.clear()
        plan = pf.calibrate(scenario, epsilon, "exact")
        assert plan.certificate.holds
        assert not plan.notes
        assert len(tries) <= 2
        if plan.scale:
            regions = regions_of(scenario)
            less = DiscreteLaplace(plan.scale * (1 - 1e-8), scenario.lattice.step)
            assert not prove(scenario, less, Fraction(epsilon), regions).holds


def test_calibrate_proves_the_scale_in_two_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    few_tries(monkeypatch, 25)


@pytest.mark.slow
def test_calibrate_proves_the_scale_in_two_tries_often(monkeypatch: pytest.MonkeyPatch) -> None:
    few_tries(monkeypatch, 300)


def test_radius_0_is_exact_and_radius_1_is_the_diameter() -> None:
    for scenario, epsilon in scenarios(15):
        budget = Fraction(epsilon)
        plain = exact(scenario, budget).scale
        point = robust_exact(scenario, budget, regions_of(scenario, tv_radius=0)).scale
        assert point == pytest.approx(plain, rel=1e-12)
        anything = robust_exact(scenario, budget, regions_of(scenario, tv_radius=1)).scale
        widest = int(scenario.lattice.index[-1]) * scenario.lattice.step / budget
        assert widest <= Fraction(anything) <= widest * (1 + Fraction(1, 10**13))


def test_large_supports_take_doubles_and_agree_with_balls() -> None:
    rng = np.random.default_rng(3)
    counts = {name: rng.integers(0, 50, 1500) for name in ("a", "b")}
    prior = pf.Prior.from_counts(counts, support=np.arange(1500), confidence=0.95)
    scenario = pf.Scenario(prior)
    found = {}
    for epsilon in ("0.5", "1e-7"):
        plan = pf.calibrate(scenario, epsilon)
        found[epsilon] = plan.scale
        less = DiscreteLaplace(plan.scale * (1 - 1e-8), scenario.lattice.step)
        assert not prove(scenario, less, Fraction(epsilon), regions_of(scenario)).holds
    assert found["1e-7"] > found["0.5"]


def test_one_value_needs_no_noise() -> None:
    prior = pf.Prior.from_counts({"a": [3], "b": [4]}, support=[7])
    for rule in ({"confidence": 0.95}, {"tv_radius": 0.5}):
        for mechanism in ("exact", "channel"):
            plan = pf.calibrate(prior.with_region(**rule), 0.1, mechanism)
            assert plan.unchanged
            assert plan.loss == 0


def test_a_declared_level_is_not_published_as_it_is() -> None:
    """What was seen may be: the column then is unchanged, although the channel is not."""
    counts = {"a": [50, 50, 0], "b": [50, 50, 0]}
    prior = pf.Prior.from_counts(counts, support=["x", "y", "z"], confidence=0.95)
    plan = pf.calibrate(prior, 5)
    assert plan.mechanism == "channel"
    assert plan.channel is not None
    assert not plan.channel.unchanged
    assert plan.channel.probability(2, 2) == 0
    assert plan.unchanged


def test_adversaries_with_rules_of_their_own() -> None:
    counted = pf.Prior.from_counts({"a": [60, 40], "b": [40, 60]}, support=[0, 1], confidence=0.9)
    given = pf.Prior.from_mapping({"a": {0: ".5", 1: ".5"}, "b": {0: ".55", 1: ".45"}})
    near = given.with_region(tv_radius="0.01")
    for priors in ([counted, given], [counted, near], [counted.with_region(), near]):
        scenario = pf.Scenario(priors)
        plan = pf.calibrate(scenario, 0.5)
        alone = [pf.calibrate(prior, 0.5).scale for prior in priors]
        assert plan.scale == pytest.approx(max(alone), rel=1e-12)
        assert certify(pf.Scenario(given), plan.noise, Fraction(1, 2)).holds


# What a robust plan promises ---------------------------------------------------------------------


def inside(region: Concrete, row: int, rng: np.random.Generator) -> list[Fraction]:
    """A random distribution of a region: a mixture of some of its corners."""
    n = (region.lower if isinstance(region, Box) else region.centre).shape[1]
    corners = [extreme_prior(region, row, rng.permutation(n).tolist(), True) for _ in range(3)]
    shares = [Fraction(int(v), 2**40) for v in rng.dirichlet(np.full(3, 0.3)) * 2**40]
    shares[0] += 1 - sum(shares)
    return [
        sum((s * c[x] for s, c in zip(shares, corners, strict=True)), Fraction()) for x in range(n)
    ]


def believed(scenario: pf.Scenario, rows: dict[str, list[Fraction]]) -> pf.Scenario:
    """Return exact distributions on the values of a scenario, as a scenario of their own."""
    numerators = []
    for p in rows.values():
        common = math.lcm(*(v.denominator for v in p))
        numerators.append([int(v * common) for v in p])
    prior = pf.Prior.from_numerators(scenario.support, tuple(rows), numerators)
    return pf.Scenario(prior)


def plain_loss(scenario: pf.Scenario, plan: pf.Plan) -> float:
    if isinstance(plan.applied, Channel):
        return certify_channel(scenario, plan.applied, None).loss
    return pf.privacy_loss(scenario, plan.scale)


def likelihoods(plan: pf.Plan, scenario: pf.Scenario) -> np.ndarray:
    """k_y(x), a row for every output that ever comes."""
    if isinstance(plan.applied, Channel):
        return plan.applied.matrix.T[plan.applied.matrix.any(axis=0)]
    places = scenario.lattice.index * float(scenario.lattice.step)
    return np.exp(-np.abs(places[:, None] - places[None, :]) / plan.scale)


@pytest.mark.parametrize("mechanism", ["exact", "channel"])
@pytest.mark.parametrize("name, rule", [("census", {"confidence": 0.95}),
                                        ("student", {"confidence": 0.95}),
                                        ("census", {"tv_radius": "1/200"})])  # fmt: skip
def test_priors_inside_the_region_keep_the_promise(name: str, rule: dict, mechanism: str) -> None:
    original = block(name).scenario
    scenario = pf.Scenario([p.with_region(**rule) for p in original.priors], original.pairs)
    plan = pf.calibrate(scenario, 0.5, mechanism)
    assert plan.robust
    (region,) = regions_of(scenario)
    rng = np.random.default_rng(5)
    largest = 0.0
    for _ in range(500):
        rows = {s: inside(region, row, rng) for row, s in enumerate(scenario.protected)}
        assert all(region.contains(row, p) for row, p in enumerate(rows.values()))
        largest = max(largest, plain_loss(believed(scenario, rows), plan))
    assert largest <= 0.5
    # And one prior of the region attains it.
    k = likelihoods(plan, scenario)
    top, bottom = extreme_values(region, k)
    worst, i, j = max(
        (float((top[i] / bottom[j]).max()), i, j)
        for i in range(len(top))
        for j in range(len(top))
        if i != j
    )
    y = int(np.argmax(top[i] / bottom[j]))
    attaining = {
        "first": extreme_prior(region, i, k[y].tolist(), True),
        "second": extreme_prior(region, j, k[y].tolist(), False),
    }
    attained = plain_loss(believed(scenario, attaining), plan)
    assert attained == pytest.approx(math.log(worst), rel=1e-9)
    assert 0.5 * (1 - 1e-9) <= attained <= 0.5


def test_mutant_a_plan_that_trusts_the_counts_breaks_the_promise() -> None:
    scenario = block("student").scenario
    (region,) = regions_of(scenario, confidence=0.95)
    rng = np.random.default_rng(5)
    for mechanism in ("exact", "channel"):
        plan = pf.calibrate(scenario, 0.5, mechanism)
        assert not plan.robust
        largest = 0.0
        for _ in range(50):
            rows = {s: inside(region, row, rng) for row, s in enumerate(scenario.protected)}
            largest = max(largest, plain_loss(believed(scenario, rows), plan))
        assert largest > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_plans_from_samples_hold_for_the_population(mechanism: str) -> None:
    """Tables of 649 rows from a known population: at least 95 % of the robust plans hold."""
    rng = np.random.default_rng(20)
    population = {"yes": [".45", ".3", ".2", ".05"], "no": [".3", ".3", ".3", ".1"]}
    truth = pf.Scenario(
        pf.Prior.from_mapping({s: dict(enumerate(p)) for s, p in population.items()})
    )
    runs = 300
    kept = {"robust": 0, "plain": 0}
    for _ in range(runs):
        rows = rng.binomial(649, 0.11)
        counts = {
            "yes": rng.multinomial(649 - rows, [float(p) for p in population["yes"]]),
            "no": rng.multinomial(rows, [float(p) for p in population["no"]]),
        }
        sample = pf.Prior.from_counts(counts, support=[0, 1, 2, 3])
        for kind, prior in (("plain", sample), ("robust", sample.with_region(confidence=0.95))):
            plan = pf.calibrate(prior, 0.5, mechanism)
            kept[kind] += plain_loss(truth, plan) <= 0.5
    assert kept["robust"] >= 0.95 * runs
    # The simulation can tell: plans that trust the counts fail far more often.
    assert kept["plain"] < 0.8 * runs
