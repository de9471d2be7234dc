# SPDX-License-Identifier: Apache-2.0
"""What is public of a plan is the same, to the byte, for tables that differ in one row."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pufferfish as pf
from plan_cases import recorded
from pufferfish.errors import PufferfishError, PufferfishWarning
from pufferfish.ledger.calibrate import calibrate_beside
from pufferfish.ledger.ledger import Ledger
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.report.page import page

#: What becomes of the first row, (a, 0): another secret, and a value that no other row has; no
#: value, and another person.
CHANGES: list[dict[str, Any]] = [
    {"s": "b", "x": 7, "level": "w", "z": np.nan},
    {"x": np.nan, "level": None, "p": 0},
]


def table(change: dict[str, Any]) -> pd.DataFrame:
    """Return 300 rows of 150 people; a person has one secret."""
    k = np.arange(300)
    secret = np.array(list("abcba"))[k // 2 % 5]
    x = (k * k + k // 7) % 4 + ((secret == "b") & (k % 3 == 0))
    levels = np.array(["x", "x", "y", "z", "z"])[x]
    found = pd.DataFrame({"s": secret, "x": x * 1.0, "p": k // 2 + 1, "level": levels})
    found["z"], found["free"] = x % 2 * 1.0, k % 2
    for name, value in change.items():
        found.loc[0, name] = value
    return found


def planned(*given: Any, public: str = "x", **options: Any) -> Callable[..., pf.Plan]:
    """Return what makes a plan of a table; options of a channel are those of calibrate."""
    names = {"best_for", "cost", "outputs", "invariant", "unbiased", "min_keep"}
    regions = {"confidence", "tv_radius", "region"}
    asked = {name: options.pop(name) for name in names & options.keys()}
    region = {name: options.pop(name) for name in regions & options.keys()}

    def plan(frame: pd.DataFrame, folder: Path) -> pf.Plan:
        prior = pf.Prior.from_table(frame, secret="s", public=public, **options)
        return pf.calibrate(prior.with_region(**region), *given, **asked)

    return plan


def some_pairs(frame: pd.DataFrame, folder: Path) -> pf.Plan:
    prior = pf.Prior.from_table(frame, secret="s", public="x", exclude_secrets=["c"])
    return pf.calibrate(pf.Scenario(prior, [("b", "a")]), "0.3")


def adversaries(mechanism: str) -> Callable[..., pf.Plan]:
    def plan(frame: pd.DataFrame, folder: Path) -> pf.Plan:
        known = pf.Prior.from_table(frame, secret="s", public="x", support=range(8))
        given = pf.Prior.from_counts({s: range(1, 9) for s in "abc"}, support=range(8))
        plan = pf.calibrate(pf.Scenario([known, given]), "0.5", mechanism)
        return plan.with_columns("x", "s")

    return plan


def after_another(frame: pd.DataFrame, folder: Path) -> pf.Plan:
    prior = pf.Prior.from_table(frame, secret="s", public="x")
    return pf.calibrate(prior, "0.6", already=[pf.calibrate(prior, "0.2")])


def beside_a_ledger(frame: pd.DataFrame, folder: Path) -> pf.Plan:
    ledger = Ledger.create(folder / "books.db")
    ledger.dataset("t", frame, secret="s", budget=2)
    with ledger.charge(frame, planned("0.2", "l1", public="z")(frame, folder)):
        pass
    scenario = pf.Scenario(pf.Prior.from_table(frame, secret="s", public="x"))
    return calibrate_beside(ledger, frame, scenario, 1)


PLANS: dict[str, Callable[..., pf.Plan]] = {
    **{name: planned("0.5", name) for name in ("l1", "wasserstein", "relaxed", "one-sided")},
    "exact": planned("0.5"),
    "exact, unlike pairs": some_pairs,
    "exact, almost unchanged": planned("20"),
    "unchanged without the change": planned("0.5", public="free"),
    "declared values": planned("1/3", support=range(9), step=1),
    "ordered levels": planned("0.5", public="level", order=["x", "y", "z", "w"]),
    "missing as a level": planned("0.5", public="level", missing_as_level=True),
    "channel kept": planned("1", "channel", best_for="kept"),
    "channel kept, of levels": planned("1", public="level", best_for="kept", min_keep="0.2"),
    "channel fine": planned("1", "channel", best_for="kept", outputs="fine:1", cost="absolute"),
    "channel unbiased": planned("1", "channel", unbiased=True),
    "channel invariant": planned("1", "channel", invariant=True),
    "labels and sets": planned("1", public="level"),
    "labels and sets of numbers": planned("0.8", "channel", best_for="frequencies"),
    "channel for the mean": planned("1", "channel", best_for="mean"),
    "confidence": planned("1", confidence="0.9"),
    "confidence, by a box": planned("1", confidence="0.9", region="box"),
    "confidence, channel": planned("1", "channel", confidence="0.9", support=range(8)),
    "tv_radius": planned("1", tv_radius="0.05"),
    "tv_radius, channel": planned("1", public="level", tv_radius="0.05"),
    "unit": planned("1", unit="p"),
    "unit, channel": planned("1", "channel", unit="p"),
    "adversaries": adversaries("exact"),
    "adversaries, channel": adversaries("channel"),
    "after another": after_another,
    "beside a ledger": beside_a_ledger,
}


def told(make: Callable[..., pf.Plan], change: dict[str, Any], folder: Path) -> Any:
    """Return all that is public of a plan and of its release, and the plan."""
    folder.mkdir()
    frame = table(change)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PufferfishWarning)
        plan = make(frame, folder)
    recorded(plan, frame, folder, allow_unchanged=True)
    return (page(plan, public=True), (folder / "record.json").read_text()), plan


@pytest.mark.parametrize("name", PLANS)
def test_what_is_public_depends_on_no_row(name: str, tmp_path: Path) -> None:
    first, plan = told(PLANS[name], {}, tmp_path / "first")
    for k, change in enumerate(CHANGES):
        if plan.unit and "s" in change:  # a person has one secret
            continue
        second, other = told(PLANS[name], change, tmp_path / str(k))
        assert second == first, change
        assert other.digest != plan.digest or plan.unchanged


REFUSED = {
    "out of reach": planned("1e-9", "channel"),
    "too much kept": planned("0.1", "channel", min_keep="0.9"),
    "no order": planned("0.5", "exact", public="level"),
    "no region": planned("0.5", "relaxed", tv_radius="0.05"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_whatever_a_row_says(name: str, tmp_path: Path) -> None:
    for change in ({}, *CHANGES):
        with pytest.raises(PufferfishError):
            REFUSED[name](table(change), tmp_path)


@pytest.mark.parametrize("mechanism", ["exact", "channel"])
def test_the_same_noisy_counts_are_the_same_plan(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noisy(frame: pd.DataFrame, folder: Path) -> pf.Plan:
        counted = [
            frame.x[frame.s == s if s else ~frame.s.isin(["a", "b"])].value_counts()
            for s in ("a", "b", "")
        ]
        counts = np.array([[own.get(x, 0) for x in range(5)] for own in counted]).ravel()
        wanted = np.arange(50, 65)
        monkeypatch.setattr(DiscreteLaplace, "noise", lambda *given: wanted - counts)
        scenario = pf.noisy_counts(
            frame, 1, secret="s", public="x", pairs=[("a", "b")], support=range(5)
        )
        monkeypatch.undo()
        assert scenario.noisy is not None
        assert scenario.noisy.counts[1] == (*range(55, 60),)
        return pf.calibrate(scenario, 2, mechanism)

    changes = [{}, {"x": 3}, {"s": "b", "x": 4}, {"s": "c"}]
    assert len({noisy(table(change), tmp_path).to_json() for change in changes}) == 1
    if mechanism == "channel":
        first, second = (told(noisy, changes[k], tmp_path / str(k))[0] for k in (0, 3))
        assert first == second


def test_more_noise_than_the_plans_is_told_by_what_was_asked_for(tmp_path: Path) -> None:
    """Whether a least scale is above that of the plan would tell of its scale."""
    plan = planned("0.5")(table({}), tmp_path)
    assert plan.scale is not None
    below, above = (
        recorded(plan, table({}), tmp_path, min_scale=own * plan.scale) for own in (0.9, 1.1)
    )
    assert below == above
