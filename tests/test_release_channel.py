# SPDX-License-Identifier: Apache-2.0
"""Releasing through a channel: its outputs and nothing else, from its own law, in every format."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import pufferfish as pf
from pufferfish.errors import InputError, OutsidePromiseWarning, SeededWarning, UnchangedWarning
from pufferfish.mechanisms import Channel
from pufferfish.rationals import float_down
from pufferfish.release import (
    ReleaseReport,
    ReleaseSpec,
    arrays,
    release_any,
    release_array,
    release_file,
    release_frame_with_report,
)
from pufferfish.release.channel import ChannelDrawing
from pufferfish.release.releaser import Releaser
from pufferfish.sampling import seeded_entropy
from pufferfish.support import Lattice, Levels, Support, make_lattice
from pufferfish.tables import make_rules
from pufferfish.tables.source import BATCH_ROWS
from release_cases import channel_job, level_job, write_csv

LEAST_P = 1e-9
JOBS = Levels(("Private", "Self, not inc", "Without-pay"))
ORDERED = Levels(("low", "mid", "high"), ordered=True)
ROWS = [[7, 2, 1], [3, 5, 2], [0, 1, 3]]
KEEPING = np.identity(3, dtype=int).tolist()
BIT = make_lattice([Fraction(0), Fraction(1)])
HALVES = make_lattice([Fraction(0), Fraction(1, 2), Fraction(1)])


def quiet(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def cells(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    return {n: c.to_list() for n, c in nw.from_native(frame).to_dict(as_series=True).items()}


def numbered(support: Support, values: Any) -> Any:
    """Positions of released values among the names, or among the numbers, of a support."""
    if isinstance(support, Lattice):
        return np.searchsorted([float(v) for v in support.values], np.asarray(values, dtype=float))
    place = {name: k for k, name in enumerate(support.names)}
    return np.array([place[value] for value in values])


def law_p(atoms: Any, outputs: Any, channel: Channel) -> float:
    """p-value of a chi-square test of positions drawn for positions; 0 for an impossible one."""
    shape = channel.inputs.size, channel.outputs.size
    seen = np.bincount(atoms * shape[1] + outputs, minlength=shape[0] * shape[1]).reshape(shape)
    expected = seen.sum(axis=1, keepdims=True) * channel.matrix
    if np.any(seen[expected == 0]):
        return 0.0
    # Thin cells of a row are put together, so that the approximation holds.
    statistic, freedom = 0.0, 0
    for row, law in zip(seen, expected, strict=True):
        thick = law >= 20
        pairs = [*zip(row[thick], law[thick], strict=True), (row[~thick].sum(), law[~thick].sum())]
        pairs = [(o, e) for o, e in pairs if e > 0]
        statistic += sum((o - e) ** 2 / e for o, e in pairs)
        freedom += len(pairs) - 1
    return float(stats.chi2.sf(statistic, freedom))


def sure_job(support: Support, rows: Any, outputs: Support | None = None, **o: Any) -> ReleaseSpec:
    """A release that leaves nothing to chance, as was allowed."""
    return channel_job(support, rows, outputs, allow_unchanged=True, **o)


readable = pytest.mark.filterwarnings("ignore::pufferfish.errors.UnchangedWarning")

# The law of what is released.


def released_law(tmp_path: Path, spec: ReleaseSpec, values: Sequence[Any]) -> dict[str, float]:
    """p-values of the law of an array and of a file, both of more rows than are drawn at once."""
    channel: Any = spec.mechanism
    atoms = np.random.default_rng(5).integers(0, len(values), 300_000)
    drawn = quiet(release_array, np.array(values)[atoms], spec, seed=11)
    found = {"array": law_p(atoms, numbered(channel.outputs, drawn), channel)}
    some = atoms[: BATCH_ROWS + 30_000]
    frame = pl.DataFrame({"s": ["a"] * len(some), "x": np.array(values)[some]})
    frame.write_csv(tmp_path / "in.csv")
    quiet(release_file, tmp_path / "in.csv", tmp_path / "test.csv", spec, seed=12, force=True)
    back = pl.read_csv(tmp_path / "test.csv")["x"].to_list()
    found["file"] = law_p(some, numbered(channel.outputs, back), channel)
    return found


CASES = [
    (channel_job(JOBS, ROWS), JOBS.names),
    (channel_job(ORDERED, ROWS), ORDERED.names),
    (channel_job(BIT, [[60, 30, 10], [11, 31, 58]], HALVES), (0, 1)),
]


@pytest.mark.parametrize("spec, values", CASES, ids=["levels", "ordered", "numbers"])
def test_the_law_of_released_values(
    tmp_path: Path, spec: ReleaseSpec, values: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert min(released_law(tmp_path, spec, values).values()) > LEAST_P
    # A channel with one entry 20 % off is another one, and so is one whose rows are exchanged.
    assert isinstance(spec.mechanism, Channel)
    rows = spec.mechanism.rows * 100
    for change in (lambda r: r[0].__setitem__(0, r[0][0] * 8 // 10), lambda r: r.reverse()):
        off = rows.tolist()
        change(off)
        mutant = Channel.of(spec.mechanism.inputs, spec.mechanism.outputs, off)
        with monkeypatch.context() as patch:
            patch.setattr(ChannelDrawing, "draw", _drawing_from(mutant))
            assert max(released_law(tmp_path, spec, values).values()) < LEAST_P


def _drawing_from(other: Channel) -> Any:
    def draw(self: Any, atoms: Any, entropy: Any = None) -> Any:
        drawn = other.draw(atoms, entropy)
        return drawn if self._units is None else self._units[drawn]

    return draw


def test_mutant_names_in_another_order_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, values = CASES[1]
    made = Releaser.__init__

    def sorted_names(self: Any, given: ReleaseSpec) -> None:
        made(self, given)
        self.levels = Levels(tuple(sorted(self.levels.names)))

    monkeypatch.setattr(Releaser, "__init__", sorted_names)
    assert max(released_law(tmp_path, spec, values).values()) < LEAST_P


def test_batches_share_nothing() -> None:
    uniform = channel_job(JOBS, [[1, 1, 1]] * 3)
    drawn = numbered(JOBS, release_array(["Private"] * 2 * arrays._CHUNK, uniform))
    for step in (1, BATCH_ROWS, 1 << 17, arrays._CHUNK):
        same = np.count_nonzero(drawn[:-step] == drawn[step:])
        assert abs(same / (len(drawn) - step) - 1 / 3) < 0.01


def test_forked_processes_never_share_draws() -> None:
    program = """
import os, sys
sys.path.insert(0, sys.argv[1])
from release_cases import channel_job
from pufferfish.release import release_array
from pufferfish.support import Levels
spec = channel_job(Levels(("a", "b")), [[1, 1], [1, 1]])
answers = [release_array(["a"] * 200, spec).tolist()]  # its table is made before the fork
for _ in range(3):
    out, into = os.pipe()
    if os.fork() == 0:
        os.write(into, repr(release_array(["a"] * 200, spec).tolist()).encode())
        os._exit(0)
    os.wait()
    answers.append(eval(os.read(out, 100_000)))
assert len({tuple(a) for a in answers}) == 4, answers
"""
    command = [sys.executable, "-W", "ignore", "-c", program, __file__.rpartition("/")[0]]
    subprocess.run(command, check=True, timeout=300)


# One answer, whatever the table is kept in.

FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda rows: pd.DataFrame(rows, index=range(9, 9 + len(rows["x"]))),
    "pandas-category": lambda rows: pd.DataFrame(rows).astype({"x": "category"}),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "arrow": pa.table,
    "arrow-dictionary": lambda rows: pa.table(
        {"s": rows["s"], "x": pa.array(rows["x"]).dictionary_encode()}
    ),
}


def everywhere(folder: Path, spec: ReleaseSpec, values: list[Any]) -> dict[str, list[Any]]:
    """Seeded releases of one column (None: missing) from and into everything."""
    rows = {"s": ["ab"[k % 2] for k in range(len(values))], "x": values}
    found = {}
    for name, make in FRAMES.items():
        if not (name.endswith(("category", "dictionary")) and isinstance(spec.support, Lattice)):
            found[name] = cells(quiet(release_any, make(rows), spec, seed=3))["x"]
    folder.mkdir()
    frame = pl.DataFrame(rows)
    frame.write_csv(folder / "in.csv")
    frame.write_csv(folder / "in.tsv", separator="\t")
    frame.write_parquet(folder / "in.parquet")
    for source in ("csv", "tsv", "parquet"):
        for ending in ("csv", "tsv.gz", "parquet"):
            out = folder / f"test-{source}.{ending}"
            quiet(release_file, folder / f"in.{source}", out, spec, seed=3)
            tabbed = "\t" if ending == "tsv.gz" else ","
            parquet = ending == "parquet"
            back = pl.read_parquet(out) if parquet else pl.read_csv(out, separator=tabbed)
            found[out.name] = back["x"].to_list()
    there = [value for value in values if value is not None]
    found["list"] = quiet(release_array, there, spec, seed=3).tolist()
    for name, series in {"pandas": pd.Series, "polars": pl.Series}.items():
        found[f"{name}-series"] = quiet(release_any, series(there), spec, seed=3).to_list()
    return found


@pytest.mark.parametrize("spec, values", CASES, ids=["levels", "ordered", "numbers"])
def test_everything_gives_the_same(
    tmp_path: Path, spec: ReleaseSpec, values: Sequence[Any]
) -> None:
    atoms = np.random.default_rng(2).integers(0, len(values), 2000)
    column = [None if k % 17 == 0 else values[x] for k, x in enumerate(atoms)]
    answers = everywhere(tmp_path / "t", spec, column)
    assert isinstance(spec.mechanism, Channel)
    outputs = spec.mechanism.outputs
    kept = np.array([x for k, x in enumerate(atoms) if k % 17])
    drawn = spec.mechanism.draw(kept, seeded_entropy(3))
    published = outputs.names if isinstance(outputs, Levels) else [float(v) for v in outputs.values]
    expected = [published[y] for y in drawn.tolist()]
    assert set(expected) == set(published)
    for name, answer in answers.items():
        assert answer == expected, name
    # Another order of the draws, or other draws, would have been noticed.
    assert quiet(release_array, [values[0]] * len(kept), spec, seed=3).tolist() != expected


def test_types_in_every_library() -> None:
    spec, _ = CASES[0]
    rows = {"s": ["a", "b"], "x": [JOBS.names[0], JOBS.names[1]]}
    for name in ("pandas", "polars", "arrow"):
        released = quiet(release_any, FRAMES[name](rows), spec)
        assert nw.from_native(released)["x"].dtype == nw.String
    assert release_any(pl.Series(rows["x"]), spec).dtype == pl.String
    assert release_array(rows["x"], spec).dtype.kind == "U"
    for outputs, kind in ((HALVES, "f"), (make_lattice([Fraction(v) for v in (-1, 0, 3)]), "i")):
        numbers = channel_job(BIT, [[1, 1, 1]] * 2, outputs)
        assert release_array([0, 1], numbers).dtype.kind == kind
        assert release_any(pl.DataFrame({"s": ["a"], "x": [1]}), numbers)["x"].dtype == (
            pl.Float64 if kind == "f" else pl.Int64
        )


def test_long_names_take_the_room_of_a_reference_in_a_dataframe() -> None:
    long = Levels(("a" * 500, "b" * 500))
    releaser = Releaser(channel_job(long, [[1, 1], [1, 1]]))
    column = releaser.column(releaser.draw(np.zeros(1000, dtype=np.int64)))
    assert column.nbytes <= 8 * 1000
    assert set(column.tolist()) == set(long.names)


# What is published: levels by their names, numbers exactly.


def test_ordered_levels_are_published_by_name() -> None:
    values = list(ORDERED.names) * 20
    through = release_array(values, channel_job(ORDERED, ROWS))
    assert set(through.tolist()) <= set(ORDERED.names)
    codes = release_array(values, level_job(ORDERED.names, 1e-3))  # noise publishes codes
    assert codes.dtype == np.int64


@readable
def test_ordered_levels_with_outputs_between_them() -> None:
    between = make_lattice([Fraction(k, 2) for k in range(5)])
    rows = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]
    released = release_array(ORDERED.names, sure_job(ORDERED, rows, between))
    assert released.tolist() == [0.0, 0.5, 1.5]
    back = sure_job(ORDERED, rows, between, round=True, bounds=(0, 1))
    assert release_array(ORDERED.names, back).tolist() == ["low", "low", "mid"]  # ties to even


def test_levels_may_become_other_levels() -> None:
    merged = Levels(("blue", "white"))
    released = release_array(JOBS.names, channel_job(JOBS, [[0, 1], [0, 1], [1, 0]], merged))
    assert released.tolist() == ["white", "white", "blue"]


@readable
def test_names_that_need_care_in_text(tmp_path: Path) -> None:
    odd = Levels((' "quoted"', "=1+1", "a,b", "né"))
    table = pl.DataFrame({"s": ["a"] * 4, "x": odd.names})
    spec = sure_job(odd, [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
    spec = sure_job(odd, spec.mechanism.rows, rules=None)
    assert release_array(odd.names[1:], spec).tolist() == ["a,b", "=1+1", ' "quoted"']
    table = pl.DataFrame({"s": ["a"] * 3, "x": odd.names[1:]})
    named = sure_job(odd, spec.mechanism.rows)
    quiet(release_file, table, tmp_path / "o.csv", named)
    assert (tmp_path / "o.csv").read_text("utf-8") == 'x\n"a,b"\n\'=1+1\n" ""quoted"""\n'
    quiet(release_file, table, tmp_path / "o.parquet", named)
    assert pq.read_table(tmp_path / "o.parquet")["x"].to_pylist() == ["a,b", "=1+1", ' "quoted"']


@readable
def test_fine_outputs_are_exact_decimals(tmp_path: Path) -> None:
    fine = make_lattice([Fraction(k, 10) for k in range(11)])
    rows = [[0] * 3 + [1] + [0] * 7, [0] * 7 + [1] + [0] * 3]
    table = write_csv(tmp_path / "in.csv", [("a", 0), ("b", 1)])
    spec = sure_job(BIT, rows, fine)
    release_file(table, tmp_path / "o.csv", spec)
    assert (tmp_path / "o.csv").read_text() == "x\n0.3\n0.7\n"
    release_file(table, tmp_path / "o.parquet", spec)
    assert pq.read_table(tmp_path / "o.parquet")["x"].to_pylist() == [0.3, 0.7]
    assert release_array([0, 1], sure_job(BIT, rows, fine, round=True)).tolist() == [0, 1]
    assert release_array([0, 1], sure_job(BIT, rows, fine, bounds=("0.5", 1))).tolist() == [
        0.5, 0.7
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"multiples of 0\.1"):
        release_array([0, 1], sure_job(BIT, rows, fine, bounds=("0.55", 1)))


@readable
def test_integers_above_2_to_53_stay_integers(tmp_path: Path) -> None:
    large = make_lattice([Fraction(2**53), Fraction(2**53 + 1)])
    spec = sure_job(large, [[0, 1], [1, 0]])
    assert release_array([2**53, 2**53 + 1], spec).tolist() == [2**53 + 1, 2**53]
    table = write_csv(tmp_path / "in.csv", [("a", 2**53), ("b", 2**53 + 1)])
    release_file(table, tmp_path / "o.csv", spec)
    assert (tmp_path / "o.csv").read_text() == f"x\n{2**53 + 1}\n{2**53}\n"


# What is refused, with nothing written.

WIDE = Lattice(Fraction(1), 2**63 - 1, np.array([0, 1]))
REFUSED: list[tuple[Callable[[], ReleaseSpec], str]] = [
    (
        lambda: channel_job(JOBS, ROWS, min_scale=2),
        "--min-scale .* but a channel has no scale; .* a smaller epsilon",
    ),
    (
        lambda: channel_job(BIT, [[2, 1], [1, 2]], min_scale=2),
        "--min-scale .* but a channel has no scale",
    ),
    (
        lambda: channel_job(JOBS, ROWS, round=True),
        r"--round \(round\) is for numbers, but this channel publishes levels",
    ),
    (
        lambda: channel_job(ORDERED, ROWS, round=True, bounds=(0, 2)),
        "--round .* publishes levels, and every released value is one of them already",
    ),
    (
        lambda: channel_job(JOBS, ROWS, bounds=(0, 2)),
        r"--bounds \(bounds\) is for numbers, but this channel publishes levels",
    ),
    (
        lambda: channel_job(JOBS, KEEPING),
        r"published unchanged; .* --allow-unchanged \(allow_unchanged=True\)$",
    ),
    (lambda: channel_job(BIT, [[1, 1], [1, 1]], WIDE), "64 bits"),
    (
        lambda: _other(Levels(("Private", "Self, not inc", "Unpaid"))),
        "inputs are Private, .*Unpaid and the support is Private, .*Without-pay$",
    ),
    (lambda: _other(Levels(JOBS.names, ordered=True)), "in this order and the support is"),
    (lambda: _other(Levels(JOBS.names[::-1])), "inputs are Without-pay, .* the support is Private"),
]


def _other(inputs: Levels) -> ReleaseSpec:
    spec = channel_job(JOBS, ROWS)
    return ReleaseSpec(JOBS, spec.rules, Channel.of(inputs, inputs, ROWS))


@pytest.mark.parametrize("make, message", REFUSED)
def test_refusals(tmp_path: Path, make: Callable[[], ReleaseSpec], message: str) -> None:
    spec = make()
    values = [spec.support.name(0)]
    frame = pl.DataFrame({"s": ["a"], "x": values})
    calls: list[Callable[[], Any]] = [
        lambda: release_array(values, spec),
        lambda: release_any(frame, spec),
        lambda: release_any(pl.Series(values), spec),
        lambda: release_file(frame, tmp_path / "out.csv", spec),
    ]
    for call in calls:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert names(tmp_path) == []


def test_mutant_inputs_that_are_not_the_support_release_other_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reverse = Levels(JOBS.names[::-1])
    spec = ReleaseSpec(JOBS, None, Channel.of(reverse, reverse, KEEPING))
    with pytest.raises(InputError, match="only the values that it was made for"):
        release_array(["Private"], spec)
    monkeypatch.setattr(Levels, "same_as", lambda self, other: True)
    assert quiet(release_array, ["Private"], _allowed(spec)).tolist() == ["Without-pay"]


def _allowed(spec: ReleaseSpec) -> ReleaseSpec:
    return ReleaseSpec(spec.support, spec.rules, spec.mechanism, allow_unchanged=True)


@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 4)])
def test_another_lattice_is_another_support(step: Fraction) -> None:
    support = make_lattice([Fraction(0), Fraction(1)], Fraction(1, 2))
    inputs = make_lattice([Fraction(0), Fraction(1)], step)
    spec = ReleaseSpec(support, None, Channel.of(inputs, inputs, [[1, 1], [1, 1]]))
    with pytest.raises(InputError, match="only the values that it was made for"):
        Releaser(spec)


def test_unchanged_needs_consent_and_warns(tmp_path: Path) -> None:
    numbers = channel_job(BIT, [[4, 0, 0], [0, 0, 9]], HALVES)
    for spec in (channel_job(JOBS, KEEPING), channel_job(ORDERED, KEEPING), numbers):
        with pytest.raises(InputError, match="published unchanged") as caught:
            Releaser(spec)
        assert "scale" not in str(caught.value)
        with pytest.warns(UnchangedWarning, match="^the channel keeps every value: the column is"):
            releaser = Releaser(_allowed(spec))
        size = spec.support.size
        drawn = releaser.numpy(releaser.draw(np.arange(size)))
        assert [str(Fraction(v) if v != str(v) else v) for v in drawn.tolist()] == [
            spec.support.name(k) for k in range(size)
        ]
    table = write_csv(tmp_path / "in.csv", [("a", "low"), ("b", "high")])
    with pytest.warns(UnchangedWarning):
        release_file(table, tmp_path / "out.csv", _allowed(channel_job(ORDERED, KEEPING)))
    assert (tmp_path / "out.csv").read_text() == "x\nlow\nhigh\n"


@pytest.mark.parametrize("rows", [[[1, 0, 0], [0, 1, 0], [0, 1, 10**30]], KEEPING[::-1]])
def test_what_changes_something_is_not_unchanged(rows: Any) -> None:
    Releaser(channel_job(JOBS, rows))  # would warn


@readable
def test_values_outside_the_support(tmp_path: Path) -> None:
    swap = [[0, 1], [1, 0]]
    with pytest.raises(InputError, match=r"outside the support, which goes from 0 to 1; clamp"):
        release_array([0, 9], sure_job(BIT, swap))
    with pytest.warns(OutsidePromiseWarning, match="2 released values were not in the support"):
        clamped = release_array([-5, 9, 1], sure_job(BIT, swap, out_of_support="clamp"))
    assert clamped.tolist() == [1, 0, 0]
    table = write_csv(tmp_path / "in.csv", [("a", "Private"), ("b", "private")])
    for choice, end in (("refuse", ""), ("clamp", "; levels cannot be clamped, .*")):
        with pytest.raises(InputError, match=rf"data row 2 of .* is none of the levels{end}$"):
            release_file(
                table, tmp_path / "out.csv", channel_job(JOBS, ROWS, out_of_support=choice)
            )
    with pytest.raises(InputError, match=r"position 1 .* is missing, and an array keeps"):
        release_array(["Private", None], channel_job(JOBS, ROWS))
    assert names(tmp_path) == ["in.csv"]


def test_a_seeded_file_says_that_it_is_a_test(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", "low"), ("b", "high")])
    spec = channel_job(ORDERED, ROWS)
    with pytest.raises(InputError, match="must contain 'test'"):
        release_file(table, tmp_path / "out.csv", spec, seed=1)
    with pytest.warns(SeededWarning, match="for tests only"):
        assert release_file(table, tmp_path / "test.csv", spec, seed=1).seeded
    with pytest.warns(SeededWarning, match="for tests only"):
        release_array(["low"], spec, seed=1)
    assert names(tmp_path) == ["in.csv", "test.csv"]


# Where the rows went.


def test_every_row_is_accounted_for(tmp_path: Path) -> None:
    rows = [("a", "low"), ("b", "high"), ("", "mid"), ("c", "low"), ("a", ""), ("b", "low")]
    table = write_csv(tmp_path / "in.csv", rows)
    spec = channel_job(ORDERED, ROWS)
    with pytest.warns(OutsidePromiseWarning, match="2 released rows are outside the promise"):
        report = release_file(table, tmp_path / "out.csv", spec)
    assert report == ReleaseReport(
        source=str(table),
        output=str(tmp_path / "out.csv"),
        column="x",
        keep=(),
        mechanism=spec.mechanism,
        rows_read=6,
        rows_released=5,
        set_aside=(("no public value", 1),),
        outside_promise=(("no secret value", 1), ("secret in no pair", 1)),
        keep_rate=float_down(Fraction(3 * 7 + 5, 50) + Fraction(3, 20)),
    )
    released = (tmp_path / "out.csv").read_text().split()
    assert len(released) == 6
    assert set(released[1:]) <= set(ORDERED.names)
    first, second, *more = report.lines()
    assert first.endswith("in.csv: column 'x' released through " + spec.mechanism.describe())
    assert first.partition(" released ")[2].startswith("through a channel from 3 levels to 3 ")
    assert second == "rows read 6, released 5, set aside 1"
    assert "expected share of the released rows kept as they are: 67.0 %" in more
    _, in_frame = quiet(release_frame_with_report, pl.read_csv(table), spec)
    assert (in_frame.rows_read, in_frame.rows_released, in_frame.set_aside) == (
        6, 5, (("no public value", 1),)
    )  # fmt: skip
    assert in_frame.mechanism is spec.mechanism


@readable
def test_kept_columns_stay_with_their_rows() -> None:
    frame = pl.DataFrame({"s": list("abab"), "x": ["low", None, "mid", "high"], "k": [1, 2, 3, 4]})
    spec = sure_job(ORDERED, [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    with pytest.warns(OutsidePromiseWarning, match="no longer protected|left out"):
        released = release_any(frame, spec, keep=["k"])
    assert cells(released) == {"x": ["mid", "high", "low"], "k": [1, 3, 4]}


def test_nothing_to_release(tmp_path: Path) -> None:
    spec = channel_job(JOBS, ROWS)
    empty = pl.DataFrame({"s": [], "x": []}, schema={"s": pl.String, "x": pl.String})
    assert cells(release_any(empty, spec)) == {"x": []}
    assert release_array([], spec).tolist() == []
    release_file(empty, tmp_path / "o.parquet", spec)
    assert pq.read_schema(tmp_path / "o.parquet").field("x").type == pa.string()


# Missing as a level of its own.


def missing_job() -> ReleaseSpec:
    """A channel that keeps missing values, and turns the two others into one another."""
    rules = make_rules(
        secret="s", public="x", levels=["no", "yes"], missing=["?"], missing_as_level=True
    )
    assert rules.missing_level is not None
    support = Levels(("no", "yes", rules.missing_level))
    return sure_job(support, [[0, 1, 0], [1, 0, 0], [0, 0, 1]], rules=rules)


@readable
def test_where_missing_is_a_level_nothing_is_left_out(tmp_path: Path) -> None:
    spec = missing_job()
    frame = pl.DataFrame({"s": list("abab"), "x": ["no", None, " ? ", "yes"], "k": [1, 2, 3, 4]})
    released, report = release_frame_with_report(frame, spec)  # warns of nothing
    expected = ["yes", "(missing)", "(missing)", "no"]
    assert cells(released) == {"x": expected}
    assert (report.rows_read, report.rows_released, report.set_aside) == (4, 4, ())
    assert cells(quiet(release_any, frame, spec, keep=["k"])) == {"x": expected, "k": [1, 2, 3, 4]}
    frame.write_csv(tmp_path / "in.csv")
    assert release_file(tmp_path / "in.csv", tmp_path / "out.csv", spec).rows_set_aside == 0
    assert (tmp_path / "out.csv").read_text().split() == ["x", *expected]
    pandas = pd.Series(["no", None, "?", "yes"])
    masked = np.ma.array(["no", "garbage", "?", "yes"], mask=[False, True, False, False])
    objects = pandas.astype(object).where(pandas.notna(), None).to_numpy()
    for values in (pandas, objects, frame["x"], ["no", None, "?", "yes"], masked):
        assert list(release_any(values, spec)) == expected


def test_the_name_of_the_missing_level_is_no_value(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "in.csv", [("a", "no"), ("b", "(missing)")])
    with pytest.raises(InputError, match=r"data row 2 of .* the name of the level of missing"):
        release_file(table, tmp_path / "out.csv", missing_job())
    assert names(tmp_path) == ["in.csv"]


def test_a_plan_that_was_saved_releases_levels(tmp_path: Path) -> None:
    prior = pf.Prior.from_mapping(
        {"a": {"u": ".6", "v": ".2", "w": ".2"}, "b": {"u": ".2", "v": ".2", "w": ".6"}}
    )
    plan = pf.calibrate(prior, "0.5", "channel")
    plan.save(tmp_path / "plan.json")
    loaded = pf.Plan.load(tmp_path / "plan.json").with_columns("x", "s")
    frame = pl.DataFrame({"s": ["a", "b"] * 1000, "x": ["u", "w"] * 1000})
    with pytest.warns(SeededWarning):
        one = plan.with_columns("x", "s").release(frame, seed=4)
    with pytest.warns(SeededWarning):
        assert one.equals(loaded.release(frame, seed=4))
    assert set(one["x"]) <= {"u", "v", "w"}
    assert one.columns == ["x"]


def off_by(plan: pf.Plan, counts: np.ndarray, seed: int) -> float:
    """How far a release moves the frequencies at most, in its own standard errors."""
    channel = plan.channel
    assert channel is not None
    names = np.array(channel.inputs.names)
    released = plan.release(np.repeat(names, counts), seed=seed)
    found = np.array([(released == name).sum() for name in names])
    matrix = channel.matrix
    errors = np.sqrt(counts @ (matrix * (1 - matrix)))
    return float(np.abs((found - counts)[errors > 0] / errors[errors > 0]).max())


@pytest.mark.filterwarnings("ignore::pufferfish.errors.SeededWarning")
def test_invariant_channels_keep_frequencies_in_a_release() -> None:
    table = {"a": [4000, 2500, 1500, 300], "b": [1500, 3500, 1000, 700]}
    prior = pf.Prior.from_counts(table, support=["north", "east", "south", "west"])
    counts = np.array(list(table.values())).sum(axis=0)[
        np.argsort(["north", "east", "south", "west"])
    ]
    plan = pf.calibrate(prior, "0.4", invariant=True)
    assert plan.distortion is not None
    assert plan.distortion.conditions == ("invariant",)
    assert all(off_by(plan, counts, seed) < 5 for seed in range(20))
    # Mutant: the cheapest channel, which moves them.
    assert all(off_by(pf.calibrate(prior, "0.4"), counts, seed) > 5 for seed in range(3))
