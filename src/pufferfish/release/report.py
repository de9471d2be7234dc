# SPDX-License-Identifier: Apache-2.0
"""ReleaseReport: what a release did, row by row accounted for."""

import math
from dataclasses import dataclass

from pufferfish.errors import PufferfishError
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.release.readback import keep_rate, read_back
from pufferfish.release.releaser import Releaser
from pufferfish.release.rows import Columns, Tally
from pufferfish.tables import Table


@dataclass(frozen=True)
class ReleaseReport:
    """Where the rows went: ``rows_read = rows_released + rows set aside``, always.

    Attributes
    ----------
    source : str
        The file, or the kind of dataframe.
    output : str or None
        The file that was written; None for a dataframe.
    column : str
        Name of the released column.
    keep : tuple of str
        The kept columns.
    mechanism : DiscreteLaplace or Channel
        The noise that was added, or the channel that values were released through.
    rows_read, rows_released : int
        Rows of the table, and those of them that were released.
    set_aside : tuple of (reason, rows)
        The others.
    clamped : int
        Released rows whose value was no atom and was moved to the nearest one; the guarantee does
        not cover them.
    outside_promise : tuple of (reason, rows) or None
        Released rows whose secret is in no pair, whatever their value; None where the table has no
        such column, or the pairs are not known.
    seeded : bool
        Whether it was drawn from a seed, for tests only.
    keep_rate : float or None
        For a channel the expected share of the released rows that are published as they are,
        computed from the channel and the values of this very table, and rounded down; as private
        as the table. None for noise, and where no row was released.
    unchanged : bool
        Whether the column can be read back from what was published, as was allowed: the scale was
        0, or the channel always replaces each value that occurs by one of its own, or by itself.
    """

    source: str
    output: str | None
    column: str
    keep: tuple[str, ...]
    mechanism: Mechanism
    rows_read: int
    rows_released: int
    set_aside: tuple[tuple[str, int], ...] = ()
    clamped: int = 0
    outside_promise: tuple[tuple[str, int], ...] | None = None
    seeded: bool = False
    keep_rate: float | None = None
    unchanged: bool = False

    def __post_init__(self) -> None:
        if self.rows_read != self.rows_released + self.rows_set_aside:
            raise PufferfishError(
                f"rows were lost in {self.source}: {self.rows_read} read, {self.rows_released} "
                f"released, {self.rows_set_aside} set aside; please report this"
            )

    @property
    def rows_set_aside(self) -> int:
        """Rows that were not released."""
        return sum(rows for _, rows in self.set_aside)

    @property
    def rows_outside_promise(self) -> int | None:
        """Released rows whose secret is in no pair, or None where that is not known."""
        if self.outside_promise is None:
            return None
        return sum(rows for _, rows in self.outside_promise)

    def lines(self) -> tuple[str, ...]:
        """Return the report as plain lines of text, for people."""
        how = "through" if isinstance(self.mechanism, Channel) else "with"
        lines = [
            f"{self.source}: column {self.column!r} released {how} {self.mechanism.describe()}",
            f"rows read {self.rows_read}, released {self.rows_released}, "
            f"set aside {self.rows_set_aside}",
            *(f"  set aside, {reason}: {rows}" for reason, rows in self.set_aside),
        ]
        if self.set_aside:
            lines.append("which rows are left out shows in the output, and no mechanism covers it")
        if self.clamped:
            lines.append(f"moved to the nearest value of the support: {self.clamped}")
        if self.keep_rate is not None:
            lines.append(f"expected share of the released rows kept as they are: {self._kept()}")
            if self.unchanged and self.keep_rate < 1:
                lines.append("each value is replaced by one of its own: they can be read back")
        if self.outside_promise is not None:
            lines.append(f"rows outside the promise: {self.rows_outside_promise}")
            lines += [f"  {reason}: {rows}" for reason, rows in self.outside_promise]
        if self.keep:
            lines.append(f"kept columns: {', '.join(self.keep)}")
        if self.seeded:
            lines.append("drawn from a seed: for tests only, it protects nobody")
        if self.output is not None:
            lines.append(f"written: {self.output}")
        return tuple(lines)

    def _kept(self) -> str:
        """Return the expected share in per cent, cut off: not all is never shown as all."""
        rate = self.keep_rate or 0.0
        if 0.999 <= rate < 1:
            return "more than 99.9 %"
        return f"{math.floor(1000 * rate + 1e-9) / 10:.1f} %"


def report_on(
    table: Table,
    output: str | None,
    columns: Columns,
    releaser: Releaser,
    tally: Tally,
    *,
    seeded: bool,
) -> ReleaseReport:
    """Return the report on a release that is done.

    Parameters
    ----------
    table : Table
        What was read.
    output : str or None
        The file that was written; None for a dataframe.
    columns : Columns
        The columns that were read and written.
    releaser : Releaser
        What was done to every value.
    tally : Tally
        The rows that were counted.
    seeded : bool
        Whether it was drawn from a seed.
    """
    known = columns.secret is not None and releaser.protected is not None
    applied, atoms = releaser.mechanism, tally.atoms
    unchanged = isinstance(applied, DiscreteLaplace) and applied.scale == 0
    return ReleaseReport(
        source=table.name,
        output=output,
        column=columns.public,
        keep=columns.keep,
        mechanism=applied,
        rows_read=tally.rows,
        rows_released=tally.released,
        set_aside=tally.set_aside,
        clamped=tally.clamped,
        outside_promise=tuple(sorted(tally.outside.items())) if known else None,
        seeded=seeded,
        keep_rate=None if atoms is None else keep_rate(releaser, atoms),
        unchanged=unchanged or (atoms is not None and read_back(releaser, atoms)),
    )
