# SPDX-License-Identifier: Apache-2.0
"""Answers to queries in a ledger: what all of them tell together of the records of one table.

The dataset is a table with a row for each record, and its secret is the column of states. All
answers count under the models of all plans (theory, section 8.12). Of a column that is released row
by row and of answers about records that depend no joint loss is known: a dataset takes one of both.
"""

import json
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pufferfish.errors import InputError, listed
from pufferfish.files import parse_strict
from pufferfish.ledger import records
from pufferfish.ledger.pricing import Price, Release, State, dataset_of, is_answer, stamp_of
from pufferfish.ledger.records import ReleaseRecord
from pufferfish.loss.certificate import LossBound
from pufferfish.queries.answer import read_bounds
from pufferfish.queries.case import read_answers
from pufferfish.queries.plan import QueryPlan
from pufferfish.queries.routes import prove
from pufferfish.queries.sequences import SequenceRules
from pufferfish.tables.identity import identity_of
from pufferfish.tables.source import open_table

#: Options of a release that change nothing of what it tells.
_FREE = ("bounds", "allow_unchanged")


def plan_of(record: ReleaseRecord) -> QueryPlan:
    """Return the plan of a charged answer."""
    return QueryPlan.of_values(parse_strict(record.plan), f"the plan of the release {record.id}")


def plans_of(charged: Sequence[ReleaseRecord], rules: SequenceRules) -> tuple[QueryPlan, ...]:
    """Return the plans of a dataset's releases, which must be answers from the same sequences."""
    if rules.time is None:
        raise InputError(
            "a ledger needs the column of times beside that of states (--time COL, "
            "plan.with_columns): it knows a table again whatever the order of its rows"
        )
    for record in charged:
        if not is_answer(record):
            Release.of(record)  # or else it says that the plan is damaged
            raise InputError(
                f"the dataset {record.dataset!r} has releases of columns, with which an answer "
                "about dependent records has no joint loss that is known"
            )
    plans = tuple(map(plan_of, charged))
    if any(plan.source and replace(plan.source, step=rules.step) != rules for plan in plans):
        raise InputError(
            f"the plan reads sequences otherwise than the answers charged to "
            f"{charged[0].dataset!r}: other columns, gaps or missing texts"
        )
    return plans


def bound_of_answers(plans: Sequence[QueryPlan], budget: Fraction) -> LossBound:
    """Return the joint loss of the answers of plans, or the least bound of it that is found.

    All plans are for the sequences of one table: it is bounded for the fewest lengths that one
    of them is for. A bound above the budget is looked at again: noise may be for the budget itself.
    """
    first = min(plans, key=lambda plan: max(plan.query.sizes, default=math.inf))
    others = read_answers([plan for plan in plans if plan is not first], first.query)
    found = prove(first.query, first.scale, None, others)
    within = found if found.at_most(budget) else prove(first.query, first.scale, budget, others)
    return within if within.at_most(budget) else found


class AnswerSubject:
    """A table as it is now and the plan of a query about its records, to release it by."""

    def __init__(self, source: Any, plan: QueryPlan, options: dict[str, Any]) -> None:
        if plan.source is None:
            raise InputError(
                "a ledger needs the plan of a query that names the columns of states and times "
                "(plan.with_columns)"
            )
        plans_of((), plan.source)
        others = {n: value for n, value in options.items() if n not in _FREE}
        if wrong := [n for n, value in others.items() if value not in (None, False, "refuse")]:
            raise InputError(f"{listed(wrong)}: not for the plan of a query")
        self.table, self.plan, self.rules = open_table(source), plan, plan.source
        read_answers([plan], plan.query)
        read_bounds(options.get("bounds"))
        plan.noise.noise(0)  # of a scale that can be drawn
        self.stamp, self.digest = stamp_of(self.table), identity_of(self.table).digest
        plan.records(self.table)

    def rehearse(self) -> None:
        """Refuse nothing more: what a release would refuse was, at once."""

    def state(self, connection: sqlite3.Connection) -> State:
        """Return the dataset of this table, and what is charged to it."""
        secret = self.table.column(self.rules.state)
        dataset = dataset_of(connection, self.table, secret, self.digest)
        charged = records.releases(connection, dataset.name)
        plans = plans_of(charged, self.rules)
        return State(dataset, charged[-1].bound if charged else Fraction(0), plans)

    def price(self, state: State) -> Price:
        """Return the price beside what is charged."""
        bound = bound_of_answers([*state.releases, self.plan], state.dataset.budget)
        column = f"{self.plan.query.kind} of {self.rules.state}"
        charged = len(state.releases), state.before
        return Price(state.dataset, column, *charged, bound, True, 0, 1, 0)

    @property
    def text(self) -> str:
        """The plan as it is charged."""
        return json.dumps(self.plan.to_values(), ensure_ascii=False, allow_nan=False)
