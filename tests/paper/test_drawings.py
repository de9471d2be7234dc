# SPDX-License-Identifier: Apache-2.0
"""The paper's figures: what is drawn is the table, and the claims are checked."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cli_runner import run
from pufferfish.errors import InputError
from pufferfish.paper import drawings
from pufferfish.paper.figure import figure_one
from pufferfish.paper.table import Reproduction, reproduce


@pytest.fixture(scope="module")
def found() -> Reproduction:
    return reproduce()


def test_scales_are_those_of_the_table(found: Reproduction) -> None:
    titles = list(dict.fromkeys(cell.title for cell in found.cells))
    figure, _ = drawings._scales(found, titles)
    drawn = {
        (axes.get_title(loc="left"), line.get_label(), epsilon): scale
        for axes in figure.axes
        for line in axes.lines
        for epsilon, scale in line.get_xydata().tolist()
    }
    assert drawn == {(c.title, c.mechanism, float(c.epsilon)): c.scale for c in found.cells}
    assert len(drawn) == len(found.cells) == sum(len(line.get_xdata()) for axes in figure.axes
                                                 for line in axes.lines)  # fmt: skip


def test_a_claim_that_fails_is_seen(found: Reproduction, tmp_path: Path) -> None:
    claims = [c for own in drawings.draw(tmp_path, found).values() for c in own]
    assert len(claims) == 12
    assert all(claim.holds for claim in claims)
    worse = tuple(
        replace(c, scale=100.0) if (c.block, c.mechanism) == ("bank", "relaxed") else c
        for c in found.cells
    )
    changed = replace(found, cells=worse)
    again = drawings.draw(tmp_path, changed, force=True)
    assert [c.found for own in again.values() for c in own if not c.holds] == ["at 0 of 10"]
    with pytest.raises(InputError, match="exists"):
        drawings.draw(tmp_path, found)


def test_the_first_figure(tmp_path: Path, found: Reproduction) -> None:
    path = tmp_path / "d.csv"
    rows = [(80 + 13 * i * i % 97 + i * 7 % 49, 21 + i * 7 % 49) for i in range(300)]
    path.write_text("Glucose,Age\n" + "".join(f"{g},{a}\n" for g, a in rows))
    one = figure_one(path)
    figure, _ = drawings._condition(one)
    for axes, own in zip(figure.axes, (one.strict, one.relaxed), strict=True):
        drawn: dict[Any, bool] = {}
        for marks, above in zip(axes.collections, (False, True), strict=True):
            drawn |= {tuple(map(int, place)): above for place in marks.get_offsets()}
        # I is above 0 where |x - x'| / scale is above epsilon, and no mass is 0.
        cells = zip(one.x, one.x_prime, strict=True)
        edge = Fraction(own.scale) * one.epsilon
        assert drawn == {(x, y): abs(x - y) > edge for x, y in cells}
        assert any(drawn.values()) == (own is one.relaxed)
    made = drawings.draw(tmp_path / "new" / "folder", found, one)
    assert [Path(name).name for name in made] == [
        "condition.svg", "simulations.svg", "data-sets.svg",
    ]  # fmt: skip
    assert all(Path(name).read_text().startswith("<?xml") for name in made)


def test_by_the_command_line(tmp_path: Path) -> None:
    done = run("reproduce", "--figures", str(tmp_path / "figures"))
    assert done.status == 0, done.err
    assert done.out.count("holds: ") == 12
    assert f"{tmp_path / 'figures' / 'data-sets.svg'}:" in done.out
    again = run("reproduce", "--figures", str(tmp_path / "figures"))
    assert again.status == 2
    assert "exists" in again.err
    told = run("reproduce", "--figures", str(tmp_path / "figures"), "--force", "--format", "json")
    assert [claim["holds"] for own in told.data["figures"].values() for claim in own] == [True] * 12
