# SPDX-License-Identifier: Apache-2.0
"""Real `pufferfish release --ledger` processes: many at once, and some killed at random times."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

import pufferfish as pf
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.records import ReleaseRecord

WORKERS = Path(__file__).parent / "workers.py"
ROWS = [f"{s},{x}" for s, x in [("a", 0), ("b", 5)] * 20]
#: So many releases fit in the budget of 1, and no more.
FIT = 10
SHARE = Fraction(1, FIT)
KILLED = -signal.SIGKILL

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")


class Books:
    """A table, a plan that costs a tenth of the budget, and a ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.table = folder / "table.csv"
        self.table.write_text("s,x\n" + "\n".join(ROWS) + "\n")
        prior = pf.Prior.from_table(self.table, secret="s", public="x")
        pf.calibrate(prior, SHARE, "l1").save(folder / "plan.json")
        self.ledger = Ledger.create(folder / "books.db")
        self.ledger.dataset("t", self.table, secret="s", budget=1)

    def arguments(self, number: int) -> list[str]:
        return [
            "release", str(self.table), "--plan", str(self.folder / "plan.json"),
            "--ledger", str(self.ledger.path), "-o", str(self.output(number)),
        ]  # fmt: skip

    def output(self, number: int) -> Path:
        return self.folder / f"out{number}.csv"

    def log(self, number: int) -> Path:
        return self.folder / f"log{number}"

    @property
    def outputs(self) -> int:
        return len(list(self.folder.glob("out*.csv")))

    def entries(self) -> tuple[ReleaseRecord, ...]:
        return self.ledger.show().releases

    def check(self) -> None:
        """Check that nothing is overspent, and that every output is whole and was charged."""
        entries = self.entries()
        assert len(entries) <= FIT, "overspent"
        bounds = [entry.bound or 99 for entry in entries]
        assert bounds == sorted(set(bounds)), "two releases did not know of each other"
        assert all(bound <= 1 for bound in bounds), "overspent"
        assert self.ledger.verify(self.table).differences == ()
        assert self.outputs <= len(entries), "an output was not charged"
        assert sum(e.state == "released" for e in entries) <= self.outputs, "an output was lost"
        for output in self.folder.glob("out*.csv"):
            assert len(output.read_text().splitlines()) == 1 + len(ROWS), "half an output"

    def check_one(self, number: int, status: int) -> None:
        """Check what one command says it did."""
        written = self.output(number).exists()
        if status == 0:
            assert written, "an output was lost"
        elif status != KILLED:
            said = self.log(number).read_text()
            assert (status, said.count("\n")) == (1, 1), said
            assert "refused: with this release the joint loss" in said
            assert "over the budget 1; " in said
            assert not written, "what was refused was released"


class Commands:
    """Starts whole commands quickly, each as a process of its own; see workers.py."""

    def __init__(self, mutant: str) -> None:
        command, pipe = [sys.executable, str(WORKERS), mutant, "commands"], subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._answer() == "ready"

    def start(self, books: Books, number: int) -> int:
        return int(self._ask([*books.arguments(number), str(books.log(number))]))

    def wait(self, pid: int) -> int:
        return int(self._ask(pid))

    def _ask(self, task: object) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def commands_of(mutant: str = "none") -> Iterator[Commands]:
    running = Commands(mutant)
    try:
        yield running
    finally:
        running.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with commands_of() as running:
        yield running


def at_once(
    commands: Commands,
    books: Books,
    numbers: Sequence[int],
    victims: Sequence[int] = (),
    seconds: float = 0,
) -> Counter[str]:
    """Run commands at once, check what they leave, and return what became of them.

    ``numbers``, one for each command, were not used before; the ``victims`` among them are killed
    at random moments within ``seconds``.
    """
    before = [entry.id for entry in books.entries()]
    pids = {number: commands.start(books, number) for number in numbers}
    start, charged = time.monotonic(), before
    moments = sorted(random.uniform(0, seconds) for _ in victims)
    for number, moment in zip(victims, moments, strict=True):
        time.sleep(max(0, start + moment - time.monotonic()))
        os.kill(pids[number], signal.SIGKILL)  # nobody else has its id, as nobody waited for it yet
        charged = [entry.id for entry in books.entries()]
    statuses = {number: commands.wait(pid) for number, pid in pids.items()}
    books.check()
    for number, status in statuses.items():
        assert status != KILLED or number in victims
        books.check_one(number, status)
    now = [entry.id for entry in books.entries()]
    assert now[: len(charged)] == charged, "a charge was lost"
    became = Counter(statuses.values())
    new = len(now) - len(before)
    written = sum(books.output(number).exists() for number in numbers)
    assert became[0] <= written <= new <= became[0] + became[KILLED]
    return Counter(
        {
            "done": became[0],
            "refused": became[1],
            "killed uncharged": became[0] + became[KILLED] - new,
            "killed charged": new - written,
            "killed after the output": written - became[0],
        }
    )


def round_of_twenty(
    commands: Commands, folder: Path, kills: int = 0, seconds: float = 0
) -> Counter[str]:
    """Run twenty commands at once, of which ten fit."""
    books = Books(folder)
    numbers = range(20)
    seen = at_once(commands, books, numbers, random.sample(numbers, kills), seconds)
    entries = books.entries()
    # Those that are left want more than the whole budget, whenever the others were killed.
    assert len(entries) == FIT, "a release was lost"
    if not kills:
        assert {entry.state for entry in entries} == {"released"}
        assert seen["done"] == seen["refused"] == FIT
    return seen


@pytest.mark.parametrize("rounds", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_twenty_at_once(tmp_path: Path, commands: Commands, rounds: int) -> None:
    """In every other round five of the twenty are killed."""
    start = time.monotonic()
    seen = round_of_twenty(commands, tmp_path / "0")
    seconds = time.monotonic() - start
    for number in range(1, rounds):
        seen += round_of_twenty(commands, tmp_path / str(number), 5 * (number % 2), seconds)
    assert seen["killed uncharged"] or rounds == 1


@pytest.mark.parametrize(
    "mutant, fault",
    [
        ("blind", "did not know of each other|overspent"),
        ("after", "was not charged|was refused was released"),
    ],
)
def test_a_wrong_ledger_is_noticed(tmp_path: Path, mutant: str, fault: str) -> None:
    with commands_of(mutant) as running, pytest.raises(AssertionError, match=fault):
        round_of_twenty(running, tmp_path / "books")


def kill_rounds(commands: Commands, folder: Path, rounds: int) -> Counter[str]:
    """Start two releases, kill each at a random time, and so on; return what became of them."""
    books, number = Books(folder / "0"), 0
    start = time.monotonic()
    assert at_once(commands, books, [number])["done"] == 1
    whole = time.monotonic() - start
    seen: Counter[str] = Counter()
    for round_number in range(rounds):
        if len(books.entries()) + 2 > FIT:
            books = Books(folder / str(round_number + 1))
        pair = [number + 1, number + 2]
        number += 2
        seen += at_once(commands, books, pair, pair, 1.5 * whole)
    return seen


@pytest.mark.parametrize("rounds", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_times(tmp_path: Path, commands: Commands, rounds: int) -> None:
    seen = kill_rounds(commands, tmp_path, rounds)
    if rounds == 20:
        assert seen["done"]
        assert seen["killed uncharged"]
        # Which of the two moments is hit depends on the machine; one of them is.
        assert seen["killed charged"] + seen["killed after the output"]


def test_interrupted_says_what_stays(tmp_path: Path) -> None:
    """A signal after the charge: the release stays charged, and the error line says so."""
    books = Books(tmp_path / "books")
    code = (
        "import os, signal, sys\n"
        "from pufferfish.release.pipeline import Prepared\n"
        "from pufferfish.cli import main\n"
        "def ended(*arguments, **options):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    raise AssertionError\n"
        "Prepared.write = ended\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *books.arguments(1)],
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    [entry] = books.entries()
    assert done.returncode == 143
    assert entry.state == "charged"
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("pufferfish: error: terminated")
    assert f"the release {entry.id} stays charged, whatever was seen of it" in line
    assert books.outputs == 0
