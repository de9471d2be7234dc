# SPDX-License-Identifier: Apache-2.0
"""pufferfish query, and release, verify and estimate by its plans, on the command line."""

import csv
import io
import json
import os
import re
from pathlib import Path

import pytest

from cli_runner import check_refused, rows, run, write
from pufferfish.queries.calibrate import MECHANISMS

WHERE = ("--state", "state", "--time", "week", "--sequence", "who")
CELLS = [f"{who},{week},{'ill' if who * week % 5 < 2 else 'well'}"
         for week in range(1, 7) for who in range(1, 6)]  # fmt: skip
CHAIN = {"states": ["ill", "well"], "transition": [["3/4", "1/4"], ["1/4", "3/4"]]}
COUNT = ("--count", "ill", "--epsilon", 1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table, a chain, and plans for a given and for a fitted one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", rows(*CELLS, header="who,week,state"))
    write(tmp_path, "chain.json", json.dumps(CHAIN))
    write(tmp_path, "w.json", json.dumps({"ill": "1/2", "well": -2}))
    given = run("query", "t.csv", *WHERE, *COUNT, "--model", "chain.json", "--save", "given.json")
    fitted = run("query", "t.csv", *WHERE, *COUNT, "--any-length", "--save", "fitted.json")
    assert (given.status, fitted.status) == (0, 0), given.err + fitted.err
    assert "private" in fitted.err
    assert "private" not in given.err
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_all_mechanisms_for_people_and_programs() -> None:
    asked = (
        "query",
        "--model",
        "chain.json",
        "--length",
        8,
        "--count",
        "ill",
        "--epsilon",
        "1/5,5",
    )
    found = run(*asked, "--mechanism", "all", "--format", "json")
    by = {(r["mechanism"], r["epsilon"]): r for r in found.data["results"]}
    assert {m for m, _ in by} == {*MECHANISMS} - {"gk16"}
    assert "gk16: there is no finite scale" in found.err
    assert by["exact", 5]["scale"] == pytest.approx(0.34454434278)
    assert by["mqm-exact", 5]["scale"] == pytest.approx(0.3567891997)
    assert all(r["certified"] and r["loss"] <= r["epsilon"] for r in by.values())
    assert all(r["least_scale"] <= r["scale"] for r in by.values())
    lines = [*csv.DictReader(io.StringIO(run(*asked, "--format", "csv").out))]
    assert [float(line["scale"]) for line in lines] == [by["exact", e]["scale"] for e in (0.2, 5)]
    out = run(*asked, "--mechanism", "exact,contraction").out
    assert "chain.json: 8 records; 2 states: ill, well" in out
    assert "Proved: each loss is within its epsilon" in out
    assert "Whole sequences are not hidden" in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("options, numbers", [
    (("--sum", "w.json", "--smoothing", "1/2"), 1),
    (("--histogram", "--gaps", "order"), 2),
    (("--count", "well", "--user-level"), 1),
    (("--count", "well", "--confidence", ".9", "--any-length"), 1),
    (("--count", "ill", "--initial", "any", "--missing", "?", "--states", "well,ill"), 1),
])  # fmt: skip
def test_from_a_table_to_an_estimate(options: tuple[str, ...], numbers: int) -> None:
    asked = run("query", "t.csv", *WHERE, *options, "--epsilon", 2, "--save", "p.json")
    assert asked.status == 0, asked.err
    assert os.stat("p.json").st_mode & 0o777 == 0o600
    done = run("release", "t.csv", "--plan", "p.json", "-o", "o.csv", "--record", "r.json",
               "--publish-scale")  # fmt: skip
    assert done.status == 0, done.err
    released = Path("o.csv").read_text(encoding="utf-8").splitlines()
    assert released[0] == "query,value,records"
    assert len(released) == numbers + 1
    assert all(re.fullmatch(rf"[a-z]+,-?[\d./]+,{len(CELLS)}", line) for line in released[1:])
    record = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert record["notice"].startswith("PUBLIC")
    assert "transition" not in json.dumps(record)
    for arguments in (("p.json",), ("p.json", "t.csv")):
        verified = run("verify", *arguments)
        assert verified.status == 0, verified.err
        assert "within epsilon 2" in verified.out
    by_plan, by_record = (
        run("estimate", "o.csv", *by, "--format", "json").data
        for by in (("--plan", "p.json"), ("--record", "r.json"))
    )
    assert by_plan == by_record
    assert by_plan["records"] == len(CELLS)
    assert len(by_plan["figures"]) == numbers
    assert all(f["low"] < f["estimate"] < f["high"] for f in by_plan["figures"])
    assert " of 30 records, by p.json\n" in run("estimate", "o.csv", "--plan", "p.json").out


@pytest.mark.usefixtures("folder")
def test_tables_that_are_refused() -> None:
    def fails(lines: list[str], *parts: str) -> None:
        name = write(Path(), "bad.csv", rows(*lines, header="who,week,state"))
        check_refused(run("query", name, *WHERE, *COUNT, "--model", "chain.json"), *parts)
        check_refused(run("release", name, "--plan", "given.json", "-o", "o.csv"), *parts)
        assert not Path("o.csv").exists()

    fails([*CELLS[:-5], "1,9,ill"], "irregular times", "--gaps order")
    fails([*CELLS, "1,6,well"], "one time twice", "data row 31")
    fails([*CELLS, "1,7,"], "missing in 1 row", "data row 31")
    fails([*CELLS, ",7,ill"], "missing in 1 row")
    fails([*CELLS, "1,7,wel"], "none of the states", "did you mean 'well'")
    fails([*CELLS, "1,x,well"], "no number, date or time")
    fails([], "no rows")
    different = write(Path(), "d.csv", rows(*CELLS, "1,7,ill", header="who,week,state"))
    refused = run("release", different, "--plan", "given.json", "-o", "o.csv")
    check_refused(refused, "sequences of 7 records", "--any-length")
    assert run("release", different, "--plan", "fitted.json", "-o", "o.csv").status == 0
    check_refused(run("verify", "given.json", different), "another query", status=1)
    other = run("verify", "fitted.json", different, "--other-prior")
    check_refused(other, "could not be proved to be at most epsilon", status=1)
    same = write(Path(), "e.csv", rows(*CELLS[:-6], header="who,week,state"))
    other = run("verify", "given.json", same, "--other-prior")
    assert (other.status, "ANOTHER model" in other.out) == (0, True), other


@pytest.mark.usefixtures("folder")
def test_options_that_are_refused() -> None:
    query, release = ("query", "t.csv", *WHERE), ("release", "t.csv", "--plan", "given.json", "-o")
    free = ("query", "--model", "chain.json", "--count", "ill", "--epsilon", 1)
    for arguments, *parts in (
        ((*query, "--count", "il", "--epsilon", 1), "did you mean 'ill'"),
        ((*query, "--epsilon", 1), "one of"), ((*query, *COUNT, "--mean"), "one of --count"),
        ((*query, "--mean", "--epsilon", 1), "no numbers"), (("query", "t.csv", *COUNT), "--state"),
        ((*query, *COUNT, "--mechanism", "windw"), "did you mean 'window'"),
        ((*query, *COUNT, "--mechanism", "all", "--save", "x.json"), "--save takes exactly one"),
        ((*query, *COUNT, "--save", "given.json"), "exists already"), (free, "length must be"),
        ((*query, *COUNT, "--save", "t.csv", "--force"), "the input itself"),
        ((*query, *COUNT, "--length", 6), "--length"), ((*free, "--length", 0), "length must be"),
        ((*query, *COUNT, "--model", "chain.json", "--smoothing", 1), "--smoothing"),
        ((*query, *COUNT, "--confidence", ".9", "--smoothing", 1), "--smoothing"),
        ((*free, "--length", 3, "--time", "week"), "--time: for a TABLE"),
        (("query", *COUNT, "--model", "w.json", "--length", 3), "chain has no"),
        ((*query, *COUNT, "--user-level", "--any-length"), "longest"),
        ((*release, "o.csv", "--keep", "who"), "--keep"), ((*release, "o.parquet"), "ends in .csv"),
        ((*release, "o.csv", "--min-scale", 3), "--min-scale"),
        ((*release, "o.csv", "--round"), "--round"),
        ((*release, "o.csv", "--seed", 1), "'test'"), ((*release, "t.csv", "--force"), "input"),
        ((*release, "o.csv", "--publish-scale"), "--rec"),
        ((*release, "o.csv", "--bounds", 3, 1), "bound"),
        (("verify", "given.json", "t.csv", "--prior", "w.json"), "--prior"),
        (("estimate", "t.csv", "--plan", "given.json"), "no column 'query'"),
        (("estimate", "t.csv", "--plan", "given.json", "--bins", 3), "--bins"),
        (("estimate", "t.csv", "--record", "given.json"), "no usable record"),
    ):  # fmt: skip
        check_refused(run(*arguments), *parts)
    assert sorted(p.name for p in Path().iterdir()) == [
        "chain.json", "fitted.json", "given.json", "t.csv", "w.json",
    ]  # fmt: skip
    data = json.loads(Path("given.json").read_text(encoding="utf-8"))
    write(Path(), "less.json", json.dumps(data | {"scale": data["scale"] * 0.99}))
    check_refused(run("verify", "less.json"), "above epsilon 1", status=1)
    seeded = run(*release, "test.csv", "--seed", 1, "--record", "r.json", "--bounds", 0, 30)
    assert seeded.status == 0
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["promise"] is None
    assert 0 <= float(Path("test.csv").read_text(encoding="utf-8").split(",")[3]) <= 30


@pytest.mark.usefixtures("folder")
def test_a_household_from_a_table() -> None:
    model = {"kind": "household", "states": ["well", "ill"], "counts": [".1", ".4", ".5"]}
    Path("home.json").write_text(json.dumps(model))
    Path("homes.csv").write_text("home,who,state\n1,1,ill\n1,2,well\n2,1,ill\n2,2,ill\n")
    columns = ("--sequence", "home", "--time", "who", "--state", "state")
    asked = ("query", "homes.csv", *columns, "--model", "home.json", "--count", "ill")
    assert run(*asked, "--epsilon", 1, "--save", "h.json").status == 0
    assert run("release", "homes.csv", "--plan", "h.json", "-o", "h.csv").status == 0
    assert run("verify", "h.json", "homes.csv").status == 0
    Path("none.csv").write_text("query,value,records\n")
    check_refused(run("estimate", "none.csv", "--plan", "h.json"), "it has none")


@pytest.mark.usefixtures("folder")
def test_what_may_be_a_decimal_comma_is_said() -> None:
    asked = ("query", "--model", "chain.json", "--length", 8, "--count", "ill", "--epsilon")
    assert "--epsilon 1,5 is the list 1 and 5" in run(*asked, "1,5").err
    assert "is the list" not in run(*asked, "0.1,5").err


@pytest.mark.usefixtures("folder")
def test_a_plan_knows_the_step_of_its_times() -> None:
    lines = Path("t.csv").read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines[1:]]
    for name, factor in (("thirds.csv", 3), ("moved.csv", 1)):
        moved = (f"{who},{factor * int(week) + 2},{state}" for who, week, state in cells)
        write(Path(), name, rows(*moved, header=lines[0]))
    for wrong in (
        ("release", "thirds.csv", "--plan", "given.json", "-o", "o.csv"),
        ("verify", "given.json", "thirds.csv"),
    ):
        check_refused(run(*wrong), "other steps than 1, which the plan is for")
    assert run("release", "moved.csv", "--plan", "given.json", "-o", "o.csv").status == 0


@pytest.mark.usefixtures("folder")
def test_several_answers_by_a_ledger() -> None:
    asked = ("query", "t.csv", *WHERE, "--model", "chain.json", "--ledger", "b.db")
    opened = run("ledger", "open", "b.db", "--dataset", "d", "t.csv", "--secret", "state",
                 "--budget", 2)  # fmt: skip
    assert opened.status == 0, opened.err
    for number, what in enumerate((("--count", "ill", "--epsilon", 1), ("--histogram",))):
        made = run(*asked, *what, "--save", f"{number}.json")
        assert made.status == 0, made.err
        price = run("ledger", "price", "b.db", "t.csv", "--plan", f"{number}.json")
        assert price.status == 0, price.err
        assert "fits" in price.out
        done = run("release", "t.csv", "--plan", f"{number}.json", "-o", f"{number}.csv",
                   "--ledger", "b.db")  # fmt: skip
        assert done.status == 0, done.err
        assert f"at most {number + 1}.000" in done.out
    assert "Epsilon is for this answer and all that the ledger has charged" in made.out
    assert "epsilon is for all answers charged with this one, and at most 2" in made.err
    again = run("release", "t.csv", "--plan", "0.json", "-o", "o.csv", "--ledger", "b.db")
    assert again.status == 1
    assert "over the budget 2; releases out: 2; nothing was charged" in again.err
    assert not Path("o.csv").exists()
    assert run("ledger", "verify", "b.db", "t.csv").status == 0
    assert "histogram of state" in run("ledger", "show", "b.db").out
    alone = run("release", "t.csv", "--plan", "1.json", "-o", "o.csv")
    assert "calibrated beside earlier answers" in alone.err
    check_refused(run(*asked, "--mean"), "states")
    for wrong, fault in (
        ((*asked, "--count", "ill"), "earlier answers leave too little"),
        (("query", "--model", "chain.json", "--length", 6, *COUNT, "--ledger", "b.db"),
         "--ledger is about tables"),
        ((*asked, "--histogram", "--gaps", "order"), "reads sequences otherwise"),
        (("query", "t.csv", "--state", "state", "--gaps", "order", *COUNT, "--ledger", "b.db"),
         "needs the column of times"),
        (("release", "t.csv", "--plan", "0.json", "-o", "test.csv", "--ledger", "b.db",
          "--seed", 1), "--ledger does not account for --seed"),
    ):  # fmt: skip
        check_refused(run(*wrong), fault)
