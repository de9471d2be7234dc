# SPDX-License-Identifier: Apache-2.0
"""Channels for priors that are only known to lie in a region: private at every vertex of it."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from channel_checks import HALF, costs_of, is_private, least_cost, pooled, scenarios
from pufferfish.calibration import channel_program
from pufferfish.calibration.channel import channel
from pufferfish.errors import PufferfishError
from pufferfish.priors.ambiguity import Region
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

SOME = Prior.from_counts({"a": [40, 20, 9, 31], "b": [10, 30, 25, 35]}, support=range(4))
RULES = ({"confidence": "0.9"}, {"tv_radius": "0.01"}, {"tv_radius": "0.3"}, {})


def without_regions(scenario: Scenario) -> Scenario:
    return scenario.with_rules([None] * len(scenario.priors))


@settings(max_examples=25)
@given(scenarios(values=4, secrets=3, rules=RULES))
def test_channels_hold_at_every_vertex_and_cost_no_more(case: tuple[Scenario, Fraction]) -> None:
    """The dual of the region is as good as all of its vertices, written out."""
    scenario, epsilon = case
    solution = channel(scenario, epsilon, cost="squared")
    assert is_private(scenario, solution.mechanism, epsilon)
    least = least_cost(scenario, epsilon, costs_of(scenario, "squared"), pooled(scenario))
    assert float(solution.cost) == pytest.approx(least, rel=1e-6, abs=1e-6)
    assert solution.distortion.gap <= 1e-6 * max(1.0, least)
    plain = channel(without_regions(scenario), epsilon, cost="squared")
    if any(rule is not None for rule in scenario.rules) and solution.cost < plain.cost * (
        1 - Fraction(1, 10**6)
    ):
        # Only values that nobody can take, and the average row, make a difference downwards.
        assert (np.concatenate([p.counts for p in scenario.priors]).sum(axis=0) == 0).any()


def test_more_confidence_costs_more() -> None:
    plain = channel(Scenario(SOME), HALF).cost
    for rules in (
        [{"confidence": c} for c in ("0.5", "0.9", "0.99")],
        [{"tv_radius": r} for r in ("0.001", "0.05", "0.5")],
    ):
        costs = [channel(Scenario(SOME.with_region(**rule)), HALF).cost for rule in rules]
        assert all(a < b for a, b in pairwise([plain, *costs]))
    # Where nothing is known at all, nothing is published of the value.
    nothing = channel(Scenario(SOME.with_region(tv_radius="1")), HALF)
    points = Scenario(Prior.from_mapping({f"s{x}": {x: 1} for x in range(4)}))
    hidden = channel(points, HALF, weights=pooled(Scenario(SOME)))
    assert float(nothing.cost) == pytest.approx(float(hidden.cost), rel=1e-9)


def test_mutant_the_point_is_taken_for_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that forgets the room is refused, or its repair costs what the gap says."""
    scenario = Scenario(SOME.with_region(confidence="0.95"))
    assert is_private(scenario, channel(scenario, HALF).mechanism, HALF)
    assert not is_private(scenario, channel(without_regions(scenario), HALF).mechanism, HALF)

    def without_room(builder: object, region: Region) -> tuple[dict[int, Fraction], ...]:
        middle = [2 * a + b for a, b in zip(region.least, region.room, strict=True)]
        point = {x: Fraction(mass, sum(middle)) for x, mass in enumerate(middle)}
        return point, point

    monkeypatch.setattr(channel_program, "_ends", without_room)
    with pytest.raises(PufferfishError, match="too far from private"):
        channel(scenario, HALF)


def test_side_conditions_hold_with_regions() -> None:
    for rule in ({"confidence": "0.9"}, {"tv_radius": "0.05"}):
        scenario = Scenario(SOME.with_region(**rule))
        for options in ({"invariant": True}, {"unbiased": True}, {"min_keep": "0.2"}):
            solution = channel(scenario, HALF, **options)  # type: ignore[arg-type]  # mixed kinds
            assert is_private(scenario, solution.mechanism, HALF)
            assert len(solution.distortion.conditions) == 1
