# SPDX-License-Identifier: Apache-2.0
"""Thresholds: exact, for any law and any number of bits."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from noise_checks import independent_floors, independent_sums
from pufferfish.mechanisms.thresholds import Digit, Row, SignedGeometric

LAWS: list[SignedGeometric | Digit] = [
    *(SignedGeometric(Fraction(10**9), 1, 2), SignedGeometric(Fraction(2), 1, 6)),
    *(SignedGeometric(Fraction(1, 3), 1, 40), SignedGeometric(1 / Fraction(3.7), 1, 45)),
    *(SignedGeometric(Fraction(1, 50), 1, 600), SignedGeometric(Fraction(1, 1000), 8, 300)),
    *(SignedGeometric(Fraction(1, 10**18), 2**53, 700), SignedGeometric(Fraction(1, 10**40), 9, 9)),
    *(Digit(Fraction(2), 1, 2), Digit(Fraction(1, 1000), 1, 8), Digit(Fraction(1, 10**6), 64, 128)),
    *(Digit(Fraction(1, 10**18), 2**44, 512), Digit(Fraction(1, 10**40), 1, 16)),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("bits", [64, 192])
def test_thresholds_are_exact(law: SignedGeometric | Digit, bits: int) -> None:
    floors, exact = law.floors(bits)
    assert floors == independent_floors(law, bits)
    assert not any(exact)
    assert len(law.outcomes) == len(floors) + 1


@pytest.mark.parametrize("law", [law for law in LAWS if 1e-20 < law.rate <= 2], ids=str)
def test_the_check_rejects_thresholds_in_floats(law: SignedGeometric | Digit) -> None:
    floats = [min(math.floor(float(c) * 2**64), 2**64 - 1) for c in independent_sums(law)]
    assert tuple(floats) != independent_floors(law, 64)


@given(
    st.fractions(min_value=Fraction(1, 10**18), max_value=50, max_denominator=10**18).filter(bool),
    st.integers(1, 60),
)
def test_thresholds_of_any_law_are_exact(rate: Fraction, size: int) -> None:
    for law in (SignedGeometric(rate, size, size), Digit(rate, size, size + 1)):
        assert law.floors(64)[0] == independent_floors(law, 64)


@given(st.lists(st.integers(0, 10**30), min_size=1, max_size=8).filter(any), st.integers(1, 200))
def test_thresholds_of_a_row_are_exact(entries: list[int], bits: int) -> None:
    row = Row(entries)
    floors, exact = row.floors(bits)
    last = max(y for y, entry in enumerate(entries) if entry)
    expected = [
        Fraction(sum(entries[: y + 1]) << bits, sum(entries)) for y in range(last) if entries[y]
    ]
    assert floors == tuple(math.floor(c) for c in expected)
    assert exact == tuple(c.denominator == 1 for c in expected)
    assert row.outcomes == [y for y, entry in enumerate(entries) if entry]


def test_an_unproved_floor_is_computed_with_more_bits() -> None:
    """Where balls say nothing until many bits are asked for."""
    asked = []

    class Widened(Digit):
        def cumulative(self) -> list[arb]:
            asked.append(ctx.prec)
            sums = super().cumulative()
            return [arb(0.5, 0.5)] * len(sums) if ctx.prec < 300 else sums

    law = Widened(Fraction(1, 7), 1, 5)
    assert law.floors(64)[0] == independent_floors(Digit(Fraction(1, 7), 1, 5), 64)
    assert asked == [160, 256, 448]
