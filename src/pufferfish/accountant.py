# SPDX-License-Identifier: Apache-2.0
"""The accountant: what several releases about one secret reveal together.

Losses of releases do not add up (theory, section 6). Releases are gathered by column; what the
scenario knows of these columns together gives their exact joint loss, and whatever it does not know
is bounded by the worst case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pufferfish.arrays import CountArray
from pufferfish.errors import (
    InputError,
    OutsidePromiseWarning,
    counted,
    did_you_mean,
    listed,
    warn_user,
)
from pufferfish.joint import LARGEST_GRID, Axis, Bound, Known, smallest_bound
from pufferfish.joint.unitrows import MOST_CELLS, UnitBound
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.regions import has_region
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Support
from pufferfish.unitloss import units_bound, units_of

#: One release: a plan, or the column and what was applied to it.
Item = Plan | tuple[str, Plan | Mechanism]


def joint_loss(
    scenario: Scenario | Prior, items: Iterable[Item], *, limit: int = LARGEST_GRID
) -> Bound:
    """Return the loss of several releases together, or the least bound of it that is found.

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column, or of several together (``Prior.from_table(..., public=["x", "z"])``).
    items : iterable of Plan or (str, Plan or mechanism)
        The releases, each independent of the others given the values. The column need not be
        named where the plan or the scenario knows it.
    limit : int
        Cells that the grid of all outputs may have; beyond it a bound is given. For the rows of one
        person never more than 4 million, times secrets.

    Returns
    -------
    Bound
        ``float()`` of it is the loss, rounded up; 0 without releases, and never negative; may be
        infinite. ``name`` says whether it is the joint loss itself or which bound, and ``how`` by
        what it was proved.

    Raises
    ------
    InputError
        If an item is no release, or does not fit its column.

    Notes
    -----
    Theory, section 6. Columns of which the scenario knows nothing count with their worst case.
    Where the rows of one person are known (``unit``), every release is one of all of them, and the
    loss is that of all rows of a person together.
    """
    return gathered(scenario, items).bound(limit)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Releases by column, and what is known of these columns together.

    Attributes
    ----------
    columns : tuple of (str or None)
        The columns of the scenario, then all others; None for the only column of a scenario that
        does not know its name.
    axes : tuple of Axis
        The columns with their releases.
    labels : tuple of tuples of str
        What each release is called.
    known : Known
        The joint masses of the scenario's columns.
    scenario : Scenario
    numbers : tuple of int
        How many rows a person may have by the plans, where they are for all rows of one.
    notes : tuple of str
        What the joint loss does not cover.
    """

    columns: tuple[str | None, ...]
    axes: tuple[Axis, ...]
    labels: tuple[tuple[str, ...], ...]
    known: Known
    scenario: Scenario
    numbers: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def by_units(self) -> bool:
        """Whether the rows of one person are taken together."""
        return bool(units_of(self.scenario))

    def bound(self, limit: int = LARGEST_GRID) -> Bound:
        """Return the least bound that is known of everything together.

        Where the rows of one person are taken together, whoever sees single rows, without knowing
        which belong together, is an adversary too.
        """
        single = smallest_bound(self.axes, [self.known], self.labels, limit)
        if not self.by_units or single.upper is None or not self.releases:
            return single
        most = min(limit, MOST_CELLS)
        every, rows, _ = units_bound(self.scenario, self.axes, self.labels, self.numbers, most)
        if every.upper is not None and every.upper < single.upper:
            return single
        return UnitBound.of(every, rows)

    def beside(self, further: Sequence[tuple[int, str, Mechanism]]) -> Gathered:
        """Return the same with further releases: the axis of each, and what it is called."""
        axes, labels = list(self.axes), list(self.labels)
        for at, label, mechanism in further:
            axes[at] = Axis(axes[at].support, (*axes[at].releases, mechanism))
            labels[at] = (*labels[at], label)
        return replace(self, axes=tuple(axes), labels=tuple(labels))

    @property
    def releases(self) -> int:
        """How many releases there are."""
        return sum(len(axis.releases) for axis in self.axes)

    @property
    def all_known(self) -> bool:
        """Whether the scenario knows all columns that something was released of."""
        return len(self.columns) == len(self.known.columns)

    @property
    def masses(self) -> Sequence[CountArray]:
        """The joint masses, one array per adversary."""
        return self.known.masses

    @property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """Rows of the masses."""
        return self.known.pairs

    def position(self, column: str | None) -> int:
        """Return the axis of a column of the scenario.

        Raises
        ------
        InputError
            If the scenario has several columns and none is named, or no such column.
        """
        own = self.columns[: len(self.known.columns)]
        if column is None:
            if len(own) > 1:
                raise InputError(f"name the column: the scenario is about {listed(map(str, own))}")
            return 0
        if column in own:
            return own.index(column)
        if own == (None,):
            return 0
        named = [str(name) for name in own]
        raise InputError(
            f"the scenario has no column {column!r}{did_you_mean(column, named)}; it is about "
            f"{listed(named)}"
        )


def gathered(scenario: Scenario | Prior, items: Iterable[Item]) -> Gathered:
    """Return the releases by column.

    Raises
    ------
    InputError
        If an item is no release, or does not fit its column.
    """
    if isinstance(scenario, Prior):
        scenario = Scenario(scenario)
    if not isinstance(scenario, Scenario):
        raise InputError(
            f"a Scenario or a Prior is needed, but a {type(scenario).__name__} was given"
        )
    if has_region(scenario):
        raise InputError(
            "the joint loss is that of exact priors, but a prior carries a region (confidence or "
            "tv_radius); leave the region out with prior.with_region()"
        )
    units = units_of(scenario)
    unit = units[0].column if units else None
    numbers: set[int] = set()
    notes = warned_of_incomplete(scenario)
    columns, supports = _columns_of(scenario)
    known = len(columns)
    releases: list[list[Mechanism]] = [[] for _ in columns]
    labels: list[list[str]] = [[] for _ in columns]
    for number, item in enumerate(_listed_items(items), 1):
        column, mechanism, support, rows = _parts(item, number, unit)
        numbers |= set(rows)
        if column is not None and known == 1 and columns[0] is None:
            columns[0] = column  # from now on another name is another column
        at = _place(columns, known, column, number)
        if at is None:
            if support is None:
                raise InputError(
                    f"release {number} is of the column {column!r}, of which the scenario knows "
                    "nothing: give a plan, which knows the values of its column"
                )
            # An axis of its own: what a plan released lies within that plan's own support.
            columns.append(column)
            supports.append(support)
            releases.append([])
            labels.append([])
            at = len(columns) - 1
        _check_fits(mechanism, support, supports[at], number)
        releases[at].append(mechanism)
        labels[at].append(f"{number} ({column})" if column else str(number))
    return Gathered(
        tuple(columns),
        tuple(Axis(s, tuple(r)) for s, r in zip(supports, releases, strict=True)),
        tuple(map(tuple, labels)),
        _known(scenario, known),
        scenario,
        tuple(sorted(numbers)),
        notes,
    )


def warned_of_incomplete(scenario: Scenario) -> tuple[str, ...]:
    """Return what is to be said of rows that only some of the releases are about, and warn of it.

    Warns
    -----
    OutsidePromiseWarning
        If there are any.
    """
    lost = [getattr(prior.report, "incomplete", 0) for prior in scenario.priors]
    if not any(lost) or scenario.product is None or len(scenario.product.columns) == 1:
        return ()
    note = (
        f"{counted(max(lost), 'row')} of the table without a value in one of the columns: the "
        "loss is that of the other rows, and says nothing of these, of which only some columns are "
        "released; count missing values as a level (missing_as_level), or leave "
        "these rows out of the table before anything is released"
    )
    warn_user(note, OutsidePromiseWarning)
    return (note,)


def _columns_of(scenario: Scenario) -> tuple[list[str | None], list[Support]]:
    product = scenario.product
    if product is not None:
        return list(product.columns), list(product.axes)
    names = {p.report.rules.public for p in scenario.priors if p.report is not None}
    return [names.pop() if len(names) == 1 else None], [scenario.support]


def _known(scenario: Scenario, columns: int) -> Known:
    secrets = scenario.protected
    row = {secret: k for k, secret in enumerate(secrets)}
    shape = (
        (scenario.priors[0].support.size,) if scenario.product is None else (scenario.product.shape)
    )
    masses = [
        prior.counts[[prior.row(secret) for secret in secrets]].reshape(len(secrets), *shape)
        for prior in scenario.priors
    ]
    pairs = [(row[first], row[second]) for first, second in scenario.pairs]
    return Known(tuple(range(columns)), masses, pairs)


def _listed_items(items: Iterable[Item]) -> list[Item]:
    if isinstance(items, Plan | str) or not isinstance(items, Iterable):
        raise InputError("a list of plans, or of (column, mechanism), is needed")
    return list(items)


def _parts(
    item: object, number: int, unit: str | None
) -> tuple[str | None, Mechanism, Support | None, tuple[int, ...]]:
    """Return a release's column, what was applied, on which support, and how many rows it knows."""
    column = None
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        column, item = item
    if isinstance(item, Plan):
        theirs = None if item.rules is None else item.rules.unit
        if theirs is not None and theirs != unit:
            raise InputError(
                f"the plan of release {number} is for the rows of one person together (unit "
                f"{theirs!r}), but the scenario "
                + ("is about single rows" if unit is None else f"has the unit {unit!r}")
                + f": count the table with unit={theirs!r}"
            )
        rows = () if item.units is None else item.units.rows
        own = None if item.rules is None else item.rules.public
        if column is not None and own is not None and column != own:
            raise InputError(
                f"release {number} is given for the column {column!r}, but its plan is for {own!r}"
            )
        return column if own is None else own, item.applied, item.support, rows
    if isinstance(item, Channel):
        return column, item, item.inputs, ()
    if isinstance(item, DiscreteLaplace):
        return column, item, None, ()
    raise InputError(
        f"release {number} must be a plan, or (column, mechanism), but a "
        f"{type(item).__name__} was given"
    )


def _place(
    columns: Sequence[str | None], known: int, column: str | None, number: int
) -> int | None:
    """Return which of the columns a release is of; None: one that is not there yet."""
    if column is None:
        if known > 1:
            raise InputError(
                f"name the column of release {number}: (column, plan); the scenario is about "
                f"{listed(str(name) for name in columns[:known])}"
            )
        return 0
    return columns[:known].index(column) if column in columns[:known] else None


def _check_fits(mechanism: Mechanism, support: Support | None, axis: Support, number: int) -> None:
    """Check that a release codes its column as the scenario does."""
    if support is None or support.same_as(axis):
        return
    if isinstance(mechanism, DiscreteLaplace) and (
        isinstance(support, Lattice) and isinstance(axis, Lattice)
    ):
        return  # noise on numbers is the same whatever the support
    raise InputError(
        f"release {number} is for other values than the scenario has: the same levels in the same "
        "order, or the same numbers for a channel, are needed"
    )
