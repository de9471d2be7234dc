# SPDX-License-Identifier: Apache-2.0
"""Count: how often each combination of public values occurs under each secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, PriorWarning, counted, did_you_mean, listed, warn_user
from pufferfish.numbers import IntArray
from pufferfish.support import MISSING_LEVEL, Product
from pufferfish.tables.arrow import one_array, to_numpy
from pufferfish.tables.canonical import parse
from pufferfish.tables.classify import Found, decide
from pufferfish.tables.encode import MISSING, OK, Encoder
from pufferfish.tables.people import MOST_COUNTS, count_people
from pufferfish.tables.report import (
    ColumnReport,
    MissingText,
    Reason,
    SetAside,
    Stratum,
    TableReport,
)
from pufferfish.tables.rules import Coding, Column, Rules
from pufferfish.tables.source import open_table


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


@dataclass(frozen=True, eq=False)
class _Axis:
    """One public column: its cells, their coding, and the atom of every group of rows (or -1)."""

    column: Column
    found: Found
    coding: Coding
    atoms: IntArray
    blank: npt.NDArray[np.bool_]


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
    counts = to_numpy(one_array(groups.column(len(names))))
    if not len(counts):
        raise InputError(f"{table.name} has a header but no rows")
    secret, *public = (
        Found.of(table, name, groups.column(k), counts, rules.decimal)
        for k, name in enumerate(names)
    )
    axes = [_axis(found, own, rules) for found, own in zip(public, rules.columns, strict=True)]
    product = Product(tuple(names[1:]), tuple(axis.coding.support for axis in axes))
    secrets, who, aside = _secrets(secret, axes, counts, rules)
    if len(secrets) * product.size > MOST_COUNTS:
        raise InputError(
            f"{len(secrets):,} secrets times {product.size:,} public values are too many to count; "
            f"is {rules.secret!r} an identifier? The columns may be swapped"
        )
    used = who >= 0
    cells = np.ravel_multi_index([axis.atoms[used] for axis in axes], product.shape)
    matrix = np.zeros((len(secrets), product.size), dtype=np.int64)
    np.add.at(matrix, (who[used], cells), counts[used])
    totals = dict(zip(secrets, matrix.sum(axis=1).tolist(), strict=True))
    warnings = [warning for axis in axes for warning in axis.found.warnings]
    warnings += _check_totals(totals, rules, table.name, aside)
    codings = tuple(axis.coding for axis in axes)
    strata = count_people(table, rules, codings, totals) if rules.unit else ()
    report = TableReport(
        table.name,
        rules,
        int(counts.sum()),
        sum(totals.values()),
        aside,
        tuple(totals.items()),
        _missing(secret, axes, rules),
        tuple(_column_report(axis, counts) for axis in axes),
        _missing_rows(axes, used, counts),
        tuple((s.rows, int(s.counts.sum())) for s in strata) if rules.unit else None,
        tuple(_notes(secret, axes, rules, secrets, strata)),
        tuple(warnings),
    )
    for warning in warnings if warn else ():
        warn_user(warning, PriorWarning)
    return RowCounts(product, secrets, matrix, codings, strata, report)


def _axis(found: Found, column: Column, rules: Rules) -> _Axis:
    """Decide on a column, and place its cells with the encoder that releases use."""
    coding = decide(found, column, rules.decimal)
    placed = Encoder(coding, found.table).place(found.cells)
    lost = np.flatnonzero((placed.state != OK) & (placed.state != MISSING)).tolist()
    if lost:
        raise InputError(
            f"the support that was given lacks {len(lost)} of the distinct values of column "
            f"{found.name!r} of {found.table.name}, the first of them in {found.first_row(lost)}"
        )
    blank = np.isin(placed.state, MISSING)
    if coding.missing_as_level:
        blank = np.array([text in {"", *column.missing} for text in found.cells.texts], dtype=bool)
    unseen = np.setdiff1d(np.arange(coding.support.size), placed.atoms)
    if len(unseen):
        found.notes.append(
            f"{counted(len(unseen), 'declared value')} of {found.name!r} in no row, of probability "
            f"0 but part of the support: {listed(map(coding.support.name, unseen.tolist()))}"
        )
    if MISSING_LEVEL in getattr(coding.support, "names", ()) and not coding.missing_as_level:
        found.notes.append(
            f"{MISSING_LEVEL!r} is a level of {found.name!r}, but rows without a value are set "
            "aside; to give them that level use --missing-as-level"
        )
    return _Axis(column, found, coding, placed.atoms[found.places], blank[found.places])


def _secrets(
    secret: Found, axes: Sequence[_Axis], counts: IntArray, rules: Rules
) -> tuple[tuple[str, ...], IntArray, tuple[SetAside, ...]]:
    """Return the secrets, the one of every group of rows (-1: set aside), and what is set aside."""
    texts, gone, table = (
        np.array(secret.cells.texts, dtype=object),
        {"", *rules.missing},
        secret.table,
    )
    present = set(texts) - gone
    for name in rules.exclude_secrets:
        if name not in present:
            raise InputError(
                f"the excluded secret {name!r} does not occur in {table.name}"
                f"{did_you_mean(name, present)}; the secrets are {listed(sorted(present))}"
            )
    secrets = tuple(sorted(present.difference(rules.exclude_secrets), key=_natural))
    if not secrets:
        raise InputError(f"no secret of {table.name} is left in column {rules.secret!r}")
    where = {name: k for k, name in enumerate(secrets)}
    who = np.array([where.get(text, -1) for text in texts], dtype=np.int64)[secret.places]
    missing = np.array([text in gone for text in texts], dtype=bool)
    reasons: list[tuple[Reason, str, Any]] = [
        *(("no public value", axis.found.name, axis.atoms < 0) for axis in axes),
        ("no secret", secret.name, missing[secret.places]),
        *(("secret excluded", n, (texts == n)[secret.places]) for n in rules.exclude_secrets),
    ]
    left, aside = np.ones(len(counts), dtype=bool), []
    for reason, name, these in reasons:
        aside.append(SetAside(reason, name, int(counts[these & left].sum())))
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
    if empty:
        public = listed(column.name for column in rules.columns)
        reasons = ", ".join(f"{a.reason} ({a.name}): {a.rows}" for a in aside)
        if len(empty) == len(totals):
            raise InputError(
                f"no row of {table} has both a secret in {rules.secret!r} and a value in {public} "
                f"(set aside: {reasons})"
            )
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


def _missing(secret: Found, axes: Sequence[_Axis], rules: Rules) -> tuple[MissingText, ...]:
    """Return every text that means "missing" somewhere, with the rows in which it does."""
    every = [*(column.missing for column in rules.columns), rules.missing]
    texts = dict.fromkeys(["", *(text for own in every for text in own)])
    return tuple(
        MissingText(
            text,
            sum(a.found.rows_of(text) for a in axes if text in ("", *a.column.missing)),
            secret.rows_of(text) if text in ("", *rules.missing) else 0,
        )
        for text in texts
    )


def _missing_rows(axes: Sequence[_Axis], used: Any, counts: IntArray) -> int | None:
    levels = [axis.blank for axis in axes if axis.coding.missing_as_level]
    return int(counts[used & np.logical_or.reduce(levels)].sum()) if levels else None


def _column_report(axis: _Axis, counts: IntArray) -> ColumnReport:
    found, coding = axis.found, axis.coding
    rows = int(counts[axis.blank].sum())
    return ColumnReport(found.name, coding.support, found.order, rows, found.rounded, coding.rounds)


def _notes(
    secret: Found,
    axes: Sequence[_Axis],
    rules: Rules,
    secrets: Sequence[str],
    strata: Sequence[Stratum],
) -> list[str]:
    """Return what there is to know of all columns."""
    secret.note_texts("secret", set(secrets))
    notes = [note for found in (*(axis.found for axis in axes), secret) for note in found.notes]
    missing = _missing(secret, axes, rules)
    unfound = [m.text for m in missing if m.text and not m.public_rows + m.secret_rows]
    if unfound:
        notes.append(
            f"no cell of the columns in use is {listed(unfound)}, which was to mean a missing "
            "value (--missing)"
        )
    some = [str(s.rows) for s in strata if not s.counts.sum(axis=1).all()]
    if some and len(secrets) > 1:
        notes.append(
            f"not every secret has people with {listed(some)} rows: how many rows a person has may "
            "tell the secret, and no mechanism covers that"
        )
    return notes
