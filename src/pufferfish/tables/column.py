# SPDX-License-Identifier: Apache-2.0
"""Column: the distinct cells of one column, and which of them mean a missing value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.arrays import IntArray
from pufferfish.errors import counted
from pufferfish.rationals import NotFinite
from pufferfish.tables.cells import BOOLEANS, Cells, cells_of, distinct, is_missing
from pufferfish.tables.classify import looks_missing
from pufferfish.tables.numerals import missing_numbers, parse_comma, parse_point, plain_number
from pufferfish.tables.report import MissingText
from pufferfish.tables.rules import Rules


@dataclass(frozen=True, eq=False)
class Column:
    """The k distinct cells of one column of a table that was counted by groups.

    Attributes
    ----------
    raw : pyarrow.Array, shape (k,)
        The cells as the table has them.
    cells : Cells
        Their trimmed texts.
    missing : bool array, shape (k,)
        Which of them mean a missing value.
    places : int array, shape (groups,)
        The cell of every group.
    rows : int64 array, shape (k,)
        The rows that hold each cell.
    """

    raw: pa.Array
    cells: Cells
    missing: npt.NDArray[np.bool_]
    places: npt.NDArray[Any]
    rows: IntArray

    @classmethod
    def of(cls, column: pa.ChunkedArray, counts: IntArray, rules: Rules, what: str) -> "Column":
        """Return the column of the raw cells of all groups.

        Parameters
        ----------
        column : pyarrow.ChunkedArray, shape (groups,)
        counts : int64 array, shape (groups,)
            The rows of every group.
        rules : Rules
            Which texts mean "missing".
        what : str
            What messages call the column.

        Raises
        ------
        InputError
            If the cells are lists, structs or bytes.
        """
        raw, places = distinct(column)
        cells = cells_of(raw, what)
        rows = np.zeros(len(raw), dtype=np.int64)
        np.add.at(rows, places, counts)
        return cls(raw, cells, is_missing(cells.texts, rules), places, rows)

    @property
    def present(self) -> list[str]:
        """The texts of the cells that do not mean a missing value."""
        return [t for t, gone in zip(self.cells.texts, self.missing.tolist(), strict=True)
                if not gone]  # fmt: skip


def numeric_missing(public: Column, rules: Rules, ordered: bool) -> tuple[Column, dict[int, str]]:
    """Set aside public cells that are the number of a missing text: ``-999.0`` for ``-999``.

    Only where all others are numbers (or truth values) too: the codes 01 and 1 may be two levels.

    Parameters
    ----------
    public : Column
        The public column.
    rules : Rules
        The texts that mean "missing".
    ordered : bool
        Whether the column has an order of its own, which makes it levels.

    Returns
    -------
    column : Column
    stand_for : dict
        The missing text that each of these cells stands for, by its place.
    """
    numbers = missing_numbers(rules.missing)
    if not numbers or ordered or rules.levels is not None or rules.order is not None:
        return public, {}
    stand_for: dict[int, str] = {}
    for place in np.flatnonzero(~public.missing).tolist():
        text = public.cells.texts[place]
        value = plain_number(text)
        if value is not None and value in numbers:
            stand_for[place] = numbers[value]
        elif value is None and text.lower() not in BOOLEANS and not _may_be_number(text):
            return public, {}
    missing = public.missing.copy()
    missing[list(stand_for)] = True
    return replace(public, missing=missing), stand_for


def _may_be_number(text: str) -> bool:
    try:
        return parse_point(text) is not None or parse_comma(text) is not None
    except NotFinite:
        return True


def missing_texts(
    secret: Column, public: Column, rules: Rules, stand_for: Mapping[int, str]
) -> tuple[MissingText, ...]:
    """Return every text that means "missing", with the rows in which it does."""

    def rows(column: Column, text: str) -> int:
        match = [k for k, other in enumerate(column.cells.texts) if other == text]
        if column is public:
            match += [k for k, other in stand_for.items() if other == text]
        return int(column.rows[match].sum()) if match else 0

    return tuple(MissingText(text, rows(public, text), rows(secret, text)) for text in rules.absent)


def notes_on_missing(
    secret: Column, public: Column | None, rules: Rules, missing: tuple[MissingText, ...]
) -> list[str]:
    """Return notes on what may mean "missing" but does not, and on what was to but occurs nowhere.

    Parameters
    ----------
    secret, public : Column
        The two columns; None for a public column of numbers, where no text can be left.
    rules : Rules
        The names of the columns.
    missing : tuple of MissingText
        The texts that mean "missing".
    """
    notes = []
    columns = [(rules.secret, "secret", secret)]
    if public is not None:
        columns.append((rules.public, "level", public))
    for name, kind, column in columns:
        for text in sorted(set(looks_missing(column.present))):
            rows = sum(
                r for t, r in zip(column.cells.texts, column.rows.tolist(), strict=True)
                if t == text
            )  # fmt: skip
            notes.append(
                f"{text!r} in column {name!r} is a {kind} of its own ({counted(rows, 'row')}); if "
                f"it means a missing value, say so (--missing {text!r})"
            )
    return notes + [
        f"no cell of the two columns is {m.text!r}, which was to mean a missing value (--missing)"
        for m in missing
        if m.text and not m.public_rows + m.secret_rows
    ]


def lost_digits(public: Column) -> str | None:
    """Return a warning where integers were squeezed into floats before they reached us."""
    if not pt.is_float64(public.raw.type) or not public.missing.any():
        return None
    large = [t for t in public.present if abs(float(t)) >= 2**53 and float(t).is_integer()]
    if not large:
        return None
    return (
        "the public column holds floats beyond 2**53 and blanks: integers of that size may have "
        "lost digits before they arrived here; use an integer type that knows blanks (Int64)"
    )
