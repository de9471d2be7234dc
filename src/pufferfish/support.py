# SPDX-License-Identifier: Apache-2.0
"""Where values can lie: numbers on a lattice, levels, and the product of several columns."""

from __future__ import annotations
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
import numpy as np
from pufferfish.errors import InputError, did_you_mean, listed
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal
from pufferfish.numbers import IntArray as IntArray
from pufferfish.numbers import lcm_of_denominators, show
from pufferfish.numbers import text_of

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


#: How the order of levels may be stated: as a list, least first, or by one of two names.
Order = tuple[str, ...] | Literal["appearance", "alphabetical"] | None
NAMED_ORDERS = ("appearance", "alphabetical")

#: More cells than this between the least and the largest value, and a step is refused.
MAX_CELLS = 2**53


@dataclass(frozen=True, eq=False)
class Lattice:
    """Numbers on a lattice: atom k has the value ``step * (origin + index[k])``.

    Attributes
    ----------
    step : Fraction
        The distance g between neighbouring lattice points.
    origin : int
        The least atom in units of the step; any size, integers beyond 2**53 included.
    index : int64 array, shape (n,)
        The atoms in units of the step, counted from ``origin``; strictly increasing from 0.
    """

    step: Fraction
    origin: int
    index: IntArray

    @property
    def size(self) -> int:
        """Number of atoms n."""
        return len(self.index)

    def value(self, k: int) -> Fraction:
        """Return the value of atom k, exactly."""
        return self.step * (self.origin + int(self.index[k]))

    @cached_property
    def values(self) -> tuple[Fraction, ...]:
        """All atoms' values, exactly."""
        step, origin = self.step, self.origin
        return tuple(step * (origin + k) for k in self.index.tolist())

    def name(self, k: int) -> str:
        """Return the text of atom k."""
        return show(self.value(k))

    def same_as(self, other: object) -> bool:
        """Whether the other support has the same atoms on the same lattice."""
        return (
            isinstance(other, Lattice)
            and self.step == other.step
            and self.origin == other.origin
            and np.array_equal(self.index, other.index)
        )


@dataclass(frozen=True)
class Levels:
    """Levels; with an order that the user stated they are coded 0, 1, 2, ...

    Attributes
    ----------
    names : tuple of str
        The levels, in their order where there is one, else sorted as text.
    ordered : bool
        Whether the user stated the order.

    Raises
    ------
    InputError
        If a name is empty, or holds half a character (a surrogate).
    """

    names: tuple[str, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if not name:
                raise InputError(
                    "a level needs a name, but one is empty; an empty cell means a missing value"
                )
            if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
                raise InputError(f"a level must be UTF-8 text, but {name!a} was given")

    @property
    def size(self) -> int:
        """Number of levels n."""
        return len(self.names)

    def name(self, k: int) -> str:
        """Return the name of level k."""
        return self.names[k]

    def same_as(self, other: object) -> bool:
        """Whether the other support has the same levels in the same order."""
        return self == other


#: The support of one column.
Support = Lattice | Levels
#: That of one column, or of several together.
AnySupport = Lattice | Levels | Product


def one_column(support: AnySupport) -> Support:
    """Return the support of one column.

    Raises
    ------
    InputError
        For the support of several columns together.
    """
    if isinstance(support, Product):
        raise InputError(
            f"the prior is joint over the columns {listed(map(repr, support.columns))}, but noise "
            "and channels are for one column at a time; take one of them "
            f"(prior.marginal({support.columns[0]!r})); joint_loss tells what several reveal"
        )
    return support


def lattice_of(support: AnySupport) -> Lattice:
    """Return the lattice on which additive noise is put: numbers, or the codes of ordered levels.

    Raises
    ------
    InputError
        For levels without an order: adding a number to a level means nothing. For several columns
        together: noise is calibrated for one at a time.
    """
    support = one_column(support)
    if isinstance(support, Lattice):
        return support
    if not support.ordered:
        raise InputError(
            "additive noise needs numbers or levels with an order; give the order of "
            f"{listed(support.names)} with order=[...] (--order on the command line), "
            "least level first"
        )
    return Lattice(Fraction(1), 0, np.arange(support.size, dtype=np.int64))


def step_of(values: Iterable[Fraction]) -> Fraction:
    """Return the largest number that divides 1 and every value."""
    return Fraction(1, lcm_of_denominators(values))


def nearest_unit(numerator: int, denominator: int) -> int:
    """Return the integer nearest to ``numerator / denominator`` (ties to the even one).

    Counting and releasing both round to a step with it, and with nothing else: what is calibrated
    is what is released.
    """
    down, rest = divmod(numerator, denominator)
    return down + (2 * rest > denominator or (2 * rest == denominator and down % 2 == 1))


def lattice_index(values: Sequence[Fraction], step: Fraction) -> list[int]:
    """Return the multiples of the step nearest to the values (ties to the even multiple)."""
    numerator, denominator = step.numerator, step.denominator
    if numerator == 1:
        units = [
            v.numerator * (denominator // v.denominator)
            for v in values
            if denominator % v.denominator == 0
        ]
        if len(units) == len(values):
            return units
    return [nearest_unit(v.numerator * denominator, v.denominator * numerator) for v in values]


def make_lattice(values: Iterable[Fraction], step: Fraction | None = None) -> Lattice:
    """Return the lattice that holds the values, rounded to ``step`` where one is given.

    Raises
    ------
    InputError
        If there is no value, the step is not positive, or the range has too many cells.
    """
    distinct = list(values)
    if not distinct:
        raise InputError("the support is empty: no usable public value was given")
    if step is not None and step <= 0:
        raise InputError(f"the step of the lattice must be above 0, but {show(step)} was given")
    if step is None:
        step = step_of(distinct)
    units = sorted(set(lattice_index(distinct, step)))
    cells = units[-1] - units[0]
    if cells > MAX_CELLS:
        raise InputError(
            f"the values range over {Decimal(cells):.3g} steps of {_brief(step)}, more than 2**53; "
            f"give a coarser step (--step), for example {_brief(_coarser(step, cells))}"
        )
    origin = units[0]
    return Lattice(step, origin, np.array([unit - origin for unit in units], dtype=np.int64))


def _brief(number: Fraction) -> str:
    text = show(number)
    return (
        text
        if len(text) <= 24
        else f"{Decimal(number.numerator) / Decimal(number.denominator):.0e}"
    )


def _coarser(step: Fraction, cells: int) -> Fraction:
    power = Fraction(1)
    while step * cells / power > 10**6:
        power *= 10
    while step * cells / power < 10**5:
        power /= 10
    return power


def read_order(order: object) -> Order:
    """Return an order as it was stated: a tuple of levels, or one of the two named orders.

    Parameters
    ----------
    order : sequence of levels, str or None
        A text is "appearance", "alphabetical", or the levels with commas between them.

    Raises
    ------
    InputError
        If it is none of these, is empty, or names a level twice.
    """
    if order is None:
        return None
    items: list[object]
    if isinstance(order, str):
        named = order.strip().lower()
        if named == "appearance":
            return "appearance"
        if named == "alphabetical":
            return "alphabetical"
        items = list(order.split(","))
        if len(items) == 1:
            raise InputError(
                "order must be a list of levels, 'appearance' or 'alphabetical', but "
                f"{order!r} was given{did_you_mean(order, NAMED_ORDERS)}"
            )
    elif isinstance(order, Iterable):
        items = list(order)
        if not items:
            raise InputError("order needs at least one level, but none was given")
    else:
        raise InputError(
            f"order must be a list of levels, 'appearance' or 'alphabetical', but {order!r} was "
            "given"
        )
    stated = tuple(text_of(item) for item in items)
    twice = sorted(name for name, times in Counter(stated).items() if times > 1)
    if twice:
        raise InputError(f"order names {listed(twice)} more than once")
    return stated


def make_levels(names: Iterable[str], order: Sequence[Any] | str | None = None) -> Levels:
    """Return levels, in the stated order or (without one) sorted as text and unordered.

    Parameters
    ----------
    names : iterable of str
        The levels that occur; for the order "appearance" in the order in which they appear.
    order : sequence of levels, "appearance", "alphabetical" or None
        See :func:`read_order`.

    Raises
    ------
    InputError
        If the order names a level twice, misses one that occurs, or is none.
    """
    present = dict.fromkeys(names)
    stated = read_order(order)
    if stated == "appearance":
        return Levels(tuple(present), ordered=True)
    if stated is None or stated == "alphabetical":
        return Levels(tuple(sorted(present)), ordered=stated is not None)
    lost = sorted(set(present) - set(stated))
    if lost:
        raise InputError(
            f"the order {listed(stated)} misses the level {lost[0]!r}"
            f"{did_you_mean(lost[0], [s for s in stated if s not in present])}"
            if len(lost) == 1
            else f"the order {listed(stated)} misses the levels {listed(lost)}"
        )
    return Levels(stated, ordered=True)
