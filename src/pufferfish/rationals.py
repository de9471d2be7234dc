# SPDX-License-Identifier: Apache-2.0
"""Exact numbers: reading them as they print, and turning them into floats once, rounded up."""

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import SupportsFloat

from pufferfish.errors import InputError

#: What a probability, an epsilon or a value may be given as.
Number = int | float | str | Decimal | Fraction | SupportsFloat

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_FRACTION = re.compile(r"([+-]?\d+)\s*/\s*(\d+)", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_NON_FINITE = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
#: Exponents beyond this are no number that a table holds; 1e999 is refused as not finite.
_MAX_EXPONENT = 400
#: No number that a table holds has more characters; Python refuses to read 4,300 digits.
_MAX_LENGTH = 2000
#: Numerators and denominators beyond this are refused: they could no longer be shown.
_MAX_BITS = 6000


class NotFinite(InputError):
    """The text stands for infinity, for no number, or for one beyond every double."""


def parse_text(text: str) -> Fraction | None:
    """Return the exact number that a text prints, or None when it is no number.

    Decimals (``-3.2``, ``.5``, ``1e-15``), fractions (``1/3``) and groups of thousands
    (``1,200``) are numbers.

    Raises
    ------
    NotFinite
        For ``inf``, ``nan``, ``1e999`` and the like: a number was meant, but it is not finite.
    """
    stripped = text.strip()
    if len(stripped) > _MAX_LENGTH and not stripped.strip("+-.0123456789eE/, "):
        raise NotFinite(f"a number of {len(stripped)} characters is too long")
    if _DECIMAL.fullmatch(stripped):
        exponent = stripped.lower().partition("e")[2]
        if exponent and abs(int(exponent)) > _MAX_EXPONENT:
            raise NotFinite(f"{stripped!r} is not a finite number")
        value = Fraction(stripped)
        if abs(value) > Fraction(1.7976931348623157e308):
            raise NotFinite(f"{stripped!r} is not a finite number")
        return value
    match = _FRACTION.fullmatch(stripped)
    if match:
        if int(match[2]) == 0:
            raise NotFinite(f"{stripped!r} divides by zero")
        return Fraction(int(match[1]), int(match[2]))
    if _THOUSANDS.fullmatch(stripped):
        return Fraction(stripped.replace(",", ""))
    if _NON_FINITE.fullmatch(stripped):
        raise NotFinite(f"{stripped!r} is not a finite number")
    return None


def parse_number(value: object, what: str) -> Fraction:
    """Return the exact value of a number; floats are read as the decimal they print as.

    Parameters
    ----------
    value : int, float, Decimal, Fraction, NumPy scalar or str
        The number; a string holds a decimal or a fraction.
    what : str
        What the number is, for the error message.

    Raises
    ------
    InputError
        If it is no finite number.
    """
    if isinstance(value, str):
        try:
            parsed = parse_text(value) if "," not in value else None
        except NotFinite as error:
            raise InputError(f"{what} must be a finite number, but {error}") from None
        if parsed is None:
            raise InputError(
                f"{what} must be a number such as 0.5, 1e-3 or 1/3, but {value!r} was given"
            )
        return parsed
    if type(value).__name__ in ("bool", "bool_"):
        raise InputError(f"{what} must be a number, but {value!r} was given")
    if isinstance(value, Rational):  # int, Fraction, NumPy integers
        numerator, denominator = int(value.numerator), int(value.denominator)
        if max(numerator.bit_length(), denominator.bit_length()) > _MAX_BITS:
            raise InputError(f"{what} has more than {_MAX_LENGTH} digits")
        return Fraction(numerator, denominator)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InputError(f"{what} must be a finite number, but {value} was given")
        return parse_number(str(value), what)  # which knows how large and how long it may be
    try:
        # str of a NumPy float32 is its own shortest decimal; repr would name the type.
        text = repr(value) if type(value) is float else str(value)
        number = float(text)
        if math.isfinite(number):
            return Fraction(text)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, but {value!r} was given") from None
    raise InputError(f"{what} must be a finite number, but {text} was given")


def parse_epsilon(value: object) -> Fraction:
    """Return epsilon exactly.

    Raises
    ------
    InputError
        If it is not a finite number above zero, or so small that no scale is a finite double.
    """
    epsilon = parse_number(value, "epsilon")
    if epsilon <= 0:
        raise InputError(f"epsilon must be above 0, but {show(epsilon)} was given")
    if epsilon < Fraction("1e-305"):
        raise InputError(
            f"epsilon must be at least 1e-305, or the scale overflows, but {value} was given"
        )
    if epsilon > Fraction("1e300"):
        raise InputError(f"epsilon must be at most 1e300, but {value} was given")
    return epsilon


def float_up(value: Fraction) -> float:
    """Return the smallest double that is not below an exact number (infinity beyond them)."""
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -1.7976931348623157e308
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest double that is not above an exact number."""
    return -float_up(-value)


def lcm_of_denominators(values: Iterable[Fraction]) -> int:
    """Return the least common multiple of the denominators."""
    return math.lcm(1, *{value.denominator for value in values})


def show(value: Fraction) -> str:
    """Return an exact number as the decimal that equals it, or as a fraction."""
    if value.denominator == 1:
        return str(value.numerator)
    twos = fives = 0
    rest = value.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"
