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
Beside all that noisy counts are paid for; a plan from them is one for a region of priors.
"""

import math
import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from pufferfish.errors import CheckFailed, InputError, PufferfishError, counted, listed, quoted
from pufferfish.files import parse_strict
from pufferfish.ledger import records
from pufferfish.ledger.counts import COUNTS, is_draw, may_be_of, with_counts
from pufferfish.ledger.records import Dataset, ReleaseRecord
from pufferfish.loss.bounds import Term, worst_sum
from pufferfish.loss.certificate import LossBound, rank
from pufferfish.loss.composition import Composition, incomplete_rows
from pufferfish.loss.proof import prove
from pufferfish.plans.plan import Plan
from pufferfish.plans.verify import scenario_of_counts, with_regions
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Pair, Scenario
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.rows import Reader
from pufferfish.support import MOST_CELLS
from pufferfish.tables.count import count_table
from pufferfish.tables.identity import identity_of
from pufferfish.tables.rules import Coding, Rules
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table


def is_answer(record: ReleaseRecord) -> bool:
    """Whether a release is the answer to a query, and no column."""
    try:
        return isinstance(parse_strict(record.plan)["query"], dict)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


@dataclass(frozen=True, eq=False)
class Release:
    """A plan with what was applied, how its column is read, and whether it is for its own counts.

    ``own``: the plan was calibrated for what the table that is released says.
    """

    plan: Plan
    coding: Coding
    own: bool

    @classmethod
    def of(cls, record: ReleaseRecord) -> "Release":
        """Return a charged release."""
        if is_answer(record):
            raise InputError(
                f"the dataset {record.dataset!r} has answers to queries about dependent records, "
                "with which the release of a column has no joint loss that is known"
            )
        try:
            plan = Plan.from_json(record.plan)
        except PufferfishError as error:
            raise InputError(f"the plan of the release {record.id} is damaged: {error}") from None
        if plan.coding is None or plan.coding.column != record.column:
            raise InputError(f"the plan of the release {record.id} is not for {record.column!r}")
        return cls(plan, plan.coding, record.own)

    @property
    def worst(self) -> Term:
        """The release as one that counts with its worst case."""
        return Term(self.coding.column, self.plan.applied, self.plan.support)


class Counted:
    """The counts of a table about one secret, made when they are needed, and kept."""

    def __init__(self, table: Table, secret: str) -> None:
        self.table, self.secret = table, secret
        self._prior = cache(lambda rules: Prior.from_counted(count_table(table, rules)))

    def own(self, plan: Plan) -> Scenario | None:
        """Return the scenario that a plan was calibrated for, if that is of this very table."""
        if plan.rules is None:
            return None
        try:
            if plan.noisy:  # counts of held-out rows are of no row of this table: they are believed
                own = plan.noisy.held_out or may_be_of(plan.noisy, self.table, plan.rules)
                return scenario_of_counts(plan) if own else None
            scenario = with_regions(plan, Scenario(self._prior(plan.rules), plan.pairs))
        except (InputError, CheckFailed):  # a value is moved (clamped), a secret has no rows
            return None
        return scenario if scenario.digest == plan.digest else None

    def of(
        self, releases: Sequence[Release], codings: Sequence[Coding], unit: str | None = None
    ) -> Prior:
        """Count columns together, without secrets that a plan leaves out and none protects."""
        plans = [release.plan for release in releases]
        left = {secret for plan in plans for secret in plan.exclude_secrets}
        excluded = left - {secret for pair in pairs_of(releases) for secret in pair}
        missing = set.intersection(*(set(plan.secret_missing) for plan in plans))
        rules = Rules(
            self.secret, tuple(coding.declared() for coding in codings), tuple(sorted(excluded)),
            codings[0].decimal, unit, tuple(sorted(missing)),
        )  # fmt: skip
        return self._prior(rules)


def pairs_of(releases: Iterable[Release]) -> tuple[Pair, ...]:
    """Return the pairs of all plans."""
    return tuple(dict.fromkeys(pair for release in releases for pair in release.plan.pairs))


def worst_of(releases: Iterable[Release], rows: int = 1) -> LossBound:
    """Return the sum of all worst cases, for so many rows of one person."""
    return worst_sum((release.worst for release in releases), rows)


def bound_of(counted: Counted, releases: Sequence[Release]) -> tuple[LossBound, int, int]:
    """Return the bound of the loss of all releases of a table, which read each column alike.

    Also how many rows lack a value in some of the columns, but not in all, if that was asked; and
    how many rows one person may have, 1 where no plan says whose they are.
    """
    rows, plans = _rows_of_a_person(counted, releases), [own.plan for own in releases]
    releases = [own for own in releases if not is_draw(own.plan)]
    bound, incomplete = worst_of(releases, rows), 0
    single = counted.own(releases[0].plan) if len(releases) == 1 and releases[0].own else None
    if single is not None:
        bound = _alone(single, releases[0])
    elif rows == len({own.coding.decimal for own in releases}) == 1 and all(
        release.own and not release.plan.regions for release in releases
    ):
        bound, incomplete = _joint(counted, releases)
    return with_counts(bound, plans, rows), incomplete, rows


def _alone(scenario: Scenario, release: Release) -> LossBound:
    """Return what a single release costs by the proof of its plan."""
    plan, within = release.plan, (release.coding.column,)
    if plan.regions and plan.channel is None:
        epsilon = plan.noisy.left(plan.epsilon_exact) if plan.noisy else plan.epsilon_exact
        proof = prove(scenario, {0: [plan.applied]}, epsilon)
        if proof.method == "walk" and proof.holds:
            bound = LossBound(epsilon, Fraction(0), method="walk", within=within)
            return min(bound, worst_of([release]), key=lambda own: rank(own.upper))
    return Composition(scenario, {0: [plan.applied]}).bound()


def _joint(counted: Counted, releases: Sequence[Release]) -> tuple[LossBound, int]:
    """Return the bound for all rows, each one person's, and how many lack some values."""
    pairs = pairs_of(releases)
    columns: dict[str, list[Release]] = {}
    for release in releases:
        columns.setdefault(release.coding.column, []).append(release)
    # The columns that are counted together: the smallest worst cases are left out first.
    names = sorted(columns, key=lambda name: rank(worst_of(columns[name]).upper), reverse=True)
    secrets = len({secret for pair in pairs for secret in pair})
    sizes = [secrets, *(columns[name][0].coding.support.size for name in names)]
    while len(names) > 1 and math.prod(sizes[: len(names) + 1]) > MOST_CELLS:
        names.pop()
    try:
        prior = counted.of(releases, [columns[name][0].coding for name in names])
        scenario = Scenario(prior, pairs)
    except InputError:  # nobody with such a secret has a value in every column
        return worst_of(releases), 0
    known = {at: [own.plan.applied for own in columns[name]] for at, name in enumerate(names)}
    others = [release.worst for release in releases if release.coding.column not in names]
    bounds = [Composition(scenario, known, others).bound()]
    incomplete = incomplete_rows(prior)
    if incomplete:  # such a row lacks at least the value of one of these columns
        bounds += [worst_of(r for r in releases if r.coding.column != name) for name in names]
    return max(bounds, key=lambda own: rank(own.upper)), incomplete


def _rows_of_a_person(counted: Counted, releases: Sequence[Release]) -> int:
    """Return how many rows of one column one person has at most, by the table or by a plan."""
    units = sorted({own.plan.unit for own in releases if own.plan.unit is not None})
    if not units:
        return 1
    if len(units) > 1:
        raise InputError(f"the plans name the units {listed(units)}, but people have one")
    rows = [1]
    for release in releases:
        rows += release.plan.rows_per_person
        rows += [s.rows for s in counted.of([release], [release.coding], units[0]).strata]
    return max(rows)


@dataclass(frozen=True)
class Price:
    """What a release costs, together with everything that is out of the same table.

    ``before`` is the bound of the ``releases`` that are charged already, ``bound`` that of all of
    them and this one. ``own``: whether the plan is for what the counts of this very table say, or
    else worst cases are charged. ``incomplete``: rows without a value in some of the released
    columns, charged worst cases. ``rows``: how many one person may have. ``plans`` from its counts.
    """

    dataset: Dataset
    column: str
    releases: int
    before: Fraction
    bound: LossBound
    own: bool
    incomplete: int
    rows: int
    plans: int

    @property
    def loss(self) -> float:
        """The joint loss of everything with this release, rounded up; may be infinite."""
        return self.bound.value

    @property
    def kind(self) -> str:
        """The kind of the bound, and the number of the plan among those from its noisy counts."""
        return f"{self.bound.kind}{f'; plan {self.plans} from {COUNTS}' if self.plans else ''}"

    @property
    def fits(self) -> bool:
        """Whether that is within the budget, compared exactly."""
        return self.bound.at_most(self.dataset.budget)

    @property
    def left(self) -> Fraction:
        """How far the joint loss may still rise after this release; losses do not add."""
        upper = self.bound.upper
        return Fraction(0) if upper is None else max(Fraction(0), self.dataset.budget - upper)

    @property
    def why(self) -> str:
        """Why worst cases are charged; empty where none are."""
        reasons = {
            "the plan is for other counts than those of this table": not self.own,
            f"{counted(self.incomplete, 'row')} without a value in some of the released columns "
            "(--missing-as-level gives them one)": self.incomplete,
            f"one person may have {self.rows} rows": self.rows > 1,
            "one of them is infinite": self.bound.upper is None,
        }
        return "; ".join(reason for reason, holds in reasons.items() if holds)


class State(NamedTuple):
    """A dataset, and what is charged to it; ``before``: the bound of that."""

    dataset: Dataset
    before: Fraction
    releases: tuple[Any, ...]  # of columns Release, of answers QueryPlan


class Subject:
    """A table as it is now and a plan to release it by, with what is in force.

    What can be refused of the plan is refused at once.
    """

    def __init__(self, source: Any, plan: Plan, options: dict[str, Any]) -> None:
        if not isinstance(plan, Plan):
            raise InputError(f"a Plan is needed, but a {type(plan).__name__} was given")
        if plan.coding is None or plan.secret is None:
            raise InputError(
                "a ledger needs a plan that names its columns, the secret's too; give them with "
                "plan.with_columns(public, secret=...)"
            )
        self.spec, self.table, self.coding = plan.spec(**options), open_table(source), plan.coding
        self.plan = replace(plan, applied=Postprocess(self.spec).mechanism)
        self.counted = Counted(self.table, self.table.column(plan.secret))
        self.stamp, self.digest = stamp_of(self.table), identity_of(self.table).digest

    def rehearse(self) -> None:
        """Refuse what a release would refuse; nothing is drawn."""
        for _ in Reader(self.spec, self.table).read():
            pass

    def state(self, connection: sqlite3.Connection) -> State:
        """Return the dataset of this table, and what is charged to it."""
        dataset = dataset_of(connection, self.table, self.counted.secret, self.digest)
        charged = records.releases(connection, dataset.name)
        releases = tuple(map(Release.of, charged))
        for release in (own for own in releases if not is_draw(own.plan)):
            if release.coding.column == self.coding.column and release.coding != self.coding:
                raise InputError(
                    f"the plan reads the column {self.coding.column!r} otherwise than the releases "
                    f"charged to the dataset {dataset.name!r}: values, missing texts or rounding"
                )
        return State(dataset, charged[-1].bound if charged else Fraction(0), releases)

    def price(self, state: State, plan: Plan | None = None) -> Price:
        """Return the price beside what is charged, of the plan or of another for its column."""
        plan = plan or self.plan
        own = self.counted.own(plan) is not None
        every = [*state.releases, Release(plan, self.coding, own)]
        from_counts = [r for r in every if r.plan.noisy and not is_draw(r.plan)]
        plans = sum(own.plan.noisy == plan.noisy for own in from_counts)
        charged, found = (len(state.releases), state.before), bound_of(self.counted, every)
        return Price(state.dataset, self.coding.column, *charged, found[0], own, *found[1:], plans)

    @property
    def text(self) -> str:
        """The plan as it is charged."""
        return self.plan.to_json()


def stamp_of(table: Table) -> tuple[int, ...]:
    """Return what tells that a file was written to; nothing of what is no file."""
    found = map(os.stat, table.paths)
    return tuple(n for each in found for n in (each.st_ino, each.st_size, each.st_mtime_ns))


def dataset_of(connection: sqlite3.Connection, table: Table, secret: str, digest: str) -> Dataset:
    """Return the dataset of a table and a secret, or say why there is none."""
    about = [each for each in records.datasets(connection) if each.secret == secret]
    for dataset in about:
        if dataset.digest == digest:
            return dataset
    if about:
        raise InputError(
            f"{table.name} is not the table of the dataset {listed(d.name for d in about)} about "
            f"{secret!r}: release that one as it was, or open a dataset for other people "
            "(--other-people)"
        )
    raise InputError(
        f"the ledger has no dataset about the secret {secret!r}; open one with: pufferfish ledger "
        f"open BOOKS --dataset NAME {quoted(table.name)} --secret {quoted(secret)} --budget E"
    )
