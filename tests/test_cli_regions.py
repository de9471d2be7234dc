# SPDX-License-Identifier: Apache-2.0
"""Priors that are only estimated, on the command line: regions, the loss at 95 %, the radius."""

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_runner import check_refused, rows, run, write
from pufferfish.cli import comparison

COLUMNS = ("--secret", "s", "--public", "x")
LINES = ["a,0"] * 40 + ["a,1"] * 25 + ["a,2"] * 15 + ["b,0"] * 20 + ["b,1"] * 25 + ["b,2"] * 45
T = ("calibrate", "t.csv", *COLUMNS, "--epsilon", "0.5")
P = ("calibrate", "--prior", "p.json", "--epsilon", "0.5")
PRIOR = {
    "secrets": {"a": {"0": ".5", "1": ".3", "2": ".2"}, "b": {"0": ".2", "1": ".3", "2": ".5"}}
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table and a prior."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", rows(*LINES))
    write(tmp_path, "p.json", json.dumps(PRIOR))
    return tmp_path


def data_of(*arguments: object) -> Any:
    outcome = run(*arguments, "--format", "json")
    assert outcome.status == 0, outcome.err
    return outcome.data


@pytest.mark.usefixtures("folder")
def test_confidence_is_that_of_the_library() -> None:
    data = data_of(*T, "--confidence", "0.95", "--mechanism", "all")
    assert data["scenario"]["regions"] == [{"confidence": "0.95"}]
    assert [r["mechanism"] for r in data["results"]] == ["exact", "channel"]
    note = "'all' leaves out l1, wasserstein, relaxed, one-sided: cannot honour a region"
    assert any(n.startswith(note) for n in data["scenario"]["notes"])
    prior = pf.Prior.from_table("t.csv", secret="s", public="x", confidence="0.95")
    for result in data["results"]:
        plan = pf.calibrate(prior, "0.5", result["mechanism"])
        assert (result["scale"], result["cost"]) == (plan.scale, plan.cost)
        assert result["robust"] is result["certified"] is True
        assert result["loss"] <= 0.5
        assert result["reduction_vs_l1"] is result["reduction_vs_wasserstein"] is None
        assert result["loss_at_95"] <= 0.5 * (1 + 1e-9)
    plain = data_of(*T)
    assert plain["scenario"]["regions"] is None
    assert plain["results"][0]["scale"] < data["results"][0]["scale"]
    assert plain["results"][0]["loss_at_95"] > 0.5
    assert plain["results"][0]["robust"] is False


@pytest.mark.usefixtures("folder")
def test_the_words_of_a_region() -> None:
    out = run(*T, "--confidence", "0.95").out
    assert "region of the prior: Clopper-Pearson intervals" in out
    assert "to be within epsilon for every prior of the region (proved by" in out
    assert "Loss at 95 %" not in out
    out = run(*T, "--tv-radius", "0.01").out
    assert "region of the prior: total-variation balls of radius 0.01" in out
    assert "to be within epsilon for every prior of the region (proved by" in out
    plain = run(*T).out
    assert "region" not in plain
    assert "Loss at 95 %: " in plain


@pytest.mark.usefixtures("folder")
def test_a_radius_for_tables_and_priors() -> None:
    for start in (T, P):
        data = data_of(*start, "--tv-radius", "0.01")
        assert data["scenario"]["regions"] == [{"tv_radius": "0.01"}]
        (robust,) = data["results"]
        (plain,) = data_of(*start)["results"]
        assert robust["scale"] > plain["scale"]
        assert robust["robustness_radius"] == pytest.approx(0.01, abs=1e-6)
        assert plain["robustness_radius"] == pytest.approx(0, abs=1e-6)
    two = ("--prior", "p.json")
    regions = data_of(*P, *two, "--tv-radius", "1/8")["scenario"]["regions"]
    assert regions == [{"tv_radius": "0.125"}] * 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command, parts",
    [
        ((*P, "--confidence", ".95"), ["--confidence", "TABLE", "--tv-radius R"]),
        ((*T, "--confidence", "95"), ["confidence", "above 0 and below 1", "95 % is 0.95"]),
        ((*T, "--confidence", "1"), ["confidence"]),
        ((*T, "--confidence", "high"), ["confidence", "'high'"]),
        ((*T, "--tv-radius", "2"), ["radius", "from 0 to 1"]),
        ((*P, "--tv-radius", "-1"), ["radius", "from 0 to 1"]),
        ((*T, "--tv-radius", "--force"), ["--tv-radius needs a value"]),
        ((*T, "--confidence", ".9", "--tv-radius", ".1"), ["not both"]),
        ((*P, "--confidence", ".9", "--tv-radius", ".1"), ["not both"]),
        ((*T, "--confidence", ".9", "--mechanism", "relaxed"),
         ["relaxed cannot honour a region (--confidence or --tv-radius)", "exact, channel"]),
        ((*T, "--confidence", ".9", "--mechanism", "exact,l1"), ["l1 cannot honour"]),
        (("release", "t.csv", "--prior", "p.json", "--public", "x", "--epsilon", "1", "-o",
          "o.csv", "--confidence", ".9"), ["--confidence", "--tv-radius R"]),
    ],
)  # fmt: skip
def test_regions_that_are_none(command: tuple[str, ...], parts: list[str]) -> None:
    check_refused(run(*command), *parts)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", [("--confidence", "0.95"), ("--tv-radius", "0.02")])
@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_a_robust_plan_there_and_back(option: tuple[str, str], mechanism: str) -> None:
    saved = run(*T, *option, "--mechanism", mechanism, "--save", "plan.json")
    assert saved.status == 0, saved.err
    done = run("verify", "plan.json", "t.csv")
    assert done.status == 0, done.err
    assert re.search("loss at most [.0-9]+ for every prior of the region, within", done.out)
    assert pf.Plan.load("plan.json").regions[0].describe() in done.out  # type: ignore[union-attr]
    done = run("release", "t.csv", "--plan", "plan.json", "-o", "o.csv")
    assert done.status == 0, done.err
    assert len(Path("o.csv").read_text().splitlines()) == len(LINES) + 1
    done = run("release", "t.csv", *COLUMNS, "--epsilon", "0.5", *option, "--mechanism", mechanism,
               "-o", "n.csv")  # fmt: skip
    assert re.search(r"certified loss at most [.0-9]+ for every prior of the region", done.out)


def check_robust_scale_is_needed() -> None:
    """Check that the scale of the plain plan is refused under the region of the robust one."""
    plain = data_of(*T)["results"][0]["scale"]
    assert run(*T, "--confidence", "0.95", "--save", "plan.json", "--force").status == 0
    data = json.loads(Path("plan.json").read_text())
    data["scale"] = plain
    Path("plan.json").write_text(json.dumps(data))
    check_refused(run("verify", "plan.json", "t.csv"), "some prior of the region",
                  "above epsilon 0.5", status=1)  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_verify_judges_a_robust_plan_for_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    check_robust_scale_is_needed()
    monkeypatch.setattr("pufferfish.judge._rules", lambda plan, scenario: (None,))
    with pytest.raises(AssertionError):  # the mutant that forgets the region
        check_robust_scale_is_needed()


@pytest.mark.usefixtures("folder")
def test_one_result_gets_a_sentence_and_many_a_column() -> None:
    found = data_of(*T)["results"][0]
    one = run(*T).out
    shown = comparison.rounded_up(found["loss_at_95"], 4)
    assert f"Loss at 95 %: {shown}, the loss if" in one
    many = run(*T, "--mechanism", "all").out
    assert "Loss at 95 %: the loss if" in many
    assert sum(shown in line for line in many.splitlines()) >= 1
    assert "Robustness radius: the prior may be wrong by " in many
    assert "--format json has each" in many
    few = run(*T, "--mechanism", "l1,exact").out
    assert re.search(r"twice epsilon: l1 at 0\.5 [.0-9]+ and [.0-9]+; exact at 0\.5 0 and", few)


@pytest.mark.usefixtures("folder")
def test_an_infinite_loss_at_95_is_said_and_explained() -> None:
    # With these few rows loss(0) is within epsilon, but a level may be missing for one secret.
    Path("u.csv").write_text(rows(*["a,0", "a,1", "b,0", "b,1"] * 2, "a,2", "b,2"))
    start = ("calibrate", "u.csv", *COLUMNS, "--epsilon", "1")
    found = data_of(*start)["results"][0]
    assert found["unchanged"] is True
    assert found["loss_at_95"] > 1
    Path("v.csv").write_text(rows("a,0", "a,1", "b,0", "b,1", "c,2", "a,1", "b,1"))
    start = ("calibrate", "v.csv", *COLUMNS, "--epsilon", "1", "--pair", "a", "b")
    found = data_of(*start)["results"][0]
    assert found["loss_at_95"] == "inf"
    out = run(*start).out
    assert "Loss at 95 %: inf" in out
    assert "too few to show" in out
    row = next(csv.DictReader(io.StringIO(run(*start, "--format", "csv").out)))
    assert float(row["loss_at_95"]) == math.inf


@pytest.mark.parametrize(
    "value, text",
    [(0.0, "0"), (1e-14, "0"), (1e-5, "less than 0.001"), (0.0999999, "0.099"), (1.0, "1"),
     (0.25, "0.25")],
)  # fmt: skip
def test_a_radius_is_cut_off(value: float, text: str) -> None:
    assert comparison._radius(value) == text
