# SPDX-License-Identifier: Apache-2.0
"""The loss in doubles, for searching: fast, unproved."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.loss.problem import LARGEST_GRID, Releases
from pufferfish.priors.scenario import Scenario


@dataclass(frozen=True)
class Attained:
    """Where a loss is attained: secret ``first`` is likelier at that output than ``second``."""

    problem: int
    adversary: int
    first: int
    second: int
    cell: int


class RateLoss:
    """The loss as a function of u = step / theta of further noise on some columns.

    Parameters
    ----------
    scenario : Scenario
    further : int or mapping of int to Fraction
        The column that gets further noise of rate u; or for each of several columns the factor of
        its rate in u (each in steps of its own lattice).
    previous : mapping
        What is released already.
    bits : int
        0: doubles. Otherwise ball arithmetic of that precision, for losses that doubles cannot
        tell from 0; only for small grids.
    limit : int
        Cells that a grid may have.

    Raises
    ------
    GridTooLarge
        If a grid has more cells than the limit.
    """

    def __init__(
        self,
        scenario: Scenario,
        further: int | Mapping[int, Fraction],
        previous: Releases | None = None,
        bits: int = 0,
        limit: int = LARGEST_GRID,
    ) -> None:
        raise NotImplementedError

    def worst(self, u: float) -> tuple[float, list[Attained]]:
        """Return the loss at u > 0 (may be inf), and the worst witnesses, worst first."""
        raise NotImplementedError

    def at(self, witness: Attained, u: float) -> tuple[float, float]:
        """Return the log-ratio at a witness, and its slope in u."""
        raise NotImplementedError
