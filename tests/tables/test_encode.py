# SPDX-License-Identifier: Apache-2.0
"""The canonical text of a cell, and the encoder: releasing cleans as counting does."""

import json
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pufferfish import support as support_module
from pufferfish.errors import InputError
from pufferfish.numbers import parse_cell
from pufferfish.support import MISSING_LEVEL, Levels, Support, make_lattice
from pufferfish.tables import encode as encode_module
from pufferfish.tables.count import RowCounts
from pufferfish.tables.encode import MISSING, OK, OUTSIDE, UNREADABLE, Encoder, canonical
from pufferfish.tables.frames import raw_cells
from pufferfish.tables.rules import Coding
from pufferfish.tables.source import open_table
from table_cases import as_dict, count, csv_text, write

PLAIN = st.from_regex(
    r"[+-]?(0|[1-9][0-9]{0,24})?(\.[0-9]{0,8})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@given(PLAIN)
def test_plain_decimals_are_read_exactly(text: str) -> None:
    try:
        expected = Fraction(Decimal(text))
    except ArithmeticError:
        assert parse_cell(text) is None
        return
    found = parse_cell(text)
    assert isinstance(found, tuple)
    assert Fraction(*found) == expected


@pytest.mark.parametrize(
    "text, fault",
    [
        ("inf", "not finite"),
        ("-Infinity", "not finite"),
        ("NaN", "not finite"),
        ("1e999", "not finite"),
        ("1.8e308", "not finite"),
        ("7" * 5000, "not finite"),
        ("1e" + "9" * 5000, "not finite"),
        ("1e-1000", "too small"),
        ("1e-" + "9" * 5000, "too small"),
        ("1" * 39, "38 digits"),
        (f"0.{'1' * 39}", "38 digits"),
    ],
)
def test_numbers_that_are_not_read(text: str, fault: str) -> None:
    assert fault in str(parse_cell(text))


@pytest.mark.parametrize(
    "text, plain",
    [
        (" 1.50 ", "1.5"),
        ("1.", "1"),
        (".50", "0.5"),
        ("-.5", "-0.5"),
        ("0.00", "0"),
        ("-0", "0"),
        ("-0.0e7", "0"),
        ("12e+2", "1200"),
        ("1.25E+1", "12.5"),
        ("1e-07", "0.0000001"),
        ("100", "100"),
        ("1.0e30", "1" + "0" * 30),
        ("0.1e-50", "0." + "0" * 50 + "1"),
        ("True", "true"),
        ("FALSE", "false"),
        ("2020-01-31 00:00:00.000", "2020-01-31"),
        ("08:30:00.000000", "08:30:00"),
        ("08:30:05.250", "08:30:05.25"),
        ("2020-01-31T12:30", "2020-01-31 12:30:00"),
        ("2020-01-31 12:30:05.250000", "2020-01-31 12:30:05.25"),
        ("2020-01-31T00:00:00+00:00", "2020-01-31 00:00:00Z"),
        ("2020-01-31T00:00:00.100+01:00", "2020-01-31 00:00:00.1+01:00"),
    ],
)
def test_one_text_for_what_means_the_same(text: str, plain: str) -> None:
    assert canonical(text) == plain
    assert canonical(plain) == plain


@pytest.mark.parametrize(
    "text",
    ["007", "+7", "12e2", "713752e1", "1,200", "1/2", "0x10", "1e", "e5", ".", "-", "", "٣", "1 0",
     "nan", "1_0", "2020-01-31", "2020-01-31 1:00", "31.01.2020 00:00:00", "2020-01-31 00:00:00.",
     "12:30", "1.0e500", "1e-2000"],
)  # fmt: skip
def test_codes_and_words_stay_as_they_are(text: str) -> None:
    assert canonical(text) == text


@given(
    st.integers(-(2**63), 2**63 - 1).map(str) | st.from_regex(r"-?[0-9]*\.?[0-9]*", fullmatch=True)
)
def test_only_texts_of_one_number_become_one_text(text: str) -> None:
    plain = canonical(text)
    assert canonical(plain) == plain
    try:
        number = Decimal(text)
    except ArithmeticError:
        assert plain == text
    else:
        assert Decimal(plain) == number


def codes(support: Support, cells: Any, **options: Any) -> list[tuple[int, int]]:
    array = cells if isinstance(cells, pa.Array) else pa.array(cells)
    atoms, state = Encoder(Coding("x", support, **options)).encode(array)
    return list(zip(atoms.tolist(), state.tolist(), strict=True))


def test_numbers() -> None:
    support = make_lattice([Fraction(v) for v in (1, 3, 7)])
    cells = ["1", " 3 ", "7.0", "?", "", None, "2", "0", "5", "6", "99", "2.4", "x", "nan", "true",
             "03", "1/1", "1,0"]  # fmt: skip
    assert codes(support, cells, missing=("?",)) == [
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
        *[(-1, UNREADABLE)] * 6,
    ]
    huge = make_lattice([Fraction(10**30), Fraction(10**30 + 5)])
    near = [str(10**30 + 5), str(10**30 + 4), "0"]
    assert codes(huge, near) == [(1, OK), (1, OUTSIDE), (0, OUTSIDE)]
    assert codes(support, [1, 4, None]) == [(0, OK), (1, OUTSIDE), (-1, MISSING)]
    assert codes(support, [1.0, 2.5, float("nan")]) == [(0, OK), (1, OUTSIDE), (-1, UNREADABLE)]


@given(
    st.sets(st.integers(-30, 30), min_size=1),
    st.lists(st.decimals(-20, 20, places=2), min_size=1),
    st.sampled_from([Fraction(1, 2), Fraction(1, 3), Fraction(2)]),
    st.booleans(),
)
def test_the_encoder_agrees_with_the_definition(
    units: set[int], cells: list[Decimal], step: Fraction, rounds: bool
) -> None:
    support = make_lattice([step * u for u in sorted(units)], step)
    found = codes(support, [str(cell) for cell in cells], rounds=rounds)
    for cell, (atom, state) in zip(map(Fraction, cells), found, strict=True):
        value = step * round(cell / step) if rounds else cell
        nearest = min(range(support.size), key=lambda k: (abs(support.value(k) - value), k))
        assert atom == nearest
        assert state == (OK if support.value(nearest) == value else OUTSIDE)


@given(
    st.sampled_from([0, -5, 10**9, 2**62 - 9, -(2**62), 2**63 - 20, 20 - 2**63, 2**64]),
    st.sets(st.integers(0, 15), min_size=1),
    st.lists(st.integers(-3, 18) | st.sampled_from([-(2**62), 2**62, 2**63, None]), min_size=1),
    st.sampled_from(["1", "1", "1/2", "3"]),
    st.booleans(),
)
def test_integers_are_encoded_as_their_texts(
    base: int, index: set[int], offsets: list[int | None], step: str, rounds: bool
) -> None:
    """All at once where all are in the support, else one by one."""
    support = make_lattice([(base + k) * Fraction(step) for k in index], Fraction(step))
    missing = str(math.ceil((base + 16) * Fraction(step)))  # above the support
    cells = [None if k is None else int((base + k) * Fraction(step)) for k in offsets]
    for chosen in (cells, [c for c in cells if c is None or c / Fraction(step) - base in index]):
        fit = [c for c in chosen if c is None or abs(c) < 2**63]
        texts = pa.array([None if c is None else str(c) for c in fit], pa.string())
        own = {"missing": (missing,), "rounds": rounds}
        assert codes(support, pa.array(fit, pa.int64()), **own) == codes(support, texts, **own)
        small = pa.array([c for c in fit if c is not None and abs(c) < 128], pa.int8())
        assert codes(support, small, **own) == codes(support, small.cast(pa.string()), **own)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64()])
@pytest.mark.parametrize(
    "support",
    [Levels(("0", "3")), make_lattice([0, 3, 9]), make_lattice([0, 1, 2]), make_lattice([10**6])],
)
@pytest.mark.parametrize("nulls", [[], [None]])
def test_many_integers_of_few_values_are_encoded_as_their_texts(
    kind: pa.DataType, support: Support, nulls: list[None]
) -> None:
    """Those that lie close together are looked up as they stand, whatever lies between them."""
    cells = [*range(-3, 5), *nulls, 7, 9] * 64
    texts = [None if cell is None else str(cell) for cell in cells]
    found = codes(support, pa.array(cells, kind), missing=("-2",))
    assert found == codes(support, pa.array(texts, pa.string()), missing=("-2",))
    assert {state for _, state in found} >= {MISSING, OUTSIDE}


def test_integers_are_no_numbers_of_steps_and_never_wrap() -> None:
    """The least and the largest of 64 bits are 1 - 2**64 steps apart, which is 1 in 64 bits."""
    assert codes(make_lattice([0, 3, 9], Fraction(3)), [0, 3]) == [(0, OK), (1, OK)]
    support = make_lattice([Fraction(2**63 - 1 + k) for k in range(3)])
    assert codes(support, pa.array([-(2**63)])) == [(0, OUTSIDE)]


def test_levels() -> None:
    support = Levels(("low", "high"), ordered=True)
    assert codes(support, ["high", " low", "Low", None]) == [
        (1, OK),
        (0, OK),
        (-1, OUTSIDE),
        (-1, MISSING),
    ]
    truths = Levels(("false", "true"))
    assert codes(truths, ["true", "FALSE", "1"]) == [(1, OK), (0, OK), (-1, OUTSIDE)]
    assert codes(truths, [True, False, None]) == [(1, OK), (0, OK), (-1, MISSING)]
    written = Levels(("1.50", "2"))
    assert codes(written, ["1.5", "1.50", "2.0"]) == [(0, OK), (0, OK), (1, OK)]
    with pytest.raises(InputError, match="are one text"):
        Encoder(Coding("x", Levels(("1.5", "1.50"))))


def test_decimal_marks() -> None:
    support = make_lattice([Fraction("1.2"), Fraction(1200)])
    assert codes(support, ["1,200"]) == [(-1, UNREADABLE)]
    assert codes(support, ["1,200", "1.2", "1200"], decimal=",") == [
        (0, OK),
        (-1, UNREADABLE),
        (1, OK),
    ]
    assert codes(support, [1.2], decimal=",") == [(0, OK)]


def test_missing_as_a_level() -> None:
    support = Levels(("a", "(missing)"))
    cells = ["a", "", None, "(missing)", "b", " "]
    own = Coding("x", support, missing_as_level=True)
    atoms, state = Encoder(own).encode(pa.array(cells))
    assert state.tolist() == [OK, OK, OK, OUTSIDE, OUTSIDE, OK]
    assert atoms.tolist() == [0, 1, 1, -1, -1, 1]
    declared = Coding("x", support, ("(missing)",), missing_as_level=True)
    assert Encoder(declared).encode(pa.array(cells))[0].tolist() == [0, 1, 1, 1, -1, 1]
    # Without the rule it is a level like any other, as in a table that was released.
    assert Encoder(Coding("x", support)).encode(pa.array(cells))[0].tolist() == [
        0, -1, -1, 1, -1, -1,
    ]  # fmt: skip
    marked = Coding("x", support, ("?",), missing_as_level=True)
    for values in (
        ["a", None, "", "?"],
        np.array(["a", None, " ", "?"], dtype=object),
        pd.Series(["a", np.nan, pd.NA, "?"]),
        pl.Series(["a", None, "", "?"]),
    ):
        assert Encoder(marked).encode(raw_cells(values))[0].tolist() == [0, 1, 1, 1]


# ---- releasing cleans as counting does ----------------------------------------------------------


def agree(source: Any, found: RowCounts) -> None:
    """Encoding the rows of a table one by one gives back its counts."""
    opened = open_table(source)
    encoder = Encoder(found.codings[0], opened)
    counts = np.zeros(found.counts.shape, dtype=np.int64)
    for batch in opened.batches(["s", "x"], 3):
        atoms, state = encoder.encode(batch.column(1))
        assert set(state.tolist()) <= {OK, MISSING}
        for secret, atom in zip(batch.column(0).to_pylist(), atoms.tolist(), strict=True):
            if atom >= 0 and secret in found.secrets:
                counts[found.secrets.index(secret), atom] += 1
    assert counts.tolist() == found.counts.tolist()


VALUES = st.one_of(
    st.integers(-20, 20).map(str),
    st.integers(-20, 20).map(lambda n: f" {n / 4} "),
    st.sampled_from(["", "?", "-0", "2e1", "+3", "9.0"]),
)


@settings(max_examples=25)
@pytest.mark.filterwarnings("ignore::pufferfish.errors.PriorWarning")
@given(st.lists(VALUES, min_size=2, max_size=20), st.sampled_from([None, "1/2", 3]))
def test_rows_of_numbers(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str], step: Any
) -> None:
    rows = [("ab"[k % 2], f'"{cell}"') for k, cell in enumerate(cells)]
    path = write(tmp_path_factory.mktemp("same"), csv_text(rows))
    try:
        found = count(path, missing=["?", "9"], step=step)
    except InputError:
        return
    agree(path, found)


@pytest.mark.parametrize("module", [encode_module, support_module])
def test_mutant_that_rounds_halves_up_on_one_side_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    """Counting and releasing must round alike, whichever of them goes wrong."""

    def half_up(top: int, bottom: int) -> int:
        return (2 * top + bottom) // (2 * bottom)

    def check() -> None:
        found = count(path, step=1)
        assert found.counts.tolist() == [[2, 0, 0], [0, 1, 1]]
        agree(path, found)

    path = write(tmp_path, csv_text([("a", "0"), ("a", "0.5"), ("b", "2.5"), ("b", "1")]))
    check()
    monkeypatch.setattr(module, "nearest_unit", half_up)
    with pytest.raises((AssertionError, InputError)):
        check()


def in_csv(folder: Path, secrets: list[str], cells: list[Any]) -> Path:
    fields = ["" if cell is None else f'"{cell}"' for cell in cells]
    return write(folder, csv_text(zip(secrets, fields, strict=True)))


def in_json(folder: Path, secrets: list[str], cells: list[Any]) -> Path:
    lines = [json.dumps({"s": s, "x": x}) for s, x in zip(secrets, cells, strict=True)]
    return write(folder, "\n".join(lines), "table.ndjson")


def in_objects(folder: Path, secrets: list[str], cells: list[Any]) -> pd.DataFrame:
    blanks = [None, float("nan"), pd.NA, pd.NaT, np.float32("nan")]
    mixed = [blanks[k % 5] if cell is None else cell for k, cell in enumerate(cells)]
    return pd.DataFrame({"s": secrets, "x": pd.Series(mixed, dtype=object)})


HOLDERS: dict[str, Any] = {
    "csv": in_csv,
    "json": in_json,
    "pandas objects": in_objects,
    "pandas category": lambda f, s, x: pd.DataFrame({"s": s, "x": pd.Series(x, dtype="category")}),
    "polars lazy": lambda f, s, x: pl.LazyFrame({"s": s, "x": pl.Series(x, dtype=pl.String)}),
    "pyarrow": lambda f, s, x: pa.table({"s": s, "x": pa.array(x, pa.string())}),
}
CELLS = st.lists(
    st.sampled_from(["a", " b", "b ", "c", "", "   ", None, "?", " NA "]), min_size=1, max_size=12
)
STATED = st.sampled_from(
    [{}, {"levels": ["a", "b", "c", "never"]}, {"order": ["b", "(missing)", "a", "c"]}]
)
ABSENT = ["?", "NA"]


def level_of(cell: Any) -> str:
    text = cell.strip() if isinstance(cell, str) else ""
    return MISSING_LEVEL if text in ("", *ABSENT) else text


def check_holder(holder: str, folder: Path, cells: list[Any], stated: dict[str, Any]) -> None:
    cells = ["a", "b", *cells]  # both secrets, and one value at least
    secrets = ["mn"[k % 2] for k in range(len(cells))]
    source = HOLDERS[holder](folder, secrets, cells)
    found = count(source, missing=ABSENT, missing_as_level=True, **stated)
    expected = Counter(zip(secrets, map(level_of, cells), strict=True))
    counted = {(s, x): n for s, row in as_dict(found).items() for x, n in row.items()}
    assert counted == expected
    assert found.report.rows_used == len(cells)
    agree(source, found)


@pytest.mark.parametrize("holder", HOLDERS)
@settings(max_examples=8)
@given(cells=CELLS, stated=STATED)
def test_rows_of_levels(
    tmp_path_factory: pytest.TempPathFactory, holder: str, cells: list[Any], stated: dict[str, Any]
) -> None:
    check_holder(holder, tmp_path_factory.mktemp("same"), cells, stated)


@pytest.mark.parametrize("holder", ["csv", "pandas objects"])
def test_mutant_that_encodes_blanks_as_missing_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: str
) -> None:
    cells = ["a", None, "b", ""]
    check_holder(holder, tmp_path, cells, {})
    honest = Encoder.encode

    def forgets(self: Encoder, given: Any) -> Any:
        atoms, state = honest(self, given)
        level = self.coding.support.names.index(MISSING_LEVEL)  # type: ignore[union-attr]  # levels here
        atoms[atoms == level] = -1
        return atoms, state

    monkeypatch.setattr(Encoder, "encode", forgets)
    with pytest.raises(AssertionError):
        check_holder(holder, tmp_path, cells, {})
