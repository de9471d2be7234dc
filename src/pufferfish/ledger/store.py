# SPDX-License-Identifier: Apache-2.0
"""Store: the records of a ledger file, read as of one moment and written in one transaction.

It knows nothing of privacy: what a release costs, and whether it fits, is decided by whoever holds
the transaction that :meth:`Store.begin_charge` gives.
"""

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from pufferfish.atomic import PRIVATE, home_expanded
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.ledger import database, records
from pufferfish.ledger.account import budget_text
from pufferfish.ledger.database import PATIENCE, Waiting
from pufferfish.ledger.records import (
    CHARGED,
    RELEASED,
    Account,
    JointCounts,
    ReleaseRecord,
    TableRecord,
    UnitCounts,
    columns_text,
    now,
)


@dataclass(frozen=True)
class Store:
    """A ledger file, from :func:`create` or :func:`open_store`; every call opens it anew.

    Attributes
    ----------
    path : Path
        The file, links followed.
    patience : float
        Seconds to wait while other processes hold it.
    waiting : callable, optional
        Told now and then how many seconds that took so far.
    """

    path: Path
    patience: float = PATIENCE
    waiting: Waiting | None = None

    @contextmanager
    def reading(self) -> Iterator["View"]:
        """Give all records as of one moment; nobody can charge meanwhile, so keep it short.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        with database.reading(self.path, self.patience, self.waiting) as connection:
            yield View(connection, self.path)

    @contextmanager
    def begin_charge(self) -> Iterator["Charge"]:
        """Give all records, and the right to add to them, which nobody else has meanwhile.

        When the block ends without an exception, all that was added is on the disk. After an
        exception nothing is added. Keep it short too: compute beforehand, and compare the
        account's ``version`` here.

        Raises
        ------
        InputError
            If the file cannot be written, or others do not let go of it; then nothing is added.
        """
        with database.writing(self.path, self.patience, self.waiting) as connection:
            yield Charge(connection, self.path)

    def open_account(self, secret: str, budget: Fraction) -> Account:
        """Open the account of a secret.

        Raises
        ------
        InputError
            If it has one already: a budget is never changed.
        """
        with self.begin_charge() as charge:
            return charge.open_account(secret, budget)

    def mark_released(self, id: str) -> None:
        """Note that the output of a charged release is in place; to say so twice is no mistake.

        Raises
        ------
        InputError
            If the ledger has no such release.
        """
        with self.begin_charge() as charge:
            charge.mark_released(id)

    @property
    def exposed(self) -> bool:
        """Whether the file's mode lets others than its owner read or write it."""
        return os.name == "posix" and bool(stat.S_IMODE(self.path.stat().st_mode) & ~PRIVATE)


def create(path: str | Path, patience: float = PATIENCE, waiting: Waiting | None = None) -> Store:
    """Make an empty ledger that only its owner can read (mode 0600).

    Raises
    ------
    InputError
        If there is a file of that name, or it cannot be written.
    """
    place = _place(path)
    database.create(place)
    return Store(place, patience, waiting)


def open_store(
    path: str | Path, patience: float = PATIENCE, waiting: Waiting | None = None
) -> Store:
    """Open a ledger, after a look at the whole file; it is not changed by that.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read, is no ledger, one of a newer version, or
        damaged.
    """
    place = _place(path)
    database.check(place, patience, waiting)
    return Store(place, patience, waiting)


class View:
    """The records of a ledger as of one moment; made by :meth:`Store.reading`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def notice(self) -> str:
        """Return what the ledger says of itself."""
        return str(self._rows("SELECT text FROM notice")[0][0])

    def accounts(self) -> list[Account]:
        """Return all accounts, by secret."""
        query = f"SELECT {records.ACCOUNT} FROM account ORDER BY secret"
        return [self._checked(records.read_account, row) for row in self._rows(query)]

    def account(self, secret: str) -> Account:
        """Return the account of a secret.

        Raises
        ------
        InputError
            If there is none, with the nearest one and the list of all.
        """
        accounts = {account.secret: account for account in self.accounts()}
        if secret in accounts:
            return accounts[secret]
        there = f"; there are accounts for {listed(map(repr, accounts))}" if accounts else ""
        raise InputError(
            f"no account for the secret {secret!r} is open in {self._path}"
            f"{did_you_mean(secret, accounts)}{there}; open one with: "
            f"pufferfish ledger open {self._path} --secret {secret!r} --budget B"
        )

    def tables(self, secret: str) -> list[TableRecord]:
        """Return the tables that were charged under a secret, the first one first."""
        query = f"SELECT {records.TABLE} FROM source WHERE secret = ? ORDER BY rowid"
        return [TableRecord(*row) for row in self._rows(query, secret)]

    def releases(
        self, secret: str | None = None, digest: str | None = None, state: str | None = None
    ) -> list[ReleaseRecord]:
        """Return releases in the order of their charges, all or those of one kind.

        Parameters
        ----------
        secret, digest, state : str, optional
            Only those of this account, table, or state.
        """
        wanted = {"secret": secret, "digest": digest, "state": state}
        given = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in given) or "TRUE"
        query = f"SELECT {records.RELEASE} FROM release WHERE {where} ORDER BY sequence"
        return [
            self._checked(records.read_release, row) for row in self._rows(query, *given.values())
        ]

    def joint_counts(self, secret: str, digest: str) -> list[JointCounts]:
        """Return all joint counts of a table under a secret."""
        query = (
            f"SELECT {records.COUNTS} FROM joint_counts WHERE secret = ? AND digest = ? "
            "ORDER BY columns"
        )
        return [
            self._checked(records.read_counts, row) for row in self._rows(query, secret, digest)
        ]

    def unit_counts(self, secret: str, digest: str) -> list[UnitCounts]:
        """Return all counts of the rows of each person of a table under a secret, as they came."""
        query = (
            f"SELECT {records.UNIT_COUNTS} FROM unit_counts WHERE secret = ? AND digest = ? "
            "ORDER BY rowid"
        )
        return [
            self._checked(records.read_unit_counts, row)
            for row in self._rows(query, secret, digest)
        ]

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return _executed(self._connection, query, values).fetchall()

    def _checked(self, read: Any, row: tuple[Any, ...]) -> Any:
        try:
            return read(row)
        except InputError as error:
            raise InputError(f"the ledger {self._path} is damaged: {error}") from None


class Charge(View):
    """A view that nobody else charges beside, with what may be added; by `Store.begin_charge`."""

    def open_account(self, secret: str, budget: Fraction) -> Account:
        """Open the account of a secret.

        Raises
        ------
        InputError
            If it has one already.
        """
        for account in self.accounts():
            if account.secret == secret:
                raise InputError(
                    f"{self._path} has an account for {secret!r} already, with the budget "
                    f"{budget_text(account.budget)}; a budget is never changed"
                )
        self._insert("account", records.ACCOUNT, secret, budget_text(budget), now(), 0)
        return self.account(secret)

    def add_table(self, secret: str, digest: str, rows: int) -> TableRecord:
        """Return the record of a table under a secret, after adding it where it is new.

        Raises
        ------
        InputError
            If the secret has no account.
        """
        self.account(secret)
        for table in self.tables(secret):
            if table.digest == digest:
                return table
        self._insert("source", records.TABLE, secret, digest, rows, now())
        return self.tables(secret)[-1]

    def add_joint_counts(
        self, secret: str, digest: str, columns: Sequence[str], counts: bytes
    ) -> None:
        """Keep the joint counts of columns of a table; the same ones again change nothing.

        Raises
        ------
        InputError
            If the table is not known, or other counts of these columns are.
        """
        names = tuple(columns)
        for known in self.joint_counts(secret, digest):
            if known.columns == names:
                if known.counts == counts:
                    return
                raise InputError(
                    f"the ledger {self._path} holds other counts of {listed(map(repr, names))} for "
                    "the same table; they never change"
                )
        self._insert("joint_counts", records.COUNTS, secret, digest, columns_text(names), counts)

    def add_unit_counts(self, counts: UnitCounts) -> None:
        """Keep the counts of the rows of each person; the same ones again change nothing.

        Raises
        ------
        InputError
            If the table is not known, or other counts of these columns in this order are.
        """
        columns = columns_text(counts.columns)
        query = (
            "SELECT counts FROM unit_counts WHERE secret = ? AND digest = ? AND unit = ? AND "
            "row_order = ? AND columns = ?"
        )
        key = counts.secret, counts.digest, counts.unit, counts.order, columns
        for (known,) in self._rows(query, *key):
            if known == counts.counts:
                return
            raise InputError(
                f"the ledger {self._path} holds other counts by {counts.unit!r} for the same "
                "table; they never change"
            )
        self._insert(
            "unit_counts",
            records.UNIT_COUNTS,
            *key,
            counts.counts,
        )

    def add_release(
        self,
        secret: str,
        digest: str,
        columns: Sequence[str],
        *,
        mechanism: str,
        plan: str,
        epsilon: str,
        bound: str,
        how: str,
        detail: str = "{}",
    ) -> ReleaseRecord:
        """Charge a release; it counts once the transaction is over.

        Parameters
        ----------
        secret, digest, columns, mechanism, plan, epsilon, bound, how, detail
            As :class:`~pufferfish.ledger.records.ReleaseRecord` has them.

        Raises
        ------
        InputError
            If the table is not known under that secret.
        """
        if all(table.digest != digest for table in self.tables(secret)):
            raise InputError(f"the ledger {self._path} does not know that table under {secret!r}")
        id = secrets.token_hex(6)
        self._insert(
            "release",
            records.RELEASE,
            None,  # the next number, never one that was used before
            id,
            secret,
            digest,
            columns_text(tuple(columns)),
            mechanism,
            plan,
            epsilon,
            bound,
            how,
            detail,
            now(),
            CHARGED,
        )
        query = f"SELECT {records.RELEASE} FROM release WHERE id = ?"
        return records.read_release(self._rows(query, id)[0])

    def mark_released(self, id: str) -> None:
        """Note that the output of a charged release is in place.

        Raises
        ------
        InputError
            If the ledger has no such release.
        """
        if not self._rows("SELECT 1 FROM release WHERE id = ?", id):
            raise InputError(f"the ledger {self._path} has no release {id!r}")
        query = "UPDATE release SET state = ? WHERE id = ? AND state = ?"
        _executed(self._connection, query, (RELEASED, id, CHARGED))

    def _insert(self, table: str, columns: str, *values: Any) -> None:
        places = ", ".join("?" * len(values))
        query = f"INSERT INTO {table} ({columns}) VALUES ({places})"
        _executed(self._connection, query, values)


def _executed(
    connection: sqlite3.Connection, query: str, values: tuple[Any, ...]
) -> sqlite3.Cursor:
    try:
        return connection.execute(query, values)
    except UnicodeEncodeError:
        raise InputError("a name holds half a character (a surrogate), so it is no UTF-8") from None


def _place(path: str | Path) -> Path:
    try:
        return Path(os.path.realpath(home_expanded(Path(path))))
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{str(path)!r} cannot be a ledger: {error}") from None
