# SPDX-License-Identifier: Apache-2.0
"""Releasing sets of values and their labels: both laws, in every format, and what needs consent."""

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from noise_checks import law_p
from pufferfish.errors import InputError, OutsidePromiseWarning, UnchangedWarning
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.release.pipeline import release_any, release_file
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import Levels, Support, make_lattice
from release_cases import channel_job, names, spec_of
from set_cases import sets_and_labels

LEAST_P = 1e-9
#: A comma, a formula and a blank in the names of levels; numbers with a step of 1/2.
AWKWARD = Levels(("=1+1", "a, b", "né"))
ORDERED = Levels(("low", "mid", "high"), ordered=True)
HALVES = make_lattice([Fraction(0), Fraction(1, 2), Fraction(2)])
SUPPORTS = [(AWKWARD, AWKWARD.names), (ORDERED, ORDERED.names), (HALVES, (0.0, 0.5, 2.0))]


def set_job(support: Support, **options: Any) -> ReleaseSpec:
    channel, labels = sets_and_labels(support)
    return spec_of(support, channel, **({"labels": labels} | options))


def quiet(function: Any, *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def cells(frame: Any) -> dict[str, list[Any]]:
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    return {n: c.to_list() for n, c in nw.from_native(frame).to_dict(as_series=True).items()}


@pytest.mark.parametrize("support, values", SUPPORTS, ids=["levels", "ordered", "numbers"])
def test_sets_come_from_the_channel_and_labels_from_the_sets(support: Support, values: Any) -> None:
    spec = set_job(support)
    channel, labels = spec.mechanism, spec.labels
    assert isinstance(channel, Channel)
    assert labels is not None
    atoms = np.random.default_rng(5).integers(0, 3, 150_000)  # more than are drawn at once
    shown, sets = release_any(np.array(values)[atoms], spec, sets=True)

    def fits(drawn: Any, row: Any, outputs: Any) -> bool:
        law = {y: float(p) for y, p in zip(outputs, row, strict=True) if p}
        return law_p(drawn.tolist(), law) > LEAST_P

    names_of_sets = labels.inputs.names
    for x in range(3):
        assert fits(sets[atoms == x], channel.matrix[x], names_of_sets)
        assert not fits(sets[atoms == x], channel.matrix[x - 1], names_of_sets)
        for s, name in enumerate(names_of_sets):  # given its set, a label tells nothing of x
            drawn = shown[(atoms == x) & (sets == name)]
            assert fits(drawn, labels.matrix[s], values)
            assert not fits(drawn, labels.matrix[s - 1], values)


@pytest.mark.parametrize("support, values", SUPPORTS, ids=["levels", "ordered", "numbers"])
def test_everything_gives_the_same(tmp_path: Path, support: Support, values: Any) -> None:
    """Arrays, frames and files hold what the draws say: the set first, then its label."""
    spec, entropy = set_job(support), seeded_entropy(3)
    assert isinstance(spec.mechanism, Channel)
    assert spec.labels is not None
    atoms = np.random.default_rng(2).integers(0, 3, 500)
    kept = np.array([x for k, x in enumerate(atoms) if k % 17])
    drawn = spec.mechanism.draw(kept, entropy)
    expected = [values[y] for y in spec.labels.draw(drawn, entropy).tolist()]
    sets = [spec.mechanism.outputs.name(s) for s in drawn.tolist()]
    column = [None if k % 17 == 0 else values[x] for k, x in enumerate(atoms)]
    frame = pl.DataFrame({
        "k": [str(k) for k in range(500)], "x": column, "s": ["ab"[k % 2] for k in range(500)],
        "l": [k / 2 for k in range(500)],
    })  # fmt: skip
    rest = frame.filter(pl.col("x").is_not_null())
    only = set_job(support, labels_only=True)
    for form in (frame, frame.lazy(), frame.to_arrow(), frame.to_pandas()):
        found = quiet(release_any, form, spec, seed=3)
        assert type(found) is type(form)
        assert list(cells(found).items()) == [("x", expected), ("x (set)", sets)]
        found = cells(quiet(release_any, form, spec, ["l", "k"], seed=3))
        assert list(found) == ["k", "x", "x (set)", "l"]
        assert found["x (set)"] == sets
        assert [found["k"], found["l"]] == [rest["k"].to_list(), rest["l"].to_list()]
        assert cells(quiet(release_any, form, only, seed=3)) == {"x": expected}
    there = rest["x"]
    for array in (there.to_list(), there, there.to_pandas()):
        assert list(quiet(release_any, array, spec, seed=3)) == expected
        both = quiet(release_any, array, spec, seed=3, sets=True)
        assert [list(each) for each in both] == [expected, sets]
    assert [each.name for each in quiet(release_any, there, spec, sets=True)] == ["x", "x (set)"]
    nameless = quiet(release_any, pd.Series(there.to_list()), spec, sets=True)
    assert [each.name for each in nameless] == [None, None]
    frame.write_parquet(tmp_path / "in.parquet")
    for ending in ("csv", "tsv", "csv.gz", "parquet"):
        out = tmp_path / f"test.{ending}"
        report = quiet(release_file, tmp_path / "in.parquet", out, spec, ["k"], seed=3)
        assert (report.column, report.set_column, report.rows_released) == ("x", "x (set)", 470)
        separator = "\t" if "tsv" in ending else ","
        back = (pl.read_parquet(out) if ending == "parquet"
                else pl.read_csv(out, separator=separator))  # fmt: skip
        assert back.columns == ["k", "x", "x (set)"]
        guarded = [f"'{v}" if ending != "parquet" and v == "=1+1" else v for v in expected]
        assert back["x"].to_list() == guarded
        assert back["x (set)"].to_list() == sets
        report = quiet(release_file, tmp_path / "in.parquet", out, only, seed=3, force=True)
        assert report.set_column is None
        back = (pl.read_parquet(out) if ending == "parquet"
                else pl.read_csv(out, separator=separator))  # fmt: skip
        assert back.columns == ["x"]
        assert back["x"].to_list() == guarded
    empty = frame.clear()
    for ending in ("csv", "parquet"):
        release_file(empty, tmp_path / f"none.{ending}", spec)
    assert (tmp_path / "none.csv").read_text() == "x,x (set)\n"
    assert pl.read_parquet(tmp_path / "none.parquet").columns == ["x", "x (set)"]
    assert list(cells(release_any(empty, spec))) == ["x", "x (set)"]


def test_a_column_of_the_name_of_the_sets_is_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"s": ["a"], "x (set)": ["mine"], "x": ["low"], "y": [7]})
    there = r"the sets would have the name of another column, 'x \(set\)': .* \(--labels-only"
    secret, gone = set_job(ORDERED, secret="x (set)"), frame.select("x")
    cases: list[tuple[Any, ReleaseSpec, list[str]]] = [
        (frame, set_job(ORDERED), keep) for keep in ([], ["y"], ["x (set)"])
    ]
    cases += [
        (frame.rename({"x (set)": "X (SET)"}), set_job(ORDERED), []),
        (frame, secret, ["y"]),
        (gone, secret, []),
        (gone, set_job(ORDERED, unit="X (set)", rows_per_person=(1,)), []),
    ]
    for table, spec, keep in cases:
        if spec.unit is not None:
            table = table.with_columns(pl.lit("me").alias(spec.unit))
        for call in (lambda t, s, k: release_any(t, s, k),
                     lambda t, s, k: release_file(t, tmp_path / "o.csv", s, k)):  # fmt: skip
            with pytest.raises(InputError, match=there):
                call(table, spec, keep)
    assert names(tmp_path) == []
    with pytest.warns(OutsidePromiseWarning):
        kept = release_any(frame, set_job(ORDERED, labels_only=True), ["x (set)"])
    assert cells(kept)["x (set)"] == ["mine"]
    assert cells(release_any(frame, set_job(ORDERED, labels_only=True))).keys() == {"x"}


def test_what_goes_with_labels() -> None:
    for support, _ in SUPPORTS:
        for options in ({"round": True}, {"bounds": (0, 1)}):
            with pytest.raises(InputError, match="publishes levels, and every released value is"):
                release_any([], set_job(support, **options))
    with pytest.raises(InputError, match="a channel has no scale"):
        release_any([], set_job(HALVES, min_scale=1))
    with pytest.raises(InputError, match=r"--labels-only .* is for channels that publish sets"):
        release_any([], channel_job(ORDERED, [[1] * 3] * 3, labels_only=True))
    for spec in (set_job(ORDERED, labels_only=True), spec_of(ORDERED, sets_and_labels(ORDERED)[0])):
        with pytest.raises(InputError, match="sets=True is for channels that publish sets"):
            release_any([], spec, sets=True)
    with pytest.raises(InputError, match="the labels do not fit"):
        release_any([], set_job(ORDERED, labels=sets_and_labels(AWKWARD)[1]))
    clamped = set_job(HALVES, out_of_support="clamp")
    with pytest.warns(OutsidePromiseWarning, match="moved to the nearest"):
        labels, sets = release_any([-7.0, 1.0], clamped, sets=True)
    assert set(labels) <= {0, 0.5, 2}
    assert set(sets) <= {"{0, 0.5}", "{0, 2}", "{0.5, 2}", "{*}"}


# What can be read back from sets, or from labels, needs consent.

SETS = Levels(("{p}", "{p, q}", "{q, r}", "{*}"))
THREE = Levels(("p", "q", "r"))
CERTAIN = [[0, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]]
CHANCE = [[1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]]
MERGING = [[0, 1, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]]
OWN = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]]
MIXED = [[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    "rows, label, values, by_sets, by_labels",
    [
        (CERTAIN, MIXED, "pqp", True, False),
        (CERTAIN, OWN, "pqp", True, True),
        (CHANCE, OWN, "pqp", True, True),  # two sets of p, and both are labelled p
        (CHANCE, MIXED, "pqp", False, False),
        (CERTAIN, OWN, "pqr", False, False),
        (MERGING, OWN, "pq", False, False),
        (CERTAIN, OWN, "", False, False),
    ],
)
def test_what_can_be_read_back_needs_consent(
    tmp_path: Path, rows: Any, label: Any, values: str, by_sets: bool, by_labels: bool
) -> None:
    inside = np.array(rows).T > 0  # a label is a member; where none of these is, any member
    label = np.where((inside * label).any(axis=1, keepdims=True), inside * label, inside)
    channel, labels = Channel(THREE, SETS, rows), Channel(SETS, THREE, label.astype(int))
    frame = pl.DataFrame({"s": ["a"] * len(values), "x": list(values)}, schema_overrides={"x": str})
    for labels_only, told in ((False, by_sets), (True, by_labels)):
        options: Any = {"labels": labels, "labels_only": labels_only}
        spec, allowed = (
            spec_of(THREE, channel, **options, allow_unchanged=allow) for allow in (False, True)
        )
        for call in (lambda s: release_any(list(values), s), lambda s: release_any(frame, s),
                     lambda s: release_file(frame, tmp_path / "o.csv", s, force=True)):  # fmt: skip
            if told:
                with pytest.raises(InputError, match="read back as if it were published unchanged"):
                    call(spec)
                with pytest.warns(UnchangedWarning):
                    call(allowed)
            else:
                call(spec)
