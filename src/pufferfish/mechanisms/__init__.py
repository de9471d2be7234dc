# SPDX-License-Identifier: Apache-2.0
"""What happens to a value: discrete Laplace noise, or a channel; both are drawn exactly.

``laplace`` and ``channel`` are the mechanisms (theory, sections 1 and 4); ``entropy``,
``thresholds`` and ``sampler`` draw from exactly what was proved (section 10).
"""

from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace

#: What a released column goes through.
Mechanism = DiscreteLaplace | Channel
