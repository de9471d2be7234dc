# SPDX-License-Identifier: Apache-2.0
"""Mechanisms: small frozen objects that know how to sample and what error they make."""

from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace

#: What can be applied to every value of a column.
Mechanism = DiscreteLaplace | Channel

__all__ = ["Channel", "DiscreteLaplace", "Mechanism"]
