# SPDX-License-Identifier: Apache-2.0
"""Release: table batches to atoms, through the mechanism, into an array, a frame or a file."""

import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.files import PendingFile, checked_target, writing
from pufferfish.numbers import checked_flag
from pufferfish.release.parts import release_parts
from pufferfish.release.rows import BoolArray, Progress, Reader
from pufferfish.release.sinks import sink_for
from pufferfish.release.spec import ReleaseReport, ReleaseSpec, set_column
from pufferfish.tables.frames import FrameTable, known, open_frame, raw_cells
from pufferfish.tables.source import open_table
from pufferfish.tables.table import BATCH_ROWS

#: How many batches are drawn or written at most while the next is read.
_AHEAD = 2
#: When so many bytes at once have been freed, glibc keeps freed arrays of their size and below for
#: new ones; otherwise the system takes them back after each batch, and clears them for the next.
_KEPT = 1 << 24


class Prepared:
    """A release of a table into a file, of which all is checked that needs no row.

    After :meth:`rehearse`, the dry pass before a charge, there are a report of what it will do and
    a digest of the atoms of all rows: the file gets its name only if that is still theirs.
    ``inputs`` are further files, such as a plan, which the output must not be.
    """

    report: ReleaseReport
    digest: str = ""

    def __init__(
        self, source: Any, output: str | Path, spec: ReleaseSpec, keep: Sequence[str] = (), *,
        force: bool = False, seed: int | None = None, inputs: Sequence[str | Path] = (),
    ) -> None:  # fmt: skip
        self._sink, self._output, self._force = sink_for(output), str(output), force
        table = open_table(source)
        self._target = checked_target(output, force, [*table.inputs, *inputs])
        if seed is not None and "test" not in self._target.name.lower():
            raise InputError(
                "a release from a seed is for tests only: the name of its output must contain "
                f"'test', but {self._target.name} was given"
            )
        self._reader = reader = Reader(spec, table, keep, seed)
        if isinstance(table, FrameTable):  # its rows must be the same in both passes
            table.hold([*reader.counted, *reader.keep])

    def rehearse(self, progress: Progress | None = None) -> None:
        """Make the dry pass: everything is read and checked, and nothing is drawn or written."""
        with PendingFile(self._target, self._force):
            pass  # it can be made
        self._reader.digests = True
        for _ in self._reader.read(None, progress):
            pass
        self.report = self._reader.report(self._output)
        self.digest = self._reader.digest

    def write(self, progress: Progress | None = None) -> ReleaseReport:
        """Write the file; after a dry pass it gets its name only if the rows are the same."""
        reader, output = self._reader, self._output
        np.empty(_KEPT, dtype=np.uint8)
        total = self.report.rows_read if self.digest else None
        with PendingFile(self._target, self._force) as pending:
            with writing(output):
                sink = self._sink(pending.file, reader.written, reader.public, reader.post)
            write = writing(output)(sink.write)
            try:
                # While one batch is written, the next is drawn, and the one after it is read.
                with ThreadPoolExecutor(1) as drawer, ThreadPoolExecutor(1) as writer:
                    under_way: deque[Future[None]] = deque()
                    for rows_of in reader.read(None, progress, total):
                        cells = drawer.submit(reader.drawn, *rows_of)
                        under_way.append(writer.submit(lambda drawn: write(*drawn.result()), cells))
                        if len(under_way) > _AHEAD:
                            under_way.popleft().result()
                    for written in under_way:
                        written.result()
                rows = reader.seen["rows_read"]
                if not self.digest:
                    self.report = reader.report(output)
                elif (reader.digest, rows) != (self.digest, total):
                    source = self.report.source
                    raise InputError(f"{source} changed while it was read; nothing was written")
                if progress is not None:
                    progress(rows, rows)  # the last moment at which whoever watches can stop it
            except BaseException:
                with contextlib.suppress(OSError, ValueError, pa.ArrowException):
                    sink.close()  # the file will be removed
                raise
            with writing(output):
                sink.close()
                pending.publish()
        return self.report


def release_file(
    source: Any, output: str | Path, spec: ReleaseSpec, keep: Sequence[str] = (), *,
    progress: Progress | None = None, **options: Any,
) -> ReleaseReport:  # fmt: skip
    """Release the public column of a table into a file, in one pass over its rows.

    That of a PySpark or Dask dataframe goes into a folder. ``options`` are ``force``, ``seed`` and
    ``inputs``: further files, such as a plan, which the output must not be.
    """
    frame = known(source)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.value in ("pyspark", "dask"):
        return release_parts(frame, output, spec, keep, **options)
    return Prepared(source, output, spec, keep, **options).write(progress)


def release_any(
    values: Any, spec: ReleaseSpec, keep: Any = (), *, seed: int | None = None, sets: bool = False
) -> Any:
    """Release a dataframe, a series, an array or a list: its like comes back, with ``sets`` two.

    Of a dataframe the released columns and the kept ones come back, without the rows that have no
    public value, and under a fresh index: an index may tell as much as a column does.
    """
    if isinstance(values, str | Path):
        raise InputError(
            f"{str(values)!r} names a file: say where its release goes, with output='...'"
        )
    frame = known(values)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return _release_frame(frame, spec, keep, seed)
    if keep:
        raise InputError("columns can be kept of a dataframe, but not of an array")
    if spec.unit is not None:
        raise InputError(
            "an array does not say which rows are one person's; release a dataframe or a file with "
            f"the unit column {spec.unit!r}"
        )
    batches = pa.table({"x": raw_cells(values)}).to_batches(max_chunksize=BATCH_ROWS)
    reader = Reader(spec, seed=seed)
    if checked_flag(sets, "sets") and reader.post.sets is None:
        raise InputError("sets=True is for channels that publish sets of values beside labels")
    released, _ = _in_memory(reader, batches)
    if isinstance(frame, nw.Series):
        both = zip((frame.name, frame.name and set_column(frame.name)), released, strict=False)
        released = [_series(name, values, frame).to_native() for name, values in both]
    return tuple(released) if sets else released[0]


def _release_frame(frame: Any, spec: ReleaseSpec, keep: Sequence[str], seed: int | None) -> Any:
    lazy, engine = isinstance(frame, nw.LazyFrame), frame.implementation
    table = open_frame(frame)
    if lazy and not (engine.is_polars() or engine.is_duckdb() or engine.is_ibis()):
        raise InputError(
            f"{table.name} is released into files, which hold one version of each row: say where, "
            'with output="NAME.parquet"'
        )
    reader = Reader(spec, table, keep, seed)
    eager = table.hold([*reader.counted, *reader.keep])
    # Kept columns need not become Arrow arrays.
    released, usable = _in_memory(reader, table.batches(reader.counted))
    names = table.raw_names
    columns = [names[reader.public], reader.set_column]
    answers = [_series(*each, eager) for each in zip(columns, released, strict=False)]
    places = map(eager.columns.index, (names[name] for name in (reader.public, *reader.keep)))
    kept = eager.select(nw.nth(*places))  # Polars takes names such as * for patterns
    if not usable.all():
        kept = kept.filter(usable.tolist())
    answer = nw.maybe_reset_index(kept).with_columns(*answers)
    order = [answer.columns.index(names.get(name, name)) for name in reader.written]
    answer = answer.select(nw.nth(*order))
    # A lazy one holds what was drawn: nothing is drawn again when it is computed again.
    return (answer.lazy(backend=engine) if lazy else answer).to_native()


def _in_memory(reader: Reader, batches: Iterable[pa.RecordBatch]) -> tuple[list[Any], BoolArray]:
    """Return the released column and that of the sets, where there is one, and the rows of both."""
    nothing = np.zeros(0, dtype=np.int64)
    parts = [(nothing, nothing, nothing.astype(bool))]
    for _, atoms, usable in reader.read(batches):
        parts.append((*reader.post.draw(atoms, reader.entropy), usable))
    reader.report()
    values, sets, usable = (np.concatenate(part) for part in zip(*parts, strict=True))
    names = [] if reader.post.sets is None else [np.array(reader.post.sets.names)[sets]]
    return [reader.post.numpy(values), *names], usable


def _series(name: Any, values: Any, like: Any) -> Any:
    """Return what was released as a series of the same library."""
    if values.dtype.kind == "U":  # every row takes the room of a reference, not of a long name
        values = values.astype(object)
    kind = {"i": nw.Int64(), "f": nw.Float64()}.get(values.dtype.kind, nw.String())
    return nw.new_series(name, values, kind, backend=nw.get_native_namespace(like))
