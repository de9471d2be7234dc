# SPDX-License-Identifier: Apache-2.0
"""Release from file to file: read to check every row, read again to write, rename at the end."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pufferfish.atomic import PendingFile, cannot_write, checked_target, home_expanded
from pufferfish.errors import InputError
from pufferfish.release.checking import Progress, read_through
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.promise import warn_about_promise, warn_seeded
from pufferfish.release.releaser import Releaser
from pufferfish.release.report import ReleaseReport, report_on
from pufferfish.release.rows import Columns, Tally, choose_columns, read_rows, rules_of
from pufferfish.release.sinks import Sink, checked_extension, open_sink
from pufferfish.sampling import seeded_entropy
from pufferfish.tables import Coder, open_table
from pufferfish.tables.arrow import truths

#: What changes when somebody writes to a file: device, inode, size, time of the last change.
FileState = tuple[int, ...]


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
    state: FileState | None = None,
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
        Levels are text in both; in text files one that a spreadsheet would take for a formula gets
        an apostrophe in front.
    spec : ReleaseSpec
        What is released, and how.
    keep : sequence of str
        Further columns to write as they are. The guarantee does not cover a release with them
        (theory, section 7). In text files, text that a spreadsheet would take for a formula gets
        an apostrophe in front.
    force : bool
        Whether an existing output is replaced.
    seed : int, optional
        Makes the release repeatable, for tests only: the output's name must contain ``test``, and
        so must that of the file which it links to.
    progress : callable, optional
        Called with the rows done and the rows in all; these are None while reading the first time.
    inputs : sequence of str or Path
        Further files that the release depends on (a plan, priors), which the output must not be.
    state : tuple of int, optional
        What :func:`file_state` returned before the prior was counted from the same file; the
        release is refused if the file has changed since.

    Returns
    -------
    ReleaseReport
        Where the rows went.

    Raises
    ------
    InputError
        If the output cannot be written, a column is wrong, a cell cannot be released (with its row
        number), the column would be published unchanged or so that it can be read back, or the
        table changes meanwhile. The output is then as it was before.

    Warns
    -----
    OutsidePromiseWarning
        For kept columns, rows whose secret is in no pair, and clamped rows; and where the table
        lacks the secret column.
    UnchangedWarning
        If the column is published unchanged, or so that it can be read back, as was allowed.
    SeededWarning
        For a seed.
    """
    extension = checked_extension(output)
    if seed is not None:
        _check_test_name(output)
    entropy = None if seed is None else seeded_entropy(seed)
    target = checked_target(output, _path_of(source), force, inputs)
    table = open_table(source)
    rules = rules_of(spec)
    columns = choose_columns(table, rules, keep)
    releaser = Releaser(spec)
    coder = Coder(spec.support, rules, table)
    now = file_state(source)
    if state is not None and state != now:
        raise InputError(f"{table.name} changed after its prior was counted; nothing was written")
    checked = read_through(table, spec, columns, releaser, coder, progress)
    warn_about_promise(columns, checked)
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
            if file_state(source) != now or not _same(checked, written):
                raise InputError(f"{table.name} changed while it was read; nothing was written")
            with _explained(output):
                sink.close()
                sink = None
            if progress is not None:
                # The last moment at which whoever watches can stop the release.
                progress(written.rows, checked.rows)
            with _explained(output):
                pending.publish()
        finally:
            if sink is not None:
                sink.abandon()
    return report_on(table, str(output), columns, releaser, checked, seeded=seed is not None)


def _kept(cells: pa.RecordBatch, columns: Columns, usable: Any) -> dict[str, pa.Array]:
    everything = bool(usable.all())
    mask = None if everything else truths(usable)
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


def file_state(source: Any) -> FileState | None:
    """Return what changes when somebody writes to a table's file.

    Taken before a prior is counted from a file, it lets :func:`release_file` notice that the file
    changed between counting and releasing.

    Parameters
    ----------
    source : str, Path, dataframe or Table
        What :func:`release_file` is given.

    Returns
    -------
    tuple of int, or None for what is no file

    Raises
    ------
    InputError
        If the file cannot be looked at.
    """
    path = _path_of(source)
    if path is None:
        return None
    try:
        status = os.stat(home_expanded(path))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _path_of(source: Any) -> Path | None:
    """Return the file behind a table, or None; a dataframe may well have a column called path."""
    path = source if isinstance(source, str | Path) else getattr(source, "path", None)
    return Path(path) if isinstance(path, str | Path) else None


def _check_test_name(output: str | Path) -> None:
    """Check that both the name given and that of the file behind a link say that it is a test."""
    for name in (Path(output).name, os.path.basename(os.path.realpath(output))):
        if "test" not in name.lower():
            raise InputError(
                "a release from a seed is for tests only: the name of its output must contain "
                f"'test', but {name} was given"
            )


@contextlib.contextmanager
def _explained(output: str | Path) -> Iterator[None]:
    """Turn a failure of the disk into one line."""
    try:
        yield
    except OSError as error:
        raise cannot_write(output, error) from None
