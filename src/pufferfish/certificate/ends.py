# SPDX-License-Identifier: Apache-2.0
"""The largest and the smallest likelihood of an output over a region, filled in whole numbers.

For a channel every output ranks the cells by its own column. For Laplace noise they rank by their
distance from the output y, and a whole stretch of them on either side is full or empty: its sum
comes from two passes over the support, and the stretch of the next output begins and ends close to
that of the last, so that n outputs cost little more than n steps.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import mul

from flint import arb, fmpq

from pufferfish.certificate.arbs import exp_minus
from pufferfish.certificate.fillings import Filling

#: For one adversary and output: the largest and the smallest likelihood of every secret.
Ends = tuple[list[arb], list[arb]]


def column_ends(rows: Sequence[Filling], column: Sequence[int]) -> Ends:
    """Fill from the largest likelihood down, and from the smallest up.

    Parameters
    ----------
    rows : sequence of Filling
        One per secret, over n cells.
    column : sequence of int, shape (n,)
        The likelihoods of the output, in any unit.
    """
    upwards = sorted(range(len(column)), key=column.__getitem__)
    top: list[arb] = []
    bottom: list[arb] = []
    for row in rows:
        least = sum(map(mul, row.least, column))
        for ranked, found in ((upwards[::-1], top), (upwards, bottom)):
            total = least + row.free * column[ranked[0]]
            left = row.spread
            for x in ranked:
                given = row.room[x]
                if given >= left:
                    total += left * column[x]
                    break
                total += given * column[x]
                left -= given
            found.append(arb(fmpq(total, row.unit)))
    return top, bottom


def unchanged_ends(rows: Sequence[Filling]) -> Iterator[Ends]:
    """Yield the ends of every output without noise: likelihood 1 at y itself and 0 elsewhere."""
    size = len(rows[0].room)
    sums = [sum(row.room) for row in rows]
    for y in range(size):
        top, bottom = [], []
        for row, whole in zip(rows, sums, strict=True):
            most = row.least[y] + min(row.spread, row.room[y]) + row.free
            least = row.least[y] + max(0, row.spread - (whole - row.room[y]))
            # One cell alone: whatever is free has to stay there.
            least += row.free if size == 1 else 0
            top.append(arb(fmpq(most, row.unit)))
            bottom.append(arb(fmpq(least, row.unit)))
        yield top, bottom


def laplace_ends(rows: Sequence[Filling], places: Sequence[int], unit: Fraction) -> Iterator[Ends]:
    """Yield the ends of every output of Laplace noise.

    Parameters
    ----------
    rows : sequence of Filling
        One per secret, over n atoms.
    places : sequence of int, shape (n,)
        The atoms in lattice steps, increasing.
    unit : Fraction
        step / theta.
    """
    decay = _Decay(unit)
    secrets = [_Secret(row, places, decay) for row in rows]
    for y in range(len(places)):
        both = [secret.at(y) for secret in secrets]
        yield [high for high, _ in both], [low for _, low in both]


class _Decay:
    """e^-(d steps)/theta for whole d; each is worked out once."""

    def __init__(self, unit: Fraction) -> None:
        self.unit = unit
        self.known: dict[int, arb] = {}

    def __call__(self, steps: int) -> arb:
        value = self.known.get(steps)
        if value is None:
            value = self.known[steps] = exp_minus(steps * self.unit)
        return value


class _Cut:
    """For outputs from left to right: how far a mass reaches that fills the nearest rooms first.

    The largest distance within which there is no more room than the mass changes by no more than
    the gap from one output to the next: a ball around one holds the smaller ball around the other.

    Attributes
    ----------
    stretch : (int, int)
        Atoms from the first to before the last that are full; empty where even y itself is not.
    rest : int
        The mass that remains for the next atoms, the shell; 0 where the stretch took it all.
    shell : int
        The shell's distance.
    within : (int, int)
        The atoms of the stretch and of the shell.
    held : int
        The room of the shell.
    """

    def __init__(self, places: Sequence[int], sums: Sequence[int], mass: int) -> None:
        self.places, self.sums, self.mass = places, sums, mass
        self.widest = places[-1] - places[0]
        #: Where the last output was, and how far the mass reached there; at first nobody knows.
        self.place, self.low, self.high = places[0], -1, self.widest

    def move(self, y: int) -> None:
        """Go to the next output, from the first one on."""
        sums, mass, place = self.sums, self.mass, self.places[y]
        gap = place - self.place
        low, high = max(-1, self.low - gap), min(self.widest, self.high + gap)
        while high - low > 1:
            middle = (low + high) // 2
            first, last = self._within(place, middle)
            if sums[last] - sums[first] <= mass:
                low = middle
            else:
                high = middle
        self.place, self.low, self.high = place, low, high
        first, last = self._within(place, low) if low >= 0 else (y, y)
        inside = sums[last] - sums[first]
        self.stretch = first, last
        self.rest = mass - inside
        self.shell = high
        self.within = first, last = self._within(place, high)
        self.held = sums[last] - sums[first] - inside

    def _within(self, place: int, distance: int) -> tuple[int, int]:
        places = self.places
        return bisect_left(places, place - distance), bisect_right(places, place + distance)


class _Secret:
    """One secret's extreme likelihoods at every output, from sums of ``least`` and ``room``.

    Nearest first, all room within some distance is full; farthest first, all beyond one is.
    """

    def __init__(self, row: Filling, places: Sequence[int], decay: _Decay) -> None:
        self.places, self.decay = places, decay
        self.moves, self.free, self.unit = row.free > 0, arb(row.free), arb(row.unit)
        self.room = [arb(room) for room in row.room]
        sums = [0, *accumulate(row.room)]
        self.full = _Cut(places, sums, row.spread)
        self.empty = _Cut(places, sums, sums[-1] - row.spread)
        steps = [decay(b - a) for a, b in pairwise(places)]
        self.left, self.right = _passes(self.room, steps)
        self.least = None
        if any(row.least):
            least = [arb(mass) for mass in row.least]
            left, right = _passes(least, steps)
            self.least = [a + b - c for a, b, c in zip(left, right, least, strict=True)]

    def at(self, y: int) -> tuple[arb, arb]:
        """Return the largest and the smallest <P, k_y>; from the first output on."""
        self.full.move(y)
        self.empty.move(y)
        return self._largest(y), self._smallest(y)

    def _largest(self, y: int) -> arb:
        """The spread goes to the nearest rooms, free mass to y itself."""
        cut = self.full
        first, last = cut.stretch
        value = self.free if self.least is None else self.least[y] + self.free
        if first < last:
            value += self.left[y] + self.right[y] - self.room[y]
            value -= self._beyond(y, first, last)
        if cut.rest:
            value += cut.rest * self.decay(cut.shell)
        return value / self.unit

    def _smallest(self, y: int) -> arb:
        """The nearest rooms stay empty, free mass goes to the farthest cell."""
        cut = self.empty
        value = self._beyond(y, *cut.within)
        if self.least is not None:
            value += self.least[y]
        if cut.held - cut.rest:
            value += (cut.held - cut.rest) * self.decay(cut.shell)
        if self.moves:
            place, places = self.places[y], self.places
            value += self.free * self.decay(max(place - places[0], places[-1] - place))
        return value / self.unit

    def _beyond(self, y: int, first: int, last: int) -> arb:
        """Return the sum of room * likelihood before atom ``first`` and from ``last`` on."""
        value = arb(0)
        if first > 0:
            value += self.left[first - 1] * self.decay(self.places[y] - self.places[first - 1])
        if last < len(self.places):
            value += self.right[last] * self.decay(self.places[last] - self.places[y])
        return value


def _passes(weights: Sequence[arb], steps: Sequence[arb]) -> tuple[list[arb], list[arb]]:
    """Return the sums of weight * e^-distance to the left and to the right, own atom included."""
    left, carried = [], arb(0)
    for k, weight in enumerate(weights):
        carried = (carried * steps[k - 1] if k else carried) + weight
        left.append(carried)
    right, carried = [], arb(0)
    for k in range(len(weights) - 1, -1, -1):
        carried = (carried * steps[k] if k < len(steps) else carried) + weights[k]
        right.append(carried)
    return left, right[::-1]
