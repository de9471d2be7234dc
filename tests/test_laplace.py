# SPDX-License-Identifier: Apache-2.0
"""The mechanism: its noise is the sampler's, its error that of the released noise."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noise_checks import DRAWS, LEAST_P, OFF, fit
from pufferfish.errors import InputError
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.sampling import DiscreteLaplaceSampler, seeded_entropy

ONE = Fraction(1)


def exact_mse(scale: float, step: Fraction) -> Any:
    """2 a g^2 / (1 - a)^2, as theory, section 1 has it."""
    with mpmath.workdps(700):
        g = mpmath.mpf(step.numerator) / step.denominator
        a = mpmath.exp(-g / mpmath.mpf(scale))
        return 2 * a * g**2 / (1 - a) ** 2


@pytest.mark.parametrize(
    "scale, step",
    [
        (1.0594259987635, ONE),
        (0.5, Fraction(1, 4)),
        (1e-3, ONE),
        (3e-3, ONE),
        (1e9, ONE),
        (1e15, Fraction(1, 10**9)),
        (1e100, Fraction(1, 10**100)),
        (1e-100, Fraction(1, 10**98)),
        (1e150, Fraction(10**152)),
        (1.0, Fraction(1, 10**300)),
    ],
)
def test_error_is_accurate(scale: float, step: Fraction) -> None:
    mechanism, exact = DiscreteLaplace(scale, step), exact_mse(scale, step)
    assert mechanism.mse == pytest.approx(float(exact), rel=1e-12)
    assert mechanism.std == pytest.approx(float(mpmath.sqrt(exact)), rel=1e-12)


def test_error_of_the_example() -> None:
    assert round(DiscreteLaplace(1.0594259987635, ONE).mse, 5) == 2.08527


@given(
    st.floats(min_value=1e-150, max_value=1e150),
    st.fractions(min_value=Fraction(1, 10**20), max_value=10**20).filter(bool),
)
@settings(max_examples=200, deadline=None)
def test_error_is_never_above_that_of_continuous_noise(scale: float, step: Fraction) -> None:
    mse = DiscreteLaplace(scale, step).mse
    assert mse <= 2 * scale * scale * (1 + 1e-14)
    if step / Fraction(scale) < Fraction(1, 100):
        assert mse == pytest.approx(2 * scale * scale, rel=1e-5)


def test_error_at_the_ends_of_the_doubles() -> None:
    assert DiscreteLaplace(0.0, ONE).mse == 0
    assert DiscreteLaplace(0.0, ONE).std == 0
    assert DiscreteLaplace(5e-324, ONE).mse == 0
    assert DiscreteLaplace(1e300, ONE).mse == math.inf
    assert DiscreteLaplace(1e300, ONE).std == pytest.approx(math.sqrt(2) * 1e300)
    assert DiscreteLaplace(1e300, Fraction(10) ** 400).mse == 0
    # exp(-g/(2 theta)) alone is below every double here, the deviation is not.
    assert DiscreteLaplace(1e300, 1600 * Fraction(10) ** 300).std == pytest.approx(
        float(mpmath.sqrt(exact_mse(1e300, 1600 * Fraction(10) ** 300))), rel=1e-11
    )


@pytest.mark.parametrize("scale, step", [(0.5, ONE), (3.7, Fraction(1, 4)), (1e6, ONE)])
def test_noise_fits_and_has_the_stated_error(scale: float, step: Fraction) -> None:
    mechanism = DiscreteLaplace(scale, step)
    noise = mechanism.noise(DRAWS)
    assert fit(noise, scale, step) > LEAST_P

    def error_fits(values: np.ndarray[Any, Any]) -> bool:
        # The fourth moment is at most some 20 squared errors here: 10 deviations of the mean.
        mean = np.mean((values * float(step)) ** 2)
        return bool(abs(mean / mechanism.mse - 1) < 10 * math.sqrt(20 / DRAWS))

    assert error_fits(noise)
    for factor in OFF:
        other = DiscreteLaplace(scale * factor, step).noise(DRAWS)
        assert fit(other, scale, step) < LEAST_P
        assert not error_fits(other)


def is_on_the_lattice(noise: np.ndarray[Any, Any]) -> bool:
    return noise.dtype == np.int64


def test_noise_is_counted_in_steps() -> None:
    mechanism = DiscreteLaplace(3.7, Fraction(1, 4))
    assert is_on_the_lattice(mechanism.noise(100))
    assert not is_on_the_lattice(np.random.default_rng().laplace(scale=3.7, size=100))
    sampler = DiscreteLaplaceSampler(3.7, Fraction(1, 4))
    assert np.array_equal(
        mechanism.noise(100, seeded_entropy(1)), sampler.draw(100, seeded_entropy(1))
    )


def test_a_mechanism_is_a_frozen_value() -> None:
    mechanism = DiscreteLaplace(2, 1)  # type: ignore[arg-type]  # integers are exact too
    assert mechanism == DiscreteLaplace(2.0, ONE)
    assert hash(mechanism) == hash(DiscreteLaplace(2.0, ONE))
    assert isinstance(mechanism.scale, float)
    assert isinstance(mechanism.step, Fraction)
    assert isinstance(DiscreteLaplace(np.float64(2), ONE).scale, float)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.scale = 1.0  # type: ignore[misc]


def test_descriptions_carry_every_digit() -> None:
    text = DiscreteLaplace(1.0594259987635, Fraction(1, 4)).describe()
    assert text == "discrete Laplace noise of scale 1.0594259987635 on a lattice of step 0.25"


@pytest.mark.parametrize("scale", [-1.0, math.inf, math.nan, "1", None, True])
def test_wrong_scales_are_refused(scale: Any) -> None:
    with pytest.raises(InputError, match="scale must be a finite number"):
        DiscreteLaplace(scale, ONE)


def test_huge_scales_have_an_error_but_no_noise() -> None:
    mechanism = DiscreteLaplace(1e300, ONE)
    with pytest.raises(InputError, match="64 bits"):
        mechanism.noise(1)
