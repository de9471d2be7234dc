# SPDX-License-Identifier: Apache-2.0
"""Shared by tests of channels that publish sets: one made by hand, private for every prior."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import pufferfish as pf
from pufferfish.mechanisms.channel import Channel
from pufferfish.plans.guarantee import Distortion
from pufferfish.support import Levels, Support, set_name


def sets_and_labels(support: Support) -> tuple[Channel, Channel]:
    """All pairs of at least three values, and all of them: 8 or 5 parts in some, whatever x is.

    A label is the lesser member of a pair two times in three; of all values any.
    """
    n = support.size
    members = [*combinations(range(n), 2), tuple(range(n))]
    names = Levels(tuple(set_name(support, each) for each in members))
    rows = [[8 if x in each and len(each) == 2 else 5 for each in members] for x in range(n)]
    label = [[(y in each) * (1 + (y == each[0] and n > len(each))) for y in range(n)]
             for each in members]  # fmt: skip
    return Channel(support, names, rows), Channel(names, support, label)


def set_plan(prior: pf.Prior, epsilon: str = "0.48", **claims: Any) -> pf.Plan:
    """The plan of such a channel: its loss is at most ln 1.6 = .470004."""
    scenario = pf.Scenario(prior)
    channel, labels = sets_and_labels(scenario.support)
    weights = [Fraction(1, scenario.support.size)] * scenario.support.size
    claims.setdefault("labels", labels)
    claims["distortion"] = Distortion.of(
        channel.then(labels), Fraction(5, 2), "frequencies", weights, 0.5, bound=2.0
    )
    certificate = pf.certify(scenario, channel, epsilon)
    return pf.Plan.of(scenario, "channel", channel, Fraction(epsilon), certificate, **claims)
