# SPDX-License-Identifier: Apache-2.0
"""Verify: what a ledger charged, compared with budgets, worst cases, and a table's joint losses."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pufferfish.errors import InputError, PufferfishError
from pufferfish.ledger.pricing import Counted, Out, bound_of, plan_of, worst_of
from pufferfish.ledger.store import Dataset, ReleaseRecord, Store, open_store
from pufferfish.tables.identity import identity_of
from pufferfish.tables.source import open_table

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


def verify_books(store: Store, table: Any = None, progress: Progress | None = None) -> Verified:
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
