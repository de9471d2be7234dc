# SPDX-License-Identifier: Apache-2.0
"""The paper's table, computed again: every printed cell beside ours, and two mechanisms more."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from pufferfish.paper.sources import Block, blocks, epsilons
from pufferfish.rationals import show

#: The columns, weakest mechanism first; the paper prints the first three.
MECHANISMS = ("l1", "wasserstein", "relaxed", "one-sided", "exact")
#: Digits after the point in the paper's table.
_PLACES = 2


@dataclass(frozen=True)
class Cell:
    """One scale of the table.

    Attributes
    ----------
    block : str
    epsilon : Fraction
    mechanism : str
    printed : str or None
        What the paper prints; None where it has no such column.
    scale : float
        The computed scale, rounded up; in units of the codes of the public value.
    loss : float
        Certified upper bound of the loss at that scale.
    certified : bool
        Whether the certificate shows that the loss is within epsilon.
    """

    block: str
    epsilon: Fraction
    mechanism: str
    printed: str | None
    scale: float
    loss: float
    certified: bool

    @property
    def rounded(self) -> str:
        """The computed scale, rounded half up to the paper's two decimals."""
        return round_half_up(Fraction(self.scale), _PLACES)

    @property
    def agrees(self) -> bool | None:
        """Whether the rounded scale is the printed one; None where nothing is printed."""
        if self.printed is None:
            return None
        return Fraction(self.rounded) == Fraction(self.printed)

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as JSON values; infinity is the string "inf"."""
        return {
            "block": self.block,
            "epsilon": float(self.epsilon),
            "mechanism": self.mechanism,
            "printed": self.printed,
            "rounded": self.rounded,
            "scale": self.scale,
            "loss": self.loss if math.isfinite(self.loss) else "inf",
            "certified": self.certified,
            "agrees": self.agrees,
        }


@dataclass(frozen=True)
class Row:
    """All mechanisms on one block at one epsilon.

    Attributes
    ----------
    block, title : str
    epsilon : Fraction
    cells : mapping from mechanism to Cell
        In the order of :data:`MECHANISMS`.
    """

    block: str
    title: str
    epsilon: Fraction
    cells: Mapping[str, Cell]

    def reduction(self, mechanism: str = "relaxed", against: str = "wasserstein") -> float:
        """Return by how many per cent a mechanism's scale is below another one's.

        Notes
        -----
        Source: the paper's Delta = theta_1 - theta, here in per cent of theta_1; theory,
        section 3.
        """
        theta_1 = Fraction(self.cells[against].scale)
        if theta_1 == 0:
            return 0.0
        return float(100 * (1 - Fraction(self.cells[mechanism].scale) / theta_1))


@dataclass(frozen=True)
class Reduction:
    """The noise reduction of ``relaxed`` on one block, beside what the paper reports.

    Attributes
    ----------
    block, title : str
    against : str
        The mechanism that it is compared with.
    by_epsilon : tuple of (Fraction, float)
        The reduction at every epsilon, in per cent.
    reported_least, reported_most : str or None
        The range as the paper prints it; None where it gives none.
    """

    block: str
    title: str
    against: str
    by_epsilon: tuple[tuple[Fraction, float], ...]
    reported_least: str | None
    reported_most: str | None

    @property
    def least(self) -> float:
        """The least reduction over the epsilons, in per cent."""
        return min(percent for _, percent in self.by_epsilon)

    @property
    def most(self) -> float:
        """The largest reduction over the epsilons, in per cent."""
        return max(percent for _, percent in self.by_epsilon)

    @property
    def agrees(self) -> bool | None:
        """Whether both ends are within one unit of the last digit that the paper prints.

        One unit and not half: the paper cuts some of these digits off instead of rounding.
        """
        if self.reported_least is None or self.reported_most is None:
            return None
        return _near(self.least, self.reported_least) and _near(self.most, self.reported_most)

    def to_dict(self) -> dict[str, Any]:
        """Return the reduction as JSON values."""
        return {
            "block": self.block,
            "mechanism": "relaxed",
            "against": self.against,
            "percent": [percent for _, percent in self.by_epsilon],
            "least": self.least,
            "most": self.most,
            "reported_least": self.reported_least,
            "reported_most": self.reported_most,
            "agrees": self.agrees,
        }


@dataclass(frozen=True)
class Reproduction:
    """The whole table.

    Attributes
    ----------
    rows : tuple of Row
        Block by block, epsilon by epsilon.
    reductions : tuple of Reduction
        Against wasserstein and against l1, for every block.
    why : tuple of str
        For every cell that does not agree, one line that says which and why.
    """

    rows: tuple[Row, ...]
    reductions: tuple[Reduction, ...]
    why: tuple[str, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, row by row."""
        return tuple(cell for row in self.rows for cell in row.cells.values())

    @property
    def disagreements(self) -> tuple[Cell, ...]:
        """The printed cells that do not come out."""
        return tuple(cell for cell in self.cells if cell.agrees is False)

    @property
    def summary(self) -> str:
        """How many of the printed cells agree, as one line."""
        printed = [cell for cell in self.cells if cell.agrees is not None]
        return f"{sum(bool(c.agrees) for c in printed)} of {len(printed)} cells agree"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "summary": self.summary,
            "why": list(self.why),
            "cells": [cell.to_dict() for cell in self.cells],
            "reductions": [reduction.to_dict() for reduction in self.reductions],
        }


def reproduce(chosen: Sequence[Block] | None = None) -> Reproduction:
    """Compute the paper's table of detailed results again.

    Parameters
    ----------
    chosen : sequence of Block, optional
        The blocks; by default all five.

    Returns
    -------
    Reproduction
        Every block at ten epsilons, the three printed mechanisms and ``one-sided`` and ``exact``,
        each with its certified loss.

    Notes
    -----
    Source: the paper's table of detailed results; theory, section 3.
    """
    taken = blocks() if chosen is None else tuple(chosen)
    rows: list[Row] = []
    reductions: list[Reduction] = []
    why: list[str] = []
    for block in taken:
        of_block = [_row(block, k, epsilon) for k, epsilon in enumerate(epsilons())]
        rows += of_block
        reductions += [_reduction(block, of_block, against) for against in ("wasserstein", "l1")]
        for row in of_block:
            why += [_why(block, row, c) for c in row.cells.values() if c.agrees is False]
    return Reproduction(tuple(rows), tuple(reductions), tuple(why))


def round_half_up(value: Fraction, places: int) -> str:
    """Return a number that is not negative with so many decimals; exact ties go up."""
    units = math.floor(value * 10**places + Fraction(1, 2))
    whole, rest = divmod(units, 10**places)
    return f"{whole}.{rest:0{places}d}"


def _row(block: Block, k: int, epsilon: Fraction) -> Row:
    from pufferfish.calibration import calibrate

    cells = {}
    for mechanism in MECHANISMS:
        plan = calibrate(block.scenario, epsilon, mechanism)
        scale = plan.scale
        assert scale is not None  # these mechanisms add noise
        printed = block.printed[mechanism][k] if mechanism in block.printed else None
        cells[mechanism] = Cell(
            block.name, epsilon, mechanism, printed, scale, plan.loss, plan.certificate.holds
        )
    return Row(block.name, block.title, epsilon, MappingProxyType(cells))


def _reduction(block: Block, rows: Sequence[Row], against: str) -> Reduction:
    reported = next((r for r in block.reported if r.against == against), None)
    return Reduction(
        block.name,
        block.title,
        against,
        tuple((row.epsilon, row.reduction(against=against)) for row in rows),
        reported.least if reported else None,
        reported.most if reported else None,
    )


def _why(block: Block, row: Row, cell: Cell) -> str:
    line = (
        f"{block.title}, epsilon {show(cell.epsilon)}, {cell.mechanism}: printed {cell.printed}, "
        f"computed {cell.rounded} ({cell.scale!r})"
    )
    if cell.mechanism == "relaxed":
        # One pair under one adversary: its two sides are the larger and the smaller scale.
        sides = [Fraction(row.cells[name].scale) for name in ("relaxed", "one-sided")]
        larger, smaller = (round_half_up(side, 3) for side in sides)
        line += f"; the two sides give {larger} and {smaller}"
    known = [
        note.text
        for note in block.notes
        if (note.mechanism, note.epsilon) == (cell.mechanism, cell.epsilon)
    ]
    return "; ".join([line, *(known or ["no reason is known"])])


def _near(percent: float, reported: str) -> bool:
    unit = Fraction(1, 10 ** len(reported.partition(".")[2]))
    return abs(Fraction(percent) - Fraction(reported)) < unit
