# SPDX-License-Identifier: Apache-2.0
"""Noisy counts become a scenario, after they were drawn or read from a file; no table is needed."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.priors.ambiguity import NoisyCounts
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Pair, Scenario
from pufferfish.support import Product, Support

#: Less noise than this would hardly hide a row, and its bounds need doubles beyond their range.
MOST_EPSILON = 100


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
    """Refuse noisy counts, from a file, that are not those of these pairs and values."""
    known = {secret for pair in pairs for secret in pair}
    if sorted(rule.secrets) != sorted(known):
        raise InputError("its noisy counts must be of the secrets in its pairs")
    sizes = [len(own) for own in rule.counts]
    if sizes != [support.size] * len(rule.secrets):
        raise InputError(f"its noisy counts must be {support.size} numbers for each secret")
    if rule.rows < 0 or not 0 < rule.epsilon <= MOST_EPSILON:
        raise InputError("its noisy counts need a number of rows, and an epsilon above 0")
