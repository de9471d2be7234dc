# SPDX-License-Identifier: Apache-2.0
"""The paper's table, computed again: every printed cell beside ours, and two mechanisms more.

Its five blocks are two simulations, and counts from three public data sets. The package carries the
counts per level with their citations, not the rows of the data sets; :func:`write_table` writes a
table with the same counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

import msgspec

from pufferfish.calibration.calibrate import calibrate
from pufferfish.calibration.registry import MechanismName
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.files import write_whole
from pufferfish.numbers import show
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

#: What the paper's table prints, and what this package adds; most noise first.
MECHANISMS: tuple[MechanismName, ...] = ("l1", "wasserstein", "relaxed", "one-sided", "exact")


class Block(msgspec.Struct, frozen=True, dict=True):
    """One block of the paper's table: a prior with one pair, and what was printed for it."""

    name: str
    title: str
    citation: str
    licence: str
    secret: str
    public: str
    pair: tuple[str, str]  # the first secret goes with x, the second with x'
    printed: dict[str, tuple[str, ...]]  # mechanism -> one scale for each epsilon
    reported: dict[str, tuple[str, str]]  # least and largest reduction of relaxed against others
    notes: dict[str, str]  # what is known of a cell ("relaxed 0.2") that does not agree
    coding: str = ""  # what was decided in counting the levels
    order: tuple[str, ...] = ()  # the levels in the order of their codes; empty for a simulation
    counts: dict[str, list[int]] = {}
    support: tuple[str, ...] = ()
    probabilities: dict[str, list[str]] = {}

    @cached_property
    def prior(self) -> Prior:
        """The prior of both secrets."""
        if self.order:
            return Prior.from_counts(self.counts, support=self.order, order=self.order)
        return Prior.from_mapping(
            {s: dict(zip(self.support, row, strict=True)) for s, row in self.probabilities.items()}
        )

    @cached_property
    def scenario(self) -> Scenario:
        """The prior with the pair."""
        return Scenario(self.prior, pairs=[self.pair])

    @property
    def rows(self) -> int:
        """The number of rows that were counted; 0 for a simulation."""
        return sum(map(sum, self.counts.values()))


def epsilons() -> tuple[Fraction, ...]:
    """Return the epsilons of the paper's table, in its order."""
    return tuple(Fraction(k, 10) for k in range(1, 11))


@cache
def blocks() -> tuple[Block, ...]:
    """Return the five blocks, in the order of the paper's table."""
    text = resources.files("pufferfish.paper").joinpath("blocks.json").read_bytes()
    return msgspec.convert(msgspec.json.decode(text)["blocks"], tuple[Block, ...])


def block(name: str) -> Block:
    """Return one block: sim1, sim2, student, census or bank."""
    found = {b.name: b for b in blocks()}
    if name not in found:
        raise InputError(
            f"the paper has no block {name!r}{did_you_mean(name, found)}; "
            f"the blocks are {listed(found)}"
        )
    return found[name]


def write_table(name: str, path: str | Path, *, force: bool = False) -> int:
    """Write a CSV table with the counts of student, bank or census; return its number of rows.

    Rows come by level, in the order of their codes, and by secret.
    """
    chosen = block(name)
    if not chosen.rows:
        raise InputError(f"the block {name!r} is given by probabilities, and has no rows")
    text = f"{chosen.secret},{chosen.public}\n"
    for k, level in enumerate(chosen.order):
        text += "".join(f"{own},{level}\n" * chosen.counts[own][k] for own in chosen.pair)
    write_whole(path, text.encode(), force=force)
    return chosen.rows


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
    reported = block.reported.get(against)
    agrees = reported and all(
        abs(end - float(text)) < 10.0 ** -len(text.partition(".")[2])
        for end, text in zip((min(percent), max(percent)), reported, strict=True)
    )
    return Reduction(block.name, block.title, against, percent, reported, agrees)


def _why(block: Block, cell: Cell) -> str:
    epsilon = show(cell.epsilon)
    known = block.notes.get(f"{cell.mechanism} {epsilon}", "no reason is known")
    return (
        f"{cell.title}, epsilon {epsilon}, {cell.mechanism}: printed {cell.printed}, computed "
        f"{cell.rounded} ({cell.scale!r}); {known}"
    )
