# SPDX-License-Identifier: Apache-2.0
"""Noisy counts of the released rows beside the release: unbiased, covered, no worse than either."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish as pf
from estimate_cases import (
    INVERTIBLE,
    MERGING,
    ORDERED,
    UNORDERED,
    draws,
    figures,
    laplace,
    matrices,
    numbers,
    right,
    truths,
)  # fmt: skip
from noisy_cases import noise_of
from pufferfish.errors import SeededWarning
from pufferfish.estimate import released
from pufferfish.estimate.matrix import LeastSquares
from pufferfish.estimate.released import estimate_released
from pufferfish.priors.ambiguity import NoisyCounts
from pufferfish.support import Levels
from release_cases import channel_job

#: By secret (a, b, any other one) and value.
ROWS = np.array([[120, 90, 10, 0], [30, 40, 70, 60], [10, 5, 0, 25]])
COUNTS = ROWS.sum(axis=0)


def noisy_of(cells: Any, epsilon1: str = "0.5", **more: Any) -> NoisyCounts:
    """Cells as noisy counts, without any noise."""
    *counts, others = (tuple(map(int, line)) for line in cells)
    facts = {"rows": int(np.sum(cells)), "level": Fraction(9, 10), **more}
    return NoisyCounts(("a", "b"), tuple(counts), others, epsilon1=Fraction(epsilon1), **facts)


def with_noise(cells: Any, rng: np.random.Generator) -> NoisyCounts:
    drawn = cells + noise_of(Fraction(1, 2), np.shape(cells), rng)
    return noisy_of(drawn, rows=int(np.sum(cells)))


@pytest.fixture(scope="module", params=["exact", "frequencies"])
def plan(request: pytest.FixtureRequest) -> pf.Plan:
    """A scale, or the channel that is best for frequencies, from noisy counts of these rows."""
    declared: dict[str, Any] = {"secret": "s", "public": "x", "pairs": [("a", "b")]}
    with pytest.warns(SeededWarning):
        scenario = pf.noisy_counts(frame(), "0.5", **declared, support=range(4), seed=1)
    if request.param == "exact":
        return pf.calibrate(scenario, "1.5")
    return pf.calibrate(scenario, "1.5", best_for="frequencies")


def frame() -> pd.DataFrame:
    secrets, values = np.repeat(["a", "b", "c"], ROWS.sum(axis=1)), np.tile(np.arange(4), 3)
    return pd.DataFrame({"s": secrets, "x": np.repeat(values, ROWS.ravel())})


# Unbiased, covered, and as sure as stated.


def right_beside(spec: Any, times: int, cells: Any = ROWS) -> bool:
    rng, bins = np.random.default_rng(3), 2 if cells.shape[1] == 4 else [0, 2, 3]
    return right(spec, cells.sum(axis=0), times, bins, lambda: with_noise(cells, rng))


@pytest.mark.parametrize("times", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_estimates_are_unbiased_and_covered(plan: pf.Plan, times: int) -> None:
    assert right_beside(plan.spec(), times)
    if plan.channel is not None:
        assert right_beside(channel_job(ORDERED, MERGING), times, ROWS[:, 1:])


def test_what_the_release_does_not_tell_comes_from_the_counts_alone() -> None:
    spec = channel_job(ORDERED, MERGING)
    unknown = estimate_released(["low", "mid", "high"] * 50, spec)
    assert unknown.not_estimable == ("low", "mid")
    found = estimate_released(["low", "mid", "high"] * 50, spec, noisy_of([[50] * 3, [0] * 3]))
    assert found.not_estimable == ()
    constant = channel_job(UNORDERED, [[1, 1, 1]] * 3)
    cells = [[80, 20, 10], [10, 20, -1], [5, 3, 3]]
    found = estimate_released(["low", "mid", "high"] * 50, constant, noisy_of(cells))
    assert found.noisy_better == (3, 3)
    want = [95 / 150, 43 / 150, 12 / 150]
    assert [f.estimate for f in found.frequencies.values()] == pytest.approx(want, abs=1e-12)


def test_mutants_of_the_variance_are_caught(monkeypatch: pytest.MonkeyPatch, plan: pf.Plan) -> None:
    of_counts = released._frequencies

    def without_others(noisy: NoisyCounts) -> Any:
        shares, variance = of_counts(noisy)
        return shares, variance * len(noisy.counts) / (len(noisy.counts) + 1)

    monkeypatch.setattr(released, "_frequencies", without_others)
    assert not right_beside(plan.spec(), 600)

    def of_pairs_alone(noisy: NoisyCounts) -> Any:
        return of_counts(replace(noisy, others=(0,) * len(noisy.others)))

    monkeypatch.setattr(released, "_frequencies", of_pairs_alone)
    assert not right_beside(plan.spec(), 200)


# In exact numbers.


def test_two_values_in_exact_numbers() -> None:
    """The release keeps 3 of 4: whatever p is, its share has the variance 3/4 over the rows."""
    spec = channel_job(Levels(("p", "q")), [[3, 1], [1, 3]])
    noisy = noisy_of([[25, 10], [4, 15], [3, 3]], "0.5")
    found = estimate_released(["p"] * 34 + ["q"] * 26, spec, noisy)
    by_rows, by_counts = 2 * Fraction(34, 60) - Fraction(1, 2), Fraction(32, 60)
    a = Fraction(math.exp(-0.25))
    # Three cells for each value; of two shares of sum 1 each has half the variance.
    own, other = Fraction(3, 4) / 60, 3 * 2 * a / (1 - a) ** 2 / 60**2 / 2
    share = other / (own + other)
    figure = found.frequencies["p"]
    assert figure.estimate == pytest.approx(float(share * by_rows + (1 - share) * by_counts))
    assert figure.standard_error == pytest.approx(math.sqrt(own * other / (own + other)))
    assert found.noisy_better == ((0, 2) if own < other else (2, 2))
    middle = sum(figure.interval) / 2
    assert middle == pytest.approx(figure.estimate), "the variance does not depend on the share"


# Never worse than either source.


def no_larger(matrix: Any, p: Any, rows: float, variance: float) -> bool:
    """Whether no error is above that of either source, or of a sum of them with equal weights."""
    solve = LeastSquares(matrix, p.tolist())
    both = solve.combined(p, rows, variance)
    for sets in (np.eye(len(p)), np.triu(np.ones((len(p),) * 2)), np.arange(len(p))[:, None] / 5):
        for a in sets.T[:, :, None]:
            found = both.error(a, rows, p)
            other = math.sqrt(variance * len(a) * a.var())
            own = solve.error(a, rows, p)
            bounds = [other] if own is None else [own, other, math.hypot(own, other) / 2]
            if found is None or found > min(bounds) * (1 + 1e-6) + 1e-7:
                return False
    return True


@given(matrices(4), st.sampled_from([30, 10_000]), st.sampled_from([1e-7, 1e-4, 1e-2, 1.0]))
def test_no_error_is_larger_than_that_of_a_source(
    matrix: Any, number: int, variance: float
) -> None:
    p = np.arange(1.0, len(matrix) + 1) / np.arange(1.0, len(matrix) + 1).sum()
    assert no_larger(matrix, p, number, variance)


def test_weights_that_are_swapped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, p = np.array(INVERTIBLE) / 10, np.array([0.5, 0.3, 0.2])
    assert no_larger(matrix, p, 1000, 1e-3)
    combined = LeastSquares.combined

    def swapped(self: LeastSquares, *given: Any) -> LeastSquares:
        both = combined(self, *given)
        outputs, noisy = np.split(both._inverse, [matrix.shape[1]])
        rest = self.single[0] - outputs
        both._inverse = np.vstack([rest, np.eye(len(noisy)) - matrix @ rest])
        return both

    monkeypatch.setattr(LeastSquares, "combined", swapped)
    assert not no_larger(matrix, p, 1000, 1e-3)


# Where they are used.


def test_a_plan_uses_its_noisy_counts(plan: pf.Plan) -> None:
    (shown,) = draws(plan.spec(), COUNTS, 1, 5)
    found, alone = plan.estimate(shown), estimate_released(shown, plan.spec())
    assert found == estimate_released(shown, plan.spec(), plan.noisy)
    assert alone.noisy_better is None
    assert found.noisy_better is not None
    better, of = found.noisy_better
    assert of == 4 + 3 + 1, "shares, distribution function but its last value, mean"
    assert 0 <= better <= of
    for mine, other in zip(figures(found)[2:9], figures(alone)[2:9], strict=False):
        assert mine.standard_error < 1.05 * other.standard_error
    assert sum(f.estimate for f in found.frequencies.values()) == pytest.approx(1, abs=1e-9)
    for name, figure in zip("0123", list(found.cdf.values()), strict=True):
        parts = [found.frequencies[k].estimate for k in "0123" if k <= name]
        assert figure.estimate == pytest.approx(sum(parts), abs=1e-9)
    assert found.to_dicts()[0].keys() == alone.to_dicts()[0].keys()


def test_noisy_counts_of_other_rows_are_not_used(plan: pf.Plan) -> None:
    spec = plan.spec()
    (shown,) = draws(spec, COUNTS, 1, 5)
    assert plan.noisy is not None
    weighed = replace(spec, weights=(0.4, 0.3, 0.2, 0.1))
    alone = estimate_released(shown, weighed)
    for other in ({"held_out": True}, {"rows": plan.noisy.rows + 1}):
        assert estimate_released(shown, weighed, replace(plan.noisy, **other)) == alone
    # As many rows, but those of another table.
    keeps = channel_job(ORDERED, INVERTIBLE, weights=(0.4, 0.3, 0.3))
    (shown,) = draws(keeps, 5 * COUNTS[1:], 1, 1)
    assert estimate_released(shown, keeps, noisy_of(5 * ROWS[:, 1:])).noisy_better is not None
    turned = estimate_released(shown, keeps, noisy_of(5 * ROWS[:, 3:0:-1]))
    assert turned == estimate_released(shown, keeps)


@pytest.mark.parametrize("cut", [{"round": True}, {"bounds": (0, 2)}, {"min_scale": 4}, {}])
def test_options_of_the_release(cut: dict[str, Any]) -> None:
    spec = laplace(numbers("0", "0.5", "1", "2"), 1.5, **cut)
    (shown,) = draws(spec, COUNTS, 1, 1)
    noisy = with_noise(ROWS, np.random.default_rng(2))
    found = estimate_released(shown, spec, noisy, bins=(0, 0.75, 2))
    assert found.not_estimable == ()
    for figure, true in zip(figures(found), truths(spec.support, COUNTS), strict=True):
        assert abs(figure.estimate - true) < 5 * figure.standard_error
    moved = estimate_released(shown, spec, noisy, simplex=True)
    shares = [f.estimate for f in moved.frequencies.values()]
    assert min(shares) >= 0
    assert sum(shares) == pytest.approx(1)
    assert (moved.mean, moved.quantiles) == (found.mean, found.quantiles)


def test_what_no_release_wrote_is_refused_whatever_the_counts_say() -> None:
    spec = channel_job(ORDERED, [[4, 3, 3], [3, 4, 3], [3, 3, 4]])
    with pytest.raises(pf.InputError, match="more than 5 standard errors outside"):
        estimate_released(["low"] * 460, spec, noisy_of(ROWS[:, :3], rows=460))


def test_a_column_that_was_released_unchanged_needs_no_counts() -> None:
    spec = laplace(numbers(0, 1, 2, 3), 0.0, allow_unchanged=True)
    found = estimate_released(frame().x, spec, with_noise(ROWS, np.random.default_rng(1)))
    assert found.noisy_better == (0, 8)
    estimates = [f.estimate for f in figures(found)]
    assert estimates == pytest.approx(truths(spec.support, COUNTS)[: len(estimates)], abs=1e-6)
    assert max(f.standard_error for f in figures(found)) < 1e-6
