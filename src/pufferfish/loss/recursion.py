# SPDX-License-Identifier: Apache-2.0
"""Passes of Laplace noise in doubles: first-order recursions, in blocks of atoms.

L(y) = sum_x P(x) exp(-|y - x| u) at all atoms y takes one pass in each direction with the factor
exp(-gap u) (theory, section 2). Inside a block a pass is a cumulative sum of masses scaled to the
block's start; between blocks the carry is kept as a logarithm, so that nothing underflows at any
distance. What is lost inside a block lies below e^-745 of its largest term, and that one reaches
every place of the block with at least e^-600 of itself.
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
#: Cells of several lines that are worked on at once.
_CHUNK = 1 << 16


def block_size(index: IntArray, u: float) -> int:
    """Return the largest power of two for which every block spans little enough."""
    size = min(_LARGEST_BLOCK, 1 << max(0, int(len(index) - 1).bit_length()))
    while size > 1:
        starts = index[::size]
        last = np.minimum(np.arange(size - 1, len(index) + size - 1, size), len(index) - 1)
        span = float((index[last[: len(starts)]] - starts).max()) * u
        if span <= _SPAN_GOAL or (span <= _SPAN_LIMIT and size <= _SMALLEST_GOOD_BLOCK):
            break
        size //= 2
    return size


def carries(starts: IntArray, sums: FloatArray, u: float) -> FloatArray:
    """Return ln of what all earlier blocks contribute at the start of each block, shape (m, b).

    A scan by doubling: after the step with shift d each entry covers the 2 d blocks before it.
    """
    lines, blocks = sums.shape
    carry = np.full((lines, blocks), -np.inf)
    if blocks == 1:
        return carry
    carry[:, 1:] = sums[:, :-1] - np.diff(starts) * u
    shift = 1
    while shift < blocks - 1:
        distance = (starts[1 + shift :] - starts[1:-shift]) * u
        carry[:, 1 + shift :] = np.logaddexp(carry[:, 1 + shift :], carry[:, 1:-shift] - distance)
        shift *= 2
    return carry


class PlainPass:
    """Likelihoods of several secrets on one support as plain numbers, piece by piece.

    Parameters
    ----------
    index : int64 array, shape (n,)
        Places of the atoms in steps, increasing.
    masses : float64 array, shape (m, n)
    """

    def __init__(self, index: IntArray, masses: FloatArray) -> None:
        self.size = len(index)
        unit = min(_LARGEST_BLOCK, 1 << max(0, (self.size - 1).bit_length()))
        padding = -self.size % unit
        self.index = np.concatenate([index, np.full(padding, index[-1])]) if padding else index
        self.masses = masses
        if padding:
            self.masses = np.concatenate([masses, np.zeros((len(masses), padding))], axis=1)

    def pieces(self, u: float) -> Iterator[tuple[int, FloatArray]]:
        """Yield the first atom of a piece, and L at its atoms up to a factor of each, (m, k)."""
        size = block_size(self.index[: self.size], u)
        places = self.index.reshape(-1, size)
        starts = places[:, 0]
        grown: FloatArray = np.exp((places - starts[:, None]) * u)
        shrunk: FloatArray = 1.0 / grown
        blocks = self.masses.reshape(len(self.masses), -1, size)
        from_left = np.log(np.einsum("sbk,bk->sb", blocks, grown))
        from_right = np.log(np.einsum("sbk,bk->sb", blocks, shrunk))
        left = np.exp(carries(starts, from_left, u))
        mirrored = (starts[-1] - starts)[::-1]
        right = np.exp(carries(mirrored, from_right[:, ::-1], u))[:, ::-1]
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


def noise_pass(index: IntArray, logs: FloatArray, u: float) -> FloatArray:
    """Return ln of sum_j exp(l_j - |x_k - x_j| u) along the last axis, for u > 0.

    ``index``: places in steps, increasing, shape (n,). ``logs``: l, shape (..., n); minus infinity
    where there is no mass.
    """
    n = len(index)
    lines = logs.reshape(-1, n)
    result = np.empty_like(lines)
    size = block_size(index, u)
    padding = -n % size
    places = np.concatenate([index, np.full(padding, index[-1])]).reshape(-1, size)
    fore, back = (places - places[:, :1]) * u, (places[:, -1:] - places) * u
    exps = np.exp(fore), np.exp(-fore), np.exp(back), np.exp(-back)
    chunk = max(1, _CHUNK // n)
    for at in range(0, len(lines), chunk):
        piece = lines[at : at + chunk]
        if padding:
            piece = np.concatenate([piece, np.full((len(piece), padding), -np.inf)], axis=1)
        piece = piece.reshape(len(piece), -1, size)
        result[at : at + chunk] = _log_blocks(piece, places, u, exps)[:, :n]
    return result.reshape(logs.shape)


def _log_blocks(
    logs: FloatArray, places: IntArray, u: float, exps: Sequence[FloatArray]
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
        left = carries(starts, np.log(forth[:, :, -1]) + base, u)
        mirrored = (ends[-1] - ends)[::-1]
        right = carries(mirrored, (np.log(back[:, :, 0]) + base)[:, ::-1], u)[:, ::-1]
        largest = np.maximum(np.maximum(left, right), top)
        largest = np.where(largest == -np.inf, 0.0, largest)
        total *= np.exp(top - largest)[:, :, None]
        total += np.exp(left - largest)[:, :, None] * fall
        total += np.exp(right - largest)[:, :, None] * back_fall
        base = largest
    result = np.log(total)
    result += base[:, :, None]
    return result.reshape(lines, blocks * size)


class ExtremePass:
    """ln <P, k_y> at all outputs y, for the extreme P of each over a region.

    Parameters
    ----------
    extreme : Extreme
    index : int64 array, shape (n,)
        Places of the atoms in steps, increasing from 0.
    """

    def __init__(self, extreme: Extreme, index: IntArray) -> None:
        region = extreme.region
        self.extreme, self.index, n = extreme, index, len(index)
        with np.errstate(divide="ignore"):
            self.room = np.log(quotients(region.room, region.unit))
            self.least = np.log(quotients(region.least, region.unit))
            self.shell = np.log(quotients(extreme.shell.tolist(), region.unit))
            self.free = np.log(quotients([region.free], region.unit))[0]
        self.before = np.maximum(extreme.first - 1, 0)
        self.after = np.minimum(extreme.last, n - 1)
        self.nothing_before, self.nothing_after = extreme.first == 0, extreme.last == n

    def logs(self, u: float) -> FloatArray:
        """Return it, shape (n,)."""
        index, extreme = self.index, self.extreme
        both = noise_pass(index, self.room, u)
        left, right = self._sides(u)
        before = left[self.before] - (index - index[self.before]) * u
        after = right[self.after] - (index[self.after] - index) * u
        before[self.nothing_before] = after[self.nothing_after] = -np.inf
        part = np.logaddexp(before, after)
        if extreme.largest:
            with np.errstate(invalid="ignore"):
                inside = both + np.log1p(-np.exp(np.minimum(part - both, 0.0)))
            empty = (extreme.first >= extreme.last) | (both == -np.inf)
            part = np.where(empty, -np.inf, inside)
        part = np.logaddexp(part, self.shell - extreme.distance * u)
        if np.isfinite(self.least).any():
            part = np.logaddexp(part, noise_pass(index, self.least, u))
        whole: FloatArray = np.logaddexp(
            part, self.free - np.abs(index - index[extreme.target]) * u
        )
        return whole

    def _sides(self, u: float) -> tuple[FloatArray, FloatArray]:
        """Return ln of what lies to the left and to the right of each atom, with its own mass."""
        index, room = self.index, self.room
        size = block_size(index, u)
        padding = -len(index) % size
        sides = []
        for places, logs in ((index, room), ((index[-1] - index)[::-1], room[::-1])):
            places = np.concatenate([places, np.full(padding, places[-1])]).reshape(-1, size)
            logs = np.concatenate([logs, np.full(padding, -np.inf)]).reshape(-1, size)
            fore = (places - places[:, :1]) * u
            base = np.where(np.isinf(top := logs.max(axis=1)), 0.0, top)
            sums = np.log(np.cumsum(np.exp(logs - base[:, None] + fore), axis=1)) + base[:, None]
            carry = carries(places[:, 0], sums[None, :, -1], u)[0]
            found = np.logaddexp(sums, carry[:, None]) - fore
            sides.append(found.reshape(-1)[: len(index)])
        return sides[0], sides[1][::-1]


def quotients(numerators: Sequence[int], denominator: int) -> FloatArray:
    """Return whole numbers over a denominator as doubles, each rounded once."""
    return np.array([int(c) / denominator for c in numerators], dtype=np.float64)
