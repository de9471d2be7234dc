# SPDX-License-Identifier: Apache-2.0
"""Frames: any dataframe, series or array that narwhals or Arrow knows, as exact raw cells."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
    is_text,
    one_array,
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
        frame = _fetched(self._frame, raw, self.name) if _is_lazy(self._frame) else self._frame
        cells = _cells(frame, raw, raw, self.name)
        yield from pa.Table.from_arrays(cells, names).to_batches(max_chunksize=rows)

    def hold(self, columns: Sequence[str]) -> Any:
        """Return the frame; of a lazy one these columns, computed once for all passes to come.

        Computed again they may have other rows, or another order.
        """
        if _is_lazy(self._frame):
            self._frame = _fetched(self._frame, self._raw(columns), self.name)
        return self._frame

    def _raw(self, columns: Sequence[str]) -> list[Any]:
        return [self.raw_names[self.column(name)] for name in columns]


def count_groups(frame: Any, columns: Sequence[Any], name: str = "the table") -> pa.Table:
    """Return the distinct combinations of raw cells of a frame, with int64 counts as last column.

    ``frame`` is one of narwhals, ``columns`` are named as it names them, ``name`` is for messages.
    The engine of a lazy frame counts, if it is one that keeps apart all cells that differ; of other
    engines the columns are fetched.
    """
    names, read, exact = [f"x{k}" for k in range(len(columns))], columns, False
    if frame.implementation.is_dask():
        with _computing(name):
            return _dask_groups(frame, columns, name)
    if _is_lazy(frame):
        (frame, exact), read = _computed(frame, columns, name, count=True), names
    cells = [one_array(column) for column in _cells(frame, read, columns, name)]
    if exact:
        counts = one_array(frame.get_column("n").to_arrow()).cast(pa.int64())
        return pa.Table.from_arrays([*cells, counts], [*names, "n"])
    table = pa.Table.from_arrays(cells, names)
    return table.group_by(names, use_threads=False).aggregate([([], "count_all")])


def _is_lazy(frame: Any) -> bool:
    return not hasattr(frame, "rows")


@contextmanager
def _computing(name: str) -> Iterator[None]:
    """Turn what an engine raises into an error of ours, for its message may quote cells."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{name} cannot be computed: {type(error).__name__} was raised, with a message that "
            "may quote cells and is left out; compute the frame by itself to see it"
        ) from None


def _fetched(frame: Any, columns: Sequence[Any], name: str) -> Any:
    """Return columns of a lazy frame, under their names, as an eager one."""
    columns = list(dict.fromkeys(columns))
    found, _ = _computed(frame, columns, name)
    return found.rename({f"x{k}": column for k, column in enumerate(columns)})


def _computed(
    frame: Any, columns: Sequence[Any], name: str, count: bool = False
) -> tuple[Any, bool]:
    """Return columns of a lazy frame as an eager one with x0, x1, ..., and whether it is counted.

    Then these are the distinct combinations, with the counts as n.
    """
    import narwhals as nw
    from narwhals.selectors import datetime

    with _computing(name):
        rows, texts, exact = _selected(frame, columns, name)
        if count and exact:
            names = [f"x{k}" for k in range(len(columns))]
            rows = rows.group_by(names).agg(nw.len().alias("n"))
        found = rows.collect()
        if found.implementation.is_pyarrow():  # of SQL, where the zone is that of the session
            utc = datetime(time_zone="*").dt.convert_time_zone("UTC")
            found = found.with_columns(utc, *(nw.col(x).cast(nw.String) for x in texts))
    return found, count and exact


def _selected(frame: Any, columns: Sequence[Any], name: str) -> tuple[Any, list[str], bool]:
    """Return columns of a lazy frame as x0, x1, ..., and whether its engine counts exactly.

    Between the two: which columns are text that became bytes, since collations of SQL take
    different texts for one. Columns go by their place, for SQL overlooks capitals in names.
    """
    import narwhals as nw

    native, schema, engine = frame.to_native(), frame.collect_schema(), frame.implementation
    at = {f"x{k}": schema.names().index(column) for k, column in enumerate(columns)}
    if engine.is_ibis() and len({n.casefold() for n in schema.names()}) < len(schema):
        raise InputError(f"columns of {name} have names that differ in case alone; rename them")
    # Arrow lacks the largest integers of DuckDB.
    texts = [x for x, k in at.items() if schema.dtypes()[k] in (nw.String, nw.UInt128)]
    if engine.is_duckdb():
        from duckdb import SQLExpression

        sql = {
            x: f"encode(#{k + 1}::VARCHAR)" if x in texts else f"#{k + 1}" for x, k in at.items()
        }
        native = native.select(*(SQLExpression(cell).alias(x) for x, cell in sql.items()))
    elif engine.is_pyspark() or engine.is_pyspark_connect():
        native = native.toDF(*(f"c{k}" for k in range(len(schema))))
        cells = {x: native[f"c{k}"] for x, k in at.items()}
        cells |= {x: cells[x].cast("binary") for x in texts}
        native = native.select(*(cell.alias(x) for x, cell in cells.items()))
    elif engine.is_ibis() and native.get_backend().name == "duckdb":
        import ibis

        signature = ((str,), bytes)
        encode = ibis.udf.scalar.builtin(lambda _: None, name="encode", signature=signature)
        cells = {x: native[column] for x, column in zip(at, columns, strict=True)}
        cells |= {x: encode(cells[x]) for x in texts}
        native = native.select(**cells)
    else:
        fields = (nw.col(column).alias(f"x{k}") for k, column in enumerate(columns))
        return frame.select(*fields), [], engine.is_polars()
    return _narwhals(native), texts, True


def _dask_groups(frame: Any, columns: Sequence[Any], name: str) -> pa.Table:
    """Return the groups of rows of a frame of Dask, which its tasks count with Arrow.

    Its own group-by joins indexes of pandas, which takes -0.0 and 0.0, and cells beside them, for
    one another.
    """
    from dask import delayed

    partitions = frame.to_native()[list(dict.fromkeys(columns))].to_delayed()
    parts = [delayed(_partition_groups)(part, columns, name) for part in partitions]
    while len(parts) > 1:
        some = (parts[k : k + 16] for k in range(0, len(parts), 16))
        parts = [delayed(_merged)(each, name) for each in some]
    return parts[0].compute()


def _partition_groups(part: Any, columns: Sequence[Any], name: str) -> pa.Table:
    table = count_groups(_narwhals(part), columns, name)
    cells = [c.cast(pa.large_string()) if is_text(c.type) else c for c in table.columns]
    return pa.Table.from_arrays(cells, table.column_names)


def _merged(tables: Sequence[pa.Table], name: str) -> pa.Table:
    """Return the sums of the groups of some partitions."""
    *names, count = tables[0].column_names
    if any(table.schema != tables[0].schema for table in tables):
        raise InputError(
            f"two partitions of {name} have cells of unlike types in a column; give each column "
            "in use one type, with astype"
        )
    total = pa.concat_tables(tables).group_by(names).aggregate([(count, "sum")])
    return total.select([*names, f"{count}_sum"]).rename_columns(tables[0].column_names)


def known(source: Any) -> Any:
    """Return what narwhals makes of a dataframe or a series, and anything else as it is.

    A stream of Arrow is read, once and for all.
    """
    import narwhals as nw

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    kind = type(source).__module__.partition(".")[0].strip("_")
    # Two columns of one name are looked for before narwhals does, for a clearer message.
    if kind in ("pandas", "pyarrow", "dask", "pyspark", "duckdb"):
        own = "column_names" if isinstance(source, pa.Table) else "columns"
        column_names(getattr(source, own, ()), f"the {kind} dataframe")
    frame = _narwhals(source)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame | nw.Series):
        return frame
    if hasattr(source, "__arrow_c_stream__"):
        with _computing("the stream of Arrow"):
            return _narwhals(pa.table(source))
    return frame


def _narwhals(source: Any) -> Any:
    import narwhals as nw

    with warnings.catch_warnings():
        # Until it is a plugin, narwhals' own support of Dask does.
        warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
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


def _cells(
    frame: Any, read: Sequence[Any], columns: Sequence[Any], name: str
) -> list[pa.Array | pa.ChunkedArray]:
    """Return columns of an eager frame as Arrow; ``columns`` are what messages call them."""
    series = zip(map(frame.get_column, read), columns, strict=True)
    return [_cells_of_series(s, f"column {str(c).strip()!r} of {name}") for s, c in series]


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
