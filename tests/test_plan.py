# SPDX-License-Identifier: Apache-2.0
"""Plans: saved privately, read strictly, and judged by verify on the merits of their scale."""

import json
import math
import os
import stat
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import pufferfish as pf
from pufferfish import atomic
from pufferfish.assumptions import ASSUMPTION, GIVEN_PRIOR
from pufferfish.digits import nearest, rounded_up
from pufferfish.errors import (
    CheckFailed,
    InputError,
    OutsidePromiseWarning,
    SeededWarning,
    UnchangedWarning,
)
from pufferfish.support import Lattice, Levels
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
    assert not plan.from_rows
    assert "exact" in repr(plan)
    counts = pf.Prior.from_counts({"a": [5, 3], "b": [2, 3]}, support=[0, 1])
    assert pf.calibrate(counts, 0.1).assumption == ASSUMPTION
    both = pf.Scenario([counts, pf.Prior.from_mapping({"a": {0: 1}, "b": {0: ".5", 1: ".5"}})])
    assert pf.calibrate(both, 0.1).from_rows


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
    assert back.certificate == plan.certificate
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
    for force in (False, True):
        with pytest.raises(InputError, match="it is a folder"):
            plan.save(tmp_path, force=force)
        with pytest.raises(InputError, match=r"the folder .*nowhere does not exist"):
            plan.save(tmp_path / "nowhere" / "plan.json", force=force)
    path.chmod(0o644)
    plan.save(path, force=True)
    assert pf.Plan.load(path).scale == plan.scale
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["plan.json"]


def test_a_plan_is_saved_behind_a_link(plan: pf.Plan, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    plan.save(link)
    plan.save(link, force=True)
    assert link.is_symlink()
    assert pf.Plan.load(real).scale == plan.scale


def test_a_file_that_appears_while_a_plan_is_saved_is_kept(
    plan: pf.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    publish = atomic.PendingFile.publish

    def late(self: atomic.PendingFile) -> None:
        path.write_text("precious")
        publish(self)

    monkeypatch.setattr(atomic.PendingFile, "publish", late)
    with pytest.raises(InputError, match="exists already"):
        plan.save(path)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["plan.json"]


def test_an_edited_scale_is_judged_on_its_merits(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    better = pf.Plan.load(edited(plan, path, scale=1.06))
    assert better.verify(SCENARIO).loss == pytest.approx(0.49979078051845738, rel=1e-12)
    worse = pf.Plan.load(edited(plan, path, scale=1.059, loss=0.1))
    with pytest.raises(CheckFailed, match=r"0\.50016, above epsilon 0\.5"):
        worse.verify(SCENARIO)


GARBAGE: list[Any] = [
    None, 3, "x", [], {}, {"loss": 0}, {"witness": 1}, {"loss": 10**400},
]  # fmt: skip


@pytest.mark.parametrize("claim", GARBAGE, ids=repr)
def test_what_a_file_claims_of_its_loss_is_ignored(
    plan: pf.Plan, tmp_path: Path, claim: Any
) -> None:
    path = tmp_path / "plan.json"
    whole = plan.certificate.to_dict()
    for certificate in (claim, {**whole, **claim} if isinstance(claim, dict) and claim else claim):
        back = pf.Plan.load(edited(plan, path, certificate=certificate, loss=claim))
        assert back.verify(SCENARIO).holds
        assert back.scale == plan.scale
        if not back.certificate.holds:
            assert back.certificate.method == "none"
            assert back.loss == math.inf
        assert pf.Plan.from_dict(back.to_dict()).to_dict() == back.to_dict()
    data = plan.to_dict()
    del data["certificate"], data["loss"], data["notice"], data["version"], data["assumption"]
    back = pf.Plan.from_dict(data)
    assert not back.certificate.holds
    assert back.verify(SCENARIO) == plan.certificate
    assert back.assumption == plan.assumption


def test_a_claim_does_not_save_a_bad_scale(plan: pf.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert plan.certificate.holds
    worse = pf.Plan.load(edited(plan, path, scale=plan.scale / 2))
    assert worse.certificate.holds  # the file says so
    with pytest.raises(CheckFailed, match="above epsilon"):
        worse.verify(SCENARIO)


@pytest.mark.parametrize("nonsense", ["x", None, 1.06, [], {}, [SCENARIO]])
def test_verify_wants_a_scenario(plan: pf.Plan, nonsense: Any) -> None:
    for other_prior in (False, True):
        with pytest.raises(InputError, match="verify needs a Scenario or a Prior, but a "):
            plan.verify(nonsense, other_prior=other_prior)


def test_a_notice_says_whose_privacy_is_at_stake(plan: pf.Plan) -> None:
    counts = pf.calibrate(pf.Prior.from_counts({"a": [5, 3], "b": [2, 3]}, support=[0, 1]), 0.1)
    for made, words in ((plan, "as private as that prior"), (counts, "depends on every one")):
        data = made.to_dict()
        assert words in data["notice"]
        assert data["from_rows"] is made.from_rows
        # The text is not what decides.
        back = pf.Plan.from_dict({**data, "assumption": "other words", "notice": ""})
        assert back.from_rows is made.from_rows
        assert back.assumption == made.assumption


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
        ({"format": True}, "its format is True"),
        ({"format": 1.0}, "reads format 1"),
        ({"secrets": []}, "at least one"),
        ({"secrets": ["a", "b", "a"]}, "each secret once"),
        ({"support": {"kind": "x"}}, "unknown kind"),
        ({"support": []}, "'support'"),
        ({"pairs": []}, "pairs"),
        ({"pairs": [["a"]]}, "pairs"),
        ({"secrets": [1]}, "list of texts"),
        ({"pairs": [["a", "z"]]}, "pairs of its secrets"),
        ({"pairs": [["a", 1]]}, "pairs of its secrets"),
        ({"from_rows": None}, "'from_rows'"),
        ({"from_rows": 1}, "'from_rows'"),
        ({"rules": 3}, "rules"),
        ({"rules": {"public": "x", "missing": 5}}, "rules"),
        (
            {"support": {"kind": "numbers", "step": "1", "origin": "0", "runs": [[0, 2**28]]}},
            "at most 268435456 atoms",
        ),
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
    with pytest.warns(OutsidePromiseWarning, match="1 released value was not in the support"):
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
    assert rounded_up(0.500155367, 5) == "0.50016"
    assert rounded_up(math.inf) == "inf"
    assert rounded_up(0.0) == "0"
    assert rounded_up(0.1, 5) == "0.10001"  # the double is above one tenth
    assert Fraction(rounded_up(0.1)) >= Fraction(0.1)
    assert nearest(0.1) == "0.100000"


# Columns: whose rules a release follows.


def table(*rows: tuple[object, object]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["s", "x"]).astype(str)


def learnt(frame: pd.DataFrame, public: str = "x", **options: Any) -> pf.Prior:
    return pf.Prior.from_table(frame, secret="s", public=public, **options)


FIRST = table(("a", 0), ("a", 1), ("b", 1), ("b", 1))
SECOND = table(("a", 0), ("a", 0), ("b", 1), ("b", 0))


def test_several_tables_must_be_read_in_one_way() -> None:
    one = learnt(FIRST, missing=["?"])
    plan = pf.calibrate(pf.Scenario([one, learnt(SECOND, missing=["?"])]), 1)
    assert plan.rules == one.report.rules if one.report else None
    renamed = learnt(SECOND.rename(columns={"x": "y"}), public="y", missing=["?"])
    cases = [
        (learnt(SECOND, missing=["-"]), r"different --missing \(missing=\.\.\.\): '\?' and '-'"),
        (learnt(SECOND), r"different --missing .*: '\?' and none;"),
        (renamed, r"different --public .*: 'x' and 'y'"),
        (learnt(SECOND, missing=["?"], step=1), r"different --step .*: none and 1;"),
    ]
    for other, message in cases:
        with pytest.raises(InputError, match=message):
            pf.calibrate(pf.Scenario([one, other]), 1)
        with pytest.raises(InputError, match="a release can follow only one"):
            pf.calibrate(pf.Scenario([other, one]), 1)


def test_a_table_beside_a_given_prior_names_no_columns() -> None:
    given_prior = pf.Prior.from_mapping({"a": {0: 1}, "b": {0: ".5", 1: ".5"}})
    for priors in ([learnt(FIRST), given_prior], [given_prior, learnt(FIRST)]):
        plan = pf.calibrate(pf.Scenario(priors), 1)
        assert plan.rules is None
        assert plan.from_rows


def test_a_plan_from_a_given_prior_is_told_its_columns(plan: pf.Plan, tmp_path: Path) -> None:
    frame = table(("a", 0), ("b", 2), ("c", 1), ("a", "?"))
    with pytest.raises(InputError, match=r"no column is named; .*--public COL \(plan.with_columns"):
        plan.release(frame)
    told = plan.with_columns("x", "s", missing=["?"])
    with pytest.warns(OutsidePromiseWarning) as caught:
        released = told.release(frame)
    assert list(released.columns) == ["x"]
    assert len(released) == 3
    assert {str(w.message).split(" (")[0] for w in caught} == {
        "1 row was left out", "1 released row is outside the promise"
    }  # fmt: skip
    told.save(tmp_path / "told.json")
    back = pf.Plan.load(tmp_path / "told.json")
    assert back.rules == told.rules
    assert back.verify(SCENARIO).holds
    with pytest.raises(InputError, match="names its columns already: it releases 'x'"):
        told.with_columns("y")
    for options, message in (
        ({"public": ""}, "name of a column"),
        ({"public": "x", "secret": "x"}, "must differ"),
        ({"public": "x", "step": ".5"}, r"--step must be 1 \(step='1'\), .* but \.5 was given"),
        ({"public": "x", "step": "no"}, "must be a number"),
    ):
        with pytest.raises(InputError, match=message):
            plan.with_columns(**options)


def test_with_a_step_values_are_rounded_as_the_prior_was() -> None:
    masses = {"a": {"0.1": ".5", "0.9": ".5"}, "b": {"0.2": ".4", "3": ".6"}}
    plan = pf.calibrate(pf.Prior.from_mapping(masses, step=1), 0.5)
    frame = table(("a", 0.1), ("b", 2.8))
    with pytest.raises(InputError, match=r"data row 1 .* outside the support, which goes from 0"):
        plan.with_columns("x").release(frame)
    released = plan.with_columns("x", step=1).release(frame)
    assert released["x"].dtype == np.int64


def test_levels_get_their_order_from_the_plan() -> None:
    masses = {"a": {"lo": ".5", "hi": ".5"}, "b": {"lo": 1}}
    plan = pf.calibrate(pf.Prior.from_mapping(masses, order=["lo", "hi"]), 1)
    told = plan.with_columns("x")
    assert told.rules is not None
    assert told.rules.order == ("lo", "hi")
    released = told.release(table(("a", "hi"), ("b", "lo")), round=True, bounds=(0, 1))
    assert set(released["x"]) <= {"lo", "hi"}
    with pytest.raises(InputError, match="step is for numbers"):
        plan.with_columns("x", step=1)
    with pytest.raises(InputError, match="means a missing value"):
        plan.with_columns("x", missing=["hi"])


def test_a_pandas_index_is_not_released(plan: pf.Plan) -> None:
    frame = table(("a", 0), ("b", 2)).set_index(pd.Index(["Ann", "Bob"]))
    assert list(plan.with_columns("x").release(frame).index) == [0, 1]
    series = plan.release(frame["x"])
    assert list(series.index) == [0, 1]
    assert series.name == "x"
    assert "Ann" not in repr(plan.release(frame.set_index("s")["x"].to_frame()["x"]))


# What is calibrated is what is released: verify judges the coding that a release uses.

LEVELS = table(("a", "lo"), ("a", "mid"), ("b", "mid"), ("b", "hi"), ("b", "hi"))
NUMBERS = table(("a", 0), ("a", 1), ("a", 1), ("b", 1), ("b", 4), ("b", 4))


def reordered(data: dict[str, Any]) -> None:
    data["support"]["names"] = ["mid", "lo", "hi"]
    data["rules"]["order"] = ["mid", "lo", "hi"]


def reordered_without_rules(data: dict[str, Any]) -> None:
    data["support"]["names"] = ["mid", "lo", "hi"]
    data["rules"] = None


def shifted(data: dict[str, Any]) -> None:
    data["support"]["origin"] = "1"


def widened(data: dict[str, Any]) -> None:
    data["support"]["runs"] = [[0, 4]]


def refined(data: dict[str, Any]) -> None:
    data["support"]["step"] = "1/2"


CODINGS = [
    (LEVELS, reordered), (LEVELS, reordered_without_rules),
    (NUMBERS, shifted), (NUMBERS, widened), (NUMBERS, refined),
]  # fmt: skip


def refuses_another_coding(frame: pd.DataFrame, edit: Callable[[dict[str, Any]], None]) -> bool:
    """Whether verify refuses a plan whose file was edited to code values in another way."""
    prior = learnt(frame, order=None if frame is NUMBERS else ["lo", "mid", "hi"])
    plan = pf.calibrate(prior, 1)
    data = json.loads(json.dumps(plan.to_dict()))
    assert pf.Plan.from_dict(data).verify(prior).holds
    edit(data)
    other = pf.Plan.from_dict(data)
    try:
        other.verify(prior)
    except CheckFailed as error:
        return "the support of the plan is not that of the prior" in str(error)
    return False


@pytest.mark.parametrize("frame, edit", CODINGS, ids=[edit.__name__ for _, edit in CODINGS])
def test_verify_and_release_use_one_coding(
    frame: pd.DataFrame, edit: Callable[[dict[str, Any]], None]
) -> None:
    assert refuses_another_coding(frame, edit)


@pytest.mark.parametrize("frame, edit", CODINGS[:4], ids=[e.__name__ for _, e in CODINGS[:4]])
def test_mutant_verify_without_the_coding_is_caught(
    frame: pd.DataFrame, edit: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (Levels, Lattice):
        monkeypatch.setattr(kind, "same_as", lambda self, other: self.size == other.size)
    if edit is widened:
        monkeypatch.setattr(Lattice, "same_as", lambda self, other: True)
    assert not refuses_another_coding(frame, edit)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"order": 5}, "the 'order' of its rules must be a list"),
        ({"order": True}, "the 'order' of its rules must be a list"),
        ({"order": ["lo", 1]}, "the 'order' of its rules must be a list"),
        ({"levels": 5}, "the 'levels' of its rules must be a list"),
        ({"levels": "lo"}, "the 'levels' of its rules must be a list"),
        ({"missing": True}, "the 'missing' of its rules must be a list"),
        ({"missing": None}, "the 'missing' of its rules must be a list"),
        ({"missing": [["?"]]}, "the 'missing' of its rules must be a list"),
        ({"exclude_secrets": 0}, "the 'exclude_secrets' of its rules must be a list"),
        ({"step": True}, "the 'step' of its rules"),
        ({"decimal": ["."]}, "decimal mark"),
        ({"public": 3}, "name of a column"),
        ({"order": ["mid", "lo", "hi"]}, "not that of the levels of its support"),
        ({"order": ["lo", "mid"]}, "not that of the levels of its support"),
    ],
)
def test_broken_rules(change: dict[str, Any], message: str) -> None:
    plan = pf.calibrate(learnt(LEVELS, order=["lo", "mid", "hi"]), 1)
    data = json.loads(json.dumps(plan.to_dict()))
    assert pf.Plan.from_dict(data).rules == plan.rules
    data["rules"] |= change
    with pytest.raises(InputError, match=message):
        pf.Plan.from_dict(data)


def test_an_order_in_the_file_is_for_levels() -> None:
    data = json.loads(json.dumps(pf.calibrate(learnt(NUMBERS), 1).to_dict()))
    data["rules"]["order"] = ["0", "1", "4"]
    with pytest.raises(InputError, match="not that of the levels of its support"):
        pf.Plan.from_dict(data)


@pytest.mark.parametrize("name", ["p" * 250 + ".json", "é" * 120 + ".json", "😀" * 60 + ".json"])
def test_a_name_as_long_as_names_can_be(plan: pf.Plan, tmp_path: Path, name: str) -> None:
    plan.save(tmp_path / name)
    assert pf.Plan.load(tmp_path / name).digest == plan.digest
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_other_cleaning_in_the_file_is_another_prior(tmp_path: Path) -> None:
    frame = pd.concat([NUMBERS, table(("b", "?"))])
    path = tmp_path / "plan.json"
    plan = pf.calibrate(learnt(frame, missing=["?"]), 1)
    plan.save(path)
    assert pf.Plan.load(path).rules == plan.rules
    data = json.loads(path.read_text())
    data["rules"]["missing"] = ["?", "0"]
    other = pf.Plan.from_dict(data)
    assert other.rules is not None
    with pytest.raises(CheckFailed, match="not those that the plan was computed from"):
        other.verify(learnt(frame, missing=other.rules.missing))


@pytest.mark.parametrize("pairs", [[["a", "a"]], [["a", "b"], ["b", "a"]]])
def test_pairs_in_a_plan_are_distinct_and_of_two_secrets(
    plan: pf.Plan, tmp_path: Path, pairs: list[list[str]]
) -> None:
    path = edited(plan, tmp_path / "plan.json", pairs=pairs)
    with pytest.raises(InputError, match="pairs must"):
        pf.Plan.load(path)


def test_names_that_no_file_can_have(plan: pf.Plan) -> None:
    with pytest.raises(InputError):
        pf.Plan.load("a\0.json")
    surrogate = pf.Prior.from_mapping({"\ud800": {0: 0.5, 1: 0.5}, "b": {0: 0.25, 1: 0.75}})
    with pytest.raises(InputError, match="half a character"):
        pf.calibrate(surrogate, 1).save("surrogate-test.json")
    assert not Path("surrogate-test.json").exists()
