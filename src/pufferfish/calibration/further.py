# SPDX-License-Identifier: Apache-2.0
"""Further releases beside previous ones: everything together stays within epsilon.

The joint loss never rises with the scale of further noise (theory, section 6), so the least noise
has a root of its own. A channel, and noise that is not the least, is calibrated for an epsilon of
its own, the largest that fits.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from pufferfish.calibration.channel_repair import whole_numbers
from pufferfish.calibration.exact import least_factor
from pufferfish.calibration.registry import Method
from pufferfish.calibration.root import Proposal, noise_up, raised
from pufferfish.errors import CheckFailed, InputError, PufferfishError, counted
from pufferfish.loss.bounds import worst_sum
from pufferfish.loss.composition import Composition, unknown_rows
from pufferfish.loss.kernel import GridTooLarge, axis_of
from pufferfish.numbers import show
from pufferfish.priors.ambiguity import Point, TVBall
from pufferfish.priors.scenario import Scenario
from pufferfish.support import lattice_of

#: What is left of epsilon is nothing where it is a smaller share.
_NOTHING = Fraction(1, 10**9)
#: How often one is calibrated at most, and the most values for a channel private for any prior.
_TRIES, _MOST_LOCAL = 12, 40
#: The most outputs of previous releases, times values, that a channel is fitted to; for likelihoods
#: of noise, which are rounded, to a smaller epsilon by this share.
_MOST_POSTERIORS, _ROUNDED = 2500, Fraction(1, 2**24)

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
        if low == epsilon:
            break
        own = (low + high) / 2
    return best


def further_release(
    before: Composition, at: int, epsilon: Fraction, method: Method, options: Mapping[str, Any]
) -> Proposal:
    """Return a mechanism for the column at a position that fits beside previous releases."""
    if method.least:
        return least_noises(before, [(at, Fraction(1))], epsilon)[0]
    left = _left(before, epsilon)
    alone = before.scenario.of_column(before.scenario.product.columns[at])

    def fitting(own: Fraction, scenario: Scenario = alone, **more: Any) -> Proposal | None:
        made = method.calibrate(scenario, own, **{**options, **more})
        proposal = made if isinstance(made, Proposal) else Proposal(made)
        bound = before.with_release(at, proposal.mechanism).bound()
        known = proposal.distortion  # how far from the best one beside others nobody knows
        known = known and replace(known, gap=math.inf, bound=None)
        made = replace(proposal, bound=bound, distortion=known)
        return made if bound.at_most(epsilon) else None

    if method.channel and left and len(before) and most_rows(before) == 1:
        known = epsilon - (worst_sum(before.others).upper or 0)
        with suppress(PufferfishError, GridTooLarge):  # there may be too many of them
            if best := fitting(known * (1 - _ROUNDED), beside=_posteriors(before, at)):
                return best
    found = per_release_epsilon(epsilon, fitting, _TRIES if left else 1)
    small = method.channel and alone.support.size <= _MOST_LOCAL
    if small and left and (found is None or found[1] < epsilon):
        # A channel that is private for any prior loses k times its epsilon for k rows of a person.
        own = left / most_rows(before) * (1 - Fraction(1, 2**40))
        every = [replace(p, strata=(), rule=TVBall(Fraction(1))) for p in alone.priors]
        with suppress(PufferfishError):  # the conditions may be too much for it
            made = fitting(own, Scenario(every, alone.pairs))
            if made is not None and (found is None or made.cost < found[0].cost):
                found = replace(made, notes=()), own
    if found is None:
        raise _nothing_fits(before, epsilon)
    made, own = found
    if own == epsilon:
        return made
    note = f"the mechanism is calibrated for an epsilon of its own, {float(own):.6g}"
    return replace(made, notes=(*made.notes, note))


def least_noises(before: Composition, wanted: Wanted, epsilon: Fraction) -> list[Proposal]:
    """Return noises of the least scales in given ratios that fit beside previous releases."""
    left, axes = _left(before, epsilon), before.scenario.product.axes
    steps = [lattice_of(axes[at]).step for at, _ in wanted]

    def judge(factor: float) -> tuple[list[Proposal], bool, float]:
        everything, noises = before, []
        for (at, ratio), step in zip(wanted, steps, strict=True):
            noises.append(noise_up(Fraction(factor) * ratio, step, epsilon))
            everything = everything.with_release(at, noises[-1])
        bound = everything.bound()
        return [Proposal(noise, bound) for noise in noises], bound.at_most(epsilon), bound.value

    unchanged, fits, _ = judge(0.0)
    if fits:
        return unchanged
    if not left:
        raise _nothing_fits(before, epsilon)
    rates: dict[int, Fraction] = {}
    for (at, ratio), step in zip(wanted, steps, strict=True):
        rates[at] = rates.get(at, Fraction(0)) + step / ratio
    known = epsilon - (worst_sum(before.others, most_rows(before)).upper or 0)
    unknown = unknown_rows(before.scenario, before.rows)
    factor = least_factor(before.scenario, rates, before.releases, known, left, unknown)
    return raised(noise_up(factor, Fraction(1), epsilon).scale, epsilon, judge)[1]


def most_rows(before: Composition) -> int:
    """Return the most rows that one person may have."""
    return max(before.scenario.row_numbers + before.rows, default=1)


def _posteriors(before: Composition, at: int) -> tuple[tuple[Point, ...], ...]:
    """Return what previous outputs make of the priors of a column: an adversary for each.

    After outputs y of likelihoods k_y the masses are P_s(x) k_y(x), which do not sum to 1. All
    together is private where a further column is, for all of them (theory, section 6).
    """
    scenario, kernels = before.scenario, []
    for c, support in enumerate(scenario.product.axes):
        axis = axis_of(c, support, before.releases.get(c, ()), np.arange(support.size))
        kernel = np.array(list(axis.kinds.values()) or [(1,) * support.size], dtype=object)
        if axis.noisy or axis.identity:
            apart = np.abs(np.subtract.outer(axis.places, axis.places))
            shares = np.exp(-float(axis.rate) * apart) if axis.noisy else 1.0 * (apart == 0)
            kernel = (kernel[:, None] * whole_numbers(shares, 1 << 100)).reshape(-1, support.size)
        kernels.append(kernel)
    outputs, shape = math.prod(map(len, kernels)), scenario.product.shape
    if max(outputs * shape[at], outputs * scenario.product.size // 100) > _MOST_POSTERIORS:
        raise GridTooLarge
    kernels[at] = kernels[at][:, None] * np.eye(shape[at], dtype=int)
    sets: list[tuple[Point, ...]] = []
    for prior in scenario.priors:
        rows = [prior.row(secret) for secret in scenario.protected]
        masses = prior.counts[rows].astype(object).reshape(-1, *shape)
        for kernel in kernels:
            masses = np.tensordot(masses, kernel, ((1,), (-1,)))
        masses = np.moveaxis(masses, at + 2, -1).reshape(len(rows), -1, masses.shape[at + 2])
        totals = np.array([int(prior.totals[row]) for row in rows], dtype=object)
        for each in masses[:, masses.any(axis=(0, 2))].transpose(1, 0, 2):  # what can be out
            unit = 1 << int(max(each.sum(axis=1) // totals)).bit_length()  # any, but one for all
            sets.append(tuple(map(Point, each, totals * unit)))
    return tuple(sets)


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
