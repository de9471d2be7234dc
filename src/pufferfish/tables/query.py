# SPDX-License-Identifier: Apache-2.0
"""Query: the answer to a query, by DuckDB, SQLite, or a connection that is open already.

DuckDB and SQLite read without a right to write. A connection of another database is asked the
query as it stands, for nothing else means the same in all dialects of SQL; its rows are grouped
here.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.files import ANY_FILE, home_expanded, no_file
from pufferfish.tables.frames import open_frame, raw_cells
from pufferfish.tables.scan import ScanTable, Source
from pufferfish.tables.table import BATCH_ROWS, Table, column_names, one_array
from pufferfish.tables.text import opened

#: What a file of SQLite begins with.
_SQLITE = b"SQLite format 3\0"
#: What a query of SQLite may do.
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION,
          sqlite3.SQLITE_RECURSIVE}  # fmt: skip


def open_query(source: Any, sql: str, **how: Any) -> Table:
    """Return the answer to a query: of a database file, a connection, or files that it names.

    ``how`` are ``memory`` and ``progress`` of a :class:`Source`, for DuckDB alone.
    """
    if not isinstance(sql, str) or not sql.strip():
        raise InputError(f"a query is a text such as SELECT s, x FROM t, but {sql!r} was given")
    if source is None or isinstance(source, str | Path):
        path = None if source is None else home_expanded(Path(source))
        if path is not None:
            if not path.is_file():
                raise InputError(no_file(path))
            with opened(path, str(path)) as file:
                is_sqlite = file.read(len(_SQLITE)) == _SQLITE
            if is_sqlite:
                return CursorTable(_sqlite(path, sql), sql, f"the query of {path}", (path,))
        return _open_duckdb(path, sql, **how)
    if "duckdb" in type(source).__module__:  # whose cursors round times
        return open_frame(source.sql(sql))
    if not hasattr(source, "cursor"):
        raise InputError(
            "a query is asked of a DuckDB or SQLite file, or of an open DB-API or ADBC connection, "
            f"but an object of type {type(source).__name__} was given"
        )
    return CursorTable(source, sql, "the query")


def _open_duckdb(path: Path | None, sql: str, **how: Any) -> ScanTable:
    name = "the query" if path is None else f"the query of {path}"
    source = Source(path, name, kind="SQL of DuckDB", database=path is not None, **how)
    with source.connected() as (connection, _):
        statements = connection.extract_statements(sql)
        if [str(each.type) for each in statements] != ["StatementType.SELECT"]:
            raise InputError("a query is one SELECT statement, and no other")
        scan = f"({statements[0].query.strip().rstrip(';')}\n)"
        described = connection.sql(f"SELECT column_name, column_type FROM (DESCRIBE {scan})")
        known = described.fetchall()
    # By their places, for capitals tell no names apart; and a column may be declared to hold equal
    # texts where they differ in letters' case: not so here.
    binary = (' COLLATE "binary"' * (kind == "VARCHAR") for _, kind in known)
    fields = [f"#{k}{collation}" for k, collation in enumerate(binary, start=1)]
    found = ScanTable(source, scan, [name for name, _ in known], fields)
    found.patterns = (ANY_FILE,)
    return found


def _sqlite(path: Path, sql: str) -> sqlite3.Connection:
    """Return a connection that may read and do nothing else."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    connection.set_authorizer(lambda action, *_: int(action not in _READS))
    connection.set_progress_handler(lambda: 0, 1_000_000)  # Python looks for signals meanwhile
    try:
        connection.execute(f"EXPLAIN {sql}")  # compiled and not run: its errors quote no cells
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise InputError(f"cannot read the query of {path} as SQL of SQLite: {error}") from None
    return connection


class CursorTable(Table):
    """The answer to a query that an open connection is asked anew by every call."""

    textual = True  # numbers of a cursor become text, with all their digits

    def __init__(self, connection: Any, sql: str, name: str, paths: tuple[Path, ...] = ()) -> None:
        self._connection, self._sql, self.name, self.paths = connection, sql, name, paths
        self.patterns = (ANY_FILE,)
        with self._asked() as cursor:
            if not cursor.description:
                raise InputError("a query is one SELECT statement, and no other")
            self.columns = column_names((column[0] for column in cursor.description), name)

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        names = [self.column(name) for name in columns]
        places = list(map(self.columns.index, names))
        with self._asked() as cursor:
            for cells in _pieces(cursor, rows):
                raw = [one_array(raw_cells(cells[k])) for k in places]
                yield pa.RecordBatch.from_arrays(raw, names)

    @contextmanager
    def _asked(self) -> Iterator[Any]:
        try:
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(self._sql)
                yield cursor
        except InputError:
            raise
        except Exception as error:  # each library has its own; the text may quote cells
            raise InputError(f"{self.name} failed: {type(error).__name__}") from None


def _pieces(cursor: Any, rows: int) -> Iterator[list[Any]]:
    """Yield the columns of some rows at a time: by Arrow, or as lists of Python's objects."""
    if hasattr(cursor, "fetch_record_batch"):
        for batch in cursor.fetch_record_batch():
            yield batch.columns
    else:
        while found := cursor.fetchmany(rows):
            yield list(map(list, zip(*found, strict=True)))
