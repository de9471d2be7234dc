# SPDX-License-Identifier: Apache-2.0
"""Plans: saved privately, read strictly, and judged by verify on the merits of their scale."""

import json
import math
import os
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import pufferfish as pf
from pufferfish.errors import CheckFailed, InputError, SeededWarning, UnchangedWarning
from pufferfish.plan import ASSUMPTION, GIVEN_PRIOR, rounded_up
from slow import strategies

MASSES = {"a": {"0": ".5", "1": ".3", "2": ".2"}, "b": {"0": ".2", "1": ".3", "2": ".5"}}
SCENARIO = pf.Scenario(pf.Prior.from_mapping(MASSES))


@pytest.fixture
def plan() -> pf.Plan:
    return pf.calibrate(SCENARIO, 0.5)


def edited(plan: pf.Plan, path: Path, **changes: Any) -> Path:
    plan.save(path, force=True)
    data = json.loads(path.read_text())
    data.update(changes)
    path.write_text(json.dumps(data))
    return path


def test_what_a_plan_tells(plan: pf.Plan) -> None:
    assert plan.scale == pytest.approx(1.0594259987634, rel=1e-12)
    assert plan.loss <= 0.5
    assert plan.epsilon == 0.5
    assert plan.mechanism == "exact"
    a = math.exp(-1 / plan.scale)
    assert plan.mse == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-12)
    assert plan.std == pytest.approx(math.sqrt(plan.mse), rel=1e-12)
    assert plan.assumption == GIVEN_PRIOR
    assert not plan.from_table
    assert "exact" in repr(plan)
    counts = pf.Prior.from_counts({"a": [5, 3], "b": [2, 3]}, support=[0, 1])
    assert pf.calibrate(counts, 0.1).assumption == ASSUMPTION


def test_a_saved_plan_is_private_and_comes_back_whole(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data = json.loads(path.read_text())
    assert next(iter(data)) == "notice"
    assert "PRIVATE" in data["notice"]
    assert path.read_text().count(repr(plan.scale)) == 1  # stored nowhere else
    back = pf.Plan.load(path)
    assert back.to_dict() == plan.to_dict()
    assert back.verify(SCENARIO).holds
    assert os.listdir(tmp_path) == ["plan.json"]


@given(strategies.cases())
def test_every_plan_survives_its_file(case: strategies.Case) -> None:
    scenario = pf.Scenario([pf.Prior.from_mapping(t) for t in case.texts], case.pairs)
    plan = pf.calibrate(scenario, case.epsilon, "wasserstein")
    back = pf.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert back.scale == plan.scale
    assert back.epsilon_exact == case.epsilon
    assert back.support.same_as(plan.support)
    assert back.verify(scenario).holds


def test_an_existing_plan_is_not_overwritten(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("precious")
    with pytest.raises(InputError, match="exists already"):
        plan.save(path)
    assert path.read_text() == "precious"
    with pytest.raises(InputError, match="directory"):
        plan.save(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        plan.save(tmp_path / "nowhere" / "plan.json")
    plan.save(path, force=True)
    assert pf.Plan.load(path).scale == plan.scale


def test_an_edited_scale_is_judged_on_its_merits(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    better = pf.Plan.load(edited(plan, path, scale=1.06))
    assert better.verify(SCENARIO).loss == pytest.approx(0.49979078051845738, rel=1e-12)
    worse = pf.Plan.load(edited(plan, path, scale=1.059, loss=0.1))
    with pytest.raises(CheckFailed, match=r"0\.50016, above epsilon 0\.5"):
        worse.verify(SCENARIO)


def test_another_prior_fails_unless_asked_for(plan: pf.Plan) -> None:
    other = pf.Prior.from_mapping({"a": {0: ".5", 1: ".5"}, "b": {0: ".45", 1: ".55"}})
    with pytest.raises(CheckFailed, match="other-prior"):
        plan.verify(other)
    certificate = plan.verify(other, other_prior=True)
    assert certificate.loss < 0.1
    far = pf.Prior.from_mapping({"a": {0: 1}, "b": {50: 1}})
    with pytest.raises(CheckFailed, match="above epsilon"):
        plan.verify(far, other_prior=True)
    finer = pf.Prior.from_mapping({"a": {0: 1}, "b": {"0.5": 1}})
    with pytest.raises(CheckFailed, match="lattice"):
        plan.verify(finer, other_prior=True)


def test_other_pairs_are_another_scenario(tmp_path: Path) -> None:
    three = pf.Prior.from_mapping({**MASSES, "c": {"0": "1"}})
    plan = pf.calibrate(pf.Scenario(three, [("a", "b")]), 0.5)
    assert plan.protected == ("a", "b")
    assert plan.verify(three).holds  # a prior is taken with the plan's own pairs
    with pytest.raises(CheckFailed, match="pairs"):
        plan.verify(pf.Scenario(three))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"scale": "1.06"}, "one JSON number"),
        ({"scale": True}, "one JSON number"),
        ({"scale": -1}, "not negative"),
        ({"scale": 10**400}, "finite"),
        ({"epsilon": "x"}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"format": 2}, "reads format 1"),
        ({"support": {"kind": "x"}}, "unknown kind"),
        ({"support": []}, "'support'"),
        ({"pairs": []}, "pairs"),
        ({"pairs": [["a"]]}, "pairs"),
        ({"secrets": [1]}, "list of texts"),
        ({"certificate": 3}, "'certificate'"),
        ({"mechanism": None}, "'mechanism'"),
    ],
)
def test_broken_plans(plan: pf.Plan, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = edited(plan, tmp_path / "plan.json", **changes)
    with pytest.raises(InputError, match=message):
        pf.Plan.load(path)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "not valid JSON"),
        (b"[1]", "lacks the keys"),
        (b"{}", "lacks the keys"),
        (b'{"scale": NaN}', "NaN"),
        (b'{"scale": 1, "scale": 2}', "twice"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_files_that_are_no_plans(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        pf.Plan.load(path)
    with pytest.raises(InputError, match="No such file"):
        pf.Plan.load(tmp_path / "other.json")


def test_release_of_arrays(plan: pf.Plan) -> None:
    values = np.tile([0, 1, 2], 5000)
    released = plan.release(values)
    assert released.dtype == np.int64
    assert released.shape == values.shape
    error = released - values
    assert abs(error.mean()) < 6 * plan.std / math.sqrt(len(values))
    assert (error**2).mean() == pytest.approx(plan.mse, rel=0.2)
    assert (released != plan.release(values)).any()
    with pytest.warns(SeededWarning):
        first = plan.release(values, seed=1)
    with pytest.warns(SeededWarning):
        assert (plan.release(values, seed=1) == first).all()
    with pytest.raises(InputError, match="support"):
        plan.release([0, 7])
    assert plan.release([0, 7], out_of_support="clamp").shape == (2,)
    with pytest.raises(InputError, match="kept"):
        plan.release([0], keep=["x"])


def test_an_unchanged_column_is_not_released_by_accident() -> None:
    scenario = pf.Scenario(pf.Prior.from_mapping({"a": {0: 1}, "b": {0: 1}}))
    plan = pf.calibrate(scenario, 0.1)
    assert plan.unchanged
    with pytest.raises(InputError, match="unchanged"):
        plan.release([0, 0])
    with pytest.warns(UnchangedWarning):
        assert plan.release([0, 0], allow_unchanged=True).tolist() == [0, 0]
    assert len(set(plan.release([0] * 1000, min_scale="5").tolist())) > 5


def test_losses_are_shown_rounded_up() -> None:
    assert rounded_up(0.500155367) == "0.50016"
    assert rounded_up(math.inf) == "inf"
    assert rounded_up(0.1) == "0.10001"  # the double is above one tenth
    assert Fraction(rounded_up(0.1)) >= Fraction(0.1)
