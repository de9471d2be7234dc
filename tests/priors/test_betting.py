# SPDX-License-Identifier: Apache-2.0
"""Boxes of betting bounds, against the reference values and on simulated tables."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pufferfish.errors import CheckFailed
from pufferfish.priors.ambiguity import UNIT, Counted, NoisyCounts, Region
from pufferfish.priors.betting import box_of_bounds
from pufferfish.priors.scenario import scenario_of_noise
from pufferfish.support import Levels, Product

BOXES = json.loads(Path(__file__).with_name("boxes.json").read_text())


def ends(region: Region | None) -> Any:
    assert region is not None
    least, room = (np.array([x / UNIT for x in side]) for side in (region.least, region.room))
    return least, least + room


@pytest.mark.parametrize("entry", BOXES, ids=lambda e: e["name"])
def test_boxes_are_those_of_the_reference(entry: Any) -> None:
    counts = [tuple(own) for own in entry["noisy_counts"]]
    alpha = Fraction(entry["alpha"]) / (2 * len(counts) * len(counts[0]))
    noise = entry["epsilon1"] and Fraction(entry["epsilon1"])
    boxes = [box_of_bounds(Counted(own, entry["rows"], alpha, noise)) for own in counts]
    if noise:  # the scenario shares alpha among the cells alike
        names = tuple(map(str, range(len(counts))))
        others, level = (0,) * len(counts[0]), 1 - Fraction(entry["alpha"])
        rule = NoisyCounts(names, tuple(counts), others, entry["rows"], noise, level)
        levels = Levels(tuple(f"x{k:02}" for k in range(len(counts[0]))))
        scenario = scenario_of_noise(rule, Product((None,), (levels,)), [names])
        assert list(scenario.sets[0]) == boxes
    for k, box in enumerate(boxes):
        low, high = ends(box)
        assert low == pytest.approx(np.array(entry["lower"][k]), abs=1e-12)
        assert high == pytest.approx(np.array(entry["upper"][k]), abs=1e-12)


def share_of_missed(tables: int, noisy: bool, factor: int = 1) -> float:
    """The share of boxes, of both secrets together, that miss their law, at alpha .2."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(tables):
        n, rows = int(rng.integers(2, 7)), int(np.exp(rng.uniform(np.log(30), np.log(3000))))
        noise = Fraction(1) if noisy else None
        wrong = False
        for law in rng.dirichlet(np.full(n, 0.7), size=2):
            counts = rng.multinomial(rows // 2, law)
            if noisy:
                p = 1 - math.exp(-0.5)
                counts = counts + rng.geometric(p, n) - rng.geometric(p, n)
            alpha = Fraction(factor, 5 * 2 * 2 * n)
            low, high = ends(box_of_bounds(Counted(tuple(counts.tolist()), rows, alpha, noise)))
            wrong |= bool(((law < low) | (law > high)).any())
        missed += wrong
    return missed / tables


@pytest.mark.parametrize("noisy", [False, True])
def test_boxes_hold_as_often_as_they_say(noisy: bool) -> None:
    assert share_of_missed(200, noisy) <= 0.2


def test_a_box_that_noise_left_empty_makes_no_plan() -> None:
    # Two shares of at least .8 each: no distribution has them.
    low = box_of_bounds(Counted((2000, 2000, -1900), 2000, Fraction(1, 100), Fraction(2)))
    assert low is None
    rule = NoisyCounts(
        ("a", "b"), ((2000, 2000, -1900), (1, 2, 3)), (0, 0, 0), 2000, Fraction(2), Fraction(9, 10)
    )
    product = Product((None,), (Levels(("x", "y", "z")),))
    scenario = scenario_of_noise(rule, product, [("a", "b")])
    with pytest.raises(CheckFailed, match="no distribution fits the noisy counts of 'a'"):
        _ = scenario.sets
