# SPDX-License-Identifier: Apache-2.0
"""Drawing from the rows of a channel: one table for all inputs, and rational thresholds.

As in `pufferfish.sampling.table`, U is a uniformly random real number, read as its binary digits,
and the outcome is the number of thresholds that are at most U. Row x has the thresholds C_k / D_x:
its cumulated integers over their sum. They are rational and may end after finitely many digits, so
here a tie is possible and has an answer: U passes a threshold whose further digits are all zero as
soon as it agrees with the digits before. Entries of 0 make no threshold and cannot be drawn.

The guides of all rows lie behind one another, so draws from any mixture of inputs are one look-up;
nothing is sorted or grouped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish.sampling.entropy import Entropy, EntropyStuck, read_words, system_entropy

#: Draws made at a time, so that the intermediate arrays stay in the processor's cache.
_BATCH = 1 << 17
#: A draw that is still open after so many words has a chance below 1e-300 with random words.
_MAX_WORDS = 64
#: Cells of a guide for every threshold: at most 3 % of the draws are left open (more of them would
#: cost less than the larger guides, which leave the cache) ...
_CELLS_PER_THRESHOLD = 32
#: ... unless all guides together would have more than 2**22 cells, 8 MB.
_CELL_BITS = 22
#: Bits of the smallest guide.
_LEAST_BITS = 8


@dataclass(frozen=True, eq=False)
class RowTable:
    """All rows of a channel made ready for drawing.

    Attributes
    ----------
    rows : sequence of sequences of int
        The integers themselves, asked again only for bits beyond the first word.
    places : int64 array
        The outputs that each row can give, row after row; row x begins at ``starts[x] + x``.
    starts : int64 array, shape (inputs + 1,)
        Where the thresholds of each row begin.
    thresholds : array of unsigned words
        The first word of bits of every threshold, rounded down; sorted within each row. One
        more entry at the end stands for no threshold.
    guide : integer array, shape (inputs * 2**bits,)
        By input and the first bits of U: the output, or ~k where the cell is open and the first
        k thresholds of the row lie at or before its beginning.
    bits : int
        How many bits of the short word the guide looks at.
    widest : int
        The largest number of thresholds within one cell.
    short, long : types of unsigned NumPy integers
        The types of the words, uint16 and uint64. Tests take smaller ones, and try every word.
    """

    rows: Sequence[Sequence[int]]
    places: NDArray[np.int64]
    starts: NDArray[np.int64]
    thresholds: NDArray[Any]
    guide: NDArray[Any]
    bits: int
    widest: int
    short: type[np.unsignedinteger[Any]] = np.uint16
    long: type[np.unsignedinteger[Any]] = np.uint64

    @classmethod
    def of(
        cls,
        rows: Sequence[Sequence[int]],
        short: type[np.unsignedinteger[Any]] = np.uint16,
        long: type[np.unsignedinteger[Any]] = np.uint64,
    ) -> Self:
        """Return the table of some rows of Python integers, none negative, with sums above 0.

        Time and memory are linear in the number of entries and of cells.
        """
        long_bits = np.iinfo(long).bits
        places = [[y for y, entry in enumerate(row) if entry] for row in rows]
        most = max(len(at) for at in places) - 1
        bits = _guide_bits(len(rows), most, np.iinfo(short).bits)
        outputs = max(len(row) for row in rows)
        kind = np.int16 if outputs <= np.iinfo(np.int16).max else np.int32
        guide = np.empty((len(rows), 1 << bits), dtype=kind)
        floors = []
        widest = 0
        mask = long((1 << (long_bits - bits)) - 1)
        for x, (row, at) in enumerate(zip(rows, places, strict=True)):
            whole, ends = _digits(_cumulated(row), sum(row), long_bits)
            own = np.array(whole, dtype=long)
            heads = (own >> long(long_bits - bits)).astype(np.int64)
            # A threshold at the very beginning of a cell is passed by all of the cell.
            inside = (own & mask != 0) | ~np.array(ends, dtype=bool)
            passed, within = _counted(heads + inside, bits), _counted(heads, bits)
            guide[x] = np.where(passed != within, ~passed, np.array(at)[passed])
            widest = max(widest, int((within - passed).max()))
            floors.append(own)
        starts = np.cumsum([0, *(len(at) - 1 for at in places)], dtype=np.int64)
        flat = np.array([y for at in places for y in at], dtype=np.int64)
        thresholds = np.concatenate([*floors, np.zeros(1, dtype=long)])
        return cls(rows, flat, starts, thresholds, guide.ravel(), bits, widest, short, long)

    def draw(self, inputs: NDArray[np.int64], entropy: Entropy | None = None) -> NDArray[np.int64]:
        """Return one independent output for each input.

        Parameters
        ----------
        inputs : int64 array, shape (size,)
            Numbers of rows, within range.
        entropy : Entropy, optional
            Where the random bits come from: the operating system, unless a test says otherwise.

        Returns
        -------
        int64 array, shape (size,)
            Positions within the rows.
        """
        if self.thresholds.size == 1:  # nothing is left to chance
            certain: NDArray[np.int64] = self.places[inputs]
            return certain
        source = system_entropy if entropy is None else entropy
        outputs = np.empty(inputs.size, dtype=np.int64)
        for start in range(0, inputs.size, _BATCH):
            outputs[start : start + _BATCH] = self._batch(inputs[start : start + _BATCH], source)
        return outputs

    def _batch(self, inputs: NDArray[np.int64], entropy: Entropy) -> NDArray[Any]:
        heads = read_words(entropy, inputs.size, self.short)
        cells = inputs << self.bits
        cells |= heads >> self.short(np.iinfo(self.short).bits - self.bits)
        outputs: NDArray[Any] = self.guide[cells]
        open_ = np.flatnonzero(outputs < 0)
        if open_.size:
            outputs[open_] = self._with_long_words(
                inputs[open_], heads[open_], ~outputs[open_].astype(np.int64), entropy
            )
        return outputs

    def _with_long_words(
        self,
        inputs: NDArray[np.int64],
        heads: NDArray[Any],
        passed: NDArray[np.int64],
        entropy: Entropy,
    ) -> NDArray[np.int64]:
        """Return the outputs of draws that begin with short words and pass so many thresholds."""
        short_bits, long_bits = np.iinfo(self.short).bits, np.iinfo(self.long).bits
        rest = read_words(entropy, heads.size, self.long)
        words = heads.astype(self.long) << self.long(long_bits - short_bits)
        words |= rest >> self.long(short_bits)
        end = self.starts[inputs + 1]
        low = self.starts[inputs] + passed
        high = np.minimum(low + self.widest, end)
        for _ in range(self.widest.bit_length()):  # each step halves high - low
            middle = (low + high) >> 1
            below = (low < high) & (self.thresholds[middle] < words)
            low = np.where(below, middle + 1, low)
            high = np.where(below, high, middle)
        # Thresholds below the word are passed, those above are not; only equality is open.
        for at in np.flatnonzero((low < end) & (self.thresholds[low] == words)):
            low[at] = self._with_more_words(int(inputs[at]), int(low[at]), int(words[at]), entropy)
        outputs: NDArray[np.int64] = self.places[low + inputs]
        return outputs

    def _with_more_words(self, x: int, first: int, word: int, entropy: Entropy) -> int:
        """Return the first threshold that U does not pass, where those from ``first`` on are open.

        Decided on the integers of the row: U, known to ``bits`` digits, against C / D.
        """
        word_bits = bits = np.iinfo(self.long).bits
        begin = int(self.starts[x])
        sums, total = _cumulated(self.rows[x])[first - begin :], sum(self.rows[x])
        while bits <= _MAX_WORDS * word_bits:
            floors, ends = _digits(sums, total, bits)
            within = sum(floor <= word for floor in floors)
            passed = sum(
                floor < word or (floor == word and end)
                for floor, end in zip(floors, ends, strict=True)
            )
            if passed == within:
                return first + passed
            word = (word << word_bits) + int(read_words(entropy, 1, self.long)[0])
            bits += word_bits
        raise EntropyStuck


def _guide_bits(inputs: int, thresholds: int, most: int) -> int:
    """Return how many bits of the short word a guide should look at."""
    wanted = (_CELLS_PER_THRESHOLD * thresholds).bit_length()
    return min(most, max(_LEAST_BITS, min(wanted, _CELL_BITS - (inputs - 1).bit_length())))


def _cumulated(row: Sequence[int]) -> list[int]:
    """Return the numerators of a row's thresholds, all of them above 0 and below its sum."""
    return list(accumulate(entry for entry in row if entry))[:-1]


def _digits(sums: Sequence[int], total: int, bits: int) -> tuple[list[int], list[bool]]:
    """Return floor(2**bits * C / D) for every C, and whether nothing was rounded off."""
    pairs = [divmod(c << bits, total) for c in sums]
    return [floor for floor, _ in pairs], [rest == 0 for _, rest in pairs]


def _counted(cells: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Return how many of the given cells are at most 0, 1, ..., 2**bits - 1."""
    counts: NDArray[np.int64] = np.cumsum(np.bincount(cells, minlength=(1 << bits) + 1)[:-1])
    return counts
