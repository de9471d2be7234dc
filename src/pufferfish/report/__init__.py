# SPDX-License-Identifier: Apache-2.0
"""What is told of plans: ``compare`` makes results of them, ``sentences`` words, ``page`` a report.

``remake`` writes the command and the Python that make a plan again, ``sweep`` calibrates many,
``queries`` has the sentences about queries. Here are numbers for people, rounded to the side that
promises less: losses up, what is kept down.
"""

import math
from fractions import Fraction
from typing import Any

from pufferfish.errors import printable
from pufferfish.numbers import float_up, rounded_up, show


def at_most(value: float | Fraction, limit: Fraction) -> str:
    """Return a number rounded up; one within a limit is never shown above it.

    The double nearest to the limit stands for the limit.
    """
    text = rounded_up(float_up(value) if isinstance(value, Fraction) else value, 8)
    within = value <= limit or value == float(limit)
    return show(limit) if within and Fraction(text) > limit else text


def brief(value: float | None, digits: int = 3) -> str:
    """Return a number to the nearest with so many digits."""
    return "-" if value is None else f"{float(f'{value:.{digits}g}'):g}"


def share(value: float | None) -> str:
    """Return a share in per cent with one decimal, cut off: none but a whole one is 100 %."""
    value = value or 0.0
    if value == 1:
        return "100 %"
    return ">99.9 %" if value >= 0.999 else f"{math.floor(1000 * value + 1e-9) / 10:.1f} %"


def visible(value: Any) -> Any:
    """Return text as a page shows it: what does not print is escaped, and lines stay lines."""
    lines = value.replace("\r\n", "\n").split("\n") if type(value) is str else None
    return value if lines is None else "\n".join(map(printable, lines))
