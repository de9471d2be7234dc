# SPDX-License-Identifier: Apache-2.0
"""Releasing dataframes: the same kind comes back, with the released column and nothing else."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pufferfish as pf
from pufferfish.errors import (
    InputError,
    OutsidePromiseWarning,
    PufferfishWarning,
    SeededWarning,
    UnchangedWarning,
)
from pufferfish.release import (
    files,
    frames,
    release_any,
    release_file,
    release_frame,
    release_frame_with_report,
)
from pufferfish.release import rows as release_rows
from pufferfish.tables import make_rules
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


NOT_COUNTED = (
    "^the secret column 's' is not in the table, so rows outside the promise were not counted$"
)


@pytest.mark.parametrize("other", [{}, {"S": ["a", "b"]}])
def test_without_a_secret_column_nothing_is_counted(other: dict[str, Any]) -> None:
    frame = pl.DataFrame({"x": [0, 1], **other})
    with pytest.warns(OutsidePromiseWarning, match=NOT_COUNTED):
        released, report = release_frame_with_report(frame, job([0, 1], 1e-3))
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
    frame = pl.DataFrame({"s": ["a", "b"], "x": [0.25, 0.75]})
    assert release_any(frame, job([".25", ".75"], 1e-3))["x"].dtype == pl.Float64
    levels = level_job(["lo", "hi"], 1e-3, round=True, bounds=(0, 1))
    assert release_any(pl.DataFrame({"s": ["a", "b"], "x": ["hi", "lo"]}), levels)[
        "x"
    ].to_list() == ["hi", "lo"]


@pytest.mark.parametrize(
    "keep, message",
    [
        (["s"], "the secret column 's' cannot be kept"),
        ([" s "], "the secret column 's' cannot be kept"),
        (["S"], "the secret column 's' cannot be kept, nor 'S', which is the same name"),
        (["\uff53\u00a0"], "the secret column 's' cannot be kept, nor"),
        ("x", "the public column 'x' cannot be kept"),
        (["kk"], "no column 'kk'.*did you mean 'k'"),
    ],
)
def test_columns_that_cannot_be_kept(keep: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release_frame(pl.DataFrame(ROWS), job([0, 1, 5]), keep=keep)


def keeps_a_renamed_secret(name: str) -> bool:
    frame = pl.DataFrame({"strasse": ["a"], "x": [0], name: ["a"]})
    spec = job([0, 1], rules=make_rules(secret="strasse", public="x"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsidePromiseWarning)
            release_frame(frame, spec, keep=[name])
    except InputError as error:
        return "the secret column 'strasse' cannot be kept, nor" not in str(error)
    return True


def test_a_renamed_secret_cannot_be_kept() -> None:
    assert not any(map(keeps_a_renamed_secret, ("Straße", "STRASSE", "\uff33trasse")))


def test_mutant_names_compared_as_they_are_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_rows, "_folded", str.strip)
    assert keeps_a_renamed_secret("Straße")


def kept_without_the_secret(tmp_path: Path) -> list[str]:
    """What comes out of a table that lacks the secret column, where columns are to be kept."""
    frame = pl.DataFrame({"diagnosis ": ["a", "b"], "x": [0, 1], "k": [5, 6]})
    frame.write_csv(tmp_path / "in.csv")
    spec = job([0, 1], 1e-3, rules=make_rules(secret="diagnose", public="x"))
    said = []
    calls: list[Callable[[str], Any]] = [
        lambda name: release_file(tmp_path / "in.csv", tmp_path / "out.csv", spec, [name]),
        lambda name: release_file(frame, tmp_path / "out.csv", spec, [name]),
        lambda name: release_any(frame, spec, [name]),
        lambda name: release_any(frame.lazy(), spec, [name]),
        lambda name: release_any(frame.to_pandas(), spec, [name]),
    ]
    for call in calls:
        for name in ("diagnosis", "k"):
            try:
                call(name)
                said.append("kept")
            except InputError as error:
                said.append(str(error))
    return said


def test_nothing_is_kept_of_a_table_without_the_secret_column(tmp_path: Path) -> None:
    """Any column might be the secret under another name: a name was mistyped, or was changed."""
    for text in kept_without_the_secret(tmp_path):
        assert text.startswith("the secret column 'diagnose' is not in ")
        assert " (did you mean 'diagnosis'?), so no column can be kept: " in text
        assert text.endswith("leave out --keep (keep=[...]); the other columns are diagnosis, k")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    # Without kept columns a warning is all that there is.
    spec = job([0, 1], 1e-3, rules=make_rules(secret="diagnose", public="x"))
    with pytest.warns(OutsidePromiseWarning, match="'diagnose' is not in the table, so rows outs"):
        released = release_any(pl.read_csv(tmp_path / "in.csv"), spec)
    assert released.columns == ["x"]


def test_mutant_a_secret_that_is_not_there_is_taken_as_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = release_rows.choose_columns

    def trusting(table: Any, rules: Any, keep: Any) -> Any:
        found = real(table, rules, ())
        order = [c for c in table.columns if c == found.public or c in keep]
        return replace(found, keep=tuple(keep), written=tuple(order))

    for module in (frames, files):
        monkeypatch.setattr(module, "choose_columns", trusting)
    monkeypatch.setattr(frames, "warn_about_promise", lambda *_: None)
    monkeypatch.setattr(files, "warn_about_promise", lambda *_: None)
    assert "kept" in kept_without_the_secret(tmp_path)


@pytest.mark.parametrize("rows, text", [(1, "1 released value was"), (3, "3 released values were")])
def test_clamped_rows_are_outside_the_promise(rows: int, text: str) -> None:
    spec = job([0, 1], 1e-3, out_of_support="clamp")
    frame = pl.DataFrame({"s": ["a"] * (rows + 1), "x": [0] + [7] * rows})
    for values in (frame, frame["x"], frame["x"].to_list()):
        with pytest.warns(OutsidePromiseWarning) as caught:
            release_any(values, spec)
        assert [str(w.message) for w in caught] == [
            f"{text} not in the support and moved to the nearest value of it; the prior gives such "
            "values probability 0, so the guarantee does not cover these rows"
        ]


def test_refused_cells_are_named_by_row() -> None:
    frame = pd.DataFrame({"s": ["a", "b"], "x": [0, 77]})
    with pytest.raises(
        InputError, match="data row 2 of the pandas dataframe, column 'x', is outside"
    ):
        release_any(frame, job([0, 1]))
    with pytest.raises(InputError, match="no column 'x'"):
        release_any(pd.DataFrame({"y": [0]}), job([0, 1]))
    with pytest.raises(InputError, match="no column is named"):
        release_any(frame, job([0, 1], rules=None))


def test_spaces_around_names_and_an_empty_frame() -> None:
    frame = pd.DataFrame({" x ": [0, 1], "s": ["a", "b"]})
    assert columns(release_any(frame, job([0, 1], 1e-3))) == {" x ": [0, 1]}
    empty = pl.DataFrame({"s": [], "x": []}, schema={"s": pl.String, "x": pl.Int64})
    assert columns(release_any(empty, job([0]))) == {"x": []}


def test_a_seed_warns() -> None:
    frame = pl.DataFrame({"s": ["a", "b"] * 20, "x": [0, 1] * 20})
    with pytest.warns(SeededWarning):
        one = release_frame(frame, job([0, 1], 9.0), seed=3)
    with pytest.warns(SeededWarning):
        two = release_frame(frame, job([0, 1], 9.0), seed=3)
    assert one.equals(two)


def test_warnings_point_at_the_line_that_called(tmp_path: Path) -> None:
    plan = pf.calibrate(pf.Prior.from_mapping({"a": {0: 1}, "b": {0: 1}}), 1).with_columns("x", "s")
    frame = pl.DataFrame({"s": ["a", "c", "a"], "x": [0, 0, None], "k": [1, 2, 3]})
    spec = plan.release_spec(allow_unchanged=True)
    kinds = [OutsidePromiseWarning, SeededWarning, UnchangedWarning]
    calls: list[Callable[[], Any]] = [
        lambda: plan.release(frame, keep=["k"], allow_unchanged=True, seed=1),
        lambda: release_frame(frame, spec, keep=["k"], seed=1),
        lambda: release_frame_with_report(frame, spec, keep=["k"], seed=1),
        lambda: release_file(frame, tmp_path / "test.csv", spec, keep=["k"], seed=1),
        lambda: plan.release([0, 0], allow_unchanged=True, seed=1),
        lambda: plan.release(pl.Series([0, 0]), allow_unchanged=True, seed=1),
    ]
    for number, call in enumerate(calls):
        with pytest.warns(PufferfishWarning) as caught:
            call()
        assert {w.category for w in caught} == set(kinds if number < 4 else kinds[1:])
        assert {(w.filename, w.lineno) for w in caught} == {
            (__file__, call.__code__.co_firstlineno)
        }


def test_nothing_is_kept_where_the_secret_column_is_not_known() -> None:
    """A plan from a given prior names no column: any kept one might be the secret."""
    prior = pf.Prior.from_mapping({"a": {0: ".6", 1: ".4"}, "b": {0: ".4", 1: ".6"}})
    plan = pf.calibrate(prior, 0.2)
    frame = pd.DataFrame({"x": [0, 1], "who": ["a", "b"], "k": [1, 2]})
    with pytest.raises(InputError, match="secret column is named"):
        plan.with_columns("x").release(frame, keep=["who"])
    with pytest.warns(OutsidePromiseWarning):
        kept = plan.with_columns("x", secret="who").release(frame, keep=["k"])
    assert list(kept.columns) == ["x", "k"]
