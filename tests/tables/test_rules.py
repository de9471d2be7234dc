# SPDX-License-Identifier: Apache-2.0
"""Rules and codings: what contradicts itself is refused, in Python and in a plan file alike."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.numbers import parse_number
from pufferfish.support import Lattice, Levels, Support, make_lattice
from pufferfish.tables.rules import Coding, Column, Rules, make_rules


@pytest.mark.parametrize(
    "given, part",
    [
        ({"public": "s"}, "differ: s, s"),
        ({"public": " "}, "name of a column"),
        ({"public": []}, "must be named"),
        ({"public": ["x", " x"]}, "differ"),
        ({"public": ["x", 3]}, "name of a column"),
        ({"unit": "s"}, "differ"),
        ({"unit": "x"}, "differ"),
        ({"order": ["a", "a"]}, "more than once"),
        ({"order": "alphabetic"}, "did you mean 'alphabetical'?"),
        ({"order": []}, "at least one"),
        ({"order": 5}, "must be a list of levels"),
        ({"levels": 5}, "must be a list of texts"),
        ({"levels": ["a", "b"], "order": ["a"]}, "misses the levels b"),
        ({"missing": 5}, "must be a list of texts"),
        ({"step": 0}, "above 0"),
        ({"step": "x"}, "must be a number"),
        ({"support": []}, "the support is empty"),
        ({"support": "1,2"}, "must be a list of numbers"),
        ({"support": [1], "levels": ["a"]}, "for numbers"),
        ({"order": {"y": ["u"]}}, "order names the column 'y'"),
        ({"order": {"xx": ["u"]}}, "did you mean 'x'"),
        ({"missing": {"y": ["?"]}}, "missing names the column 'y'"),
        ({"public": ["x", "z"], "order": ["u", "v"]}, "must be a mapping"),
        ({"public": ["x", "z"], "step": 1}, "must be a mapping"),
        ({"levels": ["a\ud800"]}, "UTF-8"),
        ({"order": ["a", "\udcff"]}, "UTF-8"),
    ],
)
def test_rules_that_are_refused(given: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as caught:
        make_rules(**{"secret": "s", "public": "x", **given})
    message = str(caught.value)
    assert part in message
    message.encode("utf-8")
    assert "\n" not in message


def test_options_of_one_column_and_of_several() -> None:
    one = make_rules(
        secret=" s ", public="x", missing=["?", " NA ", "-9.0"], exclude_secrets=["c"], step="1/3"
    )
    assert one == Rules(
        "s",
        (Column("x", missing=("?", "NA", "-9"), step=Fraction(1, 3)),),
        ("c",),
        missing=("?", "NA", "-9"),
    )
    assert make_rules(secret="s", public="x", step={"x": 2}).columns[0].step == 2
    assert make_rules(secret="s", public="x", missing="?").columns[0].missing == ("?",)
    for texts in (np.array, pd.Series, pd.Index, pl.Series, pa.array, iter):
        made = make_rules(
            secret="s", public=["x", "z"], missing=texts(["?"]), exclude_secrets=texts(["c"]),
            order={"x": texts(["u", "v"])}, levels={"z": texts(["u", "v"])},
        )  # fmt: skip
        assert made.missing == made.columns[0].missing == made.columns[1].missing == ("?",)
        assert made.exclude_secrets == ("c",)
        assert [column.support for column in made.columns] == [
            Levels(("u", "v"), ordered=True), Levels(("u", "v")),
        ]  # fmt: skip
    several = make_rules(
        secret="s", public=["x", "z", "w"], order={"z ": ["no", "yes"]}, missing={"x": "?"},
        missing_as_level={"w": True}, support={"x": [1, 3]}, unit="id", decimal=",",
    )  # fmt: skip
    x, z, w = several.columns
    assert isinstance(x.support, Lattice)
    assert (x.missing, z.missing, several.missing) == (("?",), (), ())
    assert z.support == Levels(("no", "yes"), ordered=True)
    assert (w.missing_as_level, several.unit) == (True, "id")
    assert several.decimal == ","
    assert make_rules(secret="s", public="Gro\u0308\u00dfe").columns[0].name == "Gr\u00f6\u00dfe"
    own = make_rules(secret="s", public="x", missing=["(missing)"], order=["(missing)", "a"],
                     missing_as_level=True)  # fmt: skip
    assert own.columns[0].support == Levels(("(missing)", "a"), ordered=True)
    listed = make_rules(secret="s", public="x", levels=["a"], missing_as_level=True)
    assert listed.columns[0].support == Levels(("a", "(missing)"))


@given(
    st.lists(
        st.integers(-9, 9)
        | st.sampled_from([2**62, -(2**62), True, 10**4000, "7", 0.5, Fraction(1, 3), None])
        | st.integers(-9, 9).map(np.int64)
    )
)
def test_each_value_of_a_support_is_read_as_a_number(values: list[Any]) -> None:
    """Also the integers, which are not made fractions first."""

    def lattice(given: Any) -> Any:
        return make_rules(secret="s", public="x", support=given).columns[0].support

    try:
        expected = make_lattice([parse_number(v, "a value of the support") for v in values])
    except InputError as error:
        with pytest.raises(InputError, match=re.escape(str(error))):
            lattice(values)
        return
    assert lattice(iter(values)) == expected


def test_a_support_of_integers_may_be_of_many_kinds() -> None:
    expected = make_lattice(range(-2, 5))
    numbers = list(range(-2, 5))
    for given_ in (range(-2, 5), numbers, set(numbers), np.arange(-2, 5),
                   np.arange(-2, 5, dtype=np.int8), np.arange(-2, 5, dtype=np.float32),
                   pd.Series(numbers), pl.Series(numbers), pa.array(numbers)):  # fmt: skip
        assert make_rules(secret="s", public="x", support=given_).columns[0].support == expected
    for ends in ([2**63 - 2, 2**63 - 1], [-(2**63), 3 - 2**63]):
        wide = make_rules(secret="s", public="x", support=np.array(ends)).columns[0].support
        assert wide == make_lattice(ends)
    with pytest.raises(InputError, match="must be a number such as"):
        make_rules(secret="s", public="x", support=np.arange(3).reshape(3, 1))


NUMBERS = make_lattice([Fraction(v) for v in (0, 1, 2, 10)])


@pytest.mark.parametrize(
    "support, missing, options",
    [
        (NUMBERS, "2", {}),
        (NUMBERS, "2.0", {}),
        (NUMBERS, "2e0", {}),
        (NUMBERS, "1e1", {}),
        (NUMBERS, "2,0", {"decimal": ","}),
        (NUMBERS, "2", {"rounds": True}),
        (Levels(("a", "b")), "a", {}),
        (Levels(("1.50", "2")), "1.5", {}),
        (Levels(("a", "(missing)")), "(missing)", {}),
    ],
)
def test_a_text_for_missing_that_is_a_value_is_refused(
    support: Support, missing: str, options: dict[str, Any]
) -> None:
    """Else whoever edits a plan has rows left out of the release that tell the secret."""
    with pytest.raises(InputError, match="cannot mean a missing value"):
        Coding("x", support, (missing,), **options)


@pytest.mark.parametrize("missing", ["3", "-999", "1e9", "0.5", "?", "2,0"])
def test_other_texts_may_mean_missing(missing: str) -> None:
    assert Coding("x", NUMBERS, (missing,)).missing == (missing,)
    Coding("x", Levels(("a", "(missing)")), ("(missing)",), missing_as_level=True)


@pytest.mark.parametrize(
    "given, part",
    [
        ({"support": Levels(("a",)), "rounds": True}, "the support holds levels"),
        ({"support": Levels(("a",)), "missing_as_level": True}, "do not name"),
        ({"support": NUMBERS, "missing_as_level": True}, "do not name"),
        ({"support": NUMBERS, "decimal": ";"}, "decimal mark"),
        ({"support": NUMBERS, "missing_as_level": "no"}, "True or False"),
    ],
)
def test_codings_that_are_refused(given: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError, match=part):
        Coding("x", **given)


def test_what_a_coding_declares() -> None:
    coding = Coding("x", NUMBERS, ("?",), rounds=True)
    assert coding.declared() == Column("x", missing=("?",), step=Fraction(1), support=NUMBERS)
    levels = Levels(("b", "a", "(missing)"), ordered=True)
    declared = Coding("x", levels, missing_as_level=True).declared()
    assert (declared.support, declared.missing_as_level, declared.step) == (levels, True, None)
