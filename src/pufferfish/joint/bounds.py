# SPDX-License-Identifier: Apache-2.0
"""Bounds of the joint loss that hold whatever the correlation: worst cases and valid mixtures.

For releases R_1 whose joint loss is known and others with worst cases w_l (:mod:`.worst`)

    Q_i(y) = sum_x P_i(x) k_1(y_1 | x) prod_l k_l(y_l | x)  <=  e^(sum w_l) e^loss(R_1) Q_j(y).

*Proof.* Over all x that the pair can have, prod_l k_l(y_l | x) lies between some c and c e^(sum
w_l). So Q_i(y) <= c e^(sum w_l) sum_x P_i(x) k_1(y_1 | x), that sum is at most e^loss(R_1) times
the one for P_j, and c times the latter is at most Q_j(y) (theory, section 6).

*More releases in the joint loss are never worse.* For R_1 within R_2 the same inequality, for the
releases of R_2 alone, says loss(R_2) <= loss(R_1) + the worst cases of R_2 without R_1; with those
of all others added on both sides, the mixture of R_2 is at most that of R_1. Where a term is
infinite the right side is, and there is nothing to show. Nor does it matter that a joint loss is
rounded up, but in its last digit, or computed with a value itself for noise that is off its lattice
(whose worst case is infinite, unless no pair has two values). So only *largest* sets that can be
computed are tried: those to which nothing can be added. And for any two sets

    loss(R_1) + worst cases of the rest  >=  loss(R_2) + worst cases of what neither has:

loss(R_1) is at least the loss of what both have, and that is at least loss(R_2) less the worst
cases of R_2 without R_1. So what was computed, were it a smaller set, shows of others that they
cannot give less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pufferfish.arrays import CountArray, FloatArray
from pufferfish.joint.axes import Axis
from pufferfish.joint.balls import cells_of
from pufferfish.joint.loss import BALL_CELLS, NOTHING, loss_of_problem
from pufferfish.joint.problem import LARGEST_GRID, make_problem
from pufferfish.joint.record import GridTooLarge, JointLoss
from pufferfish.joint.subsets import Left, Place, Subsets, Work
from pufferfish.joint.worst import Reach, Term, total, worst_case
from pufferfish.rationals import Number, float_up, parse_number


@dataclass(frozen=True, eq=False)
class Known:
    """Joint masses of some of the columns.

    Attributes
    ----------
    columns : tuple of int
        Positions among the axes, in the order of the masses' axes.
    masses : sequence of integer arrays, shape (m, n_1, ..., n_k)
        One per adversary.
    pairs : sequence of (int, int)
        Rows of the masses.
    """

    columns: tuple[int, ...]
    masses: Sequence[CountArray]
    pairs: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Bound:
    """A bound of the joint loss of a whole set of releases.

    Attributes
    ----------
    upper : Fraction or None
        The bound, exact; None: infinite.
    name : str
        Which bound it is: ``joint loss``, ``worst-case sum`` or ``joint loss + worst cases``.
    joint : JointLoss or None
        The exact joint loss that is part of it.
    within : tuple of str
        Labels of the releases in that joint loss.
    terms : tuple of Term
        The worst cases of all others.
    """

    upper: Fraction | None
    name: str
    joint: JointLoss | None
    within: tuple[str, ...]
    terms: tuple[Term, ...]

    @property
    def value(self) -> float:
        """The bound as a double, rounded up; may be infinite."""
        return float("inf") if self.upper is None else float_up(self.upper)

    @property
    def how(self) -> str:
        """What the bound is made of, in words."""
        if self.joint is None:
            return "the sum of the worst cases of all releases"
        words = {
            "none": "nothing was released",
            "exact": "exact whole numbers",
            "ball": "ball arithmetic",
            "float-bound": "a floating-point bound",
        }
        how, _, more = self.joint.method.partition("+")
        proved = words.get(how, how) + (" and exact rationals" if more else "")
        if not self.terms:
            return f"the joint loss, proved by {proved}"
        within = "none" if not self.within else ", ".join(self.within)
        return (
            f"the joint loss of the releases {within}, proved by {proved}, and the worst cases of "
            f"the others: {', '.join(term.label for term in self.terms)}"
        )

    def __float__(self) -> float:
        return self.value

    def at_most(self, epsilon: Number) -> bool:
        """Whether the joint loss was proved to be at most epsilon, compared exactly."""
        return self.upper is not None and self.upper <= parse_number(epsilon, "epsilon")


#: Choices of what to leave out (2 for each unit of its own) up to which all are gone through.
MOST_CHOICES = 1 << 12
#: How much is computed beyond the first mixture, in joint losses of the largest grid.
MOST_WORK = 2
#: What one cell costs in ball arithmetic, in cells in doubles.
_BALL = 32
#: What a joint loss costs in any case, in cells.
_ONCE = 1 << 14
#: How much smaller a grid has to be to be computed for a lower bound alone.
_SMALLER = 4
#: Worst cases in doubles count as no more, so that no sum of them is infinite.
_HUGE = 1e300


def smallest_bound(
    axes: Sequence[Axis],
    knowns: Sequence[Known] = (),
    labels: Sequence[Sequence[str]] | None = None,
    limit: int = LARGEST_GRID,
) -> Bound:
    """Return the least bound of the loss of a whole set of releases, as far as it can be computed.

    Source: theory, section 6.

    Parameters
    ----------
    axes : sequence of Axis
        All columns with all their releases.
    knowns : sequence of Known
        For which columns a joint prior is known; several overlapping ones are fine, and their
        pairs must be the same secrets.
    labels : sequence of sequences of str, optional
        What each release of each axis is called; by default ``axis.release``, from 1.
    limit : int
        Cells that a grid may have.

    Returns
    -------
    Bound
        The least of the worst-case sum and, for each known prior, the joint losses of sets of
        releases plus the worst cases of the others; of equal ones that were tried, the one with
        the fewest worst cases.

    Notes
    -----
    It is the least over *all* sets whose joint loss can be computed and proved within the limit,
    but for the rounding of each, where

    - there are at most `MOST_CHOICES` ways to leave releases out: all noises of one column are
      left out together or not at all, and of equal channels of one column only the number counts;
      so noises of c columns and 12 - c channels are always few enough;
    - and what has to be computed beyond the first set is no more than `MOST_WORK` joint losses of
      a grid of `LARGEST_GRID` cells, or of the limit where that is larger.

    Else it is the least of those that were tried, among them always the set that comes of leaving
    out the smallest worst cases until the grid fits.

    Raises
    ------
    InputError
        As :func:`worst_case` and :func:`pufferfish.joint.joint_loss_of`.
    """
    places = [(a, r) for a, axis in enumerate(axes) for r in range(len(axis.releases))]
    if not places:
        return Bound(Fraction(0), "joint loss", NOTHING, (), ())
    owns = [
        {column: Reach.of(known.masses, at, known.pairs) for at, column in enumerate(known.columns)}
        for known in knowns
    ]
    reaches: dict[int, Reach] = {}
    for reach in owns:
        for column, own in reach.items():
            reaches[column] = reaches[column].joined(own) if column in reaches else own
    terms: dict[Place, Term] = {}
    for a, r in places:
        label = f"{a + 1}.{r + 1}" if labels is None else labels[a][r]
        terms[a, r] = worst_case(axes[a].releases[r], axes[a].support, reaches.get(a), label)
    every = tuple(terms.values())
    best = Bound(total(every), "worst-case sum", None, (), every)
    for known, reach in zip(knowns, owns, strict=True):
        work = Work(MOST_WORK * max(limit, LARGEST_GRID))
        mixtures = _Mixtures(known, Subsets(axes, known.columns, reach, terms, work), limit, best)
        mixtures.search()
        best = mixtures.best
    return best


class _Mixtures:
    """The mixtures of one known prior: computes some of them, and keeps the least bound."""

    def __init__(self, known: Known, subsets: Subsets, limit: int, best: Bound) -> None:
        self.known, self.subsets, self.limit, self.best = known, subsets, limit, best
        # What cannot be proved, and what was computed with the lower bounds of the joint losses.
        self.failed: set[Left] = set()
        self.computed: list[Left] = []
        self.lowers: list[float] = []

    def search(self) -> None:
        """Find the least mixture, or a small one; see :func:`smallest_bound`."""
        subsets = self.subsets
        # Where everything can be computed, nothing is smaller.
        if not subsets.kinds or self.compute(subsets.nothing):
            return
        room = self.limit
        first = subsets.greedy(room)
        while first is not None and not self.compute(first):
            # The grid is small enough to be worked out, but not to be proved.
            room = (subsets.cells(first) or 1) - 1
            first = subsets.greedy(room)
        if subsets.others.infinite:
            return
        subsets.work.done = 0
        if subsets.choices <= MOST_CHOICES:
            self._enumerate()
        else:
            self._exchange(first)

    def compute(self, left: Left) -> bool:
        """Compute one mixture and keep it if it is less; False if that cannot be done."""
        if left in self.failed:
            return False
        subsets, known = self.subsets, self.known
        inside = subsets.inside(left)
        chosen = []
        for a in known.columns:
            axis = subsets.axes[a]
            own = tuple(m for r, m in enumerate(axis.releases) if (a, r) in inside)
            chosen.append(Axis(axis.support, own))
        try:
            problem = make_problem(known.masses, chosen, known.pairs, limit=self.limit)
            joint = loss_of_problem(problem)
        except GridTooLarge:
            self.failed.add(left)
            return False
        if joint.method != "float-bound" and cells_of(problem) > BALL_CELLS:
            subsets.work.spend(_BALL * problem.cells)
        self.computed.append(left)
        self.lowers.append(joint.lower)
        rest = tuple(term for place, term in subsets.terms.items() if place not in inside)
        others = total(rest)
        mixed = Bound(
            None if joint.upper is None or others is None else joint.upper + others,
            "joint loss + worst cases" if rest else "joint loss",
            joint,
            tuple(term.label for place, term in subsets.terms.items() if place in inside),
            rest,
        )
        # Of two that are equal the one with fewer worst cases says more.
        if _less(mixed.upper, self.best.upper) or (
            mixed.upper == self.best.upper and len(rest) < len(self.best.terms)
        ):
            self.best = mixed
        return True

    def _enumerate(self) -> None:
        """Go through all choices, the least sums of worst cases first."""
        settled = np.empty((0, len(self.subsets.kinds)), dtype=np.int64)
        for outside, left in self.subsets.every():
            upper = self.best.upper
            # No joint loss is below 0.
            if (upper is not None and outside >= upper) or not self.subsets.work.affords():
                return
            # Whoever leaves out more than a choice that is settled gets nothing smaller.
            if bool((settled <= left).all(axis=1).any()):
                continue
            if self._settles(left):
                settled = np.vstack([settled, left])

    def _exchange(self, left: Left | None) -> None:
        """Improve a choice step by step, as long as some exchange makes it better."""
        subsets = self.subsets
        other = subsets.refilled(subsets.all, self.limit)
        if left is None or self._improves(other):
            left = other
        seen = {left, other}
        found = True
        while found:
            found = False
            for other in subsets.neighbours(left, self.limit):
                if other not in seen:
                    seen.add(other)
                    if self._improves(other):
                        left, found = other, True
                        break

    def _improves(self, left: Left) -> bool:
        """Whether a mixture, once it is settled, is the least so far."""
        before = self.best
        finite = self.subsets.outside(left) is not None
        return finite and self._settles(left) and self.best is not before

    def _settles(self, left: Left) -> bool:
        """Compute a finite mixture, or show that it is not smaller; False if neither can be."""
        if self._hopeless(left):
            return True
        cells = self._cells(left)
        if cells is None:
            return False
        # What it has in common with the first one may be a much smaller grid, and show as much.
        common = tuple(map(max, left, self.computed[0])) if self.computed else left
        shared = None if common in self.computed else self._cells(common)
        if shared is not None and _SMALLER * shared <= cells and self._affords(shared):
            self.compute(common)
            if self._hopeless(left):
                return True
        return self._affords(cells) and self.compute(left)

    def _hopeless(self, left: Left) -> bool:
        """Whether mixtures that were computed show that a finite one is not smaller."""
        if not self.computed:
            return False
        # In doubles, as it does not matter which of two that differ by rounding is found.
        both = np.minimum(np.array(self.computed), left) @ self._weights
        least = float((both + self.lowers).max()) + self._others
        return least >= self.best.value

    def _cells(self, left: Left) -> int | None:
        """Return the cells of a grid that is small enough and not known to be too hard."""
        if left == self.subsets.all or left in self.failed:
            return None
        return self.subsets.cells(left, self.limit)

    def _affords(self, cells: int) -> bool:
        """Whether a joint loss is not too much work, which is then counted."""
        known, work = self.known, self.subsets.work
        each = len({row for pair in known.pairs for row in pair}) * len(known.masses)
        price = cells * (_BALL if cells * each <= BALL_CELLS else 1)
        price += _ONCE + known.masses[0][0].size
        if not work.affords(price):
            return False
        work.spend(price)
        return True

    @cached_property
    def _weights(self) -> FloatArray:
        """The worst case of a unit of each kind."""
        # An infinite one is left out by no finite mixture.
        weights = [float_up(kind.term.upper or Fraction(0)) for kind in self.subsets.kinds]
        return np.minimum(weights, _HUGE)

    @cached_property
    def _others(self) -> float:
        return min(float_up(self.subsets.others.upper or Fraction(0)), _HUGE)


def _less(one: Fraction | None, other: Fraction | None) -> bool:
    return one is not None and (other is None or one < other)
