# SPDX-License-Identifier: Apache-2.0
"""Files: CSV and its kin, Parquet and JSON as a Table, read by DuckDB; nothing is downloaded."""

import glob
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.rationals import MAX_LENGTH
from pufferfish.tables import diagnose
from pufferfish.tables.arrow import integers, strings, to_list
from pufferfish.tables.cells import check_type, distinct
from pufferfish.tables.sniff import Header, check_gzip, sniff
from pufferfish.tables.source import BATCH_ROWS, resolve, trimmed_names
from pufferfish.texts import text_of

if TYPE_CHECKING:
    import duckdb

TEXT = (".csv", ".tsv", ".tab", ".txt")
JSON = (".json", ".ndjson", ".jsonl")
PARQUET = (".parquet", ".pq")

_SETTINGS = {
    # Nothing is fetched from anywhere, and private rows are never spilled to the disk.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
}


#: Where Linux shows the open files of a process, each of which can be opened anew.
_OPEN_FILES = "/proc/self/fd"


class FileTable:
    """A file; every call reads it anew, and only the columns in use.

    Parameters
    ----------
    path : Path
        The file.
    scan : str
        The DuckDB table function that reads it, with ``{file}`` in the place of the path.
    columns : tuple of str
        The names in the header, trimmed.
    fields : tuple of str
        The names under which DuckDB knows these columns.
    header : Header, optional
        What was seen in a text file.
    decode : callable, optional
        Turns an array of DuckDB's cells into raw cells.
    """

    unordered = False

    def __init__(
        self,
        path: Path,
        scan: str,
        columns: tuple[str, ...],
        fields: tuple[str, ...],
        header: Header | None = None,
        decode: Callable[[pa.Array, str], pa.Array] | None = None,
    ) -> None:
        self.path: Path | None = path
        self.name = str(path)
        self.columns = columns
        self.comma_may_be_decimal = header is not None and header.delimiter != ","
        self._path = path
        self._scan = scan
        self._header = header
        self._decode = decode
        # A name that is empty, or that a text file's header has twice, cannot be asked for.
        self._fields = dict(zip(columns, fields, strict=True))

    def column(self, name: str) -> str:
        """Return the name as it stands in ``columns``; see :class:`Table`."""
        return resolve(name, self.columns, self.name)

    def own_order(self, name: str) -> tuple[str, ...] | None:
        """Return None: as DuckDB reads them, no column of a file has an order of its own."""
        return None

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Count the rows of every distinct combination of raw cells; see :class:`Table`."""
        names = [self.column(name) for name in columns]
        fields = ", ".join(self._fields[name] for name in names)
        import duckdb

        with _connect() as connection, _scanned(self._path, self._scan) as scan:
            try:
                query = f"SELECT {fields}, count(*) FROM {scan} GROUP BY ALL"
                table = connection.sql(query).to_arrow_table()
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise self._explain(error) from None
        self._check_rows(len(table))
        cells = [self._raw(table.column(k), name) for k, name in enumerate(names)]
        return pa.Table.from_arrays([*cells, table.column(len(names))], names=[*names, "count"])

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield raw cells in the order of rows; see :class:`Table`."""
        names = [self.column(name) for name in columns]
        fields = ", ".join(f"{self._fields[name]} AS x{k}" for k, name in enumerate(names))
        import duckdb

        found = 0
        with _connect() as connection, _scanned(self._path, self._scan) as scan:
            try:
                for batch in _reader(connection.sql(f"SELECT {fields} FROM {scan}"), rows):
                    found += len(batch)
                    cells = [self._raw(batch.column(k), n) for k, n in enumerate(names)]
                    yield pa.RecordBatch.from_arrays(cells, names=names)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise self._explain(error) from None
        self._check_rows(found)

    def _check_rows(self, found: int) -> None:
        """Refuse a text file that goes on after its header, but in which DuckDB saw no row."""
        if not found and self._header is not None and self._header.goes_on:
            raise InputError(
                f"cannot read {self.name} as a text table: text follows the header, but no row was "
                "found in it; write it again with one kind of line end"
            )

    def _raw(self, cells: Any, name: str) -> Any:
        check_type(cells.type, f"column {name!r} of {self.name}")
        return self._decode(cells, f"column {name!r} of {self.name}") if self._decode else cells

    def _explain(self, error: Exception) -> InputError:
        return InputError(diagnose.explain(str(error), self._path, self._header))


def open_file(path: Path) -> FileTable:
    """Return the table in a file; only its header is read.

    Raises
    ------
    InputError
        If there is no such file, it is a folder or no table, or its header cannot be read.
    """
    # A leading ~ is a home folder only where it stands alone: "~x.csv" is a name like others.
    path = path.expanduser() if path.parts[:1] == ("~",) else path
    ending = _ending(path)
    _check_file(path)
    if path.suffix.lower() == ".gz" and ending in TEXT + JSON:
        check_gzip(path, str(path))
    if ending in TEXT:
        return _open_text(path)
    if ending in PARQUET:
        return _open_parquet(path)
    if ending in JSON:
        return _open_json(path)
    known = [*TEXT, *(f"{e}.gz" for e in TEXT[:2]), *PARQUET, *JSON]
    hint = "; save it as CSV (UTF-8)" if ending in (".xlsx", ".xls", ".ods", ".sav", ".dta") else ""
    raise InputError(
        f"cannot tell what kind of table {path} is: the ending {ending or 'is missing'!r} is none "
        f"of {listed(known, 20)}{hint}"
    )


def _ending(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        inner = suffixes[-2] if len(suffixes) > 1 else ""
        return inner if inner in TEXT + JSON else f"{inner}.gz"
    return suffixes[-1] if suffixes else ""


def _check_file(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a table; name one file in it")
        if path.is_file():
            with path.open("rb"):
                return
        if path.exists():
            raise InputError(f"{path} is no regular file; a table is read more than once")
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except FileNotFoundError:
        raise InputError(f"there is no file {path}: its folder does not exist") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    raise InputError(f"there is no file {path}{did_you_mean(path.name, beside)}")


def _open_text(path: Path) -> FileTable:
    header = sniff(path, str(path))
    fields = tuple(f"c{k}" for k in range(len(header.names)))
    columns = ", ".join(f"'{field}': 'VARCHAR'" for field in fields)
    scan = (
        f"read_csv({{file}}, auto_detect=false, header=true, columns={{{columns}}}, "
        f"delim={_quoted(header.delimiter)}, quote='\"', escape='\"', strict_mode=true, "
        f"null_padding=false, ignore_errors=false, hive_partitioning=false, "
        f"compression='{_compression(path)}')"
    )
    return FileTable(path, scan, header.names, fields, header)


def _open_parquet(path: Path) -> FileTable:
    scan = "read_parquet({file}, hive_partitioning=false)"
    fields = _described(path, scan)
    # DuckDB gives other names to columns whose names differ only in case, or not at all.
    written = _parquet_names(path)
    names = written if len(written) == len(fields) else fields
    return FileTable(path, scan, trimmed_names(names, str(path)), tuple(map(_identifier, fields)))


def _open_json(path: Path) -> FileTable:
    options = f"format='auto', hive_partitioning=false, compression='{_compression(path)}'"
    names = _described(path, f"read_json({{file}}, {options})")
    if names == ["json"]:  # what DuckDB calls values that are no objects
        raise InputError(
            f"{path} holds no table: one is a list of JSON objects, or an object on each line"
        )
    # Cells come as pieces of JSON, so that DuckDB guesses no types, dates or times.
    columns = ", ".join(f"{_quoted(name)}: 'JSON'" for name in names)
    scan = f"read_json({{file}}, {options}, columns={{{columns}}})"
    fields = tuple(map(_identifier, names))
    _check_keys(path, scan, names)
    return FileTable(path, scan, trimmed_names(names, str(path)), fields, decode=_from_json)


def _described(path: Path, scan: str) -> list[str]:
    """Return the names of the columns that DuckDB finds."""
    import duckdb

    with _connect() as connection, _scanned(path, scan) as here:
        try:
            rows = connection.sql(f"DESCRIBE SELECT * FROM {here}").fetchall()
        except duckdb.Error as error:
            raise InputError(diagnose.explain(str(error), path, None)) from None
    return [row[0] for row in rows]


def _parquet_names(path: Path) -> list[str]:
    """Return the names of the columns as they are written, or none where Arrow cannot read them."""
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            return list(pq.read_schema(file).names)
    except (pa.ArrowException, OSError, ValueError):
        return []


def _check_keys(path: Path, scan: str, names: Sequence[str]) -> None:
    """Refuse keys that differ only in case: DuckDB calls the second one X_1, and finds no X_1."""
    import duckdb

    known = {name.casefold(): name for name in reversed(names)}
    for name in names:
        base = re.fullmatch(r"(.*)_\d+", name, re.DOTALL)
        if base is None or base[1].casefold() not in known:
            continue
        with _connect() as connection, _scanned(path, scan) as here:
            try:
                query = f"SELECT count({_identifier(name)}) FROM {here}"
                (filled,) = connection.sql(query).fetchall()[0]
            except duckdb.Error as error:
                raise InputError(diagnose.explain(str(error), path, None)) from None
        if not filled:
            raise InputError(
                f"{path} has two keys that differ only in case, {known[base[1].casefold()]!r} and "
                f"{base[1]!r}; rename one of them, or save the table as CSV or Parquet"
            )


def _from_json(cells: Any, what: str) -> pa.Array:
    """Turn pieces of JSON into text; lists and objects are refused."""
    values, places = distinct(cells)
    texts: list[str | None] = []
    for piece in to_list(values):
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
        # DuckDB also knows nan and inf.
        return piece.strip()


def _integer(digits: str) -> int | str:
    # Python refuses to read integers of more than 4,300 digits; as text they are refused later.
    return int(digits) if len(digits) <= MAX_LENGTH else digits


def _connect() -> "duckdb.DuckDBPyConnection":
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(_SETTINGS))
    connection.execute("SET enable_progress_bar = false")
    return connection


def _reader(relation: Any, rows: int) -> Any:
    # Older versions know the same reader under another name.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)


def _compression(path: Path) -> str:
    return "gzip" if path.suffix.lower() == ".gz" else "uncompressed"


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
