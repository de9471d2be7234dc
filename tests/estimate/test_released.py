# SPDX-License-Identifier: Apache-2.0
"""From release to estimate: unbiased, covered as often as stated, refused where none."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from estimate_cases import (
    INVERTIBLE,
    MERGING,
    NAMES,
    ORDERED,
    UNORDERED,
    draws,
    figures,
    laplace,
    numbers,
    right,
    truths,
)  # fmt: skip
from pufferfish.errors import InputError
from pufferfish.estimate import estimate, matrix, released
from pufferfish.estimate.estimate import Figure
from pufferfish.estimate.released import estimate_released
from pufferfish.mechanisms.channel import Channel
from pufferfish.release.pipeline import release_file
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Levels, make_lattice
from pufferfish.tables.rules import Coding
from release_cases import channel_job

COUNTS = (300, 200, 140)

# Round trips: every form of one release gives one estimate.


@pytest.mark.filterwarnings("ignore::pufferfish.errors.SeededWarning")
@pytest.mark.parametrize(
    "spec",
    [
        channel_job(UNORDERED, INVERTIBLE),
        channel_job(ORDERED, MERGING),
        channel_job(Levels(("'=b", "=b", "+1 x")), INVERTIBLE, coding=Coding("=x", UNORDERED)),
        laplace(numbers(0, 1, 2), 1.5),
        laplace(numbers("0.25", "0.5", "1.75"), 1.5),
        laplace(numbers(2**62 + 1, 2**62 + 2, 2**62 + 9), 1.5),
        laplace(ORDERED, 1.2, round=True, bounds=("low", "high")),
        laplace(numbers(0, "0.5", 2), 0.7, round=True, bounds=(-1, 3)),
    ],
    ids=["levels", "merging", "formulas", "1", "1/4", "2**62", "names", "rounded"],
)
def test_every_form_of_a_release(tmp_path: Path, spec: ReleaseSpec) -> None:
    support = spec.support
    assert spec.coding is not None
    name = spec.coding.column
    spec = replace(spec, coding=Coding(name, support))
    column = np.repeat([support.name(k) for k in range(support.size)], COUNTS)
    frame = pl.DataFrame({"s": ["a"] * len(column), name: column})
    forms: list[Any] = [tmp_path / f"test.{ending}" for ending in ("csv", "tsv.gz", "parquet")]
    for path in forms:
        release_file(frame, path, spec, seed=5)
    back = pl.read_parquet(forms[-1])[name]
    forms.insert(0, forms[0].rename(tmp_path / "test.tab"))
    release_file(frame, forms[1], spec, seed=5)
    forms += [str(forms[1]), back, back.to_numpy(), back.to_list(), back.to_pandas()]
    forms += [back.to_frame(), back.to_frame().lazy(), back.to_frame().to_arrow()]
    forms += [pd.DataFrame({name: back.to_list()}), pa.record_batch({name: back.to_list()})]
    found = [estimate_released(form, spec) for form in forms]
    assert all(other == found[0] for other in found)
    merged = isinstance(spec.mechanism, Channel) and spec.mechanism.rows.tolist() == MERGING
    shares = [c / 640 for c in COUNTS][2 * merged :]
    assert len(found[0].frequencies) == len(shares)
    for figure, share in zip(found[0].frequencies.values(), shares, strict=True):
        assert abs(figure.estimate - share) < 5 * figure.standard_error
    ordered = support.ordered
    assert (found[0].mean is not None) == (ordered and not merged)
    assert repr(found[0]).startswith("Estimate(640 rows: ")


def test_numbers_are_read_as_they_were_saved(tmp_path: Path) -> None:
    spec = laplace(make_lattice([Fraction(0), Fraction(1, 3), Fraction(2)]), 1.5)
    (shown,) = draws(spec, COUNTS, 1)
    exact = [Fraction(round(3 * v), 3) for v in shown.tolist()]
    assert estimate_released(shown, spec) == estimate_released(exact, spec)
    spec, path = laplace(numbers(0, 1), 1.0), tmp_path / "x.csv"
    path.write_text("x\n1\n 1.0\n-2\n+1\n1e0\n0\n")
    assert estimate_released(path, spec) == estimate_released([1, 1, -2, 1, 1, 0], spec)


def test_the_columns_of_a_table() -> None:
    spec = channel_job(UNORDERED, INVERTIBLE)
    column = list(NAMES) * 5
    want = estimate_released(column, spec)
    assert estimate_released(pd.DataFrame({"z": 1, "x": column}), spec) == want
    renamed = pd.DataFrame({"x": "else", "y": column})
    assert estimate_released(renamed, spec, column="y") == want
    # A plan from a given prior names no column: then the only one is meant.
    unnamed = replace(spec, coding=None)
    assert estimate_released(pd.DataFrame({"any": column}), unnamed) == want
    for frame, asked, name, message in (
        (renamed, unnamed, None, "has the columns x, y, and the plan names none; say"),
        (pd.DataFrame({"any": column}), spec, None, "no column 'x'"),
        (renamed, spec, "Y", "did you mean 'y'"),
        (column, spec, "x", "but not of an array"),
    ):
        with pytest.raises(InputError, match=message):
            estimate_released(frame, asked, column=name)


# What is estimated.


def test_a_column_that_was_released_unchanged() -> None:
    found = estimate_released([0, 0, 1], laplace(numbers(0, 1), 0.0, allow_unchanged=True))
    assert [f.estimate for f in found.frequencies.values()] == pytest.approx([2 / 3, 1 / 3])
    assert all(f.standard_error == 0 for f in figures(found))
    identity = np.identity(3, dtype=int).tolist()
    found = estimate_released(["low", "low", "high"], channel_job(UNORDERED, identity))
    assert [f.estimate for f in found.frequencies.values()] == pytest.approx([2 / 3, 0, 1 / 3])


def test_merged_levels_are_named() -> None:
    found = estimate_released(["low", "mid", "high"] * 50, channel_job(ORDERED, MERGING))
    assert (list(found.frequencies), found.not_estimable) == (["high"], ("low", "mid"))
    assert (found.mean, found.variance) == (None, None)
    constant = channel_job(ORDERED, [[1, 1, 1]] * 3)
    found = estimate_released(["low", "mid", "high"] * 50, constant)
    assert (found.frequencies, found.not_estimable) == ({}, NAMES)


def test_a_mean_can_be_estimable_where_no_frequency_is() -> None:
    # The middle value is the average of the ends.
    spec = channel_job(numbers(0, 1, 2), [[2, 0], [1, 1], [0, 2]], numbers(0, 2))
    found = estimate_released([0, 2] * 50, spec)
    assert found.frequencies == {}
    assert found.mean is not None
    assert found.mean.estimate == pytest.approx(1)
    # Each row may hold 1: then its output is random by a standard deviation of 1.
    assert found.mean.standard_error == pytest.approx(0.1)
    assert found.variance is None


def test_rounding_and_bounds_merge_the_outputs_of_a_channel_of_numbers() -> None:
    values, outputs = numbers(0, 1, 2), numbers(0, "0.5", 1, "1.5", 2)
    rows = [[6, 3, 1, 1, 1], [1, 2, 6, 2, 1], [1, 1, 1, 3, 6]]
    merged = [[r[0] + r[1], r[2], r[3] + r[4]] for r in rows]
    column = [0, 1, 1, 2] * 9
    by_hand = estimate_released(column, channel_job(values, merged, values))
    # Ties go to the even integer: 0.5 to 0, and 1.5 to 2.
    whole = channel_job(values, rows, outputs, round=True)
    assert estimate_released(column, whole) == by_hand
    inside = channel_job(values, rows, outputs, bounds=("0.5", "1.5"))
    halves = [0.5, 1, 1, 1.5] * 9
    assert estimate_released(halves, inside).frequencies == by_hand.frequencies
    with pytest.raises(InputError, match="outside the bounds"):
        estimate_released(column, inside)


def test_bounds() -> None:
    """One output stands for all beyond the ends, and so bounds there change nothing."""
    spec = laplace(numbers(0, 1, 2), 2.0)
    (shown,) = draws(spec, (3000, 3000, 3000), 1)
    found, clipped = repr(estimate_released(shown, spec)), np.clip(shown, 0, 2)
    stated = laplace(numbers(0, 1, 2), 2.0, bounds=(0, 2))
    assert repr(estimate_released(clipped, spec)) == found
    assert repr(estimate_released(clipped, stated)) == found
    inside = estimate_released([2, 3, 4] * 50, laplace(numbers(*range(9)), 2.0, bounds=(2, 4)))
    assert (inside.frequencies, len(inside.not_estimable), inside.mean) == ({}, 9, None)
    coarse = laplace(make_lattice([Fraction(k, 10) for k in range(11)]), 0.2, round=True)
    assert len(estimate_released([0, 1] * 50, coarse).not_estimable) == 11


def test_a_large_support_has_mean_and_variance_only() -> None:
    spec = laplace(numbers(*range(2**60, 2**60 + 14_007, 7)), 3000.0)
    (shown,) = draws(spec, np.full(2001, 10), 1)
    found = estimate_released(shown, spec)
    assert (found.frequencies, found.not_estimable, found.too_many_values) == ({}, (), True)
    assert found.mean is not None
    assert found.mean.standard_error == pytest.approx(math.sqrt(2 / 20_010) * 3000, rel=0.05)
    for more in ({"round": True}, {"bounds": (0, 100)}):
        rounds = make_lattice([Fraction(k, 10) for k in range(3000)])
        found = estimate_released([1, 2], laplace(rounds, 3.0, **more))
        assert (found.mean, found.variance, found.too_many_values) == (None, None, True)


@pytest.mark.parametrize("scale", [0.4, 2.0])
def test_moments_of_many_values_are_unbiased_and_covered(
    monkeypatch: pytest.MonkeyPatch, scale: float
) -> None:
    monkeypatch.setattr(released, "MOST_VALUES", 1)
    spec, counts = laplace(numbers("0.5", 1, "1.5", 7), scale), (60, 50, 40, 20)
    found = [estimate_released(d, spec) for d in draws(spec, counts, 400)]
    for name, truth in zip(("mean", "variance"), truths(spec.support, counts), strict=False):
        each = [getattr(f, name) for f in found]
        errors = np.array([figure.estimate for figure in each]) - truth
        own = errors.std()
        assert abs(errors.mean()) < 4.5 * own / 20
        stated = np.mean([figure.standard_error for figure in each])
        assert stated == pytest.approx(own, rel=0.15)
        assert np.mean([f.interval[0] <= truth <= f.interval[1] for f in each]) > 0.9


def test_far_values() -> None:
    far = laplace(numbers(0, 5, 10**9), 3.0)
    (shown,) = draws(far, COUNTS, 1)
    found = estimate_released(shown, far)
    assert found.frequencies["1000000000"].estimate == pytest.approx(140 / 640)


# What is no release of the plan is refused.


@pytest.mark.parametrize(
    "spec, values, message",
    [
        (channel_job(UNORDERED, INVERTIBLE), ["low", "secret"], "no released level"),
        (channel_job(UNORDERED, INVERTIBLE), ["low", None], "has an empty cell"),
        (channel_job(UNORDERED, INVERTIBLE), ["low", "  "], "has an empty cell"),
        (channel_job(UNORDERED, [[1, 1, 0]] * 3), ["low", "high"], "mechanism never publishes"),
        (laplace(numbers(0, "0.5"), 1.0), ["1", "0.7"], "is no multiple of 0.5"),
        (laplace(numbers(0, "0.5"), 1.0), ["1", "secret"], "is no multiple of 0.5"),
        (laplace(numbers(0, "0.5"), 1.0), ["1", "inf"], "is no multiple of 0.5"),
        (laplace(numbers(0, "0.5"), 1.0), [1.0, math.nan], "is no multiple|empty"),
        (laplace(numbers(0, "0.5"), 1.0, round=True), ["1", "2.5"], "is no multiple of 1,"),
        (laplace(numbers(0, 1), 1.0, bounds=(0, 3)), [1, 7], "outside the bounds"),
        (laplace(numbers(0, 1), 0.0, allow_unchanged=True), [1, 7], "mechanism never publishes"),
        (laplace(ORDERED, 1.0), ["low", "mid"], "is no multiple of 1"),
        (laplace(ORDERED, 1.0, round=True, bounds=(0, 2)), [0, 1], "no released level"),
        (laplace(numbers(0, 1), 1.0), [], "nothing to estimate from"),
        (laplace(numbers(0, 1), 1.0), np.zeros((2, 2)), "one dimension"),
        (channel_job(ORDERED, INVERTIBLE, min_scale=3), ["low"], "min-scale"),
    ],
)
def test_cells_that_no_release_wrote(spec: ReleaseSpec, values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        estimate_released(values, spec)
    assert "secret" not in str(caught.value)


IMPOSSIBLE = "more than 5 standard errors outside .*: was this file released by this plan"


@pytest.mark.parametrize("size", [60, 3000])
def test_the_unreleased_column_is_no_release(size: int) -> None:
    """Without the noise that the plan adds the variance would be far below 0."""
    spec = laplace(numbers(*range(size)), 300.0)
    with pytest.raises(InputError, match=IMPOSSIBLE):
        estimate_released([size // 2] * 2000, spec)


def test_options_that_were_not_stated() -> None:
    counts = np.full(3, 2000)
    for asked, told in (
        (laplace(numbers(0, "0.5", 2), 2.0, round=True), laplace(numbers(0, "0.5", 2), 2.0)),
        (laplace(numbers(0, 1, 2), 0.5, min_scale=20), laplace(numbers(0, 1, 2), 0.5)),
        (laplace(numbers(0, 1, 2), 2.0, bounds=(0, 1)), laplace(numbers(0, 1, 2), 2.0)),
    ):
        (shown,) = draws(asked, counts, 1)
        assert estimate_released(shown, asked).rows == 6000
        with pytest.raises(InputError, match=IMPOSSIBLE):
            estimate_released(shown, told)
    wrong_channel = channel_job(ORDERED, [[8, 3, 3], [3, 8, 3], [3, 3, 8]])
    with pytest.raises(InputError, match=IMPOSSIBLE):
        estimate_released(["low"] * 2000, wrong_channel)


@pytest.mark.parametrize("kind", [{}, {"round": True}, {"bounds": (0, 3)}])
@pytest.mark.parametrize("scale", [0.02, 0.3, 2.0, 300.0])
def test_what_was_released_is_never_refused(scale: float, kind: dict[str, Any]) -> None:
    for support in (numbers(0, 1, 2), numbers("0.25", "0.5", "1.75"), numbers(0, 1, 40)):
        spec = laplace(support, scale, **kind)
        for counts in ((1, 0, 0), (3, 1, 0), (0, 40, 0), (2000, 0, 0), (0, 500, 700)):
            for shown in draws(spec, counts, 4):
                assert estimate_released(shown, spec).rows == sum(counts)


# Unbiased, and covered as often as stated.

COVERED: list[tuple[ReleaseSpec, Any]] = [
    (laplace(numbers(0, 1, 2, 3), 1.3), (220, 180, 120, 80)),
    (laplace(numbers(0, 1, 2, 3), 1.3, bounds=(-2, 5)), (220, 180, 120, 80)),
    (laplace(numbers(0, 1, 7), 2.0), (300, 200, 140)),
    (laplace(numbers(0, "0.5", 2), 0.7, round=True, bounds=(-1, 3)), (300, 200, 140)),
    (channel_job(ORDERED, INVERTIBLE), (300, 200, 140)),
    (channel_job(numbers(0, 1), [[3, 1, 1], [1, 1, 3]], numbers(0, "0.5", 1)), (2500, 1500)),
]
IDS = ["noise", "bounds", "holes", "rounded", "channel", "wide channel"]


@pytest.mark.parametrize("times", [200, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("spec, counts", COVERED, ids=IDS)
def test_estimates_are_unbiased_and_covered(spec: ReleaseSpec, counts: Any, times: int) -> None:
    assert right(spec, counts, times)


def test_mutants_of_the_estimates_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, counts = COVERED[4]
    solved = matrix.LeastSquares.weights

    def plain(self: Any, functionals: Any) -> Any:
        _, usable = solved(self, functionals)
        # The released column as it is, in each half of the rows.
        return np.tile(functionals, (self.matrix.shape[1] // len(functionals), 1)), usable

    with monkeypatch.context() as patch:
        patch.setattr(matrix.LeastSquares, "weights", plain)
        assert not right(spec, counts, 200)
    # Standard errors that are a fifth too large.
    monkeypatch.setattr(
        estimate, "Figure", lambda value, error, *ends: Figure(value, 1.2 * error, *ends)
    )
    assert not right(spec, counts, 200)


def test_no_interval_has_zero_width_by_chance() -> None:
    """That an output did not occur does not make its chance 0."""
    spec = channel_job(Levels(("a", "b"), ordered=True), [[9, 1], [1, 9]])
    assert all(f.standard_error > 0.01 for f in figures(estimate_released(["a"] * 30, spec)))
