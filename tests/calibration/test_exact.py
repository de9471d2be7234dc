# SPDX-License-Identifier: Apache-2.0
"""The least scale on large supports, for regions, and for all rows of one person."""

import itertools
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import pufferfish as pf
import pufferfish.calibration.exact as module
from definitions import laplace, people_loss
from pufferfish.calibration.exact import exact
from pufferfish.calibration.root import find_root
from pufferfish.errors import PriorWarning, PufferfishError
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.problem import Where
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.ambiguity import Confidence

N = 12_000


def scenario_of(first: npt.ArrayLike, second: npt.ArrayLike, **region: Any) -> pf.Scenario:
    counts = {"a": np.asarray(first), "b": np.asarray(second)}
    support = np.arange(len(counts["a"]))
    return pf.Scenario(pf.Prior.from_counts(counts, support=support, **region))


def smooth(n: int = N) -> pf.Scenario:
    x = np.linspace(-4, 4, n)
    rng = np.random.default_rng(11)
    return scenario_of(
        rng.poisson(1000 * np.exp(-(x**2) / 2)), rng.poisson(1000 * np.exp(-((x - 0.2) ** 2) / 2.4))
    )


def rough(n: int = N, most: int = 1000) -> pf.Scenario:
    rng = np.random.default_rng(12)
    return scenario_of(rng.integers(0, most, n), rng.integers(0, most, n))


def point(n: int = N) -> pf.Scenario:
    """One secret has a single value: one side of the coupling is all that there is to gain."""
    alone = np.zeros(n, dtype=np.int64)
    alone[0] = 1
    return scenario_of(alone, np.random.default_rng(13).integers(0, 1000, n))


def shifted(n: int = N) -> pf.Scenario:
    """All mass travels 7 steps: the scales of all mechanisms but l1 are the same."""
    counts = np.random.default_rng(14).integers(0, 50, n)
    counts[-7:] = 0
    return scenario_of(counts, np.roll(counts, 7))


SHAPES = [smooth, rough, point, shifted]


def check_least(scenario: pf.Scenario, epsilon: str, within: float = 1e-9) -> None:
    """The proposal itself: proved as it stands, and refuted when it is a little less."""
    proposal = exact(scenario, Fraction(epsilon))
    assert pf.certify(scenario, proposal, epsilon).holds
    shaved = DiscreteLaplace(proposal.scale * (1 - within), Fraction(1))
    refused = pf.certify(scenario, shaved, epsilon)
    assert refused.decided
    assert not refused.holds


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("epsilon", ["20", "1", "0.03"])
def test_the_least_scale_on_large_supports(shape: Callable[[], pf.Scenario], epsilon: str) -> None:
    check_least(shape(), epsilon)


def test_a_tie_with_a_side_survives_the_margin() -> None:
    """Theta* is W / epsilon itself; there is no reason to add a margin to it."""
    scenario = shifted(30_000)
    for epsilon in ("1", "0.05", "1/3"):
        assert exact(scenario, Fraction(epsilon)).scale == float(7 / Fraction(epsilon))


def test_the_proposal_is_proved_at_once_where_the_proof_is_a_bound() -> None:
    scenario = smooth(60_000)
    for epsilon in ("1", "0.1"):
        plan = pf.calibrate(scenario, epsilon)
        assert plan.certificate.method == "float-bound"
        assert plan.scale == exact(scenario, Fraction(epsilon)).scale
        shaved = DiscreteLaplace((plan.scale or 0) * (1 - 1e-8), Fraction(1))
        assert not pf.certify(scenario, shaved, epsilon).holds


def fails(scenario: pf.Scenario, epsilon: str) -> bool:
    try:
        check_least(scenario, epsilon)
    except (AssertionError, PufferfishError):
        return True
    return False


def test_mutant_no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root from the unsafe side, or without what doubles may be wrong by."""
    honest = find_root

    def bare(*given: Any) -> Any:
        return honest(*given)[0] * (1 + 2e-13), 1e9

    monkeypatch.setattr(module, "find_root", bare)
    shapes = (smooth, rough)
    assert any(fails(shape(2000), epsilon) for shape in shapes for epsilon in ("1", "0.3", "0.03"))


def test_mutant_one_direction_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only P_b / P_a counts: the scale is smaller, and no plan comes of it."""
    rows = {"a": {0: ".99", 10: ".01"}, "b": {0: 1}}
    rare = pf.Scenario(pf.Prior.from_mapping(rows), [("b", "a")])
    epsilon = Fraction(1, 200)
    plan = pf.calibrate(rare, epsilon)

    def one_way(self: RateLoss, u: float) -> Any:
        ways = [(0, Where(cell, 1, 0)) for cell in range(self.size)]
        return max((self.at(way, u)[0], way) for way in ways)

    monkeypatch.setattr(RateLoss, "worst", one_way)
    monkeypatch.setattr(module, "_COARSE", ((10**6, 1.0),))
    assert exact(rare, epsilon).scale < 0.7 * (plan.scale or 0)
    with pytest.raises(PufferfishError, match="could be proved"):
        pf.calibrate(rare, epsilon)


# Regions ------------------------------------------------------------------------------------------

RULES = [
    {"confidence": "0.5", "region": "box"},
    {"confidence": "0.95", "region": "box"},
    {"tv_radius": "1e-12"},
    {"tv_radius": "1/7"},
    {"tv_radius": "1"},
    {},
]


def random_scenarios(number: int) -> Iterator[tuple[pf.Scenario, str]]:
    """2 to 5 secrets, 1 to 12 values, one or two adversaries; some levels were never seen."""
    rng = np.random.default_rng(31)
    for _ in range(number):
        m, n = int(rng.integers(2, 6)), int(rng.integers(1, 13))
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
        every = list(itertools.combinations(names, 2))
        one = [every[int(rng.integers(len(every)))]]
        epsilon = str(rng.choice(["1e-15", "1e-9", "0.001", "0.1", "0.5", "1", "5", "50", "700"]))
        yield pf.Scenario(priors, "all" if rng.random() < 0.5 else one), epsilon


def check_regions(number: int) -> None:
    for scenario, epsilon in random_scenarios(number):
        plan = pf.calibrate(scenario, epsilon, "exact")
        assert plan.certificate.holds
        assert plan.notes == ()
        if plan.scale:
            less = DiscreteLaplace(plan.scale * (1 - 1e-8), scenario.lattice.step)
            assert not pf.certify(scenario, less, epsilon).holds


def test_the_least_scale_for_a_region() -> None:
    check_regions(18)


@pytest.mark.slow
def test_the_least_scale_for_a_region_often() -> None:
    check_regions(200)


def test_radius_0_is_the_prior_itself_and_radius_1_the_diameter() -> None:
    for scenario, epsilon in random_scenarios(12):
        plain = scenario.with_rules([None] * len(scenario.priors))
        least = exact(plain, Fraction(epsilon)).scale
        priors = [prior.with_region(tv_radius="1e-18") for prior in plain.priors]
        near = exact(pf.Scenario(priors, plain.pairs), Fraction(epsilon)).scale
        if float(epsilon) > 0.1 and least > 0.1:
            assert near == pytest.approx(least, rel=1e-9)
        priors = [prior.with_region(tv_radius=1) for prior in plain.priors]
        anything = exact(pf.Scenario(priors, plain.pairs), Fraction(epsilon)).scale
        widest = int(scenario.lattice.index[-1]) / Fraction(epsilon)
        assert widest <= Fraction(anything) <= widest * (1 + Fraction(1, 2**52))


def test_large_regions() -> None:
    rng = np.random.default_rng(3)
    plain = scenario_of(rng.integers(0, 50, 600), rng.integers(0, 50, 600))
    scenario = plain.with_rules([Confidence(Fraction(19, 20), box=True)])
    for epsilon in ("0.5", "1e-7"):
        plan = pf.calibrate(scenario, epsilon)
        less = DiscreteLaplace((plan.scale or 0) * (1 - 1e-8), Fraction(1))
        assert not pf.certify(scenario, less, epsilon).holds


# Rows of one person -------------------------------------------------------------------------------


def people(*each: tuple[str, list[int]]) -> pf.Prior:
    """A prior of people: the secret of each, and the values of its rows."""
    rows = [(f"p{at}", secret, x) for at, (secret, values) in enumerate(each) for x in values]
    table = pa.table(dict(zip(("id", "s", "x"), zip(*rows, strict=True), strict=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        return pf.Prior.from_table(table, secret="s", public="x", unit="id")


def slow_loss(each: tuple[tuple[str, list[int]], ...], theta: float) -> float:
    """The largest loss of single rows, and over all outputs of the k rows of one person."""
    kernel = laplace([Fraction(x) for x in range(3)], theta, Fraction(1))
    own = {s: [[(x,) for x in values] for secret, values in each if secret == s] for s in "ab"}
    return float(people_loss(own, [(0, kernel)]))


EACH = (
    *(("a", values) for values in ([0, 1], [1, 1], [2, 0], [1])),
    *(("b", values) for values in ([1, 0], [2, 2], [0, 1], [2], [1])),
)


@pytest.mark.parametrize("name", ["exact", "one-sided", "wasserstein", "l1"])
@pytest.mark.parametrize("epsilon", ["0.2", "1"])
def test_all_rows_of_one_person_are_kept_within_epsilon(name: Any, epsilon: str) -> None:
    prior = people(*EACH)
    plan = pf.calibrate(prior, epsilon, name)
    assert plan.unit == "id"
    assert plan.rows_per_person == (1, 2)
    loss = slow_loss(EACH, plan.scale or 0)
    assert loss <= float(epsilon) * (1 + 1e-12)
    if name == "exact":
        assert loss >= float(epsilon) * (1 - 1e-9)
        single = pf.calibrate(pf.Prior.from_counts(
            {"a": [2, 4, 1], "b": [2, 3, 3]}, support=[0, 1, 2]), epsilon)  # fmt: skip
        assert (single.scale or 0) < (plan.scale or 0)


def test_a_number_of_rows_that_only_one_secret_has_counts_with_its_worst_case() -> None:
    prior = people(("a", [0, 5, 5]), ("a", [1]), ("b", [5]), ("b", [1]))
    assert pf.calibrate(prior, "1/2").scale == 3 * 5 * 2


def test_a_grid_that_is_too_large_counts_with_its_worst_case() -> None:
    rng = np.random.default_rng(1)
    each = [(s, rng.integers(0, 6, 12).tolist()) for s in "ab" for _ in range(40)]
    plan = pf.calibrate(people(*each), "1/2")
    assert plan.scale == 12 * 5 * 2
    assert plan.certificate.holds
