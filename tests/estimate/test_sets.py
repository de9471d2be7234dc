# SPDX-License-Identifier: Apache-2.0
"""Estimates from sets of values: by simulation, by formula, and from whatever was published."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from estimate_cases import figures, formula, numbers, truths
from plan_cases import edited, learnt, recorded, table
from pufferfish.errors import InputError
from pufferfish.estimate.estimate import by_matrix
from pufferfish.estimate.matrix import LeastSquares, expected_errors
from pufferfish.estimate.released import estimate_released
from pufferfish.plans.record import read_record
from set_cases import set_plan, sets_and_labels

NUMBERS = numbers(0, 1, 2, 5)
VALUES = np.array([0.0, 1.0, 2.0, 5.0])
WEIGHTS = (0.4, 0.3, 0.2, 0.1)
CHANNEL, LABELS = sets_and_labels(NUMBERS)
TIMES = 4000


def simulated(counts: Any, matrix: Any, seed: int) -> Any:
    """Rows by output of so many releases, shape (TIMES, n_y)."""
    rng = np.random.default_rng(seed)
    return sum(rng.multinomial(n, row, TIMES) for n, row in zip(counts, matrix, strict=True))


@pytest.mark.parametrize(
    "counts, labels",
    [
        ((800, 600, 400, 200), False),
        pytest.param((60, 100, 240, 1600), False, marks=pytest.mark.slow),
        pytest.param((0, 2000, 0, 0), False, marks=pytest.mark.slow),
        ((1200, 2000, 4800, 32000), True),
    ],
)
def test_thousands_of_releases(counts: tuple[int, ...], labels: bool) -> None:
    """Also of rows that are not as frequent as the weights say: unbiased, as sure as stated."""
    matrix = CHANNEL.then(LABELS).matrix if labels else CHANNEL.matrix
    solve, rows, p = LeastSquares(matrix, WEIGHTS), sum(counts), np.array(counts) / sum(counts)
    found = [
        by_matrix(each, solve, NUMBERS, ("0.3", "0.6"), (0, 2, 5))
        for each in simulated(counts, matrix, 11 + counts[0]).astype(float)
    ]
    shown = [[(f.estimate, f.standard_error, *f.interval) for f in figures(each)] for each in found]
    each, stated, low, high = np.array(shown).transpose(2, 0, 1)
    truth, variances = truths(NUMBERS, counts), (stated**2).mean(axis=0)
    linear = np.c_[VALUES, np.eye(4), np.tri(4).T[:, :-1], [1, 1, 0, 0], [0, 0, 1, 1]]
    variances[[0, *range(2, 11)]] = formula(matrix, WEIGHTS, linear, p, rows)
    assert (np.abs(each.mean(axis=0) - truth) < 4 * each.std(axis=0) / math.sqrt(TIMES)).all()
    assert each.var(axis=0) == pytest.approx(variances, rel=0.06)
    inside = ((low <= truth) & (truth <= high)).mean(axis=0)
    assert 0.93 < inside.min() <= inside.max() < 0.97
    for level, quantile in (("0.3", 0.3), ("0.6", 0.6)):
        q = VALUES[np.argmax(np.cumsum(p) >= quantile)]
        inside = [f.quantiles[level].interval[0] <= q <= f.quantiles[level].interval[1]
                  for f in found]  # fmt: skip
        assert np.mean(inside) > 0.93


def test_a_value_without_weight_has_little_and_is_estimated_all_the_same() -> None:
    assert LeastSquares(CHANNEL.matrix, (1.0, 0.0, 0.0, 0.0)).single[1].all()


def test_without_weights_each_half_of_the_rows_weighs_the_other() -> None:
    """As sure as with the weights of a plan, and unbiased; with own weights it would not be."""
    matrix = np.array([[6, 1, 0, 3], [1, 6, 3, 0], [3, 0, 3, 4]]) / 10
    counts = np.array([20, 3, 1])
    p, even = counts / 24, LeastSquares(matrix)
    best = LeastSquares(matrix, p.tolist())

    def own(drawn: Any) -> Any:
        return drawn, LeastSquares(matrix, np.maximum(drawn @ even.single[0], 0.5).tolist())

    noise = {}
    ways = {"crossed": lambda d: even.crossed(d)[::-1], "own": own,
            "even": lambda d: (d, even), "plan": lambda d: (d, best)}  # fmt: skip
    for name, way in ways.items():
        shares = np.array([
            drawn / 24 @ solve.single[0]
            for drawn, solve in map(way, simulated(counts, matrix, 5).astype(float))
        ]) - p  # fmt: skip
        bias = np.abs(shares.mean(axis=0)) / (shares.std(axis=0) / math.sqrt(TIMES))
        assert (bias.max() < 4) == (name != "own")
        noise[name] = (shares**2).sum(axis=1).mean()
    assert noise["plan"] < noise["crossed"] < 1.12 * noise["plan"] < 0.85 * noise["even"]
    # The same rows have the same halves; weights that are given stay; one row has no halves.
    rows = np.array([9.0, 5, 5, 5])
    assert (even.crossed(rows)[1] == even.crossed(rows)[1]).all()
    assert best.crossed(rows) == (best, pytest.approx(rows))
    assert even.crossed(np.eye(4)[0])[0] is even


def test_errors_that_calibrate_expects() -> None:
    found = expected_errors(NUMBERS, CHANNEL, np.array(WEIGHTS), 2000, LABELS, WEIGHTS)
    for error, sets in ((found.share_error, np.eye(4)), (found.cdf_error, np.tri(4).T),
                        (found.mean_error, VALUES[:, None])):  # fmt: skip
        variances = formula(CHANNEL.matrix, WEIGHTS, sets, np.array(WEIGHTS), 2000)
        assert error == pytest.approx(math.sqrt(variances.mean()))
    labelled = CHANNEL.then(LABELS)
    assert found.noise == pytest.approx(math.sqrt(labelled.mse([4, 3, 2, 1])))
    from_labels = expected_errors(NUMBERS, labelled, np.array(WEIGHTS), 2000, None, WEIGHTS)
    assert from_labels.noise == found.noise
    assert (from_labels.share_error or 0) > found.share_error


# What estimates are made from.

ROWS = table(*[("a", "lo")] * 60, *[("a", "mid")] * 30, *[("a", "hi")] * 10, *[("b", "lo")] * 10,
             *[("b", "mid")] * 30, *[("b", "hi")] * 60)  # fmt: skip
MANY = pl.from_pandas(ROWS).select(pl.all().repeat_by(20).explode())


@pytest.fixture(scope="module")
def plan() -> pf.Plan:
    return replace(set_plan(learnt(ROWS)), weights=(0.5, 0.25, 0.25))


def test_sets_count_wherever_they_are(plan: pf.Plan, tmp_path: Path) -> None:
    frame = plan.release(MANY)
    labels, sets = frame["x"], frame["x (set)"]
    want = plan.estimate(frame)
    frame.write_csv(tmp_path / "o.csv")
    renamed = frame.rename({"x": "y"})
    for form in (tmp_path / "o.csv", frame.lazy(), frame.to_pandas(), sets, sets.to_list(),
                 sets.to_numpy(), frame.select("x (set)"),
                 frame.with_columns(x=pl.lit("?"))):  # fmt: skip
        assert plan.estimate(form) == want
    assert plan.estimate(renamed, column="y") == want
    both = renamed.rename({"x (set)": "y (set)"})
    assert plan.estimate(both, column="y") == plan.estimate(both, column="y (set)") == want
    with pytest.raises(InputError, match="no column 'z' in the polars dataframe"):
        plan.estimate(frame, column="z")
    alone = plan.estimate(labels, labels_only=True)
    frame.select("x").write_csv(tmp_path / "l.csv")
    for form in (frame.select("x"), labels.to_list(), tmp_path / "l.csv"):
        assert plan.estimate(form, labels_only=True) == alone
        with pytest.raises(
            InputError, match=r"no released set, such as .* larger errors: --labels-only"
        ):
            plan.estimate(form)
    assert plan.estimate(frame, labels_only=True) == alone
    for name, figure in alone.frequencies.items():
        assert figure.standard_error > 1.2 * want.frequencies[name].standard_error
        assert abs(figure.estimate - 1 / 3) < 5 * figure.standard_error
        assert (
            abs(want.frequencies[name].estimate - 1 / 3) < 5 * want.frequencies[name].standard_error
        )


def test_sets_that_are_never_published(plan: pf.Plan) -> None:
    frame, good = pl.DataFrame({"x": ["lo"] * 4}), ["{hi, lo}", "{*}", "{*}", "{lo, mid}"]
    for bad, message in (
        (
            ["{hi, lo}", "{*}", "{hi}", "{*}"],
            r"cell that is no released set, such as \{hi, lo\};",
        ),
        (["{hi, lo}", "lo", "{*}", "{*}"], "cell that is no released set"),
        (["{hi, lo}", "{*}", "{*}", None], "has an empty cell"),
    ):
        for form in (bad, frame.with_columns(pl.Series("x (set)", bad))):
            with pytest.raises(InputError, match=message):
                plan.estimate(form)
    plan.estimate(good)
    wrong = frame.with_columns(pl.Series("x (set)", ["{hi}", "lo", "{", "{hi}"]))
    with pytest.raises(InputError, match=r"'x \(set\)' of .* a cell that is no released set"):
        plan.estimate(wrong)
    assert plan.estimate(wrong, labels_only=True).rows == 4
    with pytest.raises(InputError, match="cell that is no released level"):
        plan.estimate(["{hi}"], labels_only=True)


def test_labels_outside_of_their_sets_are_refused(tmp_path: Path) -> None:
    """Where both columns are there, in every kind of value and of table."""
    for rows in (ROWS, ROWS.replace({"x": {"lo": "1", "mid": "2.5", "hi": "4"}})):
        plan = set_plan(learnt(rows))
        frame = plan.release(pl.from_pandas(rows).with_columns(pl.col("x").cast(str)))
        mixed = frame.with_columns(frame["x"].reverse())
        assert plan.estimate(mixed.select("x (set)")) == plan.estimate(frame)
        assert plan.estimate(mixed, labels_only=True) == plan.estimate(frame, labels_only=True)
        mixed.write_csv(tmp_path / "o.csv")
        renamed = mixed.rename({"x": "y", "x (set)": "y (set)"})
        for form, column in ((mixed, None), (tmp_path / "o.csv", None), (renamed, "y")):
            with pytest.raises(InputError, match="a set beside a label that is not drawn from it"):
                plan.estimate(form, column=column)


def test_weights_stay_in_the_plan(plan: pf.Plan, tmp_path: Path) -> None:
    assert pf.Plan.from_json(plan.to_json()).weights == plan.weights == plan.spec().weights
    channel = pf.calibrate(learnt(ROWS), "0.48", best_for="frequencies")
    assert channel.weights == pytest.approx([0.35, 0.35, 0.3])
    for wrong in ([0.5, 0.5], [0, 0, 0], [0.5, 0.6, -0.1]):
        with pytest.raises(InputError, match=r"weights|>= 0\.0"):
            edited(plan, weights=wrong)
    ways: tuple[Any, ...] = ({}, {"labels_only": True})
    for options in ways:
        recorded(plan, MANY, tmp_path, publish=True, **options)
        read, out = read_record(tmp_path / "record.json"), tmp_path / "test.csv"
        assert read.weights == ()
        assert read.labels_only == bool(options)
        by_record = estimate_released(out, read)
        by_plan = replace(plan, weights=()).estimate(out, **options)
        assert by_record == by_plan


# What would break a naive version.

AWKWARD = ("{a, b}", "a, b", "a", 'q"q', "{", "}", "*", "'=1", "=1+1", "a\tb", "a\nb", "NaN", "é")


@pytest.mark.parametrize("column", ["x (set)", "=x", "a,b"])
def test_awkward_levels_and_columns_come_back(column: str, tmp_path: Path) -> None:
    """Names that look like sets, numbers or formulas, in every kind of file."""
    rows = table(*[(s, name) for k, name in enumerate(AWKWARD) for s in "a" * (k + 2) + "bbbb"])
    rows = rows.rename(columns={"x": column})
    plan = set_plan(pf.Prior.from_table(rows, secret="s", public=column))
    for ending in ("csv", "tsv", "csv.gz", "parquet"):
        out = tmp_path / f"o.{ending}"
        plan.release(rows, output=out)
        found = plan.estimate(out)
        assert set(found.frequencies) == set(AWKWARD)
        shown = pl.read_parquet(out) if ending == "parquet" else None
        assert shown is None or plan.estimate(shown) == found
        assert plan.estimate(out, labels_only=True) != found


def test_records_that_were_edited(plan: pf.Plan, tmp_path: Path) -> None:
    told = recorded(plan, MANY, tmp_path, publish=True)
    path, out = tmp_path / "record.json", tmp_path / "test.csv"
    labels, support = told["labels"], told["support"]
    turned = support | {"names": support["names"][::-1]}
    for edit, message in (
        ({"labels": None}, "a cell that is no released level"),
        ({"set_column": None, "column": "x (set)"}, "a cell that is no released level"),
        ({"channel": None}, "does not tell the mechanism"),
        ({"channel": None, "scale": 1.0}, "has labels, but no channel"),
        ({"labels": labels | {"rows": labels["rows"][1:]}}, "needs 4 rows, but has 3"),
        ({"support": turned}, "the labels do not fit"),
        ({"labels": labels | {"outputs": turned}}, "the labels do not fit"),
        ({"column": "y"}, "there is no column 'y'"),
    ):
        path.write_text(json.dumps(told | edit))
        with pytest.raises(InputError, match=re.escape(message)) as error:
            estimate_released(out, read_record(path))
        assert "\n" not in str(error.value)
