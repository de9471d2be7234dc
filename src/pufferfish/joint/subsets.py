# SPDX-License-Identifier: Apache-2.0
"""Which releases may be left out of a joint loss, what that costs, and how large the grid stays.

*Units.* All noises of one column are one unit, which is left out as a whole: they merge, so that
leaving out only some of them makes no grid smaller. Each channel is a unit. Equal channels of one
column are of one kind: only how many of them are left out matters. A choice is therefore a tuple of
counts, one per kind.

*Sizes.* The grid is a product over the columns, and what a column contributes depends on its own
units alone. So sizes are worked out column by column, once each, without looking at any mass again;
they are exactly those of :func:`.make_problem`. A larger set may have a smaller grid, as where the
value itself is out.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from pufferfish.arrays import IntArray
from pufferfish.joint.axes import MOST_OUTPUTS, Axis, merged
from pufferfish.joint.record import GridTooLarge
from pufferfish.joint.worst import Reach, Term, total
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism

#: A release: the position of its axis, and its own among the releases of that axis.
Place = tuple[int, int]
#: How many units of each kind are left out.
Left = tuple[int, ...]

#: Releases that are tried again after larger ones were left out.
_MOST_READDED = 8
#: What one look at the size of a grid costs, in cells of a grid.
_LOOK = 1 << 9
#: What one product of two likelihoods costs, in cells of a grid.
_PRODUCT = 4


@dataclass
class Work:
    """How much was computed, in cells of a grid, and how much may be."""

    most: int
    done: int = 0

    def spend(self, cells: int) -> None:
        """Count something that was computed."""
        self.done += cells

    def affords(self, cells: int = 1) -> bool:
        """Whether so much more may be computed."""
        return self.done + cells <= self.most


@dataclass(frozen=True, eq=False)
class Kind:
    """Units that are alike.

    Attributes
    ----------
    column : int
        Position of their axis.
    units : tuple of tuples of Place
        The releases of each unit.
    term : Term
        The worst case of one unit.
    noise : bool
        Whether this is the one unit of all noises of its column.
    """

    column: int
    units: tuple[tuple[Place, ...], ...]
    term: Term
    noise: bool = False

    def inside(self, left: int) -> tuple[tuple[Place, ...], ...]:
        """Return the units that stay if so many are left out: always the first ones."""
        return self.units[: len(self.units) - left]


@dataclass(frozen=True, eq=False)
class Subsets:
    """The subsets of the releases of some columns.

    Parameters
    ----------
    axes : sequence of Axis
        All columns.
    columns : sequence of int
        Those of which the joint masses are known.
    reaches : mapping of int to Reach
        The atoms that have mass, for each of these columns.
    terms : mapping of Place to Term
        The worst case of every release of all columns.
    work : Work
        Counts what the sizes cost.
    """

    axes: Sequence[Axis]
    columns: Sequence[int]
    reaches: Mapping[int, Reach]
    terms: Mapping[Place, Term]
    work: Work
    _sizes: dict[tuple[int, tuple[int, ...]], int | None] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> list[Kind]:
        """The kinds of units, the smallest worst cases first and infinite ones last."""
        kinds = []
        for a in self.columns:
            own = [place for place in self.terms if place[0] == a]
            noises = [p for p in own if isinstance(self._mechanism(p), DiscreteLaplace)]
            if noises:
                term = together([self.terms[p] for p in noises])
                kinds.append(Kind(a, (tuple(noises),), term, noise=True))
            alike: dict[object, list[list[Place]]] = {}
            for place in own:
                channel = self._mechanism(place)
                if isinstance(channel, Channel):
                    term = self.terms[place]
                    # Most that differ do so here already: whole matrices are seldom compared.
                    groups = alike.setdefault((term.ratio, term.infinite, channel.denominators), [])
                    for group in groups:
                        if _equal(self._mechanism(group[0]), channel):
                            group.append(place)
                            break
                    else:
                        groups.append([place])
            for groups in alike.values():
                for group in groups:
                    kinds.append(Kind(a, tuple((p,) for p in group), self.terms[group[0]]))
        return sorted(kinds, key=lambda kind: (_weight(kind.term), kind.units[0]))

    @cached_property
    def nothing(self) -> Left:
        """Nothing is left out."""
        return (0,) * len(self.kinds)

    @cached_property
    def all(self) -> Left:
        """Everything is left out."""
        return tuple(len(kind.units) for kind in self.kinds)

    @cached_property
    def others(self) -> Term:
        """The worst case of all releases of the other columns."""
        return together([t for (a, _), t in self.terms.items() if a not in self.columns])

    def outside(self, left: Left) -> Fraction | None:
        """Return the sum of the worst cases of what is not in the joint loss; None: infinite."""
        out = [(k.term, n) for k, n in zip(self.kinds, left, strict=True) if n]
        if self.others.infinite or any(term.infinite for term, _ in out):
            return None
        rational, ratio = self.others.rational, self.others.ratio
        for term, n in out:
            rational += n * term.rational
            ratio *= term.ratio**n
        return total([Term("", rational, ratio)])

    def inside(self, left: Left) -> set[Place]:
        """Return the releases in the joint loss; of units that are alike the last are left out."""
        kinds = zip(self.kinds, left, strict=True)
        return {place for kind, n in kinds for unit in kind.inside(n) for place in unit}

    # --- The size of the grid

    def cells(self, left: Left, limit: int | None = None) -> int | None:
        """Return the cells of the grid of outputs.

        Parameters
        ----------
        left : tuple of int
            What is left out.
        limit : int, optional
            Cells beyond which the exact number does not matter.

        Returns
        -------
        int or None
            None where a column's channels have too many tuples of outputs, or beyond the limit.
        """
        self.work.spend(_LOOK)
        size, noisy = 1, set()
        tuples: dict[int, list[int]] = {}
        for kind, n in zip(self.kinds, left, strict=True):
            if kind.noise and not n:
                size *= len(self.atoms[kind.column])
                noisy.add(kind.column)
            elif not kind.noise and n < len(kind.units):
                own = tuples.setdefault(kind.column, [])
                own += [r for ((_, r),) in kind.inside(n)]
        # Beside the value itself no channel of the column tells anything.
        seen = {a: own for a, own in tuples.items() if not (a in noisy and self._published[a])}
        # The products are what takes time, so they come last.
        for a, own in seen.items():
            if limit is not None and size > limit:
                return None
            # Their order decides whether the channels have too many tuples on the way.
            outputs = self._outputs(a, tuple(sorted(own)))
            if outputs is None:
                return None
            size *= outputs
        return size if limit is None or size <= limit else None

    def fits(self, left: Left, limit: int) -> bool:
        """Whether the grid is within a limit, and something is inside."""
        return left != self.all and self.cells(left, limit) is not None

    @cached_property
    def atoms(self) -> dict[int, IntArray]:
        """The atoms of each known column that have mass."""
        return {a: np.unique(np.concatenate(self.reaches[a].sets)) for a in self.columns}

    @cached_property
    def _published(self) -> dict[int, bool]:
        """Whether the noises of a column, all together, publish the value itself."""
        published = {}
        for a in self.columns:
            axis = self.axes[a]
            noises = tuple(m for m in axis.releases if isinstance(m, DiscreteLaplace))
            published[a] = (
                bool(noises) and merged(Axis(axis.support, noises), self.atoms[a]).published
            )
        return published

    @cached_property
    def _own(self) -> dict[Place, list[tuple[int, ...]] | None]:
        """The distinct outputs of each channel, as columns of likelihoods."""
        own: dict[Place, list[tuple[int, ...]] | None] = {}
        for a, r in self.terms:
            channel = self.axes[a].releases[r]
            if a in self.columns and isinstance(channel, Channel):
                try:
                    alone = merged(Axis(self.axes[a].support, (channel,)), self.atoms[a])
                    own[a, r] = alone.columns
                except GridTooLarge:
                    own[a, r] = None
        return own

    def _outputs(self, a: int, channels: tuple[int, ...]) -> int | None:
        """Return how many distinct outputs some channels of a column have together."""
        if not channels:
            return 1
        if (a, channels) in self._sizes:
            return self._sizes[a, channels]
        found = {(1,) * len(self.atoms[a])}
        for n, r in enumerate(channels, start=1):
            begun, own = (a, channels[:n]), self._own[a, r]
            if own is None or self._sizes.get(begun, 1) is None:
                self._sizes[begun] = self._sizes[a, channels] = None
                return None
            if len(own) * len(found) > MOST_OUTPUTS:
                self._sizes[begun] = self._sizes[a, channels] = None
                return None
            self.work.spend(_PRODUCT * len(own) * len(found) * len(self.atoms[a]))
            products = (
                tuple(p * q for p, q in zip(one, other, strict=True))
                for one in found
                for other in own
            )
            found = {_lowest(column) for column in products if any(column)}
            self._sizes[begun] = len(found)
        return len(found)

    # --- Choices

    def greedy(self, limit: int) -> Left | None:
        """Leave out the smallest worst cases until the grid fits; None where none does so."""
        # Units with equal worst cases go in the order of their releases.
        order = [(_weight(k.term), u, n) for n, k in enumerate(self.kinds) for u in k.units]
        units = [n for _, _, n in sorted(order)]

        def without(many: int) -> Left:
            left = list(self.nothing)
            for n in units[:many]:
                left[n] += 1
            return tuple(left)

        # Fewer releases hardly ever make a larger grid, so how many to leave out is found by
        # halving; every bound that comes out is valid, whichever are left out.
        few, many = 0, len(units)
        if self.fits(self.nothing, limit):
            many = 0
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if self.fits(without(middle), limit) else (middle, many)
        left = without(many)
        if many == len(units):
            return None
        # What had to go before something larger went may fit again.
        for n in reversed(units[max(0, many - _MOST_READDED) : many]):
            wider = moved(left, n, -1)
            left = wider if self.fits(wider, limit) else left
        return left

    def refilled(self, left: Left, limit: int) -> Left:
        """Put back whatever fits, the largest worst cases first, as long as work may be done."""
        for n in reversed(range(len(left))):
            while left[n] and self.work.affords():
                wider = moved(left, n, -1)
                if not self.fits(wider, limit):
                    break
                left = wider
        return left

    @cached_property
    def choices(self) -> int:
        """How many choices leave out no infinite worst case."""
        return math.prod(n + 1 for n, k in zip(self.all, self.kinds, strict=True) if _finite(k))

    def every(self) -> list[tuple[Fraction, Left]]:
        """Return all these with their sums of worst cases, the smallest sums first."""
        ranges = [
            range(n + 1) if _finite(k) else range(1)
            for n, k in zip(self.all, self.kinds, strict=True)
        ]
        sums = ((self.outside(left), left) for left in product(*ranges))
        found = [(upper, left) for upper, left in sums if upper is not None]
        # Of equal sums those that leave out less come first.
        return sorted(found, key=lambda pair: (pair[0], sum(pair[1]), pair[1]))

    def neighbours(self, left: Left, limit: int) -> Iterator[Left]:
        """Yield what comes of putting back one unit and leaving out another, or the smallest."""
        for n in reversed(range(len(left))):
            if not left[n]:
                continue
            wider = moved(left, n, -1)
            if self.fits(wider, limit):
                yield self.refilled(wider, limit)
                continue
            narrow = wider
            for m in range(len(left)):
                if m == n:
                    continue
                if not self.work.affords():
                    return
                if wider[m] < self.all[m]:
                    swapped = moved(wider, m, 1)
                    if self.fits(swapped, limit):
                        yield self.refilled(swapped, limit)
                while (
                    narrow[m] < self.all[m] and self.work.affords() and not self.fits(narrow, limit)
                ):
                    narrow = moved(narrow, m, 1)
            if self.fits(narrow, limit):
                yield self.refilled(narrow, limit)

    def _mechanism(self, place: Place) -> Mechanism:
        return self.axes[place[0]].releases[place[1]]


def together(terms: Sequence[Term]) -> Term:
    """Return several worst cases as one."""
    return Term(
        "",
        sum((term.rational for term in terms), Fraction(0)),
        math.prod((term.ratio for term in terms), start=Fraction(1)),
        any(term.infinite for term in terms),
    )


def moved(left: Left, at: int, by: int) -> Left:
    """Return a choice with one count changed."""
    return (*left[:at], left[at] + by, *left[at + 1 :])


def _weight(term: Term) -> tuple[bool, Fraction]:
    upper = term.upper
    return upper is None, upper or Fraction(0)


def _finite(kind: Kind) -> bool:
    return not kind.term.infinite


def _equal(one: Mechanism, other: Channel) -> bool:
    """Whether two channels tell the same of every value."""
    return one is other or (
        isinstance(one, Channel)
        and one.denominators == other.denominators
        and one.inputs.same_as(other.inputs)
        and np.array_equal(one.rows, other.rows)
    )


def _lowest(column: tuple[int, ...]) -> tuple[int, ...]:
    divisor = math.gcd(*column)
    return tuple(value // divisor for value in column) if divisor > 1 else column
