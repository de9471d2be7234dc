# SPDX-License-Identifier: Apache-2.0
"""Persons: what all rows of one person tell together, where a plan says whose rows they are.

Every row of a person is released, so that k rows and n releases of one column are k n releases
about one secret. On each row the noise of all releases merges into one of 1/theta_eff, the sum of
their 1/theta (theory, section 6), so that it is the loss of the k rows by this one noise. Several
columns, and channels beside something else, are not counted together by persons: then it is the
sum of all worst cases, as many times as a person has rows.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.errors import InputError, PufferfishWarning
from pufferfish.joint.worst import total
from pufferfish.ledger.account import Bound, bound_of
from pufferfish.ledger.out import Out, pairs_of
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.rationals import float_down
from pufferfish.scenario import Scenario
from pufferfish.support import Levels, lattice_of
from pufferfish.tables import Table, count_table
from pufferfish.unitcounts import UnitGroup, Units
from pufferfish.unitloss import digest_of, units_loss


def prior_of_persons(table: Table, plan: Plan) -> Prior | None:
    """Return the prior of a table by persons, if it is what a plan was calibrated for."""
    rules = plan.rules
    if rules is None or rules.unit is None or plan.units is None:
        return None
    support = plan.support
    if isinstance(support, Levels):
        names = support.names
        rules = replace(rules, order=names) if support.ordered else replace(rules, levels=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PufferfishWarning)
        try:
            prior = count_table(table, rules)
            scenario = Scenario(prior, plan.pairs)
        except InputError:  # other secrets, or other levels: it is another table
            return None
    # What was counted stands in the ledger without the report.
    return replace(prior, report=None) if digest_of(scenario) == plan.units.digest else None


def bound_of_persons(outs: Sequence[Out], known: Mapping[str, Sequence[Prior]]) -> Bound | None:
    """Return the bound for all rows of one person, or None where each row is a person.

    Parameters
    ----------
    outs : sequence of Out
        All releases of one table about one secret.
    known : mapping
        Priors, some by persons, by the digests of the scenarios.

    Raises
    ------
    InputError
        If a release does not suit its column.
    """
    rows = max(out.rows for out in outs)
    if rows == 1:
        return None
    upper = _joint(outs, known)
    if upper is not None:
        return bound_of(upper, "joint loss of all rows of one person")
    worst = total([out.worst for out in outs])
    return Bound(
        None if worst is None else worst * rows,
        f"worst cases of the {rows} rows that one person may have",
    )


def _joint(outs: Sequence[Out], known: Mapping[str, Sequence[Prior]]) -> Fraction | None:
    """Return the loss of all rows of one person, or None where it is not known."""
    counted = [known.get(out.digest) for out in outs if out.rows > 1]
    first = counted[0]
    if first is None or any(priors is None for priors in counted):
        return None
    units = [prior.units for priors in counted if priors is not None for prior in priors]
    columns = {None if own is None else own.column for own in units}
    pairs = pairs_of(outs)
    mechanism = _merged(outs)
    if (
        len(columns) > 1
        or None in columns
        or mechanism is None
        or not all(out.own for out in outs)
        or not {secret for pair in pairs for secret in pair} <= set(first[0].secrets)
    ):
        return None
    return units_loss(Scenario(list(first), pairs), mechanism).upper


def _merged(outs: Sequence[Out]) -> Mechanism | None:
    """Return the one mechanism that all releases amount to on each row, if there is one."""
    if len(outs) == 1:
        return outs[0].mechanism
    noises = [out.mechanism for out in outs if isinstance(out.mechanism, DiscreteLaplace)]
    if len(noises) < len(outs) or len({out.label for out in outs}) > 1:
        return None
    step = lattice_of(outs[0].support).step
    if any(noise.scale == 0 for noise in noises):
        return DiscreteLaplace(0.0, step)
    rate = sum((1 / Fraction(noise.scale) for noise in noises), Fraction(0))
    # Less noise tells more.
    return DiscreteLaplace(float_down(1 / rate), step)


def units_to_dict(units: Units | None) -> dict[str, Any] | None:
    """Return whose rows are whose as JSON values."""
    if units is None:
        return None
    groups = [
        {"sequences": g.sequences.tolist(), "counts": g.counts.tolist()} for g in units.groups
    ]
    return {"column": units.column, "groups": groups}


def units_from_dict(data: Mapping[str, Any] | None) -> Units | None:
    """Read back what :func:`units_to_dict` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If it is nothing of the kind.
    """
    if data is None:
        return None
    groups = [
        UnitGroup(
            np.array(group["sequences"], dtype=np.int64), np.array(group["counts"], dtype=np.int64)
        )
        for group in data["groups"]
    ]
    return Units(str(data["column"]), tuple(groups))
