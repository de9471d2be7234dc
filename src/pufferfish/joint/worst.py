# SPDX-License-Identifier: Apache-2.0
"""What one release tells at most, whatever else is known of its column: exact where rational.

diameter / theta for noise, the largest ln M(y|x) / M(y|x') for a channel, infinite where a zero
stands against a positive chance (theory, section 6). Values that no secret of a pair can have do
not count. Diameters over scales stay fractions: ten times a tenth is one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pufferfish.arrays import CountArray, IntArray
from pufferfish.certificate.arbs import ball, float_above
from pufferfish.errors import InputError
from pufferfish.joint.axes import rows_of
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.precision import precision
from pufferfish.support import Support, lattice_of

_BITS = 128
#: Pairs times adversaries up to which a channel's worst case is taken pair by pair.
_MOST_REACHES = 64


@dataclass(frozen=True, eq=False)
class Reach:
    """Which atoms of a column the secrets of each pair can have.

    Attributes
    ----------
    ends : tuple of (int, int)
        The first and the last of these atoms, for each pair under each adversary.
    sets : tuple of int64 arrays
        The atoms themselves; one set with all of them where there are many pairs.
    """

    ends: tuple[tuple[int, int], ...]
    sets: tuple[IntArray, ...]

    @classmethod
    def everything(cls, support: Support) -> "Reach":
        """All atoms of a support: for a column of which no prior is known."""
        return cls(((0, support.size - 1),), (np.arange(support.size, dtype=np.int64),))

    @classmethod
    def of(
        cls, masses: Sequence[CountArray], column: int, pairs: Sequence[tuple[int, int]]
    ) -> "Reach":
        """Take it from joint masses, shape (m, n_1, ..., n_k), for the column at one position."""
        ends: set[tuple[int, int]] = set()
        sets: dict[bytes, IntArray] = {}
        everywhere = np.zeros(masses[0].shape[column + 1], dtype=bool)
        for array in masses:
            others = tuple(d for d in range(1, array.ndim) if d != column + 1)
            used: npt.NDArray[np.bool_] = (array != 0).any(axis=others)
            for i, j in pairs:
                both = used[i] | used[j]
                everywhere |= both
                atoms = np.flatnonzero(both)
                ends.add((int(atoms[0]), int(atoms[-1])))
                if len(sets) <= _MOST_REACHES:
                    sets[both.tobytes()] = atoms
        if len(sets) > _MOST_REACHES:
            sets = {b"": np.flatnonzero(everywhere)}
        return cls(tuple(sorted(ends)), tuple(sets.values()))

    def joined(self, other: "Reach") -> "Reach":
        """What either of two priors allows."""
        return Reach(self.ends + other.ends, self.sets + other.sets)


@dataclass(frozen=True)
class Term:
    """The worst case of one release.

    Attributes
    ----------
    label : str
        Which release.
    rational : Fraction
        diameter / theta, for noise.
    ratio : Fraction
        The largest M(y|x) / M(y|x'), for a channel; 1 for noise.
    infinite : bool
        Whether some output tells two values apart for certain.
    """

    label: str
    rational: Fraction = Fraction(0)
    ratio: Fraction = Fraction(1)
    infinite: bool = False

    @cached_property
    def upper(self) -> Fraction | None:
        """An upper bound of the worst case, exact for noise; None: infinite."""
        return total([self])


def total(terms: Sequence[Term]) -> Fraction | None:
    """Return the sum of worst cases, logarithms taken once and rounded up; None: infinite."""
    if any(term.infinite for term in terms):
        return None
    ratio = Fraction(1)
    for term in terms:
        ratio *= term.ratio
    rational = sum((term.rational for term in terms), Fraction(0))
    if ratio == 1:
        return rational
    with precision(_BITS):
        return rational + Fraction(float_above(ball(ratio).log()))


def worst_case(
    release: Mechanism, support: Support, reach: Reach | None = None, label: str = ""
) -> Term:
    """Return what one release tells at most, whatever else is known of the value.

    Parameters
    ----------
    release : DiscreteLaplace or Channel
    support : Lattice or Levels
        The atoms of the column.
    reach : Reach, optional
        Those that count; by default all of them.
    label : str
        What the term is called.

    Raises
    ------
    InputError
        If noise is put on levels without an order, or a channel lacks a row.
    """
    reach = Reach.everything(support) if reach is None else reach
    if isinstance(release, DiscreteLaplace):
        lattice = lattice_of(support)
        diameter = max(lattice.value(b) - lattice.value(a) for a, b in reach.ends)
        off = (lattice.step / release.step).denominator != 1
        if diameter == 0:
            return Term(label)
        if release.scale == 0 or off:
            return Term(label, infinite=True)
        return Term(label, diameter / Fraction(release.scale))
    places = rows_of(support, release)
    ratio = Fraction(1)
    for atoms in reach.sets:
        rows = places[atoms]
        if (rows < 0).any():
            lost = support.name(int(atoms[int(np.argmax(rows < 0))]))
            raise InputError(f"the channel has no row for {lost!r}, which the column can hold")
        denominators = [release.denominators[x] for x in rows.tolist()]
        common = math.lcm(*denominators)
        factors = np.array([common // d for d in denominators], dtype=object)
        chances = release.rows[rows] * factors[:, None]
        for high, low in zip(
            chances.max(axis=0).tolist(), chances.min(axis=0).tolist(), strict=True
        ):
            if high > 0 and low == 0:
                return Term(label, infinite=True)
            if high * ratio.denominator > ratio.numerator * low:
                ratio = Fraction(high, low)
    return Term(label, ratio=ratio)
