# SPDX-License-Identifier: Apache-2.0
"""UnitTable: how often each sequence of values occurs among the rows of one person in a table.

Kept in the order in which the table had its rows when it was counted: a copy with its rows in
another order is the same table, but its sequences are others (theory, section 6). Like the joint
counts it is as private as the table.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, PufferfishError
from pufferfish.joint.unitrows import UnitRows
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.readings import Reading, embedded
from pufferfish.support import Support
from pufferfish.tables import Rules, Table
from pufferfish.tables.units import People
from pufferfish.unitcounts import UnitGroup, Units

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class UnitHead:
    """What was counted, without the counts.

    Attributes
    ----------
    column : str
        The column whose equal values mark the rows of one person.
    order : str
        The digest of the table's rows in their order (:class:`TableIdentity`); empty: it has none.
    secrets : tuple of str
        Those of the joint counts.
    labels : tuple of str, length c
        The axes of the joint counts, in their order.
    """

    column: str
    order: str
    secrets: tuple[str, ...]
    labels: tuple[str, ...]

    @classmethod
    def read(cls, data: bytes) -> "UnitHead":
        """Read the head of what :meth:`UnitTable.to_bytes` wrote.

        Raises
        ------
        InputError
            If it is nothing of the kind.
        """
        try:
            head, _ = _head(data)
            labels, secrets = tuple(head["labels"]), tuple(head["secrets"])
            return cls(head["column"], head["order"], secrets, labels)
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(error) from None


@dataclass(frozen=True, eq=False)
class UnitTable(UnitHead):
    """Counts of the sequences that occur.

    Attributes
    ----------
    groups : tuple of (int64 array, int64 array)
        For every number k of rows with a value on some axis: the distinct cells, shape
        (q, 1 + k c), which are the secret and the atoms of one row after the other (-1: no value),
        and how many people have them, shape (q,).
    """

    groups: tuple[tuple[IntArray, IntArray], ...]

    @property
    def most_rows(self) -> int:
        """The largest number of rows of one person."""
        return max((self._rows(cells) for cells, _ in self.groups), default=1)

    @property
    def complete(self) -> bool:
        """Whether every row has a value on every axis."""
        return all(bool((cells >= 0).all()) for cells, _ in self.groups)

    def of(self, labels: Sequence[str]) -> "UnitTable":
        """Return the counts of some of the axes; rows without a value there are left out.

        Raises
        ------
        InputError
            If an axis is not counted here.
        """
        lost = [label for label in labels if label not in self.labels]
        if lost:
            raise InputError(f"the counts of the rows of one person lack the column {lost[0]!r}")
        kept = [k for k, label in enumerate(self.labels) if label in set(labels)]
        if len(kept) == len(self.labels):
            return self
        return self._of_rows(kept, lambda atoms: np.logical_or.reduce(atoms.T >= 0))

    def complete_rows(self) -> "UnitTable":
        """Return the counts of the rows with a value on every axis; the others are left out."""
        every = range(len(self.labels))
        return self._of_rows(every, lambda atoms: np.logical_and.reduce(atoms.T >= 0))

    def _of_rows(
        self, kept: Sequence[int], wanted: Callable[[IntArray], npt.NDArray[np.bool_]]
    ) -> "UnitTable":
        """Return the counts of some axes, and of the rows that are wanted by their atoms there."""
        who, people, weights, atoms = [], [], [], []
        first = 0
        for cells, counts in self.groups:
            rows = self._rows(cells)
            who.append(cells[:, 0])
            weights.append(counts)
            people.append(np.repeat(np.arange(first, first + len(cells)), rows))
            atoms.append(cells[:, 1:].reshape(-1, len(self.labels))[:, list(kept)])
            first += len(cells)
        labels = tuple(self.labels[k] for k in kept)
        groups: tuple[tuple[IntArray, IntArray], ...] = ()
        if first:
            there = wanted(np.concatenate(atoms))
            groups = _grouped(
                np.concatenate(who),
                np.concatenate(weights),
                np.concatenate(people)[there],
                np.concatenate(atoms)[there],
            )
        return replace(self, labels=labels, groups=groups)

    @property
    def number_of_patterns(self) -> int:
        """How many :meth:`patterns` yields."""
        if self.complete:
            return len(self.groups)
        return sum(len(np.unique(cells[:, 1:] >= 0, axis=0)) for cells, _ in self.groups)

    def patterns(self) -> Iterator[tuple[int, UnitRows]]:
        """Yield the people by their number of rows, and by where these have values."""
        width = len(self.labels)
        for cells, counts in self.groups:
            rows = self._rows(cells)
            there, place = np.unique(cells[:, 1:] >= 0, axis=0, return_inverse=True)
            order = np.argsort(place.reshape(-1), kind="stable")
            ends = np.cumsum(np.bincount(place.reshape(-1), minlength=len(there)))[:-1]
            for present, mine in zip(there, np.split(order, ends), strict=True):
                places = np.flatnonzero(present)
                own = cells[mine]
                atoms, at = np.unique(own[:, 1 + places], axis=0, return_inverse=True)
                found = np.zeros((len(self.secrets), len(atoms)), dtype=np.int64)
                np.add.at(found, (own[:, 0], at.reshape(-1)), counts[mine])
                columns, lines = places % width, places // width
                yield rows, UnitRows(atoms, found, tuple(columns.tolist()), tuple(lines.tolist()))

    def units_on(self, label: str, axis: Support, support: Support) -> Units | None:
        """Return the units of one axis on another support, or None where that lacks a value."""
        places = embedded(axis, support)
        if places is None:
            return None
        groups = []
        for cells, counts in self.of([label]).groups:
            sequences, at = np.unique(cells[:, 1:], axis=0, return_inverse=True)
            found = np.zeros((len(self.secrets), len(sequences)), dtype=np.int64)
            np.add.at(found, (cells[:, 0], at.reshape(-1)), counts)
            groups.append(UnitGroup(places[sequences], found))
        return Units(self.column, tuple(groups))

    def to_bytes(self) -> bytes:
        """Return it as bytes, equal ones for equal counts."""
        head = {
            "format": _FORMAT,
            "column": self.column,
            "order": self.order,
            "secrets": list(self.secrets),
            "labels": list(self.labels),
            "groups": [[self._rows(cells), len(cells)] for cells, _ in self.groups],
        }
        text = json.dumps(head, sort_keys=True).encode()
        body = b"".join(
            cells.astype("<i8").T.tobytes() + counts.astype("<i8").tobytes()
            for cells, counts in self.groups
        )
        return len(text).to_bytes(8, "little") + text + zlib.compress(body, 6)

    @classmethod
    def from_bytes(cls, data: bytes) -> "UnitTable":
        """Read back what :meth:`to_bytes` wrote.

        Raises
        ------
        InputError
            If it is nothing of the kind.
        """
        known = UnitHead.read(data)
        try:
            head, body = _head(data)
            numbers = np.frombuffer(zlib.decompress(body), dtype="<i8").astype(np.int64)
            groups, at = [], 0
            for rows, people in head["groups"]:
                width = 1 + rows * len(known.labels)
                cells = numbers[at : at + width * people].reshape(width, people).T
                counts = numbers[at + width * people : at + (width + 1) * people]
                who = cells[:, 0]
                if len(counts) != people or ((who < 0) | (who >= len(known.secrets))).any():
                    raise ValueError("wrong numbers")
                if (cells < -1).any() or (counts < 1).any():
                    raise ValueError("negative numbers")
                groups.append((np.ascontiguousarray(cells), counts))
                at += (width + 1) * people
            if at != len(numbers):
                raise ValueError("another length")
        except (ValueError, KeyError, TypeError, IndexError, zlib.error) as error:
            raise _unreadable(error) from None
        return cls(known.column, known.order, known.secrets, known.labels, tuple(groups))

    def _rows(self, cells: IntArray) -> int:
        return (int(cells.shape[1]) - 1) // len(self.labels)


def _head(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(data[:8], "little")
    head: dict[str, Any] = json.loads(data[8 : 8 + length])
    if head["format"] != _FORMAT:
        raise ValueError("an unknown format")
    return head, data[8 + length :]


def _unreadable(error: Exception) -> InputError:
    return InputError(f"the counts of people's rows in the ledger cannot be read ({error})")


def count_units(
    table: Table,
    rules: Rules,
    order: str,
    joint: JointTable,
    readings: Sequence[tuple[str, Reading]],
) -> UnitTable:
    """Count the rows of every person in a table, each cell read as a release would.

    Parameters
    ----------
    table : Table
    rules : Rules
        They name the unit and the secret.
    order : str
        The digest of the table's rows in their order.
    joint : JointTable
        The counts of the same readings.
    readings : sequence of (label, Reading)
        One for each axis of the joint counts, in their order.

    Raises
    ------
    InputError
        If a row with a value in a released column has no unit, or the rows of a unit have
        different secrets.
    """
    names = [str(rules.unit), str(rules.secret), *(r.column for _, r in readings)]
    people = People(rules, table)
    batches = []
    for batch in table.batches([table.column(name) for name in names]):
        people.read(batch.column(0), batch.column(1))
        batches.append(
            [
                reading.atoms(pa.chunked_array([batch.column(2 + k)]), table)
                for k, (_, reading) in enumerate(readings)
            ]
        )
    atoms = np.column_stack([np.concatenate(part) for part in zip(*batches, strict=True)])
    usable: npt.NDArray[np.bool_] = np.logical_or.reduce(atoms.T >= 0)
    unit, secret = people.checked(usable)
    number = {name: k for k, name in enumerate(joint.secrets)}
    who = np.array([number.get(name, -1) for name in people.secrets] + [-1], dtype=np.int64)[secret]
    used = usable & (who >= 0)
    unit, who, atoms = unit[used], who[used], atoms[used]
    for k, (label, reading) in enumerate(readings):
        atoms[:, k] = _on_axis(atoms[:, k], joint.axes[joint.axis(label)].support, reading)
    found, first, mine = np.unique(unit, return_index=True, return_inverse=True)
    ones = np.ones(len(found), dtype=np.int64)
    groups = _grouped(who[first], ones, mine.reshape(-1), atoms) if len(found) else ()
    labels = tuple(label for label, _ in readings)
    return UnitTable(names[0], order, joint.secrets, labels, groups)


def _on_axis(atoms: IntArray, axis: Support, reading: Reading) -> IntArray:
    """Return atoms of a plan's support as atoms of the table's own axis."""
    places = embedded(axis, reading.plan.support)
    if places is None:
        raise PufferfishError("a column was counted on other values than its plan has")
    back = np.full(reading.plan.support.size, -1, dtype=np.int64)
    back[places] = np.arange(len(places))
    found: IntArray = np.where(atoms < 0, -1, back[atoms])
    return found


def _grouped(
    who: IntArray, weights: IntArray, people: IntArray, atoms: IntArray
) -> tuple[tuple[IntArray, IntArray], ...]:
    """Return the groups by number of rows.

    Parameters
    ----------
    who, weights : int64 arrays, shape (n,)
        The secret of every person, and how many are like that.
    people : int64 array, shape (rows,)
        The person of each row.
    atoms : int64 array, shape (rows, c)
        Its values.
    """
    order = np.argsort(people, kind="stable")
    people, atoms = people[order], atoms[order]
    starts = np.flatnonzero(np.diff(people, prepend=-1))
    sizes = np.diff(starts, append=len(people))
    groups = []
    for rows in np.unique(sizes).tolist():
        first = starts[sizes == rows]
        every = atoms[first[:, None] + np.arange(rows)].reshape(len(first), -1)
        own = people[first]
        cells, place = np.unique(np.column_stack([who[own], every]), axis=0, return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, place.reshape(-1), weights[own])
        groups.append((cells, counts))
    return tuple(groups)
