# SPDX-License-Identifier: Apache-2.0
"""Decimals: the digits of released numbers, exact where a decimal can be, else the nearest double.

A released number is a whole number of steps until its digits are written.
"""

import decimal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.numbers import FloatArray, IntArray, show

_EXACT = decimal.Context(decimal.MAX_PREC, traps=[decimal.Inexact])
#: Integers up to here are doubles, and so a quotient of two of them is rounded once.
_EXACT_DOUBLE = 2**53


def rounded(units: IntArray, step: Fraction) -> IntArray:
    """Return the integers nearest to ``step * units``, ties to the even one."""
    return _by_distinct(units, lambda u: round(u * step), np.int64)


def to_doubles(units: IntArray, step: Fraction) -> FloatArray:
    """Return the doubles nearest to ``step * units``."""
    p, q = step.numerator, step.denominator
    most = float(np.abs(units.astype(np.float64)).max(initial=1.0))
    if most * p < _EXACT_DOUBLE and q <= _EXACT_DOUBLE:
        return (units * np.int64(p)).astype(np.float64) / np.float64(q)
    return _by_distinct(units, lambda u: u * p / q, np.float64)


def decimals(units: IntArray, step: Fraction) -> tuple[list[str], IntArray] | None:
    """Return the distinct texts of ``step * units`` as exact decimals of equal length, and places.

    None where no decimal equals the step (1/3).
    """
    text = show(step)
    if "/" in text:
        return None
    places = len(text.partition(".")[2])
    distinct, at = np.unique(units, return_inverse=True)
    numerators = [Decimal(unit * int(step * 10**places)) for unit in distinct.tolist()]
    return [f"{number.scaleb(-places, _EXACT):f}" for number in numerators], at


def _by_distinct(units: IntArray, function: Callable[[int], Any], dtype: Any) -> npt.NDArray[Any]:
    """Apply an exact, slow function once to every distinct value."""
    distinct, place = np.unique(units, return_inverse=True)
    return np.array([function(u) for u in distinct.tolist()], dtype=dtype)[place]
