# SPDX-License-Identifier: Apache-2.0
"""TableReport: what was read from a table, what was set aside, and by which rules."""

from dataclasses import dataclass

from pufferfish.errors import PufferfishError, counted
from pufferfish.rationals import show
from pufferfish.support import Levels, Support
from pufferfish.tables.rules import Rules


@dataclass(frozen=True)
class MissingText:
    """A text that means "missing", and the rows in which it did.

    Attributes
    ----------
    text : str
        The text; the empty one stands for the empty cell.
    public_rows, secret_rows : int
        Rows whose public cell, whose secret cell holds it.
    """

    text: str
    public_rows: int
    secret_rows: int


@dataclass(frozen=True)
class TableReport:
    """Where the rows of a table went: ``rows_read = rows_used + rows set aside``, always.

    Attributes
    ----------
    source : str
        The file, or the kind of dataframe.
    rules : Rules
        The cleaning in force, with the decimal mark that was found; a plan keeps these.
    rows_read, rows_used : int
        Rows of the table, and those of them that are in the counts.
    set_aside : tuple of (reason, rows)
        The others, each counted under its first reason.
    secrets : tuple of (secret, rows)
        Rows used of every secret.
    missing : tuple of MissingText
        Every text that means "missing", the empty cell first.
    kind : str
        "numbers", "ordered levels" or "unordered levels".
    coding : tuple of (level, code), or None
        The codes of ordered levels; None for numbers and for levels without an order.
    rounded : int
        How many distinct values were moved by rounding them to the step.
    notes : tuple of str
        What else was decided about the cells.
    warnings : tuple of str
        What the user should look at; each was also given as a PriorWarning.
    missing_rows : int or None
        Rows used whose public value is the level of missing ones; None where it is no level.
    """

    source: str
    rules: Rules
    rows_read: int
    rows_used: int
    set_aside: tuple[tuple[str, int], ...]
    secrets: tuple[tuple[str, int], ...]
    missing: tuple[MissingText, ...]
    kind: str
    coding: tuple[tuple[str, int], ...] | None = None
    rounded: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    missing_rows: int | None = None

    def __post_init__(self) -> None:
        aside = sum(rows for _, rows in self.set_aside)
        used = sum(rows for _, rows in self.secrets)
        if self.rows_read != self.rows_used + aside or self.rows_used != used:
            raise PufferfishError(
                f"rows were lost in {self.source}: {self.rows_read} read, {self.rows_used} used "
                f"({used} by secret), {aside} set aside; please report this"
            )

    @property
    def rows_set_aside(self) -> int:
        """Rows that are not in the counts."""
        return self.rows_read - self.rows_used

    def lines(self) -> tuple[str, ...]:
        """Return the report as plain lines of text, for people."""
        rules = self.rules
        lines = [
            f"{self.source}: secret {rules.secret!r}, public {rules.public!r}",
            f"rows read {self.rows_read}, used {self.rows_used}, set aside {self.rows_set_aside}",
            *(f"  set aside, {reason}: {rows}" for reason, rows in self.set_aside),
            "rows by secret: " + ", ".join(f"{s} {rows}" for s, rows in self.secrets),
            "missing: "
            + ", ".join(
                f"{repr(m.text) if m.text else 'the empty cell'} "
                f"({m.public_rows} public, {m.secret_rows} secret)"
                for m in self.missing
            ),
        ]
        if self.missing_rows is not None:
            level = repr(rules.missing_level)
            lines.insert(2, f"  used, no public value, as the level {level}: {self.missing_rows}")
        if self.coding is not None:
            how = rules.order if isinstance(rules.order, str) else "as stated"
            codes = ", ".join(f"{level} = {code}" for level, code in self.coding)
            lines.append(f"coding ({how}): {codes}")
        else:
            lines.append(f"the public column holds {self.kind}")
        if rules.step is not None:
            moved = f"{counted(self.rounded, 'distinct value')} rounded"
            lines.append(f"step {show(rules.step)}: {moved}")
        return (*lines, *(f"note: {note}" for note in self.notes))


def kind_of(support: Support) -> str:
    """Return what a support holds, in words."""
    if isinstance(support, Levels):
        return "ordered levels" if support.ordered else "unordered levels"
    return "numbers"


def coding_of(support: Support) -> tuple[tuple[str, int], ...] | None:
    """Return the code of every ordered level; None for all other supports."""
    if isinstance(support, Levels) and support.ordered:
        return tuple((name, code) for code, name in enumerate(support.names))
    return None
