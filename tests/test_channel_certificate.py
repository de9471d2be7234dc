# SPDX-License-Identifier: Apache-2.0
"""The certificate of a channel, against the definition in exact fractions.

Each guarantee has a mutant: a wrong variant patched in, on which the very check of the test fails.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.certificate import Certificate, certify, certify_channel, unchanged
from pufferfish.certificate import channel as channel_module
from pufferfish.errors import InputError
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.prior import Prior
from pufferfish.rationals import float_up
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Levels

HALF = Fraction(1, 2)


def levels(size: int) -> Levels:
    return Levels(tuple(f"x{k}" for k in range(size)))


def channel_of(rows: Any) -> Channel:
    return Channel.of(levels(len(rows)), levels(len(rows[0])), rows)


def scenario_of(*priors: dict[str, list[int]], pairs: Any = "all") -> Scenario:
    size = len(next(iter(priors[0].values())))
    names = list(levels(size).names)
    return Scenario([Prior.from_counts(prior, support=names) for prior in priors], pairs=pairs)


def largest_ratio(scenario: Scenario, channel: Channel) -> Fraction | None:
    """The definition: every output, adversary, ordered pair; None stands for infinity."""
    worst = Fraction(1)
    for prior in scenario.priors:
        for first, second in scenario.pairs:
            for one, two in ((first, second), (second, first)):
                for y in range(channel.outputs.size):
                    p, q = (
                        sum(
                            (
                                prior.probability(s, x) * channel.probability(x, y)
                                for x in range(channel.inputs.size)
                            ),
                            Fraction(0),
                        )
                        for s in (one, two)
                    )
                    if p == q == 0:
                        continue
                    if q == 0:
                        return None
                    worst = max(worst, p / q)
    return worst


def true_loss(ratio: Fraction | None, digits: int = 80) -> mpmath.mpf:
    if ratio is None:
        return mpmath.inf
    with mpmath.workdps(digits):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


def assert_right(certificate: Certificate, ratio: Fraction | None, epsilon: Fraction) -> None:
    """The verdict is that of the definition, and the bounds enclose the loss closely."""
    loss = true_loss(ratio)
    with mpmath.workdps(80):
        within = loss <= mpmath.mpf(epsilon.numerator) / epsilon.denominator
        assert certificate.holds == within
        assert certificate.decided
        assert certificate.method == "exact"
        assert mpmath.mpf(certificate.loss_at_least) <= loss <= mpmath.mpf(certificate.loss)
    if ratio is not None:
        # The 128 bits that decide are enough: of a loss far below them they know fewer digits.
        width = certificate.loss - certificate.loss_at_least
        assert width <= max(1e-15 * certificate.loss, 2.0**-120)
    if certificate.holds:
        assert certificate.loss <= float_up(epsilon)


@dataclass(frozen=True)
class Case:
    scenario: Scenario
    channel: Channel
    epsilon: Fraction


def random_case(rng: random.Random) -> Case:
    """Several secrets and adversaries, chosen pairs, any denominators, empty columns and cells."""
    n, m = rng.randint(1, 6), rng.randint(1, 6)
    secrets = [f"s{k}" for k in range(rng.choice([2, 2, 3, 4]))]
    weights = rng.choice([[0, 1, 2, 3], [1, 2, 3], [1, 10**6], [0, 1, 7**40]])
    priors = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        rows = {}
        for secret in secrets:
            rows[secret] = [rng.choice(weights) for _ in range(n)]
            rows[secret][rng.randrange(n)] += 1
        priors.append(rows)
    every = [(a, b) for i, a in enumerate(secrets) for b in secrets[:i]]
    pairs = "all" if rng.random() < 0.5 else rng.sample(every, rng.randint(1, len(every)))
    top = rng.choice([1, 3, 2**16, 2**64, 7**30])
    zeros = rng.choice([0.0, 0.3, 0.7])
    matrix = [
        [0 if rng.random() < zeros else rng.randint(0, top) for _ in range(m)] for _ in range(n)
    ]
    for row in matrix:
        row[rng.randrange(m)] += 1
    epsilon = rng.choice([Fraction("0.1"), HALF, Fraction(1), Fraction(1, 3), Fraction(5)])
    return Case(scenario_of(*priors, pairs=pairs), channel_of(matrix), epsilon)


def check_random(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        check(random_case(rng))


def check(case: Case) -> None:
    certificate = certify_channel(case.scenario, case.channel, case.epsilon)
    assert_right(certificate, largest_ratio(case.scenario, case.channel), case.epsilon)


@given(st.randoms(use_true_random=False).map(random_case))
def test_verdicts_are_those_of_the_definition(case: Case) -> None:
    check(case)


@given(st.randoms(use_true_random=False).map(random_case))
def test_the_witness_attains_the_loss(case: Case) -> None:
    certificate = certify_channel(case.scenario, case.channel, None)
    ratio = largest_ratio(case.scenario, case.channel)
    witness = certificate.witness
    assert witness is not None
    y = case.channel.outputs.names.index(witness.output)
    prior = case.scenario.priors[witness.adversary]
    masses = [
        sum(
            prior.probability(s, x) * case.channel.probability(x, y)
            for x in range(case.channel.inputs.size)
        )
        for s in witness.pair
    ]
    assert {*witness.pair} in [{*pair} for pair in case.scenario.pairs]
    found = None if min(masses) == 0 else Fraction(max(masses)) / min(masses)
    assert found == ratio


def test_randomised_response_on_a_secret_that_is_the_value() -> None:
    """Keeps with e^eps / (1 + e^eps): the loss is what the integers say, from both sides."""
    scenario = scenario_of({"a": [1, 0], "b": [0, 1]})
    with mpmath.workdps(80):
        ratio = mpmath.exp(mpmath.mpf("0.5"))
        floor = int(ratio * 2**200)
    for top, holds in ((floor, True), (floor + 1, False)):
        channel = channel_of([[top, 2**200], [2**200, top]])
        certificate = certify_channel(scenario, channel, HALF)
        assert certificate.holds == holds
        assert_right(certificate, Fraction(top, 2**200), HALF)
        assert certificate.precision > 128


def test_the_identity_costs_what_publishing_unchanged_costs() -> None:
    scenario = scenario_of({"a": [1, 2, 3], "b": [3, 2, 1]})
    certificate = certify_channel(scenario, channel_of(np.eye(3, dtype=int)), None)
    assert certificate.loss == pytest.approx(math.log(3), rel=1e-15)
    ordered = Scenario([Prior.from_counts({"a": [1, 2, 3], "b": [3, 2, 1]}, support=[0, 1, 2])])
    noise = certify(ordered, DiscreteLaplace(0.0, Fraction(1)), None)
    assert (noise.loss, noise.loss_at_least) == (certificate.loss, certificate.loss_at_least)


def test_a_constant_channel_has_no_loss() -> None:
    scenario = scenario_of({"a": [1, 2, 3], "b": [3, 2, 1]})
    certificate = certify_channel(scenario, channel_of([[1, 6], [2, 12], [7, 42]]), HALF)
    assert certificate.holds
    assert certificate.loss_at_least == 0
    assert certificate.loss < 1e-30


def test_one_side_without_mass_is_infinite() -> None:
    scenario = scenario_of({"a": [1, 0], "b": [1, 1]})
    certificate = certify_channel(scenario, channel_of([[1, 0], [10**30, 1]]), Fraction(10**6))
    assert certificate.loss == math.inf
    assert not certificate.holds
    assert certificate.decided
    assert "infinite" in certificate.statement
    assert certificate.witness is not None
    assert certificate.witness.output == "x1"
    assert certify_channel(scenario, channel_of([[1, 0], [1, 1]]), None).loss == math.inf


def test_outputs_that_never_occur_are_skipped() -> None:
    scenario = scenario_of({"a": [1, 2, 0], "b": [2, 1, 0], "c": [0, 0, 1]}, pairs=[("a", "b")])
    certificate = certify_channel(scenario, channel_of([[0, 1, 2], [0, 2, 1], [5, 0, 1]]), HALF)
    assert certificate.holds
    assert certificate.loss == pytest.approx(math.log(5 / 4))


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-40", "1e-9", "30", "1000"])
def test_any_epsilon(epsilon: str) -> None:
    """Ratios within one part in 10**400 of e^epsilon, from both sides."""
    exact = Fraction(epsilon)
    with mpmath.workdps(1000):
        ratio = mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator)
        one = 10**400
        below = int(ratio * one)
    scenario = scenario_of({"a": [1, 0], "b": [0, 1]})
    for top, holds in ((below, True), (below + 1, False)):
        certificate = certify_channel(scenario, channel_of([[top, one], [one, top]]), exact)
        assert certificate.holds == holds
        assert certificate.decided
        assert certificate.loss == pytest.approx(float(exact), rel=1e-12)


def test_statement() -> None:
    scenario = scenario_of({"a": [1, 2], "b": [2, 1]})
    channel = channel_of([[3, 1], [1, 3]])
    assert certify_channel(scenario, channel, HALF).statement == (
        "The privacy loss is at most 0.3364722367, within epsilon = 0.5, in exact rationals, from "
        "the integers of the channel and the exact prior (logarithm and exponential in ball "
        "arithmetic at 128 bits); the worst output is x0, for the pair (a, b)."
    )
    assert certify_channel(scenario, channel, Fraction("0.1")).statement.startswith(
        "The privacy loss is at least 0.3364722366, above epsilon = 0.1: this is not private, in "
    )
    certificate = certify_channel(scenario, channel, HALF)
    assert Certificate.from_dict(certificate.to_dict()) == certificate


# Other alphabets ----------------------------------------------------------------------------------


def test_outputs_may_be_another_alphabet() -> None:
    prior = Prior.from_counts({"a": [1, 3], "b": [3, 1]}, support=[0, 10])
    outputs = Lattice(Fraction(1, 2), -3, np.array([0, 1, 9]))
    channel = Channel.of(prior.support, outputs, [[1, 2, 1], [1, 1, 2]])
    certificate = certify_channel(Scenario(prior), channel, HALF)
    assert_right(certificate, Fraction(7, 5), HALF)
    assert certificate.witness is not None
    assert certificate.witness.output in ("-1", "3")


@pytest.mark.parametrize("numbers", [False, True])
def test_rows_are_found_by_value_and_not_by_place(numbers: bool) -> None:
    """The channel knows more values than the prior, in another order of rows."""
    scenario = scenario_of({"a": [1, 3], "b": [3, 1]})  # x0, x1
    rows = [[7, 1], [1, 1], [1, 9]]
    inputs: Any = Levels(("other", "x0", "x1"))
    if numbers:
        scenario = Scenario(Prior.from_counts({"a": [1, 3], "b": [3, 1]}, support=[5, 7]))
        inputs = Lattice(Fraction(1, 2), 2, np.array([0, 8, 12]))  # 1, 5, 7
    channel = Channel.of(inputs, levels(2), rows)
    direct = certify_channel(
        scenario_of({"a": [1, 3], "b": [3, 1]}), channel_of(rows[1:]), Fraction(1)
    )
    certificate = certify_channel(scenario, channel, Fraction(1))
    assert (certificate.loss, certificate.holds) == (direct.loss, direct.holds)


def test_a_value_without_a_row_proves_nothing() -> None:
    scenario = scenario_of({"a": [1, 3, 0], "b": [3, 1, 0]})
    two = channel_of([[1, 1], [1, 1]])
    assert certify_channel(scenario, two, HALF).holds  # x2 never occurs
    without = {"a": [1, 3, 0], "b": [3, 1, 0]}
    for priors in ([{**without, "a": [1, 3, 1]}], [without, {**without, "b": [3, 1, 1]}]):
        certificate = certify_channel(scenario_of(*priors), two, HALF)
        assert (certificate.method, certificate.holds, certificate.decided) == (
            "none",
            False,
            False,
        )
        assert certificate.loss == math.inf
        assert "no row for the value x2" in certificate.statement
    unprotected = scenario_of({"a": [1, 3, 0], "b": [3, 1, 0], "c": [0, 0, 1]}, pairs=[("a", "b")])
    assert certify_channel(unprotected, two, HALF).holds


def test_numbers_are_no_levels() -> None:
    scenario = Scenario(Prior.from_counts({"a": [1, 3], "b": [3, 1]}, support=[5, 7]))
    with pytest.raises(InputError, match="both be for numbers, or for levels"):
        certify_channel(scenario, channel_of([[1, 1], [1, 1]]), HALF)


# Bad input ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loose:
    """Rows that nothing has checked."""

    rows: Any
    denominators: Any
    inputs: Levels = levels(2)  # noqa: RUF009  # frozen
    outputs: Levels = levels(2)  # noqa: RUF009


@pytest.mark.parametrize(
    "rows, denominators",
    [
        ([[0.5, 0.5], [1, 1]], (1, 2)),
        ([[1.0, 1], [1, 1]], (2, 2)),
        ([[True, 1], [1, 1]], (2, 2)),
        ([[-1, 3], [1, 1]], (2, 2)),
        ([[1, 1], [1, 1]], (2, 3)),
        ([[1, 1], [0, 0]], (2, 0)),
        ([[1, 1], [1, 1]], (2, 2.0)),
    ],
)
def test_rows_are_checked_again(rows: Any, denominators: Any) -> None:
    loose = Loose(np.array(rows, dtype=object), denominators)
    with pytest.raises(InputError, match="must be whole numbers, none negative"):
        certify_channel(scenario_of({"a": [1, 2], "b": [2, 1]}), loose, HALF)


def test_shapes_and_epsilon_are_checked() -> None:
    scenario = scenario_of({"a": [1, 2], "b": [2, 1]})
    loose = Loose(np.array([[1, 1]], dtype=object), (2,))
    with pytest.raises(InputError, match="shape"):
        certify_channel(scenario, loose, HALF)
    with pytest.raises(InputError, match="epsilon must be above 0"):
        certify_channel(scenario, channel_of([[1, 1], [1, 1]]), Fraction(0))


# Mutants ------------------------------------------------------------------------------------------


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except AssertionError:
        return True
    return False


def test_random_cases_and_a_check_that_mutants_must_fail() -> None:
    check_random(1)


@pytest.mark.parametrize("direction", [0, 1])
def test_mutant_that_drops_a_direction(direction: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_way(scenario: Scenario) -> Any:
        for rho, prior in enumerate(scenario.priors):
            masses = unchanged._whole(prior, scenario.protected)
            for pair in scenario.pairs:
                two = masses[[scenario.protected.index(secret) for secret in pair]]
                high, low = two[direction], two[1 - direction]
                ratio, atom = unchanged._largest_ratio(high, low)
                yield unchanged._Peak(ratio, (rho, pair), atom)

    monkeypatch.setattr(unchanged, "_peaks", one_way)
    assert fails(lambda: check_random(1))


MIXED = Case(
    scenario_of({"a": [10, 10], "b": [11, 9]}, {"a": [2, 18], "b": [2, 18]}),
    channel_of([[1, 0], [0, 1]]),
    HALF,
)


def test_mutant_that_mixes_adversaries(monkeypatch: pytest.MonkeyPatch) -> None:
    check(MIXED)
    real = unchanged._peaks

    def mixed(scenario: Scenario) -> Any:
        masses = np.concatenate([unchanged._whole(p, scenario.protected) for p in scenario.priors])
        ratio, atom = unchanged._largest_ratio(masses.max(axis=0), masses.min(axis=0))
        for peak in real(scenario):
            yield unchanged._Peak(ratio, peak.case, atom)

    monkeypatch.setattr(unchanged, "_peaks", mixed)
    assert fails(lambda: check(MIXED))


def test_mutant_that_compares_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ratio one part in 2**200 above e^epsilon: equal as doubles, and not private."""
    check_edges = test_randomised_response_on_a_secret_that_is_the_value
    check_edges()

    def by_floats(published: Scenario, epsilon: Fraction) -> Any:
        finding = unchanged.unchanged_finding(published, None, 256)
        loss = (finding.lower + finding.upper) / 2
        refuted = loss > float(epsilon)
        return type(finding)(loss, loss, finding.case, finding.atom, refuted), 256

    monkeypatch.setattr(channel_module, "_decided", by_floats)
    assert fails(check_edges)


def test_mutant_that_ignores_the_denominators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module.math, "lcm", lambda *values: max(values))
    assert fails(lambda: check_random(1))


def test_mutant_that_stops_at_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "_enough", lambda finding, epsilon: True)
    assert fails(test_randomised_response_on_a_secret_that_is_the_value)


def test_mutant_that_computes_in_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact rationals of the doubles of the matrix are not the channel."""

    def doubles(scenario: Scenario, channel: Channel, places: Any) -> Scenario:
        one = 2**1100
        masses = [
            np.array([[int(Fraction(p) * one) for p in row] for row in probabilities], dtype=object)
            for probabilities in (p.probabilities @ channel.matrix for p in scenario.priors)
        ]
        secrets = scenario.protected
        priors = [Prior(channel.outputs, secrets, m, (one,) * len(secrets)) for m in masses]
        return Scenario(priors, scenario.pairs)

    monkeypatch.setattr(channel_module, "output_scenario", doubles)
    assert fails(test_randomised_response_on_a_secret_that_is_the_value)


def test_a_loss_far_below_what_epsilon_needs() -> None:
    """Found by chance: a loss of 1e-34 is decided at 128 bits, its last digits are not known."""
    big = 6366805760909027985741435139224001
    prior = Prior.from_counts({"s0": [1, 0, 0], "s2": [big, 1, 0]}, support=["x0", "x1", "x2"])
    made = Channel.of(prior.support, Levels(("x0", "x1"), False), [[1, 1], [1, 0], [1, 0]])
    case_scenario = Scenario(prior)
    certificate = certify_channel(case_scenario, made, Fraction(1, 10))
    assert_right(certificate, largest_ratio(case_scenario, made), Fraction(1, 10))
