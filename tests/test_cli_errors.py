# SPDX-License-Identifier: Apache-2.0
"""Wrong input: one line that names what was given and what is allowed, and exit status 2."""

import json
import os
import sys
import warnings
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli_runner import check_refused, rows, run, write
from pufferfish.cli import messages, running
from pufferfish.cli.app import cli
from pufferfish.errors import PriorWarning

TABLE = rows("no,0", "no,1", "yes,1", "yes,2", header="higher,romantic")
PRIOR = {"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}}}
COLUMNS = ("--secret", "higher", "--public", "romantic")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table and a prior."""
    write(tmp_path, "t.csv", TABLE)
    write(tmp_path, "prior.json", json.dumps(PRIOR))
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


T = ("calibrate", "t.csv", *COLUMNS)
P = ("calibrate", "--prior", "prior.json")
R = ("release", "t.csv", *COLUMNS, "--epsilon", "1")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize(
    "command, parts",
    [
        (("calibrate", "no.csv", *COLUMNS, "--epsilon", "1"), ["no.csv"]),
        (("calibrate", "tt.csv", *COLUMNS, "--epsilon", "1"), ["tt.csv", "did you mean 't.csv'?"]),
        (("calibrate", "sub", *COLUMNS, "--epsilon", "1"), ["sub"]),
        (
            ("calibrate", "t.csv", "--secret", "highr", "--public", "romantic", "--epsilon", "1"),
            ["'highr'", "did you mean 'higher'?"],
        ),
        (("calibrate", "t.csv", "--secret", "higher", "--epsilon", "1"), ["--public"]),
        (("calibrate", "t.csv", "--epsilon", "1"), ["--secret", "--public", "--prior"]),
        (("calibrate", "--epsilon", "1"), ["TABLE", "--prior"]),
        (("calibrate",), ["TABLE", "--prior"]),
        (T, ["--epsilon"]),
        ((*T, "--epsilon", "1", "more"), ["more", "--help"]),
        ((*T, "--epsilonn", "1"), ["--epsilonn", "did you mean '--epsilon'?"]),
        ((*T, "--epsilon"), ["--epsilon needs a value", "--format"]),
        ((*T, "--epsilon", "1", "--mechanism", "exakt"), ["'exakt'", "did you mean 'exact'?"]),
        ((*T, "--epsilon", "1", "--mechanism", "exact,"), ["''", "wasserstein"]),
        ((*T, "--epsilon", "1", "--pair", "yes"), ["--pair needs 2 values", "--format"]),
        ((*T, "--epsilon", "1", "--pair", "yes", "--force"), ["--pair needs 2 values", "--force"]),
        ((*T, "--epsilon", "1", "--pair", "yes", "non"), ["'non'", "did you mean 'no'?"]),
        ((*T, "--epsilon", "1", "--pair", "yes", "yes"), ["same secret twice"]),
        ((*T, "--epsilon", "1", "--step", "0"), ["step"]),
        ((*T, "--epsilon", "1", "--order", "apearance"), ["did you mean 'appearance'?"]),
        ((*T, "--epsilon", "1", "--levels", "0,,1"), ["--levels", "low,mid,high"]),
        ((*T, "--epsilon", "1", "--exclude-secret", "non"), ["'non'", "did you mean 'no'?"]),
        ((*T, "--epsilon", "1,2", "--save", "p.json"), ["exactly one epsilon", "write 1.2"]),
        ((*T, "--epsilon", "1", "--mechanism", "all", "--save", "p.json"), ["one mechanism"]),
        ((*T, "--epsilon", "1", "--save", "nowhere/p.json"), ["nowhere"]),
        ((*T, "--epsilon", "1", "--save", "sub"), ["sub", "folder"]),
        ((*T, "--epsilon", "1", "--save", "t.csv"), ["t.csv", "input itself"]),
        ((*T, "--epsilon", "1", "--save", "prior.json"), ["prior.json", "--force"]),
        ((*T, "--epsilon", "1", "--prior", "prior.json"), ["TABLE", "--prior", "not both"]),
        ((*P, "--epsilon", "1", "--secret", "s"), ["--secret", "TABLE"]),
        ((*P, "--epsilon", "1", "--order", "0,1"), ["prior.json", "order"]),
        ((*P, "--epsilon", "1", "--pair", "a", "c"), ["'c'", "a, b"]),
    ],
)
def test_calibrate(command: tuple[str, ...], parts: list[str], form: str) -> None:
    check_refused(run(*command, "--format", form), *parts)
    assert not Path("p.json").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command, parts",
    [
        (("calibrat",), ["'calibrat'", "did you mean 'calibrate'?", "release"]),
        (("--verbos",), ["--verbos"]),
        ((*T, "--epsilon", "1", "--format", "jsn"), ["--format", "'jsn'", "did you mean 'json'?"]),
        (("release",), ["TABLE"]),
        (("release", "t.csv", "--epsilon", "1"), ["-o"]),
        (("release", "t.csv", "-o", "o.csv"), ["--plan", "calibrate"]),
        ((*R, "-o", "t.csv"), ["input itself"]),
        ((*R, "-o", "./sub/../t.csv", "--force"), ["input itself"]),
        ((*R, "-o", "sub"), ["sub"]),
        ((*R, "-o", "prior.json"), [".csv"]),
        ((*R, "-o", "no/o.csv"), ["no"]),
        ((*R, "-o", "o.csv", "--bounds", "3", "-3"), ["bound"]),
        ((*R, "-o", "o.csv", "--bounds", "3"), ["--bounds"]),
        ((*R, "-o", "o.csv", "--bounds", "low", "high"), ["'low'"]),
        ((*R, "-o", "o.csv", "--min-scale", "-1"), ["--min-scale"]),
        ((*R, "-o", "o.csv", "--out-of-support", "clam"), ["did you mean 'clamp'?"]),
        ((*R, "-o", "o.csv", "--keep", "romantik"), ["did you mean 'romantic'?"]),
        ((*R, "-o", "o.csv", "--keep", "higher"), ["secret", "'higher'"]),
        ((*R, "-o", "o.csv", "--seed", "1"), ["test"]),
        ((*R, "-o", "o.csv", "--seed", "one"), ["--seed"]),
        ((*R, "-o", "o.csv", "--epsilon", "2"), ["one epsilon", "1, 2"]),
        ((*R, "-o", "o.csv", "--mechanism", "all"), ["one mechanism"]),
        ((*R, "-o", "o.csv", "--plan", "p.json"), ["--epsilon", "--plan"]),
        (("release", "t.csv", "--plan", "p.json", "-o", "o.csv"), ["p.json"]),
        (("release", "t.csv", "--plan", "t.csv", "-o", "o.csv"), ["t.csv"]),
        (
            ("release", "t.csv", "--prior", "prior.json", "--epsilon", ".1", "-o", "o.csv"),
            ["--public"],
        ),
        (("verify",), ["PLAN"]),
        (("verify", "p.json"), ["TABLE", "--prior"]),
        (("verify", "p.json", "t.csv"), ["p.json"]),
        (("verify", "prior.json", "t.csv"), ["prior.json"]),
        (("verify", "p.json", "t.csv", "--prior", "prior.json"), ["not both"]),
        (("reproduce", "--format", "xml"), ["'xml'", "csv"]),
        (("reproduce", "--diabetes", "no.csv"), ["no.csv"]),
        (("reproduce", "more"), ["more"]),
    ],
)
def test_others(command: tuple[str, ...], parts: list[str]) -> None:
    before = sorted(os.listdir())
    check_refused(run(*command), *parts)
    assert sorted(os.listdir()) == before


ONCE = "can be given only once"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command, parts",
    [
        (
            ("calibrate", "t.csv", *COLUMNS, "--public", "other", "--epsilon", "1"),
            ["--public", "'romantic' and 'other'", "one column", "pufferfish ledger",
             "Prior.from_table(..., public=[...])"],
        ),
        ((*T, "--epsilon", "1", "--format=json", "--format", "csv"), ["--format", "'json'"]),
        ((*T, "--epsilon", "1", "--order", "0", "--order", "1", "--order", "2"),
         ["'0', '1' and '2'", "commas: --order 0,1,2"]),
        ((*T, "--epsilon", "1", "--levels", "a b", "--levels", "c"), ["--levels 'a b,c'"]),
        ((*T, "--epsilon", "1", "--step", "1", "--step", "1"), ["--step", "'1' and '1'"]),
        (("release", "t.csv", "--plan", "x.json", "--plan", "y.json", "-o", "o.csv"),
         ["--plan", "'x.json' and 'y.json'"]),
        ((*R, "-oo.csv", "--output", "b.csv"), ["-o", "'o.csv' and 'b.csv'"]),
        ((*R, "-o", "o.csv", "--bounds", "0", "1", "--bounds=1", "2"),
         ["--bounds", "'0' '1' and '1' '2'"]),
    ],
)  # fmt: skip
def test_no_value_silently_overrides_another(command: tuple[str, ...], parts: list[str]) -> None:
    before = sorted(os.listdir())
    check_refused(run(*command), ONCE, *parts)
    assert sorted(os.listdir()) == before


def _options() -> list[tuple[list[str], click.Option]]:
    """Every option of every command that takes a value."""
    found = []
    for name, command in cli.commands.items():
        below = command.commands if isinstance(command, click.Group) else {"": command}
        for sub, one in below.items():
            words = [name, sub] if sub else [name]
            options = [p for p in one.params if isinstance(p, click.Option) and not p.is_flag]
            found += [(words, option) for option in options]
    return found


@pytest.mark.usefixtures("folder")
def test_every_option_of_every_command_is_given_once_or_may_be_repeated() -> None:
    several = {"--prior", "--pair", "--missing", "--exclude-secret", "--keep", "--epsilon",
               "--mechanism"}  # fmt: skip
    options = _options()
    assert len(options) > 60
    for words, option in options:
        name = option.opts[-1]
        assert option.multiple == (name in several)
        done = run(*words, *[name, *["1", "2"][: option.nargs]] * 2)
        assert (ONCE in done.err) != option.multiple, (words, name, done.err)
        if not option.multiple:
            check_refused(done, name)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "more",
    [
        ("--missing-as-level", "--missing-as-level", "--order", "0,1,2,(missing)"),
        ("--pair", "no", "yes", "--pair", "yes", "no"),
        ("--missing", "n", "--missing", "o"),
        ("--epsilon", "2", "--mechanism", "l1", "--mechanism", "exact"),
    ],
)
def test_what_may_be_repeated(more: tuple[str, ...]) -> None:
    done = run(*T, "--epsilon", "1", *more)
    assert done.status == 0, done.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("orders", [("appearance", "0,1,2"), ("0,1,2", "2,1,0"), ("0", "1,2")])
def test_two_choices_of_an_order_are_not_joined(orders: tuple[str, str]) -> None:
    done = run(*T, "--epsilon", "1", "--order", orders[0], "--order", orders[1])
    check_refused(done, ONCE, f"{orders[0]!r} and {orders[1]!r}")
    assert "commas" not in done.err


@pytest.mark.usefixtures("folder")
def test_words_after_a_double_dash_are_no_options() -> None:
    check_refused(run(*T, "--epsilon", "1", "--", "--step", "1", "--step", "2"), "extra argument")


@pytest.mark.parametrize(
    "text, parts",
    [
        ("", ["line 1"]),
        ("[1, 2]", ["'secrets'"]),
        ('{"secrets": {"a": {"0": 1}, "a": {"1": 1}}}', ["'a'", "twice"]),
        ('{"secrets": {"a": {"0": 0.5, "0": 0.5}, "b": {"1": 1}}}', ["'0'", "twice"]),
        ('{"secrets": {"a": {"0": 0.5, "0.0": 0.5}, "b": {"1": 1}}}', ["twice"]),
        ('{"secrets": {"a": {"0": NaN}, "b": {"1": 1}}}', ["NaN"]),
        ('{"secrets": {"a": {"0": Infinity}, "b": {"1": 1}}}', ["Infinity"]),
        ('{"secrets": {"a": {"0": 1e999}, "b": {"1": 1}}}', ["finite"]),
        ('{"secrets": {"a": {"0": 1e-999999999999}, "b": {"1": 1}}}', ["1e-9999"]),
        ('{"secrets": {"a": {"0": null}, "b": {"1": 1}}}', ["number"]),
        ('{"secrets": {"a": {"0": true}, "b": {"1": 1}}}', ["number"]),
        ('{"secrets": {"a": {"0": "half"}, "b": {"1": 1}}}', ["'half'"]),
        ('{"secrets": {"a": {"0": 1}}}', ["two secrets"]),
        ('{"secrets": {}}', ["secret"]),
        ('{"secrets": [["a", "b"]]}', ["'secrets'"]),
        ('{"secrets": {"a": {"0": 1}, "b": {"1": 1}}, "pair": [["a", "b"]]}', ["mean 'pairs'?"]),
        ('{"secrets": {"a": {"0": 1}, "b": {"1": 1}}, "pairs": ["a", "b"]}', ["pairs"]),
        ('{"secrets": {"a": {"0": 1}, "b": {"1": 1}}, "pairs": [["a"]]}', ["pairs"]),
        ('{"secrets": {"a": {"0": 1}, "b": {"1": 1}}, "pairs": []}', ["pair"]),
        ('{"secrets": {"a": {"0": 1}, "b": {"1": 1}}, "pairs": [["a", "c"]]}', ["'c'"]),
        ('{"secrets": {"a": {"0": 1}, "b": {"1": 1}}', ["line 1"]),
        ("[" * 100_000, ["deeply"]),
    ],
)
def test_prior_files(tmp_path: Path, text: str, parts: list[str]) -> None:
    path = write(tmp_path, "p.json", text)
    outcome = run("calibrate", "--prior", path, "--epsilon", 1, "--format", "json")
    check_refused(outcome, *parts)


def test_a_prior_of_levels_without_an_order(tmp_path: Path) -> None:
    path = write(tmp_path, "p.json", '{"secrets": {"a": {"low": 1}, "b": {"mid": 1}}}')
    options = ("calibrate", "--prior", path, "--epsilon", 1, "--mechanism")
    check_refused(run(*options, "exact"), "no order", "--order", "channel")
    assert run(*options, "channel").status == 0


def test_prior_files_that_are_none(tmp_path: Path) -> None:
    latin = write(tmp_path, "latin.json", '{"secrets": {"é": {"0": 1}}}'.encode("latin-1"))
    check_refused(run("calibrate", "--prior", latin, "--epsilon", 1), "latin.json", "UTF-8")
    for path in (tmp_path / "none.json", tmp_path):
        check_refused(run("calibrate", "--prior", path, "--epsilon", 1), str(path))


def test_files_are_not_replaced_without_force(folder: Path) -> None:
    for command, name in (((*T, "--epsilon", "1", "--save"), "p.json"), ((*R, "-o"), "o.csv")):
        write(folder, name, "mine")
        check_refused(run(*command, name), name, "--force")
        assert Path(name).read_text() == "mine"
        assert run(*command, name, "--force").status == 0
        assert Path(name).read_text() != "mine"


def test_names_cannot_break_the_line_or_the_terminal(folder: Path) -> None:
    outcome = run("calibrate", "t.csv", "--secret", "a\nb\x1b[31m\r", "--public", "romantic",
                  "--epsilon", "1")  # fmt: skip
    check_refused(outcome, "column")
    assert "\x1b" not in outcome.err
    assert "\r" not in outcome.err


def test_markup_in_names_is_only_text(tmp_path: Path) -> None:
    table = rows("[bold]a,0", "[bold]a,1", "[/]b,1", "[/]b,1", header="[red]s,x")
    path = write(tmp_path, "t.csv", table)
    outcome = run("calibrate", path, "--secret", "[red]s", "--public", "x", "--epsilon", 1)
    assert outcome.status == 0, outcome.err
    for name in ("[red]s", "[bold]a", "[/]b"):
        assert name in outcome.out


def test_a_fault_of_the_package_is_one_line_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("pufferfish.cli.scenarios.scenario_of", broken)
    check_refused(
        run(*T, "--epsilon", "1"), "fault", "report", "ZeroDivisionError: two lines", status=70
    )
    monkeypatch.setenv("PUFFERFISH_DEBUG", "1")
    outcome = run(*T, "--epsilon", "1")
    assert outcome.status == 70
    assert "Traceback" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("pufferfish: error: ")


def test_a_system_error_names_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "secret.csv")

    monkeypatch.setattr("pufferfish.cli.scenarios.scenario_of", broken)
    check_refused(run(*T, "--epsilon", "1"), "secret.csv: Permission denied")


def test_warnings_are_said_once_and_only_beside_a_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = messages.Messages()
    with said.showing_warnings():
        for text in ("one", "one", "two\nlines"):
            warnings.warn(text, PriorWarning, stacklevel=1)
    said.note("one")
    assert capsys.readouterr().err == ""
    said.finish()
    expected = ["warning: one", "warning: two lines", "note: one"]
    assert capsys.readouterr().err.splitlines() == [f"pufferfish: {line}" for line in expected]
    said.warning("three")
    said.error("four")
    said.finish()
    assert capsys.readouterr().err == "pufferfish: error: four\n"


def test_mutant_a_traceback_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the handler, the check that the tests above use turns red."""

    def let_through(error: Exception, said: messages.Messages) -> int:
        print(f"Traceback (most recent call last):\n{error}", file=sys.stderr)
        return 1

    monkeypatch.setattr(running, "_explain", let_through)
    with pytest.raises(AssertionError):
        check_refused(run("calibrate", "no.csv", *COLUMNS, "--epsilon", "1"))


WORDS = [
    "calibrate", "release", "verify", "t.csv", "prior.json", "plan.json", "no.csv", "sub",
    "--secret", "--public", "higher", "romantic", "--pair", "yes", "no", "--order", "0,1,2",
    "appearance", "--levels", "--missing", "--exclude-secret", "--step", "0.5", "--epsilon", "1",
    "1,5", "-1", "nan", "--mechanism", "all", "exact", "--format", "json", "csv", "--save",
    "out.json", "--prior", "-o", "out.csv", "--plan", "--keep", "--bounds", "--round", "--force",
    "--allow-unchanged", "--min-scale", "--seed", "--other-prior", "", "é", "--", "-x",
    "channel", "--cost", "hamming", "squared", "--outputs", "fine:2", "--invariant", "--unbiased",
    "--min-keep", "--confidence", "--tv-radius", "--missing-as-level", "0.05",
]  # fmt: skip


@pytest.mark.usefixtures("folder")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.sampled_from(["calibrate", "release", "verify", ""]),
    st.lists(st.sampled_from(WORDS), max_size=12),
)
def test_no_command_line_ends_in_a_fault(command: str, words: list[str]) -> None:
    outcome = run(command, *words)
    assert outcome.status in (0, 1, 2)
    if outcome.status:
        check_refused(outcome, status=outcome.status)
    elif "json" in words and outcome.out.startswith("{"):
        assert outcome.data["results"]


@pytest.mark.parametrize(
    "arguments, part",
    [
        (("release", "t.csv", "--plan", "p.json", "-o=x.csv"), "write -o x.csv"),
        (("calibrate", "t.csv", "--pair=no", "--save", "q.json"), "--pair needs 2 values, but"),
        (("calibrate", "t.csv", "--levels", "0", "--levels", "0"), "'0' and '0' were given"),
    ],
)
def test_signs_of_equality(arguments: tuple[str, ...], part: str) -> None:
    outcome = run(*arguments)
    assert outcome.status == 2
    assert part in outcome.err
    assert "0,0" not in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_the_second_value_after_a_sign_of_equality_is_no_loose_word() -> None:
    options = ("--secret", "h", "--public", "r", "--epsilon", "0.1")
    outcome = run("calibrate", "--order", "no,yes", "mistyped.csv", "--pair=no", "yes", *options)
    assert outcome.status == 2
    assert "mistyped.csv" in outcome.err
    assert "no,yes,mistyped" not in outcome.err
