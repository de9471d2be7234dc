# SPDX-License-Identifier: Apache-2.0
"""Cells and lines of CSV: exact decimals, quotes, and the guard against spreadsheet formulas."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pufferfish.numbers import IntArray
from pufferfish.release.postprocess import to_doubles
from pufferfish.tables.arrow import is_text, strings

#: What makes a spreadsheet take a cell for a formula, behind apostrophes that guarded it.
_FORMULA = r"\A'*[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001  # full-width signs are the point
#: Digits, marks between them, an exponent: a number in any country, and never a formula.
_NUMBER = r"(?i)\A[+-]?(?:[.,]?\d[\d.,]*(?:e[+-]?\d+)?%?|inf|infinity|nan) *\z"


def arrow(values: npt.NDArray[Any]) -> pa.Array:
    """Return int64, float64 or bool as an Arrow array, without the import of pandas."""
    kind = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}[values.dtype.name]
    if values.dtype == bool:
        data = np.packbits(values, bitorder="little")
    else:
        data = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def texts(names: Sequence[str]) -> pa.LargeStringArray:
    """Return texts as an array of the type that may hold more than 2 GiB."""
    return strings(names).cast(pa.large_string())


def joined(*cells: pa.LargeStringArray | str, separator: str = "") -> pa.LargeStringArray:
    """Return the texts of every row, end to end or with a separator; a missing one is empty."""
    parts = [texts([c])[0] if isinstance(c, str) else c for c in (*cells, separator)]
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")


def guarded(cells: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tabulator or a line end is changed, and so
    is such text behind apostrophes, so that :func:`unguarded` knows what was there. Numbers such
    as -3.2, +5 and 1e-3 are not.
    """
    risky = pc.match_substring_regex(cells, _FORMULA)
    if not pc.any(risky).as_py():
        return cells
    # Where a cell is missing, so is the condition, and the result.
    harmful = pc.and_not(risky, pc.match_substring_regex(cells, _NUMBER))
    return pc.if_else(harmful, joined("'", cells), cells)


def unguarded(text: str) -> str:
    """Return the text that :func:`guarded` was given."""
    bare = text[1:] if text[:1] == "'" else text
    return bare if guarded(texts([bare]))[0].as_py() == text else text


def quoted(cells: pa.LargeStringArray, separator: str) -> pa.LargeStringArray:
    """Put in double quotes what holds a separator, a double quote or a line end."""
    needs = pc.match_substring_regex(cells, f'[{separator}"\r\n]')
    if not pc.any(needs).as_py():
        return cells
    inside = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs, joined('"', inside, '"'), cells)


def as_text(column: pa.Array) -> pa.LargeStringArray:
    """Return a kept column as text, not yet quoted; what was text before is guarded."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    cells = column.cast(pa.large_string())
    return guarded(cells) if is_text(kind) else cells


def lines(columns: list[pa.LargeStringArray], separator: str) -> memoryview:
    """Return the bytes of a batch of rows, their cells quoted already; missing cells are empty."""
    ended = joined(joined(*columns, separator=separator), "\n")
    # The texts of an Arrow array lie end to end: with line ends they are the file.
    _, offsets, data = ended.buffers()
    if len(ended) == 0 or data is None:
        return memoryview(b"")
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[ended.offset] : ends[ended.offset + len(ended)]]


def decimals(units: IntArray, step: Fraction) -> pa.LargeStringArray:
    """Return ``step * units`` as text: integers, or exact decimals of equal length.

    Where no decimal equals the step (1/3), the shortest text of the nearest double is returned.
    """
    places = _places(step)
    if places is None:
        return arrow(to_doubles(units, step)).cast(pa.large_string())
    factor = step.numerator * (10**places // step.denominator)
    if factor == 1 and places == 0:
        return arrow(units).cast(pa.large_string())
    distinct, at = np.unique(units, return_inverse=True)
    return texts([_decimal(u * factor, places) for u in distinct.tolist()]).take(arrow(at))


def _places(step: Fraction) -> int | None:
    """Return how many decimal places show every multiple of the step, or None if none do."""
    rest, twos, fives = step.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _decimal(numerator: int, places: int) -> str:
    digits = str(abs(numerator)).rjust(places + 1, "0")
    sign = "-" if numerator < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
