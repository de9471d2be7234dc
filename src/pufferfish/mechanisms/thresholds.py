# SPDX-License-Identifier: Apache-2.0
"""Integer thresholds of probabilities, to as many bits as a draw needs."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

#: Two integers low <= high with low <= 2**bits * value <= high.
Interval = tuple[int, int]
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
    """A law whose sums are irrational: computed in intervals, until these agree."""

    def cumulative(self, bits: int) -> list[Interval]:
        """Return intervals around the sums, all of which are strictly between 0 and 1."""
        raise NotImplementedError  # each law has its own

    def floors(self, bits: int) -> Floors:
        """Return the sums in whole units of 2**-bits, rounded down: proved by intervals."""
        # A sum below 1 rounds down to the last integer at most, and one above 0 to 0 at least,
        # however wide its interval: sums of 1e-1000000 need no million bits.
        guard, last = _GUARD, (1 << bits) - 1
        while True:  # some number of bits decides an irrational number
            sums = self.cumulative(bits + guard)
            floors = tuple(max(low >> guard, 0) for low, _ in sums)
            if floors == tuple(min(high >> guard, last) for _, high in sums):
                return floors, (False,) * len(floors)
            guard *= 2


@dataclass(frozen=True)
class SignedGeometric(_Irrational):
    """The top digit of discrete Laplace noise, with its sign, cut off where the tail is thin.

    With a = exp(-rate) and b = a**weight the digit is Q with probability 1/(1 + a) and ~Q
    (that is -1 - Q) otherwise, where Q = k has the probability (1 - b) b**k. All Q >= cut are
    one digit, ``cut`` or ``~cut``. Outcome i is the digit ``i + ~cut``. ``rate`` is step over
    scale, above 0; ``weight`` that of the digit in steps; ``cut`` at least 1.
    """

    rate: Fraction
    weight: int
    cut: int

    @property
    def outcomes(self) -> range:
        """The outcomes, counted from 0."""
        return range(2 * self.cut + 2)

    def cumulative(self, bits: int) -> list[Interval]:
        """Return intervals around a b**k / (1 + a), k = cut, ..., 0, and 1 - b**k / (1 + a)."""
        one = 1 << bits
        a = exp_interval(self.rate, bits)
        b = exp_interval(self.rate * self.weight, bits)
        negative = (a[0] << bits) // (one + a[0]), -((-a[1] << bits) // (one + a[1]))
        positive = one - negative[1], one - negative[0]
        below, above = [negative], []
        for _ in range(self.cut):
            below.append(_times(below[-1], b, bits))
            positive = _times(positive, b, bits)
            above.append((one - positive[1], one - positive[0]))
        return below[::-1] + above


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
        """The outcomes, counted from 0."""
        return range(self.base)

    def cumulative(self, bits: int) -> list[Interval]:
        """Return intervals around (1 + r + ... + r**d) / (1 + r + ... + r**(base-1)).

        Sums of positive terms: nothing cancels, however close r is to 1.
        """
        ratio = exp_interval(self.rate * self.weight, bits)
        power = (1 << bits, 1 << bits)
        total = (0, 0)
        sums = []
        for _ in range(self.base):
            total = total[0] + power[0], total[1] + power[1]
            sums.append(total)
            power = _times(power, ratio, bits)
        return [
            ((low << bits) // total[1], -((-high << bits) // total[0])) for low, high in sums[:-1]
        ]


#: What is drawn from: a row of a channel, or a digit of noise.
Law = Row | SignedGeometric | Digit


def exp_interval(x: Fraction, bits: int) -> Interval:
    """Return an interval around exp(-x), x > 0, in units of 2**-bits; ``bits`` at least 32.

    It is at most 1,000 bits max(1, x) of these units wide.
    """
    if x >= bits:
        return 0, 1  # exp(-x) < 2**-x
    one = 1 << bits
    # x / 2**halvings <= 2**-8, where the series loses at least 8 bits per term.
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 9)
    y = (x.numerator << bits) // (x.denominator << halvings)
    term, total, count = one, 0, 0
    while term:
        total += -term if count % 2 else term
        count += 1
        term = term * y // (count << bits)
    # Each term lies less than 2 below the true one, and so does the first that was left out,
    # which the later ones cannot double. Rounding y down raised exp(-y) by less than 1.
    slack = 2 * count + 4
    low, high = total - slack - 1, total + slack
    for _ in range(halvings):
        low, high = low * low >> bits, -(-high * high >> bits)
    return low, min(high, one)


def _times(left: Interval, right: Interval, bits: int) -> Interval:
    """Return the product of two intervals of numbers that are not negative."""
    return left[0] * right[0] >> bits, -(-left[1] * right[1] >> bits)
