# SPDX-License-Identifier: Apache-2.0
r"""The joint loss in doubles with a proved bound of the error, for grids too large for balls.

Assumptions, u = 2^-53, eta = 2^-1022 and the theorem for one pass: see
:mod:`pufferfish.certificate.floatscan`. Nothing here is done in logarithms, so that this shares no
code with the search; where likelihoods come near the smallest doubles :mod:`.scaled` takes over.

**Masses and channels.** A mass is a rounded integer over a rounded total: 3 u. A channel's
likelihoods, each output's over their largest, and the weights of its atoms are at most 1 and
rounded once each: two products, with one rounding each, and a sum of n terms in any order (fused or
not), n u at most: in all (n + 5) u.

**Noise.** Axis by axis, with the theorem's mu set to what has come together so far: every sum of a
line is at most the sum of all masses, 1, as the theorem asks, since all kernels are at most 1. The
two directions are added, one u more. With lambda the relative error after all axes,

    | ln (Q_i / Q_j) - ln fl(Qh_i / Qh_j) |  <=  2 lambda + 2 kappa + 1.001 u.

**Underflows.** One pass loses at most 7.5 n eta on a line, a matrix product 3 n eta; passing the
noise over a further axis of n atoms, what was lost grows n-fold at most, through a channel n-fold
as well. So in N cells of the whole grid and the atoms of all channels, N' their product, over k
axes, less than alpha = 9 k N' eta comes together. Every Qh that is compared is at least `LOW`, or
the scenario is refused; what underflowed then matters less than kappa = 2.02 alpha / LOW.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from flint import arb

from pufferfish.arrays import CountArray, FloatArray
from pufferfish.certificate.arbs import log_bounds
from pufferfish.certificate.floatscan import LEAST, UNIT, relative_error, scan
from pufferfish.joint.axes import Merged
from pufferfish.joint.problem import Problem
from pufferfish.precision import precision

#: Below this a likelihood is left to balls.
LOW = 2.0**-900
#: Lines are passed in pieces of so many cells, to bound the memory.
_PIECE = 1 << 18


class TooExtreme(ArithmeticError):
    """The problem lies outside what the error bound is proved for; balls can do it."""


@dataclass(frozen=True)
class FloatEnclosure:
    """Proven bounds of a finite joint loss, and where the computed one is largest."""

    lower: float
    upper: float
    cell: int
    pair: tuple[int, int]
    adversary: int


def enclose_in_doubles(problem: Problem) -> FloatEnclosure:
    """Bound a joint loss that is known to be finite, in doubles.

    Raises
    ------
    TooExtreme
        If likelihoods come near the smallest doubles.
    """
    with np.errstate(all="ignore"):
        found = [_adversary(problem, rho) for rho in range(len(problem.masses))]
    error = _error(problem)
    bounds = []
    with precision(64):
        for ratio, *_ in found:
            lower, upper = log_bounds(arb(ratio))
            bounds.append((_below(lower, error), math.nextafter(upper + error, math.inf)))
    best = max(range(len(found)), key=lambda rho: bounds[rho][1])
    _, cell, pair = found[best]
    return FloatEnclosure(max(b[0] for b in bounds), bounds[best][1], cell, pair, best)


def _error(problem: Problem) -> float:
    """Return 2 lambda + 2 kappa + 1.001 u, rounded up."""
    rounded = rounded_before_noise(problem)
    cells = float(problem.cells)
    for axis in problem.merged:
        if axis.columns is not None:
            cells *= len(axis.atoms)
    for axis in problem.merged:
        if axis.noisy:
            span = _rate(axis) * float(axis.index[-1])
            rounded = relative_error(len(axis.atoms), math.ceil(rounded), span) / UNIT + 2
    lost = 2.02 * 9.0 * max(1, len(problem.shape)) * cells * LEAST / LOW
    if lost > UNIT:
        raise TooExtreme
    return 1.01 * (2 * rounded * UNIT + 2 * lost + UNIT)


def _adversary(problem: Problem, rho: int) -> tuple[float, int, tuple[int, int]]:
    """Return the largest computed ratio, its cell and its rows, likelier first."""
    rows = _rows(problem, rho)
    if not problem.all_pairs or len(problem.rows) == 2:
        kept = list(rows)
        return reduce(
            lambda a, b: b if b[0] > a[0] else a,
            (_pair(kept[i], kept[j], (i, j)) for i, j in problem.pairs),
        )
    high = next(rows)
    low = high.copy()
    high_row, low_row = np.zeros((2, len(high)), dtype=np.int32)
    high = high.copy()
    for s, row in enumerate(rows, start=1):
        high_row[row > high] = s
        low_row[row < low] = s
        np.maximum(high, row, out=high)
        np.minimum(low, row, out=low)
    ratio = _ratio(high, low)
    cell = int(ratio.argmax())
    return float(ratio[cell]), cell, (int(high_row[cell]), int(low_row[cell]))


def _pair(
    one: FloatArray, other: FloatArray, pair: tuple[int, int]
) -> tuple[float, int, tuple[int, int]]:
    ratio = _ratio(np.maximum(one, other), np.minimum(one, other))
    cell = int(ratio.argmax())
    return float(ratio[cell]), cell, pair if one[cell] >= other[cell] else (pair[1], pair[0])


def _ratio(high: FloatArray, low: FloatArray) -> FloatArray:
    """Return high / low; 1 where both are 0, as no loss is below 0."""
    with np.errstate(all="ignore"):
        return np.where(high > 0, high / low, 1.0)


def _rows(problem: Problem, rho: int) -> Iterator[FloatArray]:
    """Yield the likelihoods of one secret after another on the whole grid, flat.

    Raises
    ------
    TooExtreme
        If a positive one is below `LOW`.
    """
    for array in starts(problem, rho):
        at = 0
        possible = array > 0
        for axis in problem.merged:
            at += len(axis.shape)
            if axis.noisy:
                array = _noise(array, at - 1, axis)
                possible = np.broadcast_to(possible.any(axis=at - 1, keepdims=True), array.shape)
        if not bool((array[possible] >= LOW).all()):
            raise TooExtreme
        yield array.reshape(-1)


def starts(problem: Problem, rho: int) -> Iterator[FloatArray]:
    """Yield the masses of one secret after another behind the channels, before the noise.

    Raises
    ------
    TooExtreme
        If something positive is so small that it might vanish.
    """
    for row, total in zip(problem.masses[rho], problem.totals[rho], strict=True):
        array = _masses(row, total)
        at = 0
        for axis in problem.merged:
            if axis.columns is not None:
                array = _channel(array, at, axis)
            at += len(axis.shape)
        yield array


def rounded_before_noise(problem: Problem) -> float:
    """Return the relative error of masses and channels together, in units of u."""
    channels = [len(a.atoms) + 5 for a in problem.merged if a.columns is not None]
    return 3.0 + sum(channels)


def _masses(row: CountArray, total: int) -> FloatArray:
    if row.dtype == object:
        # True division of Python integers rounds once.
        values = np.array([int(v) / total for v in row.reshape(-1)]).reshape(row.shape)
    else:
        values = row / float(total)
    _check_least(values[row != 0])
    return values


def _channel(array: FloatArray, at: int, axis: Merged) -> FloatArray:
    likelihoods = np.array([[v / max(column) for v in column] for column in axis.columns or []])
    weights = np.array([w / max(axis.weights) for w in axis.weights])
    positive = [[v > 0 for v in column] for column in axis.columns or []]
    _check_least(likelihoods[np.array(positive)])
    _check_least(weights)
    moved = np.moveaxis(array, at, -1) * weights
    if axis.noisy:
        return np.moveaxis(moved[..., None, :] * likelihoods, (-2, -1), (at, at + 1))
    # One product of two matrices in C order is what BLAS does best.
    lines = moved.reshape(-1, len(weights))
    product = lines @ np.ascontiguousarray(likelihoods.T)
    return np.moveaxis(product.reshape(*moved.shape[:-1], len(likelihoods)), -1, at)


def _check_least(values: FloatArray) -> None:
    """Three of these, multiplied, stay above `LOW`: what is possible is seen to be."""
    if values.size and not float(values.min()) >= 2.0**-300:
        raise TooExtreme


def _noise(array: FloatArray, at: int, axis: Merged) -> FloatArray:
    """Pass the noise over one axis, in both directions."""
    rate, index = _rate(axis), axis.index
    lines = np.moveaxis(array, at, -1)
    shape = lines.shape
    lines = np.ascontiguousarray(lines).reshape(-1, shape[-1])
    mirrored = (index[-1] - index)[::-1]
    passed = np.empty_like(lines)
    size = max(1, _PIECE // shape[-1])
    for start in range(0, len(lines), size):
        piece = lines[start : start + size]
        passed[start : start + size] = scan(index, piece, rate, inclusive=True)
        passed[start : start + size] += scan(mirrored, piece[:, ::-1], rate, inclusive=False)[
            :, ::-1
        ]
    return np.moveaxis(passed.reshape(shape), -1, at)


def _rate(axis: Merged) -> float:
    try:
        return axis.rate.numerator / axis.rate.denominator
    except OverflowError:
        raise TooExtreme from None


def _below(number: float, error: float) -> float:
    return max(0.0, math.nextafter(number - error, -math.inf))
