# SPDX-License-Identifier: Apache-2.0
"""Count: a table and its rules become a Prior of exact counts, with a report of every row."""

from typing import Any

import numpy as np

from pufferfish.errors import InputError, PriorWarning, warn_user
from pufferfish.prior import Prior
from pufferfish.support import Levels
from pufferfish.tables.arrow import one_array, to_numpy
from pufferfish.tables.atoms import own_order, place_cells
from pufferfish.tables.column import Column, missing_texts, notes_on_missing, numeric_missing
from pufferfish.tables.lookalikes import lookalikes
from pufferfish.tables.named import check_secrets, secrets_of
from pufferfish.tables.opening import open_table
from pufferfish.tables.report import TableReport, coding_of, kind_of
from pufferfish.tables.rules import Rules
from pufferfish.tables.units import with_units

#: A dense array of more counts than this (2 GiB) is refused.
MAX_COUNTS = 2**28


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
        On the support of all rows with a public value and of what was declared; its counts are
        those of the rows whose secret is neither missing nor excluded. Its ``report`` says where
        every row went, and holds the rules that a release has to use. Where these name a unit,
        its ``units`` are counted too.

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
    secret = Column.of(groups.column(0), counts, rules, f"column {rules.secret!r}")
    public = Column.of(groups.column(1), counts, rules, f"column {rules.public!r}")
    own = own_order(source, names[1], rules)
    public, stand_for = numeric_missing(public, rules, own is not None)
    placed = place_cells(source, names[1], public, rules, own)
    support, rules, told = placed.support, placed.rules, list(placed.warnings)
    x = placed.atoms[public.places]
    named, who, aside = secrets_of(secret, x < 0, counts, rules, source.name)
    if len(named) * support.size > MAX_COUNTS:
        raise InputError(
            f"{len(named)} secrets times {support.size} public values are too many to count; is "
            f"{rules.secret!r} an identifier?"
        )
    at = who[secret.places]
    used = (at >= 0) & (x >= 0)
    matrix = np.zeros((len(named), support.size), dtype=np.int64)
    np.add.at(matrix, (at[used], x[used]), counts[used])
    totals = matrix.sum(axis=1)
    check_secrets(named, totals, rules, source.name, told)
    levels = support if isinstance(support, Levels) else None
    missing = missing_texts(secret, public, rules, stand_for)
    notes = [
        *placed.notes,
        *notes_on_missing(secret, None if levels is None else public, rules, missing),
        *lookalikes(named, "secrets"),
        *([] if levels is None else lookalikes(levels.names, "levels")),
    ]
    report = TableReport(
        source.name, rules, int(counts.sum()), int(totals.sum()), aside,
        tuple(zip(named, totals.tolist(), strict=True)),
        missing,
        kind_of(support), coding_of(support), placed.rounded, tuple(notes), tuple(told),
        int(counts[used & public.missing[public.places]].sum()) if rules.missing_level else None,
    )  # fmt: skip
    for warning in told:
        warn_user(warning, PriorWarning)
    prior = Prior.from_numerators(support, named, list(matrix), from_rows=True, report=report)
    return prior if rules.unit is None else with_units(prior, source, [rules])
