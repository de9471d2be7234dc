# SPDX-License-Identifier: Apache-2.0
"""The five blocks of the paper's table: two simulations, and counts from three public data sets.

The package carries the counts per level with their citations, not the rows of the data sets. A
table with the same counts can be written from them, for a demonstration on real numbers.
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
from types import MappingProxyType
from typing import Any

from pufferfish.atomic import write_whole
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.prior import Prior
from pufferfish.rationals import parse_number
from pufferfish.scenario import Pair, Scenario


@dataclass(frozen=True)
class Reported:
    """A range of noise reductions that the paper reports, in per cent, as it prints them.

    Attributes
    ----------
    against : str
        The mechanism that ``relaxed`` is compared with.
    least, most : str
        Over the epsilons of the table.
    """

    against: str
    least: str
    most: str


@dataclass(frozen=True)
class Note:
    """What is known about a printed cell that does not come out.

    Attributes
    ----------
    mechanism : str
    epsilon : Fraction
    text : str
    """

    mechanism: str
    epsilon: Fraction
    text: str


@dataclass(frozen=True, eq=False)
class Block:
    """One block of the paper's table: a prior with one pair, and what was printed for it.

    Attributes
    ----------
    name, title : str
        The name to ask for it by, and the one for people.
    citation, licence : str
        Where the numbers come from, and on what terms.
    coding : str
        What was decided in counting the levels; may be empty.
    secret, public : str
        Names of the two columns.
    pair : (str, str)
        The first secret goes with x, the second with x'.
    order : tuple of str
        The levels in the order of their codes 0, 1, 2, ...; empty for a simulation.
    prior : Prior
    scenario : Scenario
        The prior with the one pair.
    printed : mapping from mechanism to tuple of str
        The scales as printed, one for each of :func:`epsilons`.
    reported : tuple of Reported
        Noise reductions that the paper's text states.
    notes : tuple of Note
    """

    name: str
    title: str
    citation: str
    licence: str
    coding: str
    secret: str
    public: str
    pair: Pair
    order: tuple[str, ...]
    prior: Prior
    scenario: Scenario
    printed: Mapping[str, tuple[str, ...]]
    reported: tuple[Reported, ...]
    notes: tuple[Note, ...]

    @property
    def rows(self) -> int:
        """Rows of the data set that are counted; 0 for a simulation."""
        return sum(self.prior.totals) if self.prior.from_rows else 0


def epsilons() -> tuple[Fraction, ...]:
    """Return the epsilons of the paper's table, in its order."""
    return tuple(parse_number(text, "epsilon") for text in _data()["epsilons"])


@lru_cache(maxsize=1)
def blocks() -> tuple[Block, ...]:
    """Return the five blocks, in the order of the paper's table."""
    return tuple(_block(entry) for entry in _data()["blocks"])


def block(name: str) -> Block:
    """Return one block: sim1, sim2, student, census or bank.

    Parameters
    ----------
    name : str

    Raises
    ------
    InputError
        If there is no block of that name.
    """
    found = {b.name: b for b in blocks()}
    wanted = str(name).strip()
    if wanted not in found:
        raise InputError(
            f"the paper has no block {wanted!r}{did_you_mean(wanted, found)}; "
            f"the blocks are {listed(found)}"
        )
    return found[wanted]


def write_table(name: str, path: str | Path, *, force: bool = False) -> int:
    """Write a CSV table whose counts are those of a block: columns secret and public.

    The order of the rows carries nothing: it is the same in every file, starts with one row of
    each level in the order of their codes, and then spreads secrets and levels evenly.

    Parameters
    ----------
    name : str
        student, census or bank.
    path : str or Path
        The file, which appears under its name only when it is complete.
    force : bool
        Whether a file of that name is replaced.

    Returns
    -------
    int
        The number of rows written, without the header.

    Raises
    ------
    InputError
        If there is no such block, it is a simulation, or the file cannot be written.
    """
    chosen = block(name)
    if not chosen.rows:
        tables = [b.name for b in blocks() if b.rows]
        raise InputError(
            f"the block {chosen.name!r} is given by probabilities and has no rows; "
            f"the tables are {listed(tables)}"
        )
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((chosen.secret, chosen.public))
    writer.writerows(_spread_rows(chosen))
    write_whole(path, text.getvalue().encode(), force=force)
    return chosen.rows


def _spread_rows(chosen: Block) -> list[tuple[str, str]]:
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
    # Steps of about the golden section of the rows spread any run of them evenly; a step that
    # has no divisor in common with their number meets every row once.
    n = len(rows)
    step = next(s for s in range(round(n * 0.618), 2 * n) if math.gcd(s, n) == 1)
    others = [k for k in (step * i % n for i in range(n)) if k not in taken]
    return [rows[k] for k in (*first, *others)]


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    file = resources.files("pufferfish").joinpath("data", "blocks.json")
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return data


def _block(entry: Mapping[str, Any]) -> Block:
    order = tuple(entry.get("order", ()))
    first, second = entry["pair"]
    if order:
        prior = Prior.from_counts(entry["counts"], support=order, order=order)
    else:
        prior = Prior.from_mapping(
            {
                secret: dict(zip(entry["support"], masses, strict=True))
                for secret, masses in entry["probabilities"].items()
            }
        )
    return Block(
        name=entry["name"],
        title=entry["title"],
        citation=entry["citation"],
        licence=entry["licence"],
        coding=entry.get("coding", ""),
        secret=entry["secret"],
        public=entry["public"],
        pair=(first, second),
        order=order,
        prior=prior,
        scenario=Scenario(prior, pairs=[(first, second)]),
        printed=MappingProxyType({m: tuple(cells) for m, cells in entry["printed"].items()}),
        reported=tuple(Reported(**given) for given in entry["reported_reduction"]),
        notes=tuple(
            Note(note["mechanism"], parse_number(note["epsilon"], "epsilon"), note["text"])
            for note in entry["notes"]
        ),
    )
