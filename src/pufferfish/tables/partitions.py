# SPDX-License-Identifier: Apache-2.0
"""Partitions: the files of a folder, or of a pattern, are one table.

Its rows are those of the files, in the order of their names. A folder ``year=2024`` gives the files
below it the column ``year``.
"""

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.tables.groups import merged
from pufferfish.tables.table import BATCH_ROWS, Table

#: The folder of rows that have no value in the column of partitions.
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
#: Columns with the one cell that all rows of a file have.
Constants = Mapping[str, str | None]
Opener = Callable[[Path, Constants], Table]


class PartitionedTable(Table):
    """The files of a folder, or of a pattern, each opened with its constant columns."""

    def __init__(self, path: Path, opener: Opener) -> None:
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
            inside = [*os.walk(path, onerror=failed)]
            links = (Path(top, each) for top, folders, _ in inside for each in folders)
            every = [Path(top, name) for top, _, names in inside for name in names]
            every += filter(Path.is_symlink, links)  # which are not gone into, and refused below
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
            f"the files of {path} are of several kinds ({listed(endings)}); name those of one "
            f"kind by a pattern, as in '{path if path.is_dir() else path.parent}/*{endings[-1]}'"
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
