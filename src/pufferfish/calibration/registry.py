# SPDX-License-Identifier: Apache-2.0
"""The mechanisms by name; a new one is one new file and one line here."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.scenario import Scenario

MechanismName = Literal["l1", "wasserstein", "relaxed", "one-sided", "exact", "channel"]


@dataclass(frozen=True)
class NoiseMethod:
    """A way to calibrate noise, which needs numbers or an order."""

    name: str
    summary: str
    source: str
    calibrate: Callable[[Scenario, Fraction], DiscreteLaplace]
    robust: bool = False
    least: bool = False


@dataclass(frozen=True)
class ChannelMethod:
    """A way to calibrate a channel, also for levels without an order."""

    name: str
    summary: str
    source: str
    calibrate: Callable[..., Any]


#: All mechanisms by name: noise from the most to the least, then the channel.
REGISTRY: dict[str, NoiseMethod | ChannelMethod] = {}
#: The names of those that add noise.
NOISE: tuple[str, ...] = ()


def method_named(name: str) -> NoiseMethod | ChannelMethod:
    """Return the method of a name (``one_sided`` is also understood)."""
    raise NotImplementedError


def default_for(scenario: Scenario) -> str:
    """Return the name of the default mechanism of a scenario."""
    raise NotImplementedError


def why_not(method: NoiseMethod | ChannelMethod, scenario: Scenario) -> str | None:
    """Return why a method does not apply to a scenario, or None where it does."""
    raise NotImplementedError


def applicable(scenario: Scenario) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names that ``all`` stands for, and why each other one is left out."""
    raise NotImplementedError
