# SPDX-License-Identifier: Apache-2.0
"""The support as JSON values: runs of neighbouring atoms, or the names of levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.jsonfile import entry, texts
from pufferfish.rationals import parse_number, show
from pufferfish.support import MAX_CELLS, Lattice, Levels, Support

#: More atoms than a plan can sensibly hold: a small file must not ask for all of the memory.
_MOST_ATOMS = 2**28


def support_to_dict(support: Support) -> dict[str, Any]:
    """Return a support as JSON values; a million integers in a row are one run."""
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


def support_from_dict(data: Mapping[str, Any]) -> Support:
    """Read back what :func:`support_to_dict` wrote.

    Raises
    ------
    InputError
        If it is no support.
    """
    kind = data.get("kind")
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
    return Lattice(step, int(origin), _index(entry(data, "runs", list)))


def _index(runs: list[Any]) -> Any:
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
    if not runs or runs[0][0] != 0 or size > _MOST_ATOMS:
        raise InputError(
            f"the runs of its support must begin at 0 and hold at most {_MOST_ATOMS} atoms"
        )
    index = np.empty(size, dtype=np.int64)
    start = 0
    for a, b in runs:
        stop = start + b - a + 1
        index[start:stop] = np.arange(a, b + 1, dtype=np.int64)
        start = stop
    return index
