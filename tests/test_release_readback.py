# SPDX-License-Identifier: Apache-2.0
"""A column that can be read back needs consent, and the share that is kept is that of the table."""

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish.errors import InputError, PufferfishWarning, UnchangedWarning
from pufferfish.mechanisms import Channel
from pufferfish.rationals import float_down
from pufferfish.release import (
    ReleaseReport,
    ReleaseSpec,
    readback,
    release_any,
    release_array,
    release_file,
    release_frame_with_report,
)
from pufferfish.release.releaser import Releaser
from pufferfish.support import Lattice, Levels, Support, make_lattice
from pufferfish.tables import Coded
from pufferfish.tables.source import BATCH_ROWS
from release_cases import channel_job, job

THREE = Levels(("p", "q", "r"))
NUMBERS = make_lattice([Fraction(k) for k in range(3)])
HALVES = make_lattice([Fraction(k, 2) for k in range(5)])
#: The row of r hides something, but r does not occur in p, q, p.
STRUCTURAL = [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
SWAP = [[0, 1, 0], [1, 0, 0], [1, 1, 1]]
KEPT = "publishes every value that occurs in the table as it is: the column"
REPLACED = "always replaces each value that occurs in the table by one of its own: the column"


def everything(folder: Path, spec: ReleaseSpec, values: Sequence[Any]) -> dict[str, Any]:
    """All ways to release values, by name; each returns what came out, as a list."""
    rows = {"s": ["ab"[k % 2] for k in range(len(values))], "x": list(values)}
    frame = pl.DataFrame(rows)
    if not (folder / "in.csv").exists():
        frame.write_csv(folder / "in.csv")
        frame.write_parquet(folder / "in.parquet")
    out = folder / "out.parquet"

    def through(source: Any) -> Callable[[], Any]:
        def release() -> Any:
            release_file(source, out, spec, force=True)
            return pl.read_parquet(out)["x"].to_list()

        return release

    return {
        "list": lambda: release_any(list(values), spec).tolist(),
        "array": lambda: release_array(np.array(values), spec).tolist(),
        "pandas series": lambda: release_any(pd.Series(values), spec).tolist(),
        "polars series": lambda: release_any(pl.Series(values), spec).to_list(),
        "polars": lambda: release_any(frame, spec)["x"].to_list(),
        "lazy": lambda: release_any(frame.lazy(), spec).collect()["x"].to_list(),
        "pandas": lambda: release_any(pd.DataFrame(rows), spec)["x"].tolist(),
        "arrow": lambda: release_any(pa.table(rows), spec)["x"].to_pylist(),
        "csv": through(folder / "in.csv"),
        "parquet": through(folder / "in.parquet"),
        "frame to file": through(frame),
    }


def report(spec: ReleaseSpec, values: Sequence[Any]) -> ReleaseReport:
    frame = pl.DataFrame({"s": ["a"] * len(values), "x": list(values)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PufferfishWarning)
        return release_frame_with_report(frame, spec)[1]


def refused(call: Callable[[], Any]) -> str | None:
    """The message of a refusal, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PufferfishWarning)
            call()
    except InputError as error:
        return str(error)
    return None


# What can be read back.

CASES: list[tuple[str, Support, Support, Any, list[Any], list[Any], str]] = [
    ("a level that does not occur", THREE, THREE, STRUCTURAL, ["p", "q", "p"], ["p", "q", "p"],
     f"{KEPT} would be published unchanged"),
    ("two levels exchanged", THREE, THREE, SWAP, ["p", "q", "p"], ["q", "p", "q"],
     f"{REPLACED} could be read back as if it were published unchanged"),
    ("other levels", THREE, Levels(("u", "v", "w")), SWAP, ["p", "q", "p"], ["v", "u", "v"],
     f"{REPLACED} could be read back"),
    ("numbers", NUMBERS, NUMBERS, SWAP, [0, 1, 0], [1, 0, 1], f"{REPLACED} could be read back"),
    ("halves", NUMBERS, HALVES, [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [1] * 5], [0, 1, 0],
     [0.5, 1.5, 0.5], f"{REPLACED} could be read back"),
    ("one value", THREE, THREE, STRUCTURAL, ["q", "q"], ["q", "q"], f"{KEPT} would be published"),
]  # fmt: skip


@pytest.mark.parametrize(
    "inputs, outputs, rows, values, expected, message",
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_what_can_be_read_back_needs_consent(
    tmp_path: Path, inputs: Support, outputs: Support, rows: Any, values: Any, expected: Any,
    message: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    asked = channel_job(inputs, rows, outputs)
    with monkeypatch.context() as patch:
        patch.setattr(Channel, "draw", lambda *_: pytest.fail("something was drawn"))
        for name, call in everything(tmp_path, asked, values).items():
            said = refused(call)
            assert said is not None, name
            assert said.startswith(f"the channel {message}"), name
            assert said.endswith("say so with --allow-unchanged (allow_unchanged=True)"), name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "in.parquet"]
    allowed = channel_job(inputs, rows, outputs, allow_unchanged=True)
    said = message.replace("would be", "is").replace("could", "can")
    for name, call in everything(tmp_path, allowed, values).items():
        with pytest.warns(UnchangedWarning) as caught:
            assert call() == expected, name
        assert len(caught) == 1, name
        assert str(caught[0].message).startswith(f"the channel {said}"), name
    assert report(allowed, values).unchanged


NOT_READ_BACK: list[tuple[str, Any, list[str]]] = [
    ("chance", [[2, 1, 0], [0, 1, 0], [0, 0, 1]], ["p", "q", "r"]),
    ("merged", [[0, 1, 0], [0, 1, 0], [1, 1, 1]], ["p", "q"]),
    ("the level occurs", STRUCTURAL, ["p", "q", "r"]),
    ("constant", [[0, 1, 0]] * 3, ["q", "q"]),
    ("constant but for one", [[0, 1, 0], [0, 1, 0], [1, 1, 1]], ["q"]),
    ("no rows", SWAP, []),
]


@pytest.mark.parametrize(
    "rows, values", [case[1:] for case in NOT_READ_BACK], ids=[case[0] for case in NOT_READ_BACK]
)
def test_what_cannot_be_read_back_needs_none(rows: Any, values: list[str]) -> None:
    spec = channel_job(THREE, rows)
    release_array(values, spec)  # would warn
    assert not report(spec, values).unchanged


@pytest.mark.parametrize(
    "options, said",
    [({}, KEPT), ({"bounds": (0, 1)}, None), ({"bounds": (-1, 2)}, KEPT)],
)
def test_bounds_may_merge_values(options: Any, said: str | None) -> None:
    more = make_lattice([Fraction(k) for k in range(4)])
    rows = [*np.identity(4, dtype=int).tolist()[:3], [1, 1, 1, 1]]
    message = refused(lambda: release_array([0, 1, 2], channel_job(more, rows, **options)))
    assert (message is None) if said is None else (said in str(message))


def test_what_bounds_leave_certain_can_be_read_back() -> None:
    """Where chance is moved away by the bounds, none is left."""
    rows = [[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1] * 5]
    assert refused(lambda: release_array([0, 1], channel_job(NUMBERS, rows, HALVES))) is None
    spec = channel_job(NUMBERS, rows, HALVES, bounds=("1/2", "3/2"))
    assert REPLACED in str(refused(lambda: release_array([0, 1], spec)))


def test_atoms_of_every_batch_count(tmp_path: Path) -> None:
    """A value of the last batch alone decides."""
    for size in (BATCH_ROWS + 1, (1 << 18) + 1):
        values = ["p"] * (size - 1) + ["q"]
        merging = channel_job(THREE, [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
        apart = channel_job(THREE, STRUCTURAL)
        chance = channel_job(THREE, [[1, 0, 0], [1, 1, 0], [0, 0, 1]])
        frame = pl.DataFrame({"s": ["a"] * size, "x": values})
        for release in (
            lambda spec, values=values: release_array(values, spec),
            lambda spec, frame=frame: release_any(frame, spec),
            lambda spec, frame=frame: release_file(frame, tmp_path / "o.csv", spec, force=True),
        ):
            said = [refused(partial(release, spec)) for spec in (merging, apart, chance)]
            assert [text is None for text in said] == [True, False, True]


def _fails(change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a mutant lets through what needs consent, or refuses what does not."""
    with monkeypatch.context() as patch:
        change(patch)
        wrong = [
            refused(lambda c=c: release_array(c[4], channel_job(c[1], c[3], c[2]))) is None
            for c in CASES
        ]
        wrong += [
            refused(lambda r=r, v=v: release_array(v, channel_job(THREE, r))) is not None
            for _, r, v in NOT_READ_BACK
        ]
    return any(wrong)


def test_mutants_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sure, occurring = readback._sure, readback.AtomCounter.occurring

    def all_atoms(patch: pytest.MonkeyPatch) -> None:
        every = property(lambda self: list(range(self.exact.size)))
        patch.setattr(readback.AtomCounter, "occurring", every)

    def only_the_same(patch: pytest.MonkeyPatch) -> None:
        def same(channel: Channel, x: int, published: Any) -> int | None:
            found = sure(channel, x, published)
            return found if found == channel.same[x] else None

        patch.setattr(readback, "_sure", same)

    def merged_too(patch: pytest.MonkeyPatch) -> None:
        def apart(channel: Channel, x: int, published: Any) -> int | None:
            return None if sure(channel, x, published) is None else x

        patch.setattr(readback, "_sure", apart)

    def likeliest(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(readback, "_sure", lambda c, x, p: int(p[c.rows[x].argmax()]))

    def nothing(_: pytest.MonkeyPatch) -> None:
        assert isinstance(occurring, property)

    assert not _fails(nothing, monkeypatch)
    for mutant in (all_atoms, only_the_same, merged_too, likeliest):
        assert _fails(mutant, monkeypatch), mutant.__name__


# The share that is kept.


def test_the_share_is_that_of_this_table() -> None:
    rows = [[7, 2, 1], [3, 5, 2], [0, 1, 3]]
    spec = channel_job(THREE, rows)
    for values, share in (
        (["p"], Fraction(7, 10)),
        (["p", "q"], Fraction(12, 20)),
        (["r", "r", "p"], Fraction(22, 30)),
        (["q"] * 7, Fraction(1, 2)),
    ):
        found = report(spec, values)
        assert found.keep_rate == float_down(share)
        assert f"kept as they are: {int(share * 1000) / 10:.1f} %" in found.lines()[2]
    assert report(spec, []).keep_rate is None
    assert not any("share" in line for line in report(spec, []).lines())


def test_noise_keeps_no_share() -> None:
    found = report(job([0, 1]), [0, 1])
    assert (found.keep_rate, found.unchanged) == (None, False)
    assert not any("share" in line for line in found.lines())
    assert report(job([0, 1], scale=0.0, allow_unchanged=True), [0, 1]).unchanged


def test_what_is_nearly_all_is_not_shown_as_all() -> None:
    found = report(channel_job(THREE, [[10**30 - 1, 1, 0], [0, 1, 0], [0, 0, 1]]), ["p"])
    assert found.keep_rate == np.nextafter(1, 0)
    assert found.lines()[2].endswith("kept as they are: more than 99.9 %")
    allowed = channel_job(THREE, STRUCTURAL, allow_unchanged=True)
    assert report(allowed, ["p", "q"]).keep_rate == 1
    assert report(allowed, ["p", "q"]).lines()[2].endswith("kept as they are: 100.0 %")
    swapped = report(channel_job(THREE, SWAP, allow_unchanged=True), ["p", "q"])
    assert swapped.keep_rate == 0
    assert swapped.lines()[2:4] == (
        "expected share of the released rows kept as they are: 0.0 %",
        "each value is replaced by one of its own: they can be read back",
    )


def test_clamped_rows_are_not_as_they_were() -> None:
    rows = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    spec = channel_job(NUMBERS, rows, out_of_support="clamp")
    found = report(spec, [0, 2, 9, -4])
    assert found.clamped == 2
    assert found.keep_rate == float_down(Fraction(3, 8))


def test_files_and_frames_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    values = np.array(THREE.names)[rng.integers(0, 3, BATCH_ROWS + 500)].tolist()
    values[::10] = [None] * len(values[::10])
    frame = pl.DataFrame({"s": ["a"] * len(values), "x": values})
    frame.write_csv(tmp_path / "in.csv")
    spec = channel_job(THREE, [[7, 2, 1], [3, 5, 2], [0, 1, 3]])
    of_file = release_file(tmp_path / "in.csv", tmp_path / "out.csv", spec)
    counts = [values.count(name) for name in THREE.names]
    assert isinstance(spec.mechanism, Channel)
    assert of_file.keep_rate == spec.mechanism.keep_rate(counts) == report(spec, values).keep_rate
    assert of_file.rows_set_aside == len(values[::10])


def by_hand(spec: ReleaseSpec, atoms: list[int]) -> Fraction:
    """The share by going through every row and every output, in fractions."""
    channel, support = spec.mechanism, spec.support
    assert isinstance(channel, Channel)
    assert isinstance(support, Lattice)
    assert isinstance(channel.outputs, Lattice)
    total = Fraction(0)
    for x in atoms:
        for y in range(channel.outputs.size):
            value = channel.outputs.value(y)
            value = Fraction(round(value)) if spec.round else value
            if spec.bounds is not None:
                value = min(max(value, spec.bounds[0]), spec.bounds[1])
            if value == support.value(x):
                total += channel.probability(x, y)
    return total / len(atoms)


@given(st.data())
def test_the_share_after_rounding_and_bounds(data: st.DataObject) -> None:
    row = st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any)
    rows = data.draw(st.lists(row, min_size=3, max_size=3))
    options = {
        "round": data.draw(st.booleans()),
        "bounds": data.draw(st.sampled_from([None, (0, 1), (1, 2), (-3, 1)])),
    }
    spec = channel_job(NUMBERS, rows, HALVES, allow_unchanged=True, **options)
    atoms = data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=6))
    found, share = report(spec, atoms).keep_rate, by_hand(spec, atoms)
    assert found is not None
    # Every row is rounded down, far beyond what a double holds.
    assert Fraction(found) <= share <= Fraction(np.nextafter(np.nextafter(found, 2), 2))


def test_rounded_levels_are_kept_by_their_names() -> None:
    ordered = Levels(("low", "mid", "high"), ordered=True)
    rows = [[1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 3]]
    spec = channel_job(ordered, rows, HALVES, round=True, bounds=(0, 2))
    # 1.5 is rounded to 2 and 0.5 to 0.
    assert report(spec, ["low", "mid", "high"]).keep_rate == float_down(Fraction(2, 3))


# Counting.


def test_counting_is_one_pass_over_a_large_support() -> None:
    atoms = np.array([0, 999_999, 999_999, 5], dtype=np.int64)
    state = np.array([0, 0, 2, 1], dtype=np.uint8)
    large = make_lattice([Fraction(0), Fraction(999_999)], Fraction(1))
    inputs = Lattice(large.step, 0, np.arange(10**6, dtype=np.int64))
    none = readback.AtomCounter(job([0, 1]).mechanism)
    none.count(Coded(atoms, state))
    assert (none.occurring, none.rows) == ([], 0)

    class Wide(Channel):
        def __init__(self) -> None:
            object.__setattr__(self, "inputs", inputs)

    counter = readback.AtomCounter(Wide())
    for _ in range(3):
        counter.count(Coded(atoms, state))
    assert (counter.occurring, counter.rows) == ([0, 999_999], 9)
    assert (int(counter.exact[999_999]), int(counter.clamped[999_999])) == (3, 3)


def test_a_release_is_checked_by_what_it_publishes() -> None:
    releaser = Releaser(channel_job(THREE, STRUCTURAL))
    counter = readback.AtomCounter(releaser.mechanism)
    assert not readback.read_back(releaser, counter)
    counter.count(Coded(np.array([0, 1]), np.zeros(2, dtype=np.uint8)))
    assert readback.read_back(releaser, counter)
