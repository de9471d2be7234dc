# SPDX-License-Identifier: Apache-2.0
"""The mechanisms that can be asked for by name; a new one is one new file and one line here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.calibration.channel import ChannelSolution, channel
from pufferfish.calibration.exact import exact
from pufferfish.calibration.l1 import l1
from pufferfish.calibration.one_sided import one_sided
from pufferfish.calibration.relaxed import relaxed
from pufferfish.calibration.robust_exact import robust_exact
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.regions import Concrete, has_region
from pufferfish.scenario import Scenario
from pufferfish.support import Levels


@dataclass(frozen=True)
class Method:
    """A way to calibrate, as the command line and the documentation list it.

    Attributes
    ----------
    name : str
        What it is asked for by.
    summary : str
        One line on what it computes.
    source : str
        Where it comes from.
    """

    name: str
    summary: str
    source: str


@dataclass(frozen=True)
class NoiseMethod(Method):
    """Adds noise, which needs numbers or an order.

    Attributes
    ----------
    calibrate : callable
        ``(scenario, epsilon) -> noise``.
    robust : callable or None
        ``(scenario, epsilon, regions) -> noise`` that holds for every prior of the regions, where
        there is such a thing.
    least : bool
        Whether it is the least noise there is.
    """

    calibrate: Callable[[Scenario, Fraction], DiscreteLaplace]
    robust: Callable[[Scenario, Fraction, Sequence[Concrete]], DiscreteLaplace] | None = None
    least: bool = False


@dataclass(frozen=True)
class ChannelMethod(Method):
    """Publishes values or levels in the place of others, also where these have no order.

    Attributes
    ----------
    calibrate : callable
        ``(scenario, epsilon, *, regions, **options) -> solution``.
    """

    calibrate: Callable[..., ChannelSolution]


_METHODS: tuple[NoiseMethod | ChannelMethod, ...] = (
    NoiseMethod("l1", "range of the values over epsilon", "sensitivity; the paper's baseline", l1),
    NoiseMethod(
        "wasserstein",
        "largest distance of the comonotone coupling over epsilon",
        "arXiv 1603.03977 and arXiv 2201.07388",
        wasserstein,
    ),
    NoiseMethod(
        "relaxed",
        "the paper's method: every column and every row of the coupling satisfied on average",
        "arXiv 2601.06385",
        relaxed,
    ),
    NoiseMethod("one-sided", "the better of the two sides alone", "theory, section 3", one_sided),
    NoiseMethod(
        "exact",
        "the least scale of Laplace noise there is",
        "theory, section 2",
        exact,
        robust=robust_exact,
        least=True,
    ),
    ChannelMethod(
        "channel",
        "the least expected distortion there is: publishes values in the place of others",
        "theory, section 4",
        channel,
    ),
)

#: All mechanisms by name: noise from the most to the least, then the channel.
REGISTRY: dict[str, NoiseMethod | ChannelMethod] = {method.name: method for method in _METHODS}
#: Those of them that add noise.
NOISE = tuple(name for name, method in REGISTRY.items() if isinstance(method, NoiseMethod))
#: What is used where nothing is asked for: for numbers and ordered levels, and for other levels.
DEFAULT, DEFAULT_FOR_LEVELS = "exact", "channel"
#: The most values for which ``all`` includes the channel: beyond it takes more than some seconds.
MOST_VALUES_FOR_ALL = 100
#: The same where it is to hold for a whole region of priors, or for all rows of one person, which
#: takes much longer.
MOST_VALUES_FOR_ALL_ROBUST = 30


def method_named(name: str) -> NoiseMethod | ChannelMethod:
    """Return the method of a name (``one_sided`` is also understood).

    Raises
    ------
    InputError
        If there is none; names the nearest.
    """
    if not isinstance(name, str):
        raise InputError(
            f"a mechanism is asked for by name ({listed(REGISTRY)}), but {name!r} was given"
        )
    key = name.strip().casefold().replace("_", "-")
    if key not in REGISTRY:
        raise InputError(
            f"there is no mechanism {name!r}{did_you_mean(key, REGISTRY)}; "
            f"the mechanisms are {listed(REGISTRY)}"
        )
    return REGISTRY[key]


def default_for(scenario: Scenario) -> str:
    """Return the name of the mechanism that is used where nothing is asked for."""
    return DEFAULT_FOR_LEVELS if _without_order(scenario) else DEFAULT


def why_not(method: NoiseMethod | ChannelMethod, scenario: Scenario) -> str | None:
    """Return why a mechanism cannot be had for a scenario, or None where it can."""
    if isinstance(method, ChannelMethod):
        return None
    if _without_order(scenario):
        return (
            f"{method.name} adds noise to numbers, but the levels have no order, so none of them "
            "is nearer to one level than to another; use the mechanism channel, which publishes "
            "levels, or state an order with --order V1,V2,... (order=[...])"
        )
    if method.robust is None and has_region(scenario):
        robust = listed(name for name, other in REGISTRY.items() if _is_robust(other))
        return (
            f"{method.name} cannot honour a region (confidence or tv_radius): its condition is on "
            f"one coupling of one known prior; the mechanisms that can are {robust}"
        )
    return None


def applicable(scenario: Scenario) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return what ``all`` stands for, and why the others are left out.

    Returns
    -------
    names : tuple of str
        In the order of the registry.
    left_out : dict
        The reason by name.
    """
    left_out = {}
    for name, method in REGISTRY.items():
        reason = why_not(method, scenario)
        if reason is None and isinstance(method, ChannelMethod) and _takes_long(scenario):
            reason = (
                f"its linear program takes long for {scenario.support.size} values; "
                "ask for it by name"
            )
        if reason is not None:
            left_out[name] = reason
    return tuple(name for name in REGISTRY if name not in left_out), left_out


def _is_robust(method: NoiseMethod | ChannelMethod) -> bool:
    return isinstance(method, ChannelMethod) or method.robust is not None


def _without_order(scenario: Scenario) -> bool:
    return isinstance(scenario.support, Levels) and not scenario.support.ordered


def _takes_long(scenario: Scenario) -> bool:
    longer = has_region(scenario) or any(prior.units for prior in scenario.priors)
    most = MOST_VALUES_FOR_ALL_ROBUST if longer else MOST_VALUES_FOR_ALL
    return scenario.support.size > most
