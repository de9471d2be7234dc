# SPDX-License-Identifier: Apache-2.0
"""Verify: what a ledger charged, compared with its budgets, with worst cases and with a table."""

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from pufferfish.errors import InputError, PufferfishError
from pufferfish.ledger import records, store
from pufferfish.ledger.answers import bound_of_answers, plan_of
from pufferfish.ledger.counts import with_counts
from pufferfish.ledger.pricing import Counted, Release, bound_of, is_answer, worst_of
from pufferfish.ledger.records import Dataset, ReleaseRecord
from pufferfish.queries.plan import QueryPlan
from pufferfish.tables.identity import identity_of
from pufferfish.tables.source import open_table

#: Relative difference of two proofs of one loss that says nothing.
_ALIKE = Fraction(1, 10**9)

Fault = Literal["unreadable", "over the budget", "too little", "too much", "not its own"]


@dataclass(frozen=True)
class Difference:
    """Something that is not as it should be; ``computed`` is None where infinite, or not computed.

    ``unreadable``: the plan, for a ``reason``; ``over the budget``: the bound recorded; ``too
    little``, ``too much``: what was charged; ``not its own``: the plan is for other counts than
    those of the table, which was not recorded.
    """

    dataset: str
    release: str
    fault: Fault
    recorded: Fraction
    computed: Fraction | None = None
    reason: str = ""


@dataclass(frozen=True)
class Verified:
    """How many releases were looked at, and recounted from the table; and what is wrong."""

    releases: int
    recounted: int
    differences: tuple[Difference, ...]


def verify_ledger(path: Path, table: Any = None) -> Verified:
    """Look at everything that a ledger holds; see :meth:`pufferfish.Ledger.verify`."""
    store.check(path)
    with store.reading(path) as connection:
        datasets, charged = records.datasets(connection), records.releases(connection)
    counted: dict[str, Counted] = {}
    if table is not None:
        opened = open_table(table)
        digest = identity_of(opened).digest
        counted = {d.name: Counted(opened, d.secret) for d in datasets if d.digest == digest}
        if not counted:
            raise InputError(f"{opened.name} is none of the datasets of {path}")
    differences: list[Difference] = []
    for dataset in datasets:
        releases, answers = list[Release](), list[QueryPlan]()
        for record in (each for each in charged if each.dataset == dataset.name):
            try:
                if is_answer(record):
                    answers.append(plan_of(record))
                    bound = bound_of_answers(answers, dataset.budget).upper
                    differences += _faults(dataset, record, bound, bound)
                    continue
                releases.append(Release.of(record))
                differences += _compared(dataset, record, releases, counted.get(dataset.name))
            except PufferfishError as error:
                wrong = Difference(dataset.name, record.id, "unreadable", record.bound)
                differences.append(replace(wrong, reason=str(error)))
    recounted = sum(record.dataset in counted for record in charged)
    return Verified(len(charged), recounted, tuple(differences))


def _compared(
    dataset: Dataset, record: ReleaseRecord, releases: list[Release], counted: Counted | None
) -> list[Difference]:
    """Return what is wrong with the last of some releases."""
    not_its_own = False
    if counted is not None:
        if record.own and counted.own(releases[-1].plan) is None:
            not_its_own = True
            releases[-1] = replace(releases[-1], own=False)
        least = most = bound_of(counted, releases)[0].upper
    else:
        plans = [release.plan for release in releases]
        least = most = with_counts(worst_of(releases), plans).upper
        if any(release.plan.unit is not None for release in releases):
            most = None  # as often as a person has rows
        if all(release.own for release in releases):
            least = with_counts(worst_of([]), plans).upper  # any joint loss
    return _faults(dataset, record, least, most, not_its_own)


def _faults(
    dataset: Dataset, record: ReleaseRecord, least: Fraction | None, most: Fraction | None,
    not_its_own: bool = False,
) -> list[Difference]:  # fmt: skip
    """Return what is wrong with the bound of a release, which must lie between two others."""
    faults: list[tuple[Fault, Fraction | None]] = []
    if record.bound > dataset.budget:
        faults.append(("over the budget", dataset.budget))
    if not_its_own:
        faults.append(("not its own", None))
    if least is None or record.bound < least * (1 - _ALIKE):
        faults.append(("too little", least))
    elif most is not None and most < record.bound * (1 - _ALIKE):
        faults.append(("too much", most))
    return [Difference(dataset.name, record.id, fault, record.bound, c) for fault, c in faults]
