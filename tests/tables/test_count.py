# SPDX-License-Identifier: Apache-2.0
"""Tables to counts: the inputs that tools of this kind get wrong, each with its outcome."""

import dataclasses
import random
import warnings
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError, PriorWarning, PufferfishError
from pufferfish.priors.prior import Prior
from pufferfish.support import Lattice, Levels
from pufferfish.tables import count as count_module
from pufferfish.tables.count import count_table
from pufferfish.tables.rules import Rules, SetAside, TableReport, make_rules
from table_cases import as_dict, aside, count, csv_text, refused, support, values, write


def test_the_text_na_is_a_value(tmp_path: Path) -> None:
    path = write(tmp_path, "country,score\nNA,1\nNA,2\nDE,2\nDE,3\n")
    found = count(path, "country", "score")
    assert as_dict(found) == {"DE": {"2": 1, "3": 1}, "NA": {"1": 1, "2": 1}}
    assert [m.text for m in found.report.missing] == [""]
    assert any("'NA'" in note and "--missing" in note for note in found.report.notes)


WORK = "workclass, hours\nPrivate, 40\nPrivate, 50\n ?, 40\nState, 50\nState, 60\n"


def test_question_mark_is_a_secret_unless_it_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, WORK)
    kept = count(path, "workclass", "hours")
    assert as_dict(kept)["?"] == {"40": 1}
    assert any("'?'" in note and "(1 row)" in note for note in kept.report.notes)
    dropped = count(path, "workclass", " hours ", missing=[" ? "])
    assert as_dict(dropped) == {"Private": {"40": 1, "50": 1}, "State": {"50": 1, "60": 1}}
    assert aside(dropped) == [("no secret", "workclass", 1)]
    assert [(m.text, m.cells) for m in dropped.report.missing] == [("", 0), ("?", 1)]
    # The value of a row without a secret stays in the support: it is released like the others.
    assert values(dropped) == [40, 50, 60]


BIG = "s,x\na,9007199254740992\nb,9007199254740993\nb,\n"


def test_integers_beyond_doubles_with_a_blank(tmp_path: Path) -> None:
    found = count(write(tmp_path, BIG))
    assert as_dict(found) == {"a": {str(2**53): 1}, "b": {str(2**53 + 1): 1}}
    assert support(found).step == 1
    assert aside(found) == [("no public value", "x", 1)]


def test_mutant_that_reads_numbers_as_floats_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_float(text: str) -> Any:
        return float(text).as_integer_ratio() if text else None

    monkeypatch.setattr("pufferfish.tables.encode.parse_cell", lambda text, mark: as_float(text))
    with pytest.raises((AssertionError, PriorWarning, InputError)):
        test_integers_beyond_doubles_with_a_blank(tmp_path)


@pytest.mark.parametrize("words", [("false", "true"), ("FALSE", "TRUE"), ("False", " True ")])
def test_booleans_are_levels(tmp_path: Path, words: tuple[str, str]) -> None:
    no, yes = words
    path = write(tmp_path, f"s,flag\na,{no}\na,\nb,{no}\nb,{yes}\n")
    found = count(path, "s", "flag", order=["false", "true"])
    assert as_dict(found) == {"a": {"false": 1}, "b": {"false": 1, "true": 1}}
    assert found.report.rows_used == 3
    assert support(found) == Levels(("false", "true"), ordered=True)
    assert support(count(path, "s", "flag")) == Levels(("false", "true"))
    assert "mixes" in refused(write(tmp_path, csv_text([("a", "1"), ("b", yes)])))


@pytest.mark.parametrize("text", ["Inf", "nan", "-Infinity", "1e999", "9" * 5000])
def test_not_finite_is_refused_with_its_row(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, csv_text([("a", "1"), ("a", "2"), ("b", text), ("b", "3")]))
    message = refused(path)
    assert "not finite in data row 3" in message
    assert text not in message


def test_numbers_mixed_with_text(tmp_path: Path) -> None:
    rows = [("a", "1"), ("a", "?"), ("b", "?"), ("b", "2"), ("b", "ill")]
    message = refused(write(tmp_path, csv_text(rows)))
    for part in ("first in data row 2", "--missing", "--levels"):
        assert part in message
    assert "ill" not in message
    found = count(write(tmp_path, csv_text(rows)), missing=["?", "ill"])
    assert as_dict(found) == {"a": {"1": 1}, "b": {"2": 1}}
    found = count(write(tmp_path, csv_text(rows)), levels=["1", "2", "?", "ill", "well"])
    assert as_dict(found) == {"a": {"1": 1, "?": 1}, "b": {"2": 1, "?": 1, "ill": 1}}
    assert not support(found).ordered
    assert "well" in support(found).names


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_decimal_comma_needs_the_option(tmp_path: Path, mark: str) -> None:
    def made(*cells: str) -> Path:
        rows = [("s", "x"), *(("ab"[k % 2], f'"{cell}"') for k, cell in enumerate(cells))]
        return write(tmp_path, "\n".join(mark.join(row) for row in rows))

    path = made("1,5", "2", "-0,125", "1e1", "")
    assert "--decimal ," in refused(path)
    assert [float(v) for v in values(count(path, decimal=","))] == [-0.125, 1.5, 2, 10]  # type: ignore[arg-type]  # mixed kinds
    assert count(path, decimal=",").codings[0].decimal == ","
    for cells in (("1,5", "k.A.", "2,5"), ("1,200", "1,201"), ("1,234,567.5",), ("low", "1,5")):
        assert "--decimal ," in refused(made(*cells))
    assert "mixes numbers" in refused(made("1,5", "k.A.", "2,5"), decimal=",")
    assert values(count(made("1,200", "1,201"), decimal=",")) == [
        Fraction("1.2"),
        Fraction("1.201"),
    ]
    for cells in (("1,5", "1.5"), ("1.000", "2.000"), ("1", "1.0")):
        assert "no --decimal" in refused(made(*cells), decimal=",")
    assert "mixes" in refused(made("1.000,25", "1"), decimal=",")
    assert support(count(made("1,5", "2,5"), levels=["1,5", "2,5"])).names == ("1,5", "2,5")


def test_a_needless_zero_in_front_makes_levels(tmp_path: Path) -> None:
    path = write(tmp_path, "s,zip\na,01730\na,1730\nb,02138\nb,10001\n")
    found = count(path, public="zip")
    assert support(found) == Levels(("01730", "02138", "10001", "1730"))
    table = pa.table({"s": list("aabb"), "zip": ["01730", "1730", "02138", "1730"]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", table, table.to_pandas(), pl.from_arrow(table)):
        assert support(count(source, public="zip")) == Levels(("01730", "02138", "1730"))
    assert "a step or support is for numbers" in refused(path, public="zip", step=1)
    assert "mixes" in refused(write(tmp_path, csv_text([("a", "01"), ("b", "1"), ("b", "x")])))


def test_two_texts_of_one_number_are_never_merged_without_a_word(tmp_path: Path) -> None:
    path = write(tmp_path, "s,x\na,713752e1\na,7137520\nb,12e2\nb,120e1\n")
    with pytest.warns(PriorWarning, match="are read as one number"):
        found = count(path)
    assert values(found) == [1200, 7137520]
    codes = ["713752e1", "7137520", "12e2", "120e1"]
    assert support(count(path, levels=codes)).names == tuple(sorted(codes))
    plain = count(write(tmp_path, "s,x\na,1.50\na,1.5\nb,15e-1\nb,2e3\n"))
    assert as_dict(plain) == {"a": {"1.5": 2}, "b": {"1.5": 1, "2000": 1}}
    levels = count(write(tmp_path, "s,x\na,1.10\na,1.1\nb,beta\nb,1.1\n"), levels=["1.1", "beta"])
    assert as_dict(levels) == {"a": {"1.1": 2}, "b": {"1.1": 1, "beta": 1}}


def test_text_that_is_all_numbers_says_so_in_typed_sources(tmp_path: Path) -> None:
    table = pa.table({"s": list("ab"), "x": ["1", "2"]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet", table.to_pandas()):
        found = count(source)
        assert values(found) == [1, 2]
        assert any("is a column of text" in note for note in found.report.notes)
    assert count(write(tmp_path, csv_text([("a", "1"), ("b", "2")]))).report.notes == ()


def test_a_value_far_from_all_others_is_warned_of(tmp_path: Path) -> None:
    rows = [("A", "40"), ("A", "50"), ("B", "50"), ("B", "-999.0")]
    with pytest.warns(PriorWarning, match="--missing -999"):
        count(write(tmp_path, csv_text(rows)))
    found = count(write(tmp_path, csv_text(rows)), missing=["-999"])
    assert values(found) == [40, 50]
    assert found.report.warnings[0].startswith("the secret B has a single row")
    with pytest.warns(PriorWarning, match="the value 99999"):
        count(write(tmp_path, csv_text([*rows[:3], ("B", "99999")])))
    for fine in (
        ("0", "1000"),
        ("0", "1", "2", "10"),
        ("-1", "0", "1"),
        ("1", "2", "4", "8", "32"),
    ):
        count(write(tmp_path, csv_text([("A", cell) for cell in fine])))


def test_dates_are_levels_with_one_note(tmp_path: Path) -> None:
    path = write(
        tmp_path, csv_text([("a", "2020-01-31"), ("a", "2020-02-01"), ("b", "2020-02-01")])
    )
    frame = pd.read_csv(path, parse_dates=["x"])
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (path, frame, pl.from_pandas(frame), tmp_path / "t.parquet"):
        found = count(source)
        assert support(found) == Levels(("2020-01-31", "2020-02-01"))
        assert sum("dates" in note for note in found.report.notes) == 1


def test_durations_and_intervals_are_refused(tmp_path: Path) -> None:
    for unit in ("s", "us"):
        spans = pd.to_timedelta([1, 2], unit="D").as_unit(unit)
        for frame in (
            pd.DataFrame({"s": ["a", "b"], "x": spans}),
            pd.DataFrame({"s": ["a", "b"], "x": pd.Series(spans, dtype=object)}),
            pl.DataFrame({"s": ["a", "b"], "x": spans.to_pytimedelta().tolist()}),
        ):
            assert "numbers of days" in refused(frame)
    path = tmp_path / "t.parquet"
    duckdb.sql("SELECT 'a' s, INTERVAL 3 DAY x, [1] l, {'a': 1} o").write_parquet(str(path))
    assert "holds interval cells" in refused(path)
    assert "holds list cells" in refused(path, public="l")
    assert "holds struct cells" in refused(path, public="o")


LEVELS = {"A": {"Medium": 3, "Low": 6, "High": 1}, "B": {"Low": 1, "Medium": 3, "High": 6}}
LEVEL_ROWS = [(s, x) for s, row in LEVELS.items() for x, n in row.items() for _ in range(n)]


def test_levels_have_no_order_unless_it_is_stated(tmp_path: Path) -> None:
    path = write(tmp_path, csv_text(LEVEL_ROWS))
    plain = count(path)
    assert support(plain) == Levels(("High", "Low", "Medium"), ordered=False)
    stated = count(path, order=["Low", "Medium", "High"])
    assert support(stated) == Levels(("Low", "Medium", "High"), ordered=True)
    assert stated.counts.tolist() == [[6, 3, 1], [1, 3, 6]]
    named = count(path, order="alphabetical")
    assert support(named) == Levels(("High", "Low", "Medium"), ordered=True)
    with pytest.warns(PriorWarning, match="first appearance"):
        seen = count(path, order="appearance")
    assert support(seen) == Levels(("Medium", "Low", "High"), ordered=True)
    assert as_dict(seen) == as_dict(plain) == as_dict(stated) == LEVELS


@pytest.mark.parametrize("order", [None, ["Low", "Medium", "High"], "alphabetical"])
def test_shuffling_the_rows_changes_nothing(tmp_path: Path, order: Any) -> None:
    first = count(write(tmp_path, csv_text(LEVEL_ROWS)), order=order)
    for seed in range(5):
        rows = random.Random(seed).sample(LEVEL_ROWS, len(LEVEL_ROWS))
        again = count(write(tmp_path, csv_text(rows)), order=order)
        assert again.codings == first.codings
        assert again.secrets == first.secrets
        assert again.counts.tolist() == first.counts.tolist()
        assert again.report == first.report


def test_orders_that_do_not_fit(tmp_path: Path) -> None:
    path = write(tmp_path, csv_text(LEVEL_ROWS))
    message = refused(path, order=["low", "Medium", "High"])
    assert "(first in data row 4)" in message
    assert "'low' is none (did you mean 'Low'?)" in message
    message = refused(path, levels=["Medium", "jones"])
    assert "2 of the distinct values of column 'x'" in message
    assert "High" not in message  # a cell that is no level is not shown
    assert "step" in refused(path, step=1)
    assert "support" in refused(path, support=[1])
    numbers = write(tmp_path, csv_text([("a", "1"), ("b", "2")]))
    assert "holds numbers" in refused(numbers, order="alphabetical")
    assert "that were declared" in refused(numbers, order=["low", "high"])
    turned = count(numbers, order=["2", "1"])
    assert support(turned) == Levels(("2", "1"), ordered=True)


SPARSE = "s,x\nA,low\nA,mid\nB,low\nB,high\nC,\n"


def test_zeros_are_explicit_and_an_empty_secret_blocks(tmp_path: Path) -> None:
    path = write(tmp_path, SPARSE)
    message = refused(path, order=["low", "mid", "high"])
    assert "the secret C, of which nothing is known" in message
    assert "--exclude-secret 'C'" in message
    found = count(path, order=["low", "mid", "high"], exclude_secrets=["C"])
    assert found.counts.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert "did you mean 'C'" in refused(path, exclude_secrets=["c"])


def test_a_single_row_is_warned_of(tmp_path: Path) -> None:
    path = write(tmp_path, csv_text([("a", "1"), ("a", "2"), ("b", "1")]))
    with pytest.warns(PriorWarning, match="the secret b has a single row"):
        Prior.from_table(path, secret="s", public="x")
    path = write(tmp_path, csv_text([("a", "1"), ("b", "1")]))
    with pytest.warns(PriorWarning, match="the secrets a, b have a single row each"):
        Prior.from_table(path, secret="s", public="x")


def test_excluded_secrets_are_counted_and_keep_their_values_in_the_support(tmp_path: Path) -> None:
    rows = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "1"), ("c", "9"), ("c", ""), ("", "7")]
    found = count(write(tmp_path, csv_text(rows)), exclude_secrets=["c"])
    assert as_dict(found) == {"a": {"1": 1, "2": 1}, "b": {"1": 2}}
    assert values(found) == [1, 2, 7, 9]
    assert aside(found) == [
        ("no public value", "x", 1), ("secret excluded", "c", 1), ("no secret", "s", 1),
    ]  # fmt: skip
    assert (found.report.rows_read, found.report.rows_used) == (7, 4)


def test_mutant_that_loses_rows_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = count_module._secrets

    def forgets(*given: Any) -> Any:
        secrets, who, reasons = honest(*given)
        return secrets, who, reasons[1:]

    monkeypatch.setattr(count_module, "_secrets", forgets)
    with pytest.raises(PufferfishError, match="rows were lost"):
        count(write(tmp_path, BIG))


def test_report_adds_up_or_raises() -> None:
    rules = make_rules(secret="s", public="x")
    gone = SetAside("no public value", "x", 1)
    with pytest.raises(PufferfishError, match="rows were lost"):
        TableReport("t", rules, 5, 3, (gone,), (("a", 3),), (), ())


def test_step_rounds_before_counting(tmp_path: Path) -> None:
    rows = [("a", "0.9"), ("a", "1.1"), ("b", "1.5"), ("b", "2.5"), ("b", "3.04")]
    found = count(write(tmp_path, csv_text(rows)), step="1")
    assert as_dict(found) == {"a": {"1": 2}, "b": {"2": 2, "3": 1}}
    assert found.report.notes == ("'x' is rounded to multiples of 1",)
    assert found.codings[0].rounds
    plain = count(write(tmp_path, csv_text(rows)))
    assert isinstance(support(plain), Lattice)
    assert support(plain).step == Fraction(1, 50)  # 3.04 and tenths
    far = write(tmp_path, csv_text([("a", "1e30"), ("b", "1e-3")]))
    assert "--step" in refused(far)


def test_identifiers_are_refused_as_soon_as_they_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = 500_000
    table = pa.table({"s": ["a", "b"] * (many // 2), "x": [f"p{k}" for k in range(many)]})
    assert "500,000 different texts" in refused(table)
    monkeypatch.setattr(count_module, "MOST_COUNTS", 100)
    path = write(tmp_path, csv_text([(str(k), str(k)) for k in range(20)]))
    assert "may be swapped" in refused(path)


@pytest.mark.parametrize("missing", ["-999", "-999.0", "-9.99e2"])
def test_missing_numbers_are_compared_as_numbers(tmp_path: Path, missing: str) -> None:
    texts = ["1", "-999.0", "-999", "2", "-999.00"]
    path = write(tmp_path, csv_text([("a", text) for text in texts]))
    double = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": ["a"] * 5, "x": [float(text) for text in texts]}), double)
    for source in (path, double):
        found = count(source, missing=[missing])
        assert as_dict(found) == {"a": {"1": 1, "2": 1}}
        assert [m.cells for m in found.report.missing] == [0, 3]
        assert aside(found) == [("no public value", "x", 3)]
    comma = write(tmp_path, "s;x\na;1,5\na;-999,0\na;2\n")
    for text in ("-999", "-999,0"):
        assert as_dict(count(comma, missing=[text], decimal=",")) == {"a": {"1.5": 1, "2": 1}}


# ---- what is declared ---------------------------------------------------------------------------


def declared_again(source: Any, found: Any) -> Any:
    """Count once more under what the codings declare, as verifying a plan does."""
    rules: Rules = found.report.rules
    columns = tuple(coding.declared() for coding in found.codings)
    return count_table(source, dataclasses.replace(rules, columns=columns))


@pytest.mark.parametrize(
    "cells, rules",
    [
        (["1", "2.5", "", "7"], {}),
        (["1", "2.5", "", "7"], {"step": 2}),
        (["1", "2.5", "", "7"], {"support": [1, "2.5", 7, 9]}),
        (["lo", "hi", "", "mid"], {"order": ["lo", "mid", "hi", "top"]}),
        (["lo", "hi", "", "mid"], {"order": "appearance"}),
        (["lo", "hi", "", "mid"], {"missing_as_level": True}),
        (["lo", "hi", "", "mid"], {"levels": ["lo", "hi", "mid", "never"]}),
        (["1,5", "2", "", "3"], {"decimal": ","}),
    ],
)  # fmt: skip
def test_the_declared_columns_give_back_the_support(
    tmp_path: Path, cells: list[str], rules: dict[str, Any]
) -> None:
    path = write(tmp_path, csv_text((s, f'"{x}"') for s in "ab" for x in cells))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        found = count(path, **rules)
    again = declared_again(path, found)
    assert [c.column for c in again.codings] == ["x"]
    assert again.codings[0].support == found.codings[0].support
    assert (
        dataclasses.replace(again.codings[0], support=found.codings[0].support) == found.codings[0]
    )
    assert again.counts.tolist() == found.counts.tolist()
    # Another table of which some values do not occur has the same support; others are refused.
    fewer = write(tmp_path, csv_text((s, f'"{x}"') for s in "ab" for x in cells[1:]), "fewer.csv")
    assert declared_again(fewer, found).codings[0].support == support(found)
    more = write(
        tmp_path, csv_text((s, f'"{x}"') for s in "ab" for x in [*cells, "88"]), "more.csv"
    )
    with pytest.raises(InputError, match="data row 5"):
        declared_again(more, found)


def test_numbers_that_no_row_has(tmp_path: Path) -> None:
    path = write(tmp_path, csv_text([("m", "1"), ("n", "2.5"), ("n", "1")]))
    found = count(path, support=[1, 2, "2.5", 7])
    assert found.counts.tolist() == [[1, 0, 0, 0], [1, 0, 1, 0]]
    assert any("2 declared values" in n and n.endswith(": 2, 7") for n in found.report.notes)
    assert not any("in no row" in n for n in count(path, support=[1, "2.5"]).report.notes)
    assert "1 of the distinct values" in refused(path, support=[1, 2])
    rounded = count(path, support=[0, 5], step=5)
    assert as_dict(rounded) == {"m": {"0": 1}, "n": {"0": 2}}


# ---- missing as a level -------------------------------------------------------------------------

BLANKS = [("m", "a"), ("m", "b"), ("m", "?"), ("n", ""), ("n", "a"), ("n", ""), ("", "a"), ("", "")]


def test_rows_without_a_value_have_a_level(tmp_path: Path) -> None:
    path = write(tmp_path, csv_text(BLANKS))
    plain = count(path, missing=["?"])
    assert aside(plain) == [("no public value", "x", 4), ("no secret", "s", 1)]
    found = count(path, missing=["?"], missing_as_level=True)
    assert support(found) == Levels(("a", "b", "(missing)"), ordered=False)
    assert as_dict(found) == {"m": {"a": 1, "b": 1, "(missing)": 1}, "n": {"a": 1, "(missing)": 2}}
    assert found.report.rows_used == 6
    assert aside(found) == [("no secret", "s", 2)]
    assert any("may reveal the secret" in note for note in found.report.notes)
    assert [(m.text, m.cells) for m in found.report.missing] == [("", 5), ("?", 1)]
    only = write(tmp_path, csv_text([("m", "a"), ("m", "b"), ("n", ""), ("n", "")]))
    assert "the secret n" in refused(only)
    assert as_dict(count(only, missing_as_level=True))["n"] == {"(missing)": 2}


@pytest.mark.parametrize(
    "rules, names, ordered",
    [
        ({"order": "alphabetical"}, ("a", "b", "(missing)"), True),
        ({"order": ["b", "(missing)", "a"]}, ("b", "(missing)", "a"), True),
        ({"levels": ["b", "z", "a"]}, ("a", "b", "z", "(missing)"), False),
        ({"levels": ["b", "a"], "order": "alphabetical"}, ("a", "b", "(missing)"), True),
        (
            {"levels": ["b", "a", "(missing)"], "order": ["(missing)", "a", "b"]},
            ("(missing)", "a", "b"),
            True,
        ),
    ],
)
def test_where_the_level_stands(
    tmp_path: Path, rules: dict[str, Any], names: tuple[str, ...], ordered: bool
) -> None:
    path = write(tmp_path, csv_text(BLANKS))
    found = count(path, missing=["?"], missing_as_level=True, **rules)
    assert support(found) == Levels(names, ordered=ordered)
    assert as_dict(found)["n"] == {"a": 1, "(missing)": 2}


def test_a_wholly_blank_column_needs_declared_levels(tmp_path: Path) -> None:
    path = write(tmp_path, csv_text([("m", ""), ("n", "")]))
    assert "no row has a value" in refused(path, missing_as_level=True)
    assert "no row has a value" in refused(path, levels=["a"])
    found = count(path, levels=["a"], missing_as_level=True)
    assert as_dict(found) == {"m": {"(missing)": 1}, "n": {"(missing)": 1}}
    frame = pd.DataFrame({"s": ["m", "n"], "x": [None, None]})
    assert as_dict(count(frame, levels=["a"], missing_as_level=True)) == as_dict(found)


@pytest.mark.parametrize("cells", [("1", "2", ""), ("1.5", "", "-999")])
def test_numbers_have_no_level_of_missing_ones(tmp_path: Path, cells: tuple[str, ...]) -> None:
    path = write(tmp_path, csv_text(zip("mnn", cells, strict=True)))
    message = refused(path, missing_as_level=True, missing=["-999"])
    assert "holds numbers" in message
    assert "--levels" in message
    levels = [c for c in cells if c not in ("", "-999")]
    named = count(path, levels=levels, missing=["-999"], missing_as_level=True)
    assert "(missing)" in support(named).names


def test_a_text_of_that_name_is_refused_unless_it_means_missing(tmp_path: Path) -> None:
    path = write(tmp_path, csv_text([("m", "a"), ("n", ""), ("n", "(missing)"), ("n", "b")]))
    for rules in ({}, {"levels": ["a", "b", "(missing)"]}, {"order": ["a", "b", "(missing)"]}):
        assert "data row 3" in refused(path, missing_as_level=True, **rules)
        found = count(path, missing_as_level=True, missing=["(missing)"], **rules)
        assert as_dict(found) == {"m": {"a": 1}, "n": {"b": 1, "(missing)": 2}}
    with pytest.warns(PriorWarning, match="first appearance"):
        late = count(path, missing_as_level=True, missing=["(missing)"], order="appearance")
    assert support(late) == Levels(("a", "b", "(missing)"), ordered=True)  # it is the last one
    plain = count(path)
    assert as_dict(plain)["n"] == {"b": 1, "(missing)": 1}
    assert any("'(missing)' in column 'x' is a level of its own" in n for n in plain.report.notes)


# ---- several columns ----------------------------------------------------------------------------

Row = tuple[str, str, str]
SECRETS, ONES, TWOS = ("a", "b", ""), ("1", "2.5", "-3", "1.0", ""), ("u", "v ", "", "w")
ROWS = st.lists(
    st.tuples(st.sampled_from(SECRETS), st.sampled_from(ONES), st.sampled_from(TWOS)),
    min_size=1,
    max_size=25,
)
SHOWN = {"1": "1", "1.0": "1", "2.5": "2.5", "-3": "-3"}


def as_table(rows: Iterable[Row], names: tuple[str, ...] = ("s", "x", "z")) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(names, (pa.array(c, pa.string()) for c in columns), strict=True)))


def check_by_hand(rows: list[Row]) -> None:
    """Count rows one by one; also why each of the others is set aside."""
    counts: dict[str, Counter[str]] = {s: Counter() for s, _, _ in rows if s}
    gone: Counter[tuple[str, str]] = Counter()
    for s, x, z in rows:
        if not x:
            gone["no public value", "x"] += 1
        elif not z.strip():
            gone["no public value", "z"] += 1
        elif not s:
            gone["no secret", "s"] += 1
        else:
            counts[s][f"x = {SHOWN[x]}, z = {z.strip()}"] += 1
    if not (counts and all(counts.values())):
        return
    found = count(as_table(rows), public=["x", "z"])
    assert as_dict(found) == {s: dict(c) for s, c in counts.items()}
    assert {(r, n): k for r, n, k in aside(found)} == dict(gone)
    assert found.report.rows_read == len(rows) == found.report.rows_used + sum(gone.values())
    # The axis is that of a plan for the column, whatever rows are set aside for the other.
    for k, column in enumerate(("x", "z")):
        try:
            alone = count(as_table(rows), public=column)
        except InputError:
            continue
        assert found.product.axes[k] == alone.product.axes[0]


@given(ROWS)
def test_joint_counts_are_those_counted_by_hand(rows: list[Row]) -> None:
    check_by_hand(rows)


EXAMPLE: list[Row] = [
    ("a", "1", "u"), ("a", "2.5", "v"), ("b", "", "u"), ("b", "1", ""), ("b", "-3", "v"),
    ("a", "", ""), ("", "1", "u"), ("b", "1", "w"), ("b", "1", "w"),
]  # fmt: skip


def test_mutants_of_joint_counts_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    check_by_hand(EXAMPLE)
    honest, place = np.ravel_multi_index, count_module._place
    with monkeypatch.context() as patch:
        patch.setattr(np, "ravel_multi_index", lambda at, shape: honest(at, shape, order="F"))
        with pytest.raises(AssertionError):
            check_by_hand(EXAMPLE)

    def filled(found: Any, *given: Any) -> Any:
        coding = place(found, *given)
        found.atoms[found.atoms < 0] = coding.support.size - 1
        return coding

    monkeypatch.setattr(count_module, "_place", filled)
    with pytest.raises(AssertionError):
        check_by_hand(EXAMPLE)


def test_columns_keep_their_own_cleaning() -> None:
    rows = [
        ("a", "0.2", "lo", "-9"), ("a", "0.6", "hi", "-9.0"), ("b", "1.4", "?", "4"),
        ("b", "1.6", "hi", "4"), ("?", "1", "lo", "4"), ("c", "1", "lo", "4"),
        ("a", "2", "lo", "4"),
    ]  # fmt: skip
    table = as_table(rows, ("s", "x", "z", "n"))  # type: ignore[arg-type]  # any four
    found = count(
        table, public=[" z", "x", "n "], order={"z": ["lo", "mid", "hi"]}, step={"x": "1"},
        missing={"z": ["?"], "n": ["-9"], "s": "?"}, exclude_secrets=["c"],
        support={"n": [4, 5]},
    )  # fmt: skip
    assert as_dict(found) == {"a": {"z = lo, x = 2, n = 4": 1}, "b": {"z = hi, x = 2, n = 4": 1}}
    assert found.product.shape == (3, 3, 2)
    assert aside(found) == [
        ("no public value", "z", 1), ("no public value", "n", 2), ("secret excluded", "c", 1),
        ("no secret", "s", 1),
    ]  # fmt: skip
    assert [coding.missing for coding in found.codings] == [("?",), (), ("-9",)]
    report = found.report
    assert report.rules.missing == ("?",)
    assert [(m.text, m.cells) for m in report.missing] == [("", 0), ("?", 2), ("-9", 2)]
    assert report.rows_missing == (1, 0, 2)


def test_secrets_without_a_row_that_has_all_values() -> None:
    rows = [("a", "1", "u"), ("b", "1", ""), ("b", "", "u")]
    message = refused(as_table(rows), public=["x", "z"])
    assert "the secret b" in message
    assert "both a value in x, z and" in message
    found = count(as_table(rows), public=["x", "z"], exclude_secrets=["b"])
    assert as_dict(found) == {"a": {"x = 1, z = u": 1}}
    assert "no row" in refused(as_table(rows[1:]), public=["x", "z"])


def test_tables_with_too_many_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 4000
    table = pa.table({"s": ["a", "b"] * (n // 2), "x": list(range(n)), "z": list(range(n))})
    assert "16,000,000 combinations" in refused(table, public=["x", "z"])
    coarse = count(table, public=["x", "z"], step={"x": 100, "z": 100})
    assert coarse.product.size == 41 * 41
    monkeypatch.setattr(count_module, "MOST_COUNTS", 1000)
    assert "2 secrets times 1,681" in refused(table, public=["x", "z"], step={"x": 100, "z": 100})
