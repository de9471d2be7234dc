# SPDX-License-Identifier: Apache-2.0
"""Count: how often each combination of public values occurs under each secret, and its people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferfish.errors import InputError, counted, did_you_mean, listed
from pufferfish.numbers import IntArray, parse_cell
from pufferfish.support import MISSING_LEVEL, Product
from pufferfish.tables.encode import MISSING, Encoder, Found, decide
from pufferfish.tables.rules import (
    Coding,
    Column,
    MissingText,
    Reason,
    Rules,
    SetAside,
    Stratum,
    TableReport,
)
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table, distinct, no_person, numbered, one_array

#: More secrets than this are an identifier.
MOST_SECRETS = 100_000
#: A dense array of more counts than this (2 GiB) is refused.
MOST_COUNTS = 2**28


@dataclass(frozen=True, eq=False)
class RowCounts:
    """The counts of a table."""

    product: Product  # of the supports of the public columns, with n atoms
    secrets: tuple[str, ...]  # length m
    counts: IntArray  # shape (m, n): rows of each secret with each combination of values
    codings: tuple[Coding, ...]  # one for each public column
    strata: tuple[Stratum, ...]  # people by their number of rows; none where each row is a person
    report: TableReport


def count_table(source: Any, rules: Rules, *, secrets: Sequence[str] = ()) -> RowCounts:
    """Return the counts of a table under some rules; warnings stand in their report alone.

    Declared ``secrets`` are counted and no others, none of which needs a row: whether they have
    any shows in the counts alone. One called "" has the rows of any other secret, or of none.

    The axis of a column is the support of all its values, also of those in rows that are set aside
    for another reason: they are released like the others.
    """
    table = open_table(source)
    if rules.secret is None:
        raise InputError("counting a table needs the name of the column that holds the secret")
    names = [table.column(rules.secret), *(table.column(own.name) for own in rules.columns)]
    groups = table.groups(names)
    rows: IntArray = np.asarray(np.from_dlpack(one_array(groups.column(len(names)))), np.int64)
    if not len(rows):
        raise InputError(f"{table.name} has a header but no rows")
    different = len(distinct(groups.column(0))[0])
    if different > MOST_SECRETS:
        raise InputError(
            f"column {names[0]!r} of {table.name} holds {different:,} different secrets, more than "
            f"{MOST_SECRETS:,}; is it an identifier? The columns may be swapped"
        )
    secret, *public = (Found(table, n, groups.column(k), rows) for k, n in enumerate(names))
    codings = tuple(_place(f, c, rules.decimal) for f, c in zip(public, rules.columns, strict=True))
    product = Product(tuple(names[1:]), tuple(coding.support for coding in codings))
    declared, (secrets, who, aside) = secrets, _secrets(secret, public, rows, rules, secrets)
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
    warnings += [] if declared else _check_totals(totals, rules, table.name)
    strata = _people(table, rules, codings, totals) if rules.unit else ()
    secret.note_marks("secret", secrets)
    some = [str(s.rows) for s in strata if not s.counts.sum(axis=1).all()]
    if some:
        secret.notes.append(
            f"not every secret has people with {listed(some)} rows: how many rows a person has may "
            "tell the secret, and no mechanism covers that"
        )
    report = TableReport(
        source=table.name, rules=rules, rows_read=int(rows.sum()), rows_used=sum(totals.values()),
        set_aside=aside, secrets=tuple(totals.items()), missing=_missing(secret, public, rules),
        rows_missing=tuple(int(rows[found.atoms < 0].sum()) for found in public),
        people=tuple((s.rows, int(s.counts.sum())) for s in strata) if rules.unit else None,
        notes=tuple(note for found in (*public, secret) for note in found.notes),
        warnings=tuple(warnings),
    )  # fmt: skip
    return RowCounts(product, secrets, matrix, codings, strata, report)


def _place(found: Found, column: Column, decimal: str) -> Coding:
    """Decide on a column, and place its cells with the encoder that releases use."""
    coding = decide(found, column, decimal)
    atoms, state = Encoder(coding, found.table).encode(found.cells)
    lost = np.flatnonzero(state > MISSING).tolist()
    if lost:
        # A slip of the pen is in what was given: its near match is a level of the column.
        some = [found.texts[k] for k in lost[:100]]
        unused = sorted(set(getattr(coding.support, "names", ())).difference(found.texts))[:100]
        near = ((name, did_you_mean(name, some)) for name in unused if name != MISSING_LEVEL)
        slip = next((f"; {name!r} is none{match}" for name, match in near if match), "")
        raise InputError(
            f"{len(lost)} of the distinct values of {found.what} (first in {found.first_row(lost)})"
            f" are not among those that were declared{slip}; declare every value, or say which "
            "texts mean a missing value (--missing)"
        )
    found.atoms = atoms[found.places]
    unseen = np.setdiff1d(np.arange(coding.support.size), atoms, assume_unique=True).tolist()
    if unseen:
        found.notes.append(
            f"{counted(len(unseen), 'declared value')} of {found.name!r} in no row, of probability "
            f"0 but part of the support: {listed(unseen, name=coding.support.name)}"
        )
    return coding


def _secrets(
    secret: Found, public: Sequence[Found], rows: IntArray, rules: Rules, declared: Sequence[str]
) -> tuple[tuple[str, ...], IntArray, tuple[SetAside, ...]]:
    """Return the secrets, the one of every group of rows (-1: set aside), and what is set aside."""
    present = set(secret.texts).difference(("", *rules.missing))
    for name in rules.exclude_secrets:
        if name not in present:
            raise InputError(
                f"the excluded secret {name!r} does not occur in {secret.table.name}"
                f"{did_you_mean(name, present)}; the secrets are {listed(sorted(present))}"
            )
    secrets = tuple(declared) or tuple(sorted(present - {*rules.exclude_secrets}, key=_natural))
    if not secrets:
        raise InputError(f"no secret of {secret.table.name} is left in column {rules.secret!r}")
    where = {name: k for k, name in enumerate(secrets)}
    rest = where.get("", -1)
    who = np.array([where.get(text, rest) for text in secret.texts], dtype=np.int64)[secret.places]
    texts = np.array(secret.texts, dtype=object)[secret.places]
    reasons: list[tuple[Reason, str, Any]] = [
        *(("no public value", found.name, found.atoms < 0) for found in public),
        *(("secret excluded", name, texts == name) for name in rules.exclude_secrets),
        ("no secret", secret.name, who < 0),
    ]
    left, aside = np.ones(len(rows), dtype=bool), []
    for reason, name, these in reasons:
        aside.append(SetAside(reason, name, int(rows[these & left].sum())))
        left &= ~these
    return secrets, np.where(left, who, -1), tuple(a for a in aside if a.rows)


def _natural(text: str) -> tuple[int, float, str]:
    """Sort secrets that are numbers by their value, before all others."""
    value = parse_cell(text)
    return (0, value[0] / value[1], text) if isinstance(value, tuple) else (1, 0.0, text)


def _check_totals(totals: dict[str, int], rules: Rules, table: str) -> list[str]:
    """Refuse secrets of which nothing is known; return a warning about those of a single row."""
    empty = [name for name, total in totals.items() if total == 0]
    if empty:
        public = listed(column.name for column in rules.columns)
        options = " ".join(f"--exclude-secret {name!r}" for name in empty[:3])
        raise InputError(
            f"no row of {table} has both a value in {public} and the secret {listed(empty)}, of "
            f"which nothing is known; to go on without, exclude it ({options})"
        )
    single = [name for name, total in totals.items() if total == 1]
    have = "secrets {} have a single row each" if len(single) > 1 else "secret {} has a single row"
    return [
        f"the {have.format(listed(single))}: one row is no estimate of a distribution; if no pair "
        "names it, exclude it (--exclude-secret)"
    ] * bool(single)


def _missing(secret: Found, public: Sequence[Found], rules: Rules) -> tuple[MissingText, ...]:
    """Return every text that means "missing" somewhere, with the cells that it is."""
    missing = [*(column.missing for column in rules.columns), rules.missing]
    own = [(found, ("", *texts)) for found, texts in zip((*public, secret), missing, strict=True)]
    return tuple(
        MissingText(text, sum(found.rows_of(text) for found, texts in own if text in texts))
        for text in dict.fromkeys(text for _, texts in own for text in texts)
    )


def _people(
    table: Table, rules: Rules, codings: Sequence[Coding], totals: Mapping[str, int]
) -> tuple[Stratum, ...]:
    """Return the people of a table by their number of usable rows, fewest rows first.

    Decided on the safe side: a row with a public value but without a person may be anybody's, so
    the table is refused; so is one in which a person has two secrets, or a secret in one row and
    none in another, and one whose rows are no longer those of ``totals``. Rows without a public
    value are left out, as in a release.
    """
    encoders = [Encoder(coding, table) for coding in codings]
    columns = [str(rules.unit), str(rules.secret), *(coding.column for coding in codings)]
    units: dict[str, int] = {}
    names = {name: k for k, name in enumerate(totals)}  # excluded secrets come behind them
    gone, nobody, parts = {"", *rules.missing}, no_person(rules.missing), []
    for batch in table.batches(columns):
        whose, who, *cells = batch.columns
        atoms = [encoder.encode(part)[0] for encoder, part in zip(encoders, cells, strict=True)]
        parts.append([numbered(whose, units, nobody), numbered(who, names, gone), *atoms])
    person, secret, *places = (np.concatenate(part) for part in zip(*parts, strict=True))
    usable = np.logical_and.reduce([place >= 0 for place in places])
    nameless = np.flatnonzero(usable & (person < 0))
    if len(nameless):
        raise InputError(
            f"column {rules.unit!r} is missing in {counted(len(nameless), 'row')} of {table.name} "
            f"(first: row {nameless[0] + 1})"
        )
    named = (person >= 0) & (secret >= 0)
    first = np.full(person.max(initial=-1) + 2, -1, dtype=np.int64)  # at -1 that of nobody
    first[person[named]] = secret[named]
    differ = (first[person] >= 0) & (secret != first[person]) & (usable | named)
    if differ.any():
        rows = np.flatnonzero(person == person[differ.argmax()]) + 1
        raise InputError(
            f"{len(np.unique(person[differ]))} of the people of {table.name} (by column "
            f"{rules.unit!r}) have several secrets in {rules.secret!r}, or none in some rows; the "
            f"first in data rows {listed(map(str, rows.tolist()))}: a person has one secret"
        )
    used = usable & (secret >= 0) & (secret < len(totals))
    if np.bincount(secret[used], minlength=len(totals)).tolist() != list(totals.values()):
        raise InputError(f"{table.name} changed while it was read")
    shape = [coding.support.size for coding in codings]
    combined = np.ravel_multi_index([place[used] for place in places], shape)
    return _strata(person[used], secret[used], combined, len(totals), table)


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
