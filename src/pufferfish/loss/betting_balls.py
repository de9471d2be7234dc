# SPDX-License-Identifier: Apache-2.0
"""The betting bound of a loss in ball arithmetic: one output and one pair, where doubles fail."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from pufferfish.loss.balls import exp_minus
from pufferfish.numbers import IntArray, precision
from pufferfish.priors.ambiguity import Counted
from pufferfish.priors.betting import ball, upper_mean

_BITS = 192


def log_ratio_bound(
    first: Counted, second: Counted, places: IntArray, rate: Fraction, y: int,
    starts: tuple[float, float],
) -> arb:  # fmt: skip
    """Return a proven bound of ln <P_i, k_y> / <P_j, k_y>, as a ball, at the output y.

    ``starts``: what doubles have found for the mean of h under P_i, and of 1 - h under P_j.
    """
    with precision(_BITS):
        distance = np.abs(places - places[y])
        low = exp_minus(rate * int(distance.max()))
        # 0 and 1 are numbers, not balls around them.
        ends = {int(distance.max()): arb(0), 0: arb(1)}
        h = [
            ends[d] if d in ends else (exp_minus(rate * d) - low) / (1 - low)
            for d in distance.tolist()
        ]
        upper = _mean(first, h, y, starts[0])
        lower = 1 - _mean(second, [1 - own for own in h], 1 - y, starts[1])
        gap: arb = (1 - low) * (upper - lower) / (low + (1 - low) * lower)
        return gap.log1p()


def _mean(belief: Counted, h: Sequence[arb], atom: int, start: float) -> arb:
    """Return a proven upper bound of the mean of h; of two values it is a share."""
    return ball(belief.upper_share(atom)) if belief.is_share else upper_mean(belief, h, start)
