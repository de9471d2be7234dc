# SPDX-License-Identifier: Apache-2.0
"""The betting bound and the walk, against their literal definitions and the reference values."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import M, real, rising_root
from pufferfish.loss.walk import RATIO, Claim, Wealth, _Test, rescaled, scales, walk
from pufferfish.priors.ambiguity import Counted
from pufferfish.support import Lattice

REFERENCE = json.loads(Path(__file__).with_name("betting.json").read_text())
NAMES = [f"{e['name']}-{e['epsilon1']}-{e['epsilon2']}" for e in REFERENCE]


def beliefs_of(entry: Any) -> tuple[Counted, ...]:
    noise = None if entry["epsilon1"] is None else Fraction(entry["epsilon1"])
    alpha = Fraction(entry["alpha"]) / 2
    return tuple(Counted(tuple(own), entry["rows"], alpha, noise) for own in entry["noisy_counts"])


def literal_upper(belief: Counted, h: Sequence[Any]) -> Any:
    """U, word by word as it is defined, to 40 digits."""
    size = 1 + math.ceil(math.log2(math.sqrt(belief.rows)))
    bets = [real(Fraction(15, 16)), *(real(Fraction(1, 2**k)) for k in range(1, size + 1))]
    noise, one = belief.noise, real(1)
    a = M.exp(-real(noise) / 2) if noise else real(0)

    def term(b: Any, x: Any, m: Any) -> Any:
        return M.log((1 - b * x) / (1 - b * m))

    def moment(g: Any) -> Any:
        return (1 - a) ** 2 / ((1 - a * M.exp(g)) * (1 - a * M.exp(-g))) if noise else one

    def slope(g: Any) -> Any:
        return a * M.exp(g) / (1 - a * M.exp(g)) - a * M.exp(-g) / (1 - a * M.exp(-g))

    kept = []
    for b in bets:
        ends = [abs(term(b, x, m)) for x in h for m in (real(0), one)]
        if noise and (
            max(ends) >= real(noise) / 2
            or sum(belief.counts) < sum(slope(term(b, x, one)) for x in h)
        ):
            continue
        kept.append(b)

    def log_wealth(m: Any) -> Any:
        wealth = real(0)
        for b in kept:
            product = one
            for n, x in zip(belief.counts, h, strict=True):
                g = term(b, x, m)
                product *= M.exp(n * g) / moment(g)
            wealth += product
        return M.log(wealth / (size + 1))

    def excess(m: Any) -> Any:
        return log_wealth(m) + M.log(real(belief.alpha))

    if not kept or excess(one) < 0:
        return one
    if excess(real(0)) >= 0:  # negative counts
        return real(0)
    return rising_root(excess, real(0), one)


def bounds(beliefs: Sequence[Counted], h: Any) -> list[Any]:
    """The bounds of the means of h and of 1 - h, in doubles."""
    start = np.full((len(h), len(beliefs)), 0.5)
    return [Wealth(beliefs, own).upper(start, close=True) for own in (h, 1 - h)]


def loss_bound(beliefs: Sequence[Counted], theta: float) -> float:
    """The bound of the loss that follows from them, the largest of all outputs."""
    n = len(beliefs[0].counts)
    places = np.arange(n)
    h = rescaled(places, 1 / theta, places)
    upper, other = bounds(beliefs, h)
    low = np.exp(-np.maximum(places, n - 1 - places) / theta)[:, None]
    tops, bottoms = low + (1 - low) * upper, low + (1 - low) * (1 - other)
    return float(np.log(tops / bottoms[:, ::-1]).max())


@pytest.fixture
def bets_on_two_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference values of two values are those of bets; shares are bounded better."""
    monkeypatch.setattr(Counted, "is_share", False)


@pytest.mark.parametrize("entry", REFERENCE, ids=NAMES)
@pytest.mark.usefixtures("bets_on_two_values")
def test_bounds_and_walks_are_those_of_the_reference(entry: Any) -> None:
    beliefs, ratio = beliefs_of(entry), Fraction(entry["ratio"])
    epsilon, n = Fraction(entry["epsilon2"]), len(entry["noisy_counts"][0])
    lattice = Lattice(Fraction(1), 0, np.arange(n))
    grid = list(scales(lattice, epsilon, ratio))
    assert grid[entry["step_r"]] == pytest.approx(entry["scale"], rel=1e-14)
    for step, key in ((0, "bound_at_scale_mp"), (1, "bound_at_next_mp")):
        scale, expected = grid[entry["step_r"] + step], float(entry[key])
        # Errors are on the safe side.
        assert expected - 1e-15 <= loss_bound(beliefs, scale) <= expected + 1e-9
    claim = Claim(beliefs, ((0, 1),), lattice, epsilon)
    assert walk([claim], ratio) == grid[entry["step_r"]]
    assert walk([claim]) <= entry["scale"] * float(RATIO)


@pytest.mark.parametrize("entry", REFERENCE, ids=NAMES)
def test_balls_confirm_what_doubles_passed_and_nothing_more(entry: Any) -> None:
    """Means that are a little too small, and losses a little too large, are not confirmed."""
    beliefs, epsilon = beliefs_of(entry), Fraction(entry["epsilon2"])
    places = np.arange(len(entry["noisy_counts"][0]))
    test = _Test(Claim(beliefs, ((0, 1),), Lattice(Fraction(1), 0, places), epsilon))
    scale = next(s for s in scales(test.claim.lattice, epsilon) if s <= entry["scale"] * 1.01)
    assert test.holds(scale)
    assert test.passed is not None
    assert test.confirmed(scale)
    losses = test._losses(1 / scale, places, close=True)
    largest = Fraction(float(losses.max()))
    passed = test.passed = test.means.copy()
    for limit, proved in (
        (largest + Fraction(1, 10**9), True),
        (largest - Fraction(1, 10**9), False),
    ):
        test.claim = replace(test.claim, epsilon=limit)
        assert test.confirmed(scale) == proved
    test.claim = replace(test.claim, epsilon=largest + 1)
    for at in ((0, 0, 0), (1, len(places) - 1, 1)):
        if passed[at] == 1:
            continue
        test.passed = passed.copy()
        test.passed[at] *= 1 - 1e-7
        assert not test.confirmed(scale)


def test_mutants_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound at 2 alpha, and a mean over the kept bets only, are not those of the reference."""
    entry = next(e for e in REFERENCE if e["epsilon1"] == ".15")
    expected, made = float(entry["bound_at_scale_mp"]), Wealth.__init__

    def kept_only(self: Wealth, beliefs: Sequence[Counted], h: Any) -> None:
        made(self, beliefs, h)
        self.needed += math.log(len(self.bets) / len(beliefs[0].bets))

    beliefs = beliefs_of(entry)
    looser = [replace(own, alpha=2 * own.alpha) for own in beliefs]
    assert loss_bound(looser, entry["scale"]) < expected - 1e-3
    monkeypatch.setattr(Wealth, "__init__", kept_only)
    assert loss_bound(beliefs, entry["scale"]) < expected - 1e-3


@given(
    st.integers(2, 5), st.data(),
    st.sampled_from([None, Fraction(1, 10), Fraction(1), Fraction(9)]),
    st.sampled_from([Fraction(1, 4), Fraction(1, 40), Fraction(1, 10**6)]),
    st.sampled_from([0.05, 0.3, 1.0, 7.0, 1e6]),
)  # fmt: skip
def test_bounds_are_those_of_the_definition(
    n: int, data: st.DataObject, noise: Fraction | None, alpha: Fraction, theta: float
) -> None:
    least, most = (0, 300) if noise is None else (-5, 3000)
    rows = data.draw(st.integers(1, 10**4))
    counts = st.tuples(*[st.integers(least, most)] * n)
    beliefs = [Counted(data.draw(counts), rows, alpha, noise) for _ in range(2)]
    h = rescaled(np.arange(n), 1 / theta, np.arange(n))
    upper, other = bounds(beliefs, h)
    y, s = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, 1))
    exact = [M.exp(-abs(x - y) / real(Fraction(theta))) for x in range(n)]
    exact = [(k - min(exact)) / (1 - min(exact)) for k in exact]
    for found, own in ((upper, exact), (other, [1 - x for x in exact])):
        expected = literal_upper(beliefs[s], own)
        assert expected <= found[y, s] <= expected + 1e-9
