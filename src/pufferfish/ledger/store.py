# SPDX-License-Identifier: Apache-2.0
"""Store: the file of a ledger, made, checked, locked and written so that nothing is lost.

Every use has a connection of its own, closed before it returns: nothing is carried over into a
forked process or another thread.

Journal
    A rollback journal (``DELETE``), not a write-ahead log: between two transactions the ledger is
    one file, and a copy of it is complete. The journal has the mode of the ledger, and is on the
    disk before the first page of the ledger changes. If a process is killed, or the disk fills up,
    the next one that opens the ledger brings back from it the state before the transaction.
Durability
    ``synchronous=EXTRA``: with ``FULL`` a commit is final when the journal is removed, but a power
    cut could undo that removal, and with it the commit; ``EXTRA`` writes the folder too.
Locks
    A writer begins with ``BEGIN IMMEDIATE``: it reads what is charged so far only when nobody else
    can charge any more, until it commits.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pufferfish.errors import InputError
from pufferfish.files import PRIVATE, write_whole

#: "PFLG": what SQLite files of this kind say of themselves, and the version of their tables.
APPLICATION = 0x50464C47
VERSION = 4

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
CREATE TRIGGER dataset_is_final BEFORE UPDATE ON dataset
    BEGIN SELECT RAISE(ABORT, 'a dataset and its budget never change'); END;
CREATE TRIGGER release_stays BEFORE DELETE ON release
    BEGIN SELECT RAISE(ABORT, 'a release is never deleted'); END;
CREATE TRIGGER release_is_final
    BEFORE UPDATE OF sequence, id, dataset, public, plan, own, bound, kind, time ON release
    BEGIN SELECT RAISE(ABORT, 'a release never changes'); END;
CREATE TRIGGER released_is_final BEFORE UPDATE OF state ON release WHEN NEW.state = 'charged'
    BEGIN SELECT RAISE(ABORT, 'a release never becomes undone'); END;
"""

#: Seconds to wait for other processes.
PATIENCE = 60.0
#: Seconds that SQLite waits by itself: so long a signal has to wait.
_TURN = 0.2
_SETTINGS = (
    "synchronous = EXTRA",
    "fullfsync = ON",  # on macOS fsync alone leaves data in the drive's cache
    "foreign_keys = ON",
    "trusted_schema = OFF",
    "temp_store = MEMORY",  # nothing private in files elsewhere
    "cell_size_check = ON",
    "journal_mode = DELETE",
)
#: What is wrong with a ledger, by how the name of SQLite's error begins.
_FAULTS = {
    "is no ledger, or is damaged; it was left as it is": ("SQLITE_CORRUPT", "SQLITE_NOTADB"),
    "is in use by another process; nothing was written; try again later": ("SQLITE_BUSY",),
    "or its folder cannot be read or written": ("SQLITE_CANTOPEN", "SQLITE_READONLY"),
    "is on a disk that fails, and may hold the last charge or not; look with pufferfish ledger "
    "show": ("SQLITE_IOERR_DELETE", "SQLITE_IOERR_DIR_FSYNC"),
    "is on a disk that is full or fails; nothing was written": ("SQLITE_FULL", "SQLITE_IOERR"),
}


def create(path: Path) -> None:
    """Make an empty ledger that only its owner can read (mode 0600), in one step."""
    with closing(_model()) as connection:
        content = connection.serialize()
    try:
        write_whole(path, content, mode=PRIVATE)
    except InputError:
        if os.path.lexists(path):
            raise InputError(f"{path} exists already; give the new ledger another name") from None
        raise


def check(path: Path) -> None:
    """Refuse a file that is no ledger this version can use; it is not changed by that.

    (Where a process was killed while it charged, its unfinished transaction is undone first.)
    """
    with reading(path) as connection, closing(_model()) as model:
        found = connection.execute("PRAGMA integrity_check(1)").fetchall()
        faults = [str(row[0]) for row in found if row != ("ok",)]
        if connection.execute("PRAGMA foreign_key_check").fetchall():
            faults.append("records are missing")
        if _objects(connection) != _objects(model):
            faults.append("its tables are not those of a ledger")
    if faults:
        fault = faults[0].replace("\n", " ")
        raise InputError(f"the ledger {path} is damaged, and was left as it is ({fault})")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection on which all that is read belongs to one moment.

    Nobody can charge meanwhile, so keep it short.
    """
    with _connected(path) as connection:
        _patiently(connection, "BEGIN")
        _objects(connection)  # takes the lock
        yield connection


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that nobody else writes beside; commit at the end, or undo it all.

    When the block is over without an exception, what was written is on the disk. Keep it short.
    """
    with _connected(path) as connection:
        _patiently(connection, "BEGIN IMMEDIATE")
        yield connection
        _patiently(connection, "COMMIT")  # those who still read may hold it up


def _model() -> sqlite3.Connection:
    """Return an empty ledger in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(
        f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; {SCHEMA}"
    )
    connection.execute("INSERT INTO notice VALUES (1, ?)", [NOTICE])
    return connection


def _objects(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(_patiently(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master"))


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection to a ledger; whatever was begun and not committed is undone."""
    _check_kind(path)
    with _opened(path, "mode=rw") as connection:
        for setting in _SETTINGS:
            _patiently(connection, f"PRAGMA {setting}")
        yield connection


def _check_kind(path: Path) -> None:
    """Look at what the file says it is, with neither a lock nor a file beside it."""
    # Only SQLite may open it: closing a file ends all locks of this process on it (POSIX).
    if not os.path.exists(path):
        raise InputError(
            f"there is no ledger {path}; make one with: pufferfish ledger open {path} --dataset "
            "NAME TABLE --secret COLUMN --budget E"
        )
    if not os.path.isfile(path):
        raise InputError(f"{path} is no plain file, and so no ledger")
    with _opened(path, "mode=ro&immutable=1") as connection:
        # Or else it refuses a file that is shorter than it says, as it is after a process was
        # killed within a commit, and until the journal is played back.
        connection.execute("PRAGMA writable_schema = ON")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise InputError(
            f"{path} is too short for a ledger, or a database of another program; it was left as "
            "it is"
        )
    if version != VERSION:
        raise InputError(
            f"the ledger {path} has the format {version}, and this version reads {VERSION} alone; "
            "it was left as it is"
        )


@contextmanager
def _opened(path: Path, options: str) -> Iterator[sqlite3.Connection]:
    """Give a connection; an InputError says what is wrong with the file."""
    uri = f"{path.absolute().as_uri()}?{options}"
    try:
        with closing(
            sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_TURN)
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        begins = _name(error).startswith
        fault = next((words for words in _FAULTS if begins(_FAULTS[words])), "cannot be used")
        raise InputError(f"the ledger {path} {fault} ({error})") from None


def _patiently(connection: sqlite3.Connection, statement: str) -> sqlite3.Cursor:
    """Execute a statement that needs a lock, again and again while others hold it."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not _name(error).startswith("SQLITE_BUSY") or time.monotonic() >= end:
                raise


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")
