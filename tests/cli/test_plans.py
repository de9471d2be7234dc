# SPDX-License-Identifier: Apache-2.0
"""Plans on the command line: saved by calibrate, used by release, verify and estimate."""

import csv
import io
import json
import math
import re
from pathlib import Path

import pytest

import pufferfish as pf
from cli_runner import check_refused, rows, run, write
from pufferfish.cli.output import print_csv
from set_cases import set_plan

TABLE = rows("a,0,u", "a,1,v", "a,2,u", "b,1,v", "b,2,u", "b,3,v", "c,0,u", ",1,v", header="s,x,z")
OPTIONS = ("--secret", "s", "--public", "x", "--pair", "a", "b", "--exclude-secret", "c")
COLUMNS = ("--secret", "s", "--public", "x")


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
    assert saved.status == 0, saved.err
    return tmp_path


def edited(change: dict[str, object]) -> str:
    data = json.loads(Path("plan.json").read_text())
    Path("edited.json").write_text(json.dumps(data | change))
    return "edited.json"


@pytest.mark.usefixtures("folder")
def test_release_by_a_plan():
    outcome = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv")
    assert outcome.status == 0
    lines = Path("o.csv").read_text().splitlines()
    assert lines[0] == "x"
    assert len(lines) == 9
    assert all(re.fullmatch(r"-?\d+", line) for line in lines[1:])
    said = outcome.out.splitlines()
    assert len(said) <= 6
    assert said[0].startswith("o.csv: column x, 8 of 8 rows released, 2 outside the promise")
    assert said[1].startswith("exact at epsilon 0.5: discrete Laplace noise of scale ")
    assert "pufferfish verify plan.json TABLE" in outcome.out
    assert "public knowledge" in said[-1]
    assert "warning" in outcome.err
    Path("far.csv").write_text("s,x\na,9\nb,2\n")
    far = ("release", "far.csv", "--plan", "plan.json", "-o", "q.csv")
    check_refused(run(*far), "row 1", "clamp")
    clamped = run(*far, "--out-of-support", "clamp").out
    assert "2 of 2 rows released, 1 moved to the nearest value of the support" in clamped


def test_release_by_a_given_prior(folder: Path):
    write(folder, "u.csv", rows("a,0", "b,2", "b,-", "c,1"))
    check_refused(run("release", "u.csv", "--plan", "given.json", "-o", "o.csv"), "column")
    for secret in ((), ("--secret", "s")):
        options = ("--public", "x", "--missing", "-", *secret, "--save", "own.json", "--force")
        done = run("calibrate", "--prior", "prior.json", "--epsilon", "1", *options)
        assert done.status == 0, done.err
        outcome = run("release", "u.csv", "--plan", "own.json", "-o", "o.csv", "--force")
        assert outcome.status == 0, outcome.err
        assert "3 of 4 rows released, 1 without a value left out" in outcome.out
        assert ("1 outside the promise" in outcome.out) == bool(secret)
        assert "pufferfish verify own.json --prior FILE" in outcome.out


@pytest.mark.usefixtures("folder")
def test_kept_columns_take_the_certificate_away():
    outcome = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv", "--keep", "z")
    assert outcome.status == 0
    assert "warning" in outcome.err
    assert "no certificate: z may give the secret away" in outcome.out
    assert Path("o.csv").read_text().splitlines()[0] == "x,z"


# ------------------------------------------------------------------------------------------ verify


@pytest.mark.usefixtures("folder")
def test_verify():
    outcome = run("verify", "plan.json", "t.csv")
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    assert len(lines) <= 6
    assert lines[0] == "plan.json: verified under the prior that it was computed from"
    assert "within epsilon 0.5" in lines[1]
    assert run("verify", "given.json", "--prior", "prior.json").status == 0
    check_refused(run("verify", "given.json", "t.csv"), "--prior")


def test_verify_under_another_prior(folder: Path):
    write(folder, "near.csv", TABLE + "a,1,u\n")
    write(folder, "far.csv", rows("a,0", "a,0", "a,1", "b,2", "b,3", "b,3", "c,0"))
    for path in ("near.csv", "far.csv"):
        check_refused(run("verify", "plan.json", path), "--other-prior", status=1)
    assert run("verify", "plan.json", "far.csv", "--other-prior").status == 1
    wide = run("calibrate", "far.csv", *OPTIONS, "--epsilon", ".5", "--save", "wide.json")
    assert wide.status == 0
    outcome = run("verify", "wide.json", "near.csv", "--other-prior")
    assert outcome.status == 0
    assert "ANOTHER PRIOR than its own" in outcome.out


def test_a_plan_for_people_needs_their_column(folder: Path):
    lines = [f"{s},{x},p{k}" for k, (s, x) in enumerate([("a", 0), ("a", 1), ("b", 1), ("b", 2)])]
    write(folder, "u.csv", rows(*lines, *lines, header="s,x,id"))
    options = (*COLUMNS, "--unit", "id", "--epsilon", 1, "--save", "people.json")
    assert run("calibrate", "u.csv", *options).status == 0
    assert "all rows of a person (by id) together" in run("verify", "people.json", "u.csv").out
    check_refused(run("verify", "people.json", "t.csv"), "does not fit the plan", status=1)


# ---------------------------------------------------------------------------------------- estimate


@pytest.fixture
def released(folder: Path) -> Path:
    lines = [f"{s},{x}" for s, shift in (("a", 0), ("b", 1)) for x in range(shift, shift + 4)] * 100
    write(folder, "big.csv", rows(*lines))
    options = (*COLUMNS, "--epsilon", 2, "--save", "big.json")
    assert run("calibrate", "big.csv", *options).status == 0
    done = run("release", "big.csv", "--plan", "big.json", "-o", "out.csv", "--record", "r.json",
               "--publish-scale")  # fmt: skip
    assert done.status == 0, done.err
    return folder


@pytest.mark.usefixtures("released")
def test_estimates_for_people_and_programs():
    out = run("estimate", "out.csv", "--plan", "big.json").out
    assert "out.csv: 800 rows, released by big.json" in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert {"share", "mean", "variance"} <= set(lines)
    data = run("estimate", "out.csv", "--plan", "big.json", "--format", "json").data
    assert data["rows"] == 800
    mean, _, *rest = data["figures"]
    assert abs(mean["estimate"] - 2) < 6 * mean["standard_error"]
    shares = [f["estimate"] for f in rest if f["kind"] == "frequency"]
    assert sum(shares) == pytest.approx(1)
    assert list(mean) == ["kind", "label", "estimate", "standard_error", "low", "high"]
    assert [f["label"] for f in rest[:3]] == ["0.25", "0.5", "0.75"]
    done = run("estimate", "out.csv", "--plan", "big.json", "--format", "csv")
    found = list(csv.DictReader(done.out.splitlines()))
    assert [row["kind"] for row in found[:3]] == ["mean", "variance", "quantile"]
    assert float(found[0]["estimate"]) == mean["estimate"]


@pytest.mark.usefixtures("released")
def test_bins_and_the_simplex():
    estimate = ("estimate", "out.csv", "--plan", "big.json")
    for bins, want in (("2", ["0 to 2", "3 to 4"]), ("0, 1,5", ["0", "1 to 4"])):
        data = run(*estimate, "--bins", bins, "--format", "json").data
        assert [f["label"] for f in data["figures"] if f["kind"] == "bin"] == want
        lines = run(*estimate, "--bins", bins).out.splitlines()
        assert all(any(line.startswith(f"share of {name} ") for line in lines) for name in want)
    moved = run(*estimate, "--simplex").out
    assert "moved to the nearest ones that are not negative, and so biased; errors," in moved
    for wrong in ("x", "-1", "2.5", "3,2", "9,10"):
        check_refused(run(*estimate, "--bins", wrong), "bins")


def test_a_long_table_says_what_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for levels in (40, 41):
        lines = [
            f"{s},v{x}" for x in range(levels) for s in "ab" for _ in range(9 + (s == "a") * x)
        ]
        write(tmp_path, "t.csv", rows(*lines))
        calibrate = (
            "calibrate",
            "t.csv",
            *COLUMNS,
            "--epsilon",
            "0.2",
            "--save",
            "p.json",
            "--force",
        )
        assert run(*calibrate).status == 0
        assert run("release", "t.csv", "--plan", "p.json", "-o", "o.csv", "--force").status == 0
        shown = run("estimate", "o.csv", "--plan", "p.json").out
        assert shown.count("share of v") == 40
        assert ("\n... 1 more\n" in shown) == (levels > 40)
        assert ("--format csv prints all shares\n" in shown) == (levels > 40)


def test_a_quantile_that_is_sure_has_an_interval_of_one_value(folder: Path):
    write(folder, "sure.csv", rows(*[f"{s},{x}" for x in (0, *[1] * 20, 2) for s in "ab" * 99]))
    options = (*COLUMNS, "--epsilon", "1", "--best-for", "both", "--save", "sure.json")
    assert run("calibrate", folder / "sure.csv", *options).status == 0
    plan = ("--plan", "sure.json")
    release = ("release", "sure.csv", *plan, "-o", "sure-out.csv", "--allow-unchanged")
    assert run(*release).status == 0
    shown = run("estimate", "sure-out.csv", *plan).out
    assert re.search(r"^quantile 0\.5 +1 +0 +1 to 1$", shown, re.MULTILINE)
    assert re.search(r"^share of 1 +0\.90\d+ +0 +published as it is$", shown, re.MULTILINE)


def test_bins_stand_in_for_shares_that_are_lost_in_noise(folder: Path):
    lines = [f"{s},{x}" for x in range(40) for s in ("a", "b") for _ in range(1 + (s == "b") * x)]
    write(folder, "wide.csv", rows(*lines * 5))
    options = (*COLUMNS, "--epsilon", "1", "--save", "wide.json")
    assert run("calibrate", "wide.csv", *options).status == 0
    assert run("release", "wide.csv", "--plan", "wide.json", "-o", "o.csv").status == 0
    estimate = ("estimate", "o.csv", "--plan", "wide.json")
    out = run(*estimate, "-o", "e.csv").out
    assert "most single shares are below their standard errors; neighbouring values are tak" in out
    shown = [line for line in out.splitlines() if line.startswith("share of ")]
    assert 2 <= len(shown) < 20
    assert all(" to " in line.split("  ")[0] for line in shown)
    kinds = [row["kind"] for row in csv.DictReader(Path("e.csv").read_text().splitlines())]
    assert kinds.count("frequency") == 40


def test_noisy_counts_of_the_plan_are_combined_with_the_rows(folder: Path):
    lines = [f"{s},{x}" for s, shift in (("a", 0), ("b", 1)) for x in range(shift, shift + 4)] * 100
    write(folder, "big.csv", rows(*lines))
    write(folder, "few.csv", rows(*lines[:240]))
    declared = (*COLUMNS, "--pair", "a", "b", "--range", 0, 4, "--epsilon", 2)
    done = run("calibrate", "big.csv", *declared, "--publishable", ".5", "--save", "public.json")
    assert done.status == 0, done.err
    for name in ("big", "few"):
        done = run("release", f"{name}.csv", "--plan", "public.json", "-o", f"{name}-out.csv")
        assert done.status == 0, done.err
    data = run("estimate", "big-out.csv", "--plan", "public.json", "--format", "json").data
    note = next(note for note in data["notes"] if "noisy counts in the plan" in note)
    better, of = map(int, re.findall(r"better source for (\d+) of (\d+) figures", note)[0])
    assert 0 <= better <= of == 10
    mean = data["figures"][0]
    assert abs(mean["estimate"] - 2) < 6 * mean["standard_error"]
    assert list(mean) == ["kind", "label", "estimate", "standard_error", "low", "high"]
    assert f"note: {note}" in run("estimate", "big-out.csv", "--plan", "public.json").out
    few = run("estimate", "few-out.csv", "--plan", "public.json").out
    assert "of 800 rows other than these 240, and are not used" in few
    held = json.loads(Path("public.json").read_text())
    held["noisy"]["held_out"] = True
    Path("held.json").write_text(json.dumps(held))
    other = run("estimate", "big-out.csv", "--plan", "held.json")
    assert "are of 800 rows other than these 800, and are not used" in other.out, other.err


@pytest.mark.usefixtures("released")
def test_a_record_estimates_as_the_plan_does():
    options = ("--round", "--bounds", "0", "4")
    done = run("release", "big.csv", "--plan", "big.json", "-o", "out.csv", "--force", "--record",
               "r.json", "--publish-scale", *options)  # fmt: skip
    assert done.status == 0, done.err
    by_plan = run("estimate", "out.csv", "--plan", "big.json", *options, "--format", "csv")
    by_record = run("estimate", "out.csv", "--record", "r.json", "-o", "e.csv", "--format", "csv")
    assert by_record.status == 0, by_record.err
    assert by_plan.out == by_record.out == Path("e.csv").read_text()
    check_refused(run("estimate", "out.csv", "--record", "r.json", "-o", "e.csv"), "--force")
    check_refused(run("estimate", "out.csv", "--record", "r.json", "--round"), "record")
    silent = ("release", "big.csv", "--plan", "big.json", "-o", "o2.csv", "--record", "s.json")
    assert run(*silent).status == 0
    check_refused(run("estimate", "o2.csv", "--record", "s.json"), "--publish-scale")


@pytest.mark.usefixtures("released")
def test_what_a_channel_loses_is_named():
    """The cheapest channel publishes p for everybody."""
    Path("c.csv").write_text(rows(*["a,p"] * 40, *["b,r"] * 20))
    done = run(
        "calibrate", "c.csv", *COLUMNS, "--epsilon", ".1", "--cost", "hamming", "--save", "c.json"
    )
    assert "NOTHING OF THE COLUMN IS LEFT: 66.6 % of the rows stay as they are" in done.out
    assert run("release", "c.csv", "--plan", "c.json", "-o", "d.csv").status == 0
    assert set(Path("d.csv").read_text().split()[1:]) == {"p"}
    data = run("estimate", "d.csv", "--plan", "c.json", "--format", "json").data
    figures = data["figures"]
    assert [f["estimate"] for f in figures[:2]] == [None, None]
    lost = {f["label"] for f in figures[2:] if f["estimate"] is None}
    assert lost == {"p", "r"}
    assert "95 % interval" not in run("estimate", "d.csv", "--plan", "c.json").out
    assert any("cannot be estimated: p, r" in note for note in data["notes"])


def test_labels_and_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", rows(*["a,p", "a,q", "b,q", "b,r"] * 5))
    set_plan(pf.Prior.from_table("t.csv", secret="s", public="x")).save("plan.json")
    release = ("release", "t.csv", "--plan", "plan.json", "-o", "o.csv", "--force")
    both = run(*release, "--record", "r.json", "--publish-channel")
    assert both.status == 0
    assert "o.csv: column x (labels), column x (set), " in both.out
    assert "a channel from 3 to 4 sets of values" in both.out
    with Path("o.csv").open() as file:
        header, *released = csv.reader(file)
    assert header == ["x", "x (set)"]
    assert all(label in members or members == "{*}" for label, members in released)
    assert json.loads(Path("r.json").read_text())["set_column"] == "x (set)"
    labels = run(*release, "--labels-only")
    assert "o.csv: column x, 20 of 20" in labels.out
    assert Path("o.csv").read_text().startswith("x\n")
    assert "errors are larger" in " ".join(run("release", "--help").out.split())
    assert run("verify", "plan.json", "t.csv").status == 0
    write(tmp_path, "n.csv", TABLE)
    run("calibrate", "n.csv", *OPTIONS, "--epsilon", ".5", "--save", "noise.json")
    noise = ("release", "n.csv", "--plan", "noise.json", "-o", "q.csv", "--labels-only")
    check_refused(run(*noise), "--labels-only", "publish sets of values")
    # Whoever has the record estimates from the sets; from labels alone with larger errors.
    assert run(*release, "--record", "r.json", "--publish-channel").status == 0
    estimate = ("estimate", "o.csv", "--record", "r.json")
    by_sets = run(*estimate, "--format", "json").data
    assert "a channel from 3 to 4 sets of values" in run(*estimate).out
    plan = ("estimate", "o.csv", "--plan", "plan.json", "--format", "json")
    assert run(*plan).data == by_sets
    by_labels = run(*plan, "--labels-only").data
    for one, other in zip(by_sets["figures"][2:], by_labels["figures"][2:], strict=True):
        assert one["standard_error"] < other["standard_error"]
    assert run(*estimate, "--labels-only", "--format", "json").data == by_labels
    check_refused(run(*estimate, "--labels-only", "--round"), "--round", "record")
    Path("o.csv").write_text(Path("o.csv").read_text().replace('"{p, q}"', "{p}"))
    check_refused(run(*estimate), "no released set")
    assert run(*release, "--record", "r.json", "--publish-channel", "--labels-only").status == 0
    known = run(*estimate)  # by the record, which the plan is not
    assert known.status == 0
    assert "sets of values; estimates are from labels alone, with larger errors" in known.out
    check_refused(run(*plan), "no released set", "--labels-only")
    assert run(*plan, "--labels-only").data == run(*estimate, "--format", "json").data
    for name in ("e.parquet", "e.tsv", "e.csv.gz", "e"):
        check_refused(run(*estimate, "-o", name), name, ".csv")
        assert not Path(name).exists()
    assert run(*estimate, "-o", "e.CSV").status == 0


def test_a_secret_with_the_name_of_the_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", "v (set),v\n" + "a,p\na,q\nb,q\nb,r\n" * 5)
    set_plan(pf.Prior.from_table("t.csv", secret="v (set)", public="v")).save("plan.json")
    release = ("release", "t.csv", "--plan", "plan.json", "-o", "o.csv", "--record", "r.json")
    check_refused(run(*release), "'v (set)'", "--labels-only")
    assert not Path("o.csv").exists()
    assert run(*release, "--labels-only").status == 0
    assert Path("o.csv").read_text().startswith("v\n")


NUMBERS = rows(
    *[f"{s},{x}" for x in range(5) for s in ("a", "b") for _ in range(20 + 9 * (s == "b") * x)]
)
WARDS = rows(*["a,east"] * 90, *["a,west"] * 60, *["b,west"] * 75, *["b,north"] * 75)


@pytest.mark.parametrize(
    "table, purpose",
    [(WARDS, ()), (NUMBERS, ("both",)), (NUMBERS, ("mean",)), (NUMBERS, ("own.json",))],
)
@pytest.mark.parametrize("labels_only", [(), ("--labels-only",)])
def test_from_a_table_to_estimates_by_the_record_alone(
    table: str, purpose: tuple[str, ...], labels_only: tuple[str, ...], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", table)
    write(tmp_path, "own.json", json.dumps({str(x): [x, x**2, int(x == 2)] for x in range(5)}))
    asked = ("--best-for", *purpose) if purpose else ()
    plan = ("calibrate", "t.csv", *COLUMNS, "--epsilon", ".5", "--save", "p.json", *asked)
    assert run(*plan).status == 0
    assert run("verify", "p.json", "t.csv").status == 0
    release = ("release", "t.csv", "--plan", "p.json", "-o", "o.csv", "--record", "r.json",
               "--publish-channel", *labels_only)  # fmt: skip
    done = run(*release)
    if purpose == ("mean",) and labels_only:
        check_refused(done, "--labels-only", "publish sets of values")
        return
    assert done.status == 0, done.err
    assert "the record tells the channel, and so of the prior" in done.err
    if labels_only:
        assert re.search("error of a share .* from labels alone .*, .* from sets", done.err)
    data = run("estimate", "o.csv", "--record", "r.json", "--format", "json").data
    secrets_and_values = [line.split(",") for line in table.split()[1:]]
    values = [x for _, x in secrets_and_values]
    truth = {x: values.count(x) / len(values) for x in values}
    figures = {(f["kind"], f["label"]): f for f in data["figures"]}
    for x, share in truth.items():
        found = figures["frequency", x]
        assert abs(found["estimate"] - share) < 6 * found["standard_error"] + 1e-6
    if purpose:
        mean = sum(map(float, values)) / len(values)
        found = figures["mean", None]
        assert abs(found["estimate"] - mean) < 6 * found["standard_error"]


def test_csv_of_figures_is_guarded_against_formulas():
    text = io.StringIO()
    print_csv([{"levels": "=1+1", "estimate": -0.5, "high": math.inf}], text)
    assert text.getvalue() == "levels,estimate,high\n'=1+1,-0.5,inf\n"
