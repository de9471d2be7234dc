# SPDX-License-Identifier: Apache-2.0
"""Atoms: the support of a public column, and the atom at which each of its distinct cells lies."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, counted, listed
from pufferfish.rationals import NotFinite
from pufferfish.support import Lattice, Levels, Support, lattice_index, make_lattice
from pufferfish.tables.arrow import to_list
from pufferfish.tables.cells import BOOLEANS, Cells, cells_of, distinct
from pufferfish.tables.classify import classify
from pufferfish.tables.column import Column, lost_digits
from pufferfish.tables.numerals import Numbers, parse_point
from pufferfish.tables.rules import MISSING_LEVEL, Rules
from pufferfish.tables.source import Table, row_of

#: Of more declared values that no row has only the first are named.
_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Placed:
    """Where the cells of the public column lie.

    Attributes
    ----------
    support : Lattice or Levels
        The support of all rows with a public value, and of all values that were declared.
    atoms : int64 array, shape (k,)
        The atom of every distinct cell; -1 where it means a missing value and that is no level.
    rules : Rules
        The rules, with the order and the decimal mark that were found.
    rounded : int
        How many distinct values were moved by rounding them to the step.
    notes, warnings : tuple of str
        What was decided about the cells, and what the user should look at.
    """

    support: Support
    atoms: IntArray
    rules: Rules
    rounded: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def place_cells(
    table: Table, name: str, public: Column, rules: Rules, own: tuple[str, ...] | None
) -> Placed:
    """Return the support of the public column, and where its cells lie on it.

    Parameters
    ----------
    table : Table
        What is read.
    name : str
        The name of the public column in the table.
    public : Column
        Its distinct cells.
    rules : Rules
        The cleaning.
    own : tuple of str or None
        The order that the column states itself (:func:`own_order`).

    Raises
    ------
    InputError
        If a cell cannot be read, a declared support lacks one, or the rules are for another kind
        of column.
    """
    present = np.flatnonzero(~public.missing)
    stated = rules.levels is not None or isinstance(rules.order, tuple)
    if not len(present) and not (stated and rules.missing_level is not None):
        raise InputError(f"no row of {table.name} has a value in column {name!r}")
    texts = public.present

    def first_row(k: int) -> int:
        return row_of(table, name, to_list(public.raw.slice(int(present[k]), 1))[0])

    level = rules.missing_level
    if level is not None and level in texts:
        raise InputError(
            f"column {name!r} of {table.name} holds the text {level!r} (first in data row "
            f"{first_row(texts.index(level))}), which is the name of the level of missing values; "
            f"if it means one say so (--missing {level!r}), or else write it in another way"
        )
    if own is not None:
        rules = replace(rules, order=own)
    reading = classify(
        Cells(texts, public.cells.typed),
        public.rows[present].tolist(),
        rules,
        table=table.name,
        comma_may_be_decimal=table.comma_may_be_decimal,
        row_of=first_row,
    )
    if reading.numbers is not None:
        placed = _numbers(table, name, public, present, reading.numbers, reading.rules)
    else:
        placed = _levels(table, name, public, present, reading.rules)
    notes = reading.notes
    if own is not None:
        notes = (f"the order of {name!r} is the column's own (an ordered categorical)",)
    return replace(placed, notes=(*notes, *placed.notes))


def own_order(table: Table, name: str, rules: Rules) -> tuple[str, ...] | None:
    """Return the order that the column itself states, where the user states nothing.

    Where its levels are numbers (or false and true) in their own order, they stay numbers.

    Raises
    ------
    InputError
        If missing is to be a level, and the order does not say where it belongs.
    """
    if rules.order is not None or rules.levels is not None or rules.step is not None:
        return None
    stated = table.own_order(name) or ()
    own = tuple(t for t in stated if t not in rules.absent or t == rules.missing_level)
    numbers = [exact_number(text) for text in own]
    known = [number for number in numbers if number is not None]
    if len(known) == len(own) and all(a < b for a, b in pairwise(known)):
        return None
    if rules.missing_level is not None and rules.missing_level not in own:
        raise InputError(
            f"the order of {name!r} is the column's own (an ordered categorical): {listed(own)}; "
            f"it does not say where the level of missing values belongs, so state an order that "
            f"names {rules.missing_level!r} too (--order)"
        )
    return own


def exact_number(text: str) -> Fraction | None:
    """Return the number or the truth value that a text prints, or None."""
    try:
        ratio = parse_point(text)
    except NotFinite:
        return None
    if ratio is None and text.lower() in BOOLEANS:
        return Fraction(BOOLEANS[text.lower()])
    return None if ratio is None else Fraction(*ratio)


def _numbers(
    table: Table, name: str, public: Column, present: IntArray, numbers: Numbers, rules: Rules
) -> Placed:
    if rules.missing_level is not None:
        truths = all(text.lower() in BOOLEANS for text in public.present)
        raise InputError(
            f"column {name!r} of {table.name} holds "
            f"{'truth values, which are read as 0 and 1' if truths else 'numbers'}, so missing "
            "cannot be a level among them (--missing-as-level); name the levels (--levels, or "
            "--order from the least to the greatest), or leave out the rows without a value"
        )
    atoms = np.full(len(public.raw), -1, dtype=np.int64)
    lattice, atoms[present], rounded = numbers.lattice(rules.step)
    lost = lost_digits(public)
    warnings = () if lost is None else (lost,)
    if rules.support is None:
        return Placed(lattice, atoms, rules, rounded, (), warnings)
    declared, places = _declared(lattice, rules.support, rules.step)
    unnamed = np.flatnonzero(places[atoms[present]] < 0)
    if len(unnamed):
        first = row_of(table, name, public.raw[int(present[unnamed[0]])].as_py())
        raise InputError(
            f"the support that was given lacks {len(unnamed)} of the distinct values of "
            f"column {name!r} of {table.name}, the first of them in data row {first}"
        )
    atoms[present] = places[atoms[present]]
    unseen = np.ones(declared.size, dtype=bool)
    unseen[atoms[present]] = False
    notes = _notes_on_unseen("number", declared, np.flatnonzero(unseen).tolist())
    return Placed(declared, atoms, rules, rounded, tuple(notes), warnings)


def _declared(
    found: Lattice, support: tuple[Fraction, ...], step: Fraction | None
) -> tuple[Lattice, IntArray]:
    """Return the lattice of the declared numbers, and where the atoms found lie on it (or -1)."""
    lattice = make_lattice((*found.values, *support), step)
    units = lattice_index(support, lattice.step)
    stated = make_lattice([lattice.step * unit for unit in units], lattice.step)
    where = {stated.origin + k: at for at, k in enumerate(stated.index.tolist())}
    places = [where.get(unit, -1) for unit in lattice_index(found.values, lattice.step)]
    return stated, np.array(places, dtype=np.int64)


def _levels(table: Table, name: str, public: Column, present: IntArray, rules: Rules) -> Placed:
    if rules.step is not None:
        raise InputError(f"a step is for numbers, but column {name!r} holds levels")
    if rules.support is not None:
        raise InputError(
            f"a support is for numbers, but column {name!r} holds levels; declare them with levels"
        )
    texts = public.present
    names, warnings = _names(table, name, texts, rules)
    levels = Levels(names, ordered=rules.order is not None)
    where = {level: k for k, level in enumerate(names)}
    atoms = np.full(len(public.raw), -1, dtype=np.int64)
    atoms[present] = [where[text] for text in texts]
    notes: list[str] = []
    if rules.missing_level is not None:
        atoms[public.missing] = where[rules.missing_level]
        notes.append(
            f"rows without a value in {rules.public!r} have the level {rules.missing_level!r}, "
            "which is counted, protected and released like any other; where blanks can be told "
            "from values they may reveal the secret"
        )
    unseen = sorted(set(range(levels.size)).difference(atoms.tolist()))
    notes += _notes_on_unseen("level", levels, unseen)
    if rules.missing_level is None and where.get(MISSING_LEVEL) in unseen:
        notes.append(
            f"{MISSING_LEVEL!r} is a declared level, but rows without a public value are set "
            "aside; to give them that level use --missing-as-level (missing_as_level=True)"
        )
    return Placed(levels, atoms, rules, 0, tuple(notes), warnings)


def _names(
    table: Table, name: str, texts: Sequence[str], rules: Rules
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all levels in their order, and warnings about it."""
    if isinstance(rules.order, tuple):
        return rules.order, ()
    declared = dict.fromkeys((*(rules.levels or ()), *sorted(set(texts))))
    # Without a stated order the level of missing values is the last one.
    last = () if rules.missing_level is None else (rules.missing_level,)
    for level in last:
        declared.pop(level, None)
    if rules.order != "appearance":
        return (*sorted(declared), *last), ()
    seen: dict[str, None] = {}
    for batch in table.batches([name]):
        values, places = distinct(batch.column(0))
        cells = cells_of(values, f"column {name!r}").texts
        _, first = np.unique(places, return_index=True)
        seen.update(dict.fromkeys(cells[places[k]] for k in np.sort(first).tolist()))
    named = [text for text in seen if text in declared]
    warning = (
        f"levels of {rules.public!r} are numbered by their first appearance: another order of "
        "the rows gives other codes and another scale"
    )
    return (*named, *(text for text in declared if text not in seen), *last), (warning,)


def _notes_on_unseen(noun: str, support: Support, unseen: Sequence[int]) -> list[str]:
    """Return a note on the declared atoms that no row has, where a slip of the pen shows too."""
    if not unseen:
        return []
    names = [support.name(k) for k in unseen[:_SHOWN]]
    shown = ", ".join(names if noun == "number" else map(repr, names))
    more = ", ..." if len(unseen) > _SHOWN else ""
    return [
        f"{counted(len(unseen), f'declared {noun}')} in no row, of probability 0 but part of the "
        f"support: {shown}{more}"
    ]
