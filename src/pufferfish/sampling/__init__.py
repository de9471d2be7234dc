# SPDX-License-Identifier: Apache-2.0
"""Exact noise from the operating system's entropy: integers against exact thresholds.

No random number here is ever a float. A draw is a row of random bits that is compared with the
bits of an exact cumulative distribution; where the bits read so far cannot decide, more are read.
So the noise has the stated distribution itself, not one near it, and nothing is kept from one
draw to the next that a forked process could share.
"""

from pufferfish.sampling.entropy import Entropy, seeded_entropy, system_entropy
from pufferfish.sampling.laplace import DiscreteLaplaceSampler

__all__ = ["DiscreteLaplaceSampler", "Entropy", "seeded_entropy", "system_entropy"]
