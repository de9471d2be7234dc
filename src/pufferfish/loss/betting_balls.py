# SPDX-License-Identifier: Apache-2.0
"""The last test of a walk once more, in ball arithmetic, with the bounds that doubles found."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb

from pufferfish.loss.balls import exp_minus
from pufferfish.numbers import FloatArray, IntArray, precision
from pufferfish.priors.ambiguity import Counted
from pufferfish.priors.betting import ball, is_bound

_BITS = 128


def confirmed(
    beliefs: Sequence[Counted], pairs: Sequence[tuple[int, int]], places: IntArray,
    rate: Fraction, limit: Fraction, means: FloatArray,
) -> bool:  # fmt: skip
    """Return whether balls prove that the loss at a scale is at most a limit, from these bounds.

    ``means``: of h under each secret, and of 1 - h; shape (2, outputs, secrets). Of each pair the
    first one is taken for the likelier one.
    """
    with precision(_BITS):
        power, most = cache(lambda d: exp_minus(rate * d)), ball(limit).exp()
        for y, distance in enumerate(np.abs(places[:, None] - places).tolist()):
            far = max(distance)
            low, ends = power(far), {far: arb(0), 0: arb(1)}  # numbers, not balls around them
            h = [ends[d] if d in ends else (power(d) - low) / (1 - low) for d in distance]
            for side, own in enumerate((h, [1 - each for each in h])):
                for belief, m in zip(beliefs, means[side, y].tolist(), strict=True):
                    share = belief.is_share and m >= belief.upper_share(y ^ side)
                    if not (m >= 1 or share or is_bound(belief, own, m)):
                        return False
            tops, rests = (list(map(arb, own[y].tolist())) for own in means)
            for first, second in pairs:
                top, bottom = (low + (1 - low) * m for m in (tops[first], 1 - rests[second]))
                if not top <= most * bottom:
                    return False
    return True
