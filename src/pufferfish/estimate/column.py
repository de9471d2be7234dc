# SPDX-License-Identifier: Apache-2.0
"""The released column as it comes: an array, a dataframe or a file, counted by distinct text."""

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError, listed
from pufferfish.release.csvtext import written
from pufferfish.tables import Rules, Table, open_table
from pufferfish.tables.cells import Cells, cells_of, distinct
from pufferfish.tables.files import JSON, PARQUET
from pufferfish.tables.frames import raw_cells


@dataclass(frozen=True, eq=False)
class Column:
    """The distinct cells of a released column.

    Attributes
    ----------
    source : str
        What messages call the whole: a file's path, or the kind of array or dataframe.
    name : str or None
        The column; None for an array.
    counts : dict of str to int
        Rows by trimmed text, none of it empty.
    where : callable
        Returns in words where the first of some texts stands.
    text_file : bool
        Whether it comes from a text file, in which a release writes some levels with an apostrophe.
    """

    source: str
    name: str | None
    counts: dict[str, int]
    where: Callable[[Container[str]], str]
    text_file: bool = False


def read_column(released: Any, rules: Rules | None, column: str | None) -> Column:
    """Return the released column of what is given.

    Parameters
    ----------
    released : array, list, series, dataframe, str or Path
        A text is the path of a file.
    rules : Rules or None
        The plan's, which name the column.
    column : str or None
        Its name, where it is another one.

    Raises
    ------
    InputError
        If there is no such column, it has no name, or a cell is empty.
    """
    if isinstance(released, pa.RecordBatch):
        released = pa.Table.from_batches([released])
    known = nw.from_native(released, allow_series=True, pass_through=True)
    if isinstance(released, str | Path) or isinstance(known, nw.DataFrame | nw.LazyFrame):
        return _of_table(open_table(released), rules, column)
    if column is not None:
        raise InputError("a column can be named of a dataframe or a file, but not of an array")
    return _of_array(released)


def _of_table(table: Table, rules: Rules | None, column: str | None) -> Column:
    name = _name(table, rules, column)
    groups = table.groups([name])
    cells = cells_of(groups.column(0).combine_chunks(), f"column {name!r} of {table.name}")

    def where(texts: Container[str]) -> str:
        before = 0
        for batch in table.batches([name]):
            place = _first(batch.column(0), texts)
            if place is not None:
                return f"data row {before + place + 1} of {table.name}, column {name!r},"
            before += len(batch)
        raise InputError(f"{table.name} changed while it was read")

    found = _counted(table.name, name, cells, groups.column(1).to_pylist(), where)
    return replace(found, text_file=_is_text(table))


def _of_array(values: Any) -> Column:
    if isinstance(values, range):
        values = list(values)
    try:
        raw = raw_cells(np.ma.filled(values) if isinstance(values, np.ma.MaskedArray) else values)
    except pa.ArrowException:
        kind = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"an array of numbers or text is needed, but {kind} was given") from None
    if np.ma.is_masked(values):
        raise _empty(_position(int(np.ma.getmaskarray(values).argmax())))
    picked, places = distinct(raw)

    def where(texts: Container[str]) -> str:
        return _position(_first(raw, texts) or 0)

    counts = np.bincount(places, minlength=len(picked)).tolist()
    return _counted("the array", None, cells_of(picked, "the array"), counts, where)


def _counted(
    source: str,
    name: str | None,
    cells: Cells,
    counts: list[int],
    where: Callable[[Container[str]], str],
) -> Column:
    found: Counter[str] = Counter()
    for text, count in zip(cells.texts, counts, strict=True):
        found[text] += count
    if found[""]:
        raise _empty(where(("",)))
    del found[""]
    if not found:
        raise InputError(f"{source} holds no released value: there is nothing to estimate from")
    # In an order that does not change from one run to the next.
    return Column(source, name, dict(sorted(found.items())), where)


def _name(table: Table, rules: Rules | None, column: str | None) -> str:
    """Return which column was released."""
    if column is not None:
        return table.column(column)
    if rules is None:
        if len(table.columns) != 1:
            raise InputError(
                f"{table.name} has the columns {listed(table.columns)}, and the plan names none; "
                "say which one is the released one with --column COL (column=COL)"
            )
        return table.columns[0]
    # In a text file a name that looks like a formula has got an apostrophe.
    for name in (rules.public, written(rules.public)):
        if name in table.columns:
            return name
    raise InputError(
        f"there is no column {rules.public!r}, which the plan releases, in {table.name}; the "
        f"columns are {listed(table.columns, 20)}; if it was renamed say so with --column COL "
        "(column=COL)"
    )


def _is_text(table: Table) -> bool:
    path = table.path
    return path is not None and path.suffix.lower() not in (*PARQUET, *JSON)


def _first(cells: Any, texts: Container[str]) -> int | None:
    """Return the first place of one of some texts."""
    picked, places = distinct(cells)
    wanted = [text in texts for text in cells_of(picked, "the column").texts]
    hits = np.flatnonzero(np.array(wanted, dtype=bool)[places])
    return int(hits[0]) if len(hits) else None


def _position(place: int) -> str:
    return f"the value at position {place} (counted from 0)"


def _empty(where: str) -> InputError:
    return InputError(
        f"{where} is empty, but a release writes no empty cell; is this the released column? take "
        "out rows and lines that were added to it"
    )
