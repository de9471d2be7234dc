# SPDX-License-Identifier: Apache-2.0
"""From release to estimate: whatever a release gives back is read as what it is, or refused."""

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pufferfish as pf
from estimate_cases import misses
from pufferfish.errors import InputError
from pufferfish.estimate import Estimate, Frequency, estimate_channel, estimate_laplace, released
from pufferfish.mechanisms import Channel, DiscreteLaplace
from pufferfish.plan import Plan
from pufferfish.release import release_array, release_file
from pufferfish.sampling import seeded_entropy
from pufferfish.support import Lattice, Levels, Support, lattice_of, make_lattice
from pufferfish.tables import make_rules

NAMES = ("low", "mid", "high")
ORDERED, UNORDERED = Levels(NAMES, ordered=True), Levels(NAMES)
INVERTIBLE = [[8, 1, 1], [1, 8, 1], [1, 1, 8]]
MERGING = [[8, 1, 1], [8, 1, 1], [1, 1, 8]]
COUNTS = (300, 200, 140)


@pytest.fixture(scope="module")
def base() -> Plan:
    """Any plan: what it was calibrated for does not matter to an estimate."""
    prior = pf.Prior.from_mapping({"a": {"0": ".5", "1": ".5"}, "b": {"0": ".4", "1": ".6"}})
    return pf.calibrate(pf.Scenario(prior), 1, "l1")


def plan_of(base: Plan, support: Support, applied: Channel | DiscreteLaplace) -> Plan:
    levels: dict[str, Any] = {}
    if isinstance(support, Levels):
        levels = {"order": support.names} if support.ordered else {"levels": support.names}
    rules = make_rules(secret="s", public="x", **levels)
    return dataclasses.replace(base, support=support, applied=applied, rules=rules)


def noisy(base: Plan, support: Support, scale: float) -> Plan:
    return plan_of(base, support, DiscreteLaplace(scale, lattice_of(support).step))


def channelled(base: Plan, rows: list[list[int]], support: Support = UNORDERED) -> Plan:
    return plan_of(base, support, Channel.of(support, support, rows))


def numbers(*values: object) -> Lattice:
    return make_lattice([Fraction(str(value)) for value in values])


def original(support: Support, counts: tuple[int, ...] = COUNTS) -> pd.DataFrame:
    names = [support.name(k) for k in range(support.size)]
    column = np.repeat(np.array(names), counts[: support.size])
    return pd.DataFrame({"s": np.where(np.arange(len(column)) % 2, "a", "b"), "x": column})


def as_files(plan: Plan, table: pd.DataFrame, folder: Path, **options: Any) -> list[Path]:
    """The same release, by the same random bits, in every kind of file."""
    table.to_parquet(folder / "table.parquet")
    paths = [folder / f"test.{ending}" for ending in ("csv", "tsv.gz", "parquet")]
    spec = plan.release_spec(**options)
    for path in paths:
        with pytest.warns(pf.errors.SeededWarning):
            release_file(folder / "table.parquet", path, spec, seed=5)
    return paths


# --- round trips ---

STEPS = [
    numbers(0, 1, 2),
    numbers("0.25", "0.5", "1.75"),
    make_lattice([Fraction(0), Fraction(1, 3), Fraction(2)]),
    numbers(2**62 + 1, 2**62 + 2, 2**62 + 9),
]


def same_everywhere(
    plan: Plan, table: pd.DataFrame, folder: Path, expected: Callable[[Any], Estimate], **kind: Any
) -> Estimate:
    """Every form of one release gives one estimate, that of its counts."""
    files = as_files(plan, table, folder, **kind)
    column = pd.read_parquet(files[-1])["x"]
    want = expected(column)
    forms = [
        *files,
        str(files[0]),
        column,
        column.to_numpy(),
        column.tolist(),
        column.to_frame(),
        pl.DataFrame({"x": column.tolist()}),
        pl.LazyFrame({"x": column.tolist()}),
        pa.table({"x": column.tolist()}),
    ]
    for form in forms:
        found = plan.estimate(form, **kind)
        assert dataclasses.replace(found, notes=()) == dataclasses.replace(want, notes=())
        assert set(want.notes) <= set(found.notes)
    return want


@pytest.mark.parametrize("support", [UNORDERED, ORDERED])
@pytest.mark.parametrize("rows", [INVERTIBLE, MERGING])
def test_a_channel_to_levels(
    base: Plan, tmp_path: Path, rows: list[list[int]], support: Levels
) -> None:
    plan = channelled(base, rows, support)
    assert plan.channel is not None

    def expected(column: pd.Series) -> Estimate:
        assert set(column) <= set(NAMES)
        return estimate_channel([int((column == name).sum()) for name in NAMES], plan.channel)

    found = same_everywhere(plan, original(support), tmp_path, expected)
    merged = rows is MERGING
    assert [e.labels for e in found.entries] == (
        [("low", "mid"), ("high",)] if merged else [("low",), ("mid",), ("high",)]
    )
    truths = [500 / 640, 140 / 640] if merged else [c / 640 for c in COUNTS]
    for entry, truth in zip(found.entries, truths, strict=True):
        assert abs(entry.estimate - truth) < 5 * entry.standard_error
    assert (found.mean is not None) == (support.ordered and not merged)


@pytest.mark.parametrize("support", STEPS, ids=["1", "1/4", "1/3", "2**62"])
def test_noise_on_numbers(base: Plan, tmp_path: Path, support: Lattice) -> None:
    plan = noisy(base, support, 1.5)

    def expected(column: pd.Series) -> Estimate:
        units = [round(Fraction(value) / support.step) for value in column.tolist()]
        shown, counts = np.unique(units, return_counts=True)
        return estimate_laplace(shown, counts, plan.noise, support)

    found = same_everywhere(plan, original(support), tmp_path, expected)
    for entry, count in zip(found.entries, COUNTS, strict=True):
        assert abs(entry.estimate - count / 640) < 5 * entry.standard_error


def test_codes_that_are_turned_back_into_names(base: Plan, tmp_path: Path) -> None:
    plan = noisy(base, ORDERED, 1.2)

    def expected(column: pd.Series) -> Estimate:
        assert set(column) <= set(NAMES)
        counts = [int((column == name).sum()) for name in NAMES]
        bounds = (Fraction(0), Fraction(2))
        return estimate_laplace([0, 1, 2], counts, plan.noise, ORDERED, bounds=bounds)

    table = original(ORDERED)
    same_everywhere(plan, table, tmp_path, expected, round=True, bounds=(0, 2))
    column = pd.read_parquet(tmp_path / "test.parquet")
    by_code = plan.estimate(column, round=True, bounds=(0, 2))
    assert plan.estimate(column, round=True, bounds=("low", " high ")) == by_code
    codes = plan.release(table, bounds=(0, 2))
    assert codes["x"].dtype == "int64"
    assert plan.estimate(codes, bounds=("low", "high")).rows == 640


def test_rounded_numbers_within_bounds(base: Plan, tmp_path: Path) -> None:
    support = numbers(0, "0.5", 2)
    plan = noisy(base, support, 0.7)

    def expected(column: pd.Series) -> Estimate:
        shown, counts = np.unique(column, return_counts=True)
        bounds = (Fraction(-1), Fraction(3))
        return estimate_laplace(shown, counts, plan.noise, support, bounds=bounds, rounded=True)

    kind = {"round": True, "bounds": (-1, 3)}
    found = same_everywhere(plan, original(support), tmp_path, expected, **kind)
    for entry, count in zip(found.entries, COUNTS, strict=True):
        assert abs(entry.estimate - count / 640) < 5 * entry.standard_error


def test_the_least_scale_counts(base: Plan) -> None:
    plan = noisy(base, numbers(0, 1, 2), 0.5)
    column = plan.release(original(plan.support)["x"], min_scale=4)
    shown, counts = np.unique(column, return_counts=True)
    by_hand = estimate_laplace(shown, counts, DiscreteLaplace(4.0, Fraction(1)), plan.support)
    assert plan.estimate(column, min_scale=4).mean == by_hand.mean
    # The plan's own scale is the larger one here.
    column = plan.release(original(plan.support)["x"], min_scale="0.1")
    assert plan.estimate(column, min_scale="0.1") == plan.estimate(column)


def test_rounding_and_bounds_merge_the_outputs_of_a_channel_of_numbers(base: Plan) -> None:
    values, outputs = numbers(0, 1, 2), numbers(0, "0.5", 1, "1.5", 2)
    rows = [[6, 3, 1, 1, 1], [1, 2, 6, 2, 1], [1, 1, 1, 3, 6]]
    plan = plan_of(base, values, Channel.of(values, outputs, rows))
    column = plan.release(original(values)["x"])
    assert set(column) <= {0, 0.5, 1, 1.5, 2}
    counts = [int((column == float(v)).sum()) for v in outputs.values]
    assert plan.estimate(column) == estimate_channel(counts, plan.channel)
    # Ties go to the even integer: 0.5 to 0, and 1.5 to 2.
    whole = plan.release(original(values)["x"], round=True)
    merged = Channel.of(values, values, [[r[0] + r[1], r[2], r[3] + r[4]] for r in rows])
    counts = [int((whole == v).sum()) for v in (0, 1, 2)]
    assert plan.estimate(whole, round=True) == estimate_channel(counts, merged)
    inside = plan.release(original(values)["x"], bounds=("0.5", "1.5"))
    merged = Channel.of(values, values, [[r[0] + r[1], r[2], r[3] + r[4]] for r in rows])
    counts = [int((inside == v).sum()) for v in (0.5, 1, 1.5)]
    found = plan.estimate(inside, bounds=("0.5", "1.5"))
    assert found.entries == estimate_channel(counts, merged).entries
    with pytest.raises(InputError, match="holds a number, which the plan's channel never"):
        plan.estimate(column, bounds=("0.5", "1.5"))


def test_levels_that_look_like_formulas(base: Plan, tmp_path: Path) -> None:
    levels = Levels(("+a", "-1 to 5", "=b"), ordered=False)
    plan = channelled(base, INVERTIBLE, levels)
    table = original(levels)
    files = as_files(plan, table, tmp_path)
    assert "'=b" in files[0].read_text()
    assert plan.estimate(files[0]) == plan.estimate(files[-1])
    twins = Levels(("'=a", "=a", "b"))
    plan = channelled(base, INVERTIBLE, twins)
    # A release writes no text file in which they are alike; elsewhere every level has its name.
    path = tmp_path / "twins.csv"
    path.write_text("x\nb\n'=a\n")
    with pytest.raises(InputError, match=r"""the levels "'=a" and '=a' alike"""):
        plan.estimate(path)
    assert plan.channel is not None
    for values, counts in ((["b", "'=a"], (1, 0, 1)), (["b", "=a"], (0, 1, 1))):
        assert plan.estimate(values) == estimate_channel(counts, plan.channel).with_notes_on_range()


def test_numbers_that_were_saved_anew(base: Plan, tmp_path: Path) -> None:
    plan = noisy(base, numbers(0, 1), 1.0)
    path = tmp_path / "x.csv"
    path.write_text("x\n1\n 1.0\n-2\n+1\n1e0\n0\n")
    assert plan.estimate(path).mean == plan.estimate([1, 1, -2, 1, 1, 0]).mean


def test_a_column_that_was_released_unchanged(base: Plan) -> None:
    plan = noisy(base, numbers(0, 1), 0.0)
    assert plan.estimate([0, 0, 1]).entries[1] == Frequency(1 / 3, 0.0, labels=("1",))


def test_the_columns_of_a_table(base: Plan, tmp_path: Path) -> None:
    plan = channelled(base, INVERTIBLE)
    column = list(NAMES) * 5
    want = plan.estimate(column)
    assert plan.estimate(pd.DataFrame({"z": 1, "x": column})) == want
    renamed = pd.DataFrame({"x": "else", "y": column})
    assert plan.estimate(renamed, column="y") == want
    # A plan from a given prior names no column: then the only one is meant.
    unnamed = dataclasses.replace(plan, rules=None)
    assert unnamed.estimate(pd.DataFrame({"any": column})) == want
    with pytest.raises(InputError, match=r"has the columns x, y, and the plan names none; say"):
        unnamed.estimate(renamed)
    with pytest.raises(InputError, match=r"no column 'x', which the plan releases, .* --column"):
        plan.estimate(pd.DataFrame({"any": column}))
    with pytest.raises(InputError, match="did you mean 'y'"):
        plan.estimate(renamed, column="Y")
    with pytest.raises(InputError, match="but not of an array"):
        plan.estimate(column, column="x")


# --- what is no release of the plan is refused ---


def refused(plan: Plan, cells: list[Any], *parts: str, **options: Any) -> None:
    with pytest.raises(InputError) as caught:
        plan.estimate(pd.DataFrame({"x": cells}), **options)
    for part in parts:
        assert part in str(caught.value)
    assert "secret" not in str(caught.value)


def test_cells_that_no_release_wrote(base: Plan) -> None:
    channel = channelled(base, INVERTIBLE)
    row = "data row 3 of the pandas dataframe, column 'x', "
    refused(channel, ["low", "mid", "secret", "high"], row, "none of the released levels (low, mid")
    refused(channel, ["low", "mid", None], row, "is empty")
    refused(channel, ["low", "mid", "  "], row, "is empty")
    gap = plan_of(base, UNORDERED, Channel.of(UNORDERED, UNORDERED, [[1, 1, 0]] * 3))
    refused(gap, ["low", "mid", "high"], row, "holds 'high', which the plan's channel never")
    plan = noisy(base, numbers(0, "0.5"), 1.0)
    refused(plan, ["1", "2.5", "0.7"], row, "is no multiple of 0.5")
    refused(plan, ["1", "2.5", "secret"], row, "is no number")
    refused(plan, ["1", "2.5", "inf"], row, "is no number")
    refused(plan, ["1", "2.5", "1,000"], row, "is no number")
    refused(plan, ["1", "2", "2.5"], row, "is no multiple of 1,", round=True)
    refused(plan, [1.0, 2.5, 7.0], "outside the bounds", bounds=(0, 3))
    refused(plan, [1.0], "multiples of 0.5", bounds=(0, "0.7"))


def test_arrays_name_positions(base: Plan) -> None:
    plan = noisy(base, numbers(0, 1), 1.0)
    with pytest.raises(InputError, match=r"position 2 \(counted from 0\) is no number"):
        plan.estimate(["1", "0", "secret"])
    with pytest.raises(InputError, match=r"position 1 \(counted from 0\) is empty"):
        plan.estimate(["1", None])
    with pytest.raises(InputError, match=r"position 1 \(counted from 0\) is empty"):
        plan.estimate(np.ma.masked_array([1, 2], [False, True]))
    with pytest.raises(InputError, match=r"position 0 \(counted from 0\) is no number"):
        plan.estimate(np.array([np.nan]))
    with pytest.raises(InputError, match="nothing to estimate from"):
        plan.estimate([])
    with pytest.raises(InputError, match="an object of type object"):
        plan.estimate(object())
    with pytest.raises(InputError, match="one dimension"):
        plan.estimate(np.zeros((2, 2)))


def test_the_first_row_of_several_is_named(base: Plan, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    cells = ["1"] * 70_000 + ["b"] + ["1"] * 10 + ["a"]
    path.write_text("\n".join(["x", *cells, ""]))
    with pytest.raises(InputError, match="data row 70001 of"):
        noisy(base, numbers(0, 1), 1.0).estimate(path)


def test_names_and_codes_are_told_apart(base: Plan) -> None:
    plan = noisy(base, ORDERED, 1.0)
    names, codes = ["low", "mid"] * 9, [0, 1, 2, -1, 3, 1] * 3
    refused(plan, names, "row 1", "name of a level, as a release with --round and --bounds")
    refused(plan, [0, 2, 1], "turned back", round=True, bounds=("low", "high"))
    assert plan.estimate(codes).rows == 18
    refused(plan, [0, 1], "a bound is a level or its code", "mean 'low'", bounds=("lo", 2))
    refused(plan, [0, 1], "bounds are two numbers", bounds=3)


def test_options_that_do_not_go_with_a_channel(base: Plan) -> None:
    plan = channelled(base, INVERTIBLE, ORDERED)
    refused(plan, ["low"], "round", round=True)
    refused(plan, ["low"], "bounds", bounds=(0, 2))
    refused(plan, ["low"], "min-scale", min_scale=3)


# --- options that nobody mentioned ---


def large(support: Support) -> np.ndarray:
    return np.repeat([float(v) for v in lattice_of(support).values], 2000)


@pytest.mark.parametrize("options", [{"bounds": (0, 2)}, {"bounds": (0, 99)}, {"bounds": (-9, 1)}])
def test_bounds_that_were_not_stated(base: Plan, options: dict[str, Any]) -> None:
    plan = noisy(base, numbers(0, 1, 2), 2.0)
    shown = plan.release(large(plan.support), **options)
    with pytest.raises(InputError, match="were they released with bounds"):
        plan.estimate(shown)
    assert plan.estimate(shown, **options).rows == 6000


def test_rounding_that_was_not_stated(base: Plan) -> None:
    plan = noisy(base, numbers(0, "0.5", 2), 2.0)
    shown = plan.release(large(plan.support), round=True)
    with pytest.raises(InputError, match="were they rounded"):
        plan.estimate(shown)
    assert plan.estimate(shown, round=True).rows == 6000


def test_a_larger_scale_that_was_not_stated(base: Plan) -> None:
    plan = noisy(base, numbers(0, 1, 2), 0.5)
    shown = plan.release(large(plan.support), min_scale=20)
    with pytest.raises(InputError, match="further than noise of this scale reaches"):
        plan.estimate(shown)
    assert plan.estimate(shown, min_scale=20).rows == 6000


def test_mutant_without_the_look_at_bounds(base: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a clamped column gives numbers that are far off."""
    monkeypatch.setattr(released, "check_plausible", lambda *_, **__: None)
    plan = noisy(base, numbers(0, 1, 2), 2.0)
    wrong = plan.estimate(plan.release(large(plan.support), bounds=(0, 2)))
    assert wrong.variance is not None
    assert wrong.variance.estimate < -1


SCALES = [0.02, 0.3, 1.0, 5.0, 300.0]


@pytest.mark.parametrize("kind", [{}, {"round": True}, {"bounds": (0, 3)}])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("support", [STEPS[0], STEPS[1], numbers(0, 1, 40)])
def test_what_was_released_is_never_refused(
    base: Plan, support: Lattice, scale: float, kind: dict[str, Any]
) -> None:
    plan = noisy(base, support, scale)
    spec, entropy = plan.release_spec(**kind), seeded_entropy(17)
    for counts in ((1, 0, 0), (3, 1, 0), (0, 40, 0), (2000, 0, 0), (0, 500, 700)):
        values = np.repeat([float(v) for v in support.values], counts)
        for _ in range(5):
            shown = release_array(values, spec, entropy=entropy)
            assert plan.estimate(shown, **kind).rows == sum(counts)


# --- what is said ---


def test_estimates_outside_of_what_is_possible(base: Plan) -> None:
    plan = channelled(base, [[8, 3, 3], [3, 8, 3], [3, 3, 8]])
    inside = plan.estimate(["low", "mid", "high"] * 50)
    assert inside.notes == ()
    outside = plan.estimate(["low"] * 22 + ["mid"] * 20 + ["high"] * 10)
    assert outside.entries[2].estimate < 0
    assert sum("outside of what is possible" in note for note in outside.notes) == 1
    assert not any("hardly ever" in note for note in outside.notes)
    never = plan.estimate(["low"] * 2000)
    assert any("hardly ever does: was the column" in note for note in never.notes)


def test_frequencies_that_are_lost_in_the_noise(base: Plan) -> None:
    plan = noisy(base, numbers(0, 1, 2), 20.0)
    found = plan.estimate(plan.release(original(plan.support)["x"]))
    assert not any(entry.telling for entry in found.entries)
    said = "3 of the 3 frequencies are too uncertain to say anything: their 95 % intervals are long"
    assert any(note.startswith(said) for note in found.notes)
    assert not Frequency(1.5, 0.5).telling  # by its length alone
    assert Frequency(0.5, 0.2).telling


def weights(plan: Plan) -> list[float]:
    """The frequencies that an invariant channel keeps: the left eigenvector of 1."""
    assert plan.channel is not None
    values, vectors = np.linalg.eig(plan.channel.matrix.T)
    found = vectors[:, np.argmax(values.real)].real
    return (found / found.sum()).tolist()


def test_an_invariant_release_says_that_plain_frequencies_do(scenario: pf.Scenario) -> None:
    plan = pf.calibrate(scenario, 1, "channel", invariant=True)
    column = plan.release(np.repeat([0, 1, 2, 3], [220, 180, 120, 80]))
    note = next(n for n in plan.estimate(column).notes if "the channel is invariant" in n)
    assert "plain frequencies of the released column are unbiased, too" in note
    assert "standard errors of 0.02 at most" in note  # 0.5 / sqrt(600)
    # What it says: these are the frequencies that the released column is expected to have.
    assert weights(plan) == pytest.approx([220 / 600, 180 / 600, 120 / 600, 80 / 600], abs=1e-8)
    assert pf.calibrate(scenario, 1, "channel").distortion.conditions == ()
    other = pf.calibrate(scenario, 1, "channel")
    assert not any("invariant" in n for n in other.estimate(other.release(VALUES)).notes)
    inside = plan.estimate(plan.release(VALUES, bounds=(1, 2)), bounds=(1, 2))
    assert not any("invariant" in n for n in inside.notes)  # bounds moved what was released


# --- intervals cover, by the public way from a calibrated plan to its estimates ---

RELEASES = 2000


def coverage(plan: Plan, values: np.ndarray, seed: int, **kind: Any) -> list[Estimate]:
    spec, entropy = plan.release_spec(**kind), seeded_entropy(seed)
    return [
        plan.estimate(release_array(values, spec, entropy=entropy), **kind) for _ in range(RELEASES)
    ]


def all_cover(missed: np.ndarray) -> bool:
    return bool((np.abs((1 - missed) - 0.95) <= 0.015).all())


@pytest.fixture(scope="module")
def scenario() -> pf.Scenario:
    counts = {"a": [200, 120, 60, 20], "b": [20, 60, 60, 60]}
    return pf.Scenario(pf.Prior.from_counts(counts, support=["0", "1", "2", "3"]))


VALUES = np.repeat([0, 1, 2, 3], [220, 180, 120, 80])
TRUTH = [220 / 600, 180 / 600, 120 / 600, 80 / 600, float(VALUES.mean()), float(VALUES.var())]


@pytest.mark.slow
def test_intervals_cover_for_a_calibrated_channel(scenario: pf.Scenario) -> None:
    plan = pf.calibrate(scenario, 1, "channel", min_keep="0.6")
    assert all_cover(misses(TRUTH, coverage(plan, VALUES, seed=29)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{}, {"bounds": (0, 3)}, {"bounds": (-2, 5)}])
def test_intervals_cover_for_calibrated_noise(scenario: pf.Scenario, kind: dict[str, Any]) -> None:
    plan = pf.calibrate(scenario, 1)
    assert all_cover(misses(TRUTH, coverage(plan, VALUES, seed=31, **kind)))
