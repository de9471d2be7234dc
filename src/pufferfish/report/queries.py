# SPDX-License-Identifier: Apache-2.0
"""Sentences about queries over correlated records."""

from collections.abc import Sequence

from pufferfish.errors import counted, joined, listed, quoted
from pufferfish.loss.certificate import Certificate
from pufferfish.numbers import rounded_up, show, show_short
from pufferfish.queries.answer import QueryAnswer
from pufferfish.queries.plan import QueryPlan
from pufferfish.queries.query import Query
from pufferfish.queries.record import assumptions
from pufferfish.queries.sequences import Sequences
from pufferfish.report.digits import at_most

_ROUTES = {
    "ends": "the ends of the law, which is MTP2",
    "contraction": "a contraction, for every number of records",
    "window": "windows around each record",
    "group": "the range of all records",
    "ball": "the law of the answer given each record, in ball arithmetic",
    "float-bound": "the law of the answer given each record, and a floating-point bound",
    "exact": "the law of the answer given each record, in exact rationals",
}


def query_lines(query: Query, source: str, found: Sequences | None) -> list[str]:
    """Return what is asked of what, and what is hidden."""
    records = f"{joined(query.sizes)} records"
    if found is not None:
        records = f"{counted(found.records, 'record')} in {counted(found.count, 'sequence')}"
    elif query.lengths is None:
        records = "any number of records"
    states = f"{len(query.states)} states: {listed(query.states)}"
    hidden = "the state of each single record"
    if query.protect == "sequence":
        hidden = "all states of a sequence"
    what = f"the {query.kind} of a number for each state"
    if query.kind in ("count", "histogram"):
        counted_states = "have each state" if query.vector else f"are {quoted(query.names[0])}"
        what = f"how many records {counted_states}"
    return [f"{source}: {records}; {states}", f"hidden: {hidden}", f"published: {what}"]


def query_verdict(plans: Sequence[QueryPlan]) -> list[str]:
    """Return what was proved, and how far each plan may be from the least noise."""
    record = plans[0].query.protect == "record"
    believed = "for those who believe that sequences are independent, whatever the law of each"
    if record:
        believed = "for those who believe in the model, and that sequences are independent"
    lines = [f"Proved: each loss is within its epsilon, {believed}."]
    if any(plan.composition is not None for plan in plans):
        lines.append("Epsilon is for this answer and all that the ledger has charged, together.")
    for plan in plans if len(plans) == 1 else ():
        if plan.least_scale * (1 + 1e-9) >= plan.scale:
            lines.append("It is the least Laplace noise.")
        elif plan.least_scale:
            over = rounded_up(100 * (plan.scale / plan.least_scale - 1), 3)
            lines.append(
                f"No Laplace noise of a scale below {plan.least_scale:.8g} would do: this one is "
                f"at most {over} % above the least."
            )
    if record:
        lines.append("Whole sequences are not hidden (see --user-level).")
    if any(plan.from_rows for plan in plans):
        lines.append("The plan is private: its model was fitted to these records.")
    return lines


def answer_lines(plan: QueryPlan, output: str, answer: QueryAnswer, path: str) -> list[str]:
    """Return what a release of an answer did, and what is promised of it."""
    what = f"{plan.query.kind} of {counted(answer.records, 'record')}"
    return [
        f"{output}: {what}, with discrete Laplace noise of scale {rounded_up(plan.scale, 10)}",
        f"{plan.mechanism} at epsilon {show(plan.epsilon_exact)}; to prove it again: pufferfish "
        f"verify {path}",
        *assumptions(plan),
    ]


def verified_query_lines(
    path: str, plan: QueryPlan, proof: Certificate, asked: Query | None
) -> list[str]:
    """Return what was proved of a plan; ``asked``: for the query of a table that was read."""
    under = "the model in it"
    if asked is not None and not plan.is_for(asked):
        under = "ANOTHER model or other lengths: those of the table are not the plan's"
    elif asked is not None:
        under = "the table it was fitted to" if plan.fit else "the model in it, for this table"
    loss = at_most(proof.loss, plan.epsilon_exact)
    return [
        f"{path}: verified under {under}",
        f"discrete Laplace noise of scale {rounded_up(plan.scale, 10)} for a {plan.query.kind}: "
        f"loss at most {loss}, within epsilon {show_short(plan.epsilon_exact)}",
        f"proved by {_ROUTES[proof.method.split('+')[0]]}",
        *assumptions(plan),
    ]
