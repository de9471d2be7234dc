# SPDX-License-Identifier: Apache-2.0
"""Robust calibration: against linear programs, the reference scales, and priors in the region."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pufferfish.certificate.robust as proof
import pufferfish.regions
from pufferfish.calibration.robust_exact import robust_exact
from pufferfish.certificate import ends
from pufferfish.certificate.robust import certify_robust, certify_robust_columns
from pufferfish.errors import InputError
from pufferfish.mechanisms import Channel
from pufferfish.paper.sources import block
from pufferfish.prior import Prior
from pufferfish.privacy import privacy_loss
from pufferfish.regions import Ball, Box, Concrete, regions_of
from pufferfish.robust import columns, windows
from pufferfish.robust import loss as robust_loss_module
from pufferfish.robust.columns import columns_loss, extreme_prior, extreme_values
from pufferfish.robust.loss import RobustLoss, robust_loss
from pufferfish.robust.radius import robustness_radius
from pufferfish.scenario import Scenario
from shared_data import require_shared

#: Least robust scales at 95 % confidence, reference values (12 digits).
REFERENCE = {
    ("student", "0.1"): 3.57188285452,
    ("student", "0.5"): 0.619105277127,
    ("student", "1.0"): 0.0,
    ("bank", "0.1"): 1.17624886409,
    ("bank", "0.5"): 0.0,
    ("bank", "1.0"): 0.0,
    ("census", "0.1"): 3.47917387359,
    ("census", "0.5"): 1.29293812755,
    ("census", "1.0"): 0.783884845035,
}


@dataclass(frozen=True)
class Noise:
    scale: float
    step: Fraction = Fraction(1)


# The slow way: linear programs -------------------------------------------------------------------


TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def program(region: Concrete, row: int, k: np.ndarray, largest: bool) -> float:
    """The extreme <P, k> over a region, by a general solver of linear programs."""
    from scipy.optimize import linprog

    n, sign = len(k), -1.0 if largest else 1.0
    if isinstance(region, Box):
        bounds = [
            (a / region.denominator, b / region.denominator)
            for a, b in zip(region.lower[row], region.upper[row], strict=True)
        ]
        found = linprog(sign * k, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=bounds, options=TIGHT)
        return sign * found.fun
    centre = np.array([float(Fraction(int(c), region.totals[row])) for c in region.centre[row]])
    # P = centre + more - less, and as much more as less, at most the radius.
    cost = np.concatenate([sign * k, -sign * k])
    bounds = [(0, None)] * n + [(0, p) for p in centre]
    found = linprog(
        cost,
        A_ub=np.concatenate([np.ones(n), np.zeros(n)])[None, :],
        b_ub=[float(region.radius)],
        A_eq=np.concatenate([np.ones(n), -np.ones(n)])[None, :],
        b_eq=[0.0],
        bounds=bounds,
        options=TIGHT,
    )
    return float(centre @ k) + sign * found.fun


def slow_loss(scenario: Scenario, regions: tuple[Concrete, ...], likelihoods: np.ndarray) -> float:
    place = {secret: s for s, secret in enumerate(scenario.protected)}
    worst = 0.0
    for region in regions:
        for k in likelihoods:
            for pair in scenario.pairs:
                for a, b in permutations(pair):
                    top = program(region, place[a], k, True)
                    bottom = program(region, place[b], k, False)
                    worst = max(worst, math.log(top / bottom))
    return worst


def laplace_rows(scenario: Scenario, scale: float) -> np.ndarray:
    x = scenario.lattice.index * float(scenario.lattice.step)
    return np.exp(-np.abs(x[:, None] - x[None, :]) / scale)


@st.composite
def cases(draw: st.DrawFn, most: int = 6) -> tuple[Scenario, tuple[Concrete, ...]]:
    n, m = draw(st.integers(1, most)), draw(st.integers(2, 4))
    gaps = draw(st.lists(st.sampled_from([1, 1, 2, 5]), min_size=n, max_size=n))
    counts = {}
    for secret in "abcd"[:m]:
        row = draw(st.lists(st.sampled_from([0, 0, 1, 3, 20, 200]), min_size=n, max_size=n))
        row[draw(st.integers(0, n - 1))] += 1
        counts[secret] = row
    prior = Prior.from_counts(counts, support=np.cumsum(gaps))
    every = [(a, b) for a in counts for b in counts if a < b]
    pairs = draw(st.sampled_from(["all", [every[0]], every[-2:]]))
    scenario = Scenario(prior, pairs)
    if draw(st.booleans()):
        level = draw(st.sampled_from(["0.5", "0.95", "0.999"]))
        return scenario, regions_of(scenario, confidence=level)
    radius = draw(st.sampled_from(["0", "1/100", "0.1", "1/4", "0.9", "1"]))
    return scenario, regions_of(scenario, tv_radius=radius)


SCALES = st.sampled_from([0.3, 1.0, 4.0, 30.0])


# The programs' own tolerance shows where likelihoods are tiny.
@given(cases(4), st.sampled_from([2.0, 8.0, 30.0]))
@settings(max_examples=20)
def test_the_loss_is_that_of_the_programs(
    case: tuple[Scenario, tuple[Concrete, ...]], scale: float
) -> None:
    scenario, regions = case
    likelihoods = laplace_rows(scenario, scale)
    slow = slow_loss(scenario, regions, likelihoods)
    assert robust_loss(scenario, scale, regions) == pytest.approx(slow, rel=1e-7, abs=1e-7)
    assert columns_loss(scenario, regions, likelihoods) == pytest.approx(slow, rel=1e-7, abs=1e-7)
    certificate = certify_robust(scenario, Noise(scale), regions, None)
    assert certificate.loss == pytest.approx(slow, rel=1e-7, abs=1e-7)


@given(cases(12), SCALES)
def test_three_ways_agree_to_the_last_digits(
    case: tuple[Scenario, tuple[Concrete, ...]], scale: float
) -> None:
    scenario, regions = case
    fast = robust_loss(scenario, scale, regions)
    assert fast == pytest.approx(
        columns_loss(scenario, regions, laplace_rows(scenario, scale)), rel=1e-11, abs=1e-13
    )
    certificate = certify_robust(scenario, Noise(scale), regions, None)
    assert certificate.loss_at_least <= certificate.loss
    assert fast == pytest.approx(certificate.loss, rel=1e-12, abs=1e-13)
    rows = [[Fraction(v) for v in row] for row in laplace_rows(scenario, scale)]
    of_columns = certify_robust_columns(scenario, rows, regions, None)
    assert of_columns.loss == pytest.approx(fast, rel=1e-11, abs=1e-13)


@given(cases(8), SCALES)
def test_extreme_priors_lie_in_the_region_and_attain_the_extremes(
    case: tuple[Scenario, tuple[Concrete, ...]], scale: float
) -> None:
    scenario, regions = case
    likelihoods = laplace_rows(scenario, scale)
    (region,) = regions
    sides = extreme_values(region, likelihoods)
    for row in range(len(scenario.protected)):
        for y, k in enumerate(likelihoods):
            for largest, values in zip((True, False), sides, strict=True):
                p = extreme_prior(region, row, k.tolist(), largest)
                assert region.contains(row, p)
                value = float(sum((a * Fraction(b) for a, b in zip(p, k, strict=True)), Fraction()))
                assert values[row, y] == pytest.approx(value, rel=1e-12)
    robust = RobustLoss(scenario, regions)
    value, witness = robust.worst(float(scenario.lattice.step / Fraction(scale)))
    first, second = robust.priors_at(witness)
    k = likelihoods[witness.atom]
    assert first.sum() == pytest.approx(1, abs=1e-12)
    assert second.sum() == pytest.approx(1, abs=1e-12)
    assert math.log((first @ k) / (second @ k)) == pytest.approx(value, rel=1e-10, abs=1e-12)


@given(cases(5))
def test_without_noise(case: tuple[Scenario, tuple[Concrete, ...]]) -> None:
    scenario, regions = case
    identity = np.eye(scenario.support.size)
    value = robust_loss(scenario, 0, regions)
    assert value == pytest.approx(columns_loss(scenario, regions, identity), rel=1e-12)
    certificate = certify_robust(scenario, Noise(0.0), regions, None)
    assert certificate.loss == pytest.approx(value, rel=1e-14)
    rows = [[Fraction(int(v)) for v in row] for row in identity]
    assert certify_robust_columns(scenario, rows, regions, None).loss == certificate.loss


def test_a_cell_that_was_never_seen_needs_noise() -> None:
    prior = Prior.from_counts(
        {"a": [50, 50, 0], "b": [50, 50, 0]}, support=[0, 1, 2], confidence=0.95
    )
    scenario = Scenario(prior)
    assert privacy_loss(scenario.with_regions([None]), 0) == 0
    assert math.isinf(privacy_loss(scenario, 0))
    assert math.isinf(robust_loss(scenario, 0))
    assert robust_exact(scenario, Fraction(5)).scale > 0


# The least scale ---------------------------------------------------------------------------------


def reference_holds() -> None:
    for (name, epsilon), scale in REFERENCE.items():
        scenario = block(name).scenario
        regions = regions_of(scenario, confidence="0.95")
        noise = robust_exact(scenario, Fraction(epsilon), regions)
        # The reference values are rounded to the nearest of 12 digits.
        assert scale * (1 - 5e-12) <= noise.scale <= scale * (1 + 1e-9)
        assert certify_robust(scenario, noise, regions, Fraction(epsilon)).holds
        if scale:
            short = Noise(noise.scale * (1 - 1e-10), noise.step)
            certificate = certify_robust(scenario, short, regions, Fraction(epsilon))
            assert certificate.decided
            assert not certificate.holds


def test_reference_scales() -> None:
    reference_holds()


def test_reference_file_says_the_same() -> None:
    rows = json.loads(require_shared("reference", "robust.json").read_text())["rows"]
    assert {(r["block"], str(r["epsilon"])): r["exact_scale"] for r in rows} == REFERENCE


@given(cases(8), st.sampled_from(["0.01", "0.5", "3", "50"]))
def test_the_least_scale_is_private_and_least(
    case: tuple[Scenario, tuple[Concrete, ...]], epsilon: str
) -> None:
    scenario, regions = case
    budget = Fraction(epsilon)
    noise = robust_exact(scenario, budget, regions)
    certificate = certify_robust(scenario, noise, regions, budget)
    assert certificate.holds
    assert certificate.loss <= float(budget)
    if noise.scale > 0:
        less = Noise(noise.scale * (1 - 1e-8), noise.step)
        assert not certify_robust(scenario, less, regions, budget).holds
    # A region that holds the prior asks for at least as much as the prior alone.
    exact = regions_of(scenario, tv_radius=0)
    assert robust_exact(scenario, budget, exact).scale <= noise.scale * (1 + 1e-9)


# The robustness radius ---------------------------------------------------------------------------


def test_radius() -> None:
    scenario = block("census").scenario
    noise = robust_exact(scenario, Fraction(1, 2), regions_of(scenario, tv_radius="0.003"))
    radius = robustness_radius(scenario, noise.scale, "0.5")
    assert 0.003 * (1 - 1e-9) <= radius <= 0.003 * (1 + 1e-12)
    assert certify_robust(
        scenario, noise, regions_of(scenario, tv_radius=radius), Fraction(1, 2)
    ).holds
    more = regions_of(scenario, tv_radius=radius * (1 + 1e-9))
    assert not certify_robust(scenario, noise, more, Fraction(1, 2)).holds
    assert robustness_radius(scenario, noise.scale, "0.6") > radius
    assert robustness_radius(scenario, 100, 1) == 1  # wide noise hides everything
    with pytest.raises(InputError, match="above the limit"):
        robustness_radius(scenario, noise.scale, "0.01")
    with pytest.raises(InputError, match="negative"):
        robustness_radius(scenario, -1, "0.01")


def test_radius_by_hand() -> None:
    scenario = Scenario(
        Prior.from_mapping({"a": {"0": ".5", "1": ".5"}, "b": {"0": ".5", "1": ".5"}})
    )
    radius = robustness_radius(scenario, 0, "1")
    # ln (.5 + tau) / (.5 - tau) = 1
    e = math.e
    exact = (e - 1) / (2 * (e + 1))
    assert exact * (1 - 1e-11) <= radius <= exact
    support = scenario.support
    as_it_is = Channel.of(support, support, [[1, 0], [0, 1]])
    assert robustness_radius(scenario, as_it_is, "1") == pytest.approx(radius, rel=1e-11)
    constant = Channel.of(support, support, [[1, 0], [1, 0]])
    assert robustness_radius(scenario, constant, "1") == 1


def test_a_loss_that_equals_epsilon_is_decided_in_rationals() -> None:
    """Anything may be the prior, and the scale is the diameter over epsilon to the last digit."""
    prior = Prior.from_counts({"a": [3, 0, 1], "b": [1, 1, 4]}, support=[0, 1, 3])
    scenario = Scenario(prior)
    anything = regions_of(scenario, tv_radius=1)
    equal = certify_robust(scenario, Noise(6.0), anything, Fraction(1, 2))
    assert equal.holds
    assert equal.method == "ball+rational"
    assert equal.loss == 0.5
    assert "where it may equal epsilon" in equal.statement
    short = certify_robust(scenario, Noise(math.nextafter(6.0, 0)), anything, Fraction(1, 2))
    assert short.decided
    assert not short.holds
    assert robustness_radius(scenario, 6, "1/2") == 1
    # Far from equality a ball is enough.
    assert certify_robust(scenario, Noise(9.0), anything, Fraction(1, 2)).method == "ball"


# What is refused ---------------------------------------------------------------------------------


def test_refusals() -> None:
    scenario = block("student").scenario
    regions = regions_of(scenario, tv_radius="0.1")
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="finite"):
            certify_robust(scenario, Noise(scale), regions, None)
    with pytest.raises(InputError, match="epsilon"):
        certify_robust(scenario, Noise(1.0), regions, Fraction(0))
    with pytest.raises(InputError, match="as many regions"):
        certify_robust(scenario, Noise(1.0), regions * 2, None)
    with pytest.raises(InputError, match="does not reach"):
        certify_robust(scenario, Noise(1.0, Fraction(2)), regions, None)
    other = regions_of(block("census").scenario, tv_radius="0.1")
    with pytest.raises(InputError, match="cells each"):
        certify_robust(scenario, Noise(1.0), other, None)
    empty = Box(regions[0].centre * 0 + 3, regions[0].centre * 0 + 4, 5)
    with pytest.raises(InputError, match="no distribution"):
        certify_robust(scenario, Noise(1.0), (empty,), None)
    with pytest.raises(InputError, match="likelihoods"):
        certify_robust_columns(scenario, [[Fraction(1)]], regions, None)
    with pytest.raises(InputError, match="negative"):
        robust_loss(scenario, -1, regions)


def test_statement() -> None:
    scenario = block("student").scenario
    regions = regions_of(scenario, confidence="0.95")
    good = certify_robust(scenario, Noise(1.0), regions, Fraction(1, 2))
    assert good.statement.startswith(
        "For every prior of the region (Clopper-Pearson intervals that hold together with 95 % "
        "confidence) the privacy loss is at most 0."
    )
    bad = certify_robust(scenario, Noise(0.1), regions, Fraction(1, 2))
    assert "for some it is at least" in bad.statement
    assert bad.decided
    assert certify_robust(scenario, Noise(0.1), regions, None).epsilon is None


# Mutants -----------------------------------------------------------------------------------------


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except AssertionError:
        return True
    return False


def three_secrets() -> None:
    """One secret with a single row: its own region is the widest, but nobody compares it."""
    counts = {"a": [500, 500, 500], "b": [490, 500, 510], "c": [1, 1, 0]}
    scenario = Scenario(Prior.from_counts(counts, support=[0, 1, 2]))
    regions = regions_of(scenario, confidence="0.9")
    slow = slow_loss(scenario, regions, laplace_rows(scenario, 2.0))
    assert robust_loss(scenario, 2.0, regions) == pytest.approx(slow, rel=1e-6)
    assert certify_robust(scenario, Noise(2.0), regions, None).loss == pytest.approx(slow, rel=1e-6)


def test_mutant_a_secret_against_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    three_secrets()

    def careless(top: np.ndarray, bottom: np.ndarray, rho: int):
        gap = top.max(axis=0) - bottom.min(axis=0)
        return float(gap.max()), robust_loss_module.Attained(rho, 0, 1, int(gap.argmax()))

    with monkeypatch.context() as patch:
        patch.setattr(robust_loss_module, "best_of_two", careless)
        assert fails(three_secrets)

    def all_opponents(top: list, chosen: object):
        return [(i, j, high) for i, high in enumerate(top) for j in range(len(top))]

    with monkeypatch.context() as patch:
        patch.setattr(proof, "_opponents", all_opponents)
        assert fails(three_secrets)


def test_mutant_no_bonferroni(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pufferfish.regions._region
    monkeypatch.setattr(
        pufferfish.regions, "_region", lambda prior, rule, secrets, cells: honest(
            prior, rule, secrets, 1
        )
    )  # fmt: skip
    assert fails(reference_holds)


@pytest.mark.parametrize("rule", [{"confidence": 0.9}, {"tv_radius": 0.1}])
def test_mutant_poured_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch, rule: dict) -> None:
    scenario = block("census").scenario
    regions = regions_of(scenario, **rule)
    likelihoods = laplace_rows(scenario, 2.0)
    slow = slow_loss(scenario, regions, likelihoods)

    def check() -> None:
        assert robust_loss(scenario, 2.0, regions) == pytest.approx(slow, rel=1e-6)
        certificate = certify_robust(scenario, Noise(2.0), regions, None)
        assert certificate.loss == pytest.approx(slow, rel=1e-6)
        p = extreme_prior(regions[0], 0, likelihoods[0].tolist(), True)
        assert float(np.dot([float(v) for v in p], likelihoods[0])) == pytest.approx(
            program(regions[0], 0, likelihoods[0], True), rel=1e-6
        )
        exact = [[Fraction(v) for v in row] for row in likelihoods]
        of_columns = certify_robust_columns(scenario, exact, regions, None)
        assert of_columns.loss == pytest.approx(slow, rel=1e-6)

    check()
    with monkeypatch.context() as patch:
        honest = windows.extremes

        def swapped(region, row, index):
            high, low = honest(region, row, index)
            return low, high

        patch.setattr(robust_loss_module, "extremes", swapped)
        assert fails(check)
    for name in ("_poured", "_moved"):
        with monkeypatch.context() as patch:
            true = getattr(columns, name)
            patch.setattr(columns, name, lambda *given, f=true: f(*given[:-1], given[-1][::-1]))
            used = name == ("_poured" if isinstance(regions[0], Box) else "_moved")
            assert fails(check) == used
    with monkeypatch.context() as patch:
        largest, smallest = ends._Secret._largest, ends._Secret._smallest
        patch.setattr(ends._Secret, "_largest", smallest)
        patch.setattr(ends._Secret, "_smallest", largest)
        assert fails(check)
    with monkeypatch.context() as patch:
        honest_ends = ends.column_ends
        patch.setattr(proof, "column_ends", lambda rows, column: honest_ends(rows, column)[::-1])
        assert fails(check)


def test_mutant_a_whole_shell_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left for the shell is little, but it is mass."""
    scenario = block("census").scenario
    regions = regions_of(scenario, tv_radius="0.02")
    slow = slow_loss(scenario, regions, laplace_rows(scenario, 2.0))

    def check() -> None:
        certificate = certify_robust(scenario, Noise(2.0), regions, None)
        assert certificate.loss == pytest.approx(slow, rel=1e-6)

    check()
    honest = ends._Cut.move

    def careless(self, y: int) -> None:
        honest(self, y)
        self.rest = 0

    monkeypatch.setattr(ends._Cut, "move", careless)
    assert fails(check)


def test_all_regions_are_of_the_two_kinds() -> None:
    scenario = block("student").scenario
    kinds = {type(regions_of(scenario, **rule)[0]) for rule in ({"confidence": 0.5}, {})}
    assert kinds == {Box, Ball}
