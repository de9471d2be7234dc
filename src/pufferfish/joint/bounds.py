# SPDX-License-Identifier: Apache-2.0
"""Bounds of the joint loss that hold whatever the correlation: worst cases and valid mixtures.

For releases R_1 whose joint loss is known and others with worst cases w_l (:mod:`.worst`)

    Q_i(y) = sum_x P_i(x) k_1(y_1 | x) prod_l k_l(y_l | x)  <=  e^(sum w_l) e^loss(R_1) Q_j(y).

*Proof.* Over all x that the pair can have, prod_l k_l(y_l | x) lies between some c and c e^(sum
w_l). So Q_i(y) <= c e^(sum w_l) sum_x P_i(x) k_1(y_1 | x), that sum is at most e^loss(R_1) times
the one for P_j, and c times the latter is at most Q_j(y) (theory, section 6).

An exact loss of more releases is never worse than a mixture with fewer, so only the largest sets
that can be computed are tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.arrays import CountArray
from pufferfish.joint.axes import Axis
from pufferfish.joint.loss import NOTHING, loss_of_problem
from pufferfish.joint.problem import LARGEST_GRID, Problem, make_problem
from pufferfish.joint.record import GridTooLarge, JointLoss
from pufferfish.joint.worst import Reach, Term, total, worst_case
from pufferfish.mechanisms import Channel, DiscreteLaplace
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


#: Releases that are tried again after larger ones were left out.
_MOST_READDED = 8

#: A release: the position of its axis, and its own among the releases of that axis.
_Place = tuple[int, int]


def smallest_bound(
    axes: Sequence[Axis],
    knowns: Sequence[Known] = (),
    labels: Sequence[Sequence[str]] | None = None,
    limit: int = LARGEST_GRID,
) -> Bound:
    """Return the least bound that was found of the loss of a whole set of releases.

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
        Of the worst-case sum and, for each known prior, the joint loss of as many releases as can
        be computed plus the worst cases of the others; of equal ones that with fewer worst cases.

    Raises
    ------
    InputError
        As :func:`worst_case` and :func:`pufferfish.joint.joint_loss_of`.
    """
    places = [(a, r) for a, axis in enumerate(axes) for r in range(len(axis.releases))]
    if not places:
        return Bound(Fraction(0), "joint loss", NOTHING, (), ())
    reaches: dict[int, Reach] = {}
    for known in knowns:
        for at, column in enumerate(known.columns):
            own = Reach.of(known.masses, at, known.pairs)
            reaches[column] = reaches[column].joined(own) if column in reaches else own
    terms: dict[_Place, Term] = {}
    for a, r in places:
        label = f"{a + 1}.{r + 1}" if labels is None else labels[a][r]
        terms[a, r] = worst_case(axes[a].releases[r], axes[a].support, reaches.get(a), label)
    every = tuple(terms.values())
    best = Bound(total(every), "worst-case sum", None, (), every)
    for known in knowns:
        mixed = _mixture(axes, known, terms, limit)
        # Of two that are equal the one with fewer worst cases says more.
        if mixed is not None and (
            _less(mixed.upper, best.upper)
            or (mixed.upper == best.upper and len(mixed.terms) < len(best.terms))
        ):
            best = mixed
    return best


def _less(one: Fraction | None, other: Fraction | None) -> bool:
    return one is not None and (other is None or one < other)


def _mixture(
    axes: Sequence[Axis], known: Known, terms: dict[_Place, Term], limit: int
) -> Bound | None:
    """Return the joint loss of as many releases as possible and the worst cases of the others."""
    units = _units(axes, known, terms)
    while units:
        problem, inside = _largest(axes, known, units, limit)
        if problem is None:
            return None
        try:
            joint = loss_of_problem(problem)
        except GridTooLarge:
            # The grid is small enough to be worked out, but not to be proved.
            limit = problem.cells - 1
            continue
        rest = tuple(term for p, term in terms.items() if p not in inside)
        others = total(rest)
        upper = None if joint.upper is None or others is None else joint.upper + others
        return Bound(
            upper,
            "joint loss + worst cases" if rest else "joint loss",
            joint,
            tuple(terms[p].label for p in terms if p in inside),
            rest,
        )
    return None


def _units(axes: Sequence[Axis], known: Known, terms: dict[_Place, Term]) -> list[list[_Place]]:
    """Return what is left out together, the smallest worst cases first and infinite ones last."""
    # One column's noises are one unit: they merge, so leaving out only some of them gains nothing.
    units: list[list[_Place]] = []
    for a in known.columns:
        own = [place for place in terms if place[0] == a]
        noises = [p for p in own if isinstance(axes[a].releases[p[1]], DiscreteLaplace)]
        units += [noises] if noises else []
        units += [[p] for p in own if isinstance(axes[a].releases[p[1]], Channel)]

    def weight(unit: list[_Place]) -> tuple[bool, Fraction]:
        upper = total([terms[place] for place in unit])
        return upper is None, upper or Fraction(0)

    return sorted(units, key=weight)


def _largest(
    axes: Sequence[Axis], known: Known, units: list[list[_Place]], limit: int
) -> tuple[Problem | None, set[_Place]]:
    """Return a largest set of releases whose grid is within the limit, and its problem."""
    # Fewer releases hardly ever make a larger grid, so how many to leave out is found by halving;
    # every bound that comes out is valid, whichever are left out.
    few, many = 0, len(units)
    found = _problem(axes, known, units, limit)
    if found is None:
        while many - few > 1:
            middle = (few + many) // 2
            problem = _problem(axes, known, units[middle:], limit)
            few, many = (few, middle) if problem is not None else (middle, many)
        found = None if many == len(units) else _problem(axes, known, units[many:], limit)
    else:
        many = 0
    if found is None:
        return None, set()
    inside = units[many:]
    # What had to go before something larger went may fit again.
    for unit in reversed(units[max(0, many - _MOST_READDED) : many]):
        wider = _problem(axes, known, [*inside, unit], limit)
        if wider is not None:
            found, inside = wider, [*inside, unit]
    return found, {place for unit in inside for place in unit}


def _problem(
    axes: Sequence[Axis], known: Known, units: Sequence[Sequence[_Place]], limit: int
) -> Problem | None:
    """Return the problem of some releases, or None where its grid is too large."""
    inside = {place for unit in units for place in unit}
    chosen = []
    for a in known.columns:
        own = tuple(m for r, m in enumerate(axes[a].releases) if (a, r) in inside)
        chosen.append(Axis(axes[a].support, own))
    try:
        return make_problem(known.masses, chosen, known.pairs, limit=limit)
    except GridTooLarge:
        return None
