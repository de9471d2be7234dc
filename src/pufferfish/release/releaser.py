# SPDX-License-Identifier: Apache-2.0
"""Releaser: atoms in, released values out: drawn, then rounded, moved into bounds, and shown."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pufferfish.errors import InputError
from pufferfish.rationals import show
from pufferfish.release import arithmetic
from pufferfish.release.drawing import drawing_of
from pufferfish.release.job import ReleaseSpec
from pufferfish.sampling import Entropy
from pufferfish.support import IntArray, Levels
from pufferfish.tables.arrow import integers, numbers, strings


class Releaser:
    """What happens to every value, checked once for the whole release.

    Parameters
    ----------
    spec : ReleaseSpec
        What is asked for.

    Attributes
    ----------
    mechanism : DiscreteLaplace or Channel
        What is in force: the noise with its scale raised where that was asked for, or the channel.
    protected : tuple of str or None
        The secrets that occur in the pairs; None where nobody counts rows outside the promise.
    step : Fraction
        The step of the released values: that of the mechanism's outputs, or 1 where they are
        rounded to integers, or are levels.
    levels : Levels or None
        Where released values are the names of levels: those that a channel publishes, or codes
        that are turned back because they are rounded, with bounds inside the codes.

    Raises
    ------
    InputError
        If the mechanism does not fit the support, an option does not fit the mechanism, the column
        would be published unchanged, the bounds are not on the lattice, or the outputs are beyond
        64 bits.
    """

    def __init__(self, spec: ReleaseSpec) -> None:
        self._drawing = drawing_of(spec)
        self.mechanism = self._drawing.mechanism
        self.protected = spec.protected
        outputs = self._drawing.outputs
        self.levels: Levels | None = None
        if isinstance(outputs, Levels):
            self.levels, self._lattice_step = outputs, Fraction(1)
        else:
            self._lattice_step = outputs.step
        self._round = spec.round and self._lattice_step.denominator != 1
        self.step = Fraction(1) if self._round else self._lattice_step
        self._bounds = None if spec.bounds is None else _on_lattice(spec.bounds, self.step)
        if isinstance(spec.support, Levels) and spec.round and spec.bounds is not None:
            low, high = spec.bounds
            if low >= 0 and high <= spec.support.size - 1:
                self.levels = spec.support

    def draw(self, atoms: IntArray, entropy: Entropy | None = None) -> IntArray:
        """Return released values in units of ``step``, or as positions among ``levels``.

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
        return self.finish(self._drawing.draw(atoms, entropy))

    def finish(self, values: IntArray) -> IntArray:
        """Round results (in steps of the lattice) where asked for, then move them into bounds."""
        if self._round:
            values = arithmetic.rounded(values, self._lattice_step)
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

    def column(self, values: IntArray) -> npt.NDArray[Any]:
        """Return the same for a dataframe, where the names of levels are Python's own texts.

        Every row then takes the room of a reference, and not that of the longest name.
        """
        if self.levels is not None:
            return np.array(self.levels.names, dtype=object)[values]
        return self.numpy(values)

    def arrow(self, values: IntArray) -> pa.Array:
        """Return the same as an Arrow array: int64, double or string."""
        if self.levels is not None:
            return strings(self.levels.names).take(integers(values))
        return numbers(self.numpy(values))

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
