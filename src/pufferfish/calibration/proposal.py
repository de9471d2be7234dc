# SPDX-License-Identifier: Apache-2.0
"""What a calibrator proposes: a mechanism, and what is known of it."""

from dataclasses import dataclass
from fractions import Fraction

from pufferfish.loss.certificate import LossBound
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.plans.guarantee import Distortion


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mechanism; ``bound`` is the loss of it and all previous releases.

    Of a channel also its ``distortion`` of values of the ``weights``, which sum to 1; its ``cost``
    is exact and exceeds the least possible one by at most ``distortion.gap`` (weak duality).
    Where it publishes sets of values, ``labels`` draw a value from each.
    """

    mechanism: Mechanism
    bound: LossBound | None = None
    notes: tuple[str, ...] = ()
    distortion: Distortion | None = None
    cost: Fraction = Fraction(0)
    weights: tuple[Fraction, ...] = ()
    labels: Channel | None = None
