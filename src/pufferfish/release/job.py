# SPDX-License-Identifier: Apache-2.0
"""What a release is asked to do (ReleaseSpec), and what it did (ReleaseReport)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from pufferfish.errors import InputError, PufferfishError, did_you_mean
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.rationals import parse_number, show
from pufferfish.support import Support
from pufferfish.tables.rules import Rules

#: Called with the rows done so far and the rows in all, None while these are not yet known.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, eq=False)
class ReleaseSpec:
    """Everything that a release needs to know, and nothing of how it was calibrated.

    Attributes
    ----------
    support : Lattice or Levels
        Where the public value can lie.
    rules : Rules or None
        The cleaning and the names of the two columns, the same as in calibrating; None where the
        prior did not come from a table: then only arrays can be released.
    mechanism : DiscreteLaplace
        The noise; its step is that of the support.
    protected : tuple of str or None
        The secrets that occur in the pairs; None where nobody counts rows outside the promise.
    out_of_support : "refuse" or "clamp"
        What happens to a number that is no atom: the release is refused before anything is
        written, or the nearest atom (the lesser of two) takes its place.
    bounds : (Fraction, Fraction) or None
        The released value is moved into these after the noise, which is free (theory, section 7);
        it is never drawn again.
    round : bool
        Whether the released value, the sum and never the noise alone, is rounded to the nearest
        integer (ties to the even one).
    allow_unchanged : bool
        Whether a scale of 0, which publishes the column as it is, is what the user wants.
    min_scale : float or None
        The scale is raised to this; a larger scale never costs more privacy (theory, section 2).

    Raises
    ------
    InputError
        If an option is not of that kind.
    """

    support: Support
    rules: Rules | None
    mechanism: DiscreteLaplace
    protected: tuple[str, ...] | None = None
    out_of_support: Literal["refuse", "clamp"] = "refuse"
    bounds: tuple[Fraction, Fraction] | None = None
    round: bool = False
    allow_unchanged: bool = False
    min_scale: float | None = None

    def __post_init__(self) -> None:
        if self.out_of_support not in ("refuse", "clamp"):
            raise InputError(
                f"out-of-support must be 'refuse' or 'clamp', but {self.out_of_support!r} was "
                f"given{did_you_mean(str(self.out_of_support), ('refuse', 'clamp'))}"
            )
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _checked_bounds(self.bounds))
        if self.min_scale is not None:
            object.__setattr__(self, "min_scale", _checked_min_scale(self.min_scale))


def effective_mechanism(spec: ReleaseSpec) -> DiscreteLaplace:
    """Return the mechanism with its scale raised to ``min_scale``.

    Raises
    ------
    InputError
        If its scale is 0 and nobody said that the column may be published unchanged.
    """
    mechanism = spec.mechanism
    if spec.min_scale is not None and spec.min_scale > mechanism.scale:
        return replace(mechanism, scale=spec.min_scale)
    if mechanism.scale == 0 and not spec.allow_unchanged:
        raise InputError(
            "the scale is 0: the column would be published unchanged; if that is wanted say so "
            "with --allow-unchanged (allow_unchanged=True), or give --min-scale T (min_scale=T)"
        )
    return mechanism


@dataclass(frozen=True)
class ReleaseReport:
    """Where the rows went: ``rows_read = rows_released + rows set aside``, always.

    Attributes
    ----------
    source : str
        The file, or the kind of dataframe.
    output : str or None
        The file that was written; None for a dataframe.
    column : str
        Name of the released column.
    keep : tuple of str
        The kept columns.
    mechanism : DiscreteLaplace
        The noise that was added.
    rows_read, rows_released : int
        Rows of the table, and those of them that were released.
    set_aside : tuple of (reason, rows)
        The others.
    clamped : int
        Rows whose value was no atom and was moved to the nearest one.
    outside_promise : tuple of (reason, rows) or None
        Released rows whose secret is in no pair; None where the table has no such column, or the
        pairs are not known.
    seeded : bool
        Whether the noise came from a seed, for tests only.
    """

    source: str
    output: str | None
    column: str
    keep: tuple[str, ...]
    mechanism: DiscreteLaplace
    rows_read: int
    rows_released: int
    set_aside: tuple[tuple[str, int], ...] = ()
    clamped: int = 0
    outside_promise: tuple[tuple[str, int], ...] | None = None
    seeded: bool = False

    def __post_init__(self) -> None:
        if self.rows_read != self.rows_released + self.rows_set_aside:
            raise PufferfishError(
                f"rows were lost in {self.source}: {self.rows_read} read, {self.rows_released} "
                f"released, {self.rows_set_aside} set aside; please report this"
            )

    @property
    def rows_set_aside(self) -> int:
        """Rows that were not released."""
        return sum(rows for _, rows in self.set_aside)

    @property
    def rows_outside_promise(self) -> int | None:
        """Released rows that the guarantee does not cover, or None where that is not known."""
        if self.outside_promise is None:
            return None
        return sum(rows for _, rows in self.outside_promise)

    def lines(self) -> tuple[str, ...]:
        """Return the report as plain lines of text, for people."""
        lines = [
            f"{self.source}: column {self.column!r} released with {self.mechanism.describe()}",
            f"rows read {self.rows_read}, released {self.rows_released}, "
            f"set aside {self.rows_set_aside}",
            *(f"  set aside, {reason}: {rows}" for reason, rows in self.set_aside),
        ]
        if self.set_aside:
            lines.append("which rows are left out shows in the output, and no noise covers it")
        if self.clamped:
            lines.append(f"moved to the nearest value of the support: {self.clamped}")
        if self.outside_promise is not None:
            lines.append(f"rows outside the promise: {self.rows_outside_promise}")
            lines += [f"  {reason}: {rows}" for reason, rows in self.outside_promise]
        if self.keep:
            lines.append(f"kept columns: {', '.join(self.keep)}")
        if self.seeded:
            lines.append("drawn from a seed: for tests only, it protects nobody")
        if self.output is not None:
            lines.append(f"written: {self.output}")
        return tuple(lines)


def _checked_bounds(bounds: Any) -> tuple[Fraction, Fraction]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InputError(f"bounds are two numbers LO HI, but {bounds!r} was given") from None
    lower, upper = parse_number(low, "the lower bound"), parse_number(high, "the upper bound")
    if lower >= upper:
        raise InputError(
            f"the lower bound must be below the upper one, but {show(lower)} and {show(upper)} "
            "were given"
        )
    return lower, upper


def _checked_min_scale(given: Any) -> float:
    exact = parse_number(given, "the least scale (--min-scale)")
    # The user's number as the double nearest to it; the scale that was proved is never lowered.
    value = float(given) if not isinstance(given, str) else float(exact)
    if value <= 0 or not math.isfinite(value):
        raise InputError(f"the least scale (--min-scale) must be above 0, but {given} was given")
    return value
