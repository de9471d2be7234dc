# SPDX-License-Identifier: Apache-2.0
"""Mechanisms: discrete Laplace noise and channels, which draw exactly from what was proved."""

from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace

#: What a released column goes through.
Mechanism = DiscreteLaplace | Channel

__all__ = ["Channel", "DiscreteLaplace", "Mechanism"]
