# SPDX-License-Identifier: Apache-2.0
"""Sensitivity: the loss at 95 % confidence and the robustness radius of every plan."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pufferfish as pf
from pufferfish.calibration.robust_exact import robust_exact
from pufferfish.certificate import prove
from pufferfish.errors import InputError
from pufferfish.mechanisms import Channel, DiscreteLaplace, Mechanism
from pufferfish.paper.sources import block
from pufferfish.regions import regions_of
from pufferfish.robust import Sensitivity, balls, radius, sensitivity, sensitivity_of
from pufferfish.robust.balls import root_of

COUNTS = {"a": [376, 204, 20], "b": [34, 35, 9]}


def counted(**options: object) -> pf.Scenario:
    return pf.Scenario(pf.Prior.from_counts(COUNTS, support=[0, 1, 3], **options))


def randomised(scenario: pf.Scenario, keep: int, of: int) -> Channel:
    """k-ary randomised response."""
    n = scenario.support.size
    rows = [[keep if x == y else of for y in range(n)] for x in range(n)]
    return Channel.of(scenario.support, scenario.support, rows)


def mechanisms(scenario: pf.Scenario) -> list[Mechanism]:
    step = scenario.lattice.step
    return [
        DiscreteLaplace(0.0, step),
        DiscreteLaplace(1.5, step),
        DiscreteLaplace(20.0, step),
        randomised(scenario, 3, 1),
        randomised(scenario, 1, 0),
    ]


def proved(scenario: pf.Scenario, mechanism: Mechanism, tau: float, limit: Fraction) -> bool:
    return prove(scenario, mechanism, limit, regions_of(scenario, tv_radius=Fraction(tau))).holds


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
                assert not proved(scenario, mechanism, min(1.0, tau * (1 + 1e-6) + 1e-9), bound)


@given(st.integers(0, 10**6), st.sampled_from(["0.05", "0.5", "2", "30"]))
def test_radii_are_proved_and_the_largest(seed: int, epsilon: str) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 5)), int(rng.integers(1, 8))
    priors = [
        pf.Prior.from_counts(
            {f"s{s}": rng.choice([0, 1, 3, 30, 500], size=n) + np.eye(n, dtype=int)[0]
             for s in range(m)},
            support=np.cumsum(rng.choice([1, 1, 3], size=n)),
        )
        for _ in range(int(rng.integers(1, 3)))
    ]  # fmt: skip
    pairs = "all" if rng.random() < 0.5 else [("s0", "s1")]
    radii_are_the_largest(pf.Scenario(priors, pairs), epsilon)


def test_loss_at_95_is_the_proved_one_rounded_up() -> None:
    scenario = counted()
    regions = regions_of(scenario, confidence="0.95")
    for mechanism in mechanisms(scenario):
        found = sensitivity_of(scenario, mechanism, Fraction(1)).loss_at_95
        certificate = prove(scenario, mechanism, None, regions)
        assert found is not None
        assert certificate.loss_at_least <= found <= certificate.loss


def test_large_supports_in_doubles_do_not_fall_short(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = counted()
    proofs = [sensitivity_of(scenario, m, Fraction(1)).loss_at_95 for m in mechanisms(scenario)]
    monkeypatch.setattr(sensitivity, "_PROVED", 0)
    quick = [sensitivity_of(scenario, m, Fraction(1)).loss_at_95 for m in mechanisms(scenario)]
    for exact, rough in zip(proofs, quick, strict=True):
        assert exact <= rough
        assert rough == pytest.approx(exact, rel=1e-9)


def test_a_small_group_is_visible() -> None:
    few = {"a": [376, 204], "b": [34, 35]}
    many = {secret: [1000 * c for c in row] for secret, row in few.items()}
    at_95 = []
    for counts in (few, many):
        scenario = pf.Scenario(pf.Prior.from_counts(counts, support=[0, 1]))
        plan = pf.calibrate(scenario, "0.3")
        at_95.append(sensitivity_of(scenario, plan.applied, Fraction(3, 10)).loss_at_95)
    assert at_95[0] > 0.6
    assert 0.3 < at_95[1] < 0.32


def test_exact_leaves_no_room_and_wider_noise_does() -> None:
    scenario = block("census").scenario
    epsilon = Fraction(1, 2)
    tight = sensitivity_of(scenario, pf.calibrate(scenario, epsilon, "exact").applied, epsilon)
    assert tight.radius == 0
    assert tight.radius_at_double > 0.001
    noise = robust_exact(scenario, epsilon, regions_of(scenario, tv_radius="0.003"))
    wide = sensitivity_of(scenario, noise, epsilon)
    assert 0.003 * (1 - 1e-9) <= wide.radius <= 0.003 * (1 + 1e-12)
    assert wide.loss_at_95 < tight.loss_at_95
    # A robust plan holds at 95 %: so it says.
    plan = pf.calibrate(pf.Scenario(scenario.priors[0].with_region(confidence="0.95")), epsilon)
    at_95 = sensitivity_of(scenario, plan.applied, epsilon).loss_at_95
    assert at_95 == pytest.approx(0.5, rel=1e-9)


def test_levels_that_were_never_seen() -> None:
    prior = pf.Prior.from_counts({"a": [50, 50, 0], "b": [50, 50, 0]}, support=[0, 1, 2])
    scenario = pf.Scenario(prior)
    as_it_is = sensitivity_of(scenario, DiscreteLaplace(0.0, Fraction(1)), Fraction(1))
    assert math.isinf(as_it_is.loss_at_95)
    assert as_it_is.radius == 0
    noise = sensitivity_of(scenario, DiscreteLaplace(2.0, Fraction(1)), Fraction(1))
    assert math.isfinite(noise.loss_at_95)
    assert noise.radius > 0


def test_what_is_not_known_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    given_prior = pf.Prior.from_mapping({"a": {0: ".5", 1: ".5"}, "b": {0: ".4", 1: ".6"}})
    noise = DiscreteLaplace(1.0, Fraction(1))
    alone = sensitivity_of(pf.Scenario(given_prior), noise, Fraction(1))
    assert alone.loss_at_95 is None
    assert alone.radius > 0
    from_rows = pf.Prior.from_counts({"a": [3, 4], "b": [5, 6]}, support=[0, 1])
    both = sensitivity_of(pf.Scenario([from_rows, given_prior]), noise, Fraction(1))
    assert both.loss_at_95 is None
    monkeypatch.setattr(sensitivity, "_MOST_FOR_RADIUS", (0, 0))
    some = sensitivity_of(pf.Scenario(from_rows), noise, Fraction(1))
    assert (some.radius, some.radius_at_double) == (None, None)
    assert some.loss_at_95 is not None
    monkeypatch.setattr(sensitivity, "_MOST_FOR_LOSS", (0, 0))
    assert sensitivity_of(pf.Scenario(from_rows), noise, Fraction(1)).loss_at_95 is None


@pytest.mark.parametrize("epsilon", ["1e-15", "1e-9", "700"])
def test_extreme_epsilons(epsilon: str) -> None:
    scenario = counted()
    plan = pf.calibrate(scenario, epsilon, "exact")
    found = sensitivity_of(scenario, plan.applied, Fraction(epsilon))
    assert found.radius is not None
    for tau, limit in ((found.radius, 1), (found.radius_at_double, 2)):
        assert tau == 0 or proved(scenario, plan.applied, tau, limit * Fraction(epsilon))


def test_a_plan_that_does_not_hold_has_no_radius() -> None:
    scenario = counted()
    found = sensitivity_of(scenario, DiscreteLaplace(0.1, Fraction(1)), Fraction(1, 100))
    assert (found.radius, found.radius_at_double) == (0, 0)


def test_a_channel_for_other_values_is_refused() -> None:
    other = pf.Scenario(pf.Prior.from_counts(COUNTS, support=[0, 1, 2]))
    with pytest.raises(InputError, match="other values"):
        sensitivity_of(counted(), randomised(other, 3, 1), Fraction(1))


# Root of one witness -----------------------------------------------------------------------------


def test_root_by_hand() -> None:
    first, second, k = np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.array([1.0, 0.0])
    # ln (.5 + tau) / (.5 - tau) = 1
    expected = (math.e - 1) / (2 * (math.e + 1))
    assert root_of(first, second, k, 1.0) == pytest.approx(expected, rel=1e-14)
    assert root_of(first, second, np.array([1.0, 0.9]), 1.0) == 1.0
    assert root_of(np.array([0.9, 0.1]), np.array([0.1, 0.9]), k, 1.0) == 0.0


def test_mutant_a_root_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the search finds, the certificate has the last word."""
    honest = balls.root_of
    monkeypatch.setattr(balls, "root_of", lambda *given: min(1.0, 1.5 * honest(*given)))
    monkeypatch.setattr(radius, "_ROUNDS", 1)
    scenario = counted()
    for mechanism in mechanisms(scenario):
        found = sensitivity_of(scenario, mechanism, Fraction(1))
        assert found.radius == 0 or proved(scenario, mechanism, found.radius, Fraction(1))


def test_mutant_a_radius_without_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    radii_are_the_largest(counted(), "1")
    monkeypatch.setattr(radius, "_largest", lambda loss, limit: 0.9)
    monkeypatch.setattr(radius, "prove", lambda *given: pf.calibrate(counted(), 1).certificate)
    with pytest.raises(AssertionError):
        radii_are_the_largest(counted(), "1")


# As JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        Sensitivity(0.75, 0.0, 0.25),
        Sensitivity(math.inf, 0.0, 1.0),
        Sensitivity(None, None, None),
    ],
)
def test_round_trip(value: Sensitivity) -> None:
    text = json.dumps(value.to_dict(), allow_nan=False)
    assert Sensitivity.from_dict(json.loads(text)) == value


@pytest.mark.parametrize(
    "change",
    [
        {"loss_at_95": -0.1},
        {"loss_at_95": True},
        {"loss_at_95": "much"},
        {"loss_at_95": math.nan},
        {"loss_at_95": 10**400},
        {"radius": "inf"},
        {"radius": 1.5},
        {"radius_at_double": [0.1]},
        {"another": 1},
    ],
)
def test_nonsense_is_refused(change: dict) -> None:
    with pytest.raises(InputError, match="'sensitivity'"):
        Sensitivity.from_dict(Sensitivity(0.75, 0.0, 0.25).to_dict() | change)


def test_no_mapping_is_refused() -> None:
    for data in (None, [], {"radius": 0.5}):
        with pytest.raises(InputError, match="entries"):
            Sensitivity.from_dict(data)
