# SPDX-License-Identifier: Apache-2.0
"""TableReport: what was read from a table, what was set aside and why; data only."""

from dataclasses import dataclass
from typing import Literal

from pufferfish.errors import PufferfishError
from pufferfish.numbers import IntArray
from pufferfish.tables.rules import Rules


@dataclass(frozen=True, eq=False)
class Stratum:
    """The people who have one number of usable rows.

    Attributes
    ----------
    rows : int
        How many rows each of them has.
    sequences : int64 array, shape (q, rows)
        The distinct sequences of atoms of the product, in the order of rows.
    counts : int64 array, shape (m, q)
        How many people of each secret have each sequence.
    """

    rows: int
    sequences: IntArray
    counts: IntArray


#: Why rows are set aside: no value in a public column, no secret, or an excluded secret.
Reason = Literal["no public value", "no secret", "secret excluded"]


@dataclass(frozen=True)
class SetAside:
    """Rows that are not in the counts, under their first reason.

    Attributes
    ----------
    reason : "no public value", "no secret" or "secret excluded"
    name : str
        The public column, the secret column, or the excluded secret.
    rows : int
    """

    reason: Reason
    name: str
    rows: int


@dataclass(frozen=True)
class MissingText:
    """A text that means "missing" ("" is the empty cell), and the rows in which it does."""

    text: str
    public_rows: int
    secret_rows: int


@dataclass(frozen=True)
class ColumnReport:
    """What was found in one public column: rows of the whole table without a value in it."""

    name: str
    rows_missing: int


@dataclass(frozen=True)
class TableReport:
    """Where the rows of a table went: ``rows_read = rows_used + rows set aside``, always.

    Attributes
    ----------
    source : str
        The file, or the kind of dataframe.
    rules : Rules
        What was declared.
    rows_read, rows_used : int
    set_aside : tuple of SetAside
    secrets : tuple of (secret, rows)
        Rows used of every secret.
    missing : tuple of MissingText
        Every text that means "missing", the empty cell first.
    columns : tuple of ColumnReport
        One for each public column.
    missing_rows : int or None
        Rows used that have the level of missing values in a column; None where it is no level.
    people : tuple of (rows, people), or None
        How many people have so many usable rows; None where every row is one person's.
    notes, warnings : tuple of str
        One sentence each; each warning was also given as a PriorWarning.
    """

    source: str
    rules: Rules
    rows_read: int
    rows_used: int
    set_aside: tuple[SetAside, ...]
    secrets: tuple[tuple[str, int], ...]
    missing: tuple[MissingText, ...]
    columns: tuple[ColumnReport, ...]
    missing_rows: int | None = None
    people: tuple[tuple[int, int], ...] | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        used = sum(rows for _, rows in self.secrets)
        if self.rows_read != self.rows_used + self.rows_set_aside or self.rows_used != used:
            raise PufferfishError(
                f"rows were lost in {self.source}: {self.rows_read} read, {self.rows_used} used "
                f"({used} by secret), {self.rows_set_aside} set aside; please report this"
            )

    @property
    def rows_set_aside(self) -> int:
        """Rows that are not in the counts."""
        return sum(aside.rows for aside in self.set_aside)
