# SPDX-License-Identifier: Apache-2.0
"""Arrow: between Arrow, NumPy and Python without pandas, which Arrow's own ways import at once.

That import takes a while, and what is raised during it (Ctrl-C, SIGTERM) would be lost there.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pufferfish.errors import InputError

#: What NumPy calls Arrow's floats; its integers have the same names in both.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def to_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return an array of Arrow integers or floats without nulls; the memory is shared.

    Parameters
    ----------
    array : pyarrow.Array, shape (n,)

    Returns
    -------
    array, shape (n,)
        Read only.
    """
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


def numbers(values: npt.NDArray[Any]) -> pa.Array:
    """Return int64 or float64 as an Arrow array of the same type."""
    array = np.ascontiguousarray(values)
    kind = {"int64": pa.int64(), "float64": pa.float64()}[array.dtype.name]
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(array)])


def truths(values: npt.NDArray[np.bool_]) -> pa.Array:
    """Return truth values as an Arrow array of bits."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits.tobytes())])


def strings(texts: Sequence[str | None]) -> pa.Array:
    """Return texts as an Arrow array; None becomes null.

    Raises
    ------
    InputError
        If a text holds half a character (a surrogate), which is none in UTF-8.
    """
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


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column's cells in one piece."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.nulls(0, whole.type)
    return whole


def to_list(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return Arrow cells as Python values; dates and times as the text that Arrow prints.

    Of a time of day without the zeros at the end of its fraction, which depend on its type alone.
    """
    kind = array.type.value_type if pt.is_dictionary(array.type) else array.type
    if pt.is_temporal(kind):
        array = array.cast(kind).cast(pa.string())
    if pt.is_time(kind):
        array = pc.replace_substring_regex(array, r"\.0*$|(\.[0-9]*[1-9])0+$", r"\1")
    values: list[Any] = array.to_pylist()
    return values
