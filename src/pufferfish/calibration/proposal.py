# SPDX-License-Identifier: Apache-2.0
"""What a calibrator proposes: a mechanism, and what is known of it."""

from dataclasses import dataclass
from fractions import Fraction

from pufferfish.loss.certificate import LossBound
from pufferfish.mechanisms import Mechanism
from pufferfish.plans.distortion import Distortion


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mechanism; ``bound`` is the loss of it and all previous releases.

    Of a channel also its ``distortion``; its ``cost`` is exact and exceeds the least possible one
    by at most ``distortion.gap`` (weak duality).
    """

    mechanism: Mechanism
    bound: LossBound | None = None
    notes: tuple[str, ...] = ()
    distortion: Distortion | None = None
    cost: Fraction = Fraction(0)
