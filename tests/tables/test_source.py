# SPDX-License-Identifier: Apache-2.0
"""Files as tables: what is no strict table is refused in one line, and no row is ever lost."""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pufferfish.errors import InputError
from pufferfish.tables import scan as scan_module
from pufferfish.tables import text as text_module
from pufferfish.tables.source import open_table
from table_cases import as_dict, count, csv_text, refused, values, write


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_byte_order_mark_quoted_header_and_line_ends(tmp_path: Path, end: bytes) -> None:
    rows = [b'\xef\xbb\xbf"ward","days"', b"A,1", b"A,2", b"B,2", b"B,3", b""]
    found = count(write(tmp_path, end.join(rows)), "ward", "days")
    assert as_dict(found) == {"A": {"1": 1, "2": 1}, "B": {"2": 1, "3": 1}}


def test_space_before_a_quoted_field(tmp_path: Path) -> None:
    path = write(tmp_path, 's, x\n"a, b", "1"\n"a, b", "2"\nc, 3\n')
    assert as_dict(count(path)) == {"a, b": {"1": 1, "2": 1}, "c": {"3": 1}}


@pytest.mark.parametrize(
    "content, parts",
    [
        ("s,x\n", ["has a header but no rows"]),
        ("s,x", ["has a header but no rows"]),
        ("s,x\n\n\n", ["has a header but no rows"]),
        ("", ["is empty"]),
        ("\n\n", ["is empty"]),
        (b"\xef\xbb\xbf", ["is empty"]),
        ("\ns,x\na,1\n", ["begins with an empty line"]),
        ("s,x,x\na,1,2\n", ["the column 'x' twice (columns 2 and 3)"]),
        ("s,x, x\na,1,2\n", ["the column 'x' twice"]),
        ("39, 77516, 39\n50, 83311, 13\n", ["'39' twice", "in a header line"]),
        ("s,x,z\na,1\nb,2\n", ["line 2 has 2 fields", "header has 3"]),
        ("s,x\na,1\nb,2,3,4\n", ["line 3 has 4 fields", "header has 2"]),
        ("s,x\na,1\nb\n", ["line 3 has 1 field,", "header has 2"]),
        ("s,x\na,1\n  \nb,2\n", ["line 3 has 1 field,"]),
        ('s,x\n"a\na",1\nb,2,3\n', ["line 4 has 3 fields"]),
        ('s,x\na,"1\nb,2\n', ["quotation mark", "line 2"]),
        ('s,x\na,1\nb,"2"x\n', ["quotation mark", "line 3"]),
        ('s,x\n"jo"nes,1\n', ["quotation mark", "line 2"]),
        ('s,x\na,1\nb,"2', ["quotation mark", "line 3"]),
        ("s,x\na,1\r\nb,2\n", ["mixes line ends"]),
        ("s,x\r\na,1\nb,2\r\n", ["mixes line ends"]),
        ("s,x\na,1\rb,2\n", ["mixes line ends"]),
        (b"s,x\na,caf\xe9\n", ["not UTF-8", "line 2"]),
        (b"s,caf\xe9\na,1\n", ["not UTF-8", "line 1"]),
        ("s,x\na,1\n".encode("utf-16"), ["UTF-16"]),
        ("s,x\na,1\n".encode("utf-16-le"), ["UTF-16"]),
        (b"\x01\x02\x00\x03" * 9, ["binary"]),
        (b"s,x\na,1\nb,\x00\n", ["binary"]),
        ("s,x\n,1\n,2\n", ["no secret"]),
        ("s,x\na,\nb,\n", ["no row has a value", "'x'"]),
        ("s,x\na,\n,1\n", ["no row of", "has both"]),
    ],
)
def test_files_that_are_refused_in_one_line(
    tmp_path: Path, content: str | bytes, parts: list[str]
) -> None:
    message = refused(write(tmp_path, content))
    for part in parts:
        assert part in message


@pytest.mark.parametrize("lines", ["a,1,\nb,2,\n", "a,1\nb,2,\n", '"a\n",1\nb,2,\n'])
def test_a_surplus_empty_field_is_refused(tmp_path: Path, lines: str) -> None:
    number = lines.count("\n", 0, lines.index(",\n")) + 2
    assert f"line {number} has 3 fields" in refused(write(tmp_path, f"s,x\n{lines}"))
    # An empty last field that the header names is a missing value.
    fine = count(write(tmp_path, f"s,x,y\n{'a,1,' if 'a,1,' in lines else 'a,1,0'}\nb,2,\n"))
    assert as_dict(fine) == {"a": {"1": 1}, "b": {"2": 1}}


@pytest.mark.parametrize(
    "fault, part",
    [
        (b"b,1,2,3,4\n", "line 60002 has 5 fields"),
        (b"b,1,2,3,\n", "line 60002 has 5 fields"),
        (b"b,1,2\n", "line 60002 has 3 fields"),
        (b"b,1,2,caf\xe9\n", "not UTF-8 text (line 60002)"),
        (b"b,1,2,\x00\n", "binary data"),
        (b'b,1,2,"3"x\n', "line 60002"),
        (b'b,1,2,"3\n', "line 60002"),
        (b"b,1,2,3\r\n", "mixes line ends"),
    ],
)
@pytest.mark.parametrize("quotes", [False, True])
def test_late_faults_are_found_although_other_columns_are_used(
    tmp_path: Path, fault: bytes, part: str, quotes: bool
) -> None:
    good = (b'a,1,"2",3\n' if quotes else b"a,1,2,3\n") * 60_000
    path = write(tmp_path, b"s,x,y,z\n" + good + fault + good)
    assert part in refused(path)
    with pytest.raises(InputError):
        list(open_table(path).batches(["s"]))


def test_a_long_last_line_is_never_lost(tmp_path: Path) -> None:
    """DuckDB leaves out a last line that is longer than its buffer, without a word."""
    text = "s,x\n" + "a,1\n" * 200 + "b," + "9" * 33_000_000
    assert "line 202 is longer than 2 MB" in refused(write(tmp_path, text))
    packed = write(tmp_path, gzip.compress(text.encode(), 1), "t.csv.gz")
    assert "line 202 is longer than 2 MB" in refused(packed)
    fine = write(tmp_path, "s,x\n" + "a,1\n" * 200 + "b," + "y" * 1_900_000, "fine.csv")
    assert sum(len(batch) for batch in open_table(fine).batches(["s"])) == 201


def test_mutant_that_trusts_duckdb_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "count_records", lambda *given: mock.ANY)
    for test in (
        lambda: test_a_long_last_line_is_never_lost(tmp_path),
        lambda: test_a_surplus_empty_field_is_refused(tmp_path, "a,1\nb,2,\n"),
    ):
        with pytest.raises(pytest.fail.Exception):
            test()


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table(write(tmp_path, "s,x\na,1\nb,2\n"))
    honest = scan_module.count_records
    monkeypatch.setattr(scan_module, "count_records", lambda *given: honest(*given) + 1)
    with pytest.raises(InputError, match="holds 3 records, but 2 rows were read"):
        table.groups(["s"])
    with pytest.raises(InputError, match="holds 3 records, but 2 rows were read"):
        list(table.batches(["s"]))


def test_whoever_stops_reading_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector may close a reader in a thread that holds locks of threads."""
    table, ended = open_table(write(tmp_path, "s,x\na,1\nb,2\n")), threading.Event()
    before = {*threading.enumerate()}
    monkeypatch.setattr(scan_module, "count_records", lambda *given: ended.wait(60))
    reader = table.batches(["s"])
    next(reader)
    reader.close()
    own = {*threading.enumerate()} - before
    assert any(each.is_alive() for each in own)  # that of the strict count is still at work
    ended.set()


FIELDS = st.sampled_from(
    ["", "a", "1", '"a"', '"a,b"', '"a\nb"', '"a""b"', '""', 'a"b', "\r", "ü", '"', '"a', "\n",
     "a\r\nb", ' "a"', '"a" ', " ", "'", '"\n\n"', "x;y", '"a\r\nb"', '"a\r"', '"""', '"",""']
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=6),
    end=st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    last=st.booleans(),
)
def test_what_is_read_is_what_a_strict_reader_reads(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], end: str, last: bool
) -> None:
    """What is read is what Python's reader reads, one record at a time."""
    text = end.join(["s,x", *(",".join(row) for row in rows)]) + (end if last else "")
    path = write(tmp_path_factory.mktemp("csv"), text)
    lines = io.StringIO(text, newline="")
    expected = [r for r in csv.reader(lines, skipinitialspace=True) if r][1:]
    try:
        batches = [b.to_pydict() for b in open_table(path).batches(["s", "x"])]
    except InputError:
        return
    found = [row for b in batches for row in zip(b["s"], b["x"], strict=True)]
    assert [tuple((c or "").strip() for c in row) for row in found] == [
        tuple(c.strip() for c in row) for row in expected
    ]


@pytest.mark.parametrize(
    "inner, end",
    [(b"\n", b"\r\n"), (b"\r\n", b"\n"), (b"\r", b"\n"), (b"\n", b"\r"), (b"\n", b"\n")],
)
@pytest.mark.parametrize("where", [0, 2])
def test_line_breaks_within_a_name_lose_no_row(
    tmp_path: Path, inner: bytes, end: bytes, where: int
) -> None:
    names = [b"s", b"x"]
    names.insert(where, b'"odd' + inner + b'name"')
    row = b"k,a,1" if where == 0 else b"a,1,k"
    path = write(tmp_path, end.join([b",".join(names), row, row, b""]))
    try:
        assert as_dict(count(path)) == {"a": {"1": 2}}
    except InputError:
        assert inner != end


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.tab", "T.CSV", "t.csv.gz"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_header_decides_on_the_delimiter(tmp_path: Path, name: str, mark: str) -> None:
    text = "\n".join(["note;s;x", '"a, b|c;d\t";a;1', "d;b;2", ""]).replace(";", mark)
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text
    path = write(tmp_path, content, name)
    assert as_dict(count(path)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert count(path, delimiter="tab" if mark == "\t" else mark).secrets == ("a", "b")


def test_a_header_with_two_delimiters_needs_the_option(tmp_path: Path) -> None:
    path = write(tmp_path, "s;x (m, s)\na;1\nb;2\n")
    assert "--delimiter" in refused(path, public="x (m, s)")
    assert as_dict(count(path, public="x (m, s)", delimiter=";")) == {"a": {"1": 1}, "b": {"2": 1}}
    quoted = write(tmp_path, 's;"x (m, s)"\na;1\nb;2\n')
    assert count(quoted, public="x (m, s)").secrets == ("a", "b")
    for mark in ("", ":", ",;", "a", '"'):
        assert "the delimiter must be one of" in refused(path, delimiter=mark)
    for table in (pa.table({"s": ["a"], "x": [1]}), write(tmp_path, "[]", "t.json")):
        assert "for text files" in refused(table, delimiter=",")


def test_one_column(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, 'x\n1\n\n"2"\n'))
    assert [b.column(0).to_pylist() for b in table.batches(["x"])] == [["1", None, "2"]]


@pytest.mark.parametrize(
    "name",
    ["a*[1]?.csv", "a*.csv", "[ab].csv", "?b1c.csv", "{a,b}.csv", "it's.csv", "ünï.csv",
     "year=2020.csv", 'q".csv', "';--.csv", "~a.csv", "-.csv", "%41.csv", "$HOME.csv", "s3:a.csv",
     "\\.csv", "#?x=1.csv", ":memory:.csv"],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_names_of_files_are_no_patterns(tmp_path: Path, name: str, ending: str) -> None:
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


@pytest.mark.skipif(os.name != "posix", reason="such names are not allowed here")
@pytest.mark.parametrize("ending", ["", ".gz", ".json", ".parquet"])
def test_names_that_are_no_utf8(tmp_path: Path, ending: str) -> None:
    (tmp_path / os.fsdecode(b"\xff\xe9.csv")).write_text("s,x\nwrong,1\n")
    path = tmp_path / (os.fsdecode(b"caf\xe9.csv") + ending)
    if ending == ".parquet":
        with path.open("wb") as file:
            pq.write_table(pa.table({"s": ["a"], "x": [1]}), file)
    else:
        text = '[{"s":"a","x":1}]' if ending == ".json" else "s,x\na,1\n"
        path.write_bytes(gzip.compress(text.encode()) if ending == ".gz" else text.encode())
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert as_dict(count(path)) == {"a": {"1": 1}}
    assert [len(batch) for batch in open_table(path).batches(["x"])] == [1]
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_nothing_can_be_downloaded_and_nothing_is_spilled() -> None:
    with duckdb.connect(":memory:", config=scan_module._SETTINGS) as connection:
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            query = f"SELECT current_setting('{setting}')"
            assert connection.sql(query).fetchall() == [(False,)]
        query = "SELECT current_setting('temp_directory')"
        assert connection.sql(query).fetchall() == [("",)]
        with pytest.raises(duckdb.Error):
            connection.sql("SELECT * FROM read_xlsx('none.xlsx')").fetchall()


def test_columns_without_a_name_and_names_that_differ_in_case(tmp_path: Path) -> None:
    path = write(tmp_path, ",s,S,x,\n0,a,p,1,\n1,b,q,2,\n")
    assert as_dict(count(path)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert as_dict(count(path, secret="S")) == {"p": {"1": 1}, "q": {"2": 1}}


def test_names_of_columns_match_under_nfc(tmp_path: Path) -> None:
    path = write(tmp_path, "s;Gro\u0308\u00dfe\na;1\na;2\nb;2\n")
    for name in ("Gr\u00f6\u00dfe", "Gro\u0308\u00dfe", " Gr\u00f6\u00dfe "):
        assert count(path, public=name).codings[0].column == "Gr\u00f6\u00dfe"
    assert "twice" in refused(write(tmp_path, "s,\u00f6,o\u0308\na,1,2\n"), public="\u00f6")


def test_mistyped_column(tmp_path: Path) -> None:
    path = write(tmp_path, "ward,days\nA,1\n")
    message = refused(path, secret="wrad", public="days")
    assert "did you mean 'ward'?" in message
    assert "ward, days" in message
    assert "differ" in refused(path, secret="ward", public=" ward")


@pytest.mark.parametrize(
    "name, parts",
    [
        ("tabel.csv", ["there is no file", "did you mean 'table.csv'?"]),
        ("none/table.csv", ["there is no file"]),
        ("", ["of several kinds"]),
        ("a\0.csv", ["the name of a file"]),
        ("table.xlsx", [".xlsx", "save it as CSV"]),
        ("table", ["its name has no ending"]),
        ("broken.csv.gz", ["truncated or corrupt gzip file"]),
        ("broken.parquet", ["cannot read"]),
        ("broken.json", ["cannot read"]),
        ("t.parquet.gz", [".gz"]),
    ],
)
def test_paths_that_are_refused_in_one_line(tmp_path: Path, name: str, parts: list[str]) -> None:
    write(tmp_path, "s,x\na,1\n")
    for other in ("table.xlsx", "table", "t.parquet.gz"):
        write(tmp_path, "x", other)
    write(tmp_path, gzip.compress(b"s,x\n" * 1000)[:30], "broken.csv.gz")
    write(tmp_path, "PAR1junk", "broken.parquet")
    write(tmp_path, "[{", "broken.json")
    message = refused(tmp_path / name)
    for part in parts:
        assert part in message


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="needs a device")
def test_what_is_no_regular_file_points_to_standard_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    assert "- reads CSV from standard input" in refused(tmp_path / "t.csv")
    assert "no regular file" in refused("/dev/null")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
def test_standard_input_is_read_as_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        buffer = io.BytesIO(b"s;x\na;1\nb;2\n")

    monkeypatch.setattr(sys, "stdin", Stream)
    table = open_table("-")
    assert (table.name, table.paths, table.columns) == ("standard input", (), ("s", "x"))
    assert as_dict(count(table)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert len(list(table.batches(["x"]))) == 1
    assert "standard input is empty" in refused("-")


@pytest.mark.parametrize("ending", ["csv", "ndjson"])
def test_damaged_gzip_is_refused(tmp_path: Path, ending: str) -> None:
    # Longer than the look at the header, which would see the end of a short file.
    text = "s,x\n" + "".join(f"{'ab'[k % 2]},{k % 9}\n" for k in range(90_000))
    if ending == "ndjson":
        text = "".join(f'{{"s":"{"ab"[k % 2]}","x":{k % 9}}}\n' for k in range(90_000))
    packed = gzip.compress(text.encode(), compresslevel=0)
    assert count(write(tmp_path, packed, f"t.{ending}.gz")).counts.sum() == 90_000
    for place in (len(packed) - 40, len(packed) - 6):
        broken = bytearray(packed)
        broken[place] ^= 1
        assert "corrupt gzip" in refused(write(tmp_path, bytes(broken), f"t.{ending}.gz"))
    assert "truncated" in refused(write(tmp_path, packed[:-30], f"t.{ending}.gz"))


def test_many_columns(tmp_path: Path) -> None:
    names = [f"column_{k:06}" for k in range(2_000)]
    path = write(tmp_path, ",".join(["s", *names, "x"]) + "\n" + "1," * 2_001 + "5\n")
    assert open_table(path).columns == ("s", *names, "x")
    assert as_dict(count(path)) == {"1": {"5": 1}}
    wide = ",".join(f"c{k}" for k in range(100_000))
    assert "100,000 columns" in refused(write(tmp_path, f"{wide}\n{wide}\n"))


def test_stray_quotation_marks_and_endless_headers(tmp_path: Path) -> None:
    long = write(tmp_path, "s,x\n" + 'a 5" b,1\n' * 60_000, "stray.csv")
    assert as_dict(count(long)) == {'a 5" b': {"1": 60_000}}
    surplus = write(tmp_path, "s,x\n" + 'a 5" b,1\n' * 60_000 + "b,1,\n", "surplus.csv")
    assert "line 60002 has 3 fields" in refused(surplus)
    assert "header of" in refused(write(tmp_path, "a," * 2**20))


def test_json_keeps_digits_and_refuses_lists(tmp_path: Path) -> None:
    lines = (
        '{"s":"a","x":1.10,"l":[1]}\n{"s":"b","x":2}\n{"s":"b","x":null}\n'
        '{"s":"b","x":"3"}\n{"s":"b"}\n'
    )
    path = write(tmp_path, lines, "t.ndjson")
    assert as_dict(count(path)) == {"a": {"1.1": 1}, "b": {"3": 1, "2": 1}}
    assert "lists" in refused(path, public="l")
    lost = write(tmp_path, '{"s":"a","x":1}\n{"s":"b","x":nan}\n', "nan.ndjson")
    assert "not finite in data row 2" in refused(lost)
    case = write(tmp_path, '[{"s/~":"a","x":1,"X":2},{"S":"c","s/~":"b","x":3}]', "t.json")
    assert open_table(case).columns == ("S", "s/~", "x", "X")
    assert as_dict(count(case, "s/~")) == {"a": {"1": 1}, "b": {"3": 1}}
    assert as_dict(count(case, "s/~", "X", exclude_secrets=["b"])) == {"a": {"2": 1}}
    array = json.dumps([{"s": "a", "x": x} for x in (2**53, 2**53 + 1)])
    assert values(count(write(tmp_path, array, "t.json"))) == [2**53, 2**53 + 1]
    packed = write(tmp_path, gzip.compress(lines.encode()), "t.jsonl.gz")
    assert as_dict(count(packed)) == as_dict(count(path))
    flags = write(tmp_path, '[{"s":1,"x":true},{"s":2,"x":false}]', "t.json")
    assert as_dict(count(flags)) == {"1": {"true": 1}, "2": {"false": 1}}


@pytest.mark.parametrize(
    "name, content, part",
    [
        ("t.csv", "s,x\nsmith,1\njones,2,3\n", "line 3 has 3 fields"),
        ("t.csv", 's,x\nsmith,1\njones,"2\n', "line 3"),
        ("t.csv", 's,x\nsmith,1\n"jo"nes,2\n', "line 3"),
        ("t.csv", 's,x\nsmith,1\njones,"2"3\n', "line 3"),
        ("t.ndjson", '{"s":"jones","x":1,"x":3}\n', "'x' twice"),
        ("t.json", '[{"s":"jones","x":1},{"s":"jones" "x":2}]', "as JSON"),
        ("t.ndjson", '{"s":"a","x":1}\n{"s":"jones",x:2}\n', "as JSON"),
        ("t.ndjson", '{"s":"jones\x01","x":2}\n', "as JSON"),
        ("t.ndjson", '{"s":"jones\\ud800","x":2}\n', "as JSON"),
        ("t.json", '{"s":"jones"', "as JSON"),
        ("t.json", '"jones"', "holds no table"),
        ("t.ndjson", '{"s":"a","x":1}\n"jones"\n', "holds no table"),
        ("t.json", "[]", "holds no table"),
        ("t.json", "", "holds no table"),
        ("t.parquet", "PAR1jonesPAR1", "Parquet file"),
        ("t.parquet", "jones", "Parquet file"),
    ],
)
def test_messages_quote_no_rows(tmp_path: Path, name: str, content: str, part: str) -> None:
    message = refused(write(tmp_path, content, name))
    assert "jones" not in message
    assert part in message


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.parquet"])
def test_messages_of_duckdb_are_never_passed_on(tmp_path: Path, name: str) -> None:
    header = text_module.Header(("s", "x"), ",", b"\n") if name == "t.csv" else None
    path = write(tmp_path, "s,x\n", name)
    source = scan_module.Source(path, str(path), "500MB", header=header)
    for message in ("Object {jones}", "Error: jones\njones", "Out of Memory Error: jones"):
        with pytest.raises(InputError) as caught, source.connected():
            raise duckdb.Error(message)
        assert "jones" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_only_used_columns_are_read_from_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"s": ["a", "b"], "junk": ["j" * 100, "k" * 100], "x": [1, 2]})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    start = pq.ParquetFile(path).metadata.row_group(0).column(1).data_page_offset
    broken = bytearray(path.read_bytes())
    broken[start : start + 40] = b"\xff" * 40
    path.write_bytes(broken)
    assert as_dict(count(path)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert "cannot read" in refused(path, public="junk")


def test_columns_of_parquet_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table([["a"], [1], [2]], names=["s", "x", "x"]), path)
    assert "'x' twice" in refused(path)
    pq.write_table(pa.table([["a"], ["b"], [1], [2]], names=["S", "s", "X", "x"]), path)
    assert open_table(path).columns == ("S", "s", "X", "x")
    assert as_dict(count(path)) == {"b": {"2": 1}}
    assert as_dict(count(path, "S", "X")) == {"a": {"1": 1}}


@pytest.mark.parametrize(
    "how", [{}, {"version": "1.0"}, {"data_page_version": "2.0"}, {"store_schema": False}], ids=str
)
def test_integers_of_parquet_are_what_duckdb_counts(tmp_path: Path, how: dict[str, Any]) -> None:
    path = tmp_path / "t.parquet"
    names = ["a.b", "a", "A", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))]
    columns = [pa.array([1, 2, 3, 3]), pa.array([4, None, 5, 5]), pa.array([6, 7, 8, 8])]
    for name in names[3:]:
        ends = np.iinfo(name)
        columns.append(pa.array([ends.min, ends.max, None, None], getattr(pa, name)()))
    columns += [
        columns[0].dictionary_encode(),
        columns[0].cast("int32").cast("date32"),
        columns[0].cast("str"),
    ]
    names += ["category", "day", "text"]
    pq.write_table(pa.table(columns, names=names), path, row_group_size=3, **how)
    table = open_table(path)
    for name in names:
        cells = pa.Table.from_batches(table.batches([name])).column(0)
        column, counts = table.groups([name]).columns
        assert cells.type == column.type
        assert Counter(cells.to_pylist()) == dict(
            zip(column.to_pylist(), counts.to_pylist(), strict=True)
        )
    both = pa.Table.from_batches(table.batches(["a", "a.b"]))
    assert both.to_pydict() == {"a": [4, None, 5, 5], "a.b": [1, 2, 3, 3]}


def test_integers_of_parquet_are_read_piece_by_piece(tmp_path: Path) -> None:
    path, numbers = tmp_path / "t.parquet", np.random.default_rng(1).integers(0, 2**40, 10**6)
    for rows in (10**5, 10**6):  # row groups; 8 MB in all
        pq.write_table(pa.table({"x": numbers}), path, row_group_size=rows, use_dictionary=False)
        tracemalloc.start()
        held, cells = 0, []
        for batch in open_table(path).batches(["x"], 50_000):
            held = max(held, tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes())
            cells.append(int(np.from_dlpack(batch.column(0)).sum()))
        tracemalloc.stop()
        assert sum(cells) == int(numbers.sum())
        assert held < 4 * 2**20


def test_batches_come_in_the_order_of_rows(tmp_path: Path) -> None:
    rows = [("ab"[k % 2], str(k)) for k in range(10_000)]
    table = open_table(write(tmp_path, csv_text(rows)))
    batches = list(table.batches(["x", "s"], 1000))
    assert max(len(batch) for batch in batches) <= 4096
    assert [x for batch in batches for x in batch.column(0).to_pylist()] == [x for _, x in rows]
    assert [s for batch in batches for s in batch.column(1).to_pylist()] == [s for s, _ in rows]


ALONE = """
import sys
from pufferfish.tables.count import count_table
from pufferfish.tables.encode import Encoder
from pufferfish.tables.rules import make_rules
from pufferfish.tables.source import open_table

for path in sys.argv[2:]:
    found = count_table(path, make_rules(secret="s", public="x", missing=["-1"]))
    table = open_table(path)
    encoder = Encoder(found.codings[0], table)
    for batch in table.batches(["x"]):
        encoder.encode(batch.column(0))
    print(found.counts.sum(), *(name in sys.modules for name in sys.argv[1].split(",")))
"""


def test_files_are_read_without_pandas(tmp_path: Path) -> None:
    """Arrow imports it on the way, and an interrupt during that import would be lost."""
    records: Any = [{"s": s, "x": x} for s in "ab" for x in (1, 2)]
    paths = [
        write(tmp_path, "s,x\na,1\na,2\nb,1\nb,2\n"),
        write(tmp_path, json.dumps(records), "t.json"),
        tmp_path / "t.parquet",
        tmp_path / "d.parquet",
    ]
    query = "SELECT s, {} x FROM (VALUES ('a',1),('a',2),('b',1),('b',2)) t(s,x)"
    duckdb.sql(query.format("x")).write_parquet(str(paths[2]))
    duckdb.sql(query.format("make_timestamp_ns(x)")).write_parquet(str(paths[3]))
    command = [sys.executable, "-c", ALONE, "pandas,narwhals", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line[:13] for line in done.stdout.splitlines()] == ["4 False False"] * 4
