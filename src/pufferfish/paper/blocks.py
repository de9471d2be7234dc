# SPDX-License-Identifier: Apache-2.0
"""The five blocks of the paper's table: two simulations, and counts from three public data sets.

The package carries the counts per level with their citations, not the rows of the data sets;
:func:`write_table` writes a table with the same counts.
"""

from fractions import Fraction
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

import msgspec

from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.files import write_whole
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario


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
        tables = listed(b.name for b in blocks() if b.rows)
        raise InputError(
            f"the block {name!r} is given by probabilities and has no rows; the tables are {tables}"
        )
    text = f"{chosen.secret},{chosen.public}\n"
    for k, level in enumerate(chosen.order):
        text += "".join(f"{own},{level}\n" * chosen.counts[own][k] for own in chosen.pair)
    write_whole(path, text.encode(), force=force)
    return chosen.rows
