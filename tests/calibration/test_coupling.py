# SPDX-License-Identifier: Apache-2.0
"""The comonotone coupling: exact margins and ties, few cells; its sides have private roots."""

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import pufferfish.calibration.coupling as module
import pufferfish.calibration.relaxed as sides
from definitions import comonotone as slow_comonotone
from definitions import pair_sides, real
from pufferfish.calibration.coupling import Coupling, comonotone
from pufferfish.calibration.relaxed import Side, scale_of_sides
from pufferfish.errors import PufferfishError
from pufferfish.numbers import float_down
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import PairView, Scenario
from strategies import Case, cases


def scenario_of(case: Case) -> Scenario:
    return Scenario([Prior.from_mapping(text) for text in case.texts], case.pairs)


def two(first: list[int], second: list[int], support: list[int] | None = None) -> Scenario:
    places = list(range(len(first))) if support is None else support
    return Scenario(Prior.from_counts({"a": first, "b": second}, support=places))


Cell = tuple[int, int, Fraction]


def cells_of(view: PairView, coupling: Coupling) -> list[Cell]:
    """The cells by their cuts, which are exact however long the totals are."""
    cuts = [
        (whole + Fraction(rest, view.total_first)) / view.total_second
        for whole, rest in zip(coupling.whole.tolist(), coupling.rest.tolist(), strict=True)
    ]
    masses = [cut - before for cut, before in zip(cuts, [Fraction(0), *cuts], strict=False)]
    places = view.index.tolist()
    return [
        (places[i], places[j], mass)
        for i, j, mass in zip(
            coupling.first.tolist(), coupling.second.tolist(), masses, strict=True
        )
    ]


def slow_cells(view: PairView) -> list[Cell]:
    rows = [
        {Fraction(int(x)): Fraction(int(c), total) for x, c in zip(view.index, counts, strict=True)}
        for counts, total in (
            (view.counts_first, view.total_first),
            (view.counts_second, view.total_second),
        )
    ]
    return [(int(x), int(y), m) for x, y, m in slow_comonotone(rows[0], rows[1])]


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
    check_cells(scenario_of(case))


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
        made.append(two(rows[0], rows[1], sorted(rng.sample(range(10**6), n))))
    return made


def test_counts_of_any_size_are_exact() -> None:
    for scenario in scenarios_of_any_size(300):
        check_cells(scenario)


def test_mutant_products_that_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quotients in doubles are mended only where what is left of the product fits 64 bits."""
    monkeypatch.setattr(module, "_PRODUCT_SAFE", 2**140)
    with pytest.raises((AssertionError, IndexError)):
        test_counts_of_any_size_are_exact()


def distance(scenario: Scenario) -> int:
    return max(comonotone(view).largest_distance for view in scenario.views())


def test_ties_are_exact() -> None:
    rows = {"a": {0: ".1", 1: ".2", 1000: ".7"}, "b": {0: ".3", 1000: ".7"}}
    assert distance(Scenario(Prior.from_mapping(rows))) == 1


def test_mutant_float_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cumulative sums of floats move a sliver across the whole range."""

    def floats(ends, factor, divisor):  # type: ignore[no-untyped-def]
        return np.cumsum(np.diff(ends, prepend=0) / divisor) * factor, np.zeros(len(ends))

    monkeypatch.setattr(module, "_quotients", floats)
    with pytest.raises(AssertionError):
        test_ties_are_exact()


# The sides --------------------------------------------------------------------------------------


def check_sides(case: Case) -> None:
    """No side asks for less noise than its slow root, and for hardly more."""
    below = float_down(case.epsilon)
    order = itertools.product(case.priors, case.pairs)
    for (prior, pair), view in zip(order, scenario_of(case).views(), strict=True):
        coupling = comonotone(view)
        given_x, given_other = pair_sides(prior, pair, case.epsilon)
        for second, expected in ((True, given_other), (False, given_x)):
            side = Side(coupling, second, below)
            u = side.largest_rate()
            if expected == 0:
                assert math.isinf(u)
                continue
            scale = real(view.step / Fraction(u))
            assert expected <= scale <= expected * (1 + real("1e-11"))
            assert side.largest_rate(u) >= u * (1 - 3e-13)


@given(cases())
def test_sides_are_their_roots_from_the_private_side(case: Case) -> None:
    check_sides(case)


def some_cases(number: int = 25) -> list[Case]:
    """Two secrets with small counts, and an epsilon that is no double."""
    rng = random.Random(5)
    made = []
    for _ in range(number):
        prior = {}
        for secret in "ab":
            counts = [rng.randint(1, 9) for _ in range(4)]
            prior[secret] = {Fraction(x): Fraction(c, sum(counts)) for x, c in enumerate(counts)}
        made.append(Case((prior,), (("a", "b"),), Fraction(rng.randint(1, 99), 997)))
    return made


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except (AssertionError, PufferfishError):
        return True
    return False


def test_mutant_sides_without_their_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    made = some_cases()
    for case in made:
        check_sides(case)
    monkeypatch.setattr(sides, "_MARGIN", 0.0)
    assert any(fails(lambda case=case: check_sides(case)) for case in made)


@given(cases())
def test_many_pairs_need_what_the_worst_pair_needs(case: Case) -> None:
    scenario = scenario_of(case)
    for choose in (min, max):
        alone = [
            scale_of_sides(Scenario(prior, [pair]), case.epsilon, choose)
            for prior in scenario.priors
            for pair in scenario.pairs
        ]
        together = scale_of_sides(scenario, case.epsilon, choose)
        assert together == pytest.approx(max(alone), rel=1e-13)


# The paper's definitions, dense and line by line --------------------------------------------------


def uneven() -> Scenario:
    """Lines of many cells: Newton's method needs several steps."""
    rng = np.random.default_rng(6)
    return two([1] + [0] * 39, rng.integers(1, 99, 40).tolist())


def test_a_root_that_is_not_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An iterate of Newton's method from above is a scale that is not private."""
    monkeypatch.setattr(sides, "_MAX_STEPS", 1)
    with pytest.raises(PufferfishError, match="1 steps"):
        scale_of_sides(uneven(), Fraction(1), max)
