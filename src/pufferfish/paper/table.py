# SPDX-License-Identifier: Apache-2.0
"""The paper's table, computed again: every printed cell beside ours, and two mechanisms more."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.registry import MechanismName
from pufferfish.numbers import show
from pufferfish.paper.blocks import MECHANISMS, Block, blocks, epsilons


@dataclass(frozen=True)
class Cell:
    """One scale of the table: as printed, and as computed with its certified loss."""

    block: str
    title: str
    epsilon: Fraction
    mechanism: str
    printed: str | None  # None where the paper has no such column
    scale: float  # rounded up, in units of the codes of the public value
    loss: float
    certified: bool

    @property
    def rounded(self) -> str:
        """The computed scale, rounded half up to the two decimals of the paper."""
        return round_half_up(Fraction(self.scale), 2)

    @property
    def agrees(self) -> bool | None:
        """Whether the rounded scale is the printed one; None where nothing is printed."""
        return None if self.printed is None else Fraction(self.rounded) == Fraction(self.printed)

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as JSON values."""
        more = {"epsilon": float(self.epsilon), "rounded": self.rounded, "agrees": self.agrees}
        return asdict(self) | more


@dataclass(frozen=True)
class Reduction:
    """The noise reduction of ``relaxed`` on one block, beside the range that the paper reports."""

    block: str
    title: str
    against: str
    percent: tuple[float, ...]  # one for each epsilon
    reported_least: str | None
    reported_most: str | None

    @property
    def least(self) -> float:
        """The least reduction over the epsilons, in per cent."""
        return min(self.percent)

    @property
    def most(self) -> float:
        """The largest reduction over the epsilons, in per cent."""
        return max(self.percent)

    @property
    def agrees(self) -> bool | None:
        """Whether both ends are within a unit of the paper's last digit, which it often cuts."""
        if self.reported_least is None or self.reported_most is None:
            return None
        ends = ((self.least, self.reported_least), (self.most, self.reported_most))
        return all(
            abs(Fraction(percent) - Fraction(text)) < Fraction(1, 10 ** len(text.partition(".")[2]))
            for percent, text in ends
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the reduction as JSON values."""
        return asdict(self) | {"least": self.least, "most": self.most, "agrees": self.agrees}


@dataclass(frozen=True)
class Reproduction:
    """The whole table: its cells, the noise reductions, and a line for each cell that disagrees."""

    cells: tuple[Cell, ...]
    reductions: tuple[Reduction, ...]
    why: tuple[str, ...]

    @property
    def disagreements(self) -> tuple[Cell, ...]:
        """The printed cells that the computed ones do not round to."""
        return tuple(cell for cell in self.cells if cell.agrees is False)

    @property
    def summary(self) -> str:
        """The number of printed cells that agree, as one line."""
        printed = [cell.agrees for cell in self.cells if cell.agrees is not None]
        return f"{sum(printed)} of {len(printed)} cells agree"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "summary": self.summary,
            "why": list(self.why),
            "cells": [cell.to_dict() for cell in self.cells],
            "reductions": [reduction.to_dict() for reduction in self.reductions],
        }


def reproduce(chosen: Sequence[Block] | None = None) -> Reproduction:
    """Compute the paper's table of detailed results again, by default all five blocks."""
    cells: list[Cell] = []
    reductions: list[Reduction] = []
    why: list[str] = []
    for block in blocks() if chosen is None else chosen:
        of_block = [
            _cell(block, epsilon, mechanism, block.printed.get(mechanism, ())[k : k + 1])
            for k, epsilon in enumerate(epsilons())
            for mechanism in MECHANISMS
        ]
        scales = {(c.epsilon, c.mechanism): Fraction(c.scale) for c in of_block}
        cells += of_block
        reductions += [_reduction(block, scales, against) for against in ("wasserstein", "l1")]
        why += [_why(block, scales, cell) for cell in of_block if cell.agrees is False]
    return Reproduction(tuple(cells), tuple(reductions), tuple(why))


def round_half_up(value: Fraction, places: int) -> str:
    """Return a number that is not negative with so many decimals; exact ties go up."""
    units = math.floor(value * 10**places + Fraction(1, 2))
    whole, rest = divmod(units, 10**places)
    return f"{whole}.{rest:0{places}d}"


def _cell(
    block: Block, epsilon: Fraction, mechanism: MechanismName, printed: Sequence[str]
) -> Cell:
    plan = calibrate(block.scenario, epsilon, mechanism)
    return Cell(
        block=block.name,
        title=block.title,
        epsilon=epsilon,
        mechanism=mechanism,
        printed=printed[0] if printed else None,
        scale=math.nan if plan.scale is None else plan.scale,
        loss=plan.loss,
        certified=plan.certificate.holds,
    )


def _reduction(
    block: Block, scales: Mapping[tuple[Fraction, str], Fraction], against: str
) -> Reduction:
    """Return by how many per cent the relaxed scales are below others (theory, section 3)."""
    said = next((r for r in block.reported if r.against == against), None)
    percent = tuple(
        float(100 * (1 - scales[epsilon, "relaxed"] / scales[epsilon, against]))
        for epsilon in epsilons()
    )
    ends = (None, None) if said is None else (said.least, said.most)
    return Reduction(block.name, block.title, against, percent, *ends)


def _why(block: Block, scales: Mapping[tuple[Fraction, str], Fraction], cell: Cell) -> str:
    line = (
        f"{block.title}, epsilon {show(cell.epsilon)}, {cell.mechanism}: printed {cell.printed}, "
        f"computed {cell.rounded} ({cell.scale!r})"
    )
    if cell.mechanism == "relaxed":
        # One pair under one adversary: its two sides are the larger and the smaller scale.
        larger, smaller = (
            round_half_up(scales[cell.epsilon, name], 3) for name in ("relaxed", "one-sided")
        )
        line += f"; the two sides give {larger} and {smaller}"
    return f"{line}; {block.notes.get((cell.mechanism, cell.epsilon), 'no reason is known')}"
