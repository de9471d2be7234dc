# SPDX-License-Identifier: Apache-2.0
"""Comparisons hold the plans that calibrate makes, and what the command line says."""

import pytest

import pufferfish as pf
from pufferfish.errors import InputError
from pufferfish.paper import block


def test_plans_are_those_of_calibrate() -> None:
    scenario = block("student").scenario
    found = pf.compare(scenario, ["0.1", "1/2"], ["exact", "relaxed"])
    made = [(p.mechanism, str(p.epsilon_exact), p.scale) for p in found.plans]
    assert made == [
        (name, epsilon, pf.calibrate(scenario, epsilon, name).scale)
        for epsilon in ("1/10", "1/2") for name in ("exact", "relaxed")
    ]  # fmt: skip
    assert pf.compare(scenario, 1, "l1").plans[0].scale == 1


def test_tables_hold_what_programs_are_told() -> None:
    found = pf.compare(block("student").scenario, "0.3")
    names = [row["mechanism"] for row in found.to_dicts()]
    assert names == ["l1", "wasserstein", "relaxed", "one-sided", "exact", "channel", "channel"]
    frame = found.to_pandas()
    assert frame["mechanism"].tolist() == names
    assert frame["loss"].tolist() == [plan.loss for plan in found.plans]
    assert found.to_arrow().num_rows == 7
    lines = repr(found).splitlines()
    assert len(lines) == 8
    assert lines[5].split()[:2] == ["0.3", "exact"]
    assert found._repr_html_().count("<tr>") == 8


def test_what_does_not_apply_is_said() -> None:
    unordered = pf.Prior.from_counts({"a": [3, 2, 1], "b": [1, 4, 2]}, support=["x", "y", "z"])
    found = pf.compare(unordered, 1)
    assert {plan.mechanism for plan in found.plans} == {"channel"}
    assert "exact" in found.left_out
    assert "left out" in repr(found)
    with pytest.raises(InputError, match="order"):
        pf.compare(unordered, 1, ["exact"])
    with pytest.raises(InputError, match="at least one"):
        pf.compare(unordered, [])
    with pytest.raises(InputError, match="exact"):
        pf.compare(unordered, 1, "exat")
