# SPDX-License-Identifier: Apache-2.0
"""Routes: the ways in which the loss of a query's noise is known, and which of them are exact.

A route finds a scale in doubles and proves the loss of any scale in balls. ``ends`` and
``scenario`` are exact; a ``contraction`` holds for every number of records, and is exact for MTP2
chains in their stationary law; a ``window`` nears the loss as it widens (theory, section 8).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any

from pufferfish.calibration.exact import exact, least_factor
from pufferfish.calibration.root import find_root
from pufferfish.loss.certificate import LossBound, rank
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.loss.proof import loss_bound
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import float_up
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.chain_box import ChainBox
from pufferfish.queries.contraction import (
    birkhoff_loss,
    contraction_loss,
    prove_birkhoff,
    prove_contraction,
)
from pufferfish.queries.ends import Ends, is_tp2, limit_of_ends, prove_ends
from pufferfish.queries.model import Model, cross_ratio
from pufferfish.queries.query import MOST_CELLS, Query
from pufferfish.queries.window import prove_window, window_loss

#: Records above which a contraction is tried first, and above which there are no ends.
_MANY, _MOST_FOR_ENDS = 100_000, 2_000_000
#: Cells of a scenario up to which it is quicker than a contraction.
_FEW = 20_000
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


def models_of(query: Query) -> list[Model]:
    """Return the models whose losses bound that of a query: of a class of chains its worst."""
    worst = ((m.chains() if isinstance(m, ChainBox) else None) or [m] for m in query.models)
    return [model for models in worst for model in models]


def is_attained(query: Query, model: Model) -> bool:
    """Whether one of the models of a query is this one, or a class of chains that has it."""
    return any(own == model or (isinstance(own, ChainBox) and model in own) for own in query.models)


def exact_route(query: Query, model: Model) -> str | None:
    """Return the route whose loss is the model's own; None: there is none."""
    if isinstance(model, MarkovChain) and model.start is not None and not query.vector:
        most = max(query.lengths or [0])
        if is_tp2(model.transition, query.weights) and most <= _MOST_FOR_ENDS:
            return "contraction" if query.lengths is None else "ends"
    return "scenario" if _has_scenario(query, model) else None


def _has_scenario(query: Query, model: Model) -> bool:
    """Return whether a model is one law, and its scenario is small enough."""
    several = isinstance(model, ChainBox)
    several |= isinstance(model, MarkovChain) and model.start is None
    return not several and 0 < query.of(model).cells <= MOST_CELLS


def scale_by(route: str, query: Query, model: Model, epsilon: Fraction) -> float:
    """Return the least scale that a route finds, in units of the answer; inf: it finds none."""
    steps = _SCALES[route](query.of(model), model, epsilon)
    return steps if math.isinf(steps) else float_up(Fraction(steps) * query.step)


def lower_bound(query: Query, model: Model, epsilon: Fraction) -> float:
    """Return a scale below which no noise will do, as the ends of a chain show; else 0."""
    if not isinstance(model, MarkovChain) or model.start is None:
        return 0.0
    if len(model.states) > _FEW_STATES:
        return 0.0
    lengths = query.lengths
    rising = not query.vector and model.stationary and is_tp2(model.transition, query.weights)
    if lengths is not None and max(lengths) > _MANY:
        if not rising:
            return 0.0
        lengths = (_MANY,)  # the loss rises with the number of records
    corners = [query.weights]
    if query.vector:  # each number of the answer goes to minus or to plus infinity
        k = len(model.states)
        sets = range(1, (1 << k) - 1) if k <= _ALL_CORNERS else [1 << s for s in range(k)]
        corners = [tuple(2 * (each >> s & 1) for s in range(k)) for each in sets]
    found = 0.0
    for weights in corners:
        ends: Callable[[float], float] = Ends(model, weights, lengths or (_LONG,))
        if lengths is None and rising:
            ends = partial(limit_of_ends, model, weights)
        found = max(found, _scale(ends, query, epsilon))
    # Where hardly any noise will do, none at all may.
    bound = found if found * _HARDLY_ANY >= query.range else 0.0
    return bound * float(query.step) * (1 - _MARGIN)


def prove_model(query: Query, model: Model, scale: float, epsilon: Fraction) -> LossBound:
    """Return the loss under one model by the first route that proves it within epsilon.

    Where none does it is that of the route with the least upper bound.
    """
    own, found = query.of(model), list[LossBound]()
    for route in _routes(own, model) if scale else ["scenario"] * _has_scenario(own, model):
        with suppress(GridTooLarge):
            found.append(_proof(route, own, model, scale, epsilon))
            if found[-1].at_most(epsilon):
                break
    return min(found, key=lambda bound: rank(bound.upper), default=UNKNOWN)


def _proof(route: str, query: Query, model: Any, scale: float, epsilon: Fraction) -> LossBound:
    """Return what a route proves of a scale, which is above 0 but for a scenario."""
    if route == "scenario":
        noise = DiscreteLaplace(scale, query.step)
        releases = dict.fromkeys(range(len(query.names)), (noise,))
        return loss_bound(query.scenario(), releases, epsilon=epsilon)
    rate, lengths = query.step / Fraction(scale), query.lengths or ()
    if route == "ends":
        return prove_ends(model, query.weights, lengths, rate, _BITS)
    if route == "window":
        found = UNKNOWN
        for width in _widths(lengths):
            found = prove_window(model, query.weights, lengths, width, rate, epsilon)
            if found.at_most(epsilon):
                break
        return found
    if isinstance(model, ChainBox):
        upper = prove_birkhoff(model.k_squared, query.range, rate, _BITS)
    else:
        upper = prove_contraction(model, query.spread, rate, _BITS)
    return LossBound(upper, Fraction(0), method="contraction+ball", precision=_BITS)


def _routes(query: Query, model: Model) -> Iterator[str]:
    """Yield the routes that may prove a loss, the exact and quick ones first."""
    own = exact_route(query, model)
    chain = isinstance(model, MarkovChain | ChainBox)
    slow = max(query.lengths or [0]) > _MANY or (own == "scenario" and query.cells > _FEW)
    bounds = ["contraction"] if chain and own != "contraction" else []
    exact_ones = [] if own is None else [own]
    yield from bounds + exact_ones if chain and slow else exact_ones + bounds
    if own is None and _has_windows(query, model):
        yield "window"


def _has_windows(query: Query, model: Model) -> bool:
    started = isinstance(model, MarkovChain) and model.start is not None
    return started and bool(query.lengths) and not query.vector


def _widths(lengths: Sequence[int]) -> list[int]:
    """Return the widths of windows that are tried, to the first that covers all sequences."""
    return [w for before, w in pairwise((0, *_WIDTHS)) if before < max(lengths)]


def _ends_scale(query: Query, chain: MarkovChain, epsilon: Fraction) -> float:
    lengths = query.lengths or ()
    if max(lengths) > _MANY and chain.stationary:
        # The loss rises with the number of records, to that of any number of them.
        limit = _contraction_scale(query, chain, epsilon)
        part = _scale(Ends(chain, query.weights, (_MANY,)), query, epsilon)
        if limit <= part * (1 + _SAME):
            return limit
    return _scale(Ends(chain, query.weights, lengths), query, epsilon)


def _scenario_scale(query: Query, model: Model, epsilon: Fraction) -> float:
    scenario, each = query.scenario(), range(len(query.names))
    if not query.vector:
        return float_up(Fraction(exact(scenario, epsilon).scale) / query.step)
    nothing = dict.fromkeys(each, (DiscreteLaplace(0.0, query.step),))
    if loss_bound(scenario, nothing, epsilon=epsilon).at_most(epsilon):
        return 0.0
    return float_up(least_factor(scenario, dict.fromkeys(each, Fraction(1)), {}, epsilon, epsilon))


def _contraction_scale(query: Query, model: Model, epsilon: Fraction) -> float:
    if isinstance(model, ChainBox):
        squared = model.k_squared
        loss: Callable[[float], float] = partial(birkhoff_loss, squared, query.range)
    elif isinstance(model, MarkovChain):
        squared = cross_ratio(model.transition)
        loss = partial(contraction_loss, model, query.spread)
    else:
        return math.inf
    # Birkhoff's bound is never below, so that its u is private.
    k = math.sqrt(min(squared or 1, 10**300))
    start = 4 / query.range * math.asinh(math.sinh(float(epsilon) / 4) / k)
    return _scale(loss, query, epsilon, start)


def _window_scale(query: Query, chain: Any, epsilon: Fraction) -> float:
    best, goal = math.inf, float(epsilon)
    if not _has_windows(query, chain) or not query.lengths:
        return best
    low = (1 - _SAME) * goal / (query.range * max(query.lengths))
    for width in _widths(query.lengths):
        try:
            loss = window_loss(chain, query.weights, query.lengths, width)
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
    loss: Callable[[float], float], query: Query, epsilon: Fraction, start: float = 0.0
) -> float:
    """Return 1 / u for the largest u at which a loss that rises with u is within epsilon."""
    goal = float(epsilon)
    excess, low = cache(lambda u: loss(u) - goal), start or goal / query.range
    for _ in range(30):
        if excess(low) <= 0:
            break
        low /= 2
    else:
        return math.inf
    while low * query.range <= _HARDLY_ANY and excess(2 * low) <= 0:
        low *= 2
    if low * query.range > _HARDLY_ANY:
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
