# SPDX-License-Identifier: Apache-2.0
"""Release of dataframes: a frame of the same library with the released column and nothing else."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.release.arrays import draw_array, release_array
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.promise import warn_about_missing, warn_about_promise, warn_seeded
from pufferfish.release.readback import AtomCounter, check_read_back
from pufferfish.release.releaser import Releaser
from pufferfish.release.report import ReleaseReport, report_on
from pufferfish.release.rows import Tally, choose_columns, read_rows, rules_of
from pufferfish.sampling import Entropy, seeded_entropy
from pufferfish.tables import Coder
from pufferfish.tables.frames import open_frame


def release_frame(
    frame: Any,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    seed: int | None = None,
    entropy: Entropy | None = None,
) -> Any:
    """Release the public column of a dataframe.

    Parameters
    ----------
    frame : dataframe
        Any kind that narwhals knows.
    spec : ReleaseSpec
        What is released, and how.
    keep : sequence of str
        Further columns to keep as they are. The guarantee does not cover a release with them
        (theory, section 7).
    seed : int, optional
        Makes the release repeatable, for tests only.
    entropy : Entropy, optional
        Where random bits come from, for tests only; by default the operating system.

    Returns
    -------
    dataframe
        Of the same library, with the released column (Int64, Float64 or String) and the kept
        ones. Rows without a public value are left out; a pandas index is not kept, for it may
        tell as much as a column does.

    Raises
    ------
    InputError
        If a column is wrong, a cell cannot be released (with its row number), or the column would
        be published unchanged or so that it can be read back.

    Warns
    -----
    OutsidePromiseWarning
        For kept columns, rows whose secret is in no pair, clamped rows, and rows that were left
        out; and where the table lacks the secret column.
    UnchangedWarning
        If the column is published unchanged, or so that it can be read back, as was allowed.
    SeededWarning
        For a seed.
    """
    released, done = release_frame_with_report(frame, spec, keep, seed=seed, entropy=entropy)
    warn_about_missing(done.set_aside)
    return released


def release_frame_with_report(
    frame: Any,
    spec: ReleaseSpec,
    keep: Sequence[str] = (),
    *,
    seed: int | None = None,
    entropy: Entropy | None = None,
) -> tuple[Any, ReleaseReport]:
    """Like :func:`release_frame`, with a report on where the rows went."""
    rules = rules_of(spec)
    table = open_frame(frame)
    columns = choose_columns(table, rules, keep)
    releaser = Releaser(spec)
    read = (columns.secret, columns.unit)
    needed = [*columns.written, *(name for name in read if name is not None)]
    names = {name: table.native_column(name) for name in needed}
    wrapped = nw.from_native(table.native)
    if isinstance(wrapped, nw.LazyFrame):
        eager = wrapped.select(list(names.values())).collect()
        table = open_frame(eager.to_native())
    else:
        eager = wrapped
    coder = Coder(spec.support, rules, table)
    atoms = AtomCounter(releaser.mechanism)
    tally = Tally(atoms=atoms)
    batches = list(read_rows(table, spec, columns, coder, tally, again=False))
    check_read_back(spec, releaser, atoms)
    warn_about_promise(columns, tally)
    if seed is not None:
        entropy = seeded_entropy(seed)
        warn_seeded()
    values = [releaser.draw(batch.atoms, entropy) for batch in batches]
    column = np.concatenate([np.empty(0, dtype=np.int64), *values])
    native = nw.get_native_namespace(eager)
    series = nw.new_series(
        names[columns.public], releaser.column(column), _dtype(releaser), backend=native
    )
    if columns.keep:
        usable = np.concatenate([batch.usable for batch in batches])
        kept = eager.select([names[name] for name in columns.keep])
        kept = nw.maybe_reset_index(kept.filter(usable.tolist()))
        answer = kept.with_columns(series).select([names[name] for name in columns.written])
    else:
        answer = series.to_frame()
    done = report_on(table, None, columns, releaser, tally, seeded=seed is not None)
    if isinstance(wrapped, nw.LazyFrame):
        return answer.lazy(backend=wrapped.implementation).to_native(), done
    return answer.to_native(), done


def _dtype(releaser: Releaser) -> Any:
    if releaser.levels is not None:
        return nw.String()
    return nw.Int64() if releaser.integers else nw.Float64()


def release_series(
    series: Any, spec: ReleaseSpec, *, seed: int | None = None, entropy: Entropy | None = None
) -> Any:
    """Release one column of a dataframe library: as many values out as in, each at its place.

    Parameters
    ----------
    series : series
        Any kind that narwhals knows; none may be missing.
    spec, seed, entropy
        As for :func:`release_frame`.

    Returns
    -------
    series
        Of the same library and name; a pandas index is not kept, for it may tell as much as a
        column does.
    """
    wrapped = nw.from_native(series, series_only=True)
    releaser, drawn = draw_array(series, spec, seed, entropy)
    native = nw.get_native_namespace(wrapped)
    answer = nw.new_series(wrapped.name, releaser.column(drawn), _dtype(releaser), backend=native)
    return answer.to_native()


def release_any(
    values: Any, spec: ReleaseSpec, keep: Sequence[str] = (), *, seed: int | None = None
) -> Any:
    """Release what is given: a dataframe, a series, an array or a list comes back as its like.

    Raises
    ------
    InputError
        If it is none of these, or columns are to be kept of what has none.
    """
    if isinstance(values, pa.RecordBatch):
        values = pa.Table.from_batches([values])
    known = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(known, nw.DataFrame | nw.LazyFrame):
        return release_frame(values, spec, keep, seed=seed)
    if keep:
        raise InputError("columns can be kept of a dataframe, but not of an array")
    if isinstance(known, nw.Series):
        return release_series(values, spec, seed=seed)
    return release_array(values, spec, seed=seed)
