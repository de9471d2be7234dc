# SPDX-License-Identifier: Apache-2.0
"""People: the rows of one person, counted as sequences of atoms.

Decided on the safe side: a row with a public value but without a person may be anybody's, so the
table is refused; so is one in which a person has two secrets, or a secret in one row and none in
another. Rows without a public value are left out, here as in a release.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError, counted, listed
from pufferfish.numbers import IntArray
from pufferfish.tables.canonical import parse
from pufferfish.tables.encode import Encoder
from pufferfish.tables.rules import Coding, Rules, Stratum
from pufferfish.tables.table import Table, distinct, texts_of

#: A dense array of more counts than this (2 GiB) is refused.
MOST_COUNTS = 2**28


def count_people(
    table: Table,
    rules: Rules,
    codings: Sequence[Coding],
    totals: Mapping[str, int],
) -> tuple[Stratum, ...]:
    """Return the people of a table by their number of usable rows, fewest rows first.

    ``totals`` are the rows of each secret, counted before; a table that changed is refused.
    """
    units: dict[Any, int] = {}
    names: dict[Any, int] = {}
    gone = {"", *rules.missing}
    encoders = [Encoder(coding, table) for coding in codings]
    columns = [str(rules.unit), str(rules.secret), *(coding.column for coding in codings)]
    whose, who, atoms = [], [], []
    for batch in table.batches([table.column(name) for name in columns]):
        whose.append(_numbered(batch.column(0), units, {"nan", *gone}, by_value=True))
        who.append(_numbered(batch.column(1), names, gone))
        atoms.append([e.encode(batch.column(2 + k)).atoms for k, e in enumerate(encoders)])
    person, own = np.concatenate(whose), np.concatenate(who)
    places = [np.concatenate(part) for part in zip(*atoms, strict=True)]
    usable = np.logical_and.reduce([place >= 0 for place in places])
    nameless = np.flatnonzero(usable & (person < 0))
    if len(nameless):
        raise InputError(
            f"column {rules.unit!r} is missing in {counted(len(nameless), 'row')} of {table.name} "
            f"(first: row {nameless[0] + 1})"
        )
    _check_secrets(person, own, usable, rules, table)
    places_of = {name: k for k, name in enumerate(totals)}
    at = np.array([*(places_of.get(name, -1) for name in names), -1], dtype=np.int64)[own]
    used = usable & (at >= 0)
    if np.bincount(at[used], minlength=len(totals)).tolist() != list(totals.values()):
        raise InputError(f"{table.name} changed while it was read")
    shape = [coding.support.size for coding in codings]
    cells = np.ravel_multi_index([place[used] for place in places], shape)
    return _strata(person[used], at[used], cells, len(totals), table)


def _numbered(
    column: pa.Array, known: dict[Any, int], gone: set[str], by_value: bool = False
) -> IntArray:
    """Return a number for every raw cell: equal cells have equal ones, missing ones -1.

    With ``by_value`` texts of one number are equal: to take two people for one is the safe side.
    """
    values, places = distinct(column)
    own = []
    for text in texts_of(values):
        number = parse(text) if by_value else None
        key = number if isinstance(number, tuple) else text
        own.append(-1 if text in gone else known.setdefault(key, len(known)))
    found: IntArray = np.array(own, dtype=np.int64)[places]
    return found


def _check_secrets(
    person: IntArray, secret: IntArray, usable: npt.NDArray[np.bool_], rules: Rules, table: Table
) -> None:
    """Refuse a person who has two secrets, or a secret in one row and none in another."""
    named = (person >= 0) & (secret >= 0)
    size = int(person.max(initial=-1)) + 1
    first = np.full(size, -1, dtype=np.int64)
    first[person[named]] = secret[named]
    differ = named & (secret != first[person])
    differ |= usable & (person >= 0) & (secret < 0) & (first[person] >= 0)
    if differ.any():
        these = np.unique(person[differ])
        rows = np.flatnonzero(person == person[differ.argmax()]) + 1
        raise InputError(
            f"{len(these)} of the people of {table.name} (by column {rules.unit!r}) have several "
            f"secrets in {rules.secret!r}, or none in some rows; the first in data rows "
            f"{listed(map(str, rows.tolist()))}: a person has one secret"
        )


def _strata(
    person: IntArray, secret: IntArray, atoms: IntArray, secrets: int, table: Table
) -> tuple[Stratum, ...]:
    """Return the people by their number of rows, which stay in the order of the table."""
    order = np.argsort(person, kind="stable")
    person, secret, atoms = person[order], secret[order], atoms[order]
    starts = np.flatnonzero(np.diff(person, prepend=-1))
    sizes = np.diff(starts, append=len(person))
    strata = []
    for rows in np.unique(sizes).tolist():
        first = starts[sizes == rows]
        every = atoms[first[:, None] + np.arange(rows)]
        sequences, place = np.unique(every, axis=0, return_inverse=True)
        if secrets * len(sequences) > MOST_COUNTS:
            raise InputError(
                f"{secrets:,} secrets times {len(sequences):,} sequences of {counted(rows, 'row')} "
                f"of a person in {table.name} are too many to count; give a coarser step"
            )
        counts = np.zeros((secrets, len(sequences)), dtype=np.int64)
        np.add.at(counts, (secret[first], place.reshape(-1)), 1)
        strata.append(Stratum(rows, sequences, counts))
    return tuple(strata)
