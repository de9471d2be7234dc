# SPDX-License-Identifier: Apache-2.0
"""Integer thresholds of probabilities, to as many bits as a draw needs."""

import operator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, repeat

from flint import arb

from pufferfish.numbers import precision
from pufferfish.priors.betting import ball

#: For each threshold c: floor(2**bits * c), and whether nothing was rounded off.
Floors = tuple[tuple[int, ...], tuple[bool, ...]]

#: Bits computed beyond those asked for; at the first try all but a 2**-50 part is decided.
_GUARD = 96


class Row:
    """The law of one row of a channel: outcome y with probability ``entries[y] / sum(entries)``.

    Like every law it has its ``outcomes``, all of positive probability, and tells their cumulative
    sums, but for the last, which is 1, to as many bits as are asked for.
    """

    def __init__(self, entries: list[int]) -> None:
        self.outcomes = [y for y, entry in enumerate(entries) if entry]
        *self._sums, self._total = accumulate(entry for entry in entries if entry)

    def floors(self, bits: int) -> Floors:
        """Return floor(2**bits * C / D) for every cumulated numerator C."""
        pairs = [divmod(c << bits, self._total) for c in self._sums]
        return tuple(floor for floor, _ in pairs), tuple(rest == 0 for _, rest in pairs)


class _Irrational:
    """A law whose sums are irrational: computed in balls, until both ends of each agree."""

    def cumulative(self) -> list[arb]:
        """Return balls around the sums, all of which are strictly between 0 and 1."""
        raise NotImplementedError  # each law has its own

    def floors(self, bits: int) -> Floors:
        """Return the sums in whole units of 2**-bits, rounded down: proved by balls."""
        # A sum below 1 rounds down to the last integer at most, and one above 0 to 0 at least,
        # however wide its ball: sums of 1e-1000000 need no million bits.
        guard, last = _GUARD, (1 << bits) - 1
        while True:  # some number of bits decides an irrational number
            with precision(bits + guard):
                sums = [own * arb((1, bits)) for own in self.cumulative()]
                low, high = (
                    tuple(min(max(int(end.floor().unique_fmpz()), 0), last) for end in ends)
                    for ends in zip(*((own.lower(), own.upper()) for own in sums), strict=True)
                )
            if low == high:
                return low, (False,) * len(low)
            guard *= 2


@dataclass(frozen=True)
class SignedGeometric(_Irrational):
    """The top digit of discrete Laplace noise, with its sign, cut off where the tail is thin.

    With a = exp(-rate) and b = a**weight the digit is Q with probability 1/(1 + a) and ~Q
    (that is -1 - Q) otherwise, where Q = k has the probability (1 - b) b**k. All Q >= cut are
    one digit, ``cut`` or ``~cut``. ``rate`` is step over scale, above 0; ``weight`` that of the
    digit in steps, a power of two; ``cut`` at least 1.
    """

    rate: Fraction
    weight: int
    cut: int

    @property
    def outcomes(self) -> list[int]:
        """What each digit from ``~cut`` to ``cut`` means, in steps and beyond ``~cut * weight``.

        The bits below ``weight`` are those of lower digits. They are set where the sign is
        negative, so that one exclusive or adds these digits to Q and complements them for ~Q.
        """
        least = range(0, (2 * self.cut + 2) * self.weight, self.weight)
        return [x + (self.weight - 1) * (i <= self.cut) for i, x in enumerate(least)]

    def cumulative(self) -> list[arb]:
        """Return balls around a b**k / (1 + a), k = cut, ..., 0, and 1 - b**k / (1 + a)."""
        a, b = ((-ball(self.rate * weight)).exp() for weight in (1, self.weight))
        powers = list(accumulate(repeat(b, self.cut), operator.mul, initial=1 / (1 + a)))
        return [a * own for own in powers[::-1]] + [1 - own for own in powers[1:]]


@dataclass(frozen=True)
class Digit(_Irrational):
    """A lower digit d of a geometric number, 0 <= d < base, with probability proportional to r**d.

    r = exp(-rate * weight); rate is step over scale, weight that of the digit in steps.
    """

    rate: Fraction
    weight: int
    base: int

    @property
    def outcomes(self) -> range:
        """What each digit means, in steps."""
        return range(0, self.base * self.weight, self.weight)

    def cumulative(self) -> list[arb]:
        """Return balls around (1 + r + ... + r**d) / (1 + r + ... + r**(base-1)).

        Sums of positive terms: nothing cancels, however close r is to 1.
        """
        ratio = (-ball(self.rate * self.weight)).exp()
        powers = accumulate(repeat(ratio, self.base - 1), operator.mul, initial=arb(1))
        *sums, total = accumulate(powers)
        return [own / total for own in sums]


#: What is drawn from: a row of a channel, or a digit of noise.
Law = Row | SignedGeometric | Digit
