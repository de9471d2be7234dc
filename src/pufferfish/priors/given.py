# SPDX-License-Identifier: Apache-2.0
"""Distributions that users write: mappings and counts become exact integers on a support."""

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
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
    if not isinstance(secrets, Mapping) or not secrets:
        raise InputError(
            "a prior needs a mapping {secret: {value: probability}} with at least one secret, "
            f"but {reprlib.repr(secrets)} was given"
        )
    values = _mapping_values(secrets)
    parsed: dict[str, dict[Any, Fraction]] = {}
    notes: list[str] = []
    for secret, row in secrets.items():
        name = _new_name(secret, parsed)
        masses = {
            values[key]: parse_number(p, f"the probability of {key!r} under secret {name!r}")
            for key, p in row.items()
        }
        if len(masses) < len(row):
            raise InputError(f"secret {name!r} gives the same value twice")
        total = _checked_sum(name, masses.values())
        if total != 1:
            off = Decimal((total - 1).numerator) / (total - 1).denominator
            notes.append(
                f"the probabilities of secret {name!r} sum to 1{off:+.1g}; they were "
                "renormalised; if exact ties matter, give counts or fractions"
            )
        parsed[name] = masses
    support, place = _placed(values.values(), order, step)
    rows = []
    for masses in parsed.values():
        denominator = math.lcm(1, *{p.denominator for p in masses.values()})
        numerators = [0] * support.size
        for value, p in masses.items():
            numerators[place[value]] += p.numerator * (denominator // p.denominator)
        rows.append(numerators)
    return Rows(Product((None,), (support,)), tuple(parsed), rows, tuple(notes))


def rows_of_counts(counts: Mapping[Any, Any], support: Any, order: Any, step: Any) -> Rows:
    """Read integer counts of one column, or nested ones with an axis for each of several.

    See :meth:`pufferfish.Prior.from_counts`; for several columns ``support`` is a mapping.
    """
    if not isinstance(counts, Mapping) or not counts:
        raise InputError(
            "counts must be a mapping {secret: [count, ...]} with at least one secret, "
            f"but {reprlib.repr(counts)} was given"
        )
    columns: tuple[Any, ...] = (None,)
    if isinstance(support, Mapping):
        columns = tuple(name.strip() if isinstance(name, str) else name for name in support)
        orders = _per_column(order, columns, "order")
        steps = _per_column(step, columns, "step")
        found = [
            _axis(values, orders.get(column), steps.get(column), f"column {column!r}: ")
            for column, values in zip(columns, support.values(), strict=True)
        ]
    else:
        if isinstance(order, Mapping):
            raise InputError("an order by column needs a support by column, {column: values}")
        found = [_axis(support, order, step)]
    product = Product(columns, tuple(axis for axis, _ in found))
    places = [at for _, at in found]
    at = np.ravel_multi_index(np.ix_(*places), product.shape).reshape(-1)
    rows: dict[str, npt.NDArray[Any]] = {}
    for secret, given in counts.items():
        name = _new_name(secret, rows)
        rows[name] = _scattered(_integers(name, given, places, columns), at, product.size)
    return Rows(product, tuple(rows), list(rows.values()))


def _new_name(secret: Any, known: Mapping[str, Any]) -> str:
    name = text_of(secret)
    if name in known:
        raise InputError(f"the secret {name!r} is given twice")
    return name


def _checked_sum(secret: str, masses: Iterable[Fraction]) -> Fraction:
    """Return the sum of a row of probabilities, which must be all but 1."""
    total = Fraction(0)
    for p in masses:
        if p < 0:
            raise InputError(f"secret {secret!r} has the negative probability {show(p)}")
        total += p
    if abs(total - 1) > TOLERANCE:
        given = float(min(total, Fraction(10**300)))
        raise InputError(
            f"the probabilities of secret {secret!r} sum to {given:.10g}, not to 1; "
            "counts go into Prior.from_counts"
        )
    return total


def _mapping_values(secrets: Mapping[Any, Any]) -> dict[Any, Fraction | str]:
    """Return what each key stands for: all numbers if all parse as numbers, else all levels."""
    keys: dict[Any, None] = {}
    for secret, row in secrets.items():
        if not isinstance(row, Mapping):
            raise InputError(
                f"secret {str(secret)!r} needs values and probabilities, {{value: probability}}, "
                f"but {reprlib.repr(row)} was given; without values there are no distances"
            )
        if not row:
            raise InputError(f"secret {str(secret)!r} has no values: its probabilities sum to 0")
        keys.update(dict.fromkeys(row))
    return _values(keys)


def _values(keys: Iterable[Any]) -> dict[Any, Fraction | str]:
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
        elif isinstance(key, bool | np.bool_):  # like other text
            return {k: text_of(k) for k in keys}
        else:
            numbers[key] = parse_number(key, "a value of the support")
    return numbers


def _placed(
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


def _axis(values: Any, order: Any, step: Any, where: str = "") -> tuple[Support, IntArray]:
    """Return the support of one column, and where each of the values given lies on it."""
    try:
        array = np.asarray(values)
        if array.ndim != 1:
            raise InputError("the support must be a list or an array of one dimension")
        if not array.size:
            raise InputError("the support is empty: no value was given")
        if order is None and step is None and array.dtype.kind in "iu":
            return _integer_axis(array)
        keys = dict.fromkeys(values)
        meant = _values(keys)
        if len(keys) < len(values) or len(set(meant.values())) < len(keys):
            raise InputError("the support gives the same value twice")
        axis, place = _placed(meant.values(), order, step)
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    except ValueError:  # lists of unequal lengths
        raise InputError(f"{where}the support must be a list of one dimension") from None
    return axis, np.array([place[meant[key]] for key in keys], dtype=np.int64)


def _integer_axis(integers: npt.NDArray[Any]) -> tuple[Lattice, IntArray]:
    """Return the lattice of an integer array, and where each entry lies on it."""
    origin = int(integers.min())
    if int(integers.max()) - origin > MAX_CELLS:
        # Refused there, with a coarser step.
        return make_lattice(Fraction(int(v)) for v in integers.tolist()), integers
    if integers.dtype.kind == "i":
        integers = integers.astype(np.int64)  # a difference of small integers may not fit in theirs
    offsets = (integers - integers.dtype.type(origin)).astype(np.int64)
    if bool((np.diff(offsets) > 0).all()):
        return Lattice(Fraction(1), origin, offsets), np.arange(len(offsets), dtype=np.int64)
    index, at = np.unique(offsets, return_inverse=True)
    if len(index) < len(offsets):
        raise InputError("the support gives the same value twice")
    return Lattice(Fraction(1), origin, index), at


def _integers(
    secret: str, given: Any, places: Sequence[IntArray], columns: Sequence[str | None]
) -> npt.NDArray[Any]:
    """Return one secret's counts as integers, flat; Python integers where 64 bits fail."""
    shape = tuple(len(at) for at in places)
    try:
        array = np.asarray(given)
        if array.dtype.kind == "f" and bool((abs(array) < 2**53).all() and (array % 1 == 0).all()):
            array = array.astype(np.int64)
        elif array.dtype.kind not in "iu" and array.ndim:
            array = np.array(given, dtype=object)  # a double would lose digits of large integers
    except ValueError:  # lists of unequal lengths
        array = np.empty(())
    if array.shape != shape:
        found = f"the shape {array.shape}" if array.ndim else "no such shape"
        needed = [f"{n} of {column}" for n, column in zip(shape, columns, strict=True)]
        wanted = f"{shape[0]} values" if len(shape) == 1 else f"the shape {shape}: {listed(needed)}"
        if array.ndim == 1:
            found = f"{array.size} counts"
        raise InputError(f"secret {secret!r} has {found}, but the support has {wanted}")
    flat = array.reshape(-1)
    if flat.dtype.kind in "iu" and (not flat.size or int(flat.max()) <= 2**63 - 1):
        flat = flat.astype(np.int64)
    else:
        numbers = [parse_number(c, f"a count of secret {secret!r}") for c in flat.tolist()]
        wrong = [c for c in numbers if c.denominator != 1]
        if wrong:
            raise InputError(
                f"the counts of secret {secret!r} must be whole numbers, but {float(wrong[0])} was "
                "given; for probabilities use Prior.from_mapping"
            )
        flat = np.array([int(c) for c in numbers], dtype=object)
    if flat.size and flat.min() < 0:
        raise InputError(f"secret {secret!r} has the negative count {flat.min()}")
    return flat


def _scattered(row: npt.NDArray[Any], at: IntArray, size: int) -> npt.NDArray[Any]:
    """Return counts at their places on a support of ``size`` atoms, 0 elsewhere."""
    placed = np.zeros(size, dtype=row.dtype)
    np.add.at(placed, at, row)
    return placed


def _per_column(given: Any, columns: Sequence[Any], what: str) -> Mapping[str, Any]:
    """Return an option of several columns by column; one column may have it without its name."""
    if given is None or (isinstance(given, Mapping) and set(given) <= set(columns)):
        return given or {}
    if len(columns) == 1 and not isinstance(given, Mapping):
        return {columns[0]: given}
    raise InputError(
        f"{what} must say which column it is for, {what}={{{columns[0]!r}: ...}}, and the columns "
        f"are {listed(columns)}, but {reprlib.repr(given)} was given"
    )
