# SPDX-License-Identifier: Apache-2.0
"""Scenarios: pairs, several adversaries on one support, and digests."""

from fractions import Fraction

import pytest

from pufferfish.errors import InputError
from pufferfish.prior import Prior
from pufferfish.scenario import Scenario
from pufferfish.support import Lattice, Levels

THREE = Prior.from_mapping({"a": {0: 1}, "b": {1: 1}, "c": {2: 1}})


def test_all_pairs_by_default() -> None:
    scenario = Scenario(THREE)
    assert scenario.pairs == (("a", "b"), ("a", "c"), ("b", "c"))
    assert scenario.is_all_pairs
    assert scenario.protected == ("a", "b", "c")


def test_chosen_pairs_are_cleaned_and_counted_once() -> None:
    scenario = Scenario(THREE, pairs=[["a", " b"], ("b", "a"), ("c", "b")])
    assert scenario.pairs == (("a", "b"), ("c", "b"))
    assert not scenario.is_all_pairs
    assert Scenario(THREE, pairs=[("a", "c")]).protected == ("a", "c")
    assert Scenario(THREE, pairs=[("a", "c")]).is_all_pairs


@pytest.mark.parametrize(
    "pairs, message",
    [
        ([("a", "x")], "unknown secret 'x'"),
        ([("a", "a")], "same secret twice"),
        ([("a",)], "names two secrets"),
        (["ab"], "names two secrets"),
        ([], "no pair"),
        ("some", "'all' or a list"),
    ],
)
def test_wrong_pairs(pairs: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Scenario(THREE, pairs=pairs)  # type: ignore[arg-type]


def test_one_secret_is_nothing_to_tell_apart() -> None:
    with pytest.raises(InputError, match="at least two secrets"):
        Scenario(Prior.from_mapping({"a": {0: 1}}))
    with pytest.raises(InputError, match="none was given"):
        Scenario([])
    with pytest.raises(InputError, match="of type dict was given"):
        Scenario([{}])  # type: ignore[list-item]


def test_several_adversaries_share_the_union_of_their_supports() -> None:
    first = Prior.from_mapping({"a": {0: 1}, "b": {2: 1}})
    second = Prior.from_mapping({"b": {"0.5": ".5", "2": ".5"}, "a": {"1": 1}})
    scenario = Scenario([first, second])
    assert isinstance(scenario.support, Lattice)
    assert scenario.support.values == (0, Fraction(1, 2), 1, 2)
    assert [p.secrets for p in scenario.priors] == [("a", "b")] * 2
    assert scenario.priors[1].probability("b", 1) == Fraction(1, 2)
    assert scenario.priors[0].probability("b", 3) == 1


def test_adversaries_that_do_not_fit_together() -> None:
    other = Prior.from_mapping({"a": {0: 1}, "z": {2: 1}})
    numbers = Prior.from_mapping({"a": {0: 1}, "b": {2: 1}})
    levels = Prior.from_mapping({"a": {"x": 1}, "b": {"y": 1}})
    ordered = Prior.from_mapping({"a": {"x": 1}, "b": {"y": 1}}, order=["x", "y"])
    backwards = Prior.from_mapping({"a": {"x": 1}, "b": {"y": 1}}, order=["y", "x"])
    for wrong, message in (
        ([numbers, other], "same secrets"),
        ([numbers, levels], "numbers and another's on levels"),
        ([levels, ordered], "same order"),
        ([ordered, backwards], "same order"),
    ):
        with pytest.raises(InputError, match=message):
            Scenario(wrong)
    wider = Prior.from_mapping({"a": {"x": 1}, "b": {"z": 1}})
    assert Scenario([levels, wider]).support == Levels(("x", "y", "z"))


def test_the_size_is_that_of_the_protected_secrets() -> None:
    assert Scenario(THREE).cells == 9
    assert Scenario([THREE, THREE], pairs=[("a", "b")]).cells == 2 * 2 * 3


def test_pairs_name_secrets_as_priors_do() -> None:
    prior = Prior.from_mapping({2.0: {0: 1}, True: {1: 1}})
    assert prior.secrets == ("2", "true")
    assert Scenario(prior, pairs=[(2, True)]).pairs == (("2", "true"),)


def test_a_digest_of_numbers_beyond_what_python_prints() -> None:
    tiny = [f"1/{10**990 + k}" for k in range(6)]
    row = dict(enumerate(tiny)) | {9: "1"}
    prior = Prior.from_mapping({"a": row, "b": {0: "1"}})
    assert prior.totals[0] > 10**4300
    other = Prior.from_mapping({"a": row | {5: tiny[0]}, "b": {0: "1"}})
    assert Scenario(prior).digest != Scenario(other).digest


def test_views_hold_a_pairs_own_atoms_only() -> None:
    prior = Prior.from_mapping({"a": {0: 1}, "b": {3: 1}, "c": {100: 1}})
    views = {(v.first, v.second): v for v in Scenario(prior).views()}
    assert views["a", "b"].index.tolist() == [0, 3]
    assert views["b", "c"].index.tolist() == [3, 100]
    assert views["a", "b"].counts_first.tolist() == [1, 0]


def test_digests_tell_scenarios_apart_and_not_their_writing() -> None:
    counts = Prior.from_counts({"a": [2, 4], "b": [1, 1]}, support=[0, 1])
    again = Prior.from_mapping({"b": {1: ".5", 0: ".5"}, "a": {"1": "2/3", "0": "1/3"}})
    assert Scenario(counts).digest == Scenario(again).digest
    assert Scenario([counts, again]).digest != Scenario(counts).digest
    changed = [
        Scenario(Prior.from_counts({"a": [2, 5], "b": [1, 1]}, support=[0, 1])),
        Scenario(Prior.from_counts({"a": [2, 4], "b": [1, 1]}, support=[0, 2])),
        Scenario(Prior.from_counts({"a": [2, 4], "c": [1, 1]}, support=[0, 1])),
        Scenario(Prior.from_counts({"b": [2, 4], "a": [1, 1]}, support=[0, 1])),
        Scenario(
            Prior.from_counts({"a": [2, 4], "b": [1, 1]}, support=["n", "y"], order=["n", "y"])
        ),
    ]
    assert len({s.digest for s in [Scenario(counts), *changed]}) == 6
    big = Prior.from_counts({"a": [2 * 2**70, 4 * 2**70], "b": [3, 3]}, support=[0, 1])
    assert Scenario(big).digest == Scenario(counts).digest
