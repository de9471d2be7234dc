# SPDX-License-Identifier: Apache-2.0
"""Count: how often each combination of public values occurs under each secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, PriorWarning, counted, did_you_mean, listed, warn_user
from pufferfish.numbers import IntArray
from pufferfish.support import MISSING_LEVEL, Product, Support
from pufferfish.tables.arrow import one_array, to_numpy
from pufferfish.tables.canonical import parse
from pufferfish.tables.classify import Found, decide, notes_on_texts, row_of
from pufferfish.tables.encode import MISSING, OK, Encoder
from pufferfish.tables.people import Stratum, count_people
from pufferfish.tables.report import ColumnReport, MissingText, SetAside, TableReport
from pufferfish.tables.rules import Coding, Column, Rules
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table

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
    """Return the counts of a table under some rules; ``warn``: give PriorWarnings too.

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
    secret = Found.of(groups.column(0), counts, rules.decimal)
    axes = [
        _axis(table, Found.of(groups.column(k), counts, rules.decimal), column, rules)
        for k, column in enumerate(rules.columns, start=1)
    ]
    product = Product(tuple(names[1:]), tuple(axis.coding.support for axis in axes))
    secrets, who, aside = _secrets(secret, axes, counts, rules, table)
    if len(secrets) * product.size > MOST_COUNTS:
        raise InputError(
            f"{len(secrets):,} secrets times {product.size:,} public values are too many to count; "
            f"is {rules.secret!r} an identifier? The columns may be swapped"
        )
    used = who >= 0
    cells = np.ravel_multi_index([axis.atoms[used] for axis in axes], product.shape)
    matrix = np.zeros((len(secrets), product.size), dtype=np.int64)
    np.add.at(matrix, (who[used], cells), counts[used])
    totals = matrix.sum(axis=1)
    warnings = [warning for axis in axes for warning in axis.found.warnings]
    _check_totals(secrets, totals, rules, table, aside, warnings)
    codings = tuple(axis.coding for axis in axes)
    strata = count_people(table, rules, codings, secrets, totals) if rules.unit else ()
    levels = np.zeros(len(counts), dtype=bool)
    for axis in axes:
        levels |= axis.blank & axis.column.missing_as_level
    report = TableReport(
        table.name,
        rules,
        int(counts.sum()),
        int(totals.sum()),
        aside,
        tuple(zip(secrets, totals.tolist(), strict=True)),
        _missing(secret, axes, rules),
        tuple(_column_report(axis, counts) for axis in axes),
        int(counts[used & levels].sum())
        if any(c.missing_as_level for c in rules.columns)
        else None,
        tuple((s.rows, int(s.counts.sum())) for s in strata) if rules.unit else None,
        tuple(_notes(secret, axes, rules, secrets, strata)),
        tuple(warnings),
    )
    for warning in warnings if warn else ():
        warn_user(warning, PriorWarning)
    return RowCounts(product, secrets, matrix, codings, strata, report)


def _axis(table: Table, found: Found, column: Column, rules: Rules) -> _Axis:
    """Decide on a column, and place its cells with the encoder that releases use."""
    coding = decide(found, column, table, rules.decimal)
    placed = Encoder(coding, table).place(found.cells)
    lost = [k for k, state in enumerate(placed.state.tolist()) if state not in (OK, MISSING)]
    if lost:
        row = row_of(table, column.name, (found.cells.texts[k] for k in lost))
        raise InputError(
            f"the support that was given lacks {len(lost)} of the distinct values of column "
            f"{column.name!r} of {table.name}, the first of them in data row {row}"
        )
    gone = {"", *column.missing}
    blank = np.array([text in gone for text in found.cells.texts], dtype=bool)
    blank |= placed.state == MISSING
    unseen = np.ones(coding.support.size, dtype=bool)
    unseen[placed.atoms[placed.atoms >= 0]] = False
    found.notes.extend(_note_on_unseen(column, coding.support, np.flatnonzero(unseen)))
    return _Axis(column, found, coding, placed.atoms[found.places], blank[found.places])


def _note_on_unseen(column: Column, support: Support, unseen: IntArray) -> list[str]:
    """Return a note on the declared atoms that no row has, where a slip of the pen shows too."""
    if not len(unseen):
        return []
    names = listed(map(support.name, unseen.tolist()))
    return [
        f"{counted(len(unseen), 'declared value')} of {column.name!r} in no row, of probability 0 "
        f"but part of the support: {names}"
    ]


def _secrets(
    secret: Found, axes: Sequence[_Axis], counts: IntArray, rules: Rules, table: Table
) -> tuple[tuple[str, ...], IntArray, tuple[SetAside, ...]]:
    """Return the secrets, the one of every group of rows (-1: set aside), and what is set aside."""
    texts, gone = secret.cells.texts, {"", *rules.missing}
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
    left = np.ones(len(counts), dtype=bool)
    aside = []

    def set_aside(reason: Any, name: str, these: npt.NDArray[np.bool_]) -> None:
        rows = int(counts[these & left].sum())
        left[these] = False
        if rows:
            aside.append(SetAside(reason, name, rows))

    for axis in axes:
        set_aside("no public value", axis.column.name, axis.atoms < 0)
    missing = np.array([text in gone for text in texts], dtype=bool)
    set_aside("no secret", str(rules.secret), missing[secret.places])
    for name in rules.exclude_secrets:
        these = np.array([text == name for text in texts], dtype=bool)
        set_aside("secret excluded", name, these[secret.places])
    return secrets, np.where(left, who, -1), tuple(aside)


def _natural(text: str) -> tuple[int, float, str]:
    """Sort secrets that are numbers by their value, before all others."""
    value = parse(text)
    return (0, value[0] / value[1], text) if isinstance(value, tuple) else (1, 0.0, text)


def _check_totals(
    secrets: Sequence[str],
    totals: IntArray,
    rules: Rules,
    table: Table,
    aside: Sequence[SetAside],
    warnings: list[str],
) -> None:
    """Refuse secrets of which nothing is known, and add a warning about those of a single row."""
    empty = [name for name, total in zip(secrets, totals.tolist(), strict=True) if total == 0]
    if empty:
        public = listed(column.name for column in rules.columns)
        reasons = ", ".join(f"{a.reason} ({a.name}): {a.rows}" for a in aside)
        if len(empty) == len(secrets):
            raise InputError(
                f"no row of {table.name} has both a secret in {rules.secret!r} and a value in "
                f"{public} (set aside: {reasons})"
            )
        several, options = len(empty) > 1, " ".join(f"--exclude-secret {e!r}" for e in empty[:3])
        raise InputError(
            f"the secret{'s' * several} {listed(empty)} of {table.name} "
            f"{'have' if several else 'has'} no row with a value in {public}, so nothing is known "
            f"about {'them' if several else 'it'}; to go on without, exclude "
            f"{'them' if several else 'it'} ({options})"
        )
    single = [name for name, total in zip(secrets, totals.tolist(), strict=True) if total == 1]
    if single:
        warnings.append(
            f"the secret{'s' * (len(single) > 1)} {listed(single)} "
            f"{'have' if len(single) > 1 else 'has'} a single row: one row is no estimate of a "
            "distribution; if no pair names it, exclude it (--exclude-secret)"
        )


def _missing(secret: Found, axes: Sequence[_Axis], rules: Rules) -> tuple[MissingText, ...]:
    """Return every text that means "missing" somewhere, with the rows in which it does."""
    texts = dict.fromkeys(t for c in rules.columns for t in c.missing) | dict.fromkeys(
        rules.missing
    )
    found = []
    for text in ("", *texts):
        public = sum(
            axis.found.rows_of(text) for axis in axes if text in ("", *axis.column.missing)
        )
        own = secret.rows_of(text) if text in ("", *rules.missing) else 0
        found.append(MissingText(text, public, own))
    return tuple(found)


def _column_report(axis: _Axis, counts: IntArray) -> ColumnReport:
    return ColumnReport(
        axis.column.name,
        axis.coding.support,
        axis.found.order,
        int(counts[axis.blank].sum()),
        axis.found.rounded,
        axis.coding.rounds,
    )


def _notes(
    secret: Found,
    axes: Sequence[_Axis],
    rules: Rules,
    secrets: Sequence[str],
    strata: Sequence[Stratum],
) -> list[str]:
    """Return what there is to know of all columns."""
    notes = [note for axis in axes for note in axis.found.notes]
    notes += notes_on_texts(secret, str(rules.secret), "secret", set(secrets))
    unfound = [
        m.text
        for m in _missing(secret, axes, rules)
        if m.text and not m.public_rows + m.secret_rows
    ]
    if unfound:
        notes.append(
            f"no cell of the columns in use is {listed(unfound)}, which was to mean a "
            "missing value (--missing)"
        )
    for axis in axes:
        names = getattr(axis.coding.support, "names", ())
        if MISSING_LEVEL in names and not axis.column.missing_as_level:
            notes.append(
                f"{MISSING_LEVEL!r} is a level of {axis.column.name!r}, but rows without a value "
                "are set aside; to give them that level use --missing-as-level"
            )
    some = [str(s.rows) for s in strata if not s.counts.sum(axis=1).all()]
    if some and len(secrets) > 1:
        notes.append(
            f"not every secret has people with {listed(some)} rows: how many rows a person has may "
            "tell the secret, and no mechanism covers that"
        )
    return list(dict.fromkeys(notes))
