# SPDX-License-Identifier: Apache-2.0
"""Opening: the table behind a path or a dataframe."""

from pathlib import Path
from typing import Any

from pufferfish.tables.files import open_file
from pufferfish.tables.frames import FrameTable, open_frame
from pufferfish.tables.source import Table


def open_table(source: Any) -> Table:
    """Return the table behind a path or a dataframe.

    Parameters
    ----------
    source : str, Path or dataframe
        A CSV, TSV, TXT, Parquet or JSON file (text files also as .gz), or any dataframe that
        narwhals knows. What is a Table already comes back as it is.

    Raises
    ------
    InputError
        If the file cannot be read, or the object is no table.
    """
    if isinstance(source, str | Path):
        return open_file(Path(source))
    if isinstance(source, FrameTable):
        return source
    # By its class: a dataframe shows its columns as attributes, whatever their names.
    if all(callable(getattr(type(source), method, None)) for method in ("groups", "batches")):
        table: Table = source
        return table
    return open_frame(source)
