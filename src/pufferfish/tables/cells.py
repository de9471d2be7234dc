# SPDX-License-Identifier: Apache-2.0
"""Cells: what a raw cell says once it is trimmed; the one place where cells are cleaned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pufferfish.errors import InputError
from pufferfish.tables.arrow import one_array, to_list, to_numpy
from pufferfish.tables.rules import Rules
from pufferfish.texts import text_of as text_of

#: The two words that are numbers, in lower case.
BOOLEANS = {"false": 0, "true": 1}


@dataclass(frozen=True)
class Cells:
    """The distinct cells of a column as text.

    Attributes
    ----------
    texts : list of str
        The trimmed text of every cell; the empty text for an empty cell.
    typed : bool
        Whether they came as numbers: then a comma in them means nothing, and no mark is guessed.
    """

    texts: list[str]
    typed: bool


def distinct(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, Any]:
    """Return the distinct raw cells of a column, and the place of each row's cell among them.

    Returns
    -------
    values : pyarrow.Array, shape (k,)
        Null, where it occurs, is one of them.
    places : int array, shape (rows,)
    """
    if isinstance(column, pa.ChunkedArray):
        # Stretching a dictionary's chunks over one dictionary first keeps equal cells equal.
        column = one_array(column.unify_dictionaries())
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pt.is_null(column.type):
        return pa.nulls(min(1, len(column))), np.zeros(len(column), dtype=np.int64)
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.dictionary, to_numpy(encoded.indices)


def check_type(kind: pa.DataType, what: str) -> None:
    """Refuse a column whose cells are no single values.

    Raises
    ------
    InputError
        For lists, structs, bytes and the like.
    """
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_nested(kind) or pt.is_binary(kind) or pt.is_large_binary(kind):
        raise InputError(f"{what} holds {kind} cells, not numbers or text")
    if pt.is_fixed_size_binary(kind) or str(kind) == "binary_view":
        raise InputError(f"{what} holds {kind} cells, not numbers or text")


def cells_of(values: pa.Array, what: str) -> Cells:
    """Return raw cells as trimmed text.

    The text of each is that of :func:`pufferfish.texts.text_of`.

    Raises
    ------
    InputError
        If the cells are lists, structs or bytes.
    """
    check_type(values.type, what)
    kind = values.type
    if pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view":
        return Cells([(t or "").strip() for t in values.to_pylist()], typed=False)
    if pt.is_float16(kind) or pt.is_float32(kind):
        narrow: list[Any] = [
            None if v is None else np.dtype(kind.to_pandas_dtype()).type(v)
            for v in values.to_pylist()
        ]
        return Cells([text_of(v) for v in narrow], typed=True)
    if pt.is_temporal(kind):
        # Nanoseconds have no Python object of their own; Arrow prints them all.
        return Cells([(t or "").strip() for t in to_list(values)], typed=False)
    typed = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
    return Cells([text_of(v) for v in values.to_pylist()], typed=typed)


def is_missing(texts: Sequence[str], rules: Rules) -> Any:
    """Return which trimmed texts mean "missing", shape (k,)."""
    absent = frozenset(rules.absent)
    return np.fromiter((t in absent for t in texts), dtype=bool, count=len(texts))
