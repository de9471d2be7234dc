# SPDX-License-Identifier: Apache-2.0
"""Count: how often each combination of public values occurs under each secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferfish.errors import InputError, PriorWarning, counted, did_you_mean, listed, warn_user
from pufferfish.numbers import IntArray
from pufferfish.support import Product
from pufferfish.tables.canonical import parse
from pufferfish.tables.encode import MISSING, Encoder, Found, decide
from pufferfish.tables.people import MOST_COUNTS, count_people
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
from pufferfish.tables.table import one_array, to_numpy


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
    strata = count_people(table, rules, codings, totals) if rules.unit else ()
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
