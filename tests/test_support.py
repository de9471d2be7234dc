# SPDX-License-Identifier: Apache-2.0
"""The support: exact lattices of any offset, and levels with and without an order."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.support import (
    Levels,
    lattice_index,
    lattice_of,
    make_lattice,
    make_levels,
    nearest_unit,
    step_of,
)
from pufferfish.supportfile import support_from_dict, support_to_dict

VALUES = st.lists(
    st.fractions(min_value=-1000, max_value=1000, max_denominator=12), min_size=1, max_size=12
)


@given(VALUES)
def test_a_lattice_holds_exactly_its_values(values: list[Fraction]) -> None:
    lattice = make_lattice(values)
    assert lattice.values == tuple(sorted(set(values)))
    assert lattice.index[0] == 0


@given(VALUES)
def test_the_step_is_the_largest_that_divides_one_and_every_value(values: list[Fraction]) -> None:
    step = step_of(values)
    assert all((v / step).denominator == 1 for v in [Fraction(1), *values])
    for k in range(2, 6):
        assert any((v / (k * step)).denominator != 1 for v in [Fraction(1), *values])


def test_integers_beyond_doubles_stay_apart() -> None:
    lattice = make_lattice([Fraction(9007199254740992), Fraction(9007199254740993)])
    assert lattice.size == 2
    assert lattice.value(1) == 9007199254740993
    assert lattice.name(1) == "9007199254740993"


def test_the_half_step_example() -> None:
    lattice = make_lattice([Fraction("0.25"), Fraction("0.5"), Fraction("1.75")])
    assert lattice.step == Fraction(1, 4)
    assert lattice.index.tolist() == [0, 1, 6]


def test_a_given_step_rounds_to_the_nearest_multiple_ties_to_even() -> None:
    values = [Fraction("0.5"), Fraction("1.5"), Fraction("1.6"), Fraction("-0.5")]
    assert lattice_index(values, Fraction(1)) == [0, 2, 2, 0]
    assert make_lattice(values, Fraction(1)).values == (0, 2)


@pytest.mark.parametrize("step", [Fraction(0), Fraction(-1)])
def test_a_step_that_is_not_positive_is_refused(step: Fraction) -> None:
    with pytest.raises(InputError, match="step"):
        make_lattice([Fraction(1)], step)


def test_too_fine_a_step_is_refused_with_a_coarser_one() -> None:
    with pytest.raises(InputError, match=r"2\*\*53.*--step\), for example") as caught:
        make_lattice([Fraction(0), Fraction(1, 10**9), Fraction(10**9)])
    coarser = Fraction(str(caught.value).rsplit(" ", 1)[1])
    assert make_lattice([Fraction(0), Fraction(1, 10**9), Fraction(10**9)], coarser).size == 2


def test_an_empty_support_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        make_lattice([])


def test_levels() -> None:
    assert make_levels(["b", "a", "b"]) == Levels(("a", "b"), ordered=False)
    ordered = make_levels(["high", "low"], ["low", "mid", "high"])
    assert ordered == Levels(("low", "mid", "high"), ordered=True)
    assert lattice_of(ordered).values == (0, 1, 2)
    with pytest.raises(InputError, match="more than once"):
        make_levels(["a"], ["a", "a"])
    with pytest.raises(InputError, match=r"misses the level 'mid' \(did you mean 'midd'"):
        make_levels(["low", "mid"], ["low", "midd"])
    with pytest.raises(InputError, match="misses the levels a, b"):
        make_levels(["a", "b"], ["c"])


def test_orders_by_name_and_orders_that_are_none() -> None:
    assert make_levels(["b", "a"], "alphabetical") == Levels(("a", "b"), ordered=True)
    assert make_levels(["b", "a"], " Appearance ") == Levels(("b", "a"), ordered=True)
    assert make_levels(["b", "a"], "b, a") == Levels(("b", "a"), ordered=True)
    assert make_levels(["1.5", "2"], [2.0, Decimal("1.50")]) == Levels(("2", "1.5"), ordered=True)
    with pytest.raises(InputError, match="did you mean 'alphabetical'"):
        make_levels(["a"], "alphabetic")
    for wrong in (5, 5.0, True):
        with pytest.raises(InputError, match="order must be a list of levels"):
            make_levels(["a"], wrong)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(InputError, match="at least one level"):
        make_levels(["a"], [])


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**12))
def test_the_nearest_unit_is_that_of_the_slow_way(numerator: int, denominator: int) -> None:
    assert nearest_unit(numerator, denominator) == round(Fraction(numerator, denominator))


@given(st.integers(-100, 100))
def test_halves_go_to_the_even_unit(odd: int) -> None:
    assert nearest_unit(2 * odd + 1, 2) == round(Fraction(2 * odd + 1, 2))


def test_unordered_levels_get_no_additive_noise() -> None:
    with pytest.raises(InputError, match="order"):
        lattice_of(make_levels(["a", "b"]))


@given(VALUES)
def test_a_lattice_survives_the_plan_file(values: list[Fraction]) -> None:
    lattice = make_lattice(values)
    assert lattice.same_as(support_from_dict(support_to_dict(lattice)))


def test_neighbouring_atoms_are_one_run() -> None:
    lattice = make_lattice([Fraction(k) for k in (5, 6, 7, 9)])
    assert support_to_dict(lattice)["runs"] == [[0, 2], [4, 4]]


@pytest.mark.parametrize(
    "broken",
    [
        {"kind": "ponies"},
        {"kind": "levels", "ordered": True, "names": ["a", "a"]},
        {"kind": "levels", "ordered": "yes", "names": ["a"]},
        {"kind": "numbers", "step": "0", "origin": "0", "runs": [[0, 1]]},
        {"kind": "numbers", "step": "1", "origin": "1/2", "runs": [[0, 1]]},
        {"kind": "numbers", "step": "1", "origin": "0", "runs": [[1, 2]]},
        {"kind": "numbers", "step": "1", "origin": "0", "runs": [[0, 2], [2, 3]]},
        {"kind": "numbers", "step": "1", "origin": "0", "runs": [[0, 10**12]]},
        {"kind": "numbers", "step": "1", "origin": "0", "runs": []},
        {"kind": "numbers", "step": 1, "origin": "0", "runs": [[0, 1]]},
    ],
)
def test_a_broken_support_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(InputError):
        support_from_dict(broken)
