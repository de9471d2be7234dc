# SPDX-License-Identifier: Apache-2.0
"""Parts: the workers of Spark or Dask release a dataframe, into a folder of Parquet files.

A task may run more than once: it is tried again, or raced by a copy of itself. Every attempt draws
noise of its own, into a file of its own in a hidden folder. The engine hands over one result of
each task, and the files of these alone are published. Words of all rows are summed up before, and
again by these attempts: were a row lost or read twice, because the dataframe is not the same each
time it is computed, the sums would differ.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.files import PendingFile, checked_target, hidden_folder, publish_parts, writing
from pufferfish.release.rows import Reader
from pufferfish.release.sinks import ParquetSink, sink_for
from pufferfish.release.spec import ReleaseReport, ReleaseSpec
from pufferfish.tables.identity import row_words
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table


def release_parts(
    frame: Any, output: str | Path, spec: ReleaseSpec, keep: Sequence[str] = (), *,
    force: bool = False, seed: int | None = None, **_: Any,
) -> ReleaseReport:  # fmt: skip
    """Release a dataframe into a folder, which appears when it is complete."""
    table, header = open_table(frame.to_native()), Table()
    name = header.name = table.name
    columns = header.columns = table.columns
    wrong = sink_for(output) is not ParquetSink or force or seed is not None
    if wrong or spec.unit is not None:
        raise InputError(f"{name} is released as a new NAME.parquet only, without a seed, and "
                         "by no plan with a unit, as partitions share people's rows")  # fmt: skip
    reader = Reader(spec, header, keep)
    used = (*reader.counted, *reader.keep)
    list(reader.read(()))  # what needs no row
    # Whether anything is unchanged only all parts together show.
    task = partial(_task, replace(spec, allow_unchanged=True), header, reader.keep, used)
    run = partial(_run, frame, name, [columns.index(column) for column in used], used)
    with writing(output), hidden_folder(checked_target(output, False)) as folder:
        before = run(partial(task, None))[1]
        parts, sums = run(partial(task, folder))
        if sums != before:
            raise InputError(f"{name} changed while it was read, or is not the same each time it "
                             "is computed; nothing was written")  # fmt: skip
        filled = [part for part in parts if part["seen"]["rows_released"]] or parts[:1]
        if len({part["schema"] for part in filled}) > 1:
            raise InputError(f"kept columns of {name} have different types in different "
                             "partitions; nothing was written")  # fmt: skip
        list(reader.read((), parts=parts))
        report = reader.report(str(output))
        publish_parts(folder, [part["file"] for part in filled], output)
    return report


def _task(
    spec: ReleaseSpec, table: Table, keep: Sequence[str], used: Sequence[str],
    folder: Path | None, pieces: Iterable[Any],
) -> str:  # fmt: skip
    """Sum up the rows of a partition, and where there is a folder release them into a file.

    What the driver needs is returned as JSON; a refusal too, as engines wrap what is raised.
    """
    sums, answer = np.zeros(3, dtype=np.uint64), dict[str, Any]()

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            for batch in open_table(piece).batches(used):
                sums[:] += row_words(used, batch).sum(axis=0)
                yield batch

    try:
        if folder is None:
            answer["batches"] = sum(1 for _ in batches())
        else:  # a new name for each attempt; the noise is from the entropy of this system
            reader, answer["file"] = Reader(spec, table, keep), f"{secrets.token_hex(16)}.parquet"
            with writing(folder), PendingFile(folder / answer["file"]) as pending:
                sink = ParquetSink(pending.file, reader.written, reader.public, reader.post)
                with closing(sink):
                    for rows in reader.read(batches()):
                        sink.write(*reader.drawn(*rows))
                pending.publish()
            answer["schema"] = sink.writer.schema.to_string(show_schema_metadata=False)
            answer |= {"seen": reader.seen, "inputs": reader.inputs.tolist()}
    except InputError as error:
        answer["error"] = str(error)
    return json.dumps(answer | {"sums": sums.tolist()})


def _run(
    frame: Any, name: str, places: Sequence[int], used: Sequence[str], task: Callable[..., str]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the answer of a task for every partition in their order, and the sums of all rows."""
    native = frame.to_native()

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        answer = task(batch.rename_columns(used) for batch in batches)
        yield pa.RecordBatch.from_pydict({"answer": [answer]})

    try:
        if frame.implementation.is_dask():
            dask: Any = import_module("dask")  # it has few type hints
            pieces = native.iloc[:, places].to_delayed()
            found = dask.compute(*(dask.delayed(task)([piece]) for piece in pieces))
        else:  # under names that Spark takes neither apart nor for one another
            native = native.toDF(*(f"x{k}" for k in range(len(native.columns))))
            chosen = native.select(*(f"x{k}" for k in places))
            found = [row[0] for row in chosen.mapInArrow(mapped, "answer string").collect()]
    except Exception as error:  # its text may quote cells
        raise InputError(f"{name} could not be computed ({type(error).__name__}: see the log of "
                         "its engine); nothing was written") from None  # fmt: skip
    parts = [json.loads(answer) for answer in found or [task(())]]
    for place, part in enumerate(parts, start=1):
        if "error" in part:
            raise InputError(f"part {place} of {len(parts)}: {part['error']}")
    return parts, [sum(each) % 2**64 for each in zip(*(p["sums"] for p in parts), strict=True)]
