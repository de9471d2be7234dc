# SPDX-License-Identifier: Apache-2.0
"""Tables for notebooks hold the numbers, and names as text."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import SeededWarning


def cells(source: str) -> list[list[str]]:
    table = ET.fromstring(source)
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_a_prior_is_a_table_of_shares() -> None:
    prior = pf.Prior.from_counts({"<b>a": [3, 2], "c&": [1, 4]}, support=["</td>", "y" * 100])
    assert cells(prior._repr_html_()) == [
        ["value", "<b>a", "c&"], ["</td>", "0.6", "0.2"], ["y" * 57 + "...", "0.4", "0.8"],
    ]  # fmt: skip


def test_long_tables_end_in_dots() -> None:
    prior = pf.Prior.from_counts({"a": [1] * 50, "b": [1] * 50}, support=range(50))
    rows = cells(prior._repr_html_())
    assert len(rows) == 1 + 40 + 1
    assert rows[-1] == ["...", "", ""]


def test_a_plan_is_a_table_of_facts() -> None:
    prior = pf.Prior.from_counts({"a": [3, 2], "b": [1, 4]}, support=[0, 1])
    plan = pf.calibrate(prior, 1)
    facts = dict(cells(plan._repr_html_()))
    assert facts["noise of scale"] == repr(plan.scale)
    assert facts["loss at most"].endswith(" (proved)")
    assert facts["pairs"] == "(a, b)"
    channel = pf.calibrate(prior, 1, "channel")
    assert f"{100 * (channel.keep_rate or 0):.4g} %" in channel._repr_html_()


def test_an_estimate_is_a_table_of_figures() -> None:
    prior = pf.Prior.from_counts({"a": [3, 2], "b": [1, 4]}, support=[0, 1])
    plan = pf.calibrate(prior, 1)
    with pytest.warns(SeededWarning):
        released = plan.release(np.array([0, 1] * 300), seed=1)
    found = plan.estimate(released)
    rows = cells(found._repr_html_())
    assert rows[1][:2] == ["mean", f"{found.mean.estimate:.4g}"]
    assert len(rows) == 1 + len(found.to_dicts())
