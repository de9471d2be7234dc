# SPDX-License-Identifier: Apache-2.0
"""Distributions that users write: mappings and counts become exact integers on a support."""

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, listed
from pufferfish.numbers import IntArray, NotFinite, parse_number, parse_text, show, text_of
from pufferfish.support import (
    MAX_CELLS,
    Lattice,
    Product,
    Support,
    lattice_index,
    make_lattice,
    make_levels,
)

#: How far from 1 a row of probabilities may sum and still be taken as one.
TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True, eq=False)
class Rows:
    """One row of numerators, or of counts, for each secret; not yet checked to have a sum."""

    product: Product
    secrets: tuple[str, ...]
    numerators: Sequence[Sequence[int] | npt.NDArray[Any]] | npt.NDArray[Any]
    notes: tuple[str, ...] = ()


def rows_of_mapping(
    secrets: Mapping[Any, Mapping[Any, Any]], order: Sequence[Any] | str | None, step: Any
) -> Rows:
    """Read ``{secret: {value: probability}}``; see :meth:`pufferfish.Prior.from_mapping`."""
    _check_mapping(secrets, "a prior needs a mapping {secret: {value: probability}}")
    for secret, row in secrets.items():
        if not isinstance(row, Mapping) or not row:
            raise InputError(
                f"secret {str(secret)!r} needs values and probabilities, {{value: probability}}, "
                f"but {reprlib.repr(row)} was given; without values there are no distances"
            )
    keys = list(dict.fromkeys(key for row in secrets.values() for key in row))
    meant = dict(zip(keys, _values(keys), strict=True))
    distinct = list(dict.fromkeys(meant.values()))
    support, at = _axis(distinct, order, step)
    place = dict(zip(distinct, at.tolist(), strict=True))
    rows: dict[str, list[int]] = {}
    notes: list[str] = []
    for secret, row in secrets.items():
        name = _new_name(secret, rows)
        if len({meant[key] for key in row}) < len(row):
            raise InputError(f"secret {name!r} gives the same value twice")
        masses = [
            parse_number(p, f"the probability of {key!r} under secret {name!r}")
            for key, p in row.items()
        ]
        if min(masses) < 0:
            raise InputError(f"secret {name!r} has the negative probability {show(min(masses))}")
        denominator = math.lcm(*{p.denominator for p in masses})
        numerators = [0] * support.size
        for key, p in zip(row, masses, strict=True):
            numerators[place[meant[key]]] += p.numerator * (denominator // p.denominator)
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
        rows[name] = numerators
    product = Product((None,), (support,))
    return Rows(product, tuple(rows), list(rows.values()), tuple(notes))


def rows_of_counts(counts: Mapping[Any, Any], support: Any, order: Any, step: Any) -> Rows:
    """Read integer counts of one column, or nested ones with an axis for each of several.

    See :meth:`pufferfish.Prior.from_counts`; for several columns ``support`` is a mapping.
    """
    _check_mapping(counts, "counts must be a mapping {secret: [count, ...]}")
    given = support if isinstance(support, Mapping) else {None: support}
    columns = tuple(name.strip() if isinstance(name, str) else name for name in given)
    orders, steps = _per_column(order, columns, "order"), _per_column(step, columns, "step")
    axes, places = [], []
    for column, values in zip(columns, given.values(), strict=True):
        try:
            axis, at = _listed_axis(values, orders.get(column), steps.get(column))
        except InputError as error:
            where = "" if column is None else f"column {column!r}: "
            raise InputError(f"{where}{error}") from None
        axes.append(axis)
        places.append(at)
    product = Product(columns, tuple(axes))
    flat = np.ravel_multi_index(np.ix_(*places), product.shape).reshape(-1)
    rows: dict[str, npt.NDArray[Any]] = {}
    for secret, own in counts.items():
        name = _new_name(secret, rows)
        row = _integers(name, own, tuple(map(len, places)), columns)
        rows[name] = np.zeros(product.size, dtype=row.dtype)
        np.add.at(rows[name], flat, row)
    return Rows(product, tuple(rows), list(rows.values()))


def _check_mapping(given: Any, needed: str) -> None:
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"{needed} with at least one secret, but {reprlib.repr(given)} was given")


def _new_name(secret: Any, known: Mapping[str, Any]) -> str:
    name = text_of(secret)
    if name in known:
        raise InputError(f"the secret {name!r} is given twice")
    return name


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


def _axis(values: Sequence[Fraction | str], order: Any, step: Any) -> tuple[Support, IntArray]:
    """Return the support of the values, and the atom at which each of them lies."""
    numbers = [value for value in values if isinstance(value, Fraction)]
    if numbers and order is not None:
        raise InputError("an order is for levels, but all values are numbers")
    if numbers:
        lattice = make_lattice(numbers, None if step is None else parse_number(step, "the step"))
        units = [unit - lattice.origin for unit in lattice_index(numbers, lattice.step)]
        return lattice, np.searchsorted(lattice.index, units)
    if step is not None:
        raise InputError("a step is for numbers, but the values are levels")
    levels = make_levels(map(str, values), order)
    place = {name: k for k, name in enumerate(levels.names)}
    return levels, np.array([place[str(value)] for value in values], dtype=np.int64)


def _listed_axis(values: Any, order: Any, step: Any) -> tuple[Support, IntArray]:
    """Return the support of one column, and where each of the values listed lies on it."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of unequal lengths
        array = np.empty(())
    if array.ndim != 1:
        raise InputError("the support must be a list or an array of one dimension")
    if not array.size:
        raise InputError("the support is empty: no value was given")
    axis: Support
    if order is None and step is None and array.dtype.kind in "iu":
        # A difference of small integers may not fit in theirs.
        array = array if array.dtype.kind == "u" else array.astype(np.int64)
        units, at = np.unique(array, return_inverse=True)
        distinct, ends = len(units), [Fraction(int(unit)) for unit in units[[0, -1]]]
        if ends[1] - ends[0] > MAX_CELLS:
            make_lattice(ends)  # refuses them
        axis = Lattice(Fraction(1), int(units[0]), (units - units[0]).astype(np.int64))
    else:
        given = _values(list(values))
        distinct = len(set(given))
        axis, at = _axis(given, order, step)
    if distinct < array.size:
        raise InputError("the support gives the same value twice")
    return axis, at


def _integers(
    secret: str, given: Any, shape: tuple[int, ...], columns: Sequence[str | None]
) -> npt.NDArray[Any]:
    """Return one secret's counts as integers, flat; Python integers where 64 bits may fail."""
    try:
        array = np.asarray(given)
        small = array.dtype.kind in "iuf" and bool((abs(array) < 2**53).all())
        if small and bool((array % 1 == 0).all()):
            array = array.astype(np.int64)
        elif array.ndim:
            array = np.array(given, dtype=object)  # a double would lose digits of large integers
    except ValueError:  # lists of unequal lengths
        array = np.empty(())
    if array.shape != shape:
        of = "" if len(shape) == 1 else f" of {listed(map(str, columns))}"
        raise InputError(
            f"secret {secret!r} needs counts of the shape {shape}{of}, as the support has, but "
            f"those given have {f'the shape {array.shape}' if array.ndim else 'no such shape'}"
        )
    flat = array.reshape(-1)
    if flat.dtype == object:
        numbers = [parse_number(c, f"a count of secret {secret!r}") for c in flat.tolist()]
        wrong = [c for c in numbers if c.denominator != 1]
        if wrong:
            raise InputError(
                f"the counts of secret {secret!r} must be whole numbers, but {float(wrong[0])} was "
                "given; for probabilities use Prior.from_mapping"
            )
        flat = np.array([int(c) for c in numbers], dtype=object)
    if flat.min() < 0:
        raise InputError(f"secret {secret!r} has the negative count {flat.min()}")
    return flat


def _per_column(given: Any, columns: Sequence[Any], what: str) -> Mapping[Any, Any]:
    """Return an option of several columns by column; one column may have it without its name."""
    if given is None or (isinstance(given, Mapping) and set(given) <= set(columns)):
        return given or {}
    if len(columns) == 1 and not isinstance(given, Mapping):
        return {columns[0]: given}
    if None in columns:
        raise InputError(f"{what} by column needs a support by column, {{column: values}}")
    raise InputError(
        f"{what} must say which column it is for, {what}={{{columns[0]!r}: ...}}, and the columns "
        f"are {listed(columns)}, but {reprlib.repr(given)} was given"
    )
