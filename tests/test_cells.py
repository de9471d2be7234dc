# SPDX-License-Identifier: Apache-2.0
"""Cells, numerals and the coder: cleaning is exact, and releasing cleans as counting does."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.rationals import NotFinite, parse_text
from pufferfish.support import Levels, lattice_index, make_lattice, step_of
from pufferfish.tables import Coder, arrow, make_rules, open_table
from pufferfish.tables.cells import cells_of, distinct
from pufferfish.tables.coder import MISSING, OK, OUTSIDE, UNREADABLE
from pufferfish.tables.numerals import Numbers, number, parse_comma, parse_point
from pufferfish.texts import text_of
from table_cases import count, csv_text, write

plain_numbers = st.from_regex(
    r"[+-]?([0-9]{1,25}(\.[0-9]{0,8})?|\.[0-9]{1,8})([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@given(plain_numbers)
def test_points_are_read_as_the_slow_reader_does(text):
    assert Fraction(*parse_point(text)) == parse_text(text)


@given(plain_numbers)
def test_commas_are_read_as_points_would_be(text):
    turned = text.replace(".", ",")
    assert Fraction(*parse_comma(turned)) == parse_text(text)


@pytest.mark.parametrize(
    "text, point, comma",
    [
        ("1,200", 1200, Fraction("1.2")),
        ("-1,234,567.50", Fraction("-1234567.5"), None),
        ("1.234,5", None, Fraction("1234.5")),
        ("0,123", None, Fraction("0.123")),
        ("1,5", None, Fraction("1.5")),
        ("1.5", Fraction("1.5"), None),
        ("1.234", Fraction("1.234"), None),
        ("12,34,567", None, None),
        ("1,", None, 1),
        (",5", None, Fraction("0.5")),
        ("1e3", 1000, 1000),
        ("7", 7, 7),
        ("1/3", Fraction(1, 3), Fraction(1, 3)),
        ("", None, None),
        ("-", None, None),
        ("+", None, None),
        (".", None, None),
        ("--1", None, None),
        ("1 000", None, None),
        ("1_000", None, None),
        ("0x10", None, None),
        ("²", None, None),
        ("-²", None, None),
        ("1.²", None, None),
    ],
)
def test_numerals(text, point, comma):
    for mark, expected in ((None, point), (".", point), (",", comma)):
        ratio = number(text, mark)
        assert (None if ratio is None else Fraction(*ratio)) == expected


def test_groups_of_thousands_are_those_of_every_other_number():
    """What a cell may hold and what a prior file may hold are the same numbers."""
    for text in (
        "1,200",
        "1,200.",
        "-1,234,567.5",
        "0,123",
        "12,00",
        "1,2345",
        "\u0661,\u0662\u0660\u0660",
    ):
        ratio, exact = parse_point(text), parse_text(text)
        assert (None if ratio is None else Fraction(*ratio)) == exact


def test_numbers_that_are_too_long_or_too_small():
    for mark in (".", ","):
        with pytest.raises(NotFinite, match="longer than 2000"):
            number(f"0.{'0' * 2000}1".replace(".", mark), mark)
        with pytest.raises(NotFinite, match="too small"):
            number("1e-1001", mark)
        assert Fraction(*number("1e-1000", mark)) == Fraction(1, 10**1000)
        assert number("x" * 10**5, mark) is None


@pytest.mark.parametrize("text", ["inf", "-Infinity", "NaN", "1e999", "7" * 5000, "1/0"])
def test_numerals_that_are_not_finite(text):
    for mark in (".", ","):
        with pytest.raises(NotFinite):
            number(text, mark)


fractions = st.lists(
    st.one_of(
        st.integers(-(10**20), 10**20).map(Fraction),
        st.fractions(-100, 100, max_denominator=40),
        st.integers(-(10**5), 10**5).map(lambda n: Fraction(n, 100)),
    ),
    min_size=1,
    max_size=90,
)


@given(fractions, st.sampled_from([None, Fraction(1), Fraction(1, 3), Fraction(5, 2)]))
def test_lattice_agrees_with_the_slow_one(numbers, step):
    mine = Numbers.of([(v.numerator, v.denominator) for v in numbers])
    try:
        slow = make_lattice(numbers, step)
    except InputError:
        with pytest.raises(InputError):
            mine.lattice(step)
        return
    lattice, atoms, rounded = mine.lattice(step)
    assert lattice.same_as(slow)
    units = lattice_index(numbers, slow.step)
    assert [lattice.origin + int(lattice.index[k]) for k in atoms] == units
    assert rounded == sum(slow.step * u != v for u, v in zip(units, numbers, strict=True))
    if step is None:
        assert lattice.step == step_of(numbers)


def test_distinct_cells_keep_their_places():
    for array in (
        pa.array(["b", None, "a", "b"]),
        pa.chunked_array([["b", None], ["a", "b"]]),
        pa.array([1.5, None, float("nan"), 1.5]),
        pa.array([None, None, None, None]),
        pa.chunked_array([], type=pa.string()),
    ):
        raw, places = distinct(array)
        assert repr([raw.to_pylist()[k] for k in places]) == repr(array.to_pylist())


@pytest.mark.parametrize(
    "value, text",
    [
        (None, ""),
        ("  ", ""),
        (" a\u00a0", "a"),
        (True, "true"),
        (np.bool_(False), "false"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (np.float32(0.1), "0.1"),
        (1e22, "1e+22"),
        (float("nan"), "nan"),
        (2**70, str(2**70)),
        (np.uint64(2**64 - 1), str(2**64 - 1)),
        (Decimal("1.50"), "1.5"),
        (Decimal("NaN"), "nan"),
        (Decimal("1E+3"), "1000"),
        (Fraction(1, 3), "1/3"),
    ],
)
def test_text_of_cells(value, text):
    assert text_of(value) == text


def test_cells_say_whether_they_were_numbers():
    assert cells_of(pa.array([1, 2]), "x").typed
    assert cells_of(pa.array([1.5]), "x").typed
    assert not cells_of(pa.array(["1"]), "x").typed
    for array in (pa.array([[1]]), pa.array([b"1"]), pa.array([{"a": 1}])):
        with pytest.raises(InputError, match="not numbers or text"):
            cells_of(array, "x")


def coded(support, cells, rules=None, table=None):
    result = Coder(support, rules, table).code(pa.array(cells))
    return list(zip(result.atoms.tolist(), result.state.tolist(), strict=True))


def test_coder_on_numbers():
    support = make_lattice([Fraction(v) for v in (1, 3, 7)])
    rules = make_rules(public="x", missing=["?"])
    cells = ["1", " 3 ", "7.0", "?", "", None, "2", "0", "5", "6", "99", "2.4", "x", "nan", "true"]
    assert coded(support, cells, rules) == [
        (0, OK),
        (1, OK),
        (2, OK),
        (-1, MISSING),
        (-1, MISSING),
        (-1, MISSING),
        (0, OUTSIDE),  # a tie goes to the lesser atom
        (0, OUTSIDE),
        (1, OUTSIDE),
        (2, OUTSIDE),
        (2, OUTSIDE),
        (1, OUTSIDE),
        (-1, UNREADABLE),
        (-1, UNREADABLE),
        (-1, UNREADABLE),
    ]
    assert coded(support, [1, 4, None]) == [(0, OK), (1, OUTSIDE), (-1, MISSING)]
    assert coded(support, [1.0, 2.5, float("nan")]) == [(0, OK), (1, OUTSIDE), (-1, UNREADABLE)]


def test_coder_on_integers_beyond_doubles():
    support = make_lattice([Fraction(2**53), Fraction(2**53 + 1)])
    assert coded(support, [2**53, 2**53 + 1]) == [(0, OK), (1, OK)]
    assert coded(support, [str(2**53 + 1), str(2**80)]) == [(1, OK), (1, OUTSIDE)]
    huge = make_lattice([Fraction(10**30), Fraction(10**30 + 5)])
    assert coded(huge, [str(10**30 + 5), str(10**30 + 4), "0"]) == [
        (1, OK),
        (1, OUTSIDE),
        (0, OUTSIDE),
    ]


def test_coder_rounds_where_counting_does():
    support = make_lattice([Fraction(0), Fraction(1), Fraction(2)])
    cells = ["0.4", "0.5", "1.5", "2.4", "2.6"]
    assert [state for _, state in coded(support, cells)] == [OUTSIDE] * 5
    rounded = coded(support, cells, make_rules(public="x", step=1))
    assert rounded == [(0, OK), (0, OK), (2, OK), (2, OK), (2, OUTSIDE)]


@pytest.mark.parametrize("place", ["coder", "numerals"])
def test_mutant_that_rounds_halves_up_on_one_side_is_caught(tmp_path, monkeypatch, place):
    """Counting and releasing must round alike, whichever of them goes wrong."""

    def half_up(numerator, denominator):
        return (2 * numerator + denominator) // (2 * denominator)

    path = write(tmp_path, csv_text([("a", "0"), ("a", "0.5"), ("b", "2.5"), ("b", "1")]))
    tables_agree(path, step=1)
    monkeypatch.setattr(f"pufferfish.tables.{place}.nearest_unit", half_up)
    with pytest.raises(AssertionError):
        tables_agree(path, step=1)


@given(
    st.sets(st.integers(-30, 30), min_size=1),
    st.lists(st.fractions(-20, 20, max_denominator=12), min_size=1),
    st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(2)]),
    st.booleans(),
)
def test_coder_agrees_with_the_definition(units, cells, step, rounds):
    support = make_lattice([step * u for u in sorted(units)], step)
    rules = make_rules(public="x", step=step if rounds else None)
    texts = [f"{c.numerator}/{c.denominator}" for c in cells]
    for cell, (atom, state) in zip(cells, coded(support, texts, rules), strict=True):
        value = step * round(cell / step) if rounds else cell
        nearest = min(range(support.size), key=lambda k: (abs(support.value(k) - value), k))
        assert atom == nearest
        assert state == (OK if support.value(nearest) == value else OUTSIDE)


def test_coder_on_levels_and_truth_values():
    support = Levels(("low", "high"), ordered=True)
    assert coded(support, ["high", " low", "Low", None]) == [
        (1, OK),
        (0, OK),
        (-1, OUTSIDE),
        (-1, MISSING),
    ]
    bits = make_lattice([Fraction(0), Fraction(1)])
    assert coded(bits, ["true", "FALSE", "1"]) == [(1, OK), (0, OK), (1, OK)]
    assert coded(bits, [True, False, None]) == [(1, OK), (0, OK), (-1, MISSING)]


def test_equal_keys_of_different_types_are_not_confused():
    coder = Coder(Levels(("1", "true"), ordered=True))
    assert coder.code(pa.array([1])).atoms.tolist() == [0]
    assert coder.code(pa.array([True])).atoms.tolist() == [1]
    assert coder.code(pa.array([1.0])).atoms.tolist() == [0]


def test_coder_and_commas(tmp_path):
    support = make_lattice([Fraction("1.2"), Fraction(1200)])
    table = open_table(write(tmp_path, "s;x\na;1,200\n"))
    cells = ["1,200"]
    assert coded(support, cells) == [(1, OK)]
    assert coded(support, cells, make_rules(public="x"), table) == [(-1, UNREADABLE)]
    assert coded(support, cells, make_rules(public="x", decimal=","), table) == [(0, OK)]
    assert coded(support, [1.2], make_rules(public="x", decimal=","), table) == [(0, OK)]


def test_coder_forgets_but_answers_alike(monkeypatch):
    monkeypatch.setattr("pufferfish.tables.coder._REMEMBERED", 3)
    support = make_lattice([Fraction(k) for k in range(10)])
    coder = Coder(support)
    for start in (0, 4, 2, 0):
        cells = pa.array([str(k) for k in range(start, start + 6)])
        assert coder.code(cells).atoms.tolist() == list(range(start, start + 6))


def test_coder_says_why():
    coder = Coder(make_lattice([Fraction(1)]), make_rules(public="x", missing=["?"]))
    assert coder.why("?") == "is missing"
    assert coder.why("2") == "is outside the support"
    assert coder.why("smith") == "is no finite number"
    assert "levels" in Coder(Levels(("a",))).why("b")


values = st.one_of(
    st.integers(-20, 20).map(str),
    st.integers(-20, 20).map(lambda n: f" {n / 4} "),
    st.sampled_from(["", "?", "1,200", "-0", "2e1"]),
)


@settings(max_examples=25)
@given(st.lists(values, min_size=2, max_size=20), st.sampled_from([None, "1/2", 3]))
def test_releasing_cleans_as_counting_does(tmp_path_factory, cells, step):
    """Coding the rows of the table one by one gives back its counts."""
    folder = tmp_path_factory.mktemp("same")
    rows = [("ab"[k % 2], f'"{cell}"') for k, cell in enumerate(cells)]
    path = write(folder, csv_text(rows))
    try:
        tables_agree(path, missing=["?"], step=step)
    except InputError:
        return


def tables_agree(path, **rules):
    prior = count(path, **rules)
    table = open_table(path)
    coder = Coder(prior.support, prior.report.rules, table)
    counts = np.zeros(prior.counts.shape, dtype=np.int64)
    for batch in table.batches(["s", "x"], 4):
        result = coder.code(batch.column(1))
        assert set(result.state.tolist()) <= {OK, MISSING}
        for secret, atom in zip(batch.column(0).to_pylist(), result.atoms.tolist(), strict=True):
            if atom >= 0:
                counts[prior.row(secret), atom] += 1
    assert counts.tolist() == prior.counts.tolist()


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float64()])
def test_arrow_to_numpy_and_slices(kind):
    whole = pa.array([3, 1, 2, 5], type=kind)
    for part in (whole, whole.slice(1, 2), whole.slice(4)):
        assert arrow.to_numpy(part).tolist() == part.to_pylist()
        assert arrow.to_numpy(part).dtype == part.to_numpy().dtype


@given(st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8")))))
def test_arrow_strings_are_those_of_arrow(texts):
    made = arrow.strings(texts)
    made.validate(full=True)
    assert made.equals(pa.array(texts, type=pa.string()))


def test_arrow_integers_and_surrogates():
    assert arrow.integers([]).equals(pa.array([], pa.int64()))
    assert arrow.integers(np.arange(6)[::2]).to_pylist() == [0, 2, 4]
    with pytest.raises(InputError, match="surrogate"):
        arrow.strings(["a", "\udcff"])
