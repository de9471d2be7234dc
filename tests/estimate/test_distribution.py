# SPDX-License-Identifier: Apache-2.0
"""The distribution of a column: its function, quantiles, bins, projection; and as a data frame."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimate_cases import INVERTIBLE, MERGING, ORDERED, UNORDERED, laplace, matrices, numbers
from pufferfish.errors import InputError
from pufferfish.estimate.estimate import REACH, by_matrix
from pufferfish.estimate.matrix import FiniteChannel, LeastSquares, offered_bins, read_bins
from pufferfish.estimate.released import estimate_released
from pufferfish.release.pipeline import release_any
from pufferfish.release.postprocess import Postprocess
from release_cases import channel_job


def test_of_what_was_released_unchanged() -> None:
    """Every figure is the number of the column itself, without error."""
    column = [0, 0, 0.5, 0.5, 0.5, 2, 2, 2, 2, 9.5]
    spec = laplace(numbers(0, "0.5", 1, 2, "9.5"), 0.0, allow_unchanged=True)
    quantiles = ("1/5", 0.2000001, 0.5, 0.51, "0.9", 0.95)
    found = estimate_released(column, spec, quantiles=quantiles, bins=(0, 1, 2, 9.5))
    assert [f.estimate for f in found.cdf.values()] == pytest.approx([0.2, 0.5, 0.5, 0.9, 1])
    assert list(found.cdf) == ["0", "0.5", "1", "2", "9.5"]
    assert {k: f.estimate for k, f in found.quantiles.items()} == {
        "0.2": 0, "0.2000001": 0.5, "0.5": 0.5, "0.51": 2, "0.9": 2, "0.95": 9.5
    }  # fmt: skip
    assert {k: f.estimate for k, f in found.bins.items()} == pytest.approx(
        {"0 to 0.5": 0.5, "1": 0, "2 to 9.5": 0.5}
    )
    figures = [*found.cdf.values(), *found.quantiles.values(), *found.bins.values()]
    assert all(f.standard_error == 0 and f.interval == (f.estimate,) * 2 for f in figures)
    again = estimate_released(column, spec, simplex=True)
    for mine, other in ((again.frequencies, found.frequencies), (again.cdf, found.cdf)):
        for name, figure in mine.items():
            assert figure.estimate == pytest.approx(other[name].estimate, abs=1e-7)


def test_quantiles_of_codes_and_what_has_none() -> None:
    spec = channel_job(ORDERED, INVERTIBLE)
    found = estimate_released(["low"] * 300 + ["mid"] * 300 + ["high"] * 400, spec)
    assert {k: f.estimate for k, f in found.quantiles.items()} == {"0.25": 0, "0.5": 1, "0.75": 2}
    merging = channel_job(ORDERED, MERGING)
    found = estimate_released(["low", "mid", "high"] * 50, merging, bins=(0, 2, 3))
    # Which of two merged levels a row has cannot be told, whether it has one of them can be.
    assert (found.quantiles, list(found.cdf), list(found.bins)) == (
        {}, ["mid", "high"], ["low to mid", "high"]
    )  # fmt: skip
    assert found.cdf["mid"] == found.bins["low to mid"]
    for wrong in (0, 1, 1.5, -1):
        with pytest.raises(InputError, match="a quantile lies between 0 and 1"):
            estimate_released(["low"] * 9, spec, quantiles=[wrong])
    found = estimate_released(["low"] * 40, channel_job(UNORDERED, INVERTIBLE))
    assert (found.cdf, found.quantiles, found.bins) == ({}, {}, {})


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_quantiles_under_noise(scale: float) -> None:
    """Intervals hold the quantile at least as often as they say, and are not absurdly wide."""
    support, rng = numbers(*range(12)), np.random.default_rng(3)
    channel = FiniteChannel(Postprocess(laplace(support, scale)), support)
    solve, p = LeastSquares(channel.matrix), rng.dirichlet(np.ones(12))
    counts = np.round(2000 * p).astype(int)
    outputs = sum(rng.multinomial(n, m, 600) for n, m in zip(counts, channel.matrix, strict=True))
    truth = np.repeat(np.arange(12), counts)[math.ceil(0.3 * counts.sum()) - 1]
    found = [by_matrix(each, solve, support, ["0.3"]).quantiles["0.3"]
             for each in np.asarray(outputs, dtype=float)]  # fmt: skip
    low, high = np.array([f.interval for f in found]).T
    estimates = np.array([f.estimate for f in found])
    assert ((low <= truth) & (truth <= high)).mean() >= 0.93
    assert ((low <= estimates) & (estimates <= high)).all()
    assert estimates.mean() == pytest.approx(truth, abs=0.1)
    assert (high - low).mean() < 4
    assert found[0].standard_error == pytest.approx((high[0] - low[0]) / (2 * REACH))


# Bins.


@pytest.mark.parametrize(
    "bins, want",
    [
        (1, ["0 to 9"]),
        (2, ["0 to 4", "5 to 9"]),
        (3, ["0 to 3", "5 to 6", "7 to 9"]),
        (1000, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
        ((-5, "1.5", 4, 100), ["0 to 1", "2 to 3", "4 to 9"]),
        ([0, 4, 9], ["0 to 3", "4 to 9"]),
        ([Fraction(7, 2), 8.5], ["4 to 8"]),
    ],
)
def test_bins(bins: Any, want: list[str]) -> None:
    values = [v for v in range(10) if bins != 3 or v != 4]
    sets = read_bins(numbers(*values), bins)
    assert sets.sum(axis=1).max(initial=0) <= 1
    parts = [[values[x] for x in np.flatnonzero(column)] for column in sets.T]
    assert [f"{p[0]} to {p[-1]}" if len(p) > 1 else f"{p[0]}" for p in parts] == want
    spec = laplace(numbers(*values), 2.0)
    assert list(estimate_released(values * 20, spec, bins=bins).bins) == want


def test_edges_are_names_of_levels_or_numbers() -> None:
    assert read_bins(ORDERED, ["low", "mid", "high"]).T.tolist() == [[1, 0, 0], [0, 1, 1]]
    assert read_bins(ORDERED, ["mid", 3]).T.tolist() == [[0, 1, 1]]
    far = numbers(2**60, 2**60 + 1, 2**60 + 2**53)
    assert read_bins(far, 2).T.tolist() == [[1, 1, 0], [0, 0, 1]]
    assert read_bins(far, [2**60 + 1, 2**61]).T.tolist() == [[0, 1, 1]]
    for wrong in (0, -1, True, [], [1], [2, 1], [1, 1], 2.5, "low", [20, 30]):
        with pytest.raises(InputError, match=r"bins|edges"):
            read_bins(ORDERED, wrong)
    with pytest.raises(InputError, match=r"an edge of bins .*'some'"):
        read_bins(ORDERED, ["some", "high"])
    with pytest.raises(InputError, match="bins are for numbers and for levels with an order"):
        estimate_released(["low"], channel_job(UNORDERED, INVERTIBLE), bins=2)
    many = laplace(numbers(*range(2001)), 3000.0)
    for option in ({"bins": 5}, {"simplex": True}):
        with pytest.raises(InputError, match="estimated of at most 2000 values"):
            estimate_released([1, 2], many, **option)


def test_bins_are_offered_where_single_frequencies_are_lost_in_noise() -> None:
    support, rng = numbers(*range(90)), np.random.default_rng(1)
    spec = laplace(support, 6.0)
    column = rng.integers(0, 90, 40_000)
    found = estimate_released(release_any(column, spec), spec)
    errors = [f.standard_error > f.estimate for f in found.frequencies.values()]
    assert np.mean(errors) > 0.5
    assert 2 < len(found.bins) < 45
    rms = math.sqrt(np.mean([f.standard_error**2 for f in found.bins.values()]))
    assert rms < 0.6 / len(found.bins)
    assert sum(f.estimate for f in found.bins.values()) == pytest.approx(1)
    # It is the number of rows that decides, not what was drawn.
    solve = LeastSquares(FiniteChannel(Postprocess(spec), support).matrix)
    sizes = [offered_bins(support, solve, rows).shape[1] for rows in (2, 300, 40_000, 10**8, 1e14)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 0
    assert sizes[2] == len(found.bins)
    assert sizes[-1] == 80
    assert estimate_released(release_any(column[:2], spec), spec).bins == {}
    clear = laplace(support, 0.3)
    found = estimate_released(release_any(column, clear), clear)
    assert found.bins == {}


# The projection.


@given(matrices(), st.lists(st.integers(0, 30), min_size=5, max_size=5))
def test_the_projection_is_the_nearest_on_the_simplex(matrix: Any, counts: Any) -> None:
    counts[0] += 1
    used = np.array(counts[: matrix.shape[1]])
    solve, shares = LeastSquares(matrix), used / used.sum()
    f, q = solve.on_simplex(shares), solve.mu @ matrix
    assert f.sum() == pytest.approx(1)
    assert (f >= 0).all()
    slope = (matrix / q) @ (f @ matrix - shares)
    assert slope @ f - slope.min() < 1e-9  # so far at most is any other point nearer


def test_estimates_on_the_simplex() -> None:
    spec = channel_job(ORDERED, INVERTIBLE)
    column = ["low"] * 10 + ["mid"] * 30 + ["high"] * 160
    plain, moved = (estimate_released(column, spec, simplex=s) for s in (False, True))
    low, mid, high = (f.estimate for f in plain.frequencies.values())
    # J has 1 in common with a multiple of the identity here: 0, and half of the rest off each.
    p = np.array([f.estimate for f in moved.frequencies.values()])
    assert low < 0
    assert p == pytest.approx([0, mid + low / 2, high + low / 2], abs=1e-9)
    assert (moved.mean, moved.variance) == (plain.mean, plain.variance)
    assert [f.estimate for f in moved.cdf.values()] == pytest.approx(np.cumsum(p))
    for name, figure in moved.frequencies.items():
        unbiased = plain.frequencies[name]
        assert figure.standard_error == unbiased.standard_error


# As a data frame.


def test_a_data_frame_of_all_figures() -> None:
    spec = channel_job(ORDERED, INVERTIBLE)
    found = estimate_released(["low"] * 30 + ["mid", "high"] * 30, spec, bins=2)
    frame = found.to_arrow().to_pandas()
    assert list(frame.columns) == ["kind", "label", "estimate", "standard_error", "low", "high"]
    kinds = ["mean", "variance", *["quantile"] * 3, *["bin"] * 2, *["frequency"] * 3, *["cdf"] * 3]
    assert frame["kind"].tolist() == kinds
    assert frame["label"].tolist()[2:] == ["0.25", "0.5", "0.75", "low to mid", "high",
                                           *ORDERED.names, *ORDERED.names]  # fmt: skip
    assert pd.isna(frame["label"][0])
    assert found.mean is not None
    row = frame.iloc[0, 2:].tolist()
    assert row == [found.mean.estimate, found.mean.standard_error, *found.mean.interval]
    assert found.to_arrow().to_pylist() == found.to_dicts()
    none = (
        estimate_released(["low"] * 3, channel_job(ORDERED, [[1, 1, 1]] * 3)).to_arrow().to_pandas()
    )
    assert none["estimate"].notna().tolist() == [False] * 5 + [True]
    assert none["label"].tolist()[2:] == [*ORDERED.names, "high"]
