# SPDX-License-Identifier: Apache-2.0
"""Plans: saved privately, read strictly, told their columns, and released as they say."""

import json
import math
import os
import resource
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from plan_cases import MASSES, SCENARIO, edited, learnt, table
from pufferfish.errors import InputError, OutsidePromiseWarning, SeededWarning
from pufferfish.loss.certificate import LossBound
from pufferfish.mechanisms.channel import Channel
from pufferfish.plans.guarantee import Distortion
from pufferfish.plans.verify import Sensitivity


@pytest.fixture(scope="module")
def plan() -> pf.Plan:
    return pf.calibrate(SCENARIO, 0.5)


@pytest.fixture(scope="module")
def channel() -> pf.Plan:
    return pf.calibrate(SCENARIO, 0.5, "channel")


# What a plan tells


def test_what_a_plan_tells(plan: pf.Plan, channel: pf.Plan) -> None:
    assert plan.scale == pytest.approx(1.0594259987634, rel=1e-12)
    assert plan.loss <= 0.5 == plan.epsilon
    assert plan.mechanism == "exact"
    a = math.exp(-1 / plan.scale)
    assert plan.mse == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-12)
    assert (plan.channel, plan.cost, plan.keep_rate) == (None, None, None)
    assert not plan.from_rows
    assert channel.scale is None
    assert channel.distortion is not None
    assert channel.cost == channel.mse == channel.distortion.cost
    both = pf.Scenario([
        pf.Prior.from_counts({"a": [5, 3], "b": [2, 3]}, support=[0, 1]),
        pf.Prior.from_mapping({"a": {0: 1}, "b": {0: ".5", 1: ".5"}}),
    ])  # fmt: skip
    assert pf.calibrate(both, 0.1).from_rows


def test_a_repr_is_one_fact_a_line(plan: pf.Plan, channel: pf.Plan) -> None:
    assert repr(plan).split("\n  ") == [
        "<Plan: mechanism exact", "epsilon 0.5", f"noise of scale {plan.scale!r}",
        "loss at most 0.5000000000 (proved)", "pairs (a, b)>",
    ]  # fmt: skip
    told = repr(edited(plan).with_columns("x"))
    assert "(proved, says its file)\n  column 'x'\n" in told
    assert "channel that keeps 63.5" in repr(channel)


def test_what_a_channel_does_to_values() -> None:
    support = SCENARIO.support
    made = Channel(support, support, [[2, 1, 1], [0, 1, 1], [0, 0, 1]])
    weights = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    found = Distortion.of(made, Fraction(1, 3), "hamming", weights, 0)
    assert Fraction(found.cost) >= Fraction(1, 3)
    assert found.keep_rate == 0.625
    assert found.mse == pytest.approx(0.5 * (1 / 4 + 4 / 4) + 0.25 * (1 / 2))
    names = pf.Prior.from_mapping({"a": {"u": 1}, "b": {"v": 1}}).support
    levels = Channel(names, names, [[1, 0], [0, 1]])
    assert Distortion.of(levels, Fraction(0), "hamming", [Fraction(1)] * 2, 0).mse is None


# Files


def test_a_saved_plan_is_private_and_comes_back_whole(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data = json.loads(path.read_text())
    assert next(iter(data)) == "notice"
    assert data["notice"].startswith("PRIVATE.")
    assert "as private as that prior" in data["notice"]
    assert path.read_text().count(repr(plan.scale)) == 1  # stored nowhere else
    assert isinstance(data["scale"], float)
    back = pf.Plan.load(path)
    assert back.to_json() == plan.to_json()
    assert (back.loaded, plan.loaded) == (True, False)
    assert back.certificate == plan.certificate
    with pytest.raises(InputError, match="exists already"):
        plan.save(path)
    plan.save(path, force=True)
    assert os.listdir(tmp_path) == ["plan.json"]
    rows = pf.calibrate(pf.Prior.from_counts({"a": [5, 3], "b": [2, 3]}, support=[0, 1]), 0.1)
    assert "depends on every one of them" in json.loads(rows.to_json())["notice"]


LEVELS = table(
    ("a", "lo"), ("a", "mid"), ("b", "mid"), ("b", "hi"), ("b", "hi"), ("b", "?"), ("z", "lo")
)  # fmt: skip


def all_sorts() -> list[tuple[pf.Scenario, str, str]]:
    """Scenarios, mechanisms and epsilons that use every entry of a plan file."""
    three = pf.Prior.from_mapping({**MASSES, "c, d": {"0": "1"}})
    halves = pf.Prior.from_mapping({"a": {"1e15": 1}, "b": {"1000000000000000.25": 1}})
    counts = pf.Prior.from_counts({"a": [5, 3, 0], "b": [2, 3, 1]}, support=[-3, "1/3", 7])
    levels = learnt(LEVELS, order=["lo", "mid", "hi"], missing=["?"], exclude_secrets=["z"])
    blanks = learnt(LEVELS[:-1], missing=["?"], missing_as_level=True)
    rounded = learnt(table(("a", 0.1), ("a", 0.9), ("b", 0.2), ("b", 2.8)), step=1)
    other = pf.Prior.from_counts({"a": [1, 1, 1], "b": [3, 2, 2]}, support=[-3, "1/3", 7])
    mixed = [counts.with_region(confidence="0.9"), other.with_region(tv_radius="1/50"), other]
    return [
        (pf.Scenario(three, [("a", "c, d")]), "exact", "1/3"),
        (pf.Scenario(halves), "wasserstein", "1e-9"),
        (pf.Scenario(counts), "channel", "0.4"),
        (pf.Scenario(levels), "exact", "0.25"),
        (pf.Scenario(levels.with_region(tv_radius="0.1")), "exact", "0.7"),
        (pf.Scenario(blanks), "channel", "0.5"),
        (pf.Scenario(rounded), "exact", "0.5"),
        (pf.Scenario(mixed), "exact", "1"),
    ]


@pytest.mark.parametrize("which", range(8))
def test_every_plan_survives_its_file(which: int, tmp_path: Path) -> None:
    scenario, mechanism, epsilon = all_sorts()[which]
    plan = pf.calibrate(scenario, epsilon, mechanism).with_sensitivity(scenario)
    back = pf.Plan.from_json(plan.to_json())
    assert back.to_json() == plan.to_json()
    assert back.epsilon_exact == Fraction(epsilon)
    assert back.support == plan.support
    assert back.regions == plan.regions == (scenario.rules if scenario.has_region else ())
    assert back.sensitivity == plan.sensitivity
    assert back.distortion == plan.distortion
    assert back.is_for(scenario)
    assert back.verify(scenario).holds
    if plan.coding is not None:
        assert back.coding is not None
        names = ("column", "missing", "rounds", "decimal", "missing_as_level")
        assert [getattr(back.coding, n) for n in names] == [getattr(plan.coding, n) for n in names]
        assert back.coding.support is back.support
        assert (back.secret, back.exclude_secrets) == ("s", plan.exclude_secrets)


def test_claims_come_back_and_are_only_claims(plan: pf.Plan) -> None:
    claims = {
        "sensitivity": Sensitivity(math.inf, 0.0, 0.25),
        "composition": LossBound(Fraction(1, 3), 0.25, within=("x",), terms=(("y", None),), rows=2),
        "notes": ("one", "two"),
    }
    made = pf.Plan.of(SCENARIO, "exact", plan.applied, Fraction(1, 2), plan.certificate, **claims)
    back = pf.Plan.from_json(made.to_json())
    assert (back.sensitivity, back.composition, back.notes) == tuple(claims.values())
    assert '"inf"' in made.to_json()
    nonsense: Any
    for nonsense in (3, "x", [], {"loss": 0}, {"upper": "x"}):
        odd = edited(plan, sensitivity=nonsense, distortion=nonsense)
        assert (odd.sensitivity, odd.distortion) == (None, None)
        with pytest.raises(InputError, match="its composition"):
            edited(plan, composition=nonsense)


GARBAGE: list[Any] = [None, 3, "x", [], {}, {"witness": 1}]
GARBAGE += [{"loss": loss} for loss in (0, 10**400, "nan", "-inf")]


@pytest.mark.parametrize("claim", GARBAGE, ids=repr)
def test_what_a_file_claims_of_its_loss_is_ignored(plan: pf.Plan, claim: Any) -> None:
    whole = json.loads(plan.to_json())["certificate"]
    for certificate in (claim, {**whole, **claim} if isinstance(claim, dict) else claim):
        back = edited(plan, certificate=certificate, loss=claim, notice=claim)
        assert back.verify(SCENARIO).holds
        assert back.scale == plan.scale
        if not back.certificate.holds:
            assert (back.certificate.method, back.loss) == ("none", math.inf)
        assert pf.Plan.from_json(back.to_json()).to_json() == back.to_json()


def numbers(**changes: Any) -> dict[str, Any]:
    return {"support": {"kind": "numbers", "step": "1", "origin": "0", "runs": [[0, 2]]} | changes}


def cleaning(**changes: Any) -> dict[str, Any]:
    return {"cleaning": {"column": "x"} | changes}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"scale": "1.06"}, "scale"), ({"scale": True}, "scale"),
        ({"scale": -1}, r">= 0\.0 - at `\$\.scale`"), ({"scale": 10**400}, "scale"),
        ({"scale": None}, "a scale or a channel"), ({"epsilon": "x"}, "epsilon"),
        ({"epsilon": True}, "epsilon"), ({"epsilon": None}, "epsilon"), ({"epsilon": 0}, "above 0"),
        ({"format": 1}, "format 2"),
        ({"mechanism": "exact; rm"}, r"\$\.mechanism"), ({"pairs": []}, r"\$\.pairs"),
        ({"pairs": [["a"]]}, r"\$\.pairs"), ({"from_rows": 1}, r"\$\.from_rows"),
        ({"rules": {"step": 3}}, "unknown field `rules`"),
        ({"rows_per_person": ["2"]}, r"\$\.rows_per_person"),
        ({"regions": [{"tv_radius": "0.1", "confidence": "0.9"}]}, "both were given"),
        ({"regions": [{"radius": "0.1"}]}, r"\$\.regions"),
        ({"regions": [{}]}, "needs a confidence"),
        ({"regions": [{"tv_radius": "0.1", "region": "box"}]}, "with a confidence"),
        ({"support": {"kind": "x"}}, r"\$\.support"),
        ({"support": {"kind": "levels", "ordered": True, "names": ["u", "u"]}}, "more than once"),
        ({"support": {"kind": "levels", "ordered": 1, "names": ["u"]}}, r"\$\.support\.ordered"),
        (numbers(step="0"), "above 0"), (numbers(step=True), "step"),
        (numbers(origin="1/2"), "whole number of steps"), (numbers(runs=[]), r"\$\.support\.runs"),
        (numbers(runs=[[1, 2]]), "increasing pairs of integers from 0"),
        (numbers(runs=[[0, 2], [1, 3]]), "increasing pairs of integers from 0"),
        (numbers(runs=[[0, 2**60]]), "increasing pairs of integers from 0"),
        (numbers(runs=[[0, 268435455]]), "at most 10000000 atoms"),
        (numbers(runs=[[0, 1.5]]), r"\$\.support\.runs"),
        (numbers(**{"a\nb": 1}), "unknown field `a b`"),
        (cleaning(missing=["2"]), "'2' cannot mean a missing value"),
        (cleaning(missing=["20e-1"]), "cannot mean a missing value"),
        (cleaning(missing="?"), r"\$\.cleaning\.missing"),
        (cleaning(missing_as_level=True), r"\(missing\)"),
        (cleaning(decimal=";"), r"\$\.cleaning\.decimal"), (cleaning(step="3"), "unknown field"),
    ],
    ids=repr,
)  # fmt: skip
def test_broken_plans(plan: pf.Plan, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(json.loads(plan.to_json()) | changes))
    with pytest.raises(InputError, match=message) as caught:
        pf.Plan.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rows": [[[0, "0x1"]]]}, "needs 3 rows"),
        ({"rows": [[[0, "0x1"]], [[1, "0x1"]], []]}, r"row 0|sums to 0"),
        ({"rows": [[[0, "1"]], [[1, "0x1"]], [[2, "0x1"]]]}, r"\$\.channel\.rows"),
        ({"rows": [[[3, "0x1"]], [[1, "0x1"]], [[2, "0x1"]]]}, "of its outputs"),
        ({"rows": [[[0, "0x1"], [0, "0x1"]], [[1, "0x1"]], [[2, "0x1"]]]}, "each once"),
        (numbers(runs=[[0, 9_999_999]])["support"], "at most 1333333 atoms"),
    ],
    ids=range(6),
)
def test_broken_channels(channel: pf.Plan, change: dict[str, Any], message: str) -> None:
    matrix = json.loads(channel.to_json())["channel"]
    assert edited(channel, channel=matrix).verify(SCENARIO).holds
    matrix |= change if "rows" in change else {"outputs": change}
    with pytest.raises(InputError, match=message):
        edited(channel, channel=matrix)
    with pytest.raises(InputError, match="a scale or a channel"):
        edited(channel, scale=1.0)


def test_a_small_file_costs_little(plan: pf.Plan) -> None:
    pairs = [[f"s{i}", f"s{j}"] for i in range(500) for j in range(i)]
    data = json.loads(plan.to_json()) | {"pairs": pairs}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = json.dumps(data)
    assert len(pf.Plan.from_json(text).pairs) == 124_750
    with pytest.raises(InputError, match="atoms"):
        edited(plan, **numbers(runs=[[0, 268435455]]))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2_000_000  # in kB


def test_files_that_are_no_plans(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for content, message in (("", "line 1"), ("[1]", "format"), ("{}", "format")):
        path.write_text(content)
        for read, given in ((pf.Plan.load, path), (pf.Plan.from_json, content)):
            with pytest.raises(InputError, match=message):
                read(given)
    with pytest.raises(InputError, match="there is no file"):
        pf.Plan.load(tmp_path / "other.json")
    nothing: Any
    for nothing in (None, 3, b"plan.json", "a\0.json"):
        with pytest.raises(InputError, match="not the text of a plan"):
            pf.Plan.from_json(nothing)
        for action in (pf.Plan.load, plan.save):
            with pytest.raises(InputError, match="name of a file is needed"):
                action(nothing)


# Columns: whose rules a release follows

FIRST = table(("a", 0), ("a", 1), ("b", 1), ("b", 1))
SECOND = table(("a", 0), ("a", 0), ("b", 1), ("b", 0))


def test_several_tables_must_be_read_in_one_way() -> None:
    one = learnt(FIRST, missing=["?"])
    plan = pf.calibrate(pf.Scenario([one, learnt(SECOND, missing=["?"])]), 1)
    assert plan.coding is not None
    assert (plan.coding.column, plan.coding.missing) == ("x", ("?",))
    renamed = learnt(SECOND.rename(columns={"x": "y"}), public="y", missing=["?"])
    rounded = learnt(SECOND, missing=["?"], step=1)
    for other in (learnt(SECOND), renamed, rounded):
        for priors in ([one, other], [other, one]):
            with pytest.raises(InputError, match="read with different options"):
                pf.calibrate(pf.Scenario(priors), 1)
    given_prior = pf.Prior.from_mapping({"a": {0: 1}, "b": {0: ".5", 1: ".5"}})
    for priors in ([one, given_prior], [given_prior, one]):  # such a plan names no columns
        plan = pf.calibrate(pf.Scenario(priors), 1)
        assert (plan.coding, plan.rules, plan.from_rows) == (None, None, True)


def test_a_plan_from_a_given_prior_is_told_its_columns(plan: pf.Plan, tmp_path: Path) -> None:
    frame = table(("a", 0), ("b", 2), ("c", 1), ("a", "?"))
    told = plan.with_columns("x", "s", missing=["?"])
    assert told.rules is not None
    with pytest.warns(OutsidePromiseWarning):
        released = told.release(frame)
    assert list(released.columns) == ["x"]
    assert len(released) == 3
    back = pf.Plan.from_json(told.to_json())
    assert (back.secret, back.secret_missing) == ("s", ("?",))
    assert back.verify(SCENARIO).holds
    with pytest.raises(InputError, match="names its columns already: it releases 'x'"):
        told.with_columns("y")
    options: dict[str, Any]
    for options, message in (
        ({"public": "x", "secret": "x"}, "differ"),
        ({"public": "x", "step": ".5"}, r"--step must be 1, the step of .*, but \.5 was given"),
        ({"public": "x", "missing": ["2"]}, "'2' cannot mean a missing value"),
        ({"public": "x", "missing_as_level": True}, r"\(missing\)"),
    ):
        with pytest.raises(InputError, match=message):
            plan.with_columns(**options)


def test_steps_and_orders_are_those_of_the_prior() -> None:
    masses = {"a": {"0.1": ".5", "0.9": ".5"}, "b": {"0.2": ".4", "3": ".6"}}
    plan = pf.calibrate(pf.Prior.from_mapping(masses, step=1), 0.5)
    frame = table(("a", 0.1), ("b", 2.8))
    with pytest.raises(InputError, match="outside the support"):
        plan.with_columns("x").release(frame)
    assert plan.with_columns("x", step=1).release(frame)["x"].dtype == np.int64
    levels = {"a": {"lo": ".5", "hi": ".5"}, "b": {"lo": 1}}
    plan = pf.calibrate(pf.Prior.from_mapping(levels, order=["lo", "hi"]), 1)
    frame = table(("a", "hi"), ("b", "lo"))
    released = plan.with_columns("x").release(frame, round=True, bounds=(0, 1))
    assert set(released["x"]) <= {"lo", "hi"}
    for wrong, message in (({"step": 1}, "holds levels"), ({"missing": ["hi"]}, "missing value")):
        with pytest.raises(InputError, match=message):
            plan.with_columns("x", **wrong)


# Releases and estimates, which are of other folders; here: that options arrive


def test_release_of_arrays_and_of_paths(plan: pf.Plan, tmp_path: Path) -> None:
    values = np.tile([0, 1, 2], 5000)
    released = plan.release(values)
    assert ((released - values) ** 2).mean() == pytest.approx(plan.mse, rel=0.2)
    with pytest.warns(SeededWarning):
        assert (plan.release(values, seed=1) == plan.release(values, seed=1)).all()
    assert plan.estimate(released).mean.estimate == pytest.approx(1, abs=0.2)
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("x\n0\n2\n1\n")
    plan = plan.with_columns("x")
    with pytest.raises(InputError, match=r"names a file: say where .* output="):
        plan.release(source)
    for _ in range(2):
        report = plan.release(str(source), output=output, force=True)
    assert report.rows_released == 3
    assert output.read_text().startswith("x\n")
