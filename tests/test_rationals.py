# SPDX-License-Identifier: Apache-2.0
"""Numbers are read as they print, refused where they are none, and rounded up once."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.rationals import (
    NotFinite,
    float_down,
    float_up,
    lcm_of_denominators,
    parse_epsilon,
    parse_number,
    parse_text,
    show,
)


@pytest.mark.parametrize(
    "text, value",
    [
        ("0.1", Fraction(1, 10)),
        (" -3.2 ", Fraction(-16, 5)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1e-15", Fraction(1, 10**15)),
        ("+2E3", Fraction(2000)),
        ("1/3", Fraction(1, 3)),
        ("-1 / 3", Fraction(-1, 3)),
        ("1,200", Fraction(1200)),
        ("-1,234,567.5", Fraction(-2469135, 2)),
        ("9007199254740993", Fraction(9007199254740993)),
        ("1,200.", Fraction(1200)),
        ("1e-1000", Fraction(1, 10**1000)),
        ("10e-1001", Fraction(1, 10**1000)),
        (f"0.{'0' * 990}1e+991", Fraction(1)),
        (f"1{'0' * 990}e-990", Fraction(1)),
        ("0e999", Fraction(0)),
        ("-0.0e-99999999999", Fraction(0)),
    ],
)
def test_texts_that_are_numbers(text: str, value: Fraction) -> None:
    assert parse_text(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "1,5",
        "12,00",
        "0,123",
        "00,123",
        "1 2",
        "0x10",
        "1_000",
        "--1",
        "1/2/3",
        "true",
        "\u0661",
    ],
)
def test_texts_that_are_no_numbers(text: str) -> None:
    assert parse_text(text) is None


@pytest.mark.parametrize(
    "text, fault",
    [
        *((text, "is not finite") for text in ("inf", "-Infinity", "nan", "NaN", "1e999", "1e309")),
        *((text, "is not finite") for text in ("1/0", "1e99999999999", f"1{'0' * 400}/1")),
        *((text, "is too small") for text in ("1e-1001", "-1e-99999999999")),
        *((text, "is longer than 2000") for text in ("1" * 5000, f"0.{'0' * 2000}1")),
    ],
)
def test_texts_that_are_not_finite(text: str, fault: str) -> None:
    with pytest.raises(NotFinite) as caught:
        parse_text(text)
    assert caught.value.fault.startswith(fault)


def test_no_number_that_is_read_is_too_long_to_print() -> None:
    longest = [f"9.{'9' * 1990}e-1000", f"-0.{'0' * 300}{'9' * 1690}e-699", f"1/{'9' * 999}"]
    for text in longest:
        value = parse_text(text)
        assert value is not None
        assert Fraction(show(value)) == value
        assert parse_number(value, "p") == value


def test_long_words_are_no_numbers() -> None:
    assert parse_text("x" * 10**6) is None


@pytest.mark.parametrize(
    "given_value",
    [0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.float32(0.1)],
)
def test_every_kind_of_number_is_read_as_it_prints(given_value: object) -> None:
    assert parse_number(given_value, "p") == Fraction(1, 10)


@pytest.mark.parametrize("given_value", [1, np.int64(1), np.uint8(1), 1.0, "1", True][:5])
def test_integers(given_value: object) -> None:
    assert parse_number(given_value, "p") == 1


@pytest.mark.parametrize(
    "given_value",
    [True, np.bool_(True), None, [], "x", "1,5", math.nan, math.inf, Decimal("nan"), 1j, "inf"],
)
def test_what_is_no_number_is_refused_by_name(given_value: object) -> None:
    with pytest.raises(InputError, match="the step must be a"):
        parse_number(given_value, "the step")


@pytest.mark.parametrize(
    "epsilon", [0, -1, "-0.5", math.nan, math.inf, 5e-324, "text", "1,5", 1e301, None, True]
)
def test_epsilons_that_are_refused(epsilon: object) -> None:
    with pytest.raises(InputError, match="epsilon"):
        parse_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", [1, np.int64(1), np.float64(1.0), Decimal(1), "1", "1/1"])
def test_epsilons_that_are_one(epsilon: object) -> None:
    assert parse_epsilon(epsilon) == 1


@given(st.fractions())
def test_a_float_is_rounded_up_by_less_than_one_unit(value: Fraction) -> None:
    up = float_up(value)
    assert Fraction(up) >= value
    assert Fraction(math.nextafter(up, -math.inf)) < value
    assert Fraction(float_down(value)) <= value


def test_rounding_up_beyond_doubles_is_infinite() -> None:
    assert float_up(Fraction(10) ** 400) == math.inf
    assert float_up(-(Fraction(10) ** 400)) == -1.7976931348623157e308
    assert float_up(Fraction(1, 10**400)) == 5e-324


@given(st.fractions())
def test_shown_numbers_are_exact(value: Fraction) -> None:
    assert Fraction(show(value)) == value


def test_least_common_multiple() -> None:
    assert lcm_of_denominators([Fraction(1, 4), Fraction(1, 6), Fraction(3)]) == 12
    assert lcm_of_denominators([]) == 1
