# SPDX-License-Identifier: Apache-2.0
"""Between doubles, whole multiples of a power of 2, and fractions of any size."""

from __future__ import annotations

import math
from fractions import Fraction


def exponent_of(value: Fraction) -> int:
    """Return about log2 of a positive number."""
    return value.numerator.bit_length() - value.denominator.bit_length()


def shifted(value: Fraction, exponent: int) -> Fraction:
    """Return value * 2**exponent."""
    if not exponent or not value:
        return value
    return value * (1 << exponent) if exponent > 0 else value / (1 << -exponent)


def whole(value: float, bits: int) -> int:
    """Return the whole number next to value * 2**bits, towards 0."""
    if value == 0.0:
        return 0
    mantissa, exponent = math.frexp(value)
    whole, shift = int(mantissa * 9007199254740992.0), exponent - 53 + bits
    if shift >= 0:
        return whole << shift
    return whole >> -shift if whole >= 0 else -(-whole >> -shift)


def double(value: int, exponent: int) -> float:
    """Return value * 2**exponent as a double near it; infinite beyond them."""
    extra = max(value.bit_length() - 64, 0)
    try:
        return math.ldexp(float(value >> extra), exponent + extra)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def log2(value: Fraction) -> float:
    """Return log2 of a positive number of any size, to a double's precision."""
    return math.log2(value.numerator) - math.log2(value.denominator)


def as_double(value: Fraction) -> float:
    """Return a number as a double; infinite beyond them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
