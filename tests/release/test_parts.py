# SPDX-License-Identifier: Apache-2.0
"""Releasing in parts: each row once, of one version, or nothing (test_workers.py kills workers)."""

import json
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from pufferfish.errors import InputError, OutsidePromiseWarning, UnchangedWarning
from pufferfish.release import parts as release_parts
from pufferfish.release.pipeline import release_file
from release_cases import JOBS, channel_job, job, names

pytestmark = [
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning"),
    pytest.mark.filterwarnings("ignore::pufferfish.errors.OutsidePromiseWarning"),
]
TINY = 1e-3  # a scale at which no noise ever comes
ROWS = pd.DataFrame(
    {"k": range(24), "s": list("abca") * 6, "x": [0, 1, 5, None] * 3 + [None] * 6 + [1, 0] * 3}
)


@pytest.fixture(autouse=True, params=["synchronous"])
def scheduler(request: pytest.FixtureRequest) -> Any:
    with dask.config.set(scheduler=request.param):
        yield


def cut(rows: pd.DataFrame, parts: int = 4, change: Callable[..., Any] | None = None) -> Any:
    """A Dask dataframe of so many partitions, each changed when it is computed."""
    frame = dd.from_pandas(rows, npartitions=parts, sort=False)
    if change is None:
        return frame
    # Dask takes functions of one text for one another, whatever they remember.
    return frame.map_partitions(change, meta=rows, token=secrets.token_hex(8))


def read(folder: Path) -> dict[str, list[Any]]:
    """The rows of a folder of parts, in the order of their names."""
    whole: dict[str, list[Any]] = {}
    for name in names(folder):
        for column, cells in pq.read_table(folder / name).to_pydict().items():
            whole.setdefault(column, []).extend(cells)
    return whole


def refused(frame: Any, folder: Path, spec: Any, keep: Any = (), **options: Any) -> str:
    """The one line with which a release is refused; it leaves the folder as it was."""
    before = names(folder)
    with pytest.raises(InputError) as caught:
        release_file(frame, folder / "out.parquet", spec, keep, **options)
    assert names(folder) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"], indirect=True)
@pytest.mark.parametrize("count", [1, 4, 11])
def test_parts_are_the_release_of_one_file(tmp_path: Path, count: int) -> None:
    out, one = tmp_path / "out.parquet", tmp_path / "one.parquet"
    spec = job([0, 1, 5], TINY)
    with pytest.warns(OutsidePromiseWarning) as caught:
        report = release_file(cut(ROWS, count), out, spec, ["k"])
    kinds = [w.category for w in caught if w.category is not FutureWarning]
    assert kinds == [OutsidePromiseWarning] * 2  # not of every task
    expected = release_file(ROWS, one, spec, ["k"])
    assert {**vars(report), "source": 0, "output": 0} == {
        **vars(expected),
        "source": 0,
        "output": 0,
    }
    assert (report.source, report.rows_read, report.set_aside) == ("the dask dataframe", 24, 9)
    assert read(out) == pq.read_table(one).to_pydict()
    # Partitions of which no row is released give no part.
    assert names(out) == [f"part-{k:05}.parquet" for k in range({1: 1, 4: 3, 11: 8}[count])]
    assert names(tmp_path) == ["one.parquet", "out.parquet"]


def test_a_table_without_rows_is_a_part_without_rows(tmp_path: Path) -> None:
    for k, rows in enumerate((ROWS[:0], ROWS[12:18])):
        report = release_file(cut(rows, 2), tmp_path / f"{k}.parquet", job([0, 1, 5]))
        assert (report.rows_read, report.rows_released) == (len(rows), 0)
        assert read(tmp_path / f"{k}.parquet") == {"x": []}


def test_nothing_is_replaced(tmp_path: Path) -> None:
    out, spec, frame = tmp_path / "out.parquet", job([0, 1, 5]), cut(ROWS)
    release_file(frame, out, spec)
    assert refused(frame, tmp_path, spec) == f"cannot write {out}: it is a folder"
    assert "a new NAME.parquet only" in refused(frame, tmp_path, spec, force=True)
    (tmp_path / "plain.parquet").touch()
    with pytest.raises(InputError, match="exists already"):
        release_file(frame, tmp_path / "plain.parquet", spec)


def test_a_name_that_is_taken_meanwhile(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"

    def taking(rows: pd.DataFrame) -> pd.DataFrame:
        out.mkdir(exist_ok=True)
        return rows

    with pytest.raises(InputError, match="it is a folder"):
        release_file(cut(ROWS, change=taking), out, job([0, 1, 5]))
    assert names(tmp_path) == ["out.parquet"]
    assert names(out) == []


@pytest.mark.parametrize(
    "options, message",
    [
        ({"seed": 1}, "the dask dataframe is released as a new NAME.parquet only, without a seed"),
        ({"spec": job([0, 1, 5], unit="k", rows_per_person=(1,))}, "by no plan with a unit"),
        ({"keep": ["s"]}, "the secret column 's' cannot be kept"),
        ({"keep": ["kk"]}, "did you mean 'k'"),
        ({"spec": job([0, 1, 5], 0.0)}, "the scale is 0"),
    ],
)
def test_what_needs_no_row_is_refused_before_any_is_read(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    def computed(rows: pd.DataFrame) -> pd.DataFrame:
        pytest.fail("a row was read")

    frame = cut(ROWS, change=computed)
    assert message in refused(frame, tmp_path, **({"spec": job([0, 1, 5])} | options))
    with pytest.raises(InputError, match=r"is released as a new NAME\.parquet only"):
        release_file(frame, tmp_path / "out.csv", job([0, 1, 5]))


def test_errors_are_one_line_without_cells(tmp_path: Path) -> None:
    text = refused(cut(ROWS), tmp_path, job([0, 1]))
    assert text.startswith("part 1 of 4: data row 3 of the dask dataframe, column 'x', is outside")

    def failing(rows: pd.DataFrame) -> pd.DataFrame:
        raise ValueError("cell 17")

    text = refused(cut(ROWS, change=failing), tmp_path, job([0, 1, 5]))
    assert text.startswith("the dask dataframe could not be computed (ValueError: see the log")
    pieces = [dask.delayed(ROWS), dask.delayed(ROWS.assign(k=0.5))]
    text = refused(dd.from_delayed(pieces, verify_meta=False), tmp_path, job([0, 1, 5]), ["k"])
    assert text.startswith("kept columns of the dask dataframe have different types")


@pytest.mark.parametrize("keep", [(), ("k",)])
@pytest.mark.parametrize("column", ["k", "s", "x"])
def test_a_frame_that_changes_is_refused(
    tmp_path: Path, column: str, keep: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed again it has a row twice, in the place of another."""
    seen: list[int] = []

    def unsteady(rows: pd.DataFrame) -> pd.DataFrame:
        seen.append(len(rows))
        twice = rows[column].iloc[[1, *range(1, len(rows))]].to_numpy()
        return rows.assign(**{column: twice}) if len(seen) > 4 else rows

    spec = job([0, 1, 5])
    if column != "k" or keep:
        text = refused(cut(ROWS, change=unsteady), tmp_path, spec, keep)
        assert "changed while it was read, or is not the same each time" in text
        # Mutant: all rows have the same words.
        seen.clear()
        monkeypatch.setattr(
            release_parts, "row_words", lambda _, rows: np.zeros((len(rows), 3), dtype=np.uint64)
        )
    # Columns that are not read may change.
    release_file(cut(ROWS, change=unsteady), tmp_path / "out.parquet", spec, keep)
    assert len(seen) == 8


def test_of_two_attempts_one_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt, written = release_parts._task, []

    def twice(*given: Any) -> str:
        first = attempt(*given[:-1], list(given[-1]))
        second = attempt(*given[:-1], list(given[-1]))
        written.extend(json.loads(each)["file"] for each in (first, second) if given[-2])
        return second

    monkeypatch.setattr(release_parts, "_task", twice)
    out = tmp_path / "out.parquet"
    release_file(cut(ROWS), out, job([0, 1, 5], 1e9), ["k"])
    assert len(set(written)) == 8
    ids = ROWS["k"][ROWS["x"].notna()].to_list()
    assert read(out)["k"] == ids
    assert len(set(read(out)["x"])) == len(ids)  # no noise twice, in no two partitions

    # Mutant: whatever lies in the folder is published.
    publish = release_parts.publish_parts
    monkeypatch.setattr(release_parts, "publish_parts", lambda folder, _, *rest: publish(
        folder, [path.name for path in folder.iterdir()], *rest
    ))  # fmt: skip
    release_file(cut(ROWS), tmp_path / "new.parquet", job([0, 1, 5], 1e9), ["k"])
    assert sorted(read(tmp_path / "new.parquet")["k"]) == sorted(2 * ids)


def test_a_part_alone_may_be_unchanged(tmp_path: Path) -> None:
    first, second, third = JOBS.names
    spec = channel_job(JOBS, [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    rows = pd.DataFrame({"s": list("ab"), "x": [first, second]})
    release_file(cut(rows, 2), tmp_path / "out.parquet", spec)
    assert read(tmp_path / "out.parquet") == {"x": [first, first]}
    shutil.rmtree(tmp_path / "out.parquet")
    rows = pd.DataFrame({"s": list("ab"), "x": [first, third]})
    assert "published unchanged" in refused(cut(rows, 2), tmp_path, spec)
    allowed = channel_job(JOBS, spec.mechanism.rows, allow_unchanged=True)
    with pytest.warns(UnchangedWarning):
        assert release_file(cut(rows, 2), tmp_path / "new.parquet", allowed).unchanged
