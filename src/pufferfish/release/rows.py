# SPDX-License-Identifier: Apache-2.0
"""Rows: batches of raw cells become atoms; every row is checked, and counted by what became of it.

The secret and the unit are read for counting alone, and never written.
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import IntArray
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Levels
from pufferfish.tables.arrow import Cells, distinct
from pufferfish.tables.encode import MISSING, OK, OUTSIDE, UNREADABLE, Encoder
from pufferfish.tables.rules import Coding
from pufferfish.tables.table import Table

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Columns:
    """The columns that a release reads: of an array only the public one.

    Attributes
    ----------
    public, secret, unit : str, str or None, str or None
        The released column; the two that are counted, where they are there.
    keep, written : tuple of str
        Those that are written as they are; these and the public one, in the order of the table.
    absent : str or None
        The secret column that the spec names, where the table lacks it.
    """

    public: str
    secret: str | None = None
    unit: str | None = None
    keep: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    absent: str | None = None

    @property
    def counted(self) -> list[str]:
        """Those that are not only kept, the public one first."""
        return [name for name in (self.public, self.secret, self.unit) if name is not None]

    @property
    def read(self) -> list[str]:
        """All of them, the public one first."""
        return [*self.counted, *self.keep]


def choose_columns(table: Table, spec: ReleaseSpec, keep: Sequence[str]) -> Columns:
    """Return the columns to read and to write; neither the secret nor the unit can be kept.

    These two are known under whatever capitals and widths of letters. Nothing can be kept of a
    table that lacks the secret column: any other might be it under another name.
    """
    if spec.coding is None:
        raise InputError(
            "the prior did not come from a table, so no column is named; name the one to release "
            "with --public COL (plan.with_columns(public=COL)), or release an array"
        )
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    public = table.column(spec.coding.column)
    if keep and spec.secret is None:
        raise InputError(
            "columns can be kept only where the secret column is named, so that it is not among "
            "them: give --secret COL (with_columns(secret=...))"
        )
    unit = None if spec.unit is None else table.column(spec.unit)
    secret = spec.secret if spec.secret in table.columns else None
    named = set()
    for name in map(str, keep):
        for what, own in (("secret", spec.secret), ("unit", spec.unit)):
            if own is not None and _folded(name) == _folded(own):
                same = "" if name.strip() == own else f", nor {name.strip()!r}, the same name"
                raise InputError(f"the {what} column {own!r} cannot be kept{same}")
        column = table.column(name)
        if column == public:
            raise InputError(f"the public column {public!r} cannot be kept: it is what is released")
        named.add(column)
    if named and secret is None:
        others = [column for column in table.columns if column and column != public]
        raise InputError(
            f"the secret column {spec.secret!r} is not in {table.name}"
            f"{did_you_mean(str(spec.secret), others)}, so no column can be kept: any might be "
            f"the secret under another name; the other columns are {listed(others)}"
        )
    written = tuple(c for c in table.columns if c == public or c in named)
    kept = tuple(c for c in written if c != public)
    return Columns(public, secret, unit, kept, written, spec.secret if secret is None else None)


def _folded(name: str) -> str:
    """Return what two names have in common that people would take for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


class Reader:
    """Encodes batches of the columns to read, and checks and counts their rows.

    Attributes
    ----------
    rows, released, clamped : int
        Rows read; rows with a public value; those of them that were moved to the nearest atom.
    outside : int
        Released rows whose secret is in no pair.
    exact, moved : int64 arrays, shape (n_x,)
        Released rows by input of a channel: those whose value it is, and those moved there.
    """

    def __init__(self, spec: ReleaseSpec, columns: Columns, table: Table | None) -> None:
        self._spec, self._columns, self._table = spec, columns, table
        self._encoder = Encoder(spec.coding or Coding(columns.public, spec.support), table)
        self._secrets: Encoder | None = None
        if columns.secret is not None and spec.protected:
            self._secrets = Encoder(Coding(columns.secret, Levels(spec.protected)), table)
        self.rows = self.released = self.clamped = self.outside = 0
        size = spec.mechanism.inputs.size if isinstance(spec.mechanism, Channel) else 0
        self.exact, self.moved = np.zeros((2, size), dtype=np.int64)
        self._people: dict[str, int] = {}
        self._may_be_protected: set[str] = set()
        self._digest = hashlib.sha256()

    @property
    def counts_secrets(self) -> bool:
        """Whether rows outside the promise are counted."""
        return self._secrets is not None

    @property
    def digest(self) -> str:
        """A digest of the atoms of all rows in their order."""
        return self._digest.hexdigest()

    def read(self, batch: pa.RecordBatch) -> tuple[IntArray, BoolArray]:
        """Return the atoms of the usable rows, and which rows are usable."""
        cells, columns = batch.column(0), self._columns
        encoded = self._encoder.encode(cells)
        self._refuse(cells, encoded.state)
        usable = encoded.state != MISSING
        atoms, outside = encoded.atoms[usable], encoded.state[usable] == OUTSIDE
        self._digest.update(np.where(usable, encoded.atoms, -1).astype("<i8").tobytes())
        protected = np.ones(len(usable), dtype=bool)
        if self._secrets is not None:
            protected = self._secrets.encode(batch.column(columns.secret)).state == OK
            self.outside += int((usable & ~protected).sum())
        if columns.unit is not None:
            self._count_people(batch.column(columns.unit), usable, protected)
        if size := self.exact.size:
            self.exact += np.bincount(atoms[~outside], minlength=size)
            self.moved += np.bincount(atoms[outside], minlength=size)
        self.rows += len(usable)
        self.released += len(atoms)
        self.clamped += int(outside.sum())
        return atoms, usable

    def _refuse(self, cells: pa.Array, state: npt.NDArray[np.uint8]) -> None:
        """Refuse the first cell that is no number, or no atom and not to be clamped."""
        spec, levels = self._spec, isinstance(self._spec.support, Levels)
        refused = state == UNREADABLE
        if spec.out_of_support == "refuse" or levels:
            refused |= state == OUTSIDE
        if self._table is None:
            refused |= state == MISSING
        if not refused.any():
            return
        first = int(refused.argmax())
        if self._table is None:
            where = f"the value at position {self.rows + first} (counted from 0)"
        else:
            row = self.rows + first + 1
            where = f"data row {row} of {self._table.name}, column {self._columns.public!r},"
        hint = ""
        if state[first] == MISSING:
            hint = ", and an array keeps its length; leave it out, or release a dataframe"
        elif state[first] == OUTSIDE and levels and spec.out_of_support == "clamp":
            hint = "; levels cannot be clamped, as none is nearest to another"
        elif state[first] == OUTSIDE and not levels:
            ends = spec.support.name(0), spec.support.name(spec.support.size - 1)
            hint = (
                f", which goes from {ends[0]} to {ends[1]}; clamp to the nearest value with "
                "--out-of-support clamp (out_of_support='clamp')"
            )
        raise InputError(f"{where} {self._encoder.why(cells[first].as_py())}{hint}")

    def _count_people(
        self,
        cells: pa.Array,
        usable: BoolArray,
        protected: BoolArray,
    ) -> None:
        values, places = distinct(cells)
        names = Cells(values).texts
        rows = np.bincount(places[usable], minlength=len(names)).tolist()
        inside = np.bincount(places[protected], minlength=len(names)).tolist()
        for name, number, of_pair in zip(names, rows, inside, strict=True):
            if number and not name:
                raise InputError(
                    f"column {self._columns.unit!r} is missing in {counted(number, 'row')} with a "
                    "public value: whose they are must be known"
                )
            if number:
                self._people[name] = self._people.get(name, 0) + number
            if of_pair:
                self._may_be_protected.add(name)

    def check_people(self) -> None:
        """Refuse a person with a number of rows that the plan knows nothing of."""
        allowed = set(self._spec.rows_per_person)
        wrong = [
            rows
            for name, rows in self._people.items()
            if rows not in allowed and name in self._may_be_protected
        ]
        if wrong:
            known = " or ".join(str(k) for k in sorted(allowed)) or "no such number of"
            raise InputError(
                f"{counted(len(wrong), 'unit')} of column {self._columns.unit!r} with a number of "
                f"rows that the plan knows nothing of, such as {max(wrong)}; it knows units with "
                f"{known} rows: leave the others out, or calibrate from a table that has such units"
            )
