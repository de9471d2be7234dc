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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.errors import InputError
from pufferfish.estimate.record import REACH, Figure

#: A channel with a larger condition number is called ill-conditioned: with 1 % of it as an error of
#: the released frequencies, that of the estimates can be all of them.
CONDITION_LIMIT = 100.0
#: A variance this much smaller than the square of the largest weight is the rounding of doubles.
_ROUNDING = 1e-24

#: Below so many changed rows an interval counts one more: it then holds the truth in 94 % or more
#: (errors as differences of Poisson counts, in any proportion), without it in 78 % or more.
FEW_CHANGES = 20
#: Of so many changed rows none changes in 95 % of all releases: e^-0.05.
_NO_CHANGE = 0.05
_FEW_NOTE = (
    f"some figures rest on fewer than some {FEW_CHANGES} changed rows: their intervals are longer "
    "than 1.96 standard errors on either side, and cover the truth in about 94 % or more of all "
    "releases"
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """The released column as counts.

    Attributes
    ----------
    counts : float64 array, shape (n_y,)
        Rows by output.
    rows : int
        Their sum n.
    """

    counts: FloatArray
    rows: int

    def mean(self, weights: FloatArray) -> float:
        """Return the mean of w(Y_r) over the rows, for weights of shape (n_y,)."""
        return float(self.counts @ weights) / self.rows


def checked_counts(counts: Any, size: int | None = None) -> list[int]:
    """Return counts as Python integers.

    Raises
    ------
    InputError
        If there are not ``size`` of them, one is negative or no integer, or all are 0.
    """
    given = np.asarray(counts)
    if given.ndim != 1 or (given.dtype.kind not in "iuO" and given.size):
        raise InputError(
            "the counts of the released column must be one list of whole numbers, but an array of "
            f"type {given.dtype} and shape {given.shape} was given"
        )
    whole: list[int] = given.tolist()
    if any(type(count) is not int or count < 0 for count in whole):
        raise InputError("the counts of the released column must be whole numbers, none negative")
    if size is not None and len(whole) != size:
        raise InputError(
            f"there must be {size} counts, one for each output of the channel, not {len(whole)}"
        )
    if not any(whole):
        raise InputError("the released column is empty: there is nothing to estimate from")
    return whole


def floored(
    raw: float, largest: float, rows: int, least: float = 0.0, most: float = np.inf
) -> float:
    """Return the variance of an estimate, moved to where it can lie.

    Parameters
    ----------
    raw : float
        The unbiased estimate of the variance, which can be too small, even negative.
    largest : float
        The largest absolute weight: one more row with that output moves the estimate by
        ``largest / rows``, and a variance estimated below its square relies on an output being
        impossible only because it did not occur.
    rows : int
        Number of rows n.
    least, most : float
        The least and the largest variance that w(Y) has given any one input.
    """
    floor = max(least / rows, min(most / rows, (largest / rows) ** 2))
    return min(max(raw, floor), most / rows)


@dataclass(frozen=True, eq=False)
class Weighted:
    """Weights of all outputs for one functional, with what bounds their variance.

    Attributes
    ----------
    weights : float64 array, shape (n_y,)
    largest : float
        The largest absolute weight of any output, seen or not.
    least, most : float
        The least and the largest variance of w(Y) given any one input.
    jump : float
        By how much w(Y) moves where a row is changed: the largest root of the fourth moment of
        w(Y) about its mean over the second, given any one input.
    """

    weights: FloatArray
    largest: float
    least: float = 0.0
    most: float = np.inf
    jump: float = 0.0

    @classmethod
    def on(cls, weights: FloatArray, matrix: FloatArray) -> "Weighted":
        """Return weights with their bounds, from the channel's matrix, shape (n_x, n_y)."""
        centred = weights - (matrix @ weights)[:, None]
        variances = (matrix * centred**2).sum(axis=1)
        largest = float(np.abs(weights).max())
        random = variances > _ROUNDING * largest**2
        fourth = (matrix[random] * centred[random] ** 4).sum(axis=1)
        jump = float(np.sqrt((fourth / variances[random]).max(initial=0.0)))
        return cls(weights, largest, float(variances.min()), float(variances.max()), jump)

    def figure(self, sample: Sample, square: float) -> Figure:
        """Return the estimate, given an estimate (or a lower bound) of sum_x p(x) a(x)^2."""
        raw = (sample.mean(self.weights**2) - square) / sample.rows
        variance = floored(raw, self.largest, sample.rows, self.least, self.most)
        return with_ends(sample.mean(self.weights), float(np.sqrt(variance)), self.jump, sample)


def with_ends(estimate: float, error: float, jump: float, sample: Sample) -> Figure:
    """Return a figure whose interval is longer where few rows change."""
    longer = one_more(error, jump, sample.rows)
    if longer == error:
        return Figure(estimate, error)
    return Figure(estimate, error, (estimate - REACH * longer, estimate + REACH * longer))


def one_more(error: float, jump: float, rows: int) -> float:
    """Return the standard error with one changed row more, where few are expected, but some.

    Parameters
    ----------
    error : float
        The standard error; (error / (jump / rows))^2 is the number of rows that change.
    jump : float
        By how much a changed row moves the sum over the rows.
    rows : int
        Number of rows n.
    """
    one = jump / rows
    few = _NO_CHANGE * one**2 < error**2 < FEW_CHANGES * one**2
    return float(np.hypot(error, one)) if few else error


def few_notes(*figures: Figure | None) -> list[str]:
    """Return what is to be said where few rows change, for frequencies and means."""
    return [_FEW_NOTE] if any(f is not None and f.ends is not None for f in figures) else []


def moments(
    sample: Sample,
    powers: Sequence[FloatArray | None],
    bounded: Callable[[FloatArray], Weighted],
) -> tuple[Figure | None, Figure | None, bool]:
    """Return estimates of the mean and the variance of t(x), a number for each input.

    Parameters
    ----------
    sample : Sample
        The released column.
    powers : sequence of float64 arrays of shape (n_y,), or None
        Weights w_k with E w_k(Y) = t(x)^k for k = 1, 2, 3, 4; None where there are none.
    bounded : callable
        Puts weights together with their bounds.

    Returns
    -------
    mean, variance : Figure or None
    upper : bool
        Whether a standard error is only an upper estimate, as a moment was missing.

    Notes
    -----
    The variance has divisor n. With A and B the estimates of the mean of t^2 and of t,
    E[B^2] = mean^2 + Var B, so A - B^2 + V is unbiased for V the unbiased estimate of Var B. Its
    standard error is that of the mean of (t - B)^2, with 2 V^2 for the square of B's own error.
    """
    first, second, third, fourth = powers
    if first is None:
        return None, None, False
    weighted = bounded(first)
    centre = sample.mean(first)
    if second is None:  # the mean of t^2 is at least the square of the mean
        return weighted.figure(sample, centre**2), None, True
    square = sample.mean(second)
    mean = weighted.figure(sample, square)
    raw = (sample.mean(first**2) - square) / sample.rows
    # Weights for (t - B)^2: the mean of these is A - B^2.
    around = second - 2 * centre * first + centre**2
    spread = sample.mean(around)
    if third is None or fourth is None:
        known = max(spread, 0.0) ** 2
    else:
        known = sample.mean(
            fourth - 4 * centre * third + 6 * centre**2 * second - 4 * centre**3 * first
        )
        known += centre**4
    both = bounded(around)
    error = both.figure(sample, known).standard_error
    estimate, ends = spread + raw, None
    if third is not None and fourth is not None:
        joint = sample.mean(third) - 2 * centre * square + centre**3
        covariance = (sample.mean(around * first) - joint) / sample.rows
        scale = error * mean.standard_error
        ends = _curved(
            estimate,
            one_more(error, both.jump, sample.rows),
            one_more(mean.standard_error, weighted.jump, sample.rows),
            min(max(covariance / scale, -1.0), 1.0) if scale > 0 else 0.0,
        )
    error = float(np.hypot(error, np.sqrt(2) * mean.standard_error**2))
    return mean, Figure(estimate, error, ends), third is None or fourth is None


def _curved(
    estimate: float, error: float, error_of_mean: float, correlation: float
) -> tuple[float, float]:
    """Return the interval of a variance: its range while the errors stay in their 95 % ellipse.

    With d the error of B and e that of the mean of (t - B)^2, A - B^2 errs by e - d^2. Where e is
    small beside d^2 (two values, equally frequent) the normal approximation would not do; the
    ellipse that gives it for a linear figure gives the right interval for a curved one, too. It
    starts from A - B^2 + V, so that it holds that estimate, which may be above 1/4 for two values.
    """
    z = np.linspace(-REACH, REACH, 2001)
    slope = correlation * error
    own = np.sqrt(max(error**2 - slope**2, 0.0)) * np.sqrt(np.maximum(REACH**2 - z**2, 0.0))
    path = estimate + slope * z - (error_of_mean * z) ** 2
    return min(float((path - own).min()), estimate), max(float((path + own).max()), estimate)


def rescaled(figure: Figure | None, factor: float, shift: float = 0.0) -> Figure | None:
    """Return the figure of ``shift + factor * t``; the factor is positive."""
    if figure is None:
        return None
    ends = figure.ends and (shift + factor * figure.ends[0], shift + factor * figure.ends[1])
    return Figure(shift + factor * figure.estimate, factor * figure.standard_error, ends)


def condition_notes(condition: float | None) -> list[str]:
    """Return what is to be said about a condition number."""
    if condition is None or condition <= CONDITION_LIMIT:
        return []
    return [
        f"the channel is ill-conditioned (condition number {condition:.3g}, above "
        f"{CONDITION_LIMIT:g}): the estimates are unbiased, but their standard errors are large "
        "unless there are very many rows"
    ]
