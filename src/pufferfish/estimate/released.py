# SPDX-License-Identifier: Apache-2.0
"""From a released column and its ReleaseSpec to estimates of the original one.

A release writes nothing but outputs of its mechanism. A cell that is none of them, or an estimate
that lies beyond what noise can do, shows that this is another column, another plan or another set
of options, and is refused.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import REACH, Estimate, Figure, Frequency
from pufferfish.estimate.figures import Bounds, figures, moments
from pufferfish.estimate.matrix import MOST_VALUES, FiniteChannel, Inverse, finite_channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray, NotFinite, parse_text, show
from pufferfish.release.csvtext import guarded, texts, unguarded
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Lattice, Support, lattice_of
from pufferfish.tables.arrow import Cells, distinct, one_array
from pufferfish.tables.canonical import canonical
from pufferfish.tables.frames import raw_cells
from pufferfish.tables.source import open_table

#: Standard errors beyond which an impossible estimate shows that the release was another one.
_IMPOSSIBLE = 5.0
#: Less than this outside of what is possible is the rounding of doubles.
_ROUNDING = 1e-6
_TEXT_FILES = (".csv", ".tsv", ".txt", ".gz")
_OTHER = "; was the column released by this plan, with these options?"


def estimate_released(released: Any, spec: ReleaseSpec, *, column: str | None = None) -> Estimate:
    """Return estimates of the original column from a released one.

    They are of the rows that were released: their frequencies, mean and variance. Estimating only
    looks at what was published and how, so it costs no privacy. Source: theory, sections 1 and 4.

    ``released`` is an array, list, series, dataframe, or the path of a file; ``spec`` the release
    with its bounds, rounding and least scale; ``column`` the released column of a table, where its
    name is another one.
    """
    post = Postprocess(spec)
    what, cells = _read(released, spec, column)
    rows = _decoded(what, cells, post)
    support = spec.support
    if support.size <= MOST_VALUES:
        return _by_matrix(rows, finite_channel(post, support), support)
    return _by_sums(rows, post, support)


def _read(released: Any, spec: ReleaseSpec, column: str | None) -> tuple[str, dict[str, int]]:
    """Return what messages call the released column, and its rows by canonical text."""
    if isinstance(released, pa.RecordBatch):
        released = pa.Table.from_batches([released])
    known = nw.from_native(released, allow_series=True, pass_through=True)
    text_file = False
    if isinstance(released, str | Path) or isinstance(known, nw.DataFrame | nw.LazyFrame):
        table = open_table(released)
        if column is not None:
            name = table.column(column)
        elif spec.coding is not None:
            own = spec.coding.column
            shown = [own, guarded(texts([own]))[0].as_py()]
            name = next((n for n in shown if n in table.columns), None) or table.column(own)
        elif len(table.columns) == 1:
            name = table.columns[0]
        else:
            raise InputError(
                f"{table.name} has the columns {listed(table.columns)}, and the plan names none; "
                "say which one is the released one with --column COL (column=COL)"
            )
        what = f"column {name!r} of {table.name}"
        groups = table.groups([name])
        picked, counts = one_array(groups.column(0)), groups.column(1).to_pylist()
        file = str(released).lower() if isinstance(released, str | Path) else ""
        text_file = file == "-" or file.endswith(_TEXT_FILES)
    elif column is not None:
        raise InputError("a column can be named of a dataframe or a file, but not of an array")
    else:
        what = "the array"
        picked, places = distinct(raw_cells(released))
        counts = np.bincount(places, minlength=len(picked)).tolist()
    rows: dict[str, int] = {}
    for text, count in zip(Cells(picked).texts, counts, strict=True):
        text = unguarded(text) if text_file else text
        rows[text] = rows.get(text, 0) + count
    if rows.get(""):
        raise InputError(f"{what} has an empty cell, but a release writes none{_OTHER}")
    if not any(rows.values()):
        raise InputError(f"{what} holds no released value: there is nothing to estimate from")
    return what, rows


def _decoded(what: str, cells: dict[str, int], post: Postprocess) -> dict[int, int]:
    """Return rows by released value, in steps or as positions of levels."""
    places = None
    if post.levels is not None:
        places = {canonical(name): k for k, name in enumerate(post.levels.names)}
    rows: dict[int, int] = {}
    for text, count in cells.items():
        value = _steps(text, post.step) if places is None else places.get(text)
        if value is None and post.levels is not None:
            raise InputError(
                f"{what} holds a cell that is none of the released levels "
                f"({listed(post.levels.names)}){_OTHER}"
            )
        if value is None:
            raise InputError(
                f"{what} holds a cell that is no multiple of {show(post.step)}, as released "
                f"values are{_OTHER}"
            )
        rows[value] = rows.get(value, 0) + count
    if post.bounds is not None and not all(post.bounds[0] <= v <= post.bounds[1] for v in rows):
        raise InputError(f"{what} holds values outside the bounds{_OTHER}")
    return dict(sorted(rows.items()))


def _steps(text: str, step: Fraction) -> int | None:
    """Return a released number in steps, or None where it is no multiple of the step.

    Where doubles or decimals cannot hold the multiple (1/3, or many digits), a release shows the
    nearest double, and that is taken for it.
    """
    try:
        value = parse_text(text)
    except NotFinite:
        return None
    if value is None:
        return None
    nearest = round(value / step)
    exact = nearest * step == value or float(nearest * step) == float(value)
    return nearest if exact and abs(nearest) < 2**63 else None


def _by_matrix(rows: dict[int, int], channel: FiniteChannel, support: Support) -> Estimate:
    """Return estimates by weighted least squares on the finite channel."""
    counts, matrix = channel.counts(rows), channel.matrix
    inverse = Inverse(matrix)
    # The frequencies of all values together are 1; nobody needs an estimate of that.
    groups = [g for g in inverse.groups() if len(g) < support.size or support.size == 1]
    indicators = np.zeros((support.size, len(groups)))
    for k, group in enumerate(groups):
        indicators[group, k] = 1
    weights, usable = inverse.weights(indicators)
    groups = [group for group, use in zip(groups, usable.tolist(), strict=True) if use]
    weights = weights[:, usable]
    bounds = Bounds.on(weights, matrix)
    shares = figures(counts, weights, counts @ weights / counts.sum(), bounds)
    for share, largest in zip(shares, bounds.largest, strict=True):
        _check_possible(share, 0.0, 1.0, largest / counts.sum(), len(shares))
    entries = [
        Frequency(s.estimate, s.standard_error, s.reach, tuple(map(support.name, group)))
        for s, group in zip(shares, groups, strict=True)
    ]
    known = {group[0] for group in groups if len(group) == 1}
    lost = tuple(support.name(x) for x in range(support.size) if x not in known)
    mean, variance = None, None
    if isinstance(support, Lattice) or support.ordered:
        lattice = lattice_of(support)
        powers, usable = inverse.weights(_scaled(lattice)[:, None] ** np.arange(1, 5))
        mean, variance = _moments(
            counts,
            [powers[:, k] if use else None for k, use in enumerate(usable.tolist())],
            lambda w: Bounds.on(w, matrix),
            lattice,
        )
    return Estimate(int(counts.sum()), tuple(entries), lost, mean, variance)


def _by_sums(rows: dict[int, int], post: Postprocess, support: Support) -> Estimate:
    """Return mean and variance in linear time, where neither rounding nor bounds hide the ends.

    On all points of the lattice from the first value to the last, the inverse of the finite
    channel of discrete Laplace noise has three diagonals: the weights for a function a are a less
    its second difference times alpha / (1 - alpha)^2, with alpha = exp(-step / scale), and at the
    ends a plus its difference outwards times alpha / (1 - alpha).
    """
    mean, variance = None, None
    noise = post.mechanism
    if isinstance(noise, DiscreteLaplace):
        lattice = lattice_of(support)
        first, last = lattice.origin, lattice.origin + int(lattice.index[-1])
        low, high = post.bounds or (first, last)
        if post.step == lattice.step and low <= first and high >= last:
            counts, powers, bounded = _sums(rows, noise, lattice)
            mean, variance = _moments(counts, powers, bounded, lattice)
    return Estimate(sum(rows.values()), (), (), mean, variance, too_many_values=True)


def _sums(
    rows: dict[int, int], noise: DiscreteLaplace, lattice: Lattice
) -> tuple[FloatArray, list[FloatArray | None], Callable[[FloatArray], Bounds]]:
    """Return rows by value, the weights of these for the first four powers, and their bounds."""
    last = int(lattice.index[-1])
    counts = np.array(list(rows.values()), dtype=np.float64)
    place = np.array([min(max(v - lattice.origin, 0), last) for v in rows], dtype=np.float64)
    if noise.scale == 0 and not np.isin(list(rows), lattice.index + lattice.origin).all():
        raise InputError(f"the released column holds values that no value is published as{_OTHER}")
    rate = float(noise.step / Fraction(noise.scale)) if noise.scale else math.inf
    alpha, rest = math.exp(-rate), -math.expm1(-rate)
    h = 2 / last
    t = (2 * place - last) / last
    second = [np.zeros_like(t), np.full_like(t, 2.0), 6 * t, 12 * t**2 + 2 * h**2]
    powers: list[FloatArray | None] = []
    for k in (1, 2, 3, 4):
        outwards = -math.expm1(k * math.log1p(-h)) * alpha / rest
        inside = t**k - second[k - 1] * h**2 * alpha / rest**2
        at_first = (-1) ** k * (1 + outwards)
        powers.append(np.where(place == 0, at_first, np.where(place == last, 1 + outwards, inside)))
    steps = math.sqrt(12 * alpha / rest**2 + 1)  # the root of the noise's fourth moment over second

    def bounded(weights: FloatArray) -> Bounds:
        largest = np.abs(weights).max(axis=0)
        slope = np.abs(np.diff(weights[:, 0]) / np.maximum(np.diff(t), h)).max(initial=0.0)
        most = np.full(1, math.inf if noise.scale else 0.0)
        return Bounds(largest, np.zeros(1), most, np.full(1, steps * h * slope))

    return counts, powers, bounded


def _scaled(lattice: Lattice) -> FloatArray:
    """Return the values from the middle in half ranges, so that fourth powers lose no digits."""
    last = int(lattice.index[-1])
    t: FloatArray = (2 * lattice.index.astype(np.float64) - last) / max(last, 1)
    return t


def _moments(
    counts: FloatArray,
    powers: Sequence[FloatArray | None],
    bounded: Callable[[FloatArray], Bounds],
    lattice: Lattice,
) -> tuple[Figure | None, Figure | None]:
    """Return mean and variance in the units of the data."""
    mean, variance = moments(counts, powers, bounded)
    largest = [0.0 if w is None else float(np.abs(w).max()) for w in powers]
    _check_possible(mean, -1.0, 1.0, largest[0] / counts.sum())
    _check_possible(variance, 0.0, 1.0, 2 * (largest[0] + largest[1]) / counts.sum())
    last = int(lattice.index[-1])
    unit = float(lattice.step * Fraction(max(last, 1), 2))
    middle = float(lattice.step * (lattice.origin + Fraction(last, 2)))
    if mean is not None:
        mean = Figure(middle + unit * mean.estimate, unit * mean.standard_error, unit * mean.reach)
    if variance is not None:
        square = (variance.estimate, variance.standard_error, variance.reach)
        variance = Figure(*(unit**2 * number for number in square))
    return mean, variance


def _check_possible(
    figure: Figure | None, low: float, high: float, largest: float, among: int = 1
) -> None:
    """Refuse an estimate that noise takes so far outside of what is possible hardly ever.

    By Bernstein's inequality with one row's largest effect ``largest``, and for the greatest of
    ``among`` estimates.
    """
    if figure is None:
        return
    z = math.sqrt(_IMPOSSIBLE**2 + 2 * math.log(among))
    reach = z * max(figure.standard_error, figure.reach / REACH) + z**2 * largest + _ROUNDING
    if figure.estimate < low - reach or figure.estimate > high + reach:
        raise InputError(
            f"an estimate lies more than {_IMPOSSIBLE:g} standard errors outside of what is "
            "possible: was this file released by this plan, with these options?"
        )
