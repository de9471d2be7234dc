# SPDX-License-Identifier: Apache-2.0
"""Priors that users write: mappings and counts become exact integers on a support."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any
from pufferfish.errors import InputError
from pufferfish.numbers import show
from __future__ import annotations
from collections.abc import Iterable, Mapping, Sequence
import numpy as np
import numpy.typing as npt
from pufferfish.numbers import IntArray
from pufferfish.numbers import NotFinite, parse_number, parse_text
from pufferfish.support import (
    MAX_CELLS,
    Lattice,
    Support,
    lattice_index,
    make_lattice,
    make_levels,
)
from pufferfish.numbers import text_of
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pufferfish.numbers import parse_number
from pufferfish.support import Support
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.support import Product, check_columns, make_product

#: How far from 1 a row of probabilities may sum and still be taken as one.
TOLERANCE = Fraction(1, 10**6)


def fit_probabilities(
    secret: str, given: Sequence[Any], exact: Sequence[Fraction]
) -> tuple[list[Fraction], list[str]]:
    """Return probabilities that sum to exactly 1, and notes on what was done to them.

    Parameters
    ----------
    secret : str
        Name of the secret, for messages.
    given : sequence
        The probabilities as the user wrote them; tells how many digits each has.
    exact : sequence of Fraction
        Their exact values.

    Raises
    ------
    InputError
        If an entry is negative, or the sum is further than 1e-6 from 1.
    """
    for p in exact:
        if p < 0:
            raise InputError(f"secret {secret!r} has the negative probability {show(p)}")
    total = sum(exact, Fraction(0))
    if total == 1:
        return list(exact), []
    if abs(total - 1) > TOLERANCE:
        given_sum = float(min(total, Fraction(10**300)))
        raise InputError(
            f"the probabilities of secret {secret!r} sum to {given_sum:.10g}, not to 1; "
            "counts go into Prior.from_counts"
        )
    fractions = [_small_fraction(g, p) for g, p in zip(given, exact, strict=True)]
    small = [f for f in fractions if f is not None]
    if len(small) == len(fractions) and sum(small, Fraction(0)) == 1:
        shown = next((show(f) for f, p in zip(small, exact, strict=True) if f != p), "")
        return small, [
            f"the probabilities of secret {secret!r} sum to {_shown_sum(total)}; they were read "
            f"as the small fractions that they print ({shown}, ...)"
        ]
    return [p / total for p in exact], [
        f"the probabilities of secret {secret!r} sum to {_shown_sum(total)}; they were "
        "renormalised; if exact ties matter, give counts or fractions"
    ]


def _small_fraction(given: Any, exact: Fraction) -> Fraction | None:
    """Return the fraction with a small denominator that prints as given, or None.

    The denominator is kept below the square root of the printed resolution, so that a fit is
    no accident: fractions p/q with q <= Q are at least 1/Q**2 apart.
    """
    if exact.denominator == 1:
        return exact
    unit = _last_digit(given)
    if unit is None:  # given as a fraction: it is what it says
        return exact
    # The unit may lie below every double: integers only.
    bound = math.isqrt(math.floor(1 / unit)) // 4
    if bound < 2:
        return None
    candidate = exact.limit_denominator(bound)
    # Rounded or cut off to the printed digits; a double may be off by its own last one.
    off = candidate - exact
    fits = abs(off) <= unit if isinstance(given, float) else -unit / 2 <= off < unit
    # Never 0: whether a value can occur at all is not a matter of digits.
    return candidate if fits and candidate > 0 else None


def _last_digit(given: Any) -> Fraction | None:
    """Return one unit of the last printed digit, or None where the number is exact already."""
    text = given if isinstance(given, str) else repr(given) if type(given) is float else str(given)
    if "/" in text:
        return None
    exponent = Decimal(text.strip()).as_tuple().exponent
    # A non-finite number was refused before; the double that prints as 0.5 has 16 digits too.
    last = -16 if isinstance(given, float) else 0
    return Fraction(10) ** min(last, exponent) if isinstance(exponent, int) else None


def _shown_sum(total: Fraction) -> str:
    text = f"{float(total):.15g}"
    if text != "1":
        return text
    off = abs(total - 1)
    return f"1{'+' if total > 1 else '-'}{Decimal(off.numerator) / Decimal(off.denominator):.1g}"


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


@dataclass(frozen=True, eq=False)
class Rows:
    """One row of numerators per secret.

    Attributes
    ----------
    support : Lattice or Levels
        The n atoms.
    secrets : tuple of str
        The m secrets.
    numerators : list of sequences of integers, shape (m, n)
        The numerator of every atom, or its count.
    notes : tuple of str
        What was done to the input.
    """

    support: Support
    secrets: tuple[str, ...]
    numerators: list[list[int]] | list[npt.NDArray[Any]]
    notes: tuple[str, ...] = ()


def rows_of_mapping(
    secrets: Mapping[Any, Mapping[Any, Any]], order: Sequence[Any] | str | None, step: Any
) -> Rows:
    """Read ``{secret: {value: probability}}``; see :meth:`pufferfish.Prior.from_mapping`.

    Raises
    ------
    InputError
        If a row does not sum to 1 (within 1e-6), has a negative entry, or is no mapping.
    """
    if not isinstance(secrets, Mapping) or not secrets:
        raise InputError(
            "a prior needs a mapping {secret: {value: probability}} with at least one secret, "
            f"but {brief(secrets)} was given"
        )
    parsed: dict[str, dict[Any, Fraction]] = {}
    notes: list[str] = []
    values = mapping_values(secrets)
    for secret, row in secrets.items():
        name = text_of(secret)
        if name in parsed:
            raise InputError(f"the secret {name!r} is given twice")
        masses = {
            values[key]: parse_number(p, f"the probability of {key!r} under secret {name!r}")
            for key, p in row.items()
        }
        if len(masses) < len(row):
            raise InputError(f"secret {name!r} gives the same value twice")
        given = list(row.values())
        fitted, note = fit_probabilities(name, given, list(masses.values()))
        parsed[name] = dict(zip(masses, fitted, strict=True))
        notes += note
    support, place = placed(values.values(), order, step)
    counts: list[list[int]] = []
    for row_masses in parsed.values():
        denominator = math.lcm(1, *{p.denominator for p in row_masses.values()})
        numerators = [0] * support.size
        for value, p in row_masses.items():
            numerators[place[value]] += p.numerator * (denominator // p.denominator)
        counts.append(numerators)
    return Rows(support, tuple(parsed), counts, tuple(notes))


def rows_of_counts(
    counts: Mapping[Any, Sequence[int] | npt.NDArray[Any]],
    support: Sequence[Any] | npt.NDArray[Any],
    order: Sequence[Any] | str | None,
    step: Any,
) -> Rows:
    """Read integer counts, one list or array per secret; see :meth:`pufferfish.Prior.from_counts`.

    Raises
    ------
    InputError
        If lengths differ, a count is negative or no integer, or a value is given twice.
    """
    if not isinstance(counts, Mapping) or not counts:
        raise InputError(
            "counts must be a mapping {secret: [count, ...]} with at least one secret, "
            f"but {brief(counts)} was given"
        )
    integers = one_dimension(support, "the support")
    rows = {}
    for secret, row in counts.items():
        name = text_of(secret)
        if name in rows:
            raise InputError(f"the secret {name!r} is given twice")
        rows[name] = integer_row(name, row, len(integers))
    if order is None and step is None and integers.dtype.kind in "iu" and integers.size:
        # The quick way for large integer supports; the general one below agrees with it.
        lattice, at = integer_support(integers)
        numerators = [scattered(row, at, lattice.size) for row in rows.values()]
        return Rows(lattice, tuple(rows), numerators)
    if len(support) == 0:
        raise InputError("the support is empty: no value was given")
    keys = dict.fromkeys(support)
    if len(keys) < len(support):
        raise InputError("the support gives the same value twice")
    values = mapping_values({"support": keys})
    if len(set(values.values())) < len(values):
        raise InputError("the support gives the same value twice")
    found, place = placed(values.values(), order, step)
    at = np.array([place[values[key]] for key in keys], dtype=np.int64)
    numerators = [scattered(row, at, found.size) for row in rows.values()]
    return Rows(found, tuple(rows), numerators)


def rows_of_joint_counts(
    counts: Mapping[Any, Any], support: Mapping[str, Sequence[Any]], order: Any, step: Any
) -> tuple[Product, tuple[str, ...], list[npt.NDArray[Any]]]:
    """Read nested integer counts, one axis per column; see :meth:`pufferfish.Prior.from_counts`.

    Parameters
    ----------
    counts : mapping from secret to nested integers, shape (n_1, ..., n_k)
    support : mapping from column to its values, in the order of the axes
    order, step : mapping from column to its option, or None

    Returns
    -------
    product : Product
    secrets : tuple of str, length m
    rows : list of integer arrays, shape (m, N)

    Raises
    ------
    InputError
        If shapes differ, a count is negative or no integer, a value is given twice, an option is
        for no column, or there are too many combinations.
    """
    if not isinstance(counts, Mapping) or not counts:
        raise InputError(
            "counts must be a mapping {secret: counts} with at least one secret, with one axis "
            f"per column, but {brief(counts)} was given"
        )
    columns = check_columns(list(support))
    orders = per_column(order, columns, "order")
    steps = per_column(step, columns, "step")
    axes, places = [], []
    for column, values in zip(columns, support.values(), strict=True):
        try:
            axis, at = _axis(values, orders.get(column), steps.get(column))
        except InputError as error:
            raise InputError(f"column {column!r}: {error}") from None
        axes.append(axis)
        places.append(at)
    product = make_product(columns, axes)
    given = tuple(len(at) for at in places)
    flat = np.ravel_multi_index(np.ix_(*places), product.shape).reshape(-1)
    rows: dict[str, npt.NDArray[Any]] = {}
    for secret, nested in counts.items():
        name = text_of(secret)
        if name in rows:
            raise InputError(f"the secret {name!r} is given twice")
        row = integer_row(name, _nested(name, nested, given, columns).reshape(-1), len(flat))
        rows[name] = scatter(row, flat, product.size)
    return product, tuple(rows), list(rows.values())


def per_column(given: Any, columns: Sequence[str], what: str) -> dict[str, Any]:
    """Return an option of several columns by column; one column may have it without its name.

    Parameters
    ----------
    given : mapping, or None
        ``{column: option}``.
    columns : sequence of str
        The names that may occur.
    what : str
        The name of the option, for messages.

    Raises
    ------
    InputError
        If it is no mapping though there are several columns, or names another column.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(columns) == 1:
            return {columns[0]: given}
        raise InputError(
            f"with several columns {what} must say which one it is for, "
            f"{what}={{{columns[0]!r}: ...}}, but {brief(given)} was given"
        )
    options: dict[str, Any] = {}
    for key, option in given.items():
        name = key.strip() if isinstance(key, str) else str(key)
        if name not in columns:
            raise InputError(
                f"{what} is given for {name!r}, which is none of the columns"
                f"{did_you_mean(name, columns)}; they are {listed(columns)}"
            )
        if name in options:
            raise InputError(f"{what} is given twice for the column {name!r}")
        options[name] = option
    return options


def _axis(values: Any, order: Any, step: Any) -> tuple[Support, IntArray]:
    """Return the support of one column, and where each of the values given lies on it."""
    one_dimension(values, "the support")
    keys = dict.fromkeys(values)
    if not keys:
        raise InputError("the support is empty: no value was given")
    meant = mapping_values({"support": keys})
    if len(keys) < len(values) or len(set(meant.values())) < len(keys):
        raise InputError("the support gives the same value twice")
    axis, place = placed(meant.values(), order, step)
    return axis, np.array([place[meant[key]] for key in keys], dtype=np.int64)


def _nested(
    secret: str, given: Any, shape: tuple[int, ...], columns: Sequence[str]
) -> npt.NDArray[Any]:
    """Return nested lists or an array as an array of this shape."""
    try:
        array = np.asarray(given)
    except ValueError:  # lists of unequal lengths
        array = np.empty(())
    if array.dtype.kind not in "iu" and not isinstance(given, np.ndarray) and array.ndim:
        array = np.array(given, dtype=object)  # a double would lose digits of large integers
    if array.shape != shape:
        needed = ", ".join(f"{n} of {column}" for n, column in zip(shape, columns, strict=True))
        found = "nested lists of unequal lengths" if array.ndim == 0 else f"shape {array.shape}"
        raise InputError(
            f"the counts of secret {secret!r} need the shape {shape} ({needed}), but {found} was "
            "given"
        )
    return array
