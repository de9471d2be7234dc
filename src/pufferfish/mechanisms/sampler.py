# SPDX-License-Identifier: Apache-2.0
"""Exact draws: random bits against integer thresholds, more of them where these cannot decide.

U = 0.b1b2b3... gives the outcome numbered by how many thresholds (cumulative sums) it has reached.
A short word of bits decides most draws by a table, ``guide``; a long word nearly all others; the
rest read more words and compare with more digits of the thresholds, to whatever depth it takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish.mechanisms.entropy import Entropy, EntropyStuck, read_words
from pufferfish.mechanisms.thresholds import Law

Word = type[np.unsignedinteger[Any]]

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
class Table:
    """Some laws made ready for drawing, each row of a channel being one."""

    laws: Sequence[Law]  # asked again only for bits beyond the first long word
    outcomes: NDArray[np.int64]  # of each law, law after law; law x begins at starts[x] + x
    starts: NDArray[np.int64]  # shape (laws + 1,): where the thresholds of each law begin
    #: The first long word of bits of every threshold, rounded down; sorted within each law. One
    #: more entry at the end stands for no threshold.
    thresholds: NDArray[Any]
    #: By law and the first bits of U, shape (laws * 2**bits,): the outcome, or ~k where the cell is
    #: open and the first k thresholds of the law lie at or before its beginning.
    guide: NDArray[Any]
    bits: int  # of the short word, that the guide looks at
    widest: int  # the largest number of thresholds within one cell
    # Types of the words. Tests take smaller ones, and try every word.
    short: Word = np.uint16
    long: Word = np.uint64

    @classmethod
    def of(cls, laws: Sequence[Law], short: Word = np.uint16, long: Word = np.uint64) -> Self:
        """Return the table of some laws; time and memory are linear in its entries and cells."""
        long_bits = np.iinfo(long).bits
        outcomes = [law.outcomes for law in laws]
        flat = np.concatenate(outcomes).astype(np.int64, copy=False)
        sizes = [len(of_law) - 1 for of_law in outcomes]
        bits = np.iinfo(short).bits
        if len(laws) > 1:  # the guide of a single law looks at all of a short word
            wanted = (_CELLS_PER_THRESHOLD * max(sizes)).bit_length()
            wanted = min(wanted, _CELL_BITS - (len(laws) - 1).bit_length())
            bits = min(bits, max(_LEAST_BITS, wanted))
        kind = np.promote_types(np.min_scalar_type(~flat.max()), np.int16)
        guide = np.empty((len(laws), 1 << bits), dtype=kind)
        floors = []
        widest, cells = 0, np.arange(1 << bits)
        mask = long((1 << (long_bits - bits)) - 1)
        for x, (law, of_law) in enumerate(zip(laws, outcomes, strict=True)):
            whole, exact = law.floors(long_bits)
            own = np.array(whole, dtype=long)
            heads = (own >> long(long_bits - bits)).astype(np.int64)
            # A threshold at the very beginning of a cell is passed by all of the cell.
            inside = (own & mask != 0) | ~np.array(exact, dtype=bool)
            passed, within = (
                np.searchsorted(h, cells, side="right") for h in (heads + inside, heads)
            )
            guide[x] = np.where(passed != within, ~passed, np.array(of_law)[passed])
            widest = max(widest, int((within - passed).max()))
            floors.append(own)
        starts = np.cumsum([0, *sizes], dtype=np.int64)
        thresholds = np.concatenate([*floors, np.zeros(1, dtype=long)])
        return cls(laws, flat, starts, thresholds, guide.ravel(), bits, widest, short, long)

    def draw(
        self, size: int, entropy: Entropy, inputs: NDArray[np.int64] | None = None
    ) -> NDArray[Any]:
        """Return independent outcomes, shape (size,), of these laws or (None) of the first."""
        if inputs is not None and self.thresholds.size == 1:  # nothing is left to chance
            return self.outcomes[inputs]
        heads = read_words(entropy, size, self.short)
        cells: NDArray[Any] = heads >> self.short(np.iinfo(self.short).bits - self.bits)
        if inputs is not None:
            cells = (inputs << self.bits) | cells
        found: NDArray[Any] = self.guide.take(cells)
        open_ = np.flatnonzero(found < 0)
        if open_.size:
            at = np.zeros_like(open_) if inputs is None else inputs[open_]
            passed = ~found[open_].astype(np.int64)
            found[open_] = self._with_long_words(at, heads[open_], passed, entropy)
        return found

    def _with_long_words(
        self, inputs: NDArray[np.int64], heads: NDArray[Any], passed: NDArray[np.int64],
        entropy: Entropy,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Return the outcomes of draws that begin with short words and pass so many thresholds."""
        short_bits, long_bits = np.iinfo(self.short).bits, np.iinfo(self.long).bits
        words = heads.astype(self.long) << self.long(long_bits - short_bits)
        words |= read_words(entropy, heads.size, self.long) >> self.long(short_bits)
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
        return self.outcomes.take(low + inputs)

    def _with_more_words(self, x: int, first: int, word: int, entropy: Entropy) -> int:
        """Return the first threshold that U does not pass, where those from ``first`` on are open.

        U is known to ``bits`` digits, and so are the thresholds.
        """
        word_bits = bits = np.iinfo(self.long).bits
        begin = first - int(self.starts[x])
        while bits <= _MAX_WORDS * word_bits:
            floors, exact = self.laws[x].floors(bits)
            digits = list(zip(floors[begin:], exact[begin:], strict=True))
            passed = sum(floor < word or (floor == word and end) for floor, end in digits)
            if passed == sum(floor <= word for floor, _ in digits):
                return first + passed
            word = (word << word_bits) + int(read_words(entropy, 1, self.long)[0])
            bits += word_bits
        raise EntropyStuck
