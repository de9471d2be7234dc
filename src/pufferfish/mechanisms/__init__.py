# SPDX-License-Identifier: Apache-2.0
"""Mechanisms: small frozen objects that know how to sample and what error they make."""

from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace

__all__ = ["Channel", "DiscreteLaplace"]
