# SPDX-License-Identifier: Apache-2.0
"""Numbers are read as they print, refused where they are none, and rounded up once."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.numbers import (
    NotFinite,
    float_down,
    float_up,
    parse_epsilon,
    parse_number,
    parse_text,
    precision,
    rounded_up,
    show,
    show_short,
    text_of,
)


@pytest.mark.parametrize(
    "text, value",
    [
        ("0.1", Fraction(1, 10)), (" -3.2 ", Fraction(-16, 5)), (".5", Fraction(1, 2)),
        ("5.", Fraction(5)), ("1e-15", Fraction(1, 10**15)), ("+2E3", Fraction(2000)),
        ("1/3", Fraction(1, 3)), ("-1 / 3", Fraction(-1, 3)),
        ("9007199254740993", Fraction(9007199254740993)), ("1e-1000", Fraction(1, 10**1000)),
        ("10e-1001", Fraction(1, 10**1000)), (f"0.{'0' * 990}1e+991", Fraction(1)),
        (f"1{'0' * 990}e-990", Fraction(1)), ("0e999", Fraction(0)),
        ("-0.0e-99999999999", Fraction(0)),
    ],
)  # fmt: skip
def test_texts_that_are_numbers(text: str, value: Fraction) -> None:
    assert parse_text(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "abc", "1,5", "1,200", "0,123", "1 2", "0x10", "1_000", "--1", "1/2/3", "true", "\u0661",
     "x" * 10**6],
)  # fmt: skip
def test_texts_that_are_no_numbers(text: str) -> None:
    assert parse_text(text) is None


@pytest.mark.parametrize(
    "text, fault",
    [
        *((text, "not a finite") for text in ("inf", "-Infinity", "nan", "NaN", "1e999", "1e309")),
        *((text, "not a finite") for text in ("1e99999999999", f"1{'0' * 400}/1")),
        ("1/0", "not a finite"), ("1e-1001", "too small"), ("-1e-99999999999", "too small"),
        ("1" * 5000, "too long"), (f"0.{'0' * 2000}1", "too long"),
    ],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_texts_that_are_not_finite(text: str, fault: str) -> None:
    with pytest.raises(NotFinite, match=fault):
        parse_text(text)


def test_no_number_that_is_read_is_too_long_to_print() -> None:
    longest = [f"9.{'9' * 1990}e-1000", f"-0.{'0' * 300}{'9' * 1690}e-699", f"1/{'9' * 999}"]
    for text in longest:
        value = parse_text(text)
        assert value is not None
        assert Fraction(show(value)) == value
        assert parse_number(value, "p") == value


@pytest.mark.parametrize(
    "value",
    [0.1, "0.1", "1/10", Decimal("0.1"), Fraction(1, 10), np.float32(0.1), np.uint8(1), 1, "1"],
)
def test_every_kind_of_number_is_read_as_it_prints(value: Any) -> None:
    assert parse_number(value, "p") == parse_epsilon(value)
    assert parse_number(value, "p") in (1, Fraction(1, 10))


@pytest.mark.parametrize(
    "value",
    [True, np.bool_(True), None, [], "x", "1,5", math.nan, math.inf, Decimal("nan"), 1j, "inf",
     10**4000, Fraction(1, 10**4000)],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_name(value: Any) -> None:
    with pytest.raises(InputError, match=r"the step (must be a|has more than 3000)"):
        parse_number(value, "the step")


@pytest.mark.parametrize(
    "epsilon", [0, -1, "-0.5", math.nan, math.inf, 5e-324, "text", "1,5", 1e301, None, True]
)
def test_epsilons_that_are_refused(epsilon: Any) -> None:
    with pytest.raises(InputError, match="epsilon"):
        parse_epsilon(epsilon)


@given(st.fractions())
def test_a_float_is_rounded_up_by_less_than_one_unit(value: Fraction) -> None:
    up = float_up(value)
    assert Fraction(up) >= value
    assert Fraction(math.nextafter(up, -math.inf)) < value
    assert Fraction(float_down(value)) <= value
    assert str(float_down(Fraction(0))) == "0.0"


def test_rounding_up_beyond_doubles_is_infinite() -> None:
    assert float_up(Fraction(10) ** 400) == math.inf
    assert float_up(-(Fraction(10) ** 400)) == -1.7976931348623157e308
    assert float_up(Fraction(1, 10**400)) == 5e-324


@given(st.fractions())
def test_shown_numbers_are_exact(value: Fraction) -> None:
    assert Fraction(show(value)) == value
    short = show_short(value)
    assert Fraction(short) == pytest.approx(value, rel=1e-5)
    assert len(short) <= 24


def test_losses_are_shown_rounded_up() -> None:
    assert rounded_up(0.500155367, 5) == "0.50016"
    assert rounded_up(math.inf) == "inf"
    assert rounded_up(0.0) == "0"
    assert rounded_up(10.0) == "10.00000000"
    assert rounded_up(0.1, 5) == "0.10001"  # the double is above one tenth
    assert Fraction(rounded_up(0.1)) >= Fraction(0.1)
    assert rounded_up(1e-300, 3) == "1.01e-300"


@pytest.mark.parametrize(
    "value, text",
    [
        (None, ""), (" a ", "a"), (True, "true"), (np.bool_(False), "false"), (1.0, "1"),
        (0.1, "0.1"), (np.float32(0.1), "0.1"), (2.0**53, "9007199254740992.0"), (math.nan, "nan"),
        (10**20, str(10**20)), (np.int8(-3), "-3"), (Decimal("1.50"), "1.5"),
        (Decimal("inf"), "Infinity"), (Decimal("1e5000"), "1E+5000"), (Fraction(1, 3), "1/3"),
    ],
)  # fmt: skip
def test_values_as_text(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    "value", [b"x", [1], {}, (), 10**4000, Fraction(1, 10**4000)], ids=lambda v: repr(v)[:9]
)
def test_values_that_are_no_text(value: Any) -> None:
    with pytest.raises(InputError, match="found"):
        text_of(value)


def test_precision_is_put_back() -> None:
    from flint import ctx

    before = ctx.prec
    with precision(300):
        assert ctx.prec == 300
        with pytest.raises(KeyError), precision(64):
            raise KeyError
        assert ctx.prec == 300
    assert ctx.prec == before
