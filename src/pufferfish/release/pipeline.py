# SPDX-License-Identifier: Apache-2.0
"""Release: table batches to atoms, through the mechanism, into an array, a frame or a file."""

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
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
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.numbers import IntArray
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.readback import check_read_back, keep_rate
from pufferfish.release.report import ReleaseReport
from pufferfish.release.rows import BoolArray, Columns, Reader, choose_columns
from pufferfish.release.sinks import abandon, explained, kept_cells, sink_for
from pufferfish.release.spec import ReleaseSpec
from pufferfish.tables.arrow import one_array
from pufferfish.tables.frames import raw_cells
from pufferfish.tables.source import open_table
from pufferfish.tables.table import BATCH_ROWS, Table

#: Called with the rows done so far and the rows in all, None while these are not yet known.
Progress = Callable[[int, int | None], None]
#: What was warned of already, by the mechanism of a plan: once per plan and process.
_WARNED: dict[int, tuple[weakref.ref[Any], set[int]]] = {}


@dataclass(eq=False)
class Prepared:
    """A release of which all is checked that its options say; by :func:`prepare` every row, too.

    Attributes
    ----------
    report : ReleaseReport
        What it will do, or did.
    digest : str
        After a dry pass a digest of the atoms of all rows; the file gets its name only if that is
        still theirs.
    """

    spec: ReleaseSpec
    columns: Columns
    table: Table | None
    seed: int | None
    output: str | None = None
    target: Path = Path()
    force: bool = False
    digest: str = ""
    report: ReleaseReport = field(init=False)

    def __post_init__(self) -> None:
        self.post = Postprocess(self.spec)
        check_read_back(self.spec, self.post)
        self._entropy = None if self.seed is None else seeded_entropy(self.seed)
        self.reader = Reader(self.spec, self.columns, self.table)

    @property
    def rows(self) -> int:
        """Rows that will be released."""
        return self.report.rows_released

    def read(
        self,
        batches: Iterable[pa.RecordBatch],
        progress: Progress | None = None,
        total: int | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, IntArray, BoolArray]]:
        """Yield each batch with the atoms of its usable rows, and which these are."""
        self.reader = Reader(self.spec, self.columns, self.table)
        for batch in batches:
            yield batch, *self.reader.read(batch)
            if progress is not None:
                progress(self.reader.rows, total)
        self.reader.check_people()

    def draw(self, atoms: IntArray) -> IntArray:
        """Return released values for atoms."""
        return self.post.draw(atoms, self._entropy)

    def rehearse(self, progress: Progress | None) -> None:
        """Make the dry pass: everything is read and checked, and nothing is drawn or written."""
        with PendingFile(self.target, self.force):
            pass  # it can be made
        for _ in self.read(self._batches(), progress):
            pass
        self.settle()
        self.digest = self.reader.digest

    def write(self, progress: Progress | None = None) -> ReleaseReport:
        """Write the file; after a dry pass it gets its name only if the rows are the same."""
        total = self.report.rows_read if self.digest else None
        columns, output = self.columns, str(self.output)
        with PendingFile(self.target, self.force) as pending:
            with explained(output):
                sink = sink_for(output)(pending.file, columns.written, columns.public, self.post)
            try:
                for batch, atoms, usable in self.read(self._batches(), progress, total):
                    values = self.draw(atoms)
                    with explained(output):
                        sink.write(kept_cells(batch, columns.keep, usable), values)
                if not self.digest:
                    self.settle()
                elif (self.reader.digest, self.reader.rows) != (self.digest, total):
                    name = self.report.source
                    raise InputError(f"{name} changed while it was read; nothing was written")
            except BaseException:
                abandon(sink)
                raise
            with explained(output):
                sink.close()
            if progress is not None:
                # The last moment at which whoever watches can stop the release.
                progress(self.reader.rows, self.reader.rows)
            with explained(output):
                pending.publish()
        return self.report

    def settle(self) -> None:
        """Make the report, once all that it holds was allowed, and warn of what it means."""
        reader = self.reader
        unchanged = check_read_back(self.spec, self.post, reader.exact + reader.moved)
        self.report = ReleaseReport(
            source="the array" if self.table is None else self.table.name,
            output=self.output,
            column=self.columns.public,
            keep=self.columns.keep,
            mechanism=self.post.mechanism,
            rows_read=reader.rows,
            rows_released=reader.released,
            set_aside=reader.rows - reader.released,
            clamped=reader.clamped,
            outside_promise=reader.outside if reader.counts_secrets else None,
            seeded=self.seed is not None,
            keep_rate=keep_rate(self.post, reader.exact, reader.moved),
            unchanged=unchanged,
        )
        _warn(self.report, self.columns, self.spec.mechanism)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return iter(()) if self.table is None else self.table.batches(self.columns.read)


def _warn(report: ReleaseReport, columns: Columns, mechanism: object) -> None:
    """Warn of what the guarantee does not cover (theory, section 7): once per plan and kind."""
    owner, known = _WARNED.get(id(mechanism), (None, set()))
    if owner is None or owner() is not mechanism:
        known = set()
        _WARNED[id(mechanism)] = weakref.ref(mechanism), known
    outside = counted(report.outside_promise or 0, "released row")
    # The report on a file is given to the user, who reads there what was left out.
    missing = report.set_aside if report.output is None else 0
    kinds = (
        (
            report.keep,
            f"with the kept columns ({listed(report.keep)}) beside it the released column is no "
            "longer protected: together they may reveal the secret, even where each alone does not",
        ),
        (
            columns.absent,
            f"the secret column {columns.absent!r} is not in the table, so rows outside the "
            "promise were not counted",
        ),
        (
            report.outside_promise,
            f"{outside} with a secret that is in no pair: the promise does not cover them",
        ),
        (
            report.clamped,
            f"{counted(report.clamped, 'released value')} moved to the nearest value of the "
            "support; the prior gives such values probability 0, so the guarantee does not cover "
            "these rows",
        ),
        (
            missing,
            f"{counted(missing, 'row')} left out (no public value); which rows are left out shows "
            "in the output, and no mechanism covers it",
        ),
    )
    for kind, (what, text) in enumerate(kinds):
        if what and kind not in known:
            known.add(kind)
            warn_user(text, OutsidePromiseWarning)
    if report.seeded:
        warn_user(
            "the release was drawn from a seed: for tests only, it protects nobody", SeededWarning
        )


def prepare(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    *,
    force: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
    inputs: Sequence[str | Path] = (),
) -> Prepared:
    """Read a table once and refuse whatever can be refused, for a charge before it is written.

    No further column can be kept: nothing could be charged for that.
    """
    prepared = _opened(source, output, spec, (), force, seed, inputs)
    prepared.rehearse(progress)
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
) -> ReleaseReport:
    """Release the public column of a table into a file, in one pass over its rows.

    ``inputs`` are further files, such as a plan, which the output must not be.
    """
    return _opened(source, output, spec, keep, force, seed, inputs).write(progress)


def _opened(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    keep: Sequence[str],
    force: bool,
    seed: int | None,
    inputs: Sequence[str | Path],
) -> Prepared:
    """Return a release into a file, after every check that needs no row."""
    sink_for(output)
    for name in (Path(output).name, os.path.basename(os.path.realpath(output))):
        if seed is not None and "test" not in name.lower():
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
    columns = choose_columns(table, spec, keep)
    return Prepared(spec, columns, table, seed, str(output), target, force)


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
    name = "x" if spec.coding is None else spec.coding.column
    cells = raw_cells(values)
    slices = (cells.slice(start, BATCH_ROWS) for start in range(0, len(cells), BATCH_ROWS))
    batches = (pa.RecordBatch.from_arrays([one_array(part)], names=[name]) for part in slices)
    released, _ = _in_memory(Prepared(spec, Columns(name), None, seed), batches)
    if isinstance(known, nw.Series):
        return _series(known.name, released, known).to_native()
    return released


def _release_frame(frame: Any, spec: ReleaseSpec, keep: Sequence[str], seed: int | None) -> Any:
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    table = open_table(eager.to_native())
    columns = choose_columns(table, spec, keep)
    prepared = Prepared(spec, columns, table, seed)
    # Kept columns need not become Arrow arrays.
    released, usable = _in_memory(prepared, table.batches(columns.counted))
    names = dict(zip(table.columns, eager.columns, strict=True))
    answer = _series(names[columns.public], released, eager)
    if columns.keep:
        kept = eager.select([names[name] for name in columns.keep]).filter(usable.tolist())
        wide = nw.maybe_reset_index(kept).with_columns(answer)
        answer = wide.select([names[name] for name in columns.written])
    else:
        answer = answer.to_frame()
    if isinstance(frame, nw.LazyFrame):
        answer = answer.lazy(backend=frame.implementation)
    return answer.to_native()


def _in_memory(prepared: Prepared, batches: Iterable[pa.RecordBatch]) -> tuple[Any, BoolArray]:
    """Return all that is released of batches, as an array, and which of the rows these are."""
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    drawn = [(prepared.draw(atoms), usable) for _, atoms, usable in prepared.read(batches)]
    prepared.settle()
    values, usable = (np.concatenate(parts) for parts in zip(nothing, *drawn, strict=True))
    return prepared.post.numpy(values), usable


def _series(name: Any, values: Any, like: Any) -> Any:
    """Return what was released as a series of the same library."""
    if values.dtype.kind == "U":  # every row takes the room of a reference, not of a long name
        values = values.astype(object)
    kind = {"i": nw.Int64(), "f": nw.Float64()}.get(values.dtype.kind, nw.String())
    return nw.new_series(name, values, kind, backend=nw.get_native_namespace(like))
