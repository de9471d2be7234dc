# SPDX-License-Identifier: Apache-2.0
"""What users write for a joint prior: nested counts, one axis per column, on a product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.arrays import IntArray
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.priorinput import brief, integer_row, mapping_values, one_dimension, placed
from pufferfish.priorinput import scattered as scatter
from pufferfish.product import Product, check_columns, make_product
from pufferfish.support import Support
from pufferfish.texts import text_of


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
