# SPDX-License-Identifier: Apache-2.0
"""From weights to figures: unbiased estimates whose standard errors are those of the noise alone.

Row r of the table holds x_r and shows Y_r. An estimate is the mean of w(Y_r) over the rows, where
E w(Y) = a(x) for a row that holds x. Only the noise is random, so its variance is
sum_x p(x) (E[w(Y)^2 | x] - a(x)^2) / n; the first part is estimated by the mean of w(Y_r)^2, the
second by weights for a^2 (for a set of levels a^2 is a itself). Both without bias.

Where few rows change, an estimate takes few values, and a normal interval is too short: errors of
the difference of two Poisson counts with mean 2 lie within 1.96 standard errors in 92 % only. The
interval is then one with the variance of one changed row more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pufferfish.estimate.estimate import REACH, Figure
from pufferfish.numbers import FloatArray

#: A variance this much smaller than the square of the largest weight is the rounding of doubles.
_ROUNDING = 1e-24
#: Below so many changed rows an interval counts one more: it then holds the truth in 94 % or more
#: (errors as differences of Poisson counts, in any proportion), without it in 78 % or more.
FEW_CHANGES = 20
#: Of so many changed rows none changes in 95 % of all releases: e^-0.05.
_NO_CHANGE = 0.05


@dataclass(frozen=True, eq=False)
class Bounds:
    """What bounds the variance of k functionals, given by weights of all outputs.

    Attributes
    ----------
    largest : float64 array, shape (k,)
        The largest absolute weight of any output, seen or not.
    least, most : float64 arrays, shape (k,)
        The least and the largest variance of w(Y) given any one value.
    jump : float64 array, shape (k,)
        By how much w(Y) moves where a row is changed: the largest root of the fourth moment of
        w(Y) about its mean over the second, given any one value.
    """

    largest: FloatArray
    least: FloatArray
    most: FloatArray
    jump: FloatArray

    @classmethod
    def on(cls, weights: FloatArray, matrix: FloatArray) -> "Bounds":
        """Return the bounds of weights of shape (n_y, k) on a matrix of shape (n_x, n_y)."""
        largest = np.abs(weights).max(axis=0)
        # About the middle of the weights, so that fewer digits cancel.
        w = weights - (weights.max(axis=0) + weights.min(axis=0)) / 2
        mean, square = matrix @ w, matrix @ w**2
        variances = np.maximum(square - mean**2, 0.0)
        fourth = matrix @ w**4 - 4 * mean * (matrix @ w**3) + 6 * mean**2 * square - 3 * mean**4
        random = variances > _ROUNDING * largest**2
        ratio = np.divide(fourth, variances, out=np.zeros_like(mean), where=random)
        variances[~random] = 0.0
        jump = np.sqrt(np.minimum(ratio.max(axis=0), (2 * largest) ** 2).clip(0.0))
        return cls(largest, variances.min(axis=0), variances.max(axis=0), jump)


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
) -> tuple[Figure | None, Figure | None]:
    """Return estimates of the mean and the variance (divisor n) of a number t(x) for each value.

    ``powers`` are weights w_k with E w_k(Y) = t(x)^k for k = 1, 2, 3, 4, or None. With A and B the
    estimates of the mean of t^2 and of t, E[B^2] = mean^2 + Var B, so A - B^2 + V is unbiased for
    V the unbiased estimate of Var B. Its standard error is that of the mean of (t - B)^2, with
    2 V^2 for the square of B's own error; without the higher moments it is an upper estimate.
    """

    def figure(weights: FloatArray, square: float) -> Figure:
        column = weights[:, None]
        return figures(counts, column, np.array([square]), bounded(column))[0]

    first, second, third, fourth = powers
    if first is None:
        return None, None
    rows = float(counts.sum())
    centre = float(counts @ first) / rows
    if second is None:  # the mean of t^2 is at least the square of the mean
        return figure(first, centre**2), None
    square = float(counts @ second) / rows
    mean = figure(first, square)
    raw = (float(counts @ first**2) / rows - square) / rows
    # Weights for (t - B)^2: the mean of these is A - B^2.
    around = second - 2 * centre * first + centre**2
    spread = float(counts @ around) / rows
    known = max(spread, 0.0) ** 2
    if third is not None and fourth is not None:
        whole = fourth - 4 * centre * third + 6 * centre**2 * second - 4 * centre**3 * first
        known = float(counts @ whole) / rows + centre**4
    own = figure(around, known)
    error = float(np.hypot(own.standard_error, np.sqrt(2) * mean.standard_error**2))
    # Where B errs by d, A - B^2 errs by d^2 more: all of it, where two values are equally frequent.
    return mean, Figure(spread + raw, error, own.reach + (REACH * mean.standard_error) ** 2)
