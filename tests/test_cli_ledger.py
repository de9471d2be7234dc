# SPDX-License-Identifier: Apache-2.0
"""`pufferfish ledger`, and what `release` and `calibrate` do with a ledger."""

import csv
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_runner import check_refused, run
from pufferfish.errors import InputError
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.schema import NOTICE

ROWS = [
    (s, x, z)
    for s, counts in (("no", (15, 6, 2, 1)), ("yes", (1, 2, 6, 15)))
    for x, count in enumerate(counts)
    for z in ("abab" * 9 if s == "no" else "aaab" * 9)[:count]
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{s},{x},{z}\n" for s, x, z in ROWS)
    (tmp_path / "table.csv").write_text(f"s,x,z\n{text}")
    assert run("ledger", "open", "books.db", "--secret", "s", "--budget", "1").status == 0
    assert run("ledger", "open", "large.db", "--secret", "s", "--budget", "100").status == 0
    assert calibrate("plan.json", "--epsilon", "0.2").status == 0
    return tmp_path


def calibrate(target: str, *options: object, public: str = "x") -> Any:
    return run("calibrate", "table.csv", "--secret", "s", "--public", public, "--save", target,
               *options)  # fmt: skip


def release(
    output: str, *options: object, plan: str = "plan.json", table: str = "table.csv"
) -> Any:
    return run("release", table, "--plan", plan, "--ledger", "books.db", "-o", output, *options)


def states() -> list[str]:
    return [entry.state for entry in Ledger.open("books.db").entries()]


# ---- ledger open ------------------------------------------------------------------------------


def test_open_makes_a_private_file_and_says_so(folder: Path) -> None:
    done = run("ledger", "open", "new.db", "--secret", "higher", "--budget", "1/3")
    assert done.status == 0
    assert stat.S_IMODE(os.stat("new.db").st_mode) == 0o600
    assert "made, readable by you alone" in done.out
    assert "budget 1/3" in done.out
    assert NOTICE in done.out
    again = run("ledger", "open", "new.db", "--secret", "age", "--budget", ".5")
    assert again.status == 0
    assert "made" not in again.out
    check_refused(
        run("ledger", "open", "new.db", "--secret", "age", "--budget", 2), "never changed", "0.5"
    )


@pytest.mark.parametrize(
    "options, part",
    [
        ([], "--secret COL and --budget B"),
        (["--secret", "s"], "--secret COL and --budget B"),
        (["--secret", "s", "--budget", "0"], "above 0"),
        (["--secret", "s", "--budget", "much"], "a budget must be"),
        (["--secret", " ", "--budget", "1"], "name of a column"),
    ],
)
def test_open_refuses_before_it_makes_a_file(folder: Path, options: list[str], part: str) -> None:
    check_refused(run("ledger", "open", "new.db", *options), part)
    assert not Path("new.db").exists()


def test_what_is_no_ledger_is_left_as_it_is(folder: Path) -> None:
    Path("other.db").write_text("a,b\n1,2\n" * 200)
    before = Path("other.db").read_bytes()
    for command in (
        ["ledger", "open", "other.db", "--secret", "s", "--budget", 1],
        ["ledger", "show", "other.db"],
        ["ledger", "verify", "other.db"],
        ["release", "table.csv", "--plan", "plan.json", "--ledger", "other.db", "-o", "o.csv"],
        ["calibrate", "table.csv", "--secret", "s", "--public", "x", "--ledger", "other.db"],
    ):
        check_refused(run(*command), "other.db")
    assert Path("other.db").read_bytes() == before
    assert not Path("o.csv").exists()
    check_refused(run("ledger", "show", "book.db"), "did you mean 'books.db'")
    assert not Path("book.db").exists()


# ---- ledger price, release, show --------------------------------------------------------------


def test_price_then_release_then_show(folder: Path) -> None:
    priced = run("ledger", "price", "books.db", "table.csv", "--plan", "plan.json")
    assert priced.status == 0
    assert "out already: nothing" in priced.out
    assert "with this release of 'x': at most 0.20000000 (joint loss)" in priced.out
    assert "fits the budget 1, and leaves 0.8" in priced.out
    assert states() == []
    done = release("one.csv")
    assert done.status == 0
    assert "joint loss of the 1 release of this table about 's': at most 0.2" in done.out
    assert "budget 1, left 0.8" in done.out
    assert len(Path("one.csv").read_text().splitlines()) == len(ROWS) + 1
    assert release("two.csv").status == 0
    assert states() == ["released", "released"]
    shown = run("ledger", "show", "books.db")
    assert shown.status == 0
    assert NOTICE in shown.out
    assert "2 releases, joint loss at most 0." in shown.out
    assert shown.err == ""
    assert run("ledger", "verify", "books.db").out == (
        "books.db: 2 joint losses computed again; all as recorded\n"
    )


def test_programs_get_every_digit(folder: Path) -> None:
    release("one.csv")
    [entry] = Ledger.open("books.db").entries()
    data = run("ledger", "show", "books.db", "--format", "json").data
    assert data["private"] is True
    assert data["notice"] == NOTICE
    [account] = data["accounts"]
    assert (account["secret"], account["budget"], account["budget_exact"]) == ("s", 1.0, "1")
    [table] = account["tables"]
    assert (table["rows"], table["releases"]) == (len(ROWS), 1)
    [row] = data["releases"]
    assert row["id"] == entry.id
    assert row["joint_loss_exact"] == entry.bound
    assert row["columns"] == ["x"]
    assert row["detail"]["incomplete_rows"] == 0
    shown = run("ledger", "show", "books.db", "--format", "csv", "--secret", "s")
    [line] = csv.DictReader(io.StringIO(shown.out))
    assert (line["id"], line["columns"], line["budget"]) == (entry.id, "x", "1")
    assert "private" in shown.err
    priced = run(
        "ledger", "price", "books.db", "table.csv", "--plan", "plan.json", "--format", "json"
    )
    assert priced.data["fits"] is True
    assert priced.data["releases"] == 1
    assert 0.2 < priced.data["joint_loss"] < 0.5
    text = run(
        "ledger", "price", "books.db", "table.csv", "--plan", "plan.json", "--format", "csv"
    ).out
    [line] = csv.DictReader(io.StringIO(text))
    assert line["fits"] == "true"
    check_refused(run("ledger", "show", "books.db", "--secret", "t"), "no account")


def test_a_budget_is_never_exceeded(folder: Path) -> None:
    outputs: list[str] = []
    while not (done := release(f"out{len(outputs)}.csv")).status:
        outputs.append(f"out{len(outputs)}.csv")
        assert len(outputs) < 10
    check_refused(done, "refused", "over the budget 1", "nothing was charged", "--ledger", status=1)
    assert len(outputs) >= 2
    assert sorted(p.name for p in folder.glob("out*")) == sorted(outputs)
    assert states() == ["released"] * len(outputs)
    priced = run("ledger", "price", "books.db", "table.csv", "--plan", "plan.json")
    assert priced.status == 0
    assert "DOES NOT FIT" in priced.out


def test_copies_are_the_same_table_and_edits_are_not(folder: Path) -> None:
    lines = Path("table.csv").read_text().splitlines()
    Path("copy.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    assert release("one.csv").status == 0
    assert "the 2 releases of this table" in release("two.csv", table="copy.csv").out
    Path("edited.csv").write_text("\n".join([*lines[:-1], "no,3,b"]) + "\n")
    check_refused(release("three.csv", table="edited.csv"), "--new-table", "does not know")
    assert not Path("three.csv").exists()
    said = run("ledger", "price", "books.db", "edited.csv", "--plan", "plan.json").out
    assert "refused without --new-table" in said
    assert "the 1 release of" in release("three.csv", "--new-table", table="edited.csv").out


def test_noise_that_was_raised_is_what_is_charged(folder: Path) -> None:
    plan = pf.Plan.load("plan.json")
    raised = float(round(4 * (plan.scale or 0)))
    priced = run("ledger", "price", "books.db", "table.csv", "--plan", "plan.json",
                 "--min-scale", raised, "--format", "json")  # fmt: skip
    assert priced.data["joint_loss"] < 0.1
    assert release("one.csv", "--min-scale", raised).status == 0
    [entry] = Ledger.open("books.db").entries()
    assert json.loads(entry.plan)["scale"] == raised
    assert float(entry.bound) == priced.data["joint_loss"]


def test_a_release_without_a_plan_file_is_charged_too(folder: Path) -> None:
    done = run("release", "table.csv", "--secret", "s", "--public", "x", "--epsilon", "0.1",
               "--ledger", "books.db", "-o", "one.csv")  # fmt: skip
    assert done.status == 0
    assert states() == ["released"]


def test_a_given_prior(folder: Path) -> None:
    rows = {"no": {"0": ".4", "1": ".3", "2": ".2", "3": ".1"}, "yes": dict.fromkeys("0123", ".25")}
    Path("prior.json").write_text(json.dumps({"secrets": rows}))
    assert (
        run("calibrate", "--prior", "prior.json", "--epsilon", ".3", "--save", "p.json").status == 0
    )
    check_refused(release("o.csv", "--public", "x", plan="p.json"), "column of the secret")
    check_refused(
        run("ledger", "price", "large.db", "table.csv", "--plan", "p.json"), "--public COL"
    )
    columns = ["--public", "x", "--secret", "s"]
    price = ["ledger", "price", "large.db", "table.csv", "--plan", "p.json", *columns]
    unknown = run(*price, "--format", "json").data
    assert unknown["own_prior"] is False
    assert "worst cases" in unknown["how"]
    told = run(*price, "--prior", "prior.json", "--format", "json").data
    assert told["joint_loss"] < unknown["joint_loss"]
    with_prior = [*columns, "--prior", "prior.json", "--ledger", "large.db"]
    done = run("release", "table.csv", "--plan", "p.json", "-o", "one.csv", *with_prior)
    assert done.status == 0
    assert "another prior" in done.err
    direct = run("release", "table.csv", *columns, "--prior", "prior.json", "--epsilon", ".3",
                 "--ledger", "large.db", "-o", "two.csv")  # fmt: skip
    assert direct.status == 0
    assert [entry.state for entry in Ledger.open("large.db").entries()] == ["released"] * 2
    shown = run("ledger", "show", "large.db").out
    assert "calibrated for another prior" in shown


def test_a_plan_from_another_table(folder: Path) -> None:
    lines = Path("table.csv").read_text().splitlines()
    Path("other.csv").write_text("\n".join(lines[:-1]) + "\n")
    made = run("calibrate", "other.csv", "--secret", "s", "--public", "x", "--epsilon", ".3",
               "--save", "p.json")  # fmt: skip
    assert made.status == 0
    price = ["ledger", "price", "books.db", "table.csv", "--plan", "p.json", "--format", "json"]
    unknown = run(*price).data
    assert unknown["own_prior"] is False
    told = run(*price, "--prior-table", "other.csv").data
    assert told["joint_loss"] < unknown["joint_loss"]
    check_refused(run(*price, "--prior-table", "table.csv"), "another one")
    check_refused(run(*price, "--prior-table", "o.csv", "--prior", "p"), "not both")
    assert release("one.csv", "--prior-table", "other.csv", plan="p.json").status == 0
    check_refused(
        run(
            "release", "table.csv", "--plan", "p.json", "--prior-table", "other.csv", "-o", "o.csv"
        ),
        "--prior-table is for --ledger",
    )
    check_refused(release("other.csv", "--prior-table", "other.csv", "--force", plan="p.json"),
                  "the input itself")  # fmt: skip


# ---- what is refused, and what stays charged --------------------------------------------------


@pytest.mark.parametrize(
    "options, part",
    [
        (["--keep", "z"], "--keep cannot be given with --ledger"),
        (["--seed", 1], "--seed cannot be given with --ledger"),
    ],
)
def test_what_no_ledger_can_account_for(folder: Path, options: list[Any], part: str) -> None:
    check_refused(release("test.csv", *options), part)
    assert states() == []


def test_nothing_is_charged_for_what_cannot_be_written(folder: Path) -> None:
    Path("there.csv").write_text("mine\n")
    check_refused(release("there.csv"), "exists already")
    check_refused(release("books.db"), "the input itself")
    check_refused(release("out.txt"), ".csv")
    check_refused(release("nowhere/out.csv"), "nowhere")
    check_refused(run("release", "table.csv", "--plan", "plan.json", "-o", "o.csv", "--new-table"),
                  "--new-table is for --ledger")  # fmt: skip
    Path("odd.csv").write_text("s,x,z\nno,17,a\nyes,3,b\n")
    check_refused(release("out.csv", table="odd.csv"), "data row 1", "outside the support")
    assert states() == []
    assert Path("there.csv").read_text() == "mine\n"


def test_what_fails_after_the_charge_stays_charged_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise InputError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("pufferfish.release.release_file", full)
        failed = release("one.csv")
    [entry] = Ledger.open("books.db").entries()
    check_refused(failed, f"the disk is full; the release {entry.id} stays charged", "ledger show")
    assert entry.state == "charged"
    shown = run("ledger", "show", "books.db").out
    assert "1 release charged, but not known to be in place" in shown
    done = release("one.csv")
    assert "2 releases of this table" in done.out
    assert "stays charged" not in done.err


def test_others_who_can_read_it_are_warned_of(folder: Path) -> None:
    os.chmod("books.db", 0o644)
    shown = run("ledger", "show", "books.db", "--format", "json")
    assert "chmod 600" in shown.err
    assert shown.data["private"] is False


def test_verify_fails_where_something_is_wrong(folder: Path) -> None:
    import sqlite3

    release("one.csv")
    with sqlite3.connect("books.db") as connection:
        connection.execute("DROP TRIGGER release_is_final")
        connection.execute("UPDATE release SET bound = '0.01'")
        triggers = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    assert "release_is_final" not in triggers
    # A ledger that lacks a trigger is no ledger any more: it is put back, as a clever hand would.
    from pufferfish.ledger.schema import SCHEMA

    start = SCHEMA.index("CREATE TRIGGER release_is_final")
    statement = SCHEMA[start : SCHEMA.index("END;", start) + 3]
    with sqlite3.connect("books.db") as connection:
        connection.execute(statement)
    connection.close()
    found = run("ledger", "verify", "books.db")
    assert found.status == 1
    assert "too little was charged" in found.out
    assert "1 fault" in found.err


# ---- calibrate beside a ledger ----------------------------------------------------------------


def test_calibrate_takes_the_budget_for_epsilon(folder: Path) -> None:
    release("one.csv")
    done = calibrate("next.json", "--ledger", "books.db")
    assert done.status == 0
    assert "everything together costs at most 1.0000000" in done.out
    plan = pf.Plan.load("next.json")
    assert plan.epsilon == 1
    assert plan.beside is not None
    assert plan.beside.releases == 1
    assert release("two.csv", plan="next.json").status == 0
    check_refused(calibrate("third.json", "--ledger", "books.db"), "leaves", status=1)
    assert not Path("third.json").exists()


def test_calibrate_beside_other_columns_and_less_than_the_budget(folder: Path) -> None:
    release("one.csv")
    options = ["--ledger", "books.db", "--epsilon", "0.4"]
    assert calibrate("z.json", *options, public="z").status == 0
    done = release("two.csv", plan="z.json")
    assert done.status == 0
    assert float(Ledger.open("books.db").entries()[-1].bound) <= 0.4
    results = run("calibrate", "table.csv", "--secret", "s", "--public", "x", "--ledger",
                  "books.db", "--epsilon", "0.6,0.8", "--format", "json").data  # fmt: skip
    scales = [result["scale"] for result in results["results"]]
    assert scales[0] > scales[1] > 0


def test_calibrate_refuses_what_does_not_go_with_a_ledger(folder: Path) -> None:
    check_refused(calibrate("p.json", "--new-table", "--epsilon", 1), "--new-table is for --ledger")
    check_refused(calibrate("p.json", "--ledger", "books.db", "--epsilon", 2), "above the budget")
    Path("prior.json").write_text('{"secrets": {"a": {"0": "1"}, "b": {"1": "1"}}}')
    check_refused(
        run("calibrate", "--prior", "prior.json", "--ledger", "books.db", "--epsilon", 1), "--prior"
    )
    check_refused(
        run("calibrate", "table.csv", "--secret", "z", "--public", "x", "--ledger", "books.db"),
        "no account for the secret 'z'",
    )


def test_the_group_helps(folder: Path) -> None:
    assert "price" in run("ledger").out
    assert run("ledger", "--help").status == 0
    check_refused(run("ledger", "shw"), "did you mean 'show'")
    check_refused(run("ledger", "price", "books.db", "table.csv"), "--plan FILE")


# ---- the public record ------------------------------------------------------------------------


def test_a_record_is_written_beside_a_release(folder: Path) -> None:
    done = release("one.csv", "--record", "record.json")
    assert done.status == 0
    record = json.loads(Path("record.json").read_text())
    assert "scale" not in record
    assert "record.json" in done.err
    check_refused(release("two.csv", "--record", "record.json"), "record.json exists already")
    check_refused(release("two.csv", "--publish-scale"), "--publish-scale is for --record")
    check_refused(release("two.csv", "--record", "plan.json", "--force"), "the input itself")
    assert not Path("two.csv").exists()
    assert len(states()) == 1
    done = run("release", "table.csv", "--plan", "plan.json", "-o", "two.csv",
               "--record", "record.json", "--publish-scale", "--force")  # fmt: skip
    assert done.status == 0
    assert json.loads(Path("record.json").read_text())["scale"] == pf.Plan.load("plan.json").scale


# ---- what calibrate --ledger says, and what a plan beside others promises ---------------------


def test_exact_decimals_are_printed_as_they_are(folder: Path) -> None:
    from fractions import Fraction

    from pufferfish.cli.charging import left_words, loss_words
    from pufferfish.ledger.account import Bound

    def words(value: Fraction, budget: int = 1) -> str:
        return loss_words(Bound(value, ""), Fraction(budget))

    assert words(Fraction(1, 10)) == "0.10000000"
    assert words(Fraction(7, 10) - Fraction(1, 10**18)) == "0.70000000"
    assert words(Fraction(1, 10) + Fraction(1, 10**18)) == "0.10000001"
    assert words(Fraction(1, 3)) == "0.33333334"
    assert words(1 - Fraction(1, 10**30)) == "1.0000000"
    assert left_words(Fraction(1, 10**15), Fraction(1)) == "nothing"
    assert left_words(Fraction(1, 10**8), Fraction(1)) == "0.00000001"


def test_a_region_is_charged_for_all_of_it(folder: Path) -> None:
    options = ["--ledger", "books.db", "--epsilon", "0.5", "--confidence", "0.95"]
    assert calibrate("robust.json", *options).status == 0
    assert release("one.csv").status == 0
    made = calibrate("p.json", *options)
    assert made.status == 0, made.err
    assert "every prior of a plan's region" in made.out
    done = release("two.csv", plan="p.json")
    assert "(robust loss, for any prior of the region that a plan is for)" in done.out
    assert "(--confidence or --tv-radius)" in done.err
    assert run("ledger", "verify", "books.db").status == 0


def test_joint_loss_for_programs_and_no_radius_against_another_epsilon(folder: Path) -> None:
    command = ["calibrate", "table.csv", "--secret", "s", "--public", "x", "--ledger", "books.db",
               "--epsilon", "0.6"]  # fmt: skip
    [first] = run(*command, "--format", "json").data["results"]
    assert (first["releases_out"], first["joint_loss"]) == (0, first["loss"])
    release("one.csv")
    [row] = run(*command, "--format", "json").data["results"]
    assert row["releases_out"] == 1
    assert row["loss"] < row["joint_loss"] <= 0.6
    assert row["robustness_radius"] is None
    assert row["robustness_radius_at_double"] is None
    [line] = csv.DictReader(io.StringIO(run(*command, "--format", "csv").out))
    assert (float(line["joint_loss"]), line["releases_out"]) == (row["joint_loss"], "1")
    shown = run(*command).out
    assert shown.count("every other loss here is that of the release alone") == 1
    assert "adius" not in shown
    plain = run("calibrate", "table.csv", "--secret", "s", "--public", "x", "--epsilon", "0.6",
                "--format", "json").data["results"][0]  # fmt: skip
    assert "joint_loss" not in plain
    assert plain["robustness_radius"] is not None


def test_a_plan_beside_others_is_not_released_silently_without_a_ledger(folder: Path) -> None:
    release("one.csv")
    assert calibrate("next.json", "--ledger", "books.db", "--epsilon", "0.5").status == 0
    done = run("release", "table.csv", "--plan", "next.json", "-o", "two.csv")
    assert done.status == 0
    assert "beside 1 other release" in done.err
    assert "nothing was charged" in done.err
    assert "nothing was charged" not in release("three.csv", plan="next.json").err
    alone = run("release", "table.csv", "--plan", "plan.json", "-o", "four.csv")
    assert "nothing was charged" not in alone.err


def test_the_end_of_the_budget(folder: Path) -> None:
    release("one.csv")
    calibrate("next.json", "--ledger", "books.db")
    done = release("two.csv", plan="next.json")
    assert "left nothing" in done.out
    parts = ["nothing more of this table about 's'", "handed out again"]
    refused = release("three.csv")
    check_refused(refused, *parts, status=1)
    assert "calibrate ... --ledger" not in refused.err
    refused = calibrate("third.json", "--ledger", "books.db")
    check_refused(refused, *parts, status=1)
    assert "lack a value" not in refused.err
    less = calibrate("third.json", "--ledger", "books.db", "--epsilon", "0.5")
    check_refused(less, "leaves nothing of epsilon 0.5", status=1)


def test_a_prior_that_was_not_given_is_asked_for(folder: Path) -> None:
    rows = {"no": {"0": ".4", "1": ".3", "2": ".2", "3": ".1"}, "yes": dict.fromkeys("0123", ".25")}
    Path("prior.json").write_text(json.dumps({"secrets": rows}))
    run("calibrate", "--prior", "prior.json", "--epsilon", ".9", "--save", "p.json")
    columns = ["--public", "x", "--secret", "s"]
    price = ["ledger", "price", "large.db", "table.csv", "--plan", "p.json", *columns]
    asked = run(*price).out
    assert "--prior FILE" in asked
    assert "--prior-table FILE" in asked
    assert "--prior FILE" not in run(*price, "--prior", "prior.json").out
    check_refused(release("one.csv", *columns, plan="p.json"), "--prior-table FILE", status=1)


def test_a_price_cleans_cells_as_the_release_will(folder: Path) -> None:
    """For a plan of a given prior, which knows nothing of the table."""
    secrets = {"no": {"0": "1/2", "1": "1/2"}, "yes": {"0": "1/4", "1": "3/4"}}
    Path("prior.json").write_text(json.dumps({"secrets": secrets}))
    Path("gaps.csv").write_text("s,x\nno,0\nno,?\nyes,1\nyes,0.9\nno,1\nyes,0\n")
    made = run("calibrate", "--prior", "prior.json", "--epsilon", "0.5", "--save", "p.json")
    assert made.status == 0, made.err
    columns = ["--public", "x", "--secret", "s", "--prior", "prior.json"]
    price = ["ledger", "price", "large.db", "gaps.csv", "--plan", "p.json", *columns]
    check_refused(run(*price), "is no finite number")
    check_refused(run(*price, "--missing", "?"), "outside the support")
    cleaned = ["--missing", "?", "--step", "1"]
    asked = run(*price, *cleaned, "--format", "json")
    assert asked.status == 0, asked.err
    charged = ["--ledger", "large.db", "-o", "o.csv"]
    done = run("release", "gaps.csv", "--plan", "p.json", *columns, *cleaned, *charged)
    assert done.status == 0, done.err
    [entry] = Ledger.open("large.db").entries()
    assert entry.bound == json.loads(asked.out)["joint_loss_exact"]
    wrong = run("ledger", "price", "books.db", "table.csv", "--plan", "plan.json", *cleaned)
    check_refused(wrong, "--missing, --step cannot be given: the plan says it already")


def test_rows_of_one_person_get_advice_that_works(folder: Path) -> None:
    lines = Path("table.csv").read_text().splitlines()
    rows = [f"{line},{k // 2}" for k, line in enumerate(lines[1:])]
    Path("visits.csv").write_text("\n".join([lines[0] + ",person", *rows]) + "\n")
    made = run("calibrate", "visits.csv", "--secret", "s", "--public", "x", "--unit", "person",
               "--epsilon", "3", "--save", "visits.json")  # fmt: skip
    assert made.status == 0
    refused = release("one.csv", plan="visits.json", table="visits.csv")
    check_refused(refused, "what still fits is found by: pufferfish calibrate", status=1)
    unit = ("--secret", "s", "--unit", "person", "--ledger", "books.db", "--save")
    made = run("calibrate", "visits.csv", "--public", "x", *unit, "fits.json", "--epsilon", "0.5")
    assert made.status == 0, made.err
    done = release("one.csv", plan="fits.json", table="visits.csv")
    assert done.status == 0, done.err
    assert "at most 0.50000000 (joint loss of all 2 rows of one person)" in done.out
    made = run("calibrate", "visits.csv", "--public", "z", *unit, "more.json")
    assert made.status == 0, made.err
    assert release("two.csv", plan="more.json", table="visits.csv").status == 0
    shown = run("ledger", "verify", "books.db")
    assert shown.status == 0, shown.out
    # Turned round it is the same table, with other sequences.
    Path("turned.csv").write_text("\n".join([lines[0] + ",person", *rows[::-1]]) + "\n")
    priced = run("ledger", "price", "books.db", "turned.csv", "--plan", "fits.json")
    assert "in another order" in priced.out
    assert "DOES NOT FIT" in priced.out


def test_a_record_claims_what_was_proved_again(folder: Path) -> None:
    """An edited plan file has no certificate, whatever it says of itself."""
    assert release("one.csv", "--record", "one.json").status == 0
    assert json.loads(Path("one.json").read_text())["certificate"]["claimed"]
    data = json.loads(Path("plan.json").read_text())
    Path("plan.json").write_text(json.dumps(data | {"scale": data["scale"] / 10}))
    plain = ("release", "table.csv", "--plan", "plan.json", "-o", "two.csv")
    done = run(*plain, "--record", "two.json")
    assert done.status == 0, done.err
    assert "no certificate is claimed in the record" in done.err
    assert not json.loads(Path("two.json").read_text())["certificate"]["claimed"]


def test_what_cannot_be_released_is_not_charged(folder: Path) -> None:
    """A column that would be published as it is needs consent before anything is charged."""
    text = "".join(f"{s},{x}\n" for s in "ab" for x in (0, 0, 1, 1))
    Path("even.csv").write_text("s,x\n" + text)
    options = ("--secret", "s", "--public", "x", "--epsilon", "1")
    for mechanism in ("exact", "channel"):
        plan = f"{mechanism}.json"
        made = run("calibrate", "even.csv", *options, "--mechanism", mechanism, "--save", plan)
        assert made.status == 0, made.err
        before = states()
        refused = release("o.csv", "--new-table", plan=plan, table="even.csv")
        check_refused(refused, "--allow-unchanged")
        assert states() == before
