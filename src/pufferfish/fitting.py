# SPDX-License-Identifier: Apache-2.0
"""Probabilities as they were printed: renormalised, or read as the fractions they stand for.

Ties between cumulative sums decide the Wasserstein scale, and printed decimals can miss one:
1/6 + 1/6 against 1/3. Where decimals do not sum to exactly 1, small fractions that fit every
one of them to its last digit are what was meant (theory, section 3).
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pufferfish.errors import InputError
from pufferfish.rationals import show

#: How far from 1 a row of probabilities may sum and still be taken as one.
TOLERANCE = Fraction(1, 10**6)


def fit_probabilities(
    secret: str, given: Sequence[Any], exact: Sequence[Fraction]
) -> tuple[list[Fraction], list[str]]:
    """Return probabilities that sum to exactly 1, and notes on what was done to them.

    Parameters
    ----------
    secret : str
        Name of the secret, for messages.
    given : sequence
        The probabilities as the user wrote them; tells how many digits each has.
    exact : sequence of Fraction
        Their exact values.

    Raises
    ------
    InputError
        If an entry is negative, or the sum is further than 1e-6 from 1.
    """
    for p in exact:
        if p < 0:
            raise InputError(f"secret {secret!r} has the negative probability {show(p)}")
    total = sum(exact, Fraction(0))
    if total == 1:
        return list(exact), []
    if abs(total - 1) > TOLERANCE:
        given_sum = float(min(total, Fraction(10**300)))
        raise InputError(
            f"the probabilities of secret {secret!r} sum to {given_sum:.10g}, not to 1; "
            "counts go into Prior.from_counts"
        )
    fractions = [_small_fraction(g, p) for g, p in zip(given, exact, strict=True)]
    small = [f for f in fractions if f is not None]
    if len(small) == len(fractions) and sum(small, Fraction(0)) == 1:
        shown = next((show(f) for f, p in zip(small, exact, strict=True) if f != p), "")
        return small, [
            f"the probabilities of secret {secret!r} sum to {_shown_sum(total)}; they were read "
            f"as the small fractions that they print ({shown}, ...)"
        ]
    return [p / total for p in exact], [
        f"the probabilities of secret {secret!r} sum to {_shown_sum(total)}; they were "
        "renormalised; if exact ties matter, give counts or fractions"
    ]


def _small_fraction(given: Any, exact: Fraction) -> Fraction | None:
    """Return the fraction with a small denominator that prints as given, or None.

    The denominator is kept below the square root of the printed resolution, so that a fit is
    no accident: fractions p/q with q <= Q are at least 1/Q**2 apart.
    """
    if exact.denominator == 1:
        return exact
    unit = _last_digit(given)
    if unit is None:  # given as a fraction: it is what it says
        return exact
    # The unit may lie below every double: integers only.
    bound = math.isqrt(math.floor(1 / unit)) // 4
    if bound < 2:
        return None
    candidate = exact.limit_denominator(bound)
    # Rounded or cut off to the printed digits; a double may be off by its own last one.
    off = candidate - exact
    fits = abs(off) <= unit if isinstance(given, float) else -unit / 2 <= off < unit
    # Never 0: whether a value can occur at all is not a matter of digits.
    return candidate if fits and candidate > 0 else None


def _last_digit(given: Any) -> Fraction | None:
    """Return one unit of the last printed digit, or None where the number is exact already."""
    text = given if isinstance(given, str) else repr(given) if type(given) is float else str(given)
    if "/" in text:
        return None
    exponent = Decimal(text.strip()).as_tuple().exponent
    # A non-finite number was refused before; the double that prints as 0.5 has 16 digits too.
    last = -16 if isinstance(given, float) else 0
    return Fraction(10) ** min(last, exponent) if isinstance(exponent, int) else None


def _shown_sum(total: Fraction) -> str:
    text = f"{float(total):.15g}"
    if text != "1":
        return text
    off = abs(total - 1)
    return f"1{'+' if total > 1 else '-'}{Decimal(off.numerator) / Decimal(off.denominator):.1g}"
