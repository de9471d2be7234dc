# SPDX-License-Identifier: Apache-2.0
"""Prove the loss of releases: which arithmetic decides what.

Whole numbers decide losses that are infinite or 0, and ratios without noise; balls prove the rest
on small grids, a floating-point bound on large ones, and balls again where that cannot decide. A
ball never decides equality: where the loss may be epsilon itself, exact rationals compare how far
mass travels over theta with epsilon (theory, section 8).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pufferfish.errors import InputError
from pufferfish.loss.balls import enclose, log_ends
from pufferfish.loss.certificate import Certificate, LossBound, Witness
from pufferfish.loss.integers import farthest, loses_nothing
from pufferfish.loss.kernel import GridTooLarge, Mechanism, Problem
from pufferfish.loss.problem import LARGEST_GRID, Releases, problems_of
from pufferfish.loss.rounding import BALL_CELLS, TooExtreme, enclose_in_doubles
from pufferfish.loss.worst_case import added, rank, worst_case
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import (
    Number,
    float_down,
    float_up,
    parse_epsilon,
    parse_number,
    precision,
    show,
)
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario

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


@dataclass(frozen=True)
class _Found:
    """What was proved of one problem; ``upper`` None: the loss is infinite."""

    lower: Fraction
    upper: Fraction | None
    method: str
    witness: Witness | None = None
    bits: int | None = None
    error: float | None = None
    rows: int = 1

    def decides(self, epsilon: Fraction | None) -> bool:
        """Whether the bounds lie on one side of epsilon; without one, whether they are close."""
        if self.upper is None:
            return True
        if epsilon is None:
            return self.upper - self.lower <= _TIGHT * self.upper
        return self.upper <= epsilon or self.lower > epsilon


def certify(
    scenario: Scenario | Prior, mechanism: Mechanism | Number, epsilon: Number | None = None
) -> Certificate:
    """Recompute the privacy loss of a mechanism, with proof, and compare it with epsilon.

    Where a prior carries a region, the loss is the largest over all priors of the region; where
    the rows of one person are known, all rows of a person are released.

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

    Raises
    ------
    InputError
        If the mechanism does not suit the column, or the scale or epsilon is out of range.

    Notes
    -----
    Theory, sections 2, 4, 5 and 8.
    """
    known = Scenario(scenario) if isinstance(scenario, Prior) else scenario
    exact = None if epsilon is None else parse_epsilon(epsilon)
    if not isinstance(mechanism, DiscreteLaplace | Channel):
        mechanism = _noise(known, mechanism)
    known.product.position(None)
    return prove(known, {0: [mechanism]}, exact)


def privacy_loss(scenario: Scenario | Prior, scale: Number) -> float:
    """Return the privacy loss of Laplace noise, as a double that is not below it.

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

    Raises
    ------
    InputError
        If the scale is negative or no number, or the levels have no order.

    Notes
    -----
    Theory, section 2.
    """
    return certify(scenario, scale).loss


def _noise(scenario: Scenario, scale: Number) -> DiscreteLaplace:
    exact = parse_number(scale, "the scale")
    if exact < 0:
        raise InputError(f"the scale must not be negative, but {scale} was given")
    theta = scale if isinstance(scale, float) else float_down(exact)
    if exact > 0 and theta == 0:
        raise InputError(f"the scale {show(exact)} is below every double")
    return DiscreteLaplace(theta, scenario.lattice.step)


def prove(scenario: Scenario, releases: Releases, epsilon: Fraction | None) -> Certificate:
    """Recompute the loss of some releases, with proof, and compare it with epsilon.

    Where a grid does not fit, worst cases take its place.
    """
    found = _solved(scenario, releases, epsilon, LARGEST_GRID, anyway=True)
    worst, (lower, rounded) = _worst(found), _lower(found)
    holds = epsilon is not None and worst.upper is not None and worst.upper <= epsilon
    loss = math.inf if worst.upper is None else float_up(worst.upper)
    if epsilon is not None and holds:
        # The double of epsilon stands for the decimal that it prints as: for epsilon itself.
        loss = min(loss, float(epsilon))
    return Certificate(
        method=worst.method,
        loss=loss,
        loss_at_least=rounded,
        epsilon=epsilon,
        holds=holds,
        decided=holds or (epsilon is not None and lower > epsilon),
        witness=worst.witness,
        precision=max((own.bits for own in found if own.bits is not None), default=None),
        error_bound=worst.error,
        rows=_rows(scenario),
    )


def loss_bound(scenario: Scenario, releases: Releases, limit: int = LARGEST_GRID) -> LossBound:
    """Return the proven loss of some releases together; may raise GridTooLarge.

    That of single rows is joint; rows of one person of which too little is known count with their
    worst cases.
    """
    found = _solved(scenario, releases, None, limit, anyway=False)
    worst = _worst(found)
    return LossBound(
        upper=worst.upper,
        lower=_lower(found)[1],
        kind="worst-case sum" if worst.method == "none" else "joint loss",
        method=worst.method,
        rows=worst.rows,
        witness=worst.witness,
    )


def _worst(found: Iterable[_Found]) -> _Found:
    return max(found, key=lambda own: rank(own.upper))


def _lower(found: Sequence[_Found]) -> tuple[Fraction | float, float]:
    """Return a lower bound of the largest loss, and rounded down; infinite where one is."""
    if any(own.upper is None and own.method != "none" for own in found):
        return math.inf, math.inf
    lower = max(own.lower for own in found)
    return lower, float_down(lower)


def _solved(
    scenario: Scenario, releases: Releases, epsilon: Fraction | None, limit: int, anyway: bool
) -> list[_Found]:
    """Return what is proved of every problem; ``anyway``: by worst cases where none fits."""
    found = [_Found(Fraction(0), Fraction(0), "exact")]
    try:
        problems, bounded = problems_of(scenario, releases, limit)
    except GridTooLarge:
        if not anyway:
            raise
        problems, bounded = [], max([1, *_rows(scenario)])
    for problem in problems:
        try:
            own = _solve(problem, epsilon)
        except GridTooLarge:
            if problem.rows == 1 and not anyway:
                raise
            bounded = max(bounded, problem.rows)
            continue
        if not all(axis.exact for axis in problem.axes):
            # Something was replaced by what tells more: the loss itself may be smaller.
            method = "none" if own.upper is None else own.method
            own = replace(own, lower=Fraction(0), witness=None, method=method)
        found.append(replace(own, rows=problem.rows))
    if bounded:
        # The sum of all worst cases over the whole support.
        axes = scenario.product.axes
        terms = [worst_case(m, axes[c]) for c, made in releases.items() for m in made]
        found.append(_Found(Fraction(0), added(terms, bounded), "none", rows=bounded))
    return found


def _rows(scenario: Scenario) -> tuple[int, ...]:
    return tuple(sorted({s.rows for strata in scenario.strata for s in strata}))


def _solve(problem: Problem, epsilon: Fraction | None) -> _Found:
    """Prove the loss of one problem, or raise GridTooLarge."""
    if loses_nothing(problem):
        return _Found(Fraction(0), Fraction(0), "exact")
    found = None
    if problem.work > BALL_CELLS and not problem.regions:
        found = _by_doubles(problem)
    if found is None or not (epsilon is None or found.decides(epsilon)):
        found = _by_balls(problem, epsilon, found)
    bound = None if epsilon is not None and found.decides(epsilon) else farthest(problem)
    if bound is None or found.upper is None:
        return found
    if bound < found.upper:
        return replace(found, upper=bound, method=f"{found.method}+rational")
    apart = problem.work * len(problem.secrets) <= _LAST_BALL_CELLS
    if epsilon is not None and apart and len(problem.pairs) * len(problem.numbers) > 1:
        # One pair may be decided by its ball, another one by the distance.
        return _worst(_solve(one, epsilon) for one in _by_pairs(problem))
    return found


def _by_pairs(problem: Problem) -> Iterator[Problem]:
    """Yield a problem for each adversary and pair."""
    for number, beliefs in zip(problem.numbers, problem.adversaries, strict=True):
        for i, j in problem.pairs:
            yield replace(
                problem,
                adversaries=((beliefs[i], beliefs[j]),),
                pairs=((0, 1),),
                secrets=(problem.secrets[i], problem.secrets[j]),
                numbers=(number,),
            )


def _by_doubles(problem: Problem) -> _Found | None:
    """Bound the loss in doubles; None where the bound is not proved for such a problem."""
    try:
        lower, upper, where = enclose_in_doubles(problem)
    except TooExtreme:
        return None
    if math.isinf(upper):
        return _Found(Fraction(0), None, "exact", problem.witness(where))
    error = math.nextafter((upper - lower) / 2, math.inf)
    ends = Fraction(lower), Fraction(upper)
    return _Found(*ends, "float-bound", problem.witness(where), error=error)


def _by_balls(problem: Problem, epsilon: Fraction | None, known: _Found | None) -> _Found:
    """Enclose the loss at growing precision; what is ``known`` stands where balls take too long."""
    bits = _BITS
    if epsilon is not None:
        bits += max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length())
    # Without noise the ratio is rational: its logarithm differs from epsilon, with enough bits.
    most = max(_MOST_BITS, 4 * bits) if problem.noises else _MOST_EXACT_BITS
    while problem.work <= _LAST_BALL_CELLS and bits <= most:
        ratio, where = enclose(problem, bits)
        witness, method = problem.witness(where), "ball" if problem.noises else "exact"
        if ratio is None:
            return _Found(Fraction(0), None, "exact", witness)
        with precision(bits):
            lower, upper = log_ends(ratio)
        if upper is not None:  # else nothing is known at this precision
            known = _Found(lower, upper, method, witness, bits)
            bound = None if known.decides(epsilon) else farthest(problem)
            if known.decides(epsilon) or (bound is not None and bound <= (epsilon or upper)):
                break
        bits *= 2
    if known is None:
        raise GridTooLarge
    return known
