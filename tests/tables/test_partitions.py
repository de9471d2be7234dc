# SPDX-License-Identifier: Apache-2.0
"""Folders and patterns: their files are one table, whose rows are all read, each once."""

import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pufferfish as pf
from pufferfish.errors import InputError, OutsidePromiseWarning
from pufferfish.tables.identity import identity_of
from pufferfish.tables.source import open_table
from table_cases import as_dict, count, refused, write


def folder(tmp_path: Path, **files: str) -> Path:
    made = tmp_path / "data"
    for name, content in files.items():
        path = made / name.replace("__", "/").replace("_csv", ".csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return made


def test_files_are_one_table_in_the_order_of_their_names(tmp_path: Path) -> None:
    data = folder(tmp_path, b_csv="x,s\n2,a\n", a_csv="s,x\na,1\nb,1\n", c__d_csv="s,x\nb,3\n")
    whole = write(tmp_path, "s,x\na,1\nb,1\na,2\nb,3\n", "whole.csv")
    for table in (data, str(data), os.path.relpath(data)):
        assert as_dict(count(table)) == as_dict(count(whole))
        cells = [
            row for batch in open_table(table).batches(["s", "x"]) for row in batch.to_pylist()
        ]
        assert [(row["s"], row["x"]) for row in cells] == [
            ("a", "1"), ("b", "1"), ("a", "2"), ("b", "3"),
        ]  # fmt: skip
        assert identity_of(table) == identity_of(whole)
    assert as_dict(count(data / "?.csv")) == {"a": {"1": 1, "2": 1}, "b": {"1": 1}}


def test_a_pattern_that_is_the_name_of_a_file_is_that_file(tmp_path: Path) -> None:
    write(tmp_path, "s,x\na,1\nb,2\n", "t1.csv")
    assert as_dict(count(write(tmp_path, "s,x\nc,1\nd,2\n", "t[1].csv"))) == {
        "c": {"1": 1}, "d": {"2": 1},
    }  # fmt: skip


def test_the_names_of_folders_are_columns(tmp_path: Path) -> None:
    data = folder(
        tmp_path, **{"s=it%27s__a_csv": "x\n1\n", "s=b__a_csv": "x\n1\n2\n",
                     "s=NOTHING__a_csv": "x\n9\n"}
    )  # fmt: skip
    os.rename(data / "s=NOTHING", data / "s=__HIVE_DEFAULT_PARTITION__")
    assert as_dict(count(data)) == {"b": {"1": 1, "2": 1}, "it's": {"1": 1}}
    assert count(data).report.rows_read == 4
    duckdb.sql("SELECT 'a' AS s, 1 AS x UNION SELECT 'b', 2").to_parquet(
        str(tmp_path / "parquet"), partition_by=["s"]
    )
    for table in (tmp_path / "parquet", tmp_path / "parquet/*/*.parquet"):
        assert as_dict(count(table)) == {"a": {"1": 1}, "b": {"2": 1}}
    assert "no column 's'" in refused(tmp_path / "parquet/s=a/*.parquet")
    odd = tmp_path / "odd"
    for name in ("_y=1", "_y=2/y=1", "_y=2/_z/y=1"):
        (odd / name).mkdir(parents=True)
    write(odd / "_y=1", "s,x\na,1\n", "a.csv")
    write(odd / "_y=2", "s,x\nb,1\n", "a.csv")
    write(odd / "_y=2/_z", "s,x\nb,1\n", "a.csv")  # hidden
    assert as_dict(count(odd, "_y")) == {"1": {"1": 1}, "2": {"1": 1}}
    (tmp_path / "twice/y=1/y=2").mkdir(parents=True)
    write(tmp_path / "twice/y=1/y=2", "s,x\na,1\n", "a.csv")
    assert "name a column twice" in refused(tmp_path / "twice")


@pytest.mark.parametrize("kinds", [("int64", "float64"), ("int32", "int64"), ("null", "int64")])
def test_types_may_differ(tmp_path: Path, kinds: tuple[str, str]) -> None:
    (tmp_path / "p").mkdir()
    for k, kind in enumerate(kinds):
        cells = pa.array([None, None] if kind == "null" else [1, 2**53 + 1][: 2 - (k == 1)])
        cells = cells.cast(getattr(pa, kind)(), safe=False) if kind != "int32" else pa.array([1, 2])
        pq.write_table(pa.table({"s": ["a"] * len(cells), "x": cells}), tmp_path / f"p/{k}.parquet")
    found = as_dict(count(tmp_path / "p"))
    assert found["a"]["1"] == (1 if kinds[0] == "null" else 2)
    assert kinds[0] != "int64" or found["a"][str(2**53 + 1)] == 1


def test_kept_columns_of_unlike_types(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for k, cells in enumerate(([1, 2], [0.5, 1.5])):
        rows = pa.table({"s": ["a", "b"], "x": [1, 2], "k": cells})
        pq.write_table(rows, tmp_path / f"p/{k}.parquet")
    plan = pf.calibrate(pf.Prior.from_counts({"a": [1, 9], "b": [8, 2]}, support=[1, 2]), 1)
    plan = plan.with_columns(secret="s", public="x")
    with pytest.raises(InputError, match="another type in later rows"):
        plan.release(tmp_path / "p", output=tmp_path / "out.parquet", keep=["k"])
    with pytest.warns(OutsidePromiseWarning, match="no longer protected"):
        plan.release(tmp_path / "p", output=tmp_path / "out.csv", keep=["k"])
    assert [line.split(",")[1] for line in (tmp_path / "out.csv").read_text().split()] == [
        "k", "1", "2", "0.5", "1.5",
    ]  # fmt: skip


def test_what_is_no_one_table_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, a_csv="s,x\na,1\n", b_csv="s,z\na,1\n")
    assert "need the same columns" in refused(data)
    assert "b.csv has no 'x'" in refused(data)
    (data / "b.csv").write_text("s,x\nb,2\n")
    assert as_dict(count(data)) == {"a": {"1": 1}, "b": {"2": 1}}
    for name in ("_SUCCESS", ".a.csv.crc", "_temporary/0/part.csv"):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text("junk")
    assert len(open_table(data).paths) == 2
    os.link(data / "b.csv", data / "latest.csv")
    assert "under two names" in refused(data)
    os.remove(data / "latest.csv")
    for target in (data, data / "gone.csv", tmp_path):
        os.symlink(target, data / "odd.csv")  # it was followed without end, or left out
        for table in (data, data / "*.csv"):
            message = refused(table)
            assert "no files" in message or "No such file" in message
        os.remove(data / "odd.csv")
    (data / "odd.csv").mkdir()  # as Spark writes
    assert "are no files" in refused(data / "*.csv")
    (data / "odd.csv").rmdir()
    assert "** is not known" in refused(data / "**/*.csv")
    os.symlink("b.csv", data / "link.csv")
    assert "under two names" in refused(data / "*.csv")
    os.remove(data / "link.csv")
    (data / "c.parquet").write_bytes(b"PAR1")
    assert "several kinds" in refused(data)
    assert as_dict(count(data / "*.csv")) == {"a": {"1": 1}, "b": {"2": 1}}
    assert "no file matches" in refused(data / "*.tsv")
    (tmp_path / "empty").mkdir()
    assert "no file lies in" in refused(tmp_path / "empty")
    (data / "a.csv").write_text("s,x\na,1\nb\n")
    assert "a.csv: line 3 has 1 field" in refused(data / "*.csv")


def test_an_output_that_would_join_the_table_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, a_csv="s,x\na,1\na,2\n", b_csv="s,x\nb,2\nb,1\n")
    plan = pf.calibrate(pf.Prior.from_table(data, secret="s", public="x"), epsilon=1)
    (tmp_path / "link[1]").symlink_to(data)
    for table, output in [
        (data, "new.csv"), (data, "a.csv"), (data / "*.csv", "new.csv"), (data / "?.csv", "n.csv"),
        (tmp_path / "dat*/*.csv", "new.csv"), (tmp_path / "lin*/*.csv", "new.csv"),
        (tmp_path / "link[1]", "new.csv"),
    ]:  # fmt: skip
        before = sorted(os.listdir(data))
        with pytest.raises(InputError, match="cannot write"):
            plan.release(table, output=data / output, force=True)
        assert sorted(os.listdir(data)) == before
    report = plan.release(data / "?.csv", output=data / "new.csv", min_scale=1)
    assert report.rows_released == 4
    assert len((data / "new.csv").read_text().splitlines()) == 5
