# SPDX-License-Identifier: Apache-2.0
"""Releasing dataframes: the same kind comes back, with the released column and nothing else."""

import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pufferfish.errors import InputError, OutsidePromiseWarning
from pufferfish.release import rows as release_rows
from pufferfish.release.pipeline import release_any, release_file
from pufferfish.support import make_lattice
from pufferfish.tables.rules import Coding
from release_cases import cells, job, level_job

ROWS = {"s": ["a", "b", "a", "c", None], "x": [0, 5, None, 1, 0], "k": ["u", "v", "w", "y", "z"]}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda rows: pd.DataFrame(rows, index=list("pqrst")),
    "pandas-nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars-lazy": pl.LazyFrame,
    "pyarrow": pa.table,
}
TINY = 1e-3  # a scale at which no noise ever comes


def said(call: Callable[[], Any]) -> list[str]:
    """The warnings of a call that are about the promise."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return sorted(str(w.message) for w in caught if w.category is OutsidePromiseWarning)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("keep", [(), ("k",)])
def test_the_released_column_comes_back_and_what_is_kept(
    make: Callable[[Any], Any], keep: tuple[str, ...]
) -> None:
    frame = make(ROWS)
    with pytest.warns(OutsidePromiseWarning) as caught:
        released = release_any(frame, job([0, 1, 5], TINY), keep=keep)
    assert isinstance(released, type(frame))
    kept = {"k": ["u", "v", "y", "z"]} if keep else {}
    assert cells(released) == {"x": [0, 5, 1, 0]} | kept
    assert nw.from_native(released).collect_schema()["x"] == nw.Int64
    texts = sorted(str(w.message) for w in caught)
    assert texts[0].startswith("1 row left out (no public value); which rows are left out shows")
    assert texts[1].startswith("2 released rows with a secret that is in no pair")
    assert any("no longer protected" in text for text in texts) is bool(keep)
    if isinstance(released, pd.DataFrame):
        assert list(released.index) == [0, 1, 2, 3]


def test_warnings_point_at_the_line_that_called(tmp_path: Path) -> None:
    frame = pl.DataFrame({"s": ["a", "c", "a"], "x": [0, 0, None], "k": [1, 2, 3]})
    calls: list[Callable[[], Any]] = [
        lambda: release_any(frame, job([0], 0.0, allow_unchanged=True), keep=["k"], seed=1),
        lambda: release_any([0, 0], job([0], 0.0, allow_unchanged=True), seed=1),
        lambda: release_file(
            frame, tmp_path / "test.csv", job([0], 0.0, allow_unchanged=True), seed=1
        ),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        first = call.__code__.co_firstlineno
        assert len({w.category for w in caught}) >= 2
        assert {w.filename for w in caught} == {__file__}
        assert all(first <= w.lineno <= first + 2 for w in caught)


def test_fractions_come_as_doubles_and_levels_as_text() -> None:
    frame = pl.DataFrame({"s": ["a", "b"], "x": [0.25, 0.75]})
    assert release_any(frame, job([".25", ".75"], TINY))["x"].dtype == pl.Float64
    levels = level_job(["lo", "hi"], TINY, round=True, bounds=(0, 1))
    texts = release_any(pl.DataFrame({"s": ["a", "b"], "x": ["hi", "lo"]}), levels)
    assert texts["x"].to_list() == ["hi", "lo"]
    assert texts["x"].dtype == pl.String


@pytest.mark.parametrize(
    "keep, message",
    [
        (["s"], "the secret column 's' cannot be kept"),
        ([" S "], "the secret column 's' cannot be kept, under whatever name"),
        (["\uff53\u00a0"], "the secret column 's' cannot be kept"),
        ("x", "the public column 'x' cannot be kept"),
        (5, "must be a list of columns"),
        (["kk"], "no column 'kk'.*did you mean 'k'"),
    ],
)
def test_columns_that_cannot_be_kept(keep: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release_any(pl.DataFrame(ROWS), job([0, 1, 5]), keep=keep)


def test_a_renamed_secret_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job([0, 1], TINY, secret="strasse")
    for name in ("Straße", "STRASSE", "\uff33trasse"):
        frame = pl.DataFrame({"strasse": ["a"], "x": [0], name: ["a"]})
        with pytest.raises(InputError, match="the secret column 'strasse' cannot be kept"):
            release_any(frame, spec, keep=[name])
    # Mutant: names compared as they are.
    monkeypatch.setattr(release_rows, "_folded", str.strip)
    with pytest.warns(OutsidePromiseWarning):
        assert name in release_any(frame, spec, keep=[name]).columns


def test_nothing_is_kept_of_a_table_without_the_secret_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any column might be the secret under another name: a name was mistyped, or was changed."""
    frame = pl.DataFrame({"diagnosis ": ["a", "b"], "x": [0, 1], "k": [5, 6]})
    spec = job([0, 1], TINY, secret="diagnose")
    for name in ("diagnosis", "k"):
        with pytest.raises(InputError, match=r"no 'diagnose' in .* \(did you mean 'diagnosis'"):
            release_file(frame, tmp_path / "out.csv", spec, [name])
        with pytest.raises(InputError, match="no 'diagnose' in "):
            release_any(frame, spec, [name])
    assert list(tmp_path.iterdir()) == []
    # Where the secret column is not known, any kept one might be it.
    with pytest.raises(InputError, match="the plan names none: give --secret COL"):
        release_any(frame, job([0, 1], secret=None, protected=None), keep=["k"])
    # Without kept columns a warning is all that there is.
    with pytest.warns(OutsidePromiseWarning, match="'diagnose' is not in the table, so rows outs"):
        assert release_any(frame, spec).columns == ["x"]

    # Mutant: a secret that is not there is taken as there.
    def trusting(self: Any, table: Any, keep: Any) -> None:
        self.keep, self.written = tuple(keep), ("x", *keep)

    monkeypatch.setattr(release_rows.Reader, "_choose", trusting)
    with pytest.warns(OutsidePromiseWarning):
        assert "k" in release_any(frame, spec, ["k"]).columns


def test_names_of_columns() -> None:
    with pytest.raises(InputError, match="no column 'x'"):
        release_any(pd.DataFrame({"y": [0]}), job([0, 1]))
    with pytest.raises(InputError, match="the column 'x' twice"):
        release_any(pd.DataFrame([[0, 1, "a"]], columns=["x", "x", "s"]), job([0, 1]))
    frame = pd.DataFrame({" x ": [0, 1], "s": ["a", "b"]})
    assert cells(release_any(frame, job([0, 1], TINY))) == {" x ": [0, 1]}
    frame = pd.DataFrame({"s": ["a", "b"], "x": [0, 1], 7: ["u", "v"]})
    with pytest.warns(OutsidePromiseWarning, match="kept"):
        released = release_any(frame, job([0, 1], TINY), keep=[7])
    assert cells(released) == {"x": [0, 1], 7: ["u", "v"]}


@pytest.mark.parametrize("name", ["*", "^s$", "^.*$"])
@pytest.mark.parametrize("kind", ["polars", "polars-lazy", "pyarrow"])
def test_a_name_that_is_a_pattern_to_polars_names_one_column(kind: str, name: str) -> None:
    frame = FRAMES[kind]({"s": ["a", "b"], "x": [0, 1], name: [5, 6]})
    with pytest.warns(OutsidePromiseWarning, match="kept"):
        released = release_any(frame, job([0, 1], TINY), keep=[name])
    assert cells(released) == {"x": [0, 1], name: [5, 6]}
    coding = Coding(name, make_lattice([Fraction(5), Fraction(6)]))
    assert cells(release_any(frame, job([5, 6], TINY, coding=coding))) == {name: [5, 6]}


@pytest.mark.filterwarnings("ignore::pufferfish.errors.OutsidePromiseWarning")
def test_all_kinds_of_tables_and_of_lists_of_columns() -> None:
    table = pa.table({"s": ["a", "b"], "x": [0, 1], "k": ["u", "v"]})
    for keep in (iter(["k"]), np.array(["k"]), pd.Index(["k"])):
        released = release_any(table.to_batches()[0], job([0, 1], TINY), keep)
        assert cells(released) == {"x": [0, 1], "k": ["u", "v"]}
    for empty in (table.slice(0, 0), pd.DataFrame({"s": [], "x": [], "k": []})):
        assert cells(release_any(empty, job([0, 1], TINY), ["k"])) == {"x": [], "k": []}


# Rows of one person.

PEOPLE = {"s": list("aabcc"), "id": ["1", "1", "2", "3", "3"], "x": [0, 1, 0, 1, None]}


@pytest.mark.filterwarnings("ignore::pufferfish.errors.OutsidePromiseWarning")
def test_a_person_has_no_more_rows_than_the_plan_knows(tmp_path: Path) -> None:
    frame = pl.DataFrame(PEOPLE)

    def release(frame: Any, rows: tuple[int, ...], protected: tuple[str, ...] = ("a", "b")) -> Any:
        spec = job([0, 1], TINY, unit="id", rows_per_person=rows, protected=protected)
        release_file(frame, tmp_path / "out.csv", spec, force=True)
        return release_any(frame, spec)

    assert release(frame, (1, 2))["x"].to_list() == [0, 1, 0, 1]
    with pytest.raises(InputError, match=r"1 unit of column 'id' .* such as 2; it knows .* 1 rows"):
        release(frame, (1,))
    with pytest.raises(InputError, match="such as 1; it knows units with 2 rows"):
        release(frame, (2,))
    # Persons whose secret is in no pair may have any number; a blank is no row of theirs.
    assert release(frame, (1,), ("b", "c"))["x"].to_list() == [0, 1, 0, 1]
    with pytest.raises(InputError, match="column 'id' is missing in 1 row with a public value"):
        release(frame.with_columns(id=pl.Series(["1", "1", "2", None, None])), (1, 2))
    assert release(frame.with_columns(id=pl.Series(["1", "1", "2", "3", None])), (1, 2)).height == 4
    for nobody in ("nan", "?"):  # as in a count
        spec = job([0, 1], TINY, unit="id", rows_per_person=(1, 2), unit_missing=("?",))
        with pytest.raises(InputError, match="is missing in 1 row with"):
            release_any(frame.with_columns(id=pl.Series(["1", "1", "2", nobody, "3"])), spec)
    with pytest.raises(InputError, match="the unit column 'id' cannot be kept"):
        release_any(frame, job([0, 1], unit="id", rows_per_person=(1, 2)), keep=["ID"])
    (tmp_path / "out.csv").unlink()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::pufferfish.errors.OutsidePromiseWarning")
def test_mutant_people_that_are_not_checked_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_rows.Reader, "_check_people", lambda self: None)
    spec = job([0, 1], TINY, unit="id", rows_per_person=(1,))
    assert release_any(pl.DataFrame(PEOPLE), spec).height == 4
