# SPDX-License-Identifier: Apache-2.0
"""The command and the Python of a report make the same plan again."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_runner import run
from pufferfish.report.remake import command, program

ROWS = [
    ("a", "x, y", "1", "p1"), ("a", "z", "2", "p1"), ("a", "z", "2", "p2"), ("b", "x, y", "3", "p"),
    ("b", 'q "u"', "1", "p3"), ("b", "z", "1", "p4"), ("c", "z", "2", "p5"), ("a", "", "3", "p6"),
    ("b", "NA", "", "p7"), ("c", "x, y", "1", "p8"),
]  # fmt: skip
CASES = [
    "--public level --epsilon 1",
    "--public level --epsilon 0.5 --best-for kept",
    "--public level --missing NA --missing-as-level --epsilon 1/3 --min-keep 0.3",
    '--public level --missing NA --order \'z,"x, y","q ""u"""\' --epsilon 2 --mechanism relaxed',
    "--public number --epsilon 1 --pair a b",
    "--public number --epsilon 1 --pair a b --exclude-secret c --confidence 0.8",
    "--public number --epsilon 1 --range 0 4 --best-for both",
    "--public number --epsilon 1 --step 2 --best-for kept --cost absolute --outputs fine:2",
    "--public number --epsilon 1 --tv-radius 0.05 --mechanism channel --unbiased",
    "--public number --epsilon 2 --unit person",
    "--public number --epsilon 1 --levels 1,2,3,4 --invariant",
]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in ROWS * 30]
    (tmp_path / "t.csv").write_text("\n".join(["s,level,number,person", *lines, ""]))
    return "t.csv"


def told(path: str) -> Any:
    # Values are declared the second time, so that a note on those of a region may be gone.
    return json.loads(Path(path).read_text()) | {"notes": []}


@pytest.mark.parametrize("options", CASES)
def test_the_command_and_the_program_make_the_same_plan(table: str, options: str) -> None:
    words = ["calibrate", table, "--secret", "s", *shlex.split(options), "--save", "one.json"]
    done = run(*words)
    assert done.status == 0, done.err
    plan = pf.Plan.load("one.json")
    assert plan.pairs
    again = shlex.split(command(plan, table).replace("plan.json", "two.json"))
    assert again.pop(0) == "pufferfish"
    done = run(*again)
    assert done.status == 0, (again, done.err)
    assert told("two.json") == told("one.json")
    names: dict[str, Any] = {}
    exec(program(plan, table), names)
    names["plan"].with_sensitivity(names["scenario"]).save("three.json")
    assert told("three.json") == told("one.json")


def test_what_cannot_be_repeated_has_a_place_holder() -> None:
    prior = pf.Prior.from_counts({"a": [3, 2], "b": [1, 4]}, support=[0, 1])
    plan = pf.calibrate(prior, 1, "channel", cost=[[0, 1], [2, 0]])
    assert "--prior PRIOR" in command(plan, None)
    assert "--cost FILE" in command(plan, None)
    assert "read_prior_file(PRIOR)" in program(plan, None)


def test_a_plan_from_held_out_rows_has_a_place_for_the_share(table: str) -> None:
    words = ["calibrate", table, "--secret", "s", "--public", "number", "--pair", "a", "b",
             "--range", "0", "4", "--epsilon", "2", "--publishable", "2", "--hold-out", "0.5",
             "rest.csv", "--save", "one.json"]  # fmt: skip
    done = run(*words)
    assert done.status == 0, done.err
    plan = pf.Plan.load("one.json")
    assert "--hold-out SHARE REST" in command(plan, table)
    assert "hold_out='SHARE', rest='REST'" in program(plan, table)
