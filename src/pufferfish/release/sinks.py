# SPDX-License-Identifier: Apache-2.0
"""Sinks: files that released rows go into, batch by batch; a new format is one more entry here."""

import contextlib
import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.files import cannot_write
from pufferfish.numbers import IntArray
from pufferfish.release.csvtext import arrow, as_text, decimals, guarded, lines, quoted, texts
from pufferfish.release.postprocess import Postprocess


class Sink(Protocol):
    """Takes batches of released rows."""

    def write(self, kept: Mapping[str, pa.Array], values: IntArray) -> None:
        """Write a batch: the kept columns by name, and the released values."""

    def close(self) -> None:
        """Write what a complete file needs at its end; the file itself stays open."""


class TextSink:
    """CSV or TSV: exact decimals, line ends of one character, UTF-8; compressed if asked for."""

    def __init__(
        self,
        file: BinaryIO,
        columns: Sequence[str],
        public: str,
        post: Postprocess,
        separator: str = ",",
        compress: bool = False,
    ) -> None:
        self._columns, self._public, self._post = columns, public, post
        self._separator, self._compress = separator, compress
        # Neither the temporary name nor the time of day belongs in the output.
        self._file: Any = (
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) if compress else file
        )
        names = [quoted(guarded(texts([name])), separator) for name in columns]
        self._file.write(lines(names, separator))

    def write(self, kept: Mapping[str, pa.Array], values: IntArray) -> None:
        """Write a batch of rows."""
        if self._post.levels is None:
            released = decimals(values, self._post.step)
        else:
            released = guarded(texts(self._post.levels.names)).take(arrow(values))
        cells = [
            released if name == self._public else as_text(kept[name]) for name in self._columns
        ]
        separated = [quoted(column, self._separator) for column in cells]
        self._file.write(lines(separated, self._separator))

    def close(self) -> None:
        """Write the end of a compressed file."""
        if self._compress:
            self._file.close()


class ParquetSink:
    """Parquet: released values as int64, double or string; kept columns keep their types."""

    def __init__(
        self, file: BinaryIO, columns: Sequence[str], public: str, post: Postprocess
    ) -> None:
        self._file, self._columns, self._public, self._post = file, list(columns), public, post
        self._writer: Any = None

    def write(self, kept: Mapping[str, pa.Array], values: IntArray) -> None:
        """Write a batch of rows as a row group."""
        if self._post.levels is None:
            released = arrow(self._post.numpy(values))
        else:
            released = texts(self._post.levels.names).cast(pa.string()).take(arrow(values))
        arrays = [released if name == self._public else kept[name] for name in self._columns]
        batch = pa.RecordBatch.from_arrays(arrays, names=self._columns)
        if self._writer is None:
            import pyarrow.parquet as pq

            self._writer = pq.ParquetWriter(self._file, batch.schema)
        self._writer.write_batch(batch.cast(self._writer.schema))

    def close(self) -> None:
        """Write the footer; of no rows at all a table with a header all the same."""
        if self._writer is None:
            nothing = {name: pa.nulls(0, pa.string()) for name in self._columns}
            self.write(nothing, np.empty(0, dtype=np.int64))
        self._writer.close()


#: What the name of an output may end in, and what writes it.
SINKS: dict[str, Callable[[BinaryIO, Sequence[str], str, Postprocess], Sink]] = {
    ".csv": TextSink,
    ".tsv": partial(TextSink, separator="\t"),
    ".csv.gz": partial(TextSink, compress=True),
    ".tsv.gz": partial(TextSink, separator="\t", compress=True),
    ".parquet": ParquetSink,
}


def sink_for(output: str | Path) -> Callable[[BinaryIO, Sequence[str], str, Postprocess], Sink]:
    """Return what writes an output, by the ending of its name."""
    name = Path(output).name.lower()
    for ending, sink in SINKS.items():
        if name.endswith(ending) and name != ending:
            return sink
    *others, last = SINKS
    raise InputError(
        f"cannot write {output}: the name of the output must end in {', '.join(others)} or {last}"
    )


def abandon(sink: Sink) -> None:
    """Let go of a file that will be removed."""
    with contextlib.suppress(OSError, ValueError, pa.ArrowException):
        sink.close()


@contextlib.contextmanager
def explained(output: str) -> Iterator[None]:
    """Turn a failure of the disk into one line."""
    try:
        yield
    except OSError as error:
        raise cannot_write(output, error) from None


def kept_cells(batch: pa.RecordBatch, names: Sequence[str], usable: Any) -> dict[str, pa.Array]:
    """Return the cells of kept columns in the usable rows of a batch."""
    rows = batch if not names or usable.all() else batch.filter(arrow(usable))
    return {name: rows.column(name) for name in names}
