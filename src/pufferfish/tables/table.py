# SPDX-License-Identifier: Apache-2.0
"""Table: the one face of files and dataframes, raw cells and no cleaning done yet.

Raw cells of text files are strings with nothing done to them (an empty cell is null); those of
Parquet files and dataframes keep their Arrow type.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish.errors import InputError, did_you_mean, listed

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
    textual : bool
        Whether cells of all kinds come as text, as in text files and JSON.
    """

    name: str
    path: Path | None = None
    columns: tuple[str, ...]
    unordered: bool = False
    textual: bool = False

    def column(self, name: str) -> str:
        """Return the name as it stands in ``columns``."""
        wanted = unicodedata.normalize("NFC", str(name).strip())
        if wanted in self.columns:
            return wanted
        named = [column for column in self.columns if column]
        raise InputError(
            f"there is no column {wanted!r} in {self.name}{did_you_mean(wanted, named)}; "
            f"the columns are {listed(named, 20)}"
        )

    def own_order(self, name: str) -> tuple[str, ...] | None:
        """Return the order that a column's own type states for its levels, or None."""
        return None

    def groups(self, columns: Sequence[str]) -> pa.Table:
        """Return the distinct combinations of raw cells, with int64 counts as last column."""
        raise NotImplementedError

    def batches(self, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the raw cells of some columns in the order of rows."""
        raise NotImplementedError


def column_names(names: Sequence[Any], table: str) -> tuple[str, ...]:
    """Return the names of a header, trimmed and in NFC; only empty ones may occur twice."""
    texts = tuple(unicodedata.normalize("NFC", str(name).strip()) for name in names)
    first: dict[str, int] = {}
    for place, text in enumerate(texts, start=1):
        if text and first.setdefault(text, place) < place:
            raise InputError(
                f"{table} has the column {text!r} twice (columns {first[text]} and {place}); every "
                "column needs its own name, in a header line"
            )
    return texts
