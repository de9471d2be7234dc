# SPDX-License-Identifier: Apache-2.0
"""The mechanisms that can be asked for by name; a new one is one new file and one line here."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from pufferfish.calibration.exact import exact
from pufferfish.calibration.l1 import l1
from pufferfish.calibration.one_sided import one_sided
from pufferfish.calibration.relaxed import relaxed
from pufferfish.calibration.wasserstein import wasserstein
from pufferfish.errors import InputError, did_you_mean, listed
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.scenario import Scenario


@dataclass(frozen=True)
class Method:
    """A way to calibrate, as the command line and the documentation list it.

    Attributes
    ----------
    name : str
        What it is asked for by.
    calibrate : callable
        ``(scenario, epsilon) -> mechanism``.
    summary : str
        One line on what the scale is.
    source : str
        Where it comes from.
    """

    name: str
    calibrate: Callable[[Scenario, Fraction], DiscreteLaplace]
    summary: str
    source: str


_METHODS = (
    Method("l1", l1, "range of the values over epsilon", "sensitivity; the paper's baseline"),
    Method(
        "wasserstein",
        wasserstein,
        "largest distance of the comonotone coupling over epsilon",
        "arXiv 1603.03977 and arXiv 2201.07388",
    ),
    Method(
        "relaxed",
        relaxed,
        "the paper's method: every column and every row of the coupling satisfied on average",
        "arXiv 2601.06385",
    ),
    Method("one-sided", one_sided, "the better of the two sides alone", "theory, section 3"),
    Method("exact", exact, "the least scale of Laplace noise there is", "theory, section 2"),
)

#: All mechanisms by name, from the most noise to the least.
REGISTRY: dict[str, Method] = {method.name: method for method in _METHODS}
#: What is used where nothing is asked for.
DEFAULT = "exact"


def method_named(name: str) -> Method:
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
