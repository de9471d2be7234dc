# SPDX-License-Identifier: Apache-2.0
"""Records: what stands in a ledger file, read as of one moment and written in one transaction.

It knows nothing of privacy: what a release costs, and whether it fits, is decided by whoever holds
the transaction that :meth:`Records.begin_charge` gives. Budgets and bounds are exact fractions,
kept as texts: ten times 1/10 fit in 1, and nothing beside them.
"""

import math
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from pufferfish.errors import InputError, did_you_mean, listed, quoted
from pufferfish.files import PRIVATE, home_expanded
from pufferfish.ledger import store
from pufferfish.ledger.store import PATIENCE, Waiting
from pufferfish.numbers import Number, parse_number, show

CHARGED, RELEASED = "charged", "released"
#: Longer denominators (sums of many releases have them) are rounded up to this fraction of 1.
_LONGEST_BITS = 3000
_FINEST = 2**1100
_INFINITE = "inf"
_DATASET = "name, secret, budget, digest, rows, other_people, opened, version"
_RELEASE = "sequence, id, dataset, public, plan, own, bound, kind, time, state"


@dataclass(frozen=True)
class Dataset:
    """A table under one secret, with the budget of all its releases; none of it ever changes.

    The ``digest`` is the table's identity; ``other_people``: the user said that the people of other
    datasets about this secret are others; ``version`` counts charges.
    """

    name: str
    secret: str
    budget: Fraction
    digest: str
    rows: int
    other_people: bool
    opened: str
    version: int


@dataclass(frozen=True)
class ReleaseRecord:
    """One release, as it was charged.

    ``sequence`` is the one order there is; ``plan``: what was in force, as JSON; ``own``: whether
    it is for what the counts of this very table say; ``bound``: of the joint loss of all releases
    up to this one, None where infinite; ``state``: "charged", or "released" once its output was in
    place.
    """

    sequence: int
    id: str
    dataset: str
    column: str
    plan: str
    own: bool
    bound: Fraction | None
    kind: str
    time: str
    state: str


@dataclass(frozen=True)
class Records:
    """A ledger file, from :func:`create` or :func:`open_store`; every call opens it anew.

    ``patience``: seconds to wait while other processes hold it; ``waiting`` is told now and then
    how many seconds that took so far.
    """

    path: Path
    patience: float = PATIENCE
    waiting: Waiting | None = None

    @contextmanager
    def reading(self) -> Iterator["View"]:
        """Give all records as of one moment; nobody can charge meanwhile, so keep it short."""
        with store.reading(self.path, self.patience, self.waiting) as connection:
            yield View(connection, self.path)

    @contextmanager
    def begin_charge(self) -> Iterator["Charge"]:
        """Give all records, and the right to add to them, which nobody else has meanwhile.

        When the block ends without an exception, all that was added is on the disk. After an
        exception nothing is added. Keep it short too: compute beforehand, and compare the
        dataset's ``version`` here.
        """
        with store.writing(self.path, self.patience, self.waiting) as connection:
            yield Charge(connection, self.path)

    @property
    def exposed(self) -> bool:
        """Whether the file's mode lets others than its owner read or write it."""
        return os.name == "posix" and bool(stat.S_IMODE(self.path.stat().st_mode) & ~PRIVATE)


def create(path: str | Path, patience: float = PATIENCE, waiting: Waiting | None = None) -> Records:
    """Make an empty ledger that only its owner can read (mode 0600)."""
    place = _place(path)
    store.create(place)
    return Records(place, patience, waiting)


def open_store(
    path: str | Path, patience: float = PATIENCE, waiting: Waiting | None = None
) -> Records:
    """Open a ledger, after a look at the whole file; it is not changed by that."""
    place = _place(path)
    store.check(place, patience, waiting)
    return Records(place, patience, waiting)


class View:
    """The records of a ledger as of one moment; made by :meth:`Records.reading`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def notice(self) -> str:
        """Return what the ledger says of itself."""
        return str(self._rows("SELECT text FROM notice")[0][0])

    def datasets(self) -> list[Dataset]:
        """Return all datasets, in the order of their opening."""
        rows = self._rows(f"SELECT {_DATASET} FROM dataset ORDER BY rowid")
        return [
            Dataset(name, secret, self._exact(budget), digest, number, bool(others), *rest)
            for name, secret, budget, digest, number, others, *rest in rows
        ]

    def releases(self, dataset: str | None = None) -> list[ReleaseRecord]:
        """Return releases in the order of their charges: all, or those of a dataset."""
        query = f"SELECT {_RELEASE} FROM release WHERE dataset = ?1 OR ?1 IS NULL ORDER BY sequence"
        found = []
        for sequence, id, name, public, plan, own, bound, *rest in self._rows(query, dataset):
            exact = None if bound == _INFINITE else self._exact(bound)
            found.append(ReleaseRecord(sequence, id, name, public, plan, bool(own), exact, *rest))
        return found

    def dataset(self, name: str) -> Dataset:
        """Return a dataset by its name."""
        found = {dataset.name: dataset for dataset in self.datasets()}
        if name in found:
            return found[name]
        raise InputError(
            f"the ledger {self._path} has no dataset {name!r}{did_you_mean(name, found)}; it has "
            f"{listed(map(quoted, found)) or 'none'}"
        )

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except UnicodeEncodeError:
            raise InputError("a name holds half a character (a surrogate)") from None

    def _exact(self, text: str) -> Fraction:
        try:
            value = Fraction(text)
        except (ValueError, ZeroDivisionError):
            value = Fraction(-1)
        if value < 0:
            raise InputError(
                f"the ledger {self._path} is damaged: a bound or budget of {text[:40]!r}"
            )
        return value


class Charge(View):
    """A view that nobody else charges beside, with what may be added; by `Records.begin_charge`."""

    def add_dataset(
        self,
        name: str,
        secret: str,
        budget: Fraction,
        digest: str,
        rows: int,
        other_people: bool,
    ) -> Dataset:
        """Open a dataset; it never changes any more."""
        values = name, secret, show(budget), digest, rows, int(other_people), now(), 0
        self._insert("dataset", _DATASET, *values)
        return self.dataset(name)

    def add_release(
        self, dataset: str, column: str, plan: str, own: bool, bound: Fraction | None, kind: str
    ) -> ReleaseRecord:
        """Charge a release; it counts once the transaction is over."""
        text = _INFINITE if bound is None else show(shortened(bound))
        id = secrets.token_hex(6)
        # The sequence is the next number, never one that was used before.
        values = None, id, dataset, column, plan, int(own), text, kind, now(), CHARGED
        self._insert("release", _RELEASE, *values)
        return self.releases(dataset)[-1]

    def mark_released(self, id: str) -> None:
        """Note that the output of a charged release is in place; to say so twice is no mistake."""
        if not self._rows("SELECT 1 FROM release WHERE id = ?", id):
            raise InputError(f"the ledger {self._path} has no release {id!r}")
        query = "UPDATE release SET state = ? WHERE id = ? AND state = ?"
        self._rows(query, RELEASED, id, CHARGED)

    def _insert(self, table: str, columns: str, *values: Any) -> None:
        places = ", ".join("?" * len(values))
        self._rows(f"INSERT INTO {table} ({columns}) VALUES ({places})", *values)


def parse_budget(value: Number) -> Fraction:
    """Return a budget exactly: a decimal, or a fraction such as "1/3"."""
    budget = parse_number(value, "a budget")
    if budget <= 0:
        raise InputError(f"a budget must be above 0, but {show(budget)} was given")
    if budget.denominator.bit_length() > _LONGEST_BITS:
        raise InputError("a budget must be a shorter fraction (of less than 900 digits)")
    return budget


def shortened(value: Fraction) -> Fraction:
    """Return a number that can be written down: itself, or one less than 2**-1100 above it."""
    if value.denominator.bit_length() <= _LONGEST_BITS:
        return value
    return Fraction(math.ceil(value * _FINEST), _FINEST)


def now() -> str:
    """Return the time as the clock of this machine has it (UTC, ISO 8601)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _place(path: str | Path) -> Path:
    try:
        return Path(os.path.realpath(home_expanded(Path(path))))
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{str(path)!r} cannot be a ledger: {error}") from None
