# SPDX-License-Identifier: Apache-2.0
"""Units of a table: which rows are one person's, read in the order of the table.

Decided on the safe side: a row with a public value but without a unit may be anybody's, so the
table is refused; so is one in which a unit has two secrets, or a secret in one row and none in
another. Rows without a public value are left out, here as in a release.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, PufferfishError, counted, listed
from pufferfish.prior import Prior
from pufferfish.support import Product, one_column
from pufferfish.tables.cells import cells_of, distinct, is_missing
from pufferfish.tables.coder import Coder
from pufferfish.tables.frames import FrameTable, open_frame
from pufferfish.tables.identity import canonical
from pufferfish.tables.rules import Rules
from pufferfish.tables.source import Table
from pufferfish.unitcounts import UnitGroup, Units

#: A dense array of more counts than this (2 GiB) is refused.
MAX_COUNTS = 2**28
#: Of more different numbers of rows than this only the ends are told.
_SHOWN = 6


class Names:
    """Numbers the names that come up in a column: equal cells have equal numbers.

    Cells are trimmed as everywhere; those that mean a missing value have the number -1.

    Parameters
    ----------
    rules : Rules
        How cells are cleaned.
    what : str
        The column, for messages.
    key : callable
        Gives texts that mean the same one key; by default only equal texts do.
    """

    def __init__(self, rules: Rules, what: str, key: Callable[[str], str] = str) -> None:
        self._rules, self._what, self._key = rules, what, key
        self.known: dict[str, int] = {}

    def numbers(self, cells: pa.Array | pa.ChunkedArray) -> IntArray:
        """Return the number of every raw cell of a batch, shape (rows,)."""
        values, places = distinct(cells)
        cleaned = cells_of(values, self._what)
        texts, known = cleaned.texts, self.known
        missing = is_missing(texts, self._rules)
        own = [
            # What is not a number marks nobody's rows, in a column of numbers.
            -1
            if gone or (cleaned.typed and text == "nan")
            else known.setdefault(self._key(text), len(known))
            for text, gone in zip(texts, missing.tolist(), strict=True)
        ]
        numbers: IntArray = np.array(own, dtype=np.int64)[places]
        return numbers


def with_units(prior: Prior, table: Table, columns: Sequence[Rules]) -> Prior:
    """Return a prior of a table, with the rows of each unit counted together.

    Parameters
    ----------
    prior : Prior
        What :func:`pufferfish.tables.count_table` or ``count_joint_table`` counted, with its
        report.
    table : Table
        The same table.
    columns : sequence of Rules
        The cleaning in force of every public column, in the order of the axes; the report's rules
        name the unit.

    Raises
    ------
    InputError
        If a row with a public value has no unit, or the rows of a unit have different secrets.
    PufferfishError
        If the table changed since the prior was counted.
    """
    if prior.report is None or prior.report.rules.unit is None:
        raise PufferfishError("units are counted in a table, by a column that is named")
    common = prior.report.rules
    names = [str(common.unit), str(common.secret), *(rules.public for rules in columns)]
    table = _collected(table, names)
    support = prior.support
    axes = support.axes if isinstance(support, Product) else (one_column(support),)
    coders = [Coder(axis, rules, table) for axis, rules in zip(axes, columns, strict=True)]
    people = People(common, table)
    atoms = []
    for batch in table.batches([table.column(name) for name in names]):
        people.read(batch.column(0), batch.column(1))
        atoms.append([coder.code(batch.column(2 + k)).atoms for k, coder in enumerate(coders)])
    if not atoms:
        raise InputError(f"{table.name} has a header but no rows")
    each = [np.concatenate(part) for part in zip(*atoms, strict=True)]
    usable = np.logical_and.reduce([part >= 0 for part in each])
    unit, secret = people.checked(usable)
    where = {name: k for k, name in enumerate(prior.secrets)}
    who = np.array([where.get(name, -1) for name in people.secrets] + [-1], dtype=np.int64)[secret]
    used = usable & (who >= 0)
    shape = tuple(axis.size for axis in axes)
    combined = np.ravel_multi_index([part[used] for part in each], shape)
    groups = _groups(unit[used], who[used], combined, len(prior.secrets), table)
    most = int(np.bincount(unit[unit >= 0], minlength=1).max())
    found = Units(names[0], groups, most)
    totals = sum((group.rows * group.counts.sum(axis=1) for group in groups), np.zeros(1, np.int64))
    if totals.tolist() != list(prior.totals):
        raise PufferfishError(f"{table.name} changed while it was read")
    notes = (*prior.report.notes, *_notes(found, prior.secrets))
    return replace(prior, units=found, report=replace(prior.report, notes=notes))


class People:
    """Whose each row of a table is, and which secret that person has, batch by batch.

    Parameters
    ----------
    rules : Rules
        They name the columns of the unit and the secret.
    table : Table
        For messages.
    """

    def __init__(self, rules: Rules, table: Table) -> None:
        self._rules, self._table = rules, table
        # 7 and 7.0 are one person, as they are one cell in the identity of the table.
        self._units = Names(rules, f"column {rules.unit!r}", canonical)
        self._secrets = Names(rules, f"column {rules.secret!r}")
        self._read: list[tuple[IntArray, IntArray]] = []

    @property
    def secrets(self) -> list[str]:
        """The secrets that came up, by their numbers."""
        return list(self._secrets.known)

    def read(self, units: pa.Array, secrets: pa.Array) -> None:
        """Read the raw cells of a batch of rows."""
        self._read.append((self._units.numbers(units), self._secrets.numbers(secrets)))

    def checked(self, usable: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Return the numbers of the unit and of the secret of every row, -1 for none.

        Parameters
        ----------
        usable : bool array, shape (rows,)
            Which rows have a public value.

        Raises
        ------
        InputError
            If one of these has no unit, or the rows of a unit have different secrets.
        """
        unit, secret = (np.concatenate(part) for part in zip(*self._read, strict=True))
        _check_named(unit, usable, self._rules, self._table)
        _check_secrets(unit, secret, usable, self._rules, self._table)
        return unit, secret


def _collected(table: Table, names: Sequence[str]) -> Table:
    """Return a lazy frame's columns collected together: its order of rows may be another twice."""
    if not isinstance(table, FrameTable):
        return table
    frame = nw.from_native(table.native)
    if not isinstance(frame, nw.LazyFrame):
        return table
    eager = frame.select([table.native_column(name) for name in names]).collect()
    return open_frame(eager.to_native())


def _groups(
    unit: IntArray, who: IntArray, atoms: IntArray, secrets: int, table: Table
) -> tuple[UnitGroup, ...]:
    """Return the units by their number of rows; the rows stay in the order of the table."""
    order = np.argsort(unit, kind="stable")
    unit, who, atoms = unit[order], who[order], atoms[order]
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    sizes = np.diff(starts, append=len(unit))
    groups = []
    for rows in np.unique(sizes).tolist():
        first = starts[sizes == rows]
        sequences, place = np.unique(
            atoms[first[:, None] + np.arange(rows)], axis=0, return_inverse=True
        )
        if secrets * len(sequences) > MAX_COUNTS:
            raise InputError(
                f"{secrets} secrets times {len(sequences)} sequences of {counted(rows, 'row')} of "
                f"a unit of {table.name} are too many to count; a coarser step leaves fewer"
            )
        counts = np.zeros((secrets, len(sequences)), dtype=np.int64)
        np.add.at(counts, (who[first], place.reshape(-1)), 1)
        groups.append(UnitGroup(sequences, counts))
    return tuple(groups)


def _check_named(unit: IntArray, usable: npt.NDArray[np.bool_], rules: Rules, table: Table) -> None:
    lost = np.flatnonzero(usable & (unit < 0))
    if len(lost):
        without_unit(len(lost), int(lost[0]) + 1, rules, table)


def without_unit(rows: int, first: int, rules: Rules, table: Table) -> NoReturn:
    """Refuse a table in which nobody knows whose rows some are."""
    several = rows > 1
    raise InputError(
        f"{counted(rows, 'row')} of {table.name} with a public value "
        f"{'have' if several else 'has'} nothing in the unit column {rules.unit!r} (the first is "
        f"data row {first}): whose they are must be known; give a person who is in no other row a "
        "value that nobody else has, or leave the rows out"
    )


def _check_secrets(
    unit: IntArray, secret: IntArray, usable: npt.NDArray[np.bool_], rules: Rules, table: Table
) -> None:
    """Check that the secret is the same in all rows of a unit."""
    size = int(unit.max(initial=-1)) + 1
    named = (unit >= 0) & (secret >= 0)
    high = np.full(size, -1, dtype=np.int64)
    np.maximum.at(high, unit[named], secret[named])
    differ = np.zeros(size, dtype=bool)
    differ[unit[named & (secret != np.where(unit >= 0, high[unit], -1))]] = True
    if differ.any():
        _refuse_secrets(differ, unit, "rows with different secrets", rules, table)
    blank = usable & (unit >= 0) & (secret < 0)
    mixed = np.zeros(size, dtype=bool)
    mixed[unit[blank]] = True
    mixed &= high >= 0
    if mixed.any():
        _refuse_secrets(mixed, unit, "a secret in one row and none in another", rules, table)


def _refuse_secrets(
    these: npt.NDArray[np.bool_], unit: IntArray, what: str, rules: Rules, table: Table
) -> NoReturn:
    number = int(these.sum())
    first = unit[np.isin(unit, np.flatnonzero(these))][0]
    rows = [str(row + 1) for row in np.flatnonzero(unit == first).tolist()]
    raise InputError(
        f"{counted(number, 'unit')} of {table.name} (by column {rules.unit!r}) "
        f"{'have' if number > 1 else 'has'} {what} in {rules.secret!r}, the first in data rows "
        f"{listed(rows)}: a person has one secret; correct the rows, or leave them out"
    )


def _notes(units: Units, secrets: tuple[str, ...]) -> list[str]:
    """Return what there is to know of the units."""
    sizes = [(group.rows, int(group.counts.sum())) for group in units.groups]
    if len(sizes) > _SHOWN:
        sizes_told = f"of {sizes[0][0]} to {sizes[-1][0]} rows"
    else:
        sizes_told = listed(f"{number} of {counted(rows, 'row')}" for rows, number in sizes)
    total = sum(number for _, number in sizes)
    notes = [
        f"the rows of one person are those with the same {units.column!r}, in the order of the "
        f"table: {counted(total, 'unit')}, {sizes_told}"
    ]
    some = [group.rows for group in units.groups if not group.counts.sum(axis=1).all()]
    if some and len(secrets) > 1:
        shown = listed(map(str, some[:_SHOWN])) + (", ..." if len(some) > _SHOWN else "")
        notes.append(
            f"not every secret has units with {shown} row{'s' * (some != [1])}: how many rows a "
            "person has may tell the secret, and no mechanism covers that"
        )
    return notes
