# SPDX-License-Identifier: Apache-2.0
"""Releasing dataframes: the same kind comes back, with the released column and nothing else."""

import warnings
from collections.abc import Callable
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pufferfish.errors import InputError, OutsidePromiseWarning, SeededWarning
from pufferfish.release import release_any, release_frame, release_frame_with_report
from release_cases import job, level_job

ROWS = {"s": ["a", "b", "a", "c", None], "x": [0, 5, None, 1, 0], "k": ["u", "v", "w", "y", "z"]}
FRAMES: list[Callable[[Any], Any]] = [
    lambda rows: pd.DataFrame(rows, index=list("pqrst")),
    lambda rows: pd.DataFrame(rows).convert_dtypes(),
    pl.DataFrame,
    pa.table,
]
NAMES = ["pandas", "pandas-nullable", "polars", "pyarrow"]


def columns(frame: Any) -> dict[str, list[Any]]:
    return {n: c.to_list() for n, c in nw.from_native(frame).to_dict(as_series=True).items()}


@pytest.mark.parametrize("make", FRAMES, ids=NAMES)
def test_only_the_released_column_comes_back(make: Callable[[Any], Any]) -> None:
    frame = make(ROWS)
    with pytest.warns(OutsidePromiseWarning) as caught:
        released = release_any(frame, job([0, 1, 5], 1e-3))
    assert type(released) is type(frame)
    assert columns(released) == {"x": [0, 5, 1, 0]}
    assert nw.from_native(released)["x"].dtype == nw.Int64
    texts = sorted(str(w.message) for w in caught)
    assert texts[0].startswith("1 row was left out (no public value); which rows are left out")
    assert texts[1] == (
        "2 released rows are outside the promise (no secret value: 1, secret in no pair: 1)"
    )
    if isinstance(released, pd.DataFrame):
        assert list(released.index) == [0, 1, 2, 3]


@pytest.mark.parametrize("make", FRAMES, ids=NAMES)
def test_kept_columns_stay_with_their_rows(make: Callable[[Any], Any]) -> None:
    with pytest.warns(OutsidePromiseWarning) as caught:
        released = release_frame(make(ROWS), job([0, 1, 5], 1e-3), keep=["k"])
    assert columns(released) == {"x": [0, 5, 1, 0], "k": ["u", "v", "y", "z"]}
    assert any("no longer protected" in str(w.message) for w in caught)


def test_lazy_frames_stay_lazy() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = release_any(pl.LazyFrame(ROWS), job([0, 1, 5], 1e-3), keep=["k"])
        assert isinstance(released, pl.LazyFrame)
        assert columns(released.collect())["x"] == [0, 5, 1, 0]


def test_the_report_counts_every_row() -> None:
    with pytest.warns(OutsidePromiseWarning, match="2 released rows"):
        _, report = release_frame_with_report(pl.DataFrame(ROWS), job([0, 1, 5]))
    assert (report.rows_read, report.rows_released, report.rows_set_aside) == (5, 4, 1)
    assert report.set_aside == (("no public value", 1),)
    assert report.outside_promise == (("no secret value", 1), ("secret in no pair", 1))
    assert report.rows_outside_promise == 2
    assert "rows read 5, released 4, set aside 1" in report.lines()


@pytest.mark.filterwarnings("ignore::pufferfish.errors.OutsidePromiseWarning")
def test_without_a_secret_column_nothing_is_counted() -> None:
    released, report = release_frame_with_report(pl.DataFrame({"x": [0, 1]}), job([0, 1], 1e-3))
    assert columns(released) == {"x": [0, 1]}
    assert report.outside_promise is None
    assert report.rows_outside_promise is None


def test_integers_above_2_to_53_beside_a_blank() -> None:
    least = 2**53
    frame = pd.DataFrame({"s": list("abb"), "x": pd.array([least, least + 1, None], "Int64")})
    with pytest.warns(OutsidePromiseWarning, match="left out"):
        released = release_any(frame, job([least, least + 1], 1e-3))
    assert released["x"].tolist() == [least, least + 1]
    assert released["x"].dtype == "int64"


def test_fractions_come_as_doubles_and_levels_as_text() -> None:
    frame = pl.DataFrame({"x": [0.25, 0.75]})
    assert release_any(frame, job([".25", ".75"], 1e-3))["x"].dtype == pl.Float64
    levels = level_job(["lo", "hi"], 1e-3, round=True, bounds=(0, 1))
    assert release_any(pl.DataFrame({"x": ["hi", "lo"]}), levels)["x"].to_list() == ["hi", "lo"]


@pytest.mark.parametrize(
    "keep, message",
    [
        (["s"], "the secret column 's' cannot be kept"),
        ([" s "], "the secret column 's' cannot be kept"),
        ("x", "the public column 'x' cannot be kept"),
        (["kk"], "no column 'kk'.*did you mean 'k'"),
    ],
)
def test_columns_that_cannot_be_kept(keep: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release_frame(pl.DataFrame(ROWS), job([0, 1, 5]), keep=keep)


def test_refused_cells_are_named_by_row() -> None:
    frame = pd.DataFrame({"s": ["a", "b"], "x": [0, 77]})
    with pytest.raises(InputError, match="row 2 of the pandas dataframe, column 'x', is outside"):
        release_any(frame, job([0, 1]))
    with pytest.raises(InputError, match="no column 'x'"):
        release_any(pd.DataFrame({"y": [0]}), job([0, 1]))
    with pytest.raises(InputError, match="no column is named"):
        release_any(frame, job([0, 1], rules=None))


def test_spaces_around_names_and_an_empty_frame() -> None:
    frame = pd.DataFrame({" x ": [0, 1], "s": ["a", "b"]})
    assert columns(release_any(frame, job([0, 1], 1e-3))) == {" x ": [0, 1]}
    assert columns(release_any(pl.DataFrame({"x": pl.Series([], dtype=pl.Int64)}), job([0]))) == {
        "x": []
    }


def test_a_seed_warns() -> None:
    frame = pl.DataFrame({"x": [0, 1] * 20})
    with pytest.warns(SeededWarning):
        one = release_frame(frame, job([0, 1], 9.0), seed=3)
    with pytest.warns(SeededWarning):
        two = release_frame(frame, job([0, 1], 9.0), seed=3)
    assert one.equals(two)
