# SPDX-License-Identifier: Apache-2.0
"""Noisy counts and plans from them: what is drawn, what is told, and what both reveal together."""

import itertools
import json
import math
import stat
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import pufferfish as pf
from cli_runner import run
from pufferfish.calibration import noisy_counts as module
from pufferfish.errors import CheckFailed, InputError, SeededWarning
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.ambiguity import NoisyCounts
from pufferfish.priors.scenario import scenario_of_noise
from pufferfish.support import Product, make_lattice

DECLARED: dict[str, Any] = {"secret": "s", "public": "x", "pairs": [("a", "b")]}


def table(rows: int = 600, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    s = rng.choice(["a", "b", "other"], rows)
    return pd.DataFrame({"s": s, "x": rng.binomial(3, np.where(s == "a", 0.5, 0.4))})


def counts_of(frame: pd.DataFrame, atoms: int, secrets: str = "ab") -> npt.NDArray[np.int64]:
    each = [[((frame.s == s) & (frame.x == x)).sum() for x in range(atoms)] for s in secrets]
    return np.array(each, dtype=np.int64)


def seeded(frame: pd.DataFrame, epsilon: str = "1", **options: Any) -> pf.Scenario:
    with pytest.warns(SeededWarning):
        return pf.noisy_counts(frame, epsilon, **DECLARED, support=range(4), seed=3, **options)


# What is drawn ------------------------------------------------------------------------------------


def test_every_cell_gets_noise_of_half_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def noise(self: DiscreteLaplace, size: int, entropy: Any = None) -> Any:
        drawn.append((self, size))
        return np.full(size, -7)

    monkeypatch.setattr(DiscreteLaplace, "noise", noise)
    frame = table()
    frame.loc[:4, "x"] = np.nan
    given = {**DECLARED, "pairs": [("a", "b"), ("a", "nobody")]}
    scenario = pf.noisy_counts(frame, "0.3", **given, support=range(6))
    ((law, size),) = drawn
    # exp(-step / scale) is what one row more or less in a cell costs; replacing one moves two.
    assert law.step / Fraction(law.scale) == Fraction("0.15")
    assert size == 4 * 6, "rows of other secrets are counted as well"
    noisy = scenario.noisy
    assert noisy is not None
    assert noisy.secrets == ("a", "b", "nobody")
    expected = np.r_[counts_of(frame, 6), np.zeros((1, 6), dtype=int)] - 7
    assert np.array_equal(noisy.counts, expected)
    others = np.bincount(frame.x[~frame.s.isin(["a", "b"])].dropna().astype(int), minlength=6) - 7
    assert np.array_equal(noisy.others, others)
    assert sum(others) > -42
    assert noisy.rows == 595, "the rows to release, whatever their secret"
    assert scenario.priors[0].counts.min() == 0
    assert scenario.priors[0].report is None


def test_noise_without_a_seed_is_fresh() -> None:
    first, second = (
        pf.noisy_counts(table(), "0.1", **DECLARED, support=range(4)).noisy for _ in range(2)
    )
    assert first != second


# What must be declared ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "--levels V1,V2,... or --range LO HI"),
        ({"support": range(4), "pairs": "all"}, "--pair A B"),
        ({"support": range(4), "pairs": []}, "--pair A B"),
        ({"support": range(4), "pairs": 5}, "--pair A B"),
        ({"support": range(4), "pairs": [("a", "")]}, "'' means a missing secret"),
        ({"support": range(4), "missing": ["b"]}, "'b' means a missing secret"),
        ({"support": range(4), "epsilon": "1e-30"}, "from 1e-9 to 100"),
        ({"levels": "0123", "order": "appearance"}, "order of appearance is taken from the table"),
        ({"support": range(4), "public": ["x", "y"]}, "one public column"),
        ({"support": range(3)}, "are not among those that were declared"),
        ({"support": range(4), "confidence": 95}, "above 0 and below 1"),
        ({"support": range(4), "epsilon": "1000"}, "from 1e-9 to 100"),
    ],
)
def test_what_would_be_taken_from_the_table_is_refused(
    options: dict[str, Any], message: str
) -> None:
    given = {"epsilon": "1", **DECLARED, **options}
    with pytest.raises(InputError) as caught:
        pf.noisy_counts(table(), **given)
    assert message in str(caught.value)


def test_options_of_the_command_line(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "t.csv", index=False)
    base = ["calibrate", str(tmp_path / "t.csv"), "--secret", "s", "--public", "x"]
    own = ["--pair", "a", "b", "--range", "0", "3", "--epsilon", "3", "--publishable", "1"]
    save = ["--save", str(tmp_path / "p.json")]
    for words, message in [
        ([*own], "--publishable needs --save FILE"),
        ([*own[3:], *save], "--pair A B"),
        ([*own[:3], *own[6:], *save], "--levels V1,V2,... or --range LO HI"),
        ([*own, *save, "--unit", "s2"], "--unit: not with --publishable"),
        ([*own, *save, "--exclude-secret", "b"], "--exclude-secret: not with --publishable"),
        ([*own, *save, "--tv-radius", ".1"], "--tv-radius: not with --publishable"),
        ([*own[:-1], "3", *save], "must be above the"),
        ([*own, "--epsilon", "4", *save], "exactly one epsilon"),
        ([*own[:4], "3", "0", *own[6:], *save], "--range takes LO HI"),
        ([*own, "--step", "2", *save], "some steps of 2 apart"),
        ([*own, "--range", "0", "9999", *save], "at most 3,000 values"),
    ]:
        outcome = run(*base, *words)
        assert outcome.status == 2, words
        assert message in outcome.err
    assert not (tmp_path / "p.json").exists()


# What a plan says ---------------------------------------------------------------------------------


def test_a_plan_from_noisy_counts_is_public(tmp_path: Path) -> None:
    scenario = seeded(table())
    plan = pf.calibrate(scenario, 1.4)
    path = tmp_path / "p.json"
    plan.save(path)  # the referee judges it
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0o044
    data = json.loads(path.read_text())
    assert data["notice"].startswith("PUBLIC.")
    assert data["noisy"]["epsilon1"] == "1"
    assert data["noisy"]["level"] == "0.95"
    assert (data["epsilon"], data["loss"]) == (1.4, 1.4)
    assert (data["digest"], data["sensitivity"], data["regions"]) == ("", None, [])
    assert data["certificate"]["witness"] is None
    loaded = pf.Plan.load(path)
    for each in (plan, loaded, pf.Plan.from_json(plan.to_json())):
        assert each.noisy == scenario.noisy
        assert each.verify().holds
        assert each.verify(scenario).holds
        assert not each.from_rows
    with pytest.raises(CheckFailed, match="other noisy counts"):
        loaded.verify(seeded(table(seed=2)))
    with pytest.raises(InputError, match="private"):
        loaded.with_sensitivity(scenario)
    with pytest.raises(InputError, match="no joint loss includes"):
        pf.calibrate(pf.Prior.from_table(table(), secret="s", public="x"), 3, already=[plan])
    with pytest.raises(InputError, match="must be above the"):
        pf.calibrate(scenario, 1)
    # What others are counted from would be neither paid for nor public.
    counted = pf.Prior.from_table(table(), secret="s", public="x", exclude_secrets=["other"])
    for other in (seeded(table(seed=2)).priors[0], counted):
        with pytest.raises(InputError, match="no other prior"):
            pf.calibrate(pf.Scenario([scenario.priors[0], other]), 3)
    with pytest.raises(InputError, match="their confidence already"):
        scenario.priors[0].with_region(confidence=0.9)


@pytest.mark.parametrize("best_for", ["kept", "frequencies", "mean"])
def test_channels_from_noisy_counts(best_for: str, tmp_path: Path) -> None:
    plan = pf.calibrate(seeded(table(3000)), 3, best_for=best_for)
    plan.save(tmp_path / "p.json")  # the referee judges it
    assert plan.loss <= 3
    assert pf.Plan.load(tmp_path / "p.json").verify().holds


@pytest.mark.parametrize(
    "change, error",
    [
        (lambda data: data.update(scale=data["scale"] * 0.98), CheckFailed),
        (lambda data: data["noisy"].update(epsilon1="1.1"), CheckFailed),
        (lambda data: data["noisy"].update(level="0.999"), CheckFailed),
        (lambda data: data["noisy"].update(epsilon1="3"), InputError),
        (lambda data: data["noisy"]["counts"].pop(), InputError),
        (lambda data: data["noisy"]["counts"][0].pop(), InputError),
        (lambda data: data["noisy"].update(secrets=["a", "c"]), InputError),
        (lambda data: data["noisy"].update(secrets=["a", "a"]), InputError),
        (lambda data: data["noisy"].update(level="1"), InputError),
        (lambda data: data["noisy"].update(more=1), InputError),
        (lambda data: data["noisy"].update(epsilon1="1e-300"), InputError),
        (lambda data: data["noisy"].update(rows=2**53), InputError),
        (lambda data: data.update(rows_per_person=[2]), InputError),
        (lambda data: data.update(regions=[{"confidence": "0.9"}]), InputError),
    ],
)
def test_a_plan_made_worse_is_refused(change: Any, error: Any) -> None:
    data = json.loads(pf.calibrate(seeded(table(3000)), 1.4).to_json())
    change(data)
    with pytest.raises(error):
        pf.Plan.from_json(json.dumps(data)).verify()


REFERENCE = json.loads(
    (Path(__file__).parents[1] / "loss" / "betting.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e["epsilon1"]], ids=lambda e: e["name"])
def test_scales_are_those_of_the_reference(entry: Any) -> None:
    # Its grid has steps of 2 %. A bound at twice the alpha makes the scale smaller by more.
    spent, level = Fraction(entry["epsilon1"]), 1 - Fraction(entry["alpha"])
    counts = tuple(map(tuple, entry["noisy_counts"]))
    rule = NoisyCounts(("a", "b"), counts, (0,) * len(counts[0]), entry["rows"], spent, level)
    support = make_lattice(map(Fraction, range(len(counts[0]))))
    scenario = scenario_of_noise(rule, Product((None,), (support,)), [("a", "b")])
    epsilon = spent + Fraction(entry["epsilon2"])
    least, most = entry["scale"] / 1.02, entry["scale"] * 1.005
    assert least < pf.calibrate(scenario, epsilon).scale <= most
    twice = scenario_of_noise(
        replace(rule, level=2 * level - 1), Product((None,), (support,)), [("a", "b")]
    )
    assert pf.calibrate(twice, epsilon).scale < least


# What is told depends on noisy counts alone -------------------------------------------------------


def test_files_of_two_tables_differ_in_their_noisy_counts() -> None:
    first = table()
    second = first.copy()
    second.loc[0, ["s", "x"]] = ["b" if first.s[0] != "b" else "a", 3 - first.x[0]]
    one, two = (json.loads(pf.calibrate(seeded(t), 1.4).to_json()) for t in (first, second))
    cells = [
        np.array([*each["noisy"].pop("counts"), each["noisy"].pop("others")]) for each in (one, two)
    ]
    assert np.abs(cells[0] - cells[1]).sum() == 2
    # The scale is computed from these.
    assert {name for name in one if one[name] != two[name]} <= {"scale"}


def test_nothing_else_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tables = [table(80), table(80)]
    # A secret of a single row, a value and a secret that no row has: notes of other commands.
    tables[1].loc[tables[1].s == "b", "s"] = "other"
    tables[1].loc[0, "s"] = "b"
    tables[1].loc[tables[1].x == 3, "x"] = 0
    told = []
    for name in ("exact", "channel"):
        for frame in tables:
            wanted = np.array([[20, 30, 10, -3], [15, 20, 15, 4]])
            others = 7 - np.bincount(frame.x[~frame.s.isin(["a", "b"])], minlength=4)
            noise = np.r_[(wanted - counts_of(frame, 4)).ravel(), others]
            monkeypatch.setattr(DiscreteLaplace, "noise", lambda *_, noise=noise: noise)
            frame.to_csv(tmp_path / "t.csv", index=False)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                outcome = run(
                    "calibrate", str(tmp_path / "t.csv"), "--secret", "s", "--public", "x",
                    "--pair", "a", "b", "--range", "0", "3", "--epsilon", "4", "--publishable", "2",
                    "--mechanism", name, "--explain", "--save", str(tmp_path / "p.json"), "--force",
                )  # fmt: skip
            assert outcome.status == 0, outcome.err
            told.append((outcome.out, outcome.err, (tmp_path / "p.json").read_bytes()))
        assert told[-1] == told[-2]


def test_released_verified_and_estimated_by_the_public_file(tmp_path: Path) -> None:
    path = {name: str(tmp_path / name) for name in ("t.csv", "p.json", "r.csv", "rec.json")}
    table(2000).to_csv(path["t.csv"], index=False)
    assert run(
        "calibrate", path["t.csv"], "--secret", "s", "--public", "x", "--pair", "a", "b",
        "--range", "0", "3", "--epsilon", "1.4", "--publishable", "1", "--save", path["p.json"],
    ).status == 0  # fmt: skip
    released = run(
        "release", path["t.csv"], "--plan", path["p.json"], "-o", path["r.csv"],
        "--record", path["rec.json"],
    )  # fmt: skip
    assert released.status == 0, released.err
    assert "outside the promise" not in released.out  # which would tell how many rows are counted
    (tmp_path / "t.csv").unlink()
    verified = run("verify", path["p.json"])
    assert verified.status == 0, verified.err
    assert "verified from the noisy counts in it, for the pairs (a, b)" in verified.out
    record = json.loads(Path(path["rec.json"]).read_text())
    assert "the ledger is private" in record["notice"]
    assert (
        "together with the noisy counts in the plan (epsilon 1)"
        in record["certificate"]["statement"]
    )
    assert run("verify", path["p.json"], path["r.csv"]).status == 2
    estimated = run("estimate", path["r.csv"], "--plan", path["p.json"], "--format", "json").data
    mean = next(f for f in estimated["figures"] if f["kind"] == "mean")
    assert abs(mean["estimate"] - table(2000).x.mean()) < 6 * mean["standard_error"]


def test_a_secret_that_seems_to_be_misspelt_is_noted() -> None:
    with pytest.warns(SeededWarning):
        scenario = pf.noisy_counts(
            table(), 1, **{**DECLARED, "pairs": [("a", "bb")]}, support=range(4), seed=1
        )
    note, seed = scenario.priors[0].notes
    assert "NOT PRIVATE" in seed
    assert "hardly a row with bb" in note


# What a plan and what is released reveal together -------------------------------------------------

EPSILON1, EPSILON2 = Fraction(6), Fraction(1)
ATOMS = 3
LAW = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])


def likelihoods(plan: pf.Plan) -> npt.NDArray[np.float64]:
    """k_y by value and output, but for a constant."""
    if plan.channel is not None:
        return plan.channel.matrix[:, plan.channel.matrix.any(axis=0)]
    assert plan.scale is not None
    return np.exp(-np.abs(np.arange(ATOMS)[:, None] - np.arange(-3, ATOMS + 3)) / plan.scale)


def largest_ratio(factor: float, mechanism: Any = "exact") -> float:
    """The largest |ln| of Pr(plan, y) under both secrets of a row, where the law is covered.

    All tables of 4 other rows, whose secrets and values are known; some noisy counts, each with the
    plan that it makes; all outputs. ``factor``: of the rate of the noise that is drawn.
    """
    noise = DiscreteLaplace(2.0, EPSILON1)
    rate = factor * float(noise.step / Fraction(noise.scale))
    rng = np.random.default_rng(2)
    lattice, worst, plans = make_lattice(map(Fraction, range(ATOMS))), 0.0, 0
    cells = list(itertools.product(range(2), range(ATOMS)))
    tables = np.zeros((0, 2, ATOMS), dtype=int)
    for rows in itertools.combinations_with_replacement(range(len(cells)), 4):
        counts = np.bincount(rows, minlength=len(cells)).reshape(1, 2, ATOMS)
        tables = np.concatenate([tables, counts])
    for _ in range(15):
        noisy = rng.integers([[10], [0]], [[40], [5]], (2, ATOMS))
        rule = NoisyCounts(
            ("a", "b"),
            tuple(map(tuple, noisy.tolist())),
            (0,) * ATOMS,
            5,
            EPSILON1,
            Fraction(1, 20),
        )
        scenario = scenario_of_noise(rule, Product((None,), (lattice,)), [("a", "b")])
        plan = pf.calibrate(scenario, EPSILON1 + EPSILON2, mechanism)
        kernel = likelihoods(plan)
        plans += (plan.scale or 0) < 2 / float(EPSILON2)
        if np.abs(np.log((LAW[0] @ kernel) / (LAW[1] @ kernel))).max() > float(EPSILON2):
            continue  # the law is not covered
        joint = []
        for s in range(2):
            total = np.zeros((len(tables), kernel.shape[1]))
            for x in range(ATOMS):
                own = tables.copy()
                own[:, s, x] += 1
                chance = np.exp(-rate * (np.abs(noisy - own) - np.abs(noisy)).sum(axis=(1, 2)))
                total += LAW[s, x] * np.outer(chance, kernel[x])
            joint.append(total)
        worst = max(worst, float(np.abs(np.log(joint[0] / joint[1])).max()))
    assert plans > 5, "scales below the range over epsilon"
    return worst


def test_plan_and_release_together_are_within_epsilon() -> None:
    assert float(EPSILON1) < largest_ratio(1) <= float(EPSILON1 + EPSILON2)


def test_so_are_channels() -> None:
    assert float(EPSILON1) < largest_ratio(1, "channel") <= float(EPSILON1 + EPSILON2)


def test_noise_of_half_the_scale_is_caught() -> None:
    assert largest_ratio(2) > float(EPSILON1 + EPSILON2)


def test_tables_that_differ_in_a_row_have_counts_within_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = []

    def none(self: DiscreteLaplace, size: int, entropy: Any = None) -> Any:
        laws.append(self)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(module.DiscreteLaplace, "noise", none)
    for before, after in itertools.permutations(itertools.product(["a", "b", "other"], [0, 2]), 2):
        frames = [table(5), table(5)]
        for frame, row in zip(frames, (before, after), strict=True):
            frame.loc[0, ["s", "x"]] = row
        scenarios = [
            pf.noisy_counts(f, EPSILON1, **DECLARED, support=range(4)).noisy for f in frames
        ]
        apart = np.abs(np.subtract(*(own.counts for own in scenarios if own))).sum()
        rate = laws[-1].step / Fraction(laws[-1].scale)
        assert apart * rate <= EPSILON1
        assert len({(own.rows, own.secrets) for own in scenarios if own}) == 1
    assert math.isclose(float(2 * rate), float(EPSILON1))


def test_pairs_may_be_any_iterable() -> None:
    given = {**DECLARED, "pairs": iter([("a", "b")])}
    with pytest.warns(SeededWarning):
        scenario = pf.noisy_counts(table(), 1, **given, support=range(4), seed=3)
    assert scenario.noisy == seeded(table()).noisy


def test_a_plan_for_a_small_table_says_so(tmp_path: Path) -> None:
    table(40).to_csv(tmp_path / "t.csv", index=False)
    done = run(
        "calibrate", tmp_path / "t.csv", "--secret", "s", "--public", "x", "--pair", "a", "b",
        "--range", 0, 3, "--epsilon", "0.5", "--publishable", "0.2", "--save", tmp_path / "p.json",
    )  # fmt: skip
    assert done.status == 0
    assert "Note: noise of scale range/epsilon (mechanism l1) is no larger" in done.out
    assert "that of the noisy counts (0.2) included, is within epsilon 0.5" in done.out
