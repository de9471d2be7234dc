# SPDX-License-Identifier: Apache-2.0
"""The joint loss by its definition: every output of every release, in exact integers.

Nothing is merged, nothing is taken one axis at a time, and nothing comes from the package. A joint
prior is a dictionary ``values -> count`` per secret. A release is a column and, for each of its
outputs, a dictionary ``value -> weight``, where weights are in proportion to the likelihood of that
output, with the same factor for all values; any numbers that multiply and compare will do.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Joint = Mapping[tuple[int, ...], int]
Table = Sequence[Mapping[int, Any]]
Release = tuple[int, Table]

#: More than any ratio.
INFINITE = None


def laplace(values: Sequence[int], decay: Fraction, margin: int = 1) -> Table:
    """Discrete Laplace noise on the integers, P(z) in proportion to decay**|z|, in whole numbers.

    Outputs are all integers from ``margin`` below the least value to ``margin`` above the largest:
    further out every likelihood only shrinks by the same factor.
    """
    outputs = range(min(values) - margin, max(values) + margin + 1)
    longest = max(values) - min(values) + margin
    up, down = decay.numerator, decay.denominator
    weight = [up**d * down ** (longest - d) for d in range(longest + 1)]
    return [{x: weight[abs(y - x)] for x in values} for y in outputs]


def unchanged(values: Sequence[int]) -> Table:
    """The value itself."""
    return [{x: int(x == y) for x in values} for y in values]


def channel(values: Sequence[int], rows: Sequence[Sequence[int]]) -> Table:
    """A channel with one row of whole numbers per value; every row has the same sum."""
    if len({sum(row) for row in rows}) != 1:
        raise ValueError("rows of different sums")
    return [{x: row[y] for x, row in zip(values, rows, strict=True)} for y in range(len(rows[0]))]


def largest_ratio(
    adversaries: Sequence[Sequence[Joint]],
    pairs: Sequence[tuple[int, int]],
    releases: Sequence[Release],
) -> Any:
    """Return e^loss exactly, or INFINITE; 0/0 is skipped."""
    best: Any = Fraction(1)
    for secrets in adversaries:
        totals = [sum(joint.values()) for joint in secrets]
        for output in product(*(table for _, table in releases)):
            likelihoods = []
            for joint, total in zip(secrets, totals, strict=True):
                likelihood: Any = 0
                for values, count in joint.items():
                    term: Any = count
                    for (column, _), weights in zip(releases, output, strict=True):
                        term = term * weights[values[column]]
                    likelihood = likelihood + term
                likelihoods.append((likelihood, total))
            for i, j in pairs:
                (a, n), (b, m) = likelihoods[i], likelihoods[j]
                a, b = a * m, b * n
                if a == b:
                    continue
                if a == 0 or b == 0:
                    return INFINITE
                high, low = max(a, b), min(a, b)
                if high * _denominator(best) > _numerator(best) * low:
                    best = Fraction(high, low) if isinstance(high, int) else high / low
    return best


def _numerator(number: Any) -> Any:
    return number.numerator if isinstance(number, Fraction) else number


def _denominator(number: Any) -> Any:
    return number.denominator if isinstance(number, Fraction) else 1
