# SPDX-License-Identifier: Apache-2.0
"""The blocks hold the counts of the data sets, and their tables hold the same counts."""

import csv
import gzip
from collections import Counter
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from pufferfish import paper
from pufferfish.errors import InputError
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from shared_data import require_shared

TABLES = ("student", "census", "bank")


def test_names_rows_and_sources():
    assert tuple(b.name for b in paper.blocks()) == ("sim1", "sim2", *TABLES)
    assert [b.rows for b in paper.blocks()] == [0, 0, 649, 37736, 45211]
    assert all(b.scenario.pairs == (b.pair,) for b in paper.blocks())
    assert paper.epsilons() == tuple(Fraction(k, 10) for k in range(1, 11))
    first = ("2601.06385", "2601.06385", "Cortez", "Becker", "Moro")
    assert all(word in b.citation for b, word in zip(paper.blocks(), first, strict=True))
    assert {paper.block(name).licence for name in TABLES} == {"CC BY 4.0"}


def original_rows(name: str) -> list[tuple[str, str]]:
    """(secret, public) of the rows of the original files, cleaned as the paper's numbers need."""
    if name == "census":
        rows = []
        for part in ("adult.data.gz", "adult.test.gz"):
            with gzip.open(require_shared("data", part), "rt", newline="") as file:
                for fields in csv.reader(file, skipinitialspace=True):
                    if len(fields) == 15 and not (part == "adult.test.gz" and fields[1] == "?"):
                        rows.append((fields[5], fields[1]))
        return rows
    file_name = {"student": "student-por.csv", "bank": "bank-full.csv.gz"}[name]
    opener = gzip.open if file_name.endswith(".gz") else open
    block = paper.block(name)
    with opener(require_shared("data", file_name), "rt", newline="") as file:  # type: ignore[operator]  # gzip.open or open
        return [(r[block.secret], r[block.public]) for r in csv.DictReader(file, delimiter=";")]


def differing(block: paper.Block, rows: list[tuple[str, str]]) -> list[str]:
    """The secrets whose counts are not those of some rows."""
    found = Counter(rows)
    return [
        secret
        for secret in block.pair
        if block.prior.counts[block.prior.row(secret)].tolist()
        != [found[secret, level] for level in block.order]
        or sum(n for (s, _), n in found.items() if s == secret)
        != block.prior.totals[block.prior.row(secret)]
    ]


@pytest.mark.parametrize("name", TABLES)
def test_the_counts_are_those_of_the_data_sets(name: str):
    rows = original_rows(name)
    assert differing(paper.block(name), rows) == []
    entry = msgspec.to_builtins(paper.block(name))
    entry["counts"][entry["pair"][1]][0] += 1
    assert differing(msgspec.convert(entry, paper.Block), rows) == [entry["pair"][1]]


@pytest.mark.parametrize("name", TABLES)
def test_a_written_table_has_the_counts_in_the_order_of_the_levels(name: str, tmp_path: Path):
    block, path = paper.block(name), tmp_path / "table.csv"
    assert paper.write_table(name, path) == block.rows
    prior = Prior.from_table(path, secret=block.secret, public=block.public, order=block.order)
    assert prior.report is not None
    assert (prior.report.rows_read, prior.report.rows_used) == (block.rows, block.rows)
    assert Scenario(prior, pairs=[block.pair]).digest == block.scenario.digest
    with open(path, newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == [block.secret, block.public]
    assert tuple(dict.fromkeys(level for _, level in rows)) == block.order


def test_wrong_blocks_and_targets_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="did you mean 'student'"):
        paper.block("studnet")
    with pytest.raises(InputError, match="has no rows"):
        paper.write_table("sim1", tmp_path / "t.csv")
    path = tmp_path / "t.csv"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        paper.write_table("student", path)
    assert path.read_text() == "mine"
    assert paper.write_table("student", path, force=True) == 649
