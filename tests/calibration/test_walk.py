# SPDX-License-Identifier: Apache-2.0
"""Noise under a confidence: the walk of calibrate, and verify, which repeats it."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import CheckFailed, InputError
from pufferfish.loss.walk import MOST_ATOMS, RATIO, claims_of, scales, walk
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.ambiguity import Confidence

REFERENCE = json.loads((Path(__file__).parents[1] / "loss" / "betting.json").read_text())
PLAIN = [entry for entry in REFERENCE if entry["epsilon1"] is None]


def prior_of(counts: Any, **options: Any) -> pf.Prior:
    named = {f"s{k}": own for k, own in enumerate(counts)}
    return pf.Prior.from_counts(named, support=range(len(counts[0])), **options)


def with_scale(plan: pf.Plan, scale: float) -> pf.Plan:
    return replace(plan, applied=DiscreteLaplace(scale, plan.support.step))


@pytest.mark.parametrize("entry", PLAIN, ids=[e["name"] for e in PLAIN])
def test_plans_are_within_a_step_of_the_reference_and_of_its_table(entry: Any) -> None:
    scenario = pf.Scenario(prior_of(entry["noisy_counts"], confidence=0.95))
    plan = pf.calibrate(scenario, entry["epsilon2"])
    assert plan.scale <= entry["scale"] * float(RATIO)
    assert plan.certificate.method == "walk"
    assert plan.verify(scenario).loss == plan.loss == plan.epsilon
    assert pf.Plan.from_json(plan.to_json()).verify(scenario).holds
    box = pf.Scenario(prior_of(entry["noisy_counts"]).with_region(confidence=0.95, region="box"))
    ratio = (plan.scale or 0) / (pf.calibrate(box, entry["epsilon2"]).scale or 1)
    # Of three values a box of 45,211 rows says a little more.
    assert ratio < (1.03 if len(entry["noisy_counts"][0]) == 3 else 0.93)


#: Published scales at 95 %, for epsilon .1, .5, 1 and 2.
TABLE = {
    "student_sex_G3": (24.0, 6.47, 4.02, 2.55),
    "census_marital_workclass": (3.05, 1.20, 0.714, 0.350),
}


@pytest.mark.parametrize("name", TABLE)
def test_scales_are_those_of_the_table(name: str) -> None:
    (entry,) = (e for e in PLAIN if e["name"] == name)
    scenario = pf.Scenario(prior_of(entry["noisy_counts"], confidence=0.95))
    for epsilon, expected in zip(("0.1", "0.5", "1", "2"), TABLE[name], strict=True):
        assert (pf.calibrate(scenario, epsilon).scale or 0) <= 1.01 * expected


def test_verify_repeats_the_walk() -> None:
    scenario = pf.Scenario(prior_of(PLAIN[0]["noisy_counts"], confidence=0.95))
    plan = pf.calibrate(scenario, 1)
    claims = claims_of(scenario, Fraction(1))
    grid = list(scales(scenario.lattice, Fraction(1)))
    steps = grid.index(walk(claims))
    assert plan.scale == grid[steps]
    for scale in (grid[steps - 1], grid[steps] * 1.001, 1e9):
        assert with_scale(plan, scale).verify(scenario).holds
    for scale in (np.nextafter(grid[steps], 0), grid[steps + 1], 0.0):
        with pytest.raises(CheckFailed, match="could not be proved to be at most"):
            with_scale(plan, float(scale)).verify(scenario)
    more = pf.Scenario(prior_of(PLAIN[0]["noisy_counts"], confidence=0.99))
    with pytest.raises(CheckFailed):
        plan.verify(more, other_prior=True)


def test_every_adversary_and_pair_has_its_own_test() -> None:
    first, second = prior_of([[40, 30, 9], [30, 40, 20]]), prior_of([[10, 30, 90], [90, 30, 10]])
    sure = [own.with_region(confidence=0.9) for own in (first, second)]
    each = [pf.calibrate(pf.Scenario(own), 1).scale for own in sure]
    assert pf.calibrate(pf.Scenario(sure), 1).scale == max(each)
    # Further secrets cost nothing where only one pair is asked for.
    three = prior_of([[40, 30, 9], [30, 40, 20], [1, 0, 60]], confidence=0.9)
    pair = pf.Scenario(three, [("s0", "s1")])
    assert pf.calibrate(pair, 1).scale == each[0]
    assert (pf.calibrate(three, 1).scale or 0) > (each[0] or 0)


def test_where_boxes_stay() -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 9, (2, MOST_ATOMS + 1)).tolist()
    assert pf.calibrate(prior_of(counts, confidence=0.9), 1).certificate.method != "walk"
    small = prior_of([[40, 30, 9], [30, 40, 20]])
    region = pf.Scenario(small.with_region(confidence=0.9))
    assert pf.calibrate(region, 1, "channel").certificate.method != "walk"
    both = pf.Scenario([region.priors[0], small])
    assert pf.calibrate(both, 1).certificate.method != "walk"
    # Without epsilon there is no grid.
    assert pf.certify(region, 3).method == "ball"
    assert pf.certify(region, 3, 1).method == "walk"
    for wrong in ({"region": "box"}, {"region": "walk", "confidence": 0.9}):
        with pytest.raises(InputError, match="'box', with a confidence"):
            small.with_region(**wrong)


def test_one_value_and_extreme_epsilons() -> None:
    one = prior_of([[7], [3]], confidence=0.9)
    assert pf.calibrate(one, 1).scale == 0
    two = prior_of([[7, 4, 2], [3, 4, 4]])
    sure = two.with_region(confidence=0.9)
    for epsilon in ("1e-15", "700", "1e300"):
        plan = pf.calibrate(sure, epsilon)
        assert plan.certificate.holds
        assert 0 < (plan.scale or 0) <= 2 / float(Fraction(epsilon)) * (1 + 1e-15)
    assert Confidence(Fraction(9, 10)) in plan.regions


def test_the_last_scale_is_said_and_too_large_ones_are_refused() -> None:
    alike = prior_of([[5000, 4000, 4500], [5000, 4100, 4400]], confidence=0.9)
    plan = pf.calibrate(alike, 1)
    assert 1 / 32 <= (plan.scale or 0) < 1.005 / 32
    assert any("changes hardly a value" in note for note in plan.notes)
    far = pf.Prior.from_counts({"a": [3, 4, 1], "b": [4, 3, 1]}, support=[0, 1, 10**6])
    with pytest.raises(InputError, match="overflows"):
        pf.calibrate(far.with_region(confidence=0.9), "1e-304")
