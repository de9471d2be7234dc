# SPDX-License-Identifier: Apache-2.0
"""`pufferfish ledger`, and what `release` and `calibrate` do with a ledger."""

import contextlib
import json
import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from cli_runner import check_refused, run
from pufferfish.errors import InputError
from pufferfish.ledger.ledger import Ledger

ROWS = [
    (s, x, z)
    for s, counts in (("no", (15, 6, 2, 1)), ("yes", (1, 2, 6, 15)))
    for x, count in enumerate(counts)
    for z in ("abab" * 9 if s == "no" else "aaab" * 9)[:count]
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{s},{x},{z}\n" for s, x, z in ROWS)
    (tmp_path / "table.csv").write_text(f"s,x,z\n{text}")
    done = opened()
    assert done.status == 0, done.err
    assert calibrate("plan.json", "--epsilon", "0.2").status == 0
    return tmp_path


def opened(*options: object, books: str = "books.db", budget: object = 1, name: str = "d") -> Any:
    return run("ledger", "open", books, "--dataset", name, "table.csv", "--secret", "s",
               "--budget", budget, *options)  # fmt: skip


def calibrate(target: str, *options: object, public: str = "x") -> Any:
    return run("calibrate", "table.csv", "--secret", "s", "--public", public, "--save", target,
               *options)  # fmt: skip


def release(
    output: str, *options: object, plan: str = "plan.json", table: str = "table.csv"
) -> Any:
    return run("release", table, "--plan", plan, "--ledger", "books.db", "-o", output, *options)


def states() -> list[str]:
    return [record.state for record in Ledger.open("books.db").show().releases]


def test_open_makes_a_private_file_and_says_so():
    assert opened(books="~x.db").status == 0
    done = opened(books="new.db", budget="1/3", name="students")
    assert done.status == 0
    assert stat.S_IMODE(os.stat("new.db").st_mode) == 0o600
    assert "made, readable by you alone" in done.out
    assert "dataset students, 48 rows, secret s, budget 1/3" in done.out
    check_refused(opened(books="new.db", budget=2, name="students"), "students")
    Path("other.csv").write_text(Path("table.csv").read_text() + "no,1,a\n")
    more = ("ledger", "open", "new.db", "--dataset", "more", "other.csv", "--secret", "s",
            "--budget", 1)  # fmt: skip
    check_refused(run(*more), "--other-people")
    assert "other people" in run(*more, "--other-people").out


@pytest.mark.parametrize("options, part", [(["--budget", "0"], "0"), (["--budget", "much"], "much"),
                                           (["--secret", "t"], "'t'"),
                                           (["--dataset", " "], "a name")])  # fmt: skip
def test_open_refuses_before_it_makes_a_file(options: list[str], part: str):
    check_refused(opened(*options, books="new.db"), part)
    assert not Path("new.db").exists()


def test_open_reads_the_table_before_it_makes_a_file():
    Path("ragged.csv").write_text("s,x\na,1,2\n")
    check_refused(run("ledger", "open", "new.db", "--dataset", "d", "ragged.csv", "--secret", "s",
                      "--budget", 1), "line 2")  # fmt: skip
    assert not Path("new.db").exists()


def test_price_then_release_then_show_then_verify():
    priced = run("ledger", "price", "books.db", "table.csv", "--plan", "plan.json")
    assert priced.status == 0, priced.err
    assert "charged already: 0 releases" in priced.out
    assert "joint loss of d with this release of x: at most 0.2" in priced.out
    assert "budget 1: fits" in priced.out
    assert states() == []
    done = release("one.csv")
    assert done.status == 0, done.err
    assert len(done.out.splitlines()) <= 6
    assert "joint loss of d with this release of x: at most 0.2" in done.out
    assert len(Path("one.csv").read_text().splitlines()) == len(ROWS) + 1
    assert release("two.csv").status == 0
    assert states() == ["released", "released"]
    shown = run("ledger", "show", "books.db")
    assert (shown.status, shown.err) == (0, "")
    assert "joint loss at most 0." in shown.out
    assert max(map(len, shown.out.splitlines()[:-2])) <= 80
    verified = run("ledger", "verify", "books.db")
    assert (verified.status, "2 releases checked" in verified.out) == (0, True)
    verified = run("ledger", "verify", "books.db", "table.csv")
    assert (verified.status, "2 releases computed again" in verified.out) == (0, True)


def test_programs_get_every_digit():
    assert release("one.csv").status == 0
    priced = run("ledger", "price", "books.db", "table.csv", "--plan", "plan.json", "--format",
                 "json").data  # fmt: skip
    assert priced["fits"] is True
    assert (priced["releases"], priced["dataset"]["budget"]) == (1, 1)
    assert priced["joint_loss"] > 0.2
    data = run("ledger", "show", "books.db", "--format", "json").data
    assert [d["name"] for d in data["datasets"]] == ["d"]
    (row,) = data["releases"]
    assert (row["column"], row["state"], row["own"]) == ("x", "released", True)
    assert data["datasets"][0]["joint_loss"] == row["joint_loss"]
    assert '"scale"' not in json.dumps(data)  # plans are not shown


def test_a_budget_is_never_exceeded():
    status = 0
    written = 0
    while status == 0:
        done = release(f"{written}.csv")
        status, written = done.status, written + (done.status == 0)
    assert status == 1
    check_refused(done, "refused", "over the budget 1", status=1)
    assert 2 <= written < 10
    assert states() == ["released"] * written
    assert not Path(f"{written}.csv").exists()
    priced = run("ledger", "price", "books.db", "table.csv", "--plan", "plan.json")
    assert (priced.status, "budget 1: DOES NOT FIT" in priced.out) == (1, True)


def test_what_no_ledger_can_account_for():
    check_refused(release("o.csv", "--keep", "z"), "--keep")
    check_refused(release("test.csv", "--seed", "1"), "--seed")
    check_refused(release("table.csv", "--force"), "table.csv")
    check_refused(release("no/o.csv"), "no")
    Path("o.csv").write_text("mine")
    check_refused(release("o.csv"), "--force")
    Path("edited.csv").write_text(Path("table.csv").read_text().replace("no,0", "no,1", 1))
    check_refused(release("p.csv", table="edited.csv"), "edited")
    check_refused(run("ledger", "verify", "books.db", "edited.csv"), "edited.csv")
    assert states() == []


def test_what_fails_after_the_charge_stays_charged_and_says_so(monkeypatch: pytest.MonkeyPatch):
    from pufferfish.release.pipeline import Prepared

    def broken(*_: object) -> None:
        raise InputError("the disk is full")

    monkeypatch.setattr(Prepared, "write", broken)
    check_refused(release("o.csv"), "the disk is full", "stays charged")
    assert states() == ["charged"]


def test_calibrate_takes_the_budget_for_epsilon():
    assert release("one.csv").status == 0
    done = calibrate("next.json", "--ledger", "books.db", "--epsilon", 2)
    assert done.status == 0, done.err
    assert (
        "Proved: the loss, together with all that is charged, is within epsilon 1, if" in done.out
    )
    assert "at most the budget 1" in done.err
    alone = run("release", "table.csv", "--plan", "next.json", "-o", "alone.csv")
    assert (alone.status, "charged to no ledger" in alone.err) == (0, True)
    verified = run("verify", "next.json", "table.csv").out
    assert "this release alone was verified" in verified
    assert release("two.csv", plan="next.json").status == 0
    price = Ledger.open("books.db").show().releases[-1].bound
    assert price is not None
    assert 0.9 < price <= 1
    Path("mark.csv").write_text(Path("table.csv").read_text().replace(",", ";"))
    mark = ("--secret", "s", "--public", "x", "--delimiter", ";", "--ledger", "books.db")
    check_refused(run("calibrate", "mark.csv", *mark), "nothing fits within the budget", status=1)
    more = calibrate("third.json", "--ledger", "books.db", "--epsilon", "0.5", public="z")
    assert more.status in (0, 1)


def test_a_plan_never_takes_the_place_of_the_ledger():
    before = Path("books.db").read_bytes()
    command = ("calibrate", "table.csv", "--secret", "s", "--public", "x", "--ledger", "books.db")
    check_refused(run(*command, "--save", "books.db", "--force"), "books.db", "input itself")
    assert Path("books.db").read_bytes() == before


def test_why_nothing_fits_is_said():
    Path("blanks.csv").write_text(Path("table.csv").read_text() + "no,,a\nyes,1,\n")
    assert run("ledger", "open", "blanks.db", "--dataset", "d", "blanks.csv", "--secret", "s",
               "--budget", 1).status == 0  # fmt: skip
    more = ("calibrate", "blanks.csv", "--secret", "s", "--ledger", "blanks.db", "--save")
    assert run(*more, "x.json", "--public", "x").status == 0
    assert run("release", "blanks.csv", "--plan", "x.json", "--ledger", "blanks.db", "-o", "o.csv"
               ).status == 0  # fmt: skip
    done = run(*more, "z.json", "--public", "z")
    check_refused(done, "the budget 1", "2 rows without a value", "--missing-as-level", status=1)


def test_what_is_wrong_with_a_ledger_or_dear_in_a_price_is_said():
    text = Path("table.csv").read_text().replace("no,0", "no,1", 1)
    Path("other.csv").write_text(text)
    more = ("--secret", "s", "--public", "x", "--epsilon", 1, "--save", "other.json")
    assert run("calibrate", "other.csv", *more).status == 0
    priced = run("ledger", "price", "books.db", "table.csv", "--plan", "other.json").out
    why = "worst cases are charged: the plan is for other counts than those of this table"
    assert why in priced
    assert release("one.csv").status == 0
    with contextlib.closing(sqlite3.connect("books.db")) as books, books:
        found = "SELECT sql FROM sqlite_master WHERE name = 'release_is_final'"
        (trigger,) = books.execute(found).fetchone()
        books.execute("DROP TRIGGER release_is_final")
        books.execute("UPDATE release SET bound = '1/100'")
        books.execute(trigger)
    done = run("ledger", "verify", "books.db", "table.csv")
    check_refused(done, "1 fault", "too little (0.01 against ", status=1)
