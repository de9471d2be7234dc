# SPDX-License-Identifier: Apache-2.0
"""Estimate: frequencies, mean and variance of the original column, each with a standard error.

Row r of the table holds x_r and shows Y_r. An estimate is the mean of w(Y_r) over the rows, where
E w(Y) = a(x) for a row that holds x. Only the release is random, so its variance is
sum_x p(x) (E[w(Y)^2 | x] - a(x)^2) / n, taken at the estimated frequencies p, none below 0.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.estimate.matrix import LeastSquares
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray
from pufferfish.support import Lattice, Support, lattice_of

#: How often an interval covers the truth, and half its length in standard errors.
LEVEL = 0.95
REACH = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
#: Standard errors beyond which an impossible estimate shows that the release was another one.
_IMPOSSIBLE = 5.0
#: Less than this outside of what is possible is the rounding of doubles.
_ROUNDING = 1e-6
#: So is a variance below this share of the square that it is the rest of.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class Figure:
    """One estimated number; unbiased, so that it may lie outside the range of what it estimates."""

    estimate: float
    #: For the randomness of the release alone.
    standard_error: float

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval: 1.96 standard errors on each side."""
        reach = REACH * self.standard_error
        return self.estimate - reach, self.estimate + reach

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
    frequencies : dict of str to Figure
        By level or value, those that can be estimated.
    not_estimable : tuple of str
        Levels or values whose frequency cannot be estimated.
    mean, variance : Figure or None
        Of the original values, in the units of the data (squared), or of the codes 0, 1, 2, ...
        of ordered levels; None for levels without an order, and where they cannot be estimated.
    too_many_values : bool
        Whether no frequency is estimated because there are too many values.

    Notes
    -----
    Intervals are normal ones. Where only few rows are changed, they hold the truth less often.
    """

    rows: int
    frequencies: Mapping[str, Figure]
    not_estimable: tuple[str, ...]
    mean: Figure | None
    variance: Figure | None
    too_many_values: bool = False

    def __repr__(self) -> str:
        named = {"mean": self.mean, "variance": self.variance, **self.frequencies}
        parts = [f"{name} {figure}" for name, figure in named.items() if figure is not None]
        return f"Estimate({self.rows} rows: {listed(parts)})"


def by_matrix(counts: FloatArray, matrix: FloatArray, support: Support) -> Estimate:
    """Return estimates by weighted least squares, given rows by output and the finite channel."""
    rows, solve = float(counts.sum()), LeastSquares(matrix)
    weights, usable = solve.weights(np.eye(support.size))
    shares = counts @ weights / rows
    p = np.maximum(shares, 0.0)
    p /= p.sum()
    errors = _errors(p @ matrix @ weights**2, p, rows)
    frequencies, lost = {}, []
    for x, known in enumerate(usable.tolist()):
        if not known:
            lost.append(support.name(x))
            continue
        share = Figure(float(shares[x]), float(errors[x]))
        check_possible(share, 0.0, 1.0, np.abs(weights[:, x]).max() / rows, support.size)
        frequencies[support.name(x)] = share
    mean, variance = None, None
    if support.ordered:
        mean, variance = _moments(counts, solve, p, bool(usable.all()), lattice_of(support))
    return Estimate(int(rows), frequencies, tuple(lost), mean, variance)


def _moments(
    counts: FloatArray, solve: LeastSquares, p: FloatArray, exact: bool, lattice: Lattice
) -> tuple[Figure | None, Figure | None]:
    """Return the mean and variance of the values on a lattice, where they can be estimated.

    Without the frequencies (not ``exact``) the mean of a square is at least the square of the mean.
    """
    rows, last = float(counts.sum()), int(lattice.index[-1])
    unit = float(lattice.step * Fraction(max(last, 1), 2))
    # From the middle in half ranges, so that squares lose no digits.
    t = (2 * lattice.index.astype(np.float64) - last) / max(last, 1)
    weights, usable = solve.weights(np.c_[t, t**2])
    if not usable[0]:
        return None, None
    first, second = weights.T
    of_t, of_square = (counts @ weights / rows).tolist()
    chances = p @ solve.matrix

    def error(w: FloatArray, known: float) -> float:
        return float(_errors(chances @ w**2, known, rows))

    mean = Figure(of_t, error(first, float(p @ t**2) if exact else of_t**2))
    largest = float(np.abs(first).max()) / rows
    check_possible(mean, -1.0, 1.0, largest)
    variance = None
    if usable[1]:
        # E[of_t^2] is the square of the mean and the variance of of_t, which is added again.
        spread, own = of_square - of_t**2, (float(counts @ first**2) / rows - of_square) / rows
        known = float(p @ (t - of_t) ** 4) if exact else max(spread, 0.0) ** 2
        around = error(second - 2 * of_t * first + of_t**2, known)
        variance = Figure(spread + own, math.hypot(around, math.sqrt(2) * mean.standard_error**2))
        check_possible(variance, 0.0, 1.0, 2 * (largest + float(np.abs(second).max()) / rows))
        variance = _in_units(variance, unit**2)
    middle = lattice.step * (lattice.origin + Fraction(last, 2))
    return _in_units(mean, unit, float(middle)), variance


def _errors(squares: Any, known: Any, rows: float) -> Any:
    """Return standard errors from E w(Y)^2, and the part of it that is not random."""
    rest = np.asarray(squares - known)
    return np.sqrt(np.where(rest > _NO_VARIANCE * squares, rest, 0.0) / rows)


def _in_units(figure: Figure, unit: float, middle: float = 0.0) -> Figure:
    return Figure(middle + unit * figure.estimate, unit * figure.standard_error)


def by_moments(released: Mapping[int, int], noise: DiscreteLaplace, lattice: Lattice) -> Estimate:
    """Return mean and variance only, from rows by released value in steps of the lattice.

    The mean of the values is that of the released ones; the variance is theirs less the noise's
    (theory, section 4).
    """
    rows, step, square = sum(released.values()), float(lattice.step), noise.mse
    width = step * int(lattice.index[-1])
    y = step * np.array([v - lattice.origin for v in released], dtype=np.float64)
    shares = np.array(list(released.values())) / rows
    centre = float(shares @ y)
    around = (y - centre) ** 2
    spread = float(shares @ around) - square * (rows - 1) / rows
    own = (rows - 1) * (6 * square**2 + step**2 * square) - (rows - 3) * square**2
    of_spread = (rows - 1) / rows**3 * own + 4 * square * max(spread, 0.0) / rows
    mean = Figure(centre, noise.std / math.sqrt(rows))
    variance = Figure(spread, math.sqrt(of_spread))
    check_possible(mean, 0.0, width, math.sqrt(around.max()) / rows)
    check_possible(variance, 0.0, width**2, float(around.max()) / rows)
    mean = _in_units(mean, 1.0, float(lattice.step * lattice.origin))
    return Estimate(rows, {}, (), mean, variance, too_many_values=True)


def check_possible(figure: Figure, low: float, high: float, largest: float, among: int = 1) -> None:
    """Refuse an estimate so far out of range that noise alone almost never explains it.

    By Bernstein's inequality with one row's largest effect ``largest``, and for the greatest of
    ``among`` estimates.
    """
    z = math.sqrt(_IMPOSSIBLE**2 + 2 * math.log(among))
    reach = z * figure.standard_error + z**2 * largest + _ROUNDING * (high - low)
    if figure.estimate < low - reach or figure.estimate > high + reach:
        raise InputError(
            f"an estimate lies more than {_IMPOSSIBLE:g} standard errors outside of what is "
            "possible: was this file released by this plan, with these options?"
        )
