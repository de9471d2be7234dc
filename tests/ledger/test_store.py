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
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.workers import NAME, charge_once, opened
from pufferfish.errors import InputError
from pufferfish.ledger.records import Charge, Records, create, open_store, parse_budget, shortened
from pufferfish.ledger.store import VERSION

HERE = Path(__file__).parent
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and signals are POSIX's")


@pytest.fixture
def store(tmp_path: Path) -> Records:
    return opened(create(tmp_path / "books.db"))


def ids(store: Records) -> list[str]:
    with store.reading() as view:
        return [release.id for release in view.releases()]


def add(charge: Charge, bound: Fraction | None) -> str:
    return charge.add_release(NAME, "x", "{}", True, bound, "joint loss").id


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


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
from workers import NAME, charge_once
from pufferfish.errors import InputError
from pufferfish.ledger import store
from pufferfish.ledger.records import Records, create, open_store
path = Path(sys.argv[2])
def attempt(action):
    try:
        print(action())
    except InputError as error:
        print("refused:", error)
"""


# ---- budgets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [10, 11, 3, 97])
def test_as_many_parts_as_fit_and_not_one_more(tmp_path: Path, parts: int) -> None:
    """In floating point ten times 0.1 is less than 1 and eleven times 1/11 more."""
    store = opened(create(tmp_path / "books.db"))
    for _ in range(parts):
        assert charge_once(store, Fraction(1, parts)) is not None
    assert charge_once(store, Fraction(1, parts)) is None
    with store.reading() as view:
        assert view.releases()[-1].bound == 1


NUMBERS = st.floats(min_value=0, allow_infinity=False) | st.fractions(min_value=0) | st.none()


@given(st.lists(NUMBERS, min_size=20))
@settings(max_examples=8, deadline=None)
def test_bounds_are_written_down_and_read_back(values: list[float | Fraction | None]) -> None:
    bounds = [None if value is None else Fraction(value) for value in values]
    with tempfile.TemporaryDirectory() as folder:
        store = opened(create(Path(folder) / "books.db"))
        with store.begin_charge() as charge:
            for bound in bounds:
                add(charge, bound)
        with store.reading() as view:
            assert [release.bound for release in view.releases()] == bounds


@pytest.mark.parametrize("wrong", [0, -1, "0", "-1/2", "one", "inf", math.nan, "1,5", True, None])
def test_what_is_no_budget_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="a budget must be"):
        parse_budget(wrong)


def test_the_sum_of_very_many_bounds_can_be_written_down(store: Records) -> None:
    chance = random.Random(4)
    exact = sum((Fraction(1, chance.getrandbits(53) | 1) for _ in range(300)), Fraction(0))
    with store.begin_charge() as charge:
        add(charge, exact)
    with store.reading() as view:
        found = view.releases()[0].bound
    assert found == shortened(exact)
    assert found is not None
    assert exact <= found < exact + Fraction(1, 10**300)


# ---- records ----------------------------------------------------------------------------------


def test_what_is_put_in_comes_out(store: Records) -> None:
    with store.begin_charge() as charge:
        one = charge.add_release(NAME, "z, é", '{"a": 1}', False, Fraction(1, 3), "joint loss")
        two = charge.add_release(NAME, "x", "{}", True, None, "worst-case sum")
        other = charge.add_dataset("o'; DROP", "höher", Fraction(1, 7), "e", 0, True)
    for _ in range(2):
        with store.begin_charge() as charge:
            charge.mark_released(one.id)
    with open_store(store.path).reading() as view:
        assert [dataset.name for dataset in view.datasets()] == [NAME, "o'; DROP"]
        assert view.dataset("o'; DROP") == other
        assert (other.secret, other.budget, other.digest, other.rows, other.other_people) == (
            "höher", Fraction(1, 7), "e", 0, True,
        )  # fmt: skip
        first, second = view.releases()
        assert view.releases(NAME) == [first, second]
        assert view.releases("other") == []
        assert "private" in view.notice()
    assert (one.state, first.state, second.state) == ("charged", "released", "charged")
    assert (first.sequence, second.sequence, second.id) == (1, 2, two.id)
    assert (first.column, first.plan, first.own) == ("z, é", '{"a": 1}', False)
    assert (first.bound, first.kind) == (Fraction(1, 3), "joint loss")
    assert (second.bound, second.own) == (None, True)


def test_nothing_is_added_after_an_exception(store: Records) -> None:
    def fail(error: type[BaseException]) -> None:
        with store.begin_charge() as charge:
            add(charge, Fraction(1, 2))
            raise error

    before = store.path.read_bytes()
    for error in (RuntimeError, KeyboardInterrupt, InputError):
        with pytest.raises(error):
            fail(error)
    assert store.path.read_bytes() == before
    assert charge_once(store, Fraction(1, 9)) == ids(store)[0]


@pytest.mark.parametrize(
    "action, message",
    [
        (lambda c: c.dataset("studnets"), "did you mean 'students'.*it has students"),
        (lambda c: c.mark_released("x"), "no release 'x'"),
        (lambda c: c.add_dataset(NAME, "s", Fraction(2), "0", 1, False), "cannot use"),
        (
            lambda c: c.add_dataset("b", "higher", Fraction(2), "d" * 64 + NAME, 1, True),
            "cannot use",
        ),
        (lambda c: c.add_dataset("\ud800", "s", Fraction(1), "0", 1, False), "surrogate"),
        (lambda c: c.add_release("none", "x", "", True, None, ""), "cannot use|damaged"),
    ],
)
def test_wrong_records_are_refused(
    store: Records, action: Callable[[Charge], object], message: str
) -> None:
    charge_once(store, Fraction(1, 9))
    before = store.path.read_bytes()
    with pytest.raises(InputError, match=message) as caught, store.begin_charge() as charge:
        action(charge)
    assert "\n" not in str(caught.value)
    assert store.path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM release",
        "DELETE FROM dataset",
        "UPDATE dataset SET budget = '2'",
        "UPDATE dataset SET digest = ''",
        "UPDATE dataset SET other_people = 1",
        "UPDATE release SET bound = '0'",
        "UPDATE release SET own = 1 - own",
        "UPDATE release SET state = 'charged'",
        "UPDATE release SET state = 'gone'",
        "UPDATE release SET state = 'released', plan = ''",
        "INSERT INTO dataset VALUES ('x', 's', x'31', 'd', 1, 0, 'now', 0)",
        "INSERT INTO dataset VALUES ('x', 's', '1', 'd', 'many', 0, 'now', 0)",
    ],
)
def test_the_file_itself_keeps_what_was_charged(store: Records, statement: str) -> None:
    with store.begin_charge() as charge:
        charge.mark_released(add(charge, Fraction(1, 9)))
        add(charge, Fraction(1, 8))
    connection = sqlite3.connect(store.path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()


# ---- the file ---------------------------------------------------------------------------------


@POSIX
def test_only_the_owner_can_read_it_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    system_open = os.open

    def watched(path: Any, flags: int, mode: int = 0o777, **rest: Any) -> int:
        descriptor = system_open(path, flags, mode, **rest)
        if flags & os.O_CREAT and str(path).startswith(str(tmp_path)):
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    old = os.umask(0)
    try:
        store = create(tmp_path / "books.db")
        with store.begin_charge() as charge:
            charge.add_dataset(NAME, "s", Fraction(1), "d", 1, False)
            journal = tmp_path / "books.db-journal"
            assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    finally:
        os.umask(old)
    assert modes == [0o600]
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert not store.exposed
    assert names(tmp_path) == ["books.db"]
    store.path.chmod(0o640)
    assert store.exposed


def test_an_existing_file_is_never_replaced(tmp_path: Path, store: Records) -> None:
    before = store.path.read_bytes()
    with pytest.raises(InputError, match="exists already; give the new ledger another name"):
        create(store.path)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already"):
        create(tmp_path / "link" / ".." / "books.db")
    with pytest.raises(InputError, match="does not exist"):
        create(tmp_path / "none" / "books.db")
    assert store.path.read_bytes() == before
    assert names(tmp_path) == ["books.db", "link"]


def test_of_many_that_make_it_at_once_one_succeeds(tmp_path: Path) -> None:
    results: list[str] = []

    def attempt() -> None:
        try:
            create(tmp_path / "books.db")
            results.append("made")
        except InputError as error:
            results.append(str(error))

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("made") == 1
    assert all("another name" in text and "--force" not in text for text in set(results) - {"made"})
    open_store(tmp_path / "books.db")
    assert names(tmp_path) == ["books.db"]


@pytest.mark.parametrize("name", ["a b?mode=memory#x%41.db", "é'\";--.db", "~x.db", "[a]*.db"])
def test_any_name_will_do(tmp_path: Path, name: str) -> None:
    opened(create(tmp_path / name))
    with open_store(str(tmp_path / name)).reading() as view:
        assert view.dataset(NAME).budget == 1
    assert names(tmp_path) == [name]


def other_program(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def overwrite(path: Path, place: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[place : place + len(data)] = data
    path.write_bytes(content)


def as_other_program(path: Path, *statements: str) -> None:
    path.unlink()
    other_program(path, "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)", *statements)


def forget_datasets(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    query = "SELECT sql FROM sqlite_master WHERE name = 'dataset_stays'"
    (trigger,) = connection.execute(query).fetchone()
    for statement in ("DROP TRIGGER dataset_stays", "DELETE FROM dataset", trigger):
        connection.execute(statement)
    connection.close()


NOISE = random.Random(1).randbytes(50_000)
SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda p: cut(p, 0), "too short for a ledger"),
    "cut in the header": (lambda p: cut(p, 50), "too short for a ledger"),
    "cut after the header": (lambda p: cut(p, 100), "damaged"),
    "cut in the middle": (lambda p: cut(p, 4096 * 4), "damaged"),
    "one byte short": (lambda p: cut(p, p.stat().st_size - 1), "damaged"),
    "random": (lambda p: p.write_bytes(NOISE), "no ledger, or is damaged"),
    "text": (lambda p: p.write_text("s,x\n" * 2000), "no ledger, or is damaged"),
    "random after the first page": (lambda p: overwrite(p, 4096, NOISE), "damaged"),
    "zeros": (lambda p: overwrite(p, 4096, bytes(8192)), "damaged"),
    "other program": (as_other_program, "a database of another program, not a ledger"),
    "other program with a log": (
        lambda p: as_other_program(p, "PRAGMA journal_mode = WAL", "INSERT INTO t VALUES (2)"),
        "a database of another program, not a ledger",
    ),
    "newer version": (
        lambda p: other_program(p, f"PRAGMA user_version = {VERSION + 1}"),
        f"a newer version .its format is {VERSION + 1}, and this version reads {VERSION} alone",
    ),
    "the version of 0.1.0": (
        lambda p: other_program(p, "PRAGMA user_version = 2"),
        f"an older version .its format is 2, and this version reads {VERSION} alone",
    ),
    "no version": (lambda p: other_program(p, "PRAGMA user_version = 0"), "unknown version"),
    "another table": (lambda p: other_program(p, "CREATE TABLE t (x)"), "not those of a ledger"),
    "a trigger less": (
        lambda p: other_program(p, "DROP TRIGGER release_stays"),
        "not those of a ledger",
    ),
    "a view for a table": (
        lambda p: other_program(p, "DROP TABLE notice", "CREATE VIEW notice AS SELECT 1 AS text"),
        "not those of a ledger",
    ),
    "records are missing": (forget_datasets, "records are missing"),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_what_is_no_ledger_is_refused_and_left_alone(store: Records, kind: str) -> None:
    charge_once(store, Fraction(1, 9), plan="p" * 30_000)
    spoil, message = SPOILED[kind]
    spoil(store.path)
    before = store.path.read_bytes()
    with pytest.raises(InputError, match=message) as caught:
        open_store(store.path)
    assert str(store.path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert store.path.read_bytes() == before
    assert names(store.path.parent) == ["books.db"]


def test_a_damaged_bound_is_no_bound(store: Records) -> None:
    for text in ("", "x", "1/0", "-1", "1/2/3", "nan"):
        other_program(
            store.path,
            "INSERT INTO release VALUES (NULL, hex(randomblob(6)), 'students', 'x', '{}', 1, "
            f"'{text}', '', '', 'charged')",
        )
        with store.reading() as view, pytest.raises(InputError, match="damaged: a bound"):
            view.releases()


def test_what_is_not_there_or_no_file(tmp_path: Path, store: Records) -> None:
    with pytest.raises(InputError, match=r"no ledger .*did you mean 'books.db'.*ledger open"):
        open_store(tmp_path / "boks.db")
    with pytest.raises(InputError, match="no plain file"):
        open_store(tmp_path)
    with pytest.raises(InputError, match="no ledger"):
        open_store(tmp_path / "none" / "books.db")
    with pytest.raises(InputError, match="cannot be a ledger"):
        open_store("a\0b")
    with pytest.raises(InputError, match="no plain file"):
        open_store("/dev/null")
    store.path.unlink()
    for action in (store.reading, store.begin_charge):
        with pytest.raises(InputError, match="there is no ledger"), action():
            pass
    assert names(tmp_path) == []


FULL_DISK = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
attempt(lambda: charge_once(Records(path), Fraction(1, 100), plan="p" * 100_000))
"""


@POSIX
@pytest.mark.parametrize("room", ["no journal", "part of the journal", "no page", "some pages"])
def test_a_full_disk_loses_nothing(store: Records, room: str) -> None:
    known = [charge_once(store, Fraction(1, 100), plan="q" * 20_000) for _ in range(3)]
    before = store.path.read_bytes()
    limit = {
        "no journal": 0,
        "part of the journal": 5000,
        "no page": len(before),
        "some pages": len(before) + 50_000,
    }[room]
    said = ran(FULL_DISK, store.path, limit)
    assert f"refused: the disk of the ledger {store.path} is full" in said
    assert "nothing was charged" in said
    # The process is gone; whoever comes next undoes what it began, if anything is left of it.
    assert ids(open_store(store.path)) == known
    assert store.path.read_bytes() == before
    assert names(store.path.parent) == ["books.db"]
    known.append(charge_once(store, Fraction(1, 100), plan="p" * 100_000))
    assert ids(store) == known


AS_NOBODY = """
os.path.exists(path)
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
attempt(lambda: open_store(path).path.name)
attempt(lambda: charge_once(Records(path), Fraction(1, 9)))
attempt(lambda: create(path.with_name("new.db")))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, for tests that run as root."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@POSIX
def test_what_is_read_only_says_so(open_folder: Path) -> None:
    store = opened(create(open_folder / "books.db"))
    charge_once(store, Fraction(1, 9))

    def attempts(mode: int, folder_mode: int) -> list[str]:
        before = store.path.read_bytes()
        store.path.chmod(mode)
        open_folder.chmod(folder_mode)
        said = ran(AS_NOBODY, store.path)
        open_folder.chmod(0o755)
        assert store.path.read_bytes() == before
        assert names(open_folder) == ["books.db"]
        return said.splitlines()

    looked, charged, made = attempts(0o444, 0o555)
    assert looked == "books.db"  # looking at it is fine
    assert charged == f"refused: cannot write to the ledger {store.path}: it is read-only"
    assert made.startswith("refused: cannot write")
    assert "Permission denied" in made
    if os.geteuid() == 0:
        store.path.chmod(0o666)
        _, charged, _ = attempts(0o666, 0o555)
        assert charged.endswith(f": its folder {open_folder} is read-only")
        looked, _, _ = attempts(0o600, 0o755)
        assert looked.endswith("you have no permission")


HALF_WAY = """
store._JOURNAL = sys.argv[3]
with Records(path).begin_charge() as charge:
    charge._connection.execute("PRAGMA cache_size = 1")  # so that pages are written early
    for _ in range(2):
        charge.add_release(NAME, "x", "p" * 10**6, True, Fraction(1, 2), "")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@POSIX
def test_a_half_written_transaction_is_undone(store: Records) -> None:
    """Killed when part of it is in the file already: the journal brings back what was there."""
    known = [charge_once(store, Fraction(1, 9)) for _ in range(3)]
    before = store.path.read_bytes()
    ran(HALF_WAY, store.path, "DELETE")
    assert store.path.read_bytes() != before
    assert names(store.path.parent) == ["books.db", "books.db-journal"]
    assert stat.S_IMODE((store.path.parent / "books.db-journal").stat().st_mode) == 0o600
    copies = [shutil.copytree(store.path.parent, store.path.parent / n) for n in ("one", "two")]
    # The first page may say already how many there will be, and the last ones are not there yet.
    overwrite(copies[0] / "books.db", 28, (10**6).to_bytes(4))
    for each, use in zip([*copies, store.path.parent], (open_store, Records, Records), strict=True):
        assert ids(use(each / "books.db")) == known
        assert (each / "books.db").read_bytes() == before


@POSIX
def test_a_ledger_without_a_journal_would_be_lost(store: Records) -> None:
    charge_once(store, Fraction(1, 9))
    ran(HALF_WAY, store.path, "MEMORY")
    assert names(store.path.parent) == ["books.db"]
    with pytest.raises(InputError, match="damaged"):
        open_store(store.path)


def test_a_commit_is_final_only_when_the_folder_is_written_too(store: Records) -> None:
    with store.begin_charge() as charge:
        for setting, value in (("synchronous", 3), ("journal_mode", "delete"), ("foreign_keys", 1)):
            assert charge._rows(f"PRAGMA {setting}") == [(value,)]


def test_between_transactions_the_file_alone_is_the_ledger(store: Records, tmp_path: Path) -> None:
    known = [charge_once(store, Fraction(1, 9)) for _ in range(3)]
    (tmp_path / "copy").mkdir()
    copy = shutil.copy(store.path, tmp_path / "copy" / "books.db")
    assert ids(open_store(copy)) == known


# ---- many processes ---------------------------------------------------------------------------


class Workers:
    """Processes that wait for tasks; see workers.py."""

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
    opened(create(path))
    running.tell("spend", path, Fraction(1, parts), times)
    said = running.hear()
    attempts = len(running.all) * times
    faults = {"failed" for text in said if text.startswith("failed")}
    told = [text for text in said if text != "refused" and not text.startswith("failed")]
    with open_store(path).reading() as view:
        releases = view.releases()
    if len(said) != attempts:
        faults.add("silent")
    if sorted(told) != sorted(release.id for release in releases):
        faults.add("lost")
    if len(releases) > parts:
        faults.add("overspent")
    if len(releases) < min(parts, attempts):
        faults.add("not spent")
    if [release.bound for release in releases] != [
        Fraction(k + 1, parts) for k in range(len(releases))
    ]:
        faults.add("wrong sums")
    if [release.sequence for release in releases] != list(range(1, len(releases) + 1)):
        faults.add("wrong order")
    return faults


@pytest.fixture(scope="module")
def dozen() -> Iterator[Workers]:
    with workers(12) as running:
        yield running


@pytest.mark.parametrize("rounds", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_many_processes_spend_at_once(tmp_path: Path, dozen: Workers, rounds: int) -> None:
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
        path = folder / f"{k}.db"
        store = opened(create(path))
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
        with open_store(path).reading() as view:
            releases = view.releases()
        known = [release.id for release in releases]
        assert set(told) <= set(known), "lost"
        # A process may be killed after a charge was durable, and before it told so: it counts.
        assert len(known) <= len(told) + 3
        assert [release.bound for release in releases] == [
            Fraction(n + 1, 25) for n in range(len(releases))
        ]
        assert len(known) <= 25, "overspent"
        assert all(release.state == "charged" for release in releases)
        rest = 25 - len(known)
        assert [charge_once(store, Fraction(1, 25)) is None for _ in range(rest + 1)] == [
            *[False] * rest,
            True,
        ]
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

TRY = "attempt(lambda: charge_once(Records(path, patience=0.5), Fraction(1, 9)))"


def test_whoever_waits_is_told_and_gives_up_in_the_end(store: Records) -> None:
    told: list[float] = []
    hasty = Records(store.path, patience=0.7, waiting=told.append)
    with store.begin_charge() as charge:
        add(charge, Fraction(1, 2))
        with pytest.raises(InputError, match=r"in use by another process.* within 0\.7 s; nothing"):
            charge_once(hasty, Fraction(1, 9))
        assert "in use by another process" in ran(TRY, store.path)
        with hasty.reading() as view:
            assert view.releases() == []  # not there before it is durable
    assert told == sorted(told)
    assert len(told) >= 2
    assert len(ids(store)) == 1


def test_readers_only_delay_those_who_write(store: Records) -> None:
    done: list[str | None] = []
    thread = threading.Thread(target=lambda: done.append(charge_once(store, Fraction(1, 9))))
    with store.reading() as view:
        assert view.releases() == []
        thread.start()
        thread.join(0.6)
        assert thread.is_alive()
        assert view.releases() == []  # all of one moment
    thread.join()
    assert ids(store) == done


def test_looking_at_the_file_lets_go_of_no_lock(store: Records) -> None:
    """Closing a file ends all locks of the process on it, unless SQLite closes it."""
    with store.begin_charge() as charge:
        open_store(store.path)
        with store.reading():
            pass
        with pytest.raises(InputError, match="exists already"):
            create(store.path)
        assert "in use" in ran(TRY, store.path)
        add(charge, Fraction(1, 2))
    assert len(ids(store)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="what other systems do with locks differs")
def test_reading_the_file_by_hand_would_let_go_of_them(store: Records) -> None:
    with store.begin_charge():
        store.path.read_bytes()
        assert "in use" not in ran(TRY, store.path)


def test_a_ledger_that_another_program_set_to_a_log_is_set_back(store: Records) -> None:
    other_program(store.path, "PRAGMA journal_mode = WAL")
    known = charge_once(store, Fraction(1, 9))
    assert ids(open_store(store.path)) == [known]
    assert names(store.path.parent) == ["books.db"]


def test_a_file_that_was_replaced_is_noticed(store: Records) -> None:
    as_other_program(store.path, "CREATE TABLE notice (text)")
    before = store.path.read_bytes()
    for action in (store.reading, store.begin_charge):
        with pytest.raises(InputError, match="replaced by something else"), action():
            pass
    assert store.path.read_bytes() == before
