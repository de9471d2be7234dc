# SPDX-License-Identifier: Apache-2.0
"""Plans on the command line: saved by calibrate, used by release, judged by verify; reproduce."""

import csv
import io
import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest

import pufferfish as pf
from cli_runner import check_refused, rows, run, write
from shared_data import require_shared

TABLE = rows("a,0,u", "a,1,v", "a,2,u", "b,1,v", "b,2,u", "b,3,v", "c,0,u", ",1,v", header="s,x,z")
OPTIONS = ("--secret", "s", "--public", "x", "--pair", "a", "b", "--exclude-secret", "c")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table, its plan, and a prior with its plan."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", TABLE)
    prior = {"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "2": ".6"}}}
    write(tmp_path, "prior.json", json.dumps(prior))
    saved = run("calibrate", "t.csv", *OPTIONS, "--epsilon", ".5", "--save", "plan.json")
    assert saved.status == 0, saved.err
    assert "private" in saved.err
    saved = run("calibrate", "--prior", "prior.json", "--epsilon", "1", "--save", "given.json")
    assert saved.status == 0
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
def test_a_saved_plan_is_private(folder: Path) -> None:
    assert stat.S_IMODE(os.stat("plan.json").st_mode) == 0o600
    data = json.loads(Path("plan.json").read_text())
    assert next(iter(data)) == "notice"
    assert "PRIVATE" in data["notice"]


def test_release_by_a_plan(folder: Path) -> None:
    outcome = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv")
    assert outcome.status == 0
    lines = Path("o.csv").read_text().splitlines()
    assert lines[0] == "x"
    assert len(lines) == 9
    assert all(re.fullmatch(r"-?\d+", line) for line in lines[1:])
    for part in (
        "rows read 8, released 8, set aside 0",
        "rows outside the promise: 2",
        "mechanism exact, epsilon 0.5, scale",
        "not proved again here: see pufferfish verify plan.json",
        "keep it private",
    ):
        assert part in outcome.out
    assert "warning: 2 released rows are outside the promise" in outcome.err


def test_release_with_the_options_of_calibrate(folder: Path) -> None:
    outcome = run("release", "t.csv", *OPTIONS, "--epsilon", ".5", "-o", "o.csv",
                  "--mechanism", "relaxed")  # fmt: skip
    assert outcome.status == 0
    plan = pf.calibrate(
        pf.Scenario(
            pf.Prior.from_table("t.csv", secret="s", public="x", exclude_secrets=["c"]),
            [("a", "b")],
        ),
        ".5",
        "relaxed",
    )
    assert f"mechanism relaxed, epsilon 0.5, scale {plan.scale!r}" in outcome.out
    assert "certified loss at most 0." in outcome.out


def test_a_plan_already_says_what_the_options_say(folder: Path) -> None:
    for options in (("--secret", "s"), ("--public", "x"), ("--epsilon", "1"), ("--pair", "a", "b"),
                    ("--missing", "?"), ("--prior", "prior.json"), ("--step", "1"),
                    ("--exclude-secret", "c"), ("--mechanism", "exact")):  # fmt: skip
        outcome = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv", *options)
        check_refused(outcome, options[0], "--plan")


def test_release_by_a_given_prior(folder: Path) -> None:
    write(folder, "u.csv", rows("a,0", "b,2", "b,-", "c,1"))
    ways = [("--plan", "given.json"), ("--prior", "prior.json", "--epsilon", "1")]
    for way in ways:
        check_refused(run("release", "u.csv", *way, "-o", "new.csv"), "--public")
        options = ("--public", "x", "--missing", "-", "-o", "o.csv", "--force")
        outcome = run("release", "u.csv", *way, *options)
        assert outcome.status == 0, outcome.err
        assert "rows read 4, released 3, set aside 1" in outcome.out
        assert "outside the promise:" not in outcome.out
        outcome = run("release", "u.csv", *way, *options, "--secret", "s")
        assert "rows outside the promise: 1" in outcome.out


def test_release_rounds_to_the_step_of_a_given_prior(folder: Path) -> None:
    data = {"secrets": {"a": {"0.1": ".5", "0.9": ".5"}, "b": {"0.2": ".4", "3": ".6"}}}
    write(folder, "fine.json", json.dumps(data))
    write(folder, "u.csv", rows("a,0.1", "b,2.8"))
    step, public = ("--step", "1"), ("--public", "x")
    prior = ("--prior", "fine.json", "--epsilon", ".5", *step)
    assert run("calibrate", *prior, "--save", "p.json").status == 0
    for way in (prior, ("--plan", "p.json", *step)):
        outcome = run("release", "u.csv", *way, *public, "-o", "o.csv", "--force")
        assert outcome.status == 0, outcome.err
        assert all(float(line).is_integer() for line in Path("o.csv").read_text().split()[1:])
    options = ("release", "u.csv", "--plan", "p.json", *public, "-o", "n.csv")
    check_refused(run(*options), "row 1", "support")
    check_refused(run(*options, "--step", ".5"), "--step must be 1")


def test_release_gives_levels_their_names_back(folder: Path) -> None:
    write(folder, "l.csv", rows("a,low", "a,mid", "b,mid", "b,high"))
    options = ("--secret", "s", "--public", "x", "--order", "low,mid,high", "--epsilon", ".5")
    assert run("release", "l.csv", *options, "-o", "o.csv").status == 0
    assert all(re.fullmatch(r"-?\d+", line) for line in Path("o.csv").read_text().splitlines()[1:])
    named = run("release", "l.csv", *options, "-o", "n.csv", "--round", "--bounds", "0", "2")
    assert named.status == 0
    assert set(Path("n.csv").read_text().splitlines()[1:]) <= {"low", "mid", "high"}


def test_kept_columns_take_the_certificate_away(folder: Path) -> None:
    outcome = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv", "--keep", "z")
    assert outcome.status == 0
    assert "no longer protected" in outcome.err
    assert "no certificate" in outcome.out
    assert "certified loss" not in outcome.out
    assert Path("o.csv").read_text().splitlines()[0] == "x,z"


def test_a_seed_is_for_test_files_only(folder: Path) -> None:
    seeded = ("release", "t.csv", "--plan", "plan.json", "--seed", "7", "-o")
    check_refused(run(*seeded, "o.csv"), "test")
    for name in ("test-1.csv", "test-2.csv"):
        outcome = run(*seeded, name)
        assert outcome.status == 0
        assert "protects nobody" in outcome.err
        assert "certified" not in outcome.out
    assert Path("test-1.csv").read_bytes() == Path("test-2.csv").read_bytes()


def test_a_parquet_release(folder: Path) -> None:
    import pyarrow.parquet as pq

    assert run("release", "t.csv", "--plan", "plan.json", "-o", "o.parquet").status == 0
    table = pq.read_table("o.parquet")
    assert table.column_names == ["x"]
    assert str(table.schema.field("x").type) == "int64"


def test_verify(folder: Path) -> None:
    outcome = run("verify", "plan.json", "t.csv")
    assert outcome.status == 0
    assert "verified under the prior that it was computed from" in outcome.out
    assert "within epsilon 0.5" in outcome.out
    assert run("verify", "given.json", "--prior", "prior.json").status == 0
    check_refused(run("verify", "given.json", "t.csv"), "--prior")


def test_verify_under_another_prior(folder: Path) -> None:
    write(folder, "near.csv", TABLE + "a,1,u\n")
    write(folder, "far.csv", rows("a,0", "a,0", "b,3", "b,3", "c,0", "c,0"))
    for path in ("near.csv", "far.csv"):
        check_refused(run("verify", "plan.json", path), "--other-prior", status=1)
    assert run("verify", "plan.json", "far.csv", "--other-prior").status == 1
    wide = run("calibrate", "far.csv", *OPTIONS, "--epsilon", ".5", "--save", "wide.json")
    assert wide.status == 0
    outcome = run("verify", "wide.json", "near.csv", "--other-prior")
    assert outcome.status == 0
    assert "another prior than its own" in outcome.out
    # The plan's own assumption is about the prior that it was computed from.
    assert "the table that it was calibrated on" not in outcome.out
    assert "the table that it was calibrated on" in run("verify", "wide.json", "far.csv").out


LEVELS = rows("s0,a", "s0,a", "s0,b", "s1,b", "s1,c", "s1,c", "s0,c", "s1,a", header="s,x")
# Without b: in an alphabet of its own, c would be 1.
WITHOUT = rows(*["s0,a"] * 9, "s0,c", "s1,a", *["s1,c"] * 9, header="s,x")


def check_judged_by_the_codes_of_the_plan(folder: Path) -> None:
    """Check that c keeps its code 2 in a table that lacks b."""
    columns = ("--secret", "s", "--public", "x")
    for order in ("alphabetical", "appearance", "a,b,c"):
        saved = run("calibrate", "abc.csv", *columns, "--order", order, "--epsilon", ".5",
                    "--save", "levels.json", "--force")  # fmt: skip
        assert saved.status == 0, saved.err
        assert run("verify", "levels.json", "abc.csv").status == 0
        needed = run("calibrate", "ac.csv", *columns, "--order", "a,b,c", "--epsilon", ".5",
                     "--format", "json")  # fmt: skip
        plan = json.loads(Path("levels.json").read_text())
        assert needed.scales["exact"] > plan["scale"]
        outcome = run("verify", "levels.json", "ac.csv", "--other-prior")
        check_refused(outcome, "above epsilon 0.5", status=1)


def test_verify_codes_levels_as_the_plan_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "abc.csv", LEVELS)
    write(folder, "ac.csv", WITHOUT)
    check_judged_by_the_codes_of_the_plan(folder)
    monkeypatch.setattr("pufferfish.cli.judging._order", lambda plan: None)
    with pytest.raises(AssertionError):  # the mutant that codes the other table anew
        check_judged_by_the_codes_of_the_plan(folder)


def test_verify_with_levels_that_the_plan_lacks(folder: Path) -> None:
    write(folder, "abc.csv", LEVELS)
    write(folder, "abcd.csv", LEVELS + "s0,d\n")
    options = ("--secret", "s", "--public", "x", "--order", "alphabetical", "--epsilon", ".5")
    assert run("calibrate", "abc.csv", *options, "--save", "levels.json").status == 0
    for more in ((), ("--other-prior",)):
        check_refused(run("verify", "levels.json", "abcd.csv", *more), "not fit the plan", status=1)
    check_refused(
        run("verify", "levels.json", "t.csv", "--other-prior"), "not fit the plan", status=1
    )
    # Declared levels keep their codes too.
    levels = ("--levels", "a,b,c,d", *options)
    assert run("calibrate", "abc.csv", *levels, "--save", "four.json").status == 0
    assert run("verify", "four.json", "abc.csv").status == 0


def test_verify_reads_a_decimal_comma_as_the_plan_does(folder: Path) -> None:
    write(folder, "comma.csv", "s;x\na;0,5\na;1\nb;1\nb;1,5\n")
    write(folder, "whole.csv", "s;x\na;1,000\na;1\nb;1\nb;1,500\n")
    options = ("--secret", "s", "--public", "x", "--epsilon", ".1", "--save", "comma.json")
    assert run("calibrate", "comma.csv", *options).status == 0
    assert run("verify", "comma.json", "comma.csv").status == 0
    # 1,000 alone could be a thousand; by the rules of the plan it is 1.
    outcome = run("verify", "comma.json", "whole.csv", "--other-prior")
    assert outcome.status == 0, outcome.err


def test_verify_with_a_prior_that_lacks_a_secret(folder: Path) -> None:
    data = {"secrets": {"a": {"0": ".5", "1": ".5"}, "c": {"0": ".4", "2": ".6"}}}
    write(folder, "lacks.json", json.dumps(data))
    write(folder, "lacks.csv", rows("a,0", "a,1", "c,0"))
    for more in ((), ("--other-prior",)):
        outcome = run("verify", "given.json", "--prior", "lacks.json", *more)
        check_refused(outcome, "lacks the secret b", "a, c", status=1)
    data = {"secrets": {"a": {"0": 1}, "b": {"1": 1}}}
    write(folder, "ab.csv", rows("a,0", "b,1", "b,2"))
    assert run("calibrate", "ab.csv", "--secret", "s", "--public", "x", "--epsilon", "1",
               "--save", "ab.json").status == 0  # fmt: skip
    check_refused(run("verify", "ab.json", "lacks.csv"), "lacks the secret b", status=1)


def test_verify_ignores_what_the_file_claims(folder: Path) -> None:
    data = json.loads(Path("plan.json").read_text())
    data["scale"] /= 2
    data["loss"] = 0.0
    data["certificate"]["loss"] = 0.0
    Path("plan.json").write_text(json.dumps(data))
    check_refused(run("verify", "plan.json", "t.csv"), "above epsilon 0.5", status=1)


def test_verify_takes_order_and_step_from_the_plan(folder: Path) -> None:
    levels = {"secrets": {"a": {"mid": ".5", "low": ".5"}, "b": {"high": ".4", "low": ".6"}}}
    write(folder, "levels.json", json.dumps(levels))
    fine = {"secrets": {"a": {"0.1": ".5", "0.9": ".5"}, "b": {"0.2": ".4", "3": ".6"}}}
    write(folder, "fine.json", json.dumps(fine))
    for name, option in (
        ("levels.json", ("--order", "low,mid,high")),
        ("fine.json", ("--step", "1")),
    ):
        saved = run("calibrate", "--prior", name, *option, "--epsilon", ".5", "--save", "p.json",
                    "--force")  # fmt: skip
        assert saved.status == 0, saved.err
        assert run("verify", "p.json", "--prior", name).status == 0
    # Rounding is only for the plan's own prior: under another one it would hide distances.
    between = {"secrets": {"a": {"0": "1"}, "b": {"0.4": ".4", "3": ".6"}}}
    write(folder, "between.json", json.dumps(between))
    assert run("verify", "p.json", "--prior", "between.json", "--other-prior").status == 1


def test_reproduce() -> None:
    outcome = run("reproduce")
    assert outcome.status == 0
    assert "149 of 150 cells agree" in outcome.out.splitlines()
    assert any("epsilon 0.2" in line and "0.54" in line for line in outcome.out.splitlines())
    for part in ("First simulation", "Census", "one-sided", "exact", "73.5 to 92.2"):
        assert part in outcome.out


def test_reproduce_for_programs() -> None:
    data = run("reproduce", "--format", "json").data
    assert data["summary"] == "149 of 150 cells agree"
    printed = [cell for cell in data["cells"] if cell["printed"] is not None]
    assert sum(cell["agrees"] for cell in printed) == 149
    outcome = run("reproduce", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(outcome.out)))
    assert len(found) == 250
    assert sum(row["agrees"] == "true" for row in found) == 149
    assert outcome.err == "pufferfish: note: 149 of 150 cells agree\n"


def test_reproduce_the_first_figure() -> None:
    path = require_shared("data", "diabetes.csv")
    outcome = run("reproduce", "--diabetes", path)
    assert outcome.status == 0
    assert outcome.out.count("holds: ") == 2
    assert "149 of 150 cells agree" in outcome.out
    figure = run("reproduce", "--diabetes", path, "--format", "json").data["figure_one"]
    assert [claim["holds"] for claim in figure["claims"]] == [True, True]
    assert figure["strict"]["scale"] == 22
    assert figure["relaxed"]["scale"] == pytest.approx(19.89, abs=5e-3)
    parts = run("reproduce", "--diabetes", path, "--format", "csv").out.split("\n\n")
    assert [part.splitlines()[0] for part in parts[1:]] == [
        "x,x_prime,mass,strict,relaxed", "x_prime,strict,relaxed",
    ]  # fmt: skip


def test_a_claim_of_the_figure_that_fails_is_a_failed_check(tmp_path: Path) -> None:
    # Both groups are one point each: no cell of the coupling is above 0 at the relaxed scale.
    table = rows("20,1", "20,1", "60,2", "60,2", header="Age,Glucose")
    outcome = run("reproduce", "--diabetes", write(tmp_path, "d.csv", table))
    assert outcome.status == 1
    assert "149 of 150 cells agree" in outcome.out
    assert outcome.err.startswith("pufferfish: error: the relaxed claim of the figure fails")
