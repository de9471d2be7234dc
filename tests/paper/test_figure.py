# SPDX-License-Identifier: Apache-2.0
"""The paper's first figure, against definitions in high precision, and its decided signs."""

import csv
import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from definitions import M, comonotone, from_counts, real, sides
from pufferfish import paper
from pufferfish.calibration.coupling import comonotone as coupling_of
from pufferfish.cli.output import jsonable
from pufferfish.errors import InputError
from pufferfish.paper.figure import condition
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from shared_data import require_shared


def write_patients(path: Path, rows: Sequence[tuple[Any, Any]]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("Age", "Other", "Glucose"))
        writer.writerows((age, "x", glucose) for glucose, age in rows)
    return path


def patients(seed: int = 7, number: int = 400) -> list[tuple[Any, Any]]:
    """Invented people: the older ones have somewhat more of it."""
    rng = np.random.default_rng(seed)
    age = rng.integers(21, 70, number)
    # Clipped, so that no value at an end belongs to one group alone.
    glucose = np.clip(np.rint(rng.normal(100, 25, number) + 0.8 * (age - 30)), 70, 140).astype(int)
    return list(zip(glucose.tolist(), age.tolist(), strict=True))


@pytest.fixture
def figure(tmp_path: Path) -> paper.FigureOne:
    return paper.figure_one(write_patients(tmp_path / "p.csv", patients()))


def check_against_definitions(found: paper.FigureOne) -> None:
    first, second = from_counts(dict(zip("ab", found.counts, strict=True))).values()
    cells = comonotone(first, second)
    places = [(x, y) for x, y, _ in cells]
    assert list(zip(found.x, found.x_prime, strict=True)) == places
    assert found.mass == pytest.approx([float(m) for _, _, m in cells], rel=1e-14)
    rows, columns = map(float, sides(cells, found.epsilon))
    assert found.relaxed.scale == pytest.approx(max(rows, columns), rel=1e-9)
    furthest = max(abs(x - y) for x, y in places)
    assert found.strict.scale == pytest.approx(furthest / float(found.epsilon), rel=1e-15)
    limit = M.exp(real(found.epsilon))
    for ours in (found.strict, found.relaxed):
        scale = M.mpf(ours.scale)
        each = [(M.exp(real(abs(x - y)) / scale) - limit) * real(m) for x, y, m in cells]
        sums = dict.fromkeys(sorted({y for _, y in places}), M.mpf(0))
        for (_, y), value in zip(places, each, strict=True):
            sums[y] += value
        assert ours.cells == pytest.approx([float(value) for value in each], abs=1e-14)
        assert ours.sums == pytest.approx([float(value) for value in sums.values()], abs=1e-13)


def test_the_papers_first_figure():
    found = paper.figure_one(require_shared("data", "diabetes.csv"), epsilon=1)
    assert (found.range, found.rows_used, found.rows_set_aside) == ((0, 199), 768, 0)
    assert found.strict.scale == 22.0
    assert math.isclose(found.relaxed.scale, 19.89, abs_tol=0.005)
    assert [claim.holds for claim in found.claims] == [True, True]
    assert 0 in found.strict.cells  # the furthest cell lies at the edge, exactly
    check_against_definitions(found)


def test_the_figure_of_invented_people(figure: paper.FigureOne):
    assert [claim.holds for claim in figure.claims] == [True, True]
    assert figure.rows_used == 400
    assert figure.relaxed.scale < figure.strict.scale
    check_against_definitions(figure)
    data = json.loads(json.dumps(jsonable(figure), allow_nan=False))
    assert len(data["strict"]["cells"]) == len(data["x"]) == len(data["mass"])
    assert len(data["relaxed"]["sums"]) == len(set(data["x_prime"]))


@pytest.mark.parametrize("epsilon", ["0.01", "1/3", 5, 50])
def test_the_figure_at_other_settings(tmp_path: Path, epsilon: Any):
    path = write_patients(tmp_path / "p.csv", patients(3, 60))
    found = paper.figure_one(path, epsilon=epsilon, age="40.5")
    assert found.claims[0].holds
    cells = comonotone(*from_counts(dict(zip("ab", found.counts, strict=True))).values())
    expected = max(float(side) for side in sides(cells, found.epsilon))
    assert found.relaxed.scale == pytest.approx(expected, rel=1e-9)


def test_bins_have_exact_edges(figure: paper.FigureOne):
    people = patients()
    low, high = min(g for g, _ in people), max(g for g, _ in people)
    inner = [low + Fraction(k * (high - low), 100) for k in range(1, 100)]
    slow = [[0] * 100, [0] * 100]
    for glucose, age in people:
        slow[int(age > 29)][bisect_right(inner, glucose)] += 1
    assert figure.counts == slow
    assert figure.range == (low, high)


def test_a_scale_that_is_a_little_too_small_is_caught(figure: paper.FigureOne):
    prior = Prior.from_counts(dict(zip("ab", figure.counts, strict=True)), support=range(100))
    (view,) = Scenario(prior).views()
    coupling = coupling_of(view)
    relaxed, strict = figure.relaxed.scale * (1 - 1e-12), math.nextafter(figure.strict.scale, 0)
    assert max(condition(coupling, relaxed, figure.epsilon).sums) > 0
    assert max(condition(coupling, strict, figure.epsilon).cells) > 0


def test_ties_are_decided(tmp_path: Path):
    """Everybody moves by the same distance: nothing is gained (theory, section 3, (a))."""
    path = write_patients(tmp_path / "p.csv", [(0, 20), (1, 40)])
    found = paper.figure_one(path, epsilon=1)
    assert found.strict.scale == found.relaxed.scale == 99.0
    assert found.strict.cells == found.strict.sums == (0.0,)
    assert [claim.holds for claim in found.claims] == [True, False]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"age": "old"}, "the age must be a number"),
        ({"age": 99}, "no row with Age > 99"),
        ({"age": 2}, "no row with Age <= 2"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, options: dict[str, Any], message: str):
    path = write_patients(tmp_path / "p.csv", patients(number=30))
    with pytest.raises(InputError, match=message):
        paper.figure_one(path, **options)


@pytest.mark.parametrize(
    "text, message",
    [
        ("Glucos,Age\n1,2\n", "no column 'Glucose'.*did you mean 'Glucos'"),
        ("Glucose,Age\n5,30\n5,20\n", "not all of them equal: there are no bins"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        paper.figure_one(path)
    assert "\n" not in str(error.value)
