# SPDX-License-Identifier: Apache-2.0
"""Pricing: the bound of what all releases of one table tell together about one secret.

It holds for everybody who knows the joint counts of the table, and is the largest of

1. the joint loss of the rows that have a value in every released column;
2. the worst cases of rows that lack some of them: the sum over the other columns;
3. for people with several rows, all worst cases as often as they have rows.

The sum of all worst cases, which holds for every prior, is charged where a plan was made for other
counts than those of this table, and where a plan for a region of priors is not the only release.
A single release of such a plan costs what its own proof says, and so does a single one of all rows
of a person. Only whole sets are bounded: nothing is added to the bound of an earlier set.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from pufferfish.errors import (
    CheckFailed,
    InputError,
    PufferfishError,
    listed,
    quoted,
)
from pufferfish.ledger.records import Dataset, Records, ReleaseRecord, View, open_store
from pufferfish.loss.certificate import LossBound
from pufferfish.loss.composition import Other, compose, incomplete_rows, worst_sum
from pufferfish.loss.worst_case import rank
from pufferfish.plans.plan import Plan
from pufferfish.plans.verify import scenario_of_table
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Pair, Scenario
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.rows import Reader
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import MOST_CELLS
from pufferfish.tables.count import count_table
from pufferfish.tables.identity import TableIdentity, identity_of
from pufferfish.tables.rules import Coding, Rules
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table


@dataclass(frozen=True, eq=False)
class Out:
    """One release: a plan with what was applied, and whether it is for this table's own counts."""

    plan: Plan
    own: bool

    @property
    def coding(self) -> Coding:
        """How the released column is read."""
        if self.plan.coding is None:
            raise InputError("a plan in a ledger must name its column")
        return self.plan.coding


class Counted:
    """The counts of a table about one secret, made when they are needed, and kept."""

    def __init__(self, table: Table, secret: str) -> None:
        self.table, self.secret = table, secret
        self._scenarios: dict[tuple[object, ...], Scenario | None] = {}
        self._priors: dict[tuple[object, ...], Prior] = {}

    def own(self, plan: Plan) -> Scenario | None:
        """Return the scenario that a plan was calibrated for, if that is of this very table."""
        reading = (plan.coding, plan.unit, plan.secret, plan.exclude_secrets, plan.secret_missing)
        key = (plan.digest, plan.pairs, plan.regions, *reading)
        if key not in self._scenarios:
            try:
                scenario = scenario_of_table(plan, self.table)
                self._scenarios[key] = scenario if scenario.digest == plan.digest else None
            except (InputError, CheckFailed):  # a value is moved (clamped), a secret has no rows
                self._scenarios[key] = None
        return self._scenarios[key]

    def of(self, outs: Sequence[Out], codings: Sequence[Coding], unit: str | None) -> Prior:
        """Count columns together, without secrets that a plan leaves out and none protects."""
        left = {secret for out in outs for secret in out.plan.exclude_secrets}
        excluded = tuple(sorted(left - {s for pair in pairs_of(outs) for s in pair}))
        missing = tuple(sorted(set.intersection(*(set(o.plan.secret_missing) for o in outs))))
        key = (tuple(coding.column for coding in codings), unit, excluded, missing)
        if key not in self._priors:
            declared = tuple(coding.declared() for coding in codings)
            rules = Rules(self.secret, declared, excluded, codings[0].decimal, unit, missing)
            counts = count_table(self.table, rules, warn=False)
            self._priors[key] = Prior.from_counted(counts, rules)
        return self._priors[key]


def pairs_of(outs: Sequence[Out]) -> tuple[Pair, ...]:
    """Return the pairs of all plans."""
    return tuple(dict.fromkeys(pair for out in outs for pair in out.plan.pairs))


def worst_of(outs: Iterable[Out], rows: int = 1) -> LossBound:
    """Return the sum of all worst cases, for so many rows of one person."""
    return worst_sum(map(_other, outs), rows)


def bound_of(counted: Counted, outs: Sequence[Out]) -> tuple[LossBound, int, int]:
    """Return the bound of the loss of all releases of a table, which read each column alike.

    Also how many rows lack a value in some of the columns, but not in all, if that was asked; and
    how many rows one person may have, 1 where no plan says whose they are.
    """
    rows = _rows_of_a_person(counted, outs)
    worst, incomplete = worst_of(outs, rows), 0
    bound = worst
    if len(outs) == 1 and outs[0].own:
        scenario = counted.own(outs[0].plan)
        if scenario is not None:
            bound = compose(scenario, {0: [outs[0].plan.applied]})
    elif (
        rows == 1
        and all(out.own and not out.plan.regions for out in outs)
        and len({out.coding.decimal for out in outs}) == 1
    ):
        bound, incomplete = _joint(counted, outs, worst)
    return min(bound, worst, key=_rank), incomplete, rows


@dataclass(frozen=True)
class Price:
    """What a release costs, together with everything that is out of the same table.

    ``before`` is the bound of the ``releases`` that are charged already (None: infinite), ``bound``
    that of all of them and this one. ``own``: whether the plan is for what the counts of this very
    table say, or else worst cases are charged. ``incomplete``: rows without a value in some of the
    released columns, charged worst cases. ``rows``: how many one person may have.
    """

    dataset: Dataset
    column: str
    releases: int
    before: Fraction | None
    bound: LossBound
    own: bool
    incomplete: int
    rows: int

    @property
    def loss(self) -> float:
        """The joint loss of everything with this release, rounded up; may be infinite."""
        return self.bound.value

    @property
    def fits(self) -> bool:
        """Whether that is within the budget, compared exactly."""
        return self.bound.at_most(self.dataset.budget)

    @property
    def left(self) -> Fraction:
        """How far the joint loss may still rise after this release; losses do not add."""
        upper = self.bound.upper
        return Fraction(0) if upper is None else max(Fraction(0), self.dataset.budget - upper)


@dataclass(frozen=True, eq=False)
class State:
    """A dataset, and what is charged to it; ``before``: the bound of that."""

    dataset: Dataset
    before: Fraction | None
    outs: tuple[Out, ...]


@dataclass(frozen=True, eq=False)
class Subject:
    """A table as it is now and a plan to release it by, with what is in force."""

    table: Table
    identity: TableIdentity
    file: tuple[int, ...] | None
    plan: Plan
    coding: Coding
    counted: Counted
    spec: ReleaseSpec

    @classmethod
    def of(cls, source: Any, plan: Plan, options: dict[str, Any]) -> "Subject":
        """Take the identity of a table, and refuse what can be refused of the plan."""
        if not isinstance(plan, Plan):
            raise InputError(f"a Plan is needed, but a {type(plan).__name__} was given")
        if plan.coding is None or plan.secret is None:
            raise InputError(
                "a ledger needs a plan that names its columns, the secret's too; give them with "
                "plan.with_columns(public, secret=...)"
            )
        spec, table = plan.spec(**options), open_table(source)
        in_force = replace(plan, applied=Postprocess(spec).mechanism)
        counted = Counted(table, table.column(plan.secret))
        file, identity = _file_state(table), identity_of(table)
        return cls(table, identity, file, in_force, plan.coding, counted, spec)

    def rehearse(self) -> None:
        """Refuse what a release would refuse; nothing is drawn."""
        for _ in Reader(self.spec, self.table).read():
            pass

    def state(self, view: View) -> State:
        """Return the dataset of this table, and what is charged to it."""
        dataset = dataset_of(view, self.table, self.counted.secret, self.identity.digest)
        records = view.releases(dataset.name)
        outs = tuple(Out(plan_of(record), record.own) for record in records)
        for out in outs:
            if out.coding.column == self.coding.column and not alike(out.coding, self.coding):
                raise InputError(
                    f"the plan reads the column {self.coding.column!r} otherwise than the releases "
                    f"charged to the dataset {dataset.name!r} (other values, levels, missing "
                    "texts or rounding); all releases of a column must read it alike"
                )
        return State(dataset, records[-1].bound if records else Fraction(0), outs)

    def price(self, state: State) -> Price:
        """Return the price beside what is charged."""
        own = self.counted.own(self.plan) is not None
        bound, incomplete, rows = bound_of(self.counted, [*state.outs, Out(self.plan, own)])
        column, releases = self.coding.column, len(state.outs)
        return Price(state.dataset, column, releases, state.before, bound, own, incomplete, rows)

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since its identity was taken."""
        if _file_state(self.table) != self.file:
            raise InputError(f"{self.table.name} changed while it was read; nothing was charged")


def _file_state(table: Table) -> tuple[int, ...] | None:
    """Return what tells that a file was written to; None for what is no file."""
    if table.path is None:
        return None
    try:
        found = os.stat(table.path)
    except OSError as error:
        raise InputError(f"cannot read {table.name}: {error.strerror or error}") from None
    return found.st_ino, found.st_size, found.st_mtime_ns


def dataset_of(view: View, table: Table, secret: str, digest: str) -> Dataset:
    """Return the dataset of a table and a secret, or say why there is none."""
    about = [dataset for dataset in view.datasets() if dataset.secret == secret]
    for dataset in about:
        if dataset.digest == digest:
            return dataset
    if about:
        names = listed(quoted(dataset.name) for dataset in about)
        raise InputError(
            f"{table.name} is not the table of the dataset {names} about {secret!r}: a cell was "
            "edited, a row or column added, or it is about other people; release from the table "
            "that was opened, or open a dataset of its own for other people (--other-people)"
        )
    raise InputError(
        f"the ledger has no dataset about the secret {secret!r}; open one with: pufferfish ledger "
        f"open BOOKS --dataset NAME {table.name} --secret {secret!r} --budget E"
    )


def alike(one: Coding, other: Coding) -> bool:
    """Whether two codings read every cell of a column in the same way."""
    return one.support.same_as(other.support) and replace(one, support=other.support) == other


def _joint(counted: Counted, outs: Sequence[Out], worst: LossBound) -> tuple[LossBound, int]:
    """Return the bound for all rows, each one person's, and how many lack some values."""
    pairs = pairs_of(outs)
    columns: dict[str, list[Out]] = {}
    for out in outs:
        columns.setdefault(out.coding.column, []).append(out)
    # The columns that are counted together: the smallest worst cases are left out first.
    names = sorted(columns, key=lambda name: _rank(worst_of(columns[name])), reverse=True)
    cells = len({secret for pair in pairs for secret in pair})
    for number, name in enumerate(names):
        cells *= columns[name][0].coding.support.size
        if number and cells > MOST_CELLS:
            names = names[:number]
            break
    try:
        prior = counted.of(outs, [columns[name][0].coding for name in names], None)
        scenario = Scenario(prior, pairs)
    except InputError:  # nobody with such a secret has a value in every column
        return worst, 0
    releases = {at: [out.plan.applied for out in columns[n]] for at, n in enumerate(names)}
    others = [_other(out) for out in outs if out.coding.column not in names]
    bounds, incomplete = [compose(scenario, releases, others)], incomplete_rows(prior)
    if incomplete:  # such a row lacks at least the value of one of these columns
        bounds += [worst_of(out for out in outs if out.coding.column != name) for name in names]
    return max(bounds, key=_rank), incomplete


def _rows_of_a_person(counted: Counted, outs: Sequence[Out]) -> int:
    """Return how many rows of one column one person has at most, by the table or by a plan."""
    units = sorted({out.plan.unit for out in outs if out.plan.unit is not None})
    if not units:
        return 1
    if len(units) > 1:
        raise InputError(
            f"the plans name the units {listed(map(quoted, units))}, but whose rows they are must "
            "be known in one way"
        )
    told = [rows for out in outs for rows in out.plan.rows_per_person]
    for name in {out.coding.column for out in outs}:
        own = [out for out in outs if out.coding.column == name]
        told += [s.rows for s in counted.of(own, [own[0].coding], units[0]).strata]
    return max([1, *told])


def _other(out: Out) -> Other:
    return Other(out.coding.column, out.plan.applied, out.plan.support)


def _rank(bound: LossBound) -> tuple[bool, Fraction]:
    return rank(bound.upper)


def plan_of(record: ReleaseRecord) -> Plan:
    """Return the plan of a charged release."""
    try:
        return Plan.from_json(record.plan)
    except PufferfishError as error:
        raise InputError(f"the plan of the release {record.id} is damaged: {error}") from None


#: Relative difference of two proofs of one loss that says nothing.
_ALIKE = Fraction(1, 10**9)

#: Called with the releases checked so far, and how many there are.
Progress = Callable[[int, int], None]

Fault = Literal["unreadable", "over the budget", "too little", "too much", "not its own"]


@dataclass(frozen=True)
class Difference:
    """Something that is not as it should be; bounds that are None are infinite, or not computed.

    ``unreadable``: the plan, for a ``reason``; ``over the budget``: the bound recorded; ``too
    little``, ``too much``: what was charged; ``not its own``: the plan is for other counts than
    those of the table, which was not recorded.
    """

    dataset: str
    release: str
    fault: Fault
    recorded: Fraction | None = None
    computed: Fraction | None = None
    reason: str = ""


@dataclass(frozen=True)
class Verified:
    """How many releases were looked at, and recounted from the table; and what is wrong."""

    releases: int
    recounted: int
    differences: tuple[Difference, ...]


def verify_books(store: Records, table: Any = None, progress: Progress | None = None) -> Verified:
    """Look at everything that a ledger holds; see :meth:`pufferfish.Ledger.verify`."""
    open_store(store.path, store.patience, store.waiting)
    with store.reading() as view:
        datasets, every = {d.name: d for d in view.datasets()}, view.releases()
    opened = None if table is None else open_table(table)
    digest = None if opened is None else identity_of(opened).digest
    if opened is not None and digest not in {dataset.digest for dataset in datasets.values()}:
        raise InputError(f"{opened.name} is none of the datasets of {store.path}")
    found: list[Difference] = []
    outs: dict[str, list[Out]] = {name: [] for name in datasets}
    counted = {
        name: Counted(opened, dataset.secret)
        for name, dataset in datasets.items()
        if opened is not None and dataset.digest == digest
    }
    for done, record in enumerate(every, 1):
        dataset, own = datasets[record.dataset], outs[record.dataset]
        try:
            own.append(Out(plan_of(record), record.own))
            if own[-1].coding.column != record.column:
                raise InputError(f"its plan is for the column {own[-1].coding.column!r}")
            found += _compared(dataset, record, own, counted.get(dataset.name))
        except PufferfishError as error:
            found.append(
                Difference(dataset.name, record.id, "unreadable", record.bound, None, str(error))
            )
        if progress is not None:
            progress(done, len(every))
    recounted = sum(record.dataset in counted for record in every)
    return Verified(len(every), recounted, tuple(found))


def _compared(
    dataset: Dataset, record: ReleaseRecord, outs: list[Out], counted: Counted | None
) -> list[Difference]:
    """Return what is wrong with the last of some releases."""
    faults: list[tuple[Fault, Fraction | None]] = []
    if record.bound is None or record.bound > dataset.budget:
        faults.append(("over the budget", dataset.budget))
    if counted is not None:
        if record.own and counted.own(outs[-1].plan) is None:
            faults.append(("not its own", None))
            outs[-1] = Out(outs[-1].plan, False)
        again = bound_of(counted, outs)[0].upper
        least = most = again
    else:
        least = most = worst_of(outs).upper
        if any(out.plan.unit is not None for out in outs):
            most = None  # as often as a person has rows
        if all(out.own for out in outs):
            least = Fraction(0)  # any joint loss
    if _below(record.bound, least):
        faults.append(("too little", least))
    elif _below(most, record.bound):
        faults.append(("too much", most))
    return [Difference(dataset.name, record.id, fault, record.bound, c) for fault, c in faults]


def _below(one: Fraction | None, other: Fraction | None) -> bool:
    """Whether a bound is below another by more than two proofs of one loss may differ."""
    return one is not None and (other is None or one < other * (1 - _ALIKE))
