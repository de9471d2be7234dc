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
from dataclasses import replace
from functools import reduce

import numpy as np

from pufferfish.errors import InputError
from pufferfish.loss.kernel import Axis, GridTooLarge, Mechanism, Problem, axis_of
from pufferfish.numbers import INT64_SAFE
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.priors.scenario import Pair, Scenario
from pufferfish.tables.rules import Stratum

#: The mechanisms that are applied to each column, by its position on the scenario's product.
Releases = Mapping[int, Sequence[Mechanism]]

#: Cells of the grid of outputs up to which the loss is computed.
LARGEST_GRID = 1 << 24
#: The same for the rows of one person, times secrets.
LARGEST_STRATUM = 1 << 22
#: The same where channels have to be multiplied out in whole numbers.
_CHANNELS = 1 << 20


def problems_of(
    scenario: Scenario, releases: Releases, limit: int = LARGEST_GRID
) -> tuple[list[Problem], int]:
    """Return the problem of single rows, then those of one person's rows; none for no releases.

    The second answer is the largest number of rows of which only worst cases over the whole support
    are known (some secret of a pair has no such people, or their grid is too large); 0: none.

    Raises GridTooLarge where the grid of single rows has more cells than ``limit``, or where noise
    and channels of one column are to be proved together for a region.
    """
    applied = {c: tuple(own) for c, own in sorted(releases.items()) if own}
    if not applied:
        return [], 0
    problems, unknown = [_rows_problem(scenario, applied, limit)], 0
    for rows in sorted({stratum.rows for strata in scenario.strata for stratum in strata}):
        for number, prior in enumerate(scenario.priors):
            pairs: list[Pair] = []
            for own in (own for own in prior.strata if own.rows == rows):
                have = {s for s in scenario.protected if own.counts[prior.row(s)].any()}
                pairs = [pair for pair in scenario.pairs if have.issuperset(pair)]
                try:
                    if pairs:
                        args = scenario, applied, limit, number, own, pairs
                        problems.append(_stratum_problem(*args))
                except GridTooLarge:
                    pairs = []
            if len(pairs) < len(scenario.pairs):
                unknown = max(unknown, rows)
    return problems, unknown


def _rows_problem(scenario: Scenario, applied: Releases, limit: int) -> Problem:
    """Return the problem of single rows: on the atoms that have mass, or on all with a region."""
    shape, sets = scenario.product.shape, scenario.sets()
    numbers = tuple(range(len(sets)))
    if scenario.has_region:
        if len(shape) > 1:
            raise InputError("a region is for the prior of one column, not of several together")
        axis = axis_of(0, scenario.support, applied[0], np.arange(shape[0]))
        if axis.noisy and axis.columns is not None:
            raise GridTooLarge
        return _problem(scenario.protected, scenario.pairs, (axis,), sets, numbers)
    silent = tuple(c for c in range(len(shape)) if c not in applied)
    points = [
        [_summed(own, shape, silent) for own in beliefs if isinstance(own, Point)]
        for beliefs in sets
    ]
    axes = []
    for at, c in enumerate(applied):
        others = tuple(d for d in range(len(applied)) if d != at)
        each = ((own.masses != 0).any(axis=others) for row in points for own in row)
        used = reduce(np.logical_or, each)
        atoms = np.flatnonzero(used)
        axes.append(axis_of(c, scenario.product.axes[c], applied[c], atoms))
        if len(atoms) < len(used):
            points = [
                [Point(np.take(own.masses, atoms, axis=at), own.total) for own in row]
                for row in points
            ]
    return _problem(scenario.protected, scenario.pairs, axes, points, numbers, 1, limit)


def _summed(point: Point, shape: tuple[int, ...], silent: tuple[int, ...]) -> Point:
    """Return the masses of the released columns; what is not released is summed out."""
    masses = point.masses.reshape(shape)
    if silent:
        exact = masses.astype(object) if point.total >= INT64_SAFE else masses
        masses = exact.sum(axis=silent)
    return Point(masses, point.total)


def _problem(
    secrets: tuple[str, ...],
    pairs: Sequence[tuple[str, str]],
    axes: Sequence[Axis],
    adversaries: Sequence[Sequence[Point | Region]],
    numbers: tuple[int, ...],
    rows: int = 1,
    limit: int = LARGEST_GRID,
) -> Problem:
    """Return a problem, its points sent through the channels of all axes."""
    place = {secret: k for k, secret in enumerate(secrets)}
    named = tuple((place[a], place[b]) for a, b in pairs)
    problem = Problem(tuple(axes), (), named, secrets, numbers, rows)
    if problem.cells > (min(limit, _CHANNELS) if any(a.columns for a in axes) else limit):
        raise GridTooLarge
    sets = tuple(tuple(_behind(own, axes) for own in beliefs) for beliefs in adversaries)
    return replace(problem, adversaries=sets)


def _behind(own: Point | Region, axes: Sequence[Axis]) -> Point | Region:
    """Return what a point's masses become behind all channels, exactly."""
    if isinstance(own, Region) or not any(axis.columns for axis in axes):
        return own
    array, at, total = own.masses.astype(object), 0, own.total
    for axis in axes:
        if axis.columns is not None:
            columns = np.empty((len(axis.columns), len(axis.atoms)), dtype=object)
            columns[:] = axis.columns
            moved = np.moveaxis(array, at, -1)
            if axis.noisy:
                array = np.moveaxis(moved[..., None, :] * columns, (-2, -1), (at, at + 1))
            else:
                array = np.moveaxis(moved @ columns.T, -1, at)
        at, total = at + len(axis.shape), total * axis.unit
    return Point(array, total)


def _stratum_problem(
    scenario: Scenario,
    applied: Releases,
    limit: int,
    number: int,
    stratum: Stratum,
    pairs: Sequence[Pair],
) -> Problem:
    """Return the problem of the people with one number of rows, under one adversary."""
    secrets = tuple(s for s in scenario.protected if any(s in pair for pair in pairs))
    counts = [stratum.counts[scenario.priors[number].row(s)] for s in secrets]
    used = np.any(counts, axis=0)
    each = np.unravel_index(stratum.sequences[used], scenario.product.shape)
    limit = min(limit, LARGEST_STRATUM // len(secrets))
    axes: list[Axis] = []
    flat = np.zeros(int(used.sum()), dtype=np.int64)
    for row in range(stratum.rows):
        for c, own in applied.items():
            atoms, where = np.unique(each[c][:, row], return_inverse=True)
            axes.append(axis_of(c, scenario.product.axes[c], own, atoms))
            if math.prod(len(axis.atoms) for axis in axes) > limit:
                raise GridTooLarge
            flat = flat * len(atoms) + where.reshape(-1)
    shape = tuple(len(axis.atoms) for axis in axes)
    points = []
    for masses in counts:
        grid = np.zeros(math.prod(shape), dtype=np.int64)
        np.add.at(grid, flat, masses[used])
        points.append(Point(grid.reshape(shape), int(masses.sum())))
    return _problem(secrets, pairs, axes, [points], (number,), stratum.rows, limit)
