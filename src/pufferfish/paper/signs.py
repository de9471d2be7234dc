# SPDX-License-Identifier: Apache-2.0
"""Signs of the figure's cells and sums, decided: no rounding error can turn one over.

A cell has the sign of an exponent, a rational number. A sum over a column is evaluated in ball
arithmetic with ever more digits. That comes to an end: the exponents are rational, and numbers
e^r with different rational r are linearly independent over the rationals (Lindemann and
Weierstrass), so the sum is 0 only if every cell of the column is, and those are seen to be 0.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import flint

from pufferfish.errors import PufferfishError
from pufferfish.precision import precision

_BITS = 128
_MOST_BITS = 1 << 17


def cell_sign(exponent: Fraction) -> int:
    """Return the sign of e^{exponent} - 1."""
    return (exponent > 0) - (exponent < 0)


def factors(exponents: Mapping[int, Fraction], epsilon: Fraction) -> dict[int, float]:
    """Return e^{d / theta} - e^eps for every distance d, to the nearest double.

    Parameters
    ----------
    exponents : mapping from int to Fraction
        d / theta - eps of every distance d that occurs.
    epsilon : Fraction
    """
    with precision(_BITS):
        return {d: float(value) for d, value in _balls(exponents, epsilon).items()}


def column_sums(
    masses: Sequence[int],
    distances: Sequence[int],
    starts: Sequence[int],
    exponents: Mapping[int, Fraction],
    epsilon: Fraction,
    total: int,
) -> list[tuple[float, int]]:
    """Return the sum of I over every column, and its sign.

    Parameters
    ----------
    masses, distances : sequence of int, shape (c,)
        The cells, column by column; masses in units of 1 / total.
    starts : sequence of int, shape (k,)
        Where the columns begin.
    exponents : mapping from int to Fraction
        d / theta - eps of every distance d.
    epsilon : Fraction
    total : int

    Raises
    ------
    PufferfishError
        If a sign is not decided by the highest precision allowed.
    """
    found: dict[int, tuple[float, int]] = {}
    ends = [*starts[1:], len(masses)]
    bits = _BITS
    while len(found) < len(starts):
        if bits > _MOST_BITS:
            raise PufferfishError(f"a sign was not decided with {_MOST_BITS} bits")
        with precision(bits):
            balls = _balls(exponents, epsilon)
            for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
                if k in found:
                    continue
                terms = (balls[distances[i]] * masses[i] for i in range(start, end))
                ball = sum(terms, flint.arb(0)) / total
                sign = _sign(ball)
                if sign is not None:
                    found[k] = (float(ball), sign)
        bits *= 2
    return [found[k] for k in range(len(starts))]


def _balls(exponents: Mapping[int, Fraction], epsilon: Fraction) -> dict[int, flint.arb]:
    grown = _ball(epsilon).exp()
    return {d: grown * _ball(r).expm1() for d, r in exponents.items()}


def _ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _sign(ball: flint.arb) -> int | None:
    if ball > 0:
        return 1
    if ball < 0:
        return -1
    return 0 if ball == 0 else None
