# SPDX-License-Identifier: Apache-2.0
"""Release with additive noise: the sum of a value and its noise, in whole steps of the lattice."""

from dataclasses import replace

from pufferfish.errors import InputError, UnchangedWarning, warn_user
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.rationals import show
from pufferfish.release import arithmetic
from pufferfish.release.job import ReleaseSpec
from pufferfish.sampling import Entropy
from pufferfish.support import IntArray, Lattice, lattice_of


class NoiseDrawing:
    """Adds noise to the values of atoms, or to the codes of ordered levels.

    Parameters
    ----------
    spec : ReleaseSpec
        What is asked for.
    noise : DiscreteLaplace
        Its mechanism.

    Attributes
    ----------
    mechanism : DiscreteLaplace
        What is added, with the scale that is in force.
    outputs : Lattice
        The lattice of the support; sums may lie beyond its ends.

    Raises
    ------
    InputError
        If levels have no order, the noise is off the lattice, the support is beyond 64 bits, or
        the scale is 0 and nobody allowed it.
    """

    def __init__(self, spec: ReleaseSpec, noise: DiscreteLaplace) -> None:
        self.outputs: Lattice = lattice_of(spec.support)
        if noise.step != self.outputs.step:
            raise InputError(
                f"the noise has the step {show(noise.step)}, but the support has "
                f"{show(self.outputs.step)}; noise belongs on the lattice of the support"
            )
        self.mechanism = _in_force(spec, noise)
        if self.mechanism.scale == 0:
            warn_user("the scale is 0: the column is published unchanged", UnchangedWarning)
        self._units = arithmetic.atom_units(self.outputs)

    def draw(self, atoms: IntArray, entropy: Entropy | None = None) -> IntArray:
        """Return the sums in steps, shape (rows,).

        Raises
        ------
        InputError
            If a sum is beyond 64 bits.
        """
        drawn = self.mechanism.noise(len(atoms), entropy)
        return arithmetic.add(self._units[atoms], drawn)


def _in_force(spec: ReleaseSpec, noise: DiscreteLaplace) -> DiscreteLaplace:
    """Return the noise with its scale raised to ``min_scale``."""
    if spec.min_scale is not None and spec.min_scale > noise.scale:
        return replace(noise, scale=spec.min_scale)
    if noise.scale == 0 and not spec.allow_unchanged:
        raise InputError(
            "the scale is 0: the column would be published unchanged; if that is wanted say so "
            "with --allow-unchanged (allow_unchanged=True), or give --min-scale T (min_scale=T)"
        )
    return noise
