# SPDX-License-Identifier: Apache-2.0
"""Distributions that users write: mappings and counts become exact integers on a support."""

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, listed
from pufferfish.numbers import (
    INT64_SAFE,
    IntArray,
    NotFinite,
    parse_number,
    parse_text,
    show,
    text_of,
)
from pufferfish.support import Lattice, Product, Support, make_lattice, make_levels
from pufferfish.tables.rules import by_column, column_name

#: How far from 1 a row of probabilities may sum and still be taken as one.
TOLERANCE = Fraction(1, 10**6)
#: Integers up to here are doubles, and so are the differences of two of them.
_SMALL = 2**52

#: A support, integers in the place of its atoms for each secret, and what was done to the input.
Given = tuple[Product, dict[str, Any], tuple[str, ...]]


def read_mapping(
    secrets: Mapping[Any, Mapping[Any, Any]], order: Sequence[Any] | str | None, step: Any
) -> Given:
    """Read ``{secret: {value: probability}}``; see :meth:`pufferfish.Prior.from_mapping`."""
    _check_mapping(secrets, "a prior needs a mapping {secret: {value: probability}}")
    for secret, row in secrets.items():
        if not isinstance(row, Mapping) or not row:
            raise InputError(
                f"secret {str(secret)!r} needs values and probabilities, {{value: probability}}, "
                f"but {reprlib.repr(row)} was given; without values there are no distances"
            )
    keys = list(dict.fromkeys(key for row in secrets.values() for key in row))
    values = _values(keys)
    support, at = support_of(values, order, step)
    meant, place = dict(zip(keys, values, strict=True)), dict(zip(keys, at.tolist(), strict=True))
    notes: list[str] = []

    def read(name: str, row: Mapping[Any, Any]) -> list[int]:
        if len({meant[key] for key in row}) < len(row):
            raise InputError(f"secret {name!r} gives the same value twice")
        numerators = [0] * support.size
        for key, mass in zip(row, _numerators(name, row, notes), strict=True):
            numerators[place[key]] += mass
        return numerators

    rows = _by_secret(secrets, read)
    return Product((None,), (support,)), rows, tuple(notes)


def _numerators(name: str, row: Mapping[Any, Any], notes: list[str]) -> list[int]:
    """Return probabilities over their common denominator; a note says if their sum is not 1."""
    masses = [
        parse_number(p, f"the probability of {key!r} under secret {name!r}")
        for key, p in row.items()
    ]
    if min(masses) < 0:
        raise InputError(f"secret {name!r} has the negative probability {show(min(masses))}")
    denominator = math.lcm(*{p.denominator for p in masses})
    numerators = [p.numerator * (denominator // p.denominator) for p in masses]
    off = Fraction(sum(numerators), denominator) - 1
    if abs(off) > TOLERANCE:
        raise InputError(
            f"the probabilities of secret {name!r} sum to "
            f"{float(min(off + 1, Fraction(10**300))):.10g}, not to 1; counts go into "
            "Prior.from_counts"
        )
    if off:
        notes.append(
            f"the probabilities of secret {name!r} sum to 1"
            f"{Decimal(off.numerator) / off.denominator:+.1g}; they were renormalised; if "
            "exact ties matter, give counts or fractions"
        )
    return numerators


def read_counts(counts: Mapping[Any, Any], support: Any, order: Any, step: Any) -> Given:
    """Read integer counts of one column, or nested ones with an axis for each of several.

    See :meth:`pufferfish.Prior.from_counts`; for several columns ``support`` is a mapping.
    """
    _check_mapping(counts, "counts must be a mapping {secret: [count, ...]}")
    columns: tuple[str | None, ...] = (None,)
    if isinstance(support, Mapping):
        columns = names = tuple(column_name(name, "support") for name in support)
        orders, steps = by_column(order, names, "order"), by_column(step, names, "step")
        axes = []
        for name, values in zip(names, support.values(), strict=True):
            try:
                axes.append(_axis(values, orders.get(name), steps.get(name)))
            except InputError as error:
                raise InputError(f"column {name!r}: {error}") from None
    else:
        axes = [_axis(support, order, step)]
    product = Product(columns, tuple(axis for axis, _ in axes))
    places = [at for _, at in axes]
    flat = np.ravel_multi_index(np.ix_(*places), product.shape).reshape(-1)

    def read(name: str, given: Any) -> npt.NDArray[Any]:
        row = _integers(name, given, tuple(map(len, places)), columns)
        safe = sum(row.tolist()) < INT64_SAFE  # a step may merge values
        numerators = np.zeros(product.size, dtype=row.dtype if safe else object)
        np.add.at(numerators, flat, row)
        return numerators

    return product, _by_secret(counts, read), ()


def _check_mapping(given: Any, needed: str) -> None:
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"{needed} with at least one secret, but {reprlib.repr(given)} was given")


def _by_secret(given: Mapping[Any, Any], read: Callable[[str, Any], Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for secret, own in given.items():
        name = text_of(secret)
        if name in rows:
            raise InputError(f"the secret {name!r} is given twice")
        rows[name] = read(name, own)
    return rows


def _values(keys: Sequence[Any]) -> Sequence[Fraction | str]:
    """Return what keys stand for: all numbers if all parse as numbers, else all levels."""
    numbers: list[Fraction] = []
    for key in keys:
        number = None
        try:
            if isinstance(key, str):
                number = parse_text(key)
            elif not isinstance(key, bool | np.bool_):  # like other text
                number = parse_number(key, "a value of the support")
        except NotFinite as error:
            raise InputError(f"the value {error}") from None
        if number is None:
            return [text_of(k) for k in keys]
        numbers.append(number)
    return numbers


def support_of(
    values: Sequence[Fraction | str], order: Any = None, step: Any = None
) -> tuple[Support, IntArray]:
    """Return the support of values, all numbers or all levels, and the atom of each of them."""
    numbers = [value for value in values if isinstance(value, Fraction)]
    if numbers and order is not None:
        raise InputError("an order is for levels, but all values are numbers")
    if numbers:
        lattice = make_lattice(numbers, None if step is None else parse_number(step, "the step"))
        units = [round(value / lattice.step) - lattice.origin for value in numbers]
        return lattice, np.searchsorted(lattice.index, units)
    if step is not None:
        raise InputError("a step is for numbers, but the values are levels")
    levels = make_levels(map(str, values), order)
    place = {name: k for k, name in enumerate(levels.names)}
    return levels, np.array([place[str(value)] for value in values], dtype=np.int64)


def _axis(values: Any, order: Any, step: Any) -> tuple[Support, IntArray]:
    """Return the support of one column, and where each of the values listed lies on it."""
    array = _array(values)
    if array.ndim != 1 or not array.size:
        raise InputError("the support must be a list or an array of one dimension, and not empty")
    axis: Support
    if order is None and step is None and array.dtype.kind in "iu" and _small(array):
        units, at = np.unique(array.astype(np.int64), return_inverse=True)
        distinct, axis = len(units), Lattice(Fraction(1), int(units[0]), units - units[0])
    else:
        given = _values(list(values))
        distinct, (axis, at) = len(set(given)), support_of(given, order, step)
    if distinct < array.size:
        raise InputError("the support gives the same value twice")
    return axis, at


def _integers(
    secret: str, given: Any, shape: tuple[int, ...], columns: Sequence[str | None]
) -> npt.NDArray[Any]:
    """Return one secret's counts as integers, flat; Python integers where 64 bits may fail."""
    array = _array(given)
    if array.shape != shape:
        of = "" if len(shape) == 1 else f" of {listed(map(str, columns))}"
        raise InputError(
            f"secret {secret!r} needs counts of the shape {shape}{of}, as the support has, but "
            f"those given have {f'the shape {array.shape}' if array.ndim else 'no such shape'}"
        )
    if array.dtype.kind in "iuf" and _small(array) and bool((array % 1 == 0).all()):
        flat = array.astype(np.int64).reshape(-1)
    else:  # from what was given: a double would lose digits of large integers
        exact = np.array(given, dtype=object).reshape(-1).tolist()
        numbers = [parse_number(count, f"a count of secret {secret!r}") for count in exact]
        wrong = [number for number in numbers if number.denominator != 1]
        if wrong:
            raise InputError(
                f"the counts of secret {secret!r} must be whole numbers, but {float(wrong[0])} was "
                "given; for probabilities use Prior.from_mapping"
            )
        flat = np.array([int(number) for number in numbers], dtype=object)
    if flat.min() < 0:
        raise InputError(f"secret {secret!r} has the negative count {flat.min()}")
    return flat


def _array(given: Any) -> npt.NDArray[Any]:
    """Return what was given as an array; one without a dimension where it has no shape."""
    if np.ma.is_masked(given):
        raise InputError("the array has masked cells, but every value and count must be known")
    try:
        return np.asarray(given)
    except ValueError:  # lists of unequal lengths
        return np.empty(())


def _small(array: npt.NDArray[Any]) -> bool:
    return bool(((array >= -_SMALL) & (array <= _SMALL)).all())
