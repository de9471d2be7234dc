# SPDX-License-Identifier: Apache-2.0
"""Discrete Laplace noise on a lattice: exact draws, and the error that it makes.

With a = exp(-step/scale) the noise is G or ~G (that is -1 - G), where G is geometric: P(G = k) is
proportional to a**k. The binary digits of G are drawn in groups, each by a table of its own; the
sign is drawn with the top group.
"""

import itertools
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real

import numpy as np
from numpy.typing import NDArray

from pufferfish.errors import InputError
from pufferfish.mechanisms.entropy import Entropy, EntropyStuck, system_entropy
from pufferfish.mechanisms.sampler import Table
from pufferfish.mechanisms.thresholds import Digit, SignedGeometric

#: Largest scale, in steps, of the top digit: one table of some 6,000 thresholds.
_TOP_SCALE = 256
#: Largest number of bits of a lower digit: 2,048 thresholds in 65,536 cells.
_DIGIT_BITS = 11
#: So many bits go to lower digits beyond those that must, where there are any and have room: of a
#: narrower top digit fewer draws are left open.
_MORE_BITS = 3
#: Length of the top table in scales; exp(-12) is less than one cell of it.
_TOP_LENGTH = 12
#: A tail longer than this many tables, some 700 scales, has a chance below 1e-300 per draw.
_MAX_TABLES = 64
#: Draws made at a time, so that the intermediate arrays stay in the processor's cache.
_BATCH = 1 << 16
#: Largest scale in steps. One draw in exp(64) = 6e27 leaves 64 bits there. Refusing by
#: scale, not by draw, keeps the noise exact: redrawing or failing often would bend its law.
MAX_STEPS = 1 << 57


@dataclass(frozen=True)
class DiscreteLaplace:
    """Additive noise ``step * Z`` with ``P(Z = k)`` proportional to ``exp(-step |k| / scale)``.

    Theory, section 1.

    Parameters
    ----------
    scale : float
        theta, in the units of the data, finite and not negative; 0 means no noise.
    step : Fraction
        The step g of the lattice, above 0, in the same units.
    """

    scale: float
    step: Fraction

    def __post_init__(self) -> None:
        scale, step = self.scale, self.step
        number = isinstance(scale, Real) and not isinstance(scale, bool)
        if not number or not 0 <= scale <= sys.float_info.max:
            raise InputError(f"scale must be a finite number, 0 or more, but {scale!r} was given")
        if float(scale) != scale:  # rounding could make it smaller
            raise InputError(f"scale must be a double, round {scale!r} up to one first")
        if isinstance(step, bool) or not isinstance(step, Rational) or step <= 0:
            raise InputError(f"step must be an int or Fraction above 0, but {step!r} was given")
        object.__setattr__(self, "scale", abs(float(scale)))  # -0.0 is 0.0
        object.__setattr__(self, "step", Fraction(int(step.numerator), int(step.denominator)))

    def noise(self, size: int, entropy: Entropy | None = None) -> NDArray[np.int64]:
        """Return independent draws of the noise, in steps.

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
            If noise of this scale, or one of these draws, leaves 64 bits.
        """
        if size < 0:
            raise InputError(f"the number of draws must not be negative, but {size} was given")
        if self.scale == 0:
            return np.zeros(size, dtype=np.int64)
        digits = _digits_of(self.scale, self.step)
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _BATCH):
            digits.draw(noise[start : start + _BATCH], entropy or system_entropy)
        return noise

    @property
    def std(self) -> float:
        """Standard deviation of the noise, in the units of the data."""
        return math.sqrt(2) * self._root

    @property
    def mse(self) -> float:
        """Mean squared error of the noise, in squared units of the data; may be infinite.

        2 a g**2 / (1 - a)**2 with a = exp(-g / theta), at most 2 theta**2 (theory, section 1).
        """
        return 2 * self._root * self._root

    @property
    def _root(self) -> float:
        """The square root of half the variance: theta u / sinh(u) with u = g / (2 theta).

        In this form nothing cancels for a step that is far smaller than the scale. For u above 700
        that of 700 is returned, which is below 1e-300 times the scale.
        """
        if self.scale == 0:
            return 0.0
        u = float(min(self.step / (2 * Fraction(self.scale)), Fraction(700)))
        return self.scale * (u / math.sinh(u)) if u else self.scale


@dataclass(frozen=True, eq=False)
class _Digits:
    """The tables of one law: the signed top digit, and the lower digits from the lowest.

    ``cut`` is where the top table ends, in steps.
    """

    top: Table
    cut: int
    lower: tuple[Table, ...] = ()

    def draw(self, noise: NDArray[np.int64], entropy: Entropy) -> None:
        """Fill an array with draws, in steps."""
        found = self.top.draw(noise.size, entropy)
        least, most = self.top.outcomes[[0, -1]].tolist()
        middle = most - self.cut  # of the outcomes, where the noise is 0
        beyond = np.flatnonzero((found == least) | (found == most))
        for table in self.lower:
            found ^= table.draw(noise.size, entropy)
        np.subtract(found, middle, out=noise)
        for _ in range(_MAX_TABLES):
            if not beyond.size:
                return
            # The size of a fresh draw does not depend on its sign, which is dropped.
            again = self.top.draw(beyond.size, entropy).astype(np.int64) - middle
            again ^= again >> 63
            before = noise[beyond]
            noise[beyond] = after = before + np.where(before < 0, -again, again)
            if np.any((after < 0) != (before < 0)):
                raise InputError("a draw of the noise leaves 64 bits; choose a larger step")
            beyond = beyond[again == self.cut]
        raise EntropyStuck


@lru_cache(maxsize=32)
def _digits_of(scale: float, step: Fraction) -> _Digits:
    """Return the tables of a law, made once for all draws of it.

    The tables of the last 32 laws are kept in memory with their scale and step, which are as
    private as the plan: at most six tables of some 200 kB each, a megabyte, for one law.
    """
    rate = step / Fraction(scale)
    if rate * MAX_STEPS < 1:
        raise InputError(
            f"noise of scale {scale!r} on a lattice of step {step} does not fit in 64 bits: "
            f"the scale must be at most 2**57 steps"
        )
    # The smallest shift with 1 / (rate * 2**shift) <= _TOP_SCALE.
    shift = (math.ceil(1 / (rate * _TOP_SCALE)) - 1).bit_length()
    count = -(-shift // _DIGIT_BITS)
    shift = min(shift + _MORE_BITS, count * _DIGIT_BITS)
    edges = [shift * i // max(1, count) for i in range(count + 1)]
    lower = tuple(
        Table.of([Digit(rate, 1 << low, 1 << (high - low))])
        for low, high in itertools.pairwise(edges)
    )
    cut = math.ceil(_TOP_LENGTH / (rate * (1 << shift)))
    return _Digits(Table.of([SignedGeometric(rate, 1 << shift, cut)]), cut << shift, lower)
