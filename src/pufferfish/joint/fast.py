# SPDX-License-Identifier: Apache-2.0
"""The joint loss in doubles: one separable pass per axis, in logarithms and scaled blocks.

A channel is a matrix product on its axis. Laplace noise is, line by line of its axis, the sum over
atoms of exp(l_j - |x_k - x_j| u), taken in blocks: inside a block everything is scaled to the
largest term and summed by two cumulative sums, between blocks the carry stays a logarithm, so that
nothing underflows at any distance (as in :mod:`pufferfish.loss`, here from logarithms to
logarithms, since one axis follows the other). What is lost inside a block lies below e^-745 of its
largest term, and that one reaches every place of the block with at least e^-600 of itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.arrays import CountArray, FloatArray, IntArray
from pufferfish.joint.axes import Merged
from pufferfish.joint.problem import Problem
from pufferfish.loss import block_size, carries

#: Products of the smallest mass and the smallest likelihoods below this are left to balls.
_LEAST = 1e-280
#: Sums of distances in units of theta beyond this might overflow.
_LONGEST = 1e306
#: Cells that are worked on at once; they stay in the cache.
_CHUNK = 1 << 16
#: Fewer lines than this are not worth a step of their own for each block.
_FEW_LINES = 64


class BeyondDoubles(ArithmeticError):
    """Masses or distances beyond what doubles can hold: ball arithmetic can do it."""


@dataclass(frozen=True)
class Peak:
    """The loss in doubles, and where it is attained: cell, rows (likelier first), adversary."""

    value: float
    cell: int
    pair: tuple[int, int]
    adversary: int


class FastLoss:
    """The joint loss of one problem as a function of the rates of its noisy axes.

    Parameters
    ----------
    problem : Problem
        Channels and masses are turned into logarithms here, once.

    Raises
    ------
    BeyondDoubles
        If masses and likelihoods are so small that they would vanish.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.rates = [axis.rate for axis in problem.merged if axis.noisy]
        least = math.prod(_smallest(axis) for axis in problem.merged)
        with np.errstate(all="ignore"):
            self.starts = [
                [
                    _start(row, total, problem.merged, least)
                    for row, total in zip(masses, totals, strict=True)
                ]
                for masses, totals in zip(problem.masses, problem.totals, strict=True)
            ]

    def at(self, rates: Sequence[Fraction] | None = None) -> Peak:
        """Return the loss at some rates of the noisy axes (by default their own).

        Parameters
        ----------
        rates : sequence of Fraction
            step / theta_eff for every noisy axis, above 0.

        Raises
        ------
        BeyondDoubles
            If distances over theta overflow.
        """
        units = [_double(rate) for rate in (self.rates if rates is None else rates)]
        noisy = [axis for axis in self.problem.merged if axis.noisy]
        spans = [u * float(axis.index[-1]) for u, axis in zip(units, noisy, strict=True)]
        if not sum(spans) < _LONGEST:
            raise BeyondDoubles
        peaks = []
        with np.errstate(all="ignore"):
            for rho, starts in enumerate(self.starts):
                peaks.append(self._adversary(rho, starts, units))
        return max(peaks, key=lambda peak: peak.value)

    def _adversary(self, rho: int, starts: list[FloatArray], units: list[float]) -> Peak:
        rows = (self._logs(start, units) for start in starts)
        if not self.problem.all_pairs or len(starts) == 2:
            return _chosen(list(rows), self.problem.pairs, rho)
        high = low = next(rows)
        high_row, low_row = (np.zeros(high.shape, dtype=np.int32) for _ in range(2))
        high, low = high.copy(), low.copy()
        for s, logs in enumerate(rows, start=1):
            high_row[logs > high] = s
            low_row[logs < low] = s
            np.maximum(high, logs, out=high)
            np.minimum(low, logs, out=low)
        gap = high - low
        cell = int(np.argmax(np.where(np.isnan(gap), -1.0, gap)))
        pair = int(high_row[cell]), int(low_row[cell])
        return Peak(float(gap[cell]), cell, pair, rho)

    def _logs(self, start: FloatArray, units: list[float]) -> FloatArray:
        """Return ln Q_s on the whole grid, flat."""
        # The axis in turn is the last one; after all of them they are in order again.
        left = iter(units)
        array = start
        for axis in self.problem.merged:
            for d in range(len(axis.shape)):
                array = np.ascontiguousarray(np.moveaxis(array, 0, -1))
                if axis.noisy and d == len(axis.shape) - 1:
                    array = noise_pass(axis.index, array, next(left))
        return array.reshape(-1)


def noise_pass(index: IntArray, logs: FloatArray, u: float) -> FloatArray:
    """Return ln of sum_j exp(l_j - |x_k - x_j| u) along the last axis.

    Parameters
    ----------
    index : int64 array, shape (n,)
        Places in steps, increasing.
    logs : float64 array, shape (..., n)
        l; minus infinity where there is no mass.
    u : float
        step / theta, above 0.
    """
    n = len(index)
    lines = logs.reshape(-1, n)
    result = np.empty_like(lines)
    size = block_size(index, u)
    chunk = max(1, _CHUNK // n)
    if size == 1 and len(lines) >= _FEW_LINES:
        distances = (np.diff(index) * u).tolist()
        for at in range(0, len(lines), chunk):
            result[at : at + chunk] = _atom_by_atom(lines[at : at + chunk], distances)
        return result.reshape(logs.shape)
    blocks = -(-n // size)
    padding = blocks * size - n
    places = np.concatenate([index, np.full(padding, index[-1])]).reshape(blocks, size)
    fore = (places - places[:, :1]) * u
    back = (places[:, -1:] - places) * u
    exps = np.exp(fore), np.exp(-fore), np.exp(back), np.exp(-back)
    for at in range(0, len(lines), chunk):
        piece = lines[at : at + chunk]
        if padding:
            piece = np.concatenate([piece, np.full((len(piece), padding), -np.inf)], axis=1)
        piece = piece.reshape(len(piece), blocks, size)
        result[at : at + chunk] = _blocks(piece, places, u, exps)[:, :n]
    return result.reshape(logs.shape)


def _blocks(
    logs: FloatArray,
    places: IntArray,
    u: float,
    exps: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> FloatArray:
    """Both directions for some lines, cut in blocks, shape (lines, blocks, size)."""
    lines, blocks, size = logs.shape
    rise, fall, back_rise, back_fall = exps
    top = logs.max(axis=2)
    base = np.where(top == -np.inf, 0.0, top)
    scaled = np.exp(logs - base[:, :, None])
    forth = np.cumsum(scaled * rise, axis=2)
    back = np.cumsum((scaled * back_rise)[:, :, ::-1], axis=2)[:, :, ::-1]
    total = forth * fall
    # An atom's own term is in `forth`.
    total[:, :, :-1] += back[:, :, 1:] * back_fall[:, :-1]
    if blocks > 1:
        starts, ends = places[:, 0], places[:, -1]
        left = _carries(starts, np.log(forth[:, :, -1]) + base, u)
        mirrored = (ends[-1] - ends)[::-1]
        right = _carries(mirrored, (np.log(back[:, :, 0]) + base)[:, ::-1], u)[:, ::-1]
        largest = np.maximum(np.maximum(left, right), top)
        largest = np.where(largest == -np.inf, 0.0, largest)
        total *= np.exp(top - largest)[:, :, None]
        total += np.exp(left - largest)[:, :, None] * fall
        total += np.exp(right - largest)[:, :, None] * back_fall
        base = largest
    result = np.log(total)
    result += base[:, :, None]
    return result.reshape(lines, blocks * size)


def _atom_by_atom(logs: FloatArray, distances: list[float]) -> FloatArray:
    """Both directions where atoms are too far apart for blocks, all lines together."""
    columns = np.ascontiguousarray(logs.T)
    total = columns.copy()
    for k, distance in enumerate(distances, start=1):
        np.logaddexp(columns[k], total[k - 1] - distance, out=total[k])
    carried = columns[-1]
    for k in range(len(distances) - 1, -1, -1):
        carried = carried - distances[k]
        np.logaddexp(total[k], carried, out=total[k])
        carried = np.logaddexp(columns[k], carried)
    return total.T


def _carries(starts: IntArray, sums: FloatArray, u: float) -> FloatArray:
    """Return ln of what all earlier blocks contribute at the start of each, shape (lines, b)."""
    lines, blocks = sums.shape
    if lines < _FEW_LINES:
        return carries(starts, sums, u)
    # Block by block, all lines together, takes fewer logarithms than the scan by doubling.
    columns = np.ascontiguousarray(sums.T)
    carry = np.full((blocks, lines), -np.inf)
    for b, distance in enumerate((np.diff(starts) * u).tolist(), start=1):
        np.logaddexp(carry[b - 1], columns[b - 1], out=carry[b])
        carry[b] -= distance
    return carry.T


def _chosen(rows: list[FloatArray], pairs: list[tuple[int, int]], rho: int) -> Peak:
    """Return the largest difference of the pairs' logarithms; 0/0 is skipped."""
    best = Peak(-1.0, 0, pairs[0], rho)
    for i, j in pairs:
        gap = np.abs(rows[i] - rows[j])
        if np.isnan(gap).any():  # both minus infinity
            gap[np.isnan(gap)] = -1.0
        cell = int(np.argmax(gap))
        if gap[cell] > best.value:
            first = rows[i][cell] >= rows[j][cell]
            best = Peak(float(gap[cell]), cell, (i, j) if first else (j, i), rho)
    return best


def _start(row: CountArray, total: int, axes: list[Merged], least: float) -> FloatArray:
    """Return the logarithms of one secret's masses behind all channels, before the noise."""
    probabilities = _quotients(row, total)
    smallest = float(probabilities[row != 0].min())
    if not smallest * least > _LEAST:
        raise BeyondDoubles
    array, at = probabilities, 0
    for axis in axes:
        if axis.columns is not None:
            # Secret by secret the same factor: each output's likelihoods over their largest.
            weights = np.array([w / max(axis.weights) for w in axis.weights])
            columns = np.array([[v / max(c) for v in c] for c in axis.columns])
            moved = np.moveaxis(array, at, -1) * weights
            if axis.noisy:
                moved = moved[..., None, :] * columns
                array = np.moveaxis(moved, (-2, -1), (at, at + 1))
            else:
                lines = moved.reshape(-1, len(weights)) @ np.ascontiguousarray(columns.T)
                array = np.moveaxis(lines.reshape(*moved.shape[:-1], len(columns)), -1, at)
        at += len(axis.shape)
    result: FloatArray = np.log(array)
    return result


def _smallest(axis: Merged) -> float:
    """Return the smallest positive likelihood of an axis, in the units of `_start`."""
    if axis.columns is None:
        return 1.0
    entry = min(v / max(column) for column in axis.columns for v in column if v)
    return entry * min(axis.weights) / max(axis.weights)


def _quotients(row: CountArray, total: int) -> FloatArray:
    if row.dtype == object:
        values = [int(v) / total for v in row.reshape(-1)]
        return np.array(values, dtype=np.float64).reshape(row.shape)
    quotients: FloatArray = row / float(total)
    return quotients


def _double(rate: Fraction) -> float:
    try:
        return rate.numerator / rate.denominator
    except OverflowError:
        raise BeyondDoubles from None
