# SPDX-License-Identifier: Apache-2.0
"""Numerals: the exact numbers that cells print, read quickly, over one common denominator."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pufferfish.arrays import CountArray
from pufferfish.rationals import NotFinite, parse_text, too_long
from pufferfish.support import Lattice, make_lattice, nearest_unit

#: A numerator and a positive denominator, not always in lowest terms.
Ratio = tuple[int, int]

_COMMA = re.compile(
    r"[+-]?(?:\d+(?:,\d*)?|,\d+|[1-9]\d{0,2}(?:\.\d{3})+,\d+)(?:[eE][+-]?\d+)?", re.ASCII
)
_INT64 = 2**63 - 1


def parse_point(text: str) -> Ratio | None:
    """Return the number that a trimmed text prints with a decimal point, or None.

    Groups of thousands (``1,200``) are numbers; so are fractions (``1/3``).

    Raises
    ------
    NotFinite
        For what :func:`pufferfish.rationals.parse_text` does not read: ``inf``, ``1e999``, ...
    """
    # The two plainest forms first: they are nearly all cells, and a Fraction is slow to make.
    if text.isascii() and len(text) < 300:
        if text.isdecimal():
            return int(text), 1
        whole, point, places = text.partition(".")
        digits = whole[1:] if whole[:1] == "-" else whole
        if digits.isdecimal() and (places.isdecimal() if point else whole != digits):
            return int(whole + places), 10 ** len(places)
    value = parse_text(text)
    return None if value is None else (value.numerator, value.denominator)


def parse_comma(text: str) -> Ratio | None:
    """Return the number that a trimmed text prints with a decimal comma, or None.

    ``1,5`` and ``1.234,5`` are numbers, ``1.5`` and ``1.234`` are not: they could mean two things.

    Raises
    ------
    NotFinite
        For what :func:`pufferfish.rationals.parse_text` does not read: ``inf``, ``1e999``, ...
    """
    if too_long(text):
        return None
    if "," in text or text.isdecimal():
        if not _COMMA.fullmatch(text):
            return None
        return parse_point(text.replace(".", "").replace(",", "."))
    value = parse_point(text)
    return None if "." in text else value


def number(text: str, decimal: str | None) -> Ratio | None:
    """Return the number that a trimmed text prints, with a point (or None) or a comma."""
    return parse_comma(text) if decimal == "," else parse_point(text)


def plain_number(text: str) -> Fraction | None:
    """Return the number that a trimmed text prints whatever the decimal mark is, or None.

    A comma counts only where nothing but a decimal comma can be meant: ``-999,0``.
    """
    try:
        ratio = parse_point(text)
        if "," in text:
            ratio = parse_comma(text) if ratio is None else None
    except NotFinite:
        return None
    return None if ratio is None else Fraction(*ratio)


def missing_numbers(missing: Iterable[str]) -> dict[Fraction, str]:
    """Return the numbers among the texts that mean "missing", each with its first text."""
    found: dict[Fraction, str] = {}
    for text in missing:
        value = plain_number(text)
        if value is not None:
            found.setdefault(value, text)
    return found


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
        bottom = self.denominator * step.numerator
        tops = [n * step.denominator for n in self.numerators.tolist()]
        units = [nearest_unit(top, bottom) for top in tops]
        moved = sum(unit * bottom != top for unit, top in zip(units, tops, strict=True))
        return integers(units), moved


def integers(values: list[int]) -> CountArray:
    """Return integers as int64, or as Python integers where differences may not fit."""
    small = all(-_INT64 // 4 <= v <= _INT64 // 4 for v in values)
    return np.array(values, dtype=np.int64 if small else object)
