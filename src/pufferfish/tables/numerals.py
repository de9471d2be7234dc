# SPDX-License-Identifier: Apache-2.0
"""Numerals: the exact numbers that cells print, read quickly, over one common denominator."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.prior import CountArray
from pufferfish.rationals import NotFinite, parse_text
from pufferfish.support import Lattice, make_lattice

#: A numerator and a positive denominator, not always in lowest terms.
Ratio = tuple[int, int]

# 0,123 is no group of thousands: nobody writes a thousand with a leading zero.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_COMMA = re.compile(r"[+-]?(?:\d+(?:,\d*)?|,\d+|[1-9]\d{0,2}(?:\.\d{3})+,\d+)(?:[eE][+-]?\d+)?")
#: No table holds a number of more digits; Python itself stops reading at 4300.
_MAX_DIGITS = 1000
_INT64 = 2**63 - 1


def parse_point(text: str) -> Ratio | None:
    """Return the number that a trimmed text prints with a decimal point, or None.

    Groups of thousands (``1,200``) are numbers; so are fractions (``1/3``).

    Raises
    ------
    NotFinite
        For ``inf``, ``nan``, ``1e999`` and the like.
    """
    # The two plainest forms first: they are nearly all cells, and a Fraction is slow to make.
    if text.isascii() and len(text) < 300:
        if text.isdecimal():
            return int(text), 1
        whole, point, places = text.partition(".")
        digits = whole[1:] if whole[:1] == "-" else whole
        if digits.isdecimal() and (places.isdecimal() if point else whole != digits):
            return int(whole + places), 10 ** len(places)
    if len(text) > _MAX_DIGITS:
        if sum(map(str.isdigit, text)) > len(text) // 2 and text.strip("+-.,0123456789eE") == "":
            raise NotFinite("a number of more than 1000 digits is beyond every double")
        return None
    if "," in text:
        if not _THOUSANDS.fullmatch(text):
            return None
        text = text.replace(",", "")
    value = parse_text(text)
    return None if value is None else (value.numerator, value.denominator)


def parse_comma(text: str) -> Ratio | None:
    """Return the number that a trimmed text prints with a decimal comma, or None.

    ``1,5`` and ``1.234,5`` are numbers, ``1.5`` and ``1.234`` are not: they could mean two things.

    Raises
    ------
    NotFinite
        For ``inf``, ``nan``, ``1e999`` and the like.
    """
    if "," in text or text.isdecimal():
        if not _COMMA.fullmatch(text):
            return None
        return parse_point(text.replace(".", "").replace(",", "."))
    value = parse_point(text)
    return None if "." in text else value


def number(text: str, decimal: str | None) -> Ratio | None:
    """Return the number that a trimmed text prints, with a point (or None) or a comma."""
    return parse_comma(text) if decimal == "," else parse_point(text)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Exact numbers ``numerators / denominator``.

    Attributes
    ----------
    numerators : integer array, shape (n,)
        int64, or Python integers where they may not fit.
    denominator : int
        Common to all, above 0.
    """

    numerators: CountArray
    denominator: int

    @classmethod
    def of(cls, ratios: Sequence[Ratio]) -> "Numbers":
        """Bring ratios over their common denominator."""
        denominators = {d for _, d in ratios}
        if denominators <= {1}:
            return cls(integers([n for n, _ in ratios]), 1)
        if len(denominators) > 64:
            # Many different denominators are a sign that most reduce.
            lowest = [Fraction(n, d) for n, d in ratios]
            ratios = [(v.numerator, v.denominator) for v in lowest]
            denominators = {d for _, d in ratios}
        common = math.lcm(*denominators)
        factor = {d: common // d for d in denominators}
        return cls(integers([n * factor[d] for n, d in ratios]), common)

    def lattice(self, step: Fraction | None) -> tuple[Lattice, CountArray, int]:
        """Return the lattice of these numbers, the atom of each, and how many were rounded.

        Parameters
        ----------
        step : Fraction or None
            The step to round to (ties to the even multiple); None: the largest number that
            divides 1 and every number.

        Raises
        ------
        InputError
            If there is no number, or the range has too many cells.
        """
        if not len(self.numerators):
            make_lattice([], step)  # raises: the support is empty
        rounded = 0
        if step is None:
            shared = math.gcd(self.denominator, int(np.gcd.reduce(self.numerators)))
            step = Fraction(shared, self.denominator)
            units = self.numerators // shared
        else:
            units, rounded = self._rounded(step)
        least, most = int(units.min()), int(units.max())
        # The bounds alone decide whether the range is too long, and what the error says.
        make_lattice([step * least, step * most], step)
        index, atoms = np.unique((units - least).astype(np.int64), return_inverse=True)
        return Lattice(step, least, index), atoms.reshape(-1), rounded

    def _rounded(self, step: Fraction) -> tuple[CountArray, int]:
        """Return the nearest multiples of a step, and how many numbers are not one."""
        top = self.numerators.astype(object) * step.denominator
        bottom = self.denominator * step.numerator
        down = top // bottom
        rest = 2 * (top - down * bottom)
        up = (rest > bottom) | ((rest == bottom) & (down % 2 == 1))
        return integers((down + up.astype(int)).tolist()), int(np.count_nonzero(rest))


def integers(values: list[int]) -> CountArray:
    """Return integers as int64, or as Python integers where differences may not fit."""
    small = all(-_INT64 // 4 <= v <= _INT64 // 4 for v in values)
    return np.array(values, dtype=np.int64 if small else object)
