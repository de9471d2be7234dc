# SPDX-License-Identifier: Apache-2.0
"""JointTable: how often each combination of a secret and the values of columns occurs in a table.

Kept as the combinations that occur, with those that lack a value in some of the columns, as bytes
in the ledger. It is as private as the table.
"""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError
from pufferfish.ledger.readings import Reading, table_support
from pufferfish.support import Levels, Support
from pufferfish.supportfile import support_from_dict, support_to_dict
from pufferfish.tables import Table
from pufferfish.tables.arrow import one_array, to_numpy
from pufferfish.tables.cells import cells_of, distinct
from pufferfish.tables.identity import canonical

_FORMAT = 1


@dataclass(frozen=True)
class TableAxis:
    """One column, as some releases read it.

    Attributes
    ----------
    label : str
        The name of the axis: that of the column, and a number where there are several.
    column : str
    support : Lattice or Levels
        The values that occur.
    """

    label: str
    column: str
    support: Support


@dataclass(frozen=True, eq=False)
class JointTable:
    """Counts of the combinations that occur.

    Attributes
    ----------
    secrets : tuple of str, length m
        All secrets of the table.
    axes : tuple of TableAxis, length k
    cells : int64 array, shape (combinations, 1 + k)
        The secret, and the atom on each axis (-1: no value); distinct and sorted.
    counts : int64 array, shape (combinations,)
        Rows of each.
    without_secret : int
        Rows without a secret; they are in no combination.
    """

    secrets: tuple[str, ...]
    axes: tuple[TableAxis, ...]
    cells: IntArray
    counts: IntArray
    without_secret: int

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.label for axis in self.axes)

    @property
    def incomplete(self) -> int:
        """Rows with a secret and a value in some of the columns, but not in all."""
        missing = self.cells[:, 1:] < 0
        some = missing.any(axis=1) & ~missing.all(axis=1)
        return int(self.counts[some].sum())

    def axis(self, label: str) -> int:
        """Return which axis has that name.

        Raises
        ------
        InputError
            If none has.
        """
        if label not in self.labels:
            raise InputError(f"the joint counts lack the column {label!r}")
        return self.labels.index(label)

    def of(self, labels: Sequence[str]) -> "JointTable":
        """Return the counts of some of the axes, in their own order, summed over the others."""
        kept = [k for k, axis in enumerate(self.axes) if axis.label in set(labels)]
        if len(kept) == len(self.axes):
            return self
        cells, counts = _summed(self.cells[:, [0, *(k + 1 for k in kept)]], self.counts)
        axes = tuple(self.axes[k] for k in kept)
        return replace(self, axes=axes, cells=cells, counts=counts)

    def same_as(self, other: "JointTable") -> bool:
        """Whether all counts are the same, of the same axes."""
        return (
            (self.secrets, self.labels, self.without_secret)
            == (other.secrets, other.labels, other.without_secret)
            and all(
                a.column == b.column and a.support.same_as(b.support)
                for a, b in zip(self.axes, other.axes, strict=True)
            )
            and np.array_equal(self.cells, other.cells)
            and np.array_equal(self.counts, other.counts)
        )

    def to_bytes(self) -> bytes:
        """Return it as bytes, equal ones for equal counts."""
        head = {
            "format": _FORMAT,
            "secrets": list(self.secrets),
            "axes": [
                {"label": a.label, "column": a.column, "support": support_to_dict(a.support)}
                for a in self.axes
            ],
            "combinations": len(self.counts),
            "without_secret": self.without_secret,
        }
        text = json.dumps(head, sort_keys=True).encode()
        body = self.cells.astype("<i8").T.tobytes() + self.counts.astype("<i8").tobytes()
        return len(text).to_bytes(8, "little") + text + zlib.compress(body, 6)

    @classmethod
    def from_bytes(cls, data: bytes) -> "JointTable":
        """Read back what :meth:`to_bytes` wrote.

        Raises
        ------
        InputError
            If it is nothing of the kind.
        """
        try:
            length = int.from_bytes(data[:8], "little")
            head: dict[str, Any] = json.loads(data[8 : 8 + length])
            if head["format"] != _FORMAT:
                raise InputError("the ledger holds joint counts of an unknown format")
            axes = tuple(
                TableAxis(a["label"], a["column"], support_from_dict(a["support"]))
                for a in head["axes"]
            )
            rows, width = int(head["combinations"]), 1 + len(axes)
            numbers = np.frombuffer(zlib.decompress(data[8 + length :]), dtype="<i8")
            cells = numbers[: rows * width].reshape(width, rows).T.astype(np.int64)
            counts = numbers[rows * width :].astype(np.int64)
            if len(counts) != rows:
                raise ValueError("too short")
            return cls(tuple(head["secrets"]), axes, cells, counts, int(head["without_secret"]))
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the joint counts in the ledger cannot be read ({error})") from None


@dataclass(frozen=True, eq=False)
class Counted:
    """A table, counted for some readings of its columns.

    Attributes
    ----------
    joint : JointTable
    labels : tuple of str
        The axis of each reading.
    atoms : tuple of int64 arrays
        For each reading the atom of the plan's own support, -1 for none, by group of rows.
    secrets : int64 array
        The secret of every group, -1 for none.
    rows : int64 array
        The rows of every group.
    """

    joint: JointTable
    labels: tuple[str, ...]
    atoms: tuple[IntArray, ...]
    secrets: IntArray
    rows: IntArray


def count(table: Table, secret: str, readings: Sequence[tuple[str | None, Reading]]) -> Counted:
    """Count a table for some readings, each cell read as a release would.

    Parameters
    ----------
    table : Table
    secret : str
        The column of the secret.
    readings : sequence of (label, Reading)
        None for a reading that has no axis yet: that of an equal one, or else a new one.

    Raises
    ------
    InputError
        If a column is not there, or a cell cannot be released.
    """
    own = table.column(secret)
    columns = list(dict.fromkeys(table.column(reading.column) for _, reading in readings))
    groups = table.groups([own, *columns])
    rows = to_numpy(one_array(groups.column(len(columns) + 1))).astype(np.int64, copy=False)
    values, places = distinct(groups.column(0))
    texts = cells_of(values, f"column {secret!r}").texts
    names = tuple(sorted({text for text in texts if text}))
    _check_apart(names, secret)
    number = {name: k for k, name in enumerate(names)}
    who = np.array([number.get(text, -1) for text in texts], dtype=np.int64)[places]
    axes: list[TableAxis] = []
    codes: list[IntArray] = []
    labels: list[str] = []
    atoms: list[IntArray] = []
    taken = {label for label, _ in readings if label is not None}
    for label, reading in readings:
        at = 1 + columns.index(table.column(reading.column))
        read = reading.atoms(groups.column(at), table)
        support, code = table_support(reading.plan.support, read)
        if isinstance(support, Levels):
            occurring = np.unique(code[code >= 0]).tolist()
            _check_apart([support.names[k] for k in occurring], reading.column)
        if label is None:
            label = _same(axes, codes, reading.column, support, code)
        if label is None:
            label = _unused(reading.column, taken | {axis.label for axis in axes})
        if all(axis.label != label for axis in axes):
            axes.append(TableAxis(label, reading.column, support))
            codes.append(code)
        labels.append(label)
        atoms.append(read)
    matrix = np.column_stack([who, *codes]).astype(np.int64)
    named = who >= 0
    cells, counts = _summed(matrix[named], rows[named])
    joint = JointTable(names, tuple(axes), cells, counts, int(rows[~named].sum()))
    return Counted(joint, tuple(labels), tuple(atoms), who, rows)


def _check_apart(names: Sequence[str], column: str) -> None:
    """Refuse levels that the identity of a table does not tell apart: they could change places."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(canonical(name), name)
        if other != name:
            raise InputError(
                f"the column {column!r} holds {other!r} and {name!r}, which are one and the same "
                "for knowing a table again: a copy in which they change places could not be told "
                "from this one; write each value in one way; nothing was charged"
            )


def _same(
    axes: Sequence[TableAxis],
    codes: Sequence[IntArray],
    column: str,
    support: Support,
    code: IntArray,
) -> str | None:
    """Return the axis on which the same values were found in all rows."""
    for axis, other in zip(axes, codes, strict=True):
        alike = axis.column == column and axis.support.same_as(support)
        if alike and np.array_equal(other, code):
            return axis.label
    return None


def _unused(column: str, taken: set[str]) -> str:
    label, number = column, 1
    while label in taken:
        number += 1
        label = f"{column} ({number})"
    return label


def _summed(cells: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows, sorted, with the sums of their counts."""
    if not len(cells):
        return cells, counts
    order = np.lexsort(cells.T[::-1])
    cells, counts = cells[order], counts[order]
    first = np.concatenate([[True], (cells[1:] != cells[:-1]).any(axis=1)])
    return cells[first], np.add.reduceat(counts, np.flatnonzero(first))
