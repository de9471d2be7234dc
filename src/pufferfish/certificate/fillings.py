# SPDX-License-Identifier: Apache-2.0
"""Regions as fillings: whole numbers that are to be distributed over cells with limited room.

Both kinds of region have this form, so that the extreme priors of either are found by filling from
one end of the ranked cells (theory, section 5).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.errors import InputError
from pufferfish.rationals import show
from pufferfish.regions import Box, Concrete
from pufferfish.scenario import Scenario


@dataclass(frozen=True)
class Filling:
    """The priors of one secret's region: ``least <= P <= least + room``, sum P = 1.

    The ball of radius tau around P is the same with ``least`` 0 and ``room`` the masses, 1 - tau of
    which stay, and tau on one cell of choice.

    Attributes
    ----------
    least, room : tuple of int, shape (n,)
        Numerators over ``unit``.
    spread : int
        What is to be distributed over the rooms.
    free : int
        What goes to the best cell on top.
    unit : int
    """

    least: tuple[int, ...]
    room: tuple[int, ...]
    spread: int
    free: int
    unit: int


def checked_fillings(
    scenario: Scenario, regions: Sequence[Concrete], epsilon: Fraction | None
) -> list[list[Filling]]:
    """Return every adversary's fillings, one per protected secret.

    Parameters
    ----------
    scenario : Scenario
        m protected secrets, n cells.
    regions : sequence of Box or Ball
        One per adversary.
    epsilon : Fraction or None
        What the loss is to be compared with.

    Raises
    ------
    InputError
        If epsilon is not above 0, the regions are not of that number and shape, or one holds no
        distribution.
    """
    if epsilon is not None and epsilon <= 0:
        raise InputError(f"epsilon must be above 0, but {show(epsilon)} was given")
    if len(regions) != len(scenario.priors):
        raise InputError(
            f"{len(scenario.priors)} adversaries need as many regions, but {len(regions)} were "
            "given"
        )
    shape = (len(scenario.protected), scenario.support.size)
    fillings = []
    for region in regions:
        rows = list(_fillings(region))
        if any(len(rows) != shape[0] or len(row.room) != shape[1] for row in rows):
            raise InputError(
                f"the regions must have {shape[0]} secrets and {shape[1]} cells each, as the "
                "scenario has"
            )
        for row in rows:
            if min(row.least) < 0 or min(row.room) < 0 or not 0 <= row.spread <= sum(row.room):
                raise InputError("a region holds no distribution")
        fillings.append(rows)
    return fillings


def _fillings(region: Concrete) -> Iterator[Filling]:
    if isinstance(region, Box):
        for lower, upper in zip(region.lower.tolist(), region.upper.tolist(), strict=True):
            room = tuple(b - a for a, b in zip(lower, upper, strict=True))
            rest = region.denominator - sum(lower)
            yield Filling(tuple(lower), room, rest, 0, region.denominator)
    else:
        tau = region.radius
        for masses, total in zip(region.centre.tolist(), region.totals, strict=True):
            room = tuple(int(c) * tau.denominator for c in masses)
            moved = tau.numerator * total
            unit = total * tau.denominator
            yield Filling((0,) * len(room), room, unit - moved, moved, unit)
