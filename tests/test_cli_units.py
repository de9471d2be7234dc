# SPDX-License-Identifier: Apache-2.0
"""Rows of one person on the command line: --unit in calibrate, verify and release."""

import json
import warnings
from pathlib import Path

import pandas as pd
import pytest

import pufferfish as pf
from cli_runner import check_refused, run, write
from pufferfish.assumptions import EACH_ROW
from pufferfish.errors import PriorWarning

OPTIONS = ("--secret", "s", "--public", "x")
UNIT = (*OPTIONS, "--unit", "id")
#: Persons with one row and with two, which say more than each row alone.
ROWS = [
    *[(f"p{k}", "a", v) for k, v in enumerate((0, 0, 1, 2))],
    *[(f"q{k}", "b", v) for k, v in enumerate((0, 1, 1, 2))],
    *[(f"r{k // 2}", "a", v) for k, v in enumerate((0, 0, 2, 2, 1, 1))],
    *[(f"t{k // 2}", "b", v) for k, v in enumerate((0, 2, 0, 2, 1, 1))],
]
TABLE = pd.DataFrame(ROWS, columns=["id", "s", "x"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table of persons and a prior."""
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    prior = {"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}}}
    write(tmp_path, "prior.json", json.dumps(prior))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plan(folder: Path) -> Path:
    """The file of a plan for the persons of the table."""
    assert run("calibrate", "t.csv", *UNIT, "--epsilon", "1", "--save", "plan.json").status == 0
    return folder / "plan.json"


@pytest.mark.usefixtures("folder")
def test_calibrate_gives_what_python_gives() -> None:
    data = run("calibrate", "t.csv", *UNIT, "--epsilon", "1", "--format", "json").data
    [result] = data["results"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        prior = pf.Prior.from_table(TABLE, secret="s", public="x", unit="id")
    plan = pf.calibrate(prior, 1)
    assert result["scale"] == plan.scale
    assert result["loss"] == plan.loss
    assert result["robustness_radius"] is None
    assert result["reduction_vs_l1"] is None
    rows = run("calibrate", "t.csv", *OPTIONS, "--epsilon", "1", "--format", "json").data
    assert rows["results"][0]["scale"] < result["scale"]
    notes = " ".join(data["scenario"]["notes"])
    assert "those with the same 'id', in the order of the table: 14 units" in notes
    assert "joint loss of 2 rows of one person decides" in notes
    assert EACH_ROW not in notes
    assert EACH_ROW.strip() in " ".join(rows["scenario"]["notes"])


@pytest.mark.usefixtures("folder")
def test_all_mechanisms_hold_for_all_rows_of_one_person() -> None:
    outcome = run("calibrate", "t.csv", *UNIT, "--epsilon", "0.2", "--mechanism", "all")
    assert outcome.status == 0
    assert "Every loss is certified" in outcome.out
    assert "how many rows a person has is not protected" in " ".join(outcome.out.split())
    assert "wasserstein " in outcome.out
    assert "channel" in outcome.out
    assert "below" not in outcome.out  # the baselines are for single rows


def test_verify_proves_the_rows_of_one_person(plan: Path) -> None:
    outcome = run("verify", "plan.json", "t.csv")
    assert outcome.status == 0
    assert "All rows of one person together, 1 or 2 of them" in " ".join(outcome.out.split())
    TABLE.iloc[::-1].to_csv("turned.csv", index=False)
    check_refused(run("verify", "plan.json", "turned.csv"), "or their order", status=1)
    assert run("verify", "plan.json", "turned.csv", "--other-prior").status == 0
    TABLE.drop(columns="id").to_csv("without.csv", index=False)
    check_refused(run("verify", "plan.json", "without.csv"), "no column 'id'")
    check_refused(run("verify", "plan.json", "--prior", "prior.json"), status=1)


@pytest.mark.usefixtures("folder")
def test_a_plan_for_single_rows_is_no_plan_for_persons() -> None:
    run("calibrate", "t.csv", *OPTIONS, "--epsilon", "1", "--save", "plan.json")
    assert run("verify", "plan.json", "t.csv").status == 0
    data = json.loads(Path("plan.json").read_text())
    data["rules"]["unit"] = "id"
    Path("edited.json").write_text(json.dumps(data))
    told = "all rows of one person together"
    check_refused(run("verify", "edited.json", "t.csv"), told, status=1)
    released = run("release", "t.csv", "--plan", "edited.json", "-o", "o.csv", "--allow-unchanged")
    assert (released.status, Path("o.csv").exists()) == (2, False)
    assert "calibrate it again" in released.err


def test_a_release_writes_nothing_of_the_unit(plan: Path) -> None:
    outcome = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv")
    assert outcome.status == 0
    assert Path("o.csv").read_text().splitlines()[0] == "x"
    assert len(pd.read_csv("o.csv")) == len(TABLE)
    on_the_way = run("release", "t.csv", *UNIT, "--epsilon", "1", "-o", "p.csv")
    assert on_the_way.status == 0
    assert "certified loss at most 1" in on_the_way.out
    check_refused(
        run("release", "t.csv", "--plan", "plan.json", "-o", "q.csv", "--keep", "ID"),
        "the unit column 'id' cannot be kept",
    )
    pd.concat([TABLE, TABLE.tail(1)]).to_csv("more.csv", index=False)
    check_refused(
        run("release", "more.csv", "--plan", "plan.json", "-o", "q.csv"),
        "such as 3 (first in data row 19); the plan knows units with 1 or 2 rows",
    )
    TABLE.assign(id=TABLE["id"].replace("p0", "")).to_csv("blank.csv", index=False)
    check_refused(
        run("release", "blank.csv", "--plan", "plan.json", "-o", "q.csv"),
        "nothing in the unit column 'id' (the first is data row 1)",
    )
    assert not Path("q.csv").exists()


@pytest.mark.parametrize(
    "arguments, part",
    [
        (("calibrate", "--prior", "prior.json", "--unit", "id", "--epsilon", "1"),
         "--unit names a column of a TABLE"),
        (("release", "t.csv", "--prior", "prior.json", "--public", "x", "--unit", "id",
          "--epsilon", "1", "-o", "o.csv"), "--unit names a column of a TABLE"),
        (("release", "t.csv", "--plan", "plan.json", "--unit", "id", "-o", "o.csv"),
         "--unit cannot be given with --plan"),
        (("calibrate", "t.csv", *UNIT, "--epsilon", "1", "--confidence", "0.95"),
         "not supported together with a unit"),
        (("calibrate", "t.csv", *OPTIONS, "--unit", "idd", "--epsilon", "1"),
         "did you mean 'id'?"),
        (("calibrate", "t.csv", *OPTIONS, "--unit", "x", "--epsilon", "1"), "must differ"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("plan")
def test_what_does_not_go_with_a_unit(arguments: tuple[str, ...], part: str) -> None:
    check_refused(run(*arguments), part)
    assert not Path("o.csv").exists()


@pytest.mark.usefixtures("folder")
def test_persons_with_two_secrets_are_refused() -> None:
    mixed = TABLE.copy()
    mixed.loc[9, "s"] = "b"
    mixed.to_csv("mixed.csv", index=False)
    outcome = run("calibrate", "mixed.csv", *UNIT, "--epsilon", "1")
    check_refused(outcome, "1 unit of mixed.csv (by column 'id') has rows with different secret")
    assert "r0" not in outcome.err  # whose rows they are is no name to show
