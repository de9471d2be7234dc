# SPDX-License-Identifier: Apache-2.0
"""The comonotone coupling: exact margins and ties, few cells."""

import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given

import pufferfish.calibration.coupling as module
from definitions import comonotone as slow_comonotone
from pufferfish.calibration.coupling import Coupling, comonotone
from pufferfish.calibration.relaxed import one_sided, relaxed
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import PairView, Scenario
from strategies import Case, cases

Cell = tuple[int, int, Fraction]


def cells_of(view: PairView, coupling: Coupling) -> list[Cell]:
    """The cells by their cuts, which are exact however long the totals are."""
    cuts = [
        (whole + Fraction(rest, view.total_first)) / view.total_second
        for whole, rest in zip(coupling.whole.tolist(), coupling.rest.tolist(), strict=True)
    ]
    masses = [cut - before for cut, before in zip(cuts, [Fraction(0), *cuts], strict=False)]
    ends = (view.index[own].tolist() for own in (coupling.first, coupling.second))
    return list(zip(*ends, masses, strict=True))


def slow_cells(view: PairView) -> list[Cell]:
    first, second = (
        {Fraction(int(x)): Fraction(int(c), total) for x, c in zip(view.index, counts, strict=True)}
        for counts, total in (
            (view.counts_first, view.total_first), (view.counts_second, view.total_second)
        )
    )  # fmt: skip
    return [(int(x), int(y), m) for x, y, m in slow_comonotone(first, second)]


def check_cells(scenario: Scenario) -> None:
    for view in scenario.views():
        coupling = comonotone(view)
        cells = slow_cells(view)
        assert cells_of(view, coupling) == cells
        assert len(cells) <= 2 * len(view.index) - 1
        assert coupling.distance.tolist() == [abs(x - y) for x, y, _ in cells]
        assert coupling.largest_distance == max(abs(x - y) for x, y, _ in cells)
        for mass, (_, _, exact) in zip(coupling.mass.tolist(), cells, strict=True):
            assert abs(Fraction(mass) / coupling.total / exact - 1) <= Fraction(1, 2**51)
            if coupling.total < 2**62:
                assert Fraction(mass, coupling.total) == exact


@given(cases())
def test_cells_agree_with_a_plain_merge(case: Case) -> None:
    check_cells(Scenario([Prior.from_mapping(text) for text in case.texts], case.pairs))


def scenarios_of_any_size(number: int) -> list[Scenario]:
    """Totals from 2 to beyond every machine word; rows that are multiples of each other."""
    rng = random.Random(3)
    made = []
    for _ in range(number):
        n = rng.randint(1, 9)
        top = rng.choice([1, 50, 10**9, 10**15, 10**16, 2**55, 2**61, 2**70, 10**40])
        rows = [[rng.choice([0, 1, rng.randint(0, top), top]) for _ in range(n)] for _ in "ab"]
        for row in rows:
            row[rng.randrange(n)] += 1
        if rng.random() < 0.4:  # equal distributions, or nearly
            factor = rng.randint(1, 5)
            rows[1] = [factor * c for c in rows[0]]
            rows[1][rng.randrange(n)] += rng.randint(0, 1)
        support = sorted(rng.sample(range(10**6), n))
        made.append(
            Scenario(Prior.from_counts(dict(zip("ab", rows, strict=True)), support=support))
        )
    return made


def test_counts_of_any_size_are_exact() -> None:
    for scenario in scenarios_of_any_size(300):
        check_cells(scenario)
        strict, satisfied = (f(scenario, Fraction(1)).scale for f in (wasserstein, relaxed))
        assert satisfied <= strict


@pytest.mark.parametrize("epsilon", [30, 60, 400])
def test_little_mass_and_a_large_epsilon(epsilon: int) -> None:
    """One line needs it all: e^(5 u) / 10^20 + 1 - 1 / 10^20 = e^eps, in logarithms."""
    rows = {"a": {0: 1}, "b": {0: 1 - Fraction(1, 10**20), 5: Fraction(1, 10**20)}}
    scenario = Scenario(Prior.from_mapping(rows))
    with mpmath.workdps(50):
        tail = mpmath.mpf(10) ** -20
        least = 5 / mpmath.log((mpmath.exp(epsilon) - 1 + tail) / tail)
    assert one_sided(scenario, Fraction(epsilon)).scale == pytest.approx(float(least), rel=1e-12)


def test_mutant_products_that_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quotients in doubles are mended only where what is left of the product fits 64 bits."""
    monkeypatch.setattr(module, "_PRODUCT_SAFE", 2**140)
    with pytest.raises((AssertionError, IndexError)):
        test_counts_of_any_size_are_exact()


def test_ties_are_exact() -> None:
    rows = {"a": {0: ".1", 1: ".2", 1000: ".7"}, "b": {0: ".3", 1000: ".7"}}
    (view,) = Scenario(Prior.from_mapping(rows)).views()
    assert comonotone(view).largest_distance == 1


def test_mutant_float_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cumulative sums of floats move a sliver across the whole range."""

    def floats(ends, factor, divisor):  # type: ignore[no-untyped-def]  # a mutant
        return np.cumsum(np.diff(ends, prepend=0) / divisor) * factor, np.zeros(len(ends))

    monkeypatch.setattr(module, "_quotients", floats)
    with pytest.raises(AssertionError):
        test_ties_are_exact()
