# SPDX-License-Identifier: Apache-2.0
"""Sources: files, standard input and dataframes are opened as tables."""

import glob
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.numbers import text_of
from pufferfish.tables.arrow import (
    check_type,
    distinct,
    integers,
    one_array,
    strings,
    to_numpy,
)
from pufferfish.tables.frames import open_frame
from pufferfish.tables.table import BATCH_ROWS, column_names
from pufferfish.tables.table import Table as Table
from pufferfish.tables.text import Header, check_gzip, count_records, explain, read_header

TEXT = (".csv", ".tsv", ".tab", ".txt")
JSON = (".json", ".ndjson", ".jsonl")
PARQUET = (".parquet", ".pq")
_SHEETS = (".xlsx", ".xls", ".ods", ".sav", ".dta")

_SETTINGS = {
    # Nothing is fetched from anywhere, and private rows are never spilled to the disk.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
}
#: Where Linux shows the open files of a process, each of which can be opened anew.
_OPEN_FILES = "/proc/self/fd"


class FileTable(Table):
    """A file that DuckDB reads; every call reads it anew, and only the columns in use.

    Parameters
    ----------
    path : Path
        The file.
    scan : str
        The DuckDB table function that reads it, with ``{file}`` in the place of the path.
    columns : sequence of str
        The names in the header.
    fields : sequence of str
        The names under which DuckDB knows these columns.
    header : Header, optional
        That of a text file.
    types : sequence of str, optional
        DuckDB's types of the columns, where they have one.
    decode : callable, optional
        Turns an array of DuckDB's cells into raw cells.
    """

    def __init__(
        self,
        path: Path,
        scan: str,
        columns: Sequence[str],
        fields: Sequence[str],
        *,
        name: str | None = None,
        header: Header | None = None,
        types: Sequence[str] = (),
        decode: Callable[[pa.Array, str], pa.Array] | None = None,
    ) -> None:
        self.name = str(path) if name is None else name
        self.path = path if name is None else None
        headless = header is not None and sum(map(_is_number, columns)) * 2 > len(columns)
        self.columns = column_names(columns, self.name, headless)
        self._path, self._scan, self._header, self._decode = path, scan, header, decode
        self._fields = dict(zip(self.columns, fields, strict=True))
        self._types = dict(zip(self.columns, types, strict=False))
        self.textual = not types
        self._checked: tuple[tuple[int, ...], int] | None = None

    def typed(self, name: str) -> bool:
        """Return whether the cells of a column come as numbers or truth values, not as text."""
        kind = self._types.get(self.column(name), "VARCHAR")
        return not kind.startswith(("VARCHAR", "ENUM", "DATE", "TIME"))

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        names = [self.column(name) for name in columns]
        records = self._records()
        fields = ", ".join(self._fields[name] for name in names)
        with self._query(f"SELECT {fields}, count(*) FROM {{scan}} GROUP BY ALL") as relation:
            table = relation.to_arrow_table()
        counts = table.column(len(names))
        self._check(int(to_numpy(one_array(counts)).sum()), records)
        cells = [self._raw(table.column(k), name) for k, name in enumerate(names)]
        return pa.Table.from_arrays([*cells, counts], names=[*names, "count"])

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        names = [self.column(name) for name in columns]
        records = self._records()
        fields = ", ".join(f"{self._fields[name]} AS x{k}" for k, name in enumerate(names))
        found = 0
        with self._query(f"SELECT {fields} FROM {{scan}}") as relation:
            # Older versions know the same reader under another name.
            read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
            for batch in read(rows):
                found += len(batch)
                cells = [self._raw(batch.column(k), n) for k, n in enumerate(names)]
                yield pa.RecordBatch.from_arrays(cells, names=names)
        self._check(found, records)

    def _records(self) -> int | None:
        """Return how many records a text file has, counted once for each state of the file."""
        if self._header is None:
            return None
        state = os.stat(self._path)
        mark = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
        if self._checked is None or self._checked[0] != mark:
            self._checked = mark, count_records(self._path, self.name, self._header)
        return self._checked[1]

    def _check(self, found: int, records: int | None) -> None:
        if records is not None and found != records:
            raise InputError(
                f"{self.name} holds {records} records, but {found} rows were read; it changed "
                "meanwhile, or a field holds a line end unlike the others"
            )

    @contextmanager
    def _query(self, query: str) -> Iterator[Any]:
        with _scanned(self._path, self._scan) as scan, _connection() as connection:
            import duckdb

            try:
                yield connection.sql(query.replace("{scan}", scan))
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise self._explain(str(error)) from None

    def _raw(self, cells: Any, name: str) -> Any:
        what = f"column {name!r} of {self.name}"
        check_type(cells.type, what)
        return self._decode(cells, what) if self._decode else cells

    def _explain(self, message: str) -> InputError:
        """Return the error for a message of DuckDB's, which may quote rows and is not passed on."""
        if "Out of Memory" in message.split(":")[0]:
            return InputError(f"{self.name}: too many distinct values for the memory here")
        if self._header is not None:
            return explain(self._path, self.name, self._header)
        return _unreadable(self._path)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9.]+", text.strip()))


def open_table(source: Any, *, delimiter: str | None = None) -> Table:
    """Return the table behind a path, "-" (standard input), a dataframe or a Table."""
    if isinstance(source, str | Path):
        return open_file(source, delimiter)
    if isinstance(source, Table):
        return source
    if delimiter is not None:
        raise InputError("a delimiter is for text files, but a dataframe was given")
    return open_frame(source)


def open_file(given: str | Path, delimiter: str | None) -> FileTable:
    """Return the table in a file, or "-" in standard input; only its header is read."""
    path = Path(given)
    if str(given) == "-":
        return _open_text(_standard_input(), delimiter, "standard input")
    # A leading ~ is a home folder only where it stands alone: "~x.csv" is a name like others.
    path = path.expanduser() if path.parts[:1] == ("~",) else path
    _check_file(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    ending = "".join((suffixes[:-1] if packed else suffixes)[-1:])
    if ending in TEXT:
        return _open_text(path, delimiter, None)
    if delimiter is not None:
        raise InputError(f"a delimiter is for text files, which {path} is not")
    if ending in JSON:
        return _open_json(path, packed)
    if ending in PARQUET and not packed:
        return _open_parquet(path)
    known = listed([*TEXT, *JSON, *PARQUET], 20)
    what = f"its ending is {suffixes[-1]}" if suffixes else "its name has no ending"
    hint = "; save it as CSV (UTF-8)" if ending in _SHEETS else ""
    raise InputError(
        f"cannot tell what kind of table {path} is: {what}, but files are known by {known} (text "
        f"and JSON also with .gz){hint}"
    )


def _check_file(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a table; name one file in it")
        if path.is_file():
            with path.open("rb"):
                return
        if path.exists():
            raise InputError(
                f"{path} is no regular file, and a table is read more than once; - reads CSV from "
                "standard input"
            )
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except FileNotFoundError:
        raise InputError(f"there is no file {path}: its folder does not exist") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    raise InputError(f"there is no file {path}{did_you_mean(path.name, beside)}")


def _standard_input() -> Path:
    """Return the path of a nameless file in memory that holds all of standard input."""
    if not hasattr(os, "memfd_create"):
        raise InputError("standard input is read only on Linux; give the name of a file")
    data = sys.stdin.buffer.read()
    file = os.memfd_create("table")
    with open(file, "wb", closefd=False) as memory:
        memory.write(data)
    return Path(f"{_OPEN_FILES}/{file}")


def _open_text(path: Path, delimiter: str | None, name: str | None) -> FileTable:
    header = read_header(path, str(path) if name is None else name, delimiter)
    fields = [f"c{k}" for k in range(len(header.names))]
    columns = ", ".join(f"'{field}': 'VARCHAR'" for field in fields)
    scan = (
        f"read_csv({{file}}, auto_detect=false, header=true, columns={{{columns}}}, "
        f"delim={_quoted(header.delimiter)}, quote='\"', escape='\"', "
        f"strict_mode=true, null_padding=false, ignore_errors=false, hive_partitioning=false, "
        f"compression='{'gzip' if path.suffix.lower() == '.gz' else 'none'}')"
    )
    return FileTable(path, scan, header.names, fields, name=name, header=header)


def _open_parquet(path: Path) -> FileTable:
    import pyarrow.parquet as pq

    scan = "read_parquet({file}, hive_partitioning=false)"
    fields, types = _described(path, scan)
    try:
        # DuckDB gives other names to columns whose names differ only in case, or not at all.
        with path.open("rb") as file:
            written = list(pq.read_schema(file).names)
    except (pa.ArrowException, OSError, ValueError):
        written = []
    names = written if len(written) == len(fields) else fields
    return FileTable(path, scan, names, [_identifier(f) for f in fields], types=types)


def _open_json(path: Path, packed: bool) -> FileTable:
    if packed:
        check_gzip(path, str(path))
    kind = "gzip" if packed else "uncompressed"
    options = f"format='auto', hive_partitioning=false, compression='{kind}'"
    names, _ = _described(path, f"read_json({{file}}, {options})")
    if names == ["json"]:  # what DuckDB calls values that are no objects
        raise InputError(
            f"{path} holds no table: one is a list of JSON objects, or an object on each line"
        )
    # Cells come as pieces of JSON, so that DuckDB guesses no types, dates or times.
    columns = ", ".join(f"{_quoted(name)}: 'JSON'" for name in names)
    scan = f"read_json({{file}}, {options}, columns={{{columns}}})"
    table = FileTable(path, scan, names, [_identifier(n) for n in names], decode=_from_json)
    folded = {name.casefold(): name for name in reversed(names)}
    for name in names:
        # DuckDB calls the second of two keys that differ only in case X_1, and finds no X_1.
        base = re.fullmatch(r"(.*)_\d+", name, re.DOTALL)
        first = folded.get(base[1].casefold()) if base else None
        cells = table.groups([name]).column(0) if first else None
        if base and cells is not None and cells.null_count == len(cells):
            raise InputError(
                f"{path} has two keys that differ only in case, {first!r} and {base[1]!r}; rename "
                "one of them"
            )
    return table


def _described(path: Path, scan: str) -> tuple[list[str], list[str]]:
    """Return the names and the types of the columns that DuckDB finds."""
    import duckdb

    with _scanned(path, scan) as here, _connection() as connection:
        try:
            rows = connection.sql(f"DESCRIBE SELECT * FROM {here}").fetchall()
        except duckdb.Error:
            raise _unreadable(path) from None
    return [row[0] for row in rows], [row[1] for row in rows]


def _unreadable(path: Path) -> InputError:
    kind = "a Parquet file" if path.suffix.lower() in PARQUET else "JSON"
    return InputError(f"cannot read {path} as {kind}: it is damaged, or of another kind")


def _from_json(cells: Any, what: str) -> pa.Array:
    """Turn pieces of JSON into text; lists and objects are refused."""
    values, places = distinct(cells)
    texts: list[str | None] = []
    for piece in values.to_pylist():
        value = None if piece is None else _loads(piece)
        if isinstance(value, list | dict):
            raise InputError(f"{what} holds lists or objects, not numbers or text")
        texts.append(value if isinstance(value, str) else text_of(value) or None)
    return strings(texts).take(integers(places))


def _loads(piece: str) -> Any:
    """Return the value of a piece of JSON, with all its digits."""
    try:
        return json.loads(piece, parse_float=Decimal, parse_constant=str, parse_int=_integer)
    except ValueError:
        return piece.strip()  # DuckDB also knows nan and inf


def _integer(digits: str) -> int | str:
    # Python refuses to read integers of more than 4,300 digits; as text they are refused later.
    return int(digits) if len(digits) <= 2000 else digits


@contextmanager
def _connection() -> Iterator[Any]:
    import duckdb

    with duckdb.connect(":memory:", config=dict(_SETTINGS)) as connection:
        connection.execute("SET enable_progress_bar = false")
        yield connection


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def _scanned(path: Path, scan: str) -> Iterator[str]:
    """Give the table function that reads a file, whatever its name is.

    DuckDB takes ``*`` or ``[`` in a name for a pattern of many files, and then reads the names of
    all files beside it. Such a file, or one whose name is no UTF-8, is opened here, and goes by
    the number under which it is open.
    """
    name = str(path.absolute())
    plain = not glob.has_magic(name) and name.encode("utf-8", "ignore") == os.fsencode(name)
    if plain or not os.path.isdir(_OPEN_FILES):
        yield scan.replace("{file}", _quoted(glob.escape(name)), 1)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    with file:
        yield scan.replace("{file}", _quoted(f"{_OPEN_FILES}/{file.fileno()}"), 1)
