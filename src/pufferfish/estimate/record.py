# SPDX-License-Identifier: Apache-2.0
"""What an analyst gets back: each number with its standard error, and what cannot be had."""

import statistics
from dataclasses import dataclass, replace
from typing import Any

from pufferfish.errors import listed

#: How often an interval covers the truth.
LEVEL = 0.95
#: Half the length of an interval, in standard errors.
REACH = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
#: Less than this outside the range of a number is the rounding of doubles.
_TINY = 1e-9
#: Standard errors within which noise keeps, as good as always.
_HARDLY = 6
_OUTSIDE = (
    "some estimates lie outside of what is possible (a frequency below 0 or above 1, a variance "
    "below 0): they are unbiased, and the noise alone takes them there; their intervals show how "
    "far"
)


@dataclass(frozen=True)
class Figure:
    """One estimated number.

    Attributes
    ----------
    estimate : float
        Unbiased, and therefore free to lie outside the range of what it estimates: a frequency
        below 0 or above 1 is no fault.
    standard_error : float
        Of the estimate, for the noise of the release alone.
    ends : (float, float) or None
        The interval, where it is not the estimate plus and minus 1.96 standard errors: for a
        variance, and where few rows are changed. It holds the estimate.
    """

    estimate: float
    standard_error: float
    ends: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval, by the normal approximation unless ``ends`` are set."""
        if self.ends is not None:
            return self.ends
        reach = REACH * self.standard_error
        return self.estimate - reach, self.estimate + reach

    def to_dict(self) -> dict[str, Any]:
        """Return the number as JSON values."""
        low, high = self.interval
        return {
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": low,
            "high": high,
        }


@dataclass(frozen=True)
class Frequency(Figure):
    """The estimated frequency of one level or value, or of several together.

    Attributes
    ----------
    labels : tuple of str
        One label; or several, whose frequencies only as a sum can be estimated.
    """

    labels: tuple[str, ...] = ()

    @property
    def telling(self) -> bool:
        """Whether the interval is shorter than from 0 to 1, where every frequency lies.

        Judged by its length alone: to pick by the estimate would be to pick the largest errors.
        """
        low, high = self.interval
        return high - low < 1

    def to_dict(self) -> dict[str, Any]:
        """Return the frequency as JSON values."""
        return {"labels": list(self.labels)} | super().to_dict()


@dataclass(frozen=True)
class Estimate:
    """Estimates of the original column from a released one.

    The target is the table that was released: the frequencies, mean and variance (divisor n) of
    its own n rows. Only the noise of the release is uncertain then. Whoever wants those of a
    population from which the rows are a sample adds the sampling variance.

    Attributes
    ----------
    rows : int
        Number of released rows n.
    entries : tuple of Frequency
        Frequencies, and sums of frequencies, that can be estimated. They overlap nowhere.
    not_estimable : tuple of str
        Levels or values whose own frequency cannot be estimated; some may be in a sum above.
    mean, variance : Figure or None
        Of the original values, in the units of the data (squared), or of the codes 0, 1, 2, ...
        of ordered levels; None for levels without an order, or where ``notes`` say why.
    condition_number : float or None
        Of the channel's matrix (2-norm), where every frequency can be estimated from it: how many
        times larger than without noise an error can become. With additive noise only where bounds
        or rounding leave a finite channel, else None.
    notes : tuple of str
        What the reader must know; one sentence or two each.
    """

    rows: int
    entries: tuple[Frequency, ...]
    not_estimable: tuple[str, ...]
    mean: Figure | None
    variance: Figure | None
    condition_number: float | None
    notes: tuple[str, ...]

    def with_notes_on_range(self) -> "Estimate":
        """Return the same with notes on numbers and intervals beyond what is possible."""
        notes = []
        beyond = [max(-e.estimate, e.estimate - 1.0) for e in self.entries]
        if any(amount > _TINY for amount in beyond) or (
            self.variance is not None and self.variance.estimate < 0
        ):
            notes.append(_OUTSIDE)
        silent = sum(not entry.telling for entry in self.entries)
        if silent:
            notes.append(
                f"{silent:,} of the {len(self.entries):,} frequencies are too uncertain to say "
                "anything: their 95 % intervals are longer than 1, and a frequency lies between 0 "
                "and 1 anyway"
            )
        far = [
            entry
            for entry, amount in zip(self.entries, beyond, strict=True)
            if amount > _TINY and amount > _HARDLY * entry.standard_error
        ]
        if far:
            notes.append(
                f"the frequency of {listed(far[0].labels)} lies more than {_HARDLY} standard "
                "errors outside, which the noise hardly ever does: was the column released by "
                "this plan, with these options?"
            )
        return replace(self, notes=(*self.notes, *notes))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "rows": self.rows,
            "frequencies": [entry.to_dict() for entry in self.entries],
            "not_estimable": list(self.not_estimable),
            "mean": None if self.mean is None else self.mean.to_dict(),
            "variance": None if self.variance is None else self.variance.to_dict(),
            "condition_number": self.condition_number,
            "notes": list(self.notes),
        }
