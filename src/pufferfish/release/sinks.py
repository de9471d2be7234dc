# SPDX-License-Identifier: Apache-2.0
"""Sinks: where released rows go, batch by batch; a new kind of file is one more entry here."""

import contextlib
import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.files import cannot_write
from pufferfish.numbers import IntArray
from pufferfish.release.csvtext import arrow, as_text, decimals, guarded, lines, quoted, texts
from pufferfish.release.postprocess import Postprocess

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns of an output: their names in order, and which of them is the released one."""

    columns: tuple[str, ...]
    public: str
    post: Postprocess


class Sink(Protocol):
    """Takes batches of released rows."""

    def write(self, kept: Mapping[str, pa.Array], values: IntArray, usable: BoolArray) -> None:
        """Write a batch: kept columns by name and released values, all for the usable rows."""

    def close(self) -> None:
        """Write what a complete file needs at its end; the file itself stays open."""


class TextSink:
    """CSV or TSV: exact decimals, line ends of one character, UTF-8; compressed if asked for."""

    def __init__(
        self, file: BinaryIO, layout: Layout, separator: str = ",", compress: bool = False
    ) -> None:
        self._layout, self._separator, self._compress = layout, separator, compress
        # Neither the temporary name nor the time of day belongs in the output.
        self._file: Any = (
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) if compress else file
        )
        names = [self._cell(guarded(texts([name]))) for name in layout.columns]
        self._file.write(lines(names, separator))

    def write(self, kept: Mapping[str, pa.Array], values: IntArray, usable: BoolArray) -> None:
        """Write a batch of rows."""
        post, public = self._layout.post, self._layout.public
        if post.levels is None:
            released = decimals(values, post.step)
        else:
            released = self._cell(guarded(texts(post.levels.names)).take(arrow(values)))
        cells = [
            released if name == public else self._cell(as_text(kept[name]))
            for name in self._layout.columns
        ]
        self._file.write(lines(cells, self._separator))

    def _cell(self, cells: pa.LargeStringArray) -> pa.LargeStringArray:
        return quoted(cells, self._separator)

    def close(self) -> None:
        """Write the end of a compressed file."""
        if self._compress:
            self._file.close()


class ParquetSink:
    """Parquet: released values as int64, double or string; kept columns keep their types."""

    def __init__(self, file: BinaryIO, layout: Layout) -> None:
        self._file, self._layout = file, layout
        self._writer: Any = None

    def write(self, kept: Mapping[str, pa.Array], values: IntArray, usable: BoolArray) -> None:
        """Write a batch of rows as a row group."""
        columns, post = self._layout.columns, self._layout.post
        if post.levels is None:
            released = arrow(post.numpy(values))
        else:
            released = texts(post.levels.names).cast(pa.string()).take(arrow(values))
        arrays = [released if name == self._layout.public else kept[name] for name in columns]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
        if self._writer is None:
            import pyarrow.parquet as pq

            try:
                self._writer = pq.ParquetWriter(self._file, batch.schema)
            except pa.ArrowNotImplementedError as error:
                raise InputError(f"a kept column cannot be written as Parquet: {error}") from None
        self._writer.write_batch(batch.cast(self._writer.schema))

    def close(self) -> None:
        """Write the footer; of no rows at all a table with a header all the same."""
        if self._writer is None:
            nothing = {name: pa.nulls(0, pa.string()) for name in self._layout.columns}
            self.write(nothing, np.empty(0, dtype=np.int64), np.empty(0, dtype=bool))
        self._writer.close()


class MemorySink:
    """Memory: the values of an array or a dataframe, as ``Postprocess.numpy`` shows them."""

    def __init__(self, post: Postprocess) -> None:
        self._post = post
        self._parts: list[IntArray] = [np.empty(0, dtype=np.int64)]
        self._usable: list[BoolArray] = [np.empty(0, dtype=bool)]

    def write(self, kept: Mapping[str, pa.Array], values: IntArray, usable: BoolArray) -> None:
        """Keep a batch of values."""
        self._parts.append(values)
        self._usable.append(usable)

    def close(self) -> None:
        """Do nothing."""

    @property
    def values(self) -> Any:
        """All that was released: int64, float64, or text."""
        return self._post.numpy(np.concatenate(self._parts))

    @property
    def usable(self) -> BoolArray:
        """Which of all rows were released."""
        return np.concatenate(self._usable)


#: What the name of an output may end in, and the sink for it.
SINKS: dict[str, Callable[[BinaryIO, Layout], Sink]] = {
    ".csv": TextSink,
    ".tsv": partial(TextSink, separator="\t"),
    ".csv.gz": partial(TextSink, compress=True),
    ".tsv.gz": partial(TextSink, separator="\t", compress=True),
    ".parquet": ParquetSink,
}


def kind_of(output: str | Path) -> Callable[[BinaryIO, Layout], Sink]:
    """Return the kind of sink for the name of an output, by its ending."""
    name = Path(output).name.lower()
    for ending, kind in SINKS.items():
        if name.endswith(ending) and name != ending:
            return kind
    endings = list(SINKS)
    raise InputError(
        f"cannot write {output}: the name of the output must end in {', '.join(endings[:-1])} or "
        f"{endings[-1]}"
    )


class FileSink:
    """The sink for an output's name, which turns failures of the disk into one line."""

    def __init__(self, output: str | Path, file: BinaryIO, layout: Layout) -> None:
        self._output = output
        with explained(output):
            self._sink = kind_of(output)(file, layout)

    def write(self, kept: Mapping[str, pa.Array], values: IntArray, usable: BoolArray) -> None:
        """Write a batch of rows."""
        with explained(self._output):
            self._sink.write(kept, values, usable)

    def close(self) -> None:
        """Write what a complete file needs at its end."""
        with explained(self._output):
            self._sink.close()

    def abandon(self) -> None:
        """Let go of a file that will be removed."""
        with contextlib.suppress(OSError, ValueError, pa.ArrowException):
            self._sink.close()


@contextlib.contextmanager
def explained(output: str | Path) -> Iterator[None]:
    """Turn a failure of the disk into one line."""
    try:
        yield
    except OSError as error:
        raise cannot_write(output, error) from None


def kept_columns(batch: pa.RecordBatch, names: Sequence[str], usable: Any) -> dict[str, pa.Array]:
    """Return the cells of kept columns in the usable rows of a batch, those that it holds."""
    if not names:
        return {}
    rows = batch if usable.all() else batch.filter(arrow(usable))
    return {name: rows.column(name) for name in names if name in rows.schema.names}
