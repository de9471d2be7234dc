# SPDX-License-Identifier: Apache-2.0
"""Discrete Laplace noise on a lattice, as a mechanism: its noise and the error that it makes."""

import math
from dataclasses import dataclass
from fractions import Fraction
import numpy as np
from numpy.typing import NDArray
from pufferfish.numbers import show
from pufferfish.mechanisms.entropy import DiscreteLaplaceSampler, Entropy
from pufferfish.mechanisms.tables import checked_scale, checked_step

@dataclass(frozen=True)
class DiscreteLaplace:
    """Additive noise g*Z with ``P(Z = k)`` in proportion to ``exp(-g |k| / theta)``.

    Source: theory, section 1.

    Parameters
    ----------
    scale : float
        theta, in the units of the data, finite and not negative; 0 means no noise.
    step : Fraction
        The step g of the lattice, above 0, in the same units.

    Raises
    ------
    InputError
        If the scale or the step is not of that kind.
    """

    scale: float
    step: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))
        object.__setattr__(self, "step", checked_step(self.step))

    def noise(self, size: int, entropy: Entropy | None = None) -> NDArray[np.int64]:
        """Return independent noise, in units of the lattice.

        Parameters
        ----------
        size : int
            How many draws, not negative.
        entropy : Entropy, optional
            Where the random bits come from: the operating system, unless a test says otherwise.

        Returns
        -------
        int64 array, shape (size,)
            The noise is ``step`` times this.

        Raises
        ------
        InputError
            If noise of this scale leaves 64 bits.
        """
        return DiscreteLaplaceSampler(self.scale, self.step).draw(size, entropy)

    @property
    def std(self) -> float:
        """The standard deviation of the noise, in the units of the data.

        The square root of the variance in theory, section 1.
        """
        return math.sqrt(2) * self._root

    @property
    def mse(self) -> float:
        """The mean squared error of the noise, in squared units of the data; may be infinite.

        2 a g**2 / (1 - a)**2 with a = exp(-g / theta), at most 2 theta**2 (theory, section 1).
        """
        return 2 * self._root * self._root

    @property
    def _root(self) -> float:
        """The square root of half the variance: theta u / sinh(u) with u = g / (2 theta).

        In this form nothing cancels for a step that is far smaller than the scale, and nothing
        overflows for one that is far larger.
        """
        if self.scale == 0:
            return 0.0
        half_rate = self.step / (2 * Fraction(self.scale))
        if half_rate > 2000:  # exp(-2000) is below every double, even times 1e308
            return 0.0
        u = float(half_rate)
        half = math.exp(-u / 2)  # exp(-u) alone may be below every double
        return self.scale * half * (2 * u / -math.expm1(-2 * u) if u > 0 else 1.0) * half

    def describe(self) -> str:
        """Return one line that names the noise; the scale is printed to its last digit."""
        return (
            f"discrete Laplace noise of scale {self.scale!r} on a lattice of step {show(self.step)}"
        )
