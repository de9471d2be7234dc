# SPDX-License-Identifier: Apache-2.0
"""Columns to lines of CSV: quoted where needed, and harmless when a spreadsheet opens them."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pufferfish.errors import InputError
from pufferfish.tables.arrow import strings

#: What makes a spreadsheet take a cell for a formula.
_FORMULA = r"\A[=+\-@\t\r\n＝＋－＠]"  # noqa: RUF001  # full-width signs are the point
#: Digits, marks between them, an exponent: a number in any country, and never a formula.
_NUMBER = r"(?i)\A[+-]?(?:[.,]?\d[\d.,]*(?:e[+-]?\d+)?%?|inf|infinity|nan) *\z"


def large(texts: Sequence[str]) -> pa.LargeStringArray:
    """Return texts as an array of the type that may hold more than 2 GiB."""
    return strings(texts).cast(pa.large_string())


def joined(*cells: pa.LargeStringArray | str, separator: str = "") -> pa.LargeStringArray:
    """Return the texts of every row, end to end or with a separator; a missing one is empty."""
    parts = [large([c])[0] if isinstance(c, str) else c for c in (*cells, separator)]
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="")


def neutralised(cells: pa.LargeStringArray) -> pa.LargeStringArray:
    """Put an apostrophe before text that a spreadsheet would take for a formula.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tabulator or a line end is changed; numbers
    such as -3.2, +5 and 1e-3 are not.
    """
    risky = pc.match_substring_regex(cells, _FORMULA)
    if not pc.any(risky).as_py():
        return cells
    # Where a cell is missing, so is the condition, and the result.
    harmful = pc.and_not(risky, pc.match_substring_regex(cells, _NUMBER))
    return pc.if_else(harmful, joined("'", cells), cells)


def written(text: str) -> str:
    """Return a text as it is written into a text file, before it is quoted."""
    as_written: str = neutralised(large([text]))[0].as_py()
    return as_written


def check_apart(names: Sequence[str]) -> None:
    """Check that a text file shows levels in such a way that they can be told apart.

    Raises
    ------
    InputError
        If two of them are written alike, as ``=a`` and ``'=a``, and so could not be estimated.
    """
    shown: dict[str, str] = {}
    for name in names:
        other = shown.setdefault(written(name), name)
        if other != name:
            raise InputError(
                f"text files show the levels {other!r} and {name!r} alike, with an apostrophe "
                "before what a spreadsheet would take for a formula; write .parquet"
            )


def quoted(cells: pa.LargeStringArray, separator: str) -> pa.LargeStringArray:
    """Put in double quotes what holds a separator, a double quote or a line end."""
    needs = pc.match_substring_regex(cells, f'[{separator}"\r\n]')
    if not pc.any(needs).as_py():
        return cells
    inside = pc.replace_substring(cells, '"', '""')
    return pc.if_else(needs, joined('"', inside, '"'), cells)


def as_text(column: pa.Array, name: str) -> pa.LargeStringArray:
    """Return a kept column as text, not yet quoted; what was text before is neutralised.

    Raises
    ------
    InputError
        If a column of this type has no form as text (lists, structures, bytes).
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return neutralised(column.cast(pa.large_string()))
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.large_string())
    try:
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise pa.ArrowNotImplementedError
        return column.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise InputError(
            f"the kept column {name!r} holds {kind}, which has no form as text; write .parquet"
        ) from None


def lines(columns: list[pa.LargeStringArray], separator: str) -> memoryview:
    """Return the bytes of a batch of rows; missing cells are empty.

    Parameters
    ----------
    columns : list of large string arrays, each of shape (rows,)
        The cells, quoted where they need it.
    separator : str
        What stands between two cells.
    """
    ended = joined(joined(*columns, separator=separator), "\n")
    # The texts of an Arrow array lie end to end: with line ends they are the file.
    _, offsets, data = ended.buffers()
    if len(ended) == 0 or data is None:
        return memoryview(b"")
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[ended.offset] : ends[ended.offset + len(ended)]]
