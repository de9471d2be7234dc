# SPDX-License-Identifier: Apache-2.0
"""Files on the command line: no output is an input, and what was written is said."""

import json
import os
import sys
from pathlib import Path

import pytest

from cli_runner import check_refused, rows, run, run_process, write
from pufferfish.cli import files
from pufferfish.cli.digits import shown_scale
from pufferfish.cli.messages import Messages

TABLE = rows("a,0", "a,1", "b,1", "b,2")
COLUMNS = ("--secret", "s", "--public", "x")
PRIOR = {"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a table, a prior and a plan."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "t.csv", TABLE)
    write(tmp_path, "prior.json", json.dumps(PRIOR))
    write(tmp_path, "p.csv", json.dumps(PRIOR))  # a prior may be called anything
    assert run("calibrate", "t.csv", *COLUMNS, "--epsilon", ".5", "--save", "plan.csv").status == 0
    return tmp_path


DESTROYING = [
    (("calibrate", "t.csv", *COLUMNS, "--epsilon", "1", "--save"), "t.csv"),
    (("calibrate", "--prior", "prior.json", "--epsilon", "1", "--save"), "prior.json"),
    (("release", "t.csv", "--plan", "plan.csv", "-o"), "plan.csv"),
    (("release", "t.csv", "--plan", "plan.csv", "-o"), "t.csv"),
    (("release", "t.csv", "--prior", "p.csv", "--public", "x", "--epsilon", ".1", "-o"), "p.csv"),
]


def check_kept(arguments: tuple[str, ...], output: str, target: str) -> None:
    """Check that a command refuses to write over its input, and leaves it as it is."""
    before = Path(target).read_bytes()
    check_refused(run(*arguments, output), output, "input itself")
    check_refused(run(*arguments, output, "--force"), output, "input itself")
    assert Path(target).read_bytes() == before


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments, target", DESTROYING)
@pytest.mark.parametrize("way", ["same", "path", "symlink", "hardlink"])
def test_no_output_is_an_input(arguments: tuple[str, ...], target: str, way: str) -> None:
    output = {"same": target, "path": f"./{target}"}.get(way, "other.csv")
    if way == "symlink":
        os.symlink(target, output)
    elif way == "hardlink":
        os.link(target, output)
    check_kept(arguments, output, target)


@pytest.mark.usefixtures("folder")
def test_mutant_an_input_that_is_written_over_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pufferfish.cli.calibrate.check_not_input", lambda *_: None)
    with pytest.raises(AssertionError):
        check_kept(*DESTROYING[0], DESTROYING[0][1])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "arguments, output",
    [
        (("release", "t.csv", "--plan", "plan.csv", "-o"), "out.csv"),
        (("calibrate", "t.csv", *COLUMNS, "--epsilon", "1", "--save"), "out.json"),
    ],
)
def test_an_error_after_the_file_says_that_it_was_written(
    folder: Path, arguments: tuple[str, ...], output: str
) -> None:
    with open("/dev/full", "wb") as full:
        done = run_process(*arguments, output, stdout=full, cwd=folder)
    check_refused(done, "standard output", f"{output} was written")
    assert Path(output).exists()


def test_an_interrupt_after_the_file_got_its_name_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = Messages()

    def work(existing: bool, error: type[BaseException]) -> None:
        with files.writing("new.csv", messages):
            if existing:
                write(folder, "new.csv", "done")
            raise error

    def interrupted(existing: bool, error: type[BaseException]) -> str:
        with pytest.raises(error):
            work(existing, error)
        messages.error("stopped")
        return capsys.readouterr().err

    assert "was written" not in interrupted(False, KeyboardInterrupt)
    # An ordinary error comes before the name: a file of that name is somebody else's.
    assert "was written" not in interrupted(True, ValueError)
    Path("new.csv").unlink()
    assert "stopped; new.csv was written" in interrupted(True, KeyboardInterrupt)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments, parts",
    [
        (("verify", "plam.csv", "t.csv"), ["plan file plam.csv", "did you mean 'plan.csv'?"]),
        (("release", "t.csv", "--plan", "pln.csv", "-o", "o.csv"), ["did you mean 'plan.csv'?"]),
        (("calibrate", "--prior", "prir.json", "--epsilon", "1"), ["did you mean 'prior.json'?"]),
        (("verify", "plan.csv", "tt.csv"), ["tt.csv", "did you mean 't.csv'?"]),
        (("verify", "t.csv", "plan.csv"), ["t.csv is no plan", "PLAN comes first"]),
        (("release", "t.csv", "--plan", "t.csv", "-o", "o.csv"), ["t.csv is no plan", "--save"]),
    ],
)
def test_files_that_are_not_there_or_not_plans(
    arguments: tuple[str, ...], parts: list[str]
) -> None:
    check_refused(run(*arguments), *parts)


@pytest.mark.parametrize(
    "given, near",
    [("nofile.csv", ""), ("tt.csv", "t.csv"), ("T.CSV", "t.csv"), ("f3.csv", ""),
     ("t.tsv", "t.csv"), ("adlut.csv", "adult.csv"), ("b.json", "")],
)  # fmt: skip
def test_near_files_are_near(tmp_path: Path, given: str, near: str) -> None:
    for name in ("f2.csv", "t.csv", "adult.csv", "a.json"):
        write(tmp_path, name, "")
    assert files.near_file(str(tmp_path / given)) == (f" (did you mean {near!r}?)" if near else "")


@pytest.mark.skipif(sys.platform == "win32", reason="links are those of POSIX")
def test_a_dangling_link_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.symlink("gone.csv", "t.csv")
    check_refused(run("calibrate", "t.csv", *COLUMNS, "--epsilon", "1"), "t.csv")


def test_bounds_by_the_names_of_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "l.csv", rows("a,none", "a,mild", "b,mild", "b,severe"))
    options = ("release", "l.csv", *COLUMNS, "--order", "none,mild,severe", "--epsilon", ".5")
    done = run(*options, "-o", "o.csv", "--round", "--bounds", "mild", "severe")
    assert done.status == 0, done.err
    assert set(Path("o.csv").read_text().split()[1:]) <= {"mild", "severe"}
    refused = run(*options, "-o", "n.csv", "--round", "--bounds", "mild", "sever")
    check_refused(refused, "'sever'", "did you mean 'severe'?", "none = 0, mild = 1, severe = 2")
    check_refused(run(*options, "-o", "n.csv", "--bounds", "severe", "mild"), "bound")


def test_bounds_that_are_names_and_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "l.csv", rows("a,1", "a,2", "b,2", "b,3"))
    done = run("release", "l.csv", *COLUMNS, "--order", "1,2,3", "--epsilon", ".5", "-o", "o.csv",
               "--bounds", "1", "2")  # fmt: skip
    assert done.status == 0
    assert {int(text) for text in Path("o.csv").read_text().split()[1:]} <= {1, 2}
    assert "bounds 1 and 2 are codes: 1 = 0, 2 = 1, 3 = 2" in done.err


def test_the_scale_is_shown_to_ten_digits(folder: Path) -> None:
    done = run("release", "t.csv", "--plan", "plan.csv", "-o", "o.csv")
    scale = json.loads(Path("plan.csv").read_text())["scale"]
    assert repr(scale) not in done.out
    assert done.out.count(shown_scale(scale)) == 2
    done = run("verify", "plan.csv", "t.csv")
    assert f"scale {shown_scale(scale)}, loss" in done.out
    assert "proved by ball arithmetic" in done.out


def test_a_table_in_the_home_folder_is_an_input_under_either_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    before = (folder / "t.csv").read_bytes()
    for output in ("t.csv", str(folder / "t.csv")):
        done = run(
            "calibrate", "~/t.csv", *COLUMNS, "--epsilon", "1", "--save", output, "--force"
        )  # fmt: skip
        assert done.status == 2
        assert "input itself" in done.err
    assert (folder / "t.csv").read_bytes() == before
