# SPDX-License-Identifier: Apache-2.0
"""A floating-point channel becomes one of integers whose privacy is exact.

Rows are integers over 2**bits. A violation v_y = max (Q_i(y) - E Q_j(y)) of output y is cured by
adding the same integer c_y >= v_y / (E - 1) to every row's entry for y: both likelihoods rise by
c_y, so the difference falls by c_y (E - 1). That is a mixture with a constant row, and the least
one (theory, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pufferfish.errors import PufferfishError
from pufferfish.regions import Concrete
from pufferfish.robust.columns import extreme_prior, ordered_pairs
from pufferfish.scenario import Scenario

_ROUNDS = 6


def repaired(
    scenario: Scenario,
    entries: Mapping[tuple[int, int], Fraction],
    shape: tuple[int, int],
    bound: Fraction,
    bits: int,
    regions: Sequence[Concrete] | None = None,
) -> npt.NDArray[np.object_]:
    """Return integers over 2**bits, row-stochastic and private.

    Parameters
    ----------
    scenario : Scenario
    entries : mapping
        (x, y) -> M(y|x), the positive entries of an almost private channel.
    shape : (int, int)
        n_x, n_y.
    bound : Fraction
        E with 1 < E <= e^epsilon.
    bits : int
        Resolution.
    regions : sequence of Box or Ball, optional
        Where the priors may lie, one per adversary; the channel is private for all of them.

    Raises
    ------
    PufferfishError
        If the channel is too far from private to be repaired.
    """
    whole = 1 << bits
    room = 0
    for _ in range(_ROUNDS):
        rows = rounded(entries, shape, whole - room)
        added = _added(scenario, rows, bound, regions)
        total = sum(added)
        if total <= room:
            # What is left of the room goes where mass is added anyway.
            added[int(np.argmax(np.array(added, dtype=object)))] += room - total
            for y, c in enumerate(added):
                if c:
                    rows[:, y] += c
            return rows
        room = 2 * total
        if room > whole // 4:
            break
    raise PufferfishError("the solver's channel is too far from private to be repaired")


def is_private(
    scenario: Scenario,
    rows: npt.NDArray[np.object_],
    bound: Fraction,
    regions: Sequence[Concrete] | None = None,
) -> bool:
    """Whether a channel of integers, with one denominator for all rows, needs no repair."""
    return not any(_added(scenario, rows, bound, regions))


def rounded(
    entries: Mapping[tuple[int, int], Fraction],
    shape: tuple[int, ...],
    whole: int,
    only: Sequence[int] | None = None,
) -> npt.NDArray[np.object_]:
    """Return the entries as integers whose rows sum to ``whole``.

    Parameters
    ----------
    entries : mapping
        (x, y) -> M(y|x).
    shape : (int, int)
    whole : int
    only : sequence of int, optional
        Just these rows; the others are 0.

    Raises
    ------
    PufferfishError
        If a row has no entry above 0.
    """
    rows = np.zeros(shape, dtype=object)
    by_row: dict[int, list[tuple[int, Fraction]]] = {
        x: [] for x in (range(shape[0]) if only is None else only)
    }
    for (x, y), p in entries.items():
        by_row[x].append((y, p))
    for x, row in by_row.items():
        total = sum((p for _, p in row), Fraction(0))
        if total <= 0:
            raise PufferfishError("the solver's channel has an empty row")
        factor = whole / total
        for y, p in row:
            rows[x, y] = int(p * factor)
        largest = max(row, key=lambda pair: pair[1])[0]
        rows[x, largest] += whole - sum(rows[x, y] for y, _ in row)
    return rows


def _added(
    scenario: Scenario,
    rows: npt.NDArray[np.object_],
    bound: Fraction,
    regions: Sequence[Concrete] | None,
) -> list[int]:
    if regions is None:
        return _needed(scenario, rows, bound)
    return _needed_in(regions, scenario, rows, bound)


def _needed(scenario: Scenario, rows: npt.NDArray[np.object_], bound: Fraction) -> list[int]:
    """Return for every output the least c_y >= 0 that cures its violations."""
    n_y = rows.shape[1]
    needed = [0] * n_y
    num, den = bound.numerator, bound.denominator
    used = [np.flatnonzero(rows[:, y]) for y in range(n_y)]
    columns = [rows[at, y] for y, at in enumerate(used)]
    for prior in scenario.priors:
        secrets = scenario.protected
        likelihood: dict[str, list[Fraction]] = {}
        for s in secrets:
            counts = np.array([int(c) for c in prior.counts[prior.row(s)].tolist()], dtype=object)
            total = prior.totals[prior.row(s)]
            likelihood[s] = [
                Fraction(int(np.dot(counts[at], column)), total) if len(at) else Fraction(0)
                for at, column in zip(used, columns, strict=True)
            ]
        for y in range(n_y):
            if scenario.is_all_pairs:
                values = [likelihood[s][y] for s in secrets]
                gaps = [(max(values), min(values))]
            else:
                pairs = [(likelihood[a][y], likelihood[b][y]) for a, b in scenario.pairs]
                gaps = pairs + [(b, a) for a, b in pairs]
            for high, low in gaps:
                violation = den * high - num * low
                if violation > 0:
                    needed[y] = max(needed[y], -(-violation // (num - den)))
    return [int(c) for c in needed]


def _needed_in(
    regions: Sequence[Concrete],
    scenario: Scenario,
    rows: npt.NDArray[np.object_],
    bound: Fraction,
) -> list[int]:
    """Do the same for the worst priors of regions: adding c_y raises every <P, k_y> by c_y."""
    num, den = bound.numerator, bound.denominator
    pairs = ordered_pairs(scenario)
    secrets = sorted({s for pair in pairs for s in pair})
    needed = [0] * rows.shape[1]
    for region in regions:
        for y, column in enumerate(rows.T.tolist()):
            if not any(column):
                continue
            high, low = (
                {
                    s: sum((p * k for p, k in zip(prior, column, strict=True) if k), Fraction(0))
                    for s in secrets
                    for prior in [extreme_prior(region, s, column, largest)]
                }
                for largest in (True, False)
            )
            for i, j in pairs:
                violation = den * high[i] - num * low[j]
                if violation > 0:
                    needed[y] = max(needed[y], math.ceil(violation / (num - den)))
    return needed
