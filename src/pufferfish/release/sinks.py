# SPDX-License-Identifier: Apache-2.0
"""Sinks: where released rows go, batch by batch, one for every kind of file."""

import contextlib
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.release.csvtext import as_text, check_apart, large, lines, neutralised, quoted
from pufferfish.release.releaser import Releaser
from pufferfish.support import IntArray

#: What the name of an output may end in.
EXTENSIONS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


class Sink(Protocol):
    """Takes batches of released rows."""

    def write(self, kept: dict[str, pa.Array], values: IntArray) -> None:
        """Write a batch: the kept columns by name, and the released values, all of one length."""

    def close(self) -> None:
        """Write what a complete file needs at its end."""

    def abandon(self) -> None:
        """Let go of the file, which will be removed."""


def checked_extension(output: str | Path) -> str:
    """Return which of ``EXTENSIONS`` a name ends in.

    Raises
    ------
    InputError
        If it is none of them.
    """
    name = Path(output).name.lower()
    for extension in EXTENSIONS:
        if name.endswith(extension) and name != extension:
            return extension
    raise InputError(
        f"cannot write {output}: the name of the output must end in {', '.join(EXTENSIONS[:-1])} "
        f"or {EXTENSIONS[-1]}"
    )


def open_sink(
    extension: str, file: BinaryIO, columns: Sequence[str], public: str, releaser: Releaser
) -> Sink:
    """Return the sink for a kind of file.

    Parameters
    ----------
    extension : str
        One of ``EXTENSIONS``.
    file : binary file
        Where the bytes go; it is left open.
    columns : sequence of str
        The names of the columns, kept ones and the released one, in their order.
    public : str
        Which of them is the released one.
    releaser : Releaser
        Knows how released values are shown.
    """
    if extension == ".parquet":
        return ParquetSink(file, columns, public, releaser)
    separator = "\t" if extension.startswith(".tsv") else ","
    return TextSink(file, columns, public, releaser, separator, extension.endswith(".gz"))


class TextSink:
    """CSV or TSV: exact decimals, line ends of one character, UTF-8; compressed if asked for."""

    def __init__(
        self,
        file: BinaryIO,
        columns: Sequence[str],
        public: str,
        releaser: Releaser,
        separator: str,
        compress: bool,
    ) -> None:
        self._columns, self._public, self._releaser = columns, public, releaser
        self._separator = separator
        # Neither the temporary name nor the time of day belongs in the output.
        self._file: Any = (
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) if compress else file
        )
        self._compress = compress
        if releaser.levels is not None:
            check_apart(releaser.levels.names)
        names = [self._safe(large([name])) for name in columns]
        self._file.write(lines(names, separator))

    def write(self, kept: dict[str, pa.Array], values: IntArray) -> None:
        """Write a batch of rows."""
        released = self._releaser.text(values)
        if self._releaser.levels is not None:
            released = self._safe(released)
        cells = [
            released if name == self._public else quoted(as_text(kept[name], name), self._separator)
            for name in self._columns
        ]
        self._file.write(lines(cells, self._separator))

    def _safe(self, texts: pa.LargeStringArray) -> pa.LargeStringArray:
        return quoted(neutralised(texts), self._separator)

    def close(self) -> None:
        """Write the end of a compressed file."""
        if self._compress:
            self._file.close()

    def abandon(self) -> None:
        """Let go of the file."""
        with contextlib.suppress(OSError, ValueError):
            self.close()


class ParquetSink:
    """Parquet: released values as int64, double or string; kept columns keep their types."""

    def __init__(
        self, file: BinaryIO, columns: Sequence[str], public: str, releaser: Releaser
    ) -> None:
        self._file, self._columns, self._public = file, columns, public
        self._releaser = releaser
        self._writer: Any = None

    def write(self, kept: dict[str, pa.Array], values: IntArray) -> None:
        """Write a batch of rows as a row group."""
        released = self._releaser.arrow(values)
        arrays = [released if n == self._public else kept[n] for n in self._columns]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(self._columns))
        self._open(batch.schema)
        self._writer.write_batch(batch.cast(self._writer.schema))

    def close(self) -> None:
        """Write the footer."""
        if self._writer is None:  # no rows: a table with a header all the same
            released = self._releaser.arrow(np.empty(0, dtype=np.int64))
            kinds = [released.type if n == self._public else pa.string() for n in self._columns]
            self._open(pa.schema(list(zip(self._columns, kinds, strict=True))))
        self._writer.close()

    def abandon(self) -> None:
        """Let go of the file."""
        if self._writer is not None:
            with contextlib.suppress(OSError, ValueError, pa.ArrowException):
                self._writer.close()

    def _open(self, schema: pa.Schema) -> None:
        if self._writer is None:
            import pyarrow.parquet as pq

            try:
                self._writer = pq.ParquetWriter(self._file, schema)
            except pa.ArrowNotImplementedError as error:
                raise InputError(f"a kept column cannot be written as Parquet: {error}") from None
