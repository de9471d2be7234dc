# SPDX-License-Identifier: Apache-2.0
"""Real `pufferfish release --ledger` processes: many at once, and some killed at random times."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import pufferfish as pf
from cli_runner import COMMAND
from pufferfish.ledger import ledger as module
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.records import ReleaseRecord

ROWS = [f"{s},{x}" for s, x in [("a", 0), ("b", 5)] * 20]
#: Ten of these fit in 1, and no more.
SHARE = Fraction(1, 10)


#: Forks a process for each command that it is told: what takes long is loaded only once.
SERVER = """
import importlib, json, os, sys
for name in ("duckdb", "pyarrow.csv", "narwhals", "flint"):
    importlib.import_module(name)
from pufferfish.cli import main
import pufferfish.cli.running, pufferfish.ledger.ledger, pufferfish.cli.output, rich.console
import pufferfish.release.releaser, pufferfish.cli.describe, pufferfish.cli.progress
print("ready", flush=True)
for line in sys.stdin:
    task = json.loads(line)
    if isinstance(task, int):
        status = os.waitstatus_to_exitcode(os.waitpid(task, 0)[1])
        print(status, flush=True)
        continue
    child = os.fork()
    if child == 0:
        log = os.open(task.pop(), os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        os._exit(main(task))
    print(child, flush=True)
"""


class Server:
    """Starts real processes quickly."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._answer() == "ready"

    def start(self, arguments: list[str], log: Path) -> int:
        return int(self._ask([*arguments, str(log)]))

    def wait(self, pid: int) -> int:
        return int(self._ask(pid))

    def end(self) -> None:
        self._process.communicate(timeout=60)

    def _ask(self, task: object) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.end()


class Books:
    """A table, a plan that costs a tenth of the budget, and a ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.table = folder / "table.csv"
        self.table.write_text("s,x\n" + "\n".join(ROWS) + "\n")
        prior = pf.Prior.from_table(self.table, secret="s", public="x")
        pf.calibrate(prior, SHARE, "l1").save(folder / "plan.json")
        Ledger.create(folder / "books.db").open_account("s", 1)

    def arguments(self, number: int) -> list[str]:
        return [
            "release", str(self.table), "--plan", str(self.folder / "plan.json"),
            "--ledger", str(self.folder / "books.db"), "-o", str(self.output(number)),
        ]  # fmt: skip

    def output(self, number: int) -> Path:
        return self.folder / f"out{number}.csv"

    @property
    def outputs(self) -> int:
        return len(list(self.folder.glob("out*.csv")))

    def entries(self) -> list[ReleaseRecord]:
        return Ledger.open(self.folder / "books.db").entries()

    def check(self) -> None:
        """Check that nothing is overspent, and that every output was charged."""
        entries = self.entries()
        assert len(entries) <= 10, "overspent"
        bounds = [Fraction(entry.bound) for entry in entries]
        assert bounds == sorted(set(bounds)), "two releases did not know of each other"
        assert all(bound <= 1 for bound in bounds)
        assert self.outputs <= len(entries), "an output was not charged"
        assert sum(e.state == "released" for e in entries) <= self.outputs, "an output was lost"
        for output in self.folder.glob("out*.csv"):
            assert len(output.read_text().splitlines()) == 41
        assert Ledger.open(self.folder / "books.db").verify().differences == ()


def at_once(server: Server, books: Books, numbers: Iterable[int]) -> list[int]:
    log = books.folder / "log"
    return [server.wait(pid) for pid in [server.start(books.arguments(n), log) for n in numbers]]


def check_twenty(books: Books, statuses: list[int]) -> None:
    assert sorted(statuses) == [0] * 10 + [1] * 10
    books.check()
    entries = books.entries()
    assert len(entries) == 10
    assert books.outputs == 10
    assert {entry.state for entry in entries} == {"released"}


def test_twenty_at_once(tmp_path: Path, server: Server) -> None:
    books = Books(tmp_path / "books")
    check_twenty(books, at_once(server, books, range(20)))
    # One after another they would not fit any more, either.
    assert at_once(server, books, [20]) == [1]


@pytest.mark.slow
def test_twenty_of_the_command_at_once(tmp_path: Path) -> None:
    books = Books(tmp_path / "books")
    with open(books.folder / "log", "wb") as log:
        processes = [
            subprocess.Popen([*COMMAND, *books.arguments(n)], stdout=log, stderr=log)
            for n in range(20)
        ]
    check_twenty(books, [process.wait(timeout=600) for process in processes])


def test_without_a_look_at_the_version_they_overspend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check itself fails where several charge without knowing of each other."""
    books = Books(tmp_path / "books")
    ledger = Ledger.open(books.folder / "books.db")
    plan = pf.Plan.load(books.folder / "plan.json")
    subject = module.Subject.of(books.table, plan, "refuse", None)
    with ledger.store.reading() as view:
        state = module.read_state(view, "s", subject.identity.digest)
    monkeypatch.setattr(Ledger, "_check", lambda *arguments: None)
    monkeypatch.setattr(module, "read_state", lambda *arguments: state)
    for _ in range(2):
        ledger._charge(subject, False)
    with pytest.raises(AssertionError, match="did not know"):
        books.check()


def kill_rounds(server: Server, folder: Path, rounds: int, seed: int) -> dict[str, int]:
    """Start releases, kill each at a random time, and check what is left; return what happened."""
    rng = random.Random(seed)
    seen = {"killed before": 0, "killed charged": 0, "killed after": 0, "done": 0}
    books, number = Books(folder / "0"), 0
    start = time.monotonic()
    assert at_once(server, books, [number]) == [0]
    whole = time.monotonic() - start
    for round_number in range(rounds):
        if len(books.entries()) >= 9:
            books, number = Books(folder / str(round_number + 1)), 0
        before = len(books.entries())
        numbers = [number + 1, number + 2]
        number += 2
        pids = [server.start(books.arguments(n), books.folder / "log") for n in numbers]
        for pid in pids:
            time.sleep(whole * rng.uniform(0, 1))
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        statuses = [server.wait(pid) for pid in pids]
        books.check()
        new = len(books.entries()) - before
        outputs = [books.output(n).exists() for n in numbers]
        for status, written in zip(statuses, outputs, strict=True):
            assert status in (0, 1, -signal.SIGKILL)
            assert written or status != 0
        assert new >= sum(outputs)
        done = sum(status == 0 for status in statuses)
        seen["done"] += done
        seen["killed before"] += 2 - new
        seen["killed charged"] += new - sum(outputs)
        seen["killed after"] += sum(outputs) - done
    return seen


def test_killed_at_random_times(tmp_path: Path, server: Server) -> None:
    kill_rounds(server, tmp_path, 5, random.SystemRandom().randrange(10**6))


@pytest.mark.slow
def test_killed_at_random_times_200_rounds(tmp_path: Path, server: Server) -> None:
    seen = kill_rounds(server, tmp_path, 200, random.SystemRandom().randrange(10**6))
    print(seen)
    assert all(seen.values())


@pytest.mark.slow
def test_twenty_at_once_ten_rounds(tmp_path: Path, server: Server) -> None:
    for number in range(10):
        books = Books(tmp_path / str(number))
        check_twenty(books, at_once(server, books, range(20)))


def test_interrupted_says_what_stays(tmp_path: Path) -> None:
    """A signal after the charge: the release stays charged, and the error line says so."""
    books = Books(tmp_path / "books")
    code = (
        "import os, signal, sys\n"
        "import pufferfish.release as release\n"
        "from pufferfish.cli import main\n"
        "def ended(*arguments, **options):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    raise AssertionError\n"
        "release.release_file = ended\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [COMMAND[0], "-c", code, *books.arguments(1)],
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    [entry] = books.entries()
    assert done.returncode == 143
    assert entry.state == "charged"
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("pufferfish: error: terminated; the release " + entry.id)
    assert (
        f"stays charged, whatever was seen of it; see: pufferfish ledger show {books.folder}"
        in line
    )
    assert books.outputs == 0
