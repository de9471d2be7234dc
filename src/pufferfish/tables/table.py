# SPDX-License-Identifier: Apache-2.0
"""Table: the one face of files and dataframes, and their raw cells as Arrow arrays.

Raw cells of text files are strings with nothing done to them (an empty cell is null); those of
Parquet files and dataframes keep their Arrow type. Nothing here needs pandas, which Arrow's own
ways import at once: that takes a while, and what is raised meanwhile (Ctrl-C) would be lost.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.numbers import text_of
from pufferfish.tables.canonical import canonical

#: Rows of one batch, unless told otherwise.
BATCH_ROWS = 65_536
#: What NumPy calls Arrow's floats; its integers have the same names in both.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
#: Up to so many cells a Python dictionary is quicker than the import of Arrow's functions.
_FEW = 4096


class Table:
    """A table whose raw cells can be counted or streamed, column by column.

    Attributes
    ----------
    name : str
        What messages call the table: a file's path, or the kind of dataframe.
    path : Path or None
        The file, or None for a dataframe and for standard input.
    columns : tuple of str
        The names in the header, trimmed and in NFC.
    textual : bool
        Whether cells of all kinds come as text, as in text files and JSON.
    """

    name: str
    path: Path | None = None
    columns: tuple[str, ...]
    textual: bool = False

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

    def own_order(self, name: str) -> tuple[str, ...] | None:
        """Return the order that a column's own type states for its levels, or None."""
        return None

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        raise NotImplementedError  # each kind of table has its own

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        raise NotImplementedError  # each kind of table has its own


def column_names(names: Sequence[Any], table: str) -> tuple[str, ...]:
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


# ---- raw cells -----------------------------------------------------------------------------------


def check_type(kind: pa.DataType, what: str) -> None:
    """Refuse a column whose cells are no numbers, texts, truth values, dates or times."""
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    if pt.is_duration(kind):
        raise InputError(f"{what} holds durations; turn them into numbers of days, for example")
    plain = pt.is_primitive(kind) or pt.is_decimal(kind) or is_text(kind) or pt.is_null(kind)
    if pt.is_interval(kind) or not plain:
        name = "interval" if pt.is_interval(kind) else str(kind).partition("<")[0]
        raise InputError(f"{what} holds {name} cells, not numbers or text")


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of text."""
    return str(kind) in ("string", "large_string", "string_view")


def raw_texts(cells: pa.Array) -> list[str]:
    """Return the trimmed text of every raw cell; "" for null."""
    if pt.is_float16(cells.type):  # Arrow prints these in full, and others as short as they can be
        return [text_of(None if cell is None else np.float16(cell)) for cell in cells.to_pylist()]
    texts = cells if is_text(cells.type) else cells.cast(pa.string())
    return [(text or "").strip() for text in texts.to_pylist()]


def texts_of(cells: pa.Array) -> list[str]:
    """Return the canonical text of every raw cell; "" for null."""
    return list(map(canonical, raw_texts(cells)))


def distinct(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[Any]]:
    """Return the distinct raw cells of a column (null is one), and each row's place among them."""
    cells = one_array(column)
    if pt.is_null(cells.type):
        return pa.nulls(min(1, len(cells))), np.zeros(len(cells), dtype=np.int64)
    if is_text(cells.type) and len(cells) <= _FEW:
        known: dict[str | None, int] = {}
        places = [known.setdefault(cell, len(known)) for cell in cells.to_pylist()]
        return strings(list(known)), np.array(places, dtype=np.int64)
    encoded = cells.dictionary_encode(null_encoding="encode")
    return encoded.dictionary, to_numpy(encoded.indices)


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column's cells in one piece, dictionaries and views resolved."""
    if isinstance(column, pa.ChunkedArray):
        # One dictionary for all chunks first keeps equal cells equal.
        column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return strings(column.to_pylist()) if str(column.type) == "string_view" else column


def to_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return Arrow integers or floats without nulls as an array that shares their memory."""
    kind = np.dtype(_FLOATS.get(str(array.type), str(array.type)))
    if not len(array):
        return np.empty(0, dtype=kind)
    return np.frombuffer(
        array.buffers()[1], dtype=kind, count=len(array), offset=array.offset * kind.itemsize
    )


def integers(values: npt.ArrayLike) -> pa.Array:
    """Return integers as an Arrow array of int64."""
    array = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(array), [None, pa.py_buffer(array)])


def strings(texts: Sequence[str | None]) -> pa.Array:
    """Return texts as an Arrow array; None becomes null."""
    try:
        pieces = [b"" if text is None else text.encode("utf-8") for text in texts]
    except UnicodeEncodeError:
        raise InputError("a text holds half a character (a surrogate), so it is no UTF-8") from None
    ends = np.fromiter(accumulate(map(len, pieces), initial=0), np.int64, count=len(pieces) + 1)
    known = np.packbits(
        np.array([text is not None for text in texts], dtype=bool), bitorder="little"
    )
    # The narrow type wherever it can hold the text: it is what plain strings have elsewhere.
    small = ends[-1] < 2**31
    offsets = ends.astype(np.int32) if small else ends
    buffers = [pa.py_buffer(known.tobytes()), pa.py_buffer(offsets), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(pa.string() if small else pa.large_string(), len(pieces), buffers)
