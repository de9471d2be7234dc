# SPDX-License-Identifier: Apache-2.0
"""Analysts get their numbers back: unbiased estimates of the original column from a released one.

Estimating only looks at what was published and at how, so it costs no privacy.
"""

from pufferfish.estimate.channel import estimate_channel
from pufferfish.estimate.figures import CONDITION_LIMIT
from pufferfish.estimate.laplace import estimate_laplace
from pufferfish.estimate.record import LEVEL, Estimate, Figure, Frequency
from pufferfish.estimate.released import estimate_released

__all__ = [
    "CONDITION_LIMIT",
    "LEVEL",
    "Estimate",
    "Figure",
    "Frequency",
    "estimate_channel",
    "estimate_laplace",
    "estimate_released",
]
