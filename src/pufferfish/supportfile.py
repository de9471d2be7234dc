# SPDX-License-Identifier: Apache-2.0
"""The support as JSON values: runs of neighbouring atoms, names of levels, or both by column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.jsonfile import entry, texts
from pufferfish.product import MOST_CELLS, check_columns, make_product
from pufferfish.rationals import parse_number, show
from pufferfish.support import MAX_CELLS, AnySupport, Lattice, Levels, Product, Support

#: More atoms than a plan can sensibly hold: a small file must not ask for all of the memory.
_MOST_ATOMS = 2**28


def support_to_dict(support: AnySupport) -> dict[str, Any]:
    """Return a support as JSON values; a million integers in a row are one run."""
    if isinstance(support, Product):
        axes = [support_to_dict(axis) for axis in support.axes]
        return {"kind": "columns", "columns": list(support.columns), "axes": axes}
    if isinstance(support, Levels):
        return {"kind": "levels", "ordered": support.ordered, "names": list(support.names)}
    index = support.index
    breaks = np.flatnonzero(np.diff(index) > 1)
    firsts = index[np.concatenate([[0], breaks + 1])]
    lasts = index[np.concatenate([breaks, [len(index) - 1]])]
    return {
        "kind": "numbers",
        "step": show(support.step),
        "origin": str(support.origin),
        "runs": [[a, b] for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True)],
    }


def any_support_from_dict(data: Mapping[str, Any]) -> AnySupport:
    """Read back what :func:`support_to_dict` wrote, of one column or of several together.

    Raises
    ------
    InputError
        If it is no support.
    """
    if data.get("kind") != "columns":
        return support_from_dict(data)
    columns, axes = texts(data, "columns"), entry(data, "axes", list)
    if len(axes) != len(columns) or not all(isinstance(axis, Mapping) for axis in axes):
        raise InputError("its support of several columns must have one axis for each of them")
    if check_columns(columns) != columns:
        raise InputError("the names of its columns must have no spaces around them")
    read: list[Support] = []
    for axis in axes:
        read.append(_one_column(axis, MOST_CELLS // math.prod(other.size for other in read)))
    return make_product(columns, read)


def support_from_dict(data: Mapping[str, Any]) -> Support:
    """Read back what :func:`support_to_dict` wrote for one column.

    Raises
    ------
    InputError
        If it is no support, or one of several columns.
    """
    return _one_column(data, _MOST_ATOMS)


def _one_column(data: Mapping[str, Any], most: int) -> Support:
    kind = data.get("kind")
    if kind == "columns":
        raise InputError("its support is of several columns, but one is needed")
    if kind == "levels":
        names = texts(data, "names")
        if not names or len(set(names)) < len(names):
            raise InputError("its support must name each level once")
        return Levels(names, bool(entry(data, "ordered", bool)))
    if kind != "numbers":
        raise InputError(f"its support is of the unknown kind {kind!r}")
    step = parse_number(entry(data, "step", str), "its step")
    origin = parse_number(entry(data, "origin", str), "its origin")
    if step <= 0 or origin.denominator != 1:
        raise InputError("its step must be above 0 and its origin a whole number of steps")
    return Lattice(step, int(origin), _index(entry(data, "runs", list), most))


def _index(runs: list[Any], most: int) -> Any:
    previous = -1
    for run in runs:
        increasing = (
            isinstance(run, list)
            and len(run) == 2
            and all(type(k) is int for k in run)
            and previous < run[0] <= run[1] <= MAX_CELLS
        )
        if not increasing:
            raise InputError("the runs of its support must be increasing pairs of integers")
        previous = run[1]
    size = sum(b - a + 1 for a, b in runs)
    if not runs or runs[0][0] != 0 or size > most:
        raise InputError(f"the runs of its support must begin at 0 and hold at most {most} atoms")
    index = np.empty(size, dtype=np.int64)
    start = 0
    for a, b in runs:
        stop = start + b - a + 1
        index[start:stop] = np.arange(a, b + 1, dtype=np.int64)
        start = stop
    return index
