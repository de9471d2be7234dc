# SPDX-License-Identifier: Apache-2.0
"""Priors that are only estimated, on the command line: regions, the loss at 95 %, the radius."""

import csv
import decimal
import io
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish as pf
from cli_runner import check_refused, rows, run, write
from pufferfish.cli import comparison, digits
from pufferfish.regions import Box, regions_of

COLUMNS = ("--secret", "s", "--public", "x")
LINES = ["a,0"] * 40 + ["a,1"] * 25 + ["a,2"] * 15 + ["b,0"] * 20 + ["b,1"] * 25 + ["b,2"] * 45
T = ("calibrate", "t.csv", *COLUMNS, "--epsilon", "0.5")
P = ("calibrate", "--prior", "p.json", "--epsilon", "0.5")
PRIOR = {
    "secrets": {"a": {"0": ".5", "1": ".3", "2": ".2"}, "b": {"0": ".2", "1": ".3", "2": ".5"}}
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table and a prior."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", rows(*LINES))
    write(tmp_path, "p.json", json.dumps(PRIOR))
    return tmp_path


def data_of(*arguments: object) -> Any:
    outcome = run(*arguments, "--format", "json")
    assert outcome.status == 0, outcome.err
    return outcome.data


@pytest.mark.usefixtures("folder")
def test_confidence_is_that_of_the_library() -> None:
    data = data_of(*T, "--confidence", "0.95", "--mechanism", "all")
    assert data["scenario"]["regions"] == [{"confidence": "0.95"}]
    assert [r["mechanism"] for r in data["results"]] == ["exact", "channel"]
    note = "'all' leaves out l1, wasserstein, relaxed, one-sided: each of them cannot honour"
    assert any(n.startswith(note) for n in data["scenario"]["notes"])
    prior = pf.Prior.from_table("t.csv", secret="s", public="x", confidence="0.95")
    for result in data["results"]:
        plan = pf.calibrate(prior, "0.5", result["mechanism"])
        assert (result["scale"], result["cost"]) == (plan.scale, plan.cost)
        assert result["robust"] is result["certified"] is True
        assert result["loss"] <= 0.5
        assert result["reduction_vs_l1"] is result["reduction_vs_wasserstein"] is None
        assert result["loss_at_95"] <= 0.5 * (1 + 1e-9)
    plain = data_of(*T)
    assert plain["scenario"]["regions"] is None
    assert plain["results"][0]["scale"] < data["results"][0]["scale"]
    assert plain["results"][0]["loss_at_95"] > 0.5
    assert plain["results"][0]["robust"] is False


@pytest.mark.usefixtures("folder")
def test_the_words_of_a_region() -> None:
    out = run(*T, "--confidence", "0.95").out
    assert "region of the prior: Clopper-Pearson intervals" in out
    assert "to be within epsilon for every prior of the region (proved by" in out
    assert "Loss at 95 %" not in out
    out = run(*T, "--tv-radius", "0.01").out
    assert "region of the prior: total-variation balls of radius 0.01" in out
    assert "to be within epsilon for every prior of the region (proved by" in out
    plain = run(*T).out
    assert "region" not in plain
    assert "Loss at 95 %: " in plain


@pytest.mark.usefixtures("folder")
def test_a_radius_for_tables_and_priors() -> None:
    for start in (T, P):
        data = data_of(*start, "--tv-radius", "0.01")
        assert data["scenario"]["regions"] == [{"tv_radius": "0.01"}]
        (robust,) = data["results"]
        (plain,) = data_of(*start)["results"]
        assert robust["scale"] > plain["scale"]
        assert robust["robustness_radius"] == pytest.approx(0.01, abs=1e-6)
        assert plain["robustness_radius"] == pytest.approx(0, abs=1e-6)
    two = ("--prior", "p.json")
    regions = data_of(*P, *two, "--tv-radius", "1/8")["scenario"]["regions"]
    assert regions == [{"tv_radius": "0.125"}] * 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command, parts",
    [
        ((*P, "--confidence", ".95"), ["--confidence", "TABLE", "--tv-radius R"]),
        ((*T, "--confidence", "95"), ["confidence", "above 0 and below 1", "95 % is 0.95"]),
        ((*T, "--confidence", "1"), ["confidence"]),
        ((*T, "--confidence", "high"), ["confidence", "'high'"]),
        ((*T, "--tv-radius", "2"), ["radius", "from 0 to 1"]),
        ((*P, "--tv-radius", "-1"), ["radius", "from 0 to 1"]),
        ((*T, "--tv-radius", "--force"), ["--tv-radius needs a value"]),
        ((*T, "--confidence", ".9", "--tv-radius", ".1"), ["not both"]),
        ((*P, "--confidence", ".9", "--tv-radius", ".1"), ["not both"]),
        ((*T, "--confidence", ".9", "--mechanism", "relaxed"),
         ["relaxed cannot honour a region (--confidence or --tv-radius)", "exact, channel"]),
        ((*T, "--confidence", ".9", "--mechanism", "exact,l1"), ["l1 cannot honour"]),
        (("release", "t.csv", "--prior", "p.json", "--public", "x", "--epsilon", "1", "-o",
          "o.csv", "--confidence", ".9"), ["--confidence", "--tv-radius R"]),
    ],
)  # fmt: skip
def test_regions_that_are_none(command: tuple[str, ...], parts: list[str]) -> None:
    check_refused(run(*command), *parts)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", [("--confidence", "0.95"), ("--tv-radius", "0.02")])
@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_a_robust_plan_there_and_back(option: tuple[str, str], mechanism: str) -> None:
    saved = run(*T, *option, "--mechanism", mechanism, "--save", "plan.json")
    assert saved.status == 0, saved.err
    done = run("verify", "plan.json", "t.csv")
    assert done.status == 0, done.err
    assert re.search("loss at most [.0-9]+ for every prior of the region, within", done.out)
    assert pf.Plan.load("plan.json").regions[0].describe() in done.out  # type: ignore[union-attr]
    done = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv")
    assert done.status == 0, done.err
    assert len(Path("o.csv").read_text().splitlines()) == len(LINES) + 1
    done = run("release", "t.csv", *COLUMNS, "--epsilon", "0.5", *option, "--mechanism", mechanism,
               "-o", "n.csv")  # fmt: skip
    assert re.search(r"certified loss at most [.0-9]+ for every prior of the region", done.out)


def check_robust_scale_is_needed() -> None:
    """Check that the scale of the plain plan is refused under the region of the robust one."""
    plain = data_of(*T)["results"][0]["scale"]
    assert run(*T, "--confidence", "0.95", "--save", "plan.json", "--force").status == 0
    data = json.loads(Path("plan.json").read_text())
    data["scale"] = plain
    Path("plan.json").write_text(json.dumps(data))
    check_refused(run("verify", "plan.json", "t.csv"), "some prior of the region",
                  "above epsilon 0.5", status=1)  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_verify_judges_a_robust_plan_for_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    check_robust_scale_is_needed()
    monkeypatch.setattr("pufferfish.judge._promised", lambda plan, scenario: (None,))
    with pytest.raises(AssertionError):  # the mutant that forgets the region
        check_robust_scale_is_needed()


@pytest.mark.usefixtures("folder")
def test_one_result_gets_a_sentence_and_many_a_column() -> None:
    found = data_of(*T)["results"][0]
    one = run(*T).out
    shown = digits.rounded_up(found["loss_at_95"], 4)
    assert any(shown in line.split() for line in one.splitlines())
    said = "Loss at 95 %: the largest that the numbers of rows allow at 95 % confidence"
    assert said in one
    twice = comparison._radius(found["robustness_radius_at_double"])
    assert (
        f"Robustness radius (total variation): 0 before the loss passes epsilon, {twice} before "
        "twice epsilon." in one
    )
    assert "radius" not in table_of(one)[0]
    assert "at twice" not in one


def table_of(out: str) -> list[list[str]]:
    """Return the cells of the comparison's last lines of headers and of its rows."""
    lines = [line.split() for line in out.splitlines()]
    start = next(k for k, line in enumerate(lines) if line[:2] == ["epsilon", "mechanism"])
    return [lines[start], *(line for line in lines[start:] if line[:1] == ["0.5"])]


@pytest.mark.usefixtures("folder")
def test_several_results_get_columns_of_radii() -> None:
    out = run(*T, "--mechanism", "all").out
    assert "Loss at 95 %: the largest that" in out
    assert (
        "Radius: how wrong the prior may be (total variation) before the loss passes epsilon. "
        "Radius at twice: the same for twice epsilon." in out
    )
    _, *lines = table_of(out)
    found = data_of(*T, "--mechanism", "all")["results"]
    assert len(lines) == len(found) == 6
    for line, result in zip(lines, found, strict=True):
        once, twice = (
            comparison._radius(result[f"robustness_radius{more}"]) for more in ("", "_at_double")
        )
        assert any(line[k : k + 2] == [once, twice] for k in range(len(line)))
    assert "Robustness radius" not in out


@pytest.mark.usefixtures("folder")
def test_radii_that_are_all_zero_need_no_column() -> None:
    out = run(*T, "--mechanism", "exact,channel").out
    assert (
        "Radius at twice: how wrong the prior may be (total variation) before the loss passes "
        "twice epsilon; epsilon itself: 0." in out
    )
    assert "Radius: " not in out
    assert not any(line.count("radius") == 2 for line in out.splitlines())
    assert table_of(out)[0].count("twice") == 1
    assert "radius" not in table_of(out)[0]


@pytest.mark.usefixtures("folder")
def test_what_confidence_covers_is_said_where_nothing_was_declared() -> None:
    Path("l.csv").write_text(rows(*["a,p"] * 40, *["a,q"] * 25, *["b,p"] * 30, *["b,q"] * 45))
    levels = ("calibrate", "l.csv", *COLUMNS, "--epsilon", "0.5")
    said = "for the levels that occur; declare others with --levels"
    assert f"It is {said}." in run(*levels).out
    confident = (*levels, "--confidence", "0.95")
    assert f"note: the region is {said}" in run(*confident).out
    assert f"the region is {said}" in data_of(*confident)["scenario"]["notes"]
    for declared in (("--levels", "p,q"), ("--order", "p,q")):
        assert said not in run(*levels, *declared).out
        assert said not in run(*confident, *declared).out
    assert said in run(*levels, "--order", "alphabetical").out
    values = "for the values that occur"
    assert f"It is {values}" in run(*T).out
    assert f"note: the region is {values}" in run(*T, "--tv-radius", "0.01").out
    assert "that occur" not in run(*P, "--tv-radius", "0.01").out


@pytest.mark.usefixtures("folder")
def test_a_declared_level_is_not_impossible_under_a_region() -> None:
    Path("l.csv").write_text(rows(*["a,p"] * 40, *["a,q"] * 25, *["b,p"] * 30, *["b,q"] * 45))
    start = ("calibrate", "l.csv", *COLUMNS, "--epsilon", "2", "--levels", "p,q,r")
    plain = "1 declared level in no row, of probability 0 but part of the support: 'r'"
    assert plain in data_of(*start)["scenario"]["notes"]
    prior = pf.Prior.from_table("l.csv", secret="s", public="x", levels=["p", "q", "r"])
    scenario = pf.Scenario(prior)
    box = regions_of(scenario, confidence="0.95")[0]
    assert isinstance(box, Box)
    most = max(int(end) for end in box.upper[:, 2]) / box.denominator
    for option, number in (
        (("--confidence", "0.95"), digits.rounded_up(most, 3)),
        (("--tv-radius", "1/16"), "0.0625"),
    ):
        data = data_of(*start, *option, "--mechanism", "channel")
        said = f"of probability 0 to {number} in the region, and part of the support: 'r'"
        assert f"1 declared level in no row, {said}" in data["scenario"]["notes"]
        assert plain not in data["scenario"]["notes"]
        assert said in " ".join(run(*start, *option).out.split())


@pytest.mark.usefixtures("folder")
def test_the_help_says_whom_a_region_is_for() -> None:
    text = " ".join(run("calibrate", "--help").out.split()).replace("- ", "-")
    assert "Calibrate for every prior that the rows of TABLE leave possible" in text
    assert "Calibrate for every prior within this total-variation distance of the one" in text
    assert "Levels of the public column: also those that no row has" in text
    assert "released like any other; not for numbers" in text


@pytest.mark.usefixtures("folder")
def test_an_infinite_loss_at_95_is_said_and_explained() -> None:
    # With these few rows loss(0) is within epsilon, but a level may be missing for one secret.
    Path("u.csv").write_text(rows(*["a,0", "a,1", "b,0", "b,1"] * 2, "a,2", "b,2"))
    start = ("calibrate", "u.csv", *COLUMNS, "--epsilon", "1")
    found = data_of(*start)["results"][0]
    assert found["unchanged"] is True
    assert found["loss_at_95"] > 1
    Path("v.csv").write_text(rows("a,0", "a,1", "b,0", "b,1", "c,2", "a,1", "b,1"))
    start = ("calibrate", "v.csv", *COLUMNS, "--epsilon", "1", "--pair", "a", "b")
    found = data_of(*start)["results"][0]
    assert found["loss_at_95"] == "inf"
    out = run(*start).out
    assert any("inf" in line.split() for line in out.splitlines())
    assert "inf at 95 %: some output occurs for one secret, and rows are too few to show" in out
    row = next(csv.DictReader(io.StringIO(run(*start, "--format", "csv").out)))
    assert float(row["loss_at_95"]) == math.inf


@pytest.mark.parametrize(
    "value, text",
    [(0.0, "0"), (1e-14, "0"), (1e-9, "<1e-6"), (1e-5, "0.00001"), (0.0999999, "0.0999"),
     (1.0, "1"), (0.25, "0.25"), (0.00999999999999, "0.01"), (0.0099999, "0.00999")],
)  # fmt: skip
def test_a_radius_is_cut_off(value: float, text: str) -> None:
    assert comparison._radius(value) == text


def check_cut_off(value: float) -> None:
    shown = Fraction(digits.cut_off(value))
    assert shown <= Fraction(value) * (1 + Fraction(2, 10**9))
    assert shown >= Fraction(value) * (1 - Fraction(1, 99))


@given(st.floats(1e-12, 1))
def test_no_radius_is_shown_larger(value: float) -> None:
    check_cut_off(value)


def test_mutant_a_radius_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decimal, "ROUND_FLOOR", decimal.ROUND_HALF_EVEN)
    with pytest.raises(AssertionError):
        check_cut_off(0.0099999)


@pytest.mark.usefixtures("folder")
def test_a_robust_statement_names_the_adversary_and_shortens_epsilon() -> None:
    other = {
        "secrets": {"a": {"0": ".5", "1": ".3", "2": ".2"}, "b": {"0": ".1", "1": ".2", "2": ".7"}}
    }
    Path("q.json").write_text(json.dumps(other))
    digits_of = "0.4" + "123456789" * 5
    start = ("calibrate", "--prior", "p.json", "--prior", "q.json", "--epsilon", digits_of)
    for mechanism in ("exact", "channel"):
        options = ("--tv-radius", "0.01", "--mechanism", mechanism)
        assert run(*start, *options, "--save", "two.json", "--force").status == 0
        done = run("verify", "two.json", "--prior", "p.json", "--prior", "q.json")
        assert done.status == 0, done.err
        said = next(x for x in done.out.splitlines() if x.startswith("For every prior of the reg"))
        assert "(total-variation balls of radius 0.01) the privacy loss is at most" in said
        assert re.search(r"for the pair \(a, b\) under adversary [12]\.$", said)
        assert mechanism == "channel" or said.endswith("adversary 2.")
        assert f"within epsilon = about {float(digits_of)!r}, in ball" in said
        assert digits_of not in said
        assert "from the exact ends of the region" in said
    assert run(*P, "--tv-radius", "0.01", "--save", "one.json").status == 0
    done = run("verify", "one.json", "--prior", "p.json")
    assert "within epsilon = 0.5, in ball arithmetic" in done.out
    assert "adversary" not in done.out.splitlines()[2]
