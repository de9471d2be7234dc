# SPDX-License-Identifier: Apache-2.0
"""Drawing: one protocol for every kind of mechanism, so that nothing else asks which one it is."""

from typing import Protocol

from pufferfish.mechanisms import Channel, Mechanism
from pufferfish.release.channel import ChannelDrawing
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.noise import NoiseDrawing
from pufferfish.sampling import Entropy
from pufferfish.support import IntArray, Support


class Drawing(Protocol):
    """What a mechanism makes of atoms, before anything is done to its results."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism in force."""

    @property
    def outputs(self) -> Support:
        """Where the results lie: on a lattice, or among levels."""

    def draw(self, atoms: IntArray, entropy: Entropy | None = None) -> IntArray:
        """Return one result for each atom, shape (rows,).

        On a lattice results are counted in its steps, from 0; levels are given by their positions.
        """


def drawing_of(spec: ReleaseSpec) -> Drawing:
    """Return what draws for a release.

    Raises
    ------
    InputError
        If the mechanism does not fit the support, an option does not fit the mechanism, or the
        column would be published unchanged and nobody allowed it.
    """
    if isinstance(spec.mechanism, Channel):
        return ChannelDrawing(spec, spec.mechanism)
    return NoiseDrawing(spec, spec.mechanism)
