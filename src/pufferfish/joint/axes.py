# SPDX-License-Identifier: Apache-2.0
"""Axis: one column with everything released of it, and what that amounts to.

Independent Laplace releases of one value merge into one of 1/theta_eff = sum of 1/theta; a scale of
0 publishes the value itself, beside which nothing else of the column tells anything. Several
channels of one column are one channel, whose outputs are tuples of outputs and whose likelihoods
are products. Outputs with proportional likelihoods tell the same and are one.

*Merging beside other releases.* Hold the outputs of everything else fixed: their likelihoods only
reweigh the masses. The joint kernel of the Laplace releases in x is a non-negative mixture of
e^(-|x - z| / theta_eff) (theory, section 6), so no output has a larger ratio than the worst z, and
that one is an atom (section 2), where equal outputs y_1 = .. = y_k = z attain it; every lattice
that holds the values has them. One column after the other, the loss is that of the merged releases.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError
from pufferfish.joint.record import GridTooLarge
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.support import Lattice, Support, lattice_of

#: Tuples of outputs of one column's channels that are looked at.
MOST_OUTPUTS = 1 << 15


@dataclass(frozen=True)
class Axis:
    """One column, and everything that is released of it.

    Parameters
    ----------
    support : Lattice or Levels
        The n atoms of the column.
    releases : tuple of DiscreteLaplace or Channel
        Independent given the value; without any the column is summed out.
    """

    support: Support
    releases: tuple[Mechanism, ...] = ()


@dataclass(frozen=True, eq=False)
class Merged:
    """All releases of one column as one likelihood, restricted to the atoms that have mass.

    Attributes
    ----------
    axis : Axis
        Where it comes from.
    atoms : int64 array, shape (n,)
        The positions on the axis's support.
    index : int64 array, shape (n,)
        Their places on the lattice in steps (for levels: their positions).
    rate : Fraction
        One step of the lattice over theta_eff; 0 where there is no Laplace release.
    published : bool
        Whether the value itself is out.
    columns : list of tuples of int, shape (k, n), or None
        One column of likelihoods for each distinct output of the channels, each up to a factor
        and but for ``weights``; None where there is no channel, or where the value itself is out.
    weights : list of int, shape (n,)
        What all columns have to be multiplied by, atom by atom.
    outputs : list of tuples of int, shape (k,)
        For each column one of the outputs that it stands for: positions, one per channel.
    exact : bool
        Whether nothing was replaced by something that tells more.
    """

    axis: Axis
    atoms: IntArray
    index: IntArray
    rate: Fraction
    published: bool
    columns: list[tuple[int, ...]] | None
    weights: list[int]
    outputs: list[tuple[int, ...]]
    exact: bool

    @property
    def noisy(self) -> bool:
        """Whether there is Laplace noise to pass over this axis."""
        return not self.published and self.rate > 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of the grid that this column has: channel outputs, then places of the noise."""
        outputs = () if self.columns is None else (len(self.columns),)
        return (*outputs, len(self.atoms)) if self.noisy or self.published else outputs

    def texts(self, cell: tuple[int, ...]) -> tuple[str, ...]:
        """Return the output of each release as text, for a cell of this column's own axes."""
        chosen: tuple[int, ...] = ()
        place = None
        if self.noisy or self.published:
            place = int(self.atoms[cell[-1]])
        if self.columns is not None:
            chosen = self.outputs[cell[0]]
        texts, at = [], 0
        for release in self.axis.releases:
            if isinstance(release, DiscreteLaplace):
                texts.append("" if place is None else self.axis.support.name(place))
            elif self.published and place is not None:
                # Beside the value itself any output that it can have does.
                row = release.rows[rows_of(self.axis.support, release)[place]]
                texts.append(release.outputs.name(int(np.argmax(row))))
            else:
                texts.append(release.outputs.name(chosen[at]))
                at += 1
        return tuple(texts)


def merged(axis: Axis, atoms: IntArray) -> Merged:
    """Return what all releases of a column amount to, on some of its atoms.

    Parameters
    ----------
    axis : Axis
        The column; it has at least one release.
    atoms : int64 array, shape (n,)
        Positions of the atoms that have mass.

    Raises
    ------
    InputError
        If noise is put on levels without an order, or a channel has no row for an atom.
    GridTooLarge
        If the channels have too many tuples of outputs.
    """
    noises = [r for r in axis.releases if isinstance(r, DiscreteLaplace)]
    channels = [r for r in axis.releases if isinstance(r, Channel)]
    index = np.arange(axis.support.size, dtype=np.int64)
    rate, published, exact = Fraction(0), False, True
    if noises:
        lattice = lattice_of(axis.support)
        index = lattice.index
        for noise in noises:
            if noise.scale == 0:
                published = True
            elif (lattice.step / noise.step).denominator != 1:
                # Noise on a lattice that misses some values tells these apart: no more is told
                # than by the value itself.
                published, exact = True, False
            else:
                rate += lattice.step / Fraction(noise.scale)
    index = index[atoms] - (index[atoms[0]] if len(atoms) else 0)
    columns: list[tuple[int, ...]] | None = None
    outputs: list[tuple[int, ...]] = []
    weights = [1] * len(atoms)
    places = [rows_of(axis.support, channel)[atoms] for channel in channels]
    for place in places:
        if (place < 0).any():
            lost = axis.support.name(int(atoms[int(np.argmax(place < 0))]))
            raise InputError(f"the channel has no row for {lost!r}, which the column can hold")
    if channels and not published:
        columns, outputs = _product(channels, places)
        weights = _weights(channels, places)
    exact = exact or any(noise.scale == 0 for noise in noises)
    return Merged(axis, atoms, index, rate, published, columns, weights, outputs, exact)


def rows_of(support: Support, channel: Channel) -> IntArray:
    """Return the row of the channel for each atom of a support, -1 for none, shape (n,).

    Raises
    ------
    InputError
        If one is for numbers and the other for levels.
    """
    inputs = channel.inputs
    if support.same_as(inputs):
        return np.arange(support.size, dtype=np.int64)
    if isinstance(support, Lattice) != isinstance(inputs, Lattice):
        raise InputError("the channel and the column must both be for numbers, or for levels")
    rows = {key: x for x, key in enumerate(_keys(inputs))}
    return np.array([rows.get(key, -1) for key in _keys(support)], dtype=np.int64)


def _keys(support: Support) -> tuple[Any, ...]:
    return support.values if isinstance(support, Lattice) else support.names


def _product(
    channels: list[Channel], places: list[IntArray]
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the distinct columns of likelihoods, and an output for each."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {(1,) * len(places[0]): ()}
    for channel, place in zip(channels, places, strict=True):
        own: dict[tuple[int, ...], tuple[int, ...]] = {}
        for y, column in enumerate(zip(*channel.rows[place].tolist(), strict=True)):
            if any(column):
                own.setdefault(_lowest(column), (y,))
        if len(own) * len(found) > MOST_OUTPUTS:
            raise GridTooLarge(len(own) * len(found), MOST_OUTPUTS)
        together: dict[tuple[int, ...], tuple[int, ...]] = {}
        for before, named in found.items():
            for column, y_ in own.items():
                both = tuple(a * b for a, b in zip(before, column, strict=True))
                if any(both):
                    together.setdefault(_lowest(both), named + y_)
        found = together
    return list(found), list(found.values())


def _lowest(column: tuple[int, ...]) -> tuple[int, ...]:
    divisor = math.gcd(*column)
    return tuple(value // divisor for value in column) if divisor > 1 else column


def _weights(channels: list[Channel], places: list[IntArray]) -> list[int]:
    """Return whole numbers in proportion to 1 / the product of the denominators, per atom."""
    denominators = [1] * len(places[0])
    for channel, place in zip(channels, places, strict=True):
        own = [channel.denominators[x] for x in place.tolist()]
        denominators = [a * b for a, b in zip(denominators, own, strict=True)]
    common = math.lcm(*denominators)
    return list(_lowest(tuple(common // d for d in denominators)))
