# SPDX-License-Identifier: Apache-2.0
"""Hints: values that were split or joined in the wrong way, words for people, and notices."""

import csv
import io
import json
from pathlib import Path

import pytest

from cli_runner import check_refused, rows, run, write
from pufferfish.cli.messages import command_line_words

TABLE = rows("a,0,u", "a,1,v", "b,1,v", "b,2,u", "c,2,u", "c,0,v", "c,1,u", header="s,x,z")
COLUMNS = ("--secret", "s", "--public", "x")
T = ("calibrate", "t.csv", *COLUMNS)
R = ("release", "t.csv", *COLUMNS, "--epsilon", "1", "-o", "o.csv")
PRIOR = {"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table, levels and two priors."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", TABLE)
    write(tmp_path, "l.csv", rows("a,low", "a,mid", "b,mid", "b,high"))
    write(tmp_path, "p.json", json.dumps(PRIOR))
    write(tmp_path, "q.json", json.dumps(PRIOR))
    assert run("calibrate", "--prior", "p.json", "--epsilon", ".1", "--save", "plan").status == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments, parts",
    [
        ((*T, "--epsilon", "0.1", "0.5"), ["'0.5'", "commas", "--epsilon 0.1,0.5"]),
        ((*T, "--epsilon", "0.1", "0.5", "1"), ["--epsilon 0.1,0.5,1"]),
        ((*T, "--epsilon=0.1", "0.5"), ["--epsilon 0.1,0.5"]),
        (("calibrate", *COLUMNS, "--epsilon", "0.1", "0.5", "t.csv"), ["--epsilon 0.1,0.5"]),
        (("calibrate", "--prior", "p.json", "--epsilon", ".1", ".5"), ["--epsilon .1,.5"]),
        ((*T, "--epsilon", "1", "--order", "a", "b", "c"), ["commas", "--order a,b,c"]),
        (("calibrate", *COLUMNS, "--order", "a", "b", "t.csv"), ["--order a,b "]),
        ((*T, "--epsilon", "1", "--mechanism", "l1", "exact"), ["--mechanism l1,exact"]),
        ((*T, "--epsilon", "1", "--pair", "a,b"), ["two words", "--pair a b"]),
        ((*T, "--pair", "a,b", "--epsilon", "1"), ["two words", "--pair a b"]),
        (("calibrate", *COLUMNS, "--epsilon", "1", "--pair", "a,b", "t.csv"), ["--pair a b"]),
        ((*R, "--bounds", "0,2"), ["two words", "--bounds 0 2"]),
        (("calibrate", "--prior", "p.json", "q.json", "--epsilon", "1"),
         ["repeat", "--prior p.json --prior q.json"]),
        (("calibrate", "--prior", "p.json,q.json", "--epsilon", "1"),
         ["p.json,q.json", "--prior p.json --prior q.json"]),
        (("verify", "plan", "--prior", "p.json", "q.json"), ["--prior p.json --prior q.json"]),
        ((*R, "--keep", "z,y"), ["--keep z --keep y", "repeat"]),
        ((*T, "--epsilon", "1", "--exclude-secret", "b,c"), ["--exclude-secret b"]),
        ((*T, "--eps", "1"), ["there is no option --eps", "did you mean '--epsilon'?"]),
        ((*T, "--epsilon", "1", "--mech", "l1"), ["did you mean '--mechanism'?"]),
        (("cal",), ["did you mean 'calibrate'?"]),
    ],
)  # fmt: skip
def test_values_that_were_split_or_joined(arguments: tuple[str, ...], parts: list[str]) -> None:
    check_refused(run(*arguments), *parts)
    assert not Path("o.csv").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", *COLUMNS, "--epsilon", "1", "t.csv"),
        (
            "calibrate",
            "--public",
            "x",
            "--secret",
            "s",
            "--epsilon=1",
            "--mechanism",
            "l1",
            "t.csv",
        ),
        ("verify", "--prior", "p.json", "plan"),
        ("calibrate", "--prior", "p.json", "--prior", "q.json", "--epsilon", "1"),
        ("calibrate", *COLUMNS, "--epsilon", "1", "--pair", "a", "b", "t.csv"),
    ],
)
def test_files_after_options_are_files(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.status == 0, done.err


def test_help_is_a_word_too() -> None:
    assert run("help").out == run("--help").out
    assert run("help", "verify").out == run("verify", "--help").out


def test_missing_texts_with_commas(folder: Path) -> None:
    write(folder, "m.csv", rows("a,0", "a,?", "b,1", "b,n/a"))
    options = ("calibrate", "m.csv", *COLUMNS, "--epsilon", "1", "--missing")
    check_refused(run(*options, "?,n/a"), "mixes", "--missing '?' --missing n/a")
    check_refused(
        run("release", "m.csv", "--plan", "plan", "--public", "x", "--missing", "?,n/a", "-o",
            "o.csv"), "row 2", "--missing '?' --missing n/a",
    )  # fmt: skip
    # Where nothing is wrong with the cells it is a warning.
    done = run(*T, "--epsilon", "1", "--missing", "?,n/a")
    assert done.status == 0
    assert "warning: no cell is '?,n/a'; --missing takes one text" in done.err
    assert "--missing takes" not in run(*T, "--epsilon", "1", "--missing", "?").err


def test_secrets_in_no_pair_are_named(folder: Path) -> None:
    note = "in no pair, and so not protected: c (3 rows)"
    out = run(*T, "--epsilon", "1", "--pair", "a", "b").out
    assert note in out
    assert "; pair: (a, b)" in out
    assert "; pairs: (a, b), (b, c)" in run(*T, "--epsilon", "1", "--pair", "a", "b", "--pair",
                                            "b", "c").out  # fmt: skip
    data = run(*T, "--epsilon", "1", "--pair", "a", "b", "--format", "json").data
    assert any(note in text for text in data["scenario"]["notes"])
    assert note in run(*R, "--pair", "a", "b").err
    assert "in no pair" not in run(*T, "--epsilon", "1").out
    three = {"secrets": {s: {"0": ".5", "1": ".5"} for s in "abc"}, "pairs": [["a", "b"]]}
    write(folder, "three.json", json.dumps(three))
    out = run("calibrate", "--prior", "three.json", "--epsilon", "1").out
    assert "in no pair, and so not protected: c;" in out


def test_rows_outside_the_promise_that_nobody_counted(folder: Path) -> None:
    write(folder, "u.csv", rows("a,0", "d,1"))
    options = ("release", "u.csv", "--plan", "plan", "--public", "x", "--force", "-o", "o.csv")
    note = "rows outside the promise were not counted"
    assert f"{note}; give --secret COL" in run(*options).err
    assert note not in run(*options, "--secret", "s").err
    write(folder, "v.csv", "x\n0\n1\n")
    saved = run(*T, "--epsilon", "1", "--save", "plan2")
    assert saved.status == 0
    done = run("release", "v.csv", "--plan", "plan2", "-o", "o2.csv")
    assert "the secret column 's' is not in the table" in done.err


def test_an_order_makes_levels_of_numbers(folder: Path) -> None:
    out = run(*T, "--epsilon", "1", "--order", "2,0,1").out
    assert "--order makes levels of them" in out
    assert "2 = 0, 0 = 1, 1 = 2" in out
    named = run("calibrate", "l.csv", *COLUMNS, "--epsilon", "1", "--order", "low,mid,high").out
    assert "makes levels" not in named


def test_a_column_that_is_nearly_unchanged(folder: Path) -> None:
    prior = {"secrets": {"a": {"0": "1"}, "b": {"0": ".5", "1": ".5"}}}
    write(folder, "near.json", json.dumps(prior))
    prior["secrets"]["b"] = {"0": "1e-30", "1": "1"}
    write(folder, "far.json", json.dumps(prior))
    options = ("calibrate", "--prior", "near.json", "--mechanism", "l1", "--epsilon")
    # l1 has scale 1 / epsilon here: P(noise = 0) = tanh(epsilon / 2).
    assert "NOTICE" not in run(*options, "2.9").out
    out = run(*options, "3,100").out
    assert "NOTICE: at epsilon 3 the l1 noise is 0 for 90.5 % of the values" in out
    assert "NOTICE: at epsilon 100 the l1 noise is 0 for more than 99.9 % of the values" in out
    for form in ("json", "csv"):
        assert (
            "warning: at epsilon 3 the l1 noise is 0 for 90.5 %"
            in run(*options, "3", "--format", form).err
        )
    release = ("release", "t.csv", *COLUMNS, "--mechanism", "l1", "--epsilon", "30", "--force",
               "-o", "o.csv")  # fmt: skip
    assert "NOTICE: at epsilon 30 the noise is 0 for more than 99.9 %" in run(*release).out
    assert "NOTICE" not in run(*release, "--min-scale", "2").out


def test_a_plan_of_a_given_prior_is_not_kept_with_a_table(folder: Path) -> None:
    given = run("calibrate", "--prior", "p.json", "--epsilon", ".1", "--save", "given")
    assert "saved as given" in given.err
    assert "table" not in given.err
    counted = run(*T, "--epsilon", "1", "--save", "counted")
    assert "private: keep it with the table" in counted.err


@pytest.mark.parametrize(
    "text, said",
    [
        ("o.csv exists already; give another name, or --force (force=True) to replace it",
         "o.csv exists already; give another name, or --force to replace it"),
        ("with --allow-unchanged (allow_unchanged=True), or give --min-scale T (min_scale=T)",
         "with --allow-unchanged, or give --min-scale T"),
        ("all the same use --other-prior (other_prior=True)", "all the same use --other-prior"),
        ("give the order of a, b with order=[...] (--order on the command line), least level first",
         "give the order of a, b with --order, least level first"),
        ("sum to 7, not to 1; counts go into Prior.from_counts",
         "sum to 7, not to 1; give probabilities, not counts"),
        ("with --out-of-support clamp (out_of_support='clamp')", "with --out-of-support clamp"),
        ("--min-scale (min_scale) raises the scale", "--min-scale raises the scale"),
        ("l1 cannot honour a region (confidence or tv_radius): its",
         "l1 cannot honour a region (--confidence or --tv-radius): its"),
        ("at epsilon 0.1 and min_keep 0.9; feasible with a smaller min_keep or a larger epsilon",
         "at epsilon 0.1 and --min-keep 0.9; feasible with a smaller --min-keep or a larger "
         "epsilon"),
        ("there is no column 'min_keep'", "there is no column 'min_keep'"),
        ("is a secret of its own (1 rows); if", "is a secret of its own (1 row); if"),
        ("the levels a, b does not fit column 'x'", "the levels a, b do not fit column 'x'"),
        ("the order a, b does not fit column 'x'", "the order a, b does not fit column 'x'"),
        ("a 1.1 rows b, 21 rows c, 0 rows", "a 1.1 rows b, 21 rows c, 0 rows"),
        ("there is no column 'x (y)' in t (did you mean 'x'?)",
         "there is no column 'x (y)' in t (did you mean 'x'?)"),
    ],
)  # fmt: skip
def test_no_words_of_python(text: str, said: str) -> None:
    assert command_line_words(text) == said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", "l.csv", *COLUMNS, "--epsilon", "1", "--mechanism", "exact"),
        ("calibrate", "l.csv", *COLUMNS, "--epsilon", ".1", "--min-keep", ".9"),
        (
            "calibrate",
            "t.csv",
            *COLUMNS,
            "--epsilon",
            "1",
            "--mechanism",
            "l1",
            "--tv-radius",
            ".1",
        ),
        ("release", "l.csv", *COLUMNS, "--epsilon", "1", "-o", "o.csv", "--min-scale", "2"),
        ("release", "l.csv", *COLUMNS, "--epsilon", "1", "-o", "o.csv", "--round"),
        ("calibrate", "t.csv", *COLUMNS, "--epsilon", "1", "--save", "plan"),
        ("release", "same.csv", *COLUMNS, "--epsilon", "1", "-o", "o.csv"),
        ("release", "t.csv", "--plan", "plan", "--public", "x", "-o", "o.csv"),
        ("verify", "plan", "--prior", "other.json"),
        ("calibrate", "--prior", "counts.json", "--epsilon", "1"),
    ],
)
def test_messages_name_options_alone(folder: Path, arguments: tuple[str, ...]) -> None:
    other = {"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".3", "1": ".7"}}}
    write(folder, "other.json", json.dumps(other))
    counts = {"secrets": {"a": {"0": 3, "1": 4}, "b": {"0": 3, "1": 7}}}
    write(folder, "counts.json", json.dumps(counts))
    write(folder, "same.csv", rows("a,0", "a,1", "b,0", "b,1"))
    done = run(*arguments)
    assert done.status in (1, 2)
    check_refused(done, status=done.status)
    for word in ("=", "True", "Prior.", "[", "min_keep", "tv_radius", "min_scale"):
        assert word not in done.err


def test_csv_of_reproduce_says_where_its_line_is() -> None:
    help_text = " ".join(run("reproduce", "--help").out.split())
    assert "three tables" in help_text
    assert "on standard error with csv" in help_text
    done = run("reproduce", "--format", "csv")
    assert "agree" not in done.out.replace("agrees", "")
    assert len(next(csv.reader(io.StringIO(done.out)))) == 9


@pytest.mark.parametrize("command", ["calibrate", "release", "verify", "reproduce"])
def test_help_fits_a_terminal(command: str) -> None:
    examples = run(command, "--help").out.partition("Examples:")[2].partition("Options:")[0]
    assert max(map(len, examples.splitlines())) <= 80
