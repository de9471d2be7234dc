# SPDX-License-Identifier: Apache-2.0
"""The certificate: proven bounds of the loss, against brute force at 60 digits and more.

Each guarantee has a mutant: a wrong variant patched in, on which the very check of the test fails.
"""

import ast
import json
import math
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import pufferfish.certificate
from pufferfish.certificate import (
    Certificate,
    arbs,
    ball,
    certify,
    decide,
    floatbound,
    floatscan,
    likelihoods,
    loss_ball,
    rational,
    statement,
)
from pufferfish.errors import InputError
from pufferfish.prior import Prior
from pufferfish.rationals import float_up
from pufferfish.scenario import Scenario

METHODS = ("ball", "float-bound")
HALF = Fraction(1, 2)
ROW_A, ROW_B = {0: ".5", 1: ".3", 2: ".2"}, {0: ".2", 1: ".3", 2: ".5"}


@dataclass(frozen=True)
class Noise:
    """All that a certificate looks at in a mechanism."""

    scale: float
    step: Fraction = Fraction(1)


def scenario_of(*priors: dict, pairs="all") -> Scenario:
    return Scenario([Prior.from_mapping(prior) for prior in priors], pairs=pairs)


def noise_for(scenario: Scenario, scale: float) -> Noise:
    return Noise(scale, scenario.lattice.step)


def true_loss(scenario: Scenario, scale: float, digits: int = 60) -> mpmath.mpf:
    """The definition, summed term by term at so many digits: O(n^2) for every pair."""
    points = scenario.lattice.values
    with mpmath.workdps(digits):
        if scale:
            theta = _mp(Fraction(scale))
            kernel = [[mpmath.exp(-_mp(abs(y - x)) / theta) for x in points] for y in points]
        else:
            kernel = [[mpmath.mpf(x == y) for x in points] for y in points]
        worst = mpmath.mpf(0)
        for prior in scenario.priors:
            outputs = {}
            for secret in scenario.protected:
                masses = [_mp(prior.probability(secret, k)) for k in range(len(points))]
                outputs[secret] = [mpmath.fdot(masses, row) for row in kernel]
            for first, second in scenario.pairs:
                for one, two in zip(outputs[first], outputs[second], strict=True):
                    if one == two == 0:
                        continue
                    if one == 0 or two == 0:
                        return mpmath.inf
                    worst = max(worst, abs(mpmath.log(one / two)))
        return worst


def _mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def assert_encloses(lower: float, upper: float, truth: mpmath.mpf) -> None:
    with mpmath.workdps(60):
        assert mpmath.mpf(lower) <= truth <= mpmath.mpf(upper)


def random_scenario(rng: random.Random, atoms: int = 7) -> Scenario:
    """Holes, runs without mass, thin slices, several adversaries, chosen pairs, huge numbers."""
    n = rng.randint(1, atoms)
    gaps = rng.choice([[1], [1, 2, 3], [1, 1, 1, 50], [1, 10**6], [3, 2**40]])
    places = [rng.choice([0, -5, 10**15])]
    for _ in range(n - 1):
        places.append(places[-1] + rng.choice(gaps))
    secrets = [f"s{i}" for i in range(rng.choice([2, 2, 3, 4]))]
    weights = rng.choice([[0, 1, 2, 3], [0, 0, 1], [1, 10**6], [0, 1, 10**15], [0, 1, 7**40]])
    priors = []
    for _ in range(rng.choice([1, 1, 2])):
        rows = {}
        for secret in secrets:
            row = [rng.choice(weights) for _ in places]
            row[rng.randrange(n)] += 1
            rows[secret] = row
        priors.append(Prior.from_counts(rows, support=places))
    pairs = (
        "all" if rng.random() < 0.6 else [("s0", "s1"), ("s1", secrets[-1])][: rng.choice([1, 2])]
    )
    if pairs != "all":
        pairs = [pair for pair in pairs if pair[0] != pair[1]]
    return Scenario(priors, pairs=pairs)


def random_scale(rng: random.Random) -> float:
    return rng.choice([10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-3, 9), rng.uniform(0.2, 5)])


scenarios = st.randoms(use_true_random=False).map(random_scenario)
scales = st.floats(1e-3, 1e9)


# Reference values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_reference_prior_of_the_theory_page(method: str) -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    good = certify(scenario, Noise(1.06), HALF, method)
    assert good.holds
    assert good.decided
    assert good.loss <= 0.5
    bad = certify(scenario, Noise(1.059), HALF, method)
    assert not bad.holds
    assert bad.decided
    assert bad.loss == pytest.approx(0.50016, abs=5e-6)
    assert certify(scenario, Noise(1.0594259987634), HALF, method).holds
    assert certify(scenario, Noise(1.0594259987630), HALF, method).decided
    assert not certify(scenario, Noise(1.0594259987630), HALF, method).holds


EPSILONS = ("0.1", "0.5", "1", "1/3", "1.01", "50", "1e6", "1e-9", "1e-300", "1e-305", "1e299")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", EPSILONS)
def test_loss_equal_to_epsilon_is_decided_by_exact_rationals(text: str, method: str) -> None:
    epsilon = Fraction(text)
    scenario = scenario_of({"A": {0: 1}, "B": {1: 1}})
    theta = float_up(1 / epsilon)
    certificate = certify(scenario, Noise(theta), epsilon, method)
    assert certificate.holds
    assert certificate.loss <= float(epsilon)
    if Fraction(theta) * epsilon == 1:  # the loss is epsilon, and no ball can tell
        assert certificate.method == f"{method}+rational"
    below = certify(scenario, Noise(math.nextafter(theta, 0)), epsilon, "ball")
    assert below.decided
    assert not below.holds


FACTS = [
    # secrets, epsilon, a scale just above the least one, and one just below
    ({"a": {0: 1}, "b": {0: ".99", 10: ".01"}}, "0.1", 4.09193401154, 4.09193401151),
    ({"a": {0: ".99", 10: ".01"}, "b": {0: 1}}, "0.1", 4.09193401154, 4.09193401151),
    ({"a": {0: 1}, "b": {10**6: 1}}, "1", 1e6, 999999.9999),
    ({"a": {0: 1}, "b": {10**6: 1}}, "50", 20000.0, 19999.999999),
    (
        {"a": {0: ".5", 10**6: ".5"}, "b": {0: ".5", 10**6: ".3", 10**6 + 1: ".2"}},
        "1",
        0.599917439237,
        0.599917439234,
    ),
    (
        {"a": {0: ".3", 1: ".3", 2: ".4"}, "b": {0: ".5", 1: ".5"}},
        "1",
        0.812918285725,
        0.812918285722,
    ),
    (
        {"a": {0: ".1", 1: ".2", 1000: ".7"}, "b": {0: ".3", 1000: ".7"}},
        "1",
        0.78453361834,
        0.784533618337,
    ),
    ({"a": {0: 1}, "b": {0: ".5", 1: ".5"}}, "1", 0.6712, 0.67119),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("secrets, epsilon, good, bad", FACTS)
def test_known_least_scales(
    secrets: dict, epsilon: str, good: float, bad: float, method: str
) -> None:
    scenario = scenario_of(secrets)
    assert certify(scenario, Noise(good), Fraction(epsilon), method).holds
    refused = certify(scenario, Noise(bad), Fraction(epsilon), method)
    assert refused.decided
    assert not refused.holds


def test_slices_of_1e_15_need_no_more_than_the_precision_that_epsilon_asks_for() -> None:
    thin = scenario_of(
        {"a": {0: ".6", 5: ".4"}, "b": {0: ".599999999999999", 5: ".400000000000001"}}
    )
    epsilon = Fraction("1e-15")
    assert certify(thin, Noise(5.097727239117), epsilon).holds
    refused = certify(thin, Noise(5.097727239115), epsilon)
    assert refused.decided
    assert not refused.holds
    # Doubles cannot tell, and say so.
    unsure = certify(thin, Noise(5.097727239117), epsilon, "float-bound")
    assert not unsure.decided
    assert not unsure.holds
    assert unsure.loss < 1e-13
    lower, upper = loss_ball(thin, 14.86006705994)
    assert lower == pytest.approx(3.448275862069e-16, rel=1e-12)
    assert upper == pytest.approx(3.448275862069e-16, rel=1e-12)


def test_all_pairs_and_chosen_pairs() -> None:
    rows = {"A": {0: 1}, "B": {1: 1}, "C": {2: 1}}
    everything, chosen = scenario_of(rows), scenario_of(rows, pairs=[("A", "B"), ("B", "C")])
    assert not certify(everything, Noise(1.0), Fraction(1)).holds
    assert certify(everything, Noise(2.0), Fraction(1)).holds
    assert certify(everything, Noise(2.0), Fraction(1), "float-bound").holds
    assert certify(chosen, Noise(1.0), Fraction(1)).holds
    assert certify(chosen, Noise(1.0), Fraction(1), "float-bound").holds


def test_some_cases_by_balls_the_others_by_rationals() -> None:
    # (A, B) attains epsilon exactly, the other pairs stay below it but travel further.
    rows = {"A": {0: 1}, "B": {2: 1}, "C": {0: ".9", 2: ".09999", 4: ".00001"}}
    pairs = [("A", "B"), ("A", "C")]
    for method in METHODS:
        certificate = certify(scenario_of(rows, pairs=pairs), Noise(2.0), Fraction(1), method)
        assert certificate.holds
        assert certificate.method == f"{method}+rational"
        assert certificate.loss == 1.0
    assert not rational.proved_by_distance(
        scenario_of(rows, pairs=pairs), 2.0, Fraction(1), [(0, ("A", "C"))]
    )


def test_all_pairs_undecided_pairs_are_found() -> None:
    rows = {"A": {0: 1}, "B": {2: 1}, "C": {0: ".5", 2: ".5"}, "D": {1: 1}}
    for method in METHODS:
        certificate = certify(scenario_of(rows), Noise(2.0), Fraction(1), method)
        assert certificate.holds
        assert certificate.method == f"{method}+rational"
    finding = ball.ball_finding(scenario_of(rows), 2.0, Fraction(1), 128)
    assert finding.undecided == {(0, ("A", "B"))}


def test_without_noise() -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    for method in ("auto", *METHODS):
        assert certify(scenario, Noise(0.0), Fraction(1), method).holds
        refused = certify(scenario, Noise(0.0), HALF, method)
        assert refused.decided
        assert not refused.holds
        assert refused.loss == pytest.approx(math.log(2.5), rel=1e-15)
    leak = certify(scenario_of({"A": {0: 1}, "B": {0: ".5", 1: ".5"}}), Noise(0.0), Fraction(10**6))
    assert leak.loss == math.inf
    assert leak.decided
    assert not leak.holds
    assert "infinite" in leak.statement
    same = scenario_of({"A": ROW_A, "B": ROW_A})
    assert certify(same, Noise(0.0), Fraction("1e-300")).loss == 0.0
    assert certify(same, Noise(0.0), Fraction("1e-300")).holds


def test_the_step_of_the_noise_must_divide_the_step_of_the_values() -> None:
    scenario = scenario_of({"A": {"0.25": 1}, "B": {"0.75": 1}})
    assert certify(scenario, Noise(10.0, Fraction(1, 4)), Fraction(1)).holds
    assert certify(scenario, Noise(10.0, Fraction(1, 8)), Fraction(1)).holds
    for step in (Fraction(1), Fraction(1, 3)):
        refused = certify(scenario, Noise(10.0, step), Fraction(1))
        assert not refused.holds
        assert refused.loss == math.inf
        assert "0.25" in refused.statement


# Brute force --------------------------------------------------------------------------------------


def check_ball(scenario: Scenario, scale: float) -> None:
    truth = true_loss(scenario, scale)
    lower, upper = loss_ball(scenario, scale)
    assert_encloses(lower, upper, truth)
    assert upper - lower <= 1e-15 * upper + 1e-100 or lower == math.inf


def check_ball_at_few_bits(scenario: Scenario, scale: float) -> None:
    """Wide balls: what is off by the width shows."""
    truth = true_loss(scenario, scale)
    if not truth:
        return
    for bits in (20, 30):
        finding = ball.ball_finding(scenario, scale, None, bits)
        assert_encloses(finding.lower, finding.upper, truth)
    near = _fraction(truth)
    for epsilon in (near * (1 - Fraction(1, 10**9)), near * (1 - Fraction(1, 10**6))):
        finding = ball.ball_finding(scenario, scale, epsilon, 20)
        assert finding.undecided or finding.refuted
        assert not ball.ball_finding(scenario, scale, near + near / 10**9, 20).refuted


def check_float_bound(scenario: Scenario, scale: float) -> None:
    truth = true_loss(scenario, scale)
    finding, error = floatbound.float_finding(scenario, scale, None)
    assert_encloses(finding.lower, finding.upper, truth)
    # A distance of 1e15 theta is known to a unit or so: no double holds its exponential better.
    lattice = scenario.lattice
    reach = float(int(lattice.index[-1]) * lattice.step) / scale
    assert error <= 2e-12 + 1e-14 * float(truth) + 1e-15 * reach


def _fraction(value: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return Fraction(int(mantissa)) * Fraction(2) ** exponent * (-1) ** sign


@given(scenarios, scales)
def test_ball_encloses_brute_force(scenario: Scenario, scale: float) -> None:
    check_ball(scenario, scale)
    check_ball_at_few_bits(scenario, scale)


@given(scenarios)
def test_without_noise_encloses_brute_force(scenario: Scenario) -> None:
    check_ball(scenario, 0.0)


@given(scenarios, scales)
def test_float_bound_encloses_brute_force(scenario: Scenario, scale: float) -> None:
    check_float_bound(scenario, scale)


@given(scenarios, scales, st.fractions(Fraction(1, 1000), 50))
def test_what_holds_is_true_and_what_is_refuted_is_false(
    scenario: Scenario, scale: float, epsilon: Fraction
) -> None:
    truth = true_loss(scenario, scale)
    for method in METHODS:
        certificate = certify(scenario, noise_for(scenario, scale), epsilon, method)
        if certificate.holds:
            # The double nearest to epsilon stands for epsilon itself.
            assert certificate.loss_at_least <= certificate.loss <= float(epsilon)
            assert_encloses(certificate.loss_at_least, float_up(epsilon), truth)
        else:
            assert_encloses(certificate.loss_at_least, certificate.loss, truth)
        if certificate.decided:
            assert certificate.holds == (truth <= _mp(epsilon))
        assert certificate.decided or method == "float-bound"


@given(scenarios, scales, st.floats(1.0001, 3))
def test_loss_never_rises_with_the_scale(scenario: Scenario, scale: float, factor: float) -> None:
    assert loss_ball(scenario, scale * factor)[0] <= loss_ball(scenario, scale)[1]


@pytest.mark.parametrize("exponent", [-300, -100, -20, 20, 100, 300])
def test_scales_of_every_size(exponent: int) -> None:
    theta = float(f"1e{exponent}")
    scenario = scenario_of({"a": {0: ".25", 3: ".75"}, "b": {0: ".5", 3: ".5"}, "c": {1: 1}})
    lower, upper = loss_ball(scenario, theta)
    finding, _ = floatbound.float_finding(scenario, theta, None)
    assert finding.lower <= upper
    assert lower <= finding.upper
    if exponent < 0:
        # At the output 3 all of c lies 2 away: the loss is 2 / theta + ln .75, and little more.
        assert lower == pytest.approx(2 / theta, rel=1e-12)
        assert upper == pytest.approx(2 / theta, rel=1e-12)
        assert finding.upper == pytest.approx(2 / theta, rel=1e-12)
    else:
        assert 0 <= upper <= 4 / theta or upper < 1e-100
        assert finding.upper < 1e-13


@pytest.mark.parametrize("t", [10**6, 10**12, 10**19, 10**21, 10**60, 10**300, 10**700])
def test_exp_minus_at_every_distance(t: int) -> None:
    with arbs.precision(128):
        value = arbs.exp_minus(Fraction(t, 7))
        assert value.rel_accuracy_bits() > 110
        back = -value.log()
        assert back.overlaps(arbs.ball(Fraction(t, 7)))


def test_huge_whole_numbers() -> None:
    big = 10**400
    prior = Prior.from_counts(
        {"a": [big, big + 1], "b": [2 * big, big]}, support=[2**70, 2**70 + 1]
    )
    scenario = Scenario(prior)
    lower, upper = loss_ball(scenario, 1.0)
    assert_encloses(lower, upper, true_loss(scenario, 1.0, 500))
    check_ball(scenario, 0.0)


def test_masses_too_small_for_the_float_bound_are_left_to_balls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    big, epsilon = 10**300, Fraction("0.9")
    prior = Prior.from_counts({"a": [1, big, big], "b": [big, 1, big]}, support=[0, 1, 2])
    scenario = Scenario(prior)
    refused = certify(scenario, Noise(1.0), epsilon, "float-bound")
    assert refused.loss == math.inf
    assert not refused.decided
    assert "without a finite bound" in refused.statement
    monkeypatch.setattr(decide, "BALL_CELLS", 0)
    assert certify(scenario, Noise(1.0), epsilon).method == "ball"
    assert certify(scenario, Noise(1.0), epsilon).holds
    r = math.exp(-1)
    expected = math.log((1 + r**2) / (r + r**2))
    assert certify(scenario, Noise(1.0), None).loss == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(decide, "LAST_BALL_CELLS", 0)
    assert certify(scenario, Noise(1.0), epsilon).method == "float-bound"


def test_even_supports_and_the_plain_recursion_agree() -> None:
    rng = np.random.default_rng(5)
    index = np.arange(40)
    counts = rng.integers(0, 4, 40)
    counts[[0, 1, 2, 38, 39]] = 0
    with arbs.precision(200, terms=1):  # too few terms, as if another thread had set them
        fallback = likelihoods.Likelihoods(index, Fraction(1, 3)).row(counts, 7)
    with arbs.precision(200, terms=100):
        even = likelihoods.Likelihoods(3 * index, Fraction(1, 9))
        assert even.even
        quick = even.row(counts, 7)
        holes = likelihoods.Likelihoods(np.delete(index, [5, 6, 9]), Fraction(1, 3))
        assert holes.even
        uneven = likelihoods.Likelihoods(np.append(index, 10**6), Fraction(1, 3))
        assert not uneven.even
        slow = uneven.row(np.append(counts, 0), 7)[:-1]
        for one, two, three in zip(quick, slow, fallback, strict=True):
            assert one.overlaps(two)
            assert one.overlaps(three)
            assert one.rel_accuracy_bits() > 180
            assert two.rel_accuracy_bits() > 180
        counts[[5, 6, 9]] = 0
        filled = holes.row(np.delete(counts, [5, 6, 9]), 7)
        whole = even.row(counts, 7)
        for one, two in zip(filled, np.delete(np.array(whole), [5, 6, 9]), strict=True):
            assert one.overlaps(two)


def test_precision_is_put_back() -> None:
    before = ctx.prec, ctx.cap
    with pytest.raises(ZeroDivisionError), arbs.precision(300, terms=1000):
        _ = 1 / arb(ctx.prec - 300).unique_fmpz()
    assert (ctx.prec, ctx.cap) == before
    certify(scenario_of({"A": ROW_A, "B": ROW_B}), Noise(1.0), HALF)
    assert (ctx.prec, ctx.cap) == before


def test_several_threads() -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    answers = []

    def work() -> None:
        answers.extend(certify(scenario, Noise(1.06), HALF).holds for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 80


def test_doubles_from_balls_are_on_the_safe_side() -> None:
    with arbs.precision(100):
        for text in ("0.1", "1e-400", "1e300", "7", "1e400", "1e-320"):
            value = arb(text)
            up, down = arbs.float_above(value), arbs.float_below(value)
            assert down <= up
            assert arb(up) >= value or up == math.inf
            assert arb(down) <= value
        assert arbs.float_above(arb(0.1, 0.01)) >= 0.11
        assert arbs.float_below(arb(0.1, 0.01)) <= 0.09
        assert arbs.float_above(arb.nan()) == math.inf


# The floating-point bound -------------------------------------------------------------------------


@pytest.fixture(params=[2, 3, 7, 100])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Narrow blocks, so that small supports have several levels of them."""
    monkeypatch.setattr(floatscan, "WIDTH", request.param)
    return request.param


def check_pass(index: np.ndarray, masses: np.ndarray, unit: Fraction) -> None:
    """Every entry of one pass against balls, within the stated errors."""
    rate = unit.numerator / unit.denominator
    relative = floatscan.relative_error(len(index), 0, rate * float(index[-1]))
    lost = floatscan.absolute_error(len(index))
    for inclusive in (True, False):
        got = floatscan.scan(index, masses, rate, inclusive=inclusive)
        for row, computed in zip(masses, got, strict=True):
            with arbs.precision(120):
                widen = arb(relative).exp()
                state, previous = arb(0), int(index[0])
                for k, place in enumerate(index.tolist()):
                    state = state * arbs.exp_minus((place - previous) * unit)
                    now = state + float(row[k]) if inclusive else state
                    assert arb(float(computed[k])) <= now * widen + lost
                    assert arb(float(computed[k])) >= now / widen - lost
                    state, previous = state + float(row[k]), place


@pytest.mark.usefixtures("width")
def test_a_pass_keeps_its_stated_error() -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        n = int(rng.integers(1, 60))
        index = np.concatenate([[0], np.cumsum(rng.choice([1, 1, 2, 500], n - 1))]).astype(np.int64)
        masses = rng.random((2, n)) * rng.integers(0, 2, (2, n)) / n
        unit = Fraction(float(10 ** rng.uniform(-6, 3)))
        check_pass(index, masses, unit)


@pytest.mark.usefixtures("width")
def test_float_bound_encloses_balls_on_hundreds_of_cases() -> None:
    compare_with_balls(random.Random(3), 150)


@pytest.mark.slow
@pytest.mark.usefixtures("width")
def test_float_bound_encloses_balls_on_thousands_of_cases() -> None:
    compare_with_balls(random.Random(), 3000)


def compare_with_balls(rng: random.Random, cases: int) -> None:
    for _ in range(cases):
        scenario, scale = random_scenario(rng, atoms=rng.choice([5, 30])), random_scale(rng)
        lower, upper = loss_ball(scenario, scale)
        finding, error = floatbound.float_finding(scenario, scale, None)
        assert finding.upper >= upper * (1 - 1e-15)
        assert finding.lower <= lower * (1 + 1e-15)
        assert error <= 1e-12 + 1e-14 * upper


@pytest.mark.parametrize("theta", [0.003, 1.0, 40.0, 1e3, 1e6])
def test_float_bound_far_from_all_mass(theta: float) -> None:
    n = 3000
    half = np.zeros(n, dtype=np.int64)
    half[: n // 2] = 1
    third = np.zeros(n, dtype=np.int64)
    third[[0, n - 1]] = 1
    prior = Prior.from_counts({"a": half, "b": 1 - half, "c": third}, support=np.arange(n))
    for pairs in ("all", [("a", "c"), ("b", "c")], [("a", "b")]):
        scenario = Scenario(prior, pairs=pairs)
        lower, upper = loss_ball(scenario, theta)
        finding, error = floatbound.float_finding(scenario, theta, None)
        assert finding.upper >= upper * (1 - 1e-15)
        assert finding.lower <= lower * (1 + 1e-15)
        assert error <= 2e-12 + 3e-15 * upper


@pytest.mark.parametrize("theta", [30.0, 1e3, 1e5])
def test_float_bound_is_tight_on_large_supports(theta: float) -> None:
    n = 10**5
    rng = np.random.default_rng(2)
    prior = Prior.from_counts(
        {"a": rng.integers(1, 100, n), "b": rng.integers(1, 100, n)}, support=np.arange(n)
    )
    scenario = Scenario(prior)
    certificate = certify(scenario, Noise(theta), Fraction(10), "float-bound")
    assert certificate.error_bound is not None
    assert certificate.error_bound < 2e-12
    lower, upper = loss_ball(scenario, theta)
    assert certificate.loss >= upper * (1 - 1e-15)
    assert certificate.loss_at_least <= lower * (1 + 1e-15)


def test_many_secrets_agree_with_balls() -> None:
    rng = np.random.default_rng(4)
    counts = {f"s{i}": rng.integers(0, 5, 50) + (np.arange(50) == i) for i in range(12)}
    scenario = Scenario(Prior.from_counts(counts, support=np.arange(50)))
    lower, upper = loss_ball(scenario, 2.0)
    finding, _ = floatbound.float_finding(scenario, 2.0, None)
    assert finding.lower <= lower
    assert upper <= finding.upper
    worst = max(loss_ball(Scenario(scenario.priors, pairs=[pair]), 2.0) for pair in scenario.pairs)
    assert (lower, upper) == pytest.approx(worst, rel=1e-14)
    assert finding.case is not None
    alone = loss_ball(Scenario(scenario.priors, pairs=[finding.case[1]]), 2.0)
    assert alone == pytest.approx(worst, rel=1e-12)


def test_the_assumption_on_exp_and_log_holds_here() -> None:
    rng = np.random.default_rng(6)
    wide, unit = rng.uniform(-700, 0, 1500), rng.uniform(0, 1, 1500)
    samples = [
        (np.exp, lambda x: x.exp(), np.concatenate([wide, -unit, -(unit**20)])),
        (np.log, lambda x: x.log(), np.concatenate([unit, np.exp(wide)])),
        (np.log1p, lambda x: x.log1p(), np.concatenate([unit, unit**9, np.exp(wide)])),
    ]
    for function, exact, arguments in samples:
        values = function(arguments)
        with arbs.precision(120):
            for x, y in zip(arguments.tolist(), values.tolist(), strict=True):
                assert abs(arb(y) - exact(arb(x))) <= 4 * math.ulp(y)


def make_sloppy(monkeypatch: pytest.MonkeyPatch, units: int) -> None:
    """Let exp, log and log1p err, always to the same side, and underflow to 0."""

    def sloppy(function: Callable) -> Callable:
        def within(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            value = function(x)
            value = np.where(np.abs(value) < 2.0**-1022, 0.0, value + units * np.spacing(value))
            if out is None:
                return value
            out[...] = value
            return out

        return within

    for name in ("exp", "log", "log1p"):
        monkeypatch.setattr(np, name, sloppy(getattr(np, name)))


@pytest.mark.parametrize("units", [-3, 3])
@pytest.mark.usefixtures("width")
def test_the_bound_holds_as_long_as_its_assumptions_do(
    monkeypatch: pytest.MonkeyPatch, units: int
) -> None:
    make_sloppy(monkeypatch, units)
    compare_with_balls(random.Random(9), 100)
    n = 300
    masses = np.zeros((2, n))
    masses[0, 0] = masses[1, -1] = 1.0
    for theta in (1, 30, 1000):
        check_pass(np.arange(n), masses, Fraction(1, theta))


# What else is promised ----------------------------------------------------------------------------


def test_certificates_survive_json() -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B}, {"A": ROW_B, "B": {0: 1}})
    for noise, method in (
        (Noise(1.06), "ball"),
        (Noise(1.06), "float-bound"),
        (Noise(0.0), "auto"),
    ):
        certificate = certify(scenario, noise, HALF, method)
        text = json.dumps(certificate.to_dict(), allow_nan=False)
        assert Certificate.from_dict(json.loads(text)) == certificate
        assert "1.06" not in text
        assert "scale" not in text
    bare = certify(scenario, Noise(1.0, Fraction(2)), None)
    assert Certificate.from_dict(json.loads(json.dumps(bare.to_dict()))) == bare


@pytest.mark.parametrize(
    "key, value",
    [
        ("loss", "nan"),
        ("loss", -1.0),
        ("loss", float("nan")),
        ("holds", 1),
        ("precision", True),
        ("witness", "x"),
        ("witness", {"output": "0", "pair": ["A"], "adversary": 0}),
        ("witness", {"output": "0", "pair": ["A", "B"]}),
        ("method", None),
        ("statement", ...),
    ],
)
def test_malformed_certificates_are_refused(key: str, value: object) -> None:
    data = certify(scenario_of({"A": ROW_A, "B": ROW_B}), Noise(1.06), HALF).to_dict()
    if value is ...:
        del data[key]
    else:
        data[key] = value
    with pytest.raises(InputError, match=r"certificate"):
        Certificate.from_dict(data)
    with pytest.raises(InputError, match="mapping"):
        Certificate.from_dict([])  # type: ignore[arg-type]


def test_statements() -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    good = certify(scenario, Noise(1.06), HALF)
    # Both ends are equally bad here.
    start, _, end = good.statement.partition("; ")
    assert start == (
        "The privacy loss is at most 0.4997907806, within epsilon = 0.5, in ball arithmetic at "
        "129 bits, from the exact prior"
    )
    assert end in {f"the worst output is {y}, for the pair (A, B)." for y in (0, 2)}
    assert good.witness is not None
    assert good.witness.output in {"0", "2"}
    assert (good.witness.pair, good.witness.adversary) == (("A", "B"), 0)
    bad = certify(scenario, Noise(1.059), HALF)
    assert bad.statement.startswith(
        "The privacy loss is at least 0.5001553678, above epsilon = 0.5"
    )
    bound = certify(scenario, Noise(1.06), HALF, "float-bound").statement
    assert "floating-point bound" in bound
    assert "IEEE-754" in bound
    assert "4 units in the last place" in bound
    only = certify(scenario, Noise(1.06), None)
    assert not only.holds
    assert not only.decided
    assert only.epsilon is None
    assert only.statement.startswith("The privacy loss is at most 0.4997907806, in ball")
    equal = certify(scenario_of({"A": {0: 1}, "B": {1: 1}}), Noise(10.0), Fraction(1, 10))
    assert equal.statement.startswith("The privacy loss is at most 0.1, within epsilon = 0.1, in b")
    assert "in exact rationals" in equal.statement
    long = certify(scenario, Noise(1.06), Fraction("1e299"))
    assert "about 1e+299" in long.statement
    assert statement.shown_up(0.1, 3) == "0.101"
    assert statement.shown_down(0.3, 3) == "0.299"


def test_witness_under_several_adversaries() -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_A}, {"A": {0: 1, 2: 0}, "B": {2: 1}})
    for method in METHODS:
        certificate = certify(scenario, Noise(10.0), HALF, method)
        assert certificate.witness is not None
        assert certificate.witness.adversary == 1
        assert "under adversary 2" in certificate.statement


def test_ordered_levels_and_unordered_ones() -> None:
    rows = {
        "A": {"low": ".6", "mid": ".3", "high": ".1"},
        "B": {"low": ".1", "mid": ".3", "high": ".6"},
    }
    ordered = Scenario(Prior.from_mapping(rows, order=["low", "mid", "high"]))
    assert certify(ordered, Noise(0.88802), Fraction(1)).holds
    assert not certify(ordered, Noise(0.88800), Fraction(1)).holds
    witness = certify(ordered, Noise(0.88802), Fraction(1)).witness
    assert witness is not None
    assert witness.output == "low"
    with pytest.raises(InputError, match="order"):
        certify(Scenario(Prior.from_mapping(rows)), Noise(1.0), Fraction(1))


@pytest.mark.parametrize("scale", [-1.0, math.nan, math.inf])
def test_wrong_scales(scale: float) -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    with pytest.raises(InputError, match="scale"):
        certify(scenario, Noise(scale), HALF)
    with pytest.raises(InputError, match="scale"):
        loss_ball(scenario, scale)


@pytest.mark.parametrize("epsilon", [0.5, "0.5", "1/2", Decimal("0.5"), np.float64(0.5), HALF])
def test_epsilon_may_be_any_number(epsilon: object) -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    assert certify(scenario, Noise(1.06), epsilon) == certify(scenario, Noise(1.06), HALF)
    assert not certify(scenario, Noise(1.059), epsilon).holds


def test_an_integer_epsilon_and_none() -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    assert certify(scenario, Noise(1.06), 1).holds
    assert certify(scenario, Noise(1.06)) == certify(scenario, Noise(1.06), None)


@pytest.mark.parametrize("scale", [1.0625, "1.0625", "17/16", Fraction(17, 16), np.float64(1.0625)])
def test_a_number_is_the_scale_of_noise_on_the_scenarios_lattice(scale: object) -> None:
    scenario = scenario_of({"A": {"0.5": ".5", "0.75": ".5"}, "B": {"0.5": ".4", "0.75": ".6"}})
    assert certify(scenario, scale, 1) == certify(scenario, Noise(1.0625, Fraction(1, 4)), 1)


def test_a_scale_that_is_no_double_is_rounded_down() -> None:
    """What holds for a smaller scale holds for the number itself."""
    scenario = scenario_of({"A": {0: 1}, "B": {1: 1}})
    assert not certify(scenario, "1/3", 3).holds  # the double below 1/3 is not private
    assert certify(scenario, float_up(Fraction(1, 3)), 3).holds
    assert certify(scenario, 10, "0.1").holds
    assert certify(scenario, 0, 1).loss == math.inf
    for wrong in ("x", None, -1, math.inf, object()):
        with pytest.raises(InputError, match="scale"):
            certify(scenario, wrong, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("gap", ["1e-30", "1e-60", "1e-200"])
def test_epsilon_as_near_as_you_like_to_the_loss_without_noise(gap: str) -> None:
    """ln(5/2) is no rational: with enough digits everything is decided."""
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    with mpmath.workdps(260):
        loss = _fraction(mpmath.log(mpmath.mpf(5) / 2))
    above = certify(scenario, Noise(0.0), loss + Fraction(gap))
    assert above.holds
    below = certify(scenario, Noise(0.0), loss - Fraction(gap))
    assert below.decided
    assert not below.holds
    assert above.precision is not None
    assert above.precision > -math.log2(Fraction(gap))


def test_thorough_is_auto_without_its_last_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    near = Fraction(certify(scenario, Noise(1.06)).loss) + Fraction(1, 10**15)
    monkeypatch.setattr(decide, "BALL_CELLS", 0)
    assert certify(scenario, Noise(1.06), HALF, "thorough").method == "float-bound"
    monkeypatch.setattr(decide, "LAST_BALL_CELLS", 0)
    assert not certify(scenario, Noise(1.06), near).decided
    thorough = certify(scenario, Noise(1.06), near, "thorough")
    assert thorough.method == "ball"
    assert thorough.holds


def test_wrong_method_and_epsilon() -> None:
    scenario = scenario_of({"A": ROW_A, "B": ROW_B})
    with pytest.raises(InputError, match="did you mean 'ball'"):
        certify(scenario, Noise(1.0), HALF, "balls")
    with pytest.raises(InputError, match="epsilon"):
        certify(scenario, Noise(1.0), Fraction(0))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, path
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_code_shared_with_the_calibrators() -> None:
    """Follow every import, lazy ones too, through everything the certificate is made of."""
    package = Path(pufferfish.certificate.__file__).parent
    root = package.parent
    own = {path.stem for path in package.glob("*.py")} - {"__init__"}
    assert {"ball", "floatbound", "rational", "record"} <= own
    allowed = {
        "errors",
        "rationals",
        "arrays",
        "support",
        "prior",
        "scenario",
        "fitting",
        "regions",
    }
    allowed |= {"precision"}
    for path in package.glob("*.py"):
        for name in _imports(path):
            if name.startswith("pufferfish."):
                part = name.split(".")[1]
                assert part == "certificate" or part in allowed, (path.name, name)
    forbidden = {"calibration", "coupling", "loss", "precise", "plan", "mechanisms"}
    seen, queue = set(), [root / f"{name}.py" for name in allowed - {"fitting"}]
    while queue:
        path = queue.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        for node in ast.parse(path.read_text()).body:  # what importing the module imports
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pufferfish."):
                part = (node.module or "").split(".")[1]
                assert part not in forbidden, (path.name, node.module)
                queue.append(root / f"{part}.py")


# Mutants ------------------------------------------------------------------------------------------


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except AssertionError:
        return True
    return False


def facts_hold() -> None:
    for secrets, epsilon, good, bad in FACTS:
        scenario = scenario_of(secrets)
        assert certify(scenario, Noise(good), Fraction(epsilon), "ball").holds
        assert not certify(scenario, Noise(bad), Fraction(epsilon), "ball").holds


def test_mutant_one_direction_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ball._extremes

    def one_way(values: list[arb]) -> tuple[arb, arb, int, int]:
        high, _, high_at, _ = honest(values)
        return high, 1 / high, high_at, high_at

    facts_hold()
    monkeypatch.setattr(ball, "_extremes", one_way)
    assert fails(facts_hold)


def test_mutant_one_adversary_against_another(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each adversary's secrets are alike, so there is nothing to tell apart, whatever they believe.
    scenario = scenario_of({"A": ROW_A, "B": ROW_A}, {"A": ROW_B, "B": ROW_B})

    def check() -> None:
        assert loss_ball(scenario, 1.0)[1] < 1e-30
        assert floatbound.float_finding(scenario, 1.0, None)[0].upper < 1e-13

    check()

    def mixed(given: Scenario, rho: int, kernel: likelihoods.Likelihoods, limit: arb | None):
        rows = {}
        for at, secret in enumerate(given.protected):
            prior = given.priors[at % len(given.priors)]
            k = prior.row(secret)
            rows[secret] = kernel.row(prior.counts[k], prior.totals[k])
        return ball._chosen_pairs(rho, rows, given.pairs, limit)

    monkeypatch.setattr(ball, "_adversary", mixed)
    assert fails(check)


def few_bits() -> None:
    rng = random.Random(11)
    for _ in range(15):
        check_ball_at_few_bits(random_scenario(rng), rng.uniform(0.5, 5))


def _middle(value: arb) -> float:
    return float(value.mid()) if value.is_finite() else math.inf


def _low(value: arb) -> float:
    return float(value.lower()) if value.is_finite() else math.inf


@pytest.mark.parametrize("wrong", [_middle, _low])
def test_mutant_wrong_end_of_the_ball(
    monkeypatch: pytest.MonkeyPatch, wrong: Callable[[arb], float]
) -> None:
    few_bits()
    monkeypatch.setattr(arbs, "float_above", wrong)
    assert fails(few_bits)


def test_mutant_midpoints_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = likelihoods.Likelihoods.row

    def midpoints(self, counts, total):
        return [value.mid() for value in honest(self, counts, total)]

    few_bits()
    monkeypatch.setattr(likelihoods.Likelihoods, "row", midpoints)
    assert fails(few_bits)


def test_mutant_overlapping_balls_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_of_equals(values: list[arb]) -> tuple[arb, arb, int, int]:
        high, low = max(values), min(values)  # Python's max keeps the first of overlapping balls
        return high, low, 0, 0

    def check() -> None:
        with arbs.precision(60):
            wide, narrow = arb(1, 0.5), arb(1.1, 0.01)
            high, low, _, _ = ball._extremes([narrow, wide])
            assert high.upper() >= 1.5
            assert low.lower() <= 0.5

    check()
    monkeypatch.setattr(ball, "_extremes", first_of_equals)
    assert fails(check)


def exact_ties() -> None:
    ties = scenario_of({"a": {0: ".1", 1: ".2", 1000: ".7"}, "b": {0: ".3", 1000: ".7"}})
    case = (0, ("a", "b"))
    # Mass .2 travels one step, and nothing goes further: .1 + .2 is .3.
    assert rational.proved_by_distance(ties, 2.0, HALF, [case]) == {case}
    assert not rational.proved_by_distance(ties, math.nextafter(2.0, 0), HALF, [case])
    # A slice of 1e-20 does travel 1000 steps, though no double sees it.
    slice_ = Fraction(1, 10**20)
    thin = scenario_of({"a": {0: HALF - slice_, 1000: HALF + slice_}, "b": {0: HALF, 1000: HALF}})
    assert not rational.proved_by_distance(thin, 2.0, HALF, [case])
    assert rational.proved_by_distance(thin, 2000.0, HALF, [case]) == {case}


def test_mutant_float_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    exact_ties()
    monkeypatch.setattr(
        rational,
        "_cumulated",
        lambda counts, own, _other: np.cumsum([int(count) / own for count in counts]),
    )
    assert fails(exact_ties)


def test_mutant_one_direction_of_the_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        for rows in ({"a": {0: 1}, "b": {5: 1}}, {"a": {5: 1}, "b": {0: 1}}):
            case = (0, ("a", "b"))
            assert not rational.proved_by_distance(scenario_of(rows), 1.0, Fraction(1), [case])

    def one_way(scenario: Scenario, case, last) -> bool:
        prior = scenario.priors[case[0]]
        first = rational._cumulated(prior.counts[0], prior.totals[0], prior.totals[1])
        second = rational._cumulated(prior.counts[1], prior.totals[1], prior.totals[0])
        return bool((first <= second[last]).all())

    check()
    monkeypatch.setattr(rational, "_within", one_way)
    assert fails(check)


def test_mutant_float_bound_without_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # Small losses between secrets that are much alike, where the rounding of the sums shows most.
    rng = np.random.default_rng(12)
    counts = rng.integers(1000, 1100, (2, 150))
    scenario = Scenario(Prior.from_counts({"a": counts[0], "b": counts[1]}, support=np.arange(150)))

    def check() -> None:
        for scale in (10.0, 31.0, 100.0, 310.0, 1000.0):
            finding, _ = floatbound.float_finding(scenario, scale, None)
            lower, upper = loss_ball(scenario, scale)
            assert finding.lower <= upper
            assert lower <= finding.upper

    check()
    monkeypatch.setattr(floatbound._Sums, "_plain_error", lambda self: 0.0)
    assert fails(check)


def test_mutant_far_formula_without_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # A thin slice and a distance of like size in the logarithm, so that both errors show.
    rows = {"a": [1, 0, 2**850], "b": [0, 1, 1]}
    scenario = Scenario(Prior.from_counts(rows, support=[0, 10**7, 10**9]))
    make_sloppy(monkeypatch, 3)

    def check() -> None:
        for scale in np.linspace(9e4, 11e4, 20).tolist():
            finding, _ = floatbound.float_finding(scenario, scale, None)
            assert_encloses(finding.lower, finding.upper, true_loss(scenario, scale))

    check()
    honest = floatbound._Sums._logs
    monkeypatch.setattr(
        floatbound._Sums,
        "_logs",
        lambda self, rows, atoms: (honest(self, rows, atoms)[0], np.zeros((len(rows), len(atoms)))),
    )
    monkeypatch.setattr(floatbound, "UNIT", 1e-20)
    assert fails(check)


def test_mutant_pass_without_its_relative_error(monkeypatch: pytest.MonkeyPatch) -> None:
    index = np.arange(30)
    masses = np.random.default_rng(8).random((2, 30)) / 30
    check_pass(index, masses, Fraction(1, 7))
    monkeypatch.setattr(floatscan, "relative_error", lambda *_: 1e-17)
    assert fails(lambda: check_pass(index, masses, Fraction(1, 7)))


def test_mutant_products_that_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    # Totals whose product passes 2**63: wrapped around, the comparison would be of nonsense.
    big = 2**61 - 1
    prior = Prior.from_counts({"a": [big, 0, 0], "b": [0, big - 2, 1]}, support=[0, 1, 9])
    scenario, case = Scenario(prior), (0, ("a", "b"))

    def check() -> None:
        assert not rational.proved_by_distance(scenario, 1.0, Fraction(1), [case])
        assert rational.proved_by_distance(scenario, 9.0, Fraction(1), [case]) == {case}
        assert not rational.proved_by_distance(scenario, 8.9, Fraction(1), [case])

    check()
    monkeypatch.setattr(rational, "_FITS", 2**200)

    def wraps(counts, own, other):
        factor = other // math.gcd(own, other)
        with np.errstate(all="ignore"):
            return np.cumsum(counts) * np.array(factor % 2**63).astype(np.int64)

    monkeypatch.setattr(rational, "_cumulated", wraps)
    assert fails(check)
