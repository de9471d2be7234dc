# SPDX-License-Identifier: Apache-2.0
"""Count: how often each combination of public values occurs under each secret, and its people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError, PriorWarning, counted, did_you_mean, listed, warn_user
from pufferfish.numbers import IntArray
from pufferfish.support import Product
from pufferfish.tables.canonical import parse
from pufferfish.tables.encode import MISSING, Encoder, Found, decide
from pufferfish.tables.rules import (
    Coding,
    Column,
    DecimalMark,
    MissingText,
    Reason,
    Rules,
    SetAside,
    Stratum,
    TableReport,
)
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table, distinct, one_array, texts_of, to_numpy

#: A dense array of more counts than this (2 GiB) is refused.
MOST_COUNTS = 2**28


@dataclass(frozen=True, eq=False)
class RowCounts:
    """The counts of a table.

    Attributes
    ----------
    product : Product
        The product of the supports of the public columns, with n atoms.
    secrets : tuple of str, length m
    counts : int64 array, shape (m, n)
        Rows of each secret with each combination of values, flat in C order.
    codings : tuple of Coding
        One for each public column.
    strata : tuple of Stratum
        The people by their number of rows; empty where every row is one person's.
    report : TableReport
    """

    product: Product
    secrets: tuple[str, ...]
    counts: IntArray
    codings: tuple[Coding, ...]
    strata: tuple[Stratum, ...]
    report: TableReport


def count_table(
    source: Any, rules: Rules, *, delimiter: str | None = None, warn: bool = True
) -> RowCounts:
    """Return the counts of a table under some rules; warnings are given with ``warn`` only.

    The axis of a column is the support of all its values, also of those in rows that are set aside
    for another reason: they are released like the others.
    """
    table = open_table(source, delimiter=delimiter)
    if rules.secret is None:
        raise InputError("counting a table needs the name of the column that holds the secret")
    names = [table.column(rules.secret), *(table.column(own.name) for own in rules.columns)]
    groups = table.groups(names)
    rows = to_numpy(one_array(groups.column(len(names))))
    if not len(rows):
        raise InputError(f"{table.name} has a header but no rows")
    secret, *public = (Found.of(table, n, groups.column(k), rows) for k, n in enumerate(names))
    codings = tuple(map(_place, public, rules.columns, [rules.decimal] * len(public)))
    product = Product(tuple(names[1:]), tuple(coding.support for coding in codings))
    secrets, who, aside = _secrets(secret, public, rows, rules)
    if len(secrets) * product.size > MOST_COUNTS:
        raise InputError(
            f"{len(secrets):,} secrets times {product.size:,} public values are too many to count; "
            f"is {rules.secret!r} an identifier? The columns may be swapped"
        )
    used = who >= 0
    cells = np.ravel_multi_index([found.atoms[used] for found in public], product.shape)
    matrix = np.zeros((len(secrets), product.size), dtype=np.int64)
    np.add.at(matrix, (who[used], cells), rows[used])
    totals = dict(zip(secrets, matrix.sum(axis=1).tolist(), strict=True))
    warnings = [warning for found in public for warning in found.warnings]
    warnings += _check_totals(totals, rules, table.name, aside)
    strata = _people(table, rules, codings, totals) if rules.unit else ()
    levels = [f.blank for f, coding in zip(public, codings, strict=True) if coding.missing_as_level]
    missing = _missing(secret, public, rules)
    secret.note_marks("secret", secrets)
    notes = [note for found in (*public, secret) for note in found.notes]
    report = TableReport(
        table.name,
        rules,
        int(rows.sum()),
        sum(totals.values()),
        aside,
        tuple(totals.items()),
        missing,
        tuple(int(rows[found.blank].sum()) for found in public),
        int(rows[used & np.any(levels, axis=0)].sum()) if levels else None,
        tuple((s.rows, int(s.counts.sum())) for s in strata) if rules.unit else None,
        (*notes, *_further_notes(missing, strata)),
        tuple(warnings),
    )
    for warning in warnings if warn else ():
        warn_user(warning, PriorWarning)
    return RowCounts(product, secrets, matrix, codings, strata, report)


def _place(found: Found, column: Column, decimal: DecimalMark) -> Coding:
    """Decide on a column, and place its cells with the encoder that releases use."""
    coding = decide(found, column, decimal)
    placed = Encoder(coding, found.table).encode(found.cells)
    lost = np.flatnonzero(placed.state > MISSING).tolist()
    if lost:
        raise InputError(
            f"the support that was given lacks {len(lost)} of the distinct values of "
            f"{found.what}, the first of them in {found.first_row(lost)}"
        )
    unseen = np.setdiff1d(np.arange(coding.support.size), placed.atoms)
    if len(unseen):
        found.notes.append(
            f"{counted(len(unseen), 'declared value')} of {found.name!r} in no row, of probability "
            f"0 but part of the support: {listed(map(coding.support.name, unseen.tolist()))}"
        )
    gone = {"", *column.missing}
    blank = np.array([text in gone for text in found.texts], dtype=bool) | (placed.atoms < 0)
    found.atoms, found.blank = placed.atoms[found.places], blank[found.places]
    return coding


def _secrets(
    secret: Found, public: Sequence[Found], rows: IntArray, rules: Rules
) -> tuple[tuple[str, ...], IntArray, tuple[SetAside, ...]]:
    """Return the secrets, the one of every group of rows (-1: set aside), and what is set aside."""
    texts = np.array(secret.texts, dtype=object)
    present = set(texts).difference(("", *rules.missing))
    secrets = tuple(sorted(present.difference(rules.exclude_secrets), key=_natural))
    for name in rules.exclude_secrets:
        if name not in present:
            raise InputError(
                f"the excluded secret {name!r} does not occur in {secret.table.name}"
                f"{did_you_mean(name, present)}; the secrets are {listed(sorted(present))}"
            )
    if not secrets:
        raise InputError(f"no secret of {secret.table.name} is left in column {rules.secret!r}")
    where = {name: k for k, name in enumerate(secrets)}
    who = np.array([where.get(text, -1) for text in texts], dtype=np.int64)[secret.places]
    gone = np.array([text not in present for text in texts], dtype=bool)[secret.places]
    reasons: list[tuple[Reason, str, Any]] = [
        *(("no public value", found.name, found.atoms < 0) for found in public),
        ("no secret", secret.name, gone),
        *(("secret excluded", n, (texts == n)[secret.places]) for n in rules.exclude_secrets),
    ]
    left, aside = np.ones(len(rows), dtype=bool), []
    for reason, name, these in reasons:
        aside.append(SetAside(reason, name, int(rows[these & left].sum())))
        left &= ~these
    return secrets, np.where(left, who, -1), tuple(a for a in aside if a.rows)


def _natural(text: str) -> tuple[int, float, str]:
    """Sort secrets that are numbers by their value, before all others."""
    value = parse(text)
    return (0, value[0] / value[1], text) if isinstance(value, tuple) else (1, 0.0, text)


def _check_totals(
    totals: dict[str, int], rules: Rules, table: str, aside: Sequence[SetAside]
) -> list[str]:
    """Refuse secrets of which nothing is known; return a warning about those of a single row."""
    empty = [name for name, total in totals.items() if total == 0]
    public = listed(column.name for column in rules.columns)
    if len(empty) == len(totals):
        reasons = ", ".join(f"{a.reason} ({a.name}): {a.rows}" for a in aside)
        raise InputError(
            f"no row of {table} has both a secret in {rules.secret!r} and a value in {public} "
            f"(set aside: {reasons})"
        )
    if empty:
        options = " ".join(f"--exclude-secret {name!r}" for name in empty[:3])
        raise InputError(
            f"no row with a value in {public} of {table} has the secret {listed(empty)}, of which "
            f"nothing is known; to go on without, exclude it ({options})"
        )
    single = [name for name, total in totals.items() if total == 1]
    return [
        f"the secret {listed(single)} has a single row: one row is no estimate of a distribution; "
        "if no pair names it, exclude it (--exclude-secret)"
    ] * bool(single)


def _missing(secret: Found, public: Sequence[Found], rules: Rules) -> tuple[MissingText, ...]:
    """Return every text that means "missing" somewhere, with the rows in which it does."""
    own = [*zip(public, (column.missing for column in rules.columns), strict=True)]
    texts = dict.fromkeys(["", *(t for _, every in own for t in every), *rules.missing])
    return tuple(
        MissingText(
            text,
            sum(found.rows_of(text) for found, every in own if text in ("", *every)),
            secret.rows_of(text) if text in ("", *rules.missing) else 0,
        )
        for text in texts
    )


def _further_notes(missing: Sequence[MissingText], strata: Sequence[Stratum]) -> list[str]:
    """Return notes on missing marks that occur nowhere, and on who has how many rows."""
    notes = []
    unfound = [m.text for m in missing if m.text and not m.public_rows + m.secret_rows]
    if unfound:
        notes.append(f"no cell is {listed(unfound)}, said to mean a missing value (--missing)")
    some = [str(s.rows) for s in strata if not s.counts.sum(axis=1).all()]
    if some:
        notes.append(
            f"not every secret has people with {listed(some)} rows: how many rows a person has may "
            "tell the secret, and no mechanism covers that"
        )
    return notes


# ---- people --------------------------------------------------------------------------------------


def _people(
    table: Table, rules: Rules, codings: Sequence[Coding], totals: Mapping[str, int]
) -> tuple[Stratum, ...]:
    """Return the people of a table by their number of usable rows, fewest rows first.

    Decided on the safe side: a row with a public value but without a person may be anybody's, so
    the table is refused; so is one in which a person has two secrets, or a secret in one row and
    none in another, and one whose rows are no longer those of ``totals``. Rows without a public
    value are left out, as in a release.
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
