# SPDX-License-Identifier: Apache-2.0
"""Released answers: exact answers, their noise and errors, what is refused; long sequences."""

import math
import random
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import noise_checks
import pufferfish as pf
from pufferfish.errors import CheckFailed, InputError, PriorWarning, SeededWarning
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.queries.answer import QueryAnswer
from pufferfish.queries.plan import Fit, QueryPlan
from pufferfish.queries.sequences import SequenceRules, read_sequences

CHAIN = pf.MarkovChain(["ill", "well"], [["3/4", "1/4"], ["1/4", "3/4"]])
RECORDS = [["ill"] * 8, ["well", "ill"] * 4, ["ill", "well", "well", "ill"]]


@pytest.fixture(scope="module")
def plan() -> QueryPlan:
    return pf.calibrate(pf.CountQuery(CHAIN, "ill", [4, 8]), 1)


def test_noise_is_discrete_laplace_from_the_entropy_of_the_system() -> None:
    plan = pf.calibrate(pf.CountQuery(CHAIN, "ill", "any"), "0.1")
    records = [["ill", "well", "ill"]] * 400
    drawn = np.array([int(plan.release(["ill"]).values[0]) for _ in range(5000)]) - 1
    assert noise_checks.fit(drawn, plan.scale, Fraction(1)) > noise_checks.LEAST_P
    for off in noise_checks.OFF:
        assert noise_checks.fit(drawn, plan.scale * off, Fraction(1)) < 1e-9
    assert len({plan.release(records).values for _ in range(20)}) > 1
    with pytest.warns(SeededWarning, match="protects nobody"):
        one = plan.release(records, seed=4)
    with pytest.warns(SeededWarning):
        assert plan.release(records, seed=4).values == one.values
    answers = np.array([float(plan.release(records)) for _ in range(400)])
    error = plan.release(records).standard_error
    assert abs(answers.mean() - 800) < 6 * error / 20
    assert error == pytest.approx(plan.mse**0.5) == pytest.approx(answers.std(), rel=0.3)


@pytest.mark.parametrize("scale, step", [(0.1, 1), (0.7, 1), (14.3, 1), (2.5, Fraction(1, 4))])
def test_errors_are_those_of_the_noise(scale: float, step: Any) -> None:
    noise = DiscreteLaplace(scale, Fraction(step))
    answer = QueryAnswer("sum", ("sum",), (Fraction(3),), 8, noise)
    a = math.exp(-float(step) / scale)
    z = np.arange(-3000, 3001)
    chance = (1 - a) / (1 + a) * a ** abs(z)
    assert answer.standard_error == pytest.approx(float(step) * math.sqrt(chance @ z**2.0))
    inside = chance[abs(z * float(step)) <= answer.margin].sum()
    narrower = chance[abs(z * float(step)) < answer.margin].sum() if answer.margin else 0
    assert inside >= 0.95 > narrower
    mean = replace(answer, kind="mean", names=("mean",))
    assert (mean.standard_error, mean.margin) == (answer.standard_error / 8, answer.margin / 8)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of one step, so that exact answers are seen."""
    monkeypatch.setattr(DiscreteLaplace, "noise", lambda _, n, *__: np.ones(n, dtype=np.int64))


@pytest.mark.usefixtures("quiet")
def test_what_is_released(plan: QueryPlan) -> None:
    assert plan.release(RECORDS).rows() == [{"query": "ill", "value": "15", "records": 20}]
    assert plan.release(["ill"] * 8).value == plan.release(np.array(["ill"] * 8)).value == 9
    assert plan.release(["ill"] * 8, bounds="range").value == 8
    assert plan.release(["ill"] * 8, bounds=(0, "13/2")).value == 6.5
    weights = {"ill": "3/2", "well": "-1/2"}
    mean = pf.calibrate(pf.MeanQuery(CHAIN, weights, [4, 8]), 1)
    assert mean.release(RECORDS).values == (Fraction(14 * 3 - 6 + 1, 2) / 20,)
    assert mean.release([["well"] * 4] * 2, bounds="range").values == (Fraction(-7, 16),)
    assert mean.release([["ill"] * 4], bounds="range").values == (Fraction(3, 2),)
    counts = pf.calibrate(pf.HistogramQuery(CHAIN, [4, 8]), 1).release(RECORDS)
    assert dict(zip(counts.names, counts.values, strict=True)) == {"ill": 15, "well": 7}
    with pytest.raises(InputError, match=r"\.values"):
        float(counts)
    people = pf.calibrate(pf.CountQuery(CHAIN, "ill", 8, protect="sequence"), 1)
    assert (people.mechanism, people.scale) == ("group", 8)
    assert people.release([["ill"] * 3] * 2).value == 7  # less than a sequence of 8 needs


@pytest.mark.usefixtures("quiet")
def test_what_is_not_released(plan: QueryPlan) -> None:
    wrong: Any
    for wrong, says in (
        (["ill"] * 5, "sequences of 5 records, but the plan is for 4, 8;"), ([], "is empty"),
        (["il"] * 8, "unknown state 'il'"), ([[]], "is empty"),
        (["ill", None] * 4, "unknown state"), (pd.DataFrame({"s": ["ill"]}), "names no columns"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            plan.release(wrong)
    for bounds in ("all", (1, 0), (0, math.nan)):
        with pytest.raises(InputError, match="bound"):
            plan.release(["ill"] * 8, bounds=bounds)
    sure = pf.MarkovChain(["ill", "well"], [[0, 1], [1, 0]], [1, 0])
    known = pf.calibrate(pf.CountQuery(sure, "ill", 4), 1, "one-sided")
    assert known.scale == 0
    with pytest.raises(InputError, match="--allow-unchanged"):
        known.release(["ill"] * 4)
    assert known.verify().holds


@pytest.mark.usefixtures("quiet")
def test_a_plan_of_a_fitted_chain(tmp_path: Path) -> None:
    rng = random.Random(1)
    cells = [(w, t, rng.choice(["ill", "well"])) for w in range(3) for t in range(8)]
    table = pd.DataFrame(cells, columns=["who", "week", "state"])
    rules, fit = SequenceRules("state", "week", "who"), Fit(smoothing=Fraction(1, 2))
    with pytest.warns(PriorWarning, match="an output of them"):
        chain = fit.model(read_sequences(table, rules), rules)
    made = pf.calibrate(pf.CountQuery(chain, "ill", 8), 1)
    assert made.from_rows
    replace(made, source=rules, fit=fit).save(tmp_path / "p.json")
    assert "PRIVATE. This plan was computed from the rows" in (tmp_path / "p.json").read_text()
    read = QueryPlan.load(tmp_path / "p.json")
    assert (read.from_rows, read.source, read.fit) == (True, rules, fit)
    with pytest.warns(PriorWarning):
        assert read.verify(read.query_of_table(table.sample(frac=1, random_state=1))).holds
    table.to_csv(tmp_path / "t.csv", index=False)
    truth = int((table["state"] == "ill").sum())
    for source in (table, tmp_path / "t.csv", table.sample(frac=1, random_state=2)):
        assert read.release(source).value == truth + 1
    with pytest.raises(InputError, match="sequences of 7 records"):
        read.release(table[table["week"] > 0])
    other = table.assign(state=["ill", "well"] * 12)
    with pytest.warns(PriorWarning):
        query = read.query_of_table(other)
    with pytest.raises(CheckFailed, match="another query or model"):
        read.verify(query)


@pytest.mark.parametrize(
    "length, method",
    [
        (2 * 10**4, "ends"),
        pytest.param(10**5, "ends", marks=pytest.mark.slow),
        (10**6, "contraction"),
    ],
)
def test_long_sequences(length: int, method: str) -> None:
    limit = pf.calibrate(pf.CountQuery(CHAIN, "ill", "any"), 1)
    long = pf.calibrate(pf.CountQuery(CHAIN, "ill", length), 1)
    assert (long.mechanism, long.certificate.method) == ("exact", f"{method}+ball")
    assert long.certificate.holds
    assert long.scale == pytest.approx(limit.scale, rel=1e-9)


def test_memory_is_in_proportion_to_the_records() -> None:
    peaks = []
    for length in (1_000, 4_000):
        tracemalloc.start()
        pf.calibrate(pf.CountQuery(CHAIN, "ill", length), 1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 5 * peaks[0]
