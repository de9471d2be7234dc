# SPDX-License-Identifier: Apache-2.0
"""ReleaseSpec is all that a release needs to know; ReleaseReport is what it did."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypedDict

from pufferfish.errors import InputError
from pufferfish.mechanisms.channel import Channel, check_labels
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, checked_flag, float_up, parse_number, parse_text, show
from pufferfish.support import Levels, Support
from pufferfish.tables.rules import Coding


class ReleaseOptions(TypedDict, total=False):
    """What whoever releases may choose, as :meth:`pufferfish.Plan.release` explains it."""

    out_of_support: Literal["refuse", "clamp"]
    bounds: tuple[Number, Number] | None
    round: bool
    allow_unchanged: bool
    min_scale: Number | None
    labels_only: bool


def set_column(column: str) -> str:
    """Return the name of the column of sets beside a released one."""
    return f"{column} (set)"


@dataclass(frozen=True, eq=False)
class ReleaseSpec:
    """What is released, through which mechanism, and what is done to its results.

    Attributes
    ----------
    coding : Coding or None
        Name and cleaning of the public column; None for a prior that no table stands behind: then
        only arrays can be released.
    support : Lattice or Levels
        Where the public value can lie; that of the coding, where there is one.
    mechanism : DiscreteLaplace or Channel
        Noise on the lattice of the support, or a channel whose inputs are the support.
    labels : Channel or None
        Where the channel publishes sets of values: a value of the support drawn from each set.
    weights : tuple of float
        How frequent a channel takes the values to be, for those who estimate; () tells nothing.
    secret : str or None
        The secret column, read for counting rows outside the promise, and never written.
    protected : tuple of str or None
        The secrets that occur in the pairs; None: nobody counts.
    unit : str or None
        The column whose equal cells are rows of one person.
    rows_per_person : tuple of int
        How many rows one person may have, where there is a unit.
    unit_missing : tuple of str
        Texts that mean "missing" in the unit column, besides the empty cell and NaN.
    out_of_support, bounds, round, allow_unchanged, min_scale, labels_only
        As in :meth:`pufferfish.Plan.release`. Bounds become fractions, the least scale a double.
    """

    coding: Coding | None
    support: Support
    mechanism: DiscreteLaplace | Channel
    labels: Channel | None = None
    weights: tuple[float, ...] = ()
    secret: str | None = None
    protected: tuple[str, ...] | None = None
    unit: str | None = None
    rows_per_person: tuple[int, ...] = ()
    unit_missing: tuple[str, ...] = ()
    out_of_support: Literal["refuse", "clamp"] = "refuse"
    bounds: tuple[Fraction, Fraction] | None = None
    round: bool = False
    allow_unchanged: bool = False
    min_scale: float | None = None
    labels_only: bool = False

    def __post_init__(self) -> None:
        if self.out_of_support not in ("refuse", "clamp"):
            raise InputError(
                f"out-of-support must be 'refuse' or 'clamp', but {self.out_of_support!r} was given"
            )
        for flag in ("round", "allow_unchanged", "labels_only"):
            checked_flag(getattr(self, flag), flag)
        if self.labels is not None:
            check_labels(self.labels, self.mechanism, self.support)
        elif self.labels_only:
            raise InputError(
                "--labels-only (labels_only) is for channels that publish sets of values"
            )
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _checked_bounds(self.bounds, self.support))
        if self.min_scale is not None:
            exact = parse_number(self.min_scale, "the least scale (--min-scale)")
            scale = float_up(exact)  # at least what was asked for
            if exact <= 0 or not math.isfinite(scale):
                raise InputError(
                    "the least scale (--min-scale) must be above 0 and within the range of a "
                    f"double, but {self.min_scale} was given"
                )
            object.__setattr__(self, "min_scale", scale)

    @property
    def sets(self) -> Levels | None:
        """The sets of values that are published beside labels."""
        sets = self.labels and not self.labels_only and self.labels.inputs
        return sets if isinstance(sets, Levels) else None


@dataclass(frozen=True)
class ReleaseReport:
    """Where the rows went: ``rows_read = rows_released + set_aside``, always.

    Attributes
    ----------
    source : str
        The file, or the kind of dataframe.
    output : str or None
        The file that was written; None for a dataframe.
    column : str
        Name of the released column.
    set_column : str or None
        Name of the column of sets beside it.
    keep : tuple of str
        The kept columns.
    mechanism : DiscreteLaplace or Channel
        The mechanism in force.
    rows_read, rows_released, set_aside : int
        Rows of the table; those that were released; those without a public value.
    clamped : int
        Released rows whose value was no atom and was moved to the nearest one.
    outside_promise : int or None
        Released rows whose secret is in no pair; None where nobody could count them.
    seeded : bool
        Whether it was drawn from a seed, for tests only.
    unchanged : bool
        Whether the column can be read back from what was published, as was allowed.
    """

    source: str
    output: str | None
    column: str
    keep: tuple[str, ...]
    mechanism: DiscreteLaplace | Channel
    rows_read: int
    rows_released: int
    set_aside: int = 0
    clamped: int = 0
    outside_promise: int | None = None
    seeded: bool = False
    unchanged: bool = False
    set_column: str | None = None


def _checked_bounds(bounds: Any, support: Support) -> tuple[Fraction, Fraction]:
    """Return exact bounds; in the place of its code may stand the name of an ordered level."""
    names = support.names if isinstance(support, Levels) else ()

    def number(bound: Any, what: str) -> Fraction:
        name = bound.strip() if isinstance(bound, str) else ""
        named = name in names and parse_text(name) is None
        return parse_number(names.index(name) if named else bound, what)

    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InputError(f"bounds are two numbers LO HI, but {bounds!r} was given") from None
    lower, upper = number(low, "the lower bound"), number(high, "the upper bound")
    if lower >= upper:
        raise InputError(
            f"the lower bound must be below the upper one, but {show(lower)} and {show(upper)} "
            "were given"
        )
    return lower, upper
