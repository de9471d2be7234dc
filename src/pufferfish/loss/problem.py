# SPDX-License-Identifier: Apache-2.0
"""The loss of some releases as a list of problems, of which the largest loss counts.

The rows of a table are one problem. Where the rows of one person are known (strata), the people
with k rows are a joint prior of k axes per released column, one more problem for each adversary:
all rows of a person are released, independently given their values (theory, section 6). Where
nothing is known of such people for a secret of a pair, or their grid is too large, the worst cases
count, k times over.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.loss.kernel import Axis, GridTooLarge, Mechanism, Problem, axis_of
from pufferfish.numbers import INT64_SAFE, CountArray, IntArray
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.priors.scenario import Scenario

#: The mechanisms that are applied to each column, by its position on the scenario's product.
Releases = Mapping[int, Sequence[Mechanism]]

#: Cells of the grid of outputs up to which the loss is computed.
LARGEST_GRID = 1 << 24
#: The same for the rows of one person, times secrets.
LARGEST_STRATUM = 1 << 22


def problems_of(
    scenario: Scenario, releases: Releases, limit: int = LARGEST_GRID
) -> tuple[list[Problem], int]:
    """Return the problem of single rows, then those of one person's rows; none for no releases.

    The second answer is the largest number of rows of which only worst cases over the whole support
    are known (:func:`unknown_rows`, or their grid is too large); 0: none.

    Raises GridTooLarge where the grid of single rows has more cells than ``limit``, or where noise
    and channels of one column are to be proved together for a region.
    """
    applied = {c: tuple(own) for c, own in sorted(releases.items()) if own}
    if not applied:
        return [], 0
    problems, bounded = [_rows_problem(scenario, applied, limit)], unknown_rows(scenario)
    for number, mine in enumerate(_people(scenario)):
        for rows, (sequences, counts) in mine.items():
            if not any(a in counts and b in counts for a, b in scenario.pairs):
                continue
            try:
                problem = _stratum_problem(scenario, applied, limit, number, sequences, counts)
                problems.append(problem)
            except GridTooLarge:
                bounded = max(bounded, rows)
    return problems, bounded


def unknown_rows(scenario: Scenario) -> int:
    """Return the largest number of rows that people have, but not under both secrets of a pair.

    Nothing is known of such people but worst cases over the whole support, once for each row; 0
    where there are none.
    """
    people = _people(scenario)
    unknown = [0]
    for rows in {k for mine in people for k in mine}:
        for mine in people:
            counts = mine[rows][1] if rows in mine else {}
            if not all(a in counts and b in counts for a, b in scenario.pairs):
                unknown.append(rows)
    return max(unknown)


def _rows_problem(scenario: Scenario, applied: Releases, limit: int) -> Problem:
    product, sets = scenario.product, scenario.sets()
    pairs = _positions(scenario)
    numbers = tuple(range(len(sets)))
    if any(isinstance(own, Region) for beliefs in sets for own in beliefs):
        # The values that nobody has count as well (theory, section 5).
        if len(product.axes) > 1:
            raise InputError("a region is for the prior of one column, not of several together")
        axis = axis_of(product.axes[0], applied[0])
        if axis.noisy and axis.columns is not None:
            raise GridTooLarge(len(axis.columns) * len(axis.atoms), 0)
        return Problem((axis,), sets, pairs, scenario.protected, (0,), numbers)
    columns = tuple(applied)
    silent = tuple(c for c in range(len(product.axes)) if c not in applied)
    arrays: list[list[CountArray]] = []
    totals = []
    for beliefs in sets:
        points = [own for own in beliefs if isinstance(own, Point)]
        arrays.append([_summed(own, product.shape, silent) for own in points])
        totals.append([own.total for own in points])
    axes = []
    for at, c in enumerate(columns):
        used = _used([array for row in arrays for array in row], at)
        atoms = np.flatnonzero(used)
        axes.append(axis_of(product.axes[c], applied[c], atoms))
        if len(atoms) < len(used):
            arrays = [[np.take(array, atoms, axis=at) for array in row] for row in arrays]
    adversaries = tuple(
        tuple(Point(array, total) for array, total in zip(row, own, strict=True))
        for row, own in zip(arrays, totals, strict=True)
    )
    problem = Problem(tuple(axes), adversaries, pairs, scenario.protected, columns, numbers)
    if problem.cells > limit:
        raise GridTooLarge(problem.cells, limit)
    return problem


def _positions(scenario: Scenario) -> tuple[tuple[int, int], ...]:
    place = {secret: k for k, secret in enumerate(scenario.protected)}
    return tuple((place[a], place[b]) for a, b in scenario.pairs)


def _summed(point: Point, shape: tuple[int, ...], silent: tuple[int, ...]) -> CountArray:
    """Return the masses of the released columns; what is not released is summed out."""
    masses = point.masses.reshape(shape)
    if point.total >= INT64_SAFE and masses.dtype != object:
        masses = masses.astype(object)
    return masses.sum(axis=silent) if silent else masses


def _used(arrays: Sequence[CountArray], at: int) -> Any:
    """Return which positions of one axis have mass under any secret."""
    used = np.zeros(arrays[0].shape[at], dtype=bool)
    others = tuple(d for d in range(arrays[0].ndim) if d != at)
    for array in arrays:
        used |= (array != 0).any(axis=others)
    return used


#: The counts of people by secret, of those secrets that have any.
People = dict[str, CountArray]


def _people(scenario: Scenario) -> list[dict[int, tuple[IntArray, People]]]:
    """Return for each adversary the people of protected secrets, by their number of rows."""
    found = []
    for prior, strata in zip(scenario.priors, scenario.strata, strict=True):
        mine = {}
        for stratum in strata:
            counts = {s: stratum.counts[prior.row(s)] for s in scenario.protected}
            have = {s: own for s, own in counts.items() if own.any()}
            if have:
                mine[stratum.rows] = stratum.sequences, have
        found.append(mine)
    return found


def _stratum_problem(
    scenario: Scenario,
    applied: Releases,
    limit: int,
    number: int,
    sequences: IntArray,
    counts: People,
) -> Problem:
    """Return the problem of the people with one number of rows, under one adversary."""
    pairs = [(a, b) for a, b in scenario.pairs if a in counts and b in counts]
    secrets = tuple(s for s in scenario.protected if any(s in pair for pair in pairs))
    used = np.any([counts[s] != 0 for s in secrets], axis=0)
    each = np.unravel_index(sequences[used], scenario.product.shape)
    limit = min(limit, LARGEST_STRATUM // len(secrets))
    axes: list[Axis] = []
    flat = np.zeros(int(used.sum()), dtype=np.int64)
    for row in range(sequences.shape[1]):
        for c, own in applied.items():
            atoms, where = np.unique(each[c][:, row], return_inverse=True)
            axes.append(axis_of(scenario.product.axes[c], own, atoms))
            cells = math.prod(max(len(axis.atoms), *axis.shape) for axis in axes)
            if cells > limit:
                raise GridTooLarge(cells, limit)
            flat = flat * len(atoms) + where.reshape(-1)
    shape = tuple(len(axis.atoms) for axis in axes)
    points = []
    for s in secrets:
        masses = np.zeros(math.prod(shape), dtype=np.int64)
        np.add.at(masses, flat, counts[s][used])
        points.append(Point(masses.reshape(shape), int(counts[s].sum())))
    problem = Problem(
        axes=tuple(axes),
        adversaries=(tuple(points),),
        pairs=tuple((secrets.index(a), secrets.index(b)) for a, b in pairs),
        secrets=secrets,
        columns=tuple(applied) * sequences.shape[1],
        numbers=(number,),
        rows=sequences.shape[1],
    )
    if problem.cells > limit:
        raise GridTooLarge(problem.cells, limit)
    return problem
