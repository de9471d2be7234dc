# SPDX-License-Identifier: Apache-2.0
"""Records: what a ledger holds, as frozen values; it is put into rows and read back here."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from pufferfish.errors import InputError
from pufferfish.ledger.account import read_budget

#: The two states of a release. It counts from the first one on, whatever happens after.
CHARGED = "charged"
RELEASED = "released"


@dataclass(frozen=True)
class Account:
    """The account of a secret.

    Attributes
    ----------
    secret : str
        The secret column.
    budget : Fraction
        What the joint loss of all releases of one table may be at most.
    opened : str
        When (UTC, ISO 8601). Times are shown and never used: clocks are turned back.
    version : int
        Grows with every release, table and joint counts of the account: two equal versions mean
        that nothing a price depends on came in between.
    """

    secret: str
    budget: Fraction
    opened: str
    version: int


@dataclass(frozen=True)
class TableRecord:
    """A table that was charged under a secret.

    Attributes
    ----------
    secret : str
    digest : str
        Its identity (:func:`pufferfish.tables.identity.identity_of`).
    rows : int
    first_seen : str
        When (UTC, ISO 8601).
    """

    secret: str
    digest: str
    rows: int
    first_seen: str


@dataclass(frozen=True)
class JointCounts:
    """The joint counts of some columns of a table, as bytes that the ledger made.

    Attributes
    ----------
    secret, digest : str
        The account and the table.
    columns : tuple of str
    counts : bytes
    """

    secret: str
    digest: str
    columns: tuple[str, ...]
    counts: bytes


@dataclass(frozen=True)
class UnitCounts:
    """The counts of the rows of each person in a table, as bytes that the ledger made.

    Attributes
    ----------
    secret, digest : str
        The account and the table.
    unit : str
        The column that tells whose rows they are.
    order : str
        A digest of the table's rows in their order, or of the counts themselves.
    columns : tuple of str
    counts : bytes
    """

    secret: str
    digest: str
    unit: str
    order: str
    columns: tuple[str, ...]
    counts: bytes


@dataclass(frozen=True)
class ReleaseRecord:
    """One release, as it was charged.

    Attributes
    ----------
    sequence : int
        Its place among all releases of the ledger: the one order there is.
    id : str
        Its name, 12 hexadecimal digits.
    secret, digest : str
        The account and the table it is charged to.
    columns : tuple of str
        What was released.
    mechanism : str
    plan : str
        The plan as JSON.
    epsilon : str
        The epsilon of the plan, exactly.
    bound : str
        The bound of the joint loss of all releases up to this one, exactly.
    how : str
        How that bound is known.
    detail : str
        Whatever else the ledger wants to remember of it, as JSON.
    time : str
        When it was charged (UTC, ISO 8601).
    state : str
        "charged", or "released" once its output was in place.
    """

    sequence: int
    id: str
    secret: str
    digest: str
    columns: tuple[str, ...]
    mechanism: str
    plan: str
    epsilon: str
    bound: str
    how: str
    detail: str
    time: str
    state: str


#: The columns of each kind of record, in the order of its attributes.
ACCOUNT = "secret, budget, opened, version"
TABLE = "secret, digest, rows, first_seen"
COUNTS = "secret, digest, columns, counts"
UNIT_COUNTS = "secret, digest, unit, row_order, columns, counts"
RELEASE = (
    "sequence, id, secret, digest, columns, mechanism, plan, epsilon, bound, how, detail, time, "
    "state"
)


def read_account(row: tuple[Any, ...]) -> Account:
    """Return the account of a row."""
    secret, budget, opened, version = row
    return Account(secret, read_budget(budget), opened, version)


def read_release(row: tuple[Any, ...]) -> ReleaseRecord:
    """Return the release of a row."""
    values = list(row)
    values[4] = read_columns(values[4])
    return ReleaseRecord(*values)


def read_counts(row: tuple[Any, ...]) -> JointCounts:
    """Return the joint counts of a row."""
    secret, digest, columns, counts = row
    return JointCounts(secret, digest, read_columns(columns), counts)


def read_unit_counts(row: tuple[Any, ...]) -> UnitCounts:
    """Return the counts of the rows of each person of a row."""
    secret, digest, unit, order, columns, counts = row
    return UnitCounts(secret, digest, unit, order, read_columns(columns), counts)


def columns_text(columns: tuple[str, ...]) -> str:
    """Return names of columns as one text."""
    return json.dumps(list(columns), ensure_ascii=False)


def read_columns(text: str) -> tuple[str, ...]:
    """Return the names that :func:`columns_text` wrote.

    Raises
    ------
    InputError
        If it is no list of names.
    """
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("the names of columns are not written as a list")
    return tuple(names)


def now() -> str:
    """Return the time as the clock of this machine has it (UTC, ISO 8601)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
