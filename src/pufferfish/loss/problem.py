# SPDX-License-Identifier: Apache-2.0
"""The loss of some releases as a list of problems, of which the largest loss counts.

For each adversary the rows of the table are one problem. Where the rows of one person are known
(strata), the people with k rows are a joint prior of k axes per released column, one more problem:
all rows of a person are released, independently given their values (theory, section 6). Where
nothing is known of such people for a secret of a pair, or their grid is too large, the worst cases
count, k times over.

The loss is a supremum over all outputs, for noise over a continuum, and is attained at one of
finitely many *witnesses*, so that it can be computed and proved: of a column with noise at an atom
(theory, section 2), of a region at an atom of the whole support (section 5). Outputs of several
columns, or rows, are a grid of finitely many cells, in C order.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pufferfish.loss.certificate import Witness
from pufferfish.loss.kernel import Axis, GridTooLarge, axis_of
from pufferfish.mechanisms import Mechanism
from pufferfish.priors.ambiguity import AmbiguitySet, Point
from pufferfish.priors.scenario import Pair, Scenario, positions
from pufferfish.tables.rules import Stratum

#: The mechanisms that are applied to each column, by its position on the scenario's product.
Releases = Mapping[int, Sequence[Mechanism]]

#: Cells of the grid of outputs up to which the loss is computed.
LARGEST_GRID = 1 << 24
#: The same for several rows of one person, times secrets.
LARGEST_STRATUM = 1 << 22
#: The same where channels have to be multiplied out in whole numbers.
_CHANNELS = 1 << 20


class Where(NamedTuple):
    """A cell of the grid of outputs, and positions of two secrets: ``first`` is likelier there."""

    cell: int
    first: int
    second: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Kernels, and what one adversary holds possible under each secret.

    One axis for each released column of each row. The sets are all points or all regions. A point
    holds the masses after the channels and before the noise, on the grid of outputs. Regions are
    over the atoms of the only axis. ``pairs`` are of positions among the ``secrets``; ``adversary``
    is a position in the scenario. ``rows`` is the number of rows of one person; 1 also where each
    row is a person of its own.
    """

    axes: tuple[Axis, ...]
    sets: tuple[AmbiguitySet, ...]
    pairs: tuple[tuple[int, int], ...]
    secrets: tuple[str, ...]
    adversary: int
    rows: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the grid of outputs."""
        return tuple(n for axis in self.axes for n in axis.shape)

    @property
    def cells(self) -> int:
        """Cells of the grid of outputs."""
        return math.prod(self.shape)

    @property
    def work(self) -> int:
        """Cells of all secrets."""
        return self.cells * len(self.secrets)

    @property
    def noises(self) -> list[tuple[int, Axis]]:
        """The axes with noise, each with the axis of the grid that it is passed over."""
        ends = np.cumsum([len(axis.shape) for axis in self.axes]).tolist()
        return [(end - 1, axis) for end, axis in zip(ends, self.axes, strict=True) if axis.noisy]

    @property
    def pure_noise(self) -> bool:
        """Whether every axis has Laplace noise and nothing else."""
        return all(axis.noisy and not axis.kinds for axis in self.axes)

    @property
    def points(self) -> list[Point]:
        """The sets if they are points, none if they are regions."""
        return [own for own in self.sets if isinstance(own, Point)]

    @property
    def comparisons(self) -> list[tuple[list[int], list[int]]]:
        """What is compared: the largest likelihood of some secrets, the smallest of others.

        For all pairs of points these are all secrets, in time linear in them. Else each secret is
        compared with those that it is paired with; not with itself, for its own region may hold two
        very different distributions.
        """
        everyone = list(range(len(self.secrets)))
        if self.points and len(self.pairs) == math.comb(len(everyone), 2):
            return [(everyone, everyone)]
        rivals: list[list[int]] = [[] for _ in everyone]
        for i, j in self.pairs:
            rivals[i].append(j)
            rivals[j].append(i)
        return [(own, [k]) for k, own in enumerate(rivals)]

    def witness(self, where: Where) -> Witness:
        """Return where a loss is attained, by names."""
        place = [int(k) for k in np.unravel_index(where.cell, self.shape)]
        texts: list[str] = []
        for axis in self.axes:
            texts += axis.texts(place[: len(axis.shape)])
            place = place[len(axis.shape) :]
        pair = self.secrets[where.first], self.secrets[where.second]
        return Witness(tuple(texts), pair, self.adversary, self.rows)


def largest(
    tops: Any, bottoms: Any, sides: tuple[list[int], list[int]], over: Callable[[Any, Any], Any]
) -> tuple[float, Where]:
    """Return the largest of tops ``over`` bottoms, shape (secrets, cells), for some secrets."""
    firsts, seconds = sides
    gaps = over(tops[firsts].max(axis=0), bottoms[seconds].min(axis=0))
    cell = int(gaps.argmax())
    first, second = tops[firsts, cell].argmax(), bottoms[seconds, cell].argmin()
    return float(gaps[cell]), Where(cell, firsts[int(first)], seconds[int(second)])


def problems_of(scenario: Scenario, releases: Releases) -> tuple[list[Problem], int]:
    """Return the problems of single rows, and those of one person's rows; none for no releases.

    The second answer is the largest number of rows of which only worst cases over the whole support
    are known (some secret of a pair has no such people, or their grid is too large); 0: none.

    Raises GridTooLarge where the grid of single rows is too large, or where noise and channels of
    one column are to be proved together for a region.
    """
    applied = {c: tuple(own) for c, own in sorted(releases.items()) if own}
    if not applied:
        return [], 0
    problems, unknown = [], 0
    for number, prior in enumerate(scenario.priors):
        if len(scenario.product.axes) == 1:
            problems.append(_column_problem(scenario, applied[0], number))
        else:
            single = Stratum(1, np.arange(scenario.product.size)[:, None], prior.counts)
            pairs = list(scenario.pairs)
            problems.append(_people_problem(scenario, applied, number, single, pairs))
        lacking = set(scenario.row_numbers)
        for stratum in prior.strata:
            have = {s for s in scenario.protected if stratum.counts[prior.row(s)].any()}
            pairs = [pair for pair in scenario.pairs if have.issuperset(pair)]
            with suppress(GridTooLarge):
                if pairs:
                    problems.append(_people_problem(scenario, applied, number, stratum, pairs))
                if len(pairs) == len(scenario.pairs):
                    lacking.remove(stratum.rows)
        unknown = max([unknown, *lacking])
    return problems, unknown


def _column_problem(scenario: Scenario, applied: Sequence[Mechanism], number: int) -> Problem:
    """Return the problem of single rows: on the atoms that have mass, or on all with a region."""
    secrets, sets = scenario.protected, scenario.sets[number]
    atoms = np.arange(scenario.support.size)
    points = [own for own in sets if isinstance(own, Point)]
    if points:
        atoms = np.flatnonzero(np.any([own.masses != 0 for own in points], axis=0))
    axis = axis_of(0, scenario.support, applied, atoms)
    if points:
        points = [Point(own.masses.take(atoms), own.total) for own in points]
        sets = _behind_channels(points, [axis], LARGEST_GRID)
    elif axis.noisy and axis.kinds:
        raise GridTooLarge
    return Problem((axis,), sets, positions(scenario.pairs, secrets), secrets, number)


def _people_problem(
    scenario: Scenario, applied: Releases, number: int, stratum: Stratum, pairs: Sequence[Pair]
) -> Problem:
    """Return the problem of the people with one number of rows, on the atoms that have mass."""
    secrets = tuple(s for s in scenario.protected if any(s in pair for pair in pairs))
    counts = [stratum.counts[scenario.priors[number].row(s)] for s in secrets]
    used = np.flatnonzero(np.any([own != 0 for own in counts], axis=0))
    sequences = stratum.sequences.take(used, axis=0)
    limit = LARGEST_GRID
    if stratum.rows > 1:
        limit = min(limit, LARGEST_STRATUM // len(secrets))
    axes: list[Axis] = []
    flat = np.zeros(len(used), dtype=np.int64)
    for row in range(stratum.rows):
        # Not all rows at once: NumPy 2.4 is wrong for more than 8,192 lines of one number.
        each = np.unravel_index(sequences[:, row], scenario.product.shape)
        for c, own in applied.items():
            present = np.zeros(scenario.product.shape[c], dtype=bool)
            present[each[c]] = True
            axes.append(axis_of(c, scenario.product.axes[c], own, np.flatnonzero(present)))
            if stratum.rows > 1 and math.prod(len(axis.atoms) for axis in axes) > limit:
                raise GridTooLarge
            flat = flat * len(axes[-1].atoms) + (np.cumsum(present) - 1).take(each[c])
    shape, points = tuple(len(axis.atoms) for axis in axes), []
    for masses in counts:
        # What is not released is summed out.
        grid = np.zeros(math.prod(shape), dtype=masses.dtype)
        np.add.at(grid, flat, masses.take(used))
        points.append(Point(grid.reshape(shape), int(masses.sum())))
    sets = _behind_channels(points, axes, limit)
    return Problem(tuple(axes), sets, positions(pairs, secrets), secrets, number, stratum.rows)


def _behind_channels(
    points: Iterable[Point], axes: Sequence[Axis], limit: int
) -> tuple[Point, ...]:
    """Return what the masses become behind the channels of all axes, exactly."""
    channels = any(axis.kinds for axis in axes)
    if math.prod(n for a in axes for n in a.shape) > (min(limit, _CHANNELS) if channels else limit):
        raise GridTooLarge
    if not channels:
        return tuple(points)
    found = []
    for point in points:
        array, at = point.masses.astype(object), 0
        for axis in axes:
            if axis.kinds:
                columns = np.array(list(axis.kinds.values()), dtype=object)
                moved = np.moveaxis(array, at, -1)
                if axis.noisy:
                    array = np.moveaxis(moved[..., None, :] * columns, (-2, -1), (at, at + 1))
                else:
                    array = np.moveaxis(moved @ columns.T, -1, at)
            at += len(axis.shape)
        found.append(Point(array, point.total * math.prod(axis.unit for axis in axes)))
    return tuple(found)
