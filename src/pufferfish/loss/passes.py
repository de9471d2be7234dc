# SPDX-License-Identifier: Apache-2.0
"""Passes of Laplace noise in doubles: first-order recursions, in blocks of atoms.

L(y) = sum_x P(x) exp(-|y - x| u) at all atoms y takes one pass in each direction with the factor
exp(-gap u) (theory, section 2). Inside a block a pass is a cumulative sum of masses scaled to the
block's start; between blocks the carry is kept as a logarithm, so that nothing underflows at any
distance. What is lost inside a block lies below e^-745 of its largest term, and that one reaches
every place of the block with at least e^-600 of itself, in one pass or the other.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pufferfish.loss.support_function import Extreme
from pufferfish.numbers import FloatArray, IntArray

#: Beyond this distances in units of theta overflow.
LARGEST_U = 1e290
#: Least plain likelihood: what is smaller is as good as that.
FLOOR = 1e-250
#: Largest span of a block in units of theta: exp(+-600) is far from overflow and underflow.
_SPAN_LIMIT = 600.0
#: Span that a block should have: an exponent of 64 costs 64 units in the last place.
_SPAN_GOAL = 64.0
_LARGEST_BLOCK = 512
_SMALLEST_GOOD_BLOCK = 64
#: Elements worked on at a time: a few arrays of this size fit in a second-level cache.
_PIECE = 2**15
#: Share of a sum below which a difference has lost digits.
_LOST = 1e-4


def _padded(index: IntArray, masses: FloatArray, fill: float) -> tuple[IntArray, FloatArray]:
    """Return places and masses with some more atoms, so that they are whole blocks."""
    unit = min(_LARGEST_BLOCK, 1 << max(0, len(index) - 1).bit_length())
    padding = (0, -len(index) % unit)
    return np.pad(index, padding, "edge"), np.pad(masses, ((0, 0), padding), constant_values=fill)


def _block_size(index: IntArray, u: float) -> int:
    """Return the largest power of two for which every block spans little enough."""
    size = min(_LARGEST_BLOCK, len(index))
    while size > 1:
        places = index.reshape(-1, size)
        span = float((places[:, -1] - places[:, 0]).max()) * u
        if span <= _SPAN_GOAL or (span <= _SPAN_LIMIT and size <= _SMALLEST_GOOD_BLOCK):
            break
        size //= 2
    return size


def _carries(starts: IntArray, sums: FloatArray, u: float, farthest: float = np.inf) -> FloatArray:
    """Return ln of what all earlier blocks contribute at the start of each block, shape (m, b).

    A scan by doubling: after the step with shift d each entry covers the 2 d blocks before it.
    What is farther away than ``farthest`` in units of theta may be left out.
    """
    carry = np.full(sums.shape, -np.inf)
    carry[:, 1:] = sums[:, :-1] - np.diff(starts) * u
    shift = 1
    while shift < len(starts) - 1:
        distance = (starts[1 + shift :] - starts[1:-shift]) * u
        if distance.min() > farthest:
            break
        carry[:, 1 + shift :] = np.logaddexp(carry[:, 1 + shift :], carry[:, 1:-shift] - distance)
        shift *= 2
    return carry


class PlainPass:
    """Likelihoods of several secrets on one support as plain numbers, piece by piece.

    ``index``: places of the n atoms in steps, increasing; ``masses``: shape (m, n).
    """

    def __init__(self, index: IntArray, masses: FloatArray) -> None:
        self.size = len(index)
        self.index, self.masses = _padded(index, masses, 0.0)

    def pieces(self, u: float) -> Iterator[tuple[int, FloatArray]]:
        """Yield the first atom of a piece, and L at its atoms up to a factor of each, (m, k)."""
        size = _block_size(self.index, u)
        places = self.index.reshape(-1, size)
        starts = places[:, 0]
        grown: FloatArray = np.exp((places - starts[:, None]) * u)
        shrunk: FloatArray = 1.0 / grown
        blocks = self.masses.reshape(len(self.masses), -1, size)
        from_left = np.log(np.einsum("sbk,bk->sb", blocks, grown))
        from_right = np.log(np.einsum("sbk,bk->sb", blocks, shrunk))
        left = np.exp(_carries(starts, from_left, u, _SPAN_LIMIT))
        mirrored = (starts[-1] - starts)[::-1]
        right = np.exp(_carries(mirrored, from_right[:, ::-1], u, _SPAN_LIMIT))[:, ::-1]
        step = max(1, _PIECE // size)
        for at in range(0, len(starts), step):
            cut = slice(at, at + step)
            piece = _plain(blocks[:, cut], grown[cut], shrunk[cut], left[:, cut], right[:, cut])
            yield at * size, piece[:, : self.size - at * size]


def _plain(
    masses: FloatArray, grown: FloatArray, shrunk: FloatArray, left: FloatArray, right: FloatArray
) -> FloatArray:
    """Return L at the atoms of some blocks, from what all others contribute at their starts."""
    rising = masses * grown
    np.cumsum(rising, axis=2, out=rising)
    rising += left[:, :, None]
    rising *= shrunk
    falling = masses * shrunk
    backwards = falling[:, :, ::-1]
    np.cumsum(backwards, axis=2, out=backwards)
    # The atom's own mass is in `rising`: take what lies strictly to its right.
    falling[:, :, :-1] = falling[:, :, 1:]
    falling[:, :, -1] = 0.0
    falling += right[:, :, None]
    falling *= grown
    rising += falling
    flat = rising.reshape(len(masses), -1)
    return np.maximum(flat, FLOOR, out=flat)


def _one_way(index: IntArray, logs: FloatArray, u: float) -> FloatArray:
    """Return ln of sum_{j <= k} exp(l_j - (x_k - x_j) u), along the last axis of (..., n)."""
    n, lines = len(index), logs.reshape(-1, len(index))
    index, lines = _padded(index, lines, -np.inf)
    places = index.reshape(-1, _block_size(index, u))
    fore = (places - places[:, :1]) * u
    blocks = lines.reshape(-1, *places.shape)
    top = blocks.max(axis=2, keepdims=True)
    top[top == -np.inf] = 0.0
    sums = np.log(np.cumsum(np.exp(blocks - top + fore), axis=2)) + top
    carry = _carries(places[:, 0], sums[:, :, -1], u)
    passed: FloatArray = np.logaddexp(sums, carry[:, :, None]) - fore
    return passed.reshape(len(lines), -1)[:, :n].reshape(logs.shape)


def both_ways(index: IntArray, logs: FloatArray, u: float) -> tuple[FloatArray, FloatArray]:
    """Return the passes from the left and from the right, each with an atom's own mass."""
    right = _one_way((index[-1] - index)[::-1], logs[..., ::-1], u)[..., ::-1]
    return _one_way(index, logs, u), right


def _joined(left: FloatArray, right: FloatArray, index: IntArray, u: float) -> FloatArray:
    """Return what both passes give together: each atom counts once."""
    whole = left.copy()
    beyond = right[..., 1:] - np.diff(index) * u
    whole[..., :-1] = np.logaddexp(left[..., :-1], beyond)
    return whole


def noise_pass(index: IntArray, logs: FloatArray, u: float) -> FloatArray:
    """Return ln of sum_j exp(l_j - |x_k - x_j| u) along the last axis, for u > 0.

    ``index``: places in steps, increasing, shape (n,). ``logs``: l, shape (..., n); minus infinity
    where there is no mass.
    """
    lines = logs.reshape(-1, len(index))
    passed = np.empty_like(lines)
    step = max(1, _PIECE // len(index))
    for at in range(0, len(lines), step):
        cut = slice(at, at + step)
        passed[cut] = _joined(*both_ways(index, lines[cut], u), index, u)
    return passed.reshape(logs.shape)


class ExtremePass:
    """ln <P, k_y> at all outputs y, for the extreme P of each over a region.

    ``index``: places of the atoms in steps, increasing from 0.
    """

    def __init__(self, extreme: Extreme, index: IntArray) -> None:
        self.extreme, self.index = extreme, index
        region = extreme.region
        self.room, self.least, self.shell, self.free = (
            np.log(quotients(own, region.unit))
            for own in (region.room, region.least, extreme.shell.tolist(), [region.free])
        )

    def logs(self, u: float) -> FloatArray:
        """Return it, shape (n,)."""
        index, extreme = self.index, self.extreme
        left, right = both_ways(index, self.room, u)
        # What lies before the first atom of the slice, and after its last one.
        first, last = extreme.first - 1, np.minimum(extreme.last, len(index) - 1)
        before = np.where(first < 0, -np.inf, left[first] - (index - index[first]) * u)
        after = np.where(extreme.last > last, -np.inf, right[last] - (index[last] - index) * u)
        part = np.logaddexp(before, after)
        if extreme.largest:
            part = self._inside(_joined(left, right, index, u), part, u)
        moved = self.free - np.abs(index - index[extreme.target]) * u
        terms = (part, self.shell - extreme.distance * u, noise_pass(index, self.least, u), moved)
        return np.asarray(np.logaddexp.reduce(terms))

    def _inside(self, whole: FloatArray, beyond: FloatArray, u: float) -> FloatArray:
        """Return ln of what lies within each slice: all but what lies beyond."""
        extreme, index = self.extreme, self.index
        share = np.exp(np.minimum(beyond - whole, 0.0))
        inside: FloatArray = whole + np.log1p(-share)
        empty = extreme.first >= extreme.last
        # Where little is left its digits are lost: there the slice is summed.
        for y in np.flatnonzero(~empty & ~(share <= 1 - _LOST)).tolist():
            cut = slice(int(extreme.first[y]), int(extreme.last[y]))
            terms = self.room[cut] - np.abs(index[cut] - index[y]) * u
            inside[y] = np.logaddexp.reduce(terms)
        inside[empty] = -np.inf
        return inside


def quotients(numerators: Sequence[int], denominator: int) -> FloatArray:
    """Return whole numbers over a denominator as doubles, each rounded once."""
    return np.array([int(c) / denominator for c in numerators], dtype=np.float64)
