# SPDX-License-Identifier: Apache-2.0
"""The product: the support of several columns together, one axis for each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pufferfish.errors import InputError, did_you_mean, listed

if TYPE_CHECKING:
    from pufferfish.support import Lattice, Levels

#: A product of more cells than this is refused: its counts are kept one by one.
MOST_CELLS = 10**7


@dataclass(frozen=True, eq=False)
class Product:
    """The combinations of values of several columns, in C order: the last column runs fastest.

    Make one with :func:`make_product`, which checks it.

    Attributes
    ----------
    columns : tuple of str
        The names of the k columns, all different.
    axes : tuple of Lattice or Levels, length k
        The support of each column.
    """

    columns: tuple[str, ...]
    axes: tuple[Lattice | Levels, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of atoms of each axis: ``counts[s].reshape(shape)`` has one axis per column."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of atoms, which is the product of the axes' sizes."""
        return math.prod(self.shape)

    def places(self, k: int) -> tuple[int, ...]:
        """Return the place of atom k on each axis."""
        return tuple(int(place) for place in np.unravel_index(k, self.shape))

    def name(self, k: int) -> str:
        """Return the text of atom k: ``x = 1, z = yes``."""
        texts = [axis.name(at) for axis, at in zip(self.axes, self.places(k), strict=True)]
        pairs = zip(self.columns, texts, strict=True)
        return ", ".join(f"{column} = {text}" for column, text in pairs)

    def position(self, column: str) -> int:
        """Return which axis is that of a column.

        Raises
        ------
        InputError
            If there is no such column.
        """
        try:
            return self.columns.index(column)
        except ValueError:
            raise InputError(
                f"there is no column {column!r}{did_you_mean(str(column), self.columns)}; "
                f"the prior is on the columns {listed(self.columns)}"
            ) from None

    def same_as(self, other: object) -> bool:
        """Whether the other support has the same columns in the same order, with the same axes."""
        return (
            isinstance(other, Product)
            and self.columns == other.columns
            and all(a.same_as(b) for a, b in zip(self.axes, other.axes, strict=True))
        )


def make_product(columns: Sequence[str], axes: Sequence[Lattice | Levels]) -> Product:
    """Return the product of the axes of some columns, checked.

    Raises
    ------
    InputError
        If there is no column, two have one name, or there are more than 10**7 combinations.
    """
    names = check_columns(columns)
    product = Product(names, tuple(axes))
    if product.size > MOST_CELLS:
        sizes = ", ".join(f"{n} {size:,}" for n, size in zip(names, product.shape, strict=True))
        raise InputError(
            f"{'the columns have' if len(names) > 1 else 'the column has'} {product.size:,} "
            f"combinations of values ({sizes}), more than {MOST_CELLS:,}; use fewer columns, or "
            "give a coarser step for numbers (step={column: ...})"
        )
    return product


def check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns, trimmed.

    Raises
    ------
    InputError
        If there is none, one is no name, or two are the same.
    """
    names = []
    for column in columns:
        if not isinstance(column, str) or not column.strip():
            raise InputError(f"the columns must be names, but {column!r} was given")
        if column.strip() in names:
            raise InputError(f"the column {column.strip()!r} is named twice")
        names.append(column.strip())
    if not names:
        raise InputError("at least one column is needed, but none was named")
    return tuple(names)
