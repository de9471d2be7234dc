# SPDX-License-Identifier: Apache-2.0
"""The paper's table, computed again: every printed cell beside ours, and two mechanisms more."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.registry import MechanismName
from pufferfish.numbers import show
from pufferfish.paper.blocks import Block, blocks, epsilons

#: What the paper's table prints, and what this package adds; most noise first.
MECHANISMS: tuple[MechanismName, ...] = ("l1", "wasserstein", "relaxed", "one-sided", "exact")


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
        cells += own
        reductions += [_reduction(block, own, against) for against in ("wasserstein", "l1")]
        why += [_why(block, cell) for cell in own if cell.agrees is False]
    agree = [cell.agrees for cell in cells if cell.agrees is not None]
    summary = f"{sum(agree)} of {len(agree)} cells agree"
    return Reproduction(summary, tuple(cells), tuple(reductions), tuple(why))


def _cell(block: Block, k: int, mechanism: MechanismName) -> Cell:
    epsilon = epsilons()[k]
    plan = calibrate(block.scenario, epsilon, mechanism)
    scale = plan.scale or 0.0
    printed = block.printed[mechanism][k] if mechanism in block.printed else None
    rounded = str(Decimal(scale).quantize(Decimal("0.01"), ROUND_HALF_UP))
    return Cell(
        block.name, block.title, epsilon, mechanism, printed, scale, rounded,
        None if printed is None else rounded == printed, plan.loss, plan.certificate.holds,
    )  # fmt: skip


def _reduction(block: Block, cells: Sequence[Cell], against: str) -> Reduction:
    """Return by how many per cent the relaxed scales are below others (theory, section 3)."""
    scales, others = ([c.scale for c in cells if c.mechanism == m] for m in ("relaxed", against))
    percent = tuple(100 * (1 - s / other) for s, other in zip(scales, others, strict=True))
    ends, reported = (min(percent), max(percent)), block.reported.get(against)
    agrees = reported and all(
        abs(end - float(text)) < 10.0 ** -len(text.partition(".")[2])
        for end, text in zip(ends, reported, strict=True)
    )
    return Reduction(block.name, block.title, against, percent, *ends, reported, agrees)


def _why(block: Block, cell: Cell) -> str:
    epsilon = show(cell.epsilon)
    known = block.notes.get(f"{cell.mechanism} {epsilon}", "no reason is known")
    return (
        f"{cell.title}, epsilon {epsilon}, {cell.mechanism}: printed {cell.printed}, computed "
        f"{cell.rounded} ({cell.scale!r}); {known}"
    )
