# SPDX-License-Identifier: Apache-2.0
"""Further releases beside previous ones: everything together stays within epsilon.

The joint loss never rises with the scale of further noise (theory, section 6), so the least noise
has a root of its own. A channel, and noise that is not the least, is calibrated for an epsilon of
its own, the largest that fits.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from pufferfish.calibration.exact import least_factor
from pufferfish.calibration.proposal import Proposal
from pufferfish.calibration.registry import ChannelMethod, Method
from pufferfish.calibration.root import raised
from pufferfish.errors import CheckFailed, InputError, counted
from pufferfish.loss.certificate import LossBound
from pufferfish.loss.composition import Composition
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
) -> Proposal:
    """Return a mechanism for the column at a position that fits beside previous releases."""
    if isinstance(method, ChannelMethod):
        return _further_channel(before, at, epsilon, method, options)
    wanted = [(at, Fraction(1))]
    if method.least or _left(before, epsilon) <= 0:
        return least_noises(before, wanted, epsilon)[0]
    scenario = before.scenario.of_column(before.scenario.product.columns[at])
    scales = [m.scale for m in before.releases.get(at, ()) if isinstance(m, DiscreteLaplace)]
    scales.append(method.calibrate(scenario, epsilon).scale)
    if len(scales) == len(before) + 1 and all(scales) and scenario is before.scenario:
        # In one column with noise only, 1 / theta is what is left of 1 / theta(epsilon).
        *others, own = (1 / Fraction(scale) for scale in scales)
        if own > sum(others) and not scenario.unit:
            return _proved(before, wanted, epsilon, 1 / (own - sum(others)))[0]

    def attempt(own: Fraction) -> Proposal | None:
        return _fitting(before, at, epsilon, Proposal(method.calibrate(scenario, own)))

    found = per_release_epsilon(epsilon, attempt, _TRIES)
    if found is None:
        raise _nothing_fits(before, epsilon)
    return found[0]


def least_noises(before: Composition, wanted: Wanted, epsilon: Fraction) -> list[Proposal]:
    """Return noises of the least scales in given ratios that fit beside previous releases."""
    left = _left(before, epsilon)
    if _with(before, wanted, 0.0).bound().at_most(epsilon):
        return _proved(before, wanted, epsilon, Fraction(0))
    if left <= 0:
        raise _nothing_fits(before, epsilon)
    rates: dict[int, Fraction] = {}
    for at, ratio in wanted:
        step = lattice_of(before.scenario.product.axes[at]).step
        rates[at] = rates.get(at, Fraction(0)) + step / ratio
    others = sum((worst_case(o.mechanism, o.support) or 0 for o in before.others), Fraction(0))
    known = epsilon - most_rows(before) * others
    unknown = max(set(before.rows) - _known_rows(before.scenario), default=0)
    factor = least_factor(before.scenario, rates, before.releases, known, left, unknown)
    return _proved(before, wanted, epsilon, factor)


def most_rows(before: Composition) -> int:
    """Return the most rows that one person may have."""
    return max({*_known_rows(before.scenario), *before.rows})


def _known_rows(scenario: Scenario) -> set[int]:
    return {1, *(stratum.rows for strata in scenario.strata for stratum in strata)}


def _noises(before: Composition, wanted: Wanted, factor: float) -> list[DiscreteLaplace]:
    axes, exact = before.scenario.product.axes, Fraction(factor)
    return [DiscreteLaplace(float_up(exact * r), lattice_of(axes[at]).step) for at, r in wanted]


def _with(before: Composition, wanted: Wanted, factor: float) -> Composition:
    for (at, _), noise in zip(wanted, _noises(before, wanted, factor), strict=True):
        before = before.with_release(at, noise)
    return before


def _proved(
    before: Composition, wanted: Wanted, epsilon: Fraction, factor: Fraction
) -> list[Proposal]:
    """Return noises at or above a factor that are proved to fit, with the bound of everything."""

    def judge(factor: float) -> tuple[LossBound, bool, float]:
        bound = _with(before, wanted, factor).bound()
        return bound, bound.at_most(epsilon), bound.value

    scale, bound = raised(float_up(factor), epsilon, judge)
    return [Proposal(noise, bound) for noise in _noises(before, wanted, scale)]


def _fitting(
    before: Composition, at: int, epsilon: Fraction, proposal: Proposal
) -> Proposal | None:
    bound = before.with_release(at, proposal.mechanism).bound()
    return replace(proposal, bound=bound) if bound.at_most(epsilon) else None


def _further_channel(
    before: Composition,
    at: int,
    epsilon: Fraction,
    method: ChannelMethod,
    options: Mapping[str, Any],
) -> Proposal:
    """Return the channel of the largest epsilon of its own, or a cheaper one for any prior.

    k rows of any prior leave a channel that is private for all priors within k times its epsilon.
    """
    left = _left(before, epsilon)
    scenario = before.scenario.of_column(before.scenario.product.columns[at])
    tried: list[Proposal] = []

    def attempt(own: Fraction) -> Proposal | None:
        tried.append(method.calibrate(scenario, own, **options))
        return _fitting(before, at, epsilon, tried[-1])

    found = per_release_epsilon(epsilon, attempt, _TRIES if left > 0 else 1)
    if (found is None or found[1] < epsilon) and left > 0 and scenario.support.size <= _MOST_LOCAL:
        own = left / most_rows(before) * (1 - Fraction(1, 2**40))
        given = {**options, "weights": tried[0].weights}
        with suppress(InputError):  # the conditions may be too much for it
            every = method.calibrate(_every_value(scenario), own, **given)
            made = _fitting(before, at, epsilon, every)
            if made is not None and (found is None or made.cost < found[0].cost):
                found = made, own
    if found is None:
        raise _nothing_fits(before, epsilon)
    made, own = found
    if own == epsilon:
        return made
    note = f"the channel is calibrated for an epsilon of its own, {float(own):.6g}"
    return replace(made, notes=(*made.notes, note))


def _every_value(scenario: Scenario) -> Scenario:
    """Return the scenario in which every value is a secret: what hides it is private anyhow."""
    n = scenario.support.size
    names = tuple(map(str, range(n)))
    return Scenario(Prior(scenario.product, names, np.eye(n, dtype=np.int64), (1,) * n))


def _left(before: Composition, epsilon: Fraction) -> Fraction:
    """Return what previous releases leave of epsilon; 0 where that is less than a billionth."""
    bound = before.bound()
    if bound.upper is None or bound.upper > epsilon:
        raise _nothing_fits(before, epsilon)
    left = epsilon - bound.upper
    return left if left >= epsilon * _NOTHING else Fraction(0)


def _nothing_fits(before: Composition, epsilon: Fraction) -> CheckFailed:
    rows, bound = most_rows(before), before.bound()
    whose = f" for {counted(rows, 'row')} of one person" if rows > 1 else ""
    return CheckFailed(
        f"no further release was found that fits within epsilon {show(epsilon)}{whose} beside "
        f"{counted(len(before), 'previous release')} with a loss of up to {bound.value:.6g} "
        f"({bound.kind})"
    )
