# SPDX-License-Identifier: Apache-2.0
"""Distortion: what a channel does to values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.mechanisms.channel import Channel
from pufferfish.numbers import float_up

#: What a channel that is best for estimates makes least: the noise of all of these together.
OBJECTIVES = ("frequencies", "mean", "cdf", "both", "own statistics")


@dataclass(frozen=True)
class Distortion:
    """What a channel does to values that are as frequent as its weights say."""

    cost_name: str  # what was made least: hamming, squared, absolute, own, or one of OBJECTIVES
    cost: float  # its expectation, or the objective, rounded up
    keep_rate: float  # the chance that a value is published unchanged, rounded down
    mse: float | None  # rounded up; None for levels without an order, and beyond doubles
    gap: float  # by how much at most the cost exceeds that of the best channel
    conditions: tuple[str, ...] = ()
    bound: float | None = None  # no private channel has a lesser objective; None: no claim

    @classmethod
    def of(
        cls, channel: Channel, cost: Fraction, cost_name: str, weights: Sequence[Fraction],
        gap: float, conditions: Sequence[str] = (), bound: float | None = None,
    ) -> "Distortion":  # fmt: skip
        """Return what a channel (to labels) of a known cost does to values of these weights."""
        ordered = channel.inputs.ordered and channel.outputs.ordered
        mse = channel.mse(weights) if ordered else math.inf
        return cls(
            cost_name, float_up(cost), channel.keep_rate(weights),
            mse if math.isfinite(mse) else None, gap, tuple(conditions), bound,
        )  # fmt: skip
