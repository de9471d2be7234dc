# SPDX-License-Identifier: Apache-2.0
"""Groups: the distinct combinations of raw cells, counted in parts and put together.

A table of groups has a column for each of the columns, and last the counts, int64.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.numbers import IntArray
from pufferfish.tables.table import BATCH_ROWS, Table, arrow, as_strings, distinct, one_array

#: So many parts are put together at once, for memory.
_FEW = 8


def one_pass(table: Table, sets: Sequence[Sequence[str]]) -> list[pa.Table]:
    """Return the groups of several sets of columns, from one pass over all rows of a table."""
    names = list(dict.fromkeys(name for columns in sets for name in columns))
    found = [[grouped([pa.nulls(0)] * len(columns))] for columns in sets]
    for batch in table.batches(names, 2 * BATCH_ROWS):
        for columns, own in zip(sets, found, strict=True):
            own.append(grouped([batch.column(names.index(name)) for name in columns]))
            own[:] = own if len(own) < _FEW else [merged(own)]
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
