# SPDX-License-Identifier: Apache-2.0
"""Store: the file of a ledger, made, checked, locked and written so that nothing is lost.

Every use has a connection of its own, closed before it returns: nothing is carried over into a
forked process or another thread.

Journal
    A rollback journal (``DELETE``), not a write-ahead log. Between two transactions the ledger is
    one file, so that a copy of it is complete. The journal has the mode of the ledger. It is on
    the disk before the first page of the ledger changes: a process that is killed, or a disk that
    fills up, leaves a journal from which the next one that opens the ledger brings back the state
    before the unfinished transaction.
Durability
    ``synchronous=EXTRA``: with ``FULL`` a commit is final when the journal is removed, but a power
    cut could undo that removal, and with it the commit; ``EXTRA`` writes the folder too.
Locks
    A writer begins with ``BEGIN IMMEDIATE``: it reads what is charged so far only when nobody else
    can charge any more, until it commits.
"""

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pufferfish.errors import InputError, did_you_mean
from pufferfish.files import PRIVATE, write_whole

#: "PFLG": what SQLite files of this kind say of themselves, and the version of their tables.
APPLICATION = 0x50464C47
VERSION = 3

NOTICE = (
    "This ledger is private: it holds digests of the tables that were protected, and the plans. "
    "Do not publish it, and do not pass it on with a release. Keep one ledger for all releases "
    "about a secret: a copy of it does not know what is charged to the other."
)

#: Types are checked by CHECK, since STRICT tables cannot be opened by SQLite before 3.37. Triggers
#: keep what was charged: no release is deleted, and nothing but its state ever changes.
SCHEMA = """
CREATE TABLE notice (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    text TEXT NOT NULL CHECK (typeof(text) = 'text')
);
CREATE TABLE dataset (
    name TEXT NOT NULL PRIMARY KEY CHECK (typeof(name) = 'text'),
    secret TEXT NOT NULL CHECK (typeof(secret) = 'text'),
    budget TEXT NOT NULL CHECK (typeof(budget) = 'text'),
    digest TEXT NOT NULL CHECK (typeof(digest) = 'text'),
    rows INTEGER NOT NULL CHECK (typeof(rows) = 'integer' AND rows >= 0),
    other_people INTEGER NOT NULL CHECK (other_people IN (0, 1)),
    opened TEXT NOT NULL CHECK (typeof(opened) = 'text'),
    version INTEGER NOT NULL DEFAULT 0 CHECK (typeof(version) = 'integer'),
    UNIQUE (secret, digest)
);
CREATE TABLE release (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE CHECK (typeof(id) = 'text'),
    dataset TEXT NOT NULL REFERENCES dataset,
    public TEXT NOT NULL CHECK (typeof(public) = 'text'),
    plan TEXT NOT NULL CHECK (typeof(plan) = 'text'),
    own INTEGER NOT NULL CHECK (own IN (0, 1)),
    bound TEXT NOT NULL CHECK (typeof(bound) = 'text'),
    kind TEXT NOT NULL CHECK (typeof(kind) = 'text'),
    time TEXT NOT NULL CHECK (typeof(time) = 'text'),
    state TEXT NOT NULL CHECK (state IN ('charged', 'released'))
);
CREATE INDEX release_of_dataset ON release (dataset);
CREATE TRIGGER dataset_stays BEFORE DELETE ON dataset
    BEGIN SELECT RAISE(ABORT, 'a dataset is never deleted'); END;
CREATE TRIGGER budget_stays
    BEFORE UPDATE OF name, secret, budget, digest, rows, other_people, opened ON dataset
    BEGIN SELECT RAISE(ABORT, 'a dataset and its budget never change'); END;
CREATE TRIGGER release_stays BEFORE DELETE ON release
    BEGIN SELECT RAISE(ABORT, 'a release is never deleted'); END;
CREATE TRIGGER release_is_final BEFORE UPDATE ON release
    WHEN OLD.state <> 'charged' OR NEW.state <> 'released' OR
        (OLD.sequence, OLD.id, OLD.dataset, OLD.public, OLD.plan, OLD.own, OLD.bound, OLD.kind,
            OLD.time) IS NOT
        (NEW.sequence, NEW.id, NEW.dataset, NEW.public, NEW.plan, NEW.own, NEW.bound, NEW.kind,
            NEW.time)
    BEGIN SELECT RAISE(ABORT, 'a release never changes'); END;
CREATE TRIGGER version_of_dataset AFTER INSERT ON release
    BEGIN UPDATE dataset SET version = version + 1 WHERE name = NEW.dataset; END;
"""

#: Told now and then, while another process holds the ledger, how many seconds that took so far.
Waiting = Callable[[float], None]

#: Seconds to wait for other processes.
PATIENCE = 60.0
#: Seconds that SQLite waits by itself: signals, and whoever wants to be told, wait as long.
_TURN = 0.2
_JOURNAL = "DELETE"
_SETTINGS = (
    "synchronous = EXTRA",
    "fullfsync = ON",  # on macOS fsync alone leaves data in the drive's cache
    "foreign_keys = ON",
    "trusted_schema = OFF",
    "temp_store = MEMORY",  # nothing private in files elsewhere
    "cell_size_check = ON",
)


def create(path: Path) -> None:
    """Make an empty ledger that only its owner can read (mode 0600), in one step."""
    taken = InputError(f"{path} exists already; give the new ledger another name")
    if os.path.lexists(path):
        raise taken
    try:
        # Made elsewhere, where it holds nothing private yet; it appears complete.
        with tempfile.TemporaryDirectory(prefix="pufferfish-") as folder:
            file = Path(folder) / "ledger"
            with closing(sqlite3.connect(file, isolation_level=None)) as connection:
                connection.execute("PRAGMA encoding = 'UTF-8'")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
                connection.execute("INSERT INTO notice VALUES (1, ?)", [NOTICE])
            content = file.read_bytes()
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"cannot make the ledger {path}: {error}") from None
    try:
        write_whole(path, content, mode=PRIVATE)
    except InputError:
        if os.path.lexists(path):  # somebody else was quicker
            raise taken from None
        raise


def check(path: Path, patience: float = PATIENCE, waiting: Waiting | None = None) -> None:
    """Refuse a file that is no ledger this version can use; it is not changed by that.

    (Where a process was killed while it charged, its unfinished transaction is undone first.)
    """
    _check_file(path)
    _check_kind(path)
    with _connected(path, patience, waiting) as wait:
        wait("BEGIN")
        faults = [str(row[0]) for row in wait("PRAGMA integrity_check(1)") if row != ("ok",)]
        if wait("PRAGMA foreign_key_check").fetchone() is not None:
            faults.append("records are missing")
        with closing(sqlite3.connect(":memory:")) as model:
            model.executescript(SCHEMA)
            if _objects(wait.connection) != _objects(model):
                faults.append("its tables are not those of a ledger")
        if faults:
            fault = faults[0].replace("\n", " ")
            raise InputError(f"the ledger {path} is damaged ({fault}); it was left as it is")


@contextmanager
def reading(path: Path, patience: float, waiting: Waiting | None) -> Iterator[sqlite3.Connection]:
    """Give a connection on which all that is read belongs to one moment; keep it short."""
    _check_file(path)
    with _connected(path, patience, waiting) as wait:
        wait("BEGIN")
        _check_same(wait, path)
        yield wait.connection


@contextmanager
def writing(path: Path, patience: float, waiting: Waiting | None) -> Iterator[sqlite3.Connection]:
    """Give a connection that nobody else writes beside; commit at the end, or undo it all.

    When the block is over without an exception, what was written is on the disk.
    """
    _check_file(path)
    for place, what in ((path, "it"), (path.parent, f"its folder {path.parent}")):
        if not _access(place, os.W_OK):  # SQLite keeps its journal in the folder
            raise InputError(f"cannot write to the ledger {path}: {what} is read-only")
    with _connected(path, patience, waiting) as wait:
        (mode,) = wait(f"PRAGMA journal_mode = {_JOURNAL}").fetchone()
        if mode.upper() != _JOURNAL:
            raise InputError(f"the ledger {path} is in use by a program in another mode ({mode})")
        _begin(wait)
        _check_same(wait, path)
        yield wait.connection
        _commit(wait)


def _explained(error: sqlite3.Error, path: Path) -> InputError:
    """Return the one line that says what is wrong with a ledger."""
    name = _name(error)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return InputError(f"the ledger {path} is damaged ({error}); it was left as it is")
    if name in ("SQLITE_IOERR_DELETE", "SQLITE_IOERR_DIR_FSYNC"):
        return InputError(
            f"the disk of the ledger {path} fails ({error}), and it is not certain whether the "
            f"last charge is on it; see: pufferfish ledger show {path}"
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return InputError(
            f"the disk of the ledger {path} is full or fails ({error}); nothing was charged, and "
            "what it held is kept"
        )
    return InputError(f"cannot use the ledger {path}: {error}")


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or ""


def _access(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _check_file(path: Path) -> None:
    # Never opened here: closing any file ends the locks that this process has on it (POSIX).
    try:
        if not path.exists():
            beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise InputError(
                f"there is no ledger {path}{did_you_mean(path.name, beside)}; make one with: "
                f"pufferfish ledger open {path} --dataset NAME TABLE --secret COLUMN --budget E"
            )
        if not path.is_file():
            raise InputError(f"{path} is no plain file, and so no ledger")
        if not _access(path, os.R_OK):
            raise InputError(f"cannot read the ledger {path}: you have no permission")
    except OSError as error:
        raise InputError(f"cannot read the ledger {path}: {error.strerror or error}") from None


def _check_kind(path: Path) -> None:
    """Look at what the file says it is, with neither a lock nor a file beside it."""
    try:
        with closing(_connect(path, "mode=ro&immutable=1")) as connection:
            # Or else it refuses a file that is shorter than it says, as it is after a process was
            # killed within a commit, and until the journal is played back.
            connection.execute("PRAGMA writable_schema = ON")
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        raise InputError(
            f"{path} is no ledger, or is damaged ({error}); it was left as it is"
        ) from None
    if application != APPLICATION:
        # SQLite takes the beginning of a page for an empty database.
        whole = path.stat().st_size >= 512
        what = "a database of another program, not a ledger" if whole else "too short for a ledger"
        raise InputError(f"{path} is {what}; it was left as it is")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older" if version > 0 else "an unknown"
        raise InputError(
            f"the ledger {path} was written by {age} version (its format is {version}, and this "
            f"version reads {VERSION} alone); it was left as it is"
        )


class _Patient:
    """Executes statements that need a lock, again and again while others hold it."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, patience: float, waiting: Waiting | None
    ) -> None:
        self.connection = connection
        self._path, self._patience, self._waiting = path, patience, waiting

    def __call__(self, statement: str) -> sqlite3.Cursor:
        start = time.monotonic()
        while True:
            try:
                return self.connection.execute(statement)
            except sqlite3.OperationalError as error:
                if not _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                    raise
            passed = time.monotonic() - start
            if passed >= self._patience:
                raise InputError(
                    f"the ledger {self._path} is in use by another process, which did not let go "
                    f"of it within {self._patience:g} s; nothing was charged; try again later"
                )
            if self._waiting is not None:
                self._waiting(passed)


@contextmanager
def _connected(path: Path, patience: float, waiting: Waiting | None) -> Iterator[_Patient]:
    """Give a connection to a ledger; whatever was begun and not committed is undone."""
    try:
        with closing(_connect(path, "mode=rw")) as connection:
            wait = _Patient(connection, path, patience, waiting)
            for setting in _SETTINGS:
                wait(f"PRAGMA {setting}")
            try:
                yield wait
            finally:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise _explained(error, path) from None


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_TURN)


def _begin(wait: _Patient) -> None:
    wait("BEGIN IMMEDIATE")


def _commit(wait: _Patient) -> None:
    # Those who still read may hold it up; the transaction then stays open, and is tried again.
    wait("COMMIT")


def _check_same(wait: _Patient, path: Path) -> None:
    """Look again at what the file says it is; this takes the lock of those who read."""
    (application,) = wait("PRAGMA application_id").fetchone()
    (version,) = wait("PRAGMA user_version").fetchone()
    wait("SELECT text FROM notice").fetchall()
    if (application, version) != (APPLICATION, VERSION):
        raise InputError(f"the ledger {path} was replaced by something else")


def _objects(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
