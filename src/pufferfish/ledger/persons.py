# SPDX-License-Identifier: Apache-2.0
"""Persons: what all releases tell of somebody with several rows, from all of these together.

Where one of the plans names the column that tells whose rows they are, everything that is released
of the table is released of all rows of a person. The exact joint loss is that of the sequences of
values which people have (theory, section 6). It holds for whoever sees the rows in the order in
which they were counted. So all releases must have been made from the table in that same order; then
whoever does not know which rows go together knows less. In another order a copy of the table has
other sequences, and everything is bounded by the worst cases of all rows, which hold in any order.

*Blanks.* As for single rows (:mod:`.adversaries`), which values a person lacks shows by itself.
Whoever looks at some of the columns sees the rows with a value in one of them, or takes those with
a value in each: there are two cases for every set of columns, every number of rows and every
pattern of blanks that both secrets of a pair have.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from pufferfish.joint.bounds import Bound as JointBound
from pufferfish.joint.unitrows import UnitRows, smallest_unit_bound
from pufferfish.joint.worst import Term, total
from pufferfish.ledger.account import Bound, bound_of
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.out import Out, Pair, pairs_of
from pufferfish.ledger.suited import axes_of, comparable
from pufferfish.ledger.unittable import UnitTable
from pufferfish.ledger.worstcases import worst_terms

#: Columns with blanks up to which every set of them is looked at, and cases up to which all are.
_MOST_COLUMNS, _MOST_CASES = 5, 500
#: Cells of all grids together up to which everything is computed.
_MOST_WORK = 1 << 26


def bounds_of_persons(
    joint: JointTable, outs: Sequence[Out], tables: Mapping[str, UnitTable]
) -> list[Bound]:
    """Return bounds for all rows of one person; none where no plan says whose rows they are.

    Parameters
    ----------
    joint : JointTable
        The counts of all columns that something is released of.
    outs : sequence of Out
        All releases of one table about one secret.
    tables : mapping from unit column to UnitTable
        What is known of the rows of each person.
    """
    units = list(dict.fromkeys(out.unit for out in outs if out.unit is not None))
    if not units:
        return []
    pairs = pairs_of(outs)
    bounds, most = [], max(out.rows for out in outs)
    # Whoever has the prior of a plan that is not of this table, or any of a region, may know
    # anything of their rows; and so may those who compare secrets that the table does not have.
    anybody = (
        len(comparable(joint, pairs)) < len(pairs)
        or any(out.robust for out in outs)
        or not all(out.own for out in outs)
    )
    for unit in units:
        table = tables.get(unit)
        if table is not None:
            table = table.of([out.label for out in outs])
            most = max(most, table.most_rows)
        found = None
        if not anybody and table is not None and are_in_order(outs, table.order):
            found = _for_the_table(joint, outs, table, pairs)
        if found is None:
            anybody = True
        else:
            bounds.append(found)
    if anybody:  # nothing else is larger
        return [_worst_of(worst_terms(joint, outs), most)]
    return bounds


def are_in_order(outs: Sequence[Out], order: str) -> bool:
    """Whether all releases were made from the table with its rows in this order."""
    return bool(order) and all(out.order == order for out in outs)


def _worst_of(terms: Sequence[Term], rows: int) -> Bound:
    worst = total(terms)
    return Bound(
        None if worst is None else worst * rows,
        f"worst cases of the {rows} rows that one person may have",
    )


def _for_the_table(
    joint: JointTable, outs: Sequence[Out], table: UnitTable, pairs: Sequence[Pair]
) -> Bound | None:
    """Return the bound for whoever knows the rows of all people, or None if it takes too long."""
    part = joint.of([out.label for out in outs])
    labels, axes = part.labels, axes_of(part, outs)
    terms = list(zip(worst_terms(joint, outs), outs, strict=True))
    worst = [[term for term, out in terms if out.label == label] for label in labels]
    named = [
        [f"{label} ({k})" for k, o in enumerate(outs, 1) if o.label == label] for label in labels
    ]
    there = comparable(joint, pairs)
    rows_of_pairs = [(joint.secrets.index(a), joint.secrets.index(b)) for a, b in there]
    largest, number, work = JointBound(Fraction(0), "joint loss", None, (), ()), 0, 0
    for chosen in _column_sets(table):
        own = [labels.index(label) for label in chosen.labels]
        for rows, units, both, lone in _cases(chosen, rows_of_pairs):
            bounds = []
            if both:
                work += units.work
                if work > _MOST_WORK:
                    return None
                mine = [axes[k] for k in own], [named[k] for k in own]
                bounds.append(smallest_unit_bound(units, *mine, both))
            if lone:
                # Nothing is known of people of the other secret with as many rows.
                every = [term for column in units.columns for term in worst[own[column]]]
                bounds.append(JointBound(total(every), "worst-case sum", None, (), tuple(every)))
            for bound in bounds:
                if (
                    number == 0
                    or largest.upper is None
                    or (bound.upper is None or bound.upper >= largest.upper)
                ):
                    largest, number = bound, rows
            if largest.upper is None:
                return _said(largest, number)
    return _said(largest, number) if number else None


def _column_sets(table: UnitTable) -> list[UnitTable]:
    """Return the counts for every set of columns that matters; none if they are too many."""
    if table.complete:
        # Whoever looks at fewer columns sees the same people, and less of them.
        return [table]
    labels = table.labels
    if len(labels) > _MOST_COLUMNS:
        return []
    sets = [chosen for size in range(len(labels), 0, -1) for chosen in combinations(labels, size)]
    found = [table.of(chosen) for chosen in sets]
    found += [table.of(chosen).complete_rows() for chosen in sets if len(chosen) > 1]
    # Counted before any loss is computed: that would be for nothing.
    return found if sum(chosen.number_of_patterns for chosen in found) <= _MOST_CASES else []


def _cases(
    table: UnitTable, pairs: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, UnitRows, list[tuple[int, int]], list[tuple[int, int]]]]:
    """Yield rows, units, the pairs that both have such people, and those of which one has.

    A pair of which only one has people with this pattern of blanks is not compared, if the other
    has people with as many rows: the blanks give it away.
    """
    patterns = list(table.patterns())
    sizes: dict[int, set[int]] = {}
    for rows, units in patterns:
        sizes.setdefault(rows, set()).update(np.flatnonzero(units.counts.sum(axis=1)).tolist())
    for rows, units in patterns:
        has = set(np.flatnonzero(units.counts.sum(axis=1)).tolist())
        both = [pair for pair in pairs if has.issuperset(pair)]
        lone = [pair for pair in pairs if has & set(pair) and not sizes[rows].issuperset(pair)]
        if both or lone:
            yield rows, units, both, lone


def _said(bound: JointBound, rows: int) -> Bound:
    """Return a bound with a short word on how it is known."""
    value = float("inf") if bound.upper is None else bound.upper
    if bound.name == "worst-case sum":
        how = "worst cases"
    elif not bound.terms:
        how = "joint loss"
    else:
        how = f"joint loss of {len(bound.within)} and worst cases of {len(bound.terms)} values"
    return bound_of(value, f"{how} of all {rows} rows of one person" if rows > 1 else how)
