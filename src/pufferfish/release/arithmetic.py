# SPDX-License-Identifier: Apache-2.0
"""Exact arithmetic on the lattice: sums in 64 bits, rounding of the sum, and how values are shown.

A released value is a whole number of steps. It stays an integer until it is shown, so that the
outputs which can occur are the same whatever the value was (a public lattice).
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pufferfish.errors import InputError
from pufferfish.release.csvtext import joined, large
from pufferfish.support import IntArray, Lattice
from pufferfish.tables.arrow import numbers

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
#: Integers up to here are doubles, and so a quotient of two of them is rounded once.
_EXACT_DOUBLE = 2**53


def atom_units(lattice: Lattice) -> IntArray:
    """Return the atoms in steps, counted from 0: shape (n,).

    Raises
    ------
    InputError
        If an atom is not within 64 bits.
    """
    least, greatest = lattice.origin, lattice.origin + int(lattice.index[-1])
    if least < INT64_MIN or greatest > INT64_MAX:
        raise InputError(
            "the support reaches beyond 64 bits when counted in steps; such results are refused, "
            "not wrapped"
        )
    return lattice.index + np.int64(least)


def add(units: IntArray, noise: IntArray) -> IntArray:
    """Return the sum of values and noise, both in steps.

    Raises
    ------
    InputError
        If a sum is not within 64 bits.
    """
    total: IntArray = units + noise
    low, high = _extent(units)
    least, greatest = _extent(noise)
    may_wrap = low + least < INT64_MIN or high + greatest > INT64_MAX
    # Where a sum went round, both operands have one sign and it has the other.
    if may_wrap and bool((((units ^ total) & (noise ^ total)) < 0).any()):
        raise _beyond()
    return total


def scaled(units: IntArray, factor: int) -> IntArray:
    """Return the product with a positive integer.

    Raises
    ------
    InputError
        If a product is not within 64 bits.
    """
    if factor == 1:
        return units
    if not _fits(units, factor):
        raise _beyond()
    return units * np.int64(factor)


def rounded(units: IntArray, step: Fraction) -> IntArray:
    """Return the integers nearest to ``step * units``, ties to the even one.

    Raises
    ------
    InputError
        If one of them is not within 64 bits.
    """
    p, q = step.numerator, step.denominator
    if q == 1:
        return scaled(units, p)
    if q < 2**62 and _fits(units, p):
        whole, rest = np.divmod(units * np.int64(p), np.int64(q))
        other = np.int64(q) - rest
        up = (rest > other) | ((rest == other) & (whole & 1 == 1))
        nearest: IntArray = whole + up.astype(np.int64)
        return nearest
    exact = [round(Fraction(u * p, q)) for u in units.tolist()]
    if any(not INT64_MIN <= v <= INT64_MAX for v in exact):
        raise _beyond()
    return np.array(exact, dtype=np.int64)


def to_doubles(units: IntArray, step: Fraction) -> Any:
    """Return the doubles nearest to ``step * units``; shape of ``units``.

    Raises
    ------
    InputError
        If one of them is beyond every double.
    """
    p, q = step.numerator, step.denominator
    low, high = _extent(units)
    if max(-low, high) * p <= _EXACT_DOUBLE and q <= _EXACT_DOUBLE:
        return (units * np.int64(p)).astype(np.float64) / np.float64(q)
    try:
        return _by_distinct(units, lambda u: u * p / q, np.float64)
    except OverflowError:
        raise InputError("a released value would be beyond every double") from None


def decimal_places(step: Fraction) -> int | None:
    """Return how many decimal places show every multiple of the step, or None if none do."""
    rest, twos, fives = step.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def to_text(units: IntArray, step: Fraction) -> pa.LargeStringArray:
    """Return ``step * units`` as text: integers, or exact decimals of equal length after the point.

    Where no decimal equals the step (1/3), the shortest text of the nearest double is returned.
    """
    places = decimal_places(step)
    if places is None:
        return numbers(to_doubles(units, step)).cast(pa.large_string())
    factor = step.numerator * (10**places // step.denominator)
    if not _fits(units, factor):
        texts = _by_distinct(units, lambda u: _decimal(u * factor, places), object)
        return large(texts.tolist())
    numerators = units * np.int64(factor)
    if places == 0:
        return numbers(numerators).cast(pa.large_string())
    if places > 18:  # 10**places is beyond 64 bits
        return large([_decimal(m, places) for m in numerators.tolist()])
    whole, part = np.divmod(np.abs(numerators), np.int64(10**places))
    sign = large(["", "-"]).take(numbers((numerators < 0).astype(np.int64)))
    digits = pc.utf8_lpad(numbers(part).cast(pa.large_string()), places, "0")
    return joined(sign, numbers(whole).cast(pa.large_string()), ".", digits)


def _decimal(numerator: int, places: int) -> str:
    digits = str(abs(numerator)).rjust(places + 1, "0")
    sign = "-" if numerator < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def _by_distinct(units: IntArray, function: Callable[[int], Any], dtype: Any) -> Any:
    """Apply an exact, slow function once to every distinct value."""
    distinct, place = np.unique(units, return_inverse=True)
    images = np.empty(len(distinct), dtype=dtype)
    images[:] = [function(u) for u in distinct.tolist()]
    return images[place]


def _extent(units: IntArray) -> tuple[int, int]:
    return (int(units.min()), int(units.max())) if units.size else (0, 0)


def _fits(units: IntArray, factor: int) -> bool:
    """Whether the products with a positive factor have an absolute value within 64 bits."""
    low, high = _extent(units)
    return max(-low, high) * factor <= INT64_MAX and factor <= INT64_MAX


def _beyond() -> InputError:
    return InputError(
        "a released value would lie beyond 64 bits; such results are refused, not wrapped"
    )
