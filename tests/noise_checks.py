# SPDX-License-Identifier: Apache-2.0
"""Checks of noise and draws, used on right and on wrong ones alike.

A statistical check returns a p-value: 100,000 draws, right ones above 1e-20 (a false alarm once in
1e20 runs), those of a scale 30 % off below it.  Thresholds are compared with closed forms in
multiple-precision floats, draws with the definition in fractions, by every word of a small size.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pufferfish.mechanisms.sampler import Table
from pufferfish.mechanisms.thresholds import Digit, SignedGeometric

DRAWS = 100_000
LEAST_P = 1e-20
OFF = (0.7, 1.3)


# --- The law ------------------------------------------------------------------------------------


def edges(units: float, cells: int = 40) -> NDArray[np.int64]:
    """Upper ends of cells of roughly equal mass, but for the last one; units is scale / step."""
    quantiles = stats.laplace.ppf(np.arange(1, cells) / cells, scale=units)
    return np.unique(np.round(quantiles).astype(np.int64))


def chi_square(observed: NDArray[Any], expected: NDArray[Any]) -> float:
    """p-value of draws by cell, of known expectations; 0 for one of an impossible cell."""
    possible = expected >= 1e-9
    if observed[~possible].any():
        return 0.0
    observed, expected = observed[possible], expected[possible]
    # Thin cells are merged into their neighbour, as the chi-square approximation asks.
    groups = np.minimum(np.cumsum(expected) // 20, sum(expected) // 20 - 1).astype(int)
    groups = np.unique(groups, return_inverse=True)[1]
    observed, expected = np.bincount(groups, observed), np.bincount(groups, expected)
    statistic = np.sum((observed - expected) ** 2 / expected)
    return float(stats.chi2.sf(statistic, max(1, observed.size - 1)))


def fit(noise: NDArray[np.int64], scale: float, step: Fraction) -> float:
    """p-value of the claim that the noise, in steps, has this scale."""
    units = float(Fraction(scale) / step)
    ends = edges(units)
    below = stats.dlaplace.cdf(ends, 1 / units)
    expected = np.diff(below, prepend=0.0, append=1.0) * noise.size
    return chi_square(np.bincount(np.searchsorted(ends, noise), minlength=ends.size + 1), expected)


def law_p(outputs: Iterable[Any], chances: Mapping[Any, float]) -> float:
    """p-value of the claim that outputs have this law; 0 if one is none of the law."""
    observed = Counter(outputs)
    if not observed.keys() <= chances.keys():
        return 0.0
    expected = np.array([*chances.values()]) * sum(observed.values())
    return chi_square(np.array([observed[output] for output in chances]), expected)


def fit_row(drawn: NDArray[Any], row: Sequence[int]) -> float:
    """p-value of the claim that outputs have the masses of a row."""
    return law_p(drawn.tolist(), {y: v / sum(row) for y, v in enumerate(row)})


def residues(noise: NDArray[np.int64], modulus: int = 64) -> float:
    """p-value of a chi-square test that Z is uniform modulo a number far below scale / step."""
    return float(stats.chisquare(np.bincount(noise % modulus, minlength=modulus)).pvalue)


def same_law(one: NDArray[np.int64], two: NDArray[np.int64], units: float) -> float:
    """p-value of a two-sample chi-square test."""
    ends = edges(units)
    counts = np.array(
        [np.bincount(np.searchsorted(ends, x), minlength=ends.size + 1) for x in (one, two)]
    )
    counts = counts[:, counts.sum(axis=0) > 0]
    return float(stats.chi2_contingency(counts).pvalue)


def all_different(samples: list[bytes]) -> bool:
    """No two of several samples of noise are the same."""
    return all(one != two for one, two in itertools.combinations(samples, 2))


# --- Exact thresholds ---------------------------------------------------------------------------


def independent_sums(law: Any) -> list[Any]:
    """Closed forms of the cumulative sums in multiple-precision floats, not intervals."""
    rate = mpmath.mpf(law.rate.numerator) / law.rate.denominator
    if isinstance(law, SignedGeometric):
        b, total = rate * law.weight, 1 + mpmath.exp(-rate)
        below = [mpmath.exp(-rate - k * b) / total for k in range(law.cut, -1, -1)]
        return below + [1 - mpmath.exp(-k * b) / total for k in range(1, law.cut + 1)]
    assert isinstance(law, Digit)
    r = rate * law.weight
    return [mpmath.expm1(-(d + 1) * r) / mpmath.expm1(-law.base * r) for d in range(law.base - 1)]


def independent_floors(law: Any, bits: int) -> tuple[int, ...]:
    """floor(2**bits * c) for all sums c."""
    # The open interval (0, 1) is known; 1 minus less than the precision prints as 1.
    with mpmath.workdps(60 + bits // 3):
        return tuple(
            min(int(mpmath.floor(mpmath.ldexp(c, bits))), 2**bits - 1)
            for c in independent_sums(law)
        )


# --- Scripted words -----------------------------------------------------------------------------


def scripted(*answers: bytes) -> Callable[[int], bytes]:
    """A source of entropy that gives these answers, whose lengths must be those asked for."""
    rest: Iterator[bytes] = iter(answers)

    def entropy(count: int) -> bytes:
        answer = next(rest)
        assert len(answer) == count
        return answer

    return entropy


def every_draw(table: Table, x: int, later: bytes) -> NDArray[Any]:
    """The outcomes of all words of 16 bits, each followed by the byte ``later`` for ever."""
    words = np.arange(1 << 16)
    heads, rests = words >> 8, (words & 255) << 8
    cells = (x << table.bits) + (heads >> (8 - table.bits))
    open_ = table.guide[cells] < 0
    first = iter([heads.astype("<u1").tobytes(), rests[open_].astype("<u2").tobytes()])

    def entropy(count: int) -> bytes:
        answer = next(first, later * count)
        assert len(answer) == count
        return answer

    return table.draw(words.size, entropy, np.full(words.size, x))


def enumeration_is_exact(table: Table, rows: Sequence[Sequence[int]] | None = None) -> bool:
    """Words of 8 and 16 bits, taken one and all, give the outcomes of the definition."""
    one, words = 1 << 16, np.arange(1 << 16)
    for x, law in enumerate(table.laws):
        if rows is None:
            floors = np.array(independent_floors(law, 16))
            # U is the word itself, or just below the next word: it passes the sums below that.
            low, high = (np.searchsorted(floors, words, side=side) for side in ("left", "right"))
        else:
            scaled = [Fraction(c * one, sum(rows[x])) for c in accumulate(rows[x])]
            low = np.searchsorted([math.ceil(c) for c in scaled], words, side="right")
            high = np.searchsorted([math.floor(c) for c in scaled], words, side="right")
        if table.thresholds.size == 1:
            return bool((table.draw(1, scripted(), np.array([x])) == low[0]).all())
        outcomes = np.array(law.outcomes) if rows is None else np.arange(len(rows[x]))
        if not np.array_equal(every_draw(table, x, b"\0"), outcomes[low]):
            return False
        if not np.array_equal(every_draw(table, x, b"\xff"), outcomes[high]):
            return False
    return True
