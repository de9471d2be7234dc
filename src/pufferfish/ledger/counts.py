# SPDX-License-Identifier: Apache-2.0
"""Noisy counts in a ledger: what they cost beside releases, and whether they may be a table's.

A set costs its epsilon for each row of a person, whatever else is out (theory, section 7.8). It
stands in the ledger as a plan that publishes one constant.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pufferfish.errors import InputError
from pufferfish.loss.certificate import Certificate, LossBound, added
from pufferfish.mechanisms.channel import Channel
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import NoisyCounts
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Levels
from pufferfish.tables.count import count_table
from pufferfish.tables.rules import Coding, Rules
from pufferfish.tables.table import Table

#: How a ledger calls them.
COUNTS = "noisy counts"


def plan_of_counts(scenario: Scenario) -> Plan:
    """Return noisy counts as a plan that publishes one constant."""
    if scenario.noisy is None or scenario.noisy.held_out:
        raise InputError("a ledger charges noisy counts of the rows of its dataset, not of others")
    support, spent = scenario.support, scenario.noisy.epsilon1
    constant = Channel(support, Levels(("(nothing)",), False), np.ones((support.size, 1), int))
    return Plan.of(scenario, "noisy-counts", constant, spent, Certificate("none", math.inf, 0.0))


def is_draw(plan: Plan) -> bool:
    """Whether a plan stands for noisy counts: whatever its file says, it tells nothing else."""
    return plan.noisy is not None and plan.channel is not None and plan.channel.outputs.size == 1


def with_counts(bound: LossBound, plans: Iterable[Plan], rows: int = 1) -> LossBound:
    """Return the bound of releases together with the noisy counts of their plans.

    A draw is paid for, and a plan if its set, known by column and counts, was not before. Who draws
    twice pays twice, even if both come out alike.
    """
    paid: list[tuple[Coding | None, NoisyCounts]] = []
    for plan in plans:
        noisy = plan.noisy
        if noisy and not noisy.held_out and (is_draw(plan) or (plan.coding, noisy) not in paid):
            paid.append((plan.coding, noisy))
    terms = tuple((COUNTS, rows * noisy.epsilon1) for _, noisy in paid)
    kind = "joint loss + worst cases" if terms and bound.kind == "joint loss" else bound.kind
    upper = added([bound.upper, *(term for _, term in terms)])
    return replace(bound, upper=upper, kind=kind, terms=bound.terms + terms)


def may_be_of(noisy: NoisyCounts, table: Table, rules: Rules) -> bool:
    """Whether noisy counts may be those of a table, whose digest a plan from them does not hold.

    They must be of as many rows, and no count farther from the table's own than all noise but one
    set in a million is; else worst cases are charged, which hold for whatever counts. What passes
    by mistake or by an edit has counts like these.
    """
    own = count_table(table, rules, secrets=(*noisy.secrets, "")).counts
    far = 2 * math.log(2 * own.size * 10**6) / float(noisy.epsilon1)
    apart = np.abs(own - np.array([*noisy.counts, noisy.others])).max()
    return bool(apart <= far and own.sum() == noisy.rows)
