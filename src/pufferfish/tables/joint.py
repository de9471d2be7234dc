# SPDX-License-Identifier: Apache-2.0
"""Joint: several public columns of a table counted together, each cleaned as it is by itself.

The axis of a column is the support that it has by itself, so that it is that of a plan for the
column: values count that occur only in rows which are set aside for another column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, PriorWarning, listed, warn_user
from pufferfish.prior import Prior
from pufferfish.product import make_product
from pufferfish.support import Levels
from pufferfish.tables.arrow import one_array, to_numpy
from pufferfish.tables.atoms import Placed, own_order, place_cells
from pufferfish.tables.column import Column, missing_texts, notes_on_missing, numeric_missing
from pufferfish.tables.count import MAX_COUNTS
from pufferfish.tables.jointreport import ColumnReport, JointReport
from pufferfish.tables.jointrules import JointRules
from pufferfish.tables.lookalikes import lookalikes
from pufferfish.tables.named import check_secrets, secrets_of
from pufferfish.tables.opening import open_table
from pufferfish.tables.report import MissingText, coding_of, kind_of
from pufferfish.tables.rules import Rules
from pufferfish.tables.source import Table
from pufferfish.tables.units import with_units


@dataclass(frozen=True, eq=False)
class _Axis:
    """One public column: its cells, where they lie, and what is to be told of it."""

    column: Column
    placed: Placed
    missing: tuple[MissingText, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def atoms(self) -> IntArray:
        """The atom of every group of rows, -1 for none, shape (groups,)."""
        atoms: IntArray = self.placed.atoms[self.column.places]
        return atoms


def count_joint_table(table: Any, rules: JointRules) -> Prior:
    """Return the joint prior: how often each combination of values occurs under each secret.

    Parameters
    ----------
    table : path, dataframe or Table
        See :func:`pufferfish.tables.open_table`; only the columns in use are read.
    rules : JointRules
        The columns and the cleaning of each.

    Returns
    -------
    Prior
        On the Product of the supports of the columns. A row is counted where it has a secret that
        is not excluded, and a value in every column; the ``report`` (a JointReport) says for
        which column the others were set aside.

    Raises
    ------
    InputError
        If the table or a cell cannot be read, there are too many combinations of values, or a
        secret has no usable row.

    Warns
    -----
    PriorWarning
        If a secret has a single row, or levels are numbered by their first appearance.
    """
    source, common = open_table(table), rules.secret
    if common.secret is None:
        raise InputError("counting a table needs the name of the column that holds the secret")
    names = [source.column(common.secret), *(source.column(own.public) for own in rules.columns)]
    groups = source.groups(names)
    counts = to_numpy(one_array(groups.column(len(names)))).astype(np.int64, copy=False)
    if not len(counts):
        raise InputError(f"{source.name} has a header but no rows")
    secret = Column.of(groups.column(0), counts, common, f"column {common.secret!r}")
    axes = [
        _axis(source, name, groups.column(k), counts, own, secret)
        for k, (name, own) in enumerate(zip(names[1:], rules.columns, strict=True), start=1)
    ]
    product = make_product(rules.names, [axis.placed.support for axis in axes])
    places = [axis.atoms for axis in axes]
    no_value = np.logical_or.reduce([place < 0 for place in places])
    named, who, others = secrets_of(secret, no_value, counts, common, source.name)
    aside = (
        *_without_value(rules.names, places, counts),
        *((reason, rows) for reason, rows in others if reason != "no public value"),
    )
    if len(named) * product.size > MAX_COUNTS:
        raise InputError(
            f"{len(named)} secrets times {product.size} combinations of values are too many to "
            f"count; is {common.secret!r} an identifier? Otherwise use fewer columns, or give a "
            "coarser step for numbers"
        )
    at = who[secret.places]
    used = (at >= 0) & ~no_value
    cells = np.ravel_multi_index([place[used] for place in places], product.shape)
    matrix = np.zeros((len(named), product.size), dtype=np.int64)
    np.add.at(matrix, (at[used], cells), counts[used])
    totals = matrix.sum(axis=1)
    told = [warning for axis in axes for warning in axis.warnings]
    _check_joint(named, totals, rules, source.name, aside)
    check_secrets(named, totals, common, source.name, told)
    missing = _missing(axes, secret, common)
    notes = [
        *(note for axis in axes for note in axis.notes),
        *lookalikes(named, "secrets"),
        *_notes_on_unfound(missing, [str(common.secret), *rules.names]),
    ]
    columns = tuple(_column_report(axis, counts) for axis in axes)
    report = JointReport(
        source.name, common, int(counts.sum()), int(totals.sum()), aside,
        tuple(zip(named, totals.tolist(), strict=True)), missing,
        ", ".join(column.kind for column in columns), None,
        sum(column.rounded for column in columns),
        tuple(dict.fromkeys(notes)), tuple(told), columns=columns,
    )  # fmt: skip
    for warning in told:
        warn_user(warning, PriorWarning)
    prior = Prior.from_numerators(product, named, list(matrix), from_rows=True, report=report)
    if rules.unit is None:
        return prior
    # With the orders and the decimal marks that were found.
    return with_units(prior, source, [axis.placed.rules for axis in axes])


def _axis(
    source: Table, name: str, cells: Any, counts: IntArray, rules: Rules, secret: Column
) -> _Axis:
    """Clean and place the cells of one column, exactly as when it is counted by itself."""
    column = Column.of(cells, counts, rules, f"column {rules.public!r}")
    own = own_order(source, name, rules)
    column, stand_for = numeric_missing(column, rules, own is not None)
    placed = place_cells(source, name, column, rules, own)
    missing = missing_texts(secret, column, rules, stand_for)
    levels = placed.support if isinstance(placed.support, Levels) else None
    notes = [
        *placed.notes,
        *notes_on_missing(secret, None if levels is None else column, rules, ()),
        *([] if levels is None else lookalikes(levels.names, "levels")),
    ]
    return _Axis(
        column,
        placed,
        missing,
        tuple(_about(note, rules) for note in notes),
        tuple(_about(warning, rules) for warning in placed.warnings),
    )


def _about(text: str, rules: Rules) -> str:
    """Return a note with the column that it is about, unless it names a column already."""
    named = repr(rules.public) in text or repr(rules.secret) in text
    return text if named else f"column {rules.public!r}: {text}"


def _without_value(
    names: Sequence[str], places: Sequence[IntArray], counts: IntArray
) -> list[tuple[str, int]]:
    """Return the rows without a value, each under the first column that it has none in."""
    aside = []
    before: npt.NDArray[np.bool_] = np.zeros(len(counts), dtype=bool)
    for name, place in zip(names, places, strict=True):
        here = (place < 0) & ~before
        before |= here
        rows = int(counts[here].sum())
        if rows:
            aside.append((f"no public value in {name!r}", rows))
    return aside


def _check_joint(
    named: Sequence[str],
    totals: IntArray,
    rules: JointRules,
    table: str,
    aside: Sequence[tuple[str, int]],
) -> None:
    """Refuse secrets without a usable row, with the reasons for which rows were set aside."""
    empty = [name for name, total in zip(named, totals.tolist(), strict=True) if total == 0]
    if not empty:
        return
    several = len(empty) > 1
    names = listed(map(repr, rules.names))
    every = f"a value in all of {names}" if len(rules.names) > 1 else f"a value in {names}"
    reasons = ", ".join(f"{reason}: {rows}" for reason, rows in aside)
    if len(empty) == len(named):
        raise InputError(
            f"no row of {table} has both a secret in {rules.secret.secret!r} and {every} "
            f"(set aside: {reasons})"
        )
    raise InputError(
        f"the secret{'s' * several} {listed(map(repr, empty))} of {table} "
        f"{'have' if several else 'has'} no row with {every} (set aside: {reasons}); to go on "
        f"without, exclude {'them' if several else 'it'} (exclude_secrets), or leave out a column"
    )


def _missing(axes: Sequence[_Axis], secret: Column, common: Rules) -> tuple[MissingText, ...]:
    """Return every text that means "missing" somewhere, with the cells in which it does."""
    public: dict[str, int] = {}
    for axis in axes:
        for found in axis.missing:
            public[found.text] = public.get(found.text, 0) + found.public_rows
    for text in common.absent:
        public.setdefault(text, 0)
    own = dict.fromkeys(common.absent, 0)
    for text, rows in zip(secret.cells.texts, secret.rows.tolist(), strict=True):
        if text in own:
            own[text] += rows
    return tuple(MissingText(text, rows, own.get(text, 0)) for text, rows in public.items())


def _notes_on_unfound(missing: Sequence[MissingText], names: Sequence[str]) -> list[str]:
    return [
        f"no cell of the columns {listed(map(repr, names))} is {m.text!r}, which was to mean a "
        "missing value (missing)"
        for m in missing
        if m.text and not m.public_rows + m.secret_rows
    ]


def _column_report(axis: _Axis, counts: IntArray) -> ColumnReport:
    support = axis.placed.support
    blank = axis.column.missing[axis.column.places]
    return ColumnReport(
        axis.placed.rules,
        int(counts[blank].sum()),
        kind_of(support),
        coding_of(support),
        axis.placed.rounded,
    )
