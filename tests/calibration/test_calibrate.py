# SPDX-License-Identifier: Apache-2.0
"""calibrate: reference values, the order of the mechanisms, and that every scale is private."""

import itertools
import json
import math
import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import definitions
import pufferfish as pf
import pufferfish.calibration.l1
import pufferfish.calibration.relaxed
import pufferfish.calibration.wasserstein
from definitions import real
from pufferfish.calibration.coupling import comonotone
from pufferfish.calibration.registry import REGISTRY, Method, method_named
from pufferfish.calibration.relaxed import Side
from pufferfish.errors import InputError, PriorWarning, PufferfishError
from pufferfish.mechanisms.laplace import DiscreteLaplace
from strategies import Case, cases, large

NAMES = ("exact", "one-sided", "relaxed", "wasserstein", "l1")
REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())
#: The references are rounded to 13 digits, to nearest.
BELOW, ABOVE = 2e-12, 1e-9


def scenario_of(case: Case) -> pf.Scenario:
    return pf.Scenario([pf.Prior.from_mapping(text) for text in case.texts], case.pairs)


def prior_of(entry: dict[str, Any], **region: str) -> pf.Prior:
    """The prior of an entry: by value, or as masses or counts on 0, 1, 2, ..."""
    if "counts" in entry:
        support = list(range(len(entry["counts"]["a"])))
        return pf.Prior.from_counts(entry["counts"], support=support, **region)
    secrets = entry.get("secrets") or {s: dict(enumerate(p)) for s, p in entry["masses"].items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        return pf.Prior.from_mapping(secrets)


@pytest.mark.parametrize("entry", REFERENCE["priors"], ids=lambda entry: entry["name"])
def test_reference_values(entry: dict[str, Any]) -> None:
    scenario = pf.Scenario(prior_of(entry))
    for row in entry["results"]:
        for name in NAMES:
            plan = pf.calibrate(scenario, row["epsilon"], name)
            assert plan.certificate.holds
            assert plan.loss <= plan.epsilon
            expected = float(row[name.replace("-", "_")])
            if expected == 0:
                assert plan.scale == 0
            else:
                assert -BELOW <= plan.scale / expected - 1 <= ABOVE
        if float(row["relaxed"]):
            loss = pf.privacy_loss(scenario, scale=row["relaxed"])
            assert loss == pytest.approx(float(row["loss_at_relaxed"]), rel=1e-10)
        unchanged = pf.privacy_loss(scenario, scale=0)
        assert unchanged == pytest.approx(float(row["loss_unchanged"]), rel=1e-12)


@pytest.mark.parametrize("row", REFERENCE["robust"], ids=lambda r: f"{r['block']}-{r['epsilon']}")
def test_reference_values_of_regions(row: dict[str, Any]) -> None:
    (entry,) = (e for e in REFERENCE["priors"] if e["name"] == row["block"])
    rule = {"confidence": str(row["confidence"]), "region": "box"}
    scenario = pf.Scenario(prior_of(entry).with_region(**rule))
    plan = pf.calibrate(scenario, row["epsilon"])
    expected = row["exact_scale"]
    assert expected * (1 - 5e-12) <= plan.scale <= expected * (1 + 1e-9)
    assert plan.certificate.holds
    if expected:
        shaved = DiscreteLaplace(plan.scale * (1 - 1e-9), Fraction(1))
        refused = pf.certify(scenario, shaved, row["epsilon"])
        assert refused.decided
        assert not refused.holds


# Every scale: in its order, private, and for exact the least --------------------------------------


def check_case(case: Case) -> None:
    scenario = scenario_of(case)
    plans = [pf.calibrate(scenario, case.epsilon, name) for name in NAMES]
    scales = [plan.scale for plan in plans]
    for smaller, larger in itertools.pairwise(scales):
        assert smaller <= larger * (1 + 1e-12)
    for plan in plans:
        assert plan.certificate.holds
        assert plan.loss <= plan.epsilon == float(case.epsilon)
    if scales[0] > 0:
        shaved = DiscreteLaplace(scales[0] * (1 - 1e-6), scenario.lattice.step)
        certificate = pf.certify(scenario, shaved, case.epsilon)
        assert not certificate.holds
        assert certificate.decided


@settings(max_examples=40)
@given(cases())
def test_order_privacy_and_leastness(case: Case) -> None:
    check_case(case)


@pytest.mark.slow
@settings(max_examples=800)
@given(cases())
def test_order_privacy_and_leastness_often(case: Case) -> None:
    check_case(case)


def check_definitions(case: Case) -> None:
    """Each calibrator by itself, before anything is proved: never below the truth, and near it."""
    scenario = scenario_of(case)
    for name, expected in definitions.scales(case.priors, case.pairs, case.epsilon).items():
        proposal = Fraction(method_named(name).calibrate(scenario, case.epsilon).scale)
        if expected == 0:
            assert proposal == 0
        elif isinstance(expected, Fraction):
            assert expected <= proposal <= expected * (1 + Fraction(1, 10**9))
        else:  # itself right to some 40 digits
            assert 1 - real("1e-30") <= real(proposal) / expected <= 1 + real("1e-9")


@settings(max_examples=25)
@given(cases())
def test_scales_agree_with_the_definitions(case: Case) -> None:
    check_definitions(case)


@settings(max_examples=5)
@given(large(max_atoms=40))
def test_scales_agree_with_the_definitions_on_larger_supports(case: Case) -> None:
    check_definitions(case)


@settings(max_examples=25)
@given(cases())
def test_relabelling_and_shifting_change_nothing(case: Case) -> None:
    scenario = scenario_of(case)
    names = {secret: f"z{10 - k}" for k, secret in enumerate(case.priors[0])}
    moved = [
        {names[s]: {str(3 - x): str(p) for x, p in row.items()} for s, row in prior.items()}
        for prior in reversed(case.priors)
    ]
    pairs = [(names[b], names[a]) for a, b in case.pairs]
    mirrored = pf.Scenario([pf.Prior.from_mapping(prior) for prior in moved], pairs)
    for name in NAMES:
        here = method_named(name).calibrate(scenario, case.epsilon).scale
        there = method_named(name).calibrate(mirrored, case.epsilon).scale
        assert there == pytest.approx(here, rel=1e-9)


@settings(max_examples=25)
@given(cases())
def test_a_larger_epsilon_never_needs_more_noise(case: Case) -> None:
    scenario = scenario_of(case)
    for name in NAMES:
        calibrated = method_named(name).calibrate
        more, less = (calibrated(scenario, k * case.epsilon).scale for k in (1, 2))
        assert less <= more * (1 + 1e-9)


def some_cases(number: int = 25) -> list[Case]:
    """Two secrets with small counts, and an epsilon that is no double."""
    rng = random.Random(5)
    made = []
    for _ in range(number):
        rows = {s: [rng.randint(1, 9) for _ in range(4)] for s in "ab"}
        prior = definitions.from_counts(rows)
        made.append(Case((prior,), (("a", "b"),), Fraction(rng.randint(1, 99), 997)))
    return made


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except (AssertionError, PufferfishError):
        return True
    return False


@pytest.mark.parametrize("name", ["l1", "wasserstein"])
def test_mutant_a_scale_rounded_to_the_nearest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = some_cases()
    module = getattr(pufferfish.calibration, name)
    nearest = lambda scale, step, _: DiscreteLaplace(float(scale), step)  # noqa: E731  # one line is clearer
    monkeypatch.setattr(module, "noise_up", nearest)
    assert any(fails(lambda case=case: check_definitions(case)) for case in made)


def test_mutant_sides_without_their_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pufferfish.calibration.relaxed, "_MARGIN", 0.0)
    assert any(fails(lambda case=case: check_definitions(case)) for case in some_cases())


def sides_chosen_last(scenario, epsilon, choose):  # type: ignore[no-untyped-def]  # a mutant
    """Mutant: the maximum over pairs of either side first, and the choice of a side last."""
    couplings = [comonotone(view) for view in scenario.views()]
    return choose(*(max(Side(c, k, epsilon).scale() for c in couplings) for k in (True, False)))


def test_mutant_one_side_is_chosen_across_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": {0: 1}, "b": {0: ".99", 10: ".01"}, "c": {0: ".98", 10: ".02"}}
    prior = definitions.as_prior(rows)
    across_pairs = Case((prior,), (("a", "b"), ("c", "a")), Fraction(1))
    turned = {"a": prior["b"], "b": prior["a"]}
    alone = {secret: prior[secret] for secret in "ab"}
    across_adversaries = Case((alone, turned), (("a", "b"),), Fraction(1))
    for case in (across_pairs, across_adversaries):
        check_definitions(case)
        with monkeypatch.context() as patch:
            patch.setattr(pufferfish.calibration.relaxed, "scale_of_sides", sides_chosen_last)
            assert fails(lambda case=case: check_definitions(case))
            # Too much noise, but private: only the definitions tell.
            assert pf.calibrate(scenario_of(case), 1, "one-sided").certificate.holds


# Single cases -------------------------------------------------------------------------------------

BOTH = {"a": {0: 1}, "b": {1: 1}}
APART = pf.Scenario(pf.Prior.from_mapping(BOTH))


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-9", "1", "1.01", "50", "1e6", "1e300"])
def test_two_points_need_one_over_epsilon_rounded_up(epsilon: str) -> None:
    plan = pf.calibrate(APART, epsilon, "wasserstein")
    scale = 1 / Fraction(epsilon)
    assert Fraction(plan.scale) >= scale > Fraction(math.nextafter(plan.scale, 0))
    least = pf.calibrate(APART, epsilon, "exact")
    assert least.scale == plan.scale
    assert least.certificate.holds


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-15", "1e-9", "1e-4", "300", "1e6"])
def test_tiny_and_huge_epsilons_need_the_least_too(epsilon: str) -> None:
    rows = {"a": {0: ".5", 1: ".3", 5: ".2"}, "b": {0: ".2", 1: ".3", 9: ".5"}}
    scenario = pf.Scenario(pf.Prior.from_mapping(rows))
    plan = pf.calibrate(scenario, epsilon)
    assert plan.certificate.holds
    shaved = DiscreteLaplace(plan.scale * (1 - 1e-9), Fraction(1))
    refused = pf.certify(scenario, shaved, epsilon)
    assert refused.decided
    assert not refused.holds


def replaced(monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    broken = Method("exact", "", lambda s, e: DiscreteLaplace(scale, Fraction(1)))
    monkeypatch.setitem(REGISTRY, "exact", broken)


def test_a_scale_that_is_a_little_too_small_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, math.nextafter(1.0, 0))
    plan = pf.calibrate(APART, 1)
    assert 1 <= plan.scale <= 1 + 1e-15
    assert plan.notes == ()
    replaced(monkeypatch, 1 - 1e-4)
    plan = pf.calibrate(APART, 1)
    assert plan.scale >= 1
    assert any("raised" in note for note in plan.notes)


def test_identical_priors_need_no_noise() -> None:
    half = {0: ".5", 9: ".5"}
    scenario = pf.Scenario(pf.Prior.from_mapping({"a": half, "b": half}))
    for name in ("wasserstein", "relaxed", "one-sided", "exact"):
        plan = pf.calibrate(scenario, ".1", name)
        assert (plan.scale, plan.mse, plan.loss) == (0, 0, 0)
        assert plan.unchanged


def test_a_column_whose_loss_is_below_epsilon_is_unchanged() -> None:
    """ln 2 is no rational: whatever side epsilon is on, it is decided."""
    scenario = pf.Scenario(pf.Prior.from_mapping({"a": {0: "1/3", 1: "2/3"}, "b": BOTH_HALVES}))
    loss = pf.privacy_loss(scenario, scale=0)
    assert pf.calibrate(scenario, loss * (1 + 1e-15)).unchanged
    near = pf.calibrate(scenario, Fraction(loss) * (1 - Fraction(1, 10**15)))
    assert 0 < near.scale < 0.1


BOTH_HALVES = {0: "1/2", 1: "1/2"}


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InputError, match="but a dict was given"):
        pf.calibrate({"a": {0: 1}}, 1)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InputError, match="cost, outputs: for the mechanism channel only"):
        pf.calibrate(APART, 1, "exact", cost="hamming", outputs=2)
    with pytest.raises(InputError, match="invariant must be True or False"):
        pf.calibrate(APART, 1, "channel", invariant="yes")  # type: ignore[arg-type]  # wrong on purpose
    levels = pf.Prior.from_mapping({"a": {"x": 1}, "b": {"y": 1}})
    robust = pf.Scenario(APART.priors[0].with_region(tv_radius=".1"))
    for name in NAMES:
        with pytest.raises(InputError, match="order"):
            pf.calibrate(levels, 1, name)
        if name != "exact":
            with pytest.raises(InputError, match="region"):
                pf.calibrate(robust, 1, name)
    with pytest.raises(InputError, match="cannot be had together"):
        pf.calibrate(robust, 1, already=[pf.DiscreteLaplace(1.0, Fraction(1))])
    assert pf.calibrate(robust, 1, already=[]).certificate.holds
    with pytest.raises(InputError, match="cannot be had together"):
        pf.calibrate_together(robust, 1, 2)


def test_what_could_not_be_released_is_refused_for_a_table() -> None:
    """A given prior is only computed with."""
    table = pa.table({"s": list("aabb"), "x": [0, 1, 2, 0]})
    prior = pf.Prior.from_table(table, secret="s", public="x")
    with pytest.raises(InputError, match="64 bits"):
        pf.calibrate(prior, "1e-20", "l1")
    assert pf.calibrate(APART, "1e-20", "l1").scale == 1e20
