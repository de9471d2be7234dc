# SPDX-License-Identifier: Apache-2.0
"""The table behind the paper's first figure: Glucose in bins, for two age groups."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish.errors import InputError
from pufferfish.prior import Prior
from pufferfish.rationals import NotFinite, show
from pufferfish.scenario import Scenario

PUBLIC, SPLIT = "Glucose", "Age"
_MOST_BINS = 1_000_000


@dataclass(frozen=True, eq=False)
class Binned:
    """Glucose in bins of equal width, for two age groups.

    Attributes
    ----------
    source : str
        The file, or the kind of dataframe.
    scenario : Scenario
        The pair (age at most the limit, age above it) on the bins 0, 1, 2, ...
    lowest, highest : Fraction
        The observed range.
    rows_used, rows_set_aside : int
        Rows with both cells, and rows in which one is missing.
    """

    source: str
    scenario: Scenario
    lowest: Fraction
    highest: Fraction
    rows_used: int
    rows_set_aside: int


def binned(path: Any, bins: int, limit: Fraction) -> Binned:
    """Read the two columns and count rows per bin and age group.

    Parameters
    ----------
    path : path or dataframe
    bins : int
        At least 2; the last one includes the highest value.
    limit : Fraction
        The age, in years, up to which a row belongs to the first group.

    Raises
    ------
    InputError
        If the table or a column cannot be read, a cell is no number, all values are equal, or one
        of the groups is empty.
    """
    if isinstance(bins, bool) or not isinstance(bins, int) or not 2 <= bins <= _MOST_BINS:
        raise InputError(f"bins must be an integer from 2 to {_MOST_BINS}, but {bins!r} was given")
    from pufferfish.tables import open_table

    table = open_table(path)
    names = [table.column(PUBLIC), table.column(SPLIT)]
    groups = table.groups(names)
    raw = [groups.column(k).to_pylist() for k in range(3)]
    used: list[tuple[Fraction, Fraction, int]] = []
    aside = 0
    for glucose, age, rows in zip(*raw, strict=True):
        value, years = _number(table, names[0], glucose), _number(table, names[1], age)
        if value is None or years is None:
            aside += rows
        else:
            used.append((value, years, rows))
    if not used:
        raise InputError(f"{table.name} has no row with both {PUBLIC} and {SPLIT}")
    lowest, highest = min(v for v, _, _ in used), max(v for v, _, _ in used)
    if lowest == highest:
        raise InputError(f"all values of {PUBLIC} in {table.name} are equal: there are no bins")
    width = highest - lowest
    counts = [[0] * bins, [0] * bins]
    for value, years, rows in used:
        place = min(bins - 1, math.floor((value - lowest) * bins / width))
        counts[0 if years <= limit else 1][place] += rows
    secrets = (f"{SPLIT} <= {show(limit)}", f"{SPLIT} > {show(limit)}")
    for secret, row in zip(secrets, counts, strict=True):
        if not any(row):
            raise InputError(f"{table.name} has no row with {secret}; choose another age")
    prior = Prior.from_counts(dict(zip(secrets, counts, strict=True)), support=range(bins))
    return Binned(
        table.name,
        Scenario(prior, pairs=[secrets]),
        lowest,
        highest,
        sum(rows for _, _, rows in used),
        aside,
    )


def _number(table: Any, column: str, cell: Any) -> Fraction | None:
    from pufferfish.tables.cells import text_of
    from pufferfish.tables.numerals import parse_point
    from pufferfish.tables.source import row_of

    text = "" if cell is None else text_of(cell).strip()
    if not text:
        return None
    try:
        ratio = parse_point(text)
    except NotFinite:
        ratio = None
    if ratio is None:
        raise InputError(
            f"{table.name}, row {row_of(table, column, cell)}: the cell of {column} is no finite "
            "number"
        )
    return Fraction(*ratio)
