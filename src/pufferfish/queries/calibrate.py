# SPDX-License-Identifier: Apache-2.0
"""calibrate: a plan for a query, by the published mechanisms, the exact scale, or a bound."""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from functools import wraps
from operator import itemgetter
from typing import Any, overload

from pufferfish.calibration.calibrate import calibrate as calibrate_scenario
from pufferfish.calibration.registry import REGISTRY
from pufferfish.calibration.root import raised
from pufferfish.errors import InputError, PufferfishError, did_you_mean, listed
from pufferfish.loss.certificate import Certificate, LossBound
from pufferfish.loss.composition import joint_loss as joint_loss_of_scenario
from pufferfish.loss.proof import certificate_of
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, float_up, parse_epsilon, show
from pufferfish.plans.plan import Plan
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.queries.case import Answers, Case, cases_of, read_answers
from pufferfish.queries.plan import QueryPlan, certify_query
from pufferfish.queries.query import Query
from pufferfish.queries.quilts import gk16, mqm_approx, mqm_exact
from pufferfish.queries.routes import lower_bound, prove, scale_by

_QUILTS: dict[str, Callable[..., float]] = {
    "gk16": gk16,
    "mqm-approx": mqm_approx,
    "mqm-exact": mqm_exact,
}
_OF_COLUMNS = ("wasserstein", "relaxed", "one-sided")
_BOUNDS = ("contraction", "window")
#: Epsilons that doubles can search for.
_LEAST_EPSILON, _LARGEST_EPSILON = Fraction(1, 10**6), 100
#: A lower bound above this share of a scale shows that it is the least.
_NEAR = 1 - 1e-7
#: A loss as near to epsilon as this, relative to it, has reached it.
_SAME = 1e-9
#: All mechanisms for queries, roughly from the most noise to the least.
MECHANISMS = {
    "group": "all dependent records count as one",
    "gk16": "weak dependence of neighbours, two states",
    "mqm-approx": "Markov quilts, by the eigengap",
    "mqm-exact": "Markov quilts, by the largest influence",
    **{name: REGISTRY[name].summary for name in _OF_COLUMNS},
    "contraction": "a bound for every number of records",
    "window": "a bound from windows around each record",
    "exact": "the least Laplace noise",
}


@overload
def calibrate(
    scenario: Query, epsilon: Number, mechanism: str | None = None, *, already: Any = ()
) -> QueryPlan: ...
@overload
def calibrate(
    scenario: Scenario | Prior, epsilon: Number, mechanism: Any = None, **options: Any
) -> Plan: ...
@wraps(calibrate_scenario)
def calibrate(  # noqa: D103  # its docstring is that of what it wraps
    scenario: Any, epsilon: Number, mechanism: Any = None, **options: Any
) -> Plan | QueryPlan:
    if not isinstance(scenario, Query):
        return calibrate_scenario(scenario, epsilon, mechanism, **options)
    already = options.pop("already", ())
    if options:
        raise InputError(
            f"{listed(options)}: not for queries (calibrate(query.scenario(), ...) takes them)"
        )
    return calibrate_query(scenario, epsilon, mechanism, already)


@overload
def joint_loss(scenario: Query, items: Iterable[QueryPlan]) -> LossBound: ...
@overload
def joint_loss(scenario: Scenario | Prior, items: Iterable[Any]) -> LossBound: ...
@wraps(joint_loss_of_scenario)
def joint_loss(  # noqa: D103  # its docstring is that of what it wraps
    scenario: Any, items: Iterable[Any]
) -> LossBound:
    if not isinstance(scenario, Query):
        return joint_loss_of_scenario(scenario, items)
    answers = [
        (query.of(scenario.models, scenario.lengths), noise)
        for query, noise in read_answers(items, scenario)
    ]
    if not answers:
        return LossBound(Fraction(0), Fraction(0))
    return prove(answers[0][0], answers[0][1].scale, None, tuple(answers[1:]))


def calibrate_query(
    query: Query, epsilon: Number, mechanism: str | None = None, already: Any = ()
) -> QueryPlan:
    """Return the plan of a query by one mechanism; by default the least noise that is known.

    Without a mechanism that is ``exact`` where the loss itself is known, else the least of
    ``contraction``, ``window`` and ``group``; ``group`` alone for whole sequences. Epsilon bounds
    the joint loss of the answer and all that plans in ``already`` are for.
    """
    exact_epsilon = parse_epsilon(epsilon)
    if not _LEAST_EPSILON <= exact_epsilon <= _LARGEST_EPSILON:
        raise InputError(
            f"for queries epsilon must be from {show(_LEAST_EPSILON)} to {_LARGEST_EPSILON}, but "
            f"{epsilon} was given"
        )
    earlier = read_answers(already, query)
    cases = cases_of(query, earlier)
    if mechanism is None:
        name, scale = _best(query, exact_epsilon, earlier)
    else:
        name = str(mechanism).strip().casefold().replace("_", "-")
        if name not in MECHANISMS:
            raise InputError(
                f"there is no mechanism {name!r} for queries{did_you_mean(name, MECHANISMS)}; "
                f"they are {listed(MECHANISMS, 20)}"
            )
        scale = scale_of(query, name, exact_epsilon, earlier)
    bounds = dict[float, LossBound]()

    def judge(theta: float) -> tuple[Certificate, bool, float]:
        bounds[theta] = prove(query, theta, exact_epsilon, earlier)
        proof = certificate_of(bounds[theta], exact_epsilon)
        return proof, proof.holds, proof.loss

    try:
        proved, certificate = raised(scale, exact_epsilon, judge)
    except PufferfishError:
        raise InputError(
            f"{name}: no scale near {scale!r} could be proved; transitions as rare, or states as "
            "lasting, as these are beyond doubles"
        ) from None
    least, reached = 0.0, certificate.loss >= float(exact_epsilon) * _NEAR
    if name == "exact" and certificate.method.startswith("contraction") and not reached:
        name = "contraction"  # doubles cannot tell
        if mechanism is not None:
            raise InputError("exact: the least noise is not found to its last digits here")
    if name == "exact" and certificate.loss_at_least >= float(exact_epsilon) * (1 - _SAME):
        least = proved
    elif query.protect == "record":
        attained = (lower_bound(case, exact_epsilon) for case in cases if case.attained)
        least = max(attained, default=0.0)
        if not reached and least >= proved * _NEAR:  # doubles cannot tell
            least = 0.0
    fitted = any(model.from_rows for model in query.models)
    if earlier:
        certificate = certify_query(query, proved, exact_epsilon)
    return QueryPlan(
        query=query, mechanism=name, noise=DiscreteLaplace(proved, query.step),
        epsilon_exact=exact_epsilon, certificate=certificate, least_scale=min(least, proved),
        from_rows=fitted and query.protect == "record",
        notes=tuple(dict.fromkeys(note for m in query.models for note in m.notes)),
        composition=bounds[proved] if earlier else None,
    )  # fmt: skip


def _best(query: Query, epsilon: Fraction, earlier: Answers) -> tuple[str, float]:
    """Return the mechanism of the least noise that is known, an exact one first, and its scale."""
    found: dict[str, float] = {}
    for name in ("group",) if query.protect == "sequence" else ("exact", *_BOUNDS, "group"):
        with suppress(InputError):
            found[name] = scale_of(query, name, epsilon, earlier)
            if name == "exact":
                return name, found[name]
    if not found:
        fault = ": earlier answers leave too little of it"
        if not earlier:
            fault = " and any number of records; a stated number of them (length=N) bounds it"
        raise InputError(
            f"no finite noise is known for this model at epsilon {show(epsilon)}{fault}"
        )
    return min(found.items(), key=itemgetter(1))


def scale_of(query: Query, name: str, epsilon: Fraction, earlier: Answers = ()) -> float:
    """Return the scale of a mechanism, not proved yet, in the units of the answer.

    An InputError says why there is none.
    """
    cases = cases_of(query, earlier)
    whole = any(own.protect == "sequence" for own in cases[0].queries)
    if name == "group":
        if not query.sizes:
            raise InputError("group: sequences of any length have no largest number of records")
        left = epsilon / max(query.sizes) - max(map(max, cases[0].reach(Fraction(0))))
        if left <= 0:
            raise InputError("group: earlier answers leave nothing of epsilon")
        return float_up(query.range * query.step / left)
    if whole:
        raise InputError(f"{name}: whole sequences are hidden by group noise alone")
    if query.vector and name in ("window", *_OF_COLUMNS):
        raise InputError(f"{name}: for one number, not for histograms")
    if earlier and name not in ("contraction", "exact"):
        raise InputError(f"{name}: not beside earlier answers")
    scale = max(_scale_of(case, name, epsilon) for case in cases)
    if math.isinf(scale):
        raise InputError(f"{name}: there is no finite scale for this model at this epsilon")
    return scale


def _scale_of(case: Case, name: str, epsilon: Fraction) -> float:
    query, model = case.query, case.model
    if name == "exact":
        return _exact_scale(case, epsilon)
    if name in _BOUNDS:
        return scale_by(name, case, epsilon)
    if name in _OF_COLUMNS:
        return float(REGISTRY[name].calibrate(query.scenario(), epsilon).scale)
    if not case.has_start or not query.lengths:
        raise InputError(f"{name}: for a chain with an initial law and a stated number of records")
    return _QUILTS[name](model, query.lengths, query.range, float(epsilon)) * float(query.step)


def _exact_scale(case: Case, epsilon: Fraction) -> float:
    query = case.query
    bounds = "try contraction" if query.vector else f"bounds of it are {listed(_BOUNDS)}"
    route = case.exact_route if case.attained else None
    if route is None:
        raise InputError(
            f"exact: the loss itself is not known for this model, query and length; {bounds}"
        )
    scale = scale_by(route, case, epsilon)
    doubted = route == "contraction" and len(query.states) > 2  # of two states it is a closed form
    if doubted and lower_bound(case, epsilon) < scale * _NEAR:
        raise InputError(f"exact: the least noise is not found to its last digits here; {bounds}")
    return scale
