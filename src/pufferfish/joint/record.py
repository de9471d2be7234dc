# SPDX-License-Identifier: Apache-2.0
"""What is found out about the loss of several releases together, and the refusals."""

import math
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.errors import CheckFailed, PufferfishError
from pufferfish.rationals import Number, float_up, parse_number


class GridTooLarge(PufferfishError):
    """The product grid of all outputs has too many cells: a safe bound has to do.

    Parameters
    ----------
    cells : int
        Cells of the grid, as far as it was worked out.
    limit : int
        How many there may be.
    """

    def __init__(self, cells: int, limit: int) -> None:
        super().__init__(
            f"the outputs of these releases form a grid of {cells:,} cells or more, but the joint "
            f"loss is computed for at most {limit:,}; a bound can be given"
        )
        self.cells, self.limit = cells, limit


class DoesNotFit(CheckFailed):
    """No further release fits: what is out already uses up epsilon."""


@dataclass(frozen=True)
class JointWitness:
    """Where the joint loss is attained.

    Attributes
    ----------
    outputs : tuple of tuple of str
        For every axis the output of each of its releases, as text.
    pair : (int, int)
        The rows of two secrets; the first is the likelier one there.
    adversary : int
        Position among the adversaries, counted from 0.
    """

    outputs: tuple[tuple[str, ...], ...]
    pair: tuple[int, int]
    adversary: int


@dataclass(frozen=True)
class JointLoss:
    """The loss of several releases together, with what was proved of it.

    Attributes
    ----------
    upper : Fraction or None
        A proven upper bound, exact; None: infinite.
    lower : float
        A proven lower bound, rounded down.
    method : str
        ``none``: nothing was released; ``exact``: decided in whole numbers, but for the
        logarithm; ``ball``: ball arithmetic; ``float-bound``: doubles with a proved error bound;
        each with ``+rational`` where an exact rational bound was smaller still.
    exact : bool
        Whether the loss itself was computed (up to the distance of the bounds), not only a bound.
    witness : JointWitness or None
        Where the loss is attained; None where it is 0 or a bound.
    cells : int
        Cells of the grid that decided.
    """

    upper: Fraction | None
    lower: float
    method: str
    exact: bool = True
    witness: JointWitness | None = None
    cells: int = 0

    @property
    def value(self) -> float:
        """The upper bound as a double, rounded up; may be infinite."""
        return math.inf if self.upper is None else float_up(self.upper)

    def __float__(self) -> float:
        return self.value

    def at_most(self, epsilon: Number) -> bool:
        """Whether the loss was proved to be at most epsilon, compared exactly."""
        return self.upper is not None and self.upper <= parse_number(epsilon, "epsilon")


def least(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    """Return the smaller of two bounds; None is infinite."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)


def bound_of(value: float) -> Fraction | None:
    """Return a double as a bound; None is infinite."""
    return None if math.isinf(value) else Fraction(value)
