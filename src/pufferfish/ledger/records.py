# SPDX-License-Identifier: Apache-2.0
"""Records: what stands in a ledger file, read and written on a connection of ``store``.

It knows nothing of privacy: what a release costs, and whether it fits, is decided by whoever holds
the transaction. Budgets and bounds are exact fractions, kept as texts: ten times 1/10 fit in 1,
and nothing beside them.
"""

import math
import secrets
import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Literal

from pufferfish.errors import InputError
from pufferfish.numbers import Number, parse_number, show

#: Longer denominators (sums of many releases have them) are rounded up to this fraction of 1.
_LONGEST_BITS = 3000
_FINEST = 2**1100


def _now() -> str:
    """Return the time as the clock of this machine has it (UTC, ISO 8601)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Dataset:
    """A table under one secret, with the budget of all its releases; none of it ever changes.

    The ``digest`` is the table's identity; ``other_people``: the user said that the people of other
    datasets about this secret are others.
    """

    name: str
    secret: str
    budget: Fraction
    digest: str
    rows: int
    other_people: bool
    opened: str = field(default_factory=_now)


@dataclass(frozen=True)
class ReleaseRecord:
    """One release, as it was charged.

    ``plan``: what was in force, as JSON; ``own``: whether it is for what the counts of this very
    table say; ``bound``: of the joint loss of all releases up to this one; ``state``: "charged",
    or "released" once its output was in place.
    """

    dataset: str
    column: str
    plan: str
    own: bool
    bound: Fraction
    kind: str
    id: str = field(default_factory=lambda: secrets.token_hex(6))
    time: str = field(default_factory=_now)
    state: Literal["charged", "released"] = "charged"


def datasets(connection: sqlite3.Connection) -> list[Dataset]:
    """Return all datasets, in the order of their opening."""
    rows = connection.execute("SELECT * FROM dataset ORDER BY rowid")
    return [
        Dataset(name, secret, _exact(budget), digest, number, bool(others), opened)
        for name, secret, budget, digest, number, others, opened in rows
    ]


def releases(connection: sqlite3.Connection, dataset: str | None = None) -> list[ReleaseRecord]:
    """Return releases in the order of their charges: all, or those of a dataset."""
    rows = connection.execute(
        "SELECT dataset, public, plan, own, bound, kind, id, time, state FROM release "
        "WHERE dataset = ?1 OR ?1 IS NULL ORDER BY sequence",
        [dataset],
    )
    return [
        ReleaseRecord(name, public, plan, bool(own), _exact(bound), *rest)
        for name, public, plan, own, bound, *rest in rows
    ]


def add_dataset(connection: sqlite3.Connection, made: Dataset) -> None:
    """Open a dataset; it never changes any more."""
    row = vars(made) | {"budget": show(made.budget)}
    connection.execute("INSERT INTO dataset VALUES (?, ?, ?, ?, ?, ?, ?)", [*row.values()])


def add_release(connection: sqlite3.Connection, made: ReleaseRecord) -> None:
    """Charge a release; it counts once the transaction is over."""
    # The sequence (null) is the next number, never one that was used before.
    connection.execute(
        "INSERT INTO release VALUES (NULL, :id, :dataset, :column, :plan, :own, :bound, :kind, "
        ":time, :state)",
        vars(made) | {"bound": show(shortened(made.bound))},
    )


def mark_released(connection: sqlite3.Connection, id: str) -> None:
    """Note that the output of a charged release is in place."""
    connection.execute("UPDATE release SET state = 'released' WHERE id = ?", [id])


def parse_name(name: object) -> str:
    """Return the name of a dataset, trimmed."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a dataset needs a name that can be printed, but {name!r} was given")
    return name.strip()


def parse_budget(value: Number) -> Fraction:
    """Return a budget exactly: a decimal, or a fraction such as "1/3"."""
    budget = parse_number(value, "a budget")
    if budget <= 0:
        raise InputError(f"a budget must be above 0, but {show(budget)} was given")
    return budget


def shortened(value: Fraction) -> Fraction:
    """Return a number that can be written down: itself, or one less than 2**-1100 above it."""
    if value.denominator.bit_length() <= _LONGEST_BITS:
        return value
    return Fraction(math.ceil(value * _FINEST), _FINEST)


def _exact(text: str) -> Fraction:
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if value < 0:
        raise InputError(f"the ledger is damaged: a bound or budget of {text[:40]!r}")
    return value
