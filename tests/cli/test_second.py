# SPDX-License-Identifier: Apache-2.0
"""Inputs from public reports and from trying to break version 0.1.0, by the command line."""

import json
import re
from pathlib import Path

import pytest

from cli_runner import Outcome, check_refused, rows, run, write

C = ("--secret", "s", "--public", "x", "--epsilon", 1)


def edited(plan: Path, change: dict[str, object], name: str = "edited.json") -> Path:
    """Return a copy of a plan file in which keys, at any depth, have other values."""

    def walk(value: object) -> object:
        if isinstance(value, dict):
            return {k: change[k] if k in change else walk(v) for k, v in value.items()}
        return [walk(v) for v in value] if isinstance(value, list) else value

    return write(plan.parent, name, json.dumps(walk(json.loads(plan.read_text()))))


def test_01_a_plan_says_its_step_once(tmp_path: Path) -> None:
    table = rows(*["A,2"] * 50, *["B,4"] * 50, "A,4", "B,2")
    path, plan = write(tmp_path, "t.csv", table), tmp_path / "p.json"
    options = ("--secret", "s", "--public", "x", "--epsilon", ".1", "--step", 1, "--save", plan)
    assert run("calibrate", path, *options).status == 0
    assert plan.read_text().count('"step"') == 1
    for change in ({"step": 3, "scale": 0.05}, {"step": "3", "scale": 0.05}):
        outcome = run("verify", edited(plan, change), path, "--other-prior")
        assert outcome.status in (1, 2)
        assert outcome.out == ""


def test_02_missing_is_no_value_of_the_support(tmp_path: Path) -> None:
    secrets = {"A": {"0": ".05", "1": ".05", "2": ".9"}, "B": {"0": ".45", "1": ".45", "2": ".1"}}
    prior = write(tmp_path, "prior.json", json.dumps({"secrets": secrets}))
    plan = tmp_path / "p.json"
    command = ("calibrate", "--prior", prior, "--epsilon", 1, "--public", "x", "--save", plan)
    assert run(*command).status == 0
    check_refused(run("verify", edited(plan, {"missing": ["2"]}), "--prior", prior), "missing")
    check_refused(run(*command, "--force", "--missing", "2"), "'2'")


def test_03_another_region_is_another_scenario(tmp_path: Path) -> None:
    path, plan = write(tmp_path, "t.csv", rows(*["a,0", "a,1", "b,1", "b,2"] * 40)), tmp_path / "p"
    assert run("calibrate", path, *C, "--tv-radius", ".1", "--save", plan).status == 0
    assert "every prior within a distance of 0.1" in run("verify", plan, path).out
    text = re.sub(r'"tv_radius": "?0?\.1"?', '"tv_radius": "1/10000000"', plan.read_text())
    if text == plan.read_text():
        text = text.replace('"1/10"', '"1/10000000"').replace('"0.1"', '"0.0000001"')
    assert text != plan.read_text()
    check_refused(run("verify", write(tmp_path, "q.json", text), path), "another", status=1)


def test_04_a_record_depends_on_no_row(tmp_path: Path) -> None:
    lines = ["a,0", "a,1", "b,1", "b,2"] * 20
    path = write(tmp_path, "t.csv", rows(*lines))
    other = write(tmp_path, "u.csv", rows("b,0", *lines[1:]))
    plan = tmp_path / "p.json"
    assert run("calibrate", path, *C, "--save", plan).status == 0
    records = []
    for table in (path, other):
        record = tmp_path / "r.json"
        done = run(
            "release", table, "--plan", plan, "-o", tmp_path / "o.csv", "--record", record,
            "--force",
        )  # fmt: skip
        assert done.status == 0, done.err
        records.append(record.read_text())
    assert records[0] == records[1]


@pytest.mark.parametrize("values", ["0.1 0.2 0.2 0.30000000000000004", "0 1 2"])
def test_06_what_cannot_be_released_is_refused_when_calibrated(tmp_path: Path, values: str) -> None:
    cells = values.split()
    path = write(
        tmp_path, "t.csv", rows(*[f"{s},{v}" for s, v in zip("abab", cells, strict=False)])
    )
    epsilon = ".01" if "." in values else "1e-20"
    check_refused(run("calibrate", path, *C[:-1], epsilon), "64 bits")


def test_07_an_id_as_secret_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows(*[f"{k},{k % 7}" for k in range(2000)]))
    check_refused(run("calibrate", path, *C), "2,000 secrets", "swapped", "--pair")
    assert run("calibrate", path, *C, "--pair", "1", "2").status == 0


@pytest.mark.parametrize("cells", ["1,5;2,5;k.A.;3,5", "1,5;2,5;NA;3,5", "1,5;2,5;1,5;3,5"])
def test_10_decimal_commas_need_their_option(tmp_path: Path, cells: str) -> None:
    lines = [f'{s};"{x}"' for s, x in zip("abab", cells.split(";"), strict=True)]
    path = write(tmp_path, "t.csv", rows(*lines, header="s;x"))
    check_refused(run("calibrate", path, *C), "--decimal")
    done = run("calibrate", path, *C, "--decimal", ",", "--format", "json")
    if "1,5;2,5;1,5" not in cells:
        check_refused(done, "--missing", "--levels")
    else:
        assert done.data["scenario"]["support"]["kind"] == "numbers"


@pytest.mark.parametrize("cells", ["01730 1730 01730 1730", "713752e1 7137520 5 7"])
def test_11_texts_of_one_number_are_never_merged_in_silence(tmp_path: Path, cells: str) -> None:
    lines = [f"{s},{x}" for s, x in zip("abab", cells.split(), strict=True)]
    path = write(tmp_path, "t.csv", rows(*lines))
    done = run("calibrate", path, *C, "--format", "json")
    assert done.status == 0, done.err
    scenario = done.data["scenario"]
    if cells.startswith("01730"):
        assert scenario["support"]["levels"] == ["01730", "1730"]
    else:
        assert any("one number" in text for text in scenario["warnings"])


def test_12_a_sentinel_is_warned_of(tmp_path: Path) -> None:
    lines = [f"{s},{x}" for s in "ab" for x in (20, 22, 25, 30, 31, 28)]
    path = write(tmp_path, "t.csv", rows(*lines, "a,-999"))
    done = run("calibrate", path, *C)
    assert done.status == 0
    assert "warning" in done.err
    assert "--missing -999" in done.err


def test_13_true_and_false_are_levels(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,True", "a,False", "b,True", "b,True"))
    scenario = run("calibrate", path, *C, "--format", "json").data["scenario"]
    assert scenario["support"]["kind"] == "unordered levels"


def test_15_dates_are_levels_and_said_to_be(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,2024-01-31", "b,2024-02-01", "a,2024-02-01"))
    done = run("calibrate", path, *C)
    assert done.out.count("note: ") == 1
    assert "dates" in done.out


def test_17_a_name_matches_under_nfc(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,1", "b,2", "a,2", header="s,Gro\u0308\u00dfe"))
    done = run("calibrate", path, "--secret", "s", "--public", "Gr\u00f6\u00dfe", "--epsilon", 1)
    assert done.status == 0, done.err


def test_18_names_with_commas_are_quoted(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows('"c, d",1', "c,2", '"c, d",2', "e,1", "e,2", "c,1"))
    out = run("calibrate", path, *C).out
    assert "'c, d' 2" in out
    assert "(c, d)" not in out.replace("'c, d'", "")


def test_19_standard_input_and_files_without_an_ending(tmp_path: Path) -> None:
    path = write(tmp_path, "table", rows("a,1", "b,2"))
    outcome = run("calibrate", path, *C)
    check_refused(outcome, ".csv")
    assert "'is missing'" not in outcome.err


def test_20_the_near_match_is_the_level_of_the_column(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,First", "a,Second", "b,Third", "a,Third"))
    check_refused(
        run("calibrate", path, *C, "--order", "First,Second,third"), "'third'", "mean 'Third'"
    )


def test_21_secrets_are_listed_short(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows(*[f"{k},{k % 3}" for k in range(248)] * 2))
    out = run("calibrate", path, *C, "--pair", "1", "2").out
    assert "and 244 more" in out  # in no pair
    assert max(map(len, out.splitlines())) < 400


def test_22_a_table_that_does_not_fit_is_a_failed_check(tmp_path: Path) -> None:
    path, plan = write(tmp_path, "t.csv", rows("a,1", "a,2", "b,2")), tmp_path / "p.json"
    assert run("calibrate", path, *C, "--save", plan).status == 0
    other = write(tmp_path, "u.csv", rows("1", "2", header="x"))
    check_refused(run("verify", plan, other), "'s'", "does not fit", status=1)


def test_23_an_unreleased_table_is_no_release(tmp_path: Path) -> None:
    lines = [
        f"{s},{x}" for s, shift in (("a", 0), ("b", 40)) for x in range(shift, shift + 60)
    ] * 20
    path, plan = write(tmp_path, "t.csv", rows(*lines)), tmp_path / "p.json"
    assert run("calibrate", path, *C[:-1], ".1", "--save", plan).status == 0
    check_refused(run("estimate", path, "--plan", plan), "released by this plan")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which no line is wrapped."""
    monkeypatch.setenv("COLUMNS", "1000")


def credit(folder: Path) -> Path:
    """Few rows of many levels, as in a table of loans: they allow far more than they say."""
    lines = [f"{s},{'abcdefghij'[(k * k + (s == 'm')) % 10]}" for k in range(40) for s in "fm"]
    return write(folder, "t.csv", rows(*lines, *["f,k"] * 3, *["m,k"] * 2))


def verdict(outcome: Outcome) -> list[str]:
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    return lines[max(k for k, line in enumerate(lines) if not line) + 1 :]


def test_26_the_verdict_warns_where_rows_are_a_sample(tmp_path: Path) -> None:
    path = credit(tmp_path)
    keep = ("--mechanism", "channel,exact", "--min-keep", ".2")
    for more in ((), ("--mechanism", "all"), ("--order", "a,b,c,d,e,f,g,h,i,j,k", *keep)):
        lines = verdict(run("calibrate", path, *C, *more))
        assert lines[0].startswith("Proved: ")
        assert lines[0].endswith("if these 85 rows are all there is.")
        assert lines[1].startswith("If they are a sample it may cost ")
        command = lines[2].strip()
        assert command.startswith("pufferfish calibrate ")
        assert command.endswith("--confidence 0.95")
        assert any("private" in line for line in lines)
        again = run(*command.split()[1:])
        assert verdict(again)[0].startswith("Proved: the loss is within epsilon 1 for every prior")


def test_26_an_unchanged_column_comes_with_its_risk(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows(*["a,0", "a,1", "b,0", "b,1"] * 12, "a,1"))
    lines = verdict(run("calibrate", path, *C))
    assert any("PUBLISHED UNCHANGED" in line for line in lines)
    assert any(line.startswith("If they are a sample it may cost ") for line in lines)


def test_27_noise_that_drowns_the_column_is_said(tmp_path: Path) -> None:
    lines = [f"{s},{x}" for s, shift in (("a", 0), ("b", 10)) for x in range(shift, shift + 20)]
    path = write(tmp_path, "t.csv", rows(*lines))
    for epsilon, word in ((".01", "NOTHING OF THE COLUMN IS LEFT"), ("5", "The column survives")):
        done = run("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", epsilon)
        assert any(line.startswith(word) for line in verdict(done))


def test_28_what_is_kept_has_a_baseline(tmp_path: Path) -> None:
    path = credit(tmp_path)
    done = run("calibrate", path, *C)
    assert re.search(r"\d %  ?\(\d+\.\d %\)", done.out)
    (result,) = run("calibrate", path, *C, "--format", "json").data["results"]
    assert 0 < result["keep_rate_of_a_constant"] <= result["keep_rate"] <= 1
