# SPDX-License-Identifier: Apache-2.0
"""What a calibrator proposes: a mechanism, and what is known of it."""

from dataclasses import dataclass
from fractions import Fraction

from pufferfish.loss.certificate import LossBound
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.plans.distortion import Distortion


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mechanism; ``bound`` is the loss of it and all previous releases.

    The ``cost`` of a channel is exact and exceeds the least possible one by at most ``gap`` (weak
    duality), both in the unit of the cost. The ``weights`` sum to 1. The side ``conditions`` hold
    exactly, as named: ``invariant``, ``unbiased``, ``min_keep 0.6``. The solver took ``seconds``.
    """

    mechanism: Mechanism
    bound: LossBound | None = None
    notes: tuple[str, ...] = ()
    cost: Fraction = Fraction(0)
    cost_name: str = ""
    weights: tuple[Fraction, ...] = ()
    gap: float = 0.0
    conditions: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def distortion(self) -> Distortion | None:
        """What a channel does to values of these weights; None for noise."""
        if not isinstance(self.mechanism, Channel):
            return None
        return Distortion.of(
            self.mechanism, self.cost, self.cost_name, self.weights, self.gap, self.conditions
        )
