# SPDX-License-Identifier: Apache-2.0
"""Suited: the releases of a table on the axes of its joint counts."""

from collections.abc import Sequence

import numpy as np

from pufferfish.errors import InputError
from pufferfish.joint import Axis
from pufferfish.joint.axes import rows_of
from pufferfish.ledger.jointtable import JointTable
from pufferfish.ledger.out import Out, Pair
from pufferfish.ledger.readings import embedded
from pufferfish.mechanisms import Channel, Mechanism
from pufferfish.support import Levels, Support


def axes_of(joint: JointTable, outs: Sequence[Out]) -> list[Axis]:
    """Return the axes of the joint counts with what is released of each."""
    return [
        Axis(
            axis.support,
            tuple(suited(o.mechanism, axis.support) for o in outs if o.label == axis.label),
        )
        for axis in joint.axes
    ]


def suited(mechanism: Mechanism, support: Support) -> Mechanism:
    """Return a mechanism for the values of a support: of a channel the rows of these values.

    Raises
    ------
    InputError
        If a channel has no row for one.
    """
    if not isinstance(mechanism, Channel) or mechanism.inputs.same_as(support):
        return mechanism
    rows = rows_of(support, mechanism)
    if (rows < 0).any():
        lost = support.name(int(np.argmax(rows < 0)))
        raise InputError(f"the channel has no row for {lost!r}, which the column can hold")
    denominators = tuple(mechanism.denominators[k] for k in rows.tolist())
    return Channel(support, mechanism.outputs, mechanism.rows[rows], denominators)


def read_alike(out: Out, of: Out, support: Support) -> bool:
    """Whether a release reads every value that a prior for another one knows as that one does."""
    if out.label != of.label or out.manner != of.manner:
        return False
    if out.support.same_as(of.support):
        return True
    if out.clamp or (isinstance(support, Levels) and support.ordered):
        return False
    return embedded(support, out.support) is not None


def comparable(joint: JointTable, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose secrets the table has both."""
    return [pair for pair in pairs if set(pair) <= set(joint.secrets)]
