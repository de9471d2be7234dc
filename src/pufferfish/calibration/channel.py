# SPDX-License-Identifier: Apache-2.0
"""``channel``: the least expected distortion that any record-by-record channel can have.

A linear program (theory, section 4), then a repair: the solver's floating-point answer becomes a
channel of integers that satisfies every privacy inequality in exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from pufferfish.calibration.channel_program import check_size
from pufferfish.calibration.channel_task import Answer, Task
from pufferfish.calibration.conditions import Conditions
from pufferfish.calibration.costs import cost_matrix, default_cost, weights_of
from pufferfish.calibration.dyadic import log2
from pufferfish.calibration.highs import Infeasible
from pufferfish.calibration.outputs import output_alphabet, widened
from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms.channel import Channel
from pufferfish.precision import precision
from pufferfish.rationals import show
from pufferfish.regions import Concrete
from pufferfish.scenario import Scenario
from pufferfish.support import Levels

#: Above it the channel of this epsilon is used, for e^epsilon is one of the solver's coefficients.
#: Without side conditions that costs at most m / (e^20 - 1 + m) of the largest cost more, 4e-9 for
#: two secrets (theory, section 4).
LARGEST_EPSILON = Fraction(20)
#: Below it the program of epsilon 0 is tried first; up to the other, where need be.
_TINY, _SMALL = Fraction(1, 10**6), Fraction(1, 100)
#: Above it the program of this epsilon is tried where need be.
_LARGE = Fraction(12)
#: Up to it e^epsilon is computed, to see whether values may be published unchanged.
_MOST = Fraction(5000)
_LARGEST_COST = Fraction(2**1000)


@dataclass(frozen=True, eq=False)
class ChannelSolution:
    """An optimal channel and what is known of its cost.

    Attributes
    ----------
    channel : Channel
        Of integers; every privacy inequality holds exactly.
    cost : Fraction
        Its expected cost, exact.
    lp_bound : float
        No channel costs less: from the solver's duals, whatever its tolerance.
    repair : float
        What exactness (and all else) may have cost, relative to that bound.
    solver_seconds : float
        What the solver alone took.
    weights : tuple of Fraction
        mu, one per value; they sum to 1.
    cost_name : str
        ``hamming``, ``squared``, ``absolute``, or ``own``.
    conditions : tuple of str
        The side conditions that hold, each to 1e-9: ``invariant``, ``unbiased``, ``min_keep 0.6``.
    notes : tuple of str
        What the user should know of the answer.
    """

    channel: Channel
    cost: Fraction
    lp_bound: float
    repair: float
    solver_seconds: float
    weights: tuple[Fraction, ...]
    cost_name: str
    conditions: tuple[str, ...]
    notes: tuple[str, ...]


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
    regions: Sequence[Concrete] | None = None,
) -> ChannelSolution:
    """Return the channel of least expected cost that is epsilon-Pufferfish private.

    Parameters
    ----------
    scenario : Scenario
        Numbers or levels, ordered or not.
    epsilon : Fraction
        Above 0. For tiny and for huge ones the channel of another epsilon may be returned, of
        which it is private too; ``notes`` say so, and what it costs.
    cost : str, mapping or matrix, optional
        ``hamming`` (the default for levels without an order), ``squared`` (the default for numbers
        and ordered levels), ``absolute``, or c(x, y).
    outputs : int or "fine:K", optional
        So many further outputs between every two neighbours; by default outputs are the values.
    invariant : bool
        The frequencies mu stay what they are: mu M = mu (to 1e-9).
    unbiased : bool
        The expected output is the value (to 1e-9); adds outputs beyond the range.
    min_keep : number, optional
        Each value stays itself at least that often (to 1e-9).
    weights : sequence of numbers, or mapping by value, optional
        mu; by default pooled counts.
    regions : sequence of Box or Ball, optional
        Where the priors may lie, one per adversary (:func:`pufferfish.regions.regions_of`).

    Raises
    ------
    InputError
        If an option is wrong, the program would be too large, or no channel meets the side
        conditions; says what would.
    PufferfishError
        If the solver fails, or meets the side conditions less well than to 1e-9: never a channel
        that was not checked.

    Notes
    -----
    Source: theory, sections 4 and 5.
    """
    conditions = Conditions.checked(invariant, unbiased, min_keep)
    inputs = scenario.support
    used = min(epsilon, LARGEST_EPSILON)
    alphabet = output_alphabet(inputs, outputs)
    if unbiased:
        if isinstance(inputs, Levels) and not inputs.ordered:
            raise InputError(
                "unbiased needs numbers or levels with an order: other levels have no expectation"
            )
        alphabet = widened(alphabet, _coth_above(used / 2))
    check_size(scenario, alphabet.size, regions)
    name = default_cost(inputs) if cost is None else cost
    task = Task(
        scenario,
        regions,
        alphabet,
        cost_matrix(inputs, alphabet, name),
        weights_of(scenario, weights),
        conditions,
        exponential_below(used),
    )
    if task.unit > _LARGEST_COST:
        raise InputError(
            f"the costs of a channel reach {log2(task.unit) * math.log10(2):.0f} digits, which is "
            "more than doubles can hold; use the cost hamming, or other units"
        )
    answer, notes = _answered(task, epsilon)
    unit, cost_as_float = float(task.unit), float(answer.cost)
    least = min(task.at_least * unit, cost_as_float)
    return ChannelSolution(
        answer.channel,
        answer.cost,
        least,
        cost_as_float / least - 1 if least > 1e-12 * unit else cost_as_float,
        task.seconds,
        tuple(task.mu),
        name.strip().lower() if isinstance(name, str) else "own",
        conditions.names,
        notes,
    )


def _answered(task: Task, epsilon: Fraction) -> tuple[Answer, tuple[str, ...]]:
    """Return the best answer of all ways, and what the user should know of it."""
    conditions = task.conditions
    plainest = task.plainest(exponential_below(min(epsilon, _MOST)))
    if plainest is not None:
        task.at_least = task.scaled(plainest.cost)
        return plainest, ()
    if conditions.only_unchanged and all(w or x in task.free for x, w in enumerate(task.mu)):
        raise InputError(conditions.why_infeasible(epsilon))
    best: tuple[Answer, Fraction | None] | None = None
    failures: list[PufferfishError] = []
    for way in _ways(epsilon):
        try:
            answer = task.solved(exponential_below(way) if way else Fraction(1))
        except PufferfishError as error:
            # What the program of epsilon itself ran into counts most.
            failures.insert(0 if way == epsilon else len(failures), error)
            continue
        if best is None or answer.cost < best[0].cost:
            best = answer, way
        if not task.is_poor(best[0]):
            break
    if best is None:
        simplest = task.simplest()
        if simplest is None:
            if isinstance(failures[0], Infeasible):
                raise InputError(conditions.why_infeasible(epsilon)) from None
            raise failures[0]
        best = simplest, None
    if epsilon > LARGEST_EPSILON:
        # The duals tell what the least cost is at the smaller epsilon only.
        task.at_least = task.at_least_anywhere
    return best[0], _notes(task, epsilon, *best)


def _ways(epsilon: Fraction) -> tuple[Fraction, ...]:
    """Return the epsilons to compute a channel for, one after the other where need be."""
    if epsilon < _SMALL:
        return (Fraction(0), epsilon) if epsilon < _TINY else (epsilon, Fraction(0))
    used = min(epsilon, LARGEST_EPSILON)
    return (used, _LARGE) if used > _LARGE else (used,)


def _notes(task: Task, epsilon: Fraction, answer: Answer, way: Fraction | None) -> tuple[str, ...]:
    excess = float(task.excess(answer)) * float(task.unit)
    most = f"it costs at most {excess:.2g} more than the least that is possible"
    if way is None:
        return (
            "the solver's doubles do not suffice for this program, so that the channel is of a "
            f"simple form that is always private; {most}",
        )
    if way != epsilon:
        leaves = " (what is published does not depend on the secret)" if way == 0 else ""
        return (
            f"the channel was computed for epsilon {show(way)}{leaves} and is therefore private "
            f"for every larger one; {most}",
        )
    if task.is_poor(answer):
        return (f"the channel is private, but perhaps not the cheapest: {most}",)
    return ()


def exponential_below(epsilon: Fraction) -> Fraction:
    """Return a rational E with 1 < E <= e^epsilon, to about 128 bits of E - 1."""
    bits = 160 + max(0, math.ceil(-log2(epsilon)))
    with precision(bits + 32):
        ball = (flint.arb(epsilon.numerator) / epsilon.denominator).exp()
        man, exp = ball.lower().man_exp()
    value = Fraction(int(man)) * Fraction(2) ** int(exp)
    # Fewer bits make the exact checks quicker; rounding down keeps them right.
    scale = 1 << bits
    return Fraction(value.numerator * scale // value.denominator, scale)


def _coth_above(half: Fraction) -> Fraction:
    """Return a rational at least coth(half)."""
    with precision(128):
        ball = (flint.arb(half.numerator) / half.denominator).coth()
        man, exp = ball.upper().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exp)
