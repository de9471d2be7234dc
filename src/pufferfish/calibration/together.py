# SPDX-License-Identifier: Apache-2.0
"""Several releases planned together: the least scales in given ratios that keep within epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from pufferfish.accountant import Gathered, Item, gathered
from pufferfish.beside import Beside
from pufferfish.calibration.exact import exact
from pufferfish.calibration.further import NOTHING, proved
from pufferfish.calibration.units_beside import (
    least_for_units,
    left_nothing,
    loss_by_itself,
    noises,
)
from pufferfish.certificate import prove
from pufferfish.errors import InputError, PufferfishError
from pufferfish.joint import least_scales, next_scale
from pufferfish.mechanisms import DiscreteLaplace
from pufferfish.plan import Plan
from pufferfish.prior import Prior
from pufferfish.rationals import float_up, parse_epsilon, parse_number
from pufferfish.scenario import Scenario
from pufferfish.support import lattice_of
from pufferfish.unitloss import claim_of
from pufferfish.unitloss import together as joined


def calibrate_together(
    scenario: Scenario | Prior,
    epsilon: object,
    columns: int | Sequence[str | tuple[str, object]] | Mapping[str, object],
    *,
    already: Iterable[Item] = (),
) -> tuple[Plan, ...]:
    """Return plans for several releases, whose joint loss is at most epsilon.

    Parameters
    ----------
    scenario : Scenario or Prior
        Of one column or of several together.
    epsilon : number
        What all releases together may cost.
    columns : int, sequence of columns, or mapping
        For a scenario of one column: how many releases of it. Otherwise the column of each
        release, which may come several times, alone or with the ratio of its scale, above 0:
        ``["x", "z"]``, ``[("x", 1), ("z", 2)]`` or ``{"x": 1, "z": 2}``; 1 where none is given.
    already : iterable of Plan or (str, Plan or mechanism)
        What is out.

    Returns
    -------
    tuple of Plan
        In the order asked for, all with Laplace noise: the least common factor of the ratios.
        Their ``epsilon`` is that of all releases together.

    Raises
    ------
    CheckFailed
        If nothing fits beside what is out.
    InputError
        If a column is unknown, a ratio is not above 0, or levels have no order.

    Notes
    -----
    Theory, section 6: the joint loss never rises with the factor.
    """
    if isinstance(scenario, Prior):
        scenario = Scenario(scenario)
    budget = parse_epsilon(epsilon)
    out = gathered(scenario, already)
    wanted = [(out.position(name), name, ratio) for name, ratio in _wanted(columns, out)]
    before = out.bound()
    if before.upper is None or before.upper > budget * (1 - NOTHING):
        raise left_nothing(out, before, budget)
    ratios = [(at, ratio) for at, _, ratio in wanted]
    first = _noises(scenario, out, ratios, budget)
    if out.by_units:
        factor = Fraction(first[0].scale) / ratios[0][1]
        first = noises(out, ratios, least_for_units(out, ratios, factor, budget))
    asked = [
        (at, f"new ({name})" if name else "new", noise)
        for (at, name, _), noise in zip(wanted, first, strict=True)
    ]
    found, bound = proved(out, asked, budget)
    others = out.releases + len(found) - 1
    said = Beside(others, bound.value, bound.how)
    plans = []
    for (_, name, _), noise in zip(wanted, found, strict=True):
        own = scenario.of_column(name)
        certificate = prove(own, noise, budget)
        if not certificate.holds:  # one release never costs more than all of them
            raise PufferfishError("a scale could not be certified by itself; please report it")
        units = None
        if out.by_units:
            units = loss_by_itself(own, noise, out.numbers, bound)
            certificate = joined(certificate, units, budget)
        plan = Plan.of(own, "exact", noise, budget, certificate, out.notes)
        claim = None if units is None else claim_of(own, units)
        plans.append(replace(plan, beside=said, units=claim))
    return tuple(plans)


def _wanted(
    columns: int | Sequence[str | tuple[str, object]] | Mapping[str, object], out: Gathered
) -> list[tuple[str | None, Fraction]]:
    if isinstance(columns, bool | str):
        raise InputError(f"columns must be a number of releases or a list, not {columns!r}")
    if isinstance(columns, int):
        if len(out.known.columns) > 1 or columns < 1:
            raise InputError(
                "a number of releases, at least 1, is for a scenario of one column; name the "
                "column of each release"
            )
        return [(None, Fraction(1))] * columns
    listed = list(columns.items()) if isinstance(columns, Mapping) else list(columns)
    found: list[tuple[str | None, Fraction]] = []
    for item in listed:
        name, given = (item, 1) if isinstance(item, str) else item
        ratio = parse_number(given, f"the ratio of the scale of {name!r}")
        if ratio <= 0:
            raise InputError(f"the ratio of the scale of {name!r} must be above 0, not {given}")
        found.append((name, ratio))
    if not found:
        raise InputError("no release was asked for: columns is empty")
    return found


def _noises(
    scenario: Scenario, out: Gathered, further: list[tuple[int, Fraction]], budget: Fraction
) -> list[DiscreteLaplace]:
    """Return noise of the least scales in the ratios asked for, before it is proved."""
    releases = [m for axis in out.axes for m in axis.releases]
    noise = [m for m in releases if isinstance(m, DiscreteLaplace)]
    if len(out.columns) == 1 and len(noise) == len(releases):
        # 1/theta_eff of the new ones is sum 1/r over the factor: one release of scale 1 / sum.
        together = 1 / sum((1 / ratio for _, ratio in further), Fraction(0))
        least = exact(scenario.of_column(None), budget).scale
        left = Fraction(next_scale(least, [m.scale for m in noise]))
        step = lattice_of(out.axes[0].support).step
        return [DiscreteLaplace(float_up(left / together * r), step) for _, r in further]
    if not out.all_known:
        raise InputError(
            "releases are planned together for columns that the scenario knows; count the columns "
            "of what is out with them, as in Prior.from_table(..., public=[...])"
        )
    return list(least_scales(out.masses, out.axes, out.pairs, further, budget).mechanisms)
