# SPDX-License-Identifier: Apache-2.0
"""Estimate: frequencies, mean and variance of the original column, each with a standard error.

Row r of the table holds x_r and shows Y_r. An estimate is the mean of w(Y_r) over the rows, where
E w(Y) = a(x) for a row that holds x. Only the noise is random, so its variance is
sum_x p(x) (E[w(Y)^2 | x] - a(x)^2) / n; the first part is estimated by the mean of w(Y_r)^2, the
second by weights for a^2 (for a set of levels a^2 is a itself). Both without bias.

Where few rows change, an estimate takes few values, and a normal interval is too short: errors of
the difference of two Poisson counts with mean 2 lie within 1.96 standard errors in 92 % only. The
interval is then one with the variance of one changed row more.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.numbers import FloatArray
from pufferfish.support import Lattice

#: How often an interval covers the truth.
LEVEL = 0.95
#: Half the length of an interval, in standard errors.
REACH = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
#: A variance this much smaller than the square of the largest weight is the rounding of doubles.
_NO_VARIANCE = 1e-24
#: Below so many changed rows an interval counts one more: it then holds the truth in 94 % or more
#: (errors as differences of Poisson counts, in any proportion), without it in 78 % or more.
FEW_CHANGES = 20
#: Of so many changed rows none changes in 95 % of all releases: e^-0.05.
_NO_CHANGE = 0.05
#: Standard errors beyond which an impossible estimate shows that the release was another one.
_IMPOSSIBLE = 5.0
#: Less than this outside of what is possible is the rounding of doubles.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Figure:
    """One estimated number; unbiased, so that it may lie outside the range of what it estimates."""

    estimate: float
    #: For the noise of the release alone.
    standard_error: float
    #: Half the 95 % interval: 1.96 standard errors, or more where few rows change.
    reach: float
    #: For a frequency the level or value whose it is; or several, whose sum it is.
    labels: tuple[str, ...] = ()

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval."""
        return self.estimate - self.reach, self.estimate + self.reach

    def __str__(self) -> str:
        return f"{self.estimate:.4g} ± {self.standard_error:.2g}"


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
    entries : tuple of Figure
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
    entries: tuple[Figure, ...]
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
        parts = [f"{name} {figure}" for name, figure in named if figure is not None]
        parts += [f"{'+'.join(e.labels)} {e}" for e in self.entries]
        return f"Estimate({self.rows} rows: {listed(parts)})"


class Bounds(NamedTuple):
    """What bounds the variance of k functionals, given by weights of all outputs; k numbers."""

    #: The largest absolute weight of any output, seen or not.
    largest: FloatArray
    #: The least and the largest variance of w(Y) given any one value.
    least: FloatArray
    most: FloatArray
    #: By how much w(Y) moves where a row changes: the root of its fourth moment over the second.
    jump: FloatArray


def bounds_of(weights: FloatArray, matrix: FloatArray) -> Bounds:
    """Return the bounds of weights of shape (n_y, k) on a matrix of shape (n_x, n_y)."""
    largest = np.abs(weights).max(axis=0)
    # About the middle of the weights, so that fewer digits cancel.
    w = weights - (weights.max(axis=0) + weights.min(axis=0)) / 2
    mean, square = matrix @ w, matrix @ w**2
    variances = np.maximum(square - mean**2, 0.0)
    fourth = matrix @ w**4 - 4 * mean * (matrix @ w**3) + 6 * mean**2 * square - 3 * mean**4
    random = variances > _NO_VARIANCE * largest**2
    ratio = np.divide(fourth, variances, out=np.zeros_like(mean), where=random)
    variances[~random] = 0.0
    jump = np.sqrt(np.minimum(ratio.max(axis=0), (2 * largest) ** 2).clip(0.0))
    return Bounds(largest, variances.min(axis=0), variances.max(axis=0), jump)


def figures(
    counts: FloatArray, weights: FloatArray, squares: FloatArray, bounds: Bounds
) -> list[Figure]:
    """Return k estimates, given estimates (or lower bounds) of sum_x p(x) a(x)^2, shape (k,).

    The unbiased estimate of a variance can be too small, even negative. One below the square of
    the largest weight relies on an output being impossible only because it did not occur.
    """
    rows = float(counts.sum())
    raw = (counts @ weights**2 / rows - squares) / rows
    most = bounds.most / rows
    floor = np.maximum(bounds.least / rows, np.minimum(most, (bounds.largest / rows) ** 2))
    errors = np.sqrt(np.minimum(np.maximum(raw, floor), most))
    reaches = REACH * one_more(errors, bounds.jump, rows)
    found = zip(counts @ weights / rows, errors, reaches, strict=True)
    return [Figure(float(e), float(s), float(r)) for e, s, r in found]


def one_more(errors: FloatArray, jumps: FloatArray, rows: float) -> FloatArray:
    """Return standard errors with one changed row more, where few are expected, but some.

    ``jumps`` is by how much a changed row moves the sum over the rows, so that
    (error / (jump / rows))^2 is the number of rows that change.
    """
    one = jumps / rows
    few = (_NO_CHANGE * one**2 < errors**2) & (errors**2 < FEW_CHANGES * one**2)
    longer: FloatArray = np.where(few, np.hypot(errors, one), errors)
    return longer


def moments(
    counts: FloatArray,
    powers: Sequence[FloatArray | None],
    bounded: Callable[[FloatArray], Bounds],
    lattice: Lattice,
) -> tuple[Figure | None, Figure | None]:
    """Return estimates of the mean and the variance (divisor n) of the values of a lattice.

    ``powers`` are weights w_k with E w_k(Y) = t(x)^k for k = 1, 2, 3, 4, or None, where t is the
    value from the middle in half ranges. With A and B the estimates of the mean of t^2 and of t,
    E[B^2] = mean^2 + Var B, so A - B^2 + V is unbiased for V the unbiased estimate of Var B. Its
    standard error is that of the mean of (t - B)^2, with 2 V^2 for the square of B's own error;
    without the higher moments it is an upper estimate.
    """
    rows = float(counts.sum())

    def mean_of(weights: FloatArray) -> float:
        return float(counts @ weights) / rows

    def figure(weights: FloatArray, square: float) -> Figure:
        column = weights[:, None]
        return figures(counts, column, np.array([square]), bounded(column))[0]

    first, second, third, fourth = powers
    if first is None:
        return None, None
    centre, largest = mean_of(first), float(np.abs(first).max()) / rows
    # The mean of t^2 is at least the square of the mean.
    square = centre**2 if second is None else mean_of(second)
    mean, variance = figure(first, square), None
    check_possible(mean, -1.0, 1.0, largest)
    last = int(lattice.index[-1])
    unit = float(lattice.step * Fraction(max(last, 1), 2))
    if second is not None:
        raw = (mean_of(first**2) - square) / rows
        # Weights for (t - B)^2: the mean of these is A - B^2.
        around = second - 2 * centre * first + centre**2
        spread = mean_of(around)
        known = max(spread, 0.0) ** 2
        if third is not None and fourth is not None:
            whole = fourth - 4 * centre * third + 6 * centre**2 * second - 4 * centre**3 * first
            known = mean_of(whole) + centre**4
        own = figure(around, known)
        error = math.hypot(own.standard_error, math.sqrt(2) * mean.standard_error**2)
        # Where B errs by d, A - B^2 errs by d^2 more: all of it, for two equally frequent values.
        reach = own.reach + (REACH * mean.standard_error) ** 2
        variance = Figure(spread + raw, error, reach)
        check_possible(variance, 0.0, 1.0, 2 * (largest + float(np.abs(second).max()) / rows))
        variance = _in_units(variance, unit**2)
    return _in_units(
        mean, unit, float(lattice.step * (lattice.origin + Fraction(last, 2)))
    ), variance


def _in_units(figure: Figure, unit: float, middle: float = 0.0) -> Figure:
    return Figure(
        middle + unit * figure.estimate, unit * figure.standard_error, unit * figure.reach
    )


def check_possible(figure: Figure, low: float, high: float, largest: float, among: int = 1) -> None:
    """Refuse an estimate that noise takes so far outside of what is possible hardly ever.

    By Bernstein's inequality with one row's largest effect ``largest``, and for the greatest of
    ``among`` estimates.
    """
    z = math.sqrt(_IMPOSSIBLE**2 + 2 * math.log(among))
    reach = z * max(figure.standard_error, figure.reach / REACH) + z**2 * largest + _ROUNDING
    if figure.estimate < low - reach or figure.estimate > high + reach:
        raise InputError(
            f"an estimate lies more than {_IMPOSSIBLE:g} standard errors outside of what is "
            "possible: was this file released by this plan, with these options?"
        )
