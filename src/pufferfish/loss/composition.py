# SPDX-License-Identifier: Apache-2.0
"""Composition: the loss of several releases together, exact where it is known, bounded elsewhere.

Losses of releases do not add up (theory, section 6). For releases R whose joint loss is known and
others with worst cases w_l, which hold whatever else is known of a value,

    sum_x P_i(x) k_R(y|x) prod_l k_l(y_l|x)  <=  e^(sum w_l) e^loss(R)  times the same for P_j.

*Proof.* Over the x of the pair prod_l k_l lies between some c and c e^(sum w_l): the left side is
at most c e^(sum w_l) sum_x P_i(x) k_R(y|x), and c sum_x P_j(x) k_R(y|x) is at most the right one.
With k rows of one person every release is k of them, and its worst case counts k times.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from pufferfish.errors import InputError, OutsidePromiseWarning, counted, listed, warn_user
from pufferfish.loss.certificate import LossBound
from pufferfish.loss.kernel import GridTooLarge, Mechanism
from pufferfish.loss.problem import LARGEST_GRID, Releases, problems_of
from pufferfish.loss.proof import loss_bound
from pufferfish.loss.worst_case import worst_case
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import IntArray
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Lattice, Support


class PlanLike(Protocol):
    """What is read of a plan: see :class:`pufferfish.Plan`."""

    @property
    def applied(self) -> Mechanism:
        """What happens to every value."""

    @property
    def support(self) -> Support:
        """Where the value can lie."""

    @property
    def coding(self) -> Any:
        """Name and cleaning of the column, or None."""

    @property
    def unit(self) -> str | None:
        """The column whose equal values mark the rows of one person."""

    @property
    def rows_per_person(self) -> tuple[int, ...]:
        """How many rows one person may have."""


#: One release: a plan, or the column and what was applied to it.
Item = PlanLike | tuple[str, PlanLike | Mechanism]


class Other(NamedTuple):
    """A release of a column that the scenario does not know: it counts with its worst case."""

    column: str
    mechanism: Mechanism
    support: Support


@dataclass(frozen=True, eq=False)
class Composition:
    """Releases by column: of columns that the scenario knows, and others.

    Attributes
    ----------
    scenario : Scenario
    releases : mapping of int to tuples of mechanisms
        By the position of the column on the scenario's product.
    others : tuple of Other
    rows : tuple of int
        Numbers of rows that one person may have by the plans.
    """

    scenario: Scenario
    releases: Mapping[int, tuple[Mechanism, ...]]
    others: tuple[Other, ...] = ()
    rows: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.others) + sum(map(len, self.releases.values()))

    def with_release(self, at: int, mechanism: Mechanism) -> "Composition":
        """Return the same with one further release of the column at a position."""
        own = (*self.releases.get(at, ()), mechanism)
        return replace(self, releases={**self.releases, at: own})

    def position(self, column: str | None) -> int:
        """Return the position of a column of the scenario; None: the only one."""
        return self.scenario.product.position(column)

    def bound(self, limit: int = LARGEST_GRID) -> LossBound:
        """Return the bound of everything together."""
        return compose(self.scenario, self.releases, self.others, self.rows, limit=limit)


def joint_loss(scenario: Scenario | Prior, items: Iterable[Item]) -> LossBound:
    """Return the loss of several releases together, or the least bound of it that is found.

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column, or of several together (``Prior.from_table(..., public=["x", "z"])``).
    items : iterable of Plan or (str, Plan or mechanism)
        The releases, each independent of the others given the values. The column need not be
        named where the plan or the scenario knows it.

    Returns
    -------
    LossBound
        ``float()`` of it is the loss, rounded up; 0 without releases, and never negative; may be
        infinite. ``kind`` says whether it is the joint loss itself or which bound.

    Raises
    ------
    InputError
        If an item is no release, or does not fit its column.

    Warns
    -----
    OutsidePromiseWarning
        If rows of the table lack a value in some of the columns.

    Notes
    -----
    Theory, section 6. Columns of which the scenario knows nothing count with their worst case.
    Where the grid of all outputs is too large, the releases with the smallest worst cases are left
    out of the joint loss until it fits, and their worst cases are added. Where the rows of one
    person are known (``unit``), every release is one of all of them, and the loss is that of all
    rows of a person together.
    """
    return gather(scenario, items).bound()


def gather(scenario: Scenario | Prior, items: Iterable[Item]) -> Composition:
    """Return the releases by column; an InputError where one does not fit its column."""
    scenario = Scenario(scenario) if isinstance(scenario, Prior) else scenario
    if not isinstance(scenario, Scenario):
        raise InputError(f"a Scenario or a Prior is needed, not a {type(scenario).__name__}")
    if isinstance(items, str) or hasattr(items, "applied") or not isinstance(items, Iterable):
        raise InputError("a list of plans, or of (column, mechanism), is needed")
    _warn_of_incomplete_rows(scenario)
    columns = list(scenario.product.columns)
    releases: dict[int, tuple[Mechanism, ...]] = {}
    others, rows = [], set[int]()
    for number, item in enumerate(items, 1):
        column, mechanism, support, own = _read(item, number, scenario.unit)
        rows |= set(own)
        if column is None and len(columns) > 1:
            raise InputError(
                f"name the column of release {number}: (column, plan); the scenario is about "
                f"{listed(map(str, columns))}"
            )
        if columns == [None]:
            columns[0] = column  # from now on another name is another column
        if column is not None and column not in columns:
            if support is None:
                raise InputError(
                    f"release {number} is of the column {column!r}, of which the scenario knows "
                    "nothing: give a plan, which knows the values of its column"
                )
            others.append(Other(column, mechanism, support))
            continue
        at = 0 if column is None else columns.index(column)
        _check_fits(mechanism, support, scenario.product.axes[at], number)
        releases[at] = (*releases.get(at, ()), mechanism)
    return Composition(scenario, releases, tuple(others), tuple(sorted(rows)))


def compose(
    scenario: Scenario,
    releases: Releases,
    others: Sequence[Other] = (),
    rows: Sequence[int] = (),
    *,
    limit: int = LARGEST_GRID,
) -> LossBound:
    """Return the least bound that is found of the loss of a whole set of releases.

    It is the joint loss of all, or of those that are left when the smallest worst cases are left
    out until the grid fits ``limit``, with the worst cases of the others; or the sum of all worst
    cases where that is less. ``rows``: numbers of rows that one person may have besides those that
    the scenario knows; of such people nothing is known but worst cases over the whole support.
    """
    known = {1, *(stratum.rows for strata in scenario.strata for stratum in strata)}
    terms = _terms_of(scenario, releases, others, len(known) > 1)
    if not terms:
        return LossBound(Fraction(0), 0.0)
    bound = _worst_sum(terms, max(known))
    mixed = _mixture(scenario, terms, max(known), limit)
    if mixed is not None and _rank(mixed.upper) <= _rank(bound.upper):
        bound = mixed
    unknown = max(set(rows) - known, default=0)
    if unknown:
        worst = _worst_sum(_terms_of(scenario, releases, others, True), unknown)
        bound = max(bound, worst, key=lambda found: _rank(found.upper))
    return bound


class _Term(NamedTuple):
    """One release, with its worst case: of column ``at`` of the scenario, or of none (None)."""

    column: str
    worst: Fraction | None
    at: int | None
    mechanism: Mechanism


def _terms_of(
    scenario: Scenario,
    releases: Releases,
    others: Sequence[Other],
    everywhere: bool,
) -> list[_Term]:
    """Return all releases, with worst cases over what pairs can have, or over whole supports."""
    terms = []
    for at, mechanisms in sorted(releases.items()):
        support = scenario.product.axes[at]
        whole = everywhere or scenario.has_region  # theory, section 5
        ends, atoms = ([None], None) if whole or not mechanisms else _reach(scenario, at)
        column = scenario.product.columns[at] or "the column"
        for made in mechanisms:
            sets = ends if isinstance(made, DiscreteLaplace) else [atoms]
            worst = max((worst_case(made, support, own) for own in sets), key=_rank)
            terms.append(_Term(column, worst, at, made))
    for column, made, support in others:
        terms.append(_Term(column, worst_case(made, support), None, made))
    return terms


def _reach(scenario: Scenario, at: int) -> tuple[list[Any], IntArray]:
    """Return the first and last value of a column that each pair can have, and all values."""
    shape = scenario.product.shape
    others = tuple(k + 1 for k in range(len(shape)) if k != at)
    ends, everything = set(), np.zeros(shape[at], dtype=bool)
    for prior in scenario.priors:
        used = (prior.counts.reshape(-1, *shape) != 0).any(axis=others)
        first, last = used.argmax(axis=1), shape[at] - 1 - used[:, ::-1].argmax(axis=1)
        for one, other in scenario.pairs:
            i, j = prior.row(one), prior.row(other)
            ends.add((int(min(first[i], first[j])), int(max(last[i], last[j]))))
        everything |= used[[prior.row(secret) for secret in scenario.protected]].any(axis=0)
    return [np.array(pair, dtype=np.int64) for pair in ends], np.flatnonzero(everything)


def _units(terms: Sequence[_Term]) -> list[list[_Term]]:
    """Return what is left out together, smallest worst cases first: noises of a column merge.

    Leaving out only some of them makes no grid smaller.
    """
    units: dict[object, list[_Term]] = {}
    for number, term in enumerate(terms):
        if term.at is not None:
            noise = isinstance(term.mechanism, DiscreteLaplace)
            units.setdefault(("noise", term.at) if noise else number, []).append(term)
    return sorted(units.values(), key=lambda unit: _rank(_added(_named(unit))))


def worst_sum(others: Iterable[Other], rows: int = 1) -> LossBound:
    """Return the sum of all worst cases, for so many rows of one person."""
    return _worst_sum([_Term(o[0], worst_case(o[1], o[2]), None, o[1]) for o in others], rows)


def _worst_sum(terms: Sequence[_Term], rows: int) -> LossBound:
    named = _named(terms, rows)
    return LossBound(_added(named), 0.0, "worst-case sum", "none", (), named, rows)


def _mixture(scenario: Scenario, terms: Sequence[_Term], rows: int, limit: int) -> LossBound | None:
    """Return the joint loss with the fewest worst cases; None where no grid fits."""
    units = _units(terms)
    if scenario.has_region and len(units) > 1:
        return None  # a robust loss is that of one channel, or of the noises of one column
    for many in _fitting(scenario, units, limit):
        inside = [term for unit in units[many:] for term in unit]
        try:
            joint = loss_bound(scenario, _releases(inside), limit)
        except GridTooLarge:  # small enough to be worked out, but not to be proved
            continue
        left = [term for unit in units[:many] for term in unit]
        named = _named([*left, *(term for term in terms if term.at is None)], rows)
        upper, added = joint.upper, _added(named)
        return replace(
            joint,
            upper=None if upper is None or added is None else upper + added,
            kind="joint loss + worst cases" if named else joint.kind,
            within=tuple(term.column for term in inside),
            terms=named,
        )
    return None


def _fitting(scenario: Scenario, units: list[list[_Term]], limit: int) -> Iterator[int]:
    """Yield how many units to leave out until the grid fits, from the fewest."""
    if units:
        yield 0
    few, many = 0, len(units)
    while many - few > 1:  # more releases hardly ever make a smaller grid
        middle = (few + many) // 2
        try:
            problems_of(scenario, _releases(t for unit in units[middle:] for t in unit), limit)
            many = middle
        except GridTooLarge:
            few = middle
    yield from range(max(1, many), len(units))


def _releases(terms: Iterable[_Term]) -> dict[int, list[Mechanism]]:
    """Return the releases of columns that the scenario knows."""
    found: dict[int, list[Mechanism]] = {}
    for term in terms:
        if term.at is not None:
            found.setdefault(term.at, []).append(term.mechanism)
    return found


def _named(terms: Iterable[_Term], rows: int = 1) -> tuple[tuple[str, Fraction | None], ...]:
    return tuple((t.column, None if t.worst is None else rows * t.worst) for t in terms)


def _added(named: Iterable[tuple[str, Fraction | None]]) -> Fraction | None:
    """Return the sum of worst cases; None: infinite."""
    values = [worst for _, worst in named]
    finite = [worst for worst in values if worst is not None]
    return sum(finite, Fraction(0)) if len(finite) == len(values) else None


def _rank(upper: Fraction | None) -> tuple[bool, Fraction]:
    return upper is None, upper or Fraction(0)


def _read(
    item: Any, number: int, unit: str | None
) -> tuple[str | None, Mechanism, Support | None, tuple[int, ...]]:
    """Return the column of an item, what was applied, on which support, and rows of a person."""
    column = None
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        column, item = item
    if isinstance(item, Channel | DiscreteLaplace):
        return column, item, item.inputs if isinstance(item, Channel) else None, ()
    if not hasattr(item, "applied"):
        raise InputError(
            f"release {number} must be a plan, or (column, mechanism), but a "
            f"{type(item).__name__} was given"
        )
    plan = cast(PlanLike, item)
    if plan.unit is not None and plan.unit != unit:
        about = "is about single rows" if unit is None else f"has the unit {unit!r}"
        raise InputError(
            f"the plan of release {number} is for the rows of one person together (unit "
            f"{plan.unit!r}), but the scenario {about}: count the table with unit={plan.unit!r}"
        )
    own = None if plan.coding is None else plan.coding.column
    if column is not None and own is not None and column != own:
        raise InputError(
            f"release {number} is given for the column {column!r}, but its plan is for {own!r}"
        )
    return column if own is None else own, plan.applied, plan.support, plan.rows_per_person


def _check_fits(made: Mechanism, support: Support | None, axis: Support, number: int) -> None:
    """Refuse a release that codes its column in another way than the scenario does."""
    numbers = isinstance(support, Lattice) and isinstance(axis, Lattice)
    if support is None or support.same_as(axis) or (numbers and isinstance(made, DiscreteLaplace)):
        return  # noise on numbers is the same whatever the support
    raise InputError(
        f"release {number} is for other values than the scenario has: the same levels in the same "
        "order, or the same numbers for a channel, are needed"
    )


def incomplete_rows(prior: Prior) -> int:
    """Return how many rows of a table lack a value in some column of a joint prior, but not in all.

    Those that lack all are counted too, where there are others.
    """
    report = prior.report
    if report is None or len(prior.product.columns) == 1:
        return 0
    lacking = sum(a.rows for a in report.set_aside if a.reason == "no public value")
    each = {
        0 if declared.missing_as_level else found.rows_missing
        for declared, found in zip(report.rules.columns, report.columns, strict=True)
    }
    return 0 if each == {lacking} else lacking


def _warn_of_incomplete_rows(scenario: Scenario) -> None:
    """Warn of rows without a value in one of several columns: the joint loss is not theirs."""
    lost = max(map(incomplete_rows, scenario.priors))
    if lost:
        warn_user(
            f"{counted(lost, 'row')} of the table without a value in one of the columns: the "
            "joint loss is that of the other rows, and says nothing of these; count missing values "
            "as a level (missing_as_level), or leave these rows out before anything is released",
            OutsidePromiseWarning,
        )
