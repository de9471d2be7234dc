# SPDX-License-Identifier: Apache-2.0
"""Releases in processes of their own: killed, interrupted, out of disk, and short of memory."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from release_cases import names, write_csv

PROLOGUE = f"""
import json, resource, sys, time, warnings
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
warnings.simplefilter("ignore")
from pufferfish.errors import InputError
from pufferfish.release.pipeline import release_file
from release_cases import job, prepare
source, output, *keep = sys.argv[1:]
spec = job([0, 1], 2.0)
"""

#: Writes the first batch, says so, and waits for what happens to it.
HANGING = """
def progress(done, total):
    if done < 200_000:
        print("writing", flush=True)
        time.sleep(300)
release_file(source, output, spec, keep, progress=progress)
"""

#: The same in the writing pass, after the dry one.
CHARGED = """
def progress(done, total):
    if done < total:
        print("writing", flush=True)
        time.sleep(300)
prepare(source, output, spec).write(progress)
"""

FULL_DISK = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    release_file(source, output, spec, keep)
except InputError as error:
    print(error)
"""

#: VmHWM is of this program alone; ru_maxrss would start from that of the process that forked it.
MEASURED = """
release_file(source, output, spec, keep)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps(int(peak.split()[1])))
"""


def start(program: str, *arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROLOGUE + program, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [("a", 0, "some text"), ("b", 1, "more text")] * 100_000
    return write_csv(tmp_path_factory.mktemp("table") / "in.csv", rows, "s,x,k")


ENDINGS = pytest.mark.parametrize(
    "ending", ["csv", *(pytest.param(e, marks=pytest.mark.slow) for e in ("csv.gz", "parquet"))]
)


@ENDINGS
@pytest.mark.parametrize("program", [HANGING, CHARGED], ids=["one pass", "two passes"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_leaves_nothing_under_the_name(
    table: Path, tmp_path: Path, how: signal.Signals, program: str, ending: str
) -> None:
    out = tmp_path / f"out.{ending}"
    with start(program, table, out) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        assert not out.exists()
        process.send_signal(how)
        _, complaint = process.communicate(timeout=300)
        assert process.returncode != 0
    if how is signal.SIGINT:
        assert complaint.rstrip().endswith("KeyboardInterrupt")
        assert names(tmp_path) == []
        return
    # Nobody can tidy up after SIGKILL, but what is left cannot be taken for the output.
    (left,) = names(tmp_path)
    assert left.startswith(f".out.{ending}.")
    assert left.endswith(".part")
    again = [sys.executable, "-c", PROLOGUE + "release_file(source, output, spec)", table, out]
    subprocess.run(again, check=True, timeout=300)
    assert names(tmp_path) == [left, out.name]


@ENDINGS
def test_a_full_disk_is_one_line(table: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    with start(FULL_DISK, table, out, "k") as process:
        line, complaint = process.communicate(timeout=300)
    assert complaint == ""
    assert line == f"cannot write {out}: File too large; nothing was written\n"
    assert names(tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_rows(tmp_path: Path, ending: str) -> None:
    peaks = []
    # The reader's own buffers grow up to a bound, which the smaller table reaches.
    for rows in (500_000, 1_500_000):
        table = tmp_path / f"{rows}.csv"
        with table.open("w", encoding="utf-8") as file:
            file.write("s,x,k\n")
            # Text that is different in every row: kept whole it would take 300 MB more.
            file.writelines(f"a,0,{k:0100}\nb,1,{k:0100}\n" for k in range(rows))
        with start(MEASURED, table, tmp_path / f"{rows}.out.{ending}", "k") as process:
            answer, complaint = process.communicate(timeout=3000)
        assert complaint == ""
        peaks.append(json.loads(answer))
        table.unlink()
    assert peaks[1] < 1.5 * peaks[0], peaks
