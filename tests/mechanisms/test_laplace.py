# SPDX-License-Identifier: Apache-2.0
"""Discrete Laplace noise: its digits, its law, the error that it states, and what it refuses."""

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from noise_checks import DRAWS, LEAST_P, OFF, fit, residues, same_law
from pufferfish.errors import InputError
from pufferfish.mechanisms.entropy import system_entropy
from pufferfish.mechanisms.laplace import MAX_STEPS, DiscreteLaplace, _Digits, _digits_of
from pufferfish.mechanisms.sampler import Table
from pufferfish.mechanisms.thresholds import Digit, Floors, SignedGeometric

ONE = Fraction(1)
SCALES = [0.3, 0.5, 1.0, 3.7, 50.0, 1000.0, 1e6, 1e12]
STEPS = [ONE, Fraction(1, 4)]


# --- From digits to noise -----------------------------------------------------------------------


def digit_masses_are_exact(scale: float, laws: list[Any]) -> bool:
    """The digits' masses multiply to the mass of discrete Laplace noise, to 200 bits."""
    top, *lower = laws
    assert isinstance(top, SignedGeometric)
    bits = 400

    def mass(law: SignedGeometric | Digit, outcome: int) -> Fraction:
        sums = [0, *law.floors(bits)[0], 1 << bits]
        return Fraction(sums[outcome + 1] - sums[outcome], 1 << bits)

    generator = np.random.default_rng(5)
    rate = 1 / Fraction(scale)
    with mpmath.workdps(100):
        a = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
        for _ in range(40):
            t = int(generator.integers(-min(top.cut, 30), min(top.cut, 30)))
            number, product = (t if t >= 0 else ~t), mass(top, t + top.cut + 1)
            number *= top.weight
            for law in lower:
                d = int(generator.integers(law.base))
                number += d * law.weight
                product *= mass(law, d)
            z = number if t >= 0 else ~number
            exact = (1 - a) / (1 + a) * a ** abs(z)
            ratio = mpmath.mpf(product.numerator) / product.denominator / exact
            if abs(ratio - 1) > mpmath.mpf(2) ** -200:
                return False
    return True


def laws_of(scale: float) -> list[Any]:
    digits = _digits_of(scale, ONE)
    return [table.laws[0] for table in (digits.top, *digits.lower)]


@pytest.mark.parametrize("scale", [0.03, 0.5, 3.7, 128.0, 129.0, 1e6, 1.4e17])
def test_digits_multiply_to_discrete_laplace(scale: float) -> None:
    laws = laws_of(scale)
    assert digit_masses_are_exact(scale, laws)
    weights, bases = [law.weight for law in laws], [law.base for law in laws[1:]]
    assert math.prod(bases) == weights[0]
    # The parts of a sum, put together by an exclusive or, and its complement where it is negative.
    sums = [sum(parts) for parts in itertools.product(*(law.outcomes[:3] for law in laws[1:]))]
    middle = laws[0].outcomes[-1] - laws[0].cut * weights[0]
    for digit, outcome in zip(range(~laws[0].cut, laws[0].cut + 1), laws[0].outcomes, strict=True):
        for part in sums:
            number = (digit if digit >= 0 else ~digit) * weights[0] + part
            assert (outcome ^ part) - middle == (number if digit >= 0 else ~number)
    assert weights[1:] == [math.prod(bases[:i]) for i in range(len(bases))]


class WrongSign(SignedGeometric):
    """Mutant: the sign is drawn as if the top digit were the whole number."""

    def floors(self, bits: int) -> Floors:
        return SignedGeometric(self.rate * self.weight, 1, self.cut).floors(bits)


def test_the_check_of_digits_rejects_mutants() -> None:
    top, *lower = laws_of(1000.0)
    assert not digit_masses_are_exact(1000.0, [WrongSign(top.rate, top.weight, top.cut), *lower])
    assert not digit_masses_are_exact(1000.0, [top])
    assert not digit_masses_are_exact(1000.0000001, [top, *lower])


def test_draws_beyond_64_bits_are_refused() -> None:
    with pytest.raises(InputError, match="64 bits"):
        DiscreteLaplace(1.4e17, ONE).noise(1, lambda count: b"\xff" * count)


# --- The law ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("step", STEPS)
def test_noise_fits_its_scale_and_no_other(scale: float, step: Fraction) -> None:
    noise = DiscreteLaplace(scale, step).noise(DRAWS)
    assert noise.dtype == np.int64
    assert fit(noise, scale, step) > LEAST_P
    for factor in OFF:
        assert fit(DiscreteLaplace(scale * factor, step).noise(DRAWS), scale, step) < LEAST_P


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e12, 1e15])
def test_low_digits_are_uniform_and_the_signs_alike(scale: float) -> None:
    noise = DiscreteLaplace(scale, ONE).noise(DRAWS)
    assert residues(noise) > LEAST_P
    assert fit(-noise, scale, ONE) > LEAST_P
    assert residues(noise >> 1 << 1) < LEAST_P  # a mutant without its lowest bit


def test_fit_rejects_a_mutant_that_forgets_the_tail() -> None:
    table = Table.of([SignedGeometric(Fraction(1, 2), 1, 3)])
    noise = np.empty(DRAWS, dtype=np.int64)
    _Digits(table, 3).draw(noise, system_entropy)
    assert fit(noise, 2.0, ONE) > LEAST_P  # drawn on beyond 3
    forgets = table.draw(DRAWS, system_entropy).astype(np.int64) + ~3
    assert fit(forgets, 2.0, ONE) < LEAST_P


def test_noise_has_the_law_of_opendp() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    scale = 3.7
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * DRAWS), dtype=np.int64)
    assert same_law(DiscreteLaplace(scale, ONE).noise(DRAWS), theirs, scale) > LEAST_P
    for factor in OFF:
        ours = DiscreteLaplace(scale * factor, ONE).noise(DRAWS)
        assert same_law(ours, theirs, scale) < LEAST_P


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-6])
def test_tiny_scales_make_no_noise_that_could_be_seen(scale: float) -> None:
    assert not DiscreteLaplace(scale, ONE).noise(1000).any()


# --- Its error ----------------------------------------------------------------------------------


def exact_mse(scale: float, step: Fraction) -> Any:
    """2 a g^2 / (1 - a)^2, as theory, section 1 has it."""
    with mpmath.workdps(700):
        g = mpmath.mpf(step.numerator) / step.denominator
        a = mpmath.exp(-g / mpmath.mpf(scale))
        return 2 * a * g**2 / (1 - a) ** 2


ERRORS = [
    *((1.0594259987635, ONE), (0.5, Fraction(1, 4)), (1e-3, ONE), (3e-3, ONE), (1e9, ONE)),
    *((1e15, Fraction(1, 10**9)), (1e100, Fraction(1, 10**100)), (1e-100, Fraction(1, 10**98))),
    *((1e150, Fraction(10**152)), (1.0, Fraction(1, 10**300))),
]


@pytest.mark.parametrize("scale, step", ERRORS)
def test_error_is_accurate(scale: float, step: Fraction) -> None:
    mechanism, exact = DiscreteLaplace(scale, step), exact_mse(scale, step)
    assert mechanism.mse == pytest.approx(float(exact), rel=1e-12)
    assert mechanism.std == pytest.approx(float(mpmath.sqrt(exact)), rel=1e-12)


# --- Refusals -----------------------------------------------------------------------------------


def test_a_mechanism_is_a_frozen_value() -> None:
    mechanism = DiscreteLaplace(2, 1)  # type: ignore[arg-type]  # integers are exact too
    assert mechanism == DiscreteLaplace(2.0, ONE)
    assert hash(mechanism) == hash(DiscreteLaplace(2.0, ONE))
    assert isinstance(mechanism.scale, float)
    assert isinstance(mechanism.step, Fraction)
    assert isinstance(DiscreteLaplace(np.float64(2), ONE).scale, float)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.scale = 1.0  # type: ignore[misc]  # frozen


@pytest.mark.parametrize("scale", [2.0**57 * 1.0000001, 1e18, 1e300])
def test_scales_whose_noise_leaves_64_bits_are_refused(scale: float) -> None:
    with pytest.raises(InputError, match="64 bits"):
        DiscreteLaplace(scale, ONE).noise(1)
    DiscreteLaplace(scale, Fraction(scale) / MAX_STEPS).noise(10)
    with pytest.raises(InputError, match="negative"):
        DiscreteLaplace(scale, Fraction(scale)).noise(-1)


@pytest.mark.parametrize(
    "scale, step, message",
    [
        *((s, 1, "finite") for s in (-1.0, math.inf, math.nan, "1", None, True, 10**400, 1j)),
        *((s, 1, "must be a double") for s in (2**53 + 1, Fraction(1, 3))),
        *((1.0, step, "step must be") for step in (0, -1, 0.25, "1", None, True)),
    ],
)
def test_wrong_scales_and_steps_are_refused(scale: Any, step: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DiscreteLaplace(scale, step)
