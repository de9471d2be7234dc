# SPDX-License-Identifier: Apache-2.0
"""Estimate: frequencies, mean and variance of the original column, each with a standard error."""

import statistics
from dataclasses import dataclass

from pufferfish.errors import listed

#: How often an interval covers the truth.
LEVEL = 0.95
#: Half the length of an interval, in standard errors.
REACH = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True)
class Figure:
    """One estimated number.

    Attributes
    ----------
    estimate : float
        Unbiased, and therefore free to lie outside the range of what it estimates.
    standard_error : float
        Of the estimate, for the noise of the release alone.
    reach : float
        Half the length of the 95 % interval: 1.96 standard errors, or more where few rows change.
    """

    estimate: float
    standard_error: float
    reach: float

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval."""
        return self.estimate - self.reach, self.estimate + self.reach


@dataclass(frozen=True)
class Frequency(Figure):
    """The estimated frequency of one level or value, or of several together.

    Attributes
    ----------
    labels : tuple of str
        One label; or several, whose frequencies only as a sum can be estimated.
    """

    labels: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
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
        of ordered levels; None for levels without an order, and where they cannot be estimated.
    too_many_values : bool
        Whether no frequency is estimated because there are too many values.
    """

    rows: int
    entries: tuple[Frequency, ...]
    not_estimable: tuple[str, ...]
    mean: Figure | None
    variance: Figure | None
    too_many_values: bool = False

    @property
    def few_changes(self) -> bool:
        """Whether some intervals are longer than 1.96 standard errors, because few rows change."""
        figures = [*self.entries, *(f for f in (self.mean, self.variance) if f is not None)]
        return any(f.reach > 1.0001 * REACH * f.standard_error for f in figures)

    def __repr__(self) -> str:
        named = (("mean", self.mean), ("variance", self.variance))
        parts = [f"{name} {_brief(figure)}" for name, figure in named if figure is not None]
        parts += [f"{'+'.join(e.labels)} {_brief(e)}" for e in self.entries]
        return f"Estimate({self.rows} rows: {listed(parts)})"


def _brief(figure: Figure) -> str:
    return f"{figure.estimate:.4g} ± {figure.standard_error:.2g}"
