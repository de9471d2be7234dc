# SPDX-License-Identifier: Apache-2.0
"""Calibrate beside what a ledger has charged: everything together stays within its budget."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.further import per_release_epsilon
from pufferfish.calibration.registry import MechanismName
from pufferfish.errors import CheckFailed, InputError, counted
from pufferfish.ledger.ledger import Ledger
from pufferfish.ledger.pricing import Out, State, Subject, pairs_of
from pufferfish.loss.composition import incomplete_rows
from pufferfish.numbers import Number, parse_epsilon, show_short
from pufferfish.plans.plan import Plan
from pufferfish.priors.scenario import Scenario

#: How often a release is calibrated for an epsilon of its own.
_TRIES = 24


def calibrate_beside(
    ledger: Ledger,
    table: Any,
    scenario: Scenario,
    epsilon: Number,
    mechanism: MechanismName | None = None,
    **options: Any,
) -> Plan:
    """Return a plan for a table that fits a ledger's budget beside everything charged.

    ``scenario`` is that of the column in this table; ``options`` are those of ``calibrate``. Where
    the joint loss is charged the plan is calibrated for it, else for the largest epsilon of its
    own that fits. What all releases together cost is at most ``epsilon``, and the budget.
    """
    first = calibrate(scenario, epsilon, mechanism, **options)
    subject = Subject.of(table, first, {"allow_unchanged": True})
    with ledger.store.reading() as view:
        state = subject.state(view)
    limit = min(parse_epsilon(epsilon), state.dataset.budget)

    def fitting(plan: Plan | None) -> Plan | None:
        if plan is None:
            return None
        price = replace(subject, plan=plan).price(state)
        return plan if price.bound.at_most(limit) else None

    found = fitting(first) or fitting(_jointly(subject, state, limit, mechanism, options))
    if found is not None:
        return found
    best = per_release_epsilon(
        limit, lambda own: fitting(calibrate(scenario, own, mechanism, **options)), _TRIES
    )
    if best is None:
        raise CheckFailed(
            f"nothing fits within {show_short(limit)} beside the "
            f"{counted(len(state.outs), 'release')} charged to the dataset {state.dataset.name!r}"
        )
    return best[0]


def _jointly(
    subject: Subject,
    state: State,
    limit: Fraction,
    mechanism: MechanismName | None,
    options: dict[str, Any],
) -> Plan | None:
    """Return a plan for the joint loss with what is charged, where that is known."""
    outs = [*state.outs, Out(subject.plan, True)]
    plans = [out.plan for out in outs]
    if not all(out.own for out in outs) or any(plan.regions or plan.unit for plan in plans):
        return None
    codings = {out.coding.column: out.coding for out in outs}
    try:
        joint = subject.counted.of(outs, list(codings.values()), None)
        if incomplete_rows(joint):
            return None
        return calibrate(
            Scenario(joint, pairs_of(outs)),
            limit,
            mechanism,
            already=plans[:-1],
            column=subject.coding.column,
            **options,
        )
    except (InputError, CheckFailed):
        return None  # too many combinations of values, or nothing fits
