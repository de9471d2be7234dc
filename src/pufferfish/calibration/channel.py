# SPDX-License-Identifier: Apache-2.0
"""``channel``: the least expected distortion that any record-by-record channel can have.

A linear program (theory, section 4), then a repair: the solver's floating-point answer becomes a
channel of integers that satisfies every privacy inequality in exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from pufferfish.calibration.channel_program import (
    Infeasible,
    Program,
    Row,
    privacy_rows,
    refined,
    solve,
)
from pufferfish.calibration.conditions import Conditions
from pufferfish.calibration.costs import (
    ObjectArray,
    cost_matrix,
    output_alphabet,
    weights_of,
    widened,
)
from pufferfish.calibration.region_program import region_rows
from pufferfish.calibration.repair import repaired
from pufferfish.errors import InputError, PufferfishError
from pufferfish.mechanisms.channel import Channel
from pufferfish.precision import precision
from pufferfish.rationals import show
from pufferfish.regions import Concrete
from pufferfish.scenario import Scenario

#: A repair that costs more than this, relative to the optimum, is made again from a finer answer.
_FINE = 1e-9
#: Bits of the refined answer beyond the channel's own.
_GUARD = 40


#: Where the solver's doubles suffice: e^epsilon is one of its coefficients.
SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**6), 15
#: To this the side conditions hold.
CONDITION_TOLERANCE = Fraction(1, 10**9)


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
        The optimum of the linear program, to the solver's tolerance.
    repair : float
        What exactness cost, relative to the optimum.
    solver_seconds : float
        What the solver alone took.
    """

    channel: Channel
    cost: Fraction
    lp_bound: float
    repair: float
    solver_seconds: float


def channel(
    scenario: Scenario,
    epsilon: Fraction,
    *,
    cost: object = "hamming",
    outputs: int | None = None,
    invariant: bool = False,
    unbiased: bool = False,
    min_keep: object = None,
    weights: Sequence[object] | None = None,
    regions: Sequence[Concrete] | None = None,
) -> ChannelSolution:
    """Return the channel of least expected cost that is epsilon-Pufferfish private.

    Parameters
    ----------
    scenario : Scenario
        Numbers or levels, ordered or not.
    epsilon : Fraction
        From 1e-6 to 15.
    cost : str, mapping or matrix
        ``hamming``, ``squared``, ``absolute``, or c(x, y).
    outputs : int, optional
        So many further outputs between every two neighbours; by default outputs are the values.
    invariant : bool
        The frequencies mu stay what they are: mu M = mu (to 1e-9).
    unbiased : bool
        The expected output is the value (to 1e-9); adds outputs beyond the range.
    min_keep : number, optional
        Each value stays itself at least that often (to 1e-9).
    weights : sequence of numbers, optional
        mu; by default pooled counts.
    regions : sequence of Box or Ball, optional
        Where the priors may lie, one per adversary (:func:`pufferfish.regions.regions_of`).

    Raises
    ------
    InputError
        If an option is wrong, or no channel meets the side conditions; says what would.
    PufferfishError
        If the solver fails, or meets the side conditions less well than to 1e-9: never a channel
        that was not checked.

    Notes
    -----
    Source: theory, sections 4 and 5.
    """
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise InputError(
            f"a channel can be computed for epsilon from {float(SMALLEST_EPSILON):g} to "
            f"{LARGEST_EPSILON} (beyond, the solver's doubles do not suffice), but "
            f"{show(epsilon)} was given"
        )
    conditions = Conditions.checked(invariant, unbiased, min_keep)
    inputs = scenario.support
    bound = exponential_below(epsilon)
    alphabet = output_alphabet(inputs, outputs)
    if unbiased:
        alphabet = widened(alphabet, _coth_above(epsilon / 2))
    costs = cost_matrix(inputs, alphabet, cost)
    mu = weights_of(scenario, weights)
    privacy = (
        privacy_rows(scenario, alphabet.size, bound)
        if regions is None
        else region_rows(scenario, regions, alphabet.size, bound)
    )
    program = _program(privacy, costs, mu)
    conditions.add_to(program, inputs, alphabet, mu)
    try:
        solution = solve(program)
    except Infeasible:
        if not conditions.any:
            # A constant channel is always private.
            raise PufferfishError("the solver could not solve the program") from None
        raise InputError(conditions.why_infeasible(epsilon)) from None
    n_x, n_y = program.shape
    bits = 64 + max(0, math.ceil(-math.log2(float(bound - 1))))
    plain = solution.values[: n_x * n_y].reshape(n_x, n_y)
    entries = {
        (int(x), int(y)): Fraction(float(plain[x, y]))
        for x, y in zip(*np.nonzero(plain > 0), strict=True)
    }
    rows = repaired(scenario, entries, (n_x, n_y), bound, bits, regions)
    exact = expected_cost(rows, bits, costs, mu)
    if float(exact) > solution.objective * (1 + _FINE) + 1e-300 and exact != 0:
        fine = refined(program, solution, bits + _GUARD)
        one = 1 << (bits + _GUARD)
        entries = {
            divmod(c, n_y): Fraction(v, one) for c, v in enumerate(fine[: n_x * n_y]) if v > 0
        }
        finer = repaired(scenario, entries, (n_x, n_y), bound, bits, regions)
        finer_cost = expected_cost(finer, bits, costs, mu)
        if finer_cost < exact:
            rows, exact = finer, finer_cost
    made = Channel(inputs, alphabet, rows, (1 << bits,) * n_x)
    missed = conditions.missed_by(made, mu)
    if missed > CONDITION_TOLERANCE:
        raise PufferfishError(
            f"the side conditions could be met only to {float(missed):.0e}, not to "
            f"{float(CONDITION_TOLERANCE):.0e}; a larger epsilon or fewer conditions help"
        )
    repair = float(exact) / solution.objective - 1 if solution.objective > 1e-12 else float(exact)
    return ChannelSolution(made, exact, solution.objective, max(0.0, repair), solution.seconds)


def exponential_below(epsilon: Fraction) -> Fraction:
    """Return a rational E with 1 < E <= e^epsilon, to about 128 bits of E - 1."""
    bits = 160 + max(0, math.ceil(-math.log2(epsilon)))
    with precision(bits + 32):
        ball = (flint.arb(epsilon.numerator) / epsilon.denominator).exp()
        man, exp = ball.lower().man_exp()
    value = Fraction(int(man)) * Fraction(2) ** int(exp)
    # Fewer bits make the exact checks quicker; rounding down keeps them right.
    scale = 1 << bits
    return Fraction(value.numerator * scale // value.denominator, scale)


def expected_cost(
    rows: ObjectArray, bits: int, costs: ObjectArray, mu: Sequence[Fraction]
) -> Fraction:
    """Return sum_x mu(x) sum_y c(x, y) M(y|x), exactly."""
    total = Fraction(0)
    for x, weight in enumerate(mu):
        if weight:
            row = sum(
                (c * m for c, m in zip(costs[x], rows[x], strict=True) if m and c), Fraction(0)
            )
            total += weight * row
    return total / (1 << bits)


def _program(privacy: tuple[list[Row], int], costs: ObjectArray, mu: Sequence[Fraction]) -> Program:
    n, outputs = costs.shape
    rows, further = privacy
    one = Fraction(1)
    ones = [one] * outputs
    rows += [Row(list(range(x * outputs, (x + 1) * outputs)), ones, one, one) for x in range(n)]
    doubles = np.array([[float(w)] for w in mu]) * costs.astype(np.float64)
    return Program((n, outputs), np.concatenate([doubles.ravel(), np.zeros(further)]), rows, {})


def _coth_above(half: Fraction) -> Fraction:
    """Return a rational at least coth(half)."""
    with precision(128):
        ball = (flint.arb(half.numerator) / half.denominator).coth()
        man, exp = ball.upper().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exp)
