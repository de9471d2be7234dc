# SPDX-License-Identifier: Apache-2.0
"""Releaser: atoms in, released values out: noise, then rounding of the sum, then bounds."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError, UnchangedWarning, warn_user
from pufferfish.rationals import show
from pufferfish.release import arithmetic
from pufferfish.release.job import ReleaseSpec, effective_noise
from pufferfish.sampling import Entropy
from pufferfish.support import IntArray, Levels, lattice_of


class Releaser:
    """What happens to every value, checked once for the whole release.

    Parameters
    ----------
    spec : ReleaseSpec
        What is asked for.

    Attributes
    ----------
    noise : DiscreteLaplace
        What is added, with the scale that is in force.
    protected : tuple of str or None
        The secrets that occur in the pairs; None where nobody counts rows outside the promise.
    step : Fraction
        The step of the released values: that of the support, or 1 where they are rounded to
        integers.
    levels : Levels or None
        Where released codes are turned back into the names of levels: ordered levels, rounded,
        with bounds inside the codes.

    Raises
    ------
    InputError
        If the noise is off the lattice, the column would be published unchanged, the
        bounds are not on the lattice, the support is beyond 64 bits, or levels have no order.
    """

    def __init__(self, spec: ReleaseSpec) -> None:
        lattice = lattice_of(spec.support)
        if spec.noise.step != lattice.step:
            raise InputError(
                f"the noise has the step {show(spec.noise.step)}, but the support has "
                f"{show(lattice.step)}; noise belongs on the lattice of the support"
            )
        self.noise = effective_noise(spec)
        if self.noise.scale == 0:
            warn_user("the scale is 0: the column is published unchanged", UnchangedWarning)
        self.protected = spec.protected
        self._lattice_step = lattice.step
        self._round = spec.round and lattice.step.denominator != 1
        self.step = Fraction(1) if self._round else lattice.step
        self._units = arithmetic.atom_units(lattice)
        self._bounds = None if spec.bounds is None else _on_lattice(spec.bounds, self.step)
        self.levels: Levels | None = None
        if isinstance(spec.support, Levels) and spec.round and spec.bounds is not None:
            low, high = spec.bounds
            if low >= 0 and high <= spec.support.size - 1:
                self.levels = spec.support

    def draw(self, atoms: IntArray, entropy: Entropy | None = None) -> IntArray:
        """Return released values in units of ``step``.

        Parameters
        ----------
        atoms : int64 array, shape (rows,)
            The atom of every row.
        entropy : Entropy, optional
            Where random bits come from: the operating system, unless a test says otherwise.

        Returns
        -------
        int64 array, shape (rows,)

        Raises
        ------
        InputError
            If a value is beyond 64 bits.
        """
        drawn = self.noise.noise(len(atoms), entropy)
        return self.finish(arithmetic.add(self._units[atoms], drawn))

    def finish(self, sums: IntArray) -> IntArray:
        """Round sums (in steps of the support) where asked for, then move them into the bounds."""
        values = arithmetic.rounded(sums, self._lattice_step) if self._round else sums
        if self._bounds is not None:
            values = np.clip(values, *self._bounds)
        return values

    @property
    def integers(self) -> bool:
        """Whether every released value is an integer."""
        return self.step.denominator == 1

    def numpy(self, values: IntArray) -> npt.NDArray[Any]:
        """Return released values as int64, as the nearest doubles, or as the names of levels."""
        if self.levels is not None:
            return np.array(self.levels.names)[values]
        if self.integers:
            return arithmetic.scaled(values, self.step.numerator)
        doubles: npt.NDArray[Any] = arithmetic.to_doubles(values, self.step)
        return doubles

    def arrow(self, values: IntArray) -> pa.Array:
        """Return the same as an Arrow array: int64, double or string."""
        if self.levels is not None:
            return pa.array(self.levels.names, pa.string()).take(pa.array(values))
        return pa.array(self.numpy(values))

    def text(self, values: IntArray) -> pa.LargeStringArray:
        """Return released values as text: integers, exact decimals, or the names of levels."""
        if self.levels is not None:
            return self.arrow(values).cast(pa.large_string())
        return arithmetic.to_text(values, self.step)


def _on_lattice(bounds: tuple[Fraction, Fraction], step: Fraction) -> tuple[np.int64, np.int64]:
    """Return the bounds in steps; bounds between two lattice points would be a new output."""
    low, high = (bound / step for bound in bounds)
    if low.denominator != 1 or high.denominator != 1:
        inner = -(-low.numerator // low.denominator), high.numerator // high.denominator
        hint = f"{show(step * inner[0])} and {show(step * inner[1])}" if inner[0] < inner[1] else ""
        raise InputError(
            f"the bounds must be multiples of {show(step)}, as the released values are, but "
            f"{show(bounds[0])} and {show(bounds[1])} were given"
            + (f"; the nearest inside are {hint}" if hint else "")
        )
    least, greatest = arithmetic.INT64_MIN, arithmetic.INT64_MAX
    inside = [min(max(int(bound), least), greatest) for bound in (low, high)]
    return np.int64(inside[0]), np.int64(inside[1])
