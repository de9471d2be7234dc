# SPDX-License-Identifier: Apache-2.0
"""From a released column and its ReleaseSpec to estimates of the original one.

A release writes nothing but outputs of its mechanism. A cell that is none of them, or an estimate
that lies beyond what noise can do, shows that this is another column, another plan or another set
of options, and is refused.
"""

from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import Estimate, by_matrix, by_moments
from pufferfish.estimate.matrix import MOST_VALUES, FiniteChannel, LeastSquares
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import FloatArray, NotFinite, canonical, parse_text, show
from pufferfish.priors.ambiguity import NoisyCounts
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.sinks import guarded, texts, unguarded
from pufferfish.release.spec import ReleaseSpec, set_column
from pufferfish.support import Support, lattice_of
from pufferfish.tables.frames import known, raw_cells
from pufferfish.tables.source import open_table
from pufferfish.tables.table import Table, distinct, one_array, texts_of

#: Rows by the text of what was released, or by those of set and label.
_Rows = dict[tuple[str, ...], int]
_OTHER = "; was the column released by this plan, with these options?"


def estimate_released(
    released: Any, spec: ReleaseSpec, noisy: NoisyCounts | None = None, *,
    column: str | None = None, **options: Any,
) -> Estimate:  # fmt: skip
    """Return estimates of the original column from a released one.

    They are of the rows that were released. Estimating only looks at what was published and how,
    so it costs no privacy. Noisy counts of these rows are used. Source: theory, sections 1, 4.

    ``released`` is an array, list, series, dataframe, or the path of a file; ``spec`` the release
    with its bounds, rounding and least scale; ``column`` the released column of a table, where its
    name is another one. Where sets of values were published beside labels, these count. Further
    options are quantiles, bins and simplex, as in :meth:`pufferfish.Plan.estimate`.
    """
    post, support = Postprocess(spec), spec.support
    rows = _decoded(*_read(released, spec, column), post)
    if support.size <= MOST_VALUES:
        channel = FiniteChannel(post, support)
        weights = spec.weights
        if noisy is not None and noisy.rows == sum(rows.values()) and not noisy.held_out:
            options["noisy"] = shares, _ = _frequencies(noisy)
            weights = weights or tuple(shares.clip(0.0))  # no released row has a part in them
        solve = LeastSquares(channel.matrix, weights)
        return by_matrix(channel.counts(rows), solve, support, **options)
    if options.get("bins") is not None or options.get("simplex"):
        raise InputError(
            f"bins and simplex need frequencies, which are estimated of at most {MOST_VALUES} "
            f"values, but the support has {support.size}"
        )
    noise = post.mechanism
    if isinstance(noise, DiscreteLaplace) and post.bounds is None and post.step == noise.step:
        return by_moments(rows, noise, lattice_of(support))
    return Estimate(sum(rows.values()), {}, (), None, None, too_many_values=True)


def _frequencies(noisy: NoisyCounts) -> tuple[FloatArray, float]:
    """Return unbiased frequencies in all counted rows, of sum 1, and the variance of each."""
    cells = np.array([*noisy.counts, noisy.others], dtype=np.float64)
    shares: FloatArray = cells.sum(axis=0) / noisy.rows
    variance = DiscreteLaplace(2.0, noisy.epsilon1).mse / float(noisy.epsilon1) ** 2
    return shares + (1 - shares.sum()) / len(shares), len(cells) * variance / noisy.rows**2


def _read(released: Any, spec: ReleaseSpec, column: str | None) -> tuple[str, _Rows]:
    """Return what messages call the released column, and its rows by text, or set and label."""
    text_file = False
    released = released if isinstance(released, str | Path) else known(released)
    if isinstance(released, str | Path | nw.DataFrame | nw.LazyFrame):
        table = open_table(released)
        text_file = table.is_text_file
        names = _columns(table, spec, column)
        what = f"column {names[0]!r} of {table.name}"
        *picked, found = map(one_array, table.groups(names).columns)
        counts = found.to_pylist()
    elif column is not None:
        raise InputError("a column can be named of a dataframe or a file, but not of an array")
    else:
        what = "the array"
        cells, places = distinct(raw_cells(released))
        picked, counts = [cells], np.bincount(places, minlength=len(cells)).tolist()
    rows: _Rows = {}
    for *each, count in zip(*map(texts_of, picked), counts, strict=True):
        key = tuple(map(unguarded, each) if text_file else each)
        rows[key] = rows.get(key, 0) + count
    if any(count for key, count in rows.items() if not key[0]):
        raise InputError(f"{what} has an empty cell, but a release writes none{_OTHER}")
    if not any(rows.values()):
        raise InputError(f"{what} holds no released value: there is nothing to estimate from")
    return what, rows


def _columns(table: Table, spec: ReleaseSpec, column: str | None) -> list[str]:
    """Return the column that estimates come from, or where they are there, sets and labels."""
    coded = [] if spec.coding is None else [spec.coding.column]
    names = [] if column is None else [table.column(column)]
    names += [*coded, *guarded(texts(coded)).to_pylist()]  # as it is, and as in a text file
    if not names and len(table.columns) > 1:
        raise InputError(
            f"{table.name} has the columns {listed(table.columns)}, and the plan names none; "
            "say which one is the released one with --column COL (column=COL)"
        )
    names = names or list(table.columns)
    sets = [] if spec.sets is None else map(set_column, names)
    found = (next((n for n in each if n in table.columns), None) for each in (sets, names))
    return list(filter(None, found)) or [table.column(names[0])]


def _names(support: Support) -> dict[str, int]:
    """Return the positions of levels by their canonical texts."""
    return {canonical(support.name(k)): k for k in range(support.size)}


def _decoded(what: str, cells: _Rows, post: Postprocess) -> dict[int, int]:
    """Return rows by released value, in steps or as positions of levels."""
    levels, labels = post.sets or post.levels, post.labels
    places = {} if levels is None else _names(levels)
    members = {} if labels is None else _names(labels.outputs)
    rows: dict[int, int] = {}
    for (text, *label), count in cells.items():
        value = places.get(text) if levels else _steps(text, post.step)
        if value is None:
            kind, hint = f"multiple of {show(post.step)}, as released values are", _OTHER
            if levels is not None:
                kind = f"released level ({listed(levels.names)})"
            if post.sets is not None:
                kind = f"released set, such as {post.sets.name(0)}"
                hint = "; from labels alone, with larger errors: --labels-only (labels_only=True)"
            raise InputError(f"{what} holds a cell that is no {kind}{hint}")
        rows[value] = rows.get(value, 0) + count
        if labels and any(not labels.rows[value, members[n]] for n in label if n in members):
            raise InputError(f"{what} holds a set beside a label that is not drawn from it{_OTHER}")
    if post.bounds is not None and not all(post.bounds[0] <= v <= post.bounds[1] for v in rows):
        raise InputError(f"{what} holds values outside the bounds{_OTHER}")
    return dict(sorted(rows.items()))


def _steps(text: str, step: Fraction) -> int | None:
    """Return a released number, or the double nearest to it, in steps; None if it is neither."""
    value = None
    with suppress(NotFinite):
        value = parse_text(text)
    if value is None:
        return None
    nearest = round(value / step)
    exact = nearest * step == value or float(nearest * step) == float(value)
    return nearest if exact and abs(nearest) < 2**63 else None
