# SPDX-License-Identifier: Apache-2.0
"""Text files to priors: the inputs that tools of this kind get wrong, each with its outcome."""

import ast
import gzip
import json
import os
import random
import subprocess
import sys
import unicodedata
import warnings
from graphlib import TopologicalSorter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pufferfish
from pufferfish.errors import InputError, PriorWarning, PufferfishError
from pufferfish.support import Lattice, Levels
from pufferfish.tables import Coder, count_table, diagnose, make_rules, open_table, sniff
from pufferfish.tables import files as files_module
from pufferfish.tables.report import TableReport
from table_cases import as_dict, count, csv_text, values, write


def refused(table, *, secret="s", public="x", **rules):
    """The one line with which a table is refused."""
    with pytest.raises(InputError) as caught:
        count(table, secret, public, **rules)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_byte_order_mark_quoted_header_and_line_ends(tmp_path, end):
    rows = [b'\xef\xbb\xbf"ward","days"', b"A,1", b"A,2", b"B,2", b"B,3", b""]
    prior = count(write(tmp_path, end.join(rows)), "ward", "days")
    assert as_dict(prior) == {"A": {"1": 1, "2": 1}, "B": {"2": 1, "3": 1}}


def test_the_text_na_is_a_value(tmp_path):
    path = write(tmp_path, "country,score\nNA,1\nNA,2\nDE,2\nDE,3\n")
    prior = count(path, "country", "score")
    assert as_dict(prior) == {"DE": {"2": 1, "3": 1}, "NA": {"1": 1, "2": 1}}
    assert [m.text for m in prior.report.missing] == [""]
    assert any("'NA'" in note and "--missing" in note for note in prior.report.notes)


WORK = "workclass, hours\nPrivate, 40\nPrivate, 50\n ?, 40\nState, 50\nState, 60\n"


def test_question_mark_is_a_secret_unless_it_is_missing(tmp_path):
    path = write(tmp_path, WORK)
    kept = count(path, "workclass", "hours")
    assert as_dict(kept)["?"] == {"40": 1}
    assert any("'?'" in note and "(1 row)" in note for note in kept.report.notes)
    dropped = count(path, "workclass", " hours ", missing=[" ? "])
    assert as_dict(dropped) == {"Private": {"40": 1, "50": 1}, "State": {"50": 1, "60": 1}}
    assert dropped.report.set_aside == (("no secret value", 1),)
    assert [(m.text, m.secret_rows) for m in dropped.report.missing] == [("", 0), ("?", 1)]
    # The value of a row without a secret stays in the support: it is released like the others.
    assert values(dropped) == [40, 50, 60]


def test_space_before_a_quoted_field(tmp_path):
    path = write(tmp_path, 's, x\n"a, b", "1"\n"a, b", "2"\nc, 3\n')
    assert as_dict(count(path)) == {"a, b": {"1": 1, "2": 1}, "c": {"3": 1}}


BIG = "s,x\na,9007199254740992\nb,9007199254740993\nb,\n"


def test_integers_beyond_doubles_with_a_blank(tmp_path):
    prior = count(write(tmp_path, BIG))
    assert as_dict(prior) == {"a": {str(2**53): 1}, "b": {str(2**53 + 1): 1}}
    assert prior.support.step == 1
    assert prior.report.set_aside == (("no public value", 1),)


def test_mutant_that_reads_numbers_as_floats_is_caught(tmp_path, monkeypatch):
    def as_float(text, decimal):
        return float(text).as_integer_ratio()

    monkeypatch.setattr("pufferfish.tables.classify.number", as_float)
    with pytest.raises(AssertionError):
        test_integers_beyond_doubles_with_a_blank(tmp_path)


@pytest.mark.parametrize("words", [("false", "true"), ("FALSE", "TRUE"), ("False", " True ")])
def test_blank_among_booleans(tmp_path, words):
    no, yes = words
    path = write(tmp_path, f"s,flag\na,{no}\na,\nb,{no}\nb,{yes}\n")
    prior = count(path, "s", "flag")
    assert as_dict(prior) == {"a": {"0": 1}, "b": {"0": 1, "1": 1}}
    assert prior.report.rows_used == 3


@pytest.mark.parametrize("text", ["Inf", "nan", "-Infinity", "1e999", "9" * 5000, "1/0"])
def test_not_finite_is_refused_with_its_row(tmp_path, text):
    path = write(tmp_path, csv_text([("a", "1"), ("a", "2"), ("b", text), ("b", "3")]))
    message = refused(path)
    assert ("longer than 2000" if len(text) > 2000 else "not finite") in message
    assert "data row 3" in message
    quoted = text.lower() in ("inf", "nan", "-infinity")
    assert (text in message) == quoted


@pytest.mark.parametrize(
    "text, fault", [("1e-2000", "is too small"), (f"0.{'0' * 2200}1", "is longer than 2000")]
)
def test_numbers_that_are_too_small_are_called_so(tmp_path, text, fault):
    message = refused(write(tmp_path, csv_text([("a", "1"), ("b", text), ("b", "3")])))
    assert fault in message
    assert "data row 2" in message
    assert "finite" not in message


def test_not_finite_texts_are_levels_among_levels(tmp_path):
    path = write(tmp_path, csv_text([("a", "inf"), ("a", "low"), ("b", "nan")]))
    assert as_dict(count(path)) == {"a": {"inf": 1, "low": 1}, "b": {"nan": 1}}
    alone = write(tmp_path, csv_text([("a", "inf"), ("b", "nan")]))
    assert "not finite in data row 1" in refused(alone)


def test_numbers_mixed_with_text(tmp_path):
    rows = [("a", "1"), ("a", "?"), ("b", "?"), ("b", "2"), ("b", "ill")]
    message = refused(write(tmp_path, csv_text(rows)))
    for part in ("'?' (2 rows, first in data row 2)", "1 other text", "--missing '?'", "--levels"):
        assert part in message
    assert "ill" not in message.replace("will", "")
    prior = count(write(tmp_path, csv_text(rows)), missing=["?", "ill"])
    assert as_dict(prior) == {"a": {"1": 1}, "b": {"2": 1}}
    prior = count(write(tmp_path, csv_text(rows)), levels=["1", "2", "?", "ill", "well"])
    assert as_dict(prior) == {"a": {"1": 1, "?": 1}, "b": {"2": 1, "?": 1, "ill": 1}}
    assert not prior.support.ordered
    assert "well" in prior.support.names


def test_truth_values_mixed_with_numbers_are_refused(tmp_path):
    assert "mixes" in refused(write(tmp_path, csv_text([("a", "1"), ("b", "true")])))
    levels = count(write(tmp_path, csv_text([("a", "maybe"), ("b", "true")])))
    assert isinstance(levels.support, Levels)


def test_quoted_thousands(tmp_path):
    path = write(tmp_path, 's,x\na,"1,200"\nb,"1,201"\nb,"1,234,567.5"\n')
    assert values(count(path)) == [1200, 1201, 1234567.5]


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_decimal_comma_is_read_or_refused(tmp_path, mark):
    rows = ["s;x", "a;1,5", "b;2", "b;1.000,25", "b;-1,125", "b;"]
    prior = count(write(tmp_path, "\n".join(rows).replace(";", mark)))
    assert [float(v) for v in values(prior)] == [-1.125, 1.5, 2, 1000.25]
    assert prior.report.rules.decimal == ","
    assert any("decimal comma" in note for note in prior.report.notes)
    ambiguous = write(tmp_path, "\n".join(["s;x", "a;1,200", "b;1,201"]).replace(";", mark))
    assert "thousands or decimals" in refused(ambiguous)
    assert values(count(ambiguous, decimal=",")) == [pytest.approx(1.2), pytest.approx(1.201)]
    assert values(count(ambiguous, decimal=".")) == [1200, 1201]
    mixed = write(tmp_path, "\n".join(["s;x", "a;1,5", "b;1.5"]).replace(";", mark))
    assert "mixes" in refused(mixed)


def test_decimal_comma_between_commas_is_refused(tmp_path):
    assert "decimal comma" in refused(write(tmp_path, 's,x\na,"1,5"\nb,"0,123"\n'))


@pytest.mark.parametrize(
    "content, parts",
    [
        ("s,x\n", ["has a header but no rows"]),
        ("s,x", ["has a header but no rows"]),
        ("", ["is empty"]),
        ("\n\n", ["is empty"]),
        ("\ns,x\na,1\n", ["begins with an empty line"]),
        ("s,x,x\na,1,2\n", ["the column 'x' 2 times", "columns 2, 3"]),
        ("s,x, x\na,1,2\n", ["the column 'x' 2 times"]),
        ("39, 77516, 39\n50, 83311, 13\n", ["'39' 2 times", "is the first line of the file a"]),
        ("s,x,z\na,1\nb,2\n", ["line 2 has 2 fields", "header has 3"]),
        ("s,x\na,1\nb,2,3,4\n", ["line 3 has 4 fields", "header has 2"]),
        ("s,x\na,1\nb\n", ["line 3 has 1 field,", "header has 2"]),
        ('s,x\n"a\na",1\nb,2,3\n', ["line 4 has 3 fields"]),
        ('s,x\na,"1\nb,2\n', ["quotation mark", "line 2"]),
        ("s,x\na,1\r\nb,2\n", ["mixes line ends", "CRLF and LF"]),
        (b"s,x\na,caf\xe9\n", ["not UTF-8", "line 2"]),
        ("s,x\na,1\n".encode("utf-16"), ["UTF-16"]),
        ("s,x\na,1\n".encode("utf-16-le"), ["UTF-16"]),
        (b"PK\x03\x04....", ["ZIP archive or spreadsheet", "save it as CSV"]),
        (b"\x01\x02\x00\x03" * 9, ["binary"]),
        ("s,x\n,1\n,2\n", ["no secret"]),
        ("s,x\na,\nb,\n", ["no row of", "'x'"]),
        ("s,x\na,\n,1\n", ["no row of", "has both"]),
    ],
)
def test_files_that_are_refused_in_one_line(tmp_path, content, parts):
    message = refused(write(tmp_path, content))
    for part in parts:
        assert part in message


def test_late_faults_are_found_although_only_two_columns_are_used(tmp_path):
    good = "a,1,2,3\n" * 50_000
    path = write(tmp_path, f"s,x,y,z\n{good}b,1,2,3,4\n{good}")
    assert "line 50002 has 5 fields" in refused(path)
    path = write(tmp_path, f"s,x,y,z\n{good}".encode() + b"caf\xe9,1,2,3\n")
    assert "not UTF-8" in refused(path)


@pytest.mark.parametrize(
    "name, content, part",
    [
        ("t.csv", "s,x\nsmith,1\njones,2,3\n", "line 3 has 3 fields"),
        ("t.csv", 's,x\nsmith,1\njones,"2\n', "line 3"),
        ("t.csv", 's,x\nsmith,1\n"jo"nes,2\n', "line 3"),
        ("t.csv", 's,x\nsmith,1\njones,"2"3\n', "line 3"),
        ("t.ndjson", '{"s":"jones","x":1,"x":3}\n', "one key twice (in the value that begins in"),
        ("t.ndjson", '{"s":"a","x":1}\n\n{"s":"jones","x":1,"x":3}\n', "begins in line 3"),
        ("t.json", '[{"s":"jones","x":1},{"s":"jones" "x":2}]', "fault in line 1"),
        ("t.ndjson", '{"s":"a","x":1}\n{"s":"jones",x:2}\n', "fault in line 2"),
        ("t.ndjson", '{"s":"jones\x01","x":2}\n', "fault in line 1"),
        ("t.ndjson", '{"s":"jones\\ud800","x":2}\n', "as JSON"),
        ("t.json", '{"s":"jones"', "fault in line 1"),
        ("t.json", '"jones"', "holds no table"),
        ("t.ndjson", '{"s":"a","x":1}\n"jones"\n', "holds no table"),
        ("t.json", "[]", "holds no table"),
        ("t.json", "", "holds no table"),
        ("t.parquet", "PAR1jonesPAR1", "Parquet file: its end is damaged"),
        ("t.parquet", "jones", "Parquet file: it is too short"),
    ],
)
def test_messages_quote_no_rows(tmp_path, name, content, part):
    message = refused(write(tmp_path, content, name))
    assert "jones" not in message
    assert part in message


def test_messages_of_duckdb_are_never_passed_on(tmp_path):
    """Whatever it says, and whatever words the cells in it hold."""
    header = sniff.Header(("s", "x"), ",")
    for name, head in (("t.csv", header), ("t.json", None), ("t.parquet", None)):
        path = write(tmp_path, "s,x\n", name)
        for message in (
            "Object {jones} has",
            "JSON: jones unicode",
            "Error: jones\njones",
            "jones",
        ):
            assert "jones" not in diagnose.explain(message, path, head)
            assert "\n" not in diagnose.explain(message, path, head)


@pytest.mark.parametrize(
    "texts, quoted",
    [
        (["private-0", "private-1", "private-2"], False),
        (["private-0", "private-0"], True),
        (["p" * 21, "p" * 21], False),
        (["?"], True),
        (["n/a", "jones"], True),
    ],
)
def test_cells_among_numbers_are_quoted_only_as_marks(tmp_path, texts, quoted):
    rows = [("a", "1"), *(("b", text) for text in texts), ("b", "2")]
    message = refused(write(tmp_path, csv_text(rows)))
    common = "n/a" if "n/a" in texts else texts[0]
    assert "jones" in texts or "data row 2" in message
    shown = [text for text in texts if text in message.replace(str(tmp_path), "")]
    assert set(shown) == ({common} if quoted else set())
    assert (f"--missing {common!r}" in message) == quoted
    assert "--missing" in message


def test_cells_that_no_level_names_are_not_quoted(tmp_path):
    path = write(tmp_path, csv_text([("a", "low"), ("b", "jones"), ("b", "high")]))
    message = refused(path, levels=["low", "high"])
    assert "jones" not in message
    assert "a text (1 row, first in data row 2)" in message


def test_a_mutant_that_quotes_cells_is_caught(tmp_path, monkeypatch):
    monkeypatch.setattr("pufferfish.tables.classify._may_be_quoted", lambda text, rows: True)
    with pytest.raises(AssertionError):
        test_cells_that_no_level_names_are_not_quoted(tmp_path)


@pytest.mark.parametrize("lines", ["a,1,\nb,2,\n", "a,1\nb,2,\n", '"a\n",1\nb,2,\n'])
def test_a_surplus_empty_field_is_refused(tmp_path, lines):
    number = lines.count("\n", 0, lines.index(",\n")) + 2
    assert f"line {number} has 3 fields" in refused(write(tmp_path, f"s,x\n{lines}"))
    # An empty last field that the header names is a missing value.
    fine = count(write(tmp_path, f"s,x,y\n{'a,1,' if 'a,1,' in lines else 'a,1,0'}\nb,2,\n"))
    assert as_dict(fine) == {"a": {"1": 1}, "b": {"2": 1}}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.tab", "T.CSV", "t.csv.gz"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_mark_between_fields_is_found_whatever_the_ending(tmp_path, name, mark):
    text = "\n".join(["note;s;x", "a, b|c;a;1", "d;b;2", ""]).replace(";", mark)
    if mark in ",|":
        text = text.replace("a, b|c", '"a, b|c"')
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text
    assert as_dict(count(write(tmp_path, content, name))) == {"a": {"1": 1}, "b": {"2": 1}}


@pytest.mark.parametrize(
    "name",
    ["a*[1]?.csv", "a*.csv", "[ab].csv", "?b1c.csv", "**.csv", "{a,b}.csv", "]a[.csv", "!a.csv",
     "it's.csv", "ünï.csv", "year=2020.csv", "a b.csv", 'q".csv', "';--.csv", "a;b.csv", "~a.csv",
     "-.csv", "%41.csv", "$HOME.csv", "s3:a.csv", "\\.csv", "#?x=1.csv", ":memory:.csv"],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_names_of_files_are_no_patterns(tmp_path, name, ending):
    folder = tmp_path / "year=2021"
    folder.mkdir()
    for other in ("ab1c", "a", "b"):
        write(folder, "s,x\nwrong,9\n", f"{other}.csv")
    path = write(folder, "s,x\na,1\nb,2\n", name)
    if ending == "json":
        path = write(folder, '[{"s":"a","x":1},{"s":"b","x":2}]', f"{name}.json")
    if ending == "parquet":
        path = folder / f"{name}.parquet"
        pq.write_table(pa.table({"s": ["a", "b"], "x": [1, 2]}), str(path))
    assert as_dict(count(path)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert open_table(str(path)).columns == ("s", "x")


@pytest.mark.parametrize("name", ["http://host/t.csv", "s3://bucket/t.parquet", "hf://x/t.json"])
def test_addresses_are_names_of_local_files(tmp_path, monkeypatch, name):
    """Nothing is fetched: an address is looked for as a file, and is one where it exists."""
    monkeypatch.chdir(tmp_path)
    assert "there is no file" in refused(name)
    local = tmp_path / name.replace("//", "/")
    local.parent.mkdir(parents=True)
    if local.suffix == ".parquet":
        pq.write_table(pa.table({"s": ["a"], "x": [1]}), str(local))
    else:
        local.write_text("s,x\na,1\n" if local.suffix == ".csv" else '{"s":"a","x":1}')
    assert as_dict(count(name)) == {"a": {"1": 1}}


def test_columns_without_a_name_and_names_that_differ_in_case(tmp_path):
    path = write(tmp_path, ",s,S,x,\n0,a,p,1,\n1,b,q,2,\n")
    assert as_dict(count(path)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert as_dict(count(path, secret="S")) == {"p": {"1": 1}, "q": {"2": 1}}


def test_mistyped_column(tmp_path):
    path = write(tmp_path, "ward,days\nA,1\n")
    message = refused(path, secret="wrad", public="days")
    assert "did you mean 'ward'?" in message
    assert "ward, days" in message
    assert "differ" in refused(path, secret="ward", public=" ward")


@pytest.mark.parametrize(
    "name, parts",
    [
        ("tabel.csv", ["there is no file", "did you mean 'table.csv'?"]),
        ("none/table.csv", ["folder does not exist"]),
        ("", ["is a folder"]),
        ("table.xlsx", ["'.xlsx'", "save it as CSV"]),
        ("table", ["ending"]),
        ("broken.csv.gz", ["no complete gzip"]),
        ("broken.parquet", ["cannot read"]),
        ("broken.json", ["cannot read"]),
    ],
)
def test_paths_that_are_refused_in_one_line(tmp_path, name, parts):
    write(tmp_path, "s,x\na,1\n")
    write(tmp_path, "x", "table.xlsx")
    write(tmp_path, "x", "table")
    write(tmp_path, gzip.compress(b"s,x\n" * 1000)[:30], "broken.csv.gz")
    write(tmp_path, "PAR1junk", "broken.parquet")
    write(tmp_path, "[{", "broken.json")
    message = refused(tmp_path / name)
    for part in parts:
        assert part in message


LEVELS = {"A": {"Medium": 3, "Low": 6, "High": 1}, "B": {"Low": 1, "Medium": 3, "High": 6}}
LEVEL_ROWS = [(s, x) for s, row in LEVELS.items() for x, n in row.items() for _ in range(n)]


def test_levels_have_no_order_unless_it_is_stated(tmp_path):
    path = write(tmp_path, csv_text(LEVEL_ROWS))
    plain = count(path)
    assert plain.support == Levels(("High", "Low", "Medium"), ordered=False)
    assert plain.report.coding is None
    stated = count(path, order=["Low", "Medium", "High"])
    assert stated.support == Levels(("Low", "Medium", "High"), ordered=True)
    assert stated.counts.tolist() == [[6, 3, 1], [1, 3, 6]]
    assert stated.report.coding == (("Low", 0), ("Medium", 1), ("High", 2))
    assert any("Low = 0, Medium = 1" in line for line in stated.report.lines())
    named = count(path, order="alphabetical")
    assert named.support == Levels(("High", "Low", "Medium"), ordered=True)
    with pytest.warns(PriorWarning, match="first appearance"):
        seen = count(path, order="appearance")
    assert seen.support == Levels(("Medium", "Low", "High"), ordered=True)
    assert as_dict(seen) == as_dict(plain) == as_dict(stated) == LEVELS


@pytest.mark.parametrize("order", [None, ["Low", "Medium", "High"], "alphabetical"])
def test_shuffling_the_rows_changes_nothing(tmp_path, order):
    first = count(write(tmp_path, csv_text(LEVEL_ROWS)), order=order)
    for seed in range(5):
        rows = random.Random(seed).sample(LEVEL_ROWS, len(LEVEL_ROWS))
        again = count(write(tmp_path, csv_text(rows)), order=order)
        assert again.support == first.support
        assert again.secrets == first.secrets
        assert again.counts.tolist() == first.counts.tolist()
        assert again.report == first.report


def test_orders_that_do_not_fit(tmp_path):
    path = write(tmp_path, csv_text(LEVEL_ROWS))
    message = refused(path, order=["low", "Medium", "High"])
    assert "it lacks 'Low' (7 rows, first in data row 4)" in message
    assert "did you mean 'low'?" in message
    assert "'Low'" in refused(path, levels=["Medium", "High"])
    assert "the list of levels Medium, High does not fit" in refused(
        path, levels=["Medium", "High"]
    )
    assert "step" in refused(path, step=1)
    numbers = write(tmp_path, csv_text([("a", "1"), ("b", "2")]))
    assert "holds numbers" in refused(numbers, order="alphabetical")
    assert "does not fit" in refused(numbers, order=["low", "high"])
    turned = count(numbers, order=["2", "1"])
    assert turned.support == Levels(("2", "1"), ordered=True)
    assert any("are their codes 0, 1, 2" in note for note in turned.report.notes)
    both = count(numbers, order=["2", "1"], levels=["1", "2"])
    assert both.report.notes == ()


SPARSE = "s,x\nA,low\nA,mid\nB,low\nB,high\nC,\n"


def test_zeros_are_explicit_and_an_empty_secret_blocks(tmp_path):
    path = write(tmp_path, SPARSE)
    message = refused(path, order=["low", "mid", "high"])
    assert "'C'" in message
    assert "--exclude-secret 'C'), also where no pair names it" in message
    prior = count(path, order=["low", "mid", "high"], exclude_secrets=["C"])
    assert prior.counts.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert "did you mean 'C'" in refused(path, exclude_secrets=["c"])


def test_a_single_row_is_warned_of(tmp_path):
    path = write(tmp_path, csv_text([("a", "1"), ("a", "2"), ("b", "1")]))
    with pytest.warns(PriorWarning, match="'b' has a single row"):
        prior = count_table(path, make_rules(secret="s", public="x"))
    assert prior.report.warnings


def test_excluded_secrets_are_counted_and_keep_their_values_in_the_support(tmp_path):
    rows = [("a", "1"), ("a", "2"), ("b", "1"), ("b", "1"), ("c", "9"), ("c", ""), ("", "7")]
    prior = count(write(tmp_path, csv_text(rows)), exclude_secrets=["c"])
    assert as_dict(prior) == {"a": {"1": 1, "2": 1}, "b": {"1": 2}}
    assert values(prior) == [1, 2, 7, 9]
    assert prior.report.set_aside == (
        ("no public value", 1),
        ("no secret value", 1),
        ("secret excluded: c", 1),
    )
    assert prior.report.rows_read == 7
    assert prior.report.rows_used == 4


def test_mutant_that_loses_rows_is_caught(tmp_path, monkeypatch):
    from pufferfish.tables import count as module

    honest = module.secrets_of
    monkeypatch.setattr(
        module, "secrets_of", lambda *given: (*honest(*given)[:2], honest(*given)[2][1:])
    )
    with pytest.raises(PufferfishError, match="rows were lost"):
        count(write(tmp_path, BIG))


def test_report_adds_up_or_raises():
    rules = make_rules(secret="s", public="x")
    with pytest.raises(PufferfishError, match="rows were lost"):
        TableReport("t", rules, 5, 3, (("no public value", 1),), (("a", 3),), (), "numbers")


def test_step_rounds_before_counting(tmp_path):
    rows = [("a", "0.9"), ("a", "1.1"), ("b", "1.5"), ("b", "2.5"), ("b", "3.04")]
    prior = count(write(tmp_path, csv_text(rows)), step="1")
    assert as_dict(prior) == {"a": {"1": 2}, "b": {"2": 2, "3": 1}}
    assert prior.report.rounded == 5
    assert "step 1: 5 distinct values rounded" in prior.report.lines()
    one = count(write(tmp_path, csv_text([("a", "0.9"), ("b", "1")])), step=1)
    assert "step 1: 1 distinct value rounded" in one.report.lines()
    prior = count(write(tmp_path, csv_text(rows)))
    assert isinstance(prior.support, Lattice)
    assert str(prior.support.step) == "1/50"  # 3.04 and tenths
    far = write(tmp_path, csv_text([("a", "1e30"), ("b", "1e-3")]))
    assert "--step" in refused(far)


def test_fractions_are_read_and_said(tmp_path):
    prior = count(write(tmp_path, csv_text([("a", "1/3"), ("b", "2/3")])))
    assert str(prior.support.step) == "1/3"
    assert any("2 distinct values of 'x' are read as f" in note for note in prior.report.notes)
    one = count(write(tmp_path, csv_text([("a", "1/3"), ("b", "2")])))
    assert any("1 distinct value of 'x' is read as a f" in note for note in one.report.notes)


def test_json_keeps_digits_and_refuses_lists(tmp_path):
    lines = (
        '{"s":"a","x":1.10,"l":[1]}\n{"s":"b","x":9007199254740}\n{"s":"b","x":null}\n'
        '{"s":"b","x":"3"}\n{"s":"b"}\n'
    )
    path = write(tmp_path, lines, "t.ndjson")
    assert as_dict(count(path)) == {"a": {"1.1": 1}, "b": {"3": 1, "9007199254740": 1}}
    assert "lists" in refused(path, public="l")
    array = json.dumps([{"s": "a", "x": x} for x in (2**53, 2**53 + 1)])
    assert values(count(write(tmp_path, array, "t.json"))) == [2**53, 2**53 + 1]
    packed = write(tmp_path, gzip.compress(lines.encode()), "t.jsonl.gz")
    assert as_dict(count(packed)) == as_dict(count(path))
    flags = write(tmp_path, '[{"s":1,"x":true},{"s":2,"x":false}]', "t.json")
    assert as_dict(count(flags)) == {"1": {"1": 1}, "2": {"0": 1}}


@pytest.mark.parametrize("piece", ["nan", "NaN", "-Infinity", "1" * 5000])
def test_json_numbers_that_python_does_not_read(tmp_path, piece):
    path = write(tmp_path, f'{{"s":"a","x":1}}\n{{"s":"b","x":{piece}}}\n', "t.ndjson")
    message = refused(path)
    assert "data row 2" in message or "as JSON" in message


def test_nothing_can_be_downloaded_and_nothing_is_spilled():
    with files_module._connect() as connection:
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            query = f"SELECT current_setting('{setting}')"
            assert connection.sql(query).fetchall() == [(False,)]
        query = "SELECT current_setting('temp_directory')"
        assert connection.sql(query).fetchall() == [("",)]
        with pytest.raises(duckdb.Error):
            connection.sql("SELECT * FROM read_xlsx('none.xlsx')").fetchall()


def test_only_used_columns_are_read_from_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"s": ["a", "b"], "junk": ["j" * 100, "k" * 100], "x": [1, 2]})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    start = column.data_page_offset
    broken = bytearray(path.read_bytes())
    broken[start : start + 40] = b"\xff" * 40
    path.write_bytes(broken)
    assert as_dict(count(path)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert "cannot read" in refused(path, public="junk")


def test_text_files_are_projected(tmp_path):
    path = write(tmp_path, "s,x,y\na,1,2\n")
    table = open_table(path)
    with files_module._connect() as connection:
        scan = table._scan.replace("{file}", f"'{path}'")
        query = f"EXPLAIN SELECT c0, count(*) FROM {scan} GROUP BY ALL"
        plan = connection.sql(query).fetchall()[0][1]
    assert "c0" in plan
    assert "c2" not in plan


def test_batches_come_in_the_order_of_rows(tmp_path):
    rows = [("ab"[k % 2], str(k)) for k in range(10_000)]
    table = open_table(write(tmp_path, csv_text(rows)))
    batches = list(table.batches(["x", "s"], 1000))
    assert max(len(batch) for batch in batches) <= 4096
    assert [x for batch in batches for x in batch.column(0).to_pylist()] == [x for _, x in rows]
    assert [s for batch in batches for s in batch.column(1).to_pylist()] == [s for s, _ in rows]


def test_other_errors_become_one_line(tmp_path):
    path = write(tmp_path, "s,x\n")
    message = diagnose.explain("Out of Memory Error: failed\nto allocate", path, None)
    assert message == f"{path}: too many distinct values for the memory of this machine"


def test_identifiers_as_secrets_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pufferfish.tables.count.MAX_COUNTS", 100)
    path = write(tmp_path, csv_text([(str(k), str(k)) for k in range(20)]))
    assert "identifier" in refused(path)


def test_secrets_that_are_numbers_are_sorted_by_value(tmp_path):
    path = write(tmp_path, csv_text([(s, "1") for s in ("10", "9", "x", "-2", "NA")]))
    assert count(path).secrets == ("-2", "9", "10", "NA", "x")


@pytest.mark.parametrize(
    "given, part",
    [
        ({"public": "s"}, "differ"),
        ({"public": " "}, "name of a column"),
        ({"order": ["a", "a"]}, "more than once"),
        ({"order": "alphabetic"}, "did you mean 'alphabetical'?"),
        ({"order": []}, "at least one"),
        ({"levels": []}, "at least one"),
        ({"levels": ["a", "?"], "missing": ["?"]}, "means a missing value"),
        ({"levels": ["a", "b"], "order": ["a"]}, "misses b"),
        ({"levels": ["a"], "order": ["a", "b"]}, "misses b"),
        ({"step": 0}, "above 0"),
        ({"step": "x"}, "must be a number"),
        ({"step": 1, "order": ["a", "b"]}, "for numbers"),
        ({"decimal": ":"}, "decimal mark"),
        ({"order": 5}, "must be a list of levels"),
        ({"levels": 5}, "must be a list of texts"),
        ({"missing": 5}, "must be a list of texts"),
    ],
)
def test_rules_that_are_refused(given, part):
    with pytest.raises(InputError, match=part.replace("?", r"\?")):
        make_rules(**{"secret": "s", "public": "x", **given})


def test_rules_survive_the_plan_file():
    from pufferfish.tables import Rules

    for given in (
        {},
        {"order": "appearance", "missing": ["?", " NA "], "exclude_secrets": ["c"]},
        {"order": ["no", "yes"], "levels": ["yes", "no"]},
        {"step": "1/3", "decimal": ","},
    ):
        rules = make_rules(secret="s", public="x", **given)
        assert Rules.from_dict(rules.to_dict()) == rules
    with pytest.raises(InputError, match="did you mean 'order'"):
        Rules.from_dict({"secret": "s", "public": "x", "ordr": None})
    whole = make_rules(secret="s", public="x").to_dict()
    for key in whole:
        with pytest.raises(InputError, match=f"lack the key '{key}'"):
            Rules.from_dict({name: value for name, value in whole.items() if name != key})


def test_no_warning_where_nothing_is_wrong(tmp_path):
    path = write(tmp_path, csv_text([("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count_table(path, make_rules(secret="s", public="x")).report.warnings == ()


def test_no_module_of_the_tables_imports_in_a_circle():
    """Imports inside functions count too; only Prior.from_table goes back to the tables."""
    root = Path(pufferfish.__file__).parent
    paths = [root / f"{name}.py" for name in ("arrays", "texts", "rationals", "support", "prior")]
    graph: dict[str, set[str]] = {}
    for path in [*paths, *(root / "tables").glob("*.py")]:
        if path.stem == "__init__":
            continue  # it only gathers what the others have
        graph[path.stem] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("pufferfish"):
                last = str(node.module).rpartition(".")[2]
                graph[path.stem] |= {a.name for a in node.names} if last == "tables" else {last}
    assert graph["prior"] & {"report", "count_table"} == {"report", "count_table"}
    graph["prior"] -= {"report"}  # for the type alone
    order = list(TopologicalSorter({k: v & set(graph) for k, v in graph.items()}).static_order())
    assert order.index("prior") < order.index("count") < len(order)
    assert order.index("source") < order.index("files") < order.index("opening")


NO_PANDAS = """
import sys
from pufferfish.tables import Coder, count_table, make_rules, open_table

for path in sys.argv[1:]:
    rules = make_rules(secret="s", public="x", missing=["-1"])
    prior = count_table(path, rules)
    table = open_table(path)
    coder = Coder(prior.support, prior.report.rules, table)
    for batch in table.batches(["x"]):
        coder.code(batch.column(0))
    coder.why("9")
    print(prior.counts.sum(), "pandas" in sys.modules)
"""


def test_files_are_read_without_pandas(tmp_path):
    """Arrow imports it on the way, and an interrupt during that import would be lost."""
    pytest.importorskip("pandas")
    paths = [
        write(tmp_path, "s,x\na,1\na,2\nb,1\nb,2\n"),
        write(
            tmp_path, '[{"s":"a","x":1},{"s":"a","x":2},{"s":"b","x":1},{"s":"b","x":2}]', "t.json"
        ),
        tmp_path / "t.parquet",
        tmp_path / "d.parquet",
    ]
    duckdb.sql("SELECT * FROM (VALUES ('a',1),('a',2),('b',1),('b',2)) t(s,x)").write_parquet(
        str(paths[2])
    )
    duckdb.sql(
        "SELECT s, make_timestamp_ns(x) x FROM (VALUES ('a',1),('a',2),('b',1),('b',2)) t(s,x)"
    ).write_parquet(str(paths[3]))
    done = subprocess.run(
        [sys.executable, "-c", NO_PANDAS, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["4 False"] * 4


@pytest.mark.parametrize(
    "inner, end, read",
    [
        (b"\n", b"\r\n", False),
        (b"\r\n", b"\n", False),
        (b"\r", b"\n", False),
        (b"\n", b"\r", False),
        (b"\n", b"\n", True),
        (b"\r\n", b"\r\n", True),
    ],
)
@pytest.mark.parametrize("where", [0, 1])
def test_line_breaks_within_a_name(tmp_path, inner, end, read, where):
    names = [b"s", b"x", b'"odd' + inner + b'name"']
    names = [names[2], *names[:2]] if where == 0 else names
    row = b"k,a,1" if where == 0 else b"a,1,k"
    path = write(tmp_path, end.join([b",".join(names), row, row, b""]))
    if read:
        assert as_dict(count(path)) == {"a": {"1": 2}}
    else:
        assert "line break within the name" in refused(path)


def test_a_file_that_goes_on_is_never_without_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(sniff, "_line_end", lambda line: "")
    path = write(tmp_path, b's,"x\nx"\r\na,1\r\n')
    assert "no row was found" in refused(path, public="x\nx")
    with pytest.raises(InputError, match="no row was found"):
        list(open_table(path).batches(["s"]))
    assert "header but no rows" in refused(write(tmp_path, "s,x\n\n\n"))


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_damaged_gzip_is_refused(tmp_path, ending):
    # Longer than the look at the header, which would see the end of a short file.
    text = "s,x\n" + "".join(f"{'ab'[k % 2]},{k % 9}\n" for k in range(90_000))
    if ending == "ndjson":
        text = "".join(f'{{"s":"{"ab"[k % 2]}","x":{k % 9}}}\n' for k in range(90_000))
    packed = gzip.compress(text.encode(), compresslevel=0)
    assert count(write(tmp_path, packed, f"t.{ending}.gz")).counts.sum() == 90_000
    for place, part in ((len(packed) - 40, "checksum"), (len(packed) - 6, "checksum")):
        broken = bytearray(packed)
        broken[place] ^= 1
        assert part in refused(write(tmp_path, bytes(broken), f"t.{ending}.gz"))
    assert "no complete gzip file" in refused(write(tmp_path, packed[:-30], f"t.{ending}.gz"))


def test_mutants_of_damaged_gzip_and_missing_numbers_are_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(files_module, "check_gzip", lambda path, name: None)
    with pytest.raises(pytest.fail.Exception):
        test_damaged_gzip_is_refused(tmp_path, "csv")
    monkeypatch.setattr("pufferfish.tables.coder.missing_numbers", lambda missing: {})
    with pytest.raises(AssertionError):
        test_missing_numbers_are_compared_as_numbers(tmp_path, "-999")


def test_long_headers_are_read_whole(tmp_path):
    names = [f"column_{k:06}" for k in range(30_000)]
    path = write(tmp_path, ",".join(["s", *names, "x"]) + "\n" + "1," * 30_001 + "5\n")
    table = open_table(path)
    assert table.columns == ("s", *names, "x")
    quoted = write(tmp_path, "s,x" + ',"a\nb"' + ",c" * 3 + "\n", "q.csv")
    assert "'c' 3 times" in refused(quoted)
    long = write(tmp_path, "s,x\n" + 'a 5" b,1\n' * 60_000, "stray.csv")
    assert open_table(long).columns == ("s", "x")


def test_endless_headers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sniff, "_LOOK", 2**10)
    monkeypatch.setattr(sniff, "_LONGEST", 2**20)
    assert "header of" in refused(write(tmp_path, "a," * 2**20))


@pytest.mark.parametrize("missing", ["-999", "-999.0", "-9.99e2"])
def test_missing_numbers_are_compared_as_numbers(tmp_path, missing):
    texts = ["1", "-999.0", "-999", "2", "-999.00"]
    path = write(tmp_path, csv_text([("a", text) for text in texts]))
    double = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": ["a"] * 5, "x": [float(text) for text in texts]}), double)
    for source in (path, double):
        prior = count(source, missing=[missing])
        assert as_dict(prior) == {"a": {"1": 1, "2": 1}}
        assert [m.public_rows for m in prior.report.missing] == [0, 3]
        assert prior.report.set_aside == (("no public value", 3),)
        coder = Coder(prior.support, prior.report.rules, open_table(source))
        for batch in open_table(source).batches(["x"]):
            assert coder.code(batch.column(0)).state.tolist() == [0, 1, 1, 0, 1]


def test_missing_numbers_with_a_decimal_comma(tmp_path):
    path = write(tmp_path, "s;x\na;1,5\na;-999,0\na;2\n")
    prior = count(path, missing=["-999"])
    assert as_dict(prior) == {"a": {"1.5": 1, "2": 1}}
    coder = Coder(prior.support, prior.report.rules, open_table(path))
    assert coder.code(pa.array(["1,5", "-999,0", "-999"])).state.tolist() == [0, 1, 1]


def test_missing_numbers_are_texts_among_levels(tmp_path):
    path = write(tmp_path, csv_text([("a", "01"), ("a", "b"), ("a", "1")]))
    prior = count(path, missing=["1"], levels=["01", "b"])
    assert as_dict(prior) == {"a": {"01": 1, "b": 1}}
    coder = Coder(prior.support, prior.report.rules, open_table(path))
    assert coder.code(pa.array(["01", "b", "1"])).state.tolist() == [0, 0, 1]


def test_missing_texts_that_no_cell_holds_are_told(tmp_path):
    path = write(tmp_path, csv_text([("a", "1"), ("a", "?")]))
    notes = count(path, missing=["?", "none"]).report.notes
    assert [note for note in notes if "no cell" in note] == [
        "no cell of the two columns is 'none', which was to mean a missing value (--missing)"
    ]


def test_points_that_could_set_off_thousands_are_told(tmp_path):
    def notes(cells, mark):
        path = write(tmp_path, f"s{mark}x\n" + "".join(f"a{mark}{cell}\n" for cell in cells))
        return [note for note in count(path).report.notes if "read as decimals" in note]

    assert len(notes(["1.200", "2.500", "2", "3"], ";")) == 1
    assert notes(["1.200", "2.5"], ";") == notes(["1.200", "0.500"], ";") == []
    assert notes(["1.200", "2.500"], ",") == notes(["1", "2"], ";") == []


COMPOSED, DECOMPOSED = "\u00e9", unicodedata.normalize("NFD", "\u00e9")


@pytest.mark.parametrize(
    "one, other, part",
    [
        ("Yes", "yes", "'Yes' and 'yes' differ only in case"),
        (COMPOSED, DECOMPOSED, r"'\xe9' and 'e\u0301' differ only"),
        ("a\u200bb", "ab", r"'a\u200bb' and 'ab' differ only"),
        ("a\ufeffb", "ab", r"'a\ufeffb' and 'ab' differ only"),
        ("a  b", "a b", "'a  b' and 'a b' differ only"),
        ("1", "1.0", "'1' and '1.0' are one number"),
    ],
)
def test_secrets_that_look_alike_are_told(tmp_path, one, other, part):
    rows = [(one, "1"), (one, "2"), (other, "1"), (other, "2"), ("other", "1")]
    notes = count(write(tmp_path, csv_text(rows))).report.notes
    told = [note for note in notes if "but count as 2 secrets" in note]
    assert len(told) == 1
    names, how = part.split(" differ only")[0].split(" are one")[0], part.rpartition("' ")[2]
    assert all(name in told[0] for name in names.split(" and "))
    assert how in told[0]
    levels = (
        count(write(tmp_path, csv_text([("s", one), ("s", other), ("s", "z")])))
        if (one != "1")
        else None
    )
    assert levels is None or any("count as 2 levels" in note for note in levels.report.notes)


def test_columns_of_parquet_keep_their_names(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([["a"], [1], [2]], names=["s", "x", "x"]), path)
    assert "'x' 2 times" in refused(path)
    pq.write_table(pa.table([["a"], ["b"], [1], [2]], names=["S", "s", "X", "x"]), path)
    assert open_table(path).columns == ("S", "s", "X", "x")
    assert as_dict(count(path)) == {"b": {"2": 1}}
    assert as_dict(count(path, "S", "X")) == {"a": {"1": 1}}


def test_keys_that_differ_only_in_case_are_refused(tmp_path):
    path = write(tmp_path, '{"s":"a","x":1,"X":5}\n{"s":"b","x":2,"X":6}\n', "t.ndjson")
    assert "differ only in case, 'x' and 'X'" in refused(path)
    fine = write(tmp_path, '{"s":"a","x":1,"x_1":5}\n{"s":"b","x":2,"x_1":6}\n', "t.ndjson")
    assert as_dict(count(fine, public="x_1")) == {"a": {"5": 1}, "b": {"6": 1}}


@pytest.mark.parametrize("name", ["[x].csv", "a\\*.csv", "a*.csv", os.fsdecode(b"caf\xe9.csv")])
@pytest.mark.parametrize("ending", ["", ".gz", ".json", ".parquet"])
def test_names_beside_and_in_the_way(tmp_path, name, ending):
    """Other names in the folder, no UTF-8 perhaps, do not matter."""
    if os.name != "posix":
        pytest.skip("such names are not allowed here")
    try:
        (tmp_path / os.fsdecode(b"\xff\xe9.csv")).write_text("s,x\nwrong,1\n")
    except OSError:
        pytest.skip("the file system allows no such name")
    if ending == ".parquet":
        path = tmp_path / (name + ending)
        with path.open("wb") as file:
            pq.write_table(pa.table({"s": ["a"], "x": [1]}), file)
    else:
        text = '[{"s":"a","x":1}]' if ending == ".json" else "s,x\na,1\n"
        content = gzip.compress(text.encode()) if ending == ".gz" else text
        path = write(tmp_path, content, name + ending)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert as_dict(count(path)) == {"a": {"1": 1}}
    assert [len(batch) for batch in open_table(path).batches(["x"])] == [1]
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_faults_in_files_with_odd_names(tmp_path):
    path = write(tmp_path, "s,x\na,1\nb,2,3\n", "[x].csv")
    assert "line 3 has 3 fields" in refused(path)


@pytest.mark.parametrize("digits", [2500, 5000])
def test_json_integers_of_many_digits(tmp_path, digits):
    path = write(tmp_path, f'[{{"s":"a","x":1}},{{"s":"b","x":{"1" * digits}}}]', "t.json")
    assert "longer than 2000 characters" in refused(path)
    path = write(tmp_path, f'[{{"s":"a","x":[1]}},{{"s":"b","x":[{"1" * digits}]}}]', "t.json")
    assert "lists" in refused(path)


@pytest.mark.parametrize(
    "given",
    [{"missing": ["\udcff"]}, {"levels": ["a\ud800"]}, {"order": ["a", "\udcff"]},
     {"public": "x\udcff"}, {"secret": "\udcff"}, {"exclude_secrets": ["\udcff"]}],
)  # fmt: skip
def test_texts_of_rules_are_utf8(given):
    with pytest.raises(InputError, match="UTF-8") as caught:
        make_rules(**{"secret": "s", "public": "x", **given})
    str(caught.value).encode("utf-8")
