# SPDX-License-Identifier: Apache-2.0
"""Count: a table and its rules become a Prior of exact counts, with a report of every row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, PriorWarning, did_you_mean, listed, warn_user
from pufferfish.prior import Prior
from pufferfish.rationals import NotFinite
from pufferfish.support import Lattice, Levels, Support, lattice_index, make_lattice
from pufferfish.tables.arrow import one_array, to_list, to_numpy
from pufferfish.tables.cells import BOOLEANS, Cells, cells_of, distinct, is_missing
from pufferfish.tables.classify import classify, looks_missing
from pufferfish.tables.lookalikes import lookalikes
from pufferfish.tables.numerals import missing_numbers, parse_comma, parse_point, plain_number
from pufferfish.tables.opening import open_table
from pufferfish.tables.report import MissingText, TableReport
from pufferfish.tables.rules import Rules
from pufferfish.tables.source import Table, row_of
from pufferfish.texts import counted

#: A dense array of more counts than this (2 GiB) is refused.
MAX_COUNTS = 2**28


@dataclass(frozen=True, eq=False)
class _Column:
    """The distinct cells of one column: which are missing, and the group of each row of groups."""

    raw: pa.Array
    cells: Cells
    missing: npt.NDArray[np.bool_]
    places: npt.NDArray[Any]
    rows: IntArray

    @classmethod
    def of(cls, column: pa.ChunkedArray, counts: IntArray, rules: Rules, what: str) -> "_Column":
        raw, places = distinct(column)
        cells = cells_of(raw, what)
        rows = np.zeros(len(raw), dtype=np.int64)
        np.add.at(rows, places, counts)
        return cls(raw, cells, is_missing(cells.texts, rules), places, rows)


def count_table(table: Any, rules: Rules) -> Prior:
    """Return the prior of a table: how often each public value occurs under each secret.

    Parameters
    ----------
    table : path, dataframe or Table
        See :func:`pufferfish.tables.open_table`.
    rules : Rules
        The columns and the cleaning.

    Returns
    -------
    Prior
        On the support of all rows with a public value; its counts are those of the rows whose
        secret is neither missing nor excluded. Its ``report`` says where every row went, and
        holds the rules that a release has to use.

    Raises
    ------
    InputError
        If the table or a cell cannot be read, or a secret has no usable row.

    Warns
    -----
    PriorWarning
        If a secret has a single row, or levels are numbered by their first appearance.
    """
    source = open_table(table)
    if rules.secret is None:
        raise InputError("counting a table needs the name of the column that holds the secret")
    names = [source.column(rules.secret), source.column(rules.public)]
    if names[0] == names[1]:
        raise InputError(f"the secret and the public column are both {names[0]!r}")
    groups = source.groups(names)
    counts = to_numpy(one_array(groups.column(2))).astype(np.int64, copy=False)
    if not len(counts):
        raise InputError(f"{source.name} has a header but no rows")
    told: list[str] = []
    secret = _Column.of(groups.column(0), counts, rules, f"column {rules.secret!r}")
    public = _Column.of(groups.column(1), counts, rules, f"column {rules.public!r}")
    public, stand_for = _numeric_missing(
        public, rules, _own_order(source, names[1], rules) is not None
    )
    support, atoms, rules, rounded, notes = _support(source, names[1], public, rules, told)
    named, who, aside = _secrets(secret, public, counts, rules, source.name)
    if len(named) * support.size > MAX_COUNTS:
        raise InputError(
            f"{len(named)} secrets times {support.size} public values are too many to count; is "
            f"{rules.secret!r} an identifier?"
        )
    at, x = who[secret.places], atoms[public.places]
    used = (at >= 0) & (x >= 0)
    matrix = np.zeros((len(named), support.size), dtype=np.int64)
    np.add.at(matrix, (at[used], x[used]), counts[used])
    totals = matrix.sum(axis=1)
    _check_secrets(named, totals, rules, source.name, told)
    missing = _missing_texts(secret, public, rules, stand_for)
    notes += _notes_on_missing(secret, public, support, rules)
    notes += [
        f"no cell of the two columns is {m.text!r}, which was to mean a missing value (--missing)"
        for m in missing
        if m.text and not m.public_rows + m.secret_rows
    ]
    notes += lookalikes(named, "secrets")
    if isinstance(support, Levels):
        notes += lookalikes(support.names, "levels")
    report = TableReport(
        source.name, rules, int(counts.sum()), int(totals.sum()), aside,
        tuple(zip(named, totals.tolist(), strict=True)),
        missing,
        _kind(support), _coding(support), rounded, tuple(notes), tuple(told),
    )  # fmt: skip
    for warning in told:
        warn_user(warning, PriorWarning)
    return Prior.from_numerators(support, named, list(matrix), from_rows=True, report=report)


def _support(
    table: Table, name: str, public: _Column, rules: Rules, told: list[str]
) -> tuple[Support, IntArray, Rules, int, list[str]]:
    """Return the support, and the atom of every distinct public cell (-1: missing)."""
    present = np.flatnonzero(~public.missing)
    if not len(present):
        raise InputError(f"no row of {table.name} has a value in column {name!r}")
    texts = [public.cells.texts[k] for k in present.tolist()]
    own = _own_order(table, name, rules)
    if own is not None:
        rules = replace(rules, order=own)
    reading = classify(
        Cells(texts, public.cells.typed),
        public.rows[present].tolist(),
        rules,
        table=table.name,
        comma_may_be_decimal=table.comma_may_be_decimal,
        row_of=lambda k: row_of(table, name, to_list(public.raw.slice(int(present[k]), 1))[0]),
    )
    atoms = np.full(len(public.raw), -1, dtype=np.int64)
    notes = list(reading.notes)
    if own is not None:
        notes = [f"the order of {name!r} is the column's own (an ordered categorical)"]
    if reading.numbers is not None:
        lattice, atoms[present], rounded = reading.numbers.lattice(rules.step)
        lost = _lost_digits(public, texts)
        if lost:
            told.append(lost)
        if rules.support is not None:
            lattice, places = _declared(lattice, rules)
            unnamed = np.flatnonzero(places[atoms[present]] < 0)
            if len(unnamed):
                first = row_of(table, name, public.raw[int(present[unnamed[0]])].as_py())
                raise InputError(
                    f"the support that was given lacks {len(unnamed)} of the distinct values of "
                    f"column {name!r} of {table.name}, the first of them in data row {first}"
                )
            atoms[present] = places[atoms[present]]
        return lattice, atoms, reading.rules, rounded, notes
    if rules.step is not None:
        raise InputError(f"a step is for numbers, but column {name!r} holds levels")
    if rules.support is not None:
        raise InputError(
            f"a support is for numbers, but column {name!r} holds levels; declare them with levels"
        )
    levels = _levels(table, name, texts, rules, told)
    where = {level: k for k, level in enumerate(levels.names)}
    atoms[present] = [where[text] for text in texts]
    return levels, atoms, reading.rules, 0, notes


def _declared(found: Lattice, rules: Rules) -> tuple[Lattice, IntArray]:
    """Return the lattice of the declared numbers, and where the atoms found lie on it (or -1)."""
    lattice = make_lattice((*found.values, *(rules.support or ())), rules.step)
    units = lattice_index(rules.support or (), lattice.step)
    stated = make_lattice([lattice.step * unit for unit in units], lattice.step)
    where = {stated.origin + k: at for at, k in enumerate(stated.index.tolist())}
    places = [where.get(unit, -1) for unit in lattice_index(found.values, lattice.step)]
    return stated, np.array(places, dtype=np.int64)


def _own_order(table: Table, name: str, rules: Rules) -> tuple[str, ...] | None:
    """Return the order that the column itself states, where the user states nothing.

    Where its levels are numbers (or false and true) in their own order, they stay numbers.
    """
    if rules.order is not None or rules.levels is not None or rules.step is not None:
        return None
    own = tuple(text for text in table.own_order(name) or () if text not in rules.absent)
    numbers = [_number(text) for text in own]
    known = [number for number in numbers if number is not None]
    ascending = len(known) == len(own) and all(a < b for a, b in pairwise(known))
    return None if ascending else own


def _number(text: str) -> Fraction | None:
    try:
        ratio = parse_point(text)
    except NotFinite:
        return None
    if ratio is None and text.lower() in BOOLEANS:
        return Fraction(BOOLEANS[text.lower()])
    return None if ratio is None else Fraction(*ratio)


def _levels(table: Table, name: str, texts: Sequence[str], rules: Rules, told: list[str]) -> Levels:
    declared = dict.fromkeys((*(rules.levels or ()), *sorted(set(texts))))
    if isinstance(rules.order, tuple):
        return Levels(rules.order, ordered=True)
    if rules.order == "appearance":
        told.append(
            f"levels of {rules.public!r} are numbered by their first appearance: another order of "
            "the rows gives other codes and another scale"
        )
        seen: dict[str, None] = {}
        for batch in table.batches([name]):
            values, places = distinct(batch.column(0))
            cells = cells_of(values, f"column {name!r}").texts
            _, first = np.unique(places, return_index=True)
            seen.update(dict.fromkeys(cells[places[k]] for k in np.sort(first).tolist()))
        named = [text for text in seen if text in declared]
        return Levels((*named, *(text for text in declared if text not in seen)), ordered=True)
    return Levels(tuple(sorted(declared)), ordered=rules.order == "alphabetical")


def _secrets(
    secret: _Column, public: _Column, counts: IntArray, rules: Rules, table: str
) -> tuple[tuple[str, ...], IntArray, tuple[tuple[str, int], ...]]:
    """Return the secrets, the one of every distinct secret cell (-1: none), and rows set aside."""
    texts = secret.cells.texts
    present = {t for t, gone in zip(texts, secret.missing.tolist(), strict=True) if not gone}
    for name in rules.exclude_secrets:
        if name not in present:
            raise InputError(
                f"the excluded secret {name!r} does not occur in {table}"
                f"{did_you_mean(name, present)}; the secrets are {listed(sorted(present))}"
            )
    named = tuple(sorted(present - set(rules.exclude_secrets), key=_natural))
    if not named:
        raise InputError(f"no secret of {table} is left in column {rules.secret!r}")
    where = {name: k for k, name in enumerate(named)}
    who = np.array([where.get(t, -1) for t in texts], dtype=np.int64)
    no_value = public.missing[public.places]
    no_secret = secret.missing[secret.places] & ~no_value
    aside = [
        ("no public value", int(counts[no_value].sum())),
        ("no secret value", int(counts[no_secret].sum())),
    ]
    for name in rules.exclude_secrets:
        these = np.array([t == name for t in texts], dtype=bool)[secret.places] & ~no_value
        aside.append((f"secret excluded: {name}", int(counts[these].sum())))
    return named, who, tuple((reason, rows) for reason, rows in aside if rows)


def _natural(text: str) -> tuple[int, float, str]:
    """Sort secrets that are numbers by their value, before all others."""
    value = _number(text) if text.lower() not in BOOLEANS else None
    if value is None or len(text) > 30:
        return 1, 0.0, text
    return 0, float(value), text


def _check_secrets(
    named: Sequence[str], totals: IntArray, rules: Rules, table: str, told: list[str]
) -> None:
    empty = [name for name, total in zip(named, totals.tolist(), strict=True) if total == 0]
    if len(empty) == len(named):
        raise InputError(
            f"no row of {table} has both a secret in {rules.secret!r} and a value in "
            f"{rules.public!r}"
        )
    if empty:
        options = " ".join(f"--exclude-secret {name!r}" for name in empty[:3])
        several = len(empty) > 1
        raise InputError(
            f"the secret{'s' * several} {listed(repr(e) for e in empty)} of {table} "
            f"{'have' if several else 'has'} no row with a public value, so nothing is known "
            f"about {'them' if several else 'it'}; to go on without, exclude "
            f"{'them' if several else 'it'} ({options}), also where no pair names "
            f"{'them' if several else 'it'}"
        )
    single = [name for name, total in zip(named, totals.tolist(), strict=True) if total == 1]
    if single:
        told.append(
            f"the secret{'s' * (len(single) > 1)} {listed(repr(s) for s in single)} "
            f"{'have' if len(single) > 1 else 'has'} a single row: one row is no estimate of a "
            "distribution; if no pair names it, exclude it (--exclude-secret)"
        )


def _numeric_missing(
    public: _Column, rules: Rules, ordered: bool
) -> tuple[_Column, dict[int, str]]:
    """Set aside public cells that are the number of a missing text: ``-999.0`` for ``-999``.

    Only where all others are numbers (or truth values) too: the codes 01 and 1 may be two levels.

    Returns
    -------
    column : _Column
    stand_for : dict
        The missing text that each of these cells stands for, by its place.
    """
    numbers = missing_numbers(rules.missing)
    if not numbers or ordered or rules.levels is not None or rules.order is not None:
        return public, {}
    stand_for: dict[int, str] = {}
    for place in np.flatnonzero(~public.missing).tolist():
        text = public.cells.texts[place]
        value = plain_number(text)
        if value is not None and value in numbers:
            stand_for[place] = numbers[value]
        elif value is None and text.lower() not in BOOLEANS and not _may_be_number(text):
            return public, {}
    missing = public.missing.copy()
    missing[list(stand_for)] = True
    return replace(public, missing=missing), stand_for


def _may_be_number(text: str) -> bool:
    try:
        return parse_point(text) is not None or parse_comma(text) is not None
    except NotFinite:
        return True


def _missing_texts(
    secret: _Column, public: _Column, rules: Rules, stand_for: Mapping[int, str]
) -> tuple[MissingText, ...]:
    def rows(column: _Column, text: str) -> int:
        match = [k for k, other in enumerate(column.cells.texts) if other == text]
        if column is public:
            match += [k for k, other in stand_for.items() if other == text]
        return int(column.rows[match].sum()) if match else 0

    return tuple(MissingText(text, rows(public, text), rows(secret, text)) for text in rules.absent)


def _notes_on_missing(
    secret: _Column, public: _Column, support: Support, rules: Rules
) -> list[str]:
    notes = []
    columns = [(rules.secret, "secret", secret)]
    if isinstance(support, Levels):
        columns.append((rules.public, "level", public))
    for name, kind, column in columns:
        texts = [t for t, gone in zip(column.cells.texts, column.missing.tolist(), strict=True)
                 if not gone]  # fmt: skip
        for text in sorted(set(looks_missing(texts))):
            rows = sum(
                r for t, r in zip(column.cells.texts, column.rows.tolist(), strict=True)
                if t == text
            )  # fmt: skip
            notes.append(
                f"{text!r} in column {name!r} is a {kind} of its own ({counted(rows, 'row')}); if "
                f"it means a missing value, say so (--missing {text!r})"
            )
    return notes


def _lost_digits(public: _Column, texts: Sequence[str]) -> str | None:
    """Return a warning where integers were squeezed into floats before they reached us."""
    if not pt.is_float64(public.raw.type) or not public.missing.any():
        return None
    large = [t for t in texts if abs(float(t)) >= 2**53 and float(t).is_integer()]
    if not large:
        return None
    return (
        "the public column holds floats beyond 2**53 and blanks: integers of that size may have "
        "lost digits before they arrived here; use an integer type that knows blanks (Int64)"
    )


def _kind(support: Support) -> str:
    if isinstance(support, Levels):
        return "ordered levels" if support.ordered else "unordered levels"
    return "numbers"


def _coding(support: Support) -> tuple[tuple[str, int], ...] | None:
    if isinstance(support, Levels) and support.ordered:
        return tuple((name, code) for code, name in enumerate(support.names))
    return None
