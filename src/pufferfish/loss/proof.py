# SPDX-License-Identifier: Apache-2.0
"""Prove the loss of releases: which arithmetic decides what.

Whole numbers decide losses that are infinite or 0, and ratios without noise; balls prove the rest
on small grids, a floating-point bound on large ones, and balls again where that cannot decide. A
ball never decides equality: where the loss may be epsilon itself, exact rationals compare how far
mass travels over theta with epsilon (theory, section 9).
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from pufferfish.loss.balls import enclose, log_ends
from pufferfish.loss.bounds import farthest, infinite, loses_nothing, terms_of, worst_sum
from pufferfish.loss.certificate import Certificate, LossBound, rank
from pufferfish.loss.kernel import GridTooLarge
from pufferfish.loss.problem import Problem, Releases, problems_of
from pufferfish.loss.rounding import BALL_CELLS, TooExtreme, enclose_in_doubles
from pufferfish.loss.walk import claims_of, walked
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, float_down, parse_epsilon, parse_number, precision
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario, as_scenario

#: Bits of the first try; a small epsilon is told from 0 only by so many more.
_BITS = 128
#: Each further try doubles the bits, up to so many with noise.
_MOST_BITS = 512
#: No ratio of whole numbers needs so many bits to be told from e^epsilon.
_MOST_EXACT_BITS = 1 << 17
#: Cells up to which balls are taken where doubles decide nothing: some seconds.
_LAST_BALL_CELLS = 4_000_000
#: Bounds are close enough when they are neighbouring doubles, or nearly.
_TIGHT = Fraction(1, 10**15)


def certify(
    scenario: Scenario | Prior, mechanism: Mechanism | Number, epsilon: Number | None = None
) -> Certificate:
    """Recompute the privacy loss of a mechanism, with proof, and compare it with epsilon.

    Where a prior carries a region, the loss is the largest over all priors of the region; where
    the rows of one person are known, all rows of a person are released. Theory, sections 2, 4, 5
    and 9.

    Parameters
    ----------
    scenario : Scenario or Prior
        The priors and pairs, of one column.
    mechanism : DiscreteLaplace, Channel or number
        A number is the scale of noise on the scenario's own lattice; a float is taken as the exact
        value of the double, and what is no double (such as "1/3") is rounded down to one, which
        can only raise the loss.
    epsilon : number, optional
        What to compare the loss with; without it the loss is only bounded. Floats are read as the
        decimal they print as.

    Returns
    -------
    Certificate
        ``holds`` only if loss <= epsilon was proved.
    """
    known = as_scenario(scenario)
    exact = None if epsilon is None else parse_epsilon(epsilon)
    if not isinstance(mechanism, DiscreteLaplace | Channel):
        theta = parse_number(mechanism, "the scale")
        scale = mechanism if isinstance(mechanism, float) else float_down(theta)
        mechanism = DiscreteLaplace(scale, known.lattice.step)
    known.product.position(None)
    return prove(known, {0: [mechanism]}, exact)


def privacy_loss(scenario: Scenario | Prior, scale: Number) -> float:
    """Return the privacy loss of Laplace noise, as a double that is not below it.

    Theory, section 2.

    Parameters
    ----------
    scenario : Scenario or Prior
        Numbers, or levels with an order.
    scale : number
        theta, in the units of the data; 0 publishes the column unchanged.

    Returns
    -------
    float
        Rounded up from a proven bound; ``inf`` where the loss is infinite.
    """
    return certify(scenario, scale).loss


def prove(scenario: Scenario, releases: Releases, epsilon: Fraction | None) -> Certificate:
    """Recompute the loss of some releases, with proof, and compare it with epsilon.

    Where a grid does not fit, worst cases take its place. Noise alone, under a confidence, is
    proved by a walk from the range over epsilon.
    """
    if epsilon is not None and scenario.has_region:
        made = [each for own in releases.values() for each in own]
        if len(made) == 1 and isinstance(made[0], DiscreteLaplace):
            claims = claims_of(scenario, epsilon)
            # Noise on another lattice tells the value. Without claims boxes have to do.
            if claims and (claims[0].lattice.step / made[0].step).denominator == 1:
                return walked(claims, made[0].scale)[1]
    rows = scenario.row_numbers
    try:
        bound = loss_bound(scenario, releases, epsilon)
    except GridTooLarge:
        bound = worst_sum(terms_of(scenario, releases), max(rows, default=1))
    return certificate_of(bound, epsilon, rows)


def certificate_of(
    bound: LossBound, epsilon: Fraction | None, rows: tuple[int, ...] = ()
) -> Certificate:
    """Return what a bound says of epsilon."""
    holds = epsilon is not None and bound.at_most(epsilon)
    loss = bound.value
    if epsilon is not None and holds:
        # The double of epsilon stands for the decimal that it prints as: for epsilon itself.
        loss = min(loss, float(epsilon))
    return Certificate(
        method=bound.method, loss=loss,
        loss_at_least=math.inf if bound.lower is None else float_down(bound.lower), epsilon=epsilon,
        holds=holds,
        decided=holds or (epsilon is not None and (bound.lower is None or bound.lower > epsilon)),
        witness=bound.witness, precision=bound.precision, error_bound=bound.error_bound, rows=rows,
    )  # fmt: skip


def loss_bound(
    scenario: Scenario, releases: Releases, epsilon: Fraction | None = None
) -> LossBound:
    """Return the proven loss of some releases together, or on which side of epsilon it is.

    That of single rows is joint, or GridTooLarge is raised; rows of one person of which too little
    is known count with their worst cases.
    """
    problems, unknown = problems_of(scenario, releases)
    found = []
    for problem in problems:
        try:
            own = _solve(problem, epsilon)
        except GridTooLarge:
            if problem.rows == 1:
                raise
            unknown = max(unknown, problem.rows)
            continue
        if not all(axis.exact for axis in problem.axes):
            # Something was replaced by what tells more: the loss itself may be smaller.
            method = "none" if own.upper is None else own.method
            own = replace(own, lower=Fraction(0), witness=None, method=method)
        found.append(own)
    if unknown:
        found.append(worst_sum(terms_of(scenario, releases), unknown))
    return _largest(found)


def bound_of(problems: Iterable[Problem], epsilon: Fraction | None = None) -> LossBound:
    """Return the proven loss of problems, of which the largest counts, or its side of epsilon."""
    return _largest(_solve(problem, epsilon) for problem in problems)


def _largest(found: Iterable[LossBound]) -> LossBound:
    """Return the largest upper bound, with the largest lower one."""
    bounds = [LossBound(Fraction(0), Fraction(0), method="exact"), *found]
    lower = max((own.lower for own in bounds), key=rank)
    return replace(max(bounds, key=lambda own: rank(own.upper)), lower=lower)


def _solve(problem: Problem, epsilon: Fraction | None) -> LossBound:
    """Prove the loss of one problem, or raise GridTooLarge."""
    nothing = LossBound(Fraction(0), Fraction(0), method="exact", rows=problem.rows)
    if loses_nothing(problem):
        return nothing
    apart = infinite(problem)
    if apart is not None:
        return replace(nothing, upper=None, lower=None, witness=problem.witness(apart))
    found, reach = None, None
    for found in _attempts(problem, epsilon):
        decided = _decides(found, epsilon)
        if decided and epsilon is not None:
            return found
        reach = farthest(problem)
        if decided or (reach is not None and rank(reach) <= rank(epsilon or found.upper)):
            break
    if found is None:
        raise GridTooLarge
    if reach is not None and rank(reach) < rank(found.upper):
        return replace(found, upper=reach, method=f"{found.method}+rational")
    few = problem.work * len(problem.secrets) <= _LAST_BALL_CELLS
    if epsilon is not None and reach is not None and few and len(problem.pairs) > 1:
        # One pair may be decided by its ball, another one by the distance.
        sets, names = problem.sets, problem.secrets
        each = (
            replace(problem, sets=(sets[i], sets[j]), secrets=(names[i], names[j]), pairs=((0, 1),))
            for i, j in problem.pairs
        )
        return _largest(_solve(own, epsilon) for own in each)
    return found


def _decides(found: LossBound, epsilon: Fraction | None) -> bool:
    """Whether finite bounds lie on one side of epsilon; without one, whether they are close."""
    if found.upper is None or found.lower is None:
        return False  # pragma: no cover - attempts are finite
    if epsilon is None:
        near = found.upper - found.lower <= _TIGHT * found.upper
        return near or found.method == "float-bound"
    return found.upper <= epsilon or found.lower > epsilon


def _attempts(problem: Problem, epsilon: Fraction | None) -> Iterator[LossBound]:
    """Yield bounds of a finite loss: in doubles on a large grid, by balls of growing precision."""
    if problem.work > BALL_CELLS and problem.points:
        with suppress(TooExtreme):
            low, high, where = enclose_in_doubles(problem)
            yield LossBound(
                Fraction(high), Fraction(low), method="float-bound", rows=problem.rows,
                witness=problem.witness(where),
                error_bound=math.nextafter((high - low) / 2, math.inf),
            )  # fmt: skip
    bits = _BITS
    if epsilon is not None:
        bits += max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    # Without noise the ratio is rational: its logarithm differs from epsilon, with enough bits.
    most = max(_MOST_BITS, 4 * bits) if problem.noises else _MOST_EXACT_BITS
    while problem.work <= _LAST_BALL_CELLS and bits <= most:
        ratio, where = enclose(problem, bits)
        with precision(bits):
            lower, upper = log_ends(ratio)
        if upper is not None:  # else nothing is known at this precision
            yield LossBound(
                upper, lower, method="ball" if problem.noises else "exact", rows=problem.rows,
                witness=problem.witness(where), precision=bits,
            )  # fmt: skip
        bits *= 2
