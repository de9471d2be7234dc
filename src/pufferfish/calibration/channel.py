# SPDX-License-Identifier: Apache-2.0
"""``channel``: the least expected distortion that any record-by-record channel can have.

A linear program (theory, section 4), then a repair: the solver's floating-point answer becomes a
channel of integers that satisfies every privacy inequality in exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import flint

from pufferfish.calibration.channel_program import check_size
from pufferfish.calibration.channel_task import NOTHING, Answer, Task
from pufferfish.calibration.conditions import LARGEST_EPSILON, Conditions
from pufferfish.calibration.costs import cost_matrix, default_cost, weights_of
from pufferfish.calibration.dyadic import as_double, log2
from pufferfish.calibration.forbidden import ceiling_of
from pufferfish.calibration.highs import Infeasible
from pufferfish.calibration.learned import learn_of_larger, take_over
from pufferfish.calibration.most_kept import most_kept
from pufferfish.calibration.outputs import output_alphabet, widened
from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms.channel import Channel
from pufferfish.precision import precision
from pufferfish.rationals import show
from pufferfish.regions import Ball, Concrete
from pufferfish.scenario import Scenario
from pufferfish.support import Levels

#: An answer, and the epsilon whose program it is of.
Found = tuple[Answer, Fraction | None]
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
        By how much the cost exceeds ``lp_bound``: what exactness, and all else, added at most.
        Relative to the bound where that is positive. Where it is 0, or (up to epsilon 20) below
        1e-15 of the largest term of the cost, no relative figure can be had, and this is the cost
        itself, in its unit.
    solver_seconds : float
        What the solver alone took.
    weights : tuple of Fraction
        mu, one per value; they sum to 1.
    cost_name : str
        ``hamming``, ``squared``, ``absolute``, or ``own``.
    conditions : tuple of str
        The side conditions that hold, each to 1e-9: ``invariant``, ``unbiased``, ``min_keep 0.6``.
    notes : tuple of str
        What the user should know of the answer: among other things whenever it is proved only to
        more than 1e-6, relative to the bound, that it is the cheapest; an excess below 1e-15 of
        the largest term of the cost counts as none. The excess is told as it is, and relative to
        the bound.
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
    Source: theory, sections 4 and 5. The row of a value that no protected secret can take is not
    the cheapest but the average row, so that whoever has it is protected too; it tells nothing of
    the value (:mod:`pufferfish.calibration.unseen`, with a theorem and its limits).
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
    task, answer, notes = _answered(task, epsilon)
    unit, cost_as_float = float(task.unit), as_double(answer.cost)
    least = min(task.at_least * unit, cost_as_float)
    # Beyond the largest epsilon the bound is exact, and may be relied on however small it is.
    known = least > (0 if epsilon > LARGEST_EPSILON else NOTHING * unit) or least == cost_as_float
    relative = cost_as_float / least - 1 if known and least else math.inf
    return ChannelSolution(
        answer.channel,
        answer.cost,
        least,
        relative if math.isfinite(relative) else cost_as_float,
        task.seconds,
        tuple(task.mu),
        name.strip().lower() if isinstance(name, str) else "own",
        conditions.names,
        notes,
    )


def _answered(task: Task, epsilon: Fraction) -> tuple[Task, Answer, tuple[str, ...]]:
    """Return the best answer of all ways, and what the user should know of it.

    With it the task that knows most of the least cost.
    """
    conditions = task.conditions
    plainest = task.plainest(exponential_below(min(epsilon, _MOST)))
    if plainest is not None:
        task.at_least = task.scaled(plainest.cost)
        return task, plainest, ()
    if conditions.only_unchanged and all(w or x in task.free for x, w in enumerate(task.mu)):
        raise InputError(conditions.why_infeasible(epsilon))
    best: Found | None = None
    failures: list[PufferfishError] = []
    weights, costs = task.priced.weights, task.priced.costs
    ceiling = ceiling_of(weights, costs)
    used = task if ceiling is None else replace(task, ceiling=ceiling)
    if used is not task:
        best = _tried(used, epsilon, None, [])
    if best is None or used.is_poor(best[0]):
        if used is not task:
            take_over(task, used)
        used, best = task, _tried(task, epsilon, best, failures)
        lower = None if best is None else ceiling_of(weights, costs, best[0].cost)
        if lower is not None and (ceiling is None or 2 * lower <= ceiling):
            used = replace(task, ceiling=lower)
            take_over(used, task)
            best = _tried(used, epsilon, best, [])
    if best is None:
        simplest = task.simplest()
        if simplest is None:
            raise _refusal(task, epsilon, failures[0])
        best = simplest, None
    task = used
    if epsilon > LARGEST_EPSILON:
        # The duals tell what the least cost is at the smaller epsilon only.
        task.at_least = task.at_least_anywhere
        if epsilon <= _MOST:
            learn_of_larger(task, exponential_above(epsilon))
    return task, best[0], _notes(task, epsilon, *best)


def _tried(
    task: Task, epsilon: Fraction, best: Found | None, failures: list[PufferfishError]
) -> Found | None:
    """Go all ways until an answer is good, and return the best; failures are appended."""
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
    return best


def _refusal(task: Task, epsilon: Fraction, failure: PufferfishError) -> PufferfishError:
    """Return the error that says what cannot be met, and what could."""
    conditions = task.conditions
    way = _ways(epsilon)[0]
    most = most_kept(task, exponential_below(way) if way else Fraction(1))
    robust = any(not isinstance(r, Ball) or not r.is_exact for r in task.regions or ())
    if isinstance(failure, Infeasible):
        return InputError(conditions.why_infeasible(epsilon, robust=robust, most=most))
    return PufferfishError(f"{failure}; {conditions.what_helps(epsilon, robust=robust, most=most)}")


def _ways(epsilon: Fraction) -> tuple[Fraction, ...]:
    """Return the epsilons to compute a channel for, one after the other where need be."""
    if epsilon < _SMALL:
        return (Fraction(0), epsilon) if epsilon < _TINY else (epsilon, Fraction(0))
    used = min(epsilon, LARGEST_EPSILON)
    return (used, _LARGE) if used > _LARGE else (used,)


def _notes(task: Task, epsilon: Fraction, answer: Answer, way: Fraction | None) -> tuple[str, ...]:
    excess = task.excess(answer)
    most = f"it costs at most {excess * float(task.unit):.2g} more than the least that is possible"
    if task.at_least > 0:
        most += f", at most {excess / task.at_least:.2g} times that least"
    elif excess > 0:
        most += ", of which only that it is not below 0 is known"
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
    if task.is_told(answer):
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


def exponential_above(epsilon: Fraction) -> Fraction:
    """Return a rational E >= e^epsilon, to about 128 bits."""
    with precision(192):
        ball = (flint.arb(epsilon.numerator) / epsilon.denominator).exp()
        man, exp = ball.upper().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exp)


def _coth_above(half: Fraction) -> Fraction:
    """Return a rational at least coth(half)."""
    with precision(128):
        ball = (flint.arb(half.numerator) / half.denominator).coth()
        man, exp = ball.upper().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exp)
