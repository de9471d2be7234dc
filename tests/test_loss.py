# SPDX-License-Identifier: Apache-2.0
"""The exact loss: at its witnesses, in both signs, far beyond underflow."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish.loss
from pufferfish.calibration.quick import QuickLoss
from pufferfish.errors import InputError
from pufferfish.loss import Attained, FloatLoss, log_likelihoods
from pufferfish.precise import PreciseLoss
from pufferfish.prior import Prior
from pufferfish.privacy import privacy_loss
from pufferfish.scenario import Scenario
from slow import definitions, strategies

BASIC = Scenario(
    Prior.from_mapping({"a": {0: ".5", 1: ".3", 2: ".2"}, "b": {0: ".2", 1: ".3", 2: ".5"}})
)


def scenario_of(case: strategies.Case) -> Scenario:
    return Scenario([Prior.from_mapping(text) for text in case.texts], case.pairs)


def test_the_example() -> None:
    assert privacy_loss(BASIC, 1.06) == pytest.approx(0.49979078051845738, rel=1e-15)
    assert privacy_loss(BASIC, "1.059") == pytest.approx(0.50015536785018252, rel=1e-15)
    assert privacy_loss(BASIC, 0) == pytest.approx(math.log(2.5), rel=1e-15)


@given(strategies.cases(), st.sampled_from(["0.001", "0.3", "1", "7/3", "1000", "1e7"]))
def test_both_evaluations_agree_with_the_definition(case: strategies.Case, theta: str) -> None:
    scenario = scenario_of(case)
    exact_theta = Fraction(theta)
    expected = float(definitions.loss(case.priors, case.pairs, exact_theta))
    assert privacy_loss(scenario, theta) == pytest.approx(expected, rel=1e-14, abs=1e-30)
    loss = FloatLoss.of(scenario)
    value, witness = loss.worst(float(scenario.lattice.step / exact_theta))
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
    assert witness.adversary < len(case.priors)


@given(strategies.cases())
def test_without_noise(case: strategies.Case) -> None:
    expected = float(definitions.loss(case.priors, case.pairs, 0))
    scenario = scenario_of(case)
    assert privacy_loss(scenario, 0) == pytest.approx(expected, rel=1e-14)
    assert FloatLoss.of(scenario).unchanged()[0] == pytest.approx(expected, rel=1e-13, abs=1e-14)


@given(strategies.cases(), st.floats(1e-3, 1e4), st.floats(1.0, 100.0))
def test_the_loss_never_rises_with_the_scale(
    case: strategies.Case, theta: float, factor: float
) -> None:
    scenario = scenario_of(case)
    assert privacy_loss(scenario, theta * factor) <= privacy_loss(scenario, theta) * (1 + 1e-12)


@given(strategies.cases(), st.floats(1e-2, 1e4))
def test_relabelling_secrets_and_shifting_values_change_nothing(
    case: strategies.Case, theta: float
) -> None:
    renamed = [
        {f"x{s}": {str(v + 17): str(p) for v, p in row.items()} for s, row in prior.items()}
        for prior in case.priors
    ]
    pairs = [(f"x{b}", f"x{a}") for a, b in case.pairs]
    moved = Scenario([Prior.from_mapping(r) for r in renamed], pairs)
    assert privacy_loss(moved, theta) == pytest.approx(
        privacy_loss(scenario_of(case), theta), rel=1e-13, abs=1e-30
    )


def slow_logs(index: np.ndarray, masses: np.ndarray, u: float) -> np.ndarray:
    distance = np.abs(index[:, None] - index[None]) * u
    rows = []
    for row in masses:
        with np.errstate(divide="ignore"):
            terms = np.log(row)[None] - distance
        top = terms.max(axis=1)
        rows.append(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))
    return np.array(rows)


@pytest.mark.parametrize("block", [1, 4, 32, 512])
def test_passes_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pufferfish.loss, "_LARGEST_BLOCK", block)
    rng = np.random.default_rng(7)
    for trial in range(300):
        n = int(rng.integers(1, 90))
        index = np.cumsum(rng.integers(1, [2, 5, 1000, 10**6][trial % 4], n))
        index -= index[0]
        masses = rng.random((3, n)) * (rng.random((3, n)) < 0.5)
        masses[:, rng.integers(n)] += 1e-9
        masses /= masses.sum(axis=1, keepdims=True)
        u = 10.0 ** rng.uniform(-7, 3)
        found = log_likelihoods(index, masses, u)
        expected = slow_logs(index, masses, u)
        assert np.all(np.abs(found - expected) <= 1e-12 * (1 + np.abs(expected)))


def test_nothing_underflows_at_any_distance() -> None:
    far = Scenario(Prior.from_mapping({"a": {0: 1}, "b": {10**6: 1}}))
    assert privacy_loss(far, 1) == 10**6
    assert FloatLoss.of(far).worst(1.0)[0] == 10**6
    assert privacy_loss(far, 1e-300) == pytest.approx(1e306)
    assert privacy_loss(far, 1e300) == pytest.approx(1e-294, rel=1e-15, abs=0)


def test_small_losses_keep_their_digits() -> None:
    """Two distributions that differ do so at every scale; two that do not, at none."""
    slice_ = Fraction(1, 10**60)
    half = Fraction(1, 2)
    thin = Scenario(
        Prior.from_mapping({"a": {0: half - slice_, 1: half + slice_}, "b": {0: half, 1: half}})
    )
    assert privacy_loss(thin, 0) == pytest.approx(2e-60, rel=1e-15, abs=0)
    # At either end 2 slice (1 - r) of (1 + r), r = exp(-1 / theta).
    expected = 2e-60 * math.tanh(1 / 6)
    assert privacy_loss(thin, 3) == pytest.approx(expected, rel=1e-14, abs=0)
    same = Scenario(Prior.from_mapping({"a": {0: ".1", 1: ".9"}, "b": {0: "1/10", 1: "9/10"}}))
    assert privacy_loss(same, 0) == privacy_loss(same, 3) == 0


def test_both_directions_count() -> None:
    rare = Prior.from_mapping({"a": {0: 1}, "b": {0: ".99", 10: ".01"}})
    swapped = Prior.from_mapping({"b": {0: 1}, "a": {0: ".99", 10: ".01"}})
    for prior in (rare, swapped):
        assert privacy_loss(Scenario(prior), "4.091934011526") == pytest.approx(0.1, rel=1e-11)
    assert privacy_loss(Scenario(rare), 0) == math.inf


@st.composite
def chosen(draw: st.DrawFn) -> tuple[strategies.Case, Fraction]:
    """Three to five secrets, two adversaries, and two of the pairs, either way round."""
    secrets = strategies.SECRETS[: draw(st.integers(3, 5))]
    support = draw(strategies.supports())
    priors = tuple(draw(strategies.priors(support, secrets)) for _ in range(2))
    every = list(itertools.permutations(secrets, 2))
    some = st.lists(st.sampled_from(every), min_size=2, max_size=2, unique_by=frozenset)
    pairs = tuple(draw(some))
    theta = draw(st.sampled_from([Fraction(t) for t in ("1/3", "2", "30", "1000", "1e6")]))
    return strategies.Case(priors, pairs, Fraction(1)), theta


def check_chosen(case: strategies.Case, theta: Fraction) -> None:
    """Both evaluations in doubles against the definition; the witness attains what is returned."""
    scenario = scenario_of(case)
    assert not scenario.is_all_pairs
    u = float(scenario.lattice.step / theta)
    expected = float(definitions.loss(case.priors, case.pairs, theta))
    loss = FloatLoss.of(scenario)
    value, _ = loss.worst(u)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
    quick = QuickLoss(loss, 1.0)
    excess, witnesses = quick.worst(u)
    if expected < 250:
        assert excess + 1 == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert quick.at(witnesses[0], u)[0] == pytest.approx(excess, rel=1e-12, abs=1e-12)
    else:
        assert excess > 200


@given(chosen())
def test_chosen_pairs_of_several_secrets_under_two_adversaries(
    given: tuple[strategies.Case, Fraction],
) -> None:
    check_chosen(*given)


TURNED = definitions.as_prior(
    {"a": {0: ".5", 9: ".5"}, "b": {0: ".1", 9: ".9"}, "c": {0: ".5", 9: ".5"}}
)


@pytest.mark.parametrize("pair", [("a", "b"), ("b", "a")])
def test_mutant_one_direction_of_chosen_pairs(
    pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest ratio is that of a to b; c is like a."""
    case = strategies.Case((TURNED, TURNED), (pair, ("a", "c")), Fraction(1))
    theta = Fraction(2)
    check_chosen(case, theta)

    def forward(self, logs, rho):  # type: ignore[no-untyped-def]
        i, j = self.pairs[0]
        atom = int(np.argmax(logs[i] - logs[j]))
        return float(logs[i, atom] - logs[j, atom]), Attained(rho, i, j, atom)

    def quick_forward(self, likelihoods, rho, first):  # type: ignore[no-untyped-def]
        likelihoods = likelihoods[:, : len(self.loss.index) - first]
        i, j = self.loss.pairs[0]
        ratio = likelihoods[i] / likelihoods[j]
        atom = int(np.argmax(ratio))
        return [(float(ratio[atom]), Attained(rho, i, j, first + atom))]

    for owner, mutant in ((FloatLoss, forward), (QuickLoss, quick_forward)):
        with monkeypatch.context() as patch:
            patch.setattr(owner, "_largest", mutant)
            if pair == ("b", "a"):
                with pytest.raises(AssertionError):
                    check_chosen(case, theta)
            else:
                check_chosen(case, theta)


def check_adversaries_apart() -> None:
    # Both secrets look alike to either adversary, and different between the two of them.
    left = Prior.from_mapping({"a": {0: 1}, "b": {0: 1}})
    right = Prior.from_mapping({"a": {5: 1}, "b": {5: 1}})
    scenario = Scenario([left, right])
    assert privacy_loss(scenario, 1) == 0
    assert privacy_loss(scenario, 0) == 0
    loss = FloatLoss.of(scenario)
    assert loss.worst(1.0)[0] == 0
    assert loss.unchanged()[0] == 0
    assert QuickLoss(loss, 1.0).worst(1.0)[0] == -1
    assert PreciseLoss(scenario, 128).excess(1.0, Fraction(1))[0] == -1


def test_adversaries_are_not_mixed() -> None:
    check_adversaries_apart()


def swapped(rows: Any) -> Any:
    """Mutant: the second secret as the other adversary sees it."""
    return [[one[0], other[1]] for one, other in zip(rows, rows[::-1], strict=True)]


def test_mutant_adversaries_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest_of = FloatLoss.of.__func__  # type: ignore[attr-defined]
    honest_likelihoods = PreciseLoss._likelihoods

    def mixed(cls, scenario):  # type: ignore[no-untyped-def]
        loss = honest_of(cls, scenario)
        loss.masses = [np.array(rows) for rows in swapped(loss.masses)]
        return loss

    check_adversaries_apart()
    for owner, name, mutant in (
        (FloatLoss, "of", classmethod(mixed)),
        (PreciseLoss, "_likelihoods", lambda self, u: swapped(honest_likelihoods(self, u))),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, mutant)
            with pytest.raises(AssertionError):
                check_adversaries_apart()


def test_a_large_support_takes_the_way_in_doubles() -> None:
    rng = np.random.default_rng(3)
    counts = {s: rng.integers(0, 1000, 30_000) for s in "ab"}
    scenario = Scenario(Prior.from_counts(counts, support=np.arange(30_000)))
    expected = PreciseLoss(scenario, 128).loss(Fraction(50))
    assert privacy_loss(scenario, 50) == pytest.approx(expected, rel=1e-12)
    assert privacy_loss(scenario, 0) == math.inf


@pytest.mark.parametrize("scale", [-1, "x", math.nan, None])
def test_wrong_scales(scale: object) -> None:
    with pytest.raises(InputError, match="scale"):
        privacy_loss(BASIC, scale)
