# SPDX-License-Identifier: Apache-2.0
"""What a channel costs: the distortion c(x, y) of publishing y for x, and the weights of the x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.rationals import parse_number
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Support, lattice_of

#: Costs that are known by name.
NAMED = ("hamming", "squared", "absolute")
ObjectArray = npt.NDArray[np.object_]


def output_alphabet(support: Support, outputs: object) -> Support:
    """Return the alphabet of a channel's outputs.

    Parameters
    ----------
    support : Lattice or Levels
        The alphabet of X.
    outputs : None or int
        None: the same alphabet. K: also K lattice points between every two neighbours, for
        numbers and ordered levels.

    Raises
    ------
    InputError
        If K is no whole number above 0, or the levels have no order.
    """
    if outputs is None:
        return support
    if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:
        raise InputError(
            "finer outputs need a whole number of points between neighbours, at least 1, "
            f"but {outputs!r} was given"
        )
    lattice = lattice_of(support)
    places = lattice.index.tolist()
    fine: set[Fraction] = set()
    for a, b in pairwise(places):
        fine.update(a + Fraction((b - a) * k, outputs + 1) for k in range(outputs + 1))
    fine.add(Fraction(places[-1]))
    denominator = int(np.lcm.reduce([f.denominator for f in fine]))
    index = np.array(sorted(int(f * denominator) for f in fine), dtype=np.int64)
    return Lattice(lattice.step / denominator, lattice.origin * denominator, index)


def widened(outputs: Support, factor: Fraction) -> Support:
    """Return numeric outputs with points c -+ (d / 2) * factor added (theory, section 4)."""
    lattice = lattice_of(outputs)
    low, high = lattice.value(0), lattice.value(lattice.size - 1)
    middle, half = (low + high) / 2, (high - low) / 2
    reach = half * factor
    below = (middle - reach) // lattice.step
    above = -((-(middle + reach)) // lattice.step)
    units = sorted({int(below), int(above), *(lattice.origin + int(k) for k in lattice.index)})
    index = np.array([unit - units[0] for unit in units], dtype=np.int64)
    return Lattice(lattice.step, units[0], index)


def cost_matrix(inputs: Support, outputs: Support, cost: object) -> ObjectArray:
    """Return c(x, y) as exact rationals, shape (n_x, n_y).

    Parameters
    ----------
    inputs, outputs : Lattice or Levels
        The two alphabets.
    cost : str or mapping or matrix
        ``hamming``, ``squared``, ``absolute``, or the user's own: a mapping
        ``{x: {y: cost}}`` by the names of the values, or rows of numbers.

    Raises
    ------
    InputError
        If the cost is unknown, a distance is asked for between levels without an order, or a
        matrix has a wrong shape or a negative entry.
    """
    if isinstance(cost, str):
        return _named(inputs, outputs, cost)
    if isinstance(cost, Mapping):
        names_in = [inputs.name(k) for k in range(inputs.size)]
        names_out = [outputs.name(k) for k in range(outputs.size)]
        rows = {str(key).strip(): row for key, row in cost.items()}
        return _checked(
            [[_entry(rows, x, y) for y in names_out] for x in names_in], inputs, outputs
        )
    return _checked(cost, inputs, outputs)


def _named(inputs: Support, outputs: Support, name: str) -> ObjectArray:
    if name not in NAMED:
        raise InputError(
            f"there is no cost {name!r}{did_you_mean(name, NAMED)}; "
            f"the costs are {listed(NAMED)}, or a matrix"
        )
    if name == "hamming" and not isinstance(inputs, Lattice):
        names = [outputs.name(k) for k in range(outputs.size)]
        rows = [[int(inputs.name(k) != y) for y in names] for k in range(inputs.size)]
        return np.array(rows, dtype=object)
    first, second = lattice_of(inputs), lattice_of(outputs)
    xs, ys = first.values, second.values
    if name == "hamming":
        return np.array([[int(x != y) for y in ys] for x in xs], dtype=object)
    power = 2 if name == "squared" else 1
    return np.array([[abs(x - y) ** power for y in ys] for x in xs], dtype=object)


def _entry(rows: Mapping[str, Any], x: str, y: str) -> Any:
    row = rows.get(x)
    if not isinstance(row, Mapping):
        raise InputError(f"the cost matrix has no row for {x!r}{did_you_mean(x, rows)}")
    entries = {str(key).strip(): value for key, value in row.items()}
    if y not in entries:
        raise InputError(
            f"the row of {x!r} in the cost matrix has no entry for {y!r}{did_you_mean(y, entries)}"
        )
    return entries[y]


def _checked(rows: Any, inputs: Support, outputs: Support) -> ObjectArray:
    listed_rows = [list(row) for row in rows]
    if len(listed_rows) != inputs.size or any(len(row) != outputs.size for row in listed_rows):
        raise InputError(
            f"the cost matrix must have {inputs.size} rows of {outputs.size} numbers, one for "
            "each value and output"
        )
    matrix = np.empty((inputs.size, outputs.size), dtype=object)
    for i, row in enumerate(listed_rows):
        for j, value in enumerate(row):
            entry = parse_number(value, "an entry of the cost matrix")
            if entry < 0:
                raise InputError(f"the cost matrix has the negative entry {value}")
            matrix[i, j] = entry
    return matrix


def weights_of(scenario: Scenario, weights: Sequence[object] | None) -> list[Fraction]:
    """Return mu(x): how much each value counts in the expected cost; sums to 1.

    By default the pooled counts of the secrets in the pairs, over all adversaries; the mean of
    their P_s where there are no counts.

    Raises
    ------
    InputError
        If given weights are of the wrong number, negative, or all 0.
    """
    n = scenario.support.size
    if weights is not None:
        exact = [parse_number(w, "a weight") for w in weights]
        if len(exact) != n or min(exact) < 0 or sum(exact) == 0:
            raise InputError(f"weights must be {n} numbers, none negative, not all 0")
        total = sum(exact)
        return [w / total for w in exact]
    pooled = [Fraction(0)] * n
    counted = all(prior.from_rows for prior in scenario.priors)
    for prior in scenario.priors:
        for secret in scenario.protected:
            row = prior.row(secret)
            unit = Fraction(1) if counted else Fraction(1, prior.totals[row])
            for k, c in enumerate(prior.counts[row].tolist()):
                if c:
                    pooled[k] += int(c) * unit
    total = sum(pooled)
    return [w / total for w in pooled]
