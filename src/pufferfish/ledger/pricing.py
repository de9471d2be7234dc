# SPDX-License-Identifier: Apache-2.0
"""Pricing: the least bound that is known of what all releases of one table tell about one secret.

The bound holds for every adversary there is reason to think of, and so is the largest of theirs:

1. whoever knows the joint counts of the table (:mod:`.adversaries`): the exact joint loss where it
   can be computed, with the worst cases of whatever does not fit on the grid;
2. the adversary that a plan was calibrated against, where that was not this table: the joint loss
   under his prior of all releases that read that column alike, and the worst cases of the others.
   Where his prior is not at hand, the sum of all worst cases. The same prior for two columns are
   two adversaries;
3. for a pair with a secret that the table does not have, or of which it has no values, so that no
   counts tell anything, the sum of all worst cases;
4. where a plan is for a whole region of priors, any of these (:mod:`.anyprior`);
5. where one person may have several rows, by the word of any of the plans, what all rows of a
   person tell together (:mod:`.persons`).

Worst cases (:mod:`.worstcases`) hold whatever the adversary thinks and however values belong
together, also for rows that lack some of them (theory, section 6). Only whole sets are bounded:
nothing is ever added to the bound of an earlier set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pufferfish.arrays import CountArray
from pufferfish.errors import InputError
from pufferfish.joint import Axis, Known, smallest_bound
from pufferfish.joint import Bound as JointBound
from pufferfish.joint.worst import total
from pufferfish.ledger.account import Bound, bound_of
from pufferfish.ledger.adversaries import is_compared, masses_of, secrets_in
from pufferfish.ledger.anyprior import bound_of_region
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.out import Out, Pair, pairs_of
from pufferfish.ledger.persons import bounds_of_persons
from pufferfish.ledger.suited import axes_of, comparable, read_alike, suited
from pufferfish.ledger.unittable import UnitTable
from pufferfish.ledger.worstcases import worst_sum, worst_terms
from pufferfish.prior import Prior
from pufferfish.support import Support


def bound_together(
    joint: JointTable,
    outs: Sequence[Out],
    others: Sequence[tuple[str, Sequence[Prior]]] = (),
    people: Mapping[str, UnitTable] | None = None,
) -> Bound:
    """Return the least bound of the loss of all releases together, for all adversaries.

    Parameters
    ----------
    joint : JointTable
        The counts of all columns that something is released of.
    outs : sequence of Out
        All releases of one table about one secret.
    others : sequence of (digest, priors)
        The priors of scenarios that some of the plans were calibrated for.
    people : mapping from unit column to UnitTable, optional
        The rows of each person, where plans say whose they are.

    Returns
    -------
    Bound
        The bound itself, and how it is known.

    Raises
    ------
    InputError
        If a release does not suit its column.
    """
    pairs = pairs_of(outs)
    bounds = [_for_the_table(joint, outs, pairs)]
    known = dict(others)
    # One prior for two columns, or for two ways to read one, are two adversaries.
    foreign = {(out.digest, out.label, out.manner): out for out in outs if not out.own}
    for out in foreign.values():
        if out.digest not in known:
            why = "for the prior of a plan that is not from this table"
            bounds.append(worst_sum(joint, outs, why))
        else:
            bounds.append(_for_a_prior(joint, outs, out, known[out.digest]))
    regions = {(out.digest, out.label, out.manner, out.regions): out for out in outs if out.robust}
    bounds += [bound_of_region(joint, outs, out) for out in regions.values()]
    there = comparable(joint, pairs)
    used = joint.of([out.label for out in outs])
    if len(there) < len(pairs) or not all(is_compared(used, pair) for pair in there):
        why = "as the table has no values for a secret of a pair"
        bounds.append(worst_sum(joint, outs, why))
    bounds += bounds_of_persons(joint, outs, people or {})
    return max(bounds, key=lambda bound: (bound.value is None, bound.value or Fraction(0)))


def spread(
    joint: JointTable, outs: Sequence[Out], pairs: Sequence[Pair], keep: str | None = None
) -> tuple[JointTable, list[Any]] | None:
    """Return as many columns as can be spread out together, and the masses of every adversary.

    Columns whose worst cases are the smallest are left out first: these cost the least. The column
    to ``keep`` is not.
    """
    labels = list(joint.labels)
    while labels and pairs:
        part = joint.of(labels)
        masses = masses_of(part, pairs)
        if masses is not None:
            return (part, masses) if masses else None
        rest = [label for label in labels if label != keep]
        if not rest:
            return None
        labels.remove(min(rest, key=lambda label: _weight(label, outs)))
    return None


def _weight(label: str, outs: Sequence[Out]) -> tuple[bool, Fraction]:
    worst = total([out.worst for out in outs if out.label == label])
    return worst is None, worst or Fraction(0)


def _for_the_table(joint: JointTable, outs: Sequence[Out], pairs: Sequence[Pair]) -> Bound:
    """Return the bound for whoever knows the joint counts of the table."""
    joint = joint.of([out.label for out in outs])
    axes = axes_of(joint, outs)
    there = comparable(joint, pairs)
    found = spread(joint, outs, there)
    knowns = []
    if found is not None:
        part, masses = found
        named = secrets_in(there)
        rows = [(named.index(a), named.index(b)) for a, b in there]
        knowns.append(Known(tuple(joint.axis(label) for label in part.labels), masses, rows))
    return _said(smallest_bound(axes, knowns))


def _for_a_prior(joint: JointTable, outs: Sequence[Out], of: Out, priors: Sequence[Prior]) -> Bound:
    """Return the bound for the adversaries of one scenario, who know one column as it is read."""
    support: Any = priors[0].support
    worst = worst_terms(joint, outs)
    alike = [read_alike(out, of, support) for out in outs]
    rest = [term for term, mine in zip(worst, alike, strict=True) if not mine]
    try:
        mine = [suited(o.mechanism, support) for o, m in zip(outs, alike, strict=True) if m]
        pairs = [pair for pair in pairs_of(outs) if set(pair) <= set(priors[0].secrets)]
        named = secrets_in(pairs)
        masses = [_rows_of(prior, named, support) for prior in priors]
        rows = [(named.index(a), named.index(b)) for a, b in pairs]
        found = smallest_bound([Axis(support, tuple(mine))], [Known((0,), masses, rows)])
    except InputError:  # a value of the prior that another release of the column knows not
        return worst_sum(joint, outs, "for the given prior of a plan")
    terms = (*found.terms, *rest)
    known = Fraction(0) if found.joint is None else found.joint.upper
    added = total(terms)
    upper = None if known is None or added is None else known + added
    bound = _said(replace(found, upper=upper, terms=terms))
    return replace(bound, how=f"{bound.how}, under the given prior of a plan")


def _rows_of(prior: Prior, named: Sequence[str], support: Support) -> CountArray:
    if not prior.support.same_as(support):
        raise InputError("the priors of a plan are on several supports")
    return prior.counts[[prior.row(name) for name in named]]


def _said(bound: JointBound) -> Bound:
    """Return a bound with a short word on how it is known."""
    value = float("inf") if bound.upper is None else bound.upper
    if bound.joint is None:
        return bound_of(value, "worst cases")
    if not bound.terms:
        return bound_of(value, "joint loss")
    return bound_of(
        value, f"joint loss of {len(bound.within)} and worst cases of {len(bound.terms)}"
    )
