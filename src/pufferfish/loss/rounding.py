# SPDX-License-Identifier: Apache-2.0
r"""The loss in doubles with a proved bound of the error, for grids too large for balls.

A pass is A_k = P_k + e_k A_{k-1} with e_k = exp(-c d_k), d_k the whole number of steps between
neighbouring atoms and c = step / theta; from right to left it is the same on mirrored atoms. Done
one atom after the other it would cost n rounding errors and n calls. So the atoms are cut into
blocks of `WIDTH`, and all blocks advance together, one column of atoms at a time; a block starts
with what is carried over from the earlier ones, and these carries are the same recursion again, on
the blocks' totals (P weighted by exp(-c distance to the block's last atom)), about n / WIDTH of
them. Every factor is at most 1: nothing overflows, whatever the distances.

**Assumptions.** IEEE-754 doubles, rounded to nearest, unit u = 2^-53: every sum, product, quotient
and conversion from int64 is exact up to a relative error u. exp of NumPy errs by at most 4 units in
the last place, that is 8 u relative. Results below the normal range may come out as anything
between 0 and eta = 2^-1022 (flushing to zero included).

**Theorem.** Let p_k = P_k exp(delta), |delta| <= mu u, be the masses as given, 0 <= P_k, sum of P_k
<= 1, and T = c (x_n - x_1) the whole range. Then the computed pass lies between
A_k exp(-lambda) - alpha and A_k exp(lambda) + alpha, where

    lambda = 1.001 u (mu + units(n) + 2.1 min(T, 800)),     alpha = 7.5 n eta,
    units(n) = 10 n                                            for n <= 2 WIDTH,
    units(n) = 11 WIDTH + 9 + units(ceil(n / WIDTH))           otherwise.

The proof is in section 9 of the theory. The same holds for the exclusive pass (without P_k
itself): it leaves out one sum.

**Masses.** A mass behind the channels is a rounded integer over a rounded total: mu = 3. They are
chances of outputs, which sum to at most 1.

**Several axes.** Axis by axis, with the theorem's mu set to what has come together so far: every
sum of a line is at most the sum of all masses, 1, as the theorem asks, since all kernels are at
most 1. The two directions are added, one u more. With lambda the relative error after all axes,

    | ln (L_i / L_j) - ln fl(Lh_i / Lh_j) |  <=  2 lambda + 2 kappa + 1.001 u.

**Underflows.** One pass loses at most 7.5 n eta on a line; passing the noise over a further axis of
n atoms, what was lost grows n-fold at most. So in N cells of the whole grid, over k axes, less than
alpha = 9 k N eta comes together. Every Lh that is compared is at least `LOW`, or the problem is
refused; what underflowed then matters less than kappa = 2.02 alpha / LOW, less than u / 2 for
N < 2^40.
"""

import math
from fractions import Fraction

import numpy as np

from pufferfish.loss.bounds import causes
from pufferfish.loss.kernel import Axis
from pufferfish.loss.problem import Problem, Where, largest
from pufferfish.numbers import FloatArray, IntArray

#: Cells of all secrets of one adversary up to which balls are taken at once.
BALL_CELLS = 20_000
#: Atoms in a block. Near the cube root of 10**6, so that three levels share the errors; not a power
#: of two, or the columns of a block would compete for the same lines of the cache.
WIDTH = 100
#: The unit of rounding.
UNIT = 2.0**-53
#: Below this a likelihood is left to balls.
LOW = 2.0**-900
#: Smaller masses are refused.
_LEAST_MASS = 2.0**-850
#: Far terms: exp(-800) is below every double.
_FAR = 800.0
#: Beyond this range distances might overflow.
_LONGEST = 1e305
#: Lines are passed in pieces of so many cells, to bound the memory.
_PIECE = 1 << 18


class TooExtreme(ArithmeticError):
    """The problem lies outside what the error bound is proved for; balls can do it."""


def enclose_in_doubles(problem: Problem) -> tuple[float, float, Where]:
    """Bound the loss of points, which must not be infinite, or raise TooExtreme."""
    points = problem.points
    with np.errstate(all="ignore"):
        # Three roundings of each mass at most.
        rows = np.stack([np.asarray(own.masses / own.total, dtype=np.float64) for own in points])
        has = np.stack([own.masses != 0 for own in points])
        if not float(rows.min(initial=1.0, where=has)) >= _LEAST_MASS:
            raise TooExtreme
        for at, axis in problem.noises:
            rows = _noise(rows, at + 1, axis)
        rows = rows.reshape(len(rows), -1)
        # What none of those that are compared can cause is equal for all of them.
        np.copyto(rows, 1.0, where=~causes(problem))
        if not float(rows.min()) >= LOW:
            raise TooExtreme
        ratio, where = max(largest(rows, rows, sides, np.divide) for sides in problem.comparisons)
    # The logarithm errs by at most 8 u relative, the sums below by u each.
    log = math.log(ratio)
    error = math.nextafter(error_bound(problem) + 20 * UNIT * log, math.inf)
    lower = max(0.0, math.nextafter(log - error, -math.inf))
    return lower, math.nextafter(log + error, math.inf), where


def error_bound(problem: Problem, any_rate: bool = False) -> float:
    """Return 2 lambda + 2 kappa + 1.001 u, rounded up; at the problem's own rates or at any."""
    rounded = 3.0
    for _, axis in problem.noises:
        span = _FAR if any_rate else min(_FAR, _rate(axis) * float(axis.places[-1]))
        rounded = 1.001 * (rounded + _units(len(axis.atoms)) + 2.1 * span) + 2
    return 1.01 * UNIT * (2 * rounded + 2)


def _units(size: int) -> int:
    if size <= 2 * WIDTH:
        return 10 * size
    return 11 * WIDTH + 9 + _units(-(-size // WIDTH))


def _rate(axis: Axis) -> float:
    return float(min(axis.rate, Fraction(2) ** 1000))


def _noise(array: FloatArray, at: int, axis: Axis) -> FloatArray:
    """Pass the noise over one axis, in both directions."""
    rate, index = _rate(axis), axis.places
    if not rate * float(index[-1]) < _LONGEST:
        raise TooExtreme
    lines = np.moveaxis(array, at, -1)
    shape = lines.shape
    lines = np.ascontiguousarray(lines).reshape(-1, shape[-1])
    mirrored = (index[-1] - index)[::-1]
    passed = np.empty_like(lines)
    size = max(4, _PIECE // shape[-1])
    for cut in (slice(start, start + size) for start in range(0, len(lines), size)):
        passed[cut] = scan(index, lines[cut], rate, inclusive=True)
        passed[cut] += scan(mirrored, lines[cut, ::-1], rate, inclusive=False)[:, ::-1]
    return np.moveaxis(passed.reshape(shape), -1, at)


def scan(index: IntArray, masses: FloatArray, rate: float, *, inclusive: bool) -> FloatArray:
    """Return the pass from left to right of several lines at once, shape (m, n).

    Within the theorem's bounds of the sums over i <= k (or i < k) of P_i exp(-c (x_k - x_i)).
    """
    lines, size = masses.shape
    width = size if size <= 2 * WIDTH else WIDTH
    padding = -size % width
    index = np.concatenate([index, np.full(padding, index[-1])])
    if padding:
        masses = np.concatenate([masses, np.zeros((lines, padding))], axis=1)
    places, blocked = index.reshape(-1, width), masses.reshape(lines, -1, width)
    factors = np.exp(np.diff(index, prepend=index[0]) * -rate).reshape(-1, width)
    state = np.zeros((lines, len(places)))
    if len(places) > 1:
        ends = places[:, -1]
        totals = np.einsum("bj,sbj->sb", np.exp((places - ends[:, None]) * rate), blocked)
        state[:, 1:] = scan(ends, totals, rate, inclusive=True)[:, :-1]
    # Ordered by the place within a block: a step then works on neighbours in memory.
    passed = blocked.transpose(2, 0, 1).copy()
    for factor, own in zip(factors.T.copy(), passed, strict=True):
        before = state * factor
        state = before + own
        own[:] = state if inclusive else before
    return passed.transpose(1, 2, 0).reshape(lines, -1)[:, :size]
