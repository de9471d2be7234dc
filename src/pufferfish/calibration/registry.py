# SPDX-License-Identifier: Apache-2.0
"""The mechanisms by name; a new one is one new file, and here its import, name and line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from numpy.linalg import LinAlgError

from pufferfish.calibration.exact import exact
from pufferfish.calibration.l1 import l1
from pufferfish.calibration.relaxed import one_sided, relaxed
from pufferfish.calibration.root import Proposal
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.errors import InputError, PufferfishError, did_you_mean, listed
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: The most values for which ``all`` includes the channel: beyond it takes more than some seconds,
#: and much longer for a region or for all rows of one person.
_MOST_VALUES, _MOST_VALUES_ROBUST = 100, 30


@dataclass(frozen=True)
class Method:
    """A way to calibrate noise, which needs numbers or an order; or a channel, also for levels.

    ``least``: there is no less noise. That, and channels, can hold for a region of priors.
    """

    name: str
    summary: str
    calibrate: Callable[..., Any]
    channel: bool = False
    least: bool = False


#: Options that are about single values: they go with ``best_for="kept"`` alone, and imply it.
_OF_KEPT = ("cost", "outputs", "invariant", "unbiased")


def purpose(ordered: bool, options: Mapping[str, Any]) -> Any:
    """Return what a channel with these options is best for: a name, or statistics.

    By default ``kept``, or ``frequencies`` where levels have no order. Options that are about
    single values imply the one and clash with all others.
    """
    of_kept = [name for name in _OF_KEPT if name in options]
    found = options.get("best_for")
    if found is None:
        return "kept" if ordered or of_kept else "frequencies"
    found = found.strip().lower() if isinstance(found, str) else found
    if of_kept and not (isinstance(found, str) and found == "kept"):
        raise InputError(
            f"{listed(of_kept)}: for best_for='kept' only (--best-for kept), not for a channel "
            "that is best for estimates"
        )
    return found


def _channel(scenario: Scenario, epsilon: Fraction, **options: Any) -> Proposal:
    """Return the optimal channel; the programs are loaded only where they are asked for."""
    best_for = purpose(scenario.support.ordered, options)
    options.pop("best_for", None)
    if isinstance(best_for, str) and best_for == "kept":
        from pufferfish.calibration.channel import channel

        return channel(scenario, epsilon, **options)
    from threadpoolctl import threadpool_limits

    from pufferfish.calibration.best_for import best_for as best_channel

    try:
        with threadpool_limits(1):  # on a busy machine threads for small matrices mostly wait
            return best_channel(scenario, epsilon, best_for, **options)
    except (ArithmeticError, LinAlgError):
        raise PufferfishError(
            "the best channel for these estimates is beyond what doubles can find; take a larger "
            "epsilon, fewer values, or best_for='kept' (--best-for kept)"
        ) from None


MechanismName = Literal["l1", "wasserstein", "relaxed", "one-sided", "exact", "channel"]

_METHODS: tuple[Method, ...] = (
    Method("l1", "range of the values over epsilon", l1),
    Method("wasserstein", "largest distance of the coupling over epsilon", wasserstein),
    Method("relaxed", "every column and row of the coupling on average", relaxed),
    Method("one-sided", "the better side of the coupling", one_sided),
    Method("exact", "the least Laplace noise", exact, least=True),
    Method("channel", "the best estimates, or the least expected distortion", _channel, True),
)

#: All mechanisms by name: noise from the most to the least, then the channel.
REGISTRY: dict[str, Method] = {method.name: method for method in _METHODS}
#: The names of those that add noise.
NOISE = tuple(name for name, method in REGISTRY.items() if not method.channel)


def method_named(name: str) -> Method:
    """Return the method of a name (``one_sided`` is also understood), or refuse it."""
    key = str(name).strip().casefold().replace("_", "-")
    if key not in REGISTRY:
        raise InputError(
            f"there is no mechanism {name!r}{did_you_mean(key, REGISTRY)}; "
            f"the mechanisms are {listed(REGISTRY)}"
        )
    return REGISTRY[key]


def default_for(scenario: Scenario, options: Mapping[str, Any]) -> MechanismName:
    """Return the mechanism that is used where none is named: an option of channels asks for one."""
    of_channel = any(value is not None and value is not False for value in options.values())
    return "exact" if scenario.support.ordered and not of_channel else "channel"


def check_applies(method: Method, scenario: Scenario) -> None:
    """Refuse a method that does not apply to a scenario of one column."""
    if method.channel:
        return
    lattice_of(scenario.support, f"{method.name}, unlike the mechanism channel,")
    if scenario.has_region and not method.least:
        raise InputError(
            f"{method.name} cannot honour a region (confidence or tv_radius); the mechanisms that "
            "can are exact, channel"
        )


def applicable(scenario: Scenario) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names that ``all`` stands for, and why each other one is left out."""
    left_out: dict[str, str] = {}
    for name, method in REGISTRY.items():
        try:
            check_applies(method, scenario)
        except InputError as error:
            left_out[name] = str(error)
    slow, size = scenario.has_region or scenario.unit is not None, scenario.support.size
    if size > (_MOST_VALUES_ROBUST if slow else _MOST_VALUES):
        left_out["channel"] = f"its linear program takes long for {size} values; ask for it by name"
    return tuple(name for name in REGISTRY if name not in left_out), left_out
