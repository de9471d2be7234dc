# SPDX-License-Identifier: Apache-2.0
"""Scenarios: pairs, several adversaries on one support, sets, views and digests."""

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.priors.ambiguity import (
    Confidence,
    Point,
    Region,
    TVBall,
    ball_around,
    box_of,
    clopper_pearson,
)
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import Lattice, Levels

THREE = Prior.from_mapping({"a": {0: 1}, "b": {1: 1}, "c": {2: 1}})


def counted(*rows: Any, support: Any = (0, 1), **options: Any) -> Prior:
    return Prior.from_counts(dict(zip("abc", rows, strict=False)), support=support, **options)


def values_of(scenario: Scenario) -> tuple[Fraction, ...]:
    assert isinstance(scenario.support, Lattice)
    return scenario.support.values


def test_pairs_are_cleaned_and_counted_once() -> None:
    scenario = Scenario(THREE)
    assert scenario.pairs == (("a", "b"), ("a", "c"), ("b", "c"))
    assert scenario.is_all_pairs
    chosen = Scenario([THREE, THREE], pairs=[["a", " b"], ("b", "a"), ("c", "b")])
    assert chosen.pairs == (("a", "b"), ("c", "b"))
    assert not chosen.is_all_pairs
    assert repr(chosen).startswith("<Scenario of 2 pairs: (a, b), (c, b)\n  <Prior of 3 secrets")
    one = Scenario([THREE, THREE], pairs=[("a", "c")])
    assert (one.protected, one.is_all_pairs) == (("a", "c"), True)
    named = Prior.from_mapping({2.0: {0: 1}, True: {1: 1}})
    pairs: Any = [(2, True)]
    assert Scenario(named, pairs=pairs).pairs == (("2", "true"),)


@pytest.mark.parametrize(
    "pairs, message",
    [
        ([("a", "x")], "unknown secret 'x'"), ([("a", "a")], "same secret twice"),
        ([(1, 1)], "unknown secret '1'"),
        ([("a",)], "names two secrets"), (["ab"], "names two secrets"), ([], "no pair"),
        ("some", "'all' or a list"), (3, "'all' or a list"),
    ],
)  # fmt: skip
def test_wrong_pairs(pairs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Scenario(THREE, pairs=pairs)


def test_one_secret_is_nothing_to_tell_apart() -> None:
    wrong: Any = [{}]
    with pytest.raises(InputError, match="at least two secrets"):
        Scenario(Prior.from_mapping({"a": {0: 1}}))
    with pytest.raises(InputError, match="none was given"):
        Scenario([])
    with pytest.raises(InputError, match="of type dict was given"):
        Scenario(wrong)


def test_with_very_many_secrets_the_pairs_are_named() -> None:
    rows = {f"id{k}": row for k, row in enumerate(np.eye(200, dtype=np.int64))}
    assert len(Scenario(Prior.from_counts(rows, support=range(200))).pairs) == 19900
    many = Prior.from_counts({f"id{k}": [k + 1, 1] for k in range(50_000)}, support=[0, 1])
    with pytest.raises(InputError, match=r"50,000 secrets, .* 1,249,975,000 pairs, .* swapped"):
        Scenario(many)
    pairs = [("id7", "id49999"), ("id8", "id3")]
    scenario = Scenario(many, pairs)
    assert scenario.protected == ("id3", "id7", "id8", "id49999")
    assert len(scenario.sets[0]) == 4


# Several adversaries


def test_joint_priors_share_their_columns_and_values() -> None:
    one = Prior.from_counts(
        {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}, support={"x": [0, 1], "z": ["u", "v"]}
    )
    other = Prior.from_counts(
        {"b": [[1, 2], [3, 4]], "a": [[5, 6], [7, 8]]}, support={"x": [0, 1], "z": ["u", "v"]}
    )
    scenario = Scenario([one, other])
    (_, points) = scenario.sets
    assert isinstance(points[0], Point)
    assert points[0].masses.tolist() == [[5, 6], [7, 8]]  # by name, an axis for each column
    alone = scenario.of_column("z")
    assert alone.priors[1].counts.tolist() == [[4, 6], [12, 14]]
    assert alone.of_column(None) is alone
    with pytest.raises(InputError, match=r"name one of .* x, z"):
        scenario.of_column(None)


def test_adversaries_that_do_not_fit_together() -> None:
    numbers, levels = (counted([1, 1], [1, 1], support=own) for own in ([0, 2], ["x", "y"]))
    ordered = counted([1, 1], [1, 1], support=["x", "y"], order="x,y")
    backwards = counted([1, 1], [1, 1], support=["x", "y"], order="y,x")
    joint = counted([[1]], [[1]], support={"x": [0], "z": [0]})
    elsewhere = counted([[1]], [[1]], support={"x": [0], "y": [0]})
    mixed = counted([[1]], [[1]], support={"x": [0], "z": ["u"]})
    for wrong, message in (
        ([numbers, Prior.from_mapping({"a": {0: 1}, "z": {2: 1}})], "same secrets"),
        ([numbers, levels], "one has Lattice.* and another Levels.* may differ"),
        ([levels, ordered], "in the same order"),
        ([ordered, backwards], "in the same order"),
        ([numbers, joint], "same columns"),
        ([joint, elsewhere], "same columns"),
        ([joint, mixed], "z: Lattice.* z: Levels"),
        ([people(PEOPLE).priors[0], counted([1, 1], [1, 1], support=[0, 7])], "without a unit"),
    ):
        with pytest.raises(InputError, match=message):
            Scenario(wrong)
    wider = counted([1, 0], [0, 1], support=["x", "z"])
    assert Scenario([levels, wider]).support == Levels(("x", "y", "z"))
    named = counted([1, 1], [1, 1], support={"x": ["x", "y"]})
    assert Scenario([levels, named]).priors[1].product.columns == (None,)


def test_views_hold_a_pairs_own_atoms_only() -> None:
    prior = Prior.from_mapping({"a": {0: 1}, "b": {3: 1}, "c": {100: 1}})
    views = list(Scenario(prior, [("a", "b"), ("b", "c")]).views())
    assert [view.index.tolist() for view in views] == [[0, 3], [3, 100]]
    assert views[0].counts_first.tolist() == [1, 0]
    assert (views[1].total_first, views[1].step) == (1, 1)


# Sets


def test_one_level_for_all_cells_of_the_secrets_in_the_pairs() -> None:
    prior = counted([376, 204], [34, 35], [0, 12], confidence="0.95")
    for pairs, cells in (([("a", "b")], 4), ("all", 6)):
        (sets,) = Scenario(prior, pairs).sets
        assert len(sets) == cells // 2
        assert sets[0] == box_of([376, 204], 580, Fraction(1, 20) / cells)
    last = sets[2]
    assert isinstance(last, Region)
    for count, least, room in zip((0, 12), last.least, last.room, strict=True):
        assert (least, least + room) == clopper_pearson(count, 12, Fraction(1, 120))
    assert (sum(last.least) + last.spread, last.free) == (last.unit, 0)


def test_several_adversaries_share_the_level() -> None:
    one = counted([3, 4], [5, 6], confidence=0.9)
    other = counted([9, 4, 0], [5, 1, 0], support=[0, 1, 2], confidence=0.9)
    exact = Prior.from_mapping({"a": {"0": 1}, "b": {"1": 1}})
    near = exact.with_region(tv_radius="1/7")
    sets = Scenario([one, other, exact, near]).sets
    # Supports are widened to their union: 3 values, 2 secrets, 2 counted adversaries.
    first, point, ball = sets[0][0], sets[2][0], sets[3][0]
    assert first == box_of([3, 4, 0], 7, Fraction(1, 10) / 12)
    assert isinstance(point, Point)
    assert (point.masses.tolist(), point.total) == ([1, 0, 0], 1)
    assert ball == ball_around([1, 0, 0], 1, Fraction(1, 7))


# Digests


def test_digests_tell_scenarios_apart_and_not_their_writing() -> None:
    tiny = {k: f"1/{10**990 + k}" for k in range(6)} | {9: "1"}  # beyond what Python prints
    counts = counted([2, 4], [1, 1])
    again = Prior.from_mapping({"b": {1: ".5", 0: ".5"}, "a": {"1": "2/3", "0": "1/3"}})
    big = counted([2 * 2**70, 4 * 2**70], [3, 3])
    same = {Scenario(prior).digest for prior in (counts, again, big)}
    changed = [
        counted([2, 5], [1, 1]),
        counted([1, 1], [2, 4]),
        counted([2, 4], [1, 1], support=[0, 2]),
        counted([2, 4], [1, 1], support=["n", "y"], order="n,y"),
        Prior.from_counts({"a": [2, 4], "c": [1, 1]}, support=[0, 1]),
        Prior.from_mapping({"a": tiny, "b": {0: "1"}}),
        Prior.from_mapping({"a": tiny | {5: tiny[0]}, "b": {0: "1"}}),
        counts.with_region(tv_radius="1e-7"),
        counts.with_region(tv_radius="0.1"),
        counts.with_region(confidence="0.9"),
        big.with_region(confidence="0.9"),  # how wide intervals are depends on the numbers of rows
    ]
    digests = {Scenario(prior).digest for prior in changed} | {Scenario([counts, again]).digest}
    assert (len(same), len(digests), len(same | digests)) == (1, 12, 13)


@given(st.permutations(["a", "b", "c"]), st.booleans())
def test_orders_do_not_change_a_digest(secrets: list[str], swapped: bool) -> None:
    rng = np.random.default_rng(5)
    cubes = [{s: rng.integers(0, 9, (2, 3)) for s in "abc"} for _ in range(2)]

    def digest(secrets: list[str], turn: int) -> str:
        ordered = [{s: cube[s] for s in secrets} for cube in cubes[::turn]]
        support = {"x": [0, 1], "y": ["u", "v", "w"]}
        return Scenario([Prior.from_counts(own, support=support) for own in ordered]).digest

    assert digest(secrets, -1 if swapped else 1) == digest(["a", "b", "c"], 1)


def test_rules_have_an_order_of_their_own() -> None:
    one, other = counted([3, 4], [5, 6]), counted([9, 4], [5, 1])
    near, sure = TVBall(Fraction(1, 9)), Confidence(Fraction(9, 10))
    first = Scenario([one.with_region(tv_radius="1/9"), other.with_region(confidence=0.9)])
    second = Scenario([other.with_region(confidence=0.9), one.with_region(tv_radius="1/9")])
    assert set(first.rules) == {near, sure}
    assert (first.rules, first.digest) == (second.rules, second.digest)
    plain = Scenario([other, one])
    again = plain.with_rules(first.rules)
    assert (plain.has_region, again.has_region) == (False, True)
    assert (again.digest, again.priors[0].rule) == (first.digest, sure)
    assert plain.with_rules(first.rules[::-1]).digest != first.digest
    with pytest.raises(InputError, match="1 regions were given for 2 priors"):
        plain.with_rules([sure])


PEOPLE = [("p", "a", 0), ("p", "a", 1), ("q", "b", 1), ("q", "b", 1), ("r", "b", 0), ("s", "a", 1)]


def people(rows: list[tuple[str, str, int]]) -> Scenario:
    frame = pd.DataFrame(rows, columns=["id", "s", "x"])
    return Scenario(Prior.from_table(frame, secret="s", public="x", unit="id"))


def test_whose_rows_are_whose_is_part_of_the_scenario() -> None:
    scenario = people(PEOPLE)
    assert scenario.unit == "id"
    assert scenario.row_numbers == (1, 2)
    digests = {scenario.digest}
    for other in (
        [PEOPLE[1], PEOPLE[0], *PEOPLE[2:]],  # another order of one person's rows
        [("s", "a", 0), *PEOPLE[1:5], ("p", "a", 1)],  # the same counts of rows
    ):
        digests.add(people(other).digest)
    frame = pd.DataFrame(PEOPLE, columns=["id", "s", "x"])
    digests.add(Scenario(Prior.from_table(frame, secret="s", public="x")).digest)
    assert len(digests) == 4
    renamed = [(name * 2, s, x) for name, s, x in PEOPLE]
    assert people(renamed).digest == scenario.digest


LATTICES = st.tuples(
    st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(5, 2), Fraction(1, 10**40)]),
    st.sampled_from([0, -7, 10**30]),
    st.lists(st.integers(1, 40), max_size=5).map(lambda gaps: [0, *np.cumsum(gaps).tolist()]),
)


@given(st.lists(LATTICES, min_size=2, max_size=3))
def test_the_union_holds_exactly_the_values_of_all(lattices: list[Any]) -> None:
    priors = []
    for step, origin, index in lattices:
        values = [str(step * (origin + k)) for k in index]
        masses = {value: Fraction(1, len(values)) for value in values}
        priors.append(Prior.from_mapping({"a": masses, "b": {values[0]: 1}}, step=step))
    try:
        scenario = Scenario(priors)
    except InputError:  # a range of too many steps
        return
    every = {value: None for p in priors for value in p.support.values}
    assert values_of(scenario) == tuple(sorted(every))
    for before, after in zip(priors, scenario.priors, strict=True):
        for k, value in enumerate(before.support.values):
            at = values_of(scenario).index(value)
            assert after.probability("a", at) == before.probability("a", k)
