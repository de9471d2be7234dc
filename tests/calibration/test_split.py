# SPDX-License-Identifier: Apache-2.0
"""Held-out rows: which they are, where all others go, and what epsilon is then."""

import itertools
import json
import random
import stat
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import chisquare

import pufferfish as pf
from cli_runner import run
from pufferfish.calibration import noisy_counts as module
from pufferfish.calibration.noisy_counts import HeldOut
from pufferfish.errors import CheckFailed, InputError
from pufferfish.plans.plan import Plan
from pufferfish.tables.source import open_table
from pufferfish.tables.table import raw_texts

DECLARED: dict[str, Any] = {
    "secret": "s", "public": "x", "pairs": [("a", "b")], "support": range(4),
}  # fmt: skip
#: Cells that a writer may spoil: quoted, guarded, padded, empty, with digits to lose.
CELLS = ["a,b", 'say "x"', " padded ", "=1+1", "-3", "'-x", "", "007", "1.10", "1e400",
         "two\nlines", "tab\tinside", "ä", "12345678901234567890.5"]  # fmt: skip


def table(rows: int = 600, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    s = rng.choice(["a", "b", "other"], rows)
    x = rng.binomial(3, np.where(s == "a", 0.5, 0.4))
    return pd.DataFrame({"id": np.arange(rows), "s": s, "x": x})


def held_out(source: Any, share: Any, rest: Path) -> HeldOut:
    return HeldOut(source, (share, rest), False)


def cells(source: Any) -> list[tuple[str, ...]]:
    """The rows of a table, as texts."""
    opened = open_table(source)
    return [
        row
        for batch in opened.batches(opened.columns)
        for row in zip(*map(raw_texts, batch.columns), strict=True)
    ]


# Which rows ---------------------------------------------------------------------------------------


def law(frame: pd.DataFrame, share: Any, draws: int, rest: Path) -> Counter[tuple[int, ...]]:
    """How often each set of rows is held out."""
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(draws):
        found[tuple(int(row[0]) for row in cells(held_out(frame, share, rest)))] += 1
    return found


def is_uniform(found: Counter[tuple[int, ...]], rows: int, size: int) -> bool:
    """Whether all subsets are equally likely; a fair draw fails once in a thousand million."""
    every = list(itertools.combinations(range(rows), size))
    return set(found) <= set(every) and chisquare([found[own] for own in every]).pvalue > 1e-9


@pytest.mark.parametrize("secrets", ["aabbbb", "bbbbbb"])
def test_all_subsets_are_equally_likely(secrets: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": range(6), "s": list(secrets), "x": [0, 1, 0, 0, 0, 3]})
    assert is_uniform(law(frame, "1/3", 600, tmp_path / "r.csv"), 6, 2)


def _first(rows: Any, size: int) -> list[int]:
    return list(rows)[:size]


def _stratified(rows: Any, size: int) -> list[int]:
    return [random.choice(rows[:2]), random.choice(rows[2:])]


def _with_repetition(rows: Any, size: int) -> list[int]:
    return [random.choice(rows) for _ in range(size)]


@pytest.mark.parametrize("mutant", [_first, _stratified, _with_repetition])
def test_another_law_is_caught(
    mutant: Callable[[Any, int], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.SystemRandom, "sample", lambda _, rows, size: mutant(rows, size))
    frame = pd.DataFrame({"id": range(6), "s": list("aabbbb"), "x": [0, 1, 0, 0, 0, 3]})
    assert not is_uniform(law(frame, "1/3", 600, tmp_path / "r.csv"), 6, 2)


def test_the_draw_knows_the_number_of_rows_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def sample(_: Any, rows: Any, size: int) -> list[int]:
        asked.append((rows, size))
        return [1, 3]

    monkeypatch.setattr(module.SystemRandom, "sample", sample)
    assert issubclass(module.SystemRandom, random.SystemRandom)
    for seed in range(3):
        chosen = cells(held_out(table(5, seed), 0.4, tmp_path / "r.csv"))
        assert [row[0] for row in chosen] == ["1", "3"]
    assert asked == [(range(5), 2)] * 3


@pytest.mark.parametrize(
    "rows, share, size",
    [(2, 0.001, 1), (2, 0.999, 1), (10, "0.3", 3), (10, "0.04", 1), (10, "0.96", 9), (7, "1/2", 4)],
)
def test_a_side_is_never_empty(rows: int, share: Any, size: int, tmp_path: Path) -> None:
    found = held_out(table(rows), share, tmp_path / "r.csv")
    assert (len(cells(found)), len(found.left)) == (size, rows - size)


# Where they go ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet"])
@pytest.mark.parametrize("source", ["csv", "parquet", "json", "pandas", "polars"])
def test_every_row_is_on_one_side(source: str, ending: str, tmp_path: Path) -> None:
    size = 200
    data = pl.DataFrame({
        "=id": range(size), "s": ["a", "b"] * 100, "x": [k % 4 for k in range(size)],
        "real": [k / 7 for k in range(size)], "text": [CELLS[k % len(CELLS)] for k in range(size)],
    })  # fmt: skip
    path, rest = tmp_path / f"t.{source}", tmp_path / f"r.{ending}"
    given: Any = path
    if source in ("pandas", "polars"):
        given = data if source == "polars" else pd.DataFrame(data.to_dict(as_series=False))
    else:
        {"csv": data.write_csv, "parquet": data.write_parquet, "json": data.write_ndjson}[source](
            path
        )
    found = held_out(given, 0.3, rest)
    with found.written():
        pass
    every, out, left = cells(given), cells(found), cells(rest)
    assert (len(out), len(left)) == (60, 140)
    assert Counter(out) + Counter(left) == Counter(every)
    assert open_table(rest).columns == open_table(given).columns
    assert [row for row in every if row in set(left)] == left, "in their order"
    assert stat.S_IMODE(rest.stat().st_mode) == 0o600


def test_lines_are_kept(tmp_path: Path) -> None:
    path, rest = tmp_path / "t.csv", tmp_path / "r.csv"
    table(50).assign(text=["=1+1", "0x1F", "1.10", " a", '"b"'] * 10).to_csv(path, index=False)
    pf.noisy_counts(path, 1, **DECLARED, hold_out=0.5, rest=rest)
    header, *lines = path.read_text().splitlines()
    first, *left = rest.read_text().splitlines()
    assert first == header
    assert left == [line for line in lines if line in set(left)]
    assert len(left) == 25


def test_the_held_out_rows_alone_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(self: Any, size: int, entropy: Any = None) -> Any:
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("pufferfish.calibration.noisy_counts.DiscreteLaplace.noise", nothing)
    frame = table(100)
    frame["x"] = frame.x.astype(float).where(frame.id % 10 > 0)
    noisy = pf.noisy_counts(frame, 1, **DECLARED, hold_out=0.4, rest=tmp_path / "r.csv").noisy
    left = pd.read_csv(tmp_path / "r.csv")
    mine = frame[~frame.id.isin(left.id)].dropna()
    assert noisy is not None
    assert (len(left), noisy.rows, noisy.held_out) == (60, len(mine), True)
    for own, counts in zip(("a", "b"), noisy.counts, strict=True):
        assert list(counts) == [((mine.s == own) & (mine.x == x)).sum() for x in range(4)]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rest": "r.csv"}, "the share to hold out must be a number"),
        ({"hold_out": 0.5}, "the name of a file is needed"),
        ({"hold_out": 0, "rest": "r.csv"}, "a share between 0 and 1"),
        ({"hold_out": 1, "rest": "r.csv"}, "a share between 0 and 1"),
        ({"hold_out": 0.5, "rest": "r.xlsx"}, "must end in one of .csv"),
        ({"hold_out": 0.5, "rest": "none/r.csv"}, "does not exist"),
        ({"hold_out": 0.5, "rest": "t.csv", "force": True}, "it is the input itself"),
        ({"hold_out": 0.5, "rest": "old.csv"}, "exists already"),
        ({"hold_out": 0.5, "rest": "r.csv", "support": [7]}, "first in data row 1"),
        ({"hold_out": 0.5, "rest": "r.csv", "epsilon": 1000}, "from 1e-9 to 100"),
    ],
)
def test_what_is_refused_leaves_no_file(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(20).to_csv("t.csv", index=False)
    Path("old.csv").write_text("old")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError) as caught:
        pf.noisy_counts("t.csv", **{"epsilon": 1, **DECLARED, **options})
    assert message in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_tables_that_cannot_be_split(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("s,x,,\na,1,2,3\nb,0,2,4\n")
    for source in (table(1), table(0), tmp_path / "t.csv"):
        with pytest.raises(InputError, match="all have names, but"):
            held_out(source, 0.5, tmp_path / "r.csv")


def test_an_old_file_is_replaced_by_force_alone(tmp_path: Path) -> None:
    for force in (False, True):
        given = {"hold_out": 0.5, "rest": tmp_path / "r.csv", "force": force}
        pf.noisy_counts(table(20), 1, **DECLARED, **given)
        assert len(cells(tmp_path / "r.csv")) == 10


# What epsilon is ----------------------------------------------------------------------------------


@pytest.mark.parametrize("spent", ["0.25", "1"])
@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_epsilon_is_the_larger_of_both(spent: str, mechanism: str, tmp_path: Path) -> None:
    scenario = pf.noisy_counts(
        table(1500), spent, **DECLARED, hold_out=0.5, rest=tmp_path / "r.csv"
    )
    plan = pf.calibrate(scenario, 1, mechanism)
    path = tmp_path / "p.json"
    plan.save(path)  # the referee judges it
    assert plan.epsilon_exact == 1
    assert plan.loss <= 1
    loaded = Plan.load(path)
    assert loaded.noisy == scenario.noisy
    assert loaded.verify().holds
    assert any("those held out must be in no output" in note for note in loaded.notes)
    data = json.loads(path.read_text())
    assert data["noisy"]["held_out"] is True
    assert "for each, if the counted rows are held out" in data["notice"]
    # The same counts of rows that are released leave less for the release: the sum counts.
    data["noisy"]["held_out"] = False
    with pytest.raises((CheckFailed, InputError)):
        Plan.from_json(json.dumps(data)).verify()
    # What the release may lose is the whole of epsilon, and no more.
    data["noisy"]["held_out"], data["epsilon"] = True, 0.95
    with pytest.raises((CheckFailed, InputError)):
        Plan.from_json(json.dumps(data)).verify()


def test_neither_loss_is_above_epsilon(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"epsilon 1 must be above the 1\.01"):
        pf.calibrate(
            pf.noisy_counts(table(), "1.01", **DECLARED, hold_out=0.5, rest=tmp_path / "r.csv"), 1
        )
    # A released row: its likelihoods under the law, whatever was counted. A row that is held out:
    # the likelihoods of the counts, of which a replacement moves two by 1.
    law = np.array([[0.3, 0.4, 0.2, 0.1], [0.1, 0.3, 0.4, 0.2]])
    rng, total, losses = np.random.default_rng(3), Fraction(1, 2), []
    for k in range(8):
        s = rng.integers(0, 2, 4000)
        x = [rng.choice(4, p=law[own]) for own in s]
        frame = pd.DataFrame({"s": np.array(["a", "b"])[s], "x": x})
        given = {"hold_out": 0.5, "rest": tmp_path / f"{k}.csv"}
        plan = pf.calibrate(pf.noisy_counts(frame, total, **DECLARED, **given), total)
        assert plan.scale is not None
        y = np.arange(4)
        kernel = law @ np.exp(-np.abs(y[:, None] - y) / plan.scale)
        losses.append(np.abs(np.log(kernel[0] / kernel[1])).max())
    # A plan is bad with a chance of 5 %, and not by much; one for the sum would lose twice that.
    assert max(losses) < 0.6


def largest(released: bool, held: bool, epsilon: float = 1) -> float:
    """The largest |ln| of Pr(counts, output) under both secrets of a row, over tiny tables.

    The row is released, held out and counted, or (which is what must not be) both. The other
    counted rows are known, and the output is of noise at which the law loses less than epsilon.
    """
    law, y = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), np.arange(3)
    kernel = np.exp(-np.abs(y[:, None] - y) * epsilon)
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(200):
        others, noisy = rng.integers(0, 3, (2, 3)), rng.integers(-3, 6, (2, 3))
        joint = []
        for s in range(2):
            total = np.zeros(3)
            for x in range(3):
                table = others.copy()
                table[s, x] += held
                # Their law, with a = e^(-epsilon / 2).
                chance = np.exp(-epsilon / 2 * np.abs(noisy - table).sum())
                total += law[s, x] * chance * (kernel[x] if released else 1)
            joint.append(total)
        worst = max(worst, float(np.abs(np.log(joint[0] / joint[1])).max()))
    return worst


def test_a_row_is_in_one_of_two_outputs() -> None:
    assert largest(released=True, held=False) <= 1
    assert largest(released=False, held=True) <= 1
    assert largest(released=True, held=True) > 1, "a held-out row that is released as well"


# The command line ---------------------------------------------------------------------------------


def command(path: Path, *more: Any, epsilon: str = "1", spent: str = "1") -> list[str]:
    words = ["calibrate", path / "t.csv", "--secret", "s", "--public", "x", "--pair", "a", "b",
             "--range", "0", "3", "--epsilon", epsilon, "--save", path / "p.json"]  # fmt: skip
    return [*map(str, words), *(("--publishable", spent) if spent else ()), *map(str, more)]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_round_trip(form: str, tmp_path: Path) -> None:
    table(1000).to_csv(tmp_path / "t.csv", index=False)
    rest, plan, out = (tmp_path / name for name in ("r.csv", "p.json", "out.csv"))
    done = run(*command(tmp_path, "--hold-out", "0.3", rest, "--format", form))
    assert done.status == 0, done.err
    assert f"release {rest}, never the held-out rows" in done.err
    if form != "csv":
        assert "those held out must be in no output" in done.out
    if form == "table":
        assert "300 rows held out, and counted with noise at epsilon 1" in done.out
    if form == "json":
        (result,) = done.data["results"]
        assert result["error_of_mean"] < np.sqrt(result["mse"] / 650), "of the other rows"
    released = run("release", rest, "--plan", plan, "-o", out)
    assert released.status == 0, released.err
    assert "700 of 700 rows released" in released.out
    assert "if no row of it was held out, and the plan are each within epsilon" in released.out
    verified = run("verify", plan)
    assert verified.status == 0, verified.err
    assert "within epsilon 1, apart from the 1 of noisy counts" in verified.out
    estimated = run("estimate", out, "--plan", plan, "--format", "json").data
    mean = next(f for f in estimated["figures"] if f["kind"] == "mean")
    truth = pd.read_csv(rest).x.mean()
    assert abs(mean["estimate"] - truth) < 6 * mean["standard_error"]


def test_both_files_or_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(200).to_csv(tmp_path / "t.csv", index=False)
    rest = tmp_path / "r.csv"

    def failing(self: Plan, *_: Any, **__: Any) -> None:
        assert len(cells(rest)) == 100, "the rows come first: no plan is there without them"
        raise OSError(28, "No space left on device")

    pf.Ledger.create(tmp_path / "books").dataset("d", tmp_path / "t.csv", secret="s", budget=9)
    before = set(tmp_path.iterdir())
    hold = ["--hold-out", "0.5", rest]
    for words, message in [
        (command(tmp_path, *hold, spent=""), "--hold-out needs --publishable EPS1"),
        (command(tmp_path, *hold, "--ledger", tmp_path / "books"), "a dataset of its own"),
        (command(tmp_path, *hold, "--unit", "id"), "--unit: not with --publishable"),
        (command(tmp_path, *hold, spent="2"), "must be above the 2"),
        (command(tmp_path, "--hold-out", "5", rest), "a share between 0 and 1"),
        (command(tmp_path, "--hold-out", "0.5", "r.json"), "must end in one of"),
        (command(tmp_path, "--hold-out", "0.5", tmp_path / "t.csv", "--force"), "input itself"),
        (command(tmp_path, *hold, "--range", "0", "1"), "are not among those that were declared"),
        (command(tmp_path, *hold, "--secret", "t"), "there is no column 't'"),
        (command(tmp_path, *hold, "--save", tmp_path / "none" / "p.json"), "does not exist"),
        (command(tmp_path, *hold, "--mechanism", "l1"), "l1"),
        (command(tmp_path, *hold)[2:], ""),
    ]:
        outcome = run(*words)
        assert outcome.status == 2, words
        assert message in outcome.err, outcome.err
        assert set(tmp_path.iterdir()) == before
    monkeypatch.setattr(Plan, "save", failing)
    outcome = run(*command(tmp_path, *hold))
    assert outcome.status == 2
    assert "No space left on device" in outcome.err
    assert set(tmp_path.iterdir()) == before
