# SPDX-License-Identifier: Apache-2.0
"""The paper's table: 149 of 150 cells agree, and every computed scale is a known one."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from pufferfish import paper
from pufferfish.paper.table import MECHANISMS


@pytest.fixture(scope="module")
def reproduction() -> paper.Reproduction:
    return paper.reproduce()


def entry_of(name: str) -> dict[str, Any]:
    """A copy of what the package carries for one block, to be changed."""
    return dict(msgspec.to_builtins(paper.block(name)))


def read_block(entry: dict[str, Any]) -> paper.Block:
    return msgspec.convert(entry, paper.Block)


def test_149_of_150_cells_agree(reproduction: paper.Reproduction):
    assert reproduction.summary == "149 of 150 cells agree"
    (cell,) = [cell for cell in reproduction.cells if cell.agrees is False]
    assert (cell.block, cell.epsilon, cell.mechanism) == ("sim1", Fraction("0.2"), "relaxed")
    assert (cell.printed, cell.rounded) == ("0.54", "0.53")
    (why,) = reproduction.why
    assert "the two sides give 0.533 and 0.523" in why
    assert "not rounded" in why


def test_every_cell_is_there_and_certified(reproduction: paper.Reproduction):
    assert len(reproduction.cells) == 250
    assert tuple(cell.mechanism for cell in reproduction.cells[:5]) == MECHANISMS
    assert sum(cell.printed is not None for cell in reproduction.cells) == 150
    for cell in reproduction.cells:
        assert cell.certified
        assert Fraction(cell.loss) <= cell.epsilon or cell.loss == float(cell.epsilon)


def test_a_changed_block_disagrees():
    entry = entry_of("student")
    assert paper.reproduce([read_block(entry)]).summary == "30 of 30 cells agree"
    entry["counts"]["no"] = [31, 38]
    changed = paper.reproduce([read_block(entry)])
    assert len(changed.why) == sum(cell.agrees is False for cell in changed.cells) > 0
    assert all("no reason is known" in why for why in changed.why)


# What the paper reports, at epsilon 0.1 and 1.
REDUCTIONS = {
    ("sim1", "wasserstein"): (92.2, 73.5),
    ("sim2", "wasserstein"): (66.7, 66.7),
    ("student", "wasserstein"): (66, 47),
    ("census", "wasserstein"): (50, 43),
    ("census", "l1"): (88, 86),
    ("bank", "wasserstein"): (75, 54),
    ("bank", "l1"): (87, 77),
}


def test_the_noise_reductions_are_the_reported_ones(reproduction: paper.Reproduction):
    found = {(r.block, r.against): r for r in reproduction.reductions}
    assert len(found) == 10
    assert {key for key, r in found.items() if r.agrees is not None} == set(REDUCTIONS)
    for key, (at_least, at_most) in REDUCTIONS.items():
        assert found[key].agrees
        assert abs(found[key].percent[0] - at_least) < 0.6
        assert abs(found[key].percent[-1] - at_most) < 0.6
