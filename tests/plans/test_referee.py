# SPDX-License-Identifier: Apache-2.0
"""The referee refuses plans that a test made worse, with nothing of the package to help it."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
import referee
from pufferfish.mechanisms.laplace import DiscreteLaplace

#: Low, Medium, High under two secrets: as numbers, and as levels.
COUNTS = {"A": (6, 3, 1), "B": (1, 3, 6)}
NAMES = ("Low", "Medium", "High")
Edit = Callable[[dict[str, Any]], None]


def files(folder: Path, names: tuple[str, ...]) -> tuple[Path, Path]:
    """A table with two missing values, and a prior file that says the same."""
    rows = [f"{s},{x}" for s, own in COUNTS.items() for x, n in zip(names, own, strict=True)
            for _ in range(n)]  # fmt: skip
    table, prior = folder / "t.csv", folder / "prior.json"
    table.write_text("\n".join(["s,x", *rows, "A,?", "B,?"]) + "\n")
    shares = {s: dict(zip(names, (n / 10 for n in own), strict=True)) for s, own in COUNTS.items()}
    prior.write_text(json.dumps({"secrets": shares}))
    return table, prior


def refused(plan: pf.Plan, edit: Edit, folder: Path, given: dict[str, Any]) -> bool:
    """Whether the referee cannot judge an edited plan, or finds its loss above epsilon."""
    data = json.loads(plan.to_json())
    edit(data)
    path = folder / "edited.json"
    path.write_text(json.dumps(data))
    try:
        return not referee.within(referee.judge(path, **given), path)
    except referee.Refused:
        return True


NUMBERS = ("0", "1", "2")
WORSE: list[tuple[Edit, str, Any, dict[str, Any]]] = [
    # A smaller scale; another entry of a channel.
    (lambda d: d.update(scale=d["scale"] * 0.9999), "exact", NUMBERS, {}),
    (lambda d: d.update(scale=d["scale"] * 0.9999), "exact", NAMES, {"order": NAMES}),
    (lambda d: d["channel"]["rows"].__setitem__(0, [[0, "0x1"]]), "channel", NUMBERS, {}),
    (lambda d: d["channel"]["rows"].__setitem__(0, [[0, "0x1"]]), "channel", NAMES, {}),
    # Levels in another order than that of the calibration; values further apart.
    (lambda d: d["support"].update(names=NAMES), "exact", NAMES, {"order": "alphabetical"}),
    (lambda d: d["support"].update(step="3/2"), "exact", NUMBERS, {}),
    # A value that is said to be missing.
    (lambda d: d["cleaning"].update(missing=["2.0"]), "exact", NUMBERS, {}),
    (lambda d: d["cleaning"]["missing"].append("High"), "channel", NAMES, {}),
    # A narrower region, and the scale for it.
    (
        lambda d: d.update(regions=[{"tv_radius": "1/1000"}], scale=1.1),
        "exact",
        NUMBERS,
        {"tv_radius": "0.1"},
    ),
]


@pytest.mark.parametrize("by", ["table", "priors"])
@pytest.mark.parametrize("edit, mechanism, names, options", WORSE)
def test_a_plan_made_worse_is_refused(
    edit: Edit, mechanism: str, names: Any, options: dict[str, Any], by: str, tmp_path: Path
) -> None:
    table, prior = files(tmp_path, names)
    learnt = pf.Prior.from_table(table, secret="s", public="x", missing=["?"], **options)
    plan = pf.calibrate(learnt, "0.5", mechanism)
    given: dict[str, Any] = {by: table if by == "table" else [prior]}
    if "tv_radius" in options:
        given["regions"] = [{"tv_radius": "1/10"}]
    assert not refused(plan, lambda data: None, tmp_path, given)
    assert refused(plan, edit, tmp_path, given)


def test_texts_for_missing_that_are_not_said_are_no_values(tmp_path: Path) -> None:
    for names in (NUMBERS, NAMES):
        table, _ = files(tmp_path, names)
        plan = pf.calibrate(
            pf.Prior.from_table(table, secret="s", public="x", missing=["?"]), "0.5"
        )
        assert refused(plan, lambda d: d["cleaning"].update(missing=[]), tmp_path, {"table": table})


def test_every_plan_that_a_test_saves_is_judged(
    referee_of_saved_plans: set[Any], tmp_path: Path
) -> None:
    prior = pf.Prior.from_counts(COUNTS, support=[0, 1, 2])
    plan = pf.calibrate(prior, "0.4321")
    plan.save(tmp_path / "plan.json")
    assert (plan.digest, plan.applied, None) in referee_of_saved_plans
    for region in ({"tv_radius": "0.01"}, {"confidence": "0.5"}):
        sure = pf.calibrate(prior.with_region(**region), "0.4321")
        sure.save(tmp_path / "sure.json", force=True)
        assert (sure.digest, sure.applied, None) in referee_of_saved_plans
    assert plan.scale is not None
    worse = replace(plan, applied=DiscreteLaplace(plan.scale / 2, Fraction(1)))
    with pytest.raises(pytest.fail.Exception, match="the referee finds a loss of"):
        worse.save(tmp_path / "worse.json")
