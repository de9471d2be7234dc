# SPDX-License-Identifier: Apache-2.0
"""From a released column and its ReleaseSpec to estimates of the original one.

A release writes nothing but outputs of its mechanism. A cell that is none of them, or an estimate
that lies beyond what noise can do, shows that this is another column, another plan or another set
of options, and is refused.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from pufferfish.errors import InputError, listed
from pufferfish.estimate.estimate import Estimate, by_matrix, by_moments
from pufferfish.estimate.matrix import MOST_VALUES, FiniteChannel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import NotFinite, parse_text, show
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.sinks import guarded, texts, unguarded
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import lattice_of
from pufferfish.tables.canonical import canonical
from pufferfish.tables.frames import known, raw_cells
from pufferfish.tables.source import open_table
from pufferfish.tables.table import distinct, one_array, texts_of

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
    rows = _decoded(*_read(released, spec, column), post)
    if support.size <= MOST_VALUES:
        channel = FiniteChannel(post, support)
        return by_matrix(channel.counts(rows), channel.matrix, support)
    noise = post.mechanism
    if isinstance(noise, DiscreteLaplace) and post.bounds is None and post.step == noise.step:
        return by_moments(rows, noise, lattice_of(support))
    return Estimate(sum(rows.values()), {}, (), None, None, too_many_values=True)


def _read(released: Any, spec: ReleaseSpec, column: str | None) -> tuple[str, dict[str, int]]:
    """Return what messages call the released column, and its rows by canonical text."""
    text_file = False
    if isinstance(released, str | Path) or isinstance(known(released), nw.DataFrame | nw.LazyFrame):
        table = open_table(released)
        text_file = table.is_text_file
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
