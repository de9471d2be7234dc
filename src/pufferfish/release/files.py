# SPDX-License-Identifier: Apache-2.0
"""Release from file to file: read to check every row, read again to write, rename at the end."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.release.atomic import PendingFile, cannot_write, checked_target
from pufferfish.release.job import Progress, ReleaseReport, ReleaseSpec
from pufferfish.release.promise import warn_about_promise, warn_seeded
from pufferfish.release.releaser import Releaser
from pufferfish.release.rows import Columns, Tally, choose_columns, read_rows, rules_of
from pufferfish.release.sinks import Sink, checked_extension, open_sink
from pufferfish.sampling import seeded_entropy
from pufferfish.tables import Coder, Table, open_table


def release_file(
    source: Any,
    output: str | Path,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    force: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> ReleaseReport:
    """Release the public column of a table into a file.

    The table is read twice, in batches, so that memory does not grow with its rows: once to check
    every row, once to write. Nothing appears under the output's name before it is complete.

    Parameters
    ----------
    source : str, Path or dataframe
        What :func:`pufferfish.tables.open_table` opens.
    output : str or Path
        Where to write; the name ends in .csv, .tsv, .csv.gz, .tsv.gz or .parquet. Text files hold
        exact decimals; Parquet files hold int64 for integers, and otherwise the nearest doubles.
    spec : ReleaseSpec
        What is released, and how.
    keep : sequence of str
        Further columns to write as they are. The guarantee does not cover a release with them
        (theory, section 7). In text files, text that a spreadsheet would take for a formula gets
        an apostrophe in front.
    force : bool
        Whether an existing output is replaced.
    seed : int, optional
        Makes the noise repeatable, for tests only: the output's name must contain ``test``.
    progress : callable, optional
        Called with the rows done and the rows in all; these are None while reading the first time.

    Returns
    -------
    ReleaseReport
        Where the rows went.

    Raises
    ------
    InputError
        If the output cannot be written, a column is wrong, a cell cannot be released (with its row
        number), the column would be published unchanged, or the table changes meanwhile. The
        output is then as it was before.

    Warns
    -----
    OutsidePromiseWarning
        For kept columns, and for rows whose secret is in no pair.
    SeededWarning
        For a seed.
    """
    extension = checked_extension(output)
    if seed is not None and "test" not in Path(output).name.lower():
        raise InputError(
            "a release from a seed is for tests only: the name of its output must contain 'test', "
            f"but {Path(output).name} was given"
        )
    entropy = None if seed is None else seeded_entropy(seed)
    path = Path(source) if isinstance(source, str | Path) else None
    target = checked_target(output, path, force)
    table = open_table(source)
    rules = rules_of(spec)
    columns = choose_columns(table, rules, keep)
    releaser = Releaser(spec)
    coder = Coder(spec.support, rules, table)
    state = _state(table)
    checked = Tally()
    for _ in read_rows(table, spec, columns, coder, checked, again=False):
        if progress is not None:
            progress(checked.rows, None)
    warn_about_promise(columns.keep, checked.outside)
    if seed is not None:
        warn_seeded()
    written = Tally()
    with PendingFile(target, force) as pending:
        sink: Sink | None = None
        try:
            with _explained(output):
                sink = open_sink(extension, pending.file, columns.written, columns.public, releaser)
            for batch in read_rows(table, spec, columns, coder, written, again=True):
                values = releaser.draw(batch.atoms, entropy)
                kept = _kept(batch.cells, columns, batch.usable)
                with _explained(output):
                    sink.write(kept, values)
                if progress is not None:
                    progress(written.rows, checked.rows)
            if _state(table) != state or not _same(checked, written):
                raise InputError(f"{table.name} changed while it was read; nothing was written")
            with _explained(output):
                sink.close()
                sink = None
                pending.publish()
        finally:
            if sink is not None:
                sink.abandon()
    return report(table, str(output), columns, releaser, checked, spec, seeded=seed is not None)


def report(
    table: Table,
    output: str | None,
    columns: Columns,
    releaser: Releaser,
    tally: Tally,
    spec: ReleaseSpec,
    *,
    seeded: bool,
) -> ReleaseReport:
    """Return the report on a release that is done."""
    known = columns.secret is not None and spec.protected is not None
    return ReleaseReport(
        source=table.name,
        output=output,
        column=columns.public,
        keep=columns.keep,
        mechanism=releaser.mechanism,
        rows_read=tally.rows,
        rows_released=tally.released,
        set_aside=tally.set_aside,
        clamped=tally.clamped,
        outside_promise=tuple(sorted(tally.outside.items())) if known else None,
        seeded=seeded,
    )


def _kept(cells: pa.RecordBatch, columns: Columns, usable: Any) -> dict[str, pa.Array]:
    everything = bool(usable.all())
    mask = None if everything else pa.array(usable)
    return {
        name: cells.column(k) if everything else cells.column(k).filter(mask)
        for k, name in enumerate(columns.keep, start=1)
    }


def _same(checked: Tally, written: Tally) -> bool:
    return (checked.rows, checked.released, checked.clamped) == (
        written.rows,
        written.released,
        written.clamped,
    )


def _state(table: Table) -> tuple[int, ...] | None:
    """Return what changes when somebody writes to the file, or None for a dataframe."""
    if table.path is None:
        return None
    try:
        status = os.stat(table.path)
    except OSError as error:
        raise InputError(f"cannot read {table.name}: {error.strerror}") from None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@contextlib.contextmanager
def _explained(output: str | Path) -> Iterator[None]:
    """Turn a failure of the disk into one line."""
    try:
        yield
    except OSError as error:
        raise cannot_write(output, error) from None
