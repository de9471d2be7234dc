# SPDX-License-Identifier: Apache-2.0
"""Passes of Laplace noise in doubles, as logarithms and as plain numbers.

L(y) = sum_x P(x) exp(-|y - x| u) at all atoms y takes one pass in each direction with the factor
exp(-gap u) (theory, section 2). As logarithms nothing underflows at any distance. Plain numbers are
several times faster: inside a block of atoms a pass is a cumulative sum of masses scaled to the
block's start, and only what is carried from block to block goes through logarithms.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pufferfish.loss.support_function import Extreme
from pufferfish.numbers import FloatArray, IntArray

#: Beyond this distances in units of theta overflow.
LARGEST_U = 1e290
#: Least plain likelihood: what is smaller is as good as that.
FLOOR = 1e-250
#: Largest span of a block in units of theta: exp(+-550) is far from overflow and underflow; and how
#: far its start may be from another one that matters at its end: exp(-708) has all its digits.
_SPAN_LIMIT, _FARTHEST = 550.0, 708.0
#: Span that a block should have: an exponent of 64 costs 64 units in the last place.
_SPAN_GOAL = 64.0
_LARGEST_BLOCK = 512
_SMALLEST_GOOD_BLOCK = 64
#: Elements worked on at a time: a few arrays of this size fit in a second-level cache.
_PIECE = 2**15


def before(index: IntArray, logs: FloatArray, u: float, farthest: float = np.inf) -> FloatArray:
    """Return ln of sum_{j < k} exp(l_j - (x_k - x_j) u), along the last axis of (..., n).

    By doubling: after the step with shift d each entry covers the 2 d places up to its own. What
    is farther away than ``farthest`` in units of theta may be left out.
    """
    passed, shift = logs.copy(), 1
    while shift < len(index):
        distance = (index[shift:] - index[:-shift]) * u
        if distance.min() > farthest:
            break
        passed[..., shift:] = np.logaddexp(passed[..., shift:], passed[..., :-shift] - distance)
        shift *= 2
    found = np.full_like(logs, -np.inf)
    found[..., 1:] = passed[..., :-1] - np.diff(index) * u
    return found


def both_sides(index: IntArray, logs: FloatArray, u: float) -> tuple[FloatArray, FloatArray]:
    """Return ln of what all atoms before each one contribute to it, and all atoms after it."""
    after = before((index[-1] - index)[::-1], logs[..., ::-1], u)[..., ::-1]
    return before(index, logs, u), after


def noise_pass(index: IntArray, logs: FloatArray, u: float) -> FloatArray:
    """Return ln of sum_j exp(l_j - |x_k - x_j| u) along the last axis, for u > 0.

    ``index``: places in steps, increasing, shape (n,). ``logs``: l, shape (..., n); minus infinity
    where there is no mass.
    """
    left, right = both_sides(index, logs, u)
    return np.asarray(np.logaddexp(np.logaddexp(left, right), logs))


class PlainPass:
    """Likelihoods of several secrets on one support as plain numbers, piece by piece.

    ``index``: places of the n atoms in steps, increasing; ``masses``: shape (m, n).
    """

    def __init__(self, index: IntArray, masses: FloatArray) -> None:
        self.size = len(index)
        # Some more atoms without mass, so that there are whole blocks.
        more = -self.size % min(_LARGEST_BLOCK, 1 << (self.size - 1).bit_length())
        self.index = np.pad(index, (0, more), "edge")
        self.masses = np.pad(masses, ((0, 0), (0, more)))

    def pieces(self, u: float) -> Iterator[tuple[int, FloatArray]]:
        """Yield the first atom of a piece, and L at its atoms, shape (m, k)."""
        size = _block_size(self.index, u)
        places = self.index.reshape(-1, size)
        starts = places[:, 0]
        grown: FloatArray = np.exp((places - starts[:, None]) * u)
        shrunk: FloatArray = 1.0 / grown
        blocks = self.masses.reshape(len(self.masses), -1, size)
        rising, falling = (np.log(np.einsum("sbk,bk->sb", blocks, k)) for k in (grown, shrunk))
        left = np.exp(before(starts, rising, u, _FARTHEST))
        mirrored = (starts[-1] - starts)[::-1]
        right = np.exp(before(mirrored, falling[:, ::-1], u, _FARTHEST))[:, ::-1]
        step = max(1, _PIECE // size)
        for at in range(0, len(starts), step):
            cut = slice(at, at + step)
            piece = _plain(blocks[:, cut], grown[cut], shrunk[cut], left[:, cut], right[:, cut])
            yield at * size, piece[:, : self.size - at * size]


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
        left, right = both_sides(index, self.room, u)
        # What lies before the first atom of the slice, and after its last one.
        first, last = np.minimum(extreme.first, len(index) - 1), extreme.last - 1
        before_it = left[first] - (index - index[first]) * u
        part = np.logaddexp(before_it, right[last] - (index[last] - index) * u)
        if extreme.largest:
            # All but that.
            whole = np.logaddexp(np.logaddexp(left, right), self.room)
            inside = whole + np.log1p(-np.exp(np.minimum(part - whole, 0.0)))
            part = np.where(np.isnan(inside) | (extreme.first > last), -np.inf, inside)
        moved = self.free - np.abs(index - index[extreme.target]) * u
        terms = (part, self.shell - extreme.distance * u, noise_pass(index, self.least, u), moved)
        return np.asarray(np.logaddexp.reduce(terms))


def quotients(numerators: Sequence[int], denominator: int) -> FloatArray:
    """Return whole numbers over a denominator as doubles, each rounded once."""
    return np.array([int(c) / denominator for c in numerators], dtype=np.float64)
