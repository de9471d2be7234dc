# SPDX-License-Identifier: Apache-2.0
"""The inverse filter of discrete Laplace noise over the atoms: a tridiagonal system.

On a whole lattice the noise is undone by p(k) = q(k) - a/(1-a)^2 (q(k+1) - 2 q(k) + q(k-1)) with
a = exp(-g/theta). But the original values lie on n known atoms x_1 < ... < x_n, and that says
more. With K the matrix of a^|x_j - x_k|, the likelihood of y over the atoms is

- c a^|y - x_1| times the first column of K for y <= x_1, and likewise for the last;
- c (alpha times column k + beta times column k + 1) of K for y between x_k and x_(k+1);

c = (1-a)/(1+a). So M = K C, where each column of C has at most two entries, and M w = b becomes
C w = K^-1 b with K^-1 tridiagonal. The unbiased weights that have the least variance when all
atoms are equally frequent (Q = K 1, the likelihood of y is then in proportion to alpha Q_k +
beta Q_(k+1)) are u_k at atom k, u_1 and u_n beyond the ends, and in between an average

    (1 - omega) u_k + omega u_(k+1),   omega = beta Q_(k+1) / (alpha Q_k + beta Q_(k+1)),

so that u solves a tridiagonal system S u = K^-1 b. If the atoms are neighbours on the lattice,
S is diagonal, and inside the range the weights are those of the filter above.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pufferfish.estimate.figures import FloatArray
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.support import IntArray

#: Lattice points between atoms that are summed over; some seconds.
MOST_CELLS = 20_000_000


@dataclass(frozen=True, eq=False)
class Filter:
    """The inverse filter of one noise over some atoms.

    Attributes
    ----------
    index : int64 array, shape (n,)
        The atoms in steps.
    rate : float
        g / theta: the noise falls by exp(-rate) at each step.
    ends : float64 array, shape (2, n)
        The entries of K^-1 on the diagonal and below it (the last of these is not used).
    system : float64 array, shape (3, n)
        The entries of S below, on and above the diagonal, in the row that they stand in.
    mixture : float64 array, shape (n,)
        ln Q.
    """

    index: IntArray
    rate: float
    ends: FloatArray
    system: FloatArray
    mixture: FloatArray

    @classmethod
    def of(cls, index: IntArray, noise: DiscreteLaplace) -> "Filter":
        """Return the filter; there are at most MOST_CELLS lattice points between the atoms.

        Parameters
        ----------
        index : int64 array, shape (n,)
            The atoms in steps of the noise, increasing.
        noise : DiscreteLaplace
            Of a scale above 0.
        """
        rate = float(noise.step / Fraction(noise.scale))
        gaps = np.diff(index)
        ends = np.zeros((2, len(index)))
        falls = np.exp(-rate * gaps)
        rests = -np.expm1(-2 * rate * gaps)  # 1 - fall^2
        ends[0] = 1.0
        ends[0, :-1] += falls**2 / rests
        ends[0, 1:] += falls**2 / rests
        ends[1, :-1] = -falls / rests
        mixture = np.log(_reached(falls) + _reached(falls[::-1])[::-1] - 1)
        return cls(index, rate, ends, _system(gaps, rate, mixture), mixture)

    @property
    def diagonal(self) -> bool:
        """Whether the atoms are neighbours on the lattice."""
        return bool((np.diff(self.index) == 1).all())

    def weights(self, sides: FloatArray) -> FloatArray:
        """Return the weights u at the atoms, shape (n, k), for b of shape (n, k)."""
        right: FloatArray = self.ends[0][:, None] * sides
        right[1:] += self.ends[1, :-1, None] * sides[:-1]
        right[:-1] += self.ends[1, :-1, None] * sides[1:]
        if self.diagonal:
            right /= self.system[1][:, None]
            return right
        below, pivot, above = self.system[0], self.system[1].copy(), self.system[2]
        for k in range(1, len(pivot)):
            factor = below[k] / pivot[k - 1]
            pivot[k] -= factor * above[k - 1]
            right[k] -= factor * right[k - 1]
        right[-1] /= pivot[-1]
        for k in range(len(pivot) - 2, -1, -1):
            right[k] -= above[k] * right[k + 1]
            right[k] /= pivot[k]
        return right

    def shares(self, released: IntArray) -> tuple[NDArray[np.intp], FloatArray]:
        """Return for each released value, in steps, the atom k at or below it, and omega.

        Values beyond the ends count as the end: nothing is lost by that.
        """
        index = self.index
        inside = np.clip(released, index[0], index[-1])
        k = np.searchsorted(index, inside, side="right") - 1
        next_one = np.minimum(k + 1, len(index) - 1)
        gap = (index[next_one] - index[k]).astype(np.float64)
        depth = (inside - index[k]).astype(np.float64)
        omega = np.zeros(len(released))
        between = depth > 0
        omega[between] = _omega(
            depth[between],
            gap[between],
            self.rate,
            (self.mixture[next_one] - self.mixture[k])[between],
        )
        return k, omega


def cells_between(index: IntArray) -> int:
    """Return how many lattice points lie between the first atom and the last and are no atoms."""
    return int(index[-1]) - int(index[0]) + 1 - len(index)


def _reached(falls: FloatArray) -> FloatArray:
    """Return the sum of a^(x_k - x_j) over j <= k, for each k."""
    return np.array(
        list(accumulate(falls.tolist(), lambda total, fall: 1.0 + fall * total, initial=1.0))
    )


def _log_part(far: FloatArray, gap: FloatArray | float, rate: float) -> FloatArray:
    """Return ln alpha, ``far`` steps from the atom whose column alpha multiplies."""
    parts: FloatArray = (
        -rate * far
        + np.log(-np.expm1(-2 * rate * (gap - far)))
        - np.log(-np.expm1(-2 * rate * gap))
    )
    return parts


def _omega(
    depth: FloatArray, gap: FloatArray | float, rate: float, step_up: FloatArray | float
) -> FloatArray:
    """Return omega at some depth above atom k; ``step_up`` is ln Q_(k+1) - ln Q_k."""
    odds = _log_part(depth, gap, rate) - _log_part(gap - depth, gap, rate) - step_up
    return 1 / (1 + np.exp(np.clip(odds, -700, 700)))


def _system(gaps: IntArray, rate: float, mixture: FloatArray) -> FloatArray:
    """Return S: row k is the sum over y of the entry of C at (k, y) times the shares of y."""
    fall = float(np.exp(-rate))
    middle = float(np.tanh(rate / 2))  # (1-a)/(1+a)
    system = np.zeros((3, len(gaps) + 1))
    system[1] = middle
    system[1, 0] = system[1, -1] = 1 / (1 + fall)  # all values on the far side of the end
    if len(gaps) == 0:
        system[1] = 1.0
    for k in np.flatnonzero(gaps > 1).tolist():
        gap = float(gaps[k])
        depth = np.arange(1, int(gaps[k]), dtype=np.float64)
        omega = _omega(depth, gap, rate, float(mixture[k + 1] - mixture[k]))
        lower = middle * np.exp(_log_part(depth, gap, rate))
        upper = lower[::-1]
        system[1, k] += lower @ (1 - omega)
        system[2, k] += lower @ omega
        system[0, k + 1] += upper @ (1 - omega)
        system[1, k + 1] += upper @ omega
    return system
