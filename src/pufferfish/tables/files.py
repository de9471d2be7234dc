# SPDX-License-Identifier: Apache-2.0
"""Files: CSV and its kin, Parquet and JSON as a Table, read by DuckDB; nothing is downloaded."""

import glob
import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.tables import diagnose
from pufferfish.tables.cells import check_type, distinct, text_of
from pufferfish.tables.sniff import Header, sniff
from pufferfish.tables.source import BATCH_ROWS, resolve, trimmed_names

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


class FileTable:
    """A file; every call reads it anew, and only the columns in use.

    Parameters
    ----------
    path : Path
        The file.
    scan : str
        The DuckDB table function that reads it.
    columns : tuple of str
        The names in the header, trimmed.
    fields : tuple of str
        The names under which DuckDB knows these columns.
    header : Header, optional
        What was seen in a text file.
    decode : callable, optional
        Turns an array of DuckDB's cells into raw cells.
    """

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

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Count the rows of every distinct combination of raw cells; see :class:`Table`."""
        names = [self.column(name) for name in columns]
        fields = ", ".join(self._fields[name] for name in names)
        with _connect() as connection:
            try:
                table = connection.sql(
                    f"SELECT {fields}, count(*) FROM {self._scan} GROUP BY ALL"
                ).to_arrow_table()
            except Exception as error:
                raise self._explain(error) from None
        cells = [self._raw(table.column(k), name) for k, name in enumerate(names)]
        return pa.Table.from_arrays([*cells, table.column(len(names))], names=[*names, "count"])

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield raw cells in the order of rows; see :class:`Table`."""
        names = [self.column(name) for name in columns]
        fields = ", ".join(f"{self._fields[name]} AS x{k}" for k, name in enumerate(names))
        with _connect() as connection:
            try:
                for batch in _reader(connection.sql(f"SELECT {fields} FROM {self._scan}"), rows):
                    cells = [self._raw(batch.column(k), n) for k, n in enumerate(names)]
                    yield pa.RecordBatch.from_arrays(cells, names=names)
            except Exception as error:
                raise self._explain(error) from None

    def _raw(self, cells: Any, name: str) -> Any:
        check_type(cells.type, f"column {name!r} of {self.name}")
        return self._decode(cells, f"column {name!r} of {self.name}") if self._decode else cells

    def _explain(self, error: Exception) -> Exception:
        """Return one clear line for what DuckDB has to say; other errors as they are."""
        import duckdb

        if isinstance(error, duckdb.Error | pa.ArrowException | OSError):
            return InputError(diagnose.explain(str(error), self._path, self._header))
        return error


def open_file(path: Path) -> FileTable:
    """Return the table in a file; only its header is read.

    Raises
    ------
    InputError
        If there is no such file, it is a folder or no table, or its header cannot be read.
    """
    path = path.expanduser()
    ending = _ending(path)
    _check_file(path)
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
        f"read_csv({_pattern(path)}, auto_detect=false, header=true, columns={{{columns}}}, "
        f"delim={_quoted(header.delimiter)}, quote='\"', escape='\"', strict_mode=true, "
        f"null_padding=false, ignore_errors=false, hive_partitioning=false, "
        f"compression='{_compression(path)}')"
    )
    return FileTable(path, scan, header.names, fields, header)


def _open_parquet(path: Path) -> FileTable:
    scan = f"read_parquet({_pattern(path)}, hive_partitioning=false)"
    names = _described(path, scan)
    return FileTable(path, scan, trimmed_names(names, str(path)), tuple(map(_identifier, names)))


def _open_json(path: Path) -> FileTable:
    options = f"format='auto', hive_partitioning=false, compression='{_compression(path)}'"
    names = _described(path, f"read_json({_pattern(path)}, {options})")
    # Cells come as pieces of JSON, so that DuckDB guesses no types, dates or times.
    columns = ", ".join(f"{_quoted(name)}: 'JSON'" for name in names)
    scan = f"read_json({_pattern(path)}, {options}, columns={{{columns}}})"
    fields = tuple(map(_identifier, names))
    return FileTable(path, scan, trimmed_names(names, str(path)), fields, decode=_from_json)


def _described(path: Path, scan: str) -> list[str]:
    """Return the names of the columns that DuckDB finds."""
    import duckdb

    with _connect() as connection:
        try:
            rows = connection.sql(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        except duckdb.Error as error:
            raise InputError(diagnose.explain(str(error), path, None)) from None
    return [row[0] for row in rows]


def _from_json(cells: Any, what: str) -> pa.Array:
    """Turn pieces of JSON into text; lists and objects are refused."""
    values, places = distinct(cells)
    texts: list[str | None] = []
    for piece in values.to_pylist():
        value = None if piece is None else json.loads(piece, parse_float=Decimal)
        if isinstance(value, list | dict):
            raise InputError(f"{what} holds lists or objects, not numbers or text")
        texts.append(value if isinstance(value, str) else text_of(value) or None)
    return pa.array(texts, type=pa.string()).take(pa.array(places, type=pa.int64()))


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


def _pattern(path: Path) -> str:
    """Return the path for DuckDB, which would take * or [ in it for a pattern of many files."""
    return _quoted(glob.escape(str(path.absolute())))
