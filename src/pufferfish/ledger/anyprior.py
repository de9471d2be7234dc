# SPDX-License-Identifier: Apache-2.0
"""Any prior of a region: what all releases tell whoever has one of the priors that a plan is for.

A plan for a region holds for every prior of its column in the region, however that column goes
together with others. So the robust loss of what is released of the column (theory, section 5), with
the worst cases of everything else, is a valid mixture for all of these priors (section 6). Noises
of the column merge into one; the robust loss of noise and channels mixed is not computed, so either
the ones or the others count with their worst cases.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pufferfish.certificate import Certificate
from pufferfish.certificate.prove import prove
from pufferfish.certificate.robust import certify_robust_columns
from pufferfish.errors import InputError
from pufferfish.joint import Axis, GridTooLarge
from pufferfish.joint.axes import merged
from pufferfish.joint.worst import total
from pufferfish.ledger.account import Bound, bound_of
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.out import Out, pairs_of
from pufferfish.ledger.readings import embedded
from pufferfish.ledger.suited import read_alike, suited
from pufferfish.ledger.worstcases import worst_sum, worst_terms
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.prior import Prior
from pufferfish.rationals import float_down
from pufferfish.regions import regions_of
from pufferfish.scenario import Scenario
from pufferfish.support import lattice_of


def bound_of_region(joint: JointTable, outs: Sequence[Out], of: Out) -> Bound:
    """Return the bound for every prior of the region that one of the plans is for.

    Parameters
    ----------
    joint : JointTable
        The counts of all columns that something is released of.
    outs : sequence of Out
        All releases of one table about one secret.
    of : Out
        The release by that plan.
    """
    least = worst_sum(joint, outs, "for any prior of the region that a plan is for")
    scenario = _scenario(joint, outs, of)
    if scenario is None:
        return least
    alike = [k for k, out in enumerate(outs) if read_alike(out, of, of.support)]
    noises = [k for k in alike if isinstance(outs[k].mechanism, DiscreteLaplace)]
    terms = worst_terms(joint, outs)
    for chosen in (noises, [k for k in alike if k not in noises]):
        if not chosen:
            continue
        upper = _robust_loss(scenario, [outs[k] for k in chosen])
        rest = total([term for k, term in enumerate(terms) if k not in chosen])
        if upper is None or rest is None:
            continue
        if least.value is None or upper + rest < least.value:
            how = "robust loss"
            if len(chosen) < len(outs):
                how = f"robust loss of {len(chosen)} and worst cases of {len(outs) - len(chosen)}"
            least = bound_of(upper + rest, f"{how}, for any prior of the region that a plan is for")
    return least


def _scenario(joint: JointTable, outs: Sequence[Out], of: Out) -> Scenario | None:
    """Return the region around the table's own counts, or None where that is not the plan's."""
    if not of.own or len(of.regions) != 1:
        return None
    part = joint.of([of.label])
    places = embedded(part.axes[0].support, of.support)
    named = list(dict.fromkeys(secret for pair in of.pairs for secret in pair))
    if places is None or not set(named) <= set(joint.secrets):
        return None
    rows = []
    for secret in named:
        mine = (part.cells[:, 0] == joint.secrets.index(secret)) & (part.cells[:, 1] >= 0)
        row = np.zeros(of.support.size, dtype=np.int64)
        np.add.at(row, places[part.cells[mine, 1]], part.counts[mine])
        if not row.any():
            return None
        rows.append(row)
    prior = Prior.from_numerators(of.support, tuple(named), rows, from_rows=True)
    # Others of the same secrets count too; the region is around the same distributions.
    pairs = [pair for pair in pairs_of(outs) if set(pair) <= set(named)]
    return Scenario(prior, pairs).with_regions(of.regions)


def _robust_loss(scenario: Scenario, outs: Sequence[Out]) -> Fraction | None:
    """Return the robust loss of everything that is released of a column, rounded up."""
    # Alone it is within its epsilon, which a double may not be.
    epsilon = outs[0].epsilon if len(outs) == 1 else None
    try:
        certificate = _certificate(scenario, outs, epsilon)
    except (InputError, GridTooLarge):
        # A value of the region that a channel has no row for, or too many outputs.
        return None
    upper = None if certificate.loss == float("inf") else Fraction(certificate.loss)
    if epsilon is not None and certificate.holds:
        return epsilon if upper is None else min(upper, epsilon)
    return upper


def _certificate(scenario: Scenario, outs: Sequence[Out], epsilon: Fraction | None) -> Certificate:
    regions = regions_of(scenario)
    support = scenario.support
    noises = [out.mechanism for out in outs if isinstance(out.mechanism, DiscreteLaplace)]
    if noises:
        step = lattice_of(support).step
        reaches = all((step / noise.step).denominator == 1 for noise in noises)
        scale = 0.0
        if reaches and all(noise.scale > 0 for noise in noises):
            scale = float_down(1 / sum((1 / Fraction(n.scale) for n in noises), Fraction(0)))
        return prove(scenario, DiscreteLaplace(scale, step), epsilon, regions)
    channels = [suited(out.mechanism, support) for out in outs]
    if len(channels) == 1:
        return prove(scenario, channels[0], epsilon, regions)
    made = merged(
        Axis(support, tuple(m for m in channels if isinstance(m, Channel))),
        np.arange(support.size, dtype=np.int64),
    )
    columns = [
        [Fraction(v * w) for v, w in zip(column, made.weights, strict=True)]
        for column in made.columns or ()
    ]
    return certify_robust_columns(scenario, columns, regions, epsilon)
