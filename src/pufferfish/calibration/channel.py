# SPDX-License-Identifier: Apache-2.0
"""``channel``: the least expected distortion that any record-by-record channel can have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pufferfish.mechanisms.channel import Channel
from pufferfish.priors.scenario import Scenario


@dataclass(frozen=True, eq=False)
class ChannelSolution:
    """A channel of integers that is private, and what is known of its cost.

    Attributes
    ----------
    channel : Channel
        Every privacy inequality holds exactly, for a rational E <= e**epsilon.
    cost : Fraction
        Its expected cost, exact.
    cost_name : str
        ``hamming``, ``squared``, ``absolute``, or ``own``.
    weights : tuple of Fraction
        mu, one per value; they sum to 1.
    gap : float
        By how much at most the cost exceeds that of the best channel (weak duality), in its unit.
    conditions : tuple of str
        The side conditions that hold, exactly: ``invariant``, ``unbiased``, ``min_keep 0.6``.
    notes : tuple of str
        What the user should know of the answer.
    """

    channel: Channel
    cost: Fraction
    cost_name: str
    weights: tuple[Fraction, ...]
    gap: float
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def channel(
    scenario: Scenario,
    epsilon: Fraction,
    *,
    cost: object = None,
    outputs: int | str | None = None,
    invariant: bool = False,
    unbiased: bool = False,
    min_keep: object = None,
    weights: Sequence[object] | Mapping[Any, object] | None = None,
) -> ChannelSolution:
    """Return the channel of least expected cost that is epsilon-Pufferfish private."""
    raise NotImplementedError
