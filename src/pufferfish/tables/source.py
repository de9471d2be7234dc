# SPDX-License-Identifier: Apache-2.0
"""Sources: files, standard input and dataframes as tables of raw cells."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

#: Rows of one batch, unless told otherwise.
BATCH_ROWS = 65_536


class Table:
    """A table whose raw cells can be counted or streamed, column by column.

    Attributes
    ----------
    name : str
        What messages call the table: a file's path, or the kind of dataframe.
    path : Path or None
        The file, or None for a dataframe and for standard input.
    columns : tuple of str
        The names in the header, trimmed and in NFC.
    unordered : bool
        Whether the rows may come in another order each time: a lazy frame.
    """

    name: str
    path: Path | None
    columns: tuple[str, ...]
    unordered: bool = False

    def column(self, name: str) -> str:
        """Return the name as it stands in ``columns``."""
        raise NotImplementedError

    def typed(self, name: str) -> bool:
        """Return whether the cells of a column come as numbers or truth values, not as text."""
        raise NotImplementedError

    def own_order(self, name: str) -> tuple[str, ...] | None:
        """Return the order that a column's own type states for its levels, or None."""
        return None

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        raise NotImplementedError

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        raise NotImplementedError


def open_table(source: Any, *, delimiter: str | None = None) -> Table:
    """Return the table behind a path, "-" (standard input), a dataframe or a Table."""
    raise NotImplementedError
