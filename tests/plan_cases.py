# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of plans: a small scenario, edited plans, small tables, records."""

import json
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

import pufferfish as pf
from pufferfish.plans.record import write_record
from pufferfish.release.pipeline import release_file

MASSES = {"a": {"0": ".5", "1": ".3", "2": ".2"}, "b": {"0": ".2", "1": ".3", "2": ".5"}}
SCENARIO = pf.Scenario(pf.Prior.from_mapping(MASSES))


def edited(plan: pf.Plan, **changes: Any) -> pf.Plan:
    """A plan whose file was edited."""
    return pf.Plan.from_json(json.dumps(json.loads(plan.to_json()) | changes))


def table(*rows: tuple[object, ...]) -> pd.DataFrame:
    """Rows of a secret s, a public value x, and the id of a person where it is given."""
    return pd.DataFrame(rows, columns=["s", "x", "id"][: len(rows[0])]).astype(str)


def learnt(frame: Any, public: str = "x", **options: Any) -> pf.Prior:
    """The prior of such a table."""
    return pf.Prior.from_table(frame, secret="s", public=public, **options)


def recorded(
    plan: pf.Plan, source: Any, folder: Path, *, publish: bool = False, keep: Any = (),
    seed: int | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Release a table as test.csv of a folder, and return what record.json beside it tells."""
    spec, path = plan.spec(**options), folder / "record.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = release_file(source, folder / "test.csv", spec, keep, seed=seed, force=True)
    write_record(path, plan, report, spec, publish=publish, force=True)
    told: dict[str, Any] = json.loads(path.read_text())
    return told
