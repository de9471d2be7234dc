# SPDX-License-Identifier: Apache-2.0
"""Sources: files, standard input, queries and dataframes are opened as tables.

The files of a folder, or of a pattern, are one table. Its rows are those of the files, in the order
of their names. A folder ``year=2024`` gives the files below it the column ``year``.
"""

import glob
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.files import home_expanded, named_path, no_file
from pufferfish.numbers import text_of
from pufferfish.tables.frames import open_frame
from pufferfish.tables.query import open_query
from pufferfish.tables.scan import OPEN_FILES, ScanTable, Source, literal
from pufferfish.tables.table import (
    BATCH_ROWS,
    Table,
    arrow,
    column_names,
    distinct,
    merged,
    strings,
)
from pufferfish.tables.text import opened, read_header

_TEXT = (".csv", ".tsv", ".tab", ".txt")
_JSON = (".json", ".ndjson", ".jsonl")
_PARQUET = (".parquet", ".pq")
_STDIN = "standard input"
#: Megabytes that Python, its libraries and what is made of a batch of rows take.
_OWN_MEMORY = 300
#: The folder of rows that have no value in the column of partitions.
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
#: Columns with the one cell that all rows of a file have.
Constants = Mapping[str, str | None]


def open_table(
    source: Any = None, *, delimiter: str | None = None, sql: str | None = None,
    memory_limit: str | None = None, progress: bool = False,
) -> Table:  # fmt: skip
    """Open a table, once and for several uses: files, a query, or a dataframe.

    All functions that take a table take what is returned here, and open anything else themselves.

    Parameters
    ----------
    source : path, dataframe, Table or connection
        A file by its ending (.csv, .tsv, .tab, .txt, .json, .ndjson, .jsonl, also with .gz;
        .parquet, .pq), a folder of such files or a pattern such as ``"2024-*.parquet"``, which are
        one table in the order of their names; ``"-"``, CSV on standard input; whatever narwhals
        knows as a dataframe. With ``sql`` a DuckDB or SQLite file, an open DB-API or ADBC
        connection, or None.
    delimiter : str, optional
        What separates the cells of a text file: ``,``, ``;``, ``|`` or a tabulator.
    sql : str, optional
        A SELECT statement, whose answer is the table. Nothing can be written by it, unless a
        connection allows it.
    memory_limit : str, optional
        How much memory reading files and queries may take, such as ``"2GB"``, at least 500MB; by
        default a quarter of the machine's. Dataframes are in memory already.
    progress : bool
        Show on standard output how far a count has come that takes some seconds.
    """
    path = named_path(source) if isinstance(source, str | Path) else None
    read_here = path is not None or (source is None and sql is not None)
    in_text = path is not None and sql is None
    if (delimiter is not None and not in_text) or (memory_limit is not None and not read_here):
        raise InputError(
            "a delimiter is for text files, a memory limit for files and queries of files, when "
            "they are opened; leave it out"
        )
    how: dict[str, Any] = {"memory": _memory(memory_limit), "progress": progress}
    if sql is not None:
        return open_query(source, sql, **how)
    if isinstance(source, Table):
        return source
    if path is None:
        return open_frame(source)
    if str(path) == "-":
        path = _standard_input()
    path = home_expanded(path)
    opener = partial(_open_file, delimiter=delimiter, how=how)
    several = path.is_dir() or (glob.has_magic(str(path)) and not os.path.exists(path))
    return PartitionedTable(path, opener) if several else opener(path, {})


def _memory(limit: str | None) -> str:
    """Return what DuckDB may take of a limit, beside what everything else takes."""
    if limit is None:
        names = ("SC_PHYS_PAGES", "SC_PAGE_SIZE") if hasattr(os, "sysconf") else ()
        return f"{math.prod(map(os.sysconf, names)) // 4_000_000 if names else 4000}MB"
    found = re.fullmatch(
        r"\s*(\d+(?:\.\d+)?)\s*([kMGT])i?B?\s*", str(limit), re.ASCII | re.IGNORECASE
    )
    size = float(found[1]) * 1000.0 ** ("kmgt".index(found[2].lower()) - 1) if found else 0.0
    if not 500 <= size < 1e9:
        raise InputError(
            f"the memory limit is at least 500MB and written as in 2GB, but {limit} was given"
        )
    return f"{size - _OWN_MEMORY:.0f}MB"


def _open_file(
    path: Path, constants: Constants, delimiter: str | None, how: dict[str, Any]
) -> ScanTable:
    name = _STDIN if str(path).startswith(OPEN_FILES) else str(path)
    source = Source(path, name, **how)
    if not os.path.exists(path):
        raise InputError(no_file(path))
    if not path.is_file():
        raise InputError(f"{name} is no regular file; - reads CSV from standard input")
    with opened(path, name):
        pass
    packed = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    if ending in _TEXT or name == _STDIN:
        return _open_text(source, path, delimiter, constants)
    if delimiter is not None:
        raise InputError("a delimiter is for text files; leave it out")
    if ending in _JSON:
        return _open_json(replace(source, kind="JSON"), path, packed, constants)
    if ending in _PARQUET and not packed:
        return _open_parquet(replace(source, kind="a Parquet file"), path, constants)
    raise InputError(
        f"cannot tell what kind of table {path} is: "
        f"{f'its ending is {ending}' if ending else 'its name has no ending'}, but files are known "
        f"by {listed([*_TEXT, *_JSON, *_PARQUET], 20)} (text and JSON also with .gz); rename it, "
        "save it as CSV (UTF-8), or ask a database by --sql (sql=)"
    )


def _standard_input() -> Path:
    """Return the path of a nameless file in memory that holds all of standard input."""
    if not hasattr(os, "memfd_create"):
        raise InputError("standard input is read only on Linux; give the name of a file")
    file = os.memfd_create("table")
    with open(file, "wb", closefd=False) as memory:
        shutil.copyfileobj(sys.stdin.buffer, memory)
    return Path(f"{OPEN_FILES}/{file}")


def _open_text(
    source: Source, path: Path, delimiter: str | None, constants: Constants
) -> ScanTable:
    header = read_header(path, source.name, delimiter)
    fields = [f"c{k}" for k in range(len(header.names))]
    columns = ", ".join(f"'{field}': 'VARCHAR'" for field in fields)
    packed = "gzip" if path.suffix.lower() == ".gz" else "none"
    scan = (
        f"read_csv({{file}}, auto_detect=false, header=true, columns={{{columns}}}, "
        f"delim={literal(header.delimiter)}, quote='\"', escape='\"', strict_mode=true, "
        f"null_padding=false, ignore_errors=false, hive_partitioning=false, compression='{packed}')"
    )
    return ScanTable(
        replace(source, header=header), scan, header.names, fields, constants=constants
    )


def _open_parquet(source: Source, path: Path, constants: Constants) -> ScanTable:
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            names = pq.read_schema(file).names
    except (pa.ArrowException, OSError):  # DuckDB does not look at all that pyarrow does
        raise InputError(f"cannot read {source.name} as a Parquet file: it is damaged") from None
    # By their places, for capitals tell no names apart in SQL.
    fields = [f"#{k}" for k in range(1, len(names) + 1)]
    scan = "read_parquet({file}, hive_partitioning=false)"
    return ScanTable(source, scan, names, fields, constants=constants)


def _open_json(source: Source, path: Path, packed: bool, constants: Constants) -> ScanTable:
    with opened(path, source.name) as file:
        while packed and file.read(2**22):  # to its checksum, which DuckDB does not look at
            pass
    kind = "gzip" if packed else "uncompressed"
    scan = f"read_json_objects({{file}}, format='auto', compression='{kind}')"
    query = f"SELECT DISTINCT json_type(json), json_keys(json) FROM {scan}"
    with source.connected() as (connection, name):
        kinds = connection.sql(query.replace("{file}", literal(name), 1)).fetchall()
    if {kind for kind, _ in kinds} != {"OBJECT"}:
        raise InputError(
            f"{source.name} holds no table: one is a list of JSON objects, or an object on each "
            "line"
        )
    for _, keys in kinds:  # none may be twice in one object
        column_names(keys, source.name)
    names = list(dict.fromkeys(key for _, keys in sorted(kinds) for key in keys))
    # Cells come as pieces of JSON, so that DuckDB guesses no types, dates or times.
    pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
    fields = [f"json -> {literal(pointer)}" for pointer in pointers]
    return ScanTable(source, scan, names, fields, decode=_from_json, constants=constants)


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


class PartitionedTable(Table):
    """The files of a folder, or of a pattern, each opened with its constant columns."""

    def __init__(self, path: Path, opener: Callable[[Path, Constants], Table]) -> None:
        self.name, self.paths = str(path), tuple(_files(path))
        fixed = next((k for k, part in enumerate(path.parts) if glob.has_magic(part)), None)
        root, name = (path, "*") if path.is_dir() else (Path(*path.parts[:fixed]), path.name)
        folders = {os.path.realpath(folder) for folder in (root, *(p.parent for p in self.paths))}
        beside = (Path(glob.escape(folder), name) for folder in sorted(folders))
        self.patterns = (Path(os.path.abspath(path)), *beside)
        self._tables = [opener(each, _constants(each, root)) for each in self.paths]
        first = self._tables[0]
        self.columns, self.is_text_file = first.columns, first.is_text_file
        self.textual = first.textual
        for table in self._tables:
            for name in sorted({*self.columns} ^ {*table.columns}):
                lacks = table if name in self.columns else first
                raise InputError(
                    f"the files of {self.name} need the same columns, but {lacks.name} has no "
                    f"{name!r}{did_you_mean(name, lacks.columns)}"
                )

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        return merged(table.groups(columns) for table in self._tables)

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        return chain.from_iterable(table.batches(columns, rows) for table in self._tables)


def _files(path: Path) -> list[Path]:
    """Return the files of one kind, in the order of their names, each of which has one name."""

    def failed(error: OSError) -> None:
        raise error

    try:
        if path.is_dir():
            inside = os.walk(path, onerror=failed)
            every = (Path(top, name) for top, folders, files in inside for name in folders + files)
            # Links to folders are not gone into, and refused below.
            every = (each for each in every if each.is_symlink() or not each.is_dir())
            # Engines write files such as _SUCCESS and .part-0.crc beside those of a table.
            hidden = re.compile(r"(?:.*/)?[._][^=/]*(?:/|$)").match
            found = [each for each in every if not hidden(each.relative_to(path).as_posix())]
        else:
            found = list(map(Path, glob.iglob(str(path))))
        found.sort(key=lambda each: each.parts)
        same = {(status.st_dev, status.st_ino) for status in map(os.stat, found)}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    endings = sorted({Path(each.name.lower().removesuffix(".gz")).suffix for each in found})
    if "**" in path.parts:
        raise InputError(f"{path}: ** is not known; name a folder, with all that is in it")
    if not found:
        raise InputError(f"no file {'lies in' if path.is_dir() else 'matches'} {path}")
    if not all(each.is_file() for each in found):
        raise InputError(
            f"{path} also holds links or folders, which are no files; name files alone"
        )
    if len(endings) > 1:
        raise InputError(
            f"the files of {path} are of several kinds ({listed(endings)}); name those of one kind "
            "by a pattern"
        )
    if len(same) < len(found):
        raise InputError(f"a file of {path} is there under two names, and would be read twice")
    return found


def _constants(file: Path, root: Path) -> dict[str, str | None]:
    """Return the columns that the names of folders give to a file."""
    folders = (part.partition("=") for part in file.parent.relative_to(root).parts if "=" in part)
    pairs = [(unquote(name), unquote(text)) for name, _, text in folders]
    if len(dict(pairs)) < len(pairs):
        raise InputError(f"the folders of {file} name a column twice")
    return {name: None if text == _NOTHING else text for name, text in pairs}
