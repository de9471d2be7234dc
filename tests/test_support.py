# SPDX-License-Identifier: Apache-2.0
"""The support: exact lattices of any offset, levels with and without an order, and products."""

import json
import re
from decimal import Decimal
from fractions import Fraction
from itertools import product as combinations_of
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.support import (
    Lattice,
    Levels,
    Product,
    lattice_of,
    make_lattice,
    make_levels,
    nearest_unit,
    set_name,
)

VALUES = st.lists(
    st.fractions(min_value=-1000, max_value=1000, max_denominator=12), min_size=1, max_size=12
)


@given(VALUES)
def test_a_lattice_holds_exactly_its_values_on_the_largest_step(values: list[Fraction]) -> None:
    lattice = make_lattice(values)
    assert lattice.values == tuple(sorted(set(values)))
    assert lattice.index[0] == 0
    assert all((v / lattice.step).denominator == 1 for v in [Fraction(1), *values])
    for k in range(2, 6):
        assert any((v / (k * lattice.step)).denominator != 1 for v in [Fraction(1), *values])


def test_integers_beyond_doubles_stay_apart() -> None:
    lattice = make_lattice([Fraction(9007199254740992), Fraction(9007199254740993)])
    assert (lattice.size, lattice.value(1), lattice.name(1)) == (2, 2**53 + 1, "9007199254740993")
    lattice = make_lattice([Fraction("0.25"), Fraction("0.5"), Fraction("1.75")])
    assert lattice.index.tolist() == [0, 1, 6]
    assert repr(lattice) == "Lattice(3 values from 0.25 to 1.75, step 0.25)"


def test_a_given_step_rounds_to_the_nearest_multiple_ties_to_even() -> None:
    values = [Fraction("0.5"), Fraction("1.5"), Fraction("1.6"), Fraction("-0.5")]
    assert make_lattice(values, Fraction(1)).values == (0, 2)


@given(
    st.sampled_from([0, -7, 2**53, 2**61, -(2**62), 2**63, 10**30]),
    st.lists(st.integers(-40, 40), min_size=1, max_size=20),
    st.sampled_from([None, "1", "1/2", "3", "7/3", "1/4611686018427387904"]),
)
def test_integers_make_the_lattice_of_the_same_fractions(
    base: int, gaps: list[int], text: str | None
) -> None:
    values, step = [base + gap for gap in gaps], None if text is None else Fraction(text)
    units = sorted({round(value / (step or Fraction(1))) for value in values})
    some = [Fraction(value) if k % 2 else value for k, value in enumerate(values)]
    for numbers in (values, list(map(Fraction, values)), some):
        if units[-1] - units[0] > 2**53:
            with pytest.raises(InputError, match=re.escape("more than 2**53 steps")):
                make_lattice(numbers, step)
            continue
        lattice = make_lattice(numbers, step)
        assert (lattice.step, lattice.origin) == (step or 1, units[0])
        assert lattice.index.tolist() == [unit - units[0] for unit in units]


@pytest.mark.parametrize(
    "values", [[0, Fraction(1, 10**9), 10**9], [0, Fraction(1, 3**40), Fraction(1, 7)]]
)
def test_too_fine_a_step_is_refused(values: list[Fraction]) -> None:
    with pytest.raises(InputError, match=r"2\*\*53 steps.*coarser step \(--step\)"):
        make_lattice(map(Fraction, values))
    assert make_lattice(map(Fraction, values), Fraction(1, 100)).size >= 2


def test_supports_that_are_refused() -> None:
    for values, step, message in (([1], 0, "step"), ([1], -1, "step"), ([], None, "empty")):
        with pytest.raises(InputError, match=message):
            make_lattice(map(Fraction, values), None if step is None else Fraction(step))
    with pytest.raises(InputError, match="order"):
        lattice_of(make_levels(["a", "b"]))


def test_levels() -> None:
    assert make_levels(["b", "a", "b"]) == Levels(("a", "b"), ordered=False)
    ordered = make_levels(["high", "low"], ["low", "mid", "high"])
    assert ordered == Levels(("low", "mid", "high"), ordered=True)
    assert lattice_of(ordered).values == (0, 1, 2)
    with pytest.raises(InputError, match="more than once"):
        make_levels(["a"], ["a", "a"])
    # The column is right, and what was given may be a slip: not the other way round.
    with pytest.raises(InputError, match=r"misses the levels Third; it names third"):
        make_levels(["First", "Second", "Third"], ["First", "Second", "third"])
    with pytest.raises(InputError, match="misses the levels a, b"):
        make_levels(["a", "b"], ["c"])
    for name, message in (("", "needs a name"), ("\ud800", "UTF-8")):
        with pytest.raises(InputError, match=message):
            Levels((name,))


def test_orders_by_name_and_orders_that_are_none() -> None:
    assert make_levels(["b", "a"], "alphabetical") == Levels(("a", "b"), ordered=True)
    assert make_levels(["b", "a"], " Appearance ") == Levels(("b", "a"), ordered=True)
    assert make_levels(["b", "a"], "b, a") == Levels(("b", "a"), ordered=True)
    assert make_levels(["1.5", "2"], [2.0, Decimal("1.50")]) == Levels(("2", "1.5"), ordered=True)
    with pytest.raises(InputError, match="did you mean 'alphabetical'"):
        make_levels(["a"], "alphabetic")
    wrong: Any
    for wrong in (5, 5.0, True, [], "", "a"):
        with pytest.raises(InputError, match="order must be a list of levels"):
            make_levels(["a"], wrong)


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**12))
def test_the_nearest_unit_is_that_of_the_slow_way(numerator: int, denominator: int) -> None:
    assert nearest_unit(numerator, denominator) == round(Fraction(numerator, denominator))
    assert nearest_unit(2 * numerator + 1, 2) == round(Fraction(2 * numerator + 1, 2))


# Products

NUMBERS = make_lattice([Fraction(1), Fraction(3)])
NAMES = make_levels(["no", "yes", "?"])
XZ = Product(("x", "z"), (NUMBERS, NAMES))


def test_atoms_are_in_c_order() -> None:
    assert (XZ.size, XZ.shape) == (6, (2, 3))
    values = [f"x = {x}, z = {z}" for x, z in combinations_of(("1", "3"), ("?", "no", "yes"))]
    assert [XZ.name(k) for k in range(6)] == values
    assert XZ.position("z") == 1
    with pytest.raises(InputError, match=r"no column 'zetta' \(did you mean 'zeta'"):
        Product(("x", "zeta"), XZ.axes).position("zetta")
    with pytest.raises(InputError, match="name one of the columns x, z"):
        XZ.position(None)
    with pytest.raises(InputError, match="one column at a time"):
        _ = XZ.only


def test_one_column_needs_no_name() -> None:
    for name in (None, "x"):
        one = Product((name,), (NUMBERS,))
        assert one.only is NUMBERS
        assert (one.position(None), one.position("x"), one.name(1)) == (0, 0, "3")
    with pytest.raises(InputError, match="no column 'y'"):
        one.position("y")


def test_products_are_the_same_by_columns_and_axes() -> None:
    assert Product(("x", "z"), (make_lattice([Fraction(1), Fraction(3)]), NAMES)) == XZ
    assert Product(("z", "x"), (NAMES, NUMBERS)) != XZ
    assert Product(("x", "y"), XZ.axes) != XZ
    assert Product(("x", "z"), (NUMBERS, make_levels(["no", "yes"]))) != XZ
    assert XZ != NUMBERS
    assert NUMBERS != NAMES


@pytest.mark.parametrize("columns", [(), ("x", "x"), ("x", 3), ("x", " "), ("x", None), (" ",)])
def test_wrong_columns(columns: Any) -> None:
    with pytest.raises(InputError, match="must be different names"):
        Product(columns, XZ.axes[: len(columns)])


def test_too_many_combinations_are_refused_with_the_sizes() -> None:
    side = Lattice(Fraction(1), 0, np.arange(2500, dtype=np.int64))
    four = Lattice(Fraction(1), 0, np.arange(4, dtype=np.int64))
    with pytest.raises(InputError, match=r"25,000,000 combinations of values \(x: Lattice\(2500"):
        Product(("x", "y", "z"), (side, side, four))


# --- Sets of values -----------------------------------------------------------------------------

#: Names that look like parts of sets, their marks, JSON, or each other with blanks.
AWKWARD = (
    "a", "b", "a, b", "{a}", "{*}", "*", '"a"', '"', "\\", '\\"', " a", "a ", ",", "{", "}",
    "a,b", "a\tb", "\u00a0a", "\n", "é", "a b",
)  # fmt: skip


def members_of(name: str, names: tuple[str, ...]) -> set[str]:
    """Parse the name of a set, whose members are plain or JSON strings."""
    assert (name[0], name[-1]) == ("{", "}")
    if name == "{*}":
        return set(names)
    part = r'"(?:[^"\\]|\\.)*"|[^{},"*]+'
    assert re.fullmatch(rf"({part})(, ({part}))*", name[1:-1])
    found = re.findall(rf"(?:\A|, )({part})", name[1:-1])
    return {json.loads(text) if text.startswith('"') else text for text in found}


@given(st.lists(st.sampled_from(AWKWARD) | st.text('{},"* ab\\', min_size=1, max_size=4),
                min_size=1, max_size=7, unique=True))  # fmt: skip
def test_different_sets_never_share_a_name(names: list[str]) -> None:
    levels, found = make_levels(names), set()
    for chosen in combinations_of((False, True), repeat=len(names)):
        members = [k for k, taken in enumerate(chosen) if taken]
        if members:
            found.add(name := set_name(levels, members[::-1]))
            assert members_of(name, levels.names) == {levels.names[k] for k in members}
    assert len(found) == 2 ** len(names) - 1


def test_sets_are_named_in_the_order_of_the_support() -> None:
    numbers = make_lattice([Fraction(1, 2), Fraction(-1), Fraction(3)])
    assert set_name(numbers, [2, 0]) == "{-1, 3}"
    assert set_name(numbers, [1]) == "{0.5}"
    assert set_name(numbers, range(3)) == "{*}"
