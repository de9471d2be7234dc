# SPDX-License-Identifier: Apache-2.0
"""``pufferfish estimate``: what it prints for people and for programs, and what it refuses."""

import csv
import dataclasses
import io
import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import pufferfish as pf
from cli_runner import check_refused, run, write
from pufferfish import paper
from pufferfish.cli.estimate import MOST_LINES
from pufferfish.estimate import Estimate
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.plan import Plan
from pufferfish.support import Lattice, Levels


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Student, rebuilt from its counts, and a saved plan of each kind."""
    home = tmp_path_factory.mktemp("estimate")
    paper.write_table("student", home / "student.csv")
    rows = ["s,x"]
    for secret, counts in (("a", (30, 20, 5, 5)), ("b", (10, 30, 10, 20))):
        rows += [f"{secret},{x}" for x, n in zip("pqrt", counts, strict=True) for _ in range(n)]
    write(home, "merge.csv", "\n".join([*rows, ""]))
    student = ("student.csv", "--secret", "higher", "--public", "romantic", "--epsilon", "0.1")
    merge = ("merge.csv", "--secret", "s", "--public", "x", "--epsilon", "0.1")
    for name, (table, *options) in {
        "noise": (*student, "--order", "no,yes"),
        "keep": (*student, "--mechanism", "channel", "--min-keep", "0.55"),
        "merging": (*merge, "--mechanism", "channel"),
    }.items():
        done = run("calibrate", home / table, *options, "--save", home / f"{name}.json")
        assert done.status == 0, done
        if name == "noise":
            done = run("release", home / table, "--plan", home / "noise.json", "-o",
                       home / "bounded.csv", "--round", "--bounds", "no", "yes")  # fmt: skip
            assert done.status == 0, done
        done = run("release", home / table, "--plan", home / f"{name}.json", "-o",
                   home / f"{name}.csv")  # fmt: skip
        assert done.status == 0, done
    return home


def estimated(folder: Path, name: str, *options: object, plan: str = "") -> tuple[object, ...]:
    plan_file = folder / f"{plan or name}.json"
    return ("estimate", folder / f"{name}.csv", "--plan", plan_file, *options)


def by_library(folder: Path, name: str, plan: str = "", **options: object) -> Estimate:
    return Plan.load(folder / f"{plan or name}.json").estimate(folder / f"{name}.csv", **options)


# --- for people ---


def test_noise_on_codes(folder: Path) -> None:
    done = run(*estimated(folder, "noise"))
    assert (done.status, done.err) == (0, "")
    heading, mechanism, target, *_ = done.out.splitlines()
    assert heading.endswith(f"noise.csv, column 'romantic': 649 rows, released by "
                            f"{folder / 'noise.json'}")  # fmt: skip
    assert re.fullmatch(
        r"mechanism exact, epsilon 0.1: discrete Laplace noise of scale [\d.]+", mechanism
    )
    assert "these rows as they were before the release" in target
    assert "for the noise of the release alone" in target
    assert "mean and variance are those of the codes no = 0, yes = 1" in done.out
    found = by_library(folder, "noise")
    lines: dict[str, list[str]] = {}
    for line in filter(None, done.out.splitlines()):
        lines.setdefault(line.split()[0], line.split()[1:])
    for label, figure in (
        ("no", found.entries[0]), ("yes", found.entries[1]), ("mean", found.mean),
    ):  # fmt: skip
        estimate, error, low, to, high = lines[label]
        assert float(estimate) == pytest.approx(figure.estimate, abs=0.001)
        assert float(error) == pytest.approx(figure.standard_error, abs=0.001)
        assert float(low) == pytest.approx(figure.interval[0], abs=0.001)
        assert float(high) == pytest.approx(figure.interval[1], abs=0.001)
        assert to == "to"


def test_options_of_the_release(folder: Path) -> None:
    options = ("--round", "--bounds", "no", "yes")
    done = run(*estimated(folder, "bounded", *options, plan="noise"))
    assert (done.status, done.err) == (0, "")
    assert "rounded, moved into the bounds no and yes" in done.out
    wrong = run(*estimated(folder, "bounded", plan="noise"))
    check_refused(wrong, "data row 1 of", "name of a level, as a release with --round and --bounds")
    assert "=" not in wrong.err.replace("column=", "")
    larger = run(*estimated(folder, "noise", "--min-scale", "50"))
    assert "noise of scale 50.0" in larger.out


def test_a_channel_that_can_be_inverted(folder: Path) -> None:
    done = run(*estimated(folder, "keep"))
    assert (done.status, done.err) == (0, "")
    assert "mechanism channel, epsilon 0.1: a channel from 2 to 2 levels" in done.out
    found = by_library(folder, "keep")
    assert f"condition number of the channel: {found.condition_number:.3g}" in done.out
    assert "mean" not in done.out.replace("mechanism", "")


def test_a_channel_that_merges_levels(folder: Path) -> None:
    found = by_library(folder, "merging")
    assert found.not_estimable
    done = run(*estimated(folder, "merging"))
    assert (done.status, done.err) == (0, "")
    assert f"the frequencies of {', '.join(found.not_estimable)} cannot be estimated" in done.out
    assert "--min-keep above 0.5" in done.out
    assert "condition number" not in done.out
    for entry in found.entries:
        label = entry.labels[0] if len(entry.labels) == 1 else f"{', '.join(entry.labels)} (their"
        assert f"\n{label}" in done.out


def merged_by_hand(folder: Path, rows: list[list[int]], name: str) -> None:
    plan = Plan.load(folder / "merging.json")
    levels = plan.support
    plan = dataclasses.replace(plan, applied=Channel.of(levels, levels, rows))
    (folder / f"{name}.json").unlink(missing_ok=True)
    plan.save(folder / f"{name}.json")


def test_sums_are_named(folder: Path) -> None:
    rows = [[6, 2, 1, 1], [6, 2, 1, 1], [1, 1, 6, 2], [1, 1, 2, 6]]
    merged_by_hand(folder, rows, "sums")
    done = run(*estimated(folder, "merging", plan="sums"))
    assert re.search(
        r"^p, q \(their sum\) +-?[\d.]+ +[\d.]+ +-?[\d.]+ to -?[\d.]+$", done.out, re.M
    )
    assert re.search(r"^r +-?[\d.]+ ", done.out, re.M)
    assert not re.search(r"^[pq] ", done.out, re.M)
    assert "the frequencies of p, q cannot be estimated one by one; only their sum can" in done.out
    lines = list(csv.DictReader(io.StringIO(
        run(*estimated(folder, "merging", "--format", "csv", plan="sums")).out
    )))  # fmt: skip
    assert [(line["figure"], line["levels"]) for line in lines] == [
        ("sum of frequencies", '["p", "q"]'), ("frequency", "r"), ("frequency", "t"),
        ("frequency", "p"), ("frequency", "q"), ("mean", ""), ("variance", ""),
    ]  # fmt: skip
    assert all(line["estimate"] == "" for line in lines[3:])


def test_an_ill_conditioned_channel(folder: Path) -> None:
    rows = [[251 if x == y else 250 for y in range(4)] for x in range(4)]
    merged_by_hand(folder, rows, "poor")
    done = run(*estimated(folder, "merging", plan="poor"))
    assert done.status == 0
    assert done.err.startswith("pufferfish: warning: the channel is ill-conditioned (condition")
    assert done.err.count("\n") == 1
    assert "ill-conditioned" not in done.out
    # A small table is printed as a whole, however uncertain.
    assert all(re.search(rf"^{name} +-?[\d.]+ ", done.out, re.M) for name in "pqrt")
    assert "4 of the 4 frequencies are too uncertain to say anything" in done.out
    assert "prints all of them" not in done.out
    data = run(*estimated(folder, "merging", "--format", "json", plan="poor")).data
    assert data["condition_number"] > 100
    assert any("ill-conditioned" in note for note in data["notes"])


def many(folder: Path, scale: float, steps: int) -> np.ndarray:
    plan = Plan.load(folder / "noise.json")
    support = Lattice(Fraction(1), 0, np.arange(steps, dtype=np.int64))
    rules = dataclasses.replace(plan.rules, order=None, public="x")
    noise = DiscreteLaplace(scale, Fraction(1))
    plan = dataclasses.replace(plan, support=support, rules=rules, applied=noise)
    plan.save(folder / "many.json", force=True)
    column = plan.release(np.repeat(np.arange(steps), 3))
    write(folder, "many.csv", "\n".join(["x", *map(str, column.tolist()), ""]))
    return column


def test_many_values_are_not_all_printed(folder: Path) -> None:
    many(folder, 1.0, 10_000)
    done = run(*estimated(folder, "many"))
    assert (done.status, done.err) == (0, "")
    assert len(done.out.splitlines()) < MOST_LINES + 25
    assert (
        f"the first {MOST_LINES} of 10,000 frequencies; --format csv or --format json" in done.out
    )
    assert len(re.findall("outside of what is possible", done.out)) == 1
    whole = list(
        csv.DictReader(io.StringIO(run(*estimated(folder, "many", "--format", "csv")).out))
    )
    assert len(whole) == 10_002


def test_frequencies_that_the_noise_hides_are_not_printed(folder: Path) -> None:
    many(folder, 40.0, 50)
    done = run(*estimated(folder, "many"))
    assert "frequency of" not in done.out
    assert "50 frequencies, of which 50 have a 95 % interval longer than 1; --format" in done.out
    assert re.search(r"^mean +[\d.]+ ", done.out, re.M)


# --- for programs ---


def test_levels_with_commas_in_a_sum(folder: Path) -> None:
    names = ("a, b", 'c "d"', "e", "ü")
    plan = Plan.load(folder / "merging.json")
    levels = Levels(names)
    rows = [[6, 2, 1, 1], [6, 2, 1, 1], [1, 1, 6, 2], [1, 1, 2, 6]]
    rules = dataclasses.replace(plan.rules, levels=names)
    plan = dataclasses.replace(
        plan, support=levels, rules=rules, applied=Channel.of(levels, levels, rows)
    )
    plan.save(folder / "commas.json", force=True)
    text = "\n".join(["x", *(['"a, b"', '"c ""d"""', "e", "ü"] * 9), ""])
    write(folder, "commas.csv", text)
    out = run(*estimated(folder, "commas", "--format", "csv")).out
    lines = list(csv.DictReader(io.StringIO(out)))
    assert json.loads(lines[0]["levels"]) == list(names[:2])
    assert [line["levels"] for line in lines[1:5]] == ["e", "ü", *names[:2]]


@pytest.mark.parametrize("name", ["noise", "keep", "merging"])
def test_json(folder: Path, name: str) -> None:
    done = run(*estimated(folder, name, "--format", "json"))
    assert (done.status, done.err) == (0, "")
    data, found = done.data, by_library(folder, name)
    assert data["released"]["rows"] == found.rows
    assert "rows" not in data  # once is enough
    assert {key: data.get(key, found.rows) for key in found.to_dict()} == found.to_dict()
    assert data["plan"]["mechanism"] == ("exact" if name == "noise" else "channel")
    assert (data["plan"]["scale"] is None) == (name != "noise")
    assert data["confidence"] == 0.95
    assert Plan.load(folder / f"{name}.json").digest not in done.out


def test_csv(folder: Path) -> None:
    done = run(*estimated(folder, "noise", "--format", "csv"))
    found = by_library(folder, "noise")
    lines = list(csv.DictReader(io.StringIO(done.out)))
    assert [line["figure"] for line in lines] == ["frequency"] * 2 + ["mean", "variance"]
    figures = [*found.entries, found.mean, found.variance]
    for line, figure in zip(lines, figures, strict=True):
        assert float(line["estimate"]) == figure.estimate
        assert float(line["standard_error"]) == figure.standard_error
        assert (float(line["low"]), float(line["high"])) == figure.interval
    merging = run(*estimated(folder, "merging", "--format", "csv"))
    assert merging.err.startswith("pufferfish: note: the channel merges levels")


# --- what is refused ---


def test_what_is_refused(folder: Path) -> None:
    check_refused(
        run("estimate", folder / "noise.csv"), "--plan FILE", "estimate.estimate_channel",
        "estimate_laplace",
    )  # fmt: skip
    check_refused(run("estimate"), "RELEASED")
    check_refused(
        run("estimate", folder / "nose.csv", "--plan", folder / "noise.json"), "'noise.csv'"
    )
    check_refused(
        run("estimate", folder / "noise.csv", "--plan", folder / "nose.json"), "did you mean"
    )
    check_refused(
        run("estimate", folder / "noise.csv", "--plan", folder / "student.csv"), "is no plan"
    )
    check_refused(run(*estimated(folder, "noise", "--column", "romantik")), "'romantic'")
    check_refused(run(*estimated(folder, "noise", "--format", "jsn")), "did you mean 'json'")
    check_refused(run(*estimated(folder, "noise", "--bonds", "0", "1")), "--bounds")
    check_refused(run(*estimated(folder, "noise", "--bounds", "0")), "--bounds")
    check_refused(run(*estimated(folder, "noise", "--bounds", "1", "0")), "below the upper one")
    check_refused(run(*estimated(folder, "noise", "--min-scale", "0")), "above 0")
    check_refused(run(*estimated(folder, "keep", "--round")), "--round is for numbers")
    check_refused(run(*estimated(folder, "keep", "--min-scale", "3")), "--min-scale")


def test_another_file_than_the_released_one(folder: Path) -> None:
    check_refused(run(*estimated(folder, "student", plan="noise")), "data row 1", "level")
    write(folder, "odd.csv", "romantic\nno\nyes\nsecret\n")
    done = run(*estimated(folder, "odd", plan="keep"))
    check_refused(done, "data row 3 of", "none of the released levels (no, yes)")
    assert "secret" not in done.err
    write(folder, "empty.csv", "romantic\nno\n\nyes\n")
    check_refused(run(*estimated(folder, "empty", plan="keep")), "data row 2 of", "is empty")
    write(folder, "none.csv", "romantic\n")
    check_refused(run(*estimated(folder, "none", plan="keep")), "nothing to estimate from")
    check_refused(run(*estimated(folder, "merging", plan="keep")), "no column 'romantic'")


def test_a_plan_without_columns(folder: Path) -> None:
    prior = write(
        folder, "prior.json",
        '{"secrets": {"a": {"0": ".52", "1": ".48"}, "b": {"0": ".4", "1": ".6"}}}',
    )  # fmt: skip
    done = run("calibrate", "--prior", prior, "--epsilon", "0.1", "--save", folder / "given.json")
    assert done.status == 0, done
    plan = pf.Plan.load(folder / "given.json")
    column = plan.release(np.repeat([0, 1], 50))
    write(folder, "given.csv", "\n".join(["any", *map(str, column.tolist()), ""]))
    assert run(*estimated(folder, "given", "--format", "json")).data["released"]["rows"] == 100
    two = "\n".join(["any,more", *(f"{value},0" for value in column.tolist()), ""])
    write(folder, "two.csv", two)
    check_refused(run(*estimated(folder, "two", plan="given")), "columns any, more", "--column")
    assert run(*estimated(folder, "two", "--column", "any", plan="given")).status == 0


def test_help() -> None:
    done = run("estimate", "--help")
    assert done.status == 0
    for word in ("--plan", "--column", "--bounds", "--round", "--min-scale", "--format", "Examples",
                 "analyst without", "costs no privacy"):  # fmt: skip
        assert word in " ".join(done.out.split())
    assert "estimate" in run("--help").out
