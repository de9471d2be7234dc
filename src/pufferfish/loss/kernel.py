# SPDX-License-Identifier: Apache-2.0
"""The kernel: all releases of one column merged into one axis.

Independent Laplace releases of one value merge into one of 1/theta_eff = sum of 1/theta (theory,
section 6; ``witness``). A scale of 0 publishes the value itself. Beside the value itself, other
releases of the column add nothing. Noise on a lattice that misses some values is counted as the
value itself, an upper bound. Several channels of one column are one channel, whose outputs are
tuples of outputs and whose likelihoods are products. Outputs with proportional likelihoods tell the
same and are one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.errors import InputError
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel, same_places
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import IntArray
from pufferfish.support import Lattice, Support, lattice_of

#: Tuples of outputs of one column's channels that are looked at.
MOST_OUTPUTS = 1 << 15


class GridTooLarge(Exception):
    """The grid of outputs has more cells than the loss can be proved on; internal."""


@dataclass(frozen=True, eq=False)
class Axis:
    """All releases of one column (``mechanisms``) as one likelihood, over n atoms of its support.

    ``places`` of the atoms are in steps from 0 (levels: positions); ``rate`` is one step over
    theta_eff, 1/theta_eff = sum of 1/theta, 0 without noise; ``identity``: the value itself is out.
    ``kinds``: the outputs of all channels that tell something different, one position per channel,
    each with its likelihoods over ``unit``; none beside the value itself. ``exact``: nothing was
    replaced by something that tells more.
    """

    column: int
    support: Support
    mechanisms: tuple[Mechanism, ...]
    atoms: IntArray
    places: IntArray
    rate: Fraction
    identity: bool
    kinds: Mapping[tuple[int, ...], tuple[int, ...]]
    unit: int
    exact: bool

    @property
    def noisy(self) -> bool:
        """Whether there is Laplace noise to pass over this axis: over the last of its own."""
        return self.rate > 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of the grid that this column has: channel outputs, then places."""
        outputs = (len(self.kinds),) if self.kinds else ()
        return (*outputs, len(self.atoms)) if self.noisy or self.identity else outputs

    def texts(self, cell: Sequence[int]) -> list[str]:
        """Return the output of each mechanism as text, for a cell of this column's own axes."""
        place = int(self.atoms[cell[-1]]) if self.noisy or self.identity else 0
        chosen = iter(list(self.kinds)[cell[0]] if self.kinds else ())
        texts = []
        for mechanism in self.mechanisms:
            if isinstance(mechanism, DiscreteLaplace):
                texts.append(self.support.name(place))
            else:  # beside the value itself any output that it can have does
                texts.append("" if self.identity else mechanism.outputs.name(next(chosen)))
        return texts


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
    made = [likelihoods(support, channel, atoms) for channel in channels]
    if unchanged or off:
        made = []
    return Axis(
        column=column, support=support, mechanisms=tuple(mechanisms), atoms=atoms,
        places=places - places[0], rate=rate, identity=unchanged or off,
        kinds=_product([columns for columns, _ in made], len(atoms)) if made else {},
        unit=math.prod(unit for _, unit in made), exact=unchanged or not off,
    )  # fmt: skip


def likelihoods(
    support: Support, channel: Channel, atoms: IntArray
) -> tuple[list[tuple[int, ...]], int]:
    """Return M(y|x) of each output y, a whole number for each atom x, and their denominator."""
    if isinstance(support, Lattice) != isinstance(channel.inputs, Lattice):
        raise InputError("the channel and the column must both be for numbers, or for levels")
    same = same_places(support, channel.inputs)
    found = [(x, same[x]) for x in atoms.tolist()]
    lost = next((support.name(x) for x, row in found if row is None), None)
    if lost is not None:
        raise InputError(f"the channel has no row for {lost!r}, which the column can hold")
    rows = np.array([row for _, row in found], dtype=np.int64)
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
