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
from pufferfish.tables.table import BATCH_ROWS, Table, check_type, column_names, one_array, strings


class FrameTable(Table):
    """A dataframe, eager or lazy; only the columns in use become Arrow arrays."""

    def __init__(self, frame: Any, kind: str) -> None:
        self._frame, self.name = frame, f"the {kind} dataframe"
        raw = frame.collect_schema().names()
        self.columns = column_names(raw, self.name)
        self._raw_names = dict(zip(self.columns, raw, strict=True))

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        names = [f"x{k}" for k in range(len(columns))]
        table = pa.Table.from_arrays(list(map(one_array, self._read(columns))), names=names)
        return table.group_by(names, use_threads=False).aggregate([([], "count_all")])

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        names = [self.column(name) for name in columns]
        yield from pa.Table.from_arrays(self._read(names), names).to_batches(max_chunksize=rows)

    def _read(self, columns: Sequence[str]) -> list[pa.Array | pa.ChunkedArray]:
        raw = {name: self._raw_names[self.column(name)] for name in columns}
        frame = self._frame
        if not hasattr(frame, "rows"):  # a lazy one, read once: its rows may have no fixed order
            frame = frame.select(list(dict.fromkeys(raw.values()))).collect()
        series = [(name, frame.get_column(raw[name])) for name in columns]
        return [_cells_of_series(s, f"column {name!r} of {self.name}") for name, s in series]


def known(source: Any) -> Any:
    """Return what narwhals makes of a dataframe or a series, and anything else as it is."""
    import narwhals as nw

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    kind = type(source).__module__.partition(".")[0]
    # Two columns of one name are looked for before narwhals does, for a clearer message.
    if kind in ("pandas", "pyarrow"):
        own = "column_names" if isinstance(source, pa.Table) else "columns"
        column_names(getattr(source, own, ()), f"the {kind} dataframe")
    return nw.from_native(source, allow_series=True, pass_through=True)


def open_frame(source: Any) -> FrameTable:
    """Return the table of a dataframe."""
    import narwhals as nw

    frame = known(source)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            "a table is the path of a file or a dataframe (pandas, Polars, PyArrow, ...) with "
            f"named columns, but an object of type {type(source).__name__} was given"
        )
    return FrameTable(frame, type(source).__module__.partition(".")[0])


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
        foreign = kind in "OcVT" or (kind == "f" and wide)  # has no Arrow type
        if isinstance(values, np.ma.MaskedArray) or foreign:
            return _texts(None if cell is np.ma.masked else cell for cell in values)
        try:
            cells = pa.array(values.astype(values.dtype.newbyteorder("=")), from_pandas=False)
        except (pa.ArrowException, UnicodeDecodeError):  # times in hours, half a character
            raise InputError(f"values of the type {values.dtype} cannot be read") from None
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
    if not objects and str(series.dtype) not in ("Object", "Int128", "UInt128"):
        with suppress(pa.ArrowException, TypeError, ValueError, NotImplementedError):
            cells = series.to_arrow()
    # An extension type is that of the intervals of pandas' cut, for example.
    kind = None if cells is None else getattr(cells.type, "value_type", cells.type)
    if cells is None or isinstance(kind, pa.BaseExtensionType):
        return _texts(series.to_list(), nan_is_missing=pandas)
    check_type(cells.type, what)
    if pandas and pt.is_floating(cells.type):  # where NaN is how a missing value is written
        import pyarrow.compute as pc

        return pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
    return cells


def _texts(values: Iterable[Any], nan_is_missing: bool = False) -> pa.Array:
    """Return Python objects as text cells; numbers among them keep all their digits."""
    texts: list[str | None] = []
    for value in values:
        if type(value).__name__.lower().startswith("timedelta"):
            raise InputError("durations have no known unit; turn them into numbers of days")
        text = text_of(value)
        # NaN, NaT and pandas' NA are the objects that are not equal to themselves.
        lost = not isinstance(value, str) and text.lower() in ("nan", "nat", "<na>")
        texts.append(None if text == "" or (nan_is_missing and lost) else text)
    return strings(texts)
