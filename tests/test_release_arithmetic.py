# SPDX-License-Identifier: Apache-2.0
"""Exact arithmetic of a release: the fast way against fractions, and every edge of 64 bits."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError, UnchangedWarning
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.release import ReleaseSpec, arithmetic
from pufferfish.release.releaser import Releaser
from pufferfish.support import Lattice, Levels, make_lattice
from release_cases import job, level_job, one_by_one

INT64 = st.integers(-(2**63), 2**63 - 1)
UNITS = st.lists(st.one_of(st.integers(-1000, 1000), INT64), max_size=20)
STEPS = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6).filter(bool),
    st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(1, 10), Fraction(5, 2), Fraction(3)]),
    st.sampled_from([Fraction(1, 3), Fraction(1, 10**18), Fraction(1, 10**25), Fraction(1, 2**62)]),
)


def array(units: list[int]) -> Any:
    return np.array(units, dtype=np.int64)


def fits(values: list[int]) -> bool:
    return all(-(2**63) <= v < 2**63 for v in values)


@given(UNITS, st.data())
def test_sums_are_exact_or_refused(units: list[int], data: st.DataObject) -> None:
    noise = data.draw(st.lists(INT64, min_size=len(units), max_size=len(units)))
    sums = [u + z for u, z in zip(units, noise, strict=True)]
    if fits(sums):
        assert arithmetic.add(array(units), array(noise)).tolist() == sums
    else:
        with pytest.raises(InputError, match="beyond 64 bits"):
            arithmetic.add(array(units), array(noise))


@given(UNITS, STEPS)
def test_rounding_is_that_of_fractions(units: list[int], step: Fraction) -> None:
    nearest = [round(u * step) for u in units]
    # A product at the very edge may be refused although it fits: -2**63 and no more.
    try:
        assert arithmetic.rounded(array(units), step).tolist() == nearest
    except InputError:
        assert not fits(nearest) or min(nearest) == -(2**63)


@given(UNITS, STEPS)
def test_doubles_are_nearest(units: list[int], step: Fraction) -> None:
    expected = [float(u * step) for u in units]
    assert arithmetic.to_doubles(array(units), step).tolist() == expected


@given(UNITS, STEPS)
def test_text_is_exact(units: list[int], step: Fraction) -> None:
    texts = arithmetic.to_text(array(units), step).to_pylist()
    if arithmetic.decimal_places(step) is None:
        assert [float(t) for t in texts] == [float(u * step) for u in units]
        return
    assert [Fraction(t) for t in texts] == [u * step for u in units]
    assert all("e" not in t.lower() for t in texts)
    lengths = {len(t.partition(".")[2]) for t in texts}
    assert len(lengths) <= 1  # the length after the point tells nothing


def test_text_of_quarters() -> None:
    texts = arithmetic.to_text(array([-5, -1, 0, 3, 8]), Fraction(1, 4)).to_pylist()
    assert texts == ["-1.25", "-0.25", "0.00", "0.75", "2.00"]


def test_rounding_ties_go_to_even() -> None:
    assert arithmetic.rounded(array([-3, -1, 1, 3, 5]), Fraction(1, 2)).tolist() == [-2, 0, 0, 2, 2]


def test_beyond_every_double_is_refused() -> None:
    with pytest.raises(InputError, match="beyond every double"):
        arithmetic.to_doubles(array([2]), Fraction(10**310, 3))


def test_support_beyond_64_bits_is_refused() -> None:
    lattice = Lattice(Fraction(1), 2**63 - 1, array([0, 1]))
    with pytest.raises(InputError, match="64 bits"):
        arithmetic.atom_units(lattice)
    last = Lattice(Fraction(1), 2**63 - 2, array([0, 1]))
    assert arithmetic.atom_units(last).tolist() == [2**63 - 2, 2**63 - 1]
    low = Lattice(Fraction(1), -(2**63), array([0, 2**53]))
    assert arithmetic.atom_units(low).tolist() == [-(2**63), -(2**63) + 2**53]


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=6, unique=True),
    st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(1, 3), Fraction(5, 2), Fraction(3)]),
    st.booleans(),
    st.one_of(st.none(), st.tuples(st.integers(-30, 30), st.integers(1, 40))),
    st.data(),
)
def test_fast_release_is_the_slow_one(
    units: list[int],
    step: Fraction,
    rounding: bool,
    bounds: tuple[int, int] | None,
    data: st.DataObject,
) -> None:
    values = [u * step for u in units]
    support = make_lattice(values, step)
    out_step = Fraction(1) if rounding and step.denominator > 1 else step
    limits = None
    if bounds is not None:
        limits = (out_step * bounds[0], out_step * (bounds[0] + bounds[1]))
    spec = ReleaseSpec(support, None, DiscreteLaplace(1.0, step), bounds=limits, round=rounding)
    rows = data.draw(st.lists(st.integers(0, support.size - 1), min_size=1, max_size=30))
    noise = data.draw(st.lists(st.integers(-200, 200), min_size=len(rows), max_size=len(rows)))
    releaser = Releaser(spec)
    sums = arithmetic.add(arithmetic.atom_units(support)[array(rows)], array(noise))
    fast = [releaser.step * v for v in releaser.finish(sums).tolist()]
    slow = [
        one_by_one(support.value(k), z, step, rounding=rounding, bounds=limits)
        for k, z in zip(rows, noise, strict=True)
    ]
    assert fast == slow


def test_noise_off_the_lattice_is_refused() -> None:
    support = make_lattice([Fraction(0), Fraction(1)])
    with pytest.raises(InputError, match="noise belongs on the lattice of the support"):
        Releaser(ReleaseSpec(support, None, DiscreteLaplace(1.0, Fraction(1, 2))))


def test_unordered_levels_are_refused() -> None:
    support = Levels(("a", "b"))
    with pytest.raises(InputError, match="order"):
        Releaser(ReleaseSpec(support, None, DiscreteLaplace(1.0, Fraction(1))))


def test_scale_zero_needs_consent() -> None:
    with pytest.raises(InputError, match="--allow-unchanged"):
        Releaser(job([0, 1], scale=0.0))
    with pytest.warns(UnchangedWarning, match="unchanged"):
        releaser = Releaser(job([0, 1], scale=0.0, allow_unchanged=True))
    assert releaser.draw(array([0, 1, 1])).tolist() == [0, 1, 1]
    assert Releaser(job([0, 1], scale=0.0, min_scale=2)).mechanism.scale == 2.0
    assert Releaser(job([0, 1], scale=3.0, min_scale=2)).mechanism.scale == 3.0


@pytest.mark.parametrize("wrong", [0, -1, "x", float("nan"), float("inf"), 10**400])
def test_min_scale_is_a_positive_number(wrong: Any) -> None:
    with pytest.raises(InputError):
        job([0, 1], min_scale=wrong)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9).filter(bool))
def test_min_scale_is_never_below_what_was_asked(asked: Fraction) -> None:
    for given_as in (asked, f"{asked.numerator}/{asked.denominator}"):
        scale = job([0, 1], min_scale=given_as).min_scale
        assert scale is not None
        assert scale >= asked > Fraction(math.nextafter(scale, 0))
    assert job([0, 1], min_scale=2.5).min_scale == 2.5


@pytest.mark.parametrize(
    "bounds, message",
    [
        ((1, 0), "below the upper"),
        ((1, 1), "below the upper"),
        ((0,), "two numbers"),
        (("a", 1), "must be a number"),
        ((0, float("inf")), "finite"),
    ],
)
def test_bounds_are_two_numbers_in_order(bounds: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job([0, 1], bounds=bounds)


def test_bounds_must_be_possible_outputs() -> None:
    with pytest.raises(InputError, match=r"multiples of 1, .* the nearest inside are 1 and 9"):
        Releaser(job([0, 1], bounds=("0.5", "9.5")))
    assert Releaser(job(["0.5"], bounds=(Decimal("0.5"), 3))).step == Fraction(1, 2)
    # Rounded outputs are integers, and so must their bounds be.
    with pytest.raises(InputError, match="multiples of 1"):
        Releaser(job(["0.5"], bounds=("0.5", "9.5"), round=True))
    wide = Releaser(job([0, 1], bounds=(-(10**30), 10**30)))
    assert wide.finish(array([5])).tolist() == [5]


def test_levels_come_back_only_with_round_and_bounds_inside_the_codes() -> None:
    names = ["low", "mid", "high"]
    inside = Releaser(level_job(names, round=True, bounds=(0, 2)))
    assert inside.numpy(inside.finish(array([-7, 1, 9]))).tolist() == ["low", "mid", "high"]
    for options in ({}, {"round": True}, {"bounds": (0, 2)}, {"round": True, "bounds": (0, 3)}):
        codes = Releaser(level_job(names, **options))
        assert codes.levels is None
        assert codes.numpy(array([0, 1])).tolist() == [0, 1]


@pytest.mark.parametrize("wrong", ["klamp", "", None])
def test_out_of_support_has_two_choices(wrong: Any) -> None:
    with pytest.raises(InputError, match="'refuse' or 'clamp'"):
        job([0, 1], out_of_support=wrong)
