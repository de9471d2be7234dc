# SPDX-License-Identifier: Apache-2.0
"""Routes: the ways in which the loss of a query's noise is known, and which of them are exact.

A route finds a scale in doubles and proves the loss of any scale in balls. ``ends`` and
``scenario`` are exact; a ``contraction`` holds for every number of records, and is exact for MTP2
chains in their stationary law; a ``window`` nears the loss as it widens (theory, section 8).
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from pufferfish.calibration.exact import exact, least_factor
from pufferfish.calibration.root import find_root
from pufferfish.loss.certificate import LossBound, rank
from pufferfish.loss.doubles import RateLoss
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.loss.proof import loss_bound
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import float_up
from pufferfish.queries.case import MANY, Answers, Case, cases_of
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.chain_box import ChainBox
from pufferfish.queries.contraction import (
    birkhoff_loss,
    contraction_loss,
    prove_birkhoff,
    prove_contraction,
)
from pufferfish.queries.ends import Ends, limit_of_ends, prove_ends
from pufferfish.queries.model import cross_ratio
from pufferfish.queries.query import Query, scenario_of
from pufferfish.queries.window import prove_window, window_loss

#: Records that stand for any number where a lower bound is looked for.
_LONG = 1000
#: Widths that are tried in turn; the search stops where the next one gains less than _GAIN.
_WIDTHS, _GAIN = (4, 8, 16, 32, 64), 1e-6
_BITS = 128
#: Scales that differ by no more, relative to themselves, are the same.
_SAME = 1e-9
#: How far a scale that was found in doubles is lifted, relative to itself.
_MARGIN = 1e-12
#: A rate of the noise, times the range, at which there is hardly any noise.
_HARDLY_ANY = 500
#: States of a histogram up to which all corners are looked at; states up to which ends are.
_ALL_CORNERS, _FEW_STATES = 4, 20
#: Nothing is known of a loss.
UNKNOWN = LossBound(None, Fraction(0))


def scale_by(route: str, case: Case, epsilon: Fraction) -> float:
    """Return the least scale that a route finds, in units of the answer; inf: it finds none."""
    steps = _SCALES[route](case, epsilon)
    return steps if math.isinf(steps) else float_up(Fraction(steps) * case.query.step)


def lower_bound(case: Case, epsilon: Fraction) -> float:
    """Return a scale below which no noise will do, as the ends of a chain show; else 0."""
    query, model, lengths = case.query, case.model, case.query.lengths
    if not case.has_start or len(model.states) > _FEW_STATES:
        return 0.0
    rising = model.stationary and case.rising
    if lengths is not None and max(lengths) > MANY:
        if not rising:
            return 0.0
        lengths = (MANY,)  # the loss rises with the number of records
    tilts: list[Callable[[float], Any]] = [case.tilt] if case.end is not None else []
    if not tilts and not case.earlier:  # each number goes to minus or to plus infinity
        k = len(model.states)
        sets = range(1, (1 << k) - 1) if k <= _ALL_CORNERS else [1 << s for s in range(k)]
        corners = (np.array([2.0 * (each >> s & 1) for s in range(k)]) for each in sets)
        tilts = [corner.__mul__ for corner in corners]
    ends: Callable[[Any], float] = Ends(model, lengths or (_LONG,))
    if lengths is None and rising:
        ends = partial(limit_of_ends, model)
    losses = (partial(_tilted, ends, tilt) for tilt in tilts)
    found = max((_scale(loss, case, epsilon) for loss in losses), default=0.0)
    # Where hardly any noise will do, none at all may.
    bound = found if math.inf > found * _HARDLY_ANY >= query.range else 0.0
    return bound * float(query.step) * (1 - _MARGIN)


def _tilted(ends: Callable[[Any], float], tilt: Callable[[float], Any], u: float) -> float:
    return ends(np.array(tilt(u), dtype=np.float64))


def prove(
    query: Query, scale: float, epsilon: Fraction | None = None, earlier: Answers = ()
) -> LossBound:
    """Prove the loss of noise for a query, beside earlier answers, under all of their models.

    It is the least bound that is found or, with ``epsilon``, the first one that is within it.
    Whatever the model is, the reach of all dependent records is a bound.
    """
    found, cases = UNKNOWN, cases_of(query, earlier)
    if all(own.protect == "record" for own in cases[0].queries):
        found = max((_prove(case, scale, epsilon) for case in cases), key=lambda b: rank(b.upper))
        if not all(case.attained for case in cases):
            found = replace(found, lower=Fraction(0))  # only the loss of a model is a lower bound
    if scale and query.sizes and not (epsilon and found.at_most(epsilon)):
        group = max(query.sizes) * max(map(max, cases[0].reach(query.step / Fraction(scale))))
        if rank(group) < rank(found.upper):
            found = LossBound(group, found.lower, method="group+rational")
    return found


def _prove(case: Case, scale: float, epsilon: Fraction | None) -> LossBound:
    """Return the loss under one model by the first route that proves it within epsilon.

    Where none does it is that of the route with the least upper bound.
    """
    found = list[LossBound]()
    for route in case.routes() if scale else ["scenario"] * case.has_scenario:
        with suppress(GridTooLarge):
            found.append(_proof(route, case, scale, epsilon))
            if epsilon and found[-1].at_most(epsilon):
                break
    lower = max((bound.lower for bound in found), key=rank, default=Fraction(0))
    return replace(min(found, key=lambda own: rank(own.upper), default=UNKNOWN), lower=lower)


def _proof(route: str, case: Case, scale: float, epsilon: Fraction | None) -> LossBound:
    """Return what a route proves of a scale, which is above 0 but for a scenario."""
    query, model = case.query, case.model
    if route == "scenario":
        noises = [DiscreteLaplace(scale, query.step), *(noise for _, noise in case.earlier)]
        return loss_bound(scenario_of(case.queries), _by_axis(case, noises), epsilon=epsilon)
    rate, lengths = query.step / Fraction(scale), query.lengths or ()
    if route == "ends":
        return prove_ends(model, case.tilt(rate), lengths, _BITS)
    if route == "window":
        found = UNKNOWN
        for width in _widths(lengths):
            found = prove_window(model, query.weights[0], lengths, width, rate, epsilon)
            if epsilon and found.at_most(epsilon):
                break
        return found
    reach = case.reach(rate)
    if isinstance(model, ChainBox):
        upper = prove_birkhoff(model.k_squared, max(map(max, reach)), _BITS)
    else:
        upper = prove_contraction(model, reach, _BITS)
    return LossBound(upper, Fraction(0), method="contraction+ball", precision=_BITS)


def _by_axis(case: Case, noises: Sequence[DiscreteLaplace]) -> dict[int, list[DiscreteLaplace]]:
    """Return the noise of each axis of a scenario."""
    pairs = zip(case.queries, noises, strict=True)
    return dict(enumerate([noise] for query, noise in pairs for _ in query.weights))


def _widths(lengths: Sequence[int]) -> list[int]:
    """Return the widths of windows that are tried, to the first that covers all sequences."""
    return [w for before, w in pairwise((0, *_WIDTHS)) if before < max(lengths)]


def _ends_scale(case: Case, epsilon: Fraction) -> float:
    chain, lengths = case.model, case.query.lengths or ()

    def scale(ends: Ends) -> float:
        return _scale(partial(_tilted, ends, case.tilt), case, epsilon)

    if max(lengths) > MANY and chain.stationary:
        # The loss rises with the number of records, to that of any number of them.
        limit = _contraction_scale(case, epsilon)
        if limit <= scale(Ends(chain, (MANY,))) * (1 + _SAME):
            return limit
    return scale(Ends(chain, lengths))


def _scenario_scale(case: Case, epsilon: Fraction) -> float:
    query, scenario = case.query, scenario_of(case.queries)
    if not query.vector and not case.earlier:
        return float_up(Fraction(exact(scenario, epsilon).scale) / query.step)
    noises = [DiscreteLaplace(0.0, query.step), *(noise for _, noise in case.earlier)]
    every = _by_axis(case, noises)
    if loss_bound(scenario, every, epsilon=epsilon).at_most(epsilon):
        return 0.0
    own = range(len(query.weights))
    rates, known = dict.fromkeys(own, Fraction(1)), {n: every[n] for n in every if n not in own}
    if not known:
        return float_up(least_factor(scenario, rates, {}, epsilon, epsilon))
    loss = RateLoss(scenario, rates, known)
    return _scale(lambda u: loss.worst(u)[0], case, epsilon)


def _contraction_scale(case: Case, epsilon: Fraction) -> float:
    model, k, start = case.model, 1.0, 0.0
    if isinstance(model, ChainBox):
        squared = model.k_squared

        def loss(u: float) -> float:
            return birkhoff_loss(squared, float(max(map(max, case.reach(u)))))
    elif isinstance(model, MarkovChain):
        chain, squared = model, cross_ratio(model.transition)

        def loss(u: float) -> float:
            return contraction_loss(chain, case.reach(u))
    else:
        return math.inf
    if not case.earlier:  # Birkhoff's bound is never below, so that its u is private
        k = math.sqrt(min(squared or 1, 10**300))
        start = 4 / case.query.range * math.asinh(math.sinh(float(epsilon) / 4) / k)
    return _scale(loss, case, epsilon, start)


def _window_scale(case: Case, epsilon: Fraction) -> float:
    query, chain = case.query, case.model
    best, goal = math.inf, float(epsilon)
    if not case.has_windows or not query.lengths:
        return best
    low = (1 - _SAME) * goal / (query.range * max(query.lengths))
    for width in _widths(query.lengths):
        try:
            loss = window_loss(chain, query.weights[0], query.lengths, width)
        except GridTooLarge:
            return best
        if loss.worst(low)[0] > goal:
            continue
        u = max(low, _HARDLY_ANY / query.range)
        if loss.worst(u)[0] > goal:
            u, _ = find_root(loss, goal, low, low, 1e-12, 1e-12)
        before, best = best, min(best, (1 + _MARGIN) / u)
        if before <= best * (1 + _GAIN):
            break
    return best


def _scale(
    loss: Callable[[float], float], case: Case, epsilon: Fraction, start: float = 0.0
) -> float:
    """Return 1 / u for the largest u at which a loss that rises with u is within epsilon."""
    goal, widest = float(epsilon), case.query.range
    excess, low = cache(lambda u: loss(u) - goal), start or goal / widest
    for _ in range(30):
        if excess(low) <= 0:
            break
        low /= 2
    else:
        return math.inf
    while low * widest <= _HARDLY_ANY and excess(2 * low) <= 0:
        low *= 2
    if low * widest > _HARDLY_ANY:
        return 1 / low
    return (1 + _MARGIN) / _root(excess, low, 2 * low)


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the lower end of a bracket of a root, 1e-13 wide.

    By secants, where the older end counts half after each step on one side.
    """
    at_low, at_high, side = excess(low), excess(high), 0
    for _ in range(100):
        if high - low <= 1e-13 * high or at_low == 0:
            break
        u = (low * at_high - high * at_low) / (at_high - at_low) if math.isfinite(at_high) else 0.0
        if not low < u < high:
            u = low + (high - low) / 2
        value = excess(u)
        if value <= 0:
            low, at_low, at_high = u, value, at_high / (2 if side < 0 else 1)
            side = -1
        else:
            high, at_high, at_low = u, value, at_low / (2 if side > 0 else 1)
            side = 1
    return low


_SCALES: dict[str, Callable[..., float]] = {
    "ends": _ends_scale, "scenario": _scenario_scale, "contraction": _contraction_scale,
    "window": _window_scale,
}  # fmt: skip
