# SPDX-License-Identifier: Apache-2.0
"""The command ``explore`` as a process: how it starts and ends, and how large it grows."""

import gzip
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_runner import COMMAND, check_refused, run, run_process
from explorer_cases import CHOSEN, JSON, Explorer, explorer, sentence, student_table, wait_for

#: Imports of some modules wait until there is a file, and a command until it is ended.
WAITING = """
import os, sys, time
from importlib.machinery import PathFinder
class Waiting:
    def find_spec(self, name, path=None, target=None):
        if name not in {modules}:
            return None
        spec = PathFinder.find_spec(name, path, target)
        run, end = spec.loader.exec_module, time.monotonic() + 20
        def exec_module(module):
            while not os.path.exists({go!r}) and time.monotonic() < end:
                time.sleep(0.01)
            run(module)
        spec.loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, Waiting())
if {command!r} in sys.orig_argv:
    open({started!r}, "w").write(str(os.getpid()))
    time.sleep(100)
"""
HEAVY = {"pandas", "scipy", "matplotlib", "duckdb", "pyarrow", "flint", "narwhals"}


def waiting(folder: Path, *modules: str, command: str = "") -> dict[str, str]:
    """An environment in which processes wait: to import modules, or before they run a command."""
    site = folder / "site"
    site.mkdir()
    files = {"go": str(folder / "go"), "started": str(folder / "started")}
    text = WAITING.format(modules={*modules} or "()", command=command, **files)
    (site / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": str(site)}


@pytest.mark.parametrize("arguments, parts", [
    (("nothing.csv",), ("no file", "nothing.csv")),
    (("--demo", __file__), ("--demo", "leave out TABLE")),
    (("--prot", "1"), ("--prot",)),
    (("a.csv", "b.csv"), ("b.csv",)),
])  # fmt: skip
def test_what_is_wrong_is_told_in_a_line(arguments: tuple[str, ...], parts: tuple[str, ...]):
    check_refused(run("explore", *arguments), *parts)


@pytest.mark.parametrize("module", ["uvicorn", "starlette", "jinja2"])
def test_without_the_extra_its_name_is_told(module: str):
    code = f"import sys; sys.modules[{module!r}] = None; {COMMAND[2]}"
    check_refused(run_process("explore", code=code), "pufferfish-privacy[explorer]")


def test_the_first_page_waits_for_nothing_that_counts(tmp_path: Path):
    more = waiting(tmp_path, *HEAVY)
    with explorer("--demo", cwd=tmp_path, **more) as served:
        assert served.page.status_code == 200
        assert "Publish a column, hide a secret" in served.client.get("/").text
        assert served.client.get("/static/explorer.js").status_code == 200
        assert "The table is being opened." in served.page.text
        (tmp_path / "go").touch()
        assert "census.csv" in served.client.get("/begin?now").text


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_nothing_is_left_when_it_ends(tmp_path: Path, number: signal.Signals, status: int):
    table = tmp_path / "student.csv"
    table.write_bytes(student_table())
    before = {path.name for path in tmp_path.iterdir()}
    more = waiting(tmp_path, command="calibrate")
    with explorer(table, cwd=tmp_path, **more) as served:
        opened = served.client.get("/begin?now").url.path
        served.client.post("/upload?name=x.csv", content=student_table())
        folder = next(served.folder.iterdir())
        assert [path.suffix for path in folder.iterdir()] == [".csv"]
        assert "It runs" in served.client.post(f"{opened}/calibrate", data=CHOSEN).text
        wait_for((tmp_path / "started").exists)
        child = Path("/proc", wait_for((tmp_path / "started").read_text))
        assert child.exists()
        ended, told = served.end(number)
    assert ended == status
    assert told == ("" if status == 0 else "pufferfish: error: terminated\n")
    assert [*served.folder.iterdir()] == []
    assert not child.exists()
    assert {path.name for path in tmp_path.iterdir()} - before == {"site", "started", "tmp"}


def peak(served: Explorer) -> int:
    """Megabytes of memory that the process has had at most."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+)", status)[0]) // 1000


def chunks(number: int) -> Iterator[bytes]:
    chunk = b"yes,<2\n" * 150_000
    yield b"higher,studytime\n"
    yield from (chunk for _ in range(number))


@pytest.mark.slow
def test_an_upload_of_two_gigabytes_is_refused_and_not_kept(tmp_path: Path):
    with explorer(cwd=tmp_path) as served:
        before = peak(served)
        answer = served.client.post("/upload?name=x.csv", content=chunks(2000), headers=JSON)
        assert "larger than 1,000 MB" in sentence(answer)
        assert [*next(served.folder.iterdir()).iterdir()] == []
        assert peak(served) < before + 100
        assert served.end() == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("header, repeated", [
    (b"higher,studytime\n", b"yes,<2\nno,>10\n"), (b"", b"a" * 14), (b"", b"," * 14),
    (b"a,b\n", b'"' + b"x" * 13), (b"a,b\nx,", b"x" * 14), (b'[{"higher": "', b"x" * 14),
], ids=["rows", "name", "columns", "quotes", "cell", "json"])  # fmt: skip
def test_a_gzip_bomb(tmp_path: Path, header: bytes, repeated: bytes):
    """Two GB in some MB."""
    bomb = gzip.compress(header) + gzip.compress(repeated * 5_000_000, 9) * 30
    assert len(bomb) < 20e6
    with explorer(cwd=tmp_path) as served:
        served.client.timeout = 300
        name = "x.json.gz" if header[:1] == b"[" else "x.csv.gz"
        answer = served.client.post(f"/upload?name={name}", content=bomb, headers=JSON)
        if answer.status_code == 200:
            table = answer.json()["location"]
            form = CHOSEN if b"higher" in header else {"secret": "a", "public": "b", "epsilon": "1"}
            answer = served.client.get(table, params=form)
            assert answer.status_code in (200, 422)
        else:
            sentence(answer)
        assert peak(served) < 2500
        assert [path.name for path in os.scandir(tmp_path)] == ["tmp"]
