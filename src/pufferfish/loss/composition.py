# SPDX-License-Identifier: Apache-2.0
"""Composition: the loss of several releases together, exact where it is known, bounded elsewhere.

Losses of releases do not add up (theory, section 6). For releases R whose joint loss is known and
others with worst cases w_l, which hold whatever else is known of a value,

    sum_x P_i(x) k_R(y|x) prod_l k_l(y_l|x)  <=  e^(sum w_l) e^loss(R)  times the same for P_j.

With k rows of one person every release is k of them, and its worst case counts k times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from pufferfish.errors import InputError, OutsidePromiseWarning, counted, listed, warn_user
from pufferfish.loss.bounds import Term, terms_of, worst_sum
from pufferfish.loss.certificate import LossBound, added, rank
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.loss.problem import Releases
from pufferfish.loss.proof import loss_bound
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario
from pufferfish.support import Lattice, Support
from pufferfish.tables.rules import Coding

#: One release: a plan, or the column and the plan or mechanism that was applied to it.
Item = Any


@dataclass(frozen=True, eq=False)
class Composition:
    """Releases by column: of columns that the scenario knows, and others.

    ``releases`` by the position of the column on the scenario's product; ``rows``: numbers of rows
    that one person may have by the plans, besides those that the scenario knows; of such people
    nothing is known but worst cases over the whole support.
    """

    scenario: Scenario
    releases: Releases
    others: Sequence[Term] = ()
    rows: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.others) + sum(map(len, self.releases.values()))

    def with_release(self, at: int, mechanism: Mechanism) -> "Composition":
        """Return the same with one further release of the column at a position."""
        own = (*self.releases.get(at, ()), mechanism)
        return replace(self, releases={**self.releases, at: own})

    def bound(self) -> LossBound:
        """Return the least bound that is found of the loss of everything together.

        It is the joint loss of all, or of those that are left when the smallest worst cases are
        left out until the grid fits, with the worst cases of the others; or the sum of
        all worst cases where that is less.
        """
        scenario, terms = self.scenario, [*self.others, *terms_of(self.scenario, self.releases)]
        if not terms:
            return LossBound(Fraction(0), Fraction(0))
        known = max(scenario.row_numbers, default=1)
        bounds = [worst_sum(terms, known)]
        mixed = _mixture(scenario, terms, known)
        if mixed is not None and rank(mixed.upper) <= rank(bounds[0].upper):
            bounds = [mixed]
        unknown = unknown_rows(scenario, self.rows)
        if unknown:
            bounds.append(worst_sum(terms, unknown))
        return max(bounds, key=lambda bound: rank(bound.upper))


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
    scenario = as_scenario(scenario)
    if isinstance(items, str) or hasattr(items, "applied") or not isinstance(items, Iterable):
        raise InputError("a list of plans, or of (column, mechanism), is needed")
    lost = max(map(incomplete_rows, scenario.priors))
    if lost:
        warn_user(
            f"{counted(lost, 'row')} of the table without a value in one of the columns: the "
            "joint loss is that of the other rows, and says nothing of these; count missing values "
            "as a level (missing_as_level), or leave these rows out before anything is released",
            OutsidePromiseWarning,
        )
    columns = list(scenario.product.columns)
    releases: dict[int, tuple[Mechanism, ...]] = {}
    others, rows = [], set[int]()
    for number, item in enumerate(items, 1):
        column, mechanism, support, coding, own = _read(item, number, scenario.unit)
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
            others.append(Term(column, mechanism, support))
            continue
        at = 0 if column is None else columns.index(column)
        axis = scenario.product.axes[at]
        # Noise is the same whatever the support, where cells are read in the same way.
        noise = isinstance(support, Lattice) and isinstance(mechanism, DiscreteLaplace)
        fits = support in (None, axis) or (noise and isinstance(axis, Lattice))
        if not fits or not scenario.reads_alike(at, coding):
            raise InputError(
                f"release {number} is for other values than the scenario has: the same levels in "
                "the same order, or the same numbers for a channel, read from cells in the same "
                "way (missing texts, step), are needed"
            )
        releases[at] = (*releases.get(at, ()), mechanism)
    return Composition(scenario, releases, tuple(others), tuple(sorted(rows)))


def unknown_rows(scenario: Scenario, rows: Iterable[int]) -> int:
    """Return the largest of some numbers of rows of one person that a scenario lacks, or 0."""
    return max(set(rows).difference(scenario.row_numbers or [1]), default=0)


def _mixture(scenario: Scenario, terms: Sequence[Term], rows: int) -> LossBound | None:
    """Return the joint loss with the fewest worst cases; None where no grid fits."""
    # What is left out together, smallest worst cases first: leaving out only some of the noises of
    # a column makes no grid smaller.
    merged: dict[object, list[Term]] = {}
    for number, term in enumerate(term for term in terms if term.at is not None):
        noise = isinstance(term.mechanism, DiscreteLaplace)
        merged.setdefault(("noise", term.at) if noise else number, []).append(term)
    units = sorted(merged.values(), key=lambda unit: rank(worst_sum(unit, 1).upper))
    if scenario.has_region and len(units) > 1:
        return None  # a robust loss is that of one channel, or of the noises of one column
    outside = [term for term in terms if term.at is None]
    for many in range(len(units)):
        releases: dict[int, list[Mechanism]] = {}
        for term in chain(*units[many:]):
            releases.setdefault(int(term.at or 0), []).append(term.mechanism)
        try:
            joint = loss_bound(scenario, releases)
        except GridTooLarge:
            continue
        left = worst_sum([*chain(*units[:many]), *outside], rows)
        return replace(
            joint, upper=added([joint.upper, left.upper]),
            kind="joint loss + worst cases" if left.terms else joint.kind,
            within=tuple(term.column for term in chain(*units[many:])), terms=left.terms,
        )  # fmt: skip
    return None


def _read(
    item: Any, number: int, unit: str | None
) -> tuple[str | None, Mechanism, Support | None, Coding | None, tuple[int, ...]]:
    """Return the column of an item, what was applied, to which values, and rows of a person."""
    column = None
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        column, item = item
    if isinstance(item, Channel | DiscreteLaplace):
        return column, item, item.inputs if isinstance(item, Channel) else None, None, ()
    if not hasattr(item, "applied"):
        raise InputError(
            f"release {number} must be a plan, or (column, mechanism), but a "
            f"{type(item).__name__} was given"
        )
    if getattr(item, "noisy", None) is not None:
        raise InputError(
            f"the plan of release {number} is from noisy counts, which no joint loss includes"
        )
    if item.unit is not None and item.unit != unit:
        about = "is about single rows" if unit is None else f"has the unit {unit!r}"
        raise InputError(
            f"the plan of release {number} is for the rows of one person together (unit "
            f"{item.unit!r}), but the scenario {about}: count the table with unit={item.unit!r}"
        )
    own = None if item.coding is None else item.coding.column
    if column is not None and own is not None and column != own:
        raise InputError(
            f"release {number} is given for the column {column!r}, but its plan is for {own!r}"
        )
    column = column if own is None else own
    return column, item.applied, item.support, item.coding, item.rows_per_person


def incomplete_rows(prior: Prior) -> int:
    """Return how many rows of a table lack a value in some column of a joint prior, but not in all.

    Those that lack all are counted too, where there are others.
    """
    report = prior.report
    if report is None or len(prior.product.columns) == 1:
        return 0
    lacking = sum(a.rows for a in report.set_aside if a.reason == "no public value")
    every = zip(report.rules.columns, report.rows_missing, strict=True)
    each = {0 if column.missing_as_level else rows for column, rows in every}
    return 0 if each == {lacking} else lacking
