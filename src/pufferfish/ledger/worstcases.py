# SPDX-License-Identifier: Apache-2.0
"""Worst cases: what all releases of a table tell at most, whatever anybody thinks of its values.

The sum of the worst cases holds for every adversary, whatever he knows and however values belong
together (theory, section 6). What a value can be is not what it is in this table: it is whatever
any plan of the column allows, so noise is taken over the union of the table's values and the
supports of all plans of its column. Only a release that moves values into its own support (clamp)
tells nothing of what is beyond. A channel has a row for every value that can be put in.

All rows of a person are released: where one person may have k of them, it is the sum for one row k
times. Which rows are whose does not matter for that, nor does their order.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from pufferfish.joint import Term
from pufferfish.joint.worst import total
from pufferfish.ledger.account import Bound, bound_of
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.out import Out
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.support import Lattice, Support

_Ends = tuple[Fraction, Fraction]


def worst_terms(joint: JointTable, outs: Sequence[Out]) -> list[Term]:
    """Return the worst case of every release, beside all others.

    Parameters
    ----------
    joint : JointTable
        The counts of all columns that something is released of.
    outs : sequence of Out
        All releases of one table about one secret.

    Returns
    -------
    list of Term, as long as ``outs``
    """
    column = {axis.label: axis.column for axis in joint.axes}
    ends: dict[str, _Ends] = {}
    supports: list[tuple[str, Support]] = [(axis.column, axis.support) for axis in joint.axes]
    supports += [(column[out.label], out.support) for out in outs]
    for name, support in supports:
        if isinstance(support, Lattice):
            low, high = support.value(0), support.value(support.size - 1)
            if name in ends:
                low, high = min(low, ends[name][0]), max(high, ends[name][1])
            ends[name] = low, high
    return [_worst(out, ends.get(column[out.label])) for out in outs]


def worst_sum(joint: JointTable, outs: Sequence[Out], why: str) -> Bound:
    """Return the sum of the worst cases of all releases, and why it is charged."""
    upper = total(worst_terms(joint, outs))
    return bound_of(float("inf") if upper is None else upper, f"worst cases, {why}")


def _worst(out: Out, ends: _Ends | None) -> Term:
    noise = out.mechanism
    if out.clamp or ends is None or not isinstance(noise, DiscreteLaplace):
        return out.worst
    if not isinstance(out.support, Lattice):
        return out.worst
    # A reading that rounds may go on to the next multiple of its step.
    step = out.support.step
    span = (math.ceil(ends[1] / step) - math.floor(ends[0] / step)) * step
    if noise.scale == 0:
        return Term(out.label, infinite=span > 0)
    return Term(out.label, rational=span / Fraction(noise.scale))
