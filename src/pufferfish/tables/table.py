# SPDX-License-Identifier: Apache-2.0
"""Table: the one face of files and dataframes, their raw cells, and the groups of equal rows.

Raw cells of text files are strings with nothing done to them (an empty cell is null); those of
Parquet files and dataframes keep their Arrow type. Groups are the distinct combinations of cells
of some columns, in a table whose last column counts them (int64). Nothing here needs pandas, which
``pa.array`` and ``to_numpy`` import at once: that takes longer than to count a small file, and what
is raised meanwhile (Ctrl-C) would be lost.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.numbers import IntArray, canonical

#: Rows of one batch, unless told otherwise.
BATCH_ROWS = 131_072
#: Groups of so many parts of a table are put together at once, for memory.
_PARTS = 8
#: Up to so many cells a Python dictionary is quicker than the import of Arrow's functions.
_FEW = 4096


class Table:
    """A table whose raw cells can be counted or streamed, column by column."""

    name: str  # what messages call it: a file's path, or the kind of dataframe
    paths: tuple[Path, ...] = ()  # the files that it is read from
    patterns: tuple[Path, ...] = ()  # new files with these names would be more of it
    columns: tuple[str, ...]  # the names in the header, trimmed and in NFC
    is_text_file: bool = False  # whether it may hold cells that are guarded against formulas
    textual: bool = False  # whether cells of all kinds come as text, as in text files and JSON

    @property
    def inputs(self) -> list[Path]:
        """The files that it is read from, and patterns of more: no output may be of them."""
        return [*self.paths, *self.patterns]

    def column(self, name: str) -> str:
        """Return the name as it stands in ``columns``."""
        wanted = _trimmed(name)
        if wanted in self.columns:
            return wanted
        named = [column for column in self.columns if column]
        raise InputError(
            f"there is no column {wanted!r} in {self.name}{did_you_mean(wanted, named)}; "
            f"the columns are {listed(named, 20)}"
        )

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        return one_pass(self, [columns])[0]

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        raise NotImplementedError  # each kind of table has its own


def column_names(names: Iterable[Any], table: str) -> tuple[str, ...]:
    """Return the names of a header, trimmed and in NFC; only empty ones may occur twice."""
    texts = tuple(map(_trimmed, names))
    first: dict[str, int] = {}
    for place, text in enumerate(texts, start=1):
        if text and first.setdefault(text, place) < place:
            raise InputError(
                f"{table} has the column {text!r} twice (columns {first[text]} and {place}); every "
                "column needs its own name, in a header line"
            )
    return texts


def _trimmed(name: Any) -> str:
    return unicodedata.normalize("NFC", str(name).strip())


def check_type(kind: pa.DataType, what: str) -> None:
    """Refuse a column whose cells are no numbers, texts, truth values, dates or times."""
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    plain = pt.is_primitive(kind) or pt.is_decimal(kind) or is_text(kind) or pt.is_null(kind)
    if not plain or pt.is_interval(kind) or pt.is_duration(kind):
        name = re.split(r"[<\[]", str(kind))[0].rpartition("_")[2]
        raise InputError(
            f"{what} holds {name} cells, not numbers or text"
            f"{'; turn durations into numbers of days' * pt.is_duration(kind)}"
        )


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of text."""
    return str(kind) in ("string", "large_string", "string_view")


def as_strings(cells: pa.Array) -> pa.Array:
    """Return raw cells as text; refuse those of no text, as times in an unknown zone have none."""
    try:
        return cells if is_text(cells.type) else cells.cast(pa.string())
    except pa.ArrowInvalid:
        raise InputError(f"cells of the type {cells.type} cannot be read as text") from None


def raw_texts(cells: pa.Array) -> list[str]:
    """Return the trimmed text of every raw cell; "" for null."""
    return [(text or "").strip() for text in as_strings(cells).to_pylist()]


def texts_of(cells: pa.Array) -> list[str]:
    """Return the canonical text of every raw cell; "" for null."""
    return list(map(canonical, raw_texts(cells)))


def distinct(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[Any]]:
    """Return the distinct raw cells of a column (null is one), and each row's place among them."""
    cells = one_array(column)
    if is_text(cells.type) and len(cells) <= _FEW:
        known: dict[str | None, int] = {}
        places = [known.setdefault(cell, len(known)) for cell in cells.to_pylist()]
        return strings(known), np.array(places, dtype=np.int64)
    if pt.is_null(cells.type):
        return cells[:1], np.zeros(len(cells), dtype=np.int64)
    encoded = cells.dictionary_encode(null_encoding="encode")
    return encoded.dictionary, np.from_dlpack(encoded.indices)


def no_person(missing: Iterable[str]) -> set[str]:
    """Return the texts of a unit's cell that name nobody, in a count as in a release."""
    return {"", "nan", *missing}


def numbered(column: pa.Array, known: dict[str, int], gone: set[str]) -> npt.NDArray[Any]:
    """Return a number for every raw cell: equal cells have equal ones, missing ones -1."""
    values, places = distinct(column)
    own = [-1 if t in gone else known.setdefault(t, len(known)) for t in texts_of(values)]
    return np.array(own, dtype=np.int64).take(places)


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column's cells in one piece, dictionaries and views resolved."""
    if isinstance(column, pa.ChunkedArray):
        # One dictionary for all chunks first keeps equal cells equal.
        column = column.unify_dictionaries()
        if not column.num_chunks:
            return pa.nulls(0, column.type)
        if is_text(column.type) and column.nbytes >= 2**31:  # more than one piece can hold
            column = column.cast(pa.large_string())
        column = column.combine_chunks()
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pt.is_float16(column.type):  # Arrow prints all digits, NumPy those that are needed
        halves = (half and float(str(np.float16(half))) for half in column.to_pylist())
        return pa.array(halves, pa.float64())
    return strings(column.to_pylist()) if str(column.type) == "string_view" else column


def arrow(values: npt.ArrayLike) -> pa.Array:
    """Return integers or doubles as an Arrow array."""
    array = np.ascontiguousarray(values)
    data = pa.py_buffer(array)
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, data])


def strings(texts: Iterable[str | None]) -> pa.Array:
    """Return texts as an Arrow array; None becomes null."""
    builder = pa.lib.StringBuilder()
    try:
        builder.append_values(texts)
    except UnicodeEncodeError:
        raise InputError("a text holds half a character (a surrogate), so it is no UTF-8") from None
    return builder.finish()


def one_pass(table: Table, sets: Sequence[Sequence[str]]) -> list[pa.Table]:
    """Return the groups of several sets of columns, from one pass over all rows of a table."""
    names = list(dict.fromkeys(name for columns in sets for name in columns))
    found = [[grouped([pa.nulls(0)] * len(columns))] for columns in sets]
    for batch in table.batches(names, 2 * BATCH_ROWS):
        for columns, own in zip(sets, found, strict=True):
            own.append(grouped([batch.column(names.index(name)) for name in columns]))
            own[:] = own if len(own) < _PARTS else [merged(own)]
    return list(map(merged, found))


def merged(groups: Iterable[pa.Table]) -> pa.Table:
    """Return the groups of several parts of a table as those of all of it."""
    *cells, counts = zip(*groups, strict=True)
    every = [np.from_dlpack(one_array(each)) for each in counts]
    return grouped(list(map(_of_one_type, cells)), np.concatenate(every))


def grouped(
    cells: Sequence[pa.Array | pa.ChunkedArray], counts: IntArray | None = None
) -> pa.Table:
    """Return the groups of rows with these cells, or of so many rows with each of them.

    Arrow's own way to do it imports pandas.
    """
    cells = list(map(one_array, cells))
    counts = np.ones(len(cells[0]), dtype=np.int64) if counts is None else counts
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


def _of_one_type(pieces: Sequence[pa.Array | pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return the cells of several parts; where their types differ, as texts."""
    arrays = list(map(one_array, pieces))
    kinds = {each.type for each in arrays if not pt.is_null(each.type)} or {pa.null()}
    if len(kinds) > 1:
        arrays, kinds = [as_strings(each) for each in arrays], {pa.large_string()}
    return pa.chunked_array([each.cast(kind) for kind in kinds for each in arrays])
