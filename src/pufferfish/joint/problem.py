# SPDX-License-Identifier: Apache-2.0
"""The joint problem in exact integers: joint masses, merged axes, pairs; signs and zeros decided.

The loss of all releases together is the largest log-ratio over the product grid of the outputs of
all columns (theory, section 6). Whether it is infinite depends only on which outputs each secret
can cause, and whether it is 0 only on the masses behind the channels (the kernel of Laplace noise
is invertible): both are decided here without any rounding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat

from pufferfish.arrays import INT64_SAFE, CountArray
from pufferfish.errors import InputError
from pufferfish.joint.axes import Axis, Merged, merged
from pufferfish.joint.record import GridTooLarge, JointWitness

#: Cells of the grid of outputs up to which the loss is computed.
LARGEST_GRID = 1 << 24

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Problem:
    """Joint masses of the columns that something is released of, on the atoms that have mass.

    Attributes
    ----------
    masses : list of integer arrays, shape (m, n_1, ..., n_k)
        One per adversary: exact numerators for the m protected secrets.
    totals : list of list of int, shape (m,)
        Their denominators.
    merged : list of Merged
        One per remaining column.
    pairs : list of (int, int)
        Rows of ``masses``.
    rows : list of int
        The rows of the masses that were given, for each row here.
    columns : list of int
        The position of each remaining column among the axes that were given.
    axes : tuple of Axis
        Those that were given.
    """

    masses: list[CountArray]
    totals: list[list[int]]
    merged: list[Merged]
    pairs: list[tuple[int, int]]
    rows: list[int]
    columns: list[int]
    axes: tuple[Axis, ...]

    @property
    def all_pairs(self) -> bool:
        """Whether every two rows are a pair: then max - min over the rows suffices."""
        m = len(self.rows)
        return len(self.pairs) == m * (m - 1) // 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the grid of outputs."""
        return tuple(n for axis in self.merged for n in axis.shape)

    @property
    def cells(self) -> int:
        """Cells of the grid of outputs."""
        return math.prod(self.shape)

    @property
    def noisy(self) -> bool:
        """Whether any axis has Laplace noise."""
        return any(axis.noisy for axis in self.merged)

    @property
    def exact(self) -> bool:
        """Whether no release was replaced by something that tells more."""
        return all(axis.exact for axis in self.merged)

    def witness(self, cell: int, pair: tuple[int, int], adversary: int) -> JointWitness:
        """Name a cell of the grid (its position in C order) and two rows."""
        place = [int(k) for k in np.unravel_index(cell, self.shape)] if self.shape else []
        texts: list[tuple[str, ...]] = [() for _ in self.axes]
        for axis, column in zip(self.merged, self.columns, strict=True):
            own, place = place[: len(axis.shape)], place[len(axis.shape) :]
            texts[column] = axis.texts(tuple(own))
        return JointWitness(tuple(texts), (self.rows[pair[0]], self.rows[pair[1]]), adversary)

    def infinite(self) -> tuple[int, tuple[int, int], int] | None:
        """Return a cell that one secret of a pair can cause and the other cannot, or None.

        Returns
        -------
        (cell, pair, adversary) or None
            The first row of the pair is the one that can.
        """
        for rho, masses in enumerate(self.masses):
            signs = [self._possible(row != 0) for row in masses]
            for i, j in self.pairs:
                differ = signs[i] != signs[j]
                if differ.any():
                    at = int(np.argmax(differ))
                    pair = (i, j) if signs[i].reshape(-1)[at] else (j, i)
                    return self._spread(at), pair, rho
        return None

    def zero(self) -> bool:
        """Whether the loss is exactly 0: all pairs have the same masses behind the channels."""
        for rho, masses in enumerate(self.masses):
            totals = self.totals[rho]
            alike = [_alike(masses[i], totals[i], masses[j], totals[j]) for i, j in self.pairs]
            if all(alike):
                continue
            if all(axis.columns is None or axis.noisy for axis in self.merged):
                return False
            for (i, j), same in zip(self.pairs, alike, strict=True):
                if not same and not _alike(
                    self.behind(rho, i), totals[i], self.behind(rho, j), totals[j]
                ):
                    return False
        return True

    def behind(self, rho: int, row: int) -> CountArray:
        """Return what a secret's masses become behind all channels, exactly, on the grid.

        Returns
        -------
        integer array, shape of the grid
            Up to a factor that is the same for all secrets; before the noise.
        """
        array: CountArray = self.masses[rho][row]
        at = 0
        for axis in self.merged:
            if axis.columns is not None:
                array = _through(array, at, axis)
            at += len(axis.shape)
        return array

    def _possible(self, signs: npt.NDArray[Any]) -> BoolArray:
        """Return which outputs have positive likelihood; noise reaches every place (length 1)."""
        at = 0
        for axis in self.merged:
            if axis.columns is not None:
                reached = np.array([[v > 0 for v in column] for column in axis.columns])
                # Sums of zeros and ones are exact in doubles.
                moved = np.moveaxis(signs, at, -1).astype(np.float64) @ reached.T.astype(np.float64)
                signs = np.moveaxis(moved > 0, -1, at)
                at += 1
                if axis.noisy:
                    signs, at = np.expand_dims(signs, at), at + 1
            else:
                signs = np.any(signs, axis=at, keepdims=True) if axis.noisy else signs
                at += 1
        return signs

    def _spread(self, at: int) -> int:
        """Return a cell of the whole grid for one of the grid whose noisy axes have length 1."""
        shape: list[int] = []
        for axis in self.merged:
            shape += [*axis.shape[:-1], 1] if axis.noisy else axis.shape
        place = np.unravel_index(at, shape) if shape else ()
        return int(np.ravel_multi_index(place, self.shape)) if shape else 0


def make_problem(
    masses: Sequence[CountArray],
    axes: Sequence[Axis],
    pairs: Sequence[tuple[int, int]],
    totals: Sequence[Sequence[int]] | None = None,
    limit: int = LARGEST_GRID,
) -> Problem:
    """Check the joint masses, sum out what is not released and merge the rest.

    Parameters
    ----------
    masses : sequence of integer arrays, shape (m, n_1, ..., n_k)
        One per adversary: exact numerators of P_s(x_1, ..., x_k).
    axes : sequence of Axis
        One per column, of n_1, ..., n_k atoms.
    pairs : sequence of (int, int)
        Rows of secrets.
    totals : sequence of sequences of int, shape (m,), optional
        The denominators, for a check: they must be the sums.
    limit : int
        Cells that the grid of outputs may have.

    Raises
    ------
    InputError
        If shapes disagree, a mass is negative, a total is not the sum, or a pair names no rows.
    GridTooLarge
        If the grid has more cells than the limit.
    """
    arrays = [_integers(array) for array in masses]
    _check_shapes(arrays, axes, pairs)
    chosen: dict[tuple[int, int], None] = {}
    for i, j in pairs:
        chosen.setdefault((min(i, j), max(i, j)))
    rows = sorted({row for pair in chosen for row in pair})
    place = {row: k for k, row in enumerate(rows)}
    # Rows whose order is kept are not copied; no array of the caller's is written to.
    arrays = [a if rows == list(range(len(a))) else a[rows] for a in arrays]
    sums = [_sums(array) for array in arrays]
    arrays = [
        a.astype(object) if a.dtype != object and max(own) >= INT64_SAFE else a
        for a, own in zip(arrays, sums, strict=True)
    ]
    for rho, own in enumerate(sums):
        if totals is not None and own != [int(totals[rho][row]) for row in rows]:
            raise InputError("the total of a secret must be the sum of its joint masses")
        if 0 in own:
            raise InputError("a secret of a pair has no mass: its joint masses sum to 0")
    silent = [k for k, axis in enumerate(axes) if not axis.releases]
    columns = [k for k, axis in enumerate(axes) if axis.releases]
    if silent:
        arrays = [a.sum(axis=tuple(k + 1 for k in silent)) for a in arrays]
    reduced: list[Merged] = []
    for at, k in enumerate(columns):
        others = tuple(d for d in range(len(columns) + 1) if d != at + 1)
        used = np.zeros(axes[k].support.size, dtype=bool)
        for array in arrays:
            used |= (array != 0).any(axis=others)
        atoms = np.flatnonzero(used)
        reduced.append(merged(axes[k], atoms))
        if len(atoms) < len(used):
            arrays = [np.take(array, atoms, axis=at + 1) for array in arrays]
    renamed = [(place[i], place[j]) for i, j in chosen]
    problem = Problem(arrays, sums, reduced, renamed, rows, columns, tuple(axes))
    if problem.cells > limit:
        raise GridTooLarge(problem.cells, limit)
    return problem


def grid_size(axes: Sequence[Axis]) -> int:
    """Return an upper bound of the cells of the grid of outputs, without looking at any mass.

    Raises
    ------
    InputError, GridTooLarge
        As :func:`pufferfish.joint.axes.merged`.
    """
    sizes = [
        math.prod(merged(axis, np.arange(axis.support.size)).shape)
        for axis in axes
        if axis.releases
    ]
    return math.prod(sizes)


def _integers(array: Any) -> CountArray:
    given = np.asarray(array)
    if given.dtype == object:
        return given
    if given.dtype.kind not in "iu" or given.dtype.itemsize > 8 or given.dtype == np.uint64:
        raise InputError(f"joint masses must be whole numbers, but an array of {given.dtype}")
    return given.astype(np.int64, copy=False)


def _check_shapes(
    arrays: Sequence[CountArray], axes: Sequence[Axis], pairs: Sequence[tuple[int, int]]
) -> None:
    if not arrays or not pairs:
        raise InputError("a joint loss needs joint masses and a pair of secrets")
    shape = tuple(axis.support.size for axis in axes)
    for array in arrays:
        if array.shape != (len(arrays[0]), *shape):
            raise InputError(
                f"joint masses must have the shape (secrets, {', '.join(map(str, shape))}), but "
                f"{array.shape} was given"
            )
        if array.size and bool((array < 0).any()):
            raise InputError("a joint mass is negative")
    for i, j in pairs:
        if i == j or not (0 <= i < len(arrays[0]) and 0 <= j < len(arrays[0])):
            raise InputError(f"a pair must name two rows of the joint masses, but {i}, {j}")


def _sums(array: CountArray) -> list[int]:
    sums = []
    for row in array.reshape(len(array), -1):
        if row.dtype != object and int(row.max(initial=0)) >= INT64_SAFE // max(1, row.size):
            sums.append(sum(row.tolist()))
        else:
            sums.append(int(row.sum()))
    return sums


def _alike(one: CountArray, total: int, other: CountArray, other_total: int) -> bool:
    """Whether two secrets have the same probabilities, in integers."""
    divisor = math.gcd(total, other_total)
    left, right = other_total // divisor, total // divisor
    if max(left, right) * max(total, other_total) >= INT64_SAFE:
        one, other = one.astype(object), other.astype(object)
    same: BoolArray = one * left == other * right
    return bool(same.all())


def _through(array: CountArray, at: int, axis: Merged) -> CountArray:
    """Send one axis through its channel, exactly: to outputs, or to (outputs, atoms)."""
    columns = axis.columns or []
    moved = np.moveaxis(array, at, -1).astype(object) * np.array(axis.weights, dtype=object)
    if axis.noisy:
        likelihoods = np.empty((len(columns), len(axis.atoms)), dtype=object)
        likelihoods[:] = columns
        spread: CountArray = moved[..., None, :] * likelihoods
        return np.moveaxis(spread, (-2, -1), (at, at + 1))
    lines = moved.reshape(-1, moved.shape[-1])
    product = fmpz_mat(lines.tolist()) * fmpz_mat([list(c) for c in zip(*columns, strict=True)])
    result = np.array([int(v) for v in product.entries()], dtype=object)
    return np.moveaxis(result.reshape(*moved.shape[:-1], len(columns)), -1, at)
