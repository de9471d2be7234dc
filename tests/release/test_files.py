# SPDX-License-Identifier: Apache-2.0
"""Releasing from file to file: contents, refusals, and nothing under the name before it is done."""

import gzip
import os
from collections.abc import Callable
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

from noise_checks import DRAWS, LEAST_P, OFF, fit
from pufferfish import files
from pufferfish.errors import InputError, OutsidePromiseWarning, SeededWarning
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.release.pipeline import Prepared, release_file
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.rows import Reader
from pufferfish.release.sinks import ParquetSink, TextSink
from pufferfish.release.spec import ReleaseReport, ReleaseSpec
from pufferfish.support import Levels
from pufferfish.tables.source import open_table
from pufferfish.tables.table import BATCH_ROWS
from release_cases import channel_job, job, names, prepare, write_csv

ROWS = [("a", 0), ("b", 5), ("", 1), ("c", 1), ("a", ""), ("b", 0)]
TINY = 1e-3  # a scale at which no noise ever comes


pytestmark = pytest.mark.filterwarnings("ignore::pufferfish.errors.OutsidePromiseWarning")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "in.csv", ROWS)


def in_two_passes(
    source: Any,
    output: Path,
    spec: ReleaseSpec,
    charge: Callable[[Prepared], None] = lambda prepared: None,
    **options: Any,
) -> ReleaseReport:
    """A release with a charge between its passes."""
    prepared = prepare(source, output, spec, **options)
    charge(prepared)
    return prepared.write(options.get("progress"))


def test_only_the_released_column_is_written(table: Path) -> None:
    out = table.with_name("out.csv")
    with pytest.warns(OutsidePromiseWarning, match="2 released rows with a secret that is in no"):
        report = release_file(table, out, job([0, 1, 5], TINY))
    assert out.read_bytes() == b"x\n0\n5\n1\n1\n0\n"
    assert report == ReleaseReport(
        source=str(table),
        output=str(out),
        column="x",
        keep=(),
        mechanism=DiscreteLaplace(TINY, Fraction(1)),
        rows_read=6,
        rows_released=5,
        set_aside=1,
        outside_promise=2,
    )
    assert names(table.parent) == ["in.csv", "out.csv"]


def test_every_kind_of_output(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text('s,k,x\na,"p,q",.25\nb,=1+1,0.75\na,-3.2,.250\n')
    for ending in ("csv", "tsv", "csv.gz", "tsv.gz", "parquet"):
        with pytest.warns(OutsidePromiseWarning, match="no longer protected"):
            release_file(table, tmp_path / f"out.{ending}", job([".25", ".75"], TINY), keep=["k"])
    expected = 'k,x\n"p,q",0.25\n\'=1+1,0.75\n-3.2,0.25\n'
    assert (tmp_path / "out.csv").read_text() == expected
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode() == expected
    tabbed = 'k\tx\n"p,q"\t0.25\n\'=1+1\t0.75\n-3.2\t0.25\n'
    assert (tmp_path / "out.tsv").read_text() == tabbed
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode() == tabbed
    frame = pl.read_parquet(tmp_path / "out.parquet")
    assert frame.to_dict(as_series=False) == {
        "k": ["p,q", "=1+1", "-3.2"], "x": [0.25, 0.75, 0.25]
    }  # fmt: skip


@pytest.mark.parametrize("scale", [TINY, 3.0, 1e6])
def test_integers_of_parquet_are_written_small_and_read_by_all(
    tmp_path: Path, scale: float
) -> None:
    table, out = tmp_path / "in.parquet", tmp_path / "test.parquet"
    values = np.arange(3 * BATCH_ROWS) % 1000
    pq.write_table(pa.table({"s": ["a"] * len(values), "k": values, "x": values}), table)
    spec = job(range(1000), scale)
    with pytest.warns(SeededWarning):
        release_file(table, out, spec, keep=["k"], seed=4)
    with pytest.warns(SeededWarning):
        release_file(table, tmp_path / "test.csv", spec, keep=["k"], seed=4)
    expected = pd.read_csv(tmp_path / "test.csv")
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)
    assert pl.read_parquet(out).to_dict(as_series=False) == expected.to_dict("list")
    assert duckdb.sql(f"SELECT sum(x) FROM '{out}'").fetchall() == [(expected["x"].sum(),)]
    assert pq.read_schema(out).field("x") == pa.field("x", pa.int64(), nullable=False)
    assert "DELTA_BINARY_PACKED" in pq.read_metadata(out).row_group(0).column(1).encodings


def test_kept_columns_of_parquet_keep_their_types(tmp_path: Path) -> None:
    kept = {
        "k": pa.array([b"x", None, b"z"]),
        "l": pa.array([[1], [], None]),
        "d": pa.array([1, 2, None], pa.date32()),
        "t": pa.array(["=1", "b", None]).dictionary_encode(),
    }
    table = pa.table({"s": ["a", "b", "a"], "x": [0, 1, None], **kept})
    pq.write_table(table, tmp_path / "in.parquet")
    source, spec = tmp_path / "in.parquet", job([0, 1], TINY)
    release_file(source, tmp_path / "out.parquet", spec, keep=["d", "t"])
    read = pq.read_table(tmp_path / "out.parquet")
    assert read.schema.field("x").type == pa.int64()
    assert read.schema.field("d").type == pa.date32()
    assert read["t"].to_pylist() == ["=1", "b"]
    release_file(source, tmp_path / "out.csv", spec, keep=["d", "t"])
    assert (tmp_path / "out.csv").read_text() == "x,d,t\n0,1970-01-02,'=1\n1,1970-01-03,b\n"
    with pytest.raises(InputError, match="holds binary cells"):
        release_file(source, tmp_path / "late.csv", spec, keep=["k"])
    assert "late.csv" not in names(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nothing_to_release(tmp_path: Path, ending: str) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", ""), ("b", "")])
    for rows in (table, pl.LazyFrame({"s": [], "x": [], "k": []})):
        out = tmp_path / f"out.{ending}"
        assert release_file(rows, out, job([0, 1]), force=True).rows_released == 0
        read = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
        assert list(read.columns) == ["x"]
        assert len(read) == 0


def test_a_released_file_has_the_stated_noise(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", 0), ("b", 5)] * DRAWS)
    scale = 3.7
    release_file(table, tmp_path / "out.csv", job([0, 5], scale))
    released = pd.read_csv(tmp_path / "out.csv")["x"].to_numpy()
    assert len(released) == 2 * DRAWS
    noise = released - np.tile([0, 5], DRAWS)
    assert fit(noise, scale, Fraction(1)) > LEAST_P
    for factor in OFF:
        assert fit(noise, scale * factor, Fraction(1)) < LEAST_P
    # Neighbouring rows and batches share nothing.
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.05
    assert not np.array_equal(noise[: 2 * DRAWS - BATCH_ROWS], noise[BATCH_ROWS:])


# What is refused, with nothing left behind.


def test_values_outside_the_support(tmp_path: Path) -> None:
    rows = [("a", 0)] * 140_000 + [("b", 99), ("a", 1)]
    table, out = write_csv(tmp_path / "in.csv", rows), tmp_path / "out.csv"
    with pytest.raises(
        InputError,
        match=r"data row 140001 of .*in.csv, column 'x', is outside the support, which goes from 0 "
        r"to 1; clamp .*--out-of-support clamp \(out_of_support='clamp'\)$",
    ) as caught:
        release_file(table, out, job([0, 1], TINY))
    assert "99" not in str(caught.value).replace(str(tmp_path), "")
    assert names(tmp_path) == ["in.csv"]
    with pytest.warns(OutsidePromiseWarning, match="1 released value moved to the nearest"):
        report = release_file(table, out, job([0, 1], TINY, out_of_support="clamp"))
    assert report.clamped == 1
    assert out.read_text().split()[-2:] == ["1", "1"]


def test_the_output_is_not_the_input(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = table.read_bytes()
    table.with_name("link.csv").symlink_to(table)
    os.link(table, table.with_name("hard.csv"))
    monkeypatch.chdir(table.parent)
    monkeypatch.setenv("HOME", str(table.parent))
    (table.parent / "sub").mkdir()
    for out in (table, "in.csv", "./in.csv", "sub/../in.csv", "link.csv", "hard.csv"):
        for force in (False, True):
            with pytest.raises(InputError, match="is the input itself"):
                release_file(table, out, job([0, 1, 5]), force=force)
    for source in ("link.csv", "~/in.csv", Path("~/in.csv"), open_table("~/in.csv")):
        with pytest.raises(InputError, match="is the input itself"):
            release_file(source, table, job([0, 1, 5]), force=True)
    assert table.read_bytes() == before
    release_file("~/in.csv", table.with_name("out.csv"), job([0, 1, 5], TINY))


def test_the_output_is_no_other_input(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = write_csv(table.with_name("plan.csv"), [("a", 0)])
    monkeypatch.setenv("HOME", str(table.parent))
    for inputs in ([plan], ["~/plan.csv"], [table, plan]):
        with pytest.raises(InputError, match="give another name"):
            release_file(table, plan, job([0, 1, 5]), force=True, inputs=inputs)
    # Mutant: paths compared as they are written.
    monkeypatch.setattr(files, "home_expanded", lambda path: path)
    release_file(table, plan, job([0, 1, 5]), force=True, inputs=["~/plan.csv"])
    assert plan.read_text().startswith("x\n")


@pytest.mark.parametrize("out", ["out.xlsx", "out", "no/out.csv"])
def test_outputs_that_cannot_be(table: Path, out: str) -> None:
    for release in (release_file, prepare):
        with pytest.raises(InputError, match=r"must end in one of \.csv, \.tsv|does not exist"):
            release(table, table.parent / out, job([0, 1, 5]), force=True)
    assert names(table.parent) == ["in.csv"]


@pytest.mark.parametrize("failing", ["draw", "sink", "progress"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(28, "No space left")])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_whatever_fails_leaves_nothing(
    table: Path, failing: str, error: Any, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = table.with_name(f"out.{ending}")
    out.write_text("precious")

    def fail(*arguments: Any) -> None:
        raise error

    if failing == "draw":
        monkeypatch.setattr(Postprocess, "draw", fail)
    if failing == "sink":
        for kind in (TextSink, ParquetSink):
            monkeypatch.setattr(kind, "write", fail)
    expected = InputError if failing == "sink" and isinstance(error, OSError) else error
    with pytest.raises(expected if isinstance(expected, type) else OSError) as caught:
        release_file(
            table, out, job([0, 1, 5]), force=True,
            progress=fail if failing == "progress" else None,
        )  # fmt: skip
    if expected is InputError:
        assert str(caught.value) == f"cannot write {out}: No space left; nothing was written"
    assert out.read_text() == "precious"
    assert names(table.parent) == ["in.csv", f"out.{ending}"]


# Two passes: everything that can refuse is asked before the charge.


def test_between_the_passes_all_is_known_and_nothing_is_written(table: Path) -> None:
    out, seen = table.with_name("out.csv"), []

    def charge(prepared: Prepared) -> None:
        report = prepared.report
        seen.append((report.rows_released, report.set_aside, len(prepared.digest)))
        assert names(table.parent) == ["in.csv"]

    report = in_two_passes(table, out, job([0, 1, 5], TINY), charge=charge)
    assert seen == [(5, 1, 64)]
    assert out.read_bytes() == b"x\n0\n5\n1\n1\n0\n"
    assert report.rows_released == 5

    def refuse(prepared: Prepared) -> None:
        raise InputError("over the budget")

    with pytest.raises(InputError, match="over the budget"):
        in_two_passes(table, table.with_name("late.csv"), job([0, 1, 5]), charge=refuse)
    assert names(table.parent) == ["in.csv", "out.csv"]


THREE = Levels(("p", "q", "r"))


@pytest.mark.parametrize(
    "spec, message",
    [
        (job([0, 1]), "outside the support"),
        (job([0, 1, 5], 1e20), "beyond 64 bits"),
        (job([0, 1, 5], 0.0), "published unchanged"),
        (job([0, 1, 5], bounds=("0.5", 2)), "multiples of 1"),
        (job([0, 1, 5], unit="id", rows_per_person=(1,)), "such as 2"),
        (job([0, 1, 5], coding=None), "names no column"),
        (channel_job(THREE, [[1, 0, 0], [0, 1, 0], [1, 1, 1]]), "read back|unchanged"),
    ],
)
def test_refused_before_the_charge(tmp_path: Path, spec: Any, message: str) -> None:
    levels = isinstance(spec.support, Levels)
    x = ["p", "q", "p", "q"] if levels else [0, 5, 1, 0]
    rows = {"s": list("abab"), "id": [1, 2, 3, 3], "x": x}
    pq.write_table(pa.table(rows), tmp_path / "in.parquet")

    def charge(prepared: Prepared) -> None:
        pytest.fail("it was charged")

    with pytest.raises(InputError, match=message):
        in_two_passes(tmp_path / "in.parquet", tmp_path / "out.csv", spec, charge)
    with pytest.raises(InputError, match=message):
        release_file(tmp_path / "in.parquet", tmp_path / "out.csv", spec)
    assert names(tmp_path) == ["in.parquet"]


CHANGED = "s,x\na,5\nb,5\n,1\nc,1\na,\nb,0\n"  # one value is another


@pytest.mark.parametrize("text", ["s,x\na,0\nb,5\n", CHANGED, "s,x\n" + "a,0\n" * 9])
def test_a_table_that_changes_between_the_passes(table: Path, text: str) -> None:
    for source in (table, open_table(table)):
        write_csv(table, ROWS)
        with pytest.raises(InputError, match="changed while it was read; nothing was written"):
            in_two_passes(
                source, table.with_name("out.csv"), job([0, 1, 5]),
                charge=lambda prepared: table.write_text(text),
            )  # fmt: skip
        assert names(table.parent) == ["in.csv"]


def test_mutant_a_digest_that_never_changes_is_caught(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = property(lambda reader: "same", lambda reader, digest: None)
    monkeypatch.setattr(Reader, "digest", same, raising=False)
    in_two_passes(
        table, table.with_name("late.csv"), job([0, 1, 5]),
        charge=lambda _: table.write_text(CHANGED),
    )  # fmt: skip
    assert table.with_name("late.csv").exists()


def test_mutant_written_under_the_real_name_is_caught(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def early() -> bool:
        seen = []
        out = table.with_name("out.csv")
        release_file(
            table, out, job([0, 1, 5]), force=True,
            progress=lambda done, total: seen.append(out.exists()),
        )  # fmt: skip
        out.unlink()
        return any(seen)

    assert not early()
    enter = files.PendingFile.__enter__

    def careless(self: files.PendingFile) -> files.PendingFile:
        self.target.touch()
        return enter(self)

    monkeypatch.setattr(files.PendingFile, "__enter__", careless)
    assert early()


# Options.


def test_progress_counts_rows(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", 0), ("b", "")] * 80_000)
    twice: list[tuple[int, int | None]] = []
    in_two_passes(
        table, tmp_path / "two.csv", job([0, 1]), progress=lambda *call: twice.append(call)
    )  # fmt: skip
    first = [done for done, total in twice if total is None]
    second = [done for done, total in twice if total is not None]
    assert first == sorted(first)
    assert second == sorted(second)
    assert first[-1] == second[-1] == 160_000
    assert twice == [(d, None) for d in first] + [(d, 160_000) for d in second]


def test_a_seeded_file_says_that_it_is_a_test(table: Path) -> None:
    table.with_name("test-link.csv").symlink_to(table.with_name("real.csv"))
    for name in ("out.csv", "test-link.csv"):
        for release in (release_file, prepare):
            with pytest.raises(InputError, match="must contain 'test', but"):
                release(table, table.with_name(name), job([0, 1, 5]), seed=1)
    assert not table.with_name("real.csv").exists()
    texts = []
    for name, release in (("test1.csv", release_file), ("my-TEST.csv", in_two_passes)):
        with pytest.warns(SeededWarning, match="for tests only"):
            report = release(table, table.with_name(name), job([0, 1, 5], 99.0), seed=1)
        assert report.seeded
        texts.append(table.with_name(name).read_text())
    assert texts[0] == texts[1]
