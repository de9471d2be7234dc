# SPDX-License-Identifier: Apache-2.0
"""The five blocks of the paper's table: two simulations, and counts from three public data sets.

The package carries the counts per level with their citations, not the rows of the data sets;
:func:`write_table` writes a table with the same counts.
"""

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from pufferfish.calibration.registry import MechanismName
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.files import write_whole
from pufferfish.numbers import parse_number
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

#: What the paper's table prints, and what this package adds; most noise first.
MECHANISMS: tuple[MechanismName, ...] = ("l1", "wasserstein", "relaxed", "one-sided", "exact")


@dataclass(frozen=True)
class Reported:
    """A range of noise reductions of ``relaxed`` as the paper prints it, in per cent."""

    against: str
    least: str
    most: str


@dataclass(frozen=True, eq=False)
class Block:
    """One block of the paper's table: a prior with one pair, and what was printed for it."""

    name: str
    title: str
    citation: str
    licence: str
    coding: str  # what was decided in counting the levels
    secret: str
    public: str
    pair: tuple[str, str]  # the first secret goes with x, the second with x'
    order: tuple[str, ...]  # the levels in the order of their codes; empty for a simulation
    prior: Prior
    scenario: Scenario
    printed: Mapping[str, tuple[str, ...]]  # mechanism -> one scale for each epsilon
    reported: tuple[Reported, ...]
    notes: Mapping[tuple[str, Fraction], str]  # what is known of a cell that does not agree

    @property
    def rows(self) -> int:
        """The number of rows that were counted; 0 for a simulation."""
        return sum(self.prior.totals) if self.order else 0


def epsilons() -> tuple[Fraction, ...]:
    """Return the epsilons of the paper's table, in its order."""
    return tuple(parse_number(text, "epsilon") for text in _data()["epsilons"])


@lru_cache(maxsize=1)
def blocks() -> tuple[Block, ...]:
    """Return the five blocks, in the order of the paper's table."""
    return tuple(read_block(entry) for entry in _data()["blocks"])


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

    The order of the rows is the same in every file: first a row of each level in the order of
    their codes, then all others, secrets and levels spread evenly.
    """
    chosen = block(name)
    if not chosen.rows:
        tables = listed(b.name for b in blocks() if b.rows)
        raise InputError(
            f"the block {name!r} is given by probabilities and has no rows; the tables are {tables}"
        )
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((chosen.secret, chosen.public))
    writer.writerows(_spread_rows(chosen))
    write_whole(path, text.getvalue().encode(), force=force)
    return chosen.rows


def _spread_rows(chosen: Block) -> list[tuple[str, str]]:
    """Return the rows of a block in an order that spreads secrets and levels evenly."""
    rows = [
        (secret, level)
        for secret in chosen.pair
        for level, count in zip(
            chosen.order, chosen.prior.counts[chosen.prior.row(secret)].tolist(), strict=True
        )
        for _ in range(count)
    ]
    first = [next(k for k, row in enumerate(rows) if row[1] == level) for level in chosen.order]
    taken = set(first)
    # Steps of about the golden section spread any run evenly; one that has no divisor in common
    # with the number of rows meets each row once.
    n = len(rows)
    step = next(s for s in range(round(n * 0.618), 2 * n) if math.gcd(s, n) == 1)
    others = [k for k in (step * i % n for i in range(n)) if k not in taken]
    return [rows[k] for k in (*first, *others)]


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    file = resources.files("pufferfish.paper").joinpath("blocks.json")
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def read_block(entry: Mapping[str, Any]) -> Block:
    """Return a block from its entry in blocks.json."""
    order = tuple(entry.get("order", ()))
    first, second = entry["pair"]
    if order:
        prior = Prior.from_counts(entry["counts"], support=order, order=order)
    else:
        prior = Prior.from_mapping(
            {
                secret: dict(zip(map(str, entry["support"]), masses, strict=True))
                for secret, masses in entry["probabilities"].items()
            }
        )
    texts = {key: entry.get(key, "") for key in ("name", "title", "citation", "licence", "coding")}
    return Block(
        **texts,
        secret=entry["secret"],
        public=entry["public"],
        pair=(first, second),
        order=order,
        prior=prior,
        scenario=Scenario(prior, pairs=[(first, second)]),
        printed={m: tuple(cells) for m, cells in entry["printed"].items()},
        reported=tuple(Reported(**given) for given in entry["reported_reduction"]),
        notes={(n["mechanism"], Fraction(n["epsilon"])): n["text"] for n in entry["notes"]},
    )
