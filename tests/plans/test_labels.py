# SPDX-License-Identifier: Apache-2.0
"""Plans of channels that publish sets: the labels are read strictly, and cost no privacy."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
import referee
from plan_cases import edited, learnt, recorded, table
from pufferfish.errors import CheckFailed, InputError
from pufferfish.ledger.ledger import Ledger
from pufferfish.mechanisms.channel import Channel
from pufferfish.plans.record import read_record
from pufferfish.support import Levels, make_lattice
from set_cases import set_plan

ROWS = table(*[("a", "lo")] * 6, *[("a", "mid")] * 3, ("a", "hi"),
             ("b", "lo"), *[("b", "mid")] * 3, *[("b", "hi")] * 6)  # fmt: skip
NUMBERS = ROWS.replace({"x": {"lo": "1", "mid": "2.5", "hi": "4"}})


@pytest.fixture(scope="module")
def plan() -> pf.Plan:
    return set_plan(learnt(ROWS))


def test_what_is_told_is_what_labels_are(plan: pf.Plan) -> None:
    assert plan.channel is not None
    assert plan.labels is not None
    assert plan.label_channel is not None
    assert plan.support == Levels(("hi", "lo", "mid"))
    assert plan.channel.outputs == Levels(("{hi, lo}", "{hi, mid}", "{lo, mid}", "{*}"))
    # hi stays hi: (8 + 8) 2/3 + 5/3 of 26; lo: 8/3 + 8 2/3 + 5/3; mid: 8/3 + 8/3 + 5/3.
    assert [plan.label_channel.probability(x, x) for x in range(3)] == [
        Fraction(37, 78), Fraction(29, 78), Fraction(21, 78)
    ]  # fmt: skip
    assert plan.keep_rate == pytest.approx(29 / 78, abs=1e-15)
    assert (plan.objective, plan.objective_bound, plan.cost, plan.mse) == (2.5, 2.0, 2.5, None)
    assert "channel that keeps 37.18 % of the values" in repr(plan)
    assert not plan.unchanged
    numbers = set_plan(learnt(NUMBERS))
    assert (numbers.mse or 0) > 0
    # Squared errors of labels 1, 2.5, 4, by their chances from the lesser to the greater value.
    assert numbers.label_channel is not None
    assert numbers.label_channel.outputs == numbers.support == make_lattice(
        [Fraction(1), Fraction(5, 2), Fraction(4)]
    )  # fmt: skip
    for made in (plan, numbers):
        back = edited(made)
        assert back.to_json() == made.to_json()
        assert (back.objective, back.objective_bound, back.keep_rate) == (2.5, 2.0, made.keep_rate)
        assert back.labels is not None
        assert back.labels.rows.tolist() == made.labels.rows.tolist()
    ordinary = pf.calibrate(learnt(ROWS), "0.48", best_for="kept")
    assert (ordinary.labels, ordinary.objective, ordinary.objective_bound) == (None, None, None)
    assert ordinary.label_channel is ordinary.channel


Edit = Callable[[dict[str, Any]], Any]
#: Labels that do not fit, and what is said of them; the referee refuses them too.
WRONG: dict[str, tuple[Edit, str]] = {
    "a set without a label": (lambda d: d["labels"]["rows"].pop(), "needs 4 rows, but has 3"),
    "a row of nothing": (lambda d: d["labels"]["rows"][0].clear(), "nor all of a row 0"),
    "twice": (lambda d: d["labels"]["rows"][0].append(d["labels"]["rows"][0][0]), "each once"),
    "out of range": (lambda d: d["labels"]["rows"][0].append([3, "0x1"]), "of its outputs"),
    "of a set without it": (lambda d: d["channel"]["rows"][0].pop(0), "a set without it"),
    "another order": (lambda d: d["labels"]["outputs"]["names"].reverse(), "do not fit"),
    "another value": (lambda d: d["labels"]["outputs"]["names"].append("x"), "do not fit"),
    "of noise": (lambda d: d.update(scale=1.0, channel=None), "no order|no channel"),
    "a level's name": (
        lambda d: d["channel"]["outputs"]["names"].__setitem__(0, "lo"), "name of a set"
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit, message", WRONG.values(), ids=WRONG)
def test_labels_are_read_strictly(plan: pf.Plan, edit: Edit, message: str, tmp_path: Path) -> None:
    data = json.loads(plan.to_json())
    edit(data)
    with pytest.raises(InputError, match=message):
        pf.Plan.from_json(json.dumps(data))
    (tmp_path / "plan.json").write_text(json.dumps(data))
    ROWS.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(referee.Refused):
        referee.judge(tmp_path / "plan.json", tmp_path / "t.csv")


def test_verify_proves_the_sets_whatever_the_labels_are(plan: pf.Plan, tmp_path: Path) -> None:
    scenario = pf.Scenario(learnt(ROWS))
    loss = plan.verify(scenario).loss
    assert loss == pf.certify(scenario, plan.applied, 1).loss < 0.48
    assert plan.labels is not None
    sure = Channel(plan.labels.inputs, plan.support, [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert replace(plan, labels=sure).verify(scenario).loss == loss
    other = Levels(("hi", "lo", "x"))
    for wrong in (Channel(plan.labels.inputs, other, sure.rows),
                  Channel(Levels(("p", "q", "r", "s")), plan.support, sure.rows)):  # fmt: skip
        with pytest.raises(InputError, match="the labels do not fit"):
            replace(plan, labels=wrong)
    # More of an entry of the sets' channel is a larger loss, though the labels hardly change.
    matrix = json.loads(plan.to_json())["channel"]
    matrix["rows"][0][0][1] = hex(80)
    worse = edited(plan, channel=matrix)
    with pytest.raises(CheckFailed, match="of the channel is"):
        worse.verify(scenario)
    worse.save(tmp_path / "worse.json")
    ROWS.to_csv(tmp_path / "t.csv", index=False)
    judged = referee.judge(tmp_path / "worse.json", tmp_path / "t.csv")
    assert not referee.within(judged, tmp_path / "worse.json")
    same = replace(plan, applied=worse.applied)
    with pytest.raises(pytest.fail.Exception, match="the referee finds a loss of"):
        same.save(tmp_path / "same.json")


def test_sets_compose_like_any_channel(plan: pf.Plan, tmp_path: Path) -> None:
    prior = learnt(ROWS)
    twice = pf.joint_loss(prior, [plan, plan])
    assert twice.upper == pf.joint_loss(prior, [("x", plan.applied)] * 2).upper
    assert plan.loss < float(twice) <= 2 * plan.loss + 1e-12
    further = pf.calibrate(prior, 1, already=[plan])
    assert further.labels is not None
    assert pf.joint_loss(prior, [plan, further]).at_most(Fraction(1))
    numbers = learnt(NUMBERS)
    out = set_plan(numbers)
    both = pf.calibrate_together(numbers, 2, 2, already=[out])
    assert pf.joint_loss(numbers, [out, *both]).at_most(Fraction(2))
    # A ledger charges the sets, and keeps the labels with the plan.
    ROWS.to_csv(tmp_path / "t.csv", index=False)
    ledger = Ledger.create(tmp_path / "books.db")
    ledger.dataset("d", tmp_path / "t.csv", secret="s", budget=2)
    for releases in ([plan], [plan, plan]):
        with ledger.charge(tmp_path / "t.csv", plan) as done:
            plan.release(tmp_path / "t.csv", output=tmp_path / "o.csv", force=True)
            assert done.price.bound.upper == pf.joint_loss(prior, releases).upper
    ledger.verify(tmp_path / "t.csv")
    charged = [pf.Plan.from_json(each.plan) for each in ledger.show().releases]
    assert [each.labels is not None for each in charged] == [True, True]


@pytest.mark.parametrize(
    "rows, shown", [(ROWS, {"levels": ["hi", "lo", "mid"]}), (NUMBERS, {"step": "0.5"})]
)
def test_a_record_tells_sets_and_labels_where_they_are_published(
    rows: Any, shown: dict[str, Any], tmp_path: Path
) -> None:
    plan, path = set_plan(learnt(rows)), tmp_path / "record.json"

    secret = recorded(plan, rows, tmp_path)
    assert secret["set_column"] == "x (set)"
    assert not {"labels", "channel"} & {*secret}
    assert "{*}" not in path.read_text()
    assert recorded(plan, rows, tmp_path, publish=True, labels_only=True)["set_column"] is None
    assert read_record(path).labels_only
    told = recorded(plan, rows, tmp_path, publish=True)
    assert told["values"].items() >= shown.items()
    read, again = read_record(path), edited(plan).spec()
    for mine, its in ((read.mechanism, again.mechanism), (read.labels, again.labels)):
        assert isinstance(mine, Channel)
        assert isinstance(its, Channel)
        assert mine.outputs == its.outputs
        assert mine.rows.tolist() == its.rows.tolist()
    assert (read.labels_only, read.sets is not None) == (False, True)
