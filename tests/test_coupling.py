# SPDX-License-Identifier: Apache-2.0
"""The comonotone coupling has exact margins, exact ties, and few cells."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import pufferfish.coupling
from pufferfish.coupling import Coupling, comonotone
from pufferfish.prior import Prior
from pufferfish.scenario import PairView, Scenario
from slow import definitions, strategies


def cells_of(view: PairView, coupling: Coupling) -> list[tuple[int, int, Fraction]]:
    return [
        (int(view.index[i]), int(view.index[j]), Fraction(int(m), coupling.total))
        for i, j, m in zip(coupling.first, coupling.second, coupling.mass, strict=True)
    ]


def slow_cells(view: PairView) -> list[tuple[int, int, Fraction]]:
    rows = [
        {Fraction(int(x)): Fraction(int(c), total) for x, c in zip(view.index, counts, strict=True)}
        for counts, total in (
            (view.counts_first, view.total_first),
            (view.counts_second, view.total_second),
        )
    ]
    return [(int(x), int(y), m) for x, y, m in definitions.comonotone(rows[0], rows[1])]


@given(strategies.cases())
def test_cells_agree_with_a_plain_merge(case: strategies.Case) -> None:
    scenario = Scenario([Prior.from_mapping(text) for text in case.texts], case.pairs)
    for view in scenario.views():
        coupling = comonotone(view)
        assert cells_of(view, coupling) == slow_cells(view)
        assert len(coupling.mass) <= 2 * len(view.index) - 1
        assert coupling.distance.tolist() == [abs(x - y) for x, y, _ in cells_of(view, coupling)]


@given(strategies.large())
def test_cells_agree_on_larger_supports(case: strategies.Case) -> None:
    scenario = Scenario([Prior.from_mapping(text) for text in case.texts], case.pairs)
    for view in scenario.views():
        assert cells_of(view, comonotone(view)) == slow_cells(view)


@given(strategies.cases())
def test_large_integers_take_the_same_way(case: strategies.Case) -> None:
    scenario = Scenario(Prior.from_mapping(case.texts[0]), case.pairs)
    plain = [cells_of(v, comonotone(v)) for v in scenario.views()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pufferfish.coupling, "INT64_SAFE", 2)
        assert [cells_of(v, comonotone(v)) for v in scenario.views()] == plain


def distance(scenario: Scenario) -> int:
    return max(comonotone(view).largest_distance for view in scenario.views())


TIES = Scenario(
    Prior.from_mapping({"a": {0: ".1", 1: ".2", 1000: ".7"}, "b": {0: ".3", 1000: ".7"}})
)


def test_ties_are_exact() -> None:
    assert distance(TIES) == 1


def test_float_ties_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that adds probabilities in floats moves a sliver across the whole range."""

    def float_ends(counts, factor, total):  # type: ignore[no-untyped-def]
        at = np.flatnonzero(counts)
        return np.cumsum(counts[at] * factor / total), at

    monkeypatch.setattr(pufferfish.coupling, "_scaled_ends", float_ends)
    with pytest.raises(AssertionError):
        test_ties_are_exact()


def test_counts_whose_products_pass_64_bits() -> None:
    big = 3 * 2**61 + 1
    scenario = Scenario(
        Prior.from_counts({"a": [big, big], "b": [2 * big, 2 * big]}, support=[0, 10**6])
    )
    assert distance(scenario) == 0
    nearly = Scenario(
        Prior.from_counts({"a": [big, big], "b": [2 * big + 1, 2 * big]}, support=[0, 10**6])
    )
    assert distance(nearly) == 10**6
    coprime = Scenario(
        Prior.from_counts({"a": [2**40 + 1, 2**40], "b": [2**40 - 1, 2**40]}, support=[0, 7])
    )
    assert distance(coprime) == 7
