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
    units(n) = 11 WIDTH + 9 + units(floor(n / WIDTH))          otherwise.

*Proof.* All numbers are positive, so a computed A_k is the sum over i <= k of its true terms
P_i exp(-(t_k - t_i)), t = c x, each times a product of factors exp(delta_l) for the operations that
the term went through, plus what underflows add. A relative error r <= 8 u is a delta of at most
1.001 r (the spare thousandth also covers the second-order terms).

(1) *Arguments.* c is rounded (u), d_k is exact as a double (at most 2^53), their product is rounded
(u). So exp is applied to a number that errs by at most 2.1 u relative, a delta of 2.1 u times the
exact argument. A term goes through disjoint intervals (weights within its own block, gaps between
block ends, gaps within the last block) that together make up exactly t_k - t_i; so its arguments
contribute 2.1 u (t_k - t_i). (A subnormal c is an absolute error far below u in every argument.)
(2) *Values.* A step of the recursion multiplies by a computed exp (8 u), rounds the product (u) and
the sum (u): 10 u. For n <= 2 WIDTH there are at most n steps. Otherwise a term goes through the
weight (8 u), its product (u) and the sum of WIDTH products in any order (WIDTH u at most), then
through the pass over the blocks, units(floor(n / WIDTH)), then through at most WIDTH steps,
10 WIDTH u. (The atoms after the last whole block count as one more, shorter block, that starts
from the carry of the last whole one. Terms of the block's own atoms go through the steps only.)
(3) *Far terms.* Terms with t_k - t_i > 800 are, true or computed, below exp(-799) times the mass
and together below eta / 4. So 2.1 u min(T, 800) bounds (1) for all others.
(4) *Underflows.* Each operation adds at most eta; where a factor exp underflows, it multiplies a
state of at most 1.01. An atom takes part in at most 7 operations on each level (factor, product,
sum; weight, its product, sum; at the end a product again), and all later factors are at most
1 + 8 u. The levels have n, n / WIDTH, ... atoms, together at most 1.02 n: at most 7.3 n eta. ∎

The same holds for the exclusive pass (without P_k itself): it leaves out one sum.

**Masses and channels.** A mass is a rounded integer over a rounded total: 3 u. A channel's
likelihoods, each output's over their largest, and the weights of its atoms are at most 1 and
rounded once each: two products, with one rounding each, and a sum of n terms in any order (fused or
not), n u at most: in all (n + 5) u.

**Several axes.** Axis by axis, with the theorem's mu set to what has come together so far: every
sum of a line is at most the sum of all masses, 1, as the theorem asks, since all kernels are at
most 1. The two directions are added, one u more. With lambda the relative error after all axes,

    | ln (L_i / L_j) - ln fl(Lh_i / Lh_j) |  <=  2 lambda + 2 kappa + 1.001 u.

**Underflows.** One pass loses at most 7.5 n eta on a line, a matrix product 3 n eta; passing the
noise over a further axis of n atoms, what was lost grows n-fold at most, through a channel n-fold
as well. So in N cells of the whole grid and the atoms of all channels, N' their product, over k
axes, less than alpha = 9 k N' eta comes together. Every Lh that is compared is at least `LOW`, or
the problem is refused; what underflowed then matters less than kappa = 2.02 alpha / LOW.

On a single axis with noise alone only atoms of a pair itself are compared: elsewhere its ratio is
no larger (theory, section 2). On larger grids all outputs are.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
import numpy.typing as npt

from pufferfish.loss.kernel import Axis, Columns, Problem
from pufferfish.numbers import FloatArray, IntArray
from pufferfish.priors.ambiguity import Point

#: Cells of all secrets and adversaries up to which balls are taken at once.
BALL_CELLS = 20_000
#: Cells up to which balls are taken where doubles decide nothing: some seconds.
LAST_BALL_CELLS = 4_000_000
#: Atoms in a block. Near the cube root of 10**6, so that three levels share the errors; not a power
#: of two, or the columns of a block would compete for the same lines of the cache.
WIDTH = 100
#: The unit of rounding.
UNIT = 2.0**-53
#: The least normal double: what one operation can lose to underflow.
LEAST = 2.0**-1022
#: Below this a likelihood is left to balls.
LOW = 2.0**-900
#: Far terms: exp(-800) is below every double.
_FAR = 800.0
#: Beyond this range distances might overflow.
_LONGEST = 1e305
#: Lines are passed in pieces of so many cells, to bound the memory.
_PIECE = 1 << 18
#: Cells of several secrets that are computed together.
_BATCH = 1 << 22


class TooExtreme(ArithmeticError):
    """The problem lies outside what the error bound is proved for; balls can do it."""


@dataclass(frozen=True)
class Enclosure:
    """Proven bounds of a finite loss, and where the computed one is largest."""

    lower: float
    upper: float
    cell: int
    pair: tuple[int, int]
    adversary: int


def enclose_in_doubles(problem: Problem) -> Enclosure:
    """Bound a loss of points that is known to be finite, or raise TooExtreme."""
    with np.errstate(all="ignore"):
        found = [_adversary(problem, rho) for rho in range(len(problem.adversaries))]
    error = error_bound(problem)
    best = max(range(len(found)), key=lambda rho: found[rho][0])
    ratio, cell, pair = found[best]
    # log of NumPy or C within 8 u, and one rounding more: twice that is added.
    log = math.log(ratio)
    error = math.nextafter(error + 20 * UNIT * abs(log), math.inf)
    lower = max(0.0, math.nextafter(log - error, -math.inf))
    return Enclosure(lower, math.nextafter(log + error, math.inf), cell, pair, best)


def error_bound(problem: Problem, any_rate: bool = False) -> float:
    """Return 2 lambda + 2 kappa + 1.001 u, rounded up; at the problem's own rates or at any."""
    rounded, cells = 3.0, float(problem.cells)
    for axis in problem.axes:
        if axis.columns is not None:
            rounded += len(axis.atoms) + 5
            cells *= len(axis.atoms)
    for axis in problem.axes:
        if axis.noisy:
            span = _FAR if any_rate else _rate(axis) * float(axis.places[-1])
            rounded = relative_error(len(axis.atoms), math.ceil(rounded), span) / UNIT + 2
    lost = 2.02 * 9.0 * max(1, len(problem.shape)) * cells * LEAST / LOW
    if lost > UNIT:
        raise TooExtreme
    return 1.01 * (2 * rounded * UNIT + 2 * lost + UNIT)


def relative_error(size: int, rounded: int, span: float) -> float:
    """Return lambda of the theorem above, for n atoms, mu = ``rounded`` and T = ``span``."""
    return 1.001 * UNIT * (rounded + _units(size) + 2.1 * min(span, _FAR))


def _units(size: int) -> int:
    if size <= 2 * WIDTH:
        return 10 * size
    return 11 * WIDTH + 9 + _units(size // WIDTH)


def _adversary(problem: Problem, rho: int) -> tuple[float, int, tuple[int, int]]:
    """Return the largest computed ratio, its cell and its secrets, likelier first."""
    points = [own for own in problem.adversaries[rho] if isinstance(own, Point)]
    single = problem.pure_noise and len(problem.axes) == 1
    rows = _rows(problem, points, single)
    if not problem.all_pairs or len(points) == 2:
        kept = list(rows)
        found = []
        for i, j in problem.pairs:
            own = _own([points[i], points[j]]) if single else None
            one, other = kept[i], kept[j]
            ratio, cell = _worst(np.maximum(one, other), np.minimum(one, other), own)
            found.append((ratio, cell, (i, j) if one[cell] >= other[cell] else (j, i)))
        return max(found)
    high = next(rows).copy()
    low = high.copy()
    high_row, low_row = np.zeros((2, len(high)), dtype=np.int32)
    for s, row in enumerate(rows, start=1):
        high_row[row > high] = s
        low_row[row < low] = s
        np.maximum(high, row, out=high)
        np.minimum(low, row, out=low)
    ratio, cell = _worst(high, low, _own(points) if single else None)
    return ratio, cell, (int(high_row[cell]), int(low_row[cell]))


def _own(points: Sequence[Point]) -> npt.NDArray[np.bool_]:
    """Return which atoms any of the points has."""
    own: npt.NDArray[np.bool_] = reduce(np.logical_or, (point.masses != 0 for point in points))
    return own


def _worst(
    high: FloatArray, low: FloatArray, own: npt.NDArray[np.bool_] | None
) -> tuple[float, int]:
    """Return the largest ratio, at least 1, and its cell; where both are 0 there is none."""
    compared = high > 0 if own is None else own
    whole = bool(compared.all())
    if not bool((low if whole else low[compared]).min(initial=1.0) >= LOW):
        raise TooExtreme
    ratio = high / low if whole else np.where(compared, high / low, 1.0)
    cell = int(ratio.argmax())
    return max(1.0, float(ratio[cell])), cell


def _rows(problem: Problem, points: Sequence[Point], single: bool) -> Iterator[FloatArray]:
    """Yield the likelihoods of one secret after another on the whole grid, flat."""
    batch = max(1, _BATCH // problem.cells)
    for start in range(0, len(points), batch):
        array = np.stack([_masses(point) for point in points[start : start + batch]])
        at = 1
        for axis in problem.axes:
            if axis.columns is not None:
                array = _channel(array, at, axis, axis.columns)
            at += len(axis.shape)
        possible = None if single else array > 0
        at = 0
        for axis in problem.axes:
            at += len(axis.shape)
            if axis.noisy:
                array = _noise(array, at, axis)
                if possible is not None:
                    possible = possible.any(axis=at, keepdims=True)
                    possible = np.broadcast_to(possible, array.shape)
        if possible is not None and not bool((array[possible] >= LOW).all()):
            raise TooExtreme
        yield from array.reshape(len(array), -1)


def _masses(point: Point) -> FloatArray:
    if point.masses.dtype == object:
        # True division of Python integers rounds once.
        values = np.array([int(v) / point.total for v in point.masses.reshape(-1)])
        values = values.reshape(point.masses.shape)
    else:
        values = point.masses / float(point.total)
    _check_least(values[point.masses != 0])
    return values


def _channel(array: FloatArray, at: int, axis: Axis, columns: Columns) -> FloatArray:
    likelihoods = np.array([[v / max(column) for v in column] for column in columns])
    weights = np.array([w / max(axis.weights) for w in axis.weights])
    _check_least(likelihoods[np.array([[v > 0 for v in column] for column in columns])])
    _check_least(weights)
    moved = np.moveaxis(array, at, -1) * weights
    if axis.noisy:
        return np.moveaxis(moved[..., None, :] * likelihoods, (-2, -1), (at, at + 1))
    # One product of two matrices in C order is what BLAS does best.
    lines = moved.reshape(-1, len(weights))
    product = lines @ np.ascontiguousarray(likelihoods.T)
    return np.moveaxis(product.reshape(*moved.shape[:-1], len(columns)), -1, at)


def _check_least(values: FloatArray) -> None:
    """Three of these, multiplied, stay above `LOW`: what is possible is seen to be."""
    if values.size and not float(values.min()) >= 2.0**-300:
        raise TooExtreme


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
    for start in range(0, len(lines), size):
        piece = lines[start : start + size]
        into = passed[start : start + size]
        into[:] = scan(index, piece, rate, inclusive=True)
        into += scan(mirrored, piece[:, ::-1], rate, inclusive=False)[:, ::-1]
    return np.moveaxis(passed.reshape(shape), -1, at)


def _rate(axis: Axis) -> float:
    return _quotient(axis.rate)


def _quotient(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise TooExtreme from None


def scan(index: IntArray, masses: FloatArray, rate: float, *, inclusive: bool) -> FloatArray:
    """Return the pass from left to right of several lines at once, shape (m, n).

    Within the theorem's bounds of the sums over i <= k (or i < k) of P_i exp(-c (x_k - x_i)).
    """
    lines, size = masses.shape
    passed = np.empty((lines, size))
    factors = np.zeros(size)
    np.multiply(np.diff(index), -rate, out=factors[1:])
    np.exp(factors[1:], out=factors[1:])
    width = size if size <= 2 * WIDTH else WIDTH
    blocks = size // width
    whole = blocks * width
    blocked = masses[:, :whole].reshape(lines, blocks, width)
    state = np.zeros((lines, blocks))
    tail = np.zeros((lines, 1))
    if blocks > 1:
        carried = _carried(index[:whole].reshape(blocks, width), blocked, rate)
        state[:, 1:] = carried[:, :-1]
        tail = carried[:, -1:].copy()
    _advance(
        state,
        factors[:whole].reshape(blocks, width),
        blocked,
        passed[:, :whole].reshape(lines, blocks, width),
        inclusive,
    )
    if whole < size:
        rest = (lines, 1, size - whole)
        _advance(
            tail,
            factors[whole:].reshape(rest[1:]),
            masses[:, whole:].reshape(rest),
            passed[:, whole:].reshape(rest),
            inclusive,
        )
    return passed


def _carried(index: IntArray, masses: npt.NDArray[np.float64], rate: float) -> FloatArray:
    """Return the pass at the last atom of every block."""
    ends = index[:, -1]
    weights = np.multiply(index - ends[:, None], rate)
    np.exp(weights, out=weights)
    totals: FloatArray = np.einsum("bj,sbj->sb", weights, masses)
    return scan(ends, totals, rate, inclusive=True)


def _advance(
    state: FloatArray,
    factors: npt.NDArray[np.float64],
    masses: npt.NDArray[np.float64],
    passed: npt.NDArray[np.float64],
    inclusive: bool,
) -> None:
    """Run the recursion in all blocks together, column by column; ``passed`` is filled in place."""
    for j in range(factors.shape[1]):
        state *= factors[:, j]
        if not inclusive:
            passed[:, :, j] = state
        state += masses[:, :, j]
        if inclusive:
            passed[:, :, j] = state
