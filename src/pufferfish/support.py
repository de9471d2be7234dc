# SPDX-License-Identifier: Apache-2.0
"""Where values can lie: numbers on a lattice, levels, and the product of several columns."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from pufferfish.errors import InputError, counted, did_you_mean, joined, listed, quoted
from pufferfish.numbers import IntArray, show, show_short, text_of

#: The level that stands for a missing value (``missing_as_level``).
MISSING_LEVEL = "(missing)"
#: A product of more cells than this is refused: its counts are kept one by one.
MOST_CELLS = 10**7
#: More cells than this between the least and the largest value, and a step is refused.
MAX_CELLS = 2**53

#: How the order of levels may be stated: as a list, least first, or by one of two names.
NamedOrder = Literal["appearance", "alphabetical"]
Order = tuple[str, ...] | NamedOrder | None
NAMED_ORDERS: tuple[NamedOrder, ...] = ("appearance", "alphabetical")


@dataclass(frozen=True, eq=False)
class Lattice:
    """Numbers on a lattice: atom k has the value ``step * (origin + index[k])``."""

    step: Fraction
    origin: int  # of any size, integers beyond 2**53 included
    index: IntArray  # shape (n,), strictly increasing from 0
    ordered: ClassVar[bool] = True

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
        return tuple(self.step * (self.origin + k) for k in self.index.tolist())

    def name(self, k: int) -> str:
        """Return the text of atom k."""
        return show(self.value(k))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Lattice)
            and (self.step, self.origin) == (other.step, other.origin)
            and np.array_equal(self.index, other.index)
        )

    def __hash__(self) -> int:
        return hash((self.step, self.origin, self.size))

    def __repr__(self) -> str:
        span = f"{self.name(0)} to {self.name(self.size - 1)}"
        return f"Lattice({counted(self.size, 'value')} from {span}, step {show(self.step)})"


@dataclass(frozen=True)
class Levels:
    """Levels; with an order that the user stated they are coded 0, 1, 2, ..."""

    names: tuple[str, ...]  # in their order where there is one, else sorted as text
    ordered: bool = False

    def __post_init__(self) -> None:
        if "" in self.names:
            raise InputError("a level needs a name; an empty cell means a missing value")
        repeated = [name for name, times in Counter(self.names).items() if times > 1]
        if repeated:
            raise InputError(f"the level {repeated[0]!r} is named more than once")
        try:
            "".join(self.names).encode()
        except UnicodeEncodeError:
            raise InputError("levels must be UTF-8 text, without half a character") from None

    @property
    def size(self) -> int:
        """Number of levels n."""
        return len(self.names)

    def name(self, k: int) -> str:
        """Return the name of level k."""
        return self.names[k]

    def __repr__(self) -> str:
        order = " < ".join if self.ordered and self.size <= 8 else joined
        return f"Levels({order(map(quoted, self.names))})"


#: The support of one column.
Support = Lattice | Levels


def set_name(support: Support, members: Iterable[int]) -> str:
    """Return the name of a set of values: ``{a, b}``, in their order, or ``{*}`` of all of them.

    Different sets have different names: a value whose name could be taken for anything else is
    written as a JSON string.
    """
    names = [support.name(k) for k in sorted(set(members))]
    if len(names) == support.size:
        return "{*}"
    for k, name in enumerate(names):
        if name != name.strip() or set(name) & set('{},"*'):
            names[k] = json.dumps(name, ensure_ascii=False)
    return f"{{{', '.join(names)}}}"


@dataclass(frozen=True)
class Product:
    """The combinations of values of several columns, in C order: the last column runs fastest."""

    columns: tuple[str | None, ...]  # None: the only column of a given prior
    axes: tuple[Support, ...]

    def __post_init__(self) -> None:
        names = self.columns if len(self.columns) > 1 else tuple(filter(None, self.columns))
        proper = {name for name in names if isinstance(name, str) and name.strip()}
        if not self.columns or len(proper) < len(names):
            raise InputError(
                f"the columns must be different names, but {list(self.columns)} were given"
            )
        if self.size > MOST_CELLS:
            raise InputError(
                f"there are {self.size:,} combinations of values ({self!r}), more than "
                f"{MOST_CELLS:,}; use fewer columns, or give a coarser step for numbers (--step)"
            )

    def __repr__(self) -> str:
        axes = zip(self.columns, self.axes, strict=True)
        return ", ".join(f"{quoted(name)}: {axis!r}" if name else repr(axis) for name, axis in axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of atoms of each axis: ``counts[s].reshape(shape)`` has one axis per column."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of atoms, which is the product of the axes' sizes."""
        return math.prod(self.shape)

    def name(self, k: int) -> str:
        """Return the text of atom k: ``x = 1, z = yes``, or of one column only ``1``."""
        places = np.unravel_index(k, self.shape)
        texts = [axis.name(int(at)) for axis, at in zip(self.axes, places, strict=True)]
        if len(texts) == 1:
            return texts[0]
        return ", ".join(f"{name} = {text}" for name, text in zip(self.columns, texts, strict=True))

    def position(self, column: str | None) -> int:
        """Return which axis is that of a column; None: that of the only one."""
        if len(self.columns) == 1 and None in (column, *self.columns):
            return 0
        if column in self.columns:
            return self.columns.index(column)
        names = [name for name in self.columns if name is not None]
        near = did_you_mean(column, names)
        wrong = "" if column is None else f"there is no column {column!r}{near}; "
        raise InputError(
            f"{wrong}name one of the columns {listed(names)} (column=, or prior.marginal): noise "
            "and channels are for one column at a time"
        )

    @property
    def only(self) -> Support:
        """The support of the only column."""
        return self.axes[self.position(None)]


def lattice_of(support: Support, what: str = "noise, unlike the mechanism channel,") -> Lattice:
    """Return the lattice of a support: its numbers, or the codes of ordered levels.

    Levels without an order are refused: there are no distances between them. ``what`` needs them.
    """
    if isinstance(support, Lattice):
        return support
    if not support.ordered:
        raise InputError(
            f"{what} needs numbers or levels with an order, but the levels {listed(support.names)} "
            "have none: state one with --order V1,V2,... (order=[...]), least level first"
        )
    return Lattice(Fraction(1), 0, np.arange(support.size, dtype=np.int64))


def nearest_unit(numerator: int, denominator: int) -> int:
    """Return the integer nearest to ``numerator / denominator`` (ties to the even one).

    This is ``round`` of a fraction, without making one: what is calibrated is what is released.
    """
    down, rest = divmod(numerator, denominator)
    return down + (2 * rest > denominator or (2 * rest == denominator and down % 2 == 1))


def make_lattice(values: Iterable[Fraction | int], step: Fraction | None = None) -> Lattice:
    """Return the lattice that holds the values, rounded to ``step`` where one is given.

    Without a step it is the largest number that divides 1 and every value.
    """
    distinct = list(values)
    if not distinct:
        raise InputError("the support is empty: no usable public value was given")
    if step is not None and step <= 0:
        raise InputError(f"the step of the lattice must be above 0, but {show(step)} was given")
    step = step or Fraction(1, math.lcm(*{value.denominator for value in distinct}))
    up, down = step.denominator, step.numerator
    whole = up == down == 1 and {*map(type, distinct)} == {int}  # as they are, which is quick
    near = (nearest_unit(v.numerator * up, v.denominator * down) for v in distinct)
    units = sorted({*(distinct if whole else near)})
    origin, cells = units[0], units[-1] - units[0]
    if cells > MAX_CELLS:
        ends = " to ".join(show_short(step * unit) for unit in (origin, units[-1]))
        raise InputError(
            f"from {ends} there are more than 2**53 steps of {show_short(step)}; give a coarser "
            "step (--step), to which values are rounded"
        )
    return Lattice(step, origin, np.array([unit - origin for unit in units], dtype=np.int64))


def read_order(order: object) -> Order:
    """Return an order as it was stated: a tuple of levels, or one of the two named orders.

    ``order`` is a sequence of levels, least first, "appearance", "alphabetical", or the levels in
    one text with commas between them.
    """
    if order is None:
        return None
    for known in NAMED_ORDERS:
        if isinstance(order, str) and order.strip().lower() == known:
            return known
    given = order.split(",") if isinstance(order, str) and "," in order else order
    items = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not items:
        raise InputError(
            "order must be a list of levels (at least one), 'appearance' or 'alphabetical', but "
            f"{order!r} was given{did_you_mean(order, NAMED_ORDERS)}"
        )
    return tuple(text_of(item) for item in items)


def make_levels(names: Iterable[str], order: Sequence[Any] | str | None = None) -> Levels:
    """Return levels, in the stated order or (without one) sorted as text and unordered.

    For the order "appearance" the names come as they appear; a list must hold all of them.
    """
    present = dict.fromkeys(names)
    stated = read_order(order)
    if not isinstance(stated, tuple):
        names = present if stated == "appearance" else sorted(present)
        return Levels(tuple(names), ordered=stated is not None)
    lost = sorted(set(present) - set(stated))
    if lost:
        unused = listed(name for name in stated if name not in present)
        hint = f"; it names {unused}, which no row has" if unused else ""
        raise InputError(f"the order {listed(stated)} misses the levels {listed(lost)}{hint}")
    return Levels(stated, ordered=True)
