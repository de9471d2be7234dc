# SPDX-License-Identifier: Apache-2.0
"""ReleaseReport: what a release did, every row accounted for."""

from dataclasses import dataclass

from pufferfish.errors import PufferfishError
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace


@dataclass(frozen=True)
class ReleaseReport:
    """Where the rows went: ``rows_read = rows_released + set_aside``, always.

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
        The mechanism in force.
    rows_read, rows_released, set_aside : int
        Rows of the table; those that were released; those without a public value.
    clamped : int
        Released rows whose value was no atom and was moved to the nearest one.
    outside_promise : int or None
        Released rows whose secret is in no pair; None where nobody could count them.
    seeded : bool
        Whether it was drawn from a seed, for tests only.
    keep_rate : float or None
        For a channel the expected share of the released rows that are published as they are,
        rounded down; as private as the table. None for noise, and where no row was released.
    unchanged : bool
        Whether the column can be read back from what was published, as was allowed.
    """

    source: str
    output: str | None
    column: str
    keep: tuple[str, ...]
    mechanism: DiscreteLaplace | Channel
    rows_read: int
    rows_released: int
    set_aside: int = 0
    clamped: int = 0
    outside_promise: int | None = None
    seeded: bool = False
    keep_rate: float | None = None
    unchanged: bool = False

    def __post_init__(self) -> None:
        if self.rows_read != self.rows_released + self.set_aside:
            raise PufferfishError(
                f"rows were lost in {self.source}: {self.rows_read} read, {self.rows_released} "
                f"released, {self.set_aside} set aside; please report this"
            )
