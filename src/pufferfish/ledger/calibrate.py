# SPDX-License-Identifier: Apache-2.0
"""Calibrate beside what a ledger has charged: everything together stays within its budget."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.further import per_release_epsilon
from pufferfish.errors import CheckFailed, InputError, counted
from pufferfish.ledger import store
from pufferfish.ledger.counts import COUNTS, plan_of_counts
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.pricing import Release, State, Subject, pairs_of
from pufferfish.loss.composition import incomplete_rows
from pufferfish.numbers import Number, parse_epsilon, show_short
from pufferfish.plans.plan import Plan
from pufferfish.priors.scenario import Scenario


def calibrate_beside(
    ledger: Ledger, table: Any, scenario: Scenario, epsilon: Number, **options: Any
) -> Plan:
    """Return a plan for a table that fits a ledger's budget beside everything charged.

    ``scenario`` is that of the column in this table; ``options`` are those of ``calibrate``. Where
    the joint loss is charged the plan is calibrated for it, else for the largest epsilon of its
    own that fits. What all releases together cost is at most ``epsilon``, and the budget; the
    lesser of these is the epsilon of the plan.
    """
    if scenario.noisy is not None:  # a price depends on the rows, and so would the public plan
        raise InputError("noisy counts are drawn by draw_counts, which says what a plan may take")
    first = calibrate(scenario, epsilon, **options)
    subject = Subject(table, first, {"allow_unchanged": True})
    with store.reading(ledger.path) as connection:
        state = subject.state(connection)
    limit = min(parse_epsilon(epsilon), state.dataset.budget)

    def attempt(own: Fraction) -> Plan | None:
        plan = calibrate(scenario, own, **options)
        return plan if subject.price(state, plan).bound.at_most(limit) else None

    joint = _jointly(subject, state, limit, options)
    if joint is not None and subject.price(state, joint).bound.at_most(limit):
        return joint
    best = per_release_epsilon(limit, attempt, tries=24)
    if best is None:
        why = subject.price(state).why
        budget = "the budget " if limit == state.dataset.budget else ""
        raise CheckFailed(
            f"nothing fits within {budget}{show_short(limit)} beside the "
            f"{counted(len(state.releases), 'release')} charged to the dataset "
            f"{state.dataset.name!r}{f'; worst cases are charged: {why}' if why else ''}"
        )
    plan, own = best
    if not state.releases and own == limit:
        return plan
    # Its own epsilon comes from prices, which depend on the rows: what is told is the limit.
    return replace(plan, epsilon_exact=limit, composition=subject.price(state, plan).bound)


def _jointly(
    subject: Subject, state: State, limit: Fraction, options: dict[str, Any]
) -> Plan | None:
    """Return a plan for the joint loss with what is charged, where that is known."""
    column, before = subject.coding.column, [release.plan for release in state.releases]
    releases = [*state.releases, Release(subject.plan, subject.coding, True)]
    if not before or any(not r.own or r.plan.regions or r.plan.unit for r in releases):
        return None
    codings = {release.coding.column: release.coding for release in releases}
    try:
        joint = subject.counted.of(releases, list(codings.values()))
        scenario = Scenario(joint, pairs_of(releases))
        if incomplete_rows(joint):
            return None
        return calibrate(scenario, limit, already=before, column=column, **options)
    except (InputError, CheckFailed):
        return None  # too many combinations of values, or nothing fits


def draw_counts(
    ledger: Ledger, table: Any, secret: str, spent: Number, limit: Number,
    draw: Callable[[], Scenario],
) -> tuple[Scenario, Fraction]:  # fmt: skip
    """Draw noisy counts of a table, charged before anything that is computed from them is seen.

    Also return the epsilon of a plan from them. It comes from other draws and what was asked for:
    a price of the plan would depend on the rows.
    """
    dataset, charged = ledger.account(table, secret)
    before = charged[-1].bound if charged else Fraction(0)
    left = parse_epsilon(limit) - before
    # Beside a release a plan from them costs its worst case, as noise that needs no counts does.
    if left <= parse_epsilon(spent) or any(record.kind != COUNTS for record in charged):
        raise CheckFailed(
            f"refused: noisy counts must come before any release and leave something of {limit}, "
            f"but {show_short(before)} is charged to {dataset.name!r}; nothing was drawn"
        )
    scenario = draw()
    ledger.charge(table, plan_of_counts(scenario), allow_unchanged=True)
    return scenario, left
