# SPDX-License-Identifier: Apache-2.0
"""``channel``: the least expected distortion that any record-by-record channel can have.

A linear program (theory, section 4), then a repair: the solver's floating-point answer becomes a
channel of integers that satisfies every privacy inequality in exact arithmetic.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from pufferfish.calibration.channel_options import (
    check_span,
    output_alphabet,
    read_conditions,
    read_costs,
    read_weights,
    widened,
)
from pufferfish.calibration.channel_program import build, check_size, least_cost, most_kept
from pufferfish.calibration.channel_repair import repaired
from pufferfish.calibration.channel_task import Task
from pufferfish.calibration.solver import Infeasible, solve
from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.thresholds import exp_minus
from pufferfish.numbers import float_up, show
from pufferfish.priors.ambiguity import AmbiguitySet, Point
from pufferfish.priors.scenario import Scenario

#: Below it doubles do not tell e^epsilon from 1; above the other the channel of that one is used.
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), Fraction(20)
#: A local DP channel of more values takes minutes.
MOST_LOCAL = 100
#: Bits of e^epsilon, and of the intervals that it is computed from.
_BITS, _EXP_BITS = 160, 256


@dataclass(frozen=True, eq=False)
class ChannelSolution:
    """A channel of integers that is private, and what is known of its cost.

    ``cost`` is exact and exceeds the least possible one by at most ``gap`` (weak duality), both in
    the unit of the cost. The ``weights`` sum to 1. The side ``conditions`` hold exactly, as named:
    ``invariant``, ``unbiased``, ``min_keep 0.6``. The solver alone took so many ``seconds``.
    """

    channel: Channel
    cost: Fraction
    cost_name: str
    weights: tuple[Fraction, ...]
    gap: float
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


def channel(
    scenario: Scenario,
    epsilon: Fraction,
    *,
    cost: object = None,
    outputs: int | str | None = None,
    invariant: bool = False,
    unbiased: bool = False,
    min_keep: object = None,
    weights: Sequence[object] | Mapping[Any, object] | None = None,
    local: bool = False,
) -> ChannelSolution:
    """Return the channel of least expected cost that is epsilon-Pufferfish private.

    Source: theory, sections 4 and 5. ``cost`` is ``hamming`` (the default for levels without an
    order), ``squared`` (the default otherwise), ``absolute``, a mapping or a matrix c(x, y);
    ``weights`` say how much each value counts, by default pooled counts. ``outputs`` puts so many
    further outputs between every two neighbours; ``unbiased`` adds some beyond the range. With
    ``local`` every value is hidden from every other, whatever the prior. InputError says what
    cannot be met, and what could; PufferfishError that the solver failed.
    """
    if epsilon < LEAST_EPSILON:
        raise InputError(f"a channel needs epsilon of at least 1e-6, but {show(epsilon)} was given")
    used = min(epsilon, LARGEST_EPSILON)
    inputs = scenario.support
    conditions = read_conditions(inputs, invariant, unbiased, min_keep)
    alphabet = output_alphabet(inputs, outputs)
    if unbiased:  # the points beyond the range are far away, and all unbiased channels need them
        alphabet = widened(alphabet, _coth_above(used))
    sets, pairs = _everything(inputs.size) if local else _protected(scenario)
    check_size(sets, len(pairs), inputs.size, alphabet.size)
    costs = read_costs(inputs, alphabet, cost)
    check_span(replace(costs, whole=costs.whole[:, 1:-1]) if unbiased else costs)
    task = Task(
        inputs,
        alphabet,
        sets,
        pairs,
        exponential_below(used),
        costs,
        read_weights(scenario, weights),
        conditions,
    )
    if invariant and min_keep is not None:
        _check_weighted(task)
    program = build(task)
    try:
        optimum = solve(program.lp)
    except Infeasible:
        raise InputError(_why_infeasible(task, epsilon)) from None
    made = repaired(task, optimum.values)
    spent = expected_cost(task, made)
    bound = Fraction(least_cost(program, optimum.duals, private=used == epsilon)) * task.unit
    notes: tuple[str, ...] = ()
    if used < epsilon:
        notes = (
            f"the channel was computed for epsilon {show(used)}, and is private for larger ones",
        )
    return ChannelSolution(
        made,
        spent,
        task.costs.name,
        task.weights,
        float_up(max(Fraction(0), spent - bound - task.fixed)),
        conditions.names,
        notes,
        optimum.seconds,
    )


def _check_weighted(task: Task) -> None:
    """Refuse to keep a value that an invariant channel never publishes."""
    idle = [x for x, w in enumerate(task.weights) if not w and x not in task.averaged]
    if idle:
        raise InputError(
            "invariant and min_keep together need weights above 0, but that of "
            f"{task.inputs.name(idle[0])!r} is 0"
        )


def expected_cost(task: Task, made: Channel) -> Fraction:
    """Return sum_x mu(x) sum_y c(x, y) M(y|x), exactly."""
    total = Fraction(0)
    rows = zip(task.weights, made.rows, made.denominators, task.costs.whole, strict=True)
    for weight, row, whole, prices in rows:
        if weight:
            total += weight * Fraction(int(np.dot(row, prices)), whole)
    return total * task.costs.unit


def exponential_below(epsilon: Fraction) -> Fraction:
    """Return a rational E with 1 < E <= e^epsilon, to some 140 bits of E - 1."""
    _, high = exp_minus(epsilon, _EXP_BITS)
    return Fraction((1 << (_BITS + _EXP_BITS)) // high, 1 << _BITS)


def _coth_above(epsilon: Fraction) -> Fraction:
    """Return a rational at least coth(epsilon / 2) = (1 + e^-epsilon) / (1 - e^-epsilon)."""
    _, high = exp_minus(epsilon, _EXP_BITS)
    return Fraction((1 << _EXP_BITS) + high, (1 << _EXP_BITS) - high)


Protected = tuple[tuple[tuple[AmbiguitySet, ...], ...], tuple[tuple[int, int], ...]]


def _protected(scenario: Scenario) -> Protected:
    """Return what each adversary holds possible, and the pairs by position."""
    at = {secret: k for k, secret in enumerate(scenario.protected)}
    return scenario.sets(), tuple((at[first], at[second]) for first, second in scenario.pairs)


def _everything(size: int) -> Protected:
    """Return point masses on all values, and all pairs of them."""
    if size > MOST_LOCAL:
        raise InputError(
            f"a channel that hides every value is computed for at most {MOST_LOCAL} values, but "
            f"there are {size}"
        )
    points = tuple(Point(row, 1) for row in np.eye(size, dtype=np.int64))
    return (points,), tuple(combinations(range(size), 2))


def _why_infeasible(task: Task, epsilon: Fraction) -> str:
    """Return one line on what cannot be met, and what would make it feasible."""
    asked = task.conditions
    ways = []
    if asked.min_keep is not None:
        most = _most_kept(task)
        ways.append(f"min_keep {show(most)} or less" if most else "a smaller min_keep")
    if epsilon < LARGEST_EPSILON:
        ways.append("a larger epsilon")
    if len(asked.names) > 1:
        ways.append("fewer conditions")
    if any(not isinstance(s, Point) for own in task.sets for s in own):
        ways.append("no region (confidence or tv_radius)")
    return (
        f"no channel that is private at epsilon {show(min(epsilon, LARGEST_EPSILON))} meets "
        f"{' and '.join(asked.names)}; feasible with {' or '.join(ways)}"
    )


def _most_kept(task: Task) -> Fraction | None:
    """Return the largest feasible min_keep, rounded down to 4 digits."""
    try:
        largest = float(solve(most_kept(task)).values[-1]) * (1 - 1e-6)
    except PufferfishError:
        return None
    if largest < 1e-6:
        return None
    unit = Fraction(10) ** (math.floor(math.log10(largest)) - 3)
    return math.floor(Fraction(largest) / unit) * unit
