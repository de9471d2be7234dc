# SPDX-License-Identifier: Apache-2.0
"""The finite channel of a release against its definition, and its weights against the theory."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimate_cases import ORDERED, draws, matrices, numbers
from pufferfish.estimate.matrix import FiniteChannel, LeastSquares, expected_errors
from pufferfish.estimate.released import estimate_released
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Levels, Support, make_lattice, make_levels
from release_cases import channel_job, exact_law, one_by_one, spec_of

STEPS = [Fraction(1), Fraction(1, 4), Fraction(3, 2), Fraction(1, 3)]


@given(
    st.lists(st.integers(-6, 12), min_size=1, max_size=5, unique=True),
    st.sampled_from(STEPS),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.booleans(),
    st.sampled_from([None, (0, 3), (-9, 20), (2, 3)]),
)
def test_the_matrix_is_the_law_of_the_release(
    units: list[int], step: Fraction, scale: float, rounds: bool, bounds: Any
) -> None:
    support = make_lattice([u * step for u in units], step)
    out_step = Fraction(1) if rounds and step.denominator > 1 else step
    limits = None if bounds is None else (out_step * bounds[0], out_step * bounds[1])
    spec = spec_of(support, DiscreteLaplace(scale, step), round=rounds, bounds=limits)
    channel = FiniteChannel(Postprocess(spec), support)
    assert channel.matrix.sum(axis=1) == pytest.approx(np.ones(support.size))
    for x, value in enumerate(support.values):
        exact = exact_law(
            value, spec, partial(one_by_one, noise=0, step=step, rounding=rounds, bounds=limits)
        )
        law = {int(output / out_step): chance for output, chance in exact.items()}
        assert channel.matrix[x] == pytest.approx(channel.counts(law) / sum(law.values()), abs=1e-9)


@given(matrices(4, 4), st.booleans())
def test_weights_solve_and_have_the_least_variance(matrix: Any, weighed: bool) -> None:
    """For outputs that are as frequent as the plan takes the values to be; else all the same."""
    size = len(matrix)
    mu = np.arange(1.0, size + 1) if weighed else np.ones(size)
    weights, usable = LeastSquares(matrix, mu.tolist() * weighed).weights(np.eye(size))
    exact = np.linalg.matrix_rank(matrix, tol=1e-10)
    null = np.linalg.svd(matrix)[2][exact:]
    mass = mu / mu.sum() @ matrix
    for x in range(size):
        solvable = np.linalg.matrix_rank(np.c_[matrix, np.eye(size)[x]], tol=1e-10) == exact
        assert usable[x] == solvable
        if solvable:
            assert matrix @ weights[:, x] == pytest.approx(np.eye(size)[x], abs=1e-9)
            for direction in null:  # any other solution differs by one of these
                assert (mass * weights[:, x] * direction).sum() == pytest.approx(0, abs=1e-7)


def test_a_nearly_singular_channel_is_of_no_use() -> None:
    """A deviation of 1e6 per row or more is as good as none."""
    three = Levels(("a", "b", "c"))
    for tiny, told_apart in ((10**3, True), (10**8, False), (10**30, False)):
        rows = [[tiny + 1, tiny, tiny], [tiny, tiny + 1, tiny], [0, 0, 1]]
        channel = FiniteChannel(Postprocess(channel_job(three, rows)), three)
        _, usable = LeastSquares(channel.matrix).weights(np.eye(3))
        assert usable.tolist() == [told_apart, told_apart, True]


# The errors that `calibrate` promises are those that estimates from a release have.

NUMBERS = numbers(0, 1, 2, 5)


@pytest.mark.parametrize(
    "support, scale, counts",
    [(NUMBERS, 1.5, [600, 200, 800, 400]), (ORDERED, 0.7, [500, 100, 1400])],
)
def test_estimates_have_the_errors_that_were_expected(
    support: Support, scale: float, counts: list[int]
) -> None:
    """Of noise; of channels there is a formula."""
    rows, mechanism = sum(counts), DiscreteLaplace(scale, Fraction(1))
    expected = expected_errors(support, mechanism, np.array(counts, dtype=float), rows)
    spec = ReleaseSpec(None, support, mechanism)
    found = estimate_released(draws(spec, counts, 1)[0], spec)
    errors = [figure.standard_error for figure in found.frequencies.values()]
    assert found.mean is not None
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(expected.share_error, rel=0.2)
    assert found.mean.standard_error == pytest.approx(expected.mean_error, rel=0.2)
    assert expected.constant == max(counts) / rows


def test_what_cannot_be_told_is_none():
    levels = make_levels(["p", "q"])
    merging = Channel(levels, levels, [[1, 0], [1, 0]])
    found = expected_errors(levels, merging, np.array([3.0, 1.0]), 4)
    assert (found.spread, found.noise, found.mean_error, found.share_error) == (None,) * 4
    assert found.noise_to_spread is None
    no_rows = expected_errors(NUMBERS, DiscreteLaplace(1.0, Fraction(1)), np.ones(4), 0)
    assert (no_rows.mean_error, no_rows.share_error) == (None, None)
    assert no_rows.noise_to_spread == pytest.approx(no_rows.noise / no_rows.spread)  # type: ignore[operator]  # numbers here
    one = numbers(7)
    still = expected_errors(one, DiscreteLaplace(0.0, Fraction(1)), np.ones(1), 4)
    assert (still.noise_to_spread, still.mean_error, still.share_error) == (0, 0, 0)
