# SPDX-License-Identifier: Apache-2.0
"""Several rows of one person, each with values in several columns: one axis per row and column.

All rows of a person are released, so every release of a column is one release for each row that has
a value in it. Together they are independent given the values of all rows, and the joint loss of a
person's rows is the joint loss on the prior of these values, with an axis for every place: the r-th
row in one column (theory, section 6). Places at which everybody has the same value tell nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

import numpy as np

from pufferfish.arrays import CountArray, IntArray
from pufferfish.joint.axes import Axis
from pufferfish.joint.bounds import Bound, Known, smallest_bound
from pufferfish.joint.record import GridTooLarge
from pufferfish.joint.worst import total, worst_case
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.support import Lattice, Levels, Support, lattice_of

#: Cells of the grid, times secrets, up to which the joint loss of a unit's rows is computed.
MOST_CELLS = 1 << 22
#: The same for some of them, where all would be too many: it is a bound at best.
PART_CELLS = 1 << 20
#: Pairs of secrets that are bounded one by one where not everything can be counted together.
_MOST_PAIRS = 10

_Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Units with values at the same places, counted by the sequence of these values.

    Attributes
    ----------
    atoms : int64 array, shape (q, p)
        The q distinct sequences: an atom for each of the p places.
    counts : int64 array, shape (m, q)
        How many units of each secret have that sequence.
    columns, rows : tuple of int, length p
        The column of each place, and its row among the unit's, from 0.
    """

    atoms: IntArray
    counts: IntArray
    columns: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, sequences: IntArray, counts: IntArray, shape: Sequence[int]) -> UnitRows:
        """Take them from sequences of combinations of values, which fill every place.

        Parameters
        ----------
        sequences : int64 array, shape (q, k)
            Of k rows each: the atom of the product of all columns.
        counts : int64 array, shape (m, q)
        shape : sequence of int
            Atoms of every column.
        """
        rows, width = sequences.shape[1], len(shape)
        each = np.unravel_index(sequences, tuple(shape))
        atoms: IntArray = np.stack(each, axis=2).reshape(len(sequences), rows * width)
        columns = tuple(range(width)) * rows
        return cls(atoms, counts, columns, tuple(np.repeat(np.arange(rows), width).tolist()))

    @property
    def work(self) -> int:
        """About how many cells are computed for a bound."""
        sizes = [len(np.unique(column)) for column in self.atoms.T]
        cells = prod(sizes)
        return cells if cells * len(self.counts) <= MOST_CELLS else PART_CELLS


@dataclass(frozen=True)
class UnitBound(Bound):
    """A bound of the joint loss of everything that is released of all rows of one person.

    Attributes
    ----------
    rows : int
        The number of rows at which it is attained.
    """

    rows: int = 1

    @property
    def how(self) -> str:
        """What the bound is made of, in words."""
        return f"{super().how}; of all {self.rows} rows of one person"

    @classmethod
    def of(cls, bound: Bound, rows: int) -> UnitBound:
        """Return the bound for units with that number of rows."""
        return cls(bound.upper, bound.name, bound.joint, bound.within, bound.terms, rows)


@dataclass(frozen=True, eq=False)
class Places:
    """The places of some units that tell something.

    Attributes
    ----------
    axes : list of Axis
        One for each place, on the atoms that occur there, with what is released of its column.
    columns, rows : list of int
        As in :class:`UnitRows`.
    counted : list of int
        Which of the axes the masses are on.
    masses : integer array, shape (m, n_1, ..., n_j)
    """

    axes: list[Axis]
    columns: list[int]
    rows: list[int]
    counted: list[int]
    masses: CountArray

    @property
    def complete(self) -> bool:
        """Whether all places are counted together."""
        return len(self.counted) == len(self.axes)


def places_of(
    units: UnitRows,
    released: Sequence[Axis],
    pairs: _Pairs,
    noisy: Collection[int] = (),
    limit: int | None = None,
) -> Places:
    """Return the places of units as axes, and the counts of as many as can be spread out.

    Places whose worst cases are the smallest are left out of the counts first: they cost the least.

    Parameters
    ----------
    units : UnitRows
    released : sequence of Axis
        The columns, with everything that is released of them.
    pairs : sequence of (int, int)
        Rows of the counts.
    noisy : collection of int
        Columns that noise is yet to be put on: they are kept, though nothing may be released yet.
    limit : int, optional
        Cells, times secrets, that the counts may have; by default :data:`MOST_CELLS`, or
        :data:`PART_CELLS` where that is not enough for all places.
    """
    most = MOST_CELLS if limit is None else min(limit, MOST_CELLS)
    chosen = sorted({row for pair in pairs for row in pair})
    used = units.counts[chosen].any(axis=0)
    axes: list[Axis] = []
    at: list[int] = []
    found: list[IntArray] = []
    for place, column in enumerate(units.columns):
        if not released[column].releases and column not in noisy:
            continue
        atoms, where = np.unique(units.atoms[used, place], return_inverse=True)
        if len(atoms) > 1:
            axis, kept = _part(released[column], atoms, column in noisy)
            axes.append(axis)
            at.append(place)
            found.append(kept[where.reshape(-1)])
    weights = [
        total([worst_case(release, axis.support) for release in axis.releases]) for axis in axes
    ]
    order = sorted(
        range(len(axes)),
        key=lambda k: (weights[k] is None, weights[k] or Fraction(0)),
        reverse=True,
    )
    if len(chosen) * prod(axis.support.size for axis in axes) > most:
        most = min(most, PART_CELLS)
    counted, cells = [], len(chosen)
    for k in order:
        if cells * axes[k].support.size <= most:
            counted.append(k)
            cells *= axes[k].support.size
    counted.sort()
    shape = [axes[k].support.size for k in counted]
    flat = np.zeros(int(used.sum()), dtype=np.int64)
    for k, size in zip(counted, shape, strict=True):
        flat = flat * size + found[k]
    masses = np.zeros((len(units.counts), prod(shape)), dtype=np.int64)
    for row in chosen:
        np.add.at(masses[row], flat, units.counts[row][used])
    return Places(
        axes,
        [units.columns[place] for place in at],
        [units.rows[place] for place in at],
        counted,
        masses.reshape(len(masses), *shape),
    )


def smallest_unit_bound(
    units: UnitRows,
    released: Sequence[Axis],
    labels: Sequence[Sequence[str]],
    pairs: _Pairs,
    others: Sequence[tuple[Axis, Sequence[str]]] = (),
    limit: int | None = None,
) -> Bound:
    """Return the least bound that was found of the loss of all rows of a unit together.

    Source: theory, section 6.

    Parameters
    ----------
    units : UnitRows
        What is known of the units with this number of rows.
    released : sequence of Axis
        The columns of the units' places, with everything that is released of them.
    labels : sequence of sequences of str
        What each release of each column is called.
    pairs : sequence of (int, int)
        Rows of the units' counts.
    others : sequence of (Axis, labels)
        Places of which nothing is known.
    limit : int, optional
        Cells that a grid may have; by default :data:`MOST_CELLS`.

    Raises
    ------
    InputError
        As :func:`smallest_bound`.
    """
    bound = _bound(units, released, labels, pairs, others, limit)
    if bound.name == "joint loss" or not 1 < len(pairs) <= _MOST_PAIRS:
        return bound
    # A single pair has fewer values, so that more of them can be counted together.
    each = [_bound(units, released, labels, [pair], others, limit) for pair in pairs]
    largest = max(each, key=_size)
    return min(bound, largest, key=_size)


def unknown_unit_bound(places: Sequence[tuple[Axis, Sequence[str]]]) -> Bound:
    """Return the bound for places of which nothing is known: the sum of all worst cases."""
    terms = [
        worst_case(release, axis.support, label=label)
        for axis, own in places
        for release, label in zip(axis.releases, own, strict=True)
    ]
    return Bound(total(terms), "worst-case sum", None, (), tuple(terms))


def _bound(
    units: UnitRows,
    released: Sequence[Axis],
    labels: Sequence[Sequence[str]],
    pairs: _Pairs,
    others: Sequence[tuple[Axis, Sequence[str]]],
    limit: int | None,
) -> Bound:
    places = places_of(units, released, pairs, limit=limit)
    several = len(set(units.rows)) > 1
    named = [
        [f"{label} in row {row + 1}" if several else label for label in labels[column]]
        for column, row in zip(places.columns, places.rows, strict=True)
    ]
    axes = [*places.axes, *(axis for axis, _ in others)]
    named += [list(own) for _, own in others]
    knowns = [Known(tuple(places.counted), [places.masses], pairs)] if places.counted else []
    return smallest_bound(axes, knowns, named, MOST_CELLS if limit is None else limit)


def exactly_counted(
    units: UnitRows, released: Sequence[Axis], pairs: _Pairs, noisy: Collection[int] = ()
) -> Places:
    """Return the places of units, all counted together.

    Raises
    ------
    GridTooLarge
        If they cannot be.
    """
    places = places_of(units, released, pairs, noisy)
    if not places.complete:
        cells = prod(axis.support.size for axis in places.axes)
        raise GridTooLarge(cells, MOST_CELLS)
    return places


def _part(axis: Axis, atoms: IntArray, noisy: bool) -> tuple[Axis, IntArray]:
    """Return an axis on some of its atoms, and where each of these is; codes keep distances."""
    support = axis.support
    noise = noisy or any(isinstance(release, DiscreteLaplace) for release in axis.releases)
    part: Support
    if isinstance(support, Lattice):
        index = support.index[atoms]
        part = Lattice(support.step, support.origin + int(index[0]), index - index[0])
    elif not noise:
        part = Levels(tuple(support.names[k] for k in atoms.tolist()), support.ordered)
    elif all(isinstance(release, DiscreteLaplace) for release in axis.releases):
        # Noise is on the codes, which are numbers; of a part of the levels they would be others.
        index = lattice_of(support).index[atoms]
        part = Lattice(Fraction(1), int(index[0]), index - index[0])
    else:  # beside a channel the levels keep their names
        return axis, atoms
    return replace(axis, support=part), np.arange(len(atoms), dtype=np.int64)


def _size(bound: Bound) -> tuple[bool, Fraction]:
    return bound.upper is None, bound.upper or Fraction(0)
