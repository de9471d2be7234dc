# SPDX-License-Identifier: Apache-2.0
"""The command as a process: exit statuses, signals, pipes, and what importing it loads."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli_runner import COMMAND, check_refused, rows, run, run_process, strict_json, write
from pufferfish.cli import process

COLUMNS = ("--secret", "s", "--public", "x", "--epsilon", "1")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals work otherwise there")
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path, "t.csv", rows("a,0", "a,1", "b,1", "b,2"))


@pytest.fixture
def plan(table: Path) -> Path:
    path = table.parent / "plan.json"
    assert run("calibrate", table, *COLUMNS, "--save", path).status == 0
    return path


def test_the_installed_script():
    script = Path(sys.executable).with_name("pufferfish")
    if not script.exists():
        pytest.skip("the package is not installed with its script")
    done = subprocess.run([script, "verify"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_standard_input_is_a_table(table: Path):
    done = subprocess.run(
        [*COMMAND, "calibrate", "-", *COLUMNS], input=table.read_text(), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "4 rows" in done.stdout


HEAVY = {"numpy", "duckdb", "pyarrow", "rich", "narwhals", "flint", "highspy"}


@pytest.mark.parametrize(
    "arguments, allowed",
    [(("--help",), set()), (("calibrate",), {"numpy", "pyarrow", "rich", "flint", "duckdb"})],
)
def test_nothing_is_loaded_that_is_not_used(
    table: Path, arguments: tuple[str, ...], allowed: set[str]
):
    code = (
        "import sys; from pufferfish.cli import main; main();"
        f"heavy = {HEAVY - allowed!r} & set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    # Of several noises the verdict does not tell what a channel would give.
    more = (table, *COLUMNS, "--epsilon", "2") if "calibrate" in arguments else ()
    done = run_process(*arguments, *more, code=code)
    assert done.status == 0, done.err


def test_an_encoding_without_these_letters(tmp_path: Path):
    table = write(tmp_path, "t.csv", rows("größer,0", "größer,1", "b,1", header="s,naïve"))
    environment = os.environ | {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    for form in ("table", "json"):
        done = run_process(
            "calibrate", table, "--secret", "s", "--public", "naïve", "--epsilon", 1,
            "--format", form, env=environment,
        )  # fmt: skip
        assert done.status == 0, done.err
        if form == "json":
            assert strict_json(done.out)["scenario"]["public"] == "naïve"


def test_a_reader_that_has_gone_is_no_error(table: Path):
    reading, writing = os.pipe()
    os.close(reading)
    done = run_process("calibrate", table, *COLUMNS, stdout=writing)
    os.close(writing)
    assert (done.status, done.err) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output(table: Path):
    with open("/dev/full", "wb") as full:
        done = run_process("calibrate", table, *COLUMNS, stdout=full)
    check_refused(done, "standard output")


@POSIX
@pytest.mark.parametrize("form", ["table", "json"])
def test_closed_streams(table: Path, form: str):
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *COMMAND, "calibrate", table, *COLUMNS, "--format", form],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("pufferfish: error: ")
    assert done.stderr.count("\n") == 1


# Says that the noise is about to be drawn, with the output open, and then hangs: a signal waits for
# the batch that is being drawn.
HANGING = """
import sys, time
from pathlib import Path
from pufferfish.cli import main
from pufferfish.mechanisms.laplace import DiscreteLaplace

def hang(self, size, entropy=None):
    Path(sys.argv.pop()).touch()
    time.sleep(5)

DiscreteLaplace.noise = hang
sys.exit(main(sys.argv[1:-1]))
"""


@POSIX
@pytest.mark.parametrize(
    "number, status, word",
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_signals_leave_nothing_half_written(
    plan: Path, number: signal.Signals, status: int, word: str
):
    folder = plan.parent
    sign = folder / "drawing"
    arguments = ["release", folder / "t.csv", "--plan", plan, "-o", folder / "out.csv"]
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING, *arguments, sign],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while not sign.exists():
            assert process.poll() is None, process.stderr
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (status, "", f"pufferfish: error: {word}\n")
    assert sorted(path.name for path in folder.iterdir()) == ["drawing", "plan.json", "t.csv"]


ASKING = """
import signal, sys, threading, os
signal.signal(signal.SIGINT, signal.default_int_handler)  # though the parent may ignore it
from pufferfish.cli import main
threading.Timer(2, os.kill, [os.getpid(), signal.SIGINT]).start()
sys.exit(main())
"""


@POSIX
def test_a_query_that_takes_for_ever_is_interrupted(tmp_path: Path):
    sql = "SELECT 'a' AS s, sum(range) % 5 AS x FROM range(1000000000000) GROUP BY range % 7"
    done = subprocess.run(
        [sys.executable, "-c", ASKING, "calibrate", "--sql", sql, *COLUMNS, "--epsilon", "1"],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "pufferfish: error: interrupted\n")


# Swallows the signal that arrives while rows are read, as compiled code may, and goes on.
SWALLOWING = """
import os, signal, sys
from pufferfish.cli import main
from pufferfish.tables.{module} import {name}

before, number = {name}.{method}, int(sys.argv.pop())

def swallow(self, *arguments, **options):
    try:
        os.kill(os.getpid(), number)
        signal.pause()
    except BaseException:
        pass
    return before(self, *arguments, **options)

{name}.{method} = swallow
{more}
sys.exit(main())
"""
CODING = SWALLOWING.format(module="encode", name="Encoder", method="encode", more="")
COUNTING = SWALLOWING.format(module="scan", name="ScanTable", method="groups", more="")
# Without the check the work goes on, which is what the tests below look for.
UNCHECKED = SWALLOWING.format(
    module="encode", name="Encoder", method="encode",
    more="from pufferfish.cli import process; process.check.__code__ = (lambda: None).__code__",
)  # fmt: skip


def check_stopped(folder: Path, code: str, number: signal.Signals, *arguments: object) -> None:
    """Check that a command that swallows a signal ends by it, with nothing written."""
    before = sorted(folder.iterdir())
    done = run_process(*arguments, number.value, code=code)
    word = "interrupted" if number == signal.SIGINT else "terminated"
    check_refused(done, word, status=128 + number)
    assert sorted(folder.iterdir()) == before


@POSIX
@BOTH
def test_a_swallowed_signal_ends_the_command_all_the_same(plan: Path, number: signal.Signals):
    folder = plan.parent
    table, output = folder / "t.csv", folder / "o.csv"
    check_stopped(folder, CODING, number, "release", table, "--plan", plan, "-o", output)
    save = folder / "p.json"
    check_stopped(folder, COUNTING, number, "calibrate", table, *COLUMNS, "--save", save)


@POSIX
def test_mutant_nobody_asks_for_the_signal(plan: Path):
    folder = plan.parent
    with pytest.raises(AssertionError):
        check_stopped(folder, UNCHECKED, signal.SIGINT, "release", folder / "t.csv", "--plan",
                      plan, "-o", folder / "o.csv")  # fmt: skip
    assert (folder / "o.csv").exists()


@POSIX
@BOTH
def test_what_a_library_says_of_a_signal_is_not_what_happened(table: Path, number: signal.Signals):
    code = """
import os, signal, sys
from pufferfish.cli import calibrate, main

number = int(sys.argv.pop())

def query(*_):
    try:
        os.kill(os.getpid(), number)
        signal.pause()
    except BaseException:
        raise RuntimeError("Query interrupted") from None

calibrate.scenario_of = query
sys.exit(main())
"""
    check_stopped(table.parent, code, number, "calibrate", table, *COLUMNS)


@POSIX
def test_ctrl_c_while_the_package_is_imported(table: Path):
    code = """
import os, signal, sys
from pufferfish.cli import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()

sys.meta_path.insert(0, Interrupting())
sys.exit(main())
"""
    check_refused(run_process("calibrate", table, *COLUMNS, code=code), "interrupted", status=130)


@POSIX
def test_a_signal_in_a_finalizer_is_no_traceback(table: Path):
    code = """
import os, signal, sys
from pufferfish.cli import calibrate, main

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

before = calibrate.scenario_of
def query(*arguments):
    Finalized()
    return before(*arguments)

calibrate.scenario_of = query
sys.exit(main())
"""
    done = run_process("calibrate", table, *COLUMNS, code=code)
    check_refused(done, "terminated", status=143)


@POSIX
@BOTH
def test_a_signal_after_the_work_is_done_changes_nothing(number: int):
    """The interpreter takes a while to end; what is written and said by then is done."""
    code = (
        "import atexit, os, time\n"
        f"atexit.register(lambda: (os.kill(os.getpid(), {int(number)}), time.sleep(0.2)))\n"
        "import sys; sys.argv = ['pufferfish', '--version']\n"
        "from pufferfish.cli import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert "pufferfish" in done.stdout


@pytest.mark.parametrize("seen, after", [(True, 0.0), (True, 60.0), (False, 0.0)])
def test_long_work_shows_how_far_it_is_on_a_terminal_alone(
    seen: bool, after: float, monkeypatch: pytest.MonkeyPatch
):
    stream: Any = io.StringIO()
    stream.isatty = lambda: seen
    monkeypatch.setattr(sys, "stderr", stream)
    step = process.progress(after)
    step(10, None)
    step(20, 30)
    shown = "10 rows\r20 of 30 rows\r" if seen and not after else ""
    assert stream.getvalue() == shown


LOADED = """
import sys
from pufferfish.cli.app import run
assert run(sys.argv[1:]) == 0
heavy = {"pyspark", "dask", "distributed", "ibis", "polars", "pandas", "scipy", "matplotlib"}
print("loaded", sorted(heavy & set(sys.modules)))
"""


def test_heavy_libraries_are_loaded_only_where_they_are_used(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for name in ("t.csv", "t/1.csv", "t/2.csv"):
        (tmp_path / name).write_text("s,x\n" + "a,1\na,2\na,2\nb,1\nb,1\nb,2\n")
    columns = ["--secret", "s", "--public", "x", "--epsilon", "1"]
    for command in (
        ["--help"], ["calibrate", "t.csv", *columns, "--save", "p.json"],
        ["calibrate", "t", *columns, "--mechanism", "all"],
        ["calibrate", "--sql", "SELECT * FROM 't.csv'", *columns],
        ["release", "t.csv", "--plan", "p.json", "-o", "o.csv", "--min-scale", "1"],
        ["release", "t", "--plan", "p.json", "-o", "o.parquet", "--min-scale", "1"],
        ["verify", "p.json", "t.csv"], ["sweep", "t.csv", *columns, "-o", "s.parquet"],
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", LOADED, *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.stdout.endswith("loaded []\n"), (command, done)
