# SPDX-License-Identifier: Apache-2.0
"""Frames: any dataframe that narwhals knows, as a Table of exact raw cells."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pufferfish.errors import InputError
from pufferfish.tables.arrow import integers, strings
from pufferfish.tables.cells import check_type, distinct
from pufferfish.tables.source import BATCH_ROWS, resolve, trimmed_names
from pufferfish.texts import text_of

#: Up to so many combinations of cells are counted in one array, without sorting the rows.
_SMALL_SPAN = 2**22


class FrameTable:
    """A dataframe, eager or lazy; only the columns in use become Arrow arrays.

    Attributes
    ----------
    native : object
        The dataframe as it was given.
    """

    path: Path | None = None
    comma_may_be_decimal = False

    def __init__(self, frame: Any, native: Any) -> None:
        self._frame = frame
        self.native = native
        self.name = f"the {_kind(native)} dataframe"
        # Lazy frames must look at their plan for the names: ask once.
        raw = frame.collect_schema().names() if isinstance(frame, nw.LazyFrame) else frame.columns
        self.columns = trimmed_names(raw, self.name)
        self.unordered = isinstance(frame, nw.LazyFrame)
        self._raw_names = dict(zip(self.columns, raw, strict=True))
        # The columns in use, as Arrow: counting, looking for a row and streaming ask for the same
        # ones. They are kept as long as this table is, which is for one call of the library.
        self._arrays: dict[str, pa.ChunkedArray] = {}

    def column(self, name: str) -> str:
        """Return the name as it stands in ``columns``; see :class:`Table`."""
        return resolve(name, self.columns, self.name)

    def native_column(self, name: str) -> Any:
        """Return the name as the dataframe itself has it: not trimmed, perhaps no string."""
        return self._raw_names[self.column(name)]

    def own_order(self, name: str) -> tuple[str, ...] | None:
        """Return the order that an ordered categorical column states; see :class:`Table`."""
        kind = self._frame.collect_schema()[self.native_column(name)]
        if isinstance(kind, nw.Enum):
            levels: Iterable[Any] = kind.categories
        elif kind == nw.Categorical and not isinstance(self._frame, nw.LazyFrame):
            # narwhals brings chunks over one dictionary, after which the order is a guess.
            arrow = isinstance(self.native, pa.Table)
            levels = _order_of_dictionary(
                self.native.column(self.native_column(name))
                if arrow
                else self._array(self.column(name))
            )
        else:
            return None
        texts = tuple(text_of(level) for level in levels)
        # Levels that are one after trimming may lie on two sides of a third.
        return texts if texts and len(set(texts)) == len(texts) else None

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Count the rows of every distinct combination of raw cells; see :class:`Table`."""
        names = [self.column(name) for name in columns]
        if isinstance(self._frame, nw.LazyFrame):
            return self._lazy_groups(names)
        parts = [distinct(self._array(name)) for name in names]
        span = math.prod(max(1, len(values)) for values, _ in parts)
        code = np.zeros(len(parts[0][1]), dtype=np.int64)
        if span <= max(_SMALL_SPAN, len(code)):
            for values, places in parts:
                code = code * max(1, len(values)) + places
            counts = np.bincount(code, minlength=1)
            found = np.flatnonzero(counts)
            counts = counts[found]
            picks = np.unravel_index(found, [max(1, len(values)) for values, _ in parts])
        else:
            for values, places in parts:
                # Codes stay below the number of rows, so that the product cannot overflow.
                _, code = np.unique(code * max(1, len(values)) + places, return_inverse=True)
            _, first, counts = np.unique(code, return_index=True, return_counts=True)
            picks = tuple(places[first] for _, places in parts)
        cells = [
            values.take(integers(pick)) for (values, _), pick in zip(parts, picks, strict=True)
        ]
        return _table(names, [*cells, integers(counts)])

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield raw cells in the order of rows; see :class:`Table`.

        The used columns of a lazy frame are collected once, and kept.
        """
        names = [self.column(name) for name in columns]
        table = _table(names, [self._array(name) for name in names])
        yield from table.to_batches(max_chunksize=rows)

    def _lazy_groups(self, names: Sequence[str]) -> pa.Table:
        raw = [self._raw_names[name] for name in names]
        count = "count"
        while count in raw:
            count += "_"
        grouped = self._frame.select(raw).group_by(*raw).agg(nw.len().alias(count))
        table = grouped.collect("pyarrow").to_native()
        arrays = [table.column(k) for k in range(len(raw))]
        if _is_pandas_like(self._frame):
            arrays = [_nan_is_null(array) for array in arrays]
        for name, array in zip(names, arrays, strict=True):
            check_type(array.type, f"column {name!r} of {self.name}")
        return _table(names, [*arrays, table.column(len(raw)).cast(pa.int64())])

    def _array(self, name: str) -> pa.ChunkedArray:
        """Return the raw cells of a column as Arrow."""
        if name not in self._arrays:
            raw = self._raw_names[name]
            frame = self._frame
            if isinstance(frame, nw.LazyFrame):
                cells = frame.select(raw).collect("pyarrow").to_native().column(0)
                if _is_pandas_like(frame):
                    cells = _nan_is_null(cells)
            else:
                cells = _cells_of_series(frame.get_column(raw))
            if isinstance(cells, pa.Array):
                cells = pa.chunked_array([cells])
            check_type(cells.type, f"column {name!r} of {self.name}")
            self._arrays[name] = cells
        return self._arrays[name]


def open_frame(source: Any) -> FrameTable:
    """Return the table of a dataframe.

    Raises
    ------
    InputError
        If narwhals does not know it, or it has no columns with names.
    """
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    kind = type(source).__name__
    _check_names(source)
    try:
        frame = nw.from_native(source)
    except TypeError:
        raise InputError(
            f"a table is the path of a file or a dataframe (pandas, Polars, PyArrow, ...), but an "
            f"object of type {kind} was given"
        ) from None
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            f"a table needs columns with names, but an object of type {kind} was given"
        )
    return FrameTable(frame, source)


def raw_cells(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return a NumPy array, a list or a series as an Arrow array of raw cells.

    Parameters
    ----------
    values : array, sequence or series, shape (rows,)
        In a pandas series NaN is missing; elsewhere it is a number that is not finite.

    Raises
    ------
    InputError
        If it has not one dimension, or its cells are no single values.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        check_type(values.type, "the array")
        return values
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"values need one dimension, but an array of {values.ndim} was given")
        if values.dtype == object:
            return _texts(values.tolist())
        if values.dtype.itemsize > 8 and values.dtype.kind == "f":
            return _texts(list(values))  # long doubles have no Arrow type
        if not values.dtype.isnative:
            values = values.astype(values.dtype.newbyteorder("="))
        cells = pa.array(values, from_pandas=False)
        check_type(cells.type, "the array")
        return cells
    if isinstance(values, list | tuple):
        return _texts(values)
    try:
        series = nw.from_native(values, series_only=True)
    except TypeError:
        raise InputError(
            f"values are an array, a list, a series or a dataframe, but an object of type "
            f"{type(values).__name__} was given"
        ) from None
    cells = _cells_of_series(series)
    check_type(cells.type, "the series")
    return cells


def _order_of_dictionary(cells: pa.ChunkedArray) -> list[Any]:
    """Return the values of an ordered dictionary in their order; none where it has no order."""
    if not (pt.is_dictionary(cells.type) and cells.type.ordered and cells.num_chunks):
        return []
    found = [chunk.dictionary for chunk in cells.chunks]
    return found[0].to_pylist() if all(found[0].equals(other) for other in found[1:]) else []


def _cells_of_series(series: Any) -> pa.Array | pa.ChunkedArray:
    """Return a narwhals series as Arrow, without a digit lost on the way."""
    pandas = series.implementation.is_pandas_like()
    if pandas and str(series.to_native().dtype) == "object":
        # Python objects of any kind: Arrow would guess one type for all of them.
        return _texts(series.to_native().tolist(), nan_is_missing=True)
    if str(series.dtype) in ("Object", "Int128", "UInt128", "Unknown"):
        return _texts(series.to_list(), nan_is_missing=pandas)
    try:
        cells = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
        return _texts(series.to_list(), nan_is_missing=pandas)
    kind = cells.type.value_type if pt.is_dictionary(cells.type) else cells.type
    if isinstance(kind, pa.BaseExtensionType):  # such as the intervals of pandas' cut
        return _texts(series.to_list(), nan_is_missing=pandas)
    return _nan_is_null(cells) if pandas else cells


def _texts(values: Iterable[Any], nan_is_missing: bool = False) -> pa.Array:
    """Return Python objects as text cells; numbers among them keep all their digits."""
    texts: list[str | None] = []
    for value in values:
        text = text_of(value)
        # NaN, NaT and pandas' NA are the objects that are not equal to themselves.
        gone = nan_is_missing and (text in ("<NA>", "NaT") or _is_nan(value))
        texts.append(None if gone or text == "" else text)
    return strings(texts)


def _is_nan(value: Any) -> bool:
    return not isinstance(value, str) and text_of(value).lower() == "nan"


def _nan_is_null(cells: Any) -> Any:
    """Turn NaN into null: in pandas it is how a missing value is written."""
    if pt.is_floating(cells.type) and not pt.is_float16(cells.type):
        return pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
    return cells


def _check_names(source: Any) -> None:
    """Look for two columns of one name before narwhals does, for a clearer message."""
    if isinstance(source, pa.Table):
        trimmed_names(source.column_names, f"the {_kind(source)} dataframe")
    elif _kind(source) == "pandas" and type(source).__name__ == "DataFrame":
        trimmed_names(list(source.columns), f"the {_kind(source)} dataframe")


def _kind(native: Any) -> str:
    library = type(native).__module__.partition(".")[0]
    return {"pandas": "pandas", "polars": "Polars", "pyarrow": "PyArrow"}.get(library, library)


def _is_pandas_like(frame: Any) -> bool:
    implementation = frame.implementation
    return bool(implementation.is_pandas_like() or implementation.is_dask())


def _table(names: Sequence[str], arrays: Sequence[Any]) -> pa.Table:
    labels = [*names, "count"] if len(arrays) > len(names) else list(names)
    return pa.Table.from_arrays(list(arrays), names=labels)
