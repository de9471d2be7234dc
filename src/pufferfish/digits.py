# SPDX-License-Identifier: Apache-2.0
"""Printed digits of a number: rounded up, where less would promise too much, or to the nearest."""

import decimal
import math


def rounded_up(value: float, digits: int = 10) -> str:
    """Return a number with so many significant digits, none of them below the number itself.

    Parameters
    ----------
    value : float
        Not negative; may be infinite.
    digits : int
        Significant digits.
    """
    return _printed(value, digits, decimal.ROUND_CEILING)


def nearest(value: float, digits: int = 6) -> str:
    """Return a number with so many significant digits, to the nearest."""
    return _printed(value, digits, decimal.ROUND_HALF_EVEN)


def _printed(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = decimal.Context(prec=digits, rounding=rounding).create_decimal_from_float(value)
    # Trailing zeros are digits too: 10 is printed as 10.00000000.
    wide = decimal.Context(prec=digits + 5)
    unit = decimal.Decimal((0, (1,), rounded.adjusted() - digits + 1))
    padded = rounded.quantize(unit, context=wide)
    if -5 <= padded.adjusted() < 16:
        return f"{padded:f}"
    return f"{padded:e}"
