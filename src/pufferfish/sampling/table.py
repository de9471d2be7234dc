# SPDX-License-Identifier: Apache-2.0
"""Drawing from a finite law by table: 16 bits decide nearly always, and more are read if not.

Let U be a uniformly random real number, read as its binary digits. The outcome is the number of
cumulative sums that are at most U. The first bits of U name a cell; if no sum lies in that cell,
all further bits are irrelevant and a table holds the outcome. Otherwise more bits are read, until
the sums and U differ. Sums are known to as many bits as this takes, so the law is exact.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish.sampling.entropy import Entropy, EntropyStuck, read_words
from pufferfish.sampling.thresholds import Law, proved_floors

#: In place of an outcome: this cell holds a threshold, read more bits.
UNDECIDED = np.iinfo(np.int16).min
#: A draw that is still open after so many words has a chance below 1e-300 with random words.
_MAX_WORDS = 64


@dataclass(frozen=True, eq=False)
class Table:
    """A law made ready for drawing.

    Attributes
    ----------
    law : Law
        The distribution, asked again only for bits beyond the first word.
    thresholds : array of unsigned words, shape (outcomes - 1,)
        The first word of bits of every cumulative sum, rounded down; sorted.
    guide : int16 array, shape (2**(bits of a short word),)
        By the short word that U begins with: the outcome, or ``UNDECIDED``.
    short : type of an unsigned NumPy integer
        The type of the short words, uint16.
    long : type of an unsigned NumPy integer
        The type of the words, uint64. Tests take smaller types, and then try every word.
    """

    law: Law
    thresholds: NDArray[Any]
    guide: NDArray[np.int16]
    short: type[np.unsignedinteger[Any]] = np.uint16
    long: type[np.unsignedinteger[Any]] = np.uint64

    @classmethod
    def of(
        cls,
        law: Law,
        short: type[np.unsignedinteger[Any]] = np.uint16,
        long: type[np.unsignedinteger[Any]] = np.uint64,
    ) -> Self:
        """Return the table of a law whose outcomes are between -32767 and 32767."""
        short_bits, long_bits = np.iinfo(short).bits, np.iinfo(long).bits
        floors = proved_floors(law, long_bits)
        heads = np.array([floor >> (long_bits - short_bits) for floor in floors])
        cells = np.arange(1 << short_bits)
        low = np.searchsorted(heads, cells, side="left")
        high = np.searchsorted(heads, cells, side="right")
        guide = np.where(low == high, low + law.first, UNDECIDED).astype(np.int16)
        return cls(law, np.array(floors, dtype=long), guide, short, long)

    def draw(self, size: int, entropy: Entropy) -> NDArray[np.int16]:
        """Return independent outcomes.

        Parameters
        ----------
        size : int
            How many, at least 1.
        entropy : Entropy
            Where the random bits come from.

        Returns
        -------
        int16 array, shape (size,)
        """
        heads = read_words(entropy, size, self.short)
        outcomes: NDArray[np.int16] = self.guide[heads]
        open_ = np.flatnonzero(outcomes == UNDECIDED)
        if open_.size:
            outcomes[open_] = self._with_long_words(heads[open_], entropy)
        return outcomes

    def _with_long_words(self, heads: NDArray[Any], entropy: Entropy) -> NDArray[np.intp]:
        """Return the outcomes of the draws that begin with the given short words."""
        short_bits, long_bits = np.iinfo(self.short).bits, np.iinfo(self.long).bits
        rest = read_words(entropy, heads.size, self.long)
        words = heads.astype(self.long) << self.long(long_bits - short_bits)
        words |= rest >> self.long(short_bits)
        # Thresholds below the word are passed, those above are not; only equality is open.
        passed: NDArray[np.intp] = np.searchsorted(self.thresholds, words, side="left")
        within = np.searchsorted(self.thresholds, words, side="right")
        for at in np.flatnonzero(passed != within):
            passed[at] = self._with_more_words(int(passed[at]), int(within[at]), entropy)
        passed += self.law.first
        return passed

    def _with_more_words(self, passed: int, within: int, entropy: Entropy) -> int:
        """Return how many thresholds U passes, when those numbered passed..within-1 are open."""
        word_bits = bits = np.iinfo(self.long).bits
        while passed != within:
            bits += word_bits
            if bits > _MAX_WORDS * word_bits:
                raise EntropyStuck
            word = int(read_words(entropy, 1, self.long)[0])
            # The open thresholds agree with U in all bits so far: the next word decides.
            mask = (1 << word_bits) - 1
            digits = [floor & mask for floor in proved_floors(self.law, bits)[passed:within]]
            within = passed + sum(digit <= word for digit in digits)
            passed += sum(digit < word for digit in digits)
        return passed
