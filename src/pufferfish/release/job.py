# SPDX-License-Identifier: Apache-2.0
"""ReleaseSpec: what a release is asked to do."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pufferfish.errors import InputError, did_you_mean
from pufferfish.mechanisms import Mechanism
from pufferfish.rationals import float_up, parse_number, show
from pufferfish.support import Support
from pufferfish.tables.rules import Rules


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
    mechanism : DiscreteLaplace or Channel
        The noise that is added, its step being that of the support; or the channel that values are
        released through, its inputs being the support.
    protected : tuple of str or None
        The secrets that occur in the pairs; None where nobody counts rows outside the promise.
    out_of_support : "refuse" or "clamp"
        What happens to a number that is no atom: the release is refused before anything is
        written, or the nearest atom (the lesser of two) takes its place, which the guarantee does
        not cover.
    bounds : (Fraction, Fraction) or None
        The released number is moved into these after it was drawn, which is free (theory,
        section 7); it is never drawn again. Not for a channel that publishes levels.
    round : bool
        Whether the released number, the sum and never the noise alone, is rounded to the nearest
        integer (ties to the even one). Not for a channel that publishes levels.
    allow_unchanged : bool
        Whether a scale of 0, or a channel that keeps every value or always replaces each by one of
        its own, is what the user wants: then the column can be read back from what is published.
    min_scale : float or None
        The scale of noise is raised to this; given as any number, kept as the least double that
        is not below it. A larger scale never costs more privacy (theory, section 2). Not for a
        channel.
    units : tuple of int
        How many rows one person may have, where the rules name a unit.

    Raises
    ------
    InputError
        If an option is not of that kind.
    """

    support: Support
    rules: Rules | None
    mechanism: Mechanism
    protected: tuple[str, ...] | None = None
    out_of_support: Literal["refuse", "clamp"] = "refuse"
    bounds: tuple[Fraction, Fraction] | None = None
    round: bool = False
    allow_unchanged: bool = False
    min_scale: float | None = None
    units: tuple[int, ...] = ()

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
    scale = float_up(exact)  # at least what was asked for
    if exact <= 0 or not math.isfinite(scale):
        raise InputError(
            "the least scale (--min-scale) must be above 0 and within the range of a double, but "
            f"{given} was given"
        )
    return scale
