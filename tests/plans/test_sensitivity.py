# SPDX-License-Identifier: Apache-2.0
"""Sensitivity: the loss at 95 % confidence and the robustness radius of every plan."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pufferfish as pf
from pufferfish.errors import InputError
from pufferfish.loss.certificate import Certificate
from pufferfish.loss.proof import prove
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.plans import verify
from pufferfish.plans.verify import robustness_radius, sensitivity_of
from pufferfish.priors.ambiguity import Confidence, TVBall

COUNTS = {"a": [376, 204, 20], "b": [34, 35, 9]}
Mechanism = DiscreteLaplace | Channel


def counted(counts: Any = None, support: Any = (0, 1, 3)) -> pf.Scenario:
    return pf.Scenario(pf.Prior.from_counts(counts or COUNTS, support=support))


def randomised(scenario: pf.Scenario, keep: int, other: int) -> Channel:
    """k-ary randomised response."""
    n = scenario.support.size
    rows = [[keep if x == y else other for y in range(n)] for x in range(n)]
    return Channel(scenario.support, scenario.support, rows)


def mechanisms(scenario: pf.Scenario) -> list[Mechanism]:
    step = scenario.lattice.step
    return [
        DiscreteLaplace(0.0, step),
        DiscreteLaplace(1.5, step),
        DiscreteLaplace(20.0, step),
        randomised(scenario, 3, 1),
        randomised(scenario, 1, 0),
    ]


def within(scenario: pf.Scenario, tau: float) -> pf.Scenario:
    return scenario.with_rules([TVBall(Fraction(tau))] * len(scenario.priors))


def proved(scenario: pf.Scenario, mechanism: Mechanism, tau: float, limit: Fraction) -> bool:
    return prove(within(scenario, tau), {0: (mechanism,)}, limit).holds


def radii_are_the_largest(scenario: pf.Scenario, epsilon: str) -> None:
    for mechanism in mechanisms(scenario):
        found = sensitivity_of(scenario, mechanism, Fraction(epsilon))
        assert found.radius is not None
        assert found.radius_at_double is not None
        assert 0 <= found.radius <= found.radius_at_double <= 1
        for tau, limit in ((found.radius, 1), (found.radius_at_double, 2)):
            bound = limit * Fraction(epsilon)
            if tau:
                assert proved(scenario, mechanism, tau, bound)
            if tau < 1:
                assert not proved(
                    scenario, mechanism, min(1.0, tau * (1 + 1e-5) + 1e-11), bound - bound / 10**9
                )


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from(["1e-9", "0.05", "0.5", "2", "30"]))
@example(1627, "0.05")  # the loss comes to rest at the limit
def test_radii_are_proved_and_the_largest(seed: int, epsilon: str) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 4)), int(rng.integers(1, 6))
    counts = [
        {f"s{s}": rng.choice([0, 1, 3, 30, 500], size=n) + np.eye(n, dtype=int)[0]
         for s in range(m)}
        for _ in range(int(rng.integers(1, 3)))
    ]  # fmt: skip
    support = np.cumsum(rng.choice([1, 1, 3], size=n))
    priors = [pf.Prior.from_counts(own, support=support) for own in counts]
    radii_are_the_largest(pf.Scenario(priors, "all" if seed % 2 else [("s0", "s1")]), epsilon)


def test_by_hand() -> None:
    # ln (.5 + tau) / (.5 - tau) = 1, for the values as they are.
    scenario = counted({"a": [1, 1], "b": [1, 1]}, (0, 1))
    expected = (math.e - 1) / (2 * (math.e + 1))
    for as_it_is in (DiscreteLaplace(0.0, Fraction(1)), randomised(scenario, 1, 0)):
        found = robustness_radius(scenario, as_it_is, Fraction(1))
        assert expected * (1 - 2e-6) <= found <= expected
    # Whatever the prior is, noise of twice the diameter loses 1/2, and that is the limit.
    assert robustness_radius(counted(), DiscreteLaplace(6.0, Fraction(1)), Fraction(1, 2)) == 1
    # A mechanism that hides every value holds whatever the prior is.
    assert robustness_radius(scenario, randomised(scenario, 1, 1), Fraction(1)) == 1


def test_little_room_is_room() -> None:
    """The identity leaves 1e-9: it is not called 0."""
    part = Fraction(10**9, 2 * 10**9 + 1)
    prior = pf.Prior.from_mapping({
        "a": {0: str(part), 1: str(1 - part)}, "b": {0: str(1 - part), 1: str(part)}
    })  # fmt: skip
    scenario = pf.Scenario(prior)
    limit = Fraction(5, 10**9)
    for as_it_is in (DiscreteLaplace(0.0, Fraction(1)), randomised(scenario, 1, 0)):
        radius = robustness_radius(scenario, as_it_is, limit)
        assert 0.9e-9 < radius < 1.1e-9
        assert proved(scenario, as_it_is, radius, limit)


def test_exact_leaves_no_room_and_wider_noise_does() -> None:
    scenario, epsilon = counted(), Fraction(1, 2)
    tight = sensitivity_of(scenario, pf.calibrate(scenario, epsilon).applied, epsilon)
    assert tight.radius is not None
    assert tight.radius < 1e-11
    assert (tight.radius_at_double or 0) > 0.001
    wide = pf.calibrate(within(scenario, 0.003), epsilon)
    found = sensitivity_of(scenario, wide.applied, epsilon)
    assert 0.003 * (1 - 2e-6) <= (found.radius or 0) <= 0.003 * (1 + 1e-9)
    assert (found.loss_at_95 or 0) < (tight.loss_at_95 or 0)
    # A robust plan holds at 95 %: so it says.
    sure = pf.calibrate(scenario.with_rules([Confidence(Fraction(19, 20), box=True)]), epsilon)
    at_95 = sensitivity_of(scenario, sure.applied, epsilon).loss_at_95
    assert at_95 == pytest.approx(0.5, rel=1e-9)


def test_levels_that_were_never_seen() -> None:
    scenario = counted({"a": [50, 50, 0], "b": [50, 50, 0]})
    as_it_is = sensitivity_of(scenario, DiscreteLaplace(0.0, Fraction(1)), Fraction(1))
    assert as_it_is.loss_at_95 == math.inf
    assert as_it_is.radius == 0
    noise = sensitivity_of(scenario, DiscreteLaplace(2.0, Fraction(1)), Fraction(1))
    assert math.isfinite(noise.loss_at_95 or math.inf)
    assert (noise.radius or 0) > 0


def test_what_is_not_known_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    given_prior = pf.Prior.from_mapping({"a": {0: ".5", 1: ".5"}, "b": {0: ".4", 1: ".6"}})
    rows = pf.Prior.from_counts({"a": [3, 4], "b": [5, 6]}, support=[0, 1])
    noise = DiscreteLaplace(1.0, Fraction(1))
    alone = sensitivity_of(pf.Scenario(given_prior), noise, Fraction(1))
    assert alone.loss_at_95 is None
    assert (alone.radius or 0) > 0
    assert sensitivity_of(pf.Scenario([rows, given_prior]), noise, Fraction(1)).loss_at_95 is None
    for name, known in (("_MOST_FOR_RADIUS", True), ("_MOST_FOR_LOSS", False)):
        monkeypatch.setattr(verify, name, 0)
        some = sensitivity_of(pf.Scenario(rows), noise, Fraction(1))
        assert (some.radius, some.radius_at_double) == (None, None)
        assert (some.loss_at_95 is not None) is known


def test_a_plan_that_does_not_hold_has_no_radius() -> None:
    scenario = counted()
    found = sensitivity_of(scenario, DiscreteLaplace(0.1, Fraction(1)), Fraction(1, 100))
    assert (found.radius, found.radius_at_double) == (0, 0)
    other = counted(support=(0, 1, 2))
    with pytest.raises(InputError):
        sensitivity_of(scenario, randomised(other, 3, 1), Fraction(1))


def test_mutant_a_radius_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = counted()
    monkeypatch.setattr(verify, "prove", lambda *given: Certificate("", 0, 0, None, True))
    with pytest.raises(AssertionError):
        radii_are_the_largest(scenario, "1")
