# SPDX-License-Identifier: Apache-2.0
"""The file of a ledger: many processes, killed ones, full disks, and files that are no ledgers."""

import math
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ledger.workers import NAME, add, change_against, charge_once, opened
from pufferfish.errors import InputError
from pufferfish.ledger import records, store
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.records import Dataset, ReleaseRecord, parse_budget, shortened
from pufferfish.ledger.store import VERSION
from release_cases import names

HERE = Path(__file__).parent
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and signals are POSIX's")


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return opened(tmp_path / "books.db")


def releases(path: Path) -> list[ReleaseRecord]:
    with store.reading(path) as connection:
        return records.releases(connection)


def ids(path: Path) -> list[str]:
    return [release.id for release in releases(path)]


def ran(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", PREFIX + program, str(HERE), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


PREFIX = """
import os, resource, signal, sys
sys.path.insert(0, sys.argv[1])
from fractions import Fraction
from pathlib import Path
from workers import add, charge_once
from pufferfish.errors import InputError
from pufferfish.ledger import store
path = Path(sys.argv[2])
def attempt(action):
    try:
        print(action())
    except InputError as error:
        print("refused:", error)
"""


# ---- records ----------------------------------------------------------------------------------


def test_bounds_are_written_down_and_read_back(books: Path) -> None:
    """Sums of many have long denominators, and are rounded up."""
    chance = random.Random(4)
    long = sum((Fraction(1, chance.getrandbits(53) | 1) for _ in range(300)), Fraction(0))
    assert long < shortened(long) < long + Fraction(1, 10**300)
    exact = [*map(Fraction, (0, 5e-324, 0.1, 1.7e308, "1/3")), Fraction(1, 10**800 + 1)]
    with store.writing(books) as connection:
        for bound in (*exact, long):
            add(connection, bound)
    assert [release.bound for release in releases(books)] == [*exact, shortened(long)]


@pytest.mark.parametrize("wrong", [0, -1, "0", "-1/2", "one", "inf", math.nan, "1,5", True, None])
def test_what_is_no_budget_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="a budget must be"):
        parse_budget(wrong)


def test_what_is_put_in_comes_out(books: Path) -> None:
    other = Dataset("o'; DROP", "höher", Fraction(1, 7), "e", 0, True)
    one = ReleaseRecord(NAME, "z, é", '{"a": 1}', False, Fraction(1, 3), "joint loss")
    with store.writing(books) as connection:
        records.add_release(connection, one)
        two = add(connection, Fraction(2))
        records.add_dataset(connection, other)
    for _ in range(2):
        with store.writing(books) as connection:
            records.mark_released(connection, one.id)
    store.check(books)
    with store.reading(books) as connection:
        known, again = records.datasets(connection)
        assert (known.name, again) == (NAME, other)
        first, second = records.releases(connection, NAME)
        assert records.releases(connection, "other") == []
    assert vars(first) == vars(one) | {"state": "released"}
    assert (second.id, second.state, second.own) == (two, "charged", True)


def test_nothing_is_added_after_an_exception(books: Path) -> None:
    def fail(error: type[BaseException]) -> None:
        with store.writing(books) as connection:
            add(connection, Fraction(1, 2))
            raise error

    before = books.read_bytes()
    for error in (RuntimeError, KeyboardInterrupt, InputError):
        with pytest.raises(error):
            fail(error)
    assert books.read_bytes() == before
    assert charge_once(books, Fraction(1, 9)) == ids(books)[0]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM release",
        "DELETE FROM dataset",
        "UPDATE dataset SET budget = '2'",
        "UPDATE release SET bound = '0'",
        "UPDATE release SET own = 1 - own",
        "UPDATE release SET state = 'charged'",
        "UPDATE release SET state = 'gone'",
        "UPDATE release SET state = 'released', plan = ''",
        "INSERT INTO dataset VALUES ('x', 's', x'31', 'd', 1, 0, 'now')",
        "INSERT INTO dataset VALUES ('x', 's', '1', 'd', 'many', 0, 'now')",
        f"INSERT INTO dataset VALUES ('{NAME}', 's', '1', 'd', 1, 0, 'now')",
        "INSERT INTO dataset SELECT 'x', secret, budget, digest, 1, 1, 'now' FROM dataset",
    ],
)
def test_the_file_itself_keeps_what_was_charged(books: Path, statement: str) -> None:
    with store.writing(books) as connection:
        records.mark_released(connection, add(connection, Fraction(1, 9)))
        add(connection, Fraction(1, 8))
    with closing(sqlite3.connect(books)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


# ---- the file ---------------------------------------------------------------------------------


@POSIX
def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """Nobody else at any moment: it is made with this mode, and so is its journal."""
    old = os.umask(0)
    try:
        books = opened(tmp_path / "books.db")
        with store.writing(books) as connection:
            add(connection, Fraction(1))
            for entry in tmp_path.iterdir():
                assert stat.S_IMODE(entry.stat().st_mode) == 0o600
            assert names(tmp_path) == ["books.db", "books.db-journal"]
    finally:
        os.umask(old)
    assert names(tmp_path) == ["books.db"]


def test_an_existing_file_is_never_replaced(tmp_path: Path, books: Path) -> None:
    before = books.read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for path in (books, tmp_path / "link" / ".." / "books.db"):
        with pytest.raises(InputError, match="exists already; give the new ledger another name"):
            Ledger.create(path)
    with pytest.raises(InputError, match="does not exist"):
        Ledger.create(tmp_path / "none" / "books.db")
    assert books.read_bytes() == before
    assert names(tmp_path) == ["books.db", "link"]


@pytest.mark.parametrize("name", ["a b?mode=memory#x%41.db", "é'\";--.db", "~x.db", "[a]*.db"])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    opened(tmp_path / name)
    [dataset] = Ledger.open(str(tmp_path / name)).show().datasets
    assert dataset.budget == 1
    assert names(tmp_path) == [name]


def other_program(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def overwrite(path: Path, place: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[place : place + len(data)] = data
    path.write_bytes(content)


def as_other_program(path: Path, *statements: str) -> None:
    path.unlink()
    other_program(path, "CREATE TABLE t (x)", *statements, "INSERT INTO t VALUES (1)")


NOISE = random.Random(1).randbytes(50_000)
OTHER = "too short for a ledger, or a database of another program"
SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda p: cut(p, 0), OTHER),
    "cut after the header": (lambda p: cut(p, 100), "damaged"),
    "cut in the middle": (lambda p: cut(p, 4096 * 4), "damaged"),
    "one byte short": (lambda p: cut(p, p.stat().st_size - 1), "damaged"),
    "random": (lambda p: p.write_bytes(NOISE), "no ledger, or is damaged"),
    "text": (lambda p: p.write_text("s,x\n" * 2000), "no ledger, or is damaged"),
    "random after the first page": (lambda p: overwrite(p, 4096, NOISE), "damaged"),
    "zeros": (lambda p: overwrite(p, 4096, bytes(8192)), "damaged"),
    "other program": (as_other_program, OTHER),
    "other program with a log": (lambda p: as_other_program(p, "PRAGMA journal_mode = WAL"), OTHER),
    "newer version": (
        lambda p: other_program(p, f"PRAGMA user_version = {VERSION + 1}"),
        f"the format {VERSION + 1}, and this version reads {VERSION} alone",
    ),
    "the version of 0.1.0": (lambda p: other_program(p, "PRAGMA user_version = 2"), "the format 2"),
    "another table": (lambda p: other_program(p, "CREATE TABLE t (x)"), "not those of a ledger"),
    "a trigger less": (lambda p: other_program(p, "DROP TRIGGER release_stays"), "not those of a"),
    "records are missing": (
        lambda p: change_against(p, "dataset_stays", "DELETE FROM dataset"),
        "records are missing",
    ),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_what_is_no_ledger_is_refused_and_left_alone(books: Path, kind: str) -> None:
    charge_once(books, Fraction(1, 9), plan="p" * 30_000)
    spoil, message = SPOILED[kind]
    spoil(books)
    before = books.read_bytes()
    with pytest.raises(InputError, match=message) as caught:
        store.check(books)
    assert str(books) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert books.read_bytes() == before
    assert names(books.parent) == ["books.db"]


@pytest.mark.parametrize("text", ["", "x", "1/0", "-1", "1/2/3", "inf"])
def test_a_damaged_bound_is_no_bound(books: Path, text: str) -> None:
    values = f"NULL, 'a', '{NAME}', 'x', '{{}}', 1, '{text}', '', '', 'charged'"
    other_program(books, f"INSERT INTO release VALUES ({values})")
    with pytest.raises(InputError, match="damaged: a bound"):
        releases(books)


def test_what_is_not_there_or_no_file(tmp_path: Path, books: Path) -> None:
    books.unlink()
    for path, message in (
        (books, "there is no ledger .*ledger open"), (tmp_path, "no plain file"),
        (tmp_path / "none" / "books.db", "no ledger"), ("a\0b", "name of a file"),
        ("/dev/null", "no plain file"), (None, "name of a file"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            Ledger.open(path)
    for action in (store.reading, store.writing):
        with pytest.raises(InputError, match="there is no ledger"), action(books):
            pass
    assert names(tmp_path) == []


FULL_DISK = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
attempt(lambda: charge_once(path, Fraction(1, 100), plan="p" * 100_000))
"""


@POSIX
@pytest.mark.parametrize("room", [0, 5000, 10_000, 60_000])
def test_a_full_disk_loses_nothing(books: Path, room: int) -> None:
    """No room for the journal, for part of it, for all of it, and for some pages of the file."""
    known = [charge_once(books, Fraction(1, 100), plan="q" * 20_000) for _ in range(3)]
    before = books.read_bytes()
    said = ran(FULL_DISK, books, room if room < 10_000 else len(before) + room - 10_000)
    assert f"refused: the ledger {books} is on a disk that is full or fails; nothing was" in said
    # The process is gone; whoever comes next undoes what it began, if anything is left of it.
    store.check(books)
    assert ids(books) == known
    assert books.read_bytes() == before
    assert names(books.parent) == ["books.db"]
    known.append(charge_once(books, Fraction(1, 100), plan="p" * 100_000))
    assert ids(books) == known


AS_NOBODY = """
os.path.exists(path)
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
attempt(lambda: store.check(path))
attempt(lambda: charge_once(path, Fraction(1, 9)))
attempt(lambda: store.create(path.with_name("new.db")))
"""


@POSIX
@pytest.mark.parametrize("mode, folder_mode", [(0o444, 0o555), (0o666, 0o555), (0o600, 0o755)])
def test_what_is_read_only_says_so(mode: int, folder_mode: int) -> None:
    if os.geteuid() and mode == 0o600:
        pytest.skip("needs a file of somebody else")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # so that others can reach it, where the tests run as root
        books = opened(folder / "books.db")
        charge_once(books, Fraction(1, 9))
        before = books.read_bytes()
        books.chmod(mode)
        folder.chmod(folder_mode)
        looked, charged, made = ran(AS_NOBODY, books).splitlines()
        folder.chmod(0o755)
        refused = f"refused: the ledger {books} or its folder cannot be read or written"
        assert looked.startswith(refused if mode == 0o600 else "None")  # looking at it is fine
        assert charged.startswith(refused)
        assert made.startswith("refused: cannot write")
        assert books.read_bytes() == before
        assert names(folder) == ["books.db"]


HALF_WAY = """
store._SETTINGS = (*store._SETTINGS, f"journal_mode = {sys.argv[3]}")
with store.writing(path) as connection:
    connection.execute("PRAGMA cache_size = 1")  # so that pages are written early
    for _ in range(20):
        add(connection, Fraction(1, 2), "p" * 10**5)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@POSIX
def test_a_half_written_transaction_is_undone(books: Path) -> None:
    """Killed when part of it is in the file already: the journal brings back what was there."""
    known = [charge_once(books, Fraction(1, 9)) for _ in range(3)]
    before = books.read_bytes()
    ran(HALF_WAY, books, "DELETE")
    assert books.read_bytes() != before
    assert names(books.parent) == ["books.db", "books.db-journal"]
    assert stat.S_IMODE((books.parent / "books.db-journal").stat().st_mode) == 0o600
    copies = [shutil.copytree(books.parent, books.parent / n) for n in ("one", "two")]
    # The first page may say already how many there will be, and the last ones are not there yet.
    overwrite(copies[0] / "books.db", 28, (10**6).to_bytes(4))
    store.check(copies[0] / "books.db")
    for folder in (*copies, books.parent):
        assert ids(folder / "books.db") == known
        assert (folder / "books.db").read_bytes() == before


@POSIX
def test_a_ledger_without_a_journal_would_be_lost(books: Path) -> None:
    charge_once(books, Fraction(1, 9))
    ran(HALF_WAY, books, "MEMORY")
    assert names(books.parent) == ["books.db"]
    with pytest.raises(InputError, match="damaged"):
        store.check(books)


# ---- many processes ---------------------------------------------------------------------------


class Workers:
    """Processes that spend, all started before any of them is told what to do."""

    def __init__(self, number: int, mutant: str = "none") -> None:
        command = [sys.executable, str(HERE / "workers.py"), mutant]
        pipe = subprocess.PIPE
        self.all = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(number)
        ]
        for process in self.all:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"

    def tell(self, *task: object) -> None:
        for process in self.all:
            assert process.stdin is not None
            process.stdin.write("\t".join(map(str, task)) + "\n")
            process.stdin.flush()

    def hear(self) -> list[str]:
        """All that they say until each is done."""
        said: list[str] = []
        for process in self.all:
            assert process.stdout is not None
            for line in iter(process.stdout.readline, "done\n"):
                assert line, "a process ended"
                said.append(line.rstrip("\n"))
        return said


@contextmanager
def workers(number: int, mutant: str = "none") -> Iterator[Workers]:
    running = Workers(number, mutant)
    try:
        yield running
    finally:
        for process in running.all:
            process.kill()
            process.communicate()


def round_of_spending(running: Workers, path: Path, parts: int, times: int) -> set[str]:
    """Let all spend 1/parts at once from a budget of 1; return what went wrong."""
    running.tell("spend", opened(path), Fraction(1, parts), times)
    said = running.hear()
    attempts = len(running.all) * times
    told = [text for text in said if text != "refused" and not text.startswith("failed")]
    charged = releases(path)
    faults = {
        "failed": any(text.startswith("failed") for text in said),
        "silent": len(said) != attempts,
        "lost": sorted(told) != sorted(release.id for release in charged),
        "overspent": len(charged) > parts,
        "not spent": len(charged) < min(parts, attempts),
        "wrong sums": [release.bound for release in charged]
        != [Fraction(k + 1, parts) for k in range(len(charged))],
    }
    return {fault for fault, found in faults.items() if found}


@pytest.mark.parametrize("rounds", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_many_processes_spend_at_once(tmp_path: Path, rounds: int) -> None:
    with workers(12) as dozen:
        for k in range(rounds):
            parts, times = [(8, 1), (5, 2), (11, 1), (40, 2)][k % 4]
            assert round_of_spending(dozen, tmp_path / f"{k}.db", parts, times) == set()


@pytest.mark.parametrize("mutant, fault", [("without", "overspent"), ("late", "failed")])
def test_without_the_immediate_transaction_the_rounds_fail(
    tmp_path: Path, mutant: str, fault: str
) -> None:
    with workers(6, mutant) as running:
        found: set[str] = set()
        for k in range(20):
            found |= round_of_spending(running, tmp_path / f"{k}.db", 5, 2)
            if fault in found:
                break
    assert fault in found


def rounds_of_killing(
    folder: Path, rounds: int, chance: random.Random, mutant: str = "none"
) -> int:
    """Kill processes that charge as fast as they can; return how many charges were durable."""
    durable = 0
    for k in range(rounds):
        path = opened(folder / f"{k}.db")
        with workers(3, mutant) as running:
            running.tell("hammer", path, "1/25", chance.choice([10, 200_000]))
            said: list[str] = []
            for process in chance.sample(running.all, len(running.all)):
                time.sleep(chance.random() * 0.15)
                process.kill()
                assert process.stdout is not None
                lines = process.stdout.read().splitlines(keepends=True)
                said += [line.strip() for line in lines if line.endswith("\n")]
        told = [text for text in said if text != "refused"]
        store.check(path)
        charged = releases(path)
        known = [release.id for release in charged]
        assert set(told) <= set(known), "lost"
        # A process may be killed after a charge was durable, and before it told so: it counts.
        assert len(known) <= len(told) + 3
        assert [r.bound for r in charged] == [Fraction(n + 1, 25) for n in range(len(charged))]
        assert len(known) <= 25, "overspent"
        assert all(release.state == "charged" for release in charged)
        more = [charge_once(path, Fraction(1, 25)) is None for _ in range(26 - len(known))]
        assert more == [*[False] * (25 - len(known)), True]
        assert names(folder) == [f"{k}.db"]
        path.unlink()
        durable += len(told)
    return durable


@POSIX
@pytest.mark.parametrize("rounds", [3, pytest.param(15, marks=pytest.mark.slow)])
def test_kills_at_random_moments_lose_nothing(tmp_path: Path, rounds: int) -> None:
    assert rounds_of_killing(tmp_path, rounds, random.Random()) > 0


@POSIX
def test_charges_that_are_told_too_early_are_caught_by_the_kills(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="lost"):
        rounds_of_killing(tmp_path, 20, random.Random(), "early")


# ---- waiting ----------------------------------------------------------------------------------

TRY = "store.PATIENCE = 0.5; attempt(lambda: charge_once(path, Fraction(1, 9)))"


def test_whoever_waits_gives_up_in_the_end(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the file lets go of no lock: closing it would, if it were not SQLite's doing."""
    monkeypatch.setattr(store, "PATIENCE", 0.5)
    with store.writing(books) as connection:
        add(connection, Fraction(1, 2))
        store.check(books)
        assert releases(books) == []  # not there before it is durable
        with pytest.raises(InputError, match="in use by another process; nothing was written"):
            charge_once(books, Fraction(1, 9))
        with pytest.raises(InputError, match="exists already"):
            store.create(books)
        assert "in use by another process" in ran(TRY, books)
    assert len(ids(books)) == 1


def test_readers_only_delay_those_who_write(books: Path) -> None:
    done: list[str | None] = []
    thread = threading.Thread(target=lambda: done.append(charge_once(books, Fraction(1, 9))))
    with store.reading(books) as connection:
        assert records.releases(connection) == []
        thread.start()
        thread.join(0.6)
        assert thread.is_alive()
        assert records.releases(connection) == []  # all of one moment
    thread.join()
    assert ids(books) == done


@pytest.mark.skipif(sys.platform != "linux", reason="what other systems do with locks differs")
def test_reading_the_file_by_hand_would_let_go_of_locks(books: Path) -> None:
    with store.writing(books):
        books.read_bytes()
        assert "in use" not in ran(TRY, books)


def test_a_ledger_that_another_program_set_to_a_log_is_set_back(books: Path) -> None:
    other_program(books, "PRAGMA journal_mode = WAL")
    known = charge_once(books, Fraction(1, 9))
    assert ids(books) == [known]
    assert names(books.parent) == ["books.db"]
