# SPDX-License-Identifier: Apache-2.0
"""Partitions: the files of a folder, or of a pattern, are one table.

Its rows are those of the files, in the order of their names. A folder ``year=2024`` gives the files
below it the column ``year``.
"""

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.numbers import IntArray
from pufferfish.tables.table import BATCH_ROWS, Table, arrow, as_strings, distinct, one_array

#: The folder of rows that have no value in the column of partitions.
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
#: So many parts are merged at once, for memory.
_FEW = 8
Opener = Callable[[Path, Mapping[str, str | None]], Table]


def is_several(path: Path) -> bool:
    """Return whether a path is a folder, or a pattern that is not the name of a file."""
    return path.is_dir() or (glob.has_magic(str(path)) and not os.path.exists(path))


class PartitionedTable(Table):
    """The files of a folder, or of a pattern, each opened with its constant columns."""

    def __init__(self, path: Path, opener: Opener) -> None:
        self.name, self.paths = str(path), tuple(_files(path))
        self.pattern = Path(os.path.realpath(path / "*" if path.is_dir() else path))
        fixed = next((k for k, part in enumerate(path.parts) if glob.has_magic(part)), None)
        root = path if path.is_dir() else Path(*path.parts[:fixed])
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
        return _merged([table.groups(columns) for table in self._tables])

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        return chain.from_iterable(table.batches(columns, rows) for table in self._tables)


def _files(path: Path) -> list[Path]:
    """Return the files of one kind, in the order of their names, each of which has one name."""
    try:
        if path.is_dir():
            inside = os.walk(path, onerror=_raised, followlinks=True)
            every = [Path(top, name) for top, _, names in inside for name in names]
            # Engines write files such as _SUCCESS and .part-0.crc beside those of a table.
            own = (each for each in every if not _is_hidden(each.relative_to(path)))
        else:
            own = (each for each in map(Path, glob.iglob(str(path), recursive=True)))
        found = sorted((each for each in own if each.is_file()), key=lambda each: each.parts)
        same = {(status.st_dev, status.st_ino) for status in map(os.stat, found)}
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    endings = sorted({each.suffix.lower() for each in found})
    if not found:
        raise InputError(f"no file {'lies in' if path.is_dir() else 'matches'} {path}")
    if len(endings) > 1:
        raise InputError(
            f"the files of {path} are of several kinds ({listed(endings)}); name those of one "
            f"kind by a pattern, as in '{path if path.is_dir() else path.parent}/*{endings[-1]}'"
        )
    if len(same) < len(found):
        raise InputError(f"a file of {path} is there under two names, and would be read twice")
    return found


def _raised(error: OSError) -> Any:
    raise error


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _constants(file: Path, root: Path) -> dict[str, str | None]:
    """Return the columns that the names of folders give to a file."""
    folders = (part.partition("=") for part in file.parent.relative_to(root).parts if "=" in part)
    return {unquote(k): None if text == _NOTHING else unquote(text) for k, _, text in folders}


def one_pass(table: Table, sets: Sequence[Sequence[str]]) -> list[pa.Table]:
    """Return the groups of several sets of columns, counted here in one pass over all rows."""
    names = list(dict.fromkeys(name for columns in sets for name in columns))
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0)] * len(names), names)
    found: list[list[pa.Table]] = [[] for _ in sets]
    for batch in chain([nothing], table.batches(names, 4 * BATCH_ROWS)):
        for columns, own in zip(sets, found, strict=True):
            cells = [one_array(batch.column(names.index(name))) for name in columns]
            own.append(_grouped(cells, np.ones(len(batch), dtype=np.int64)))
            own[:] = own if len(own) < _FEW else [_merged(own)]
    return [_merged(own) for own in found]


def _merged(groups: Sequence[pa.Table]) -> pa.Table:
    """Return the groups of several tables as those of one."""
    *cells, counts = [[one_array(c) for c in each] for each in zip(*groups, strict=True)]
    return _grouped(
        list(map(_of_one_type, cells)), np.concatenate(list(map(np.from_dlpack, counts)))
    )


def _grouped(cells: Sequence[pa.Array], counts: IntArray) -> pa.Table:
    """Return the distinct combinations of cells, with the sums of their counts as last column.

    Arrow's own way to do it imports pandas.
    """
    code, some = np.zeros(len(counts), dtype=np.int64), 8 * len(counts) + 2**16
    for column in cells:
        values, places = distinct(column)
        code = code * len(values) + places
        if code.max(initial=0) >= some:
            code = np.unique(code, return_inverse=True)[1]
    sums = np.bincount(code, counts).astype(np.int64)  # doubles are exact below 2**53
    row_of, found = np.zeros(len(sums), dtype=np.int64), np.flatnonzero(sums)
    row_of[code] = np.arange(len(code))
    first = arrow(row_of[found])
    names = [f"x{k}" for k in range(len(cells) + 1)]
    return pa.Table.from_arrays(
        [*(column.take(first) for column in cells), arrow(sums[found])], names
    )


def _of_one_type(pieces: list[pa.Array]) -> pa.Array:
    """Return the cells of several parts; where their types differ, as texts."""
    kinds = {each.type for each in pieces if not pt.is_null(each.type)} or {pa.null()}
    if len(kinds) > 1:
        pieces, kinds = [as_strings(each) for each in pieces], {pa.large_string()}
    return one_array(pa.chunked_array([each.cast(kind) for kind in kinds for each in pieces]))
