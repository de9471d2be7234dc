# SPDX-License-Identifier: Apache-2.0
"""The kernel of one released column: all its noises and channels merged into one axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import IntArray
from pufferfish.support import Support

Mechanism = DiscreteLaplace | Channel


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
        Their places on the lattice in steps (for levels: their positions).
    rate : Fraction
        One step over theta_eff, 1/theta_eff = sum of 1/theta; 0 without noise.
    identity : bool
        Whether the value itself is out, beside which nothing else of the column tells anything.
    columns : tuple of tuples of int, shape (k, n), or None
        For each distinct output of the channels its likelihoods, up to a factor of its own and
        but for ``weights``; None without channels.
    weights : tuple of int, shape (n,)
        What all columns have to be multiplied by, atom by atom.
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
    columns: tuple[tuple[int, ...], ...] | None
    weights: tuple[int, ...]
    outputs: tuple[tuple[int, ...], ...]
    exact: bool


def axis_of(
    support: Support, mechanisms: Sequence[Mechanism], atoms: IntArray | None = None
) -> Axis:
    """Return the axis of a column with everything that is released of it."""
    raise NotImplementedError
