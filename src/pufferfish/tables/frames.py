# SPDX-License-Identifier: Apache-2.0
"""Frames: any dataframe, series or array that narwhals or Arrow knows, as exact raw cells."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.errors import InputError
from pufferfish.numbers import text_of
from pufferfish.tables.table import (
    BATCH_ROWS,
    Table,
    check_type,
    column_names,
    distinct,
    integers,
    strings,
)


class FrameTable(Table):
    """A dataframe, eager or lazy; only the columns in use become Arrow arrays."""

    def __init__(self, frame: Any, native: Any) -> None:
        self._frame, self._native = frame, native
        self.name = f"the {_kind(native)} dataframe"
        raw = frame.collect_schema().names()
        self.columns = column_names(raw, self.name)
        self._lazy = not hasattr(frame, "rows")
        self._raw_names = dict(zip(self.columns, raw, strict=True))
        # Counting, looking for a row and streaming ask for the same columns of an eager frame.
        self._arrays: dict[str, Any] = {}

    def own_order(self, name: str) -> tuple[str, ...] | None:
        """Return the order that an ordered categorical column states, or None."""
        raw = self._raw_names[self.column(name)]
        kind = self._frame.collect_schema()[raw]
        if hasattr(kind, "categories"):  # the Enum of Polars
            levels: Iterable[Any] = kind.categories
        elif str(kind) == "Categorical" and not self._lazy:
            # narwhals brings chunks over one dictionary, after which the order is a guess.
            arrow = isinstance(self._native, pa.Table)
            cells = self._native.column(raw) if arrow else self._read([self.column(name)])[0]
            if not (pt.is_dictionary(cells.type) and cells.type.ordered and cells.num_chunks):
                return None
            found = [chunk.dictionary for chunk in cells.chunks]
            levels = found[0].to_pylist() if all(map(found[0].equals, found)) else ()
        else:
            return None
        texts = tuple(text_of(level) for level in levels)
        # Levels that are one after trimming may lie on two sides of a third.
        return texts if texts and len(set(texts)) == len(texts) else None

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        names = [self.column(name) for name in columns]
        parts = [distinct(array) for array in self._read(names)]
        code = np.zeros(len(parts[0][1]), dtype=np.int64)
        for values, places in parts:
            # Codes stay below the number of rows, so that the product cannot overflow.
            code = code * max(1, len(values)) + places
            if code.max(initial=0) >= max(2**22, len(code)):
                code = np.unique(code, return_inverse=True)[1]
        counts = np.bincount(code, minlength=1)
        found = np.flatnonzero(counts)
        first = np.zeros(len(counts), dtype=np.int64)
        first[code[::-1]] = np.arange(len(code))[::-1]
        cells = [values.take(integers(places[first[found]])) for values, places in parts]
        return pa.Table.from_arrays([*cells, integers(counts[found])], names=[*names, "count"])

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        names = [self.column(name) for name in columns]
        whole = pa.Table.from_arrays(self._read(names), names=names)
        yield from whole.to_batches(max_chunksize=rows)

    def _read(self, names: Sequence[str]) -> list[Any]:
        """Return the raw cells of some columns as chunked Arrow arrays."""
        if self._lazy:
            # Together: the order of rows may be another one each time.
            frame = self._frame.select([self._raw_names[name] for name in names])
            table = frame.collect("pyarrow").to_native()
            arrays = [table.column(k) for k in range(len(names))]
            if frame.implementation.is_dask():
                arrays = list(map(_nan_is_null, arrays))
            for name, array in zip(names, arrays, strict=True):
                check_type(array.type, f"column {name!r} of {self.name}")
            return arrays
        for name in names:
            if name not in self._arrays:
                series = self._frame.get_column(self._raw_names[name])
                cells = _cells_of_series(series, f"column {name!r} of {self.name}")
                whole = cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])
                self._arrays[name] = whole
        return [self._arrays[name] for name in names]


def open_frame(source: Any) -> FrameTable:
    """Return the table of a dataframe."""
    import narwhals as nw

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    kind = type(source).__name__
    # Two columns of one name are looked for before narwhals does, for a clearer message.
    if kind in ("Table", "DataFrame") and _kind(source) in ("pandas", "PyArrow"):
        names = source.column_names if isinstance(source, pa.Table) else source.columns
        column_names(list(names), f"the {_kind(source)} dataframe")
    frame = nw.from_native(source, pass_through=True)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            "a table is the path of a file or a dataframe (pandas, Polars, PyArrow, ...) with "
            f"named columns, but an object of type {kind} was given"
        )
    return FrameTable(frame, source)


def raw_cells(values: Any) -> pa.Array | pa.ChunkedArray:
    """Return an array, a list or a series, shape (rows,), as an Arrow array of raw cells.

    Masked cells are missing, and NaN in a series of pandas; elsewhere NaN is a number that is not
    finite.
    """
    if isinstance(values, list | tuple | range | Iterator):
        return _texts(values)
    cells = values
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise InputError(f"values need one dimension, but an array of {values.ndim} was given")
        kind, wide = values.dtype.kind, values.dtype.itemsize > 8
        foreign = kind in "OcV" or (kind == "f" and wide)  # has no Arrow type
        if isinstance(values, np.ma.MaskedArray) or foreign:
            return _texts(None if cell is np.ma.masked else cell for cell in values)
        cells = pa.array(values.astype(values.dtype.newbyteorder("=")), from_pandas=False)
    if isinstance(cells, pa.Array | pa.ChunkedArray):
        check_type(cells.type, "the array")
        return cells
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise InputError(
            "values are an array, a list, a series or a dataframe, but an object of type "
            f"{type(values).__name__} was given"
        )
    return _cells_of_series(series, "the series")


def _cells_of_series(series: Any, what: str) -> pa.Array | pa.ChunkedArray:
    """Return a narwhals series as Arrow, without a digit lost on the way."""
    pandas = series.implementation.is_pandas_like()
    # Python objects of any kind: Arrow would guess one type for all of them.
    objects = pandas and str(series.to_native().dtype) == "object"
    cells = None
    if not objects and str(series.dtype) not in ("Object", "Int128", "UInt128", "Unknown"):
        with suppress(pa.ArrowException, TypeError, ValueError, NotImplementedError):
            cells = series.to_arrow()
    # An extension type is that of the intervals of pandas' cut, for example.
    kind = None if cells is None else getattr(cells.type, "value_type", cells.type)
    if cells is None or isinstance(kind, pa.BaseExtensionType):
        return _texts(series.to_list(), nan_is_missing=pandas)
    check_type(cells.type, what)
    return _nan_is_null(cells) if pandas else cells


def _texts(values: Iterable[Any], nan_is_missing: bool = False) -> pa.Array:
    """Return Python objects as text cells; numbers among them keep all their digits."""
    texts: list[str | None] = []
    for value in values:
        if type(value).__name__.lower().startswith("timedelta"):
            raise InputError("durations have no known unit; turn them into numbers of days")
        text = text_of(value)
        # NaN, NaT and pandas' NA are the objects that are not equal to themselves.
        lost = text in ("<NA>", "NaT") or (not isinstance(value, str) and text.lower() == "nan")
        texts.append(None if text == "" or (nan_is_missing and lost) else text)
    return strings(texts)


def _nan_is_null(cells: Any) -> Any:
    """Turn NaN into null: in pandas it is how a missing value is written."""
    if pt.is_floating(cells.type) and not pt.is_float16(cells.type):
        import pyarrow.compute as pc

        return pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
    return cells


def _kind(native: Any) -> str:
    library = type(native).__module__.partition(".")[0]
    return {"polars": "Polars", "pyarrow": "PyArrow"}.get(library, library)
