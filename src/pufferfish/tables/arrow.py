# SPDX-License-Identifier: Apache-2.0
"""Arrow: raw cells as texts and numbers, without pandas, which Arrow's own ways import at once.

That import takes a while, and what is raised during it (Ctrl-C, SIGTERM) would be lost there.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError
from pufferfish.numbers import text_of
from pufferfish.tables.canonical import Parsed, canonical, parse

#: What NumPy calls Arrow's floats; its integers have the same names in both.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
#: Up to so many cells a Python dictionary is quicker than the import of Arrow's functions.
_FEW = 4096


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


def to_list(array: pa.Array) -> list[Any]:
    """Return Arrow cells as Python values; dates and times as the text that Arrow prints.

    Nanoseconds have no Python object of their own, and would import pandas.
    """
    temporal = pt.is_temporal(array.type)
    values: list[Any] = (array.cast(pa.string()) if temporal else array).to_pylist()
    return values


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of text."""
    return str(kind) in ("string", "large_string", "string_view")


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


def check_type(kind: pa.DataType, what: str) -> None:
    """Refuse a column whose cells are no numbers, texts, truth values, dates or times."""
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    if pt.is_duration(kind):
        raise InputError(f"{what} holds durations; turn them into numbers of days, for example")
    plain = pt.is_primitive(kind) or pt.is_decimal(kind) or is_text(kind) or pt.is_null(kind)
    if pt.is_interval(kind) or not plain:
        name = "interval" if pt.is_interval(kind) else str(kind).partition("<")[0]
        raise InputError(f"{what} holds {name} cells, not numbers or text")


class Cells:
    """Distinct raw cells as text and as numbers.

    Attributes
    ----------
    raw : list of str
        The trimmed text of each; "" for null.
    texts : list of str
        The canonical text of each.
    typed : bool
        Whether they came as numbers or truth values, so that a decimal mark means nothing.
    """

    def __init__(self, values: pa.Array, decimal: str = ".") -> None:
        kind, cells = values.type, to_list(values)
        self.typed = not is_text(kind) and not pt.is_temporal(kind)
        self._comma = decimal == "," and not self.typed
        if not self.typed:
            self.raw = [(text or "").strip() for text in cells]
        elif pt.is_float16(kind) or pt.is_float32(kind):
            narrow = kind.to_pandas_dtype()
            self.raw = [text_of(None if cell is None else narrow(cell)) for cell in cells]
        else:
            self.raw = list(map(text_of, cells))
        self.texts = self.raw if pt.is_integer(kind) else list(map(canonical, self.raw))

    @cached_property
    def numbers(self) -> list[Parsed]:
        """What each cell prints as a number; see :func:`parse`."""
        if not self._comma:
            return [parse(text) for text in self.raw]
        return [None if "." in t else parse(t.replace(",", ".", 1)) for t in self.raw]
