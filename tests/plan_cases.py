# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of plans: a small scenario, edited plans, small tables."""

import json
from typing import Any

import pandas as pd

import pufferfish as pf

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
