# SPDX-License-Identifier: Apache-2.0
"""Small inputs that tools of this kind get wrong, each through the command line.

W is the wasserstein scale times epsilon, "least" the exact scale.
"""

import csv
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from cli_runner import Outcome, check_refused, rows, run, write

A_AND_B = {"a": {"0": ".5", "1": ".3", "2": ".2"}, "b": {"0": ".2", "1": ".3", "2": ".5"}}


def calibrate(path: Path, *options: object, secret: str = "s", public: str = "x") -> Outcome:
    return run(
        "calibrate", path, "--secret", secret, "--public", public, "--epsilon", 1,
        "--mechanism", "wasserstein,exact", "--format", "json", *options,
    )  # fmt: skip


def release(path: Path, out: Path, *options: object, epsilon: object = 1) -> Outcome:
    """Calibrate the default mechanism on a table, and release it by that plan."""
    plan = out.with_suffix(".json")
    done = run(
        "calibrate", path, "--secret", "s", "--public", "x", "--epsilon", epsilon, "--save", plan,
        "--force",
    )  # fmt: skip
    assert done.status == 0, done.err
    return run("release", path, "--plan", plan, "-o", out, *options)


def prior_file(folder: Path, secrets: dict[str, dict[str, str]], name: str = "prior.json") -> Path:
    return write(folder, name, json.dumps({"secrets": secrets}))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_01_byte_order_mark_and_quoted_header(tmp_path: Path, end: str) -> None:
    lines = ['"ward","days"', "A,1", "A,2", "B,2", "B,3", ""]
    path = write(tmp_path, "t.csv", b"\xef\xbb\xbf" + end.join(lines).encode())
    outcome = calibrate(path, secret="ward", public="days")
    assert outcome.status == 0, outcome.err
    assert outcome.scales["wasserstein"] == 1


def test_02_na_is_a_value(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("NA,1", "NA,2", "DE,2", "DE,3", header="country,score"))
    outcome = calibrate(path, secret="country", public="score")
    assert outcome.scales["wasserstein"] == 1
    assert outcome.data["scenario"]["secrets"] == ["DE", "NA"]
    # Only the empty cell means "missing", and the output says so.
    assert [m["text"] for m in outcome.data["scenario"]["missing"]] == [""]


WORK = rows(
    "Private, 40", "Private, 50", " ?, 40", "State, 50", "State, 60", header="workclass, hours"
)


def test_03_question_mark_as_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", WORK)
    outcome = calibrate(path, "--missing", "?", secret="workclass", public="hours")
    assert outcome.scales["wasserstein"] == 10
    scenario = outcome.data["scenario"]
    assert scenario["rows"]["read"] == 5
    assert scenario["rows"]["used"] == 4
    assert {m["text"]: m["secret_rows"] for m in scenario["missing"]} == {"": 0, "?": 1}


def test_03_question_mark_as_a_level(tmp_path: Path) -> None:
    outcome = calibrate(write(tmp_path, "t.csv", WORK), secret="workclass", public="hours")
    assert outcome.scales["wasserstein"] == 20
    assert outcome.scales["exact"] == pytest.approx(15.779, abs=5e-4)
    assert outcome.data["scenario"]["rows"]["by_secret"]["?"] == 1
    assert any("'?'" in note for note in outcome.data["scenario"]["notes"])


BIG = rows("a,9007199254740992", "b,9007199254740993", "b,")


def test_04_integers_beyond_doubles(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", BIG)
    outcome = calibrate(path)
    assert outcome.scales["wasserstein"] == 1
    assert outcome.data["scenario"]["rows"]["set_aside"] == 1
    out = tmp_path / "out.csv"
    done = release(path, out, "--bounds", 9007199254740993, 9007199254740995)
    assert done.status == 0, done.err
    # As a double 9007199254740993 would have become ...992.
    released = [int(row) for row in out.read_text().splitlines()[1:]]
    assert len(released) == 2
    assert all(9007199254740993 <= value <= 9007199254740995 for value in released)


def test_05_blank_among_booleans(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,false", "a,", "b,false", "b,true", header="s,flag"))
    outcome = calibrate(path, "--order", "false,true", public="flag")
    assert outcome.scales["wasserstein"] == 1
    assert outcome.scales["exact"] == pytest.approx(0.67119, abs=5e-6)


@pytest.mark.parametrize("cell", ["Inf", "nan", "-Infinity", "1e999"])
def test_06_not_finite(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path, "t.csv", rows("a,1", "a,2", f"b,{cell}", "b,3"))
    check_refused(calibrate(path), "finite", "row 3")


def test_06_numbers_among_text(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,1", "a,2", "b,unknown", "b,3"))
    check_refused(calibrate(path), "--missing", "--levels")


def test_07_thousands(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows('a,"1,200"', 'a,"1,201"', 'b,"1,201"'))
    check_refused(calibrate(path), "--decimal")


@pytest.mark.parametrize(
    "name, content",
    [
        ("header.csv", "s,x\n"),
        ("empty.csv", ""),
        ("twice.csv", "s,x,x\na,1,2\nb,2,3\n"),
        ("long-header.csv", "s,x,y\na,1\nb,2\n"),
        ("long-row.csv", "s,x\na,1\nb,2,3\n"),
    ],
)
def test_08_broken_tables(tmp_path: Path, name: str, content: str) -> None:
    check_refused(calibrate(write(tmp_path, name, content)), name)


@pytest.mark.parametrize(
    "content, distance",
    [("s\tx\na\t1\na\t2\nb\t2\nb\t3\n", 1), ("s;x\na;1,5\na;2,5\nb;2,5\nb;3,5\n", 1)],
)
def test_08_other_separators(tmp_path: Path, content: str, distance: float) -> None:
    outcome = calibrate(write(tmp_path, "t.csv", content))
    if outcome.status:
        check_refused(outcome)
    else:
        assert outcome.scales["wasserstein"] == distance


LEVELS = [
    *(["A,Low"] * 6 + ["A,Medium"] * 3 + ["A,High"] * 1),
    *(["B,Low"] * 1 + ["B,Medium"] * 3 + ["B,High"] * 6),
]


@pytest.mark.parametrize(
    "order, distance, least",
    [
        ("Low,Medium,High", 2, 0.88801),
        ("alphabetical", 1, 0.62284),
        ("High,Medium,Low", 2, 0.88801),
    ],
)
def test_09_order_of_levels(tmp_path: Path, order: str, distance: float, least: float) -> None:
    outcome = calibrate(write(tmp_path, "t.csv", rows(*LEVELS)), "--order", order)
    assert outcome.scales["wasserstein"] == distance
    assert outcome.scales["exact"] == pytest.approx(least, abs=5e-6)
    coding = outcome.data["scenario"]["coding"]
    names = sorted(["Low", "Medium", "High"]) if order == "alphabetical" else order.split(",")
    assert coding == {name: code for code, name in enumerate(names)}
    shuffled = calibrate(write(tmp_path, "u.csv", rows(*LEVELS[::-1])), "--order", order)
    assert shuffled.data["results"] == outcome.data["results"]


def test_09_order_of_appearance_warns(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows(*LEVELS))
    outcome = calibrate(path, "--order", "appearance")
    assert "pufferfish: warning: " in outcome.err
    assert outcome.scales["wasserstein"] == 2


def test_09_no_order(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows(*LEVELS))
    check_refused(calibrate(path), "wasserstein adds noise", "no order", "--order", "channel")
    # Without a name, levels without an order get what can be had for them.
    outcome = run("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", 1, "--format",
                  "json")  # fmt: skip
    assert outcome.scales == {"channel": None}


GAPS = ["A,low", "A,mid", "B,low", "B,high", "C,"]


def test_10_a_level_that_one_secret_never_has(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows(*GAPS))
    check_refused(calibrate(path, "--order", "low,mid,high"), "'C'", "--exclude-secret")
    outcome = calibrate(path, "--order", "low,mid,high", "--exclude-secret", "C")
    assert outcome.scales["wasserstein"] == 1
    assert outcome.scales["exact"] == pytest.approx(0.8490, abs=5e-5)


def test_10_a_secret_with_one_row_warns(tmp_path: Path) -> None:
    outcome = calibrate(write(tmp_path, "t.csv", rows("a,1", "a,2", "b,2")))
    assert outcome.status == 0
    assert outcome.err.startswith("pufferfish: warning: ")
    assert "secret b" in outcome.err
    assert "single row" in outcome.err


@pytest.mark.parametrize(
    "row, parts",
    [
        ('[".5", ".5"]', ["'a'", "values"]),
        ('{"0": ".47", "1": ".5"}', ["'a'", "0.97"]),
        ('{"0": "1", "1": "0.5"}', ["'a'", "1.5"]),
        ('{"0": "0", "1": "0"}', ["'a'", "0"]),
        ('{"0": "-.5", "1": "1.5"}', ["'a'", "negative"]),
        ("{}", ["'a'", "values"]),
    ],
)
def test_12_priors_that_are_none(tmp_path: Path, row: str, parts: list[str]) -> None:
    text = f'{{"secrets": {{"a": {row}, "b": {{"0": ".5", "1": ".5"}}}}}}'
    path = write(tmp_path, "prior.json", text)
    check_refused(run("calibrate", "--prior", path, "--epsilon", 1), "prior.json", *parts)


def test_12_almost_one_is_renormalised_and_said_so(tmp_path: Path) -> None:
    path = prior_file(
        tmp_path, {"a": {"0": ".4999999", "1": ".5"}, "b": {"0": ".5", "1": ".5", "2": "0"}}
    )
    outcome = run("calibrate", "--prior", path, "--epsilon", 1, "--format", "json")
    assert outcome.status == 0
    assert any("'a'" in note for note in outcome.data["scenario"]["notes"])
    table = run("calibrate", "--prior", path, "--epsilon", 1)
    assert "note: " in table.out


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-9", "1", "1.01", "50", "1e6", "1/3"])
def test_13_epsilons(tmp_path: Path, epsilon: str) -> None:
    path = prior_file(tmp_path, {"a": {"0": "1"}, "b": {"1": "1"}})
    outcome = run(
        "calibrate", "--prior", path, "--epsilon", epsilon, "--mechanism", "all",
        "--format", "json",
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    least = 1 / Fraction(epsilon)
    scale = outcome.scales["wasserstein"]
    assert least <= Fraction(scale) < least + 4 * Fraction(math.ulp(float(least)))
    assert all(result["certified"] for result in outcome.data["results"])


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "5e-324", "much", "1,,2", "", "1/0"])
def test_13_epsilons_that_are_none(tmp_path: Path, epsilon: str) -> None:
    path = prior_file(tmp_path, A_AND_B)
    check_refused(run("calibrate", "--prior", path, "--epsilon", epsilon), "epsilon")


def test_13_a_comma_separates_and_says_so(tmp_path: Path) -> None:
    path = prior_file(tmp_path, A_AND_B)
    outcome = run("calibrate", "--prior", path, "--epsilon", "1,5", "--format", "json")
    assert [result["epsilon"] for result in outcome.data["results"]] == [1, 5]
    assert "pufferfish: note: --epsilon 1,5 is the list 1 and 5" in outcome.err
    assert "1.5" in outcome.err
    plain = run("calibrate", "--prior", path, "--epsilon", "0.1,0.2", "--format", "json")
    assert "note" not in plain.err
    check_refused(run("calibrate", "--prior", path, "--epsilon", "0,5"), "write 0.5")


CONSTANT = rows("a,7", "a,7", "b,7", "b,7")


def test_14_nothing_to_hide(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", CONSTANT)
    outcome = calibrate(path)
    (wasserstein, exact) = outcome.data["results"]
    assert wasserstein["scale"] == exact["scale"] == 0
    assert exact["mse"] == exact["std"] == exact["loss"] == 0
    assert exact["unchanged"] is True
    assert exact["reduction_vs_wasserstein"] is None
    assert "PUBLISHED UNCHANGED" in outcome.err
    table = run("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", 1)
    assert "PUBLISHED UNCHANGED" in table.out


def test_14_release_unchanged_needs_a_word(tmp_path: Path) -> None:
    path, out = write(tmp_path, "t.csv", CONSTANT), tmp_path / "out.csv"
    check_refused(release(path, out), "--allow-unchanged", "--min-scale")
    assert not out.exists()
    outcome = release(path, out, "--allow-unchanged")
    assert outcome.status == 0
    assert "unchanged" in outcome.err
    assert out.read_text() == "x\n7\n7\n7\n7\n"
    outcome = release(path, out, "--min-scale", "2.5", "--force")
    assert outcome.status == 0
    assert "scale 2.500000000 (raised by --min-scale)" in outcome.out


def edited(plan: Path, scale: str) -> Path:
    """Return a copy of a plan file with another scale."""
    text, number = re.subn(r'"scale": [^,\n]+', f'"scale": {scale}', plan.read_text())
    assert number == 1
    return write(plan.parent, f"plan-{scale}.json", text)


def test_15_edited_scales_are_judged_on_their_merits(tmp_path: Path) -> None:
    prior, plan = prior_file(tmp_path, A_AND_B), tmp_path / "plan.json"
    outcome = run(
        "calibrate", "--prior", prior, "--epsilon", ".5", "--format", "json", "--save", plan
    )
    scale = outcome.scales["exact"]
    assert 1.0594259987634 - 2e-12 <= scale <= 1.0594259987634 * (1 + 1e-9)
    assert run("verify", plan, "--prior", prior).status == 0
    assert run("verify", edited(plan, "1.06"), "--prior", prior).status == 0
    failed = run("verify", edited(plan, "1.059"), "--prior", prior)
    check_refused(failed, "0.50016", "0.5", "1.059", status=1)


def test_18_values_outside_the_support(tmp_path: Path) -> None:
    path, plan = write(tmp_path, "t.csv", rows("a,1", "a,2", "b,2", "b,3")), tmp_path / "plan.json"
    other = write(tmp_path, "u.csv", rows("a,1", "b,9", "b,2"))
    outcome = run(
        "calibrate", path, "--secret", "s", "--public", "x", "--epsilon", 1, "--save", plan
    )
    assert outcome.status == 0
    out = tmp_path / "out.csv"
    check_refused(run("release", other, "--plan", plan, "-o", out), "row 2", "clamp")
    assert not out.exists()
    outcome = run("release", other, "--plan", plan, "-o", out, "--out-of-support", "clamp")
    assert outcome.status == 0
    assert "1 moved to the nearest value of the support" in outcome.out
    assert len(out.read_text().splitlines()) == 4


def test_19_the_sum_is_rounded(tmp_path: Path) -> None:
    lines = ["a,0.25"] * 200 + ["b,0.75"] * 200
    path, out = write(tmp_path, "t.csv", rows(*lines)), tmp_path / "out.csv"
    outcome = release(path, out, "--round")
    assert outcome.status == 0
    assert all(float(line) == int(line) for line in out.read_text().splitlines()[1:])


def test_20_bounds_clamp(tmp_path: Path) -> None:
    lines = ["a,0"] * 300 + ["b,1"] * 300
    path, out = write(tmp_path, "t.csv", rows(*lines)), tmp_path / "out.csv"
    outcome = release(path, out, "--bounds", "-3", "5", epsilon=".1")
    assert outcome.status == 0, outcome.err
    released = [int(line) for line in out.read_text().splitlines()[1:]]
    assert min(released) == -3
    assert max(released) == 5
    # Scale 10: clamping gathers most of the mass at the two ends, drawing again would not.
    assert sum(value in (-3, 5) for value in released) > 300


def test_21_formulas_in_kept_text(tmp_path: Path) -> None:
    table = rows("a,0,=1+1,-3.2", "b,1,@x,4", "a,1,+cmd,5", header="s,x,t,n")
    path, out = write(tmp_path, "t.csv", table), tmp_path / "out.csv"
    outcome = release(path, out, "--keep", "t", "--keep", "n")
    assert outcome.status == 0, outcome.err
    with out.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["t"] for row in found] == ["'=1+1", "'@x", "'+cmd"]
    assert [row["n"] for row in found] == ["-3.2", "4", "5"]
    assert "warning" in outcome.err
    assert "no certificate" in outcome.out
    check_refused(release(path, out, "--force", "--keep", "s"), "secret")


def test_22_all_pairs_unless_named(tmp_path: Path) -> None:
    path = prior_file(tmp_path, {"A": {"0": "1"}, "B": {"1": "1"}, "C": {"2": "1"}})
    options = ("--prior", path, "--epsilon", 1, "--mechanism", "wasserstein", "--format", "json")
    assert run("calibrate", *options).scales["wasserstein"] == 2
    named = run("calibrate", *options, "--pair", "A", "B", "--pair", "B", "C")
    assert named.scales["wasserstein"] == 1
    assert named.data["scenario"]["pairs"] == [["A", "B"], ["B", "C"]]


def test_22_both_directions(tmp_path: Path) -> None:
    path = prior_file(tmp_path, {"A": {"0": "1"}, "B": {"0": ".99", "10": ".01"}})
    for pair in (("A", "B"), ("B", "A")):
        outcome = run(
            "calibrate", "--prior", path, "--epsilon", ".1", "--pair", *pair, "--format", "json"
        )
        assert outcome.scales["exact"] == pytest.approx(4.091934011526, rel=1e-9)
