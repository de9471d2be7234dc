# SPDX-License-Identifier: Apache-2.0
"""Ambiguity sets: exact intervals rounded outwards, and balls that are balls."""

import math
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.priors import ambiguity
from pufferfish.priors.ambiguity import UNIT, Region, ball_around, clopper_pearson


def at_least(count: int, total: int, p: Fraction) -> Fraction:
    """P(X >= count) for X binomial, exactly."""
    terms = range(count, total + 1)
    return sum((math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in terms), Fraction(0))


def ends_are_outward(count: int, total: int, alpha: Fraction) -> None:
    lower, upper = (Fraction(end, UNIT) for end in clopper_pearson(count, total, alpha))
    assert 0 <= lower <= Fraction(count, total) <= upper <= 1
    assert (lower == 0) == (count == 0)
    assert (upper == 1) == (count == total)
    if count > 0:
        assert at_least(count, total, lower) <= alpha / 2
        assert at_least(count, total, lower + min(lower, 1 - lower) / 2**60) > alpha / 2
    if count < total:
        q = 1 - upper
        assert at_least(total - count, total, q) <= alpha / 2
        assert at_least(total - count, total, q + min(q, upper) / 2**60) > alpha / 2


ALPHAS = st.sampled_from([Fraction(1, 20), Fraction(1, 3), Fraction(1, 10**6), Fraction(1, 10**20)])


@given(st.integers(1, 30), st.data(), ALPHAS)
def test_ends_are_outward_and_near(total: int, data: st.DataObject, alpha: Fraction) -> None:
    ends_are_outward(data.draw(st.integers(0, total)), total, alpha)


def test_mutant_an_end_rounded_inwards(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ambiguity._lower_end
    ends_are_outward(7, 20, Fraction(1, 20))
    for which in (7, 13):  # the lower end, the upper one

        def inwards(count: int, total: int, tail: Fraction, which: int = which) -> int:
            end = honest(count, total, tail)
            return end + (min(end, UNIT - end) >> 59) * (count == which)

        monkeypatch.setattr(ambiguity, "_lower_end", inwards)
        with pytest.raises(AssertionError):
            ends_are_outward(7, 20, Fraction(1, 20))


@pytest.mark.parametrize("alpha", [Fraction(9, 10), Fraction(1, 720)])
@pytest.mark.parametrize("total", [1, 580, 22696, 10**8, 10**12])
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.3, 0.99, 1.0])
def test_ends_agree_with_scipy(total: int, share: float, alpha: Fraction) -> None:
    from scipy import stats

    count, half = round(share * total), float(alpha / 2)
    lower, upper = (end / UNIT for end in clopper_pearson(count, total, alpha))
    if count:
        expected = stats.beta.ppf(half, count, total - count + 1)
        assert lower == pytest.approx(expected, rel=1e-9)
    if count < total:
        expected = stats.beta.ppf(half, total - count, count + 1)
        assert 1 - upper == pytest.approx(expected, rel=1e-9)


def test_ends_near_the_grid_are_outward() -> None:
    tiny = Fraction(1, 10**290)
    assert clopper_pearson(1, 10**12, tiny)[0] == 0  # the true end is below 2**-160
    assert 0 < clopper_pearson(8, 10**4, tiny)[0] < 2**-70 * UNIT


@pytest.mark.parametrize("count", [1, 10**15, 10**20 // 3])
def test_ends_of_more_rows_than_there_are(count: int) -> None:
    lower, upper = (end / UNIT for end in clopper_pearson(count, 10**20, Fraction(1, 20)))
    assert lower < count / 10**20 < upper < (2 * count + 5) / 10**20


# Regions


def extremes(region: Region, k: list[int]) -> tuple[Fraction, Fraction]:
    """The largest and smallest <P, k>, by pouring in every order of the cells."""
    found = []
    for order in permutations(range(len(k))):
        for free in order:
            cells, left = list(region.least), region.spread
            for x in order:
                poured = min(left, region.room[x])
                cells[x] += poured
                left -= poured
            assert left == 0
            cells[free] += region.free
            assert sum(cells) == region.unit
            found.append(Fraction(sum(c * v for c, v in zip(cells, k, strict=True)), region.unit))
    return max(found), min(found)


def over_the_ball(masses: list[int], tau: Fraction, k: list[int]) -> tuple[Fraction, Fraction]:
    """The same over a ball by its definition: move tau from some cells to one other."""
    total = sum(masses)
    ends = []
    for sign in (1, -1):
        value = Fraction(sum(m * v for m, v in zip(masses, k, strict=True)), total)
        best, left = max(sign * v for v in k), tau
        for v, m in sorted(zip(k, masses, strict=True), key=lambda pair: sign * pair[0]):
            moved = min(left, Fraction(m, total))
            value += moved * (sign * best - v)
            left -= moved
        ends.append(value)
    return ends[0], ends[1]


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any),
    st.fractions(0, 1, max_denominator=20),
    st.data(),
)
def test_a_ball_has_the_extremes_of_its_definition(
    masses: list[int], tau: Fraction, data: st.DataObject
) -> None:
    k = data.draw(st.lists(st.integers(0, 9), min_size=len(masses), max_size=len(masses)))
    region = ball_around(masses, sum(masses), tau)
    assert extremes(region, k) == over_the_ball(masses, tau, k)
