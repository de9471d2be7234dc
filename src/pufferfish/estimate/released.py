# SPDX-License-Identifier: Apache-2.0
"""From a released column and its ReleaseSpec to estimates of the original one.

A release writes nothing but outputs of its mechanism. A cell that is none of them, or an estimate
that lies beyond what noise can do, shows that this is another column, another plan or another set
of options, and is refused.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import (
    Bounds,
    Estimate,
    Figure,
    bounds_of,
    check_possible,
    figures,
    moments,
)
from pufferfish.estimate.matrix import MOST_VALUES, FiniteChannel, Inverse
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray, NotFinite, parse_text, show
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.sinks import guarded, texts, unguarded
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Lattice, Support, lattice_of
from pufferfish.tables.canonical import canonical
from pufferfish.tables.frames import raw_cells
from pufferfish.tables.source import open_table
from pufferfish.tables.table import distinct, one_array, texts_of

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
    post, support = Postprocess(spec), spec.support
    what, cells = _read(released, spec, column)
    rows = _decoded(what, cells, post)
    if support.size <= MOST_VALUES:
        return _by_matrix(rows, FiniteChannel(post, support), support)
    mean, variance = _by_sums(rows, post, support)
    return Estimate(sum(rows.values()), (), (), mean, variance, too_many_values=True)


def _read(released: Any, spec: ReleaseSpec, column: str | None) -> tuple[str, dict[str, int]]:
    """Return what messages call the released column, and its rows by canonical text."""
    if isinstance(released, pa.RecordBatch):
        released = pa.Table.from_batches([released])
    known = nw.from_native(released, allow_series=True, pass_through=True)
    file = str(released).lower() if isinstance(released, str | Path) else ""
    if file or isinstance(known, nw.DataFrame | nw.LazyFrame):
        table = open_table(released)
        if column is None and spec.coding is not None:
            column = spec.coding.column
            shown = guarded(texts([column]))[0].as_py()  # the name in a text file
            column = shown if shown in table.columns and column not in table.columns else column
        if column is None and len(table.columns) > 1:
            raise InputError(
                f"{table.name} has the columns {listed(table.columns)}, and the plan names none; "
                "say which one is the released one with --column COL (column=COL)"
            )
        name = table.columns[0] if column is None else table.column(column)
        what = f"column {name!r} of {table.name}"
        groups = table.groups([name])
        picked, counts = one_array(groups.column(0)), groups.column(1).to_pylist()
    elif column is not None:
        raise InputError("a column can be named of a dataframe or a file, but not of an array")
    else:
        what = "the array"
        picked, places = distinct(raw_cells(released))
        counts = np.bincount(places, minlength=len(picked)).tolist()
    text_file = file == "-" or file.endswith(_TEXT_FILES)
    rows: dict[str, int] = {}
    for text, count in zip(texts_of(picked), counts, strict=True):
        text = unguarded(text) if text_file else text
        rows[text] = rows.get(text, 0) + count
    if rows.get(""):
        raise InputError(f"{what} has an empty cell, but a release writes none{_OTHER}")
    if not any(rows.values()):
        raise InputError(f"{what} holds no released value: there is nothing to estimate from")
    return what, rows


def _decoded(what: str, cells: dict[str, int], post: Postprocess) -> dict[int, int]:
    """Return rows by released value, in steps or as positions of levels."""
    names = () if post.levels is None else post.levels.names
    places = {canonical(name): k for k, name in enumerate(names)}
    rows: dict[int, int] = {}
    for text, count in cells.items():
        value = places.get(text) if names else _steps(text, post.step)
        if value is None:
            kind = f"multiple of {show(post.step)}, as released values are"
            if names:
                kind = f"released level ({listed(names)})"
            raise InputError(f"{what} holds a cell that is no {kind}{_OTHER}")
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
    total, inverse = counts.sum(), Inverse(matrix)
    # The frequencies of all values together are 1; nobody needs an estimate of that.
    groups = [g for g in inverse.groups() if len(g) < support.size or support.size == 1]
    indicators = np.zeros((support.size, len(groups)))
    for k, group in enumerate(groups):
        indicators[group, k] = 1
    weights, usable = inverse.weights(indicators)
    chosen = np.flatnonzero(usable)
    groups, weights = [groups[k] for k in chosen], weights[:, chosen]
    bounds = bounds_of(weights, matrix)
    shares = figures(counts, weights, counts @ weights / total, bounds)
    for share, largest in zip(shares, bounds.largest, strict=True):
        check_possible(share, 0.0, 1.0, largest / total, len(shares))
    entries = [
        replace(share, labels=tuple(map(support.name, group)))
        for share, group in zip(shares, groups, strict=True)
    ]
    known = {group[0] for group in groups if len(group) == 1}
    lost = tuple(support.name(x) for x in range(support.size) if x not in known)
    mean, variance = None, None
    if isinstance(support, Lattice) or support.ordered:
        lattice = lattice_of(support)
        last = int(lattice.index[-1])
        # From the middle in half ranges, so that fourth powers lose no digits.
        t = (2 * lattice.index.astype(np.float64) - last) / max(last, 1)
        found, usable = inverse.weights(t[:, None] ** np.arange(1, 5))
        powers = [found[:, k] if usable[k] else None for k in range(4)]
        mean, variance = moments(counts, powers, partial(bounds_of, matrix=matrix), lattice)
    return Estimate(int(total), tuple(entries), lost, mean, variance)


def _by_sums(
    rows: dict[int, int], post: Postprocess, support: Support
) -> tuple[Figure | None, Figure | None]:
    """Return mean and variance in linear time, where neither rounding nor bounds hide the ends.

    On all points of the lattice from the first value to the last, the inverse of the finite
    channel of discrete Laplace noise has three diagonals: the weights for a function a are a less
    its second difference times alpha / (1 - alpha)^2, with alpha = exp(-step / scale), and at the
    ends a plus its difference outwards times alpha / (1 - alpha).
    """
    noise = post.mechanism
    if not isinstance(noise, DiscreteLaplace):
        return None, None
    lattice = lattice_of(support)
    last = int(lattice.index[-1])
    low, high = post.bounds or (lattice.origin, lattice.origin + last)
    if post.step != lattice.step or low > lattice.origin or high < lattice.origin + last:
        return None, None
    if noise.scale == 0 and not np.isin(list(rows), lattice.index + lattice.origin).all():
        raise InputError(f"the released column holds values that no value is published as{_OTHER}")
    counts = np.array(list(rows.values()), dtype=np.float64)
    place = np.array([min(max(v - lattice.origin, 0), last) for v in rows], dtype=np.float64)
    rate = float(noise.step / Fraction(noise.scale)) if noise.scale else math.inf
    alpha, rest = math.exp(-rate), -math.expm1(-rate)
    h, t = 2 / last, (2 * place - last) / last
    second = [0 * t, 2 + 0 * t, 6 * t, 12 * t**2 + 2 * h**2]
    powers: list[FloatArray | None] = []
    for k in (1, 2, 3, 4):
        outwards = -math.expm1(k * math.log1p(-h)) * alpha / rest
        inside = t**k - second[k - 1] * h**2 * alpha / rest**2
        powers.append(np.where(np.abs(t) == 1, t**k * (1 + outwards), inside))
    steps = math.sqrt(12 * alpha / rest**2 + 1)  # the root of the noise's fourth moment over second

    def bounded(weights: FloatArray) -> Bounds:
        slope = np.abs(np.diff(weights[:, 0]) / np.maximum(np.diff(t), h)).max(initial=0.0)
        most = np.full(1, math.inf if noise.scale else 0.0)
        jump = np.full(1, steps * h * slope)
        return Bounds(np.abs(weights).max(axis=0), np.zeros(1), most, jump)

    return moments(counts, powers, bounded, lattice)
