# SPDX-License-Identifier: Apache-2.0
"""The kernel: all releases of one column merged into one axis; a Problem is axes, sets and pairs.

Independent Laplace releases of one value merge into one of 1/theta_eff = sum of 1/theta (theory,
section 6); a scale of 0 publishes the value itself, beside which nothing else of the column tells
anything, and so, at most, does noise on a lattice that misses some values. Several channels of one
column are one channel, whose outputs are tuples of outputs and whose likelihoods are products.
Outputs with proportional likelihoods tell the same and are one.

*Merging beside other releases.* Hold the outputs of everything else fixed: their likelihoods only
reweigh the masses. The joint kernel of the Laplace releases in x is a non-negative mixture of
e^(-|x - z| / theta_eff), so no output has a larger ratio than the worst z, and that one is an atom
(theory, section 2), where equal outputs y_1 = .. = y_k = z attain it. One column after the other,
the loss is that of the merged releases.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import IntArray
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.support import Lattice, Support, lattice_of

Mechanism = DiscreteLaplace | Channel
#: For each distinct output the likelihoods of all atoms, up to a factor.
Columns = tuple[tuple[int, ...], ...]

#: Tuples of outputs of one column's channels that are looked at.
MOST_OUTPUTS = 1 << 13


class GridTooLarge(Exception):
    """The grid of outputs has more cells than the loss can be proved on; internal."""

    def __init__(self, cells: int, limit: int) -> None:
        super().__init__(f"the grid has {cells} cells, more than {limit}")
        self.cells, self.limit = cells, limit


@dataclass(frozen=True, eq=False)
class Axis:
    """All releases of one column as one likelihood, over some atoms of its support.

    Attributes
    ----------
    support : Lattice or Levels
        Where the column's values lie.
    mechanisms : tuple of DiscreteLaplace or Channel
        What is released of it.
    atoms : int64 array, shape (n,)
        Positions of the atoms on the support.
    places : int64 array, shape (n,)
        Their places on the lattice in steps, from 0 (for levels: their positions).
    rate : Fraction
        One step over theta_eff, 1/theta_eff = sum of 1/theta; 0 without noise.
    identity : bool
        Whether the value itself is out.
    columns : tuple of tuples of int, shape (k, n), or None
        For each distinct output of the channels its likelihoods, up to a factor of its own and
        but for ``weights``; None without channels, or beside the value itself.
    weights : tuple of int, shape (n,)
        What all columns have to be multiplied by, atom by atom; empty without channels.
    outputs : tuple of tuples of int, shape (k,)
        For each column one of the outputs it stands for: positions, one per channel.
    exact : bool
        Whether nothing was replaced by something that tells more.
    """

    support: Support
    mechanisms: tuple[Mechanism, ...]
    atoms: IntArray
    places: IntArray
    rate: Fraction
    identity: bool
    columns: Columns | None
    weights: tuple[int, ...]
    outputs: tuple[tuple[int, ...], ...]
    exact: bool

    @property
    def noisy(self) -> bool:
        """Whether there is Laplace noise to pass over this axis."""
        return not self.identity and self.rate > 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of the grid that this column has: channel outputs, then places."""
        outputs = () if self.columns is None else (len(self.columns),)
        return (*outputs, len(self.atoms)) if self.noisy or self.identity else outputs

    def texts(self, cell: Sequence[int]) -> list[str]:
        """Return the output of each mechanism as text, for a cell of this column's own axes."""
        place = int(self.atoms[cell[-1]]) if self.noisy or self.identity else 0
        chosen = () if self.columns is None else self.outputs[cell[0]]
        texts, at = [], 0
        for mechanism in self.mechanisms:
            if isinstance(mechanism, DiscreteLaplace):
                texts.append(self.support.name(place))
            elif self.identity:
                # Beside the value itself any output that it can have does.
                row = mechanism.rows[rows_of(self.support, mechanism)[place]]
                texts.append(mechanism.outputs.name(int(np.argmax(row))))
            else:
                texts.append(mechanism.outputs.name(chosen[at]))
                at += 1
        return texts


@dataclass(frozen=True, eq=False)
class Problem:
    """Kernels, and what each adversary holds possible under each secret.

    Attributes
    ----------
    axes : tuple of Axis
        One for each released column of each row.
    adversaries : tuple of tuples of Point or Region
        For each adversary one set per secret; the masses of a point have one axis per ``axes``.
    pairs : tuple of (int, int)
        Positions of secrets that nobody may tell apart.
    secrets : tuple of str
        Their names.
    columns : tuple of int
        The column of each axis, by its position on the scenario's product.
    numbers : tuple of int
        The positions of the adversaries in the scenario.
    rows : int
        Rows of one person that all of this is about; 1 also for rows that count one by one.
    """

    axes: tuple[Axis, ...]
    adversaries: tuple[tuple[Point | Region, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    secrets: tuple[str, ...]
    columns: tuple[int, ...]
    numbers: tuple[int, ...]
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
        """Cells of all secrets of all adversaries."""
        return self.cells * len(self.secrets) * len(self.adversaries)

    @property
    def noisy(self) -> bool:
        """Whether any axis has Laplace noise."""
        return any(axis.noisy for axis in self.axes)

    @property
    def pure_noise(self) -> bool:
        """Whether every axis has Laplace noise and nothing else."""
        return all(axis.noisy and axis.columns is None for axis in self.axes)

    @property
    def exact(self) -> bool:
        """Whether no release was replaced by something that tells more."""
        return all(axis.exact for axis in self.axes)

    @property
    def all_pairs(self) -> bool:
        """Whether every two secrets are a pair: then the reduction is linear in them."""
        return len(self.pairs) == math.comb(len(self.secrets), 2)

    def texts(self, cell: int) -> tuple[str, ...]:
        """Return the outputs at a cell of the grid (its position in C order) as text."""
        place = [int(k) for k in np.unravel_index(cell, self.shape)] if self.shape else []
        texts: list[str] = []
        for axis in self.axes:
            texts += axis.texts(place[: len(axis.shape)])
            place = place[len(axis.shape) :]
        return tuple(texts)


def axis_of(
    support: Support, mechanisms: Sequence[Mechanism], atoms: IntArray | None = None
) -> Axis:
    """Return the axis of a column with everything that is released of it, on some of its atoms."""
    at = np.arange(support.size, dtype=np.int64) if atoms is None else atoms
    noises = [m for m in mechanisms if isinstance(m, DiscreteLaplace)]
    channels = [m for m in mechanisms if isinstance(m, Channel)]
    places, rate, off = at, Fraction(0), False
    if noises:
        lattice = lattice_of(support)
        places = lattice.index[at]
        off = any((lattice.step / noise.step).denominator != 1 for noise in noises)
    unchanged = any(noise.scale == 0 for noise in noises)
    identity = unchanged or off
    if noises and not identity:
        rate = sum((lattice_of(support).step / Fraction(n.scale) for n in noises), rate)
    columns: Columns | None = None
    weights: tuple[int, ...] = ()
    outputs: tuple[tuple[int, ...], ...] = ()
    rows = [_checked_rows(support, channel, at) for channel in channels]
    if channels and not identity:
        columns, outputs = _product(channels, rows)
        weights = _weights(channels, rows)
    return Axis(
        support=support,
        mechanisms=tuple(mechanisms),
        atoms=at,
        places=places - places[0],
        rate=rate,
        identity=identity,
        columns=columns,
        weights=weights,
        outputs=outputs,
        exact=unchanged or not off,
    )


def rows_of(support: Support, channel: Channel) -> IntArray:
    """Return the row of the channel for each atom of a support, -1 for none, shape (n,)."""
    inputs = channel.inputs
    if support.same_as(inputs):
        return np.arange(support.size, dtype=np.int64)
    if isinstance(support, Lattice) != isinstance(inputs, Lattice):
        raise InputError("the channel and the column must both be for numbers, or for levels")
    rows = {inputs.name(x): x for x in range(inputs.size)}
    return np.array([rows.get(support.name(x), -1) for x in range(support.size)], dtype=np.int64)


def _checked_rows(support: Support, channel: Channel, atoms: IntArray) -> IntArray:
    rows = rows_of(support, channel)[atoms]
    if (rows < 0).any():
        lost = support.name(int(atoms[int(np.argmax(rows < 0))]))
        raise InputError(f"the channel has no row for {lost!r}, which the column can hold")
    return rows


def _product(
    channels: Sequence[Channel], rows: Sequence[IntArray]
) -> tuple[Columns, tuple[tuple[int, ...], ...]]:
    """Return the distinct columns of likelihoods, and an output for each."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {(1,) * len(rows[0]): ()}
    for channel, row in zip(channels, rows, strict=True):
        own: dict[tuple[int, ...], tuple[int, ...]] = {}
        for y, column in enumerate(zip(*channel.rows[row].tolist(), strict=True)):
            if any(column):
                own.setdefault(_lowest(column), (y,))
        if len(own) * len(found) > MOST_OUTPUTS:
            raise GridTooLarge(len(own) * len(found), MOST_OUTPUTS)
        together: dict[tuple[int, ...], tuple[int, ...]] = {}
        for before, named in found.items():
            for column, chosen in own.items():
                both = tuple(a * b for a, b in zip(before, column, strict=True))
                if any(both):
                    together.setdefault(_lowest(both), named + chosen)
        found = together
    return tuple(found), tuple(found.values())


def _lowest(column: tuple[int, ...]) -> tuple[int, ...]:
    divisor = math.gcd(*column)
    return tuple(value // divisor for value in column) if divisor > 1 else column


def _weights(channels: Sequence[Channel], rows: Sequence[IntArray]) -> tuple[int, ...]:
    """Return whole numbers in proportion to 1 / the product of the denominators, per atom."""
    denominators = [1] * len(rows[0])
    for channel, row in zip(channels, rows, strict=True):
        own = [channel.denominators[x] for x in row.tolist()]
        denominators = [a * b for a, b in zip(denominators, own, strict=True)]
    common = math.lcm(*denominators)
    return _lowest(tuple(common // d for d in denominators))
