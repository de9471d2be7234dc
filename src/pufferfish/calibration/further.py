# SPDX-License-Identifier: Apache-2.0
"""Further releases beside previous ones: everything together stays within epsilon.

The joint loss never rises with the scale of further noise (theory, section 6), so the least noise
has a root of its own. A channel, and noise that is not the least, is calibrated for an epsilon of
its own, the largest that fits.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from pufferfish.calibration.channel import ChannelSolution
from pufferfish.calibration.exact import least_factor
from pufferfish.calibration.registry import ChannelMethod, Method
from pufferfish.calibration.root import raised
from pufferfish.errors import CheckFailed, InputError, counted
from pufferfish.loss.certificate import LossBound
from pufferfish.loss.composition import Composition
from pufferfish.loss.kernel import Mechanism
from pufferfish.loss.worst_case import worst_case
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import float_up, show
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: What is left of epsilon is nothing where it is a smaller share.
_NOTHING = Fraction(1, 10**9)
#: How often a mechanism is calibrated at most.
_TRIES = 12
#: The most values for which there is a channel that is private for any prior.
_MOST_LOCAL = 30

T = TypeVar("T")
#: Further noises: the position of the column of each, and the ratio of its scale.
Wanted = Sequence[tuple[int, Fraction]]


@dataclass(frozen=True, eq=False)
class Further:
    """One mechanism, and the bound of it and all other releases, which is at most epsilon."""

    mechanism: Mechanism
    bound: LossBound | None
    solution: ChannelSolution | None = None
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> Fraction:
        """The expected cost of a channel; 0 for noise."""
        return Fraction(0) if self.solution is None else self.solution.cost


def per_release_epsilon(
    epsilon: Fraction, attempt: Callable[[Fraction], T | None], tries: int
) -> tuple[T, Fraction] | None:
    """Return what fits for the largest epsilon of its own, found by halving, and that epsilon.

    ``attempt`` calibrates for an epsilon of its own and returns None where that does not fit; None
    is returned where nothing does. The first attempt is epsilon itself: what cannot be calibrated
    for that is an error; later it only means that larger ones are left.
    """
    best, low, high, own = None, Fraction(0), epsilon, epsilon
    for count in range(tries):
        try:
            found = attempt(own)
        except (InputError, CheckFailed):
            if count == 0:
                raise
            low = own
        else:
            if found is None:
                high = own
            else:
                best, low = (found, own), own
                if own == epsilon:
                    break
        own = (low + high) / 2
    return best


def further_release(
    before: Composition,
    at: int,
    epsilon: Fraction,
    method: Method,
    options: Mapping[str, Any],
) -> Further:
    """Return a mechanism for the column at a position that fits beside previous releases.

    Raises
    ------
    CheckFailed
        If nothing fits.
    """
    if isinstance(method, ChannelMethod):
        return _further_channel(before, at, epsilon, method, options)
    if method.least or _left(before, epsilon) <= 0:
        (noise,), bound = least_noises(before, [(at, Fraction(1))], epsilon)
        return Further(noise, bound)
    scenario = before.scenario.of_column(before.scenario.product.columns[at])
    scales = [m.scale for m in before.releases.get(at, ()) if isinstance(m, DiscreteLaplace)]
    own = method.calibrate(scenario, epsilon).scale
    if len(scales) == len(before) and all([own, *scales]) and scenario is before.scenario:
        # In one column with noise only, 1 / theta is what is left of 1 / theta(epsilon).
        rate = 1 / Fraction(own) - sum(1 / Fraction(scale) for scale in scales)
        if rate > 0 and not scenario.unit:
            (noise,), bound = _proved(before, [(at, Fraction(1))], epsilon, 1 / rate)
            return Further(noise, bound)

    def attempt(own: Fraction) -> Further | None:
        return _fitting(before, at, epsilon, method.calibrate(scenario, own))

    found = per_release_epsilon(epsilon, attempt, _TRIES)
    if found is None:
        raise _nothing_fits(before, epsilon)
    return found[0]


def least_noises(
    before: Composition, wanted: Wanted, epsilon: Fraction
) -> tuple[list[DiscreteLaplace], LossBound]:
    """Return noises of the least scales in given ratios that fit beside previous releases.

    Raises
    ------
    CheckFailed
        If none do.
    """
    left = _left(before, epsilon)
    if _with(before, wanted, Fraction(0)).bound().at_most(epsilon):
        return _proved(before, wanted, epsilon, Fraction(0))
    if left <= 0:
        raise _nothing_left(before, epsilon)
    rates: dict[int, Fraction] = {}
    for at, ratio in wanted:
        step = lattice_of(before.scenario.product.axes[at]).step
        rates[at] = rates.get(at, Fraction(0)) + step / ratio
    others = sum((worst_case(o.mechanism, o.support) or 0 for o in before.others), Fraction(0))
    known = epsilon - most_rows(before) * others
    unknown = max(set(before.rows) - _known_rows(before), default=0)
    factor = least_factor(before.scenario, rates, before.releases, known, left, unknown)
    return _proved(before, wanted, epsilon, factor)


def most_rows(before: Composition) -> int:
    """Return the most rows that one person may have."""
    return max({1, *_known_rows(before), *before.rows})


def _known_rows(before: Composition) -> set[int]:
    return {stratum.rows for strata in before.scenario.strata for stratum in strata}


def _noises(before: Composition, wanted: Wanted, factor: Fraction) -> list[DiscreteLaplace]:
    axes = before.scenario.product.axes
    return [
        DiscreteLaplace(float_up(factor * ratio), lattice_of(axes[at]).step) for at, ratio in wanted
    ]


def _with(before: Composition, wanted: Wanted, factor: Fraction) -> Composition:
    for (at, _), noise in zip(wanted, _noises(before, wanted, factor), strict=True):
        before = before.with_release(at, noise)
    return before


def _proved(
    before: Composition, wanted: Wanted, epsilon: Fraction, factor: Fraction
) -> tuple[list[DiscreteLaplace], LossBound]:
    """Return noises at or above a factor that are proved to fit, with the bound of everything."""

    def judge(scale: float) -> tuple[LossBound, float]:
        bound = _with(before, wanted, Fraction(scale)).bound()
        return bound, 0.0 if bound.at_most(epsilon) else max(
            bound.value / float(epsilon) - 1, 1e-16
        )

    scale, bound = raised(float_up(factor), judge)
    return _noises(before, wanted, Fraction(scale)), bound


def _fitting(
    before: Composition,
    at: int,
    epsilon: Fraction,
    mechanism: Mechanism,
    solution: ChannelSolution | None = None,
) -> Further | None:
    bound = before.with_release(at, mechanism).bound()
    return Further(mechanism, bound, solution) if bound.at_most(epsilon) else None


def _further_channel(
    before: Composition,
    at: int,
    epsilon: Fraction,
    method: ChannelMethod,
    options: Mapping[str, Any],
) -> Further:
    """Return the channel of the largest epsilon of its own, or a cheaper one for any prior.

    k rows of any prior leave a channel that is private for all priors within k times its epsilon.
    """
    left = _left(before, epsilon)
    scenario = before.scenario.of_column(before.scenario.product.columns[at])
    solutions: list[ChannelSolution] = []

    def attempt(own: Fraction) -> Further | None:
        solutions.append(method.calibrate(scenario, own, **options))
        return _fitting(before, at, epsilon, solutions[-1].channel, solutions[-1])

    found = per_release_epsilon(epsilon, attempt, _TRIES if left > 0 else 1)
    if (found is None or found[1] < epsilon) and left > 0 and scenario.support.size <= _MOST_LOCAL:
        own = left / most_rows(before) * (1 - Fraction(1, 2**40))
        given = {**options, "weights": list(solutions[0].weights)}
        with suppress(InputError):  # the conditions may be too much for it
            solution = method.calibrate(_every_value(scenario), own, **given)
            made = _fitting(before, at, epsilon, solution.channel, solution)
            if made is not None and (found is None or made.cost < found[0].cost):
                found = made, own
    if found is None:
        raise _nothing_fits(before, epsilon) if left > 0 else _nothing_left(before, epsilon)
    made, own = found
    notes = made.solution.notes if made.solution is not None else ()
    if own < epsilon:
        notes += (f"the channel is calibrated for an epsilon of its own, {float(own):.6g}",)
    return replace(made, notes=notes)


def _every_value(scenario: Scenario) -> Scenario:
    """Return the scenario in which every value is a secret: what hides it is private anyhow."""
    n = scenario.support.size
    names = tuple(map(str, range(n)))
    prior = Prior(scenario.product, names, np.eye(n, dtype=np.int64), (1,) * n)
    return Scenario(prior)


def _left(before: Composition, epsilon: Fraction) -> Fraction:
    """Return what previous releases leave of epsilon; 0 where that is next to nothing."""
    bound = before.bound()
    if bound.upper is None or bound.upper > epsilon:
        raise _nothing_left(before, epsilon)
    left = epsilon - bound.upper
    return left if left >= epsilon * _NOTHING else Fraction(0)


def _nothing_left(before: Composition, epsilon: Fraction) -> CheckFailed:
    bound = before.bound()
    return CheckFailed(
        f"nothing, or less than a billionth, of epsilon {show(epsilon)} is left beside "
        f"{counted(len(before), 'previous release')} with a loss of up to {bound.value:.6g} "
        f"({bound.kind})"
    )


def _nothing_fits(before: Composition, epsilon: Fraction) -> CheckFailed:
    rows = most_rows(before)
    whose = f" for {counted(rows, 'row')} of one person" if rows > 1 else ""
    return CheckFailed(
        f"no further release was found that fits within epsilon {show(epsilon)}{whose} beside "
        f"{counted(len(before), 'previous release')}"
    )
