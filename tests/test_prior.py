# SPDX-License-Identifier: Apache-2.0
"""Priors from mappings and counts are exact, and wrong ones are refused by name."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.calibration import NOISE, calibrate
from pufferfish.errors import InputError
from pufferfish.prior import Prior
from pufferfish.rationals import show
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Levels
from slow import strategies


def test_decimals_are_exact() -> None:
    prior = Prior.from_mapping({"a": {"0": ".1", "1": ".2", "2": ".7"}, "b": {"0": 0.3, "2": 0.7}})
    assert prior.probability("a", 1) == Fraction(1, 5)
    assert prior.probability("b", 1) == 0
    assert prior.probability("b", 0) == Fraction(3, 10)
    assert prior.notes == ()


@given(strategies.cases())
def test_every_probability_survives(case: strategies.Case) -> None:
    for written, exact in zip(case.texts, case.priors, strict=True):
        prior = Prior.from_mapping(written)
        assert isinstance(prior.support, Lattice)
        for secret, row in exact.items():
            for k, value in enumerate(prior.support.values):
                assert prior.probability(secret, k) == row.get(value, 0)
        assert np.allclose(prior.probabilities.sum(axis=1), 1, rtol=1e-12)


def test_keys_in_any_order_and_of_any_kind() -> None:
    prior = Prior.from_mapping({"a": {30: ".2", "10": ".5", 20.0: ".3"}, "b": {"2e1": 1}})
    assert isinstance(prior.support, Lattice)
    assert prior.support.values == (10, 20, 30)
    assert [prior.probability("b", k) for k in range(3)] == [0, 1, 0]


def test_keys_that_are_not_all_numbers_are_levels() -> None:
    prior = Prior.from_mapping({"a": {"1": 0.5, "two": 0.5}})
    assert prior.support == Levels(("1", "two"), ordered=False)
    ordered = Prior.from_mapping({"a": {"hi": 0.5, "lo": 0.5}}, order=["lo", "hi"])
    assert ordered.support == Levels(("lo", "hi"), ordered=True)
    assert ordered.probability("a", 0) == Fraction(1, 2)


def test_a_step_gathers_values() -> None:
    prior = Prior.from_mapping({"a": {"0.1": ".25", "0.2": ".25", "0.9": ".5"}}, step=1)
    assert isinstance(prior.support, Lattice)
    assert prior.support.values == (0, 1)
    assert prior.probability("a", 0) == Fraction(1, 2)


def test_a_sum_within_a_millionth_is_renormalised_and_said_so() -> None:
    prior = Prior.from_mapping({"a": {0: "0.5", 1: "0.4999999"}, "b": {0: "1"}})
    assert prior.totals[0] == int(prior.counts[0].sum())
    assert sum(prior.probability("a", k) for k in range(2)) == 1
    assert len(prior.notes) == 1
    assert "renormalised" in prior.notes[0]
    assert "'a'" in prior.notes[0]


def test_printed_thirds_are_read_as_thirds() -> None:
    prior = Prior.from_mapping({"a": {0: 1 / 6, 1: 1 / 6, 2: 4 / 6}, "b": {0: 1 / 3, 2: 2 / 3}})
    assert prior.probability("a", 0) + prior.probability("a", 1) == prior.probability("b", 0)
    assert all("fractions" in note for note in prior.notes)


def test_decimals_that_sum_to_one_are_left_as_they_are() -> None:
    prior = Prior.from_mapping({"a": {0: "0.3333333333", 1: "0.6666666667"}})
    assert prior.probability("a", 0) == Fraction(3333333333, 10**10)
    assert prior.notes == ()


@pytest.mark.parametrize(
    "mapping, message",
    [
        ([0.5, 0.5], "mapping"),
        ({}, "at least one secret"),
        ({"a": [0.5, 0.5]}, "values and probabilities"),
        ({"a": {}}, "sum to 0"),
        ({"a": {0: 0.97}}, "'a' sum to 0.97"),
        ({"a": {0: 1.5}}, "'a' sum to 1.5"),
        ({"a": {0: 0, 1: 0}}, "'a' sum to 0"),
        ({"a": {0: -0.1, 1: 1.1}}, "negative probability -0.1"),
        ({"a": {0: "x"}}, "probability of 0 under secret 'a'"),
        ({"a": {"inf": 1}}, "not a finite"),
        ({"a": {"1": 0.5, "1.0": 0.5}}, "same value twice"),
        ({"a": {0: 1}, " a": {0: 1}}, "given twice"),
        ({"a": {None: 1}}, "value of the support"),
    ],
)
def test_wrong_mappings(mapping: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prior.from_mapping(mapping)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "order, names",
    [
        ("alphabetical", ("high", "low", "mid")),
        ("appearance", ("low", "mid", "high")),
        ("high,mid,low", ("high", "mid", "low")),
        (("high", "mid", "low"), ("high", "mid", "low")),
    ],
)
def test_orders_of_levels(order: object, names: tuple[str, ...]) -> None:
    mapping = {"a": {"low": ".5", "mid": ".5"}, "b": {"high": "1"}}
    given_order: Any = order
    prior = Prior.from_mapping(mapping, order=given_order)
    assert prior.support == Levels(names, ordered=True)
    counts = Prior.from_counts(
        {"a": [1, 1, 0], "b": [0, 0, 2]}, support=["low", "mid", "high"], order=given_order
    )
    assert counts.support == prior.support
    assert counts.probabilities.tolist() == prior.probabilities.tolist()


@pytest.mark.parametrize("order", ["alphabetic", 5, []])
def test_orders_that_are_refused(order: Any) -> None:
    with pytest.raises(InputError, match=r"^order "):
        Prior.from_mapping({"a": {"x": 1}}, order=order)
    with pytest.raises(InputError, match=r"^order "):
        Prior.from_counts({"a": [1]}, support=["x"], order=order)


@pytest.mark.parametrize("mass", ["1e-309", "1e-323", "1e-400", "1e-1000", "2e-999"])
@pytest.mark.parametrize("sums_to_one", [True, False])
def test_masses_below_every_double(mass: str, sums_to_one: bool) -> None:
    rest = show(1 - Fraction(mass)) if sums_to_one else "1"
    prior = Prior.from_mapping({"a": {0: rest, 1: mass}, "b": {0: "0.5", 1: "0.5"}})
    assert bool(prior.notes) != sums_to_one
    assert all(f"1+{mass}" in note for note in prior.notes)
    assert 0 < prior.probability("a", 1) <= Fraction(mass)
    assert prior.probabilities[0].tolist() == [1.0, float(mass)]
    scales = [calibrate(Scenario(prior), 1, name).scale for name in NOISE]
    assert all(scale is not None and 0.5 < scale <= 1 for scale in scales)


@pytest.mark.parametrize("mass", ["1e-1001", "1e-1000000000", f"0.{'0' * 1000}1", "1/1e9"])
def test_masses_that_are_too_small(mass: str) -> None:
    with pytest.raises(InputError, match="must be a number") as caught:
        Prior.from_mapping({"a": {0: "1", 1: mass}})
    assert "finite" not in str(caught.value)


def test_order_and_step_where_they_do_not_belong() -> None:
    with pytest.raises(InputError, match="order is for levels"):
        Prior.from_mapping({"a": {0: 1}}, order=["0"])
    with pytest.raises(InputError, match="step is for numbers"):
        Prior.from_mapping({"a": {"x": 1}}, step=1)


COUNTS = st.lists(st.integers(0, 10**6), min_size=1, max_size=6).filter(any)


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_quick_way_for_integers_agrees_with_the_general_one(counts: list[int], random) -> None:
    support = random.sample(range(-50, 50), len(counts))
    quick = Prior.from_counts({"a": counts}, support=np.array(support))
    general = Prior.from_counts({"a": counts}, support=[str(v) for v in support])
    assert isinstance(quick.support, Lattice)
    assert quick.support.same_as(general.support)
    assert quick.counts.tolist() == general.counts.tolist()
    assert quick.totals == general.totals == (sum(counts),)


def test_counts_of_any_size_and_kind() -> None:
    prior = Prior.from_counts({"a": [2**80, 1], "b": np.array([3.0, 1.0])}, support=["0.5", 1])
    assert prior.probability("a", 1) == Fraction(1, 2**80 + 1)
    assert prior.probability("b", 0) == Fraction(3, 4)
    assert prior.counts.dtype == object
    levels = Prior.from_counts({"a": [1, 2]}, support=["y", "x"])
    assert levels.support == Levels(("x", "y"))
    assert levels.counts.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    "counts, support, message",
    [
        ([1], [0], "mapping"),
        ({"a": [1, 2]}, [0], "2 counts"),
        ({"a": [-1, 2]}, [0, 1], "negative count -1"),
        ({"a": [0.5, 0.5]}, [0, 1], "whole numbers"),
        ({"a": [0, 0]}, [0, 1], "'a' has no mass"),
        ({"a": [1, 1]}, [0, 0], "same value twice"),
        ({"a": [1, 1]}, ["0", "0.0"], "same value twice"),
        ({"a": [1, None]}, [0, 1], "count of secret"),
        ({"a": [1, 1], "a ": [1, 1]}, [0, 1], "given twice"),
        ({"a": []}, [], "empty"),
        ({"a": [1, 1]}, np.array([0, 2**62]), r"2\*\*53"),
    ],
)
def test_wrong_counts(counts: object, support: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Prior.from_counts(counts, support=support)  # type: ignore[arg-type]


def test_an_unknown_secret_gets_a_near_match() -> None:
    prior = Prior.from_counts({"married": [1], "single": [1]}, support=[0])
    with pytest.raises(InputError, match="did you mean 'married'"):
        prior.row("maried")


def test_counts_cannot_be_changed_afterwards() -> None:
    prior = Prior.from_counts({"a": [1, 2]}, support=[0, 1])
    with pytest.raises(ValueError, match="read-only"):
        prior.counts[0, 0] = 5
