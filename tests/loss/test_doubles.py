# SPDX-License-Identifier: Apache-2.0
"""RateLoss, the loss for searching: against balls, against the definitions, on large supports."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loss_cases import EXTREME, scenario_of, scenario_of_case, scenario_of_region
from pufferfish.loss import doubles, passes
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.proof import certify, loss_bound
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import make_levels
from strategies import Case, Robust, cases, large, robust

ONE = Fraction(1)
RATES = st.sampled_from([1e-9, 1e-3, 0.1, 0.7, 1.0, 3.0, 50.0, 1e4, 1e6])


def check(scenario: Scenario, u: float) -> None:
    """The loss is that of balls, and its worst witness attains it."""
    loss = RateLoss(scenario, {0: ONE})
    value, witness = loss.worst(u)
    scale = float(scenario.lattice.step / Fraction(u))
    truth = loss_bound(scenario, {0: [DiscreteLaplace(scale, scenario.lattice.step)]})
    # The double of the scale is not u itself.
    assert value == pytest.approx(truth.value, rel=1e-13, abs=loss.error)
    if witness:
        again, slope = loss.at(witness, u)
        assert again == pytest.approx(value, rel=1e-12, abs=1e-13)
        near = loss.at(witness, u * (1 + 1e-6))[0]
        assert near - again == pytest.approx(slope * u * 1e-6, rel=1e-2, abs=1e-11)


@given(cases() | large(), RATES)
def test_points_agree_with_balls(case: Case, u: float) -> None:
    check(scenario_of_case(case), u)


def test_what_lies_behind_the_start_of_the_next_block_counts() -> None:
    """Its start is 14 steps away, at 50 times theta each, but its mass is near this block's end."""
    places = [*range(22), 23, 25, 26, 27, 29, 30, 32, 33]
    first = {0, 2, 3, 4, 5, 7, 8, 11, 13, 14, 17, 18, 23, 25, 27, 30}
    second = {0, 6, 10, 12, 15, 16, 20, 21, 26, 33}
    rows = {"a": [int(x in first) for x in places], "b": [int(x in second) for x in places]}
    scenario = Scenario(Prior.from_counts(rows, support=places))
    for u in (30.0, 49.9, 50.0, 50.1):
        check(scenario, u)


@given(robust(most=8), st.sampled_from([1e-3, 0.1, 1.0, 3.0]))
def test_regions_agree_with_balls(case: Robust, u: float) -> None:
    check(scenario_of_region(case), u)


@given(cases(), st.sampled_from([0.1, 1.0, 3.0]))
@settings(max_examples=20)
def test_balls_for_tiny_losses(case: Case, u: float) -> None:
    scenario = scenario_of_case(case)
    plain = RateLoss(scenario, {0: ONE})
    precise = plain.in_balls(200)
    value, witness = precise.worst(u)
    assert value == pytest.approx(plain.worst(u)[0], rel=1e-12, abs=1e-13)
    if witness:
        again, slope = precise.at(witness, u)
        assert again == pytest.approx(value, rel=1e-14)
        assert slope == pytest.approx(plain.at(witness, u)[1], rel=1e-5, abs=1e-9)


def test_a_loss_that_doubles_cannot_see() -> None:
    rows = {"a": {0: ".6", 5: ".4"}, "b": {0: ".599999999999999", 5: ".400000000000001"}}
    scenario = Scenario(Prior.from_mapping(rows))
    value = RateLoss(scenario, {0: ONE}).in_balls(256).worst(1 / 14.86006705994)[0]
    assert value == pytest.approx(3.448275862069e-16, rel=1e-11)
    assert RateLoss(EXTREME, {0: ONE}).bits > 0
    check(EXTREME, 1.0)


def test_further_noise_beside_what_is_out() -> None:
    rows = {"a": [[5, 1], [2, 3]], "b": [[1, 4], [3, 3]]}
    scenario = Scenario(Prior.from_counts(rows, support={"x": [0, 1], "z": [0, 3]}))
    levels = make_levels(["p", "q"])
    channel = Channel(scenario.product.axes[1], levels, [[3, 1], [1, 2]])
    out = {0: [DiscreteLaplace(2.0, ONE)], 1: [channel]}
    loss = RateLoss(scenario, {0: ONE, 1: Fraction(3, 2)}, out)
    for u in (0.1, 1.0, 4.0):
        both = {
            0: [*out[0], DiscreteLaplace(1 / u, ONE)],
            1: [*out[1], DiscreteLaplace(1 / (1.5 * u), ONE)],
        }
        value, witness = loss.worst(u)
        assert value == pytest.approx(loss_bound(scenario, both).value, rel=1e-12)
        again, slope = loss.at(witness, u)
        assert again == pytest.approx(value, rel=1e-12)
        near = loss.at(witness, u * (1 + 1e-6))[0]
        assert (near - again) / (u * 1e-6) == pytest.approx(slope, rel=1e-3, abs=1e-8)
    # Nothing further: the loss of what is out, at any u.
    assert RateLoss(scenario, {}, out).worst(1.0)[0] == pytest.approx(
        loss_bound(scenario, out).value
    )


def test_what_does_not_differ_loses_nothing() -> None:
    scenario = Scenario(Prior.from_counts({"a": [1, 2], "b": [2, 4]}, support=[0, 1]))
    assert RateLoss(scenario, {0: ONE}).worst(1.0) == (0.0, None)
    assert RateLoss(scenario, {0: ONE}).worst(1e300)[0] == math.inf  # beyond what doubles hold


SHAPES = {
    "smooth": lambda rng, x: rng.poisson(1000 * np.exp(-((x - rng.normal(0, 0.1)) ** 2))) + 1,
    "rough": lambda rng, x: rng.integers(0, 1000, len(x)),
    "holes": lambda rng, x: rng.poisson(300, len(x)) * (rng.random(len(x)) < 0.6),
    "1e9": lambda rng, x: rng.integers(0, 10**9, len(x)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_large_supports(shape: str) -> None:
    rng, n = np.random.default_rng(7), 30_000
    x = np.linspace(-3, 3, n)
    counts = {s: SHAPES[shape](rng, x) for s in "ab"}
    scenario = Scenario(Prior.from_counts(counts, support=np.arange(n)))
    loss = RateLoss(scenario, {0: ONE})
    for u in (1e-3, 0.3):
        value = loss.worst(u)[0]
        found = certify(scenario, 1 / u)
        assert found.method == "float-bound"
        assert abs(value - found.loss) <= loss.error * (1 + value)


def test_smaller_supports_to_start_from() -> None:
    rng, n = np.random.default_rng(8), 50_000
    x = np.linspace(-3, 3, n)
    counts = {s: 1 + rng.poisson(900 * np.exp(-((x - c) ** 2))) for s, c in (("a", 0), ("b", 0.2))}
    scenario = Scenario(Prior.from_counts(counts, support=np.arange(n)))
    loss = RateLoss(scenario, {0: ONE})
    coarse, local = loss.smaller(1000)
    # Theta is 2,000 atoms wide: cells of 50 see nearly all of it.
    assert coarse.worst(1 / 2000)[0] == pytest.approx(loss.worst(1 / 2000)[0], rel=1e-2)
    assert local.worst(1.0)[0] <= loss.worst(1.0)[0] * (1 + 1e-9)
    assert loss.in_balls(128).smaller() == []


# Mutants ------------------------------------------------------------------------------------------


def test_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": {0: ".7", 4: ".3"}, "b": {1: ".9", 4: ".1"}}
    turned = {"a": {0: ".999", 1: ".001"}, "b": {0: ".5", 1: ".5"}}

    def honest() -> None:
        for u in (0.5, 400.0):
            check(scenario_of(rows), u)
        check(scenario_of(turned), 1.0)

    def left_only(index: np.ndarray, logs: np.ndarray, u: float) -> tuple:
        left, right = both(index, logs, u)
        return left, np.full_like(right, -np.inf)

    def to_the_right(*args: np.ndarray) -> np.ndarray:
        masses, grown, shrunk, left, right = args
        return plain(masses, grown, shrunk, left, right * 0)

    def forward(tops: np.ndarray, bottoms: np.ndarray, sides: object, over: Any) -> tuple:
        return largest(tops, bottoms, ([0], [1]), over)

    plain, both, largest = passes._plain, passes.both_sides, doubles.largest
    for owner, name, mutant in ((passes, "both_sides", left_only), (doubles, "largest", forward)):
        honest()
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, mutant)
            with pytest.raises(AssertionError):
                honest()
    # Blocks of one atom live by their carries alone.
    monkeypatch.setattr(passes, "_block_size", lambda index, u: 1)
    honest()
    monkeypatch.setattr(passes, "_plain", to_the_right)
    with pytest.raises(AssertionError):
        honest()


def forget(pieces: Iterator[tuple[int, np.ndarray]]) -> Iterator[tuple[int, np.ndarray]]:
    yield next(pieces)


def test_mutant_only_the_first_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 70_000
    counts = {"a": np.full(n, 5), "b": np.full(n, 5)}
    counts["b"][-1] = 500
    scenario = Scenario(Prior.from_counts(counts, support=np.arange(n)))

    def close() -> None:
        value = RateLoss(scenario, {0: ONE}).worst(0.5)[0]
        assert value == pytest.approx(certify(scenario, 2.0).loss, rel=1e-9)

    close()
    pieces = passes.PlainPass.pieces
    monkeypatch.setattr(passes.PlainPass, "pieces", lambda self, u: forget(pieces(self, u)))
    with pytest.raises(AssertionError):
        close()
