# SPDX-License-Identifier: Apache-2.0
"""Noisy counts become a scenario, after they were drawn or read from a file; no table is needed."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.priors.ambiguity import NoisyCounts, parse_level
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Pair, Scenario
from pufferfish.support import Product, Support

#: Less noise than this would hardly hide a row, and needs doubles beyond their range.
_MOST_EPSILON, _MOST = 100, 2**62


def scenario_of_noise(
    rule: NoisyCounts, product: Product, pairs: Iterable[Pair], **reading: Any
) -> Scenario:
    """Return the scenario of noisy counts; its prior, where one is needed, has none below 0."""
    counts = np.maximum(np.array(rule.counts, dtype=object), 0)
    counts[~counts.any(axis=1)] = 1
    rows = dict(zip(rule.secrets, counts.tolist(), strict=True))
    prior = Prior.from_numerators(product, rows, from_rows=True, rule=rule, **reading)
    return Scenario(prior, tuple(pairs))


def checked_noise(rule: NoisyCounts, pairs: Iterable[Pair], support: Support) -> None:
    """Refuse noisy counts that are not those of these pairs and values, or out of range."""
    secrets = sorted({secret for pair in pairs for secret in pair})
    every = [*rule.counts, rule.others]
    if sorted(rule.secrets) != secrets or [*map(len, every)] != [support.size] * (len(secrets) + 1):
        raise InputError("noisy counts must be of each secret in the pairs, and of each value")
    if not 0 <= rule.rows < _MOST or max(abs(n) for own in every for n in own) > _MOST:
        raise InputError("noisy counts, and the number of rows, must be below 2**62")
    if not 0 < rule.epsilon1 <= _MOST_EPSILON:
        raise InputError(f"noisy counts need an epsilon above 0, and at most {_MOST_EPSILON}")
    parse_level(rule.level)
