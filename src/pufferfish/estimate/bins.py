# SPDX-License-Identifier: Apache-2.0
"""Bins: neighbouring values taken together, where one by one they are lost in noise."""

from bisect import bisect_right
from itertools import pairwise
from typing import Any

import numpy as np

from pufferfish.errors import InputError
from pufferfish.estimate.matrix import LeastSquares
from pufferfish.numbers import FloatArray, parse_number
from pufferfish.support import Levels, Support, lattice_of

#: Numbers of bins that are tried.
_NUMBERS = (100, 80, 60, 50, 40, 30, 25, 20, 15, 12, 10, 8, 6, 5, 4, 3, 2)
#: Bins are worth a look where their standard error is below this part of the average share.
_CLEAR = 0.5


def read_bins(support: Support, bins: Any) -> FloatArray:
    """Return as 0 and 1 which value lies in which bin: on an edge in the one above.

    ``bins`` are a number of them, or edges; as text, with commas between edges.
    """
    lattice, names = lattice_of(support), support.names if isinstance(support, Levels) else ()
    if isinstance(bins, str):
        bins = int(bins) if bins.isdecimal() else [edge.strip() for edge in bins.split(",")]
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 1:
            raise InputError(f"bins must be at least 1, but {bins} was given")
        places = [at * int(bins) // (int(lattice.index[-1]) + 1) for at in lattice.index.tolist()]
    else:
        given = list(bins) if np.iterable(bins) else [bins]
        codes = (names.index(edge) if edge in names else edge for edge in given)
        edges = [parse_number(code, "an edge of bins") for code in codes]
        if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
            raise InputError(f"bins are a number or two or more increasing edges, not {bins!r}")
        *lower, last = edges
        places = [bisect_right(lower, v) - 1 if v <= last else -1 for v in lattice.values]
    if max(places) < 0:
        raise InputError(f"no value lies within the bins {bins}")
    return np.asarray(np.equal.outer(places, np.unique([k for k in places if k >= 0])), float)


def offered_bins(support: Support, solve: LeastSquares, rows: float) -> FloatArray:
    """Return the most bins of equal width that stand out of the noise, whatever was drawn."""
    for number in _NUMBERS:
        sets = read_bins(support, number)
        if number < support.size:
            error = solve.error(sets, rows, solve.mu)
            if error is not None and error <= _CLEAR / sets.shape[1]:
                return sets
    return np.zeros((support.size, 0))
