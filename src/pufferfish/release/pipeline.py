# SPDX-License-Identifier: Apache-2.0
"""Release: table batches to atoms, through the mechanism, into an array, a frame or a file."""

import io
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from pufferfish.errors import (
    InputError,
    OutsidePromiseWarning,
    SeededWarning,
    counted,
    listed,
    warn_user,
)
from pufferfish.files import PendingFile, checked_target
from pufferfish.mechanisms.entropy import Entropy, seeded_entropy
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.readback import check_read_back, keep_rate
from pufferfish.release.report import ReleaseReport
from pufferfish.release.rows import Columns, Reader, choose_columns
from pufferfish.release.sinks import (
    FileSink,
    Layout,
    MemorySink,
    Sink,
    explained,
    kept_columns,
    kind_of,
)
from pufferfish.release.spec import ReleaseSpec
from pufferfish.tables.arrow import one_array
from pufferfish.tables.frames import raw_cells
from pufferfish.tables.source import open_table
from pufferfish.tables.table import BATCH_ROWS, Table

#: Called with the rows done so far and the rows in all, None while these are not yet known.
Progress = Callable[[int, int | None], None]

#: What was warned of already, by the mechanism of a plan: once per plan and process.
_WARNED: dict[int, tuple[weakref.ref[Any], set[str]]] = {}


@dataclass(frozen=True, eq=False)
class _Job:
    """A release of which all is checked that does not depend on the rows."""

    spec: ReleaseSpec
    columns: Columns
    post: Postprocess
    table: Table | None
    entropy: Entropy | None
    seeded: bool

    @classmethod
    def of(
        cls, spec: ReleaseSpec, columns: Columns, table: Table | None, seed: int | None
    ) -> "_Job":
        post = Postprocess(spec)
        check_read_back(spec, post)
        entropy = None if seed is None else seeded_entropy(seed)
        return cls(spec, columns, post, table, entropy, seed is not None)

    @property
    def source(self) -> str:
        """What messages call the values."""
        return "the array" if self.table is None else self.table.name

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the columns to read of the table."""
        return iter(()) if self.table is None else self.table.batches(self.columns.read)

    def run(
        self,
        batches: Iterable[pa.RecordBatch],
        sink: Sink | None,
        progress: Callable[[int], None] = lambda done: None,
        *,
        draw: bool = True,
    ) -> Reader:
        """Read all rows into the sink; without ``draw`` 0 stands for every released value."""
        reader = Reader(self.spec, self.columns, self.table)
        for batch in batches:
            atoms, usable = reader.read(batch)
            if sink is not None:
                kept = kept_columns(batch, self.columns.keep, usable)
                values = self.post.draw(atoms, self.entropy) if draw else 0 * atoms
                sink.write(kept, values, usable)
            progress(reader.tally.rows)
        reader.check_people()
        return reader

    def report(self, reader: Reader, output: str | None) -> ReleaseReport:
        """Return the report, once all that it holds was allowed; warn of what it means."""
        tally, columns = reader.tally, self.columns
        unchanged = check_read_back(self.spec, self.post, tally.exact + tally.moved)
        self._warn(reader, output)
        return ReleaseReport(
            source=self.source,
            output=output,
            column=columns.public,
            keep=columns.keep,
            mechanism=self.post.mechanism,
            rows_read=tally.rows,
            rows_released=tally.released,
            set_aside=tally.rows - tally.released,
            clamped=tally.clamped,
            outside_promise=tally.outside if reader.counts_secrets else None,
            seeded=self.seeded,
            keep_rate=keep_rate(self.post, tally.exact, tally.moved),
            unchanged=unchanged,
        )

    def _warn(self, reader: Reader, output: str | None) -> None:
        """Warn of what the guarantee does not cover (theory, section 7), of each kind once."""
        tally, columns = reader.tally, self.columns
        missing = tally.rows - tally.released if output is None else 0  # else the report says so
        said = {
            "keep": columns.keep
            and f"with the kept columns ({listed(columns.keep)}) beside it the released column is "
            "no longer protected: together they may reveal the secret, even where each alone "
            "does not",
            "absent": columns.absent
            and f"the secret column {columns.absent!r} is not in the table, so rows outside the "
            "promise were not counted",
            "outside": tally.outside
            and f"{counted(tally.outside, 'released row')} with a secret that is in no pair: the "
            "promise does not cover them",
            "clamped": tally.clamped
            and f"{counted(tally.clamped, 'released value')} moved to the nearest value of the "
            "support; the prior gives such values probability 0, so the guarantee does not cover "
            "these rows",
            "missing": missing
            and f"{counted(missing, 'row')} left out (no public value); which rows are left out "
            "shows in the output, and no mechanism covers it",
        }
        plan = self.spec.mechanism
        owner, known = _WARNED.get(id(plan), (None, set()))
        if owner is None or owner() is not plan:
            known = set()
            _WARNED[id(plan)] = weakref.ref(plan), known
        for kind, text in said.items():
            if text and kind not in known:
                known.add(kind)
                warn_user(str(text), OutsidePromiseWarning)
        if self.seeded:
            warn_user(
                "the release was drawn from a seed: for tests only, it protects nobody",
                SeededWarning,
            )


class Prepared:
    """A release into a file of which all is checked that depends on neither chance nor disk.

    Attributes
    ----------
    report : ReleaseReport
        What it will do.
    digest : str
        A digest of the atoms of all rows; the file gets its name only if that is still theirs.
    """

    def __init__(self, job: _Job, output: str | Path, target: Path, force: bool) -> None:
        self._job, self._output, self._target, self._force = job, output, target, force
        self.digest = ""
        self.report: ReleaseReport

    @property
    def rows(self) -> int:
        """Rows that will be released."""
        return self.report.rows_released

    def _rehearse(self, progress: Progress | None) -> None:
        """Make the dry pass: everything is read, checked and shown, and nothing is drawn."""
        sink = None
        if self._job.columns.keep:
            sink = FileSink(self._output, io.BufferedWriter(_Nowhere()), self._layout())
        reader = self._pass(sink, progress, None, draw=False)
        self.report, self.digest = self._job.report(reader, str(self._output)), reader.digest

    def write(self, progress: Progress | None = None) -> ReleaseReport:
        """Write the file; after a dry pass it gets its name only if the rows are the same."""
        total = self.report.rows_read if self.digest else None
        with PendingFile(self._target, self._force) as pending:
            sink = FileSink(self._output, pending.file, self._layout())
            try:
                reader = self._pass(sink, progress, total)
                if not self.digest:
                    self.report = self._job.report(reader, str(self._output))
                elif (reader.digest, reader.tally.rows) != (self.digest, total):
                    name = self._job.source
                    raise InputError(f"{name} changed while it was read; nothing was written")
            except BaseException:
                sink.abandon()
                raise
            sink.close()
            if progress is not None:
                # The last moment at which whoever watches can stop the release.
                progress(reader.tally.rows, reader.tally.rows)
            with explained(self._output):
                pending.publish()
        return self.report

    def _pass(
        self,
        sink: Sink | None,
        progress: Progress | None,
        total: int | None,
        draw: bool = True,
    ) -> Reader:
        def tell(done: int) -> None:
            if progress is not None:
                progress(done, total)

        return self._job.run(self._job.batches(), sink, tell, draw=draw)

    def _layout(self) -> Layout:
        columns = self._job.columns
        return Layout(columns.written, columns.public, self._job.post)


class _Nowhere(io.RawIOBase):
    """A file that holds nothing."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


def prepare(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    force: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
    inputs: Sequence[str | Path] = (),
) -> Prepared:
    """Read a table once and refuse whatever can be refused; nothing is drawn or written."""
    prepared = _opened(source, output, spec, keep, force=force, seed=seed, inputs=inputs)
    prepared._rehearse(progress)
    return prepared


def release_file(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    force: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
    inputs: Sequence[str | Path] = (),
    before_write: Callable[[Prepared], None] | None = None,
) -> ReleaseReport:
    """Release the public column of a table into a file, in one pass over its rows.

    With ``before_write`` there are two: that is called between a dry pass and the writing one.
    ``inputs`` are further files, such as a plan, which the output must not be.
    """
    prepared = _opened(source, output, spec, keep, force=force, seed=seed, inputs=inputs)
    if before_write is not None:
        prepared._rehearse(progress)
        before_write(prepared)
    return prepared.write(progress)


def _opened(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    keep: Sequence[str],
    *,
    force: bool,
    seed: int | None,
    inputs: Sequence[str | Path],
) -> Prepared:
    """Return a release into a file, after every check that needs no row."""
    kind_of(output)
    if seed is not None:
        for name in (Path(output).name, os.path.basename(os.path.realpath(output))):
            if "test" not in name.lower():
                raise InputError(
                    "a release from a seed is for tests only: the name of its output must contain "
                    f"'test', but {name} was given"
                )
    path = source if isinstance(source, str | Path) else getattr(source, "path", None)
    path = Path(path) if isinstance(path, str | Path) and str(path) != "-" else None
    target = checked_target(output, path, force, inputs)
    known = nw.from_native(source, pass_through=True)
    if isinstance(known, nw.LazyFrame):
        source = known.collect().to_native()  # its rows must come in one order in both passes
    table = open_table(source)
    job = _Job.of(spec, choose_columns(table, spec, keep), table, seed)
    return Prepared(job, output, target, force)


def release_any(
    values: Any,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    seed: int | None = None,
    output: str | Path | None = None,
    force: bool = False,
) -> Any:
    """Release a dataframe, a series, an array or a list: its like comes back.

    Of a dataframe the released column and the kept ones come back, without the rows that have no
    public value, and under a fresh index: an index may tell as much as a column does. With
    ``output`` a table goes into a file, and a ReleaseReport comes back.
    """
    if output is not None:
        return release_file(values, output, spec, keep, force=force, seed=seed)
    if isinstance(values, str | Path):
        raise InputError(f"releasing the file {values} needs the name of another: give output=")
    if isinstance(values, pa.RecordBatch):
        values = pa.Table.from_batches([values])
    known = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(known, nw.DataFrame | nw.LazyFrame):
        return _release_frame(known, spec, keep, seed)
    if keep:
        raise InputError("columns can be kept of a dataframe, but not of an array")
    if spec.unit is not None:
        raise InputError(
            "an array does not say which rows are one person's; release a dataframe or a file with "
            f"the unit column {spec.unit!r}"
        )
    job = _Job.of(spec, Columns("x" if spec.coding is None else spec.coding.column), None, seed)
    cells = raw_cells(list(values) if isinstance(values, range | Iterator) else values)
    sink = MemorySink(job.post)
    slices = (cells.slice(start, BATCH_ROWS) for start in range(0, len(cells), BATCH_ROWS))
    batches = (pa.RecordBatch.from_arrays([one_array(part)], names=["x"]) for part in slices)
    job.report(job.run(batches, sink), None)
    if isinstance(known, nw.Series):
        return _series(known.name, sink, known).to_native()
    return sink.values


def _release_frame(
    frame: "nw.DataFrame[Any] | nw.LazyFrame[Any]",
    spec: ReleaseSpec,
    keep: Sequence[str],
    seed: int | None,
) -> Any:
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    table = open_table(eager.to_native())
    job = _Job.of(spec, choose_columns(table, spec, keep), table, seed)
    sink, columns = MemorySink(job.post), job.columns
    job.report(
        job.run(table.batches([c for c in columns.read if c not in columns.keep]), sink), None
    )
    names = dict(zip(table.columns, eager.columns, strict=True))
    series = _series(names[columns.public], sink, eager)
    if not columns.keep:
        answer = series.to_frame()
    else:
        kept = eager.select([names[name] for name in columns.keep]).filter(sink.usable.tolist())
        answer = nw.maybe_reset_index(kept).with_columns(series)
        answer = answer.select([names[name] for name in columns.written])
    if isinstance(frame, nw.LazyFrame):
        return answer.lazy(backend=frame.implementation).to_native()
    return answer.to_native()


def _series(name: Any, sink: MemorySink, like: Any) -> Any:
    """Return what was released as a series of the same library."""
    values = sink.values
    if values.dtype.kind == "U":  # every row takes the room of a reference, not of a long name
        values = values.astype(object)
    kind = {"i": nw.Int64(), "f": nw.Float64()}.get(values.dtype.kind, nw.String())
    return nw.new_series(name, values, kind, backend=nw.get_native_namespace(like))
