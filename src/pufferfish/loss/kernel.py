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
from typing import NamedTuple

import numpy as np

from pufferfish.errors import InputError
from pufferfish.loss.certificate import Witness
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import IntArray
from pufferfish.priors.ambiguity import Point, Region
from pufferfish.support import Lattice, Support, lattice_of

Mechanism = DiscreteLaplace | Channel
#: Tuples of outputs of one column's channels that are looked at.
MOST_OUTPUTS = 1 << 14


class Where(NamedTuple):
    """A cell of the grid of outputs (in C order), two secrets (likelier first), the adversary."""

    cell: int
    pair: tuple[int, int]
    adversary: int


class GridTooLarge(Exception):
    """The grid of outputs has more cells than the loss can be proved on; internal."""


@dataclass(frozen=True, eq=False)
class Axis:
    """All releases of one column (``mechanisms``) as one likelihood, over n atoms of its support.

    ``places`` of the atoms are in steps from 0 (levels: positions); ``rate`` is one step over
    theta_eff, 1/theta_eff = sum of 1/theta, 0 without noise; ``identity``: the value itself is out.
    ``columns``: over ``unit``, the likelihoods of one output for each distinct kind, None without
    channels or beside the value itself; ``outputs``: these, one position per channel. ``exact``:
    nothing was replaced by something that tells more.
    """

    column: int
    support: Support
    mechanisms: tuple[Mechanism, ...]
    atoms: IntArray
    places: IntArray
    rate: Fraction
    identity: bool
    columns: tuple[tuple[int, ...], ...] | None
    outputs: tuple[tuple[int, ...], ...]
    unit: int
    exact: bool

    @property
    def noisy(self) -> bool:
        """Whether there is Laplace noise to pass over this axis: over the last of its own."""
        return self.rate > 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of the grid that this column has: channel outputs, then places."""
        outputs = () if self.columns is None else (len(self.columns),)
        return (*outputs, len(self.atoms)) if self.noisy or self.identity else outputs

    def texts(self, cell: Sequence[int]) -> list[str]:
        """Return the output of each mechanism as text, for a cell of this column's own axes."""
        place = int(self.atoms[cell[-1]]) if self.noisy or self.identity else 0
        chosen = [] if self.columns is None else list(self.outputs[cell[0]])
        texts = []
        for mechanism in self.mechanisms:
            if isinstance(mechanism, DiscreteLaplace):
                texts.append(self.support.name(place))
                continue
            # Beside the value itself any output that it can have does.
            texts.append("" if self.identity else mechanism.outputs.name(chosen.pop(0)))
        return texts


@dataclass(frozen=True, eq=False)
class Problem:
    """Kernels, and what each adversary holds possible under each secret.

    One axis for each released column of each row. Points are what their masses become behind the
    channels, on the grid of outputs, before the noise; up to one factor for all of them. Regions
    are over the atoms of the only axis. ``numbers``: positions of the adversaries in the scenario;
    ``rows`` of one person that all of this is about, 1 also for rows that count one by one.
    """

    axes: tuple[Axis, ...]
    adversaries: tuple[tuple[Point | Region, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    secrets: tuple[str, ...]
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
    def noises(self) -> list[tuple[int, Axis]]:
        """The axes with noise, each with the axis of the grid that it is passed over."""
        ends = np.cumsum([len(axis.shape) for axis in self.axes]).tolist()
        return [(end - 1, axis) for end, axis in zip(ends, self.axes, strict=True) if axis.noisy]

    @property
    def pure_noise(self) -> bool:
        """Whether every axis has Laplace noise and nothing else."""
        return all(axis.noisy and axis.columns is None for axis in self.axes)

    @property
    def regions(self) -> bool:
        """Whether any set is a region."""
        return any(isinstance(own, Region) for beliefs in self.adversaries for own in beliefs)

    @property
    def all_pairs(self) -> bool:
        """Whether every two of more than two secrets are a pair."""
        return len(self.secrets) > 2 and len(self.pairs) == math.comb(len(self.secrets), 2)

    @property
    def rivals(self) -> list[list[int]]:
        """For each secret those that it is paired with."""
        found: list[list[int]] = [[] for _ in self.secrets]
        for i, j in self.pairs:
            found[i].append(j)
            found[j].append(i)
        return found

    @property
    def linked(self) -> Sequence[tuple[int, int]]:
        """Pairs that are all equal, in whatever is transitive, if and only if all pairs are."""
        chain = [(k, k + 1) for k in range(len(self.secrets) - 1)]
        return chain if self.all_pairs else self.pairs

    def points(self, adversary: int) -> list[Point]:
        """Return the sets of an adversary that are points."""
        return [own for own in self.adversaries[adversary] if isinstance(own, Point)]

    def witness(self, where: Where) -> Witness:
        """Return where a loss is attained, by names."""
        place = [int(k) for k in np.unravel_index(where.cell, self.shape)]
        texts: list[str] = []
        for axis in self.axes:
            texts += axis.texts(place[: len(axis.shape)])
            place = place[len(axis.shape) :]
        first, second = (self.secrets[k] for k in where.pair)
        return Witness(tuple(texts), (first, second), self.numbers[where.adversary], self.rows)


def axis_of(
    column: int, support: Support, mechanisms: Sequence[Mechanism], atoms: IntArray
) -> Axis:
    """Return the axis of a column with everything that is released of it, on some of its atoms."""
    noises = [m for m in mechanisms if isinstance(m, DiscreteLaplace)]
    channels = [m for m in mechanisms if isinstance(m, Channel)]
    places, rate, off = atoms, Fraction(0), False
    if noises:
        lattice = lattice_of(support)
        places = lattice.index[atoms]
        off = any((lattice.step / noise.step).denominator != 1 for noise in noises)
        if not off and all(noise.scale for noise in noises):
            rate = sum((lattice.step / Fraction(noise.scale) for noise in noises), rate)
    unchanged = any(noise.scale == 0 for noise in noises)
    whole = [likelihoods(support, channel, atoms) for channel in channels]
    merged = _product([columns for columns, _ in whole], len(atoms))
    bare = unchanged or off or not channels
    return Axis(
        column=column,
        support=support,
        mechanisms=tuple(mechanisms),
        atoms=atoms,
        places=places - places[0],
        rate=rate,
        identity=unchanged or off,
        columns=None if bare else tuple(merged.values()),
        outputs=() if bare else tuple(merged),
        unit=1 if bare else math.prod(unit for _, unit in whole),
        exact=unchanged or not off,
    )


def _rows_of(support: Support, channel: Channel, atoms: IntArray) -> IntArray:
    """Return the row of the channel for each of the atoms; an InputError where there is none."""
    inputs = channel.inputs
    if support == inputs:
        return atoms
    if isinstance(support, Lattice) != isinstance(inputs, Lattice):
        raise InputError("the channel and the column must both be for numbers, or for levels")
    rows = {inputs.name(x): x for x in range(inputs.size)}
    names = [support.name(x) for x in atoms.tolist()]
    lost = next((name for name in names if name not in rows), None)
    if lost is not None:
        raise InputError(f"the channel has no row for {lost!r}, which the column can hold")
    return np.array([rows[name] for name in names], dtype=np.int64)


def likelihoods(
    support: Support, channel: Channel, atoms: IntArray
) -> tuple[list[tuple[int, ...]], int]:
    """Return M(y|x) of each output y, a whole number for each atom x, and their denominator."""
    rows = _rows_of(support, channel, atoms)
    denominators = [channel.denominators[x] for x in rows.tolist()]
    common = math.lcm(*denominators)
    factors = np.array([common // d for d in denominators], dtype=object)
    return [tuple(column) for column in (channel.rows[rows].T * factors).tolist()], common


def _product(
    channels: Sequence[Sequence[tuple[int, ...]]], atoms: int
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return one output of each kind, with its likelihoods; proportional ones are one kind."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {(): (1,) * atoms}
    for channel in channels:
        if len(channel) * len(found) > MOST_OUTPUTS:
            raise GridTooLarge
        kinds: dict[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]] = {}
        for named, before in found.items():
            for y, column in enumerate(channel):
                both = tuple(a * b for a, b in zip(before, column, strict=True))
                divisor = math.gcd(*both)
                if divisor:
                    kind = tuple(value // divisor for value in both)
                    kinds.setdefault(kind, ((*named, y), both))
        found = dict(kinds.values())
    return found
