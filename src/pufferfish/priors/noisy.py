# SPDX-License-Identifier: Apache-2.0
"""Noisy counts become a scenario, after they were drawn or read from a file; no table is needed."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.numbers import Number, parse_number
from pufferfish.priors.ambiguity import NoisyCounts, parse_level
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Pair, Scenario
from pufferfish.support import Product, Support

#: Less noise than this would hardly hide a row, and needs doubles beyond their range.
_LEAST_EPSILON, _MOST_EPSILON, _MOST = Fraction(1, 10**9), 100, 2**53


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
        raise InputError("noisy counts, and the number of rows, must be below 2**53")
    checked_epsilon(rule.epsilon1)
    parse_level(rule.level)


def checked_epsilon(epsilon: Number) -> Fraction:
    """Return the epsilon of noisy counts."""
    spent = parse_number(epsilon, "the epsilon of noisy counts")
    if not _LEAST_EPSILON <= spent <= _MOST_EPSILON:
        raise InputError(
            f"the epsilon of noisy counts is from 1e-9 to {_MOST_EPSILON}, but {epsilon} was given"
        )
    return spent
