# SPDX-License-Identifier: Apache-2.0
"""Inputs that tools of this kind get wrong, each from the file to the last line of the command.

W is the wasserstein scale times epsilon, "least" the exact scale.
"""

import contextlib
import io
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cli_runner import Outcome, check_refused, rows, run, write
from pufferfish.cli import app
from pufferfish.tables.source import open_table

A_AND_B = {"a": {"0": ".5", "1": ".3", "2": ".2"}, "b": {"0": ".2", "1": ".3", "2": ".5"}}
C = ("--secret", "s", "--public", "x", "--epsilon", 1)


def calibrate(path: Path, *options: object, secret: str = "s", public: str = "x") -> Outcome:
    return run(
        "calibrate", path, "--secret", secret, "--public", public, "--epsilon", 1,
        "--mechanism", "wasserstein,exact", "--format", "json", *options,
    )  # fmt: skip


def release(path: Path, out: Path, *options: object, epsilon: object = 1) -> Outcome:
    """Calibrate the default mechanism on a table, and release it by that plan."""
    plan = out.with_suffix(".json")
    save = ("--epsilon", epsilon, "--save", plan, "--force")
    done = run("calibrate", path, *C[:-2], *save)
    assert done.status == 0, done.err
    return run("release", path, "--plan", plan, "-o", out, *options)


def prior_file(folder: Path, secrets: Any) -> Path:
    return write(folder, "prior.json", json.dumps({"secrets": secrets}))


def table(folder: Path, cells: str, *more: str) -> Path:
    """A table of these public cells, of secrets a and b in turn."""
    return write(
        folder, "t.csv", rows(*map(",".join, zip("abab", cells.split(), strict=False)), *more)
    )


# ------------------------------------------------------------------------------------------ read

WORK = rows(
    "Private, 40", "Private, 50", " ?, 40", "State, 50", "State, 60", header="workclass, hours"
)
GAPS = rows("A,low", "A,mid", "B,low", "B,high", "C,")
LEVELS = [
    *(["A,Low"] * 6 + ["A,Medium"] * 3 + ["A,High"] * 1),
    *(["B,Low"] * 1 + ["B,Medium"] * 3 + ["B,High"] * 6),
]


@pytest.mark.parametrize(
    "text, options, distance, least, facts",
    [
        ('\ufeff"s","x"\r\nA,1\r\nA,2\r\nB,2\r\nB,3\r\n\r\n', "", 1, None, {}),
        # Only the empty cell means "missing", and the output says so.
        (rows("NA,1", "NA,2", "DE,2", "DE,3"), "", 1, None, {"secrets": ["DE", "NA"], "missing": [
            {"text": "", "cells": 0}]}),
        (WORK, "--missing ?", 10, None, {"rows": {"read": 5, "used": 4, "set_aside": 1,
            "by_secret": {"Private": 2, "State": 2}}}),
        (WORK, "", 20, 15.779, {}),
        (rows("a,false", "a,", "b,false", "b,true"), "--order false,true", 1, 0.67119, {}),
        ("s\tx\na\t1\na\t2\nb\t2\nb\t3\n", "", 1, None, {}),
        ("s;x\na;1,5\na;2,5\nb;2,5\nb;3,5\n", "--decimal ,", 1, None, {}),
        (rows(*LEVELS), "--order Low,Medium,High", 2, 0.88801,
         {"coding": {"Low": 0, "Medium": 1, "High": 2}}),
        (rows(*LEVELS[::-1]), "--order alphabetical", 1, 0.62284,
         {"coding": {"High": 0, "Low": 1, "Medium": 2}}),
        (rows(*LEVELS), "--order appearance", 2, 0.88801, {}),
        (GAPS, "--order low,mid,high --exclude-secret C", 1, 0.8490, {}),
    ],
)  # fmt: skip
def test_what_is_read(
    tmp_path: Path, text: str, options: str, distance: float, least: float | None,
    facts: dict[str, Any],
):  # fmt: skip
    columns = ("workclass", "hours") if text == WORK else ("s", "x")
    outcome = calibrate(
        write(tmp_path, "t.csv", text), *options.split(), secret=columns[0], public=columns[1]
    )
    assert outcome.status == 0, outcome.err
    assert outcome.scales["wasserstein"] == distance
    assert least is None or outcome.scales["exact"] == pytest.approx(least, abs=5e-4)
    scenario = outcome.data["scenario"]
    assert {name: scenario[name] for name in facts} == facts
    assert any("'?'" in note for note in scenario["notes"]) == (text == WORK and not options)
    assert ("first appearance" in outcome.err) == ("appearance" in options)


@pytest.mark.parametrize(
    "text, options, parts",
    [
        (rows("a,1", "a,2", "b,Inf", "b,3"), "", ["finite", "row 3"]),
        (rows("a,1", "a,2", "b,unknown", "b,3"), "", ["--missing", "--levels"]),
        (rows('a,"1,200"', 'a,"1,201"', 'b,"1,201"'), "", ["--decimal"]),
        ("s;x\na;1,5\nb;2,5\na;k.A.\nb;3,5\n", "", ["--decimal"]),
        ("s,x\n", "", ["t.csv"]),
        ("39,State-gov\n50,Private\n", "", ["'s'", "columns are 39, State-gov"]),
        (rows(*LEVELS), "--levels Low,High --missing-as-level", ["column 'x'", "data row"]),
        ("s,x,x\na,1,2\nb,2,3\n", "", ["t.csv"]),
        ("s,x\na,1\nb,2,3\n", "", ["t.csv"]),
        (rows(*LEVELS), "", ["wasserstein, unlike", "have none", "--order", "channel"]),
        (GAPS, "--order low,mid,high", ["'C'", "--exclude-secret"]),
        (rows("a,First", "a,Second", "b,Third"), "--order First,Second,third",
         ["'third'", "mean 'Third'"]),
        (rows(*[f"{k},{k % 7}" for k in range(2000)]), "", ["2,000 secrets", "swapped", "--pair"]),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, options: str, parts: list[str]):
    check_refused(calibrate(write(tmp_path, "t.csv", text), *options.split()), *parts)


def test_what_is_said_of_what_was_read(tmp_path: Path):
    lines = [f"{s},{x}" for s in "ab" for x in (20, 22, 25, 30, 31, 28)]
    done = run("calibrate", write(tmp_path, "t.csv", rows(*lines, "a,-999")), *C)
    assert "--missing -999" in done.err  # a sentinel
    done = run("calibrate", table(tmp_path, "2024-01-31 2024-02-01 2024-02-01"), *C)
    assert done.out.count("note: ") == 1
    assert "dates" in done.out
    done = run("calibrate", table(tmp_path, "1 2 2"), *C)
    assert "secret b" in done.err
    assert "single row" in done.err
    path = write(tmp_path, "t.csv", rows('"c, d",1', "c,2", '"c, d",2', "e,1", "e,2", "c,1"))
    out = run("calibrate", path, *C).out
    assert "'c, d': 2" in out
    assert "(c, d)" not in out.replace("'c, d'", "")
    path = write(tmp_path, "t.csv", rows(*[f"{k},{k % 3}" for k in range(248)] * 2))
    out = run("calibrate", path, *C, "--pair", "1", "2").out
    assert "and 244 more" in out  # in no pair
    assert max(map(len, out.splitlines())) < 400


# ---------------------------------------------------------------------------------------- priors


def test_a_prior_that_is_none_and_one_that_nearly_is(tmp_path: Path):
    wrong = {"a": {"0": ".47", "1": ".5"}, "b": {"0": ".5", "1": ".5"}}
    outcome = run("calibrate", "--prior", prior_file(tmp_path, wrong), "--epsilon", 1)
    check_refused(outcome, "prior.json", "'a'", "0.97")
    almost = {"a": {"0": ".4999999", "1": ".5"}, "b": {"0": ".5", "1": ".5", "2": "0"}}
    outcome = run("calibrate", "--prior", prior_file(tmp_path, almost), "--epsilon", 1)
    assert outcome.status == 0
    assert re.search("^note: .*'a'", outcome.out, re.M)


@pytest.mark.parametrize("epsilon", ["1e-300", "1.01", "1e6", "1/3"])
def test_epsilons(tmp_path: Path, epsilon: str):
    path = prior_file(tmp_path, {"a": {"0": "1"}, "b": {"1": "1"}})
    options = ("--epsilon", epsilon, "--mechanism", "all", "--format", "json")
    outcome = run("calibrate", "--prior", path, *options)
    assert outcome.status == 0, outcome.err
    least = 1 / Fraction(epsilon)
    scale = outcome.scales["wasserstein"]
    assert least <= Fraction(scale) < least + 4 * Fraction(math.ulp(float(least)))
    assert all(result["certified"] for result in outcome.data["results"])


def test_a_comma_separates_and_says_so(tmp_path: Path):
    more = ("calibrate", "--prior", prior_file(tmp_path, A_AND_B), "--format", "json", "--epsilon")
    outcome = run(*more, "1,5")
    assert [result["epsilon"] for result in outcome.data["results"]] == [1, 5]
    assert "pufferfish: note: --epsilon 1,5 is the list 1 and 5" in outcome.err
    assert "note" not in run(*more, "0.1,0.2").err
    check_refused(run(*more, "0,5"), "epsilon must be above 0")


def test_all_pairs_unless_named_and_both_directions(tmp_path: Path):
    path = prior_file(tmp_path, {"A": {"0": "1"}, "B": {"1": "1"}, "C": {"2": "1"}})
    options = ("--prior", path, "--epsilon", 1, "--mechanism", "wasserstein", "--format", "json")
    assert run("calibrate", *options).scales["wasserstein"] == 2
    named = run("calibrate", *options, "--pair", "A", "B", "--pair", "B", "C")
    assert named.scales["wasserstein"] == 1
    assert named.data["scenario"]["pairs"] == [["A", "B"], ["B", "C"]]
    path = prior_file(tmp_path, {"A": {"0": "1"}, "B": {"0": ".99", "10": ".01"}})
    for pair in (("A", "B"), ("B", "A")):
        more = ("--epsilon", ".1", "--pair", *pair, "--format", "json")
        outcome = run("calibrate", "--prior", path, *more)
        assert outcome.scales["exact"] == pytest.approx(4.091934011526, rel=1e-9)


# --------------------------------------------------------------------------------------- release


def test_nothing_to_hide_needs_a_word(tmp_path: Path):
    path, out = write(tmp_path, "t.csv", rows("a,7", "a,7", "b,7", "b,7")), tmp_path / "out.csv"
    outcome = calibrate(path)
    (wasserstein, exact) = outcome.data["results"]
    assert wasserstein["scale"] == exact["scale"] == 0
    assert exact["mse"] == exact["std"] == exact["loss"] == 0
    assert exact["unchanged"] is True
    assert exact["reduction_vs_wasserstein"] is None
    assert "PUBLISHED UNCHANGED" in outcome.err
    assert "PUBLISHED UNCHANGED" in run("calibrate", path, *C).out
    check_refused(release(path, out), "--allow-unchanged", "--min-scale")
    assert not out.exists()
    outcome = release(path, out, "--allow-unchanged")
    assert outcome.status == 0
    assert "unchanged" in outcome.err
    assert out.read_text() == "x\n7\n7\n7\n7\n"
    outcome = release(path, out, "--min-scale", "2.5", "--force")
    assert outcome.status == 0
    assert "scale 2.500000000" in outcome.out


# ----------------------------------------------------------------------------------------- plans


def edited(plan: Path, change: dict[str, object]) -> Path:
    """Return a copy of a plan file in which keys, at any depth, have other values."""

    def walk(value: object) -> object:
        if isinstance(value, dict):
            return {k: change[k] if k in change else walk(v) for k, v in value.items()}
        return [walk(v) for v in value] if isinstance(value, list) else value

    return write(plan.parent, "edited.json", json.dumps(walk(json.loads(plan.read_text()))))


def test_edited_scales_are_judged_on_their_merits(tmp_path: Path):
    prior, plan = prior_file(tmp_path, A_AND_B), tmp_path / "plan.json"
    options = ("--epsilon", ".5", "--format", "json", "--save", plan)
    scale = run("calibrate", "--prior", prior, *options).scales["exact"]
    assert 1.0594259987634 - 2e-12 <= scale <= 1.0594259987634 * (1 + 1e-9)
    assert run("verify", plan, "--prior", prior).status == 0
    assert run("verify", edited(plan, {"scale": 1.06}), "--prior", prior).status == 0
    failed = run("verify", edited(plan, {"scale": 1.059}), "--prior", prior)
    check_refused(failed, "0.50016", "0.5", "1.059", status=1)


# --------------------------------------------------------------------------------------- verdict


def credit(folder: Path) -> Path:
    """Few rows of many levels, as in a table of loans: they allow far more than they say."""
    lines = [f"{s},{'abcdefghij'[(k * k + (s == 'm')) % 10]}" for k in range(40) for s in "fm"]
    return write(folder, "t.csv", rows(*lines, *["f,k"] * 3, *["m,k"] * 2))


def verdict(outcome: Outcome) -> list[str]:
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    return lines[max(k for k, line in enumerate(lines) if not line) + 1 :]


def test_the_verdict_warns_where_rows_are_a_sample(tmp_path: Path):
    path = credit(tmp_path)
    keep = ("--mechanism", "channel,exact", "--min-keep", ".2")
    for more in ((), ("--mechanism", "all"), ("--order", "a,b,c,d,e,f,g,h,i,j,k", *keep)):
        lines = verdict(run("calibrate", path, *C, *more))
        assert lines[0].startswith("Proved: ")
        assert lines[0].endswith("if these 85 rows are all there is.")
        assert lines[1].startswith("If they are a sample, the loss may be as large as ")
        command = lines[2].strip()
        assert command.startswith("pufferfish calibrate ")
        assert command.endswith("--confidence 0.95")
        assert any("private" in line for line in lines)
        again = run(*command.split()[1:])
        assert verdict(again)[0].startswith("Proved: the loss is within epsilon 1 for every prior")
    assert re.search(r"\d %  ?\(\d+\.\d %\)", run("calibrate", path, *C).out)  # kept, by a constant
    (result,) = run("calibrate", path, *C, "--format", "json").data["results"]
    assert 0 < result["keep_rate_of_a_constant"] <= result["keep_rate"] <= 1


def test_an_unchanged_column_comes_with_its_risk(tmp_path: Path):
    path = write(tmp_path, "t.csv", rows(*["a,0", "a,1", "b,0", "b,1"] * 12, "a,1"))
    lines = verdict(run("calibrate", path, *C))
    assert any("PUBLISHED UNCHANGED" in line for line in lines)
    assert any(line.startswith("If they are a sample, the loss may be as ") for line in lines)


def test_what_is_left_of_a_column_depends_on_noise_and_rows(tmp_path: Path):
    lines = [f"{s},{x}" for s, shift in (("a", 0), ("b", 10)) for x in range(shift, shift + 20)]
    nothing, survives = "LITTLE OR NOTHING OF THE COLUMN IS LEFT", "The column survives"
    for times, epsilon, word in ((1, ".1", nothing), (200, ".1", "Averages"), (1, "5", survives)):
        path = write(tmp_path, "t.csv", rows(*lines * times))
        done = run("calibrate", path, *C[:-1], epsilon)
        assert any(line.startswith(word) for line in verdict(done)), done.out
    # A channel that keeps more than a constant does, but few of the levels that rows hold.
    lines = ["a,t", "b,q", "b,r", "b,u", "b,u", "c,p", "d,p", "d,p", "d,t", "d,t"] * 5
    done = run("calibrate", write(tmp_path, "t.csv", rows(*lines)), *C[:-1], ".1",
               "--cost", "hamming")  # fmt: skip
    assert f"{nothing}: 40.0 % of the rows stay as they are (one constant: 30.0 %)" in done.out
    assert re.search(r"Never published by channel \(kept\): .*--min-keep", done.out)
    # A given prior has no rows, so that errors of estimates are not known.
    secrets = {"a": {"x": ".5", "y": ".3", "z": ".2"}, "b": {"x": ".4", "y": ".2", "z": ".4"}}
    given = write(tmp_path, "prior.json", json.dumps({"secrets": secrets}))
    done = run("calibrate", "--prior", given, "--epsilon", ".01")
    assert f"{survives}: error not known; 51.2 % of the labels" in done.out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("form, shows", [("table", True), ("json", False), ("csv", False)])
def test_progress_is_for_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, shows: bool
) -> None:
    """A terminal shows how far a count has come, but not where a program may read."""
    path = write(tmp_path, "t.csv", rows("a,0", "a,1", "b,1", "b,2"))
    asked: list[bool] = []

    def spied(table: Any, *, progress: bool, **given: Any) -> Any:
        asked.append(progress)
        return open_table(table, **given)

    monkeypatch.setattr("pufferfish.cli.options.open_table", spied)
    arguments = ["calibrate", str(path), *map(str, C), "--format", form]
    for kind in (Terminal, io.StringIO):
        with contextlib.redirect_stdout(kind()), contextlib.redirect_stderr(io.StringIO()):
            assert app.run(arguments) == 0
    assert asked == [shows, False]
