# SPDX-License-Identifier: Apache-2.0
"""Sources: files, standard input, queries and dataframes are opened as tables."""

import glob
import json
import math
import os
import re
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish.errors import InputError, listed
from pufferfish.files import home_expanded, named_path, no_file
from pufferfish.numbers import text_of
from pufferfish.tables.frames import open_frame
from pufferfish.tables.partitions import Constants, PartitionedTable
from pufferfish.tables.query import open_query
from pufferfish.tables.scan import OPEN_FILES, ScanTable, Source, literal
from pufferfish.tables.table import Table, arrow, column_names, distinct, strings
from pufferfish.tables.text import opened, read_header

_TEXT = (".csv", ".tsv", ".tab", ".txt")
_JSON = (".json", ".ndjson", ".jsonl")
_PARQUET = (".parquet", ".pq")
_STDIN = "standard input"
#: Megabytes that Python, its libraries and what is made of a batch of rows take.
_OWN_MEMORY = 300


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
    if isinstance(source, Table):
        if delimiter or sql or memory_limit:
            raise InputError("the table is open already: say how to read it when it is opened")
        return source
    how: dict[str, Any] = {"memory": _memory(memory_limit), "progress": progress}
    if sql is not None:
        if delimiter is not None or (memory_limit and hasattr(source, "cursor")):
            raise InputError(
                "a query takes no delimiter (say it to its reader), a connection no memory limit"
            )
        return open_query(source, sql, **how)
    path = named_path(source) if isinstance(source, str | Path) else None
    if path is None:
        if delimiter is not None or memory_limit is not None:
            raise InputError(
                "a delimiter is for text files, a memory limit for files and queries; leave it out"
            )
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

    with source.readable(), path.open("rb") as file:
        names = pq.read_schema(file).names
    # Otherwise DuckDB gives other names to columns whose names differ only in case, or not at all.
    fields = [f"c{k}" for k in range(len(names))]
    scan = f"read_parquet({{file}}, hive_partitioning=false) AS t({', '.join(fields)})"
    return ScanTable(source, scan, names, fields, constants=constants)


def _open_json(source: Source, path: Path, packed: bool, constants: Constants) -> ScanTable:
    with opened(path, source.name) as file:
        while packed and file.read(2**22):  # to its checksum, which DuckDB does not look at
            pass
    kind = "gzip" if packed else "uncompressed"
    scan = f"read_json_objects({{file}}, format='auto', compression='{kind}')"
    kinds = source.rows(f"SELECT DISTINCT json_type(json), json_keys(json) FROM {scan}")
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
