# SPDX-License-Identifier: Apache-2.0
"""The command ``sweep``: what it writes and says, and what is left of it when it is stopped."""

import csv
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_runner import check_refused, rows, run, write

#: A column whose name holds a comma, and one of text.
LINES = [f"{'ab'[k % 2]},{k % 3},{k % 4},{'pq'[k % 3 == 0]}" for k in range(60)]
GIVEN = ("--secret", "s", "--public", '"x,1",y', "--public", "z", "--epsilon", "0.5,1/3")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path, "t.csv", rows(*LINES, header='s,"x,1",y,z'))


def test_a_table_with_a_row_for_each_cell(table: Path) -> None:
    output = table.with_name("o.csv")
    done = run("sweep", table, *GIVEN, "-o", output, "--mechanism", "exact,channel")
    assert (done.status, done.out) == (0, "")
    assert done.err == (
        f"pufferfish: note: {output} is private; 2 rows with a reason, 0 rows with warnings\n"
    )
    with output.open() as file:
        found = list(csv.DictReader(file))
    assert [row["public"] for row in found] == ["x,1"] * 4 + ["y"] * 4 + ["z"] * 4
    single = run("calibrate", table, "--secret", "s", "--public", "y", "--epsilon", "0.5,1/3",
                 "--mechanism", "exact,channel", "--format", "json").data["results"]  # fmt: skip
    for row, alone in zip(found[4:8], single, strict=True):
        for name, value in alone.items():
            if isinstance(value, float):
                assert float(row[name]) == value
            else:
                assert row[name] == {None: "", True: "true", False: "false"}.get(value, value)
    check_refused(run("sweep", table, *GIVEN, "-o", output), "exists already")
    check_refused(run("sweep", table, *GIVEN, "-o", table, "--force"), "the input itself")
    check_refused(run("sweep", table, *GIVEN, "-o", "o.xlsx"), "must end in")
    check_refused(run("sweep", table, *GIVEN, "-o", "o.csv", "--secret", ","), "age,sex")
    check_refused(run("sweep", table, *GIVEN, "-o", "o.csv", "--public", "w"), "no column 'w'")


# Shows which processes compute, when two cells are done, and then hangs.
HANGING = """
import subprocess, sys, time
from pathlib import Path
from pufferfish.cli import main, process

made, make, sign = [], subprocess.Popen, Path(sys.argv.pop())

class Recorded(make):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        made.append(str(self.pid))

def progress(*_, **__):
    def step(done, cells):
        if done == 4:  # two of them do not apply
            part = sign.with_suffix(".part")
            part.write_text(" ".join(made))
            part.rename(sign)
            time.sleep(100)
    return step

subprocess.Popen, process.progress = Recorded, progress
sys.exit(main())
"""


def alive(number: str) -> bool:
    """Whether a process runs; one that has ended may wait long for init to take note of it."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="signals work otherwise there")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_a_command_that_was_stopped_goes_on(table: Path, number: signal.Signals) -> None:
    output, sign = table.with_name("o.csv"), table.with_name("sign")
    journal = table.with_name(".o.csv.sweep")
    command = ["sweep", table, *GIVEN, "--mechanism", "exact,channel", "-o", output]
    handler = f"import signal; signal.signal({int(signal.SIGINT)}, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", handler + HANGING, *command, "--jobs", "2", sign],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while not sign.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        check_refused(run(*command), str(journal), "in use")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    workers = sign.read_text().split()
    assert len(workers) == 2
    if number != signal.SIGKILL:
        word = "interrupted" if number == signal.SIGINT else "terminated"
        assert (process.returncode, out) == (128 + number, "")
        assert err == (
            f"pufferfish: error: {word}; what is done is kept in {journal}; run it again to go on\n"
        )
        assert not any(map(alive, workers))
    end = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(alive, workers))
    assert not output.exists()
    check_refused(run(*command, "--epsilon", "2"), "other data")
    assert run(*command).status == 0
    assert not journal.exists()
    if number != signal.SIGKILL:
        return
    whole = table.with_name("whole.csv")
    assert run(*command[:-1], whole, "--jobs", "1").status == 0
    assert output.read_bytes() == whole.read_bytes()
