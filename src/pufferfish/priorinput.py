# SPDX-License-Identifier: Apache-2.0
"""What users write for a prior: mappings and arrays become exact values at places of a support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError
from pufferfish.rationals import NotFinite, parse_number, parse_text
from pufferfish.support import (
    MAX_CELLS,
    Lattice,
    Support,
    lattice_index,
    make_lattice,
    make_levels,
)
from pufferfish.texts import text_of


def brief(value: object) -> str:
    """Return the start of a value's repr, for messages."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def mapping_values(secrets: Mapping[Any, Mapping[Any, Any]]) -> dict[Any, Fraction | str]:
    """Return what each key stands for: all numbers if all parse as numbers, else all levels."""
    keys: dict[Any, None] = {}
    for secret, row in secrets.items():
        if not isinstance(row, Mapping):
            raise InputError(
                f"secret {str(secret)!r} needs values and probabilities, {{value: probability}}, "
                f"but {brief(row)} was given; without values there are no distances"
            )
        if not row:
            raise InputError(f"secret {str(secret)!r} has no values: its probabilities sum to 0")
        keys.update(dict.fromkeys(row))
    numbers: dict[Any, Fraction | str] = {}
    for key in keys:
        if isinstance(key, str):
            try:
                number = parse_text(key)
            except NotFinite as error:
                raise InputError(f"the value {error}") from None
            if number is None:
                return {k: text_of(k) for k in keys}
            numbers[key] = number
        else:
            numbers[key] = parse_number(key, "a value of the support")
    return numbers


def placed(
    values: Iterable[Fraction | str], order: Sequence[Any] | str | None, step: Any
) -> tuple[Support, dict[Any, int]]:
    """Return the support of the values, and the atom at which each of them lies."""
    distinct = list(dict.fromkeys(values))
    numbers = [v for v in distinct if not isinstance(v, str)]
    if numbers and order is None:
        exact_step = None if step is None else parse_number(step, "the step")
        lattice = make_lattice(numbers, exact_step)
        units = lattice_index(numbers, lattice.step)
        where = {lattice.origin + k: i for i, k in enumerate(lattice.index.tolist())}
        return lattice, {v: where[u] for v, u in zip(numbers, units, strict=True)}
    if numbers:
        raise InputError("an order is for levels, but all values are numbers")
    if step is not None:
        raise InputError("a step is for numbers, but the values are levels")
    levels = make_levels([str(v) for v in distinct], order)
    return levels, {name: k for k, name in enumerate(levels.names)}


def one_dimension(values: Any, what: str) -> npt.NDArray[Any]:
    """Return a list or an array, checked to have one dimension."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of unequal lengths
        array = np.empty(())
    if array.ndim != 1:
        raise InputError(f"{what} must be a list or an array of one dimension")
    return array


def integer_row(name: str, row: Any, size: int) -> npt.NDArray[Any]:
    """Return one secret's counts as integers, shape (size,); Python integers where 64 bits fail.

    Raises
    ------
    InputError
        If there are more or fewer of them, or one is negative or no whole number.
    """
    array = one_dimension(row, f"the counts of secret {name!r}")
    if len(array) != size:
        raise InputError(
            f"secret {name!r} has {array.size} counts, but the support has {size} values"
        )
    if array.dtype.kind in "iu" and (not size or int(array.max()) <= 2**63 - 1):
        array = array.astype(np.int64)
    else:
        numbers = [parse_number(c, f"a count of secret {name!r}") for c in np.ravel(row).tolist()]
        wrong = [c for c in numbers if c.denominator != 1]
        if wrong:
            raise InputError(
                f"the counts of secret {name!r} must be whole numbers, but {float(wrong[0])} was "
                "given; for probabilities use Prior.from_mapping"
            )
        array = np.array([int(c) for c in numbers], dtype=object)
    if size and array.min() < 0:
        raise InputError(f"secret {name!r} has the negative count {array.min()}")
    return array


def integer_support(integers: npt.NDArray[Any]) -> tuple[Lattice, IntArray]:
    """Return the lattice of an integer array, and where each entry lies on it."""
    origin = int(integers.min())
    if int(integers.max()) - origin > MAX_CELLS:
        # Refused there, with a coarser step.
        return make_lattice(Fraction(int(v)) for v in integers.tolist()), integers
    if integers.dtype.kind == "i":
        integers = integers.astype(np.int64)  # a difference of small integers may not fit in theirs
    offsets = (integers - integers.dtype.type(origin)).astype(np.int64)
    if offsets.size > 1 and bool((np.diff(offsets) > 0).all()):
        return Lattice(Fraction(1), origin, offsets), np.arange(len(offsets), dtype=np.int64)
    index, at = np.unique(offsets, return_inverse=True)
    if len(index) < len(offsets):
        raise InputError("the support gives the same value twice")
    return Lattice(Fraction(1), origin, index), at


def scattered(row: npt.NDArray[Any], at: IntArray, size: int) -> npt.NDArray[Any]:
    """Return counts at their places on a support of ``size`` atoms, 0 elsewhere."""
    placed = np.zeros(size, dtype=row.dtype)
    np.add.at(placed, at, row)
    return placed
