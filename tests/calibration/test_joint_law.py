# SPDX-License-Identifier: Apache-2.0
"""What a public plan and a released value tell together: all tables of up to five rows.

The package counts each table; the noise has the sampler's own law, computed and not sampled.
"""

import itertools
import json
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import pufferfish as pf
from noisy_cases import log_masses, noisy_scenario
from pufferfish.mechanisms.laplace import DiscreteLaplace

SPENT, LEFT, ALPHA = Fraction(6), Fraction(1), Fraction(19, 20)
SECRETS, ATOMS = ("a", "b", "other"), 3
CELLS = tuple(itertools.product(SECRETS, range(ATOMS)))
#: Of a row with the secret a, and with b.
LAW = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
#: Noise is looked up so far from 0.
REACH = 80

Table = tuple[int, ...]  # cells of its rows, sorted
Floats = npt.NDArray[np.float64]


class Noise:
    """Stands for the noise: it is what a test says, and what would be drawn is remembered."""

    def __init__(self) -> None:
        self.laws: set[DiscreteLaplace] = set()
        self.drawn: Any = 0

    def __call__(self, law: DiscreteLaplace, size: int, entropy: Any = None) -> Any:
        self.laws.add(law)
        return np.zeros(size, dtype=np.int64) + self.drawn


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> Noise:
    stand_in = Noise()
    monkeypatch.setattr(
        DiscreteLaplace, "noise", lambda law, size, entropy=None: stand_in(law, size)
    )
    return stand_in


def tables_of(rows: int) -> Iterator[Table]:
    """All tables of so many rows, but for their order."""
    return itertools.combinations_with_replacement(range(len(CELLS)), rows)


def scenario_of(table: Table, epsilon: Fraction = SPENT) -> pf.Scenario:
    """The noisy counts of a table."""
    frame = pd.DataFrame([CELLS[k] for k in table], columns=["s", "x"])
    return pf.noisy_counts(
        frame, epsilon, secret="s", public="x", pairs=[("a", "b")], support=range(ATOMS)
    )


def cells_of(scenario: pf.Scenario) -> Floats:
    """The counts of all cells, also of rows of other secrets, as one vector."""
    assert scenario.noisy is not None
    return np.ravel([*scenario.noisy.counts, scenario.noisy.others])


def kernel_of(plan: pf.Plan) -> Floats:
    """k_y by value and output, but for a constant."""
    if plan.channel is not None:
        matrix: Floats = plan.channel.matrix[:, plan.channel.matrix.any(axis=0)]
        return matrix
    assert plan.scale is not None
    return np.exp(-np.abs(np.arange(ATOMS)[:, None] - np.arange(-3, ATOMS + 3)) / plan.scale)


def chances(masses: Floats, apart: Any) -> Floats:
    """Probabilities of the noises ``apart``, by table and cell, but for a common factor."""
    logs = masses[apart + REACH].sum(axis=-1)
    return np.exp(logs - logs.max())


# Plan and release together ------------------------------------------------------------------------


def largest_ratio(noise: Noise, rows: int, mechanism: Any, best_for: Any, plans: int) -> float:
    """The largest |ln| of Pr(noisy counts, y) under both secrets of a row, its law being covered.

    Over all secrets and values of the other rows, which are known; over some noisy counts, each
    with the plan that it makes; and over all outputs.
    """
    place, centres = {}, []
    for number, table in enumerate(tables_of(rows)):
        scenario = scenario_of(table)
        assert scenario.noisy is not None
        assert (scenario.noisy.rows, scenario.noisy.secrets) == (rows, ("a", "b"))
        place[table] = number
        centres.append(cells_of(scenario))
    (law,) = noise.laws
    masses, counts = log_masses(law, REACH), np.array(centres)
    at = np.array([
        [[place[tuple(sorted((*others, ATOMS * s + x)))] for x in range(ATOMS)] for s in (0, 1)]
        for others in tables_of(rows - 1)
    ])  # fmt: skip
    rng, worst, below, covered = np.random.default_rng(rows), 0.0, 0, 0
    for number in range(plans):
        # Much is known of both, or nothing of b: then any row of b is as unlikely as can be.
        few = (10, 40) if number % 2 else (-4, 1)
        low, high = np.transpose([(10, 40), few, (-3, 5)])[..., None]
        noisy = rng.integers(low, high, (3, ATOMS))
        scenario = noisy_scenario(noisy[:2], rows, SPENT, ALPHA, noisy[2].tolist())
        plan = pf.calibrate(scenario, SPENT + LEFT, mechanism, best_for=best_for)
        kernel = kernel_of(plan)
        below += plan.scale is None or plan.scale < 2 / float(LEFT)
        likelihood = LAW @ kernel
        if np.abs(np.log(likelihood[0] / likelihood[1])).max() > float(LEFT):
            continue
        covered += 1
        chance = chances(masses, noisy.ravel() - counts)[at]
        joint = np.einsum("osx,sx,xy->soy", chance, LAW, kernel)
        worst = max(worst, float(np.abs(np.log(joint[0] / joint[1])).max()))
    assert covered > 0
    assert below > 0, "scales below the range over epsilon"
    return worst


@pytest.mark.parametrize(
    "rows", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 4, 5))]
)
@pytest.mark.parametrize(
    "mechanism, best_for",
    [("exact", None), ("channel", "kept"), ("channel", "frequencies"), ("channel", "mean")],
)
def test_plan_and_release_together_are_within_epsilon(
    noise: Noise, rows: int, mechanism: str, best_for: str | None
) -> None:
    plans = 4 if best_for in ("frequencies", "mean") else 8
    worst = largest_ratio(noise, rows, mechanism, best_for, plans)
    # Neither of them alone is all that both together tell.
    assert float(SPENT) < worst <= float(SPENT + LEFT) * (1 + 1e-12)


# Public files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(1), Fraction(6)])
def test_noisy_counts_of_tables_that_differ_in_a_row_are_within_epsilon(
    noise: Noise, epsilon: Fraction
) -> None:
    found = {table: cells_of(scenario_of(table, epsilon)) for table in tables_of(2)}
    (law,) = noise.laws
    masses = log_masses(law, REACH)
    # Of one cell whose count is larger by 1, over all that may be seen in it.
    steps = np.abs(np.diff(masses)).max()
    worst = 0.0
    for first, second in itertools.combinations(found, 2):
        if set(first) & set(second):
            apart = np.abs(found[first] - found[second])
            assert apart.max() <= 1
            worst = max(worst, float(apart.sum() * steps))
    assert worst == pytest.approx(float(epsilon), rel=1e-12)
    assert worst <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("options", [{}, {"mechanism": "channel"}, {"best_for": "frequencies"}])
def test_files_depend_on_the_noisy_counts_alone(noise: Noise, options: dict[str, Any]) -> None:
    """Same noisy counts, same bytes: whatever was counted, and however it was spelt out."""
    seen = [31, 12, 18, 2, 17, 28, -1, 0, 4]
    tables = [*itertools.islice(tables_of(1), 0, None, 4), *[*tables_of(5)][::400]]
    told = set()
    for table in tables:
        frame = (*table, *((8,) * (5 - len(table))))
        noise.drawn = 0
        noise.drawn = seen - cells_of(scenario_of(frame))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scenario = scenario_of(frame)
            plan = pf.calibrate(scenario, SPENT + LEFT, **options)
        notes = (*scenario.priors[0].notes, *plan.notes)
        told.add((plan.to_json(), repr(plan), repr(scenario), notes, *map(str, caught)))
    assert len(told) == 1
    assert np.ravel(json.loads(next(iter(told))[0])["noisy"]["counts"]).tolist() == seen[:6]


def test_what_is_odd_in_the_rows_is_not_told(noise: Noise, tmp_path: Path) -> None:
    """A text of one number that another text has, a value far from all others: no warning."""
    told = set()
    for texts in (["0", "10", "1e1", "2", "1000"], ["0", "0", "2", "2", "10"]):
        path = tmp_path / "t.csv"
        path.write_text("s,x\n" + "".join(f"a,{x}\nb,{x}\n" for x in texts))
        noise.drawn = 0
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                scenario = pf.noisy_counts(
                    path, SPENT, secret="s", public="x", pairs=[("a", "b")],
                    support=[0, 2, 10, 1000],
                )  # fmt: skip
            noise.drawn = np.repeat([20, 30, 0], 4) - cells_of(scenario)
        plan = pf.calibrate(scenario, SPENT + LEFT)
        told.add((plan.to_json(), repr(plan), repr(scenario), scenario.priors[0].notes, plan.notes))
    assert len(told) == 1
