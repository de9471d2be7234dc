# SPDX-License-Identifier: Apache-2.0
"""Split: random rows of a table are counted, and the others go to the file that is released."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import SystemRandom
from typing import Any

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError, counted
from pufferfish.files import PRIVATE, PendingFile, checked_target, writing
from pufferfish.numbers import parse_number
from pufferfish.release.sinks import sink_for
from pufferfish.tables.frames import FrameTable, known
from pufferfish.tables.source import open_table
from pufferfish.tables.table import arrow, one_array


class HeldOut(FrameTable):
    """A share of the rows of a table, to be counted; all others, ``left``, are to be released.

    Which rows is drawn from their number alone (theory, section 7.8). They are read once, so that
    none is on both sides, even if the file changes.
    """

    def __init__(
        self, source: Any, split: tuple[Any, Any], force: bool, delimiter: str | None
    ) -> None:
        (share, rest), table = split, open_table(source, delimiter=delimiter)
        part, self._sink = parse_number(share, "the share to hold out"), sink_for(rest)
        self._file = PendingFile(checked_target(rest, force, [table.path]), force, PRIVATE)
        batches = list(table.batches(table.columns))
        rows = sum(map(len, batches))
        if not 0 < part < 1 or rows < 2 or len({*table.columns}) < len(table.columns):
            raise InputError(
                f"a share between 0 and 1 of two rows or more can be held out, in columns that all "
                f"have names, but {share} of {counted(rows, 'row')} of {table.name} was asked for"
            )
        own = np.zeros(rows, dtype=np.int8)
        size = min(max(round(part * rows), 1), rows - 1)
        own[SystemRandom().sample(range(rows), size)] = 1
        whole = pa.Table.from_batches(batches)
        held, self.left = (whole.filter(arrow(x).cast(pa.bool_())) for x in (own, 1 - own))
        super().__init__(known(held), "")
        self.name, self.textual = f"the held-out rows of {table.name}", table.textual

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write the rows to release as they are; whatever fails then removes the file."""
        with self._file as file, writing(file.target):
            with closing(self._sink(file.file, self.left.column_names)) as sink:
                sink.write({name: one_array(self.left[name]) for name in sink.columns})
            file.publish()
        try:
            yield
        except BaseException:
            self._file.target.unlink()
            raise
