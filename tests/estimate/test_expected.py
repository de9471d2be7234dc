# SPDX-License-Identifier: Apache-2.0
"""The errors that `calibrate` promises are those that estimates from a release have."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pufferfish.estimate.matrix import expected_errors
from pufferfish.estimate.released import estimate_released
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.release.pipeline import release_any
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Support, make_lattice, make_levels

NUMBERS = make_lattice([Fraction(k) for k in (0, 1, 2, 5)])
ORDERED = make_levels(["low", "mid", "high"], ["low", "mid", "high"])
MASKED = [[8, 1, 1], [2, 6, 2], [0, 1, 9]]


@pytest.mark.parametrize(
    "support, mechanism, counts",
    [
        (NUMBERS, DiscreteLaplace(1.5, Fraction(1)), [600, 200, 800, 400]),
        (ORDERED, DiscreteLaplace(0.7, Fraction(1)), [500, 100, 1400]),
        (ORDERED, Channel.of(ORDERED, ORDERED, MASKED), [500, 100, 1400]),
    ],
)
def test_estimates_have_the_errors_that_were_expected(
    support: Support, mechanism: DiscreteLaplace | Channel, counts: list[int]
):
    rows = sum(counts)
    expected = expected_errors(support, mechanism, np.array(counts, dtype=float), rows)
    codes = [support.name(k) for k, n in enumerate(counts) for _ in range(n)]
    values = np.array([float(c) for c in codes]) if support is NUMBERS else np.array(codes)
    spec = ReleaseSpec(None, support, mechanism)
    found = estimate_released(release_any(values, spec), spec)
    errors = [entry.standard_error for entry in found.entries]
    assert found.mean is not None
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(expected.share_error, rel=0.2)
    assert found.mean.standard_error == pytest.approx(expected.mean_error, rel=0.2)
    assert expected.constant == max(counts) / rows


def test_what_cannot_be_told_is_none():
    levels = make_levels(["p", "q"])
    merging = Channel.of(levels, levels, [[1, 0], [1, 0]])
    found = expected_errors(levels, merging, np.array([3.0, 1.0]), 4)
    assert (found.spread, found.noise, found.mean_error, found.share_error) == (None,) * 4
    assert found.noise_to_spread is None
    no_rows = expected_errors(NUMBERS, DiscreteLaplace(1.0, Fraction(1)), np.ones(4), 0)
    assert (no_rows.mean_error, no_rows.share_error) == (None, None)
    assert no_rows.noise_to_spread == pytest.approx(no_rows.noise / no_rows.spread)  # type: ignore[operator]
    one = make_lattice([Fraction(7)])
    still = expected_errors(one, DiscreteLaplace(0.0, Fraction(1)), np.ones(1), 4)
    assert (still.noise_to_spread, still.mean_error, still.share_error) == (0, 0, 0)
