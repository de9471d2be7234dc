# SPDX-License-Identifier: Apache-2.0
"""Verify judges a plan on its merits: what it does, under what it promises, for what it reads."""

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pufferfish as pf
import referee
from plan_cases import MASSES, SCENARIO, edited, learnt, table
from pufferfish.errors import CheckFailed, InputError
from pufferfish.plans.verify import scenario_of_priors, scenario_of_table
from pufferfish.support import Lattice, Levels


@pytest.fixture(scope="module")
def plan() -> pf.Plan:
    return pf.calibrate(SCENARIO, 0.5)


# The scale, whatever a file claims


def test_an_edited_scale_is_judged_on_its_merits(plan: pf.Plan) -> None:
    better = edited(plan, scale=1.06)
    assert better.verify(SCENARIO).loss == pytest.approx(0.49979078051845738, rel=1e-12)
    worse = edited(plan, scale=1.059, loss=0.1)
    assert worse.certificate.holds  # the file says so
    with pytest.raises(CheckFailed, match=r"at scale 1\.059 is 0\.50016, above epsilon 0\.5"):
        worse.verify(SCENARIO)
    # Without any claim it is proved all the same, and the optimum is not asked for.
    assert edited(plan, scale=100, certificate=None, loss=None).verify(SCENARIO).holds
    assert edited(worse, epsilon=0.6).verify(SCENARIO).holds


def test_an_edited_channel_is_judged_on_its_merits() -> None:
    plan = pf.calibrate(SCENARIO, 0.5, "channel")
    assert plan.verify(SCENARIO).holds
    matrix = json.loads(plan.to_json())["channel"]
    matrix["rows"] = [[[y, "0x1"]] for y in range(3)]
    with pytest.raises(CheckFailed, match=r"of the channel is 0\.91630, above epsilon 0\.5"):
        edited(plan, channel=matrix).verify(SCENARIO)


def test_verify_wants_a_scenario(plan: pf.Plan) -> None:
    nonsense: Any
    for nonsense in ("x", None, 1.06, [SCENARIO]):
        with pytest.raises(InputError, match="a Scenario or a Prior is needed, but a "):
            plan.verify(nonsense)
        with pytest.raises(InputError, match="a Scenario or a Prior is needed, but a "):
            pf.certify(nonsense, 1)


# Which scenario


def test_another_prior_fails_unless_asked_for(plan: pf.Plan) -> None:
    other = pf.Prior.from_mapping({"a": {0: ".5", 1: ".5"}, "b": {0: ".45", 1: ".55"}})
    with pytest.raises(CheckFailed, match=r"another scenario: .*--other-prior"):
        plan.verify(other)
    no: Any = "no"
    with pytest.raises(InputError, match="other_prior must be True or False"):
        plan.verify(other, other_prior=no)
    assert plan.verify(other, other_prior=True).loss < 0.1
    far = pf.Prior.from_mapping({"a": {0: 1}, "b": {50: 1}})
    with pytest.raises(CheckFailed, match="above epsilon"):
        plan.verify(far, other_prior=True)
    finer = pf.Prior.from_mapping({"a": {0: 1}, "b": {"0.5": 1}})
    with pytest.raises(CheckFailed, match="code values in another way"):
        plan.verify(finer, other_prior=True)


def test_another_reading_of_the_cells_fails() -> None:
    rows = pd.DataFrame({"s": ["a", "b"] * 2, "x": [4, -4, 4, 4]})
    made = pf.calibrate(pf.Prior.from_table(rows, secret="s", public="x"), 5)
    rounded = pf.Prior.from_table(rows, secret="s", public="x", step=10)  # all of it is 0
    with pytest.raises(CheckFailed, match="code values in another way"):
        made.verify(rounded, other_prior=True)


def test_other_pairs_are_another_scenario() -> None:
    three = pf.Prior.from_mapping({**MASSES, "c": {"0": "1"}})
    plan = pf.calibrate(pf.Scenario(three, [("a", "b")]), 0.5)
    assert plan.spec().protected == ("a", "b")
    assert plan.verify(three).holds  # a prior is taken with the plan's own pairs
    assert not plan.is_for(pf.Scenario(three))
    with pytest.raises(CheckFailed, match="pairs"):
        plan.verify(pf.Scenario(three))
    with pytest.raises(CheckFailed, match="above epsilon"):
        plan.verify(pf.Scenario(three), other_prior=True)


def test_a_column_of_several_is_judged_alone() -> None:
    joint = pf.Prior.from_counts(
        {"a": [[5, 1], [2, 4]], "b": [[1, 3], [3, 2]]}, support={"x": [0, 1], "z": [0, 1]}
    )
    plan = pf.calibrate(pf.Scenario(joint.marginal("z")), 0.1).with_columns("z")
    assert plan.verify(joint).holds
    assert plan.is_for(pf.Scenario(joint))
    other = pf.calibrate(pf.Scenario(joint.marginal("x")), 0.1).with_columns("z")
    assert not other.is_for(pf.Scenario(joint))


# Regions (a plan with tv_radius .1, edited to 1e-7 or to none, is for another scenario)


def test_an_edited_region_is_another_scenario() -> None:
    prior = pf.Prior.from_mapping(MASSES)
    wide, narrow = prior.with_region(tv_radius="0.1"), prior.with_region(tv_radius="1e-7")
    plan = pf.calibrate(wide, 0.5)
    scale = pf.calibrate(narrow, 0.5).scale
    assert plan.scale is not None
    assert scale is not None
    assert scale < plan.scale
    assert plan.verify(prior).holds  # the plan's own region counts
    assert plan.verify(wide).holds
    for regions in ([{"tv_radius": "1e-7"}], []):
        less = edited(plan, regions=regions, scale=scale)
        for asked in (prior, wide, narrow):
            with pytest.raises(CheckFailed, match="another scenario: the prior, its region"):
                less.verify(asked)
        # Judged all the same it holds for what it now promises, and no more.
        assert less.verify(prior, other_prior=True).holds
        with pytest.raises(CheckFailed, match="for some prior of the region, above epsilon"):
            less.verify(wide, other_prior=True)
    with pytest.raises(CheckFailed, match="for some prior of the region, above epsilon"):
        edited(plan, scale=scale).verify(prior)


def test_whoever_asks_for_more_than_the_plan_promises_gets_it() -> None:
    counts = pf.Prior.from_counts({"a": [60, 40], "b": [40, 60]}, support=[0, 1])
    plan = pf.calibrate(counts, 0.5)
    assert plan.verify(counts).holds
    with pytest.raises(CheckFailed, match="could not be proved to be at most"):
        plan.verify(counts.with_region(confidence=0.95))


def test_regions_of_several_adversaries() -> None:
    one = pf.Prior.from_counts({"a": [60, 40], "b": [40, 60]}, support=[0, 1])
    other = pf.Prior.from_mapping({"a": {0: ".5", 1: ".5"}, "b": {0: ".55", 1: ".45"}})
    regions = [one.with_region(confidence=0.9), other.with_region(tv_radius="0.01")]
    mixed = pf.calibrate(pf.Scenario(regions), 0.5)
    assert mixed.verify(pf.Scenario([other, one])).holds  # in any order
    with pytest.raises(CheckFailed, match="which prior has which"):
        mixed.verify(pf.Scenario([one, one]), other_prior=True)
    with pytest.raises(CheckFailed, match="2 regions were given for 1 priors"):
        mixed.verify(pf.Scenario([one]))
    sure = pf.calibrate(one.with_region(confidence=0.9), 0.5)
    with pytest.raises(CheckFailed, match="region does not fit the prior: confidence needs counts"):
        sure.verify(other, other_prior=True)


# The coding: what is calibrated is what is released

LEVELS = table(("a", "lo"), ("a", "mid"), ("b", "mid"), ("b", "hi"), ("b", "hi"))
NUMBERS = table(("a", 0), ("a", 1), ("a", 1), ("b", 1), ("b", 4), ("b", 4))


CODINGS: list[tuple[pd.DataFrame, dict[str, Any]]] = [
    (LEVELS, {"names": ["mid", "lo", "hi"]}),
    (NUMBERS, {"origin": "1"}),
    (NUMBERS, {"runs": [[0, 4]]}),
    (NUMBERS, {"step": "1/2"}),
]


def refuses_another_coding(frame: pd.DataFrame, edit: dict[str, Any]) -> bool:
    """Whether verify refuses a plan whose file was edited to code values in another way."""
    prior = learnt(frame, order=None if frame is NUMBERS else ["lo", "mid", "hi"])
    plan = pf.calibrate(prior, 1)
    support = json.loads(plan.to_json())["support"] | edit
    try:
        edited(plan, support=support).verify(prior)
    except CheckFailed as error:
        return "the support of the plan is not that of the prior" in str(error)
    return False


@pytest.mark.parametrize("frame, edit", CODINGS)
def test_verify_and_release_use_one_coding(
    frame: pd.DataFrame, edit: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refuses_another_coding(frame, edit)
    for kind in (Levels, Lattice):  # the mutant: verify without the coding
        monkeypatch.setattr(kind, "__eq__", lambda self, other: True)
    assert not refuses_another_coding(frame, edit)


# Tables, read as the plan says


def test_the_table_of_a_plan_is_its_scenario(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    source.write_text("s,x\na,0.1\na,0.9\nb,2.2\nb,?\nc,0.4\n,1\na,1\nb,1\n")
    for options in ({}, {"step": 1}):
        prior = learnt(source, missing=["?"], exclude_secrets=["c"], **options)
        for region in ({}, {"confidence": 0.9}, {"confidence": 0.9, "region": "box"}):
            plan = pf.calibrate(prior.with_region(**region), 1)
            path = tmp_path / "plan.json"
            plan.save(path, force=True)
            loaded = pf.Plan.load(path)
            scenario = scenario_of_table(loaded, source)
            assert scenario.digest == plan.digest
            assert loaded.verify(scenario).holds
            loss = referee.judge(path, table=source)
            assert referee.within(loss, path)
            assert float(loss) == pytest.approx(loaded.verify(scenario).loss, rel=1e-9)
    # Another text for missing is another prior.
    cleaning = json.loads(plan.to_json())["cleaning"] | {"missing": []}
    with pytest.raises(CheckFailed, match="does not fit the plan"):
        scenario_of_table(edited(plan, cleaning=cleaning), source)


def test_tables_that_do_not_fit_fail_the_check(tmp_path: Path) -> None:
    plan = pf.calibrate(learnt(NUMBERS), 1)
    for frame in (
        NUMBERS.rename(columns={"s": "t"}),
        NUMBERS.rename(columns={"x": "t"}),
        table(("a", 0), ("a", 5), ("b", 1)),
        table(("a", 0), ("a", 1)),
        table(("a", "u"), ("b", "v")),
    ):
        with pytest.raises(CheckFailed, match="does not fit the plan"):
            scenario_of_table(plan, frame)
    with pytest.raises(InputError, match=r"t\.csv"):
        scenario_of_table(plan, tmp_path / "t.csv")
    given = pf.calibrate(SCENARIO, 1)
    for unnamed in (given, given.with_columns("x")):
        with pytest.raises(InputError, match=r"does not name .*--prior FILE"):
            scenario_of_table(unnamed, NUMBERS)


def test_prior_files_are_read_as_the_plan_was(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "prior.json"
    path.write_text(json.dumps({"secrets": MASSES}))
    assert scenario_of_priors(plan, [path]).digest == plan.digest
    near = pf.calibrate(SCENARIO.priors[0].with_region(tv_radius="0.1"), 0.5)
    assert scenario_of_priors(near, [path]).digest == near.digest
    masses = {"a": {"0.1": ".5", "0.9": ".5"}, "b": {"0.2": ".4", "3": ".6"}}
    path.write_text(json.dumps({"secrets": masses}))
    rounded = pf.calibrate(pf.Prior.from_mapping(masses, step=1), 0.5)
    assert scenario_of_priors(rounded, [path]).digest == rounded.digest
    # Another file is not rounded to make it fit.
    assert scenario_of_priors(plan, [path]).lattice.step == Fraction(1, 10)
    levels = {"a": {"lo": ".5", "hi": ".5"}, "b": {"lo": "1"}}
    path.write_text(json.dumps({"secrets": levels}))
    ordered = pf.calibrate(pf.Prior.from_mapping(levels, order=["lo", "hi"]), 0.5)
    assert scenario_of_priors(ordered, [path]).digest == ordered.digest
    for own, wrong in (
        (plan, {"a": {"0": "1"}, "c": {"0": "1"}}),
        (plan, {"a": {"u": "1"}, "b": {"v": "1"}}),
        (ordered, MASSES),
    ):
        path.write_text(json.dumps({"secrets": wrong}))
        with pytest.raises(CheckFailed, match="does not fit the plan: "):
            scenario_of_priors(own, [path])
    for own in (plan, ordered):
        with pytest.raises(InputError, match="there is no file"):
            scenario_of_priors(own, [tmp_path / "other.json"])


# The rows of people


def people(seed: int = 0) -> pd.DataFrame:
    draw = random.Random(seed)
    rows = []
    for k in range(60):
        secret, first = "ab"[k % 2], draw.random() < 0.3 + 0.3 * (k % 2)
        rows.append((secret, int(first), f"p{k}"))
        if k % 3:  # most have a second row, which is often like the first
            rows.append((secret, int(first == (draw.random() < 0.8)), f"p{k}"))
    return table(*rows)


def test_the_rows_of_people_are_judged_together(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    people().to_csv(source, index=False)
    prior = learnt(source, unit="id")
    plan = pf.calibrate(prior, 0.5)
    assert plan.unit == "id"
    assert plan.rows_per_person == (1, 2)
    path = tmp_path / "plan.json"
    plan.save(path)
    loaded = pf.Plan.load(path)
    scenario = scenario_of_table(loaded, source)
    certificate = loaded.verify(scenario)
    assert certificate.holds
    assert certificate.rows == (1, 2)
    loss = referee.judge(path, table=source)
    assert referee.within(loss, path)
    assert float(loss) == pytest.approx(certificate.loss, rel=1e-9)
    assert plan.scale is not None
    with pytest.raises(CheckFailed, match="above epsilon"):
        edited(plan, scale=plan.scale / 2).verify(scenario)
    # Counted row by row it is another scenario, in which nobody knows whose rows are whose.
    for other_prior in (False, True):
        with pytest.raises(CheckFailed, match=r"another scenario|knows nothing"):
            loaded.verify(learnt(source), other_prior=other_prior)
    alone = pf.calibrate(learnt(source), 0.5)
    with pytest.raises(CheckFailed):
        edited(alone, unit="id").verify(scenario)


def test_more_rows_of_a_person_than_the_prior_knows() -> None:
    prior = learnt(people(), unit="id")
    plan = pf.calibrate(prior, 0.5)
    for rows in ([], [1, 2, 3], [100]):
        with pytest.raises(CheckFailed, match="rows pass"):
            edited(plan, rows_per_person=rows).verify(prior)
    assert edited(plan, rows_per_person=[2]).verify(prior).holds


def test_a_loss_that_cannot_be_proved_fails(plan: pf.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    from pufferfish.loss.certificate import Certificate
    from pufferfish.plans import verify

    nothing = Certificate("none", math.inf, 0.0)
    monkeypatch.setattr(verify, "prove", lambda *given: nothing)
    with pytest.raises(CheckFailed, match=r"at scale 1\.059\d* could not be proved"):
        plan.verify(SCENARIO)
