# SPDX-License-Identifier: Apache-2.0
"""What the commands print: digits on the private side, strict JSON and CSV, whole tables."""

import csv
import decimal
import io
import json
import math
import os
import re
import struct
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish as pf
from cli_runner import COMMAND, check_refused, rows, run, write
from pufferfish.cli import digits
from pufferfish.cli.output import jsonable

NOISE = ["l1", "wasserstein", "relaxed", "one-sided", "exact"]
MECHANISMS = [*NOISE, "channel"]


@pytest.fixture
def student(tmp_path: Path) -> Path:
    """The Student table, rebuilt from its counts."""
    from pufferfish import paper

    path = tmp_path / "student.csv"
    paper.write_table("student", path)
    return path


def student_options(path: Path) -> tuple[object, ...]:
    return (
        "calibrate", path, "--secret", "higher", "--public", "romantic", "--order", "no,yes",
        "--epsilon", "0.1,0.5,1/3", "--mechanism", "all",
    )  # fmt: skip


def check_rounded_up(value: float, count: int) -> None:
    text = digits.rounded_up(value, count)
    shown = Fraction(text)
    assert shown >= Fraction(value)
    assert shown <= Fraction(value) * (1 + Fraction(10, 10**count))
    if value:
        assert len(re.sub(r"^0*\.?0*|e.*$|\.", "", text)) >= count


SCALES = st.floats(min_value=0, allow_nan=False, allow_infinity=False)


@given(SCALES, st.integers(8, 12))
def test_digits_are_rounded_up(value: float, count: int) -> None:
    check_rounded_up(value, count)


def test_mutant_digits_rounded_to_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decimal, "ROUND_CEILING", decimal.ROUND_HALF_EVEN)
    with pytest.raises(AssertionError):
        check_rounded_up(1.05942591234, 8)


@pytest.mark.parametrize(
    "value, text",
    [
        (0.0, "0"),
        (10.0, "10.00000000"),
        (1.0594259987634, "1.059425999"),
        (1 / 3, "0.3333333334"),
        (5e15, "5000000000000000"),
        (1e300, "1.000000001e+300"),
        (1e-9, "1.000000001e-9"),
        (math.inf, "inf"),
    ],
)
def test_digits(value: float, text: str) -> None:
    assert digits.rounded_up(value) == text


@given(st.floats(1e-12, 1e12), st.floats(0, 1))
def test_a_loss_within_epsilon_is_shown_within_epsilon(epsilon: float, share: float) -> None:
    loss = epsilon * share
    shown = Fraction(digits.at_most(loss, Fraction(epsilon)))
    assert Fraction(loss) <= shown <= Fraction(epsilon)


def test_a_loss_above_epsilon_is_shown_above_it() -> None:
    assert Fraction(digits.at_most(0.5000001, Fraction(1, 2))) > Fraction(1, 2)


def test_jsonable() -> None:
    value = {"a": (1.5, math.inf, -math.inf, math.nan), 1: None, "c": [True]}
    assert jsonable(value) == {"a": [1.5, "inf", "-inf", "nan"], "1": None, "c": [True]}


def test_json_holds_the_results_of_the_library(student: Path) -> None:
    outcome = run(*student_options(student), "--format", "json")
    assert outcome.status == 0
    scenario, results = outcome.data["scenario"], outcome.data["results"]
    prior = pf.Prior.from_table(student, secret="higher", public="romantic", order=["no", "yes"])
    expected = [
        pf.calibrate(prior, epsilon, mechanism)
        for epsilon in ("0.1", "0.5", "1/3")
        for mechanism in MECHANISMS
    ]
    assert [(r["epsilon"], r["mechanism"]) for r in results] == [
        (plan.epsilon, plan.mechanism) for plan in expected
    ]
    for result, plan in zip(results, expected, strict=True):
        # Doubles survive to their last digit.
        assert result["scale"] == plan.scale
        assert (result["loss"], result["mse"], result["std"]) == (plan.loss, plan.mse, plan.std)
        assert result["certified"] is True
        assert result["loss"] <= result["epsilon"]
        assert (result["cost"], result["keep_rate"]) == (plan.cost, plan.keep_rate)
        sensitivity = plan.with_sensitivity(pf.Scenario(prior)).sensitivity
        assert sensitivity is not None
        assert (result["loss_at_95"], result["robustness_radius"]) == (
            sensitivity.loss_at_95, sensitivity.radius,
        )  # fmt: skip
        assert result["robustness_radius_at_double"] == sensitivity.radius_at_double
        assert result["robust"] is False
        if plan.scale is None:
            assert result["mechanism"] == "channel"
            assert result["reduction_vs_wasserstein"] is result["reduction_vs_l1"] is None
            continue
        saved = 100 * (1 - plan.scale * plan.epsilon)
        assert result["reduction_vs_wasserstein"] == pytest.approx(saved, abs=1e-9)
        assert result["reduction_vs_l1"] == pytest.approx(saved, abs=1e-9)
    assert scenario["rows"] == {
        "read": 649, "used": 649, "set_aside": 0, "by_secret": {"no": 69, "yes": 580},
    }  # fmt: skip
    assert scenario["coding"] == {"no": 0, "yes": 1}
    assert scenario["support"]["kind"] == "ordered levels"
    assert scenario["pairs"] == [["no", "yes"]]
    assert scenario["adversaries"] == 1
    assert scenario["regions"] is None
    assert scenario["missing"] == [{"text": "", "public_rows": 0, "secret_rows": 0}]
    assert any("public knowledge" in note for note in scenario["notes"])
    assert "sha256" not in outcome.out  # the digest is private


def test_reductions_do_not_need_the_other_mechanisms(student: Path) -> None:
    options = (*student_options(student)[:-1], "exact", "--format", "json")
    alone = run(*options).data["results"]
    beside = run(*student_options(student), "--format", "json").data["results"]
    assert alone == [result for result in beside if result["mechanism"] == "exact"]


def test_csv(student: Path) -> None:
    outcome = run(*student_options(student), "--format", "csv")
    found = list(csv.DictReader(io.StringIO(outcome.out)))
    results = run(*student_options(student), "--format", "json").data["results"]
    assert len(found) == 18
    assert "public knowledge" in outcome.err
    for row, result in zip(found, results, strict=True):
        assert row["mechanism"] == result["mechanism"]
        assert row["scale"] == ("" if result["scale"] is None else str(result["scale"]))
        assert row["loss_at_95"] == str(result["loss_at_95"])
        assert float(row["loss"]) == result["loss"]
        assert row["certified"] == "true"


def test_the_table_says_everything(student: Path) -> None:
    out = run(*student_options(student)).out
    for part in (
        "rows read 649, used 649, set aside 0",
        "rows by secret: no 69, yes 580",
        "missing: the empty cell",
        "no = 0, yes = 1",
        "step 1",
        "(no, yes)",
        "certified",
        "taken as public knowledge",
        "keep it private",
        "do not add up",
        "PUBLISHED UNCHANGED",
    ):
        assert part in out
    assert "1.574457111" in out
    assert "\x1b" not in out
    lines = [line.split() for line in out.splitlines() if line.strip().startswith("0.1 ")]
    assert [line[1] for line in lines] == MECHANISMS


def on_a_terminal(columns: int, *arguments: object) -> str:
    """Return what a person sees on a terminal of so many columns."""
    pty = pytest.importorskip("pty", reason="needs a terminal of POSIX")
    import fcntl
    import termios

    process, descriptor = pty.fork()
    if process == 0:
        environment = os.environ | {"TERM": "xterm", "COLUMNS": str(columns)}
        os.execve(sys.executable, [*COMMAND, *map(str, arguments)], environment)
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
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(pieces).decode())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
@pytest.mark.parametrize("columns", [80, 100])
def test_nothing_is_cut_on_a_terminal(student: Path, columns: int) -> None:
    seen = on_a_terminal(columns, *student_options(student))
    assert "…" not in seen
    for part in ("wasserstein ", "3.390722632", "0.015649857", "199.84", "84.3 %"):
        assert part in seen
    shown = [line for line in seen.replace("\r", "\n").split("\n") if "calibrating" not in line]
    assert max(map(len, shown)) <= columns
    assert "NOTICE" in seen


def large(tmp_path: Path) -> Path:
    lines = [f"{'ab'[k % 2]},{13_500 * (1 + k * k % 40) + 7 * k}" for k in range(60)]
    return write(tmp_path, "large.csv", rows(*lines))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
@pytest.mark.parametrize("columns", [30, 60, 80, 120])
def test_no_number_and_no_name_is_broken(tmp_path: Path, columns: int) -> None:
    path = large(tmp_path)
    options = ("calibrate", path, "--secret", "s", "--public", "x", "--epsilon", "0.1,1/3",
               "--mechanism", ",".join(NOISE))  # fmt: skip
    seen = on_a_terminal(columns, *options)
    found = run(*options, "--format", "json").data["results"]
    lines = [line.split() for line in seen.replace("\r", "\n").split("\n")]
    for result, epsilon in zip(found, ["0.1"] * 5 + ["1/3"] * 5, strict=True):
        scale = digits.rounded_up(result["scale"])
        loss = digits.at_most(result["loss"], Fraction(epsilon))
        assert any(line[:4] == [epsilon, result["mechanism"], scale, loss] for line in lines)
        if columns > 100:
            assert any(digits.error_up(result["mse"]) in line for line in lines)
    hidden = re.search(r"as this terminal is narrow: ([^.]*)\.", " ".join(seen.split()))
    assert (hidden is not None) == (columns <= 80)
    # What can be told from the other columns goes first.
    assert hidden is None or hidden[1].startswith("below l1, std")
    # Every mse is 1e7 and more.
    assert all("e+" in digits.error_up(result["mse"]) for result in found if columns > 100)


@pytest.mark.parametrize(
    "value, text",
    [(65027e6, "6.5027e+10"), (7258712.0, "7258800"), (22.8284, "22.829"), (0.0, "0"),
     (0.0862101, "0.086211"), (math.inf, "inf"), (1e-9, "1.0001e-9"), (1.23456e10, "1.2346e+10"),
     (0.3453511, "0.34536")],
)  # fmt: skip
def test_errors_are_rounded_up_and_short(value: float, text: str) -> None:
    assert digits.error_up(value) == text
    assert len(digits.error_up(value)) <= 11


@pytest.mark.parametrize(
    "value, text", [(0.8789, "87.8 %"), (0.65465, "65.4 %"), (1.0, "100.0 %"), (0.0, "0.0 %")]
)
def test_what_is_kept_is_rounded_down(value: float, text: str) -> None:
    assert digits.share(value) == text


def test_a_cost_that_is_an_mse_prints_like_it(student: Path) -> None:
    out = run(*student_options(student)[:-4], "--epsilon", "0.1,0.2", "--mechanism", "channel").out
    found = run(*student_options(student)[:-4], "--epsilon", "0.1,0.2", "--mechanism", "channel",
                "--format", "json").data["results"]  # fmt: skip
    for epsilon, result in zip(("0.1 ", "0.2 "), found, strict=True):
        (line,) = [x.split() for x in out.splitlines() if x.strip().startswith(epsilon)]
        assert result["cost"] == pytest.approx(result["mse"], rel=1e-9)
        assert line.count(digits.error_up(result["cost"])) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
def test_the_papers_table_fits_a_terminal() -> None:
    seen = on_a_terminal(80, "reproduce")
    assert "…" not in seen
    assert re.search(r" \*0\.54 +0\.53271315 +0\.52342297 ", seen)
    assert "149 of 150 cells agree" in seen


def prior(tmp_path: Path, name: str, secrets: Any, pairs: Any = None) -> Path:
    data = {"secrets": secrets} | ({} if pairs is None else {"pairs": pairs})
    return write(tmp_path, name, json.dumps(data))


def numbers(*values: str) -> dict[str, str]:
    return {str(k): value for k, value in enumerate(values)}


THREE = {"a": numbers("1", "0"), "b": numbers("0", "1"), "c": numbers(".5", ".5")}


def test_several_adversaries(tmp_path: Path) -> None:
    one = prior(tmp_path, "one.json", {"a": numbers(".5", ".5"), "b": numbers(".4", ".6")})
    two = prior(tmp_path, "two.json", {"b": numbers("0", "0", "1"), "a": numbers("1")})
    options = ("--epsilon", "1", "--mechanism", "wasserstein", "--format", "json")
    assert run("calibrate", "--prior", one, *options).scales["wasserstein"] == 1
    both = run("calibrate", "--prior", one, "--prior", two, *options)
    assert both.scales["wasserstein"] == 2
    assert both.data["scenario"]["adversaries"] == 2
    assert both.data["scenario"]["source"] == [str(one), str(two)]
    other = prior(tmp_path, "other.json", THREE)
    check_refused(run("calibrate", "--prior", one, "--prior", other, *options), "same secrets")


def test_pairs_of_several_files_agree_or_are_given(tmp_path: Path) -> None:
    every = prior(tmp_path, "every.json", THREE)
    listed = prior(tmp_path, "listed.json", THREE, [["b", "a"], ["c", "a"], ["c", "b"]])
    some = prior(tmp_path, "some.json", THREE, [["a", "c"]])
    turned = prior(tmp_path, "turned.json", THREE, [["c", "a"]])

    def calibrate(*paths: Path, pair: tuple[str, ...] = ()) -> Any:
        files = [part for path in paths for part in ("--prior", path)]
        return run("calibrate", *files, "--epsilon", 1, "--format", "json", *pair)

    assert calibrate(some).data["scenario"]["pairs"] == [["a", "c"]]
    assert calibrate(some, turned).data["scenario"]["pairs"] == [["a", "c"]]
    assert len(calibrate(every, listed).data["scenario"]["pairs"]) == 3
    assert len(calibrate(listed, every).data["scenario"]["pairs"]) == 3
    # A file without pairs means all of them: fewer would promise less than it asks for.
    check_refused(calibrate(every, some), "every.json", "some.json", "--pair")
    check_refused(calibrate(some, every), "--pair")
    given = calibrate(every, some, pair=("--pair", "a", "b"))
    assert given.data["scenario"]["pairs"] == [["a", "b"]]


@pytest.mark.parametrize(
    "order, levels", [("mid,low,high", "mid low high"), ("alphabetical", "high low mid"),
                      ("appearance", "low high mid")],
)  # fmt: skip
def test_order_of_levels_in_a_prior_file(tmp_path: Path, order: str, levels: str) -> None:
    path = prior(
        tmp_path, "p.json", {"a": {"low": ".5", "high": ".5"}, "b": {"mid": ".5", "low": ".5"}}
    )
    options = ("calibrate", "--prior", path, "--epsilon", 1, "--format", "json", "--order")
    outcome = run(*options, order)
    assert outcome.data["scenario"]["support"]["levels"] == levels.split()
    quoted = run(*options, 'mid,"low",high')
    assert quoted.data["scenario"]["support"]["levels"] == ["mid", "low", "high"]


def test_numbers_in_a_prior_file_are_the_decimals_they_print_as(tmp_path: Path) -> None:
    # As doubles .1 + .2 is not .3, and 5e-17 of mass would travel across the whole range.
    text = '{"secrets": {"a": {"0": 0.1, "1": 0.2, "9": 0.7}, "b": {"0": 0.3, "9": 0.7}}}'
    outcome = run(
        "calibrate", "--prior", write(tmp_path, "p.json", text), "--epsilon", 1,
        "--mechanism", "wasserstein", "--format", "json",
    )  # fmt: skip
    assert outcome.scales["wasserstein"] == 1


def test_a_step_rounds_before_counting(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,0.1", "a,0.9", "b,1.2", "b,0.2"))
    options = ("--secret", "s", "--public", "x", "--epsilon", 1, "--format", "json")
    fine = run("calibrate", path, *options)
    assert fine.data["scenario"]["support"]["step"] == 0.1
    coarse = run("calibrate", path, *options, "--step", "1/2")
    assert coarse.data["scenario"]["support"] == {
        "kind": "numbers", "size": 2, "step": 0.5, "least": 0, "greatest": 1, "levels": None,
    }  # fmt: skip


def test_set_aside_with_reasons(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", rows("a,0", "a,1", "b,1", "b,2", ",1", "a,", "c,0", "b,none"))
    options = ("--secret", "s", "--public", "x", "--epsilon", 1)
    more = ("--missing", "none", "--exclude-secret", "c")
    outcome = run("calibrate", path, *options, *more, "--format", "json")
    scenario = outcome.data["scenario"]
    assert sum(scenario["set_aside"].values()) == scenario["rows"]["set_aside"] == 4
    table = run("calibrate", path, *options, *more).out
    assert "rows read 8, used 4, set aside 4" in table
    for reason, number in scenario["set_aside"].items():
        assert f"set aside, {reason}: {number}" in table


@pytest.mark.parametrize("command", ["calibrate", "release", "verify", "reproduce"])
def test_help_is_complete(command: str) -> None:
    outcome = run(command, "--help")
    assert (outcome.status, outcome.err) == (0, "")
    assert "Examples:" in outcome.out
    assert f"pufferfish {command}" in outcome.out
    if command in ("calibrate", "release"):
        for mechanism in MECHANISMS:
            assert f"\n  {mechanism} " in outcome.out
    outcome = run("--help")
    assert command in outcome.out


def test_no_command_shows_the_help() -> None:
    outcome = run()
    assert outcome.status == 0
    assert outcome.out.startswith("Usage: pufferfish")
    assert run("--version").out == f"pufferfish, version {pf.__version__}\n"
