# SPDX-License-Identifier: Apache-2.0
"""``channel``: the least expected distortion that any record-by-record channel can have.

A linear program (theory, section 4), then a repair: the solver's floating-point answer becomes a
channel of integers that satisfies every privacy inequality in exact arithmetic.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish.calibration.channel_program import build, check_size, least_cost, most_kept
from pufferfish.calibration.channel_repair import repaired
from pufferfish.calibration.channel_task import (
    Task,
    check_span,
    output_alphabet,
    read_conditions,
    read_costs,
    read_weights,
    widened,
)
from pufferfish.calibration.proposal import Proposal
from pufferfish.calibration.solver import Infeasible, solve
from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.thresholds import exp_minus
from pufferfish.numbers import float_up, show
from pufferfish.plans.distortion import Distortion
from pufferfish.priors.ambiguity import Point
from pufferfish.priors.scenario import Scenario

#: Below it doubles do not tell e^epsilon from 1; above the other the channel of that one is used.
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), Fraction(20)
#: Bits of e^epsilon, and of the intervals that it is computed from.
_BITS, _EXP_BITS = 160, 256


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
) -> Proposal:
    """Return the channel of least expected cost that is epsilon-Pufferfish private.

    Source: theory, sections 4 and 5. ``cost`` is ``hamming`` (the default for levels without an
    order), ``squared`` (the default otherwise), ``absolute``, a mapping or a matrix c(x, y);
    ``weights`` say how much each value counts, by default pooled counts. ``outputs`` puts so many
    further outputs between every two neighbours; ``unbiased`` adds some beyond the range.
    InputError says what cannot be met, and what could; PufferfishError that the solver failed.
    """
    if epsilon < LEAST_EPSILON:
        raise InputError(f"a channel needs epsilon of at least 1e-6, but {show(epsilon)} was given")
    used = min(epsilon, LARGEST_EPSILON)
    inputs = scenario.support
    conditions = read_conditions(inputs, invariant, unbiased, min_keep)
    alphabet = output_alphabet(inputs, outputs)
    if unbiased:
        alphabet = widened(alphabet, _coth_above(used))
    sets = scenario.sets()
    check_size(sets, len(scenario.pairs), inputs.size, alphabet.size)
    costs = read_costs(inputs, alphabet, cost)
    check_span(costs, unbiased)
    at = {secret: k for k, secret in enumerate(scenario.protected)}
    pairs = tuple((at[first], at[second]) for first, second in scenario.pairs)
    mu = read_weights(scenario, weights)
    task = Task(inputs, alphabet, sets, pairs, exponential_below(used), costs, mu, conditions)
    if invariant and min_keep is not None and task.idle:
        raise InputError(
            "invariant and min_keep together need weights above 0, but that of "
            f"{inputs.name(task.idle[0])!r} is 0"
        )
    program = build(task)
    try:
        optimum = solve(program.lp)
    except Infeasible:
        raise InputError(_why_infeasible(task, used)) from None
    made = repaired(task, optimum.values)
    spent = expected_cost(task, made)
    least = Fraction(least_cost(program, optimum.duals, private=used == epsilon)) * task.unit
    gap = float_up(max(Fraction(0), spent - least - task.fixed))
    notes = (f"the channel was computed for epsilon {show(used)}, and is private for larger ones",)
    return Proposal(
        made,
        notes=notes if used < epsilon else (),
        distortion=Distortion.of(made, spent, costs.name, mu, gap, conditions.names),
        cost=spent,
        weights=mu,
    )


def expected_cost(task: Task, made: Channel) -> Fraction:
    """Return sum_x mu(x) sum_y c(x, y) M(y|x), exactly."""
    rows = zip(task.weights, made.rows, made.denominators, task.costs.whole, strict=True)
    spent = (w * Fraction(int(np.dot(row, costs)), whole) for w, row, whole, costs in rows if w)
    return sum(spent, Fraction(0)) * task.costs.unit


def exponential_below(epsilon: Fraction) -> Fraction:
    """Return a rational E with 1 < E <= e^epsilon, to some 140 bits of E - 1."""
    _, high = exp_minus(epsilon, _EXP_BITS)
    return Fraction((1 << (_BITS + _EXP_BITS)) // high, 1 << _BITS)


def _coth_above(epsilon: Fraction) -> Fraction:
    """Return a rational at least coth(epsilon / 2) = (1 + e^-epsilon) / (1 - e^-epsilon)."""
    _, high = exp_minus(epsilon, _EXP_BITS)
    return Fraction((1 << _EXP_BITS) + high, (1 << _EXP_BITS) - high)


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
        f"no channel that is private at epsilon {show(epsilon)} meets "
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
