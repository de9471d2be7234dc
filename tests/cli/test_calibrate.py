# SPDX-License-Identifier: Apache-2.0
"""What `calibrate` prints: for people at 80 columns, as JSON and as CSV."""

import csv
import io
import json
import math
import os
import re
import struct
import sys
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish as pf
from cli_runner import COMMAND, check_refused, rows, run, write
from pufferfish.cli.output import jsonable
from pufferfish.numbers import rounded_up
from pufferfish.report import at_most, share

MECHANISMS = ("l1", "wasserstein", "relaxed", "one-sided", "exact", "channel")


@pytest.fixture
def student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The Student table, rebuilt from its counts."""
    from pufferfish import paper

    monkeypatch.chdir(tmp_path)
    paper.write_table("student", "student.csv")
    return "student.csv"


def options(epsilon: str = "0.1", mechanism: str = "all") -> tuple[object, ...]:
    return (
        "calibrate", "student.csv", "--secret", "higher", "--public", "romantic", "--order",
        "no,yes", "--epsilon", epsilon, "--mechanism", mechanism,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ for people


def lines_at_80(text: str) -> list[str]:
    """The lines of a terminal of 80 columns."""
    return [part for line in text.splitlines() for part in (textwrap.wrap(line, 80) or [""])]


@pytest.mark.usefixtures("student")
def test_a_custodian_reads_at_most_25_lines():
    out = run(*options()).out
    lines = out.splitlines()
    assert len(lines_at_80(out)) <= 25
    table = [line for line in lines if line.split()[:1] and line.split()[0] in MECHANISMS]
    assert [line.split()[0] for line in table] == [*MECHANISMS, "channel"]
    assert [line[:16] for line in table[-2:]] == ["channel (kept)  ", "channel (both)  "]
    assert max(map(len, table)) <= 80
    assert lines[0] == "student.csv: 649 rows"
    assert lines[1] == "hidden: higher, rows no: 69, yes: 580"
    assert "published: romantic" in lines[2]
    assert "no = 0, yes = 1" in lines[2]
    assert "1.5744572" in out  # at least eight digits, rounded up
    assert "\x1b" not in out
    said = lines[lines.index(table[-1]) + 2 :]
    assert said[0] == "Proved: each loss is within epsilon 0.1, if these 649 rows are all there is."
    loss = r"the loss may be as large as 0\.2\d\d with channel \(\w+\) \(95 % confidence\)\."
    assert re.match(f"If they are a sample, {loss} This command makes a plan that holds", said[1])
    assert said[2].startswith("  pufferfish calibrate student.csv --secret higher ")
    assert said[2].endswith("--epsilon 0.1 --confidence 0.95")
    lost = "l1, wasserstein, relaxed, one-sided"
    assert f"Little or nothing is left with {lost}." in said
    assert any("The plan is private" in line for line in said)
    again = run(*said[2].split()[1:])
    assert "within epsilon 0.1 with 95 % confidence." in again.out


@pytest.mark.usefixtures("student")
def test_explain_prints_all_that_is_known():
    out = run(*options(), "--explain").out
    for part in (
        "loss 0.0156498", "mse 199.83", "cost 0.34535", "robustness_radius 0.",
        "proved by ball arithmetic",
    ):  # fmt: skip
        assert part in out, part


@pytest.mark.usefixtures("student")
def test_several_epsilons_stand_side_by_side():
    out = run(*options("0.1,1/3")).out
    assert max(len(line) for line in out.splitlines() if line.strip().startswith("1/3 ")) <= 80
    assert "Proved: each loss is within its epsilon, if" in out
    assert re.search(r"as large as 0.\d+ with [\w() -]+ at 1/3 \(95 % confidence\)", out)
    repeated = run(*options("0.1"), "--epsilon", "1/3", "--mechanism", "l1").out
    table = [line.split()[:2] for line in repeated.splitlines()]
    assert ["0.1", "exact"] in table
    assert ["1/3", "exact"] in table


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.usefixtures("student")
def test_no_number_and_no_name_is_broken_on_a_terminal(columns: int):
    import fcntl
    import pty
    import termios

    process, descriptor = pty.fork()
    if process == 0:
        environment = os.environ | {"TERM": "xterm", "COLUMNS": str(columns)}
        os.execve(sys.executable, [*COMMAND, *map(str, options())], environment)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    pieces = []
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux says so when the other end has closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(descriptor)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(pieces).decode()).replace("\r", "")
    for part in ("wasserstein ", "3.3907227", "84.3 %", "65.4 % (63.1 %)"):
        assert part in seen
    lines = seen.splitlines()
    if columns == 80:
        assert sum(-(-len(line) // 80) or 1 for line in lines) <= 25
        # Only the command to be copied is longer.
        assert [line[:11] for line in lines if len(line) > 80] == ["  pufferfis"]


def prior_file(folder: Path, secrets: Any, name: str = "prior.json", pairs: Any = None) -> Path:
    data = {"secrets": secrets} | ({} if pairs is None else {"pairs": pairs})
    return write(folder, name, json.dumps(data))


def test_a_given_prior_is_no_sample_and_its_plan_not_of_a_table(tmp_path: Path):
    path = prior_file(tmp_path, {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}})
    out = run("calibrate", "--prior", path, "--epsilon", ".1").out
    assert "if the given prior is the true one" in out
    assert "sample" not in out
    assert "private" not in out
    assert "Averages survive, single values do not: the noise is " in out


# ------------------------------------------------------------------------------------- programs


@pytest.mark.usefixtures("student")
def test_json_holds_the_results_of_the_library():
    data = run(*options("0.1,0.5,1/3"), "--format", "json").data
    scenario, results = data["scenario"], data["results"]
    prior = pf.Prior.from_table(
        "student.csv", secret="higher", public="romantic", order=["no", "yes"]
    )
    expected = [
        pf.calibrate(prior, e, m, best_for=best_for)  # type: ignore[arg-type]  # any name
        for e in ("0.1", "0.5", "1/3")
        for m, best_for in (*((m, None) for m in MECHANISMS), ("channel", "both"))
    ]
    assert len(results) == len(expected)
    for result, plan in zip(results, expected, strict=True):
        same = ["epsilon", "mechanism", "scale", "loss", "mse", "cost", "keep_rate", "unchanged",
                "objective", "objective_bound"]  # fmt: skip
        assert {k: result[k] for k in same} == {k: getattr(plan, k) for k in same}
        assert result["certified"] is True
        assert result["loss"] <= result["epsilon"]
        assert result["robust"] is False
        risk: Any = plan.with_sensitivity(pf.Scenario(prior)).sensitivity
        assert result["loss_at_95"] == risk.loss_at_95
        assert result["robustness_radius"] == risk.radius
        if plan.scale is not None:
            saved = 100 * (1 - plan.scale * plan.epsilon)
            assert result["reduction_vs_wasserstein"] == pytest.approx(saved, abs=1e-9)
    assert scenario["rows"] == {
        "read": 649, "used": 649, "set_aside": 0, "by_secret": {"no": 69, "yes": 580},
    }  # fmt: skip
    assert scenario["coding"] == {"no": 0, "yes": 1}
    assert scenario["support"]["kind"] == "ordered levels"
    assert scenario["pairs"] == [["no", "yes"]]
    assert (scenario["adversaries"], scenario["region"]) == (1, None)
    assert scenario["missing"] == [{"text": "", "cells": 0}]
    assert "sha256" not in json.dumps(data)  # the digest is private


@pytest.mark.usefixtures("student")
def test_the_facts_of_the_verdict_stand_in_the_json():
    done = run(*options(), "--format", "json")
    verdict, results = done.data["verdict"], done.data["results"]
    assert verdict["certified"] is verdict["private"] is verdict["survives"] is True
    assert verdict["if_a_sample"] == max(r["loss_at_95"] for r in results)
    assert verdict["command_for_a_sample"].endswith("--epsilon 0.1 --confidence 0.95")
    lost = [r["mechanism"] for r in results if not r["survives"]]
    assert lost == ["l1", "wasserstein", "relaxed", "one-sided"]
    assert "Little or nothing is left with" in done.err
    exact = results[4]
    spread = math.sqrt(239 * 410) / 649
    assert exact["spread"] == pytest.approx(spread)
    assert exact["noise_to_spread"] == pytest.approx(exact["std"] / spread)
    assert exact["keep_rate_of_a_constant"] == pytest.approx(410 / 649)
    assert exact["error_of_share"] == pytest.approx(exact["error_of_mean"])


@pytest.mark.usefixtures("student")
def test_csv():
    found = list(csv.DictReader(io.StringIO(run(*options(), "--format", "csv").out)))
    results = run(*options(), "--format", "json").data["results"]
    for row, result in zip(found, results, strict=True):
        assert row["scale"] == ("" if result["scale"] is None else str(result["scale"]))
        assert float(row["loss"]) == result["loss"]
        assert row["certified"] == "true"


@given(st.floats(1e-6, 1e6), st.floats(0, 1))
def test_a_loss_within_epsilon_is_shown_within_epsilon(epsilon: float, part: float):
    value = epsilon * part
    assert Fraction(at_most(value, Fraction(epsilon))) <= Fraction(epsilon)
    assert Fraction(at_most(value, Fraction(epsilon))) >= Fraction(value)


def test_digits_promise_no_more_than_is_true():
    assert Fraction(at_most(0.5000001, Fraction(1, 2))) > Fraction(1, 2)
    assert at_most(1 / 3, Fraction(1, 3)) == at_most(Fraction(1, 3), Fraction(1, 3)) == "1/3"
    assert share(0.65499999) == "65.4 %"
    assert (share(0.9999999), share(1)) == (">99.9 %", "100 %")
    assert rounded_up(1.00000001, 8) == "1.0000001"


def test_jsonable():
    value = {"a": (1.5, math.inf, -math.inf), 1: None, "c": [True], "d": Fraction(1, 3)}
    assert jsonable(value) == {"a": [1.5, "inf", "-inf"], "1": None, "c": [True], "d": "1/3"}


# ------------------------------------------------------------------------------------- scenarios


def test_several_adversaries(tmp_path: Path):
    one = prior_file(tmp_path, {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}}, "1.json")
    two = prior_file(tmp_path, {"b": {"2": "1"}, "a": {"0": "1"}}, "2.json")
    more = ("--epsilon", "1", "--mechanism", "wasserstein", "--format", "json")
    assert run("calibrate", "--prior", one, *more).scales["wasserstein"] == 1
    both = run("calibrate", "--prior", one, "--prior", two, *more)
    assert both.scales["wasserstein"] == 2
    assert both.data["scenario"]["adversaries"] == 2
    out = run("calibrate", "--prior", one, "--prior", two, "--epsilon", 1).out
    assert f"{one} and {two}: 2 priors, one for each adversary" in out
    # A file without pairs means all of them: fewer would promise less than it asks for.
    three = {"a": {"0": 1, "1": 0}, "b": {"1": 1}, "c": {"0": ".5", "1": ".5"}}
    every = prior_file(tmp_path, three, "every.json")
    some = prior_file(tmp_path, three, "some.json", [["a", "c"]])
    files = ("calibrate", "--prior", every, "--prior", some)
    check_refused(run(*files, *more), "every.json", "some.json", "--pair")
    assert run(*files, *more, "--pair", "a", "b").data["scenario"]["pairs"] == [["a", "b"]]
    assert run(*files[:2], some, *more).data["scenario"]["pairs"] == [["a", "c"]]


def test_set_aside_with_reasons(tmp_path: Path):
    path = write(tmp_path, "t.csv", rows("a,0", "a,1", "b,1", "b,2", ",1", "a,", "c,0", "b,none"))
    more = ("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", 1, "--missing",
            "none", "--exclude-secret", "c")  # fmt: skip
    scenario = run(*more, "--format", "json").data["scenario"]
    assert sum(a["rows"] for a in scenario["set_aside"]) == scenario["rows"]["set_aside"] == 4
    out = run(*more).out
    assert "4 rows of 8 set aside: " in out
    assert "'none' (1)" in out


def test_a_region_is_named(tmp_path: Path):
    path = write(tmp_path, "t.csv", rows(*["a,0", "a,1", "b,1", "b,0"] * 30))
    more = ("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", 1)
    for option, words in (
        (("--confidence", ".95"), "with 95 % confidence"),
        (("--confidence", ".95", "--mechanism", "channel"), "every prior within 95 % confidence"),
        (("--tv-radius", ".1"), "every prior within a distance of 0.1 in total variation"),
    ):
        done = run(*more, *option)
        assert words in done.out
        assert "sample" not in done.out
        result = run(*more, *option, "--format", "json").data["results"][0]
        assert result["robust"] is True
        assert result["loss_at_95"] is None
    check_refused(run(*more, "--confidence", ".9", "--mechanism", "l1"), "l1", "exact")


def test_rows_of_one_person(tmp_path: Path):
    lines = [f"{s},{x},p{k}" for k, (s, x) in enumerate([("a", 0), ("a", 1), ("b", 1), ("b", 2)])]
    path = write(tmp_path, "t.csv", rows(*lines, *lines, header="s,x,id"))
    more = ("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", 1)
    together = run(*more, "--unit", "id", "--format", "json")
    assert together.scales["exact"] > run(*more, "--format", "json").scales["exact"]
    assert together.data["scenario"]["unit"] == "id"
    out = run(*more, "--unit", "id").out
    assert "people by id: 4 with 2 rows" in out
    assert "how large is not known" in out


# --------------------------------------------------------------------------------------- channels

WARDS = rows(*["a,east"] * 30, *["a,west"] * 20, *["b,west"] * 25, *["b,north"] * 25)


@pytest.fixture
def wards(tmp_path: Path) -> tuple[object, ...]:
    path = write(tmp_path, "w.csv", WARDS)
    return ("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", "0.5")


def test_levels_without_an_order_go_through_a_channel(wards: tuple[object, ...]):
    (found,) = run(*wards, "--cost", "hamming", "--format", "json").data["results"]
    assert (found["mechanism"], found["scale"], found["std"], found["mse"]) == (
        "channel", None, None, None,
    )  # fmt: skip
    assert found["cost"] + found["keep_rate"] == pytest.approx(1)
    assert found["keep_rate_of_a_constant"] == 0.45
    check_refused(run(*wards, "--mechanism", "exact"), "have none", "--order", "channel")
    done = run(*wards, "--mechanism", "all")
    assert done.status == 0
    assert "'all' leaves out" in done.err


def test_costs_by_name_and_from_a_file(wards: tuple[object, ...], tmp_path: Path):
    names = ("east", "north", "west")
    costs = {x: {y: 0 if x == y else 5 if x == "east" else 1 for y in names} for x in names}
    path = write(tmp_path, "costs.json", json.dumps(costs))
    own, named = (
        run(*wards, "--cost", cost, "--format", "json").data["results"][0]["cost"]
        for cost in (path, "hamming")
    )
    assert own > named
    check_refused(run(*wards, "--cost", "haming"), "hamming")
    check_refused(run(*wards, "--cost", write(tmp_path, "bad.json", '{"east": {"east": 0}}')))


def test_side_conditions(tmp_path: Path):
    path = write(tmp_path, "t.csv", rows(*["a,0", "a,1", "b,1", "b,2"] * 9))
    more = ("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", "1", "--mechanism",
            "channel", "--explain")  # fmt: skip
    assert "the channel is invariant" in run(*more, "--invariant").out
    assert "the channel is unbiased" in run(*more, "--unbiased").out
    assert "min_keep" in run(*more, "--min-keep", "0.4").out
    fine = run(*more, "--outputs", "fine:3", "--format", "json").data["results"][0]
    plain = run(*more, "--format", "json").data["results"][0]
    assert fine["cost"] <= plain["cost"]
    check_refused(run(*more, "--outputs", "coarse"), "fine:K")
    check_refused(run(*more, "--min-keep", "60"), "60")


def test_the_channel_itself_is_shown(wards: tuple[object, ...]):
    shown = (*wards, "--cost", "hamming", "--show-channel")
    out = run(*shown).out
    assert "channel at epsilon 0.5" in out
    assert sum(line.startswith(("east ", "north ", "west ")) for line in out.splitlines()) == 3
    (result,) = run(*shown, "--format", "json").data["results"]
    assert result["channel"]["inputs"] == ["east", "north", "west"]
    assert all(math.isclose(sum(row), 1) for row in result["channel"]["rows"])
    check_refused(run(*shown, "--format", "csv"), "--show-channel")


# ----------------------------------------------------------------------- best for estimates


def test_frequencies_are_the_purpose_of_levels_without_an_order(wards: tuple[object, ...]):
    (found,) = run(*wards, "--format", "json").data["results"]
    assert found["best_for"] == "frequencies"
    assert 0 <= found["objective"] - found["objective_bound"] < 1e-6 * found["objective"]
    assert found["error_of_share"] > 0
    out = run(*wards, "--explain").out
    assert re.search(r"^channel \(frequencies\)  \d", out, re.MULTILINE)
    assert "of the labels are the value itself" in out
    assert re.search(r"objective [\d.]+, objective_bound [\d.]+,", out)
    assert "labels: chance of each value by set" in run(*wards, "--show-channel").out
    (shown,) = run(*wards, "--show-channel", "--format", "json").data["results"]
    assert shown["labels"]["inputs"] == shown["channel"]["outputs"]
    # A condition on labels, a cost, and conditions on single values.
    kept = run(*wards, "--min-keep", "0.5", "--format", "json").data["results"][0]
    assert (kept["best_for"], kept["error_of_share"] >= found["error_of_share"]) == (
        "frequencies", True,
    )  # fmt: skip
    for option in (("--cost", "hamming"), ("--invariant",), ("--best-for", "kept")):
        (other,) = run(*wards, *option, "--format", "json").data["results"]
        assert (other["best_for"], other["objective"]) == ("kept", None)


def test_what_a_channel_is_best_for(wards: tuple[object, ...], tmp_path: Path):
    own = write(tmp_path, "own.json", json.dumps({"east": [1], "north": [0.5], "west": [0]}))
    (found,) = run(*wards, "--best-for", own, "--format", "json").data["results"]
    assert found["best_for"] == "own statistics"
    assert "channel (own statistics)" in run(*wards, "--best-for", own).out
    check_refused(run(*wards, "--best-for", "frequencis"), "did you mean 'frequencies'")
    check_refused(run(*wards, "--best-for", "mean"), "have none", "--order")
    check_refused(run(*wards, "--best-for", tmp_path / "no.json"), "no.json")
    short = write(tmp_path, "short.json", '{"east": [1], "north": [0.5]}')
    check_refused(run(*wards, "--best-for", short), "west")
    for option in (("--cost", "hamming"), ("--invariant",)):
        for more in ((), ("--mechanism", "all")):
            check_refused(run(*wards, "--best-for", "frequencies", *option, *more), "kept")


@pytest.mark.usefixtures("student")
def test_the_verdict_tells_what_a_channel_for_estimates_would_give():
    (noise,) = run(*options("0.1", "exact"), "--format", "json").data["results"]
    data = run(*options("0.1", "exact"), "--format", "json").data
    instead = data["verdict"]["best_for_both"]
    assert instead["best_for"] == "both"
    assert instead["certified"] is True
    for name in ("error_of_mean", "error_of_share", "error_of_cdf"):
        assert 0 < instead[name] < noise[name]
    said = "With --best-for both: error of the mean 0.058, of a share 0.058, of the CDF 0.041."
    assert said in data["verdict"]["text"]
    # That channel, asked for, has these numbers; it needs no --mechanism.
    asked = run(*options("0.1")[:-2], "--best-for", "both", "--format", "json").data
    (found,) = asked["results"]
    assert found == instead
    # Nothing is told where it is there, where there are several results, or for a region.
    assert asked["verdict"]["best_for_both"] is None
    for more in (("--confidence", "0.95"), ("--epsilon", "0.2"), ("--mechanism", "channel,exact")):
        told = run(*options("0.1", "exact"), *more, "--format", "json").data["verdict"]
        assert told["best_for_both"] is None


SQUARES = rows(*[f"{s},{x}" for x in range(31) for s in "ab" for _ in range(2 + (s == "b") * x)])


def test_the_verdict_points_to_what_takes_a_while(tmp_path: Path):
    """More than 30 values, or three secrets: no forecast, but where to find it."""
    three = rows(*["a,1", "a,2", "b,1", "b,2", "b,2", "c,1", "c,3"] * 9)
    ends = {
        "many": SQUARES,
        "three": three,
        "few": SQUARES.replace("\na,30", "").replace("\nb,30", ""),
    }
    for name, text in ends.items():
        path = write(tmp_path, f"{name}.csv", text)
        data = run("calibrate", path, *options()[2:3], "s", "--public", "x", "--epsilon", "1",
                   "--format", "json").data  # fmt: skip
        known = data["verdict"]["best_for_both"] is not None
        pointed = any(
            line.startswith("See also --best-for both") for line in data["verdict"]["text"]
        )
        assert (known, pointed) == (name == "few", name != "few")


def test_the_command_for_a_sample_says_no_more_than_is_needed(
    wards: tuple[object, ...], tmp_path: Path
):
    path = write(tmp_path, "n.csv", rows(*["a,0", "a,1", "b,1", "b,3"] * 9))
    numbers = ("calibrate", path, *wards[2:])
    for command, needed in (
        ((*numbers, "--best-for", "both"), False),
        ((*numbers, "--best-for", "both", "--mechanism", "channel"), False),
        ((*numbers, "--mechanism", "channel"), True),
        ((*numbers, "--cost", "absolute"), False),
        ((*numbers, "--mechanism", "all"), False),
        ((*wards,), False),
        ((*wards, "--mechanism", "channel", "--cost", "hamming"), False),
    ):
        verdict = run(*command, "--format", "json").data["verdict"]
        said = verdict["command_for_a_sample"]
        assert ("--mechanism" in said) == needed
        assert run(*said.split()[1:]).status == 0
        if needed or "--cost" in command:
            cost = command[-1] if "--cost" in command else "squared"
            assert f"Channel (kept) has the least {cost} cost (see --cost)." in verdict["text"]


def test_columns_of_nothing_are_left_out_of_the_table(wards: tuple[object, ...], tmp_path: Path):
    head = run(*wards).out.splitlines()
    at = next(k for k, line in enumerate(head) if line.startswith("──"))
    assert head[at - 2].split("  ")[-1] == "error,"
    assert "wasserst." not in head[at - 1]
    assert head[at - 1].split() == ["mechanism", "(by", "a", "constant)", "share"]
    path = write(tmp_path, "n.csv", SQUARES.replace("a,", "a,1").replace("b,", "b,1"))
    done = run("calibrate", path, *wards[2:], "--epsilon", "0.01,0.1", "--mechanism", "all")
    assert "wasserst." in done.out
    table = [line for line in done.out.splitlines() if re.match(r" *0\.\d", line)]
    assert len(table) == 21
    assert max(map(len, table)) <= 80


def test_a_column_of_one_value(tmp_path: Path):
    path = write(tmp_path, "t.csv", rows(*["a,3", "b,3"] * 4))
    more = ("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", "1", "--mechanism")
    for mechanism in ("all", "exact", "channel"):
        done = run(*more, mechanism)
        assert done.status == 0, done.err
        assert "PUBLISHED UNCHANGED" in done.out
        assert "--best-for both" not in done.out


def test_all_shows_both_kinds_of_channels(wards: tuple[object, ...], tmp_path: Path):
    done = run(*wards, "--mechanism", "all", "--format", "json")
    assert [r["best_for"] for r in done.data["results"]] == ["kept", "frequencies"]
    said = "'all' leaves out l1, wasserstein, relaxed, one-sided, exact: l1, unlike the mechanism"
    assert done.err.count("leaves out") == done.err.count(said) == 1
    path = write(tmp_path, "n.csv", rows(*["a,0", "a,1", "b,1", "b,3"] * 9))
    every = ("calibrate", path, *wards[2:6], "--mechanism", "all", "--epsilon", "0.5,1")
    for more, channels in (
        ((), ["kept", "both"]),
        (("--best-for", "cdf"), ["kept", "cdf"]),
        (("--best-for", "Kept"), ["kept", "both"]),
        (("--cost", "absolute"), ["kept"]),
        (("--min-keep", "0.2"), ["kept", "both"]),
    ):
        done = run(*every, *more)
        assert done.status == 0, done.err
        table = [line for line in done.out.splitlines() if re.match(r" +0?[.1][.5]* ", line)]
        found = [re.findall(r"channel \((\w+)\)", line) for line in table]
        assert [name for names in found for name in names] == channels * 2
        assert max(map(len, table)) <= 80


@pytest.mark.parametrize(
    "command", ["calibrate", "sweep", "release", "verify", "estimate", "ledger", "reproduce"]
)
def test_help_is_complete(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run(command, "--help")
    assert (done.status, done.err) == (0, "")
    assert "Examples:" in done.out
    assert f"pufferfish {command}" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert not re.search(r"\w-$", done.out, re.MULTILINE)
    if command == "calibrate":
        assert all(f"\n  {name} " in done.out for name in MECHANISMS)
    assert command in run("--help").out


def test_no_command_shows_the_help():
    assert run().out.startswith("Usage: pufferfish")
    assert run("--version").out == f"pufferfish, version {pf.__version__}\n"


def test_a_channel_is_shown_without_what_a_terminal_obeys(tmp_path: Path) -> None:
    lines = ["s,x", *(f"{s},{x}" for s in "ab" for x in ("\x1b[31mred", "\u202eevil", "u") * 3)]
    (tmp_path / "odd.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = ("--secret", "s", "--public", "x", "--epsilon", 1, "--best-for", "kept")
    done = run("calibrate", tmp_path / "odd.csv", *asked, "--show-channel")
    assert done.status == 0, done.err
    assert "\\x1b[31mred" in done.out
    assert not re.search("[\x1b\u202e]", done.out)
