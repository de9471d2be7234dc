# SPDX-License-Identifier: Apache-2.0
"""Releasing from file to file: contents, refusals, and nothing under the name before it is done."""

import contextlib
import gzip
import os
import stat
import warnings
from collections.abc import Iterator
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
from pufferfish import atomic
from pufferfish.errors import (
    InputError,
    OutsidePromiseWarning,
    PufferfishError,
    SeededWarning,
)
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.release import ReleaseReport, file_state, files, release_file
from pufferfish.release.releaser import Releaser
from pufferfish.tables import opening as table_opening
from pufferfish.tables import source as table_source
from release_cases import job, level_job, write_csv

ROWS = [("a", 0), ("b", 5), ("", 1), ("c", 1), ("a", ""), ("b", 0)]
TINY = 1e-3  # a scale at which no noise ever comes


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "in.csv", ROWS)


def quiet(*arguments: Any, **options: Any) -> ReleaseReport:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsidePromiseWarning)
        return release_file(*arguments, **options)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_only_the_released_column_is_written(table: Path) -> None:
    out = table.with_name("out.csv")
    with pytest.warns(OutsidePromiseWarning, match="2 released rows are outside the promise"):
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
        set_aside=(("no public value", 1),),
        outside_promise=(("no secret value", 1), ("secret in no pair", 1)),
    )
    assert names(table.parent) == ["in.csv", "out.csv"]


def test_excluded_secrets_are_outside_the_promise(table: Path) -> None:
    from pufferfish.tables import make_rules

    rules = make_rules(secret="s", public="x", exclude_secrets=["c"], missing=["b"])
    report = quiet(table, table.with_name("out.csv"), job([0, 1, 5], rules=rules))
    assert report.outside_promise == (("no secret value", 3), ("secret excluded", 1))


def test_every_kind_of_output(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text('s,k,x\na,"p,q",.25\nb,=1+1,0.75\na,-3.2,.250\n')
    spec = job([".25", ".75"], TINY)
    for ending in ("csv", "tsv", "csv.gz", "tsv.gz", "parquet"):
        with pytest.warns(OutsidePromiseWarning, match="no longer protected"):
            release_file(table, tmp_path / f"out.{ending}", spec, keep=["k"])
    expected = 'k,x\n"p,q",0.25\n\'=1+1,0.75\n-3.2,0.25\n'
    assert (tmp_path / "out.csv").read_text() == expected
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode() == expected
    tabbed = "k\tx\np,q\t0.25\n'=1+1\t0.75\n-3.2\t0.25\n"
    assert (tmp_path / "out.tsv").read_text() == tabbed
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode() == tabbed
    frame = pl.read_parquet(tmp_path / "out.parquet")
    assert frame.to_dict(as_series=False) == {
        "k": ["p,q", "=1+1", "-3.2"], "x": [0.25, 0.75, 0.25]
    }  # fmt: skip


def test_numbers_in_kept_text_read_back_as_numbers(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("s,x,k\na,0,-3.2\nb,1,+5\na,1,1e-3\n")
    quiet(table, tmp_path / "out.csv", job([0, 1]), keep=["k"])
    assert pd.read_csv(tmp_path / "out.csv")["k"].tolist() == [-3.2, 5, 1e-3]
    read = duckdb.sql(f"SELECT k FROM '{tmp_path}/out.csv'").fetchall()
    assert [float(k) for (k,) in read] == [-3.2, 5, 1e-3]


def test_kept_columns_of_parquet_keep_their_types(tmp_path: Path) -> None:
    kept = {
        "k": pa.array([b"x", None, b"z"]),
        "l": pa.array([[1], [], None]),
        "d": pa.array([1, 2, None], pa.date32()),
        "t": pa.array(["=1", "b", None]).dictionary_encode(),
    }
    table = pa.table({"s": ["a", "b", "a"], "x": [0, 1, None], **kept})
    pq.write_table(table, tmp_path / "in.parquet")
    quiet(tmp_path / "in.parquet", tmp_path / "out.parquet", job([0, 1], TINY), keep=["d", "t"])
    read = pq.read_table(tmp_path / "out.parquet")
    assert read.schema.field("x").type == pa.int64()
    assert read.schema.field("d").type == pa.date32()
    assert read["t"].to_pylist() == ["=1", "b"]
    quiet(tmp_path / "in.parquet", tmp_path / "out.csv", job([0, 1], TINY), keep=["d", "t"])
    assert (tmp_path / "out.csv").read_text() == "x,d,t\n0,1970-01-02,'=1\n1,1970-01-03,b\n"


def test_integers_above_2_to_53_from_file_to_file(tmp_path: Path) -> None:
    least = 2**53
    table = write_csv(tmp_path / "in.csv", [("a", least), ("b", least + 1), ("b", "")])
    spec = job([least, least + 1], TINY)
    for ending in ("csv", "parquet"):
        report = quiet(table, tmp_path / f"out.{ending}", spec)
        assert report.set_aside == (("no public value", 1),)
    assert (tmp_path / "out.csv").read_text() == f"x\n{least}\n{least + 1}\n"
    assert pq.read_table(tmp_path / "out.parquet")["x"].to_pylist() == [least, least + 1]
    quiet(tmp_path / "out.parquet", tmp_path / "again.csv", spec)
    assert (tmp_path / "again.csv").read_text() == f"x\n{least}\n{least + 1}\n"


def test_dataframes_go_into_files_too(tmp_path: Path) -> None:
    frame = pl.DataFrame({"s": ["a", "b"], "x": [0, 1]})
    report = release_file(frame, tmp_path / "out.csv", job([0, 1], TINY))
    assert (tmp_path / "out.csv").read_text() == "x\n0\n1\n"
    assert report.source == "the Polars dataframe"


def test_levels_in_files(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", "-low"), ("b", " high ")])
    order = ["-low", "high"]
    quiet(table, tmp_path / "codes.csv", level_job(order, TINY))
    assert (tmp_path / "codes.csv").read_text() == "x\n0\n1\n"
    named = level_job(order, TINY, round=True, bounds=(0, 1))
    quiet(table, tmp_path / "names.csv", named)
    assert (tmp_path / "names.csv").read_text() == "x\n'-low\nhigh\n"
    quiet(table, tmp_path / "names.parquet", named)
    assert pq.read_table(tmp_path / "names.parquet")["x"].to_pylist() == order


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nothing_to_release(tmp_path: Path, ending: str) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", ""), ("b", "")])
    for rows in (table, pl.DataFrame({"s": [], "x": [], "k": []})):
        out = tmp_path / f"out.{ending}"
        report = quiet(rows, out, job([0, 1]), force=True)
        assert report.rows_released == 0
        read = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
        assert list(read.columns) == ["x"]
        assert len(read) == 0


def test_released_file_has_the_stated_noise(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", 0), ("b", 5)] * (DRAWS // 2))
    scale = 3.7
    quiet(table, tmp_path / "out.csv", job([0, 5], scale))
    released = pd.read_csv(tmp_path / "out.csv")["x"].to_numpy()
    assert len(released) == DRAWS
    noise = released - np.tile([0, 5], DRAWS // 2)
    assert fit(noise, scale, Fraction(1)) > LEAST_P
    for factor in OFF:
        assert fit(noise, scale * factor, Fraction(1)) < LEAST_P
    # Neighbouring rows and batches share nothing.
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.05
    batch = table_source.BATCH_ROWS
    assert not np.array_equal(noise[: DRAWS - batch], noise[batch:])


# What is refused, with nothing left behind.


@pytest.mark.parametrize("out_of_support", ["refuse", "clamp"])
def test_values_outside_the_support(tmp_path: Path, out_of_support: Any) -> None:
    rows = [("a", 0)] * 70_000 + [("b", 99), ("a", 1)]
    table, out = write_csv(tmp_path / "in.csv", rows), tmp_path / "out.csv"
    spec = job([0, 1], TINY, out_of_support=out_of_support)
    if out_of_support == "clamp":
        with pytest.warns(OutsidePromiseWarning, match="1 released value was not in the support"):
            report = release_file(table, out, spec)
        assert report.clamped == 1
        assert out.read_text().split()[-2:] == ["1", "1"]
        return
    with pytest.raises(
        InputError,
        match=r"data row 70001 of .*in.csv, column 'x', is outside the support, which goes from 0 "
        r"to 1; clamp .*--out-of-support clamp \(out_of_support='clamp'\)$",
    ) as caught:
        release_file(table, out, spec)
    assert "99" not in str(caught.value)
    assert names(tmp_path) == ["in.csv"]


def test_levels_outside_the_support_cannot_be_clamped(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", "lo"), ("b", "hj")])
    for choice, end in (("refuse", ""), ("clamp", "; levels cannot be clamped, as .*")):
        with pytest.raises(InputError, match=rf"data row 2 of .* is none of the levels{end}$"):
            release_file(
                table, tmp_path / "out.csv", level_job(["lo", "hi"], out_of_support=choice)
            )
    assert names(tmp_path) == ["in.csv"]


def test_text_among_numbers(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", "0"), ("b", "?")])
    with pytest.raises(
        InputError,
        match=r"data row 2 of .* is no finite number; if it stands for "
        r"a missing value, say so with --missing TEXT \(missing=\[TEXT\]\)",
    ):
        release_file(table, tmp_path / "out.csv", job([0, 1], out_of_support="clamp"))
    with pytest.raises(InputError, match=r"none of the levels; if it stands for .*--missing"):
        release_file(table, tmp_path / "out.csv", level_job(["0", "1"]))
    write_csv(table, [("a", "0"), ("b", "text")])
    with pytest.raises(InputError, match=r"data row 2 of .* is no finite number$"):
        release_file(table, tmp_path / "out.csv", job([0, 1]))


def test_the_output_is_not_the_input(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = table.read_bytes()
    table.with_name("link.csv").symlink_to(table)
    os.link(table, table.with_name("hard.csv"))
    monkeypatch.chdir(table.parent)
    (table.parent / "sub").mkdir()
    for out in (table, "in.csv", "./in.csv", "sub/../in.csv", "link.csv", "hard.csv"):
        for force in (False, True):
            with pytest.raises(InputError, match="is the input itself"):
                release_file(table, out, job([0, 1, 5]), force=force)
    with pytest.raises(InputError, match="is the input itself"):
        release_file("link.csv", table, job([0, 1, 5]), force=True)
    assert table.read_bytes() == before


def test_the_output_is_not_the_input_in_the_home_folder(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(table.parent))
    before = table.read_bytes()
    for source in ("~/in.csv", Path("~/in.csv"), table_opening.open_table("~/in.csv")):
        with pytest.raises(InputError, match="is the input itself"):
            release_file(source, table, job([0, 1, 5]), force=True)
    assert table.read_bytes() == before
    quiet("~/in.csv", table.with_name("out.csv"), job([0, 1, 5], TINY))
    assert table.with_name("out.csv").exists()


def test_mutant_paths_compared_as_written_is_caught(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(table.parent))
    monkeypatch.setattr(atomic, "home_expanded", lambda path: path)
    before = table.read_bytes()
    quiet("~/in.csv", table, job([0, 1, 5], TINY), force=True)
    assert table.read_bytes() != before


def test_names_that_begin_with_a_tilde(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    table.rename("~t.csv")
    quiet("~t.csv", "~out.csv", job([0, 1, 5], TINY))
    assert names(table.parent) == ["~out.csv", "~t.csv"]
    with pytest.raises(InputError, match="is the input itself"):
        release_file("~t.csv", "~t.csv", job([0, 1, 5]), force=True)

    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert atomic.home_expanded(Path("~/t.csv")) == Path("~/t.csv")


def test_the_output_is_no_other_input(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = write_csv(table.with_name("plan.csv"), [("a", 0)])
    table.with_name("link.csv").symlink_to(plan)
    monkeypatch.setenv("HOME", str(table.parent))
    before = plan.read_bytes()
    for inputs in ([plan], [str(plan)], ["~/plan.csv"], [table, plan]):
        for out in (plan, table.with_name("link.csv")):
            with pytest.raises(InputError, match="which the release needs; give another name"):
                release_file(table, out, job([0, 1, 5]), force=True, inputs=inputs)
    assert plan.read_bytes() == before
    quiet(table, table.with_name("out.csv"), job([0, 1, 5]), inputs=[plan, table.with_name("no")])


def test_a_table_that_changed_since_it_was_counted(table: Path) -> None:
    state = file_state(table)
    assert state == file_state(str(table))
    quiet(table, table.with_name("out.csv"), job([0, 1, 5], TINY), state=state)
    write_csv(table, [*ROWS, ("a", 0)])
    for source in (table, str(table), table_opening.open_table(table)):
        with pytest.raises(InputError, match="changed after its prior was counted; nothing was"):
            release_file(source, table.with_name("late.csv"), job([0, 1, 5]), state=state)
    assert names(table.parent) == ["in.csv", "out.csv"]
    frame = pd.DataFrame({"path": ["a"]})
    assert file_state(frame) is None
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        file_state(table.with_name("gone.csv"))


def test_mutant_a_state_that_never_changes_is_caught(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "file_state", lambda source: (0,))
    state = files.file_state(table)
    write_csv(table, [*ROWS, ("a", 0)])
    quiet(table, table.with_name("late.csv"), job([0, 1, 5]), state=state)
    assert table.with_name("late.csv").exists()


@pytest.mark.parametrize("name", ["o" * 251 + ".csv", "é" * 125 + ".csv", "😀" * 62 + ".csv"])
def test_a_name_as_long_as_names_can_be(table: Path, name: str) -> None:
    quiet(table, table.with_name(name), job([0, 1, 5], TINY))
    assert names(table.parent) == sorted(["in.csv", name])


def test_a_table_without_the_secret_is_not_passed_over(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", 0), ("b", 1)], "S,x")
    with pytest.warns(OutsidePromiseWarning, match="the secret column 's' is not in the table, so"):
        release_file(table, tmp_path / "out.csv", job([0, 1], TINY))
    with pytest.raises(InputError, match="'s' cannot be kept, nor 'S'"):
        release_file(table, tmp_path / "late.csv", job([0, 1], TINY), keep=["S"])


def test_an_existing_output_needs_force(table: Path) -> None:
    out = table.with_name("out.csv")
    out.write_text("precious")
    with pytest.raises(InputError, match=r"exists already; .*--force"):
        release_file(table, out, job([0, 1, 5]))
    assert out.read_text() == "precious"
    quiet(table, out, job([0, 1, 5], TINY), force=True)
    assert out.read_text().startswith("x\n0\n")


def test_an_output_that_appears_meanwhile_is_kept(table: Path) -> None:
    out = table.with_name("out.csv")

    def meddle(done: int, total: int | None) -> None:
        if total is not None:
            out.write_text("precious")

    with pytest.raises(InputError, match="exists already"):
        quiet(table, out, job([0, 1, 5]), progress=meddle)
    assert out.read_text() == "precious"
    assert names(table.parent) == ["in.csv", "out.csv"]


def no_links(*arguments: Any) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_where_links_are_unknown(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", no_links)
    quiet(table, table.with_name("out.csv"), job([0, 1, 5]))
    assert names(table.parent) == ["in.csv", "out.csv"]


def kept_to_the_last_moment(path: Path) -> bool:
    """Whether a file is kept that appears when nobody looks any more."""
    with atomic.PendingFile(path) as pending:
        path.write_text("precious")
        with pytest.MonkeyPatch.context() as blind:
            blind.setattr(Path, "exists", lambda self: False)
            with contextlib.suppress(InputError):
                pending.publish()
    return path.read_text() == "precious"


@pytest.mark.parametrize("links", [True, False])
def test_without_force_nothing_is_ever_replaced(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    assert kept_to_the_last_moment(tmp_path / "out")
    (tmp_path / "new").mkdir()
    with atomic.PendingFile(tmp_path / "new" / "out") as one:
        with atomic.PendingFile(tmp_path / "new" / "out") as two:
            one.file.write(b"one")
            one.publish()
            with pytest.raises(InputError, match="exists already"):
                two.publish()
        assert one.target.read_bytes() == b"one"
    assert names(tmp_path / "new") == ["out"]


def test_mutant_looking_before_replacing_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_and_replace(self: atomic.PendingFile) -> None:
        if self.target.exists():
            raise InputError("exists already")
        os.replace(self._temporary, self.target)

    monkeypatch.setattr(atomic.PendingFile, "_name_once", look_and_replace)
    assert not kept_to_the_last_moment(tmp_path / "out")


def test_with_force_a_folder_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with atomic.PendingFile(target, force=True) as pending:
        target.mkdir()
        with pytest.raises(InputError, match="it is a folder"):
            pending.publish()
    assert names(tmp_path) == ["out"]


def test_a_name_that_was_claimed_in_vain_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match=r"cannot write .*out: Input/output error"):
        atomic.write_whole(tmp_path / "out", b"x")
    assert names(tmp_path) == []


def test_the_folder_is_written_to_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    atomic.write_whole(tmp_path / "out", b"x")
    assert synced == [False, True]


def test_an_output_behind_a_link_is_replaced_there(table: Path, tmp_path: Path) -> None:
    real = tmp_path / "sub" / "real.csv"
    real.parent.mkdir()
    (tmp_path / "link.csv").symlink_to(real)
    quiet(table, tmp_path / "link.csv", job([0, 1, 5], TINY))
    assert (tmp_path / "link.csv").is_symlink()
    assert real.read_text().startswith("x\n0\n")


def test_the_mode_is_that_of_any_new_file(table: Path) -> None:
    plain = table.with_name("plain")
    plain.touch()
    quiet(table, table.with_name("out.csv"), job([0, 1, 5]))
    assert table.with_name("out.csv").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize(
    "out, message",
    [
        ("out.xlsx", r"must end in \.csv, \.tsv, \.csv\.gz, \.tsv\.gz or \.parquet"),
        ("out", "must end in"),
        (".csv", "must end in"),
        ("no/out.csv", "the folder .*no does not exist"),
        ("folder.csv", "it is a folder"),
        ("pipe.csv", "not a plain file"),
        ("in.csv/out.csv", "does not exist"),
        ("x" * 300 + ".csv", "cannot write .*x.csv: File name too long"),
    ],
)
def test_outputs_that_cannot_be(table: Path, out: str, message: str) -> None:
    (table.parent / "folder.csv").mkdir()
    os.mkfifo(table.parent / "pipe.csv")
    with pytest.raises(InputError, match=message) as caught:
        quiet(table, table.parent / out, job([0, 1, 5]), force=True)
    assert "\n" not in str(caught.value)
    assert names(table.parent) == ["folder.csv", "in.csv", "pipe.csv"]


def test_a_folder_without_permission(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # an administrator may write anywhere
    with pytest.raises(InputError, match=r"cannot write .*out.csv: Permission denied; nothing"):
        quiet(table, table.with_name("out.csv"), job([0, 1, 5]))
    assert names(table.parent) == ["in.csv"]


@pytest.mark.parametrize(
    "source, message",
    [
        ("im.csv", "no file .*did you mean 'in.csv'"),
        (".", "is a folder"),
    ],
)
def test_inputs_that_cannot_be(table: Path, source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release_file(table.parent / source, table.with_name("out.csv"), job([0, 1, 5]))


@pytest.mark.parametrize("failing", ["draw", "sink", "progress"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(28, "No space left")])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_whatever_fails_leaves_nothing(
    table: Path, failing: str, error: Any, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = table.with_name(f"out.{ending}")
    out.write_text("precious")

    def fail(*arguments: Any) -> None:
        if failing != "progress" or arguments[-1] is not None:
            raise error

    if failing == "draw":
        monkeypatch.setattr(Releaser, "draw", fail)
    if failing == "sink":
        real = files.open_sink

        def broken(*arguments: Any) -> Any:
            sink: Any = real(*arguments)
            sink.write = fail
            return sink

        monkeypatch.setattr(files, "open_sink", broken)
    expected = InputError if failing == "sink" and isinstance(error, OSError) else error
    with pytest.raises(expected if isinstance(expected, type) else OSError) as caught:
        quiet(
            table, out, job([0, 1, 5]), force=True,
            progress=fail if failing == "progress" else None,
        )  # fmt: skip
    if expected is InputError:
        assert str(caught.value) == f"cannot write {out}: No space left; nothing was written"
    assert out.read_text() == "precious"
    assert names(table.parent) == ["in.csv", f"out.{ending}"]


def changing(table: Path, text: str) -> Iterator[Any]:
    def meddle(done: int, total: int | None) -> None:
        if total is not None:
            table.write_text(text)

    yield meddle


@pytest.mark.parametrize(
    "text", ["s,x\na,0\nb,5\n", "s,x\na,5\nb,5\n,1\nc,1\na,\nb,0\n", "s,x\n" + "a,0\n" * 9]
)
def test_a_table_that_changes_while_it_is_written(table: Path, text: str) -> None:
    (meddle,) = changing(table, text)
    with pytest.raises(InputError, match="changed while it was read; nothing was written"):
        quiet(table, table.with_name("out.csv"), job([0, 1, 5]), progress=meddle)
    assert names(table.parent) == ["in.csv"]


def test_a_table_that_changes_before_it_is_written(table: Path) -> None:
    def meddle(done: int, total: int | None) -> None:
        if total is None:
            table.write_text("s,x\na,77\n")

    with pytest.raises(InputError, match=r"data row 1 of .* is outside the support, which"):
        quiet(table, table.with_name("out.csv"), job([0, 1, 5]), progress=meddle)
    assert names(table.parent) == ["in.csv"]


def test_mutant_written_under_the_real_name_is_caught(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def early() -> bool:
        seen = []
        out = table.with_name("out.csv")
        quiet(
            table, out, job([0, 1, 5]), force=True,
            progress=lambda done, total: seen.append(out.exists()),
        )  # fmt: skip
        out.unlink()
        return any(seen)

    assert not early()
    enter = atomic.PendingFile.__enter__

    def careless(self: atomic.PendingFile) -> atomic.PendingFile:
        self.target.touch()
        return enter(self)

    monkeypatch.setattr(atomic.PendingFile, "__enter__", careless)
    assert early()


# Options.


def test_progress_counts_rows(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", 0), ("b", "")] * 50_000)
    calls: list[tuple[int, int | None]] = []
    quiet(table, tmp_path / "out.csv", job([0, 1]), progress=lambda *call: calls.append(call))
    first = [done for done, total in calls if total is None]
    second = [done for done, total in calls if total is not None]
    assert first == sorted(first)
    assert second == sorted(second)
    assert first[-1] == second[-1] == 100_000
    assert {total for _, total in calls} == {None, 100_000}
    assert calls == [(d, None) for d in first] + [(d, 100_000) for d in second]


def test_a_seeded_file_says_that_it_is_a_test(table: Path) -> None:
    for name in ("out.csv", "te-st.csv"):
        with pytest.raises(InputError, match="must contain 'test'"):
            release_file(table, table.with_name(name), job([0, 1, 5]), seed=1)
    table.with_name("test-link.csv").symlink_to(table.with_name("real.csv"))
    with pytest.raises(InputError, match=r"must contain 'test', but real\.csv was given"):
        release_file(table, table.with_name("test-link.csv"), job([0, 1, 5]), seed=1)
    assert not table.with_name("real.csv").exists()
    texts = []
    for name in ("test1.csv", "my-TEST.csv"):
        with pytest.warns(SeededWarning):
            report = quiet(table, table.with_name(name), job([0, 1, 5], 99.0), seed=1)
        assert report.seeded
        texts.append(table.with_name(name).read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"scale": 0.0}, "--allow-unchanged"),
        ({"bounds": ("0.5", 2)}, "multiples of 1"),
    ],
)
def test_refused_before_anything_is_read(table: Path, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release_file(table, table.with_name("out.csv"), job([0, 1, 5], **options))
    with pytest.raises(InputError, match="secret column 's' cannot be kept"):
        release_file(table, table.with_name("out.csv"), job([0, 1, 5]), keep=["s"])
    assert names(table.parent) == ["in.csv"]


def test_a_report_that_loses_rows_is_refused() -> None:
    with pytest.raises(PufferfishError, match="rows were lost"):
        ReleaseReport("t", None, "x", (), DiscreteLaplace(1.0, Fraction(1)), 3, 1)
