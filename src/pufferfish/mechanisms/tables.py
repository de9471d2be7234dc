# SPDX-License-Identifier: Apache-2.0
"""Exact draws from tables of thresholds."""

from dataclasses import dataclass
from typing import Any, Self
import numpy as np
from numpy.typing import NDArray
from pufferfish.mechanisms.entropy import Entropy, EntropyStuck, read_words
from pufferfish.mechanisms.thresholds import Law, proved_floors
import itertools
import math
import operator
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from pufferfish.errors import InputError
from pufferfish.mechanisms.entropy import Entropy, EntropyStuck, system_entropy
from pufferfish.mechanisms.thresholds import Digit, SignedGeometric
from collections.abc import Sequence
from itertools import accumulate
from pufferfish.mechanisms.entropy import Entropy, EntropyStuck, read_words, system_entropy

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


#: Largest scale, in lattice units, of the top digit: one table of some 3,000 thresholds.
_TOP_SCALE = 128
#: Largest number of bits of a lower digit: 2,048 thresholds in 65,536 cells.
_DIGIT_BITS = 11
#: Length of the top table in scales; exp(-12) is less than one cell of it.
_TOP_LENGTH = 12
#: A tail longer than this many tables, some 700 scales, has a chance below 1e-300 per draw.
_MAX_TABLES = 64
#: Draws made at a time, so that the intermediate arrays stay in the processor's cache.
_BATCH = 1 << 16
#: Largest scale in lattice units. One draw in exp(64) = 6e27 leaves 64 bits there. Refusing by
#: scale, not by draw, keeps the noise exact: redrawing or failing often would bend its law.
MAX_UNITS = 1 << 57


@dataclass(frozen=True)
class DiscreteLaplaceSampler:
    """Draws exact discrete Laplace noise, in units of the lattice.

    Parameters
    ----------
    scale : float
        theta, in the units of the data, finite and not negative; 0 means no noise.
    step : Fraction
        The step g of the lattice, above 0, in the same units.

    Raises
    ------
    InputError
        If the scale or the step is not of that kind.
    """

    scale: float
    step: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale(self.scale))
        object.__setattr__(self, "step", checked_step(self.step))

    def draw(self, size: int, entropy: Entropy | None = None) -> NDArray[np.int64]:
        """Return independent draws of the noise.

        Parameters
        ----------
        size : int
            How many draws, not negative.
        entropy : Entropy, optional
            Where the random bits come from: the operating system, unless a test says otherwise.

        Returns
        -------
        int64 array, shape (size,)
            Lattice units: the noise is ``step`` times this.

        Raises
        ------
        InputError
            If draws of this scale, or these very draws, leave 64 bits, or if the size is wrong.
        """
        size = _checked_size(size)
        if self.scale == 0:
            return np.zeros(size, dtype=np.int64)
        source = system_entropy if entropy is None else entropy
        digits = _digits_of(self.scale, self.step)
        noise = np.empty(size, dtype=np.int64)
        for start in range(0, size, _BATCH):
            part = noise[start : start + _BATCH]
            part[:] = digits.draw(part.size, source)
        return noise


@dataclass(frozen=True, eq=False)
class _Digits:
    """The tables of one law: the signed top digit, and the lower digits from the lowest.

    Attributes
    ----------
    top : Table
        Of a SignedGeometric.
    cut : int
        Where the top table ends.
    lower : tuple of (Table, int)
        Each lower digit and the number of bits that it is shifted by.
    shift : int
        The number of bits that the top digit is shifted by.
    """

    top: Table
    cut: int
    lower: tuple[tuple[Table, int], ...]
    shift: int

    def draw(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return draws, shape (size,), in lattice units."""
        noise = self._draw_top(size, entropy)
        if not self.lower:
            return noise
        sign = noise >> 63
        noise <<= self.shift
        for table, shift in self.lower:
            digit = table.draw(size, entropy).astype(np.int64)
            digit <<= shift
            noise ^= digit
        # ~G complements the lower digits too, as the shift has done for the top one only.
        noise ^= sign & ((1 << self.shift) - 1)
        return noise

    def _draw_top(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Return signed top digits, shape (size,), which stay within 64 bits when shifted."""
        short = self.top.draw(size, entropy)
        beyond = np.flatnonzero((short == self.cut) | (short == ~self.cut))
        noise = short.astype(np.int64)
        for _ in range(_MAX_TABLES):
            if not beyond.size:
                return noise
            # The size of a fresh draw does not depend on its sign, which is dropped.
            again = self.top.draw(beyond.size, entropy).astype(np.int64)
            again ^= again >> 63
            noise[beyond] += np.where(noise[beyond] < 0, -again, again)
            if np.any(noise[beyond] >> (63 - self.shift) != noise[beyond] >> 63):
                raise InputError("a draw of the noise leaves 64 bits; choose a larger step")
            beyond = beyond[again == self.cut]
        raise EntropyStuck


@lru_cache(maxsize=32)
def _digits_of(scale: float, step: Fraction) -> _Digits:
    """Return the tables of a law, made once for all draws of it.

    The tables of the last 32 laws are kept in memory with their scale and step, which are as
    private as the plan: at most six tables of some 160 kB each, a megabyte, for one law.
    """
    rate = step / Fraction(scale)
    if rate * MAX_UNITS < 1:
        raise InputError(
            f"noise of scale {scale!r} on a lattice of step {step} does not fit in 64 bits: "
            f"the scale must be at most 2**57 steps"
        )
    # The smallest shift with 1 / (rate * 2**shift) <= _TOP_SCALE.
    shift = (math.ceil(1 / (rate * _TOP_SCALE)) - 1).bit_length()
    count = -(-shift // _DIGIT_BITS)
    edges = [shift * i // count for i in range(count + 1)] if count else [0]
    lower = tuple(
        (Table.of(Digit(rate, 1 << low, 1 << (high - low))), low)
        for low, high in itertools.pairwise(edges)
    )
    cut = math.ceil(_TOP_LENGTH / (rate * (1 << shift)))
    top = Table.of(SignedGeometric(rate, 1 << shift, cut))
    return _Digits(top, cut, lower, shift)


def checked_scale(scale: object) -> float:
    """Return a scale as a float.

    Raises
    ------
    InputError
        If it is no finite number, negative, or no double: rounding it could make it smaller.
    """
    try:
        number = isinstance(scale, Real) and not isinstance(scale, bool)
        value = float(scale) if number else math.nan  # type: ignore[arg-type]  # a number here
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"scale must be a finite number, 0 or more, but {scale!r} was given")
    if value != scale:
        raise InputError(f"scale must be a double, round {scale!r} up to one first")
    return abs(value)  # -0.0 is 0.0


def checked_step(step: object) -> Fraction:
    """Return the step of a lattice as a fraction.

    Raises
    ------
    InputError
        If it is no exact number (int or Fraction), or not above 0.
    """
    if isinstance(step, bool) or not isinstance(step, Rational) or step <= 0:
        raise InputError(f"step must be an int or Fraction above 0, but {step!r} was given")
    return Fraction(int(step.numerator), int(step.denominator))


def _checked_size(size: object) -> int:
    """Return a number of draws, or raise InputError."""
    try:
        value = operator.index(size)  # type: ignore[arg-type]  # anything else fails here
    except TypeError:
        value = -1
    if value < 0:
        raise InputError(f"size must be an integer, 0 or more, but {size!r} was given")
    return value


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
