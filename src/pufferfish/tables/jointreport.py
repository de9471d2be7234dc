# SPDX-License-Identifier: Apache-2.0
"""JointReport: what was read from several columns of a table, and what was set aside for which."""

from dataclasses import dataclass, fields, replace

from pufferfish.errors import counted
from pufferfish.rationals import show
from pufferfish.tables.report import TableReport
from pufferfish.tables.rules import Rules


@dataclass(frozen=True)
class ColumnReport:
    """What was found in one of the public columns.

    Attributes
    ----------
    rules : Rules
        The cleaning of this column in force, with the order and the decimal mark that were found.
    rows_missing : int
        Rows of the whole table without a value in it.
    kind : str
        "numbers", "ordered levels" or "unordered levels".
    coding : tuple of (level, code), or None
        The codes of ordered levels.
    rounded : int
        How many distinct values were moved by rounding them to the step.
    """

    rules: Rules
    rows_missing: int
    kind: str
    coding: tuple[tuple[str, int], ...] | None = None
    rounded: int = 0

    def lines(self) -> list[str]:
        """Return what there is to say as plain lines of text."""
        name, rules = repr(self.rules.public), self.rules
        lines = [f"column {name} holds {self.kind}; without a value {self.rows_missing}"]
        if rules.missing_level is not None:
            lines[0] += f", which are the level {rules.missing_level!r}"
        if self.coding is not None:
            how = rules.order if isinstance(rules.order, str) else "as stated"
            codes = ", ".join(f"{level} = {code}" for level, code in self.coding)
            lines.append(f"coding of {name} ({how}): {codes}")
        if rules.step is not None:
            moved = f"{counted(self.rounded, 'distinct value')} rounded"
            lines.append(f"step of {name} {show(rules.step)}: {moved}")
        return lines


@dataclass(frozen=True)
class JointReport(TableReport):
    """Where the rows of a table went that was counted over several public columns together.

    As in :class:`TableReport`, ``rows_read = rows_used + rows set aside``. Its ``rules`` are those
    of the secret, and name all public columns as one; ``missing`` counts the cells of all public
    columns; ``kind`` lists the kinds, and ``rounded`` adds up.

    Attributes
    ----------
    columns : tuple of ColumnReport
        One for each public column, in the order of the axes, with the rules of each.
    """

    columns: tuple[ColumnReport, ...] = ()

    @property
    def incomplete(self) -> int:
        """Rows that are set aside since they lack a value in one of the columns."""
        return sum(rows for reason, rows in self.set_aside if reason.startswith("no public value"))

    def of_column(self, at: int) -> TableReport:
        """Return the report for one of the columns, with the rules by which it is released.

        The rows are still those that have a value in every column.
        """
        own = self.columns[at]
        missing = tuple(dict.fromkeys((*own.rules.missing, *self.rules.missing)))
        rules = replace(own.rules, missing=missing, exclude_secrets=self.rules.exclude_secrets)
        common = {f.name: getattr(self, f.name) for f in fields(TableReport)}
        changed = {"rules": rules, "kind": own.kind, "coding": own.coding, "rounded": own.rounded}
        return TableReport(**common | changed)

    def lines(self) -> tuple[str, ...]:
        """Return the report as plain lines of text, for people."""
        common, notes = list(super().lines()), [f"note: {note}" for note in self.notes]
        head = common[: len(common) - len(notes) - 1]  # the last line is about a single column
        names = ", ".join(repr(column.rules.public) for column in self.columns)
        head[0] = f"{self.source}: secret {self.rules.secret!r}, public {names} together"
        return (*head, *(line for column in self.columns for line in column.lines()), *notes)
