# SPDX-License-Identifier: Apache-2.0
"""The channel on the command line: its options and their errors, and from a CSV file and back."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_runner import Outcome, check_refused, rows, run, write
from pufferfish.cli import comparison, planwords
from pufferfish.cli.costfile import read_cost_file
from pufferfish.errors import InputError

COUNTS = {
    "flu": {"east": 60, "west": 30, "north": 10},
    "hiv": {"east": 20, "west": 30, "north": 50},
}
WARDS = rows(
    *(f"{s},{x}" for s, row in COUNTS.items() for x, n in row.items() for _ in range(n)),
    header="diagnosis,ward",
)
NUMBERS = rows("a,0", "a,0", "a,1", "a,2", "b,1", "b,2", "b,2", "b,0")
COLUMNS = ("--secret", "diagnosis", "--public", "ward")
W = ("calibrate", "wards.csv", *COLUMNS, "--epsilon", "0.5")
N = ("calibrate", "n.csv", "--secret", "s", "--public", "x", "--epsilon", "0.5")
R = ("release", "wards.csv", *COLUMNS, "--epsilon", "0.5", "-o")
PRIOR = {
    "secrets": {"a": {"p": ".5", "q": ".3", "r": ".2"}, "b": {"p": ".2", "q": ".3", "r": ".5"}}
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two tables, a prior and a cost file."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "wards.csv", WARDS)
    write(tmp_path, "n.csv", NUMBERS)
    write(tmp_path, "prior.json", json.dumps(PRIOR))
    write(tmp_path, "costs.csv", "cost,east,north,west\neast,0,3,.5\nnorth,3,0,1\nwest,0.50,1,0\n")
    return tmp_path


def results(*arguments: object) -> list[dict[str, Any]]:
    outcome = run(*arguments, "--format", "json")
    assert outcome.status == 0, outcome.err
    found: list[dict[str, Any]] = outcome.data["results"]
    return found


def the_plan(epsilon: str = "0.5", **options: Any) -> pf.Plan:
    prior = pf.Prior.from_table("wards.csv", secret="diagnosis", public="ward")
    return pf.calibrate(prior, epsilon, "channel", **options)


def plan_file(*options: object, name: str = "plan.json", start: tuple[str, ...] = W) -> Any:
    done = run(*start, *options, "--save", name, "--force")
    assert done.status == 0, done.err
    return json.loads(Path(name).read_text())


@pytest.mark.usefixtures("folder")
def test_levels_without_an_order_go_through_a_channel() -> None:
    (found,) = results(*W)
    plan = the_plan()
    assert (found["mechanism"], found["scale"], found["std"], found["mse"]) == (
        "channel", None, None, None,
    )  # fmt: skip
    assert (found["cost"], found["keep_rate"], found["loss"]) == (
        plan.cost, plan.keep_rate, plan.loss,
    )  # fmt: skip
    assert found["certified"] is True
    assert found["robust"] is False
    assert (found["reduction_vs_wasserstein"], found["reduction_vs_l1"]) == (None, None)
    for name in ("loss_at_95", "robustness_radius", "robustness_radius_at_double"):
        assert found[name] >= 0
    assert found["loss_at_95"] > 0.5  # some hundred rows are few


@pytest.mark.usefixtures("folder")
def test_the_table_for_people_shows_what_a_channel_has() -> None:
    out = run(*W).out
    header = next(line.split() for line in out.splitlines() if "mechanism" in line)
    assert {"epsilon", "mechanism", "kept", "cost", "loss"} <= set(header)
    assert not {"scale", "std", "mse"} & set(header)
    assert "wasserstein" not in out
    plan = the_plan()
    assert f"{int(1000 * (plan.keep_rate or 0)) / 10:.1f} %" in out
    for part in (
        "support: 3 levels without an order: east, north, west",
        "Kept: the expected share of values that stay; cost: the expected share of values that "
        "change.\n",
        "Loss at 95 %: ",
        "Robustness radius (total variation): 0 before",
    ):
        assert part in out, out
    assert "below" not in out


@pytest.mark.usefixtures("folder")
def test_noise_beside_a_channel() -> None:
    found = results(*N, "--mechanism", "all")
    assert [r["mechanism"] for r in found] == [
        "l1", "wasserstein", "relaxed", "one-sided", "exact", "channel",
    ]  # fmt: skip
    channel, exact = found[-1], found[-2]
    assert channel["scale"] is None
    assert channel["mse"] == pytest.approx(channel["cost"], rel=1e-9)  # squared is the default
    assert channel["mse"] < exact["mse"]
    assert exact["cost"] is exact["keep_rate"] is None
    assert isinstance(exact["reduction_vs_l1"], float)
    out = run(*N, "--mechanism", "all").out
    lines = [line.split() for line in out.splitlines() if line.strip().startswith("0.5 ")]
    assert len(lines) == 6
    assert lines[-1][:3] == ["0.5", "channel", "-"]
    assert "Radius at twice: " in out
    rows_found = list(csv.DictReader(io.StringIO(run(*N, "--mechanism", "all", "--format",
                                                     "csv").out)))  # fmt: skip
    assert rows_found[-1]["scale"] == ""
    assert float(rows_found[-1]["cost"]) == channel["cost"]
    assert rows_found[0]["cost"] == ""
    assert list(rows_found[0])[-7:] == [
        "cost", "keep_rate", "loss_at_95", "robustness_radius", "robustness_radius_at_double",
        "robust", "repair",
    ]  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_all_names_what_it_leaves_out_and_why() -> None:
    outcome = run(*W, "--mechanism", "all", "--format", "json")
    assert [r["mechanism"] for r in outcome.data["results"]] == ["channel"]
    note = "'all' leaves out l1, wasserstein, relaxed, one-sided, exact: each of them adds "
    said = [n for n in outcome.data["scenario"]["notes"] if n.startswith(note)]
    assert len(said) == 1
    assert "no order" in said[0]
    assert f"note: {note}" in run(*W, "--mechanism", "all").out
    assert f"note: {note}" in run(*W, "--mechanism", "all", "--format", "csv").err


@pytest.mark.usefixtures("folder")
def test_what_a_channel_cannot_do_does_not_hinder_all() -> None:
    # No channel that keeps so much is private at epsilon 0.1; at 9 there is one.
    options = (*N[:-1], "0.1,9", "--min-keep", "0.9")
    outcome = run(*options, "--mechanism", "all", "--format", "json")
    assert outcome.status == 0, outcome.err
    assert len(outcome.data["results"]) == 11
    notes = [n for n in outcome.data["scenario"]["notes"] if "leaves out channel at 0.1: " in n]
    assert len(notes) == 1
    check_refused(run(*W, "--mechanism", "all", "--min-keep", ".99"), "0.99", "epsilon")


@pytest.mark.usefixtures("folder")
def test_one_infeasible_epsilon_does_not_hinder_the_others() -> None:
    start = (*W[:-1], "0.1,0.5,5", "--min-keep", "0.9")
    outcome = run(*start, "--format", "json")
    assert outcome.status == 0, outcome.err
    assert [r["epsilon"] for r in outcome.data["results"]] == [5]
    notes = outcome.data["scenario"]["notes"]
    for epsilon in ("0.1", "0.5"):
        assert (
            sum(n.startswith(f"left out is channel at {epsilon}: no channel") for n in notes) == 1
        )
    out = run(*start).out
    assert "note: left out is channel at 0.5: no channel" in out
    assert "note: left out is channel at 0.5" in run(*start, "--format", "csv").err
    # In vain at every epsilon: an error, even where another mechanism has results.
    check_refused(run(*W[:-1], "0.1,0.2", "--min-keep", "0.9"), "0.9", "epsilon")
    number = (*N[:-1], "0.1,0.2", "--min-keep", "0.9", "--mechanism")
    check_refused(run(*number, "exact,channel"), "0.9", "epsilon")
    assert len(run(*number, "all", "--format", "json").data["results"]) == 10


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("mechanism", ["exact", "l1", "exact,channel", "all,relaxed"])
def test_noise_on_unordered_levels_is_refused_with_what_to_do(mechanism: str) -> None:
    for command in (W, R):
        more = ("o.csv",) if command is R else ()
        if command is R and "," in mechanism:
            continue
        check_refused(run(*command, *more, "--mechanism", mechanism), "no order", "--order",
                      "channel")  # fmt: skip
    assert not Path("o.csv").exists()


@pytest.mark.usefixtures("folder")
def test_costs_by_name() -> None:
    hamming = results(*W, "--cost", "hamming")[0]
    assert hamming == results(*W, "--cost", " Hamming ")[0] == results(*W)[0]
    assert hamming["cost"] == pytest.approx(1 - hamming["keep_rate"], rel=1e-9)
    channel = (*N, "--mechanism", "channel")
    squared, absolute = (results(*channel, "--cost", c)[0] for c in ("squared", "absolute"))
    assert results(*channel)[0] == squared
    assert squared["mse"] <= absolute["mse"] * (1 + 1e-9)
    assert "the expected absolute difference" in run(*channel, "--cost", "absolute").out
    check_refused(run(*W, "--cost", "squared"), "order")


@pytest.mark.usefixtures("folder")
def test_costs_from_a_file() -> None:
    matrix = {"east": {"east": "0", "north": "3", "west": "0.5"},
              "north": {"east": "3", "north": "0", "west": "1"},
              "west": {"east": "0.5", "north": "1", "west": "0"}}  # fmt: skip
    (found,) = results(*W, "--cost", "costs.csv")
    assert found["cost"] == the_plan(cost=matrix).cost
    out = run(*W, "--cost", "costs.csv").out
    assert "the expected cost by the file that was given" in out


@pytest.mark.usefixtures("folder")
def test_costs_of_numbers_are_found_by_value() -> None:
    text = "\ufeff;2;1.0; 0\r\n\r\n1;1;0;1\r\n0.0;4;1;0\r\n2e0;0;1;4\r\n"
    Path("c.csv").write_text(text, encoding="utf-8")
    channel = (*N, "--mechanism", "channel")
    assert results(*channel, "--cost", "c.csv")[0]["cost"] == results(*channel)[0]["cost"]


@pytest.mark.usefixtures("folder")
def test_names_in_a_cost_file_that_do_not_occur_are_said() -> None:
    text = "x,east,north,west,south\neast,0,1,1,1\nnorth,1,0,1,1\nwest,1,1,0,1\nsouth,1,1,1,0\n"
    Path("more.csv").write_text(text)
    outcome = run(*W, "--cost", "more.csv", "--format", "json")
    assert outcome.data["results"][0]["cost"] == results(*W)[0]["cost"]
    notes = [n for n in outcome.data["scenario"]["notes"] if "'south'" in n]
    assert len(notes) == 2
    assert notes[0].startswith("not used is the row 'south' of more.csv")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "text, parts",
    [
        ("", ["no costs", "first row"]),
        ("x,east,north,west\n", ["no costs"]),
        ("east\n1\n", ["no costs"]),
        ("x,east,north\neast,0,1\nnorth,1,0\nwest,1,1\n", ["no column", "'west'"]),
        ("x,east,north,west\neast,0,1,1\nnorth,1,0,1\n", ["no row", "'west'"]),
        ("x,east,north,west\neast,0,1,1\nnorht,1,0,1\nwest,1,1,0\n", ["no row", "'norht'"]),
        ("x,east,north,west\neast,0,1,1\neast,1,0,1\nwest,1,1,0\n", ["one row", "'east'"]),
        ("x,east,east,west\neast,0,1,1\nnorth,1,0,1\nwest,1,1,0\n", ["one column", "'east'"]),
        ("x,east,north,west\neast,0,1\nnorth,1,0,1\nwest,1,1,0\n", ["line 2", "'east'"]),
        ("x,east,north,west\neast,0,1,1,1\nnorth,1,0,1\nwest,1,1,0\n", ["line 2", "4 costs"]),
        ("x,east,north,west\neast,0,,1\nnorth,1,0,1\nwest,1,1,0\n", ["'north'", "missing"]),
        ("x,east,north,west\neast,0,-1,1\nnorth,1,0,1\nwest,1,1,0\n", ["'north'", "negative"]),
        ("x,east,north,west\neast,0,a,1\nnorth,1,0,1\nwest,1,1,0\n", ["'north'", "'a'"]),
        ("x,east,north,west\neast,0,inf,1\nnorth,1,0,1\nwest,1,1,0\n", ["'north'", "finite"]),
        ("x,east,,west\neast,0,1,1\nnorth,1,0,1\nwest,1,1,0\n", ["column without a name"]),
        ("x,east,north,west\n,0,1,1\nnorth,1,0,1\nwest,1,1,0\n", ["row without a name"]),
        ('x,east,north,west\n"east"x,0,1,1\nnorth,1,0,1\nwest,1,1,0\n', ["line 2"]),
    ],
)  # fmt: skip
def test_cost_files_that_do_not_fit(text: str, parts: list[str]) -> None:
    Path("c.csv").write_text(text)
    check_refused(run(*W, "--cost", "c.csv"), "c.csv", *parts)


def test_cost_files_that_cannot_be_read(folder: Path) -> None:
    write(folder, "latin.csv", "x,é\né,0\n".encode("latin-1"))
    check_refused(run(*W, "--cost", "latin.csv"), "latin.csv", "UTF-8")
    (folder / "sub").mkdir()
    check_refused(run(*W, "--cost", "sub"), "sub")
    with pytest.raises(InputError, match="no cost file none"):
        read_cost_file("none")


@pytest.mark.usefixtures("folder")
def test_numbers_that_a_cost_file_names_twice() -> None:
    Path("c.csv").write_text("x,0,1,1.0\n0,0,1,4\n1,1,0,1\n2,4,1,0\n")
    check_refused(run(*N, "--mechanism", "channel", "--cost", "c.csv"), "same number", "'1.0'")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command, parts",
    [
        ((*W, "--cost", "haming"), ["'haming'", "did you mean 'hamming'?", "CSV"]),
        ((*W, "--cost", "cost.csv"), ["cost file cost.csv", "did you mean 'costs.csv'?"]),
        ((*W, "--cost", "no/costs"), ["no/costs"]),
        ((*W, "--outputs", "fine"), ["--outputs", "fine:9"]),
        ((*W, "--outputs", "fine:0"), ["--outputs"]),
        ((*W, "--outputs", "3"), ["--outputs", "did you mean 'fine:3'?"]),
        ((*W, "--outputs", "fien:3"), ["did you mean 'fine:3'?"]),
        ((*W, "--outputs", "fine:3"), ["order"]),
        ((*W, "--unbiased"), ["order"]),
        ((*W, "--min-keep", "60"), ["--min-keep", "from 0 to 1", "did you mean '0.6'?"]),
        ((*N, "--mechanism", "channel", "--outputs", "fine:99999999"),
         ["more than 100,000", "ask for fewer, at most"]),
        ((*W, "--min-keep", "-1"), ["--min-keep"]),
        ((*W, "--min-keep", "most"), ["--min-keep", "'most'"]),
        ((*W, "--min-keep", "--force"), ["--min-keep needs a value"]),
        ((*W, "--min-keep", "0.9"), ["at least 0.9 of the time", "--min-keep"]),
        ((*N, "--cost", "hamming"), ["--cost is for the mechanism channel", "exact is computed",
                                     "--mechanism channel"]),
        ((*N, "--mechanism", "l1,exact", "--invariant", "--min-keep", ".5"),
         ["--invariant, --min-keep are for the mechanism channel", "l1, exact"]),
        ((*R, "o.csv", "--min-scale", "3"), ["--min-scale", "channel"]),
        ((*R, "o.csv", "--bounds", "0", "1"), ["--bounds", "levels"]),
        ((*R, "o.csv", "--round"), ["--round", "levels"]),
        ((*R, "costs.csv", "--cost", "costs.csv", "--force"), ["input itself"]),
        ((*W, "--cost", "costs.csv", "--save", "costs.csv", "--force"), ["input itself"]),
        ((*W, "--save", "p.json", "--mechanism", "all"), ["exactly one mechanism", "'all'"]),
    ],
)  # fmt: skip
def test_options_that_are_wrong(command: tuple[str, ...], parts: list[str]) -> None:
    check_refused(run(*command), *parts)
    assert not Path("o.csv").exists()


@pytest.mark.usefixtures("folder")
def test_a_share_just_above_1_is_no_percentage() -> None:
    done = run(*W, "--min-keep", "1.2")
    check_refused(done, "--min-keep must be from 0 to 1, but '1.2' was given")
    assert "did you mean" not in done.err


@pytest.mark.usefixtures("folder")
def test_channel_options_where_the_channel_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pufferfish.calibration.registry.MOST_VALUES_FOR_ALL", 2)
    outcome = run(*N, "--mechanism", "all", "--format", "json")
    assert len(outcome.data["results"]) == 5
    assert any("leaves out channel" in note for note in outcome.data["scenario"]["notes"])
    check_refused(run(*N, "--mechanism", "all", "--cost", "hamming"), "--cost", "left out", "long")
    assert len(results(*N, "--mechanism", "all,channel", "--cost", "hamming")) == 6


@pytest.mark.usefixtures("folder")
def test_side_conditions_and_finer_outputs() -> None:
    plain = results(*W)[0]
    kept = results(*W, "--min-keep", "0.6")[0]
    assert kept["cost"] >= plain["cost"]
    channel = pf.Plan.load("plan.json").channel if plan_file("--min-keep", "0.6") else None
    assert channel is not None
    assert min(channel.matrix[x, x] for x in range(3)) >= 0.6 - 1e-9
    out = run(*W, "--min-keep", "0.6", "--invariant").out
    assert "The channel is invariant and keeps each value with a chance of at least 0.6" in out
    number = (*N, "--mechanism", "channel")
    fine, coarse = results(*number, "--outputs", "fine:9")[0], results(*number)[0]
    assert fine["cost"] < coarse["cost"]
    assert "ever published" not in run(*number, "--outputs", "fine:9").out
    plan_file("--unbiased", start=number)
    unbiased = pf.Plan.load("plan.json").channel
    assert unbiased is not None
    means = unbiased.matrix @ [float(v) for v in unbiased.outputs.values]  # type: ignore[union-attr]
    assert means == pytest.approx([0, 1, 2], abs=1e-8)


def check_round_trip(*options: object) -> None:
    """Check that a channel from a CSV file is saved, proved again, and publishes levels."""
    data = plan_file(*options)
    assert data["scale"] is None
    done = run("verify", "plan.json", "wards.csv")
    assert done.status == 0, done.err
    assert re.search(
        "channel from 3 levels to 3 levels, loss at most 0[.0-9]*"
        "( for every prior of the region)?, within epsilon 0.5 ", done.out,
    ), done.out  # fmt: skip
    done = run("release", "wards.csv", "--plan", "plan.json", "-o", "o.csv", "--force")
    assert done.status == 0, done.err
    assert "mechanism channel, epsilon 0.5\n" in done.out
    assert "kept as they are: " in done.out
    assert "not proved again here" in done.out
    lines = Path("o.csv").read_text().splitlines()
    assert lines[0] == "ward"
    assert len(lines) == 201
    assert set(lines[1:]) <= {"east", "west", "north"}
    kept = sum(a == b.partition(",")[2] for a, b in zip(lines[1:], WARDS.splitlines()[1:],
                                                       strict=True)) / 200  # fmt: skip
    assert kept == pytest.approx(data["distortion"]["keep_rate"], abs=0.25)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "options",
    [(), ("--cost", "costs.csv"), ("--min-keep", "0.6"), ("--min-keep", "0.5", "--invariant"),
     ("--confidence", "0.95")],
)  # fmt: skip
def test_from_a_table_to_a_plan_and_a_release(options: tuple[str, ...]) -> None:
    check_round_trip(*options)


@pytest.mark.usefixtures("folder")
def test_a_release_with_the_options_of_calibrate() -> None:
    done = run(*R, "o.csv", "--min-keep", "0.6", "--cost", "costs.csv")
    assert done.status == 0, done.err
    assert "mechanism channel, epsilon 0.5, expected own cost " in done.out
    assert "certified loss at most 0.5" in done.out
    assert set(Path("o.csv").read_text().split()) == {"ward", "east", "west", "north"}
    for option in (("--cost", "hamming"), ("--outputs", "fine:2"), ("--invariant",),
                   ("--unbiased",), ("--min-keep", ".5"), ("--confidence", ".9"),
                   ("--tv-radius", ".1"), ("--missing-as-level",)):  # fmt: skip
        plan_file()
        outcome = run("release", "wards.csv", "--plan", "plan.json", "-o", "n.csv", *option)
        check_refused(outcome, option[0], "--plan")


@pytest.mark.usefixtures("folder")
def test_a_channel_of_a_given_prior() -> None:
    Path("l.csv").write_text(rows("a,p", "a,q", "b,r", "b,p"))
    start = ("calibrate", "--prior", "prior.json", "--epsilon", "0.5")
    assert plan_file(start=start)["mechanism"] == "channel"
    assert run("verify", "plan.json", "--prior", "prior.json").status == 0
    done = run("release", "l.csv", "--plan", "plan.json", "--public", "x", "-o", "o.csv")
    assert done.status == 0, done.err
    assert set(Path("o.csv").read_text().split()[1:]) <= {"p", "q", "r"}
    (found,) = results(*start)
    assert found["loss_at_95"] is None
    assert found["robustness_radius"] is not None
    assert "at 95 %" not in run(*start).out


def edit_channel(rows_of: Callable[[int, dict[int, int]], dict[int, int]]) -> None:
    """Edit the rows of the saved channel, and claim a loss that it does not have."""
    data = json.loads(Path("plan.json").read_text())
    for x, row in enumerate(data["channel"]["rows"]):
        edited = rows_of(x, {place: int(text, 16) for place, text in row})
        data["channel"]["rows"][x] = [[place, hex(v)] for place, v in sorted(edited.items()) if v]
    data["loss"] = 0.1
    Path("plan.json").write_text(json.dumps(data))


def check_edited_channel_is_refused() -> None:
    check_refused(run("verify", "plan.json", "wards.csv"), "loss of the channel",
                  "above epsilon 0.5", status=1)  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_an_edited_channel_is_judged_on_its_merits() -> None:
    plan_file()
    with pytest.raises(AssertionError):  # the plan as it was saved holds
        check_edited_channel_is_refused()
    edit_channel(lambda x, row: {x: 1})  # publishes everything as it is
    check_edited_channel_is_refused()
    plan_file("--min-keep", "0.6")
    edit_channel(lambda x, row: {y: v * (101 if x == y else 100) for y, v in row.items()})
    check_edited_channel_is_refused()
    plan_file("--min-keep", "0.6")
    edit_channel(lambda x, row: {y: 7 * v for y, v in row.items()})  # the same, other integers
    assert run("verify", "plan.json", "wards.csv").status == 0


@pytest.mark.usefixtures("folder")
def test_verify_codes_unordered_levels_as_the_plan_does() -> None:
    plan_file("--min-keep", "0.6")
    without = [line for line in WARDS.splitlines() if "west" not in line]
    Path("fewer.csv").write_text("\n".join(without) + "\n")
    check_refused(run("verify", "plan.json", "fewer.csv"), "--other-prior", status=1)
    # Judged by the plan's three levels, of which this table has two: a loss, not another support.
    outcome = run("verify", "plan.json", "fewer.csv", "--other-prior")
    if outcome.status:
        check_refused(outcome, "loss of the channel", status=1)
    else:
        assert "another prior than its own" in outcome.out
    Path("more.csv").write_text(WARDS + "flu,south\n")
    for more in ((), ("--other-prior",)):
        check_refused(run("verify", "plan.json", "more.csv", *more), "not fit the plan", status=1)


@pytest.mark.usefixtures("folder")
def test_verify_gives_levels_that_a_prior_file_lacks_no_mass() -> None:
    plan_file(start=("calibrate", "--prior", "prior.json", "--epsilon", "0.5", "--min-keep", ".5"))
    same = {"secrets": {"a": {"p": ".5", "q": ".5"}, "b": {"p": ".5", "q": ".5"}}}
    Path("other.json").write_text(json.dumps(same))
    check_refused(run("verify", "plan.json", "--prior", "other.json"), "--other-prior", status=1)
    assert run("verify", "plan.json", "--prior", "other.json", "--other-prior").status == 0
    same["secrets"]["a"] = {"p": ".5", "z": ".5"}
    Path("other.json").write_text(json.dumps(same))
    outcome = run("verify", "plan.json", "--prior", "other.json", "--other-prior")
    check_refused(outcome, "support", status=1)


@pytest.mark.usefixtures("folder")
def test_a_channel_that_changes_nothing() -> None:
    Path("same.csv").write_text(rows("a,p", "a,q", "b,p", "b,q"))
    start = ("--secret", "s", "--public", "x", "--epsilon", "0.5")
    found = results("calibrate", "same.csv", *start)[0]
    assert (found["cost"], found["keep_rate"], found["unchanged"]) == (0, 1, True)
    out = run("calibrate", "same.csv", *start).out
    assert "the channel changes nothing: the column would be PUBLISHED UNCHANGED" in out
    assert " 100 % " in out
    check_refused(run("release", "same.csv", *start, "-o", "o.csv"), "--allow-unchanged")
    done = run("release", "same.csv", *start, "-o", "o.csv", "--allow-unchanged")
    assert "NOTICE: the channel changes nothing: the column was PUBLISHED UNCHANGED" in done.out
    assert Counter(Path("o.csv").read_text().split()) == {"x": 1, "p": 2, "q": 2}


@pytest.mark.usefixtures("folder")
def test_a_channel_that_keeps_nearly_everything() -> None:
    start = ("calibrate", "wards.csv", *COLUMNS, "--epsilon")
    assert 0.9 < results(*start, "1.5")[0]["keep_rate"] < 0.999
    # To keep much is what a channel is for: the table shows it, and nothing is wrong with it.
    assert "NOTICE" not in run(*start, "1.5").out
    assert "warning" not in run(*start, "1.5", "--format", "json").err
    done = run("release", "wards.csv", *COLUMNS, "--epsilon", "1.5", "-o", "o.csv")
    assert "NOTICE" not in done.out
    lines = ["flu,east"] * 2000 + ["flu,west"] * 2 + ["hiv,east"] * 2000 + ["hiv,west"]
    Path("near.csv").write_text(rows(*lines, header="diagnosis,ward"))
    near = ("calibrate", "near.csv", *COLUMNS, "--epsilon", "0.5")
    assert 0.999 < results(*near)[0]["keep_rate"] < 1
    said = "at epsilon 0.5 the channel would publish more than 99.9 % of the values as they are"
    assert f"NOTICE: {said}" in run(*near).out
    assert f"warning: {said}" in run(*near, "--format", "json").err


@pytest.mark.usefixtures("folder")
def test_levels_that_a_channel_merges_are_named() -> None:
    start = (*W[:-1], "0.1")
    channel = the_plan("0.1").channel
    assert channel is not None
    assert [bool(any(column)) for column in channel.rows.T] == [True, False, True]
    assert "Never published by the channel at 0.1: north." in run(*start).out
    done = run("release", "wards.csv", *COLUMNS, "--epsilon", "0.1", "-o", "o.csv")
    assert "never published: north" in done.out
    assert "north" not in Path("o.csv").read_text()
    assert "ever published" not in run(*W).out
    many = run(*W[:-1], "0.1,0.11,0.12,0.13").out
    assert "Some values are never published by the channel at 0.1, 0.11, 0.12, 0.13." in many
    codes = WARDS.replace("east", "0").replace("north", "1").replace("west", "2")
    Path("codes.csv").write_text(codes)
    number = run("calibrate", "codes.csv", *start[2:], "--mechanism", "channel", "--cost",
                 "hamming").out  # fmt: skip
    assert "Never published by the channel at 0.1: 1 of the 3 values." in number


@pytest.mark.usefixtures("folder")
def test_a_channel_that_publishes_the_same_in_every_row() -> None:
    start = (*W, "--cost", "costs.csv")
    said = "the channel publishes 'west' in every row, so that nothing of the column is left"
    assert f"NOTICE: at epsilon 0.5 {said}" in run(*start).out
    assert f"warning: at epsilon 0.5 {said}" in run(*start, "--format", "json").err
    done = run(*R, "o.csv", "--cost", "costs.csv")
    assert "NOTICE: every row holds 'west': nothing of the column is left" in done.out
    assert Counter(Path("o.csv").read_text().split()) == {"ward": 1, "west": 200}
    number = run(*N[:-1], "1e-3", "--mechanism", "channel").out
    assert "publishes one and the same number in every row" in number


@pytest.mark.usefixtures("folder")
def test_missing_as_a_level() -> None:
    Path("m.csv").write_text(WARDS + "flu,\n" * 9 + "hiv,\n" * 4 + "hiv,?\n")
    options = (*COLUMNS, "--epsilon", "0.5", "--missing", "?", "--missing-as-level")
    outcome = run("calibrate", "m.csv", *options, "--format", "json", "--save", "plan.json")
    assert outcome.status == 0, outcome.err
    scenario = outcome.data["scenario"]
    assert scenario["support"]["levels"] == ["(missing)", "east", "north", "west"] or sorted(
        scenario["support"]["levels"]
    ) == ["(missing)", "east", "north", "west"]
    assert scenario["rows"]["used"] == 214
    assert run("verify", "plan.json", "m.csv").status == 0
    done = run("release", "m.csv", "--plan", "plan.json", "-o", "o.csv")
    assert done.status == 0, done.err
    assert "rows read 214, released 214, set aside 0" in done.out
    # A table without blanks is coded by the plan's levels all the same.
    outcome = run("verify", "plan.json", "wards.csv")
    check_refused(outcome, "--other-prior", status=1)
    outcome = run("verify", "plan.json", "wards.csv", "--other-prior")
    assert "support" not in outcome.err
    check_refused(
        run("calibrate", "--prior", "prior.json", "--epsilon", "1", "--missing-as-level"),
        "--missing-as-level", "TABLE",
    )  # fmt: skip
    check_refused(run("calibrate", "n.csv", "--secret", "s", "--public", "x", "--epsilon", "1",
                      "--missing-as-level"), "level")  # fmt: skip


@pytest.mark.parametrize("command", ["calibrate", "release"])
def test_help_names_the_options(command: str) -> None:
    text = run(command, "--help").out
    for option in ("--cost", "--outputs", "--invariant", "--unbiased", "--min-keep",
                   "--confidence", "--tv-radius", "--missing-as-level"):  # fmt: skip
        assert f"\n  {option}" in text
    assert "(the default for levels without an order)" in " ".join(text.split())


def test_outcome_is_strict(folder: Path) -> None:
    """A loss at 95 % may be infinite; JSON says so in a word."""
    Path("tiny.csv").write_text(rows("a,p", "a,q", "b,p", "b,r", "b,r", "a,r", "a,q", "a,q"))
    outcome: Outcome = run("calibrate", "tiny.csv", "--secret", "s", "--public", "x", "--epsilon",
                           "5", "--format", "json")  # fmt: skip
    assert outcome.status == 0, outcome.err
    (found,) = outcome.data["results"]
    assert found["loss_at_95"] == "inf" or found["loss_at_95"] > 1


@pytest.mark.parametrize("name", ["line\nbreak", "a\u2028b", "x\x85y", "a\x0cb"], ids=ascii)
def test_a_cost_file_may_name_any_level(name: str, tmp_path: Path) -> None:
    path = tmp_path / "cost.csv"
    path.write_text(f',"{name}",b\n"{name}",0,1\nb,1,0\n', encoding="utf-8", newline="")
    assert read_cost_file(str(path)).rows == {name: {name: 0, "b": 1}, "b": {name: 1, "b": 0}}


def shown(capsys: pytest.CaptureFixture[str], *epsilons: str, order: bool = False) -> str:
    """Return what is printed of the channels of the wards, or of ordered ones."""
    from pufferfish.cli.choice import Chosen
    from pufferfish.cli.comparison import check_shown, print_channels
    from pufferfish.cli.output import stdout_console
    from pufferfish.cli.results import compare

    prior = pf.Prior.from_table("wards.csv", secret="diagnosis", public="ward",
                                order="alphabetical" if order else None)  # fmt: skip
    names = ("exact", "channel") if order else ("channel",)
    found = compare(pf.Scenario(prior), epsilons, Chosen(names), {}).results
    check_shown(found, "table")
    print_channels(stdout_console(), found)
    return capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_the_channel_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in shown(capsys, "0.1").splitlines() if line]
    channel = the_plan("0.1").channel
    assert channel is not None
    assert " ".join(lines[0]) == (
        "Channel at epsilon 0.1: for each value the chance of each output."
    )
    assert lines[1] == ["value", "east", "north", "west"]
    for x, (name, row) in enumerate(zip(("east", "north", "west"), channel.matrix, strict=True)):
        assert lines[3 + x][0] == name
        for text, value in zip(lines[3 + x][1:], row, strict=True):
            assert float(text.lstrip("<>")) == pytest.approx(value, abs=1.01e-4)
            assert (text == "0") == (value == 0)
    both = shown(capsys, "0.1", "0.5", order=True)
    assert both.count("Channel at epsilon") == 2


@pytest.mark.parametrize(
    "part, whole, text",
    [(0, 7, "0"), (7, 7, "1"), (1, 3, "0.3333"), (1, 10**9, "<0.0001"), (1, 10**400, "<0.0001"),
     (10**9 - 1, 10**9, ">0.9999"), (10**30 - 1, 10**30, ">0.9999"), (1, 10**4, "0.0001")],
)  # fmt: skip
def test_a_chance_is_not_printed_as_none_or_all(part: int, whole: int, text: str) -> None:
    assert comparison._chance(part, whole) == text


@pytest.mark.usefixtures("folder")
def test_the_channel_as_json_values() -> None:
    channel = the_plan().channel
    assert channel is not None
    data = planwords.channel_to_dict(channel)
    assert data["inputs"] == data["outputs"] == ["east", "north", "west"]
    assert data["rows"] == channel.matrix.tolist()
    prior = pf.Prior.from_table("n.csv", secret="s", public="x")
    fine = pf.calibrate(prior, "0.5", "channel", outputs=1).channel
    assert fine is not None
    data = planwords.channel_to_dict(fine)
    assert (data["inputs"], data["outputs"]) == ([0, 1, 2], [0, 0.5, 1, 1.5, 2])
    assert [sum(row) for row in data["rows"]] == pytest.approx([1, 1, 1])
    assert len(data["rows"][0]) == 5


@pytest.mark.usefixtures("folder")
def test_channels_that_cannot_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from pufferfish.cli.results import Result

    noise = Result("1", pf.calibrate(pf.Prior.from_table("n.csv", secret="s", public="x"), 1), ())
    channel = Result("0.5", the_plan(), ())
    comparison.check_shown([noise, channel], "json")
    with pytest.raises(InputError, match="--show-channel is for the mechanism channel, but exact"):
        comparison.check_shown([noise], "table")
    with pytest.raises(InputError, match="csv was asked for"):
        comparison.check_shown([channel], "csv")
    monkeypatch.setattr(comparison, "MOST_SHOWN", 2)
    with pytest.raises(InputError, match="has 3 and 3; use --format json"):
        comparison.check_shown([noise, channel], "table")
    comparison.check_shown([channel], "json")


@pytest.mark.usefixtures("folder")
def test_a_plan_beside_others_is_judged_alone_and_says_so() -> None:
    prior = pf.Prior.from_table("n.csv", secret="s", public="x")
    first = pf.calibrate(prior, "0.2", "exact")
    said = "Judged is this release alone. The plan was calibrated to fit beside "
    for already, what in (([first], "the release that was"), ([first] * 2, "the 2 releases that")):
        pf.calibrate(prior, "1", "exact", already=already).save("beside.json", force=True)
        out = run("verify", "beside.json", "n.csv").out
        assert f"{said}{what}" in out
        assert "the joint loss of all of them was NOT judged." in out
    first.save("alone.json")
    assert "joint" not in run("verify", "alone.json", "n.csv").out


def check_cost_is_explained(columns: int) -> None:
    """Check that the cost is explained where it is shown, on a console of so many columns."""
    from rich.console import Console

    from pufferfish.cli.choice import Chosen
    from pufferfish.cli.results import compare

    scenario = pf.Scenario(pf.Prior.from_table("n.csv", secret="s", public="x"))
    found = compare(scenario, ["0.5"], Chosen(("exact", "channel")), {}).results
    console = Console(width=columns, file=io.StringIO(), force_terminal=True)
    hidden = comparison.print_results(console, scenario, found)
    lines = comparison.lines_below(scenario, found, hidden)
    assert ("cost" in hidden) == (columns < 90)
    assert any("cost:" in line for line in lines) == ("cost" not in hidden)
    assert any(line.startswith("Kept: the expected share of values that stay") for line in lines)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("columns", [50, 200])
def test_a_cost_that_is_not_shown_is_not_explained(columns: int) -> None:
    check_cost_is_explained(columns)


@pytest.mark.usefixtures("folder")
def test_show_channel_prints_it() -> None:
    plain = run(*W)
    shown = run(*W, "--show-channel")
    assert shown.status == 0, shown.err
    assert "Channel at epsilon 0.5: for each value the chance of each output." in shown.out
    assert "chance" not in plain.out
    (found,) = results(*W, "--show-channel")
    channel = the_plan().channel
    assert channel is not None
    assert found["channel"] == planwords.channel_to_dict(channel)
    assert "channel" not in results(*W)[0]
    both = results(*N, "--mechanism", "exact,channel", "--show-channel")
    assert ["channel" in r for r in both] == [False, True]
    check_refused(run(*N, "--show-channel"), "--show-channel is for the mechanism channel", "exact")
    check_refused(run(*W, "--show-channel", "--format", "csv"), "csv")
    fine = (*N, "--mechanism", "channel", "--outputs", "fine:20", "--show-channel")
    check_refused(run(*fine, "--save", "p.json"), "3 and 43", "--format json")
    assert not Path("p.json").exists()
    assert len(results(*fine)[0]["channel"]["outputs"]) == 43


@pytest.mark.usefixtures("folder")
def test_a_release_without_a_plan_says_that_estimates_need_one() -> None:
    said = "no plan was saved, and estimate needs one"
    assert said in run(*R, "o.csv").err
    plan_file()
    assert said not in run("release", "wards.csv", "--plan", "plan.json", "-o", "p.csv").err
    for command in ("calibrate", "release"):
        text = " ".join(run(command, "--help").out.split())
        assert ("--show-channel" in text) == (command == "calibrate")
        assert ("least noise, or the cheapest channel" in text) == (command == "calibrate")
        assert ("of this scale; not for a channel" in text) == (command == "release")
