# SPDX-License-Identifier: Apache-2.0
"""Scales of three data sets, against published ones: under a confidence, and from noisy counts."""

import csv
import gzip
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from noisy_cases import noisy_scenario
from shared_data import require_shared

#: Rows of hours per week // 5, by sex; and how many of them.
HOURS = [
    [70, 165, 259, 412, 831, 456, 741, 1173, 5095, 541, 515, 139, 215, 37, 54, 13, 31, 1, 4, 19],
    [75, 148, 260, 315, 734, 371, 746, 1007, 10740, 1960, 2521, 702, 1304, 240, 311, 70, 151, 19,
     30, 86],
]  # fmt: skip
ROWS = 32561


REFERENCE = json.loads(
    (Path(__file__).parents[1] / "loss" / "betting.json").read_text(encoding="utf-8")
)
#: Of two values shares are bounded, which is better than bets.
PLAIN = [e for e in REFERENCE if e["epsilon1"] is None and len(e["noisy_counts"][0]) > 2]


def counts_of(name: str) -> tuple[list[list[int]], int]:
    """The counts of a data set by secret and value, and its number of rows."""
    if name == "hours":
        return HOURS, ROWS
    (entry,) = (e for e in PLAIN if e["name"] == name)
    return entry["noisy_counts"], entry["rows"]


def test_the_hours_are_those_of_the_file() -> None:
    with gzip.open(require_shared("data", "adult.data.gz"), "rt", encoding="utf-8") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15]
    cells = Counter((row[9], int(row[12]) // 5) for row in rows)
    assert [[cells[s, k] for k in range(20)] for s in ("Female", "Male")] == HOURS
    assert len(rows) == ROWS


@pytest.mark.parametrize(
    "epsilon, published", [("0.1", 13.9), ("0.5", 3.26), ("1", 2.03), ("2", 0.937)]
)
def test_scales_with_a_confidence(epsilon: str, published: float) -> None:
    rows = dict(zip("ab", HOURS, strict=True))
    prior = pf.Prior.from_counts(rows, support=range(20), confidence="0.95")
    assert 0.98 * published < (pf.calibrate(prior, epsilon).scale or 0) <= 1.01 * published


@pytest.mark.parametrize("entry", PLAIN, ids=lambda e: e["name"])
def test_scales_with_a_confidence_are_those_of_the_reference(entry: Any) -> None:
    # Its grid has steps of 2 %. At twice the alpha two of three scales are smaller by more.
    rows = dict(zip("ab", entry["noisy_counts"], strict=True))
    prior = pf.Prior.from_counts(rows, support=range(len(rows["a"])), confidence="0.95")
    scale = pf.calibrate(prior, entry["epsilon2"]).scale or 0
    assert entry["scale"] / 1.02 < scale <= entry["scale"] * 1.005


# Published are medians over the noise, at the best split of epsilon. Noise of 0 in every cell has
# its place in the middle of them, and makes the test the same every time.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, epsilon, share, published",
    [
        ("census_marital_workclass", "0.5", "0.3", 2.0),
        ("census_marital_workclass", "1", "0.3", 1.24),
        ("hours", "0.5", "0.3", 5.68),
        ("hours", "1", "0.3", 3.14),
        ("student_sex_G3", "1", "0.4", 16.0),
        ("student_sex_G3", "2", "0.4", 5.6),
    ],
)
def test_scales_from_noisy_counts(name: str, epsilon: str, share: str, published: float) -> None:
    counts, rows = counts_of(name)
    spent = Fraction(epsilon) * Fraction(share)
    scenario = noisy_scenario(counts, rows, spent, Fraction(19, 20))
    assert (pf.calibrate(scenario, epsilon).scale or 0) <= 1.01 * published
