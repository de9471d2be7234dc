# SPDX-License-Identifier: Apache-2.0
"""Table: the one face of files and dataframes, raw cells and no cleaning done yet."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.tables.arrow import to_list

#: Rows of one batch, unless told otherwise.
BATCH_ROWS = 65_536


class Table(Protocol):
    """A table whose raw cells can be counted or streamed, column by column.

    Raw cells of text files are strings with nothing done to them (an empty cell is null); those of
    Parquet files and dataframes keep their Arrow type. Cleaning is
    :mod:`pufferfish.tables.cells`' work alone, so that counting and releasing agree.
    """

    @property
    def name(self) -> str:
        """What messages call the table: a file's path, or the kind of dataframe."""

    @property
    def path(self) -> Path | None:
        """The file, or None for a dataframe."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in the header, trimmed, in their order."""

    @property
    def comma_may_be_decimal(self) -> bool:
        """Whether ``1,200`` could mean 1.2 here: a text file without commas between its fields."""

    @property
    def unordered(self) -> bool:
        """Whether the rows may come in another order each time: a lazy frame."""

    def column(self, name: str) -> str:
        """Return the name as it stands in ``columns``.

        Raises
        ------
        InputError
            If there is no such column, with the nearest one and the list of all.
        """

    def own_order(self, name: str) -> tuple[str, ...] | None:
        """Return the order that a column's own type states for its levels, or None.

        Ordered categoricals of pandas and of Arrow have one, and the Enum of Polars.
        """

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Count the rows of every distinct combination of raw cells.

        Returns
        -------
        pyarrow.Table
            The given columns in that order, then one int64 column of counts (take it by its
            position: a column of the table may be called "count" too). No order of rows.
        """

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns, in the order of rows, about ``rows`` at a time.

        For a file, memory does not grow with the number of rows.
        """


def resolve(name: str, columns: Sequence[str], table: str) -> str:
    """Return the column that a name means, spaces around it aside.

    Raises
    ------
    InputError
        If there is none, with the nearest one and the list of all.
    """
    wanted = str(name).strip()
    if wanted in columns:
        return wanted
    named = [column for column in columns if column]
    raise InputError(
        f"there is no column {wanted!r} in {table}{did_you_mean(wanted, named)}; "
        f"the columns are {listed(named, 20)}"
    )


def trimmed_names(names: Sequence[Any], table: str) -> tuple[str, ...]:
    """Return the names of a header, trimmed, after a look for two that are the same.

    Raises
    ------
    InputError
        If two columns have one name; columns without a name may be several.
    """
    texts = tuple(str(name).strip() for name in names)
    twice = sorted(text for text, times in Counter(texts).items() if text and times > 1)
    if twice:
        places = [k + 1 for k, text in enumerate(texts) if text == twice[0]]
        raise InputError(
            f"{table} has the column {twice[0]!r} {len(places)} times "
            f"(columns {listed(map(str, places))}); every column needs its own name"
        )
    return texts


def row_of(table: Table, column: str, raw: Any) -> int:
    """Return the first data row (counted from 1, without the header) that holds a raw cell.

    Raises
    ------
    InputError
        If no row does, because the table changed meanwhile.
    """
    before = 0
    for batch in table.batches([column]):
        cells = batch.column(0)
        for place, cell in enumerate(to_list(cells)):
            # NaN is not equal to itself, but here it is the same cell.
            if cell == raw or (cell is not raw and cell != cell and raw != raw):
                return before + place + 1
        before += len(cells)
    raise InputError(f"{table.name} changed while it was read")
