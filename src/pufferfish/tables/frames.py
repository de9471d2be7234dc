# SPDX-License-Identifier: Apache-2.0
"""Frames: any dataframe, series or array that narwhals or Arrow knows, as exact raw cells."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
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
    grouped,
    merged,
    strings,
)


class FrameTable(Table):
    """A dataframe, eager or lazy; only the columns in use become Arrow arrays."""

    def __init__(self, frame: Any) -> None:
        self._frame, self.name = frame, f"the {frame.implementation.name.lower()} dataframe"
        with _computing(self.name):
            raw = frame.collect_schema().names()
        self.columns = column_names(raw, self.name)
        self.raw_names = dict(zip(self.columns, raw, strict=True))

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        return count_groups(self._frame, self._raw(columns), self.name)

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        names, raw = [self.column(name) for name in columns], self._raw(columns)
        cells = _cells(_compute(self._frame, raw, self.name)[0], raw, self.name)
        yield from pa.Table.from_arrays(cells, names).to_batches(max_chunksize=rows)

    def hold(self, columns: Sequence[str]) -> Any:
        """Return the frame; a lazy one is computed, these columns of it, once for all passes."""
        self._frame, _ = _compute(self._frame, self._raw(columns), self.name)
        return self._frame

    def _raw(self, columns: Sequence[str]) -> list[Any]:
        return [self.raw_names[self.column(name)] for name in columns]


def count_groups(frame: Any, columns: Sequence[Any], name: str = "the table") -> pa.Table:
    """Return the distinct combinations of raw cells of a frame, with int64 counts as last column.

    The engine of a lazy frame counts, if it is one that keeps apart all cells that differ; of
    other engines the columns are fetched. ``name`` is what messages call the frame.
    """
    frame = known(frame)
    if frame.implementation.is_dask():
        return _dask_groups(frame.to_native(), columns, name)
    frame, counts = _compute(frame, columns, name, count=True)
    return grouped(_cells(frame, columns, name), counts)


@contextmanager
def _computing(name: str) -> Iterator[None]:
    """Turn what an engine raises into an error of ours, for its message may quote cells."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{name} cannot be computed ({type(error).__name__}; its message may quote cells)"
        ) from None


def _compute(frame: Any, columns: Sequence[Any], name: str, count: bool = False) -> tuple[Any, Any]:
    """Return columns of a lazy frame as an eager one, and the counts if its engine counts exactly.

    Then each combination of cells is there once. In SQL text loses its collation, which may take
    different texts for one. Columns go by their place: capitals do not matter in SQL, and Polars
    takes some names for patterns.
    """
    import narwhals as nw
    from narwhals.selectors import datetime

    if hasattr(frame, "rows"):  # an eager one
        return frame, None
    with _computing(name):
        rows, schema, engine = frame.to_native(), frame.collect_schema(), frame.implementation
        raw = schema.names()
        at = {f"x{k}": raw.index(column) for k, column in enumerate(dict.fromkeys(columns))}
        # Arrow lacks the largest integers of DuckDB.
        texts = [x for x, k in at.items() if schema.dtypes()[k] in (nw.String, nw.UInt128)]
        own: Any = nw.get_native_namespace(frame).get_backend(rows) if engine.is_ibis() else None
        if own and own.name == "duckdb":
            rows.limit(0).to_pyarrow()  # from now on DuckDB has what is in memory as a table
            rows, engine = own.con.sql(str(own.compile(rows))), nw.Implementation.DUCKDB
        cells: dict[str, Any] = {x: nw.nth(k) for x, k in at.items()}
        if engine.is_duckdb():
            from duckdb import SQLExpression

            sql = dict.fromkeys(texts, "#{}::VARCHAR COLLATE C")
            cells = {x: SQLExpression(sql.get(x, "#{}").format(k + 1)) for x, k in at.items()}
        elif engine.is_pyspark() or engine.is_pyspark_connect():
            rows = rows.toDF(*map(str, range(len(raw))))
            cells = {x: rows[str(k)] for x, k in at.items()}
            cells |= {x: cells[x].cast("string collate UTF8_BINARY") for x in texts}
        else:
            rows, count = frame, count and engine.is_polars()
        rows = known(rows.select(*(cell.alias(x) for x, cell in cells.items())))
        if count:
            rows = rows.group_by(list(at)).agg(nw.len().alias("n"))
        found = rows.collect()
        if found.implementation.is_pyarrow():  # of SQL, where the zone is that of the session
            found = found.with_columns(datetime(time_zone="*").dt.convert_time_zone("UTC"))
        counts = found.get_column("n").cast(nw.Int64).to_numpy() if count else None
        return found.select(*(nw.col(x).alias(raw[k]) for x, k in at.items())), counts


def _dask_groups(frame: Any, columns: Sequence[Any], name: str) -> pa.Table:
    """Return the groups of rows of a frame of Dask, in which its tasks count with Arrow.

    Its own group-by joins indexes of pandas, which mixes up cells where there are -0.0 and 0.0.
    """
    import dask

    with _computing(name):
        parts = frame[list(dict.fromkeys(columns))].to_delayed()
        tables = dask.compute(*(dask.delayed(count_groups)(part, columns, name) for part in parts))
    return merged(tables)


def known(source: Any) -> Any:
    """Return what narwhals makes of a frame, series or Arrow stream, and others as they are."""
    import narwhals as nw

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    kind = type(source).__module__.partition(".")[0].strip("_")
    # Two columns of one name are looked for before narwhals does, for a clearer message.
    if kind in ("pandas", "pyarrow", "dask", "pyspark", "duckdb"):
        own = "column_names" if isinstance(source, pa.Table) else "columns"
        column_names(getattr(source, own, ()), f"the {kind} dataframe")
    quiet = warnings.catch_warnings(action="ignore", category=FutureWarning)
    with quiet if kind == "dask" else nullcontext():  # support of Dask will become a plugin
        frame = nw.from_native(source, allow_series=True, pass_through=True)
    if hasattr(source, "__arrow_c_stream__") and not hasattr(frame, "implementation"):
        with _computing("the stream of Arrow"):
            return known(pa.table(source))
    return frame


def open_frame(source: Any) -> FrameTable:
    """Return the table of a dataframe."""
    import narwhals as nw

    frame = known(source)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise InputError(
            "a table is the path of a file or a dataframe (pandas, Polars, PyArrow, ...) with "
            f"named columns, but an object of type {type(source).__name__} was given"
        )
    return FrameTable(frame)


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


def _cells(frame: Any, columns: Sequence[Any], name: str) -> list[pa.Array | pa.ChunkedArray]:
    series = [(frame.get_column(c), f"column {str(c).strip()!r} of {name}") for c in columns]
    return [_cells_of_series(cells, what) for cells, what in series]


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
