# SPDX-License-Identifier: Apache-2.0
"""Estimate: frequencies, moments and quantiles of the original column, with standard errors.

Row r of the table holds x_r and shows Y_r. An estimate is the mean of w(Y_r) over the rows, where
E w(Y) = a(x) for a row that holds x. Only the release is random, so its variance is
sum_x p(x) (E[w(Y)^2 | x] - a(x)^2) / n, taken at the estimated frequencies p, none below 0. Noisy
counts of the rows are further outputs, whose noise is random as well.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pufferfish.errors import InputError, html_table, listed
from pufferfish.estimate.matrix import LeastSquares, offered_bins, read_bins
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray, Number, checked_flag, parse_number, show
from pufferfish.support import Lattice, Support, lattice_of

#: How often an interval covers the truth, and half its length in standard errors.
LEVEL = 0.95
REACH = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)
#: Quantiles that are estimated unless others are asked for.
QUARTILES = ("0.25", "0.5", "0.75")
#: Standard errors beyond which an impossible estimate shows that the release was another one.
_IMPOSSIBLE = 5.0
#: Less than this outside of what is possible is the rounding of doubles.
_ROUNDING = 1e-6
#: So is a variance below this share of the square that it is the rest of.
_NO_VARIANCE = 1e-12
#: A distribution function may miss a quantile by this.
_TIE = 1e-9
#: Frequencies from noisy counts, and the variance of each.
Noisy = tuple[FloatArray, float]
_COLUMNS = ("kind", "label", "estimate", "standard_error", "low", "high")


@dataclass(frozen=True)
class Figure:
    """One estimated number; unbiased, so that it may lie outside the range of what it estimates."""

    estimate: float
    #: For the randomness of the release, and of noisy counts, alone.
    standard_error: float
    #: The ends of the 95 % interval; without them 1.96 standard errors on each side.
    ends: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval."""
        reach = REACH * self.standard_error
        return self.ends or (self.estimate - reach, self.estimate + reach)

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
    cdf : dict of str to Figure
        By value or ordered level, the share of rows up to it.
    quantiles : dict of str to Figure
        Values, or codes of ordered levels, by what was asked for; none where a frequency cannot
        be estimated. From the nearest frequencies that are not negative; the interval is that of
        the distribution function, inverted.
    bins : dict of str to Figure
        Shares by first and last value; unasked, where most frequencies are below their errors.
    too_many_values : bool
        There are too many values for frequencies.
    noisy_better : (int, int) or None
        Where noisy counts are combined: for how many of how many linear figures they are better.

    Notes
    -----
    Where only one or two rows are changed, intervals may hold the truth less often.
    """

    rows: int
    frequencies: Mapping[str, Figure]
    not_estimable: tuple[str, ...]
    mean: Figure | None
    variance: Figure | None
    cdf: Mapping[str, Figure] = field(default_factory=dict)
    quantiles: Mapping[str, Figure] = field(default_factory=dict)
    bins: Mapping[str, Figure] = field(default_factory=dict)
    too_many_values: bool = False
    noisy_better: tuple[int, int] | None = None

    def __repr__(self) -> str:
        named = {"mean": self.mean, "variance": self.variance, **self.frequencies}
        parts = [f"{name} {figure}" for name, figure in named.items() if figure is not None]
        return f"Estimate({self.rows} rows: {listed(parts)})"

    def _repr_html_(self) -> str:
        headers = ["", "estimate", "standard error", "95 % from", "to"]
        rows = (
            [" ".join(filter(None, (row["kind"], row["label"]))), *list(row.values())[2:]]
            for row in self.to_dicts()
        )
        return html_table(f"Estimates from {self.rows} rows", headers, rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a row for each figure, mean and variance first.

        Returns
        -------
        list of dict
            kind (mean, variance, quantile, bin, frequency or cdf), label, estimate,
            standard_error, low and high (of the 95 % interval); None where there is no estimate.
        """
        kinds: dict[str, Mapping[Any, Figure | None]] = {
            "mean": {None: self.mean}, "variance": {None: self.variance},
            "quantile": self.quantiles, "bin": self.bins,
            "frequency": {**self.frequencies, **dict.fromkeys(self.not_estimable)}, "cdf": self.cdf,
        }  # fmt: skip
        rows = []
        for kind, figures in kinds.items():
            for label, f in figures.items():
                numbers = (f.estimate, f.standard_error, *f.interval) if f else (None,) * 4
                rows.append(dict(zip(_COLUMNS, (kind, label, *numbers), strict=True)))
        return rows

    def to_arrow(self) -> Any:
        """Return these rows as a ``pyarrow.Table``; its ``to_pandas()`` is a pandas data frame."""
        import pyarrow as pa  # slow to import

        types = [pa.string()] * 2 + [pa.float64()] * 4
        return pa.Table.from_pylist(self.to_dicts(), pa.schema([*map(pa.field, _COLUMNS, types)]))


class _Sample:
    """Rows by output, of which means of w(Y) are taken; ``simplex`` moves the shares."""

    def __init__(self, solve: LeastSquares, outputs: FloatArray, rows: int, simplex: bool) -> None:
        self.solve, self.outputs, self.rows, self.simplex = solve, outputs, rows, simplex
        self.jump = 1 / rows  # how far one row moves a mean of weights 1, or noise beside the rows
        self.unbiased: FloatArray = outputs @ solve.single[0]
        positive = np.maximum(self.unbiased, 0.0)
        self.p: FloatArray = positive / positive.sum()

    def beside(self, noisy: Noisy, p: FloatArray) -> "_Sample":
        """Return the same with noisy frequencies as further outputs, best at frequencies p."""
        solve = self.solve.combined(p, self.rows, noisy[1])
        both = _Sample(solve, np.append(self.outputs, noisy[0]), self.rows, self.simplex)
        both.jump += math.sqrt(noisy[1])
        return both

    def better(self, noisy: Noisy, p: FloatArray, sets: FloatArray) -> tuple[int, int] | None:
        """Return for how many sums noisy frequencies are the better source; None: of other rows."""
        weights, usable = self.solve.weights(sets)
        own = (p @ self.solve.varied(weights)).clip(0.0) / self.rows
        other = noisy[1] * len(sets) * sets.var(axis=0)  # frequencies sum to 1
        gap = np.abs(self.outputs @ weights - noisy[0] @ sets)
        # Twice as far, because the noise of counts has longer tails.
        if (gap > 2 * _IMPOSSIBLE * np.sqrt(own + other) + _ROUNDING)[usable].any():
            return None
        return int((~usable | (other < own)).sum()), len(usable)

    @cached_property
    def nearest(self) -> FloatArray:
        """The nearest frequencies that are not negative."""
        possible = self.unbiased.min() > -_TIE
        return self.p if possible else self.solve.on_simplex(self.unbiased @ self.solve.matrix)

    def errors(self, weights: FloatArray, known: Any = None) -> Any:
        """Return the standard errors of means; ``known`` of E w(Y)^2 is not random."""
        squares = self.p @ self.solve.second @ weights**2
        rest = squares - (self.p @ (self.solve.first @ weights) ** 2 if known is None else known)
        return np.sqrt(np.where(rest > _NO_VARIANCE * squares, rest, 0.0) / self.rows)

    def figures(self, weights: FloatArray, known: Any = None) -> list[Figure]:
        """Return the means of w(Y) with score intervals.

        The variance errs with the estimate, by c for each 1. So the truth lies where
        (truth - estimate)^2 <= z^2 (variance + c (truth - estimate)) (theory, section 4).
        """
        errors, single = self.errors(weights, known), self.solve.single
        lean = np.zeros_like(errors)
        if single[1].all():
            first, scaled = self.solve.first, (self.p @ self.solve.second)[:, None] * weights
            known = (first @ single[0]).T @ (self.p[:, None] * (first @ weights))
            varied = (self.solve.varied(weights) * (single[0].T @ scaled - known)).sum(axis=0)
            np.divide(varied, (errors * self.rows) ** 2, out=lean, where=errors > 0)
        middle = REACH**2 * lean / 2
        half = np.sqrt((REACH * errors) ** 2 + middle**2)
        values = self.outputs @ weights
        lines = np.stack([values, errors, values + middle - half, values + middle + half], axis=1)
        return [Figure(value, error, (low, high)) for value, error, low, high in lines.tolist()]

    def shares(self, names: Sequence[str], sets: FloatArray) -> dict[str, Figure]:
        """Return the shares of sets of values that can be estimated: their indicators, (n_x, k)."""
        weights, usable = self.solve.weights(sets)
        figures, found = self.figures(weights), {}
        for k in np.flatnonzero(usable).tolist():
            share = figures[k]
            check_possible(share, 0.0, 1.0, np.abs(weights[:, k]).max() * self.jump, len(names))
            if self.simplex:
                share = replace(share, estimate=float(self.nearest @ sets[:, k]))
            found[names[k]] = share
        return found


def by_matrix(
    counts: FloatArray, solve: LeastSquares, support: Support,
    quantiles: Sequence[Number] = QUARTILES, bins: Any = None, simplex: bool = False,
    noisy: Noisy | None = None,
) -> Estimate:  # fmt: skip
    """Return estimates by weighted least squares, given rows by output of a finite channel."""
    if bins is not None and not support.ordered:
        raise InputError("bins are for numbers and for levels with an order")
    solve, counts = solve.crossed(counts)
    rows, sums = int(counts.sum()), np.eye(support.size)
    sample = _Sample(solve, counts / rows, rows, checked_flag(simplex, "simplex"))
    names, better = [support.name(x) for x in range(support.size)], None
    shares = sample.shares(names, sums)  # refuses what no release wrote, whatever noisy counts say
    if noisy is not None:
        # Frequencies from both tell next to nothing of how far the two are from each other.
        both = sample.beside(noisy, sample.beside(noisy, solve.mu).p)
        if support.ordered:
            sums = np.c_[sums, np.cumsum(sums, axis=1)[:, :-1], lattice_of(support).index]
        better = sample.better(noisy, both.p, sums / np.maximum(sums.max(axis=0), 1))
        if better is not None:
            sample, shares = both, both.shares(names, np.eye(support.size))
    lost = tuple(name for name in names if name not in shares)
    if not support.ordered:
        return Estimate(rows, shares, lost, None, None, noisy_better=better)
    lattice, clear = lattice_of(support), [f.estimate >= f.standard_error for f in shares.values()]
    sets = np.zeros((support.size, 0))
    if bins is not None:
        sets = read_bins(support, bins)
    elif sum(clear) < support.size / 2:
        sets = offered_bins(support, sample.solve, rows)
    parts = [np.flatnonzero(column) for column in sets.T]
    labels = [names[p[0]] + f" to {names[p[-1]]}" * (len(p) > 1) for p in parts]
    return Estimate(
        rows, shares, lost, *_moments(sample, not lost, lattice),
        cdf=sample.shares(names, np.triu(np.ones((support.size, support.size)))),
        quantiles={} if lost else _quantiles(sample, lattice, quantiles),
        bins=sample.shares(labels, sets), noisy_better=better,
    )  # fmt: skip


def _moments(sample: _Sample, exact: bool, lattice: Lattice) -> tuple[Figure | None, Figure | None]:
    """Return mean and variance, where they can be estimated; ``exact``: the frequencies, too."""
    last, jump = int(lattice.index[-1]), sample.jump
    unit = float(lattice.step * Fraction(max(last, 1), 2))
    # From the middle in half ranges, so that squares lose no digits.
    t = (2 * lattice.index.astype(np.float64) - last) / max(last, 1)
    weights, usable = sample.solve.weights(np.c_[t, t**2, t**0])
    if not usable[0]:
        return None, None
    first, second, one = weights.T
    of_t, of_square, _ = (sample.outputs @ weights).tolist()
    (mean,) = sample.figures(weights[:, :1], None if exact else of_t**2)
    largest = float(np.abs(first).max()) * jump
    check_possible(mean, -1.0, 1.0, largest)
    variance = None
    if usable[1]:
        # E[of_t^2] is the square of the mean and the variance of of_t, which is added again.
        spread, own = of_square - of_t**2, sample.outputs @ first**2 - of_square
        own = (sample.unbiased @ sample.solve.varied(first) if exact else own) / sample.rows
        known = None if exact else max(spread, 0.0) ** 2
        around = float(sample.errors(second - 2 * of_t * first + of_t**2 * one, known))
        variance = Figure(
            float(spread + own), math.hypot(around, math.sqrt(2) * mean.standard_error**2)
        )
        check_possible(variance, 0.0, 1.0, 2 * (largest + float(np.abs(second).max()) * jump))
    middle = lattice.step * (lattice.origin + Fraction(last, 2))
    return _in_units(mean, unit, float(middle)), variance and _in_units(variance, unit**2)


def _quantiles(sample: _Sample, lattice: Lattice, asked: Sequence[Number]) -> dict[str, Figure]:
    """Return quantiles: the least values up to which the share F of rows is at least q."""
    upto = sample.figures(np.cumsum(sample.solve.single[0], axis=1))
    low, high = np.array([figure.interval for figure in upto]).T
    surely = np.minimum.accumulate(low[::-1])[::-1]
    found = {}
    for each in asked:
        q = parse_number(each, "a quantile")
        if not 0 < q < 1:
            raise InputError(f"a quantile lies between 0 and 1, but {show(q)} was given")
        places = [
            # From where the interval of F reaches up to q to where it stays above; the last F is 1.
            float(lattice.value(int(np.argmax(np.append(share[:-1], 1.0) >= float(q) - _TIE))))
            for share in (np.cumsum(sample.nearest), high, surely)
        ]
        ends = min(places), max(places)
        found[show(q)] = Figure(places[0], (ends[1] - ends[0]) / (2 * REACH), ends)
    return found


def _in_units(figure: Figure, unit: float, middle: float = 0.0) -> Figure:
    value, low, high = (middle + unit * each for each in (figure.estimate, *figure.interval))
    return Figure(value, unit * figure.standard_error, (low, high))


def by_moments(released: Mapping[int, int], noise: DiscreteLaplace, lattice: Lattice) -> Estimate:
    """Return mean and variance from rows by released value in steps (theory, section 4)."""
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
    """Refuse an estimate that noise almost never explains (Bernstein, ``largest``: one row)."""
    z = math.sqrt(_IMPOSSIBLE**2 + 2 * math.log(among))
    reach = z * figure.standard_error + z**2 * largest + _ROUNDING * (high - low)
    if figure.estimate < low - reach or figure.estimate > high + reach:
        raise InputError(
            f"an estimate lies more than {_IMPOSSIBLE:g} standard errors outside of what is "
            "possible: was this file released by this plan, with these options?"
        )
