# SPDX-License-Identifier: Apache-2.0
"""Releasing through a channel: its outputs and nothing else, from its own law, in every format."""

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from noise_checks import law_p
from pufferfish.errors import InputError, UnchangedWarning
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.release.pipeline import release_any, release_file
from pufferfish.release.postprocess import Postprocess
from pufferfish.release.spec import ReleaseSpec
from pufferfish.support import MISSING_LEVEL, Lattice, Levels, Support, make_lattice
from pufferfish.tables.rules import Coding
from pufferfish.tables.table import BATCH_ROWS
from release_cases import CHANNEL_ROWS, JOBS, ORDERED, cells, channel_job, names, write_csv

LEAST_P = 1e-9
BIT = make_lattice([Fraction(0), Fraction(1)])
NUMBERS = make_lattice([Fraction(k) for k in range(3)])
HALVES = make_lattice([Fraction(0), Fraction(1, 2), Fraction(1)])


def quiet(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def sure_job(support: Support, rows: Any, outputs: Support | None = None, **o: Any) -> ReleaseSpec:
    """A release that leaves nothing to chance, as was allowed."""
    return channel_job(support, rows, outputs, allow_unchanged=True, **o)


readable = pytest.mark.filterwarnings("ignore::pufferfish.errors.UnchangedWarning")

# The law of what is released.


def released_law(tmp_path: Path, spec: ReleaseSpec, values: Sequence[Any]) -> list[float]:
    """p-values of the law of an array and of a file, both of more rows than are drawn at once."""
    channel: Any = spec.mechanism
    atoms = np.random.default_rng(5).integers(0, len(values), 70_000)
    drawn = quiet(release_any, np.array(values)[atoms], spec, seed=11)
    frame = pl.DataFrame({"s": ["a"] * len(atoms), "x": np.array(values)[atoms]})
    frame.write_csv(tmp_path / "in.csv")
    quiet(release_file, tmp_path / "in.csv", tmp_path / "test.csv", spec, seed=12, force=True)
    back = pl.read_csv(tmp_path / "test.csv")["x"].to_numpy()
    found = []
    for outputs in (drawn, back):
        laws = (dict(zip(published(channel), row, strict=True)) for row in channel.matrix.tolist())
        shown = [outputs[atoms == x].tolist() for x in range(len(values))]
        found.append(min(map(law_p, shown, ({y: p for y, p in law.items() if p} for law in laws))))
    return found


def published(channel: Channel) -> list[Any]:
    """The names, or the numbers, of the outputs of a channel."""
    outputs: Any = channel.outputs
    return list(outputs.names if isinstance(outputs, Levels) else map(float, outputs.values))


CASES = [
    (channel_job(JOBS, CHANNEL_ROWS), JOBS.names),
    (channel_job(ORDERED, CHANNEL_ROWS), ORDERED.names),
    (channel_job(BIT, [[60, 30, 10], [11, 31, 58]], HALVES), (0, 1)),
]
IDS = ["levels", "ordered", "numbers"]


@pytest.mark.parametrize("spec, values", CASES, ids=IDS)
def test_the_law_of_released_values(
    tmp_path: Path, spec: ReleaseSpec, values: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert min(released_law(tmp_path, spec, values)) > LEAST_P
    # A channel with one entry 20 % off is another one, and so is one whose rows are exchanged.
    assert isinstance(spec.mechanism, Channel)
    rows = spec.mechanism.rows * 100
    right = Channel.draw
    for change in (lambda r: r[0].__setitem__(0, r[0][0] * 8 // 10), lambda r: r.reverse()):
        off = rows.tolist()
        change(off)
        mutant = Channel(spec.mechanism.inputs, spec.mechanism.outputs, off)
        with monkeypatch.context() as patch:
            patch.setattr(Channel, "draw", lambda _, a, e=None, m=mutant: right(m, a, e))
            assert max(released_law(tmp_path, spec, values)) < LEAST_P


@pytest.mark.parametrize("spec, values", CASES, ids=IDS)
def test_everything_gives_the_same(
    tmp_path: Path, spec: ReleaseSpec, values: Sequence[Any]
) -> None:
    """One answer, in the order of the draws, whatever the table is kept in."""
    atoms = np.random.default_rng(2).integers(0, len(values), 2000)
    column = [None if k % 17 == 0 else values[x] for k, x in enumerate(atoms)]
    kept = np.array([x for k, x in enumerate(atoms) if k % 17])
    channel: Any = spec.mechanism
    shown = published(channel)
    expected = [shown[y] for y in channel.draw(kept, seeded_entropy(3)).tolist()]
    assert set(expected) == set(shown)
    frame = pl.DataFrame({"s": ["ab"[k % 2] for k in range(2000)], "x": column})
    there = frame["x"].drop_nulls()
    forms: list[Any] = [frame, frame.lazy(), frame.to_arrow(), frame.to_pandas()]
    if not isinstance(spec.support, Lattice):
        forms += [frame.to_pandas().astype({"x": "category"}), frame.cast({"x": pl.Categorical})]
    answers = [cells(quiet(release_any, form, spec, seed=3))["x"] for form in forms]
    for array in (there.to_list(), there, there.to_pandas()):
        answers.append(list(quiet(release_any, array, spec, seed=3)))
    frame.write_csv(tmp_path / "in.csv")
    frame.write_parquet(tmp_path / "in.parquet")
    for source, ending in (("csv", "parquet"), ("parquet", "csv"), ("csv", "tsv.gz")):
        tabbed = "\t" if ending == "tsv.gz" else ","
        out = tmp_path / f"test-{source}.{ending}"
        quiet(release_file, tmp_path / f"in.{source}", out, spec, seed=3)
        parquet = ending == "parquet"
        back = pl.read_parquet(out) if parquet else pl.read_csv(out, separator=tabbed)
        answers.append(back["x"].to_list())
    assert all(answer == expected for answer in answers)
    # Another order of the draws, or other draws, would have been noticed.
    assert quiet(release_any, [values[0]] * len(kept), spec, seed=3).tolist() != expected


# What is published: levels by their names, numbers exactly.


@readable
def test_what_is_published(tmp_path: Path) -> None:
    between = make_lattice([Fraction(k, 2) for k in range(5)])
    rows = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert release_any(ORDERED.names, sure_job(ORDERED, rows, between)).tolist() == [0.0, 0.5, 1.5]
    back = sure_job(ORDERED, rows, between, round=True, bounds=(0, 1))
    assert release_any(ORDERED.names, back).tolist() == ["low", "low", "mid"]  # ties to even
    fine = make_lattice([Fraction(k, 10) for k in range(11)])
    rows = [[0] * 3 + [1] + [0] * 7, [0] * 7 + [1] + [0] * 3]
    table = write_csv(tmp_path / "in.csv", [("a", 0), ("b", 1)])
    release_file(table, tmp_path / "o.csv", sure_job(BIT, rows, fine))
    assert (tmp_path / "o.csv").read_text() == "x\n0.3\n0.7\n"
    bounded = sure_job(BIT, rows, fine, bounds=("0.5", 1))
    assert release_any([0, 1], bounded).tolist() == [0.5, 0.7]
    large = make_lattice([Fraction(2**53), Fraction(2**53 + 1)])
    swapped = release_any([2**53, 2**53 + 1], sure_job(large, [[0, 1], [1, 0]]))
    assert swapped.tolist() == [2**53 + 1, 2**53]
    odd = Levels(("=1+1", "a,b", "né", 'q"'))
    spec = sure_job(odd, [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]])
    release_file(pl.DataFrame({"s": ["a"] * 4, "x": odd.names}), tmp_path / "odd.csv", spec)
    assert (tmp_path / "odd.csv").read_text("utf-8") == 'x\n"q"""\nné\n"a,b"\n\'=1+1\n'


@readable
def test_where_missing_is_a_level_nothing_is_left_out(tmp_path: Path) -> None:
    """A channel that keeps missing values, and turns the two others into one another."""
    support = Levels(("no", "yes", MISSING_LEVEL))
    coding = Coding("x", support, missing=("?",), missing_as_level=True)
    spec = sure_job(support, [[0, 1, 0], [1, 0, 0], [0, 0, 1]], coding=coding)
    frame = pl.DataFrame({"s": list("abab"), "x": ["no", None, " ? ", "yes"]})
    expected = ["yes", "(missing)", "(missing)", "no"]
    assert cells(release_any(frame, spec)) == {"x": expected}  # warns of nothing
    frame.write_csv(tmp_path / "in.csv")
    assert release_file(tmp_path / "in.csv", tmp_path / "out.csv", spec).set_aside == 0
    assert (tmp_path / "out.csv").read_text().split() == ["x", *expected]
    masked = np.ma.array(["no", "garbage", "?", "yes"], mask=[False, True, False, False])
    for values in (pd.Series(["no", None, "?", "yes"]), frame["x"], ["no", None, "?", "yes"]):
        assert list(release_any(values, spec)) == expected
    assert release_any(masked, spec).tolist() == expected
    table = write_csv(tmp_path / "late.csv", [("a", "no"), ("b", "(missing)")])
    with pytest.raises(InputError, match=r"data row 2 of .* is none of the levels"):
        release_file(table, tmp_path / "no.csv", spec)
    assert "no.csv" not in names(tmp_path)


# What can be read back needs consent.

THREE = Levels(("p", "q", "r"))
FIVE = make_lattice([Fraction(k, 2) for k in range(5)])
#: The row of r hides something, but r does not occur in p, q, p.
STRUCTURAL = [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
SWAP = [[0, 1, 0], [1, 0, 0], [1, 1, 1]]
Case = tuple[Support, Support, Any, list[Any], list[Any]]
READ_BACK: dict[str, Case] = {
    "a level that does not occur": (THREE, THREE, STRUCTURAL, list("pqp"), list("pqp")),
    "two levels exchanged": (THREE, THREE, SWAP, list("pqp"), list("qpq")),
    "other levels": (THREE, Levels(("u", "v", "w")), SWAP, list("pqp"), list("vuv")),
    "halves": (NUMBERS, FIVE, [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [1] * 5], [0, 1], [0.5, 1.5]),
    "one value": (THREE, THREE, STRUCTURAL, ["q", "q"], ["q", "q"]),
}
NOT_READ_BACK: dict[str, tuple[Any, list[str]]] = {
    "chance": ([[2, 1, 0], [0, 1, 0], [0, 0, 1]], list("pqr")),
    "merged": ([[0, 1, 0], [0, 1, 0], [1, 1, 1]], list("pq")),
    "the level occurs": (STRUCTURAL, list("pqr")),
    "constant": ([[0, 1, 0]] * 3, list("pq")),
    "no rows": (SWAP, []),
}


def refused(call: Callable[[], Any]) -> str | None:
    """The message of a refusal, or None."""
    try:
        quiet(call)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("case", READ_BACK.values(), ids=READ_BACK)
def test_what_can_be_read_back_needs_consent(tmp_path: Path, case: Case) -> None:
    inputs, outputs, rows, values, expected = case
    frame = pl.DataFrame({"s": ["ab"[k % 2] for k in range(len(values))], "x": values})
    frame.write_csv(tmp_path / "in.csv")
    out = tmp_path / "out.parquet"
    for allowed in (False, True):
        spec = channel_job(inputs, rows, outputs, allow_unchanged=allowed)
        calls: list[Callable[[], Any]] = [
            lambda spec=spec: release_any(values, spec).tolist(),
            lambda spec=spec: release_any(frame, spec)["x"].to_list(),
            lambda spec=spec: (
                release_file(tmp_path / "in.csv", out, spec, force=True).unchanged
                and pl.read_parquet(out)["x"].to_list()
            ),
        ]
        for call in calls:
            if allowed:
                with pytest.warns(UnchangedWarning, match="published unchanged") as caught:
                    assert call() == expected
                assert len(caught) == 1
                continue
            said = str(refused(call))
            assert said.startswith("the channel always publishes every value")
            assert said.endswith("say so with --allow-unchanged (allow_unchanged=True)")
            assert not out.exists()


@pytest.mark.parametrize("rows, values", NOT_READ_BACK.values(), ids=NOT_READ_BACK)
def test_what_cannot_be_read_back_needs_none(rows: Any, values: list[str]) -> None:
    release_any(values, channel_job(THREE, rows))  # would warn


def test_bounds_may_merge_values_or_leave_no_chance() -> None:
    more = make_lattice([Fraction(k) for k in range(4)])
    rows = [*np.identity(4, dtype=int).tolist()[:3], [1, 1, 1, 1]]
    for bounds, merged in (((0, 1), True), ((-1, 2), False)):
        spec = channel_job(more, rows, bounds=bounds)
        assert (refused(partial(release_any, [0, 1, 2], spec)) is None) == merged
    rows = [[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1] * 5]
    assert refused(partial(release_any, [0, 1], channel_job(NUMBERS, rows, FIVE))) is None
    spec = channel_job(NUMBERS, rows, FIVE, bounds=("1/2", "3/2"))
    assert "read back" in str(refused(partial(release_any, [0, 1], spec)))


def test_atoms_of_every_batch_count(tmp_path: Path) -> None:
    """A value of the last batch alone decides."""
    values = ["p"] * BATCH_ROWS + ["q"]
    frame = pl.DataFrame({"s": ["a"] * len(values), "x": values})
    merging = channel_job(THREE, [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    chance = channel_job(THREE, [[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    for spec, sure in ((merging, False), (channel_job(THREE, STRUCTURAL), True), (chance, False)):
        assert bool(refused(partial(release_any, values, spec))) is sure
        to_file = partial(release_file, frame, tmp_path / "o.csv", spec, force=True)
        assert bool(refused(to_file)) is sure


def test_mutants_of_read_back_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Postprocess.reads_back

    def wrong() -> bool:
        let_through = [
            refused(partial(release_any, values, channel_job(inputs, rows, outputs))) is None
            for inputs, outputs, rows, values, _ in READ_BACK.values()
        ]
        too_many = [
            refused(partial(release_any, values, channel_job(THREE, rows))) is not None
            for rows, values in NOT_READ_BACK.values()
        ]
        return any(let_through + too_many)

    def all_occur(post: Any, rows: Any) -> bool:
        return right(post, np.ones_like(rows))

    def only_unchanged(post: Any, rows: Any) -> bool:
        channel, occurring = post.mechanism, np.flatnonzero(rows)
        kept = [channel.same[x] for x in occurring]
        return bool(kept) and None not in kept and channel.rows[occurring, kept].all()

    def merged_too(post: Any, rows: Any) -> bool:
        occurring = post.mechanism.rows[rows > 0]
        return bool(len(occurring)) and all(np.count_nonzero(row) == 1 for row in occurring)

    assert not wrong()
    for mutant in (all_occur, only_unchanged, merged_too):
        monkeypatch.setattr(Postprocess, "reads_back", mutant)
        assert wrong(), mutant.__name__
