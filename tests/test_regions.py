# SPDX-License-Identifier: Apache-2.0
"""Regions: exact intervals rounded outwards, one level for all cells together, declared cells."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import pufferfish.intervals
from pufferfish.errors import InputError
from pufferfish.intervals import UNIT, interval, tail_sum
from pufferfish.precision import precision
from pufferfish.prior import Prior
from pufferfish.regions import Ball, Box, Confidence, TVBall, regions_of
from pufferfish.scenario import Scenario
from pufferfish.tables.rules import Rules, make_rules

COUNTS = {"a": [376, 204], "b": [34, 35], "c": [0, 12]}


def at_least(count: int, total: int, p: Fraction) -> Fraction:
    """P(X >= count) for X binomial, exactly."""
    terms = range(count, total + 1)
    return sum((math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in terms), Fraction(0))


def ends_are_outward(count: int, total: int, alpha: Fraction) -> None:
    lower, upper = (Fraction(end, UNIT) for end in interval(count, total, alpha))
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
    honest = pufferfish.intervals.lower_end

    def inwards(count: int, total: int, tail: Fraction) -> int:
        end = honest(count, total, tail)
        return end + (min(end, UNIT - end) >> 59)

    ends_are_outward(7, 20, Fraction(1, 20))
    for which in (7, 13):  # the lower end, the upper one
        monkeypatch.setattr(
            pufferfish.intervals,
            "lower_end",
            lambda c, n, t, which=which: (inwards if c == which else honest)(c, n, t),
        )
        with pytest.raises(AssertionError):
            ends_are_outward(7, 20, Fraction(1, 20))


@pytest.mark.parametrize("total", [1, 69, 580, 22696, 10**6, 10**8, 10**12])
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.3, 0.5, 0.99, 1.0])
def test_ends_agree_with_scipy(total: int, share: float) -> None:
    from scipy import stats

    count, alpha = round(share * total), Fraction(1, 720)
    lower, upper = (end / UNIT for end in interval(count, total, alpha))
    half = float(alpha / 2)
    if count:
        expected = stats.beta.ppf(half, count, total - count + 1)
        assert lower == pytest.approx(expected, rel=1e-9)
    if count < total:
        expected = stats.beta.ppf(half, total - count, count + 1)
        assert 1 - upper == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 40), st.data())
def test_the_continued_fraction_encloses_the_sum(total: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, total))
    # Anywhere where the count is above the mean, up to the end of what is promised.
    most = UNIT * (count + 1) // (total + 1) - 1
    p = min(max(1, int(data.draw(st.floats(0, 1)) * most)), UNIT - 1)
    exact = Fraction(p, UNIT)
    first = at_least(count, total, exact) - (
        at_least(count + 1, total, exact) if count < total else 0
    )
    ratio = at_least(count, total, exact) / first
    with precision(300):
        found = tail_sum(count, total, p)
        assert found.contains(arb(ratio.numerator) / ratio.denominator)
        assert found.rad() <= found.mid() * 2.0**-79


def test_ends_agree_with_the_incomplete_beta_function() -> None:
    import mpmath

    with mpmath.workdps(40):
        for count, total in ((1, 32561), (204, 580), (13, 1000), (34, 69)):
            lower = mpmath.mpf(interval(count, total, Fraction(1, 360))[0]) / UNIT
            tail = mpmath.betainc(count, total - count + 1, 0, lower, regularized=True)
            assert abs(tail * 720 - 1) < 1e-15 * count + 1e-15


def test_one_level_for_all_cells_of_the_secrets_in_the_pairs() -> None:
    prior = Prior.from_counts(COUNTS, support=[0, 1], confidence="0.95")
    assert prior.region == Confidence(Fraction(19, 20))
    (two,) = regions_of(Scenario(prior, [("a", "b")]))
    assert isinstance(two, Box)
    assert (two.lower[0, 0], two.upper[0, 0]) == interval(376, 580, Fraction(1, 20) / 4)
    (three,) = regions_of(Scenario(prior))
    assert isinstance(three, Box)
    assert three.lower.shape == (3, 2)
    assert (three.lower[0, 0], three.upper[0, 0]) == interval(376, 580, Fraction(1, 20) / 6)
    assert three.lower[2, 0] == 0
    assert three.upper[2, 1] == UNIT
    assert three.contains(0, [Fraction(376, 580), Fraction(204, 580)])
    assert not three.contains(0, [Fraction(1, 2), Fraction(1, 2)])
    assert not three.contains(0, [Fraction(376, 580), Fraction(376, 580)])


def test_several_adversaries_share_the_level() -> None:
    one = Prior.from_counts({"a": [3, 4], "b": [5, 6]}, support=[0, 1], confidence=0.9)
    other = Prior.from_counts({"a": [9, 4, 0], "b": [5, 1, 0]}, support=[0, 1, 2], confidence=0.9)
    exact = Prior.from_mapping({"a": {"0": 1}, "b": {"1": 1}})
    first, second, third = regions_of(Scenario([one, other, exact]))
    assert isinstance(first, Box)
    assert isinstance(second, Box)
    assert isinstance(third, Ball)
    assert third.is_exact
    # Supports are widened to their union: 3 values, 2 secrets, 2 counted adversaries.
    assert (first.lower[0, 0], first.upper[0, 0]) == interval(3, 7, Fraction(1, 10) / 12)
    assert first.upper[0, 2] == interval(0, 7, Fraction(1, 10) / 12)[1]


def test_balls() -> None:
    prior = Prior.from_mapping({"a": {"0": ".5", "1": ".5"}, "b": {"0": 1}}, tv_radius="1/8")
    assert prior.region == TVBall(Fraction(1, 8))
    (ball,) = regions_of(Scenario(prior))
    assert isinstance(ball, Ball)
    assert ball.contains(0, [Fraction(5, 8), Fraction(3, 8)])
    assert not ball.contains(0, [Fraction(2, 3), Fraction(1, 3)])
    assert not ball.contains(1, [Fraction(9, 8), Fraction(-1, 8)])
    assert not ball.is_exact


@pytest.mark.parametrize(
    "given, words",
    [
        ({"confidence": 95}, "95 % is 0.95"),
        ({"confidence": 1}, "below 1"),
        ({"confidence": 0}, "above 0"),
        ({"confidence": "nan"}, "finite"),
        ({"tv_radius": -0.1}, "from 0 to 1"),
        ({"tv_radius": 1.5}, "from 0 to 1"),
        ({"confidence": 0.9, "tv_radius": 0.1}, "both were given"),
    ],
)
def test_nonsense_is_refused(given: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Prior.from_counts(COUNTS, support=[0, 1], **given)


def test_probabilities_have_no_confidence() -> None:
    prior = Prior.from_mapping({"a": {"0": 1}, "b": {"1": 1}})
    with pytest.raises(InputError, match="counts of rows"):
        prior.with_region(confidence=0.95)
    with pytest.raises(InputError, match="counts of rows"):
        regions_of(Scenario(prior), confidence=0.95)
    assert prior.with_region(tv_radius=0.1).with_region().region is None


def test_tables_carry_a_region_and_declared_values() -> None:
    import pandas as pd

    frame = pd.DataFrame({"s": list("aabbb"), "x": [0, 2, 2, 4, 4]})
    plain = Prior.from_table(frame, secret="s", public="x")
    assert plain.region is None
    prior = Prior.from_table(
        frame, secret="s", public="x", support=[0, 1, 2, 3, "4", 6.5], confidence=0.95
    )
    assert prior.region == Confidence(Fraction(19, 20))
    assert [prior.support.name(k) for k in range(6)] == ["0", "1", "2", "3", "4", "6.5"]
    assert prior.counts.tolist() == [[1, 0, 1, 0, 0, 0], [0, 0, 1, 0, 2, 0]]
    assert prior.report is not None
    assert Rules.from_dict(prior.report.rules.to_dict()) == prior.report.rules
    with pytest.raises(InputError, match=r"lacks 1 of the distinct values .* data row 4"):
        Prior.from_table(frame, secret="s", public="x", support=[0, 1, 2])
    text = frame.assign(x=list("uvuvv"))
    with pytest.raises(InputError, match="declare them with levels"):
        Prior.from_table(text, secret="s", public="x", support=[0, 1])
    levels = Prior.from_table(
        text, secret="s", public="x", levels=["u", "v", "w"], order=["u", "v", "w"], tv_radius=0.1
    )
    assert levels.counts[:, 2].tolist() == [0, 0]
    with pytest.raises(InputError, match="a support is for numbers"):
        make_rules(public="x", levels=["a"], support=[1])


def test_declared_values_are_rounded_with_the_rest() -> None:
    import pandas as pd

    frame = pd.DataFrame({"s": list("aabb"), "x": [0.14, 0.1, 0.51, 0.5]})
    prior = Prior.from_table(frame, secret="s", public="x", step="0.1", support=[0.1, 0.3, 0.5])
    assert [prior.support.name(k) for k in range(3)] == ["0.1", "0.3", "0.5"]
    assert np.array_equal(prior.counts, [[2, 0, 0], [0, 0, 2]])
