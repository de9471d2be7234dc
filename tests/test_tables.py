# SPDX-License-Identifier: Apache-2.0
"""Text files to priors: the inputs that tools of this kind get wrong, each with its outcome."""

import gzip
import json
import random
import warnings

import duckdb
import pytest

from pufferfish.errors import InputError, PriorWarning, PufferfishError
from pufferfish.support import Lattice, Levels
from pufferfish.tables import count_table, diagnose, make_rules, open_table
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
    assert any("'?'" in note and "(1 rows)" in note for note in kept.report.notes)
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
    assert "not finite" in message
    assert "data row 3" in message


def test_not_finite_texts_are_levels_among_levels(tmp_path):
    path = write(tmp_path, csv_text([("a", "inf"), ("a", "low"), ("b", "nan")]))
    assert as_dict(count(path)) == {"a": {"inf": 1, "low": 1}, "b": {"nan": 1}}
    alone = write(tmp_path, csv_text([("a", "inf"), ("b", "nan")]))
    assert "not finite in data row 1" in refused(alone)


def test_numbers_mixed_with_text(tmp_path):
    rows = [("a", "1"), ("a", "?"), ("b", "?"), ("b", "2"), ("b", "ill")]
    message = refused(write(tmp_path, csv_text(rows)))
    for part in ("'?' (2 rows", "data row 2", "'ill' (1 row,", "--missing", "--levels"):
        assert part in message
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


def test_messages_quote_no_rows(tmp_path):
    path = write(tmp_path, "s,x\nsmith,1\njones,2,3\n")
    assert "jones" not in refused(path)
    path = write(tmp_path, 's,x\nsmith,1\njones,"2\n')
    assert "jones" not in refused(path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.tab", "T.CSV", "t.csv.gz"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_mark_between_fields_is_found_whatever_the_ending(tmp_path, name, mark):
    text = "\n".join(["note;s;x", "a, b|c;a;1", "d;b;2", ""]).replace(";", mark)
    if mark in ",|":
        text = text.replace("a, b|c", '"a, b|c"')
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text
    assert as_dict(count(write(tmp_path, content, name))) == {"a": {"1": 1}, "b": {"2": 1}}


@pytest.mark.parametrize("name", ["a*[1]?.csv", "it's.csv", "ünï.csv", "year=2020.csv", "a b.csv"])
def test_names_of_files_are_no_patterns(tmp_path, name):
    folder = tmp_path / "year=2021"
    folder.mkdir()
    write(folder, "s,x\nwrong,9\n", "ab1c.csv")
    path = write(folder, "s,x\na,1\nb,2\n", name)
    assert as_dict(count(path)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert open_table(str(path)).columns == ("s", "x")


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
    assert "'Low' (7 rows) is not in it" in message
    assert "did you mean 'low'?" in message
    assert "'Low'" in refused(path, levels=["Medium", "High"])
    assert "step" in refused(path, step=1)
    numbers = write(tmp_path, csv_text([("a", "1"), ("b", "2")]))
    assert "holds numbers" in refused(numbers, order="alphabetical")
    assert "does not fit" in refused(numbers, order=["low", "high"])
    assert count(numbers, order=["2", "1"]).support == Levels(("2", "1"), ordered=True)


SPARSE = "s,x\nA,low\nA,mid\nB,low\nB,high\nC,\n"


def test_zeros_are_explicit_and_an_empty_secret_blocks(tmp_path):
    path = write(tmp_path, SPARSE)
    message = refused(path, order=["low", "mid", "high"])
    assert "'C'" in message
    assert "--exclude-secret" in message
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

    honest = module._secrets
    monkeypatch.setattr(
        module, "_secrets", lambda *given: (*honest(*given)[:2], honest(*given)[2][1:])
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
    prior = count(write(tmp_path, csv_text(rows)))
    assert isinstance(prior.support, Lattice)
    assert str(prior.support.step) == "1/50"  # 3.04 and tenths
    far = write(tmp_path, csv_text([("a", "1e30"), ("b", "1e-3")]))
    assert "--step" in refused(far)


def test_fractions_are_read_and_said(tmp_path):
    prior = count(write(tmp_path, csv_text([("a", "1/3"), ("b", "2/3")])))
    assert str(prior.support.step) == "1/3"
    assert any("fractions" in note for note in prior.report.notes)


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
    import pyarrow as pa
    import pyarrow.parquet as pq

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
        plan = connection.sql(
            f"EXPLAIN SELECT c0, count(*) FROM {table._scan} GROUP BY ALL"
        ).fetchall()[0][1]
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
    with pytest.raises(InputError, match="public"):
        Rules.from_dict({"secret": "s"})


def test_no_warning_where_nothing_is_wrong(tmp_path):
    path = write(tmp_path, csv_text([("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count_table(path, make_rules(secret="s", public="x")).report.warnings == ()
