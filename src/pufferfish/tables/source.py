# SPDX-License-Identifier: Apache-2.0
"""Sources: files, standard input and dataframes are opened as tables."""

import glob
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError, listed
from pufferfish.files import home_expanded, named_path, no_file
from pufferfish.numbers import text_of
from pufferfish.tables.frames import open_frame
from pufferfish.tables.table import (
    BATCH_ROWS,
    Table,
    arrow,
    check_type,
    column_names,
    distinct,
    one_array,
    strings,
)
from pufferfish.tables.text import Header, count_records, explain, opened, read_header

_TEXT = (".csv", ".tsv", ".tab", ".txt")
_JSON = (".json", ".ndjson", ".jsonl")
_PARQUET = (".parquet", ".pq")

_SETTINGS = {
    # Nothing is fetched from anywhere, and private rows are never spilled to the disk.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
}
#: Where Linux shows the open files of a process, each of which can be opened anew.
_OPEN_FILES = "/proc/self/fd"
_STDIN = "standard input"


class FileTable(Table):
    """A file that is read anew by every call, and of which only the columns in use are read.

    ``scan`` is the DuckDB table function that reads it, with ``{file}`` in the place of the path,
    ``names`` those of the columns and ``fields`` DuckDB's expressions for them; ``header`` is that
    of a text file, and ``decode`` turns DuckDB's cells into raw cells.
    """

    def __init__(
        self, path: Path, scan: str, names: Sequence[str], fields: Sequence[str], *,
        header: Header | None = None, decode: Callable[[pa.Array, str], pa.Array] | None = None,
    ) -> None:  # fmt: skip
        self.name = _name(path)
        self.path = None if self.name == _STDIN else path
        self.columns = column_names(names, self.name)
        self.is_text_file = header is not None
        self.textual = self.is_text_file or decode is not None
        self._path, self._scan, self._header, self._decode = path, scan, header, decode
        self._fields = dict(zip(self.columns, fields, strict=True))

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        with ThreadPoolExecutor(1) as pool:
            records = pool.submit(self._records)  # meanwhile
            try:
                with self._query(columns, ", count(*)", "GROUP BY ALL") as relation:
                    table = relation.to_arrow_table()
            finally:
                known = records.result()  # it may know more of what is wrong
        counts = one_array(table.column(len(columns)))
        self._check(int(np.from_dlpack(counts).sum()), known)
        return pa.Table.from_arrays([*self._raw(columns, table), counts], table.column_names)

    def groups_of(self, sets: Sequence[Sequence[str]]) -> list[pa.Table]:
        """Return the groups of several sets of columns, all from one pass for up to 64 columns."""
        names = list(dict.fromkeys(name for columns in sets for name in columns))
        if len(names) > 64 and len(sets) > 1:  # DuckDB's numbers of sets have no more bits
            half = len(sets) // 2
            return [*self.groups_of(sets[:half]), *self.groups_of(sets[half:])]
        fields = {name: self._fields[self.column(name)] for name in names}
        within = {frozenset(columns): ", ".join(fields[n] for n in columns) for columns in sets}
        more = f", count(*), grouping({', '.join(fields.values())})"
        end = f"GROUP BY GROUPING SETS (({'), ('.join(within.values())}))"
        known, groups = self._records(), []
        with self._query(names, more, end) as relation:
            table = relation.to_arrow_table()
        found = np.from_dlpack(one_array(table.column(len(names) + 1)))
        for columns in sets:
            # Each column that a set lacks is a bit of its number, that of the last one lowest.
            number = sum(1 << k for k, name in enumerate(reversed(names)) if name not in columns)
            part = table.take(arrow(np.flatnonzero(found == number)))
            part = part.select([*map(names.index, columns), len(names)])
            raw = [*self._raw(columns, part), one_array(part.column(len(columns)))]
            self._check(int(np.from_dlpack(raw[-1]).sum()), known)
            groups.append(pa.Table.from_arrays(raw, part.column_names))
        return groups

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        names = [self.column(name) for name in columns]
        known, found = self._records(), 0
        with self._query(columns) as relation:
            # Older versions know the same reader under another name.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            for batch in read(rows):
                found += len(batch)
                yield pa.RecordBatch.from_arrays(self._raw(columns, batch), names=names)
        self._check(found, known)

    def _records(self) -> int | None:
        """Return the number of records of a text file, counted strictly."""
        header = self._header
        return None if header is None else count_records(self._path, self.name, header)

    def _check(self, found: int, known: int | None) -> None:
        if known is not None and found != known:
            raise InputError(
                f"{self.name} holds {known} records, but {found} rows were read; it changed while "
                "it was read, or a field holds a line end unlike the others"
            )

    def _query(self, columns: Sequence[str], more: str = "", end: str = "") -> Any:
        fields = [f"{self._fields[self.column(name)]} AS x{k}" for k, name in enumerate(columns)]
        query = f"SELECT {', '.join(fields)}{more} FROM {self._scan} {end}"
        return _query(self._path, query, self._header)

    def _raw(self, columns: Sequence[str], found: Any) -> list[Any]:
        raw = []
        for cells, name in zip(found.columns, columns, strict=False):
            what = f"column {name!r} of {self.name}"
            check_type(cells.type, what)
            raw.append(self._decode(cells, what) if self._decode else cells)
        return raw


def open_table(source: Any, *, delimiter: str | None = None) -> Table:
    """Return the table behind a path, "-" (standard input), a dataframe or a Table."""
    if isinstance(source, Table):
        return source
    path = named_path(source) if isinstance(source, str | Path) else None
    if str(path) == "-":
        return _open_text(_standard_input(), delimiter)
    ending, packed = "", False
    if path is not None:
        path = home_expanded(path)
        _check_file(path)
        packed = path.suffix.lower() == ".gz"
        ending = (path.with_suffix("") if packed else path).suffix.lower()
    if path is not None and ending in _TEXT:
        return _open_text(path, delimiter)
    if delimiter is not None:
        raise InputError("a delimiter is for text files; leave it out")
    if path is None:
        return open_frame(source)
    if ending in _JSON:
        return _open_json(path, packed)
    if ending in _PARQUET and not packed:
        return _open_parquet(path)
    raise InputError(
        f"cannot tell what kind of table {path} is: "
        f"{f'its ending is {ending}' if ending else 'its name has no ending'}, but files are known "
        f"by {listed([*_TEXT, *_JSON, *_PARQUET], 20)} (text and JSON also with .gz); rename it, "
        "or save it as CSV (UTF-8)"
    )


def _check_file(path: Path) -> None:
    if not os.path.exists(path):
        raise InputError(no_file(path))
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no regular file"
        raise InputError(f"{path} is {kind}; name one file, - reads CSV from standard input")
    with opened(path, str(path)):
        pass


def _standard_input() -> Path:
    """Return the path of a nameless file in memory that holds all of standard input."""
    if not hasattr(os, "memfd_create"):
        raise InputError("standard input is read only on Linux; give the name of a file")
    file = os.memfd_create("table")
    with open(file, "wb", closefd=False) as memory:
        memory.write(sys.stdin.buffer.read())
    return Path(f"{_OPEN_FILES}/{file}")


def _name(path: Path) -> str:
    return _STDIN if str(path).startswith(_OPEN_FILES) else str(path)


def _open_text(path: Path, delimiter: str | None) -> FileTable:
    header = read_header(path, _name(path), delimiter)
    fields = [f"c{k}" for k in range(len(header.names))]
    columns = ", ".join(f"'{field}': 'VARCHAR'" for field in fields)
    packed = "gzip" if path.suffix.lower() == ".gz" else "none"
    scan = (
        f"read_csv({{file}}, auto_detect=false, header=true, columns={{{columns}}}, "
        f"delim={_quoted(header.delimiter)}, quote='\"', escape='\"', strict_mode=true, "
        f"null_padding=false, ignore_errors=false, hive_partitioning=false, compression='{packed}')"
    )
    return FileTable(path, scan, header.names, fields, header=header)


def _open_parquet(path: Path) -> FileTable:
    import pyarrow.parquet as pq

    scan = "read_parquet({file}, hive_partitioning=false)"
    # DuckDB gives other names to columns whose names differ only in case, or not at all.
    known = _described(path, f"(DESCRIBE SELECT * FROM {scan})")
    fields = ['"' + name.replace('"', '""') + '"' for name, *_ in known]
    with path.open("rb") as file:
        return FileTable(path, scan, pq.read_schema(file).names, fields)


def _open_json(path: Path, packed: bool) -> FileTable:
    with opened(path, str(path)) as file:
        while packed and file.read(2**22):  # to its checksum, which DuckDB does not look at
            pass
    kind = "gzip" if packed else "uncompressed"
    scan = f"read_json_objects({{file}}, format='auto', compression='{kind}')"
    kinds = _described(path, scan, "DISTINCT json_type(json), json_keys(json)")
    if {kind for kind, _ in kinds} != {"OBJECT"}:
        raise InputError(
            f"{path} holds no table: one is a list of JSON objects, or an object on each line"
        )
    for _, keys in kinds:  # none may be twice in one object
        column_names(keys, str(path))
    names = list(dict.fromkeys(key for _, keys in sorted(kinds) for key in keys))
    # Cells come as pieces of JSON, so that DuckDB guesses no types, dates or times.
    pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
    fields = [f"json -> {_quoted(pointer)}" for pointer in pointers]
    return FileTable(path, scan, names, fields, decode=_from_json)


def _described(path: Path, scan: str, what: str = "*") -> list[Any]:
    with _query(path, f"SELECT {what} FROM {scan}") as relation:
        return list(relation.fetchall())


@contextmanager
def _query(path: Path, query: str, header: Header | None = None) -> Iterator[Any]:
    """Run a query; the message of an error may quote rows, and is not passed on.

    DuckDB takes ``*`` or ``[`` in a name for a pattern of many files, and then reads the names of
    all files beside it. So the file is opened here, and goes by the number under which it is open.
    """
    import duckdb

    with path.open("rb") as file, duckdb.connect(":memory:", config=dict(_SETTINGS)) as connection:
        connection.execute("SET enable_progress_bar = false")
        known = os.path.isdir(_OPEN_FILES)
        name = f"{_OPEN_FILES}/{file.fileno()}" if known else glob.escape(str(path.absolute()))
        try:
            yield connection.sql(query.replace("{file}", _quoted(name), 1))
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if str(error).startswith("Out of Memory"):
                raise InputError(f"{_name(path)} cannot be read: the memory ran out") from None
            if header is not None:
                raise explain(path, _name(path), header) from None
            kind = "a Parquet file" if path.suffix.lower() in _PARQUET else "JSON"
            raise InputError(
                f"cannot read {path} as {kind}: it is damaged, or of another kind"
            ) from None


def _from_json(cells: Any, what: str) -> pa.Array:
    """Turn pieces of JSON into text; lists and objects are refused."""
    values, places = distinct(cells)
    texts: list[str | None] = []
    # With all digits: integers stay text.
    exact: dict[str, Any] = {"parse_float": Decimal, "parse_constant": str, "parse_int": str}
    for piece in values.to_pylist():
        value: Any = piece
        with suppress(ValueError):  # DuckDB also knows nan and inf
            value = json.loads(piece or "null", **exact)
        if isinstance(value, list | dict):
            raise InputError(f"{what} holds lists or objects, not numbers or text")
        texts.append(value if isinstance(value, str) else text_of(value) or None)
    return strings(texts).take(arrow(places))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
