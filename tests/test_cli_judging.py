# SPDX-License-Identifier: Apache-2.0
"""What commands say where the table, the plan or the prior is not the one that was meant."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_runner import Outcome, check_refused, rows, run, run_process, strict_json, write
from pufferfish.cli import released
from pufferfish.errors import InputError
from pufferfish.release.csvtext import check_apart

COLUMNS = ("--secret", "s", "--public", "x")
LEVELS = rows(*["A,Low"] * 6, *["A,High"] * 3, "A,Medium", *["B,High"] * 6, *["B,Medium"] * 4)
NUMBERS = rows("A,0", "A,0", "A,1", "A,2", "B,1", "B,2", "B,2", "B,0")
#: Two levels that a text file would show alike.
FORMULAS = rows(*["A,=a+b"] * 9, "A,'=a+b", "B,=a+b", *["B,'=a+b"] * 9)
GIVEN = {"a": {"u": ".5", "v": ".3", "(missing)": ".2"},
         "b": {"u": ".2", "v": ".4", "(missing)": ".4"}}  # fmt: skip


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables and their plans, which take a while."""
    folder = tmp_path_factory.mktemp("plans")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, text in (("l", LEVELS), ("n", NUMBERS), ("f", FORMULAS)):
            write(folder, f"{name}.csv", text)
            save(f"{name}.csv", f"{name}.json")
    write(folder, "given.json", json.dumps({"secrets": GIVEN}))
    return folder


@pytest.fixture
def folder(tmp_path: Path, plans: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in, with the same files."""
    shutil.copytree(plans, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(table: str, plan: str, *options: str, epsilon: str = "0.5") -> None:
    done = run("calibrate", table, *COLUMNS, "--epsilon", epsilon, "--save", plan, *options)
    assert done.status == 0, done.err


# --- verify ---


@pytest.mark.parametrize(
    "plan, text, part",
    [
        ("l", rows("A,Low", "B,1"), "does not fit column 'x'"),  # neither levels nor numbers
        ("l", rows("A,", "A,Low", "B,"), "the secret 'B' of t.csv has no row"),
        ("l", rows("A,Low", "A,Huge", "B,Huge"), "it lacks 'Huge'"),
        ("n", rows("A,1", "A,?", "B,?"), "mixes numbers with other text"),
        ("n", rows("A,1", "A,inf", "B,2"), "holds a number that"),
    ],
)
def test_a_table_that_does_not_fit_is_a_failed_check(
    folder: Path, plan: str, text: str, part: str
) -> None:
    write(folder, "t.csv", text)
    for more in ((), ("--other-prior",)):
        done = run("verify", f"{plan}.json", "t.csv", *more)
        check_refused(done, "the table does not fit the plan: ", part, status=1)
        assert "--" not in done.err  # verify has none of the options that would help


@pytest.mark.parametrize(
    "text, part", [(rows("A,Low", header="s,z"), "no column 'x'"), ("s,x\n", "no rows")]
)
def test_a_table_that_cannot_be_read_is_wrong_input(folder: Path, text: str, part: str) -> None:
    write(folder, "t.csv", text)
    check_refused(run("verify", "l.json", "t.csv"), part)


@pytest.mark.usefixtures("folder")
def test_a_region_of_confidence_needs_the_table() -> None:
    save("l.csv", "sure.json", "--confidence", "0.9")
    Path("prior.json").write_text(json.dumps({"secrets": {"A": {"Low": 1}, "B": {"High": 1}}}))
    done = run("verify", "sure.json", "--prior", "prior.json")
    check_refused(done, "a region of 90 % confidence", "verify it with the TABLE")
    assert "Prior." not in done.err
    assert "tv_radius" not in done.err


@pytest.mark.usefixtures("folder")
def test_a_plan_that_hides_its_table_is_found_out() -> None:
    data = json.loads(Path("l.json").read_text())
    assert data["from_rows"] is True
    Path("edited.json").write_text(json.dumps(data | {"from_rows": False}))
    said = "depends on every row of the table that it was calibrated on: keep it private"
    assert said in run("verify", "edited.json", "l.csv").out


# --- calibrate ---


@pytest.mark.usefixtures("folder")
def test_what_the_repair_added_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    start = ("calibrate", "l.csv", *COLUMNS, "--epsilon", "0.5")
    said = "The cost of the channel at 0.5 is within 0.0013 of the least possible"

    def results(repair: float) -> tuple[Any, str]:
        plan = pf.Plan.with_sensitivity

        def repaired(self: pf.Plan, scenario: pf.Scenario) -> pf.Plan:
            found = plan(self, scenario)
            assert found.distortion is not None
            return replace(found, distortion=replace(found.distortion, repair=repair))

        with monkeypatch.context() as patch:
            patch.setattr(pf.Plan, "with_sensitivity", repaired)
            return run(*start, "--format", "json").data["results"][0], run(*start).out

    for repair, shown in ((0.00124, True), (1e-10, False)):
        result, out = results(repair)
        assert result["repair"] == repair
        assert (said in out) == shown
    assert run(*start, "--format", "csv").out.splitlines()[0].endswith(",repair")
    noise = run("calibrate", "n.csv", *COLUMNS, "--epsilon", "0.5", "--format", "json")
    assert noise.data["results"][0]["repair"] is None


@pytest.mark.usefixtures("folder")
def test_warnings_of_a_scenario_are_always_a_list() -> None:
    def warnings(*arguments: str) -> list[str]:
        found: list[str] = run("calibrate", *arguments, "--format", "json").data["scenario"][
            "warnings"
        ]
        return found

    assert warnings("--prior", "given.json", "--epsilon", "0.2") == []
    (said,) = warnings("--prior", "given.json", "--epsilon", "5")
    assert "PUBLISHED UNCHANGED" in said
    Path("one.csv").write_text(rows("A,0", "A,1", "B,1"))
    assert "single row" in warnings("one.csv", *COLUMNS, "--epsilon", "1")[0]


@pytest.mark.usefixtures("folder")
def test_notes_are_in_the_words_of_the_command_line() -> None:
    start = ("calibrate", "l.csv", *COLUMNS, "--epsilon", "0.5", "--mechanism", "all")
    notes = run(*start, "--format", "json").data["scenario"]["notes"]
    (note,) = (n for n in notes if n.startswith("'all' leaves out"))
    assert note.startswith("'all' leaves out l1, wasserstein, relaxed, one-sided, exact: each of ")
    assert "--order V1,V2,..." in note
    assert "order=" not in note


@pytest.mark.parametrize("end", [("--save", "two.json"), None])
@pytest.mark.usefixtures("folder")
def test_one_and_the_same_epsilon_twice_is_perhaps_a_decimal(end: tuple[str, ...] | None) -> None:
    start = ("calibrate", "l.csv") if end else ("release", "l.csv", "-o", "o.csv")
    done = run(*start, *COLUMNS, "--epsilon", "1,1", *(end or ()))
    check_refused(done, "exactly one epsilon", "1 twice", "write 1.1")
    assert not Path("two.json").exists()
    assert not Path("o.csv").exists()


# --- release ---


@pytest.mark.parametrize(
    "cells, told",
    [
        (["Hihg"], "; it is 'Hihg' (did you mean 'High'?); the levels are High, Low, Medium"),
        (["Zebra", "Zebra"], "; it is 'Zebra'; the levels are High, Low, Medium"),
        (["Jane Doe"], "none of the levels; the levels are High, Low, Medium"),  # of one row only
        (["z" * 50] * 2, "none of the levels; the levels are High, Low, Medium"),
    ],
)
def test_a_level_that_the_plan_lacks_is_named(folder: Path, cells: list[str], told: str) -> None:
    write(folder, "t.csv", rows("A,Low", *(f"B,{cell}" for cell in cells)))
    done = run("release", "t.csv", "--plan", "l.json", "-o", "o.csv")
    check_refused(done, "data row 2 of t.csv", told)
    if "it is" not in told:
        assert cells[0] not in done.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("order", [(), ("--order", "Low,Medium,High")])
def test_bounds_are_not_for_a_channel_of_levels(order: tuple[str, ...]) -> None:
    done = run("release", "l.csv", *COLUMNS, *order, "--mechanism", "channel", "--epsilon", "0.5",
               "-o", "o.csv", "--bounds", "High", "Low")  # fmt: skip
    check_refused(done, "--bounds is for numbers, but this channel publishes levels")


def test_missing_as_a_level_of_a_given_prior(folder: Path) -> None:
    write(folder, "m.csv", rows("a,u", "b,v", "a,", "b,NA"))
    assert run("calibrate", "--prior", "given.json", "--epsilon", "0.2", "--save", "g").status == 0
    missing = ("--public", "x", "--missing", "NA", "--missing-as-level", "-o", "o.csv", "--force")
    for start in (("--plan", "g"), ("--prior", "given.json", "--epsilon", "0.2")):
        done = run("release", "m.csv", *start, *missing)
        assert "rows read 4, released 4, set aside 0" in done.out, done.err
        without = run(
            "release", "m.csv", *start, *(m for m in missing if m != "--missing-as-level")
        )
        assert "rows read 4, released 2, set aside 2" in without.out, without.err
    check_refused(run("release", "l.csv", "--plan", "l.json", "--missing-as-level", "-o", "p.csv"),
                  "--missing-as-level cannot be given with --plan")  # fmt: skip


def check_nothing_is_taken_from_the_plan(done: Outcome) -> None:
    """Check that a release prints what its rows say of the channel, and not what its file says."""
    assert done.status == 0, done.err
    assert not re.search("cost|invariant|12.3 %", done.out)
    assert "mechanism channel, epsilon 0.5\n" in done.out


@pytest.mark.usefixtures("folder")
def test_figures_of_a_plan_file_are_not_printed_as_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.loads(Path("l.json").read_text())
    data["distortion"] |= {"keep_rate": 0.123, "cost": 0.5, "conditions": ["invariant"]}
    Path("edited.json").write_text(json.dumps(data))
    start = ("release", "l.csv", "-o", "o.csv", "--force")
    check_nothing_is_taken_from_the_plan(run(*start, "--plan", "edited.json"))
    plan = pf.Plan.load("l.json")
    fresh = run(*start, *COLUMNS, "--epsilon", "0.5", "--min-keep", ".5").out
    assert re.search("epsilon 0.5, expected hamming cost 0[.][0-9]+, --min-keep 0.5\n", fresh)
    share = re.search(
        "released rows kept as they are: ([.0-9]+) %", run(*start, "--plan", "l.json").out
    )
    assert share is not None
    assert plan.keep_rate is not None
    assert float(share[1]) == pytest.approx(100 * plan.keep_rate, abs=0.1)
    # The mutant that trusts the file.
    monkeypatch.setattr(released, "_notices", lambda p, report: [released._channel(p, False)])
    with pytest.raises(AssertionError):
        check_nothing_is_taken_from_the_plan(run(*start, "--plan", "edited.json"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("moved", [(), ("--round",), ("--bounds", "0", "1")])
def test_costs_are_those_before_rounding_and_bounds(moved: tuple[str, ...]) -> None:
    done = run("release", "n.csv", *COLUMNS, "--epsilon", "0.5", "--mechanism", "channel", "-o",
               "o.csv", *moved)  # fmt: skip
    assert ("expected squared cost before rounding and bounds 0" in done.out) == bool(moved)
    assert "kept as they are" in done.out


@pytest.mark.usefixtures("folder")
def test_a_column_that_can_be_read_back_is_called_that() -> None:
    Path("u.csv").write_text(rows("A,u", "A,v", "B,u", "B,v"))
    save("u.csv", "u.json")
    plan = pf.Plan.load("u.json")
    assert plan.channel is not None
    swap = pf.Channel.of(plan.channel.inputs, plan.channel.outputs, [[0, 1], [1, 0]])
    replace(plan, applied=swap).save("swap.json")
    start = ("release", "u.csv", "-o", "o.csv", "--force", "--allow-unchanged", "--plan")
    said = "NOTICE: every value was replaced by one of its own: the column can be read back"
    done = run(*start, "swap.json")
    assert said in done.out
    assert "PUBLISHED UNCHANGED" not in done.out
    done = run(*start, "u.json")
    assert said not in done.out
    assert "PUBLISHED UNCHANGED" in done.out
    # A file that claims to keep everything is not believed.
    data = json.loads(Path("l.json").read_text())
    data["distortion"]["keep_rate"] = 1.0
    Path("liar.json").write_text(json.dumps(data))
    done = run("release", "l.csv", "-o", "o.csv", "--force", "--plan", "liar.json")
    assert done.status == 0
    assert "NOTICE" not in done.out


def test_levels_that_a_text_file_shows_alike(folder: Path) -> None:
    plan = ("--plan", "f.json")
    for more in ((), ("--ledger", "b.db")):
        if more:
            assert run("ledger", "open", "b.db", "--secret", "s", "--budget", "1").status == 0
        done = run("release", "f.csv", *plan, "-o", "o.csv", *more)
        check_refused(done, "text files show the levels \"'=a+b\" and '=a+b' alike", ".parquet")
        assert not (folder / "o.csv").exists()
    assert "0 releases" in run("ledger", "show", "b.db").out
    assert run("release", "f.csv", *plan, "-o", "o.parquet").status == 0
    done = run("estimate", "o.parquet", *plan, "--format", "json")
    assert done.status == 0, done.err
    import pyarrow.parquet as pq

    published = pq.read_table("o.parquet").column("x").to_pylist()
    by_hand = pf.Plan.load("f.json").estimate(published)
    assert done.data["frequencies"] == by_hand.to_dict()["frequencies"]
    write(folder, "o.csv", rows("=a+b", "'=a+b", header="x"))
    check_refused(run("estimate", "o.csv", *plan), "alike")


def test_levels_that_a_text_file_shows_apart() -> None:
    check_apart(["=a", "a", "'a", "-1", "'-1"])
    with pytest.raises(InputError, match="alike"):
        check_apart(["'@x", "y", "@x"])


# --- all of them ---


def without_pandas() -> bool:
    """Whether commands run without pandas, whose import takes longer than most of them."""
    commands: list[list[str]] = [
        ["calibrate", "l.csv", *COLUMNS, "--epsilon", "0.5", "--save", "q.json", "--force"],
        ["verify", "l.json", "l.csv"],
        ["ledger", "open", "books.db", "--secret", "s", "--budget", "2"],
        ["ledger", "price", "books.db", "l.csv", "--plan", "l.json"],
        ["release", "l.csv", "--plan", "l.json", "-o", "o.csv", "--ledger", "books.db"],
        ["release", "n.csv", "--plan", "n.json", "-o", "p.csv"],
        ["release", "n.csv", "--plan", "n.json", "-o", "p.parquet"],
        ["estimate", "o.csv", "--plan", "l.json"],
        ["estimate", "p.csv", "--plan", "n.json"],
    ]
    code = (
        "import json, sys\n"
        "from pufferfish.cli import main\n"
        "found = []\n"
        "sys.stdout, out = sys.stderr, sys.stdout\n"
        f"for command in {commands!r}:\n"
        "    found.append([main(command), 'pandas' in sys.modules])\n"
        "json.dump(found, out)\n"
    )
    done = run_process(code=code)
    assert done.status == 0, done.err
    found = strict_json(done.out)
    assert [status for status, _ in found] == [0] * len(commands), done.err
    return not any(loaded for _, loaded in found)


@pytest.mark.usefixtures("folder")
def test_no_command_loads_pandas() -> None:
    assert without_pandas()


@pytest.mark.usefixtures("folder")
def test_ledger_verify_counts_in_words() -> None:
    assert run("ledger", "open", "b.db", "--secret", "s", "--budget", "2").status == 0
    for k, said in ((1, "1 joint loss computed"), (2, "2 joint losses computed")):
        done = run("release", "n.csv", "--plan", "n.json", "--ledger", "b.db", "-o", f"{k}.csv")
        assert done.status == 0, done.err
        assert f"b.db: {said} again; all as recorded" in run("ledger", "verify", "b.db").out


@pytest.mark.usefixtures("folder")
def test_no_words_of_python_in_refusals() -> None:
    assert run("calibrate", "--prior", "given.json", "--epsilon", "0.2", "--save", "g").status == 0
    Path("m.csv").write_text(rows("a,u,1", "b,v,2", header="s,x,z"))
    start = ("release", "m.csv", "--plan", "g", "--public", "x", "-o", "o.csv")
    done = run(*start, "--keep", "z")
    check_refused(done, "give --secret COL")
    assert "with_columns" not in done.err
    assert run("ledger", "open", "b.db", "--secret", "s", "--budget", "1").status == 0
    done = run(*start, "--ledger", "b.db")
    check_refused(done, "give --secret COL")
    assert "with_columns" not in done.err
    first = run("release", "l.csv", "--plan", "l.json", "--ledger", "b.db", "-o", "a.csv")
    assert first.status == 0, first.err
    Path("l2.csv").write_text(LEVELS + "B,High\n")
    save("l2.csv", "l2.json", epsilon="0.1")
    done = run("release", "l2.csv", "--plan", "l2.json", "--ledger", "b.db", "-o", "b.csv")
    check_refused(done, "--new-table")
    assert "new_table" not in done.err
