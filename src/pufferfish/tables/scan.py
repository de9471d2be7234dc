# SPDX-License-Identifier: Apache-2.0
"""Scan: what DuckDB reads, a file or the answer to a query, as a table.

It is read anew by every call, by all cores and within a limit of memory; only the columns in use
are read.
"""

import glob
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.tables.table import BATCH_ROWS, Table, check_type, column_names, one_array
from pufferfish.tables.text import Header, count_records, explain

_SETTINGS = {
    # Nothing is fetched from anywhere, and private rows are never spilled to the disk.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
}
#: Where Linux shows the open files of a process, each of which can be opened anew.
OPEN_FILES = "/proc/self/fd"


@dataclass(frozen=True)
class Source:
    """Where DuckDB reads: a file, a database of its own, or (no path) what a query names."""

    path: Path | None
    name: str  # what messages call it
    memory: str  # what DuckDB may take, as it reads it
    kind: str = "a table"  # what it is, in the error of one that cannot be read
    header: Header | None = None  # that of a text file
    database: bool = False
    progress: bool = False  # whether it shows on standard output how far it has come

    @contextmanager
    def connected(self) -> Iterator[tuple[Any, str]]:
        """Connect to DuckDB; return the connection, and the name under which it finds the file.

        DuckDB takes ``*`` or ``[`` in a name for a pattern of many files, and then reads the names
        of all files beside it. So a file is opened here, and goes by the number under which it is
        open. The message of an error may quote rows, and is not passed on.
        """
        import duckdb

        place = str(self.path) if self.database else ":memory:"
        with ExitStack() as stack:
            try:
                name = ""
                if self.path is not None and not self.database:
                    number = stack.enter_context(self.path.open("rb")).fileno()
                    known = os.path.isdir(OPEN_FILES)
                    name = f"{OPEN_FILES}/{number}" if known else str(self.path.absolute())
                    name = name if known else glob.escape(name)
                connection = stack.enter_context(
                    duckdb.connect(place, read_only=self.database, config=dict(_SETTINGS))
                )
                connection.execute(f"SET enable_progress_bar = {self.progress}")
                connection.execute(f"SET memory_limit = {literal(self.memory)}")
                connection.execute("SET TimeZone = 'UTC'")  # or times depend on the machine's
                connection.execute("SET lock_configuration = true")
                try:
                    yield connection, name
                except BaseException:  # whoever stops does not wait for the answer
                    connection.interrupt()
                    raise
            except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as e:
                # Of a query the first line quotes its own words; the others may quote the file.
                raise self._unreadable(": " + str(e).splitlines()[0]) from None
            except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
                if str(error).startswith("Out of Memory"):
                    raise InputError(
                        f"{self.name} cannot be read within {self.memory} of memory: give a "
                        "higher --memory-limit (memory_limit)"
                    ) from None
                raise self._unreadable() from None

    def _unreadable(self, why: str = "") -> InputError:
        if self.header is not None and self.path is not None:
            return explain(self.path, self.name, self.header)
        why = why or ": it is damaged, or of another kind"
        return InputError(f"cannot read {self.name} as {self.kind}{why}")


class ScanTable(Table):
    """A file, or the answer to a query.

    ``scan`` is DuckDB's table function or subquery, with ``{file}`` in the place of the path,
    ``fields`` are its expressions by the names of the columns, and ``decode`` turns its cells into
    raw cells.
    """

    def __init__(
        self, source: Source, scan: str, names: Sequence[str], fields: Sequence[str], *,
        decode: Callable[[pa.Array, str], pa.Array] | None = None,
        constants: Mapping[str, str | None] | None = None,
    ) -> None:  # fmt: skip
        self.name, self._source, self._scan, self._decode = source.name, source, scan, decode
        self.paths = tuple(p for p in [source.path] if p and not str(p).startswith(OPEN_FILES))
        self.is_text_file = source.header is not None
        self.textual = self.is_text_file or decode is not None
        more = constants or {}
        self.columns = column_names([*names, *more], self.name)
        own = ("NULL::VARCHAR" if text is None else literal(text) for text in more.values())
        self._fields = dict(zip(self.columns, [*fields, *own], strict=True))

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        with self._checked() as check, self._query(columns, True) as relation:
            pool = ThreadPoolExecutor(1)  # while this thread hears signals
            table = pool.submit(relation.to_arrow_table).result()
            pool.shutdown()
            counts = one_array(table.column(len(columns)))
            check(int(np.from_dlpack(counts).sum()))
        return pa.Table.from_arrays([*self._raw(columns, table), counts], table.column_names)

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        names, found = [self.column(name) for name in columns], 0
        with self._checked() as check, self._query(columns) as relation:
            # Older versions know the same reader under another name.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            for batch in read(rows):
                found += len(batch)
                yield pa.RecordBatch.from_arrays(self._raw(columns, batch), names=names)
            check(found)

    @contextmanager
    def _query(self, columns: Sequence[str], count: bool = False) -> Iterator[Any]:
        fields = [f"{self._fields[self.column(name)]} AS x{k}" for k, name in enumerate(columns)]
        more, end = (", count(*)", " GROUP BY ALL") if count else ("", "")
        with self._source.connected() as (connection, name):
            scan = self._scan.replace("{file}", literal(name), 1) if name else self._scan
            yield connection.sql(f"SELECT {', '.join(fields)}{more} FROM {scan}{end}")

    @contextmanager
    def _checked(self) -> Iterator[Callable[[int], None]]:
        """Count the records of a text file strictly while it is read, and compare the numbers.

        Whatever else is found wrong meanwhile, the strict count may know more of it.
        """
        source, stopped = self._source, threading.Event()
        if source.header is None or source.path is None:
            yield lambda found: None
            return
        pool = ThreadPoolExecutor(1)
        records = pool.submit(count_records, source.path, self.name, source.header, stopped)

        def check(found: int) -> None:
            if found != records.result():
                raise InputError(
                    f"{self.name} holds {records.result()} records, but {found} rows were read; it "
                    "changed while it was read, or a field holds a line end unlike the others"
                )

        try:
            yield check
        except InputError:
            records.result()
            raise
        finally:
            # The garbage collector may come here, and must not wait for a thread.
            stopped.set()
            pool.shutdown(wait=False)

    def _raw(self, columns: Sequence[str], found: Any) -> list[Any]:
        raw = []
        for cells, name in zip(found.columns, columns, strict=False):
            what = f"column {name!r} of {self.name}"
            check_type(cells.type, what)
            raw.append(self._decode(cells, what) if self._decode else cells)
        return raw


def literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
