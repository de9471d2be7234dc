# SPDX-License-Identifier: Apache-2.0
"""Wrong input: one line that names what was given and what is allowed, and exit status 2."""

import json
import os
import sys
import warnings
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli_runner import check_refused, rows, run, write
from pufferfish.cli import app
from pufferfish.cli.process import Messages
from pufferfish.errors import PriorWarning

TABLE = rows("no,0", "no,1", "yes,1", "yes,2", header="higher,romantic")
PRIOR = {"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}}}
COLUMNS = ("--secret", "higher", "--public", "romantic")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table, a prior and a plan."""
    write(tmp_path, "t.csv", TABLE)
    write(tmp_path, "prior.json", json.dumps(PRIOR))
    write(tmp_path, "cost.html", "{}")
    write(tmp_path, "cost.json", json.dumps({"0": {"0": 0, "1": 1}, "1": {"0": 1, "1": 0}}))
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run("calibrate", "t.csv", *COLUMNS, "--epsilon", 1, "--save", "plan.json").status == 0
    return tmp_path


T = ("calibrate", "t.csv", *COLUMNS)
T1 = (*T, "--epsilon", "1")
P = ("calibrate", "--prior", "prior.json")
R = ("release", "t.csv", "--plan", "plan.json")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command, parts",
    [
        (("calibrate", "no.csv", *COLUMNS, "--epsilon", "1"), ["no.csv"]),
        (("calibrate", "sub", *COLUMNS, "--epsilon", "1"), ["sub"]),
        ((*T1, "--secret", "highr"), ["'highr'", "did you mean 'higher'?"]),
        (
            ("calibrate", "t.csv", "--secret", "higher", "--epsilon", "1"),
            ["error: --public COL must"],
        ),
        (("calibrate", "--epsilon", "1"), ["TABLE", "--prior"]),
        (T, ["--epsilon"]),
        ((*T, "--epsilon", "0"), ["epsilon must be above 0"]),
        ((*T, "--epsilon", "1,,2"), ["epsilon must be a number"]),
        ((*T1, "more"), ["more", "--help"]),
        ((*T, "--epsilonn", "1"), ["--epsilonn"]),
        ((*T1, "--mechanism", "exakt"), ["'exakt'", "did you mean 'exact'?"]),
        ((*T1, "--mechanism", "exact,"), ["''", "wasserstein"]),
        ((*T1, "--pair", "yes", "non"), ["'non'", "did you mean 'no'?"]),
        ((*T1, "--levels", "0,,1"), ["--levels", "low,mid,high"]),
        ((*T1, "--decimal", ";"), ["decimal"]),
        ((*T1, "--mechanism", "channel", "--cost", "/dev/zero"), ["/dev/zero", "plain file"]),
        ((*T1, "--min-keep", ".5", "--mechanism", "l1"), ["--min-keep", "--mechanism channel"]),
        (
            (*T, "--epsilon", "1,2", "--save", "p.json"),
            ["--save takes exactly one epsilon", "not 1, 2"],
        ),
        ((*T1, "--mechanism", "all", "--save", "p.json"), ["one mechanism"]),
        ((*T1, "--save", "nowhere/p.json"), ["nowhere"]),
        ((*T1, "--save", "-"), ["give the name of a file"]),
        ((*T1, "--save", "t.csv", "--force"), ["t.csv"]),
        (
            (
                *T1,
                "--save",
                "cost.json",
                "--force",
                "--mechanism",
                "channel",
                "--cost",
                "cost.json",
            ),
            ["cost.json", "input itself"],
        ),
        ((*T1, "--save", "plan.json"), ["plan.json", "--force"]),
        ((*T1, "--prior", "prior.json"), ["TABLE", "--prior", "not both"]),
        ((*P, "--epsilon", "1", "--confidence", ".9"), ["--confidence", "TABLE"]),
        ((*P, "--epsilon", "1", "--pair", "a", "c"), ["'c'", "a, b"]),
        ((*P, "--epsilon", "1", "--ledger", "b.db"), ["--ledger", "TABLE"]),
        ((*T1, "--ledger", "b.db"), ["b.db"]),
        (("calibrat",), ["calibrat"]),
        (("--verbos",), ["--verbos"]),
        ((*T1, "--format", "jsn"), ["--format", "json"]),
        (("release",), ["--plan"]),
        (("release", "--plan", "plan.json", "-o", "o.csv"), ["TABLE", "--sql"]),
        (
            (
                "release",
                "--plan",
                "plan.json",
                "-o",
                "o.csv",
                "--ledger",
                "b.db",
                "--sql",
                "SELECT 1",
            ),
            ["--ledger"],
        ),
        ((*T1[:1], "--sql", "SELECT * FROM nothing", *T1[2:]), ["nothing does not exist"]),
        ((*T1, "--memory-limit", "1"), ["at least 500MB"]),
        ((*P, "--epsilon", "1", "--delimiter", ";"), ["--delimiter: not without a TABLE"]),
        (("verify", "plan.json", "--prior", "prior.json", "--sql", "SELECT 1"), ["not both"]),
        ((*T1, "--cost", "cost.html", "--report", "cost.html", "--force"), ["the input itself"]),
        (("release", "t.csv", "--plan", "plan.json"), ["-o"]),
        (("release", "t.csv", "-o", "o.csv"), ["--plan"]),
        ((*R, "-o", "t.csv", "--force"), ["t.csv"]),
        ((*R, "-o", "plan.json", "--force"), ["plan.json"]),
        ((*R, "-o", "sub"), ["sub"]),
        ((*R, "-o", "o.json"), [".csv"]),
        ((*R, "-o", "o.csv", "--bounds", "low", "high"), ["'low'"]),
        ((*R, "-o", "o.csv", "--out-of-support", "clam"), ["clamp"]),
        ((*R, "-o", "o.csv", "--keep", "romantik"), ["did you mean 'romantic'?"]),
        ((*R, "-o", "o.csv", "--keep", "higher"), ["secret", "'higher'"]),
        ((*R, "-o", "o.csv", "--seed", "1"), ["test"]),
        ((*R, "-o", "o.csv", "--publish-scale"), ["--record"]),
        ((*R, "-o", "o.csv", "--record", "r.json", "--publish-channel"), ["--publish-scale"]),
        ((*R, "-o", "o.csv", "--record", "plan.json", "--force"), ["plan.json"]),
        ((*R, "-o", "o.csv", "--record", "o.csv"), ["--record", "--output"]),
        (("release", "t.csv", "--plan", "prior.json", "-o", "o.csv"), ["prior.json"]),
        (("verify",), ["PLAN"]),
        (("verify", "plan.json"), ["TABLE", "--prior"]),
        (("verify", "plan.json", "t.csv", "--prior", "prior.json"), ["not both"]),
        (("estimate", "t.csv"), ["--plan", "--record"]),
        (("estimate", "t.csv", "--record", "prior.json"), ["prior.json"]),
        (("ledger", "show", "t.csv"), ["t.csv"]),
        (("ledger", "opne"), ["opne"]),
        (("reproduce", "--format", "xml"), ["json"]),
        (("reproduce", "--diabetes", "no.csv"), ["no.csv"]),
    ],
)
def test_one_line_says_what_is_wrong(command: tuple[str, ...], parts: list[str]):
    before = sorted(os.listdir())
    check_refused(run(*command), *parts)
    if command[0] == "calibrate" and "--format" not in command:
        check_refused(run(*command, "--format", "json"), *parts)
    assert sorted(os.listdir()) == before


@pytest.mark.usefixtures("folder")
def test_files_are_not_replaced_without_force():
    for command, name in (((*T1, "--save"), "p.json"), ((*R, "-o"), "o.csv")):
        Path(name).write_text("mine")
        check_refused(run(*command, name), name, "--force")
        assert Path(name).read_text() == "mine"
        assert run(*command, name, "--force").status == 0
        assert Path(name).read_text() != "mine"


@pytest.mark.usefixtures("folder")
def test_names_cannot_break_the_line_or_the_terminal():
    outcome = run("calibrate", "t.csv", "--secret", "a\nb\x1b[31m\r", "--public", "romantic",
                  "--epsilon", "1")  # fmt: skip
    check_refused(outcome, "column")
    assert "\x1b" not in outcome.err
    assert "\r" not in outcome.err


@pytest.mark.usefixtures("folder")
def test_a_fault_of_the_package_is_one_line_too(monkeypatch: pytest.MonkeyPatch):
    broken = Mock(side_effect=ZeroDivisionError("two\nlines"))
    monkeypatch.setattr("pufferfish.cli.calibrate.scenario_of", broken)
    check_refused(run(*T1), "fault", "report", "ZeroDivisionError (PUFF", status=70)
    denied = PermissionError(13, "Permission denied", "secret.csv")
    for error, said, status in ((MemoryError(), "memory", 70), (denied, "secret.csv: Perm", 2)):
        monkeypatch.setattr("pufferfish.cli.calibrate.scenario_of", Mock(side_effect=error))
        check_refused(run(*T1), said, status=status)
    monkeypatch.setattr("pufferfish.cli.calibrate.scenario_of", broken)
    monkeypatch.setenv("PUFFERFISH_DEBUG", "1")
    outcome = run(*T1)
    assert outcome.status == 70
    assert "Traceback" in outcome.err
    assert "lines" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("pufferfish: error: ")


def test_warnings_are_said_once_and_only_beside_a_result(capsys: pytest.CaptureFixture[str]):
    said = Messages([])
    with said.showing_warnings():
        for text in ("one", "one", "two\nlines"):
            warnings.warn(text, PriorWarning, stacklevel=1)
    said.note("one")
    assert capsys.readouterr().err == ""
    said.finish()
    expected = ["warning: one", "warning: two lines", "note: one"]
    assert capsys.readouterr().err.splitlines() == [f"pufferfish: {line}" for line in expected]
    said.warning("three")
    said.error("four")
    said.finish()
    assert capsys.readouterr().err == "pufferfish: error: four\n"


@pytest.mark.usefixtures("folder")
def test_mutant_a_traceback_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """Without the handler, the check that the tests above use turns red."""

    def let_through(error: Exception) -> tuple[int, str]:
        print(f"Traceback (most recent call last):\n{error}", file=sys.stderr)
        return 1, ""

    monkeypatch.setattr(app, "explain", let_through)
    with pytest.raises(AssertionError):
        check_refused(run("calibrate", "no.csv", *COLUMNS, "--epsilon", "1"))


WORDS = [
    "calibrate", "release", "verify", "t.csv", "prior.json", "plan.json", "no.csv", "sub",
    "--secret", "--public", "higher", "romantic", "--pair", "yes", "no", "--order", "0,1,2",
    "appearance", "--levels", "--missing", "--exclude-secret", "--step", "0.5", "--epsilon", "1",
    "1,5", "-1", "nan", "--mechanism", "all", "exact", "--format", "json", "csv", "--save",
    "out.json", "--prior", "-o", "out.csv", "--plan", "--keep", "--bounds", "--round", "--force",
    "--allow-unchanged", "--min-scale", "--seed", "--other-prior", "", "é", "--", "-x",
    "channel", "--cost", "hamming", "squared", "--outputs", "fine:2", "--invariant", "--unbiased",
    "--min-keep", "--confidence", "--tv-radius", "--missing-as-level", "0.05", "--explain",
    "--record", "--delimiter", "--decimal", ",", "--unit",
]  # fmt: skip


@pytest.mark.usefixtures("folder")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.sampled_from([T1, R, ("verify", "plan.json"), ("estimate",), ("calibrate",)]),
    st.lists(st.sampled_from(WORDS), max_size=8),
)
def test_no_command_line_ends_in_a_fault(command: tuple[str, ...], words: list[str]):
    outcome = run(*command, *words)
    assert outcome.status in (0, 1, 2)
    if outcome.status:
        check_refused(outcome, status=outcome.status)
    elif "json" in words and outcome.out.startswith("{"):
        assert outcome.data
