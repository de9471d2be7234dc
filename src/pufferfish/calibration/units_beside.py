# SPDX-License-Identifier: Apache-2.0
"""Rows of one person, beside what is out: further releases such that all of them together fit.

The loss of everything never rises with the scale of further noise, for the rows of one person as
for single rows (:mod:`pufferfish.joint.solve`), so the least scales for every number of rows are
found one by one, and the largest of them does for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from pufferfish.accountant import Gathered
from pufferfish.joint import Bound, DoesNotFit, GridTooLarge, least_scales, unitrows
from pufferfish.joint.root import last_inside
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.rationals import float_up, show
from pufferfish.scenario import Scenario
from pufferfish.support import lattice_of
from pufferfish.unitloss import Case, UnitsLoss, cases, units_loss

#: A bound within that share of epsilon is close enough.
_CLOSE = 1e-12
#: Doublings of a scale after which more noise says nothing any more.
_DOUBLINGS = 60
#: Mechanisms that are calibrated at most.
_TRIES = 12
#: What the release that is looked for is called.
_THIS = "this one"


def least_for_units(
    out: Gathered, wanted: Sequence[tuple[int, Fraction]], factor: Fraction, epsilon: Fraction
) -> Fraction:
    """Return the least common factor of further noise that keeps all rows of a unit within epsilon.

    Parameters
    ----------
    out : Gathered
        What is out; its scenario has units.
    wanted : sequence of (int, Fraction)
        The axis of each further release, and the ratio of its scale.
    factor : Fraction
        What single rows need; the answer is not below it.
    epsilon : Fraction
        What everything together may cost.

    Returns
    -------
    Fraction
        Before it is proved: up to rounding.

    Raises
    ------
    DoesNotFit
        If what is out leaves nothing of epsilon.
    """
    for case in cases(out.scenario, out.numbers):
        if not _fits(out, case, wanted, factor, epsilon):
            factor = max(factor, _least(out, case, wanted, factor, epsilon))
    return factor


def loss_by_itself(
    scenario: Scenario, applied: Mechanism, numbers: Sequence[int], everything: Bound
) -> UnitsLoss:
    """Return the loss of all rows of a unit by one release of several.

    It is at most that of everything, which bounds it too where its own bound is coarser.
    """
    found = units_loss(scenario, applied, numbers)
    if everything.upper is None or (found.upper is not None and found.upper <= everything.upper):
        return found
    return replace(found, upper=everything.upper, name=everything.name)


def fit_by_bound(
    out: Gathered, at: int, epsilon: Fraction, calibrate: Callable[[Fraction], Mechanism]
) -> Mechanism:
    """Return the mechanism of the largest own epsilon that keeps everything within epsilon.

    Parameters
    ----------
    out : Gathered
        What is out.
    at : int
        The axis that the mechanism is for.
    epsilon : Fraction
        What everything together may cost.
    calibrate : callable
        Returns the mechanism for an epsilon of its own.

    Raises
    ------
    DoesNotFit
        If no mechanism that was tried fits.
    """
    best: Mechanism | None = None
    low, high, own = Fraction(0), epsilon, epsilon
    last = None
    for _ in range(_TRIES):
        mechanism = calibrate(own)
        last = out.beside([(at, _THIS, mechanism)]).bound()
        if last.at_most(epsilon):
            best, low = mechanism, own
            if own == epsilon:
                break
        else:
            high = own
        own = (low + high) / 2
    if best is None:
        value = "infinity" if last is None else f"{last.value:.6g}"
        raise DoesNotFit(
            f"no further release was found that keeps all rows of one person within epsilon "
            f"{show(epsilon)}: everything together would have a loss of up to {value}"
        )
    return best


def noises(
    out: Gathered, wanted: Sequence[tuple[int, Fraction]], factor: Fraction
) -> list[DiscreteLaplace]:
    """Return further noise of the scales ``factor * ratio``, rounded up."""
    return [
        DiscreteLaplace(float_up(factor * ratio), lattice_of(out.axes[at].support).step)
        for at, ratio in wanted
    ]


def _fits(
    out: Gathered,
    case: Case,
    wanted: Sequence[tuple[int, Fraction]],
    factor: Fraction,
    epsilon: Fraction,
) -> bool:
    return _excess(out, case, wanted, factor, epsilon) <= 0


def _excess(
    out: Gathered,
    case: Case,
    wanted: Sequence[tuple[int, Fraction]],
    factor: Fraction,
    epsilon: Fraction,
) -> float:
    """Return how far the bound of one case is above epsilon; its sign is exact."""
    made = noises(out, wanted, factor)
    more = out.beside([(at, _THIS, noise) for (at, _), noise in zip(wanted, made, strict=True)])
    bound = case.bound(more.axes, more.labels)
    over = bound.value - float(epsilon)
    return min(over, 0.0) if bound.at_most(epsilon) else max(over, math.ulp(0.0))


def _least(
    out: Gathered,
    case: Case,
    wanted: Sequence[tuple[int, Fraction]],
    factor: Fraction,
    epsilon: Fraction,
) -> Fraction:
    """Return the least factor for one case, which ``factor`` does not fit."""
    known = len(out.known.columns)
    left = epsilon - case.most * _worst_of_unknown(out)
    try:
        if left <= 0:
            raise DoesNotFit("the worst cases of unknown columns use up epsilon")
        places = case.places(out.axes[:known], {at for at, _ in wanted})
        further = [
            (k, ratio)
            for k, column in enumerate(places.columns)
            for at, ratio in wanted
            if at == column
        ]
        if not further:
            raise DoesNotFit("the rows of one person differ in what is out already")
        found = least_scales(
            [places.masses],
            places.axes,
            case.pairs,
            further,
            left,
            limit=unitrows.MOST_CELLS,
        )
        return max(
            Fraction(noise.scale) / ratio
            for noise, (_, ratio) in zip(found.mechanisms, further, strict=True)
        )
    except (GridTooLarge, DoesNotFit):
        return _searched(out, case, wanted, factor, epsilon)


def _worst_of_unknown(out: Gathered) -> Fraction:
    """Return the worst cases, in one row, of the columns that the scenario does not know."""
    known = len(out.known.columns)
    unknown = list(zip(out.axes[known:], out.labels[known:], strict=True))
    worst = unitrows.unknown_unit_bound(unknown).upper
    if worst is None:
        raise DoesNotFit(
            "a release of a column that the scenario does not know has no finite worst case: count "
            "the columns together, as in Prior.from_table(..., public=[...])"
        )
    return worst


def _searched(
    out: Gathered,
    case: Case,
    wanted: Sequence[tuple[int, Fraction]],
    low: Fraction,
    epsilon: Fraction,
) -> Fraction:
    """Return the least factor by which the bound itself fits; ``low`` does not."""
    steps = [lattice_of(out.axes[at].support).step / ratio for at, ratio in wanted]

    def excess(inverse: float) -> float:
        return _excess(out, case, wanted, 1 / Fraction(inverse), epsilon)

    high = float(max(low, min(steps)))
    outside = inside = 1 / high, excess(1 / high)
    for _ in range(_DOUBLINGS):
        if inside[1] <= 0:
            break
        outside, high = inside, 2 * high
        inside = 1 / high, excess(1 / high)
    else:
        raise DoesNotFit(
            f"what is already out leaves nothing of epsilon {show(epsilon)} for all "
            f"{case.rows} rows of one person"
        )
    return 1 / Fraction(last_inside(excess, inside, outside, float(epsilon), _CLOSE))
