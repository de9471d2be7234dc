# SPDX-License-Identifier: Apache-2.0
"""The paper's table, computed again: every printed cell beside ours, and two mechanisms more."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.registry import MechanismName
from pufferfish.numbers import show
from pufferfish.paper.blocks import Block, blocks, epsilons

#: What the paper's table prints, and what this package adds; most noise first.
MECHANISMS: tuple[MechanismName, ...] = ("l1", "wasserstein", "relaxed", "one-sided", "exact")
Scales = Mapping[tuple[Fraction, str], Fraction]


@dataclass(frozen=True)
class Cell:
    """One scale of the table: as printed, and as computed with its certified loss."""

    block: str
    title: str
    epsilon: Fraction
    mechanism: str
    printed: str | None  # None where the paper has no such column
    scale: float  # rounded up, in units of the codes of the public value
    rounded: str  # half up, to the two decimals of the paper
    agrees: bool | None  # whether that is what is printed
    loss: float
    certified: bool


@dataclass(frozen=True)
class Reduction:
    """The noise reduction of ``relaxed`` on one block, beside the range that the paper reports."""

    block: str
    title: str
    against: str
    percent: tuple[float, ...]  # one for each epsilon
    least: float
    most: float
    reported: tuple[str, str] | None
    agrees: bool | None  # within a unit of the paper's last digit, which it often cuts


@dataclass(frozen=True)
class Reproduction:
    """The whole table: its cells, the noise reductions, and a line for each cell that disagrees."""

    summary: str
    cells: tuple[Cell, ...]
    reductions: tuple[Reduction, ...]
    why: tuple[str, ...]


def reproduce(chosen: Sequence[Block] | None = None) -> Reproduction:
    """Compute the paper's table of detailed results again, by default all five blocks."""
    cells: list[Cell] = []
    reductions: list[Reduction] = []
    why: list[str] = []
    for block in blocks() if chosen is None else chosen:
        own = [_cell(block, k, m) for k in range(len(epsilons())) for m in MECHANISMS]
        scales = {(c.epsilon, c.mechanism): Fraction(c.scale) for c in own}
        cells += own
        reductions += [_reduction(block, scales, against) for against in ("wasserstein", "l1")]
        why += [_why(block, scales, cell) for cell in own if cell.agrees is False]
    agree = [cell.agrees for cell in cells if cell.agrees is not None]
    summary = f"{sum(agree)} of {len(agree)} cells agree"
    return Reproduction(summary, tuple(cells), tuple(reductions), tuple(why))


def round_half_up(value: Fraction, places: int) -> str:
    """Return a number that is not negative with so many decimals; exact ties go up."""
    units = math.floor(value * 10**places + Fraction(1, 2))
    whole, rest = divmod(units, 10**places)
    return f"{whole}.{rest:0{places}d}"


def _cell(block: Block, k: int, mechanism: MechanismName) -> Cell:
    epsilon = epsilons()[k]
    plan = calibrate(block.scenario, epsilon, mechanism)
    printed = block.printed[mechanism][k] if mechanism in block.printed else None
    scale = plan.scale or 0.0
    rounded = round_half_up(Fraction(scale), 2)
    agrees = None if printed is None else Fraction(rounded) == Fraction(printed)
    return Cell(
        block.name, block.title, epsilon, mechanism, printed, scale, rounded, agrees, plan.loss,
        plan.certificate.holds,
    )  # fmt: skip


def _reduction(block: Block, scales: Scales, against: str) -> Reduction:
    """Return by how many per cent the relaxed scales are below others (theory, section 3)."""
    percent = tuple(
        float(100 * (1 - scales[epsilon, "relaxed"] / scales[epsilon, against]))
        for epsilon in epsilons()
    )
    ends, reported, agrees = (min(percent), max(percent)), block.reported.get(against), None
    if reported is not None:
        agrees = all(
            abs(Fraction(end) - Fraction(text)) < Fraction(1, 10 ** len(text.partition(".")[2]))
            for end, text in zip(ends, reported, strict=True)
        )
    return Reduction(block.name, block.title, against, percent, *ends, reported, agrees)


def _why(block: Block, scales: Scales, cell: Cell) -> str:
    epsilon = show(cell.epsilon)
    line = (
        f"{block.title}, epsilon {epsilon}, {cell.mechanism}: printed {cell.printed}, computed "
        f"{cell.rounded} ({cell.scale!r})"
    )
    if cell.mechanism == "relaxed":
        # One pair under one adversary: its two sides are the larger and the smaller scale.
        names = ("relaxed", "one-sided")
        sides = (round_half_up(scales[cell.epsilon, name], 3) for name in names)
        line += f"; the two sides give {' and '.join(sides)}"
    return f"{line}; {block.notes.get(f'{cell.mechanism} {epsilon}', 'no reason is known')}"
