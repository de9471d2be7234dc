# SPDX-License-Identifier: Apache-2.0
"""One further release, beside what is out: everything together has to stay within epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from pufferfish.accountant import Gathered, Item, gathered
from pufferfish.calibration.units_beside import (
    THIS,
    count_together,
    fit_by_bound,
    least_for_units,
    left_nothing,
    noises,
)
from pufferfish.errors import InputError, counted
from pufferfish.joint import (
    Bound,
    DoesNotFit,
    GridTooLarge,
    Term,
    fit,
    least_scales,
    next_scale,
    worst_case,
)
from pufferfish.mechanisms import DiscreteLaplace, Mechanism
from pufferfish.rationals import float_up, show
from pufferfish.scenario import Scenario
from pufferfish.support import lattice_of

#: Tries to raise a scale, by doubling units in the last place, until everything is proved.
_TRIES = 40
#: A release whose worst case is a smaller share of epsilon says nothing any more.
NOTHING = Fraction(1, 10**9)


def further(
    scenario: Scenario,
    epsilon: Fraction,
    already: Iterable[Item],
    column: str | None,
    calibrate: Callable[[Fraction], Mechanism],
    *,
    noise: bool,
    least: bool,
) -> tuple[Mechanism, Bound, Gathered]:
    """Return a mechanism for one column, such that it fits beside what is out.

    Parameters
    ----------
    scenario : Scenario
        Of one column or several together.
    epsilon : Fraction
        What everything together may cost.
    already : iterable of Plan or (str, Plan or mechanism)
        What is out.
    column : str or None
        The column of the scenario that the mechanism is for.
    calibrate : callable
        Returns the mechanism for an epsilon of its own.
    noise : bool
        Whether that is Laplace noise.
    least : bool
        Whether the noise is to be the least there is, whatever ``calibrate`` returns.

    Returns
    -------
    mechanism : DiscreteLaplace or Channel
    bound : Bound
        Of everything together; at most epsilon.
    out : Gathered
        What was out.

    Raises
    ------
    DoesNotFit
        If nothing fits.
    InputError
        If a release does not fit its column.

    Notes
    -----
    Theory, section 6. In one column with noise only, 1/theta is what is left of 1/theta(epsilon).
    With several columns the least scale is found on the joint loss; a channel, and noise that is
    not the least, by halving its own epsilon. Columns that the scenario does not know count with
    their worst cases, and so does everything that is out where the grid is too large. Where the
    rows of one person are taken together, all of them are.
    """
    out = gathered(scenario, already)
    at = out.position(column)
    before = out.bound()
    if not before.at_most(epsilon):
        raise left_nothing(out, before, epsilon)
    if (before.upper or 0) > epsilon * (1 - NOTHING):
        # What rounding left over is no budget: only what costs nothing more still fits.
        rest: Mechanism = _noise(out, at, 0.0) if noise else calibrate(epsilon)
        try:
            (rest,), bound = proved(out, [(at, THIS, rest)], epsilon, tries=1)
            return rest, bound, out
        except DoesNotFit:
            raise _spent(out, epsilon) from None
    if out.by_units and not (noise and least):
        mechanism = fit_by_bound(out, at, epsilon, calibrate)
    else:
        mechanism = _proposed(out, at, before, epsilon, calibrate, noise=noise, least=least)
        if out.by_units:
            wanted = [(at, Fraction(1))]
            least_one = least_for_units(out, wanted, Fraction(_scale(mechanism)), epsilon)
            (mechanism,) = noises(out, wanted, least_one)
    (mechanism,), bound = proved(out, [(at, THIS, mechanism)], epsilon)
    if isinstance(mechanism, DiscreteLaplace) and mechanism.scale > 0:
        own = worst_case(mechanism, out.axes[at].support).upper
        if own is not None and own < epsilon * NOTHING:
            raise _spent(out, epsilon)
    return mechanism, bound, out


def _proposed(
    out: Gathered,
    at: int,
    before: Bound,
    epsilon: Fraction,
    calibrate: Callable[[Fraction], Mechanism],
    *,
    noise: bool,
    least: bool,
) -> Mechanism:
    """Return what fits for single rows, as far as it can be found without a proof."""
    only_noise = all(isinstance(m, DiscreteLaplace) for m in out.axes[at].releases)
    if noise and only_noise and len(out.columns) == 1:
        proposal = calibrate(epsilon)
        scales = [m.scale for m in out.axes[at].releases if isinstance(m, DiscreteLaplace)]
        return _noise(out, at, next_scale(_scale(proposal), scales))
    left = epsilon - sum((_finite(term.upper) for term in _unknown(out)), Fraction(0))
    known = len(out.known.columns)
    try:
        if left <= 0:
            raise DoesNotFit("the worst cases of unknown columns use up epsilon")
        if noise and least:
            return least_scales(
                out.masses, out.axes[:known], out.pairs, [(at, Fraction(1))], left
            ).mechanisms[0]
        return fit(out.masses, out.axes[:known], out.pairs, at, left, calibrate).mechanism
    except (GridTooLarge, DoesNotFit):
        if not noise:
            raise
        return _by_the_worst_case(out, at, before, epsilon)


def _spent(out: Gathered, epsilon: Fraction) -> DoesNotFit:
    return DoesNotFit(
        f"what is already out ({counted(out.releases, 'release')}) leaves less than a billionth of "
        f"epsilon {show(epsilon)}{count_together(out)}"
    )


def _unknown(out: Gathered) -> list[Term]:
    """Return the worst cases of all columns that the scenario does not know."""
    known = len(out.known.columns)
    return [
        worst_case(release, axis.support) for axis in out.axes[known:] for release in axis.releases
    ]


def _finite(upper: Fraction | None) -> Fraction:
    if upper is None:
        raise DoesNotFit(
            "a release of a column that the scenario does not know has no finite worst case: count "
            "the columns together, as in Prior.from_table(..., public=[...])"
        )
    return upper


def _scale(mechanism: Mechanism) -> float:
    if not isinstance(mechanism, DiscreteLaplace):
        raise InputError("only noise has a scale")
    return mechanism.scale


def _noise(out: Gathered, at: int, scale: float) -> DiscreteLaplace:
    return DiscreteLaplace(scale, lattice_of(out.axes[at].support).step)


def _by_the_worst_case(out: Gathered, at: int, before: Bound, epsilon: Fraction) -> DiscreteLaplace:
    """Return noise whose own worst case is what is left."""
    room = epsilon - (before.upper or Fraction(0))
    unit = worst_case(_noise(out, at, 1.0), out.axes[at].support).upper
    if room <= 0 or unit is None:
        raise left_nothing(out, before, epsilon)
    return _noise(out, at, float_up(unit / room))


def proved(
    out: Gathered,
    further: Sequence[tuple[int, str, Mechanism]],
    epsilon: Fraction,
    tries: int = _TRIES,
) -> tuple[list[Mechanism], Bound]:
    """Return further mechanisms with the bound of everything; noise is raised until it is proved.

    Parameters
    ----------
    out : Gathered
        What is out.
    further : sequence of (int, str, mechanism)
        The axis of each further release, what it is called, and what is proposed for it.
    epsilon : Fraction
        What everything together may cost.
    tries : int
        How often noise may be raised, by units in the last place that double each time.

    Raises
    ------
    DoesNotFit
        If nothing near the proposal is proved to fit.
    """
    mechanisms = [mechanism for _, _, mechanism in further]
    for attempt in range(tries):
        bound = out.beside(
            [(at, label, m) for (at, label, _), m in zip(further, mechanisms, strict=True)]
        ).bound()
        if bound.at_most(epsilon):
            return mechanisms, bound
        rise = 1 + Fraction(2) ** (attempt - 52)
        raised = [_raised(mechanism, rise) for mechanism in mechanisms]
        if raised == mechanisms:
            break  # unchanged columns and channels cannot be raised
        mechanisms = raised
    raise DoesNotFit(
        f"no further release was found that is proved to fit within epsilon {show(epsilon)} beside "
        f"what is already out ({counted(out.releases, 'release')}){count_together(out)}"
    )


def _raised(mechanism: Mechanism, rise: Fraction) -> Mechanism:
    if not isinstance(mechanism, DiscreteLaplace):
        return mechanism
    return replace(mechanism, scale=float_up(Fraction(mechanism.scale) * rise))
