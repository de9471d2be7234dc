# SPDX-License-Identifier: Apache-2.0
"""Rows of one person, beside what is out: further releases such that all of them together fit.

The loss of everything never rises with the scale of further noise, for the rows of one person as
for single rows (:mod:`pufferfish.joint.solve`), so the least scales for every number of rows are
found one by one, and the largest of them does for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from pufferfish.accountant import Gathered
from pufferfish.errors import counted, listed
from pufferfish.halving import largest_own
from pufferfish.joint import Bound, DoesNotFit, GridTooLarge, least_scales, unitrows
from pufferfish.joint.root import excess_of, largest_inside
from pufferfish.joint.solve import nothing_left
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.rationals import float_up, show
from pufferfish.scenario import Scenario
from pufferfish.support import lattice_of
from pufferfish.unitloss import Case, UnitsLoss, cases, units_loss

#: Mechanisms that are calibrated at most.
_TRIES = 12
#: What the release that is looked for is called.
THIS = "this one"


def left_nothing(out: Gathered, before: Bound, epsilon: Fraction) -> DoesNotFit:
    """Return the refusal where what is out uses up epsilon: why, and what would help.

    Parameters
    ----------
    out : Gathered
        What is out.
    before : Bound
        Of all of that.
    epsilon : Fraction
        What everything together may cost.
    """
    how = before.how if before.terms or out.by_units else ""
    return nothing_left(out.releases, before.value, epsilon, how, count_together(out))


def count_together(out: Gathered) -> str:
    """Return how to do without the worst cases of columns that the scenario does not know.

    It begins with a semicolon, and is empty where there are no such columns.
    """
    if out.all_known:
        return ""
    unknown = listed(dict.fromkeys(repr(name) for name in out.columns[len(out.known.columns) :]))
    every = [str(name) for name in dict.fromkeys(out.columns)]
    return (
        f"; the prior knows nothing of {unknown}, so the worst case stands in: count the columns "
        f"together, as in Prior.from_table(..., public={every})"
    )


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
    last: Bound | None = None

    def attempt(own: Fraction) -> Mechanism | None:
        nonlocal last
        mechanism = calibrate(own)
        last = out.beside([(at, THIS, mechanism)]).bound()
        return mechanism if last.at_most(epsilon) else None

    best: tuple[Mechanism, Fraction] | None = largest_own(epsilon, attempt, _TRIES)
    if best is None:
        value = "infinity" if last is None or last.upper is None else f"{last.value:.6g}"
        raise DoesNotFit(
            f"no further release was found that keeps all rows of one person within epsilon "
            f"{show(epsilon)}: everything together would have a loss of up to {value}"
            f"{'' if last is None else f' ({last.how})'}{count_together(out)}"
        )
    return best[0]


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
    more = out.beside([(at, THIS, noise) for (at, _), noise in zip(wanted, made, strict=True)])
    return excess_of(case.bound(more.axes, more.labels).upper, epsilon)


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

    start = float(1 / max(low, min(steps)))
    found = largest_inside(excess, start, float(epsilon))
    if found is None:
        raise DoesNotFit(
            f"what is already out ({counted(out.releases, 'release')}) leaves nothing of epsilon "
            f"{show(epsilon)} for all {case.rows} rows of one person{count_together(out)}"
        )
    return 1 / Fraction(found)
