# SPDX-License-Identifier: Apache-2.0
"""Priors that are only estimated: the worst of a region enters the linear program by its dual.

Over a region { P : least <= P <= least + room, sum P = 1 } the largest <P, k> starts at the lower
ends and pours what is left, ``spread``, into the cells of the largest k. By duality of that linear
program it is the least value of

    <least, k> + spread * lam + sum_x room_x t_x,      t_x >= k_x - lam,  t_x >= 0,

and the smallest <P, k> the largest value of <least, k> + spread * lam - sum_x room_x t_x with
t_x >= lam - k_x. A ball in total variation is the same with least 0, the masses as room, 1 - tau
to spread, and tau on the best cell of all (theory, section 5). The multipliers lie between the
smallest and the largest k, so none is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from pufferfish.calibration.channel_program import Row
from pufferfish.regions import Box, Concrete
from pufferfish.robust.columns import ordered_pairs
from pufferfish.scenario import Scenario

ZERO = Fraction(0)


@dataclass(frozen=True)
class Filling:
    """One secret's region: ``least``, ``room`` per cell, what to ``spread``, what is ``free``."""

    least: list[Fraction]
    room: list[Fraction]
    spread: Fraction
    free: Fraction


@dataclass
class _Builder:
    """Rows so far, and the number of the next further variable."""

    next: int
    rows: list[Row] = field(default_factory=list)

    def variables(self, count: int) -> range:
        self.next += count
        return range(self.next - count, self.next)

    def at_most_zero(self, columns: list[int], coefficients: list[Fraction]) -> None:
        self.rows.append(Row(columns, coefficients, None, ZERO))


def region_rows(
    scenario: Scenario, regions: Sequence[Concrete], outputs: int, bound: Fraction
) -> tuple[list[Row], int]:
    """Return the privacy constraints for all priors of the regions, and their further variables.

    Parameters
    ----------
    scenario : Scenario
        n values, pairs.
    regions : sequence of Box or Ball
        One per adversary.
    outputs : int
        Number of outputs n_y.
    bound : Fraction
        E with 1 < E <= e^epsilon.

    Returns
    -------
    (list of Row, int)
        About 2 m n n_y rows and variables per adversary, m the number of secrets in the pairs.
    """
    n = scenario.support.size
    pairs = ordered_pairs(scenario)
    builder = _Builder(n * outputs)
    ratio = [Fraction(1), -bound]
    for region in regions:
        fillings = [filling(region, s) for s in range(len(scenario.protected))]
        for y in range(outputs):
            channel = [x * outputs + y for x in range(n)]
            high = [_largest(builder, f, channel) for f in fillings]
            low = [_smallest(builder, f, channel) for f in fillings]
            for i, j in pairs:
                builder.at_most_zero([high[i], low[j]], ratio)
    return builder.rows, builder.next - n * outputs


def filling(region: Concrete, secret: int) -> Filling:
    """Return one secret's region in the form that the dual needs, exactly."""
    if isinstance(region, Box):
        unit = region.denominator
        least = [Fraction(int(a), unit) for a in region.lower[secret]]
        ends = [Fraction(int(b), unit) for b in region.upper[secret]]
        room = [b - a for a, b in zip(least, ends, strict=True)]
        return Filling(least, room, 1 - sum(least, ZERO), ZERO)
    masses = [Fraction(int(c), region.totals[secret]) for c in region.centre[secret]]
    return Filling([ZERO] * len(masses), masses, 1 - region.radius, region.radius)


_EXCESS = [Fraction(1), Fraction(-1), Fraction(-1)]


def _largest(builder: _Builder, filled: Filling, channel: list[int]) -> int:
    """Add a variable that is at least <P, k> for every P of the region; return its number."""
    (high,) = builder.variables(1)
    columns, coefficients = _terms(builder, filled, channel, 1)
    builder.at_most_zero([*columns, high], [*coefficients, Fraction(-1)])
    return high


def _smallest(builder: _Builder, filled: Filling, channel: list[int]) -> int:
    """Add a variable that is at most <P, k> for every P of the region; return its number."""
    (low,) = builder.variables(1)
    columns, coefficients = _terms(builder, filled, channel, -1)
    builder.at_most_zero([*columns, low], [*(-c for c in coefficients), Fraction(1)])
    return low


def _terms(
    builder: _Builder, filled: Filling, channel: list[int], side: int
) -> tuple[list[int], list[Fraction]]:
    """Return the dual's objective as columns and coefficients; ``side`` -1 for the smallest."""
    at = [x for x, a in enumerate(filled.least) if a]
    columns = [channel[x] for x in at]
    coefficients = [filled.least[x] for x in at]
    open_cells = [x for x, r in enumerate(filled.room) if r]
    if filled.spread and open_cells:
        (multiplier,) = builder.variables(1)
        columns.append(multiplier)
        coefficients.append(filled.spread)
        for x, t in zip(open_cells, builder.variables(len(open_cells)), strict=True):
            columns.append(t)
            coefficients.append(side * filled.room[x])
            # side (k_x - multiplier) <= t
            order = [channel[x], multiplier] if side == 1 else [multiplier, channel[x]]
            builder.at_most_zero([*order, t], _EXCESS)
    if filled.free:
        (best,) = builder.variables(1)
        columns.append(best)
        coefficients.append(filled.free)
        for k in channel:
            builder.at_most_zero([k, best] if side == 1 else [best, k], _EXCESS[:2])
    return columns, coefficients
