# SPDX-License-Identifier: Apache-2.0
"""The accountant: plans and mechanisms of one table, joined with what its prior knows."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import CheckFailed, InputError, OutsidePromiseWarning
from pufferfish.joint import DoesNotFit, worst_case
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.support import Levels

RARE = pf.Scenario(pf.Prior.from_mapping({"A": {"0": "1"}, "B": {"0": ".99", "10": ".01"}}))
XOR = pf.Prior.from_counts(
    {"A": [[1, 0], [0, 1]], "B": [[0, 1], [1, 0]]}, support={"x": [0, 1], "z": [0, 1]}
)
PAIR = pf.Prior.from_counts(
    {"A": [[5, 3], [2, 6]], "B": [[4, 4], [4, 3]]}, support={"x": [0, 1], "z": [0, 1]}
)
UNCHANGED = DiscreteLaplace(0.0, Fraction(1))


def test_the_theorys_numbers() -> None:
    plan = pf.calibrate(RARE, "0.1")
    assert plan.scale == pytest.approx(4.0919340115, abs=1e-10)
    assert float(pf.joint_loss(RARE, [plan])) == pytest.approx(0.1, abs=1e-12)
    assert round(float(pf.joint_loss(RARE, [plan, plan])), 3) == 0.840
    assert round(float(pf.joint_loss(RARE, [plan] * 5)), 2) == 7.61
    both = pf.calibrate_together(RARE, "0.2", 2)
    assert [round(p.scale or 0, 5) for p in both] == [6.36623, 6.36623]
    assert float(pf.joint_loss(RARE, both)) == pytest.approx(0.2, abs=1e-12)
    assert pf.joint_loss(RARE, both).at_most(Fraction(1, 5))


def test_nothing_alone_and_everything_together() -> None:
    for column in ("x", "z"):
        alone = pf.joint_loss(XOR, [(column, UNCHANGED)])
        assert alone.upper == 0
        assert float(alone) == 0
    together = pf.joint_loss(XOR, [("x", UNCHANGED), ("z", UNCHANGED)])
    assert together.upper is None
    assert math.isinf(float(together))
    assert together.name == "joint loss"
    first = pf.calibrate(XOR, 1, column="x")
    assert first.unchanged
    second = pf.calibrate(XOR, 1, column="z", already=[("x", first)])
    assert (second.scale or 0) > 0
    with pytest.raises(CheckFailed, match="leaves nothing of epsilon 1"):
        pf.calibrate(XOR, 1, column="z", already=[("x", UNCHANGED), ("z", UNCHANGED)])


def test_no_release_costs_nothing() -> None:
    answer = pf.joint_loss(RARE, [])
    assert answer.upper == 0
    assert answer.how == "the joint loss, proved by nothing was released"


def test_a_table_is_counted_once_for_all_its_columns() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "s": rng.choice(["a", "b"], 200),
            "x": rng.integers(0, 4, 200),
            "z": rng.choice(["low", "mid", "high"], 200),
        }
    )
    order = ["low", "mid", "high"]
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"], order={"z": order})
    x = pf.calibrate(pf.Prior.from_table(table, secret="s", public="x"), "0.05")
    z = pf.calibrate(
        pf.Prior.from_table(table, secret="s", public="z", order=order), "0.05", "channel"
    )
    answer = pf.joint_loss(joint, [x, z, x])
    assert answer.name == "joint loss"
    assert answer.joint is not None
    assert answer.joint.exact
    assert float(answer) >= max(float(pf.joint_loss(joint, [p])) for p in (x, z)) > 0
    # A scenario that knows one column bounds the other by its worst case.
    alone = pf.Prior.from_table(table, secret="s", public="x")
    mixed = pf.joint_loss(alone, [x, z, x])
    assert mixed.name in ("joint loss + worst cases", "worst-case sum")
    assert mixed.upper is None or float(mixed) >= float(answer)


def test_a_grid_that_is_too_large_gives_a_bound() -> None:
    noise = DiscreteLaplace(2.0, Fraction(1))
    exact = pf.joint_loss(PAIR, [("x", noise), ("z", noise)])
    assert exact.name == "joint loss"
    bound = pf.joint_loss(PAIR, [("x", noise), ("z", noise)], limit=3)
    assert bound.name == "joint loss + worst cases"
    assert bound.upper is not None
    assert exact.upper is not None
    assert exact.upper < bound.upper <= 1
    assert "worst cases of the others" in bound.how


@pytest.mark.parametrize(
    "items, words",
    [
        ([3], "release 1 must be a plan"),
        ("x", "a list of plans"),
        ([("x", 3)], "release 1 must be a plan"),
        ([UNCHANGED], "name the column of release 1"),
        ([("y", UNCHANGED)], "the scenario knows nothing"),
        (
            [("x", Channel.of(Levels(("a",), False), Levels(("a",), False), [[1]]))],
            "release 1 is for other values",
        ),
    ],
    ids=str,
)
def test_what_is_no_release_is_refused(items: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pf.joint_loss(PAIR, items)


def test_a_plan_knows_its_column() -> None:
    alone = pf.Prior.from_counts({"A": [3, 5], "B": [5, 3]}, support=[0, 1])
    plan = pf.calibrate(alone, "0.4").with_columns("x", "s")
    assert float(pf.joint_loss(PAIR, [plan])) == float(pf.joint_loss(PAIR, [("x", plan)]))
    with pytest.raises(InputError, match="its plan is for 'x'"):
        pf.joint_loss(PAIR, [("z", plan)])
    with pytest.raises(InputError, match="a list of plans"):
        pf.joint_loss(PAIR, plan)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Scenario or a Prior"):
        pf.joint_loss(plan, [plan])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["l1", "wasserstein", "relaxed", "one-sided", "exact"])
def test_five_releases_one_after_another_stay_within_the_budget(name: str) -> None:
    """Each is calibrated for a growing part of the budget; what does not fit is refused."""
    out: list[pf.Plan] = []
    for k in range(1, 6):
        plan = pf.calibrate(RARE, Fraction(k, 5), name, already=out)
        assert plan.beside is not None
        assert plan.beside.releases == k - 1
        out.append(plan)
        assert pf.joint_loss(RARE, out).at_most(Fraction(k, 5))
        assert plan.beside.loss == float(pf.joint_loss(RARE, out))
    if name == "exact":
        assert float(pf.joint_loss(RARE, out)) == pytest.approx(1, abs=1e-9)
        with pytest.raises(CheckFailed, match="less than a billionth of epsilon 1"):
            pf.calibrate(RARE, 1, name, already=out)
    with pytest.raises(CheckFailed, match="leaves nothing of epsilon"):
        pf.calibrate(RARE, float(pf.joint_loss(RARE, out)) / 2, name, already=out)
    with pytest.raises(CheckFailed, match="billionth"):
        pf.calibrate(RARE, 1, "exact", already=pf.calibrate_together(RARE, 1, 3))


def test_budgets_of_l1_scales_add_exactly() -> None:
    """Ten times a tenth fit into 1, and nothing more does, where no joint loss is smaller."""
    apart = pf.Scenario(pf.Prior.from_mapping({"A": {"0": "1"}, "B": {"10": "1"}}))
    for times in (10, 11):
        plan = pf.calibrate(apart, Fraction(1, times), "l1")
        assert pf.joint_loss(apart, [plan] * times).upper == 1
        assert pf.joint_loss(apart, [plan] * times).at_most(Fraction(1))
        assert not pf.joint_loss(apart, [plan] * (times + 1)).at_most(Fraction(1))


@pytest.mark.parametrize("mechanism", ["exact", "relaxed", "channel"])
@pytest.mark.parametrize("column", ["x", "z"])
def test_beside_other_columns(mechanism: str, column: str) -> None:
    first = DiscreteLaplace(2.0, Fraction(1))
    kept = pf.calibrate(PAIR, "0.1", "channel", column="z", cost="hamming")
    out: list[Any] = [("x", first), ("z", kept)]
    plan = pf.calibrate(PAIR, "0.3", mechanism, column=column, already=out)
    total = pf.joint_loss(PAIR, [*out, (column, plan)])
    assert total.at_most(Fraction(3, 10))
    assert plan.beside is not None
    assert plan.beside.loss == float(total)
    assert plan.verify(pf.Scenario(PAIR).of_column(column)).holds
    if mechanism == "exact":
        assert (plan.scale or 0) > 0
        smaller = DiscreteLaplace((plan.scale or 0) * 0.999, Fraction(1))
        assert not pf.joint_loss(PAIR, [*out, (column, smaller)]).at_most(Fraction(3, 10))


def test_ratios_of_scales_are_kept() -> None:
    x, z = pf.calibrate_together(PAIR, "0.2", {"x": 1, "z": 3})
    assert z.scale == pytest.approx(3 * (x.scale or 0), rel=1e-12)
    assert pf.joint_loss(PAIR, [("x", x), ("z", z)]).at_most(Fraction(1, 5))
    smaller = [
        (name, DiscreteLaplace((plan.scale or 0) * 0.999, Fraction(1)))
        for name, plan in (("x", x), ("z", z))
    ]
    assert not pf.joint_loss(PAIR, smaller).at_most(Fraction(1, 5))
    thrice = pf.calibrate_together(PAIR, "0.2", ["x", "x", ("z", "1/2")])
    assert (thrice[0].scale, 3) == (thrice[1].scale, len(thrice))
    for wrong in ([], [("x", 0)], "x", 2, {"y": 1}):
        with pytest.raises(InputError):
            pf.calibrate_together(PAIR, 1, wrong)  # type: ignore[arg-type]


def noisy_z(scale: float) -> pf.Plan:
    """A plan for z alone, with noise of some scale."""
    z = pf.calibrate(PAIR, "0.05", column="z")
    noise = DiscreteLaplace(scale, Fraction(1))
    own = pf.Scenario(PAIR).of_column("z")
    return pf.Plan.of(own, "exact", noise, Fraction(1), z.certificate).with_columns("z")


def test_a_worst_case_stands_in_for_a_column_nobody_counted() -> None:
    """The scenario knows x alone; z is out by a plan of its own."""
    known = pf.Prior.from_counts({"A": [8, 8], "B": [8, 7]}, support={"x": [0, 1]})
    noisy = noisy_z(4.0)
    assert worst_case(noisy.applied, noisy.support).upper == Fraction(1, 4)
    plan = pf.calibrate(known, "0.5", already=[noisy], column="x")
    total = pf.joint_loss(PAIR, [("x", plan), ("z", noisy)])
    assert total.at_most(Fraction(1, 2))
    with pytest.raises(CheckFailed, match="leaves nothing"):
        pf.calibrate(known, "0.2", already=[noisy], column="x")


def test_a_refusal_tells_a_worst_case_and_what_would_help() -> None:
    """A worst case says little of the two columns; counted together they cost far less."""
    known = pf.Prior.from_counts({"A": [8, 8], "B": [8, 7]}, support={"x": [0, 1]})
    z = noisy_z(0.5)
    refusal = (
        r"^what is already out \(1 release\) has a joint loss of up to 2 "
        r"\(the sum of the worst cases of all releases\), which leaves nothing of epsilon 1; the "
        r"prior knows nothing of 'z', so the worst case stands in: count the columns together, as "
        r"in Prior.from_table\(..., public=\['x', 'z'\]\)$"
    )
    for mechanism in ("exact", "l1", "channel"):
        with pytest.raises(DoesNotFit, match=refusal):
            pf.calibrate(known, 1, mechanism, column="x", already=[z])
    with pytest.raises(DoesNotFit, match=refusal):
        pf.calibrate_together(known, 1, ["x", "x"], already=[z])
    assert pf.joint_loss(PAIR, [("z", z)]).at_most("0.15")
    with pytest.raises(DoesNotFit, match=r"out \(2 releases\) has .*the others: 2 \(z\)\), which"):
        pf.calibrate(known, 1, column="x", already=[("x", UNCHANGED), z])
    # Where the joint loss itself was computed there is no worst case to tell of.
    both = [("x", UNCHANGED), ("z", UNCHANGED)]
    refusal = (
        r"^what is already out \(2 releases\) has a joint loss of up to (\S+), which leaves "
        r"nothing of epsilon {}$"
    )
    with pytest.raises(DoesNotFit, match=refusal.format("0.1")):
        pf.calibrate(PAIR, "0.1", column="z", already=both)
    with pytest.raises(DoesNotFit, match=refusal.format("0.1")):
        pf.calibrate_together(PAIR, "0.1", ["z"], already=both)
    with pytest.raises(DoesNotFit, match="up to infinity, which"):
        pf.calibrate(XOR, 1, column="z", already=both)


def test_a_region_and_releases_that_are_out_do_not_go_together() -> None:
    robust = pf.Prior.from_counts({"A": [3, 5], "B": [5, 3]}, support=[0, 1], tv_radius=".1")
    with pytest.raises(InputError, match="cannot be had together"):
        pf.calibrate(robust, 1, already=[])


def test_what_was_out_is_kept_in_the_plan_file(tmp_path: Path) -> None:
    plan = pf.calibrate(RARE, "0.2", already=[pf.calibrate(RARE, "0.1")])
    plan.save(tmp_path / "plan.json")
    assert pf.Plan.load(tmp_path / "plan.json").beside == plan.beside
    data = json.loads((tmp_path / "plan.json").read_text())
    for claim in (3, {"releases": True, "loss": 0, "how": ""}, {"releases": 1}):
        assert pf.Plan.from_dict(data | {"beside": claim}).beside is None


def test_order_of_releases_does_not_matter() -> None:
    plans = [("x", pf.calibrate(PAIR, "0.2", column="x")), ("z", DiscreteLaplace(1.5, Fraction(1)))]
    plans.append(("x", pf.calibrate(PAIR, "0.7", "channel", column="x", min_keep=".6")))
    values = {float(pf.joint_loss(PAIR, order)) for order in itertools.permutations(plans)}
    assert max(values) - min(values) < 1e-12


def test_a_scenario_without_a_name_is_about_one_column_only() -> None:
    """The first name is that of its column; another name is another column."""
    masses = {"a": {"0": ".6", "1": ".4"}, "b": {"0": ".3", "1": ".7"}}
    one = pf.Scenario(pf.Prior.from_mapping(masses))
    noise = pf.calibrate(one, "0.2")
    same = pf.joint_loss(one, [("x", noise), ("x", noise)])
    other = pf.joint_loss(one, [("x", noise), ("z", noise)])
    assert same.name == "joint loss"
    assert other.name == "joint loss + worst cases"
    assert float(other) > float(same)


def test_releases_of_an_unknown_column_count_each_with_its_own_values() -> None:
    one = pf.Scenario(pf.Prior.from_counts({"a": [3, 5], "b": [5, 3]}, support={"x": [0, 1]}))
    near = pf.Prior.from_counts({"a": [3, 5], "b": [5, 3]}, support=[0, 1])
    far = pf.Prior.from_counts({"a": [3, 5], "b": [5, 3]}, support=[0, 100])
    plans = [pf.calibrate(near, "0.2"), pf.calibrate(far, "0.2")]
    items = [("z", plan) for plan in plans]
    most = 1 / Fraction(plans[0].scale) + 100 / Fraction(plans[1].scale)
    assert pf.joint_loss(one, items).upper == most
    assert pf.joint_loss(one, items[::-1]).upper == most


def test_what_judges_single_rows_refuses_the_rows_of_one_person() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"who": [1, 1, 2, 2], "s": list("aabb"), "x": [0, 0, 0, 1]})
    by_person = pf.Prior.from_table(table, secret="s", public="x", unit="who")
    scenario = pf.Scenario(by_person)
    for call in (
        lambda: pf.certify(scenario, 1.0, 1),
        lambda: pf.privacy_loss(scenario, 1.0),
    ):
        with pytest.raises(InputError, match="one person"):
            call()
    together = pf.calibrate(scenario, 1)
    with pytest.raises(InputError, match="one person"):
        pf.joint_loss(pf.Prior.from_table(table, secret="s", public="x"), [together])


def test_a_crumb_that_rounding_left_is_nothing(tmp_path: Path) -> None:
    """Also with several columns: no search for a scale that nobody could use."""
    first = pf.calibrate(PAIR, "0.05", column="x")
    assert (first.scale or 0) > 0
    for mechanism in ("exact", "relaxed", "channel"):
        with pytest.raises(CheckFailed, match="less than a billionth"):
            pf.calibrate(PAIR, "0.05", mechanism, column="z", already=[("x", first)])
    with pytest.raises(CheckFailed, match="leaves nothing"):
        pf.calibrate_together(PAIR, "0.05", ["z"], already=[("x", first)])
    # What costs nothing more still fits.
    alone = pf.Prior.from_counts(
        {"A": [[3, 3], [5, 5]], "B": [[5, 5], [3, 3]]}, support={"x": [0, 1], "z": [0, 1]}
    )
    spent = pf.calibrate(alone, "0.05", column="x")
    assert pf.calibrate(alone, "0.05", column="z", already=[("x", spent)]).unchanged


def test_a_plan_of_one_of_several_columns_knows_its_column() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {"s": list("aabbab"), "x": [0, 1, 2, 0, 1, 2], "z": ["l", "h", "l", "h", "h", "l"]}
    )
    joint = pf.Prior.from_table(
        table, secret="s", public=["x", "z"], order={"z": ["l", "h"]}, missing=["?"]
    )
    plan = pf.calibrate(joint, 1, column="z")
    assert plan.rules is not None
    assert (plan.rules.public, plan.rules.secret) == ("z", "s")
    assert plan.rules.order == ("l", "h")
    assert float(pf.joint_loss(joint, [plan])) == float(pf.joint_loss(joint, [("z", plan)]))
    assert pf.joint_loss(joint, [plan]).at_most("1")


def test_rows_that_lack_a_value_are_not_covered_and_that_is_said() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {
            "s": ["a", "b"] * 60,
            "x": [None] * 80 + [0, 0, 1, 1] * 10,
            "z": [0, 1] * 40 + [0, 0, 1, 1] * 10,
        }
    )
    joint = pf.Prior.from_table(table, secret="s", public=["x", "z"])
    with pytest.warns(OutsidePromiseWarning, match="80 rows of the table without a value"):
        plans = pf.calibrate_together(joint, 1, ["x", "z"])
    assert any("80 rows" in note for note in plans[1].notes)
    with pytest.warns(OutsidePromiseWarning, match="without a value"):
        plan = pf.calibrate(joint, 1, column="z", already=[plans[0]])
    assert any("80 rows" in note for note in plan.notes)
    with pytest.warns(OutsidePromiseWarning, match="without a value"):
        pf.joint_loss(joint, plans)
