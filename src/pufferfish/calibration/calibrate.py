# SPDX-License-Identifier: Apache-2.0
"""calibrate: turn a scenario into a plan whose mechanism is proved to be private."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pufferfish.calibration.exact import exact
from pufferfish.calibration.further import further_release, least_noises
from pufferfish.calibration.registry import (
    MechanismName,
    Method,
    check_applies,
    default_for,
    method_named,
)
from pufferfish.calibration.root import Proposal, raised
from pufferfish.errors import InputError, PufferfishError, listed
from pufferfish.loss.certificate import Certificate, LossBound
from pufferfish.loss.composition import Composition, Item, gather
from pufferfish.loss.proof import prove
from pufferfish.loss.walk import LEAST_STEPS, MOST_ATOMS, RATIO, claims_of, scales, walked
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, checked_flag, parse_epsilon, parse_number, show
from pufferfish.plans.plan import Plan
from pufferfish.priors.ambiguity import Confidence
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.release.postprocess import Postprocess

#: A rise of the scale beyond what its method found, by more than this share, is noted.
_UNNOTICED = 1e-9
_NO_REGION = (
    "a region (confidence or tv_radius) and other releases cannot be had together: the joint loss "
    "is that of the priors themselves"
)

_NO_TABLE = (
    "noise of scale range/epsilon (mechanism l1) is no larger, and needs no table and no "
    "confidence: the better plan for a table as small as this one"
)

#: Releases that are calibrated together at most.
_MOST_TOGETHER = 1000


def calibrate(
    scenario: Scenario | Prior, epsilon: Number, mechanism: MechanismName | None = None, *,
    best_for: Any = None, cost: Any = None, outputs: int | str | None = None,
    invariant: bool = False, unbiased: bool = False, min_keep: Number | None = None,
    weights: Sequence[Number] | Mapping[Any, Number] | None = None,
    already: Iterable[Item] | None = None, column: str | None = None,
) -> Plan:  # fmt: skip
    """Return a plan: one mechanism for one epsilon, certified.

    What a calibrator finds is only a proposal. Its loss is recomputed by code that shares no
    arithmetic with the search, and the scale of noise is raised until that proves it. Theory,
    sections 2 to 6 and 9.

    Parameters
    ----------
    scenario : Scenario, Prior or query
        What is protected; a Prior stands for all pairs of its secrets. A query over correlated
        records (such as :class:`CountQuery`) has mechanisms of its own, and its plan is a
        :class:`QueryPlan`. Where the scenario carries a region (``confidence`` or ``tv_radius``),
        the plan holds for every prior of it; where the rows of one person are known (``unit``),
        for all of them together.
    epsilon : number
        Above 0: int, float, Decimal, Fraction, or a string such as "0.1" or "1/3"; floats are
        read as the decimal they print as. It includes that of noisy counts (:func:`noisy_counts`).
    mechanism : str, optional
        ``l1``, ``wasserstein``, ``relaxed``, ``one-sided``, ``exact`` or ``channel``. By default
        ``exact``, or ``channel`` for levels without an order and with an option of channels.
    best_for : str, mapping or matrix, optional
        For ``channel``, as all that follow up to ``weights``. ``kept``: the least ``cost`` of
        single values (the default for numbers and ordered levels, and wherever a cost or a
        condition on outputs is given). Otherwise the estimates from all that is released are as
        near as under no other private channel: those of the ``frequencies`` (the default for
        levels without an order), the ``mean``, the ``cdf``, ``both`` frequencies and mean, or
        statistics with a row of coefficients for each value.
    cost : str, mapping or matrix, optional
        What to make least: ``hamming`` (the share of changed values; the default for levels without
        an order), ``squared`` (the default for numbers and ordered levels), ``absolute``, or
        c(x, y) as a mapping ``{x: {y: cost}}`` or rows of numbers.
    outputs : int or "fine:K", optional
        Publish also K further values between every two neighbours; for numbers and ordered levels.
    invariant : bool
        The expected frequencies of the values stay what they are.
    unbiased : bool
        The expected output is the value; widens the outputs.
    min_keep : number, optional
        Each value stays itself at least that often; where sets are published, its label.
    weights : sequence or mapping of numbers, optional
        How often each value occurs; by default the pooled counts of the secrets in the pairs, or
        the mean of their distributions.
    already : iterable of Plan or (str, Plan or mechanism), optional
        Previous releases, of this column or of others: epsilon is then what all of them and this
        one may cost together.
    column : str, optional
        The column to calibrate for, where the scenario is about several.

    Raises
    ------
    InputError
        If epsilon, the mechanism or an option is not of that kind, does not go with the scenario,
        or asks for what no channel can do; or if results of a plan from a table could not be
        released, because they do not fit 64 bits.
    CheckFailed
        If nothing fits beside previous releases, or no channel keeps the rows of one person
        within epsilon.
    PufferfishError
        If nothing near the calibrator's answer can be proved.
    """
    before = gather(scenario, () if already is None else already)
    budget = parse_epsilon(epsilon)
    own = before.scenario.of_column(column)
    if own.noisy is not None:
        budget = own.noisy.left(budget)
    asked = {"best_for": best_for, "cost": cost, "outputs": outputs, "invariant": invariant,
             "unbiased": unbiased, "min_keep": min_keep, "weights": weights}  # fmt: skip
    method = method_named(default_for(own, asked) if mechanism is None else mechanism)
    check_applies(method, own)
    for flag in ("invariant", "unbiased"):
        checked_flag(asked[flag], flag)
    options = {key: v for key, v in asked.items() if v is not None and v is not False}
    if options and not method.channel:
        raise InputError(
            f"{listed(options)}: for the mechanism channel only, not for {method.name}"
        )
    if len(before):
        if before.scenario.has_region:
            raise InputError(_NO_REGION)
        at = before.scenario.product.position(column)
        found = further_release(before, at, budget, method, options)
        return _plan(own, method.name, budget, found, composition=found.bound)
    if not method.channel:
        return _noise_plan(own, budget, method)
    if own.unit is not None:
        found = further_release(Composition(own, {}), 0, budget, method, options)
    else:
        found = method.calibrate(own, budget, **options)
    return _plan(own, method.name, budget, found)


def calibrate_together(
    scenario: Scenario | Prior, epsilon: Number,
    columns: int | Sequence[str | tuple[str, Number]] | Mapping[str, Number], *,
    already: Iterable[Item] = (),
) -> tuple[Plan, ...]:  # fmt: skip
    """Return plans for several releases, whose joint loss is at most epsilon.

    The joint loss never rises with the common factor of the scales (theory, section 6).

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
        Previous releases.

    Returns
    -------
    tuple of Plan
        In the order asked for, all with Laplace noise: the least common factor of the ratios.
        For channels, calibrate one release after another with ``already``.
        Their ``epsilon`` is that of all releases together.

    Raises
    ------
    CheckFailed
        If nothing fits beside previous releases.
    InputError
        If a column is unknown, a ratio is not above 0, levels have no order, or a prior carries a
        region.
    """
    before = gather(scenario, already)
    budget = parse_epsilon(epsilon)
    if before.scenario.has_region:
        raise InputError(_NO_REGION)
    named = _wanted(columns, before)
    wanted = [(before.scenario.product.position(name), ratio) for name, ratio in named]
    return tuple(
        _plan(before.scenario.of_column(name), "exact", budget, found, composition=found.bound)
        for (name, _), found in zip(named, least_noises(before, wanted, budget), strict=True)
    )


def _wanted(
    columns: int | Sequence[str | tuple[str, Number]] | Mapping[str, Number], before: Composition
) -> list[tuple[str | None, Fraction]]:
    """Return the column of each release that is asked for, and the ratio of its scale."""
    items: list[Any]
    if type(columns) is int and len(before.scenario.product.axes) == 1:
        items = [(None, 1)] * min(columns, _MOST_TOGETHER + 1)  # None is the only column
    elif isinstance(columns, int | str) or not isinstance(columns, Iterable):
        raise InputError(
            "columns must be the column of each release, or for a scenario of one column the "
            f"number of releases, not {columns!r}"
        )
    else:
        items = list(columns.items() if isinstance(columns, Mapping) else columns)
    if not 1 <= len(items) <= _MOST_TOGETHER:
        raise InputError(f"1 to {_MOST_TOGETHER} releases together must be asked for")
    found: list[tuple[str | None, Fraction]] = []
    for item in items:
        pair = (item, 1) if isinstance(item, str) else item
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"a release is a column, or (column, ratio), but {item!r} was given")
        name, given = pair
        ratio = parse_number(given, f"the ratio of the scale of {name!r}")
        if ratio <= 0:
            raise InputError(f"the ratio of the scale of {name!r} must be above 0, not {given}")
        found.append((name, ratio))
    return found


def _noise_plan(scenario: Scenario, epsilon: Fraction, method: Method) -> Plan:
    """Return the plan of noise, its scale raised until its loss is proved."""
    claims = claims_of(scenario, epsilon) if method.least else []
    if claims:  # the search for the scale is its proof
        least, walk = walked(claims)
        step = scenario.lattice.step
        last = 0 < least <= RATIO * LEAST_STEPS * step
        told = ("the walk reached its last scale: such noise changes hardly a value",) * last
        if scenario.noisy is not None:
            range_ = epsilon * Fraction(next(scales(scenario.lattice, epsilon)))
            told += (_NO_TABLE,) * (least * scenario.noisy.total(epsilon) >= range_)
        reached = Proposal(DiscreteLaplace(least, step), notes=told)
        return _plan(scenario, method.name, epsilon, reached, walk)
    noise: DiscreteLaplace = method.calibrate(scenario, epsilon)
    needed, notes = noise.scale, []
    if scenario.unit is not None and not method.least:
        needed = max(needed, exact(scenario, epsilon).scale)
    boxes = any(isinstance(rule, Confidence) and not rule.box for rule in scenario.rules)
    if method.least and boxes and scenario.support.size > MOST_ATOMS:
        notes.append(f"more than {MOST_ATOMS} values: a box takes the place of the walk, and needs "
                     "more noise; fewer values (a coarser step) may need far less")  # fmt: skip
    if needed > noise.scale:
        notes.append("the scale is above what single rows need, for all rows of one person")

    def judge(scale: float) -> tuple[Certificate, bool, float]:
        proof = prove(scenario, {0: (DiscreteLaplace(scale, noise.step),)}, epsilon)
        return proof, proof.holds, proof.loss

    scale, certificate = raised(needed, epsilon, judge)
    if scale > needed * (1 + _UNNOTICED):
        notes.append(f"the scale was raised by {scale / needed - 1:.1e} of itself to be proved")
    found = Proposal(DiscreteLaplace(scale, noise.step), notes=tuple(notes))
    return _plan(scenario, method.name, epsilon, found, certificate)


def _plan(
    scenario: Scenario, name: str, epsilon: Fraction, found: Proposal,
    certificate: Certificate | None = None, composition: LossBound | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a mechanism that is proved to be private by itself, too.

    What a release of a table would refuse is refused now; a given prior is only computed with.
    """
    if certificate is None:
        certificate = prove(scenario, {0: (found.mechanism,)}, epsilon)
    if not certificate.holds:
        raise PufferfishError(
            f"what was found could not be proved at epsilon {show(epsilon)}; please report it"
        )
    plan = Plan.of(
        scenario, name, found.mechanism, epsilon, certificate,
        labels=found.labels, weights=tuple(map(float, found.weights)), distortion=found.distortion,
        composition=composition, notes=found.notes,
    )  # fmt: skip
    if plan.coding is not None:
        Postprocess(plan.spec(allow_unchanged=True))  # refuses what no table could be released by
    return plan
