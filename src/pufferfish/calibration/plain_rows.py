# SPDX-License-Identifier: Apache-2.0
"""Rows that need no solver: the cheapest of each value alone, and forms that are always private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from pufferfish.calibration.conditions import Conditions
from pufferfish.calibration.costs import ObjectArray
from pufferfish.mechanisms.channel import same_places
from pufferfish.support import Support, lattice_of

Rows = list[dict[int, Fraction]]
Entries = Mapping[tuple[int, int], Fraction]


def entries_of(rows: Rows) -> Entries:
    """Return (x, y) -> M(y|x) for the positive entries of rows."""
    return {(x, y): p for x, row in enumerate(rows) for y, p in row.items()}


def cheapest_rows(
    conditions: Conditions,
    inputs: Support,
    outputs: Support,
    costs: ObjectArray,
    mu: Sequence[Fraction],
) -> Rows:
    """Return the cheapest row of each value that meets the conditions, were privacy no matter."""
    same = same_places(inputs, outputs)
    means: list[tuple[Sequence[Fraction], Fraction] | None] = [None] * len(same)
    if conditions.unbiased:
        ys = lattice_of(outputs).values
        means = [(ys, value) for value in lattice_of(inputs).values]
    rows = [
        cheapest_row(row, kept, conditions.min_keep, mean)
        for row, kept, mean in zip(costs.tolist(), same, means, strict=True)
    ]
    if conditions.only_unchanged:
        for x, (w, kept) in enumerate(zip(mu, same, strict=True)):
            if w and kept is not None:
                rows[x] = {kept: Fraction(1)}
    return rows


def simple_rows(
    conditions: Conditions,
    inputs: Support,
    outputs: Support,
    costs: ObjectArray,
    mu: Sequence[Fraction],
) -> Rows | None:
    """Return rows that are private by their form alone, or None where none are known.

    All the same; for an unbiased channel the two outermost outputs, which are far enough apart for
    that (theory, section 4).
    """
    if conditions.min_keep is not None or conditions.only_unchanged:
        return None
    if conditions.unbiased:
        ys, last = lattice_of(outputs).values, outputs.size - 1
        shares = [(v - ys[0]) / (ys[-1] - ys[0]) for v in lattice_of(inputs).values]
        return [{0: 1 - p, last: p} for p in shares]
    if conditions.invariant:
        same = same_places(inputs, outputs)
        row = {y: w for y, w in zip(same, mu, strict=True) if y is not None and w}
    else:
        spent = [
            sum((w * c for w, c in zip(mu, column, strict=True)), Fraction(0))
            for column in costs.T.tolist()
        ]
        row = {min(range(len(spent)), key=spent.__getitem__): Fraction(1)}
    return [row] * inputs.size


def cheapest_row(
    costs: Sequence[Fraction],
    kept: int | None,
    least_kept: Fraction | None = None,
    mean: tuple[Sequence[Fraction], Fraction] | None = None,
) -> dict[int, Fraction]:
    """Return the cheapest distribution over the outputs of one value, where privacy is no matter.

    Parameters
    ----------
    costs : sequence of numbers, shape (n_y,)
        c(x, y) of one x.
    kept : int or None
        The output that equals x; taken wherever nothing is cheaper.
    least_kept : Fraction, optional
        Its least probability.
    mean : (outputs, value), optional
        The expected output must be this value, which must not lie outside the outputs.

    Returns
    -------
    dict of int to Fraction
        The positive probabilities.
    """
    least = min(costs)
    best = kept if kept is not None and costs[kept] == least else costs.index(least)
    rest = {best: Fraction(1)}
    if mean is not None and (kept is None or best != kept):
        rest = _cheapest_of_mean(costs, *mean)
    share = Fraction(0) if least_kept is None or kept is None else least_kept
    row = {y: (1 - share) * p for y, p in rest.items()}
    if share and kept is not None:
        row[kept] = row.get(kept, Fraction(0)) + share
    return {y: p for y, p in row.items() if p}


def _cheapest_of_mean(
    costs: Sequence[Fraction], outputs: Sequence[Fraction], value: Fraction
) -> dict[int, Fraction]:
    """Return the cheapest of all mixtures of at most two outputs: those are the vertices."""
    found: tuple[Fraction, dict[int, Fraction]] | None = None
    for a, low in enumerate(outputs):
        for b, high in enumerate(outputs):
            if low == high == value or low < value < high:
                p = Fraction(1) if a == b else (high - value) / (high - low)
                price = p * costs[a] + (1 - p) * costs[b]
                if found is None or price < found[0]:
                    found = price, ({a: p} if a == b else {a: p, b: 1 - p})
    assert found is not None  # the value lies among the outputs
    return found[1]
